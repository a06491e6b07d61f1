//! A hundred thousand actors, of which one in a hundred is hot.

use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use crate::scene::{Ground, Scene, post};
use crate::worker::Yard;
use pointsman::SpawnError;
use pointsman::prelude::*;

pub struct Crowd {
    actors: Vec<ActorRef<Parcel>>,
}

impl Crowd {
    pub fn new(ground: &Ground, _: &mut Dice) -> Result<Self, SpawnError> {
        let yard = Yard::new(ground.books, true);
        let actors = (0..ground.scale.crowd).map(|number| {
            let yard = yard.clone();
            ground.system.spawn(move || yard.worker_at(number as u64))
        });
        Ok(Self { actors: actors.collect::<Result<_, _>>()? })
    }
}

impl Scene for Crowd {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        let hot = self.actors.len() / 100;
        (0..32).all(|_| {
            let among = if dice.hits(1, 20) { self.actors.len() } else { hot };
            let to = &self.actors[dice.roll(among)];
            post(pen, dice, to, Task::Nothing)
        })
    }

    fn population(&self) -> Option<usize> {
        Some(self.actors.len())
    }
}
