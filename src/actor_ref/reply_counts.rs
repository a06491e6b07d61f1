//! What became of asks, counted by the thread that saw it happen.
//!
//! Each thread counts in cells of its own: one plain addition, no shared line. Whoever keeps the books of
//! a system (a worker at the end of a turn, say) collects its own thread's numbers with [`take`] and adds
//! them up. Once every thread that asked has been collected and no ask is pending,
//! `begun = answered + no_reply + timed_out + undeliverable + cancelled`. Late replies stand beside that
//! sum: their asks were counted when they ended.

use crate::sync::per_thread;
use std::cell::Cell;

/// Numbers of asks, by what became of them; see the [module](self) for how they add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyCounts {
    /// Asks whose request was on its way (asks that failed before sending are in no row).
    pub begun: u64,
    /// Asks that ended with an answer.
    pub answered: u64,
    /// Asks whose last port was dropped without an answer.
    pub no_reply: u64,
    /// Asks whose time ran out.
    pub timed_out: u64,
    /// Asks whose target refused the request.
    pub undeliverable: u64,
    /// Asks that nobody waited for to the end.
    pub cancelled: u64,
    /// Replies to asks that were over already.
    pub late: u64,
}

/// One row of [`ReplyCounts`].
#[derive(Clone, Copy, Debug)]
pub enum Row {
    Begun,
    Answered,
    NoReply,
    TimedOut,
    Undeliverable,
    Cancelled,
    Late,
}

const ROW_COUNT: usize = Row::Late as usize + 1;

per_thread! {
    static ROWS: [Cell<u64>; ROW_COUNT] = [const { Cell::new(0) }; ROW_COUNT];
}

/// Counts one more in the calling thread's `row`.
#[inline]
pub fn count(row: Row) {
    // Cells without a destructor are never gone in a real thread; in models they may be.
    let _ = ROWS.try_with(|rows| {
        let cell = &rows[row as usize];
        cell.set(cell.get() + 1);
    });
}

/// Takes what the calling thread has counted since the last time.
pub fn take() -> ReplyCounts {
    let take = |row: Row| ROWS.try_with(|rows| rows[row as usize].take()).unwrap_or(0);
    ReplyCounts {
        begun: take(Row::Begun),
        answered: take(Row::Answered),
        no_reply: take(Row::NoReply),
        timed_out: take(Row::TimedOut),
        undeliverable: take(Row::Undeliverable),
        cancelled: take(Row::Cancelled),
        late: take(Row::Late),
    }
}
