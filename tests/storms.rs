//! Routers at full load while their routees come, go, fail and stop, and their heads are restarted or end: nothing
//! is lost, and nothing handled twice.
//!
//! Each message is looked for by its number. While routees come and go, the order of each sender's messages is looked
//! at in `broadcast` alone, and there for messages that have copies: any other message that a leaving routee leaves behind is
//! routed again, to another routee, behind what came later. Of each logic there is a storm more in which the routees fail and stay, and each of them must handle
//! the messages of a sender in the order sent.
//!
//! Ten million deliveries in an optimised build (`cargo test --release --test storms`), fewer in one that is not.

use pointsman::ask::Answerable;
use pointsman::dead_letters::DeadLetterLog;
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, ConsistentHashing, DefaultResizer, KeySink, Random, RoundRobin, RouterPlan, RoutingLogic,
    ScatterGatherFirstCompleted, SmallestMailbox, TailChopping, TwoChoices,
};
use pointsman::{Ledger, SpawnError};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

const SENDERS: u64 = 3;
/// Routers of which each message goes to one routee.
const KINDS: u64 = 9;
/// For each of these.
const MESSAGES: u64 = if cfg!(debug_assertions) { 45_000 } else { 9_000_000 / KINDS };
/// For the routers that send a message to many.
const COPIED: u64 = MESSAGES / 12;
/// At least so many changes of each router, spread over its messages.
const CHANGES: u64 = 200;
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
enum What {
    Nothing,
    Fail,
    Stop,
}

impl What {
    fn roll(dice: &mut Dice) -> Self {
        match dice.roll(5_000) {
            0..=4 => What::Fail,
            5 => What::Stop,
            _ => What::Nothing,
        }
    }

    fn then<M: Send + 'static>(self, ctx: &mut Context<M>) -> HandlerResult {
        match self {
            What::Nothing => Ok(()),
            What::Fail => Err(Failure::msg("as told")),
            What::Stop => {
                ctx.stop();
                Ok(())
            }
        }
    }
}

type Make<M> = dyn Fn(&SystemRef) -> Result<Router<M>, SpawnError> + Send + Sync;
type MakeWorker<M> = dyn Fn(&SystemRef) -> ActorRef<M>;

/// A router, those who send to it, and those who change it.
struct Storm<M: Send + 'static> {
    name: &'static str,
    messages: u64,
    /// The router is stopped now and then, and made anew.
    ends: bool,
    make: Box<Make<M>>,
    /// Makes a worker that is no pool's.
    foreign: Box<MakeWorker<M>>,
}

/// The router as it is now.
type Now<M> = Arc<RwLock<Router<M>>>;

/// Changes a router until its senders are done.
struct Weather<M: Send + 'static> {
    system: SystemRef,
    now: Now<M>,
    /// Makes the router anew, if it ends.
    again: Option<Box<Make<M>>>,
    foreign: Vec<ActorRef<M>>,
    changes: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl<M: Send + 'static> Weather<M> {
    fn rage(self) {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        while !self.over.load(Ordering::Acquire) {
            let router = self.now.read().expect("nobody panics").clone();
            self.change(&router, &mut dice);
            if router.routees().is_ok_and(|list| list.is_empty()) {
                let _ = router.resize_to(4);
            }
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn change(&self, router: &Router<M>, dice: &mut Dice) {
        let foreign = |dice: &mut Dice| &self.foreign[dice.roll(self.foreign.len() as u64) as usize];
        let first = || router.routees().ok().and_then(|list| list.first().cloned());
        // A router that ends refuses, which is no matter.
        match dice.roll(84) {
            0..=31 => _ = router.resize_to(1 + dice.roll(16) as usize),
            32..=47 => _ = router.adjust(dice.roll(7) as isize - 3),
            48..=55 => _ = router.add(foreign(dice).clone()),
            56..=63 => _ = router.remove(foreign(dice)),
            64..=71 => _ = first().map(|one| router.remove(&one)),
            72..=75 => _ = router.routees().map(|list| list.last().map(ActorRef::poison)),
            76 | 77 => first().iter().for_each(ActorRef::stop),
            78 | 79 => first().iter().for_each(ActorRef::kill),
            // The head, and with it all routees.
            80..=82 => router.kill(),
            _ => self.end_and_make_anew(router, dice),
        }
    }

    fn end_and_make_anew(&self, router: &Router<M>, dice: &mut Dice) {
        let Some(make) = &self.again else { return };
        match dice.roll(3) {
            0 => router.stop(),
            1 => router.poison(),
            _ => _ = router.drain(),
        }
        // Whoever sends meanwhile finds a router that refuses.
        let anew = loop {
            match make(&self.system) {
                Ok(anew) => break anew,
                Err(SpawnError::NameTaken { .. }) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        };
        *self.now.write().expect("nobody panics") = anew;
    }
}

impl<M: Send + 'static> Storm<M> {
    /// Sends each message by what `sender` makes for each sending thread, and returns the books at the end, and how many messages
    /// became dead letters: those for the head are in the books, too.
    fn run<S: FnMut(&ActorRef<M>, u32, What) + Send + 'static>(
        self,
        mut sender: impl FnMut() -> S,
    ) -> (Ledger, u64) {
        let Self { name, messages, ends, make, foreign } = self;
        let system = System::builder(name)
            .dispatcher("default", Dispatcher::work_stealing().threads(2).throughput(16))
            .dispatcher("management", Dispatcher::pinned())
            .supervision(Strategy::decide(|_| Directive::Restart).quiet())
            .log_dead_letters(DeadLetterLog::off())
            .build()
            .expect("the settings are sound");
        let dead = Arc::<AtomicU64>::default();
        let count = dead.clone();
        let _subscription = system.dead_letters().subscribe(move |letter| {
            if letter.message_type == std::any::type_name::<M>() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let foreign = (0..3).map(|_| foreign(&system)).collect();
        let now: Now<M> = Arc::new(RwLock::new(make(&system).expect("the plan is sound")));
        let (changes, over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let weather = Weather {
            system: system.handle().clone(),
            now: now.clone(),
            again: ends.then_some(make),
            foreign,
            changes: changes.clone(),
            over: over.clone(),
        };
        let weather = std::thread::spawn(move || weather.rage());
        let step = messages / CHANGES;
        let senders: Vec<_> = (0..SENDERS)
            .map(|first| {
                let (now, changes, system) = (now.clone(), changes.clone(), system.handle().clone());
                let mut send = sender();
                std::thread::spawn(move || {
                    let mut dice = Dice(0x2545_f491_4f6c_dd1d + first);
                    let mut to = now.read().expect("nobody panics").to_ref();
                    for number in (first..messages).step_by(SENDERS as usize) {
                        send(&to, number as u32, What::roll(&mut dice));
                        // No faster than the weather changes, and than messages are handled: those that lie in the
                        // mailbox of a routee that is stopped or killed are dead letters.
                        while number / step > changes.load(Ordering::Relaxed)
                            || (number % 512 < SENDERS && system.ledger().queued > QUEUED_MAX)
                        {
                            std::thread::yield_now();
                        }
                        // Some messages meet a router that has ended, but not all that are sent until there is another.
                        while to.is_closed() && number % 8 != 0 {
                            to = now.read().expect("nobody panics").to_ref();
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().expect("no sender panics"));
        over.store(true, Ordering::Release);
        weather.join().expect("the weather does not panic");
        let ledger = system.shutdown(LONG).expect("nothing is stuck");
        println!("{name}: {} changes; {ledger}", changes.load(Ordering::Relaxed));
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{name}: {ledger}");
        (ledger, dead.load(Ordering::Relaxed))
    }
}

/// The routees of the pools in most storms.
fn settled<M: Send + 'static, L>(plan: RouterPlan<M, L>) -> RouterPlan<M, L> {
    plan.stay_when_empty()
        .on_failure(Strategy::default())
        .leave_within(Duration::from_millis(1))
        .head_dispatcher("management")
}

// Each message to one routee.

#[derive(Clone, Copy)]
struct Numbered {
    number: u32,
    what: What,
}

/// How often each message was handled.
type Fates = Arc<Vec<AtomicU8>>;

struct Worker(Fates);

impl Actor for Worker {
    type Message = Numbered;
    fn receive(&mut self, it: Numbered, ctx: &mut Context<Numbered>) -> HandlerResult {
        self.0[it.number as usize].fetch_add(1, Ordering::Relaxed);
        it.what.then(ctx)
    }
}

fn storm<L: RoutingLogic<Numbered>>(
    name: &'static str,
    plan: impl Fn(RouterPlan<Numbered, RoundRobin>) -> RouterPlan<Numbered, L> + Send + Sync + 'static,
) {
    storm_over(name, false, move |system, fates| {
        let fates = fates.clone();
        settled(plan(system.router("all").pool(4, move |_| Worker(fates.clone())))).spawn()
    });
}

fn storm_over(
    name: &'static str,
    ends: bool,
    make: impl Fn(&SystemRef, &Fates) -> Result<Router<Numbered>, SpawnError> + Send + Sync + 'static,
) {
    let fates: Fates = Arc::new((0..MESSAGES).map(|_| AtomicU8::new(0)).collect());
    let (pools, others) = (fates.clone(), fates.clone());
    let storm = Storm {
        name,
        messages: MESSAGES,
        ends,
        make: Box::new(move |system| make(system, &pools)),
        foreign: Box::new(move |system| {
            let fates = others.clone();
            system.spawn(move || Worker(fates.clone())).expect("there is room")
        }),
    };
    let back = Arc::new(AtomicU64::new(0));
    let came_back: Arc<Vec<AtomicBool>> = Arc::new((0..MESSAGES).map(|_| AtomicBool::new(false)).collect());
    let (ledger, dead) = storm.run(|| {
        let (came_back, back) = (came_back.clone(), back.clone());
        move |to: &ActorRef<Numbered>, number, what| {
            if number % 3 == 0 {
                to.tell(Numbered { number, what });
            } else if to.try_tell(Numbered { number, what }).is_err() {
                back.fetch_add(1, Ordering::Relaxed);
                came_back[number as usize].store(true, Ordering::Relaxed);
            }
        }
    });
    let mut handled = 0;
    for (fate, came_back) in fates.iter().zip(came_back.iter()) {
        let times = fate.load(Ordering::Relaxed);
        handled += u64::from(times);
        assert!(times + u8::from(came_back.load(Ordering::Relaxed)) <= 1, "{name}: one message, two fates");
    }
    let back = back.load(Ordering::Relaxed);
    assert_eq!(ledger.handed_back, back, "{name}: {ledger}");
    assert_eq!(handled + back + dead, MESSAGES, "{name}: {dead} dead letters, {ledger}");
    // How many find a router that has ended depends on the machine; that hardly any finds a routee would be a fault.
    assert!(handled > MESSAGES / 10, "{name}: messages find routees: {handled} of {MESSAGES}");
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
    storm_over("balancing", false, |system, fates| {
        let fates = fates.clone();
        let plan = system.router("all").balancing_pool(4, move |_| Worker(fates.clone()));
        plan.stay_when_empty().on_failure(Strategy::default()).head_dispatcher("management").spawn()
    });
}

#[test]
fn routers_that_end_and_are_made_anew() {
    storm_over("ending", true, |system, fates| {
        let fates = fates.clone();
        settled(system.router("all").pool(4, move |_| Worker(fates.clone()))).spawn()
    });
}

// Each message to one of several routees that stay.

/// Notes what it gets, and whether it comes in order, also over restarts.
struct Regular {
    fates: Fates,
    last: Last,
    faults: Arc<AtomicU64>,
}

impl Actor for Regular {
    type Message = Numbered;
    fn receive(&mut self, it: Numbered, ctx: &mut Context<Numbered>) -> HandlerResult {
        self.fates[it.number as usize].fetch_add(1, Ordering::Relaxed);
        let number = u64::from(it.number) + 1;
        if self.last[it.number as usize % SENDERS as usize].swap(number, Ordering::Relaxed) >= number {
            self.faults.fetch_add(1, Ordering::Relaxed);
        }
        it.what.then(ctx)
    }
}

type Recipe = Box<dyn Fn(&mut Context<Numbered>) -> Regular + Send + Sync>;

/// Routees that stay: each message is handled once, and each sender's by each routee in the order sent.
fn order(name: &str, spawn: impl Fn(&SystemRef, Recipe) -> Result<Router<Numbered>, SpawnError>) {
    let system = System::builder(name)
        .dispatcher("default", Dispatcher::work_stealing().threads(2).throughput(16))
        .supervision(Strategy::decide(|_| Directive::Restart).quiet())
        .build()
        .expect("the settings are sound");
    let fates: Fates = Arc::new((0..COPIED).map(|_| AtomicU8::new(0)).collect());
    let faults = Arc::<AtomicU64>::default();
    let lasts: Mutex<HashMap<usize, Last>> = Mutex::default();
    let (of_pool, noted) = (fates.clone(), faults.clone());
    let recipe = move |ctx: &mut Context<Numbered>| {
        let last = lasts.lock().expect("nobody panics").entry(ctx.routee_index()).or_default().clone();
        Regular { fates: of_pool.clone(), last, faults: noted.clone() }
    };
    let router = spawn(&system, Box::new(recipe)).expect("the plan is sound");
    std::thread::scope(|scope| {
        for first in 0..SENDERS {
            let (to, system) = (router.to_ref(), &system);
            scope.spawn(move || {
                for number in (first..COPIED).step_by(SENDERS as usize) {
                    let what = if number % 1_001 == 0 { What::Fail } else { What::Nothing };
                    let it = Numbered { number: number as u32, what };
                    match number % 3 {
                        0 => to.tell(it),
                        _ => to.try_tell(it).expect("there is room"),
                    }
                    while number % 512 < SENDERS && system.ledger().queued > QUEUED_MAX {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    router.drain().expect("it runs");
    let ended = router.to_ref().when_ended();
    ended.wait().expect("it ends when all is handled");
    let ledger = system.shutdown(LONG).expect("nothing is stuck");
    assert_eq!((ledger.balance(), ledger.dead_lettered, ledger.handed_back), (0, 0, 0), "{name}: {ledger}");
    assert!(fates.iter().all(|times| times.load(Ordering::Relaxed) == 1), "{name}: each is handled once");
    assert_eq!(faults.load(Ordering::Relaxed), 0, "{name}: in the order sent");
}

/// The same for a pool of a logic.
fn order_by<L: RoutingLogic<Numbered>>(name: &str, logic: impl Fn() -> L) {
    order(name, |system, recipe| {
        let plan = system.router("all").pool(4, recipe).logic(logic());
        plan.on_failure(Strategy::default()).spawn()
    });
}

#[test]
fn routees_that_stay_handle_each_senders_messages_once_and_in_the_order_sent() {
    order_by("round-robin", RoundRobin::new);
    order_by("exact-round-robin", RoundRobin::exact);
    order_by("random", Random::new);
    order_by("smallest-mailbox", SmallestMailbox::new);
    order_by("two-choices", TwoChoices::new);
    order_by("consistent-hashing", || {
        ConsistentHashing::by(|it: &Numbered, key: &mut KeySink| key.feed(&(it.number / 16)))
    });
    order("balancing", |system, recipe| {
        system.router("all").balancing_pool(4, recipe).on_failure(Strategy::default()).spawn()
    });
}

// Each message to all routees.

/// The number of the last message that a routee has got from each sender, and 1.
type Last = Arc<[AtomicU64; SENDERS as usize]>;

/// A message that says whether there is a copy of it. The router sends it as it is while it has one routee; if that routee leaves,
/// and ends before it is done, the message goes to another routee, behind what came later.
struct Copied {
    it: Numbered,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    has_copies: AtomicBool,
    is_handled: AtomicBool,
}

impl Copied {
    fn new(it: Numbered) -> Self {
        Self { it, shared: Arc::default() }
    }
}

impl Clone for Copied {
    fn clone(&self) -> Self {
        self.shared.has_copies.store(true, Ordering::Relaxed);
        Self { it: self.it, shared: self.shared.clone() }
    }
}

/// Notes what it gets, also over restarts.
struct Listener {
    last: Last,
    /// Listed twice, it gets two copies.
    may_repeat: bool,
    faults: Arc<AtomicU64>,
}

impl Actor for Listener {
    type Message = Copied;
    fn receive(&mut self, message: Copied, ctx: &mut Context<Copied>) -> HandlerResult {
        let Copied { it, shared } = message;
        let number = u64::from(it.number) + 1;
        let before = self.last[it.number as usize % SENDERS as usize].fetch_max(number, Ordering::Relaxed);
        let was_handled = shared.is_handled.swap(true, Ordering::Relaxed);
        let is_fault = if shared.has_copies.load(Ordering::Relaxed) {
            before > number || (before == number && !self.may_repeat)
        } else {
            was_handled
        };
        self.faults.fetch_add(u64::from(is_fault), Ordering::Relaxed);
        it.what.then(ctx)
    }
}

#[test]
fn broadcast() {
    let faults = Arc::<AtomicU64>::default();
    let (of_pool, of_others) = (faults.clone(), faults.clone());
    let storm = Storm {
        name: "broadcast",
        messages: COPIED,
        ends: true,
        make: Box::new(move |system| {
            let faults = of_pool.clone();
            let lasts: Mutex<HashMap<usize, Last>> = Mutex::default();
            let recipe = move |ctx: &mut Context<Copied>| {
                let last =
                    lasts.lock().expect("nobody panics").entry(ctx.routee_index()).or_default().clone();
                Listener { last, may_repeat: false, faults: faults.clone() }
            };
            settled(system.router("all").pool(4, recipe).logic(Broadcast)).spawn()
        }),
        foreign: Box::new(move |system| {
            let (last, faults) = (Last::default(), of_others.clone());
            let recipe = move || Listener { last: last.clone(), may_repeat: true, faults: faults.clone() };
            system.spawn(recipe).expect("there is room")
        }),
    };
    let back = Arc::new(AtomicU64::new(0));
    let (ledger, _) = storm.run(|| {
        let back = back.clone();
        move |to: &ActorRef<Copied>, number, what| {
            let message = Copied::new(Numbered { number, what });
            if number % 3 == 0 {
                to.tell(message);
            } else if to.try_tell(message).is_err() {
                back.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    assert_eq!(faults.load(Ordering::Relaxed), 0, "each routee gets each message once, in the order sent");
    assert_eq!(ledger.handed_back, back.load(Ordering::Relaxed), "{ledger}");
    assert!(ledger.handled > COPIED / 10, "messages find routees: {ledger}");
}

// Each message a question.

#[derive(Clone)]
struct Question(What);

impl Request for Question {
    type Reply = bool;
    fn is_success(reply: &bool) -> bool {
        *reply
    }
}

/// Answers most questions; some by what is no success, some not at all.
struct Clerk {
    dice: Dice,
    kept: VecDeque<Call<Question>>,
}

impl Clerk {
    fn new() -> Self {
        Self { dice: Dice(0x5851_f42d_4c95_7f2d), kept: VecDeque::new() }
    }
}

impl Actor for Clerk {
    type Message = Call<Question>;
    fn receive(&mut self, call: Call<Question>, ctx: &mut Context<Call<Question>>) -> HandlerResult {
        let what = call.request.0;
        match self.dice.roll(8) {
            0 => call.answer(|_| false),
            1 => drop(call),
            // Longer than most questions are open.
            2 => self.kept.push_back(call),
            _ => call.answer(|_| true),
        }
        if self.kept.len() > 32 {
            self.kept.pop_front();
        }
        what.then(ctx)
    }
}

/// Questions that one thread has open at a time.
const OPEN: usize = 64;

fn questions<L: RoutingLogic<Call<Question>>>(name: &'static str, logic: fn() -> L)
where
    Call<Question>: Answerable,
{
    let storm = Storm {
        name,
        messages: COPIED,
        ends: true,
        make: Box::new(move |system| {
            settled(system.router("all").pool(4, |_| Clerk::new()).logic(logic())).spawn()
        }),
        foreign: Box::new(|system| system.spawn(Clerk::new).expect("there is room")),
    };
    let (answered, failed) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let (ledger, _) = storm.run(|| {
        let (answered, failed) = (answered.clone(), failed.clone());
        let mut open = Open { asks: VecDeque::new(), answered, failed };
        move |to: &ActorRef<Call<Question>>, _, what| {
            open.asks.push_back(to.ask(Question(what)));
            if open.asks.len() > OPEN {
                open.end_first();
            }
        }
    });
    let (answered, failed) = (answered.load(Ordering::Relaxed), failed.load(Ordering::Relaxed));
    assert_eq!(answered + failed, COPIED, "{name}: each question has one outcome");
    // A question fails at once at a router that has ended, and its sender asks the next: how many do so depends on the
    // machine.
    assert!(answered > COPIED / 100, "{name}: {answered} answered, {failed} failed; {ledger}");
    let of = ledger.asks;
    assert_eq!(
        of.begun,
        of.answered + of.no_reply + of.timed_out + of.undeliverable + of.cancelled,
        "{ledger}"
    );
}

/// Questions that wait for their outcomes.
struct Open {
    asks: VecDeque<Ask<bool>>,
    answered: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
}

impl Open {
    fn end_first(&mut self) {
        let Some(ask) = self.asks.pop_front() else { return };
        let count = match ask.wait() {
            Ok(_) => &self.answered,
            Err(_) => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        (0..self.asks.len()).for_each(|_| self.end_first());
    }
}

#[test]
fn scatter_gather() {
    questions("scatter-gather", || ScatterGatherFirstCompleted::within(Duration::from_millis(100)));
}

#[test]
fn tail_chopping() {
    questions("tail-chopping", || {
        TailChopping::within(Duration::from_millis(100)).interval(Duration::from_millis(1))
    });
}
