//! The tests cover single-threaded behaviour, and stress with real threads; the races are models in `loom-tests`.

use crate::mailbox::backpressure::NotFullNotify;
use crate::mailbox::block::Block;
use crate::mailbox::chain::Cursor;
use crate::mailbox::mailbox::{
    DrainStep, LoadSnapshot, Mailbox, Owner, Pushed, Ready, Refused, SystemPushed,
};
use crate::mailbox::system_queue::Position;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, thread};
use std::collections::HashSet;
use std::num::NonZeroUsize;

type Plain<M> = Mailbox<(), u32, M>;

fn capacity(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).expect("not 0")
}

/// Returns an owner whose token was taken by a control message; the message is taken out again.
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
        Ready::Empty | Ready::Busy | Ready::Panicked(_) => None,
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
    assert_eq!(mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
}

#[test]
fn blocks_come_back_while_the_owner_never_runs_empty() {
    let mailbox = Plain::<u64>::unbounded(());
    // This message travels inline, and its index leaves a hole in the first block.
    assert!(mailbox.push(0).expect("open").wakes());
    // SAFETY: the send handed us the token.
    let mut owner = unsafe { mailbox.owner() };
    for n in 1..1000 {
        assert!(!mailbox.push(n).expect("open").wakes());
        assert_eq!(take(&mut owner), Some(n - 1));
        // SAFETY: we are the owner, and no thread sends meanwhile: blocks from the oldest one on are alive.
        let Cursor { oldest, .. } = mailbox.gate.cursor.with(|cursor| unsafe { std::ptr::read(cursor) });
        let next = |block: &*mut Block| {
            // SAFETY: as above.
            let next = unsafe { (**block).next.load(Ordering::Relaxed) };
            (!next.is_null()).then_some(next)
        };
        let chain = std::iter::successors((!oldest.is_null()).then_some(oldest), next);
        assert!(chain.count() <= 4, "at message {n}");
    }
    assert_eq!(take(&mut owner), Some(999));
    idle(owner);
}

/// Each sender sends behind the sender before it, and no operation that orders memory tells it so. Only the word shows
/// the last sender that the chain has moved on, from a block that the owner may have taken back by then.
#[test]
fn senders_that_know_nothing_of_each_other_find_no_block_that_has_gone_back() {
    // Two messages fill a block.
    type Large = [usize; 256];
    for _ in 0..if cfg!(miri) { 4 } else { 200 } {
        let (mailbox, sent) = (&Plain::<Large>::unbounded(()), &AtomicUsize::new(0));
        let mut owner = awake(mailbox);
        thread::scope(|scope| {
            for numbers in [0..3, 3..4, 4..5, 5..6] {
                scope.spawn(move || {
                    while sent.load(Ordering::Relaxed) != numbers.start {
                        thread::yield_now();
                    }
                    for number in numbers.clone() {
                        assert!(!mailbox.push([number; 256]).expect("open").wakes());
                    }
                    sent.store(numbers.end, Ordering::Relaxed);
                });
            }
            for number in 0..6 {
                let message = loop {
                    match take(&mut owner) {
                        Some(message) => break message,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(message, [number; 256]);
            }
        });
        idle(owner);
    }
}

/// The epoch may flip only with a chain: idle after two messages, after one, and again after two.
#[test]
fn idle_flips_only_with_chain() {
    let mailbox = Plain::<u64>::unbounded(());
    for burst in [2, 1, 2, 1, 1, 2, 40] {
        assert!(mailbox.push(0).expect("open").wakes());
        for n in 1..burst {
            assert!(!mailbox.push(n).expect("open").wakes());
        }
        // Another mailbox gets the blocks that this one gave away.
        let other = Plain::<u64>::unbounded(());
        assert!(other.push(70).expect("open").wakes());
        assert!(!other.push(71).expect("open").wakes());
        // SAFETY: the first push handed us the token.
        let mut owner = unsafe { mailbox.owner() };
        for n in 0..burst {
            assert_eq!(take(&mut owner), Some(n));
        }
        idle(owner);
        // SAFETY: as above.
        let mut owner = unsafe { other.owner() };
        assert_eq!([take(&mut owner), take(&mut owner)], [Some(70), Some(71)]);
        idle(owner);
    }
}

/// Blocks of an over-aligned message and of a plain one of the same slot size on one thread: each kind must
/// find only stamps where it reads stamps.
#[test]
fn aligned_and_plain_blocks_do_not_mix() {
    #[repr(align(64))]
    struct Aligned([u64; 8]);
    struct Wide([u64; 15]);
    assert_eq!(
        size_of::<crate::mailbox::slot::Slot<Aligned>>(),
        size_of::<crate::mailbox::slot::Slot<Wide>>()
    );

    for round in 0..10u64 {
        let aligned = Plain::<Aligned>::unbounded(());
        let mut owner = awake(&aligned);
        for n in 0..100 {
            // The payload looks like the generations that a stamp could have.
            assert!(aligned.push(Aligned([round + 1 + n % 2; 8])).is_ok());
        }
        for n in 0..100 {
            let message = take(&mut owner).expect("pushed");
            assert_eq!(message.0, [round + 1 + n % 2; 8]);
            assert_eq!(std::ptr::from_ref(&message).addr() % 64, 0);
        }
        assert!(take(&mut owner).is_none());
        idle(owner);

        let wide = Plain::<Wide>::unbounded(());
        let mut owner = awake(&wide);
        for n in 0..100 {
            assert!(wide.push(Wide([n + 1; 15])).is_ok());
            assert_eq!(take(&mut owner).expect("pushed").0, [n + 1; 15]);
            assert!(take(&mut owner).is_none(), "a phantom message");
        }
        idle(owner);
    }
}

#[test]
fn blocks_that_one_thread_has_released_are_used_by_another() {
    // The size is unique: no other test uses that shelf.
    type Shape = crate::mailbox::block::Shape<[u64; 22]>;
    let take_and_release = || {
        let blocks: Vec<_> = (0..64).map(|_| Shape::allocate(0)).collect();
        // SAFETY: no other thread has the blocks, and no message was put in.
        blocks.iter().for_each(|block| unsafe { Shape::release(*block) });
        blocks.iter().map(|block| block.addr()).collect::<HashSet<_>>()
    };
    let former = thread::spawn(take_and_release).join().expect("no panic");
    assert_eq!(take_and_release(), former);
}

#[test]
fn huge_and_empty_messages_fit() {
    let huge = Plain::<[u64; 1000]>::unbounded(());
    let mut owner = awake(&huge);
    for n in 0..5 {
        assert!(huge.push([n; 1000]).is_ok());
    }
    for n in 0..5 {
        assert_eq!(take(&mut owner).expect("pushed"), [n; 1000]);
    }
    let empty = Plain::<()>::unbounded(());
    let mut owner = awake(&empty);
    for _ in 0..100 {
        assert!(empty.push(()).is_ok());
    }
    assert_eq!(std::iter::from_fn(|| take(&mut owner)).count(), 100);
}

#[test]
fn a_full_mailbox_hands_the_message_back() {
    let mailbox = Plain::<u32>::bounded((), capacity(2), false);
    let mut owner = awake(&mailbox);
    assert!(mailbox.push(1).is_ok() && mailbox.push(2).is_ok());
    assert!(matches!(mailbox.push(3), Err(Refused::Full(3))));
    assert!(matches!(mailbox.push_waiting(3, None), Err(Refused::Full(3))), "not made with waiting");
    assert_eq!(take(&mut owner), Some(1));
    assert!(matches!(mailbox.push(4), Ok(Pushed::Queued)));
    owner.close();
    assert!(matches!(mailbox.push(5), Err(Refused::Closed(5))));
    assert_eq!(take(&mut owner), Some(2));
    assert_eq!(take(&mut owner), Some(4));
}

#[test]
fn a_waiting_sender_gives_up_at_its_deadline() {
    let mailbox = Plain::<u32>::bounded((), capacity(1), true);
    assert!(mailbox.push(1).expect("room").wakes());
    let now = std::time::Instant::now();
    assert!(matches!(mailbox.push_waiting(2, Some(now)), Err(Refused::Full(2))));
}

#[test]
fn a_bell_rings_when_there_is_room_until_it_is_dismissed() {
    let mailbox = Plain::<u32>::bounded((), capacity(1), true);
    let mut owner = awake(&mailbox);
    let bell = Arc::new(NotFullNotify::new());
    mailbox.enlist(&bell);
    for expected in [1, 2] {
        assert!(mailbox.push(expected).is_ok());
        assert_eq!((bell.heard() + 1, take(&mut owner)), (expected.into(), Some(expected)));
        assert_eq!(bell.heard(), u64::from(expected));
    }
    mailbox.dismiss(&bell);
    assert!(mailbox.push(3).is_ok());
    assert_eq!((take(&mut owner), bell.heard()), (Some(3), 2));
    assert_eq!(Arc::strong_count(&bell), 1, "nobody keeps it");
}

/// In a ring the message that the owner has seen is not displaced, and a position below a later one holds.
#[test]
fn a_ring_keeps_what_the_owner_has_seen() {
    let mailbox = Plain::<u32>::ring((), capacity(1));
    let mut owner = awake(&mailbox);
    assert!(mailbox.push(1).is_ok());
    let position = mailbox.gate.position();
    assert!(matches!(owner.ready(), Ready::Message(_)));
    assert!(matches!(mailbox.push(2), Ok(Pushed::Queued)));
    assert!(matches!(mailbox.push(3), Ok(Pushed::Displaced { oldest: 2, wake: false })));
    assert!(!owner.has_reached(position));
    assert_eq!(take(&mut owner), Some(1));
    assert!(owner.has_reached(position));
    assert_eq!(take(&mut owner), Some(3));
    idle(owner);
    assert_eq!(mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
}

#[test]
fn idle_and_empty_is_neither_running_nor_suspended() {
    let mailbox = Plain::<u32>::unbounded(());
    assert_eq!(mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
    assert!(mailbox.push(1).expect("open").wakes());
    // SAFETY: the push handed us the token.
    let mut owner = unsafe { mailbox.owner() };
    assert_eq!(take(&mut owner), Some(1));
    assert!(mailbox.gate.len() == 0 && mailbox.gate.load_snapshot() == LoadSnapshot::Busy { queued: 0 });
    owner.set_suspended(true);
    owner.try_suspend().expect("nothing in the lane");
    assert_eq!(mailbox.gate.load_snapshot(), LoadSnapshot::Suspended);
}

#[test]
fn the_lane_keeps_order_and_closes() {
    let mailbox = Plain::<u32>::unbounded(());
    let mut owner = awake(&mailbox);
    for n in 1..4 {
        let sent = mailbox.gate.send_system(n, Position::At(u64::from(n)));
        assert_eq!(sent, Ok(SystemPushed::Queued));
    }
    assert!(owner.has_system());
    let taken: Vec<_> = owner.take_system().collect();
    assert_eq!(taken, [(Position::At(1), 1), (Position::At(2), 2), (Position::At(3), 3)]);
    assert_eq!(mailbox.gate.send_system(4, Position::Immediate), Ok(SystemPushed::Queued));
    assert_eq!(owner.close_system_queue().count(), 1);
    assert_eq!(mailbox.gate.send_system(5, Position::Immediate), Err(5));
    assert!(!owner.has_system());
}

#[test]
fn what_is_left_in_the_lane_goes_with_the_mailbox() {
    let mailbox = Mailbox::<(), Arc<()>, u32>::unbounded(());
    let message = Arc::new(());
    for _ in 0..3 {
        assert!(mailbox.gate.send_system(message.clone(), Position::Immediate).is_ok());
    }
    assert_eq!(Arc::strong_count(&message), 4);
    drop(mailbox);
    assert_eq!(Arc::strong_count(&message), 1);
}

/// A panic in one message's drop neither leaks the others nor gets lost.
#[test]
fn a_panicking_drop_leaks_nothing() {
    struct Fragile(Arc<AtomicUsize>, usize);
    impl Drop for Fragile {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            assert!(self.1 % 3 != 0, "fragile");
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let mailbox = Plain::<Fragile>::unbounded(());
    for n in 0..50 {
        let _ = mailbox.push(Fragile(dropped.clone(), n)).expect("open");
    }
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(mailbox)));
    assert!(outcome.is_err());
    assert_eq!(dropped.load(Ordering::Relaxed), 50);
}

/// Thread-locals are destroyed in an order of their own: a destructor may send after the block cache is gone.
#[test]
fn a_thread_locals_destructor_may_send() {
    struct Parting(std::cell::RefCell<Option<Arc<Plain<u64>>>>);
    impl Drop for Parting {
        fn drop(&mut self) {
            let mailbox = self.0.take().expect("set by the thread");
            for n in 0..200 {
                assert!(!mailbox.push(n).expect("open").wakes());
            }
        }
    }
    crate::sync::per_thread! {
        static FIRST: Parting = Parting(std::cell::RefCell::new(None));
    }
    crate::sync::per_thread! {
        static LAST: Parting = Parting(std::cell::RefCell::new(None));
    }

    let mailbox = Arc::new(Plain::<u64>::unbounded(()));
    let mut owner = awake(&mailbox);
    let sender = {
        let mailbox = mailbox.clone();
        thread::spawn(move || {
            // One destructor is registered before the cache, one behind it.
            FIRST.with(|parting| parting.0.replace(Some(mailbox.clone())));
            for n in 0..200 {
                assert!(!mailbox.push(n).expect("open").wakes());
            }
            LAST.with(|parting| parting.0.replace(Some(mailbox.clone())));
        })
    };
    sender.join().expect("no panic in the destructors");
    for _ in 0..3 {
        for n in 0..200 {
            assert_eq!(take(&mut owner), Some(n));
        }
    }
    assert!(take(&mut owner).is_none());
}

const SENDERS: usize = 3;

/// The state that the turns of one round share. The mutex is never waited for: a second owner fails the test.
#[derive(Default)]
struct Seen {
    next: [usize; SENDERS],
    count: usize,
}

struct Round {
    mailbox: Plain<(usize, usize)>,
    seen: crate::sync::Mutex<Seen>,
    /// The owner closes when it has taken this many messages.
    close_after: usize,
    ended: AtomicBool,
}

impl Round {
    fn see(&self, (sender, number): (usize, usize)) -> usize {
        let mut seen = self.seen.try_lock().expect("one owner at a time");
        assert!(number >= seen.next[sender], "in the order sent");
        seen.next[sender] = number + 1;
        seen.count += 1;
        seen.count
    }

    fn turn(&self) {
        // SAFETY: the caller was handed the token.
        let mut owner = unsafe { self.mailbox.owner() };
        loop {
            match owner.ready() {
                Ready::Message(front) => {
                    if self.see(front.take()) >= self.close_after {
                        return self.close(owner);
                    }
                }
                Ready::Busy => thread::yield_now(),
                Ready::Empty => match owner.try_idle() {
                    Ok(()) => return,
                    Err(again) => owner = again,
                },
                Ready::Panicked(_) => unreachable!("nothing is sorted here"),
            }
        }
    }

    fn close(&self, mut owner: Owner<'_, (), u32, (usize, usize)>) {
        owner.close();
        loop {
            match owner.drain_next() {
                DrainStep::Message(message) => _ = self.see(message),
                DrainStep::Busy => thread::yield_now(),
                DrainStep::Done => break,
            }
        }
        self.ended.store(true, Ordering::Release);
    }

    /// Returns the number of messages accepted and not displaced.
    fn send(&self, sender: usize, each: usize) -> isize {
        let mut kept = 0;
        for number in 0..each {
            match self.mailbox.push_waiting((sender, number), None) {
                Ok(pushed) => {
                    kept += 1;
                    if matches!(pushed, Pushed::Displaced { .. }) {
                        kept -= 1;
                    }
                    if pushed.wakes() {
                        self.turn();
                    }
                }
                Err(Refused::Full(_)) => thread::yield_now(),
                Err(Refused::Closed(message)) => assert_eq!(message, (sender, number)),
            }
        }
        kept
    }
}

/// Senders that run the turns they cause race a close, at another moment in each round.
fn stress(make: fn() -> Plain<(usize, usize)>) {
    let (rounds, each) = if cfg!(miri) { (2, 30) } else { (12, 20_000) };
    for round in 0..rounds {
        let world = Arc::new(Round {
            mailbox: make(),
            seen: crate::sync::Mutex::default(),
            close_after: 1 + round * SENDERS * each / rounds,
            ended: AtomicBool::new(false),
        });
        let threads: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let world = world.clone();
                thread::spawn(move || world.send(sender, each))
            })
            .collect();
        let kept: isize = threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
        let seen = world.seen.lock().expect("no panic");
        assert_eq!(kept, seen.count as isize);
        assert_eq!(world.mailbox.gate.len(), 0);
        let closed = world.mailbox.gate.is_closed();
        assert_eq!(closed, world.ended.load(Ordering::Acquire));
        assert_eq!(closed, seen.count >= world.close_after);
        assert!(closed || world.mailbox.gate.load_snapshot() == LoadSnapshot::Idle);
    }
}

#[test]
fn stress_unbounded() {
    stress(|| Plain::unbounded(()));
}

#[test]
fn stress_bounded() {
    stress(|| Plain::bounded((), capacity(50), false));
}

#[test]
fn stress_waiting() {
    // No sender waits while it runs a turn, so there is always a thread that makes room.
    stress(|| Plain::bounded((), capacity(50), true));
}

#[test]
fn stress_ring() {
    stress(|| Plain::ring((), capacity(50)));
}
