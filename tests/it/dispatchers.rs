//! Where actors run.

use crate::support::*;
use pointsman::prelude::*;
use pointsman::{BuildError, StartError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

fn thread_of(actor: &ActorRef<Tell>) -> (thread::ThreadId, String) {
    query(actor, |_, _| (thread::current().id(), thread::current().name().unwrap_or("").to_owned())).unwrap()
}

fn spawn_on(stage: &Stage, dispatcher: &str, name: &'static str) -> ActorRef<Tell> {
    stage.system.actor(name).dispatcher(dispatcher).spawn(stage.role(name).recipe()).unwrap()
}

#[test]
fn a_pinned_actor_has_a_thread_of_its_own_all_its_life() {
    let stage = Stage::with("pins", |builder| builder.dispatcher("pin", Dispatcher::pinned().throughput(1)));
    let (a, b) = (spawn_on(&stage, "pin", "a"), spawn_on(&stage, "pin", "b"));
    let (of_a, of_b) = (thread_of(&a), thread_of(&b));
    assert_ne!(of_a.0, of_b.0);
    assert!(of_a.1.starts_with("pins-pin"), "{of_a:?}");
    // Neither other work nor a restart moves it, and one that blocks stops nobody.
    let release = hold(&a);
    assert_eq!(thread_of(&b), of_b);
    fail(&a);
    drop(release);
    assert_eq!(thread_of(&a), of_a);
    a.stop();
    wait_for_end(&stage, &a);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn actors_that_block_on_the_blocking_dispatcher_stop_nobody() {
    let stage =
        Stage::with("blocks", |builder| builder.dispatcher("slow", Dispatcher::blocking().threads(1..=8)));
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let blocked: Vec<_> = names.map(|name| spawn_on(&stage, "slow", name)).into();
    let holds: Vec<_> = blocked.iter().map(hold).collect();
    let other = stage.spawn(&stage.role("other"));
    assert_eq!(query(&other, |_, _| ()), Ok(()));
    drop(holds);
    for actor in &blocked {
        assert!(thread_of(actor).1.starts_with("blocks-slow"));
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn waiting_for_an_answer_is_an_error_on_a_worker_and_allowed_elsewhere() {
    let stage = Stage::with("waits", |builder| {
        builder.dispatcher("slow", Dispatcher::blocking()).dispatcher("pin", Dispatcher::pinned())
    });
    let target = stage.spawn(&stage.role("target"));
    for (dispatcher, name, answer) in
        [("default", "a", Err(AskError::WouldBlockWorker)), ("slow", "b", Ok(11)), ("pin", "c", Ok(11))]
    {
        let asker = spawn_on(&stage, dispatcher, name);
        let asked = target.clone();
        assert_eq!(query(&asker, move |_, _| query(&asked, |_, _| 11)), Ok(answer), "{dispatcher}");
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn in_blocking_sections_what_waits_for_the_worker_goes_elsewhere() {
    let stage = Stage::new("sections");
    let (a, b) = (stage.spawn(&stage.role("a")), stage.spawn(&stage.role("b")));
    // `a` wakes `b` on its own worker and then waits for it.
    let (sender, answered) = channel();
    let answer = query(&a, move |_, ctx| {
        act(&b, move |_, _| {
            sender.send(5)?;
            Ok(())
        });
        ctx.blocking(|| answered.recv_timeout(LONG))
    });
    assert_eq!(answer, Ok(Ok(5)));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_dispatcher_that_cannot_be_had_is_a_build_error() {
    let cannot = |name: &str, dispatcher: Dispatcher| {
        let built = System::builder("cannot")
            .dispatcher("fine", Dispatcher::blocking())
            .dispatcher(name, dispatcher)
            .build();
        built.expect_err("it cannot be had")
    };
    let error = cannot("far", Dispatcher::work_stealing().threads(1).pin_to([4095]).into());
    let BuildError::Dispatcher { name, error: StartError::Core { core: 4095, .. } } = error else {
        panic!("{error:?}")
    };
    assert_eq!(name, "far");
    assert!(matches!(
        cannot("none", Dispatcher::work_stealing().threads(0).into()),
        BuildError::Dispatcher { error: StartError::ThreadCount { requested: 0, .. }, .. }
    ));
    assert!(matches!(
        cannot("idle", Dispatcher::work_stealing().threads(1).throughput(0).into()),
        BuildError::Dispatcher { error: StartError::ZeroThroughput, .. }
    ));
    assert!(matches!(
        cannot("fine", Dispatcher::blocking().into()),
        BuildError::DuplicateDispatcher { ref name } if name == "fine"
    ));
    for name in ["", "-a", "a b", "ä"] {
        assert!(matches!(System::builder(name).build(), Err(BuildError::Name { .. })), "{name:?}");
    }
}

#[test]
fn the_guardians_may_run_anywhere() {
    for dispatcher in [Dispatcher::from(Dispatcher::pinned()), Dispatcher::blocking().into()] {
        let system = System::builder("guards").dispatcher("default", dispatcher).build().unwrap();
        let (log, _notes) = channel();
        let actor = system.actor("a").spawn(Role::new("a", &log).recipe()).unwrap();
        fail(&actor);
        assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    }
}

#[test]
fn an_actor_woken_in_a_long_turn_does_not_wait_for_all_of_it() {
    let stage = Stage::with("long", |builder| {
        builder.dispatcher("one", Dispatcher::work_stealing().threads(1).throughput(64))
    });
    let (busy, woken) = (spawn_on(&stage, "one", "busy"), spawn_on(&stage, "one", "woken"));
    let handled = Arc::new(AtomicUsize::new(0));
    let (sender, seen) = channel();
    // Has nothing left to do when the one worker is in `busy`.
    assert_eq!(query(&woken, |_, _| ()), Ok(()));
    let release = hold(&busy);
    for message in 0..64 {
        let (handled, woken, sender) = (handled.clone(), woken.clone(), sender.clone());
        act(&busy, move |_, _| {
            if message == 0 {
                let handled = handled.clone();
                act(&woken, move |_, _| {
                    sender.send(handled.load(Ordering::Relaxed))?;
                    Ok(())
                });
            }
            handled.fetch_add(1, Ordering::Relaxed);
            // Stands for work: it may take longer, and the test says the same then.
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        });
    }
    drop(release);
    // A few of the 64, by the messages counted and not by the clock.
    let handled = seen.recv_timeout(LONG).unwrap();
    assert!(handled <= 16, "{handled}");
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}
