//! What is the same in each run: the order in which a group's actors are listed, told to end, and reported.

use crate::keyed_support::{Do, books, lodgers, plan, to};
use crate::support::{Stage, run_turns};
use pointsman::group::{Group, RestartPolicy, StatusReport, WhileRestarting};
use pointsman::prelude::*;
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

#[test]
fn those_who_wait_to_be_restarted_are_given_up_in_the_order_of_their_ends() {
    let stage = Stage::turns();
    let policy = RestartPolicy::always(MINUTE, MINUTE).auto_reset(Duration::MAX);
    let group = plan(&stage).restart(policy).while_restarting(WhileRestarting::Refuse).spawn().unwrap();
    for key in 0..KEYS {
        group.tell(to(key, "a").act(Do::Stop));
        run_turns();
    }
    let reports = reports(&group);
    group.stop_spawning();
    let seen: Vec<String> = reports.try_iter().filter(|report| report.ends_with("terminated")).collect();
    let expected: Vec<String> = (0..KEYS).map(|key| format!("{key} terminated")).collect();
    assert_eq!(seen, expected);
    books(stage);
}

#[test]
fn the_actors_of_a_group_are_listed_in_the_order_of_their_creation() {
    use pointsman::topology::GroupMember;
    let stage = Stage::turns();
    let group = lodgers(&stage);
    let keys: Vec<u32> = (0..KEYS).rev().collect();
    keys.iter().for_each(|key| group.tell(to(*key, "a")));
    let names: Vec<String> = group.actors().iter().map(|actor| actor.path().name().to_owned()).collect();
    assert_eq!(names, keys.iter().map(u32::to_string).collect::<Vec<_>>());
    books(stage);
}
