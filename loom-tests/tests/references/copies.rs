//! Copies for a routee that ends early, with what it leaves to be routed again: see `src/core/copies.rs`.
//!
//! As in `routing.rs`, whoever wakes an actor runs it.

use crate::support::model;
use loom::thread;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::prelude::*;
use pointsman::routing::{RemoveRoutee, RoundRobin, RouterValue};
use pointsman::time::ManualClock;
// What the models look at when all is over; it orders nothing.
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// (routee, message), for each message handled.
type Seen = Arc<Mutex<Vec<(usize, u32)>>>;
/// What sends copies.
type Old = RouterValue<u32, RoundRobin>;

const FAREWELL: u32 = 0;
/// Sends copies of 2, and ends with its own in its mailbox.
const LAST: u32 = 9;

struct Notes {
    index: usize,
    seen: Seen,
    old: Arc<Mutex<Option<Old>>>,
}

impl Actor for Notes {
    type Message = u32;
    fn receive(&mut self, number: u32, ctx: &mut Context<u32>) -> HandlerResult {
        match number {
            FAREWELL => {}
            LAST => {
                let old = self.old.lock().unwrap().take();
                old.expect("it is sent once").broadcast(2u32);
                ctx.stop();
            }
            _ => self.seen.lock().unwrap().push((self.index, number)),
        }
        Ok(())
    }
}

/// A routee of two that has been told farewell, lives on, and has what it leaves routed again.
struct World {
    system: System,
    leaving: ActorRef<u32>,
    seen: Seen,
    old: Arc<Mutex<Option<Old>>>,
}

impl World {
    fn new() -> Self {
        let system = System::builder("model")
            .clock(ManualClock::new())
            .dispatcher("default", calling_dispatcher())
            .build()
            .expect("the settings are sound");
        let (seen, old) = (Seen::default(), Arc::<Mutex<Option<Old>>>::default());
        let given = (seen.clone(), old.clone());
        let make = move |ctx: &mut Context<u32>| Notes {
            index: ctx.routee_index(),
            seen: given.0.clone(),
            old: given.1.clone(),
        };
        let plan = system.router("pool").pool(2, make).farewell(|| FAREWELL);
        let router = plan.spawn().expect("the name is free");
        let leaving = router.routees().expect("it runs").remove(1);
        let removed = router.head().ask(RemoveRoutee { routee: (&leaving).into() }).wait();
        assert!(matches!(removed, Ok(Ok(true))));
        Self { system, leaving, seen, old }
    }

    /// Sends a copy to this one, and one to somebody else, whatever table the router has.
    fn old(&self, routee: &ActorRef<u32>) -> Old {
        let old = RouterValue::new(&self.system, RoundRobin::new()).expect("it is sound");
        old.with_routees(&[routee.clone(), ActorRef::from_fn(|_| {})])
    }

    /// Of `copies` sent to the routee, it has handled each, or it is a dead letter. `others` were handled by whoever got
    /// them, beside the removal and the farewell.
    fn end(self, copies: u64, others: u64) {
        drop(self.leaving);
        let ledger = self.system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        assert_eq!((ledger.balance(), ledger.queued, ledger.handed_back), (0, 0, 0), "{ledger}");
        let seen = self.seen.lock().unwrap();
        assert!(seen.iter().all(|(index, _)| *index == 1), "routed again: {seen:?}");
        assert_eq!(ledger.sent, copies + others + 2, "{ledger}");
        assert_eq!(ledger.dead_lettered, copies - seen.len() as u64, "{ledger}");
    }
}

// Bound 3: two threads.
// Caught: a mark that is set behind the push; an actor that hands on what it leaves whether it is marked or not.
#[test]
fn no_copy_is_routed_again_when_its_routee_ends_early() {
    model("copies_race_early_end", &[1], 3, 3_300, || {
        let world = World::new();
        let old = world.old(&world.leaving);
        let sender = thread::spawn(move || old.broadcast(1u32));
        world.leaving.stop();
        sender.join().unwrap();
        world.end(1, 1);
    });
}

// Bound 1: two threads beside main, which waits. The second sender finds an adapter that has told the actor behind it.
// Caught: an adapter that counts as told before the actor is marked; Relaxed for the Acquire in `expect_copies`, or for the
// Release in `mark_for_copies`.
#[test]
fn whoever_finds_an_adapter_told_finds_its_actor_marked() {
    model("copies_of_two_senders_by_an_adapter", &[1], 1, 1_500, || {
        let world = World::new();
        let old = world.old(&world.leaving.contramap(|number: u32| number));
        *world.old.lock().unwrap() = Some(old.clone());
        let sender = thread::spawn(move || old.broadcast(1u32));
        let leaving = world.leaving.clone();
        let last = thread::spawn(move || leaving.tell(LAST));
        sender.join().unwrap();
        last.join().unwrap();
        world.end(2, 2 + 1);
    });
}
