//! Models of the word between the driver of sockets and a connection's owner.
//!
//! Mutations that these were seen to catch: `raise` telling only on some bits (`before & bits.0 == 0`
//! instead of `before == 0`: two messages under way); `take` leaving the bits (`load` instead of `swap`:
//! an edge that nobody is told of); the owner reading the socket before it takes the bits (an edge lost);
//! `take` or `raise` Relaxed (the bits of a raise that sent no message, without what they tell of).

use crate::support::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use pointsman::loom_hooks::readiness::{Raised, Readiness, ReadinessWord};

/// A socket and its owner's mailbox, both without any ordering of their own: what is ordered is ordered by
/// the word, and what the mailbox orders in truth would only hide a fault.
struct World {
    word: ReadinessWord,
    /// Bytes in the socket.
    bytes: AtomicUsize,
    /// Messages under way.
    mail: AtomicUsize,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self { word: ReadinessWord::new(), bytes: AtomicUsize::new(0), mail: AtomicUsize::new(0) })
    }

    /// A byte arrives, and the driver is told of the edge.
    fn arrive(&self, bits: Readiness) {
        self.bytes.fetch_add(1, Ordering::Relaxed);
        if self.word.raise(bits) == Raised::Tell {
            let under_way = self.mail.fetch_add(1, Ordering::Relaxed);
            assert_eq!(under_way, 0, "two messages under way");
        }
    }

    /// The owner handles a message if there is one: the bytes that it read.
    fn turn(&self) -> Option<usize> {
        if self.mail.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.mail.fetch_sub(1, Ordering::Relaxed);
        let bits = self.word.take();
        assert!(!bits.is_empty(), "a message without bits");
        Some(self.read())
    }

    /// As reads do that find nothing and see no newer byte: without a read-modify-write, which would see
    /// the latest.
    fn read(&self) -> usize {
        match self.bytes.load(Ordering::Relaxed) {
            0 => 0,
            some => {
                self.bytes.fetch_sub(some, Ordering::Relaxed);
                some
            }
        }
    }

    /// After all threads have ended: handles what is left and finds everything read.
    fn settle(&self, mut read: usize, arrived: usize) {
        while let Some(more) = self.turn() {
            read += more;
        }
        assert_eq!(read, arrived, "an edge was lost");
        assert!(self.word.take().is_empty(), "bits that nobody was told of");
    }
}

/// The one-edge, one-message member.
#[test]
fn one_edge() {
    model("readiness_one_edge", &[16], 3, 4, || {
        let world = World::new();
        let driver = thread::spawn({
            let world = world.clone();
            move || world.arrive(Readiness::READABLE)
        });
        let read = world.turn().unwrap_or(0);
        driver.join().unwrap();
        world.settle(read, 1);
    });
}

/// Edges of both kinds while the owner handles earlier ones. Two threads: bound 3.
#[test]
fn edges_race_the_owners_turns() {
    model("readiness_edges_race_turns", &[16], 3, 100, || {
        let world = World::new();
        let driver = thread::spawn({
            let world = world.clone();
            move || {
                world.arrive(Readiness::READABLE);
                world.arrive(Readiness::WRITABLE);
                world.arrive(Readiness::READABLE);
            }
        });
        let mut read = 0;
        for _ in 0..2 {
            read += world.turn().unwrap_or(0);
        }
        driver.join().unwrap();
        world.settle(read, 3);
    });
}

/// The owner raises for itself, as when its read budget is used up, while the driver raises too. What the
/// driver's byte is read by is then a message that the owner sent. Three threads, few steps each: bound 3.
#[test]
fn the_owner_raises_too() {
    model("readiness_owner_raises", &[16], 3, 2_000, || {
        let world = World::new();
        let raise = |bits| {
            let world = world.clone();
            thread::spawn(move || world.arrive(bits))
        };
        let (first, second) = (raise(Readiness::READABLE), raise(Readiness::WRITABLE));
        world.arrive(Readiness::READABLE);
        let read = world.turn().unwrap_or(0) + world.turn().unwrap_or(0);
        first.join().unwrap();
        second.join().unwrap();
        world.settle(read, 3);
    });
}
