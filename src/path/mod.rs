//! Names, paths and addresses of actors.

pub(crate) mod actor_path; // ActorPath and Name
pub(crate) mod address; // where a system is to be found
pub(crate) mod error; // what is wrong with a name or a path
