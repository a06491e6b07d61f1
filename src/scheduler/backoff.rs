//! Back-off for a turn that meets a half-finished send: the sender has claimed a slot in the mailbox but was preempted
//! before it wrote the slot.

use crate::sync::{hint, thread};
use std::time::Duration;

/// A nap is not doubled more often than this.
const DOUBLINGS_MAX: u32 = 5;

/// The next step of a thread that gives the sender time to finish.
///
/// Spinning and yielding help only if the sender runs. A sender of lower priority gets the core only when this thread
/// sleeps, so this thread sleeps after a while.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Spin,
    Yield,
    /// Sleep for this long, unless there is something else to do.
    Nap(Duration),
}

impl Wait {
    /// Returns the step after `run` waits in a row.
    pub(crate) fn after(run: u32) -> Self {
        // Models yield at once, since nothing else lets the sender run in a model, and then nap.
        let (spin_max, yield_max) = if crate::sync::EXPLORED { (0, 1) } else { (8, 40) };
        if run < spin_max {
            Self::Spin
        } else if run < yield_max {
            Self::Yield
        } else {
            let doublings = (run - yield_max).min(DOUBLINGS_MAX);
            Self::Nap(Duration::from_micros(50 << doublings).min(Duration::from_millis(1)))
        }
    }
}

/// Gives a sender time to write the slot that it has claimed; `busy_run` is the number of such waits in a row so far.
#[cold]
pub(crate) fn wait_for_sender(busy_run: u32) {
    match Wait::after(busy_run) {
        Wait::Spin => hint::spin_loop(),
        Wait::Yield => thread::yield_now(),
        Wait::Nap(length) => thread::park_timeout(length),
    }
}

#[cfg(all(test, not(any(pointsman_loom, pointsman_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_sender_gets_more_and_more_time_up_to_a_millisecond() {
        assert_eq!((Wait::after(0), Wait::after(7)), (Wait::Spin, Wait::Spin));
        assert_eq!((Wait::after(8), Wait::after(39)), (Wait::Yield, Wait::Yield));
        let naps: Vec<_> = [40, 41, 44, 45, u32::MAX].map(Wait::after).into();
        assert_eq!(naps, [50, 100, 800, 1_000, 1_000].map(|micros| Wait::Nap(Duration::from_micros(micros))));
    }
}
