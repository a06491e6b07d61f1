//! Bounded mailboxes, order, and refusals that hand the message back.

use crate::support::LONG;
use pointsman::prelude::*;
use pointsman::{DeadLetterReason, SendError};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Passes on what it gets, and can be held.
struct Sink(Sender<u64>);

enum Put {
    Number(u64),
    Hold(Sender<()>, Receiver<()>),
}

impl From<u64> for Put {
    fn from(number: u64) -> Self {
        Put::Number(number)
    }
}

impl Actor for Sink {
    type Message = Put;
    fn receive(&mut self, put: Put, _: &mut Context<Put>) -> Done {
        match put {
            Put::Number(number) => self.0.send(number)?,
            Put::Hold(inside, release) => {
                inside.send(())?;
                let _ = release.recv();
            }
        }
        Ok(())
    }
}

fn start(mailbox: Mailbox) -> (System, ActorRef<Put>, Receiver<u64>) {
    let system = System::builder("boxes")
        .dispatcher("default", Dispatcher::work_stealing().threads(2))
        .build()
        .unwrap();
    let (sender, numbers) = channel();
    let sink = system.actor("sink").mailbox(mailbox).spawn(move || Sink(sender.clone())).unwrap();
    (system, sink, numbers)
}

fn hold(sink: &ActorRef<Put>) -> Sender<()> {
    let (inside, held) = channel();
    let (release, released) = channel();
    sink.tell(Put::Hold(inside, released));
    held.recv_timeout(LONG).unwrap();
    release
}

fn seen(numbers: &Receiver<u64>, count: usize) -> Vec<u64> {
    (0..count).map(|_| numbers.recv_timeout(LONG).unwrap()).collect()
}

#[test]
fn a_full_mailbox_rejects_exactly_what_is_beyond_its_capacity_and_hands_it_back() {
    for capacity in [1, 2, 7, 64] {
        let (system, sink, numbers) = start(Mailbox::bounded(capacity));
        let release = hold(&sink);
        for number in 0..capacity as u64 {
            assert!(sink.try_tell(number).is_ok(), "{number} of {capacity}");
        }
        assert_eq!(sink.queued(), Some(capacity));
        match sink.try_tell(99u64) {
            Err(SendError::Full(Put::Number(99))) => {}
            other => panic!("{other:?}"),
        }
        sink.tell(98u64);
        drop(release);
        assert_eq!(seen(&numbers, capacity), (0..capacity as u64).collect::<Vec<_>>());
        let ledger = system.shutdown(LONG).unwrap();
        assert_eq!((ledger.handed_back, ledger.dead_lettered, ledger.balance()), (1, 1, 0), "{ledger}");
        assert!(numbers.try_recv().is_err());
    }
}

#[test]
fn drop_oldest_keeps_the_newest_and_drop_newest_the_oldest() {
    for (policy, kept) in [(Full::DropOldest, [2, 3, 4]), (Full::DropNewest, [0, 1, 2])] {
        let (system, sink, numbers) = start(Mailbox::bounded(3).on_full(policy));
        let (letter, letters) = channel();
        let _subscription = system.dead_letters().subscribe(move |dead| {
            let _ = letter.send(dead.reason);
        });
        let release = hold(&sink);
        for number in 0..5u64 {
            assert!(sink.try_tell(number).is_ok(), "the policy takes it");
        }
        drop(release);
        assert_eq!(seen(&numbers, 3), kept, "{policy:?}");
        let ledger = system.ledger();
        assert_eq!((ledger.sent, ledger.dropped, ledger.dead_lettered), (6, 2, 0), "{ledger}");
        assert_eq!(letters.try_iter().collect::<Vec<_>>(), [DeadLetterReason::Dropped; 2]);
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    }
}

#[test]
fn a_sender_waits_for_room_until_its_deadline() {
    let (system, sink, numbers) = start(Mailbox::bounded(1).on_full(Full::Wait(LONG)));
    let release = hold(&sink);
    sink.tell(0u64);
    let sender = std::thread::spawn({
        let sink = sink.clone();
        move || (1..200u64).for_each(|number| assert!(sink.try_tell(number).is_ok()))
    });
    drop(release);
    sender.join().unwrap();
    assert_eq!(seen(&numbers, 200), (0..200).collect::<Vec<_>>());
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);

    let (system, sink, _numbers) = start(Mailbox::bounded(1).on_full(Full::Wait(Duration::from_millis(2))));
    let release = hold(&sink);
    sink.tell(0u64);
    assert!(matches!(sink.try_tell(1u64), Err(SendError::Full(_))));
    drop(release);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_waiting_sender_is_refused_when_the_actor_stops() {
    let (system, sink, _numbers) = start(Mailbox::bounded(1).on_full(Full::Wait(LONG)));
    let release = hold(&sink);
    sink.tell(0u64);
    let (sender, outcome) = channel();
    let waiting = std::thread::spawn({
        let sink = sink.clone();
        move || sender.send(matches!(sink.try_tell(1u64), Err(SendError::Closed(_)))).unwrap()
    });
    sink.stop();
    drop(release);
    assert_eq!(outcome.recv_timeout(LONG), Ok(true));
    waiting.join().unwrap();
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Sends to a full mailbox from inside an actor.
struct Pusher(ActorRef<Put>, Sender<bool>);

impl Actor for Pusher {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> Done {
        self.1.send(matches!(self.0.try_tell(1u64), Err(SendError::Full(_))))?;
        Ok(())
    }
}

#[test]
fn on_a_worker_waiting_is_refused_at_once() {
    let (system, sink, _numbers) = start(Mailbox::bounded(1).on_full(Full::Wait(Duration::MAX)));
    let release = hold(&sink);
    sink.tell(0u64);
    let (sender, refused) = channel();
    let pusher = system.spawn(move || Pusher(sink.clone(), sender.clone())).unwrap();
    pusher.tell(());
    assert_eq!(refused.recv_timeout(LONG), Ok(true));
    drop(release);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn messages_of_one_sender_stay_in_order_in_every_kind_of_mailbox() {
    const EACH: u64 = 20_000;
    for mailbox in [
        Mailbox::unbounded(),
        Mailbox::bounded(3).on_full(Full::Wait(LONG)),
        Mailbox::bounded(50_000),
        Mailbox::bounded(5).on_full(Full::DropOldest),
    ] {
        let lossless = !matches!(format!("{mailbox:?}"), text if text.contains("DropOldest"));
        let (system, sink, numbers) = start(mailbox);
        let senders: Vec<_> = (0..2u64)
            .map(|sender| {
                let sink = sink.clone();
                std::thread::spawn(move || (0..EACH).for_each(|number| sink.tell(sender << 32 | number)))
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        sink.poison();
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
        let mut last = [None; 2];
        let mut count = 0;
        for number in numbers.try_iter() {
            let (sender, number) = ((number >> 32) as usize, number & 0xffff_ffff);
            assert!(last[sender] < Some(number), "{last:?} {number}");
            last[sender] = Some(number);
            count += 1;
        }
        if lossless {
            // `shutdown` stops `/user`, which may overtake: what came is in order and without gaps.
            assert!(last.iter().flatten().map(|last| last + 1).sum::<u64>() == count);
        }
    }
}

#[test]
fn a_closed_mailbox_hands_the_message_back() {
    let (system, sink, numbers) = start(Mailbox::unbounded());
    sink.stop();
    crate::support::wait_until(|| sink.is_closed());
    assert!(matches!(sink.try_tell(5u64), Err(SendError::Closed(Put::Number(5)))));
    assert_eq!(sink.load(), pointsman::Load::Closed);
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.sent, ledger.handed_back, ledger.balance()), (1, 1, 0));
    assert!(numbers.try_recv().is_err());
}
