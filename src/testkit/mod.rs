#![doc = include_str!("../guide/testing.md")]

pub(crate) mod probe;
pub(crate) mod quiescence;
pub(crate) mod seeds;
#[cfg(feature = "remote")]
pub(crate) mod sim_net;
pub(crate) mod system;
pub(crate) mod turns;
pub(crate) mod wait_error;

#[cfg(feature = "net")]
pub use crate::net::memory::{MemoryError, MemorySocket, memory_pair};
pub use crate::testkit::probe::Probe;
#[cfg(feature = "remote")]
pub use crate::testkit::sim_net::{LinkFaults, SimEngine, SimNet};
pub use crate::testkit::system::{TestSystem, TestSystemBuilder};
pub use crate::testkit::wait_error::WaitError;
