//! How actors are found: by a path, by a path with wildcards, by asking who is there.

pub(in crate::actor) mod empty;
pub(in crate::actor) mod identify;
mod lookup;
mod selection;

pub use identify::{ActorIdentity, ActorNotFound, Resolution};
pub use lookup::LookupError;
pub(crate) use selection::Found;
pub use selection::{Delivered, SelectError, Selection};
