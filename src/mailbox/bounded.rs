//! What a bounded mailbox, a ring and an ordered mailbox have beyond the plain one.

use crate::mailbox::backpressure::Room;
use crate::mailbox::priority::Order;
use crate::sync::ArrayQueue;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::cell::UnsafeCell;
use std::num::NonZeroUsize;

/// How a mailbox differs from the plain one.
#[allow(clippy::large_enum_variant)] // in a box of its own
pub enum Policy<M> {
    /// At its bound the push is refused.
    Refuse(Bound),
    /// At its capacity the oldest message is displaced.
    Displace(Ring<M>),
    /// Messages are taken in another order than they came in; with a bound, the push is refused there.
    Sort(Order<M>, Option<Bound>),
}

impl<M> Policy<M> {
    pub fn bound(&self) -> Option<&Bound> {
        match self {
            Self::Refuse(bound) => Some(bound),
            Self::Displace(_) => None,
            Self::Sort(_, bound) => bound.as_ref(),
        }
    }

    pub fn room(&self) -> Option<&Room> {
        self.bound()?.room.as_ref()
    }
}

/// How many messages a mailbox holds.
pub struct Bound {
    /// May be changed at any time. A mailbox that has more takes none until it has fewer.
    capacity: AtomicU64,
    /// Where senders wait at the bound, if they may.
    room: Option<Room>,
}

impl Bound {
    pub fn new(capacity: NonZeroUsize, waiting: bool) -> Self {
        Self { capacity: AtomicU64::new(capacity.get() as u64), room: waiting.then(Room::new) }
    }

    #[inline]
    pub fn capacity(&self) -> u64 {
        // Relaxed: a number that nothing else hangs on.
        self.capacity.load(Ordering::Relaxed)
    }

    pub fn set_capacity(&self, capacity: NonZeroUsize) {
        // Relaxed: who waits for room is woken through a lock afterwards.
        self.capacity.store(capacity.get() as u64, Ordering::Relaxed);
        if let Some(room) = &self.room {
            room.for_all();
        }
    }
}

/// Messages of a ring mailbox, each with the index that its sender claimed.
pub struct Ring<M> {
    queue: ArrayQueue<(u64, M)>,
    /// The oldest message once the owner has seen it. From then on it is not displaced: had the owner looked
    /// at the lane for this message and then taken a later one in its place, that one could overtake control
    /// sent before it.
    front: UnsafeCell<Option<(u64, M)>>,
}

impl<M> Ring<M> {
    pub fn new(capacity: usize) -> Self {
        Self { queue: ArrayQueue::new(capacity), front: UnsafeCell::new(None) }
    }

    /// Adds a message; when the ring is full the oldest comes back.
    pub fn push(&self, index: u64, message: M) -> Option<M> {
        self.queue.force_push((index, message)).map(|(_, oldest)| oldest)
    }

    /// The claimed index of the front message, which is fetched from the ring if need be.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub unsafe fn fetch_front(&self) -> Option<u64> {
        self.front.with_mut(|front| {
            // SAFETY: only the owner touches `front`.
            let front = unsafe { &mut *front };
            if front.is_none() {
                *front = self.queue.pop();
            }
            front.as_ref().map(|(index, _)| *index)
        })
    }

    /// The claimed index of the front message if it was fetched.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub unsafe fn front(&self) -> Option<u64> {
        // SAFETY: only the owner touches `front`.
        self.front.with(|front| unsafe { &*front }.as_ref().map(|(index, _)| *index))
    }

    /// Takes the front message that was fetched before.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub unsafe fn take_front(&self) -> Option<M> {
        // SAFETY: only the owner touches `front`.
        self.front.with_mut(|front| unsafe { &mut *front }.take().map(|(_, message)| message))
    }
}
