//! What a pool costs: time to create and to stop it, and memory, for each of 10,000 and of 100,000 routees. It must be
//! near linear: a routee of the large pool may cost up to three times as much as one of the small pool, since its memory no
//! longer lies in the caches. Ten times the routees took 13.8 times as long to create and 15.6 times to stop.
//!
//! Memory is what the allocator has handed out, the table and the head's list included. `stop` is the router's;
//! `each by itself` lets all routees end one by one, of which each is a change of the table.
//!
//! 2026-11-22, AMD EPYC, 2 cores and nobody else on them, medians of 5; `cargo bench --bench pools`:
//!
//! | routees | create, ns | stop, ns | each by itself, ns | bytes, used once |
//! |---|---|---|---|---|
//! | 10,000 | 1,036 | 1,351 | 1,367 | 1,292 |
//! | 100,000 | 1,428 | 2,103 | 1,069 | 1,246 |
//!
//! Bytes are with 64 of state, a mailbox that has held a message, and what the head keeps for the routee. Where routees
//! have just been created, some have not had their first turn.

use pointsman::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SIZES: [usize; 2] = [10_000, 100_000];
const ROUNDS: usize = 5;
const SOON: Duration = Duration::from_secs(120);
/// How much more a routee may cost in the large pool: caches are no larger there.
const LINEAR: f64 = 3.0;

/// Counts bytes in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { Heap.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { Heap.dealloc(memory, layout) }
    }
}

/// Does nothing, with 64 bytes of state.
struct Idler {
    _state: [u64; 8],
}

impl Actor for Idler {
    type Message = [u64; 2];
    fn receive(&mut self, _: [u64; 2], _: &mut Context<[u64; 2]>) -> HandlerResult {
        Ok(())
    }
}

/// What one routee costs, in ns and bytes.
#[derive(Clone, Copy)]
struct Cost {
    create: f64,
    stop: f64,
    each_by_itself: f64,
    /// New, and after a message.
    bytes: [f64; 2],
}

fn wait_until(seen: impl Fn() -> bool) {
    let start = Instant::now();
    while !seen() {
        thread::yield_now();
        assert!(start.elapsed() < SOON, "it takes too long");
    }
}

fn pool(system: &System, name: &str, size: usize) -> Router<[u64; 2]> {
    system.router(name).pool(size, |_| Idler { _state: [0; 8] }).spawn().expect("the name is free")
}

fn measure(size: usize) -> Cost {
    let system = System::builder("pools").build().expect("threads can be had");
    let none = system.living_actors();
    let per_routee = |start: Instant| start.elapsed().as_nanos() as f64 / size as f64;

    let (before, start) = (IN_USE.load(Ordering::Relaxed), Instant::now());
    let router = pool(&system, "stopped", size);
    // The first answer comes behind the creation of all.
    assert_eq!(router.routees_info().expect("it lives").len(), size);
    let create = per_routee(start);
    let in_use = || (IN_USE.load(Ordering::Relaxed) - before) as f64 / size as f64;
    let new = in_use();
    router.broadcast([0; 2]);
    wait_until(|| system.ledger().handled > size as u64);
    let bytes = [new, in_use()];

    let start = Instant::now();
    router.stop();
    wait_until(|| system.living_actors() == none);
    let stop = per_routee(start);

    let routees = pool(&system, "ended", size).routees().expect("it lives");
    let start = Instant::now();
    routees.iter().for_each(|routee| routee.poison());
    drop(routees);
    wait_until(|| system.living_actors() == none);
    let each_by_itself = per_routee(start);
    assert_eq!(system.shutdown(SOON).expect("everything ends").balance(), 0);
    Cost { create, stop, each_by_itself, bytes }
}

fn main() {
    // `cargo test --benches` only wants to see that it runs.
    let quick = std::env::args().any(|arg| arg == "--test");
    let (sizes, rounds) = if quick { ([10, 100], 1) } else { (SIZES, ROUNDS) };
    println!(
        "{:>9} {:>12} {:>12} {:>20} {:>14} {:>14}",
        "routees", "create, ns", "stop, ns", "each by itself, ns", "bytes, new", "used once"
    );
    let medians = sizes.map(|size| {
        let costs: Vec<Cost> = (0..rounds).map(|_| measure(size)).collect();
        let median = |of: fn(&Cost) -> f64| {
            let mut values: Vec<f64> = costs.iter().map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let cost = Cost {
            create: median(|cost| cost.create),
            stop: median(|cost| cost.stop),
            each_by_itself: median(|cost| cost.each_by_itself),
            bytes: [median(|cost| cost.bytes[0]), median(|cost| cost.bytes[1])],
        };
        println!(
            "{size:>9} {:>12.0} {:>12.0} {:>20.0} {:>14.0} {:>14.0}",
            cost.create, cost.stop, cost.each_by_itself, cost.bytes[0], cost.bytes[1]
        );
        cost
    });
    if !quick {
        let ratio = |of: fn(&Cost) -> f64| of(&medians[1]) / of(&medians[0]);
        for (what, ratio) in [
            ("create", ratio(|cost| cost.create)),
            ("stop", ratio(|cost| cost.stop)),
            ("each by itself", ratio(|cost| cost.each_by_itself)),
            ("bytes", ratio(|cost| cost.bytes[1])),
        ] {
            let verdict = if ratio <= LINEAR { "linear" } else { "NOT LINEAR" };
            println!("{what}: a routee costs {ratio:.2} times as much in the large pool: {verdict}");
        }
    }
}
