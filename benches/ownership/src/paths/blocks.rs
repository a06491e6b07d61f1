//! Blocks of slots, and the free ones: `src/mailbox/block.rs`.

use crate::lines::Line;
use crate::threads::{Simulator, Thread};
use std::cell::RefCell;
use std::collections::VecDeque;

/// `block.rs: SLOTS`.
pub const SLOTS: u64 = 31;

/// A header of 32 bytes and 31 slots of 24 for messages of 16 bytes.
const LINES: u32 = 13;

/// `block.rs: MAGAZINE`, `THREAD_MAX`, `DEPOT_MAX`.
const MAGAZINE: usize = 32;
const THREAD_MAX: usize = 64;
const DEPOT_MAX: usize = 16;

/// A block, by its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block(pub Line);

impl Block {
    /// The line of `next`, `start`, `generation` and `observed`.
    pub fn header(self) -> Line {
        self.0
    }

    /// The first and the last line of a slot.
    pub fn slot(self, number: u64) -> [Line; 2] {
        let begin = 32 + 24 * number;
        [begin, begin + 23].map(|byte| Line(self.0.0 + (byte / 64) as u32))
    }

    pub fn lines(self) -> impl Iterator<Item = Line> {
        (self.0.0..self.0.0 + LINES).map(Line)
    }
}

/// The free blocks of one thread: `block.rs: ThreadCache`.
#[derive(Debug, Default)]
pub struct ThreadCache(RefCell<Vec<Block>>);

/// The free blocks that threads exchange: `block.rs: BlockMagazines`.
#[derive(Debug)]
pub struct Depot {
    lock: Line,
    magazines: RefCell<Vec<Vec<Block>>>,
}

impl Depot {
    pub fn new(simulator: &Simulator) -> Self {
        Self { lock: simulator.add_lines(1), magazines: RefCell::default() }
    }

    /// `block.rs: Shape::allocate`, `cache::take`.
    pub async fn take(&self, thread: &Thread, cache: &ThreadCache) -> Block {
        if cache.0.borrow().is_empty() {
            self.refill(thread, cache).await;
        }
        let Some(block) = cache.0.borrow_mut().pop() else {
            // `Shape::allocate_fresh`: the kernel clears the page on this core.
            let block = Block(thread.add_lines(LINES as usize));
            block.lines().for_each(|line| thread.prefetch(line));
            thread.work(thread.machine().fresh_block).await;
            return block;
        };
        // `Block.next`, by which free blocks are linked; `sync/prefetch.rs: prefetch_for_write`; `Block::renew`.
        thread.read(block.header()).await;
        block.lines().for_each(|line| thread.prefetch(line));
        thread.write(block.header());
        block
    }

    /// `block.rs: cache::refill`: a look at `filled`, and the lock.
    async fn refill(&self, thread: &Thread, cache: &ThreadCache) {
        thread.read(self.lock).await;
        if self.magazines.borrow().is_empty() {
            return;
        }
        thread.change(self.lock).await;
        let magazine = self.magazines.borrow_mut().pop();
        thread.change(self.lock).await;
        cache.0.borrow_mut().extend(magazine.into_iter().flatten());
    }

    /// `block.rs: Shape::release`, `cache::put`, `cache::give`.
    pub async fn put(&self, thread: &Thread, cache: &ThreadCache, block: Block) {
        thread.write(block.header());
        cache.0.borrow_mut().push(block);
        if cache.0.borrow().len() <= THREAD_MAX {
            return;
        }
        let magazine = cache.0.borrow_mut().drain(..MAGAZINE).collect();
        thread.change(self.lock).await;
        if self.magazines.borrow().len() < DEPOT_MAX {
            self.magazines.borrow_mut().push(magazine);
        }
        thread.change(self.lock).await;
    }
}

/// The blocks of a queue in their order: `src/mailbox/chain.rs`.
#[derive(Debug, Default)]
pub struct Chain {
    /// The index of the first slot of the first block.
    start: u64,
    blocks: VecDeque<Block>,
}

impl Chain {
    /// The block of an index, and the number of the slot there; `None` if the chain must grow first.
    pub fn place(&self, index: u64) -> Option<(Block, u64)> {
        let distance = index.checked_sub(self.start)?;
        let block = *self.blocks.get((distance / SLOTS) as usize)?;
        Some((block, distance % SLOTS))
    }

    pub fn last(&self) -> Option<Block> {
        self.blocks.back().copied()
    }

    /// Adds a block to the end. The first one begins at the index `start`.
    pub fn link(&mut self, block: Block, start: u64) {
        if self.blocks.is_empty() {
            self.start = start;
        }
        self.blocks.push_back(block);
    }

    /// Removes a block whose slots all come before an index.
    pub fn remove_before(&mut self, index: u64) -> Option<Block> {
        if self.blocks.is_empty() || index < self.start + SLOTS {
            return None;
        }
        self.start += SLOTS;
        self.blocks.pop_front()
    }

    /// Removes any block.
    pub fn remove(&mut self) -> Option<Block> {
        self.blocks.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Chain, Depot, SLOTS, THREAD_MAX, ThreadCache};
    use crate::lines::Line;
    use crate::machine::XEON;
    use crate::threads::Simulator;

    #[test]
    fn a_chain_grows_at_the_end_and_shrinks_at_the_beginning() {
        let mut chain = Chain::default();
        let [first, second] = [Block(Line(100)), Block(Line(200))];
        assert_eq!(chain.place(7), None);
        chain.link(first, 7);
        chain.link(second, 9);
        assert_eq!(chain.place(7), Some((first, 0)));
        assert_eq!(chain.place(7 + SLOTS), Some((second, 0)));
        assert_eq!(chain.place(7 + 2 * SLOTS), None);
        assert_eq!(chain.remove_before(6 + SLOTS), None);
        assert_eq!(chain.remove_before(7 + SLOTS), Some(first));
        assert_eq!((chain.place(7), chain.last()), (None, Some(second)));
    }

    #[test]
    fn slots_lie_side_by_side_behind_the_header() {
        let block = Block(Line(100));
        assert_eq!(block.slot(0), [Line(100); 2]);
        assert_eq!(block.slot(1), [Line(100), Line(101)], "bytes 56 to 79");
        assert_eq!(block.slot(SLOTS - 1)[1], block.lines().last().expect("there are lines"));
    }

    #[test]
    fn blocks_go_back_to_the_thread_and_by_the_depot_to_other_threads() {
        let mut simulator = Simulator::new(XEON, 1, 0);
        let depot = Depot::new(&simulator);
        simulator.add(|thread| async move {
            let [own, other] = [(); 2].map(|()| ThreadCache::default());
            let block = depot.take(&thread, &own).await;
            depot.put(&thread, &own, block).await;
            assert_eq!(depot.take(&thread, &own).await, block);
            let mut taken = Vec::new();
            for _ in 0..=THREAD_MAX {
                taken.push(depot.take(&thread, &own).await);
            }
            for block in &taken {
                depot.put(&thread, &other, *block).await;
            }
            let block = depot.take(&thread, &own).await;
            assert!(taken.contains(&block), "the other cache was full");
            thread.finish();
        });
        assert!(simulator.run().is_finished);
    }
}
