//! Sends of many messages at once: the order of the iterator, exact counts, and iterators that panic.

use pointsman::prelude::*;
use pointsman::testkit::TestSystem;
use pointsman::{Ledger, SystemRef};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Kept<M> = Arc<Mutex<Vec<M>>>;

/// Keeps its messages in a place that the test sees.
struct Keeper<M>(Kept<M>);

impl<M: Send + 'static> Actor for Keeper<M> {
    type Message = M;
    fn receive(&mut self, message: M, _: &mut Context<M>) -> HandlerResult {
        self.0.lock().unwrap().push(message);
        Ok(())
    }
}

fn end(system: TestSystem) -> Ledger {
    system.allow_running();
    let ledger = system.finish();
    assert_eq!(ledger.balance(), 0, "{ledger}");
    ledger
}

fn keeper<M: Send + 'static>(system: &SystemRef, name: &str, mailbox: Mailbox) -> (ActorRef<M>, Kept<M>) {
    let kept: Kept<M> = Arc::default();
    let keeps = kept.clone();
    (system.actor(name).mailbox(mailbox).spawn(move || Keeper(keeps.clone())).unwrap(), kept)
}

#[test]
fn all_messages_come_in_the_order_of_the_iterator_whatever_their_number() {
    for count in [0, 1, 2, 15, 16, 17, 31, 32, 33, 1000] {
        let system = TestSystem::new();
        let (actor, kept) = keeper(&system, "keeper", Mailbox::unbounded());
        assert_eq!(actor.tell_many(0..count), count as usize);
        assert_eq!(actor.queued(), Some(count as usize));
        actor.tell(count);
        system.run_until_idle();
        // Once more, to an actor that is idle after it had messages in blocks.
        assert_eq!(actor.tell_many(count + 1..=2 * count), count as usize);
        system.run_until_idle();
        assert_eq!(*kept.lock().unwrap(), (0..=2 * count).collect::<Vec<u64>>());
        let ledger = end(system);
        assert_eq!((ledger.sent, ledger.handled), (2 * count + 1, 2 * count + 1));
    }
}

/// A message that is lost if it is dropped unread.
#[derive(Debug)]
struct Owned(Box<u64>);

#[test]
fn what_an_iterator_has_given_before_it_panics_is_sent() {
    for given in [0, 1, 15, 16, 17, 40] {
        let system = TestSystem::new();
        let (actor, kept) = keeper(&system, "keeper", Mailbox::unbounded());
        let messages = (0..=given).map(|number| {
            assert!(number < given, "as planned");
            Owned(Box::new(number))
        });
        assert!(catch_unwind(AssertUnwindSafe(|| actor.tell_many(messages))).is_err());
        system.run_until_idle();
        let numbers: Vec<u64> = kept.lock().unwrap().iter().map(|owned| *owned.0).collect();
        assert_eq!(numbers, (0..given).collect::<Vec<_>>());
        let ledger = end(system);
        assert_eq!((ledger.sent, ledger.handled), (given, given));
    }
}

#[test]
fn messages_to_an_actor_that_has_ended_are_dead_letters() {
    let system = TestSystem::new();
    let (actor, kept) = keeper::<u64>(&system, "keeper", Mailbox::unbounded());
    actor.stop();
    system.run_until_idle();
    assert_eq!(actor.tell_many(0..20), 20);
    assert!(kept.lock().unwrap().is_empty());
    let ledger = end(system);
    assert_eq!((ledger.sent, ledger.dead_lettered), (20, 20));
}

/// The iterator ends the actor, so a batch is split between its messages.
#[test]
fn messages_behind_the_end_of_the_actor_are_dead_letters() {
    let system = TestSystem::new();
    let (actor, kept) = keeper::<u64>(&system, "keeper", Mailbox::unbounded());
    let messages = (0..40).inspect(|&number| {
        if number == 20 {
            actor.poison();
            system.run_until_idle();
        }
    });
    assert_eq!(actor.tell_many(messages), 40);
    system.run_until_idle();
    assert_eq!(*kept.lock().unwrap(), (0..16).collect::<Vec<u64>>(), "one batch was sent before");
    let ledger = end(system);
    assert_eq!((ledger.sent, ledger.handled, ledger.dead_lettered), (40, 16, 24));
}

#[test]
fn a_bound_holds_for_each_message() {
    let small = || Mailbox::bounded(4);
    for (mailbox, handled, dead_lettered, dropped) in [
        (small(), 0..4, 16, 0),
        (small().on_full(OverflowPolicy::DropNewest), 0..4, 0, 16),
        (small().on_full(OverflowPolicy::DropOldest), 16..20, 0, 16),
    ] {
        let system = TestSystem::new();
        let (actor, kept) = keeper::<u64>(&system, "keeper", mailbox);
        system.run_until_idle();
        assert_eq!(actor.tell_many(0..20), 20);
        system.run_until_idle();
        assert_eq!(*kept.lock().unwrap(), handled.clone().collect::<Vec<_>>());
        let ledger = end(system);
        assert_eq!((ledger.handled, ledger.dead_lettered, ledger.dropped), (4, dead_lettered, dropped));
    }
}

#[test]
fn other_orders_and_large_messages_arrive_whole() {
    let system = TestSystem::new();
    let (urgent, kept) =
        keeper::<u64>(&system, "urgent", Mailbox::priority(|number: &u64| 100 - *number as i64));
    let (large, wide) = keeper::<[u64; 64]>(&system, "large", Mailbox::unbounded());
    system.run_until_idle();
    assert_eq!((urgent.tell_many(0..40), large.tell_many((0..40).map(|number| [number; 64]))), (40, 40));
    system.run_until_idle();
    assert_eq!(*kept.lock().unwrap(), (0..40).rev().collect::<Vec<u64>>());
    assert!(wide.lock().unwrap().iter().map(|numbers| numbers[63]).eq(0..40));
    end(system);
}

#[test]
fn a_router_routes_each_message() {
    let system = TestSystem::new();
    let (first, firsts) = keeper::<u64>(&system, "first", Mailbox::unbounded());
    let (second, seconds) = keeper::<u64>(&system, "second", Mailbox::unbounded());
    let router = system.router("router").group([first, second]).spawn().unwrap();
    assert_eq!(router.tell_many(0..40), 40);
    system.run_until_idle();
    assert_eq!((firsts.lock().unwrap().len(), seconds.lock().unwrap().len()), (20, 20));
    end(system);
}

#[test]
fn each_sender_keeps_its_order_when_several_threads_send_many() {
    const SENDERS: u64 = 4;
    const EACH: u64 = 20_000;
    let system = System::builder("many").build().unwrap();
    let (actor, kept) = keeper(&system, "keeper", Mailbox::unbounded());
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let actor = &actor;
            scope.spawn(move || {
                for start in (0..EACH).step_by(40) {
                    actor.tell_many((start..start + 33).map(|number| (sender, number)));
                    (start + 33..start + 40).for_each(|number| actor.tell((sender, number)));
                }
            });
        }
    });
    while kept.lock().unwrap().len() < (SENDERS * EACH) as usize {
        std::thread::yield_now();
    }
    let ledger = system.shutdown(Duration::from_secs(30)).unwrap();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (SENDERS * EACH, SENDERS * EACH, 0));
    let kept = kept.lock().unwrap();
    for sender in 0..SENDERS {
        assert!(kept.iter().filter(|(from, _)| *from == sender).map(|(_, number)| *number).eq(0..EACH));
    }
}
