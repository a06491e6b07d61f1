//! The sender is the actor whose turn runs on the calling thread, or else the thread; an actor that routes has a
//! position in each router.
//!
//! A thread has its cursors in the routers ([`PerThread`](crate::util::per_thread::PerThread)). An actor moves between
//! threads, so it carries its cursors in its cell, where only the holder of its ownership token touches them. A turn
//! tells its thread where the cursors of its actor are, and each message that is routed on that thread until the turn
//! ends uses them.
//!
//! An actor that never routes in turn pays for one empty pointer, and a turn for two writes to a thread-local.

use crate::sync::cell::UnsafeCell;
use crate::sync::per_thread;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc as StdArc;
use std::sync::Weak;

/// An actor's cursors: none until it first routes in turn.
pub(crate) type CursorsSlot = UnsafeCell<Option<Box<Cursors>>>;

per_thread! {
    /// The cursors of the actor whose turn runs on this thread, or null.
    static SENDER: Cell<*const CursorsSlot> = Cell::new(ptr::null());
}

#[cfg(debug_assertions)]
per_thread! {
    /// Whether this thread is within [`with_cursors`] or [`with_latest`].
    static IS_WITHIN: Cell<bool> = Cell::new(false);
}

/// Checks in debug builds that code that uses cursors does not ask for cursors again.
#[cfg(debug_assertions)]
struct Within;

#[cfg(debug_assertions)]
impl Within {
    fn enter() -> Self {
        let is_within = IS_WITHIN.try_with(|is_within| is_within.replace(true)).unwrap_or(false);
        assert!(!is_within, "code that uses cursors has routed a message, which borrows them once more");
        Self
    }
}

#[cfg(debug_assertions)]
impl Drop for Within {
    fn drop(&mut self) {
        let _ = IS_WITHIN.try_with(|is_within| is_within.set(false));
    }
}

/// The position of one sender in the table of one router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The index to be used next.
    pub index: usize,
    /// The addresses of the routee at `index` and of the routee before it, where the position survives changes of the
    /// table; 0 at the start. An address that is reused for another routee leads to a wrong place, which does no harm.
    pub next: usize,
    pub last: usize,
}

/// The positions of one actor.
#[derive(Debug)]
pub(crate) struct Cursors {
    /// The address of the identity that was used last, 0 at the start.
    latest: usize,
    /// The position that belongs to that identity. The entry of the identity has its position from before, when another
    /// identity was used last.
    position: Position,
    /// Sorted by the address of the identity, which stays in use as long as the entry.
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    of: Weak<()>,
    position: Position,
}

impl Position {
    pub(crate) fn at(index: usize) -> Self {
        Self { index, next: 0, last: 0 }
    }
}

impl Default for Cursors {
    fn default() -> Self {
        Self { latest: 0, position: Position::at(0), entries: Vec::new() }
    }
}

impl Cursors {
    /// Returns the position that belongs to this identity, made by `start` if there is none yet.
    #[inline(always)]
    pub(crate) fn of(&mut self, identity: &StdArc<()>, start: impl FnOnce() -> Position) -> &mut Position {
        if self.latest != StdArc::as_ptr(identity) as usize {
            self.change(identity, start);
        }
        &mut self.position
    }

    /// Makes this identity the latest one.
    #[cold]
    #[inline(never)]
    fn change(&mut self, identity: &StdArc<()>, start: impl FnOnce() -> Position) {
        if let Ok(place) = self.place_of(self.latest) {
            self.entries[place].position = self.position;
        }
        let address = StdArc::as_ptr(identity) as usize;
        self.position = match self.place_of(address) {
            Ok(place) => self.entries[place].position,
            Err(_) => {
                if self.entries.len() == self.entries.capacity() {
                    // Entries of routers that are gone make room, so that an actor that outlives many routers does not
                    // grow.
                    self.entries.retain(|entry| entry.of.strong_count() > 0);
                }
                let (position, of) = (start(), StdArc::downgrade(identity));
                let place = self.place_of(address).unwrap_or_else(|place| place);
                self.entries.insert(place, Entry { of, position });
                position
            }
        };
        self.latest = address;
    }

    /// Returns where the entry of the identity at this address is, or would be.
    fn place_of(&self, address: usize) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&address, |entry| entry.of.as_ptr() as usize)
    }

    /// Returns how many routers the cursors have positions in.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Begins a turn: its actor sends from now on, until [`leave`].
///
/// # Safety
///
/// The caller runs the actor that has these cursors, by its ownership token. The caller calls [`leave`] on this thread
/// before it gives up the token, or the value that keeps the cell alive.
#[inline]
pub(crate) unsafe fn enter(cursors: &CursorsSlot) {
    let _ = SENDER.try_with(|sender| sender.set(cursors));
}

/// Ends a turn: the thread sends again.
#[inline]
pub(crate) fn leave() {
    let _ = SENDER.try_with(|sender| sender.set(ptr::null()));
}

/// A guard during whose life turns may run within the code of the calling thread, possibly itself a turn. After the
/// guard, the sender is the same as before.
#[derive(Debug)]
pub(crate) struct SenderGuard(*const CursorsSlot);

impl SenderGuard {
    #[inline]
    pub(crate) fn step() -> Self {
        Self(SENDER.try_with(|sender| sender.replace(ptr::null())).unwrap_or(ptr::null()))
    }
}

impl Drop for SenderGuard {
    #[inline]
    fn drop(&mut self) {
        let _ = SENDER.try_with(|sender| sender.set(self.0));
    }
}

/// Hands the cursors of the sending actor to `act`, with a number that tells the actor from other living actors; hands
/// over `None` if the thread sends. `act` runs no user code, which may route and so come back here: `act` does not even
/// ask a routee whether it has stopped.
#[inline(always)]
pub(crate) fn with_cursors<R>(act: impl FnOnce(Option<(usize, &mut Cursors)>) -> R) -> R {
    #[cfg(debug_assertions)]
    let _within = Within::enter();
    let sender = SENDER.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: not null only between `enter` and `leave`, on this very thread, so the cell is alive.
    let Some(slot) = (unsafe { sender.as_ref() }) else { return act(None) };
    slot.with_mut(|cursors| {
        // SAFETY: this thread has the token (`enter`), and no other reference is alive: `act` does not come back here,
        // which debug builds check.
        let cursors = unsafe { &mut *cursors }.get_or_insert_default();
        act(Some((sender as usize, cursors)))
    })
}

/// The reason why [`with_latest`] has no position.
pub(crate) enum NoPosition {
    /// The thread sends, and no actor.
    Thread,
    /// The actor has sent to another identity meanwhile, or never to this one: see [`with_cursors`].
    NotLatest,
}

/// Hands over the position of the sending actor for this identity, if the actor has sent to no other identity since.
/// `act` runs no user code, as in [`with_cursors`].
#[inline(always)]
pub(crate) fn with_latest<R>(
    identity: &StdArc<()>,
    act: impl FnOnce(&mut Position) -> R,
) -> Result<R, NoPosition> {
    #[cfg(debug_assertions)]
    let _within = Within::enter();
    let sender = SENDER.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: as in `with_cursors`.
    let Some(slot) = (unsafe { sender.as_ref() }) else { return Err(NoPosition::Thread) };
    // SAFETY: as in `with_cursors`.
    slot.with_mut(|cursors| match unsafe { &mut *cursors } {
        Some(cursors) if cursors.latest == StdArc::as_ptr(identity) as usize => {
            Ok(act(&mut cursors.position))
        }
        _ => Err(NoPosition::NotLatest),
    })
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{Cursors, CursorsSlot, Position, SenderGuard, enter, leave, with_cursors};
    use std::sync::Arc as StdArc;

    fn next(cursors: &mut Cursors, identity: &StdArc<()>) -> usize {
        let position = cursors.of(identity, || Position::at(10));
        position.index += 1;
        position.index - 1
    }

    #[test]
    fn each_router_has_a_position_of_its_own_and_those_that_are_gone_make_room() {
        let mut cursors = Cursors::default();
        let identities: Vec<StdArc<()>> = (0..9).map(|_| StdArc::default()).collect();
        for round in 10..13 {
            identities.iter().for_each(|identity| assert_eq!(next(&mut cursors, identity), round));
        }
        assert_eq!((next(&mut cursors, &identities[4]), next(&mut cursors, &identities[4])), (13, 14));
        assert_eq!(cursors.len(), 9);
        for _ in 0..1000 {
            assert_eq!(next(&mut cursors, &StdArc::default()), 10, "one that lives for a moment");
        }
        assert!(cursors.len() <= 32, "{}", cursors.len());
        assert_eq!(next(&mut cursors, &identities[8]), 13, "one that lives is kept");
    }

    #[test]
    fn a_thread_sends_as_the_actor_whose_turn_it_runs_and_as_itself_before_and_after() {
        let (one, other) = (CursorsSlot::new(None), CursorsSlot::new(None));
        let who = || with_cursors(|sender| sender.map(|(number, _)| number));
        assert_eq!(who(), None);
        // SAFETY: both slots are this thread's, and outlive what is between `enter` and `leave`.
        unsafe { enter(&one) };
        let first = who();
        assert!(first.is_some());
        let within = {
            let _aside = SenderGuard::step();
            let thread = who();
            // SAFETY: as above.
            unsafe { enter(&other) };
            let second = who();
            leave();
            (thread, second)
        };
        assert!(within.0.is_none() && within.1.is_some() && within.1 != first);
        assert_eq!(who(), first);
        leave();
        assert_eq!(who(), None);
    }

    #[test]
    #[cfg(debug_assertions)]
    fn what_comes_back_for_cursors_is_found() {
        let within = || with_cursors(|_| with_cursors(|_| ()));
        let payload = std::panic::catch_unwind(within).expect_err("it comes back");
        assert!(payload.downcast_ref::<&str>().is_some_and(|text| text.contains("once more")));
        with_cursors(|_| ());
    }
}
