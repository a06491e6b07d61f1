//! Policies hold what bounded, displacing and priority mailboxes have beyond the plain one.

use crate::mailbox::backpressure::NotFullWait;
use crate::mailbox::priority::PriorityOrder;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{ArrayQueue, EXPLORED};
use std::num::NonZeroUsize;

/// The difference between a mailbox and the plain one.
#[allow(clippy::large_enum_variant)] // in a box of its own
pub(crate) enum Policy<M> {
    /// A push at the bound is refused.
    Refuse(Bound),
    /// A push at the capacity displaces the oldest message.
    Displace(DisplacingQueue<M>),
    /// Messages are taken in another order than they came in; with a bound, a push at the bound is refused.
    Sort(PriorityOrder<M>, Option<Bound>),
}

impl<M> Policy<M> {
    pub(crate) fn bound(&self) -> Option<&Bound> {
        match self {
            Self::Refuse(bound) => Some(bound),
            Self::Displace(_) => None,
            Self::Sort(_, bound) => bound.as_ref(),
        }
    }

    pub(crate) fn room(&self) -> Option<&NotFullWait> {
        self.bound().map(|bound| &bound.room)
    }
}

/// The number of messages that a mailbox holds at most.
pub(crate) struct Bound {
    /// May change at any time. A mailbox that holds more messages takes none until it holds fewer.
    capacity: AtomicU64,
    /// The place where senders wait at the bound.
    room: NotFullWait,
}

impl Bound {
    pub(crate) fn new(capacity: NonZeroUsize, waiting: bool) -> Self {
        Self { capacity: AtomicU64::new(capacity.get() as u64), room: NotFullWait::new(waiting) }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> u64 {
        // Relaxed: no other memory depends on this number.
        self.capacity.load(Ordering::Relaxed)
    }

    pub(crate) fn set_capacity(&self, capacity: NonZeroUsize) {
        // Relaxed: senders that wait for room are woken through a lock afterwards.
        self.capacity.store(capacity.get() as u64, Ordering::Relaxed);
        self.room.wake_all();
    }
}

/// Messages of a displacing mailbox, each with the index that its sender claimed.
pub(crate) struct DisplacingQueue<M> {
    queue: ArrayQueue<(u64, M)>,
    /// The oldest message once the owner has seen it; from then on it is not displaced. Otherwise the owner could look
    /// at the system queue for this message and then take a later message in its place, which would overtake a control
    /// message sent before it.
    front: UnsafeCell<Option<(u64, M)>>,
    /// The number of messages that were displaced; a statistic.
    displaced: AtomicU64,
}

impl<M> DisplacingQueue<M> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { queue: ArrayQueue::new(capacity), front: UnsafeCell::new(None), displaced: AtomicU64::new(0) }
    }

    /// Adds a message; returns the oldest message when the ring is full.
    pub(crate) fn push(&self, index: u64, message: M) -> Option<M> {
        self.queue.force_push((index, message)).map(|(_, oldest)| oldest)
    }

    /// Counts a displaced message.
    pub(crate) fn count_displaced(&self) {
        // Models have no use for the number, and each access makes them larger.
        if !EXPLORED {
            self.displaced.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of messages that were displaced.
    pub(crate) fn displaced(&self) -> u64 {
        self.displaced.load(Ordering::Relaxed)
    }

    /// Returns the claimed index of the front message, and fetches that message from the ring first if necessary.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub(crate) unsafe fn fetch_front(&self) -> Option<u64> {
        self.front.with_mut(|front| {
            // SAFETY: only the owner touches `front`.
            let front = unsafe { &mut *front };
            if front.is_none() {
                *front = self.queue.pop();
            }
            front.as_ref().map(|(index, _)| *index)
        })
    }

    /// Returns the claimed index of the front message if that message was fetched.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub(crate) unsafe fn front(&self) -> Option<u64> {
        // SAFETY: only the owner touches `front`.
        self.front.with(|front| unsafe { &*front }.as_ref().map(|(index, _)| *index))
    }

    /// Takes the front message that was fetched before.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub(crate) unsafe fn take_front(&self) -> Option<M> {
        // SAFETY: only the owner touches `front`.
        self.front.with_mut(|front| unsafe { &mut *front }.take().map(|(_, message)| message))
    }
}
