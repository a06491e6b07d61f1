//! Groups of actors told apart by a key. The table is modelled alone; the rest in whole actors: whoever wakes an actor
//! runs it.
//!
//! Faults seen to be caught: an array that is published before the entries are in it (`keyed_growth_races_look_up`);
//! an entry that is freed when it is removed (`keyed_removal_races_look_up`); an insertion that does not compare the
//! shard's version (`keyed_two_inserts_of_one_key`, `keyed_two_senders_one_key`); a creation that does not look under
//! the lock whether the group still creates (`keyed_stop_spawning_races_spawn`, `keyed_terminate_races_spawn`); a
//! termination that does not wait for whoever is creating (`keyed_terminate_races_spawn`,
//! `keyed_terminate_races_restart`); a timer that does not look whether a message was faster
//! (`keyed_spawn_anew_races_timer`); a state that is swapped without a comparison (`keyed_state_swap_races_route`); a
//! retirement that closes the mailbox without a comparison, and an heir that begins before the former actor has ended,
//! and an end that frees the key whoever has it (`keyed_retirement_races_message`); a refusal that is not in the
//! books, or is twice (`keyed_end_races_message`); a first message that is offered once the actor can be found
//! (`keyed_first_message`); terminations of which both think that they are the first (`keyed_two_terminations`); an
//! end that is noted behind the shard's lock, and two who deliver reports at once (`keyed_end_races_next_life`); a
//! change after which the subscriber counts as not told, and an introduction that does not look whether it was
//! (`keyed_subscription_races_life`); a subscription that looks at the table alone (`keyed_heir_races_subscription`); an
//! end that is noted of a seat which somebody else has taken meanwhile (`keyed_spawn_anew_races_timer`), also by a
//! wait that is listed for an actor which a message has created before (`keyed_spawn_anew_races_failure`); a capacity
//! that is applied behind the lock under which it is stored (`keyed_two_capacities`).
//! Also Relaxed in `Table::version` (`one_of_two_who_look_before_they_insert_inserts`).

use crate::support::model;
use loom::sync::atomic::AtomicUsize as AtomicBetween;
use loom::thread;
use pointsman::Ledger;
use pointsman::group::{
    ActorStatus, Group, GroupPlan, KeyRoute, RestartPolicy, RouterState, StatusReport, WhileRestarting,
};
use pointsman::loom_hooks::{KeyTable, calling_dispatcher, section};
use pointsman::prelude::*;
use pointsman::time::ManualClock;
// Counters that the models look at when all is over; they order nothing.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

// ---- the table

/// Notes that it was freed.
struct Item {
    key: u64,
    freed: Arc<AtomicBool>,
}

impl Drop for Item {
    fn drop(&mut self) {
        self.freed.store(true, SeqCst);
    }
}

fn item(key: u64) -> (Item, Arc<AtomicBool>) {
    let freed = Arc::new(AtomicBool::new(false));
    (Item { key, freed: freed.clone() }, freed)
}

fn insert(table: &KeyTable<Item>, key: u64) -> Arc<AtomicBool> {
    let (item, freed) = item(key);
    // All in a row.
    table.lock(0).insert(0, item);
    freed
}

// Bound 3: two threads.
#[test]
fn a_key_is_found_while_the_table_grows_and_others_go() {
    model("keyed_growth_races_look_up", &[13, 14], 3, 150, || {
        let table = Arc::new(KeyTable::<Item>::new(1));
        insert(&table, 1);
        let freed = insert(&table, 2);
        let writer = {
            let table = table.clone();
            thread::spawn(move || {
                insert(&table, 3);
                insert(&table, 4);
                assert!(table.lock(0).replace(0, |item| item.key == 1, None));
            })
        };
        {
            let section = section();
            let found = table.find(0, &section, |item| item.key == 2).map(|item| item.key);
            assert_eq!(found, Some(2), "it was there all the time");
            assert!(!freed.load(SeqCst));
        }
        writer.join().unwrap();
        assert_eq!(table.len(), 3);
        let section = section();
        assert!([2, 3, 4].iter().all(|key| table.find(0, &section, |item| item.key == *key).is_some()));
    });
}

// Bound 3: two threads.
#[test]
fn nothing_is_freed_that_a_look_up_has_found() {
    model("keyed_removal_races_look_up", &[13], 3, 200, || {
        let table = Arc::new(KeyTable::<Item>::new(1));
        let freed = insert(&table, 1);
        let writer = {
            let table = table.clone();
            thread::spawn(move || {
                assert!(table.lock(0).replace(0, |item| item.key == 1, None));
                insert(&table, 1)
            })
        };
        {
            let section = section();
            if let Some(found) = table.find(0, &section, |item| item.key == 1) {
                let is_first = Arc::ptr_eq(&found.freed, &freed);
                thread::yield_now();
                assert!(!(is_first && freed.load(SeqCst)), "freed while it was read");
            }
        }
        writer.join().unwrap();
        assert_eq!(table.len(), 1);
    });
}

// Bound 3: two threads.
#[test]
fn one_of_two_who_look_before_they_insert_inserts() {
    model("keyed_two_inserts_of_one_key", &[14], 3, 340, || {
        let table = Arc::new(KeyTable::<Item>::new(1));
        let insert_unless_there = |table: &KeyTable<Item>| {
            loop {
                // Opened first: its fence would order the look behind the version, and on a thread that stands there
                // is none.
                let section = section();
                let version = table.version(0);
                if table.find(0, &section, |item| item.key == 1).is_some() {
                    return false;
                }
                drop(section);
                let mut shard = table.lock(0);
                if shard.is_unchanged(version) {
                    shard.insert(0, item(1).0);
                    return true;
                }
            }
        };
        let other = {
            let table = table.clone();
            thread::spawn(move || insert_unless_there(&table))
        };
        let mine = insert_unless_there(&table);
        assert!(mine != other.join().unwrap(), "exactly one");
        assert_eq!(table.len(), 1);
    });
}

// ---- whole groups

struct Lodger {
    handled: Arc<AtomicUsize>,
    living: Arc<AtomicUsize>,
}

impl Drop for Lodger {
    fn drop(&mut self) {
        self.living.fetch_sub(1, SeqCst);
    }
}

impl Actor for Lodger {
    type Message = Option<u32>;
    fn receive(&mut self, message: Option<u32>, ctx: &mut Context<Option<u32>>) -> HandlerResult {
        self.handled.fetch_add(1, SeqCst);
        match message {
            Some(0) => ctx.stop(),
            Some(9) => ctx.passivate(),
            Some(_) => {}
            None => return Err(Failure::msg("told to")),
        }
        Ok(())
    }
}

struct Ground {
    system: System,
    clock: ManualClock,
    made: Arc<AtomicUsize>,
    handled: Arc<AtomicUsize>,
    living: Arc<AtomicUsize>,
}

fn ground() -> Ground {
    let clock = ManualClock::new();
    let system = System::builder("model")
        .clock(clock.clone())
        .dispatcher("default", calling_dispatcher())
        .build()
        .expect("the settings are sound");
    Ground { system, clock, made: Arc::default(), handled: Arc::default(), living: Arc::default() }
}

impl Ground {
    /// A group of one key.
    fn plan(&self) -> GroupPlan<Option<u32>, u32> {
        let (made, handled, living) = (self.made.clone(), self.handled.clone(), self.living.clone());
        self.system.group("group").by_key(
            |_: &Option<u32>| 7,
            move |_: &mut Context<Option<u32>>, _: &u32| {
                made.fetch_add(1, SeqCst);
                assert_eq!(living.fetch_add(1, SeqCst), 0, "one at a time");
                Lodger { handled: handled.clone(), living: living.clone() }
            },
        )
    }

    fn group(&self) -> Group<Option<u32>, u32> {
        self.plan().spawn().expect("sound")
    }

    fn end(self) -> (Ledger, usize, usize) {
        let ledger = self.system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
        assert_eq!(ledger.handled as usize, self.handled.load(SeqCst), "{ledger}");
        (ledger, self.made.load(SeqCst), self.handled.load(SeqCst))
    }
}

// Bound 3: two threads.
#[test]
fn two_senders_who_race_for_a_key_create_one_actor() {
    model("keyed_two_senders_one_key", &[1, 4, 14], 3, 7_900, || {
        let ground = ground();
        let group = ground.group();
        let other = {
            let anyone = group.to_ref();
            thread::spawn(move || anyone.tell(Some(1)))
        };
        group.tell(Some(2));
        other.join().unwrap();
        assert_eq!(group.len(), 1);
        drop(group);
        let (_, made, handled) = ground.end();
        assert_eq!((made, handled), (1, 2));
    });
}

/// Notes its messages in their order.
struct Scribe(Arc<std::sync::Mutex<Vec<u32>>>);

impl Actor for Scribe {
    type Message = Addressed;
    fn receive(&mut self, message: Addressed, _: &mut Context<Addressed>) -> HandlerResult {
        self.0.lock().unwrap().push(message.number);
        Ok(())
    }
}

#[derive(Clone)]
struct Addressed {
    to: KeyRoute<u32>,
    number: u32,
}

// Bound 3: two threads.
#[test]
fn the_message_that_creates_an_actor_is_its_first() {
    model("keyed_first_message", &[1], 3, 290, || {
        let ground = ground();
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let scribe = seen.clone();
        let router = |message: &Addressed| message.to.clone();
        let group = ground.system.group("group").keyed(router, move |_, _: &u32| Scribe(scribe.clone()));
        let group = group.spawn().expect("sound");
        let creates = {
            let anyone = group.to_ref();
            thread::spawn(move || anyone.tell(Addressed { to: KeyRoute::Unicast(7), number: 1 }))
        };
        let is_there = group.try_tell(Addressed { to: KeyRoute::GentleUnicast(7), number: 2 }).is_ok();
        creates.join().unwrap();
        drop(group);
        ground.system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        let expected: &[u32] = if is_there { &[1, 2] } else { &[1] };
        assert_eq!(*seen.lock().unwrap(), expected);
    });
}

// Bound 2: two threads, but whole lives of actors; bound 3 takes 26 s.
#[test]
fn of_two_first_terminations_one_closes_the_mailbox() {
    model("keyed_two_terminations", &[1, 15], 2, 3_000, || {
        let ground = ground();
        let told = Arc::new(AtomicUsize::new(0));
        let count = told.clone();
        let make = move |_: &str| {
            count.fetch_add(1, SeqCst);
            Some(1)
        };
        let group = ground.plan().terminate_by(make).spawn().expect("sound");
        group.tell(Some(1));
        let other = {
            let group = group.clone();
            thread::spawn(move || group.terminate("over"))
        };
        group.terminate("over");
        other.join().unwrap();
        // The one that tells may come too late, when the other one has closed the mailbox and the actor has ended.
        assert!(told.load(SeqCst) <= 1);
        assert!(group.head().is_closed());
        drop(group);
        ground.end();
    });
}

// Bound 3: two threads.
#[test]
fn a_message_that_races_the_end_of_its_actor_is_in_one_place() {
    model("keyed_end_races_message", &[1, 6, 14], 3, 9_700, || {
        let ground = ground();
        let group = ground.group();
        group.tell(Some(1));
        let end = {
            let anyone = group.to_ref();
            thread::spawn(move || anyone.tell(Some(0)))
        };
        let refused = group.try_tell(Some(2)).is_err();
        end.join().unwrap();
        drop(group);
        let (ledger, made, handled) = ground.end();
        assert_eq!(ledger.handed_back, u64::from(refused), "{ledger}");
        assert_eq!(handled as u64 + ledger.dead_lettered + ledger.handed_back, 3, "{ledger}");
        assert!((1..=2).contains(&made));
    });
}

// Bound 2: two threads, but whole lives of actors; bound 3 takes more than 40 s.
#[test]
fn a_message_that_races_a_retirement_is_handled() {
    model("keyed_retirement_races_message", &[1, 4, 14], 2, 5_000, || {
        let ground = ground();
        let group = ground.group();
        let retired = {
            let anyone = group.to_ref();
            thread::spawn(move || anyone.tell(Some(9)))
        };
        group.tell(Some(2));
        retired.join().unwrap();
        assert_eq!(ground.living.load(SeqCst), group.len(), "who lives has the key");
        drop(group);
        let (ledger, made, handled) = ground.end();
        assert_eq!((handled, ledger.dead_lettered, ledger.handed_back), (2, 0, 0), "{ledger}");
        assert!((1..=2).contains(&made));
    });
}

// Bound 3: two threads.
#[test]
fn nobody_is_created_once_spawning_has_stopped() {
    model("keyed_stop_spawning_races_spawn", &[1, 15], 3, 130, || {
        let ground = ground();
        let group = ground.group();
        let sender = {
            let anyone = group.to_ref();
            thread::spawn(move || anyone.try_tell(Some(1)).is_ok())
        };
        group.stop_spawning();
        let there = group.len();
        let taken = sender.join().unwrap();
        assert_eq!((group.len(), there), (usize::from(taken), usize::from(taken)));
        drop(group);
        let (_, made, _) = ground.end();
        assert_eq!(made, usize::from(taken));
    });
}

// Bound 3: two threads.
#[test]
fn a_group_that_terminates_while_an_actor_is_created_ends() {
    model("keyed_terminate_races_spawn", &[1, 15], 3, 520, || {
        let ground = ground();
        let group = ground.group();
        let sender = {
            let anyone = group.to_ref();
            thread::spawn(move || anyone.try_tell(Some(1)).is_ok())
        };
        group.terminate("over");
        let taken = sender.join().unwrap();
        assert!(group.head().is_closed(), "its last actor has ended");
        assert!(group.is_empty());
        drop(group);
        let (ledger, ..) = ground.end();
        assert_eq!(ledger.handled, u64::from(taken), "what was taken is handled: {ledger}");
    });
}

// Bound 2: two threads, but whole lives of actors; bound 3 takes 16 s.
#[test]
fn a_message_and_the_clock_create_one_next_life() {
    model("keyed_spawn_anew_races_timer", &[1, 4, 14], 2, 2_000, || {
        let ground = ground();
        let policy = RestartPolicy::on_failure(SECOND, SECOND).auto_reset(Duration::MAX);
        let plan = ground.plan().restart(policy).while_restarting(WhileRestarting::SpawnAnew);
        let group = plan.spawn().expect("sound");
        let (subscriber, told) = reports();
        group.subscribe_statuses(&subscriber);
        group.tell(None);
        let sender = {
            let anyone = group.to_ref();
            thread::spawn(move || anyone.tell(Some(1)))
        };
        ground.clock.advance(SECOND);
        sender.join().unwrap();
        assert_eq!(group.len(), 1);
        assert_eq!(*told.lock().unwrap(), TWO_LIVES);
        drop(group);
        let (ledger, made, handled) = ground.end();
        assert_eq!((made, handled, ledger.dead_lettered), (2, 2, 0), "{ledger}");
    });
}

// Bound 2: two threads, but whole lives of actors; it takes 12 s.
#[test]
fn a_message_that_races_a_failure_creates_the_next_life_or_leaves_it_to_the_clock() {
    model("keyed_spawn_anew_races_failure", &[1, 14], 2, 10_000, || {
        let ground = ground();
        let policy = RestartPolicy::on_failure(SECOND, SECOND).auto_reset(Duration::MAX);
        let plan = ground.plan().restart(policy).while_restarting(WhileRestarting::SpawnAnew);
        let group = plan.spawn().expect("sound");
        let (subscriber, told) = reports();
        group.subscribe_statuses(&subscriber);
        let failure = {
            let anyone = group.to_ref();
            thread::spawn(move || anyone.tell(None))
        };
        group.tell(Some(1));
        failure.join().unwrap();
        // A wait of the former life that is still listed would take the living one for gone.
        ground.clock.advance(SECOND);
        assert_eq!(group.len(), 1);
        assert_eq!(*told.lock().unwrap(), TWO_LIVES);
        drop(group);
        let (ledger, made, _) = ground.end();
        assert_eq!((made, ledger.handled + ledger.dead_lettered), (2, 2), "{ledger}");
    });
}

/// At `true` notes how many messages it can send itself, and stops.
struct Hoarder(Arc<std::sync::Mutex<Vec<usize>>>);

impl Actor for Hoarder {
    type Message = bool;
    fn receive(&mut self, counts: bool, ctx: &mut Context<bool>) -> HandlerResult {
        if counts {
            let count = std::iter::repeat_with(|| ctx.me().try_tell(false)).take_while(Result::is_ok).count();
            self.0.lock().unwrap().push(count);
            ctx.stop();
        }
        Ok(())
    }
}

// Bound 3: two threads.
#[test]
fn of_two_changes_of_the_capacity_the_same_one_holds_for_all() {
    model("keyed_two_capacities", &[15], 3, 3, || {
        let ground = ground();
        let counts: Arc<std::sync::Mutex<Vec<usize>>> = Arc::default();
        let noted = counts.clone();
        let plan = ground
            .system
            .group("group")
            .by_key(|_: &bool| 7, move |_: &mut Context<bool>, _: &u32| Hoarder(noted.clone()));
        let group = plan.mailbox(Mailbox::bounded(3).on_full(OverflowPolicy::Reject)).spawn().expect("sound");
        group.tell(false);
        let other = {
            let group = group.clone();
            thread::spawn(move || group.set_mailbox_capacity(1))
        };
        group.set_mailbox_capacity(2);
        other.join().unwrap();
        // The actor that there is, and the next one.
        group.tell(true);
        group.tell(true);
        drop(group);
        let ledger = ground.system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
        let counts = counts.lock().unwrap();
        assert!(*counts == [1, 1] || *counts == [2, 2], "{counts:?}");
    });
}

// Bound 3: two threads.
#[test]
fn a_terminated_group_restarts_nobody() {
    model("keyed_terminate_races_restart", &[15], 3, 2_100, || {
        let ground = ground();
        let policy = RestartPolicy::on_failure(SECOND, SECOND).auto_reset(Duration::MAX);
        let plan = ground.plan().restart(policy).while_restarting(WhileRestarting::Refuse);
        let group = plan.spawn().expect("sound");
        group.tell(None);
        let end = {
            let group = group.clone();
            thread::spawn(move || group.terminate("over"))
        };
        ground.clock.advance(SECOND);
        end.join().unwrap();
        assert!(group.head().is_closed());
        assert!(group.is_empty());
        drop(group);
        ground.end();
    });
}

// Bound 3: two threads.
#[test]
fn a_message_is_routed_by_the_old_state_or_the_new_one() {
    model("keyed_state_swap_races_route", &[15], 3, 4_000, || {
        let state = RouterState::new(1_u64);
        let router = state.router(|state, _: &()| KeyRoute::Unicast(*state));
        let writer = {
            let state = state.clone();
            thread::spawn(move || state.update(|state| state + 1))
        };
        assert!(matches!(router(&()), KeyRoute::Unicast(1 | 2)));
        state.update(|state| state + 10);
        writer.join().unwrap();
        assert_eq!(state.read(|state| *state), 12, "no update is lost");
    });
}

/// Notes what it is told of the one key.
fn reports() -> (ActorRef<StatusReport<u32>>, Arc<std::sync::Mutex<Vec<ActorStatus>>>) {
    let told: Arc<std::sync::Mutex<Vec<ActorStatus>>> = Arc::default();
    let reports = told.clone();
    // Before it is written down another thread may come.
    let between = AtomicBetween::new(0);
    let subscriber = ActorRef::from_fn(move |report: StatusReport<u32>| {
        between.fetch_add(1, Relaxed);
        reports.lock().unwrap().push(report.status);
    });
    (subscriber, told)
}

/// A life that fails, and one that goes on.
const TWO_LIVES: [ActorStatus; 6] = [
    ActorStatus::Initialising,
    ActorStatus::Normal,
    ActorStatus::Failed,
    ActorStatus::Terminating,
    ActorStatus::Initialising,
    ActorStatus::Normal,
];

const LIFE: [ActorStatus; 4] =
    [ActorStatus::Initialising, ActorStatus::Normal, ActorStatus::Terminating, ActorStatus::Terminated];

// Bound 3: two threads.
#[test]
fn a_subscriber_is_told_each_status_once_from_some_point_on() {
    model("keyed_subscription_races_life", &[15], 3, 3_400, || {
        let ground = ground();
        let group = ground.group();
        let life = {
            let anyone = group.to_ref();
            thread::spawn(move || anyone.tell(Some(0)))
        };
        let (subscriber, told) = reports();
        group.subscribe_statuses(&subscriber);
        life.join().unwrap();
        assert!(group.is_empty());
        let told = told.lock().unwrap().clone();
        assert!(LIFE.ends_with(&told), "{told:?}");
        drop(group);
        ground.end();
    });
}

// Bound 2: two threads, but whole lives of actors; bound 3 takes 19 s.
#[test]
fn lives_of_one_key_are_told_one_after_the_other() {
    model("keyed_end_races_next_life", &[14, 15], 2, 1_500, || {
        let ground = ground();
        let group = ground.group();
        let (subscriber, told) = reports();
        group.subscribe_statuses(&subscriber);
        group.tell(Some(1));
        let retires = {
            let anyone = group.to_ref();
            thread::spawn(move || anyone.tell(Some(9)))
        };
        group.tell(Some(2));
        retires.join().unwrap();
        drop(group);
        let (_, made, _) = ground.end();
        let told = told.lock().unwrap();
        assert_eq!(told.len(), made * LIFE.len(), "{told:?}");
        assert!(told.chunks(LIFE.len()).all(|life| life == LIFE), "{told:?}");
    });
}

/// Retires at 9, and does something once when it ends.
struct Guest(AtEnd);

/// What is run when the guest ends.
type AtEnd = Arc<std::sync::Mutex<Option<Box<dyn FnOnce() + Send>>>>;

impl Actor for Guest {
    type Message = u32;
    fn receive(&mut self, message: u32, ctx: &mut Context<u32>) -> HandlerResult {
        if message == 9 {
            ctx.passivate();
        }
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<u32>) {
        let act = self.0.lock().unwrap().take();
        if let Some(act) = act {
            act();
        }
    }
}

// Bound 1: two threads, but three lives; bound 2 takes 16 s.
#[test]
fn one_that_ends_is_told_of_though_its_heir_has_its_seat() {
    model("keyed_heir_races_subscription", &[1, 15], 1, 400, || {
        let ground = ground();
        let at_end = AtEnd::default();
        let given = at_end.clone();
        let group = ground
            .system
            .group("group")
            .by_key(|_: &u32| 7, move |_: &mut Context<u32>, _: &u32| Guest(given.clone()));
        let group = group.spawn().expect("sound");
        let (subscriber, told) = reports();
        let subscribes = group.clone();
        *at_end.lock().unwrap() = Some(Box::new(move || subscribes.subscribe_statuses(&subscriber)));
        group.tell(1u32);
        let sender = {
            let anyone = group.to_ref();
            thread::spawn(move || anyone.tell(2u32))
        };
        group.tell(9u32);
        sender.join().unwrap();
        drop(group);
        let ledger = ground.system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        assert_eq!((ledger.balance(), ledger.queued, ledger.handled), (0, 0, 3), "{ledger}");
        let told = told.lock().unwrap();
        assert!(told.starts_with(&LIFE[2..]), "{told:?}");
        assert!(told[2..].chunks(LIFE.len()).all(|life| life == LIFE), "{told:?}");
    });
}
