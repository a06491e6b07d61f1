//! Groups with an actor for each key.
//!
//! Planted in the engine, each by itself, and caught: a retirement that closes a mailbox with messages in it
//! (`what_races_a_retirement_is_handled_in_order`); a sender that gives up when another one has created the actor first
//! (`four_senders_who_race_for_a_key_create_one_actor`).

use crate::cast::{Clerk, Job, Stage, WORKERS, join, stage};
use crate::explore::scenario;
use pointsman::group::{GroupPlan, RestartPolicy, WhileRestarting};
use pointsman::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A group in which all have the key 7; and how many actors were made.
fn plan(stage: &Stage) -> (GroupPlan<Job, usize>, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let (count, tally) = (made.clone(), stage.tally.clone());
    let recipe = move |_: &mut Context<Job>, key: &usize| {
        count.fetch_add(1, SeqCst);
        Clerk::new(*key, &tally)
    };
    (stage.system.group("group").by_key(|_: &Job| 7, recipe), made)
}

#[test]
fn four_senders_who_race_for_a_key_create_one_actor() {
    scenario("four_senders_who_race_for_a_key_create_one_actor", || {
        let stage = stage(WORKERS);
        let (plan, made) = plan(&stage);
        let group = plan.spawn().expect("sound");
        let to = group.to_ref();
        let senders = [0, 1, 2, 3].map(|sender| stage.tells(sender, 2, &to));
        stage.tally.wait_for(8);
        join(senders);
        assert_eq!((group.len(), made.load(SeqCst)), (1, 1));
        drop((to, group));
        stage.end(0);
    });
}

#[test]
fn senders_of_several_keys_create_an_actor_for_each() {
    scenario("senders_of_several_keys_create_an_actor_for_each", || {
        let stage = stage(5);
        let tally = stage.tally.clone();
        let recipe = move |_: &mut Context<Job>, key: &usize| Clerk::new(*key, &tally);
        let group = stage.system.group("group").by_key(Job::sender, recipe).spawn().expect("sound");
        let to = group.to_ref();
        let senders = [0, 1, 2].map(|key| stage.tells(key, 2, &to));
        stage.tally.wait_for(6);
        join(senders);
        drop(to);
        assert_eq!(group.len(), 3);
        drop(group);
        stage.end(0);
    });
}

#[test]
fn what_races_a_retirement_is_handled_in_order() {
    scenario("what_races_a_retirement_is_handled_in_order", || {
        let stage = stage(WORKERS);
        let (plan, _) = plan(&stage);
        let group = plan.spawn().expect("sound");
        let to = group.to_ref();
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 3, &to)];
        to.tell(Job::Retire(stage.letter(2, 1)));
        to.tell(Job::Retire(stage.letter(2, 2)));
        stage.tally.wait_for(8);
        join(senders);
        drop((to, group));
        let ledger = stage.end(0);
        assert_eq!((ledger.dead_lettered, ledger.handed_back), (0, 0), "{ledger}");
    });
}

#[test]
fn the_termination_of_a_group_races_the_creation_of_its_actors() {
    scenario("the_termination_of_a_group_races_the_creation_of_its_actors", || {
        let stage = stage(WORKERS);
        let (plan, made) = plan(&stage);
        let group = plan.spawn().expect("sound");
        let to = group.to_ref();
        let senders = [stage.tries(0, 2, &to), stage.tries(1, 2, &to)];
        group.terminate("over");
        let back: usize = join(senders).iter().sum();
        drop((to, group));
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.handed_back), (4, back as u64), "{ledger}");
        assert!(made.load(SeqCst) <= 1);
    });
}

#[test]
fn an_actor_of_a_key_fails_and_lives_again_while_others_send() {
    scenario("an_actor_of_a_key_fails_and_lives_again_while_others_send", || {
        let stage = stage(WORKERS);
        let (plan, made) = plan(&stage);
        let policy = RestartPolicy::on_failure(SECOND, SECOND);
        let group = plan.restart(policy).while_restarting(WhileRestarting::SpawnAnew).spawn().expect("sound");
        let to = group.to_ref();
        let senders = [stage.tells(0, 2, &to), stage.tells(1, 2, &to)];
        to.tell(Job::Fail(stage.letter(2, 1)));
        stage.clock.advance(SECOND);
        join(senders);
        drop((to, group));
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.handed_back), (5, 0), "{ledger}");
        assert!(made.load(SeqCst) >= 1);
    });
}
