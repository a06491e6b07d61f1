//! A router that ends with the message that finds it empty, as GoAkt's do: see `src/routing/head/empty_pool.rs`.
//!
//! As in `routing.rs`, whoever wakes an actor runs it. That no word to the head is lost is the trigger's affair: see
//! `resizer.rs`.

use crate::support::model;
use loom::thread;
use pointsman::Ledger;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
// A counter that the models look at when all is over; it orders nothing.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

struct Counts(Arc<AtomicUsize>);

impl Actor for Counts {
    type Message = u32;
    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }
}

struct World {
    system: System,
    router: Router<u32>,
    handled: Arc<AtomicUsize>,
}

impl World {
    /// A system with a router of one.
    fn new() -> Self {
        let system = System::builder("model")
            .clock(ManualClock::new())
            .dispatcher("default", calling_dispatcher())
            .build()
            .expect("the settings are sound");
        let handled: Arc<AtomicUsize> = Arc::default();
        let given = handled.clone();
        let plan = system.spawn_router("pool", 1, move |_| Counts(given.clone())).round_robin();
        let router = plan.spawn().expect("the name is free");
        Self { system, router, handled }
    }

    fn send(&self) -> thread::JoinHandle<bool> {
        let router = self.router.to_ref();
        thread::spawn(move || router.try_tell(1u32).is_ok())
    }

    /// Ends its routees.
    fn empty(&self) {
        for routee in self.router.routees().expect("it runs") {
            routee.stop();
        }
    }

    /// Ends the system: every message, and every request to the head, is in one place.
    fn end(self, sent: u64, asked: u64) -> Ledger {
        drop(self.router);
        let ledger = self.system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        assert_eq!((ledger.sent, ledger.balance(), ledger.queued), (sent + asked, 0, 0), "{ledger}");
        ledger
    }
}

// Bound 2: two threads, and a router's creation and end are part of each execution.
// Caught: a head that ends without a look; a trigger that is never loosened.
#[test]
fn a_router_that_grows_in_time_lives_and_one_that_was_found_empty_ends() {
    model("found_empty_races_growth", &[1, 15], 2, 1_800, || {
        let world = World::new();
        world.empty();
        let sender = world.send();
        let grown = world.router.adjust(1);
        let accepted = sender.join().unwrap();
        assert_eq!(world.router.is_closed(), grown.is_err(), "it grows, or it ends");
        assert!(grown.is_ok() || !accepted);
        if grown.is_err() {
            world.end(1, 1);
            return;
        }
        // It was not ended by a message that came before; by the next one that finds it empty it is.
        assert!(world.router.try_tell(2u32).is_ok());
        world.empty();
        assert!(world.router.try_tell(3u32).is_err());
        assert!(world.router.is_closed());
        let handled = world.handled.clone();
        let ledger = world.end(3, 1);
        let accepted = 1 + u64::from(accepted);
        assert_eq!((ledger.handled, ledger.handed_back), (accepted + 1, 3 - accepted), "{ledger}");
        assert_eq!(handled.load(SeqCst) as u64, accepted);
    });
}

// Bound 1: as above.
// Caught: a head that looks whether its list is empty, and not whether those in it have ended.
#[test]
fn the_message_that_finds_the_last_routee_ended_ends_the_router() {
    model("found_empty_races_end_of_routee", &[1], 1, 500, || {
        let world = World::new();
        let routee = world.router.routees().expect("it runs").remove(0);
        let sender = world.send();
        routee.stop();
        drop(routee);
        let accepted = sender.join().unwrap();
        assert_eq!(world.router.is_closed(), !accepted, "refused is: found empty");
        let ledger = world.end(1, 0);
        assert_eq!(ledger.handed_back, u64::from(!accepted), "{ledger}");
    });
}

// Bound 2: as above.
#[test]
fn of_two_messages_that_find_the_router_empty_one_ends_it() {
    model("found_empty_two_senders", &[1], 2, 3_000, || {
        let world = World::new();
        world.empty();
        let sender = world.send();
        assert!(world.router.try_tell(2u32).is_err());
        assert!(!sender.join().unwrap());
        assert!(world.router.is_closed());
        let ledger = world.end(2, 0);
        assert_eq!((ledger.handled, ledger.handed_back), (0, 2), "{ledger}");
    });
}
