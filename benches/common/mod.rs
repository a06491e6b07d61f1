//! What the benchmarks share: actors that count, and a way to take turns.
//!
//! Budgets are ratios, and a machine's speed drifts while it works. So every comparison is taken in
//! *rounds*: each subject runs once in each round, and the ratio is that of the medians of one run.

#![allow(dead_code)] // not every benchmark uses everything

use criterion::{BenchmarkId, Criterion};
use pointsman::group::Group;
use pointsman::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What everything that must happen soon may take.
pub const SOON: Duration = Duration::from_secs(60);

/// Rounds in a comparison.
pub const ROUNDS: usize = 15;

/// A message of 16 bytes.
pub type Words = [u64; 2];

/// Counts what it gets.
pub struct Sink {
    pub handled: Arc<Count>,
}

/// A count on a line of its own, written by one thread at a time.
#[derive(Default)]
#[repr(align(128))]
pub struct Count(AtomicU64);

impl Count {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub fn add(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

impl Actor for Sink {
    type Message = Words;
    fn receive(&mut self, message: Words, _: &mut Context<Words>) -> HandlerResult {
        std::hint::black_box(message);
        self.handled.add();
        Ok(())
    }
}

/// A group of sinks and what they have handled.
pub struct Sinks {
    pub actors: Vec<ActorRef<Words>>,
    counts: Vec<Arc<Count>>,
}

impl Sinks {
    pub fn spawn(system: &SystemRef, count: usize) -> Self {
        let counts: Vec<Arc<Count>> = (0..count).map(|_| Arc::default()).collect();
        let spawn = |handled: &Arc<Count>| {
            let handled = handled.clone();
            system.spawn(move || Sink { handled: handled.clone() }).expect("the system lives")
        };
        Self { actors: counts.iter().map(spawn).collect(), counts }
    }

    /// The one actor of a group, which is created by the first message.
    pub fn group(system: &SystemRef) -> (Self, Group<Words, u64>) {
        let count: Arc<Count> = Arc::default();
        let handled = count.clone();
        let recipe = move |_: &mut Context<Words>, _: &u64| Sink { handled: handled.clone() };
        let group = system.group("sinks").by_key(|_: &Words| 7, recipe).spawn().expect("the system lives");
        (Self { actors: vec![group.to_ref()], counts: vec![count] }, group)
    }

    pub fn handled(&self) -> u64 {
        self.counts.iter().map(|count| count.get()).sum()
    }

    pub fn wait_for(&self, handled: u64) {
        let start = Instant::now();
        while self.handled() < handled {
            thread::yield_now();
            assert!(start.elapsed() < SOON, "{} of {handled} handled: messages are lost", self.handled());
        }
    }
}

/// A system whose books must balance when it ends.
pub fn with_system<R>(threads: usize, run: impl FnOnce(&System) -> R) -> R {
    let system = System::builder("bench")
        .dispatcher("default", Dispatcher::work_stealing().threads(threads))
        .build()
        .expect("threads can be had");
    let result = run(&system);
    assert_eq!(system.shutdown(SOON).expect("everything ends").balance(), 0, "a message is lost");
    result
}

/// One of several things that are measured side by side: takes a number of operations, says how long they took.
pub struct Subject<'a> {
    pub name: String,
    pub run: Box<dyn FnMut(u64) -> Duration + 'a>,
}

impl<'a> Subject<'a> {
    pub fn new(name: impl Into<String>, run: impl FnMut(u64) -> Duration + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// Runs all subjects in turn and hands them to criterion. Prints each one's ns per operation and their ratio to the
/// first subject's: the median, and the best round, which tells more where other programs share the machine.
pub fn compare(criterion: &mut Criterion, group: &str, operations: u64, mut subjects: Vec<Subject<'_>>) {
    let mut times: Vec<Vec<f64>> = subjects.iter().map(|_| Vec::new()).collect();
    // `cargo test --benches` only wants to see that it runs.
    let quick = std::env::args().any(|arg| arg == "--test");
    let (rounds, operations) = if quick { (1, operations.min(1000)) } else { (ROUNDS, operations) };
    for round in 0..=rounds {
        for (subject, times) in subjects.iter_mut().zip(&mut times) {
            let took = (subject.run)(operations);
            // The first round warms up.
            if round > 0 {
                times.push(took.as_secs_f64() * 1e9 / operations as f64);
            }
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let medians: Vec<f64> = times.iter_mut().map(median).collect();
    let bests: Vec<f64> = times.iter().map(|times| times[0]).collect();
    println!("\n{group}: {rounds} interleaved rounds of {operations} operations");
    for ((subject, median), times) in subjects.iter().zip(&medians).zip(&times) {
        let least = times[0];
        let (ratio, best_ratio) = (median / medians[0], least / bests[0]);
        println!(
            "  {:<34} median {median:>8.1} ns, ratio {ratio:>5.2};  best {least:>8.1} ns, ratio {best_ratio:>5.2}",
            subject.name
        );
    }
    let mut group = criterion.benchmark_group(group);
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500));
    for subject in &mut subjects {
        group.bench_function(BenchmarkId::from_parameter(&subject.name), |bencher| {
            bencher.iter_custom(|operations| (subject.run)(operations));
        });
    }
    group.finish();
}

/// Runs `work` on so many threads at once, and says how long all of them took.
pub fn on_threads(count: usize, work: impl Fn(usize) + Sync) -> Duration {
    let start = Instant::now();
    thread::scope(|scope| {
        for number in 0..count {
            let work = &work;
            scope.spawn(move || work(number));
        }
    });
    start.elapsed()
}
