//! Routing without a head: the router value, and routees that are several, none, or functions.

use crate::support::{LONG, panic_of, wait_until};
use pointsman::actor::Recipient;
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, ConsistentHashing, RoundRobin, RouteContext, Routee, Routees, RouterValue, RoutingLogic,
};
use pointsman::{DeadLetterReason, SendError};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

/// Which function got which message, in order.
pub type Got = Arc<Mutex<Vec<(usize, u64)>>>;

/// Functions numbered from 1 that note what they get.
pub fn functions(count: usize) -> (Vec<ActorRef<u64>>, Got) {
    let got = Got::default();
    let make = |number| {
        let got = got.clone();
        ActorRef::from_fn(move |message| got.lock().unwrap().push((number, message)))
    };
    ((1..=count).map(make).collect(), got)
}

/// Who got something since the last look, in order.
pub fn who(got: &Got) -> Vec<usize> {
    got.lock().unwrap().drain(..).map(|(number, _)| number).collect()
}

fn value(system: &SystemRef) -> RouterValue<u64, RoundRobin> {
    RouterValue::new(system, RoundRobin::new()).unwrap()
}

fn send(router: &RouterValue<u64, impl RoutingLogic<u64>>, count: u64) {
    (0..count).for_each(|message| router.route(message));
}

#[test]
fn values_made_from_one_share_its_logic_and_leave_it_as_it_was() {
    let system = System::builder("value").build().unwrap();
    let (ports, got) = functions(4);
    let two = value(&system).with_routees(&ports[..2]);
    send(&two, 1);
    let three = two.add_routee(&ports[2]);
    send(&three, 2);
    assert_eq!(who(&got), [1, 2, 3], "the position goes on");
    send(&two, 2);
    assert_eq!((who(&got), two.routees().len()), (vec![2, 1], 2), "the first value is what it was");
    let one = three.remove_routee(&ports[0]).remove_routee(&ports[2]).remove_routee(&ports[3]);
    assert_eq!(one.routees().iter().collect::<Vec<_>>(), [&Routee::from(&ports[1])]);
    let other = one.clone().with_routees(&ports[3..]);
    send(&other, 2);
    assert_eq!(who(&got), [4, 4]);
    assert!(std::ptr::eq(other.logic(), two.logic()));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_routee_added_twice_has_twice_the_share_and_leaves_at_once() {
    let system = System::builder("value").build().unwrap();
    let (ports, got) = functions(2);
    let router = value(&system).add_routee(&ports[0]).add_routee(&ports[1]).add_routee(&ports[0]);
    send(&router, 6);
    assert_eq!(who(&got), [1, 2, 1, 1, 2, 1]);
    let left = router.remove_routee(&ports[0]);
    send(&left, 2);
    assert_eq!((who(&got), left.routees().len()), (vec![2, 2], 1));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_value_is_changed_by_the_words_of_a_router() {
    let system = System::builder("value").build().unwrap();
    let (ports, _got) = functions(2);
    let named = Routee::with_identity(ports[0].clone(), "first");
    let router = value(&system).add(named.clone()).add(&ports[1]).add(&ports[0]);
    let identities: Vec<&str> = router.routees().iter().map(Routee::identity).collect();
    assert_eq!(identities, ["first", "/deadLetters", "/deadLetters"]);
    assert_eq!((router.size(), router.routees().len()), (3, 3));
    assert_eq!(router.remove(&named).size(), 2, "that with the identity");
    assert_eq!(router.remove(&ports[0]).routees().len(), 1, "every entry of the reference");
    assert_eq!(router.remove(Routee::none()).routees().len(), 3);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_broadcast_reaches_all_in_order_and_is_a_dead_letter_where_there_is_none() {
    let system = System::builder("value").build().unwrap();
    let (ports, got) = functions(3);
    let empty = value(&system);
    assert_eq!((empty.broadcast(1u64), system.ledger().sent, system.ledger().dead_lettered), (0, 1, 1));
    let pool: Router<u64> = system.router("empty").group([]).stay_when_empty().spawn().unwrap();
    assert_eq!((pool.broadcast(1u64), system.ledger().sent, system.ledger().dead_lettered), (0, 2, 2));
    let router = empty.with_routees(ports.iter().rev());
    assert_eq!((router.broadcast(2u64), who(&got)), (3, vec![3, 2, 1]));
    send(&router, 1);
    assert_eq!(who(&got), [3], "the logic was not asked before");
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (6, 4, 0), "{ledger}");
}

#[test]
fn what_nobody_takes_is_a_dead_letter_or_comes_back() {
    let system = System::builder("value").build().unwrap();
    let (sender, reasons) = channel();
    let _subscription = system.dead_letters().subscribe(move |letter| sender.send(letter.reason).unwrap());
    let empty = value(&system);
    empty.route(1u64);
    assert!(matches!(empty.try_route(2u64), Err(SendError::NoRoutee(2))));
    let none = empty.with_routees([Routee::none(), Routee::none()]);
    none.route(3u64);
    assert!(matches!(none.try_route(4u64), Err(SendError::NoRoutee(4))));
    let gone = system.empty_ref(&"/user/gone".parse().unwrap());
    empty.add_routee(&gone).route(5u64);
    assert_eq!(reasons.try_iter().collect::<Vec<_>>(), [DeadLetterReason::NoRoutee; 3]);
    // One that lives gets what the one that has ended refuses.
    let (ports, got) = functions(1);
    send(&empty.with_routees([&gone, &ports[0]]), 4);
    assert_eq!(who(&got), [1; 4]);
    assert_eq!(empty.with_routees([&gone, &ports[0]]).broadcast(9u64), 2);
    assert_eq!((who(&got), reasons.recv()), (vec![1], Ok(DeadLetterReason::NoActor)));
    let ledger = system.shutdown(LONG).unwrap();
    let ends = (ledger.dead_lettered, ledger.handed_back, ledger.handled, ledger.balance());
    assert_eq!(ends, (4, 2, 5, 0), "{ledger}");
}

#[test]
fn several_routees_in_the_place_of_one_get_a_copy_each_in_order() {
    let system = System::builder("value").build().unwrap();
    let (ports, got) = functions(4);
    let inner = Routee::several([&ports[2], &ports[1]]);
    let nested = Routee::several([inner.clone(), Routee::from(&ports[0]), inner.clone()]);
    assert_eq!(
        nested.identity(),
        "((/deadLetters, /deadLetters), /deadLetters, (/deadLetters, /deadLetters))"
    );
    let router = value(&system).with_routees([nested, Routee::from(&ports[3])]);
    send(&router, 3);
    assert_eq!(who(&got), [3, 2, 1, 3, 2, 4, 3, 2, 1, 3, 2]);
    // No ledger counts what functions get, so each message is one delivery.
    assert_eq!((system.ledger().sent, system.ledger().handled), (3, 3));
    let nobody: Routee<u64> = Routee::several([] as [Routee<u64>; 0]);
    assert!(matches!(nobody.actor().try_tell(7u64), Err(SendError::NoRoutee(7))));
    assert!(matches!(value(&system).add_routee(nobody).try_route(8u64), Err(SendError::NoRoutee(8))));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Sends on what it gets.
struct Reports(usize, std::sync::mpsc::Sender<(usize, u64)>);
impl Actor for Reports {
    type Message = u64;
    fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
        self.1.send((self.0, message))?;
        Ok(())
    }
}

fn reporters(system: &SystemRef, count: usize) -> (Vec<ActorRef<u64>>, Receiver<(usize, u64)>) {
    let (sender, got) = channel();
    let make = |number| {
        let sender = sender.clone();
        system.spawn(move || Reports(number, sender.clone())).unwrap()
    };
    ((1..=count).map(make).collect(), got)
}

#[test]
fn each_copy_for_several_actors_is_in_the_books() {
    let system = System::builder("value").build().unwrap();
    let (actors, got) = reporters(&system, 3);
    let (ports, noted) = functions(1);
    let gone = system.empty_ref(&"/user/gone".parse().unwrap());
    let both = Routee::several([&actors[0], &actors[1], &gone, &ports[0]]);
    // Directly, by a value, in a group, and to all of a group.
    both.actor().tell(1u64);
    value(&system).add_routee(&both).route(2u64);
    let group = system.router("group").group([both.actor().clone(), actors[2].clone()]).spawn().unwrap();
    group.tell(3u64);
    group.broadcast(4u64);
    let mut all: Vec<_> = (0..9).map(|_| got.recv_timeout(LONG).unwrap()).collect();
    all.sort_unstable();
    assert_eq!(all, [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (2, 3), (2, 4), (3, 4)]);
    assert_eq!(who(&noted), [1; 4]);
    let ledger = system.shutdown(LONG).unwrap();
    let books = (ledger.sent, ledger.handled, ledger.dead_lettered, ledger.balance());
    assert_eq!(books, (17, 13, 4, 0), "{ledger}");
}

#[test]
fn routees_are_equal_by_what_they_are() {
    let system = System::builder("value").build().unwrap();
    let (actors, _got) = reporters(&system, 2);
    let [one, two] = [0, 1].map(|index| Routee::from(&actors[index]));
    assert_eq!(one, Routee::from(actors[0].clone()));
    assert_ne!(one, two);
    assert_eq!(Routee::several([&one, &two]), Routee::several([&one, &two]));
    assert_ne!(Routee::several([&one, &two]), Routee::several([&two, &one]), "the order counts");
    assert_ne!(Routee::several([&one]), one);
    assert_eq!(Routee::<u64>::none(), Routee::none());
    let (ports, _) = functions(2);
    assert_ne!(Routee::from(&ports[0]), Routee::from(&ports[1]), "nobody says that they are the same");
    let named = |port: usize, name| Routee::with_identity(ports[port].clone(), name);
    assert_eq!(named(0, "a"), named(1, "a"), "whoever made them says so");
    assert_ne!(named(0, "a"), named(0, "b"));
    // A new incarnation at the same path is another routee.
    let old: ActorRef<u64> = {
        let (sender, _) = channel();
        system.actor("again").spawn(move || Reports(0, sender.clone())).unwrap()
    };
    old.graceful_stop(LONG).wait().unwrap();
    let mut new = None;
    wait_until(|| {
        let (sender, _) = channel();
        new = system.actor("again").spawn(move || Reports(0, sender.clone())).ok();
        new.is_some()
    });
    let (old, new) = (Routee::from(old), Routee::from(new.unwrap()));
    assert_eq!(old.identity(), new.identity());
    assert_ne!(old, new);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Keeps two workers, and routes what it gets to them in turn.
struct Master {
    workers: RouterValue<u64, RoundRobin>,
    hired: usize,
    got: std::sync::mpsc::Sender<(usize, u64)>,
}

impl Master {
    fn hire(&mut self, ctx: &mut Context<u64>) -> HandlerResult {
        self.hired += 1;
        let (number, got) = (self.hired, self.got.clone());
        let worker = ctx.spawn(move || Reports(number, got.clone()))?;
        ctx.watch(&worker)?;
        self.workers = self.workers.add_routee(&worker);
        Ok(())
    }
}

impl Actor for Master {
    type Message = u64;
    fn started(&mut self, ctx: &mut Context<u64>) -> HandlerResult {
        self.hire(ctx)?;
        self.hire(ctx)
    }
    fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
        match message {
            0 => self.workers.routees().get(0).unwrap().actor().poison(),
            job => self.workers.route(job),
        }
        Ok(())
    }
    fn terminated(&mut self, ended: Terminated, ctx: &mut Context<u64>) -> HandlerResult {
        self.workers = self.workers.remove_routee(ended.actor.typed::<u64>()?);
        self.hire(ctx)?;
        self.got.send((0, 0))?;
        Ok(())
    }
}

#[test]
fn an_actor_routes_among_workers_that_it_replaces() {
    let system = System::builder("value").build().unwrap();
    let (sender, got) = channel();
    let handle = system.handle().clone();
    let made = move || Master { workers: value(&handle), hired: 0, got: sender.clone() };
    let master = system.spawn(made).unwrap();
    let next = |count: usize| {
        let mut next: Vec<_> = (0..count).map(|_| got.recv_timeout(LONG).unwrap()).collect();
        next.sort_unstable();
        next
    };
    (1..=4u64).for_each(|job| master.tell(job));
    let numbers: Vec<_> = next(4).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [1, 1, 2, 2]);
    master.tell(0u64);
    assert_eq!(next(1), [(0, 0)]);
    (5..=8u64).for_each(|job| master.tell(job));
    let numbers: Vec<_> = next(4).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [2, 2, 3, 3]);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
}

/// Sends each message to as many routees as `copies` says, each in turn: seven routees and three copies make
/// (1, 2, 3), (4, 5, 6), (7, 1, 2).
struct Redundancy {
    each: RoundRobin,
    copies: usize,
}

impl<M: Clone + Send + 'static> RoutingLogic<M> for Redundancy {
    fn select(&self, message: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
        self.each.select(message, routees, cx)
    }

    fn route(&self, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        let picks = (0..self.copies).filter_map(|_| routees.picked(self.select(&message, routees, cx)));
        cx.deliver_to_each(message.clone(), picks.collect::<Vec<_>>())
    }
}

#[test]
fn redundancy_goes_round_three_at_a_time() {
    let system = System::builder("value").build().unwrap();
    let (ports, got) = functions(7);
    let redundancy = || Redundancy { each: RoundRobin::exact(), copies: 3 };
    let expected = [[1, 2, 3], [4, 5, 6], [7, 1, 2]].concat();
    let router = RouterValue::new(&system, redundancy()).unwrap().with_routees(&ports);
    send(&router, 3);
    assert_eq!(who(&got), expected);
    let actor = system.router("redundant").group(ports.clone()).logic(redundancy()).spawn().unwrap();
    (0..3u64).for_each(|message| actor.tell(message));
    assert_eq!(who(&got), expected);
    // More copies than routees: some get more than one.
    send(&router.with_routees(&ports[..2]), 1);
    assert_eq!(who(&got).len(), 3);
    let empty = router.with_routees([] as [Routee<u64>; 0]);
    assert!(matches!(empty.try_route(1u64), Err(SendError::NoRoutee(1))));
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.handled, ledger.handed_back, ledger.balance()), (9 + 9 + 3, 1, 0), "{ledger}");
}

/// Makes the routee of each message for it.
struct Fresh(Got);
impl RoutingLogic<u64> for Fresh {
    fn select(&self, _: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        None
    }
    fn route(&self, message: u64, _: &Routees<u64>, cx: &RouteContext<'_>) -> Result<(), SendError<u64>> {
        let (number, got) = (message as usize, self.0.clone());
        let fresh = ActorRef::from_fn(move |message| got.lock().unwrap().push((number, message)));
        cx.deliver(&fresh, message)
    }
}

#[test]
fn a_logic_may_make_the_routee_itself() {
    let system = System::builder("value").build().unwrap();
    let got = Got::default();
    let router = RouterValue::new(&system, Fresh(got.clone())).unwrap();
    send(&router, 3);
    assert_eq!(who(&got), [0, 1, 2]);
    let group = system.router("fresh").group([]).logic(Fresh(got.clone())).stay_when_empty().spawn().unwrap();
    group.tell(5u64);
    assert_eq!(who(&got), [5]);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.handled, ledger.balance()), (4, 0), "{ledger}");
}

/// Refuses everything, and is in no ledger.
struct Refuses;
impl Recipient<u64> for Refuses {
    fn deliver(&self, message: u64) -> Result<(), SendError<u64>> {
        Err(SendError::Full(message))
    }
}

#[test]
fn a_copy_that_an_uncounted_routee_refuses_is_a_dead_letter_of_the_router() {
    let system = System::builder("value").build().unwrap();
    let (sender, reasons) = channel();
    let _subscription = system.dead_letters().subscribe(move |letter| sender.send(letter.reason).unwrap());
    let (ports, got) = functions(1);
    let refuses = ActorRef::to_recipient(Refuses);
    let router =
        system.router("all").group([refuses.clone(), ports[0].clone()]).logic(Broadcast).spawn().unwrap();
    router.tell(1u64);
    assert_eq!((who(&got), reasons.try_recv()), (vec![1], Ok(DeadLetterReason::Full)));
    value(&system).add_routee(&refuses).broadcast(2u64);
    assert_eq!(reasons.try_recv(), Ok(DeadLetterReason::Full));
    let ledger = system.shutdown(LONG).unwrap();
    let books = (ledger.sent, ledger.handled, ledger.dead_lettered, ledger.balance());
    assert_eq!(books, (3, 1, 2, 0), "{ledger}");
}

#[test]
fn a_function_that_panics_unwinds_to_the_sender_and_the_books_balance() {
    let system = System::builder("value").build().unwrap();
    let (ports, got) = functions(2);
    let explodes: ActorRef<u64> = ActorRef::from_fn(|_| panic!("as told"));
    let router = value(&system).with_routees([&explodes]);
    assert_eq!(panic_of(|| router.route(1u64)), "as told");
    let several = Routee::several([&ports[0], &explodes, &ports[1]]);
    assert_eq!(panic_of(|| value(&system).add_routee(&several).route(2u64)), "as told");
    let all = value(&system).with_routees([&ports[0], &explodes, &ports[1]]);
    assert_eq!(panic_of(|| _ = all.broadcast(3u64)), "as told");
    assert_eq!(who(&got), [1, 1]);
    let ledger = system.shutdown(LONG).unwrap();
    let books = (ledger.sent, ledger.handled, ledger.dead_lettered, ledger.balance());
    // The broadcast is three deliveries: one handled, and two that the panic took down.
    assert_eq!(books, (5, 1, 4, 0), "{ledger}");
}

#[test]
fn any_number_of_threads_route_through_one_value() {
    let system = System::builder("value").build().unwrap();
    let (ports, got) = functions(5);
    let router = RouterValue::new(&system, RoundRobin::exact()).unwrap().with_routees(&ports);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| send(&router, 500));
        }
    });
    let mut counts = HashMap::new();
    who(&got).into_iter().for_each(|number| *counts.entry(number).or_insert(0) += 1);
    assert_eq!(counts, (1..=5).map(|number| (number, 400)).collect());
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.handled, ledger.balance()), (2000, 0), "{ledger}");
}

#[test]
fn a_value_refuses_a_logic_that_makes_no_sense() {
    let system = System::builder("value").build().unwrap();
    let logic = ConsistentHashing::<u64, ()>::new().virtual_nodes(0);
    let refused = RouterValue::new(&system, logic).unwrap_err();
    assert_eq!(refused.to_string(), "virtual_nodes 0: must be at least 1");
    let logic = ConsistentHashing::<u64, ()>::new().virtual_nodes(u32::MAX);
    let refused = RouterValue::new(&system, logic).unwrap_err();
    assert!(refused.to_string().ends_with("must be at most 65536"), "{refused}");
}

/// Takes nothing, and nobody counts what it gets.
struct Refusing;

impl Recipient<u64> for Refusing {
    fn deliver(&self, message: u64) -> Result<(), SendError<u64>> {
        Err(SendError::Closed(message))
    }
}

#[test]
fn what_one_of_several_that_nobody_counts_has_taken_goes_nowhere_else() {
    let system = System::builder("value").build().unwrap();
    let (ports, got) = functions(2);
    let refusing = || ActorRef::to_recipient(Refusing);
    for parts in [[ports[0].clone(), refusing()], [refusing(), ports[0].clone()]] {
        let router = value(&system).with_routees([Routee::several(parts), Routee::from(&ports[1])]);
        router.try_route(1u64).unwrap();
        assert_eq!(who(&got), [1]);
        router.route(2u64);
        assert_eq!(who(&got), [2]);
    }
    // Where nobody has, somebody else may.
    let none = Routee::several([refusing(), refusing()]);
    let router = value(&system).with_routees([none, Routee::from(&ports[1])]);
    router.try_route(3u64).unwrap();
    assert_eq!(who(&got), [2]);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (5, 5, 0), "{ledger}");
}
