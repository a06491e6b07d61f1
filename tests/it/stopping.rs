//! Stop, poison, kill: what is still handled, and in which order actors end.

use crate::support::*;
use pointsman::DeadLetterReason;
use pointsman::prelude::*;
use std::sync::mpsc::channel;

#[test]
fn stop_finishes_the_current_message_and_dead_letters_the_rest() {
    let stage = Stage::new("stop");
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
    let stage = Stage::new("itself");
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
        let stage = Stage::new("poison");
        let actor = stage.spawn(&stage.role("a"));
        let release = hold(&actor);
        for _ in 0..100 {
            note(&actor, "before");
        }
        if kill {
            actor.any().unwrap().kill();
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
    let stage = Stage::new("idle");
    let actor = stage.spawn(&stage.role("a"));
    assert_eq!(query(&actor, |_, _| ()), Ok(()));
    actor.poison();
    wait_for_end(&stage, &actor);
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn actors_end_bottom_up() {
    let stage = Stage::new("bottom");
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
    let stage = Stage::new("closing");
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
    let stage = Stage::new("silent");
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
        fn receive(&mut self, _: u32, _: &mut Context<u32>) -> Done {
            panic!("never handled")
        }
        fn stopped(&mut self, ctx: &mut Context<u32>) {
            let me = ctx.me().clone();
            me.tell(1u32);
            ctx.after(std::time::Duration::ZERO, 2);
            assert!(ctx.actor("child").spawn(|| Late).is_err());
        }
    }
    let stage = Stage::new("late");
    let actor = stage.system.actor("late").spawn(|| Late).unwrap();
    actor.stop();
    let ledger = stage.system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.dead_lettered, ledger.balance()), (1, 1, 0), "{ledger}");
}

#[test]
fn stopping_twice_or_after_the_end_is_harmless() {
    let stage = Stage::new("again");
    let actor = stage.spawn(&stage.role("a"));
    for _ in 0..3 {
        actor.stop();
        actor.poison();
        actor.any().unwrap().kill();
    }
    wait_for_end(&stage, &actor);
    actor.stop();
    actor.poison();
    actor.any().unwrap().kill();
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
    let stage = Stage::new("bombs");
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
