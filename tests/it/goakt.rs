//! Routers in GoAkt's words: each line of its checklist, and each event of its two routers that wait for replies.

use crate::router_support::{END, FAIL, Worker};
use pointsman::ask::AttemptEnd;
use pointsman::prelude::*;
use pointsman::routing::goakt::{AskFailedWith, SpawnRouter};
use pointsman::routing::{Broadcast, DefaultResizer, KeySink, ManageError, Ring, RouterSettings};
use pointsman::settings::Deployment;
use pointsman::testkit::TestSystem;
use pointsman::{DeadLetterReason, SendError, SpawnError, SystemRef};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// A router of workers that report, and what they report.
fn workers(system: &SystemRef, size: usize) -> (SpawnRouter<u64, Broadcast>, Receiver<(usize, u64)>) {
    let (log, got) = channel();
    (system.spawn_router("workers", size, move |number| Worker { number, log: log.clone() }), got)
}

/// Who has got how many so far.
fn shares(system: &TestSystem, got: &Receiver<(usize, u64)>) -> BTreeMap<usize, usize> {
    system.run_until_idle();
    let mut shares = BTreeMap::new();
    got.try_iter().for_each(|(number, _)| *shares.entry(number).or_default() += 1);
    shares
}

/// Who has got what since, in the order of the numbers.
fn since(system: &TestSystem, got: &Receiver<(usize, u64)>) -> Vec<(usize, u64)> {
    system.run_until_idle();
    let mut all: Vec<_> = got.try_iter().collect();
    all.sort_unstable();
    all
}

fn end<M: Send + 'static>(system: TestSystem, router: &Router<M>) {
    router.stop();
    system.finish();
}

/// The message is its key.
fn by_number(number: &u64, key: &mut KeySink) -> Option<()> {
    key.feed(number);
    Some(())
}

// ---- spawning

#[test]
fn a_router_is_spawned_by_name_size_and_factory_and_sends_to_all_by_default() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = workers(&system, 3);
    let router = plan.spawn().unwrap();
    assert_eq!(router.path().to_string(), "/user/workers");
    assert_eq!(router.routee_names().unwrap(), ["r0", "r1", "r2"]);
    let paths: Vec<_> = router.routees().unwrap().iter().map(|it| it.path().to_string()).collect();
    assert_eq!(paths, ["/user/workers/r0", "/user/workers/r1", "/user/workers/r2"]);
    router.tell(7u64);
    assert_eq!(since(&system, &got), [(0, 7), (1, 7), (2, 7)], "numbers are those given to the factory");
    end(system, &router);
}

#[test]
fn the_first_of_goakts_faults_is_told_and_nothing_is_left_behind() {
    let system = TestSystem::with_seed(1);
    let clerks = |size| Desks::plan(&system, size).0;
    let zero = Duration::ZERO;
    let text = |error: SpawnError| error.to_string();

    // One fault.
    let error = clerks(0).spawn().unwrap_err();
    assert!(matches!(error, SpawnError::EmptyPool { .. }));
    assert_eq!(text(error), "pool size 0 for /user/desks: must be at least 1, or call `stay_when_empty`");
    for (within, interval) in [(SECOND, zero), (zero, SECOND), (zero, zero)] {
        let error = clerks(2).tail_chopping(within, interval).spawn().unwrap_err();
        assert!(matches!(error, SpawnError::Logic { .. }), "{error}");
    }
    let error = clerks(2).scatter_gather_first(zero).spawn().unwrap_err();
    assert!(matches!(error, SpawnError::Logic { .. }));
    assert_eq!(text(error), "routing logic of /user/desks: within 0: must be more than zero");
    let error = clerks(2).restart_on_failure().stop_on_failure().spawn().unwrap_err();
    assert_eq!(
        text(error),
        "router /user/desks has both `restart_on_failure` and `stop_on_failure`: give one of them, once"
    );
    // Of three the first two are told.
    let error = clerks(2).stop_on_failure().resume_on_failure().restart_on_failure().spawn().unwrap_err();
    assert!(text(error).contains("both `stop_on_failure` and `resume_on_failure`"));

    // Two: the first in the order is told.
    let error = clerks(0).tail_chopping(zero, zero).spawn().unwrap_err();
    assert!(matches!(error, SpawnError::EmptyPool { .. }));
    let error = clerks(0).scatter_gather_first(zero).spawn().unwrap_err();
    assert!(matches!(error, SpawnError::EmptyPool { .. }));
    let error =
        clerks(2).stop_on_failure().tail_chopping(zero, SECOND).resume_on_failure().spawn().unwrap_err();
    assert_eq!(text(error), "routing logic of /user/desks: within 0: must be more than zero");
    let error = clerks(2)
        .stop_on_failure()
        .resume_on_failure()
        .dispatcher("nowhere")
        .scatter_gather_first(zero)
        .spawn()
        .unwrap_err();
    assert_eq!(text(error), "routing logic of /user/desks: within 0: must be more than zero");

    // A router that stays when it is empty may begin so.
    let empty = clerks(0).stay_when_empty().spawn().unwrap();
    assert_eq!(empty.adjust(1).unwrap(), 1);
    empty.stop();
    system.run_until_idle();

    // The same as for every router.
    let error = clerks(2).dispatcher("nowhere").spawn().unwrap_err();
    assert!(matches!(error, SpawnError::UnknownDispatcher { .. }));

    // The name is free, and was never taken.
    let (plan, _) = Desks::plan(&system, 2);
    let router = plan.spawn().unwrap();
    let error = clerks(2).spawn().unwrap_err();
    assert!(matches!(error, SpawnError::NameTaken { .. }));
    end(system, &router);
}

#[test]
fn a_factory_that_fails_fails_the_spawn_and_ends_the_routees_made_before() {
    let system = TestSystem::with_seed(1);
    let alive = Arc::new(());
    let make = |panics: bool| {
        let alive = alive.clone();
        move |number: usize| match number {
            2 if panics => panic!("planted"),
            2 => Err(Failure::msg("no third one")),
            _ => Ok(Keeper { _alive: alive.clone() }),
        }
    };
    for (panics, fault) in [(false, "no third one"), (true, "planted")] {
        let error = system.spawn_router("keepers", 3, make(panics)).spawn().unwrap_err();
        let SpawnError::Routee { router, number, fault: told } = &error else { panic!("{error}") };
        assert_eq!((router.as_str(), *number), ("/user/keepers", 2));
        assert!(told.contains(fault), "{told}");
        // The name is free although nobody has had a turn.
        let again = system.spawn_router("keepers", 2, make(panics)).spawn().unwrap();
        assert_eq!(system.actor_at("/user/keepers").unwrap(), again.untyped().unwrap());
        again.stop();
        system.run_until_idle();
        assert_eq!(Arc::strong_count(&alive), 1, "whoever was made has ended");
    }
    let router = system.spawn_router("keepers", 2, make(false)).spawn().unwrap();
    // Growing fails in the same way, and changes nothing.
    assert!(matches!(router.adjust(1), Err(ManageError::Spawn(SpawnError::Routee { number: 2, .. }))));
    assert_eq!(router.routee_names().unwrap(), ["r0", "r1"]);
    end(system, &router);
}

struct Keeper {
    _alive: Arc<()>,
}

impl Actor for Keeper {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn the_order_of_options_decides_nothing() {
    let owners = |early: bool| {
        let system = TestSystem::with_seed(1);
        let (plan, got) = workers(&system, 5);
        let plan = if early { plan.restart_on_failure().stay_when_empty() } else { plan };
        let plan = plan.consistent_hash_by(by_number);
        let plan =
            if early { plan.virtual_nodes(40).hasher(mix) } else { plan.hasher(mix).virtual_nodes(40) };
        let plan = if early { plan } else { plan.stay_when_empty().restart_on_failure() };
        let router = plan.spawn().unwrap();
        (0..200).for_each(|number| router.tell(number as u64));
        let owners = since(&system, &got);
        end(system, &router);
        owners
    };
    assert_eq!(owners(true), owners(false));
}

// ---- standard strategies

#[test]
fn round_robin_goes_round_in_the_order_of_creation() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = workers(&system, 3);
    let router = plan.round_robin().spawn().unwrap();
    (0..7).for_each(|number| router.tell(number as u64));
    assert_eq!(since(&system, &got), [(0, 0), (0, 3), (0, 6), (1, 1), (1, 4), (2, 2), (2, 5)]);
    end(system, &router);
}

#[test]
fn random_draws_every_routee_with_equal_chance_and_again() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = workers(&system, 4);
    let router = plan.random().spawn().unwrap();
    (0..4000).for_each(|number| router.tell(number as u64));
    let shares = shares(&system, &got);
    assert!(shares.values().all(|share| (850..1150).contains(share)), "{shares:?}");
    assert_eq!(shares.len(), 4);
    end(system, &router);
}

#[test]
fn fan_out_reaches_every_routee_once_in_the_order_sent_and_tells_how_many_have_taken_it() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = workers(&system, 3);
    let router = plan.fan_out().mailbox(Mailbox::bounded(2).on_full(OverflowPolicy::Reject)).spawn().unwrap();
    router.tell(1u64);
    assert_eq!(router.fan_out(2), 3);
    // Full routees do not keep the others from getting theirs.
    system.run_until_idle();
    let first = &router.routees().unwrap()[1];
    first.tell(3u64);
    first.tell(4u64);
    assert_eq!(router.fan_out(5), 2);
    system.run_until_idle();
    let mut by_routee: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    got.try_iter().for_each(|(number, message)| by_routee.entry(number).or_default().push(message));
    assert_eq!(by_routee.into_values().collect::<Vec<_>>(), [vec![1, 2, 5], vec![1, 2, 3, 4], vec![1, 2, 5]]);
    assert_eq!(system.ledger().dead_lettered, 1, "what one did not take");
    end(system, &router);
}

#[test]
fn a_routee_that_has_ended_is_passed_over_by_every_strategy() {
    type Choose = fn(SpawnRouter<u64, Broadcast>) -> Router<u64>;
    let strategies: [Choose; 3] = [
        |plan| plan.round_robin().spawn().unwrap(),
        |plan| plan.random().spawn().unwrap(),
        |plan| plan.consistent_hash_by(by_number).spawn().unwrap(),
    ];
    for choose in strategies {
        let system = TestSystem::with_seed(1);
        let (plan, got) = workers(&system, 3);
        let router = choose(plan);
        let routees = router.routees().unwrap();
        routees[1].stop();
        // It refuses, and its notice has not reached the head.
        while !routees[1].is_closed() {
            assert!(system.step());
        }
        (0..60).for_each(|number| router.tell(number as u64));
        let shares = shares(&system, &got);
        assert_eq!((shares.get(&1), shares.values().sum::<usize>()), (None, 60));
        assert_eq!(system.ledger().dead_lettered, 0);
        end(system, &router);
    }
}

// ---- consistent hashing

/// Some hash.
fn mix(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[derive(Debug, Clone)]
struct Put(String);

/// Reports the key, with its own number.
struct Shard {
    number: usize,
    log: std::sync::mpsc::Sender<(usize, String)>,
}

impl Actor for Shard {
    type Message = Put;
    fn receive(&mut self, Put(key): Put, _: &mut Context<Put>) -> HandlerResult {
        self.log.send((self.number, key))?;
        Ok(())
    }
}

fn shards(system: &SystemRef, size: usize) -> (SpawnRouter<Put, Broadcast>, Receiver<(usize, String)>) {
    let (log, got) = channel();
    (system.spawn_router("shards", size, move |number| Shard { number, log: log.clone() }), got)
}

fn keys(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|key| format!("key-{key}"))
}

#[test]
fn one_key_always_has_one_routee_of_150_points_unless_told_otherwise() {
    let owners = |nodes: Option<u32>| {
        let system = TestSystem::with_seed(1);
        let (plan, got) = shards(&system, 4);
        let plan = plan.consistent_hash(|put: &Put| put.0.as_str());
        let router = nodes.into_iter().fold(plan, SpawnRouter::virtual_nodes).spawn().unwrap();
        for _ in 0..2 {
            keys(400).for_each(|key| router.tell(Put(key)));
        }
        system.run_until_idle();
        let seen: Vec<(usize, String)> = got.try_iter().collect();
        let owners: BTreeMap<String, usize> =
            seen.iter().map(|(number, key)| (key.clone(), *number)).collect();
        assert_eq!(seen.len(), 800);
        assert!(seen.iter().all(|(number, key)| owners[key] == *number));
        end(system, &router);
        owners
    };
    let default = owners(None);
    assert_eq!(default, owners(Some(150)));
    assert_eq!(default, owners(Some(0)), "as in GoAkt that is no number");
    assert_ne!(default, owners(Some(160)));
}

#[test]
fn too_many_virtual_nodes_are_refused() {
    let system = TestSystem::with_seed(1);
    let (plan, _) = shards(&system, 4);
    let error = plan.consistent_hash(|put: &Put| put.0.as_str()).virtual_nodes(1 << 17).spawn().unwrap_err();
    assert!(matches!(error, SpawnError::Logic { .. }));
    system.finish();
}

#[test]
fn a_hasher_of_ones_own_places_keys_and_routees() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = shards(&system, 3);
    // The encoding of a text is its length and its bytes; that of a point has the point's number behind it, here 0.
    let digit = |byte: u8| u64::from(byte - b'0');
    let router = plan
        .consistent_hash(|put: &Put| put.0.as_str())
        .virtual_nodes(1)
        .hasher(move |bytes| match bytes {
            [.., name, 0, 0, 0, 0] => digit(*name) << 62 | 1,
            [.., last] => digit(*last) << 60,
            [] => 0,
        })
        .spawn()
        .unwrap();
    // r0 stands at 0, r1 at 4 and r2 at 8, of 16; each owns what lies before it.
    for key in ["at-0", "at-1", "at-4", "at-5", "at-8", "at-9"] {
        router.tell(Put(key.to_owned()));
    }
    system.run_until_idle();
    let mut owners: Vec<(String, usize)> = got.try_iter().map(|(number, key)| (key, number)).collect();
    owners.sort_unstable();
    assert_eq!(owners.into_iter().map(|(_, number)| number).collect::<Vec<_>>(), [0, 1, 1, 2, 2, 0]);
    end(system, &router);
}

#[test]
fn a_message_without_a_key_goes_anywhere_or_is_refused_if_wanted() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = shards(&system, 4);
    let router = plan.consistent_hash(|put: &Put| put.0.as_str()).spawn().unwrap();
    (0..2000).for_each(|_| router.tell(Put(String::new())));
    system.run_until_idle();
    let mut shares = [0; 4];
    got.try_iter().for_each(|(number, _)| shares[number] += 1);
    assert!(shares.iter().all(|share| (400..600).contains(share)), "{shares:?}");
    router.stop();
    system.run_until_idle();

    let (plan, got) = workers(&system, 4);
    let router = plan
        .consistent_hash_by(|number: &u64, key| (*number < 10).then(|| key.feed(number)))
        .refuse_without_key()
        .spawn()
        .unwrap();
    assert!(matches!(router.try_tell(10u64), Err(SendError::NoRoutee(10))));
    router.tell(11u64);
    router.tell(9u64);
    assert_eq!(since(&system, &got).len(), 1);
    assert_eq!(system.ledger().dead_lettered, 1);
    assert!(!router.is_closed(), "the pool was not empty");
    end(system, &router);
}

#[test]
fn when_the_owner_has_gone_all_senders_agree_on_the_next_one_on_the_ring() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = shards(&system, 4);
    let router = plan.consistent_hash(|put: &Put| put.0.as_str()).spawn().unwrap();
    let round = || {
        keys(200).for_each(|key| router.tell(Put(key)));
        system.run_until_idle();
        got.try_iter().map(|(number, key)| (key, number)).collect::<BTreeMap<_, _>>()
    };
    let before = round();
    let routees = router.routees().unwrap();
    routees[2].stop();
    while !routees[2].is_closed() {
        assert!(system.step());
    }
    let refused = round();
    let rebuilt = round();
    assert_eq!(refused, rebuilt, "by the old ring and by the new");
    assert!(before.iter().all(|(key, number)| *number == 2 || rebuilt[key] == *number));
    assert!(rebuilt.values().all(|number| *number != 2));
    end(system, &router);
}

/// A ring of pools with 150 points a member.
fn ring(members: usize) -> (Ring, usize) {
    let names: Vec<String> = (0..members).map(|number| format!("/user/shards/r{number}")).collect();
    (Ring::new(names.iter().map(|name| (name.as_str(), 150))).unwrap(), members)
}

fn loads((ring, members): &(Ring, usize), count: usize) -> Vec<usize> {
    let mut loads = vec![0; *members];
    keys(count).for_each(|key| loads[owner(ring, &key)] += 1);
    loads
}

fn owner(ring: &Ring, key: &str) -> usize {
    ring.owner(pointsman::routing::HashKey::key_hash(key)).unwrap()
}

#[test]
fn the_ring_has_the_properties_that_goakts_tests_pin() {
    // 5 members, 10,000 keys: within 35 % of even.
    let five = loads(&ring(5), 10_000);
    assert!(five.iter().all(|load| (1300..=2700).contains(load)), "{five:?}");

    // 3 members, 30,000 keys: coefficient of variation below 0.15.
    let three = loads(&ring(3), 30_000);
    let variance = three.iter().map(|load| (*load as f64 - 10_000.0).powi(2)).sum::<f64>() / 3.0;
    assert!(variance.sqrt() / 10_000.0 < 0.15, "{three:?}");

    // A fourth member moves fewer than half of all keys, and all of them to itself.
    let (small, large) = (ring(3).0, ring(4).0);
    let moved: Vec<usize> = keys(10_000)
        .filter(|key| owner(&small, key) != owner(&large, key))
        .map(|key| owner(&large, &key))
        .collect();
    assert!(moved.len() < 5000 && moved.iter().all(|to| *to == 3), "{}", moved.len());

    // Removing a member moves only its keys.
    assert!(keys(10_000).all(|key| owner(&large, &key) == 3 || owner(&large, &key) == owner(&small, &key)));

    // Of 100 members more than 90 own some of 50,000 keys.
    let owning = loads(&ring(100), 50_000).into_iter().filter(|load| *load > 0).count();
    assert!(owning > 90, "{owning}");

    // A single member owns everything, none nothing.
    assert_eq!(loads(&ring(1), 100), [100]);
    assert_eq!(ring(0).0.owner(7), None);
}

// ---- routers that wait for replies

/// Answered by a number, of which 0 is no success.
#[derive(Debug, Clone, PartialEq)]
struct Get(u32);

impl Request for Get {
    type Reply = u32;
    fn is_success(reply: &u32) -> bool {
        *reply != 0
    }
}

/// Makes a clerk fail.
const BREAK: u32 = 666;

type Kept = Arc<Mutex<VecDeque<Call<Get>>>>;

/// Keeps what it gets for the test to answer.
struct Clerk(Kept);

impl Actor for Clerk {
    type Message = Call<Get>;
    fn receive(&mut self, call: Call<Get>, _: &mut Context<Call<Get>>) -> HandlerResult {
        if call.request.0 == BREAK {
            return Err(Failure::msg("as told"));
        }
        self.0.lock().unwrap().push_back(call);
        Ok(())
    }
}

/// What the clerks of a pool have got.
struct Desks(Arc<Mutex<Vec<Kept>>>);

impl Desks {
    fn plan(system: &SystemRef, size: usize) -> (SpawnRouter<Call<Get>, Broadcast>, Self) {
        let desks: Arc<Mutex<Vec<Kept>>> = Arc::default();
        let given = desks.clone();
        let plan = system.spawn_router("desks", size, move |number| {
            let mut desks = given.lock().unwrap();
            while desks.len() <= number {
                desks.push(Kept::default());
            }
            Clerk(desks[number].clone())
        });
        (plan, Self(desks))
    }

    /// Who has a question that was not answered yet.
    fn asked(&self, system: &TestSystem) -> Vec<usize> {
        system.run_until_idle();
        let desks = self.0.lock().unwrap();
        (0..desks.len()).filter(|desk| !desks[*desk].lock().unwrap().is_empty()).collect()
    }

    /// The oldest question at a desk.
    fn take(&self, desk: usize) -> Call<Get> {
        let kept = self.0.lock().unwrap()[desk].clone();
        let call = kept.lock().unwrap().pop_front();
        call.expect("a question")
    }

    fn clear(&self) {
        let all: Vec<_> = self
            .0
            .lock()
            .unwrap()
            .iter()
            .flat_map(|desk| std::mem::take(&mut *desk.lock().unwrap()))
            .collect();
        drop(all);
    }
}

fn scatter(size: usize) -> (TestSystem, Router<Call<Get>>, Desks) {
    let system = TestSystem::with_seed(7);
    let (plan, desks) = Desks::plan(&system, size);
    let router = plan.scatter_gather_first(SECOND).spawn().unwrap();
    (system, router, desks)
}

/// One more every 300 ms, for a second.
fn chop(size: usize, waits: bool) -> (TestSystem, Router<Call<Get>>, Desks) {
    let system = TestSystem::with_seed(7);
    let (plan, desks) = Desks::plan(&system, size);
    let plan = plan.tail_chopping(SECOND, 300 * MS);
    let router = if waits { plan.wait_for_tick() } else { plan }.spawn().unwrap();
    (system, router, desks)
}

fn end_desks(system: TestSystem, router: &Router<Call<Get>>, desks: &Desks) {
    desks.clear();
    router.stop();
    let ledger = system.finish();
    assert_eq!(ledger.asks.pending(), 0, "{:?}", ledger.asks);
}

const LATE: AskError = AskError::timeout(SECOND);

#[test]
fn scatter_gather_asks_all_at_once_and_the_first_success_closes_it() {
    let (system, router, desks) = scatter(3);
    let ask = router.ask_or_back(Get(1));
    assert_eq!(desks.asked(&system), [0, 1, 2]);
    desks.take(1).answer(|_| 11);
    // Closed: late replies, failures and the deadline change nothing.
    desks.take(0).answer(|_| 10);
    drop(desks.take(2));
    system.advance(2 * SECOND);
    assert_eq!(ask.wait(), Ok(11));
    assert_eq!(system.ledger().asks.late, 1);
    end_desks(system, &router, &desks);
}

#[test]
fn scatter_gather_counts_failures_down_while_others_are_pending() {
    let (system, router, desks) = scatter(3);
    let ask = router.ask_or_back(Get(1));
    system.run_until_idle();
    drop(desks.take(0)); // forgotten
    desks.take(2).answer(|_| 0); // no success
    system.advance(999 * MS);
    desks.take(1).answer(|_| 11);
    assert_eq!(ask.wait(), Ok(11));
    end_desks(system, &router, &desks);
}

#[test]
fn scatter_gather_fails_at_once_when_the_last_pending_attempt_fails() {
    let (system, router, desks) = scatter(3);
    let ask = router.ask_or_back(Get(5));
    system.run_until_idle();
    desks.take(1).answer(|_| 0);
    drop(desks.take(0));
    drop(desks.take(2));
    let before = system.now();
    let failure = ask.wait().unwrap_err();
    assert_eq!(system.now(), before, "not at the deadline");
    assert_eq!(failure.message, Get(5), "the original message");
    let AskError::AllFailed { causes, .. } = failure.error else { panic!("{}", failure.error) };
    let causes: Vec<_> = causes.iter().map(|(routee, end)| (routee.to_string(), end.clone())).collect();
    assert_eq!(
        causes,
        [
            ("/user/desks/r1".to_owned(), AttemptEnd::Unsuccessful),
            ("/user/desks/r0".to_owned(), AttemptEnd::NoReply),
            ("/user/desks/r2".to_owned(), AttemptEnd::NoReply)
        ]
    );
    end_desks(system, &router, &desks);
}

#[test]
fn scatter_gather_fails_at_the_deadline_with_the_original_message() {
    let (system, router, desks) = scatter(2);
    let ask = router.ask_or_back(Get(5));
    system.advance(SECOND);
    let failure = ask.wait().unwrap_err();
    assert_eq!((failure.error, failure.message), (LATE, Get(5)));
    end_desks(system, &router, &desks);
}

#[test]
fn a_routee_that_fails_at_the_question_is_a_failed_attempt_at_once() {
    let (system, router, desks) = scatter(3);
    let failure = router.ask_or_back(Get(BREAK)).wait().unwrap_err();
    assert!(matches!(failure.error, AskError::AllFailed { .. }), "{}", failure.error);
    assert_eq!(failure.message, Get(BREAK));
    assert_eq!(system.now(), Duration::ZERO);
    end_desks(system, &router, &desks);
}

/// Each time that somebody new is asked, and when the outcome is there.
#[test]
fn tail_chopping_asks_one_every_interval_before_the_deadline_and_nobody_twice() {
    let (system, router, desks) = chop(9, false);
    let ask = router.ask_or_back(Get(5));
    let mut asked = Vec::new();
    for _ in 0..4 {
        asked.push(desks.asked(&system).len());
        system.advance(299 * MS);
        assert_eq!(desks.asked(&system).len(), *asked.last().unwrap(), "not before the interval is over");
        system.advance(MS);
    }
    assert_eq!(asked, [1, 2, 3, 4], "at 0, 300, 600 and 900 ms");
    let failure = ask.wait().unwrap_err();
    assert_eq!((failure.error, failure.message), (LATE, Get(5)), "after 1000 ms");
    assert_eq!(desks.asked(&system).len(), 4, "nobody after the deadline");
    end_desks(system, &router, &desks);
}

#[test]
fn tail_chopping_tries_each_once_and_then_waits_for_the_deadline() {
    let (system, router, desks) = chop(2, false);
    let ask = router.ask(Get(5));
    system.advance(999 * MS);
    let counts: Vec<_> = desks.0.lock().unwrap().iter().map(|desk| desk.lock().unwrap().len()).collect();
    assert_eq!(counts, [1, 1]);
    system.advance(MS);
    assert_eq!(ask.wait(), Err(LATE));
    end_desks(system, &router, &desks);
}

#[test]
fn tail_chopping_takes_the_success_of_an_early_slow_attempt_and_asks_nobody_more() {
    let (system, router, desks) = chop(5, false);
    let ask = router.ask(Get(1));
    let first = desks.asked(&system)[0];
    system.advance(600 * MS);
    assert_eq!(desks.asked(&system).len(), 3);
    desks.take(first).answer(|_| 11);
    system.advance(600 * MS);
    assert_eq!(ask.wait(), Ok(11));
    assert_eq!(desks.asked(&system).len(), 2, "those that were asked before");
    end_desks(system, &router, &desks);
}

#[test]
fn tail_chopping_asks_the_next_at_once_after_a_failure_unless_it_is_to_wait_for_the_tick() {
    let (system, router, desks) = chop(3, false);
    let ask = router.ask(Get(1));
    let first = desks.asked(&system)[0];
    drop(desks.take(first));
    let second = desks.asked(&system);
    assert_eq!((second.len(), system.now()), (1, Duration::ZERO));
    desks.take(second[0]).answer(|_| 11);
    assert_eq!(ask.wait(), Ok(11));
    end_desks(system, &router, &desks);

    let (system, router, desks) = chop(3, true);
    let ask = router.ask(Get(1));
    let first = desks.asked(&system)[0];
    drop(desks.take(first));
    system.advance(299 * MS);
    assert_eq!(desks.asked(&system), [0; 0]);
    system.advance(MS);
    let second = desks.asked(&system);
    assert_eq!(second.len(), 1);
    desks.take(second[0]).answer(|_| 11);
    assert_eq!(ask.wait(), Ok(11));
    end_desks(system, &router, &desks);
}

#[test]
fn tail_chopping_fails_at_once_when_all_were_tried_and_none_is_pending() {
    for waits in [false, true] {
        let (system, router, desks) = chop(2, waits);
        let ask = router.ask_or_back(Get(5));
        let first = desks.asked(&system)[0];
        desks.take(first).answer(|_| 0);
        system.advance(300 * MS);
        let second = desks.asked(&system);
        assert_eq!(second, [1 - first]);
        drop(desks.take(second[0]));
        let failure = ask.wait().unwrap_err();
        assert!(matches!(failure.error, AskError::AllFailed { .. }), "{}", failure.error);
        assert_eq!((failure.message, system.now()), (Get(5), 300 * MS));
        end_desks(system, &router, &desks);
    }
}

#[test]
fn an_interval_of_the_whole_time_or_more_is_a_single_attempt() {
    for interval in [SECOND, 2 * SECOND] {
        let system = TestSystem::with_seed(7);
        let (plan, desks) = Desks::plan(&system, 3);
        let router = plan.tail_chopping(SECOND, interval).wait_for_tick().spawn().unwrap();
        let silent = router.ask(Get(1));
        assert_eq!(desks.asked(&system).len(), 1);
        system.advance(SECOND);
        assert_eq!(silent.wait(), Err(LATE));
        assert_eq!(desks.asked(&system).len(), 1, "nobody at the deadline");
        desks.clear();
        // As in GoAkt, also if the attempt has failed early.
        let failed = router.ask(Get(1));
        let first = desks.asked(&system)[0];
        drop(desks.take(first));
        system.advance(SECOND);
        assert_eq!(failed.wait(), Err(LATE));
        assert_eq!(desks.asked(&system).len(), 0);
        end_desks(system, &router, &desks);
    }
}

#[test]
fn tail_chopping_shuffles_anew_for_each_question() {
    let (system, router, desks) = chop(4, false);
    let mut firsts = BTreeSet::new();
    for _ in 0..40 {
        let ask = router.ask(Get(1));
        let first = desks.asked(&system)[0];
        firsts.insert(first);
        desks.take(first).answer(|_| 1);
        assert_eq!(ask.wait(), Ok(1));
    }
    assert_eq!(firsts.len(), 4);
    end_desks(system, &router, &desks);
}

#[test]
fn a_hundred_questions_do_not_delay_each_other_nor_the_management() {
    let (system, router, desks) = scatter(2);
    let asks: Vec<_> = (0..100).map(|number| router.ask_or_back(Get(number))).collect();
    // Nothing queues behind the questions.
    assert_eq!(router.adjust(1).unwrap(), 3);
    assert_eq!(router.routee_names().unwrap().len(), 3);
    system.run_until_idle();
    for number in (0..100).rev() {
        let desk = desks.0.lock().unwrap()[0].clone();
        let call = desk.lock().unwrap().pop_back().unwrap();
        assert_eq!(call.request.0, number);
        call.answer(|Get(number)| number + 1);
    }
    assert_eq!(system.now(), Duration::ZERO);
    for (number, ask) in asks.into_iter().enumerate() {
        assert_eq!(ask.wait(), Ok(number as u32 + 1));
    }
    end_desks(system, &router, &desks);
}

/// Asks by a router, and reports each outcome, which is a message like others.
struct Client {
    router: ActorRef<Call<Get>>,
    log: std::sync::mpsc::Sender<Result<u32, AskFailedWith<Get>>>,
}

enum ClientMsg {
    Ask(u32),
    Outcome(Result<u32, AskFailedWith<Get>>),
}

impl Actor for Client {
    type Message = ClientMsg;
    fn receive(&mut self, message: ClientMsg, ctx: &mut Context<ClientMsg>) -> HandlerResult {
        match message {
            ClientMsg::Ask(number) => ctx.ask_or_back(&self.router, Get(number), ClientMsg::Outcome),
            ClientMsg::Outcome(outcome) => self.log.send(outcome)?,
        }
        Ok(())
    }
}

#[test]
fn an_actor_gets_exactly_one_outcome_of_each_question_as_a_message() {
    let (system, router, desks) = scatter(2);
    let (log, outcomes) = channel();
    let reference = router.to_ref();
    let client = system.spawn(move || Client { router: reference.clone(), log: log.clone() }).unwrap();

    client.tell(ClientMsg::Ask(1));
    assert_eq!(desks.asked(&system), [0, 1]);
    (0..2).for_each(|desk| desks.take(desk).answer(|_| 10 + desk as u32));
    client.tell(ClientMsg::Ask(2));
    system.advance(SECOND);
    desks.clear();
    client.tell(ClientMsg::Ask(BREAK));
    system.run_until_idle();
    // The two of the pool have failed at that, and were stopped: nobody is left.
    client.tell(ClientMsg::Ask(3));
    system.advance(2 * SECOND);

    let outcomes: Vec<_> = outcomes.try_iter().collect();
    let errors: Vec<_> = outcomes.iter().filter_map(|it| it.as_ref().err()).collect();
    assert_eq!((outcomes.len(), &outcomes[0]), (4, &Ok(10)));
    assert_eq!((&errors[0].error, &errors[0].message), (&LATE, &Get(2)));
    assert!(matches!(errors[1].error, AskError::AllFailed { .. }));
    assert_eq!(errors[1].message, Get(BREAK));
    assert_eq!((&errors[2].error, &errors[2].message), (&AskError::no_routees(), &Get(3)));
    client.stop();
    end_desks(system, &router, &desks);
}

#[test]
fn the_request_comes_back_to_a_future_too() {
    let (system, router, desks) = scatter(1);
    let mut ask = std::pin::pin!(router.ask_or_back(Get(5)).within(10 * SECOND));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(ask.as_mut().poll(&mut cx).is_pending());
    system.advance(SECOND);
    let std::task::Poll::Ready(Err(failure)) = ask.as_mut().poll(&mut cx) else { panic!("it is over") };
    assert_eq!((&failure.error, &failure.message), (&LATE, &Get(5)));
    assert!(
        failure.to_string().contains("Get was not answered: no reply from /user/desks within 1s"),
        "{failure}"
    );
    assert!(std::error::Error::source(&failure).is_some());
    end_desks(system, &router, &desks);
}

#[test]
fn the_reply_goes_to_the_asker_by_every_strategy() {
    let system = TestSystem::with_seed(1);
    let (plan, desks) = Desks::plan(&system, 2);
    let router = plan.round_robin().spawn().unwrap();
    let ask = router.ask(Get(1));
    let asked = desks.asked(&system);
    assert_eq!(asked.len(), 1);
    desks.take(asked[0]).answer(|_| 7);
    assert_eq!(ask.wait(), Ok(7));
    end_desks(system, &router, &desks);
}

// ---- management

#[test]
fn the_size_is_changed_by_a_number_and_never_below_zero() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = workers(&system, 1);
    let router = plan.spawn().unwrap();
    let sizes: Vec<usize> =
        [3, -2, 0, -3, -1, isize::MIN].iter().map(|delta| router.adjust(*delta).unwrap()).collect();
    assert_eq!(sizes, [4, 2, 2, 0, 0, 0]);
    assert_eq!(router.routee_names().unwrap(), [""; 0]);
    assert!(!router.is_closed(), "and it lives");
    // Twice is twice.
    assert_eq!((router.adjust(2).unwrap(), router.adjust(2).unwrap()), (2, 4));
    router.tell(1u64);
    assert_eq!(since(&system, &got).len(), 4);
    end(system, &router);
}

#[test]
fn numbers_and_names_are_never_used_again() {
    let system = TestSystem::with_seed(1);
    let (plan, _) = workers(&system, 3);
    let router = plan.spawn().unwrap();
    assert_eq!(router.adjust(-2).unwrap(), 1);
    assert_eq!(router.adjust(2).unwrap(), 3);
    assert_eq!(router.routee_names().unwrap(), ["r0", "r3", "r4"]);
    let resolved: Vec<_> =
        router.routee_names().unwrap().iter().map(|name| router.routee_named(name).unwrap()).collect();
    assert_eq!(resolved, router.routees().unwrap().into_iter().map(Some).collect::<Vec<_>>());
    assert_eq!(router.routee_named("r1").unwrap(), None, "it has gone");
    let first = router.routees().unwrap()[0].clone();
    router.remove(&first).unwrap();
    assert_eq!(router.adjust(1).unwrap(), 3);
    assert_eq!(router.routee_names().unwrap(), ["r3", "r4", "r5"]);
    end(system, &router);
}

#[test]
fn routees_that_are_taken_away_handle_what_they_have() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = workers(&system, 4);
    let router = plan.round_robin().spawn().unwrap();
    (0..40).for_each(|number| router.tell(number as u64));
    assert_eq!(router.adjust(-4).unwrap(), 0);
    assert_eq!(since(&system, &got).len(), 40);
    assert_eq!(system.ledger().dead_lettered, 0);
    end(system, &router);
}

// ---- failing routees

/// Counts how often it was made, and what it has handled since.
struct Fragile {
    number: usize,
    handled: u64,
    log: std::sync::mpsc::Sender<(usize, u64)>,
}

impl Actor for Fragile {
    type Message = u64;
    fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
        match message {
            FAIL => panic!("as told"),
            _ => {
                self.handled += 1;
                self.log.send((self.number, self.handled))?;
                Ok(())
            }
        }
    }
}

struct Fragiles {
    system: TestSystem,
    made: Arc<AtomicUsize>,
    got: Receiver<(usize, u64)>,
}

impl Fragiles {
    fn new(size: usize) -> (Self, SpawnRouter<u64, Broadcast>) {
        let system = TestSystem::with_seed(1);
        let (log, got) = channel();
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let plan = system.spawn_router("fragile", size, move |number| {
            count.fetch_add(1, SeqCst);
            Fragile { number, handled: 0, log: log.clone() }
        });
        (Self { system, made, got }, plan)
    }
}

#[test]
fn a_failing_routee_is_stopped_and_removed_by_default_with_its_queue_as_dead_letters() {
    for told in [false, true] {
        let (scene, plan) = Fragiles::new(3);
        let plan = if told { plan.stop_on_failure() } else { plan };
        let router = plan.round_robin().spawn().unwrap();
        let routees = router.routees().unwrap();
        [1, FAIL, 2, 3].into_iter().for_each(|message: u64| routees[1].tell(message));
        scene.system.run_until_idle();
        assert_eq!(router.routee_names().unwrap(), ["r0", "r2"], "never replaced");
        assert_eq!(since(&scene.system, &scene.got), [(1, 1)]);
        assert_eq!(scene.system.ledger().dead_lettered, 2);
        (0..4).for_each(|number| router.tell(number as u64));
        assert_eq!(shares(&scene.system, &scene.got), BTreeMap::from([(0, 2), (2, 2)]));
        assert_eq!(scene.made.load(SeqCst), 3);
        end(scene.system, &router);
    }
}

#[test]
fn a_restarted_routee_keeps_name_place_and_queue_and_loses_its_state() {
    let (scene, plan) = Fragiles::new(2);
    let router = plan.restart_on_failure().spawn().unwrap();
    let before = router.routees().unwrap();
    [1, 2, FAIL, 3].into_iter().for_each(|message: u64| before[0].tell(message));
    assert_eq!(since(&scene.system, &scene.got), [(0, 1), (0, 1), (0, 2)], "a fresh instance");
    assert_eq!(router.routees().unwrap(), before);
    assert_eq!(router.routee_names().unwrap(), ["r0", "r1"]);
    assert_eq!(scene.made.load(SeqCst), 3);
    assert_eq!(scene.system.ledger().dead_lettered, 0, "the failing message counts as handled");
    end(scene.system, &router);
}

#[test]
fn a_routee_is_restarted_up_to_the_limit_within_the_window_and_then_stopped() {
    let (scene, plan) = Fragiles::new(2);
    let router = plan.restart_on_failure().spawn().unwrap();
    let first = router.routees().unwrap()[0].clone();
    let fail = |times: usize| {
        (0..times).for_each(|_| first.tell(FAIL));
        scene.system.run_until_idle();
    };
    fail(3);
    assert_eq!(router.routee_names().unwrap(), ["r0", "r1"]);
    scene.system.advance(SECOND + MS);
    fail(3);
    assert_eq!(router.routee_names().unwrap(), ["r0", "r1"], "another window");
    fail(1);
    assert_eq!(router.routee_names().unwrap(), ["r1"]);
    end(scene.system, &router);

    let (scene, plan) = Fragiles::new(1);
    let router = plan.restart_on_failure_up_to(1, 10 * SECOND).spawn().unwrap();
    router.tell(FAIL);
    scene.system.advance(9 * SECOND);
    assert_eq!(router.routee_names().unwrap(), ["r0"]);
    router.tell(FAIL);
    scene.system.run_until_idle();
    assert_eq!(router.routee_names().unwrap(), [""; 0]);
    end(scene.system, &router);
}

#[test]
fn a_resumed_routee_keeps_its_state_and_goes_on() {
    let (scene, plan) = Fragiles::new(1);
    let router = plan.resume_on_failure().spawn().unwrap();
    [1, 2, FAIL, 3].into_iter().for_each(|message: u64| router.tell(message));
    assert_eq!(since(&scene.system, &scene.got), [(0, 1), (0, 2), (0, 3)]);
    assert_eq!((router.routee_names().unwrap().len(), scene.made.load(SeqCst)), (1, 1));
    end(scene.system, &router);
}

#[test]
fn what_is_routed_to_a_suspended_routee_waits_and_changes_no_membership() {
    for resumes in [false, true] {
        let (scene, plan) = Fragiles::new(2);
        let plan = if resumes { plan.resume_on_failure() } else { plan.restart_on_failure() };
        let router = plan.round_robin().spawn().unwrap();
        let routees = router.routees().unwrap();
        routees[0].tell(FAIL);
        // It has failed, and nobody has judged it yet.
        while routees[0].load() != pointsman::actor::RecipientLoad::Suspended {
            assert!(scene.system.step());
        }
        (0..6).for_each(|number| router.tell(number as u64));
        assert_eq!(shares(&scene.system, &scene.got), BTreeMap::from([(0, 3), (1, 3)]));
        assert_eq!(router.routees().unwrap(), routees);
        end(scene.system, &router);
    }
}

#[test]
fn the_router_itself_goes_on_whatever_hits_its_head() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = workers(&system, 2);
    let router = plan
        .consistent_hash_by(|number: &u64, key| {
            assert_ne!(*number, 13, "planted");
            by_number(number, key)
        })
        .spawn()
        .unwrap();
    let routees = router.routees().unwrap();
    router.head().kill();
    system.run_until_idle();
    assert_eq!(router.routees().unwrap(), routees);
    // A message that the extractor panics at is its sender's matter.
    let panicked = crate::support::panic_of(|| router.tell(13u64));
    assert!(panicked.contains("planted"));
    router.tell(14u64);
    assert_eq!(since(&system, &got).len(), 1);
    assert_eq!(system.ledger().dead_lettered, 1);
    end(system, &router);
}

// ---- the empty router

/// What becomes of dead letters: why, and whose they were.
fn dead_letters(system: &TestSystem) -> Arc<Mutex<Vec<(DeadLetterReason, String)>>> {
    let seen: Arc<Mutex<Vec<(DeadLetterReason, String)>>> = Arc::default();
    let log = seen.clone();
    let subscription = system.dead_letters().subscribe(move |letter| {
        log.lock().unwrap().push((letter.reason, letter.recipient.to_string()));
    });
    std::mem::forget(subscription);
    seen
}

type Choose = fn(SpawnRouter<Call<Get>, Broadcast>) -> Router<Call<Get>>;

/// Routers by every strategy.
fn strategies() -> [Choose; 6] {
    [
        |plan| plan.spawn().unwrap(),
        |plan| plan.round_robin().spawn().unwrap(),
        |plan| plan.random().spawn().unwrap(),
        |plan| {
            plan.consistent_hash_by(|call: &Call<Get>, key| by_number(&call.request.0.into(), key))
                .spawn()
                .unwrap()
        },
        |plan| plan.scatter_gather_first(SECOND).spawn().unwrap(),
        |plan| plan.tail_chopping(SECOND, MS).spawn().unwrap(),
    ]
}

#[test]
fn the_message_that_finds_the_router_empty_is_a_dead_letter_and_ends_it_by_every_strategy() {
    for choose in strategies() {
        let system = TestSystem::with_seed(1);
        let letters = dead_letters(&system);
        let router = choose(Desks::plan(&system, 2).0);
        assert_eq!(router.adjust(-2).unwrap(), 0);
        system.advance(10 * SECOND);
        assert!(!router.is_closed(), "not when the last routee goes");

        let asked = router.ask(Get(1));
        assert_eq!(*letters.lock().unwrap(), [(DeadLetterReason::NoRoutee, "/user/desks".to_owned())]);
        system.run_until_idle();
        assert_eq!(asked.wait(), Err(AskError::no_routees()), "at once");
        assert!(router.is_closed());
        let refused = router.try_tell(Call::new(Get(2), closed_port(&system)));
        assert!(matches!(refused, Err(SendError::Closed(_))));
        // Its name is free.
        let again = choose(Desks::plan(&system, 1).0);
        end(system, &again);
    }
}

/// The router's head has yet to hear that its last routee has ended.
#[test]
fn a_message_that_finds_only_routees_that_have_ended_ends_the_router_by_every_strategy() {
    for choose in strategies() {
        let system = TestSystem::with_seed(1);
        let router = choose(Desks::plan(&system, 1).0);
        let routee = router.routees().unwrap().remove(0);
        routee.stop();
        while !routee.is_closed() {
            assert!(system.step());
        }
        let asked = router.ask(Get(1));
        assert_eq!(system.ledger().dead_lettered, 1);
        system.run_until_idle();
        assert!(router.is_closed());
        assert!(asked.wait().is_err());
        system.finish();
    }
}

/// Some port.
fn closed_port(system: &TestSystem) -> ReplyTo<u32> {
    let (sender, receiver) = channel();
    let taker: ActorRef<ReplyTo<u32>> = ActorRef::from_fn(move |port| sender.send(port).unwrap());
    drop(taker.ask_with(|port: ReplyTo<u32>| port));
    system.run_until_idle();
    receiver.recv().unwrap()
}

#[test]
fn a_resize_before_the_next_message_revives_the_router() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = workers(&system, 2);
    let router = plan.spawn().unwrap();
    // Both end by themselves, or by a failure.
    router.tell(FAIL);
    system.run_until_idle();
    assert_eq!(router.routee_names().unwrap(), [""; 0]);
    assert_eq!(router.adjust(1).unwrap(), 1);
    got.try_iter().for_each(drop);
    router.tell(1u64);
    assert_eq!(since(&system, &got), [(2, 1)]);

    // A resize that the head gets before the word of the message that found nobody: the pool lives.
    router.tell(END);
    system.run_until_idle();
    assert_eq!(router.routee_names().unwrap(), [""; 0]);
    let grown = router.head().ask(pointsman::routing::AdjustPoolSize::By(1));
    router.tell(2u64);
    system.run_until_idle();
    assert_eq!(grown.wait().unwrap().unwrap(), 1);
    assert!(!router.is_closed());
    router.tell(3u64);
    assert_eq!(since(&system, &got).last(), Some(&(3, 3)));
    assert_eq!(system.ledger().dead_lettered, 1, "the one that found nobody");

    // And the next message that does ends it.
    router.tell(END);
    system.run_until_idle();
    router.tell(4u64);
    system.run_until_idle();
    assert!(router.is_closed());
    system.finish();
}

#[test]
fn a_message_to_all_that_finds_nobody_ends_the_router_too() {
    let system = TestSystem::with_seed(1);
    let (plan, _) = workers(&system, 1);
    let router = plan.spawn().unwrap();
    router.adjust(-1).unwrap();
    assert_eq!(router.fan_out(7), 0);
    system.run_until_idle();
    assert!(router.is_closed());
    assert_eq!((router.fan_out(8), system.ledger().dead_lettered), (0, 2));
    system.finish();

    // By the router that it is in our words, too.
    let system = TestSystem::with_seed(1);
    let (plan, _) = workers(&system, 1);
    let router = plan.spawn().unwrap();
    router.adjust(-1).unwrap();
    assert_eq!(router.broadcast(7u64), 0);
    system.run_until_idle();
    assert!(router.is_closed());
    system.finish();
}

#[test]
fn an_empty_router_stays_if_wanted() {
    let system = TestSystem::with_seed(1);
    let (plan, got) = workers(&system, 1);
    let router = plan.stay_when_empty().spawn().unwrap();
    router.adjust(-1).unwrap();
    router.tell(7u64);
    system.advance(SECOND);
    assert!(!router.is_closed());
    assert_eq!(system.ledger().dead_lettered, 1);
    router.adjust(1).unwrap();
    router.tell(8u64);
    assert_eq!(since(&system, &got), [(1, 8)]);
    end(system, &router);
}

/// A system that gives a resizer to the router, which looks at each message.
fn resized(resizer: DefaultResizer) -> TestSystem {
    let resizer = resizer.messages_per_resize(1).pressure_threshold(1000).without_ticks(true);
    let says = Deployment::new().router(RouterSettings::new().resizer(resizer));
    TestSystem::builder().seed(1).configure(|builder| builder.deploy("/workers", says)).build()
}

#[test]
fn a_message_to_all_counts_for_the_resizer_that_the_system_says() {
    let system = resized(DefaultResizer::new().lower_bound(1).upper_bound(9));
    let (plan, _got) = workers(&system, 6);
    let router = plan.spawn().unwrap();
    let size = || {
        system.run_until_idle();
        router.routee_names().unwrap().len()
    };
    assert_eq!(size(), 5);
    assert_eq!(router.fan_out(7), 5);
    assert_eq!(size(), 4, "nobody is busy");
    assert_eq!(router.broadcast(8u64), 4);
    assert_eq!(size(), 3);
    end(system, &router);
}

#[test]
fn a_resizer_that_the_system_says_lets_an_empty_router_grow_instead_of_ending() {
    let system = resized(DefaultResizer::new().lower_bound(0).upper_bound(9));
    let (plan, got) = workers(&system, 1);
    let router = plan.spawn().unwrap();
    assert_eq!(router.routee_names().unwrap().len(), 0);
    router.tell(7u64);
    system.run_until_idle();
    assert_eq!((router.is_closed(), system.ledger().dead_lettered), (false, 1));
    assert_eq!(router.routee_names().unwrap().len(), 1);
    router.tell(8u64);
    assert_eq!(since(&system, &got), [(0, 8)]);
    end(system, &router);
}
