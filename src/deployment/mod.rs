//! Settings of single actors by path, given to the system instead of to the code that creates them.

pub(crate) mod deployment;
pub(crate) mod router;
