//! Dead letters: who is told what, and that nothing goes round.

use crate::support::*;
use pointsman::prelude::*;
use pointsman::routing::{Pick, RouteContext, Routees, RoutingLogic};
use pointsman::{AnyRef, DeadLetterReason};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

fn dead(stage: &Stage) -> ActorRef<Tell> {
    let actor = stage.spawn(&stage.role("a"));
    actor.stop();
    wait_for_end(stage, &actor);
    actor
}

#[test]
fn a_subscriber_is_told_recipient_type_and_reason_until_it_leaves() {
    let stage = Stage::new("told");
    let actor = dead(&stage);
    let (sender, letters) = channel();
    let subscription = stage.system.dead_letters().subscribe(move |letter| {
        let _ = sender.send((letter.recipient.to_string(), letter.message_type, letter.reason));
    });
    note(&actor, "never");
    let letter = letters.try_recv().expect("told on the sender's thread");
    assert_eq!((letter.0.as_str(), letter.2), ("/user/a", DeadLetterReason::Stopped));
    assert!(letter.1.contains("Tell"), "{letter:?}");
    // What comes back is no dead letter.
    assert!(actor.try_tell(Tell::new(|_, _| Ok(()))).is_err());
    assert!(letters.try_recv().is_err());
    drop(subscription);
    note(&actor, "never");
    assert!(letters.try_recv().is_err());
    assert_eq!(stage.system.ledger().dead_lettered, 2);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_subscriber_that_sends_to_a_dead_actor_does_not_go_round() {
    let stage = Stage::new("round");
    let actor = dead(&stage);
    let told = Arc::new(AtomicUsize::new(0));
    let (counted, again) = (told.clone(), actor.clone());
    let _subscription = stage.system.dead_letters().subscribe(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        note(&again, "never");
    });
    note(&actor, "never");
    assert_eq!(told.load(Ordering::SeqCst), 1);
    assert_eq!(stage.system.ledger().dead_lettered, 2);
    note(&actor, "never");
    assert_eq!(told.load(Ordering::SeqCst), 2);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_subscriber_that_panics_harms_neither_sender_nor_other_subscribers() {
    let stage = Stage::new("panics");
    let actor = dead(&stage);
    let told = Arc::new(AtomicUsize::new(0));
    let counted = told.clone();
    let _first = stage.system.dead_letters().subscribe(|_| panic!("as told"));
    let _second = stage.system.dead_letters().subscribe(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    note(&actor, "never");
    note(&actor, "never");
    assert_eq!(told.load(Ordering::SeqCst), 2);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_subscriber_may_subscribe_and_leave_while_it_is_told() {
    let stage = Stage::new("leaves");
    let actor = dead(&stage);
    let system = stage.system.handle().clone();
    let kept = Arc::new(std::sync::Mutex::new(None));
    let slot = kept.clone();
    let subscription = stage.system.dead_letters().subscribe(move |_| {
        // The first that this replaces is dropped in here.
        let next = system.dead_letters().subscribe(|_| {});
        drop(slot.lock().unwrap().replace(next));
    });
    for _ in 0..3 {
        note(&actor, "never");
    }
    drop(subscription);
    kept.lock().unwrap().take();
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

/// Panics wherever it is asked anything but its system.
struct Explodes(SystemRef);
impl pointsman::Recipient<u64> for Explodes {
    fn deliver(&self, _: u64) -> Result<pointsman::Accepted, pointsman::SendError<u64>> {
        panic!("as told")
    }
    fn any(&self) -> Option<AnyRef> {
        panic!("as told")
    }
    fn system(&self) -> Option<SystemRef> {
        Some(self.0.clone())
    }
}

/// Panics at 1, lets every other message fall.
struct Careless;
impl RoutingLogic<u64> for Careless {
    fn select(&self, _: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Pick {
        Pick::None
    }
    fn route(
        &self,
        message: u64,
        _: &Routees<u64>,
        cx: &RouteContext<'_>,
    ) -> Result<(), pointsman::SendError<u64>> {
        cx.copies(2);
        assert_ne!(message, 1, "as told");
        Ok(())
    }
}

#[test]
fn what_user_code_takes_down_with_it_is_shown_once_and_counted_once() {
    let stage = Stage::new("unwinds");
    let (sender, letters) = channel();
    // Runs first, and panics while the sender's thread unwinds already.
    let _panics = stage.system.dead_letters().subscribe(|_| panic!("as told"));
    let _subscription = stage.system.dead_letters().subscribe(move |letter| {
        let _ = sender.send(letter.to_string());
    });
    let explodes: ActorRef<u64> = ActorRef::to_recipient(Explodes(stage.system.handle().clone()));
    let router: Router<u64> =
        stage.system.router("r").group([]).logic(Careless).stay_when_empty().spawn().unwrap();
    let actor = stage.spawn(&stage.role("a"));
    let adapter: ActorRef<u64> = actor.contramap(|_: u64| panic!("as told"));
    let send = |reference: &ActorRef<u64>, message: u64| {
        let sent = std::panic::AssertUnwindSafe(|| reference.tell(message));
        let unwound = std::panic::catch_unwind(sent).is_err();
        (unwound, letters.try_iter().collect::<Vec<_>>())
    };
    let lost = |path: &str| format!("u64 to {path}: lost in a panic");
    assert_eq!(send(&explodes, 1), (true, vec![lost("/deadLetters")]));
    assert_eq!(send(&adapter, 1), (true, vec![lost("/user/a")]));
    assert_eq!(send(&router.to_ref(), 1), (true, vec![lost("/user/r"); 2]));
    let fell = "u64 to /user/r: no routee took it".to_owned();
    assert_eq!(send(&router.to_ref(), 2), (false, vec![fell; 2]));
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (6, 0), "{ledger}");
}
