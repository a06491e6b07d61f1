//! The yield guard: it allows a thread to yield while that is no loss.
//!
//! A yield lets another thread on the same core go on, and costs half a microsecond where there is none. But on a
//! machine that has more to do than cores a yield may cost a time slice, of some milliseconds: the yielding thread goes
//! behind all others, while a thread that was parked and is woken goes before them. So a thread that has lost its core
//! in a yield does not yield for a hundred times as long; then it loses at most one part in a hundred.

use crate::sync::thread;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A yield that took so long has lost the core.
const LOST_MIN: Duration = Duration::from_micros(200);

/// The next yield comes after so many times the lost time.
const REGRET: u32 = 100;

/// The experience of a thread from its yields.
#[derive(Debug)]
pub(crate) struct YieldGuard {
    /// Other threads need the core until then.
    crowded_until: Cell<Option<Instant>>,
}

impl YieldGuard {
    pub(crate) const fn new() -> Self {
        Self { crowded_until: Cell::new(None) }
    }

    /// Returns whether a yield is worth its risk.
    pub(crate) fn may_yield(&self, now: Instant) -> bool {
        self.crowded_until.get().is_none_or(|until| now >= until)
    }

    /// Yields once.
    pub(crate) fn yield_now(&self) {
        let began = Instant::now();
        thread::yield_now();
        let took = began.elapsed();
        self.learn(took, began + took);
    }

    /// Learns from a yield that has ended now, and that took so long.
    fn learn(&self, took: Duration, now: Instant) {
        if took >= LOST_MIN {
            self.crowded_until.set(now.checked_add(REGRET * took));
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_loses_its_core_in_a_yield_does_not_offer_it_again_soon() {
        let (yield_guard, now) = (YieldGuard::new(), Instant::now());
        yield_guard.learn(LOST_MIN / 2, now);
        assert!(yield_guard.may_yield(now));
        let lost = Duration::from_millis(4);
        yield_guard.learn(lost, now);
        assert!(!yield_guard.may_yield(now + 99 * lost));
        assert!(yield_guard.may_yield(now + 100 * lost));
    }
}
