//! Actors that fail, by an error or a panic, once in ten to a thousand messages.

use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use crate::scene::{Ground, Scene, post};
use crate::worker::Yard;
use pointsman::SpawnError;
use pointsman::prelude::*;

const ACTORS: usize = 16;

pub struct Panics {
    actors: Vec<ActorRef<Parcel>>,
    /// One message in so many fails.
    one_in: usize,
}

impl Panics {
    pub fn new(ground: &Ground, dice: &mut Dice) -> Result<Self, SpawnError> {
        let yard = Yard::new(ground.books, true);
        let actors = (0..ACTORS).map(|number| {
            let yard = yard.clone();
            let directive = *dice.pick(&[Directive::Restart, Directive::Restart, Directive::Resume]);
            ground
                .system
                .actor(&ground.name(format_args!("panics-{number}")))
                .on_failure(Strategy::decide(move |_| directive).quiet())
                .spawn_with(move |ctx: &mut Context<Parcel>| yard.worker(ctx))
        });
        Ok(Self { actors: actors.collect::<Result<_, _>>()?, one_in: *dice.pick(&[10, 100, 1000]) })
    }
}

impl Scene for Panics {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        let to = dice.pick(&self.actors);
        (0..32).all(|_| {
            let task = match dice.roll(2 * self.one_in) {
                0 => Task::Fail,
                1 => Task::Panic,
                _ => Task::Nothing,
            };
            post(pen, dice, to, task)
        })
    }

    fn population(&self) -> Option<usize> {
        Some(ACTORS)
    }
}
