//! Telling: a busy actor, an idle one, ping-pong, and many senders to one.
//!
//! The yardstick is crossbeam's unbounded channel.

mod common;

use common::{SOON, Sinks, Subject, Words, compare, on_threads, with_system};
use criterion::{Criterion, criterion_group, criterion_main};
use pointsman::prelude::*;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Sends from its worker to a peer on the same worker, which is busy or idle by then.
struct Sender {
    peer: ActorRef<Words>,
    left: u64,
    started: Instant,
    took: mpsc::Sender<Duration>,
}

/// Messages between two returns to the scheduler: what a turn handles.
const BURST: u64 = 64;

enum Send {
    Start(u64),
    Go,
}

impl Actor for Sender {
    type Message = Send;
    fn receive(&mut self, message: Send, ctx: &mut Context<Send>) -> HandlerResult {
        if let Send::Start(messages) = message {
            (self.left, self.started) = (messages, Instant::now());
        }
        let burst = self.left.min(BURST);
        (0..burst).for_each(|number| self.peer.tell([number, self.left]));
        self.left -= burst;
        if self.left == 0 {
            // Behind everything sent.
            let _ = self.took.send(self.started.elapsed());
        } else {
            ctx.me().tell(Send::Go);
        }
        Ok(())
    }
}

/// Plays a message to its partner and back.
struct Player {
    partner: Option<ActorRef<Ball>>,
    started: Instant,
    took: mpsc::Sender<Duration>,
}

enum Ball {
    Partner(ActorRef<Ball>),
    Serve(u64),
    Fly(u64),
}

impl Actor for Player {
    type Message = Ball;
    fn receive(&mut self, ball: Ball, _: &mut Context<Ball>) -> HandlerResult {
        let left = match ball {
            Ball::Partner(partner) => {
                self.partner = Some(partner);
                return Ok(());
            }
            Ball::Serve(left) => {
                self.started = Instant::now();
                left
            }
            Ball::Fly(left) => left,
        };
        if left == 0 {
            let _ = self.took.send(self.started.elapsed());
        } else if let Some(partner) = &self.partner {
            partner.tell(Ball::Fly(left - 1));
        }
        Ok(())
    }
}

/// Push and pop on this thread, in bursts as an actor's turn has them.
fn channel_on_one_thread(messages: u64, burst: u64) -> Duration {
    let (sender, receiver) = crossbeam_channel::unbounded::<Words>();
    let start = Instant::now();
    let mut taken = 0;
    for number in 0..messages.div_ceil(burst) {
        (0..burst).for_each(|_| sender.send([number, number]).expect("a receiver lives"));
        while let Ok(words) = receiver.try_recv() {
            std::hint::black_box(words);
            taken += 1;
        }
    }
    assert!(taken >= messages);
    start.elapsed()
}

fn one_worker(criterion: &mut Criterion) {
    with_system(1, |system| {
        let sinks = Sinks::spawn(system, 1);
        let (took, times) = mpsc::channel();
        let peer = sinks.actors[0].clone();
        let recipe = {
            let took = took.clone();
            move || Sender { peer: peer.clone(), left: 0, started: Instant::now(), took: took.clone() }
        };
        let sender = system.spawn(recipe).expect("the system lives");
        let busy = |messages: u64| {
            let before = sinks.handled();
            let start = Instant::now();
            sender.tell(Send::Start(messages));
            // Sleep first: polling the count would take its line from the worker.
            let _ = times.recv_timeout(SOON).expect("the sender ends");
            sinks.wait_for(before + messages);
            start.elapsed()
        };
        let (took, balls) = mpsc::channel();
        let player = move || Player { partner: None, started: Instant::now(), took: took.clone() };
        let (ping, pong) = (system.spawn(player.clone()), system.spawn(player));
        let (ping, pong) = (ping.expect("the system lives"), pong.expect("the system lives"));
        ping.tell(Ball::Partner(pong.clone()));
        pong.tell(Ball::Partner(ping.clone()));
        let ping_pong = |messages: u64| {
            ping.tell(Ball::Serve(messages));
            balls.recv_timeout(SOON).expect("the ball comes back")
        };
        compare(
            criterion,
            "one thread",
            200_000,
            vec![
                Subject::new("channel, push and pop", |messages| channel_on_one_thread(messages, BURST)),
                Subject::new("tell to a busy actor", busy),
                Subject::new("ping-pong, per message", ping_pong),
            ],
        );
    });
}

fn many_to_one(criterion: &mut Criterion) {
    with_system(2, |system| {
        let sinks = Sinks::spawn(system, 1);
        for senders in [1, 2, 4, 16] {
            let tell = |messages: u64| {
                let before = sinks.handled();
                let each = messages / senders as u64;
                let start = Instant::now();
                on_threads(senders, |_| (0..each).for_each(|number| sinks.actors[0].tell([number, each])));
                sinks.wait_for(before + each * senders as u64);
                start.elapsed()
            };
            let tell_many = |messages: u64| {
                let before = sinks.handled();
                let each = messages / senders as u64;
                let start = Instant::now();
                on_threads(senders, |_| {
                    sinks.actors[0].tell_many((0..each).map(|number| [number, each]));
                });
                sinks.wait_for(before + each * senders as u64);
                start.elapsed()
            };
            let channel = |messages: u64| {
                let each = messages / senders as u64;
                let (sender, receiver) = crossbeam_channel::unbounded::<Words>();
                let took = on_threads(senders + 1, |thread| {
                    if thread < senders {
                        (0..each).for_each(|number| sender.send([number, each]).expect("a receiver lives"));
                    } else {
                        for _ in 0..each * senders as u64 {
                            std::hint::black_box(receiver.recv().expect("a sender lives"));
                        }
                    }
                });
                assert!(receiver.is_empty());
                took
            };
            compare(
                criterion,
                &format!("{senders} to one"),
                200_000,
                vec![
                    Subject::new("channel", channel),
                    Subject::new("actor", tell),
                    Subject::new("actor, many at once", tell_many),
                ],
            );
        }
    });
}

/// An actor that is asleep with its worker: what a tell costs its sender.
fn waking(criterion: &mut Criterion) {
    with_system(1, |system| {
        let sinks = Sinks::spawn(system, 1);
        let wake = |messages: u64| {
            let mut telling = Duration::ZERO;
            for number in 0..messages {
                let before = sinks.handled();
                let start = Instant::now();
                sinks.actors[0].tell([number, number]);
                telling += start.elapsed();
                sinks.wait_for(before + 1);
            }
            telling
        };
        let clock = |messages: u64| {
            let mut nothing = Duration::ZERO;
            for _ in 0..messages {
                let start = Instant::now();
                nothing += std::hint::black_box(start.elapsed());
            }
            nothing
        };
        compare(
            criterion,
            "tell from a thread to an idle actor, handled before the next",
            10_000,
            vec![Subject::new("nothing but the clock", clock), Subject::new("tell", wake)],
        );
    });
}

criterion_group!(benches, one_worker, many_to_one, waking);
criterion_main!(benches);
