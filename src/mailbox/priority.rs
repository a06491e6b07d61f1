//! An order sorts the messages of a priority mailbox, in which urgent messages overtake.
//!
//! Only the owner uses the order (see the [module](super)). Senders run the user's function alone, and only where the
//! mailbox is full. The user's function makes a *key* from each message, once, when the owner moves the message to the
//! order. Messages of equal keys keep the order of their claims, and so the order of each sender.
//!
//! There are two shapes:
//!
//! * *Ranks* are a heap of keys.
//! * *Lanes* are a few queues: the first queue that has a message goes first. A guard against starvation is optional.

use crate::sync::cell::UnsafeCell;
use crate::util::panic;
use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::num::{NonZeroU32, NonZeroUsize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc as StdArc;

/// The urgency of a message: a rank, or the number of a lane; lower goes first.
pub(crate) type Key<M> = dyn Fn(&M) -> i64 + Send + Sync;

/// The meaning of keys in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Any number is a rank.
    Ranks,
    /// Keys are numbers of lanes, from 0; a key beyond the last lane counts as the last.
    ClassQueues {
        count: NonZeroUsize,
        /// The number of messages of higher lanes that may pass a lane that waits.
        guard: Option<NonZeroU32>,
    },
}

/// Returns true if a burst has left so much capacity that half of it should be given back.
fn is_sparse(len: usize, capacity: usize) -> bool {
    capacity > 64 && len < capacity / 4
}

/// Messages that are published and not yet handled, in the order in which the actor handles them.
pub(crate) struct PriorityOrder<M> {
    key: StdArc<Key<M>>,
    /// Messages with keys up to this one are taken beyond the capacity.
    never_discards: Option<i64>,
    sorter: UnsafeCell<Sorter<M>>,
}

impl<M> PriorityOrder<M> {
    pub(crate) fn new(shape: Shape, key: StdArc<Key<M>>) -> Self {
        let sorter = match shape {
            Shape::Ranks => Sorter::Ranks(Ranks::new()),
            Shape::ClassQueues { count, guard } => Sorter::ClassQueues(ClassQueues::new(count, guard)),
        };
        Self { key, never_discards: None, sorter: UnsafeCell::new(sorter) }
    }

    /// Sets that the mailbox takes messages with keys up to `class` beyond its capacity.
    pub(crate) fn never_discarding(self, class: Option<i64>) -> Self {
        Self { never_discards: class, ..self }
    }

    /// Returns whether a message that finds no room is taken all the same. For senders: it runs the user's function. A
    /// panic of that function does not reach the sender, and the message then has no exception.
    #[cold]
    pub(crate) fn takes_beyond(&self, message: &M) -> bool {
        let Some(class) = self.never_discards else { return false };
        match catch_unwind(AssertUnwindSafe(|| (self.key)(message))) {
            Ok(key) => key <= class,
            Err(panic) => {
                panic::discard(panic);
                false
            }
        }
    }

    /// Adds the message that was claimed at `index`, which is higher than all indices before.
    ///
    /// # Errors
    ///
    /// The panic of the user's function. It makes the message the least urgent of all; the message is added all the
    /// same.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub(crate) unsafe fn insert(&self, index: u64, message: M) -> Result<(), Box<dyn Any + Send>> {
        // User code: before the sorter is touched.
        let key = catch_unwind(AssertUnwindSafe(|| (self.key)(&message)));
        let (key, outcome) = match key {
            Ok(key) => (key, Ok(())),
            Err(panic) => (i64::MAX, Err(panic)),
        };
        // SAFETY: the caller's promise.
        unsafe { self.with_mut(|sorter| sorter.insert(index, key, message)) };
        outcome
    }

    /// Takes the message that the actor handles next.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub(crate) unsafe fn take(&self) -> Option<M> {
        // SAFETY: the caller's promise.
        unsafe { self.with_mut(Sorter::take) }
    }

    /// Returns the number of messages.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub(crate) unsafe fn len(&self) -> u64 {
        // SAFETY: the caller's promise.
        self.sorter.with(|sorter| unsafe { &*sorter }.len() as u64)
    }

    /// Returns the lowest index of a message; `None` if there is no message.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub(crate) unsafe fn lowest(&self) -> Option<u64> {
        // SAFETY: the caller's promise.
        self.sorter.with(|sorter| unsafe { &*sorter }.lowest())
    }

    /// # Safety
    /// The caller owns the mailbox. `act` runs no user code.
    unsafe fn with_mut<R>(&self, act: impl FnOnce(&mut Sorter<M>) -> R) -> R {
        // SAFETY: only the owner gets here, and `act` does not call back.
        self.sorter.with_mut(|sorter| act(unsafe { &mut *sorter }))
    }
}

enum Sorter<M> {
    Ranks(Ranks<M>),
    ClassQueues(ClassQueues<M>),
}

impl<M> Sorter<M> {
    fn insert(&mut self, index: u64, key: i64, message: M) {
        match self {
            Self::Ranks(ranks) => ranks.insert(index, key, message),
            Self::ClassQueues(lanes) => lanes.insert(index, key, message),
        }
    }

    fn take(&mut self) -> Option<M> {
        match self {
            Self::Ranks(ranks) => ranks.take(),
            Self::ClassQueues(lanes) => lanes.take(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Ranks(ranks) => ranks.by_rank.len(),
            Self::ClassQueues(lanes) => lanes.len,
        }
    }

    fn lowest(&self) -> Option<u64> {
        match self {
            Self::Ranks(ranks) => ranks.messages.first_key_value().map(|(index, _)| *index),
            Self::ClassQueues(lanes) => lanes.lowest(),
        }
    }
}

/// Takes the lowest rank first, and equal ranks by index.
///
/// The messages lie by index. This shows the lowest index at once, and takes memory for the present messages only, in
/// whatever order they leave. The heap moves numbers only.
struct Ranks<M> {
    by_rank: BinaryHeap<Reverse<(i64, u64)>>,
    messages: BTreeMap<u64, M>,
}

impl<M> Ranks<M> {
    fn new() -> Self {
        Self { by_rank: BinaryHeap::new(), messages: BTreeMap::new() }
    }

    fn insert(&mut self, index: u64, rank: i64, message: M) {
        self.by_rank.push(Reverse((rank, index)));
        self.messages.insert(index, message);
    }

    fn take(&mut self) -> Option<M> {
        let Reverse((_, index)) = self.by_rank.pop()?;
        if is_sparse(self.by_rank.len(), self.by_rank.capacity()) {
            self.by_rank.shrink_to(self.by_rank.capacity() / 2);
        }
        self.messages.remove(&index)
    }
}

/// Takes from the first lane that has a message.
struct ClassQueues<M> {
    lanes: Box<[Waiting<M>]>,
    guard: Option<NonZeroU32>,
    len: usize,
}

/// The messages of one lane, each with its index.
struct Waiting<M> {
    messages: VecDeque<(u64, M)>,
    /// The number of messages of higher lanes that were taken while this lane waited, since this lane last had its
    /// turn.
    passed: u32,
}

impl<M> ClassQueues<M> {
    fn new(count: NonZeroUsize, guard: Option<NonZeroU32>) -> Self {
        let lanes = (0..count.get()).map(|_| Waiting { messages: VecDeque::new(), passed: 0 });
        Self { lanes: lanes.collect(), guard, len: 0 }
    }

    fn insert(&mut self, index: u64, lane: i64, message: M) {
        let last = self.lanes.len() - 1;
        // A key below 0 counts as the first lane, the most urgent one.
        let lane = usize::try_from(lane.max(0)).map_or(last, |lane| lane.min(last));
        self.lanes[lane].messages.push_back((index, message));
        self.len += 1;
    }

    fn take(&mut self) -> Option<M> {
        let chosen = self.next()?;
        let (higher_or_chosen, lower) = self.lanes.split_at_mut(chosen + 1);
        let lane = &mut higher_or_chosen[chosen];
        let (_, message) = lane.messages.pop_front()?;
        lane.passed = 0;
        if is_sparse(lane.messages.len(), lane.messages.capacity()) {
            lane.messages.shrink_to(lane.messages.capacity() / 2);
        }
        for waiting in lower.iter_mut().filter(|lane| !lane.messages.is_empty()) {
            waiting.passed = waiting.passed.saturating_add(1);
        }
        self.len -= 1;
        Some(message)
    }

    /// Returns the highest lane that was passed often enough, or else the highest lane that has a message. Only a lane
    /// that has a message is passed.
    fn next(&self) -> Option<usize> {
        let due = self.guard.and_then(|guard| self.lanes.iter().position(|lane| lane.passed >= guard.get()));
        due.or_else(|| self.lanes.iter().position(|lane| !lane.messages.is_empty()))
    }

    /// Returns the lowest index; within a lane the first message has the lowest.
    fn lowest(&self) -> Option<u64> {
        self.lanes.iter().filter_map(|lane| lane.messages.front()).map(|(index, _)| *index).min()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests;
