//! Races of the system lane: with going idle, with suspension, with messages sent beside it, with its close. Bound 3 where
//! nothing else is said.
//!
//! Seen to fail: the owner looks at the lane only before it looks for a message (`system_before_user`); the
//! look at the lane comes before SYSTEM is cleared (`system_send_races_idle`); a system message does not take
//! the token of a parked actor (`suspended_stays_suspended`); a push to the lane ignores the mark of its close
//! (`lane_close_races_send`); one that is refused without its Acquire fence (`lane_refusal_is_seen_last`).

use crate::support::counted::{Counted, Tally};
use crate::support::model;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use pointsman::loom_hooks::mailbox::{DrainStep, LoadSnapshot, Mailbox, Owner, Position, Ready};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    Watch,
    Suspend,
    Resume,
    Stop,
}

/// What the owner alone knows.
#[derive(Default)]
struct Actor {
    handled: Vec<usize>,
    watched: usize,
    suspended: bool,
    /// Where a positioned stop is due.
    stop_at: Option<u64>,
    /// Drained after the stop.
    dead: Vec<usize>,
}

struct World {
    mailbox: Mailbox<(), Control, Counted>,
    tally: Tally,
    /// Touched only by the owner: loom fails a second one.
    actor: UnsafeCell<Actor>,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mailbox: Mailbox::unbounded(()),
            tally: Tally::new(),
            actor: UnsafeCell::new(Actor::default()),
        })
    }

    /// A spawned thread that works on the world.
    fn spawn(world: &Arc<Self>, work: impl FnOnce(&World) + 'static) -> thread::JoinHandle<()> {
        let world = world.clone();
        thread::spawn(move || work(&world))
    }

    /// False if the mailbox is closed.
    fn send(&self, number: usize) -> bool {
        let Ok(pushed) = self.mailbox.push(self.tally.message(number)) else { return false };
        if pushed.wakes() {
            self.turn();
        }
        true
    }

    /// False if the lane is closed.
    fn control(&self, control: Control, position: Position) -> bool {
        match self.mailbox.gate.send_system(control, position) {
            Ok(pointsman::loom_hooks::mailbox::SystemPushed::Wake) => self.turn(),
            Ok(_) => {}
            Err(refused) => {
                assert_eq!(refused, control);
                return false;
            }
        }
        true
    }

    /// What the owner knows; each access ends before the token can be laid down.
    fn actor<R>(&self, act: impl FnOnce(&mut Actor) -> R) -> R {
        // SAFETY: only the owner comes here.
        self.actor.with_mut(|actor| act(unsafe { &mut *actor }))
    }

    /// Run by whoever was told to wake.
    fn turn(&self) {
        // SAFETY: the caller was handed the token.
        let mut owner = unsafe { self.mailbox.owner() };
        loop {
            self.look_at_lane(&mut owner);
            if self.actor(|actor| actor.suspended) {
                match owner.try_suspend() {
                    Ok(()) => return,
                    Err(again) => owner = again,
                }
                continue;
            }
            if self.actor(|actor| actor.stop_at).is_some_and(|index| owner.has_reached(index)) {
                return self.stop(owner);
            }
            match owner.ready() {
                // Left in its place: what was sent before it comes first.
                Ready::Message(front) if front.has_system() => {}
                Ready::Message(front) => {
                    let message = front.take();
                    self.actor(|actor| actor.handled.push(message.number));
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

    fn look_at_lane(&self, owner: &mut Owner<'_, (), Control, Counted>) {
        for (position, control) in owner.take_system() {
            self.actor(|actor| match (control, position) {
                (Control::Watch, _) => actor.watched += 1,
                (Control::Suspend, _) => actor.suspended = true,
                (Control::Resume, _) => actor.suspended = false,
                (Control::Stop, Position::At(index)) => actor.stop_at = Some(index),
                (Control::Stop, Position::Immediate) => actor.stop_at = Some(0),
            });
            match control {
                Control::Suspend => owner.set_suspended(true),
                Control::Resume => owner.set_suspended(false),
                Control::Watch | Control::Stop => {}
            }
        }
    }

    fn stop(&self, mut owner: Owner<'_, (), Control, Counted>) {
        owner.close();
        loop {
            match owner.drain_next() {
                DrainStep::Message(message) => self.actor(|actor| actor.dead.push(message.number)),
                DrainStep::Busy => thread::yield_now(),
                DrainStep::Done => break,
            }
        }
        let late = owner.close_system_queue().count();
        self.actor(|actor| actor.watched += late);
    }

    fn inspect(&self, look: impl FnOnce(&Actor)) {
        // SAFETY: all threads have ended.
        self.actor.with(|actor| look(unsafe { &*actor }));
    }
}

#[test]
fn one_system_message_wakes() {
    model("one_system_message_wakes", &[4], 3, 1, || {
        let world = World::new();
        assert!(world.control(Control::Watch, Position::Immediate));
        world.inspect(|actor| assert_eq!(actor.watched, 1));
        assert_eq!(world.mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
    });
}

/// A system message against the owner that is about to go idle.
#[test]
fn system_send_races_idle() {
    model("system_send_races_idle", &[1, 3, 4], 3, 100, || {
        let world = World::new();
        let other = World::spawn(&world, |world| assert!(world.control(Control::Watch, Position::Immediate)));
        world.send(0);
        other.join().unwrap();
        world.inspect(|actor| assert_eq!((actor.watched, &actor.handled[..]), (1, &[0][..])));
        world.tally.assert_each_once(1);
        assert_eq!(world.mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
    });
}

/// Two of each kind.
#[test]
fn system_sends_race_user_sends() {
    model("system_sends_race_user_sends", &[1, 2, 3, 4], 3, 1000, || {
        let world = World::new();
        let other = World::spawn(&world, |world| {
            assert!(world.control(Control::Watch, Position::Immediate));
            assert!(world.control(Control::Watch, Position::Immediate));
        });
        world.send(0);
        world.send(1);
        other.join().unwrap();
        world.inspect(|actor| assert_eq!((actor.watched, &actor.handled[..]), (2, &[0, 1][..])));
        world.tally.assert_each_once(2);
        assert_eq!(world.mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
    });
}

/// A stop sent before a message comes before it, although the lane was empty when the owner last looked.
#[test]
fn system_before_user() {
    model("system_before_user", &[1, 3, 5], 3, 100, || {
        let world = World::new();
        let other = World::spawn(&world, |world| {
            assert!(world.control(Control::Stop, Position::Immediate));
            world.send(1);
        });
        world.send(0);
        other.join().unwrap();
        world.inspect(|actor| assert!(!actor.handled.contains(&1), "overtook the stop"));
        world.tally.assert_each_once(2);
    });
}

/// Whatever has been suspended and resumed meanwhile, everything is handled in the end. Bound 2: two threads that both run
/// turns; bound 3 takes 21 s.
#[test]
fn suspend_resume_races_sends() {
    model("suspend_resume_races_sends", &[1, 2, 3, 4], 2, 1000, || {
        let world = World::new();
        let other = World::spawn(&world, |world| {
            world.send(0);
            world.send(1);
        });
        assert!(world.control(Control::Suspend, Position::Immediate));
        assert!(world.control(Control::Watch, Position::Immediate));
        assert!(world.control(Control::Resume, Position::Immediate));
        other.join().unwrap();
        world.inspect(|actor| assert_eq!((actor.watched, &actor.handled[..]), (1, &[0, 1][..])));
        world.tally.assert_each_once(2);
        assert_eq!(world.mailbox.gate.load_snapshot(), LoadSnapshot::Idle);
    });
}

/// Only the lane wakes a suspended actor.
#[test]
fn suspended_stays_suspended() {
    model("suspended_stays_suspended", &[1, 4, 5, 8], 3, 50, || {
        let world = World::new();
        assert!(world.control(Control::Suspend, Position::Immediate));
        let other = World::spawn(&world, |world| {
            world.send(0);
        });
        assert!(world.control(Control::Watch, Position::Immediate));
        other.join().unwrap();
        world.inspect(|actor| assert_eq!((actor.watched, actor.handled.len()), (1, 0)));
        assert_eq!(world.mailbox.gate.len(), 1);
        assert_eq!(world.mailbox.gate.load_snapshot(), LoadSnapshot::Suspended);
        assert!(world.control(Control::Resume, Position::Immediate));
        world.inspect(|actor| assert_eq!(actor.handled, [0]));
        world.tally.assert_each_once(1);
    });
}

/// A positioned stop comes after what its sender sent before, and before what it sends later.
fn stop_at_position(name: &str, bound: usize, floor: usize, suspended: bool) {
    model(name, &[1, 3, 5], bound, floor, move || {
        let world = World::new();
        if suspended {
            assert!(world.control(Control::Suspend, Position::Immediate));
        }
        let stopper = World::spawn(&world, |world| {
            assert!(world.send(0));
            let position = Position::At(world.mailbox.gate.position());
            assert!(world.control(Control::Stop, position));
            world.send(1);
        });
        let other = (!suspended).then(|| {
            World::spawn(&world, |world| {
                world.send(2);
            })
        });
        if suspended {
            assert!(world.control(Control::Resume, Position::Immediate));
        } else {
            other.unwrap().join().unwrap();
        }
        stopper.join().unwrap();
        world.inspect(|actor| {
            assert!(actor.handled.contains(&0), "sent before the stop");
            assert!(!actor.handled.contains(&1), "sent after the stop");
            assert!(!actor.dead.contains(&0));
        });
        assert!(world.mailbox.gate.is_closed());
        world.tally.assert_each_once(if suspended { 2 } else { 3 });
    });
}

/// Bound 2: two senders that both run turns.
#[test]
fn stop_at_position_from_idle() {
    stop_at_position("stop_at_position_from_idle", 2, 1000, false);
}

#[test]
fn stop_at_position_while_suspended() {
    stop_at_position("stop_at_position_while_suspended", 3, 100, true);
}

/// Every system message is in what the last look returned, or comes back.
#[test]
fn lane_close_races_send() {
    model("lane_close_races_send", &[3, 6], 3, 100, || {
        let world = World::new();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let world = world.clone();
                thread::spawn(move || world.control(Control::Watch, Position::Immediate))
            })
            .collect();
        let stopped = world.control(Control::Stop, Position::Immediate);
        assert!(stopped);
        let accepted = others.into_iter().map(|other| other.join().unwrap()).filter(|&sent| sent).count();
        world.inspect(|actor| assert_eq!(actor.watched, accepted));
        assert!(!world.control(Control::Watch, Position::Immediate));
    });
}

/// Who is refused sees what the owner did before it closed the lane.
#[test]
fn who_is_refused_by_the_lane_sees_what_came_before() {
    model("lane_refusal_is_seen_last", &[6], 3, 12, || {
        let world = World::new();
        let sent = world.mailbox.gate.send_system(Control::Watch, Position::Immediate);
        assert!(matches!(sent, Ok(pointsman::loom_hooks::mailbox::SystemPushed::Wake)));
        // SAFETY: the send handed us the token.
        let mut owner = unsafe { world.mailbox.owner() };
        let other = World::spawn(&world, |world| {
            if world.mailbox.gate.send_system(Control::Watch, Position::Immediate).is_err() {
                // SAFETY: the owner writes no more; loom fails the model where that is not seen.
                world.actor.with(|actor| assert_eq!(unsafe { &*actor }.watched, 1));
            }
        });
        world.actor(|actor| actor.watched += 1);
        owner.close();
        assert!(matches!(owner.drain_next(), DrainStep::Done));
        drop(owner.close_system_queue());
        other.join().unwrap();
    });
}
