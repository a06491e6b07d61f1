//! What whoever runs turns does about a task that waits for a sender: one that has claimed a place in the mailbox, and has
//! lost its core before it filled that.

use crate::sync::{hint, thread};
use std::time::Duration;

/// After so many doublings a nap is as long as any may be.
const DOUBLINGS_MAX: u32 = 5;

/// The next thing to do to give the sender the time.
///
/// Spinning and yielding help only against a sender that runs. One of lower priority gets the core when this thread
/// sleeps, so after a while it does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    Spin,
    Yield,
    /// Sleep for so long, unless there is something else to do.
    Nap(Duration),
}

impl Wait {
    /// After so many in a row.
    pub fn after(run: u32) -> Self {
        // Models yield at once, since nothing else lets the sender run, and then nap.
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

/// Gives a sender that has claimed a place and not yet filled it the time to do so, as after so many such waits in a row.
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
