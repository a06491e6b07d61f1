#![doc = include_str!("../../docs/testing.md")]

mod probe;
mod seeds;
mod system;
mod turns;

pub use probe::{Fish, Probe};
pub use seeds::{for_seeds, seeds};
pub use system::{TestSystem, TestSystemBuilder};
pub use turns::Livelock;
