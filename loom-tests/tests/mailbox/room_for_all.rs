//! Models of a sender that waits for room in several mailboxes together, of senders that are futures and wait by their
//! wakers, and of pushes beyond the capacity beside senders that wait. Bound 3 where nothing else is said.
//!
//! Seen to fail here, each by itself: a notification that rings no bell; a bell that is enlisted and not announced; the
//! fence between the announcement and the look for room removed; a notification that rings bells and then wakes nobody
//! else; a capacity that grows and wakes one sender alone (`faults/13`).

use crate::support::counted::{Counted, Tally};
use crate::support::model;
use loom::sync::Arc;
use loom::thread;
use pointsman::loom_hooks::mailbox::{
    Mailbox, NotFullNotify, Owner, Position, Ready, Refused, SystemPushed, WakerPlace,
};
use std::num::NonZeroUsize;
// Only keeps memory.
use std::sync::Arc as StdArc;
use std::task::{Wake, Waker};

type Tested = Mailbox<(), (), Counted>;

fn small() -> Arc<Tested> {
    Arc::new(Tested::bounded((), NonZeroUsize::MIN, true))
}

/// The token, taken before anybody races.
fn owner(mailbox: &Tested) -> Owner<'_, (), (), Counted> {
    assert_eq!(mailbox.gate.send_system((), Position::Immediate), Ok(SystemPushed::Wake));
    // SAFETY: the send handed us the token.
    let mut owner = unsafe { mailbox.owner() };
    assert_eq!(owner.take_system().count(), 1);
    owner
}

fn take(owner: &mut Owner<'_, (), (), Counted>) -> bool {
    match owner.ready() {
        Ready::Message(front) => {
            drop(front.take());
            true
        }
        _ => false,
    }
}

/// As `wait_for_all` does: enlist, then listen, look, sleep.
fn push_to_each(mailboxes: &[Arc<Tested>], messages: Vec<Counted>) -> usize {
    let bell = Arc::new(NotFullNotify::new());
    let mut open: Vec<_> = mailboxes.iter().zip(messages.into_iter().map(Some)).collect();
    let mut accepted = 0;
    mailboxes.iter().for_each(|mailbox| mailbox.enlist(&bell));
    while !open.is_empty() {
        let heard = bell.heard();
        open.retain_mut(|(mailbox, message)| match mailbox.push(message.take().unwrap()) {
            Ok(_) => {
                accepted += 1;
                false
            }
            Err(Refused::Full(refused)) => {
                *message = Some(refused);
                true
            }
            Err(Refused::Closed(_)) => false,
        });
        if !open.is_empty() {
            bell.wait(heard, None);
        }
    }
    mailboxes.iter().for_each(|mailbox| mailbox.dismiss(&bell));
    accepted
}

// Bound 3: two threads.
#[test]
fn who_waits_for_two_gets_room_in_both() {
    model("room_for_all_two_mailboxes", &[1, 16], 3, 50, || {
        let (first, second) = (small(), small());
        let tally = Tally::new();
        let (mut one, mut two) = (owner(&first), owner(&second));
        assert!(first.push(tally.message(0)).is_ok() && second.push(tally.message(1)).is_ok());
        let sender = {
            let (mailboxes, messages) =
                ([first.clone(), second.clone()], vec![tally.message(2), tally.message(3)]);
            thread::spawn(move || push_to_each(&mailboxes, messages))
        };
        assert!(take(&mut two) && take(&mut one));
        assert_eq!(sender.join().unwrap(), 2);
        assert!(take(&mut one) && take(&mut two));
        tally.assert_each_once(4);
    });
}

#[test]
fn a_close_and_room_both_wake_who_waits_for_two() {
    model("room_for_all_close", &[1, 6, 16], 3, 50, || {
        let (first, second) = (small(), small());
        let tally = Tally::new();
        let (mut one, mut two) = (owner(&first), owner(&second));
        assert!(first.push(tally.message(0)).is_ok() && second.push(tally.message(1)).is_ok());
        let sender = {
            let (mailboxes, messages) =
                ([first.clone(), second.clone()], vec![tally.message(2), tally.message(3)]);
            thread::spawn(move || push_to_each(&mailboxes, messages))
        };
        one.close();
        assert!(take(&mut two));
        assert_eq!(sender.join().unwrap(), 1);
        assert!(take(&mut one) && take(&mut two));
        tally.assert_each_once(4);
    });
}

/// One unit of room wakes one sender; one with a bell takes it from nobody.
// Bound 2: three threads.
#[test]
fn a_bell_takes_no_wake_up_from_a_sender_that_waits_for_one() {
    model("room_for_all_beside_waiting", &[1, 16], 2, 100, || {
        let mailbox = small();
        let tally = Tally::new();
        let mut one = owner(&mailbox);
        assert!(mailbox.push(tally.message(0)).is_ok());
        let waits = {
            let (mailbox, message) = (mailbox.clone(), tally.message(1));
            thread::spawn(move || mailbox.push_waiting(message, None).is_ok())
        };
        let listens = {
            let (mailboxes, messages) = ([mailbox.clone()], vec![tally.message(2)]);
            thread::spawn(move || push_to_each(&mailboxes, messages))
        };
        let mut taken = 0;
        while taken < 3 {
            match take(&mut one) {
                true => taken += 1,
                false => thread::yield_now(),
            }
        }
        assert!(waits.join().unwrap());
        assert_eq!(listens.join().unwrap(), 1);
        tally.assert_each_once(3);
    });
}

/// Whoever waits at a mailbox that is beyond its capacity gets room when it has sunk.
// Bound 3: two threads.
#[test]
fn a_push_beyond_the_capacity_leaves_nobody_waiting() {
    model("room_for_all_beyond", &[1, 16], 3, 20, || {
        let mailbox = small();
        let tally = Tally::new();
        let mut one = owner(&mailbox);
        assert!(mailbox.push(tally.message(0)).is_ok());
        assert!(mailbox.push_beyond(tally.message(1)).is_ok());
        let waits = {
            let (mailbox, message) = (mailbox.clone(), tally.message(2));
            thread::spawn(move || mailbox.push_waiting(message, None).is_ok())
        };
        assert!(take(&mut one) && take(&mut one));
        assert!(waits.join().unwrap());
        assert!(take(&mut one));
        tally.assert_each_once(3);
    });
}

// Bound 3: two threads.
#[test]
fn a_push_beyond_the_capacity_races_a_close() {
    model("room_for_all_beyond_close", &[1, 6], 3, 7, || {
        let mailbox = small();
        let tally = Tally::new();
        let mut one = owner(&mailbox);
        assert!(mailbox.push(tally.message(0)).is_ok());
        let pushes = {
            let (mailbox, message) = (mailbox.clone(), tally.message(1));
            thread::spawn(move || mailbox.push_beyond(message).is_ok())
        };
        let accepted = one.close();
        let is_accepted = pushes.join().unwrap();
        assert_eq!(accepted, if is_accepted { 2 } else { 1 });
        let mut drained = 0;
        while let pointsman::loom_hooks::mailbox::DrainStep::Message(_) = one.drain_next() {
            drained += 1;
        }
        assert_eq!(drained, accepted);
        tally.assert_each_once(2);
    });
}

/// A full mailbox grows by as many places as senders wait, and nothing is taken from it meanwhile: the growth itself
/// wakes each of them.
// Bound 2: three threads.
// Caught: a growth that wakes one sender.
#[test]
fn a_growing_capacity_wakes_all_senders_that_wait() {
    model("room_for_all_growth", &[1, 16], 2, 4_500, || {
        let mailbox = small();
        let tally = Tally::new();
        let mut one = owner(&mailbox);
        assert!(mailbox.push(tally.message(0)).is_ok());
        let senders = [1, 2].map(|number| {
            let (mailbox, message) = (mailbox.clone(), tally.message(number));
            thread::spawn(move || mailbox.push_waiting(message, None).is_ok())
        });
        assert!(mailbox.set_capacity(NonZeroUsize::new(3).unwrap()));
        senders.into_iter().for_each(|sender| assert!(sender.join().unwrap()));
        (0..3).for_each(|_| assert!(take(&mut one)));
        tally.assert_each_once(3);
    });
}

// Bound 2: three threads.
// Caught: a growth that wakes one sender, the one with the bell.
#[test]
fn a_growing_capacity_wakes_a_sender_with_a_bell_and_one_that_waits() {
    model("room_for_all_growth_bell", &[1, 16], 2, 2_500, || {
        let mailbox = small();
        let tally = Tally::new();
        let mut one = owner(&mailbox);
        assert!(mailbox.push(tally.message(0)).is_ok());
        let waits = {
            let (mailbox, message) = (mailbox.clone(), tally.message(1));
            thread::spawn(move || mailbox.push_waiting(message, None).is_ok())
        };
        let listens = {
            let (mailboxes, messages) = ([mailbox.clone()], vec![tally.message(2)]);
            thread::spawn(move || push_to_each(&mailboxes, messages))
        };
        assert!(mailbox.set_capacity(NonZeroUsize::new(3).unwrap()));
        assert!(waits.join().unwrap());
        assert_eq!(listens.join().unwrap(), 1);
        (0..3).for_each(|_| assert!(take(&mut one)));
        tally.assert_each_once(3);
    });
}

/// The waker of a future that a thread polls.
struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: StdArc<Self>) {
        self.0.unpark();
    }
}

/// A mailbox in which only wakers wait, and one in which threads may wait, too.
fn of_kind(has_threads: bool) -> Arc<Tested> {
    Arc::new(Tested::bounded((), NonZeroUsize::MIN, has_threads))
}

/// As a future does: enters its waker, looks, and waits to be polled again. Returns whether the message was taken, and the
/// waker.
fn push_by_waker(mailbox: &Tested, message: Counted) -> (bool, StdArc<Unpark>) {
    let alarm = StdArc::new(Unpark(thread::current()));
    let waker = Waker::from(alarm.clone());
    let (mut message, mut place) = (Some(message), WakerPlace::default());
    let is_taken = loop {
        assert!(mailbox.enter_waker(&mut place, &waker));
        match mailbox.push(message.take().unwrap()) {
            Ok(_) => break true,
            Err(Refused::Full(refused)) => message = Some(refused),
            Err(Refused::Closed(_)) => break false,
        }
        thread::park();
    };
    mailbox.leave_wakers(&mut place);
    (is_taken, alarm)
}

fn waits_by_waker(name: &'static str, has_threads: bool) {
    model(name, &[1, 16], 3, 10, move || {
        let mailbox = of_kind(has_threads);
        let tally = Tally::new();
        let mut one = owner(&mailbox);
        assert!(mailbox.push(tally.message(0)).is_ok());
        let sender = {
            let (mailbox, message) = (mailbox.clone(), tally.message(1));
            thread::spawn(move || push_by_waker(&mailbox, message))
        };
        assert!(take(&mut one));
        let (is_taken, alarm) = sender.join().unwrap();
        assert!(is_taken);
        assert_eq!(StdArc::strong_count(&alarm), 1, "no waker is kept");
        assert!(take(&mut one));
        tally.assert_each_once(2);
    });
}

// Bound 3: two threads.
#[test]
fn a_future_that_waits_gets_room_and_leaves_no_waker() {
    waits_by_waker("room_for_all_waker", false);
}

// Bound 3: two threads.
#[test]
fn a_future_that_waits_beside_threads_gets_room_and_leaves_no_waker() {
    waits_by_waker("room_for_all_waker_beside", true);
}

/// A future that has been woken for a unit of room and is dropped passes the wake on.
// Bound 2: three threads.
#[test]
fn a_future_that_is_dropped_passes_its_wake_on() {
    model("room_for_all_waker_dropped", &[1, 16], 2, 20, || {
        let mailbox = of_kind(false);
        let tally = Tally::new();
        let mut one = owner(&mailbox);
        assert!(mailbox.push(tally.message(0)).is_ok());
        let dropped = {
            let mailbox = mailbox.clone();
            thread::spawn(move || {
                let alarm = StdArc::new(Unpark(thread::current()));
                let mut place = WakerPlace::default();
                assert!(mailbox.enter_waker(&mut place, &Waker::from(alarm.clone())));
                mailbox.leave_wakers(&mut place);
                alarm
            })
        };
        let waits = {
            let (mailbox, message) = (mailbox.clone(), tally.message(1));
            thread::spawn(move || push_by_waker(&mailbox, message))
        };
        assert!(take(&mut one));
        let alarm = dropped.join().unwrap();
        assert!(waits.join().unwrap().0);
        assert_eq!(StdArc::strong_count(&alarm), 1, "no waker is kept");
        assert!(take(&mut one));
        tally.assert_each_once(2);
    });
}

/// A service that has looked, is told that there is no room, and is not polled again takes no wake from a future.
// Bound 3: two threads.
#[test]
fn a_service_that_looks_for_room_takes_no_wake_from_a_future() {
    model("room_for_all_waker_onlooker", &[1, 16], 3, 10, || {
        let mailbox = of_kind(false);
        let tally = Tally::new();
        let mut one = owner(&mailbox);
        assert!(mailbox.push(tally.message(0)).is_ok());
        let alarm = StdArc::new(Unpark(thread::current()));
        let mut place = WakerPlace::of_onlooker();
        assert!(mailbox.enter_waker(&mut place, &Waker::from(alarm.clone())));
        let waits = {
            let (mailbox, message) = (mailbox.clone(), tally.message(1));
            thread::spawn(move || push_by_waker(&mailbox, message))
        };
        assert!(take(&mut one));
        assert!(waits.join().unwrap().0);
        mailbox.leave_wakers(&mut place);
        assert_eq!(StdArc::strong_count(&alarm), 1, "no waker is kept");
        assert!(take(&mut one));
        tally.assert_each_once(2);
    });
}

// Bound 3: two threads.
#[test]
fn a_close_wakes_a_future_that_waits() {
    model("room_for_all_waker_close", &[1, 6, 16], 3, 5, || {
        let mailbox = of_kind(false);
        let tally = Tally::new();
        let mut one = owner(&mailbox);
        assert!(mailbox.push(tally.message(0)).is_ok());
        let sender = {
            let (mailbox, message) = (mailbox.clone(), tally.message(1));
            thread::spawn(move || push_by_waker(&mailbox, message))
        };
        one.close();
        assert!(!sender.join().unwrap().0);
        while let pointsman::loom_hooks::mailbox::DrainStep::Message(_) = one.drain_next() {}
        tally.assert_each_once(2);
    });
}
