//! Workers that sleep, wake and steal, and the end of all.
//!
//! Planted in the engine and caught by `each_letter_wakes_somebody_when_all_eight_workers_sleep`: a worker that sleeps
//! without a last look.

use crate::cast::{Job, Question, WORKERS, join, stage};
use crate::explore::scenario;
use pointsman::prelude::*;
use shuttle::thread;
use std::time::Duration;

#[test]
fn each_letter_wakes_somebody_when_all_eight_workers_sleep() {
    scenario("each_letter_wakes_somebody_when_all_eight_workers_sleep", || {
        let stage = stage(8);
        let actors = [0, 1, 2].map(|name| stage.system.spawn(stage.clerk(name)).expect("there is room"));
        for (round, actor) in actors.iter().enumerate() {
            actor.tell(stage.read(0, round + 1));
            // By now most workers sleep again.
            stage.tally.wait_for(round + 1);
        }
        stage.end(0);
    });
}

#[test]
fn a_burst_from_one_worker_is_stolen_by_the_others() {
    scenario("a_burst_from_one_worker_is_stolen_by_the_others", || {
        let stage = stage(5);
        let actors = [1, 2, 3, 4].map(|name| stage.system.spawn(stage.clerk(name)).expect("there is room"));
        let source = stage.system.spawn(stage.clerk(0)).expect("there is room");
        let burst = |number: usize| {
            let letters = actors.iter().map(|actor| (actor.clone(), stage.read(0, number))).collect();
            Job::Pass(stage.letter(9, number), letters)
        };
        source.tell(burst(1));
        source.tell(burst(2));
        stage.tally.wait_for(10);
        stage.end_after(4, 0);
    });
}

#[test]
fn the_end_of_a_system_races_sends_and_asks() {
    scenario("the_end_of_a_system_races_sends_and_asks", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").pool(2, stage.clerks()).spawn().expect("sound");
        let alone = stage.system.spawn(stage.clerk(10)).expect("there is room");
        let senders = [stage.tries(0, 2, &router.to_ref()), stage.tries(1, 2, &alone)];
        let asker = {
            let (to, letter) = (alone.clone(), stage.letter(2, 5));
            thread::spawn(move || to.ask_within(Question(letter), Duration::MAX).wait())
        };
        stage.system.stop();
        let back: usize = join(senders).iter().sum();
        let answer = join([asker]).remove(0);
        assert!(
            matches!(answer, Ok(5) | Err(AskError::NoReply { .. } | AskError::Undeliverable { .. })),
            "{answer:?}"
        );
        let ledger = stage.end(0);
        assert_eq!(ledger.sent, 5, "{ledger}");
        assert!(ledger.handed_back >= back as u64, "{ledger}");
    });
}

#[test]
fn senders_outlive_their_system() {
    scenario("senders_outlive_their_system", || {
        let stage = stage(WORKERS);
        let router = stage.system.router("pool").pool(2, stage.clerks()).spawn().expect("sound");
        let (to, tally) = (router.to_ref(), stage.tally.clone());
        let sender = stage.tries(0, 4, &to);
        let system = stage.system.handle().clone();
        stage.system.shutdown(Duration::MAX).expect("nothing is stuck");
        let back = join([sender])[0];
        let ledger = system.ledger();
        assert_eq!((ledger.sent, ledger.handed_back), (4, back as u64), "{ledger}");
        assert_eq!((ledger.balance(), ledger.handled as usize), (0, tally.handled()), "{ledger}");
    });
}

#[test]
fn actors_that_ask_each_other_in_a_circle_end_with_their_system() {
    scenario("actors_that_ask_each_other_in_a_circle_end_with_their_system", || {
        let stage = stage(WORKERS);
        let [first, second] =
            [1, 2].map(|name| stage.system.spawn(stage.clerk(name)).expect("there is room"));
        let back = vec![(first.clone(), stage.read(8, 1)), (first.clone(), stage.read(8, 2))];
        first
            .tell(Job::Pass(stage.letter(0, 1), vec![(second.clone(), Job::Pass(stage.letter(1, 1), back))]));
        let sender = stage.tells(3, 2, &second);
        stage.tally.wait_for(6);
        join([sender]);
        stage.end(0);
    });
}
