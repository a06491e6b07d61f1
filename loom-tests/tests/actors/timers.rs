//! Timers and scheduled tasks that fire while they are cancelled, replaced, or the system ends: each cancel tells
//! the truth.
//!
//! The clock is moved by a thread of the model, which is so the timer thread; the dispatcher's threads are the
//! model's own: whoever wakes an actor runs it.
//!
//! Faults that were planted, and caught:
//! * a cancel that says yes and leaves the timer's number in the list, and a start that leaves the old one of its name;
//! * a receive timeout that is not set again after it has fired;
//! * a cancel that says yes to the only run of a task although it has begun;
//! * a repeating task that is set again after its run although it was cancelled meanwhile;
//! * a job that a runner leaves behind and nobody closes, and a marked task that is dropped at the end.

use crate::support::model;
use loom::thread;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use pointsman::timers::TimerKey;
// What the models look at when all is over, and marks that order nothing.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn system() -> (System, ManualClock) {
    let clock = ManualClock::new();
    let system = System::builder("model")
        .clock(clock.clone())
        .dispatcher("default", calling_dispatcher())
        .build()
        .expect("the settings are sound");
    (system, clock)
}

fn end(system: System) -> pointsman::Ledger {
    let ledger = system.shutdown(Duration::MAX).expect("whoever stops it runs it");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
    ledger
}

fn advance(clock: &ManualClock) -> thread::JoinHandle<()> {
    let clock = clock.clone();
    thread::spawn(move || clock.advance(MS))
}

#[derive(Default)]
struct Counts {
    /// By the number that the tick brings.
    ticks: [AtomicUsize; 2],
    cancelled: AtomicUsize,
    idle: AtomicUsize,
    worked: AtomicUsize,
}

enum Msg {
    Tick(usize),
    Cancel,
    Replace,
    Work,
    Idle,
}

/// Has one timer that is due after a millisecond.
struct Ticker {
    counts: Arc<Counts>,
    key: Option<TimerKey>,
    named: bool,
    times_out: bool,
}

impl Actor for Ticker {
    type Message = Msg;
    fn started(&mut self, ctx: &mut Context<Msg>) -> HandlerResult {
        if self.times_out {
            ctx.set_receive_timeout(MS, |_| Msg::Idle)?;
        } else if self.named {
            ctx.timers().named("timer").once(MS, Msg::Tick(0));
        } else {
            self.key = Some(ctx.after(MS, Msg::Tick(0)));
        }
        Ok(())
    }
    fn receive(&mut self, message: Msg, ctx: &mut Context<Msg>) -> HandlerResult {
        match message {
            Msg::Tick(number) => drop(self.counts.ticks[number].fetch_add(1, SeqCst)),
            Msg::Cancel => {
                let was_under_way = match &self.key {
                    Some(key) => ctx.timers().cancel(key),
                    None => ctx.cancel_receive_timeout(),
                };
                self.counts.cancelled.fetch_add(usize::from(was_under_way), SeqCst);
            }
            Msg::Replace => {
                let active = ctx.timers().is_active("timer");
                self.counts.cancelled.fetch_add(usize::from(active), SeqCst);
                ctx.timers().named("timer").once(MS, Msg::Tick(1));
            }
            Msg::Work => drop(self.counts.worked.fetch_add(1, SeqCst)),
            Msg::Idle => drop(self.counts.idle.fetch_add(1, SeqCst)),
        }
        Ok(())
    }
}

fn ticker(system: &System, named: bool, times_out: bool) -> (ActorRef<Msg>, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let made = counts.clone();
    let ticker = move || Ticker { counts: made.clone(), key: None, named, times_out };
    (system.actor("ticker").spawn(ticker).expect("the name is free"), counts)
}

// Bound 3, as everywhere here: two threads that both run turns.
#[test]
fn a_tick_that_races_its_cancel_comes_or_was_cancelled() {
    model("timers_tick_races_cancel", &[16], 3, 400, || {
        let (system, clock) = system();
        let (actor, counts) = ticker(&system, false, false);
        let moved = advance(&clock);
        actor.tell(Msg::Cancel);
        moved.join().unwrap();
        let (ticks, cancelled) = (counts.ticks[0].load(SeqCst), counts.cancelled.load(SeqCst));
        assert_eq!(ticks + cancelled, 1, "ticked {ticks} times, cancelled {cancelled} times");
        assert_eq!(end(system).ticked, ticks as u64);
    });
}

#[test]
fn nothing_comes_of_a_timer_that_was_replaced() {
    model("timers_tick_races_replacement", &[16], 3, 510, || {
        let (system, clock) = system();
        let (actor, counts) = ticker(&system, true, false);
        let moved = advance(&clock);
        actor.tell(Msg::Replace);
        moved.join().unwrap();
        let (old, replaced) = (counts.ticks[0].load(SeqCst), counts.cancelled.load(SeqCst));
        assert_eq!(old + replaced, 1, "the old one ticked {old} times");
        // The new one was set before or after the clock moved.
        clock.advance(MS);
        assert_eq!(counts.ticks[1].load(SeqCst), 1);
        end(system);
    });
}

#[test]
fn a_message_that_races_the_receive_timeout_delays_it_or_comes_after_it() {
    model("timers_receive_timeout", &[16], 3, 600, || {
        let (system, clock) = system();
        let (actor, counts) = ticker(&system, false, true);
        let moved = advance(&clock);
        actor.tell(Msg::Work);
        moved.join().unwrap();
        assert_eq!(counts.worked.load(SeqCst), 1);
        let idle = counts.idle.load(SeqCst);
        // Whichever came first, it is set again.
        clock.advance(MS);
        assert_eq!(counts.idle.load(SeqCst), idle + 1);
        end(system);
    });
}

/// Counts its end.
struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_task_runs_or_was_cancelled() {
    model("timers_task_races_cancel", &[13, 16], 3, 12, || {
        let (system, clock) = system();
        let (ran, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (runs, held) = (ran.clone(), Held(dropped.clone()));
        let scheduler = system.task_timer().expect("it lives");
        let task = scheduler.once(MS, move || {
            let _ = &held;
            runs.fetch_add(1, SeqCst);
        });
        let task = task.expect("it lives");
        let moved = advance(&clock);
        let cancelled = task.cancel();
        moved.join().unwrap();
        assert_eq!(ran.load(SeqCst), usize::from(!cancelled));
        assert_eq!(dropped.load(SeqCst), 1);
        assert!(task.is_over() && !task.cancel());
        end(system);
    });
}

#[test]
fn no_run_begins_after_a_cancel() {
    model("timers_repeating_task_races_cancel", &[16], 3, 12, || {
        let (system, clock) = system();
        let cancelled = Arc::new(AtomicBool::new(false));
        let seen = cancelled.clone();
        let scheduler = system.task_timer().expect("it lives");
        let task = scheduler.fixed_delay(MS, MS, move || assert!(!seen.load(SeqCst), "it was cancelled"));
        let task = task.expect("it lives");
        let moved = advance(&clock);
        assert!(task.cancel(), "there is always a next run");
        cancelled.store(true, SeqCst);
        moved.join().unwrap();
        assert!(!task.cancel());
        clock.advance(MS);
        end(system);
    });
}

#[test]
fn a_task_that_races_the_end_runs_or_is_dropped_and_a_marked_one_runs() {
    for marked in [false, true] {
        let name = if marked { "timers_marked_task_races_end" } else { "timers_task_races_end" };
        model(name, &[12, 13], 3, 15_000, move || {
            let (system, clock) = system();
            let (ran, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let (runs, held) = (ran.clone(), Held(dropped.clone()));
            let work = move || {
                let _ = &held;
                runs.fetch_add(1, SeqCst);
            };
            let scheduler = system.task_timer().expect("it lives");
            let task = if marked { scheduler.once_or_on_close(MS, work) } else { scheduler.once(MS, work) };
            let task = task.expect("it lives");
            let moved = advance(&clock);
            let handle = system.handle().clone();
            system.shutdown(Duration::MAX).expect("whoever stops it runs it");
            moved.join().unwrap();
            // Only now is nobody on the way: no shutdown waits for threads that move clocks.
            let ledger = handle.ledger();
            assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
            let runs = ran.load(SeqCst);
            assert!(runs == 1 || !marked && runs == 0, "ran {runs} times");
            assert_eq!(dropped.load(SeqCst), 1);
            assert!(task.is_over() && !task.cancel());
        });
    }
}
