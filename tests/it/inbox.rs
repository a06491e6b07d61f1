//! Inboxes: messages for code outside actors.

use crate::references::letters;
use crate::support::*;
use pointsman::actor::WatchError;
use pointsman::pattern::{Inbox, InboxError};
use pointsman::prelude::*;
use pointsman::{BuildError, DeadLetterReason, SpawnError, Terminated};
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// By a manual clock that nobody moves so far.
const LONG_BY_HAND: Duration = Duration::from_secs(1 << 40);

/// Waits until so many messages are kept by inboxes.
fn wait_for_queued(stage: &Stage, count: u64) {
    wait_until(|| stage.system.ledger().queued == count);
}

#[test]
fn messages_are_received_in_order_and_queued_until_then() {
    let stage = Stage::threads("order");
    let inbox: Inbox<u32> = stage.system.inbox().unwrap();
    for number in 1..=3 {
        inbox.to_ref().tell(number as u32);
    }
    // While a message moves from the mailbox to what is kept, the books are on the way, too.
    wait_until(|| {
        let ledger = stage.system.ledger();
        (ledger.sent, ledger.handled, ledger.queued, ledger.balance()) == (3, 0, 3, 0)
    });
    for number in 1..=3 {
        assert_eq!(inbox.receive(LONG_BY_HAND), Ok(number));
    }
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.queued), (3, 3, 0), "{ledger}");
    // One that somebody waits for is never kept.
    let inbox = Arc::new(inbox);
    let waiter = std::thread::spawn({
        let inbox = inbox.clone();
        move || inbox.receive(LONG_BY_HAND)
    });
    inbox.to_ref().tell(4u32);
    assert_eq!(waiter.join().unwrap(), Ok(4));
    assert_eq!(stage.system.typed_at::<u32>(&inbox.to_ref().path().to_string()), Ok(inbox.to_ref()));
    stage.end(&[]);
}

#[test]
fn a_query_takes_the_first_message_that_it_accepts_and_leaves_the_others() {
    let stage = Stage::turns();
    let inbox: Inbox<u32> = stage.system.inbox().unwrap();
    for number in [1_u32, 3, 4, 5, 6] {
        inbox.to_ref().tell(number);
    }
    assert_eq!(inbox.select(LONG_BY_HAND, |number| number % 2 == 0), Ok(4));
    assert_eq!(inbox.select(LONG_BY_HAND, |number| number % 2 == 0), Ok(6));
    let rest: Vec<_> = (0..3).map(|_| inbox.receive(LONG_BY_HAND)).collect();
    assert_eq!(rest, [Ok(1), Ok(3), Ok(5)]);
    stage.end(&[]);
}

#[test]
fn those_who_wait_are_served_in_their_order_by_what_they_accept() {
    let stage = Stage::threads("queries");
    let inbox: Arc<Inbox<u32>> = Arc::new(stage.system.inbox().unwrap());
    let wait = |accepts: fn(&u32) -> bool| {
        let inbox = inbox.clone();
        let begun = stage.system.ledger().asks.begun;
        let waiter = std::thread::spawn(move || inbox.select(LONG_BY_HAND, accepts));
        // Its query is on its way; what it is to get finds it waiting or waits for it.
        wait_until(|| stage.system.ledger().asks.begun > begun);
        waiter
    };
    let even = wait(|number| number % 2 == 0);
    inbox.to_ref().tell(1u32);
    assert_eq!(inbox.receive(LONG_BY_HAND), Ok(1), "what the first does not accept goes to the next");
    let small = wait(|number| *number < 10);
    inbox.to_ref().tell(100u32);
    assert_eq!(even.join().unwrap(), Ok(100));
    inbox.to_ref().tell(2u32);
    assert_eq!(small.join().unwrap(), Ok(2));
    stage.end(&[]);
}

#[test]
fn of_two_who_would_take_a_message_the_one_that_waits_longer_gets_it() {
    let stage = Stage::threads("first");
    let inbox: Arc<Inbox<u32>> = Arc::new(stage.system.inbox().unwrap());
    let mut waiters = Vec::new();
    for index in 0..4 {
        let (waiting, (asked, was_asked)) = (inbox.clone(), std::sync::mpsc::channel());
        waiters.push(std::thread::spawn(move || {
            waiting.select(LONG_BY_HAND, move |number| {
                let _ = asked.send(());
                *number >= 10
            })
        }));
        // It waits from now on: it has been offered a message that it does not take.
        while was_asked.try_recv().is_err() {
            inbox.to_ref().tell(index as u32);
            std::thread::yield_now();
        }
    }
    for number in 10..14 {
        inbox.to_ref().tell(number as u32);
    }
    let got: Vec<_> = waiters.into_iter().map(|waiter| waiter.join().unwrap().unwrap()).collect();
    assert_eq!(got, [10, 11, 12, 13]);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_query_that_nothing_answers_in_time_fails_and_takes_no_message_with_it() {
    let stage = Stage::turns();
    let inbox: Arc<Inbox<u32>> = Arc::new(stage.system.inbox().unwrap());
    let waiting = inbox.clone();
    let waiter = std::thread::spawn(move || waiting.receive(SECOND));
    while !waiter.is_finished() {
        stage.clock.advance(SECOND);
        std::thread::yield_now();
    }
    let error = waiter.join().unwrap().unwrap_err();
    assert_eq!(error, InboxError::Timeout { after: SECOND });
    assert_eq!(error.to_string(), "no message within 1s: give it more time");
    inbox.to_ref().tell(1u32);
    wait_for_queued(&stage, 1);
    assert_eq!(inbox.receive(LONG_BY_HAND), Ok(1));
    stage.end(&[]);
}

#[test]
fn surplus_is_dropped_and_counted() {
    let stage = Stage::turns();
    let (_subscription, letters) = letters(&stage);
    let inbox: Inbox<u32> = stage.system.inbox_with_capacity(3).unwrap();
    for number in 1..=10 {
        inbox.to_ref().tell(number as u32);
    }
    for number in 1..=3 {
        assert_eq!(inbox.receive(LONG_BY_HAND), Ok(number));
    }
    let path = inbox.to_ref().path().to_string();
    wait_until(|| stage.system.ledger().dropped == 7);
    assert_eq!(letters.try_iter().collect::<Vec<_>>(), vec![(path, DeadLetterReason::Dropped); 7]);
    inbox.to_ref().tell(11u32);
    assert_eq!(inbox.receive(LONG_BY_HAND), Ok(11));
    let refused = stage.system.inbox_with_capacity::<u32>(0);
    assert!(matches!(refused, Err(SpawnError::ZeroCapacity { .. })), "{refused:?}");

    let usual: Inbox<u32> = stage.system.inbox().unwrap();
    for number in 0..1010 {
        usual.to_ref().tell(number as u32);
    }
    wait_until(|| stage.system.ledger().dropped == 7 + 10);
    wait_for_queued(&stage, 1000);
    drop(usual);
    stage.end(&[]);
}

#[test]
fn surplus_goes_to_the_sink_of_its_type_and_is_suppressed_as_other_dead_messages_are() {
    let stage = Stage::turns();
    let (_subscription, letters) = letters(&stage);
    let (sender, taken) = std::sync::mpsc::channel();
    let sink = move |number: u32, letter: pointsman::DeadLetter| {
        let _ = sender.send((number, letter.reason));
    };
    let _sink = stage.system.dead_letters().take_by(|_| {}, sink).unwrap();
    stage.system.dead_letters().suppress(|number: &u32| *number == 3);
    let inbox: Inbox<u32> = stage.system.inbox_with_capacity(1).unwrap();
    for number in 1..=3 {
        inbox.to_ref().tell(number as u32);
    }
    wait_until(|| stage.system.ledger().dropped == 2);
    let dropped = DeadLetterReason::Dropped;
    assert_eq!(taken.try_iter().collect::<Vec<_>>(), [(2, dropped), (3, dropped)]);
    assert_eq!(letters.try_iter().collect::<Vec<_>>(), [(inbox.to_ref().path().to_string(), dropped)]);
    drop(inbox);
    stage.end(&[]);
}

#[test]
fn who_waits_for_no_message_gets_one_that_is_there() {
    const NOTHING: InboxError = InboxError::Timeout { after: Duration::ZERO };
    for stage in [Stage::turns(), Stage::threads("at-once")] {
        let inbox: Inbox<u32> = stage.system.inbox().unwrap();
        assert_eq!(inbox.receive(Duration::ZERO), Err(NOTHING));
        for number in 1..=20 {
            inbox.to_ref().tell(number);
            assert_eq!(inbox.select(Duration::ZERO, |number| *number > 20), Err(NOTHING));
            let panics = inbox.select(Duration::ZERO, |_| panic!("planted"));
            assert_eq!(panics, Err(InboxError::PredicatePanicked));
            assert_eq!(inbox.receive(Duration::ZERO), Ok(number));
        }
        // Nobody waits any more.
        inbox.to_ref().tell(21u32);
        wait_for_queued(&stage, 1);
        drop(inbox);
        stage.end(&[]);
    }
}

#[test]
fn a_system_says_how_much_its_inboxes_keep_that_are_given_no_number() {
    let stage = Stage::turns_with(|builder| builder.inbox_capacity(2));
    let inbox: Inbox<u32> = stage.system.inbox().unwrap();
    for number in 1..=5 {
        inbox.to_ref().tell(number as u32);
    }
    assert_eq!((inbox.receive(LONG_BY_HAND), inbox.receive(LONG_BY_HAND)), (Ok(1), Ok(2)));
    wait_until(|| stage.system.ledger().dropped == 3);
    drop(inbox);
    stage.end(&[]);
}

/// Nobody could open one, and the settings would print what no file may say.
#[test]
fn inboxes_that_keep_nothing_are_no_system() {
    let error = System::builder("none").inbox_capacity(0).build().unwrap_err();
    assert!(matches!(error, BuildError::ZeroInboxCapacity), "{error}");
    assert_eq!(error.to_string(), "inbox capacity 0: must be at least 1");
}

#[test]
fn what_is_left_in_an_inbox_becomes_dead_letters() {
    let stage = Stage::turns();
    let (_subscription, letters) = letters(&stage);
    let inbox: Inbox<u32> = stage.system.inbox().unwrap();
    let reference = inbox.to_ref();
    for number in 1..=3 {
        reference.tell(number as u32);
    }
    drop(inbox);
    reference.tell(4u32);
    wait_until(|| stage.system.ledger().dead_lettered == 4);
    let path = reference.path().to_string();
    assert_eq!(letters.try_iter().collect::<Vec<_>>(), vec![(path, DeadLetterReason::Stopped); 4]);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.queued), (4, 0, 0), "{ledger}");
    stage.end(&[]);
}

enum News {
    Number(u32),
    Lost(String),
}

impl From<Terminated> for News {
    fn from(terminated: Terminated) -> Self {
        News::Lost(terminated.actor.path().name().to_owned())
    }
}

#[test]
fn an_inbox_watches() {
    let stage = Stage::turns();
    let inbox: Inbox<News> = stage.system.inbox().unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| stage.spawn(&stage.role(name)));
    assert!(inbox.watch(&a).is_ok() && inbox.watch(&b).is_ok());
    assert!(inbox.watch_with(&c, News::Number(3)).is_ok());
    inbox.unwatch(&b);
    for actor in [&a, &b, &c] {
        actor.graceful_stop(SECOND).wait().unwrap();
    }
    let lost = inbox.select(LONG_BY_HAND, |news| matches!(news, News::Lost(_))).ok().unwrap();
    assert!(matches!(lost, News::Lost(name) if name == "a"));
    assert!(matches!(inbox.receive(LONG_BY_HAND), Ok(News::Number(3))));
    // Whoever has ended is told of at once.
    inbox.watch(&b).expect("an actor");
    assert!(matches!(inbox.receive(LONG_BY_HAND), Ok(News::Lost(name)) if name == "b"));
    let nothing: ActorRef<u32> = ActorRef::to_recipient(Nothing);
    assert!(matches!(inbox.watch(&nothing), Err(WatchError::NoActor { .. })));
    let refused = inbox.watch_with(&nothing, News::Number(4)).unwrap_err();
    assert!(matches!(refused.into_inner(), News::Number(4)));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

struct Nothing;

impl pointsman::actor::Recipient<u32> for Nothing {
    fn deliver(&self, message: u32) -> Result<(), pointsman::SendError<u32>> {
        Err(pointsman::SendError::Closed(message))
    }
}

#[test]
fn a_predicate_that_panics_fails_its_query_alone() {
    let stage = Stage::threads("panics");
    let inbox: Inbox<u32> = stage.system.inbox().unwrap();
    inbox.to_ref().tell(1u32);
    assert_eq!(inbox.select(LONG_BY_HAND, |_| panic!("planted")), Err(InboxError::PredicatePanicked));
    assert_eq!(inbox.receive(LONG_BY_HAND), Ok(1));
    // One that waits already.
    let inbox = Arc::new(inbox);
    let waiting = inbox.clone();
    let waiter = std::thread::spawn(move || waiting.select(LONG_BY_HAND, |_| panic!("planted")));
    let mut sent = 0_u32;
    while !waiter.is_finished() {
        inbox.to_ref().tell(sent);
        sent += 1;
        std::thread::yield_now();
    }
    assert_eq!(waiter.join().unwrap(), Err(InboxError::PredicatePanicked));
    assert_eq!(inbox.receive(LONG_BY_HAND), Ok(0), "and no message");
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_worker_may_not_wait_for_an_inbox_and_other_threads_may() {
    let stage = Stage::turns_with(|builder| builder.dispatcher("blocking", Dispatcher::blocking()));
    let inbox: Arc<Inbox<u32>> = Arc::new(stage.system.inbox().unwrap());
    inbox.to_ref().tell(1u32);
    let actor = stage.spawn(&stage.role("a"));
    let waiting = inbox.clone();
    assert_eq!(
        query(&actor, move |_, _| waiting.receive(LONG_BY_HAND)),
        Ok(Err(InboxError::WouldBlockWorker))
    );
    let recipe = stage.role("b").recipe();
    let actor = stage.system.actor("b").dispatcher("blocking").spawn(recipe).unwrap();
    let waiting = inbox.clone();
    assert_eq!(query(&actor, move |_, _| waiting.receive(LONG_BY_HAND)), Ok(Ok(1)));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn an_inbox_ends_with_its_system() {
    let stage = Stage::turns();
    let inbox: Arc<Inbox<u32>> = Arc::new(stage.system.inbox().unwrap());
    let waiting = inbox.clone();
    let begun = stage.system.ledger().asks.begun;
    let waiter = std::thread::spawn(move || waiting.receive(LONG_BY_HAND));
    wait_until(|| stage.system.ledger().asks.begun > begun);
    let handle = stage.system.handle().clone();
    stage.end(&[]);
    assert_eq!(waiter.join().unwrap(), Err(InboxError::Closed));
    assert_eq!(inbox.receive(SECOND), Err(InboxError::Closed));
    assert!(matches!(handle.inbox::<u32>(), Err(SpawnError::ShutDown { .. })));
}

#[test]
fn queries_that_time_out_while_messages_come_lose_none() {
    const MESSAGES: u32 = 2_000;
    let system = System::builder("hasty").build().unwrap();
    let inbox: Arc<Inbox<u32>> = Arc::new(system.inbox_with_capacity(MESSAGES as usize + 2).unwrap());
    let waiters: Vec<_> = (0..2)
        .map(|_| {
            let inbox = inbox.clone();
            std::thread::spawn(move || {
                // From too short for any answer to long enough for all.
                let (mut got, mut round) = (Vec::new(), 0_u64);
                while got.last() != Some(&MESSAGES) {
                    round += 1;
                    match inbox.receive(Duration::from_nanos(1 << (round % 31))) {
                        Ok(number) => got.push(number),
                        Err(InboxError::Timeout { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                got
            })
        })
        .collect();
    for number in 0..MESSAGES {
        inbox.to_ref().tell(number);
    }
    // One for each.
    inbox.to_ref().tell(MESSAGES);
    inbox.to_ref().tell(MESSAGES);
    let mut all: Vec<u32> = waiters.into_iter().flat_map(|waiter| waiter.join().unwrap()).collect();
    all.sort();
    assert!(all.into_iter().eq((0..=MESSAGES).chain([MESSAGES])));
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handled), (u64::from(MESSAGES) + 2, u64::from(MESSAGES) + 2), "{ledger}");
}

#[test]
fn surplus_is_warned_of_once() {
    crate::logged::listen();
    let system = System::builder("warning").build().unwrap();
    let inbox = system.inbox_with_capacity::<u32>(2).unwrap();
    for round in 0..3 {
        (0..4u32).for_each(|number| inbox.to_ref().tell(number));
        wait_until(|| system.ledger().dropped == 2 * (round + 1));
        for number in 0..2 {
            assert_eq!(inbox.receive(LONG), Ok(number));
        }
    }
    let warnings: Vec<String> =
        crate::logged::lines("warning").into_iter().filter(|line| line.starts_with('!')).collect();
    let expected = "! inbox /system/$a is full with 2 messages and drops further ones: receive more often, or give it \
                    a larger capacity";
    assert_eq!(warnings, [expected]);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_predicate_that_panics_when_it_is_let_go_of_loses_no_message() {
    let stage = Stage::turns();
    let inbox: Inbox<u32> = stage.system.inbox().unwrap();
    inbox.to_ref().tell(1u32);
    let sore = Sore;
    // Nobody waits for it any more, and the next query lets go of it.
    let waited = inbox.select(SECOND, move |_| {
        let _ = &sore;
        false
    });
    assert_eq!(waited, Err(InboxError::Stalled));
    assert_eq!(inbox.receive(LONG_BY_HAND), Ok(1));
    stage.end(&[]);
}

#[test]
fn predicates_that_panic_when_they_are_let_go_of_end_the_inbox_and_nothing_else() {
    let stage = Stage::threads("sore");
    let inbox: Arc<Inbox<u32>> = Arc::new(stage.system.inbox().unwrap());
    let begun = stage.system.ledger().asks.begun;
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let (inbox, sore) = (inbox.clone(), Sore);
            std::thread::spawn(move || {
                inbox.select(LONG_BY_HAND, move |_| {
                    let _ = &sore;
                    false
                })
            })
        })
        .collect();
    wait_until(|| stage.system.ledger().asks.begun == begun + 3);
    inbox.to_ref().tell(1u32);
    wait_for_queued(&stage, 1);
    inbox.to_ref().stop();
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), Err(InboxError::Closed));
    }
    stage.end(&[]);
}

/// Waits before it tells the time to a thread that is in a handler, until the inbox is empty.
struct Slow {
    start: std::time::Instant,
    until_empty: Arc<std::sync::OnceLock<ActorRef<u32>>>,
}

thread_local! {
    static IN_HANDLER: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl pointsman::time::Clock for Slow {
    fn now(&self) -> Duration {
        if IN_HANDLER.get() {
            let inbox = self.until_empty.get().expect("it was made before");
            wait_until(|| inbox.queued() == Some(0));
        }
        self.start.elapsed()
    }
}

#[test]
fn who_may_not_wait_for_an_inbox_takes_no_message_with_him() {
    let until_empty = Arc::new(std::sync::OnceLock::new());
    let clock = Slow { start: std::time::Instant::now(), until_empty: until_empty.clone() };
    let system = System::builder("refused")
        .clock(clock)
        .dispatcher("here", Dispatcher::calling_thread())
        .build()
        .unwrap();
    let inbox: Arc<Inbox<u32>> = Arc::new(system.inbox().unwrap());
    until_empty.set(inbox.to_ref()).unwrap();
    inbox.to_ref().tell(1u32);
    wait_until(|| system.ledger().queued == 1);
    let (sender, receiver) = std::sync::mpsc::channel();
    let waiting = inbox.clone();
    let mut recipe = Some(move || Waits(waiting, sender));
    let actor = system
        .actor("a")
        .dispatcher("here")
        .spawn(move || recipe.take().map(|make| make()).ok_or(Failure::msg("once")))
        .unwrap();
    actor.tell(());
    assert_eq!(receiver.recv_timeout(LONG), Ok(Err(InboxError::WouldBlockWorker)));
    assert_eq!(inbox.receive(SECOND), Ok(1));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// The message is there, and nobody could ever hand it over.
#[test]
fn who_has_the_only_thread_of_an_inbox_may_not_wait_for_it() {
    let stage = Stage::threads_with("alone", |builder| {
        builder.dispatcher("internal", Dispatcher::blocking().thread_range(1..=1))
    });
    let inbox: Arc<Inbox<u32>> = Arc::new(stage.system.inbox().unwrap());
    inbox.to_ref().tell(1u32);
    let recipe = stage.role("a").recipe();
    let actor = stage.system.actor("a").dispatcher("internal").spawn(recipe).unwrap();
    let waiting = inbox.clone();
    assert_eq!(
        query(&actor, move |_, _| waiting.receive(Duration::MAX)),
        Ok(Err(InboxError::WouldBlockWorker))
    );
    assert_eq!(inbox.receive(LONG_BY_HAND), Ok(1));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

struct Waits(Arc<Inbox<u32>>, std::sync::mpsc::Sender<Result<u32, InboxError>>);

impl Actor for Waits {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        IN_HANDLER.set(true);
        let got = self.0.receive(LONG);
        IN_HANDLER.set(false);
        self.1.send(got)?;
        Ok(())
    }
}

#[test]
fn a_logger_that_panics_at_the_surplus_loses_nothing_else() {
    let stage = Stage::turns();
    let inbox = stage.system.inbox_with_capacity::<u32>(2).unwrap();
    crate::logged::meanwhile(|text| assert!(!text.contains("is full with"), "planted"));
    (0..3u32).for_each(|number| inbox.to_ref().tell(number));
    assert_eq!(inbox.receive(LONG_BY_HAND), Ok(0));
    assert_eq!(inbox.receive(LONG_BY_HAND), Ok(1));
    assert_eq!(stage.system.ledger().dropped, 1);
    stage.end(&[]);
}

#[test]
fn on_the_thread_of_a_test_nobody_waits_for_what_no_turn_brings() {
    let stage = Stage::turns();
    let inbox: Inbox<u32> = stage.system.inbox().unwrap();
    let error = inbox.receive(LONG_BY_HAND).unwrap_err();
    assert_eq!(error, InboxError::Stalled);
    assert!(error.to_string().contains("no turn of the test system brings one"), "{error}");
    inbox.to_ref().tell(1u32);
    assert_eq!(inbox.receive(LONG_BY_HAND), Ok(1));
    stage.end(&[]);
}
