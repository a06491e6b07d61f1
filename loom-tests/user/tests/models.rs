//! What loom explores: `RUSTFLAGS="--cfg pointsman_loom" cargo test --test models`.
//!
//! Fails here with the feature `planted`: `a_reading_is_written_without_a_further_call`.
#![cfg(pointsman_loom)]

use loom::thread;
use loom_user::sync::Arc;
use loom_user::sync::atomic::{AtomicUsize, Ordering};
use loom_user::{Meter, WriterMsg, Written, spawn};
use pointsman::model;
use pointsman::prelude::*;
use std::time::Duration;

/// Two threads record; then nothing more is recorded, and all must have been written.
fn two_threads_record(system: System) {
    let (meter, writer) = spawn(&system, "writer").expect("the name is free");
    let other = record_elsewhere(&meter, 1);
    meter.record(2);
    other.join().expect("no panic");
    let mut written = ask(&writer);
    written.sort_unstable();
    assert_eq!(written, [1, 2], "a reading has not been written");
    let ledger = system.shutdown(Duration::MAX).expect("it ends");
    assert_eq!(ledger.balance(), 0, "{ledger}");
}

fn record_elsewhere(meter: &Meter, reading: u64) -> thread::JoinHandle<()> {
    let meter = meter.clone();
    thread::spawn(move || meter.record(reading))
}

fn ask(writer: &ActorRef<WriterMsg>) -> Vec<u64> {
    writer.ask(Written).wait().expect("the writer lives")
}

#[test]
fn a_reading_is_written_without_a_further_call() {
    model::check("a_reading_is_written", 2, 200, || {
        two_threads_record(model::system("meter").build().expect("the settings are sound"));
    });
}

#[test]
fn both_senders_are_heard() {
    model::check("both_senders_are_heard", 2, 700, || {
        let system = model::system("meter").build().expect("the settings are sound");
        let heard = Arc::new(AtomicUsize::new(0));
        let kept = heard.clone();
        let ear = move || Ear(kept.clone());
        let actor = system.spawn(ear).expect("it is the only one");
        let sender = {
            let actor = actor.clone();
            thread::spawn(move || actor.tell(1usize))
        };
        actor.tell(2usize);
        sender.join().expect("no panic");
        // Ordering: Relaxed; joining the sender orders the look behind what both senders have run.
        assert_eq!(heard.load(Ordering::Relaxed), 3);
        system.shutdown(Duration::MAX).expect("it ends");
    });
}

/// Adds up what it hears.
struct Ear(Arc<AtomicUsize>);

impl Actor for Ear {
    type Message = usize;
    fn receive(&mut self, message: usize, _: &mut Context<usize>) -> HandlerResult {
        // Ordering: Relaxed; a sum, and nothing rests on its order.
        self.0.fetch_add(message, Ordering::Relaxed);
        Ok(())
    }
}
