//! Finding actors by their paths.

pub(crate) mod lookup; // one actor by its path
pub(crate) mod selection; // all actors at a path with wildcards
pub(crate) mod identify; // asking actors at a path for their references
pub(crate) mod empty_ref; // references to paths without an actor
