//! Routing: a told router against direct tells to the same eight actors in turn.

mod common;

use common::{Count, SOON, Sink, Subject, Words, compare, on_threads, with_system};
use criterion::{Criterion, criterion_group, criterion_main};
use pointsman::prelude::*;
use pointsman::routing::{Broadcast, ConsistentHashing, Random, RoundRobin, RoutingLogic, SmallestMailbox};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const ROUTEES: usize = 8;

/// Deliveries between two waits for the actors: without them only the growth of queues would be measured.
const WINDOW: u64 = 512;

struct Pool {
    router: Router<Words>,
    counts: Vec<Arc<Count>>,
    /// Deliveries that come of one message.
    each: u64,
}

impl Pool {
    fn spawn(system: &System, name: &str, each: u64, logic: impl RoutingLogic<Words>) -> Self {
        let counts: Vec<Arc<Count>> = (0..ROUTEES).map(|_| Arc::default()).collect();
        let recipe = {
            let counts = counts.clone();
            move |ctx: &mut Context<Words>| Sink { handled: counts[ctx.routee_index()].clone() }
        };
        let name = name.replace(' ', "-");
        let router = system.router(&name).pool(ROUTEES, recipe).logic(logic).spawn().expect("a free name");
        Self { router, counts, each }
    }

    fn handled(&self) -> u64 {
        self.counts.iter().map(|count| count.get()).sum()
    }

    /// Sends from threads outside the pool, until everything is handled.
    fn run(&self, senders: usize, deliveries: u64, tell: impl Fn(u64, Words) + Sync) -> Duration {
        let each_sender = (deliveries / self.each / senders as u64).max(1);
        let all = each_sender * senders as u64 * self.each;
        let (before, start) = (self.handled(), Instant::now());
        let wait_for = |count: u64| {
            while self.handled() - before < count {
                thread::yield_now();
                assert!(start.elapsed() < SOON, "messages are lost");
            }
        };
        on_threads(senders, |_| {
            for number in 0..each_sender {
                if number % 64 == 0 {
                    // As all senders are about as far, this bounds what is in flight.
                    wait_for((number * senders as u64 * self.each).saturating_sub(WINDOW * senders as u64));
                }
                tell(number, [number, each_sender]);
            }
        });
        wait_for(all);
        assert_eq!(self.handled() - before, all, "a message was handled twice");
        start.elapsed()
    }
}

fn routing(criterion: &mut Criterion) {
    with_system(2, |system| {
        let by_key = ConsistentHashing::by(|words: &Words, key| key.feed(&words[0]));
        let direct = Pool::spawn(system, "direct", 1, RoundRobin::new());
        let pools = [
            ("round robin", Pool::spawn(system, "round robin", 1, RoundRobin::new())),
            ("round robin exact", Pool::spawn(system, "round robin exact", 1, RoundRobin::exact())),
            ("random", Pool::spawn(system, "random", 1, Random::new())),
            ("smallest mailbox", Pool::spawn(system, "smallest mailbox", 1, SmallestMailbox::new())),
            ("consistent hashing", Pool::spawn(system, "consistent hashing", 1, by_key)),
            ("broadcast, per delivery", Pool::spawn(system, "broadcast", ROUTEES as u64, Broadcast)),
        ];
        let routees = direct.router.routees().expect("the router lives");
        for senders in [1, 2, 4] {
            let in_turn = |deliveries: u64| {
                direct.run(senders, deliveries, |number, words| {
                    routees[number as usize % ROUTEES].tell(words);
                })
            };
            let mut subjects = vec![Subject::new("direct tells in turn", in_turn)];
            for (name, pool) in &pools {
                let reference = pool.router.to_ref();
                subjects.push(Subject::new(*name, move |deliveries| {
                    pool.run(senders, deliveries, |_, words| reference.tell(words))
                }));
            }
            compare(criterion, &format!("{ROUTEES} routees, {senders} senders"), 200_000, subjects);
        }
    });
}

criterion_group!(benches, routing);
criterion_main!(benches);
