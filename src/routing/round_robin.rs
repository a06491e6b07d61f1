//! Each routee in turn.

use super::{Pick, RouteContext, Routees, RoutingLogic};
use crate::striped::PerThread;
use crate::sync::CachePadded;
use crate::sync::atomic::{AtomicUsize, Ordering};
use std::cell::Cell;
use std::fmt;

/// Chooses each routee in turn.
///
/// By default each sending thread has a cursor of its own, so that senders share no line: what one thread
/// sends goes exactly round, and over all threads the routees' totals differ by at most the number of sending
/// threads. The first thread that sends starts at routee 0, the next at routee 1, and so on.
/// [`exact`](Self::exact) has one cursor for all.
///
/// The promise holds for a stable table; each change of the routees may shift the position.
pub struct RoundRobin(Cursor);

enum Cursor {
    PerThread(PerThread<Cell<usize>>),
    Shared(CachePadded<AtomicUsize>),
}

impl RoundRobin {
    /// A cursor for each sending thread.
    pub fn new() -> Self {
        Self(Cursor::PerThread(PerThread::new()))
    }

    /// One cursor for all threads: any n messages in a row, whoever sends them, reach n different routees.
    /// Costs a read-modify-write on a line that all senders write.
    pub fn exact() -> Self {
        Self(Cursor::Shared(CachePadded::new(AtomicUsize::new(0))))
    }
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Send + 'static> RoutingLogic<M> for RoundRobin {
    #[inline]
    fn select(&self, _: &M, routees: &Routees<M>, _: &RouteContext<'_>) -> Pick {
        let count = routees.len();
        if count == 0 {
            return Pick::None;
        }
        Pick::One(match &self.0 {
            Cursor::PerThread(cursors) => cursors.with(Cell::new, |cursor| {
                // The table may have shrunk, and the first position is the thread's number.
                let index = if cursor.get() < count { cursor.get() } else { cursor.get() % count };
                cursor.set(index + 1);
                index
            }),
            // Ordering: Relaxed; only the count matters.
            Cursor::Shared(cursor) => cursor.fetch_add(1, Ordering::Relaxed) % count,
        })
    }
}

impl fmt::Debug for RoundRobin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Cursor::PerThread(_) => "RoundRobin",
            Cursor::Shared(_) => "RoundRobin(exact)",
        })
    }
}
