//! Routers that ask several routees one question: scatter-gather and tail-chopping.

use crate::support::{LONG, panic_of, wait_until};
use pointsman::actor::Recipient;
use pointsman::ask::{Answerable, Attempt, AttemptEnd};
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, Keyed, RoundRobin, RouterValue, RoutingLogic, ScatterGatherFirstCompleted, TailChopping,
};
use pointsman::testkit::TestSystem;
use pointsman::time::ManualClock;
use pointsman::{DeadLetterReason, Ledger, SendError};
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// Answered by a number, of which 0 is no success.
#[derive(Debug, Clone, Default)]
struct Get {
    /// Counts the copies that are left.
    life: Arc<()>,
}

impl Request for Get {
    type Reply = u32;
    fn is_success(reply: &u32) -> bool {
        assert_ne!(*reply, u32::MAX, "planted");
        *reply != 0
    }
}

fn scatter() -> ScatterGatherFirstCompleted {
    ScatterGatherFirstCompleted::within(SECOND)
}

/// One more every 100 ms.
fn chop() -> TailChopping {
    TailChopping::within(SECOND).interval(100 * MS)
}

/// A router over probes, on a system that runs on this thread.
struct Scene {
    system: Rc<TestSystem>,
    desks: Vec<Desk<Call<Get>>>,
    router: Router<Call<Get>>,
}

impl Scene {
    fn new(desks: usize, logic: impl RoutingLogic<Call<Get>>) -> Self {
        let system = Rc::new(TestSystem::with_seed(7));
        let (desks, group) = open_desks(&system, desks);
        let router = system.router("all").group(group).logic(logic).spawn().unwrap();
        Self { system, desks, router }
    }

    fn path(&self, desk: usize) -> String {
        self.desks[desk].actor.path().to_string()
    }

    /// Who has a question that was not taken yet.
    fn asked(&self) -> Vec<usize> {
        self.system.run_until_idle();
        (0..self.desks.len()).filter(|desk| self.desks[*desk].waiting() > 0).collect()
    }

    /// The only one that has.
    #[track_caller]
    fn next(&self) -> usize {
        let asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked[0]
    }

    fn end(self) -> Ledger {
        let Self { system, desks, router } = self;
        router.stop();
        drop(desks);
        drop(router);
        let ledger = finish(system);
        assert_eq!(ledger.asks.pending(), 0, "{:?}", ledger.asks);
        ledger
    }
}

/// An actor that keeps what it gets for the test to look at, on a system that runs on this thread.
struct Desk<M: Send + 'static> {
    actor: ActorRef<M>,
    system: Rc<TestSystem>,
    got: Arc<Mutex<VecDeque<M>>>,
}

struct Clerk<M>(Arc<Mutex<VecDeque<M>>>);

impl<M: Send + 'static> Actor for Clerk<M> {
    type Message = M;
    fn receive(&mut self, message: M, _: &mut Context<M>) -> HandlerResult {
        self.0.lock().unwrap().push_back(message);
        Ok(())
    }
}

impl<M: Send + 'static> Desk<M> {
    fn open(system: &Rc<TestSystem>) -> Self {
        let got: Arc<Mutex<VecDeque<M>>> = Arc::default();
        let given = got.clone();
        let actor = system.spawn(move || Clerk(given.clone())).unwrap();
        Self { actor, system: system.clone(), got }
    }

    /// How many messages it has that were not taken.
    fn waiting(&self) -> usize {
        self.actor.queued().unwrap() + self.got.lock().unwrap().len()
    }

    /// Takes the first.
    #[track_caller]
    fn take(&self) -> M {
        self.system.run_until_idle();
        self.got.lock().unwrap().pop_front().expect("a message")
    }
}

impl<M: Send + 'static> Drop for Desk<M> {
    fn drop(&mut self) {
        self.actor.stop();
    }
}

fn finish(system: Rc<TestSystem>) -> Ledger {
    Rc::into_inner(system).expect("all desks are closed").finish()
}

type Group<M> = Vec<ActorRef<M>>;

fn open_desks<M: Send + 'static>(system: &Rc<TestSystem>, count: usize) -> (Vec<Desk<M>>, Group<M>) {
    let desks: Vec<_> = (0..count).map(|_| Desk::open(system)).collect();
    let group = desks.iter().map(|desk| desk.actor.clone()).collect();
    (desks, group)
}

/// Answers, and says whether that was in time.
fn answer(desk: &Desk<Call<Get>>, reply: u32) -> bool {
    desk.take().reply_to.send(reply).is_ok()
}

#[track_caller]
fn causes(failed: Result<u32, AskError>) -> Vec<(String, AttemptEnd)> {
    let Err(AskError::AllFailed { causes, .. }) = failed else { panic!("{failed:?}") };
    causes.iter().map(|(routee, end)| (routee.to_string(), end.clone())).collect()
}

// ---- scatter-gather

#[test]
fn the_first_success_wins_although_a_failure_came_before_it() {
    let scene = Scene::new(4, scatter());
    let ask = scene.router.ask(Get::default());
    assert_eq!(scene.asked(), [0, 1, 2, 3], "all at once");
    assert!(answer(&scene.desks[1], 0), "no success, and no reply to send again");
    drop(scene.desks[3].take());
    let loser = scene.desks[0].take();
    assert!(loser.reply_to.wanted());
    assert!(answer(&scene.desks[2], 22));
    assert!(!loser.reply_to.wanted(), "it can see that it lost");
    assert_eq!(loser.reply_to.send(11), Err(11));
    assert_eq!(ask.wait(), Ok(22));
    let asks = scene.end().asks;
    assert_eq!((asks.begun, asks.answered, asks.late), (1, 1, 1), "attempts are no asks: {asks:?}");
}

#[test]
fn the_first_completion_wins_if_that_is_wanted() {
    for logic in [scatter(), scatter().first_completion()] {
        let scene = Scene::new(3, logic);
        let ask = scene.router.ask(Get::default());
        drop(scene.desks[0].take());
        assert!(answer(&scene.desks[1], 0));
        let is_late = !answer(&scene.desks[2], 5);
        let reply = ask.wait();
        assert!(matches!((is_late, &reply), (false, Ok(5)) | (true, Ok(0))), "{is_late} {reply:?}");
        assert_eq!(format!("{logic:?}").contains("first_completion: true"), is_late);
        scene.end();
    }
}

#[test]
fn a_question_fails_as_soon_as_the_last_attempt_has_with_the_cause_for_each() {
    let scene = Scene::new(4, scatter());
    scene.desks[2].actor.stop();
    scene.system.run_until_idle();
    // Of a group's routees that have ended the router has heard by now.
    assert_eq!(scene.router.routees().unwrap().len(), 3);
    let ask = scene.router.ask(Get::default());
    drop(scene.desks[3].take());
    answer(&scene.desks[1], 0);
    let mut ask = std::pin::pin!(ask);
    let waker = std::task::Waker::noop();
    assert!(ask.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending(), "one is left");
    answer(&scene.desks[0], u32::MAX);
    let std::task::Poll::Ready(failed) = ask.as_mut().poll(&mut std::task::Context::from_waker(waker)) else {
        panic!("nobody is left, and no time has passed");
    };
    let text = failed.as_ref().unwrap_err().to_string();
    assert!(text.contains("3 attempts failed") && text.contains("no reply"), "{text}");
    let expected = [
        (scene.path(3), AttemptEnd::NoReply),
        (scene.path(1), AttemptEnd::Unsuccessful),
        (scene.path(0), AttemptEnd::Panicked),
    ];
    assert_eq!(causes(failed), expected);
    scene.end();
}

#[test]
fn what_routees_refuse_is_a_dead_letter_each_and_a_cause() {
    let system = Rc::new(TestSystem::with_seed(7));
    let full = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
    let worker = |name: &str| system.actor(name).mailbox(full.clone()).spawn(|| Silent).unwrap();
    let routees = [worker("a"), worker("b")];
    let router = system.router("all").group(routees.clone()).logic(scatter()).spawn().unwrap();
    let letters = Arc::new(Mutex::new(Vec::new()));
    let seen = letters.clone();
    let _subscription = system.dead_letters().subscribe(move |letter| {
        seen.lock().unwrap().push((letter.recipient.to_string(), letter.reason));
    });
    routees[0].tell(Call::new(Get::default(), closed_port(&system)));
    routees[1].stop();
    // The router has not heard of the stop: no turn was run. Nor has the routee.
    let ask = router.ask(Get::default());
    let refused = |reason| AttemptEnd::Refused(reason);
    system.run_until_idle();
    assert_eq!(
        causes(ask.wait()),
        [("/user/a".into(), refused(DeadLetterReason::Full)), ("/user/b".into(), AttemptEnd::NoReply)]
    );
    assert_eq!(
        *letters.lock().unwrap(),
        [("/user/a".into(), DeadLetterReason::Full), ("/user/b".into(), DeadLetterReason::Stopped)]
    );
    router.stop();
    routees[0].stop();
    let ledger = finish(system);
    // Two copies, and the one that filled the mailbox.
    assert_eq!((ledger.dead_lettered, ledger.balance()), (2, 0), "{ledger}");
}

/// Takes calls and drops them.
struct Silent;
impl Actor for Silent {
    type Message = Call<Get>;
    fn receive(&mut self, call: Call<Get>, _: &mut Context<Call<Get>>) -> HandlerResult {
        drop(call);
        Ok(())
    }
}

/// A port whose asker has left.
fn closed_port(system: &Rc<TestSystem>) -> ReplyTo<u32> {
    let desk: Desk<Call<Get>> = Desk::open(system);
    drop(desk.actor.ask(Get::default()));
    desk.take().reply_to
}

#[test]
fn when_the_time_is_up_the_question_fails_and_all_replies_are_late() {
    for in_turn in [false, true] {
        let scene = if in_turn { Scene::new(2, chop()) } else { Scene::new(2, scatter()) };
        let get = Get::default();
        let life = get.life.clone();
        let ask = scene.router.ask(get);
        scene.system.advance(SECOND - MS);
        let calls: Vec<_> = scene.desks.iter().map(Desk::take).collect();
        assert!(calls.iter().all(|call| call.reply_to.wanted()));
        scene.system.advance(MS);
        assert!(calls.iter().all(|call| !call.reply_to.wanted()));
        assert_eq!(ask.wait(), Err(AskError::timeout(SECOND)), "the router's, not the asker's");
        assert_eq!(Arc::strong_count(&life), 1 + calls.len(), "the router has kept none");
        for call in calls {
            assert!(call.reply_to.send(1).is_err());
        }
        let asks = scene.end().asks;
        assert_eq!((asks.begun, asks.timed_out, asks.late), (1, 1, 2), "{asks:?}");
    }
}

#[test]
fn an_empty_router_fails_the_question_at_once_and_its_message_is_a_dead_letter() {
    for in_turn in [false, true] {
        let system = Rc::new(TestSystem::with_seed(7));
        let desk: Desk<Call<Get>> = Desk::open(&system);
        let plan = system.router("all").group([desk.actor.clone()]).stay_when_empty();
        let router =
            if in_turn { plan.logic(chop()).spawn() } else { plan.logic(scatter()).spawn() }.unwrap();
        router.remove(&desk.actor).unwrap();
        let before = system.ledger().dead_lettered;
        assert_eq!(router.ask(Get::default()).wait(), Err(AskError::no_routees()));
        // One that is passed on by somebody else.
        let ask = desk.actor.ask(Get::default());
        router.tell(desk.take());
        assert_eq!(ask.wait(), Err(AskError::no_routees()));
        assert_eq!(system.ledger().dead_lettered, before + 2);
        router.stop();
        drop(desk);
        let ledger = finish(system);
        assert_eq!(ledger.asks.undeliverable, 2, "{:?}", ledger.asks);
    }
}

/// What `#[derive(Message)]` would write, by hand.
#[derive(Clone)]
enum Hand {
    Get(Call<Get>),
    Told(u32),
}

impl Answerable for Hand {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        match self {
            Hand::Get(call) => call.fork(attempt),
            Hand::Told(_) => false,
        }
    }
}

impl From<Call<Get>> for Hand {
    fn from(call: Call<Get>) -> Self {
        Hand::Get(call)
    }
}

#[test]
fn what_has_no_port_goes_to_all_by_scatter_gather_and_to_one_by_tail_chopping() {
    for in_turn in [false, true] {
        let system = Rc::new(TestSystem::with_seed(7));
        let (desks, group) = open_desks::<Hand>(&system, 3);
        let plan = system.router("all").group(group).stay_when_empty();
        let router =
            if in_turn { plan.logic(chop()).spawn() } else { plan.logic(scatter()).spawn() }.unwrap();
        router.tell(Hand::Told(7));
        system.advance(2 * SECOND);
        let got = desks.iter().filter(|desk| desk.waiting() == 1);
        assert_eq!(got.count(), if in_turn { 1 } else { 3 });
        // The same message type, with a port, through a hand-written `Answerable`.
        for desk in &desks {
            if desk.waiting() == 1 {
                assert!(matches!(desk.take(), Hand::Told(7)));
            }
        }
        let ask = router.ask(Get::default());
        system.run_until_idle();
        let asked = desks.iter().find(|desk| desk.waiting() == 1).expect("somebody");
        let Hand::Get(call) = asked.take() else { panic!("the question") };
        call.answer(|_| 8);
        assert_eq!(ask.wait(), Ok(8));
        desks.iter().for_each(|desk| {
            router.remove(&desk.actor).unwrap();
        });
        let Err(SendError::NoRoutee(Hand::Told(9))) = router.try_tell(Hand::Told(9)) else {
            panic!("it comes back")
        };
        router.stop();
        drop(desks);
        assert_eq!(finish(system).balance(), 0);
    }
}

// ---- who answered

#[test]
fn who_asks_for_it_is_told_which_routee_has_answered() {
    let scene = Scene::new(3, scatter());
    let ask = scene.router.ask_traced(Get::default());
    answer(&scene.desks[0], 0);
    answer(&scene.desks[1], 5);
    let (reply, routee) = ask.wait().unwrap();
    assert_eq!((reply, routee.to_string()), (5, scene.path(1)));

    let ask = scene.router.ask_traced(Get::default());
    drop(scene.desks[2].take());
    (0..3).for_each(|desk| drop(scene.desks[desk].take()));
    let failed = ask.wait();
    assert!(matches!(&failed, Err(AskError::AllFailed { causes, .. }) if causes.len() == 3), "{failed:?}");
    let asks = scene.end().asks;
    assert_eq!((asks.begun, asks.answered, asks.no_reply), (2, 1, 1), "{asks:?}");
}

#[test]
fn an_actor_is_named_itself_and_of_routers_behind_each_other_the_innermost_names_its_routee() {
    let system = Rc::new(TestSystem::with_seed(7));
    let desk: Desk<Call<Get>> = Desk::open(&system);
    let path = desk.actor.path();
    let named = |target: &ActorRef<Call<Get>>| {
        let ask = target.ask_traced(Get::default());
        answer(&desk, 5);
        ask.wait().unwrap().1
    };
    assert_eq!(named(&desk.actor), path);

    let passes =
        system.router("passes").group([desk.actor.clone()]).logic(RoundRobin::new()).spawn().unwrap();
    assert_eq!(named(&passes).to_string(), "/user/passes", "it takes no part in the answer");
    let over = system.router("over").group([passes.to_ref()]).logic(scatter()).spawn().unwrap();
    assert_eq!(named(&over).to_string(), "/user/passes", "whom it has asked");
    let inner = system.router("inner").group([desk.actor.clone()]).logic(chop()).spawn().unwrap();
    let outer = system.router("outer").group([inner.to_ref()]).logic(scatter()).spawn().unwrap();
    assert_eq!(named(&outer), path);

    // What the inner one says is the cause.
    let ask = outer.ask(Get::default());
    drop(desk.take());
    let failed = causes(ask.wait());
    assert!(
        matches!(&failed[..], [(path, AttemptEnd::Failed(AskError::AllFailed { .. }))] if path == "/user/inner"),
        "{failed:?}"
    );
    [passes, over, inner, outer].iter().for_each(Router::stop);
    drop(desk);
    let ledger = finish(system);
    assert_eq!(
        (ledger.asks.begun, ledger.asks.answered, ledger.asks.pending()),
        (5, 4, 0),
        "{:?}",
        ledger.asks
    );
}

// ---- tail-chopping

#[test]
fn each_routee_is_asked_once_an_interval_after_the_last_in_an_order_by_the_seed() {
    let order = |seed: u64| {
        let system = Rc::new(TestSystem::with_seed(seed));
        let (desks, group) = open_desks::<Call<Get>>(&system, 5);
        let router = system.router("all").group(group).logic(chop()).spawn().unwrap();
        let ask = router.ask(Get::default());
        let mut order = Vec::new();
        for _ in 0..5 {
            system.run_until_idle();
            let asked = |desk: &Desk<Call<Get>>| desk.waiting() == 1;
            let next: Vec<_> = (0..5).filter(|n| asked(&desks[*n]) && !order.contains(n)).collect();
            assert_eq!(next.len(), 1, "one at a time");
            order.extend(next);
            system.advance(99 * MS);
            assert_eq!(desks.iter().filter(|desk| asked(desk)).count(), order.len(), "not early");
            system.advance(MS);
        }
        assert!(desks.iter().all(|desk| desk.waiting() == 1), "each once");
        assert!(answer(&desks[order[4]], 4));
        assert_eq!(ask.wait(), Ok(4));
        router.stop();
        drop(desks);
        finish(system);
        order
    };
    assert_eq!(order(1), order(1));
    let orders: HashSet<_> = (0..20).map(order).collect();
    assert!(orders.len() > 10, "{orders:?}");
}

#[test]
fn an_unanswered_question_asks_one_and_as_many_more_as_intervals_fit() {
    // (within, interval, routees, asked)
    for (within, interval, routees, asked) in
        [(50, 20, 9, 3), (60, 20, 9, 4), (60, 20, 2, 2), (10, 20, 9, 1), (20, 20, 9, 2)]
    {
        let scene = Scene::new(routees, TailChopping::within(within * MS).interval(interval * MS));
        let ask = scene.router.ask(Get::default());
        scene.system.advance(SECOND);
        assert_eq!(scene.asked().len(), asked, "{within} {interval} {routees}");
        assert_eq!(ask.wait(), Err(AskError::timeout(within * MS)));
        scene.end();
    }
}

#[test]
fn a_failed_attempt_starts_the_next_at_once_unless_ticks_are_waited_for() {
    let scene = Scene::new(4, chop());
    let ask = scene.router.ask(Get::default());
    let first = scene.next();
    drop(scene.desks[first].take());
    let second = scene.next();
    scene.system.advance(50 * MS);
    answer(&scene.desks[second], 0);
    let third = scene.next();
    scene.system.advance(99 * MS);
    assert_eq!(scene.next(), third, "the interval counts from the last start");
    scene.system.advance(MS);
    assert_eq!(scene.asked().len(), 2);
    assert_eq!([first, second, third].iter().collect::<HashSet<_>>().len(), 3);
    let fourth = scene.asked().into_iter().find(|desk| *desk != third).unwrap();
    answer(&scene.desks[third], 0);
    answer(&scene.desks[fourth], 0);
    let order: Vec<_> = causes(ask.wait()).into_iter().map(|(path, _)| path).collect();
    assert_eq!(order, [first, second, third, fourth].map(|desk| scene.path(desk)));
    scene.end();

    let scene = Scene::new(2, chop().wait_for_tick());
    let ask = scene.router.ask(Get::default());
    let first = scene.next();
    answer(&scene.desks[first], 0);
    scene.system.advance(99 * MS);
    assert_eq!(scene.asked(), [0; 0]);
    scene.system.advance(MS);
    let second = scene.next();
    assert_ne!(first, second);
    answer(&scene.desks[second], 3);
    assert_eq!(ask.wait(), Ok(3));
    scene.end();
}

#[test]
fn the_first_routee_is_asked_on_the_senders_thread_and_one_that_refuses_makes_the_next_so() {
    /// Refuses all; notes the thread.
    struct Refuses(Arc<Mutex<Vec<std::thread::ThreadId>>>);
    impl Recipient<Call<Get>> for Refuses {
        fn deliver(&self, call: Call<Get>) -> Result<(), SendError<Call<Get>>> {
            self.0.lock().unwrap().push(std::thread::current().id());
            Err(SendError::Full(call))
        }
    }
    let system = System::builder("refused").clock(ManualClock::new()).build().unwrap();
    let threads = Arc::new(Mutex::new(Vec::new()));
    let group = (0..3).map(|_| ActorRef::to_recipient(Refuses(threads.clone())));
    let router = system.router("all").group(group).logic(chop()).spawn().unwrap();
    let ends: Vec<_> = causes(router.ask(Get::default()).wait()).into_iter().map(|(_, end)| end).collect();
    assert_eq!(ends, vec![AttemptEnd::Refused(DeadLetterReason::Full); 3]);
    assert_eq!(*threads.lock().unwrap(), vec![std::thread::current().id(); 3]);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.balance(), ledger.asks.pending()), (0, 0), "{ledger}");
}

#[test]
fn a_stopped_routee_is_a_failed_attempt_and_its_copy_a_dead_letter() {
    let system = System::builder("stopped").clock(ManualClock::new()).build().unwrap();
    let workers: Vec<_> = (0..4).map(|_| system.spawn(|| Silent).unwrap()).collect();
    let adapted = workers.iter().map(|worker| {
        let target = worker.clone();
        // Not watched as an actor, so that the router keeps it.
        ActorRef::to_recipient(Unwatched(target))
    });
    let router = system.router("all").group(adapted).logic(chop()).spawn().unwrap();
    workers.iter().for_each(ActorRef::stop);
    wait_until(|| workers.iter().all(ActorRef::is_closed));
    let before = system.ledger();
    let ends = causes(router.ask(Get::default()).wait());
    assert!(ends.iter().all(|(_, end)| *end == AttemptEnd::Refused(DeadLetterReason::Stopped)), "{ends:?}");
    let after = system.ledger();
    assert_eq!((after.sent - before.sent, after.dead_lettered - before.dead_lettered), (4, 4), "{after}");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

struct Unwatched(ActorRef<Call<Get>>);
impl Recipient<Call<Get>> for Unwatched {
    fn deliver(&self, call: Call<Get>) -> Result<(), SendError<Call<Get>>> {
        match self.0.is_closed() {
            true => Err(SendError::Closed(call)),
            false => {
                self.0.tell(call);
                Ok(())
            }
        }
    }
}

// ---- nothing is left behind

#[test]
fn an_outcome_leaves_nothing_but_the_ports_of_the_losers() {
    for in_turn in [false, true] {
        let scene = if in_turn { Scene::new(3, chop()) } else { Scene::new(3, scatter()) };
        let get = Get::default();
        let life = get.life.clone();
        let ask = scene.router.ask(get);
        scene.system.advance(100 * MS);
        let mut calls: Vec<_> = scene.asked().into_iter().map(|desk| scene.desks[desk].take()).collect();
        let kept = usize::from(in_turn);
        assert_eq!(Arc::strong_count(&life), 1 + calls.len() + kept, "tail-chopping keeps one for the next");
        calls.pop().unwrap().answer(|_| 5);
        assert_eq!(Arc::strong_count(&life), 1 + calls.len());
        assert_eq!(ask.wait(), Ok(5));
        scene.system.advance(2 * SECOND);
        assert!(scene.asked().is_empty(), "no tick comes any more");
        drop(calls);
        scene.end();
    }
}

#[test]
fn an_asker_that_gives_up_is_noticed_with_the_next_attempt() {
    let scene = Scene::new(3, chop());
    let get = Get::default();
    let life = get.life.clone();
    let ask = scene.router.ask(get);
    let call = scene.desks[scene.next()].take();
    drop(ask);
    assert!(!call.reply_to.wanted(), "whoever looks sees it at once");
    scene.system.advance(99 * MS);
    assert_eq!(Arc::strong_count(&life), 3, "the router's copy");
    scene.system.advance(MS);
    assert_eq!(Arc::strong_count(&life), 2);
    assert_eq!(scene.asked(), [0; 0]);
    assert!(call.reply_to.send(1).is_err());
    let asks = scene.end().asks;
    assert_eq!((asks.begun, asks.cancelled, asks.late), (1, 1, 1), "{asks:?}");
}

#[test]
fn an_asker_that_gives_up_is_noticed_with_a_failure_or_a_reply() {
    let scene = Scene::new(3, chop());
    for reply in [0, 5] {
        let get = Get::default();
        let life = get.life.clone();
        let ask = scene.router.ask(get);
        let desk = scene.next();
        drop(ask);
        assert_eq!(
            answer(&scene.desks[desk], reply),
            reply == 0,
            "a success is late, a failure is just heard"
        );
        assert_eq!(Arc::strong_count(&life), 1);
        assert_eq!(scene.asked(), [0; 0]);
    }
    scene.end();
}

// ---- user code that panics

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    Clone,
    Fork,
}

/// Panics in its `Clone` or in its `fork`, the `at`-th time of all messages with this counter.
struct Brittle {
    port: ReplyTo<u32>,
    fault: Fault,
    at: usize,
    times: Arc<AtomicUsize>,
}

impl Brittle {
    fn new(port: ReplyTo<u32>, fault: Fault, at: usize) -> Self {
        Self { port, fault, at, times: Arc::default() }
    }

    fn does(&self, what: Fault) {
        if self.fault == what && self.times.fetch_add(1, SeqCst) + 1 == self.at {
            panic!("planted");
        }
    }
}

impl Clone for Brittle {
    fn clone(&self) -> Self {
        self.does(Fault::Clone);
        Self { port: self.port.clone(), times: self.times.clone(), ..*self }
    }
}

impl Answerable for Brittle {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        self.does(Fault::Fork);
        self.port.fork(attempt)
    }
}

/// Its clones have no port.
#[derive(Debug)]
struct Sole(Option<Call<Get>>);

impl Clone for Sole {
    fn clone(&self) -> Self {
        Sole(None)
    }
}

impl Answerable for Sole {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        self.0.as_mut().is_some_and(|call| call.fork(attempt))
    }
}

impl From<Call<Get>> for Sole {
    fn from(call: Call<Get>) -> Self {
        Sole(Some(call))
    }
}

#[test]
fn an_attempt_whose_clone_has_no_port_is_a_failed_one() {
    let system = Rc::new(TestSystem::with_seed(7));
    let (desks, group) = open_desks::<Sole>(&system, 3);
    let router = system.router("all").group(group).logic(scatter()).spawn().unwrap();
    let ask = router.ask(Get::default());
    system.run_until_idle();
    // Each has its message; only the last one, which is no clone, can answer.
    let mut sole = desks.iter().filter_map(|desk| desk.take().0).collect::<Vec<_>>();
    assert_eq!(sole.len(), 1);
    drop(sole.pop());
    let ends: Vec<_> = causes(ask.wait()).into_iter().map(|(_, end)| end).collect();
    assert_eq!(ends, [AttemptEnd::NoReply, AttemptEnd::NoReply, AttemptEnd::NoReply]);
    drop((desks, router));
    finish(system);
}

/// An ask, and its port for somebody else to pass on.
fn loose_ask(system: &Rc<TestSystem>) -> (ReplyTo<u32>, Ask<u32>) {
    let desk: Desk<ReplyTo<u32>> = Desk::open(system);
    let ask = desk.actor.ask_with(|port| port);
    (desk.take(), ask)
}

#[test]
fn a_panic_on_the_senders_thread_unwinds_to_it_and_leaves_no_message_and_no_question_behind() {
    // The first fork only looks for the port.
    for (fault, at, delivered) in [
        (Fault::Clone, 1, 0),
        (Fault::Clone, 2, 1),
        (Fault::Fork, 1, 0),
        (Fault::Fork, 2, 0),
        (Fault::Fork, 4, 2),
    ] {
        let system = Rc::new(TestSystem::with_seed(7));
        let (desks, group) = open_desks::<Brittle>(&system, 3);
        let router = system.router("all").group(group).logic(scatter()).spawn().unwrap();
        let (port, ask) = loose_ask(&system);
        let before = system.ledger();
        assert_eq!(panic_of(|| router.tell(Brittle::new(port, fault, at))), "planted");
        system.run_until_idle();
        let asked: Vec<_> = desks.iter().filter(|desk| desk.waiting() == 1).collect();
        assert_eq!(asked.len(), delivered);
        // What is under way may still answer.
        let outcome = match asked.last() {
            Some(desk) => {
                desk.take().port.send(5).unwrap();
                ask.wait()
            }
            None => ask.wait(),
        };
        match outcome {
            Ok(5) if delivered > 0 => {}
            Err(AskError::AllFailed { causes, .. }) if delivered == 0 => {
                assert!(causes.iter().all(|(_, end)| *end == AttemptEnd::Panicked), "{causes:?}");
            }
            // Before there was a question.
            Err(AskError::NoReply { .. }) if fault == Fault::Fork && at == 1 => {}
            other => panic!("{other:?}"),
        }
        let lost = system.ledger().dead_lettered - before.dead_lettered;
        assert_eq!(lost as usize, if at == 1 && fault == Fault::Fork { 1 } else { 3 - delivered });
        drop(desks);
        router.stop();
        assert_eq!(finish(system).balance(), 0);
    }
}

#[test]
fn a_clone_that_panics_at_a_tick_is_a_failed_attempt_and_the_next_one_goes() {
    let system = Rc::new(TestSystem::with_seed(7));
    let (desks, group) = open_desks::<Brittle>(&system, 4);
    let router = system.router("all").group(group).logic(chop()).spawn().unwrap();
    let (port, ask) = loose_ask(&system);
    router.tell(Brittle::new(port, Fault::Clone, 2));
    let take = || {
        system.run_until_idle();
        desks.iter().filter(|desk| desk.waiting() == 1).map(Desk::take).collect::<Vec<_>>()
    };
    let first = take();
    system.advance(100 * MS);
    let third = take();
    assert_eq!((first.len(), third.len()), (1, 1));
    drop((first, third));
    let fourth = take();
    assert_eq!(fourth.len(), 1, "each time the next one");
    drop(fourth);
    let Err(AskError::AllFailed { causes, .. }) = ask.wait() else { panic!("all have failed") };
    let ends: Vec<_> = causes.iter().map(|(_, end)| end.clone()).collect();
    let no_reply = AttemptEnd::NoReply;
    assert_eq!(ends, [AttemptEnd::Panicked, no_reply.clone(), no_reply.clone(), no_reply]);
    drop(desks);
    router.stop();
    assert_eq!(finish(system).balance(), 0);
}

#[test]
fn a_first_attempt_of_tail_chopping_that_panics_unwinds_and_fails_the_question() {
    for fault in [Fault::Clone, Fault::Fork] {
        let system = Rc::new(TestSystem::with_seed(7));
        let (desks, group) = open_desks::<Brittle>(&system, 3);
        let router = system.router("all").group(group).logic(chop()).spawn().unwrap();
        let (port, ask) = loose_ask(&system);
        let at = if fault == Fault::Fork { 2 } else { 1 };
        panic_of(|| router.tell(Brittle::new(port, fault, at)));
        let failed = ask.wait();
        assert!(
            matches!(&failed, Err(AskError::AllFailed { causes, .. }) if causes.len() == 1),
            "{failed:?}"
        );
        system.advance(SECOND);
        assert!(desks.iter().all(|desk| desk.waiting() == 0), "nobody is asked later");
        drop(desks);
        router.stop();
        let ledger = finish(system);
        assert_eq!((ledger.dead_lettered, ledger.balance()), (1, 0), "{ledger}");
    }
    let _ = Fault::None;
}

// ---- ends

#[test]
fn when_a_pool_stops_meanwhile_the_question_fails_with_causes() {
    for in_turn in [false, true] {
        let system = System::builder("ends").clock(ManualClock::new()).build().unwrap();
        let (inside, held) = channel();
        let inside = Mutex::new(inside);
        let plan = system.router("pool").pool(3, move |_| Keeps(inside.lock().unwrap().clone()));
        let router =
            if in_turn { plan.logic(chop()).spawn() } else { plan.logic(scatter()).spawn() }.unwrap();
        let ask = router.ask(Get::default());
        let calls: Vec<_> =
            (0..if in_turn { 1 } else { 3 }).map(|_| held.recv_timeout(LONG).unwrap()).collect();
        router.stop();
        wait_until(|| router.is_closed());
        let routees_have_ended =
            || held.try_recv().is_err_and(|error| error == std::sync::mpsc::TryRecvError::Disconnected);
        wait_until(routees_have_ended);
        // The attempts that are under way go on: their messages were handled before.
        drop(calls);
        let failed = causes(ask.wait());
        assert_eq!(failed.len(), 3, "{failed:?}");
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!((ledger.balance(), ledger.asks.pending()), (0, 0), "{ledger}");
    }
}

/// Gives its calls away.
struct Keeps(Sender<Call<Get>>);
impl Actor for Keeps {
    type Message = Call<Get>;
    fn receive(&mut self, call: Call<Get>, _: &mut Context<Call<Get>>) -> HandlerResult {
        let _ = self.0.send(call);
        Ok(())
    }
}

/// Routees that give their calls to the test.
fn kept(count: usize) -> (Vec<ActorRef<Call<Get>>>, Receiver<Call<Get>>) {
    struct Kept(Mutex<Sender<Call<Get>>>);
    impl Recipient<Call<Get>> for Kept {
        fn deliver(&self, call: Call<Get>) -> Result<(), SendError<Call<Get>>> {
            let sent = self.0.lock().unwrap().send(call);
            sent.map_err(|error| SendError::Closed(error.0))
        }
    }
    let (sender, calls) = channel();
    let group = (0..count).map(|_| ActorRef::to_recipient(Kept(Mutex::new(sender.clone())))).collect();
    (group, calls)
}

#[test]
fn a_stopped_router_over_a_group_goes_on_with_what_is_under_way() {
    let clock = ManualClock::new();
    let system = System::builder("ends").clock(clock.clone()).build().unwrap();
    let (group, calls) = kept(2);
    let router = system.router("all").group(group).logic(chop()).spawn().unwrap();
    let ask = router.ask(Get::default());
    let first = calls.recv_timeout(LONG).unwrap();
    router.stop();
    wait_until(|| router.is_closed());
    assert_eq!(router.ask(Get::default()).wait(), Err(AskError::undeliverable()));
    clock.advance(100 * MS);
    calls.recv_timeout(LONG).unwrap().answer(|_| 2);
    assert_eq!(ask.wait(), Ok(2));
    drop(first);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn when_the_system_ends_a_question_whose_ports_are_kept_elsewhere_is_over() {
    for in_turn in [false, true] {
        let system = System::builder("ends").clock(ManualClock::new()).build().unwrap();
        let (group, calls) = kept(2);
        let plan = system.router("all").group(group);
        let router =
            if in_turn { plan.logic(chop()).spawn() } else { plan.logic(scatter()).spawn() }.unwrap();
        let ask = router.ask(Get::default());
        let call = calls.recv_timeout(LONG).unwrap();
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
        assert!(!call.reply_to.wanted());
        assert_eq!(ask.wait(), Err(AskError::timeout(SECOND)), "no timer can ring any more");
    }
}

#[test]
fn a_router_among_its_own_routees_is_a_failed_attempt_and_no_circle() {
    let scene = Scene::new(1, scatter());
    scene.router.add(scene.router.to_ref()).unwrap();
    let reasons = Arc::new(Mutex::new(Vec::new()));
    let seen = reasons.clone();
    let _subscription = scene.system.dead_letters().subscribe(move |letter| {
        seen.lock().unwrap().push((letter.recipient.to_string(), letter.reason));
    });
    let ask = scene.router.ask(Get::default());
    assert_eq!(scene.asked(), [0]);
    assert_eq!(scene.desks[0].waiting(), 1, "once, and not by way of the router again");
    assert!(answer(&scene.desks[0], 5));
    assert_eq!(ask.wait(), Ok(5));
    assert_eq!(*reasons.lock().unwrap(), [("/user/all".to_owned(), DeadLetterReason::Cycle)]);
    scene.end();
}

#[test]
fn a_question_that_a_routee_sends_back_to_its_router_is_a_failed_attempt_and_asks_nobody_again() {
    let scene = Scene::new(2, scatter());
    let reasons = Arc::new(Mutex::new(Vec::new()));
    let seen = reasons.clone();
    let _subscription = scene.system.dead_letters().subscribe(move |letter| {
        seen.lock().unwrap().push((letter.recipient.to_string(), letter.reason));
    });
    let ask = scene.router.ask(Get::default());
    scene.router.tell(scene.desks[0].take());
    assert_eq!(scene.asked(), [1]);
    assert_eq!(scene.desks[1].waiting(), 1);
    assert_eq!(*reasons.lock().unwrap(), [("/user/all".to_owned(), DeadLetterReason::Stopped)]);
    drop(scene.desks[1].take());
    let sent_back = (scene.path(0), AttemptEnd::Refused(DeadLetterReason::Stopped));
    assert_eq!(causes(ask.wait()), [sent_back, (scene.path(1), AttemptEnd::NoReply)]);
    scene.end();
}

#[test]
fn no_time_and_no_interval_are_refused_when_the_router_is_created() {
    let system = System::builder("checked").build().unwrap();
    let (group, _calls) = kept(1);
    let plan = |name: &str| system.router(name).group(group.clone());
    let errors = [
        plan("a").logic(ScatterGatherFirstCompleted::within(Duration::ZERO)).spawn().unwrap_err(),
        plan("b").logic(TailChopping::within(Duration::ZERO)).spawn().unwrap_err(),
        plan("c").logic(TailChopping::new().interval(Duration::ZERO)).spawn().unwrap_err(),
    ];
    let texts = errors.map(|error| error.to_string());
    assert!(texts[0].contains("/user/a: within 0") && texts[1].contains("within 0"), "{texts:?}");
    assert!(texts[2].contains("interval 0: must be more than zero"), "{texts:?}");
}

#[test]
fn time_without_end_is_time_enough() {
    let clock = ManualClock::new();
    let system = System::builder("endless").clock(clock.clone()).build().unwrap();
    let (group, calls) = kept(2);
    let logic = TailChopping::within(Duration::MAX).interval(Duration::MAX);
    let router = system.router("all").group(group).logic(logic).spawn().unwrap();
    let ask = router.ask(Get::default());
    clock.advance(Duration::from_secs(1 << 40));
    calls.recv_timeout(LONG).unwrap().answer(|_| 1);
    assert_eq!(ask.wait(), Ok(1));
    assert!(calls.try_recv().is_err(), "nobody else was asked");
}

#[test]
fn a_hundred_thousand_questions_in_flight_do_no_harm() {
    const QUESTIONS: usize = 100_000;
    for in_turn in [false, true] {
        let clock = ManualClock::new();
        let system = System::builder("many").clock(clock.clone()).build().unwrap();
        let (group, calls) = kept(2);
        let plan = system.router("all").group(group);
        let router =
            if in_turn { plan.logic(chop()).spawn() } else { plan.logic(scatter()).spawn() }.unwrap();
        let life = Get::default().life;
        let asks: Vec<_> = (0..QUESTIONS).map(|_| router.ask(Get { life: life.clone() })).collect();
        let mut calls: Vec<_> = calls.try_iter().collect();
        assert_eq!(calls.len(), if in_turn { QUESTIONS } else { 2 * QUESTIONS });
        // A half of the questions is answered, each by one of its attempts; what is left is late.
        let late = calls.split_off(calls.len() / 2);
        calls.into_iter().enumerate().for_each(|(n, call)| call.answer(|_| 1 + (n % 2) as u32));
        clock.advance(SECOND);
        late.into_iter().for_each(|call| call.answer(|_| 3));
        let outcomes: Vec<_> = asks.into_iter().map(Ask::wait).collect();
        let answered = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        let timed_out = outcomes.iter().filter(|outcome| **outcome == Err(AskError::timeout(SECOND))).count();
        assert_eq!((answered, timed_out), (QUESTIONS / 2, QUESTIONS / 2));
        assert_eq!(Arc::strong_count(&life), 1, "no copy is left");
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!(ledger.balance(), 0, "{ledger}");
        let asks = ledger.asks;
        assert_eq!(
            (asks.begun, asks.answered, asks.timed_out, asks.pending()),
            (QUESTIONS as u64, QUESTIONS as u64 / 2, QUESTIONS as u64 / 2, 0)
        );
        assert_eq!(asks.late, if in_turn { QUESTIONS as u64 / 2 } else { 3 * QUESTIONS as u64 / 2 });
    }
}

#[test]
fn a_router_value_behind_another_one_asks_its_own_routees() {
    let system = Rc::new(TestSystem::with_seed(7));
    let (desks, group) = open_desks(&system, 2);
    let inner = RouterValue::new(&system, scatter()).unwrap().with_routees(group);
    let behind = ActorRef::from_fn(move |call: Call<Get>| inner.route(call));
    let outer = RouterValue::new(&system, scatter()).unwrap().add_routee(behind);
    let front = ActorRef::from_fn(move |call: Call<Get>| outer.route(call));
    let ask = front.ask(Get::default());
    system.run_until_idle();
    assert!(answer(&desks[1], 5));
    assert_eq!(ask.wait(), Ok(5));
    desks.iter().for_each(|desk| desk.actor.stop());
}

#[test]
fn a_question_in_the_envelope_of_its_key_is_asked_like_any_other() {
    let system = Rc::new(TestSystem::with_seed(7));
    let (desks, group) = open_desks::<Keyed<u64, Call<Get>>>(&system, 2);
    let router = system.router("all").group(group).logic(scatter()).spawn().unwrap();
    let ask = router.ask_with(|reply_to| Keyed { key: 1, message: Call::new(Get::default(), reply_to) });
    for (desk, reply) in desks.iter().zip([0, 5]) {
        desk.take().into_message().answer(|_| reply);
    }
    assert_eq!(ask.wait(), Ok(5), "the first success");
    router.stop();
    drop((desks, router));
    assert_eq!(finish(system).asks.pending(), 0);
}

#[test]
fn of_a_question_that_is_broadcast_any_first_reply_is_the_answer_and_the_others_are_late() {
    let scene = Scene::new(3, Broadcast);
    let ask = scene.router.ask(Get::default());
    assert_eq!(scene.asked(), [0, 1, 2]);
    assert!(answer(&scene.desks[1], 0), "a success or not");
    assert_eq!(ask.wait(), Ok(0));
    assert!(!answer(&scene.desks[0], 5) && !answer(&scene.desks[2], 6));
    let ledger = scene.end();
    assert_eq!((ledger.asks.late, ledger.dead_lettered), (2, 0), "{ledger}");
}

#[test]
fn unless_told_otherwise_there_are_five_seconds_and_ten_milliseconds_between_attempts() {
    for in_turn in [false, true] {
        let scene = match in_turn {
            false => Scene::new(3, ScatterGatherFirstCompleted::new()),
            true => Scene::new(3, TailChopping::new()),
        };
        let ask = scene.router.ask(Get::default());
        for asked in [1, 2, 3] {
            assert_eq!(scene.asked().len(), if in_turn { asked } else { 3 });
            scene.system.advance(10 * MS);
        }
        scene.system.advance(5 * SECOND - 31 * MS);
        assert!(scene.desks.iter().all(|desk| desk.got.lock().unwrap()[0].reply_to.wanted()));
        scene.system.advance(MS);
        assert_eq!(ask.wait(), Err(AskError::timeout(5 * SECOND)));
        scene.desks.iter().for_each(|desk| drop(desk.take()));
        scene.end();
    }
}

#[test]
fn the_time_is_up_when_it_is_although_an_attempt_is_still_on_its_way() {
    let clock = ManualClock::new();
    let system = System::builder("slow").clock(clock.clone()).build().unwrap();
    let gate: Arc<Mutex<()>> = Arc::default();
    let (enter, entered) = channel();
    let slow = || {
        let (gate, enter) = (gate.clone(), enter.clone());
        ActorRef::from_fn(move |call: Call<Get>| {
            enter.send(()).expect("it is kept");
            drop(gate.lock());
            drop(call);
        })
    };
    let router = system.router("all").group([slow(), slow()]).logic(chop()).spawn().unwrap();
    let (pass_on, calls) = channel();
    let ask = ActorRef::<Call<Get>>::from_fn(move |call| pass_on.send(call).expect("it is kept"))
        .ask(Get::default());
    let call = calls.recv().unwrap();
    let closed = gate.lock().unwrap();
    let to_router = router.to_ref();
    let sender = std::thread::spawn(move || to_router.tell(call));
    entered.recv_timeout(LONG).unwrap();
    // The second attempt is due, and cannot begin before the first is made.
    clock.advance(100 * MS);
    clock.advance(SECOND);
    let mut ask = std::pin::pin!(ask);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut outcome = None;
    wait_until(|| {
        if let std::task::Poll::Ready(over) = ask.as_mut().poll(&mut cx) {
            outcome = Some(over);
        }
        outcome.is_some()
    });
    assert_eq!(outcome, Some(Err(AskError::timeout(SECOND))));
    drop(closed);
    sender.join().unwrap();
    assert_eq!(entered.try_iter().count(), 0, "nobody is asked any more");
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.balance(), ledger.asks.pending()), (0, 0), "{ledger}");
}
