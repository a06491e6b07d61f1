//! What handlers did: counted by each, added up by whoever waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What every repetition must be over in.
const SOON: Duration = Duration::from_secs(60);

/// How long the waiting thread sleeps between two looks, so that it takes nothing from those who work.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// Messages that one actor has handled and the sum of their numbers, on a line of its own. Written by that actor
/// alone, so nothing is read and modified at once.
#[derive(Default)]
#[repr(align(128))]
pub struct Tally {
    count: AtomicU64,
    sum: AtomicU64,
}

impl Tally {
    pub fn add(&self, number: u64) {
        self.sum.store(self.sum.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

/// The tallies of a group of actors. They live as long as the process, which is one repetition.
#[derive(Clone, Copy)]
pub struct Tallies(&'static [Tally]);

impl Tallies {
    pub fn new(count: usize) -> Self {
        Self(Vec::leak((0..count).map(|_| Tally::default()).collect()))
    }

    /// The tally of the actor of this number.
    pub fn of(self, number: usize) -> &'static Tally {
        &self.0[number]
    }

    /// Messages handled so far.
    pub fn count(self) -> u64 {
        self.0.iter().map(|tally| tally.count.load(Ordering::Acquire)).sum()
    }

    /// Begins to count anew.
    pub fn expect(self) -> Expected {
        Expected { tallies: self, count: self.count(), sum: self.sum() }
    }

    fn sum(self) -> u64 {
        self.0.iter().fold(0, |sum, tally| sum.wrapping_add(tally.sum.load(Ordering::Relaxed)))
    }
}

/// Where tallies stood.
#[derive(Clone, Copy)]
pub struct Expected {
    tallies: Tallies,
    count: u64,
    sum: u64,
}

impl Expected {
    /// Messages handled since.
    pub fn handled(self) -> u64 {
        self.tallies.count() - self.count
    }

    /// Waits for so many messages, of which the numbers have this sum.
    pub fn wait_for(self, count: u64, sum: u64) {
        wait_until(|| self.handled() >= count, || format!("{} of {count} handled", self.handled()));
        assert_eq!(self.handled(), count, "a message was handled twice");
        assert_eq!(
            self.tallies.sum().wrapping_sub(self.sum),
            sum,
            "a message was handled in place of another"
        );
    }
}

/// Waits, or panics with what is missing.
pub fn wait_until(done: impl Fn() -> bool, so_far: impl Fn() -> String) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < SOON, "messages are lost: {}", so_far());
        thread::sleep(LOOK_EVERY);
    }
}
