//! Who gets a message that a routee refuses, and who must not wait for a router or for room.

use crate::router_support::*;
use crate::support::{LONG, wait_until};
use pointsman::actor::Recipient;
use pointsman::ask::{Answerable, Attempt};
use pointsman::prelude::*;
use pointsman::routing::{
    ConsistentHashing, ManageError, Random, RoundRobin, RouteContext, Routee, Routees, RoutingLogic,
    SmallestMailbox, TailChopping, TwoChoices,
};
use pointsman::testkit::TestSystem;
use pointsman::time::ManualClock;
use pointsman::{DeadLetterReason, Mailbox, OverflowPolicy, SendError};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

#[test]
fn a_router_among_the_routees_that_is_empty_or_full_is_passed_over() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let empty: Router<u64> = system.router("empty").group([]).stay_when_empty().spawn().unwrap();
    let bounded = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
    let full = system.router("full").pool(1, make).mailbox(bounded).spawn().unwrap();
    let actor = full.routees().unwrap().remove(0);
    full.tell(0u64);
    let (last, last_got) = foreign(&system, "last", 9);
    let group = [empty.to_ref(), full.to_ref(), last.clone()];
    let router = system.router("group").group(group).spawn().unwrap();
    let exact = pointsman::routing::RoundRobin::exact();
    let shared = system
        .router("shared")
        .group([full.to_ref(), empty.to_ref(), last.clone()])
        .logic(exact)
        .spawn()
        .unwrap();
    (1..=6u64).for_each(|message| router.try_tell(message).unwrap());
    (7..=12u64).for_each(|message| shared.try_tell(message).unwrap());
    // Where nobody takes it, the sender learns why.
    let refused = system.router("none").group([full.to_ref(), empty.to_ref()]).spawn().unwrap();
    assert!(matches!(refused.try_tell(13u64), Err(SendError::Full(13))));
    let nobody = system.router("nobody").group([empty.to_ref()]).spawn().unwrap();
    assert!(matches!(nobody.try_tell(14u64), Err(SendError::NoRoutee(14))));
    // No routee is an answer, and so is an actor's full mailbox.
    let none = system.router("with-none").group_of([Routee::none(), (&last).into()]).spawn().unwrap();
    assert!(matches!(none.try_tell(15u64), Err(SendError::NoRoutee(15))));
    let direct = system.router("direct").group([actor, last.clone()]).spawn().unwrap();
    assert!(matches!(direct.try_tell(16u64), Err(SendError::Full(16))));
    system.run_until_idle();
    assert_eq!(handled(&last_got), (1..=12).collect::<Vec<_>>());
    assert_eq!(handled(&got), [0]);
    assert_eq!(system.ledger().balance(), 0, "{}", system.ledger());
    system.allow_running();
    system.finish();
}

/// Numbers without a reply port.
#[derive(Debug, Clone)]
struct Bare(u64);

impl Answerable for Bare {
    fn fork(&mut self, _: &Attempt) -> bool {
        false
    }
}

struct Sink(Sender<u64>);

impl Actor for Sink {
    type Message = Bare;
    fn receive(&mut self, Bare(number): Bare, _: &mut Context<Bare>) -> HandlerResult {
        Ok(self.0.send(number)?)
    }
}

/// Two routers that are full, one that is empty, and an actor.
fn over_full_and_empty<L: RoutingLogic<Bare>>(logic: impl Fn() -> L) {
    let system = TestSystem::new();
    let (log, got) = channel();
    let full = ["full", "full-too"].map(|name| {
        let log = log.clone();
        let bounded = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
        let pool = system.router(name).pool(1, move |_| Sink(log.clone())).mailbox(bounded);
        let pool = pool.spawn().unwrap();
        pool.tell(Bare(0));
        pool.to_ref()
    });
    let empty = system.router("empty").group::<Bare>([]).stay_when_empty().spawn().unwrap().to_ref();
    let last = system.spawn(move || Sink(log.clone())).unwrap();
    let [one, two] = &full;
    // Whatever it begins with.
    for (name, list) in [("a", [one, &empty, two]), ("b", [&empty, one, &empty]), ("c", [two, one, one])] {
        let router = system.router(name).group(list.map(Clone::clone)).logic(logic()).spawn().unwrap();
        for number in 1..=20 {
            let refused = router.try_tell(Bare(number));
            assert!(matches!(refused, Err(SendError::Full(Bare(same))) if same == number), "{refused:?}");
        }
        let with_last = list.into_iter().chain([&last]).cloned();
        let router =
            system.router(&format!("{name}-and-last")).group(with_last).logic(logic()).spawn().unwrap();
        (1..=20).for_each(|number| router.try_tell(Bare(number)).unwrap());
    }
    system.run_until_idle();
    let mut all: Vec<u64> = got.try_iter().collect();
    all.sort_unstable();
    assert_eq!(all.len(), 2 + 3 * 20, "{all:?}");
    assert_eq!(system.ledger().balance(), 0, "{}", system.ledger());
    system.allow_running();
    system.finish();
}

#[test]
fn what_the_sender_learns_of_full_and_empty_routers_does_not_depend_on_where_the_logic_begins() {
    over_full_and_empty(RoundRobin::new);
    over_full_and_empty(RoundRobin::exact);
    over_full_and_empty(RoundRobin::keeping_position);
    over_full_and_empty(Random::new);
    over_full_and_empty(SmallestMailbox::new);
    over_full_and_empty(TwoChoices::new);
    over_full_and_empty(|| ConsistentHashing::by(|bare: &Bare, key| key.feed(&bare.0)));
    over_full_and_empty(|| TailChopping::within(LONG));
}

/// A router among the routees that is full, but has a routee without anything to do.
fn full_router(system: &TestSystem, name: &str) -> ActorRef<u64> {
    let (make, _got) = workers();
    let bounded = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
    let pool = system.router(name).pool(2, make).logic(First).mailbox(bounded).spawn().unwrap();
    pool.tell(0u64);
    pool.to_ref()
}

/// Always the first, whatever the others have to do.
struct First;

impl RoutingLogic<u64> for First {
    fn select(&self, _: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        Some(0)
    }
}

#[test]
fn where_a_router_is_full_the_smallest_mailbox_is_the_smallest_of_the_others() {
    let system = TestSystem::new();
    let full = ["full", "full-too"].map(|name| full_router(&system, name));
    let (busy, got_busy) = foreign(&system, "busy", 1);
    let (less, got_less) = foreign(&system, "less", 2);
    // None of them has run: the routers' second routees are the smallest.
    (0..9u64).for_each(|number| busy.tell(number));
    (0..3u64).for_each(|number| less.tell(number));
    let [one, two] = full;
    let group = [one, busy.clone(), two, less.clone(), busy];
    let router = system.router("all").group(group).logic(SmallestMailbox::new()).spawn().unwrap();
    (100..105u64).for_each(|number| router.try_tell(number).unwrap());
    system.run_until_idle();
    assert_eq!(handled(&got_busy), (0..9).collect::<Vec<u64>>());
    assert_eq!(handled(&got_less), [0, 1, 2, 100, 101, 102, 103, 104]);
    assert_eq!(system.ledger().balance(), 0, "{}", system.ledger());
    system.allow_running();
    system.finish();
}

/// Even numbers left, odd numbers right.
struct ByParity;

impl RoutingLogic<u64> for ByParity {
    fn select(&self, number: &u64, routees: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        Some(*number as usize % routees.len())
    }
}

#[test]
fn nobody_gets_what_the_logic_would_not_choose_it_for() {
    let system = TestSystem::new();
    let (make, _got) = workers();
    let bounded = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
    let evens = system.router("evens").pool(1, make).mailbox(bounded).spawn().unwrap();
    evens.tell(0u64);
    let (odds, got_odds) = foreign(&system, "odds", 1);
    let router = system.router("all").group([evens.to_ref(), odds]).logic(ByParity).spawn().unwrap();
    assert!(matches!(router.try_tell(2u64), Err(SendError::Full(2))));
    router.try_tell(3u64).unwrap();
    system.run_until_idle();
    assert_eq!(handled(&got_odds), [3]);
    system.allow_running();
    system.finish();
}

/// Has no room, and an actor behind it.
struct NoRoom(ActorRef<u64>);

impl Recipient<u64> for NoRoom {
    fn deliver(&self, message: u64) -> Result<(), SendError<u64>> {
        Err(SendError::Full(message))
    }
    fn untyped(&self) -> Option<pointsman::AnyActorRef> {
        self.0.untyped()
    }
}

#[test]
fn what_a_recipient_with_an_actor_behind_it_answers_is_final() {
    let system = TestSystem::new();
    let (actor, got) = foreign(&system, "actor", 0);
    let group = [ActorRef::to_recipient(NoRoom(actor.clone())), actor];
    let router = system.router("all").group(group).logic(ByParity).spawn().unwrap();
    assert!(matches!(router.try_tell(2u64), Err(SendError::Full(2))));
    let router = system.router("in-turn").group(router.routees().unwrap()).spawn().unwrap();
    let taken = (0..4u64).filter(|number| router.try_tell(*number).is_ok()).count();
    assert_eq!(taken, 2);
    system.run_until_idle();
    assert_eq!(handled(&got).len(), 2);
    system.allow_running();
    system.finish();
}

#[derive(Clone)]
struct Get;
impl Request for Get {
    type Reply = u32;
}

/// Keeps what it gets.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Call<Get>>>>);

impl Recipient<Call<Get>> for Kept {
    fn deliver(&self, call: Call<Get>) -> Result<(), SendError<Call<Get>>> {
        self.0.lock().unwrap().push(call);
        Ok(())
    }
}

/// Says that it has begun, and waits.
struct Stuck(Sender<()>, Arc<Mutex<()>>);

impl Actor for Stuck {
    type Message = Call<Get>;
    fn receive(&mut self, _: Call<Get>, _: &mut Context<Call<Get>>) -> HandlerResult {
        self.0.send(())?;
        drop(self.1.lock());
        Ok(())
    }
}

/// Asks, where nothing must wait.
struct Asks(ActorRef<Call<Get>>);

impl Actor for Asks {
    type Message = ();
    fn receive(&mut self, (): (), ctx: &mut Context<()>) -> HandlerResult {
        ctx.ask(&self.0, Get, |_| ());
        Ok(())
    }
}

#[test]
fn a_later_attempt_never_waits_for_room_on_the_thread_of_the_timers() {
    const ASKS: usize = 16;
    let clock = ManualClock::new();
    let system = System::builder("ticks")
        .clock(clock.clone())
        .dispatcher("slow", Dispatcher::blocking())
        .build()
        .unwrap();
    let (sender, reasons) = channel();
    let _subscription = system.dead_letters().subscribe(move |letter| sender.send(letter.reason).unwrap());
    let held = Arc::new(Mutex::new(()));
    let guard = held.lock().unwrap();
    let (inside, is_inside) = channel();
    let holds = held.clone();
    let stuck = system
        .actor("stuck")
        .dispatcher("slow")
        .mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::from_secs(3600))))
        .spawn(move || Stuck(inside.clone(), holds.clone()))
        .unwrap();
    // One that it handles, and one in the mailbox, which is full then.
    let first = stuck.ask(Get);
    is_inside.recv_timeout(LONG).unwrap();
    let second = stuck.ask(Get);
    let kept = Kept::default();
    let group = [stuck.clone(), ActorRef::to_recipient(kept.clone())];
    let logic = TailChopping::within(LONG).interval(Duration::from_millis(10));
    let router = system.router("chops").group(group).logic(logic).spawn().unwrap();
    let asked = router.to_ref();
    // Whichever routee an ask begins with: on a worker nobody waits.
    let asks = system.spawn(move || Asks(asked.clone())).unwrap();
    (0..ASKS).for_each(|_| asks.tell(()));
    wait_until(|| {
        let dead = system.ledger().dead_lettered as usize;
        // Each ask has tried one of the two, or both.
        kept.0.lock().unwrap().len() + dead >= ASKS && system.ledger().queued <= 1
    });
    clock.advance(Duration::from_millis(10));
    wait_until(|| system.ledger().dead_lettered as usize == ASKS);
    assert!(reasons.try_iter().take(ASKS).all(|reason| reason == DeadLetterReason::Full));
    let calls = std::mem::take(&mut *kept.0.lock().unwrap());
    calls.into_iter().for_each(|call| call.answer(|_| 1));
    drop(guard);
    let _ = (first, second);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_farewell_that_manages_its_own_router_is_told_that_it_must_not_wait() {
    let system = System::builder("self").dispatcher("slow", Dispatcher::blocking()).build().unwrap();
    let (make, _got) = workers();
    let own: Arc<OnceLock<Router<u64>>> = Arc::default();
    let (sender, refused) = channel();
    let router = own.clone();
    let farewell = move || {
        if let Some(router) = router.get() {
            let _ = sender.send(router.routees_info().map(|_| ()));
        }
        END
    };
    let router =
        system.router("own").pool(2, make).farewell(farewell).head_dispatcher("slow").spawn().unwrap();
    assert!(own.set(router.clone()).is_ok());
    assert_eq!(router.adjust(-1).unwrap(), 1);
    let refused = refused.recv_timeout(LONG).unwrap();
    assert!(matches!(refused, Err(ManageError::WouldBlockWorker { .. })), "{refused:?}");
    assert_eq!(router.routees().unwrap().len(), 1);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn what_is_routed_to_another_system_is_in_the_books_of_both_only_by_way_of_a_function() {
    let [here, there] = ["here", "there"].map(|name| System::builder(name).build().unwrap());
    let (routee, got) = foreign(&there, "routee", 0);
    let direct = here.router("direct").group([routee.clone()]).spawn().unwrap();
    direct.tell(1u64);
    let across = routee.clone();
    let function = ActorRef::from_fn(move |message: u64| across.tell(message));
    let by_function = here.router("function").group([function]).spawn().unwrap();
    by_function.tell(2u64);
    (0..2).for_each(|_| _ = got.recv_timeout(LONG).unwrap());
    let [here, there] = [here, there].map(|system| system.shutdown(LONG).unwrap());
    // Sent here and handled there; together they balance.
    assert_eq!((here.balance(), there.balance()), (1, -1));
    assert_eq!((here.sent, here.handled, there.sent, there.handled), (2, 1, 1, 2));
}

#[test]
fn routees_of_a_group_are_told_apart_by_their_identities() {
    let system = TestSystem::new();
    let (routee, got) = foreign(&system, "routee", 0);
    let named = |name| Routee::with_identity(routee.contramap(|number: u64| number), name);
    let router = system.router("named").group_of([named("a"), named("b")]).stay_when_empty().spawn().unwrap();
    assert_eq!(router.add(named("c")).unwrap(), 3);
    let both = Routee::several([&routee, &routee]);
    assert_eq!(router.add(&both).unwrap(), 4);
    assert!(router.remove(named("b")).unwrap());
    assert!(!router.remove(named("b")).unwrap());
    // To two by their names, and to one that is two.
    (0..3u64).for_each(|message| router.tell(message));
    system.run_until_idle();
    assert_eq!(handled(&got).len(), 4);
    let first = router.routees().unwrap()[0].clone();
    assert!(router.remove(&first).unwrap(), "by its reference");
    assert!(router.remove(both).unwrap());
    routee.stop();
    system.run_until_idle();
    assert_eq!(router.routees().unwrap(), [], "it was watched under its name");
    router.stop();
    system.finish();
}
