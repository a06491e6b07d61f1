//! How long senders and askers wait for room: by the system's clock, and no longer than a question's own limit.

use crate::support::{LONG, panic_of, wait_until};
use pointsman::prelude::*;
use pointsman::routing::{Broadcast, RoundRobin};
use pointsman::topology::{Mode, RequestError, Sending};
use pointsman::{DeadLetterReason, ManualClock, SendError};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq)]
struct Double(u32);

impl Request for Double {
    type Reply = u32;
}

#[derive(Clone, Message)]
enum Msg {
    Double(Call<Double>),
    Hold(Sender<()>, std::sync::Arc<std::sync::Mutex<Receiver<()>>>),
    Note(u32),
}

/// Answers, notes what it has got, and can be held.
struct Clerk(Sender<u32>);

impl Actor for Clerk {
    type Message = Msg;
    fn receive(&mut self, message: Msg, _: &mut Context<Msg>) -> Done {
        match message {
            Msg::Double(call) => {
                self.0.send(call.request.0)?;
                call.answer(|Double(number)| 2 * number);
            }
            Msg::Hold(inside, release) => {
                inside.send(())?;
                let _ = release.lock().expect("nobody panics with it").recv();
            }
            Msg::Note(number) => self.0.send(number)?,
        }
        Ok(())
    }
}

/// A clerk with room for one message, who is held and has that one.
struct Office {
    system: System,
    clock: ManualClock,
    clerk: ActorRef<Msg>,
    release: Sender<()>,
    seen: Receiver<u32>,
    letters: Receiver<DeadLetterReason>,
    _subscription: pointsman::Subscription,
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
            .mailbox(Mailbox::bounded(1).on_full(Full::Wait(limit)))
            .spawn(move || Clerk(sender.clone()))
            .expect("the name is free");
        let (inside, is_inside) = channel();
        let (release, released) = channel();
        clerk.tell(Msg::Hold(inside, std::sync::Arc::new(released.into())));
        is_inside.recv_timeout(LONG).expect("the handler runs");
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
    let refused = office.while_time_passes(move || clerk.send_by(Msg::Note(1), Mode::Wait));
    assert_eq!(refused.map_err(|refusal| refusal.report.full), Err(1));
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
    let second = thread::spawn(move || another.send_by(Msg::Note(2), Mode::Wait).is_ok());
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
    let asked = office.while_time_passes(move || clerk.request(Double(1)).within(SECOND).any().wait());
    assert_eq!(asked, Err(AskError::timeout(SECOND)));
    let clerk = office.clerk.clone();
    let asked = office.while_time_passes(move || clerk.request(Double(2)).within(SECOND).all().wait());
    assert_eq!(asked, Ok(vec![Err(RequestError::TimedOut)]));
    // Through a router that is told inside.
    let router =
        office.system.router("one").group([office.clerk.clone()]).logic(RoundRobin::new()).spawn().unwrap();
    let asked =
        office.while_time_passes(move || router.to_ref().request(Double(3)).within(SECOND).any().wait());
    assert_eq!(asked, Err(AskError::timeout(SECOND)));
    office.end(&[0], 3);
}

/// Asks from a thread of its own, by `ask_within` and by `request`.
struct Asks(ActorRef<Msg>, Sender<Result<u32, AskError>>);

impl Actor for Asks {
    type Message = Option<Result<u32, AskError>>;
    fn receive(&mut self, message: Self::Message, ctx: &mut Context<Self::Message>) -> Done {
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
    let asked = office.while_time_passes(move || clerk.ask(Double(1)).within(3600 * SECOND).wait());
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
