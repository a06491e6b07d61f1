//! Actors that one node has made on another, over a NATS server on this machine: a tell that is routed to a pool there beside one to a
//! single actor there and one to each routee in turn, by a thread and by an actor; a restart there beside one here; and the memory of
//! a child here that stands in for an actor there.
//!
//! `cargo run --release --manifest-path benches/remote/Cargo.toml --bin deployed [-- ROUNDS]` needs `nats-server` (a Debian package).
//! The rounds are interleaved. A figure is the median of the rounds, and the range of all stands behind it.

use pointsman::prelude::*;
use pointsman::remote::{Deploy, Limits, Node, Policy, Wire};
use pointsman_nats::{DevServer, Nats};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

/// The tells of a round of which the processor time is taken. No actor gets so many messages that its senders are refused.
const TELLS: u64 = 4_000;
/// Direct and routed tells take turns after so many, so that both have the same share of what else the machine does.
const TURN: u64 = 250;
const ROUTEES: usize = 4;
const RESTARTS: usize = 300;
const STAND_INS: usize = 1_000;

/// Counts the bytes that are allocated.
struct Counting;

static ALLOCATED: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: all is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { Heap.dealloc(at, layout) }
    }
}

#[derive(Serialize, Deserialize)]
struct Handled;

impl Request for Handled {
    type Reply = u64;
}

#[derive(Message, Wire, Serialize, Deserialize)]
#[wire(name = "bench.Deployed", version = 1)]
enum Work {
    Note([u64; 7]),
    Handled(Call<Handled>),
    Fail,
}

#[derive(Default)]
struct Worker {
    handled: u64,
}

impl Actor for Worker {
    type Message = Work;

    fn receive(&mut self, work: Work, _: &mut Context<Work>) -> HandlerResult {
        match work {
            Work::Note(_) => self.handled += 1,
            Work::Handled(call) => call.answer(|Handled| self.handled),
            Work::Fail => return Err(Failure::msg("told to fail")),
        }
        Ok(())
    }
}

impl Deploy for Worker {
    const FACTORY: &'static str = "bench.Worker";
    type Args = ();

    fn deploy(_: &(), _: &mut Context<Work>) -> Result<Self, Failure> {
        Ok(Self::default())
    }
}

/// The processor time of this thread so far, in nanoseconds.
fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The processor time of some tells, in nanoseconds. `tell` returns what finds no room.
fn time_of_tells(tell: impl Fn(u64, Work) -> Option<Work>) -> f64 {
    let began = thread_time();
    for number in 0..TURN {
        let mut note = Work::Note([number; 7]);
        while let Some(back) = tell(number, note) {
            note = back;
            thread::yield_now();
        }
    }
    thread_time() - began
}

/// Does what it is told on a worker of its system.
struct Doer;

type Task = Box<dyn FnOnce() + Send>;

impl Actor for Doer {
    type Message = Task;

    fn receive(&mut self, task: Task, _: &mut Context<Task>) -> HandlerResult {
        task();
        Ok(())
    }
}

/// The processor times of a tell to one actor, of one to each of some actors in turn, and of one that is routed to these, in
/// nanoseconds.
fn times_of_tells(single: &ActorRef<Work>, routees: &[ActorRef<Work>], pool: &ActorRef<Work>) -> [f64; 3] {
    let back =
        |refused: Result<(), pointsman::SendError<Work>>| refused.err().map(|error| error.into_inner());
    let mut sums = [0.0; 3];
    for _ in 0..TELLS / TURN {
        sums[0] += time_of_tells(|_, note| back(single.try_tell(note)));
        sums[1] += time_of_tells(|number, note| back(routees[number as usize % ROUTEES].try_tell(note)));
        sums[2] += time_of_tells(|_, note| back(pool.try_tell(note)));
    }
    sums.map(|sum| sum / TELLS as f64)
}

/// The time from a message that fails an actor to an answer of its next state, in microseconds: the median.
fn restart(worker: &ActorRef<Work>) -> Result<f64, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..RESTARTS {
        let began = Instant::now();
        worker.tell(Work::Fail);
        worker.ask(Handled).within(LONG).wait()?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(times))
}

/// The time of an ask, in microseconds: the median.
fn ask(worker: &ActorRef<Work>) -> Result<f64, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..RESTARTS {
        let began = Instant::now();
        worker.ask(Handled).within(LONG).wait()?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(times))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(15), |rounds| rounds.parse::<usize>())?;
    let server = DevServer::start()?;
    let node = |name: &str| {
        let policy = Policy::closed().allow_factory(Worker::FACTORY, ["n1"]);
        let node = Node::new(name).engine(Nats::servers([server.url()])).factory::<Worker>().policy(policy);
        System::builder("bench").node(node.limits(Limits::new())).stderr_without_logger(false).build()
    };
    let (n1, n2) = (node("n1")?, node("n2")?);
    let pool = n1.router("pool").deployable_pool::<Worker>(ROUTEES, ()).on_nodes(["n2"]).spawn()?;
    let [there, single] = ["there", "single"].map(|name| n1.actor(name).deploy_on::<Worker>("n2", ()));
    let (there, single) = (there?, single?);
    let here = n1.actor("here").deploy::<Worker>(())?;
    let routees = pool.routees()?;
    let doer = n1.spawn(|| Doer)?;
    let settle = || -> Result<(), Box<dyn Error>> {
        for routee in routees.iter().chain([&single]) {
            routee.ask(Handled).within(LONG).wait()?;
        }
        Ok(())
    };
    let names = [
        "a tell to an actor there, processor time of its sender, a thread, ns",
        "a tell to each of the routees of a pool there in turn, ns",
        "a tell that is routed to a pool there, ns",
        "a tell of an actor to an actor there, ns",
        "a tell of an actor to each of the routees in turn, ns",
        "a tell of an actor that is routed to the pool there, ns",
        "an ask there, µs",
        "a failure, a restart and an ask there, µs",
        "an ask here, µs",
        "a failure, a restart and an ask here, µs",
    ];
    let mut rows = names.map(|_| Vec::new());
    for round in 0..=rounds {
        settle()?;
        let [direct, in_turn, routed] = times_of_tells(&single, &routees, &pool);
        settle()?;
        let (done, times) = std::sync::mpsc::channel();
        let (one, all, router) = (single.clone(), routees.clone(), pool.to_ref());
        let task = move || {
            // The receiver waits.
            let _ = done.send(times_of_tells(&one, &all, &router));
        };
        doer.tell(Box::new(task) as Task);
        let by_actor = times.recv()?;
        settle()?;
        let figures = [
            direct,
            in_turn,
            routed,
            by_actor[0],
            by_actor[1],
            by_actor[2],
            ask(&there)?,
            restart(&there)?,
            ask(&here)?,
            restart(&here)?,
        ];
        // The first one warms up.
        if round > 0 {
            rows.iter_mut().zip(figures).for_each(|(row, figure)| row.push(figure));
        }
    }
    for (name, row) in names.iter().zip(&rows) {
        let least = row.iter().copied().fold(f64::INFINITY, f64::min);
        let most = row.iter().copied().fold(0.0, f64::max);
        println!("{name}: {:.1} ({least:.1} to {most:.1})", median(row.clone()));
    }
    let [direct, in_turn, routed, by_actor, in_turn_by_actor, routed_by_actor, ..] = &rows;
    let ratios = [
        ("one actor", routed, direct),
        ("the routees in turn", routed, in_turn),
        ("one actor, by an actor", routed_by_actor, by_actor),
        ("the routees in turn, by an actor", routed_by_actor, in_turn_by_actor),
    ];
    for (name, routed, beside) in ratios {
        let ratios: Vec<_> = routed.iter().zip(beside).map(|(routed, direct)| routed / direct).collect();
        let [least, most] =
            [f64::min, f64::max].map(|of| ratios.iter().copied().reduce(of).expect("there are rounds"));
        let ratio = median(ratios);
        println!(
            "routed beside {name}, of each round: {ratio:.2} ({least:.2} to {most:.2}; target: at most 1.2)"
        );
    }
    // A node that is not there makes no actors, so all that is allocated is here.
    let before = ALLOCATED.load(Ordering::Relaxed);
    let far: Vec<_> = (0..STAND_INS)
        .map(|number| n1.actor(&format!("far-{number}")).deploy_on::<Worker>("n9", ()))
        .collect::<Result<_, _>>()?;
    let bytes = ALLOCATED.load(Ordering::Relaxed) - before;
    println!("memory of a stand-in with its reference and its request: {} bytes", bytes / STAND_INS as u64);
    drop(far);
    let balances = [n1.shutdown(LONG)?.balance(), n2.shutdown(LONG)?.balance()];
    if balances != [0, 0] {
        return Err(format!("the books do not balance: {balances:?}").into());
    }
    Ok(())
}
