//! Asking, from threads, executors and actors.

use crate::support::*;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A message whose port is kept in `keep`, unanswered.
fn keep(keep: Sender<ReplyTo<u32>>) -> impl FnOnce(ReplyTo<u32>) -> Tell {
    move |reply_to| {
        Tell::new(move |_, _| {
            keep.send(reply_to)?;
            Ok(())
        })
    }
}

#[test]
fn a_panic_or_a_dropped_port_fails_the_ask_at_once() {
    let stage = Stage::threads("noreply");
    let actor = stage.spawn(&stage.role("a"));
    let panics = actor.ask_with(|reply_to: ReplyTo<u32>| {
        Tell::new(move |_, _| {
            let _reply_to = reply_to;
            panic!("as told")
        })
    });
    assert_eq!(panics.wait(), Err(AskError::no_reply()));
    let dropped = actor.ask_with(|reply_to: ReplyTo<u32>| {
        Tell::new(move |_, _| {
            drop(reply_to);
            Ok(())
        })
    });
    assert_eq!(dropped.wait(), Err(AskError::no_reply()));
    // A request in the mailbox of an actor that stops.
    let release = hold(&actor);
    let (sender, _ports) = channel();
    let queued = actor.ask_with(keep(sender));
    actor.stop();
    drop(release);
    assert_eq!(queued.wait(), Err(AskError::no_reply()));
    wait_for_end(&stage, &actor);
    let (sender, _ports) = channel();
    assert_eq!(actor.ask_with(keep(sender)).wait(), Err(AskError::undeliverable()));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_deadline_goes_by_the_systems_clock() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let (sender, ports) = channel();
    let ask = actor.ask_with(keep(sender)).within(SECOND);
    let port = ports.soon().unwrap();
    assert!(port.wanted());
    let waiter = std::thread::spawn(move || ask.wait());
    stage.clock.advance(SECOND / 2);
    stage.clock.advance(SECOND / 2);
    assert_eq!(waiter.join().unwrap(), Err(AskError::timeout(SECOND)));
    assert!(!port.wanted());
    assert_eq!(port.send(3), Err(3));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);

    let system = System::builder("real").build().unwrap();
    let (log, _notes) = channel();
    let actor = system.actor("a").spawn(Role::new("a", &log).recipe()).unwrap();
    let (sender, _ports) = channel();
    let limit = Duration::from_millis(3);
    assert_eq!(actor.ask_with(keep(sender)).within(limit).wait(), Err(AskError::timeout(limit)));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Wakes by a channel.
struct Alarm(Sender<()>);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

/// An executor for one future.
fn block_on<F: Future>(future: F, woken: &Receiver<()>, waker: &Waker) -> F::Output {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => woken.soon().expect("a pending future is woken"),
        }
    }
}

#[test]
fn an_ask_is_a_future_under_any_executor() {
    let stage = Stage::threads("future");
    let actor = stage.spawn(&stage.role("a"));
    let (sender, woken) = channel();
    let waker = Waker::from(Arc::new(Alarm(sender)));
    let release = hold(&actor);
    let ask = actor.ask_with(|reply_to| {
        Tell::new(move |_, _| {
            let _ = reply_to.send(6);
            Ok(())
        })
    });
    drop(release);
    assert_eq!(block_on(ask, &woken, &waker), Ok(6));
    // Its deadline, by hand.
    let (sender, ports) = channel();
    let ask = actor.ask_with(keep(sender)).within(SECOND);
    let _port = ports.soon().unwrap();
    let clock = stage.clock.clone();
    let waiter = std::thread::spawn(move || block_on(ask, &woken, &waker));
    clock.advance(SECOND);
    assert_eq!(waiter.join().unwrap(), Err(AskError::timeout(SECOND)));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn an_askers_ask_is_a_future_with_a_deadline_of_its_own() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let (sender, woken) = channel();
    let waker = Waker::from(Arc::new(Alarm(sender)));
    let mut asker = Asker::default();
    for number in 0..3 {
        let pending = asker.ask_with(&actor, |reply_to| {
            Tell::new(move |_, _| {
                let _ = reply_to.send(number);
                Ok(())
            })
        });
        assert_eq!(block_on(pending, &woken, &waker), Ok(number));
    }
    let (sender, ports) = channel();
    let pending = asker.ask_with(&actor, keep(sender)).within(SECOND);
    let port = ports.soon().unwrap();
    stage.clock.advance(SECOND);
    assert_eq!(block_on(pending, &woken, &waker), Err(AskError::timeout(SECOND)));
    assert_eq!(port.send(9), Err(9));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[derive(Debug, Clone, PartialEq)]
struct Double(u32);

impl Request for Double {
    type Reply = u32;
}

#[test]
fn who_belongs_to_no_system_is_asked_by_the_machines_clock() {
    let (sender, woken) = channel();
    let waker = Waker::from(Arc::new(Alarm(sender)));
    let limit = Duration::from_millis(3);
    let (keep, kept) = channel();
    let silent = ActorRef::from_fn(move |call: Call<Double>| keep.send(call).unwrap());
    let timeout = AskError::timeout(limit);
    assert_eq!(block_on(silent.ask(Double(1)).within(limit), &woken, &waker), Err(timeout.clone()));
    assert_eq!(silent.ask(Double(1)).within(limit).wait(), Err(timeout.clone()));
    // The request comes back with the error, or is gone with the answer.
    let failed = block_on(silent.ask_or_back(Double(2)).within(limit), &woken, &waker).unwrap_err();
    assert_eq!((&failed.error, &failed.message), (&timeout, &Double(2)));
    assert!(kept.try_iter().all(|call| !call.reply_to.wanted()));
    let doubles = ActorRef::from_fn(|call: Call<Double>| call.answer(|Double(number)| 2 * number));
    assert_eq!(block_on(doubles.ask_or_back(Double(4)), &woken, &waker), Ok(8));
}

/// Answers, forgets, panics or keeps; asks others of its kind.
struct Peer {
    outcomes: Sender<Result<u32, AskError>>,
    kept: Vec<Call<Get>>,
}

#[derive(Clone, Copy)]
enum Get {
    Answer,
    Forget,
    Panic,
    Keep,
}

impl Request for Get {
    type Reply = u32;
}

enum PeerMsg {
    Get(Call<Get>),
    Ask(ActorRef<PeerMsg>, Get, Option<Duration>),
    Got(Result<u32, AskError>),
    AnswerKept,
}

impl From<Call<Get>> for PeerMsg {
    fn from(call: Call<Get>) -> Self {
        PeerMsg::Get(call)
    }
}

impl Actor for Peer {
    type Message = PeerMsg;
    fn receive(&mut self, message: PeerMsg, ctx: &mut Context<PeerMsg>) -> HandlerResult {
        match message {
            PeerMsg::Get(call) => match call.request {
                Get::Answer => call.answer(|_| 42),
                Get::Forget => drop(call),
                Get::Panic => {
                    let _call = call;
                    panic!("as told")
                }
                Get::Keep => self.kept.push(call),
            },
            PeerMsg::Ask(target, get, None) => ctx.ask(&target, get, PeerMsg::Got),
            PeerMsg::Ask(target, get, Some(deadline)) => {
                ctx.ask_within(&target, get, deadline, PeerMsg::Got);
            }
            PeerMsg::Got(outcome) => self.outcomes.send(outcome)?,
            PeerMsg::AnswerKept => self.kept.drain(..).for_each(|call| call.answer(|_| 7)),
        }
        Ok(())
    }
}

#[test]
fn an_actor_gets_its_answer_as_a_message() {
    let stage = Stage::turns();
    let (outcomes, got) = channel();
    let spawn = |name: &str| {
        let outcomes = outcomes.clone();
        let peer = move || Peer { outcomes: outcomes.clone(), kept: Vec::new() };
        stage.system.actor(name).spawn(peer).unwrap()
    };
    let (asker, target) = (spawn("asker"), spawn("target"));
    let ask = |get, deadline| asker.tell(PeerMsg::Ask(target.clone(), get, deadline));
    let next = || got.soon().unwrap();
    for deadline in [None, Some(SECOND)] {
        ask(Get::Answer, deadline);
        assert_eq!(next(), Ok(42));
        ask(Get::Forget, deadline);
        assert_eq!(next(), Err(AskError::no_reply()));
        ask(Get::Panic, deadline);
        assert_eq!(next(), Err(AskError::no_reply()));
    }
    ask(Get::Answer, Some(Duration::ZERO));
    assert_eq!(next(), Err(AskError::NoTime));
    let gone = spawn("gone");
    gone.stop();
    wait_until(|| gone.is_closed());
    asker.tell(PeerMsg::Ask(gone.clone(), Get::Answer, Some(SECOND)));
    assert_eq!(next(), Err(AskError::undeliverable()));
    // The deadline passes; the late reply is nobody's.
    ask(Get::Keep, Some(SECOND));
    let reached = target.ask(Get::Answer).wait();
    assert!(reached.is_ok());
    wait_until(|| stage.system.ledger().queued == 0);
    // The asker has asked by now or will at once: by the target's second answer behind the request.
    let mut outcome = None;
    wait_until(|| {
        stage.clock.advance(SECOND);
        outcome = got.try_recv().ok();
        outcome.is_some()
    });
    assert_eq!(outcome, Some(Err(AskError::timeout(SECOND))));
    target.tell(PeerMsg::AnswerKept);
    ask(Get::Answer, None);
    assert_eq!(next(), Ok(42));
    // In time.
    ask(Get::Keep, Some(SECOND));
    wait_until(|| {
        target.tell(PeerMsg::AnswerKept);
        outcome = got.try_recv().ok();
        outcome.is_some()
    });
    assert_eq!(outcome, Some(Ok(7)));
    // No timer of an ask that is over is left: its timer would hold the asker.
    stage.clock.advance(3600 * SECOND);
    assert!(got.try_recv().is_err());
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn asking_with_no_time_sends_nothing() {
    let stage = Stage::turns();
    let (outcomes, _got) = channel();
    let peer = move || Peer { outcomes: outcomes.clone(), kept: Vec::new() };
    let target = stage.system.actor("target").spawn(peer).unwrap();
    assert_eq!(target.ask_within(Get::Answer, Duration::ZERO).wait(), Err(AskError::NoTime));
    assert_eq!(stage.system.ledger().sent, 0);
    assert_eq!(target.ask_within(Get::Answer, SECOND).wait(), Ok(42));
    assert_eq!(stage.system.ledger().sent, 1);
    stage.end(&[]);
}

/// Hands each request on: as it came, with the port alone, or to one that drops it.
struct Broker {
    second: ActorRef<PeerMsg>,
}

enum BrokerMsg {
    Forward(Call<Get>),
    Rephrase(ReplyTo<u32>),
}

impl From<Call<Get>> for BrokerMsg {
    fn from(call: Call<Get>) -> Self {
        BrokerMsg::Forward(call)
    }
}

impl Actor for Broker {
    type Message = BrokerMsg;
    fn receive(&mut self, message: BrokerMsg, _: &mut Context<BrokerMsg>) -> HandlerResult {
        match message {
            BrokerMsg::Forward(call) => self.second.tell(call),
            BrokerMsg::Rephrase(asker) => self.second.tell(Call::new(Get::Answer, asker)),
        }
        Ok(())
    }
}

#[test]
fn a_forwarded_request_is_answered_by_the_second_actor() {
    let stage = Stage::turns();
    let (outcomes, _got) = channel();
    let peer = move || Peer { outcomes: outcomes.clone(), kept: Vec::new() };
    let second = stage.system.actor("second").spawn(peer).unwrap();
    let to = second.clone();
    let broker = stage.system.actor("broker").spawn(move || Broker { second: to.clone() }).unwrap();
    assert_eq!(broker.ask(Get::Answer).wait(), Ok(42));
    assert_eq!(broker.ask_with(BrokerMsg::Rephrase).wait(), Ok(42));
    // Who fails the ask is the second one, too.
    for get in [Get::Forget, Get::Panic] {
        assert_eq!(broker.ask(get).wait(), Err(AskError::no_reply()));
    }
    // The broker is not needed once it has handed the request on.
    let late = broker.ask(Get::Keep);
    assert_eq!(broker.ask(Get::Answer).wait(), Ok(42));
    broker.stop();
    wait_until(|| broker.is_closed());
    second.tell(PeerMsg::AnswerKept);
    assert_eq!(late.wait(), Ok(7));
    // To one that has stopped.
    let to = second.clone();
    let broker = stage.system.actor("broker2").spawn(move || Broker { second: to.clone() }).unwrap();
    second.stop();
    wait_until(|| second.is_closed());
    assert_eq!(broker.ask(Get::Answer).wait(), Err(AskError::no_reply()));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

/// Hands on what it is asked.
struct Post(Sender<Call<Get>>);

impl Actor for Post {
    type Message = Call<Get>;
    fn receive(&mut self, call: Call<Get>, _: &mut Context<Call<Get>>) -> HandlerResult {
        self.0.send(call)?;
        Ok(())
    }
}

#[test]
fn an_ask_counts_in_the_system_that_it_asks_whichever_threads_begin_answer_and_end_it() {
    let stage = Stage::threads("counts");
    let (sender, got) = channel();
    let peer = move || Peer { outcomes: sender.clone(), kept: Vec::new() };
    let actor = stage.system.actor("a").spawn(peer).unwrap();
    let asks = || stage.system.ledger().asks;
    // Of threads that have done nothing in this system before, or anything at all.
    let elsewhere = |act: Box<dyn FnOnce() + Send>| std::thread::spawn(act).join().unwrap();
    let target = actor.clone();
    elsewhere(Box::new(move || assert_eq!(Asker::new().ask(&target, Get::Answer).wait(), Ok(42))));
    assert_eq!((asks().begun, asks().answered), (1, 1));
    let ask = actor.ask(Get::Answer);
    elsewhere(Box::new(move || assert_eq!(ask.wait(), Ok(42))));
    assert_eq!((asks().begun, asks().answered), (2, 2));
    let ask = actor.ask(Get::Keep);
    elsewhere(Box::new(move || drop(ask)));
    assert_eq!((asks().begun, asks().cancelled), (3, 1));
    // An actor's asks, of which a plain thread answers one and drops the port of the other.
    let asker = stage.spawn(&stage.role("asker"));
    let (sender, calls) = channel();
    let post = stage.system.actor("post").spawn(move || Post(sender.clone())).unwrap();
    for answers in [true, false] {
        let (post, (sender, outcome)) = (post.clone(), channel());
        asker.tell(Tell::new(move |_, ctx| {
            ctx.ask(&post, Get::Keep, move |answer| {
                Tell::new(move |_, _| {
                    sender.send(answer)?;
                    Ok(())
                })
            });
            Ok(())
        }));
        let call: Call<Get> = calls.soon().unwrap();
        elsewhere(Box::new(move || match answers {
            true => call.answer(|_| 5),
            false => drop(call),
        }));
        assert_eq!(outcome.soon().unwrap(), if answers { Ok(5) } else { Err(AskError::no_reply()) });
    }
    let asks = asks();
    assert_eq!((asks.begun, asks.answered, asks.no_reply, asks.pending()), (5, 3, 1, 0), "{asks:?}");
    drop(got);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

/// Notes that it was woken.
struct Bell(Sender<()>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

fn poll<R>(ask: &mut Ask<R>, waker: &Waker) -> Poll<Result<R, AskError>> {
    std::pin::Pin::new(ask).poll(&mut std::task::Context::from_waker(waker))
}

#[test]
fn who_has_polled_an_ask_before_the_end_of_its_system_is_woken_at_its_limit_all_the_same() {
    const LIMIT: Duration = Duration::from_millis(200);
    let clock = ManualClock::new();
    let systems = [
        System::builder("real").build().unwrap(),
        System::builder("by-hand").clock(clock.clone()).build().unwrap(),
    ];
    for system in systems {
        let is_real = system.name() == "real";
        let (sender, ports) = channel();
        let actor = system.spawn(move || Keeps(sender.clone())).unwrap();
        let mut ask = actor.ask_with(|reply_to| reply_to).within(LIMIT);
        let _port = ports.recv_timeout(LONG).unwrap();
        let (bell, rings) = channel();
        let waker = Waker::from(Arc::new(Bell(bell)));
        assert!(poll(&mut ask, &waker).is_pending());
        system.shutdown(LONG).unwrap();
        rings.recv_timeout(LONG).expect("the end wakes whoever waits by the clock");
        if poll(&mut ask, &waker).is_pending() {
            if !is_real {
                clock.advance(LIMIT);
            }
            rings.recv_timeout(LONG).expect("so does the limit");
        }
        assert_eq!(poll(&mut ask, &waker), Poll::Ready(Err(AskError::timeout(LIMIT))));
    }
}

/// Keeps the ports that it gets, unanswered.
struct Keeps(Sender<ReplyTo<u32>>);

impl Actor for Keeps {
    type Message = ReplyTo<u32>;
    fn receive(&mut self, port: ReplyTo<u32>, _: &mut Context<ReplyTo<u32>>) -> HandlerResult {
        self.0.send(port)?;
        Ok(())
    }
}

#[test]
fn an_ask_of_no_system_lets_go_of_its_waker_when_it_is_over() {
    let (sender, ports) = channel();
    let keeps = ActorRef::from_fn(move |port: ReplyTo<u32>| sender.send(port).unwrap());
    // Nobody waits for so long.
    let mut ask = keeps.ask_with(|reply_to| reply_to).within(100 * LONG);
    let (bell, rings) = channel();
    let bell = Arc::new(Bell(bell));
    let waker = Waker::from(bell.clone());
    assert!(poll(&mut ask, &waker).is_pending());
    ports.recv().unwrap().send(7).unwrap();
    rings.recv().unwrap();
    assert_eq!(poll(&mut ask, &waker), Poll::Ready(Ok(7)));
    drop((ask, waker));
    wait_until(|| Arc::strong_count(&bell) == 1);
}

/// What a port is put into: made from the port itself.
enum Counted {
    Count(ReplyTo<u32>),
    Add(u32),
}

impl From<ReplyTo<u32>> for Counted {
    fn from(port: ReplyTo<u32>) -> Self {
        Self::Count(port)
    }
}

impl From<u32> for Counted {
    fn from(number: u32) -> Self {
        Self::Add(number)
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        match self {
            Self::Count(port) => Self::Count(port.clone()),
            Self::Add(number) => Self::Add(*number),
        }
    }
}

struct Counter(u32);

impl Actor for Counter {
    type Message = Counted;
    fn receive(&mut self, message: Counted, _: &mut Context<Counted>) -> HandlerResult {
        match message {
            Counted::Count(port) => drop(port.send(self.0)),
            Counted::Add(number) => self.0 += number,
        }
        Ok(())
    }
}

#[test]
fn what_is_broadcast_or_made_around_a_port_becomes_the_message_as_what_is_told_does() {
    let system = System::builder("into").build().unwrap();
    let counter = system.actor("counter").spawn(|| Counter(1)).unwrap();
    let router = system.router("all").group([counter.clone()]).spawn().unwrap();
    let value = pointsman::routing::RouterValue::new(&system, pointsman::routing::Broadcast).unwrap();
    assert_eq!(value.add_routee(counter.clone()).broadcast(10u32), 1);
    assert_eq!(router.broadcast(100u32), 1);
    assert_eq!(counter.ask_with(|port: ReplyTo<u32>| port).wait(), Ok(111));
    assert_eq!(Asker::new().ask_with(&counter, |port| port).wait(), Ok(111));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}
