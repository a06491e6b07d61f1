//! Look-ups and selections find actors by their paths.

pub(crate) mod lookup; // one actor by its path
pub(crate) mod place_elsewhere; // where a path goes on at another node
pub(crate) mod selection; // all actors at a path with wildcards
pub(crate) mod identify; // requests for the references of the actors at a path
pub(crate) mod empty_ref; // references to paths without an actor

pub use crate::selection::identify::Resolution;
pub use crate::selection::lookup::LookupError;
pub use crate::selection::selection::{SelectError, Selection, SelectionDelivery};
