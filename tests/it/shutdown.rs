//! The end of systems.

use crate::support::*;
use pointsman::prelude::*;
use pointsman::{SendError, ShutdownError};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Threads of this process whose names start so; the kernel keeps 15 bytes of a name.
#[cfg(target_os = "linux")]
fn threads(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}

#[cfg(target_os = "linux")]
#[test]
fn shutdown_and_drop_join_every_thread() {
    for by_drop in [false, true] {
        let stage = Stage::threads_with("zq1", |builder| {
            builder
                .dispatcher("b", Dispatcher::blocking().thread_range(2..=4))
                .dispatcher("p", Dispatcher::pinned())
        });
        let pinned = stage.system.actor("pinned").dispatcher("p").spawn(stage.role("a").recipe()).unwrap();
        assert_eq!(query(&pinned, |_, _| ()), Ok(()));
        // A thread names itself when it first runs.
        wait_until(|| threads("zq1-") == 4 + 2 + 1);
        if by_drop {
            drop(stage);
        } else {
            stage.end(&["a Started 1", "a Stopped 1"]);
        }
        // The kernel's list forgets a thread a moment after it can be joined.
        wait_until(|| threads("zq1-") == 0);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_system_that_cannot_be_built_leaves_no_thread() {
    let built = System::builder("zq2")
        .dispatcher("a", Dispatcher::work_stealing().threads(2))
        .dispatcher("b", Dispatcher::blocking().thread_range(2..=4))
        .dispatcher("c", Dispatcher::work_stealing().threads(2).pin_to([0, 4095]))
        .build();
    assert!(built.is_err());
    wait_until(|| threads("zq2-") == 0);
}

#[test]
fn a_stuck_handler_is_named_and_the_rest_ends_when_it_does() {
    let stage = Stage::threads_with("zq3", |builder| builder.dispatcher("b", Dispatcher::blocking()));
    let parent = stage.spawn(&stage.role("p"));
    let role = stage.role("stuck");
    let stuck =
        query(&parent, move |_, ctx| ctx.actor("stuck").dispatcher("b").spawn(role.recipe()).unwrap())
            .unwrap();
    let release = hold(&stuck);
    let handle = stage.system.handle().clone();
    let began = Instant::now();
    match stage.system.shutdown(Duration::from_millis(20)) {
        Err(ShutdownError::Stuck { actors, .. }) => assert_eq!(actors, ["/user/p/stuck"]),
        other => panic!("{other:?}"),
    }
    // Not the destructor's patience on top.
    assert!(began.elapsed() < Duration::from_secs(8));
    drop(release);
    handle.wait_until_ended(LONG).unwrap();
    assert_eq!(handle.living_actors(), 0);
    assert_eq!(handle.ledger().balance(), 0);
    #[cfg(target_os = "linux")]
    wait_until(|| threads("zq3-") == 0);
}

#[test]
fn a_stuck_pipe_is_named_after_the_actor_that_started_it() {
    let stage = Stage::threads_with("zq7", |builder| builder.dispatcher("blocking", Dispatcher::blocking()));
    let shop = stage.spawn(&stage.role("shop"));
    let (release, held) = channel::<()>();
    let (runs, is_running) = channel();
    act(&shop, move |_, ctx| {
        let wait = move || {
            let _ = runs.send(());
            let _ = held.recv();
        };
        ctx.pipe_blocking_to_self(wait, |_| noting("piped"))?;
        Ok(())
    });
    is_running.recv_timeout(LONG).unwrap();
    let handle = stage.system.handle().clone();
    handle.stop();
    // The root, its other child, and the pipe.
    wait_until(|| handle.living_actors() == 3);
    match stage.system.shutdown(Duration::from_millis(1)) {
        Err(ShutdownError::Stuck { actors, .. }) => assert_eq!(actors, ["/user/shop (its pipe /system/$a)"]),
        other => panic!("{other:?}"),
    }
    drop(release);
    handle.wait_until_ended(LONG).unwrap();
    assert_eq!(handle.ledger().balance(), 0);
    #[cfg(target_os = "linux")]
    wait_until(|| threads("zq7-") == 0);
}

#[test]
fn on_its_own_threads_shutdown_is_a_typed_error_and_the_system_ends_all_the_same() {
    for (dispatcher, prefix) in [("default", "zq4-"), ("b", "zq5-"), ("p", "zq6-")] {
        let stage = Stage::threads_with(&prefix[..3], |builder| {
            builder.dispatcher("b", Dispatcher::blocking()).dispatcher("p", Dispatcher::pinned())
        });
        let Stage { system, log, .. } = stage;
        let system = system.into_threads();
        let handle = system.handle().clone();
        let actor = handle.actor("a").dispatcher(dispatcher).spawn(Role::new("a", &log).recipe()).unwrap();
        let (sender, outcome) = channel();
        act(&actor, move |_, _| {
            sender.send(system.shutdown(LONG))?;
            Ok(())
        });
        let outcome = outcome.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(matches!(outcome, Err(ShutdownError::OwnThread)), "{dispatcher}: {outcome:?}");
        handle.wait_until_ended(LONG).unwrap();
        #[cfg(target_os = "linux")]
        wait_until(|| threads(prefix) == 0);
    }
}

#[test]
fn shutdown_by_what_runs_on_the_timers_thread_is_a_typed_error_too() {
    struct Get;
    impl Request for Get {
        type Reply = u32;
    }
    enum Asking {
        Ask(ActorRef<Call<Get>>, Box<dyn FnOnce(Result<u32, AskError>) + Send>),
        Over,
    }
    struct Asks;
    impl Actor for Asks {
        type Message = Asking;
        fn receive(&mut self, message: Asking, ctx: &mut Context<Asking>) -> HandlerResult {
            if let Asking::Ask(target, then) = message {
                ctx.ask_within(&target, Get, Duration::from_millis(1), |answer| {
                    then(answer);
                    Asking::Over
                });
            }
            Ok(())
        }
    }
    // By the system's own clock: with a manual one nothing runs on that thread.
    let system = System::builder("deadline").build().unwrap();
    let handle = system.handle().clone();
    let actor = handle.spawn(|| Asks).unwrap();
    // Keeps the port, so that the deadline is what ends the question.
    let kept = Mutex::new(Vec::new());
    let silent = ActorRef::from_fn(move |call: Call<Get>| kept.lock().unwrap().push(call));
    let (sender, outcome) = channel();
    let then = move |answer| sender.send((answer, system.shutdown(LONG))).unwrap();
    actor.tell(Asking::Ask(silent.clone(), Box::new(then)));
    let (answer, outcome) = outcome.recv_timeout(LONG).unwrap();
    assert!(matches!(answer, Err(AskError::Timeout { .. })), "{answer:?}");
    assert!(matches!(outcome, Err(ShutdownError::OwnThread)), "{outcome:?}");
    handle.wait_until_ended(LONG).unwrap();
}

#[test]
fn senders_outlive_the_system() {
    let stage = Stage::threads("outlived");
    let actor = stage.spawn(&stage.role("a"));
    let (log, system) = (stage.log.clone(), stage.system.handle().clone());
    let senders: Vec<_> = (0..2)
        .map(|_| {
            let actor = actor.clone();
            std::thread::spawn(move || {
                while !actor.is_closed() {
                    note(&actor, "hello");
                }
                assert!(matches!(actor.try_tell(Tell::new(|_, _| Ok(()))), Err(SendError::Closed(_))));
                actor.tell(Tell::new(|_, _| Ok(())));
                actor.stop();
                assert!(query(&actor, |_, _| ()).is_err());
            })
        })
        .collect();
    stage.system.shutdown(LONG).unwrap();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    drop(log);
    let ledger = system.ledger();
    assert_eq!(ledger.balance(), 0, "{ledger}");
    assert_eq!(ledger.handed_back, 2);
    drop(system);
    // The last of it all.
    drop(actor);
}

#[test]
fn systems_of_one_process_know_nothing_of_each_other() {
    let stages: Vec<_> = (0..4).map(|_| Stage::turns()).collect();
    let actors: Vec<_> = stages.iter().map(|stage| stage.spawn(&stage.role("a"))).collect();
    for (index, actor) in actors.iter().enumerate() {
        query(actor, move |puppet, _| puppet.value = index as u64).unwrap();
    }
    for (index, (stage, actor)) in stages.into_iter().zip(&actors).enumerate() {
        assert_eq!(query(actor, |puppet, _| puppet.value), Ok(index as u64));
        assert_eq!(stage.system.ledger().sent, 2);
        stage.end(&["a Started 1", "a Stopped 1"]);
    }
}

#[test]
fn an_actor_may_end_the_system() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    act(&actor, |_, ctx| {
        ctx.system().stop();
        Ok(())
    });
    stage.system.wait_until_ended(LONG).unwrap();
    assert_eq!(stage.system.living_actors(), 0);
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn actors_created_while_the_system_ends_are_refused_or_ended() {
    for _ in 0..20 {
        let stage = Stage::threads("while");
        let system = stage.system.handle().clone();
        let role = stage.role("a");
        let creator = std::thread::spawn(move || {
            let mut refs = Vec::new();
            while let Ok(actor) = system.spawn(role.recipe()) {
                refs.push(actor);
            }
            refs
        });
        wait_until(|| stage.system.living_actors() > 10);
        assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
        assert!(creator.join().unwrap().iter().all(ActorRef::is_closed));
    }
}
