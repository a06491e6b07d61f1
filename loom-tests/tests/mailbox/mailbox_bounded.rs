//! Races of the bounded mailbox, of senders that wait for room in it, and of the ring.
//!
//! The ring's queue is a stand-in here; the original is covered by its own tests and by stress tests. Bound 3 where
//! nothing else is said.
//!
//! Seen to fail: the word read Relaxed at the first look or at a failed claim (`bounded_refuses_only_when_full`);
//! either fence of the waiting senders' handshake removed, or the ticket drawn after the look for room
//! (`waiting_sender_gets_room`, `close_wakes_waiting_sender`); a close that does not notify (same); a displaced
//! message not counted into `head` (`ring_displaces_once_two_senders`), or that moves it Relaxed, as a taken one
//! (`ring_len_never_negative`).

use crate::support::counted::{Counted, Tally};
use crate::support::model;
use loom::sync::Arc;
use loom::thread;
use pointsman::loom_hooks::mailbox::{
    DrainStep, LoadSnapshot, Mailbox, Owner, Position, Pushed, Ready, Refused, SystemPushed,
};
use std::num::NonZeroUsize;

type Tested = Mailbox<(), (), Counted>;

fn capacity(messages: usize) -> NonZeroUsize {
    NonZeroUsize::new(messages).unwrap()
}

/// The token, taken before anybody races.
fn owner(mailbox: &Tested) -> Owner<'_, (), (), Counted> {
    assert_eq!(mailbox.gate.send_system((), Position::Immediate), Ok(SystemPushed::Wake));
    // SAFETY: the send handed us the token.
    let mut owner = unsafe { mailbox.owner() };
    assert_eq!(owner.take_system().count(), 1);
    owner
}

fn take(owner: &mut Owner<'_, (), (), Counted>) -> Option<Counted> {
    match owner.ready() {
        Ready::Message(front) => Some(front.take()),
        _ => None,
    }
}

/// Runs the turn of whoever was told to wake; returns how many messages it handled.
fn turn(mailbox: &Tested, wakes: bool) -> usize {
    if !wakes {
        return 0;
    }
    // SAFETY: a push handed us the token.
    let mut owner = unsafe { mailbox.owner() };
    let mut handled = 0;
    loop {
        match owner.ready() {
            Ready::Message(front) => {
                drop(front.take());
                handled += 1;
            }
            Ready::Busy => thread::yield_now(),
            Ready::Panicked(_) => unreachable!("nothing is sorted here"),
            Ready::Empty => match owner.try_idle() {
                Ok(()) => return handled,
                Err(again) => owner = again,
            },
        }
    }
}

fn drain(owner: &mut Owner<'_, (), (), Counted>) -> usize {
    let mut drained = 0;
    loop {
        match owner.drain_next() {
            DrainStep::Message(_) => drained += 1,
            DrainStep::Busy => thread::yield_now(),
            DrainStep::Done => return drained,
        }
    }
}

/// One place, two senders, nobody takes: one is accepted, one is refused.
#[test]
fn bounded_never_above_capacity() {
    model("bounded_never_above_capacity", &[1, 8, 18], 3, 10, || {
        let mailbox = Arc::new(Tested::bounded((), capacity(1), false));
        let tally = Tally::new();
        let mut owner = owner(&mailbox);
        let threads: Vec<_> = (0..2)
            .map(|number| {
                let (mailbox, message) = (mailbox.clone(), tally.message(number));
                thread::spawn(move || mailbox.push(message).is_ok())
            })
            .collect();
        let accepted = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|&sent| sent).count();
        assert_eq!(accepted, 1);
        assert_eq!(mailbox.gate.len(), 1);
        assert!(take(&mut owner).is_some());
        assert!(take(&mut owner).is_none());
        tally.assert_each_once(2);
    });
}

/// Two places of which the owner's own messages never take more than one: the other sender always finds room,
/// whatever mixture of old and new values it reads.
#[test]
fn bounded_refuses_only_when_full() {
    model("bounded_refuses_only_when_full", &[1, 18], 3, 100, || {
        let mailbox = Arc::new(Tested::bounded((), capacity(2), false));
        let tally = Tally::new();
        let mut owner = owner(&mailbox);
        let other = {
            let (mailbox, message) = (mailbox.clone(), tally.message(2));
            thread::spawn(move || assert!(mailbox.push(message).is_ok(), "refused although never full"))
        };
        for number in 0..2 {
            assert!(matches!(mailbox.push(tally.message(number)), Ok(Pushed::Queued)));
            while take(&mut owner).is_none_or(|message| message.number == 2) {
                thread::yield_now();
            }
        }
        other.join().unwrap();
        drop(take(&mut owner));
        tally.assert_each_once(3);
    });
}

/// The wake-up is as in the unbounded mailbox. Bound 3: two threads.
#[test]
fn bounded_senders_wake() {
    model("bounded_senders_wake", &[1, 3, 4], 3, 2_500, || {
        let mailbox = Arc::new(Tested::bounded((), capacity(2), false));
        let tally = Tally::new();
        let send = |mailbox: &Tested, message: Counted| {
            let wakes = mailbox.push(message).expect("room for both").wakes();
            turn(mailbox, wakes)
        };
        let other = {
            let (mailbox, message) = (mailbox.clone(), tally.message(0));
            thread::spawn(move || send(&mailbox, message))
        };
        let handled = send(&mailbox, tally.message(1));
        assert_eq!(handled + other.join().unwrap(), 2);
        assert_eq!(mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
        tally.assert_each_once(2);
    });
}

/// A full mailbox, a waiting sender, an owner that takes one: loom reports a missed notification as a deadlock.
fn waiting_senders_get_room(name: &str, bound: usize, floor: usize, senders: usize) {
    model(name, &[1, 16], bound, floor, move || {
        let mailbox = Arc::new(Tested::bounded((), capacity(1), true));
        let tally = Tally::new();
        let mut owner = owner(&mailbox);
        assert!(mailbox.push(tally.message(0)).is_ok());
        let threads: Vec<_> = (1..=senders)
            .map(|number| {
                let (mailbox, message) = (mailbox.clone(), tally.message(number));
                thread::spawn(move || assert!(mailbox.push_waiting(message, None).is_ok()))
            })
            .collect();
        for _ in 0..senders {
            while take(&mut owner).is_none() {
                thread::yield_now();
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(take(&mut owner).is_some());
        assert!(take(&mut owner).is_none());
        tally.assert_each_once(senders + 1);
    });
}

#[test]
fn waiting_sender_gets_room() {
    waiting_senders_get_room("waiting_sender_gets_room", 3, 10, 1);
}

/// Bound 2: three threads.
#[test]
fn two_waiting_senders_get_room() {
    waiting_senders_get_room("two_waiting_senders_get_room", 2, 100, 2);
}

#[test]
fn close_wakes_waiting_sender() {
    model("close_wakes_waiting_sender", &[1, 6, 16], 3, 10, || {
        let mailbox = Arc::new(Tested::bounded((), capacity(1), true));
        let tally = Tally::new();
        let mut owner = owner(&mailbox);
        assert!(mailbox.push(tally.message(0)).is_ok());
        let other = {
            let (mailbox, message) = (mailbox.clone(), tally.message(1));
            thread::spawn(move || matches!(mailbox.push_waiting(message, None), Err(Refused::Closed(_))))
        };
        owner.close();
        assert!(other.join().unwrap());
        assert_eq!(drain(&mut owner), 1);
        tally.assert_each_once(2);
    });
}

/// What happened to the messages of a ring.
#[derive(Default)]
struct Outcome {
    accepted: usize,
    handled: usize,
    displaced: usize,
}

fn push_to_ring(mailbox: &Tested, message: Counted, outcome: &mut Outcome) -> bool {
    match mailbox.push(message) {
        Ok(pushed) => {
            outcome.accepted += 1;
            if matches!(pushed, Pushed::Displaced { .. }) {
                outcome.displaced += 1;
            }
            pushed.wakes()
        }
        Err(Refused::Closed(_)) => false,
        Err(Refused::Full(_)) => panic!("a ring is never full"),
    }
}

/// Each message is handled or displaced, once; the actor ends idle. Bound 2: both threads run turns.
fn ring_displaces_once(name: &str, bound: usize, floor: usize, each: usize) {
    model(name, &[1, 3, 4, 8], bound, floor, move || {
        let mailbox = Arc::new(Tested::ring((), capacity(1)));
        let tally = Tally::new();
        let run = move |mailbox: &Tested, tally: &Tally, sender: usize| {
            let mut outcome = Outcome::default();
            for number in 0..each {
                let wakes = push_to_ring(mailbox, tally.message(sender * each + number), &mut outcome);
                outcome.handled += turn(mailbox, wakes);
            }
            outcome
        };
        let other = {
            let (mailbox, tally) = (mailbox.clone(), tally.clone());
            thread::spawn(move || run(&mailbox, &tally, 1))
        };
        let (mine, others) = (run(&mailbox, &tally, 0), other.join().unwrap());
        assert_eq!(mine.accepted + others.accepted, 2 * each);
        assert_eq!(mine.handled + others.handled + mine.displaced + others.displaced, 2 * each);
        assert_eq!(mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
        assert_eq!(mailbox.gate.len(), 0);
        tally.assert_each_once(2 * each);
    });
}

#[test]
fn ring_of_one_sender() {
    model("ring_of_one_sender", &[1, 2, 8], 3, 1, || {
        let mailbox = Tested::ring((), capacity(2));
        let tally = Tally::new();
        let mut owner = owner(&mailbox);
        for number in 0..4 {
            match mailbox.push(tally.message(number)) {
                Ok(Pushed::Displaced { oldest, wake: false }) => assert_eq!(oldest.number + 2, number),
                Ok(Pushed::Queued) => assert!(number < 2),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(mailbox.gate.len(), 2);
        assert_eq!(take(&mut owner).map(|message| message.number), Some(2));
        assert_eq!(take(&mut owner).map(|message| message.number), Some(3));
        owner.try_idle().expect("nothing to do");
        tally.assert_each_once(4);
    });
}

#[test]
fn ring_displaces_once_two_senders() {
    ring_displaces_once("ring_displaces_once_two_senders", 2, 100, 1);
}

#[test]
fn ring_displaces_once_streams() {
    ring_displaces_once("ring_displaces_once_streams", 2, 1000, 2);
}

/// Accepted is drained or displaced; refused comes back.
#[test]
fn ring_close_races_push() {
    model("ring_close_races_push", &[1, 6, 8], 3, 100, || {
        let mailbox = Arc::new(Tested::ring((), capacity(1)));
        let tally = Tally::new();
        let mut owner = owner(&mailbox);
        let threads: Vec<_> = (0..2)
            .map(|number| {
                let (mailbox, message) = (mailbox.clone(), tally.message(number));
                thread::spawn(move || {
                    let mut outcome = Outcome::default();
                    assert!(!push_to_ring(&mailbox, message, &mut outcome));
                    outcome
                })
            })
            .collect();
        let accepted_in_all = owner.close();
        let drained = drain(&mut owner);
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let accepted: usize = outcomes.iter().map(|outcome| outcome.accepted).sum();
        let displaced: usize = outcomes.iter().map(|outcome| outcome.displaced).sum();
        assert_eq!(accepted, drained + displaced);
        assert_eq!(accepted as u64, accepted_in_all);
        assert_eq!(mailbox.gate.len(), 0);
        tally.assert_each_once(2);
    });
}

/// A length read while messages are taken and displaced is at least 0 and at most what was ever there.
#[test]
fn ring_len_never_negative() {
    model("ring_len_never_negative", &[8], 3, 50, || {
        let mailbox = Arc::new(Tested::ring((), capacity(1)));
        let tally = Tally::new();
        let mut owner = owner(&mailbox);
        let reader = {
            let mailbox = mailbox.clone();
            thread::spawn(move || {
                let length = mailbox.gate.len();
                assert!(length <= 3, "length {length}");
            })
        };
        let mut outcome = Outcome::default();
        assert!(!push_to_ring(&mailbox, tally.message(0), &mut outcome));
        assert!(take(&mut owner).is_some());
        assert!(!push_to_ring(&mailbox, tally.message(1), &mut outcome));
        assert!(!push_to_ring(&mailbox, tally.message(2), &mut outcome));
        reader.join().unwrap();
        assert_eq!((outcome.accepted, outcome.displaced, mailbox.gate.len()), (3, 1, 1));
        assert!(take(&mut owner).is_some());
        tally.assert_each_once(3);
    });
}
