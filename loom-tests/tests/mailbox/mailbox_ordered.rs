//! Races of the ordered mailbox: messages that the owner has moved to its order against claims, going idle,
//! positions, capacity and close.
//!
//! Urgent messages have even numbers, the others odd ones. The order itself is touched by the owner alone, and
//! its cell fails a second one. Bound 3 where nothing else is said.
//!
//! Seen to fail: the owner goes idle when everything is moved, handled or not (`sends_race_a_turn`); `has_reached`
//! or a front's index goes by the number of messages handled, and not by the lowest that is not (`a_stop_waits`);
//! moved messages count as handled (`a_move_makes_no_room`, `a_stop_waits`, the waiting sender); the next message
//! to be moved is looked for at `head` (all); a message taken from the order wakes no waiting sender; a drain
//! leaves out the order (`close_races_push_and_drain`); a slot's stamp stored Relaxed (`a_move_makes_no_room`).
//! Not caught here: a block released whatever the observed index, which `slow_sender_keeps_block` in `mailbox.rs`
//! catches; `head` advanced Relaxed, held by argument alone.

use crate::support::counted::{Counted, Tally};
use crate::support::model;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use pointsman::loom_hooks::mailbox::priority::{PriorityOrder, Shape};
use pointsman::loom_hooks::mailbox::{
    DrainStep, LoadSnapshot, Mailbox, Owner, Position, Ready, Refused, SystemPushed,
};
use std::num::NonZeroUsize;

/// What the owner alone knows.
#[derive(Default)]
struct Actor {
    handled: Vec<usize>,
    /// Where a positioned stop is due.
    stop_at: Option<u64>,
    /// Drained after the stop.
    dead: Vec<usize>,
}

struct World {
    mailbox: Mailbox<(), (), Counted>,
    tally: Tally,
    /// Touched only by the owner: loom fails a second one.
    actor: UnsafeCell<Actor>,
}

/// Urgent messages overtake.
const CONTROL_AWARE: Shape = Shape::ClassQueues { count: NonZeroUsize::new(2).unwrap(), guard: None };

impl World {
    fn new(shape: Shape, bound: Option<(usize, bool)>) -> Arc<Self> {
        Self::of(shape, bound, None)
    }

    /// One that takes messages up to a class beyond its bound.
    fn of(shape: Shape, bound: Option<(usize, bool)>, never_discards: Option<i64>) -> Arc<Self> {
        let key = |message: &Counted| (message.number % 2) as i64;
        let bound = bound.map(|(capacity, waiting)| (NonZeroUsize::new(capacity).unwrap(), waiting));
        let order = PriorityOrder::new(shape, std::sync::Arc::new(key)).never_discarding(never_discards);
        Arc::new(Self {
            mailbox: Mailbox::ordered((), order, bound),
            tally: Tally::new(),
            actor: UnsafeCell::new(Actor::default()),
        })
    }

    /// A thread that works on the world.
    fn spawn<R: 'static>(
        world: &Arc<Self>,
        work: impl FnOnce(&World) -> R + 'static,
    ) -> thread::JoinHandle<R> {
        let world = world.clone();
        thread::spawn(move || work(&world))
    }

    /// The token, taken before anybody races.
    fn awake(&self) -> Owner<'_, (), (), Counted> {
        assert_eq!(self.mailbox.gate.send_system((), Position::Immediate), Ok(SystemPushed::Wake));
        // SAFETY: the send handed us the token.
        let mut owner = unsafe { self.mailbox.owner() };
        assert_eq!(owner.take_system().count(), 1);
        owner
    }

    /// Whoever is told to wake runs the turn. False if the message was refused.
    fn send(&self, number: usize) -> bool {
        let Ok(pushed) = self.mailbox.push(self.tally.message(number)) else { return false };
        if pushed.wakes() {
            self.turn();
        }
        true
    }

    /// A stop behind everything that this thread has sent.
    fn stop_here(&self) {
        let position = Position::At(self.mailbox.gate.position());
        if let Ok(SystemPushed::Wake) = self.mailbox.gate.send_system((), position) {
            self.turn();
        }
    }

    fn actor<R>(&self, act: impl FnOnce(&mut Actor) -> R) -> R {
        // SAFETY: only the owner comes here, or whoever has joined all threads.
        self.actor.with_mut(|actor| act(unsafe { &mut *actor }))
    }

    /// As the turn of an actor: it looks at the lane between `ready` and `take`, and before it goes idle it
    /// looks once more whether a position is reached, which moves what has come meanwhile.
    fn turn(&self) {
        // SAFETY: the caller was handed the token.
        let mut owner = unsafe { self.mailbox.owner() };
        loop {
            for (position, ()) in owner.take_system() {
                let Position::At(index) = position else { panic!("all stops have a position") };
                self.actor(|actor| actor.stop_at = Some(index));
            }
            let due = self.actor(|actor| actor.stop_at).unwrap_or(u64::MAX);
            if owner.has_reached(due) {
                return self.stop(owner);
            }
            match owner.ready() {
                Ready::Message(front) if front.has_system() || front.index() >= due => {}
                Ready::Message(front) => {
                    let message = front.take();
                    self.actor(|actor| actor.handled.push(message.number));
                }
                Ready::Busy => thread::yield_now(),
                Ready::Panicked(_) => unreachable!("the key function does not panic"),
                Ready::Empty => {
                    let _ = owner.ready();
                    if owner.has_reached(due) {
                        continue;
                    }
                    match owner.try_idle() {
                        Ok(()) => return,
                        Err(again) => owner = again,
                    }
                }
            }
        }
    }

    fn stop(&self, mut owner: Owner<'_, (), (), Counted>) {
        owner.close();
        let dead = drain(&mut owner);
        self.actor(|actor| actor.dead.extend(dead));
        owner.close_system_queue();
    }
}

fn take(owner: &mut Owner<'_, (), (), Counted>) -> Option<usize> {
    match owner.ready() {
        Ready::Message(front) => Some(front.take().number),
        _ => None,
    }
}

fn drain(owner: &mut Owner<'_, (), (), Counted>) -> Vec<usize> {
    let mut drained = Vec::new();
    loop {
        match owner.drain_next() {
            DrainStep::Message(message) => drained.push(message.number),
            DrainStep::Busy => thread::yield_now(),
            DrainStep::Done => return drained,
        }
    }
}

fn place(list: &[usize], number: usize) -> usize {
    list.iter().position(|other| *other == number).unwrap()
}

/// A sender against the turn that goes idle, and whose token it may then have: every message once, and in the end
/// the actor is idle with nothing in its order.
fn sends_race_the_turn(name: &str, bound: usize, floor: usize, shape: Shape) {
    model(name, &[1, 3, 4], bound, floor, move || {
        let world = World::new(shape, None);
        assert_eq!(world.mailbox.gate.send_system((), Position::At(u64::MAX)), Ok(SystemPushed::Wake));
        let other = World::spawn(&world, |world| {
            assert!(world.send(1) && world.send(0));
        });
        world.turn();
        other.join().unwrap();
        world.actor(|actor| assert_eq!(actor.handled.len(), 2));
        assert_eq!(world.mailbox.gate.len(), 0);
        assert_eq!(world.mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
        world.tally.assert_each_once(2);
    });
}

#[test]
fn sends_race_a_turn_with_ranks() {
    sends_race_the_turn("sends_race_a_turn_with_ranks", 3, 13_500, Shape::Ranks);
}

#[test]
fn sends_race_a_turn_with_lanes() {
    sends_race_the_turn("sends_race_a_turn_with_lanes", 3, 13_500, CONTROL_AWARE);
}

/// Two senders against the owner's move; what is published when it looks is taken by class, and within a class
/// as sent. Four messages cross two blocks, and a block comes back while messages of its lie in the order. Bound 2: bound 3
/// takes 10 s.
#[test]
fn pushes_race_the_move() {
    model("pushes_race_the_move", &[1], 2, 1000, || {
        let world = World::new(CONTROL_AWARE, None);
        let mut owner = world.awake();
        assert!(world.send(1));
        let one = World::spawn(&world, |world| {
            assert!(world.send(3) && world.send(0));
        });
        let two = World::spawn(&world, |world| {
            assert!(world.send(5));
        });
        let mut taken: Vec<usize> = std::iter::from_fn(|| take(&mut owner)).collect();
        let raced = taken.len();
        one.join().unwrap();
        two.join().unwrap();
        taken.extend(std::iter::from_fn(|| take(&mut owner)));
        assert!(place(&taken, 1) < place(&taken, 3) && place(&taken, 1) < place(&taken, 5));
        let rest = &taken[raced..];
        assert!(rest.is_sorted_by_key(|number| number % 2), "urgent ones first: {taken:?}");
        assert!(owner.try_idle().is_ok());
        world.tally.assert_each_once_of(&[0, 1, 3, 5]);
    });
}

/// A close while one message lies in the order, one at the intake, and one is being pushed.
#[test]
fn close_races_push_and_drain() {
    model("close_races_push_and_drain", &[1, 6, 8], 3, 300, || {
        let world = World::new(CONTROL_AWARE, None);
        let mut owner = world.awake();
        assert!(world.send(1));
        assert!(matches!(owner.ready(), Ready::Message(_)));
        assert!(world.send(3));
        let other = World::spawn(&world, |world| [world.send(0), world.send(2)]);
        // Moves what has come until now.
        assert!(matches!(owner.ready(), Ready::Message(_)));
        let accepted = owner.close();
        let mut drained = drain(&mut owner);
        let sent = other.join().unwrap();
        assert_eq!(drained.len() as u64, accepted);
        assert_eq!(accepted, 2 + sent.iter().filter(|sent| **sent).count() as u64);
        assert!(place(&drained, 1) < place(&drained, 3));
        drained.sort_unstable();
        assert!(drained.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(world.mailbox.gate.len(), 0);
        world.tally.assert_each_once(4);
    });
}

/// A stop behind a message that is not urgent waits for it, although an urgent one sent later overtakes both. Bound 2:
/// bound 3 takes 10 s each.
fn stop_waits(name: &str, bound: usize, floor: usize, shape: Shape) {
    model(name, &[1, 3, 5], bound, floor, move || {
        let world = World::new(shape, None);
        assert_eq!(world.mailbox.gate.send_system((), Position::At(u64::MAX)), Ok(SystemPushed::Wake));
        let stopper = World::spawn(&world, |world| {
            assert!(world.send(1));
            world.stop_here();
            world.send(0);
        });
        world.turn();
        stopper.join().unwrap();
        world.actor(|actor| {
            assert!(actor.handled.contains(&1), "sent before the stop");
            assert_eq!(actor.dead.iter().chain(&actor.handled).filter(|number| **number == 1).count(), 1);
        });
        assert!(world.mailbox.gate.is_closed());
        world.tally.assert_each_once(2);
    });
}

#[test]
fn a_stop_waits_for_all_below_it_with_ranks() {
    stop_waits("a_stop_waits_for_all_below_it_with_ranks", 2, 1000, Shape::Ranks);
}

#[test]
fn a_stop_waits_for_all_below_it_with_lanes() {
    stop_waits("a_stop_waits_for_all_below_it_with_lanes", 2, 1000, CONTROL_AWARE);
}

/// Two places, one of them taken by a message in the order: of two senders one is refused, and both get in
/// only if the owner has taken one between.
#[test]
fn capacity_counts_what_is_sorted() {
    model("capacity_counts_what_is_sorted", &[1, 8, 18], 3, 3000, || {
        let world = World::new(Shape::Ranks, Some((2, false)));
        let mut owner = world.awake();
        assert!(world.send(1));
        assert!(matches!(owner.ready(), Ready::Message(_)));
        let threads = [0, 2].map(|number| World::spawn(&world, move |world| world.send(number)));
        // Moved, and not handled: no room is made by that.
        let _ = owner.ready();
        let before = world.mailbox.gate.len();
        assert!((1..=2).contains(&before), "{before}");
        assert!(take(&mut owner).is_some());
        let accepted = threads.map(|thread| thread.join().unwrap()).iter().filter(|sent| **sent).count();
        assert!((1..=2).contains(&accepted));
        assert_eq!(world.mailbox.gate.len(), accepted as u64);
        assert_eq!(std::iter::from_fn(|| take(&mut owner)).count(), accepted);
        assert!(owner.try_idle().is_ok());
        world.tally.assert_each_once(3);
    });
}

/// No message is taken: one sender is accepted and one refused, although the owner moves.
#[test]
fn a_move_makes_no_room() {
    model("a_move_makes_no_room", &[1, 18], 3, 100, || {
        let world = World::new(Shape::Ranks, Some((2, false)));
        let mut owner = world.awake();
        assert!(world.send(1));
        let threads = [0, 2].map(|number| World::spawn(&world, move |world| world.send(number)));
        let _ = owner.ready();
        let _ = owner.ready();
        let accepted = threads.map(|thread| thread.join().unwrap()).iter().filter(|sent| **sent).count();
        assert_eq!(accepted, 1);
        assert_eq!(std::iter::from_fn(|| take(&mut owner)).count(), 2);
        world.tally.assert_each_once(3);
    });
}

/// One place, which is taken: an urgent message gets in whatever the owner does meanwhile, and another one only where
/// the owner has taken enough. Caught: an urgent message that is refused, or that is lost between its two tries.
#[test]
fn an_urgent_message_is_taken_beyond_the_capacity() {
    model("an_urgent_message_is_taken_beyond_the_capacity", &[1, 18], 3, 2_500, || {
        let world = World::of(Shape::Ranks, Some((1, false)), Some(0));
        let mut owner = world.awake();
        assert!(world.send(1));
        let urgent = World::spawn(&world, |world| world.send(0));
        let other = World::spawn(&world, |world| world.send(3));
        assert!(take(&mut owner).is_some());
        assert!(urgent.join().unwrap(), "it finds no bound");
        let accepted = 2 + usize::from(other.join().unwrap());
        assert_eq!(world.mailbox.gate.len(), accepted as u64 - 1);
        assert_eq!(std::iter::from_fn(|| take(&mut owner)).count(), accepted - 1);
        assert!(owner.try_idle().is_ok());
        world.tally.assert_each_once_of(&[0, 1, 3]);
    });
}

/// A sender that waits for room is woken by a message taken from the order.
#[test]
fn a_message_taken_from_the_order_wakes_a_waiting_sender() {
    model("a_message_taken_from_the_order_wakes_a_waiting_sender", &[1, 16], 3, 30, || {
        let world = World::new(CONTROL_AWARE, Some((1, true)));
        let mut owner = world.awake();
        assert!(world.send(1));
        assert!(matches!(owner.ready(), Ready::Message(_)));
        let waiting = World::spawn(&world, |world| {
            let outcome = world.mailbox.push_waiting(world.tally.message(0), None);
            assert!(!outcome.map_err(Refused::into_message).ok().unwrap().wakes());
        });
        assert_eq!(take(&mut owner), Some(1));
        waiting.join().unwrap();
        assert_eq!(take(&mut owner), Some(0));
        assert!(owner.try_idle().is_ok());
        world.tally.assert_each_once(2);
    });
}
