//! Names, paths and addresses of actors.

pub(crate) mod actor_path; // ActorPath and Name
pub(crate) mod address; // the address of a system
pub(crate) mod error; // errors of names and paths

pub use crate::path::actor_path::ActorPath;
pub use crate::path::address::SystemAddress;
pub use crate::path::error::{NameError, PathError, PathFault};
