//! Logics with shared state, over functions or actors: the shared cursor of exact round robin where it is set back
//! (at 4 in models), the cursor that a value hands from owner to owner, cursors and scans of several threads, loads read against a push and a take.
//!
//! Mutations seen to fail here: the shared cursor set back by all of it instead of by whole rounds; a kept
//! position that stores the routee just served as the next one; the handed cursor stored instead of exchanged; a smallest mailbox that goes on where it was,
//! not behind. That a length is never read wrong has its models in `mailbox.rs`.

use crate::support::model;
use loom::thread;
use pointsman::actor::RecipientLoad;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::prelude::*;
use pointsman::routing::{RoundRobin, Routee, RouterValue, RoutingLogic, SmallestMailbox};
use pointsman::time::ManualClock;
// Counters that the models look at when all is over; they order nothing.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

fn system() -> System {
    System::builder("model")
        .clock(ManualClock::new())
        .dispatcher("default", calling_dispatcher())
        .build()
        .expect("the settings are sound")
}

fn end(system: System, sent: u64) {
    let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (sent, sent, 0), "{ledger}");
}

/// A router over functions that count.
fn functions<const N: usize, L: RoutingLogic<u32>>(
    system: &System,
    logic: L,
) -> (RouterValue<u32, L>, [Arc<AtomicUsize>; N]) {
    let counts = [(); N].map(|()| Arc::new(AtomicUsize::new(0)));
    let functions =
        counts.clone().map(|count| Routee::from(ActorRef::from_fn(move |_| _ = count.fetch_add(1, SeqCst))));
    (RouterValue::new(system, logic).expect("sound").with_routees(functions), counts)
}

fn read<const N: usize>(counts: &[Arc<AtomicUsize>; N]) -> [usize; N] {
    counts.each_ref().map(|count| count.load(SeqCst))
}

// Bound 3: two threads; the cursor is set back while both are at it, after the fifth message of nine. Four are no
// whole rounds over three routees, so that to set it back by all of it would show.
#[test]
fn exact_cursor_is_set_back() {
    model("logics_exact_cursor_is_set_back", &[1, 15], 3, 20, || {
        let system = system();
        let (router, counts) = functions::<3, _>(&system, RoundRobin::exact());
        (0..3u32).for_each(|message| router.route(message));
        let other = thread::spawn({
            let router = router.clone();
            move || (0..3u32).for_each(|message| router.route(message))
        });
        (0..3u32).for_each(|message| router.route(message));
        other.join().unwrap();
        assert_eq!(read(&counts), [3, 3, 3]);
        drop(router);
        end(system, 9);
    });
}

// Bound 3: two threads share the cursor of a value, and find the routee that lives behind one that has stopped.
#[test]
fn threads_share_the_cursor_of_a_value() {
    model("logics_threads_share_the_cursor_of_a_value", &[1], 3, 20, || {
        let system = system();
        let (router, counts) = functions::<2, _>(&system, RoundRobin::new());
        let other = thread::spawn({
            let router = router.clone();
            move || (0..2u32).for_each(|message| router.route(message))
        });
        (0..2u32).for_each(|message| router.route(message));
        other.join().unwrap();
        assert_eq!(read(&counts), [2, 2]);
        drop(router);
        end(system, 4);
    });
}

// Bound 3: an actor that runs on whichever of two threads has sent to it goes on where it was, by a cursor that no other
// sender touches; loom sees that.
#[test]
fn an_actor_takes_its_cursor_along() {
    struct Routes(RouterValue<u32, RoundRobin>, Router<u32>);
    impl Actor for Routes {
        type Message = u32;
        fn receive(&mut self, message: u32, _: &mut Context<u32>) -> HandlerResult {
            self.0.route(message);
            self.1.tell(message);
            Ok(())
        }
    }
    model("logics_an_actor_takes_its_cursor_along", &[1, 3], 3, 1_000, || {
        let system = system();
        let (value, of_value) = functions::<2, _>(&system, RoundRobin::new());
        let of_router = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let routees =
            of_router.clone().map(|count| ActorRef::from_fn(move |_: u32| _ = count.fetch_add(1, SeqCst)));
        let router = system.router("r").group(routees).spawn().expect("a free name");
        let mut state = Some(Routes(value, router));
        let actor = system.spawn(move || state.take().expect("made once")).expect("a free name");
        let other = thread::spawn({
            let actor = actor.clone();
            move || actor.tell(1u32)
        });
        actor.tell(2u32);
        other.join().unwrap();
        assert_eq!((read(&of_value), read(&of_router)), ([1, 1], [1, 1]));
        drop(actor);
        end(system, 6);
    });
}

// Bound 3: two threads, each with a cursor of its own.
#[test]
fn threads_keep_their_own_positions() {
    model("logics_threads_keep_their_own_positions", &[1], 3, 4, || {
        let system = system();
        let (router, counts) = functions::<2, _>(&system, RoundRobin::keeping_position());
        let other = thread::spawn({
            let router = router.clone();
            move || (0..2u32).for_each(|message| router.route(message))
        });
        (0..2u32).for_each(|message| router.route(message));
        other.join().unwrap();
        assert_eq!(read(&counts), [2, 2]);
        drop(router);
        end(system, 4);
    });
}

struct Counts(Arc<AtomicUsize>);
impl Actor for Counts {
    type Message = u32;
    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }
}

// Bound 3: a thread pushes, and runs the actor that it has woken, while this one reads the load and routes.
#[test]
fn loads_are_read_against_a_push_and_a_take() {
    model("logics_loads_race_push_and_take", &[1, 4, 8], 3, 1_600, || {
        let system = system();
        let counts = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let actors = counts
            .clone()
            .map(|count| system.spawn(move || Counts(count.clone())).expect("the system lives"));
        let router = RouterValue::new(&system, SmallestMailbox::new()).expect("sound").with_routees(&actors);
        let pusher = thread::spawn({
            let actor = actors[0].clone();
            move || actor.tell(1u32)
        });
        match actors[0].load() {
            RecipientLoad::Idle => {}
            RecipientLoad::Busy { queued } => assert!(queued <= 1, "{queued} of one message"),
            other => panic!("{other:?} is none of its states"),
        }
        router.route(2u32);
        pusher.join().unwrap();
        assert_eq!(actors.each_ref().map(ActorRef::load), [RecipientLoad::Idle; 2], "all is done");
        // Two idle ones: the next two messages go to one each.
        let [first, second] = read(&counts);
        assert_eq!(first + second, 2);
        (0..2u32).for_each(|message| router.route(message));
        assert_eq!(read(&counts), [first + 1, second + 1]);
        drop((actors, router));
        end(system, 4);
    });
}
