//! Models of requests: several copies, each with a token of its own. Whole systems without threads of their own, whose
//! groups keep what they get, so that the model decides who answers and drops, and when.
//!
//! In each the asker gets one outcome, and no ask is pending in the end. Bound 3: few steps each.
//!
//! Seen to fail here, each by itself: no hold while a request is being sent; the number of open tokens
//! changed by a load and a store in two sections of the lock; a first reply that leaves the asker in its
//! place for the next; a late reply to all that leaves no entry in the list.

use crate::support::model;
use loom::sync::Mutex;
use loom::thread;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use pointsman::topology::Outlet;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
struct Get;

impl Request for Get {
    type Reply = u32;
}

/// Loom's: it hands calls from thread to thread.
type Calls = Arc<Mutex<Vec<Call<Get>>>>;

struct World {
    system: System,
    outlet: Outlet<Call<Get>>,
    calls: Calls,
}

impl World {
    fn new(groups: usize) -> Self {
        Self::with_unmounted(groups, 0)
    }

    /// With groups before them that are never mounted, and so refuse.
    fn with_unmounted(groups: usize, unmounted: usize) -> Self {
        let system = System::builder("model")
            .clock(ManualClock::new())
            .dispatcher("default", calling_dispatcher())
            .build()
            .expect("the settings are sound");
        let calls = Calls::new(Mutex::new(Vec::new()));
        let topology = system.topology();
        let source = topology.local::<u32>("source").unwrap();
        for number in 0..unmounted {
            let group = topology.local::<Call<Get>>(&format!("u{number}")).unwrap();
            source.route_all_to::<Call<Get>, _>(&group);
        }
        for number in 0..groups {
            let group = topology.local(&format!("g{number}")).unwrap();
            source.route_all_to::<Call<Get>, _>(&group);
            let calls = calls.clone();
            group.mount(&ActorRef::from_fn(move |call| calls.lock().unwrap().push(call)));
        }
        let outlet = source.outlet();
        source.mount(&ActorRef::from_fn(|_| {}));
        Self { system, outlet, calls }
    }

    fn take(&self) -> Call<Get> {
        self.calls.lock().unwrap().pop().expect("somebody was asked")
    }

    fn end(self) {
        let Self { system, outlet, calls } = self;
        drop((outlet, calls));
        let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        assert_eq!(ledger.balance(), 0, "{ledger}");
        let asks = ledger.asks;
        assert_eq!((asks.begun, asks.pending()), (1, 0), "{asks:?}");
    }
}

/// Answers on a thread of the model's; true if that was in time.
fn answer(call: Call<Get>, reply: u32) -> thread::JoinHandle<bool> {
    thread::spawn(move || call.reply_to.send(reply).is_ok())
}

// Bound 3: two threads, and a short protocol.
#[test]
fn of_two_answers_any_takes_one() {
    model("requests_any_two_answers", &[9], 3, 4, || {
        let world = World::new(2);
        let ask = world.outlet.request(Get).first();
        let (one, two) = (world.take(), world.take());
        let other = answer(one, 1);
        let second = two.reply_to.send(2).is_ok();
        let first = other.join().unwrap();
        assert!(first != second, "one of them is late");
        assert_eq!(ask.wait(), Ok(if first { 1 } else { 2 }));
        world.end();
    });
}

#[test]
fn an_answer_races_the_drop_of_the_other_copy() {
    model("requests_any_answer_races_drop", &[9], 3, 4, || {
        let world = World::new(2);
        let ask = world.outlet.request(Get).first();
        let (one, two) = (world.take(), world.take());
        let other = answer(one, 1);
        drop(two);
        assert!(other.join().unwrap());
        assert_eq!(ask.wait(), Ok(1));
        world.end();
    });
}

#[test]
fn the_last_two_of_all_end_together() {
    model("requests_all_last_two", &[9], 3, 4, || {
        let world = World::new(2);
        let ask = world.outlet.request(Get).all();
        let (one, two) = (world.take(), world.take());
        let other = answer(one, 1);
        drop(two);
        assert!(other.join().unwrap());
        let mut replies = ask.wait().unwrap();
        replies.sort_by_key(Result::is_ok);
        assert_eq!(replies, [Err(AskError::no_reply()), Ok(1)]);
        world.end();
    });
}

// The copy that is answered is in the list if its answer was in time, and else it has timed out, as the other one has.
#[test]
fn the_end_of_alls_time_races_an_answer() {
    model("requests_all_time_races_answer", &[9], 3, 8, || {
        let world = World::new(2);
        // Sent before it has its limit: with none from the beginning it would not be sent.
        let ask = world.outlet.request(Get).all().within(Duration::ZERO);
        let (one, two) = (world.take(), world.take());
        let other = answer(one, 1);
        let mut replies = ask.wait().unwrap();
        replies.sort_by_key(Result::is_ok);
        let first = if other.join().unwrap() { Ok(1) } else { Err(AskError::timeout(Duration::ZERO)) };
        assert_eq!(replies, [Err(AskError::timeout(Duration::ZERO)), first]);
        drop(two);
        world.end();
    });
}

#[test]
fn a_copy_is_dropped_while_the_others_are_being_sent() {
    for all in [false, true] {
        let name = if all { "requests_all_sent_races_drop" } else { "requests_any_sent_races_drop" };
        model(name, &[9], 3, 10, move || {
            let world = World::new(2);
            let calls = world.calls.clone();
            let drops = thread::spawn(move || {
                let call = calls.lock().unwrap().pop();
                drop(call);
            });
            if all {
                let ask = world.outlet.request(Get).all();
                drops.join().unwrap();
                world.calls.lock().unwrap().clear();
                assert_eq!(ask.wait(), Ok(vec![Err(AskError::no_reply()); 2]));
            } else {
                let ask = world.outlet.request(Get).first();
                drops.join().unwrap();
                world.calls.lock().unwrap().clear();
                assert_eq!(ask.wait(), Err(AskError::no_reply()));
            }
            world.end();
        });
    }
}

#[test]
fn the_last_two_clones_of_a_token_end_it_once() {
    model("requests_clones_of_a_token", &[9], 3, 4, || {
        let world = World::new(1);
        let ask = world.outlet.request(Get).all();
        let call = world.take();
        let clone = call.reply_to.clone();
        let other = thread::spawn(move || drop(clone));
        drop(call);
        other.join().unwrap();
        assert_eq!(ask.wait(), Ok(vec![Err(AskError::no_reply())]));
        world.end();
    });
}

/// Those for whom no copy was made have failed, too: the end of the one copy is not the end.
#[test]
fn the_only_copy_that_is_taken_is_dropped_before_the_refusals_are_counted() {
    model("requests_all_refusals_race_drop", &[9], 3, 4, || {
        let world = World::with_unmounted(1, 2);
        let calls = world.calls.clone();
        let drops = thread::spawn(move || {
            let call = calls.lock().unwrap().pop();
            drop(call);
        });
        let ask = world.outlet.request(Get).all();
        drops.join().unwrap();
        world.calls.lock().unwrap().clear();
        let mut replies = ask.wait().unwrap();
        replies.sort_by_key(|reply| *reply == Err(AskError::no_reply()));
        assert_eq!(
            replies,
            [AskError::undeliverable(), AskError::undeliverable(), AskError::no_reply()].map(Err)
        );
        world.end();
    });
}
