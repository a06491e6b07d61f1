//! Failures and verdicts.

use crate::support::*;
use pointsman::prelude::*;
use pointsman::{FailureKind, ManualClock};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn always(directive: Directive) -> Strategy {
    Strategy::decide(move |_| directive)
}

#[test]
fn resume_keeps_the_state_and_loses_the_message_only() {
    let stage = Stage::new("resume");
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
    let stage = Stage::new("stop");
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
fn kinds_of_failure_reach_the_decider_and_the_default_stops_kills_and_pacts() {
    let stage = Stage::new("kinds");
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
    actor.any().unwrap().kill();
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
    assert_eq!(*kinds.lock().unwrap(), [FailureKind::Error, FailureKind::Panic, FailureKind::Killed]);
    // By the default a kill stops.
    let other = stage.spawn(&stage.role("b"));
    other.any().unwrap().kill();
    wait_for_end(&stage, &other);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_childs_own_strategy_wins_over_its_parents() {
    let stage = Stage::new("own");
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
    let stage = Stage::new("waits");
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
    let stage = Stage::new("kept");
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
fn undecided(stage: &Stage, directive: Directive) -> (ActorRef<Tell>, std::sync::mpsc::Sender<()>) {
    let (release, held) = std::sync::mpsc::channel();
    let held = Arc::new(Mutex::new(held));
    let parent = stage.spawn(&stage.role("p").strategy(move || {
        let held = held.clone();
        Strategy::decide(move |_| {
            let _ = held.lock().unwrap().recv();
            directive
        })
    }));
    (parent, release)
}

#[test]
fn a_failed_actor_and_its_children_handle_nothing_before_the_verdict() {
    let stage = Stage::new("suspended");
    let (parent, release) = undecided(&stage, Directive::Resume);
    let actor = child(&parent, &stage.role("a"));
    let grandchild = child(&actor, &stage.role("g"));
    fail(&actor);
    // The look at the load goes the way of suspension itself: actor, lane, child.
    wait_until(|| grandchild.load() == pointsman::Load::Suspended);
    assert_eq!(actor.load(), pointsman::Load::Suspended);
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
    let stage = Stage::new("born");
    let (parent, release) = undecided(&stage, Directive::Resume);
    let actor = child(&parent, &stage.role("a"));
    let builder = query(&actor, |_, ctx| ctx.actor("late")).unwrap();
    fail(&actor);
    wait_until(|| actor.load() == pointsman::Load::Suspended);
    // From outside, since the parent itself handles nothing now.
    let (sender, born) = std::sync::mpsc::channel();
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
    let grandchild = born.recv_timeout(LONG).unwrap();
    fail(&grandchild);
    note(&late, "resumed");
    stage.expect(&["p Started 1", "a Started 1"]);
    let mut starts = [stage.note(), stage.note()];
    starts.sort();
    assert_eq!(starts, ["g Started 1", "late Started 1"]);
    assert_eq!((late.queued(), grandchild.queued()), (Some(1), Some(1)));
    drop(release);
    stage.expect(&["late resumed"]);
    // It fails only now, and is restarted by its own parent.
    stage.expect(&["g Restarting 1", "g Restarted 2"]);
    stage.end(&["a Stopped 1", "g Stopped 2", "late Stopped 1", "p Stopped 1"]);
}

#[test]
fn several_failures_at_once_are_each_undone_once() {
    for (directive, value) in [(Directive::Resume, 5), (Directive::Restart, 0)] {
        let stage = Stage::new("several");
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
        wait_until(|| parent.load() == pointsman::Load::Suspended);
        drop(holds);
        drop(release);
        for actor in &children {
            assert_eq!(query(actor, |puppet, _| puppet.value), Ok(value), "{directive:?}");
            assert_ne!(actor.load(), pointsman::Load::Suspended);
        }
        assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
    }
}

#[test]
fn an_escalated_failure_is_judged_above_and_its_verdict_reaches_the_culprit() {
    let stage = Stage::new("escalate");
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

#[test]
fn an_escalated_restart_makes_the_parent_anew_and_stops_its_children() {
    let stage = Stage::new("escalate");
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
    let stage = Stage::with("root", |builder| builder.supervision(Strategy::escalate()));
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
    let stage = Stage::new("decider");
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

fn restarts_until_the_end(limit: Restart, advance: &[u64]) -> usize {
    let stage = Stage::new("limits");
    let clock: ManualClock = stage.clock.clone();
    let restarts = Arc::new(AtomicUsize::new(0));
    let counted = restarts.clone();
    let role = stage.role("a").on_hook(move |hook, _| {
        if hook == Hook::Restarted {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    });
    let actor = stage.system.actor("a").on_failure(limit).spawn(role.recipe()).unwrap();
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
    assert_eq!(restarts_until_the_end(Restart::up_to(0), &[1, 1]), 0);
    assert_eq!(restarts_until_the_end(Restart::up_to(2), &[1, 1000, 1000, 1]), 2);
    assert_eq!(restarts_until_the_end(Restart::up_to(2).within(minute), &[0, 30, 30, 1]), 2);
    assert_eq!(restarts_until_the_end(Restart::up_to(2).within(minute), &[0, 30, 31, 30, 31, 30, 1]), 6);
    assert_eq!(restarts_until_the_end(Restart::always().within(minute), &[0, 61, 60]), 2);
    let month = Duration::from_secs(30 * 24 * 3600);
    assert_eq!(restarts_until_the_end(Restart::up_to(1).within(month), &[0, 29 * 24 * 3600]), 1);
}

#[test]
fn failing_siblings_do_not_share_a_limit() {
    let stage = Stage::new("siblings");
    let parent = stage.spawn(&stage.role("p").strategy(|| Restart::up_to(1).into()));
    for name in ["a", "b", "c"] {
        let actor = child(&parent, &stage.role(name));
        fail(&actor);
        assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}
