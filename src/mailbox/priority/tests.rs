//! The tests compare priority mailboxes with a plain model in one thread, and run them under stress; the races are
//! models in `loom-tests`.

use crate::mailbox::mailbox::{
    DrainStep, LoadSnapshot, Mailbox, Owner, Pushed, Ready, Refused, SystemPushed,
};
use crate::mailbox::priority::{PriorityOrder, Shape, is_sparse};
use crate::mailbox::system_queue::Position;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, lock, thread};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc as StdArc;

/// A key, and a number to tell messages apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Urgent(i64, u64);

type Tested<M> = Mailbox<(), (), M>;

fn lanes(count: usize, guard: u32) -> Shape {
    Shape::ClassQueues { count: NonZeroUsize::new(count).expect("not 0"), guard: NonZeroU32::new(guard) }
}

fn by_key(shape: Shape) -> PriorityOrder<Urgent> {
    PriorityOrder::new(shape, StdArc::new(|message: &Urgent| message.0))
}

fn unbounded(shape: Shape) -> Tested<Urgent> {
    Tested::ordered((), by_key(shape), None)
}

fn awake<M>(mailbox: &Tested<M>) -> Owner<'_, (), (), M> {
    assert_eq!(mailbox.gate.send_system((), Position::Immediate), Ok(SystemPushed::Wake));
    // SAFETY: the send handed us the token.
    let mut owner = unsafe { mailbox.owner() };
    assert_eq!(owner.take_system().count(), 1);
    owner
}

fn take<M>(owner: &mut Owner<'_, (), (), M>) -> Option<M> {
    match owner.ready() {
        Ready::Message(front) => Some(front.take()),
        Ready::Empty | Ready::Busy => None,
        Ready::Panicked(_) => panic!("the key function panicked"),
    }
}

fn take_all(owner: &mut Owner<'_, (), (), Urgent>) -> Vec<u64> {
    std::iter::from_fn(|| take(owner)).map(|message| message.1).collect()
}

fn push(mailbox: &Tested<Urgent>, messages: &[(i64, u64)]) {
    for &(key, number) in messages {
        assert!(!mailbox.push(Urgent(key, number)).expect("room").wakes());
    }
}

#[test]
fn lower_ranks_go_first_and_equal_ones_in_the_order_sent() {
    let mailbox = unbounded(Shape::Ranks);
    let mut owner = awake(&mailbox);
    push(&mailbox, &[(5, 0), (-1, 1), (5, 2), (i64::MAX, 3), (0, 4), (-1, 5), (i64::MIN, 6)]);
    assert_eq!(take_all(&mut owner), [6, 1, 5, 4, 0, 2, 3]);
    owner.try_idle().expect("nothing to do");
    assert_eq!(mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
}

#[test]
fn a_message_sent_later_overtakes_what_was_seen_but_not_taken() {
    let mailbox = unbounded(Shape::Ranks);
    let mut owner = awake(&mailbox);
    push(&mailbox, &[(2, 0), (3, 1)]);
    assert!(matches!(owner.ready(), Ready::Message(_)));
    push(&mailbox, &[(1, 2)]);
    assert_eq!(take_all(&mut owner), [2, 0, 1]);
}

#[test]
fn lanes_beyond_the_last_count_as_the_last_and_below_the_first_as_the_first() {
    let mailbox = unbounded(lanes(3, 0));
    let mut owner = awake(&mailbox);
    push(&mailbox, &[(9, 0), (2, 1), (1, 2), (i64::MAX, 3), (0, 4), (-7, 5)]);
    assert_eq!(take_all(&mut owner), [4, 5, 2, 0, 1, 3]);
}

/// After two messages of higher lanes one of a lower lane goes; each waiting lane counts for itself.
#[test]
fn the_guard_lets_each_waiting_lane_have_its_turn() {
    let mailbox = unbounded(lanes(3, 2));
    let mut owner = awake(&mailbox);
    for number in 0..6 {
        push(&mailbox, &[(0, number), (1, 10 + number), (2, 20 + number)]);
    }
    assert_eq!(take_all(&mut owner)[..9], [0, 1, 10, 20, 2, 3, 11, 21, 4]);
}

#[test]
fn a_lane_that_comes_later_starts_to_wait_then() {
    let mailbox = unbounded(lanes(2, 3));
    let mut owner = awake(&mailbox);
    push(&mailbox, &[(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
    assert_eq!(take(&mut owner).map(|message| message.1), Some(0));
    push(&mailbox, &[(1, 10)]);
    assert_eq!(take_all(&mut owner), [1, 2, 3, 10, 4, 5]);
}

/// A position is reached when each message below it was handled, whatever overtook.
#[test]
fn a_position_waits_for_the_least_urgent_message_below_it() {
    for shape in [Shape::Ranks, lanes(3, 0)] {
        let mailbox = unbounded(shape);
        let mut owner = awake(&mailbox);
        push(&mailbox, &[(2, 0), (1, 1)]);
        let position = mailbox.gate.position();
        push(&mailbox, &[(0, 2)]);
        for expected in [2, 1, 0] {
            match owner.ready() {
                Ready::Message(front) => {
                    assert!(front.index() < position, "{shape:?}");
                    assert_eq!(front.take().1, expected);
                }
                _ => panic!("there are three"),
            }
            assert_eq!(owner.has_reached(position), expected == 0, "{shape:?}");
        }
    }
}

#[test]
fn what_is_sorted_still_takes_room() {
    let bound = Some((NonZeroUsize::new(2).expect("not 0"), false));
    let mailbox = Tested::ordered((), by_key(Shape::Ranks), bound);
    let mut owner = awake(&mailbox);
    push(&mailbox, &[(1, 0), (0, 1)]);
    assert!(matches!(owner.ready(), Ready::Message(_)));
    assert_eq!(mailbox.gate.len(), 2);
    assert!(matches!(mailbox.push(Urgent(0, 2)), Err(Refused::Full(Urgent(0, 2)))));
    assert_eq!(take(&mut owner).map(|message| message.1), Some(1));
    assert!(matches!(mailbox.push(Urgent(0, 3)), Ok(Pushed::Queued)));
    assert!(matches!(mailbox.push(Urgent(0, 4)), Err(Refused::Full(_))));
    assert_eq!(take_all(&mut owner), [3, 0]);
}

#[test]
fn nothing_sorted_lets_the_owner_go_idle() {
    let mailbox = unbounded(Shape::Ranks);
    let mut owner = awake(&mailbox);
    push(&mailbox, &[(1, 0)]);
    assert!(matches!(owner.ready(), Ready::Message(_)));
    let mut owner = owner.try_idle().expect_err("a message is in the order");
    assert_eq!(take(&mut owner), Some(Urgent(1, 0)));
    owner.try_idle().expect("nothing to do");
}

/// Sorted messages keep their order; the rest comes behind them in the order sent, and no user code runs.
#[test]
fn a_drain_sorts_nothing_any_more() {
    let asked = StdArc::new(AtomicUsize::new(0));
    let key = StdArc::new({
        let asked = asked.clone();
        move |message: &Urgent| {
            asked.fetch_add(1, Ordering::Relaxed);
            message.0
        }
    });
    let mailbox = Tested::ordered((), PriorityOrder::new(Shape::Ranks, key), None);
    let mut owner = awake(&mailbox);
    push(&mailbox, &[(3, 0), (2, 1)]);
    assert!(matches!(owner.ready(), Ready::Message(_)));
    push(&mailbox, &[(1, 2), (0, 3)]);
    assert_eq!(owner.close(), 4);
    let drained = std::iter::from_fn(|| match owner.drain_next() {
        DrainStep::Message(message) => Some(message.1),
        DrainStep::Busy | DrainStep::Done => None,
    });
    assert_eq!(drained.collect::<Vec<_>>(), [1, 0, 2, 3]);
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    assert_eq!(mailbox.gate.len(), 0);
}

#[test]
fn a_message_whose_key_panics_goes_last_and_the_panic_comes_once() {
    for shape in [Shape::Ranks, lanes(2, 0)] {
        let key = StdArc::new(|message: &Urgent| {
            assert!(message.0 >= 0, "as told");
            message.0
        });
        let mailbox = Tested::ordered((), PriorityOrder::new(shape, key), None);
        let mut owner = awake(&mailbox);
        push(&mailbox, &[(0, 0), (-1, 1), (0, 2), (1, 3)]);
        assert!(matches!(owner.ready(), Ready::Panicked(_)));
        assert_eq!(take_all(&mut owner).len(), 4, "{shape:?}");
        owner.try_idle().expect("nothing to do");

        let mut owner = awake(&mailbox);
        push(&mailbox, &[(-1, 0), (0, 1)]);
        assert!(matches!(owner.ready(), Ready::Panicked(_)));
        assert_eq!(take_all(&mut owner), [1, 0], "{shape:?}");
    }
}

/// Messages left when the mailbox is dropped are dropped once each, sorted or not.
#[test]
fn nothing_leaks_when_the_mailbox_is_dropped() {
    struct Counted(StdArc<AtomicUsize>, i64);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    for shape in [Shape::Ranks, lanes(4, 1)] {
        let dropped = StdArc::new(AtomicUsize::new(0));
        let order = PriorityOrder::new(shape, StdArc::new(|message: &Counted| message.1));
        let mailbox = Tested::ordered((), order, None);
        let mut owner = awake(&mailbox);
        for number in 0..200 {
            assert!(mailbox.push(Counted(dropped.clone(), number % 7)).is_ok());
            if number % 50 == 0 {
                drop(take(&mut owner));
            }
        }
        drop(mailbox);
        assert_eq!(dropped.load(Ordering::Relaxed), 200, "{shape:?}");
    }
}

/// A plain mailbox with the same behaviour: all messages in one list, in the order sent.
struct Plain {
    shape: Shape,
    /// Index, key, number.
    list: Vec<(u64, i64, u64)>,
    /// For each message taken so far its lane and the lowest index at that time; the passed lanes are counted from
    /// this.
    taken: Vec<(i64, u64)>,
    pushed: u64,
    /// The moment at which each lane last began to wait or had its turn, in messages taken.
    since: Vec<usize>,
}

impl Plain {
    fn new(shape: Shape) -> Self {
        let count = if let Shape::ClassQueues { count, .. } = shape { count.get() } else { 1 };
        Self { shape, list: Vec::new(), taken: Vec::new(), pushed: 0, since: vec![0; count] }
    }

    fn lane(&self, key: i64) -> i64 {
        match self.shape {
            Shape::Ranks => key,
            Shape::ClassQueues { count, .. } => key.clamp(0, count.get() as i64 - 1),
        }
    }

    fn push(&mut self, message: Urgent) {
        let key = self.lane(message.0);
        if matches!(self.shape, Shape::ClassQueues { .. }) && self.list.iter().all(|other| other.1 != key) {
            self.since[key as usize] = self.taken.len();
        }
        self.list.push((self.pushed, key, message.1));
        self.pushed += 1;
    }

    /// The number of messages of higher lanes taken while this lane waited.
    fn passed(&self, lane: i64) -> usize {
        self.taken[self.since[lane as usize]..].iter().filter(|(other, _)| *other < lane).count()
    }

    fn take(&mut self) -> Option<u64> {
        let first = self.list.iter().map(|message| message.1).min()?;
        let key = match self.shape {
            Shape::ClassQueues { guard: Some(guard), .. } => {
                let mut waiting: Vec<i64> = self.list.iter().map(|message| message.1).collect();
                waiting.sort_unstable();
                let due = waiting.into_iter().find(|lane| self.passed(*lane) >= guard.get() as usize);
                due.unwrap_or(first)
            }
            _ => first,
        };
        let place = self.list.iter().position(|message| message.1 == key)?;
        self.taken.push((key, self.lowest()));
        if matches!(self.shape, Shape::ClassQueues { .. }) {
            self.since[key as usize] = self.taken.len();
        }
        Some(self.list.remove(place).2)
    }

    /// The lowest index not yet handled.
    fn lowest(&self) -> u64 {
        self.list.iter().map(|message| message.0).min().unwrap_or(self.pushed)
    }
}

/// Random sends, takes, looks, idle transitions and a close, the same on both mailboxes.
#[test]
fn ordered_mailboxes_do_what_a_plain_list_does() {
    let (seeds, steps) = if cfg!(miri) { (3, 200) } else { (60, 2000) };
    let shapes = [Shape::Ranks, lanes(1, 0), lanes(2, 0), lanes(2, 3), lanes(4, 1), lanes(5, 7)];
    for seed in 0..seeds {
        let mut random = SmallRng::seed_from_u64(seed);
        let shape = shapes[seed as usize % shapes.len()];
        let capacity = random.random_bool(0.5).then(|| random.random_range(1..100_usize));
        let bound = capacity.map(|capacity| (NonZeroUsize::new(capacity).expect("not 0"), false));
        let mailbox = Tested::ordered((), by_key(shape), bound);
        let mut plain = Plain::new(shape);
        let mut owner = Some(awake(&mailbox));
        let mut number = 0;
        // Phases in which there is more sending than taking, and the other way round.
        let mut sends = 0.5;
        for step in 0..steps {
            if step % 100 == 0 {
                sends = random.random_range(0.2..0.8);
            }
            if random.random_bool(sends) {
                let message = Urgent(random.random_range(-1..8), number);
                number += 1;
                match mailbox.push(message) {
                    Ok(pushed) => {
                        assert!(capacity.is_none_or(|capacity| plain.list.len() < capacity), "seed {seed}");
                        plain.push(message);
                        if pushed.wakes() {
                            assert!(owner.is_none(), "seed {seed}");
                            // SAFETY: the push handed us the token.
                            owner = Some(unsafe { mailbox.owner() });
                        }
                    }
                    Err(Refused::Full(back)) => {
                        assert_eq!((back, Some(plain.list.len())), (message, capacity), "seed {seed}");
                    }
                    Err(Refused::Closed(_)) => panic!("not closed"),
                }
            } else if let Some(mut awake) = owner.take() {
                match random.random_range(0..10) {
                    0 => owner = awake.try_idle().err(),
                    1 => {
                        assert_eq!(matches!(awake.ready(), Ready::Message(_)), !plain.list.is_empty());
                        owner = Some(awake);
                    }
                    _ => {
                        assert_eq!(take(&mut awake).map(|message| message.1), plain.take(), "seed {seed}");
                        owner = Some(awake);
                    }
                }
            }
            assert_eq!(mailbox.gate.len(), plain.list.len() as u64, "seed {seed}");
            if let Some(awake) = &mut owner {
                let _ = awake.ready();
                for position in plain.lowest().saturating_sub(2)..plain.lowest() + 2 {
                    assert_eq!(awake.has_reached(position), plain.lowest() >= position, "seed {seed}");
                }
            } else {
                assert!(plain.list.is_empty(), "seed {seed}");
            }
        }
        let mut owner = owner.unwrap_or_else(|| awake(&mailbox));
        owner.close();
        let mut left = 0;
        while let DrainStep::Message(_) = owner.drain_next() {
            left += 1;
        }
        assert_eq!(left, plain.list.len(), "seed {seed}");
    }
}

const SENDERS: u64 = 3;

/// Senders run the turns that they cause; the messages of one sender and one key come in the order sent.
#[test]
fn stress_keeps_the_order_of_each_sender_and_key() {
    let (rounds, each) = if cfg!(miri) { (1, 40) } else { (4, 20_000) };
    for shape in [Shape::Ranks, lanes(3, 0), lanes(3, 4)].repeat(rounds) {
        struct World {
            mailbox: Tested<(i64, u64, u64)>,
            /// The lock is never waited for: a second owner fails the test.
            last: Mutex<([[u64; 3]; SENDERS as usize], u64)>,
        }
        let order = PriorityOrder::new(shape, StdArc::new(|message: &(i64, u64, u64)| message.0));
        let bound = NonZeroUsize::new(50).map(|capacity| (capacity, true));
        let world = Arc::new(World {
            mailbox: Tested::ordered((), order, bound),
            last: Mutex::new(Default::default()),
        });
        let turn = |world: &World| {
            // SAFETY: the caller was handed the token.
            let mut owner = unsafe { world.mailbox.owner() };
            loop {
                match owner.ready() {
                    Ready::Message(front) => {
                        let (key, sender, number) = front.take();
                        let mut last = world.last.try_lock().expect("one owner at a time");
                        let before = std::mem::replace(&mut last.0[sender as usize][key as usize], number);
                        assert!(before < number, "in the order sent");
                        last.1 += 1;
                    }
                    Ready::Busy => thread::yield_now(),
                    Ready::Empty => match owner.try_idle() {
                        Ok(()) => return,
                        Err(again) => owner = again,
                    },
                    Ready::Panicked(_) => panic!("the key function does not panic"),
                }
            }
        };
        let threads: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let world = world.clone();
                thread::spawn(move || {
                    for number in 1..=each {
                        let key = ((number ^ sender) % 3) as i64;
                        let pushed = world.mailbox.push_waiting((key, sender, number), None);
                        if pushed.expect("open, and waited for room").wakes() {
                            turn(&world);
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(lock(&world.last).1, SENDERS * each, "{shape:?}");
        assert_eq!(world.mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
    }
}

#[test]
fn room_is_given_back_when_more_than_three_quarters_of_much_are_unused() {
    assert!(is_sparse(24, 100) && is_sparse(0, 65));
    assert!(!is_sparse(25, 100) && !is_sparse(99, 100) && !is_sparse(0, 64));
}
