//! Actors that send to themselves, and in a ring.

use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use crate::scene::{Ground, Scene, post};
use crate::worker::Yard;
use pointsman::SpawnError;
use pointsman::prelude::*;

const ACTORS: usize = 24;
const HOPS_MAX: usize = 200;

pub struct Cycles {
    actors: Vec<ActorRef<Parcel>>,
}

impl Cycles {
    pub fn new(ground: &Ground, _: &mut Dice) -> Result<Self, SpawnError> {
        let yard = Yard::new(ground.books, true);
        let actors = (0..ACTORS).map(|number| {
            let yard = yard.clone();
            ground
                .system
                .actor(&ground.name(format_args!("cycles-{number}")))
                .spawn(move || yard.worker_at(number as u64))
        });
        let actors: Vec<_> = actors.collect::<Result<_, _>>()?;
        yard.close_ring(actors.clone());
        Ok(Self { actors })
    }
}

impl Scene for Cycles {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        (0..4).all(|_| {
            let hops = dice.roll(HOPS_MAX) as u16;
            let task = if dice.hits(1, 3) { Task::Again(hops) } else { Task::PassOn(hops) };
            let to = dice.pick(&self.actors);
            post(pen, dice, to, task)
        })
    }

    fn population(&self) -> Option<usize> {
        Some(ACTORS)
    }
}
