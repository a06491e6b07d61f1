//! An alarm wakes a waker when a clock has reached a time.

use std::task::Waker;
use std::time::Duration;

/// A clock that deadlines are read from, and that wakes the wakers that wait for a deadline.
pub(crate) trait Alarms: Send + Sync {
    /// Returns the time since the system's start.
    fn now(&self) -> Duration;

    /// Returns whether this clock runs with the machine's clock, so that a thread may sleep by it. A clock that is
    /// moved by hand does not.
    fn is_real(&self) -> bool;

    /// Wakes `waker` once the clock has reached `at`, or soon if the clock already has.
    fn wake_at(&self, at: Duration, waker: Waker) -> AlarmKey;

    /// Returns whether an alarm has yet to ring. An alarm that rings before its time, as each does at the end of a
    /// system, must return false here: a caller that still waits sets another alarm then.
    fn is_set(&self, key: AlarmKey) -> bool {
        let _ = key;
        true
    }

    /// Forgets an alarm, and drops its waker. An alarm that has rung is forgotten already.
    fn cancel(&self, key: AlarmKey);
}

/// Names one alarm of an [`Alarms`]; only the [`Alarms`] that made the number can interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlarmKey(pub (u64, u32));
