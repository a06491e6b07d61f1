//! Code that runs later, outside any actor of the user's.

use crate::support::*;
use pointsman::SpawnError;
use pointsman::prelude::*;
use pointsman::testkit::TestSystem;
use pointsman::timers::{ScheduleError, TaskTimer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// A task that tells how the clock stood when it ran.
fn clocked(stage: &Stage) -> (impl Fn() + Clone + Send + 'static, Receiver<u128>) {
    let (sender, ran) = channel();
    let system = stage.system.handle().clone();
    let task = move || {
        let _ = sender.send(system.now().as_millis());
    };
    (task, ran)
}

fn next(ran: &Receiver<u128>) -> u128 {
    ran.soon().expect("it runs")
}

/// Waits until everything sent to runners has run.
fn settle(scheduler: &TaskTimer) {
    let (sender, ran) = channel::<()>();
    scheduler.once(Duration::ZERO, move || drop(sender)).unwrap();
    assert_eq!(ran.soon(), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn a_task_runs_once_at_its_time_and_never_early() {
    let stage = Stage::turns();
    let scheduler = stage.system.task_timer().unwrap();
    let (task, ran) = clocked(&stage);
    // Rounded up to 11 ms.
    let rounded = scheduler.once(10 * MS + Duration::from_nanos(1), task.clone()).unwrap();
    scheduler.once(5 * MS, task).unwrap();
    stage.clock.advance(5 * MS - Duration::from_nanos(1));
    settle(&scheduler);
    assert_eq!(ran.try_recv().ok(), None);
    stage.clock.advance(Duration::from_nanos(1));
    assert_eq!(next(&ran), 5);
    stage.clock.advance(5 * MS);
    settle(&scheduler);
    assert_eq!(ran.try_recv().ok(), None);
    assert!(!rounded.is_over());
    stage.clock.advance(MS);
    assert_eq!(next(&ran), 11);
    settle(&scheduler);
    assert!(rounded.is_over());
    assert!(!rounded.cancel());
    stage.clock.advance(1000 * MS);
    settle(&scheduler);
    assert!(ran.try_recv().is_err());
    stage.end(&[]);
}

#[test]
fn a_delay_of_zero_runs_at_once() {
    let stage = Stage::turns();
    let scheduler = stage.system.task_timer().unwrap();
    let (task, ran) = clocked(&stage);
    scheduler.once(Duration::ZERO, task.clone()).unwrap();
    assert_eq!(next(&ran), 0);
    let repeated = scheduler.fixed_rate(Duration::ZERO, 10 * MS, task).unwrap();
    assert_eq!(next(&ran), 0);
    settle(&scheduler);
    stage.clock.advance(10 * MS);
    assert_eq!(next(&ran), 10);
    assert!(repeated.cancel());
    stage.end(&[]);
}

#[test]
fn a_fixed_delay_lies_between_runs_and_a_fixed_rate_keeps_its_beat() {
    let stage = Stage::turns();
    let scheduler = stage.system.task_timer().unwrap();
    let ((delayed, delays), (rated, rates)) = (clocked(&stage), clocked(&stage));
    let (clock, mut slow) = (stage.clock.clone(), true);
    let delay = scheduler
        .fixed_delay(5 * MS, 10 * MS, move || {
            delayed();
            // The first run takes 4 ms.
            if std::mem::take(&mut slow) {
                clock.advance(4 * MS);
            }
        })
        .unwrap();
    let rate = scheduler.fixed_rate(5 * MS, 10 * MS, rated).unwrap();
    let advance = |by: u32| {
        stage.clock.advance(by * MS);
        settle(&scheduler);
        let all = |ran: &Receiver<u128>| ran.try_iter().collect::<Vec<_>>();
        (all(&delays), all(&rates))
    };
    let none: Vec<u128> = Vec::new();
    assert_eq!(advance(4), (none.clone(), none.clone()));
    // The rate's first run is late by those 4 ms.
    assert_eq!(advance(1), (vec![5], vec![9]));
    assert_eq!(advance(5), (none.clone(), none.clone()));
    assert_eq!(advance(1), (none.clone(), vec![15]));
    assert_eq!(advance(4), (vec![19], none.clone()));
    // At 61: what was missed is skipped.
    assert_eq!(advance(42), (vec![61], vec![61]));
    assert_eq!(advance(4), (none.clone(), vec![65]));
    assert!(rate.cancel() && delay.cancel());
    assert_eq!(advance(100), (none.clone(), none));
    stage.end(&[]);
}

#[test]
fn cancel_is_true_only_if_it_prevented_a_run() {
    let stage = Stage::threads("cancel");
    let scheduler = stage.system.task_timer().unwrap();
    let (task, ran) = clocked(&stage);
    let once = scheduler.once(MS, task.clone()).unwrap();
    assert_eq!((once.cancel(), once.cancel(), once.is_over()), (true, false, true));
    // Due and queued, but not begun.
    let queued = scheduler.once(2 * MS, task.clone()).unwrap();
    let (inside, is_inside) = channel();
    let (release, held) = channel::<()>();
    let holding = scheduler
        .once(MS, move || {
            let _ = inside.send(());
            let _ = held.recv();
        })
        .unwrap();
    stage.clock.advance(MS);
    is_inside.soon().unwrap();
    stage.clock.advance(MS);
    assert!(!holding.cancel(), "it has begun");
    assert!(queued.cancel());
    drop(release);
    settle(&scheduler);
    assert!(ran.try_recv().is_err());
    drop(task);
    assert_eq!(ran.soon(), Err(RecvTimeoutError::Disconnected), "what was cancelled is dropped");
    stage.end(&[]);
}

#[test]
fn a_repeating_task_may_be_cancelled_while_it_runs() {
    let stage = Stage::threads("while");
    let scheduler = stage.system.task_timer().unwrap();
    let (inside, is_inside) = channel();
    let (release, held) = channel::<()>();
    let task = scheduler
        .fixed_rate(MS, MS, move || {
            let _ = inside.send(());
            let _ = held.recv();
        })
        .unwrap();
    stage.clock.advance(MS);
    is_inside.soon().unwrap();
    assert_eq!((task.cancel(), task.cancel()), (true, false));
    drop(release);
    settle(&scheduler);
    stage.clock.advance(10 * MS);
    settle(&scheduler);
    // There is no other run, and the task is dropped.
    assert_eq!(is_inside.soon(), Err(RecvTimeoutError::Disconnected));
    stage.end(&[]);
}

#[test]
fn a_task_that_panics_ends_and_harms_no_other() {
    let stage = Stage::turns();
    let scheduler = stage.system.task_timer().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let task = scheduler
        .fixed_delay(MS, MS, move || {
            counted.fetch_add(1, Ordering::SeqCst);
            panic!("as told");
        })
        .unwrap();
    let (other, ran) = clocked(&stage);
    scheduler.fixed_delay(MS, MS, other).unwrap();
    for at in 1..4 {
        stage.clock.advance(MS);
        assert_eq!(next(&ran), at);
        settle(&scheduler);
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!((task.is_over(), task.cancel()), (true, false));
    stage.end(&[]);
}

#[test]
fn messages_are_sent_until_the_target_has_ended() {
    let stage = Stage::turns();
    let scheduler = stage.system.task_timer().unwrap();
    let actor = stage.spawn(&stage.role("a"));
    let noted = |text: &'static str| {
        Tell::new(move |puppet, _| {
            puppet.note(format_args!("{text}"));
            Ok(())
        })
    };
    let target = actor.clone();
    scheduler.once(MS, move || target.tell(noted("once"))).unwrap();
    let delay = scheduler.tell_fixed_delay(2 * MS, 2 * MS, &actor, move || noted("delay")).unwrap();
    let rate = scheduler.tell_fixed_rate(3 * MS, 3 * MS, &actor, move || noted("rate")).unwrap();
    for _ in 0..4 {
        stage.clock.advance(MS);
        settle(&scheduler);
    }
    stage.expect(&["a Started 1", "a once", "a delay", "a rate", "a delay"]);
    actor.stop();
    wait_until(|| actor.is_closed());
    stage.clock.advance(2 * MS);
    settle(&scheduler);
    assert!(delay.is_over() && rate.is_over());
    let ledger = stage.system.ledger();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
    stage.end(&["a Stopped 1"]);
}

#[test]
fn tasks_run_on_the_dispatcher_that_they_are_given() {
    let blocking = Dispatcher::blocking().thread_range(1..=1);
    let stage = Stage::threads_with("given", |builder| builder.dispatcher("slow & steady", blocking));
    let (sender, names) = channel();
    for scheduler in
        [stage.system.task_timer().unwrap(), stage.system.task_timer_on("slow & steady").unwrap()]
    {
        let sender = sender.clone();
        let task = move || drop(sender.send(std::thread::current().name().unwrap_or("").to_owned()));
        scheduler.once(MS, task).unwrap();
        stage.clock.advance(MS);
        let name = names.soon().unwrap();
        assert!(name.starts_with("given-"), "{name}");
        assert_eq!(name.contains("slow"), format!("{scheduler:?}").contains("slow%20%26%20steady"), "{name}");
    }
    let error = stage.system.task_timer_on("nowhere").unwrap_err();
    assert!(matches!(error, ScheduleError::Dispatcher(SpawnError::UnknownDispatcher { .. })), "{error}");
    stage.end(&[]);
}

#[test]
fn threads_that_ask_at_once_share_one_runner() {
    let stage = Stage::threads("share");
    let living = stage.system.living_actors();
    let system = stage.system.handle();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| system.task_timer().map(drop).unwrap());
        }
    });
    assert_eq!(stage.system.living_actors(), living + 1);
    stage.end(&[]);
}

#[test]
fn limits_are_typed_errors() {
    let stage = Stage::turns();
    let scheduler = stage.system.task_timer().unwrap();
    let zero = scheduler.fixed_rate(MS, Duration::ZERO, || ()).unwrap_err();
    assert!(matches!(zero, ScheduleError::ZeroPeriod), "{zero}");
    let zero = scheduler.fixed_delay(MS, Duration::ZERO, || ()).unwrap_err();
    assert!(matches!(zero, ScheduleError::ZeroPeriod), "{zero}");
    let over = TaskTimer::DELAY_MAX + MS;
    for refused in [
        scheduler.once(over, || ()),
        scheduler.fixed_rate(over, MS, || ()),
        scheduler.fixed_delay(MS, over, || ()),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, ScheduleError::TooLong { delay } if delay == over), "{error}");
    }
    let longest = scheduler.fixed_rate(TaskTimer::DELAY_MAX, TaskTimer::DELAY_MAX, || ()).unwrap();
    stage.clock.advance(TaskTimer::DELAY_MAX - MS);
    assert!(longest.cancel());
    stage.end(&[]);
}

#[test]
fn the_end_drops_what_waits_runs_what_is_marked_and_takes_nothing_more() {
    let stage = Stage::threads("end");
    let system = stage.system.handle().clone();
    let scheduler = stage.system.task_timer().unwrap();
    let (sender, ran) = channel();
    let task = |text: &'static str| {
        let sender = sender.clone();
        move || {
            let _ = sender.send(text);
        }
    };
    let dropped = scheduler.once(MS, task("never")).unwrap();
    let repeated = scheduler.fixed_rate(MS, MS, task("never")).unwrap();
    let marked = scheduler.once_or_on_close(2 * MS, task("at the end")).unwrap();
    let cancelled = scheduler.once_or_on_close(2 * MS, task("never")).unwrap();
    let early = scheduler.once_or_on_close(Duration::ZERO, task("early")).unwrap();
    assert_eq!(ran.soon(), Ok("early"));
    assert!(cancelled.cancel());
    stage.end(&[]);
    assert_eq!(ran.try_iter().collect::<Vec<_>>(), ["at the end"]);
    drop(sender);
    assert_eq!(ran.recv(), Err(std::sync::mpsc::RecvError), "what was dropped is gone");
    for task in [dropped, repeated, marked, early] {
        assert_eq!((task.is_over(), task.cancel()), (true, false));
    }
    for delay in [Duration::ZERO, MS] {
        let error = scheduler.once(delay, || ()).unwrap_err();
        assert!(matches!(&error, ScheduleError::ShutDown { system } if system == "end"), "{error}");
    }
    assert!(matches!(system.task_timer(), Err(ScheduleError::ShutDown { .. })));
}

#[test]
fn what_the_runner_leaves_behind_is_closed_too() {
    let stage = Stage::threads("behind");
    let scheduler = stage.system.task_timer().unwrap();
    let (sender, ran) = channel();
    let (inside, is_inside) = channel();
    let (release, held) = channel::<()>();
    scheduler
        .once(Duration::ZERO, move || {
            let _ = inside.send(());
            let _ = held.recv();
        })
        .unwrap();
    is_inside.soon().unwrap();
    // These are queued behind a run that lasts until the runner is told to stop.
    let task = |text: &'static str| {
        let sender = sender.clone();
        move || {
            let _ = sender.send(text);
        }
    };
    let dropped = scheduler.once(Duration::ZERO, task("never")).unwrap();
    let marked = scheduler.once_or_on_close(Duration::ZERO, task("at the end")).unwrap();
    let held_system = stage.system.handle().clone();
    held_system.stop();
    let user = held_system.user().unwrap();
    wait_until(|| user.is_closed());
    // `/system` is told to stop once `/user` has ended.
    let ending = std::thread::spawn({
        let system = stage.system.into_threads();
        move || assert_eq!(system.shutdown(LONG).expect("nothing is stuck").balance(), 0)
    });
    wait_until(|| held_system.living_actors() <= GUARDIANS);
    std::thread::yield_now();
    drop(release);
    ending.join().unwrap();
    let texts: Vec<&str> = ran.try_iter().collect();
    // The runner may have got to them first.
    assert!(texts == ["at the end"] || texts == ["never", "at the end"], "{texts:?}");
    assert!(!dropped.cancel() && !marked.cancel());
}

/// In the runner's mailbox, or when its time comes behind the runner's end.
#[test]
fn what_is_to_run_at_the_end_and_is_left_behind_by_its_runner_waits_for_the_last_actor() {
    for delay in [Duration::ZERO, MS] {
        let system = TestSystem::with_seed(1);
        let (sender, ran) = channel();
        let scheduler = system.task_timer().unwrap();
        let (handle, marked) = ((*system).clone(), sender.clone());
        let at_the_end = move || marked.send(handle.living_actors()).unwrap();
        let task = scheduler.once_or_on_close(delay, at_the_end).unwrap();
        let cancelled = scheduler.once_or_on_close(delay, move || sender.send(99).unwrap()).unwrap();
        system.actor_at("/system/scheduler-default").unwrap().stop();
        // Not even when there is no later time.
        [2 * MS, Duration::MAX].into_iter().for_each(|time| system.advance(time));
        assert!(ran.try_recv().is_err() && !task.is_over());
        assert!(cancelled.cancel());
        assert_eq!(system.finish().dead_lettered, 2);
        assert_eq!((ran.try_iter().collect::<Vec<_>>(), task.is_over()), (vec![0], true));
    }
}

#[test]
fn by_the_real_clock_a_task_is_never_early() {
    let system = System::builder("real").build().unwrap();
    let (sender, ran) = channel();
    let began = std::time::Instant::now();
    system
        .task_timer()
        .unwrap()
        .once(5 * MS, move || {
            let _ = sender.send(());
        })
        .unwrap();
    ran.soon().unwrap();
    assert!(began.elapsed() >= 5 * MS);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}
