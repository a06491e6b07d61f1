//! A mailbox: `src/mailbox/mailbox.rs` and `src/mailbox/chain.rs`.
//!
//! The lines have the letters of `docs/scaling.md`.

use crate::lines::Line;
use crate::paths::blocks::{Block, Chain, Depot, ThreadCache};
use crate::threads::{Simulator, Thread};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

#[derive(Debug)]
pub struct Mailbox {
    /// W: `Gate.word`, `tail_block`, `inline_index`.
    pub word: Line,
    /// O: `Gate.head`, `first_block`, `cursor`; `Mailbox.settled_block`.
    pub owner: Line,
    /// C: `Mailbox.inline`, the slot of the message that wakes the actor.
    inline: Line,
    claimed: Cell<u64>,
    head: Cell<u64>,
    is_idle: Cell<bool>,
    /// The index of the message in the inline slot.
    inline_index: Cell<Option<u64>>,
    /// From `head` on: whether the slot is written.
    written: RefCell<VecDeque<bool>>,
    chain: RefCell<Chain>,
}

/// The state of the next message, as an owner finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    Message,
    Empty,
    /// The next message is claimed and not written.
    Busy,
}

impl Mailbox {
    pub fn new(simulator: &Simulator) -> Self {
        Self {
            word: simulator.add_lines(1),
            owner: simulator.add_lines(1),
            inline: simulator.add_lines(1),
            claimed: Cell::new(0),
            head: Cell::new(0),
            is_idle: Cell::new(true),
            inline_index: Cell::new(None),
            written: RefCell::default(),
            chain: RefCell::default(),
        }
    }

    pub fn is_idle(&self) -> bool {
        self.is_idle.get()
    }

    pub fn len(&self) -> u64 {
        self.claimed.get() - self.head.get()
    }

    pub fn head(&self) -> u64 {
        self.head.get()
    }

    /// `Mailbox::push_or`, `push_slow`. Returns whether the sender has to wake the actor.
    pub async fn push(&self, thread: &Thread, depot: &Depot, cache: &ThreadCache) -> bool {
        // `StateWord::look` and `claim`, or `try_claim`: the look asks for the line first, and both take one transfer.
        thread.change(self.word).await;
        let index = self.claimed.replace(self.claimed.get() + 1);
        let wakes = self.is_idle.replace(false);
        self.written.borrow_mut().push_back(false);
        if wakes {
            // `Slot::publish` to `Mailbox.inline`.
            self.inline_index.set(Some(index));
            thread.write(self.inline);
        } else {
            self.publish_in_block(index, thread, depot, cache).await;
        }
        let number = (index - self.head.get()) as usize;
        self.written.borrow_mut()[number] = true;
        wakes
    }

    /// `Mailbox::publish_in_block`, `chain.rs: find_block`.
    async fn publish_in_block(&self, index: u64, thread: &Thread, depot: &Depot, cache: &ThreadCache) {
        while self.place(index).is_none() {
            self.grow(index, thread, depot, cache).await;
        }
        // `chain.rs: walk`: the sender of the first slot of a block.
        let block_before = self.place(index).filter(|(_, number)| *number == 0);
        if let Some((before, _)) = block_before.and_then(|_| self.place(index.checked_sub(1)?)) {
            // `chain.rs: advance` of `tail_block`; `is_final`, which looks at each stamp; `settled_block`; the word by
            // `mark_advance`; the block's `observed`.
            thread.change(self.word).await;
            thread.read_all(before.lines()).await;
            thread.change(self.owner).await;
            thread.change(self.word).await;
            thread.write(before.header());
        }
        let (block, number) = self.place(index).expect("the chain has grown");
        // `Block::start` and `generation`; `Slot::publish`: the value, then the stamp before it.
        thread.read(block.header()).await;
        thread.write_claimed(block.slot(number));
    }

    fn place(&self, index: u64) -> Option<(Block, u64)> {
        self.chain.borrow().place(index)
    }

    /// `chain.rs: install`, `next_or_grow`. Each sender that finds no block takes one; one of them links it.
    async fn grow(&self, index: u64, thread: &Thread, depot: &Depot, cache: &ThreadCache) {
        let last = self.chain.borrow().last();
        let block = depot.take(thread, cache).await;
        match last {
            // `Block.next` of the last block.
            Some(last) => thread.change(last.header()).await,
            None => {
                // `tail_block`; `first_block` and `settled_block`.
                thread.change(self.word).await;
                thread.write(self.owner);
            }
        }
        if self.place(index).is_none() {
            self.chain.borrow_mut().link(block, self.head.get());
        } else {
            depot.put(thread, cache, block).await;
        }
    }

    /// `Owner::ready`, `PeekedMessage::take`, `chain.rs: locate`.
    pub async fn take(&self, thread: &Thread, depot: &Depot, cache: &ThreadCache) -> Ready {
        let head = self.head.get();
        if self.inline_index.get() == Some(head) {
            thread.read(self.inline).await;
        } else if let Some((block, number)) = self.place(head) {
            let [first, last] = block.slot(number);
            thread.read_ahead(first).await;
            if first != last {
                thread.read_ahead(last).await;
            }
        }
        if self.written.borrow().front() == Some(&true) {
            self.written.borrow_mut().pop_front();
            self.head.set(head + 1);
            thread.write(self.owner);
            self.reclaim(thread, depot, cache).await;
            return Ready::Message;
        }
        // `Owner::nothing_ready`.
        thread.read(self.word).await;
        if self.len() == 0 { Ready::Empty } else { Ready::Busy }
    }

    /// `chain.rs: step`, `reclaim`.
    async fn reclaim(&self, thread: &Thread, depot: &Depot, cache: &ThreadCache) {
        let block = self.chain.borrow_mut().remove_before(self.head.get());
        if let Some(block) = block {
            // `Block.next`, `observed`.
            thread.read(block.header()).await;
            depot.put(thread, cache, block).await;
        }
    }

    /// `Owner::try_idle`. Returns whether the actor is idle now.
    pub async fn try_idle(&self, thread: &Thread, depot: &Depot, cache: &ThreadCache) -> bool {
        thread.change(self.word).await;
        if self.len() > 0 {
            return false;
        }
        self.is_idle.set(true);
        // `Shape::release_chain`.
        loop {
            let block = self.chain.borrow_mut().remove();
            let Some(block) = block else { return true };
            depot.put(thread, cache, block).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mailbox, Ready};
    use crate::machine::XEON;
    use crate::paths::blocks::{Depot, SLOTS, ThreadCache};
    use crate::threads::Simulator;

    #[test]
    fn messages_come_out_and_blocks_go_back() {
        let mut simulator = Simulator::new(XEON, 1, 0);
        let (mailbox, depot) = (Mailbox::new(&simulator), Depot::new(&simulator));
        simulator.add(|thread| async move {
            let cache = ThreadCache::default();
            assert!(mailbox.push(&thread, &depot, &cache).await, "the first one wakes the actor");
            for _ in 0..2 * SLOTS {
                assert!(!mailbox.push(&thread, &depot, &cache).await);
            }
            for left in (0..=2 * SLOTS).rev() {
                assert_eq!(mailbox.take(&thread, &depot, &cache).await, Ready::Message);
                assert_eq!(mailbox.len(), left);
            }
            assert_eq!(mailbox.take(&thread, &depot, &cache).await, Ready::Empty);
            assert!(mailbox.try_idle(&thread, &depot, &cache).await && mailbox.is_idle());
            assert!(mailbox.chain.borrow().last().is_none());
            assert!(mailbox.push(&thread, &depot, &cache).await, "it is idle again");
            thread.finish();
        });
        assert!(simulator.run().is_finished);
    }
}
