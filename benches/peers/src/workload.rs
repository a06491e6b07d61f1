//! What is measured: each workload, built from the pieces that a [`Peer`] shows.

use crate::latency::OpenLoop;
use crate::living::{Living, resident};
use crate::peer::{Answer, Peer, Tell};
use crate::scale::Scale;
use crate::tally::{Tallies, wait_until};
use crate::work::{ANSWER, Directory, Recipe};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Actors behind a router.
pub const ROUTEES: usize = 8;
/// Actors that a broadcast reaches.
const LISTENERS: usize = 64;
/// Actors in the ring.
const RING: usize = 1_000;
/// Actors that talk at random.
const BIG: usize = 500;
/// One actor in so many is told something.
const HOT_EVERY: usize = 100;
/// Questions that a thread asks before it waits.
const OUTSTANDING: u64 = 1_000;
/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// Pairs of actors that send one message to and fro.
    PingPong { pairs: usize },
    /// Threads that send to one actor; with a window, each has at most so many messages outstanding.
    ToOne { senders: usize, window: Option<u64> },
    /// Threads that send to eight actors in turn.
    Routed { senders: usize },
    /// Threads that send to eight actors with one queue; one message in a hundred is long work.
    SharedQueue { senders: usize },
    /// Threads that send to whichever of eight actors has least to do; the same work.
    LeastLoaded { senders: usize },
    /// Threads that send to 64 actors at once.
    Broadcast { senders: usize },
    /// A thread that asks and waits.
    AskOne,
    /// A thread that asks 1,000 times and then waits.
    AskMany,
    /// An actor that asks another.
    AskFromActor,
    /// Actors that are created and stopped.
    SpawnAndStop,
    /// Memory of an actor that has handled one message and waits for the next.
    IdleBytes,
    /// One message that goes round 1,000 actors.
    Ring,
    /// 500 actors, each of which sends to another at random, and then waits for the answer.
    Big,
    /// Messages to one in a hundred of 100,000 actors.
    HotAmongIdle,
    /// How long messages take that arrive by a timetable; see [`crate::latency`].
    Latency { load: Load, is_stuck: bool },
}

/// How many messages arrive by a timetable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// This part of the capacity of the slowest library.
    Percent(u32),
    /// This many in a second.
    PerSecond(u32),
}

impl Workload {
    /// Returns whether messages wait in memory without a bound.
    pub fn has_backlog(self) -> bool {
        matches!(
            self,
            Self::ToOne { window: None, .. }
                | Self::Routed { .. }
                | Self::SharedQueue { .. }
                | Self::LeastLoaded { .. }
                | Self::Broadcast { .. }
                | Self::HotAmongIdle
        )
    }
}

/// What one repetition found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Measured {
    /// Nanoseconds for each operation.
    Nanos(f64),
    /// Bytes for each actor.
    Bytes(f64),
    /// Nanoseconds at each of [`QUANTILES`](crate::latency::QUANTILES).
    Latency(Vec<f64>),
}

/// Runs one repetition of a workload; `None` if the library has nothing for it.
pub fn run<P: Peer>(peer: P, workload: Workload, scale: &Scale) -> Option<Measured> {
    let measured = match workload {
        Workload::PingPong { pairs } => Some(ping_pong(&peer, pairs, scale)),
        Workload::ToOne { senders, window } => Some(to_one(&peer, senders, window, scale)),
        Workload::Routed { senders } => {
            let tallies = Tallies::new(ROUTEES);
            let target = peer.round_robin(ROUTEES, Recipe::Sink(tallies));
            Some(flood(&target, tallies, senders, 1, None, scale))
        }
        Workload::SharedQueue { senders } => {
            let tallies = Tallies::new(ROUTEES);
            let target = peer.shared_queue(ROUTEES, Recipe::Worker(tallies));
            target.map(|target| flood(&target, tallies, senders, 1, None, scale))
        }
        Workload::LeastLoaded { senders } => {
            let tallies = Tallies::new(ROUTEES);
            let target = peer.least_loaded(ROUTEES, Recipe::Worker(tallies));
            target.map(|target| flood(&target, tallies, senders, 1, None, scale))
        }
        Workload::Broadcast { senders } => {
            let tallies = Tallies::new(LISTENERS);
            let target = peer.broadcast(LISTENERS, Recipe::Sink(tallies));
            Some(flood(&target, tallies, senders, LISTENERS as u64, None, scale))
        }
        Workload::AskOne => {
            let answerer = peer.answerer();
            Some(scale.time(|asks| {
                let last = (0..asks).fold(0, |number, _| answerer.ask(number));
                assert_eq!(last, asks);
                asks
            }))
        }
        Workload::AskMany => {
            let answerer = peer.answerer();
            Some(scale.time(|asks| {
                let rounds = asks.div_ceil(OUTSTANDING);
                for round in 0..rounds {
                    let first = round * OUTSTANDING;
                    let sum = answerer.ask_all(first..first + OUTSTANDING);
                    assert_eq!(sum, (first + 1..=first + OUTSTANDING).sum::<u64>());
                }
                rounds * OUTSTANDING
            }))
        }
        Workload::AskFromActor => Some(scale.time(|asks| {
            assert_eq!(peer.ask_from_actor(asks), asks);
            asks
        })),
        Workload::SpawnAndStop => Some(spawn_and_stop(&peer, scale)),
        Workload::IdleBytes => Some(idle_bytes(&peer, scale)),
        Workload::Ring => Some(ring(&peer, scale)),
        Workload::Big => Some(big(&peer, scale)),
        Workload::HotAmongIdle => Some(hot_among_idle(&peer, scale)),
        Workload::Latency { is_stuck, .. } => {
            let open_loop = OpenLoop::new(scale, is_stuck);
            let target = peer.round_robin(ROUTEES, Recipe::OpenLoop(open_loop.clone()));
            Some(Measured::Latency(open_loop.run(&target)))
        }
    };
    peer.end();
    measured
}

fn sum_below(count: u64) -> u64 {
    (0..count).sum()
}

/// Sends from threads until all is handled, and times that.
fn flood(
    target: &impl Tell,
    tallies: Tallies,
    senders: usize,
    deliveries: u64,
    window: Option<u64>,
    scale: &Scale,
) -> Measured {
    scale.time(|operations| {
        let each = operations.div_ceil(senders as u64 * deliveries);
        let expected = tallies.expect();
        thread::scope(|scope| {
            for sender in 0..senders {
                let target = target.clone();
                scope.spawn(move || {
                    for number in 0..each {
                        if let Some(window) = window.filter(|_| number % 256 == 0) {
                            while number * senders as u64 > expected.handled() + window * senders as u64 {
                                thread::yield_now();
                            }
                        }
                        target.tell([number, sender as u64]);
                    }
                });
            }
        });
        let sent = each * senders as u64;
        expected.wait_for(sent * deliveries, sum_below(each) * senders as u64 * deliveries);
        sent * deliveries
    })
}

fn to_one<P: Peer>(peer: &P, senders: usize, window: Option<u64>, scale: &Scale) -> Measured {
    let tallies = Tallies::new(1);
    let target = peer.spawn(0, Recipe::Sink(tallies));
    flood(&target, tallies, senders, 1, window, scale)
}

fn ping_pong<P: Peer>(peer: &P, pairs: usize, scale: &Scale) -> Measured {
    let tallies = Tallies::new(pairs);
    let directory = Directory::new();
    let targets = peer.spawn_all(2 * pairs, Recipe::PingPong(directory.clone(), tallies));
    directory.fill(targets.clone());
    scale.time(|operations| {
        let each = operations.div_ceil(pairs as u64);
        let expected = tallies.expect();
        targets.iter().step_by(2).for_each(|target| target.tell([each, 0]));
        expected.wait_for(pairs as u64, each * pairs as u64);
        each * pairs as u64
    })
}

fn ring<P: Peer>(peer: &P, scale: &Scale) -> Measured {
    let tallies = Tallies::new(1);
    let directory = Directory::new();
    directory.fill(peer.spawn_all(RING, Recipe::Ring(directory.clone(), tallies)));
    scale.time(|hops| {
        let expected = tallies.expect();
        directory.tell(0, [hops, 0]);
        expected.wait_for(1, hops);
        hops
    })
}

fn big<P: Peer>(peer: &P, scale: &Scale) -> Measured {
    let tallies = Tallies::new(BIG);
    let directory = Directory::new();
    let targets = peer.spawn_all(BIG, Recipe::Big(directory.clone(), tallies));
    directory.fill(targets.clone());
    scale.time(|messages| {
        let each = messages.div_ceil(2 * BIG as u64);
        let expected = tallies.expect();
        targets.iter().for_each(|target| target.tell([ANSWER, each]));
        expected.wait_for(BIG as u64, BIG as u64);
        each * 2 * BIG as u64
    })
}

fn hot_among_idle<P: Peer>(peer: &P, scale: &Scale) -> Measured {
    const SENDERS: usize = 2;

    let hot = scale.idle.div_ceil(HOT_EVERY);
    // A cold actor shares the tally of its hot neighbour, but is told nothing.
    let tallies = Tallies::new(hot);
    let targets = peer.spawn_all(scale.idle, Recipe::Hot(tallies, HOT_EVERY));
    scale.time(|operations| {
        let each = operations.div_ceil(SENDERS as u64);
        let expected = tallies.expect();
        thread::scope(|scope| {
            for sender in 0..SENDERS {
                let targets = &targets;
                scope.spawn(move || {
                    let hot = targets.iter().step_by(HOT_EVERY).cycle().skip(sender * hot / SENDERS);
                    (0..each).zip(hot).for_each(|(number, target)| target.tell([number, 0]));
                });
            }
        });
        let sent = each * SENDERS as u64;
        expected.wait_for(sent, sum_below(each) * SENDERS as u64);
        sent
    })
}

fn spawn_and_stop<P: Peer>(peer: &P, scale: &Scale) -> Measured {
    let round = || {
        let start = Instant::now();
        for number in 0..scale.spawned {
            peer.stop(peer.spawn(number, Recipe::Live(Living::new())));
        }
        wait_until(|| Living::count() == 0, || format!("{} actors have not ended", Living::count()));
        start.elapsed()
    };
    // Once to warm up: threads, allocator, tables.
    let _: Duration = round();
    Measured::Nanos(round().as_nanos() as f64 / scale.spawned as f64)
}

fn idle_bytes<P: Peer>(peer: &P, scale: &Scale) -> Measured {
    let tallies = Tallies::new(1);
    let expected = tallies.expect();
    let mut targets = Vec::with_capacity(scale.resident);
    // What is allocated once is not an actor's.
    let first = peer.spawn(0, Recipe::Sink(tallies));
    first.tell([0, 0]);
    expected.wait_for(1, 0);
    let handled = Arc::new(AtomicU64::new(0));
    let before = resident();
    for number in 0..scale.resident {
        let target = peer.spawn(number, Recipe::Idle(handled.clone()));
        target.tell([number as u64, 1]);
        targets.push(target);
    }
    let seen = || handled.load(Ordering::Relaxed);
    wait_until(|| seen() == scale.resident as u64, || format!("{} of {} handled", seen(), scale.resident));
    let bytes = resident().saturating_sub(before) as f64 / scale.resident as f64;
    drop(targets);
    Measured::Bytes(bytes)
}

/// A row of the table.
pub struct Row {
    /// For `--only`.
    pub key: &'static str,
    pub title: &'static str,
    pub workload: Workload,
    /// Measured with `--quick`, too.
    pub is_quick: bool,
}

const fn row(key: &'static str, is_quick: bool, workload: Workload, title: &'static str) -> Row {
    Row { key, title, workload, is_quick }
}

const fn at(load: Load) -> Workload {
    Workload::Latency { load, is_stuck: false }
}

/// All rows, in the order of the table.
pub const ROWS: &[Row] = &[
    row("ping-pong/1", true, Workload::PingPong { pairs: 1 }, "ping-pong, 1 pair, round trip"),
    row("ping-pong/64", true, Workload::PingPong { pairs: 64 }, "ping-pong, 64 pairs, round trip"),
    row("to-one/1", true, Workload::ToOne { senders: 1, window: None }, "1 thread to one actor"),
    row("to-one/2", false, Workload::ToOne { senders: 2, window: None }, "2 threads to one actor"),
    row("to-one/4", true, Workload::ToOne { senders: 4, window: None }, "4 threads to one actor"),
    row("to-one/16", false, Workload::ToOne { senders: 16, window: None }, "16 threads to one actor"),
    row(
        "to-one/windowed",
        false,
        Workload::ToOne { senders: 1, window: Some(8192) },
        "1 thread to one actor, at most 8,192 outstanding",
    ),
    row("routed/1", true, Workload::Routed { senders: 1 }, "round robin to 8, 1 thread"),
    row("routed/2", false, Workload::Routed { senders: 2 }, "round robin to 8, 2 threads"),
    row("routed/4", true, Workload::Routed { senders: 4 }, "round robin to 8, 4 threads"),
    row("routed/16", false, Workload::Routed { senders: 16 }, "round robin to 8, 16 threads"),
    row("shared-queue/1", false, Workload::SharedQueue { senders: 1 }, "shared queue of 8, skewed, 1 thread"),
    row("shared-queue/4", true, Workload::SharedQueue { senders: 4 }, "shared queue of 8, skewed, 4 threads"),
    row("shared-queue/16", false, Workload::SharedQueue { senders: 16 }, "shared queue of 8, skewed, 16 threads"),
    row("least-loaded/1", false, Workload::LeastLoaded { senders: 1 }, "least loaded of 8, skewed, 1 thread"),
    row("least-loaded/4", true, Workload::LeastLoaded { senders: 4 }, "least loaded of 8, skewed, 4 threads"),
    row("broadcast/1", true, Workload::Broadcast { senders: 1 }, "broadcast to 64, 1 thread, each delivery"),
    row(
        "broadcast/4",
        false,
        Workload::Broadcast { senders: 4 },
        "broadcast to 64, 4 threads, each delivery",
    ),
    row("ask/one", true, Workload::AskOne, "ask from a thread, one at a time"),
    row("ask/many", true, Workload::AskMany, "ask from a thread, 1,000 outstanding"),
    row("ask/actor", true, Workload::AskFromActor, "ask from an actor"),
    row("spawn", true, Workload::SpawnAndStop, "spawn and stop"),
    row("idle-bytes", true, Workload::IdleBytes, "an idle actor"),
    row("ring", true, Workload::Ring, "ring of 1,000, each hop"),
    row("big", false, Workload::Big, "big: 500 actors at random, each message"),
    row("hot", false, Workload::HotAmongIdle, "1 % of 100,000 actors, 2 threads"),
    row("latency/1k", false, at(Load::PerSecond(1_000)), "open loop"),
    row("latency/10k", false, at(Load::PerSecond(10_000)), "open loop"),
    row("latency/100k", false, at(Load::PerSecond(100_000)), "open loop"),
    row("latency/500k", false, at(Load::PerSecond(500_000)), "open loop"),
    row("latency/50", true, at(Load::Percent(50)), "open loop at 50 %"),
    row("latency/80", false, at(Load::Percent(80)), "open loop at 80 %"),
    row(
        "latency/50/stuck",
        false,
        Workload::Latency { load: Load::Percent(50), is_stuck: true },
        "open loop at 50 %, one stuck",
    ),
    row(
        "latency/80/stuck",
        false,
        Workload::Latency { load: Load::Percent(80), is_stuck: true },
        "open loop at 80 %, one stuck",
    ),
];
