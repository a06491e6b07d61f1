//! Everything at once: actors, keyed groups and routers of routers, in any combination, and the fate of each message.
//!
//! A case is a few places, each an actor, a pool, a group of places before it and so on, and a sequence of commands:
//! messages are told, tried, asked and broadcast, and what their handlers do is written in them; meanwhile places are
//! resized, drained, stopped, given other routees, and time passes. No model says who gets which message. There is an
//! account of each instead, which notes how it ended, by its number: handled, dead, handed back, or dropped unread.
//!
//! - Whatever happens, each message ends exactly once, and each copy of it, and the ledger balances. A message that was
//!   not copied ends where it is told of (handled, dead, handed back), but for those that die while a dead letter is being
//!   told of, which are counted alone. No question stays open. What was stashed comes next and in order where it is
//!   unstashed, and what one sender sends comes in order wherever order is promised, up to the first change of a router.
//!   The system ends.
//! - Where nothing violent happens (no stop, no room that is used up), each message, or a copy of it, is handled to which
//!   nobody had to say no when it was sent, whoever retires, fails, is restarted, removed, resized or drained meanwhile.
//!
//! Planted faults that it was seen to find, within 3 to 150 cases: the last routee of a balancing pool that retires
//! before its queue is empty; what is unstashed, and overtaken by what the routees share; a stash that stays away when
//! its actor restarts; a retired key's next actor that never has its first turn. Faults that need three things at one
//! moment take thousands of cases, and were not all found: `PROPTEST_CASES` gives more.

mod letters;

use self::letters::*;
use crate::support::cases;
use pointsman::group::{RestartPolicy, WhileRestarting};
use pointsman::pattern::Backoff;
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, ConsistentHashing, DefaultResizer, Random, RoundRobin, RouterPlan,
    ScatterGatherFirstCompleted, SmallestMailbox, TailChopping, TwoChoices,
};
use pointsman::testkit::TestSystem;
use pointsman::{DeadLetterReason, Directive, Dispatcher, SystemRef};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy;
use std::future::Future;
use std::pin::Pin;
use std::task::{Poll, Waker};
use std::time::Duration;

const KEYS: usize = 3;

/// More turns than any case takes that ends.
const TURNS_MAX: u64 = 50_000;

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[derive(Debug, Clone, Copy)]
enum Logic {
    RoundRobin,
    Random,
    SmallestMailbox,
    TwoChoices,
    Hashing,
    Broadcast,
    ScatterGather,
    TailChopping,
}

/// What follows a failure; whether once only; and whether for all siblings.
type Verdict = (Directive, bool, bool);

/// A mailbox: how many messages it takes and what it does with more, and whether it sorts.
type Room = (Option<(usize, OverflowPolicy)>, bool);

/// Someone to send to. Those that lead on name places before their own.
#[derive(Debug, Clone)]
enum Place {
    Actor {
        room: Room,
        verdict: Verdict,
        may_wait: bool,
    },
    Backoff {
        on_stop: bool,
        verdict: Verdict,
    },
    Pool {
        size: usize,
        logic: Logic,
        room: Room,
        verdict: Verdict,
        stays: bool,
        leave: Option<u64>,
        resizes: bool,
    },
    Balancing {
        size: usize,
        queue: Option<(usize, OverflowPolicy)>,
        verdict: Verdict,
        stays: bool,
    },
    Group {
        logic: Logic,
        to: Vec<(usize, usize)>,
    },
    ByPath {
        logic: Logic,
        to: Vec<usize>,
    },
    /// With a router over its keys before it, where there is a logic.
    Keyed {
        room: Room,
        restarts: bool,
        meanwhile: WhileRestarting,
        before: Option<Logic>,
    },
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Tell,
    Try,
    Ask(Option<u64>),
    ToAll,
    /// To a routee of the place, or an actor of the group, by its own reference.
    Direct(usize),
}

#[derive(Debug, Clone, Copy)]
enum How {
    Stop,
    Poison,
    Kill,
    Graceful,
    PoisonAll,
    KillAll,
    StopSpawning,
    Terminate,
}

#[derive(Debug, Clone)]
enum Command {
    Send(usize, Way, Act),
    Steps(usize),
    Rest,
    Advance(u64),
    ResizeTo(usize, usize),
    Adjust(usize, isize),
    Add(usize, usize),
    Remove(usize, usize),
    Drain(usize),
    Mount(usize, usize),
    GiveUp,
    /// A place, or one of its routees.
    End(usize, Option<usize>, How),
}

fn index() -> std::ops::Range<usize> {
    0..12
}

fn deadline() -> impl Strategy<Value = Option<u64>> {
    proptest::option::of(1..100_u64)
}

fn logic() -> impl Strategy<Value = Logic> {
    use Logic::*;
    prop::sample::select(vec![
        RoundRobin,
        Random,
        SmallestMailbox,
        TwoChoices,
        Hashing,
        Broadcast,
        ScatterGather,
        TailChopping,
    ])
}

fn verdict() -> impl Strategy<Value = Verdict> {
    use Directive::*;
    (prop::sample::select(vec![Restart, Restart, Resume, Stop, Escalate]), any::<bool>(), any::<bool>())
}

fn bound(others: &[OverflowPolicy]) -> impl Strategy<Value = Option<(usize, OverflowPolicy)>> + use<> {
    let full = [&[OverflowPolicy::Reject, OverflowPolicy::DropNewest], others].concat();
    proptest::option::of((1..4_usize, prop::sample::select(full)))
}

fn room() -> impl Strategy<Value = Room> {
    let wait = OverflowPolicy::Wait(Duration::ZERO);
    let [plain, sorting] = [bound(&[wait, OverflowPolicy::DropOldest]), bound(&[wait])];
    prop_oneof![(plain, Just(false)), (sorting, Just(true))]
}

fn place() -> impl Strategy<Value = Place> {
    let anywhere = || vec((index(), 0..KEYS), 1..4);
    let meanwhile = vec![WhileRestarting::Queue, WhileRestarting::Refuse, WhileRestarting::SpawnAnew];
    let meanwhile = prop::sample::select(meanwhile);
    let leave = (proptest::option::of(0..20_u64), proptest::bool::weighted(0.2));
    let flag = any::<bool>;
    prop_oneof![
        2 => (room(), verdict(), flag())
            .prop_map(|(room, verdict, may_wait)| Place::Actor { room, verdict, may_wait }),
        1 => (flag(), verdict()).prop_map(|(on_stop, verdict)| Place::Backoff { on_stop, verdict }),
        4 => (1..4_usize, logic(), room(), verdict(), flag(), leave).prop_map(
            |(size, logic, room, verdict, stays, (leave, resizes))| {
                Place::Pool { size, logic, room, verdict, stays, leave, resizes }
            }
        ),
        3 => (1..4_usize, bound(&[]), verdict(), flag())
            .prop_map(|(size, queue, verdict, stays)| Place::Balancing { size, queue, verdict, stays }),
        3 => (logic(), anywhere()).prop_map(|(logic, to)| Place::Group { logic, to }),
        1 => (logic(), vec(index(), 1..3)).prop_map(|(logic, to)| Place::ByPath { logic, to }),
        3 => (room(), flag(), meanwhile, proptest::option::of(logic())).prop_map(
            |(room, restarts, meanwhile, before)| Place::Keyed { room, restarts, meanwhile, before }
        ),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    let any = index;
    let way = prop_oneof![
        4 => Just(Way::Tell),
        3 => Just(Way::Try),
        3 => deadline().prop_map(Way::Ask),
        1 => Just(Way::ToAll),
        2 => any().prop_map(Way::Direct),
    ];
    use How::*;
    let how = vec![Stop, Stop, Poison, Poison, Kill, Graceful, PoisonAll, KillAll, StopSpawning, Terminate];
    let how = prop::sample::select(how);
    prop_oneof![
        40 => (any(), way, act()).prop_map(|(place, way, act)| Command::Send(place, way, act)),
        10 => (1..6_usize).prop_map(Command::Steps),
        3 => Just(Command::Rest),
        3 => (0..100_u64).prop_map(Command::Advance),
        3 => (any(), 0..5_usize).prop_map(|(place, size)| Command::ResizeTo(place, size)),
        2 => (any(), -3..4_isize).prop_map(|(place, delta)| Command::Adjust(place, delta)),
        1 => (any(), any()).prop_map(|(place, other)| Command::Add(place, other)),
        3 => (any(), any()).prop_map(|(place, which)| Command::Remove(place, which)),
        1 => any().prop_map(Command::Drain),
        1 => (any(), 0..KEYS).prop_map(|(place, key)| Command::Mount(place, key)),
        1 => Just(Command::GiveUp),
        4 => (any(), proptest::option::of(any()), how)
            .prop_map(|(place, which, how)| Command::End(place, which, how)),
    ]
}

/// A case: the places, and those who have asked.
struct Scene {
    system: TestSystem,
    town: Town,
    /// Nothing violent is to happen.
    is_calm: bool,
    asks: Vec<Question>,
}

struct Question {
    number: usize,
    answer: Pin<Box<Ask<usize>>>,
}

impl Scene {
    fn new(seed: u64, is_calm: bool, places: Vec<Place>) -> Self {
        let system = TestSystem::builder().seed(seed).turn_limit(TURNS_MAX);
        let system = system.configure(|system| system.dispatcher("blocking", Dispatcher::blocking())).build();
        let scene = Self { system, town: Town::default(), is_calm, asks: Vec::new() };
        for (index, place) in places.into_iter().enumerate() {
            let station = scene.make(index, place);
            scene.town.stations.lock().unwrap().push(station);
            scene.town.look_at(index);
        }
        scene
    }

    fn strategy(&self, (directive, once, for_all): Verdict) -> pointsman::Strategy {
        let is_violent = matches!(directive, Directive::Stop | Directive::Escalate);
        let directive = if self.is_calm && is_violent { Directive::Restart } else { directive };
        let strategy = pointsman::Strategy::decide(move |_| directive).quiet();
        let strategy = if once && !self.is_calm { strategy.max_restarts(1) } else { strategy };
        if for_all { strategy.all_for_one() } else { strategy }
    }

    fn mailbox(&self, (bound, sorts): Room) -> Mailbox {
        let mailbox = match sorts {
            true => Mailbox::priority(|mail: &Mail| mail.letter().rank()),
            false => Mailbox::unbounded(),
        };
        match bound {
            Some((capacity, full)) if !self.is_calm => mailbox.capacity(capacity).on_full(full),
            _ => mailbox,
        }
    }

    /// With this logic, if it keeps order.
    fn route(plan: RouterPlan<Mail, RoundRobin>, logic: Logic) -> (Router<Mail>, bool) {
        let within = millis(50);
        let router = match logic {
            Logic::RoundRobin => plan.spawn(),
            Logic::Random => plan.logic(Random::new()).spawn(),
            Logic::SmallestMailbox => plan.logic(SmallestMailbox::new()).spawn(),
            Logic::TwoChoices => plan.logic(TwoChoices::new()).spawn(),
            Logic::Hashing => plan
                .logic(ConsistentHashing::by(|mail: &Mail, key| key.feed(&(mail.letter().number % KEYS))))
                .spawn(),
            Logic::Broadcast => plan.logic(Broadcast).spawn(),
            Logic::ScatterGather => plan.logic(ScatterGatherFirstCompleted::within(within)).spawn(),
            Logic::TailChopping => plan.logic(TailChopping::within(within).interval(millis(10))).spawn(),
        };
        (router.unwrap(), !matches!(logic, Logic::TailChopping))
    }

    fn make(&self, index: usize, place: Place) -> Station {
        let (system, town, is_calm) = (&self.system, self.town.clone(), self.is_calm);
        let name = format!("place-{index}");
        let worker = move || Worker::new(&town);
        let mut may_refuse = false;
        let shares_queue = matches!(place, Place::Balancing { .. });
        // Nobody stands before the first.
        let before = |other: usize| (index > 0).then(|| other % index);
        let (to, made, is_ordered) = match place {
            Place::Actor { room, verdict, may_wait } => {
                let actor =
                    system.actor(&name).mailbox(self.mailbox(room)).on_failure(self.strategy(verdict));
                let actor = if may_wait { actor.dispatcher("blocking") } else { actor };
                (actor.spawn(worker).unwrap(), Made::Actor, true)
            }
            Place::Backoff { on_stop, verdict } => {
                may_refuse = true;
                let (min, max) = (millis(5), millis(40));
                let backoff =
                    if on_stop { Backoff::on_stop(min, max) } else { Backoff::on_failure(min, max) };
                let backoff = backoff.supervision(self.strategy(verdict));
                let backoff =
                    system.actor(&name).spawn_backoff(backoff, move |_: &mut Context<Mail>| worker());
                (backoff.unwrap().to_ref(), Made::Actor, true)
            }
            Place::Pool { size, logic, room, verdict, stays, leave, resizes } => {
                let plan = system.router(&name).pool(size, move |_| worker()).mailbox(self.mailbox(room));
                let plan = plan.on_failure(self.strategy(verdict));
                let plan = if stays { plan.stay_when_empty() } else { plan };
                let plan = match leave {
                    Some(limit) if !is_calm => plan.leave_within(millis(limit)),
                    _ => plan,
                };
                // Nobody knows who is left then.
                may_refuse = resizes;
                let resizer = DefaultResizer::new().lower_bound(1).upper_bound(4).messages_per_resize(2);
                let plan = if resizes { plan.resizer(resizer) } else { plan };
                let (router, is_ordered) = Self::route(plan, logic);
                (router.to_ref(), Made::Router(router), is_ordered && !resizes)
            }
            Place::Balancing { size, queue, verdict, stays } => {
                let plan = system.router(&name).balancing_pool(size, move |_| worker());
                let plan = plan.queue(self.mailbox((queue, false))).on_failure(self.strategy(verdict));
                let router = if stays { plan.stay_when_empty() } else { plan }.spawn().unwrap();
                (router.to_ref(), Made::Router(router), false)
            }
            Place::Group { logic, to } => {
                let to = to.into_iter().filter_map(|(other, key)| Some((before(other)?, key)));
                let stations: Vec<(Station, usize)> =
                    to.map(|(other, key)| (self.town.station(other), key)).collect();
                let in_order = stations.iter().all(|(station, _)| station.is_ordered);
                let routees = stations.into_iter().map(|(station, key)| match station.made {
                    Made::Keyed(group) => group.key(key),
                    _ => station.to,
                });
                let (router, is_ordered) = Self::route(system.router(&name).group(routees), logic);
                (router.to_ref(), Made::Router(router), is_ordered && in_order)
            }
            Place::ByPath { logic, to } => {
                may_refuse = true;
                let paths = to.into_iter().filter_map(before).map(|other| format!("/user/place-{other}"));
                let (router, _) = Self::route(system.router(&name).group_at(paths), logic);
                (router.to_ref(), Made::Router(router), false)
            }
            Place::Keyed { room, restarts, meanwhile, before } => {
                let group = system.group(&name).by_key(
                    |mail: &Mail| mail.letter().number % KEYS,
                    move |_: &mut Context<Mail>, _: &usize| worker(),
                );
                let group = group.mailbox(self.mailbox(room));
                let meanwhile = if is_calm { WhileRestarting::Queue } else { meanwhile };
                let group = group.while_restarting(meanwhile);
                let policy = match restarts || is_calm {
                    true => RestartPolicy::on_failure(millis(5), millis(40)),
                    false => RestartPolicy::never(),
                };
                let group = group.restart(policy).spawn().unwrap();
                match before {
                    Some(logic) => {
                        let keys =
                            system.router(&format!("{name}-keys")).group((0..KEYS).map(|key| group.key(key)));
                        let (router, is_ordered) = Self::route(keys, logic);
                        (router.to_ref(), Made::Router(router), is_ordered)
                    }
                    None => (group.to_ref(), Made::Keyed(group), true),
                }
            }
        };
        Station { to, made, is_ordered, own: Vec::new(), others: Vec::new(), may_refuse, shares_queue }
    }

    fn send(&mut self, place: usize, way: Way, act: Act) {
        let act = if self.is_calm { act.calmed() } else { act };
        let mut station = self.town.station(place);
        if let Way::Direct(which) = way {
            let direct = match &station.made {
                Made::Keyed(group) => Some(group.key(which % KEYS)),
                _ if station.own.is_empty() => None,
                _ => Some(station.own[which % station.own.len()].clone()),
            };
            if let Some(to) = direct {
                station = Station { to, made: Made::Actor, own: Vec::new(), others: Vec::new(), ..station };
            }
        }
        let letter = self.town.letter_to(&station, "the test", act);
        let number = letter.number;
        match (way, &station.made) {
            (Way::Ask(limit), _) => {
                let ask = station.to.ask(letter);
                let ask = match limit {
                    Some(limit) => ask.within(millis(limit)),
                    None => ask,
                };
                self.asks.push(Question { number, answer: Box::pin(ask) });
            }
            (Way::ToAll, Made::Router(router)) => _ = router.broadcast(Mail::Tell(letter)),
            (Way::Try, _) => {
                if let Err(refused) = station.to.try_tell(Mail::Tell(letter)) {
                    refused.into_inner().letter_mut().ends(|account| account.handed_back += 1);
                }
            }
            _ => station.to.tell(Mail::Tell(letter)),
        }
    }

    /// Changes who are the routees of a place.
    fn manage(&mut self, place: usize, change: impl FnOnce(&Router<Mail>)) {
        if let Made::Router(router) = self.town.station(place).made {
            self.town.books().has_changed = true;
            // Nobody knows who is left meanwhile.
            let before = self.set_may_refuse(place, true);
            change(&router);
            self.town.look_at(place);
            self.set_may_refuse(place, before);
        }
    }

    fn set_may_refuse(&self, place: usize, may_refuse: bool) -> bool {
        let index = self.town.index(place);
        std::mem::replace(&mut self.town.stations.lock().unwrap()[index].may_refuse, may_refuse)
    }

    fn end(&mut self, place: usize, which: Option<usize>, how: How) {
        let station = self.town.station(place);
        // An actor handles what it was sent before the pill.
        let is_gentle = matches!((&station.made, how), (Made::Actor, How::Poison | How::Graceful));
        if self.is_calm && !is_gentle {
            return;
        }
        self.set_may_refuse(place, true);
        let routee = which.and_then(|which| station.own.get(which % station.own.len().max(1)));
        let to = routee.unwrap_or(&station.to);
        match (how, &station.made) {
            (How::PoisonAll, Made::Router(router)) => _ = router.poison_routees(),
            (How::KillAll, Made::Router(router)) => _ = router.kill_routees(),
            (How::StopSpawning, Made::Keyed(group)) => group.stop_spawning(),
            (How::Terminate, Made::Keyed(group)) => group.terminate("told"),
            (How::Stop, _) => to.stop(),
            (How::Poison, _) => to.poison(),
            (How::Kill, _) => to.kill(),
            (How::Graceful, _) => drop(to.graceful_stop(millis(20))),
            _ => {}
        }
    }

    fn resize(&mut self, place: usize, resize: impl FnOnce(&Router<Mail>) -> Option<usize>) {
        let town = self.town.clone();
        let station = town.station(place);
        let is_counted = self.is_calm && !station.may_refuse && station.others.is_empty();
        self.manage(place, |router| {
            let retired = town.books().retired;
            let Some(size) = resize(router) else { return };
            let listed = router.routees().map_or(0, |routees| routees.len());
            // A pool whose routees share a queue counts those whose ends it has not heard of, and does not list the last
            // one while that empties the queue and ends.
            let retired = match station.shares_queue {
                true => town.books().retiring,
                false => town.books().retired - retired,
            };
            assert!(!is_counted || listed + retired >= size, "{listed} of {size} routees");
        });
    }

    fn run(&mut self, command: Command) {
        let system = &self.system;
        match command {
            Command::Send(place, way, act) => self.send(place, way, act),
            Command::Steps(count) => (0..count).for_each(|_| _ = system.step()),
            Command::Rest => {
                system.run_until_idle();
                self.town.books().retiring = 0;
                assert_eq!(system.ledger().balance(), 0, "{}", system.ledger());
            }
            Command::Advance(length) => system.advance(millis(length)),
            Command::ResizeTo(place, size) => self.resize(place, |router| router.resize_to(size).ok()),
            Command::Adjust(place, delta) => self.resize(place, |router| router.adjust(delta).ok()),
            Command::Add(place, other) => {
                // Only one that stands before it, so that there is no circle.
                let place = self.town.index(place);
                if place > 0 {
                    let other = self.town.station(other % place).to;
                    self.manage(place, |router| _ = router.add(other));
                }
            }
            Command::Remove(place, which) => self.manage(place, |router| {
                let routees = router.routees().unwrap_or_default();
                if !routees.is_empty() {
                    let _ = router.remove(&routees[which % routees.len()]);
                }
            }),
            Command::Drain(place) => self.manage(place, |router| _ = router.drain()),
            Command::Mount(place, key) => {
                if let Made::Keyed(group) = self.town.station(place).made {
                    let _ = group.mount(key);
                }
            }
            Command::GiveUp => _ = self.asks.pop(),
            Command::End(place, which, how) => self.end(place, which, how),
        }
    }

    /// Everybody gets to handle what waits, and all end.
    fn finish(self) {
        let Self { system, town, is_calm, asks } = self;
        system.advance(Duration::from_secs(1));
        let living: Vec<_> = town.books().actors.values().map(|(actor, _)| actor.clone()).collect();
        for actor in living.iter().filter(|_| is_calm) {
            let letter = town.letter("the end", Act::Unstash, Account::default(), false);
            actor.tell(Mail::Tell(letter));
        }
        system.advance(Duration::from_secs(1));
        system.allow_running();
        let (handle, seed) = (SystemRef::clone(&system), system.seed());
        system.finish();
        town.stations.lock().unwrap().clear();
        drop(living);
        let waiting = &mut std::task::Context::from_waker(Waker::noop());
        let answered = |mut ask: Question| match ask.answer.as_mut().poll(waiting) {
            Poll::Ready(answer) => (ask.number, answer),
            Poll::Pending => panic!("{} waits for ever (seed {seed})", ask.number),
        };
        let answers: Vec<_> = asks.into_iter().map(answered).collect();
        // Only now: a question that waits for room is sent, or given up, when it is polled.
        let ledger = handle.ledger();
        assert_eq!((ledger.asks.pending(), ledger.balance()), (0, 0), "{ledger} {:?}", ledger.asks);
        drop(handle);
        let books = town.books();
        books.check(&ledger, is_calm);
        answers.into_iter().for_each(|(number, answer)| books.check_answer(number, &answer));
    }
}

fn run(seed: u64, is_calm: bool, places: Vec<Place>, commands: Vec<Command>) {
    let mut scene = Scene::new(seed, is_calm, places);
    let note = |mut mail: Mail, letter: pointsman::DeadLetter| {
        let is_dropped = letter.reason == DeadLetterReason::Dropped;
        mail.letter_mut().ends(|account| if is_dropped { account.dropped += 1 } else { account.dead += 1 });
    };
    let _sink = scene.system.dead_letters().take::<Mail>(note).unwrap();
    for command in commands {
        scene.run(command);
    }
    scene.finish();
}

proptest! {
    #![proptest_config(cases("tests/properties/engine.seeds"))]

    #[test]
    fn each_message_ends_once_whatever_happens(
        seed in any::<u64>(),
        places in vec(place(), 1..6),
        commands in vec(command(), 1..40),
    ) {
        run(seed, false, places, commands);
    }

    #[test]
    fn each_message_is_handled_where_nothing_violent_happens(
        seed in any::<u64>(),
        places in vec(place(), 1..6),
        commands in vec(command(), 1..40),
    ) {
        run(seed, true, places, commands);
    }
}

/// The last routee of the pool retires, and empties the queue, between the change of size and the list of routees.
#[test]
fn a_balancing_pool_is_resized_while_its_routees_retire() {
    let restart = (Directive::Restart, false, false);
    let places = vec![
        Place::Balancing { size: 2, queue: None, verdict: restart, stays: false },
        Place::Group { logic: Logic::RoundRobin, to: vec![(0, 0)] },
        Place::Actor { room: (None, false), verdict: restart, may_wait: false },
        Place::ByPath { logic: Logic::RoundRobin, to: vec![0] },
    ];
    let commands = vec![
        Command::Send(0, Way::Tell, Act::Nothing),
        Command::Rest,
        Command::Send(3, Way::Tell, Act::Stop),
        Command::Send(0, Way::Tell, Act::Stop),
        Command::Send(0, Way::Tell, Act::Ask(0, None)),
        Command::Adjust(4, 0),
    ];
    run(1688277166392197454, true, places, commands);
}
