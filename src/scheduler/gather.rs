//! A turn that has caught up with a stream of messages waits a moment, so that more messages gather.
//!
//! An owner handles a message in a third of the time that a sender takes to send it. So an owner that looks for each
//! message as soon as it comes is always close behind the sender: both need the same cache lines for each message, and
//! the sender pays for it. On a machine where a line takes 50 ns from core to core, a `tell` took 50 ns beside such an
//! owner, and 17 ns without. An owner that waits for some hundred messages disturbs the sender once for all of them.
//!
//! The wait is for streams alone. A worker whose messages are further apart than [`STREAM_GAP`] on average never waits,
//! so the wait adds nothing to the latency of a service with less load than that. Senders that wait for answers before
//! they send more let nothing gather: after a wait in which too few messages came, the worker does not wait for a while
//! ([`REST`]).

use crate::sync::hint;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Messages that are further apart on average are no stream.
const STREAM_GAP: Duration = Duration::from_nanos(250);

/// Messages that are as close as this, on average, make the next wait longer.
const DENSE_GAP: Duration = Duration::from_nanos(100);

/// The number of messages before the worker looks at their rate again, where there was no stream.
const REST: u64 = 256;

/// The length of the first wait, in spin hints. A hint took 12 ns on the processor on which the lengths were chosen; on
/// others it takes up to some 50 ns.
const SHORTEST: u32 = 32;

/// The length of the longest wait, in spin hints: 3 microseconds where a hint takes 12 ns.
const LONGEST: u32 = 256;

/// Returns the number of messages that a wait of this length must bring, to be repeated.
const fn expected(length: u32) -> u64 {
    let expected = length as u64 / 16;
    if expected < 4 { 4 } else { expected }
}

/// Decides when a worker waits, and for how long. It counts messages by the worker's own counter of handled messages.
#[derive(Debug)]
pub(crate) struct Gather {
    /// The count of handled messages at which the worker looks at the rate; `u64::MAX` for a thread that never waits.
    due_at: Cell<u64>,
    /// The same in an [interruption](Self::interrupt), in which `due_at` is 0; else 0.
    due_after: Cell<u64>,
    /// The count of handled messages at the last look.
    handled: Cell<u64>,
    /// The time of the last look, or of the start of a thread that waits.
    since: Cell<Option<Instant>>,
    /// The length of the wait after the last look, in spin hints; 0 if there was none.
    length: Cell<u32>,
}

impl Gather {
    /// For a thread that never waits.
    pub(crate) fn never() -> Self {
        Self {
            due_at: Cell::new(u64::MAX),
            due_after: Cell::new(0),
            handled: Cell::new(0),
            since: Cell::new(None),
            length: Cell::new(0),
        }
    }

    /// For a thread that waits when it has caught up with a stream.
    pub(crate) fn in_streams() -> Self {
        let gather = Self::never();
        gather.due_at.set(REST);
        gather.since.set(Some(Instant::now()));
        gather
    }

    /// Lets [`is_due`](Self::is_due) return true until [`resume`](Self::resume) is called, so that the turn comes to
    /// [`wait`](Self::wait) when it has found no further message.
    pub(crate) fn interrupt(&self) {
        if self.due_after.get() == 0 {
            self.due_after.set(self.due_at.replace(0));
        }
    }

    /// Goes on as before the [interruption](Self::interrupt).
    pub(crate) fn resume(&self) {
        if self.due_after.get() != 0 {
            self.due_at.set(self.due_after.take());
        }
    }

    /// Returns whether the worker should [look at the rate](Self::wait); `handled` is the number of messages that the
    /// thread has handled so far.
    #[inline(always)]
    pub(crate) fn is_due(&self, handled: u64) -> bool {
        handled >= self.due_at.get()
    }

    /// Waits if the messages since the last look were a stream; returns whether it did. Called when
    /// [due](Self::is_due), by a turn that has found no further message.
    #[cold]
    pub(crate) fn wait(&self, handled: u64) -> bool {
        // In an interruption a turn comes here before it is due, also where the interruption has just ended.
        if handled < self.due_after.get().max(self.due_at.get()) {
            return false;
        }
        let length = self.look(handled, Instant::now());
        (0..length).for_each(|_| hint::spin_loop());
        length > 0
    }

    /// Looks at the messages since the last look. Returns the length of the wait, 0 if these messages were no stream, or
    /// if too few of them came after the last wait.
    fn look(&self, handled: u64, now: Instant) -> u32 {
        let count = handled - self.handled.replace(handled);
        let since = self.since.replace(Some(now));
        let gap =
            since.map_or(Duration::MAX, |since| now.saturating_duration_since(since).div_f64(count as f64));
        let length = match self.length.get() {
            _ if gap > STREAM_GAP => 0,
            0 => SHORTEST,
            last if count < expected(last) => 0,
            last if gap <= DENSE_GAP => (last * 2).min(LONGEST),
            last => last,
        };
        self.length.set(length);
        let due_at = handled + if length == 0 { REST } else { 1 };
        match self.due_after.get() {
            0 => self.due_at.set(due_at),
            _ => self.due_after.set(due_at),
        }
        length
    }
}

#[cfg(all(test, not(any(pointsman_loom, pointsman_shuttle))))]
mod tests {
    use super::{DENSE_GAP, Duration, Gather, LONGEST, REST, SHORTEST, STREAM_GAP, expected};

    /// The lengths of the waits where each look finds `count` messages more, `gap` apart.
    fn lengths<const N: usize>(gather: &Gather, count: u32, gap: Duration) -> [u32; N] {
        [(); N].map(|()| {
            let handled = gather.handled.get() + u64::from(count);
            assert!(gather.is_due(handled));
            gather.look(handled, gather.since.get().expect("it waits") + gap * count)
        })
    }

    #[test]
    fn waits_grow_while_messages_are_dense() {
        let gather = Gather::in_streams();
        assert_eq!(lengths(&gather, 500, DENSE_GAP), [32, 64, 128, 256, 256]);
        assert_eq!(lengths(&gather, 20, STREAM_GAP), [LONGEST; 2], "as long as before");
    }

    #[test]
    fn an_interrupted_turn_waits_only_when_it_is_due() {
        for is_over in [false, true] {
            let gather = Gather::in_streams();
            gather.interrupt();
            assert!(gather.is_due(0));
            if is_over {
                gather.resume();
            }
            assert!(!gather.wait(0) && !gather.wait(REST - 1), "not a message more, or too few");
            gather.resume();
            assert!(!gather.is_due(REST - 1) && gather.is_due(REST), "as before");
        }
    }

    #[test]
    fn messages_that_are_far_apart_are_not_waited_for() {
        let gather = Gather::in_streams();
        assert_eq!(lengths(&gather, 256, STREAM_GAP + Duration::from_nanos(1)), [0; 3]);
        assert_eq!(lengths(&gather, 1_000, DENSE_GAP), [SHORTEST, 64]);
        assert_eq!(lengths(&gather, 16, Duration::from_millis(1)), [0]);
        assert_eq!(lengths(&gather, 256, DENSE_GAP), [SHORTEST], "it begins anew");
    }

    #[test]
    fn a_wait_that_brings_too_little_is_not_repeated_at_once() {
        let gather = Gather::in_streams();
        // A sender that waits for each answer: one message in each wait.
        assert_eq!(lengths(&gather, 256, DENSE_GAP), [SHORTEST]);
        assert_eq!(lengths(&gather, 1, DENSE_GAP), [0]);
        assert!(!gather.is_due(gather.handled.get() + REST - 1), "most messages meet no wait");
        // Senders with 15 messages outstanding.
        assert_eq!(lengths(&gather, 256, DENSE_GAP), [SHORTEST]);
        assert_eq!(lengths(&gather, 15, DENSE_GAP), [64, 128, 256, 0]);
        assert_eq!([32, 64, 128, 256].map(expected), [4, 4, 8, 16]);
    }

    #[test]
    fn a_look_is_due_after_messages_only() {
        let gather = Gather::in_streams();
        assert!(!gather.is_due(REST - 1) && gather.is_due(REST));
        lengths::<1>(&gather, 300, DENSE_GAP);
        assert!(!gather.is_due(300) && gather.is_due(301), "the first catch-up after a wait");
        assert!(!Gather::never().is_due(u64::MAX - 1));
    }
}
