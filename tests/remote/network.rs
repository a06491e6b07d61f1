//! Nodes of one process on one network, by a clock that tests move.

use pointsman::prelude::*;
use pointsman::remote::{
    ChannelKind, Engine, EngineError, Fabric, Identity, InProcess, Inbound, Node, NodeEvent, Remote,
};
use pointsman::time::ManualClock;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than anything here takes; reached only by a test that fails.
pub const LONG: Duration = Duration::from_secs(30);

/// A network whose nodes can be cut off: then they hear nothing.
#[derive(Clone)]
pub struct Network {
    in_process: InProcess,
    pub clock: ManualClock,
}

/// A system with a node, and what its node has told.
pub struct TestNode {
    system: System,
    events: Mutex<Receiver<NodeEvent>>,
    is_cut: Arc<AtomicBool>,
}

impl Network {
    pub fn new() -> Self {
        Self { in_process: InProcess::new(), clock: ManualClock::new() }
    }

    /// Starts a node of the system `demo`.
    pub fn node(&self, name: &str) -> TestNode {
        self.node_with(name, |node| node)
    }

    pub fn node_with(&self, name: &str, change: impl FnOnce(Node) -> Node) -> TestNode {
        self.node_of("demo", name, change)
    }

    pub fn node_of(&self, system: &str, name: &str, change: impl FnOnce(Node) -> Node) -> TestNode {
        self.node_by(System::builder(system), name, change)
    }

    /// Starts a node of a system that is described further.
    pub fn node_by(
        &self,
        builder: pointsman::SystemBuilder,
        name: &str,
        change: impl FnOnce(Node) -> Node,
    ) -> TestNode {
        let is_cut = Arc::new(AtomicBool::new(false));
        let engine = CutOff { engine: self.in_process.clone(), is_cut: is_cut.clone() };
        let node = change(Node::new(name).engine(engine));
        let system = builder.clock(self.clock.clone()).node(node).build().expect("a sound node");
        let (sender, events) = channel();
        let sender = Mutex::new(sender);
        let subscription = system.events().on(move |event: &NodeEvent| {
            let _ = sender.lock().unwrap().send(event.clone());
        });
        // As long as the system.
        std::mem::forget(subscription);
        TestNode { system, events: Mutex::new(events), is_cut }
    }

    /// Lets so many seconds pass, one after the other. Between two of them each node handles what has come.
    pub fn seconds(&self, count: u64) {
        for _ in 0..count {
            self.clock.advance(Duration::from_secs(1));
            self.settle();
        }
    }

    /// Waits until no frame is under way.
    pub fn settle(&self) {
        self.in_process.settle();
    }
}

impl TestNode {
    /// The node's handle.
    pub fn remote(&self) -> Remote {
        self.system.remote().expect("it is a node")
    }

    /// Hears nothing from now on, or hears again.
    pub fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// The next event that is not about the engine.
    pub fn event(&self) -> NodeEvent {
        loop {
            let event = self.events.lock().unwrap().recv_timeout(LONG).expect("an event comes");
            if !matches!(event, NodeEvent::EngineUp) {
                return event;
            }
        }
    }

    pub fn no_event(&self) {
        let left: Vec<NodeEvent> = self.events.lock().unwrap().try_iter().collect();
        assert!(left.iter().all(|event| *event == NodeEvent::EngineUp), "{left:?}");
    }

    pub fn end(self) -> pointsman::Ledger {
        self.system.shutdown(LONG).expect("it ends")
    }
}

impl Deref for TestNode {
    type Target = System;
    fn deref(&self) -> &System {
        &self.system
    }
}

/// Two nodes that are linked.
pub fn linked(network: &Network) -> (TestNode, TestNode) {
    let (n1, n2) = (network.node("n1"), network.node("n2"));
    link(&n1, &n2);
    (n1, n2)
}

/// Links two nodes.
pub fn link(n1: &TestNode, n2: &TestNode) {
    n1.remote().connect(n2.remote().node());
    for (node, other) in [(n1, n2), (n2, n1)] {
        let (name, uid) = (other.remote().node().to_owned(), other.remote().uid());
        assert_eq!(node.event(), NodeEvent::Up { node: name, uid });
    }
}

/// An engine whose node hears nothing while it is cut off.
struct CutOff {
    engine: InProcess,
    is_cut: Arc<AtomicBool>,
}

struct Ears {
    inbound: Arc<dyn Inbound>,
    is_cut: Arc<AtomicBool>,
}

impl Engine for CutOff {
    fn start(
        self: Box<Self>,
        node: &Identity,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Arc<dyn Fabric>, EngineError> {
        Box::new(self.engine).start(node, Arc::new(Ears { inbound, is_cut: self.is_cut }))
    }
}

impl Inbound for Ears {
    fn up(&self, max_frame: usize) {
        self.inbound.up(max_frame);
    }
    fn down(&self, why: &str) {
        self.inbound.down(why);
    }
    fn frame(&self, from: &str, kind: ChannelKind, frame: Vec<u8>) {
        if !self.is_cut.load(Ordering::Relaxed) {
            self.inbound.frame(from, kind, frame);
        }
    }
    fn no_listener(&self, node: &str, uid: u64) {
        self.inbound.no_listener(node, uid);
    }
}

/// Waits for what no event tells.
#[track_caller]
pub fn wait_until(mut seen: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !seen() {
        assert!(began.elapsed() < LONG, "it never comes");
        std::thread::yield_now();
    }
}

/// The text of a panic.
#[track_caller]
pub fn panic_of(run: impl FnOnce()) -> String {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    let payload = caught.expect_err("it panics");
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast::<&str>().expect("a text").to_string(),
    }
}
