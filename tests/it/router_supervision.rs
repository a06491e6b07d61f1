//! What happens when routees fail.

use crate::router_support::*;
use crate::support::*;
use pointsman::FailureKind;
use pointsman::prelude::*;
use pointsman::testkit::TestSystem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// A parent that judges the router as it is told, and what it was told of.
fn parent(stage: &Stage, judge: impl Fn(&Failure) -> Directive + Send + Sync + 'static) -> ActorRef<Tell> {
    let judge = Arc::new(judge);
    let strategy = move || {
        let judge = judge.clone();
        Strategy::decide(move |failure| judge(failure)).quiet()
    };
    stage.spawn(&stage.role("parent").keep_children().strategy(strategy))
}

/// A pool below a parent, and how many states its routees had.
fn pool_below(parent: &ActorRef<Tell>, size: usize) -> (Router<u64>, Got, Arc<AtomicUsize>) {
    let (make, got) = workers();
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let router = query(parent, move |_, ctx| {
        let recipe = move |ctx: &mut Context<u64>| {
            counted.fetch_add(1, Ordering::SeqCst);
            make(ctx)
        };
        ctx.router("pool").pool(size, recipe).on_failure(Strategy::escalate()).spawn().unwrap()
    });
    (router.unwrap(), got, made)
}

fn end(stage: Stage) {
    let ledger = stage.system.shutdown(LONG).expect("nothing is stuck");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
}

#[test]
fn by_default_the_failing_routee_alone_is_restarted_in_its_place() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let recipe = move |ctx: &mut Context<u64>| {
        counted.fetch_add(1, Ordering::SeqCst);
        make(ctx)
    };
    let router = system.router("pool").pool(3, recipe).spawn().unwrap();
    let routees = router.routees().unwrap();
    routees[1].tell(FAIL);
    routees[1].tell(1u64);
    system.run_until_idle();
    assert_eq!(made.load(Ordering::SeqCst), 4, "one more state");
    assert_eq!(got.try_iter().collect::<Vec<_>>(), [(1, FAIL), (1, 1)], "same mailbox, same number");
    assert_eq!(router.routees().unwrap(), routees);
    router.drain().unwrap();
    system.finish();
}

#[test]
fn an_escalated_failure_restarts_every_routee_in_its_place() {
    let stage = Stage::threads("escalate");
    let (causes, seen) = channel();
    let parent = parent(&stage, move |failure| {
        causes.send(failure.to_string()).unwrap();
        Directive::Restart
    });
    let (router, got, made) = pool_below(&parent, 3);
    let routees = router.routees().unwrap();
    routees[0].tell(FAIL);
    routees[0].tell(7u64);
    assert_eq!(seen.recv_timeout(LONG).unwrap(), "as told", "the head fails with the same cause");
    wait_until(|| made.load(Ordering::SeqCst) == 6);
    assert_eq!(router.routees().unwrap(), routees);
    router.broadcast(1u64);
    assert_eq!(shares(&got, 5), [(0, 3), (1, 1), (2, 1)].into());
    assert!(seen.try_recv().is_err() && made.load(Ordering::SeqCst) == 6);
    end(stage);
}

#[test]
fn an_escalated_failure_that_is_resumed_costs_no_state_and_one_that_is_stopped_ends_all() {
    for directive in [Directive::Resume, Directive::Stop] {
        let stage = Stage::threads("escalate");
        let parent = parent(&stage, move |_| directive);
        let (router, got, made) = pool_below(&parent, 3);
        let routees = router.routees().unwrap();
        routees[2].tell(FAIL);
        assert_eq!(got.recv_timeout(LONG), Ok((2, FAIL)));
        if directive == Directive::Stop {
            wait_until(|| router.is_closed() && routees.iter().all(ActorRef::is_closed));
        } else {
            router.broadcast(1u64);
            assert_eq!(shares(&got, 3), [(0, 1), (1, 1), (2, 1)].into());
            assert_eq!(made.load(Ordering::SeqCst), 3);
            // Pills arrive after that.
            router.poison_routees();
            wait_until(|| router.is_closed());
        }
        end(stage);
    }
}

#[test]
fn a_routee_that_cannot_be_made_is_stopped_unless_a_decider_says_otherwise() {
    for tries in [1, 3] {
        let system = TestSystem::new();
        let (make, got) = workers();
        let made = Arc::new(AtomicUsize::new(0));
        let counted = made.clone();
        let recipe = move |ctx: &mut Context<u64>| -> Result<Worker, Failure> {
            if ctx.routee_index() == 1 && counted.fetch_add(1, Ordering::SeqCst) < 2 {
                return Err(Failure::msg("not yet"));
            }
            Ok(make(ctx))
        };
        let mut plan = system.router("pool").pool(3, recipe);
        if tries == 3 {
            plan = plan.on_failure(Strategy::decide(|failure| {
                assert_eq!(failure.kind(), FailureKind::Initialization);
                Directive::Restart
            }));
        }
        let router = plan.spawn().unwrap();
        system.run_until_idle();
        assert_eq!(made.load(Ordering::SeqCst), tries);
        router.broadcast(1u64);
        system.run_until_idle();
        let numbers: Vec<usize> = got.try_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers.len(), if tries == 3 { 3 } else { 2 }, "{numbers:?}");
        router.drain().unwrap();
        system.finish();
    }
}

/// Several routees fail at once, in many rounds, and nobody stays suspended.
#[test]
fn suspensions_are_balanced_when_routees_fail_at_once() {
    const ROUTEES: usize = 6;
    const ROUNDS: u64 = 150;
    let stage = Stage::threads("storm");
    let judged = AtomicUsize::new(0);
    let parent = parent(&stage, move |_| match judged.fetch_add(1, Ordering::Relaxed) % 3 {
        0 => Directive::Resume,
        _ => Directive::Restart,
    });
    let (router, got, _) = pool_below(&parent, ROUTEES);
    let routees = router.routees().unwrap();
    for round in 0..ROUNDS {
        let senders: Vec<_> = (0..3)
            .map(|thread| {
                let routees = routees.clone();
                std::thread::spawn(move || {
                    for (number, routee) in routees.iter().enumerate() {
                        if !(number + thread + round as usize).is_multiple_of(3) {
                            routee.tell(FAIL);
                        }
                    }
                })
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        routees.iter().for_each(|routee| routee.tell(round));
        let mut answers = 0;
        while answers < ROUTEES {
            let (_, message) = got.recv_timeout(LONG).expect("no routee is frozen");
            answers += usize::from(message == round);
        }
    }
    assert_eq!(router.routees().unwrap(), routees);
    router.drain().unwrap();
    wait_until(|| routees.iter().all(ActorRef::is_closed));
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.balance(), ledger.dead_lettered), (0, 0), "{ledger}");
}

#[test]
fn a_limit_of_the_parents_counts_the_restarts_of_the_router_whichever_routee_has_failed() {
    let stage = Stage::threads("limit");
    let strategy = || Strategy::default().max_restarts(1).quiet();
    let parent = stage.spawn(&stage.role("parent").keep_children().strategy(strategy));
    let (router, _got, made) = pool_below(&parent, 2);
    let routees = router.routees().unwrap();
    routees[0].tell(FAIL);
    wait_until(|| made.load(Ordering::SeqCst) == 4);
    assert!(!router.is_closed());
    routees[1].tell(FAIL);
    wait_until(|| router.is_closed() && routees.iter().all(ActorRef::is_closed));
    assert_eq!(made.load(Ordering::SeqCst), 4, "no third state for anybody");
    end(stage);
}

#[test]
fn under_escalation_a_killed_routee_and_one_that_cannot_be_made_end_the_router() {
    let stage = Stage::threads("escalate");
    let parent = stage.spawn(&stage.role("parent").keep_children());
    let (killed, _got, _) = pool_below(&parent, 2);
    killed.routees().unwrap()[1].kill();
    let (make, _got) = workers();
    let recipe = move |ctx: &mut Context<u64>| match ctx.routee_index() {
        1 => Err(Failure::msg("never")),
        _ => Ok(make(ctx)),
    };
    let plan =
        |ctx: &mut Context<Tell>| ctx.router("unmade").pool(2, recipe).on_failure(Strategy::escalate());
    let unmade = query(&parent, move |_, ctx| plan(ctx).spawn().unwrap()).unwrap();
    wait_until(|| killed.is_closed() && unmade.is_closed());
    assert!(!parent.is_closed(), "which has stopped them, as by default");
    end(stage);
}
