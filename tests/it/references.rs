//! References to nobody, to dead letters, and promises.

use crate::support::*;
use crate::watch::Confirming;
use pointsman::prelude::*;
use pointsman::{ActorPath, DeadLetterReason, LookupError, SendError};
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The dead letters of a stage, as they come.
pub fn letters(stage: &Stage) -> (pointsman::Subscription, Receiver<(String, DeadLetterReason)>) {
    let (sender, letters) = channel();
    let subscription = stage.system.dead_letters().subscribe(move |letter| {
        let _ = sender.send((letter.recipient.to_string(), letter.reason));
    });
    (subscription, letters)
}

#[test]
fn a_reference_to_nobody_keeps_its_path_and_makes_dead_letters() {
    let stage = Stage::turns();
    let (_subscription, letters) = letters(&stage);
    let path: ActorPath = "/user/no/body#7".parse().unwrap();
    let nobody: ActorRef<u32> = stage.system.empty_ref(&path);
    assert_eq!((nobody.path(), nobody.uid(), nobody.is_closed()), (path, 0, true));
    nobody.tell(1u32);
    assert!(matches!(nobody.try_tell(2u32), Err(SendError::Closed(2))));
    let asked: ActorRef<ReplyTo<()>> = stage.system.empty_ref(&nobody.path());
    assert_eq!(asked.ask_with(|reply_to| reply_to).wait(), Err(AskError::Undeliverable));
    nobody.stop();
    nobody.poison();
    nobody.kill();
    assert_eq!(
        letters.try_iter().collect::<Vec<_>>(),
        vec![("/user/no/body".to_owned(), DeadLetterReason::NoActor); 2]
    );
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.dead_lettered, ledger.handed_back), (3, 2, 1), "{ledger}");
    // It never comes to mean an actor.
    let role = stage.role("no");
    let actor = stage.spawn(&role);
    let later: ActorRef<Tell> = stage.system.empty_ref(&actor.path());
    assert_ne!(later, actor);
    assert!(later.try_tell(Tell::new(|_, _| Ok(()))).is_err());
    // Untyped, it has its type still.
    let any = nobody.any().unwrap();
    assert_eq!(any.typed::<u32>(), Ok(nobody));
    assert!(any.typed::<String>().is_err());
    stage.end(&["no Started 1", "no Stopped 1"]);
}

#[test]
fn who_watches_nobody_is_told_at_once() {
    let stage = Stage::turns();
    let watcher = stage.spawn(&stage.role("w"));
    watch(&watcher, &stage.system.empty_ref(&"/user/gone".parse().unwrap()));
    watch(&watcher, &stage.system.dead_letters_ref());
    stage.expect(&["w Started 1", "w lost gone", "w lost deadLetters"]);
    stage.end(&["w Stopped 1"]);
}

#[test]
fn the_notice_about_nobody_confirms_no_existence() {
    let stage = Stage::turns();
    let nobody = stage.system.empty_ref::<u32>(&"/user/gone".parse().unwrap()).any().unwrap();
    let (sender, confirmed) = channel();
    let _watcher = stage.system.spawn(move || Confirming(sender.clone(), nobody.clone())).unwrap();
    assert_eq!(confirmed.soon(), Ok(false));
    stage.end(&[]);
}

#[test]
fn what_is_sent_to_dead_letters_is_one() {
    let stage = Stage::turns();
    let (_subscription, letters) = letters(&stage);
    stage.system.dead_letters_ref::<u32>().tell(1u32);
    // Found by its path it takes any type.
    stage.system.typed_at::<String>("/deadLetters").unwrap().tell("two");
    assert!(stage.system.actor_at("/deadLetters").unwrap().is_closed());
    assert!(matches!(stage.system.actor_at("/deadLetters/x"), Err(LookupError::NoActor { .. })));
    assert_eq!(
        letters.try_iter().collect::<Vec<_>>(),
        vec![("/deadLetters".to_owned(), DeadLetterReason::NoActor); 2]
    );
    stage.end(&[]);
}

#[test]
fn references_to_nobody_outlive_their_system() {
    let stage = Stage::turns();
    let nobody: ActorRef<u32> = stage.system.empty_ref(&"/user/gone".parse().unwrap());
    let handle = stage.system.handle().clone();
    stage.end(&[]);
    nobody.tell(1u32);
    handle.empty_ref::<u32>(&"/x".parse().unwrap()).tell(2u32);
    assert_eq!(handle.ledger().dead_lettered, 2);
}

#[test]
fn the_first_message_to_a_promise_is_the_answer_and_later_ones_are_dead_letters() {
    let stage = Stage::turns();
    let (_subscription, letters) = letters(&stage);
    let (reference, reply) = stage.system.promise::<u32>();
    assert_eq!(reference.path().to_string(), "/temp/$a");
    assert_eq!(stage.system.typed_at::<u32>("/temp/$a"), Ok(reference.clone()));
    let watcher = stage.spawn(&stage.role("w"));
    let watched = reference.any().unwrap();
    query(&watcher, move |_, ctx| ctx.watch(&watched)).unwrap().unwrap();
    for number in 1..=3 {
        reference.tell(number as u32);
    }
    assert_eq!(reply.wait(), Ok(1));
    stage.expect(&["w Started 1", "w lost $a"]);
    reference.tell(4u32);
    let late = vec![("/temp/$a".to_owned(), DeadLetterReason::Stopped); 3];
    assert_eq!(letters.try_iter().collect::<Vec<_>>(), late);
    let (next, _reply) = stage.system.promise::<u32>();
    assert_eq!(next.path().name(), "$b");
    stage.end(&["w Stopped 1"]);
}

#[test]
fn a_promise_ends_at_its_deadline_and_when_it_is_given_up() {
    let stage = Stage::turns();
    let living = stage.system.living_actors();
    let (reference, reply) = stage.system.promise::<u32>();
    let waiter = std::thread::spawn(move || reply.within(SECOND).wait());
    while !waiter.is_finished() {
        stage.clock.advance(SECOND);
        std::thread::yield_now();
    }
    assert_eq!(waiter.join().unwrap(), Err(AskError::Timeout { after: SECOND }));
    wait_until(|| reference.is_closed());
    reference.tell(1u32);

    let (reference, reply) = stage.system.promise::<u32>();
    drop(reply);
    wait_until(|| reference.is_closed());
    reference.tell(2u32);
    wait_until(|| stage.system.living_actors() == living);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.dead_lettered), (2, 2), "{ledger}");
    stage.end(&[]);
}

#[test]
fn a_promise_ends_at_its_deadline_although_the_future_is_kept() {
    let stage = Stage::turns();
    let (reference, reply) = stage.system.promise::<u32>();
    let mut reply = reply.within(SECOND);
    let mut poll = || {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::Pin::new(&mut reply).poll(&mut cx)
    };
    assert!(poll().is_pending());
    stage.clock.advance(SECOND);
    assert_eq!(poll(), std::task::Poll::Ready(Err(AskError::Timeout { after: SECOND })));
    run_turns();
    assert!(reference.is_closed());
    let ledger = stage.system.ledger();
    assert_eq!((ledger.asks.begun, ledger.asks.timed_out, ledger.asks.pending()), (1, 1, 0));
    drop(reply);
    stage.end(&[]);
}

#[test]
fn a_promise_that_is_stopped_fails_at_once() {
    let stage = Stage::turns();
    let (reference, reply) = stage.system.promise::<u32>();
    reference.poison();
    assert_eq!(reply.wait(), Err(AskError::NoReply));
    let (_reference, at_the_end) = stage.system.promise::<u32>();
    let handle = stage.system.handle().clone();
    stage.end(&[]);
    assert_eq!(at_the_end.wait(), Err(AskError::NoReply));
    let (reference, after_the_end) = handle.promise::<u32>();
    reference.tell(1u32);
    assert_eq!(after_the_end.wait(), Err(AskError::NoReply));
    assert_eq!(handle.ledger().balance(), 0);
}

#[test]
fn an_ask_by_a_promise_counts_however_it_ends() {
    let stage = Stage::turns();
    let (reference, answered) = stage.system.promise::<u32>();
    reference.tell(1u32);
    assert_eq!(answered.wait(), Ok(1));
    let (reference, stopped) = stage.system.promise::<u32>();
    reference.poison();
    assert_eq!(stopped.wait(), Err(AskError::NoReply));
    let (_reference, late) = stage.system.promise::<u32>();
    let late = late.within(SECOND);
    stage.clock.advance(SECOND);
    assert_eq!(late.wait(), Err(AskError::Timeout { after: SECOND }));
    let (_reference, given_up) = stage.system.promise::<u32>();
    drop(given_up);
    let asks = stage.system.ledger().asks;
    assert_eq!((asks.begun, asks.answered, asks.no_reply), (4, 1, 1), "{asks:?}");
    assert_eq!((asks.timed_out, asks.cancelled, asks.pending()), (1, 1, 0), "{asks:?}");
    stage.end(&[]);
}

/// What a map goes by.
fn hash_of(key: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

#[test]
fn references_are_equal_for_the_same_incarnation_alone() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let found = stage.system.typed_at::<Tell>("/user/a").unwrap();
    assert_eq!((&actor, hash_of(&actor)), (&found, hash_of(&found)));
    let empty = stage.system.empty_ref::<Tell>(&actor.path());
    assert_ne!(actor, empty);
    assert_ne!(empty, stage.system.empty_ref::<Tell>(&actor.path()));
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn references_to_many_actors_have_as_many_hashes() {
    let stage = Stage::turns();
    let actors: Vec<ActorRef<u32>> = (0..10).map(|_| stage.system.promise().0).collect();
    let typed: HashSet<u64> = actors.iter().map(hash_of).collect();
    let untyped: HashSet<u64> = actors.iter().map(|actor| hash_of(&actor.any().unwrap())).collect();
    assert_eq!((typed.len(), untyped.len()), (10, 10), "a map of them is no list");
    stage.end(&[]);
}

/// Makes so many more below itself, each the child of the one before.
struct Link(u32, std::sync::mpsc::Sender<ActorRef<()>>);

impl Actor for Link {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> Done {
        Ok(())
    }
    fn started(&mut self, ctx: &mut Context<()>) -> Done {
        let (left, sender) = (self.0, self.1.clone());
        if left == 0 {
            sender.send(ctx.me().clone())?;
        } else {
            ctx.spawn(move || Link(left - 1, sender.clone()))?;
        }
        Ok(())
    }
}

#[test]
fn who_has_the_last_reference_below_a_deep_tree_needs_no_deep_stack_to_drop_it() {
    const DEPTH: u32 = 2_000;
    let stage = Stage::turns();
    let (sender, leaves) = std::sync::mpsc::channel();
    stage.system.spawn(move || Link(DEPTH, sender.clone())).unwrap();
    let leaf = leaves.soon().unwrap();
    stage.end(&[]);
    let small = std::thread::Builder::new().stack_size(64 << 10);
    small.spawn(move || drop(leaf)).unwrap().join().unwrap();
}
