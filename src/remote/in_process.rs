//! The engine for several systems in one process: no server, no socket.

use crate::remote::engine::{Channel, ChannelKind, Engine, EngineError, Fabric, Identity, Inbound, NotNow};
use crate::remote::peer_outbox::PeerOutbox;
use crate::scheduler::affinity::unpinned;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, lock, thread};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most frames beside batches that wait at a node.
const FRAMES_MAX: usize = 10_000;

/// The largest frame.
const FRAME_BYTES_MAX: usize = 1 << 20;

/// Carries frames between the systems of one process. A clone is a handle to the same network: give one to each node.
///
/// Each node has a thread that hands its frames to the other nodes, in the order in which they were sent. Nothing is
/// lost, unless the other node is not there. So programs and tests with several systems need no server.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::remote::{InProcess, Node};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let network = InProcess::new();
/// let n1 = System::builder("shop").node(Node::new("n1").engine(network.clone())).build()?;
/// let n2 = System::builder("shop").node(Node::new("n2").engine(network)).build()?;
/// assert_eq!(n1.remote().map(|remote| remote.node().to_owned()), Some("n1".to_owned()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct InProcess {
    network: Arc<Network>,
}

#[derive(Default)]
struct Network {
    stations: Mutex<Vec<Arc<Station>>>,
    /// The frames and outboxes that are not handed over.
    under_way: Mutex<u64>,
    arrived: Condvar,
}

/// A node on the network.
struct Station {
    node: String,
    cluster: String,
    uid: AtomicU64,
    inbound: Arc<dyn Inbound>,
    outgoing: Mutex<Outgoing>,
    changed: Condvar,
}

/// The frames that a node has to send.
#[derive(Default)]
struct Outgoing {
    frames: VecDeque<(Target, Vec<u8>)>,
    /// Outboxes that have batches, each once.
    outboxes: VecDeque<PeerOutbox>,
    /// The time until which the rest is sent, once the node has ended.
    ends_by: Option<Instant>,
}

enum Target {
    Node(String),
    All(ChannelKind),
    Probe { node: String, uid: u64 },
}

/// The engine of one node, which was started.
struct Port {
    network: Arc<Network>,
    station: Arc<Station>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

impl InProcess {
    /// Makes a network without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until no frame is under way: for tests, before they look or move a clock.
    ///
    /// Messages that have come to a node may still wait for their actors. A message that waits for the room that the other
    /// node has to announce is not under way.
    pub fn settle(&self) {
        let mut under_way = lock(&self.network.under_way);
        while *under_way > 0 {
            under_way = self.network.arrived.wait(under_way).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

impl Engine for InProcess {
    fn start(
        self: Box<Self>,
        node: &Identity,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Arc<dyn Fabric>, EngineError> {
        let station = Arc::new(Station {
            node: node.node.clone(),
            cluster: node.cluster.clone(),
            uid: AtomicU64::new(node.uid),
            inbound,
            outgoing: Mutex::default(),
            changed: Condvar::new(),
        });
        let (network, served) = (self.network, station.clone());
        lock(&network.stations).push(station.clone());
        let through = network.clone();
        let serve = move || served.serve(&through);
        let name = format!("{}-in-process", node.node);
        match thread::Builder::new().name(name).spawn(unpinned(serve)) {
            Ok(thread) => Ok(Arc::new(Port { network, station, thread: Mutex::new(Some(thread)) })),
            Err(error) => {
                network.leave(&station);
                Err(EngineError::new(error))
            }
        }
    }
}

impl Network {
    /// The nodes of a cluster for which `is_meant` holds.
    fn stations(&self, cluster: &str, is_meant: impl Fn(&Station) -> bool) -> Vec<Arc<Station>> {
        let all = lock(&self.stations);
        all.iter().filter(|other| other.cluster == cluster && is_meant(other)).cloned().collect()
    }

    fn sets_out(&self) {
        *lock(&self.under_way) += 1;
    }

    fn arrives(&self, count: u64) {
        let mut under_way = lock(&self.under_way);
        *under_way -= count;
        if *under_way == 0 {
            self.arrived.notify_all();
        }
    }

    fn leave(&self, station: &Arc<Station>) {
        lock(&self.stations).retain(|other| !Arc::ptr_eq(other, station));
    }
}

/// The next thing that a node sends.
enum Next {
    Frame(Target, Vec<u8>),
    Outbox(PeerOutbox),
    End,
}

impl Station {
    /// Sends what the node has to send, until it ends.
    fn serve(&self, network: &Network) {
        self.inbound.up(FRAME_BYTES_MAX);
        loop {
            match self.next() {
                Next::Frame(target, frame) => {
                    self.send(network, target, frame);
                    network.arrives(1);
                }
                Next::Outbox(outbox) => match outbox.next(FRAME_BYTES_MAX) {
                    // One batch at a time, so that control and other peers have their turn.
                    Some(batch) => {
                        // A copy: the memory goes back to the senders, which need not allocate then.
                        self.hand_over(network, outbox.peer(), ChannelKind::Batch, batch.clone());
                        outbox.reuse(batch);
                        lock(&self.outgoing).outboxes.push_back(outbox);
                    }
                    None => network.arrives(1),
                },
                Next::End => {
                    let left = {
                        let mut outgoing = lock(&self.outgoing);
                        let Outgoing { frames, outboxes, .. } = std::mem::take(&mut *outgoing);
                        outgoing.ends_by = Some(Instant::now());
                        frames.len() + outboxes.len()
                    };
                    return network.arrives(left as u64);
                }
            }
        }
    }

    fn next(&self) -> Next {
        let mut outgoing = lock(&self.outgoing);
        loop {
            let is_over = outgoing.ends_by.is_some_and(|by| Instant::now() >= by);
            if is_over {
                return Next::End;
            }
            if let Some((target, frame)) = outgoing.frames.pop_front() {
                return Next::Frame(target, frame);
            }
            if let Some(outbox) = outgoing.outboxes.pop_front() {
                return Next::Outbox(outbox);
            }
            if outgoing.ends_by.is_some() {
                return Next::End;
            }
            outgoing = self.changed.wait(outgoing).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn send(&self, network: &Network, target: Target, frame: Vec<u8>) {
        match target {
            Target::Node(node) => self.hand_over(network, &node, ChannelKind::Control, frame),
            Target::All(kind) => {
                for other in network.stations(&self.cluster, |other| other.node != self.node) {
                    other.inbound.frame(&self.node, kind, frame.clone());
                }
            }
            Target::Probe { node, uid } => {
                // Ordering: Relaxed; a probe is a hint.
                let is_it = |other: &Station| other.node == node && other.uid.load(Ordering::Relaxed) == uid;
                if network.stations(&self.cluster, is_it).is_empty() {
                    self.inbound.no_listener(&node, uid);
                }
            }
        }
    }

    /// Gives a frame to the node of this name. Without such a node it is lost.
    fn hand_over(&self, network: &Network, node: &str, kind: ChannelKind, frame: Vec<u8>) {
        let mut targets = network.stations(&self.cluster, |other| other.node == node);
        let last = targets.pop();
        for other in targets {
            other.inbound.frame(&self.node, kind, frame.clone());
        }
        if let Some(last) = last {
            last.inbound.frame(&self.node, kind, frame);
        }
    }
}

impl Fabric for Port {
    fn publish(&self, to: Channel<'_>, frame: Vec<u8>) -> Result<(), NotNow> {
        let target = match to {
            Channel::Control(node) => Target::Node(node.to_owned()),
            Channel::Heartbeat => Target::All(ChannelKind::Heartbeat),
            Channel::Registry => Target::All(ChannelKind::Registry),
            Channel::Probe { node, uid } => Target::Probe { node: node.to_owned(), uid },
        };
        let mut outgoing = lock(&self.station.outgoing);
        if outgoing.ends_by.is_some() || outgoing.frames.len() >= FRAMES_MAX {
            return Err(NotNow);
        }
        self.network.sets_out();
        outgoing.frames.push_back((target, frame));
        drop(outgoing);
        self.station.changed.notify_one();
        Ok(())
    }

    fn wants_out(&self, outbox: &PeerOutbox) {
        let mut outgoing = lock(&self.station.outgoing);
        if outgoing.ends_by.is_none_or(|by| Instant::now() < by) && !outgoing.outboxes.contains(outbox) {
            self.network.sets_out();
            outgoing.outboxes.push_back(outbox.clone());
        }
        drop(outgoing);
        self.station.changed.notify_one();
    }

    fn set_uid(&self, uid: u64) {
        // Ordering: Relaxed; see `send`.
        self.station.uid.store(uid, Ordering::Relaxed);
    }

    fn stop(&self, by: Duration) {
        lock(&self.station.outgoing).ends_by.get_or_insert(Instant::now() + by);
        self.station.changed.notify_one();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            // Subscribers of events run there; one that ends its own system is not waited for.
            let _ = thread.join();
        }
        self.network.leave(&self.station);
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stations = lock(&self.network.stations);
        let nodes: Vec<&str> = stations.iter().map(|station| station.node.as_str()).collect();
        f.debug_struct("InProcess").field("nodes", &nodes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    const LONG: Duration = Duration::from_secs(30);

    /// Tells a test of each call.
    struct Told(Mutex<Sender<String>>);

    impl Told {
        fn tell(&self, text: String) {
            let _ = lock(&self.0).send(text);
        }
    }

    impl Inbound for Told {
        fn up(&self, max_frame: usize) {
            self.tell(format!("up {max_frame}"));
        }
        fn down(&self, why: &str) {
            self.tell(format!("down {why}"));
        }
        fn frame(&self, from: &str, kind: ChannelKind, frame: Vec<u8>) {
            self.tell(format!("{kind:?} of {from}: {}", String::from_utf8_lossy(&frame)));
        }
        fn no_listener(&self, node: &str, uid: u64) {
            self.tell(format!("none {node} {uid}"));
        }
    }

    fn start(
        network: &InProcess,
        node: &str,
        cluster: &str,
        uid: u64,
    ) -> (Arc<dyn Fabric>, Receiver<String>) {
        let (sender, told) = channel();
        let identity = Identity { node: node.to_owned(), cluster: cluster.to_owned(), uid };
        let fabric = Box::new(network.clone()).start(&identity, Arc::new(Told(Mutex::new(sender)))).unwrap();
        assert_eq!(told.recv_timeout(LONG).unwrap(), "up 1048576");
        (fabric, told)
    }

    #[test]
    fn frames_reach_the_named_node_of_the_cluster_and_heartbeats_all_others() {
        let network = InProcess::new();
        let (one, of_one) = start(&network, "n1", "shop", 1);
        let (two, of_two) = start(&network, "n2", "shop", 2);
        let (three, of_three) = start(&network, "n2", "other", 3);
        one.publish(Channel::Control("n2"), b"a".to_vec()).unwrap();
        one.publish(Channel::Control("n9"), b"lost".to_vec()).unwrap();
        one.publish(Channel::Heartbeat, b"b".to_vec()).unwrap();
        one.publish(Channel::Registry, b"c".to_vec()).unwrap();
        for uid in [7, 2, 8] {
            one.publish(Channel::Probe { node: "n2", uid }, Vec::new()).unwrap();
        }
        for expected in ["Control of n1: a", "Heartbeat of n1: b", "Registry of n1: c"] {
            assert_eq!(of_two.recv_timeout(LONG).unwrap(), expected);
        }
        assert_eq!(of_one.recv_timeout(LONG).unwrap(), "none n2 7");
        assert_eq!(of_one.recv_timeout(LONG).unwrap(), "none n2 8");
        two.set_uid(7);
        one.publish(Channel::Probe { node: "n2", uid: 2 }, Vec::new()).unwrap();
        assert_eq!(of_one.recv_timeout(LONG).unwrap(), "none n2 2");
        network.settle();
        for fabric in [one, two, three] {
            fabric.stop(LONG);
            assert_eq!(fabric.publish(Channel::Heartbeat, Vec::new()), Err(NotNow));
        }
        assert_eq!(
            (of_one.try_recv().ok(), of_two.try_recv().ok(), of_three.try_recv().ok()),
            (None, None, None)
        );
    }

    #[test]
    #[cfg(feature = "testkit")]
    fn batches_are_taken_in_order_and_the_last_ones_before_the_end() {
        let network = InProcess::new();
        let (one, _of_one) = start(&network, "n1", "shop", 1);
        let (_two, of_two) = start(&network, "n2", "shop", 2);
        let bodies: Vec<Vec<u8>> = (0..100).map(|number| format!("body {number}").into_bytes()).collect();
        let slices: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        let outbox = PeerOutbox::for_test("n2", &slices);
        one.wants_out(&outbox);
        one.stop(LONG);
        let told: Vec<String> = of_two.try_iter().collect();
        assert_eq!(told.len(), 100);
        for (number, told) in told.iter().enumerate() {
            assert!(
                told.starts_with("Batch of n1: PM") && told.ends_with(&format!("body {number}")),
                "{told}"
            );
        }
        assert_eq!(outbox.next(1000), None);
    }
}
