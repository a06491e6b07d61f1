//! Pipe-to: the results of futures and closures as messages.

use crate::support::*;
use pointsman::pattern::PipeError;
use pointsman::prelude::*;
use pointsman::{DeadLetterReason, SpawnError};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll, Waker};

type Piped = Result<u32, PipeError>;

/// Passes on what it gets.
struct Collector(Sender<Piped>);

impl Actor for Collector {
    type Message = Piped;
    fn receive(&mut self, message: Piped, _: &mut Context<Piped>) -> HandlerResult {
        self.0.send(message)?;
        Ok(())
    }
}

fn collector(stage: &Stage) -> (ActorRef<Piped>, Receiver<Piped>) {
    let (sender, piped) = channel();
    (stage.system.actor("collector").spawn(move || Collector(sender.clone())).expect("free"), piped)
}

/// A future that others complete.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<(Option<u32>, Option<Waker>)>>, Arc<AtomicUsize>);

impl Gate {
    fn wake(&self) {
        let waker = self.0.lock().unwrap().1.clone();
        waker.expect("it has been polled").wake();
    }
    fn open(&self, value: u32) {
        self.0.lock().unwrap().0 = Some(value);
        self.wake();
    }
    fn polls(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }
}

impl Future for Gate {
    type Output = u32;
    fn poll(self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<u32> {
        let mut state = self.0.lock().unwrap();
        state.1 = Some(cx.waker().clone());
        self.1.fetch_add(1, Ordering::SeqCst);
        state.0.map_or(Poll::Pending, Poll::Ready)
    }
}

fn end(stage: Stage) -> pointsman::Ledger {
    let ledger = stage.system.shutdown(LONG).expect("nothing is stuck");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
    ledger
}

#[test]
fn a_future_that_waits_is_polled_when_it_is_woken_and_only_its_result_is_a_message() {
    let stage = Stage::turns();
    let (target, piped) = collector(&stage);
    let gate = Gate::default();
    stage.system.pipe(gate.clone(), &target, |result| result).unwrap();
    wait_until(|| gate.polls() == 1);
    gate.wake();
    wait_until(|| gate.polls() == 2);
    assert!(piped.try_recv().is_err());
    gate.open(7);
    assert_eq!(piped.soon(), Ok(Ok(7)));
    // Nobody minds a wake that comes too late.
    gate.wake();
    wait_until(|| stage.system.living_actors() == GUARDIANS + 1);
    assert_eq!(gate.polls(), 3);
    let ledger = end(stage);
    gate.wake();
    assert_eq!((ledger.sent, ledger.handled, ledger.ticked), (1, 1, 0), "{ledger}");
}

#[test]
fn an_actor_pipes_to_itself_and_handles_other_messages_meanwhile() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let gate = Gate::default();
    let future = gate.clone();
    act(&actor, move |_, ctx| {
        ctx.pipe_to_self(future, |result: Piped| {
            Tell::new(move |puppet, _| {
                puppet.note(result);
                Ok(())
            })
        })?;
        Ok(())
    });
    note(&actor, "meanwhile");
    stage.expect(&["a Started 1", "a meanwhile"]);
    wait_until(|| gate.polls() == 1);
    gate.open(3);
    stage.expect(&["a Ok(3)"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_panic_becomes_an_error_and_not_silence() {
    let stage = Stage::turns_with(|builder| builder.dispatcher("blocking", Dispatcher::blocking()));
    let (target, piped) = collector(&stage);
    stage.system.pipe(async { panic!("as told") }, &target, |result| result).unwrap();
    let text = |text: &str| Ok(Err(PipeError::Panicked { text: format!("panicked: {text}") }));
    assert_eq!(piped.soon(), text("as told"));
    stage.system.pipe_blocking(|| panic!("as told, too"), &target, |result| result).unwrap();
    assert_eq!(piped.soon(), text("as told, too"));
    // What makes the message may panic as well; the engine goes on.
    stage.system.pipe(async { 1 }, &target, |_| panic!("no message")).unwrap();
    stage.system.pipe(async { 2 }, &target, |result| result).unwrap();
    assert_eq!(piped.soon(), Ok(Ok(2)));
    wait_until(|| stage.system.living_actors() == GUARDIANS + 1);
    end(stage);
}

#[test]
fn a_closure_runs_on_the_blocking_dispatcher_and_without_one_is_refused() {
    let stage =
        Stage::threads_with("closure", |builder| builder.dispatcher("blocking", Dispatcher::blocking()));
    let (target, piped) = collector(&stage);
    let (sender, name) = channel();
    let run = move || {
        sender.send(std::thread::current().name().unwrap_or_default().to_owned()).unwrap();
        5
    };
    stage.system.pipe_blocking(run, &target, |result| result).unwrap();
    assert_eq!(piped.soon(), Ok(Ok(5)));
    let name = name.recv().unwrap();
    assert!(name.starts_with("closure-blocking"), "{name}");
    end(stage);

    let stage = Stage::threads("without");
    let (target, piped) = collector(&stage);
    match stage.system.pipe_blocking(|| 1, &target, |result| result) {
        Err(error @ SpawnError::UnknownDispatcher { .. }) => {
            assert!(error.to_string().contains("dispatcher(\"blocking\", ..)"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(piped.try_recv().is_err());
    assert_eq!(end(stage).sent, 0);
}

#[test]
fn an_actor_has_a_closure_run_elsewhere_and_goes_on_meanwhile() {
    let stage =
        Stage::threads_with("elsewhere", |builder| builder.dispatcher("blocking", Dispatcher::blocking()));
    let actor = stage.spawn(&stage.role("a"));
    let (release, held) = channel::<()>();
    act(&actor, move |_, ctx| {
        let run = move || {
            let _ = held.recv();
            7
        };
        ctx.pipe_blocking_to_self(run, |result| {
            Tell::new(move |puppet, _| {
                puppet.note(result);
                Ok(())
            })
        })?;
        Ok(())
    });
    note(&actor, "meanwhile");
    stage.expect(&["a Started 1", "a meanwhile"]);
    drop(release);
    stage.expect(&["a Ok(7)"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_result_for_an_actor_that_has_stopped_is_a_dead_letter() {
    let stage = Stage::turns();
    let (target, _piped) = collector(&stage);
    let (sender, letters) = channel();
    let _subscription = stage.system.dead_letters().subscribe(move |letter| {
        let _ = sender.send((letter.recipient.to_string(), letter.reason));
    });
    let gate = Gate::default();
    stage.system.pipe(gate.clone(), &target, |result| result).unwrap();
    wait_until(|| gate.polls() == 1);
    target.stop();
    wait_until(|| target.is_closed());
    gate.open(7);
    assert_eq!(letters.soon(), Ok(("/user/collector".to_owned(), DeadLetterReason::Stopped)));
    let ledger = end(stage);
    assert_eq!((ledger.sent, ledger.dead_lettered), (1, 1), "{ledger}");
}

/// Tells when it is dropped.
struct Told(Sender<()>);
impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn the_end_of_the_system_cancels_a_future_and_says_so() {
    let stage = Stage::turns();
    let (target, _piped) = collector(&stage);
    let (sender, dropped) = channel();
    let gate = Gate::default();
    let (polled, told) = (gate.clone(), Told(sender));
    let future = async move {
        let _told = told;
        polled.await
    };
    let (sender, outcomes) = channel();
    let wrap = move |result: Piped| {
        let _ = sender.send(result.clone());
        result
    };
    stage.system.pipe(future, &target, wrap).unwrap();
    wait_until(|| gate.polls() == 1);
    let ledger = end(stage);
    assert_eq!(outcomes.soon(), Ok(Err(PipeError::Cancelled)));
    assert_eq!(dropped.soon(), Ok(()));
    assert_eq!((ledger.sent, ledger.dead_lettered), (1, 1), "the target was gone: {ledger}");
    // The waker outlives all of it.
    gate.open(1);
    assert_eq!(gate.polls(), 1);
}

#[test]
fn a_future_that_wakes_itself_again_and_again_makes_room_for_others() {
    let (log, notes) = channel();
    let clock = pointsman::time::ManualClock::new();
    let one = Dispatcher::work_stealing().threads(1);
    let system = System::builder("restless").clock(clock.clone()).dispatcher("default", one).build().unwrap();
    let stage = Stage { system: Ground::Threads(system), clock, log, notes };
    let (target, piped) = collector(&stage);
    let actor = stage.spawn(&stage.role("a"));
    let (polls, enough) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (counted, until) = (polls.clone(), enough.clone());
    let restless = std::future::poll_fn(move |cx: &mut Poller<'_>| {
        counted.fetch_add(1, Ordering::SeqCst);
        cx.waker().wake_by_ref();
        cx.waker().wake_by_ref();
        if until.load(Ordering::SeqCst) { Poll::Ready(1) } else { Poll::Pending }
    });
    stage.system.pipe(restless, &target, |result| result).unwrap();
    wait_until(|| polls.load(Ordering::SeqCst) > 1000);
    assert_eq!(query(&actor, |_, _| 9), Ok(9), "the only worker has time for it");
    enough.store(true, Ordering::SeqCst);
    assert_eq!(piped.soon(), Ok(Ok(1)));
    end(stage);
}
