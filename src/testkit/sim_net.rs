//! A network between nodes within one thread, with virtual time and seeded faults.

use crate::remote::engine::{Channel, ChannelKind, Engine, EngineError, Fabric, Identity, Inbound, NotNow};
use crate::remote::frame::Prefix;
use crate::remote::peer_outbox::PeerOutbox;
use crate::sync::{Mutex, lock};
use crate::testkit::system::TestSystem;
use crate::time::clock::Clock;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// The bytes of a frame that the network carries, unless a test says otherwise.
const MAX_FRAME: usize = 1 << 20;

/// More deliveries than this at one moment are a livelock.
const DELIVERIES_MAX: u64 = 1_000_000;

/// A network between the nodes of a test, within its thread and with virtual time. Clones are handles to the same network.
///
/// Each node gets an [engine](Self::engine) of the network. Frames go out and arrive while the test [advances](Self::advance)
/// the network together with the systems of the nodes: from one event to the next, with turns run until idle at each. By
/// default each frame takes a millisecond. [`LinkFaults`] say, for each direction between two nodes, how long frames take, and
/// how many are lost, come again, or come out of order. Cuts, held frames, crashes and the like are calls of the test.
/// All random choices derive from the seed: two runs of one seed take the same course.
///
/// The network keeps the promises of an [`Engine`], but for the faults that a test asks for: repetition and overtaking
/// are what a change of servers may bring.
///
/// ```
/// use pointsman::remote::{Channel, ChannelKind, Inbound};
/// use pointsman::testkit::SimNet;
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// #[derive(Default)]
/// struct Heard(Mutex<Vec<String>>);
/// impl Inbound for Heard {
///     fn up(&self, _: usize) {}
///     fn down(&self, _: &str) {}
///     fn frame(&self, from: &str, _: ChannelKind, frame: Vec<u8>) {
///         self.0.lock().unwrap().push(format!("{from}: {}", String::from_utf8_lossy(&frame)));
///     }
///     fn no_listener(&self, _: &str, _: u64) {}
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let net = SimNet::new(7);
/// let (n1, n2) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
/// let fabric = net.start("n1", 1, n1.clone());
/// net.start("n2", 2, n2.clone());
/// fabric.publish(Channel::Control("n2"), b"hello".to_vec())?;
/// net.cut("n2", "n1"); // the other way is free
/// net.advance(Duration::from_millis(1), []);
/// assert_eq!(*n2.0.lock().unwrap(), ["n1: hello"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SimNet(Arc<Mutex<Net>>);

/// The faults of one direction between two nodes.
///
/// Chances are given as so many in a thousand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "faults have no effect before a link has them"]
pub struct LinkFaults {
    delay: RangeInclusive<Duration>,
    loss: u32,
    repetition: u32,
    overtaking: u32,
    reorders_lanes: bool,
}

impl Default for LinkFaults {
    fn default() -> Self {
        Self::new()
    }
}

impl LinkFaults {
    /// No faults, and a delay of a millisecond.
    pub fn new() -> Self {
        let delay = Duration::from_millis(1);
        Self { delay: delay..=delay, loss: 0, repetition: 0, overtaking: 0, reorders_lanes: false }
    }

    /// Sets how long frames take: each a length of its own from this range. The frames of one channel stay in order.
    pub fn delay(mut self, range: RangeInclusive<Duration>) -> Self {
        self.delay = range;
        self
    }

    /// Sets how many frames in a thousand are lost.
    pub fn loss(mut self, in_1000: u32) -> Self {
        self.loss = in_1000;
        self
    }

    /// Sets how many frames in a thousand come a second time, later.
    pub fn repetition(mut self, in_1000: u32) -> Self {
        self.repetition = in_1000;
        self
    }

    /// Sets how many frames in a thousand may be overtaken by later ones of their channel.
    pub fn overtaking(mut self, in_1000: u32) -> Self {
        self.overtaking = in_1000;
        self
    }

    /// Lets batches of different lanes overtake each other.
    pub fn reorder_lanes(mut self) -> Self {
        self.reorders_lanes = true;
        self
    }
}

/// The engine of a node, whose frames a [`SimNet`] carries.
#[derive(Debug, Clone)]
pub struct SimEngine(SimNet);

impl Engine for SimEngine {
    fn start(
        self: Box<Self>,
        node: &Identity,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Arc<dyn Fabric>, EngineError> {
        Ok(self.0.join(&node.cluster, &node.node, node.uid, inbound))
    }
}

/// A direction between two nodes.
type Link = (String, String);

struct Net {
    now: Duration,
    random: SmallRng,
    max_frame: usize,
    ends: Vec<End>,
    faults: BTreeMap<Link, LinkFaults>,
    default_faults: LinkFaults,
    cut: BTreeSet<Link>,
    /// The links that hold their frames, with those.
    held: BTreeMap<Link, Vec<Parcel>>,
    /// The nodes whose batches are not taken.
    stalled: BTreeSet<String>,
    frozen: BTreeMap<String, Frozen>,
    /// The time that the clocks of nodes which go on have to make up for.
    late: BTreeMap<String, Duration>,
    /// By time, and those of one time in the order of their numbers.
    events: BTreeMap<(Duration, u64), Event>,
    next_event: u64,
    /// The last arrival of each stream.
    last: BTreeMap<Stream, Duration>,
}

/// The engine of one start of a node.
struct End {
    cluster: String,
    node: String,
    uid: u64,
    inbound: Option<Arc<dyn Inbound>>,
    is_connected: bool,
    /// The outboxes that have something.
    wanting: VecDeque<PeerOutbox>,
}

/// A node that does nothing, and to which frames come when it goes on.
#[derive(Default)]
struct Frozen {
    frames: Vec<Event>,
    /// The time that its clock has to make up for.
    missed: Duration,
}

/// The frames that stay in their order: those of a channel, or of a lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Stream {
    /// The number of the sending end.
    from: usize,
    to: String,
    channel: u8,
    lane: u8,
}

/// A frame under way.
#[derive(Clone)]
struct Parcel {
    /// The number of the sending end, and the name of its node.
    end: usize,
    from: String,
    to: String,
    kind: ChannelKind,
    frame: Vec<u8>,
}

#[derive(Clone)]
enum Event {
    Frame(Parcel),
    Up { end: usize },
    Down { end: usize },
    NoListener { end: usize, node: String, uid: u64 },
}

/// A call that is due.
struct Call {
    inbound: Arc<dyn Inbound>,
    event: Event,
}

impl SimNet {
    /// A network without nodes, at time 0.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Net {
            now: Duration::ZERO,
            random: SmallRng::seed_from_u64(seed),
            max_frame: MAX_FRAME,
            ends: Vec::new(),
            faults: BTreeMap::new(),
            default_faults: LinkFaults::new(),
            cut: BTreeSet::new(),
            held: BTreeMap::new(),
            stalled: BTreeSet::new(),
            frozen: BTreeMap::new(),
            late: BTreeMap::new(),
            events: BTreeMap::new(),
            next_event: 0,
            last: BTreeMap::new(),
        })))
    }

    /// An engine for a node. Each start of a node needs one.
    pub fn engine(&self) -> SimEngine {
        SimEngine(self.clone())
    }

    /// Connects a node without a system, as [`Engine::start`] does. `inbound` is called with all that is sent to it.
    pub fn start(&self, node: &str, uid: u64, inbound: Arc<dyn Inbound>) -> Arc<dyn Fabric> {
        self.join("", node, uid, inbound)
    }

    fn join(&self, cluster: &str, node: &str, uid: u64, inbound: Arc<dyn Inbound>) -> Arc<dyn Fabric> {
        let mut net = self.lock();
        let end = net.ends.len();
        net.ends.push(End {
            cluster: cluster.to_owned(),
            node: node.to_owned(),
            uid,
            inbound: Some(inbound),
            is_connected: true,
            wanting: VecDeque::new(),
        });
        let now = net.now;
        net.push(now, Event::Up { end });
        Arc::new(SimFabric { net: self.clone(), end })
    }

    fn lock(&self) -> crate::sync::MutexGuard<'_, Net> {
        lock(&self.0)
    }

    /// Returns the time since the network was made.
    pub fn now(&self) -> Duration {
        self.lock().now
    }

    /// Sets the most bytes of a frame, for nodes that connect later; by default 1 MiB.
    pub fn max_frame(&self, bytes: usize) {
        self.lock().max_frame = bytes;
    }

    /// Sets the faults of all directions that have none of their own.
    pub fn faults(&self, faults: LinkFaults) {
        self.lock().default_faults = faults;
    }

    /// Sets the faults of the frames from one node to another.
    pub fn link_faults(&self, from: &str, to: &str, faults: LinkFaults) {
        self.lock().faults.insert(link(from, to), faults);
    }

    /// Loses all frames from one node to another from now on, also those under way. The other direction is another cut.
    pub fn cut(&self, from: &str, to: &str) {
        self.lock().cut.insert(link(from, to));
    }

    /// Ends a cut.
    pub fn heal(&self, from: &str, to: &str) {
        self.lock().cut.remove(&link(from, to));
    }

    /// Keeps the frames from one node to another back, as a route does that was lost and comes back later.
    pub fn hold(&self, from: &str, to: &str) {
        self.lock().held.entry(link(from, to)).or_default();
    }

    /// Sends the frames on that were kept back, in their order.
    pub fn release(&self, from: &str, to: &str) {
        let mut net = self.lock();
        let now = net.now;
        for parcel in net.held.remove(&link(from, to)).unwrap_or_default() {
            net.push(now, Event::Frame(parcel));
        }
    }

    /// Takes no more batches of this node, as a socket that is full. Control and heartbeats go on.
    pub fn stall(&self, node: &str) {
        self.lock().stalled.insert(node.to_owned());
    }

    /// Takes the batches of this node again.
    pub fn unstall(&self, node: &str) {
        self.lock().stalled.remove(node);
    }

    /// Ends the connection of this node, which is told; each frame that it has sent and that has not arrived is lost with a
    /// chance of a half, as when the server is lost that has it.
    pub fn disconnect(&self, node: &str) {
        let mut net = self.lock();
        let Net { events, random, .. } = &mut *net;
        events.retain(|_, event| match event {
            Event::Frame(parcel) => parcel.from != node || random.random_bool(0.5),
            _ => true,
        });
        let now = net.now;
        for end in net.ends_of(node) {
            if std::mem::take(&mut net.ends[end].is_connected) {
                net.push(now, Event::Down { end });
            }
        }
    }

    /// Connects this node again, which is told.
    pub fn reconnect(&self, node: &str) {
        let mut net = self.lock();
        let now = net.now;
        for end in net.ends_of(node) {
            if !std::mem::replace(&mut net.ends[end].is_connected, true) {
                net.push(now, Event::Up { end });
            }
        }
    }

    /// Ends all starts of this node as a killed process ends: it sends nothing more, and frames to it are lost. Its frames that
    /// are under way still arrive. Its system is dropped, or finished, without any effect on other nodes.
    pub fn crash(&self, node: &str) {
        let mut net = self.lock();
        net.frozen.remove(node);
        let ends: Vec<Arc<dyn Inbound>> =
            net.ends_of(node).into_iter().filter_map(|end| net.leave(end)).collect();
        drop(net);
        drop(ends);
    }

    /// Stops this node, as a stopped process: its system gets no turns, and its clock stands. Frames wait for it.
    pub fn freeze(&self, node: &str) {
        self.lock().frozen.entry(node.to_owned()).or_default();
    }

    /// Lets this node go on: its clock makes up for the time at the next [`advance`](Self::advance), and then frames
    /// come to it.
    pub fn thaw(&self, node: &str) {
        let mut net = self.lock();
        let now = net.now;
        let Some(Frozen { frames, missed }) = net.frozen.remove(node) else { return };
        frames.into_iter().for_each(|event| net.push(now, event));
        if !missed.is_zero() {
            *net.late.entry(node.to_owned()).or_default() += missed;
        }
    }

    /// Moves the time of the network and the clocks of the systems by this length, from one event to the next: at each, frames
    /// arrive, timers fire, and turns are run until no actor has anything to do. A system is given with the name of its
    /// node, and not if it has crashed.
    ///
    /// # Panics
    ///
    /// On a [`WaitError::Livelock`](crate::testkit::WaitError::Livelock), also one of frames that are answered at once.
    #[track_caller]
    pub fn advance<'s>(&self, by: Duration, systems: impl IntoIterator<Item = (&'s str, &'s TestSystem)>) {
        let systems: Vec<_> = systems.into_iter().collect();
        let end = self.now().saturating_add(by);
        for (node, system) in &systems {
            let missed = self.lock().late.remove(*node);
            if let Some(missed) = missed {
                system.clock().advance(missed);
            }
        }
        let mut at_once = 0;
        loop {
            at_once += self.settle(&systems);
            let now = self.now();
            let Some(next) = self.next_moment(&systems).filter(|next| *next <= end) else { break };
            at_once = if next > now { 0 } else { at_once + 1 };
            assert!(at_once < DELIVERIES_MAX, "livelock: {at_once} events at {now:?}");
            self.move_clocks(next.saturating_sub(now), &systems);
        }
        self.move_clocks(end.saturating_sub(self.now()), &systems);
        self.settle(&systems);
    }

    /// Runs turns and delivers frames until there is nothing to do now. Returns the number of frames.
    fn settle(&self, systems: &[(&str, &TestSystem)]) -> u64 {
        let mut delivered = 0;
        loop {
            let mut is_busy = false;
            let count = systems.len().max(1);
            let first = self.lock().random.random_range(0..count);
            for index in 0..systems.len() {
                let (node, system) = systems[(first + index) % count];
                if !self.is_frozen(node) {
                    is_busy |= system.run_until_idle() > 0;
                }
            }
            let due = self.deliver();
            delivered += due;
            assert!(delivered < DELIVERIES_MAX, "livelock: {delivered} frames at {:?}", self.now());
            if !is_busy && due == 0 {
                return delivered;
            }
        }
    }

    fn is_frozen(&self, node: &str) -> bool {
        self.lock().frozen.contains_key(node)
    }

    /// The time of the next frame or timer.
    fn next_moment(&self, systems: &[(&str, &TestSystem)]) -> Option<Duration> {
        let net = self.lock();
        let frame = net.events.keys().next().map(|(time, _)| *time);
        let timers = systems.iter().filter(|(node, _)| !net.frozen.contains_key(*node));
        let timers = timers.filter_map(|(_, system)| {
            let deadline = system.core().timers().next_deadline()?;
            Some(net.now + deadline.saturating_sub(system.clock().now()))
        });
        timers.chain(frame).min()
    }

    fn move_clocks(&self, by: Duration, systems: &[(&str, &TestSystem)]) {
        let mut net = self.lock();
        net.now += by;
        for frozen in net.frozen.values_mut() {
            frozen.missed += by;
        }
        drop(net);
        for (node, system) in systems {
            if !self.is_frozen(node) {
                system.clock().advance(by);
            }
        }
    }

    /// Takes the batches that wait, and delivers the frames that are due. Returns their number.
    pub(crate) fn deliver(&self) -> u64 {
        let mut delivered = self.take_batches();
        loop {
            let calls = self.lock().next_calls();
            let Some(calls) = calls else { break };
            delivered += 1;
            let max_frame = self.lock().max_frame;
            for Call { inbound, event } in calls {
                match event {
                    Event::Frame(parcel) => inbound.frame(&parcel.from, parcel.kind, parcel.frame),
                    Event::Up { .. } => inbound.up(max_frame),
                    Event::Down { .. } => inbound.down("the simulated connection is lost"),
                    Event::NoListener { node, uid, .. } => inbound.no_listener(&node, uid),
                }
            }
            delivered += self.take_batches();
            assert!(delivered < DELIVERIES_MAX, "livelock: {delivered} frames at {:?}", self.now());
        }
        delivered
    }

    /// Takes the batches of all outboxes that have some. Returns their number.
    fn take_batches(&self) -> u64 {
        let mut taken = 0;
        loop {
            let mut net = self.lock();
            let Some((end, outbox)) = net.next_outbox() else { return taken };
            let max_frame = net.max_frame;
            let puts_back = net.random.random_ratio(1, 8);
            drop(net);
            taken += self.take_all_of(end, &outbox, max_frame, puts_back);
        }
    }

    fn take_all_of(&self, end: usize, outbox: &PeerOutbox, max_frame: usize, puts_back: bool) -> u64 {
        let mut taken = 0;
        if puts_back {
            // As an engine does that has no room for a batch which it has taken.
            if let Some(frame) = outbox.next(max_frame) {
                outbox.put_back(frame);
            }
        }
        while let Some(frame) = outbox.next(max_frame) {
            self.lock().send(end, outbox.peer(), ChannelKind::Batch, frame);
            taken += 1;
        }
        taken
    }
}

impl Net {
    fn push(&mut self, time: Duration, event: Event) {
        self.events.insert((time, self.next_event), event);
        self.next_event += 1;
    }

    /// The ends of a node that have not left.
    fn ends_of(&self, node: &str) -> Vec<usize> {
        let is_it = |end: &usize| self.ends[*end].node == node && self.ends[*end].inbound.is_some();
        (0..self.ends.len()).filter(is_it).collect()
    }

    fn leave(&mut self, end: usize) -> Option<Arc<dyn Inbound>> {
        let end = &mut self.ends[end];
        end.wanting.clear();
        end.inbound.take()
    }

    fn next_outbox(&mut self) -> Option<(usize, PeerOutbox)> {
        let Self { ends, stalled, frozen, .. } = self;
        let may_write =
            |end: &End| end.is_connected && !stalled.contains(&end.node) && !frozen.contains_key(&end.node);
        let mut writing = ends.iter_mut().enumerate().filter(|(_, end)| may_write(end));
        writing.find_map(|(number, end)| Some((number, end.wanting.pop_front()?)))
    }

    fn chance(&mut self, in_1000: u32) -> bool {
        in_1000 > 0 && self.random.random_range(0..1000) < in_1000
    }

    fn delay(&mut self, faults: &LinkFaults) -> Duration {
        let (least, most) = (faults.delay.start().as_micros() as u64, faults.delay.end().as_micros() as u64);
        Duration::from_micros(self.random.random_range(least..=most.max(least)))
    }

    /// Sends a frame on its way, with the faults of its link.
    fn send(&mut self, end: usize, to: &str, kind: ChannelKind, frame: Vec<u8>) {
        let from = self.ends[end].node.clone();
        let key = link(&from, to);
        let faults = self.faults.get(&key).unwrap_or(&self.default_faults).clone();
        if self.cut.contains(&key) || self.chance(faults.loss) {
            return;
        }
        let lane = match (kind, Prefix::read(&frame, u8::MAX)) {
            (ChannelKind::Batch, Ok(prefix)) if faults.reorders_lanes => prefix.lane,
            _ => 0,
        };
        let channel = match kind {
            ChannelKind::Batch => 0,
            ChannelKind::Control => 1,
            ChannelKind::Heartbeat => 2,
            ChannelKind::Registry => 3,
        };
        let stream = Stream { from: end, to: to.to_owned(), channel, lane };
        let last = self.last.get(&stream).copied().unwrap_or_default();
        let mut arrival = (self.now + self.delay(&faults)).max(last);
        if self.chance(faults.overtaking) {
            arrival += self.delay(&faults);
        } else {
            self.last.insert(stream, arrival);
        }
        let parcel = Parcel { end, from, to: to.to_owned(), kind, frame };
        if self.chance(faults.repetition) {
            let again = arrival + self.delay(&faults);
            self.push(again, Event::Frame(parcel.clone()));
        }
        self.push(arrival, Event::Frame(parcel));
    }

    /// Sends a frame to all nodes of the cluster, and to other starts of the same node.
    fn send_to_all(&mut self, end: usize, kind: ChannelKind, frame: &[u8]) {
        let cluster = &self.ends[end].cluster;
        let in_cluster =
            self.ends.iter().filter(|other| other.cluster == *cluster && other.inbound.is_some());
        let nodes: BTreeSet<String> = in_cluster.map(|other| other.node.clone()).collect();
        for node in nodes {
            self.send(end, &node, kind, frame.to_vec());
        }
    }

    /// Takes the next event that is due now, and the calls that it means.
    fn next_calls(&mut self) -> Option<Vec<Call>> {
        let entry = self.events.first_entry().filter(|entry| entry.key().0 <= self.now)?;
        let event = entry.remove();
        let ends = match &event {
            Event::Frame(parcel) => {
                let key = link(&parcel.from, &parcel.to);
                if self.cut.contains(&key) {
                    return Some(Vec::new());
                }
                if let Some(held) = self.held.get_mut(&key) {
                    held.push(parcel.clone());
                    return Some(Vec::new());
                }
                let cluster = &self.ends[parcel.end].cluster;
                let mut ends = self.ends_of(&parcel.to);
                ends.retain(|end| *end != parcel.end && self.ends[*end].cluster == *cluster);
                ends.retain(|end| self.ends[*end].is_connected);
                ends
            }
            Event::Up { end } | Event::Down { end } | Event::NoListener { end, .. } => vec![*end],
        };
        // All of them are ends of one node.
        let node = ends.first().map(|end| &self.ends[*end].node);
        if let Some(frozen) = node.and_then(|node| self.frozen.get_mut(node)) {
            frozen.frames.push(event);
            return Some(Vec::new());
        }
        let inbounds = ends.into_iter().filter_map(|end| self.ends[end].inbound.clone());
        Some(inbounds.map(|inbound| Call { inbound, event: event.clone() }).collect())
    }
}

/// A node's end of the network.
struct SimFabric {
    net: SimNet,
    end: usize,
}

impl Fabric for SimFabric {
    fn publish(&self, to: Channel<'_>, frame: Vec<u8>) -> Result<(), NotNow> {
        let mut net = self.net.lock();
        let End { cluster, inbound, is_connected, .. } = &net.ends[self.end];
        if inbound.is_none() || !is_connected {
            return Err(NotNow);
        }
        match to {
            Channel::Control(node) => net.send(self.end, node, ChannelKind::Control, frame),
            Channel::Heartbeat => net.send_to_all(self.end, ChannelKind::Heartbeat, &frame),
            Channel::Registry => net.send_to_all(self.end, ChannelKind::Registry, &frame),
            Channel::Probe { node, uid } => {
                let listens = |end: &End| {
                    end.inbound.is_some() && end.cluster == *cluster && end.node == node && end.uid == uid
                };
                if !net.ends.iter().any(listens) {
                    let faults = net.default_faults.clone();
                    let time = net.now + net.delay(&faults);
                    net.push(time, Event::NoListener { end: self.end, node: node.to_owned(), uid });
                }
            }
        }
        Ok(())
    }

    fn wants_out(&self, outbox: &PeerOutbox) {
        let mut net = self.net.lock();
        let end = &mut net.ends[self.end];
        if end.inbound.is_some() && !end.wanting.contains(outbox) {
            end.wanting.push_back(outbox.clone());
        }
    }

    fn set_uid(&self, uid: u64) {
        self.net.lock().ends[self.end].uid = uid;
    }

    fn stop(&self, _: Duration) {
        loop {
            let mut net = self.net.lock();
            let max_frame = net.max_frame;
            let end = &mut net.ends[self.end];
            let outbox = end.wanting.pop_front().filter(|_| end.is_connected);
            drop(net);
            let Some(outbox) = outbox else { break };
            self.net.take_all_of(self.end, &outbox, max_frame, false);
        }
        let inbound = self.net.lock().leave(self.end);
        drop(inbound);
    }
}

impl fmt::Debug for SimNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let net = self.lock();
        let nodes: Vec<&str> =
            net.ends.iter().filter(|end| end.inbound.is_some()).map(|end| &*end.node).collect();
        f.debug_struct("SimNet")
            .field("now", &net.now)
            .field("nodes", &nodes)
            .field("under_way", &net.events.len())
            .finish()
    }
}

fn link(from: &str, to: &str) -> Link {
    (from.to_owned(), to.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::batch::{Batch, EnvelopeKind, Place};
    use crate::remote::outbox::{EntryMemory, Outbox, OutboxLimits, Outgoing};

    /// Keeps what it was called with.
    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Heard {
        fn take(&self) -> Vec<String> {
            std::mem::take(&mut *lock(&self.0))
        }

        fn note(&self, text: String) {
            lock(&self.0).push(text);
        }
    }

    impl Inbound for Heard {
        fn up(&self, max_frame: usize) {
            self.note(format!("up {max_frame}"));
        }

        fn down(&self, _: &str) {
            self.note("down".to_owned());
        }

        fn frame(&self, from: &str, kind: ChannelKind, frame: Vec<u8>) {
            let text = match Batch::read(&frame, u8::MAX, 100_000) {
                Ok(batch) => batch
                    .envelopes()
                    .map(|envelope| String::from_utf8_lossy(envelope.body).into_owned())
                    .collect::<Vec<_>>()
                    .join("+"),
                Err(_) => String::from_utf8_lossy(&frame).into_owned(),
            };
            self.note(format!("{from} {kind:?} {text}"));
        }

        fn no_listener(&self, node: &str, uid: u64) {
            self.note(format!("none {node} {uid}"));
        }
    }

    struct World {
        net: SimNet,
        heard: Vec<Arc<Heard>>,
        fabrics: Vec<Arc<dyn Fabric>>,
    }

    const MILLISECOND: Duration = Duration::from_millis(1);

    impl World {
        /// Nodes `n1` to `n3`, which have been told that they are connected.
        fn new(seed: u64) -> Self {
            let mut world = Self { net: SimNet::new(seed), heard: Vec::new(), fabrics: Vec::new() };
            for number in 1..=3 {
                world.start(&format!("n{number}"), number);
            }
            world.net.advance(Duration::ZERO, []);
            assert!(world.heard.iter().all(|heard| heard.take() == ["up 1048576"]));
            world
        }

        fn start(&mut self, node: &str, uid: u64) {
            let heard = Arc::new(Heard::default());
            self.heard.push(heard.clone());
            self.fabrics.push(self.net.start(node, uid, heard));
        }

        fn tell(&self, from: usize, to: &str, text: &str) -> Result<(), NotNow> {
            self.fabrics[from - 1].publish(Channel::Control(to), text.as_bytes().to_vec())
        }

        fn heard_after(&self, node: usize, by: Duration) -> Vec<String> {
            self.net.advance(by, []);
            self.heard[node - 1].take()
        }
    }

    /// An outbox for `n2` with a batch for each body.
    fn batches(lane_of: impl Fn(usize) -> usize, bodies: &[&str]) -> PeerOutbox {
        let limits = OutboxLimits { lane_bytes: usize::MAX, large_bytes: 0, batch_bytes: 1 };
        let outbox = PeerOutbox::new("n2", Outbox::new(1, 2, 2, u64::MAX, limits));
        for (number, body) in bodies.iter().enumerate() {
            let place = Place::Actor { path: "/a", uid: 1, type_id: 1 };
            let envelope = Outgoing { kind: EnvelopeKind::Tell, place, tokens: &[], body: body.as_bytes() };
            outbox.outbox().push(lane_of(number), &envelope, &EntryMemory::default()).map(drop).unwrap();
        }
        outbox
    }

    #[test]
    fn frames_take_their_time_and_go_to_those_that_they_are_for() {
        let world = World::new(1);
        world.tell(1, "n2", "a").unwrap();
        world.fabrics[0].publish(Channel::Heartbeat, b"h".to_vec()).unwrap();
        world.fabrics[2].publish(Channel::Registry, b"r".to_vec()).unwrap();
        assert!(world.heard_after(2, MILLISECOND - Duration::from_nanos(1)).is_empty());
        let mut heard = world.heard_after(2, Duration::from_nanos(1));
        heard.sort();
        assert_eq!(heard, ["n1 Control a", "n1 Heartbeat h", "n3 Registry r"]);
        assert_eq!(world.heard[2].take(), ["n1 Heartbeat h"]);
        assert_eq!(world.heard[0].take(), ["n3 Registry r"]);
        assert_eq!(world.net.now(), MILLISECOND);
    }

    #[test]
    fn batches_are_pulled_in_order_and_none_is_lost_by_being_put_back() {
        for seed in 0..50 {
            let world = World::new(seed);
            let faults = LinkFaults::new().delay(Duration::ZERO..=5 * MILLISECOND);
            world.net.faults(faults);
            world.fabrics[0].wants_out(&batches(|_| 0, &["a", "b", "c"]));
            assert_eq!(world.heard_after(2, 5 * MILLISECOND), ["n1 Batch a", "n1 Batch b", "n1 Batch c"]);
        }
    }

    #[test]
    fn lanes_are_reordered_where_a_test_says_so_and_a_lane_is_not() {
        let mut orders = BTreeSet::new();
        for seed in 0..100 {
            let world = World::new(seed);
            let faults = LinkFaults::new().delay(Duration::ZERO..=5 * MILLISECOND).reorder_lanes();
            world.net.link_faults("n1", "n2", faults);
            world.fabrics[0].wants_out(&batches(|number| number % 2, &["a", "x", "b", "y"]));
            let heard = world.heard_after(2, 5 * MILLISECOND).concat().replace("n1 Batch ", "");
            let place = |body: char| heard.find(body).expect("no batch is lost");
            assert!(place('a') < place('b') && place('x') < place('y') && heard.len() == 4, "{heard}");
            orders.insert(heard);
        }
        assert_eq!(orders.len(), 6, "{orders:?}");
    }

    #[test]
    fn frames_are_lost_repeated_and_overtaken_by_chance() {
        let world = World::new(3);
        let send = |faults: LinkFaults| {
            world.net.link_faults("n1", "n2", faults);
            (0..1000).for_each(|number| world.tell(1, "n2", &number.to_string()).unwrap());
            world.heard_after(2, Duration::from_secs(1))
        };
        let slow = || LinkFaults::new().delay(Duration::ZERO..=9 * MILLISECOND);
        assert_eq!(send(slow()).len(), 1000);
        assert!((850..950).contains(&send(slow().loss(100)).len()));
        assert_eq!(send(slow().loss(1000)).len(), 0);
        let repeated = send(slow().repetition(100));
        assert!((1050..1150).contains(&repeated.len()));
        let is_sorted = |heard: &[String]| heard.is_sorted_by_key(|text| text[11..].parse::<u32>().unwrap());
        let overtaken = send(slow().overtaking(100));
        assert!(overtaken.len() == 1000 && !is_sorted(&overtaken));
        assert!(is_sorted(&send(slow())));
    }

    #[test]
    fn a_cut_has_one_direction_and_loses_what_is_under_way() {
        let world = World::new(1);
        world.tell(1, "n2", "under way").unwrap();
        world.net.cut("n1", "n2");
        world.tell(1, "n2", "lost").unwrap();
        world.tell(2, "n1", "back").unwrap();
        assert!(world.heard_after(2, MILLISECOND).is_empty());
        assert_eq!(world.heard[0].take(), ["n2 Control back"]);
        world.net.heal("n1", "n2");
        world.tell(1, "n2", "again").unwrap();
        assert_eq!(world.heard_after(2, MILLISECOND), ["n1 Control again"]);
    }

    #[test]
    fn what_is_held_comes_when_it_is_released_though_the_sender_is_gone() {
        let world = World::new(1);
        world.net.hold("n1", "n2");
        world.tell(1, "n2", "a").unwrap();
        world.tell(1, "n2", "b").unwrap();
        assert!(world.heard_after(2, 9 * MILLISECOND).is_empty());
        world.net.crash("n1");
        world.net.release("n1", "n2");
        assert_eq!(world.heard_after(2, Duration::ZERO), ["n1 Control a", "n1 Control b"]);
    }

    #[test]
    fn a_crashed_node_is_silent_and_its_next_start_hears_for_itself() {
        let mut world = World::new(1);
        world.net.crash("n2");
        world.tell(1, "n2", "lost").unwrap();
        assert_eq!(world.tell(2, "n1", "from the dead"), Err(NotNow));
        world.fabrics[0].publish(Channel::Probe { node: "n2", uid: 2 }, Vec::new()).unwrap();
        world.net.advance(MILLISECOND, []);
        world.start("n2", 4);
        world.tell(1, "n2", "new").unwrap();
        for uid in [2, 4] {
            world.fabrics[0].publish(Channel::Probe { node: "n2", uid }, Vec::new()).unwrap();
        }
        assert_eq!(world.heard_after(4, MILLISECOND), ["up 1048576", "n1 Control new"]);
        assert_eq!(world.heard[0].take(), ["none n2 2", "none n2 2"]);
        assert!(world.heard[1].take().is_empty());
        world.fabrics[3].set_uid(5);
        world.fabrics[0].publish(Channel::Probe { node: "n2", uid: 4 }, Vec::new()).unwrap();
        assert_eq!(world.heard_after(1, MILLISECOND), ["none n2 4"]);
    }

    #[test]
    fn frames_wait_for_a_frozen_node() {
        let world = World::new(1);
        world.net.freeze("n2");
        world.tell(1, "n2", "a").unwrap();
        world.tell(3, "n2", "b").unwrap();
        assert!(world.heard_after(2, 9 * MILLISECOND).is_empty());
        world.net.thaw("n2");
        assert_eq!(world.heard_after(2, Duration::ZERO), ["n1 Control a", "n3 Control b"]);
    }

    #[test]
    fn a_stalled_node_sends_no_batches_and_still_control() {
        let world = World::new(1);
        world.net.stall("n1");
        let outbox = batches(|_| 0, &["a", "b"]);
        world.fabrics[0].wants_out(&outbox);
        world.fabrics[0].wants_out(&outbox);
        world.tell(1, "n2", "c").unwrap();
        assert_eq!(world.heard_after(2, 9 * MILLISECOND), ["n1 Control c"]);
        assert_eq!(outbox.outbox().counts().queued, 2);
        world.net.unstall("n1");
        assert_eq!(world.heard_after(2, MILLISECOND), ["n1 Batch a", "n1 Batch b"]);
    }

    #[test]
    fn a_lost_connection_is_told_and_loses_some_of_what_was_under_way() {
        let world = World::new(1);
        (0..100).for_each(|number| world.tell(1, "n2", &number.to_string()).unwrap());
        world.tell(2, "n1", "to the one without a connection").unwrap();
        world.net.disconnect("n1");
        assert_eq!(world.tell(1, "n2", "refused"), Err(NotNow));
        let outbox = batches(|_| 0, &["kept"]);
        world.fabrics[0].wants_out(&outbox);
        let heard = world.heard_after(2, MILLISECOND);
        assert!((20..80).contains(&heard.len()), "{}", heard.len());
        assert_eq!(world.heard[0].take(), ["down"]);
        world.net.reconnect("n1");
        assert_eq!(world.heard_after(2, MILLISECOND), ["n1 Batch kept"]);
        assert_eq!(world.heard[0].take(), ["up 1048576"]);
    }

    #[test]
    fn an_engine_that_ends_writes_what_waits_and_is_called_no_more() {
        let world = World::new(1);
        let outbox = batches(|_| 0, &["a", "b"]);
        world.fabrics[0].wants_out(&outbox);
        world.tell(2, "n1", "too late").unwrap();
        world.fabrics[0].stop(Duration::ZERO);
        world.fabrics[0].stop(Duration::ZERO);
        assert_eq!(world.heard_after(2, MILLISECOND), ["n1 Batch a", "n1 Batch b"]);
        assert!(world.heard[0].take().is_empty());
        assert_eq!(Arc::strong_count(&world.heard[0]), 1);
    }

    #[test]
    fn clusters_do_not_hear_each_other_and_starts_of_one_name_do() {
        let net = SimNet::new(1);
        let start = |cluster: &str, node: &str, uid| {
            let heard = Arc::new(Heard::default());
            let identity = Identity { node: node.into(), cluster: cluster.into(), uid };
            let fabric = Box::new(net.engine()).start(&identity, heard.clone()).unwrap();
            (heard, fabric)
        };
        let (one, fabric) = start("a", "n1", 1);
        let (double, _) = start("a", "n1", 2);
        let (other, _) = start("b", "n2", 3);
        net.advance(Duration::ZERO, []);
        fabric.publish(Channel::Heartbeat, b"h".to_vec()).unwrap();
        fabric.publish(Channel::Control("n2"), b"c".to_vec()).unwrap();
        net.advance(MILLISECOND, []);
        assert_eq!((one.take().len(), other.take().len()), (1, 1));
        assert_eq!(double.take(), ["up 1048576", "n1 Heartbeat h"]);
    }

    #[test]
    fn one_seed_is_one_course() {
        let course = |seed| {
            let world = World::new(seed);
            world
                .net
                .faults(LinkFaults::new().delay(Duration::ZERO..=9 * MILLISECOND).loss(300).repetition(300));
            for number in 0..20 {
                world.tell(1 + number % 2, "n3", &number.to_string()).unwrap();
            }
            world.heard_after(3, Duration::from_secs(1))
        };
        assert_eq!(course(7), course(7));
        assert_ne!(course(7), course(8));
    }

    #[test]
    fn clocks_of_systems_go_with_the_network_and_those_of_frozen_nodes_leap() {
        let net = SimNet::new(1);
        let (one, other) = (TestSystem::with_seed(1), TestSystem::with_seed(2));
        let both = [("n1", &one), ("n2", &other)];
        net.advance(3 * MILLISECOND, both);
        net.freeze("n2");
        net.advance(4 * MILLISECOND, both);
        assert_eq!((one.clock().now(), other.clock().now()), (7 * MILLISECOND, 3 * MILLISECOND));
        net.thaw("n2");
        net.advance(MILLISECOND, both);
        assert_eq!((one.clock().now(), other.clock().now()), (8 * MILLISECOND, 8 * MILLISECOND));
    }
}
