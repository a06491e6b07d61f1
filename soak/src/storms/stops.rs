//! Actors that are stopped, poisoned and killed while they are sent to, and made anew under the same names. Some
//! senders go on sending to those that have ended.

use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use crate::scene::{Ground, Scene, post};
use crate::worker::Yard;
use pointsman::prelude::*;
use std::sync::{Arc, RwLock};
use std::thread;

const ACTORS: usize = 24;

pub struct Stops {
    system: SystemRef,
    yard: Arc<Yard>,
    actors: Vec<(String, RwLock<ActorRef<Parcel>>)>,
}

impl Stops {
    pub fn new(ground: &Ground, _: &mut Dice) -> Result<Self, SpawnError> {
        let (system, yard) = (ground.system.clone(), Yard::new(ground.books, true));
        let actors = (0..ACTORS).map(|number| {
            let name = ground.name(format_args!("stops-{number}"));
            let actor = spawn(&system, &yard, &name)?;
            Ok::<_, SpawnError>((name, RwLock::new(actor)))
        });
        let actors = actors.collect::<Result<_, _>>()?;
        Ok(Self { system, yard, actors })
    }

    fn now(&self, number: usize) -> ActorRef<Parcel> {
        self.actors[number].1.read().expect("nobody panics with it").clone()
    }

    /// Makes an actor anew, once the one before has ended.
    fn again(&self, number: usize) {
        let (name, place) = &self.actors[number];
        loop {
            match spawn(&self.system, &self.yard, name) {
                Ok(actor) => {
                    *place.write().expect("nobody panics with it") = actor;
                    return;
                }
                // What it has to do it does without us.
                Err(SpawnError::NameTaken { .. }) => thread::yield_now(),
                // The system ends.
                Err(_) => return,
            }
        }
    }
}

fn spawn(system: &SystemRef, yard: &Arc<Yard>, name: &str) -> Result<ActorRef<Parcel>, SpawnError> {
    let yard = yard.clone();
    let restart = Strategy::decide(|_| Directive::Restart).quiet();
    system.actor(name).on_failure(restart).spawn_with(move |ctx: &mut Context<Parcel>| yard.worker(ctx))
}

impl Scene for Stops {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        let to = self.now(dice.roll(ACTORS));
        // Long enough that it often ends meanwhile.
        (0..64).all(|_| {
            let task = match dice.roll(10_000) {
                0..2 => Task::Stop,
                2..6 => Task::Fail,
                _ => Task::Nothing,
            };
            post(pen, dice, &to, task)
        })
    }

    fn change(&self, dice: &mut Dice) {
        let number = dice.roll(ACTORS);
        let actor = self.now(number);
        match dice.roll(4) {
            0 => actor.stop(),
            1 => actor.poison(),
            // Restarted.
            2 => return actor.kill(),
            _ if !actor.is_closed() => return,
            _ => {}
        }
        self.again(number);
    }

    fn settle(&self, _: &mut Dice) {
        (0..ACTORS).filter(|number| self.now(*number).is_closed()).for_each(|number| self.again(number));
    }

    fn population(&self) -> Option<usize> {
        Some((0..ACTORS).filter(|number| !self.now(*number).is_closed()).count())
    }
}
