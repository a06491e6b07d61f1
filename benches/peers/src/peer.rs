//! What a library shows of itself to take part: the pieces from which [`crate::workload`] builds every workload.
//!
//! The work itself is the same code for all: an actor of the library calls [`Work::handle`] for each message. What
//! differs is what lies around it, and that is what is measured.
//!
//! [`Work::handle`]: crate::work::Work::handle

use crate::work::Recipe;
use std::cell::Cell;
use std::ops::Range;

/// A message: 16 bytes.
pub type Words = [u64; 2];

/// Worker threads of every library.
pub const WORKERS: usize = 2;

/// What messages can be sent to. Each sending thread has a clone of its own.
pub trait Tell: Clone + Send + 'static {
    fn tell(&self, words: Words);
}

/// Answers a number with the next one.
pub trait Answer: Clone + Send + 'static {
    /// Asks and waits, in a thread that is no worker.
    fn ask(&self, number: u64) -> u64;

    /// Asks for all of them before it waits for the first answer, and returns the sum of the answers.
    fn ask_all(&self, numbers: Range<u64>) -> u64;
}

/// A library at work. A method that returns `None` says that the library has no such thing.
pub trait Peer: Sized {
    /// One actor.
    type Target: Tell + Sync;

    /// Starts the actor of this number.
    fn spawn(&self, number: usize, recipe: Recipe<Self::Target>) -> Self::Target;

    /// Starts so many actors, numbered from 0. Those whose numbers are near talk to each other most.
    fn spawn_all(&self, count: usize, recipe: Recipe<Self::Target>) -> Vec<Self::Target> {
        (0..count).map(|number| self.spawn(number, recipe.clone())).collect()
    }

    /// Lets an actor end; whoever holds another clone of the target would keep it alive in some libraries.
    fn stop(&self, target: Self::Target);

    /// Actors that get messages in turn: the library's own router, or else the sender picks.
    fn round_robin(&self, size: usize, recipe: Recipe<Self::Target>) -> impl Tell {
        InTurn::new(self.spawn_all(size, recipe))
    }

    /// Actors that take from one queue.
    fn shared_queue(&self, size: usize, recipe: Recipe<Self::Target>) -> Option<impl Tell> {
        let _ = (size, recipe);
        None::<Self::Target>
    }

    /// Actors of which the one with the least to do gets the message.
    fn least_loaded(&self, size: usize, recipe: Recipe<Self::Target>) -> Option<impl Tell> {
        let _ = (size, recipe);
        None::<Self::Target>
    }

    /// Actors that all get every message: the library's own way, or else the sender's loop.
    fn broadcast(&self, size: usize, recipe: Recipe<Self::Target>) -> impl Tell {
        Each(self.spawn_all(size, recipe))
    }

    /// Starts an actor that answers.
    fn answerer(&self) -> impl Answer;

    /// Lets an actor ask another so many times, each time for the answer to the last answer, from 0 on, and returns
    /// the last answer.
    fn ask_from_actor(&self, asks: u64) -> u64;

    /// Ends it, and checks whatever the library can tell of lost messages.
    fn end(self) {}
}

/// The sender picks: one after the other, each sender for itself.
#[derive(Clone)]
pub struct InTurn<T> {
    targets: Vec<T>,
    next: Cell<usize>,
}

impl<T> InTurn<T> {
    pub fn new(targets: Vec<T>) -> Self {
        Self { targets, next: Cell::new(0) }
    }
}

impl<T: Tell> Tell for InTurn<T> {
    fn tell(&self, words: Words) {
        let number = self.next.get();
        self.next.set(if number + 1 == self.targets.len() { 0 } else { number + 1 });
        self.targets[number].tell(words);
    }
}

/// The sender tells each.
#[derive(Clone)]
pub struct Each<T>(pub Vec<T>);

impl<T: Tell> Tell for Each<T> {
    fn tell(&self, words: Words) {
        self.0.iter().for_each(|target| target.tell(words));
    }
}
