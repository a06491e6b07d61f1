//! Routers over each other: what one message may become on its way.

use crate::support::{LONG, wait_until};
use pointsman::prelude::*;
use pointsman::routing::{Broadcast, RoundRobin, RoutingLogic, ScatterGatherFirstCompleted, SmallestMailbox};
use pointsman::{DeadLetterReason, SendError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone)]
struct Get;
impl Request for Get {
    type Reply = u32;
}

struct Sink;
impl Actor for Sink {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
}

fn system() -> System {
    System::builder("fan-out").seed(7).build().unwrap()
}

/// Four routers, each with the three others as routees: one message to all would become 43 million.
fn each_over_the_others<M: Send + 'static, L: RoutingLogic<M>>(
    system: &System,
    logic: impl Fn() -> L,
) -> Router<M> {
    let empty = |number: usize| {
        let plan = system.router(&format!("over-{number}")).group([]).stay_when_empty();
        plan.logic(logic()).spawn().unwrap()
    };
    let all: Vec<Router<M>> = (0..4).map(empty).collect();
    for (place, router) in all.iter().enumerate() {
        for (other_place, other) in all.iter().enumerate() {
            if place != other_place {
                router.add(other.to_ref()).unwrap();
            }
        }
    }
    all[0].clone()
}

/// So many routers one outermost send may visit, and each of these has three routees.
const COPIES_MAX: u64 = 65_536 * 3;

#[test]
fn a_message_that_many_routers_multiply_visits_so_many_and_no_more() {
    let system = system();
    let cycles = Arc::new(AtomicU64::new(0));
    let count = cycles.clone();
    let _subscription = system.dead_letters().subscribe(move |letter| {
        assert_eq!(letter.reason, DeadLetterReason::Cycle);
        count.fetch_add(1, Ordering::Relaxed);
    });
    let to_all = each_over_the_others::<u64, _>(&system, || Broadcast);
    for times in 1..=2 {
        to_all.tell(7u64);
        let lost = system.ledger().dead_lettered;
        assert!((65_536..=times * COPIES_MAX).contains(&lost), "{lost}");
        assert_eq!(cycles.load(Ordering::Relaxed), lost, "each is told and counted");
    }
    // The next send is none of theirs.
    let inner = system.router("inner").pool(2, |_| Sink).logic(RoundRobin::new()).spawn().unwrap();
    let outer = system.router("outer").group([inner.to_ref()]).spawn().unwrap();
    (0..4u64).for_each(|n| outer.to_ref().try_tell(n).unwrap());
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn routers_that_ask_each_other_for_their_loads_ask_so_many_and_no_more() {
    let system = system();
    let by_load = each_over_the_others::<u64, _>(&system, SmallestMailbox::new);
    for number in 0..2u64 {
        assert!(matches!(by_load.try_tell(number), Err(SendError::Cycle(_))));
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn copies_by_scatter_gather_are_bounded_like_those_of_a_broadcast() {
    let system = system();
    let gather = each_over_the_others::<Call<Get>, _>(&system, ScatterGatherFirstCompleted::new);
    assert!(gather.ask(Get).wait().is_err());
    let ledger = system.ledger();
    assert!(ledger.sent <= COPIES_MAX + 1, "{ledger}");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// A handler on the thread of a sender routes as many messages as it wants to, though that thread is within a send by a
/// router: those are its own sends.
#[test]
fn a_turn_within_a_routed_send_has_sends_of_its_own() {
    const COUNT: u64 = 70_000;
    struct Forwards(ActorRef<u64>);
    impl Actor for Forwards {
        type Message = u64;
        fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
            (0..COUNT).for_each(|number| self.0.tell(number));
            Ok(())
        }
    }
    let system = System::builder("calling").dispatcher("here", Dispatcher::calling_thread()).build().unwrap();
    let inner = system.router("inner").pool(2, |_| Sink).dispatcher("here").spawn().unwrap();
    let target = inner.to_ref();
    let forwards =
        system.actor("forwards").dispatcher("here").spawn(move || Forwards(target.clone())).unwrap();
    let outer = system.router("outer").group([forwards]).spawn().unwrap();
    outer.tell(0u64);
    // The turn runs here, or where the router's head has just told the actor that it is watched.
    wait_until(|| system.ledger().handled + system.ledger().dead_lettered == COUNT + 1);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.handled, ledger.dead_lettered), (COUNT + 1, 0), "{ledger}");
}

#[test]
fn groups_by_wildcards_over_each_other_are_bounded_too() {
    let system = system();
    let group = |number: usize| {
        let plan = system.router(&format!("wild-{number}")).group_at(["/user/wild-*"]);
        plan.spawn().unwrap()
    };
    let all: Vec<Router<u64>> = (0..4).map(group).collect();
    all[0].tell(7u64);
    let lost = system.ledger().dead_lettered;
    assert!((65_536..=COPIES_MAX).contains(&lost), "{lost}");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}
