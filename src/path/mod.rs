//! Names, paths and addresses of actors.

pub(crate) mod actor_path; // ActorPath and Name
pub(crate) mod address; // the address of a system
#[cfg(any(feature = "remote", pointsman_loom))]
pub(crate) mod canonical_path; // the one form of a path that goes to other nodes
pub(crate) mod error; // errors of names and paths

pub use crate::path::actor_path::ActorPath;
pub use crate::path::address::SystemAddress;
pub use crate::path::error::{NameError, PathError, PathFault};
