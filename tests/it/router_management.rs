//! What a router's head is asked for, and how routees and routers end.

use crate::router_support::*;
use crate::support::*;
use pointsman::prelude::*;
use pointsman::routing::{AddRoutee, AdjustPoolSize, GetRoutees, ManageError, Resizer, Routee, RouteeLoads};
use pointsman::testkit::TestSystem;
use pointsman::{Mailbox, OverflowPolicy, SendError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_group_cannot_be_adjusted_and_says_what_to_do() {
    let system = TestSystem::new();
    let router: Router<u64> = system.router("group").group([]).spawn().unwrap();
    for refused in [router.adjust(1), router.adjust(-1), router.resize_to(3)] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, ManageError::NotAPool { .. }));
        assert!(
            refused.to_string().contains("/user/group") && refused.to_string().contains("add and remove")
        );
    }
    router.stop();
    system.finish();
}

/// Adds a routee to a router and sends to it when that has taken effect.
struct Manager {
    router: Router<u64>,
    routee: ActorRef<u64>,
    refused: std::sync::mpsc::Sender<bool>,
}

enum ManagerMsg {
    Added(Result<Result<usize, ManageError>, AskError>),
}

impl Actor for Manager {
    type Message = ManagerMsg;
    fn started(&mut self, ctx: &mut Context<ManagerMsg>) -> HandlerResult {
        // A worker must not wait.
        let refused = self.router.adjust(0);
        let is_typed =
            matches!(&refused, Err(ManageError::WouldBlockWorker { path }) if path == "/user/group");
        self.refused.send(is_typed)?;
        ctx.ask(self.router.head(), AddRoutee { routee: self.routee.clone().into() }, ManagerMsg::Added);
        Ok(())
    }
    fn receive(&mut self, message: ManagerMsg, ctx: &mut Context<ManagerMsg>) -> HandlerResult {
        let ManagerMsg::Added(added) = message;
        assert_eq!(added.unwrap().unwrap(), 1);
        self.router.try_tell(1u64).expect("the routee is listed");
        ctx.stop();
        Ok(())
    }
}

#[test]
fn a_change_that_was_answered_is_seen_by_every_later_send_also_of_a_worker() {
    let system = TestSystem::new();
    let router: Router<u64> = system.router("group").group([]).stay_when_empty().spawn().unwrap();
    let (routee, got) = foreign(&system, "routee", 0);
    let (refused, refusals) = channel();
    let given = (router.clone(), routee.clone());
    let manager =
        move || Manager { router: given.0.clone(), routee: given.1.clone(), refused: refused.clone() };
    system.actor("manager").spawn(manager).unwrap();
    system.run_until_idle();
    assert_eq!((refusals.try_recv(), handled(&got)), (Ok(true), vec![1]));
    routee.stop();
    router.stop();
    system.finish();
}

#[test]
fn pills_for_the_routees_come_behind_what_was_sent_and_reach_those_from_elsewhere() {
    TestSystem::for_seeds(20, |system| {
        let (make, got) = workers();
        let (other, other_got) = foreign(system, "other", 9);
        let router = system.router("pool").pool(2, make).spawn().unwrap();
        router.add(other.clone()).unwrap();
        (0..9u64).for_each(|n| router.tell(n));
        assert_eq!(router.poison_routees(), 3);
        system.run_until_idle();
        assert_eq!((handled(&got).len(), handled(&other_got).len()), (6, 3));
        assert!(other.is_closed() && router.is_closed(), "a pool ends when its last routee has");
        assert_eq!(system.ledger().dead_lettered, 0);
    });
}

#[test]
fn killed_routees_are_judged_as_routees() {
    for resumes in [false, true] {
        let system = TestSystem::new();
        let (make, got) = workers();
        let (other, _) = foreign(&system, "other", 9);
        let mut plan = system.router("pool").pool(2, make);
        if resumes {
            plan = plan.on_failure(Strategy::resume());
        }
        let router = plan.spawn().unwrap();
        router.add(other.clone()).unwrap();
        assert_eq!(router.kill_routees(), 3);
        system.run_until_idle();
        assert!(other.is_closed(), "whose parent stops what is killed");
        assert_eq!(router.is_closed(), !resumes);
        if resumes {
            router.broadcast(1u64);
            system.run_until_idle();
            assert_eq!(handled(&got), [1, 1]);
            // After that pills still arrive.
            router.poison_routees();
            system.run_until_idle();
            assert!(router.is_closed());
        }
        system.finish();
    }
}

#[test]
fn a_pill_for_the_router_ends_it_at_once_and_its_own_routees_with_it() {
    for by_kill in [false, true] {
        let system = TestSystem::new();
        let (make, got) = workers();
        let (other, other_got) = foreign(&system, "other", 9);
        let pool = system.router("pool").pool(1, make).spawn().unwrap();
        let group = system.router("group").group([other.clone()]).spawn().unwrap();
        // They have had their first turns.
        system.run_until_idle();
        for router in [&pool, &group] {
            let reference = router.to_ref();
            if by_kill { reference.kill() } else { reference.poison() }
        }
        wait_until(|| {
            system.step();
            pool.is_closed() && group.is_closed()
        });
        group.tell(1u64);
        pool.tell(2u64);
        system.run_until_idle();
        assert!(!other.is_closed() && handled(&other_got).is_empty() && handled(&got).is_empty());
        other.stop();
        assert_eq!(system.finish().dead_lettered, 2);
    }
}

#[test]
fn what_a_stopped_pools_routees_have_queued_is_lost_and_counted() {
    let stage = Stage::threads("stopping");
    let role = stage.role("w");
    let router = stage.system.router("pool").pool(2, move |_| (role.recipe())()).spawn().unwrap();
    let routees = router.routees().unwrap();
    let release = hold(&routees[0]);
    (0..3).for_each(|_| note(&routees[0], "lost"));
    router.poison();
    // The second is told to stop after the first.
    wait_until(|| routees[1].is_closed());
    drop(release);
    wait_until(|| router.is_closed());
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (3, 0), "{ledger}");
}

#[test]
fn the_last_routee_is_removed_without_loss() {
    TestSystem::for_seeds(50, |system| {
        let (make, got) = workers();
        let router = system.router("pool").pool(1, make).spawn().unwrap();
        (0..6u64).for_each(|n| router.tell(n));
        let last = router.routees().unwrap()[0].clone();
        assert!(router.remove(&last).unwrap());
        assert!(matches!(router.try_tell(6u64), Err(SendError::Closed(6))), "it is ending");
        system.run_until_idle();
        assert_eq!(handled(&got), [0, 1, 2, 3, 4, 5]);
        assert!(router.is_closed() && system.actor_at("/user/pool").is_err());
        assert_eq!(system.ledger().dead_lettered, 0);
    });
}

#[test]
fn a_drained_router_refuses_handles_what_it_has_and_ends() {
    TestSystem::for_seeds(50, |system| {
        let (make, got) = workers();
        let (other, other_got) = foreign(system, "other", 9);
        let router = system.router("pool").pool(2, make).spawn().unwrap();
        router.add(other.clone()).unwrap();
        // One fails on the way, and is restarted with what it has.
        [1, FAIL, 2, 3, 4, 5, 6, 7, 8].into_iter().for_each(|n| router.tell(n));
        router.drain().unwrap();
        assert!(matches!(router.try_tell(9u64), Err(SendError::Closed(9))));
        assert_eq!(router.broadcast(9u64), 0);
        assert!(matches!(router.adjust(1), Err(ManageError::Stopped { .. })));
        assert!(matches!(router.add(other.clone()), Err(ManageError::Stopped { .. })));
        system.run_until_idle();
        assert_eq!((handled(&got).len(), handled(&other_got).len()), (6, 3));
        assert!(system.actor_at("/user/pool").is_err() && !other.is_closed());
        other.stop();
    });
}

/// Waits in its handler until it is told to go on.
struct Busy(std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>);

impl Actor for Busy {
    type Message = u64;
    fn receive(&mut self, _: u64, ctx: &mut Context<u64>) -> HandlerResult {
        self.0.send(())?;
        ctx.blocking(|| self.1.recv())?;
        Ok(())
    }
}

#[test]
fn a_router_is_closed_when_drain_returns_though_a_routee_is_still_busy() {
    let system = System::builder("draining").build().unwrap();
    let (busy, is_busy) = channel();
    let (tell, go_on) = channel();
    let made = std::sync::Mutex::new(Some(Busy(busy, go_on)));
    let make = move |_: &mut Context<u64>| made.lock().unwrap().take().expect("one routee, never restarted");
    let router = system.router("pool").pool(1, make).spawn().unwrap();
    router.tell(1u64);
    is_busy.recv().unwrap();
    router.drain().unwrap();
    // All is looked at while the routee is busy, and judged when it is not: a failure does not wait for it.
    let (is_closed, refused) = (router.is_closed(), router.try_tell(2u64));
    let changed = router.resize_to(2);
    let runs = !router.head().is_closed();
    tell.send(()).unwrap();
    assert!(is_closed, "drained and not marked closed");
    assert!(matches!(refused, Err(SendError::Closed(2))), "{refused:?}");
    assert!(matches!(changed, Err(ManageError::Stopped { .. })), "{changed:?}");
    assert!(runs, "the head ends behind its routees");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn whatever_a_draining_router_has_accepted_is_handled_while_threads_send() {
    for round in 0..20 {
        let system = System::builder("draining").build().unwrap();
        let (make, got) = workers();
        let mut plan = system.router("pool").pool(3, make);
        if round % 2 == 1 {
            plan = plan.mailbox(Mailbox::bounded(16).on_full(OverflowPolicy::Reject));
        }
        let router = plan.spawn().unwrap();
        let accepted = Arc::new(AtomicU64::new(0));
        let senders: Vec<_> = (0..3)
            .map(|_| {
                let (router, accepted) = (router.to_ref(), accepted.clone());
                std::thread::spawn(move || {
                    for n in 0.. {
                        match router.try_tell(n as u64) {
                            Ok(()) => _ = accepted.fetch_add(1, Ordering::Relaxed),
                            Err(SendError::Full(_)) => std::thread::yield_now(),
                            Err(SendError::Closed(_)) => return,
                            Err(other) => panic!("{other}"),
                        }
                    }
                })
            })
            .collect();
        wait_until(|| accepted.load(Ordering::Relaxed) > 500);
        router.drain().unwrap();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        wait_until(|| system.actor_at("/user/pool").is_err());
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!(got.try_iter().count() as u64, accepted.load(Ordering::Relaxed));
        assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
    }
}

#[test]
fn at_its_deadline_a_removed_routee_stops_and_what_it_has_is_routed_again() {
    for (within, by) in [(None, 0), (Some(SECOND), 1), (Some(Duration::ZERO), 1)] {
        let stage = Stage::threads("deadline");
        let role = stage.role("w");
        let mut plan = stage.system.router("pool").pool(2, move |_| (role.recipe())());
        if let Some(within) = within {
            plan = plan.leave_within(within);
        }
        let router = plan.spawn().unwrap();
        // In any order.
        [stage.note(), stage.note()].iter().for_each(|note| assert!(note.contains("Started"), "{note}"));
        let leaving = router.routees().unwrap()[0].clone();
        let release = hold(&leaving);
        for _ in 0..3 {
            act(&leaving, |puppet, ctx| {
                puppet.note(ctx.routee_index());
                Ok(())
            });
        }
        assert!(router.remove(&leaving).unwrap());
        stage.clock.advance(SECOND);
        drop(release);
        let mut seen: Vec<String> =
            (0..4).map(|_| stage.note()).filter(|note| !note.contains("Stopped")).collect();
        seen.sort();
        assert_eq!(seen, [format!("w {by}"), format!("w {by}"), format!("w {by}")]);
        router.drain().unwrap();
        wait_until(|| router.head().is_closed());
        let ledger = stage.system.shutdown(LONG).unwrap();
        assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
    }
}

#[test]
fn a_routee_that_is_told_farewell_ends_when_it_is_done() {
    TestSystem::for_seeds(20, |system| {
        let (make, got) = workers();
        let router = system.router("pool").pool(2, make).farewell(|| END).spawn().unwrap();
        let routees = router.routees().unwrap();
        [1u64, 2].into_iter().for_each(|n| routees[1].tell(n));
        assert_eq!(router.adjust(-1).unwrap(), 1);
        // As from a sender with an old table.
        routees[1].tell(3u64);
        system.run_until_idle();
        assert!(routees[1].is_closed());
        let mut seen: Vec<_> = got.try_iter().collect();
        seen.sort_unstable();
        // What lies behind the farewell is routed again.
        assert_eq!(seen, [(0, 3), (1, 1), (1, 2), (1, END)]);
        router.drain().unwrap();
        system.run_until_idle();
        assert_eq!(handled(&got), [END]);
        assert_eq!(system.ledger().dead_lettered, 0);
    });
}

#[test]
fn a_farewell_that_panics_removes_nobody() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let panics = Arc::new(AtomicBool::new(true));
    let asked = panics.clone();
    let farewell = move || if asked.load(Ordering::Relaxed) { panic!("as told") } else { END };
    let router = system.router("pool").pool(2, make).farewell(farewell).spawn().unwrap();
    let routees = router.routees().unwrap();
    assert!(matches!(router.remove(&routees[0]), Err(ManageError::HeadFailed { .. })));
    assert!(matches!(router.drain(), Err(ManageError::HeadFailed { .. })));
    assert_eq!(router.routees().unwrap(), routees);
    router.broadcast(1u64);
    system.run_until_idle();
    assert_eq!(handled(&got), [1, 1]);
    panics.store(false, Ordering::Relaxed);
    router.drain().unwrap();
    system.finish();
}

#[test]
fn a_routee_that_panics_when_it_is_asked_who_it_is_keeps_nobody_from_leaving() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let (behind, _) = foreign(&system, "behind", 9);
    let (routee, panics) = shy(&behind);
    let router = system.router("pool").pool(3, make).spawn().unwrap();
    let own = router.routees().unwrap();
    assert_eq!(router.add(routee).unwrap(), 4);
    own.iter().for_each(|worker| worker.tell(1u64));
    panics.store(true, Ordering::Relaxed);
    assert!(router.remove(&own[0]).unwrap());
    own[1].stop();
    system.run_until_idle();
    assert_eq!(router.routees().unwrap().len(), 2, "one is removed, one has ended");
    router.drain().unwrap();
    system.run_until_idle();
    assert!(own.iter().all(ActorRef::is_closed) && router.head().is_closed());
    assert!(handled(&got).len() >= 2);
    behind.stop();
    system.finish();
}

#[test]
fn a_routee_that_panics_when_it_is_asked_who_it_is_keeps_nobody_from_what_is_meant_for_all() {
    let system = TestSystem::new();
    let (behind, _) = foreign(&system, "behind", 8);
    let (other, got) = foreign(&system, "other", 9);
    let (first, panics) = shy(&behind);
    let router = system.router("group").group([first, other.clone()]).spawn().unwrap();
    panics.store(true, Ordering::Relaxed);
    router.broadcast(7u64);
    system.run_until_idle();
    assert_eq!(handled(&got), [7]);
    assert_eq!(router.poison_routees(), 2);
    system.run_until_idle();
    assert!(other.is_closed());
    behind.stop();
    router.stop();
    system.finish();
}

/// Ends at the message 0, when its child has.
struct Ending {
    number: usize,
    end: fn(&mut Context<u64>),
    log: std::sync::mpsc::Sender<(usize, u64)>,
}

impl Actor for Ending {
    type Message = u64;
    fn started(&mut self, ctx: &mut Context<u64>) -> HandlerResult {
        let (number, (log, _)) = (self.number, channel());
        ctx.spawn(move || Worker { number, log: log.clone() })?;
        Ok(())
    }
    fn receive(&mut self, message: u64, ctx: &mut Context<u64>) -> HandlerResult {
        self.log.send((self.number, message))?;
        if message == 0 {
            (self.end)(ctx);
        }
        Ok(())
    }
}

#[test]
fn a_pool_that_changes_its_size_counts_no_routee_that_is_ending() {
    type Change = fn(&Router<u64>) -> Result<usize, ManageError>;
    let changes: [(Change, usize); 3] = [
        (|router| router.resize_to(1), 1),
        (|router| router.resize_to(2), 2),
        (|router| router.adjust(1), 2),
    ];
    let ends: [fn(&mut Context<u64>); 2] = [|ctx| ctx.passivate(), |ctx| ctx.stop()];
    for (end, (change, size)) in ends.into_iter().flat_map(|end| changes.map(|change| (end, change))) {
        TestSystem::for_seeds(10, |system| {
            let (log, got) = channel();
            let make =
                move |ctx: &mut Context<u64>| Ending { number: ctx.routee_index(), end, log: log.clone() };
            let router = system.router("pool").pool(2, make).spawn().unwrap();
            router.routees().unwrap().remove(0).tell(0u64);
            let mut was_handled = Vec::new();
            while was_handled.is_empty() {
                system.step();
                was_handled = handled(&got);
            }
            assert_eq!(change(&router).unwrap(), size);
            router.tell(1u64);
            system.run_until_idle();
            assert_eq!((was_handled, handled(&got)), (vec![0], vec![1]));
            assert_eq!(router.routees().unwrap().len(), size);
            router.drain().unwrap();
        });
    }
}

/// Allows a pool to be empty, and else wants nothing.
struct Lazy;
impl Resizer for Lazy {
    fn is_time_for_resize(&self, _: u64) -> bool {
        false
    }
    fn resize(&self, _: &RouteeLoads) -> isize {
        0
    }
    fn clamp(&self, size: usize) -> usize {
        size
    }
}

#[test]
fn a_pool_is_adjusted_to_one_routee_at_least_unless_it_may_be_empty() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let fixed = system.router("fixed").pool(3, make.clone()).spawn().unwrap();
    assert_eq!(fixed.adjust(-10).unwrap(), 1);
    let asked = fixed.head().ask(AdjustPoolSize::By(isize::MIN));
    system.run_until_idle();
    assert_eq!(asked.wait().unwrap().unwrap(), 1);
    assert!(matches!(fixed.resize_to(0), Err(ManageError::EmptyPool { .. })));
    fixed.try_tell(7u64).unwrap();
    system.run_until_idle();
    assert_eq!(handled(&got), [7]);
    let staying = system.router("staying").pool(3, make.clone()).stay_when_empty().spawn().unwrap();
    assert_eq!(staying.adjust(-10).unwrap(), 0);
    let resized = system.router("resized").pool(3, make).resizer(Lazy).spawn().unwrap();
    assert_eq!(resized.adjust(-10).unwrap(), 0);
    for router in [fixed, staying, resized] {
        router.stop();
    }
    system.finish();
}

#[test]
fn a_router_says_how_many_routees_it_has_and_what_is_known_of_each() {
    let system = TestSystem::new();
    let (make, _got) = workers();
    let router = system.router("pool").pool(2, make).on_failure(Strategy::default()).spawn().unwrap();
    let (guest, _) = foreign(&system, "guest", 9);
    router.add(Routee::with_identity(guest.clone(), "the guest")).unwrap();
    assert_eq!(router.size(), 3);
    let routees = router.routees().unwrap();
    [FAIL, 1, FAIL].into_iter().for_each(|message| routees[1].tell(message));
    system.run_until_idle();
    let infos = router.routees_info().unwrap();
    assert!(infos.iter().map(|info| info.routee.actor()).eq(&routees));
    let known: Vec<_> = infos.iter().map(|info| (info.is_own, info.restarts)).collect();
    assert_eq!(known, [(true, 0), (true, 2), (false, 0)]);
    assert_eq!(infos[2].routee.identity(), "the guest");
    assert_eq!(routees[1].untyped().unwrap().restarts(), 2);
    let asked = router.head().ask(GetRoutees::new());
    system.run_until_idle();
    assert_eq!(asked.wait().unwrap().len(), 3);
    router.remove(&guest).unwrap();
    assert_eq!(router.size(), 2);
    guest.stop();
    router.stop();
    system.run_until_idle();
    assert_eq!(router.size(), 0);
    assert!(matches!(router.routees_info(), Err(ManageError::Stopped { .. })));
    system.finish();
}

#[test]
fn a_pool_that_becomes_empty_by_adjust_lives_on_though_one_was_ending_before() {
    TestSystem::for_seeds(10, |system| {
        let (log, got) = channel();
        let make = move |ctx: &mut Context<u64>| Ending {
            number: ctx.routee_index(),
            end: |ctx| ctx.passivate(),
            log: log.clone(),
        };
        let router = system.router("pool").pool(2, make).stay_when_empty().spawn().unwrap();
        let first = router.routees().unwrap().remove(0);
        first.tell(0u64);
        while !first.is_closed() {
            system.step();
        }
        assert_eq!(router.adjust(-2).unwrap(), 0);
        system.run_until_idle();
        assert!(!router.is_closed());
        assert_eq!(router.adjust(1).unwrap(), 1);
        router.tell(1u64);
        system.run_until_idle();
        assert_eq!(handled(&got), [0, 1]);
        router.drain().unwrap();
    });
}
