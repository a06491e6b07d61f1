//! Hooks: which run, in which order, and what happens when they fail.

use crate::support::*;
use pointsman::prelude::*;
use pointsman::{FailureKind, Terminated};
use std::sync::mpsc::{Sender, channel};

#[test]
fn a_life_without_failures_is_recipe_started_messages_stopped() {
    let stage = Stage::new("life");
    let actor = stage.spawn(&stage.role("a"));
    note(&actor, "first");
    note(&actor, "second");
    actor.poison();
    stage.expect(&["a Started 1", "a first", "a second", "a Stopped 1"]);
    wait_for_end(&stage, &actor);
    assert!(actor.is_closed());
    stage.end(&[]);
}

#[test]
fn a_restart_keeps_reference_uid_mailbox_and_loses_state_and_message() {
    let stage = Stage::new("restart");
    let actor = stage.spawn(&stage.role("a"));
    let uid = actor.uid();
    let release = hold(&actor);
    act(&actor, |puppet, _| {
        puppet.value = 7;
        Err(Failure::msg("as told"))
    });
    note(&actor, "behind the failure");
    drop(release);
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
    assert_eq!((actor.uid(), actor.path().to_string().as_str()), (uid, "/user/a"));
    stage.expect(&["a Started 1", "a Restarting 1", "a Restarted 2", "a behind the failure"]);
    stage.end(&["a Stopped 2"]);
}

/// Notes the hooks that are left at their defaults.
struct Plain {
    number: usize,
    notes: Sender<String>,
}

impl Actor for Plain {
    type Message = bool;
    fn receive(&mut self, fail: bool, _: &mut Context<bool>) -> Done {
        if fail { panic!("as told") } else { Ok(()) }
    }
    fn started(&mut self, _: &mut Context<bool>) -> Done {
        self.notes.send(format!("started {}", self.number))?;
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<bool>) {
        let _ = self.notes.send(format!("stopped {}", self.number));
    }
}

#[test]
fn by_default_a_restart_is_stopped_recipe_started() {
    let (notes, noted) = channel();
    let system = System::builder("defaults").build().unwrap();
    let mut number = 0;
    let actor = system
        .actor("a")
        .spawn(move || {
            number += 1;
            Plain { number, notes: notes.clone() }
        })
        .unwrap();
    actor.tell(true);
    actor.poison();
    let life: Vec<String> = (0..4).map(|_| noted.recv_timeout(LONG).unwrap()).collect();
    assert_eq!(life, ["started 1", "stopped 1", "started 2", "stopped 2"]);
    // The recipe goes with the actor, although `actor` is still held.
    assert!(
        noted.recv_timeout(LONG).is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Disconnected)
    );
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

fn stops_at_first(hook: Hook, panics: bool) {
    let stage = Stage::new("first");
    let role = stage.role("a").on_hook(move |now, _| {
        if now != hook {
            return Ok(());
        }
        if panics { panic!("as told") } else { Err(Failure::msg("as told")) }
    });
    let actor = stage.spawn(&role);
    note(&actor, "never");
    wait_for_end(&stage, &actor);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.dead_lettered), (1, 1), "{ledger}");
    // Its parent may learn of the end after we do.
    wait_until(|| stage.system.actor("a").spawn(stage.role("a").recipe()).is_ok());
    stage.expect(if hook == Hook::Started { &["a Started 1"] } else { &[] });
    stage.expect(&["a Started 1"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_recipe_or_started_that_fails_stops_the_actor() {
    stops_at_first(Hook::Recipe, false);
    stops_at_first(Hook::Recipe, true);
    stops_at_first(Hook::Started, false);
    stops_at_first(Hook::Started, true);
}

#[test]
fn a_first_failure_judged_with_restart_or_resume_creates_anew() {
    for directive in [Directive::Restart, Directive::Resume] {
        for hook in [Hook::Recipe, Hook::Started] {
            let stage = Stage::new("anew");
            let parent = stage.spawn(&stage.role("p").strategy(move || {
                Strategy::decide(move |failure| {
                    assert_eq!(failure.kind(), FailureKind::Initialization);
                    directive
                })
            }));
            let role = stage.role("a").on_hook(move |now, number| {
                if now == hook && number < 3 { Err(Failure::msg("too early")) } else { Ok(()) }
            });
            let actor = child(&parent, &role);
            assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
            let notes: Vec<String> = stage.notes.try_iter().collect();
            // `started` again and not `restarted`; nothing is stopped that was never whole.
            let whole: &[&str] = match hook {
                Hook::Recipe => &["p Started 1", "a Started 3"],
                _ => &["p Started 1", "a Started 1", "a Started 2", "a Started 3"],
            };
            assert_eq!(notes, whole, "{directive:?} {hook:?}");
            stage.end(&["a Stopped 3", "p Stopped 1"]);
        }
    }
}

#[test]
fn a_failed_start_takes_the_children_made_in_it_with_it() {
    let stage = Stage::new("brood");
    let child_role = stage.role("child");
    let parent = stage.spawn(
        &stage
            .role("p")
            .strategy(|| Restart::always().into())
            .strategy(|| Strategy::decide(|_| Directive::Restart)),
    );
    let role = stage
        .role("a")
        .started(move |ctx| {
            ctx.actor("child").spawn(child_role.recipe()).expect("the old child is gone");
        })
        .on_hook(
            |now, number| {
                if now == Hook::Started && number == 1 { Err(Failure::msg("once")) } else { Ok(()) }
            },
        );
    let actor = child(&parent, &role);
    assert_eq!(query(&actor, |_, ctx| ctx.children().len()), Ok(1));
    drop(stage);
}

#[test]
fn failing_restarting_and_stopped_change_nothing() {
    for panics in [false, true] {
        let stage = Stage::new("tough");
        let role = stage.role("a").on_hook(move |hook, _| match hook {
            Hook::Restarting | Hook::Stopped if panics => panic!("as told"),
            Hook::Restarting | Hook::Stopped => Err(Failure::msg("as told")),
            _ => Ok(()),
        });
        let actor = stage.spawn(&role);
        fail(&actor);
        assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
        actor.stop();
        wait_for_end(&stage, &actor);
        stage.expect(&["a Started 1", "a Restarting 1", "a Restarted 2", "a Stopped 2"]);
        stage.end(&[]);
    }
}

#[test]
fn a_failing_restarted_is_a_failure_of_initialization() {
    for panics in [false, true] {
        let stage = Stage::new("post");
        let role = stage.role("a").on_hook(move |hook, _| match hook {
            Hook::Restarted if panics => panic!("as told"),
            Hook::Restarted => Err(Failure::msg("as told")),
            _ => Ok(()),
        });
        let actor = stage.spawn(&role);
        fail(&actor);
        wait_for_end(&stage, &actor);
        // The half-made state is not stopped.
        stage.expect(&["a Started 1", "a Restarting 1", "a Restarted 2"]);
        stage.end(&[]);
    }
}

#[test]
fn a_state_that_panics_while_it_is_dropped_takes_nobody_with_it() {
    let stage =
        Stage::with("drops", |builder| builder.dispatcher("one", Dispatcher::work_stealing().threads(1)));
    let role = stage.role("a").on_hook(|hook, _| {
        if hook == Hook::Drop && !std::thread::panicking() { panic!("in drop") } else { Ok(()) }
    });
    let actor = stage.system.actor("a").dispatcher("one").spawn(role.recipe()).unwrap();
    let other = stage.system.actor("b").dispatcher("one").spawn(stage.role("b").recipe()).unwrap();
    // Its state is dropped after a panicking handler, and at its end.
    act(&actor, |_, _| panic!("in receive"));
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
    actor.stop();
    wait_for_end(&stage, &actor);
    assert_eq!(query(&other, |puppet, _| puppet.value), Ok(0));
    drop(actor);
    stage.system.shutdown(LONG).unwrap();
}

/// An error whose destructor and text panic, and a panic payload like it.
#[derive(Debug)]
struct Venom;

impl std::fmt::Display for Venom {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("in display")
    }
}

impl std::error::Error for Venom {}

impl Drop for Venom {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

#[test]
fn a_failure_whose_cause_panics_when_it_is_dropped_or_shown_is_only_a_failure() {
    let stage = Stage::new("venom");
    let parent = stage.spawn(&stage.role("p").keep_children());
    let actor = child(&parent, &stage.role("a"));
    act(&actor, |_, _| Err(Venom.into()));
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
    act(&actor, |_, _| std::panic::panic_any(Venom));
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
    // Its child is restarted with it, and told why.
    act(&parent, |_, _| Err(Venom.into()));
    assert_eq!(query(&parent, |puppet, _| puppet.value), Ok(0));
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn the_recipe_sees_the_context_of_its_actor() {
    let stage = Stage::new("recipes");
    let (sender, seen) = channel();
    let role = stage.role("a");
    let mut make = role.recipe();
    let actor = stage
        .system
        .actor("a")
        .spawn_with(move |ctx: &mut Context<Tell>| {
            let parent = ctx.parent().expect("the guardian").path().to_string();
            sender.send((ctx.path().to_string(), parent, ctx.me().uid(), ctx.routee_index())).unwrap();
            make()
        })
        .unwrap();
    assert_eq!(seen.recv_timeout(LONG).unwrap(), ("/user/a".into(), "/user".into(), actor.uid(), 0));
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn stopping_while_a_restart_waits_for_children_does_not_stop_the_old_state_twice() {
    let stage = Stage::new("twice");
    let actor = stage.spawn(&stage.role("a"));
    let slow = child(&actor, &stage.role("slow"));
    let release = hold(&slow);
    fail(&actor);
    stage.expect(&["a Started 1", "slow Started 1", "a Restarting 1"]);
    actor.stop();
    // The slow child holds both the restart and the stop.
    assert!(!actor.is_closed());
    drop(release);
    wait_for_end(&stage, &actor);
    stage.end(&["slow Stopped 1"]);
}

struct Quiet;

impl Actor for Quiet {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> Done {
        Ok(())
    }
    fn terminated(&mut self, _: Terminated, _: &mut Context<()>) -> Done {
        Ok(())
    }
}

#[test]
fn what_a_recipe_captured_is_freed_when_creation_is_refused() {
    let system = System::builder("refused").build().unwrap();
    let (sender, gone) = channel::<()>();
    let _first = system.actor("a").spawn(|| Quiet).unwrap();
    let refused = system.actor("a").spawn(move || {
        let _ = &sender;
        Quiet
    });
    assert!(refused.is_err());
    assert!(
        gone.recv_timeout(LONG).is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Disconnected)
    );
    assert_eq!(system.living_actors(), 5);
}
