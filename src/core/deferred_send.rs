//! Questions that are not sent yet, since they wait for room in a mailbox that lets senders wait.
//!
//! `ask(..)` does not know how long its asker will wait: that is said by `within`, which comes after it. So an ask never
//! waits for room itself. While it sends, the calling thread *puts off* every wait for room, wherever on the way of the
//! message it begins: at the actor, at a router's routee, or at the members of a group. The message that is put off
//! stays with the ask as [`Unsent`], and is waited for when the asker says how long, or begins to wait for the answer.
//! When the asker's limit is over first, or it has its answer from elsewhere, or it gives the question up, the message is
//! a dead letter, and never delivered.
//!
//! A message that waits at a router's routee which ends meanwhile goes [back](PutOff::returning_by) to the router, as
//! a message does whose sender waits there; a copy, of which others have been sent, does not.
//!
//! Nothing of this costs a send that waits for no room, but for a flag of the thread that each ask sets and takes back.

use crate::core::dead_letter::DeadLetterReason;
use crate::core::ledger::Row;
use crate::core::pending_send::{Awaited, Later, Until, Watch, Watched, wait_until};
use crate::core::system::SystemCore;
use crate::sync::{Mutex, per_thread};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc as StdArc;

/// A wait for room blocks the thread: none of the others.
const BLOCK: u8 = 0;
/// It is put off.
const PUT_OFF: u8 = 1;
/// Another wait of the same send was put off before.
const HAVE_PUT_OFF: u8 = 1 << 1;
/// Copies of what is sent go to several.
const COPIES: u8 = 1 << 2;

per_thread! {
    /// What a wait for room does on this thread, and what is known of the send that it belongs to.
    static WAITS: Cell<u8> = Cell::new(BLOCK);
}

per_thread! {
    /// What was put off: a list for each send that has put something off, the innermost last.
    static KEPT: RefCell<Vec<Vec<Box<dyn Later>>>> = RefCell::new(Vec::new());
}

/// Sends by `send`, and puts off the waits for room.
#[inline]
pub fn put_off<R>(send: impl FnOnce() -> R) -> (R, Option<PutOff>) {
    let scope = Scope::begin(PUT_OFF);
    let sent = send();
    (sent, scope.end())
}

/// Runs user code that sends for itself: there waits for room block the thread as ever.
#[inline]
pub fn not_put_off<R>(run: impl FnOnce() -> R) -> R {
    if !are_put_off() {
        return run();
    }
    let _scope = Scope::begin(BLOCK);
    run()
}

/// Whether a wait for room on this thread is to be put off.
#[inline]
pub fn are_put_off() -> bool {
    WAITS.with(Cell::get) != BLOCK && KEPT.try_with(|_| ()).is_ok()
}

/// Notes that copies of what is being sent go to several: what is put off is one of them.
#[inline]
pub fn note_copies() {
    WAITS.with(|waits| {
        if waits.get() != BLOCK {
            waits.set(waits.get() | COPIES);
        }
    });
}

/// Puts a wait for room off; only where waits [are](are_put_off).
#[cold]
pub fn keep(later: Box<dyn Later>) {
    let before = WAITS.with(|waits| waits.replace(waits.get() | HAVE_PUT_OFF));
    let is_first = before & HAVE_PUT_OFF == 0;
    KEPT.with(|kept| {
        let mut kept = kept.borrow_mut();
        match kept.last_mut().filter(|_| !is_first) {
            Some(list) => list.push(later),
            None => kept.push(vec![later]),
        }
    });
}

/// Sets the flag back, also when user code unwinds.
struct Scope {
    before: u8,
}

impl Scope {
    #[inline]
    fn begin(waits: u8) -> Self {
        Self { before: WAITS.with(|flag| flag.replace(waits)) }
    }

    #[inline]
    fn end(self) -> Option<PutOff> {
        let after = WAITS.with(|flag| flag.replace(self.before));
        std::mem::forget(self);
        if after & HAVE_PUT_OFF != 0 { taken(after) } else { None }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let after = WAITS.with(|flag| flag.replace(self.before));
        if after & HAVE_PUT_OFF != 0 {
            // User code has unwound: the question is given up.
            drop(taken(after).map(|put_off| put_off.counted_by(None)));
        }
    }
}

#[cold]
fn taken(waits: u8) -> Option<PutOff> {
    let later = KEPT.with(|kept| kept.borrow_mut().pop())?;
    Some(PutOff { later, are_copies: waits & COPIES != 0 })
}

/// What one send has put off.
#[must_use = "what was put off is counted as sent, and has no outcome yet"]
pub struct PutOff {
    later: Vec<Box<dyn Later>>,
    /// Others were sent copies.
    are_copies: bool,
}

impl PutOff {
    /// Has the message sent once more by `way_back`, an `ActorRef` of its type, if the actor that it waits for refuses it;
    /// not so a copy.
    pub fn returning_by(mut self, way_back: impl FnOnce() -> Option<Box<dyn Any + Send>>) -> Self {
        if let ([later], false) = (&mut *self.later, self.are_copies) {
            if let Some(way_back) = way_back() {
                later.return_by(way_back);
            }
        }
        self
    }

    /// Has `watch` told what becomes of the message; not so of several.
    pub fn watched_by(self, watch: impl Watch + 'static) -> Self {
        Self { later: Watched::wrap(self.later, Box::new(watch)), are_copies: self.are_copies }
    }

    /// Puts it off once more, as a part of the send that this send was within.
    pub fn keep(self) {
        if self.are_copies {
            note_copies();
        }
        self.later.into_iter().for_each(keep);
    }

    /// What is counted as sent and is waited for already.
    pub fn into_later(self) -> Vec<Box<dyn Later>> {
        self.later
    }

    /// Says whose books have counted it as sent; `None`: those of the actors that it waits for.
    pub fn counted_by(self, books: Option<StdArc<SystemCore>>) -> Unsent {
        // It was counted on its way to the mailbox.
        count(&self.later, books.as_deref(), |row| row.take_back_sent(1));
        Unsent { later: Mutex::new(self.later), books }
    }
}

/// Counts each in the books that count it: these, or those of the actor that it waits for.
fn count(later: &[Box<dyn Later>], books: Option<&SystemCore>, act: impl Fn(&Row)) {
    for later in later {
        act(books.unwrap_or_else(|| later.system()).ledger().mine());
    }
}

/// What waits for room, and is waited for by its asker. Dropped before, it is dead letters. It counts as sent only when it
/// is taken out, to be offered again or given up: so the ledger balances while an asker keeps it.
pub struct Unsent {
    /// Behind a lock, which is never taken, since what waits is not shared by threads.
    later: Mutex<Vec<Box<dyn Later>>>,
    books: Option<StdArc<SystemCore>>,
}

impl Unsent {
    /// Adds what another send has put off, which the same books count.
    pub fn join(&mut self, mut other: Self) {
        let added = std::mem::take(of(&mut other.later));
        of(&mut self.later).extend(added);
    }

    fn take(&mut self) -> Vec<Box<dyn Later>> {
        let later = std::mem::take(of(&mut self.later));
        count(&later, self.books.as_deref(), |row| row.sent(1));
        later
    }

    /// Waits until each is accepted or refused, or has waited for as long as its mailbox says; and no longer than
    /// `until`, and until what is `awaited` is there, after which none is delivered any more.
    pub fn wait(mut self, until: Option<Until<'_>>, awaited: &mut dyn Awaited) -> InVain {
        let later = self.take();
        let over = wait_until(later, until, Some(awaited));
        let is_late = !over.is_empty() && until.is_some_and(|until| until.is_over());
        InVain { over, books: self.books.take(), is_late }
    }
}

fn of(later: &mut Mutex<Vec<Box<dyn Later>>>) -> &mut Vec<Box<dyn Later>> {
    later.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Drop for Unsent {
    fn drop(&mut self) {
        for later in self.take() {
            later.give_up(self.books.as_deref(), DeadLetterReason::Full);
        }
    }
}

impl fmt::Debug for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unsent")
    }
}

/// What has waited in vain. When this is dropped, it is dead letters; its asker is to be told before.
pub struct InVain {
    over: Vec<(Box<dyn Later>, DeadLetterReason)>,
    books: Option<StdArc<SystemCore>>,
    is_late: bool,
}

impl InVain {
    pub fn is_empty(&self) -> bool {
        self.over.is_empty()
    }

    /// Whether a router has found no routee that takes it.
    pub fn found_no_routee(&self) -> bool {
        self.over.iter().any(|(_, reason)| *reason == DeadLetterReason::NoRoutee)
    }

    /// Whether there is something, and the limit of its asker is over.
    pub fn is_late(&self) -> bool {
        self.is_late
    }
}

impl Drop for InVain {
    fn drop(&mut self) {
        for (later, reason) in self.over.drain(..) {
            later.give_up(self.books.as_deref(), reason);
        }
    }
}
