//! One queue in front of several takers, of whom a push wakes one that sleeps.
//!
//! Knows nothing of actors: what a taker is, and how it is woken, its [`Wake`] says. The takers here are the
//! routees of a balancing pool: see `actor/shared_queue_turn.rs`.
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
//!
//! # One is called at a time
//! To wake a taker costs far more than to push, and when many are pushed at once the ones woken find nothing. So
//! senders wake one taker, and no other before that one has [answered](SharedQueue::answer): it takes a message,
//! takes the call back, and looks whether there is more: then it wakes the next. One that cannot take (it was
//! suspended or stopped meanwhile) answers all the same. Here, too, a fence lies between the two halves of either
//! side: a sender that sees the call, and wakes nobody, has pushed what the answer's look sees.
//!
//! This asks of whoever wakes a taker that it runs soon, and above all not behind the very handler that waits for
//! another message of the queue.
//!
//! # When nobody is left
//! One that [leaves when the queue is empty](Taker::leave_when_empty) looks at the queue once more when it is no
//! taker any more, and stays if there is something and it was the last. One that [leaves](Taker::leave) for other
//! reasons empties the queue if it was the last, and so does a sender that finds nobody there *after* its push. With
//! the same fences one of them sees the message. All do it under the lock that joining takes too, so that what is
//! pushed for a new taker is never emptied in the name of an old one. No message takes that lock while there is a
//! taker.
//!
//! # When it is full
//! By its [`Bound`] a push is refused, or displaces the message that has waited longest. Displacing takes one and adds one
//! in one step of the queue: it is never empty in between, so whoever looks whether there is something to take finds it,
//! and the push goes on like any other. A message that was displaced belongs to the pusher alone.
//!
//! # What it costs
//! A push is one push to the queue, a fence, and four loads: the number of takers, whether the queue of the
//! idle is empty, and whether one is called. Either queue allocates a block for every 31 elements. A claim is one more
//! pop, two exchanges and the wake; its answer an exchange, a fence and a look.
//!
//! # Accepted limits
//! Both queues may wait briefly, inside `pop`, for a pusher that was preempted between its claim of a place and
//! filling it: a taker for a sender, a sender for a taker that registers. Many sleepers are woken one after the other.

use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use crate::sync::{Arc, ArrayQueue, CachePadded, Mutex, OnceLock, SegQueue, lock};
use std::num::NonZeroUsize;

/// How a taker is woken.
pub trait Wake {
    /// Makes the taker look at the queue soon, on whatever thread has nothing else to do.
    fn wake(&self);
}

/// The queue, and who sleeps in front of it.
pub struct SharedQueue<M, W> {
    /// Set by [`open`](Self::open).
    messages: OnceLock<Messages<M>>,
    /// An entry for each seat that is registered or stale, the longest idle one first.
    idle: SegQueue<Arc<Seat<W>>>,
    /// A taker was woken that has not answered yet, or is just being looked for. On lines of its own: it changes with
    /// each call, and who pushes reads its neighbours.
    is_called: CachePadded<AtomicBool>,
    /// Those that have joined and not left.
    taker_count: AtomicUsize,
    /// Held to join, to leave, and to empty a queue that has no takers.
    membership: Mutex<()>,
}

enum Messages<M> {
    Unbounded(SegQueue<M>),
    Bounded { queue: ArrayQueue<M>, at_bound: AtBound },
}

/// What a queue holds at most, and what becomes of a message too many.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// How many; room for those is allocated at once.
    pub capacity: NonZeroUsize,
    /// What becomes of a message too many.
    pub at_bound: AtBound,
}

/// What a push does that finds the queue full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtBound {
    /// It is refused.
    Refuse,
    /// It is refused, and its message is to be dropped.
    DropNewest,
    /// It takes the place of the message that has waited longest.
    DropOldest,
}

/// What became of a push that was not refused.
#[must_use = "stranded messages are in nobody's hands"]
pub enum Pushed<M> {
    /// A taker has it, or will see it.
    Queued,
    /// The same, and this one has made room for it.
    Displaced(M),
    /// The last taker has left meanwhile: this is all that was in the queue, the message perhaps among it.
    Stranded(Vec<M>),
}

/// Why a push was refused; the message comes back.
pub enum Refused<M> {
    /// The queue is at its capacity.
    Full(M),
    /// The same, and its [`Bound`] says that the message is to be dropped.
    ToDrop(M),
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
    /// A queue that is not open and has no takers.
    pub fn new() -> Self {
        Self {
            messages: OnceLock::new(),
            idle: SegQueue::new(),
            is_called: CachePadded::new(AtomicBool::new(false)),
            taker_count: AtomicUsize::new(0),
            membership: Mutex::new(()),
        }
    }

    /// Says how much it holds, before anybody joins. What is said first counts.
    pub fn open(&self, bound: Option<Bound>) {
        self.messages.get_or_init(|| match bound {
            None => Messages::Unbounded(SegQueue::new()),
            Some(Bound { capacity, at_bound }) => {
                Messages::Bounded { queue: ArrayQueue::new(capacity.get()), at_bound }
            }
        });
    }

    /// Adds a message, and wakes a taker if one sleeps and none is called.
    #[inline]
    pub fn push(&self, message: M) -> Result<Pushed<M>, Refused<M>> {
        let messages = match self.messages.get() {
            Some(messages) if self.has_takers() => messages,
            _ => return Err(Refused::NoTaker(message)),
        };
        match messages {
            Messages::Unbounded(queue) => queue.push(message),
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
        Ok(self.pushed().map_or(Pushed::Queued, Pushed::Stranded))
    }

    /// A message was pushed: wakes a taker. Where there is none any more, returns all that was in the queue.
    #[inline]
    fn pushed(&self) -> Option<Vec<M>> {
        // Ordering: SeqCst; between the push and the looks at the takers, the idle and the call; mirror of the fences
        // in `register`, `leave`, `answer` and `call`.
        fence(Ordering::SeqCst);
        if !self.has_takers() {
            let stranded = self.take_stranded();
            if !stranded.is_empty() {
                return Some(stranded);
            }
        }
        self.wake_one();
        None
    }

    /// A message was pushed in the place of `oldest`.
    #[cold]
    fn pushed_over(&self, oldest: M) -> Pushed<M> {
        match self.pushed() {
            None => Pushed::Displaced(oldest),
            Some(mut stranded) => {
                stranded.insert(0, oldest);
                Pushed::Stranded(stranded)
            }
        }
    }

    /// Messages in the queue; exact when nobody pushes or takes meanwhile.
    pub fn len(&self) -> usize {
        match self.messages.get() {
            Some(Messages::Unbounded(queue)) => queue.len(),
            Some(Messages::Bounded { queue, .. }) => queue.len(),
            None => 0,
        }
    }

    /// Whether there is nothing in the queue.
    #[inline]
    fn is_empty(&self) -> bool {
        match self.messages.get() {
            Some(Messages::Unbounded(queue)) => queue.is_empty(),
            Some(Messages::Bounded { queue, .. }) => queue.is_empty(),
            None => true,
        }
    }

    /// To be called by a taker that was claimed, once it has taken a message or knows that it cannot: others may be
    /// claimed again, and one is if there is anything left.
    pub fn answer(&self) {
        // Ordering: Relaxed; the fence orders it.
        self.is_called.swap(false, Ordering::Relaxed);
        // Ordering: SeqCst; between taking the call back and the look at the queue; mirror of the fence in `push`.
        fence(Ordering::SeqCst);
        if !self.is_empty() {
            self.wake_one();
        }
    }

    #[inline]
    fn has_takers(&self) -> bool {
        // Ordering: Relaxed; before a push a hint. After it the fence orders this behind the push.
        self.taker_count.load(Ordering::Relaxed) > 0
    }

    #[inline]
    fn pop(&self) -> Option<M> {
        match self.messages.get()? {
            Messages::Unbounded(queue) => queue.pop(),
            Messages::Bounded { queue, .. } => queue.pop(),
        }
    }

    /// Wakes one taker that sleeps, unless one is called. A `SeqCst` fence lies between the push, or the look at the
    /// queue, that this is for and here.
    #[inline]
    fn wake_one(&self) {
        // Ordering: Relaxed; the fence orders it.
        if !self.idle.is_empty() && !self.is_called.load(Ordering::Relaxed) {
            self.call();
        }
    }

    fn call(&self) {
        loop {
            // Ordering: Relaxed; as in `wake_one`.
            if self.is_called.swap(true, Ordering::Relaxed) {
                return;
            }
            while let Some(seat) = self.idle.pop() {
                // Ordering: Release; pairs with the Acquire in `withdraw`: a taker that finds itself claimed sees
                // the call and the message. Nothing of the taker's is read.
                if seat.state.swap(AWAY, Ordering::Release) == REGISTERED {
                    seat.wake.wake();
                    return;
                }
            }
            // Nobody sleeps. Who has pushed meanwhile and seen the call has left it to us.
            // Ordering: Relaxed; the fence orders it.
            self.is_called.swap(false, Ordering::Relaxed);
            // Ordering: SeqCst; between taking the call back and the looks; mirror of the fences in `push` and
            // `register`.
            fence(Ordering::SeqCst);
            if self.idle.is_empty() || self.is_empty() {
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

    /// All entries, if there are no takers: they are stale then, and go now, for what wakes a taker may keep this queue
    /// alive. The caller holds the lock.
    fn entries_without_takers(&self, are_none: bool) -> Vec<Arc<Seat<W>>> {
        if are_none { std::iter::from_fn(|| self.idle.pop()).collect() } else { Vec::new() }
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

    /// Says that this taker is awake. True if a sender has claimed it since it registered: it owes an
    /// [answer](SharedQueue::answer).
    #[must_use = "who was claimed must answer"]
    pub fn withdraw(&mut self) -> bool {
        // Ordering: Acquire; pairs with the Release in `call`: we see what the claim was for.
        std::mem::take(&mut self.registered)
            && self
                .seat
                .state
                .compare_exchange(REGISTERED, STALE, Ordering::Relaxed, Ordering::Acquire)
                .is_err()
    }

    /// Leaves for good, unless this is the last taker and there is something to take: then it comes back, and
    /// has not left.
    pub fn leave_when_empty(mut self) -> Result<(), Self> {
        let is_claimed = self.withdraw();
        let entries = {
            let _membership = lock(&self.queue.membership);
            let is_last = self.uncount();
            if is_last && !self.queue.is_empty() {
                // Ordering: Relaxed; as in `join`. A sender that has seen nobody meanwhile was refused, or waits for
                // the lock and then finds us.
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

    /// Leaves for good. Returns what was in the queue, if this was the last taker.
    pub fn leave(mut self) -> Vec<M> {
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

    /// Says that this is no taker any more. True if it was the last. What is seen in the queue afterwards is all that
    /// no sender will see to. The caller holds the lock.
    fn uncount(&self) -> bool {
        // Ordering: Relaxed; the fence orders it.
        let is_last = self.queue.taker_count.fetch_sub(1, Ordering::Relaxed) == 1;
        // Ordering: SeqCst; between the count and the last look at the queue; mirror of the fence in `push`.
        fence(Ordering::SeqCst);
        is_last
    }

    /// The rest of leaving, not under the lock: this may free what is woken.
    fn part(self, is_claimed: bool, entries: Vec<Arc<Seat<W>>>) {
        drop(entries);
        if is_claimed {
            self.queue.answer();
        } else {
            // Parts with entries of those that have left: without it they would pile up in a pool that is resized
            // again and again and never used.
            self.queue.wake_one();
        }
    }
}
