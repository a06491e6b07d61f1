//! Names, paths, and refusals to create.

use crate::support::*;
use pointsman::SpawnError;
use pointsman::actor::ActorBuilder;
use pointsman::path::NameError;
use pointsman::prelude::*;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier};

#[test]
fn bad_names_are_refused_with_the_fault_and_leave_nothing_behind() {
    let stage = Stage::turns();
    let living = stage.system.living_actors();
    for (name, fault) in [
        ("", NameError::Empty),
        ("$a", NameError::Reserved { name: "$a".into() }),
        ("a/b", NameError::Character { name: "a/b".into(), character: '/', position: 1 }),
        ("a b", NameError::Character { name: "a b".into(), character: ' ', position: 1 }),
        ("50%", NameError::Character { name: "50%".into(), character: '%', position: 2 }),
        ("é", NameError::Character { name: "é".into(), character: 'é', position: 0 }),
    ] {
        match stage.system.actor(name).spawn(stage.role("a").recipe()) {
            Err(SpawnError::Name(error)) => assert_eq!(error, fault),
            other => panic!("{name:?}: {other:?}"),
        }
    }
    assert_eq!(stage.system.living_actors(), living);
    stage.end(&[]);
}

#[test]
fn a_name_is_taken_until_its_actor_has_ended() {
    let stage = Stage::threads("taken");
    let parent = stage.spawn(&stage.role("p"));
    let actor = child(&parent, &stage.role("a"));
    let release = hold(&actor);
    let again = |stage: &Stage| {
        let recipe = stage.role("a").recipe();
        query(&parent, move |_, ctx| ctx.actor("a").spawn(recipe)).unwrap()
    };
    assert!(matches!(again(&stage), Err(SpawnError::NameTaken { path }) if path == "/user/p/a"));
    actor.stop();
    // It is still stopping.
    assert!(matches!(again(&stage), Err(SpawnError::NameTaken { .. })));
    drop(release);
    wait_for_end(&stage, &actor);
    let mut next = None;
    wait_until(|| {
        next = again(&stage).ok();
        next.is_some()
    });
    let next = next.unwrap();
    assert_eq!(next.path(), actor.path());
    assert_ne!(next.uid(), actor.uid());
    assert_ne!(next, actor);
    // The old reference does not reach the new actor.
    assert!(actor.try_tell(Tell::new(|_, _| Ok(()))).is_err());
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn of_four_creators_at_once_one_gets_the_name() {
    let stage = Stage::turns();
    for round in 0..50 {
        let name = format!("actor-{round}");
        let barrier = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (system, name, barrier) = (stage.system.handle().clone(), name.clone(), barrier.clone());
                let recipe = stage.role("a").recipe();
                std::thread::spawn(move || {
                    barrier.wait();
                    system.actor(&name).spawn(recipe).is_ok()
                })
            })
            .collect();
        let won = threads.into_iter().map(|thread| thread.join().unwrap());
        assert_eq!(won.filter(|won| *won).count(), 1);
    }
    assert_eq!(stage.system.living_actors(), GUARDIANS + 50);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn generated_names_start_with_a_dollar_and_are_not_used_again() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p"));
    let role = stage.role("c");
    let names = query(&parent, move |_, ctx| {
        let spawn = |ctx: &Context<Tell>| ctx.spawn(role.recipe()).unwrap();
        (0..3).map(|_| spawn(ctx).path().name().to_owned()).collect::<Vec<_>>()
    })
    .unwrap();
    assert_eq!(names, ["$a", "$b", "$c"]);
    let found = query(&parent, |_, ctx| ctx.child("$b").map(|child| child.path().to_string())).unwrap();
    assert_eq!(found.as_deref(), Some("/user/p/$b"));
    let first = query(&parent, |_, ctx| ctx.child("$a").unwrap().typed::<Tell>().unwrap()).unwrap();
    first.stop();
    wait_for_end(&stage, &first);
    let role = stage.role("c");
    let next = query(&parent, move |_, ctx| ctx.spawn(role.recipe()).unwrap()).unwrap();
    assert_eq!(next.path().name(), "$d");
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn refusals_leave_the_name_free_and_nobody_behind() {
    let stage = Stage::turns_with(|builder| builder.dispatcher("pin", Dispatcher::pinned()));
    let living = stage.system.living_actors();
    let recipe = || stage.role("a").recipe();
    match stage.system.actor("a").dispatcher("nowhere").spawn(recipe()) {
        Err(SpawnError::UnknownDispatcher { name, known }) => {
            assert_eq!((name.as_str(), known), ("nowhere", vec!["default".to_owned(), "pin".to_owned()]));
        }
        other => panic!("{other:?}"),
    }
    let none = stage.system.actor("a").mailbox(Mailbox::bounded(0)).spawn(recipe());
    assert!(matches!(none, Err(SpawnError::ZeroCapacity { ref path }) if path == "/user/a"), "{none:?}");
    assert_eq!(stage.system.living_actors(), living);
    let actor = stage.system.actor("a").spawn(recipe()).unwrap();
    // The thread of its own that it would have had ends; shutdown would wait for it.
    assert!(stage.system.actor("a").dispatcher("pin").spawn(recipe()).is_err());
    assert_eq!(stage.system.living_actors(), living + 1);
    assert_eq!(query(&actor, |_, _| ()), Ok(()));
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn nobody_is_created_after_the_shutdown() {
    let stage = Stage::threads("after");
    let system = stage.system.handle().clone();
    let role = stage.role("a");
    stage.end(&[]);
    let late = system.actor("a").spawn(role.recipe());
    assert!(matches!(late, Err(SpawnError::ShutDown { ref system }) if system == "after"), "{late:?}");
    assert!(system.spawn(role.recipe()).is_err());
    assert_eq!(system.living_actors(), 0);
    assert!(system.user().is_none());
}

#[test]
fn the_guardian_of_top_level_actors_is_there_until_the_threads_have_gone() {
    let system = Stage::threads("guardian").system.into_threads();
    let handle = SystemRef::clone(&system);
    let user = handle.user().unwrap();
    handle.stop();
    handle.wait_until_ended(LONG).unwrap();
    assert_eq!(handle.user().as_ref(), Some(&user));
    assert!(user.is_closed());
    let late = handle.spawn(|| Idle);
    assert!(matches!(late, Err(SpawnError::ParentStopped { .. } | SpawnError::ShutDown { .. })), "{late:?}");
    system.shutdown(LONG).unwrap();
    assert_eq!(handle.user(), None);
}

/// Tries to create a child of `parent` in `stopped`, and tells what came of it.
struct Late {
    parent: Option<ActorBuilder>,
    outcome: Sender<Result<(), SpawnError>>,
}

impl Actor for Late {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn stopped(&mut self, ctx: &mut Context<()>) {
        let builder = self.parent.take().unwrap_or_else(|| ctx.actor("late"));
        let _ = self.outcome.send(builder.spawn(|| Idle).map(drop));
    }
}

struct Idle;

impl Actor for Idle {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn an_actor_that_is_ending_or_has_ended_takes_no_more_children() {
    let stage = Stage::turns();
    let refused = |outcome: Result<(), SpawnError>, by: &str| {
        assert!(matches!(&outcome, Err(SpawnError::ParentStopped { path }) if path == by), "{outcome:?}");
    };
    let (outcome, outcomes) = channel();
    // While it waits for a child to end, here the one that tries to create a sibling.
    let parent = stage.spawn(&stage.role("p"));
    let of_child = outcome.clone();
    let after_the_end = query(&parent, move |_, ctx| {
        let mut builder = Some(ctx.actor("late"));
        ctx.actor("child")
            .spawn(move || Late { parent: builder.take(), outcome: of_child.clone() })
            .expect("it is alive");
        ctx.actor("later")
    })
    .unwrap();
    parent.stop();
    refused(outcomes.soon().unwrap(), "/user/p");
    // In its own last hook.
    let last =
        stage.system.actor("l").spawn(move || Late { parent: None, outcome: outcome.clone() }).unwrap();
    last.stop();
    refused(outcomes.soon().unwrap(), "/user/l");
    wait_for_end(&stage, &parent);
    refused(after_the_end.spawn(|| Idle).map(drop), "/user/p");
    stage.end(&["p Started 1", "p Stopped 1"]);
}

#[test]
fn a_decider_that_panics_when_it_is_let_go_of_leaves_nobody_behind_where_creation_is_refused() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let living = stage.system.living_actors();
    let sore = Sore;
    let decider = move |_: &Failure| {
        let _ = &sore;
        pointsman::Directive::Stop
    };
    let strategy = Strategy::decide(decider);
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stage.system.actor("a").on_failure(strategy).spawn(stage.role("a").recipe()).map(drop)
    }));
    drop(refused);
    assert_eq!(stage.system.living_actors(), living);
    drop(actor);
    stage.end(&["a Started 1", "a Stopped 1"]);
}
