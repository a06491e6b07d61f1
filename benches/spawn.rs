//! Creating actors and stopping them.

mod common;

use common::{SOON, Subject, Words, compare, with_system};
use criterion::{Criterion, criterion_group, criterion_main};
use pointsman::prelude::*;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Does nothing, with 64 bytes of state.
struct Idler {
    _state: [u64; 8],
}

impl Actor for Idler {
    type Message = Words;
    fn receive(&mut self, _: Words, _: &mut Context<Words>) -> HandlerResult {
        Ok(())
    }
}

fn idler() -> Idler {
    Idler { _state: [0; 8] }
}

/// Creates and stops from its own worker.
struct Parent {
    took: mpsc::Sender<Duration>,
}

impl Actor for Parent {
    type Message = u64;
    fn receive(&mut self, count: u64, ctx: &mut Context<u64>) -> HandlerResult {
        let start = Instant::now();
        for _ in 0..count {
            ctx.spawn(idler)?.stop();
        }
        let _ = self.took.send(start.elapsed());
        Ok(())
    }
}

fn wait_for(system: &System, living: usize) {
    let start = Instant::now();
    while system.living_actors() > living {
        thread::yield_now();
        assert!(start.elapsed() < SOON, "{} actors have not ended", system.living_actors() - living);
    }
}

fn spawn_and_stop(criterion: &mut Criterion) {
    with_system(1, |system| {
        let (took, times) = mpsc::channel();
        let parent = system.spawn(move || Parent { took: took.clone() }).expect("the system lives");
        wait_for(system, usize::MAX);
        let living = system.living_actors();
        let from_thread = |count: u64| {
            let start = Instant::now();
            for _ in 0..count {
                system.spawn(idler).expect("the system lives").stop();
            }
            wait_for(system, living);
            start.elapsed()
        };
        let from_parent = |count: u64| {
            let start = Instant::now();
            parent.tell(count);
            let _ = times.recv_timeout(SOON).expect("the parent ends");
            wait_for(system, living);
            start.elapsed()
        };
        compare(
            criterion,
            "spawn and stop",
            20_000,
            vec![
                Subject::new("by an actor, its children", from_parent),
                Subject::new("by a thread, top-level actors", from_thread),
            ],
        );
    });
}

criterion_group!(benches, spawn_and_stop);
criterion_main!(benches);
