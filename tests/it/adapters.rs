//! References that change messages on their way.

use crate::support::*;
use pointsman::prelude::*;
use pointsman::{Accepted, Recipient, SendError, SystemRef};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};

struct Log(Sender<String>);

struct Text(String);

impl From<u32> for Text {
    fn from(number: u32) -> Self {
        Text(number.to_string())
    }
}

impl Actor for Log {
    type Message = Text;
    fn receive(&mut self, text: Text, _: &mut Context<Text>) -> Done {
        self.0.send(text.0)?;
        Ok(())
    }
}

#[test]
fn narrow_and_contramap_bring_what_they_make_to_the_same_actor() {
    let stage = Stage::new("adapters");
    let (sender, texts) = channel();
    let log = stage.system.actor("log").spawn(move || Log(sender.clone())).unwrap();
    let narrow: ActorRef<u32> = log.narrow();
    let prefix = String::from("number ");
    let mapped: ActorRef<u8> = log.contramap(move |number: u8| Text(format!("{prefix}{number}")));
    let twice: ActorRef<bool> = mapped.contramap(u8::from);
    narrow.tell(1u32);
    mapped.tell(2u8);
    twice.tell(true);
    let next = || texts.recv_timeout(LONG).unwrap();
    assert_eq!([next(), next(), next()], ["1", "number 2", "number 1"]);
    assert_eq!((narrow.path(), twice.uid(), twice.any()), (log.path(), log.uid(), log.any()));
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (3, 3, 0), "{ledger}");
    // What the target refuses cannot be changed back: a dead letter.
    twice.stop();
    wait_until(|| twice.is_closed());
    twice.tell(false);
    assert!(narrow.try_tell(5u32).is_ok());
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.dead_lettered, ledger.balance()), (5, 2, 0), "{ledger}");
    stage.end(&[]);
}

#[test]
fn an_adapter_that_panics_unwinds_to_the_sender_and_the_books_balance() {
    let stage = Stage::new("panics");
    let (sender, texts) = channel();
    let log = stage.system.actor("log").spawn(move || Log(sender.clone())).unwrap();
    let picky: ActorRef<u32> = log.contramap(|number: u32| {
        assert!(number < 10, "too large");
        Text::from(number)
    });
    assert!(catch_unwind(AssertUnwindSafe(|| picky.tell(10u32))).is_err());
    picky.tell(9u32);
    assert_eq!(texts.recv_timeout(LONG).unwrap(), "9");
    let ledger = stage.system.ledger();
    assert_eq!(
        (ledger.sent, ledger.handled, ledger.dead_lettered, ledger.balance()),
        (2, 1, 1, 0),
        "{ledger}"
    );
    stage.end(&[]);
}

/// Counted by a system, and no actor.
struct Counted(SystemRef, Sender<u32>);

impl Recipient<u32> for Counted {
    fn deliver(&self, message: u32) -> Result<Accepted, SendError<u32>> {
        self.1.send(message).map(|()| Accepted::Handled).map_err(|error| SendError::Closed(error.0))
    }
    fn system(&self) -> Option<SystemRef> {
        Some(self.0.clone())
    }
}

#[test]
fn an_adapter_of_what_is_no_actor_counts_in_the_same_books() {
    let stage = Stage::new("foreign");
    let (sender, numbers) = channel();
    let counted = ActorRef::to_recipient(Counted(stage.system.handle().clone(), sender));
    let adapter: ActorRef<u8> = counted.narrow();
    adapter.tell(3u8);
    counted.tell(4u32);
    assert_eq!(numbers.try_iter().collect::<Vec<_>>(), [3, 4]);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (2, 2, 0), "{ledger}");
    drop(numbers);
    adapter.tell(5u8);
    counted.tell(6u32);
    assert!(matches!(counted.try_tell(7u32), Err(SendError::Closed(7))));
    let ledger = stage.system.ledger();
    assert_eq!(
        (ledger.sent, ledger.dead_lettered, ledger.handed_back, ledger.balance()),
        (5, 2, 1, 0),
        "{ledger}"
    );
    assert_eq!(adapter.path().to_string(), "/deadLetters");
    stage.end(&[]);
}

#[test]
fn untyped_references_know_their_type() {
    let stage = Stage::new("types");
    let (sender, _texts) = channel();
    let log = stage.system.actor("log").spawn(move || Log(sender.clone())).unwrap();
    let any = log.any().unwrap();
    assert_eq!(any.typed::<Text>().unwrap(), log);
    let error = any.typed::<u32>().unwrap_err();
    assert!(error.takes.contains("Text") && error.wanted == "u32" && error.path == log.path());
    stage.end(&[]);
}
