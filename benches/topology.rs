//! Topologies: a send by an outlet, and a tell by a key, beside a direct tell.
//!
//! 2026-11-22, AMD EPYC, 2 cores and nobody else on them, medians of 15 rounds; `cargo bench --bench topology`. ns for
//! each delivery, from a thread outside the pool:
//!
//! | | ns |
//! |---|---|
//! | direct tell to one actor | 23 |
//! | tell to one key (`group.key(k)`) | 34 |
//! | tell to a group, by key | 54 |
//! | `try_send` to the actor | 103 |
//! | outlet, one route | 112 |
//! | outlet, the last of eight routes | 126 |
//! | outlet, eight routes, per delivery | 49 |

mod common;

use common::{Sinks, Subject, Words, compare, with_system};
use criterion::{Criterion, criterion_group, criterion_main};
use pointsman::prelude::*;
use pointsman::topology::Outlet;
use std::time::{Duration, Instant};

/// Deliveries between two waits for the actors: without them only the growth of queues would be measured.
const WINDOW: u64 = 512;

/// Sends from a thread outside the pool, until everything is handled.
fn run(sinks: &Sinks, deliveries: u64, each: u64, send: impl Fn(Words)) -> Duration {
    let before = sinks.handled();
    let start = Instant::now();
    let messages = deliveries / each;
    for number in 0..messages {
        if number % 64 == 0 {
            sinks.wait_for(before + (number * each).saturating_sub(WINDOW));
        }
        send([number, messages]);
    }
    sinks.wait_for(before + messages * each);
    start.elapsed()
}

/// A group that routes to so many others, the last of them those of these sinks; conditions let only the last
/// one through if `only_last`.
fn outlet(system: &SystemRef, name: &str, targets: &[ActorRef<Words>], only_last: bool) -> Outlet<Words> {
    let topology = system.topology();
    let source = topology.local::<Words>(name).expect("a free name");
    for (number, target) in targets.iter().enumerate() {
        let group = topology.local::<Words>(&format!("{name}-{number}")).expect("a free name");
        let is_open = !only_last || number + 1 == targets.len();
        source.route_to(&group, move |words: &Words| is_open || words[1] == 0);
        group.mount(target);
    }
    let outlet = source.outlet();
    source.mount(&targets[0]);
    outlet
}

fn topology(criterion: &mut Criterion) {
    with_system(2, |system| {
        let sinks = Sinks::spawn(system, 1);
        let actor = &sinks.actors[0];
        let (lodger, group) = Sinks::group(system);
        let key = group.key(7);
        let one = outlet(system, "one", &sinks.actors, false);
        let eight: Vec<_> = std::iter::repeat_n(actor.clone(), 8).collect();
        let last_of_eight = outlet(system, "last", &eight, true);
        let all_eight = outlet(system, "all", &eight, false);
        let subjects = vec![
            Subject::new("direct tell", |n| run(&sinks, n, 1, |words| actor.tell(words))),
            Subject::new("try_send to the actor", |n| {
                run(&sinks, n, 1, |words| actor.try_send(words).expect("it lives"))
            }),
            Subject::new("tell to a group, by key", |n| run(&lodger, n, 1, |words| group.tell(words))),
            Subject::new("tell to one key", |n| run(&lodger, n, 1, |words| key.tell(words))),
            Subject::new("outlet, one route", |n| {
                run(&sinks, n, 1, |words| one.try_send(words).expect("it lives"))
            }),
            Subject::new("outlet, the last of eight routes", |n| {
                run(&sinks, n, 1, |words| last_of_eight.try_send(words).expect("it lives"))
            }),
            Subject::new("outlet, eight routes, per delivery", |n| {
                run(&sinks, n, 8, |words| all_eight.try_send(words).expect("it lives"))
            }),
        ];
        compare(criterion, "level one", 200_000, subjects);
    });
}

criterion_group!(benches, topology);
criterion_main!(benches);
