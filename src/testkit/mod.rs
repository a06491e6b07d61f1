#![doc = include_str!("../guide/testing.md")]

pub(crate) mod probe;
pub(crate) mod quiescence;
pub(crate) mod seeds;
pub(crate) mod system;
pub(crate) mod turns;

pub use crate::testkit::probe::{FishOutcome, Probe};
pub use crate::testkit::quiescence::{NotQuiet, StillBusy, wait_until_quiet};
pub use crate::testkit::seeds::{for_seeds, seeds};
pub use crate::testkit::system::{NotReady, TestSystem, TestSystemBuilder};
pub use crate::testkit::turns::Livelock;
