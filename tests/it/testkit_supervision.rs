//! Failures and verdicts, in many courses.

use crate::support::{Hook, Role, Tell, act, child, fail, note, query};
use pointsman::actor::RecipientLoad;
use pointsman::prelude::*;
use pointsman::testkit::TestSystem;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const SEEDS: u64 = 20;

fn spawn(system: &TestSystem, role: &Role, name: &str) -> ActorRef<Tell> {
    system.actor(name).spawn(role.recipe()).expect("the name is free")
}

/// A parent `p` with this strategy, and its child `a`.
fn family(
    system: &TestSystem,
    log: &Sender<String>,
    strategy: impl Fn() -> Strategy + Send + Sync + 'static,
) -> (ActorRef<Tell>, ActorRef<Tell>) {
    let parent = spawn(system, &Role::new("p", log).strategy(strategy), "p");
    let actor = child(&parent, &Role::new("a", log));
    system.run_until_idle();
    (parent, actor)
}

fn all(notes: &Receiver<String>) -> Vec<String> {
    notes.try_iter().collect()
}

#[test]
fn a_restart_loses_the_state_and_the_failed_message_and_nothing_else() {
    TestSystem::for_seeds(SEEDS, |system| {
        let (log, notes) = channel();
        let (parent, actor) = family(system, &log, || Strategy::default().max_restarts(10));
        act(&actor, |puppet, _| {
            puppet.value = 5;
            Ok(())
        });
        note(&actor, "before");
        fail(&actor);
        note(&actor, "behind");
        // While the verdict is on its way, others send, too.
        (0..5).for_each(|_| _ = system.step());
        note(&actor, "later");
        system.run_until_idle();
        assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
        let seen = all(&notes);
        assert_eq!(
            seen,
            [
                "p Started 1",
                "a Started 1",
                "a before",
                "a Restarting 1",
                "a Restarted 2",
                "a behind",
                "a later"
            ]
        );
        parent.stop();
        system.run_until_idle();
        assert_eq!(system.ledger().dead_lettered, 0);
    });
}

#[test]
fn a_suspended_actor_handles_nothing_before_the_verdict() {
    TestSystem::for_seeds(SEEDS, |system| {
        let (log, notes) = channel();
        let (parent, actor) = family(system, &log, Strategy::resume);
        let inner = child(&actor, &Role::new("x", &log));
        system.run_until_idle();
        all(&notes);
        // The parent is kept busy: each turn of its own before the verdict lets the others run.
        fail(&actor);
        note(&actor, "a after");
        note(&inner, "x after");
        note(&parent, "p during");
        system.run_until_idle();
        let mut seen = all(&notes);
        seen.sort();
        assert_eq!(seen, ["a a after", "p p during", "x x after"]);
        parent.stop();
    });
}

#[test]
fn an_actor_that_is_suspended_twice_handles_nothing_before_both_are_undone() {
    /// Says that it judges; what `passed` fails with is passed on.
    fn judge(role: Role, name: &'static str, log: &Sender<String>) -> Role {
        let log = log.clone();
        role.strategy(move || {
            let log = log.clone();
            Strategy::decide_for(move |child, _| {
                let _ = log.send(format!("{name} judges"));
                if child.path().name() == "passed" { Directive::Escalate } else { Directive::Resume }
            })
        })
    }
    let mut twice = 0;
    TestSystem::for_seeds(SEEDS, |system| {
        let (log, notes) = channel();
        let top = spawn(system, &judge(Role::new("top", &log), "top", &log), "top");
        let parent = child(&top, &judge(Role::new("p", &log), "p", &log));
        let [passed, actor] = ["passed", "a"].map(|name| child(&parent, &Role::new(name, &log)));
        system.run_until_idle();
        all(&notes);
        fail(&passed);
        fail(&actor);
        note(&actor, "after");
        let both = [&passed, &actor];
        while !both.iter().all(|actor| actor.load() == RecipientLoad::Suspended) && system.step() {}
        // The parent judges both in one turn, unless it had one before: then what is passed on suspends the other too.
        let mut seen = all(&notes);
        if seen.is_empty() {
            while system.step() {
                seen.extend(notes.try_iter());
                let judged = seen.iter().any(|note| note == "top judges");
                assert!(
                    judged || actor.load() == RecipientLoad::Suspended,
                    "senders prefer others so long: {seen:?}"
                );
            }
            assert_eq!(seen, ["p judges", "p judges", "top judges", "a after"]);
            twice += 1;
        }
        system.run_until_idle();
        top.stop();
    });
    assert!(twice > 0, "the parent had a turn in between with each seed");
}

#[test]
fn more_failures_than_the_window_allows_stop_the_child() {
    TestSystem::for_seeds(SEEDS, |system| {
        let second = Duration::from_secs(1);
        let (log, _notes) = channel();
        let (parent, actor) =
            family(system, &log, || Strategy::default().max_restarts(2).within(Duration::from_secs(1)));
        let probe = system.probe::<()>();
        probe.watch(&actor);
        for _ in 0..2 {
            fail(&actor);
            fail(&actor);
            probe.expect_none();
            // The window that the first failure opened is over then.
            system.advance(second + Duration::from_millis(1));
        }
        (0..3).for_each(|_| fail(&actor));
        probe.expect_terminated(&actor);
        parent.stop();
    });
}

#[test]
fn an_escalated_failure_restarts_the_whole_branch_once() {
    TestSystem::for_seeds(SEEDS, |system| {
        let (log, notes) = channel();
        let top = spawn(system, &Role::new("t", &log).strategy(|| Strategy::default().max_restarts(3)), "t");
        let middle = child(&top, &Role::new("m", &log).strategy(Strategy::escalate).keep_children());
        let leaves = ["x", "y"].map(|name| child(&middle, &Role::new(name, &log)));
        system.run_until_idle();
        all(&notes);
        fail(&leaves[0]);
        leaves.iter().for_each(|leaf| note(leaf, "after"));
        system.run_until_idle();
        let mut seen = all(&notes);
        let place = |text: &str| seen.iter().position(|note| note == text).expect(text);
        // The parent's new state is there before its children are made anew.
        assert!(place("m Restarted 2") < place("x Restarted 2"), "{seen:?}");
        assert!(place("x Restarted 2") < place("x after"), "{seen:?}");
        seen.sort();
        assert_eq!(
            seen.iter().filter(|note| !note.contains("after")).collect::<Vec<_>>(),
            [
                "m Restarted 2",
                "m Restarting 1",
                "x Restarted 2",
                "x Restarting 1",
                "y Restarted 2",
                "y Restarting 1"
            ]
        );
        assert_eq!(seen.iter().filter(|note| note.contains("after")).count(), 2);
        top.stop();
    });
}

#[test]
fn failures_of_many_children_at_once_are_judged_each_by_itself() {
    TestSystem::for_seeds(SEEDS, |system| {
        let (log, notes) = channel();
        let parent =
            spawn(system, &Role::new("p", &log).strategy(|| Strategy::default().max_restarts(1)), "p");
        let names = ["a", "b", "c", "d", "e"];
        let children = names.map(|name| child(&parent, &Role::new(name, &log)));
        system.run_until_idle();
        all(&notes);
        for round in 0..2 {
            children.iter().for_each(fail);
            (0..7).for_each(|_| _ = system.step());
            children.iter().for_each(|child| note(child, "on"));
            system.run_until_idle();
            let seen = all(&notes);
            let count = |what: &str| seen.iter().filter(|note| note.ends_with(what)).count();
            match round {
                // Each had its one restart.
                0 => assert_eq!((count("Restarted 2"), count(" on"), seen.len()), (5, 5, 15), "{seen:?}"),
                _ => assert_eq!(count("Stopped 2"), 5, "{seen:?}"),
            }
        }
        parent.stop();
    });
}

#[test]
fn a_failure_of_the_constructor_stops_before_any_message() {
    TestSystem::for_seeds(SEEDS, |system| {
        let (log, notes) = channel();
        let role = Role::new("a", &log).on_hook(|hook, _| match hook {
            Hook::Started => Err(Failure::msg("as told")),
            _ => Ok(()),
        });
        let probe = system.probe::<()>();
        let actor = spawn(system, &role, "a");
        probe.watch(&actor);
        note(&actor, "never");
        probe.expect_terminated(&actor);
        assert_eq!(all(&notes), ["a Started 1"]);
        assert_eq!(system.ledger().dead_lettered, 1);
    });
}

#[test]
fn every_watcher_gets_one_notice_however_the_end_and_the_watch_meet() {
    TestSystem::for_seeds(3 * SEEDS, |system| {
        let (log, notes) = channel();
        let victim = spawn(system, &Role::new("victim", &log), "victim");
        let watchers = ["w1", "w2", "w3"].map(|name| spawn(system, &Role::new(name, &log), name));
        let watched = victim.untyped().expect("an actor");
        for watcher in &watchers {
            let watched = watched.clone();
            act(watcher, move |_, ctx| {
                let _ = ctx.watch(&watched);
                Ok(())
            });
        }
        // Somewhere among the watches.
        let last = watchers[2].clone();
        act(&victim, move |_, ctx| {
            last.tell(Tell::new(|_, ctx| {
                let itself = ctx.me().clone();
                let _ = ctx.watch(&itself);
                Ok(())
            }));
            ctx.stop();
            Ok(())
        });
        system.run_until_idle();
        let mut lost: Vec<String> = notes.try_iter().filter(|note| note.contains("lost")).collect();
        lost.sort();
        assert_eq!(lost, ["w1 lost victim", "w2 lost victim", "w3 lost victim"]);
        watchers.iter().for_each(ActorRef::stop);
    });
}
