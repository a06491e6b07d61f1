//! A router that sends to all its routees, which are as many from one moment of quiescence to the next, and fail.

use crate::books::Books;
use crate::dice::Dice;
use crate::parcel::{Parcel, Pen, Task};
use crate::scene::{Ground, Scene, post};
use crate::worker::Yard;
use pointsman::prelude::*;
use pointsman::routing::Broadcast;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const ROUTEES_MAX: usize = 24;

pub struct ToAll {
    books: &'static Books,
    yard: Arc<Yard>,
    router: Router<Parcel>,
    reference: ActorRef<Parcel>,
    routees: AtomicU64,
    /// Since the last quiescence.
    sent: AtomicU64,
    handled_before: AtomicU64,
}

impl ToAll {
    pub fn new(ground: &Ground, dice: &mut Dice) -> Result<Self, SpawnError> {
        let yard = Yard::new(ground.books, true);
        let of_pool = yard.clone();
        let size = 1 + dice.roll(ROUTEES_MAX);
        let router = ground
            .system
            .router(&ground.name("broadcast"))
            .pool(size, move |ctx: &mut Context<Parcel>| of_pool.worker(ctx))
            .logic(Broadcast)
            .on_failure(Strategy::decide(|_| Directive::Restart).quiet())
            .head_dispatcher("management")
            .spawn()?;
        Ok(Self {
            books: ground.books,
            yard,
            reference: router.to_ref(),
            router,
            routees: AtomicU64::new(size as u64),
            sent: AtomicU64::new(0),
            handled_before: AtomicU64::new(0),
        })
    }
}

impl Scene for ToAll {
    fn send(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        (0..4).all(|_| {
            let task = if dice.hits(1, 2_000) { Task::Fail } else { Task::Nothing };
            let is_sent = post(pen, dice, &self.reference, task);
            self.sent.fetch_add(u64::from(is_sent), Ordering::Relaxed);
            is_sent
        })
    }

    fn change(&self, dice: &mut Dice) {
        // Restarted in its place, with its mailbox.
        if let Ok(routees) = self.router.routees() {
            dice.pick(&routees).kill();
        }
    }

    fn settle(&self, dice: &mut Dice) {
        let handled = self.yard.handled();
        let deliveries = handled - self.handled_before.load(Ordering::Relaxed);
        let (sent, routees) = (self.sent.swap(0, Ordering::Relaxed), self.routees.load(Ordering::Relaxed));
        if deliveries != sent * routees {
            self.books
                .fault(format!("{sent} broadcasts to {routees} routees came to {deliveries} deliveries"));
        }
        if let Ok(size) = self.router.resize_to(1 + dice.roll(ROUTEES_MAX)) {
            self.routees.store(size as u64, Ordering::Relaxed);
        }
        self.handled_before.store(handled, Ordering::Relaxed);
    }

    fn population(&self) -> Option<usize> {
        Some(self.routees.load(Ordering::Relaxed) as usize)
    }
}
