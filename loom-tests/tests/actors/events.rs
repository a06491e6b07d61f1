//! The event stream, dead letters and their sinks, piped futures, and the beginning of a coordinated shutdown.
//!
//! Caught, each planted alone: a wake that coalesces by Relaxed swaps; the mark of a wake taken back after the poll
//! instead of before it; a shutdown that begins unless it is over; a list of subscribers read under one lock and
//! replaced under the next; subscribers told without a look at whether they have stopped; an end of the run that wakes
//! one of those that wait for it (`faults/15`).
//!
//! Not modelled: a subscriber that is called by a publisher that began before it left, which is allowed; timers,
//! since no manual clock moves here.

use crate::support::model;
use loom::sync::atomic::{AtomicBool as Flag, AtomicU32 as Value};
use loom::thread;
use pointsman::actor::StreamEvent;
use pointsman::events::EventStream;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::pattern::PipeError;
use pointsman::prelude::*;
use pointsman::shutdown::{Phase, Phases, ShutdownRunError};
use pointsman::time::ManualClock;
use std::pin::Pin;
// Counters and places that the models look at when all is over; they order nothing.
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll, Waker};
use std::time::Duration;

#[derive(Clone)]
struct Event(u32);

/// Subscribes a function that counts the events 0 and 1 apart.
fn count(events: &EventStream) -> (pointsman::events::Subscription, Arc<[AtomicUsize; 2]>) {
    let counts: Arc<[AtomicUsize; 2]> = Arc::default();
    let counted = counts.clone();
    let subscription = events.on(move |Event(number): &Event| {
        counted[*number as usize].fetch_add(1, SeqCst);
    });
    (subscription, counts)
}

// Bound 3: two threads.
#[test]
fn publish_races_unsubscribe() {
    model("events_publish_races_unsubscribe", &[16], 3, 20, || {
        let events = EventStream::default();
        let (subscription, counts) = count(&events);
        let has_left = loom::sync::Arc::new(Flag::new(false));
        let publisher = {
            let (events, has_left) = (events.clone(), has_left.clone());
            thread::spawn(move || {
                events.publish(&Event(0));
                if has_left.load(Acquire) {
                    events.publish(&Event(1));
                }
            })
        };
        drop(subscription);
        has_left.store(true, Release);
        publisher.join().unwrap();
        events.publish(&Event(1));
        assert!(counts[0].load(SeqCst) <= 1);
        assert_eq!(counts[1].load(SeqCst), 0, "called although it had left before");
        assert!(format!("{events:?}").ends_with("entries: 0 }"), "{events:?}");
    });
}

// Bound 3: two threads.
#[test]
fn two_subscribe_while_one_publishes() {
    model("events_subscribe_races_subscribe", &[15], 3, 8, || {
        let events = EventStream::default();
        let other = {
            let events = events.clone();
            thread::spawn(move || {
                let subscribed = count(&events);
                events.publish(&Event(0));
                subscribed
            })
        };
        let (_first, mine) = count(&events);
        let (_second, others) = other.join().unwrap();
        events.publish(&Event(1));
        assert_eq!((mine[1].load(SeqCst), others[1].load(SeqCst)), (1, 1), "nobody is left out");
        assert_eq!(others[0].load(SeqCst), 1, "it has subscribed before");
        assert!(mine[0].load(SeqCst) <= 1);
    });
}

struct Listener(Arc<AtomicUsize>);

impl From<Event> for u32 {
    fn from(event: Event) -> Self {
        event.0
    }
}

impl Actor for Listener {
    type Message = u32;
    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }
}

fn system() -> System {
    build(Phases::default())
}

fn build(phases: Phases) -> System {
    System::builder("model")
        .clock(ManualClock::new())
        .dispatcher("default", calling_dispatcher())
        .shutdown_phases(phases)
        .build()
        .expect("the settings are sound")
}

fn listener(system: &SystemRef) -> (ActorRef<u32>, Arc<AtomicUsize>) {
    let handled: Arc<AtomicUsize> = Arc::default();
    let made = handled.clone();
    (system.actor("listener").spawn(move || Listener(made.clone())).expect("the name is free"), handled)
}

/// Ends the system and checks the books.
fn end(system: System) -> pointsman::Ledger {
    let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
    ledger
}

// Bound 3: two threads.
#[test]
fn publish_races_the_end_of_the_subscriber() {
    model("events_publish_races_end", &[1, 6], 3, 1_600, || {
        let system = system();
        let (actor, handled) = listener(&system);
        assert!(system.events().subscribe::<Event, _>(&actor));
        let publisher = {
            let events = system.events().clone();
            thread::spawn(move || events.publish(&Event(0)))
        };
        actor.stop();
        publisher.join().unwrap();
        system.events().publish(&Event(1));
        assert!(format!("{:?}", system.events()).ends_with("entries: 0 }"), "forgotten");
        let ledger = end(system);
        let handled = handled.load(SeqCst) as u64;
        assert!(ledger.sent <= 1, "whoever has stopped before is not told: {ledger}");
        assert_eq!((ledger.handled, ledger.dead_lettered), (handled, ledger.sent - handled), "{ledger}");
    });
}

// Bound 3: two threads.
// Caught: a number for a reference without a second look at those that have come since the first one.
#[test]
fn equal_references_that_subscribe_at_once_are_one() {
    model("events_equal_references_subscribe", &[15], 3, 20, || {
        let system = system();
        let (actor, handled) = listener(&system);
        let other = {
            let (events, actor) = (system.events().clone(), actor.clone());
            thread::spawn(move || events.subscribe::<Event, _>(&actor))
        };
        let mine = system.events().subscribe::<Event, _>(&actor);
        let others = other.join().unwrap();
        assert_ne!(mine, others, "one of them is new");
        system.events().publish(&Event(0));
        assert_eq!(handled.load(SeqCst), 1, "it is told once");
        assert!(format!("{:?}", system.events()).ends_with("entries: 1 }"));
        end(system);
    });
}

// Bound 3: two threads.
#[test]
fn a_dead_letter_while_somebody_subscribes() {
    model("events_dead_letter_races_subscribe", &[1, 16], 3, 60, || {
        let system = system();
        let (actor, _) = listener(&system);
        actor.stop();
        let sender = {
            let actor = actor.clone();
            thread::spawn(move || actor.tell(0u32))
        };
        let (shown, taken): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
        let (show, take) = (shown.clone(), taken.clone());
        let subscription = system.dead_letters().subscribe(move |_| {
            show.fetch_add(1, SeqCst);
        });
        let sink = system.dead_letters().take_by::<u32>(
            |_| {},
            move |_, _| {
                take.fetch_add(1, SeqCst);
            },
        );
        let sink = sink.expect("the only one");
        sender.join().unwrap();
        let (early, early_taken) = (shown.load(SeqCst), taken.load(SeqCst));
        assert!(early <= 1 && early_taken <= 1);
        actor.tell(1u32);
        assert_eq!((shown.load(SeqCst), taken.load(SeqCst)), (early + 1, early_taken + 1));
        drop((subscription, sink));
        actor.tell(2u32);
        assert_eq!((shown.load(SeqCst), taken.load(SeqCst)), (early + 1, early_taken + 1));
        let ledger = end(system);
        assert_eq!((ledger.sent, ledger.dead_lettered), (3, 3), "{ledger}");
    });
}

/// Ready when it finds a value; what is written to it is ordered by nothing but the wake.
#[derive(Clone)]
struct Gate {
    value: Arc<Value>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Future for Gate {
    type Output = u32;
    fn poll(self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<u32> {
        self.waker.lock().unwrap().get_or_insert_with(|| cx.waker().clone());
        match self.value.load(Relaxed) {
            0 => Poll::Pending,
            value => Poll::Ready(value),
        }
    }
}

// Bound 3: three threads, few steps each.
#[test]
fn a_wake_is_never_lost() {
    model("events_pipe_wakes_race", &[1, 16], 3, 6_300, || {
        let system = system();
        let (actor, handled) = listener(&system);
        let gate = Gate { value: Arc::new(Value::new(0)), waker: Arc::default() };
        // Polled once here: whoever wakes an actor runs it.
        let wrap = |result: Result<u32, PipeError>| result.expect("it is ready");
        system.pipe(gate.clone(), &actor, wrap).expect("the system runs");
        let waker = gate.waker.lock().unwrap().clone().expect("it was polled");
        let idle = {
            let waker = waker.clone();
            thread::spawn(move || waker.wake())
        };
        let opening = {
            let gate = gate.clone();
            thread::spawn(move || {
                gate.value.store(7, Relaxed);
                waker.wake();
            })
        };
        idle.join().unwrap();
        opening.join().unwrap();
        assert_eq!(handled.load(SeqCst), 1, "the result is there without any further wake");
        gate.waker.lock().unwrap().take();
        assert_eq!(end(system).sent, 1);
    });
}

/// Holds for a gate, and takes its value then.
struct Holder(Gate, Arc<AtomicUsize>);

impl Actor for Holder {
    type Message = ();
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        ctx.hold(self.0.clone(), |holder: &mut Self, value, _| {
            holder.1.fetch_add(value as usize, SeqCst);
            Ok(())
        });
        Ok(())
    }
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        assert_eq!(self.1.fetch_add(1, SeqCst), 7, "the message waits");
        Ok(())
    }
}

// Bound 2: three threads.
#[test]
fn a_wake_of_a_hold_is_never_lost() {
    model("events_hold_wakes_race", &[1, 3, 5, 16], 2, 300, || {
        let system = system();
        let gate = Gate { value: Arc::new(Value::new(0)), waker: Arc::default() };
        let counted: Arc<AtomicUsize> = Arc::default();
        let (held, count) = (gate.clone(), counted.clone());
        // Polled once here: whoever wakes an actor runs it.
        let holder = system.spawn(move || Holder(held.clone(), count.clone())).expect("there is room");
        let waker = gate.waker.lock().unwrap().clone().expect("it was polled");
        let idle = {
            let waker = waker.clone();
            thread::spawn(move || waker.wake())
        };
        let opening = {
            let gate = gate.clone();
            thread::spawn(move || {
                gate.value.store(7, Relaxed);
                waker.wake();
            })
        };
        holder.tell(());
        idle.join().unwrap();
        opening.join().unwrap();
        assert_eq!(
            counted.load(SeqCst),
            8,
            "the hold is over, and the message handled, without any further wake"
        );
        gate.waker.lock().unwrap().take();
        drop(holder);
        let ledger = end(system);
        assert_eq!((ledger.sent, ledger.handled), (1, 1), "{ledger}");
    });
}

impl futures_core::Stream for Gate {
    type Item = u32;
    fn poll_next(self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Option<u32>> {
        Future::poll(self, cx).map(Some)
    }
}

/// Adds up the items of a gate, and detaches from it.
struct Sum(Gate, Arc<AtomicUsize>, Option<pointsman::actor::StreamKey>);

impl Actor for Sum {
    type Message = StreamEvent<u32>;
    fn started(&mut self, ctx: &mut Context<Self::Message>) -> HandlerResult {
        self.2 = Some(ctx.attach(self.0.clone(), |event| event));
        Ok(())
    }
    fn receive(&mut self, event: StreamEvent<u32>, ctx: &mut Context<Self::Message>) -> HandlerResult {
        if let (StreamEvent::Item(item), Some(key)) = (event, self.2.take()) {
            self.1.fetch_add(item as usize, SeqCst);
            assert!(ctx.detach(&key));
        }
        Ok(())
    }
}

// Bound 2: three threads.
#[test]
fn a_wake_of_a_stream_is_never_lost() {
    model("events_stream_wakes_race", &[1, 16], 2, 300, || {
        let system = system();
        let gate = Gate { value: Arc::new(Value::new(0)), waker: Arc::default() };
        let counted: Arc<AtomicUsize> = Arc::default();
        let (stream, count) = (gate.clone(), counted.clone());
        let sum = system.spawn(move || Sum(stream.clone(), count.clone(), None)).expect("there is room");
        let waker = gate.waker.lock().unwrap().clone().expect("it was polled");
        let idle = {
            let waker = waker.clone();
            thread::spawn(move || waker.wake())
        };
        let opening = {
            let gate = gate.clone();
            thread::spawn(move || {
                gate.value.store(7, Relaxed);
                waker.wake();
            })
        };
        idle.join().unwrap();
        opening.join().unwrap();
        assert_eq!(counted.load(SeqCst), 7, "the item is handled without any further wake");
        gate.waker.lock().unwrap().take();
        drop(sum);
        assert_eq!(end(system).sent, 1);
    });
}

// Bound 3: four threads with the leader and its task, few steps each.
#[test]
fn two_begin_the_shutdown_and_it_runs_once() {
    model("events_shutdown_runs_once", &[15], 3, 3_200, || {
        let system = build(Phases::default().terminate_actor_system(false));
        let runs: Arc<AtomicUsize> = Arc::default();
        let counted = runs.clone();
        let task = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let shutdown = system.coordinated_shutdown();
        shutdown.add_task(Phase::SERVICE_STOP, "count", task).expect("a known phase");
        let other = {
            let shutdown = shutdown.clone();
            thread::spawn(move || drop(shutdown.run("other")))
        };
        let report = shutdown.run("mine").wait().expect("nothing fails");
        other.join().unwrap();
        assert_eq!(runs.load(SeqCst), 1);
        assert_eq!(shutdown.reason(), Some(report.reason));
        drop(shutdown);
        end(system);
    });
}

// Bound 2: three threads with the leader.
// Caught: an end of the run that wakes one of those that wait for it.
#[test]
fn the_end_of_the_shutdown_run_wakes_all_that_wait_for_it() {
    model("events_shutdown_wakes_all", &[16], 2, 280, || {
        let system = build(Phases::default().terminate_actor_system(false));
        let run = system.coordinated_shutdown().run("mine");
        let other = {
            let run = run.clone();
            thread::spawn(move || run.wait().map(drop))
        };
        run.wait().expect("no phase has a task");
        other.join().unwrap().expect("it is the same run");
        drop(run);
        end(system);
    });
}

// Bound 2: three threads.
// Caught: an end of the system that wakes one of those that wait for a run.
#[test]
fn the_end_of_the_system_wakes_all_that_wait_for_a_run() {
    model("events_end_wakes_all", &[16], 2, 40, || {
        let system = build(Phases::default().terminate_actor_system(false));
        let waiting = [(); 2].map(|()| {
            let run = system.coordinated_shutdown();
            thread::spawn(move || run.wait().map(drop))
        });
        end(system);
        for thread in waiting {
            let error = thread.join().unwrap().expect_err("no run has begun");
            assert!(matches!(error, ShutdownRunError::SystemEnded { .. }), "{error}");
        }
    });
}
