//! Routees that leave and routers that end, while messages are sent: whatever was accepted is handled once, and
//! whatever was not comes back once.
//!
//! As in `routing.rs`, whoever wakes an actor runs it.

use crate::support::model;
use loom::thread;
use pointsman::Ledger;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::prelude::*;
use pointsman::routing::{AddRoutee, Drain, RemoveRoutee, RoundRobin, RouterPlan};
use pointsman::time::ManualClock;
// Counters that the models look at when all is over; they order nothing.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Counts what it handles.
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
    clock: ManualClock,
    handled: Arc<AtomicUsize>,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::new();
        let system = System::builder("model")
            .clock(clock.clone())
            .dispatcher("default", calling_dispatcher())
            .build()
            .expect("the settings are sound");
        Self { system, clock, handled: Arc::default() }
    }

    fn pool(&self, size: usize) -> RouterPlan<u32, RoundRobin> {
        let handled = self.handled.clone();
        self.system.router("pool").pool(size, move |_| Counts(handled.clone()))
    }

    /// Sends so many; returns how many were accepted.
    fn try_tell(router: &Router<u32>, count: u32) -> usize {
        (0..count).filter(|number| router.try_tell(*number).is_ok()).count()
    }

    /// Ends the system: what was accepted was handled, and what was not has come back. `asked` are requests to heads.
    fn end(self, sent: u64, accepted: usize, asked: u64) -> Ledger {
        let ledger = self.system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        assert_eq!((ledger.sent, ledger.balance(), ledger.queued), (sent + asked, 0, 0), "{ledger}");
        assert_eq!(self.handled.load(SeqCst), accepted, "{ledger}");
        assert_eq!((ledger.dead_lettered, ledger.handed_back), (0, sent - accepted as u64), "{ledger}");
        ledger
    }
}

// Bound 2: two threads, and a router's creation and end are part of each execution.
// Caught: a routee that leaves an empty table at a position instead of closing first; a pill behind the close one
// position too early.
#[test]
fn route_races_the_drain_of_a_router() {
    model("routing_route_races_drain", &[1, 7], 2, 40_000, || {
        let world = World::new();
        let router = world.pool(1).spawn().expect("the name is free");
        let head = router.head().clone();
        let drain = thread::spawn(move || head.ask(Drain).wait().is_ok());
        let accepted = World::try_tell(&router, 1);
        assert!(drain.join().unwrap());
        assert!(router.try_tell(3u32).is_err());
        drop(router);
        world.end(2, accepted, 1);
    });
}

// Bound 2: as above.
// Caught: a head that stops as soon as its table is empty, with what its last routee has.
#[test]
fn route_races_the_removal_of_the_last_routee() {
    model("routing_route_races_last_removal", &[1, 7], 2, 40_000, || {
        let world = World::new();
        let router = world.pool(1).spawn().expect("the name is free");
        let routee = router.routees().expect("it runs").remove(0);
        let head = router.head().clone();
        let removal = thread::spawn(move || head.ask(RemoveRoutee { routee: routee.into() }).wait().is_ok());
        let accepted = World::try_tell(&router, 1);
        assert!(removal.join().unwrap());
        drop(router);
        world.end(1, accepted, 1);
    });
}

// Bound 3: with 2 no message is left in the mailbox when the deadline passes.
// Caught: a routee that is stopped on its way out and makes dead letters of what it has; not caught with bound 2.
#[test]
fn the_deadline_of_a_leaving_routee_races_what_is_routed_again() {
    model("routing_deadline_races_reroute", &[1, 7], 3, 10_000, || {
        let world = World::new();
        let within = Duration::from_millis(1);
        let router = world.pool(2).leave_within(within).spawn().expect("the name is free");
        let leaving = router.routees().expect("it runs").remove(1);
        // This thread's first message goes to routee 0, its second to routee 1, which leaves.
        assert_eq!(World::try_tell(&router, 1), 1);
        let (head, clock) = (router.head().clone(), world.clock.clone());
        let removal = thread::spawn(move || {
            let removed = head.ask(RemoveRoutee { routee: leaving.into() }).wait().is_ok();
            clock.advance(within);
            removed
        });
        assert_eq!(World::try_tell(&router, 1), 1);
        assert!(removal.join().unwrap());
        drop(router);
        world.end(2, 2, 1);
    });
}

// Bound 2: as above.
// Caught: a routee that is told to stop when it is unlisted although the pool did not make it.
#[test]
fn route_races_the_addition_and_removal_of_a_routee_from_elsewhere() {
    model("routing_route_races_add_remove", &[1, 7], 2, 4_000, || {
        let world = World::new();
        let handled = world.handled.clone();
        let other = world.system.spawn(move || Counts(handled.clone())).expect("room");
        let router: Router<u32> =
            world.system.router("group").group([]).stay_when_empty().spawn().expect("the name is free");
        let (head, routee) = (router.head().clone(), other.clone());
        let changes = thread::spawn(move || {
            let added = head.ask(AddRoutee { routee: routee.clone().into() }).wait().is_ok();
            added && head.ask(RemoveRoutee { routee: routee.into() }).wait().is_ok()
        });
        let accepted = World::try_tell(&router, 1);
        assert!(changes.join().unwrap());
        assert!(!other.is_closed());
        drop((router, other));
        world.end(1, accepted, 2);
    });
}
