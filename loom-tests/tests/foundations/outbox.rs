//! Models of the outbox of a peer: senders, the engine that takes batches, and the end of the link.
//!
//! Mutations that these were seen to catch: a push that swaps `armed` before the envelope is in the lane (an envelope that
//! the engine is not told of); `put_back` without a look at the end of the link (an envelope that is in no count); `grant`
//! without a wake (a batch that waits though there is credit).

use crate::support::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use pointsman::loom_hooks::batch::{Batch, EnvelopeKind, Place};
use pointsman::loom_hooks::outbox::{EntryMemory, Outbox, OutboxLimits, Outgoing, PushError, Wake};

/// An outbox, the memory of the place that all senders send to, and an engine that sleeps until it is told.
struct World {
    outbox: Outbox,
    memory: EntryMemory,
    /// How often the engine is to look. It orders nothing.
    calls: AtomicUsize,
}

impl World {
    fn new(lanes: u8) -> Arc<Self> {
        let limits = OutboxLimits { lane_bytes: 1000, large_bytes: 0, batch_bytes: 150 };
        Arc::new(Self {
            outbox: Outbox::new(1, 2, lanes, 10_000, limits),
            memory: EntryMemory::default(),
            calls: AtomicUsize::new(0),
        })
    }

    fn wake(&self, wake: Wake) {
        if wake == Wake::Engine {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the message was taken in. Two of these fill a batch.
    fn push(&self, lane: usize, number: u8) -> bool {
        let place = Place::Actor { path: "/a", uid: 1, type_id: 2 };
        let body = [number; 40];
        let envelope = Outgoing { kind: EnvelopeKind::Tell, place, tokens: &[], body: &body };
        let other = EntryMemory::default();
        let memory = if lane == 0 { &self.memory } else { &other };
        match self.outbox.push(lane, &envelope, memory) {
            Ok(wake) => {
                self.wake(wake);
                true
            }
            Err(error) => {
                assert_eq!(error, PushError::Closed);
                false
            }
        }
    }

    /// The numbers in a frame.
    fn numbers(frame: &[u8]) -> Vec<u8> {
        let batch = Batch::read(frame, 2, 100).expect("it was sealed here");
        batch.envelopes().map(|envelope| envelope.body[0]).collect()
    }

    /// A look of the engine, if it was told: what it has taken.
    fn look(&self) -> Vec<u8> {
        if self.calls.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        self.calls.fetch_sub(1, Ordering::Relaxed);
        self.outbox.begin_look();
        self.take_all()
    }

    fn take_all(&self) -> Vec<u8> {
        std::iter::from_fn(|| self.outbox.next(0)).flat_map(|(_, frame)| Self::numbers(&frame)).collect()
    }
}

/// Two senders push, the engine takes a batch, puts it back and takes on, and the link ends. Each envelope that was taken in is
/// taken out once, or is counted as lost. Three threads: bound 3.
#[test]
fn push_take_close() {
    model("outbox_push_take_close", &[1, 2], 3, 300, || {
        let world = World::new(1);
        let sender = thread::spawn({
            let world = world.clone();
            move || usize::from(world.push(0, 1)) + usize::from(world.push(0, 2))
        });
        let engine = thread::spawn({
            let world = world.clone();
            move || {
                let (mut taken, mut lost) = (Vec::new(), 0);
                if let Some((_, frame)) = world.outbox.next(0) {
                    lost = world.outbox.put_back(frame).err().unwrap_or(0);
                }
                taken.extend(world.take_all());
                (taken, lost)
            }
        });
        let own = usize::from(world.push(0, 10));
        let waiting = world.outbox.close();
        let pushed = own + sender.join().unwrap();
        let (taken, lost) = engine.join().unwrap();
        assert_eq!(taken.len() as u64 + lost + waiting, pushed as u64, "an envelope is lost or doubled");
        let of_sender: Vec<u8> = taken.iter().copied().filter(|number| *number < 10).collect();
        assert!(
            of_sender.is_sorted() && [&[][..], &[1], &[2], &[1, 2]].contains(&&of_sender[..]),
            "{taken:?}"
        );
        let counts = world.outbox.counts();
        assert_eq!((counts.queued, counts.shipped), (0, taken.len() as u64));
        assert!(world.take_all().is_empty() && !world.push(0, 11));
    });
}

/// Two senders push into two lanes while the engine looks when it is told. At the end nothing waits that the engine was not
/// told of. Three threads: bound 3.
#[test]
fn wake() {
    model("outbox_wake", &[1, 2], 3, 1_500, || {
        let world = World::new(2);
        let sender = |lane: usize, numbers: [u8; 2]| {
            let world = world.clone();
            thread::spawn(move || numbers.iter().for_each(|number| assert!(world.push(lane, *number))))
        };
        let (first, second) = (sender(0, [1, 2]), sender(1, [3, 4]));
        let mut taken = world.look();
        taken.extend(world.look());
        first.join().unwrap();
        second.join().unwrap();
        while world.calls.load(Ordering::Relaxed) > 0 {
            taken.extend(world.look());
        }
        assert_eq!(world.outbox.counts().queued, 0, "the engine was not told");
        taken.sort_unstable();
        assert_eq!(taken, [1, 2, 3, 4]);
    });
}

/// Credit and a mark come while a sender pushes and the engine looks. Three threads: bound 3.
#[test]
fn grant_races_push() {
    model("outbox_grant_races_push", &[1], 3, 150, || {
        let limits = OutboxLimits { lane_bytes: 1000, large_bytes: 0, batch_bytes: 150 };
        let world = Arc::new(World {
            outbox: Outbox::new(1, 2, 1, 0, limits),
            memory: EntryMemory::default(),
            calls: AtomicUsize::new(0),
        });
        let sender = thread::spawn({
            let world = world.clone();
            move || assert!(world.push(0, 1))
        });
        let peer = thread::spawn({
            let world = world.clone();
            move || {
                world.wake(world.outbox.grant(0, 10_000));
                world.wake(world.outbox.mark(1));
            }
        });
        let mut taken = world.look();
        sender.join().unwrap();
        peer.join().unwrap();
        while world.calls.load(Ordering::Relaxed) > 0 {
            taken.extend(world.look());
        }
        assert_eq!((taken, world.outbox.counts().queued), (vec![1], 0), "the engine was not told");
    });
}
