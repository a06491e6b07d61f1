//! The message of most storms, who writes it, and what it tells its actor to do.

use crate::books::{Books, Count};
use pointsman::ActorRef;
use pointsman::DeadLetter;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// A message of which the books know.
pub struct Parcel {
    books: &'static Books,
    slot: u32,
    pub sender: u32,
    /// Grows with each message of a sender.
    pub number: u64,
    pub task: Task,
    has_ended: bool,
}

/// What an actor does when it has got the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Nothing,
    /// Fails by an error.
    Fail,
    /// Fails by a panic.
    Panic,
    /// Ends after this message.
    Stop,
    /// Ends if there is nothing more to do.
    Retire,
    /// Takes so many microseconds.
    Linger(u16),
    /// Sends a message to the next actor of its ring, which does the same, so many times.
    PassOn(u16),
    /// The same, to itself.
    Again(u16),
}

/// What a panic that was asked for carries.
pub struct AsTold;

impl Parcel {
    /// Which message of its sender this is, as a key.
    pub fn key(&self) -> u64 {
        self.number
    }

    /// Comes to its end.
    pub fn end(mut self, end: Count) {
        self.has_ended = true;
        self.books.end(self.slot, end);
    }

    /// Handed over by the dead letters.
    pub fn bury(self, letter: DeadLetter) {
        let end = match letter.reason {
            pointsman::DeadLetterReason::Dropped => Count::Dropped,
            _ => Count::Dead,
        };
        self.end(end);
    }

    /// Sends it in one of the two ways.
    pub fn send(self, to: &ActorRef<Self>, by_try: bool) {
        if !by_try {
            to.tell(self);
        } else if let Err(refused) = to.try_tell(self) {
            refused.into_inner().end(Count::Back);
        }
    }
}

impl Clone for Parcel {
    fn clone(&self) -> Self {
        self.books.copy(self.slot);
        self.books.count(Count::Made, 1);
        Self { has_ended: false, ..*self }
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        self.books.count(Count::Gone, 1);
        if !self.has_ended {
            self.books.fault(format!(
                "message {} of sender {} ({:?}) was dropped and is in no account",
                self.number, self.sender, self.task
            ));
        }
    }
}

/// Writes the messages of one sender.
pub struct Pen {
    books: &'static Books,
    pub sender: u32,
    number: u64,
    slots: Range<u32>,
    bout: u32,
}

impl Pen {
    pub fn new(books: &'static Books) -> Self {
        Self { books, sender: books.new_sender(), number: 0, slots: 0..0, bout: 0 }
    }

    /// The next message; `None` when the bout has had all that it may have.
    pub fn write(&mut self, task: Task) -> Option<Parcel> {
        let bout = self.books.bout.load(Ordering::Acquire);
        if self.bout != bout || self.slots.is_empty() {
            self.slots = self.books.slots()?;
            self.bout = bout;
        }
        let slot = self.slots.next()?;
        self.number += 1;
        self.books.begin(slot);
        self.books.count(Count::Made, 1);
        let Self { books, sender, number, .. } = *self;
        Some(Parcel { books, slot, sender, number, task, has_ended: false })
    }

    pub fn books(&self) -> &'static Books {
        self.books
    }
}
