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
/// The promise holds for a stable table; each change of the routees may shift the position, unless it is
/// [kept](Self::keeping_position). A message for which there is no routee moves no cursor.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::{RoundRobin, RouterValue};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let (sender, got) = std::sync::mpsc::channel();
/// let routees = ["left", "right"].map(|name| {
///     let sender = sender.clone();
///     ActorRef::from_fn(move |_: u32| sender.send(name).expect("it is kept"))
/// });
/// let router = RouterValue::new(&system, RoundRobin::new())?.with_routees(&routees);
/// (1..=3u32).for_each(|number| router.route(number));
/// assert_eq!(got.try_iter().collect::<Vec<_>>(), ["left", "right", "left"]);
/// # Ok(())
/// # }
/// ```
pub struct RoundRobin(Cursor);

enum Cursor {
    PerThread(PerThread<Cell<usize>>),
    Keeping(PerThread<Cell<Position>>),
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

    /// As [`new`](Self::new), and when the routees change, each thread goes on where it was: with the routee
    /// that was next, or if that has gone, with the one behind the routee that was last. Only if both have
    /// gone it starts over at the front. So a change neither skips a routee nor serves one twice. From Akka's
    /// typed routers.
    ///
    /// Costs a look at the next routee for each message, and a search through the table after a change.
    pub fn keeping_position() -> Self {
        Self(Cursor::Keeping(PerThread::new()))
    }
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Send + 'static> RoutingLogic<M> for RoundRobin {
    #[inline(always)]
    fn select(&self, _: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Pick {
        let count = routees.len();
        if count == 0 {
            return Pick::None;
        }
        match &self.0 {
            Cursor::PerThread(cursors) => Pick::One(cursors.with(Cell::new, |cursor| {
                // The table may have shrunk, and the first position is the thread's number.
                let index = if cursor.get() < count { cursor.get() } else { cursor.get() % count };
                cursor.set(index + 1);
                index
            })),
            Cursor::Keeping(cursors) => Pick::One(cursors.with(Position::start, |cursor| {
                let (index, after) = cursor.get().advance(count, |index| address(routees, index));
                cursor.set(after);
                index
            })),
            Cursor::Shared(cursor) => match next(cursor, count) {
                index if cx.refusals() == 0 => Pick::One(index),
                // The others advance the cursor too: from here on it may never come to the one that lives.
                _ => cx.next_in_turn(routees),
            },
        }
    }

    fn name(&self) -> Option<&str> {
        Some("round-robin")
    }
}

/// A place in the table that survives changes.
#[derive(Clone, Copy)]
struct Position {
    index: usize,
    /// Who is at `index`, and who was before. 0 at the start. An address that is used again for another
    /// routee leads to a wrong place, which is no harm.
    next: usize,
    last: usize,
}

impl Position {
    fn start(thread: usize) -> Cell<Self> {
        Cell::new(Self { index: thread, next: 0, last: 0 })
    }

    /// The index to be used now, of `count` routees, and the position after it.
    #[inline]
    fn advance(self, count: usize, at: impl Fn(usize) -> usize) -> (usize, Self) {
        let is_there = self.index < count && at(self.index) == self.next;
        let index = if is_there { self.index } else { self.find(count, &at) };
        let after = if index + 1 < count { index + 1 } else { 0 };
        (index, Self { index: after, next: at(after), last: at(index) })
    }

    #[cold]
    fn find(self, count: usize, at: &impl Fn(usize) -> usize) -> usize {
        if self.next == 0 {
            return self.index % count;
        }
        let place_of = |address: usize| (0..count).find(|index| at(*index) == address);
        place_of(self.next).or_else(|| place_of(self.last).map(|last| (last + 1) % count)).unwrap_or(0)
    }
}

#[inline]
fn address<M: Send + 'static>(routees: &Routees<M>, index: usize) -> usize {
    routees.get(index).map_or(0, |routee| routee.actor().address())
}

/// Where a shared cursor is set back: far from both ends, so that it never wraps around, which would skip
/// routees (Akka 17738, 21800).
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
const SET_BACK: usize = 1 << (usize::BITS - 1);
/// Soon enough for a model.
#[cfg(any(pointsman_loom, pointsman_shuttle))]
const SET_BACK: usize = 4;

/// The next index of `count`, whoever asks.
#[inline]
fn next(cursor: &AtomicUsize, count: usize) -> usize {
    // Ordering: Relaxed; only the count matters.
    let place = cursor.fetch_add(1, Ordering::Relaxed);
    if place == SET_BACK {
        // By whole rounds, and by this thread alone, as each place is given once.
        // Ordering: Relaxed; as above.
        cursor.fetch_sub(place - place % count, Ordering::Relaxed);
    }
    place % count
}

impl fmt::Debug for RoundRobin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Cursor::PerThread(_) => "RoundRobin",
            Cursor::Keeping(_) => "RoundRobin(keeping position)",
            Cursor::Shared(_) => "RoundRobin(exact)",
        })
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{Position, SET_BACK, next};
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::{Arc, thread};

    #[test]
    fn a_shared_cursor_goes_on_in_turn_where_it_is_set_back() {
        for count in [1, 2, 3, 7, 1000] {
            let first = SET_BACK - 10;
            let cursor = AtomicUsize::new(first);
            let indices: Vec<usize> = (0..30).map(|_| next(&cursor, count)).collect();
            let in_turn: Vec<usize> = (first..first + 30).map(|place| place % count).collect();
            assert_eq!(indices, in_turn, "{count} routees");
            assert!(cursor.load(Ordering::Relaxed) < 2 * 1000);
        }
    }

    #[test]
    fn threads_that_meet_where_the_cursor_is_set_back_serve_all_alike() {
        const COUNT: usize = 7;
        let cursor = Arc::new(AtomicUsize::new(SET_BACK - 700));
        let threads = [(); 4].map(|()| {
            let cursor = cursor.clone();
            thread::spawn(move || {
                let mut served = [0; COUNT];
                (0..700).for_each(|_| served[next(&cursor, COUNT)] += 1);
                served
            })
        });
        let mut served = [0; COUNT];
        for thread in threads {
            let theirs = thread.join().expect("no panic");
            served.iter_mut().zip(theirs).for_each(|(all, theirs)| *all += theirs);
        }
        assert_eq!(served, [400; COUNT]);
    }

    /// Routees are known by a letter. Takes `before` messages over the old list and says who gets the next
    /// `count` over the new one.
    fn goes_on(old: &str, before: usize, new: &str, count: usize) -> String {
        let mut position = Position::start(0).get();
        let mut take = |list: &str| {
            let (index, after) = position.advance(list.len(), |index| list.as_bytes()[index].into());
            position = after;
            char::from(list.as_bytes()[index])
        };
        (0..before).for_each(|_| _ = take(old));
        (0..count).map(|_| take(new)).collect()
    }

    #[test]
    fn the_position_is_kept_over_changes() {
        assert_eq!(goes_on("abc", 2, "abc", 3), "cab", "no change");
        assert_eq!(goes_on("abc", 2, "bc", 3), "cbc", "one before the position has gone");
        assert_eq!(goes_on("abc", 2, "ac", 3), "cac", "the last one served has gone");
        assert_eq!(goes_on("abcd", 2, "abd", 3), "dab", "the one at the position has gone");
        assert_eq!(goes_on("abcd", 1, "abc", 3), "bca", "one behind the position has gone");
        assert_eq!(goes_on("abcd", 3, "ac", 2), "ac", "the one at the position and one before have gone");
        assert_eq!(goes_on("abc", 2, "xabc", 4), "cxab", "one has come before the position");
        assert_eq!(goes_on("abc", 2, "abcx", 4), "cxab", "one has come behind the position");
        assert_eq!(goes_on("abc", 2, "xyz", 3), "xyz", "all are others");
        assert_eq!(goes_on("abc", 2, "a", 2), "aa", "one is left");
    }

    #[test]
    fn a_kept_position_goes_round_from_the_threads_number() {
        let mut position = Position::start(5).get();
        let mut taken = Vec::new();
        for _ in 0..4 {
            let (index, after) = position.advance(3, |index| index + 1);
            position = after;
            taken.push(index);
        }
        assert_eq!(taken, [2, 0, 1, 2]);
    }
}
