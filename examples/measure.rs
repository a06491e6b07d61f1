//! Measures speed and latency: ten million deliveries through each of six routers, from several threads at once.
//!
//! ```text
//! cargo run --release --example measure
//! cargo run --release --example measure -- --senders 4 --routees 16 --json
//! ```
//!
//! Every row starts a pool of routees, sends it messages from a few threads, waits until all are handled,
//! and shows how fast that went, how long a message took from `tell` to its handler, and who got how many.
//! The first row is the yardstick: the same actors, told directly and in turn, without a router.
//!
//! Latency means nothing while a queue grows without end. So each sender keeps at most [`WINDOW`] of its
//! deliveries in flight, and reads how far the routees are before it sends the next [`BATCH`].
//!
//! The last line is the ledger: where every message that entered the system went. Each of its terms is counted
//! on its own, so a balance of 0 says that nothing was lost. (It knows one message more than the rows add up
//! to: the request that asked a router for its routees, for the first row.)

use pointsman::Ledger;
use pointsman::prelude::*;
use pointsman::routing::{Broadcast, ConsistentHashing, Random, RoundRobin, RoutingLogic, SmallestMailbox};
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Deliveries that one sender may have in flight.
const WINDOW: u64 = 1024;
/// Deliveries between two looks at how far the routees are.
const BATCH: u64 = 128;
/// One message in so many has its latency measured: reading the clock costs as much as a message.
const SAMPLE_EVERY: u64 = 64;
/// The longest time that a step which must happen soon may take.
const SOON: Duration = Duration::from_secs(60);

const HELP: &str = "\
Sends messages through one router after the other and shows speed, latency, shares, and the ledger.

Usage: cargo run --release --example measure -- [options]

  --messages <n>   deliveries through each router  [default: 10000000]
  --senders <n>    threads that send, 1 to 64      [default: 2]
  --routees <n>    actors behind each router, 1 to 64  [default: 8]
  --json           print the results as JSON
  --help           print this
";

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(fault) => {
            eprintln!("measure: {fault}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(ledger) if ledger.balance() == 0 => ExitCode::SUCCESS,
        Ok(ledger) => {
            eprintln!("measure: {} messages are unaccounted for: {ledger}", ledger.balance());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("measure: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs every row on one system, and returns the system's books at its end.
fn run(options: &Options) -> Result<Ledger, Box<dyn Error>> {
    let system = System::builder("measure").build()?;
    let mut report = Report::new(options);
    report.add(bench(&system, options, "direct tell", Way::Direct, RoundRobin::new())?);
    report.add(bench(&system, options, "RoundRobin", Way::Routed, RoundRobin::new())?);
    report.add(bench(&system, options, "RoundRobin exact", Way::Routed, RoundRobin::exact())?);
    report.add(bench(&system, options, "Random", Way::Routed, Random::new())?);
    report.add(bench(&system, options, "SmallestMailbox", Way::Routed, SmallestMailbox::new())?);
    let by_key = ConsistentHashing::by(|parcel: &Parcel, key| key.feed(&parcel.number));
    report.add(bench(&system, options, "ConsistentHashing", Way::Routed, by_key)?);
    report.add(bench(&system, options, "Broadcast", Way::ToAll, Broadcast)?);
    let ledger = system.shutdown(SOON)?;
    report.end(&ledger);
    Ok(ledger)
}

// ---- the actors

/// The message that is sent. A broadcast clones it.
#[derive(Clone)]
struct Parcel {
    sender: u32,
    number: u32,
    /// When it was sent, if it is a sample.
    sent_at: Option<Instant>,
}

/// Counts what it gets, and how long the samples were under way.
struct Counter {
    index: usize,
    progress: Arc<Progress>,
    latencies: Vec<Duration>,
    /// Where the latencies go when this actor stops.
    results: mpsc::Sender<Vec<Duration>>,
}

impl Actor for Counter {
    type Message = Parcel;

    fn receive(&mut self, parcel: Parcel, _: &mut Context<Parcel>) -> HandlerResult {
        if let Some(sent_at) = parcel.sent_at {
            self.latencies.push(sent_at.elapsed());
        }
        self.progress.handled(self.index, parcel.sender);
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Parcel>) {
        let _ = self.results.send(std::mem::take(&mut self.latencies));
    }
}

/// How many parcels each routee has handled, for each sender.
struct Progress {
    rows: Vec<ProgressRow>,
}

/// Only its routee writes to it, so it has cache lines of its own.
#[repr(align(128))]
struct ProgressRow {
    by_sender: Box<[AtomicU64]>,
}

impl Progress {
    fn new(options: &Options) -> Self {
        // As many counters as fill whole cache lines, so that no two rows share one.
        let counters = options.senders.next_multiple_of(16);
        let row = || ProgressRow { by_sender: (0..counters).map(|_| AtomicU64::new(0)).collect() };
        Self { rows: (0..options.routees).map(|_| row()).collect() }
    }

    fn handled(&self, routee: usize, sender: u32) {
        let counter = &self.rows[routee].by_sender[sender as usize];
        // An actor runs on one thread at a time, so this needs no read-modify-write.
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn of_sender(&self, sender: u32) -> u64 {
        self.rows.iter().map(|row| row.by_sender[sender as usize].load(Ordering::Relaxed)).sum()
    }

    fn of_routee(&self, routee: usize) -> u64 {
        self.rows[routee].by_sender.iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }
}

// ---- one row

/// How a row's messages reach the routees.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Told by the senders themselves, each in turn.
    Direct,
    /// Through the router, each to one routee.
    Routed,
    /// Through the router, each to all routees.
    ToAll,
}

/// Sends all messages through one router, and measures.
fn bench<L: RoutingLogic<Parcel>>(
    system: &System,
    options: &Options,
    name: &'static str,
    way: Way,
    logic: L,
) -> Result<Row, Box<dyn Error>> {
    let progress = Arc::new(Progress::new(options));
    let (results, latencies) = mpsc::channel();
    let make = {
        let progress = progress.clone();
        move |ctx: &mut Context<Parcel>| Counter {
            index: ctx.routee_index(),
            progress: progress.clone(),
            latencies: Vec::new(),
            results: results.clone(),
        }
    };
    // A name in the tree of actors: "/user/round-robin" and the like.
    let actor_name = name.to_lowercase().replace(' ', "-");
    let router = system.router(&actor_name).pool(options.routees, make).logic(logic).spawn()?;
    let targets = match way {
        Way::Direct => router.routees()?,
        Way::Routed | Way::ToAll => vec![router.to_ref()],
    };
    let deliveries_each = if way == Way::ToAll { options.routees as u64 } else { 1 };

    let start = Instant::now();
    let delivered = thread::scope(|scope| {
        let senders: Vec<_> = (0..options.senders)
            .map(|sender| {
                let (progress, targets) = (&progress, &targets);
                let messages = options.share_of(sender).div_ceil(deliveries_each);
                scope.spawn(move || send(sender as u32, messages, deliveries_each, targets, progress))
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().expect("a sender never panics")).sum::<u64>()
    });
    let took = start.elapsed();

    // The routees end with their router, and each sends what it measured as its last act.
    router.stop();
    let mut all = Vec::new();
    for _ in 0..options.routees {
        all.extend(latencies.recv_timeout(SOON)?);
    }
    all.sort_unstable();
    let shares = (0..options.routees).map(|routee| progress.of_routee(routee)).collect();
    Ok(Row { name, delivered, took, latencies: all, shares })
}

/// Sends `messages` messages, and returns how many deliveries they came to once all are handled.
fn send(
    sender: u32,
    messages: u64,
    deliveries_each: u64,
    targets: &[ActorRef<Parcel>],
    progress: &Progress,
) -> u64 {
    let batch = (BATCH / deliveries_each).max(1);
    let wait_until_in_flight = |most: u64, sent: u64| {
        while sent * deliveries_each - progress.of_sender(sender) > most {
            thread::yield_now();
        }
    };
    let mut in_turn = targets.iter().cycle();
    for number in 0..messages {
        if number % batch == 0 {
            wait_until_in_flight(WINDOW.saturating_sub(batch * deliveries_each), number);
        }
        let sent_at = (number % SAMPLE_EVERY == 0).then(Instant::now);
        let target = in_turn.next().expect("there is at least one target");
        target.tell(Parcel { sender, number: number as u32, sent_at });
    }
    wait_until_in_flight(0, messages);
    messages * deliveries_each
}

// ---- what is shown

struct Row {
    name: &'static str,
    delivered: u64,
    took: Duration,
    /// In order.
    latencies: Vec<Duration>,
    /// Deliveries of each routee.
    shares: Vec<u64>,
}

impl Row {
    fn per_second(&self) -> f64 {
        self.delivered as f64 / self.took.as_secs_f64()
    }

    /// The latency in µs that this part of the samples did not exceed.
    fn latency(&self, part: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * part).round() as usize;
        self.latencies.get(at).map_or(0.0, |latency| latency.as_secs_f64() * 1e6)
    }

    /// One bar for each routee; the tallest has the largest share.
    fn bars(&self) -> String {
        const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let largest = self.shares.iter().max().copied().unwrap_or(0).max(1);
        self.shares.iter().map(|share| BARS[(share * 8).div_ceil(largest) as usize]).collect()
    }

    /// The smallest and the largest share, in percent.
    fn range(&self) -> (f64, f64) {
        let percent = |share: Option<&u64>| share.map_or(0.0, |&n| 100.0 * n as f64 / self.delivered as f64);
        (percent(self.shares.iter().min()), percent(self.shares.iter().max()))
    }

    fn json(&self) -> String {
        format!(
            r#"{{"router":"{}","deliveries":{},"per_second":{:.0},"p50_us":{:.1},"p99_us":{:.1},"p999_us":{:.1},"shares":{:?}}}"#,
            self.name,
            self.delivered,
            self.per_second(),
            self.latency(0.5),
            self.latency(0.99),
            self.latency(0.999),
            self.shares
        )
    }
}

/// Prints each row when it is there, or everything as JSON at the end.
struct Report<'a> {
    options: &'a Options,
    rows: Vec<Row>,
}

impl<'a> Report<'a> {
    fn new(options: &'a Options) -> Self {
        if !options.json {
            let cores = thread::available_parallelism().map_or(1, |count| count.get());
            println!(
                "{} deliveries through each router to {} routees on {cores} cores, from {} sending threads\n\
                 at most {WINDOW} deliveries of each sender in flight; latency from `tell` to handler, of one \
                 message in {SAMPLE_EVERY}\n",
                options.messages, options.routees, options.senders
            );
            println!(
                "{:<18} {:>10} {:>9} {:>9} {:>9}   share of each routee",
                "router", "messages/s", "p50 µs", "p99 µs", "p99.9 µs"
            );
        }
        Self { options, rows: Vec::new() }
    }

    fn add(&mut self, row: Row) {
        if !self.options.json {
            let (least, most) = row.range();
            println!(
                "{:<18} {:>8.2} M {:>9.1} {:>9.1} {:>9.1}   {} {least:.1} to {most:.1} %",
                row.name,
                row.per_second() / 1e6,
                row.latency(0.5),
                row.latency(0.99),
                row.latency(0.999),
                row.bars(),
            );
        }
        self.rows.push(row);
    }

    fn end(&self, ledger: &Ledger) {
        if !self.options.json {
            println!("\nledger: {ledger}");
            return;
        }
        let rows: Vec<_> = self.rows.iter().map(Row::json).collect();
        println!(
            r#"{{"senders":{},"routees":{},"in_flight_per_sender":{WINDOW},"rows":[{}],"ledger":{{"sent":{},"handled":{},"dead_lettered":{},"handed_back":{},"dropped":{},"skipped":{},"queued":{},"balance":{}}}}}"#,
            self.options.senders,
            self.options.routees,
            rows.join(","),
            ledger.sent,
            ledger.handled,
            ledger.dead_lettered,
            ledger.handed_back,
            ledger.dropped,
            ledger.skipped,
            ledger.queued,
            ledger.balance()
        );
    }
}

// ---- the command line

struct Options {
    messages: u64,
    senders: usize,
    routees: usize,
    json: bool,
}

impl Options {
    /// Reads the arguments; returns `None` if they ask for help.
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut options = Self { messages: 10_000_000, senders: 2, routees: 8, json: false };
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--messages" => options.messages = number(&arg, args.next(), 1, 1_000_000_000_000)?,
                "--senders" => options.senders = number(&arg, args.next(), 1, 64)? as usize,
                "--routees" => options.routees = number(&arg, args.next(), 1, 64)? as usize,
                "--json" => options.json = true,
                "--help" | "-h" => return Ok(None),
                other => return Err(format!("unknown argument {other:?}")),
            }
        }
        Ok(Some(options))
    }

    /// How many of the deliveries are this sender's.
    fn share_of(&self, sender: usize) -> u64 {
        let (each, rest) = (self.messages / self.senders as u64, self.messages % self.senders as u64);
        each + u64::from((sender as u64) < rest)
    }
}

fn number(flag: &str, value: Option<String>, least: u64, most: u64) -> Result<u64, String> {
    let value = value.ok_or_else(|| format!("{flag} needs a number from {least} to {most}"))?;
    match value.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("{flag} {value:?}: must be a number from {least} to {most}")),
    }
}
