//! What the seed of a test repeats: the order in which a group's actors are told to end, and in which that is reported.

use crate::keyed_support::{Do, books, lodgers, plan, to};
use crate::support::{Stage, run_turns};
use pointsman::prelude::*;
use pointsman::topology::{Group, RestartPolicy, StatusReport, WhileRestarting};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const KEYS: u32 = 16;
const MINUTE: Duration = Duration::from_secs(60);

fn reports<M: Send + 'static>(group: &Group<M, u32>) -> Receiver<String> {
    let (sender, reports) = channel();
    group.subscribe_statuses(&ActorRef::from_fn(move |report: StatusReport<u32>| {
        let _ = sender.send(format!("{} {}", report.key, report.status));
    }));
    reports
}

/// Runs it twice on stages of one seed, and returns what it has seen.
#[track_caller]
fn twice(run: impl Fn(&Stage) -> Vec<String>) -> Vec<String> {
    let once = || {
        let stage = Stage::turns_of(7, |builder| builder);
        let seen = run(&stage);
        books(stage);
        seen
    };
    let (first, second) = (once(), once());
    assert_eq!(first, second);
    first
}

#[test]
fn the_actors_of_a_group_that_terminates_end_in_an_order_that_the_seed_repeats() {
    let seen = twice(|stage| {
        let group = lodgers(stage);
        (0..KEYS).for_each(|key| group.tell(to(key, "a")));
        run_turns();
        let reports = reports(&group);
        group.terminate("over");
        run_turns();
        reports.try_iter().collect()
    });
    assert_eq!(seen.len(), 3 * KEYS as usize, "normal, terminating, terminated");
}

#[test]
fn those_who_wait_to_be_restarted_are_given_up_in_the_order_of_their_ends() {
    let seen = twice(|stage| {
        let policy = RestartPolicy::always(MINUTE, MINUTE).auto_reset(Duration::MAX);
        let group = plan(stage).restart(policy).while_restarting(WhileRestarting::Refuse).spawn().unwrap();
        for key in 0..KEYS {
            group.tell(to(key, "a").act(Do::Stop));
            run_turns();
        }
        let reports = reports(&group);
        group.stop_spawning();
        reports.try_iter().filter(|report| report.ends_with("terminated")).collect()
    });
    let expected: Vec<String> = (0..KEYS).map(|key| format!("{key} terminated")).collect();
    assert_eq!(seen, expected);
}

#[test]
fn the_actors_of_a_group_are_listed_in_the_order_of_their_creation() {
    use pointsman::topology::Mount;
    let stage = Stage::turns();
    let group = lodgers(&stage);
    let keys: Vec<u32> = (0..KEYS).rev().collect();
    keys.iter().for_each(|key| group.tell(to(*key, "a")));
    let names: Vec<String> =
        group.member().actors().iter().map(|actor| actor.path().name().to_owned()).collect();
    assert_eq!(names, keys.iter().map(u32::to_string).collect::<Vec<_>>());
    books(stage);
}
