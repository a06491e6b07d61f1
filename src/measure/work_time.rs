//! The time in which a thread runs turns, while times are measured.
//!
//! The thread reads the clock when it finds a task after it had none, and when it has none any more. So a turn takes no
//! part, and where nothing is measured no clock is read.

#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
use crate::measure::meter;
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
use crate::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
use crate::sync::{Mutex, lock};
use std::time::Duration;
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
use std::time::Instant;

/// The time of one thread.
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
#[derive(Debug, Default)]
pub(crate) struct WorkTime {
    /// Whether the thread works now and that is measured. Only the thread itself changes it.
    is_running: AtomicBool,
    sum: Mutex<Sum>,
}

#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
#[derive(Debug, Default)]
struct Sum {
    before: Duration,
    since: Option<Instant>,
}

#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
impl WorkTime {
    /// The thread has a task. Also called now and then while the thread has tasks all the time, since the measurement may
    /// have been switched.
    #[inline]
    pub(crate) fn works(&self) {
        let is_on = meter::is_on();
        // Ordering: Relaxed; the thread reads what it has written.
        if is_on != self.is_running.load(Ordering::Relaxed) {
            self.switch(is_on);
        }
    }

    /// The thread has no task any more.
    #[inline]
    pub(crate) fn stops(&self) {
        // Ordering: Relaxed; as above.
        if self.is_running.load(Ordering::Relaxed) {
            self.switch(false);
        }
    }

    #[cold]
    fn switch(&self, is_running: bool) {
        // Ordering: Relaxed; as above.
        self.is_running.store(is_running, Ordering::Relaxed);
        let now = Instant::now();
        let mut sum = lock(&self.sum);
        let since = if is_running { sum.since.replace(now) } else { sum.since.take() };
        sum.before += since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
    }

    /// The time so far, with that of the present work.
    pub(crate) fn so_far(&self) -> Duration {
        let sum = lock(&self.sum);
        sum.before + sum.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// Models measure nothing.
#[cfg(any(pointsman_loom, pointsman_shuttle))]
#[derive(Debug, Default)]
pub(crate) struct WorkTime;

#[cfg(any(pointsman_loom, pointsman_shuttle))]
impl WorkTime {
    pub(crate) fn works(&self) {}

    pub(crate) fn stops(&self) {}

    pub(crate) fn so_far(&self) -> Duration {
        Duration::ZERO
    }
}
