//! Everything at once, seeded: nothing is lost, doubled or put out of order.

use crate::support::LONG;
use pointsman::prelude::*;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const SENDERS: usize = 4;
const ACTORS: usize = 8;
const EACH: usize = 50_000;

/// A stream of numbers for one place, the same in each run.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[derive(Clone, Copy)]
struct Numbered {
    sender: usize,
    number: usize,
    panics: bool,
    fails: bool,
    stops: bool,
}

/// What happened to each message: how often it was handled or came back.
struct Fates {
    seen: Vec<AtomicU8>,
    handled: AtomicU64,
    lost_order: AtomicU64,
}

struct Worker {
    fates: Arc<Fates>,
    /// The newest of each sender that this incarnation, restarts included, has handled.
    newest: Arc<Mutex<[Option<usize>; SENDERS]>>,
}

impl Actor for Worker {
    type Message = Numbered;
    fn receive(&mut self, it: Numbered, ctx: &mut Context<Numbered>) -> HandlerResult {
        self.fates.seen[it.sender * EACH + it.number].fetch_add(1, Ordering::Relaxed);
        self.fates.handled.fetch_add(1, Ordering::Relaxed);
        {
            let mut newest = self.newest.lock().unwrap();
            if newest[it.sender] >= Some(it.number) {
                self.fates.lost_order.fetch_add(1, Ordering::Relaxed);
            }
            newest[it.sender] = Some(it.number);
        }
        if it.stops {
            ctx.stop();
        }
        if it.panics {
            // Without the hook's message: there are many.
            std::panic::resume_unwind(Box::new("as told"));
        }
        if it.fails { Err(Failure::msg("as told")) } else { Ok(()) }
    }
}

fn spawn(system: &SystemRef, place: usize, fates: &Arc<Fates>) -> ActorRef<Numbered> {
    let mailbox = match place % 4 {
        0 => Mailbox::unbounded(),
        1 => Mailbox::bounded(1),
        2 => Mailbox::bounded(1).on_full(OverflowPolicy::Wait(LONG)),
        _ => Mailbox::bounded(1).on_full(OverflowPolicy::DropNewest),
    };
    let (fates, newest) = (fates.clone(), Arc::default());
    let strategy = Strategy::decide(move |failure| {
        if failure.panic_payload().is_some() { Directive::Restart } else { Directive::Resume }
    });
    let builder = system.actor(&format!("worker-{place}-{}", system.now().as_nanos())).on_failure(strategy);
    let recipe = move || Worker { fates: fates.clone(), newest: Arc::clone(&newest) };
    builder.mailbox(mailbox).spawn(recipe).expect("time goes on between two of one place")
}

#[test]
fn panics_restarts_stops_and_full_mailboxes_lose_double_and_disorder_nothing() {
    let system = System::builder("stress")
        .dispatcher("default", Dispatcher::work_stealing().threads(2).throughput(5))
        .build()
        .unwrap();
    let fates = Arc::new(Fates {
        seen: (0..SENDERS * EACH).map(|_| AtomicU8::new(0)).collect(),
        handled: AtomicU64::new(0),
        lost_order: AtomicU64::new(0),
    });
    let places: Arc<Vec<Mutex<ActorRef<Numbered>>>> =
        Arc::new((0..ACTORS).map(|place| Mutex::new(spawn(&system, place, &fates))).collect());
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let (system, fates, places) = (system.handle().clone(), fates.clone(), places.clone());
            std::thread::spawn(move || {
                let mut state = 0x9e37_79b9 + sender as u64;
                let mut back = 0;
                for number in 0..EACH {
                    let dice = random(&mut state);
                    let place = (dice % ACTORS as u64) as usize;
                    let dice = dice >> 32;
                    let it = Numbered {
                        sender,
                        number,
                        panics: dice % 101 == 0,
                        fails: dice % 103 == 0,
                        stops: dice % 997 == 0,
                    };
                    let target = places[place].lock().unwrap().clone();
                    match dice % 3 {
                        0 => target.tell(it),
                        _ => {
                            if target.try_tell(it).is_err() {
                                back += 1;
                                fates.seen[sender * EACH + number].fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                    if target.is_closed() {
                        let mut place_ref = places[place].lock().unwrap();
                        if *place_ref == target {
                            *place_ref = spawn(&system, place, &fates);
                        }
                    }
                    if dice % 4001 == 0 {
                        target.poison();
                    }
                }
                back
            })
        })
        .collect();
    let back: u64 = senders.into_iter().map(|sender| sender.join().unwrap()).sum();
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
    assert_eq!(ledger.sent, (SENDERS * EACH) as u64, "{ledger}");
    assert_eq!((ledger.handed_back, ledger.queued), (back, 0), "{ledger}");
    assert_eq!(ledger.handled, fates.handled.load(Ordering::Relaxed), "{ledger}");
    assert_eq!(fates.lost_order.load(Ordering::Relaxed), 0, "per-sender order");
    let once = fates.seen.iter().filter(|seen| seen.load(Ordering::Relaxed) == 1).count() as u64;
    let more = fates.seen.iter().filter(|seen| seen.load(Ordering::Relaxed) > 1).count();
    assert_eq!(more, 0, "handled twice");
    // What was neither handled nor came back went to dead letters or by policy.
    assert_eq!(once, ledger.handled + ledger.handed_back);
    assert_eq!(ledger.sent - once, ledger.dead_lettered + ledger.dropped, "{ledger}");
    assert!(ledger.dead_lettered > 0 && ledger.dropped > 0 && ledger.handed_back > 0, "{ledger}");
}
