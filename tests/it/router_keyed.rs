//! Pools whose routees take the bare message where the router takes it with its key.

use crate::router_support::*;
use crate::support::LONG;
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, ConsistentHashing, Keyed, RouterSettings, RouterValue, SectionFault, SmallestMailbox,
};
use pointsman::settings::Deployment;
use pointsman::testkit::TestSystem;
use pointsman::{Mailbox, OverflowPolicy, SendError, SpawnError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

type Mail = Keyed<u64, u64>;

fn mail(key: u64, message: u64) -> Mail {
    Keyed { key, message }
}

#[test]
fn routees_of_a_keyed_pool_take_the_bare_message_and_equal_keys_meet_the_same_one() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let pool: Router<Mail> =
        system.router("pool").keyed_pool(4, make).logic(ConsistentHashing::new()).spawn().unwrap();
    for round in 0..3 {
        (0..40).for_each(|key| pool.tell(mail(key, 100 * round + key)));
    }
    system.run_until_idle();
    let mut owners = BTreeMap::new();
    for (owner, message) in got.try_iter() {
        assert_eq!(*owners.entry(message % 100).or_insert(owner), owner, "one owner for each key");
    }
    assert_eq!(owners.len(), 40);
    // As on any ring of these identities.
    let routees = pool.routees().unwrap();
    let identities: Vec<String> = routees.iter().map(|routee| routee.path().as_str().to_owned()).collect();
    let ring =
        pointsman::routing::Ring::new(identities.iter().map(|identity| (identity.as_str(), 160))).unwrap();
    use pointsman::routing::HashKey;
    assert!(owners.iter().all(|(key, owner)| ring.owner(key.key_hash()) == Some(*owner)));
    pool.stop();
    assert_eq!(system.finish().dead_lettered, 0);
}

#[test]
fn a_keyed_pool_changes_its_size_and_loses_nothing() {
    TestSystem::for_seeds(30, |system| {
        let (make, got) = workers();
        let pool: Router<Mail> =
            system.router("pool").keyed_pool(3, make).logic(ConsistentHashing::new()).spawn().unwrap();
        for (round, size) in (0..).zip([1, 5, 2, 4, 1]) {
            (0..20).for_each(|key| pool.tell(mail(key, 100 * round + key)));
            assert_eq!(pool.resize_to(size).unwrap(), size);
        }
        let routee = pool.routees().unwrap().pop().unwrap();
        assert_eq!(pool.add(routee.clone()).unwrap(), 2);
        assert!(pool.remove(routee).unwrap());
        system.run_until_idle();
        assert_eq!(handled(&got).len(), 100);
        assert!(pool.is_closed(), "with its last routee");
        assert_eq!(system.ledger().dead_lettered, 0);
    });
}

#[test]
fn what_a_routee_of_a_keyed_pool_refuses_keeps_its_key() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let plan = system.router("pool").keyed_pool(2, make).logic(ConsistentHashing::new());
    let pool: Router<Mail> =
        plan.mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Reject)).stay_when_empty().spawn().unwrap();
    pool.tell(mail(7, 1));
    assert!(matches!(pool.try_tell(mail(7, 2)), Err(SendError::Full(Keyed { key: 7, message: 2 }))));
    system.run_until_idle();
    let (owner, _) = got.try_recv().unwrap();
    // A value does not hear of ends: it offers each message to the owner first, and to the next one on the ring.
    let value = RouterValue::new(&system, ConsistentHashing::new()).unwrap();
    let value = value.with_routees(pool.routees().unwrap());
    pool.routees().unwrap()[owner].stop();
    system.run_until_idle();
    value.route(mail(7, 3));
    system.run_until_idle();
    assert_eq!(got.try_recv(), Ok((1 - owner, 3)));
    pool.poison_routees();
    system.run_until_idle();
    assert!(matches!(value.try_route(mail(7, 4)), Err(SendError::NoRoutee(Keyed { key: 7, message: 4 }))));
    pool.stop();
    assert_eq!(system.finish().dead_lettered, 0);
}

#[test]
fn a_farewell_a_broadcast_and_a_question_reach_the_routees_bare() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let plan = system.router("pool").keyed_pool(2, make).logic(SmallestMailbox::new());
    let pool: Router<Mail> = plan.farewell(|| mail(0, END)).spawn().unwrap();
    assert_eq!(pool.broadcast(mail(1, 5)), 2);
    (6..8).for_each(|message| pool.tell(mail(1, message)));
    system.run_until_idle();
    let mut all: Vec<(usize, u64)> = got.try_iter().collect();
    all.sort_unstable_by_key(|(_, message)| *message);
    assert_eq!(all[..2].iter().map(|(_, message)| *message).collect::<Vec<_>>(), [5, 5]);
    assert_ne!(all[2].0, all[3].0, "the loads of the routees are seen");
    pool.drain().unwrap();
    system.run_until_idle();
    assert_eq!((handled(&got), pool.is_closed()), (vec![END, END], true));
    assert_eq!(system.finish().dead_lettered, 0);
}

#[derive(Clone)]
struct Who;
impl Request for Who {
    type Reply = usize;
}
struct Shard(usize);
impl Actor for Shard {
    type Message = Call<Who>;
    fn receive(&mut self, call: Call<Who>, _: &mut Context<Call<Who>>) -> HandlerResult {
        call.answer(|_| self.0);
        Ok(())
    }
}

#[test]
fn routees_of_a_keyed_pool_answer() {
    let system = TestSystem::new();
    let pool: Router<Keyed<u64, Call<Who>>> = system
        .router("pool")
        .keyed_pool(3, |ctx| Shard(ctx.routee_index()))
        .logic(ConsistentHashing::new())
        .spawn()
        .unwrap();
    let ask =
        |key| pool.ask_with(|reply_to| Keyed { key, message: Call::new(Who, reply_to) }).wait().unwrap();
    assert_eq!(ask(1), ask(1));
    let all =
        pool.ask_all_with(|reply_to| Keyed { key: 1, message: Call::new(Who, reply_to) }).wait().unwrap();
    assert!(all.into_iter().map(|(_, reply)| reply).eq([Ok(0), Ok(1), Ok(2)]));
    pool.stop();
    system.finish();
}

#[test]
fn what_a_routee_of_a_keyed_pool_leaves_behind_is_a_dead_letter() {
    let left_behind = AtomicU64::new(0);
    TestSystem::for_seeds(20, |system| {
        let (make, got) = workers();
        let plan = system.router("pool").keyed_pool(2, make).logic(Broadcast);
        let pool: Router<Mail> = plan.leave_within(Duration::ZERO).spawn().unwrap();
        pool.add(ActorRef::from_fn(|_: Mail| {})).unwrap();
        (0..4).for_each(|message| pool.tell(mail(1, message)));
        let routee = pool.routees().unwrap().remove(1);
        assert!(pool.remove(routee).unwrap());
        system.run_until_idle();
        let (handled, ledger) = (handled(&got).len() as u64, system.ledger());
        assert_eq!(handled + ledger.dead_lettered, 8, "{ledger}");
        left_behind.fetch_add(ledger.dead_lettered, Ordering::Relaxed);
        pool.stop();
    });
    assert_ne!(left_behind.load(Ordering::Relaxed), 0, "no seed has tried it");
}

#[test]
fn a_failing_routee_of_a_keyed_pool_is_restarted_in_its_place() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let pool: Router<Mail> =
        system.router("pool").keyed_pool(1, make).logic(ConsistentHashing::new()).spawn().unwrap();
    let before = pool.routees().unwrap();
    [1, FAIL, 2].into_iter().for_each(|message| pool.tell(mail(1, message)));
    system.run_until_idle();
    assert_eq!((handled(&got), pool.routees().unwrap() == before), (vec![1, 2, FAIL], true));
    pool.tell(mail(1, END));
    system.run_until_idle();
    assert!(pool.is_closed(), "its end is heard");
    system.finish();
}

#[test]
fn a_keyed_pool_follows_its_section_but_shares_no_queue() {
    let says = |kind: &str| Deployment::new().router(RouterSettings::new().router(kind).nr_of_instances(3));
    let system = System::builder("sections")
        .deploy("/random", says("random-pool"))
        .deploy("/shared", says("balancing-pool"))
        .build()
        .unwrap();
    let (make, got) = workers();
    let pool: Router<Mail> = system.router("random").keyed_pool(1, make.clone()).spawn().unwrap();
    assert_eq!(pool.routees().unwrap().len(), 3);
    (0..6).for_each(|message| pool.tell(mail(1, message)));
    assert_eq!(shares(&got, 6).into_values().sum::<usize>(), 6);
    let living = system.living_actors();
    let refused = system.router("shared").keyed_pool::<u64, _, _>(1, make).spawn().unwrap_err();
    let text = refused.to_string();
    let SpawnError::Section { fault: SectionFault::BareMessages { name }, .. } = refused else {
        panic!("{text}")
    };
    assert_eq!((name.as_str(), system.living_actors()), ("balancing-pool", living));
    assert!(text.contains("call `pool` in the code"), "{text}");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}
