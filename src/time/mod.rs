//! Time: clocks, the timing wheel, and the timers that a system runs on them.

mod clock;
mod timers;
mod wheel;

pub use clock::{Clock, ManualClock, OnAdvance, SystemClock};
pub use timers::{TimerHandle, Timers};
