//! Routers at full load while their routees come, go, fail and stop: nothing is lost, and nothing handled twice.
//!
//! Ten million messages in an optimised build (`cargo test --release --test storms`), fewer in one that is not.

use pointsman::DeadLetterLog;
use pointsman::prelude::*;
use pointsman::routing::{ConsistentHashing, KeySink, Random, RoundRobin, RouterPlan, TwoChoices};
use pointsman::routing::{DefaultResizer, RoutingLogic, SmallestMailbox};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

const SENDERS: u64 = 3;
const KINDS: u64 = 8;
/// For each kind of router.
const MESSAGES: u64 = if cfg!(debug_assertions) { 60_000 } else { 10_000_000 / KINDS };
/// At least so many changes of each router, spread over its messages.
const CHANGES: u64 = 200;
const STEP: u64 = MESSAGES / CHANGES;
const QUEUED_MAX: u64 = 2_000;
/// Longer than any storm takes; reached only by one that is stuck.
const LONG: Duration = Duration::from_secs(300);

/// A stream of numbers, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

#[derive(Clone, Copy)]
struct Numbered {
    number: u32,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Nothing,
    Fail,
    Stop,
}

/// How often each message was handled or came back.
type Fates = Arc<Vec<AtomicU8>>;

struct Worker(Fates);

impl Actor for Worker {
    type Message = Numbered;
    fn receive(&mut self, it: Numbered, ctx: &mut Context<Numbered>) -> Done {
        self.0[it.number as usize].fetch_add(1, Ordering::Relaxed);
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

/// What becomes of a router in a storm.
struct Weather {
    router: Router<Numbered>,
    /// Workers that no pool has made.
    foreign: Vec<ActorRef<Numbered>>,
    changes: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Weather {
    /// Changes the router until the senders are done.
    fn rage(self) {
        let Self { router, foreign, changes, over } = self;
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        while !over.load(Ordering::Acquire) {
            let _ = match dice.roll(40) {
                0..=15 => router.resize_to(1 + dice.roll(16) as usize).map(drop),
                16..=23 => router.adjust(dice.roll(7) as isize - 3).map(drop),
                24..=27 => router.add(foreign[dice.roll(foreign.len() as u64) as usize].clone()).map(drop),
                28..=31 => router.remove(&foreign[dice.roll(foreign.len() as u64) as usize]).map(drop),
                32..=35 => router.routees().map(|list| list.first().map(|one| router.remove(one))).map(drop),
                36 | 37 => router.routees().map(|list| list.last().map(ActorRef::poison)).map(drop),
                38 => router.routees().map(|list| list.first().map(ActorRef::stop)).map(drop),
                _ => router.routees().map(|list| list.first().map(ActorRef::kill)).map(drop),
            };
            if router.routees().is_ok_and(|list| list.is_empty()) {
                let _ = router.resize_to(4);
            }
            changes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn storm<L: RoutingLogic<Numbered>>(
    name: &str,
    plan: impl FnOnce(RouterPlan<Numbered, RoundRobin>) -> RouterPlan<Numbered, L>,
) {
    storm_over(name, |system, fates| {
        let fates = fates.clone();
        let plan = plan(system.router("all").pool(4, move |_| Worker(fates.clone())));
        plan.stay_when_empty()
            .on_failure(Restart::always())
            .drain_within(Duration::from_millis(1))
            .head_dispatcher("management")
            .spawn()
    });
}

fn storm_over(
    name: &str,
    make: impl FnOnce(&SystemRef, &Fates) -> Result<Router<Numbered>, pointsman::SpawnError>,
) {
    let system = System::builder(name)
        .dispatcher("default", Dispatcher::work_stealing().threads(2).throughput(16))
        .dispatcher("management", Dispatcher::pinned())
        .supervision(Restart::always())
        .log_dead_letters(DeadLetterLog::off())
        .build()
        .expect("the settings are sound");
    let fates: Fates = Arc::new((0..MESSAGES).map(|_| AtomicU8::new(0)).collect());
    let router = make(&system, &fates).expect("the plan is sound");
    let foreign = (0..3)
        .map(|_| {
            let fates = fates.clone();
            system.spawn(move || Worker(fates.clone())).expect("there is room")
        })
        .collect();
    let (changes, over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
    let weather = Weather { router: router.clone(), foreign, changes: changes.clone(), over: over.clone() };
    let weather = std::thread::spawn(move || weather.rage());
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let (to, fates, changes) = (router.to_ref(), fates.clone(), changes.clone());
            let system = system.handle().clone();
            std::thread::spawn(move || {
                let mut dice = Dice(0x2545_f491_4f6c_dd1d + sender);
                let mut back = 0;
                for number in (sender..MESSAGES).step_by(SENDERS as usize) {
                    let what = match dice.roll(5_000) {
                        0..=4 => What::Fail,
                        5 => What::Stop,
                        _ => What::Nothing,
                    };
                    let it = Numbered { number: number as u32, what };
                    if number % 3 == 0 {
                        to.tell(it);
                    } else if to.try_tell(it).is_err() {
                        back += 1;
                        fates[number as usize].fetch_add(1, Ordering::Relaxed);
                    }
                    // No faster than the weather changes, and than messages are handled: those that lie in the
                    // mailbox of a routee that is stopped or killed are dead letters.
                    while number / STEP > changes.load(Ordering::Relaxed)
                        || (number % 512 < SENDERS && system.ledger().queued > QUEUED_MAX)
                    {
                        std::thread::yield_now();
                    }
                }
                back
            })
        })
        .collect();
    let back: u64 = senders.into_iter().map(|sender| sender.join().expect("no sender panics")).sum();
    over.store(true, Ordering::Release);
    weather.join().expect("the weather does not panic");
    let ledger = system.shutdown(LONG).expect("nothing is stuck");
    let once = fates.iter().filter(|fate| fate.load(Ordering::Relaxed) == 1).count() as u64;
    let twice = fates.iter().filter(|fate| fate.load(Ordering::Relaxed) > 1).count();
    println!("{name}: {} changes; {ledger}", changes.load(Ordering::Relaxed));
    assert_eq!(twice, 0, "{name}: handled twice");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{name}: {ledger}");
    assert_eq!(ledger.handed_back, back, "{name}: {ledger}");
    assert!(once > MESSAGES / 2, "{name}: messages find routees: {once} of {MESSAGES}");
}

#[test]
fn round_robin() {
    storm("round-robin", |plan| plan);
}

#[test]
fn exact_round_robin() {
    storm("exact-round-robin", |plan| plan.logic(RoundRobin::exact()));
}

#[test]
fn random() {
    storm("random", |plan| plan.logic(Random::new()));
}

#[test]
fn smallest_mailbox() {
    storm("smallest-mailbox", |plan| plan.logic(SmallestMailbox::new()));
}

#[test]
fn two_choices() {
    storm("two-choices", |plan| plan.logic(TwoChoices::new()));
}

#[test]
fn consistent_hashing() {
    storm("consistent-hashing", |plan| {
        plan.logic(ConsistentHashing::by(|it: &Numbered, key: &mut KeySink| key.feed(&it.number)))
    });
}

#[test]
fn a_resized_pool() {
    storm("resized", |plan| plan.resizer(DefaultResizer::new().lower_bound(1).upper_bound(16)));
}

#[test]
fn a_balancing_pool() {
    storm_over("balancing", |system, fates| {
        let fates = fates.clone();
        let plan = system.router("all").balancing_pool(4, move |_| Worker(fates.clone()));
        plan.stay_when_empty().on_failure(Restart::always()).head_dispatcher("management").spawn()
    });
}
