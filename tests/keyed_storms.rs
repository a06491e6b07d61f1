//! A million keys whose actors are created, fail, end, and are created again, by several senders at once: nothing
//! is lost, nothing handled twice, and each sender's messages for a key are handled in the order sent, whoever has
//! it.
//!
//! So many in an optimised build (`cargo test --release --test keyed_storms`), fewer in one that is not.

use pointsman::dead_letters::DeadLetterLog;
use pointsman::events::Subscription;
use pointsman::group::{Group, RestartPolicy, WhileRestarting};
use pointsman::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

const KEYS: u64 = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
const SENDERS: u64 = 3;
/// Longer than any storm takes; reached only by one that is stuck.
const LONG: Duration = Duration::from_secs(300);

/// Every so many keys get a second message from each sender.
const TWICE: u64 = 16;

#[derive(Clone, Copy)]
struct Numbered {
    key: u64,
    sender: u64,
    is_second: bool,
    what: What,
}

/// What was handled of each sender's messages for each key, a bit for each, over all lives of its actors.
#[derive(Default)]
struct Fates {
    seen: Vec<AtomicU8>,
    handled: AtomicU64,
    faults: AtomicU64,
    /// Messages that became dead letters.
    dead: AtomicU64,
    sent: AtomicU64,
}

impl Fates {
    fn new() -> Self {
        let seen = (0..SENDERS * KEYS).map(|_| AtomicU8::new(0)).collect();
        Self { seen, ..Self::default() }
    }

    fn handled(&self, it: Numbered) {
        let bit = 1 << u8::from(it.is_second);
        let before = self.seen[(it.sender * KEYS + it.key) as usize].fetch_or(bit, Ordering::Relaxed);
        // It was handled already, or the one after it was.
        if before >= bit {
            self.faults.fetch_add(1, Ordering::Relaxed);
        }
        self.handled.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy)]
enum What {
    Nothing,
    Fail,
    Stop,
}

struct Lodger {
    key: u64,
    fates: Arc<Fates>,
}

impl Actor for Lodger {
    type Message = Numbered;
    fn receive(&mut self, it: Numbered, ctx: &mut Context<Numbered>) -> HandlerResult {
        assert_eq!(it.key, self.key, "each to its own");
        self.fates.handled(it);
        match it.what {
            What::Nothing => Ok(()),
            What::Fail => Err(Failure::msg("as told")),
            What::Stop => {
                ctx.stop();
                Ok(())
            }
        }
    }
}

struct Storm {
    system: System,
    group: Group<Numbered, u64>,
    fates: Arc<Fates>,
    /// Of dead letters.
    _subscription: Subscription,
}

fn storm(name: &str, policy: RestartPolicy, what: WhileRestarting) -> Storm {
    let system = System::builder(name)
        .log_dead_letters(DeadLetterLog::off())
        .dispatcher("default", Dispatcher::work_stealing().threads(2))
        .build()
        .expect("sound");
    let fates = Arc::new(Fates::new());
    let (noted, buried) = (fates.clone(), fates.clone());
    let subscription = system.dead_letters().subscribe(move |letter| {
        if letter.message_type == std::any::type_name::<Numbered>() {
            buried.dead.fetch_add(1, Ordering::Relaxed);
        }
    });
    let recipe = move |_: &mut Context<Numbered>, key: &u64| Lodger { key: *key, fates: noted.clone() };
    let group = system
        .group("lodgers")
        .by_key(|it: &Numbered| it.key, recipe)
        .restart(policy)
        .while_restarting(what)
        .spawn()
        .expect("sound");
    Storm { system, group, fates, _subscription: subscription }
}

impl Storm {
    /// Each sender sends each key a message, some of them two, beginning at another place.
    fn rage(&self, keys: u64, what: impl Fn(u64, u64) -> What + Sync) {
        std::thread::scope(|scope| {
            for sender in 0..SENDERS {
                let (group, what, sent) = (&self.group, &what, &self.fates.sent);
                scope.spawn(move || {
                    for step in 0..keys {
                        let key = (step + sender * keys / SENDERS / 64) % keys;
                        let it = Numbered { key, sender, is_second: false, what: what(sender, key) };
                        group.tell(it);
                        if key % TWICE == 0 {
                            group.tell(Numbered { is_second: true, ..it });
                        }
                        sent.fetch_add(1 + u64::from(key % TWICE == 0), Ordering::Relaxed);
                    }
                });
            }
        });
    }

    /// How many messages became dead letters.
    fn end(self) -> u64 {
        let Self { system, group, fates, _subscription } = self;
        group.terminate("the storm is over");
        system.wait_until(&group);
        assert!(group.is_empty());
        drop(group);
        let ledger = system.shutdown(LONG).expect("nothing is stuck");
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
        assert_eq!(ledger.handled, fates.handled.load(Ordering::Relaxed), "{ledger}");
        assert_eq!(fates.faults.load(Ordering::Relaxed), 0, "each at most once, and in the order sent");
        let bits = fates.seen.iter().map(|seen| u64::from(seen.load(Ordering::Relaxed).count_ones()));
        let (handled, dead) = (bits.sum::<u64>(), fates.dead.load(Ordering::Relaxed));
        assert_eq!(handled, ledger.handled, "by their bits: {ledger}");
        assert_eq!(
            handled + dead,
            fates.sent.load(Ordering::Relaxed),
            "none is lost: {dead} dead letters, {ledger}"
        );
        assert!(handled >= KEYS / 4, "{ledger}");
        dead
    }
}

trait WaitUntil {
    fn wait_until(&self, group: &Group<Numbered, u64>);
}

impl WaitUntil for System {
    fn wait_until(&self, group: &Group<Numbered, u64>) {
        let began = std::time::Instant::now();
        while !group.head().is_closed() {
            assert!(began.elapsed() < LONG, "it never ends: {} left", group.len());
            std::thread::yield_now();
        }
    }
}

#[test]
fn every_key_is_created_once_however_many_race() {
    let storm = storm("once", RestartPolicy::never(), WhileRestarting::Queue);
    storm.rage(KEYS, |_, _| What::Nothing);
    assert_eq!(storm.group.len() as u64, KEYS);
    assert_eq!(storm.system.living_actors() as u64, KEYS + 5, "the guardians and the head besides");
    assert_eq!(storm.end(), 0, "each message is handled");
}

#[test]
fn keys_come_and_go_while_senders_race() {
    let storm = storm("retire", RestartPolicy::never(), WhileRestarting::Queue);
    storm.rage(KEYS, |sender, key| if (key + sender) % 2 == 0 { What::Stop } else { What::Nothing });
    storm.end();
}

#[test]
fn actors_fail_and_are_restarted_while_senders_race() {
    for what in [WhileRestarting::Queue, WhileRestarting::Refuse, WhileRestarting::SpawnAnew] {
        let wait = Duration::from_millis(5);
        let storm = storm("restart", RestartPolicy::on_failure(wait, wait), what);
        storm
            .rage(KEYS / 4, |sender, key| if (key + sender) % 100 == 0 { What::Fail } else { What::Nothing });
        storm.end();
    }
}
