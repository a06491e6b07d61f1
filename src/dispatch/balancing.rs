//! One queue in front of several takers, of whom a push wakes one that sleeps.
//!
//! Knows nothing of actors: what a taker is, and how it is woken, its [`Wake`] says. The takers here are the
//! routees of a balancing pool.
//!
//! # No taker sleeps while there is something to take
//! A taker that finds nothing *registers*: it marks its seat and puts an entry into the queue of the idle. Then it
//! looks once more, and sleeps. A sender pushes, then looks for an entry. Between the two halves of either side
//! lies a `SeqCst` fence, so one of them sees the other: the taker the message, or the sender the entry
//! (invariant 10 of the crate). The sender takes entries until it has *claimed* a taker, and wakes that one. So
//! nobody scans, and two senders never claim the same.
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
//! A taker that has something else to do withdraws first, for a claim on it would be in vain as long as that takes.
//! Its entry stays behind as a stale one, and is used again at the next register: there is at most one for each seat.
//! A taker that was claimed owes a look at the queue. If it cannot take (it was suspended or stopped meanwhile), it
//! [hands on](SharedQueue::hand_on): somebody else is woken.
//!
//! # When nobody is left
//! The last taker to leave empties the queue, and so does a sender that finds nobody there *after* its push, with
//! the same fences: one of them sees the message. Both do it under the lock that joining takes too, so that what is
//! pushed for a new taker is never emptied in the name of an old one. No message takes that lock while there is a
//! taker.
//!
//! # What it costs
//! A push is one push to the queue, a fence, and three loads: of the number of takers, and whether the queue of the
//! idle is empty. Either queue allocates a block for every 31 elements. A claim is one more pop, one exchange and
//! the wake.
//!
//! # Accepted limits
//! Both queues may wait briefly, inside `pop`, for a pusher that was preempted between its claim of a place and
//! filling it: a taker for a sender, a sender for a taker that registers.

use crate::sync::atomic::{AtomicU8, AtomicUsize, Ordering, fence};
use crate::sync::{Arc, ArrayQueue, Mutex, SegQueue, lock};
use std::num::NonZeroUsize;

/// How a taker is woken.
pub trait Wake {
    /// Makes the taker look at the queue, now or, if it is at work, before it sleeps.
    fn wake(&self);
}

/// The queue, and who sleeps in front of it.
pub struct SharedQueue<M, W> {
    messages: Messages<M>,
    /// An entry for each seat that is registered or stale, the longest idle one first.
    idle: SegQueue<Arc<Seat<W>>>,
    /// Those that have joined and not left.
    taker_count: AtomicUsize,
    /// Held to join, to leave, and to empty a queue that has no takers.
    membership: Mutex<()>,
}

enum Messages<M> {
    Unbounded(SegQueue<M>),
    Bounded(ArrayQueue<M>),
}

/// What became of a push that was not refused.
#[must_use = "stranded messages are in nobody's hands"]
pub enum Pushed<M> {
    /// A taker has it, or will see it.
    Queued,
    /// The last taker has left meanwhile: this is all that was in the queue, the message perhaps among it.
    Stranded(Vec<M>),
}

/// Why a push was refused; the message comes back.
pub enum Refused<M> {
    /// The queue is at its capacity.
    Full(M),
    /// There is no taker.
    NoTaker(M),
}

struct Seat<W> {
    state: AtomicU8,
    wake: W,
}

/// No entry; the taker is at work, or was claimed.
const AWAY: u8 = 0;
/// There is an entry, and the taker sleeps or is about to.
const REGISTERED: u8 = 1;
/// There is an entry, and it means nothing.
const STALE: u8 = 2;

/// One who takes. To be [left](Self::leave), not dropped: the others would not learn of it.
pub struct Taker<M, W> {
    queue: Arc<SharedQueue<M, W>>,
    seat: Arc<Seat<W>>,
    registered: bool,
}

impl<M, W: Wake> SharedQueue<M, W> {
    /// A queue without takers, for any number of messages or at most so many; room for those is allocated at once.
    pub fn new(capacity: Option<NonZeroUsize>) -> Self {
        Self {
            messages: match capacity {
                None => Messages::Unbounded(SegQueue::new()),
                Some(capacity) => Messages::Bounded(ArrayQueue::new(capacity.get())),
            },
            idle: SegQueue::new(),
            taker_count: AtomicUsize::new(0),
            membership: Mutex::new(()),
        }
    }

    /// Adds a message, and wakes a taker if one sleeps.
    #[inline]
    pub fn push(&self, message: M) -> Result<Pushed<M>, Refused<M>> {
        if !self.has_takers() {
            return Err(Refused::NoTaker(message));
        }
        match &self.messages {
            Messages::Unbounded(queue) => queue.push(message),
            Messages::Bounded(queue) => queue.push(message).map_err(Refused::Full)?,
        }
        // Ordering: SeqCst; between the push and the looks at the takers and at the idle; mirror of the fences in
        // `register` and `leave`.
        fence(Ordering::SeqCst);
        if !self.has_takers() {
            let stranded = self.take_stranded();
            if !stranded.is_empty() {
                return Ok(Pushed::Stranded(stranded));
            }
        }
        self.wake_one();
        Ok(Pushed::Queued)
    }

    /// Messages in the queue; exact when nobody pushes or takes meanwhile.
    pub fn len(&self) -> usize {
        match &self.messages {
            Messages::Unbounded(queue) => queue.len(),
            Messages::Bounded(queue) => queue.len(),
        }
    }

    /// Whether there is nothing in the queue.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.messages {
            Messages::Unbounded(queue) => queue.is_empty(),
            Messages::Bounded(queue) => queue.is_empty(),
        }
    }

    /// Wakes somebody else, if there is anything left, in the place of a taker that was claimed and cannot take.
    ///
    /// No fence of its own: who registers after the claim's maker has looked at the idle sees the message for which
    /// that one came, and of those who registered before, its claim has told us.
    pub fn hand_on(&self) {
        if !self.is_empty() {
            self.wake_one();
        }
    }

    #[inline]
    fn has_takers(&self) -> bool {
        // Ordering: Relaxed; before a push a hint. After it the fence orders this behind the push.
        self.taker_count.load(Ordering::Relaxed) > 0
    }

    fn pop(&self) -> Option<M> {
        match &self.messages {
            Messages::Unbounded(queue) => queue.pop(),
            Messages::Bounded(queue) => queue.pop(),
        }
    }

    /// Wakes one taker that sleeps. A `SeqCst` fence lies between the push that this is for and here, except in
    /// `hand_on`.
    #[inline]
    fn wake_one(&self) {
        while !self.idle.is_empty() {
            let Some(seat) = self.idle.pop() else { return };
            // Ordering: Release; pairs with the Acquire in `withdraw`: a taker that finds itself claimed sees the
            // message. Acquire: uniform, nothing of the taker's is read.
            if seat.state.swap(AWAY, Ordering::AcqRel) == REGISTERED {
                seat.wake.wake();
                return;
            }
        }
    }

    /// Everything, if there is still nobody to take it.
    #[cold]
    fn take_stranded(&self) -> Vec<M> {
        let _membership = lock(&self.membership);
        if self.has_takers() { Vec::new() } else { self.take_all() }
    }

    /// The caller holds the lock, and there are no takers.
    fn take_all(&self) -> Vec<M> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}

impl<M, W: Wake> Taker<M, W> {
    /// One more taker of `queue`, which is woken by `wake`. It is at work: it takes, registers or leaves.
    pub fn join(queue: Arc<SharedQueue<M, W>>, wake: W) -> Self {
        {
            let _membership = lock(&queue.membership);
            // Ordering: Relaxed; who emptied the queue for want of takers has released the lock, and who sends
            // because there is a taker again has been told so by other means.
            queue.taker_count.fetch_add(1, Ordering::Relaxed);
        }
        let seat = Arc::new(Seat { state: AtomicU8::new(AWAY), wake });
        Self { queue, seat, registered: false }
    }

    /// The queue.
    pub fn queue(&self) -> &Arc<SharedQueue<M, W>> {
        &self.queue
    }

    /// The next message.
    #[inline]
    pub fn take(&self) -> Option<M> {
        self.queue.pop()
    }

    /// Says that this taker is about to sleep. False if there is something to take after all.
    ///
    /// In either case it counts as idle until it [withdraws](Self::withdraw), which it does before anything else.
    #[must_use = "who finds something must not sleep"]
    pub fn register(&mut self) -> bool {
        self.registered = true;
        // Ordering: Relaxed, both; our own mark, which a sender that takes the entry reads by an exchange; and the
        // fence below orders it before our look.
        let reused =
            self.seat.state.compare_exchange(STALE, REGISTERED, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !reused {
            // There is no entry, so nobody else touches the state; a sender sees the mark through the entry.
            self.seat.state.swap(REGISTERED, Ordering::Relaxed);
            self.queue.idle.push(self.seat.clone());
        }
        // Ordering: SeqCst; between the entry and the last look; mirror of the fence in `push`.
        fence(Ordering::SeqCst);
        self.queue.is_empty()
    }

    /// Says that this taker is awake. True if a sender has claimed it since it registered: it owes a look at the
    /// queue, or a [`hand_on`](SharedQueue::hand_on).
    #[must_use = "who was claimed must look, or hand on"]
    pub fn withdraw(&mut self) -> bool {
        // Ordering: Acquire; pairs with the Release in `wake_one`: we see what the claim was for.
        std::mem::take(&mut self.registered)
            && self
                .seat
                .state
                .compare_exchange(REGISTERED, STALE, Ordering::Relaxed, Ordering::Acquire)
                .is_err()
    }

    /// Leaves for good. Returns what was in the queue, if this was the last taker.
    pub fn leave(mut self) -> Vec<M> {
        let _ = self.withdraw();
        let queue = self.queue;
        let (messages, entries) = {
            let _membership = lock(&queue.membership);
            // Ordering: Relaxed; the fence orders it.
            let was_last = queue.taker_count.fetch_sub(1, Ordering::Relaxed) == 1;
            // Ordering: SeqCst; between the count and the last look at the queue; mirror of the fence in `push`.
            fence(Ordering::SeqCst);
            if was_last {
                // Entries are all stale. What wakes a taker may keep this queue alive, so they go now.
                (queue.take_all(), std::iter::from_fn(|| queue.idle.pop()).collect())
            } else {
                (Vec::new(), Vec::new())
            }
        };
        // Not under the lock: this may free what is woken.
        drop::<Vec<_>>(entries);
        // Whoever has claimed us, counted on us. Besides, this parts with entries of those that have left: without
        // it they would pile up in a pool that is resized again and again and never used.
        queue.wake_one();
        messages
    }
}
