//! Time: clocks, the timing wheel, and the timers that a system runs on them.

pub(crate) mod clock; // clocks
pub(crate) mod wheel; // the timing wheel
pub(crate) mod timers; // the timers of a system
pub(crate) mod alarm; // wakers that wait for a time
pub(crate) mod no_system; // a clock for asks that belong to no system

pub use crate::time::clock::{Clock, ManualClock};
