//! Ask counters: they count asks by their outcome, in the ledger of the system whose clock the ask uses. That is the
//! system of the asked actor, or of the asker if the answer comes to an actor as a message. An ask without a system, as
//! through a reference to a function, is in no ledger.
//!
//! When no ask is pending, `begun = answered + no_reply + timed_out + undeliverable + cancelled`. Late replies are not
//! part of that sum: their asks were counted when they ended. A port knows no system, so a late reply is counted in the
//! ledger that its thread used last.

use crate::core::ledger::{Counters, count_late};

/// Numbers of asks, by their outcome.
///
/// When no ask is pending, `begun = answered + no_reply + timed_out + undeliverable + cancelled`. An ask counts in the
/// system of the asked actor; an ask whose answer comes to an actor as a message counts in the asker's system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyCounts {
    /// Asks whose request was on its way (asks that failed before sending are in no counter).
    pub begun: u64,
    /// Asks that ended with an answer.
    pub answered: u64,
    /// Asks whose last port was dropped without an answer.
    pub no_reply: u64,
    /// Asks whose deadline passed.
    pub timed_out: u64,
    /// Asks whose target refused the request.
    pub undeliverable: u64,
    /// Asks whose asker stopped waiting before the end.
    pub cancelled: u64,
    /// Replies to asks that were over already, as counted by the threads that sent them: in the system that the thread
    /// has used last, if any. That is an actor's own system, unless the actor has just sent a message to an actor of
    /// another system.
    pub late: u64,
}

/// A single counter of [`ReplyCounts`].
#[derive(Clone, Copy, Debug)]
pub enum AskCounter {
    Begun,
    Answered,
    NoReply,
    TimedOut,
    Undeliverable,
    Cancelled,
    Late,
}

/// The number of counters.
pub(crate) const ROW_COUNT: usize = AskCounter::Late as usize + 1;

/// Counts one more in the counter `counter` of `counters`, if there are any.
#[inline]
pub(crate) fn count(counter: AskCounter, counters: Option<&Counters>) {
    #[cfg(test)]
    tests::note(counter);
    if let Some(counters) = counters {
        counters.for_this_thread().ask(counter);
    }
}

/// Counts a late reply.
#[inline]
pub(crate) fn count_late_reply() {
    #[cfg(test)]
    tests::note(AskCounter::Late);
    count_late();
}

impl ReplyCounts {
    /// Returns the asks that were counted since `before` was.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            begun: self.begun.saturating_sub(before.begun),
            answered: self.answered.saturating_sub(before.answered),
            no_reply: self.no_reply.saturating_sub(before.no_reply),
            timed_out: self.timed_out.saturating_sub(before.timed_out),
            undeliverable: self.undeliverable.saturating_sub(before.undeliverable),
            cancelled: self.cancelled.saturating_sub(before.cancelled),
            late: self.late.saturating_sub(before.late),
        }
    }

    /// Makes the counts from a value for each counter. The count of begun asks is read last. So a count taken while
    /// asks go on may lack an end, but never a beginning, and [`pending`](Self::pending) does not fall below 0.
    pub fn from_rows(value: impl Fn(AskCounter) -> u64) -> Self {
        Self {
            answered: value(AskCounter::Answered),
            no_reply: value(AskCounter::NoReply),
            timed_out: value(AskCounter::TimedOut),
            undeliverable: value(AskCounter::Undeliverable),
            cancelled: value(AskCounter::Cancelled),
            late: value(AskCounter::Late),
            begun: value(AskCounter::Begun),
        }
    }

    /// Asks that have begun and not ended.
    pub fn pending(&self) -> u64 {
        let ended = self.answered + self.no_reply + self.timed_out + self.undeliverable + self.cancelled;
        self.begun.wrapping_sub(ended)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    //! The counts of a single thread, for tests without a system.

    use super::{AskCounter, ROW_COUNT, ReplyCounts};
    use std::cell::Cell;

    std::thread_local! {
        pub static ROWS: [Cell<u64>; ROW_COUNT] = const { [const { Cell::new(0) }; ROW_COUNT] };
    }

    pub(crate) fn note(counter: AskCounter) {
        ROWS.with(|rows| rows[counter as usize].set(rows[counter as usize].get() + 1));
    }

    /// Takes the counts of the calling thread since the last call.
    pub(crate) fn take() -> ReplyCounts {
        ReplyCounts::from_rows(|counter| ROWS.with(|rows| rows[counter as usize].take()))
    }
}
