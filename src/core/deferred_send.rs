//! Deferred sends: requests that are not sent yet, since they wait for room in a mailbox that lets senders wait.
//!
//! `ask(..)` does not know how long its asker will wait: `within` sets that, and it comes after `ask`. So an ask never
//! waits for room itself. While it sends, the calling thread *defers* every wait for room, at any point of the way of
//! the message: at the actor, at a router's routee, or at the members of a group. The deferred message stays with the
//! ask as [`DeferredSend`]. The ask waits for its delivery when the asker sets the timeout, or begins to wait for the
//! answer. If the asker's deadline comes first, or the asker has its answer from elsewhere, or it gives the request up,
//! the message is a dead letter, and never delivered.
//!
//! A message that waits at a router's routee which ends meanwhile goes [back](DeferredSends::returning_by) to the
//! router, as a message does whose sender waits there. A copy does not, if other copies have been sent.
//!
//! A send that waits for no room pays nothing for this, except for a flag of the thread that each ask sets and resets.

use crate::core::dead_letter::DeadLetterReason;
use crate::core::ledger::ThreadCounters;
use crate::core::pending_send::{
    Awaited, PendingDelivery, RetryOutcome, WaitBound, Watch, Watched, wait_until,
};
use crate::core::system::SystemCore;
use crate::sync::{Mutex, per_thread};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc as StdArc;
use std::task::Waker;

/// A wait for room blocks the thread: no flag is set.
const BLOCK: u8 = 0;
/// A wait for room is deferred.
const PUT_OFF: u8 = 1;
/// Another wait of the same send has been deferred before.
const HAVE_PUT_OFF: u8 = 1 << 1;
/// Several recipients get copies of the message.
const COPIES: u8 = 1 << 2;
/// The sender is a future: it waits at each bounded mailbox that is full, also where threads may not.
const AWAITED: u8 = 1 << 3;
/// An adapter has changed the message: its sender cannot have it back.
const CHANGED: u8 = 1 << 4;

per_thread! {
    /// The effect of a wait for room on this thread, and the facts about the send that it belongs to.
    static WAITS: Cell<u8> = Cell::new(BLOCK);
}

per_thread! {
    /// The deferred deliveries: a list for each send that has deferred any, the innermost last.
    static KEPT: RefCell<Vec<Vec<Box<dyn PendingDelivery>>>> = RefCell::new(Vec::new());
}

/// Runs `send`, and defers the waits for room.
#[inline]
pub(crate) fn put_off<R>(send: impl FnOnce() -> R) -> (R, Option<DeferredSends>) {
    let scope = Scope::begin(PUT_OFF);
    let sent = send();
    (sent, scope.end())
}

/// Runs a part of a send whose waits are deferred already, and defers the waits of this part in the same way.
pub(crate) fn put_off_as_before<R>(send: impl FnOnce() -> R) -> (R, Option<DeferredSends>) {
    let inherited = WAITS.with(Cell::get) & (AWAITED | CHANGED);
    let scope = Scope::begin(PUT_OFF | inherited);
    let sent = send();
    (sent, scope.end())
}

/// Runs the send of a future, and defers the waits for room, also those at mailboxes where threads may not wait.
pub(crate) fn put_off_awaited<R>(send: impl FnOnce() -> R) -> (R, Option<DeferredSends>) {
    let scope = Scope::begin(PUT_OFF | AWAITED);
    let sent = send();
    (sent, scope.end())
}

/// Runs the part of a send that comes behind an adapter.
#[inline]
pub(crate) fn note_changed<R>(send: impl FnOnce() -> R) -> R {
    if !are_awaited() {
        return send();
    }
    let before = WAITS.with(|waits| waits.replace(waits.get() | CHANGED));
    let sent = send();
    // Other flags may have come meanwhile. When user code unwinds, the outer scope ends all of them.
    WAITS.with(|waits| waits.set(waits.get() & !CHANGED | before & CHANGED));
    sent
}

/// Returns whether an adapter has changed the message of the send that this thread is in.
pub(crate) fn is_changed() -> bool {
    WAITS.with(Cell::get) & CHANGED != 0
}

/// Returns whether the sender is a future, which waits at any bounded mailbox.
#[inline]
pub(crate) fn are_awaited() -> bool {
    WAITS.with(Cell::get) & AWAITED != 0 && KEPT.try_with(|_| ()).is_ok()
}

/// Runs user code that sends on its own account: there, waits for room block the thread as usual.
#[inline]
pub(crate) fn not_put_off<R>(run: impl FnOnce() -> R) -> R {
    if !are_deferred() {
        return run();
    }
    let _scope = Scope::begin(BLOCK);
    run()
}

/// Returns whether a wait for room on this thread is to be deferred.
#[inline]
pub(crate) fn are_deferred() -> bool {
    WAITS.with(Cell::get) != BLOCK && KEPT.try_with(|_| ()).is_ok()
}

/// Notes that several recipients get copies of the message: a deferred delivery is one of them.
#[inline]
pub(crate) fn note_copies() {
    WAITS.with(|waits| {
        if waits.get() != BLOCK {
            waits.set(waits.get() | COPIES);
        }
    });
}

/// Defers a wait for room; only where waits [are deferred](are_deferred).
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

/// Resets the flag, also when user code unwinds.
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
            // User code has unwound: the request is given up.
            drop(taken(after).map(|put_off| put_off.counted_by(None)));
        }
    }
}

#[cold]
fn taken(waits: u8) -> Option<DeferredSends> {
    let later = KEPT.with(|kept| kept.borrow_mut().pop())?;
    Some(DeferredSends { later, are_copies: waits & COPIES != 0 })
}

/// The deliveries that a single send has deferred.
#[must_use = "deferred deliveries are counted as sent, and have no outcome yet"]
pub(crate) struct DeferredSends {
    later: Vec<Box<dyn PendingDelivery>>,
    /// Other recipients were sent copies.
    are_copies: bool,
}

impl DeferredSends {
    /// Sets a way back: if the actor that the message waits for refuses it, `way_back`, an `ActorRef` of its type,
    /// sends it once more. A copy is not sent again.
    pub(crate) fn returning_by(mut self, way_back: impl FnOnce() -> Option<Box<dyn Any + Send>>) -> Self {
        if let ([later], false) = (&mut *self.later, self.are_copies) {
            if let Some(way_back) = way_back() {
                later.return_by(way_back);
            }
        }
        self
    }

    /// Tells `watch` the outcome of the message, if it is a single delivery.
    pub(crate) fn watched_by(self, watch: impl Watch + 'static) -> Self {
        Self { later: Watched::wrap(self.later, Box::new(watch)), are_copies: self.are_copies }
    }

    /// Replaces a single delivery by the result of `wrap`. Several deliveries stay as they are.
    pub(crate) fn wrapped_by(
        mut self,
        wrap: impl FnOnce(Box<dyn PendingDelivery>) -> Box<dyn PendingDelivery>,
    ) -> Self {
        self.later = match <[_; 1]>::try_from(self.later) {
            Ok([later]) => vec![wrap(later)],
            Err(several) => several,
        };
        self
    }

    /// Defers the deliveries once more, as a part of the outer send.
    pub(crate) fn keep(self) {
        if self.are_copies {
            note_copies();
        }
        self.later.into_iter().for_each(keep);
    }

    /// Returns whether several recipients got copies of the message.
    pub(crate) fn are_copies(&self) -> bool {
        self.are_copies
    }

    /// Returns the deliveries, which are counted as sent, to a caller that waits for them itself.
    pub(crate) fn into_later(self) -> Vec<Box<dyn PendingDelivery>> {
        self.later
    }

    /// Sets the system whose ledger has counted the deliveries as sent; `None`: those of the actors that they wait for.
    pub(crate) fn counted_by(self, counters: Option<StdArc<SystemCore>>) -> DeferredSend {
        // It was counted on its way to the mailbox.
        count(&self.later, counters.as_deref(), |row| row.subtract_sent(1));
        let is_whole = !self.are_copies && self.later.len() == 1;
        DeferredSend { later: Mutex::new(self.later), counters, is_whole }
    }
}

/// Counts each delivery in the ledger that it belongs to: `counters`, or that of the actor that it waits for.
fn count(later: &[Box<dyn PendingDelivery>], counters: Option<&SystemCore>, act: impl Fn(&ThreadCounters)) {
    for later in later {
        act(counters.unwrap_or_else(|| later.system()).ledger().for_this_thread());
    }
}

/// Deliveries that wait for room, and that their asker waits for. Dropped before, they are dead letters. They count as
/// sent only when they are taken out, to be offered again or given up: so the ledger balances while an asker keeps
/// them.
pub(crate) struct DeferredSend {
    /// Behind a lock, which is never taken, since threads do not share the deliveries.
    later: Mutex<Vec<Box<dyn PendingDelivery>>>,
    counters: Option<StdArc<SystemCore>>,
    /// Whether this is all of its message: one delivery, and no copy.
    is_whole: bool,
}

impl DeferredSend {
    /// Adds the deliveries of another deferred send, which the same ledger counts.
    pub(crate) fn join(&mut self, mut other: Self) {
        let added = std::mem::take(of(&mut other.later));
        of(&mut self.later).extend(added);
        self.is_whole = false;
    }

    fn take(&mut self) -> Vec<Box<dyn PendingDelivery>> {
        let later = std::mem::take(of(&mut self.later));
        count(&later, self.counters.as_deref(), |row| row.sent(1));
        later
    }

    /// Waits until each delivery is accepted or refused, or has waited for as long as its mailbox allows. The wait ends
    /// at `until`, and when `awaited` is there; after that no message is delivered any more.
    pub(crate) fn wait(mut self, until: Option<WaitBound<'_>>, awaited: &mut dyn Awaited) -> TimedOutSend {
        let later = self.take();
        let over = wait_until(later, until, Some(awaited));
        let is_late = !over.is_empty() && until.is_some_and(|until| until.is_over());
        TimedOutSend { over, counters: self.counters.take(), is_late }
    }
}

impl DeferredSend {
    /// Tries each delivery that still waits, as a future does, and leaves `waker` where there is no room yet. Returns
    /// whether none waits any more. The deliveries that wait in vain are put into `refused`, counted as sent.
    pub(crate) fn poll_room(&mut self, waker: &Waker, refused: &mut Vec<RefusedDelivery>) -> bool {
        let counters = self.counters.clone();
        let change = |later: &dyn PendingDelivery, act: fn(&ThreadCounters)| {
            act(counters.as_deref().unwrap_or_else(|| later.system()).ledger().for_this_thread());
        };
        let open = of(&mut self.later);
        let mut index = 0;
        while index < open.len() {
            // Out of the list while code of users runs: a try that unwinds leaves no delivery without its message.
            let mut later = open.swap_remove(index);
            later.wake_by(waker);
            // Before it can be handled.
            change(&*later, |row| row.sent(1));
            let (tried, put_off) = put_off_awaited(|| later.try_again());
            debug_assert!(put_off.is_none(), "a try leaves its own deliveries to its outcome");
            match tried {
                RetryOutcome::Full => {
                    change(&*later, |row| row.subtract_sent(1));
                    // Back to its place.
                    open.push(later);
                    let last = open.len() - 1;
                    open.swap(index, last);
                    index += 1;
                }
                RetryOutcome::Accepted => drop(later),
                RetryOutcome::Refused(reason) => {
                    later.refused(reason);
                    refused.push((later, reason));
                }
                RetryOutcome::Elsewhere(more, are_copies) => {
                    drop(later);
                    // A copy that was taken cannot come back, and so the message does not, either.
                    self.is_whole &= !are_copies && more.len() == 1;
                    for later in more {
                        change(&*later, |row| row.subtract_sent(1));
                        open.push(later);
                    }
                }
            }
        }
        open.is_empty()
    }

    /// Whether this is all of its message: one delivery, and no copy.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The system whose ledger counts the deliveries; `None`: those of the actors that they wait for.
    pub(crate) fn counters(&self) -> Option<&SystemCore> {
        self.counters.as_deref()
    }

    /// Gives the deliveries up. They count as sent, and have no outcome.
    pub(crate) fn give_up(mut self) -> (Vec<Box<dyn PendingDelivery>>, Option<StdArc<SystemCore>>) {
        (self.take(), self.counters.take())
    }
}

/// A delivery that has waited in vain, and the reason.
pub(crate) type RefusedDelivery = (Box<dyn PendingDelivery>, DeadLetterReason);

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

/// The deliveries that have waited in vain. When this is dropped, they are dead letters; the asker must be told before.
pub(crate) struct TimedOutSend {
    over: Vec<(Box<dyn PendingDelivery>, DeadLetterReason)>,
    counters: Option<StdArc<SystemCore>>,
    is_late: bool,
}

impl TimedOutSend {
    pub(crate) fn is_empty(&self) -> bool {
        self.over.is_empty()
    }

    /// The reason why a delivery has waited in vain; `None` if there is none.
    pub(crate) fn reason(&self) -> Option<DeadLetterReason> {
        self.over.first().map(|(_, reason)| *reason)
    }

    /// Returns whether a router has found no routee that takes the message.
    pub(crate) fn found_no_routee(&self) -> bool {
        self.over.iter().any(|(_, reason)| *reason == DeadLetterReason::NoRoutee)
    }

    /// Returns whether there is a delivery, and the deadline of its asker has passed.
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
