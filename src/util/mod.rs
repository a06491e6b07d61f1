//! Ground without any protocol of actors.

pub(crate) mod reclaim; // frees memory that other threads may still read
pub(crate) mod per_thread; // a value for each thread
pub(crate) mod panic; // keeps a panic in user code from becoming two
