//! Questions, and what may come between them and their answers.

use crate::cast::{Question, Stage, WORKERS, join, stage};
use crate::explore::scenario;
use pointsman::prelude::*;
use pointsman::routing::{ScatterGatherFirstCompleted, TailChopping};
use shuttle::thread::{self, JoinHandle};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A thread that asks once.
fn asks<M: Send + From<Call<Question>> + 'static>(
    stage: &Stage,
    sender: usize,
    to: &ActorRef<M>,
) -> JoinHandle<Result<usize, AskError>> {
    let (to, letter) = (to.clone(), stage.letter(sender, 5));
    thread::spawn(move || to.ask_within(Question(letter), SECOND).wait())
}

#[test]
fn asks_race_the_stop_of_the_one_who_is_asked() {
    scenario("asks_race_the_stop_of_the_one_who_is_asked", || {
        let stage = stage(WORKERS);
        let to = stage.system.spawn(stage.clerk(1)).expect("there is room");
        let askers = [0, 1, 2].map(|sender| asks(&stage, sender, &to));
        to.stop();
        for answer in join(askers) {
            assert!(
                matches!(answer, Ok(5) | Err(AskError::NoReply { .. } | AskError::Undeliverable { .. })),
                "{answer:?}"
            );
        }
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.asks.begun), (3, 3), "{ledger}");
    });
}

#[test]
fn the_end_of_an_asks_time_races_its_answer() {
    scenario("the_end_of_an_asks_time_races_its_answer", || {
        let stage = stage(WORKERS);
        let to = stage.system.spawn(stage.clerk(1)).expect("there is room");
        let askers = [0, 1].map(|sender| asks(&stage, sender, &to));
        stage.clock.advance(SECOND);
        for answer in join(askers) {
            assert!(matches!(answer, Ok(5) | Err(AskError::Timeout { .. })), "{answer:?}");
        }
        stage.tally.wait_for(2);
        stage.end(0);
    });
}

#[test]
fn the_first_of_all_answers_is_gathered_while_a_routee_stops() {
    scenario("the_first_of_all_answers_is_gathered_while_a_routee_stops", || {
        let stage = stage(WORKERS);
        let logic = ScatterGatherFirstCompleted::within(SECOND);
        let router = stage.system.router("pool").pool(2, stage.clerks()).logic(logic).spawn().expect("sound");
        let to = router.to_ref();
        let routees = router.routees().expect("it runs");
        let askers = [asks(&stage, 0, &to), asks(&stage, 1, &to)];
        routees[0].stop();
        drop(routees);
        for answer in join(askers) {
            assert_eq!(answer, Ok(5), "the other one answers");
        }
        stage.end_after(2, 0);
    });
}

#[test]
fn tail_chopping_asks_the_next_while_the_clock_goes_and_a_routee_stops() {
    scenario("tail_chopping_asks_the_next_while_the_clock_goes_and_a_routee_stops", || {
        let stage = stage(WORKERS);
        let logic = TailChopping::within(2 * SECOND).interval(SECOND);
        let router = stage.system.router("pool").pool(2, stage.clerks()).logic(logic).spawn().expect("sound");
        let to = router.to_ref();
        let routees = router.routees().expect("it runs");
        let (asker, letter) = (to.clone(), stage.letter(0, 5));
        let asker = thread::spawn(move || asker.ask_within(Question(letter), Duration::MAX).wait());
        let stopper = thread::spawn(move || routees[0].stop());
        stage.clock.advance(SECOND);
        join([stopper]);
        let answer = join([asker]).remove(0);
        assert!(matches!(answer, Ok(5) | Err(AskError::AllFailed { .. })), "{answer:?}");
        stage.end_after(2, 0);
    });
}
