//! The reply slot: a one-shot slot between an asker and its repliers.
//!
//! An [`AskerHalf`] is the half of the asker. [`ReplierHalf`]s, the ports, are the answering half and can be cloned. The
//! first port that answers wins. When the last port goes without an answer, the slot gets [`AskError::NoReply`]. Both
//! halves meet in one word, [`Word`]: four flags, and above them the number of living ports.
//!
//! # The ports' side
//! 1. *Claim.* A sole port (count 1) has the right to answer without a claim: only a port can be cloned, and the only
//!    port is being consumed. With other ports, the first port that sets CLAIMED has the right.
//! 2. *Write* the outcome into the slot.
//! 3. *Publish* by a compare-exchange that sets FULL and fails if GONE is set. When the asker has left, the port takes
//!    the outcome back and hands it to the caller. So FULL is never set after GONE, and a published outcome always
//!    belongs to the asker.
//!    * Without WAITING the same exchange takes the port off the count: one read-modify-write in all for
//!      the usual single reply, after which the slot is not touched.
//!    * With WAITING the port stays on the count while it takes the waiter, which is now its own. Then it
//!      leaves, and wakes the asker last: the woken asker finds the slot without this port.
//! 4. *Leave.* With other ports, by a compare-exchange on the count, never by a blind subtraction. So exactly one port
//!    knows that it is the last *before* it leaves, and can still answer with `NoReply`. The last port subtracts, and
//!    frees the slot if the old word shows GONE.
//!
//! # The asker's side
//! 1. *Look.* With FULL and no port left the asker has the slot alone: it takes the outcome and keeps the memory,
//!    without any read-modify-write.
//! 2. *Wait.* Write the waiter, then set WAITING. FULL in the old word means that the replier saw no waiter and the
//!    outcome is there. To replace a waiter, clear WAITING first: FULL in *that* old word means that the waiter is the
//!    replier's. An identity that the asker keeps tells whether a waiter is the one registered before; the asker never
//!    looks into the slot for that.
//! 3. *Leave.* Take the outcome if FULL; else set GONE by a compare-exchange, which fails if FULL comes in between. If
//!    ports are left after the outcome was taken, set GONE too.
//!
//! The side that makes the word "GONE and no ports" frees the slot: no other side can reach it then. So a late port
//! never meets a slot that serves another ask, since its own place in the count keeps the slot from being used again.
//! There is no generation to compare, which would need a second, separate step.
//!
//! # User code
//! Waking and dropping a waker may panic. Such a panic belongs to the asker's executor and must hurt neither the
//! replying actor nor a drain of dead letters, which may be unwinding already. So the panic is caught (the panic hook
//! has reported it). Wakers are woken and dropped after the slot has been released. The asker or the replier drops the
//! values after that, too.

use crate::ask::error::{AskError, Outcome};
use crate::ask::slot_pool;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::util::panic;
use std::fmt;
use std::mem::{self, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::task::{RawWakerVTable, Waker};

/// The asker's half of a slot. Dropping it abandons the ask.
pub(crate) struct AskerHalf<R> {
    slot: NonNull<Slot<R>>,
    /// Identity of the waiter that was put into the slot last.
    registered: Option<WakerIdentity>,
}

/// The data that [`Waker::will_wake`] compares, without the waker.
type WakerIdentity = (*const (), *const RawWakerVTable);

/// The replier's half of a slot; the count of ports includes it.
pub struct ReplierHalf<R> {
    slot: NonNull<Slot<R>>,
}

/// A free slot: no half reaches it, and it holds no outcome and no waiter. It is ready for another ask.
pub(crate) struct FreeSlot<R> {
    slot: NonNull<Slot<R>>,
}

/// The values that the asker holds after leaving.
#[must_use]
pub(crate) struct AbandonedAsk<R> {
    /// The outcome, if one came before the asker left.
    pub outcome: Option<Outcome<R>>,
    /// The slot, if no port is left in it.
    pub free_slot: Option<FreeSlot<R>>,
}

struct Slot<R> {
    /// ```text
    ///  bit 63 …… 4 │    3    │  2   │  1   │    0
    ///  ports       │ CLAIMED │ GONE │ FULL │ WAITING
    /// ```
    state: AtomicUsize,
    /// Written by the port that has the claim, taken by the asker after FULL.
    outcome: UnsafeCell<MaybeUninit<Outcome<R>>>,
    /// The asker's, until the publication by a replier that saw WAITING makes it the replier's.
    waiter: UnsafeCell<Option<Waker>>,
}

/// The port that publishes must wake the waiter.
const WAITING: usize = 1;
/// The outcome lies in the slot.
const FULL: usize = 1 << 1;
/// The asker has left.
const GONE: usize = 1 << 2;
/// One of several ports has won the right to answer.
const CLAIMED: usize = 1 << 3;
/// One port.
const PORT: usize = 1 << 4;
/// More ports than any program holds at once; clones are refused long before the count overflows.
const PORTS_MAX: usize = usize::MAX / PORT / 2;

/// A snapshot of [`Slot::state`].
#[derive(Clone, Copy)]
struct Word(usize);

impl Word {
    fn is_waiting(self) -> bool {
        self.0 & WAITING != 0
    }

    fn is_full(self) -> bool {
        self.0 & FULL != 0
    }

    fn is_gone(self) -> bool {
        self.0 & GONE != 0
    }

    /// Returns whether no further answer is needed.
    fn is_over(self) -> bool {
        self.0 & (FULL | GONE | CLAIMED) != 0
    }

    fn ports(self) -> usize {
        self.0 / PORT
    }
}

// SAFETY: a port moves an outcome into the slot, from where another thread takes it: `R: Send`. Besides, both halves
// share only a waker, which is `Send`.
unsafe impl<R: Send> Send for ReplierHalf<R> {}
// SAFETY: through a shared port one can look at the word and clone the port, which is counted atomically;
// sending the clone elsewhere is covered by `R: Send`.
unsafe impl<R: Send> Sync for ReplierHalf<R> {}
// SAFETY: as for `ReplierHalf`; the outcome is taken in the thread of the asker's half. The identity of a waker is compared
// and never followed.
unsafe impl<R: Send> Send for AskerHalf<R> {}
// SAFETY: a shared asker's half can only look at the word.
unsafe impl<R: Send> Sync for AskerHalf<R> {}
// SAFETY: no half reaches the slot, and it holds no `R`.
unsafe impl<R: Send> Send for FreeSlot<R> {}
// SAFETY: a shared free slot gives access to nothing.
unsafe impl<R: Send> Sync for FreeSlot<R> {}

impl<R> FreeSlot<R> {
    /// Takes a slot from the calling thread's free list.
    #[inline]
    pub(crate) fn take() -> Self {
        let slot = slot_pool::take::<Slot<R>>();
        // SAFETY: fresh memory for exactly this type.
        unsafe {
            slot.write(Slot {
                state: AtomicUsize::new(0),
                outcome: UnsafeCell::new(MaybeUninit::uninit()),
                waiter: UnsafeCell::new(None),
            });
        }
        Self { slot }
    }

    /// Starts an ask in this slot.
    #[inline]
    pub(crate) fn begin(self) -> (AskerHalf<R>, ReplierHalf<R>) {
        let slot = self.slot;
        mem::forget(self);
        // SAFETY: a free slot owns its memory.
        let state = unsafe { &slot.as_ref().state };
        // Ordering: Relaxed, and a plain store: no other thread can reach the slot before one of the halves made here
        // is handed over, by means that synchronise.
        state.store(PORT, Ordering::Relaxed);
        (AskerHalf { slot, registered: None }, ReplierHalf { slot })
    }
}

impl<R> Drop for FreeSlot<R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: a free slot is the only way to its memory, which holds neither outcome nor waiter.
        unsafe { free(self.slot) };
    }
}

impl<R> AskerHalf<R> {
    fn slot(&self) -> &Slot<R> {
        // SAFETY: a slot is freed only by its asker, or after the GONE that its asker sets; both consume
        // the asker's half.
        unsafe { self.slot.as_ref() }
    }

    /// Returns whether the outcome is there.
    #[inline]
    pub(crate) fn is_answered(&self) -> bool {
        self.look().is_full()
    }

    #[inline]
    fn look(&self) -> Word {
        // Ordering: Acquire; pairs with the Release half of the exchange in `ReplierHalf::publish`: a thread that sees
        // FULL sees the outcome. And with the Release with which ports leave: a thread that sees no ports comes after
        // all their actions in the slot.
        Word(self.slot().state.load(Ordering::Acquire))
    }

    /// Takes the outcome, and the slot with it if no port is left; gives the asker's half back when there is no outcome
    /// yet.
    #[inline]
    pub(crate) fn take(self) -> Result<(Outcome<R>, Option<FreeSlot<R>>), Self> {
        let word = self.look();
        if word.is_full() { Ok(self.take_full(word)) } else { Err(self) }
    }

    /// Registers `waker`, which is woken when the outcome comes; returns `true` when it is there already (then no waker
    /// is woken).
    pub(crate) fn register(&mut self, waker: &Waker) -> bool {
        let word = self.look();
        if word.is_full() {
            return true;
        }
        if word.is_waiting() && self.registered == Some(identity_of(waker)) {
            // The waker in the slot was alive at the comparison, as `waker` is: not merely an equal address.
            return false;
        }
        // The clone calls user code, so it comes before the slot is touched. The clone's identity counts, which need
        // not be the original's: the address of an original may serve another task later.
        let waker = waker.clone();
        let identity = identity_of(&waker);
        if word.is_waiting() && self.withdraw_waiter() {
            return true;
        }
        // SAFETY: WAITING is not set, and a publication that saw it would have shown as FULL in `withdraw_waiter`: no
        // replier has the waiter.
        let replaced = self.slot().waiter.with_mut(|waiter| unsafe { (*waiter).replace(waker) });
        // Ordering: Release; pairs with the Acquire half of the exchange in `ReplierHalf::publish`: a port that sees
        // WAITING there sees the waiter. No Acquire: if FULL shows, `take` looks again before it reads.
        let word = Word(self.slot().state.fetch_or(WAITING, Ordering::Release));
        self.registered = Some(identity);
        drop_quietly(replaced);
        if word.is_full() {
            // SAFETY: the publication came before WAITING: the waiter stayed the asker's.
            drop_quietly(self.slot().waiter.with_mut(|waiter| unsafe { (*waiter).take() }));
        }
        word.is_full()
    }

    /// Clears WAITING; returns `true` when the replier was first and has the waiter.
    fn withdraw_waiter(&self) -> bool {
        // Ordering: Relaxed; the place of this exchange in the word's history decides which side has the waiter, and
        // nothing is read through it: if FULL shows, `take` looks again before it reads.
        Word(self.slot().state.fetch_and(!WAITING, Ordering::Relaxed)).is_full()
    }

    /// Leaves the ask. A later outcome is late.
    pub(crate) fn leave(self) -> AbandonedAsk<R> {
        let mut word = self.look();
        // A waker may hold a whole task: it must not wait for ports that are kept for long.
        let mut waiter = None;
        if !word.is_full() && word.is_waiting() && !self.withdraw_waiter() {
            // SAFETY: WAITING was cleared before any publication, so no replier has the waiter.
            waiter = self.slot().waiter.with_mut(|waiter| unsafe { (*waiter).take() });
        }
        let left = loop {
            word = self.look();
            if word.is_full() {
                let (outcome, free_slot) = self.take_full(word);
                break AbandonedAsk { outcome: Some(outcome), free_slot };
            }
            // Not a blind `fetch_or`: with FULL and GONE both set the last port would free the slot while
            // the outcome is still in it.
            //
            // Ordering: Release; pairs with the Acquire of the last port in `ReplierHalf::drop`, which frees the slot
            // after all actions here.
            let changed = self.slot().state.compare_exchange(
                word.0,
                word.0 | GONE,
                Ordering::Release,
                Ordering::Relaxed,
            );
            if changed.is_ok() {
                // Without FULL there is a port left (the last one answers before it goes); it frees.
                mem::forget(self);
                break AbandonedAsk { outcome: None, free_slot: None };
            }
        };
        drop_quietly(waiter);
        left
    }

    /// Takes the outcome that `word`, just read with Acquire, shows.
    #[inline]
    fn take_full(self, word: Word) -> (Outcome<R>, Option<FreeSlot<R>>) {
        let slot = self.slot;
        // SAFETY: FULL was seen, so the outcome was written and only the asker touches it; taking it consumes the
        // asker's half, so it is taken once.
        let outcome = self.slot().outcome.with(|outcome| unsafe { (*outcome).assume_init_read() });
        let mut alone = word.ports() == 0;
        if !alone {
            // Ordering: Release; pairs with the Acquire of the last port in `ReplierHalf::drop`, which then frees the
            // slot. Acquire: if the last port has left meanwhile, the slot is the asker's, after the port's Release.
            alone = Word(self.slot().state.fetch_or(GONE, Ordering::AcqRel)).ports() == 0;
        }
        mem::forget(self);
        // If no port is left, the asker has the slot without outcome and waiter: a replier that saw WAITING took the
        // waiter before it left, and the asker took back any other waiter itself.
        let free_slot = if alone { Some(FreeSlot { slot }) } else { None };
        (outcome, free_slot)
    }
}

impl<R> Drop for AskerHalf<R> {
    /// Out of line: hardly any ask is dropped before its outcome.
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // The copy is consumed in place of this half, which is never used again.
        let _ = Self { slot: self.slot, registered: None }.leave();
    }
}

impl<R> ReplierHalf<R> {
    fn slot(&self) -> &Slot<R> {
        // SAFETY: the slot is freed only when the count is 0, and this port is in the count.
        unsafe { self.slot.as_ref() }
    }

    fn look(&self) -> Word {
        // Ordering: Relaxed; the word itself decides, nothing is read through it. A count of 1 cannot be
        // stale: from the moment this port was alone no other could come.
        Word(self.slot().state.load(Ordering::Relaxed))
    }

    /// Returns whether an answer would still reach an asker.
    pub fn is_wanted(&self) -> bool {
        !self.look().is_over()
    }

    /// Answers; gives the outcome back when the ask has been answered already or the asker has left.
    #[inline]
    pub fn answer(self, outcome: Outcome<R>) -> Result<(), Outcome<R>> {
        let word = self.look();
        if word.is_over() {
            return Err(outcome);
        }
        if word.ports() > 1 {
            // Ordering: Relaxed; the claim passes on the right to write. The outcome is published in `publish`, and no
            // port wrote before.
            let before = Word(self.slot().state.fetch_or(CLAIMED, Ordering::Relaxed));
            if before.is_over() {
                return Err(outcome);
            }
        }
        self.publish(outcome)
    }

    /// Steps 2 to 4 of the ports' side; the caller has the claim.
    #[inline]
    fn publish(self, outcome: Outcome<R>) -> Result<(), Outcome<R>> {
        let slot = self.slot();
        // SAFETY: the claim makes this port the only writer, and the asker does not read before FULL.
        slot.outcome.with_mut(|place| unsafe { (*place).write(outcome) });
        let mut word = self.look();
        loop {
            if word.is_gone() {
                // SAFETY: written above and not published: still this port's.
                return Err(slot.outcome.with(|place| unsafe { (*place).assume_init_read() }));
            }
            let stay = word.is_waiting();
            let next = if stay { word.0 | FULL } else { (word.0 | FULL) - PORT };
            // Ordering: Release publishes the outcome (and, when the port leaves with it, all its actions in the slot)
            // to the Acquire in `AskerHalf::look`. Acquire pairs with the Release in `AskerHalf::register`: a port that
            // sees WAITING sees the waiter.
            let exchange =
                slot.state.compare_exchange_weak(word.0, next, Ordering::AcqRel, Ordering::Relaxed);
            match exchange {
                Ok(_) if stay => {
                    // SAFETY: the exchange saw WAITING and set FULL: the waiter is this port's, and its
                    // place in the count keeps the slot.
                    let waiter = slot.waiter.with_mut(|waiter| unsafe { (*waiter).take() });
                    drop(self);
                    wake_quietly(waiter);
                    return Ok(());
                }
                Ok(_) => {
                    mem::forget(self); // it left with the exchange
                    return Ok(());
                }
                Err(now) => word = Word(now),
            }
        }
    }
}

impl<R> Clone for ReplierHalf<R> {
    fn clone(&self) -> Self {
        // Ordering: Relaxed; this port keeps the slot, and the owner of the new port gets it from this thread.
        let before = Word(self.slot().state.fetch_add(PORT, Ordering::Relaxed));
        if before.ports() >= PORTS_MAX {
            // Only forgotten ports get here; going on would end in a freed slot with ports in use.
            std::process::abort();
        }
        Self { slot: self.slot }
    }
}

impl<R> Drop for ReplierHalf<R> {
    fn drop(&mut self) {
        let mut word = self.look();
        while word.ports() > 1 {
            // Ordering: Release; pairs with the Acquire of the side that has the slot alone in the end (below, or in
            // `AskerHalf::look` and `AskerHalf::take_full`), which comes after all actions of this port in the slot.
            let left = self.slot().state.compare_exchange_weak(
                word.0,
                word.0 - PORT,
                Ordering::Release,
                Ordering::Relaxed,
            );
            match left {
                Ok(_) => return,
                Err(now) => word = Word(now),
            }
        }
        if !word.is_over() {
            // The last port, and there was no answer. The copy is consumed in this port's place; when the asker leaves
            // in between, the copy's own drop finds the ask over and takes the path below.
            let _ = Self { slot: self.slot }.publish(Err(AskError::dropped()));
            return;
        }
        // Ordering: Release; pairs with the Acquire in `AskerHalf::look` and `AskerHalf::take_full`, with which the
        // asker sees no ports. Acquire: with GONE the slot is ours, after the asker's and the other ports' Releases.
        let before = Word(self.slot().state.fetch_sub(PORT, Ordering::AcqRel));
        if before.is_gone() {
            // SAFETY: GONE and no ports: this was the last port to reach the slot. The outcome was taken by the
            // asker or taken back by the port that wrote it. The waiter was taken before GONE, or by the port that
            // published.
            unsafe { free(self.slot) };
        }
    }
}

/// Frees a slot.
///
/// # Safety
/// * No other code reaches the slot, now or later.
/// * It holds no outcome and no waiter.
unsafe fn free<R>(slot: NonNull<Slot<R>>) {
    // SAFETY: the caller is the only code that reaches the slot.
    let last = unsafe { slot.as_ref() };
    // No effect, except in models, which check here that no access is concurrent with the end.
    last.outcome.with_mut(|_| ());
    last.waiter.with_mut(|_| ());
    // SAFETY: the caller is the only code that reaches the slot; an outcome would not be dropped, but there is none.
    unsafe { slot.drop_in_place() };
    // SAFETY: every slot's memory comes from `slot_pool::take` in `FreeSlot::take`; its content was dropped.
    unsafe { slot_pool::put_back(slot) };
}

fn identity_of(waker: &Waker) -> WakerIdentity {
    (waker.data(), ptr::from_ref(waker.vtable()))
}

/// Wakes the asker; a panic of its waker must not reach the replier.
fn wake_quietly(waiter: Option<Waker>) {
    if let Some(waker) = waiter {
        quietly(|| waker.wake());
    }
}

/// Drops a waker; its panic must not reach this side.
#[inline]
fn drop_quietly(waiter: Option<Waker>) {
    if waiter.is_some() {
        quietly(|| drop(waiter));
    }
}

/// Runs the other side's code and keeps its panic from this side.
pub(crate) fn quietly(act: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(act)) {
        panic::discard(payload);
    }
}

impl<R> fmt::Debug for AskerHalf<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskerHalf").field("answered", &self.is_answered()).finish()
    }
}

impl<R> fmt::Debug for ReplierHalf<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplierHalf").field("wanted", &self.is_wanted()).finish()
    }
}

impl<R> fmt::Debug for FreeSlot<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreeSlot")
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::FreeSlot;
    use crate::ask::error::AskError;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::{Arc, thread};
    use std::task::{Wake, Waker};

    /// Is never woken.
    struct ParkedAsker;

    impl Wake for ParkedAsker {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn an_ask_that_is_left_lets_go_of_its_waker_however_long_its_ports_are_kept() {
        let sleeper = Arc::new(ParkedAsker);
        let (mut asker, port) = FreeSlot::<i32>::take().begin();
        assert!(!asker.register(&Waker::from(sleeper.clone())));
        assert_eq!(Arc::strong_count(&sleeper), 2);
        drop(asker.leave());
        assert_eq!(Arc::strong_count(&sleeper), 1);
        drop(port);
    }

    #[test]
    fn a_waker_that_panics_when_it_is_let_go_of_harms_neither_who_waits_nor_who_leaves() {
        /// Panics with the last of its wakers.
        struct Sore;

        impl Wake for Sore {
            fn wake(self: Arc<Self>) {}
        }

        impl Drop for Sore {
            fn drop(&mut self) {
                panic!("as told")
            }
        }

        let (mut asker, port) = FreeSlot::take().begin();
        // The rest of each waker is in the slot.
        assert!(!asker.register(&Waker::from(Arc::new(Sore))));
        assert!(!asker.register(&Waker::from(Arc::new(Sore))), "replaces the first");
        drop(asker.leave());
        assert_eq!(port.answer(Ok(7)), Err(Ok(7)));
    }

    #[test]
    fn an_answer_before_the_look_gives_the_slot_back() {
        let (asker, port) = FreeSlot::take().begin();
        let slot = asker.slot;
        assert!(port.is_wanted());
        port.answer(Ok(7)).expect("first");
        let (outcome, free_slot) = asker.take().expect("answered");
        assert_eq!(outcome, Ok(7));
        let free_slot = free_slot.expect("no port is left");
        assert_eq!(free_slot.slot, slot);
        drop(free_slot);
        assert_eq!(FreeSlot::<i32>::take().slot, slot, "the free list gives the slot again");
    }

    #[test]
    fn a_slot_with_ports_is_not_given_back() {
        let (asker, port) = FreeSlot::take().begin();
        let late = port.clone();
        port.answer(Ok(7)).expect("first");
        let (outcome, free_slot) = asker.take().expect("answered");
        assert_eq!(outcome, Ok(7));
        assert!(free_slot.is_none());
        assert!(!late.is_wanted());
        assert_eq!(late.answer(Ok(8)), Err(Ok(8)));
    }

    #[test]
    fn the_last_port_gives_back_the_slot_that_its_asker_has_left() {
        let (asker, port) = FreeSlot::<i32>::take().begin();
        let slot = asker.slot;
        drop(asker.leave());
        let other = port.clone();
        drop(port);
        assert_ne!(FreeSlot::<i32>::take().slot, slot);
        drop(other);
        assert_eq!(FreeSlot::<i32>::take().slot, slot, "the free list gives the slot again");
    }

    #[test]
    fn only_the_last_port_reports_that_nobody_answered() {
        let (asker, port) = FreeSlot::<i32>::take().begin();
        let other = port.clone();
        drop(port);
        assert!(!asker.is_answered());
        drop(other);
        let (outcome, _) = asker.take().expect("answered");
        assert_eq!(outcome, Err(AskError::no_reply()));
    }

    #[test]
    fn an_answer_to_nobody_comes_back() {
        let (asker, port) = FreeSlot::take().begin();
        drop(asker);
        assert!(!port.is_wanted());
        assert_eq!(port.answer(Ok("late")), Err(Ok("late")));
    }

    #[test]
    fn the_same_waker_is_registered_once() {
        let (mut asker, port) = FreeSlot::<i32>::take().begin();
        assert!(!asker.register(Waker::noop()));
        assert!(!asker.register(Waker::noop()));
        drop(port);
        assert!(asker.register(Waker::noop()));
    }

    #[test]
    fn spares_and_halves_pass_through_threads_and_are_looked_at_by_several() {
        let free_slot = thread::spawn(FreeSlot::<Box<i32>>::take).join().expect("no panic");
        let (asker, port) = free_slot.begin();
        thread::scope(|scope| {
            let (asker, port) = (&asker, &port);
            let answering = port.clone();
            scope.spawn(move || answering.answer(Ok(Box::new(7))).expect("the only one"));
            // Each thread looks until the answer is there.
            for _ in 0..2 {
                scope.spawn(move || {
                    while port.clone().is_wanted() || !asker.is_answered() {
                        thread::yield_now();
                    }
                });
            }
        });
        drop(port);
        let taking = thread::spawn(move || asker.take().expect("answered"));
        let (outcome, free_slot) = taking.join().expect("no panic");
        assert_eq!(outcome, Ok(Box::new(7)));
        let free_slot = free_slot.expect("no port is left");
        thread::scope(|scope| drop(scope.spawn(|| assert_eq!(format!("{free_slot:?}"), "FreeSlot"))));
    }

    /// Counts drops of replies, to find lost and doubled ones.
    struct Reply(Arc<AtomicUsize>);

    impl Drop for Reply {
        fn drop(&mut self) {
            // Ordering: Relaxed; read after joining.
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn many_ports_on_many_threads_answer_once() {
        const ROUNDS: usize = if cfg!(miri) { 5 } else { 2_000 };
        const REPLIERS: usize = 4;
        let drops = Arc::new(AtomicUsize::new(0));
        for round in 0..ROUNDS {
            let (mut asker, port) = FreeSlot::take().begin();
            let accepted: usize = thread::scope(|scope| {
                let repliers: Vec<_> = (0..REPLIERS)
                    .map(|_| {
                        let (port, reply) = (port.clone(), Reply(drops.clone()));
                        scope.spawn(move || {
                            let other = port.clone();
                            let accepted = port.answer(Ok(reply)).is_ok();
                            drop(other);
                            usize::from(accepted)
                        })
                    })
                    .collect();
                drop(port);
                // Every other round the asker leaves in the middle of it.
                let taken = if round % 2 == 0 {
                    let waker = crate::ask::ask::thread_waker();
                    while !asker.register(&waker) {
                        thread::park();
                    }
                    let (outcome, _) = asker.take().unwrap_or_else(|_| panic!("registered as answered"));
                    usize::from(outcome.is_ok())
                } else {
                    usize::from(matches!(asker.leave().outcome, Some(Ok(_))))
                };
                let accepted = repliers.into_iter().map(|it| it.join().expect("no panic")).sum();
                assert_eq!(accepted, taken);
                if round % 2 == 0 {
                    assert_eq!(taken, 1);
                }
                accepted
            });
            assert!(accepted <= 1);
        }
        // Ordering: Relaxed; all threads are joined.
        assert_eq!(drops.load(Ordering::Relaxed), ROUNDS * REPLIERS);
    }
}
