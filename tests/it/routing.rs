//! Routers: choosing, membership, loss.

use crate::support::wait_until;
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, ConsistentHashing, ManageError, Random, RouteContext, Routee, Routees, RoutingLogic,
    SmallestMailbox,
};
use pointsman::time::ManualClock;
use pointsman::{DeadLetterReason, SendError};
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

/// Tells a channel which routee got what.
struct Reporter {
    index: usize,
    got: mpsc::Sender<(usize, u64)>,
}

impl Actor for Reporter {
    type Message = u64;
    fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
        let _ = self.got.send((self.index, message));
        Ok(())
    }
}

type Got = mpsc::Receiver<(usize, u64)>;

fn reporters(got: mpsc::Sender<(usize, u64)>) -> impl Fn(&mut Context<u64>) -> Reporter + Send + Sync {
    let got = Mutex::new(got);
    move |ctx| Reporter { index: ctx.routee_index(), got: got.lock().unwrap().clone() }
}

fn pool<L: RoutingLogic<u64>>(system: &SystemRef, size: usize, logic: L) -> (Router<u64>, Got) {
    let (sender, got) = mpsc::channel();
    (system.router("pool").pool(size, reporters(sender)).logic(logic).spawn().unwrap(), got)
}

fn counts(got: &Got, messages: usize) -> HashMap<usize, usize> {
    let mut counts = HashMap::new();
    for _ in 0..messages {
        let (index, _) = got.recv_timeout(LONG).expect("every message is handled");
        *counts.entry(index).or_default() += 1;
    }
    counts
}

fn system() -> System {
    System::builder("routing").seed(7).build().unwrap()
}

#[test]
fn round_robin_goes_exactly_round_for_each_sender() {
    let system = system();
    let (router, got) = pool(&system, 4, pointsman::routing::RoundRobin::new());
    let reference = router.to_ref();
    (0..4u64).for_each(|n| reference.tell(n));
    let mut first: Vec<_> = (0..4).map(|_| got.recv_timeout(LONG).unwrap()).collect();
    first.sort_unstable();
    assert_eq!(first, [(0, 0), (1, 1), (2, 2), (3, 3)], "the first sender starts at routee 0");
    let senders: Vec<_> = (0..3)
        .map(|_| {
            let reference = router.to_ref();
            std::thread::spawn(move || (0..4000u64).for_each(|n| reference.tell(n)))
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let counts = counts(&got, 12_000);
    assert!(counts.values().all(|count| count.abs_diff(3000) <= 3), "{counts:?}");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn exact_round_robin_differs_by_at_most_one_whoever_sends() {
    let system = system();
    let (router, got) = pool(&system, 3, pointsman::routing::RoundRobin::exact());
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let reference = router.to_ref();
            std::thread::spawn(move || (0..1000u64).for_each(|n| reference.tell(n)))
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let counts = counts(&got, 4000);
    assert!(counts.values().all(|count| (1333..=1334).contains(count)), "{counts:?}");
}

#[test]
fn random_reaches_all_and_repeats_with_its_seed() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let system = system();
        let (router, got) = pool(&system, 5, Random::seeded(3));
        let reference = router.to_ref();
        (0..500u64).for_each(|n| reference.tell(n));
        let mut who: Vec<_> = (0..500).map(|_| got.recv_timeout(LONG).unwrap()).collect();
        who.sort_unstable_by_key(|(_, message)| *message);
        runs.push(who);
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    }
    assert_eq!(runs[0], runs[1]);
    let mut seen: Vec<usize> = runs[0].iter().map(|(index, _)| *index).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [0, 1, 2, 3, 4]);
}

/// Waits in its handler until told.
struct Held {
    index: usize,
    hold: Arc<Mutex<()>>,
    got: mpsc::Sender<(usize, u64)>,
}

impl Actor for Held {
    type Message = u64;
    fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
        let _ = self.got.send((self.index, message));
        drop(self.hold.lock());
        Ok(())
    }
}

#[test]
fn smallest_mailbox_prefers_idle_then_empty_then_fewest() {
    let system = System::builder("routing")
        .dispatcher("hold", Dispatcher::blocking().thread_range(1..=8))
        .build()
        .unwrap();
    let hold = Arc::new(Mutex::new(()));
    let guard = hold.lock().unwrap();
    let (sender, got) = mpsc::channel();
    let sender = Mutex::new(sender);
    let held = hold.clone();
    let recipe = move |ctx: &mut Context<u64>| Held {
        index: ctx.routee_index(),
        hold: held.clone(),
        got: sender.lock().unwrap().clone(),
    };
    let router = system
        .router("pool")
        .pool(3, recipe)
        .dispatcher("hold")
        .logic(SmallestMailbox::new())
        .spawn()
        .unwrap();
    let reference = router.to_ref();
    let mut busy = Vec::new();
    for n in 0..3u64 {
        reference.tell(n);
        busy.push(got.recv_timeout(LONG).unwrap().0);
    }
    busy.sort_unstable();
    assert_eq!(busy, [0, 1, 2], "an idle routee wins as long as there is one");
    // All are busy with an empty mailbox: the next three spread again.
    (3..6u64).for_each(|n| reference.tell(n));
    let queued: Vec<_> = router.routees().unwrap().iter().map(|routee| routee.queued()).collect();
    assert_eq!(queued, [Some(1), Some(1), Some(1)]);
    drop(guard);
    assert_eq!(counts(&got, 3).len(), 3);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn broadcast_reaches_all_and_counts_each_copy() {
    let system = system();
    let (router, got) = pool(&system, 4, Broadcast);
    router.to_ref().tell(9u64);
    assert_eq!(counts(&got, 4).len(), 4);
    assert_eq!(router.broadcast(10u64), 4);
    assert_eq!(counts(&got, 4).len(), 4);
    let ledger = system.shutdown(LONG).unwrap();
    // Two messages to four routees.
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (8, 8, 0), "{ledger}");
}

#[test]
fn equal_keys_meet_the_same_routee_and_removal_moves_only_its_keys() {
    let system = system();
    let logic = ConsistentHashing::by(|number: &u64, key| key.feed(number));
    let (router, got) = pool(&system, 5, logic);
    let reference = router.to_ref();
    let owners = |got: &Got| -> HashMap<u64, usize> {
        (0..500u64).for_each(|n| reference.tell(n));
        (0..500).map(|_| got.recv_timeout(LONG).unwrap()).map(|(index, n)| (n, index)).collect()
    };
    let before = owners(&got);
    assert_eq!(before, owners(&got));
    let gone = &router.routees().unwrap()[2];
    assert!(router.remove(gone).unwrap());
    let after = owners(&got);
    for (key, owner) in &before {
        assert!(*owner == 2 || after[key] == *owner, "key {key} moved from {owner} to {}", after[key]);
        assert_ne!(after[key], 2);
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn resizing_under_load_loses_nothing() {
    let system = system();
    let (router, got) = pool(&system, 4, pointsman::routing::RoundRobin::new());
    let drained = std::thread::spawn(move || {
        // A duplicate would show in the books, a lost one here.
        let arrived = (0..90_000).filter(|_| got.recv_timeout(LONG).is_ok()).count();
        (arrived, got)
    });
    let senders: Vec<_> = (0..3)
        .map(|_| {
            let reference = router.to_ref();
            std::thread::spawn(move || (0..30_000u64).for_each(|n| reference.tell(n)))
        })
        .collect();
    for size in [7, 1, 5, 2, 8, 3].into_iter().cycle().take(60) {
        router.resize_to(size).unwrap();
        assert_eq!(router.routees().unwrap().len(), size);
    }
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    router.resize_to(1).unwrap();
    let (arrived, got) = drained.join().unwrap();
    assert_eq!(arrived, 90_000);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
    // Nothing was sent to a stopped router, and what removed routees had left was routed again.
    // (The 61 are what this test asked of the head.)
    assert_eq!((ledger.sent, ledger.dead_lettered), (90_000 + 61, 0), "{ledger}");
    assert_eq!(got.try_iter().count(), 0);
}

#[test]
fn a_group_unlists_foreign_routees_and_never_stops_them() {
    let system = system();
    let (sender, got) = mpsc::channel();
    let make = |index: usize| {
        let got = sender.clone();
        system.spawn(move || Reporter { index, got: got.clone() }).unwrap()
    };
    let (first, second, third) = (make(0), make(1), make(2));
    let router = system.router("group").group([first.clone(), second.clone()]).spawn().unwrap();
    assert_eq!(router.add(third.clone()).unwrap(), 3);
    assert_eq!(router.routees().unwrap(), [first.clone(), second.clone(), third.clone()]);
    assert!(router.remove(&second).unwrap());
    assert!(!router.remove(&second).unwrap());
    let reference = router.to_ref();
    (0..4u64).for_each(|n| reference.tell(n));
    assert_eq!(counts(&got, 4), HashMap::from([(0, 2), (2, 2)]));
    second.tell(99u64);
    assert_eq!(got.recv_timeout(LONG).unwrap(), (1, 99), "an unlisted routee lives on");
    // A routee that ends leaves the table.
    first.stop();
    let mut left = router.routees().unwrap();
    while left.len() > 1 {
        std::thread::yield_now();
        left = router.routees().unwrap();
    }
    assert_eq!(left, [third]);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_routee_listed_twice_is_forgotten_when_it_ends_although_one_entry_has_left() {
    let system = system();
    let (router, _got) = pool(&system, 2, pointsman::routing::RoundRobin::new());
    let routees = router.routees().unwrap();
    assert_eq!(router.add(routees[0].clone()).unwrap(), 3);
    assert_eq!(router.resize_to(2).unwrap(), 2);
    assert_eq!(router.routees().unwrap(), routees);
    routees[0].stop();
    while router.routees().unwrap().len() > 1 {
        std::thread::yield_now();
    }
    assert_eq!(router.routees().unwrap(), routees[1..]);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_router_is_its_reference() {
    let system = system();
    let (router, got) = pool(&system, 1, pointsman::routing::RoundRobin::new());
    fn send(reference: &ActorRef<u64>, message: u64) {
        reference.tell(message);
    }
    router.tell(1u64);
    send(&router, 2);
    assert_eq!((*router == router.to_ref(), router.path().to_string()), (true, "/user/pool".to_owned()));
    assert_eq!([got.recv_timeout(LONG).unwrap(), got.recv_timeout(LONG).unwrap()], [(0, 1), (0, 2)]);
    router.stop();
    while !router.is_closed() {
        std::thread::yield_now();
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Panics while it prepares a table of the forbidden size.
struct PanicsAtSize(Arc<AtomicU64>);
impl RoutingLogic<u64> for PanicsAtSize {
    fn select(&self, message: &u64, routees: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        assert_eq!(
            routees.prepared::<usize>(),
            Some(&routees.len()),
            "list and what was prepared are of one table"
        );
        Some(*message as usize % routees.len())
    }
    fn prepare(&self, routees: &[Routee<u64>]) -> Option<Box<dyn Any + Send + Sync>> {
        assert_ne!(routees.len() as u64, self.0.load(Ordering::Relaxed), "the forbidden size");
        Some(Box::new(routees.len()))
    }
}

/// Says how many messages its state has seen.
struct Sum(u64, std::sync::mpsc::Sender<u64>);
impl Actor for Sum {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        self.0 += 1;
        self.1.send(self.0)?;
        Ok(())
    }
}

#[test]
fn a_panic_while_the_table_is_made_costs_no_routee_its_state() {
    let system = system();
    let (sender, sums) = std::sync::mpsc::channel();
    let made = move |_: &mut Context<u64>| Sum(0, sender.clone());
    let forbidden = Arc::new(AtomicU64::new(2));
    let router = system.router("sums").pool(1, made).logic(PanicsAtSize(forbidden)).spawn().unwrap();
    for sum in 1..=3 {
        router.tell(0u64);
        assert_eq!(sums.recv_timeout(LONG), Ok(sum));
    }
    assert!(matches!(router.resize_to(2), Err(ManageError::HeadFailed { .. })));
    router.tell(0u64);
    assert_eq!(sums.recv_timeout(LONG), Ok(4));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_panic_while_the_table_is_made_changes_nothing() {
    let system = system();
    let forbidden = Arc::new(AtomicU64::new(5));
    let (router, got) = pool(&system, 3, PanicsAtSize(forbidden.clone()));
    let routees = router.routees().unwrap();
    let living = system.living_actors();
    let unchanged = |changed: Result<usize, ManageError>| {
        let error = changed.unwrap_err();
        assert!(matches!(error, ManageError::HeadFailed { .. }), "{error}");
        assert_eq!(router.routees().unwrap(), routees);
        (0..3u64).for_each(|n| router.to_ref().tell(n));
        assert_eq!(counts(&got, 3), HashMap::from([(0, 1), (1, 1), (2, 1)]));
    };
    unchanged(router.resize_to(5));
    forbidden.store(4, Ordering::Relaxed);
    unchanged(router.add(routees[0].clone()));
    forbidden.store(2, Ordering::Relaxed);
    unchanged(router.resize_to(2));
    unchanged(router.remove(&routees[1]).map(usize::from));
    // Routees made for a table that never came have ended.
    while system.living_actors() > living {
        std::thread::yield_now();
    }
    // One ends while its notice panics: it goes with the next that ends. The restarts have lost no watch.
    routees[0].stop();
    while !routees[0].is_closed() {
        std::thread::yield_now();
    }
    routees[1].stop();
    while router.routees().unwrap().len() > 1 {
        std::thread::yield_now();
    }
    assert_eq!(router.routees().unwrap(), routees[2..]);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
}

#[test]
fn a_stopped_routee_costs_no_message_and_an_empty_router_stops() {
    let system = system();
    let (router, got) = pool(&system, 3, pointsman::routing::RoundRobin::new());
    let routees = router.routees().unwrap();
    routees[1].stop();
    let reference = router.to_ref();
    (0..30u64).for_each(|n| reference.tell(n));
    routees.iter().for_each(|routee| routee.poison());
    while !reference.is_closed() {
        std::thread::yield_now();
    }
    let refused = reference.try_tell(77u64).unwrap_err();
    assert!(matches!(refused, SendError::Closed(77)), "{refused:?}");
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
    // What the stopped routee had in its mailbox is all that can be a dead letter.
    assert_eq!(ledger.handled as usize, got.try_iter().count(), "{ledger}");
}

/// As routee 0, fails at message 0 once it is told to; takes all others.
struct FailsWhenTold {
    index: usize,
    go: Arc<Mutex<mpsc::Receiver<()>>>,
    got: mpsc::Sender<(usize, u64)>,
}

impl Actor for FailsWhenTold {
    type Message = u64;
    fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
        let _ = self.got.send((self.index, message));
        if (self.index, message) == (0, 0) {
            self.go.lock().unwrap().recv()?;
            return Err(Failure::msg("as told"));
        }
        Ok(())
    }
}

#[test]
fn a_routee_that_fails_and_is_stopped_on_its_way_out_hands_back_what_it_has() {
    let blocking = Dispatcher::blocking().thread_range(1..=8);
    let system = System::builder("routing").dispatcher("hold", blocking).build().unwrap();
    let (sender, got) = mpsc::channel();
    let sender = Mutex::new(sender);
    let (tell, go) = mpsc::channel::<()>();
    let go = Arc::new(Mutex::new(go));
    let recipe = move |ctx: &mut Context<u64>| FailsWhenTold {
        index: ctx.routee_index(),
        go: go.clone(),
        got: sender.lock().unwrap().clone(),
    };
    let router = system
        .router("pool")
        .pool(2, recipe)
        .dispatcher("hold")
        .on_failure(Strategy::stop())
        .spawn()
        .unwrap();
    let reference = router.to_ref();
    // To routees 0 and 1 in turn.
    (0..8u64).for_each(|n| reference.tell(n));
    assert_eq!(counts(&got, 5), HashMap::from([(0, 1), (1, 4)]));
    let leaving = router.routees().unwrap()[0].clone();
    assert!(router.remove(&leaving).unwrap());
    // The drain waits behind messages 2, 4 and 6; the routee fails before it gets there.
    tell.send(()).unwrap();
    assert_eq!(counts(&got, 3), HashMap::from([(1, 3)]));
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
}

/// Fails at each message.
struct Fails;

impl Actor for Fails {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Err(Failure::msg("as told"))
    }
}

#[test]
fn a_routee_is_restarted_three_times_a_minute_unless_its_pool_says_otherwise() {
    for (limit, restarts) in [(None, [3, 3]), (Some(Strategy::default().max_restarts(1)), [1, 0])] {
        let clock = ManualClock::new();
        let system = System::builder("routing").clock(clock.clone()).build().unwrap();
        let (sender, made) = mpsc::channel();
        let sender = Mutex::new(sender);
        let mut router = system.router("pool").pool(1, move |_| {
            sender.lock().unwrap().send(()).unwrap();
            Fails
        });
        if let Some(limit) = limit {
            router = router.on_failure(limit);
        }
        let router = router.spawn().unwrap();
        made.recv_timeout(LONG).unwrap();
        let fail_and_restart = |times| {
            for _ in 0..times {
                router.tell(1u64);
                made.recv_timeout(LONG).expect("it is made anew");
            }
        };
        fail_and_restart(restarts[0]);
        clock.advance(Duration::from_secs(61));
        fail_and_restart(restarts[1]);
        router.tell(1u64);
        wait_until(|| router.is_closed());
        assert!(made.try_recv().is_err());
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    }
}

/// Finds nobody, and lets somebody come before it says so.
struct ComesLate {
    asked: mpsc::SyncSender<()>,
    come: Mutex<mpsc::Receiver<()>>,
}

impl RoutingLogic<u64> for ComesLate {
    fn select(&self, _: &u64, routees: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        if routees.is_empty() {
            self.asked.send(()).unwrap();
            self.come.lock().unwrap().recv_timeout(LONG).unwrap();
            return None;
        }
        Some(0)
    }
}

#[test]
fn a_message_that_finds_nobody_is_routed_again_if_somebody_has_come_meanwhile() {
    let system = system();
    let ((asked, was_asked), (has_come, come)) = (mpsc::sync_channel(1), mpsc::channel());
    let logic = ComesLate { asked, come: Mutex::new(come) };
    let router = system.router("late").group([]).stay_when_empty().logic(logic).spawn().unwrap();
    let (sender, got) = mpsc::channel();
    let routee = system.spawn(move || Reporter { index: 0, got: sender.clone() }).unwrap();
    std::thread::scope(|scope| {
        let router = &router;
        scope.spawn(move || {
            was_asked.recv_timeout(LONG).unwrap();
            assert_eq!(router.add(&routee).unwrap(), 1);
            has_come.send(()).unwrap();
        });
        router.to_ref().try_tell(5u64).unwrap();
    });
    assert_eq!(got.recv_timeout(LONG).unwrap(), (0, 5));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

struct OutOfRange;
impl RoutingLogic<u64> for OutOfRange {
    fn select(&self, _: &u64, routees: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        Some(routees.len() + 5)
    }
}

struct Panics;
impl RoutingLogic<u64> for Panics {
    fn select(&self, message: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        if *message == 13 { panic!("13") } else { Some(0) }
    }
}

#[test]
fn a_logic_that_picks_nobody_or_panics_loses_nothing() {
    let system = system();
    let reasons: Arc<Mutex<Vec<_>>> = Arc::default();
    let seen = reasons.clone();
    let _subscription =
        system.dead_letters().subscribe(move |letter| seen.lock().unwrap().push(letter.reason));
    let (sender, got) = mpsc::channel();
    let wild = system.router("wild").pool(2, reporters(sender.clone())).logic(OutOfRange).spawn().unwrap();
    wild.to_ref().tell(1u64);
    assert_eq!(*reasons.lock().unwrap(), [DeadLetterReason::BadPick]);
    assert!(matches!(
        wild.to_ref().try_tell(2u64),
        Err(SendError::BadPick { message: 2, index: 7, routees: 2 })
    ));
    let panicky = system.router("panicky").pool(2, reporters(sender)).logic(Panics).spawn().unwrap();
    let reference = panicky.to_ref();
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reference.tell(13u64)));
    assert!(unwound.is_err());
    reference.tell(14u64);
    assert_eq!(got.recv_timeout(LONG).unwrap(), (0, 14));
    // A resize after the panic shows that no section was left open for ever: it publishes, and the pool works.
    panicky.resize_to(3).unwrap();
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.handed_back, ledger.balance()), (2, 1, 0), "{ledger}");
}

#[test]
fn a_logic_that_panics_behind_another_router_is_counted_once() {
    let system = system();
    let (router, _got) = pool(&system, 2, Panics);
    let outer = system.router("outer").group([router.to_ref()]).spawn().unwrap();
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| outer.to_ref().tell(13u64)));
    assert!(unwound.is_err());
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.dead_lettered, ledger.balance()), (1, 1, 0), "{ledger}");
}

/// Takes no message: it panics.
struct Explodes(SystemRef);
impl pointsman::actor::Recipient<u64> for Explodes {
    fn deliver(&self, _: u64) -> Result<(), SendError<u64>> {
        panic!("as told")
    }
    fn system(&self) -> Option<SystemRef> {
        Some(self.0.clone())
    }
}

#[test]
fn a_recipient_that_panics_is_counted_once_wherever_it_stands() {
    let system = system();
    let explodes: ActorRef<u64> = ActorRef::to_recipient(Explodes(system.handle().clone()));
    let router = system.router("outer").group([explodes.clone()]).spawn().unwrap();
    for reference in [explodes.clone(), router.to_ref(), explodes.contramap(|n: u64| n + 1)] {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reference.tell(1u64))).is_err());
    }
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.dead_lettered, ledger.balance()), (3, 3, 0), "{ledger}");
}

/// A message whose clone panics now and then.
struct Fragile(Arc<AtomicU64>);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        if self.0.fetch_add(1, Ordering::Relaxed) == 1 {
            panic!("the second clone");
        }
        Self(self.0.clone())
    }
}

struct Takes(mpsc::Sender<()>);
impl Actor for Takes {
    type Message = Fragile;
    fn receive(&mut self, _: Fragile, _: &mut Context<Fragile>) -> HandlerResult {
        let _ = self.0.send(());
        Ok(())
    }
}

#[test]
fn a_panicking_clone_leaves_every_copy_accounted_for() {
    let system = system();
    let (sender, got) = mpsc::channel();
    let sender = Mutex::new(sender);
    let router = system
        .router("fragile")
        .pool(4, move |_| Takes(sender.lock().unwrap().clone()))
        .logic(Broadcast)
        .spawn()
        .unwrap();
    let reference = router.to_ref();
    let message = Fragile(Arc::default());
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reference.tell(message)));
    assert!(unwound.is_err());
    got.recv_timeout(LONG).unwrap();
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handled, ledger.dead_lettered), (4, 1, 3), "{ledger}");
    assert_eq!(ledger.balance(), 0);
}

#[test]
fn a_router_may_be_a_routee_and_a_circle_is_caught() {
    let system = system();
    let (router, got) = pool(&system, 2, pointsman::routing::RoundRobin::new());
    let outer = system.router("outer").group([router.to_ref()]).spawn().unwrap();
    (0..4u64).for_each(|n| outer.to_ref().tell(n));
    assert_eq!(counts(&got, 4), HashMap::from([(0, 2), (1, 2)]));
    let left: Router<u64> = system.router("left").group([]).stay_when_empty().spawn().unwrap();
    let right = system.router("right").group([left.to_ref()]).spawn().unwrap();
    left.add(right.to_ref()).unwrap();
    assert!(matches!(left.to_ref().try_tell(5u64), Err(SendError::Cycle(5))));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_circle_is_caught_also_where_routers_ask_for_loads_or_send_to_several() {
    let system = system();
    type Add<'a> = &'a dyn Fn(&str, Vec<ActorRef<u64>>) -> Router<u64>;
    let circle = |name: &str, add: Add<'_>, count: usize| {
        let left = add(&format!("{name}-left"), vec![]);
        let right = add(&format!("{name}-right"), vec![left.to_ref(); count]);
        left.add(right.to_ref()).unwrap();
        right.to_ref()
    };
    let by_load = |name: &str, group| {
        let plan = system.router(name).group(group).stay_when_empty();
        plan.logic(SmallestMailbox::new()).spawn().unwrap()
    };
    let by_load = circle("load", &by_load, 1);
    (0..3u64).for_each(|n| assert!(matches!(by_load.try_tell(n), Err(SendError::Cycle(_)))));

    let to_all = |name: &str, group| {
        let plan = system.router(name).group(group).stay_when_empty();
        plan.logic(Broadcast).spawn().unwrap()
    };
    let to_all = circle("all", &to_all, 2);
    for times in 1..=2 {
        to_all.tell(7u64);
        // Every other of sixteen routers doubles it.
        assert_eq!(system.ledger().dead_lettered, times * 256);
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn bad_routers_are_refused_and_leave_nothing_behind() {
    let system = system();
    let (sender, _got) = mpsc::channel();
    let living = system.living_actors();
    let refuse = |result: Result<Router<u64>, pointsman::SpawnError>| result.unwrap_err().to_string();
    let empty = refuse(system.router("bad").pool(0, reporters(sender.clone())).spawn());
    assert_eq!(empty, "pool size 0 for /user/bad: must be at least 1, or call `stay_when_empty`");
    let unknown = refuse(system.router("bad").pool(2, reporters(sender.clone())).dispatcher("none").spawn());
    assert!(unknown.contains("unknown dispatcher \"none\""), "{unknown}");
    let mailbox = Mailbox::bounded(0);
    let zero = refuse(system.router("bad").pool(2, reporters(sender.clone())).mailbox(mailbox).spawn());
    assert_eq!(zero, "mailbox capacity 0 for /user/bad: must be at least 1");
    let ring = ConsistentHashing::by(|number: &u64, key| key.feed(number)).virtual_nodes(0);
    let points = refuse(system.router("bad").pool(2, reporters(sender.clone())).logic(ring).spawn());
    assert_eq!(points, "routing logic of /user/bad: virtual_nodes 0: must be at least 1");
    assert_eq!(system.living_actors(), living);
    let router = system.router("bad").pool(1, reporters(sender)).spawn().unwrap();
    assert!(router.resize_to(0).unwrap_err().to_string().contains("pool size 0"));
}

#[test]
fn a_broadcast_reaches_a_router_among_the_routees_once() {
    let system = system();
    let (inner, got) = pool(&system, 3, pointsman::routing::RoundRobin::new());
    let outer = system.router("outer").group([inner.to_ref()]).spawn().unwrap();
    assert_eq!(outer.broadcast(1u64), 1);
    assert_eq!(counts(&got, 1).len(), 1);
    assert_eq!(inner.broadcast(2u64), 3);
    assert_eq!(counts(&got, 3).len(), 3);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (4, 4, 0), "{ledger}");
}

#[test]
fn messages_of_one_sender_reach_each_routee_in_the_order_sent() {
    const SENDERS: u64 = 3;
    const EACH: u64 = 2000;
    let system = system();
    let (router, got) = pool(&system, 3, Random::new());
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let router = router.to_ref();
            scope.spawn(move || (0..EACH).for_each(|n| router.tell(sender * EACH + n)));
        }
    });
    let mut last = HashMap::new();
    for _ in 0..SENDERS * EACH {
        let (routee, message) = got.recv_timeout(LONG).expect("every message is handled");
        let before = last.insert((routee, message / EACH), message);
        assert!(before.is_none_or(|before| before < message), "{message} after {before:?}");
    }
    assert_eq!(last.len(), 9, "each routee has heard of each sender");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}
