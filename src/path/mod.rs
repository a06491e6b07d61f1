//! path

pub(crate) mod actor_path;
pub(crate) mod address;
pub(crate) mod error;
