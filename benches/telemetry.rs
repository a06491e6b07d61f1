//! The cost of measuring for each message: with telemetry off, with the samples of `Telemetry::sampled`, and with all
//! times measured.
//!
//! One system does each work in the three settings, in turns, and the setting that begins changes from round to round. The
//! program prints the table of `BENCHMARKS.md`: medians of the rounds, half the distance between the quartiles in percent
//! of the median (±), the best round in brackets, which tells more where other programs share the machine, and what a
//! message costs more than with telemetry off, by both. Then it tells how long a look at a system of
//! many actors takes, and what the samples say of waits and handlers beside a full recording of the same run.
//!
//! `cargo bench --bench telemetry`; with `-- --rounds 5`, fewer rounds.

mod common;

use common::{ROUNDS, SOON, Sinks, Words, with_system};
use pointsman::prelude::*;
use pointsman::routing::RoundRobin;
use pointsman::telemetry::{ActorFilter, ActorOrder, Telemetry};
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The name of a setting, and the function that makes it.
type Setting = (&'static str, fn() -> Telemetry);

const SETTINGS: [Setting; 3] = [
    ("off", Telemetry::off),
    ("sampled", Telemetry::sampled),
    ("all times", || Telemetry::sampled().waits(NonZeroU32::MIN).turns(NonZeroU32::MIN)),
];

/// A work: what it is called, its messages in a round, and how long so many take.
struct Work<'a> {
    name: &'static str,
    messages: u64,
    run: Box<dyn FnMut(u64) -> Duration + 'a>,
}

/// Messages between two returns to the scheduler: what a turn handles.
const BURST: u64 = 64;

/// Sends bursts to a peer on the same worker.
struct Bursts {
    peer: ActorRef<Words>,
    left: u64,
    began: Instant,
    took: Sender<Duration>,
}

enum Burst {
    Begin(u64),
    Go,
}

impl Actor for Bursts {
    type Message = Burst;
    fn receive(&mut self, message: Burst, ctx: &mut Context<Burst>) -> HandlerResult {
        if let Burst::Begin(messages) = message {
            (self.left, self.began) = (messages, Instant::now());
        }
        let burst = self.left.min(BURST);
        (0..burst).for_each(|number| self.peer.tell([number, self.left]));
        self.left -= burst;
        if self.left == 0 {
            // Behind all that was sent.
            self.took.send(self.began.elapsed())?;
        } else {
            ctx.me().tell(Burst::Go);
        }
        Ok(())
    }
}

/// Plays a ball to its partner, so many times in all.
struct Player {
    partner: Option<ActorRef<Ball>>,
    done: Sender<()>,
}

enum Ball {
    Partner(ActorRef<Ball>),
    Fly(u64),
}

impl Actor for Player {
    type Message = Ball;
    fn receive(&mut self, ball: Ball, _: &mut Context<Ball>) -> HandlerResult {
        match (ball, &self.partner) {
            (Ball::Partner(partner), _) => self.partner = Some(partner),
            (Ball::Fly(0), _) => self.done.send(())?,
            (Ball::Fly(left), Some(partner)) => partner.tell(Ball::Fly(left - 1)),
            (Ball::Fly(_), None) => return Err(Failure::msg("it has no partner")),
        }
        Ok(())
    }
}

/// Computes for about half a microsecond.
struct Computes {
    sum: u64,
    done: Sender<()>,
}

impl Actor for Computes {
    type Message = Option<u64>;
    fn receive(&mut self, seed: Option<u64>, _: &mut Context<Option<u64>>) -> HandlerResult {
        let Some(mut word) = seed else { return Ok(self.done.send(())?) };
        for _ in 0..400 {
            word = std::hint::black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7));
        }
        self.sum = self.sum.wrapping_add(word);
        Ok(())
    }
}

fn wait(done: &Receiver<()>) {
    done.recv_timeout(SOON).expect("the work ends");
}

/// Does the work in each setting, in turns; returns each setting's times for a message, in nanoseconds.
fn measure(
    system: &SystemRef,
    work: &mut Work<'_>,
    rounds: usize,
    messages: u64,
) -> [Vec<f64>; SETTINGS.len()] {
    let mut times: [Vec<f64>; SETTINGS.len()] = Default::default();
    for round in 0..rounds {
        for turn in 0..SETTINGS.len() {
            let index = (round + turn) % SETTINGS.len();
            system.set_telemetry(SETTINGS[index].1());
            // A worker looks at the switch after some turns.
            (work.run)(messages / 10);
            let took = (work.run)(messages);
            times[index].push(took.as_secs_f64() * 1e9 / messages as f64);
        }
    }
    times
}

/// The median, and half the distance between the quartiles.
fn median_and_spread(times: &mut [f64]) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize];
    (at(0.5), (at(0.75) - at(0.25)) / 2.0)
}

fn row(name: &str, times: &mut [Vec<f64>; SETTINGS.len()]) -> String {
    let figures = times.each_mut().map(|times| median_and_spread(times));
    // They are sorted now.
    let best = times.each_ref().map(|times| times[0]);
    let cells = figures.iter().zip(best).enumerate().map(|(index, ((median, spread), least))| {
        let more = match index {
            0 => String::new(),
            _ => format!(", {:+.1} ({:+.1})", median - figures[0].0, least - best[0]),
        };
        format!("{median:.1} ±{:.0} % ({least:.1}){more}", spread / median * 100.0)
    });
    format!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "))
}

struct Idle;

impl Actor for Idle {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
}

/// Prints how long `stats` and `actors` take at a system of so many actors.
fn show_looks(rounds: usize, actors: usize) {
    with_system(2, |system| {
        let _living: Vec<_> = (0..actors).map(|_| system.spawn(|| Idle).expect("the system lives")).collect();
        let most = ActorFilter::new().order(ActorOrder::Queued).limit(500);
        let time = |look: &dyn Fn()| {
            let began = Instant::now();
            look();
            began.elapsed().as_secs_f64() * 1e3
        };
        let mut times: [Vec<f64>; 2] = Default::default();
        for _ in 0..rounds {
            times[0].push(time(&|| drop(std::hint::black_box(system.stats()))));
            times[1].push(time(&|| drop(std::hint::black_box(system.actors(&most)))));
        }
        let cells = times.each_mut().map(|times| {
            let (median, spread) = median_and_spread(times);
            format!("{median:.2} ±{:.0} %", spread / median * 100.0)
        });
        println!("| {actors} | {} |", cells.join(" | "));
    });
}

/// Writes down what each message has waited and taken.
struct Recorder {
    times: [Vec<f64>; 2],
    done: Sender<[Vec<f64>; 2]>,
}

impl Actor for Recorder {
    /// When the message was sent; `None` behind the last one.
    type Message = Option<Instant>;
    fn receive(&mut self, sent: Option<Instant>, _: &mut Context<Option<Instant>>) -> HandlerResult {
        let Some(sent) = sent else { return Ok(self.done.send(std::mem::take(&mut self.times))?) };
        let began = Instant::now();
        // One message in twenty takes ten times as long.
        let loops = if self.times[0].len() % 20 == 0 { 4000 } else { 400 };
        let mut word = 1_u64;
        for _ in 0..loops {
            word = std::hint::black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7));
        }
        self.times[0].push((began - sent).as_secs_f64() * 1e6);
        self.times[1].push(began.elapsed().as_secs_f64() * 1e6);
        Ok(())
    }
}

/// Lets a thread send at a fixed pace, in bursts, and prints the percentiles of the samples beside those of all messages.
fn show_samples(messages: usize) {
    with_system(1, |system| {
        system.set_telemetry(Telemetry::sampled());
        let (done, ends) = channel();
        let recorder = move || Recorder { times: Default::default(), done: done.clone() };
        let actor = system.actor("recorder").class("recorder").spawn(recorder).expect("the system lives");
        let (burst, pause) = (200, Duration::from_micros(400));
        let began = Instant::now();
        for number in 0..messages / burst {
            while began.elapsed() < pause * number as u32 {
                std::hint::spin_loop();
            }
            (0..burst).for_each(|_| actor.tell(Some(Instant::now())));
        }
        actor.tell(None);
        let [mut waits, mut handles] = ends.recv_timeout(SOON).expect("the work ends");
        let stats = system.stats();
        let class = stats.class("recorder").expect("it has handled messages");
        for (name, all, histogram) in
            [("wait", &mut waits, &class.wait), ("handle", &mut handles, &class.handle)]
        {
            all.sort_by(f64::total_cmp);
            let cells = [0.5, 0.9, 0.99].map(|share| {
                let exact = all[((all.len() - 1) as f64 * share) as usize];
                let sampled = histogram.quantile(share).map_or(0.0, |time| time.as_secs_f64() * 1e6);
                format!("{exact:.1} : {sampled:.1}")
            });
            println!("| {name} | {} : {} | {} |", all.len(), histogram.count(), cells.join(" | "));
        }
    });
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test --benches` only wants to see that it runs; `cargo bench` says that it measures.
    let quick = !arguments.iter().any(|argument| argument == "--bench");
    let said =
        arguments.iter().position(|argument| argument == "--rounds").and_then(|at| arguments.get(at + 1));
    let rounds = match (quick, said.map(|said| said.parse())) {
        (true, _) => 1,
        (false, None) => ROUNDS,
        (false, Some(Ok(rounds))) if rounds > 0 => rounds,
        (false, Some(_)) => {
            eprintln!("--rounds wants a number, at least 1");
            return ExitCode::FAILURE;
        }
    };
    let names = SETTINGS.map(|(name, _)| name).join(" | ");
    println!("ns for each message; {rounds} interleaved rounds\n\n| work | {names} |");
    println!("|---|{}", "--:|".repeat(SETTINGS.len()));
    let show = |system: &SystemRef, mut work: Work<'_>| {
        let messages = if quick { 1000 } else { work.messages };
        println!("{}", row(work.name, &mut measure(system, &mut work, rounds, messages)));
    };
    with_system(1, |system| {
        let sinks = Sinks::spawn(system, 1);
        let (took, times) = channel();
        let peer = sinks.actors[0].clone();
        let bursts =
            move || Bursts { peer: peer.clone(), left: 0, began: Instant::now(), took: took.clone() };
        let bursts = system.spawn(bursts).expect("the system lives");
        let busy = |messages| {
            bursts.tell(Burst::Begin(messages));
            times.recv_timeout(SOON).expect("the sender ends")
        };
        show(system, Work { name: "an actor tells a busy one", messages: 400_000, run: Box::new(busy) });

        let (done, ends) = channel();
        let player = move || Player { partner: None, done: done.clone() };
        let [ping, pong] = [(); 2].map(|()| system.spawn(player.clone()).expect("the system lives"));
        ping.tell(Ball::Partner(pong.clone()));
        pong.tell(Ball::Partner(ping.clone()));
        let ping_pong = |messages| {
            let began = Instant::now();
            ping.tell(Ball::Fly(messages));
            wait(&ends);
            began.elapsed()
        };
        show(system, Work { name: "ping-pong on one worker", messages: 400_000, run: Box::new(ping_pong) });

        let (done, ends) = channel();
        let computes =
            system.spawn(move || Computes { sum: 0, done: done.clone() }).expect("the system lives");
        let compute = |messages| {
            let began = Instant::now();
            (0..messages).for_each(|seed| computes.tell(Some(seed)));
            computes.tell(None);
            wait(&ends);
            began.elapsed()
        };
        show(
            system,
            Work { name: "a handler of half a microsecond", messages: 50_000, run: Box::new(compute) },
        );
    });
    with_system(2, |system| {
        let sinks = Sinks::spawn(system, 8);
        let one = |messages| {
            let before = sinks.handled();
            let began = Instant::now();
            (0..messages).for_each(|number| sinks.actors[0].tell([number, number]));
            sinks.wait_for(before + messages);
            began.elapsed()
        };
        show(system, Work { name: "a thread tells one actor", messages: 400_000, run: Box::new(one) });
        let router = system.router("eight").group(sinks.actors.clone()).logic(RoundRobin::new()).spawn();
        let router = router.expect("the system lives");
        let eight = |messages| {
            let before = sinks.handled();
            let began = Instant::now();
            (0..messages).for_each(|number| router.tell([number, number]));
            sinks.wait_for(before + messages);
            began.elapsed()
        };
        show(
            system,
            Work { name: "a thread tells eight by a router", messages: 400_000, run: Box::new(eight) },
        );
    });
    println!(
        "\nms for a look; medians of {rounds}\n\n| actors | `stats` | the 500 `actors` for which most wait |\n|--:|--:|--:|"
    );
    let sizes = if quick { [100, 200] } else { [10_000, 100_000] };
    sizes.into_iter().for_each(|actors| show_looks(rounds, actors));
    println!(
        "\nmicroseconds, all messages : samples\n\n| time | messages | p50 | p90 | p99 |\n|---|--:|--:|--:|--:|"
    );
    show_samples(if quick { 2000 } else { 2_000_000 });
    ExitCode::SUCCESS
}
