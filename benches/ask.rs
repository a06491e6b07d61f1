//! Asking: from a thread, with a slot of one's own, and from an actor.

mod common;

use common::{SOON, Subject, compare, with_system};
use criterion::{Criterion, criterion_group, criterion_main};
use pointsman::prelude::*;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

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

/// Asks from its worker, each time with what it was answered.
struct Curious {
    answerer: ActorRef<Call<Next>>,
    asks: u64,
    started: Instant,
    took: mpsc::Sender<Duration>,
}

enum Curiosity {
    Start(u64),
    Answer(Result<u64, AskError>),
}

impl Actor for Curious {
    type Message = Curiosity;
    fn receive(&mut self, message: Curiosity, ctx: &mut Context<Curiosity>) -> HandlerResult {
        let number = match message {
            Curiosity::Start(asks) => {
                (self.asks, self.started) = (asks, Instant::now());
                0
            }
            Curiosity::Answer(number) => number.expect("the answerer lives"),
        };
        if number == self.asks {
            let _ = self.took.send(self.started.elapsed());
        } else {
            ctx.ask(&self.answerer, Next(number), Curiosity::Answer);
        }
        Ok(())
    }
}

/// Two threads that park and wake each other in turn: what a round trip costs without us.
fn park_and_unpark(rounds: u64) -> Duration {
    let (to_other, from_here) = crossbeam_channel::bounded::<u64>(1);
    let (to_here, from_other) = crossbeam_channel::bounded::<u64>(1);
    let other = thread::spawn(move || {
        while let Ok(number) = from_here.recv() {
            let _ = to_here.send(number + 1);
        }
    });
    let start = Instant::now();
    let mut number = 0;
    for _ in 0..rounds {
        to_other.send(number).expect("the thread lives");
        number = from_other.recv().expect("the thread lives");
    }
    let took = start.elapsed();
    assert_eq!(number, rounds);
    drop(to_other);
    other.join().expect("no panic");
    took
}

fn from_threads(criterion: &mut Criterion) {
    with_system(1, |system| {
        let answerer = system.spawn(|| Answerer).expect("the system lives");
        let ask = |asks: u64| {
            let start = Instant::now();
            for number in 0..asks {
                assert_eq!(answerer.ask(Next(number)).wait(), Ok(number + 1));
            }
            start.elapsed()
        };
        let asker = |asks: u64| {
            let mut asker = Asker::new();
            let start = Instant::now();
            for number in 0..asks {
                assert_eq!(asker.ask(&answerer, Next(number)).wait(), Ok(number + 1));
            }
            start.elapsed()
        };
        compare(
            criterion,
            "ask from a thread, one at a time",
            5_000,
            vec![
                Subject::new("two channels, there and back", park_and_unpark),
                Subject::new("ask", ask),
                Subject::new("Asker", asker),
            ],
        );
    });
}

fn from_actors(criterion: &mut Criterion) {
    with_system(1, |system| {
        let answerer = system.spawn(|| Answerer).expect("the system lives");
        let (took, times) = mpsc::channel();
        let recipe = move || Curious {
            answerer: answerer.clone(),
            asks: 0,
            started: Instant::now(),
            took: took.clone(),
        };
        let curious = system.spawn(recipe).expect("the system lives");
        let ask = |asks: u64| {
            curious.tell(Curiosity::Start(asks));
            times.recv_timeout(SOON).expect("every ask is answered")
        };
        let channel = |asks: u64| {
            let (sender, receiver) = crossbeam_channel::unbounded();
            let start = Instant::now();
            for number in 0..2 * asks {
                sender.send([number; 2]).expect("a receiver lives");
                assert_eq!(std::hint::black_box(receiver.recv()), Ok([number; 2]));
            }
            start.elapsed()
        };
        compare(
            criterion,
            "ask from an actor on the same worker",
            100_000,
            vec![
                Subject::new("channel, two pushes and two pops", channel),
                Subject::new("ctx.ask and its answer", ask),
            ],
        );
    });
}

criterion_group!(benches, from_threads, from_actors);
criterion_main!(benches);
