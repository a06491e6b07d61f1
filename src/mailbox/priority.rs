//! The order of a mailbox in which urgent messages overtake.
//!
//! Only the owner comes here (see the [module](super)); senders use the user's function alone, where the mailbox is full.
//! A *key* made by that function is taken once from each message, when it is moved here. Messages of equal keys keep the order of
//! their claims, and so of each sender.
//!
//! Two shapes. *Ranks* are a heap of keys. *Lanes* are a few queues, of which the first that has something
//! goes first, and a guard against starvation if wanted.

use crate::sync::cell::UnsafeCell;
use crate::util::panic;
use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::num::{NonZeroU32, NonZeroUsize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc as StdArc;

/// How urgent a message is: a rank, or the number of a lane; lower goes first.
pub type Key<M> = dyn Fn(&M) -> i64 + Send + Sync;

/// What keys are to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Any number is a rank.
    Ranks,
    /// Numbers of lanes, from 0; what is beyond the last counts as the last.
    Lanes {
        count: NonZeroUsize,
        /// How many messages of higher lanes may pass a lane that waits.
        guard: Option<NonZeroU32>,
    },
}

/// True if a flood has left so much room that half of it should be given back.
fn is_sparse(len: usize, capacity: usize) -> bool {
    capacity > 64 && len < capacity / 4
}

/// Messages that were published and are not yet handled, in the order in which they are to be.
pub struct Order<M> {
    key: StdArc<Key<M>>,
    /// Keys up to this one are taken beyond the capacity.
    never_discards: Option<i64>,
    sorter: UnsafeCell<Sorter<M>>,
}

impl<M> Order<M> {
    pub fn new(shape: Shape, key: StdArc<Key<M>>) -> Self {
        let sorter = match shape {
            Shape::Ranks => Sorter::Ranks(Ranks::new()),
            Shape::Lanes { count, guard } => Sorter::Lanes(Lanes::new(count, guard)),
        };
        Self { key, never_discards: None, sorter: UnsafeCell::new(sorter) }
    }

    /// The same, of a mailbox that takes messages of keys up to `class` beyond its capacity.
    pub fn never_discarding(self, class: Option<i64>) -> Self {
        Self { never_discards: class, ..self }
    }

    /// Whether a message that finds no room is taken all the same. For senders: runs the user's function, whose panic
    /// is not the sender's, and makes no exception.
    #[cold]
    pub fn takes_beyond(&self, message: &M) -> bool {
        let Some(class) = self.never_discards else { return false };
        match catch_unwind(AssertUnwindSafe(|| (self.key)(message))) {
            Ok(key) => key <= class,
            Err(panic) => {
                panic::discard(panic);
                false
            }
        }
    }

    /// Adds the message that was claimed at `index`, which is higher than all before.
    ///
    /// # Errors
    ///
    /// The panic of the user's function, which makes the message the least urgent there is; it is added all
    /// the same.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub unsafe fn insert(&self, index: u64, message: M) -> Result<(), Box<dyn Any + Send>> {
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

    /// Takes the message that is to be handled next.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub unsafe fn take(&self) -> Option<M> {
        // SAFETY: the caller's promise.
        unsafe { self.with_mut(Sorter::take) }
    }

    /// How many messages there are.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub unsafe fn len(&self) -> u64 {
        // SAFETY: the caller's promise.
        self.sorter.with(|sorter| unsafe { &*sorter }.len() as u64)
    }

    /// The lowest index of a message; `None` if there is none.
    ///
    /// # Safety
    /// The caller owns the mailbox.
    pub unsafe fn lowest(&self) -> Option<u64> {
        // SAFETY: the caller's promise.
        self.sorter.with(|sorter| unsafe { &*sorter }.lowest())
    }

    /// # Safety
    /// The caller owns the mailbox. `act` runs no user code.
    unsafe fn with_mut<R>(&self, act: impl FnOnce(&mut Sorter<M>) -> R) -> R {
        // SAFETY: only the owner comes here, and `act` does not come back.
        self.sorter.with_mut(|sorter| act(unsafe { &mut *sorter }))
    }
}

enum Sorter<M> {
    Ranks(Ranks<M>),
    Lanes(Lanes<M>),
}

impl<M> Sorter<M> {
    fn insert(&mut self, index: u64, key: i64, message: M) {
        match self {
            Self::Ranks(ranks) => ranks.insert(index, key, message),
            Self::Lanes(lanes) => lanes.insert(index, key, message),
        }
    }

    fn take(&mut self) -> Option<M> {
        match self {
            Self::Ranks(ranks) => ranks.take(),
            Self::Lanes(lanes) => lanes.take(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Ranks(ranks) => ranks.by_rank.len(),
            Self::Lanes(lanes) => lanes.len,
        }
    }

    fn lowest(&self) -> Option<u64> {
        match self {
            Self::Ranks(ranks) => ranks.messages.first_key_value().map(|(index, _)| *index),
            Self::Lanes(lanes) => lanes.lowest(),
        }
    }
}

/// Lowest rank first, equal ones by index.
///
/// The messages lie by index, which shows the lowest one at once and takes no more memory than there are
/// messages, whatever order they leave in; the heap moves numbers only.
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

/// The first lane that has something goes first.
struct Lanes<M> {
    lanes: Box<[Waiting<M>]>,
    guard: Option<NonZeroU32>,
    len: usize,
}

/// The messages of one lane, each with its index.
struct Waiting<M> {
    messages: VecDeque<(u64, M)>,
    /// Messages of higher lanes that were taken while this one waited, since one of its own was.
    passed: u32,
}

impl<M> Lanes<M> {
    fn new(count: NonZeroUsize, guard: Option<NonZeroU32>) -> Self {
        let lanes = (0..count.get()).map(|_| Waiting { messages: VecDeque::new(), passed: 0 });
        Self { lanes: lanes.collect(), guard, len: 0 }
    }

    fn insert(&mut self, index: u64, lane: i64, message: M) {
        let last = self.lanes.len() - 1;
        // Below 0 is as urgent as it gets.
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

    /// The highest lane that was passed often enough, or else the highest that has something. Only a lane that
    /// has something was passed.
    fn next(&self) -> Option<usize> {
        let due = self.guard.and_then(|guard| self.lanes.iter().position(|lane| lane.passed >= guard.get()));
        due.or_else(|| self.lanes.iter().position(|lane| !lane.messages.is_empty()))
    }

    /// Within a lane the first is the lowest.
    fn lowest(&self) -> Option<u64> {
        self.lanes.iter().filter_map(|lane| lane.messages.front()).map(|(index, _)| *index).min()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests;
