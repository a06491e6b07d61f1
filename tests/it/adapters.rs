//! References that change messages on their way.

use crate::support::panic_of;
use pointsman::SendError;
use pointsman::actor::Recipient;
use pointsman::prelude::*;
use pointsman::testkit::{Probe, TestSystem};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};

#[derive(Debug, PartialEq)]
struct Text(String);

impl From<u32> for Text {
    fn from(number: u32) -> Self {
        Text(number.to_string())
    }
}

fn text(text: &str) -> Text {
    Text(text.to_owned())
}

#[test]
fn narrow_and_contramap_bring_what_they_make_to_the_same_actor() {
    let system = TestSystem::new();
    let probe: Probe<Text> = system.probe();
    let log = probe.actor_ref();
    let narrow: ActorRef<u32> = log.narrow();
    let prefix = String::from("number ");
    let mapped: ActorRef<u8> = log.contramap(move |number: u8| Text(format!("{prefix}{number}")));
    let twice: ActorRef<bool> = mapped.contramap(u8::from);
    narrow.tell(1u32);
    mapped.tell(2u8);
    twice.tell(true);
    ["1", "number 2", "number 1"].into_iter().for_each(|expected| probe.expect(text(expected)));
    assert_eq!((narrow.path(), twice.uid(), twice.untyped()), (log.path(), log.uid(), log.untyped()));
    let ledger = system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (3, 3, 0), "{ledger}");
    // What the target refuses cannot be changed back: a dead letter.
    twice.stop();
    system.run_until_idle();
    assert!(twice.is_closed());
    twice.tell(false);
    assert!(narrow.try_tell(5u32).is_ok());
    let ledger = system.finish();
    assert_eq!((ledger.sent, ledger.dead_lettered), (5, 2), "{ledger}");
}

#[test]
fn an_adapter_that_panics_unwinds_to_the_sender_and_the_books_balance() {
    let system = TestSystem::new();
    let probe: Probe<Text> = system.probe();
    let picky: ActorRef<u32> = probe.actor_ref().contramap(|number: u32| {
        assert!(number < 10, "too large");
        Text::from(number)
    });
    assert_eq!(panic_of(|| picky.tell(10u32)), "too large");
    picky.tell(9u32);
    probe.expect(text("9"));
    let ledger = system.finish();
    assert_eq!((ledger.sent, ledger.handled, ledger.dead_lettered), (2, 1, 1), "{ledger}");
}

/// Counted by a system, and no actor.
struct Counted(SystemRef, Sender<u32>);

impl Recipient<u32> for Counted {
    fn deliver(&self, message: u32) -> Result<(), SendError<u32>> {
        self.1.send(message).map_err(|error| SendError::Closed(error.0))
    }
    fn system(&self) -> Option<SystemRef> {
        Some(self.0.clone())
    }
}

#[test]
fn an_adapter_of_what_is_no_actor_counts_in_the_same_books() {
    let system = TestSystem::new();
    let (sender, numbers) = channel();
    let counted = ActorRef::to_recipient(Counted(system.clone(), sender));
    let adapter: ActorRef<u8> = counted.narrow();
    adapter.tell(3u8);
    counted.tell(4u32);
    assert_eq!(numbers.try_iter().collect::<Vec<_>>(), [3, 4]);
    let ledger = system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (2, 2, 0), "{ledger}");
    drop(numbers);
    adapter.tell(5u8);
    counted.tell(6u32);
    assert!(matches!(counted.try_tell(7u32), Err(SendError::Closed(7))));
    assert_eq!(adapter.path().to_string(), "/deadLetters");
    let ledger = system.finish();
    assert_eq!((ledger.sent, ledger.dead_lettered, ledger.handed_back), (5, 2, 1), "{ledger}");
}

/// Says each time anew whether a system counts for it, and panics at each message.
struct Fickle(SystemRef, AtomicBool);

impl Recipient<u32> for Fickle {
    fn deliver(&self, _: u32) -> Result<(), SendError<u32>> {
        panic!("planted")
    }
    fn system(&self) -> Option<SystemRef> {
        self.1.fetch_xor(true, SeqCst).then(|| self.0.clone())
    }
}

#[test]
fn a_recipient_that_panics_counts_in_the_system_that_it_had_when_its_reference_was_made() {
    let system = TestSystem::new();
    for (counted, expected) in [(true, 1), (false, 0)] {
        let before = system.ledger();
        let fickle = ActorRef::to_recipient(Fickle((*system).clone(), AtomicBool::new(counted)));
        assert_eq!(panic_of(|| fickle.tell(1u32)), "planted");
        let ledger = system.ledger();
        assert_eq!(ledger.sent - before.sent, expected, "{ledger}");
        assert_eq!(ledger.dead_lettered - before.dead_lettered, expected, "{ledger}");
    }
    system.finish();
}

#[test]
fn untyped_references_know_their_type() {
    let system = TestSystem::new();
    let probe: Probe<Text> = system.probe();
    let log = probe.actor_ref();
    let any = log.untyped().unwrap();
    assert_eq!(any.typed::<Text>().unwrap(), *log);
    let error = any.typed::<u32>().unwrap_err();
    assert!(error.takes.contains("Text") && error.wanted == "u32" && error.path == log.path());
    system.finish();
}

#[test]
fn a_router_knows_a_routee_by_an_adapter_that_means_the_same() {
    let system = System::builder("adapters").build().unwrap();
    let (sender, told) = channel();
    let log = ActorRef::from_fn(move |Text(text)| sender.send(text).unwrap());
    let other = ActorRef::from_fn(|_: u32| ());
    let router = system.router("router").group([log.narrow::<u32>(), other.clone()]).spawn().unwrap();
    (0..2).for_each(|_| router.tell(1u32));
    assert_eq!(told.recv().as_deref(), Ok("1"));
    router.remove(log.contramap(|number: u32| Text::from(number))).unwrap();
    assert_eq!(
        router.routees().unwrap(),
        [log.narrow(), other.clone()],
        "another function is another routee"
    );
    router.remove(log.narrow::<u32>()).unwrap();
    assert_eq!(router.routees().unwrap(), [other]);
    assert_eq!(system.shutdown(crate::support::LONG).unwrap().balance(), 0);
}
