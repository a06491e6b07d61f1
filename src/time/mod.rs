//! Time: clocks, the timing wheel, the timers that a system runs on them, and the scheduler service.

pub(crate) mod alarm;
pub(crate) mod clock;
pub(crate) mod no_system;
pub(crate) mod timers;
pub(crate) mod wheel;
