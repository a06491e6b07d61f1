//! Round-robin: chooses each routee in turn.
//!
//! Each sender has a cursor of its own with each router. A sender is an actor or a thread. An actor keeps the cursor in
//! its cell (`thread_context/sender.rs`), and takes it with it from thread to thread. A thread has its cursor in the
//! router. An actor's cursor begins at the cursor of the thread that the actor runs on, and moves that cursor on: so
//! actors that send a single message each serve the routees alike.
//!
//! A [`RouterValue`](crate::routing::RouterValue) has a single owner at a time. The owner may move to another
//! thread, and the value to another actor. So there is a single [`Handed`] cursor for the value and its clones. The
//! actor that has used it last goes on with it. An actor may find that another sender used it meanwhile. If there is no
//! other value with this logic, the actor was handed the value, and goes on where that sender was. Otherwise the actor
//! has a clone, and goes on with the cursor of its own.

use crate::routing::logic::RoutingLogic;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};
use crate::sync::CachePadded;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::thread_context::sender::{NoPosition, Position, with_cursors, with_latest};
use crate::util::per_thread::PerThread;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc as StdArc;

/// Chooses each routee in turn.
///
/// By default each sender has a cursor of its own, so that senders share no line. A sender is an actor, on whatever
/// thread it runs, or outside actors a thread. The messages of each sender go exactly round, and over all senders the
/// routees' totals differ by at most the number of senders. The first thread that sends starts at routee 0, the next at
/// routee 1, and so on. An actor starts at the next routee of the thread that it runs on. [`exact`](Self::exact) has
/// one cursor for all.
///
/// In a [`RouterValue`](crate::routing::RouterValue) the cursor goes with the value, from owner to owner.
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
    PerSender(Senders<usize>, Box<Handed>),
    Keeping(Senders<Position>),
    Shared(CachePadded<AtomicUsize>),
}

/// The cursors of the threads, and the way in which actors find theirs.
struct Senders<T> {
    threads: PerThread<Cell<T>>,
    identity: StdArc<()>,
}

/// The cursor of a router value: goes from owner to owner.
struct Handed {
    /// The actor that has used it last, by the number of its cursors; 0 for any thread.
    owner: CachePadded<AtomicUsize>,
    /// On another line, so that actors with clones, which look at the owner, do not wait for the writes of the owner.
    index: CachePadded<AtomicUsize>,
}

impl RoundRobin {
    /// Gives each sender a cursor.
    pub fn new() -> Self {
        Self(Cursor::PerSender(Senders::new(), Box::new(Handed::new())))
    }

    /// Gives all senders the same cursor: any n messages in a row, of any senders, reach n different routees. Costs a
    /// read-modify-write on a line that all senders write.
    pub fn exact() -> Self {
        Self(Cursor::Shared(CachePadded::new(AtomicUsize::new(0))))
    }

    /// As [`new`](Self::new), and when the routees change, each sender goes on where it was: with the routee that was
    /// next, or if that has gone, with the routee behind the last. Only if both have gone it starts over at the front.
    /// So a change neither skips a routee nor serves a routee twice. From Akka's typed routers.
    ///
    /// Costs a look at the next routee for each message, and a search through the table after a change.
    ///
    /// In a [`RouterValue`](crate::routing::RouterValue), too, the position is the sender's and does not go with the value.
    pub fn keeping_position() -> Self {
        Self(Cursor::Keeping(Senders::new()))
    }
}

impl RoundRobin {
    /// Selects the next routee, of a router that is no router value.
    #[inline(always)]
    pub(crate) fn select_directly<M: Send + 'static>(&self, routees: &[Routee<M>]) -> Option<usize> {
        let count = routees.len();
        if count == 0 {
            return None;
        }
        // The usual cursor first, by a test of its own.
        if let Cursor::PerSender(senders, _) = &self.0 {
            let next = move |position: &mut Position| plain(&mut position.index, count);
            return Some(match with_latest(&senders.identity, next) {
                Ok(index) => index,
                Err(NoPosition::Thread) => senders.of_thread(count),
                Err(NoPosition::NotLatest) => senders.of_actor(count),
            });
        }
        Some(match &self.0 {
            Cursor::PerSender(..) => unreachable!("taken above"),
            Cursor::Keeping(senders) => {
                let advance =
                    move |position: Position| advance(position, count, move |index| address(routees, index));
                let next = |position: &mut Position| {
                    let (index, after) = advance(*position);
                    *position = after;
                    index
                };
                match with_latest(&senders.identity, next) {
                    Ok(index) => index,
                    Err(NoPosition::Thread) => senders.of_thread(advance).0,
                    Err(NoPosition::NotLatest) => senders.of_actor(advance),
                }
            }
            Cursor::Shared(cursor) => next(cursor, count),
        })
    }
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Send + 'static> RoutingLogic<M> for RoundRobin {
    #[inline(always)]
    fn select(&self, _: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
        let count = routees.len();
        if count == 0 {
            return None;
        }
        match &self.0 {
            Cursor::PerSender(..) if !cx.is_of_value() => self.select_directly(routees.as_slice()),
            Cursor::PerSender(senders, handed) if cx.refusals() > 0 => {
                handed.pick_again(&senders.identity, routees, cx)
            }
            Cursor::PerSender(senders, handed) => Some(with_cursors(|actor| match actor {
                None => {
                    handed.note_thread();
                    handed.next(count)
                }
                Some((number, cursors)) => {
                    let position = cursors.of(&senders.identity, || handed.pass_to(number));
                    if !handed.is_for(number, position, cx) {
                        return plain(&mut position.index, count);
                    }
                    let index = handed.next(count);
                    position.index = index + 1;
                    index
                }
            })),
            Cursor::Keeping(_) => self.select_directly(routees.as_slice()),
            Cursor::Shared(cursor) => match next(cursor, count) {
                index if cx.refusals() == 0 => Some(index),
                // Other senders advance the cursor too: from here on it may never come to the routee that lives.
                _ => cx.next_in_turn(routees),
            },
        }
    }

    fn name(&self) -> Option<&str> {
        Some("round-robin")
    }
}

impl<T: Send> Senders<T> {
    fn new() -> Self {
        Self { threads: PerThread::new(), identity: StdArc::default() }
    }
}

impl Senders<usize> {
    /// Returns the index to be used now by the calling thread.
    #[inline(always)]
    fn of_thread(&self, count: usize) -> usize {
        self.threads.with(Cell::new, move |cursor| {
            let mut index = cursor.get();
            let now = plain(&mut index, count);
            cursor.set(index);
            now
        })
    }

    /// Returns the index to be used now by the sending actor. The actor begins where its thread is.
    #[cold]
    fn of_actor(&self, count: usize) -> usize {
        with_cursors(|actor| match actor {
            None => self.of_thread(count),
            Some((_, cursors)) => {
                let start = || Position::at(self.of_thread(count));
                plain(&mut cursors.of(&self.identity, start).index, count)
            }
        })
    }
}

impl Senders<Position> {
    /// Returns the index to be used now by the calling thread, and the position before.
    #[inline(always)]
    fn of_thread(&self, advance: impl Fn(Position) -> (usize, Position)) -> (usize, Position) {
        let make = |thread| Cell::new(Position::at(thread));
        self.threads.with(make, |cursor| {
            let before = cursor.get();
            let (index, after) = advance(before);
            cursor.set(after);
            (index, before)
        })
    }

    /// Returns the index to be used now by the sending actor. The actor begins where its thread is.
    #[cold]
    fn of_actor(&self, advance: impl Fn(Position) -> (usize, Position)) -> usize {
        with_cursors(|actor| match actor {
            None => self.of_thread(advance).0,
            Some((_, cursors)) => {
                let position = cursors.of(&self.identity, || self.of_thread(&advance).1);
                let (index, after) = advance(*position);
                *position = after;
                index
            }
        })
    }
}

impl Handed {
    fn new() -> Self {
        Self { owner: CachePadded::new(AtomicUsize::new(0)), index: CachePadded::new(AtomicUsize::new(0)) }
    }

    /// Whether this actor has used it last.
    #[inline]
    fn is_owned_by(&self, actor: usize) -> bool {
        // Ordering: Relaxed; an actor finds its own number only if it has written that, and any other number leads to its own
        // cursor.
        self.owner.load(Ordering::Relaxed) == actor
    }

    /// Makes this actor the owner; the actor goes on where the last owner was.
    #[cold]
    fn pass_to(&self, actor: usize) -> Position {
        // Ordering: Relaxed; as in `is_owned_by`.
        self.owner.store(actor, Ordering::Relaxed);
        // Ordering: Relaxed; only the count matters.
        Position::at(self.index.load(Ordering::Relaxed))
    }

    /// A thread outside actors uses the cursor.
    #[inline]
    fn note_thread(&self) {
        if !self.is_owned_by(0) {
            // Ordering: Relaxed; as in `is_owned_by`.
            self.owner.store(0, Ordering::Relaxed);
        }
    }

    /// Whether this actor goes on with the cursor: it has used it last, or has been handed the value.
    #[inline]
    fn is_for(&self, actor: usize, position: &mut Position, cx: &RouteContext<'_>) -> bool {
        self.is_owned_by(actor) || self.is_handed_to(actor, position, cx)
    }

    /// Whether an actor that has not used the cursor last has been handed the value: the value is no clone. Then
    /// `position` is where the last owner was.
    #[cold]
    fn is_handed_to(&self, actor: usize, position: &mut Position, cx: &RouteContext<'_>) -> bool {
        let is_handed = cx.is_of_sole_value();
        if is_handed {
            *position = self.pass_to(actor);
        }
        is_handed
    }

    /// Returns the index of the next routee, of `count`. Threads that share the value get different indices.
    #[inline]
    fn next(&self, count: usize) -> usize {
        // Ordering: Relaxed; only the count matters.
        let mut before = self.index.load(Ordering::Relaxed);
        loop {
            let mut after = before;
            let now = plain(&mut after, count);
            // Ordering: Relaxed; as above.
            match self.index.compare_exchange_weak(before, after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return now,
                Err(other) => before = other,
            }
        }
    }

    /// Picks the routee behind a routee that has refused. Other senders move the cursor too, so by the cursor the
    /// living routee may never come. Routees are asked whether they have stopped, which may run code of the user's: no
    /// cursor is borrowed meanwhile.
    #[cold]
    fn pick_again<M: Send + 'static>(
        &self,
        identity: &StdArc<()>,
        routees: &Routees<M>,
        cx: &RouteContext<'_>,
    ) -> Option<usize> {
        let by_own = with_cursors(|actor| match actor {
            None => {
                self.note_thread();
                None
            }
            Some((number, cursors)) => {
                let position = cursors.of(identity, || self.pass_to(number));
                (!self.is_for(number, position, cx)).then(|| plain(&mut position.index, routees.len()))
            }
        });
        if let Some(index) = by_own {
            return Some(index);
        }
        let pick = cx.next_in_turn(routees);
        if let Some(index) = pick {
            // Unless other senders have moved it meanwhile, the cursor goes on behind that routee. Ordering: Relaxed;
            // only the count matters.
            let _ = self.index.compare_exchange(
                cx.refused_by() + 1,
                index + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            with_cursors(|actor| {
                if let Some((_, cursors)) = actor {
                    cursors.of(identity, || Position::at(index)).index = index + 1;
                }
            });
        }
        pick
    }
}

/// Returns the index to be used now, of `count` routees; moves the cursor on.
#[inline(always)]
fn plain(cursor: &mut usize, count: usize) -> usize {
    // The table may have shrunk, and a thread's first position is its number.
    let index = if *cursor < count { *cursor } else { *cursor % count };
    *cursor = index + 1;
    index
}

/// Returns the index to be used now, of `count` routees, and the position after it.
#[inline]
fn advance(position: Position, count: usize, at: impl Fn(usize) -> usize) -> (usize, Position) {
    let is_there = position.index < count && at(position.index) == position.next;
    let index = if is_there { position.index } else { find(position, count, &at) };
    let after = if index + 1 < count { index + 1 } else { 0 };
    (index, Position { index: after, next: at(after), last: at(index) })
}

#[cold]
fn find(position: Position, count: usize, at: &impl Fn(usize) -> usize) -> usize {
    if position.next == 0 {
        return position.index % count;
    }
    let place_of = |address: usize| (0..count).find(|index| at(*index) == address);
    place_of(position.next).or_else(|| place_of(position.last).map(|last| (last + 1) % count)).unwrap_or(0)
}

#[inline]
fn address<M: Send + 'static>(routees: &[Routee<M>], index: usize) -> usize {
    routees.get(index).map_or(0, |routee| routee.actor().address())
}

/// The value at which a shared cursor is set back: far from both ends, so that it never wraps around, which would skip
/// routees (Akka 17738, 21800).
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
const SET_BACK: usize = 1 << (usize::BITS - 1);
/// Small, so that a model reaches it.
#[cfg(any(pointsman_loom, pointsman_shuttle))]
const SET_BACK: usize = 4;

/// Returns the next index of `count`, for any caller.
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
            Cursor::PerSender(..) => "RoundRobin",
            Cursor::Keeping(_) => "RoundRobin(keeping position)",
            Cursor::Shared(_) => "RoundRobin(exact)",
        })
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::SET_BACK;
    use super::advance;
    use super::next;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::{Arc, thread};
    use crate::thread_context::sender::Position;

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

    /// Names routees by a letter. Takes `before` messages over the old list and returns the routees of the next `count`
    /// over the new list.
    fn goes_on(old: &str, before: usize, new: &str, count: usize) -> String {
        let mut position = Position::at(0);
        let mut take = |list: &str| {
            let (index, after) = advance(position, list.len(), |index| list.as_bytes()[index].into());
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
        let mut position = Position::at(5);
        let mut taken = Vec::new();
        for _ in 0..4 {
            let (index, after) = advance(position, 3, |index| index + 1);
            position = after;
            taken.push(index);
        }
        assert_eq!(taken, [2, 0, 1, 2]);
    }
}
