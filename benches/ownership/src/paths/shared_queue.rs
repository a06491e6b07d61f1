//! A balancing pool: one queue for all takers, and a list of those that are idle. `src/dispatch/block_queue.rs`,
//! `src/dispatch/shared_queue.rs`, `src/actor/shared_queue_turn.rs`.

use crate::lines::Line;
use crate::machine::Time;
use crate::paths::blocks::{Block, Depot, SLOTS, ThreadCache};
use crate::paths::{Messages, skewed_work};
use crate::threads::{Simulator, Thread};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Instructions of a push with the routing before it, and of a take with the handler behind it:
/// `benches/instructions/table.txt`, `routed_balancing` and `receive_balancing`.
const PUSH: f64 = 112.1;
const TAKE: f64 = 129.6;

/// `shared_queue_turn.rs: RUN`, `SHORT`, `STREAM`, and `PAUSE` in hints.
const RUN: u64 = 16;
const SHORT: u64 = 64;
const STREAM: u64 = 4;
const PAUSE: u64 = 64;

/// `block_queue.rs: Wait::LONGEST`: the longest wait after a lost exchange, in hints.
const WAIT_MAX: u64 = 64;

/// A worker searches for so long before it sleeps, and looks after so many nanoseconds.
const SEARCH: Time = 20_000_000;
const LOOK_EVERY: f64 = 300.0;

/// How a place in the queue is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// By an exchange, which fails if another thread was faster.
    Exchange,
    /// By an addition, which cannot fail. The library has no such queue.
    Addition,
}

/// `block_queue.rs: End`.
#[derive(Debug)]
struct End {
    line: Line,
    index: Cell<u64>,
}

/// `TakerSlot` of a taker that is idle, with its wakeup.
struct Seat {
    line: Line,
    is_claimed: Cell<bool>,
    sleeper: RefCell<Option<Rc<Thread>>>,
}

pub struct SharedQueue {
    claim: Claim,
    depot: Depot,
    head: End,
    tail: End,
    /// All blocks so far, and the messages that the takers have counted as taken from each.
    blocks: RefCell<Vec<(Block, u64)>>,
    /// The slots so far: whether each is written.
    written: RefCell<Vec<bool>>,
    /// `SharedQueue.idle`.
    list: Line,
    idle: RefCell<VecDeque<usize>>,
    /// `SharedQueue.calls`.
    calls: Line,
    is_called: Cell<bool>,
    seats: Vec<Seat>,
    messages: Messages,
}

/// What a taker remembers: `block_queue.rs: Cursor`.
#[derive(Default)]
struct Cursor {
    cache: ThreadCache,
    block: usize,
    taken: u64,
    /// An index of the tail at some time.
    seen: u64,
}

/// The number of the block of an index.
fn block_of(index: u64) -> usize {
    (index / SLOTS) as usize
}

impl SharedQueue {
    pub fn new(simulator: &Simulator, claim: Claim, takers: usize, messages: u64) -> Self {
        let line = || simulator.add_lines(1);
        let end = || End { line: line(), index: Cell::new(0) };
        let seat = |_| Seat { line: line(), is_claimed: Cell::new(false), sleeper: None.into() };
        Self {
            claim,
            depot: Depot::new(simulator),
            head: end(),
            tail: end(),
            blocks: RefCell::default(),
            written: RefCell::default(),
            list: line(),
            idle: RefCell::default(),
            calls: line(),
            is_called: Cell::new(false),
            seats: (0..takers).map(seat).collect(),
            messages: Messages::new(messages),
        }
    }

    fn len(&self) -> u64 {
        self.tail.index.get() - self.head.index.get()
    }

    /// One try to claim the index that was `seen` at an end. Returns the index that was there.
    async fn try_claim(&self, thread: &Thread, end: &End, seen: u64) -> Result<u64, u64> {
        thread.change(end.line).await;
        let index = end.index.get();
        let is_empty = std::ptr::eq(end, &self.head) && self.len() == 0;
        if is_empty || (index != seen && self.claim == Claim::Exchange) {
            return Err(index);
        }
        end.index.set(index + 1);
        Ok(index)
    }

    /// Reads the index of an end; an addition needs no look before.
    async fn look(&self, thread: &Thread, end: &End) -> u64 {
        if self.claim == Claim::Exchange {
            thread.read(end.line).await;
        }
        end.index.get()
    }

    /// `Wait::for_step`: until the block of an index is there. Returns the block.
    async fn block(&self, thread: &Thread, index: u64) -> Block {
        while self.blocks.borrow().len() <= block_of(index) {
            thread.pause(1).await;
        }
        self.blocks.borrow()[block_of(index)].0
    }

    /// `BlockQueue::push`.
    async fn push(&self, thread: &Thread, cache: &ThreadCache) {
        let (mut next, mut wait) = (None, 1);
        if self.blocks.borrow().is_empty() {
            let block = self.depot.take(thread, cache).await;
            self.blocks.borrow_mut().push((block, 0));
        }
        let mut seen = self.look(thread, &self.tail).await;
        let index = loop {
            if seen % SLOTS == SLOTS - 1 && next.is_none() {
                next = Some(self.depot.take(thread, cache).await);
            }
            match self.try_claim(thread, &self.tail, seen).await {
                Ok(index) => break index,
                Err(index) => seen = index,
            }
            thread.pause(wait).await;
            wait = (2 * wait).min(WAIT_MAX);
        };
        self.written.borrow_mut().push(false);
        let block = self.block(thread, index).await;
        if index % SLOTS == SLOTS - 1 {
            // `End::advance`, `Block.next`.
            let next = match next.take() {
                Some(next) => next,
                None => self.depot.take(thread, cache).await,
            };
            thread.write(self.tail.line);
            thread.write(block.header());
            self.blocks.borrow_mut().push((next, 0));
        } else if let Some(next) = next {
            self.depot.put(thread, cache, next).await;
        }
        thread.write_claimed(block.slot(index % SLOTS));
        self.written.borrow_mut()[index as usize] = true;
    }

    /// `BlockQueue::pop`.
    async fn pop(&self, thread: &Thread, cursor: &mut Cursor) -> Option<u64> {
        let mut wait = 1;
        let mut seen = self.look(thread, &self.head).await;
        let index = loop {
            if seen >= cursor.seen {
                thread.read(self.tail.line).await;
                cursor.seen = self.tail.index.get();
                if seen >= cursor.seen {
                    self.settle(thread, cursor).await;
                    return None;
                }
            }
            match self.try_claim(thread, &self.head, seen).await {
                Ok(index) => break index,
                Err(index) => seen = index,
            }
            thread.pause(wait).await;
            wait = (2 * wait).min(WAIT_MAX);
        };
        let block = self.block(thread, index).await;
        if index % SLOTS == SLOTS - 1 {
            // `Block.next`, `End::advance`.
            thread.read(block.header()).await;
            thread.write(self.head.line);
        }
        // The stamp and the message.
        thread.read_all(block.slot(index % SLOTS)).await;
        while !self.written.borrow()[index as usize] {
            thread.pause(1).await;
            thread.read_all(block.slot(index % SLOTS)).await;
        }
        // `Cursor::count`.
        if cursor.block != block_of(index) {
            self.settle(thread, cursor).await;
            cursor.block = block_of(index);
        }
        cursor.taken += 1;
        Some(index)
    }

    /// `Cursor::settle`: the taker that completes the count of a block releases it.
    async fn settle(&self, thread: &Thread, cursor: &mut Cursor) {
        if cursor.taken == 0 {
            return;
        }
        let block = self.blocks.borrow()[cursor.block].0;
        thread.change(block.header()).await;
        let count = {
            let (_, count) = &mut self.blocks.borrow_mut()[cursor.block];
            *count += std::mem::take(&mut cursor.taken);
            *count
        };
        if count == SLOTS {
            self.depot.put(thread, &cursor.cache, block).await;
        }
    }

    /// `SharedQueue::wake_one`, `call`.
    async fn wake_one(&self, thread: &Thread) {
        thread.read(self.calls).await;
        if self.idle.borrow().is_empty() || self.is_called.replace(true) {
            return;
        }
        thread.change(self.calls).await;
        thread.change(self.list).await;
        let taker = self.idle.borrow_mut().pop_front();
        let Some(taker) = taker else {
            self.is_called.set(false);
            return thread.change(self.calls).await;
        };
        let seat = &self.seats[taker];
        thread.change(seat.line).await;
        seat.is_claimed.set(true);
        let sleeper = seat.sleeper.borrow_mut().take();
        if let Some(sleeper) = sleeper {
            thread.unpark(&sleeper).await;
        }
    }

    /// `SharedQueue::answer`.
    async fn answer(&self, thread: &Thread) {
        thread.change(self.calls).await;
        self.is_called.set(false);
        thread.fence().await;
        thread.read(self.tail.line).await;
        if self.len() > 0 {
            self.wake_one(thread).await;
        }
    }
}

/// A thread that sends to the pool: `SharedQueue::push`.
pub async fn send(queue: Rc<SharedQueue>, thread: Rc<Thread>) {
    let cache = ThreadCache::default();
    while queue.messages.send() {
        thread.instructions(PUSH).await;
        queue.push(&thread, &cache).await;
        queue.wake_one(&thread).await;
    }
}

/// A worker with a routee of the pool: `shared_queue_turn.rs: share_many`. The real ones have several routees each, all
/// but one of which are idle.
pub async fn take(queue: Rc<SharedQueue>, thread: Rc<Thread>, number: usize) {
    let mut cursor = Cursor::default();
    let (mut taken, mut taken_before_pause, mut owes) = (0, 0, false);
    loop {
        if taken % RUN == 0 && taken > 0 {
            thread.read_all([queue.head.line, queue.tail.line]).await;
            if queue.len() < SHORT {
                thread.pause(PAUSE).await;
            }
        }
        let message = queue.pop(&thread, &mut cursor).await;
        if std::mem::take(&mut owes) {
            queue.answer(&thread).await;
        }
        if let Some(index) = message {
            taken += 1;
            thread.instructions(TAKE + skewed_work(index)).await;
            queue.messages.handle(&thread);
        } else if taken - taken_before_pause >= STREAM {
            taken_before_pause = taken;
            thread.pause(PAUSE).await;
        } else {
            (taken, taken_before_pause) = (0, 0);
            owes = fall_idle(&queue, &thread, number).await;
        }
    }
}

/// `Taker::register` and `withdraw`, and the worker's search between them. Returns whether a sender has claimed the
/// taker.
async fn fall_idle(queue: &SharedQueue, thread: &Rc<Thread>, number: usize) -> bool {
    let seat = &queue.seats[number];
    let is_listed = || queue.idle.borrow().contains(&number);
    thread.change(seat.line).await;
    thread.change(queue.calls).await;
    thread.change(queue.list).await;
    queue.idle.borrow_mut().push_back(number);
    thread.fence().await;
    thread.read(queue.tail.line).await;
    let (is_empty, ends) = (queue.len() == 0, thread.now() + SEARCH);
    while is_empty && is_listed() {
        if thread.now() < ends {
            thread.read(seat.line).await;
            thread.work(LOOK_EVERY).await;
        } else {
            *seat.sleeper.borrow_mut() = Some(thread.clone());
            thread.park().await;
        }
    }
    thread.change(seat.line).await;
    // A sender that has taken the entry is about to claim the taker.
    while !seat.is_claimed.get() && !is_listed() {
        thread.pause(1).await;
    }
    queue.idle.borrow_mut().retain(|taker| *taker != number);
    seat.is_claimed.replace(false)
}
