//! A queue without a bound, for several pushers and several takers, oldest first.
//!
//! The queue is a chain of blocks, those of the mailboxes. Each end of the queue has an index and a block. A pusher
//! claims a slot by an exchange of the tail's index and writes the message there; a taker claims it by an exchange of
//! the head's index and reads the message. There is one such exchange for each of the two, and no other
//! read-modify-write. A thread whose exchange is lost to another waits a moment before the next, so the line of the
//! index is not carried to and fro for each message.
//!
//! ```text
//!   head: index, block               tail: index, block
//!          │                                │
//!          ▼                                ▼
//!    [ taken, taken, m, m ] ──next──▶ [ m, m, claimed, – ]
//! ```
//!
//! An index names a place: a lap of [`LAP`](BlockQueue::LAP) indices for each block, one more than the block has slots.
//! The last index of a lap says that the thread which has claimed the last slot moves this end to the next block. All
//! others wait for that.
//!
//! # Why the block belongs to the index
//! A thread reads the index, then the block, and then exchanges the index. An end is moved to the next block in three
//! steps: the index becomes the last of the lap, then the block changes, then the index becomes the first of the next
//! lap. A thread that has read an older block than that of its index would have missed a change of the block that came
//! before the index. A thread that has read a younger block sees the index that came before the change, so its exchange
//! fails.
//!
//! # When a block is released
//! The takers count the messages that they have moved out of a block. Each taker counts for itself in a [`Cursor`], and
//! adds its count to the block's when it comes to another block, finds the queue empty, or is dropped. The one whose
//! addition makes the count that of the slots releases the block. The pusher of a block's last slot has linked the next
//! block before it writes its message, and the taker of that message has moved the head on before it counts. So no
//! other thread is in the block then.
//!
//! A taker that does not add its count, since it is at work for long, keeps one block from being released. It keeps no
//! message.
//!
//! # What a taker remembers
//! A cursor also has the index of the tail that it has seen last. The tail only grows, so a taker that has not reached
//! this index takes without a look at the line to which the pushers write.

use crate::mailbox::block::{Block, Shape};
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::{CachePadded, hint, thread};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

/// The queue.
pub(crate) struct BlockQueue<M> {
    head: CachePadded<End>,
    tail: CachePadded<End>,
    owns: PhantomData<*mut M>,
}

/// One end of the queue.
struct End {
    index: AtomicU64,
    block: AtomicPtr<Block>,
}

/// The part of a taker that no other thread touches. A cursor belongs to one queue.
pub(crate) struct Cursor<M> {
    /// The block from which this taker has taken last.
    block: Cell<*mut Block>,
    /// The messages that were taken from that block and that its count lacks.
    taken: Cell<u64>,
    /// An index of the tail at some time.
    seen: Cell<u64>,
    takes: PhantomData<*mut M>,
}

// SAFETY: the queue hands messages from thread to thread, and shows none to two threads.
unsafe impl<M: Send> Send for BlockQueue<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for BlockQueue<M> {}
// SAFETY: the cursor keeps a block from being released, and the block has no thread.
unsafe impl<M: Send> Send for Cursor<M> {}

/// Waits that become longer each time.
struct Wait(u32);

impl Wait {
    /// The longest wait is two to the power of this, in spin hints.
    const LONGEST: u32 = 6;

    /// Waits after an exchange that another thread was ahead of. The line stays with that thread for some exchanges.
    #[cold]
    fn after_lost_exchange(&mut self) {
        if !crate::sync::EXPLORED {
            (0..1 << self.0.min(Self::LONGEST)).for_each(|_| hint::spin_loop());
        }
        self.0 += 1;
    }

    /// Waits for a step of another thread, which may have no core.
    #[cold]
    fn for_step(&mut self) {
        if self.0 <= Self::LONGEST && !crate::sync::EXPLORED {
            (0..1 << self.0).for_each(|_| hint::spin_loop());
        } else {
            thread::yield_now();
        }
        self.0 += 1;
    }
}

impl<M> BlockQueue<M> {
    const SLOTS: u64 = Shape::<M>::SLOTS as u64;
    /// The indices of a block: its slots, and one while an end moves to the next block.
    const LAP: u64 = Self::SLOTS + 1;

    pub(crate) fn new() -> Self {
        let block = Shape::<M>::allocate(0);
        let end = || CachePadded::new(End { index: AtomicU64::new(0), block: AtomicPtr::new(block) });
        Self { head: end(), tail: end(), owns: PhantomData }
    }

    /// Adds a message. Runs no user code but the global allocator.
    #[inline]
    pub(crate) fn push(&self, message: M) {
        let (mut next, mut wait) = (ptr::null_mut::<Block>(), Wait(0));
        // Ordering: Acquire; pairs with the Release store of the index in `End::advance`: this thread sees the block of
        // the index, or a later one.
        let mut index = self.tail.index.load(Ordering::Acquire);
        let (block, number) = loop {
            // Ordering: Acquire; pairs with the Release store of the block in `End::advance`: this thread sees the index
            // that came before, and the block's header.
            let block = self.tail.block.load(Ordering::Acquire);
            let number = index % Self::LAP;
            if number == Self::SLOTS {
                wait.for_step();
                // Ordering: Acquire; as above.
                index = self.tail.index.load(Ordering::Acquire);
                continue;
            }
            if number + 1 == Self::SLOTS && next.is_null() {
                // Before the claim: others wait from the claim on.
                next = Shape::<M>::allocate(0);
            }
            // Ordering: SeqCst; the looks of the pusher behind it are, too, which need no fence then: see
            // `SharedQueue::pushed`. The queue itself needs nothing here, since the slot's stamp makes the message
            // visible. On failure Acquire; as above.
            match self.tail.index.compare_exchange_weak(index, index + 1, Ordering::SeqCst, Ordering::Acquire)
            {
                Ok(_) => break (block, number),
                Err(now) => {
                    wait.after_lost_exchange();
                    index = now;
                }
            }
        };
        if number + 1 == Self::SLOTS {
            self.tail.advance(next, index);
            // Ordering: Release; pairs with the Acquire in `pop`: a taker that goes on to the next block sees its header.
            // SAFETY: the claim of a slot whose message is not written yet keeps the block.
            unsafe { &*block }.next.store(next, Ordering::Release);
        } else if !next.is_null() {
            // Another thread has claimed the last slot.
            // SAFETY: this thread alone knows the block, in which no slot was used.
            unsafe { Shape::<M>::release(next) };
        }
        // SAFETY: as above; the number is below that of the slots, and no other thread has this claim.
        unsafe { (*Shape::<M>::slot(block, number as usize)).publish(message, Block::generation(block)) };
    }

    /// Takes the oldest message.
    #[inline]
    pub(crate) fn pop(&self, cursor: &Cursor<M>) -> Option<M> {
        let mut wait = Wait(0);
        // Ordering: Acquire; as in `push`, for the head.
        let mut index = self.head.index.load(Ordering::Acquire);
        let (block, number) = loop {
            // Ordering: Acquire; as in `push`, for the head.
            let block = self.head.block.load(Ordering::Acquire);
            let number = index % Self::LAP;
            if number == Self::SLOTS {
                wait.for_step();
                // Ordering: Acquire; as above.
                index = self.head.index.load(Ordering::Acquire);
                continue;
            }
            if index >= cursor.seen.get() {
                // Ordering: Relaxed; the slot's stamp orders the rest.
                cursor.seen.set(self.tail.index.load(Ordering::Relaxed));
                if index >= cursor.seen.get() {
                    cursor.settle();
                    return None;
                }
            }
            // Ordering: Relaxed; the slot's stamp makes the message visible. On failure Acquire; as above.
            match self.head.index.compare_exchange_weak(
                index,
                index + 1,
                Ordering::Relaxed,
                Ordering::Acquire,
            ) {
                Ok(_) => break (block, number),
                Err(now) => {
                    wait.after_lost_exchange();
                    index = now;
                }
            }
        };
        if number + 1 == Self::SLOTS {
            // SAFETY: the claim of a slot whose message is not taken yet keeps the block.
            let next = &unsafe { &*block }.next;
            let next = loop {
                // Ordering: Acquire; pairs with the Release in `push`.
                match next.load(Ordering::Acquire) {
                    next if !next.is_null() => break next,
                    _ => wait.for_step(),
                }
            };
            self.head.advance(next, index);
        }
        // SAFETY: as above; the number is below that of the slots.
        let (slot, generation) =
            unsafe { (&*Shape::<M>::slot(block, number as usize), Block::generation(block)) };
        while slot.stamp() != generation {
            wait.for_step();
        }
        // SAFETY: the stamp shows the message, and no other thread has this claim.
        let message = unsafe { slot.take() };
        cursor.count(block);
        Some(message)
    }

    /// Returns the number of messages; exact when no thread pushes or takes meanwhile.
    pub(crate) fn len(&self) -> usize {
        // Ordering: Relaxed, both; a count. The head first: a head that is read later may have passed the tail.
        let head = self.head.index.load(Ordering::Relaxed);
        let tail = self.tail.index.load(Ordering::Relaxed);
        let messages = |index: u64| index / Self::LAP * Self::SLOTS + index % Self::LAP;
        messages(tail).saturating_sub(messages(head)) as usize
    }

    /// Returns whether there is nothing to take. While an end moves to the next block, the result may be false though
    /// there is nothing; `pop` waits for that move then.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Ordering: Relaxed, both; a caller that needs more has a fence before.
        self.head.index.load(Ordering::Relaxed) >= self.tail.index.load(Ordering::Relaxed)
    }
}

impl End {
    /// Moves this end to the next block. The caller has claimed the last slot of a lap, at `index`.
    fn advance(&self, next: *mut Block, index: u64) {
        // Ordering: Release; pairs with the Acquire loads of the block in `push` and `pop`.
        self.block.store(next, Ordering::Release);
        // Ordering: Release; pairs with the Acquire loads of the index there. The exchanges that follow continue it.
        self.index.store(index + 2, Ordering::Release);
    }
}

impl<M> Drop for BlockQueue<M> {
    fn drop(&mut self) {
        let cursor = Cursor::new();
        while let Some(message) = self.pop(&cursor) {
            drop(message);
        }
        // No thread claims the remaining slots. The block may have to wait for cursors that outlive the queue.
        let index = self.head.index.load(Ordering::Relaxed);
        let block = self.head.block.load(Ordering::Relaxed);
        cursor.block.set(block);
        cursor.taken.set(Self::SLOTS - index % Self::LAP);
    }
}

impl<M> Cursor<M> {
    /// The cursor of a taker that has taken nothing.
    pub(crate) fn new() -> Self {
        Self {
            block: Cell::new(ptr::null_mut()),
            taken: Cell::new(0),
            seen: Cell::new(0),
            takes: PhantomData,
        }
    }

    /// Counts a message that was taken from this block.
    #[inline]
    fn count(&self, block: *mut Block) {
        if self.block.get() != block {
            self.settle();
            self.block.set(block);
        }
        self.taken.set(self.taken.get() + 1);
    }

    /// Adds the count to that of the block.
    #[inline]
    fn settle(&self) {
        let taken = self.taken.replace(0);
        if taken == 0 {
            return;
        }
        let block = self.block.get();
        // Ordering: AcqRel; pairs with that of the other takers in `settle`: the addition that completes the count comes
        // after all uses of the block.
        // SAFETY: the block lacks this count, so it is not released.
        let before = unsafe { &*block }.taken().fetch_add(taken, Ordering::AcqRel);
        if before + taken == Shape::<M>::SLOTS as u64 {
            // SAFETY: all messages were taken and all takers have left, so no thread can reach the block.
            unsafe { Shape::<M>::release(block) };
        }
    }
}

impl<M> Drop for Cursor<M> {
    fn drop(&mut self) {
        self.settle();
    }
}

#[cfg(all(test, not(any(pointsman_loom, pointsman_shuttle))))]
mod tests {
    use super::{BlockQueue, Cursor};
    use std::sync::Arc;
    use std::thread;

    const MESSAGES: usize = if cfg!(miri) { 100 } else { 100_000 };

    #[test]
    fn each_message_of_several_pushers_is_taken_once_and_in_the_order_of_its_pusher() {
        let queue = BlockQueue::<(usize, usize)>::new();
        let taken: Vec<Vec<(usize, usize)>> = thread::scope(|scope| {
            let takers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let cursor = Cursor::new();
                        let (mut taken, mut looks) = (Vec::new(), 0);
                        while looks < 1_000 || taken.len() < MESSAGES / 10 {
                            looks += 1;
                            taken.extend(queue.pop(&cursor));
                            if looks % 64 == 0 {
                                thread::yield_now();
                            }
                        }
                        taken
                    })
                })
                .collect();
            for pusher in 0..3 {
                let queue = &queue;
                scope.spawn(move || (0..MESSAGES).for_each(|number| queue.push((pusher, number))));
            }
            takers.into_iter().map(|taker| taker.join().unwrap()).collect()
        });
        let left: Vec<_> = {
            let cursor = Cursor::new();
            std::iter::from_fn(|| queue.pop(&cursor)).collect()
        };
        for pusher in 0..3 {
            let of = |taken: &[(usize, usize)]| -> Vec<usize> {
                taken.iter().filter(|message| message.0 == pusher).map(|message| message.1).collect()
            };
            let mut all = of(&left);
            for taken in &taken {
                let taken = of(taken);
                assert!(taken.is_sorted());
                all.extend(taken);
            }
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..MESSAGES), "of {pusher}: {}", all.len());
        }
        assert!(queue.is_empty());
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn the_length_leaves_out_the_gaps_between_blocks() {
        let (queue, cursor) = (BlockQueue::new(), Cursor::new());
        for count in 1..=100 {
            queue.push(count);
            assert_eq!(queue.len(), count);
        }
        for count in (0..100).rev() {
            assert_eq!(queue.pop(&cursor), Some(100 - count));
            assert_eq!((queue.len(), queue.is_empty()), (count, count == 0));
        }
        assert_eq!(queue.pop(&cursor), None);
    }

    #[test]
    fn a_queue_drops_what_is_left_whichever_cursor_has_taken_the_rest() {
        let message = Arc::new(());
        // Miri takes long for each message.
        for pushed in (0..70).step_by(if cfg!(miri) { 23 } else { 1 }) {
            for taken in 0..=pushed {
                let queue = BlockQueue::new();
                let cursors = [Cursor::new(), Cursor::new()];
                (0..pushed).for_each(|_| queue.push(message.clone()));
                (0..taken).for_each(|number| drop(queue.pop(&cursors[number % 2])));
                assert_eq!(Arc::strong_count(&message), 1 + pushed - taken);
                let [one, other] = cursors;
                drop(one);
                drop(queue);
                assert_eq!(Arc::strong_count(&message), 1);
                drop(other);
            }
        }
    }

    #[test]
    fn messages_without_a_size_and_large_ones_fit() {
        let (queue, cursor) = (BlockQueue::new(), Cursor::new());
        (0..100).for_each(|_| queue.push(()));
        assert_eq!(std::iter::from_fn(|| queue.pop(&cursor)).count(), 100);
        let (queue, cursor) = (BlockQueue::new(), Cursor::new());
        (0..10).for_each(|number| queue.push([number; 1_000]));
        let all: Vec<_> = std::iter::from_fn(|| queue.pop(&cursor)).map(|message| message[999]).collect();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }
}
