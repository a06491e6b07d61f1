//! Every library does every workload right, in small. Each repetition asserts its own result.

use crate::library::LIBRARIES;
use crate::scale::Scale;
use crate::workload::{Measured, ROWS, Workload};

/// Runs all rows of this kind with every library that takes part.
fn all(is_meant: fn(Workload) -> bool) {
    let scale = Scale::named("tiny").expect("it exists");
    for library in LIBRARIES {
        for row in ROWS.iter().filter(|row| is_meant(row.workload) && (library.takes_part)(row.workload)) {
            match (library.run)(row.workload, &scale) {
                Some(Measured::Nanos(value)) => assert!(value > 0.0, "{}, {}", library.name, row.key),
                Some(Measured::Latency(values)) => {
                    assert!(values.is_sorted(), "{}: {values:?}", library.name)
                }
                // Other tests of this process allocate at the same time.
                Some(Measured::Bytes(_)) | None => {}
            }
        }
    }
}

#[test]
fn pairs_send_to_and_fro() {
    all(|workload| matches!(workload, Workload::PingPong { .. }));
}

#[test]
fn one_actor_gets_what_threads_send() {
    all(|workload| matches!(workload, Workload::ToOne { .. }));
}

#[test]
fn routers_deliver_each_message_once() {
    all(|workload| {
        matches!(
            workload,
            Workload::Routed { .. } | Workload::SharedQueue { .. } | Workload::LeastLoaded { .. }
        )
    });
}

#[test]
fn broadcasts_reach_everybody() {
    all(|workload| matches!(workload, Workload::Broadcast { .. }));
}

#[test]
fn questions_are_answered() {
    all(|workload| matches!(workload, Workload::AskOne | Workload::AskMany | Workload::AskFromActor));
}

#[test]
fn actors_end_when_they_are_stopped() {
    all(|workload| workload == Workload::SpawnAndStop);
}

#[test]
fn idle_actors_have_handled_one_message() {
    all(|workload| matches!(workload, Workload::IdleBytes | Workload::HotAmongIdle));
}

#[test]
fn messages_go_round_and_at_random() {
    all(|workload| matches!(workload, Workload::Ring | Workload::Big));
}

#[test]
fn messages_that_arrive_by_a_timetable_are_all_handled() {
    all(|workload| matches!(workload, Workload::Latency { .. }));
}
