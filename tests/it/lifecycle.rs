//! Hooks: which run, in which order, and what happens when they fail.

use crate::support::*;
use pointsman::prelude::*;
use pointsman::{FailureKind, Terminated};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

#[test]
fn a_life_without_failures_is_recipe_started_messages_stopped() {
    let stage = Stage::turns();
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
    let stage = Stage::threads("restart");
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
    fn receive(&mut self, fail: bool, _: &mut Context<bool>) -> HandlerResult {
        if fail { panic!("as told") } else { Ok(()) }
    }
    fn started(&mut self, _: &mut Context<bool>) -> HandlerResult {
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
    let life: Vec<String> = (0..4).map(|_| noted.soon().unwrap()).collect();
    assert_eq!(life, ["started 1", "stopped 1", "started 2", "stopped 2"]);
    // The recipe goes with the actor, although `actor` is still held.
    assert!(noted.soon().is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Disconnected));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Has a child of one name in each of its lives, and leaves `restarting` as it is.
struct Nest(Sender<&'static str>);

impl Actor for Nest {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Err(Failure::msg("as told"))
    }
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        let notes = self.0.clone();
        ctx.actor("leaf").spawn(move || Leaf(notes.clone()))?;
        self.0.send("started")?;
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<()>) {
        let _ = self.0.send("stopped");
    }
}

struct Leaf(Sender<&'static str>);

impl Actor for Leaf {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<()>) {
        let _ = self.0.send("leaf stopped");
    }
}

#[test]
fn by_default_a_restart_stops_the_children_and_their_names_are_free_in_started() {
    let stage = Stage::turns();
    let (notes, noted) = channel();
    let nest = stage.system.actor("nest").spawn(move || Nest(notes.clone())).unwrap();
    nest.tell(());
    let mut life: Vec<_> = (0..4).map(|_| noted.soon().unwrap()).collect();
    // The leaf stops while its parent's hook goes on.
    life[1..3].sort();
    assert_eq!(life, ["started", "leaf stopped", "stopped", "started"]);
    stage.end(&[]);
}

fn stops_at_first(hook: Hook, panics: bool) {
    let stage = Stage::turns();
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
            let stage = Stage::turns();
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
    let stage = Stage::threads("brood");
    let child_role = stage.role("child");
    let parent = stage.spawn(
        &stage.role("p").strategy(Strategy::default).strategy(|| Strategy::decide(|_| Directive::Restart)),
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
fn a_failed_recipe_takes_the_children_made_in_it_with_it() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p").strategy(|| Strategy::decide(|_| Directive::Restart)));
    let (role, child_role) = (stage.role("a"), stage.role("child"));
    let mut failed = false;
    let recipe = move |ctx: &mut Context<Tell>| {
        ctx.actor("child").spawn(child_role.recipe()).expect("the old child is gone");
        if !std::mem::replace(&mut failed, true) {
            return Err(Failure::msg("once"));
        }
        role.recipe()()
    };
    let actor = query(&parent, move |_, ctx| ctx.actor("a").spawn_with(recipe).unwrap()).unwrap();
    assert_eq!(query(&actor, |_, ctx| ctx.children().len()), Ok(1));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn failing_restarting_and_stopped_change_nothing() {
    for panics in [false, true] {
        let stage = Stage::turns();
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
        let stage = Stage::turns();
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
        Stage::turns_with(|builder| builder.dispatcher("one", Dispatcher::work_stealing().threads(1)));
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
    let stage = Stage::turns();
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
    let stage = Stage::turns();
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
    assert_eq!(seen.soon().unwrap(), ("/user/a".into(), "/user".into(), actor.uid(), 0));
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn stopping_while_a_restart_waits_for_children_does_not_stop_the_old_state_twice() {
    let stage = Stage::two_threads("twice");
    let actor = stage.spawn(&stage.role("a"));
    let other = stage.spawn(&stage.role("b"));
    assert_eq!(query(&other, |_, _| ()), Ok(()));
    let slow = child(&actor, &stage.role("slow"));
    assert_eq!(query(&slow, |_, _| ()), Ok(()));
    let release = hold(&slow);
    let mut notes: Vec<String> = (0..3).map(|_| stage.note()).collect();
    notes.sort();
    assert_eq!(notes, ["a Started 1", "b Started 1", "slow Started 1"]);
    fail(&actor);
    stage.expect(&["a Restarting 1"]);
    // The one worker that is free answers after the turn of `a`, which then waits for its child.
    assert_eq!(query(&other, |_, _| ()), Ok(()));
    actor.stop();
    // The slow child holds both the restart and the stop.
    assert!(!actor.is_closed());
    drop(release);
    wait_for_end(&stage, &actor);
    stage.end(&["b Stopped 1", "slow Stopped 1"]);
}

struct Quiet;

impl Actor for Quiet {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn terminated(&mut self, _: Terminated, _: &mut Context<()>) -> HandlerResult {
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
    assert!(gone.soon().is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Disconnected));
    assert_eq!(system.living_actors(), GUARDIANS + 1);
}

#[test]
fn the_recipe_is_called_once_for_the_start_and_once_for_each_restart() {
    let stage = Stage::turns();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let mut recipe = stage.role("a").recipe();
    let actor = stage
        .system
        .actor("a")
        .spawn(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            recipe()
        })
        .unwrap();
    for restarts in 0..3 {
        assert_eq!(query(&actor, |_, _| ()), Ok(()));
        assert_eq!(calls.load(Ordering::SeqCst), 1 + restarts);
        fail(&actor);
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_failed_restarted_judged_with_resume_or_restart_is_a_restart_again_without_hooks_of_the_half_made_state()
{
    for directive in [Directive::Resume, Directive::Restart] {
        let stage = Stage::turns();
        let parent = stage.spawn(&stage.role("p").strategy(move || {
            Strategy::decide(move |failure| match failure.kind() {
                FailureKind::Initialization => directive,
                _ => Directive::Restart,
            })
        }));
        let role = stage.role("a").on_hook(|hook, number| match hook {
            Hook::Restarted if number < 4 => Err(Failure::msg("not yet")),
            _ => Ok(()),
        });
        let actor = child(&parent, &role);
        fail(&actor);
        assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
        stage.expect(&["p Started 1", "a Started 1", "a Restarting 1"]);
        stage.expect(&["a Restarted 2", "a Restarted 3", "a Restarted 4"]);
        stage.end(&["a Stopped 4", "p Stopped 1"]);
    }
}

#[test]
fn control_that_comes_while_a_restart_waits_for_children_acts_after_it() {
    let stage = Stage::threads("deferred");
    let parent = stage.spawn(&stage.role("p").strategy(|| Strategy::default().all_for_one()));
    let actor = child(&parent, &stage.role("a"));
    let sibling = child(&parent, &stage.role("b"));
    let slow = child(&actor, &stage.role("slow"));
    assert_eq!(query(&sibling, |_, _| ()), Ok(()));
    assert_eq!(query(&slow, |_, _| ()), Ok(()));
    let release = hold(&slow);
    let mut notes: Vec<String> = (0..4).map(|_| stage.note()).collect();
    notes.sort();
    assert_eq!(notes, ["a Started 1", "b Started 1", "p Started 1", "slow Started 1"]);
    fail(&actor);
    let mut notes: Vec<String> = (0..3).map(|_| stage.note()).collect();
    notes.sort();
    assert_eq!(notes, ["a Restarting 1", "b Restarted 2", "b Restarting 1"]);
    // The second restart of all finds the first of `a` waiting.
    fail(&sibling);
    stage.expect(&["b Restarting 2", "b Restarted 3"]);
    note(&actor, "at last");
    drop(release);
    stage.expect(&["slow Stopped 1", "a Restarted 2", "a Restarting 2", "a Restarted 3", "a at last"]);
    assert_eq!(query(&parent, |_, ctx| ctx.children().len()), Ok(2));
    stage.end(&["a Stopped 3", "b Stopped 3", "p Stopped 1"]);
}

/// Panics when it is dropped, unless its thread panics already: a second panic within one unwinding ends the
/// process.
struct Sting;

impl Drop for Sting {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("in drop");
        }
    }
}

#[test]
fn messages_and_recipes_that_panic_while_they_are_dropped_take_nobody_with_them() {
    let stage = Stage::threads_with("stings", |builder| {
        builder.dispatcher("one", Dispatcher::work_stealing().threads(1))
    });
    let sting = Sting;
    let mut recipe = stage.role("a").recipe();
    let actor = stage
        .system
        .actor("a")
        .dispatcher("one")
        .spawn(move || {
            let _ = &sting;
            recipe()
        })
        .unwrap();
    let stinging = || {
        let sting = Sting;
        Tell::new(move |_, _| {
            drop(sting);
            Ok(())
        })
    };
    // In a handler it is the actor's own failure.
    actor.tell(stinging());
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
    stage.expect(&["a Started 1", "a Restarting 1", "a Restarted 2"]);
    // In a mailbox that is emptied it is nobody's.
    let release = hold(&actor);
    actor.tell(stinging());
    actor.stop();
    drop(release);
    wait_for_end(&stage, &actor);
    let other = stage.system.actor("b").dispatcher("one").spawn(stage.role("b").recipe()).unwrap();
    assert_eq!(query(&other, |puppet, _| puppet.value), Ok(0));
    stage.end(&["a Stopped 2", "b Started 1", "b Stopped 1"]);
}

/// Fails in `terminated`.
struct Shaken(ActorRef<Tell>, Sender<&'static str>);

impl Actor for Shaken {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        ctx.watch(&self.0)?;
        Ok(())
    }
    fn restarted(&mut self, _: &Failure, _: &mut Context<()>) -> HandlerResult {
        self.1.send("restarted")?;
        Ok(())
    }
    fn terminated(&mut self, _: Terminated, _: &mut Context<()>) -> HandlerResult {
        panic!("as told")
    }
}

#[test]
fn a_failing_terminated_is_a_failure_like_any_other() {
    let stage = Stage::turns();
    let watched = stage.spawn(&stage.role("a"));
    let (sender, noted) = channel();
    let target = watched.clone();
    let _shaken = stage.system.spawn(move || Shaken(target.clone(), sender.clone())).unwrap();
    watched.stop();
    assert_eq!(noted.soon(), Ok("restarted"));
    stage.end(&["a Started 1", "a Stopped 1"]);
}

/// What a [`Household`] is told to do.
struct Order(fn(&mut Context<Order>) -> HandlerResult);

/// Has a child of each name in each of its lives. `ending` runs before it is made anew.
struct Household {
    notes: Sender<&'static str>,
    ending: fn(&mut Context<Order>),
}

const HOUSEHOLD: [&str; 3] = ["ann", "ben", "eve"];

impl Actor for Household {
    type Message = Order;
    fn receive(&mut self, Order(act): Order, ctx: &mut Context<Order>) -> HandlerResult {
        act(ctx)
    }
    fn started(&mut self, ctx: &mut Context<Order>) -> HandlerResult {
        for name in HOUSEHOLD {
            let notes = self.notes.clone();
            ctx.actor(name).spawn(move || Leaf(notes.clone()))?;
        }
        self.notes.send("started")?;
        Ok(())
    }
    fn restarting(&mut self, _: &Failure, ctx: &mut Context<Order>) -> HandlerResult {
        (self.ending)(ctx);
        Ok(())
    }
}

/// A household whose restarts take the course of this seed; what it notes comes at the end.
fn household(seed: u64, ending: fn(&mut Context<Order>)) -> (Stage, ActorRef<Order>, Receiver<&'static str>) {
    let stage = Stage::turns_of(seed, |builder| builder);
    let (notes, noted) = channel();
    let recipe = move || Household { notes: notes.clone(), ending };
    let household = stage.system.actor("household").spawn(recipe).unwrap();
    (stage, household, noted)
}

/// It has been made anew `restarts` times, all of its children each time before that.
#[track_caller]
fn has_been_restarted(stage: Stage, noted: &Receiver<&'static str>, restarts: usize) {
    run_turns();
    let mut seen: Vec<_> = noted.try_iter().collect();
    let mut expected = vec!["started"];
    for _ in 0..restarts {
        expected.extend(["leaf stopped"; HOUSEHOLD.len()]);
        expected.push("started");
    }
    assert_eq!(seen, expected);
    assert!(stage.system.actor_at("/user/household/eve").is_ok());
    stage.end(&[]);
    seen = noted.try_iter().collect();
    assert_eq!(seen, ["leaf stopped"; HOUSEHOLD.len()]);
}

#[test]
fn a_restart_waits_for_children_that_were_stopped_one_by_one() {
    for seed in 0..20 {
        let (stage, household, noted) =
            household(seed, |ctx| ctx.children().iter().for_each(AnyActorRef::stop));
        for _ in 0..3 {
            household.tell(Order(|_| Err(Failure::msg("as told"))));
            run_turns();
        }
        has_been_restarted(stage, &noted, 3);
    }
}

#[test]
fn a_restart_waits_for_children_that_were_told_to_stop_before_the_failure() {
    for seed in 0..20 {
        let (stage, household, noted) = household(seed, |_| {});
        household.tell(Order(|ctx| {
            ctx.children().iter().for_each(AnyActorRef::stop);
            Err(Failure::msg("as told"))
        }));
        has_been_restarted(stage, &noted, 1);
    }
}

#[test]
fn a_restart_waits_for_children_that_others_have_told_to_stop() {
    for seed in 0..20 {
        // The hook keeps the children that it finds.
        let (stage, household, noted) = household(seed, |_| {});
        run_turns();
        for name in HOUSEHOLD {
            stage.system.actor_at(&format!("/user/household/{name}")).unwrap().stop();
        }
        household.tell(Order(|_| Err(Failure::msg("as told"))));
        has_been_restarted(stage, &noted, 1);
    }
}

#[test]
fn a_restart_waits_for_a_child_that_another_child_stops_meanwhile() {
    let stage = Stage::threads("meanwhile");
    let parent = stage.spawn(&stage.role("p").keep_children());
    stage.note();
    let (slow, other) = (child(&parent, &stage.role("slow")), child(&parent, &stage.role("other")));
    stage.note();
    stage.note();
    let (release_slow, release_other) = (hold(&slow), hold(&other));
    slow.stop();
    fail(&parent);
    assert_eq!(stage.note(), "p Restarting 1");
    // The restart waits for the one, and another one is told.
    other.stop();
    drop(release_slow);
    assert_eq!(stage.note(), "slow Stopped 1");
    wait_for_end(&stage, &slow);
    drop(release_other);
    stage.expect(&["other Stopped 1", "p Restarted 2"]);
    assert_eq!(query(&parent, |_, ctx| ctx.children().len()), Ok(0));
    stage.end(&["p Stopped 2"]);
}

#[test]
fn a_child_that_is_stopped_by_its_parent_is_told_so_and_no_other_actor_is() {
    let stage = Stage::turns();
    let (parent, stranger) = (stage.spawn(&stage.role("p")), stage.spawn(&stage.role("s")));
    let young = child(&parent, &stage.role("c"));
    let (child, strange) = (young.clone(), stranger.clone());
    watch(&parent, &young);
    let told = query(&parent, move |_, ctx| {
        let function = ActorRef::from_fn(|_: u32| ());
        let me = ctx.me().clone();
        [
            ctx.stop_child(&child),
            // Once more, by another reference.
            ctx.stop_child(child.untyped().expect("an actor")),
            ctx.stop_child(&child.contramap(|(): ()| noting("never"))),
            ctx.stop_child(&strange),
            ctx.stop_child(&me),
            ctx.stop_child(&function),
        ]
    });
    assert_eq!(told, Ok([true, true, true, false, false, false]));
    wait_for_end(&stage, &young);
    run_turns();
    assert_eq!(query(&parent, move |_, ctx| ctx.stop_child(&young)), Ok(false), "it has ended");
    assert!(!parent.is_closed() && !stranger.is_closed());
    let mut notes: Vec<String> = stage.notes.try_iter().collect();
    notes.sort();
    // The watch stays.
    assert_eq!(notes, ["c Started 1", "c Stopped 1", "p Started 1", "p lost c", "s Started 1"]);
    stage.end(&["p Stopped 1", "s Stopped 1"]);
}

/// Calls what it overrides.
struct Dutiful(Sender<&'static str>);

impl Actor for Dutiful {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Err(Failure::msg("as told"))
    }
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        let notes = self.0.clone();
        ctx.actor("leaf").spawn(move || Leaf(notes.clone()))?;
        self.0.send("started")?;
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<()>) {
        let _ = self.0.send("stopped");
    }
    fn restarting(&mut self, failure: &Failure, ctx: &mut Context<()>) -> HandlerResult {
        self.0.send("restarting")?;
        self.default_restarting(failure, ctx)
    }
}

#[test]
fn an_override_of_restarting_can_do_what_the_default_does() {
    let stage = Stage::turns();
    let (notes, noted) = channel();
    let dutiful = stage.system.actor("dutiful").spawn(move || Dutiful(notes.clone())).unwrap();
    dutiful.tell(());
    let life: Vec<_> = (0..5).map(|_| noted.soon().unwrap()).collect();
    assert_eq!(life, ["started", "restarting", "stopped", "leaf stopped", "started"]);
    stage.end(&[]);
}
