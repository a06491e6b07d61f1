//! Models of the state of an actor elsewhere, and of the outbox behind it, as senders see both.
//!
//! Mutations that these were seen to catch: a choke that takes the end back; an end that is told by a look and a write, and so
//! twice; a late choke that shortens the one before.

use crate::support::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use pointsman::loom_hooks::batch::{Batch, EnvelopeKind, Place};
use pointsman::loom_hooks::far_state::{FarLook, FarState};
use pointsman::loom_hooks::outbox::{EntryMemory, Outbox, OutboxLimits, Outgoing};
use std::time::Duration;

struct World {
    state: FarState,
    outbox: Outbox,
    memory: EntryMemory,
    /// Whether watchers were told of the end.
    is_told: AtomicBool,
}

/// The outcome of a send.
#[derive(Debug, PartialEq)]
enum Sent {
    Accepted,
    Full,
    Closed,
}

impl World {
    fn new() -> Arc<Self> {
        let limits = OutboxLimits { lane_bytes: 1000, large_bytes: 0, batch_bytes: 300 };
        Arc::new(Self {
            state: FarState::new(),
            outbox: Outbox::new(1, 2, 1, 10_000, limits),
            memory: EntryMemory::default(),
            is_told: AtomicBool::new(false),
        })
    }

    fn send(&self, now: u64) -> Sent {
        match self.state.look(|| Duration::from_secs(now)) {
            FarLook::Ended => return Sent::Closed,
            FarLook::Choked => return Sent::Full,
            FarLook::Open => {}
        }
        let place = Place::Actor { path: "/a", uid: 1, type_id: 2 };
        let envelope = Outgoing { kind: EnvelopeKind::Tell, place, tokens: &[], body: &[7] };
        match self.outbox.push(0, &envelope, &self.memory) {
            Ok(_) => Sent::Accepted,
            Err(_) => Sent::Closed,
        }
    }

    fn taken(&self) -> u64 {
        let frames = std::iter::from_fn(|| self.outbox.next(0));
        frames.map(|(_, frame)| Batch::read(&frame, 1, 100).unwrap().envelopes().count() as u64).sum()
    }
}

/// A sender sends twice while the actor ends, and then the link. A send after the notice of the end is refused, and each accepted
/// envelope is taken, or lost with the link. Three threads: bound 3.
#[test]
fn end_races_senders() {
    model("far_state_end_races_senders", &[1, 6], 3, 600, || {
        let world = World::new();
        let sender = thread::spawn({
            let world = world.clone();
            move || {
                let mut accepted = 0;
                for _ in 0..2 {
                    // Acquire: the sender gets the notice as a message.
                    let was_told = world.is_told.load(Ordering::Acquire);
                    let sent = world.send(0);
                    assert!(!was_told || sent == Sent::Closed, "accepted behind the end");
                    accepted += u64::from(sent == Sent::Accepted);
                }
                accepted
            }
        });
        let link = thread::spawn({
            let world = world.clone();
            move || world.taken() + world.outbox.close()
        });
        assert!(world.state.end());
        world.is_told.store(true, Ordering::Release);
        assert_eq!(world.send(0), Sent::Closed);
        let gone = link.join().unwrap();
        let accepted = sender.join().unwrap();
        assert_eq!(gone, accepted, "an envelope is lost or doubled");
        assert_eq!((world.taken(), world.outbox.counts().queued), (0, 0));
    });
}

/// The actor is choked, unchoked and choked again while it ends and a sender looks: the end stays, and a choke lapses by itself. Three
/// threads: bound 3.
#[test]
fn choke_races_end() {
    model("far_state_choke_races_end", &[6, 15], 3, 1500, || {
        let world = World::new();
        let choker = thread::spawn({
            let world = world.clone();
            move || {
                world.state.choke(Duration::from_secs(3));
                world.state.unchoke();
                world.state.choke(Duration::from_secs(5));
            }
        });
        let ender = thread::spawn({
            let world = world.clone();
            move || world.state.end()
        });
        // A choke lapses whatever the last message was.
        assert_ne!(world.send(5), Sent::Full, "a choke does not lapse");
        let is_first = world.state.end();
        assert_eq!(world.send(0), Sent::Closed);
        choker.join().unwrap();
        assert_eq!(world.send(0), Sent::Closed, "a choke or its end takes the end back");
        assert!(ender.join().unwrap() != is_first, "the end is told twice, or never");
    });
}

/// Two chokes meet, of which one is late: the longer one holds. Two threads: bound 3.
#[test]
fn late_choke() {
    model("far_state_late_choke", &[15], 3, 5, || {
        let world = World::new();
        let late = thread::spawn({
            let world = world.clone();
            move || world.state.choke(Duration::from_secs(3))
        });
        world.state.choke(Duration::from_secs(5));
        late.join().unwrap();
        assert_eq!((world.send(4), world.send(5)), (Sent::Full, Sent::Accepted));
    });
}
