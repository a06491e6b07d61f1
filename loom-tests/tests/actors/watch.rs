//! Death watch, restarts and shared fates where two threads meet, in whole actors: whoever wakes an actor
//! runs it.
//!
//! Faults seen to be caught: an actor that tells nobody who watched it between its end and the closing of its
//! lane (`watch_races_death`); a notice that is delivered although nobody expects it any more
//! (`unwatch_races_death`); a resume that writes the mailbox's word by load and store, and so over a sender's
//! claim (`restart_races_send`); siblings that restart without having been suspended, and a suspended turn
//! that gives up although control has come meanwhile (`all_for_one_siblings_fail`).

use crate::support::model;
use loom::thread;
use pointsman::Terminated;
use pointsman::loom_hooks::{calling_dispatcher, child};
use pointsman::prelude::*;
use pointsman::time::ManualClock;
// Counters that the models look at when all is over; they order nothing.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

#[derive(Default)]
struct Counts {
    handled: AtomicUsize,
    restarted: AtomicUsize,
    /// Notices of actors that were alive when they were watched, and of others.
    confirmed: AtomicUsize,
    unconfirmed: AtomicUsize,
    /// Notices that came as the message of a `watch_with`.
    messages: AtomicUsize,
}

enum Do {
    Count,
    Fail,
    Watch(AnyActorRef),
    WatchWith(AnyActorRef),
    Unwatch(AnyActorRef),
    Ended,
}

struct Subject {
    counts: Arc<Counts>,
    /// Told to unwatch: no notice may come from then on.
    unwatched: bool,
}

impl Subject {
    fn new(counts: &Arc<Counts>) -> Self {
        Self { counts: counts.clone(), unwatched: false }
    }
}

impl Actor for Subject {
    type Message = Do;
    fn receive(&mut self, message: Do, ctx: &mut Context<Do>) -> HandlerResult {
        match message {
            Do::Count => _ = self.counts.handled.fetch_add(1, SeqCst),
            Do::Fail => return Err(Failure::msg("as told")),
            Do::Watch(actor) => ctx.watch(&actor)?,
            Do::WatchWith(actor) => ctx.watch_with(&actor, Do::Ended)?,
            Do::Unwatch(actor) => {
                ctx.unwatch(&actor);
                self.unwatched = true;
            }
            Do::Ended => _ = self.counts.messages.fetch_add(1, SeqCst),
        }
        Ok(())
    }
    fn restarted(&mut self, _: &Failure, _: &mut Context<Do>) -> HandlerResult {
        self.counts.restarted.fetch_add(1, SeqCst);
        Ok(())
    }
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Do>) -> HandlerResult {
        assert!(!self.unwatched, "no notice comes after `unwatch`, not even one on its way");
        let counted =
            if terminated.existence_confirmed { &self.counts.confirmed } else { &self.counts.unconfirmed };
        counted.fetch_add(1, SeqCst);
        Ok(())
    }
}

fn system() -> System {
    System::builder("model")
        .clock(ManualClock::new())
        .dispatcher("default", calling_dispatcher())
        .build()
        .expect("the settings are sound")
}

fn spawn(system: &SystemRef, name: &str) -> (ActorRef<Do>, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let made = counts.clone();
    let actor = system.actor(name).on_failure(Strategy::decide(|_| Directive::Restart));
    (actor.spawn(move || Subject::new(&made)).expect("the name is free"), counts)
}

fn any(actor: &ActorRef<Do>) -> AnyActorRef {
    actor.untyped().expect("an actor")
}

/// Ends the system and checks the books.
fn end(system: System, sent: u64) -> pointsman::Ledger {
    let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
    assert_eq!((ledger.sent, ledger.balance(), ledger.queued), (sent, 0, 0), "{ledger}");
    ledger
}

// Bound 3: two threads.
#[test]
fn a_watch_that_races_the_death_brings_one_notice_confirmed_or_not() {
    model("watch_races_death", &[4, 16], 3, 5_000, || {
        let system = system();
        let (watched, _) = spawn(&system, "watched");
        let (watcher, counts) = spawn(&system, "watcher");
        let death = {
            let watched = watched.clone();
            thread::spawn(move || watched.stop())
        };
        watcher.tell(Do::Watch(any(&watched)));
        death.join().unwrap();
        assert_eq!(counts.confirmed.load(SeqCst) + counts.unconfirmed.load(SeqCst), 1);
        // Now it has certainly ended.
        watcher.tell(Do::WatchWith(any(&watched)));
        assert_eq!(counts.messages.load(SeqCst), 1);
        end(system, 2);
    });
}

// Bound 2: at 3 there are ten times as many executions (38,980), which pass, too.
#[test]
fn an_unwatch_that_races_the_death_lets_no_notice_through() {
    model("unwatch_races_death", &[16], 2, 2_000, || {
        let system = system();
        let (watched, _) = spawn(&system, "watched");
        let (watcher, counts) = spawn(&system, "watcher");
        watcher.tell(Do::Watch(any(&watched)));
        let death = {
            let watched = watched.clone();
            thread::spawn(move || watched.stop())
        };
        watcher.tell(Do::Unwatch(any(&watched)));
        death.join().unwrap();
        assert_eq!(counts.unconfirmed.load(SeqCst), 0, "it was alive when it was watched");
        assert!(counts.confirmed.load(SeqCst) <= 1);
        end(system, 2);
    });
}

// Bound 2: at 3 there are eight times as many executions (51,546), which pass, too.
#[test]
fn messages_that_race_a_restart_are_all_handled() {
    model("restart_races_send", &[1, 4], 2, 3_000, || {
        let system = system();
        let (actor, counts) = spawn(&system, "subject");
        let sender = {
            let actor = actor.clone();
            thread::spawn(move || actor.tell(Do::Count))
        };
        actor.tell(Do::Fail);
        actor.tell(Do::Count);
        sender.join().unwrap();
        assert_eq!(counts.restarted.load(SeqCst), 1);
        assert_eq!(counts.handled.load(SeqCst), 2, "handled without any further send");
        end(system, 3);
    });
}

/// Has two children that share their fate.
struct Parent([Arc<Counts>; 2]);

impl Actor for Parent {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        for (name, counts) in ["a", "b"].into_iter().zip(&self.0) {
            let counts = counts.clone();
            ctx.actor(name).spawn(move || Subject::new(&counts))?;
        }
        Ok(())
    }
    fn supervision(&self) -> Strategy {
        Strategy::default().all_for_one()
    }
}

// Bound 1: three actors' turns; at 2 there are 51,820 executions, which pass and take two minutes.
#[test]
fn all_for_one_a_siblings_failure_that_races_the_verdict_leaves_nobody_suspended() {
    model("all_for_one_siblings_fail", &[1, 4], 1, 1_200, || {
        let system = system();
        let counts = [Arc::new(Counts::default()), Arc::new(Counts::default())];
        let made = counts.clone();
        let parent = system.actor("parent").spawn(move || Parent(made.clone())).expect("the name is free");
        let parent = parent.untyped().expect("an actor");
        let [a, b] = ["a", "b"]
            .map(|name| child(&parent, name).expect("it has started").typed::<Do>().expect("its messages"));
        let other = thread::spawn(move || {
            b.tell(Do::Fail);
            b.tell(Do::Count);
        });
        a.tell(Do::Fail);
        a.tell(Do::Count);
        other.join().unwrap();
        for counts in &counts {
            // Each failure is a restart of both, whichever is judged first.
            assert_eq!(counts.restarted.load(SeqCst), 2);
            assert_eq!(counts.handled.load(SeqCst), 1, "neither stays suspended");
        }
        end(system, 4);
    });
}
