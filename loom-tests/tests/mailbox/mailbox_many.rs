//! Races of `push_many`, which claims several messages at once in an unbounded mailbox.
//!
//! Blocks have two slots here, so three messages lie in two blocks, or in the inline slot and a block.
//!
//! Seen to fail: a close that is looked at before the claim alone (`close_races_many`); no look for the token after the
//! messages (both `wake_once` models); the claim without its ordering (`a_batch_keeps_its_blocks`).

use crate::support::counted::{Counted, Tally};
use crate::support::model;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use pointsman::loom_hooks::mailbox::{
    DrainStep, LoadSnapshot, Mailbox, Owner, Position, Ready, SystemPushed,
};

struct World {
    mailbox: Mailbox<(), (), Counted>,
    tally: Tally,
    /// Touched only by the owner: loom fails a second one.
    handled: UnsafeCell<Vec<usize>>,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mailbox: Mailbox::unbounded(()),
            tally: Tally::new(),
            handled: UnsafeCell::new(Vec::new()),
        })
    }

    /// Pushes the messages at once; the push that gets the token runs the turn. Returns false if the mailbox is closed.
    fn send(&self, numbers: std::ops::Range<usize>) -> bool {
        let mut messages: Vec<_> = numbers.map(|number| Some(self.tally.message(number))).collect();
        let pushed = self.mailbox.push_many(&mut messages);
        assert_eq!(messages.iter().all(Option::is_some), pushed.is_none(), "all of them or none");
        if pushed == Some(true) {
            // SAFETY: the push handed us the token.
            self.turn(unsafe { self.mailbox.owner() });
        }
        pushed.is_some()
    }

    fn turn(&self, mut owner: Owner<'_, (), (), Counted>) {
        loop {
            match owner.ready() {
                Ready::Message(front) => {
                    let message = front.take();
                    // SAFETY: we are the owner.
                    self.handled.with_mut(|handled| unsafe { (*handled).push(message.number) });
                }
                Ready::Busy => thread::yield_now(),
                Ready::Panicked(_) => unreachable!("nothing is sorted here"),
                Ready::Empty => match owner.try_idle() {
                    Ok(()) => return,
                    Err(again) => owner = again,
                },
            }
        }
    }

    /// Asserts that the messages were each handled once, those of each range in their order.
    fn assert_handled(&self, ranges: &[std::ops::Range<usize>]) {
        self.tally.assert_each_once(ranges.iter().map(ExactSizeIterator::len).sum());
        assert_eq!(self.mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
        self.handled.with(|handled| {
            // SAFETY: all threads have ended.
            let handled = unsafe { &*handled };
            for range in ranges {
                let own: Vec<_> = handled.iter().copied().filter(|number| range.contains(number)).collect();
                assert!(own.iter().copied().eq(range.clone()), "in the order sent: {handled:?}");
            }
        });
    }
}

/// Senders race with these messages, and each sends its own at once, if there are several.
fn senders(name: &str, bound: usize, floor: usize, ranges: &'static [std::ops::Range<usize>]) {
    model(name, &[1, 3, 4], bound, floor, move || {
        let world = World::new();
        let threads: Vec<_> = ranges[1..]
            .iter()
            .map(|range| {
                let world = world.clone();
                thread::spawn(move || assert!(world.send(range.clone())))
            })
            .collect();
        assert!(world.send(ranges[0].clone()));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        world.assert_handled(ranges);
    });
}

/// The first message lies in the inline slot or behind the other sender's, the others in blocks.
#[test]
fn many_and_one_wake_once() {
    senders("many_and_one_wake_once", 2, 500, &[0..3, 3..4]);
}

/// Two claims of several.
#[test]
fn many_and_many_wake_once() {
    senders("many_and_many_wake_once", 2, 500, &[0..3, 3..5]);
}

/// A batch over three blocks against another sender, while the owner takes and releases blocks. Bound 1: bound 2 takes
/// minutes, and 2.8 million executions.
#[test]
fn a_batch_keeps_its_blocks() {
    model("a_batch_keeps_its_blocks", &[1, 2, 13], 1, 500, || {
        let world = World::new();
        let sent = world.mailbox.gate.send_system((), Position::Immediate);
        assert_eq!(sent, Ok(SystemPushed::Wake));
        // SAFETY: the send handed us the token.
        let mut owner = unsafe { world.mailbox.owner() };
        assert_eq!(owner.take_system().count(), 1);
        let mut senders = [0..5, 5..6].map(|range| {
            let world = world.clone();
            Some(thread::spawn(move || assert!(world.send(range))))
        });
        let (mut taken, mut misses) = (0, 0);
        while taken < 6 {
            match owner.ready() {
                Ready::Message(front) => {
                    let message = front.take();
                    // SAFETY: we are the owner.
                    world.handled.with_mut(|handled| unsafe { (*handled).push(message.number) });
                    taken += 1;
                }
                // An owner that polls multiplies the executions.
                _ if misses == 1 => {
                    senders.iter_mut().filter_map(Option::take).for_each(|it| it.join().unwrap())
                }
                _ => {
                    misses += 1;
                    thread::yield_now();
                }
            }
        }
        senders.iter_mut().filter_map(Option::take).for_each(|it| it.join().unwrap());
        owner.try_idle().expect("nothing to do");
        world.assert_handled(&[0..5, 5..6]);
    });
}

/// A close is before a whole batch or behind it: the messages are all drained or all with their sender.
#[test]
fn close_races_many() {
    model("close_races_many", &[1, 6, 8], 3, 10, || {
        let world = World::new();
        let sent = world.mailbox.gate.send_system((), Position::Immediate);
        assert_eq!(sent, Ok(SystemPushed::Wake));
        // SAFETY: the send handed us the token.
        let mut owner = unsafe { world.mailbox.owner() };
        assert_eq!(owner.take_system().count(), 1);
        let sender = {
            let world = world.clone();
            thread::spawn(move || world.send(0..3))
        };
        let accepted = owner.close();
        let mut drained = 0;
        loop {
            match owner.drain_next() {
                DrainStep::Message(message) => {
                    assert_eq!(message.number, drained);
                    drained += 1;
                }
                DrainStep::Busy => thread::yield_now(),
                DrainStep::Done => break,
            }
        }
        assert_eq!(drained, if sender.join().unwrap() { 3 } else { 0 });
        assert_eq!(drained as u64, accepted);
        world.tally.assert_each_once(3);
        assert_eq!(world.mailbox.gate.len(), 0);
    });
}
