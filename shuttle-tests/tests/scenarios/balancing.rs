//! Balancing pools, whose routees take from one queue.
//!
//! Planted in the engine, each by itself, and caught by `the_end_of_a_balancing_pool_races_sends`: a last taker that leaves
//! without emptying the queue; a sender that does not look for takers after its push.

use crate::cast::{Job, WORKERS, join, stage};
use crate::explore::scenario;
use pointsman::prelude::*;

#[test]
fn a_balancing_pool_goes_on_while_its_routees_fail() {
    scenario("a_balancing_pool_goes_on_while_its_routees_fail", || {
        let stage = stage(WORKERS);
        let plan =
            stage.system.router("pool").balancing_pool(2, stage.clerks()).on_failure(Strategy::default());
        let to = plan.spawn().expect("sound").to_ref();
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 2, &to)];
        to.tell(Job::Fail(stage.letter(2, 1)));
        to.tell(Job::Fail(stage.letter(2, 2)));
        stage.tally.wait_for(7);
        join(senders);
        let ledger = stage.end(0);
        assert_eq!(ledger.dead_lettered, 0, "{ledger}");
    });
}

#[test]
fn a_balancing_pool_is_resized_while_it_is_sent_to() {
    scenario("a_balancing_pool_is_resized_while_it_is_sent_to", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").balancing_pool(2, stage.clerks()).spawn().expect("sound");
        let to = router.to_ref();
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 3, &to)];
        assert_eq!(router.resize_to(3).expect("it runs"), 3);
        assert_eq!(router.resize_to(1).expect("it runs"), 1);
        stage.tally.wait_for(6);
        join(senders);
        let ledger = stage.end(2);
        assert_eq!(ledger.dead_lettered, 0, "{ledger}");
    });
}

#[test]
fn a_routee_of_a_balancing_pool_stops_and_the_others_take_its_share() {
    scenario("a_routee_of_a_balancing_pool_stops_and_the_others_take_its_share", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").balancing_pool(2, stage.clerks()).spawn().expect("sound");
        let to = router.to_ref();
        let routees = router.routees().expect("it runs");
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 2, &to)];
        routees[0].stop();
        drop(routees);
        stage.tally.wait_for(5);
        join(senders);
        let ledger = stage.end(0);
        assert_eq!(ledger.dead_lettered, 0, "{ledger}");
    });
}

#[test]
fn the_end_of_a_balancing_pool_races_sends() {
    scenario("the_end_of_a_balancing_pool_races_sends", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").balancing_pool(2, stage.clerks()).spawn().expect("sound");
        let to = router.to_ref();
        let senders = [stage.tries(0, 3, &to), stage.tries(1, 2, &to)];
        router.stop();
        let back: usize = join(senders).iter().sum();
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.handed_back), (5, back as u64), "{ledger}");
    });
}

#[test]
fn each_letter_is_taken_by_somebody_who_falls_asleep_meanwhile() {
    scenario("each_letter_is_taken_by_somebody_who_falls_asleep_meanwhile", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").balancing_pool(2, stage.clerks()).spawn().expect("sound");
        let to = router.to_ref();
        for number in 1..=4 {
            // Whoever has taken the last one is about to sleep.
            to.tell(stage.read(0, number));
            stage.tally.wait_for(number);
        }
        stage.end(0);
    });
}
