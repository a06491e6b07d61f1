//! The coordinated shutdown: phases, tasks, what fails and what takes too long, and the report.

use crate::logged::{lines, listen};
use crate::support::*;
use pointsman::prelude::*;
use pointsman::shutdown::{
    CoordinatedShutdown, Phase, PhaseOutcome, Phases, ShutdownReason, ShutdownRunError, ShutdownSetupError,
};
use pointsman::{BuildError, SystemBuilder};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A system whose phases are `first`, `second` and `third`, and the last one.
fn staged(name: &str, change: impl FnOnce(Phases) -> Phases) -> Stage {
    let phases = Phases::default()
        .phase("first", Phase::new())
        .phase("second", Phase::new().after("first"))
        .phase("third", Phase::new().after("second"))
        .change(Phase::ACTOR_SYSTEM_TERMINATE, |last| last.after("third"));
    Stage::threads_with(name, |builder: SystemBuilder| builder.shutdown_phases(change(phases)))
}

/// Adds a task that notes its name.
fn add(stage: &Stage, phase: &str, name: &'static str) -> pointsman::timers::Cancellable {
    let log = stage.log.clone();
    let task = move || {
        log.send(name.to_owned())?;
        Ok(())
    };
    stage.system.coordinated_shutdown().add_task(phase, name, task).expect("a known phase")
}

fn notes(stage: &Stage) -> Vec<String> {
    stage.notes.try_iter().collect()
}

/// Ends what a run has not ended.
fn end(stage: Stage) {
    let ledger = stage.system.shutdown(LONG).expect("nothing is stuck");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
}

#[test]
fn the_phases_run_in_order_and_the_last_one_ends_the_system() {
    let stage = staged("order", |phases| phases);
    let actor = stage.spawn(&stage.role("a"));
    for (phase, name) in [("third", "c"), ("first", "a"), ("second", "b"), ("second", "b")] {
        add(&stage, phase, name);
    }
    note(&actor, "before");
    stage.expect(&["a Started 1", "a before"]);
    let shutdown = stage.system.coordinated_shutdown();
    assert_eq!(shutdown.reason(), None);
    let report = shutdown.run("enough").wait().unwrap();
    assert_eq!(notes(&stage), ["a", "b", "b", "c", "a Stopped 1"], "one name twice runs twice");
    assert_eq!(stage.system.living_actors(), 0);
    assert_eq!((report.system.as_str(), &report.reason), ("order", &ShutdownReason::from("enough")));
    assert_eq!((report.ledger.sent, report.ledger.handled, report.ledger.balance()), (1, 1, 0));
    let busy: Vec<_> = report.phases.iter().filter(|phase| !phase.tasks.is_empty()).collect();
    let names: Vec<_> = busy.iter().map(|phase| (phase.name.as_str(), phase.tasks.len())).collect();
    assert_eq!(names, [("first", 1), ("second", 2), ("third", 1), (Phase::ACTOR_SYSTEM_TERMINATE, 1)]);
    assert!(report.phases.iter().all(|phase| phase.outcome == PhaseOutcome::Done));
    assert_eq!(report.phases.len(), shutdown.phases().len());
    let text = report.to_string();
    assert!(text.contains("second: done in 0ns: b done in 0ns, b done in 0ns"), "{text}");
    assert!(text.contains("shut down (enough)") && text.contains("(balance 0)"), "{text}");
    end(stage);
}

#[test]
fn bad_phases_names_and_cycles_are_typed_errors() {
    let cyclic = Phases::default().phase("a", Phase::new().after("b")).phase("b", Phase::new().after("a"));
    match System::builder("cycle").shutdown_phases(cyclic).build() {
        Err(error @ BuildError::PhaseCycle { .. }) => {
            let BuildError::PhaseCycle { cycle } = &error else { unreachable!() };
            assert_eq!(cycle, &["a", "b", "a"]);
            assert!(error.to_string().contains("a -> b -> a"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let mistyped = Phases::default().phase("flush", Phase::new().after("srevice-stop"));
    let error = System::builder("mistyped").shutdown_phases(mistyped).build().unwrap_err();
    let BuildError::UnknownPhase { phase, named_by, known } = &error else { panic!("{error:?}") };
    assert_eq!((phase.as_str(), named_by.as_deref()), ("srevice-stop", Some("flush")));
    assert!(known.contains(&Phase::SERVICE_STOP.to_owned()), "{known:?}");
    let changed = Phases::default().change("srevice-stop", |phase| phase.recover(false));
    let error = System::builder("changed").shutdown_phases(changed).build().unwrap_err();
    assert!(error.to_string().contains("\"srevice-stop\" is unknown: must be one of before-"), "{error}");

    let stage = staged("errors", |phases| phases.phase("extra", Phase::new().after("first")));
    let shutdown = stage.system.coordinated_shutdown();
    assert!(shutdown.phases().contains(&"extra"));
    match shutdown.add_task("no-such", "task", || Ok(())) {
        Err(error) => {
            let ShutdownSetupError::UnknownPhase { phase, known } = &error else { panic!("{error:?}") };
            assert_eq!(phase, "no-such");
            assert!(known.contains(&"first".to_owned()));
            assert!(error.to_string().contains("shutdown_phases"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let empty = shutdown.add_task("first", "", || Ok(())).unwrap_err();
    assert!(matches!(empty, ShutdownSetupError::EmptyName { .. }), "{empty:?}");
    let nobody: ActorRef<u32> = stage.spawn(&stage.role("a")).contramap(|_: u32| Tell::new(|_, _| Ok(())));
    assert!(
        shutdown.add_actor_termination("first", "adapter", &nobody, None).is_ok(),
        "an actor is behind it"
    );
    let refused = shutdown.run_from("no-such", "why");
    assert!(matches!(refused, Err(ShutdownSetupError::UnknownPhase { .. })), "{refused:?}");
    assert_eq!(shutdown.reason(), None, "nothing has begun");
    end(stage);
}

#[cfg(feature = "config")]
#[test]
fn a_mistyped_phase_is_refused_also_where_a_file_is_read() {
    let phases = Phases::default().change("srevice-stop", |phase| phase.recover(false));
    let builder =
        System::builder("mistyped").shutdown_phases(phases).config("seed = 1").expect("a sound file");
    let error = builder.build().expect_err("no phase has this name");
    assert!(matches!(error, BuildError::UnknownPhase { named_by: None, .. }), "{error}");
}

#[test]
fn the_tasks_of_a_phase_run_at_the_same_time() {
    let stage = staged("parallel", |phases| phases);
    let barrier = Arc::new(Barrier::new(3));
    let shutdown = stage.system.coordinated_shutdown();
    for name in ["one", "two"] {
        let barrier = barrier.clone();
        shutdown
            .add_task("first", name, move || {
                barrier.wait();
                Ok(())
            })
            .unwrap();
    }
    shutdown
        .add_future("first", "three", move || async move {
            barrier.wait();
            Ok(())
        })
        .unwrap();
    shutdown.run("done").wait().unwrap();
    end(stage);
}

#[test]
fn a_task_can_be_taken_back_until_its_phase_begins() {
    let stage = staged("cancel", |phases| phases);
    let (first, later) = (add(&stage, "first", "a"), add(&stage, "second", "never"));
    let never = add(&stage, "first", "never");
    assert!(!never.is_over() && never.cancel() && never.is_over());
    assert!(!never.cancel(), "once only");
    let (done, again) = (first.clone(), later.clone());
    let log = stage.log.clone();
    let takes_back = move || {
        log.send(format!("{} {}", done.cancel(), again.cancel()))?;
        Ok(())
    };
    first.cancel();
    let first = add(&stage, "first", "a");
    stage.system.coordinated_shutdown().add_task("second", "x", || Ok(())).unwrap().cancel();
    stage.system.coordinated_shutdown().add_task("first", "takes back", takes_back).unwrap();
    let report = stage.system.coordinated_shutdown().run("done").wait().unwrap();
    let mut noted = notes(&stage);
    noted.sort();
    assert_eq!(noted, ["a", "false true"]);
    assert!(!first.cancel() && !later.cancel());
    let second = report.phases.iter().find(|phase| phase.name == "second").unwrap();
    assert!(second.tasks.is_empty());
    end(stage);
}

#[test]
fn a_failure_that_is_recovered_from_is_told_and_the_run_goes_on() {
    listen();
    let stage = staged("recover", |phases| phases);
    let shutdown = stage.system.coordinated_shutdown();
    shutdown.add_task("first", "fails", || Err(Failure::msg("as told"))).unwrap();
    shutdown.add_task("first", "panics", || panic!("as told")).unwrap();
    add(&stage, "second", "b");
    let report = shutdown.run("done").wait().unwrap();
    assert_eq!(notes(&stage), ["b"]);
    let first = report.phases.iter().find(|phase| phase.name == "first").unwrap();
    assert_eq!(first.outcome, PhaseOutcome::Failed);
    let outcomes: Vec<_> = first.tasks.iter().map(|task| (task.outcome, task.failure.as_deref())).collect();
    assert_eq!(outcomes, ["as told", "panicked: as told"].map(|text| (PhaseOutcome::Failed, Some(text))));
    assert!(report.to_string().contains("fails failed (as told) in "), "{report}");
    let warnings = ["\"fails\" failed (as told)", "\"panics\" failed (panicked: as told)"]
        .map(|what| format!("! shutdown phase \"first\": task {what}, going on"));
    assert_eq!(lines("recover"), warnings);
    end(stage);
}

#[test]
fn a_failure_that_is_not_recovered_from_ends_the_run_and_leaves_the_system() {
    let stage = staged("fails", |phases| phases.change("second", |second| second.recover(false)));
    let shutdown = stage.system.coordinated_shutdown();
    add(&stage, "first", "a");
    shutdown.add_task("second", "fails", || Err(Failure::msg("as told"))).unwrap();
    add(&stage, "second", "beside");
    add(&stage, "third", "never");
    let error = shutdown.run("done").wait().unwrap_err();
    match &error {
        ShutdownRunError::TaskFailed { phase, task, text, report } => {
            assert_eq!((phase.as_str(), task.as_str(), text.as_str()), ("second", "fails", "as told"));
            assert_eq!(report.phases.last().unwrap().name, "second");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(notes(&stage), ["a", "beside"]);
    let again = shutdown.run("again").wait().unwrap_err();
    assert_eq!(again.to_string(), error.to_string(), "the same outcome for everybody");
    let actor = stage.spawn(&stage.role("a"));
    assert_eq!(query(&actor, |_, _| 1), Ok(1), "the system lives");
    end(stage);
}

/// A task that waits until its sender is used or dropped, and tells when it runs.
fn add_hanging(stage: &Stage, phase: &str) -> (Sender<()>, Receiver<()>) {
    let (release, held) = channel();
    let (sender, runs) = channel();
    let task = move || {
        sender.send(())?;
        let _: Result<(), _> = held.recv();
        Ok(())
    };
    stage.system.coordinated_shutdown().add_task(phase, "hangs", task).expect("a known phase");
    (release, runs)
}

#[test]
fn a_phase_that_takes_too_long_is_left_behind() {
    let stage = staged("slow", |phases| phases.change("first", |first| first.timeout(3 * SECOND)));
    let (release, runs) = add_hanging(&stage, "first");
    let (dropped, future) = channel::<()>();
    let (polled, polls) = channel();
    stage
        .system
        .coordinated_shutdown()
        .add_future("first", "future", move || async move {
            let _dropped = dropped;
            polled.send(())?;
            std::future::pending().await
        })
        .unwrap();
    add(&stage, "second", "b");
    let run = stage.system.coordinated_shutdown().run("done");
    runs.soon().unwrap();
    polls.soon().unwrap();
    stage.clock.advance(3 * SECOND - Duration::from_millis(1));
    assert!(!run.is_over() && stage.notes.try_recv().is_err());
    stage.clock.advance(Duration::from_millis(1));
    let report = run.wait().unwrap();
    assert_eq!(notes(&stage), ["b"]);
    let first = report.phases.iter().find(|phase| phase.name == "first").unwrap();
    assert_eq!((first.outcome, first.took), (PhaseOutcome::TimedOut, 3 * SECOND));
    let outcomes: Vec<_> = first.tasks.iter().map(|task| task.outcome).collect();
    assert_eq!(outcomes, [PhaseOutcome::TimedOut, PhaseOutcome::TimedOut]);
    assert_eq!(future.soon(), Err(RecvTimeoutError::Disconnected), "a future is dropped");
    assert_eq!(report.took, 3 * SECOND);
    drop(release);
    end(stage);
}

#[test]
fn a_phase_that_takes_too_long_and_is_not_recovered_from_ends_the_run() {
    let stage = staged("too-slow", |phases| phases.change("first", |first| first.recover(false)));
    let (_release, runs) = add_hanging(&stage, "first");
    add(&stage, "second", "never");
    let run = stage.system.coordinated_shutdown().run("done");
    runs.soon().unwrap();
    stage.clock.advance(5 * SECOND);
    match run.wait().unwrap_err() {
        ShutdownRunError::TimedOut { phase, timeout, tasks, .. } => {
            assert_eq!((phase.as_str(), timeout, tasks), ("first", 5 * SECOND, vec!["hangs".to_owned()]));
        }
        other => panic!("{other:?}"),
    }
    assert!(notes(&stage).is_empty());
    end(stage);
}

#[test]
fn a_disabled_phase_is_skipped() {
    listen();
    let stage = staged("disabled", |phases| phases.change("second", |second| second.enabled(false)));
    add(&stage, "second", "never");
    add(&stage, "third", "c");
    let report = stage.system.coordinated_shutdown().run("done").wait().unwrap();
    assert_eq!(notes(&stage), ["c"]);
    let second = report.phases.iter().find(|phase| phase.name == "second").unwrap();
    assert_eq!((second.outcome, second.tasks[0].outcome), (PhaseOutcome::Skipped, PhaseOutcome::Skipped));
    assert_eq!(lines("disabled"), ["shutdown phase \"second\" is disabled: 1 tasks skipped"]);
    end(stage);
}

#[test]
fn a_running_task_adds_to_later_phases_only() {
    let stage = staged("adds", |phases| phases);
    let (system, log) = (stage.system.handle().clone(), stage.log.clone());
    let task = move || {
        let shutdown = system.coordinated_shutdown();
        for phase in ["first", "second", "third"] {
            let log = log.clone();
            let added = shutdown.add_task(phase, "added", move || {
                log.send(format!("added to {phase}"))?;
                Ok(())
            });
            assert_eq!(added.is_ok(), phase == "third", "{phase}: {added:?}");
            assert!(matches!(added, Ok(_) | Err(ShutdownSetupError::TooLate { .. })));
        }
        Ok(())
    };
    stage.system.coordinated_shutdown().add_task("second", "adds", task).unwrap();
    let report = stage.system.coordinated_shutdown().run("done").wait().unwrap();
    assert!(report.phases.iter().all(|phase| phase.outcome == PhaseOutcome::Done), "{report}");
    assert_eq!(notes(&stage), ["added to third"]);
    let late = stage.system.coordinated_shutdown().add_task("third", "late", || Ok(()));
    assert!(matches!(late, Err(ShutdownSetupError::TooLate { .. })));
    end(stage);
}

#[test]
fn a_run_happens_once_and_its_first_reason_counts() {
    let stage = staged("once", |phases| phases);
    let (release, runs) = add_hanging(&stage, "second");
    add(&stage, "first", "left out");
    let shutdown = stage.system.coordinated_shutdown();
    let run = shutdown.run_from("second", "the first").unwrap();
    runs.soon().unwrap();
    let other = shutdown.run("another");
    assert_eq!(shutdown.reason(), Some("the first".into()));
    drop(release);
    let (one, two) = (run.wait().unwrap(), other.wait().unwrap());
    assert_eq!((one.to_string(), one.reason), (two.to_string(), "the first".into()));
    assert!(notes(&stage).is_empty(), "what is before the start is left out");
    end(stage);
}

#[test]
fn an_actor_is_sent_a_message_and_waited_for() {
    let stage = staged("terminates", |phases| phases);
    let actor = stage.spawn(&stage.role("a"));
    let bye = Tell::new(|puppet, ctx| {
        puppet.note("bye");
        ctx.stop();
        Ok(())
    });
    let shutdown = stage.system.coordinated_shutdown();
    shutdown.add_actor_termination("first", "say good-bye", &actor, Some(bye)).unwrap();
    add(&stage, "second", "b");
    let report = shutdown.run("done").wait().unwrap();
    stage.expect(&["a Started 1", "a \"bye\"", "a Stopped 1", "b"]);
    assert!(report.phases.iter().all(|phase| phase.outcome == PhaseOutcome::Done), "{report}");
    end(stage);

    // One that does not stop is bounded by the phase's time; one that has stopped is none to wait for.
    let stage = staged("stays", |phases| phases);
    let (stays, gone) = (stage.spawn(&stage.role("stays")), stage.spawn(&stage.role("gone")));
    gone.stop();
    wait_for_end(&stage, &gone);
    let shutdown = stage.system.coordinated_shutdown();
    shutdown.add_actor_termination("first", "gone", &gone, None).unwrap();
    let (sender, inside) = channel();
    let told = Tell::new(move |_, _| {
        sender.send(())?;
        Ok(())
    });
    shutdown.add_actor_termination("second", "stays", &stays, Some(told)).unwrap();
    let run = shutdown.run("done");
    inside.soon().unwrap();
    stage.clock.advance(5 * SECOND);
    let report = run.wait().unwrap();
    let outcome = |name: &str| report.phases.iter().find(|phase| phase.name == name).unwrap().outcome;
    assert_eq!((outcome("first"), outcome("second")), (PhaseOutcome::Done, PhaseOutcome::TimedOut));
    end(stage);
}

/// Passes every message on to the next.
struct Link(Option<ActorRef<u64>>, Sender<u64>);

impl Actor for Link {
    type Message = u64;
    fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
        match &self.0 {
            Some(next) => next.tell(message),
            None => self.1.send(message)?,
        }
        Ok(())
    }
}

#[test]
fn a_drain_along_the_flow_of_data_loses_nothing() {
    let stage = staged("drain", |phases| phases);
    let (sender, arrived) = channel();
    let link = |name: &str, next: Option<ActorRef<u64>>| {
        let sender = sender.clone();
        stage.system.actor(name).spawn(move || Link(next.clone(), sender.clone())).unwrap()
    };
    let last = link("last", None);
    let middle = link("middle", Some(last.clone()));
    let first = link("first", Some(middle.clone()));
    for number in 0..1000u64 {
        first.tell(number);
    }
    let flow = [&first, &middle, &last].map(|link| link.untyped().unwrap());
    let shutdown = stage.system.coordinated_shutdown();
    shutdown.add_drain("first", "drain", flow).unwrap();
    let report = shutdown.run("done").wait().unwrap();
    assert_eq!(arrived.try_iter().collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
    let ledger = &report.ledger;
    assert_eq!((ledger.sent, ledger.handled, ledger.dead_lettered, ledger.balance()), (3000, 3000, 0, 0));
    drop(sender);
    end(stage);
}

#[test]
fn a_drain_whose_time_is_over_leaves_counted_dead_letters() {
    let stage = staged("drain-slow", |phases| phases);
    let (first, second) = (stage.spawn(&stage.role("first")), stage.spawn(&stage.role("second")));
    let release = hold(&first);
    note(&first, "queued");
    let flow = [&first, &second].map(|actor| actor.untyped().unwrap());
    let shutdown = stage.system.coordinated_shutdown();
    shutdown.add_drain("first", "drain", flow).unwrap();
    let (sender, inside) = channel();
    let begun = move || {
        sender.send(())?;
        Ok(())
    };
    shutdown.add_task("first", "begun", begun).unwrap();
    let (after, begins) = add_hanging(&stage, "second");
    let run = shutdown.run("done");
    inside.soon().unwrap();
    stage.clock.advance(5 * SECOND);
    begins.soon().unwrap();
    assert!(!second.is_closed(), "its turn has not come, and does not come any more");
    first.stop();
    drop(release);
    wait_for_end(&stage, &first);
    drop(after);
    let report = run.wait().unwrap();
    let ledger = &report.ledger;
    assert_eq!(
        (ledger.sent, ledger.handled, ledger.dead_lettered, ledger.balance()),
        (2, 1, 1, 0),
        "{ledger}"
    );
    end(stage);
}

#[test]
fn without_the_last_task_the_system_goes_on() {
    let stage = staged("goes-on", |phases| phases.terminate_actor_system(false));
    add(&stage, "first", "a");
    let shutdown = stage.system.coordinated_shutdown();
    assert_eq!(shutdown.total_timeout(), 5 * SECOND);
    shutdown.run("done").wait().unwrap();
    let actor = stage.spawn(&stage.role("b"));
    assert_eq!(query(&actor, |_, _| 1), Ok(1));
    end(stage);

    let stage = staged("total", |phases| phases);
    let shutdown = stage.system.coordinated_shutdown();
    assert_eq!(shutdown.total_timeout(), 10 * SECOND, "the last phase has a task of its own");
    add(&stage, "first", "a");
    add(&stage, "first", "b");
    assert_eq!(shutdown.total_timeout(), 15 * SECOND);
    end(stage);
    let none =
        Stage::turns_with(|builder| builder.shutdown_phases(Phases::default().terminate_actor_system(false)));
    assert_eq!(none.system.coordinated_shutdown().total_timeout(), 3 * SECOND);
    end(none);
}

#[test]
fn a_system_that_ends_otherwise_drops_its_tasks_and_lets_waiters_go() {
    let stage = staged("otherwise", |phases| phases);
    let (captured, dropped) = channel::<()>();
    let system = stage.system.handle().clone();
    let task = move || {
        let _keep = (&captured, &system);
        unreachable!("it is not run")
    };
    stage.system.coordinated_shutdown().add_task("first", "never", task).unwrap();
    let outcome = stage.system.coordinated_shutdown();
    let waiter = std::thread::spawn(move || outcome.wait().map(drop));
    stage.system.stop();
    let error = waiter.join().unwrap().unwrap_err();
    assert!(matches!(&error, ShutdownRunError::SystemEnded { system } if system == "otherwise"), "{error:?}");
    assert_eq!(dropped.soon(), Err(RecvTimeoutError::Disconnected));
    let run = stage.system.coordinated_shutdown().run("too late");
    assert!(matches!(run.wait(), Err(ShutdownRunError::SystemEnded { .. })));
    end(stage);
}

/// A system in which an actor is held in its handler when the run comes to its last phase.
fn run_over_a_stuck_handler(name: &str, recovers: bool) -> (Stage, Sender<()>, CoordinatedShutdown) {
    listen();
    let stage =
        staged(name, |phases| phases.change(Phase::ACTOR_SYSTEM_TERMINATE, |last| last.recover(recovers)));
    let parent = stage.spawn(&stage.role("shop"));
    let stuck = child(&parent, &stage.role("till"));
    let release = hold(&stuck);
    let run = stage.system.coordinated_shutdown().run("done");
    // The phase begins on the run's own thread.
    wait_until(|| {
        stage.clock.advance(SECOND);
        run.is_over()
    });
    (stage, release, run)
}

#[test]
fn a_run_over_a_stuck_handler_names_the_actor() {
    let (stage, release, run) = run_over_a_stuck_handler("stuck", true);
    let report = run.wait().unwrap();
    let last = report.phases.last().unwrap();
    assert_eq!((&*last.tasks[0].name, &last.tasks[0].outcome), ("terminate-system", &PhaseOutcome::TimedOut));
    assert_eq!(last.tasks[0].stuck, ["/user/shop/till"]);
    assert!(report.to_string().contains("(still running: /user/shop/till)"), "{report}");
    let lines = lines("stuck");
    let warning = "\"terminate-system\" timed out (still running: /user/shop/till), going on";
    assert!(lines.iter().any(|line| line.starts_with("! ") && line.contains(warning)), "{lines:?}");
    drop(release);
    end(stage);
}

#[test]
fn a_run_that_ends_with_a_stuck_handler_names_the_actor_in_its_error() {
    let (stage, release, run) = run_over_a_stuck_handler("stuck-for-good", false);
    let error = run.wait().unwrap_err();
    let ShutdownRunError::TimedOut { tasks, stuck, .. } = &error else { panic!("{error:?}") };
    assert_eq!(
        (&tasks[..], &stuck[..]),
        (&["terminate-system".to_owned()][..], &["/user/shop/till".to_owned()][..])
    );
    assert!(error.to_string().contains("these actors have not ended: [\"/user/shop/till\"]"), "{error}");
    drop(release);
    end(stage);
}

#[test]
fn a_system_that_ends_without_a_run_says_which_tasks_it_drops() {
    listen();
    let stage = staged("unrun", |phases| phases);
    let shutdown = stage.system.coordinated_shutdown();
    let cancelled = add(&stage, "first", "taken back");
    add(&stage, "second", "write the cache");
    add(&stage, "first", "close the port");
    assert!(cancelled.cancel());
    drop(shutdown);
    drop(stage.system);
    let warning = "! ended without a coordinated shutdown, tasks not run: \"close the port\" of phase \"first\", \
                   \"write the cache\" of phase \"second\"; call `run` on the coordinated shutdown before the system \
                   is stopped or dropped";
    assert_eq!(lines("unrun"), [warning]);
    assert!(stage.notes.try_recv().is_err());
    // One without tasks has nothing to say.
    drop(staged("no-tasks", |phases| phases));
    assert_eq!(lines("no-tasks"), [""; 0]);
}

#[test]
fn an_actor_begins_the_shutdown_and_is_told_not_to_wait_for_it() {
    let stage = staged("inside", |phases| phases);
    let actor = stage.spawn(&stage.role("a"));
    act(&actor, |puppet, ctx| {
        let run = ctx.system().coordinated_shutdown().run("from inside");
        puppet.note(matches!(run.wait(), Err(ShutdownRunError::OwnThread)));
        Ok(())
    });
    stage.system.coordinated_shutdown().wait().unwrap();
    stage.expect(&["a Started 1", "a true", "a Stopped 1"]);
    end(stage);
}

#[test]
fn a_task_is_told_not_to_wait_for_its_own_run() {
    let stage = staged("task", |phases| phases);
    let (outcome, log) = (stage.system.coordinated_shutdown(), stage.log.clone());
    let task = move || {
        log.send(format!("{}", matches!(outcome.wait(), Err(ShutdownRunError::OwnThread))))?;
        Ok(())
    };
    stage.system.coordinated_shutdown().add_task("first", "waits", task).unwrap();
    stage.system.coordinated_shutdown().run("by a task").wait().unwrap();
    stage.expect(&["true"]);
    end(stage);
}

#[test]
fn a_task_may_end_another_system_and_wait_for_that() {
    let (stage, other) = (staged("outer", |phases| phases), staged("inner", |phases| phases));
    add(&other, "first", "of the other");
    let (inner, log) = (other.system.coordinated_shutdown(), stage.log.clone());
    let task = move || {
        inner.run("with the outer one").wait()?;
        log.send("waited".to_owned())?;
        Ok(())
    };
    stage.system.coordinated_shutdown().add_task("first", "waits", task).unwrap();
    let report = stage.system.coordinated_shutdown().run("both").wait().unwrap();
    assert_eq!(
        report.phases.iter().flat_map(|phase| &phase.tasks).next().unwrap().outcome,
        PhaseOutcome::Done
    );
    assert_eq!((notes(&other), notes(&stage)), (vec!["of the other".to_owned()], vec!["waited".to_owned()]));
    end(other);
    end(stage);
}

#[test]
fn termination_callbacks_run_in_reverse_order_once_every_actor_has_ended() {
    let stage = Stage::threads("callbacks");
    stage.spawn(&stage.role("a"));
    for name in ["one", "two", "three"] {
        let (log, system) = (stage.log.clone(), stage.system.handle().clone());
        let callback = move || {
            let _ = log.send(format!("{name} {}", system.living_actors()));
            assert_ne!(name, "two", "as told");
        };
        stage.system.on_termination(callback).unwrap();
    }
    stage.system.stop();
    stage.system.wait_until_ended(LONG).unwrap();
    stage.expect(&["a Started 1", "a Stopped 1", "three 0", "two 0", "one 0"]);
    let error = stage.system.on_termination(|| unreachable!("rejected")).unwrap_err();
    assert!(
        matches!(&error, ShutdownSetupError::SystemEnded { system } if system == "callbacks"),
        "{error:?}"
    );
    assert!(error.to_string().contains("\"callbacks\" has ended"), "{error}");
    stage.end(&[]);
}
