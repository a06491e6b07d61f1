//! A pool that is resized from 1 to 64 and back at full load, by any logic.

use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use crate::scene::{Ground, Scene, post};
use crate::worker::Yard;
use pointsman::SpawnError;
use pointsman::prelude::*;
use pointsman::routing::{
    ConsistentHashing, KeySink, Random, RoundRobin, RouterPlan, SmallestMailbox, TwoChoices,
};
use std::time::Duration;

const SIZE_MAX: usize = 64;

pub struct Resizes {
    router: Router<Parcel>,
    reference: ActorRef<Parcel>,
    /// Routees of a pool are failed, poisoned and removed one by one, too.
    is_rough: bool,
}

/// A pool of so many workers, by a logic that the dice choose.
pub fn pool(ground: &Ground, dice: &mut Dice, name: &str, size: usize) -> Result<Router<Parcel>, SpawnError> {
    // Who leaves has what it leaves behind routed again, so that the order is not kept.
    let yard = Yard::new(ground.books, false);
    let builder = ground.system.router(name);
    let recipe = move |ctx: &mut Context<Parcel>| yard.worker(ctx);
    if dice.hits(1, 7) {
        let plan = builder.balancing_pool(size, recipe).stay_when_empty().on_failure(always());
        return plan.head_dispatcher("management").spawn();
    }
    let mut plan = builder.pool(size, recipe).stay_when_empty().on_failure(always());
    plan = plan.head_dispatcher("management");
    if dice.hits(1, 2) {
        plan = plan.leave_within(Duration::from_millis(dice.roll(3) as u64));
    }
    by_any_logic(plan, dice)
}

fn always() -> Strategy {
    Strategy::decide(|_| Directive::Restart).quiet()
}

fn by_any_logic(plan: RouterPlan<Parcel, RoundRobin>, dice: &mut Dice) -> Result<Router<Parcel>, SpawnError> {
    match dice.roll(6) {
        0 => plan.spawn(),
        1 => plan.logic(RoundRobin::exact()).spawn(),
        2 => plan.logic(Random::new()).spawn(),
        3 => plan.logic(SmallestMailbox::new()).spawn(),
        4 => plan.logic(TwoChoices::new()).spawn(),
        _ => {
            let key = |parcel: &Parcel, key: &mut KeySink| key.feed(&parcel.number);
            plan.logic(ConsistentHashing::by(key)).spawn()
        }
    }
}

impl Resizes {
    pub fn new(ground: &Ground, dice: &mut Dice) -> Result<Self, SpawnError> {
        let router = pool(ground, dice, &ground.name("resizes"), 4)?;
        Ok(Self { reference: router.to_ref(), router, is_rough: dice.hits(1, 2) })
    }
}

/// Makes one change to a router. One that has ended refuses, which is no matter.
pub fn change(router: &Router<Parcel>, dice: &mut Dice, is_rough: bool) {
    let first = || router.routees().ok().and_then(|routees| routees.first().cloned());
    match dice.roll(if is_rough { 20 } else { 12 }) {
        0..=7 => drop(router.resize_to(1 + dice.roll(SIZE_MAX))),
        8..=11 => drop(router.adjust(dice.roll(9) as isize - 4)),
        12..=14 => drop(first().map(|one| router.remove(&one))),
        15 | 16 => first().iter().for_each(ActorRef::poison),
        17 => first().iter().for_each(ActorRef::stop),
        _ => first().iter().for_each(ActorRef::kill),
    }
    if router.routees().is_ok_and(|routees| routees.is_empty()) {
        drop(router.resize_to(4));
    }
}

impl Scene for Resizes {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        (0..32).all(|_| {
            let task = if dice.hits(1, 5_000) { Task::Fail } else { Task::Nothing };
            post(pen, dice, &self.reference, task)
        })
    }

    fn change(&self, dice: &mut Dice) {
        change(&self.router, dice, self.is_rough);
    }

    fn population(&self) -> Option<usize> {
        self.router.routees().ok().map(|routees| routees.len())
    }
}
