//! Actors that are watched by others, most of which take the watch back and end at once. What is watched stays, and must
//! not keep those in memory.

use crate::books::Books;
use crate::dice::Dice;
use crate::heap;
use crate::parcel::{Parcel, Pen, Task};
use crate::patience::Patience;
use crate::scene::{Ground, Scene, post};
use crate::worker::Yard;
use pointsman::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ACTORS: usize = 16;
/// Watchers that come at once.
const BATCH: usize = 32;
/// No more come while so many live.
const ALIVE_MAX: usize = 20 * BATCH;
/// So many batches come one after the other where nothing else happens, and the memory is compared.
const BATCHES: usize = 40;
/// What a watcher that has ended may leave behind on average. A watcher that stays takes 1,300 bytes.
const BYTES_LEFT: usize = 200;

pub struct Watches {
    system: SystemRef,
    books: &'static Books,
    watched: Arc<[ActorRef<Parcel>]>,
    alive: Arc<AtomicUsize>,
}

/// Watches some, takes it back for some or all of them, and ends.
struct Watcher {
    watched: Arc<[ActorRef<Parcel>]>,
    first: usize,
    /// Of how many the watch is taken back; the others learn of the end itself.
    takes_back: usize,
    _present: Present,
}

/// Counted for as long as it lives: by the recipe first, then by the watcher.
struct Present(Arc<AtomicUsize>);

impl Present {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(alive.clone())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        // Release: for who waits until all of them are gone.
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// How many each of them watches.
const WATCHED_EACH: usize = 4;

impl Actor for Watcher {
    type Message = ();

    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        for number in 0..WATCHED_EACH {
            ctx.watch(&self.watched[(self.first + number) % ACTORS])?;
        }
        Ok(())
    }

    fn receive(&mut self, (): (), ctx: &mut Context<()>) -> HandlerResult {
        for number in 0..self.takes_back {
            ctx.unwatch(&self.watched[(self.first + number) % ACTORS]);
        }
        ctx.stop();
        Ok(())
    }
}

impl Watches {
    pub fn new(ground: &Ground, _: &mut Dice) -> Result<Self, SpawnError> {
        let yard = Yard::new(ground.books, true);
        let watched = (0..ACTORS).map(|number| {
            let yard = yard.clone();
            ground.system.spawn(move || yard.worker_at(number as u64))
        });
        let watched = watched.collect::<Result<_, _>>()?;
        Ok(Self { system: ground.system.clone(), books: ground.books, watched, alive: Arc::default() })
    }

    /// Watchers come and go; `false` once the system ends.
    fn come(&self, dice: &mut Dice) -> bool {
        (0..BATCH).all(|_| {
            let (watched, _present) = (self.watched.clone(), Present::new(&self.alive));
            let (first, takes_back) = (dice.roll(ACTORS), dice.roll(WATCHED_EACH + 1));
            let mut made = Some(Watcher { watched, first, takes_back, _present });
            let watcher = self.system.spawn(move || made.take().expect("never restarted"));
            // It goes on without us.
            watcher.map(|watcher| watcher.tell(())).is_ok()
        })
    }

    /// Waits until all watchers have ended; `false` if they do not.
    fn are_gone(&self) -> bool {
        let mut patience = Patience::new();
        while self.alive.load(Ordering::Acquire) > 0 {
            if !patience.wait() {
                self.books.fault("watchers that were told to end do not");
                return false;
            }
        }
        true
    }
}

impl Scene for Watches {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        (0..16).all(|_| {
            // A restart keeps the watchers.
            let task = if dice.hits(1, 500) { Task::Fail } else { Task::Nothing };
            let to = dice.pick(&self.watched);
            post(pen, dice, to, task)
        })
    }

    fn change(&self, dice: &mut Dice) {
        // Under a sanitizer the workers are slower than the threads that make watchers.
        if self.alive.load(Ordering::Relaxed) < ALIVE_MAX {
            self.come(dice);
        }
    }

    fn settle(&self, dice: &mut Dice) {
        // What is kept for the next one is there afterwards.
        if !(self.come(dice) && self.are_gone()) {
            return;
        }
        let before = heap::live();
        for _ in 0..BATCHES {
            if !(self.come(dice) && self.are_gone()) {
                return;
            }
        }
        let watchers = BATCH * BATCHES;
        let mut patience = Patience::new();
        while heap::live() - before > (watchers * BYTES_LEFT) as i64 {
            if !patience.wait() {
                let bytes = heap::live() - before;
                self.books.fault(format!("{watchers} watchers have ended and left {bytes} bytes behind"));
                return;
            }
        }
    }

    fn population(&self) -> Option<usize> {
        Some(ACTORS)
    }
}
