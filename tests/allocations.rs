//! After a warm-up no message costs an allocation: a million messages in each way of sending (in a release
//! build), none allocated.
//!
//! The allocator counts for the whole process, so this is a program without a test harness: the harness has a
//! thread of its own, which was seen to allocate in the middle of a case when it told that the test had been
//! running for a minute.

#[path = "counting/allocator.rs"]
mod allocator;

use pointsman::SendError;
use pointsman::actor::{Recipient, RecipientLoad};
use pointsman::ask::AskError;
use pointsman::prelude::*;
use pointsman::routing::{Broadcast, ConsistentHashing, Random, RoundRobin, RoutingLogic, SmallestMailbox};
use pointsman::telemetry::Telemetry;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

static COUNTS: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

fn note() {
    if COUNTS.load(Ordering::Relaxed) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

/// How many allocations the whole process makes while `run` runs.
fn allocations(run: impl FnOnce()) -> u64 {
    COUNT.store(0, Ordering::SeqCst);
    COUNTS.store(true, Ordering::SeqCst);
    run();
    COUNTS.store(false, Ordering::SeqCst);
    COUNT.load(Ordering::SeqCst)
}

/// A hundredth without optimisation; the gate runs this with it too.
const MESSAGES: u64 = if cfg!(debug_assertions) { 10_000 } else { 1_000_000 };
const WARM_UP: u64 = 20_000;
const ROUTEES: usize = 4;
/// Fills more memory than the mailboxes, the workers and the senders can hold between them: once it is handled,
/// whoever needs a block finds one.
const FLOOD: u64 = 20_000;
/// Actors or routers that are woken one after the other from another thread, before the sender waits for all of
/// them: each message wakes somebody, and not each costs a way to another core and back.
const BATCH: usize = 16;
/// Messages that a sender of its own thread has in flight at most.
const WINDOW: u64 = 512;
/// On one thread: messages that a driver sends for each of its own, no more than a sink handles in a turn.
const BURST: u64 = 1;
/// The dispatchers with workers, and how many: of the heads of routers, of what is sent to from outside, of what is sent to
/// from its own thread.
const WORKERS: [(&str, usize); 3] = [("default", 2), ("workers", 2), ("one", 1)];
/// How often they meet: more often than is needed for each to have taken tasks, searched in vain, and looked for what
/// can be freed.
const MEETINGS: usize = 16;
/// Whom each of them wakes then.
const BYSTANDERS: usize = 3;
const SOON: Duration = Duration::from_secs(60);
/// Longer than an asker looks for an answer before it sleeps.
const PARKED_FOR: Duration = Duration::from_millis(50);

/// A message of `WORDS` times eight bytes.
type Words<const WORDS: usize> = [u64; WORDS];

/// Counts what it gets, and answers a driver that waits for it.
struct Sink<const WORDS: usize> {
    handled: Arc<AtomicU64>,
    echo: Option<ActorRef<Step>>,
}

impl<const WORDS: usize> Actor for Sink<WORDS> {
    type Message = Words<WORDS>;
    fn receive(&mut self, _: Words<WORDS>, _: &mut Context<Words<WORDS>>) -> HandlerResult {
        self.handled.fetch_add(1, Ordering::Relaxed);
        if let Some(driver) = &self.echo {
            driver.tell(Step::Echo);
        }
        Ok(())
    }
}

/// An actor that sends from its own thread, which is also the sinks'.
struct Driver<const WORDS: usize> {
    target: Option<ActorRef<Words<WORDS>>>,
    left: u64,
    echoes_each: u64,
    echoes: u64,
    done: Arc<AtomicBool>,
}

#[derive(Clone)]
enum Step {
    /// Send a burst, and come back behind whatever waits.
    Burst,
    /// Send one and wait for its echo.
    Single,
    Echo,
}

/// What a driver is told.
enum Drive<const WORDS: usize> {
    Start { target: ActorRef<Words<WORDS>>, messages: u64, echoes_each: u64, how: Step },
    Step(Step),
}

impl<const WORDS: usize> From<Step> for Drive<WORDS> {
    fn from(step: Step) -> Self {
        Drive::Step(step)
    }
}

impl<const WORDS: usize> Driver<WORDS> {
    fn send(&mut self) {
        let target = self.target.as_ref().expect("started");
        self.left -= 1;
        target.tell([self.left; WORDS]);
    }

    fn finish_or(&mut self, go_on: impl FnOnce(&mut Self)) {
        if self.left == 0 {
            self.target = None;
            self.done.store(true, Ordering::Release);
        } else {
            go_on(self);
        }
    }
}

impl<const WORDS: usize> Actor for Driver<WORDS> {
    type Message = Drive<WORDS>;
    fn receive(&mut self, message: Drive<WORDS>, ctx: &mut Context<Drive<WORDS>>) -> HandlerResult {
        let step = match message {
            Drive::Start { target, messages, echoes_each, how } => {
                (self.target, self.left) = (Some(target), messages);
                (self.echoes_each, self.echoes) = (echoes_each, 0);
                how
            }
            Drive::Step(step) => step,
        };
        match step {
            Step::Burst => {
                (0..BURST.min(self.left)).for_each(|_| self.send());
                self.finish_or(|_| ctx.me().tell(Drive::Step(Step::Burst)));
            }
            Step::Single => self.send(),
            Step::Echo => {
                self.echoes += 1;
                if self.echoes == self.echoes_each {
                    self.echoes = 0;
                    self.finish_or(Self::send);
                }
            }
        }
        Ok(())
    }
}

/// One way to send, and how many have arrived by it.
struct Way<M: Send + 'static> {
    name: &'static str,
    to: ActorRef<M>,
    /// The same, with sinks of their own.
    others: Vec<ActorRef<M>>,
    sinks: Vec<ActorRef<M>>,
    handled: Arc<AtomicU64>,
    /// Deliveries that come of one message.
    each: u64,
}

impl<M: Send + 'static> Way<M> {
    fn wait_for(&self, count: u64) {
        while self.handled.load(Ordering::Relaxed) < count {
            thread::yield_now();
        }
    }

    fn wait_until_idle(&self) {
        while self.sinks.iter().any(|sink| sink.load() != RecipientLoad::Idle) {
            thread::yield_now();
        }
    }
}

/// Every way to send there is, to `targets` actors or routers each with sinks on `dispatcher`.
fn ways<const WORDS: usize>(
    system: &System,
    dispatcher: &str,
    echo: Option<ActorRef<Step>>,
    targets: usize,
) -> Vec<Way<Words<WORDS>>> {
    let label = format!("{dispatcher}-{WORDS}-{}", if echo.is_some() { "echo" } else { "silent" });
    let direct = {
        let handled = Arc::new(AtomicU64::new(0));
        let (count, echo) = (handled.clone(), echo.clone());
        let sink = move || Sink { handled: count.clone(), echo: echo.clone() };
        let spawn = |number| {
            let sink = sink.clone();
            let actor = system.actor(&format!("direct-{label}-{number}")).dispatcher(dispatcher);
            actor.spawn(sink).expect("a free name")
        };
        let sinks: Vec<_> = (0..targets).map(spawn).collect();
        let (to, others) = (sinks[0].clone(), sinks[1..].to_vec());
        Way { name: "tell", to, others, sinks, handled, each: 1 }
    };
    fn way<const WORDS: usize, L: RoutingLogic<Words<WORDS>>>(
        (system, dispatcher, label, echo): (&System, &str, &str, &Option<ActorRef<Step>>),
        targets: usize,
        name: &'static str,
        each: u64,
        logic: impl Fn() -> L,
    ) -> Way<Words<WORDS>> {
        let handled = Arc::new(AtomicU64::new(0));
        let spawn = |number| {
            let (count, echo) = (handled.clone(), echo.clone());
            let sink = move |_: &mut Context<_>| Sink { handled: count.clone(), echo: echo.clone() };
            let router = system
                .router(&format!("{}-{label}-{number}", name.replace(' ', "-")))
                .pool(ROUTEES, sink)
                .dispatcher(dispatcher)
                .logic(logic())
                .spawn()
                .expect("a free name");
            (router.to_ref(), router.routees().expect("the router lives"))
        };
        let (mut others, sinks): (Vec<_>, Vec<_>) = (0..targets).map(spawn).unzip();
        let to = others.remove(0);
        Way { name, to, others, sinks: sinks.concat(), handled, each }
    }
    /// Groups whose keys are all taken.
    fn keyed<const WORDS: usize>(
        (system, dispatcher, label, echo): (&System, &str, &str, &Option<ActorRef<Step>>),
        targets: usize,
    ) -> Way<Words<WORDS>> {
        let handled = Arc::new(AtomicU64::new(0));
        let spawn = |number| {
            let (count, echo) = (handled.clone(), echo.clone());
            let sink = move |_: &mut Context<_>, _: &u64| Sink { handled: count.clone(), echo: echo.clone() };
            let group = system
                .group(&format!("keyed-{label}-{number}"))
                .by_key(|message: &Words<WORDS>| message[0] % ROUTEES as u64, sink)
                .dispatcher(dispatcher)
                .spawn()
                .expect("a free name");
            (0..ROUTEES as u64).for_each(|key| group.mount(key).unwrap());
            (group.to_ref(), (0..ROUTEES as u64).map(|key| group.key(key)).collect::<Vec<_>>())
        };
        let (mut others, sinks): (Vec<_>, Vec<_>) = (0..targets).map(spawn).unzip();
        let to = others.remove(0);
        Way { name: "keyed group", to, others, sinks: sinks.concat(), handled, each: 1 }
    }
    let at = (system, dispatcher, label.as_str(), &echo);
    let key = || ConsistentHashing::by(|message: &Words<WORDS>, key| key.feed(&message[0]));
    vec![
        direct,
        way(at, targets, "round robin", 1, RoundRobin::new),
        way(at, targets, "round robin exact", 1, RoundRobin::exact),
        way(at, targets, "random", 1, Random::new),
        way(at, targets, "smallest mailbox", 1, SmallestMailbox::new),
        way(at, targets, "consistent hashing", 1, key),
        way(at, targets, "broadcast", ROUTEES as u64, || Broadcast),
        keyed(at, targets),
    ]
}

/// Sends from this thread, with at most [`WINDOW`] deliveries in flight.
fn send_across<const WORDS: usize>(way: &Way<Words<WORDS>>, messages: u64) {
    let before = way.handled.load(Ordering::Relaxed);
    for number in 0..messages {
        if number % 64 == 0 {
            way.wait_for(before + (number * way.each).saturating_sub(WINDOW));
        }
        way.to.tell([number; WORDS]);
    }
    way.wait_for(before + messages * way.each);
}

/// Sends from this thread, each message to actors that are idle.
fn send_waking<const WORDS: usize>(way: &Way<Words<WORDS>>, messages: u64) {
    let before = way.handled.load(Ordering::Relaxed);
    let mut sent = 0;
    while sent < messages {
        way.wait_until_idle();
        for to in [&way.to].into_iter().chain(&way.others) {
            to.tell([sent; WORDS]);
            sent += 1;
        }
        way.wait_for(before + sent * way.each);
    }
}

/// Has a driver send from the sinks' own thread.
fn drive<const WORDS: usize>(
    driver: &ActorRef<Drive<WORDS>>,
    done: &AtomicBool,
    way: &Way<Words<WORDS>>,
    messages: u64,
    how: Step,
) {
    let before = way.handled.load(Ordering::Relaxed);
    done.store(false, Ordering::Relaxed);
    driver.tell(Drive::Start { target: way.to.clone(), messages, echoes_each: way.each, how });
    while !done.load(Ordering::Acquire) {
        thread::yield_now();
    }
    way.wait_for(before + messages * way.each);
}

/// The blocks that a case may allocate before a run of it allocates none. 0 without measurements. With them, a thread that
/// measures an actor class for the first time makes its row of the class: up to four blocks, once. The warm-up does not
/// decide which worker meets which actors, so a row may be made later: by each of four threads, of two classes.
static ONCE_MAX: AtomicU64 = AtomicU64::new(0);

/// Checks one case, after its warm-up.
fn check(faults: &mut Vec<String>, case: String, mut run: impl FnMut(u64)) {
    run(WARM_UP);
    let mut once = 0;
    loop {
        let began = Instant::now();
        let count = allocations(|| run(MESSAGES));
        println!("{case}: {count} allocations in {MESSAGES} messages, {:.1?}", began.elapsed());
        if count == 0 {
            return;
        }
        once += count;
        if once > ONCE_MAX.load(Ordering::Relaxed) {
            faults.push(case);
            return;
        }
    }
}

/// Handles nothing until the gate is open.
struct Held<M> {
    gate: Arc<Mutex<()>>,
    handled: Arc<AtomicU64>,
    message: PhantomData<fn(M)>,
}

impl<M: Send + 'static> Actor for Held<M> {
    type Message = M;
    fn receive(&mut self, _: M, _: &mut Context<M>) -> HandlerResult {
        drop(self.gate.lock());
        self.handled.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Queues so many messages at once that there is memory enough for all that follow.
fn flood<M: Send + 'static, R>(system: &System, name: &str, send: impl Fn(&ActorRef<M>, u64) -> R) {
    let (gate, handled) = (Arc::new(Mutex::new(())), Arc::new(AtomicU64::new(0)));
    let shut = gate.lock();
    let recipe = {
        let (gate, handled) = (gate.clone(), handled.clone());
        move || Held { gate: gate.clone(), handled: handled.clone(), message: PhantomData }
    };
    let before = system.living_actors();
    let held = system.actor(name).dispatcher("hold").spawn(recipe).expect("a free name");
    let sent: Vec<R> = (0..FLOOD).map(|number| send(&held, number)).collect();
    drop(shut);
    while handled.load(Ordering::Relaxed) < FLOOD {
        thread::yield_now();
    }
    drop(sent);
    // Until it has ended, its end may allocate.
    held.stop();
    while system.living_actors() > before {
        thread::yield_now();
    }
}

/// Waits for its like in other threads, and then wakes some that do nothing: more than one, so that they wait in the
/// worker's own queue.
struct Meeting {
    barrier: Arc<Barrier>,
    bystanders: Vec<ActorRef<()>>,
}

impl Actor for Meeting {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        self.barrier.wait();
        self.bystanders.iter().for_each(|bystander| bystander.tell(()));
        Ok(())
    }
}

struct Bystander;

impl Actor for Bystander {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
}

/// Lets all end that the making of actors has begun, and each of the workers do what it does only once: one that slept
/// through a warm-up would get its part of the ledger later, and make its queue smaller again, which held all those
/// that were made. And one that had lost its core would find later what the making of routers has replaced: to free that
/// takes a list.
fn settle<M: Send + 'static>(system: &System, label: &str, ways: &[Way<M>]) {
    ways.iter().for_each(Way::wait_until_idle);
    for (dispatcher, workers) in WORKERS {
        let barrier = Arc::new(Barrier::new(workers));
        let actor = |name: &str, number: usize| {
            system.actor(&format!("{name}-{label}-{dispatcher}-{number}")).dispatcher(dispatcher)
        };
        let bystanders = |group: usize| {
            let bystander = |number| actor("bystander", number).spawn(|| Bystander).expect("a free name");
            (group * BYSTANDERS..(group + 1) * BYSTANDERS).map(bystander).collect::<Vec<_>>()
        };
        let all: Vec<_> = (0..workers).map(bystanders).collect();
        let meet = |(number, bystanders): (usize, &Vec<ActorRef<()>>)| {
            let (barrier, bystanders) = (barrier.clone(), bystanders.clone());
            let recipe = move || Meeting { barrier: barrier.clone(), bystanders: bystanders.clone() };
            actor("meeting", number).spawn(recipe).expect("a free name")
        };
        let meetings: Vec<_> = all.iter().enumerate().map(meet).collect();
        for _ in 0..MEETINGS {
            meetings.iter().for_each(|meeting| meeting.tell(()));
            while meetings.iter().chain(all.iter().flatten()).any(|actor| actor.load() != RecipientLoad::Idle)
            {
                thread::yield_now();
            }
        }
    }
}

fn tells<const WORDS: usize>(system: &System, faults: &mut Vec<String>) {
    let bytes = 8 * WORDS;
    flood::<Words<WORDS>, _>(system, &format!("tells-{WORDS}"), |held, number| held.tell([number; WORDS]));
    let from_outside = ways::<WORDS>(system, "workers", None, BATCH);
    settle(system, &format!("outside-{WORDS}"), &from_outside);
    for way in &from_outside {
        check(faults, format!("{}, {bytes} bytes, across threads", way.name), |messages| {
            send_across(way, messages);
        });
        check(faults, format!("{}, {bytes} bytes, waking from another thread", way.name), |messages| {
            send_waking(way, messages);
        });
    }
    let done = Arc::new(AtomicBool::new(false));
    let recipe = {
        let done = done.clone();
        move || Driver { target: None, left: 0, echoes_each: 1, echoes: 0, done: done.clone() }
    };
    let driver = system.actor(&format!("driver-{WORDS}")).dispatcher("one").spawn(recipe);
    let driver: ActorRef<Drive<WORDS>> = driver.expect("a free name");
    // What starts the driver is sent from here and handled there, so its blocks gather in the other thread.
    flood::<Drive<WORDS>, _>(system, &format!("drives-{WORDS}"), |held, _| {
        held.tell(Drive::Step(Step::Echo))
    });
    let on_one = ways::<WORDS>(system, "one", None, 1);
    settle(system, &format!("one-{WORDS}"), &on_one);
    for way in &on_one {
        check(faults, format!("{}, {bytes} bytes, on one thread", way.name), |messages| {
            drive(&driver, &done, way, messages, Step::Burst);
        });
    }
    let waking_on_one = ways::<WORDS>(system, "one", Some(driver.narrow()), 1);
    settle(system, &format!("waking-{WORDS}"), &waking_on_one);
    for way in &waking_on_one {
        check(faults, format!("{}, {bytes} bytes, waking on one thread", way.name), |messages| {
            drive(&driver, &done, way, messages, Step::Single);
        });
    }
}

/// A request of `WORDS` times eight bytes, answered by as many.
struct Echo<const WORDS: usize>(Words<WORDS>);

impl<const WORDS: usize> Request for Echo<WORDS> {
    type Reply = Words<WORDS>;
}

/// Answers in its asker's thread.
struct Here;

impl<const WORDS: usize> Recipient<Call<Echo<WORDS>>> for Here {
    fn deliver(&self, call: Call<Echo<WORDS>>) -> Result<(), SendError<Call<Echo<WORDS>>>> {
        call.answer(|Echo(words)| words);
        Ok(())
    }
}

/// Answers as an actor.
struct There<const WORDS: usize>;

impl<const WORDS: usize> Actor for There<WORDS> {
    type Message = Call<Echo<WORDS>>;
    fn receive(&mut self, call: Self::Message, _: &mut Context<Self::Message>) -> HandlerResult {
        call.answer(|Echo(words)| words);
        Ok(())
    }
}

/// Lets this thread sleep in an ask: the first time, it makes what wakes it.
fn park_once() {
    let kept = Mutex::new(Vec::new());
    let keeper = ActorRef::from_fn(move |call: Call<Echo<1>>| kept.lock().expect("no panic").push(call));
    let answer = keeper.ask(Echo([0])).within(PARKED_FOR).wait();
    assert!(matches!(answer, Err(AskError::Timeout { .. })), "{answer:?}");
}

fn asks<const WORDS: usize>(system: &System, faults: &mut Vec<String>) {
    let bytes = 8 * WORDS;
    let there: [ActorRef<Call<Echo<WORDS>>>; BATCH] = std::array::from_fn(|number| {
        let actor = system.actor(&format!("there-{WORDS}-{number}")).dispatcher("workers");
        actor.spawn(|| There::<WORDS>).expect("a free name")
    });
    settle::<()>(system, &format!("asks-{WORDS}"), &[]);
    park_once();
    let here = ActorRef::to_recipient(Here);
    let mut asker = Asker::new();
    check(faults, format!("ask, {bytes} bytes, on one thread"), |asks| {
        for number in 0..asks {
            assert_eq!(asker.ask(&here, Echo([number; WORDS])).wait(), Ok([number; WORDS]));
        }
    });
    flood::<Call<Echo<WORDS>>, _>(system, &format!("asks-{WORDS}"), |held, number| {
        held.ask(Echo([number; WORDS]))
    });
    let mut askers: [_; BATCH] = std::array::from_fn(|_| Asker::new());
    check(faults, format!("ask, {bytes} bytes, waking from another thread"), |asks| {
        for number in 0..asks / BATCH as u64 {
            let mut there = there.iter();
            let pending = askers.each_mut().map(|asker| {
                let target = there.next().expect("as many");
                while target.load() != RecipientLoad::Idle {
                    thread::yield_now();
                }
                asker.ask(target, Echo([number; WORDS]))
            });
            for answer in pending {
                assert_eq!(answer.wait(), Ok([number; WORDS]));
            }
        }
    });
}

/// Sends by an outlet: to one group, and to two, without an address.
fn outlets(system: &System, faults: &mut Vec<String>) {
    for targets in [1, 2] {
        let topology = system.topology();
        let source = topology.local::<Step>("source").expect("a free name");
        let handled = Arc::new(AtomicU64::new(0));
        for number in 0..targets {
            let count = handled.clone();
            let sink = move || Sink { handled: count.clone(), echo: None };
            let actor = system.actor(&format!("outlet-{targets}-{number}")).dispatcher("workers");
            let actor = actor.spawn(sink).expect("a free name");
            let group = topology.local::<Words<2>>(&format!("group-{number}")).expect("a free name");
            source.route_to(&group, |words: &Words<2>| words[1] < u64::MAX);
            group.mount(&actor);
        }
        let outlet = source.outlet::<Words<2>>();
        source.mount(&ActorRef::from_fn(drop::<Step>));
        settle::<()>(system, &format!("outlets-{targets}"), &[]);
        check(faults, format!("an outlet that leads to {targets}"), |messages| {
            let before = handled.load(Ordering::Relaxed);
            for number in 0..messages {
                if number % 64 == 0 {
                    let least = (number * targets).saturating_sub(WINDOW);
                    while handled.load(Ordering::Relaxed) - before < least {
                        thread::yield_now();
                    }
                }
                outlet.try_send([number; 2]).expect("the sinks live");
            }
            while handled.load(Ordering::Relaxed) - before < messages * targets {
                thread::yield_now();
            }
        });
    }
}

fn main() {
    // Each block and each turn, so that the warm-up meets what is made at the first measurement. The watchdog's looks take
    // memory, whatever is sent.
    let one = NonZeroU32::MIN;
    let all = Telemetry::off().waits(one).turns(one);
    run(Telemetry::off());
    ONCE_MAX.store(4 * 4 * 2, Ordering::Relaxed);
    run(all);
}

fn run(telemetry: Telemetry) {
    let system = WORKERS
        .into_iter()
        // Workers that soon fall asleep, so that they have to be woken too.
        .fold(System::builder("allocations"), |builder, (name, threads)| {
            builder.dispatcher(name, Dispatcher::work_stealing().threads(threads))
        })
        // One thread and no more: another one would end some time later, and to note that takes memory.
        .dispatcher("hold", Dispatcher::blocking().thread_range(1..=1))
        .telemetry(telemetry)
        .build()
        .expect("the threads can be had");
    let mut faults = Vec::new();
    tells::<2>(&system, &mut faults);
    tells::<8>(&system, &mut faults);
    asks::<2>(&system, &mut faults);
    asks::<8>(&system, &mut faults);
    outlets(&system, &mut faults);
    assert!(allocations(|| drop(std::hint::black_box(Box::new(1)))) == 1, "the allocator counts");
    assert_eq!(system.shutdown(SOON).expect("everything ends").balance(), 0);
    assert!(faults.is_empty(), "{faults:#?}");
}
