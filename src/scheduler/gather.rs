//! A turn that has caught up with a stream of messages waits a moment, so that more messages gather.
//!
//! An owner handles a message in a third of the time that a sender takes to send it. So an owner that looks for each
//! message as soon as it comes is always close behind the sender: both need the same cache lines for each message, and
//! the sender pays for it. On a machine where a line takes 50 ns from core to core, a `tell` took 50 ns beside such an
//! owner, and 17 ns without. An owner that waits for some hundred messages disturbs the sender once for all of them.
//!
//! The wait is for streams alone. A worker whose messages are further apart than [`STREAM_GAP`] on average never waits,
//! so the wait adds nothing to the latency of a service with less load than that. The longest wait is [`LONGEST`], some
//! 5 to 10 microseconds, less than a stream's messages wait in a queue anyway.

use crate::sync::hint;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The number of messages after which a worker looks at their rate.
const WINDOW: u64 = 16;

/// Messages that are further apart on average are no stream.
const STREAM_GAP: Duration = Duration::from_nanos(250);

/// Messages that are as close as this, on average, make the next wait longer.
const DENSE_GAP: Duration = Duration::from_nanos(100);

/// The length of the first wait, in spin hints, which take 20 to 40 ns each.
const SHORTEST: u32 = 16;

/// The length of the longest wait, in spin hints.
const LONGEST: u32 = 256;

/// Decides when a worker waits, and for how long. It counts messages by the worker's own counter of handled messages.
#[derive(Debug)]
pub(crate) struct Gather {
    /// The count of handled messages at which the worker looks at the rate; `u64::MAX` for a thread that never waits.
    due_at: Cell<u64>,
    /// The beginning of the window that ends at `due_at`.
    since: Cell<Instant>,
    /// The length of the next wait, in spin hints.
    length: Cell<u32>,
}

impl Gather {
    /// For a thread that never waits.
    pub(crate) fn never() -> Self {
        Self { due_at: Cell::new(u64::MAX), since: Cell::new(Instant::now()), length: Cell::new(SHORTEST) }
    }

    /// For a thread that waits when it has caught up with a stream.
    pub(crate) fn in_streams() -> Self {
        let gather = Self::never();
        gather.due_at.set(WINDOW);
        gather
    }

    /// Returns whether the worker should [look at the rate](Self::wait); `handled` is the number of messages that the
    /// thread has handled so far.
    #[inline(always)]
    pub(crate) fn is_due(&self, handled: u64) -> bool {
        handled >= self.due_at.get()
    }

    /// Waits if the messages since the last call were a stream; returns whether it did. Called when
    /// [due](Self::is_due), by a turn that has found no further message.
    #[cold]
    pub(crate) fn wait(&self, handled: u64) -> bool {
        let length = self.length_at(handled, Instant::now());
        (0..length).for_each(|_| hint::spin_loop());
        length > 0
    }

    /// Begins the next window. Returns the length of the wait before it, 0 if the messages of this window were no
    /// stream.
    fn length_at(&self, handled: u64, now: Instant) -> u32 {
        let count = handled - (self.due_at.get() - WINDOW);
        let taken = now.saturating_duration_since(self.since.replace(now));
        self.due_at.set(handled + WINDOW);
        let gap = taken.div_f64(count as f64);
        if gap > STREAM_GAP {
            self.length.set(SHORTEST);
            return 0;
        }
        let length = self.length.get();
        if gap <= DENSE_GAP {
            self.length.set((length * 2).min(LONGEST));
        }
        length
    }
}

#[cfg(all(test, not(any(pointsman_loom, pointsman_shuttle))))]
mod tests {
    use super::{DENSE_GAP, Duration, Gather, LONGEST, SHORTEST, STREAM_GAP, WINDOW};

    /// The lengths of the waits where each window has `count` messages, `gap` apart.
    fn lengths(gather: &Gather, handled: &mut u64, count: u64, gap: Duration, windows: usize) -> Vec<u32> {
        (0..windows)
            .map(|_| {
                *handled += count;
                assert!(gather.is_due(*handled));
                let now = gather.since.get() + gap * u32::try_from(count).unwrap();
                gather.length_at(*handled, now)
            })
            .collect()
    }

    #[test]
    fn waits_grow_while_messages_are_dense() {
        let (gather, mut handled) = (Gather::in_streams(), 0);
        assert_eq!(lengths(&gather, &mut handled, 500, DENSE_GAP, 6), [16, 32, 64, 128, 256, 256]);
        assert_eq!(lengths(&gather, &mut handled, 20, STREAM_GAP, 2), [LONGEST; 2], "as long as before");
    }

    #[test]
    fn messages_that_are_far_apart_are_not_waited_for() {
        let (gather, mut handled) = (Gather::in_streams(), 0);
        let apart = STREAM_GAP + Duration::from_nanos(1);
        assert_eq!(lengths(&gather, &mut handled, WINDOW, apart, 3), [0; 3]);
        assert_eq!(lengths(&gather, &mut handled, 1_000, DENSE_GAP, 2), [SHORTEST, 32]);
        assert_eq!(lengths(&gather, &mut handled, WINDOW, Duration::from_millis(1), 1), [0]);
        assert_eq!(lengths(&gather, &mut handled, WINDOW, DENSE_GAP, 1), [SHORTEST], "it begins anew");
    }

    #[test]
    fn a_look_at_the_rate_is_due_once_in_a_window() {
        let (gather, mut handled) = (Gather::in_streams(), 0);
        assert!(!gather.is_due(WINDOW - 1) && gather.is_due(WINDOW));
        lengths(&gather, &mut handled, WINDOW + 3, DENSE_GAP, 1);
        assert!(!gather.is_due(2 * WINDOW + 2) && gather.is_due(2 * WINDOW + 3));
        assert!(!Gather::never().is_due(u64::MAX - 1));
    }
}
