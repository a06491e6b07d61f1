//! Stop, poison, kill: what is still handled, and in which order actors end.

use crate::support::*;
use pointsman::prelude::*;
use pointsman::{DeadLetterReason, FailureKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn stop_finishes_the_current_message_and_dead_letters_the_rest() {
    let stage = Stage::threads("stop");
    let (sender, letters) = channel();
    let _subscription = stage.system.dead_letters().subscribe(move |letter| {
        let _ = sender.send((letter.recipient.to_string(), letter.reason));
    });
    let actor = stage.spawn(&stage.role("a"));
    let release = hold(&actor);
    note(&actor, "never");
    note(&actor, "never");
    actor.stop();
    note(&actor, "never");
    drop(release);
    wait_for_end(&stage, &actor);
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.dead_lettered), (4, 1, 3), "{ledger}");
    assert_eq!(
        letters.try_iter().collect::<Vec<_>>(),
        vec![("/user/a".to_owned(), DeadLetterReason::Stopped); 3]
    );
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn an_actor_stops_itself_after_the_message_at_hand() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    act(&actor, |puppet, ctx| {
        ctx.stop();
        puppet.note(format_args!("still here"));
        Ok(())
    });
    note(&actor, "never");
    wait_for_end(&stage, &actor);
    stage.end(&["a Started 1", "a Stopped 1", "a still here"]);
}

#[test]
fn poison_and_kill_keep_their_place_behind_what_this_sender_has_sent() {
    for kill in [false, true] {
        let stage = Stage::threads("poison");
        let actor = stage.spawn(&stage.role("a"));
        let release = hold(&actor);
        for _ in 0..100 {
            note(&actor, "before");
        }
        if kill {
            actor.untyped().unwrap().kill();
        } else {
            actor.poison();
        }
        note(&actor, "never");
        drop(release);
        wait_for_end(&stage, &actor);
        stage.expect(&["a Started 1"]);
        stage.expect(&["a before"; 100]);
        assert_eq!(stage.system.ledger().dead_lettered, 1);
        stage.end(&["a Stopped 1"]);
    }
}

#[test]
fn poison_reaches_an_idle_actor() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    assert_eq!(query(&actor, |_, _| ()), Ok(()));
    actor.poison();
    wait_for_end(&stage, &actor);
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn actors_end_bottom_up() {
    let stage = Stage::threads("bottom");
    let top = stage.spawn(&stage.role("top"));
    let middle = child(&top, &stage.role("middle"));
    let leaf = child(&middle, &stage.role("leaf"));
    let release = hold(&leaf);
    top.stop();
    note(&top, "never");
    drop(release);
    wait_for_end(&stage, &top);
    stage.expect(&["top Started 1", "middle Started 1", "leaf Started 1"]);
    stage.expect(&["leaf Stopped 1", "middle Stopped 1", "top Stopped 1"]);
    stage.end(&[]);
}

#[test]
fn a_stopping_actor_handles_no_messages_and_takes_no_children() {
    let stage = Stage::threads("closing");
    let actor = stage.spawn(&stage.role("a"));
    let slow = child(&actor, &stage.role("slow"));
    let quick = child(&actor, &stage.role("quick"));
    let builder = query(&actor, |_, ctx| ctx.actor("late")).unwrap();
    let release = hold(&slow);
    actor.stop();
    note(&actor, "never");
    // It is closed to children before any of them is told.
    wait_for_end(&stage, &quick);
    let refused = builder.spawn(stage.role("late").recipe());
    assert!(
        matches!(refused, Err(pointsman::SpawnError::ParentStopped { ref path }) if path == "/user/a"),
        "{refused:?}"
    );
    drop(release);
    wait_for_end(&stage, &actor);
    assert!(stage.notes.try_iter().all(|note| !note.contains("never")));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_failure_while_stopping_is_nobodys_business() {
    let stage = Stage::threads("silent");
    let actor = stage.spawn(&stage.role("a").strategy(|| Strategy::decide(|_| panic!("never asked"))));
    let slow = child(&actor, &stage.role("slow"));
    let release = hold(&slow);
    fail(&slow);
    slow.stop();
    actor.stop();
    drop(release);
    wait_for_end(&stage, &actor);
    stage.expect(&["a Started 1", "slow Started 1", "slow Stopped 1", "a Stopped 1"]);
    stage.end(&[]);
}

#[test]
fn what_is_sent_in_stopped_is_dead_lettered() {
    struct Late;
    impl Actor for Late {
        type Message = u32;
        fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
            panic!("never handled")
        }
        fn stopped(&mut self, ctx: &mut Context<u32>) {
            let me = ctx.me().clone();
            me.tell(1u32);
            ctx.after(std::time::Duration::ZERO, 2);
            assert!(ctx.actor("child").spawn(|| Late).is_err());
        }
    }
    let stage = Stage::turns();
    let actor = stage.system.actor("late").spawn(|| Late).unwrap();
    actor.stop();
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.dead_lettered, ledger.balance()), (1, 1, 0), "{ledger}");
}

#[test]
fn stopping_twice_or_after_the_end_is_harmless() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    for _ in 0..3 {
        actor.stop();
        actor.poison();
        actor.untyped().unwrap().kill();
    }
    wait_for_end(&stage, &actor);
    actor.stop();
    actor.poison();
    actor.untyped().unwrap().kill();
    assert!(matches!(actor.try_tell(Tell::new(|_, _| Ok(()))), Err(pointsman::SendError::Closed(_))));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn messages_whose_destructors_panic_are_drained_like_others() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }
    let stage = Stage::threads("bombs");
    let actor = stage.spawn(&stage.role("a"));
    let release = hold(&actor);
    for _ in 0..10 {
        let bomb = Bomb;
        act(&actor, move |_, _| {
            std::mem::forget(bomb);
            Ok(())
        });
    }
    actor.stop();
    drop(release);
    wait_for_end(&stage, &actor);
    assert_eq!(stage.system.ledger().dead_lettered, 10);
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn a_killed_actor_is_restarted_where_a_strategy_says_so() {
    let stage = Stage::threads("killed");
    let strategy = || {
        Strategy::decide(|failure| match failure.kind() {
            FailureKind::Killed => Directive::Restart,
            _ => Directive::Stop,
        })
    };
    let actor = stage.system.actor("a").on_failure(strategy()).spawn(stage.role("a").recipe()).unwrap();
    let release = hold(&actor);
    note(&actor, "before");
    actor.kill();
    note(&actor, "after");
    drop(release);
    stage.expect(&["a Started 1", "a before", "a Restarting 1", "a Restarted 2", "a after"]);
    stage.end(&["a Stopped 2"]);
}

#[test]
fn a_panic_in_stopped_does_not_stop_the_procedure() {
    let stage = Stage::threads("panicking");
    let role = stage.role("a").on_hook(|hook, _| match hook {
        Hook::Stopped => panic!("in stopped"),
        _ => Ok(()),
    });
    let actor = stage.spawn(&role);
    let child = child(&actor, &stage.role("child"));
    let release = hold(&actor);
    note(&actor, "never");
    actor.stop();
    drop(release);
    wait_for_end(&stage, &actor);
    assert!(child.is_closed());
    assert_eq!(stage.system.ledger().dead_lettered, 1);
    wait_until(|| stage.system.actor("a").spawn(stage.role("a").recipe()).is_ok());
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn whatever_is_sent_while_stopped_runs_and_after_it_is_dead_lettered() {
    let stage = Stage::threads("during");
    let (inside, (release, held)) = (channel(), channel::<()>());
    let held = std::sync::Mutex::new(held);
    let role = stage.role("a").on_hook(move |hook, _| {
        if hook == Hook::Stopped {
            let _ = inside.0.send(());
            let _ = held.lock().unwrap().recv();
        }
        Ok(())
    });
    let actor = stage.spawn(&role);
    actor.stop();
    inside.1.soon().unwrap();
    note(&actor, "during");
    drop(release);
    wait_for_end(&stage, &actor);
    note(&actor, "after");
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.dead_lettered), (2, 2), "{ledger}");
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn a_graceful_stop_is_over_when_stopped_has_completed() {
    let stage = Stage::threads("graceful");
    let (written, role) = (Arc::new(AtomicU32::new(0)), stage.role("a"));
    let seen = written.clone();
    let role = role.on_hook(move |hook, _| {
        if hook == Hook::Stopped {
            // Relaxed: that the ask is over orders it.
            written.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    let actor = stage.spawn(&role);
    let leaf = child(&actor, &stage.role("leaf"));
    let release = hold(&leaf);
    note(&actor, "before");
    let stopped = actor.graceful_stop(SECOND);
    note(&actor, "never");
    assert!(!actor.is_closed());
    drop(release);
    assert_eq!(stopped.wait(), Ok(()));
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    assert!(actor.is_closed() && leaf.is_closed());
    // Again, it is over at once.
    assert_eq!(actor.graceful_stop(SECOND).wait(), Ok(()));
    assert_eq!(actor.untyped().unwrap().graceful_stop(SECOND).wait(), Ok(()));
    assert_eq!(stage.system.empty_ref::<u32>(&actor.path()).graceful_stop(SECOND).wait(), Ok(()));
    assert_eq!(stage.system.ledger().dead_lettered, 1);
    stage.end(&["a Started 1", "a Stopped 1", "a before", "leaf Started 1", "leaf Stopped 1"]);
}

#[test]
fn a_graceful_stop_that_takes_too_long_fails_and_happens_later() {
    let stage = Stage::threads("too-long");
    let living = stage.system.living_actors();
    let actor = stage.spawn(&stage.role("a"));
    let release = hold(&actor);
    let stopped = actor.graceful_stop(SECOND);
    let waiter = std::thread::spawn(move || stopped.wait());
    while !waiter.is_finished() {
        stage.clock.advance(SECOND);
        std::thread::yield_now();
    }
    assert_eq!(waiter.join().unwrap(), Err(AskError::timeout(SECOND)));
    // Who waited for it is gone.
    wait_until(|| stage.system.living_actors() == living + 1);
    assert_eq!(actor.graceful_stop(Duration::ZERO).wait(), Err(AskError::NoTime));
    let again = actor.graceful_stop(SECOND);
    drop(release);
    assert_eq!(again.wait(), Ok(()));
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn a_graceful_stop_with_a_message_leaves_the_stopping_to_the_actor() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let last = Tell::new(|puppet, ctx| {
        puppet.note(format_args!("asked to stop"));
        ctx.stop();
        Ok(())
    });
    assert_eq!(actor.graceful_stop_with(last, SECOND).wait(), Ok(()));
    // The message to one that has ended is a dead letter, and the ask is over.
    assert_eq!(actor.graceful_stop_with(Tell::new(|_, _| Ok(())), SECOND).wait(), Ok(()));
    assert_eq!(stage.system.ledger().dead_lettered, 1);
    stage.end(&["a Started 1", "a Stopped 1", "a asked to stop"]);
}

#[test]
fn a_graceful_stop_works_at_the_end_of_the_system_and_says_what_cannot_be_stopped() {
    struct Sink;
    impl pointsman::actor::Recipient<u32> for Sink {
        fn deliver(&self, _: u32) -> Result<(), pointsman::SendError<u32>> {
            Ok(())
        }
    }
    let sink: ActorRef<u32> = ActorRef::to_recipient(Sink);
    assert_eq!(sink.graceful_stop(SECOND).wait(), Err(AskError::undeliverable()));
    let stage = Stage::threads("at-the-end");
    let actor = stage.spawn(&stage.role("a"));
    let release = hold(&actor);
    stage.system.stop();
    let during = actor.graceful_stop(SECOND);
    drop(release);
    assert_eq!(during.wait(), Ok(()));
    stage.end(&["a Started 1", "a Stopped 1"]);
    assert_eq!(actor.graceful_stop(SECOND).wait(), Ok(()));
}
