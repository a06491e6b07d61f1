//! Actors that take 1 to 10 milliseconds for one message in a hundred: on threads that may block, and on workers
//! that hand their work to others meanwhile.

use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use crate::scene::{Ground, Scene, post};
use crate::worker::Yard;
use pointsman::SpawnError;
use pointsman::prelude::*;

const ACTORS: usize = 32;

pub struct Slow {
    actors: Vec<ActorRef<Parcel>>,
}

impl Slow {
    pub fn new(ground: &Ground, _: &mut Dice) -> Result<Self, SpawnError> {
        let yard = Yard::new(ground.books, true);
        let actors = (0..ACTORS).map(|number| {
            let yard = yard.clone();
            let dispatcher = if number % 4 == 0 { "default" } else { "blocking" };
            ground
                .system
                .actor(&ground.name(format_args!("slow-{number}")))
                .dispatcher(dispatcher)
                .spawn_with(move |ctx: &mut Context<Parcel>| yard.worker(ctx))
        });
        Ok(Self { actors: actors.collect::<Result<_, _>>()? })
    }
}

impl Scene for Slow {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        let to = dice.pick(&self.actors);
        // What they have not handled yet takes long enough.
        if to.queued().is_some_and(|queued| queued > 200) {
            return true;
        }
        (0..32).all(|_| {
            let task = match dice.roll(100) {
                0 => Task::Linger(1_000 + dice.roll(9_000) as u16),
                _ => Task::Nothing,
            };
            post(pen, dice, to, task)
        })
    }

    fn population(&self) -> Option<usize> {
        Some(ACTORS)
    }
}
