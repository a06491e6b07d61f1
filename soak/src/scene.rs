//! What a storm consists of: actors, those who send to them, and what happens to them meanwhile.

use crate::books::Books;
use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use pointsman::{ActorRef, SystemRef};

/// A part of a storm, in a system that others may share.
pub trait Scene: Send + Sync {
    /// Sends some messages; `false` when the bout has had all that it may have. Called by several threads at once.
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool;

    /// Changes something while messages are sent, such as how many actors there are. Called by one thread.
    fn change(&self, dice: &mut Dice) {
        let _ = dice;
    }

    /// Nobody sends any more: ends what waits for something outside actors.
    fn calm(&self) {}

    /// At quiescence, when nothing is under way: checks what it knows, and changes what does not change under load.
    fn settle(&self, dice: &mut Dice) {
        let _ = dice;
    }

    /// How many actors with a [`Worker`](crate::worker::Worker) there must be now; `None`: cannot be told.
    fn population(&self) -> Option<usize>;
}

/// What a scene is built with.
pub struct Ground<'a> {
    pub system: &'a SystemRef,
    pub books: &'static Books,
    pub scale: Scale,
    /// Tells the names of the scenes of one system apart.
    pub number: usize,
}

/// How large things are.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Messages between two moments of quiescence at most.
    pub slots: usize,
    /// Actors of which few are hot.
    pub crowd: usize,
    /// Keys of a keyed group.
    pub keys: usize,
    /// Length of a bout, in milliseconds.
    pub bout_millis: u64,
    /// Messages under way at most, roughly.
    pub window: i64,
    /// What is resident says something: a sanitizer keeps memory of its own.
    pub judges_resident: bool,
}

impl Scale {
    pub const FULL: Self = Self {
        slots: 1 << 20,
        crowd: 100_000,
        keys: 4_000,
        bout_millis: 700,
        window: 30_000,
        judges_resident: true,
    };
    /// For builds that run slowly: without optimisation, or under a sanitizer.
    pub const LITTLE: Self = Self {
        slots: 1 << 13,
        crowd: 500,
        keys: 100,
        bout_millis: 200,
        window: 2_000,
        judges_resident: false,
    };
}

impl Ground<'_> {
    /// A name of this scene's own.
    pub fn name(&self, of: impl std::fmt::Display) -> String {
        format!("{of}-{}", self.number)
    }
}

/// Sends one message, in one of the two ways; `false` when the bout has had all that it may have.
pub fn post(pen: &mut Pen, dice: &mut Dice, to: &ActorRef<Parcel>, task: Task) -> bool {
    let Some(parcel) = pen.write(task) else { return false };
    parcel.send(to, dice.hits(1, 3));
    true
}
