//! Timers: what it costs to set, cancel and fire one, alone and among a million that wait.
//!
//! Budget: to insert and to cancel take at most 60 ns each with a million pending. That is the wheel's own work,
//! which this compiles for itself; under the scheduler's service a timer also has a lock, a task on the heap and
//! the closure in it. The million are spread over an hour. A deadline that is cancelled soon after it was set is what
//! asks have; what is picked at random among the million is in no cache, nor are its neighbours, and that figure is
//! the memory's rather than the arithmetic's.

mod common;
// Private to the crate, and needs nothing of it; its unit tests, without a harness, use nothing.
#[allow(dead_code, unused_imports)]
#[path = "../src/time/wheel.rs"]
mod wheel;

use common::{SOON, Subject, compare};
use criterion::{Criterion, criterion_group, criterion_main};
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use pointsman::timers::{Cancellable, TaskTimer};
use std::hint::black_box;
use std::time::{Duration, Instant};
use wheel::{Key, Wheel};

const MANY: usize = 1_000_000;
/// All deadlines lie within an hour.
const SPREAD: u64 = 3_600_000;

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        // Marsaglia's xorshift64.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn deadline(&mut self) -> u64 {
        1 + self.below(SPREAD)
    }
}

/// What a timer of the engine's holds: a kind and two words.
type Value = [u64; 3];

fn filled(pending: usize) -> (Wheel<Value>, Vec<Key>, Numbers) {
    let mut numbers = Numbers(42);
    let mut wheel = Wheel::new(0);
    let keys = (0..pending).map(|_| wheel.insert(numbers.deadline(), [0; 3])).collect();
    (wheel, keys, numbers)
}

/// Takes so many at random out of the pending ones.
fn pick<T>(pending: &mut Vec<T>, count: usize, numbers: &mut Numbers) -> Vec<T> {
    (0..count).map(|_| pending.swap_remove(numbers.below(pending.len() as u64) as usize)).collect()
}

/// Runs `round` until `operations` are done; it does as many as it is told, and says how long the part took that
/// counts. With few pending each round is one operation.
fn in_rounds(operations: u64, pending: usize, mut round: impl FnMut(usize) -> Duration) -> Duration {
    // A hundredth changes nothing in how many wait, and a clock is read once for many.
    let size = (pending / 100).max(1) as u64;
    let mut left = operations;
    let mut took = Duration::ZERO;
    while left > 0 {
        let count = left.min(size);
        took += round(count as usize);
        left -= count;
    }
    took
}

/// Deadlines as asks have them: set, and cancelled soon. The two together, for one alone costs less than a look at
/// the clock.
fn soon(pending: usize) -> impl FnMut(u64) -> Duration {
    let (mut wheel, _, mut numbers) = filled(pending);
    move |operations| {
        let start = Instant::now();
        for _ in 0..operations {
            let key = wheel.insert(numbers.deadline(), [0; 3]);
            black_box(wheel.cancel(key));
        }
        start.elapsed() / 2
    }
}

fn wheel_alone(criterion: &mut Criterion) {
    let (mut inserting, mut cancelling) = (filled(MANY), filled(MANY));
    let insert = move |operations| {
        in_rounds(operations, MANY, |count| {
            let (wheel, keys, numbers) = &mut inserting;
            for key in pick(keys, count, numbers) {
                wheel.cancel(key);
            }
            let start = Instant::now();
            for _ in 0..count {
                keys.push(wheel.insert(wheel.now() + numbers.deadline(), [0; 3]));
            }
            start.elapsed()
        })
    };
    let cancel = move |operations| {
        in_rounds(operations, MANY, |count| {
            let (wheel, keys, numbers) = &mut cancelling;
            let picked = pick(keys, count, numbers);
            let start = Instant::now();
            for key in picked {
                black_box(wheel.cancel(key));
            }
            let took = start.elapsed();
            for _ in 0..count {
                keys.push(wheel.insert(wheel.now() + numbers.deadline(), [0; 3]));
            }
            took
        })
    };
    let fire = |pending: usize| {
        let (mut wheel, _, mut numbers) = filled(pending);
        move |operations| {
            let mut fired = 0;
            let mut took = Duration::ZERO;
            while fired < operations {
                let before = fired;
                let start = Instant::now();
                // Tick by tick, as a timer thread that keeps up; redistribution included.
                while fired < operations && fired - before < (pending as u64 / 100).max(1) {
                    let next = wheel.next_deadline().expect("some wait");
                    wheel.advance(next, &mut |_, value| {
                        black_box(value);
                        fired += 1;
                    });
                }
                took += start.elapsed();
                for _ in before..fired {
                    wheel.insert(wheel.now() + numbers.deadline(), [0; 3]);
                }
            }
            took
        }
    };
    compare(
        criterion,
        "wheel",
        100_000,
        vec![
            Subject::new("insert or cancel soon, 1 pending", soon(1)),
            Subject::new("insert or cancel soon, 10^6", soon(MANY)),
            Subject::new("insert, 10^6, random places", insert),
            Subject::new("cancel, 10^6, random places", cancel),
            Subject::new("fire, 10^6 pending", fire(MANY)),
        ],
    );
}

/// Memory of this process that is in use, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux has it");
    let kibibytes: usize = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kibibytes * 1024
}

fn schedule(scheduler: &TaskTimer, numbers: &mut Numbers) -> Cancellable {
    let delay = Duration::from_millis(numbers.deadline());
    scheduler.once(delay, || ()).expect("the system lives")
}

fn service(criterion: &mut Criterion) {
    let clock = ManualClock::new();
    let system = System::builder("bench")
        .clock(clock.clone())
        .dispatcher("default", Dispatcher::work_stealing().threads(1))
        .build()
        .expect("threads can be had");
    let scheduler = system.task_timer().expect("the system lives");
    let mut numbers = Numbers(42);
    let one = |operations: u64| {
        let mut numbers = Numbers(7);
        let start = Instant::now();
        for _ in 0..operations {
            assert!(schedule(&scheduler, &mut numbers).cancel());
        }
        start.elapsed() / 2
    };
    println!();
    let single = one(100_000).as_secs_f64() * 1e9 / 100_000.0;
    println!("scheduler: once or cancel, none pending: {single:.1} ns each");
    let before = resident();
    let mut tasks: Vec<Cancellable> = Vec::with_capacity(MANY);
    tasks.extend((0..MANY).map(|_| schedule(&scheduler, &mut numbers)));
    let bytes = (resident() - before) as f64 / MANY as f64;
    println!(
        "scheduler: {MANY} tasks pending: {bytes:.0} bytes each (RSS, 8 of them the handle that is kept)"
    );
    let tasks = std::cell::RefCell::new((tasks, numbers));
    let once = |operations| {
        in_rounds(operations, MANY, |count| {
            let (tasks, numbers) = &mut *tasks.borrow_mut();
            for task in pick(tasks, count, numbers) {
                task.cancel();
            }
            let start = Instant::now();
            tasks.extend((0..count).map(|_| schedule(&scheduler, numbers)));
            start.elapsed()
        })
    };
    let cancel = |operations| {
        in_rounds(operations, MANY, |count| {
            let (tasks, numbers) = &mut *tasks.borrow_mut();
            let picked = pick(tasks, count, numbers);
            let start = Instant::now();
            for task in &picked {
                assert!(task.cancel());
            }
            let took = start.elapsed();
            tasks.extend((0..count).map(|_| schedule(&scheduler, numbers)));
            took
        })
    };
    compare(
        criterion,
        "scheduler, 10^6 pending",
        100_000,
        vec![Subject::new("once", once), Subject::new("cancel", cancel)],
    );
    // All at once: from the clock's move to the last run.
    let waiting = tasks.into_inner().0;
    let handled = system.ledger().handled;
    let start = Instant::now();
    clock.advance(Duration::from_millis(SPREAD));
    while system.ledger().handled - handled < MANY as u64 {
        std::thread::yield_now();
        assert!(start.elapsed() < SOON, "tasks are lost");
    }
    let each = start.elapsed().as_secs_f64() * 1e9 / MANY as f64;
    println!("\nscheduler: fire and run {MANY} that are due: {each:.1} ns each");
    assert!(waiting.iter().all(Cancellable::is_over));
    assert_eq!(system.shutdown(SOON).expect("everything ends").balance(), 0, "a message is lost");
}

criterion_group!(benches, wheel_alone, service);
criterion_main!(benches);
