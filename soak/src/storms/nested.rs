//! A router of routers, whose routees are resized, taken out, and put in again.

use super::resizes::{change, pool};
use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use crate::scene::{Ground, Scene, post};
use pointsman::prelude::*;
use pointsman::routing::{Random, RoundRobin, SmallestMailbox};

const INNER: usize = 4;

pub struct Nested {
    inner: Vec<Router<Parcel>>,
    outer: Router<Parcel>,
    reference: ActorRef<Parcel>,
}

impl Nested {
    pub fn new(ground: &Ground, dice: &mut Dice) -> Result<Self, SpawnError> {
        let inner = (0..INNER)
            .map(|number| pool(ground, dice, &ground.name(format_args!("nested-inner-{number}")), 3))
            .collect::<Result<Vec<_>, _>>()?;
        let name = ground.name("nested");
        let members = inner.iter().map(Router::to_ref);
        let plan = ground.system.router(&name).group(members);
        let plan = plan.stay_when_empty().head_dispatcher("management");
        let outer = match dice.roll(3) {
            0 => plan.logic(RoundRobin::new()).spawn()?,
            1 => plan.logic(Random::new()).spawn()?,
            _ => plan.logic(SmallestMailbox::new()).spawn()?,
        };
        Ok(Self { inner, reference: outer.to_ref(), outer })
    }
}

impl Scene for Nested {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        (0..32).all(|_| {
            let task = if dice.hits(1, 5_000) { Task::Fail } else { Task::Nothing };
            post(pen, dice, &self.reference, task)
        })
    }

    fn change(&self, dice: &mut Dice) {
        let one = dice.pick(&self.inner);
        match dice.roll(8) {
            0 => drop(self.outer.remove(one.to_ref())),
            // Twice the share, if it is one already.
            1 => drop(self.outer.add(one.to_ref())),
            _ => change(one, dice, true),
        }
        if self.outer.routees().is_ok_and(|routees| routees.len() > 2 * INNER) {
            self.inner.iter().for_each(|one| drop(self.outer.remove(one.to_ref())));
            self.inner.iter().for_each(|one| drop(self.outer.add(one.to_ref())));
        }
    }

    fn population(&self) -> Option<usize> {
        self.inner.iter().map(|one| one.routees().ok().map(|routees| routees.len())).sum()
    }
}
