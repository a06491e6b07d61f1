//! Actors that set and cancel timers of their own, also while the clock stands still and jumps by an hour.

use crate::books::{Books, Count};
use crate::dice::Dice;
use crate::parcel::Pen;
use crate::scene::{Ground, Scene};
use pointsman::prelude::*;
use pointsman::timers::TimerKey;
use std::time::Duration;

const ACTORS: usize = 64;

#[derive(Clone, Copy)]
struct Tick;

struct Ticker {
    books: &'static Books,
    dice: Dice,
    /// Set and not yet due.
    waiting: Option<TimerKey>,
}

impl Ticker {
    fn set(&mut self, ctx: &mut Context<Tick>) {
        let delay = Duration::from_micros(self.dice.roll(8_000) as u64);
        self.waiting = Some(ctx.after(delay, Tick));
    }
}

impl Actor for Ticker {
    type Message = Tick;

    fn started(&mut self, ctx: &mut Context<Tick>) -> HandlerResult {
        ctx.every(Duration::from_millis(2 + self.dice.roll(9) as u64), || Tick);
        self.set(ctx);
        Ok(())
    }

    fn receive(&mut self, _: Tick, ctx: &mut Context<Tick>) -> HandlerResult {
        self.books.count(Count::Ticked, 1);
        if let Some(timer) = self.waiting.take() {
            ctx.timers().cancel(timer);
        }
        self.set(ctx);
        if self.dice.hits(1, 1_000) { Err(Failure::msg("as told")) } else { Ok(()) }
    }
}

pub struct Ticks {
    /// Kept alive.
    _actors: Vec<ActorRef<Tick>>,
}

impl Ticks {
    pub fn new(ground: &Ground, dice: &mut Dice) -> Result<Self, SpawnError> {
        let actors = (0..ACTORS).map(|number| {
            let (books, seed) = (ground.books, dice.draw());
            ground
                .system
                .actor(&ground.name(format_args!("ticks-{number}")))
                .on_failure(Strategy::decide(|_| Directive::Restart).quiet())
                .spawn(move || Ticker { books, dice: Dice::new(seed), waiting: None })
        });
        Ok(Self { _actors: actors.collect::<Result<_, _>>()? })
    }
}

impl Scene for Ticks {
    fn send(&self, _: &mut Pen, _: &mut Dice) -> bool {
        std::thread::sleep(Duration::from_micros(200));
        true
    }

    fn population(&self) -> Option<usize> {
        Some(0)
    }
}
