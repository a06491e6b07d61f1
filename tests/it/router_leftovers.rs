//! What becomes of messages for a routee that leaves, or ends before it is done: each is handled once or
//! shown once as a dead letter, and no copy is multiplied.

use crate::router_support::*;
use crate::support::{LONG, ListsByHead, panic_of};
use pointsman::ask::{Answerable, Attempt, AttemptEnd};
use pointsman::pattern::Listeners;
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, BroadcastIf, Random, RemoveRoutee, RoundRobin, RouteContext, Routee, Routees, RouterPlan,
    RouterValue, RoutingLogic, ScatterGatherFirstCompleted, TailChopping,
};
use pointsman::testkit::TestSystem;
use pointsman::{Mailbox, OverflowPolicy, SendError};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

/// Sends a copy to each of these, whatever table their router has meanwhile.
fn broadcast_by_an_old_table(system: &SystemRef, routees: &[ActorRef<u64>], message: u64) {
    let old = RouterValue::new(system, RoundRobin::new()).unwrap().with_routees(routees);
    assert_eq!(old.broadcast(message), routees.len());
}

/// Each (routee, message) handled, sorted.
fn seen(got: &Got) -> Vec<(usize, u64)> {
    let mut seen: Vec<_> = got.try_iter().collect();
    seen.sort_unstable();
    seen
}

#[test]
fn a_leaving_routee_handles_what_late_senders_put_behind_its_mark_and_no_copy_is_multiplied() {
    TestSystem::for_seeds(20, |system| {
        let (make, got) = workers();
        let broadcasts = system.router("all").pool(3, make.clone()).logic(Broadcast).spawn().unwrap();
        let routees = broadcasts.routees().unwrap();
        let removed = broadcasts.head().ask(RemoveRoutee { routee: (&routees[2]).into() });
        // Perhaps before the mark, perhaps behind it.
        broadcast_by_an_old_table(system, &routees[..2], 1);
        routees[2].tell(1u64);
        system.run_until_idle();
        assert!(removed.wait().unwrap().unwrap());
        assert!(routees[2].is_closed());
        assert_eq!(seen(&got), [(0, 1), (1, 1), (2, 1)], "each has one");
        // What comes after it has closed is no routee's message any more.
        broadcast_by_an_old_table(system, &routees, 2);
        system.run_until_idle();
        assert_eq!(seen(&got), [(0, 2), (1, 2)]);
        assert_eq!(system.ledger().dead_lettered, 1);
        broadcasts.stop();
    });
}

#[test]
fn the_last_routee_takes_no_more_although_it_has_something_to_handle() {
    /// Says what it has got, and goes on when it is let.
    struct Held(Sender<u64>, Arc<Mutex<Receiver<()>>>);
    impl Actor for Held {
        type Message = u64;
        fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
            self.0.send(message)?;
            Ok(self.1.lock().unwrap().recv_timeout(LONG)?)
        }
    }
    let system = System::builder("last").dispatcher("held", Dispatcher::pinned()).build().unwrap();
    let ((log, got), (go, may_go)) = (channel(), channel());
    let may_go = Arc::new(Mutex::new(may_go));
    let make = move |_: &mut Context<u64>| Held(log.clone(), may_go.clone());
    let router = system.router("held").pool(1, make).dispatcher("held").stay_when_empty().spawn().unwrap();
    let routee = router.routees().unwrap().remove(0);
    [1u64, 2].into_iter().for_each(|message| routee.tell(message));
    assert_eq!(got.recv_timeout(LONG).unwrap(), 1);
    assert!(router.remove(&routee).unwrap());
    go.send(()).unwrap();
    assert_eq!(got.recv_timeout(LONG).unwrap(), 2, "it has been sent before");
    // Nobody is left to whom a message could go that it has and does not handle.
    assert!(matches!(routee.try_tell(3u64), Err(SendError::Closed(3))));
    go.send(()).unwrap();
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn what_a_routee_sends_itself_while_it_leaves_reaches_it() {
    /// Counts down by messages to itself.
    struct Counts(usize, Sender<(usize, u64)>);
    impl Actor for Counts {
        type Message = u64;
        fn receive(&mut self, message: u64, ctx: &mut Context<u64>) -> HandlerResult {
            self.1.send((self.0, message))?;
            if message > 0 {
                ctx.me().tell(message - 1);
            }
            Ok(())
        }
    }
    let system = TestSystem::new();
    let (log, got) = channel();
    let made = move |ctx: &mut Context<u64>| Counts(ctx.routee_index(), log.clone());
    let router = system.router("counts").pool(2, made).spawn().unwrap();
    let routees = router.routees().unwrap();
    // Both lie before the mark, and what the first leads to lies before the mark or just behind it.
    let removed = router.head().ask(RemoveRoutee { routee: (&routees[1]).into() });
    [1u64, 0].into_iter().for_each(|message| routees[1].tell(message));
    system.run_until_idle();
    assert!(removed.wait().unwrap().unwrap());
    let all = seen(&got);
    assert!(all.iter().all(|(routee, _)| *routee == 1), "{all:?}");
    assert_eq!(system.ledger().handled as usize, all.len() + 1, "{}", system.ledger());
    router.stop();
    system.finish();
}

/// At message 100 sends a copy of 7 to all, and ends with its own copy in its mailbox.
struct Ends {
    number: usize,
    log: Sender<(usize, u64)>,
    all: Arc<OnceLock<RouterValue<u64, RoundRobin>>>,
}

impl Actor for Ends {
    type Message = u64;
    fn receive(&mut self, message: u64, ctx: &mut Context<u64>) -> HandlerResult {
        match (message, self.all.get()) {
            (100, Some(all)) => {
                all.broadcast(7u64);
                ctx.stop();
            }
            _ => self.log.send((self.number, message))?,
        }
        Ok(())
    }
}

fn a_copy_left_behind_is_a_dead_letter<L: RoutingLogic<u64>>(
    logic: impl Fn(RouterPlan<u64, RoundRobin>) -> RouterPlan<u64, L>,
) {
    TestSystem::for_seeds(30, |system| {
        let (log, got) = channel();
        let all: Arc<OnceLock<_>> = Arc::default();
        let given = all.clone();
        let made = move |ctx: &mut Context<u64>| Ends {
            number: ctx.routee_index(),
            log: log.clone(),
            all: given.clone(),
        };
        let router = logic(system.router("ends").pool(3, made)).spawn().unwrap();
        let routees = router.routees().unwrap();
        let value = RouterValue::new(system, RoundRobin::new()).unwrap().with_routees(&routees);
        assert!(all.set(value).is_ok());
        let removed = router.head().ask(RemoveRoutee { routee: (&routees[2]).into() });
        routees[2].tell(100u64);
        system.run_until_idle();
        assert!(removed.wait().is_ok());
        assert_eq!(seen(&got), [(0, 7), (1, 7)]);
        assert_eq!(system.ledger().dead_lettered, 1);
        router.stop();
    });
}

#[test]
fn a_copy_that_a_routee_leaves_behind_is_a_dead_letter_whatever_the_logic() {
    a_copy_left_behind_is_a_dead_letter(|plan| plan);
    a_copy_left_behind_is_a_dead_letter(|plan| plan.logic(Broadcast));
    a_copy_left_behind_is_a_dead_letter(|plan| plan.broadcast_if(|message| *message == 7));
}

/// What is behind the end of a routee that leaves is for one other, or a dead letter if it was too late.
fn what_was_for_one_goes_to_one<L: RoutingLogic<Note>>(logic: impl Fn() -> L) {
    /// Ends at 100.
    struct Notes(usize, Sender<(usize, u64)>);
    impl Actor for Notes {
        type Message = Note;
        fn receive(&mut self, Note(number): Note, ctx: &mut Context<Note>) -> HandlerResult {
            match number {
                100 => ctx.stop(),
                _ => self.1.send((self.0, number))?,
            }
            Ok(())
        }
    }
    let passed_on = AtomicUsize::new(0);
    // A seed may make all messages too late to be passed on. Ten seeds in a run have all done so.
    TestSystem::for_seeds(100, |system| {
        let (log, got) = channel();
        let made = move |ctx: &mut Context<Note>| Notes(ctx.routee_index(), log.clone());
        let router = system.router("notes").pool(3, made).logic(logic()).spawn().unwrap();
        let routees = router.routees().unwrap();
        let removed = router.head().ask(RemoveRoutee { routee: (&routees[2]).into() });
        [100, 1, 2, 3].into_iter().for_each(|number| routees[2].tell(Note(number)));
        system.run_until_idle();
        assert!(removed.wait().is_ok());
        let mut seen: Vec<_> = got.try_iter().collect();
        assert!(seen.iter().all(|(routee, _)| *routee < 2), "{seen:?}");
        let dead = system.ledger().dead_lettered as usize;
        assert_eq!(seen.len() + dead, 3, "{seen:?} {}", system.ledger());
        passed_on.fetch_add(seen.len(), Ordering::Relaxed);
        seen.sort_unstable_by_key(|(_, number)| *number);
        seen.dedup_by_key(|(_, number)| *number);
        assert_eq!(seen.len() + dead, 3, "one was multiplied: {seen:?}");
        router.stop();
    });
    assert_ne!(passed_on.into_inner(), 0, "all were too late");
}

/// Has no reply port.
#[derive(Clone)]
struct Note(u64);

impl Answerable for Note {
    fn fork(&mut self, _: &Attempt) -> bool {
        false
    }
}

#[test]
fn what_was_for_a_routee_that_ends_goes_to_one_other_also_by_logics_that_ask_several() {
    what_was_for_one_goes_to_one(ScatterGatherFirstCompleted::default);
    what_was_for_one_goes_to_one(TailChopping::default);
    what_was_for_one_goes_to_one(|| BroadcastIf::new(|_: &Note| true, RoundRobin::default()));
    what_was_for_one_goes_to_one(|| -> Box<dyn RoutingLogic<Note>> { Box::new(Random::default()) });
}

#[test]
fn a_copy_by_way_of_an_adapter_is_a_copy() {
    TestSystem::for_seeds(30, |system| {
        let (make, got) = workers();
        let router = system.router("pool").pool(2, make).spawn().unwrap();
        let routees = router.routees().unwrap();
        let removed = router.head().ask(RemoveRoutee { routee: (&routees[1]).into() });
        routees[1].tell(END);
        let adapted = routees.iter().map(|routee| routee.contramap(|number: u64| number + 1));
        let old = RouterValue::new(system, RoundRobin::new()).unwrap().with_routees(adapted);
        assert_eq!(old.broadcast(6u64), 2);
        system.run_until_idle();
        assert!(removed.wait().is_ok());
        assert_eq!(seen(&got), [(0, 7), (1, END)]);
        assert_eq!(system.ledger().dead_lettered, 1);
        router.stop();
    });
}

#[test]
fn what_was_for_one_routee_of_a_broadcast_goes_to_one_other() {
    TestSystem::for_seeds(30, |system| {
        let (make, got) = workers();
        let router = system.router("all").pool(3, make).logic(Broadcast).spawn().unwrap();
        let routees = router.routees().unwrap();
        let ask = RemoveRoutee { routee: (&routees[2]).into() };
        let _removed = router.head().ask(ask);
        [END, 5].into_iter().for_each(|message| routees[2].tell(message));
        system.run_until_idle();
        let fives = seen(&got).into_iter().filter(|(_, message)| *message == 5).count();
        let dead = system.ledger().dead_lettered as usize;
        assert_eq!(fives + dead, 1, "{}", system.ledger());
        router.stop();
    });
}

#[derive(Clone)]
struct Get;
impl Request for Get {
    type Reply = usize;
}

/// Answers, but for the last of three, which ends with the question in its mailbox.
struct Answers {
    number: usize,
    asked: Arc<AtomicUsize>,
}

impl Actor for Answers {
    type Message = Call<Get>;
    fn receive(&mut self, call: Call<Get>, ctx: &mut Context<Call<Get>>) -> HandlerResult {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.number == 2 {
            ctx.stop();
        }
        drop(call);
        Ok(())
    }
}

#[test]
fn a_question_that_a_routee_leaves_behind_is_a_failed_attempt_and_asked_of_nobody_twice() {
    TestSystem::for_seeds(30, |system| {
        let asked: Arc<AtomicUsize> = Arc::default();
        let given = asked.clone();
        let made = move |ctx: &mut Context<_>| Answers { number: ctx.routee_index(), asked: given.clone() };
        let logic = ScatterGatherFirstCompleted::new();
        let router = system.router("answers").pool(3, made).logic(logic).spawn().unwrap();
        let routees = router.routees().unwrap();
        let removed = router.head().ask(RemoveRoutee { routee: (&routees[2]).into() });
        // The first ends the last routee, the second is left behind there.
        let asks: Vec<_> = (0..2).map(|_| router.ask(Get)).collect();
        system.run_until_idle();
        assert!(removed.wait().is_ok());
        for ask in asks {
            let Err(AskError::AllFailed { causes, .. }) = ask.wait() else { panic!("nobody answers") };
            assert!((2..=3).contains(&causes.len()));
            assert!(causes.iter().all(|(_, end)| *end == AttemptEnd::NoReply), "{causes:?}");
        }
        let ledger = system.ledger();
        let questions = asked.load(Ordering::Relaxed) as u64 + ledger.dead_lettered;
        // And one to the head.
        assert_eq!(questions + 1, ledger.sent, "{ledger}");
        router.stop();
    });
}

#[test]
fn what_a_full_routee_drops_by_its_policy_is_taken_and_counted() {
    let system = TestSystem::new();
    let (make, got) = workers();
    let mailbox = Mailbox::bounded(2).on_full(OverflowPolicy::DropNewest);
    let router = system.router("pool").pool(1, make).mailbox(mailbox).spawn().unwrap();
    system.run_until_idle();
    (1..=3u64).for_each(|message| assert!(router.try_tell(message).is_ok(), "the policy takes it"));
    system.run_until_idle();
    assert_eq!(seen(&got), [(0, 1), (0, 2)]);
    router.stop();
    let ledger = system.finish();
    assert_eq!((ledger.dropped, ledger.dead_lettered, ledger.handed_back), (1, 0, 0), "{ledger}");
}

#[test]
fn a_farewell_needs_no_room_in_the_mailbox() {
    for full in [OverflowPolicy::Reject, OverflowPolicy::DropNewest, OverflowPolicy::DropOldest] {
        let system = TestSystem::new();
        let (make, got) = workers();
        let mailbox = Mailbox::bounded(2).on_full(full);
        let plan = system.router("pool").pool(2, make).mailbox(mailbox).farewell(|| END);
        let router = plan.spawn().unwrap();
        let routees = router.routees().unwrap();
        let removed = router.head().ask(RemoveRoutee { routee: (&routees[1]).into() });
        [1u64, 2].into_iter().for_each(|message| routees[1].tell(message));
        system.run_until_idle();
        assert!(removed.wait().unwrap().unwrap());
        assert!(routees[1].is_closed(), "{full:?}");
        assert!(seen(&got).contains(&(1, END)), "{full:?}");
        router.drain().unwrap();
        let ledger = system.finish();
        assert_eq!((ledger.dead_lettered, ledger.dropped), (0, 0), "{ledger}");
    }
}

#[test]
fn a_routee_that_fails_at_its_farewell_handles_the_rest_and_ends() {
    TestSystem::for_seeds(20, |system| {
        let (make, got) = workers();
        let router = system.router("pool").pool(2, make).farewell(|| FAIL).spawn().unwrap();
        let routees = router.routees().unwrap();
        let removed = router.head().ask(RemoveRoutee { routee: (&routees[1]).into() });
        [1u64, 2].into_iter().for_each(|message| routees[1].tell(message));
        system.run_until_idle();
        assert!(removed.wait().unwrap().unwrap() && routees[1].is_closed());
        assert_eq!(seen(&got), [(1, 1), (1, 2), (1, FAIL)]);
        router.stop();
    });
}

/// Ends at the first message after its farewell.
struct Polite {
    number: usize,
    log: Sender<(usize, u64)>,
    is_leaving: bool,
}

impl Actor for Polite {
    type Message = u64;
    fn receive(&mut self, message: u64, ctx: &mut Context<u64>) -> HandlerResult {
        self.log.send((self.number, message))?;
        match message {
            FAIL => return Err(Failure::msg("as told")),
            END => self.is_leaving = true,
            _ if self.is_leaving => ctx.stop(),
            _ => {}
        }
        Ok(())
    }
}

fn one_made_anew_after_its_farewell_ends<L: RoutingLogic<u64>>(
    plan: impl Fn(&SystemRef, Sender<(usize, u64)>) -> RouterPlan<u64, L>,
) {
    TestSystem::for_seeds(20, |system| {
        let (log, got) = channel();
        let plan = plan(system, log).farewell(|| END).on_failure(Strategy::default());
        let router = plan.spawn().unwrap();
        let routees = router.routees().unwrap();
        router.drain().unwrap();
        system.run_until_idle();
        assert!(!router.head().is_closed(), "they wait for a message");
        // It forgets that it was leaving.
        routees.iter().for_each(|routee| [FAIL, 1].iter().for_each(|message| routee.tell(*message)));
        system.run_until_idle();
        assert!(routees.iter().all(ActorRef::is_closed));
        assert!(router.head().is_closed());
        assert_eq!(seen(&got), [(0, 1), (0, END), (0, FAIL), (1, 1), (1, END), (1, FAIL)]);
        assert_eq!(system.ledger().balance(), 0);
    });
}

#[test]
fn a_routee_that_is_made_anew_after_its_farewell_handles_what_it_has_and_ends() {
    let made = |log: Sender<_>| {
        move |ctx: &mut Context<u64>| Polite {
            number: ctx.routee_index(),
            log: log.clone(),
            is_leaving: false,
        }
    };
    one_made_anew_after_its_farewell_ends(|system, log| system.router("pool").pool(2, made(log)));
    one_made_anew_after_its_farewell_ends(|system, log| system.router("pool").balancing_pool(2, made(log)));
}

/// Sends a copy of 7 to each of a router's two routees, of which the second is about to leave and to end.
fn copies_of_another_sender(send: impl Fn(&TestSystem, &[ActorRef<u64>])) {
    TestSystem::for_seeds(30, |system| {
        let (make, got) = workers();
        let router = system.router("pool").pool(2, make).spawn().unwrap();
        let routees = router.routees().unwrap();
        let removed = router.head().ask(RemoveRoutee { routee: (&routees[1]).into() });
        routees[1].tell(END);
        send(system, &routees);
        system.run_until_idle();
        assert!(removed.wait().is_ok());
        assert_eq!(seen(&got), [(0, 7), (1, END)]);
        assert_eq!(system.ledger().dead_lettered, 1);
        router.stop();
    });
}

#[test]
fn a_copy_sent_to_a_selection_or_to_listeners_or_as_an_event_is_a_copy() {
    copies_of_another_sender(|system, _| {
        assert_eq!(system.select("/user/pool/*").unwrap().tell(7u64).reached, 2);
    });
    copies_of_another_sender(|_, routees| {
        let mut listeners = Listeners::new();
        routees.iter().for_each(|routee| assert!(listeners.listen(routee.clone())));
        assert_eq!(listeners.gossip(7u64), 2);
    });
    copies_of_another_sender(|system, routees| {
        routees.iter().for_each(|routee| assert!(system.events().subscribe::<u64, u64>(routee)));
        system.events().publish(&7u64);
    });
}

#[test]
fn a_copy_by_way_of_several_routees_in_the_place_of_one_is_a_copy_also_if_it_is_a_single_one() {
    let several = |routees: &[ActorRef<u64>]| Routee::several([Routee::several(routees)]);
    copies_of_another_sender(|system, routees| {
        let value = RouterValue::new(system, Broadcast).unwrap();
        value.with_routees([Routee::from(&routees[0]), several(&routees[1..])]).route(7u64);
    });
    copies_of_another_sender(|system, routees| {
        let adapted = several(&routees[1..]).actor().contramap(|number: u64| number);
        let value = RouterValue::new(system, Broadcast).unwrap();
        value.with_routees([routees[0].clone(), adapted]).route(7u64);
    });
}

#[test]
fn a_copy_that_a_topology_sends_to_several_groups_is_a_copy() {
    copies_of_another_sender(|system, routees| {
        let topology = system.topology();
        let source = topology.local::<u64>("source").unwrap();
        for (name, routee) in ["first", "second"].iter().zip(routees) {
            let group = topology.local::<u64>(name).unwrap();
            source.route_all_to::<u64, _>(&group);
            group.mount(routee);
        }
        let outlet = source.outlet::<u64>();
        source.mount(&ActorRef::from_fn(|_: u64| {}));
        assert!(outlet.try_send(7u64).is_ok());
    });
}

/// Delivers the first copy at once and the others by `tell`, as later by a timer.
struct Later;

impl RoutingLogic<u64> for Later {
    fn select(&self, _: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        Some(0)
    }

    fn route(
        &self,
        message: u64,
        routees: &Routees<u64>,
        cx: &RouteContext<'_>,
    ) -> Result<(), SendError<u64>> {
        routees.iter().for_each(|routee| cx.copies_later(routee.actor()));
        routees.iter().skip(1).for_each(|routee| routee.actor().tell(message));
        let first = routees.get(0).ok_or(SendError::NoRoutee(message))?;
        cx.deliver(first.actor(), message)
    }
}

#[test]
fn a_copy_that_a_logic_delivers_later_is_a_copy() {
    copies_of_another_sender(|system, routees| {
        let value = RouterValue::new(system, Later).unwrap().with_routees(routees);
        value.route(7u64);
    });
}

#[test]
fn a_routee_listed_by_another_reference_is_still_watched() {
    for (removed, kept) in [(0, 1), (1, 0)] {
        let system = TestSystem::new();
        let (routee, got) = foreign(&system, "routee", 7);
        let plus = |more| routee.contramap(move |number: u64| number + more);
        let group = [plus(10), plus(20)];
        let router = system.router("group").group(group.clone()).stay_when_empty().spawn().unwrap();
        assert!(router.remove(&group[removed]).unwrap());
        router.tell(1u64);
        system.run_until_idle();
        assert_eq!(handled(&got), [1 + 10 * (kept as u64 + 1)]);
        routee.stop();
        system.run_until_idle();
        assert_eq!(router.routees_by_head().unwrap(), [], "its end is noticed");
        router.stop();
        system.finish();
    }
}

#[test]
fn an_own_routee_that_is_listed_by_another_reference_is_forgotten_when_it_has_left() {
    let system = TestSystem::new();
    let (make, _got) = workers();
    let router = system.router("pool").pool(2, make).spawn().unwrap();
    let routees = router.routees().unwrap();
    router.add(routees[1].contramap(|number: u64| number)).unwrap();
    assert!(router.remove(&routees[1]).unwrap());
    system.run_until_idle();
    assert_eq!(router.routees_by_head().unwrap(), routees[..1]);
    router.stop();
    system.finish();
}

/// Delivers wrongly, in one way after the other.
struct Wrong(AtomicUsize);

impl RoutingLogic<u64> for Wrong {
    fn select(&self, _: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        Some(0)
    }
    fn route(
        &self,
        message: u64,
        routees: &Routees<u64>,
        cx: &RouteContext<'_>,
    ) -> Result<(), SendError<u64>> {
        let [one, two] = [0, 1].map(|index| routees.get(index).unwrap().actor());
        match self.0.fetch_add(1, Ordering::Relaxed) {
            // Two, of which one is counted; by each kind of routee.
            0 => {
                cx.deliver(one, message)?;
                cx.deliver(two, message)
            }
            1 => {
                cx.deliver(two, message)?;
                cx.deliver(one, message)?;
                cx.deliver(two, message)
            }
            // Delivered, and returned.
            2 => {
                cx.deliver(one, message)?;
                Err(SendError::NoRoutee(message))
            }
            // Two of three are neither delivered nor returned.
            3 => {
                cx.copies(3);
                Err(SendError::Full(message))
            }
            4 => {
                cx.copies(3);
                cx.deliver(two, message)
            }
            5 => {
                cx.deliver(one, message)?;
                panic!("as told")
            }
            _ => Err(SendError::NoRoutee(message)),
        }
    }
}

#[test]
fn whatever_a_logic_does_wrong_the_books_balance() {
    let system = TestSystem::new();
    let (routee, got) = foreign(&system, "routee", 0);
    let heard: Arc<AtomicUsize> = Arc::default();
    let hears = heard.clone();
    let function = ActorRef::from_fn(move |_: u64| _ = hears.fetch_add(1, Ordering::Relaxed));
    let wrong = Wrong(AtomicUsize::new(0));
    let router = system.router("wrong").group([routee.clone(), function]).logic(wrong).spawn().unwrap();
    for way in 0..7 {
        let balances = || {
            system.run_until_idle();
            let ledger = system.ledger();
            assert_eq!(ledger.balance(), 0, "{way}: {ledger}");
            ledger
        };
        match way {
            5 => assert_eq!(panic_of(|| router.tell(1u64)), "as told"),
            3 => {
                let before = balances();
                assert!(router.try_tell(1u64).is_err());
                let after = balances();
                assert_eq!((after.sent - before.sent, after.dead_lettered - before.dead_lettered), (3, 2));
            }
            _ => router.tell(1u64),
        }
        balances();
    }
    assert_eq!((handled(&got).len(), heard.load(Ordering::Relaxed)), (4, 4));
    routee.stop();
    router.stop();
    system.finish();
}
