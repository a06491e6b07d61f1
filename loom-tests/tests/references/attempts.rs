//! Models of races: one question, several attempts. Whole systems without threads of their own, whose routees
//! keep what they get, so that the model decides who answers, drops and rings, and when.
//!
//! In each the asker gets one outcome, and nothing is left: no timer (a clock that moves on finds nobody), no copy
//! of the message, no ask that is pending.
//!
//! Seen to fail here, each by itself: whoever starts attempts does not look again before it puts the message
//! back; a failure that finds the message taken and notes nothing; a kept message that is not dropped with the
//! outcome; an asker that has left and is not asked for; an alarm that takes its drop for the end of the system
//! although another was set, or keeps its number when it rings; a question that fails while one attempt is under way; a
//! loser that is still wanted after the outcome.

use crate::support::model;
use loom::thread;
use pointsman::SendError;
use pointsman::actor::Recipient;
use pointsman::ask::AttemptEnd;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::prelude::*;
use pointsman::routing::{RoutingLogic, ScatterGatherFirstCompleted, TailChopping};
use pointsman::time::ManualClock;
// Held for an instant each; they order nothing that a race rests on.
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// When the time is up.
const SECOND: Duration = Duration::from_secs(1);
/// When the next one is asked.
const TICK: Duration = Duration::from_millis(100);

/// Answered by a number, of which 0 is no success.
#[derive(Clone)]
struct Get {
    /// Counts the copies that are left.
    _life: Arc<()>,
}

impl Request for Get {
    type Reply = u32;
    fn is_success(reply: &u32) -> bool {
        *reply != 0
    }
}

type Calls = Arc<Mutex<Vec<Call<Get>>>>;

/// Keeps what it gets.
struct Kept(Calls);

impl Recipient<Call<Get>> for Kept {
    fn deliver(&self, call: Call<Get>) -> Result<(), SendError<Call<Get>>> {
        self.0.lock().unwrap().push(call);
        Ok(())
    }
}

struct World {
    system: System,
    clock: ManualClock,
    router: Router<Call<Get>>,
    calls: Calls,
    life: Arc<()>,
}

impl World {
    fn new(routees: usize, logic: impl RoutingLogic<Call<Get>>) -> Self {
        let clock = ManualClock::new();
        let system = System::builder("model")
            .clock(clock.clone())
            .dispatcher("default", calling_dispatcher())
            .build()
            .expect("the settings are sound");
        let calls = Calls::default();
        let group = (0..routees).map(|_| ActorRef::to_recipient(Kept(calls.clone())));
        let router = system.router("all").group(group).logic(logic).spawn().expect("the name is free");
        Self { system, clock, router, calls, life: Arc::new(()) }
    }

    fn ask(&self) -> Ask<u32> {
        self.router.ask(Get { _life: self.life.clone() })
    }

    fn take(&self) -> Call<Get> {
        self.calls.lock().unwrap().pop().expect("somebody was asked")
    }

    fn asked(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    fn advance(&self, by: Duration) -> thread::JoinHandle<()> {
        let clock = self.clock.clone();
        thread::spawn(move || clock.advance(by))
    }

    /// Ends the system; nothing is left of the question, which was asked of so many routees.
    fn end(self, copies: usize) {
        let Self { system, clock, router, calls, life } = self;
        assert_eq!(Arc::strong_count(&life), 1 + calls.lock().unwrap().len(), "the router has kept a copy");
        clock.advance(10 * SECOND);
        calls.lock().unwrap().clear();
        drop(router);
        let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        assert_eq!((ledger.balance(), ledger.sent), (0, copies as u64), "{ledger}");
        assert_eq!((ledger.asks.begun, ledger.asks.pending()), (1, 0), "{:?}", ledger.asks);
    }
}

/// Answers on a thread of the model's; true if that was in time.
fn answer(call: Call<Get>, reply: u32) -> thread::JoinHandle<bool> {
    thread::spawn(move || call.reply_to.send(reply).is_ok())
}

fn scatter() -> ScatterGatherFirstCompleted {
    ScatterGatherFirstCompleted::within(SECOND)
}

fn chop() -> TailChopping {
    TailChopping::within(SECOND).interval(TICK)
}

// Bound 3: two threads, and a short protocol.
#[test]
fn first_success_races_the_deadline() {
    model("attempts_success_races_deadline", &[9], 3, 40, || {
        let world = World::new(2, scatter());
        let ask = world.ask();
        let (winner, loser) = (world.take(), world.take());
        let winner = answer(winner, 1);
        world.clock.advance(SECOND);
        let in_time = winner.join().unwrap();
        assert!(!loser.reply_to.wanted());
        drop(loser);
        assert_eq!(ask.wait(), if in_time { Ok(1) } else { Err(AskError::timeout(SECOND)) });
        world.end(2);
    });
}

// Bound 3: as above.
#[test]
fn two_successes_race() {
    model("attempts_two_successes", &[9], 3, 9, || {
        let world = World::new(2, scatter());
        let ask = world.ask();
        let (first, second) = (world.take(), world.take());
        let first = answer(first, 1);
        let (_, second) = second.into_parts();
        let second_won = second.send(2).is_ok();
        let first_won = first.join().unwrap();
        assert!(first_won != second_won, "one wins, the other is late");
        assert_eq!(ask.wait(), Ok(if first_won { 1 } else { 2 }));
        world.end(2);
    });
}

// Bound 3: as above.
#[test]
fn last_failure_races_the_deadline() {
    model("attempts_failure_races_deadline", &[9], 3, 40, || {
        let world = World::new(2, scatter());
        let ask = world.ask();
        drop(world.take());
        let last = world.take();
        let last = thread::spawn(move || drop(last));
        world.clock.advance(SECOND);
        last.join().unwrap();
        match ask.wait() {
            Err(AskError::AllFailed { causes, .. }) => {
                assert!(causes.len() == 2 && causes.iter().all(|(_, end)| *end == AttemptEnd::NoReply));
            }
            outcome => assert_eq!(outcome, Err(AskError::timeout(SECOND))),
        }
        world.end(2);
    });
}

// Bound 3: as above.
#[test]
fn two_last_failures_race() {
    model("attempts_two_failures", &[9, 15], 3, 8, || {
        let world = World::new(2, scatter());
        let ask = world.ask();
        let (first, second) = (world.take(), world.take());
        let first = answer(first, 0);
        drop(second);
        assert!(first.join().unwrap(), "it was heard");
        let Err(AskError::AllFailed { causes, .. }) = ask.wait() else { panic!("all have failed") };
        assert_eq!(causes.len(), 2);
        world.end(2);
    });
}

// Bound 3: as above.
#[test]
fn a_tick_races_the_reply() {
    model("attempts_tick_races_reply", &[1, 9], 3, 400, || {
        let world = World::new(2, chop());
        let ask = world.ask();
        let replier = answer(world.take(), 1);
        world.clock.advance(TICK);
        assert!(replier.join().unwrap());
        assert_eq!(ask.wait(), Ok(1));
        let asked = world.asked();
        assert!(asked <= 1);
        if asked == 1 {
            assert!(!world.calls.lock().unwrap()[0].reply_to.wanted());
        }
        world.end(1 + asked);
    });
}

// Bound 3: as above. Either may start the next one, and both may: then two are asked.
#[test]
fn a_tick_races_a_failure() {
    model("attempts_tick_races_failure", &[1, 9, 16], 3, 500, || {
        let world = World::new(3, chop());
        let ask = world.ask();
        let first = world.take();
        let first = thread::spawn(move || drop(first));
        world.clock.advance(TICK);
        first.join().unwrap();
        let asked = world.asked();
        assert!((1..=2).contains(&asked), "{asked}");
        // A tick that came too late has set none aside: the alarm still rings, so that all are asked in the end.
        world.clock.advance(TICK);
        assert_eq!(world.asked(), 2);
        drop(world.take());
        world.take().answer(|_| 5);
        assert_eq!(ask.wait(), Ok(5));
        world.end(3);
    });
}

// Bound 3: as above. The thread of the one whose attempt is refused while the other's fails.
#[test]
fn two_failures_start_one_each() {
    model("attempts_two_failures_start_two", &[1, 9, 15], 3, 100, || {
        let world = World::new(4, chop());
        let ask = world.ask();
        world.clock.advance(TICK);
        let (first, second) = (world.take(), world.take());
        let first = thread::spawn(move || drop(first));
        drop(second);
        first.join().unwrap();
        assert_eq!(world.asked(), 2, "each has started one, whoever has started it");
        world.calls.lock().unwrap().drain(..).for_each(drop);
        let Err(AskError::AllFailed { causes, .. }) = ask.wait() else { panic!("all have failed") };
        assert_eq!(causes.len(), 4);
        world.end(4);
    });
}

// Bound 3: as above.
#[test]
fn the_askers_leave_races_the_win() {
    model("attempts_leave_races_win", &[9], 3, 9, || {
        let world = World::new(2, scatter());
        let ask = world.ask();
        let (winner, loser) = (world.take(), world.take());
        let winner = answer(winner, 1);
        drop(ask);
        // In time or not: nobody can tell any more.
        let _ = winner.join().unwrap();
        assert!(!loser.reply_to.wanted());
        drop(loser);
        world.end(2);
    });
}

// Bound 3: as above. A failure that finds the asker gone ends the question; the tick then finds nobody.
#[test]
fn the_askers_leave_races_a_tick() {
    model("attempts_leave_races_tick", &[1, 9], 3, 20, || {
        let world = World::new(3, chop());
        let ask = world.ask();
        let tick = world.advance(TICK);
        drop(ask);
        tick.join().unwrap();
        world.clock.advance(TICK);
        let asked = world.asked();
        assert!(asked <= 2, "nobody is asked for an asker that has left");
        assert_eq!(Arc::strong_count(&world.life), 1 + asked, "no copy is kept after the next tick");
        world.end(asked);
    });
}
