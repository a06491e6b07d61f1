//! Which storms a run consists of.

use crate::dice::Dice;
use crate::round::Round;
use crate::scene::Scale;
use crate::storms::{STORMS, Storm, named};

/// Most storms at once.
const MIXED_MAX: usize = 4;
/// Those in which the most messages are sent.
const HEAVY: [&str; 8] = ["panics", "resizes", "stops", "cycles", "crowd", "nested", "keyed", "broadcast"];

/// What a run consists of.
#[derive(Clone, Copy)]
pub enum Profile {
    /// Each storm alone, and then mixes.
    Everyday,
    /// Where the most is sent: each of these storms alone, and now and then two of them.
    Heavy,
    /// Mixes alone.
    Mixed,
    /// Mixes on one worker to many, pinned in odd ways.
    Topologies,
    /// One storm again and again.
    One(Storm),
}

impl Profile {
    /// The profile of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "everyday" => Some(Self::Everyday),
            "heavy" => Some(Self::Heavy),
            "mixed" => Some(Self::Mixed),
            "topologies" => Some(Self::Topologies),
            _ => named(name).map(Self::One),
        }
    }

    /// The names that there are.
    pub fn names() -> Vec<&'static str> {
        ["everyday", "heavy", "mixed", "topologies"]
            .into_iter()
            .chain(STORMS.iter().map(|storm| storm.name))
            .collect()
    }

    /// The number of rounds at the start that run each storm alone.
    pub fn rounds_alone(self) -> u64 {
        if matches!(self, Self::Everyday) { STORMS.len() as u64 } else { 0 }
    }

    /// The round of this number.
    pub fn round(self, seed: u64, number: u64, scale: Scale) -> Round {
        let mut dice = Dice::of(seed, number);
        let is_alone = number < self.rounds_alone();
        let storms = match self {
            Self::One(storm) => vec![storm],
            Self::Heavy => {
                let storm = || named(HEAVY[number as usize % HEAVY.len()]);
                let other = dice.hits(1, 4).then(|| named(HEAVY[dice.roll(HEAVY.len())])).flatten();
                storm().into_iter().chain(other).collect()
            }
            _ if is_alone => vec![STORMS[number as usize]],
            _ => (0..2 + dice.roll(MIXED_MAX - 1)).map(|_| *dice.pick(&STORMS)).collect(),
        };
        Round {
            seed: dice.draw(),
            storms,
            bouts: if is_alone { 2 } else { 3 },
            scale,
            odd_topology: matches!(self, Self::Topologies),
        }
    }
}
