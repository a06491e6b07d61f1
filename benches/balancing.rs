//! A balancing pool against a channel with as many consumer threads as the pool has routees: work of which a few
//! messages take a hundred times as long as the others.
//!
//! 2026-11-22, AMD EPYC, 2 cores and nobody else on them, `cargo bench --bench balancing`, ns a message, of 15 rounds:
//!
//! | | channel, median | pool, median | channel, best | pool, best |
//! |---|---|---|---|---|
//! | 1 sender | 34 | 38 | 28 | 37 |
//! | 2 senders | 40 | 64 | 34 | 41 |
//!
//! So the budget, no slower than the channel, is missed by a tenth and by half. Where a line of memory takes long between the
//! cores, as it does on this host for minutes on end, the pool is ahead with two senders: 100 beside 134 ns.

mod common;

use common::{Count, SOON, Subject, Words, compare, on_threads, with_system};
use criterion::{Criterion, criterion_group, criterion_main};
use pointsman::prelude::*;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const TAKERS: usize = 8;

/// One message in so many is a long one.
const LONG_EVERY: u64 = 100;

/// Messages of one sender between two waits for those who take: without them only the growth of queues would be
/// measured.
const WINDOW: u64 = 512;

/// What a message costs whoever takes it.
fn work([number, _]: Words) {
    let turns = if number % LONG_EVERY == 0 { 1000 } else { 10 };
    (0..turns).for_each(|turn| _ = std::hint::black_box(turn));
}

struct Worker {
    handled: Arc<Count>,
}

impl Actor for Worker {
    type Message = Words;
    fn receive(&mut self, words: Words, _: &mut Context<Words>) -> HandlerResult {
        work(words);
        self.handled.add();
        Ok(())
    }
}

/// Sends from so many threads until everything is handled, no more than a window ahead.
fn run(
    senders: usize,
    messages: u64,
    handled: &(dyn Fn() -> u64 + Sync),
    send: &(dyn Fn(Words) + Sync),
) -> Duration {
    let each = (messages / senders as u64).max(1);
    let (before, start) = (handled(), Instant::now());
    let wait_for = |count: u64| {
        while handled() - before < count {
            thread::yield_now();
            assert!(start.elapsed() < SOON, "messages are lost");
        }
    };
    on_threads(senders, |_| {
        for number in 0..each {
            if number % 64 == 0 {
                wait_for((number * senders as u64).saturating_sub(WINDOW * senders as u64));
            }
            send([number, each]);
        }
    });
    wait_for(each * senders as u64);
    assert_eq!(handled() - before, each * senders as u64, "a message was handled twice");
    start.elapsed()
}

fn counts() -> Vec<Arc<Count>> {
    (0..TAKERS).map(|_| Arc::default()).collect()
}

fn total(counts: &[Arc<Count>]) -> u64 {
    counts.iter().map(|count| count.get()).sum()
}

fn balancing(criterion: &mut Criterion) {
    with_system(2, |system| {
        let pool_counts = counts();
        let given = pool_counts.clone();
        let recipe = move |ctx: &mut Context<Words>| Worker { handled: given[ctx.routee_index()].clone() };
        let pool = system.router("balancing").balancing_pool(TAKERS, recipe).spawn().expect("a free name");
        let apart_counts = counts();
        let given = apart_counts.clone();
        let recipe = move |ctx: &mut Context<Words>| Worker { handled: given[ctx.routee_index()].clone() };
        let apart = system.router("round-robin").pool(TAKERS, recipe).spawn().expect("a free name");
        let channel_counts = counts();
        let (sender, receiver) = crossbeam_channel::unbounded::<Words>();
        let consumers: Vec<_> = channel_counts
            .iter()
            .map(|count| {
                let (receiver, count) = (receiver.clone(), count.clone());
                thread::spawn(move || {
                    while let Ok(words) = receiver.recv() {
                        work(words);
                        count.add();
                    }
                })
            })
            .collect();
        for senders in [1, 2] {
            let subjects = vec![
                Subject::new("crossbeam-channel", |messages| {
                    run(senders, messages, &|| total(&channel_counts), &|words| {
                        sender.send(words).expect("a receiver lives");
                    })
                }),
                Subject::new("balancing pool", |messages| {
                    run(senders, messages, &|| total(&pool_counts), &|words| pool.tell(words))
                }),
                Subject::new("round robin, queues apart", |messages| {
                    run(senders, messages, &|| total(&apart_counts), &|words| apart.tell(words))
                }),
            ];
            compare(criterion, &format!("{TAKERS} takers, {senders} senders, skewed"), 100_000, subjects);
        }
        drop(sender);
        consumers.into_iter().for_each(|consumer| consumer.join().expect("no panic"));
    });
}

criterion_group!(benches, balancing);
criterion_main!(benches);
