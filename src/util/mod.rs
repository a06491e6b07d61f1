//! These modules know no protocol of actors.

pub(crate) mod reclaim; // frees memory that other threads may still read
pub(crate) mod per_thread; // keeps a value for each thread
pub(crate) mod panic; // keeps a panic in user code from becoming two
#[cfg(feature = "config")]
pub(crate) mod values; // the values of settings in a configuration file
