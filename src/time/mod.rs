//! Time: clocks, the timing wheel, the timers that a system runs on them, and the scheduler service.

mod clock;
mod scheduler;
mod timers;
mod wheel;

pub use clock::{Clock, ManualClock, OnAdvance, SystemClock};
pub use scheduler::{Cancellable, Scheduler};
pub use timers::{TimerHandle, Timers};
