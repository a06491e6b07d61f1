//! util

pub(crate) mod panic;
pub(crate) mod per_thread;
pub(crate) mod reclaim;
