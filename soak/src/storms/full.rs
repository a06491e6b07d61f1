//! Mailboxes that hold one message, with each policy for being full, and a pool of such routees.

use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use crate::scene::{Ground, Scene, post};
use crate::worker::Yard;
use pointsman::SpawnError;
use pointsman::prelude::*;
use std::time::Duration;

const ROUTEES: usize = 4;

pub struct Full1 {
    to: Vec<ActorRef<Parcel>>,
    population: usize,
}

/// Each kind of mailbox, and whether it keeps the order of a sender's messages.
fn mailboxes() -> Vec<(Mailbox, bool)> {
    let bounded = |policy| Mailbox::bounded(1).on_full(policy);
    let brief = OverflowPolicy::Wait(Duration::from_micros(200));
    let number = |parcel: &Parcel| (parcel.number % 3) as usize;
    vec![
        (bounded(OverflowPolicy::Reject), true),
        (bounded(OverflowPolicy::DropOldest), true),
        (bounded(OverflowPolicy::DropNewest), true),
        (bounded(brief), true),
        (Mailbox::priority(move |parcel| number(parcel) as i64).capacity(1), false),
        (Mailbox::lanes(3, number).capacity(1).guard(4), false),
        (Mailbox::lanes(3, number).capacity(1).on_full(OverflowPolicy::DropNewest), false),
        (Mailbox::control_aware(move |parcel| number(parcel) == 0).capacity(1).on_full(brief), false),
        // Not full so soon, so that the order in them is put to the test.
        (Mailbox::bounded(100).on_full(OverflowPolicy::DropOldest), true),
        (Mailbox::lanes(3, number).guard(10), false),
    ]
}

impl Full1 {
    pub fn new(ground: &Ground, _: &mut Dice) -> Result<Self, SpawnError> {
        let mut to = Vec::new();
        let mut population = 0;
        for (number, (mailbox, keeps_order)) in mailboxes().into_iter().enumerate() {
            let yard = Yard::new(ground.books, keeps_order);
            let of_pool = Yard::new(ground.books, keeps_order);
            let name = |what: &str| ground.name(format_args!("full-{what}-{number}"));
            to.push(
                ground
                    .system
                    .actor(&name("actor"))
                    .mailbox(mailbox.clone())
                    .spawn_with(move |ctx: &mut Context<Parcel>| yard.worker(ctx))?,
            );
            let recipe = move |ctx: &mut Context<Parcel>| of_pool.worker(ctx);
            let pool = ground.system.router(&name("pool")).pool(ROUTEES, recipe).mailbox(mailbox);
            to.push(pool.head_dispatcher("management").spawn()?.to_ref());
            population += 1 + ROUTEES;
        }
        Ok(Self { to, population })
    }
}

impl Scene for Full1 {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        let to = dice.pick(&self.to);
        (0..8).all(|_| post(pen, dice, to, Task::Nothing))
    }

    fn population(&self) -> Option<usize> {
        Some(self.population)
    }
}
