//! What measuring costs for each message: with telemetry off, with the samples of `Telemetry::sampled`, and with all
//! times measured.
//!
//! One system does each work in the three settings, in turns, and the setting that begins changes from round to round. The
//! program prints the table of `BENCHMARKS.md`: medians of the rounds, half the distance between the quartiles in percent
//! of the median (±), and what a message costs more than with telemetry off.
//!
//! `cargo bench --bench telemetry`; with `-- --rounds 5`, fewer rounds.

mod common;

use common::{ROUNDS, SOON, Sinks, Words, with_system};
use pointsman::prelude::*;
use pointsman::routing::RoundRobin;
use pointsman::telemetry::Telemetry;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// What one setting is called, and how it is made.
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
    let (off, _) = figures[0];
    let cells = figures.iter().enumerate().map(|(index, (median, spread))| {
        let more = if index == 0 { String::new() } else { format!(", {:+.1}", median - off) };
        format!("{median:.1} ±{:.0} %{more}", spread / median * 100.0)
    });
    format!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test --benches` only wants to see that it runs.
    let quick = arguments.iter().any(|argument| argument == "--test");
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
    ExitCode::SUCCESS
}
