//! How long a message waits until it is handled: after idleness, beside busy actors, behind a full mailbox, and while
//! the engine has something big to do. And what `spin`, `throughput` and `pin_to` do about it.
//!
//! Other benchmarks tell how long a message takes on average; here each one is timed from its `tell` to the first line
//! of its handler, by the machine's clock. Each setting has a system of its own in each round, the settings take turns,
//! and what is shown is the median over the rounds of each round's percentiles, with the least and the most of the
//! rounds. The last column is the processor time of the whole process for each message, waiting included.
//!
//! `cargo bench --bench latency`, or with a part of a title behind `--` only those workloads.
//! Figures and what to do with them: `docs/latency.md`.

use pointsman::prelude::*;
use std::fmt;
use std::ops::Range;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;
const WORKERS: usize = 2;
/// What everything that must happen soon may take.
const SOON: Duration = Duration::from_secs(60);
/// Workers sleep by then, and so does the core perhaps.
const PAUSE: Duration = Duration::from_millis(1);

/// What a workload does in one round, with so many samples, and the delays that it has seen.
type Run = fn(&System, usize) -> Vec<Duration>;

struct Workload {
    title: &'static str,
    run: Run,
    /// Samples in a round.
    samples: usize,
    settings: &'static [Setting],
}

/// A name, and what it changes in the dispatcher.
type Setting = (&'static str, fn(Dispatcher) -> Dispatcher);

const DEFAULT: Setting = ("default: spin 5 us, throughput 64", |it| it);
const NO_SPIN: Setting = ("spin 0", |it| it.spin(Duration::ZERO));
const LONG_SPIN: Setting = ("spin 2 ms", |it| it.spin(Duration::from_millis(2)));
const PINNED: Setting = ("pin_to 0, 1", |it| it.pin_to([0, 1]));
const ONE_EACH: Setting = ("throughput 1", |it| it.throughput(1));
const MANY_EACH: Setting = ("throughput 1000", |it| it.throughput(1000));

const WORKLOADS: &[Workload] = &[
    Workload {
        title: "wake-up of a parked worker, once a millisecond",
        run: parked,
        samples: 500,
        settings: &[DEFAULT, NO_SPIN, LONG_SPIN, PINNED],
    },
    Workload {
        title: "the same, a question and its answer",
        run: question,
        samples: 500,
        settings: &[DEFAULT, NO_SPIN, LONG_SPIN, PINNED],
    },
    Workload {
        title: "one question after the other",
        run: questions,
        samples: 20_000,
        settings: &[DEFAULT, NO_SPIN, LONG_SPIN, PINNED],
    },
    Workload {
        title: "an idle actor, all workers busy with mailboxes of 10 us messages",
        run: busy,
        samples: 300,
        settings: &[DEFAULT, ONE_EACH, MANY_EACH, PINNED],
    },
    Workload {
        title: "a burst to 64 actors after a millisecond",
        run: burst,
        samples: 64 * 50,
        settings: &[DEFAULT, NO_SPIN, LONG_SPIN, PINNED],
    },
    Workload {
        title: "a stop behind a mailbox of 1,000 messages of 1 us",
        run: stop_behind_a_full_mailbox,
        samples: 50,
        settings: &[DEFAULT, MANY_EACH],
    },
    Workload {
        title: "messages while 100,000 timers fire at once",
        run: timers,
        samples: 100_000,
        settings: &[DEFAULT, ONE_EACH],
    },
    Workload {
        title: "messages while 1,000,000 messages of a stopped actor are freed",
        run: freed,
        samples: 1_000_000,
        settings: &[DEFAULT, ONE_EACH],
    },
];

/// What is told to a [`Stopwatch`].
enum Tick {
    Sent(Instant),
    Report(ReplyTo<Vec<Duration>>),
}

/// Notes how long each message has waited.
#[derive(Default)]
struct Stopwatch {
    delays: Vec<Duration>,
}

impl Actor for Stopwatch {
    type Message = Tick;
    fn receive(&mut self, tick: Tick, _: &mut Context<Tick>) -> HandlerResult {
        match tick {
            Tick::Sent(at) => self.delays.push(at.elapsed()),
            Tick::Report(reply_to) => drop(reply_to.send(std::mem::take(&mut self.delays))),
        }
        Ok(())
    }
}

fn stopwatch(system: &System) -> ActorRef<Tick> {
    system.spawn(Stopwatch::default).expect("the system lives")
}

fn report(stopwatch: &ActorRef<Tick>) -> Vec<Duration> {
    stopwatch.ask_with(Tick::Report).within(SOON).wait().expect("it answers")
}

/// Works for so long without giving the core away.
fn work(length: Duration) {
    let start = Instant::now();
    while start.elapsed() < length {
        std::hint::spin_loop();
    }
}

fn parked(system: &System, samples: usize) -> Vec<Duration> {
    let stopwatch = stopwatch(system);
    for _ in 0..samples {
        thread::sleep(PAUSE);
        stopwatch.tell(Tick::Sent(Instant::now()));
    }
    report(&stopwatch)
}

/// One more than its number.
struct Next(u64);

impl Request for Next {
    type Reply = u64;
}

struct Answerer;

impl Actor for Answerer {
    type Message = Call<Next>;
    fn receive(&mut self, call: Call<Next>, _: &mut Context<Call<Next>>) -> HandlerResult {
        call.answer(|Next(number)| number + 1);
        Ok(())
    }
}

fn ask(system: &System, samples: usize, pause: impl Fn()) -> Vec<Duration> {
    let answerer = system.spawn(|| Answerer).expect("the system lives");
    let mut number = 0;
    let ask = |_| {
        pause();
        let start = Instant::now();
        number = answerer.ask(Next(number)).wait().expect("it answers");
        start.elapsed()
    };
    let delays = (0..samples).map(ask).collect();
    assert_eq!(number, samples as u64);
    delays
}

fn question(system: &System, samples: usize) -> Vec<Duration> {
    ask(system, samples, || thread::sleep(PAUSE))
}

fn questions(system: &System, samples: usize) -> Vec<Duration> {
    ask(system, samples, || ())
}

/// Always has something to do.
struct Busy {
    message_length: Duration,
}

impl Actor for Busy {
    type Message = ();
    fn receive(&mut self, (): (), ctx: &mut Context<()>) -> HandlerResult {
        work(self.message_length);
        ctx.me().tell(());
        Ok(())
    }
}

fn busy(system: &System, samples: usize) -> Vec<Duration> {
    let stopwatch = stopwatch(system);
    let message_length = Duration::from_micros(10);
    let busy: Vec<_> = (0..2 * WORKERS)
        .map(|_| system.spawn(move || Busy { message_length }).expect("the system lives"))
        .collect();
    // Two each, so that a mailbox is never empty and turns are as long as they may be.
    busy.iter().for_each(|busy| (0..2).for_each(|_| busy.tell(())));
    for _ in 0..samples {
        thread::sleep(PAUSE);
        stopwatch.tell(Tick::Sent(Instant::now()));
    }
    let delays = report(&stopwatch);
    busy.iter().for_each(ActorRef::stop);
    delays
}

fn burst(system: &System, samples: usize) -> Vec<Duration> {
    let stopwatches: Vec<_> = (0..64).map(|_| stopwatch(system)).collect();
    for _ in 0..samples / stopwatches.len() {
        thread::sleep(PAUSE);
        stopwatches.iter().for_each(|it| it.tell(Tick::Sent(Instant::now())));
    }
    stopwatches.iter().flat_map(report).collect()
}

/// Says when it has stopped.
struct Full {
    stopped: mpsc::Sender<Instant>,
}

impl Actor for Full {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        work(Duration::from_micros(1));
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<()>) {
        let _ = self.stopped.send(Instant::now());
    }
}

fn stop_behind_a_full_mailbox(system: &System, samples: usize) -> Vec<Duration> {
    let stop = |_| {
        let (stopped, ended) = mpsc::channel();
        let full = system.spawn(move || Full { stopped: stopped.clone() }).expect("the system lives");
        (0..1000).for_each(|_| full.tell(()));
        let start = Instant::now();
        full.stop();
        ended.recv_timeout(SOON).expect("it stops").saturating_duration_since(start)
    };
    (0..samples).map(stop).collect()
}

/// Tells the stopwatch once in 20 us until something has happened.
fn watch_until(stopwatch: &ActorRef<Tick>, mut has_happened: impl FnMut() -> bool) -> Vec<Duration> {
    let start = Instant::now();
    while !has_happened() {
        stopwatch.tell(Tick::Sent(Instant::now()));
        thread::sleep(Duration::from_micros(20));
        assert!(start.elapsed() < SOON, "it never happens");
    }
    report(stopwatch)
}

/// Sets timers that are all due at once.
struct Timed {
    left: usize,
    over: mpsc::Sender<()>,
}

enum Timing {
    Set(Duration),
    Due,
}

impl Actor for Timed {
    type Message = Timing;
    fn receive(&mut self, timing: Timing, ctx: &mut Context<Timing>) -> HandlerResult {
        match timing {
            // One after the other comes due some milliseconds late if setting them takes as long.
            Timing::Set(delay) => (0..self.left).for_each(|_| {
                ctx.after(delay, Timing::Due);
            }),
            Timing::Due => {
                self.left -= 1;
                if self.left == 0 {
                    let _ = self.over.send(());
                }
            }
        }
        Ok(())
    }
}

fn timers(system: &System, samples: usize) -> Vec<Duration> {
    let stopwatch = stopwatch(system);
    let (over, is_over) = mpsc::channel();
    let recipe = move || Timed { left: samples, over: over.clone() };
    let timed = system.spawn(recipe).expect("the system lives");
    timed.tell(Timing::Set(Duration::from_millis(50)));
    watch_until(&stopwatch, || is_over.try_recv().is_ok())
}

/// Waits in its first message until it is let go.
struct Held {
    /// Ends when nobody holds the other side.
    hold: crossbeam_channel::Receiver<()>,
}

impl Actor for Held {
    type Message = [u64; 2];
    fn receive(&mut self, _: [u64; 2], ctx: &mut Context<[u64; 2]>) -> HandlerResult {
        let _ = ctx.blocking(|| self.hold.recv());
        Ok(())
    }
}

fn freed(system: &System, samples: usize) -> Vec<Duration> {
    let stopwatch = stopwatch(system);
    let (let_go, hold) = crossbeam_channel::bounded(0);
    let held = system.spawn(move || Held { hold: hold.clone() }).expect("the system lives");
    (0..samples as u64).for_each(|number| held.tell([number; 2]));
    held.stop();
    drop(let_go);
    // All but the first end as dead letters; the last tick may be on its way.
    watch_until(&stopwatch, || {
        let ledger = system.ledger();
        ledger.sent.saturating_sub(ledger.handled + ledger.dead_lettered) <= 1
    })
}

/// One round's result.
struct Round {
    p50: f64,
    p99: f64,
    max: f64,
    /// Processor time for each delay measured.
    cpu: f64,
}

/// Median, least and most of some rounds, in microseconds.
struct Spread(f64, Range<f64>);

impl Spread {
    fn of(rounds: &[Round], which: fn(&Round) -> f64) -> Self {
        let mut values: Vec<f64> = rounds.iter().map(which).collect();
        values.sort_unstable_by(f64::total_cmp);
        Self(values[values.len() / 2], values[0]..values[values.len() - 1])
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(median, range) = self;
        let spread = format!("[{:.1} {:.1}]", range.start, range.end);
        write!(f, "{median:>8.1} {spread:<20}")
    }
}

fn processor_time() -> Duration {
    // SAFETY: all bytes zero are a value of this type.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the place is ours, and of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let of = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}

fn round(workload: &Workload, (_, change): &Setting, samples: usize) -> Round {
    let dispatcher = change(Dispatcher::work_stealing().threads(WORKERS));
    let system = System::builder("latency").dispatcher("default", dispatcher);
    let system = system.build().expect("threads and cores can be had");
    let before = processor_time();
    let mut delays = (workload.run)(&system, samples);
    let cpu = processor_time() - before;
    assert_eq!(system.shutdown(SOON).expect("everything ends").balance(), 0, "a message is lost");
    delays.sort_unstable();
    let micros = |length: Duration| length.as_secs_f64() * 1e6;
    let at = |share: f64| micros(delays[((delays.len() - 1) as f64 * share) as usize]);
    Round { p50: at(0.5), p99: at(0.99), max: at(1.0), cpu: micros(cpu) / delays.len() as f64 }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only wants to see that it runs.
    let is_quick = arguments.iter().any(|argument| argument == "--test");
    let wanted: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let rounds = if is_quick { 1 } else { ROUNDS };
    for workload in WORKLOADS {
        if !wanted.is_empty() && !wanted.iter().any(|part| workload.title.contains(part.as_str())) {
            continue;
        }
        let samples = if is_quick { workload.samples.min(100) } else { workload.samples };
        let mut results: Vec<Vec<Round>> = workload.settings.iter().map(|_| Vec::new()).collect();
        for _ in 0..rounds {
            for (setting, results) in workload.settings.iter().zip(&mut results) {
                results.push(round(workload, setting, samples));
            }
        }
        println!("\n{}: us, median of {rounds} rounds [least most]", workload.title);
        println!("  {:<34} {:<29} {:<29} {:<29} processor", "", "     p50", "     p99", "     max");
        for ((name, _), results) in workload.settings.iter().zip(&results) {
            let [p50, p99, max, cpu] = [
                Spread::of(results, |it| it.p50),
                Spread::of(results, |it| it.p99),
                Spread::of(results, |it| it.max),
                Spread::of(results, |it| it.cpu),
            ];
            println!("  {name:<34} {p50} {p99} {max} {cpu}");
        }
    }
}
