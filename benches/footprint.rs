//! Costs of idling: memory for each idle actor, with a generated name or found by its key, processor time of an idle
//! system, and the memory that is left after a flood of messages.
//!
//! Where the bytes of one of these actors are (`size_of` on a 64-bit target, rustc 1.95):
//!
//! | part | bytes |
//! |---|---|
//! | header: link and function of the task, vtable, home, count of references | 40 |
//! | the rest of the gate: word, tail block, indices, cursor, lane | 72 |
//! | inline slot: stamp and message | 24 |
//! | policy of the mailbox, and the block from which late senders start: a pointer each | 16 |
//! | core: system, parent, settings of its own, children and the number of the name 8 each, 24 of numbers and marks | 64 |
//! | what only turns touch; the extras are allocated when needed | 16 |
//! | the positions in routers that the actor sends through; allocated when needed | 8 |
//! | state and the tag that says whether it is there | 72 |
//! | recipe, which captures nothing here | 1 |
//! | **the cell, in whole lines** | **320** |
//! | its place in the parent's list, which doubles | 8 to 16 |
//! | the head and the rest of a piece of 256 KiB, for each of its cells | 1 |
//!
//! A name that was given, a strategy, a policy for a full mailbox, a number in a pool and a placement of its own lie in a
//! box of their own, and so does the list of children.

use pointsman::prelude::*;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const ACTORS: usize = 200_000;
const IDLE: Duration = Duration::from_secs(10);
const FLOOD: u64 = 10_000_000;
const SENDERS: u64 = 4;
/// Processor time that an idle system may use in [`IDLE`].
const CPU_MAX: Duration = Duration::from_millis(50);

/// Has 64 bytes of state and takes messages of 16.
struct Idler {
    state: [u64; 8],
}

impl Actor for Idler {
    type Message = [u64; 2];
    fn receive(&mut self, message: [u64; 2], _: &mut Context<[u64; 2]>) -> HandlerResult {
        self.state[0] += message[0];
        Ok(())
    }
}

/// Blocks in the handler of a message that is not zero, until it is released.
struct Held {
    released: Arc<Mutex<Receiver<()>>>,
    sum: u64,
}

impl Actor for Held {
    type Message = [u64; 2];
    fn receive(&mut self, message: [u64; 2], ctx: &mut Context<[u64; 2]>) -> HandlerResult {
        if message[0] != 0 {
            let released = self.released.lock().expect("no panic while locked");
            ctx.blocking(|| released.recv())?;
        }
        self.sum += message[0];
        Ok(())
    }
}

/// Memory of this process that is in use, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux has it");
    let kibibytes: usize = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kibibytes * 1024
}

/// Processor time of this process so far.
fn processor_time() -> Duration {
    // SAFETY: all zeros is a `timespec`.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is that of a `timespec` of ours.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "Linux has this clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn wait_for(system: &System, handled: u64) {
    while system.ledger().handled < handled {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Sends to an actor that is kept from its messages until all are there, and shows the memory before, then, and after
/// a rest.
fn flood(system: &System, messages: u64, rest: Duration) {
    let (release, released) = channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let held = system.actor("held").spawn(move || Held { released: released.clone(), sum: 0 }).expect("free");
    // Threads and mailboxes keep some memory, which is there before the flood, too.
    let begun = system.ledger().handled;
    (0..1000).for_each(|_| held.tell([0; 2]));
    wait_for(system, begun + 1000);
    let before = resident();
    held.tell([1; 2]);
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| (0..messages / SENDERS).for_each(|_| held.tell([0; 2])));
        }
    });
    let full = resident();
    release.send(()).expect("it waits");
    wait_for(system, begun + 1001 + messages / SENDERS * SENDERS);
    let handled = resident();
    thread::sleep(rest);
    let after = resident();
    // SAFETY: glibc allows it at any time. It gives back all pages on which nothing lies.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
    let all = [before, full, handled, after, resident()];
    let [before, full, handled, after, trimmed] = all.map(|bytes| bytes as f64 / 1e6);
    println!(
        "{messages} messages from {SENDERS} threads to an actor that is held: {before:.1} MB before, {full:.1} MB \
         with all, {handled:.1} MB when all are handled, {after:.1} MB {rest:?} later, {trimmed:.1} MB when the C \
         library has given back its free pages"
    );
}

/// Runs [`flood`] in a process of its own: its rest would be taken for the memory of idle actors.
fn flood_elsewhere() {
    let program = std::env::current_exe().expect("this program has a path");
    let status = std::process::Command::new(program).args(std::env::args().skip(1)).arg("--flood").status();
    assert!(status.expect("it starts").success(), "the flood failed");
}

fn main() -> ExitCode {
    // `cargo test --benches` only wants to see that it runs.
    let quick = std::env::args().any(|arg| arg == "--test");
    let (actors, idle) = if quick { (1000, Duration::from_millis(100)) } else { (ACTORS, IDLE) };
    let system = System::builder("footprint").build().expect("threads can be had");
    if std::env::args().any(|arg| arg == "--flood") {
        flood(&system, if quick { 10_000 } else { FLOOD }, idle);
        let ledger = system.shutdown(Duration::from_secs(60)).expect("everything ends");
        assert_eq!(ledger.balance(), 0, "{ledger}");
        return ExitCode::SUCCESS;
    }
    flood_elsewhere();
    let mut kept = Vec::with_capacity(actors);
    let before = resident();
    for number in 0..actors {
        let actor = system.spawn(|| Idler { state: [1; 8] }).expect("the system lives");
        // One message each: an actor that was never used may hold less.
        actor.tell([number as u64; 2]);
        kept.push(actor);
    }
    wait_for(&system, actors as u64);
    let each = (resident() - before) as f64 / actors as f64;
    println!("{actors} idle actors: {each:.0} bytes each (RSS, 8 of them the reference that is kept)");
    let recipe = |_: &mut Context<[u64; 2]>, _: &u64| Idler { state: [1; 8] };
    let group = system.group("keyed").by_key(|message: &[u64; 2]| message[0], recipe).spawn().expect("sound");
    let before = resident();
    (0..actors).for_each(|number| group.tell([number as u64; 2]));
    wait_for(&system, 2 * actors as u64);
    let each = (resident() - before) as f64 / actors as f64;
    println!("{actors} idle actors by key: {each:.0} bytes each (RSS, the group's tables included)");
    let start = processor_time();
    thread::sleep(idle);
    let used = processor_time() - start;
    println!("idle for {idle:?}: {:.4} s of processor time", used.as_secs_f64());
    drop(kept);
    let ledger = system.shutdown(Duration::from_secs(60)).expect("everything ends");
    assert_eq!(ledger.balance(), 0, "{ledger}");
    if used > CPU_MAX {
        eprintln!("an idle system may use {CPU_MAX:?} of processor time");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
