//! Messages that nobody wants any more when their turn comes: skipped where the actor is to do so, and counted.

use crate::support::{LONG, Soon};
use pointsman::actor::ActorBuilder;
use pointsman::ask::{Answerable, Attempt, Expiring};
use pointsman::events::Subscription;
use pointsman::prelude::*;
use pointsman::routing::{ConsistentHashing, Keyed, ScatterGatherFirstCompleted, TailChopping};
use pointsman::time::ManualClock;
use pointsman::{DeadLetterReason, Ledger};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq)]
struct Double(u32);

impl Request for Double {
    type Reply = u32;
}

#[derive(Debug, Clone, PartialEq)]
struct Quote(u32);

#[derive(Clone, Message)]
enum Msg {
    Double(Call<Double>),
    Quote(Expiring<Quote>),
    Note(u32),
    Hold(Sender<()>, Arc<Mutex<Receiver<()>>>),
    #[message(skip)]
    Stash(u32),
    Unstash,
}

/// Notes what it gets, and can be held.
struct Clerk(Sender<u32>);

impl Actor for Clerk {
    type Message = Msg;
    fn receive(&mut self, message: Msg, ctx: &mut Context<Msg>) -> HandlerResult {
        match message {
            Msg::Double(call) if call.request.0 >= 100 && ctx.stashed() == 0 => {
                ctx.stash(Msg::Double(call))?
            }
            Msg::Double(call) => {
                self.0.send(call.request.0)?;
                call.answer(|Double(number)| 2 * number);
            }
            Msg::Quote(quote) => self.0.send(quote.into_inner().0)?,
            Msg::Note(number) => self.0.send(number)?,
            Msg::Hold(inside, release) => {
                inside.send(())?;
                let _ = ctx.blocking(|| release.lock().expect("nobody panics with it").recv());
            }
            Msg::Stash(number) => ctx.stash(Msg::Note(number))?,
            Msg::Unstash => ctx.unstash_all(),
        }
        Ok(())
    }
}

/// A system whose clerks note what they handle.
struct Office {
    system: System,
    clock: ManualClock,
    notes: Sender<u32>,
    seen: Receiver<u32>,
    letters: Receiver<DeadLetterReason>,
    _subscription: Subscription,
}

impl Office {
    fn open() -> Self {
        let clock = ManualClock::new();
        // A thread for each that is held, and one more.
        let builder = System::builder("office").dispatcher("default", Dispatcher::work_stealing().threads(4));
        let system = builder.clock(clock.clone()).build().expect("sound");
        let (notes, seen) = channel();
        let (letter, letters) = channel();
        let subscription = system.dead_letters().subscribe(move |dead| _ = letter.send(dead.reason));
        Self { system, clock, notes, seen, letters, _subscription: subscription }
    }

    fn recipe(&self) -> impl Fn() -> Clerk + Clone + Send + Sync + use<> {
        let notes = Mutex::new(self.notes.clone());
        let notes = Arc::new(notes);
        move || Clerk(notes.lock().expect("nobody panics with it").clone())
    }

    fn clerk(&self) -> ActorRef<Msg> {
        self.spawn(self.system.actor("clerk"))
    }

    /// Spawns a clerk that skips unwanted messages.
    fn spawn(&self, builder: ActorBuilder) -> ActorRef<Msg> {
        let recipe = self.recipe();
        let skipping = move |ctx: &mut Context<Msg>| {
            ctx.skip_unwanted();
            recipe()
        };
        builder.spawn_with(skipping).expect("the name is free")
    }

    /// Only these are handled, in this order; so many are skipped, and nothing else is a dead letter.
    #[track_caller]
    fn end(self, handled: &[u32], skipped: usize) -> Ledger {
        let seen: Vec<_> = handled.iter().map(|_| self.seen.soon().expect("handled")).collect();
        assert_eq!(seen, handled);
        crate::support::wait_until(|| self.system.ledger().queued == 0);
        let ledger = self.system.shutdown(LONG).expect("nothing is stuck");
        assert_eq!(self.seen.try_recv().ok(), None);
        let letters: Vec<_> = self.letters.try_iter().collect();
        assert_eq!(letters, vec![DeadLetterReason::Expired; skipped]);
        assert_eq!((ledger.skipped, ledger.dead_lettered), (skipped as u64, 0), "{ledger}");
        assert_eq!((ledger.balance(), ledger.asks.pending()), (0, 0), "{ledger}");
        ledger
    }
}

/// Keeps an actor in its handler until it is dropped.
fn hold(clerk: &ActorRef<Msg>) -> Sender<()> {
    let (inside, is_inside) = channel();
    let (release, released) = channel();
    clerk.tell(Msg::Hold(inside, Arc::new(Mutex::new(released))));
    is_inside.soon().expect("the handler runs");
    release
}

/// Looks once whether it is over.
fn poll<R>(ask: &mut Ask<R>) -> Poll<Result<R, AskError>> {
    Pin::new(ask).poll(&mut std::task::Context::from_waker(Waker::noop()))
}

#[test]
fn a_question_whose_asker_has_gone_or_timed_out_is_skipped_and_counted() {
    let office = Office::open();
    let clerk = office.clerk();
    let release = hold(&clerk);
    drop(clerk.ask(Double(1)));
    let mut late = clerk.ask(Double(2)).within(SECOND);
    let waits = clerk.ask(Double(3)).within(60 * SECOND);
    clerk.tell(Msg::Note(4));
    office.clock.advance(SECOND);
    assert_eq!(poll(&mut late), Poll::Ready(Err(AskError::timeout(SECOND))));
    drop(release);
    assert_eq!(waits.wait(), Ok(6));
    let ledger = office.end(&[3, 4], 2);
    assert_eq!((ledger.asks.cancelled, ledger.asks.timed_out, ledger.asks.answered), (1, 1, 1));
    assert_eq!(
        ledger.to_string(),
        "sent 5 = handled 3 + dead-lettered 0 + handed back 0 + dropped 0 + skipped 2 + queued 0 (balance 0)"
    );
}

#[test]
fn an_actor_that_is_not_told_to_skip_handles_all() {
    let office = Office::open();
    let clerk = office.system.actor("clerk").spawn(office.recipe()).expect("the name is free");
    let release = hold(&clerk);
    drop(clerk.ask(Double(1)));
    clerk.tell_within(Quote(2), SECOND);
    office.clock.advance(SECOND);
    drop(release);
    office.end(&[1, 2], 0);
}

#[test]
fn a_message_is_skipped_once_its_time_is_over() {
    let office = Office::open();
    let clerk = office.clerk();
    let release = hold(&clerk);
    clerk.tell_within(Quote(1), SECOND);
    clerk.tell_within(Quote(2), 2 * SECOND);
    clerk.tell_within(Quote(3), Duration::MAX);
    clerk.tell_within(Quote(4), Duration::ZERO);
    office.clock.advance(SECOND);
    drop(release);
    office.end(&[2, 3], 2);
}

#[test]
fn a_message_tells_how_much_of_its_time_is_left() {
    let office = Office::open();
    let (sender, got) = channel();
    let reference = ActorRef::from_fn(move |message: Msg| _ = sender.send(message));
    // Behind a router it goes by the clock of the system.
    let router = office.system.router("one").group([reference]).spawn().expect("the name is free");
    router.to_ref().tell_within(Quote(1), 2 * SECOND);
    let Ok(Msg::Quote(quote)) = got.soon() else { panic!("a quote") };
    assert_eq!((quote.left(), quote.is_over(), &quote.message), (2 * SECOND, false, &Quote(1)));
    office.clock.advance(SECOND);
    assert_eq!((quote.left(), quote.is_over()), (SECOND, false));
    office.clock.advance(SECOND);
    assert_eq!((quote.left(), quote.is_over()), (Duration::ZERO, true));
    assert_eq!(format!("{quote:?}"), "Expiring { is_over: true, .. }");
    drop(quote);
    office.end(&[], 0);
}

#[test]
fn a_message_that_waits_for_room_does_so_within_its_time() {
    let office = Office::open();
    let builder = office
        .system
        .actor("narrow")
        .mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::MAX)));
    let clerk = office.spawn(builder);
    let release = hold(&clerk);
    clerk.tell(Msg::Note(0));
    crate::support::while_time_passes(&office.clock, || clerk.tell_within(Quote(1), SECOND));
    assert_eq!(office.letters.soon(), Ok(DeadLetterReason::Full));
    drop(release);
    assert_eq!(office.seen.soon(), Ok(0));
    let ledger = office.system.shutdown(LONG).expect("nothing is stuck");
    assert_eq!((ledger.dead_lettered, ledger.skipped, ledger.balance()), (1, 0, 0), "{ledger}");
}

/// Asks the clerk, with a limit if there is one, and ends when it is told.
struct Asks(ActorRef<Msg>, Sender<Result<u32, AskError>>);

enum AsksMsg {
    Begin(Option<Duration>),
    Outcome(Result<u32, AskError>),
}

impl Actor for Asks {
    type Message = AsksMsg;
    fn receive(&mut self, message: AsksMsg, ctx: &mut Context<AsksMsg>) -> HandlerResult {
        match message {
            AsksMsg::Begin(Some(limit)) => ctx.ask_within(&self.0, Double(1), limit, AsksMsg::Outcome),
            AsksMsg::Begin(None) => ctx.ask(&self.0, Double(2), AsksMsg::Outcome),
            AsksMsg::Outcome(outcome) => self.1.send(outcome)?,
        }
        Ok(())
    }
}

#[test]
fn so_is_that_of_an_actor_that_has_ended_or_whose_time_is_over() {
    let office = Office::open();
    let clerk = office.clerk();
    let release = hold(&clerk);
    let (sender, outcomes) = channel();
    let asks = |name| {
        let (clerk, sender) = (clerk.clone(), sender.clone());
        office.system.actor(name).spawn(move || Asks(clerk.clone(), sender.clone())).expect("free")
    };
    let (late, gone) = (asks("late"), asks("gone"));
    late.tell(AsksMsg::Begin(Some(SECOND)));
    gone.tell(AsksMsg::Begin(None));
    crate::support::wait_until(|| clerk.queued() == Some(2));
    office.clock.advance(SECOND);
    assert_eq!(outcomes.soon(), Ok(Err(AskError::timeout(SECOND))));
    gone.stop();
    crate::support::wait_until(|| gone.is_closed());
    drop(release);
    let letters = [(); 3].map(|()| office.letters.soon().expect("a dead letter"));
    // The one who has ended is told that there is no reply.
    let count = |reason| letters.iter().filter(|letter| **letter == reason).count();
    assert_eq!((count(DeadLetterReason::Expired), count(DeadLetterReason::Stopped)), (2, 1));
    let ledger = office.system.shutdown(LONG).expect("nothing is stuck");
    assert_eq!((ledger.skipped, ledger.dead_lettered, ledger.balance()), (2, 1, 0), "{ledger}");
    assert_eq!(office.seen.try_recv().ok(), None);
}

#[test]
fn the_routees_of_a_pool_skip_each_in_its_own_mailbox_and_in_a_queue_that_they_share() {
    for shared in [false, true] {
        let office = Office::open();
        let recipe = office.recipe();
        let builder = office.system.router("pool");
        let pool = match shared {
            true => builder.balancing_pool(1, move |_| recipe()).skip_unwanted().spawn(),
            false => builder.pool(1, move |_| recipe()).skip_unwanted().spawn(),
        };
        let pool = pool.expect("the name is free");
        let release = hold(&pool.to_ref());
        for number in 0..500 {
            drop(pool.ask(Double(number % 100)));
        }
        let waits = pool.ask(Double(7));
        pool.tell(Msg::Note(8));
        drop(release);
        assert_eq!(waits.wait(), Ok(14), "shared: {shared}");
        office.end(&[7, 8], 500);
    }
}

#[test]
fn the_routees_of_a_keyed_pool_skip_though_the_router_alone_knows_the_key() {
    let office = Office::open();
    let make = office.recipe();
    let clerks = office.system.router("clerks").keyed_pool(1, move |_| make());
    let clerks = clerks.logic(ConsistentHashing::new()).skip_unwanted().spawn().expect("the name is free");
    let to = clerks.to_ref();
    let keyed = |message| Keyed { key: 7u32, message };
    let (inside, is_inside) = channel();
    let (release, released) = channel();
    to.tell(keyed(Msg::Hold(inside, Arc::new(Mutex::new(released)))));
    is_inside.soon().expect("the handler runs");
    drop(to.ask_with(|reply_to| keyed(Msg::Double(Call::new(Double(1), reply_to)))));
    to.tell(keyed(Msg::Note(2)));
    drop::<Sender<()>>(release);
    office.end(&[2], 1);
}

#[test]
fn a_group_that_has_no_routees_of_its_own_refuses_to_skip() {
    let office = Office::open();
    let clerk = office.clerk();
    let refused = office.system.router("group").group([clerk]).skip_unwanted().spawn();
    let SpawnError::Logic { fault, .. } = refused.expect_err("a group") else { panic!("another error") };
    assert!(fault.contains("`skip_unwanted` is for the routees of a pool"), "{fault}");
    office.end(&[], 0);
}

#[test]
fn the_actors_of_a_keyed_group_skip() {
    let office = Office::open();
    let recipe = office.recipe();
    let group = office
        .system
        .group("keyed")
        .by_key(|_: &Msg| 1, move |_, _| recipe())
        .skip_unwanted()
        .spawn()
        .expect("the name is free");
    let release = hold(&group.to_ref());
    drop(group.to_ref().ask(Double(1)));
    group.tell(Msg::Note(2));
    drop(release);
    office.end(&[2], 1);
}

#[test]
fn what_was_stashed_is_skipped_when_it_is_unstashed() {
    let office = Office::open();
    let clerk = office.clerk();
    let gone = clerk.ask(Double(100));
    clerk.tell(Msg::Stash(5));
    clerk.tell(Msg::Note(1));
    assert_eq!(office.seen.soon(), Ok(1));
    drop(gone);
    clerk.tell(Msg::Unstash);
    let ledger = office.end(&[5], 1);
    // Two were stashed, which counts as sent once more.
    assert_eq!((ledger.sent, ledger.handled), (6, 5), "{ledger}");
}

#[test]
fn an_actor_with_a_receive_timeout_and_a_mailbox_that_sorts_skips_too() {
    let office = Office::open();
    let first = |message: &Msg| i64::from(!matches!(message, Msg::Double(_)));
    let builder = office.system.actor("sorts").mailbox(Mailbox::priority(first));
    let recipe = office.recipe();
    let clerk = builder
        .spawn_with(move |ctx: &mut Context<Msg>| {
            ctx.skip_unwanted();
            ctx.set_receive_timeout(3600 * SECOND, |_| Msg::Note(99)).expect("more than nothing");
            recipe()
        })
        .expect("the name is free");
    let release = hold(&clerk);
    clerk.tell(Msg::Note(1));
    drop(clerk.ask(Double(2)));
    let waits = clerk.ask(Double(3));
    drop(release);
    assert_eq!(waits.wait(), Ok(6));
    office.end(&[3, 1], 1);
}

#[test]
fn the_losers_of_scatter_gather_and_tail_chopping_are_skipped() {
    for chops in [false, true] {
        let office = Office::open();
        let recipe = office.recipe();
        let plan = office.system.router("pool").pool(3, move |_| recipe());
        let pool = match chops {
            false => plan.logic(ScatterGatherFirstCompleted::within(60 * SECOND)).skip_unwanted().spawn(),
            true => plan.logic(TailChopping::within(60 * SECOND).interval(SECOND)).skip_unwanted().spawn(),
        };
        let pool = pool.expect("the name is free");
        let routees = pool.routees().expect("it lives");
        let mut holds: Vec<_> = routees.iter().map(hold).collect();
        let ask = pool.ask(Double(4));
        if chops {
            // Each is asked after its interval.
            for queued in 2..=3 {
                crate::support::wait_until(|| {
                    office.clock.advance(SECOND);
                    routees.iter().filter_map(ActorRef::queued).sum::<usize>() >= queued
                });
            }
        }
        assert_eq!(routees.iter().filter_map(ActorRef::queued).sum::<usize>(), 3, "chops: {chops}");
        // One of them answers; the other two begin only then.
        drop(holds.pop());
        assert_eq!(ask.wait(), Ok(8));
        drop(holds);
        crate::support::wait_until(|| office.system.ledger().skipped == 2);
        office.end(&[4], 2);
    }
}

/// Cannot say whether it is wanted.
struct Mute(u32);

impl Answerable for Mute {
    fn fork(&mut self, _: &Attempt) -> bool {
        panic!("planted")
    }
}

struct Hears(Sender<u32>);

impl Actor for Hears {
    type Message = Mute;
    fn started(&mut self, ctx: &mut Context<Mute>) -> HandlerResult {
        ctx.skip_unwanted();
        Ok(())
    }
    fn receive(&mut self, Mute(number): Mute, _: &mut Context<Mute>) -> HandlerResult {
        Ok(self.0.send(number)?)
    }
}

#[test]
fn a_message_that_panics_instead_of_saying_whether_it_is_wanted_is_handled() {
    let office = Office::open();
    let notes = office.notes.clone();
    let hears = office.system.actor("hears").spawn(move || Hears(notes.clone())).unwrap();
    hears.tell(Mute(1));
    hears.tell(Mute(2));
    office.end(&[1, 2], 0);
}

#[test]
fn who_takes_undelivered_messages_gets_those_that_are_skipped() {
    let office = Office::open();
    let (sender, taken) = channel();
    let _sink = office
        .system
        .dead_letters()
        .take(move |message: Msg, letter| {
            let Msg::Double(call) = message else { panic!("a question") };
            let _ = sender.send((call.request, letter.reason, letter.recipient.to_string()));
        })
        .expect("the first");
    let clerk = office.clerk();
    let release = hold(&clerk);
    drop(clerk.ask(Double(1)));
    drop(release);
    let expected = (Double(1), DeadLetterReason::Expired, "/user/clerk".to_owned());
    assert_eq!(taken.soon(), Ok(expected));
    office.end(&[], 1);
}
