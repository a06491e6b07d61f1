//! What each logic chooses.

use crate::router_value::{functions, who};
use crate::support::{LONG, Stage, act, child, fail, note, noting, wait_until};
use pointsman::SendError;
use pointsman::actor::{Recipient, RecipientLoad};
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, BroadcastIf, ConsistentHashing, HashKey, KeySink, Keyed, Random, RoundRobin, RouteContext,
    Routee, Routees, RouterValue, RoutingLogic, ScatterGatherFirstCompleted, SmallestMailbox, TailChopping,
    TwoChoices,
};
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

fn system() -> System {
    System::builder("logics").seed(7).build().unwrap()
}

fn value<L: RoutingLogic<u64>>(
    system: &SystemRef,
    logic: L,
    routees: &[ActorRef<u64>],
) -> RouterValue<u64, L> {
    RouterValue::new(system, logic).unwrap().with_routees(routees)
}

/// Counts what each of some functions gets.
fn counters(count: usize) -> (Vec<ActorRef<u64>>, Arc<Vec<AtomicUsize>>) {
    let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..count).map(|_| AtomicUsize::new(0)).collect());
    let make = |index: usize| {
        let counts = counts.clone();
        ActorRef::from_fn(move |_| _ = counts[index].fetch_add(1, Ordering::Relaxed))
    };
    ((0..count).map(make).collect(), counts)
}

fn read(counts: &[AtomicUsize]) -> Vec<usize> {
    counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
}

/// How far counts are from equal: about as large as there are of them if each has the same chance.
fn chi_square(counts: &[usize]) -> f64 {
    let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    counts.iter().map(|count| (*count as f64 - mean).powi(2) / mean).sum()
}

/// A routee that says what it is told to say of its load.
struct Says {
    load: Arc<Mutex<RecipientLoad>>,
    got: Arc<AtomicUsize>,
}
impl Recipient<u64> for Says {
    fn deliver(&self, message: u64) -> Result<(), SendError<u64>> {
        if self.is_closed() {
            return Err(SendError::Closed(message));
        }
        self.got.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn is_closed(&self) -> bool {
        *self.load.lock().unwrap() == RecipientLoad::Closed
    }
    fn load(&self) -> RecipientLoad {
        *self.load.lock().unwrap()
    }
}

/// The load that a routee says it has.
type Tells = Arc<Mutex<RecipientLoad>>;

/// Routees that have these loads, and how many messages each got.
fn loaded(loads: &[RecipientLoad]) -> (Vec<ActorRef<u64>>, Vec<Tells>, Vec<Arc<AtomicUsize>>) {
    let loads: Vec<_> = loads.iter().map(|load| Arc::new(Mutex::new(*load))).collect();
    let got: Vec<Arc<AtomicUsize>> = loads.iter().map(|_| Arc::default()).collect();
    let says = loads.iter().zip(&got).map(|(load, got)| Says { load: load.clone(), got: got.clone() });
    (says.map(ActorRef::to_recipient).collect(), loads, got)
}

const fn busy(queued: usize) -> RecipientLoad {
    RecipientLoad::Busy { queued }
}

// ---- round robin

#[test]
fn round_robin_over_several_threads_differs_by_at_most_their_number() {
    const THREADS: usize = 5;
    let system = system();
    for logic in [RoundRobin::new(), RoundRobin::keeping_position()] {
        let (ports, counts) = counters(7);
        let router = value(&system, logic, &ports);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let router = &router;
                // Numbers of messages that end each thread's last round at another place.
                scope.spawn(move || (0..1000 + thread as u64).for_each(|message| router.route(message)));
            }
        });
        let counts = read(&counts);
        let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
        assert!(spread <= THREADS, "{counts:?}");
        assert_eq!(counts.iter().sum::<usize>(), 5 * 1000 + 10);
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_message_without_a_routee_moves_no_cursor() {
    let system = system();
    for logic in [RoundRobin::new(), RoundRobin::exact(), RoundRobin::keeping_position()] {
        let (ports, got) = functions(3);
        let empty = value(&system, logic, &[]);
        (0..2u64).for_each(|message| empty.route(message));
        let router = empty.with_routees(&ports);
        router.route(2u64);
        assert_eq!(who(&got), [1]);
    }
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (6, 0), "{ledger}");
}

#[test]
fn a_kept_position_neither_skips_a_routee_nor_serves_one_twice_when_others_leave() {
    let system = system();
    let (ports, got) = functions(5);
    let logic = RoundRobin::keeping_position();
    let router = system.router("keeping").group(ports.clone()).logic(logic).spawn().unwrap();
    let take = |count: u64| {
        (0..count).for_each(|message| router.tell(message));
        who(&got)
    };
    assert_eq!(take(2), [1, 2]);
    router.remove(&ports[0]).unwrap();
    assert_eq!(take(2), [3, 4], "one before the position has left");
    router.remove(&ports[4]).unwrap();
    assert_eq!(take(2), [2, 3], "the one at the position has left");
    router.add(ports[0].clone()).unwrap();
    assert_eq!(take(3), [4, 1, 2], "one has come");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn exact_round_robin_finds_the_routee_that_lives_although_others_move_the_cursor() {
    let system = system();
    let (mut routees, _, got) =
        loaded(&[RecipientLoad::Idle, RecipientLoad::Closed, RecipientLoad::Closed, RecipientLoad::Closed]);
    routees.rotate_left(1);
    let router = value(&system, RoundRobin::exact(), &routees);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5000u64).for_each(|message| router.route(message)));
        }
    });
    assert_eq!(got[0].load(Ordering::Relaxed), 20_000);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.handled, ledger.dead_lettered, ledger.balance()), (20_000, 0, 0), "{ledger}");
}

// ---- random, two choices

#[test]
fn random_gives_each_routee_the_same_chance() {
    let system = system();
    for count in [2, 10, 100] {
        let (ports, counts) = counters(count);
        let router = value(&system, Random::seeded(11), &ports);
        (0..100_000u64).for_each(|message| router.route(message));
        let (counts, freedom) = (read(&counts), (count - 1) as f64);
        let chi_square = chi_square(&counts);
        // Five standard deviations: with another seed it would fail once in a million times.
        assert!(chi_square < freedom + 5.0 * (2.0 * freedom).sqrt(), "{chi_square} for {count}: {counts:?}");
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn what_is_drawn_follows_from_the_seed_and_differs_between_routers() {
    let draw = |seed: u64| {
        let system = System::builder("logics").seed(seed).build().unwrap();
        let (ports, got) = functions(10);
        let drawn = [(); 2].map(|()| {
            let router = value(&system, Random::new(), &ports);
            (0..50u64).for_each(|message| router.route(message));
            who(&got)
        });
        assert_ne!(drawn[0], drawn[1], "two routers of one system");
        drawn
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

#[test]
fn logics_that_draw_lose_nothing_to_routees_that_have_stopped() {
    let system = system();
    let mut loads = vec![RecipientLoad::Closed; 20];
    loads[13] = busy(5);
    let (routees, _, got) = loaded(&loads);
    let random = value(&system, Random::new(), &routees);
    let two_choices = value(&system, TwoChoices::new(), &routees);
    let smallest = value(&system, SmallestMailbox::new(), &routees);
    for message in 0..200u64 {
        random.route(message);
        two_choices.route(message);
        smallest.route(message);
    }
    assert_eq!(got[13].load(Ordering::Relaxed), 600);
    // Where all have, nobody is chosen.
    let gone = &routees[..13];
    assert!(matches!(random.with_routees(gone).try_route(1u64), Err(SendError::NoRoutee(1))));
    assert!(matches!(two_choices.with_routees(gone).try_route(1u64), Err(SendError::NoRoutee(1))));
    assert!(matches!(smallest.with_routees(gone).try_route(1u64), Err(SendError::NoRoutee(1))));
    let ledger = system.shutdown(LONG).unwrap();
    let books = (ledger.handled, ledger.dead_lettered, ledger.handed_back, ledger.balance());
    assert_eq!(books, (600, 0, 3, 0), "{ledger}");
}

#[test]
fn two_choices_looks_at_two_different_routees() {
    let system = system();
    // Of two, both are looked at each time: the one with less to do gets everything.
    for (more, less) in [
        (busy(1), RecipientLoad::Idle),
        (busy(0), RecipientLoad::Idle),
        (busy(3), busy(2)),
        (RecipientLoad::Suspended, busy(9)),
    ] {
        let (routees, _, got) = loaded(&[more, less]);
        let router = value(&system, TwoChoices::new(), &routees);
        (0..100u64).for_each(|message| router.route(message));
        assert_eq!(got[1].load(Ordering::Relaxed), 100, "{less:?} against {more:?}");
    }
    // Of equals each has the same chance.
    let (ports, counts) = counters(10);
    let router = value(&system, TwoChoices::seeded(3), &ports);
    (0..100_000u64).for_each(|message| router.route(message));
    let counts = read(&counts);
    assert!(chi_square(&counts) < 9.0 + 5.0 * 18f64.sqrt(), "{counts:?}");
    let (ports, got) = functions(1);
    value(&system, TwoChoices::new(), &ports).route(1u64);
    assert_eq!(who(&got), [1]);
    assert!(value(&system, TwoChoices::new(), &[]).try_route(1u64).is_err());
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn two_choices_keeps_queues_even_where_one_draw_does_not() {
    let system = system();
    let most_above_the_mean = |logic: &dyn Fn(&[ActorRef<u64>])| {
        let (routees, loads, got) = loaded(&[busy(0); 100]);
        for _ in 0..10_000 {
            logic(&routees);
            for (load, got) in loads.iter().zip(&got) {
                *load.lock().unwrap() = busy(got.load(Ordering::Relaxed));
            }
        }
        got.iter().map(|got| got.load(Ordering::Relaxed)).max().unwrap() - 100
    };
    let two = RouterValue::new(&system, TwoChoices::seeded(5)).unwrap();
    let one = RouterValue::new(&system, Random::seeded(5)).unwrap();
    let of_two = most_above_the_mean(&|routees| two.with_routees(routees).route(1u64));
    let of_one = most_above_the_mean(&|routees| one.with_routees(routees).route(1u64));
    assert!(of_two <= 4 && of_one >= 15, "{of_two} and {of_one} above 100");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

// ---- smallest mailbox

/// Which of routees with these loads gets each of some messages.
fn smallest(loads: &[RecipientLoad], messages: u64) -> Vec<usize> {
    let system = system();
    let (routees, _, got) = loaded(loads);
    let router = value(&system, SmallestMailbox::new(), &routees);
    (0..messages).for_each(|message| router.route(message));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    got.iter().map(|got| got.load(Ordering::Relaxed)).collect()
}

#[test]
fn the_smallest_mailbox_is_found_in_the_documented_order() {
    use RecipientLoad::{Closed, Idle, Suspended, Unknown};
    assert_eq!(smallest(&[busy(0), busy(3), Idle, Unknown], 8), [0, 0, 8, 0], "idle and empty");
    assert_eq!(smallest(&[busy(1), busy(0), Unknown, Suspended], 8), [0, 8, 0, 0], "empty though busy");
    assert_eq!(smallest(&[busy(7), busy(2), busy(9), Unknown], 8), [0, 8, 0, 0], "the fewest queued");
    assert_eq!(smallest(&[Unknown, busy(1_000_000), Suspended], 8), [0, 8, 0], "who knows a number");
    assert_eq!(smallest(&[Suspended, Unknown, Closed], 8), [0, 8, 0], "unknown before suspended");
    assert_eq!(smallest(&[Closed, Suspended, Suspended], 8), [0, 4, 4], "suspended where all that live are");
}

/// Refuses everything, and says nothing of it before.
struct Gone;

impl Recipient<u64> for Gone {
    fn deliver(&self, message: u64) -> Result<(), SendError<u64>> {
        Err(SendError::Closed(message))
    }
}

#[test]
fn the_smallest_mailbox_is_not_that_of_one_who_has_refused() {
    let system = system();
    let (suspended, _, got) = loaded(&[RecipientLoad::Suspended]);
    let gone = || ActorRef::to_recipient(Gone);
    let routees = [gone(), suspended[0].clone(), gone()];
    let router = value(&system, SmallestMailbox::new(), &routees);
    (0..8u64).for_each(|message| router.route(message));
    assert_eq!(got[0].load(Ordering::Relaxed), 8);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
}

#[test]
fn equal_mailboxes_take_turns() {
    assert_eq!(smallest(&[RecipientLoad::Idle; 4], 40), [10; 4]);
    assert_eq!(smallest(&[busy(2); 5], 40), [8; 5]);
    assert_eq!(smallest(&[RecipientLoad::Unknown; 2], 40), [20; 2]);
    let scattered = [
        RecipientLoad::Idle,
        busy(1),
        busy(1),
        RecipientLoad::Idle,
        RecipientLoad::Closed,
        RecipientLoad::Idle,
        busy(0),
    ];
    assert_eq!(smallest(&scattered, 30), [10, 0, 0, 10, 0, 10, 0], "whoever stands between them");
    let mut loads = vec![busy(4); 1000];
    loads[777] = busy(3);
    let got = smallest(&loads, 5);
    assert_eq!(got.iter().position(|got| *got == 5), Some(777), "at any size");
}

#[test]
fn a_suspended_actor_gets_nothing_while_another_lives() {
    // Four threads, of which one waits in the decider.
    let stage = Stage::threads("logics");
    let (release, held) = channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let boss = stage.role("boss").strategy(move || {
        let held = held.clone();
        Strategy::decide(move |_| {
            let _ = held.lock().unwrap().recv();
            Directive::Resume
        })
    });
    let boss = stage.spawn(&boss);
    let [one, two] = ["one", "two"].map(|name| child(&boss, &stage.role(name)));
    let mut notes: Vec<String> = (0..3).map(|_| stage.note()).collect();
    notes.sort();
    fail(&one);
    wait_until(|| one.load() == RecipientLoad::Suspended);
    let router = RouterValue::new(&stage.system, SmallestMailbox::new()).unwrap().with_routees([&one, &two]);
    for _ in 0..5 {
        router.route(noting("works"));
        stage.expect(&["two works"]);
    }
    // Where it is the only one, its messages wait for the verdict.
    router.remove_routee(&two).route(noting("has waited"));
    wait_until(|| one.queued() == Some(1));
    drop(release);
    stage.expect(&["one has waited"]);
    note(&two, "ends");
    stage.expect(&["two ends"]);
    act(&boss, |_, ctx| {
        ctx.stop();
        Ok(())
    });
    let mut notes: Vec<String> = (0..3).map(|_| stage.note()).collect();
    notes.sort();
    assert_eq!(notes, ["boss Stopped 1", "one Stopped 1", "two Stopped 1"]);
    stage.end(&[]);
}

// ---- consistent hashing

/// Routees that hash rings know by these names.
fn named(ports: &[ActorRef<u64>]) -> Vec<Routee<u64>> {
    let name = |(index, port): (usize, &ActorRef<u64>)| {
        Routee::with_identity(port.clone(), &format!("/user/cache/routee-{index}"))
    };
    ports.iter().enumerate().map(name).collect()
}

/// The owner of each key, by its number from 1.
fn owners(keys: u64, routees: &[Routee<u64>], got: &crate::router_value::Got) -> Vec<usize> {
    let system = system();
    let logic = ConsistentHashing::<u64, ()>::new();
    let router = RouterValue::new(&system, logic).unwrap().with_routees(routees);
    (0..keys).for_each(|key| router.route(key));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    who(got)
}

#[test]
fn the_owners_of_keys_are_the_same_on_every_machine() {
    let (ports, got) = functions(10);
    // As in the ring's own test, whose members are numbered from 0.
    let golden = [8, 8, 8, 3, 2, 6, 6, 9, 8, 8, 7, 2, 5, 9, 1, 5, 1, 1, 8, 10];
    assert_eq!(owners(20, &named(&ports), &got), golden);
    let mut routees = named(&ports);
    routees.reverse();
    assert_eq!(owners(20, &routees, &got), golden, "in whatever order they are listed");
}

#[test]
fn a_pools_keys_have_the_same_owners_on_every_machine() {
    let system = system();
    let (sender, got) = channel();
    let sender = Mutex::new(sender);
    let router = system
        .router("cache")
        .pool(8, move |ctx| Owner(ctx.routee_index(), sender.lock().unwrap().clone()))
        .logic(ConsistentHashing::new())
        .spawn()
        .unwrap();
    let owners = ["apple", "pear", "plum", "fig", "", "ä"].map(|key| {
        router.tell(key.to_owned());
        got.recv_timeout(LONG).unwrap().0
    });
    assert_eq!(owners, [4, 1, 5, 6, 7, 1]);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

struct Owner(usize, std::sync::mpsc::Sender<(usize, String)>);
impl Actor for Owner {
    type Message = String;
    fn receive(&mut self, message: String, _: &mut Context<String>) -> HandlerResult {
        self.1.send((self.0, message))?;
        Ok(())
    }
}

#[test]
fn the_keys_of_an_owner_that_has_stopped_go_to_the_next_and_no_others_move() {
    const KEYS: u64 = 500;
    let (routees, loads, _) = loaded(&[RecipientLoad::Idle; 6]);
    let system = system();
    let who: Arc<Mutex<Vec<usize>>> = Arc::default();
    let listed: Vec<Routee<u64>> = routees
        .iter()
        .enumerate()
        .map(|(index, routee)| {
            let (who, load) = (who.clone(), loads[index].clone());
            let port = ActorRef::to_recipient(Notes { index, who, says: routee.clone(), load });
            Routee::with_identity(port, &format!("shard-{index}"))
        })
        .collect();
    let logic = ConsistentHashing::<u64, ()>::new();
    let router = RouterValue::new(&system, logic).unwrap().with_routees(&listed);
    let owners = |router: &RouterValue<u64, _>| {
        (0..KEYS).for_each(|key| router.route(key));
        std::mem::take(&mut *who.lock().unwrap())
    };
    let before = owners(&router);
    for gone in [2, 5] {
        *loads[gone].lock().unwrap() = RecipientLoad::Closed;
    }
    let after = owners(&router);
    for key in 0..KEYS as usize {
        assert!(![2, 5].contains(&after[key]));
        assert!(before[key] == after[key] || [2, 5].contains(&before[key]), "key {key} moved for no reason");
    }
    // They are where they will be when the routees have left the table.
    assert_eq!(owners(&router.remove_routee(&listed[2]).remove_routee(&listed[5])), after);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
}

/// Notes who got something, unless it has stopped.
struct Notes {
    index: usize,
    who: Arc<Mutex<Vec<usize>>>,
    says: ActorRef<u64>,
    load: Arc<Mutex<RecipientLoad>>,
}
impl Recipient<u64> for Notes {
    fn deliver(&self, message: u64) -> Result<(), SendError<u64>> {
        self.says.try_tell(message)?;
        self.who.lock().unwrap().push(self.index);
        Ok(())
    }
    fn is_closed(&self) -> bool {
        *self.load.lock().unwrap() == RecipientLoad::Closed
    }
}

#[test]
fn a_message_without_a_key_is_a_dead_letter_with_a_warning_now_and_then() {
    crate::logged::listen();
    let system = system();
    let (ports, got) = functions(3);
    struct NoKeyAtAll(Option<u64>);
    let routees = ports.iter().map(|port| port.contramap(|message: NoKeyAtAll| message.0.unwrap_or(99)));
    let logic = ConsistentHashing::by_option(|message: &NoKeyAtAll, key| message.0.map(|it| key.feed(&it)));
    let router = RouterValue::new(&system, logic).unwrap().with_routees(routees);
    router.route(NoKeyAtAll(Some(7)));
    (0..10).for_each(|_| router.route(NoKeyAtAll(None)));
    router.route(NoKeyAtAll(Some(7)));
    assert!(router.try_route(NoKeyAtAll(None)).is_err());
    let got = who(&got);
    assert!(got.len() == 2 && got[0] == got[1]);
    let ledger = system.shutdown(LONG).unwrap();
    let books = (ledger.handled, ledger.dead_lettered, ledger.handed_back, ledger.balance());
    assert_eq!(books, (2, 10, 1, 0), "{ledger}");
    let warnings: Vec<String> = crate::logged::with("NoKeyAtAll has no key");
    assert_eq!(warnings.len(), 4, "for 1, 2, 4 and 8 of them: {warnings:?}");
    assert!(warnings[0].contains("a router value"), "{warnings:?}");
}

#[test]
fn the_warning_of_a_message_without_a_key_names_the_router() {
    crate::logged::listen();
    struct NoKeyInARouter;
    let system = system();
    let logic = ConsistentHashing::by_option(|_: &NoKeyInARouter, _| None);
    let port = ActorRef::from_fn(|_: NoKeyInARouter| {});
    let router = system.router("keyless").group([port]).logic(logic).spawn().unwrap();
    router.tell(NoKeyInARouter);
    let warnings: Vec<String> = crate::logged::with("NoKeyInARouter has no key");
    assert!(warnings.len() == 1 && warnings[0].contains("by router /user/keyless"), "{warnings:?}");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_routee_that_is_listed_twice_counts_once_where_identity_decides() {
    let system = system();
    let (ports, got) = functions(3);
    let named = |index: usize| Routee::with_identity(ports[index].clone(), &format!("n{index}"));
    let owners = |list: &[usize]| {
        let logic = ConsistentHashing::by(|message: &u64, key| key.feed(message)).virtual_nodes(20);
        let router = RouterValue::new(&system, logic).unwrap().with_routees(list.iter().map(|i| named(*i)));
        (0..600u64).for_each(|message| router.route(message));
        who(&got)
    };
    let once = owners(&[0, 1, 2]);
    for twice in [&[0, 1, 0, 2], &[0, 1, 2, 0], &[0, 0, 1, 2]] {
        assert_eq!(owners(twice), once, "{twice:?}");
    }
    // Those that have only the identity in common are two.
    let logic = ConsistentHashing::by(|message: &u64, key| key.feed(message));
    let router = RouterValue::new(&system, logic).unwrap().with_routees(&ports[..2]);
    (0..600u64).for_each(|message| router.route(message));
    let got = who(&got);
    assert!(got.contains(&1) && got.contains(&2));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_message_without_a_key_that_may_go_anywhere_finds_nobody_in_a_router_without_routees() {
    let system = system();
    let (ports, got) = functions(1);
    let logic = ConsistentHashing::by_option(|_: &u64, _| None).random_without_key();
    let full = value(&system, logic, &ports);
    full.route(1u64);
    let empty = full.remove_routee(&ports[0]);
    assert!(matches!(empty.try_route(2u64), Err(SendError::NoRoutee(2))));
    empty.route(3u64);
    assert_eq!(who(&got), [1]);
    let ledger = system.shutdown(LONG).unwrap();
    let books = (ledger.handled, ledger.dead_lettered, ledger.handed_back, ledger.balance());
    assert_eq!(books, (1, 1, 1, 0), "{ledger}");
}

/// A message that says what its key is.
#[derive(Clone)]
struct Order {
    customer: u64,
    number: u64,
}
impl HashKey for Order {
    fn feed(&self, to: &mut KeySink) {
        to.feed(&self.customer);
    }
}

#[test]
fn a_key_comes_from_the_message_its_envelope_or_a_function_and_leads_to_the_same_routee() {
    let system = system();
    let (ports, got) = functions(5);
    let by_key = RouterValue::new(&system, ConsistentHashing::by(|key: &u64, to| to.feed(key))).unwrap();
    let by_key = by_key.with_routees(named(&ports));
    let of_orders = ports.iter().enumerate().map(|(index, port)| {
        let port = port.contramap(|order: Order| order.number);
        Routee::with_identity(port, &format!("/user/cache/routee-{index}"))
    });
    let by_itself = RouterValue::new(&system, ConsistentHashing::new()).unwrap().with_routees(of_orders);
    let stripped = ports.iter().enumerate().map(|(index, port)| {
        let port = port.contramap(Keyed::<u64, u64>::into_message);
        Routee::with_identity(port, &format!("/user/cache/routee-{index}"))
    });
    let by_envelope = RouterValue::new(&system, ConsistentHashing::new()).unwrap().with_routees(stripped);
    for customer in 0..50 {
        by_key.route(customer);
        by_itself.route(Order { customer, number: 1000 });
        by_envelope.route(Keyed { key: customer, message: 2000 });
        let got = std::mem::take(&mut *got.lock().unwrap());
        let owner = got[0].0;
        assert_eq!(got, [(owner, customer), (owner, 1000), (owner, 2000)], "the envelope is stripped off");
    }
    // A broadcast reaches all, whatever the key.
    by_itself.broadcast(Order { customer: 1, number: 3000 });
    assert_eq!(who(&got), [1, 2, 3, 4, 5]);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

// ---- to all, if

#[test]
fn messages_for_all_go_to_all_and_the_others_by_the_logic() {
    let system = system();
    let (ports, got) = functions(3);
    let plan = system.router("some").group(ports.clone()).logic(RoundRobin::exact());
    let router = plan.broadcast_if(|message| *message >= 100).spawn().unwrap();
    [1, 2, 100, 3, 4].into_iter().for_each(|message: u64| router.tell(message));
    assert_eq!(who(&got), [1, 2, 1, 2, 3, 3, 1]);
    // The ring of the logic within is made, and its settings are checked.
    let hashing = || ConsistentHashing::by(|message: &u64, key| key.feed(message));
    let plan = system.router("ring").group(ports.clone()).logic(hashing());
    let ring = plan.broadcast_if(|message| *message >= 100).spawn().unwrap();
    [7, 100, 7].into_iter().for_each(|message: u64| ring.tell(message));
    let got = who(&got);
    assert_eq!((got[0], &got[1..4]), (got[4], &[1, 2, 3][..]));
    let plan = system.router("bad").group(ports).logic(hashing().virtual_nodes(0));
    let refused = plan.broadcast_if(|_| true).spawn().unwrap_err().to_string();
    assert_eq!(refused, "routing logic of /user/bad: virtual_nodes 0: must be at least 1");
    let nobody: Router<u64> = {
        let plan = system.router("nobody").group([]).stay_when_empty();
        plan.broadcast_if(|_: &u64| true).spawn().unwrap()
    };
    assert!(matches!(nobody.try_tell(5u64), Err(SendError::NoRoutee(5))));
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (7 + 5 + 1, 12, 0), "{ledger}");
}

#[test]
fn a_predicate_for_broadcasts_leaves_the_load_to_the_logic_that_it_stands_before() {
    struct Loaded;
    impl RoutingLogic<u64> for Loaded {
        fn select(&self, _: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
            None
        }
        fn load(&self, _: &Routees<u64>) -> RecipientLoad {
            RecipientLoad::Busy { queued: 42 }
        }
    }
    let system = System::builder("loaded").build().unwrap();
    let plan = system.router("all").group([]).stay_when_empty().logic(Loaded);
    let router = plan.broadcast_if(|_: &u64| true).spawn().unwrap();
    assert_eq!(router.load(), RecipientLoad::Busy { queued: 42 });
}

// ---- several in the place of one

#[test]
fn several_routees_in_the_place_of_one_are_as_busy_as_the_busiest_that_lives_and_end_with_the_last() {
    let system = system();
    let (ports, loads, got) = loaded(&[busy(1), busy(9), busy(5)]);
    let both = Routee::several([&ports[0], &ports[1]]);
    let group = || [both.clone(), (&ports[2]).into()];
    let router = RouterValue::new(&system, SmallestMailbox::new()).unwrap().with_routees(group());
    let in_group = system.router("group").group_of(group()).spawn().unwrap();
    let listed = in_group.routees().unwrap();
    let seen = || got.iter().map(|got| got.swap(0, Ordering::Relaxed)).collect::<Vec<_>>();
    router.route(1u64);
    assert_eq!(seen(), [0, 0, 1], "one of the two has much to do");
    *loads[1].lock().unwrap() = busy(2);
    router.route(2u64);
    assert_eq!(seen(), [1, 1, 0]);
    *loads[0].lock().unwrap() = RecipientLoad::Closed;
    assert!(!listed[0].is_closed(), "one lives");
    *loads[1].lock().unwrap() = RecipientLoad::Closed;
    assert!(listed[0].is_closed());
    router.route(3u64);
    assert_eq!(seen(), [0, 0, 1]);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn numbers_of_the_machines_width_have_the_keys_of_their_values() {
    assert_eq!((-3isize).key_hash(), (-3i64).key_hash());
    assert_eq!(3usize.key_hash(), 3u64.key_hash());
    assert_ne!((-3isize).key_hash(), 3i64.key_hash());
    let (mut one, mut other) = (KeySink::default(), KeySink::new());
    assert_eq!(one.finish(), other.finish());
    one.feed(&3usize);
    other.feed("3");
    assert_ne!(one.finish(), other.finish());
}

#[test]
fn a_logic_by_default_is_the_one_that_new_makes() {
    let system = system();
    fn assert_same<L: RoutingLogic<u64> + Debug>(system: &System, of: [L; 2]) {
        let [one, other] = of.map(|logic| {
            let text = format!("{logic:?}");
            let (ports, got) = functions(3);
            let router = value(system, logic, &ports);
            (0..300u64).for_each(|message| router.route(message));
            let mut who = who(&got);
            who.sort_unstable();
            who.dedup();
            (text, who)
        });
        assert_eq!(one, other);
        assert_eq!(one.1, [1, 2, 3]);
    }
    assert_same(&system, [RoundRobin::new(), RoundRobin::default()]);
    assert_same(&system, [Random::new(), Random::default()]);
    assert_same(&system, [TwoChoices::new(), TwoChoices::default()]);
    assert_same(&system, [SmallestMailbox::new(), SmallestMailbox::default()]);
    let texts = [ScatterGatherFirstCompleted::new(), ScatterGatherFirstCompleted::default()];
    let [one, other] = texts.map(|logic| format!("{logic:?}"));
    assert_eq!(one, other);
    let [one, other] = [TailChopping::new(), TailChopping::default()].map(|logic| format!("{logic:?}"));
    assert_eq!(one, other);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_logic_has_the_name_by_which_settings_ask_for_it() {
    #[derive(Clone)]
    struct Get;
    impl Request for Get {
        type Reply = u32;
    }
    struct Nameless;
    impl RoutingLogic<Call<Get>> for Nameless {
        fn select(&self, _: &Call<Get>, _: &Routees<Call<Get>>, _: &RouteContext<'_>) -> Option<usize> {
            None
        }
    }
    type Named = (Option<&'static str>, Box<dyn RoutingLogic<Call<Get>>>);
    let named: [Named; 10] = [
        (Some("broadcast"), Box::new(Broadcast)),
        (Some("round-robin"), Box::new(BroadcastIf::new(|_: &Call<Get>| false, RoundRobin::new()))),
        (Some("consistent-hashing"), Box::new(ConsistentHashing::by(|_: &Call<Get>, _| ()))),
        (Some("random"), Box::new(Random::new())),
        (Some("round-robin"), Box::new(RoundRobin::new())),
        (Some("scatter-gather"), Box::new(ScatterGatherFirstCompleted::new())),
        (Some("smallest-mailbox"), Box::new(SmallestMailbox::new())),
        (Some("tail-chopping"), Box::new(TailChopping::new())),
        (Some("two-choices"), Box::new(TwoChoices::new())),
        (None, Box::new(Nameless)),
    ];
    for (name, logic) in named {
        assert_eq!(logic.name(), name);
    }
}
