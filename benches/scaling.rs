//! Beyond two cores: routed tells as senders, routees and workers grow, against direct tells to the same routees in
//! turn.
//!
//! One of the three varies at a time, the others stay as in [`BASE`]; `SCALING_GRID=full` takes every combination.
//! Senders are threads outside of the pool. More senders and workers than the machine has cores show what a preempted
//! thread costs the others, not how lines move: for that, count the cores first. What the rows should do on more cores
//! is in `docs/scaling.md`.

mod common;

use common::{Count, SOON, Sink, Subject, Words, compare, on_threads, with_system};
use criterion::{Criterion, criterion_group, criterion_main};
use pointsman::prelude::*;
use pointsman::routing::{ConsistentHashing, Random, RoundRobin, RoutingLogic};
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const SENDERS: [usize; 5] = [1, 2, 4, 8, 16];
const ROUTEES: [usize; 3] = [1, 8, 64];
const WORKERS: [usize; 4] = [1, 2, 4, 16];
const BASE: Point = Point { senders: 4, routees: 8, workers: 2 };

const MESSAGES: u64 = 50_000;

/// Messages of one sender between two looks at what is handled. A look reads a line of each routee, so there are few.
const STRETCH: u64 = 512;

/// Messages of one sender that may be in flight: without a bound only the growth of queues would be measured.
const WINDOW: u64 = 1024;

/// What is measured together.
#[derive(Clone, Copy, PartialEq)]
struct Point {
    senders: usize,
    routees: usize,
    workers: usize,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { senders, routees, workers } = self;
        write!(f, "{senders} senders, {routees} routees, {workers} workers")
    }
}

/// All combinations.
fn grid() -> impl Iterator<Item = Point> {
    WORKERS.into_iter().flat_map(|workers| {
        ROUTEES.into_iter().flat_map(move |routees| {
            SENDERS.into_iter().map(move |senders| Point { senders, routees, workers })
        })
    })
}

impl Point {
    /// In how many ways it is not the base.
    fn distance(&self) -> usize {
        [self.senders != BASE.senders, self.routees != BASE.routees, self.workers != BASE.workers]
            .into_iter()
            .filter(|differs| *differs)
            .count()
    }
}

struct Pool {
    router: Router<Words>,
    counts: Vec<Arc<Count>>,
}

impl Pool {
    fn spawn(system: &System, name: &str, routees: usize, logic: impl RoutingLogic<Words>) -> Self {
        let counts: Vec<Arc<Count>> = (0..routees).map(|_| Arc::default()).collect();
        let recipe = {
            let counts = counts.clone();
            move |ctx: &mut Context<Words>| Sink { handled: counts[ctx.routee_index()].clone() }
        };
        let router = system.router(name).pool(routees, recipe).logic(logic).spawn().expect("a free name");
        Self { router, counts }
    }

    fn handled(&self) -> u64 {
        self.counts.iter().map(|count| count.get()).sum()
    }

    /// Sends so many messages from so many threads, until all are handled.
    fn run(&self, senders: usize, messages: u64, tell: impl Fn(u64, Words) + Sync) -> Duration {
        let (before, start) = (self.handled(), Instant::now());
        let wait_for = |count: u64| {
            while self.handled() - before < count {
                thread::yield_now();
                assert!(start.elapsed() < SOON, "messages are lost");
            }
        };
        let in_all = senders as u64;
        on_threads(senders, |sender| {
            let own = messages / in_all + u64::from((sender as u64) < messages % in_all);
            for number in 0..own {
                if number % STRETCH == 0 {
                    // The one who is furthest behind never waits for the others.
                    wait_for(number.saturating_sub(WINDOW) * in_all);
                }
                // Keys of different senders differ.
                tell(number, [number * in_all + sender as u64, own]);
            }
        });
        wait_for(messages);
        assert_eq!(self.handled() - before, messages, "a message was handled twice");
        start.elapsed()
    }
}

fn measure(criterion: &mut Criterion, point: Point) {
    let Point { senders, routees, workers } = point;
    with_system(workers, |system| {
        let by_key = ConsistentHashing::by(|words: &Words, key| key.feed(&words[0]));
        let direct = Pool::spawn(system, "direct", routees, RoundRobin::new());
        let pools = [
            Pool::spawn(system, "round-robin", routees, RoundRobin::new()),
            Pool::spawn(system, "random", routees, Random::new()),
            Pool::spawn(system, "consistent-hashing", routees, by_key),
            Pool::spawn(system, "round-robin-exact", routees, RoundRobin::exact()),
        ];
        let names = ["round robin", "random", "consistent hashing", "round robin exact"];
        let targets = direct.router.routees().expect("the router lives");
        let mut subjects = vec![Subject::new("direct tells in turn", |messages| {
            direct.run(senders, messages, |number, words| targets[number as usize % routees].tell(words))
        })];
        for (name, pool) in names.into_iter().zip(&pools) {
            let reference = pool.router.to_ref();
            subjects.push(Subject::new(name, move |messages| {
                pool.run(senders, messages, |_, words| reference.tell(words))
            }));
        }
        compare(criterion, &point.to_string(), MESSAGES, subjects);
    });
}

fn scaling(criterion: &mut Criterion) {
    let takes_all = std::env::var_os("SCALING_GRID").is_some_and(|grid| grid == "full");
    for point in grid().filter(|point| takes_all || point.distance() <= 1) {
        measure(criterion, point);
    }
}

criterion_group!(benches, scaling);
criterion_main!(benches);
