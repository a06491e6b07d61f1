//! A broadcast to 64 receivers, in the ways in which benchmarks differ: an `Arc` or two words, around each receiver of a
//! channel a task of tokio's or a thread of its own, and a sender that runs ahead without limit or has a limit.
//!
//! ```sh
//! cargo run --release --manifest-path benches/peers/Cargo.toml --bin broadcast
//! ```
//!
//! Each repetition has a process of its own; the ways take turns. It prints medians and quartiles, in ns for each
//! delivery.

use pointsman::prelude::*;
use pointsman::routing::Broadcast;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, process, thread};

const RECEIVERS: usize = 64;
/// Broadcasts of a repetition.
const BROADCASTS: u64 = 100_000;
/// The limit: so many deliveries under way.
const OUTSTANDING: u64 = 8_192;
const ROUNDS: usize = 15;
const WAYS: [&str; 5] = ["pointsman", "kanal-tasks", "kanal-threads", "crossbeam-threads", "flume-tasks"];
const LIMITS: [&str; 2] = ["no-limit", "limit"];

const PARCELS: [&str; 2] = ["arc", "words"];

/// A message. Each receiver adds up its first word, which is 1.
trait Parcel: Clone + Send + Unpin + 'static {
    fn new() -> Self;
    fn first(&self) -> u64;
}

impl Parcel for Arc<[u64; 8]> {
    fn new() -> Self {
        Arc::new([1; 8])
    }

    fn first(&self) -> u64 {
        self[0]
    }
}

impl Parcel for [u64; 2] {
    fn new() -> Self {
        [1; 2]
    }

    fn first(&self) -> u64 {
        self[0]
    }
}

/// The count of one receiver, on lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Tally(AtomicU64);

impl Tally {
    fn add(&self, parcel: &impl Parcel) {
        // Each receiver reads the parcel, as a real receiver would.
        self.0.store(self.0.load(Ordering::Relaxed) + parcel.first(), Ordering::Release);
    }
}

type Tallies = &'static [Tally];

struct Sink<P>(&'static Tally, PhantomData<P>);

impl<P: Parcel> Actor for Sink<P> {
    type Message = P;

    fn receive(&mut self, parcel: P, _: &mut Context<P>) -> HandlerResult {
        self.0.add(&parcel);
        Ok(())
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [way, limit, parcel] if parcel == "arc" => {
            println!("{}", measure::<Arc<[u64; 8]>>(way, limit == "limit"));
        }
        [way, limit, _] => println!("{}", measure::<[u64; 2]>(way, limit == "limit")),
        _ => all(),
    }
}

fn all() {
    let program = env::current_exe().expect("this program has a path");
    let mut cells = Vec::new();
    for parcel in PARCELS {
        for limit in LIMITS {
            cells.extend(WAYS.map(|way| ([way, limit, parcel], Vec::new())));
        }
    }
    for _ in 0..ROUNDS {
        for (cell, figures) in &mut cells {
            let output = process::Command::new(&program).args(*cell).output().expect("it starts");
            let text = String::from_utf8(output.stdout).expect("text");
            figures.push(text.trim().parse::<f64>().expect("a figure"));
        }
    }
    println!("{ROUNDS} rounds, {RECEIVERS} receivers, ns for each delivery: median (quartiles)");
    for ([way, limit, parcel], mut figures) in cells {
        figures.sort_unstable_by(f64::total_cmp);
        let of = |quarter: usize| figures[figures.len() * quarter / 4];
        println!("{parcel:<5} {limit:<8} {way:<18} {:6.1} ({:.1} to {:.1})", of(2), of(1), of(3));
    }
}

/// Nanoseconds for each delivery.
fn measure<P: Parcel>(way: &str, limited: bool) -> f64 {
    let tallies: Tallies = Vec::leak((0..RECEIVERS).map(|_| Tally::default()).collect());
    match way {
        "pointsman" => {
            let system = System::builder("broadcast").build().expect("threads can be had");
            let pool = system
                .router("all")
                .pool(RECEIVERS, |ctx| Sink::<P>(&tallies[ctx.routee_index()], PhantomData));
            let router = pool.logic(Broadcast).spawn().expect("the name is free").to_ref();
            send(tallies, limited, |parcel: &P| router.tell(parcel.clone()))
        }
        "kanal-tasks" => {
            let runtime = runtime();
            let senders: Vec<_> = tallies
                .iter()
                .map(|tally| {
                    let (sender, receiver) = kanal::unbounded::<P>();
                    let receiver = receiver.to_async();
                    runtime.spawn(async move {
                        while let Ok(parcel) = receiver.recv().await {
                            tally.add(&parcel);
                        }
                    });
                    sender
                })
                .collect();
            send(tallies, limited, |parcel: &P| {
                senders.iter().for_each(|sender| assert!(sender.send(parcel.clone()).is_ok()));
            })
        }
        "flume-tasks" => {
            let runtime = runtime();
            let senders: Vec<_> = tallies
                .iter()
                .map(|tally| {
                    let (sender, receiver) = flume::unbounded::<P>();
                    runtime.spawn(async move {
                        while let Ok(parcel) = receiver.recv_async().await {
                            tally.add(&parcel);
                        }
                    });
                    sender
                })
                .collect();
            send(tallies, limited, |parcel: &P| {
                senders.iter().for_each(|sender| assert!(sender.send(parcel.clone()).is_ok()));
            })
        }
        "kanal-threads" => {
            let senders: Vec<_> = tallies
                .iter()
                .map(|tally| {
                    let (sender, receiver) = kanal::unbounded::<P>();
                    thread::spawn(move || {
                        while let Ok(parcel) = receiver.recv() {
                            tally.add(&parcel);
                        }
                    });
                    sender
                })
                .collect();
            send(tallies, limited, |parcel: &P| {
                senders.iter().for_each(|sender| assert!(sender.send(parcel.clone()).is_ok()));
            })
        }
        "crossbeam-threads" => {
            let senders: Vec<_> = tallies
                .iter()
                .map(|tally| {
                    let (sender, receiver) = crossbeam_channel::unbounded::<P>();
                    thread::spawn(move || receiver.iter().for_each(|parcel| tally.add(&parcel)));
                    sender
                })
                .collect();
            send(tallies, limited, |parcel: &P| {
                senders.iter().for_each(|sender| assert!(sender.send(parcel.clone()).is_ok()));
            })
        }
        other => panic!("no such way: {other}"),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("threads can be had")
}

/// Sends all, waits until all have been handled, and returns the nanoseconds for each delivery.
fn send<P: Parcel>(tallies: Tallies, limited: bool, broadcast: impl Fn(&P)) -> f64 {
    let handled = || tallies.iter().map(|tally| tally.0.load(Ordering::Acquire)).sum::<u64>();
    // A fiftieth to warm up.
    let mut sent = 0;
    let mut round = |broadcasts: u64| {
        let began = Instant::now();
        for number in 0..broadcasts {
            broadcast(&P::new());
            sent += RECEIVERS as u64;
            if limited && number % 16 == 15 {
                while sent - handled() > OUTSTANDING {
                    thread::yield_now();
                }
            }
        }
        while handled() < sent {
            thread::sleep(Duration::from_micros(200));
        }
        began.elapsed().as_nanos() as f64 / (broadcasts * RECEIVERS as u64) as f64
    };
    round(BROADCASTS / 50);
    round(BROADCASTS)
}
