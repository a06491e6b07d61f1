//! A message to an actor of another node costs its sender no allocation in the steady state, though each batch goes to the engine.
#![cfg(feature = "remote")]

#[path = "counting/allocator.rs"]
mod allocator;

use pointsman::prelude::*;
use pointsman::remote::{
    Channel, Engine, EngineError, Fabric, Identity, InProcess, Inbound, Node, NotNow, PeerOutbox, Policy,
    Wire,
};
use pointsman::time::ManualClock;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

thread_local! {
    /// The allocations of this thread, while it counts.
    static COUNT: Cell<Option<u64>> = const { Cell::new(None) };
}

fn note() {
    // A thread that ends has no count any more.
    let _ = COUNT.try_with(|count| count.set(count.get().map(|count| count + 1)));
}

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

const SOON: Duration = Duration::from_secs(60);
const MESSAGES: u64 = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
/// The messages under way at most: some fill batches, and wake the engine in between.
const WINDOW: u64 = 2_000;

#[derive(Serialize, Deserialize)]
struct Note {
    /// Bytes, so that all notes are of one length.
    number: [u8; 8],
    words: [[u8; 8]; 6],
}

impl Wire for Note {
    const NAME: &'static str = "test.Note";
}

struct Counter(Arc<AtomicU64>);

impl Actor for Counter {
    type Message = Note;
    fn receive(&mut self, note: Note, _: &mut Context<Note>) -> HandlerResult {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        assert_eq!((note.number, note.words[5]), (number.to_le_bytes(), [7; 8]), "in the order sent");
        Ok(())
    }
}

/// The outboxes that wait, and their engines; `None` while batches are taken.
type Waiting = Arc<Mutex<Option<Vec<(Arc<dyn Fabric>, PeerOutbox)>>>>;

/// An engine that can be told to take no batches for a while.
#[derive(Clone)]
struct Held {
    engine: InProcess,
    waiting: Waiting,
}

struct HeldFabric {
    fabric: Arc<dyn Fabric>,
    waiting: Waiting,
}

impl Engine for Held {
    fn start(
        self: Box<Self>,
        node: &Identity,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Arc<dyn Fabric>, EngineError> {
        let Held { engine, waiting } = *self;
        let fabric = Box::new(engine).start(node, inbound)?;
        Ok(Arc::new(HeldFabric { fabric, waiting }))
    }
}

impl Fabric for HeldFabric {
    fn publish(&self, to: Channel<'_>, frame: Vec<u8>) -> Result<(), NotNow> {
        self.fabric.publish(to, frame)
    }
    fn wants_out(&self, outbox: &PeerOutbox) {
        match &mut *self.waiting.lock().unwrap() {
            Some(waiting) => waiting.push((self.fabric.clone(), outbox.clone())),
            None => self.fabric.wants_out(outbox),
        }
    }
    fn set_uid(&self, uid: u64) {
        self.fabric.set_uid(uid);
    }
    fn stop(&self, by: Duration) {
        self.fabric.stop(by);
    }
}

/// Sends so many messages, and waits until they are handled. At most `window` are under way; `when_full` is called when so many are
/// for the first time.
fn send(far: &ActorRef<Note>, handled: &AtomicU64, count: u64, window: u64, when_full: impl FnOnce()) {
    let first = handled.load(Ordering::Relaxed);
    let mut when_full = Some(when_full);
    for number in first..first + count {
        if number == first + window {
            when_full.take().expect("once")();
        }
        while number - handled.load(Ordering::Relaxed) >= window {
            thread::yield_now();
        }
        far.try_tell(Note { number: number.to_le_bytes(), words: [[7; 8]; 6] }).expect("there is room");
    }
    while handled.load(Ordering::Relaxed) < first + count {
        thread::yield_now();
    }
}

#[test]
fn a_message_to_another_node_costs_its_sender_no_allocation() {
    let waiting = Waiting::default();
    let engine = Held { engine: InProcess::new(), waiting: waiting.clone() };
    let start = |name: &str| {
        let node = Node::new(name).engine(engine.clone()).message::<Note>().policy(Policy::open());
        // No second passes: memory that was not needed for one is freed.
        System::builder("demo").clock(ManualClock::new()).node(node).build().expect("a sound node")
    };
    let (n1, n2) = (start("n1"), start("n2"));
    let handled = Arc::new(AtomicU64::new(0));
    let count = handled.clone();
    n2.actor("counter").spawn(move || Counter(count.clone())).expect("the name is free");
    let far = n1.resolve::<Note>("pointsman://demo@n2/user/counter", SOON).wait().expect("it is there");
    // The first batches take the memory that all later ones use: the engine takes none before more wait than ever later.
    for _ in 0..3 {
        *waiting.lock().unwrap() = Some(Vec::new());
        send(&far, &handled, 3 * WINDOW, 2 * WINDOW, || {
            let held = waiting.lock().unwrap().take().expect("they wait");
            held.iter().for_each(|(fabric, outbox)| fabric.wants_out(outbox));
        });
    }
    COUNT.set(Some(0));
    send(&far, &handled, MESSAGES, WINDOW, || {});
    let allocations = COUNT.replace(None).expect("it counts");
    assert_eq!(allocations, 0, "in {MESSAGES} messages");
    COUNT.set(Some(0));
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(COUNT.replace(None), Some(1), "the allocator counts");
    for node in [n1, n2] {
        assert_eq!(node.shutdown(SOON).expect("it ends").balance(), 0);
    }
}
