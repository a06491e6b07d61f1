//! How long senders and askers wait for room: by the system's clock, and no longer than a question's own limit.

use crate::support::{LONG, panic_of, wait_until};
use pointsman::ask::Expiring;
use pointsman::pattern::Backoff;
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, Keyed, RoundRobin, RouteContext, Routee, Routees, RouterPlan, RoutingLogic,
    ScatterGatherFirstCompleted,
};
use pointsman::time::ManualClock;
use pointsman::topology::{SendMode, SendReport};
use pointsman::{DeadLetterReason, SendError};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// So late that the clock, which tests advance without a pause, does not come there while a thread is woken.
const FAR: Duration = Duration::from_secs(1_000_000);

#[derive(Debug, Clone, PartialEq)]
struct Double(u32);

impl Request for Double {
    type Reply = u32;
}

#[derive(Clone, Message)]
enum Msg {
    Double(Call<Double>),
    Hold(Sender<()>, Arc<Mutex<Receiver<()>>>),
    Note(u32),
    Late(Expiring<u32>),
    Grow,
}

/// The number that is not doubled: its question is dropped.
const IGNORED: u32 = 99;
/// What a clerk notes whose mailbox has got more room.
const GROWN: u32 = 98;

/// Answers, notes what it has got, and can be held.
struct Clerk(Sender<u32>);

impl Actor for Clerk {
    type Message = Msg;
    fn receive(&mut self, message: Msg, ctx: &mut Context<Msg>) -> HandlerResult {
        match message {
            Msg::Double(call) => {
                self.0.send(call.request.0)?;
                match call.request.0 {
                    IGNORED => drop(call),
                    _ => call.answer(|Double(number)| 2 * number),
                }
            }
            Msg::Hold(inside, release) => {
                inside.send(())?;
                let _ = release.lock().expect("nobody panics with it").recv();
            }
            Msg::Note(number) => self.0.send(number)?,
            Msg::Late(number) => self.0.send(number.into_inner())?,
            Msg::Grow => {
                ctx.set_mailbox_capacity(8);
                self.0.send(GROWN)?;
            }
        }
        Ok(())
    }
}

/// Holds a clerk in its handler until what is returned sends or is dropped.
fn hold(clerk: &ActorRef<Msg>) -> Sender<()> {
    let (inside, is_inside) = channel();
    let (release, released) = channel();
    clerk.tell(Msg::Hold(inside, Arc::new(released.into())));
    is_inside.recv_timeout(LONG).expect("the handler runs");
    release
}

/// A clerk with room for one message, who is held and has that one.
struct Office {
    system: System,
    clock: ManualClock,
    clerk: ActorRef<Msg>,
    release: Sender<()>,
    seen: Receiver<u32>,
    letters: Receiver<DeadLetterReason>,
    _subscription: pointsman::events::Subscription,
}

impl Office {
    fn new(limit: Duration) -> Self {
        let clock = ManualClock::new();
        let builder = System::builder("office").clock(clock.clone());
        let system = builder.dispatcher("alone", Dispatcher::pinned()).build().expect("sound");
        let (sender, seen) = channel();
        let (letter, letters) = channel();
        let subscription = system.dead_letters().subscribe(move |dead| _ = letter.send(dead.reason));
        let clerk = system
            .actor("clerk")
            .mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(limit)))
            .spawn(move || Clerk(sender.clone()))
            .expect("the name is free");
        let release = hold(&clerk);
        clerk.tell(Msg::Note(0));
        Self { system, clock, clerk, release, seen, letters, _subscription: subscription }
    }

    /// Runs on a thread, while time passes until it is over.
    fn while_time_passes<R: Send + 'static>(&self, run: impl FnOnce() -> R + Send + 'static) -> R {
        let thread = thread::spawn(run);
        wait_until(|| {
            self.clock.advance(SECOND);
            thread.is_finished()
        });
        thread.join().expect("no panic")
    }

    /// Lets the clerk go on: only these are handled. As many messages were dead letters, since there was no room.
    fn end(self, handled: &[u32], full: usize) -> pointsman::Ledger {
        drop(self.release);
        wait_until(|| self.system.ledger().queued == 0);
        let ledger = self.system.shutdown(LONG);
        let mut seen: Vec<_> = self.seen.try_iter().collect();
        seen.sort();
        assert_eq!(seen, handled);
        let letters: Vec<_> = self.letters.try_iter().filter(|it| *it == DeadLetterReason::Full).collect();
        assert_eq!(letters.len(), full);
        let ledger = ledger.expect("nothing is stuck");
        assert_eq!((ledger.balance(), ledger.asks.pending()), (0, 0), "{ledger}");
        ledger
    }
}

#[test]
fn a_sender_waits_for_room_by_the_systems_clock() {
    let office = Office::new(3600 * SECOND);
    let clerk = office.clerk.clone();
    let refused = office.while_time_passes(move || clerk.try_tell(Msg::Note(1)));
    assert!(matches!(refused, Err(SendError::Full(Msg::Note(1)))), "{refused:?}");
    let clerk = office.clerk.clone();
    let refused = office.while_time_passes(move || clerk.send_by(Msg::Note(1), SendMode::Wait));
    assert!(matches!(refused, (SendReport { full: 1, .. }, Err(_))), "{refused:?}");
    let clerk = office.clerk.clone();
    let refused = office.while_time_passes(move || clerk.send_within(Msg::Note(1), 7200 * SECOND));
    assert!(matches!(refused, Err(SendError::Full(Msg::Note(1)))), "{refused:?}");
    let ledger = office.end(&[0], 0);
    assert_eq!(ledger.handed_back, 3, "{ledger}");
}

#[test]
fn a_sender_whose_time_stands_still_waits_until_there_is_room() {
    let office = Office::new(Duration::from_nanos(1));
    let (clerk, another) = (office.clerk.clone(), office.clerk.clone());
    let first = thread::spawn(move || clerk.try_tell(Msg::Note(1)).is_ok());
    let second = thread::spawn(move || another.send_by(Msg::Note(2), SendMode::Wait).1.is_ok());
    // The handler is held for longer than the limit, by the machine's clock.
    let before = std::time::Instant::now();
    wait_until(|| before.elapsed() > Duration::from_millis(20));
    office.release.send(()).expect("the clerk is held");
    assert_eq!((first.join().ok(), second.join().ok()), (Some(true), Some(true)));
    let mut seen: Vec<_> = (0..3).map(|_| office.seen.recv_timeout(LONG).expect("handled")).collect();
    seen.sort();
    assert_eq!(seen, [0, 1, 2]);
    office.end(&[], 0);
}

#[test]
fn the_limit_of_a_question_bounds_its_wait_for_room() {
    let office = Office::new(Duration::MAX);
    let timeout = AskError::timeout(SECOND);
    let clerk = office.clerk.clone();
    let asked = office.while_time_passes(move || clerk.ask(Double(1)).within(SECOND).wait());
    assert_eq!(asked, Err(timeout.clone()));
    let clerk = office.clerk.clone();
    let asked = office.while_time_passes(move || clerk.ask_within(Double(2), SECOND).wait());
    assert_eq!(asked, Err(timeout.clone()));
    let clerk = office.clerk.clone();
    let asked = office.while_time_passes(move || clerk.ask_or_back(Double(3)).within(SECOND).wait());
    let failure = asked.expect_err("no time");
    assert_eq!((failure.error, failure.message), (timeout.clone(), Double(3)));
    let clerk = office.clerk.clone();
    let asked = office.while_time_passes(move || Asker::new().ask(&clerk, Double(4)).within(SECOND).wait());
    assert_eq!(asked, Err(timeout));
    let ledger = office.end(&[0], 4);
    assert_eq!((ledger.asks.timed_out, ledger.dead_lettered), (4, 4), "{ledger}");
}

#[test]
fn it_does_so_through_routers_too() {
    let office = Office::new(Duration::MAX);
    let one =
        office.system.router("one").group([office.clerk.clone()]).logic(RoundRobin::new()).spawn().unwrap();
    let all = office.system.router("all").group([office.clerk.clone()]).logic(Broadcast).spawn().unwrap();
    for router in [one.to_ref(), all.to_ref(), office.clerk.contramap(|it: Msg| it)] {
        let asked = office.while_time_passes(move || router.ask(Double(1)).within(SECOND).wait());
        assert_eq!(asked, Err(AskError::timeout(SECOND)));
    }
    let ledger = office.end(&[0], 3);
    assert_eq!(ledger.asks.timed_out, 3, "{ledger}");
}

#[test]
fn it_does_so_for_requests_by_the_topologys_verbs() {
    let office = Office::new(Duration::MAX);
    let clerk = office.clerk.clone();
    let asked = office.while_time_passes(move || clerk.request(Double(1)).within(SECOND).first().wait());
    assert_eq!(asked, Err(AskError::timeout(SECOND)));
    let clerk = office.clerk.clone();
    let asked = office.while_time_passes(move || clerk.request(Double(2)).within(SECOND).all().wait());
    assert_eq!(asked, Ok(vec![Err(AskError::timeout(SECOND))]));
    // Through a router that is told inside.
    let router =
        office.system.router("one").group([office.clerk.clone()]).logic(RoundRobin::new()).spawn().unwrap();
    let asked =
        office.while_time_passes(move || router.to_ref().request(Double(3)).within(SECOND).first().wait());
    assert_eq!(asked, Err(AskError::timeout(SECOND)));
    office.end(&[0], 3);
}

/// Asks from a thread of its own, by `ask_within` and by `request`.
struct Asks(ActorRef<Msg>, Sender<Result<u32, AskError>>);

impl Actor for Asks {
    type Message = Option<Result<u32, AskError>>;
    fn receive(&mut self, message: Self::Message, ctx: &mut Context<Self::Message>) -> HandlerResult {
        match message {
            None => {
                ctx.ask_within(&self.0, Double(1), SECOND, Some);
                self.0.request(Double(2)).within(SECOND).any_in(ctx, Some);
            }
            Some(outcome) => self.1.send(outcome)?,
        }
        Ok(())
    }
}

#[test]
fn an_actor_that_asks_waits_no_longer_either() {
    let office = Office::new(Duration::MAX);
    let (sender, outcomes) = channel();
    let clerk = office.clerk.clone();
    let asks = office
        .system
        .actor("asks")
        .dispatcher("alone")
        .spawn(move || Asks(clerk.clone(), sender.clone()))
        .expect("the name is free");
    let outcomes = office.while_time_passes(move || {
        asks.tell(None);
        [outcomes.recv_timeout(LONG), outcomes.recv_timeout(LONG)]
    });
    let timeout = || Ok(Err(AskError::timeout(SECOND)));
    assert_eq!(outcomes, [timeout(), timeout()]);
    office.end(&[0], 2);
}

#[test]
fn a_mailbox_whose_own_limit_is_over_first_makes_the_question_undeliverable() {
    let office = Office::new(SECOND);
    let clerk = office.clerk.clone();
    let asked = office.while_time_passes(move || clerk.ask(Double(1)).within(FAR).wait());
    assert_eq!(asked, Err(AskError::undeliverable()));
    let clerk = office.clerk.clone();
    let asked = office.while_time_passes(move || clerk.ask(Double(1)).wait());
    assert_eq!(asked, Err(AskError::undeliverable()));
    let ledger = office.end(&[0], 2);
    assert_eq!(ledger.asks.undeliverable, 2, "{ledger}");
}

#[test]
fn a_question_that_finds_room_in_time_is_answered() {
    let office = Office::new(Duration::MAX);
    let (clerk, another) = (office.clerk.clone(), office.clerk.clone());
    let limited = thread::spawn(move || clerk.ask(Double(4)).within(SECOND).wait());
    let unlimited = thread::spawn(move || another.ask(Double(5)).wait());
    office.release.send(()).expect("the clerk is held");
    assert_eq!(limited.join().expect("no panic"), Ok(8));
    assert_eq!(unlimited.join().expect("no panic"), Ok(10));
    let ledger = office.end(&[0, 4, 5], 0);
    assert_eq!((ledger.asks.answered, ledger.dead_lettered), (2, 0), "{ledger}");
}

#[test]
fn a_question_that_is_given_up_before_there_is_room_is_a_dead_letter() {
    let office = Office::new(Duration::MAX);
    let kept = office.clerk.ask(Double(1));
    let ledger = office.system.ledger();
    assert_eq!((ledger.dead_lettered, ledger.asks.pending()), (0, 1), "{ledger}");
    // It counts as sent only when it is offered again, or given up.
    let sent = ledger.sent;
    drop(kept);
    let ledger = office.system.ledger();
    assert_eq!((ledger.dead_lettered, ledger.sent), (1, sent + 1), "{ledger}");
    // User code that unwinds while the question waits gives it up, too.
    let clerk = office.clerk.clone();
    assert_eq!(
        panic_of(move || {
            let _ask = clerk.ask(Double(2));
            panic!("planted");
        }),
        "planted"
    );
    let ledger = office.end(&[0], 2);
    assert_eq!((ledger.asks.cancelled, ledger.dead_lettered), (2, 2), "{ledger}");
}

/// Chooses the first routee, and says so; the next routee for each that refuses.
struct First(Mutex<Sender<()>>);

impl First {
    fn choose(&self, routees: usize, cx: &RouteContext<'_>) -> Option<usize> {
        let _ = self.0.lock().expect("nobody panics with it").send(());
        if cx.refusals() < routees { Some(cx.refusals()) } else { None }
    }
}

impl RoutingLogic<Msg> for First {
    fn select(&self, _: &Msg, routees: &Routees<Msg>, cx: &RouteContext<'_>) -> Option<usize> {
        self.choose(routees.len(), cx)
    }
}

/// A message of a keyed pool.
type Mail = Keyed<u32, Msg>;

/// The key of all messages to a keyed pool.
const KEY: u32 = 7;

fn mail(message: Msg) -> Mail {
    Keyed { key: KEY, message }
}

fn doubled_by_key(reply_to: ReplyTo<u32>) -> Mail {
    mail(Msg::Double(Call::new(Double(5), reply_to)))
}

impl RoutingLogic<Mail> for First {
    fn select(&self, message: &Mail, routees: &Routees<Mail>, cx: &RouteContext<'_>) -> Option<usize> {
        assert_eq!(message.key, KEY);
        self.choose(routees.len(), cx)
    }
}

/// A pool of clerks. Each has room for one message, is held and has that message. A clerk that leaves does so at once.
struct Pool<M: Send + 'static = Msg> {
    system: System,
    router: Router<M>,
    members: Vec<ActorRef<M>>,
    /// The same, for messages without a key.
    routees: Vec<ActorRef<Msg>>,
    /// What releases each.
    held: Vec<Sender<()>>,
    chosen: Receiver<()>,
    seen: Receiver<u32>,
    letters: Receiver<DeadLetterReason>,
    _subscription: pointsman::events::Subscription,
}

type MakeClerk = Box<dyn Fn(&mut Context<Msg>) -> Clerk + Send + Sync>;

impl Pool {
    fn new(size: usize, logic: impl FnOnce(First) -> Box<dyn RoutingLogic<Msg>>) -> Self {
        Self::on("alone", size, logic)
    }

    /// Of routees on this dispatcher: each has a thread of its own "alone", and all share workers in a "crew".
    fn on(dispatcher: &str, size: usize, logic: impl FnOnce(First) -> Box<dyn RoutingLogic<Msg>>) -> Self {
        let plan = |system: &System, make: MakeClerk| system.router("pool").pool(size, make);
        Self::build(dispatcher, plan, logic, |message| message)
    }
}

impl Pool<Mail> {
    fn keyed(size: usize) -> Self {
        let plan = |system: &System, make: MakeClerk| system.router("pool").keyed_pool(size, make);
        Self::build("alone", plan, |first| first, mail)
    }
}

impl<M: Send + 'static> Pool<M> {
    fn build<L: RoutingLogic<M>>(
        dispatcher: &str,
        plan: impl FnOnce(&System, MakeClerk) -> RouterPlan<M, RoundRobin>,
        logic: impl FnOnce(First) -> L,
        enclose: fn(Msg) -> M,
    ) -> Self {
        let builder = System::builder("pool").dispatcher("alone", Dispatcher::pinned());
        // A thread for each that is held, and some more.
        let crew = Dispatcher::work_stealing().threads(4);
        let system = builder.dispatcher("crew", crew).build().expect("sound");
        let (letter, letters) = channel();
        let subscription = system.dead_letters().subscribe(move |dead| _ = letter.send(dead.reason));
        let ((sender, seen), (choice, chosen)) = (channel(), channel());
        let sender = Mutex::new(sender);
        let make: MakeClerk = Box::new(move |_| Clerk(sender.lock().expect("nobody panics with it").clone()));
        let router = plan(&system, make)
            .logic(logic(First(choice.into())))
            .mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::MAX)))
            .leave_within(Duration::ZERO)
            .stay_when_empty()
            .dispatcher(dispatcher)
            .spawn()
            .expect("the name is free");
        let members = router.routees().expect("it lives");
        let routees: Vec<_> = members.iter().map(|routee| routee.contramap(enclose)).collect();
        let held = routees.iter().map(hold).collect();
        routees.iter().for_each(|routee| routee.tell(Msg::Note(0)));
        Self { system, router, members, routees, held, chosen, seen, letters, _subscription: subscription }
    }

    /// Asks on a thread, and returns when the question waits at the first routee.
    fn asks<R: Send + 'static>(
        &self,
        ask: impl FnOnce(&SystemRef, ActorRef<M>) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let (system, router) = (self.system.handle().clone(), self.router.to_ref());
        let asking = thread::spawn(move || ask(&system, router));
        // The first is held, so that the question finds it full whatever becomes of the table meanwhile.
        self.is_chosen();
        asking
    }

    /// Returns when a routee is chosen once more.
    fn is_chosen(&self) {
        self.chosen.recv_timeout(LONG).expect("there is a message to choose a routee for");
    }

    /// Has the first of those that are left leave without handling anything. The others are held, and full.
    fn next_leaves(&mut self) {
        let next = self.routees.len() - self.held.len();
        assert!(self.router.remove(&self.members[next]).expect("it lives"));
        drop(self.held.remove(0));
    }

    /// Lets the second routee handle what it has, and then has the first leave without handling anything.
    fn first_leaves(&mut self) {
        assert!(self.router.remove(&self.members[0]).expect("it lives"));
        while self.held.len() > 1 {
            drop(self.held.pop());
            assert_eq!(self.seen.recv_timeout(LONG), Ok(0));
            // It will have room for the question and for what the first leaves behind.
            self.routees[self.held.len()].tell(Msg::Grow);
            assert_eq!(self.seen.recv_timeout(LONG), Ok(GROWN));
        }
        drop(self.held.pop());
        self.has_left(0);
    }

    /// Returns when this routee has ended. Its remaining messages lie at another routee by then, or are dead letters.
    fn has_left(&self, index: usize) {
        self.routees[index].when_ended().within(LONG).wait().expect("it leaves");
    }

    /// Returns the other handled messages, in the order of the numbers, and the dead letters. All that have left have ended: what
    /// such a one is just about to hand on is in no mailbox, and would be missed here.
    fn end(self) -> (Vec<u32>, Vec<DeadLetterReason>, pointsman::Ledger) {
        drop(self.held);
        wait_until(|| self.system.ledger().queued == 0);
        let ledger = self.system.shutdown(LONG).expect("nothing is stuck");
        assert_eq!((ledger.balance(), ledger.asks.pending()), (0, 0), "{ledger}");
        let mut seen: Vec<_> = self.seen.try_iter().collect();
        seen.sort();
        (seen, self.letters.try_iter().collect(), ledger)
    }
}

/// Asks from a thread of its own, and passes on what comes.
struct AsksPool(ActorRef<Msg>, Sender<Result<u32, AskError>>);

impl Actor for AsksPool {
    type Message = Option<Result<u32, AskError>>;
    fn receive(&mut self, message: Self::Message, ctx: &mut Context<Self::Message>) -> HandlerResult {
        match message {
            None => ctx.ask_within(&self.0, Double(5), LONG, Some),
            Some(outcome) => self.1.send(outcome)?,
        }
        Ok(())
    }
}

type Way = fn(&SystemRef, ActorRef<Msg>) -> Result<u32, AskError>;

fn an_actor_asks(system: &SystemRef, target: ActorRef<Msg>) -> Result<u32, AskError> {
    let (sender, outcomes) = channel();
    let asks = system
        .actor("asks")
        .dispatcher("alone")
        .spawn(move || AsksPool(target.clone(), sender.clone()))
        .expect("the name is free");
    asks.tell(None);
    // Until then it does not handle what it is told.
    outcomes.recv_timeout(LONG).expect("it waits no longer")
}

#[test]
fn a_question_that_waits_at_a_routee_that_leaves_goes_to_another_one() {
    let ways: [Way; 6] = [
        |_, router| router.ask(Double(5)).within(LONG).wait(),
        |_, router| router.ask(Double(5)).wait(),
        |_, router| Asker::new().ask(&router, Double(5)).within(LONG).wait(),
        |_, router| router.contramap(|it: Msg| it).ask(Double(5)).within(LONG).wait(),
        |_, router| router.request(Double(5)).within(LONG).first().wait(),
        an_actor_asks,
    ];
    for way in ways {
        let mut pool = Pool::new(2, |first| Box::new(first));
        let asking = pool.asks(way);
        pool.first_leaves();
        assert_eq!(asking.join().expect("no panic"), Ok(10));
        let (seen, letters, _) = pool.end();
        // The messages in the first routee's mailbox go to the second, too.
        assert_eq!((seen, letters), (vec![0, 5], vec![]));
    }
}

#[test]
fn what_a_routee_leaves_behind_waits_for_room_at_another_one_beside_a_question() {
    let mut pool = Pool::new(2, |first| Box::new(first));
    let asking = pool.asks(|_, router| router.ask(Double(5)).within(LONG).wait());
    pool.next_leaves();
    // The question, and what the first had in its mailbox. The second has no room for either before it is released, and
    // for one of them at a time then.
    pool.is_chosen();
    pool.is_chosen();
    drop(pool.held.pop());
    assert_eq!(asking.join().expect("no panic"), Ok(10));
    pool.has_left(0);
    let (seen, letters, _) = pool.end();
    assert_eq!((seen, letters), (vec![0, 0, 5], vec![]));
}

#[test]
fn what_a_routee_on_a_worker_leaves_behind_is_a_dead_letter_where_there_is_no_room() {
    let mut pool = Pool::on("crew", 2, |first| Box::new(first));
    let asking = pool.asks(|_, router| router.ask(Double(5)).within(LONG).wait());
    pool.next_leaves();
    // A worker must not wait for room, as the asker does.
    pool.has_left(0);
    assert_eq!(pool.letters.recv_timeout(LONG), Ok(DeadLetterReason::Stopped));
    drop(pool.held.pop());
    assert_eq!(asking.join().expect("no panic"), Ok(10));
    let (seen, letters, _) = pool.end();
    // The second had a message of its own.
    assert_eq!((seen, letters), (vec![0, 5], vec![]));
}

#[test]
fn a_question_that_waits_at_a_routee_of_a_keyed_pool_that_leaves_goes_to_another_one() {
    let ways: [Way; 6] = [
        |_, router| router.ask(Double(5)).within(LONG).wait(),
        |_, router| router.ask(Double(5)).wait(),
        |_, router| Asker::new().ask(&router, Double(5)).within(LONG).wait(),
        |_, router| router.request(Double(5)).within(LONG).first().wait(),
        an_actor_asks,
        // A message with a deadline waits in the same way, and has no answer.
        |_, router| {
            router.tell_within(5, LONG);
            Ok(10)
        },
    ];
    for way in ways {
        let mut pool = Pool::keyed(2);
        let asking = pool.asks(move |system, router| way(system, router.contramap(mail)));
        pool.first_leaves();
        assert_eq!(asking.join().expect("no panic"), Ok(10));
        let (seen, letters, _) = pool.end();
        // The messages in the first routee's mailbox have lost their keys.
        assert_eq!((seen, letters), (vec![5], vec![DeadLetterReason::Stopped]));
    }
}

#[test]
fn a_question_to_a_keyed_pool_goes_on_each_time_that_its_routee_leaves() {
    let mut pool = Pool::keyed(3);
    let asking = pool.asks(|_, router| router.ask_with(doubled_by_key).within(LONG).wait());
    for index in 0..2 {
        pool.next_leaves();
        pool.is_chosen();
        pool.has_left(index);
    }
    drop(pool.held.pop());
    assert_eq!(asking.join().expect("no panic"), Ok(10));
    let (seen, letters, _) = pool.end();
    // The third had a message of its own.
    assert_eq!((seen, letters), (vec![0, 5], vec![DeadLetterReason::Stopped; 2]));
}

#[test]
fn a_question_that_waits_at_the_last_routee_of_a_keyed_pool_is_told_that_there_is_none() {
    let mut pool = Pool::keyed(1);
    let asking = pool.asks(|_, router| router.ask_with(doubled_by_key).within(LONG).wait());
    pool.first_leaves();
    assert_eq!(asking.join().expect("no panic"), Err(AskError::no_routees()));
    let (seen, letters, ledger) = pool.end();
    let unrouted = letters.iter().filter(|it| **it == DeadLetterReason::NoRoutee).count();
    assert_eq!((seen.len(), letters.len(), unrouted), (0, 2, 1), "{letters:?}");
    assert_eq!(ledger.asks.undeliverable, 1, "{ledger}");
}

#[test]
fn a_message_with_a_deadline_that_waits_at_a_routee_that_leaves_goes_to_another_one() {
    let mut pool = Pool::new(2, |first| Box::new(first));
    let telling = pool.asks(|_, router| router.tell_within(5, LONG));
    pool.first_leaves();
    telling.join().expect("no panic");
    let (seen, letters, _) = pool.end();
    assert_eq!((seen, letters), (vec![0, 5], vec![]));
}

#[test]
fn a_question_that_waits_at_the_last_routee_that_leaves_is_told_that_there_is_none() {
    let mut pool = Pool::new(1, |first| Box::new(first));
    let asking = pool.asks(|_, router| router.ask(Double(5)).within(LONG).wait());
    pool.first_leaves();
    assert_eq!(asking.join().expect("no panic"), Err(AskError::no_routees()));
    let (seen, letters, ledger) = pool.end();
    // What the routee had in its mailbox, and the question.
    let unrouted = letters.iter().filter(|it| **it == DeadLetterReason::NoRoutee).count();
    assert_eq!((seen.len(), letters.len(), unrouted), (0, 2, 1), "{letters:?}");
    assert_eq!(ledger.asks.undeliverable, 1, "{ledger}");
}

#[test]
fn a_copy_that_waits_at_a_routee_that_leaves_goes_to_nobody_else() {
    let mut pool = Pool::new(2, |_| Box::new(Broadcast));
    // The second has room, gets its copy and does not answer.
    drop(pool.held.pop());
    assert_eq!(pool.seen.recv_timeout(LONG), Ok(0));
    let ask = pool.router.ask(Double(IGNORED));
    assert_eq!(pool.seen.recv_timeout(LONG), Ok(IGNORED));
    let asking = thread::spawn(move || ask.within(LONG).wait());
    pool.first_leaves();
    assert_eq!(asking.join().expect("no panic"), Err(AskError::undeliverable()));
    let (seen, letters, _) = pool.end();
    // The messages in the first routee's mailbox might be copies, too.
    assert_eq!((seen, letters.len()), (vec![], 2), "{letters:?}");
}

/// A supervisor whose child is held, and has the only message for which it has room.
fn supervised(
    office: &Office,
    backoff: Backoff<Msg>,
) -> (pointsman::pattern::BackoffSupervisor<Msg>, Receiver<u32>, Sender<()>) {
    let (sender, seen) = channel();
    let mailbox = || Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::MAX));
    let supervisor = office
        .system
        .actor("supervisor")
        .spawn_backoff(
            backoff.child(move |child| child.mailbox(mailbox()).dispatcher("alone")),
            move |_: &mut Context<Msg>| Clerk(sender.clone()),
        )
        .expect("the name is free");
    let release = hold(&supervisor.child().expect("there is one"));
    supervisor.tell(Msg::Note(0));
    (supervisor, seen, release)
}

#[test]
fn the_limit_bounds_the_wait_for_the_child_of_a_backoff_supervisor() {
    let office = Office::new(Duration::MAX);
    let is_last = |message: &Msg| matches!(message, Msg::Double(call) if call.request.0 == 2);
    let backoff = Backoff::on_stop(SECOND, SECOND).manual_reset().last_message(is_last);
    let (supervisor, seen, release) = supervised(&office, backoff);
    for number in [1, 2] {
        let asked = supervisor.to_ref();
        let asked = office.while_time_passes(move || asked.ask(Double(number)).within(SECOND).wait());
        assert_eq!(asked, Err(AskError::timeout(SECOND)));
    }
    drop(release);
    assert_eq!(seen.recv_timeout(LONG), Ok(0));
    // The last message was not accepted, so the child is made anew.
    supervisor.child().expect("it lives").stop();
    wait_until(|| supervisor.restarts() == 1);
    wait_until(|| {
        office.clock.advance(SECOND);
        supervisor.child().is_some()
    });
    assert_eq!(supervisor.ask(Double(3)).wait(), Ok(6));
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [3]);
    let ledger = office.end(&[0], 2);
    assert_eq!(ledger.asks.timed_out, 2, "{ledger}");
}

#[test]
fn a_question_that_waits_for_a_child_that_ends_is_handled_as_one_without_a_child() {
    for is_handled in [true, false] {
        let office = Office::new(Duration::MAX);
        let mut backoff = Backoff::on_stop(SECOND, SECOND).manual_reset();
        if is_handled {
            backoff = backoff.without_child(|message| match message {
                Msg::Double(call) => call.answer(|Double(number)| number),
                _ => unreachable!("nothing else comes"),
            });
        }
        let (supervisor, _seen, release) = supervised(&office, backoff);
        let ask = supervisor.ask(Double(5));
        let asking = thread::spawn(move || ask.within(LONG).wait());
        supervisor.child().expect("it lives").stop();
        drop(release);
        let expected = if is_handled { Ok(5) } else { Err(AskError::undeliverable()) };
        assert_eq!(asking.join().expect("no panic"), expected);
        wait_until(|| supervisor.restarts() == 1);
        // The child's own message, and the question if it was not handled.
        let dead = office.system.ledger().dead_lettered;
        assert_eq!(dead, if is_handled { 1 } else { 2 });
        office.end(&[0], 0);
    }
}

/// A clerk that has room, and what it gets.
fn free_clerk(system: &System) -> (ActorRef<Msg>, Receiver<u32>) {
    let (sender, seen) = channel();
    (system.spawn(move || Clerk(sender.clone())).expect("a name is free"), seen)
}

type All = Result<Vec<(Routee<Msg>, Result<u32, AskError>)>, AskError>;

/// The replies, without the routees.
fn replies(all: All) -> Vec<Result<u32, AskError>> {
    all.expect("it has routees").into_iter().map(|(_, reply)| reply).collect()
}

/// Asks all from a thread of its own.
struct AsksAll(Router<Msg>, Sender<All>);

impl Actor for AsksAll {
    type Message = Option<All>;
    fn receive(&mut self, message: Self::Message, ctx: &mut Context<Self::Message>) -> HandlerResult {
        match message {
            None => ctx.ask_all_within(&self.0, Double(4), SECOND, Some),
            Some(all) => self.1.send(all)?,
        }
        Ok(())
    }
}

#[test]
fn the_limit_bounds_the_wait_for_room_of_a_question_to_all() {
    let ways: [fn(&SystemRef, Router<Msg>) -> All; 3] = [
        |_, router| router.ask_all(Double(4)).within(SECOND).wait(),
        |_, router| router.ask_all_with(|port| Call::new(Double(4), port)).within(SECOND).wait(),
        |system, router| {
            let (sender, outcomes) = channel();
            let asks = system
                .actor("asks")
                .dispatcher("alone")
                .spawn(move || AsksAll(router.clone(), sender.clone()))
                .expect("the name is free");
            asks.tell(None);
            outcomes.recv_timeout(LONG).expect("it is told")
        },
    ];
    for way in ways {
        let office = Office::new(Duration::MAX);
        let (free, seen) = free_clerk(&office.system);
        let router =
            office.system.router("all").group([&office.clerk, &free].map(Clone::clone)).spawn().unwrap();
        let (system, handled) = (office.system.handle().clone(), office.system.ledger().handled);
        let asking = thread::spawn(move || way(&system, router));
        assert_eq!(seen.recv_timeout(LONG), Ok(4));
        // It has answered by then.
        wait_until(|| {
            office.system.ledger().handled > handled && free.load() == pointsman::actor::RecipientLoad::Idle
        });
        let all = office.while_time_passes(move || asking.join().expect("no panic"));
        assert_eq!(replies(all), [Err(AskError::timeout(SECOND)), Ok(8)]);
        let ledger = office.end(&[0], 1);
        assert_eq!(ledger.asks.timed_out, 1, "{ledger}");
    }
}

#[test]
fn a_routee_that_has_no_room_within_its_own_limit_has_refused_a_question_to_all() {
    let office = Office::new(SECOND);
    let (free, _seen) = free_clerk(&office.system);
    let router = office.system.router("all").group([&office.clerk, &free].map(Clone::clone)).spawn().unwrap();
    let all = office.while_time_passes(move || router.ask_all(Double(4)).within(FAR).wait());
    assert_eq!(replies(all), [Err(AskError::undeliverable()), Ok(8)]);
    let ledger = office.end(&[0], 1);
    assert_eq!(ledger.asks.answered, 1, "{ledger}");
}

#[test]
fn a_question_to_all_through_a_router_whose_routee_leaves_goes_to_another_of_its_routees() {
    let mut pool = Pool::new(2, |first| Box::new(first));
    let (free, _seen) = free_clerk(&pool.system);
    let all = pool.system.router("all").group([pool.router.to_ref(), free]).spawn().unwrap();
    let asking = pool.asks(move |_, _| all.ask_all(Double(4)).within(LONG).wait());
    pool.first_leaves();
    assert_eq!(replies(asking.join().expect("no panic")), [Ok(8), Ok(8)]);
    let (seen, letters, _) = pool.end();
    assert_eq!((seen.len(), letters.len()), (2, 0), "{seen:?} {letters:?}");
}

#[test]
fn what_code_on_the_way_of_a_question_tells_is_not_given_up_with_it() {
    let office = Office::new(Duration::MAX);
    let (free, _seen) = free_clerk(&office.system);
    let (clerk, (telling, tells)) = (office.clerk.clone(), channel());
    let asked = free.contramap(move |message: Msg| {
        let _ = telling.send(());
        clerk.tell(Msg::Note(1));
        message
    });
    let asking = thread::spawn(move || drop(asked.ask(Double(4))));
    assert_eq!(tells.recv_timeout(LONG), Ok(()));
    office.release.send(()).expect("the clerk is held");
    asking.join().expect("no panic");
    office.end(&[0, 1], 0);
}

#[test]
fn a_question_that_has_its_answer_waits_for_room_no_longer() {
    let ways: [Way; 4] = [
        |_, router| router.ask(Double(5)).within(LONG).wait(),
        |_, router| Asker::new().ask(&router, Double(5)).wait(),
        |_, router| router.request(Double(5)).within(LONG).first().wait(),
        an_actor_asks,
    ];
    for way in ways {
        for logic in 0..2 {
            let office = Office::new(Duration::MAX);
            let (free, _seen) = free_clerk(&office.system);
            let plan = office.system.router("both").group([&office.clerk, &free].map(Clone::clone));
            let router = match logic {
                0 => plan.logic(ScatterGatherFirstCompleted::within(LONG)).spawn().unwrap(),
                _ => plan.logic(Broadcast).spawn().unwrap(),
            };
            let (answer, answers) = channel();
            let system = office.system.handle().clone();
            thread::spawn(move || answer.send(way(&system, router.to_ref())));
            // The clock stands still, and the clerk is held.
            assert_eq!(answers.recv_timeout(LONG).expect("the free clerk has answered"), Ok(10));
            let ledger = office.end(&[0], 1);
            assert_eq!((ledger.asks.answered, ledger.dead_lettered), (1, 1), "{ledger}");
        }
    }
}
