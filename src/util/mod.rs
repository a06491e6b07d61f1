//! These modules know no protocol of actors.

pub(crate) mod debug_by_display; // errors show their sentence
pub(crate) mod reclaim; // frees memory that other threads may still read
pub(crate) mod per_thread; // keeps a value for each thread
pub(crate) mod panic; // keeps a panic in user code from becoming two
pub(crate) mod lent_arc; // an `Arc` that need not be counted
pub(crate) mod slabs; // memory for cells, cut from larger pieces
pub(crate) mod stderr_log; // standard error, where no logger is installed
#[cfg(feature = "config")]
pub(crate) mod values; // the values of settings in a configuration file
