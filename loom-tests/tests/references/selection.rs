//! Models of finding actors while they come and go, and of the short-lived actors that serve one answer: on a
//! dispatcher whose threads are the model's own, so that whoever wakes an actor runs it.
//!
//! Seen to fail here, each by itself: a question that is dropped and does not say so; a late message to a promise
//! that is not given up; what is missing not sent to nobody; a refused copy that is no dead letter; a graceful stop
//! that is over when its watch begins; one that forgets an actor that has ended when its witness is stopped, or
//! when no witness can be made any more.
//!
//! Cells are freed by counting, in memory that loom watches: a reference that is used too late, or never given
//! back, fails the model.

use crate::support::model;
use loom::cell::UnsafeCell;
use loom::sync::Notify;
use loom::thread;
use pointsman::Ledger;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use std::pin::Pin;
// Counters that the models look at when all is over, and what std's `Wake` needs; they order nothing.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

struct Counter(Arc<AtomicUsize>);

impl Actor for Counter {
    type Message = u8;
    fn receive(&mut self, _: u8, _: &mut Context<u8>) -> HandlerResult {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }
}

fn system(clock: &ManualClock) -> System {
    System::builder("model")
        .clock(clock.clone())
        .dispatcher("default", calling_dispatcher())
        .build()
        .expect("the settings are sound")
}

fn spawn(system: &SystemRef, name: &str, handled: &Arc<AtomicUsize>) -> ActorRef<u8> {
    let handled = handled.clone();
    system.actor(name).spawn(move || Counter(handled.clone())).expect("the name is free")
}

/// Ends the system and checks the books.
fn end(system: System) -> Ledger {
    let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
    ledger
}

/// A message to `path` races the stop of who stands there.
fn tell_races_stop(name: &str, floor: usize, path: &'static str) {
    model(name, &[1, 14], 3, floor, move || {
        let (system, handled) = (system(&ManualClock::new()), Arc::new(AtomicUsize::new(0)));
        let actor = spawn(&system, "subject", &handled);
        let stopper = thread::spawn(move || actor.stop());
        let delivered = system.select(path).expect("a path").tell(7u8);
        stopper.join().unwrap();
        assert!(delivered.reached <= 1 && delivered.other_type.is_empty());
        assert!(delivered.missing.is_none() || delivered.reached == 0);
        let ledger = end(system);
        let handled = handled.load(SeqCst) as u64;
        assert_eq!(
            (ledger.sent, ledger.handled, ledger.dead_lettered),
            (1, handled, 1 - handled),
            "{ledger}"
        );
    });
}

// Bound 3: two threads.
#[test]
fn an_exact_selection_races_the_stop() {
    tell_races_stop("selection_exact_races_stop", 3_000, "/user/subject");
}

// Bound 3: two threads.
#[test]
fn a_pattern_races_the_stop() {
    tell_races_stop("selection_pattern_races_stop", 3_000, "/user/sub*");
}

/// A message to `path` races the creation of who stands there.
fn tell_races_creation(name: &str, floor: usize, path: &'static str) {
    model(name, &[1, 4, 14], 3, floor, move || {
        let (system, handled) = (system(&ManualClock::new()), Arc::new(AtomicUsize::new(0)));
        let (handle, counts) = (system.handle().clone(), handled.clone());
        let creator = thread::spawn(move || drop(spawn(&handle, "subject", &counts)));
        let delivered = system.select(path).expect("a path").tell(7u8);
        creator.join().unwrap();
        assert_eq!(delivered.reached + usize::from(delivered.missing.is_some()), 1);
        assert_eq!(handled.load(SeqCst), delivered.reached, "handled without any further send");
        let ledger = end(system);
        let reached = delivered.reached as u64;
        assert_eq!(
            (ledger.sent, ledger.handled, ledger.dead_lettered),
            (1, reached, 1 - reached),
            "{ledger}"
        );
    });
}

// Bound 3: two threads.
#[test]
fn an_exact_selection_races_the_creation() {
    tell_races_creation("selection_exact_races_creation", 270, "/user/subject");
}

// Bound 3: two threads.
#[test]
fn a_pattern_races_the_creation() {
    tell_races_creation("selection_pattern_races_creation", 270, "/user/*");
}

/// Counts what it is told, positive and negative.
struct Finder {
    found: Arc<AtomicUsize>,
    missing: Arc<AtomicUsize>,
}

impl Actor for Finder {
    type Message = Option<AnyActorRef>;
    fn receive(&mut self, actor: Self::Message, _: &mut Context<Self::Message>) -> HandlerResult {
        let count = if actor.is_some() { &self.found } else { &self.missing };
        count.fetch_add(1, SeqCst);
        Ok(())
    }
}

// Bound 3: two threads.
#[test]
fn a_question_that_races_the_stop_has_one_answer() {
    model("selection_identify_races_stop", &[1, 14], 3, 4_300, || {
        let system = system(&ManualClock::new());
        let actor = spawn(&system, "subject", &Arc::default());
        let (found, missing) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (some, none) = (found.clone(), missing.clone());
        let finder = system
            .actor("finder")
            .spawn(move || Finder { found: some.clone(), missing: none.clone() })
            .unwrap();
        let stopper = thread::spawn(move || actor.stop());
        system.select("/user/subject").expect("a path").identify(&finder, |actor| actor);
        stopper.join().unwrap();
        assert_eq!(found.load(SeqCst) + missing.load(SeqCst), 1);
        end(system);
    });
}

/// Wakes whoever polls. An unparked thread would not do: loom takes it for one that has got its lock.
struct NotFullNotify(Notify);

impl Wake for NotFullNotify {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// Polls to the end as an executor does.
fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    let bell = Arc::new(NotFullNotify(Notify::new()));
    let waker = Waker::from(bell.clone());
    loop {
        match Pin::new(&mut future).poll(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(output) => break output,
            Poll::Pending => bell.0.wait(),
        }
    }
}

// Bound 1: three threads; bound 2 takes 50,000 executions.
#[test]
fn a_promise_races_its_deadline() {
    model("selection_promise_races_deadline", &[1, 9, 16], 1, 2_100, || {
        let clock = ManualClock::new();
        let system = system(&clock);
        let (reference, reply) = system.promise::<u8>();
        let reply = reply.within(SECOND);
        let sender = thread::spawn(move || reference.tell(7u8));
        let mover = thread::spawn(move || clock.advance(SECOND));
        let answered = match block_on(reply) {
            Ok(7) => 1,
            Err(AskError::Timeout { after: SECOND, .. }) => 0,
            other => panic!("wrong outcome: {other:?}"),
        };
        sender.join().unwrap();
        mover.join().unwrap();
        assert_eq!(system.living_actors(), 4, "the promise has ended with its ask");
        let ledger = end(system);
        assert_eq!((ledger.handled, ledger.dead_lettered), (answered, 1 - answered), "{ledger}");
    });
}

/// What `stopped` writes.
struct Note(UnsafeCell<u8>);

// SAFETY: loom checks that it is not read while it is written.
unsafe impl Send for Note {}
// SAFETY: as above.
unsafe impl Sync for Note {}

struct Writer(Arc<Note>);

impl Actor for Writer {
    type Message = u8;
    fn receive(&mut self, _: u8, _: &mut Context<u8>) -> HandlerResult {
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<u8>) {
        // SAFETY: loom checks it.
        self.0.0.with_mut(|note| unsafe { *note = 7 });
    }
}

// Bound 1: the watch, the pill and the stop are three races at once; bound 2 takes 150,000 executions.
#[test]
fn a_graceful_stop_that_races_another_sees_what_stopped_wrote() {
    model("selection_graceful_stop_races_stop", &[9, 16], 1, 3_000, || {
        let system = system(&ManualClock::new());
        let note = Arc::new(Note(UnsafeCell::new(0)));
        let writes = note.clone();
        let actor = system.actor("subject").spawn(move || Writer(writes.clone())).unwrap();
        let (first, second) = (actor.clone(), actor);
        let stopper = thread::spawn(move || first.stop());
        let waiter = thread::spawn(move || {
            assert_eq!(second.graceful_stop(SECOND).wait(), Ok(()));
            // SAFETY: loom checks it.
            assert_eq!(note.0.with(|note| unsafe { *note }), 7);
        });
        stopper.join().unwrap();
        waiter.join().unwrap();
        end(system);
    });
}

// Bound 1: the end of a system is long.
#[test]
fn a_graceful_stop_races_the_end_of_the_system() {
    model("selection_graceful_stop_races_end", &[9, 12], 1, 2_500, || {
        let system = system(&ManualClock::new());
        let actor = spawn(&system, "subject", &Arc::default());
        let stopper = {
            let handle = system.handle().clone();
            thread::spawn(move || handle.stop())
        };
        assert_eq!(actor.graceful_stop(SECOND).wait(), Ok(()));
        stopper.join().unwrap();
        end(system);
    });
}
