//! Whole actors: cells, turns, references, supervision and the books, on a dispatcher whose threads are the
//! model's own: whoever wakes an actor runs it.
//!
//! Loom itself reports two turns of one actor at once: state, recipe and private parts lie in its cells.
//!
//! Seen to fail here: the last reference given back without Release and Acquire
//! (`the_cell_is_freed_once_whoever_holds_the_last_reference`, by the accesses with which a cell that goes is checked).

use crate::support::model;
use loom::thread;
use pointsman::Terminated;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
// Counters that the models look at when all is over; they order nothing.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

#[derive(Default)]
struct Counts {
    handled: AtomicUsize,
    stopped: AtomicUsize,
    notices: AtomicUsize,
    cells_freed: AtomicUsize,
}

enum Do {
    Count,
    Fail,
    Watch(AnyActorRef),
}

struct Subject(Arc<Counts>);

impl Actor for Subject {
    type Message = Do;
    fn receive(&mut self, message: Do, ctx: &mut Context<Do>) -> HandlerResult {
        self.0.handled.fetch_add(1, SeqCst);
        match message {
            Do::Count => Ok(()),
            Do::Fail => Err(Failure::msg("as told")),
            Do::Watch(actor) => {
                ctx.watch(&actor)?;
                Ok(())
            }
        }
    }
    fn stopped(&mut self, _: &mut Context<Do>) {
        self.0.stopped.fetch_add(1, SeqCst);
    }
    fn terminated(&mut self, _: Terminated, _: &mut Context<Do>) -> HandlerResult {
        self.0.notices.fetch_add(1, SeqCst);
        Ok(())
    }
}

/// Counts the end of a cell, in which it lies as long as the cell lives.
struct InCell(Arc<Counts>);

impl Drop for InCell {
    fn drop(&mut self) {
        self.0.cells_freed.fetch_add(1, SeqCst);
    }
}

fn system() -> System {
    System::builder("model")
        .clock(ManualClock::new())
        .dispatcher("default", calling_dispatcher())
        .build()
        .expect("the settings are sound")
}

fn spawn(system: &SystemRef, counts: &Arc<Counts>) -> ActorRef<Do> {
    let (made, in_cell) = (counts.clone(), InCell(counts.clone()));
    let strategy = Strategy::decide(move |_| {
        let _ = &in_cell;
        Directive::Restart
    });
    let builder = system.actor("subject").on_failure(strategy);
    builder.spawn(move || Subject(made.clone())).expect("the name is free")
}

/// Ends the system and checks the books.
fn end(system: System, sent: u64) -> pointsman::Ledger {
    let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
    assert_eq!((ledger.sent, ledger.balance(), ledger.queued), (sent, 0, 0), "{ledger}");
    ledger
}

// Bound 3: two threads.
#[test]
fn one_sender_one_message() {
    model("cell_one_sender_one_message", &[1, 4], 3, 4, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let actor = spawn(&system, &counts);
        let sender = {
            let actor = actor.clone();
            thread::spawn(move || actor.tell(Do::Count))
        };
        // An onlooker, as a router is.
        let _ = actor.load();
        sender.join().unwrap();
        assert_eq!(counts.handled.load(SeqCst), 1, "handled without any further send");
        end(system, 1);
    });
}

fn tell(actor: &ActorRef<Do>, message: Do) -> thread::JoinHandle<()> {
    let actor = actor.clone();
    thread::spawn(move || actor.tell(message))
}

// Bound 3: two threads.
#[test]
fn two_senders_never_run_two_turns_and_lose_no_wake() {
    model("cell_two_senders", &[1, 3, 4], 3, 2_000, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let actor = spawn(&system, &counts);
        let sender = tell(&actor, Do::Count);
        actor.tell(Do::Count);
        sender.join().unwrap();
        assert_eq!(counts.handled.load(SeqCst), 2, "handled without any further send");
        end(system, 2);
    });
}

// Bound 1: three threads that each may run the turn; bound 2 takes minutes. The mailbox's own models go
// deeper.
#[test]
fn three_senders() {
    model("cell_three_senders", &[1, 3, 4], 1, 100, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let actor = spawn(&system, &counts);
        let senders = [tell(&actor, Do::Count), tell(&actor, Do::Count)];
        actor.tell(Do::Count);
        for sender in senders {
            sender.join().unwrap();
        }
        assert_eq!(counts.handled.load(SeqCst), 3, "handled without any further send");
        end(system, 3);
    });
}

// Bound 3: two threads.
#[test]
fn a_stop_that_races_a_tell() {
    model("cell_stop_races_tell", &[1, 3, 6], 3, 1_000, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let actor = spawn(&system, &counts);
        let sender = tell(&actor, Do::Count);
        actor.stop();
        sender.join().unwrap();
        assert!(actor.is_closed());
        assert_eq!(counts.stopped.load(SeqCst), 1);
        let ledger = end(system, 1);
        let handled = counts.handled.load(SeqCst) as u64;
        assert_eq!((ledger.handled, ledger.dead_lettered), (handled, 1 - handled), "{ledger}");
    });
}

// Bound 3: two threads.
#[test]
fn the_cell_is_freed_once_whoever_holds_the_last_reference() {
    model("cell_last_reference", &[1, 13], 3, 1_200, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let actor = spawn(&system, &counts);
        let sender = {
            let actor = actor.clone();
            thread::spawn(move || {
                actor.tell(Do::Count);
                drop(actor);
            })
        };
        actor.stop();
        drop(actor);
        sender.join().unwrap();
        assert_eq!(counts.cells_freed.load(SeqCst), 1, "the actor has ended and nobody refers to it");
        end(system, 1);
        assert_eq!(counts.cells_freed.load(SeqCst), 1);
    });
}

// Bound 3: two threads.
#[test]
fn positioned_control_wakes_an_idle_actor_and_keeps_its_place() {
    model("cell_poison_races_tell", &[1, 4, 5], 3, 15_000, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let actor = spawn(&system, &counts);
        let sender = tell(&actor, Do::Count);
        actor.tell(Do::Count);
        actor.poison();
        sender.join().unwrap();
        assert!(actor.is_closed(), "the pill acts without any further send");
        // Ours went before the pill.
        assert!(counts.handled.load(SeqCst) >= 1);
        end(system, 2);
    });
}

// Bound 3: two threads.
#[test]
fn a_watch_that_races_the_death_brings_one_notice() {
    model("cell_watch_races_death", &[4, 16], 3, 5_000, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let watched = spawn(&system, &Arc::new(Counts::default()));
        let made = counts.clone();
        let watcher = system.actor("watcher").spawn(move || Subject(made.clone())).expect("the name is free");
        let death = {
            let watched = watched.clone();
            thread::spawn(move || watched.stop())
        };
        watcher.tell(Do::Watch(watched.untyped().expect("an actor")));
        death.join().unwrap();
        assert_eq!(counts.notices.load(SeqCst), 1);
        end(system, 1);
    });
}

/// Watches its own child from the start.
struct Parent {
    counts: Arc<Counts>,
    child: Option<ActorRef<Do>>,
}

enum ParentDo {
    WatchChild,
    Fail,
}

impl Actor for Parent {
    type Message = ParentDo;
    fn receive(&mut self, message: ParentDo, ctx: &mut Context<ParentDo>) -> HandlerResult {
        match message {
            ParentDo::WatchChild => {
                if let Some(child) = &self.child {
                    ctx.watch(child)?;
                }
            }
            ParentDo::Fail => return Err(Failure::msg("as told")),
        }
        Ok(())
    }
    fn started(&mut self, ctx: &mut Context<ParentDo>) -> HandlerResult {
        let counts = self.counts.clone();
        self.child = Some(ctx.actor("child").spawn(move || Subject(counts.clone()))?);
        Ok(())
    }
    fn terminated(&mut self, _: Terminated, ctx: &mut Context<ParentDo>) -> HandlerResult {
        assert!(ctx.child("child").is_none(), "the name is free when the notice comes");
        self.counts.notices.fetch_add(1, SeqCst);
        Ok(())
    }
}

fn family(system: &SystemRef, counts: &Arc<Counts>) -> (ActorRef<ParentDo>, ActorRef<Do>) {
    let made = counts.clone();
    let parent = system
        .actor("parent")
        .spawn(move || Parent { counts: made.clone(), child: None })
        .expect("the name is free");
    let child = parent.untyped().expect("an actor");
    let child = pointsman::loom_hooks::child(&child, "child").expect("it has started");
    (parent, child.typed().expect("its messages"))
}

// Bound 2: two threads, but three actors' turns: bound 3 takes 59,000 executions and most of a minute.
#[test]
fn a_parent_that_watches_its_dying_child_finds_the_name_free() {
    model("cell_parent_watch_races_death", &[4, 14, 16], 2, 1_000, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let (parent, child) = family(&system, &counts);
        let death = thread::spawn(move || child.stop());
        parent.tell(ParentDo::WatchChild);
        death.join().unwrap();
        assert_eq!(counts.notices.load(SeqCst), 1);
        end(system, 1);
    });
}

// Bound 2: two threads, but each runs many turns.
#[test]
fn a_child_that_ends_while_its_parent_stops() {
    model("cell_child_end_races_parent_stop", &[4, 15], 2, 500, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let (parent, child) = family(&system, &counts);
        let death = thread::spawn(move || child.stop());
        parent.stop();
        death.join().unwrap();
        assert!(parent.is_closed(), "it has seen the end of its child");
        assert_eq!(system.living_actors(), 4, "the guardians are left");
        end(system, 0);
    });
}

// Bound 2: two threads, but each runs many turns.
#[test]
fn a_child_that_ends_while_its_parent_restarts() {
    model("cell_child_end_races_restart", &[4, 14, 15], 2, 500, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let (parent, child) = family(&system, &counts);
        let death = thread::spawn(move || child.stop());
        // The old state stops the child, and the new one wants the name.
        parent.tell(ParentDo::Fail);
        death.join().unwrap();
        assert_eq!(parent.untyped().expect("an actor").restarts(), 1);
        assert_eq!(system.living_actors(), 4 + 2, "the parent, and the child of the new state");
        end(system, 1);
    });
}

// Bound 2: two threads, but each runs many turns.
#[test]
fn a_child_that_fails_while_its_parent_stops() {
    model("cell_failure_races_parent_stop", &[1, 4], 2, 3_000, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let (parent, child) = family(&system, &counts);
        let failure = thread::spawn(move || {
            child.tell(Do::Fail);
            child.tell(Do::Count);
        });
        parent.stop();
        failure.join().unwrap();
        assert!(parent.is_closed());
        assert_eq!(system.living_actors(), 4, "the guardians are left");
        end(system, 2);
    });
}

// Bound 2: three threads.
#[test]
fn the_books_add_up_while_threads_come_and_go() {
    model("cell_books", &[1, 17], 2, 10_800, || {
        let (system, counts) = (system(), Arc::new(Counts::default()));
        let actor = spawn(&system, &counts);
        let first = tell(&actor, Do::Count);
        let second = tell(&actor, Do::Count);
        // What is handled was sent, whenever one looks.
        let ledger = system.ledger();
        assert!(ledger.handled <= ledger.sent, "{ledger}");
        first.join().unwrap();
        second.join().unwrap();
        end(system, 2);
    });
}
