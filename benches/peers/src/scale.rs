//! How much of each workload one repetition does.

use crate::workload::Measured;
use std::time::{Duration, Instant};

/// How much to do.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Name, by which one process tells another.
    pub name: &'static str,
    /// How long a repetition is to take; zero: one round of as many operations as one begins with.
    length: Duration,
    /// Actors that are created and stopped.
    pub spawned: usize,
    /// Idle actors of which some are told something.
    pub idle: usize,
    /// Actors whose memory is measured.
    pub resident: usize,
    /// How long messages arrive by a timetable, without the time for warming up.
    pub arrivals: Duration,
    /// How many arrive in a second.
    pub arrivals_per_second: f64,
}

/// Operations with which a repetition begins.
const FIRST: u64 = 1_000;
/// Operations at once, at most: they may all wait in mailboxes.
const MOST: u64 = 1_000_000;

const FULL: Scale = Scale {
    name: "full",
    length: Duration::from_millis(300),
    spawned: 100_000,
    idle: 100_000,
    resident: 200_000,
    arrivals: Duration::from_millis(1500),
    arrivals_per_second: 0.0,
};

const QUICK: Scale = Scale {
    name: "quick",
    length: Duration::from_millis(100),
    spawned: 50_000,
    resident: 50_000,
    arrivals: Duration::from_millis(700),
    ..FULL
};

const TINY: Scale = Scale {
    name: "tiny",
    length: Duration::ZERO,
    spawned: 50,
    idle: 300,
    resident: 50,
    arrivals: Duration::from_millis(20),
    arrivals_per_second: 20_000.0,
};

impl Scale {
    /// The scale of this name: `full`, `quick`, or `tiny`, which is for tests.
    pub fn named(name: &str) -> Option<Self> {
        [FULL, QUICK, TINY].into_iter().find(|scale| scale.name == name)
    }

    /// Times `run`, which is told how many operations to do and returns how many it did. Begins with few, to warm up
    /// and to learn how many fill the time.
    pub fn time(&self, mut run: impl FnMut(u64) -> u64) -> Measured {
        let mut timed = |operations| {
            let start = Instant::now();
            let done = run(operations);
            (start.elapsed(), done)
        };
        let mut operations = FIRST;
        let mut first = timed(operations);
        if self.length.is_zero() {
            return per_operation(first);
        }
        while first.0 < self.length / 10 && operations < MOST {
            operations = (4 * operations).min(MOST);
            first = timed(operations);
        }
        let fitting = operations as f64 * self.length.as_secs_f64() / first.0.as_secs_f64();
        let operations = (fitting as u64).clamp(FIRST, MOST);
        let mut sum = (Duration::ZERO, 0);
        // Nine tenths: a round more would often be twice the time.
        while sum.0 < self.length * 9 / 10 {
            let (took, done) = timed(operations);
            sum = (sum.0 + took, sum.1 + done);
        }
        per_operation(sum)
    }
}

fn per_operation((took, operations): (Duration, u64)) -> Measured {
    Measured::Nanos(took.as_nanos() as f64 / operations as f64)
}
