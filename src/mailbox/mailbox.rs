//! The mailbox consists of a gate, the senders' side and the owner's side.

use crate::mailbox::backpressure::{NotFullNotify, NotFullWait, WakerPlace};
use crate::mailbox::block::{Block, Shape};
use crate::mailbox::bounded::{Bound, DisplacingQueue, Policy};
use crate::mailbox::chain::{ChainPosition, Cursor};
use crate::mailbox::priority::PriorityOrder;
use crate::mailbox::slot::Slot;
use crate::mailbox::state::{MailboxState, StateWord};
use crate::mailbox::system_queue::{Batch, Position, SystemQueue};
use crate::measure::meter::Measured;

use crate::sync::Arc;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::util::panic;
use std::any::Any;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::task::Waker;
use std::time::Instant;

/// The part of a mailbox that does not depend on the type of its messages.
///
/// `H` is the part of the cell on the senders' cache line, and lies at offset 0; 40 bytes of it fill the line. `S` is
/// the type of control messages. Nothing here is padded or over-aligned, so a reference to the gate covers no byte of
/// the inline slot behind it. The surrounding cell must be aligned to a cache line.
#[repr(C)]
pub(crate) struct Gate<H, S> {
    pub header: H,
    pub(crate) word: StateWord,
    /// A block from which the next claim is a short walk; bit 0 is the epoch of its chain.
    pub(crate) tail_block: AtomicPtr<Block>,
    /// The index of a claim on the idle mailbox: the sender that gets this index and sees IDLE uses the inline slot.
    pub(crate) inline_index: AtomicU64,
    // The fields up to here belong to the senders, the fields from here on to the owner.
    /// The number of messages handed to the actor, or displaced in a displacing mailbox, so far. The senders of a
    /// displacing mailbox change it too, by read-modify-writes.
    pub(crate) head: AtomicU64,
    /// The chain installed in this epoch, until the owner has adopted it.
    pub(crate) first_block: AtomicPtr<Block>,
    pub(crate) cursor: UnsafeCell<Cursor>,
    /// The number of claims that hold; meaningful once closed.
    close_index: AtomicU64,
    system_queue: SystemQueue<S>,
}

// SAFETY: senders change atomics and the system queue, which moves `S` between threads. `cursor` belongs to the owner,
// and the token that makes a thread the owner moves by Release and Acquire on `word`.
unsafe impl<H: Send, S: Send> Send for Gate<H, S> {}
// SAFETY: as above; `header` is shared.
unsafe impl<H: Sync, S: Send> Sync for Gate<H, S> {}

#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
const _: () = {
    type Packed = Gate<[u64; 5], ()>;
    assert!(std::mem::offset_of!(Packed, header) == 0);
    assert!(std::mem::offset_of!(Packed, head) == 64 || size_of::<usize>() != 8);
    assert!(size_of::<Packed>() == 112 || size_of::<usize>() != 8);
    struct Line(#[allow(dead_code, reason = "for its size")] [u64; 5]);
    impl Measured for Line {}
    assert!(std::mem::offset_of!(Mailbox<Line, (), u64>, inline) == 128 || size_of::<usize>() != 8);
};

/// A mailbox for messages of type `M`; see the [module](self).
#[repr(C)]
pub(crate) struct Mailbox<H: Measured, S, M> {
    pub gate: Gate<H, S>,
    /// Dropped by the mailbox's own `drop`, where most mailboxes have nothing to do for it.
    policy: ManuallyDrop<Option<Box<Policy<M>>>>,
    /// The first block that may have claims not yet published, or a block before it, and never beyond `tail_block`. Bit
    /// 0 is the epoch, as in `tail_block`. Senders change the pointer only once per block.
    pub(crate) settled_block: AtomicPtr<Block>,
    /// Begins a cache line: the sender that wakes the actor writes this slot, and would otherwise take the owner's line
    /// along.
    pub(crate) inline: Slot<M>,
}

// SAFETY: see `Gate`; messages move from senders to the owner.
unsafe impl<H: Measured + Send, S: Send, M: Send> Send for Mailbox<H, S, M> {}
// SAFETY: as above; no thread gets a reference to a message in here.
unsafe impl<H: Measured + Sync, S: Send, M: Send> Sync for Mailbox<H, S, M> {}

/// The duty that an accepted push leaves to its caller.
#[must_use = "whoever is told to wake holds the token and must schedule the actor"]
pub(crate) enum Pushed<M> {
    /// No duty: the actor will run anyway.
    Queued,
    /// The caller holds the ownership token now, and must schedule the actor.
    Wake,
    /// The message displaced the oldest message.
    Displaced {
        oldest: M,
        /// As [`Wake`](Self::Wake).
        wake: bool,
    },
}

/// The reason why a push was refused; the message comes back.
pub(crate) enum Refused<M> {
    /// The mailbox is at its capacity.
    Full(M),
    /// The mailbox is closed for good.
    Closed(M),
}

/// The duty that an accepted control message leaves to its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "whoever is told to wake holds the token and must schedule the actor"]
pub(crate) enum SystemPushed {
    /// No duty: the owner will look at the system queue.
    Queued,
    /// The caller holds the ownership token now, and must schedule the actor.
    Wake,
}

/// A load snapshot of a mailbox; of several states that hold, the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadSnapshot {
    /// The mailbox takes no more messages.
    Closed,
    /// The owner has set that the actor takes no user messages for now; see [`Owner::set_suspended`].
    Suspended,
    /// No thread runs the actor, and no message is queued.
    Idle,
    /// A thread runs the actor or is about to.
    Busy {
        /// The number of messages that are accepted and not yet taken.
        queued: u64,
    },
}

/// The state of the next message, as the owner finds it.
pub(crate) enum Ready<'o, 'a, H: Measured, S, M> {
    /// A message, still in its place.
    Message(PeekedMessage<'o, 'a, H, S, M>),
    /// No index was claimed beyond the head: the owner should go idle.
    Empty,
    /// The next message is claimed and not published yet: the owner should come back later.
    Busy,
    /// In a priority mailbox the user's function that ranks a message has panicked. The message has gone behind all
    /// other messages; the panic is returned once.
    Panicked(Box<dyn Any + Send>),
}

/// The state of a closed mailbox.
pub(crate) enum DrainStep<M> {
    /// The next message that was accepted before the close.
    Message(M),
    /// The next message is claimed and not published yet: the owner should come back later.
    Busy,
    /// All accepted messages have been taken.
    Done,
}

impl<H, S> Gate<H, S> {
    fn new(header: H, limited: bool) -> Self {
        Self {
            header,
            word: StateWord::new(limited),
            tail_block: AtomicPtr::new(ptr::null_mut()),
            inline_index: AtomicU64::new(0),
            head: AtomicU64::new(0),
            first_block: AtomicPtr::new(ptr::null_mut()),
            cursor: UnsafeCell::new(Cursor::NONE),
            close_index: AtomicU64::new(0),
            system_queue: SystemQueue::new(),
        }
    }

    /// Sends a control message; hands it back when the system queue is closed.
    ///
    /// Works on a closed mailbox as long as its system queue is open.
    pub(crate) fn send_system(&self, message: S, position: Position) -> Result<SystemPushed, S> {
        self.system_queue.push(message, position)?;
        Ok(if self.word.announce_system() { SystemPushed::Wake } else { SystemPushed::Queued })
    }

    /// Gives the actor a turn, or a further look if it already has a turn. Returns true if the caller holds the token
    /// now and must schedule the actor. The wakeup has no node in the system queue: it allocates nothing, and an owner
    /// sees it only by [`Owner::try_idle_unless_woken`].
    #[must_use = "who holds the token must schedule the actor"]
    pub(crate) fn request_look(&self) -> bool {
        self.word.announce_system()
    }

    /// Takes the token of a new mailbox for the first turn of its actor. Returns false if a message came first: the
    /// sender of that message then has the token. Before any other thread knows the mailbox, the call always returns
    /// true.
    pub(crate) fn begin(&self) -> bool {
        self.word.wake_idle()
    }

    /// Returns the index behind all claims that the caller made or knows of, for [`Position::At`].
    pub(crate) fn position(&self) -> u64 {
        self.word.look_acquire().index()
    }

    /// Returns the number of messages that are accepted and not yet taken, unpublished messages included. The number is
    /// never below 0. It is exact when no thread sends meanwhile; otherwise it was true during the call, or nearly so.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        let mut before = self.word.look_acquire();
        let mut tries = 3;
        loop {
            // Ordering: Acquire; pairs with the Release of `head` in `PeekedMessage::take`. Message h is claimed before head is
            // h + 1, so the word read below has an index of at least this head.
            let head = self.head.load(Ordering::Acquire);
            let after = self.word.look_acquire();
            tries -= 1;
            if before.index() == after.index() || tries == 0 {
                if !after.is_closed() {
                    return after.index() - head;
                }
                // Relaxed: no memory is read through this number. Until the store is seen, the result is that no
                // messages are left.
                return self.close_index.load(Ordering::Relaxed).saturating_sub(head);
            }
            before = after;
        }
    }

    /// Returns whether no thread runs the actor, the mailbox has no message, and no control message is on its way. A
    /// caller that gets true sees everything that the owners have done until the last owner laid the token down.
    #[cfg(any(feature = "testkit", feature = "remote", pointsman_loom))]
    pub(crate) fn is_at_rest(&self) -> bool {
        // Before the word. Ordering: Acquire; pairs with the Release of `head` in `PeekedMessage::take` and of a displacement.
        // For a message that this head counts as taken, the word below is later than its claim and its wake-up.
        let head = self.head.load(Ordering::Acquire);
        let state = self.word.look_acquire();
        // Relaxed: written before the token was laid down, which the word shows.
        let index = if state.is_closed() { self.close_index.load(Ordering::Relaxed) } else { state.index() };
        state.is_unowned() && !state.has_system_flag() && index == head
    }

    /// Returns whether no thread runs the actor or is about to.
    #[cfg(feature = "testkit")]
    pub(crate) fn has_no_turn(&self) -> bool {
        self.word.look_acquire().is_unowned()
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.word.look_acquire().is_closed()
    }

    /// Returns the load snapshot that routers choose by: one load of the word, and one of the head where the word does
    /// not say enough.
    ///
    /// Cheaper than [`len`](Self::len), and less exact while other threads send: the result counts the messages queued
    /// when the word was read, less those taken when the head was read. Exact when no thread sends meanwhile.
    #[inline]
    pub(crate) fn load_snapshot(&self) -> LoadSnapshot {
        let state = self.word.look_acquire();
        if !state.is_busy() {
            if state.is_closed() {
                return LoadSnapshot::Closed;
            }
            if state.is_suspended() {
                return LoadSnapshot::Suspended;
            }
            // IDLE alone does not mean empty: a sender may have claimed and not yet woken the actor.
            if state.index() == self.inline_index.load(Ordering::Relaxed) {
                return LoadSnapshot::Idle;
            }
        }
        // Relaxed: nothing is read through this load, and the Acquire of the word keeps the load behind it. So the head
        // may have passed the index.
        LoadSnapshot::Busy { queued: state.index().saturating_sub(self.head.load(Ordering::Relaxed)) }
    }
}

impl<H: Measured, S, M> Mailbox<H, S, M> {
    /// Makes a mailbox that takes any number of messages.
    pub(crate) fn unbounded(header: H) -> Self {
        Self::with(Gate::new(header, false), None)
    }

    /// Makes a mailbox that refuses when `capacity` messages are queued. With `waiting`, threads may wait for room by
    /// [`push_waiting`](Self::push_waiting), which costs the owner a fence per message. Wakers may wait in either.
    pub(crate) fn bounded(header: H, capacity: NonZeroUsize, waiting: bool) -> Self {
        Self::with_policy(header, true, Policy::Refuse(Bound::new(capacity, waiting)))
    }

    /// Makes a displacing mailbox: it keeps the newest `capacity` messages, and hands the oldest to the sender that
    /// displaces it. It may hold one more message while the owner looks at that message.
    pub(crate) fn ring(header: H, capacity: NonZeroUsize) -> Self {
        Self::with_policy(header, true, Policy::Displace(DisplacingQueue::new(capacity.get())))
    }

    /// Makes a priority mailbox, which hands messages to the owner as `order` says. With a bound, whose second part is
    /// `waiting`, it refuses as [`bounded`](Self::bounded) does.
    pub(crate) fn ordered(header: H, order: PriorityOrder<M>, bound: Option<(NonZeroUsize, bool)>) -> Self {
        let bound = bound.map(|(capacity, waiting)| Bound::new(capacity, waiting));
        Self::with_policy(header, bound.is_some(), Policy::Sort(order, bound))
    }

    fn with_policy(header: H, limited: bool, policy: Policy<M>) -> Self {
        Self::with(Gate::new(header, limited), Some(Box::new(policy)))
    }

    fn with(gate: Gate<H, S>, policy: Option<Box<Policy<M>>>) -> Self {
        let policy = ManuallyDrop::new(policy);
        Self { gate, inline: Slot::new(), policy, settled_block: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Sends a message; never waits.
    #[inline]
    pub(crate) fn push(&self, message: M) -> Result<Pushed<M>, Refused<M>> {
        self.push_or(message, || Ok(Pushed::Queued), |claimed, message| self.push_slow(claimed, message))
    }

    /// Sends a message to an open, unbounded mailbox whose actor will run anyway, and returns `queued()`. In all other
    /// cases it calls `otherwise`, which must [go on](Self::push_slow) with its arguments. So the usual case has no
    /// outcome to check, and the caller need not inline the rest. `queued` is a function, since the other cases would
    /// have to drop a value. `otherwise` must go on before it does anything else: the claim may already be made (M5).
    #[inline(always)]
    pub(crate) fn push_or<R>(
        &self,
        message: M,
        queued: impl FnOnce() -> R,
        otherwise: impl FnOnce(Option<MailboxState>, M) -> R,
    ) -> R {
        if !self.gate.word.look().is_plain_and_unbounded() {
            return otherwise(None, message);
        }
        let old = self.gate.word.claim();
        if !old.is_plain() {
            return otherwise(Some(old), message);
        }
        self.publish_in_block(old.index(), old.epoch(), message);
        queued()
    }

    /// As [`push`](Self::push), but waits for room, until the deadline if there is one; after the deadline it returns
    /// `Full`.
    ///
    /// Only mailboxes made with `waiting` wait. Workers must not call this: the actor that would make room may need the
    /// worker's thread.
    pub(crate) fn push_waiting(
        &self,
        message: M,
        deadline: Option<Instant>,
    ) -> Result<Pushed<M>, Refused<M>> {
        let message = match self.push(message) {
            Err(Refused::Full(message)) => message,
            done => return done,
        };
        let Some(room) = self.room_for_threads() else { return Err(Refused::Full(message)) };
        let mut message = Some(message);
        let outcome = room.wait(deadline, || match self.push(message.take()?) {
            Err(Refused::Full(refused)) => {
                message = Some(refused);
                None
            }
            done => Some(done),
        });
        match (outcome, message) {
            (Some(done), _) => done,
            (None, Some(message)) => Err(Refused::Full(message)),
            (None, None) => unreachable!("the message is either refused or pushed"),
        }
    }

    /// As [`push`](Self::push), and in a mailbox that refuses at its capacity also beyond that capacity.
    pub(crate) fn push_beyond(&self, message: M) -> Result<Pushed<M>, Refused<M>> {
        match self.policy.as_deref().and_then(Policy::bound) {
            Some(_) => self.push_bounded(u64::MAX, message),
            None => self.push(message),
        }
    }

    /// Rings `bell` whenever there may be room, until it is dismissed. Only mailboxes made with `waiting` do so.
    pub(crate) fn enlist(&self, bell: &Arc<NotFullNotify>) {
        if let Some(room) = self.room_for_threads() {
            room.enlist(bell);
        }
    }

    /// Undoes a single [`enlist`](Self::enlist).
    pub(crate) fn dismiss(&self, bell: &Arc<NotFullNotify>) {
        if let Some(room) = self.room_for_threads() {
            room.dismiss(bell);
        }
    }

    /// Wakes `waker` when there may be room, once, until the place is left. Any mailbox that refuses at its capacity
    /// does so. Returns false if a wake may be missed, and the caller must look again by itself.
    #[must_use = "the caller must look again by itself if a wake may be missed"]
    pub(crate) fn enter_waker(&self, place: &mut WakerPlace, waker: &Waker) -> bool {
        self.room().is_none_or(|room| room.enter(place, waker))
    }

    /// Undoes [`enter_waker`](Self::enter_waker). No waker is kept after that.
    pub(crate) fn leave_wakers(&self, place: &mut WakerPlace) {
        if let Some(room) = self.room() {
            room.leave(place);
        }
    }

    /// Changes the capacity of a mailbox that refuses; returns false if it has no such bound. Shrinking drops nothing:
    /// the mailbox refuses until it holds fewer messages. Growing wakes the senders that wait for room.
    pub(crate) fn set_capacity(&self, capacity: NonZeroUsize) -> bool {
        let bound = self.policy.as_ref().and_then(|policy| policy.bound());
        bound.map(|bound| bound.set_capacity(capacity)).is_some()
    }

    /// The most messages that wait, where further ones are refused or wait to be sent; `None` without such a bound.
    #[cfg(feature = "remote")]
    pub(crate) fn capacity(&self) -> Option<u64> {
        self.policy.as_ref()?.bound().map(|bound| bound.capacity())
    }

    /// Whether a further message takes the place of the oldest.
    #[cfg(feature = "remote")]
    pub(crate) fn displaces(&self) -> bool {
        matches!(self.policy.as_deref(), Some(Policy::Displace(_)))
    }

    /// Returns whether this is another mailbox than the plain one.
    #[inline]
    pub(crate) fn has_policy(&self) -> bool {
        self.policy.is_some()
    }

    /// Returns how many messages a displacing mailbox has handed to the senders that displaced them; 0 for any other.
    pub(crate) fn displaced(&self) -> u64 {
        match self.policy.as_deref() {
            Some(Policy::Displace(ring)) => ring.displaced(),
            _ => 0,
        }
    }

    /// Returns whether the mailbox is below its capacity, or has none. True at the moment of the look.
    #[cfg(feature = "tower")]
    pub(crate) fn has_room(&self) -> bool {
        let bound = self.policy.as_ref().and_then(|policy| policy.bound());
        bound.is_none_or(|bound| self.gate.len() < bound.capacity())
    }

    fn room(&self) -> Option<&NotFullWait> {
        self.policy.as_ref().and_then(|policy| policy.room())
    }

    /// The room of a mailbox made with `waiting`.
    fn room_for_threads(&self) -> Option<&NotFullWait> {
        self.room().filter(|room| room.has_threads())
    }

    /// Does all cases but the usual push: idle, closed, or limited. Completes the claim if one was made.
    #[inline]
    pub(crate) fn push_slow(
        &self,
        claimed: Option<MailboxState>,
        message: M,
    ) -> Result<Pushed<M>, Refused<M>> {
        if let Some(old) = claimed {
            return self.finish(old, message);
        }
        let seen = self.gate.word.look();
        // One exchange claims and takes the token. Equal words are equal states, whatever lay between.
        if seen.is_idle_and_unbounded() && self.gate.word.try_claim(seen).is_ok() {
            self.publish(seen, message);
            return Ok(Pushed::Wake);
        }
        if seen.is_fresh_and_unbounded() && self.gate.word.try_claim(seen).is_ok() {
            self.publish(seen, message);
            return Ok(Pushed::Queued);
        }
        self.push_otherwise(message)
    }

    #[inline(never)]
    fn push_otherwise(&self, message: M) -> Result<Pushed<M>, Refused<M>> {
        if let Some(policy) = &*self.policy {
            match &**policy {
                Policy::Displace(ring) => return self.push_displacing(ring, message),
                Policy::Refuse(bound) => return self.push_bounded(bound.capacity(), message),
                Policy::Sort(order, Some(bound)) => {
                    return match self.push_bounded(bound.capacity(), message) {
                        // User code, and no claim is made (M5).
                        Err(Refused::Full(message)) if order.takes_beyond(&message) => {
                            self.push_bounded(u64::MAX, message)
                        }
                        done => done,
                    };
                }
                // Only the owner uses the order.
                Policy::Sort(_, None) => {}
            }
        }
        if self.gate.word.look().is_closed() {
            // Refused without a claim: the index of a closed mailbox is left alone where possible.
            return Err(Refused::Closed(message));
        }
        let old = self.gate.word.claim();
        self.finish(old, message)
    }

    /// Completes a claim made in state `old` without the token.
    #[cold]
    #[inline(never)]
    fn finish(&self, old: MailboxState, message: M) -> Result<Pushed<M>, Refused<M>> {
        if old.is_closed() {
            return Err(Refused::Closed(message));
        }
        self.publish(old, message);
        Ok(if self.wake_after(old) { Pushed::Wake } else { Pushed::Queued })
    }

    /// Takes the token, after publishing, for a sender that claimed on an idle word. Returns whether the sender got it.
    fn wake_after(&self, old: MailboxState) -> bool {
        old.is_idle() && self.gate.word.wake_idle()
    }

    fn push_bounded(&self, capacity: u64, message: M) -> Result<Pushed<M>, Refused<M>> {
        let mut seen = self.gate.word.look_acquire();
        loop {
            if seen.is_closed() {
                return Err(Refused::Closed(message));
            }
            // Relaxed: the head is only compared. A thread that sees the claim made by it sees no older head, for the
            // claim is released behind this load. The head does not decide when a slot may be used again.
            let head = self.gate.head.load(Ordering::Relaxed);
            // The head may be ahead of a stale word; the exchange fails then.
            if seen.index().saturating_sub(head) >= capacity {
                return Err(Refused::Full(message));
            }
            match self.gate.word.try_claim(seen) {
                Ok(()) => break,
                Err(now) => seen = now,
            }
        }
        self.publish(seen, message);
        Ok(if seen.is_idle() { Pushed::Wake } else { Pushed::Queued })
    }

    fn push_displacing(&self, ring: &DisplacingQueue<M>, message: M) -> Result<Pushed<M>, Refused<M>> {
        let seen = self.gate.word.look();
        if seen.is_closed() {
            return Err(Refused::Closed(message));
        }
        let (old, woke) = if seen.is_idle() && self.gate.word.try_claim(seen).is_ok() {
            (seen, true)
        } else {
            (self.gate.word.claim(), false)
        };
        if old.is_closed() {
            return Err(Refused::Closed(message));
        }
        let displaced = ring.push(old.index(), message);
        if displaced.is_some() {
            // Ordering: Release; pairs with the Acquire load of `head` in `Gate::len`: the claim of the displaced
            // message, which the ring has shown us, comes before.
            self.gate.head.fetch_add(1, Ordering::Release);
            ring.count_displaced();
        }
        let wake = woke || self.wake_after(old);
        Ok(match displaced {
            Some(oldest) => Pushed::Displaced { oldest, wake },
            None if wake => Pushed::Wake,
            None => Pushed::Queued,
        })
    }

    /// Returns whether the mailbox takes any number of messages.
    #[inline]
    pub(crate) fn is_unbounded(&self) -> bool {
        !self.gate.word.look().is_limited()
    }

    /// Sends the messages in their order, with one claim for all of them, to a mailbox without a bound. Returns whether
    /// the caller holds the token now and must schedule the actor, or `None` if the mailbox is closed: then the messages
    /// stay where they are.
    ///
    /// All entries are `Some` before, and all are `None` behind a push.
    pub(crate) fn push_many(&self, messages: &mut [Option<M>]) -> Option<bool> {
        debug_assert!(self.is_unbounded(), "a bound needs a look for each message");
        debug_assert!(messages.iter().all(Option::is_some), "a claim without a message is never published");
        // An index of a closed mailbox is left alone where possible.
        if self.gate.word.look().is_closed() {
            return None;
        }
        let old = self.gate.word.claim_many(messages.len());
        if old.is_closed() {
            return None;
        }
        // Nothing unwinds from here on (M5).
        let mut index = old.index();
        let mut messages = messages.iter_mut().filter_map(Option::take);
        if self.goes_inline(old) {
            if let Some(message) = messages.next() {
                // SAFETY: as in `publish`.
                unsafe { self.inline.publish(message, index + 1) };
                index += 1;
            }
        }
        let mut next = messages.next();
        while let Some(message) = next {
            let block = self.find_block(index, old.epoch());
            // SAFETY: as in `publish_in_block`.
            let (start, generation) = unsafe { (Block::start(block), Block::generation(block)) };
            let mut number = (index - start) as usize;
            // SAFETY: `find_block` returns the block with this index.
            unsafe { (*Shape::<M>::slot(block, number)).publish(message, generation) };
            loop {
                (index, number, next) = (index + 1, number + 1, messages.next());
                if number == Shape::<M>::SLOTS {
                    break;
                }
                let Some(message) = next.take() else { break };
                // SAFETY: the block has this index, and keeps its place in the chain until the index is published (M2).
                unsafe { (*Shape::<M>::slot(block, number)).publish(message, generation) };
            }
        }
        Some(self.wake_after(old))
    }

    /// Writes the message to the place of the claim made in state `old`.
    fn publish(&self, old: MailboxState, message: M) {
        let index = old.index();
        if self.goes_inline(old) {
            // SAFETY: only this claim has this index. It saw IDLE, and the last message of the slot was taken before
            // the token was laid down; or it is the first claim.
            unsafe { self.inline.publish(message, index + 1) };
        } else {
            self.publish_in_block(index, old.epoch(), message);
        }
    }

    /// Returns whether the message of the claim made in state `old` travels inline: the message that wakes an idle
    /// actor, and the first message of all.
    #[inline]
    fn goes_inline(&self, old: MailboxState) -> bool {
        // Relaxed: the Acquire of the claim has made the value of the last idle transition visible (M4).
        old.is_first() || old.is_idle() && old.index() == self.gate.inline_index.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn publish_in_block(&self, index: u64, epoch: usize, message: M) {
        let block = self.find_block(index, epoch);
        // SAFETY: the block is of our chain, which cannot be released while our claim is unpublished (M2).
        let (start, generation) = unsafe { (Block::start(block), Block::generation(block)) };
        // SAFETY: `find_block` returns the block with this index.
        let slot = unsafe { &*Shape::<M>::slot(block, (index - start) as usize) };
        // SAFETY: only this claim has this index, and has not used it before.
        unsafe { slot.publish(message, generation) };
    }

    /// Returns the owner's view.
    ///
    /// # Safety
    /// The caller holds the ownership token: it was told to [`Wake`](Pushed::Wake), or got the token from a holder that
    /// was, and has not laid the token down since. There is only one view at a time.
    pub(crate) unsafe fn owner(&self) -> Owner<'_, H, S, M> {
        // SAFETY: the caller's promise.
        unsafe { Owner::from_raw(NonNull::from(self)) }
    }
}

impl<H: Measured, S, M> Drop for Mailbox<H, S, M> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: no other view exists, wherever the token is.
        let owner = unsafe { self.owner() };
        let panic = drop_each(|| match owner.ready_unsorted() {
            Ready::Message(front) => Some(front.take()),
            Ready::Empty | Ready::Busy | Ready::Panicked(_) => None,
        });
        // SAFETY: as above. `ready_unsorted` has adopted any chain that was installed for a message.
        let cursor =
            self.gate.cursor.with_mut(|cursor| unsafe { std::mem::replace(&mut *cursor, Cursor::NONE) });
        // SAFETY: no other thread uses the mailbox, and all messages are out.
        unsafe { Shape::<M>::release_chain(cursor.oldest) };
        if self.policy.is_some() {
            *self.policy = None;
        }
        propagate(panic);
    }
}

/// The owner is the holder of the ownership token.
///
/// Dropping the view does nothing: the token stays with the dropping thread, which hands it on or lays it down by
/// [`try_idle`](Self::try_idle) or [`try_suspend`](Self::try_suspend).
pub(crate) struct Owner<'a, H: Measured, S, M> {
    /// A pointer and not a reference: once the token is laid down, the mailbox may be freed while the call returns.
    mailbox: NonNull<Mailbox<H, S, M>>,
    lifetime: PhantomData<&'a Mailbox<H, S, M>>,
}

impl<'a, H: Measured, S, M> Owner<'a, H, S, M> {
    /// # Safety
    /// As [`Mailbox::owner`]; the mailbox stays in its place as long as the token is not laid down. For
    /// [`ready`](Self::ready) the pointer is valid for the whole actor that begins with the mailbox.
    pub(crate) unsafe fn from_raw(mailbox: NonNull<Mailbox<H, S, M>>) -> Self {
        Self { mailbox, lifetime: PhantomData }
    }

    fn mailbox(&self) -> &Mailbox<H, S, M> {
        // SAFETY: alive by the promise given to `from_raw`.
        unsafe { self.mailbox.as_ref() }
    }

    pub(crate) fn gate(&self) -> &Gate<H, S> {
        &self.mailbox().gate
    }

    /// Returns the number of messages handed to the actor, or displaced in a displacing mailbox, so far.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.gate().head.load(Ordering::Relaxed)
    }

    /// Looks for the next message and leaves it in its place, so that the owner can look at the system queue before it
    /// takes the message. A control message sent before a user message is then seen before it.
    #[inline(always)]
    pub(crate) fn ready(&mut self) -> Ready<'_, 'a, H, S, M> {
        match self.mailbox().policy.as_deref() {
            None | Some(Policy::Refuse(_)) => self.ready_at::<true>(self.head()),
            Some(Policy::Displace(ring)) => self.ready_in_ring(ring),
            Some(Policy::Sort(order, _)) => match self.sort(order) {
                Ok(()) => self.ready_unsorted(),
                Err(panic) => Ready::Panicked(panic),
            },
        }
    }

    /// Looks for the message of index `head`. With `MEASURES`, a message that is found has waited until now.
    #[inline(always)]
    fn ready_at<const MEASURES: bool>(&self, head: u64) -> Ready<'_, 'a, H, S, M> {
        // SAFETY: we are the owner, and the pointer is valid for as much as the promise given to `from_raw` says.
        match unsafe { Mailbox::locate::<MEASURES>(self.mailbox, head) } {
            // The slot pointer is never null.
            ChainPosition::Slot(slot) => Ready::Message(PeekedMessage {
                owner: self,
                index: head,
                slot: NonNull::new(slot.cast_mut()),
            }),
            ChainPosition::Nowhere => self.nothing_ready(head),
        }
    }

    #[inline(never)]
    fn ready_in_ring(&self, ring: &DisplacingQueue<M>) -> Ready<'_, 'a, H, S, M> {
        // SAFETY: we are the owner.
        match unsafe { ring.fetch_front() } {
            Some(index) => Ready::Message(PeekedMessage { owner: self, index, slot: None }),
            None => self.nothing_ready(self.head()),
        }
    }

    /// As [`ready`](Self::ready), and runs no user code. In a priority mailbox, messages not yet in the order come
    /// behind the messages in the order, as they were sent.
    fn ready_unsorted(&self) -> Ready<'_, 'a, H, S, M> {
        match self.mailbox().policy.as_deref() {
            Some(Policy::Displace(ring)) => self.ready_in_ring(ring),
            // SAFETY: we are the owner.
            Some(Policy::Sort(order, _)) => match unsafe { order.lowest() } {
                Some(index) => Ready::Message(PeekedMessage { owner: self, index, slot: None }),
                None => self.ready_at::<false>(self.head()),
            },
            None | Some(Policy::Refuse(_)) => self.ready_at::<false>(self.head()),
        }
    }

    /// Moves published messages to the order. It stops at a panic of the user's function and returns the panic.
    #[inline(never)]
    fn sort(&self, order: &PriorityOrder<M>) -> Result<(), Box<dyn Any + Send>> {
        let mailbox = self.mailbox();
        // SAFETY: we are the owner.
        let mut next = self.head() + unsafe { order.len() };
        let mut end = None;
        // SAFETY: we are the owner. A message that is sorted waits on.
        while let ChainPosition::Slot(slot) = unsafe { Mailbox::locate::<false>(self.mailbox, next) } {
            // The end is the index of the claims at the beginning: senders that go on must not keep the owner here.
            let end = *end.get_or_insert_with(|| mailbox.gate.word.look().index());
            // SAFETY: we own the mailbox and saw the stamp; the order grows below, so this happens once.
            let message = unsafe { (*slot).take() };
            // SAFETY: we are the owner; messages come in the order of their indices.
            unsafe { order.insert(next, message) }?;
            next += 1;
            if next >= end {
                break;
            }
        }
        Ok(())
    }

    #[cold]
    fn nothing_ready(&self, head: u64) -> Ready<'_, 'a, H, S, M> {
        let state = self.gate().word.look_acquire();
        // Refused claims move the index of a closed mailbox, but lead to no slot.
        let end =
            if state.is_closed() { self.gate().close_index.load(Ordering::Relaxed) } else { state.index() };
        if end == head { Ready::Empty } else { Ready::Busy }
    }

    /// Returns true if each message with a claim below `index` has been taken or displaced, at least the messages of
    /// each single sender. A control message at that position is then due.
    ///
    /// In a displacing mailbox messages of different senders may lie in another order than their claims. There the
    /// answer is about the message that [`ready`](Self::ready) has shown, and is exact for each sender.
    pub(crate) fn has_reached(&self, index: u64) -> bool {
        let front = match self.mailbox().policy.as_deref() {
            // SAFETY: we are the owner.
            Some(Policy::Displace(ring)) => unsafe { ring.front() },
            // SAFETY: as above.
            Some(Policy::Sort(order, _)) => unsafe { order.lowest() },
            None | Some(Policy::Refuse(_)) => None,
        };
        front.unwrap_or_else(|| self.head()) >= index
    }

    /// Returns true if the system queue has a control message; a plain load.
    #[inline(always)]
    pub(crate) fn has_system(&self) -> bool {
        self.gate().system_queue.has_any()
    }

    /// Returns true if there may be a user message: one that was claimed and not taken. On a closed mailbox the result
    /// is also true for ever after one message was refused. Two plain loads.
    #[inline(always)]
    pub(crate) fn has_claims(&self) -> bool {
        self.gate().word.look().index() != self.head()
    }

    /// Makes [`try_idle_unless_woken`](Self::try_idle_unless_woken) ignore earlier wakeups: the caller then looks at
    /// their reasons itself.
    pub(crate) fn clear_wakeups(&self) {
        if self.gate().word.look().has_system_flag() {
            self.gate().word.clear_system();
        }
    }

    /// Takes all control messages, oldest first.
    ///
    /// SYSTEM stays as it is. It is cleared where the token is laid down; there a look at the system queue lies between
    /// the clearing and the exchange.
    pub(crate) fn take_system(&mut self) -> Batch<S> {
        self.gate().system_queue.take()
    }

    /// Tells observers whether the actor takes user messages. The flag is only advice: the owner itself must know.
    pub(crate) fn set_suspended(&mut self, suspended: bool) {
        self.gate().word.set_suspended(suspended);
    }

    /// Lays the token down if there is nothing to do. `Err` returns the view because there is something: the owner must
    /// look at the system queue and at [`ready`](Self::ready) again. Never succeeds on a closed mailbox.
    #[inline]
    pub(crate) fn try_idle(self) -> Result<(), Self> {
        let Some(seen) = self.system_queue_is_empty() else { return Err(self) };
        self.go_idle(seen)
    }

    /// As [`try_idle`](Self::try_idle), and fails after a [wakeup](Gate::request_look), once for any number of wakeups: the
    /// caller then looks at their reasons.
    pub(crate) fn try_idle_unless_woken(self) -> Result<(), Self> {
        let seen = self.gate().word.look();
        if seen.has_system_flag() {
            // A wakeup, or a control message that was taken since: the two look alike.
            self.gate().word.clear_system();
            return Err(self);
        }
        if self.gate().system_queue.has_any() {
            return Err(self);
        }
        self.go_idle(seen)
    }

    /// Lays the token down; the caller has looked at the system queue when the word was `seen`.
    #[inline]
    fn go_idle(self, seen: MailboxState) -> Result<(), Self> {
        if seen.is_closed() || seen.index() != self.head() {
            return Err(self);
        }
        // SAFETY: the mailbox is alive until the token is laid down.
        let gate = unsafe { ptr::addr_of!((*self.mailbox.as_ptr()).gate) };
        // SAFETY: we are the owner; all claims are taken and the system queue was looked at.
        match unsafe { Mailbox::<H, S, M>::lay_down(gate, seen) } {
            Ok(chain) => {
                // SAFETY: the exchange made the chain ours: no claim is unpublished, and no later claim leads into it
                // (M2).
                unsafe { Shape::<M>::release_chain(chain) };
                Ok(())
            }
            Err(()) => Err(self),
        }
    }

    /// Lays the token down under PARKED: then only a control message wakes the actor. `Err` returns the view because
    /// the system queue has a message. User messages may queue up meanwhile, unless the mailbox is closed.
    pub(crate) fn try_suspend(self) -> Result<(), Self> {
        loop {
            let Some(seen) = self.system_queue_is_empty() else { return Err(self) };
            // SAFETY: alive until the token is laid down; the reference lives for the exchange only.
            let parked = unsafe { (*self.mailbox.as_ptr()).gate.word.park(seen) };
            // The exchange fails for a claim, which does not matter here, or for a control message, which the next
            // round sees.
            if parked.is_ok() {
                return Ok(());
            }
        }
    }

    /// Clears SYSTEM and then looks at the system queue; returns `None` if the queue has a message. A control message
    /// announced later changes the word again, so an exchange that expects the returned state fails.
    #[inline]
    fn system_queue_is_empty(&self) -> Option<MailboxState> {
        let gate = self.gate();
        let mut seen = gate.word.look();
        if seen.has_system_flag() {
            seen = gate.word.clear_system();
        }
        (!gate.system_queue.has_any()).then_some(seen)
    }

    /// Refuses all further messages and returns the number of accepted messages. The system queue stays open until
    /// [`close_system_queue`](Self::close_system_queue). The token stays with the owner for good.
    pub(crate) fn close(&mut self) -> u64 {
        let gate = self.gate();
        let before = gate.word.close();
        if before.is_closed() {
            return gate.close_index.load(Ordering::Relaxed);
        }
        // Relaxed: see `Gate::len`; the other readers are owners.
        gate.close_index.store(before.index(), Ordering::Relaxed);
        if let Some(room) = self.mailbox().room() {
            room.wake_at_close();
        }
        before.index()
    }

    /// As [`close`](Self::close), but only if no index is claimed beyond the head; otherwise, and on a closed mailbox,
    /// it returns false. So either each accepted message has been taken, or the mailbox stays open.
    pub(crate) fn close_if_empty(&mut self) -> bool {
        let gate = self.gate();
        loop {
            let seen = gate.word.look();
            if seen.is_closed() || seen.index() != self.head() {
                return false;
            }
            // The exchange fails for a claim, or for news of the system queue, which stays open.
            if gate.word.try_close(seen) {
                // Relaxed: as in `close`.
                gate.close_index.store(seen.index(), Ordering::Relaxed);
                if let Some(room) = self.mailbox().room() {
                    room.wake_at_close();
                }
                return true;
            }
        }
    }

    /// Takes the next message that a closed mailbox still holds. The call compares with the close before it looks,
    /// since refused pushes leave no message. Messages are not sorted any more.
    pub(crate) fn drain_next(&mut self) -> DrainStep<M> {
        debug_assert!(self.gate().is_closed(), "only a closed mailbox is drained");
        if self.head() == self.gate().close_index.load(Ordering::Relaxed) {
            return DrainStep::Done;
        }
        match self.ready_unsorted() {
            Ready::Message(front) => DrainStep::Message(front.take()),
            Ready::Busy => DrainStep::Busy,
            Ready::Empty | Ready::Panicked(_) => DrainStep::Done,
        }
    }

    /// Closes the system queue and returns the control messages accepted until now.
    pub(crate) fn close_system_queue(&mut self) -> Batch<S> {
        self.gate().system_queue.close()
    }
}

/// The next message, still in the mailbox; dropping this value leaves the message there.
pub(crate) struct PeekedMessage<'o, 'a, H: Measured, S, M> {
    owner: &'o Owner<'a, H, S, M>,
    /// The index of the message; in a priority mailbox the lowest index that is not handled.
    index: u64,
    /// The slot of the message; `None` in a displacing or priority mailbox.
    slot: Option<NonNull<Slot<M>>>,
}

impl<H: Measured, S, M> PeekedMessage<'_, '_, H, S, M> {
    /// As [`Owner::has_system`]; the owner calls this between `ready` and `take`.
    #[inline(always)]
    pub(crate) fn has_system(&self) -> bool {
        self.owner.has_system()
    }

    /// Returns the index that the sender of the message claimed, or in a priority mailbox the lowest index that is not
    /// handled. A control message positioned at or below the index goes first.
    #[inline(always)]
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    /// Takes the message out.
    #[inline]
    pub(crate) fn take(self) -> M {
        let mailbox = self.owner.mailbox();
        let Some(slot) = self.slot else { return Self::take_from_policy(self.owner) };
        // SAFETY: we own the mailbox and saw the stamp; `head` moves on below, so this happens once.
        let message = unsafe { slot.as_ref().take() };
        // Ordering: Release; pairs with the Acquire load in `Gate::len`.
        mailbox.gate.head.store(self.index + 1, Ordering::Release);
        if let Some(room) = mailbox.room() {
            room.wake_one();
        }
        message
    }

    #[inline(never)]
    fn take_from_policy(owner: &Owner<'_, H, S, M>) -> M {
        let mailbox = owner.mailbox();
        let message = match mailbox.policy.as_deref() {
            // SAFETY: we own the mailbox.
            Some(Policy::Displace(ring)) => unsafe { ring.take_front() },
            // SAFETY: as above.
            Some(Policy::Sort(order, _)) => unsafe { order.take() },
            None | Some(Policy::Refuse(_)) => None,
        };
        // Ordering: Release; as in `take`.
        mailbox.gate.head.fetch_add(1, Ordering::Release);
        if let Some(room) = mailbox.room() {
            room.wake_one();
        }
        message.expect("a front without a slot was seen in a ring or an order")
    }
}

#[cfg(any(test, pointsman_loom))]
impl<M> Pushed<M> {
    /// True if the caller holds the token now.
    pub(crate) fn wakes(&self) -> bool {
        matches!(self, Self::Wake | Self::Displaced { wake: true, .. })
    }
}

#[cfg(pointsman_loom)]
impl<M> Refused<M> {
    pub fn into_message(self) -> M {
        match self {
            Self::Full(message) | Self::Closed(message) => message,
        }
    }
}

impl<H, S> std::fmt::Debug for Gate<H, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate")
            .field("state", &self.word.look())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<H: Measured, S, M> std::fmt::Debug for Mailbox<H, S, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Mailbox").field(&self.gate).finish()
    }
}

impl<H: Measured, S, M> std::fmt::Debug for Owner<'_, H, S, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Owner").field(self.gate()).finish()
    }
}

impl<M> std::fmt::Debug for Pushed<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Queued => f.write_str("Queued"),
            Self::Wake => f.write_str("Wake"),
            Self::Displaced { wake, .. } => {
                f.debug_struct("Displaced").field("wake", wake).finish_non_exhaustive()
            }
        }
    }
}

impl<M> std::fmt::Debug for Refused<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(_)",
            Self::Closed(_) => "Closed(_)",
        })
    }
}

/// Drops the items of `next` one by one, so that a panic in one drop does not leak the rest; returns the first panic.
pub(crate) fn drop_each<T>(mut next: impl FnMut() -> Option<T>) -> Option<Box<dyn Any + Send>> {
    let mut first = None;
    while let Some(item) = next() {
        match catch_unwind(AssertUnwindSafe(|| drop(item))) {
            Ok(()) => {}
            Err(panic) if first.is_some() => panic::discard(panic),
            Err(panic) => first = Some(panic),
        }
    }
    first
}

/// Resumes a caught panic, unless the thread unwinds already.
pub(crate) fn propagate(panic: Option<Box<dyn Any + Send>>) {
    if let Some(panic) = panic {
        if crate::sync::thread::panicking() {
            std::mem::forget(panic);
        } else {
            resume_unwind(panic);
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests;
