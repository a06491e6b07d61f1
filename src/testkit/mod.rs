#![doc = include_str!("../../docs/testing.md")]

mod probe;
mod quiet;
mod seeds;
mod system;
mod turns;

pub use probe::{Fish, Probe};
pub use quiet::{NotQuiet, StillBusy, wait_until_quiet};
pub use seeds::{for_seeds, seeds};
pub use system::{NotReady, TestSystem, TestSystemBuilder};
pub use turns::Livelock;
