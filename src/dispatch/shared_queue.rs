//! A shared queue stands in front of several takers; a push wakes one taker that sleeps.
//!
//! The queue knows nothing of actors: its [`Wake`] says how a taker is woken. The takers here are the routees of a
//! balancing pool: see `actor/shared_queue_turn.rs`.
//!
//! # No taker sleeps while there is something to take
//! A taker that finds nothing *registers*: it marks its seat and puts an entry into the queue of the idle. The taker
//! then looks once more, and sleeps. A sender pushes, then looks for an entry. Between the two halves of the taker's
//! side lies a `SeqCst` fence; on the sender's side the claim of a place in the queue and the looks are `SeqCst`
//! themselves. So one side sees the other: the taker the message, or the sender the entry (invariant 10 of
//! the crate). The sender takes entries until it has *claimed* a taker, and wakes that taker. So no sender scans all
//! takers, and two senders never claim the same taker.
//!
//! A seat is in one of three states:
//!
//! ```text
//!           register: an entry is pushed                  withdraw
//!   Away ────────────────────────────────▶ Registered ◀─────────────▶ Stale
//!    ▲                                          │        register       │
//!    └──────────────────────────────────────────┴───────────────────────┘
//!      a sender takes the entry: a claim if it was Registered, nothing if it was Stale
//! ```
//!
//! A taker that has something else to do withdraws first, since a claim on it would be in vain for as long as that
//! takes. The taker's entry stays behind as a stale entry, and the next register uses it again: there is at most one
//! entry for each seat.
//!
//! # One taker is called at a time
//! To wake a taker costs far more than to push, and when many messages are pushed at once, the woken takers find
//! nothing. So senders wake one taker, and no other before that taker has [answered](SharedQueue::answer): the taker
//! takes a message, takes the call back, and looks whether there is more. If there is more, the taker wakes the next. A
//! taker that cannot take (it was suspended or stopped meanwhile) answers all the same. The two sides are ordered as
//! above: if a sender sees the call and wakes no taker, the answer's look sees what that sender
//! has pushed.
//!
//! A woken taker must therefore run soon, and above all not behind the very handler that waits for another message of
//! the queue.
//!
//! # When the last taker leaves
//! A taker that [leaves when the queue is empty](Taker::leave_when_empty) looks at the queue once more when it is no
//! taker any more. The taker stays if there is something and if it was the last taker. A taker that
//! [leaves](Taker::leave) for other reasons empties the queue if it was the last taker. So does a sender that finds no
//! taker *after* its push. With the same fences one of the two sees the message. All of this happens under the lock
//! that joining takes too, so a message that is pushed for a new taker is never emptied in the name of an old taker. No
//! message takes that lock while there is a taker.
//!
//! # When it is full
//! By its [`Bound`], a push to a full queue is refused, or displaces the message that has waited longest. Displacing
//! takes one message and adds one in a single step of the queue. The queue is never empty in between, so a taker that
//! looks finds something, and the push goes on like any other. A displaced message belongs to the pusher alone.
//!
//! # What it costs
//! A push to a queue without a bound is one exchange, the message, and three loads: whether there are takers, twice, and
//! whether any is idle. A take is one exchange ([`BlockQueue`]). Either queue allocates a block for every 31 elements. A
//! claim is a pop from the queue of the idle, three exchanges and the wake; the answer is an exchange, a fence and a
//! look. A push to a bounded queue has a fence, too.
//!
//! # Accepted limits
//! Inside `pop`, both queues may wait briefly for a pusher that was preempted after it claimed a slot and before it
//! filled the slot: a taker waits for a sender, a sender waits for a taker that registers. Many sleepers are woken one
//! after the other.

use crate::dispatch::block_queue::{BlockQueue, Cursor};
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use crate::sync::{Arc, ArrayQueue, CachePadded, Mutex, OnceLock, SegQueue, lock};
use std::num::NonZeroUsize;

/// How a taker is woken.
pub(crate) trait Wake {
    /// Makes the taker look at the queue soon, on a thread that has nothing else to do.
    fn wake(&self);
}

/// A queue of messages, and the takers that sleep in front of it.
pub(crate) struct SharedQueue<M, W> {
    /// Set by [`open`](Self::open).
    messages: OnceLock<Messages<M>>,
    /// An entry for each registered or stale seat, the longest idle first.
    idle: SegQueue<Arc<TakerSlot<W>>>,
    /// On cache lines of its own: it changes with each call, and pushers read its neighbours.
    calls: CachePadded<Calls>,
    /// The number of takers that have joined and not left.
    taker_count: AtomicUsize,
    /// Held to join, to leave, and to empty a queue that has no takers.
    membership: Mutex<()>,
}

/// The part at which pushers look when they have pushed.
struct Calls {
    /// The number of entries in the queue of the idle, and of those that are about to be there.
    idle_count: AtomicUsize,
    /// Whether a taker was woken that has not answered yet, or is just being looked for.
    is_called: AtomicBool,
}

enum Messages<M> {
    Unbounded(BlockQueue<M>),
    Bounded { queue: ArrayQueue<M>, at_bound: AtBound },
}

/// The capacity of a queue, and the treatment of a message beyond it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    /// How many messages the queue holds; their room is allocated at once.
    pub capacity: NonZeroUsize,
    /// The treatment of a message beyond the capacity.
    pub at_bound: AtBound,
}

/// The treatment of a push that finds the queue full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtBound {
    /// The push is refused.
    Refuse,
    /// The push is refused, and its message is to be dropped.
    DropNewest,
    /// The message takes the place of the message that has waited longest.
    DropOldest,
}

/// The result of a push that was not refused.
#[must_use = "stranded messages are in nobody's hands"]
pub(crate) enum Pushed<M> {
    /// A taker has the message, or will see it.
    Queued,
    /// A taker has the message or will see it, and this older message has made room for it.
    Displaced(M),
    /// The last taker has left meanwhile: these are all messages that were in the queue, the pushed message perhaps
    /// among them.
    Stranded(Vec<M>),
}

/// The reason for which a push was refused; the message comes back.
pub(crate) enum Refused<M> {
    /// The queue is at its capacity.
    Full(M),
    /// The queue is at its capacity, and its [`Bound`] says that the message is to be dropped.
    ToDrop(M),
    /// There is no taker.
    NoTaker(M),
}

struct TakerSlot<W> {
    state: AtomicU8,
    wake: W,
}

/// There is no entry; the taker is at work, or was claimed.
const AWAY: u8 = 0;
/// There is an entry, and the taker sleeps or is about to.
const REGISTERED: u8 = 1;
/// There is an entry, and it means nothing: the taker has withdrawn.
const STALE: u8 = 2;

/// A taker of messages. A taker must be [left](Self::leave), not dropped: a drop tells the other takers nothing.
pub(crate) struct Taker<M, W> {
    queue: Arc<SharedQueue<M, W>>,
    seat: Arc<TakerSlot<W>>,
    registered: bool,
    cursor: Cursor<M>,
}

impl<M, W: Wake> SharedQueue<M, W> {
    /// Makes a queue that is not open and has no takers.
    pub(crate) fn new() -> Self {
        Self {
            messages: OnceLock::new(),
            idle: SegQueue::new(),
            calls: CachePadded::new(Calls {
                idle_count: AtomicUsize::new(0),
                is_called: AtomicBool::new(false),
            }),
            taker_count: AtomicUsize::new(0),
            membership: Mutex::new(()),
        }
    }

    /// Says how much the queue holds, before a taker joins. The first call counts.
    pub(crate) fn open(&self, bound: Option<Bound>) {
        self.messages.get_or_init(|| match bound {
            None => Messages::Unbounded(BlockQueue::new()),
            Some(Bound { capacity, at_bound }) => {
                Messages::Bounded { queue: ArrayQueue::new(capacity.get()), at_bound }
            }
        });
    }

    /// Adds a message, and wakes a taker if one sleeps and none is called.
    pub(crate) fn push(&self, message: M) -> Result<Pushed<M>, Refused<M>> {
        let messages = match self.messages.get() {
            Some(messages) if self.has_takers() => messages,
            _ => return Err(Refused::NoTaker(message)),
        };
        match messages {
            Messages::Unbounded(queue) => {
                queue.push(message);
                return Ok(self.pushed().map_or(Pushed::Queued, Pushed::Stranded));
            }
            Messages::Bounded { queue, at_bound: AtBound::Refuse } => {
                queue.push(message).map_err(Refused::Full)?;
            }
            Messages::Bounded { queue, at_bound: AtBound::DropNewest } => {
                queue.push(message).map_err(Refused::ToDrop)?;
            }
            Messages::Bounded { queue, at_bound: AtBound::DropOldest } => {
                if let Some(oldest) = queue.force_push(message) {
                    return Ok(self.pushed_over(oldest));
                }
            }
        }
        Ok(self.pushed_bounded().map_or(Pushed::Queued, Pushed::Stranded))
    }

    /// Pushes as [`push`](Self::push) does, and calls `queued` after the usual push: to an open queue without a bound,
    /// which has takers. All other results go to `otherwise`: a result would be copied from one caller to the next, a
    /// message's size and more.
    #[inline(always)]
    pub(crate) fn push_or<R>(
        &self,
        message: M,
        queued: impl FnOnce() -> R,
        otherwise: impl FnOnce(Result<Pushed<M>, Refused<M>>) -> R,
    ) -> R {
        match self.messages.get() {
            Some(Messages::Unbounded(queue)) if self.has_takers() => {
                queue.push(message);
                match self.pushed() {
                    None => queued(),
                    Some(stranded) => otherwise(Ok(Pushed::Stranded(stranded))),
                }
            }
            _ => otherwise(self.push(message)),
        }
    }

    /// Wakes a taker after a push to the queue without a bound. If there is no taker any more, returns all messages that
    /// were in the queue.
    ///
    /// The claim of the place in the queue was `SeqCst`, and so are the looks at the takers, the idle and the call. So
    /// they stand in the one order of all such accesses and fences, the claim first; on the processors with strong
    /// exchanges this costs nothing. Mirror of the fences in `register`, `uncount`, `answer` and `call`.
    #[inline]
    fn pushed(&self) -> Option<Vec<M>> {
        if crate::sync::EXPLORED {
            // loom takes such accesses for Acquire and Release, and knows that order of fences alone.
            // Ordering: SeqCst; between the push and the looks; mirror of the fences in `register`, `uncount`, `answer`
            // and `call`.
            fence(Ordering::SeqCst);
        }
        if !self.has_takers() {
            let stranded = self.take_stranded();
            if !stranded.is_empty() {
                return Some(stranded);
            }
        }
        self.wake_one();
        None
    }

    /// As [`pushed`](Self::pushed), after a push to a bounded queue, whose orderings are its own.
    fn pushed_bounded(&self) -> Option<Vec<M>> {
        // Ordering: SeqCst; between the push and the looks at the takers, the idle and the call; mirror of the fences
        // in `register`, `uncount`, `answer` and `call`.
        fence(Ordering::SeqCst);
        self.pushed()
    }

    /// Wakes a taker after a push that took the place of `oldest`.
    #[cold]
    fn pushed_over(&self, oldest: M) -> Pushed<M> {
        match self.pushed_bounded() {
            None => Pushed::Displaced(oldest),
            Some(mut stranded) => {
                stranded.insert(0, oldest);
                Pushed::Stranded(stranded)
            }
        }
    }

    /// Returns the number of messages in the queue; exact when no thread pushes or takes meanwhile.
    pub(crate) fn len(&self) -> usize {
        match self.messages.get() {
            Some(Messages::Unbounded(queue)) => queue.len(),
            Some(Messages::Bounded { queue, .. }) => queue.len(),
            None => 0,
        }
    }

    /// Returns whether there is nothing in the queue.
    #[inline]
    fn is_empty(&self) -> bool {
        match self.messages.get() {
            Some(Messages::Unbounded(queue)) => queue.is_empty(),
            Some(Messages::Bounded { queue, .. }) => queue.is_empty(),
            None => true,
        }
    }

    /// Ends a call: a taker that was claimed calls this once it has taken a message, or knows that it cannot. Takers
    /// may be claimed again then, and one is if there is anything left.
    pub(crate) fn answer(&self) {
        // Ordering: Relaxed; the fence orders it.
        self.calls.is_called.swap(false, Ordering::Relaxed);
        // Ordering: SeqCst; between taking the call back and the look at the queue; mirror of the order in `pushed`.
        fence(Ordering::SeqCst);
        if !self.is_empty() {
            self.wake_one();
        }
    }

    #[inline]
    fn has_takers(&self) -> bool {
        // Ordering: SeqCst; behind the claim of a push, as `pushed` says. Before a push this is a hint.
        self.taker_count.load(Ordering::SeqCst) > 0
    }

    #[inline]
    fn pop(&self, cursor: &Cursor<M>) -> Option<M> {
        match self.messages.get()? {
            Messages::Unbounded(queue) => queue.pop(cursor),
            Messages::Bounded { queue, .. } => queue.pop(),
        }
    }

    /// Wakes one taker that sleeps, unless one is called. The caller has executed a `SeqCst` fence or exchange since the
    /// push, or the look at the queue, that this wake is for.
    #[inline(always)]
    fn wake_one(&self) {
        // Ordering: SeqCst, both; as `pushed` says.
        if self.has_idle() && !self.calls.is_called.load(Ordering::SeqCst) {
            self.call();
        }
    }

    /// Returns whether there is an entry in the queue of the idle, or is about to be.
    #[inline]
    fn has_idle(&self) -> bool {
        // Ordering: SeqCst; behind the claim of a push, as `pushed` says.
        self.calls.idle_count.load(Ordering::SeqCst) != 0
    }

    /// Takes the entry of the longest idle.
    fn pop_idle(&self) -> Option<Arc<TakerSlot<W>>> {
        let seat = self.idle.pop()?;
        // Ordering: Relaxed; a hint. A taker that has registered has counted its entry before its fence.
        self.calls.idle_count.fetch_sub(1, Ordering::Relaxed);
        Some(seat)
    }

    #[cold]
    fn call(&self) {
        loop {
            // Ordering: SeqCst; as in `wake_one`.
            if self.calls.is_called.swap(true, Ordering::SeqCst) {
                return;
            }
            while let Some(seat) = self.pop_idle() {
                // Ordering: Release; pairs with the Acquire in `withdraw`: a taker that finds itself claimed sees the
                // call and the message. The sender reads no data of the taker.
                if seat.state.swap(AWAY, Ordering::Release) == REGISTERED {
                    seat.wake.wake();
                    return;
                }
            }
            // No taker sleeps. A sender that has pushed meanwhile and seen the call has left the look to this thread.
            // Ordering: Relaxed; the fence orders it.
            self.calls.is_called.swap(false, Ordering::Relaxed);
            // Ordering: SeqCst; between taking the call back and the looks; mirror of the order in
            // `pushed` and of the fence in `register`.
            fence(Ordering::SeqCst);
            if self.idle.is_empty() || self.is_empty() {
                return;
            }
        }
    }

    /// Takes all messages, if there is still no taker.
    #[cold]
    fn take_stranded(&self) -> Vec<M> {
        let _membership = lock(&self.membership);
        if self.has_takers() { Vec::new() } else { self.take_all() }
    }

    /// Takes all messages. The caller holds the lock, and there are no takers.
    fn take_all(&self) -> Vec<M> {
        let cursor = Cursor::new();
        std::iter::from_fn(|| self.pop(&cursor)).collect()
    }

    /// Takes all entries if there are no takers. The entries are stale then, and must go now, since the value that
    /// wakes a taker may keep this queue alive. The caller holds the lock.
    fn entries_without_takers(&self, are_none: bool) -> Vec<Arc<TakerSlot<W>>> {
        if are_none { std::iter::from_fn(|| self.pop_idle()).collect() } else { Vec::new() }
    }
}

impl<M, W: Wake> Taker<M, W> {
    /// Adds a taker to `queue`, which is woken by `wake`. The new taker is at work: it takes, registers or leaves.
    pub(crate) fn join(queue: Arc<SharedQueue<M, W>>, wake: W) -> Self {
        {
            let _membership = lock(&queue.membership);
            // Ordering: Relaxed; the thread that emptied the queue for want of takers has released the lock, and a
            // sender that sends because there is a taker again has learned of the taker by other means.
            queue.taker_count.fetch_add(1, Ordering::Relaxed);
        }
        let seat = Arc::new(TakerSlot { state: AtomicU8::new(AWAY), wake });
        Self { queue, seat, registered: false, cursor: Cursor::new() }
    }

    /// Returns the queue.
    pub(crate) fn queue(&self) -> &Arc<SharedQueue<M, W>> {
        &self.queue
    }

    /// Takes the next message.
    #[inline]
    pub(crate) fn take(&self) -> Option<M> {
        self.queue.pop(&self.cursor)
    }

    /// Says that this taker is about to sleep. Returns false if there is something to take after all.
    ///
    /// In either case the taker counts as idle until it [withdraws](Self::withdraw), which it does before anything
    /// else.
    #[must_use = "who finds something must not sleep"]
    pub(crate) fn register(&mut self) -> bool {
        self.registered = true;
        // Ordering: Relaxed, both; this taker's own mark, which a sender that takes the entry reads by an exchange. The
        // fence below orders the mark before the look.
        let reused =
            self.seat.state.compare_exchange(STALE, REGISTERED, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !reused {
            // There is no entry, so no other thread touches the state; a sender sees the mark through the entry.
            self.seat.state.swap(REGISTERED, Ordering::Relaxed);
            // Ordering: Relaxed; the fence below orders it.
            self.queue.calls.idle_count.fetch_add(1, Ordering::Relaxed);
            self.queue.idle.push(self.seat.clone());
        }
        // Ordering: SeqCst; between the entry and the last look; mirror of the order in `pushed`.
        fence(Ordering::SeqCst);
        self.queue.is_empty()
    }

    /// Says that this taker is awake. Returns true if a sender has claimed the taker since it registered: the taker
    /// owes an [answer](SharedQueue::answer) then.
    #[must_use = "who was claimed must answer"]
    pub(crate) fn withdraw(&mut self) -> bool {
        // Ordering: Acquire; pairs with the Release in `call`: the taker sees the message that the claim was for.
        std::mem::take(&mut self.registered)
            && self
                .seat
                .state
                .compare_exchange(REGISTERED, STALE, Ordering::Relaxed, Ordering::Acquire)
                .is_err()
    }

    /// Leaves for good, unless this is the last taker and there is something to take: then the taker is returned, and
    /// has not left.
    pub(crate) fn leave_when_empty(mut self) -> Result<(), Self> {
        let is_claimed = self.withdraw();
        let entries = {
            let _membership = lock(&self.queue.membership);
            let is_last = self.uncount();
            if is_last && !self.queue.is_empty() {
                // Ordering: Relaxed; as in `join`. A sender that has seen no taker meanwhile was refused, or waits for
                // the lock and then finds this taker.
                self.queue.taker_count.fetch_add(1, Ordering::Relaxed);
                None
            } else {
                Some(self.queue.entries_without_takers(is_last))
            }
        };
        match entries {
            Some(entries) => {
                self.part(is_claimed, entries);
                Ok(())
            }
            None => {
                if is_claimed {
                    self.queue.answer();
                }
                Err(self)
            }
        }
    }

    /// Leaves for good. Returns the messages of the queue, if this was the last taker.
    pub(crate) fn leave(mut self) -> Vec<M> {
        let is_claimed = self.withdraw();
        let (messages, entries) = {
            let _membership = lock(&self.queue.membership);
            let is_last = self.uncount();
            let messages = if is_last { self.queue.take_all() } else { Vec::new() };
            (messages, self.queue.entries_without_takers(is_last))
        };
        self.part(is_claimed, entries);
        messages
    }

    /// Subtracts this taker from the count. Returns true if it was the last. Messages seen in the queue afterwards are
    /// all messages that no sender takes care of. The caller holds the lock.
    fn uncount(&self) -> bool {
        // Ordering: Relaxed; the fence orders it.
        let is_last = self.queue.taker_count.fetch_sub(1, Ordering::Relaxed) == 1;
        // Ordering: SeqCst; between the count and the last look at the queue; mirror of the order in `pushed`.
        fence(Ordering::SeqCst);
        is_last
    }

    /// Does the rest of leaving, without the lock: this may free the value that wakes a taker.
    fn part(self, is_claimed: bool, entries: Vec<Arc<TakerSlot<W>>>) {
        drop(entries);
        if is_claimed {
            self.queue.answer();
        } else {
            // This wake drops stale entries of takers that have left. Without it, entries would pile up in a pool that
            // is resized again and again and never used.
            self.queue.wake_one();
        }
    }
}
