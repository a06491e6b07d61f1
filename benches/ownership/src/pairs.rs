//! Two threads that disturb each other on purpose: simulated here, and measured by `measure.rs`.

use crate::lines::Line;
use crate::machine::Machine;
use crate::threads::Simulator;
use std::cell::Cell;
use std::rc::Rc;

/// The act that each of two threads repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    /// Adds to one word.
    Add,
    /// Claims in one word, and writes to a slot of its own.
    OwnSlots,
    /// Claims in one word, and writes to slots of 24 bytes that lie far from the last one of the other thread.
    FarSlots,
    /// Claims in one word, and writes to slots of 24 bytes that lie side by side.
    NearSlots,
}

pub const PAIRS: [(Pair, &str); 4] = [
    (Pair::Add, "add to one word"),
    (Pair::OwnSlots, "claim, and write to slots of their own"),
    (Pair::FarSlots, "claim, and write to slots far from the last one"),
    (Pair::NearSlots, "claim, and write to slots side by side"),
];

/// Instructions of the loop around it, about.
const LOOP: f64 = 10.0;

/// Slots of a ring; each thread has one, and the threads share one.
pub const SLOTS: u64 = 1984;

/// Operations of each thread.
pub const COUNT: u64 = 200_000;

impl Pair {
    /// The number of the slot for a claim of this index, in a ring of all slots: the operation of this number of this
    /// thread.
    pub fn slot(self, index: u64, number: u64, thread: u64) -> Option<u64> {
        match self {
            Self::Add => None,
            Self::OwnSlots => Some(number % SLOTS + (thread + 1) * SLOTS),
            Self::FarSlots => Some(index * 11 % SLOTS),
            Self::NearSlots => Some(index % SLOTS),
        }
    }

    /// Nanoseconds for each operation of one of the two threads.
    pub fn simulate(self, machine: &Machine) -> f64 {
        let mut simulator = Simulator::new(*machine, 2, 0);
        let word = simulator.add_lines(1);
        let slots = simulator.add_lines(3 * SLOTS as usize * 24 / 64 + 1);
        let claims = Rc::new(Cell::new(0));
        for thread_number in 0..2 {
            let claims = claims.clone();
            simulator.add(|thread| async move {
                for number in 0..COUNT {
                    thread.change(word).await;
                    let index = claims.replace(claims.get() + 1);
                    if let Some(slot) = self.slot(index, number, thread_number) {
                        let bytes = [24 * slot, 24 * slot + 23];
                        thread.write_claimed(bytes.map(|byte| Line(slots.0 + (byte / 64) as u32)));
                    }
                    thread.instructions(LOOP).await;
                }
            });
        }
        simulator.run().time as f64 / 1000.0 / COUNT as f64
    }
}
