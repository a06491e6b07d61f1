//! Alarms: a clock, and the waking of a waker when that clock has reached a time.

use std::task::Waker;
use std::time::Duration;

/// The clock that deadlines are read from, and what wakes those who wait for one.
pub trait Alarms: Send + Sync {
    /// The time since the system's start.
    fn now(&self) -> Duration;

    /// Whether this clock runs with the machine's, so that a thread may sleep by it; not so for a clock
    /// that is moved by hand.
    fn is_real(&self) -> bool;

    /// Wakes `waker` once the clock has reached `at`; soon, if it has already.
    fn wake_at(&self, at: Duration, waker: Waker) -> AlarmKey;

    /// Whether an alarm has yet to ring. One that rings before its time, as all do at the end of a system, must say so:
    /// whoever waits on sets another one then.
    fn is_set(&self, key: AlarmKey) -> bool {
        let _ = key;
        true
    }

    /// Forgets an alarm, and drops its waker; one that has rung already is forgotten anyhow.
    fn cancel(&self, key: AlarmKey);
}

/// Names one alarm of an [`Alarms`]; the number means something to its maker alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlarmKey(pub (u64, u32));
