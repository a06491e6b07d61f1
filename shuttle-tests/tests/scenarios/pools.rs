//! Pools and groups whose routees come, go, fail and stop while they are sent to.
//!
//! Planted in the engine, each by itself, and caught: a draining head that stops without waiting for its routees
//! (`what_a_draining_router_has_taken_is_handled`); a mailbox drained at its end that takes a claimed place for the end
//! (`the_stop_of_a_routers_head_races_sends`); an actor that lays its token down though a message has come meanwhile
//! (`a_routee_restarts_while_it_is_routed_to`); a worker that sleeps without a last look
//! (`senders_race_the_resize_of_a_pool`).

use crate::cast::{Job, WORKERS, join, stage};
use crate::explore::scenario;
use pointsman::prelude::*;
use pointsman::routing::{Broadcast, DefaultResizer, RoundRobin, SmallestMailbox};

#[test]
fn senders_race_the_resize_of_a_pool() {
    scenario("senders_race_the_resize_of_a_pool", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").pool(2, stage.clerks()).logic(RoundRobin::new());
        let router = router.spawn().expect("sound");
        let to = router.to_ref();
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 3, &to)];
        assert_eq!(router.resize_to(1).expect("it runs"), 1);
        assert_eq!(router.resize_to(3).expect("it runs"), 3);
        stage.tally.wait_for(6);
        join(senders);
        let ledger = stage.end(2);
        assert_eq!(ledger.dead_lettered, 0, "{ledger}");
    });
}

#[test]
fn a_routee_restarts_while_it_is_routed_to() {
    scenario("a_routee_restarts_while_it_is_routed_to", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").pool(2, stage.clerks()).on_failure(Strategy::default());
        let router = router.spawn().expect("sound");
        let to = router.to_ref();
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 3, &to)];
        to.tell(Job::Fail(stage.letter(2, 1)));
        to.tell(Job::Fail(stage.letter(2, 2)));
        stage.tally.wait_for(8);
        join(senders);
        let ledger = stage.end(0);
        assert_eq!(ledger.dead_lettered, 0, "{ledger}");
    });
}

#[test]
fn the_stop_of_a_routers_head_races_sends() {
    scenario("the_stop_of_a_routers_head_races_sends", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").pool(3, stage.clerks()).spawn().expect("sound");
        let to = router.to_ref();
        let senders = [stage.tries(0, 3, &to), stage.tries(1, 3, &to)];
        router.stop();
        let back: usize = join(senders).iter().sum();
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.handed_back), (6, back as u64), "{ledger}");
    });
}

#[test]
fn what_a_draining_router_has_taken_is_handled() {
    scenario("what_a_draining_router_has_taken_is_handled", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").pool(2, stage.clerks()).spawn().expect("sound");
        let to = router.to_ref();
        let senders = [stage.tries(0, 3, &to), stage.tries(1, 2, &to)];
        router.drain().expect("it runs");
        let back: usize = join(senders).iter().sum();
        stage.tally.wait_for(5 - back);
        let ledger = stage.end(1);
        assert_eq!((ledger.handed_back, ledger.dead_lettered), (back as u64, 0), "{ledger}");
    });
}

#[test]
fn a_broadcast_races_the_removal_of_a_routee() {
    scenario("a_broadcast_races_the_removal_of_a_routee", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").pool(3, stage.clerks()).logic(Broadcast);
        let router = router.spawn().expect("sound");
        let to = router.to_ref();
        let senders = [stage.tells(0, 2, &to), stage.tells(1, 1, &to)];
        assert_eq!(router.resize_to(2).expect("it runs"), 2);
        join(senders);
        // Those who stay get all; what the one that leaves has not handled is nobody else's.
        stage.tally.wait_for(6);
        let ledger = stage.end_after(3, 1);
        assert!((7..=10).contains(&ledger.sent), "{ledger}");
    });
}

#[test]
fn the_smallest_mailbox_is_sought_while_a_routee_stops() {
    scenario("the_smallest_mailbox_is_sought_while_a_routee_stops", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").pool(3, stage.clerks()).logic(SmallestMailbox::new());
        let router = router.spawn().expect("sound");
        let to = router.to_ref();
        let routees = router.routees().expect("it runs");
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 3, &to)];
        routees[1].stop();
        join(senders);
        drop(routees);
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.handed_back), (6, 0), "{ledger}");
    });
}

#[test]
fn routers_of_routers_route_while_an_inner_one_changes() {
    scenario("routers_of_routers_route_while_an_inner_one_changes", || {
        let stage = stage(WORKERS);
        let inner = |name, first: usize| {
            let tally = stage.tally.clone();
            let clerk =
                move |ctx: &mut Context<Job>| crate::cast::Clerk::new(first + ctx.routee_index(), &tally);
            stage.system.router(name).pool(2, clerk).spawn().expect("sound")
        };
        let (left, right) = (inner("left", 0), inner("right", 10));
        let outer = stage.system.router("outer").group([left.to_ref(), right.to_ref()]);
        let outer = outer.logic(RoundRobin::new()).spawn().expect("sound");
        let to = outer.to_ref();
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 3, &to)];
        assert_eq!(left.resize_to(1).expect("it runs"), 1);
        assert!(outer.remove(right.to_ref()).expect("it runs"));
        stage.tally.wait_for(6);
        join(senders);
        let ledger = stage.end(2);
        assert_eq!(ledger.dead_lettered, 0, "{ledger}");
    });
}

#[test]
fn a_pool_grows_and_shrinks_by_its_resizer_under_load() {
    scenario("a_pool_grows_and_shrinks_by_its_resizer_under_load", || {
        let stage = stage(WORKERS);
        let resizer = DefaultResizer::new().lower_bound(1).upper_bound(4).rampup_rate(1.0).backoff_rate(1.0);
        let resizer = resizer.backoff_threshold(1.0).messages_per_resize(2).without_ticks(true);
        let router = stage.system.router("pool").pool(2, stage.clerks()).resizer(resizer).spawn();
        let to = router.expect("sound").to_ref();
        let senders = [stage.tells(0, 4, &to), stage.tells(1, 4, &to)];
        stage.tally.wait_for(8);
        join(senders);
        let ledger = stage.end(0);
        assert_eq!(ledger.dead_lettered, 0, "{ledger}");
    });
}

#[test]
fn a_group_changes_its_members_while_it_is_sent_to() {
    scenario("a_group_changes_its_members_while_it_is_sent_to", || {
        let stage = stage(5);
        let member = |name| stage.system.spawn(stage.clerk(name)).expect("there is room");
        let (first, second, third) = (member(1), member(2), member(3));
        let router =
            stage.system.router("group").group([first.clone(), second.clone()]).spawn().expect("sound");
        let to = router.to_ref();
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 3, &to)];
        router.add(third).expect("it runs");
        assert!(router.remove(&first).expect("it runs"));
        stage.tally.wait_for(6);
        join(senders);
        let ledger = stage.end(2);
        assert_eq!((ledger.sent, ledger.dead_lettered), (8, 0), "{ledger}");
    });
}

#[test]
fn the_only_routee_is_replaced_while_it_is_sent_to() {
    scenario("the_only_routee_is_replaced_while_it_is_sent_to", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").pool(1, stage.clerks()).spawn().expect("sound");
        let to = router.to_ref();
        let old = router.routees().expect("it runs").remove(0);
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 3, &to)];
        // Who has read the first table finds nobody, and routes again by the last one.
        assert_eq!(router.resize_to(2).expect("it runs"), 2);
        assert!(router.remove(&old).expect("it runs"));
        stage.tally.wait_for(6);
        join(senders);
        drop(old);
        let ledger = stage.end(2);
        assert_eq!(ledger.dead_lettered, 0, "{ledger}");
    });
}
