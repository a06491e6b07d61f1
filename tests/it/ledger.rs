//! The books: each term exact, and a loss seen.

use crate::support::*;
use pointsman::actor::Recipient;
use pointsman::prelude::*;
use pointsman::{AnyActorRef, SendError};
use std::time::Duration;

#[test]
fn every_term_is_counted_where_it_happens() {
    let stage = Stage::threads("terms");
    let small = |name: &'static str, mailbox: Mailbox| {
        stage.system.actor(name).mailbox(mailbox).spawn(stage.role(name).recipe()).unwrap()
    };
    let refusing = small("refusing", Mailbox::bounded(1));
    let dropping = small("dropping", Mailbox::bounded(1).on_full(OverflowPolicy::DropNewest));
    let holds = [hold(&refusing), hold(&dropping)];
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.queued, ledger.balance()), (2, 2, 0, 0), "{ledger}");
    let nothing = || Tell::new(|_, _| Ok(()));
    refusing.tell(nothing());
    assert!(refusing.try_tell(nothing()).is_err());
    refusing.tell(nothing());
    dropping.tell(nothing());
    dropping.tell(nothing());
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.queued), (7, 2, 2), "{ledger}");
    assert_eq!((ledger.handed_back, ledger.dead_lettered, ledger.dropped), (1, 1, 1), "{ledger}");
    assert_eq!(ledger.balance(), 0);
    drop(holds);
    wait_until(|| stage.system.ledger().queued == 0);
    assert_eq!(query(&refusing, move |_, ctx| ctx.after(Duration::ZERO, nothing())).map(drop), Ok(()));
    stage.clock.advance(Duration::from_millis(1));
    wait_until(|| stage.system.ledger().ticked == 1);
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handled, ledger.queued, ledger.ticked), (8, 5, 0, 1), "{ledger}");
    assert_eq!(ledger.balance(), 0);
}

/// Tells somebody else, whom it shows or does not.
struct Front {
    behind: ActorRef<Tell>,
    shows: bool,
}

impl Recipient<Tell> for Front {
    fn deliver(&self, message: Tell) -> Result<(), SendError<Tell>> {
        // What is told is another message.
        self.behind.tell(message);
        Ok(())
    }
    fn untyped(&self) -> Option<AnyActorRef> {
        self.behind.untyped().filter(|_| self.shows)
    }
}

#[test]
fn a_recipient_that_tells_somebody_else_has_handled_its_message() {
    let stage = Stage::turns();
    let behind = stage.spawn(&stage.role("a"));
    for shows in [false, true] {
        let front = ActorRef::to_recipient(Front { behind: behind.clone(), shows });
        let before = stage.system.ledger();
        front.tell(Tell::new(|_, _| Ok(())));
        let router =
            stage.system.router(if shows { "shown" } else { "hidden" }).group([front]).spawn().unwrap();
        router.tell(Tell::new(|_, _| Ok(())));
        run_turns();
        let ledger = stage.system.ledger();
        // Its own message is counted where somebody knows whose it is: at a router, and if it shows the actor behind.
        let messages = 2 + 1 + u64::from(shows);
        assert_eq!(
            (ledger.sent - before.sent, ledger.handled - before.handled, ledger.balance()),
            (messages, messages, 0),
            "{ledger}"
        );
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_lost_message_shows_in_the_balance() {
    let stage = Stage::threads("lost");
    let actor = stage.spawn(&stage.role("a"));
    // A message that ends in the ledger of another system is lost to this one.
    let other = System::builder("other").build().unwrap();
    let inbox = other.inbox::<u32>().unwrap();
    let hole = stage.system.router("hole").group([inbox.to_ref()]).spawn().unwrap().to_ref();
    assert_eq!(query(&actor, |_, _| ()), Ok(()));
    assert_eq!(stage.system.ledger().balance(), 0);
    hole.tell(1u32);
    assert_eq!(stage.system.ledger().balance(), 1);
    let adapter: ActorRef<u8> = hole.narrow();
    adapter.tell(2u8);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 2);
}

#[test]
fn counts_of_ended_threads_stay() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    for _ in 0..20 {
        let actor = actor.clone();
        std::thread::spawn(move || note(&actor, "hello")).join().unwrap();
    }
    assert_eq!(query(&actor, |_, _| ()), Ok(()));
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (21, 21, 0), "{ledger}");
}
