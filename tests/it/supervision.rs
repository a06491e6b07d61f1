//! Failures and verdicts.

use crate::logged::{about, listen};
use crate::support::*;
use pointsman::FailureKind;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn always(directive: Directive) -> Strategy {
    Strategy::decide(move |_| directive)
}

#[test]
fn resume_keeps_the_state_and_loses_the_message_only() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p").strategy(Strategy::resume));
    let actor = child(&parent, &stage.role("a"));
    act(&actor, |puppet, _| {
        puppet.value = 7;
        panic!("as told")
    });
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(7));
    stage.end(&["a Started 1", "a Stopped 1", "p Started 1", "p Stopped 1"]);
}

#[test]
fn stop_ends_the_child_and_dead_letters_what_is_behind_the_failure() {
    let stage = Stage::threads("stop");
    let parent = stage.spawn(&stage.role("p").strategy(Strategy::stop));
    let actor = child(&parent, &stage.role("a"));
    let release = hold(&actor);
    fail(&actor);
    note(&actor, "never");
    drop(release);
    wait_for_end(&stage, &actor);
    assert_eq!(stage.system.ledger().dead_lettered, 1);
    stage.end(&["a Started 1", "a Stopped 1", "p Started 1", "p Stopped 1"]);
}

#[test]
fn kinds_of_failure_reach_the_decider_and_the_default_stops_kills() {
    let stage = Stage::turns();
    let kinds: Arc<Mutex<Vec<FailureKind>>> = Arc::default();
    let seen = kinds.clone();
    let parent = stage.spawn(&stage.role("p").strategy(move || {
        let seen = seen.clone();
        Strategy::decide(move |failure| {
            seen.lock().unwrap().push(failure.kind());
            Directive::Restart
        })
    }));
    let actor = child(&parent, &stage.role("a"));
    fail(&actor);
    act(&actor, |_, _| panic!("as told"));
    actor.untyped().unwrap().kill();
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
    assert_eq!(*kinds.lock().unwrap(), [FailureKind::Error, FailureKind::Panic, FailureKind::Killed]);
    // By the default a kill stops.
    let other = stage.spawn(&stage.role("b"));
    other.untyped().unwrap().kill();
    wait_for_end(&stage, &other);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_childs_own_strategy_wins_over_its_parents() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p").strategy(Strategy::stop));
    let role = stage.role("a");
    let actor = query(&parent, move |_, ctx| {
        ctx.actor("a").on_failure(Strategy::resume()).spawn(role.recipe()).unwrap()
    })
    .unwrap();
    act(&actor, |puppet, _| {
        puppet.value = 3;
        Err(Failure::msg("as told"))
    });
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(3));
    stage.end(&["a Started 1", "a Stopped 1", "p Started 1", "p Stopped 1"]);
}

#[test]
fn a_restart_waits_for_the_children_that_it_stops() {
    let stage = Stage::threads("waits");
    let actor = stage.spawn(&stage.role("a"));
    let slow = child(&actor, &stage.role("slow"));
    let release = hold(&slow);
    fail(&actor);
    note(&actor, "after the restart");
    stage.expect(&["a Started 1", "slow Started 1", "a Restarting 1"]);
    drop(release);
    stage.expect(&["slow Stopped 1", "a Restarted 2", "a after the restart"]);
    assert_eq!(query(&actor, |_, ctx| ctx.children().len()), Ok(0));
    stage.end(&["a Stopped 2"]);
}

#[test]
fn kept_children_are_restarted_with_their_parent() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a").keep_children());
    let kept = child(&actor, &stage.role("kept"));
    query(&kept, |puppet, _| puppet.value = 9).unwrap();
    fail(&actor);
    assert_eq!(query(&actor, |_, ctx| ctx.children().len()), Ok(1));
    stage.expect(&["a Started 1", "kept Started 1", "a Restarting 1", "a Restarted 2", "kept Restarting 1"]);
    stage.expect(&["kept Restarted 2"]);
    assert_eq!(query(&kept, |puppet, _| puppet.value), Ok(0));
    stage.end(&["a Stopped 2", "kept Stopped 2"]);
}

/// A parent whose verdict is held back until it is released.
fn undecided(stage: &Stage, directive: Directive) -> (ActorRef<Tell>, Sender<()>) {
    let (release, held) = channel();
    let held = Arc::new(Mutex::new(held));
    let parent = stage.spawn(&stage.role("p").strategy(move || held_back(&held, directive)));
    (parent, release)
}

fn held_back(held: &Arc<Mutex<Receiver<()>>>, directive: Directive) -> Strategy {
    let held = held.clone();
    Strategy::decide(move |_| {
        let _ = held.lock().unwrap().recv();
        directive
    })
}

#[test]
fn a_failed_actor_and_its_children_handle_nothing_before_the_verdict() {
    let stage = Stage::threads("suspended");
    let (parent, release) = undecided(&stage, Directive::Resume);
    let actor = child(&parent, &stage.role("a"));
    let grandchild = child(&actor, &stage.role("g"));
    fail(&actor);
    // The look at the load goes the way of suspension itself: actor, lane, child.
    wait_until(|| grandchild.load() == pointsman::actor::RecipientLoad::Suspended);
    assert_eq!(actor.load(), pointsman::actor::RecipientLoad::Suspended);
    note(&grandchild, "resumed");
    note(&actor, "resumed");
    assert_eq!((actor.queued(), grandchild.queued()), (Some(1), Some(1)));
    drop(release);
    let mut last = [stage.note(), stage.note(), stage.note(), stage.note(), stage.note()];
    last[3..].sort();
    assert_eq!(last, ["p Started 1", "a Started 1", "g Started 1", "a resumed", "g resumed"]);
    stage.end(&["a Stopped 1", "g Stopped 1", "p Stopped 1"]);
}

#[test]
fn a_child_born_to_a_suspended_parent_starts_suspended_and_so_do_its_children() {
    let stage = Stage::threads("born");
    let (parent, release) = undecided(&stage, Directive::Resume);
    let actor = child(&parent, &stage.role("a"));
    let builder = query(&actor, |_, ctx| ctx.actor("late")).unwrap();
    fail(&actor);
    wait_until(|| actor.load() == pointsman::actor::RecipientLoad::Suspended);
    // From outside, since the parent itself handles nothing now.
    let (sender, born) = channel();
    let grandchild = stage.role("g");
    let late = builder
        .spawn(
            stage
                .role("late")
                .started(move |ctx| {
                    let grandchild = ctx.actor("g").spawn(grandchild.recipe()).unwrap();
                    sender.send(grandchild).unwrap();
                })
                .recipe(),
        )
        .unwrap();
    let grandchild = born.soon().unwrap();
    fail(&grandchild);
    note(&late, "resumed");
    stage.expect(&["p Started 1", "a Started 1"]);
    let mut starts = [stage.note(), stage.note()];
    starts.sort();
    assert_eq!(starts, ["g Started 1", "late Started 1"]);
    assert_eq!((late.queued(), grandchild.queued()), (Some(1), Some(1)));
    drop(release);
    // The grandchild fails only now, and is restarted by its own parent, beside which it runs.
    let mut resumed = [stage.note(), stage.note(), stage.note()];
    resumed.sort_by_key(|note| note.starts_with("late"));
    assert_eq!(resumed, ["g Restarting 1", "g Restarted 2", "late resumed"]);
    stage.end(&["a Stopped 1", "g Stopped 2", "late Stopped 1", "p Stopped 1"]);
}

#[test]
fn a_child_is_born_suspended_as_often_as_its_parent() {
    let stage = Stage::threads("twice");
    let (top, release_top) = undecided(&stage, Directive::Resume);
    let (release_middle, held) = channel();
    let held = Arc::new(Mutex::new(held));
    let role = stage.role("middle").strategy(move || held_back(&held, Directive::Resume));
    let middle = child(&top, &role);
    let actor = child(&middle, &stage.role("a"));
    let builder = query(&actor, |_, ctx| ctx.actor("late")).unwrap();
    // By its own failure and by that of its parent.
    let release = hold_and_fail(&actor);
    fail(&middle);
    wait_until(|| middle.load() == pointsman::actor::RecipientLoad::Suspended);
    drop(release);
    wait_until(|| actor.load() == pointsman::actor::RecipientLoad::Suspended);
    let late = builder.spawn(stage.role("late").recipe()).unwrap();
    drop(release_top);
    drop(release_middle);
    assert_eq!(query(&late, |_, _| ()), Ok(()));
    assert_eq!(query(&actor, |_, _| ()), Ok(()));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn several_failures_at_once_are_each_undone_once() {
    for (directive, value) in [(Directive::Resume, 5), (Directive::Restart, 0)] {
        let stage = Stage::threads("several");
        let (top, release) = undecided(&stage, directive);
        let parent = child(&top, &stage.role("parent").keep_children().strategy(move || always(directive)));
        let children: Vec<_> = ["c0", "c1", "c2"].map(|name| child(&parent, &stage.role(name))).into();
        let holds: Vec<_> = children.iter().take(2).map(hold).collect();
        for actor in &children {
            act(actor, |puppet, _| {
                puppet.value = 5;
                panic!("as told")
            });
        }
        fail(&parent);
        wait_until(|| parent.load() == pointsman::actor::RecipientLoad::Suspended);
        drop(holds);
        drop(release);
        for actor in &children {
            assert_eq!(query(actor, |puppet, _| puppet.value), Ok(value), "{directive:?}");
            assert_ne!(actor.load(), pointsman::actor::RecipientLoad::Suspended);
        }
        assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
    }
}

#[test]
fn an_escalated_failure_is_judged_above_and_its_verdict_reaches_the_culprit() {
    let stage = Stage::turns();
    let top = stage.spawn(&stage.role("top").strategy(Strategy::resume));
    let middle = child(&top, &stage.role("middle").strategy(Strategy::escalate));
    let culprit = child(&middle, &stage.role("culprit"));
    let sibling = child(&middle, &stage.role("sibling"));
    for round in 1..4 {
        act(&culprit, move |puppet, _| {
            puppet.value = round;
            Err(Failure::msg("as told"))
        });
        assert_eq!(query(&culprit, |puppet, _| puppet.value), Ok(round));
        assert_eq!(query(&sibling, |puppet, _| puppet.value), Ok(0));
        assert_eq!(query(&middle, |puppet, _| puppet.value), Ok(0));
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[derive(Debug)]
struct Cause(u32);

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cause {}", self.0)
    }
}

impl std::error::Error for Cause {}

#[test]
fn an_escalated_failure_keeps_its_cause_and_is_told_of_the_parent() {
    let stage = Stage::turns();
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let judged = seen.clone();
    let top = stage.spawn(&stage.role("top").strategy(move || {
        let judged = judged.clone();
        Strategy::decide_for(move |child, failure| {
            let cause = failure.downcast_ref().map(|&Cause(number)| number);
            judged.lock().unwrap().push((child.path().to_string(), failure.kind(), cause));
            Directive::Resume
        })
    }));
    let middle = child(&top, &stage.role("middle").strategy(Strategy::escalate));
    let culprit = child(&middle, &stage.role("culprit"));
    act(&culprit, |_, _| Err(Cause(7).into()));
    assert_eq!(query(&culprit, |_, _| ()), Ok(()));
    assert_eq!(*seen.lock().unwrap(), [("/user/top/middle".to_owned(), FailureKind::Error, Some(7))]);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn an_escalated_restart_makes_the_parent_anew_and_stops_its_children() {
    let stage = Stage::turns();
    let top = stage.spawn(&stage.role("top"));
    let middle = child(&top, &stage.role("middle").strategy(Strategy::escalate));
    let culprit = child(&middle, &stage.role("culprit"));
    fail(&culprit);
    wait_for_end(&stage, &culprit);
    assert_eq!(query(&middle, |_, ctx| ctx.children().len()), Ok(0));
    stage.expect(&["top Started 1", "middle Started 1", "culprit Started 1"]);
    stage.expect(&["middle Restarting 1", "culprit Stopped 1", "middle Restarted 2"]);
    stage.end(&["middle Stopped 2", "top Stopped 1"]);
}

#[test]
fn what_is_escalated_to_the_root_ends_the_system() {
    let stage = Stage::turns_with(|builder| builder.supervision(Strategy::escalate()));
    let bystander = stage.spawn(&stage.role("b"));
    let actor = stage.spawn(&stage.role("a"));
    assert_eq!(query(&bystander, |puppet, _| puppet.value), Ok(0));
    fail(&actor);
    stage.system.wait_until_ended(LONG).unwrap();
    assert!(actor.is_closed() && bystander.is_closed());
    assert_eq!(stage.system.living_actors(), 0);
    assert!(stage.system.actor("c").spawn(stage.role("c").recipe()).is_err());
    stage.end(&["a Started 1", "a Stopped 1", "b Started 1", "b Stopped 1"]);
}

#[test]
fn a_decider_that_panics_stops_the_child_and_fails_the_parent() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p").strategy(|| Strategy::decide(|_| panic!("undecided"))));
    let actor = child(&parent, &stage.role("a"));
    let other = child(&parent, &stage.role("b"));
    assert_eq!(query(&other, |_, _| ()), Ok(()));
    fail(&actor);
    wait_for_end(&stage, &actor);
    wait_for_end(&stage, &other);
    assert_eq!(query(&parent, |_, ctx| ctx.children().len()), Ok(0));
    for _ in ["p Started 1", "a Started 1", "b Started 1"] {
        assert!(stage.note().ends_with("Started 1"));
    }
    let rest: Vec<String> = (0..4).map(|_| stage.note()).collect();
    assert!(rest.contains(&"p Restarting 1".to_owned()) && rest.contains(&"p Restarted 2".to_owned()));
    stage.end(&["p Stopped 2"]);
}

fn restarts_until_the_end(strategy: Strategy, advance: &[u64]) -> usize {
    let stage = Stage::turns();
    let clock: ManualClock = stage.clock.clone();
    let restarts = Arc::new(AtomicUsize::new(0));
    let counted = restarts.clone();
    let role = stage.role("a").on_hook(move |hook, _| {
        if hook == Hook::Restarted {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    });
    let actor = stage.system.actor("a").on_failure(strategy).spawn(role.recipe()).unwrap();
    for seconds in advance {
        clock.advance(Duration::from_secs(*seconds));
        fail(&actor);
        if query(&actor, |_, _| ()).is_err() {
            break;
        }
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
    restarts.load(Ordering::SeqCst)
}

#[test]
fn limits_count_for_life_or_in_windows_of_the_systems_clock() {
    let minute = Duration::from_secs(60);
    assert_eq!(restarts_until_the_end(Strategy::default().max_restarts(0), &[1, 1]), 0);
    assert_eq!(restarts_until_the_end(Strategy::default().max_restarts(2), &[1, 1000, 1000, 1]), 2);
    assert_eq!(
        restarts_until_the_end(Strategy::default().max_restarts(2).within(minute), &[0, 30, 30, 1]),
        2
    );
    assert_eq!(
        restarts_until_the_end(
            Strategy::default().max_restarts(2).within(minute),
            &[0, 30, 31, 30, 31, 30, 1]
        ),
        6
    );
    assert_eq!(restarts_until_the_end(Strategy::default().within(minute), &[0, 61, 60]), 2);
    let month = Duration::from_secs(30 * 24 * 3600);
    assert_eq!(
        restarts_until_the_end(Strategy::default().max_restarts(1).within(month), &[0, 29 * 24 * 3600]),
        1
    );
}

#[test]
fn failing_siblings_do_not_share_a_limit() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p").strategy(|| Strategy::default().max_restarts(1)));
    for name in ["a", "b", "c"] {
        let actor = child(&parent, &stage.role(name));
        fail(&actor);
        assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_limit_ends_with_its_child() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p").strategy(|| Strategy::default().max_restarts(1)));
    for _ in 0..3 {
        let actor = child(&parent, &stage.role("a"));
        watch(&parent, &actor);
        fail(&actor);
        assert_eq!(query(&actor, |_, _| ()), Ok(()), "one restart each");
        fail(&actor);
        while stage.note() != "p lost a" {}
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

/// A parent of `a`, `b` and `c` whose children share their fate.
fn shared_fate(stage: &Stage, strategy: fn() -> Strategy) -> (ActorRef<Tell>, [ActorRef<Tell>; 3]) {
    let parent = stage.spawn(&stage.role("p").strategy(move || strategy().all_for_one()));
    let children = ["a", "b", "c"].map(|name| child(&parent, &stage.role(name)));
    for child in &children {
        query(child, |puppet, _| puppet.value = 5).unwrap();
    }
    (parent, children)
}

#[test]
fn all_for_one_a_restart_is_one_of_all_children_and_loses_only_the_failing_message() {
    let stage = Stage::threads("all");
    let (parent, children) = shared_fate(&stage, Strategy::default);
    let releases: Vec<_> = children.iter().skip(1).map(hold).collect();
    children.iter().skip(1).for_each(|child| note(child, "queued"));
    fail(&children[0]);
    wait_until(|| children[0].load() == pointsman::actor::RecipientLoad::Idle);
    drop(releases);
    for child in &children {
        assert_eq!(query(child, |puppet, _| puppet.value), Ok(0));
    }
    assert_eq!(query(&parent, |_, ctx| ctx.children().len()), Ok(3));
    let notes: Vec<String> = stage.notes.try_iter().collect();
    for name in ["a", "b", "c"] {
        let own: Vec<_> = notes.iter().filter(|note| note.starts_with(name)).map(|note| &note[2..]).collect();
        let mut expected = vec!["Started 1", "Restarting 1", "Restarted 2"];
        if name != "a" {
            expected.push("queued");
        }
        assert_eq!(own, expected, "{name}");
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn all_for_one_no_sibling_handles_a_message_with_its_old_state_once_the_failed_child_has_a_new_one() {
    let stage = Stage::turns();
    let sibling: Arc<Mutex<Option<ActorRef<Tell>>>> = Arc::default();
    let parent = stage.spawn(&stage.role("p").strategy(|| Strategy::default().all_for_one()));
    let known = sibling.clone();
    let failing = child(
        &parent,
        &stage.role("a").on_hook(move |hook, _| {
            if let (Hook::Restarted, Some(sibling)) = (hook, &*known.lock().unwrap()) {
                act(sibling, |puppet, _| {
                    puppet.note(format_args!("with {}", puppet.value));
                    Ok(())
                });
            }
            Ok(())
        }),
    );
    for _ in 0..200 {
        let other = child(&parent, &stage.role("b"));
        query(&other, |puppet, _| puppet.value = 5).unwrap();
        *sibling.lock().unwrap() = Some(other.clone());
        fail(&failing);
        let told = std::iter::repeat_with(|| stage.note()).find(|note| note.starts_with("b with"));
        assert_eq!(told.as_deref(), Some("b with 0"));
        other.stop();
        watch(&parent, &other);
        while stage.note() != "p lost b" {}
    }
    *sibling.lock().unwrap() = None;
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn all_for_one_a_stop_is_one_of_all_children() {
    let stage = Stage::turns();
    let (parent, children) = shared_fate(&stage, Strategy::stop);
    fail(&children[1]);
    children.iter().for_each(|child| wait_for_end(&stage, child));
    wait_until(|| query(&parent, |_, ctx| ctx.children().len()) == Ok(0));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn all_for_one_resume_is_the_failing_childs_alone() {
    let stage = Stage::turns();
    let (_parent, children) = shared_fate(&stage, Strategy::resume);
    fail(&children[2]);
    for child in &children {
        assert_eq!(query(child, |puppet, _| puppet.value), Ok(5));
    }
    let notes: Vec<String> = stage.notes.try_iter().collect();
    assert!(notes.iter().all(|note| note.ends_with("Started 1")), "{notes:?}");
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn all_for_one_a_restart_counts_for_each_child_and_beyond_the_limit_all_stop() {
    let stage = Stage::turns();
    let (_parent, children) = shared_fate(&stage, || Strategy::default().max_restarts(1));
    fail(&children[0]);
    for child in &children {
        assert_eq!(query(child, |puppet, _| puppet.value), Ok(0));
    }
    fail(&children[1]);
    children.iter().for_each(|child| wait_for_end(&stage, child));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn all_for_one_siblings_that_fail_at_once_are_all_up_in_the_end() {
    for _ in 0..50 {
        let stage = Stage::threads("allfail");
        let (_parent, children) = shared_fate(&stage, Strategy::default);
        let releases: Vec<_> = children.iter().map(hold).collect();
        children.iter().for_each(fail);
        drop(releases);
        for child in &children {
            assert_eq!(query(child, |puppet, _| puppet.value), Ok(0));
        }
        wait_until(|| children.iter().all(|child| child.load() == pointsman::actor::RecipientLoad::Idle));
        assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
    }
}

#[test]
fn a_decider_may_ask_which_child_has_failed() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p").strategy(|| {
        Strategy::decide_for(|child, _| match child.path().name() {
            "kept" => Directive::Resume,
            _ => Directive::Restart,
        })
    }));
    for (name, value) in [("kept", 5), ("renewed", 0)] {
        let actor = child(&parent, &stage.role(name));
        query(&actor, |puppet, _| puppet.value = 5).unwrap();
        fail(&actor);
        assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(value), "{name}");
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

/// Has one child, and becomes lenient when told to.
struct Boss {
    lenient: bool,
    child: Role,
    born: Sender<ActorRef<Tell>>,
}

impl Actor for Boss {
    type Message = ReplyTo<()>;
    fn started(&mut self, ctx: &mut Context<ReplyTo<()>>) -> HandlerResult {
        self.born.send(ctx.actor("a").spawn(self.child.recipe())?)?;
        Ok(())
    }
    fn receive(&mut self, done: ReplyTo<()>, _: &mut Context<ReplyTo<()>>) -> HandlerResult {
        self.lenient = true;
        let _ = done.send(());
        Ok(())
    }
    fn supervision(&self) -> Strategy {
        if self.lenient { Strategy::resume() } else { Strategy::default() }
    }
}

#[test]
fn the_verdict_goes_by_the_parents_state_at_the_failure() {
    let stage = Stage::turns();
    let (born, births) = channel();
    let role = stage.role("a");
    let recipe = move || Boss { lenient: false, child: role.clone(), born: born.clone() };
    let boss = stage.system.actor("boss").spawn(recipe).unwrap();
    let actor = births.soon().unwrap();
    let value_after_a_failure = || {
        query(&actor, |puppet, _| puppet.value = 5).unwrap();
        fail(&actor);
        query(&actor, |puppet, _| puppet.value)
    };
    assert_eq!(value_after_a_failure(), Ok(0));
    boss.ask_with(|done| done).wait().unwrap();
    assert_eq!(value_after_a_failure(), Ok(5));
    stage.end(&["a Restarted 2", "a Restarting 1", "a Started 1", "a Stopped 2"]);
}

#[test]
fn the_failure_of_a_child_that_has_ended_meanwhile_is_not_judged() {
    let stage = Stage::threads("ended");
    let judged = Arc::new(AtomicUsize::new(0));
    let count = judged.clone();
    let parent = stage.spawn(&stage.role("p").strategy(move || {
        let count = count.clone();
        Strategy::decide(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            Directive::Restart
        })
    }));
    // Keeps the parent's restart waiting.
    let slow = child(&parent, &stage.role("slow"));
    let failing = child(&parent, &stage.role("failing"));
    let (release_slow, release_failing) = (hold(&slow), hold_and_fail(&failing));
    fail(&parent);
    while stage.note() != "p Restarting 1" {}
    drop(release_failing);
    wait_for_end(&stage, &failing);
    drop(release_slow);
    assert_eq!(query(&parent, |_, ctx| ctx.children().len()), Ok(0));
    assert_eq!(judged.load(Ordering::SeqCst), 0);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_decider_that_panics_loses_no_control_that_waits_behind_the_failure() {
    let stage = Stage::threads("behind");
    let parent = stage.spawn(&stage.role("p").strategy(|| Strategy::decide(|_| panic!("undecided"))));
    let actor = child(&parent, &stage.role("a"));
    let watcher = stage.spawn(&stage.role("w"));
    let release = hold(&parent);
    fail(&actor);
    wait_until(|| actor.load() == pointsman::actor::RecipientLoad::Suspended);
    // In the lane of the parent, behind the notice of the failure.
    watch(&watcher, &parent);
    drop(release);
    assert_eq!(query(&parent, |_, _| ()), Ok(()));
    parent.stop();
    while stage.note() != "w lost p" {}
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_failure_of_the_user_guardian_ends_the_system() {
    let stage = Stage::turns_with(|builder| builder.supervision(Strategy::decide(|_| panic!("undecided"))));
    let bystander = stage.spawn(&stage.role("b"));
    let actor = stage.spawn(&stage.role("a"));
    fail(&actor);
    stage.system.wait_until_ended(LONG).unwrap();
    assert!(actor.is_closed() && bystander.is_closed());
    stage.end(&["a Started 1", "a Stopped 1", "b Started 1", "b Stopped 1"]);
}

#[test]
fn verdicts_are_logged_by_their_gravity_unless_they_are_to_be_quiet() {
    listen();
    let stage = Stage::turns();
    let logged = |name: &'static str, strategy: fn() -> Strategy| {
        let parent = stage.spawn(&stage.role(name).strategy(strategy));
        let actor = child(&parent, &stage.role("a"));
        fail(&actor);
        // The verdict is logged before it is sent.
        let _ = query(&actor, |_, _| ());
        about(&format!("/user/{name}/a"))
    };
    let error = |text: &str| vec![(log::Level::Error, text.to_owned())];
    assert_eq!(logged("log-restart", Strategy::default), error("failed and is restarted: as told"));
    assert_eq!(logged("log-stop", Strategy::stop), error("failed and is stopped: as told"));
    let beyond = error("failed beyond its limit of restarts and is stopped: as told");
    assert_eq!(logged("log-limit", || Strategy::default().max_restarts(0)), beyond);
    let warning = vec![(log::Level::Warn, "failed and goes on: as told".to_owned())];
    assert_eq!(logged("log-resume", Strategy::resume), warning);
    assert_eq!(logged("log-escalate", Strategy::escalate), []);
    assert_eq!(logged("log-quiet", || Strategy::default().quiet()), []);
    // So are failures of hooks that change nothing.
    let hooks = stage.role("log-hooks").on_hook(|hook, _| match hook {
        Hook::Restarting => Err(Failure::msg("in a hook")),
        Hook::Stopped => panic!("in a hook"),
        _ => Ok(()),
    });
    let actor = stage
        .system
        .actor("log-hooks")
        .on_failure(Strategy::default().quiet())
        .spawn(hooks.recipe())
        .unwrap();
    fail(&actor);
    assert_eq!(query(&actor, |_, _| ()), Ok(()));
    actor.stop();
    wait_for_end(&stage, &actor);
    let own: Vec<String> = about("/user/log-hooks").into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        own,
        [
            "failed in `restarting` and goes on with it: in a hook",
            "failed in `stopped` and goes on with it: panicked: in a hook"
        ]
    );
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

/// Fails at every message, and tells with what it is restarted.
struct Told(&'static str, std::sync::mpsc::Sender<String>);
impl Actor for Told {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Err(Failure::msg("as told"))
    }
    fn restarting(&mut self, failure: &Failure, _: &mut Context<()>) -> HandlerResult {
        self.1.send(format!("{}: {failure}", self.0))?;
        Ok(())
    }
}

#[test]
fn who_shares_a_fate_is_told_whose() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p").strategy(|| Strategy::default().all_for_one()));
    let (sender, causes) = std::sync::mpsc::channel();
    let culprit = query(&parent, move |_, ctx| {
        let [culprit, _] = ["one", "two"].map(|name| {
            let sender = sender.clone();
            ctx.actor(name).spawn(move || Told(name, sender.clone())).expect("the name is free")
        });
        culprit
    });
    culprit.unwrap().tell(());
    let mut told: Vec<String> = (0..2).map(|_| causes.soon().expect("a restart")).collect();
    told.sort();
    assert_eq!(told, ["one: as told", "two: sibling /user/p/one failed: as told"]);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}
