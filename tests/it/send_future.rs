//! Sends that wait for room without a thread: `ActorRef::send` as a future, and `Context::send_when_room`.

use crate::support::*;
use pointsman::actor::SendFuture;
use pointsman::prelude::*;
use pointsman::{DeadLetterReason, OverflowPolicy};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context as Poller, Poll, Wake, Waker};
use std::time::Duration;

/// Counts wakes.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A future in the hands of the test.
struct Polled<F> {
    future: Option<F>,
    wakes: Arc<Count>,
}

impl<F: Future + Unpin> Polled<F> {
    fn new(future: F) -> Self {
        Self { future: Some(future), wakes: Arc::default() }
    }
    fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(self.wakes.clone());
        Pin::new(self.future.as_mut().unwrap()).poll(&mut Poller::from_waker(&waker))
    }
    fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }
}

fn bounded(stage: &Stage, role: &Role, mailbox: Mailbox) -> ActorRef<Tell> {
    stage.system.actor("a").mailbox(mailbox).spawn(role.recipe()).expect("the name is free")
}

fn noting_number(number: usize) -> Tell {
    Tell::new(move |puppet, _| {
        puppet.note(number);
        Ok(())
    })
}

/// A held actor with a full mailbox for one message, and what releases it.
fn full(stage: &Stage, mailbox: Mailbox) -> (ActorRef<Tell>, Sender<()>) {
    let actor = bounded(stage, &stage.role("a"), mailbox);
    let release = hold(&actor);
    note(&actor, "first");
    (actor, release)
}

#[test]
fn it_waits_at_mailboxes_that_refuse_and_at_those_that_let_senders_wait() {
    for policy in [OverflowPolicy::Reject, OverflowPolicy::Wait(Duration::from_secs(1))] {
        let stage = Stage::threads("room");
        let (actor, release) = full(&stage, Mailbox::bounded(1).on_full(policy));
        let mut send = Polled::new(actor.send(noting("second")));
        assert!(send.poll().is_pending());
        // Its own limit is none of its business.
        stage.clock.advance(Duration::from_secs(100));
        assert!(send.poll().is_pending());
        let ledger = stage.system.ledger();
        assert_eq!((ledger.sent, ledger.queued, ledger.balance()), (2, 1, 0), "{ledger}");
        assert_eq!(send.wakes(), 0);
        drop(release);
        wait_until(|| send.wakes() == 1);
        assert!(matches!(send.poll(), Poll::Ready(Ok(()))));
        stage.expect(&["a Started 1", "a first", "a second"]);
        stage.end(&["a Stopped 1"]);
    }
}

#[test]
fn where_there_is_room_it_is_sent_by_the_first_poll_and_not_before() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    drop(actor.send(noting("never")));
    let mut send = Polled::new(actor.send(noting("now")));
    assert_eq!(stage.system.ledger().sent, 0);
    assert!(matches!(send.poll(), Poll::Ready(Ok(()))));
    stage.expect(&["a Started 1", "a now"]);
    actor.send(noting("by a thread")).wait().expect("there is room");
    stage.expect(&["a by a thread"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn one_unit_of_room_wakes_one_future_in_the_order_of_arrival() {
    let stage = Stage::threads("order");
    let (actor, release) = full(&stage, Mailbox::bounded(1));
    let mut sends: Vec<_> = (1..=3).map(|number| Polled::new(actor.send(noting_number(number)))).collect();
    for send in &mut sends {
        assert!(send.poll().is_pending());
    }
    drop(release);
    stage.expect(&["a Started 1", "a first"]);
    for index in 0..3 {
        wait_until(|| sends[index].wakes() > 0);
        // A future that finds room may be woken once more on its way, and passes that wake on.
        let woken: Vec<usize> = sends.iter().map(Polled::wakes).collect();
        assert!(woken[index + 1..].iter().all(|wakes| *wakes == 0), "{woken:?}");
        assert!(matches!(sends[index].poll(), Poll::Ready(Ok(()))));
        assert_eq!(stage.note(), format!("a {}", index + 1));
    }
    stage.end(&["a Stopped 1"]);
}

/// Tells an actor to wait for the test, `times` times.
fn stop_at(actor: &ActorRef<Tell>, times: usize, then: fn(&mut Context<Tell>)) -> (Sender<()>, Receiver<()>) {
    let (release, held) = channel::<()>();
    let (sender, inside) = channel();
    act(actor, move |_, ctx| {
        for _ in 0..times {
            sender.send(())?;
            let _ = ctx.blocking(|| held.recv());
            then(ctx);
        }
        Ok(())
    });
    (release, inside)
}

#[test]
fn a_future_that_another_sender_comes_before_keeps_its_place() {
    let stage = Stage::threads("barging");
    let actor = bounded(&stage, &stage.role("a"), Mailbox::bounded(1));
    let (first_stop, inside) = stop_at(&actor, 1, |_| ());
    inside.soon().expect("it runs");
    let (second_stop, inside) = stop_at(&actor, 1, |_| ());
    let (mut first, mut second) =
        (Polled::new(actor.send(noting("1"))), Polled::new(actor.send(noting("2"))));
    assert!(first.poll().is_pending() && second.poll().is_pending());
    drop(first_stop);
    inside.soon().expect("it runs");
    wait_until(|| first.wakes() == 1);
    note(&actor, "barges");
    assert!(first.poll().is_pending());
    drop(second_stop);
    wait_until(|| first.wakes() == 2);
    assert_eq!(second.wakes(), 0);
    assert!(first.poll().is_ready());
    wait_until(|| second.wakes() == 1);
    assert!(second.poll().is_ready());
    stage.expect(&["a Started 1", "a barges", "a 1", "a 2"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_dropped_future_gives_its_message_up_and_passes_its_wake_on() {
    let stage = Stage::threads("dropped");
    let (actor, release) = full(&stage, Mailbox::bounded(1));
    let mut sends: Vec<_> = (1..=3).map(|number| Polled::new(actor.send(noting_number(number)))).collect();
    sends.iter_mut().for_each(|send| assert!(send.poll().is_pending()));
    // While it waits.
    sends.remove(1);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.handed_back, ledger.balance()), (1, 0), "{ledger}");
    drop(release);
    wait_until(|| sends[0].wakes() == 1);
    assert_eq!(sends[1].wakes(), 0);
    // When it has been woken, and has not looked: the next is woken in its place.
    let waker_of = Arc::downgrade(&sends[0].wakes);
    sends.remove(0);
    assert!(waker_of.upgrade().is_none(), "no waker is kept");
    wait_until(|| sends[0].wakes() == 1);
    assert!(sends[0].poll().is_ready());
    stage.expect(&["a Started 1", "a first", "a 3"]);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.handed_back), (5, 3, 2), "{ledger}");
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_message_can_be_taken_back() {
    let stage = Stage::threads("back");
    struct Holds(Sender<()>);
    impl Actor for Holds {
        type Message = u32;
        fn receive(&mut self, _: u32, ctx: &mut Context<u32>) -> HandlerResult {
            ctx.hold(std::future::pending(), |_: &mut Self, (), _| Ok(()));
            Ok(self.0.send(())?)
        }
    }
    let (sender, held) = channel();
    let actor = stage.system.actor("holds").mailbox(Mailbox::bounded(1));
    let actor: ActorRef<u32> = actor.spawn(move || Holds(sender.clone())).unwrap();
    actor.tell(0u32);
    held.soon().expect("it holds");
    actor.try_tell(1u32).expect("there is room for one");
    let mut send = Polled::new(actor.send(7u32));
    assert!(send.poll().is_pending());
    assert_eq!(send.future.take().map(SendFuture::into_message), Some(Some(7)));
    let polled = Polled::new(actor.send(8u32));
    assert_eq!(polled.future.map(SendFuture::into_message), Some(Some(8)));
    stage.end(&[]);
}

#[test]
fn the_end_of_the_actor_gives_the_message_back() {
    let stage = Stage::threads("ends");
    let (actor, release) = full(&stage, Mailbox::bounded(1));
    let mut send = Polled::new(actor.send(noting("never")));
    assert!(send.poll().is_pending());
    actor.stop();
    drop(release);
    wait_until(|| send.wakes() == 1);
    match send.poll() {
        Poll::Ready(Err(SendError::Closed(_))) => {}
        other => panic!("{}", other.is_ready()),
    }
    assert!(matches!(
        Polled::new(actor.send(noting("never"))).poll(),
        Poll::Ready(Err(SendError::Closed(_)))
    ));
    wait_until(|| stage.system.ledger().dead_lettered == 1);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.handed_back), (4, 1, 2), "{ledger}");
    stage.expect(&["a Started 1", "a Stopped 1"]);
    stage.end(&[]);
}

#[test]
fn a_grown_mailbox_wakes_all_that_wait() {
    let stage = Stage::threads("grows");
    let actor = bounded(&stage, &stage.role("a"), Mailbox::bounded(1));
    let grow = |ctx: &mut Context<Tell>| assert!(ctx.set_mailbox_capacity(10));
    let (release, inside) = stop_at(&actor, 2, grow);
    inside.soon().expect("it runs");
    note(&actor, "first");
    let mut sends: Vec<_> = (1..=2).map(|number| Polled::new(actor.send(noting_number(number)))).collect();
    sends.iter_mut().for_each(|send| assert!(send.poll().is_pending()));
    release.send(()).expect("it waits");
    inside.soon().expect("it has grown");
    assert!(sends.iter().all(|send| send.wakes() == 1));
    sends.iter_mut().for_each(|send| assert!(send.poll().is_ready()));
    drop(release);
    stage.expect(&["a Started 1", "a first", "a 1", "a 2"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn behind_a_router_it_waits_at_the_chosen_routee_and_goes_on_when_that_ends() {
    let stage = Stage::threads("router");
    let role = stage.role("r");
    let plan = stage.system.router("pool").pool(2, move |_| role.recipe()());
    let router = plan.mailbox(Mailbox::bounded(1)).spawn().expect("the name is free");
    let routees = router.routees().expect("it runs");
    // Which of them is the first is theirs to settle.
    let unnumbered = |note: String| note.trim_end_matches([' ', '1', '2']).to_owned();
    assert_eq!([stage.note(), stage.note()].map(unnumbered), ["r Started"; 2]);
    let releases = [hold(&routees[0]), hold(&routees[1])];
    let to = router.to_ref();
    note(&routees[0], "full");
    note(&routees[1], "full");
    let mut send = Polled::new(to.send(noting("routed")));
    assert!(send.poll().is_pending());
    let [first, second] = releases;
    // Which of the two was chosen is the router's affair.
    routees[0].stop();
    drop(first);
    wait_until(|| routees[0].is_closed());
    drop(second);
    wait_until(|| send.wakes() > 0 && send.poll().is_ready());
    let mut notes = [stage.note(), stage.note(), stage.note()].map(unnumbered);
    notes.sort();
    assert_eq!(notes, ["r Stopped", "r full", "r routed"]);
    let ledger = stage.system.shutdown(LONG).expect("nothing is stuck");
    assert_eq!(ledger.balance(), 0, "{ledger}");
}

#[test]
fn a_changed_message_that_is_refused_is_a_dead_letter() {
    let stage = Stage::threads("changed");
    let (actor, release) = full(&stage, Mailbox::bounded(1));
    let (sender, letters) = channel();
    let _subscription = stage.system.dead_letters().subscribe(move |letter| {
        let _ = sender.send(letter.reason);
    });
    let adapter: ActorRef<Tell> = actor.contramap(|tell: Tell| tell);
    let mut send = Polled::new(adapter.send(noting("never")));
    assert!(send.poll().is_pending());
    actor.stop();
    drop(release);
    wait_until(|| send.wakes() == 1);
    assert!(matches!(send.poll(), Poll::Ready(Ok(()))), "it cannot come back");
    assert_eq!([letters.soon(), letters.soon()], [Ok(DeadLetterReason::Stopped); 2]);
    stage.expect(&["a Started 1", "a Stopped 1"]);
    stage.end(&[]);
}

#[test]
fn tasks_of_tokio_lose_nothing_and_block_nothing() {
    const TASKS: u64 = 8;
    const EACH: u64 = 300;
    struct Sum(Arc<AtomicUsize>);
    impl Actor for Sum {
        type Message = u64;
        fn receive(&mut self, number: u64, _: &mut Context<u64>) -> HandlerResult {
            self.0.fetch_add(number as usize, Ordering::SeqCst);
            Ok(())
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let system = System::builder("tasks").build().unwrap();
    let total: Arc<AtomicUsize> = Arc::default();
    let counted = total.clone();
    let sum = system.actor("sum").mailbox(Mailbox::bounded(4)).spawn(move || Sum(counted.clone())).unwrap();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let sum = sum.clone();
            runtime.spawn(async move {
                let mut sent = 0;
                for number in 0..EACH {
                    if task % 2 == 0 {
                        sum.send(number).await.expect("the actor lives");
                        sent += number;
                        continue;
                    }
                    // Cancelled now and then, woken or not.
                    let mut send = sum.send(number);
                    let mut polls = 0;
                    let outcome = std::future::poll_fn(|cx| {
                        polls += 1;
                        match Pin::new(&mut send).poll(cx) {
                            Poll::Pending if polls > number % 3 => Poll::Ready(None),
                            polled => polled.map(Some),
                        }
                    });
                    if let Some(outcome) = outcome.await {
                        outcome.expect("the actor lives");
                        sent += number;
                    }
                }
                sent
            })
        })
        .collect();
    let sent: u64 = tasks.into_iter().map(|task| runtime.block_on(task).expect("no panic")).sum();
    wait_until(|| total.load(Ordering::SeqCst) as u64 == sent);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
    assert_eq!(ledger.sent, TASKS * EACH, "{ledger}");
    assert_eq!(ledger.handled + ledger.handed_back, ledger.sent, "{ledger}");
}

/// Makes a puppet send a note to `target`, and note the outcome.
fn send_when_room(puppet: &ActorRef<Tell>, target: &ActorRef<Tell>, text: &'static str) -> bool {
    let target = target.clone();
    query(puppet, move |_, ctx| {
        ctx.send_when_room(&target, noting(text), |outcome| {
            Tell::new(move |puppet, _| {
                puppet.note(outcome.map_err(|refused| refused.to_string().len() > 10));
                Ok(())
            })
        })
    })
    .expect("it answers")
}

#[test]
fn an_actor_is_told_when_its_message_has_found_room() {
    let stage = Stage::threads("told");
    let (actor, release) = full(&stage, Mailbox::bounded(1));
    let sender = stage.spawn(&stage.role("s"));
    assert!(!send_when_room(&sender, &actor, "second"));
    note(&sender, "meanwhile");
    let mut notes = [stage.note(), stage.note(), stage.note()];
    notes.sort();
    assert_eq!(notes, ["a Started 1", "s Started 1", "s meanwhile"]);
    drop(release);
    let mut notes = [stage.note(), stage.note(), stage.note()];
    notes.sort();
    assert_eq!(notes, ["a first", "a second", "s Ok(())"]);
    assert!(send_when_room(&sender, &actor, "at once"));
    stage.expect(&["a at once"]);
    actor.stop();
    wait_for_end(&stage, &actor);
    stage.expect(&["a Stopped 1"]);
    assert!(!send_when_room(&sender, &actor, "never"));
    stage.expect(&["s Err(true)"]);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.handed_back, ledger.balance()), (1, 0), "{ledger}");
    stage.end(&["s Stopped 1"]);
}

#[test]
fn a_wait_goes_on_over_a_restart_and_ends_with_its_actor() {
    let stage = Stage::threads("restarted");
    let (actor, release) = full(&stage, Mailbox::bounded(1));
    let parent = stage.spawn(&stage.role("p").strategy(|| Strategy::default().max_restarts(9)));
    let sender = child(&parent, &stage.role("s"));
    assert!(!send_when_room(&sender, &actor, "second"));
    fail(&sender);
    let mut notes: Vec<String> = (0..5).map(|_| stage.note()).collect();
    notes.sort();
    assert_eq!(notes, ["a Started 1", "p Started 1", "s Restarted 2", "s Restarting 1", "s Started 1"]);
    drop(release);
    let mut notes: Vec<String> = (0..3).map(|_| stage.note()).collect();
    notes.sort();
    assert_eq!(notes, ["a first", "a second", "s Ok(())"]);
    let release = hold(&actor);
    note(&actor, "full");
    assert!(!send_when_room(&sender, &actor, "never"));
    sender.stop();
    wait_for_end(&stage, &sender);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (1, 0), "{ledger}");
    drop(release);
    stage.expect(&["s Stopped 2", "a full"]);
    stage.end(&["a Stopped 1", "p Stopped 1"]);
}
