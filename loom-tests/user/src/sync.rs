//! The only door to what loom replaces. Ordinary builds get std's.

#[cfg(pointsman_loom)]
pub use loom::sync::atomic;
#[cfg(pointsman_loom)]
pub use loom::sync::{Arc, Mutex};

#[cfg(not(pointsman_loom))]
pub use std::sync::atomic;
#[cfg(not(pointsman_loom))]
pub use std::sync::{Arc, Mutex};
