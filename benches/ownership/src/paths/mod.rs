//! The paths as programs: the lines that a thread uses for one message, in their order. A comment names the function of
//! the library that makes the accesses. What a function does on lines that its core surely has counts as instructions.

pub mod blocks;
pub mod gather;
pub mod lock;
pub mod mailbox;
pub mod scheduler;
pub mod senders;
pub mod shared_queue;

use crate::threads::Thread;
use std::cell::Cell;

/// The messages of a run. A sender that is faster than others sends more of them.
#[derive(Debug)]
pub struct Messages {
    unsent: Cell<u64>,
    unhandled: Cell<u64>,
}

impl Messages {
    pub fn new(count: u64) -> Self {
        Self { unsent: Cell::new(count), unhandled: Cell::new(count) }
    }

    /// Takes a message to send; false if none is left.
    pub fn send(&self) -> bool {
        let unsent = self.unsent.get();
        self.unsent.set(unsent.saturating_sub(1));
        unsent > 0
    }

    /// Counts a message as handled, and ends the run with the last one.
    pub fn handle(&self, thread: &Thread) {
        self.unhandled.set(self.unhandled.get() - 1);
        if self.unhandled.get() == 0 {
            thread.finish();
        }
    }
}

/// Instructions of the handler of a skewed workload of `benches/peers`, for the message of this number.
pub fn skewed_work(number: u64) -> f64 {
    if number.is_multiple_of(100) { 2700.0 } else { 34.0 }
}
