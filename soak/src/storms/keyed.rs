//! A group of thousands of keys whose actors come with their first message, and retire, fail, and stop.

use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use crate::scene::{Ground, Scene, post};
use crate::worker::Yard;
use pointsman::SpawnError;
use pointsman::group::{Group, RestartPolicy, WhileRestarting};
use pointsman::prelude::*;
use std::time::Duration;

pub struct Keyed {
    group: Group<Parcel, u64>,
    keys: u64,
    /// Actors stop, too: what they have in their mailboxes then are dead letters.
    is_rough: bool,
}

impl Keyed {
    pub fn new(ground: &Ground, dice: &mut Dice) -> Result<Self, SpawnError> {
        let yard = Yard::new(ground.books, true);
        let keys = *dice.pick(&[8, ground.scale.keys as u64]);
        let wait = Duration::from_millis(1);
        let policy = *dice.pick(&[RestartPolicy::never(), RestartPolicy::on_failure(wait, wait)]);
        let group = ground
            .system
            .group(&ground.name("keyed"))
            .by_key(
                move |parcel: &Parcel| key_of(parcel, keys),
                move |_: &mut Context<Parcel>, key: &u64| yard.worker_at(*key),
            )
            .restart(policy)
            .while_restarting(WhileRestarting::Queue)
            .spawn()?;
        Ok(Self { group, keys, is_rough: dice.hits(1, 2) })
    }
}

fn key_of(parcel: &Parcel, keys: u64) -> u64 {
    // Runs to one key, so that senders meet there.
    (parcel.number / 16) % keys
}

impl Scene for Keyed {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        let to = self.group.to_ref();
        (0..32).all(|_| {
            let task = match dice.roll(1_000) {
                0..20 => Task::Retire,
                20 => Task::Fail,
                21 if self.is_rough => Task::Stop,
                _ => Task::Nothing,
            };
            post(pen, dice, &to, task)
        })
    }

    fn change(&self, dice: &mut Dice) {
        let _ = self.group.mount(dice.roll(self.keys as usize) as u64);
    }

    fn population(&self) -> Option<usize> {
        Some(self.group.len())
    }
}
