//! Bursts to actors that are idle, on workers that are, too: each burst waits for the one before to be handled.

use crate::books::Books;
use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use crate::patience::Patience;
use crate::scene::{Ground, Scene, post};
use crate::worker::{Seat, Yard};
use pointsman::SpawnError;
use pointsman::prelude::*;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const ACTORS: usize = 16;
/// Looks at an actor before its waker sleeps between them.
const LOOKS: usize = 200;

struct Sleeper {
    actor: ActorRef<Parcel>,
    seat: Arc<Seat>,
}

pub struct Wakes {
    books: &'static Books,
    /// One thread at a time wakes them: what another one sends would wake a worker that finds what was forgotten, too.
    sleepers: Mutex<Vec<Sleeper>>,
}

impl Wakes {
    pub fn new(ground: &Ground, _: &mut Dice) -> Result<Self, SpawnError> {
        let yard = Yard::new(ground.books, true);
        let sleeper = |number: usize| {
            let (number, yard) = (number as u64, yard.clone());
            let seat = yard.seat(number);
            let actor = ground.system.spawn(move || yard.worker_at(number))?;
            Ok::<_, SpawnError>(Sleeper { actor, seat })
        };
        let sleepers = (0..ACTORS).map(sleeper).collect::<Result<_, _>>()?;
        Ok(Self { books: ground.books, sleepers: Mutex::new(sleepers) })
    }
}

impl Scene for Wakes {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        let Ok(sleepers) = self.sleepers.try_lock() else {
            thread::sleep(Duration::from_millis(1));
            return true;
        };
        let burst = if dice.hits(1, 2) { 1 } else { 1 + dice.roll(ACTORS) };
        for _ in 0..4 {
            let before: Vec<_> = sleepers[..burst].iter().map(|sleeper| sleeper.seat.handled()).collect();
            let all_sent =
                sleepers[..burst].iter().all(|sleeper| post(pen, dice, &sleeper.actor, Task::Nothing));
            if !all_sent {
                return false;
            }
            let mut patience = Patience::new();
            let is_awake = |(sleeper, before): (&Sleeper, &u64)| {
                sleeper.seat.handled() > *before || sleeper.actor.is_closed()
            };
            for pair in sleepers.iter().zip(&before) {
                let mut looks = 0;
                while !is_awake(pair) {
                    looks += 1;
                    if looks < LOOKS {
                        thread::yield_now();
                    } else if !patience.wait() {
                        self.books.fault("an idle actor got a message and was not woken");
                        return false;
                    }
                }
            }
            // Long enough for the workers to sleep, now and then.
            if dice.hits(1, 3) {
                thread::sleep(Duration::from_micros(dice.roll(200) as u64));
            }
        }
        true
    }

    fn population(&self) -> Option<usize> {
        Some(ACTORS)
    }
}
