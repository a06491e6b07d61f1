//! Routers, whole: the reference that routes, the published table, the head and the routees, on a dispatcher
//! whose threads are the model's own (whoever wakes an actor runs it).
//!
//! The grace period behind the table has its own models in `util/reclaim.rs`; these are about messages: handled,
//! routed again, a dead letter or handed back, each exactly once, whatever happens to the table meanwhile.

use crate::support::model;
use loom::thread;
use pointsman::Ledger;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::prelude::*;
use pointsman::routing::{AdjustPoolSize, RoundRobin, RoutingLogic, SmallestMailbox};
use pointsman::time::ManualClock;
// Counters that the models look at when all is over; they order nothing.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Counts what each routee of a pool handles; one made after a removal counts for the removed one.
struct Routee {
    handled: Arc<[AtomicUsize; 2]>,
    index: usize,
}

impl Actor for Routee {
    type Message = u32;
    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        self.handled[self.index % 2].fetch_add(1, SeqCst);
        Ok(())
    }
}

/// A system with a pool of two.
struct World {
    system: System,
    router: Router<u32>,
    handled: Arc<[AtomicUsize; 2]>,
}

impl World {
    fn new(logic: impl RoutingLogic<u32>) -> Self {
        let system = System::builder("model")
            .clock(ManualClock::new())
            .dispatcher("default", calling_dispatcher())
            .build()
            .expect("the settings are sound");
        let handled: Arc<[AtomicUsize; 2]> = Arc::default();
        let given = handled.clone();
        let router = system
            .router("pool")
            .pool(2, move |ctx| Routee { handled: given.clone(), index: ctx.routee_index() })
            .logic(logic)
            .spawn()
            .expect("the name is free");
        Self { system, router, handled }
    }

    fn tell(&self, count: u32) -> thread::JoinHandle<()> {
        let router = self.router.to_ref();
        thread::spawn(move || (0..count).for_each(|number| router.tell(number)))
    }

    fn handled(&self) -> [usize; 2] {
        [self.handled[0].load(SeqCst), self.handled[1].load(SeqCst)]
    }

    /// Ends the system; every message is accounted for once, and what was handled was handled once. `asked` are
    /// requests to the head.
    fn end(self, sent: u64, asked: u64) -> Ledger {
        let ledger = self.system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        assert_eq!((ledger.sent, ledger.balance(), ledger.queued), (sent + asked, 0, 0), "{ledger}");
        let handled = self.handled[0].load(SeqCst) + self.handled[1].load(SeqCst);
        assert_eq!(ledger.handled, handled as u64 + asked, "{ledger}");
        ledger
    }
}

// Bound 3: two threads.
#[test]
fn one_sender_one_message() {
    model("routing_one_message", &[1, 4], 3, 60, || {
        let world = World::new(RoundRobin::new());
        let sender = world.tell(1);
        sender.join().unwrap();
        assert_eq!(world.handled(), [1, 0]);
        world.end(1, 0);
    });
}

// Bound 2: two threads, but a router's creation and end are part of each execution; bound 3 takes 11 s. Main is the sender: to push behind the drain's position it has to stop between reading the
// table and pushing, and the other thread between the position and the close, which are two preemptions then.
// Caught: a leaving routee whose rest becomes dead letters instead of being routed again.
#[test]
fn route_races_removal() {
    model("routing_races_removal", &[1, 4, 7], 2, 150, || {
        let world = World::new(RoundRobin::new());
        let router = world.router.to_ref();
        // This thread's first message goes to routee 0, its second to routee 1, which leaves.
        router.tell(0u32);
        let head = world.router.head().clone();
        let removal =
            thread::spawn(move || head.ask(AdjustPoolSize::To(1)).wait().is_ok_and(|done| done.is_ok()));
        router.tell(1u32);
        assert!(removal.join().unwrap());
        let [first, second] = world.handled();
        assert!(first + second == 2 && first >= 1, "{first} {second}");
        drop(router);
        world.end(2, 1);
    });
}

// Bound 3: two threads.
#[test]
fn route_races_growth() {
    model("routing_races_growth", &[1, 7], 3, 5_800, || {
        let world = World::new(RoundRobin::new());
        assert_eq!(world.router.resize_to(1).expect("it runs"), 1);
        let sender = world.tell(2);
        assert_eq!(world.router.resize_to(2).expect("it runs"), 2);
        sender.join().unwrap();
        let ledger = world.end(2, 2);
        assert_eq!(ledger.handled, 2 + 2, "{ledger}");
    });
}

// Bound 3: two threads.
#[test]
fn death_of_a_routee_races_a_send() {
    model("routing_death_races_send", &[1, 7], 3, 4_900, || {
        let world = World::new(RoundRobin::new());
        let routees = world.router.routees().expect("it runs");
        let sender = world.tell(1);
        routees[0].stop();
        sender.join().unwrap();
        drop(routees);
        // In its mailbox before it closed: a dead letter; refused: to the next one.
        let ledger = world.end(1, 0);
        assert_eq!(ledger.handled + ledger.dead_lettered, 1, "{ledger}");
    });
}

// Bound 2: two threads, but all of a router ends; bound 3 takes more than 25 s.
#[test]
fn the_heads_stop_races_a_send() {
    model("routing_stop_races_send", &[1, 7], 2, 2_650, || {
        let world = World::new(RoundRobin::new());
        let sender = {
            let router = world.router.to_ref();
            thread::spawn(move || router.try_tell(1u32).is_ok())
        };
        world.router.to_ref().stop();
        let taken = sender.join().unwrap();
        let ledger = world.end(1, 0);
        assert_eq!(ledger.handed_back, u64::from(!taken), "{ledger}");
        assert_eq!(ledger.handled + ledger.dead_lettered, u64::from(taken), "{ledger}");
    });
}

// Bound 2: three threads.
#[test]
fn two_threads_each_go_round() {
    model("routing_two_round_robins", &[1, 4], 2, 10_200, || {
        let world = World::new(RoundRobin::new());
        let senders = [world.tell(2), world.tell(2)];
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!(world.handled(), [2, 2]);
        world.end(4, 0);
    });
}

// Bound 3: three threads, few steps each.
#[test]
fn smallest_mailbox_reads_race_pushes_and_takes() {
    model("routing_smallest_mailbox", &[1, 4], 3, 6_000, || {
        let world = World::new(SmallestMailbox::new());
        let senders = [world.tell(1), world.tell(1)];
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        let [first, second] = world.handled();
        assert_eq!(first + second, 2);
        world.end(2, 0);
    });
}
