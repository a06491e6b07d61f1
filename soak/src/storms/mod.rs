//! The storms, by name.

mod broadcast;
mod crowd;
mod cycles;
mod full;
mod keyed;
mod nested;
mod panics;
mod questions;
mod resizes;
mod slow;
mod stops;
mod ticks;
mod wakes;
mod watches;

use crate::dice::Dice;
use crate::scene::{Ground, Scene};
use pointsman::SpawnError;

/// Builds a scene.
type Build = fn(&Ground, &mut Dice) -> Result<Box<dyn Scene>, SpawnError>;

/// A kind of storm.
#[derive(Clone, Copy)]
pub struct Storm {
    pub name: &'static str,
    pub build: Build,
}

macro_rules! storm {
    ($name:literal, $scene:path) => {
        Storm { name: $name, build: |ground, dice| Ok(Box::new(<$scene>::new(ground, dice)?)) }
    };
}

/// All of them. What may happen in each, a round decides: senders that outlive the system, a system that is dropped
/// under load, a clock that jumps, more workers than cores.
pub const STORMS: [Storm; 14] = [
    storm!("panics", panics::Panics),
    storm!("resizes", resizes::Resizes),
    storm!("stops", stops::Stops),
    storm!("slow", slow::Slow),
    storm!("full", full::Full1),
    storm!("cycles", cycles::Cycles),
    storm!("crowd", crowd::Crowd),
    storm!("wakes", wakes::Wakes),
    storm!("nested", nested::Nested),
    storm!("keyed", keyed::Keyed),
    storm!("broadcast", broadcast::ToAll),
    storm!("questions", questions::Questions),
    storm!("ticks", ticks::Ticks),
    storm!("watches", watches::Watches),
];

/// The storm of this name.
pub fn named(name: &str) -> Option<Storm> {
    STORMS.into_iter().find(|storm| storm.name == name)
}
