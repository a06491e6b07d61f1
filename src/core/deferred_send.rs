//! Questions that are not sent yet, since they wait for room in a mailbox that lets senders wait.
//!
//! `ask(..)` does not know how long its asker will wait: that is said by `within`, which comes after it. So an ask never
//! waits for room itself. While it sends, the calling thread *puts off* every wait for room, wherever on the way of the
//! message it begins: at the actor, at a router's routee, or at the members of a group. The message that is put off
//! stays with the ask as [`DeferredSend`], and is waited for when the asker says how long, or begins to wait for the answer.
//! When the asker's limit is over first, or it has its answer from elsewhere, or it gives the question up, the message is
//! a dead letter, and never delivered.
//!
//! A message that waits at a router's routee which ends meanwhile goes [back](DeferredSends::returning_by) to the router, as
//! a message does whose sender waits there; a copy, of which others have been sent, does not.
//!
//! Nothing of this costs a send that waits for no room, but for a flag of the thread that each ask sets and takes back.

use crate::core::dead_letter::DeadLetterReason;
use crate::core::ledger::ThreadCounters;
use crate::core::pending_send::{Awaited, PendingDelivery, WaitBound, Watch, Watched, wait_until};
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
    static KEPT: RefCell<Vec<Vec<Box<dyn PendingDelivery>>>> = RefCell::new(Vec::new());
}

/// Sends by `send`, and puts off the waits for room.
#[inline]
pub(crate) fn put_off<R>(send: impl FnOnce() -> R) -> (R, Option<DeferredSends>) {
    let scope = Scope::begin(PUT_OFF);
    let sent = send();
    (sent, scope.end())
}

/// Runs user code that sends for itself: there waits for room block the thread as ever.
#[inline]
pub(crate) fn not_put_off<R>(run: impl FnOnce() -> R) -> R {
    if !are_deferred() {
        return run();
    }
    let _scope = Scope::begin(BLOCK);
    run()
}

/// Whether a wait for room on this thread is to be put off.
#[inline]
pub(crate) fn are_deferred() -> bool {
    WAITS.with(Cell::get) != BLOCK && KEPT.try_with(|_| ()).is_ok()
}

/// Notes that copies of what is being sent go to several: what is put off is one of them.
#[inline]
pub(crate) fn note_copies() {
    WAITS.with(|waits| {
        if waits.get() != BLOCK {
            waits.set(waits.get() | COPIES);
        }
    });
}

/// Puts a wait for room off; only where waits [are](are_deferred).
#[cold]
pub(crate) fn keep(later: Box<dyn PendingDelivery>) {
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
    fn end(self) -> Option<DeferredSends> {
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
fn taken(waits: u8) -> Option<DeferredSends> {
    let later = KEPT.with(|kept| kept.borrow_mut().pop())?;
    Some(DeferredSends { later, are_copies: waits & COPIES != 0 })
}

/// What one send has put off.
#[must_use = "what was put off is counted as sent, and has no outcome yet"]
pub(crate) struct DeferredSends {
    later: Vec<Box<dyn PendingDelivery>>,
    /// Others were sent copies.
    are_copies: bool,
}

impl DeferredSends {
    /// Has the message sent once more by `way_back`, an `ActorRef` of its type, if the actor that it waits for refuses it;
    /// not so a copy.
    pub(crate) fn returning_by(mut self, way_back: impl FnOnce() -> Option<Box<dyn Any + Send>>) -> Self {
        if let ([later], false) = (&mut *self.later, self.are_copies) {
            if let Some(way_back) = way_back() {
                later.return_by(way_back);
            }
        }
        self
    }

    /// Has `watch` told what becomes of the message; not so of several.
    pub(crate) fn watched_by(self, watch: impl Watch + 'static) -> Self {
        Self { later: Watched::wrap(self.later, Box::new(watch)), are_copies: self.are_copies }
    }

    /// Puts it off once more, as a part of the send that this send was within.
    pub(crate) fn keep(self) {
        if self.are_copies {
            note_copies();
        }
        self.later.into_iter().for_each(keep);
    }

    /// What is counted as sent and is waited for already.
    pub(crate) fn into_later(self) -> Vec<Box<dyn PendingDelivery>> {
        self.later
    }

    /// Says whose books have counted it as sent; `None`: those of the actors that it waits for.
    pub(crate) fn counted_by(self, counters: Option<StdArc<SystemCore>>) -> DeferredSend {
        // It was counted on its way to the mailbox.
        count(&self.later, counters.as_deref(), |row| row.subtract_sent(1));
        DeferredSend { later: Mutex::new(self.later), counters }
    }
}

/// Counts each in the books that count it: these, or those of the actor that it waits for.
fn count(later: &[Box<dyn PendingDelivery>], counters: Option<&SystemCore>, act: impl Fn(&ThreadCounters)) {
    for later in later {
        act(counters.unwrap_or_else(|| later.system()).ledger().for_this_thread());
    }
}

/// What waits for room, and is waited for by its asker. Dropped before, it is dead letters. It counts as sent only when it
/// is taken out, to be offered again or given up: so the ledger balances while an asker keeps it.
pub(crate) struct DeferredSend {
    /// Behind a lock, which is never taken, since what waits is not shared by threads.
    later: Mutex<Vec<Box<dyn PendingDelivery>>>,
    counters: Option<StdArc<SystemCore>>,
}

impl DeferredSend {
    /// Adds what another send has put off, which the same books count.
    pub(crate) fn join(&mut self, mut other: Self) {
        let added = std::mem::take(of(&mut other.later));
        of(&mut self.later).extend(added);
    }

    fn take(&mut self) -> Vec<Box<dyn PendingDelivery>> {
        let later = std::mem::take(of(&mut self.later));
        count(&later, self.counters.as_deref(), |row| row.sent(1));
        later
    }

    /// Waits until each is accepted or refused, or has waited for as long as its mailbox says; and no longer than
    /// `until`, and until what is `awaited` is there, after which none is delivered any more.
    pub(crate) fn wait(mut self, until: Option<WaitBound<'_>>, awaited: &mut dyn Awaited) -> TimedOutSend {
        let later = self.take();
        let over = wait_until(later, until, Some(awaited));
        let is_late = !over.is_empty() && until.is_some_and(|until| until.is_over());
        TimedOutSend { over, counters: self.counters.take(), is_late }
    }
}

fn of(later: &mut Mutex<Vec<Box<dyn PendingDelivery>>>) -> &mut Vec<Box<dyn PendingDelivery>> {
    later.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Drop for DeferredSend {
    fn drop(&mut self) {
        for later in self.take() {
            later.abandon(self.counters.as_deref(), DeadLetterReason::Full);
        }
    }
}

impl fmt::Debug for DeferredSend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unsent")
    }
}

/// What has waited in vain. When this is dropped, it is dead letters; its asker is to be told before.
pub(crate) struct TimedOutSend {
    over: Vec<(Box<dyn PendingDelivery>, DeadLetterReason)>,
    counters: Option<StdArc<SystemCore>>,
    is_late: bool,
}

impl TimedOutSend {
    pub(crate) fn is_empty(&self) -> bool {
        self.over.is_empty()
    }

    /// Whether a router has found no routee that takes it.
    pub(crate) fn found_no_routee(&self) -> bool {
        self.over.iter().any(|(_, reason)| *reason == DeadLetterReason::NoRoutee)
    }

    /// Whether there is something, and the limit of its asker is over.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }
}

impl Drop for TimedOutSend {
    fn drop(&mut self) {
        for (later, reason) in self.over.drain(..) {
            later.abandon(self.counters.as_deref(), reason);
        }
    }
}
