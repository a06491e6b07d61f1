#![doc = include_str!("../guide/testing.md")]

pub(crate) mod probe;
pub(crate) mod quiescence;
pub(crate) mod seeds;
pub(crate) mod system;
pub(crate) mod turns;
pub(crate) mod wait_error;

#[cfg(feature = "net")]
pub use crate::net::memory::{MemoryError, MemorySocket, memory_pair};
pub use crate::testkit::probe::Probe;
pub use crate::testkit::system::{TestSystem, TestSystemBuilder};
pub use crate::testkit::wait_error::WaitError;
