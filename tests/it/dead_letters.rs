//! Dead letters: who is told what, and that nothing goes round.

use crate::support::*;
use pointsman::DeadLetterReason;
use pointsman::prelude::*;
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
