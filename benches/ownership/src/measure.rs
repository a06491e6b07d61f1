//! Measures the constants of the machine, with threads and the clock alone. Two threads need two idle cores.

use crate::machine::{Machine, XEON};
use crate::pairs::{COUNT, PAIRS, Pair, SLOTS};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// Lines that the own cache of a core holds.
const LINES: usize = 1024;

const ROUNDS: usize = 21;

/// 128 bytes, since processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Line {
    word: AtomicU64,
}

fn median_of(rounds: usize, mut figure: impl FnMut() -> f64) -> f64 {
    let mut figures: Vec<f64> = (0..rounds).map(|_| figure()).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The nanoseconds of one of `count` operations that `run` does.
fn nanos_each(count: usize, run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64 / count as f64
}

/// The nanoseconds of an operation that one thread repeats.
fn alone(count: usize, mut act: impl FnMut()) -> f64 {
    median_of(ROUNDS, || nanos_each(count, || (0..count).for_each(|_| act())))
}

/// The time of one processor cycle, by a chain of multiplications of three cycles each.
fn cycle() -> f64 {
    let (mut value, factor) = (black_box(3_u64), black_box(5_u64));
    let multiplication = alone(1_000_000, || value = value.wrapping_mul(black_box(factor)));
    black_box(value);
    multiplication / 3.0
}

/// Does `act` to lines that another thread has written before; the nanoseconds for each line.
fn after_other_core(act: fn(&[Line])) -> f64 {
    // Each line names the next one of a walk, which processors do not foresee and which reaches all lines.
    let lines: Vec<Line> =
        (0..LINES).map(|index| Line { word: AtomicU64::new(((index + 389) % LINES) as u64) }).collect();
    let turn = AtomicUsize::new(0);
    let wait_for = |number| {
        while turn.load(Ordering::Acquire) != number {
            spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                wait_for(2 * round);
                for line in &lines {
                    line.word.store(line.word.load(Ordering::Relaxed), Ordering::Release);
                }
                turn.store(2 * round + 1, Ordering::Release);
            }
        });
        let mut round = 0;
        median_of(ROUNDS, || {
            wait_for(2 * round + 1);
            let figure = nanos_each(LINES, || act(&lines));
            round += 1;
            turn.store(2 * round, Ordering::Release);
            figure
        })
    })
}

fn read_in_order(lines: &[Line]) {
    black_box(lines.iter().fold(0, |sum: u64, line| sum.wrapping_add(line.word.load(Ordering::Acquire))));
}

fn read_chained(lines: &[Line]) {
    black_box((0..LINES).fold(0, |index, _| lines[index].word.load(Ordering::Acquire) as usize));
}

fn change_chained(lines: &[Line]) {
    black_box((0..LINES).fold(0, |index, _| lines[index].word.fetch_add(0, Ordering::AcqRel) as usize));
}

/// Claims a number in an own line, and stores to the line of that number.
fn store_to_claimed(lines: &[Line]) {
    let claims = black_box(Line::default());
    for _ in 0..LINES {
        let index = claims.word.fetch_add(389, Ordering::AcqRel) as usize % LINES;
        lines[index].word.store(((index + 389) % LINES) as u64, Ordering::Release);
    }
}

/// Measures the constants that concern the processor. Two of them are no times of single accesses, and keep their
/// proportion: `retained` and `crowded` make the model agree with pairs of threads. Those that concern the kernel and
/// the allocator stay.
pub fn machine() -> Machine {
    let line = Line::default();
    let change = alone(1_000_000, || _ = line.word.fetch_add(1, Ordering::AcqRel));
    let far_change = after_other_core(change_chained) - change;
    Machine {
        instruction: cycle() / 2.6,
        change,
        far_read: after_other_core(read_chained),
        far_change,
        far_store: after_other_core(store_to_claimed) - change,
        crowded: far_change * XEON.crowded / XEON.far_change,
        retained: far_change * XEON.retained / XEON.far_change,
        ahead: after_other_core(read_in_order),
        pause: alone(100_000, spin_loop),
        yielding: alone(10_000, thread::yield_now),
        ..XEON
    }
}

/// Measures the pairs of threads that [`pairs`](crate::pairs) simulates.
pub fn pairs() -> [f64; 4] {
    PAIRS.map(|(pair, _)| median_of(7, || run_pair(pair)))
}

fn run_pair(pair: Pair) -> f64 {
    let word = Line::default();
    let slots: Vec<[AtomicU64; 3]> = (0..3 * SLOTS).map(|_| Default::default()).collect();
    let ready = AtomicUsize::new(0);
    let run = |thread| {
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < 2 {
            spin_loop();
        }
        nanos_each(COUNT as usize, || {
            for number in 0..COUNT {
                let index = word.word.fetch_add(1, Ordering::AcqRel);
                if let Some(slot) = pair.slot(index, number, thread) {
                    let [stamp, first, second] = &slots[slot as usize];
                    first.store(number, Ordering::Relaxed);
                    second.store(thread, Ordering::Relaxed);
                    stamp.store(index, Ordering::Release);
                }
            }
        })
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        (run(0) + other.join().expect("it only counts")) / 2.0
    })
}
