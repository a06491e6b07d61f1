//! Single-threaded behaviour, and stress with real threads; the races are models in `loom-tests`.

use super::{Drained, Mailbox, Owner, Position, Pushed, Ready, Refused, SystemPushed};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, thread};
use std::num::NonZeroUsize;

type Plain<M> = Mailbox<(), u32, M>;

fn capacity(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).expect("not 0")
}

/// Takes everything that is there and lays the token down.
fn turn<M>(mut owner: Owner<'_, (), u32, M>, mut handle: impl FnMut(M)) {
    loop {
        match owner.ready() {
            Ready::Message(front) => handle(front.take()),
            Ready::Busy => thread::yield_now(),
            Ready::Empty => match owner.try_idle() {
                Ok(()) => return,
                Err(again) => owner = again,
            },
        }
    }
}

/// Sends and, if that wakes, runs the turn.
fn send<M>(mailbox: &Plain<M>, message: M, handle: impl FnMut(M)) {
    if mailbox.push(message).expect("open and not full").wakes() {
        // SAFETY: the push handed us the token.
        turn(unsafe { mailbox.owner() }, handle);
    }
}

/// An owner whose token was taken by a system message, which is taken out again.
fn awake<M>(mailbox: &Plain<M>) -> Owner<'_, (), u32, M> {
    assert_eq!(mailbox.gate.send_system(0, Position::Immediate), Ok(SystemPushed::Wake));
    // SAFETY: the send handed us the token.
    let mut owner = unsafe { mailbox.owner() };
    assert_eq!(owner.take_system().count(), 1);
    owner
}

fn idle<M>(owner: Owner<'_, (), u32, M>) {
    owner.try_idle().expect("nothing to do");
}

fn take<M>(owner: &mut Owner<'_, (), u32, M>) -> Option<M> {
    match owner.ready() {
        Ready::Message(front) => Some(front.take()),
        Ready::Empty | Ready::Busy => None,
    }
}

#[test]
fn messages_come_in_order_over_many_blocks() {
    let mailbox = Plain::<u64>::unbounded(());
    let mut owner = awake(&mailbox);
    for round in 0..3 {
        for n in 0..1000 {
            assert!(!mailbox.push(round * 1000 + n).expect("open").wakes());
        }
        assert_eq!(mailbox.gate.len(), 1000);
        for n in 0..1000 {
            assert_eq!(take(&mut owner), Some(round * 1000 + n));
        }
    }
    assert_eq!(mailbox.gate.len(), 0);
    idle(owner);
    assert!(mailbox.gate.is_idle_and_empty());
}

/// The epoch may flip only with a chain: idle after two messages, after one, and again after two.
#[test]
fn idle_flips_only_with_chain() {
    let mailbox = Plain::<u64>::unbounded(());
    let mut seen = Vec::new();
    for burst in [2, 1, 2, 1, 1, 2, 40] {
        assert!(mailbox.push(0).expect("open").wakes());
        for n in 1..burst {
            assert!(!mailbox.push(n).expect("open").wakes());
        }
        // Another mailbox gets the blocks that this one gave away.
        let other = Plain::<u64>::unbounded(());
        assert!(other.push(70).expect("open").wakes());
        assert!(!other.push(71).expect("open").wakes());
        // SAFETY: the first pushes handed us both tokens.
        turn(unsafe { mailbox.owner() }, |n| seen.push(n));
        assert_eq!(seen, (0..burst).collect::<Vec<_>>());
        seen.clear();
        // SAFETY: as above.
        turn(unsafe { other.owner() }, |n| seen.push(n));
        assert_eq!(seen, [70, 71]);
        seen.clear();
    }
}
