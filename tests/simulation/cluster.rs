//! A cluster of test systems on a simulated network, with the logs of all starts.

use crate::checker::{Event, Log, Start};
use crate::random::Random;
use pointsman::remote::{LinkState, Node, NodeEvent, Remote};
use pointsman::testkit::{LinkFaults, SimNet, TestSystem};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Writes what a process sees, for each UID that its node has had.
#[derive(Clone)]
pub struct Recorder(Arc<Mutex<Vec<Log>>>);

impl Recorder {
    fn new(process: usize, start: Start) -> Self {
        Self(Arc::new(Mutex::new(vec![Log { process, start, events: Vec::new(), is_cut_off: false }])))
    }

    pub fn note(&self, event: Event) {
        let mut logs = self.0.lock().expect("no test panics with it");
        logs.last_mut().expect("it has one").events.push(event);
    }

    /// Notes an event in the log of an earlier UID of the node, or of that which it has now.
    pub fn note_of(&self, start: Start, event: Event) {
        let mut logs = self.0.lock().expect("as above");
        let log = logs.iter_mut().find(|log| log.start == start);
        log.expect("the node has had it").events.push(event);
    }

    /// The UID that the node has now.
    pub fn start(&self) -> Start {
        self.0.lock().expect("as above").last().expect("as above").start
    }

    /// The UID that the node had first.
    pub fn first(&self) -> Start {
        self.0.lock().expect("as above").first().expect("as above").start
    }

    /// Whether the node has, or had, this UID.
    pub fn was(&self, start: Start) -> bool {
        self.0.lock().expect("as above").iter().any(|log| log.start == start)
    }

    fn rejoined(&self, new: u64) {
        let start = Start { uid: new, ..self.start() };
        let mut logs = self.0.lock().expect("as above");
        let process = logs[0].process;
        logs.push(Log { process, start, events: Vec::new(), is_cut_off: false });
    }
}

/// A running node.
pub struct Member {
    pub name: String,
    pub system: TestSystem,
    pub recorder: Recorder,
}

impl Member {
    pub fn remote(&self) -> Remote {
        self.system.remote().expect("a node was described")
    }

    fn has_children_elsewhere(&self) -> bool {
        let parents = self.system.actor_at("/user").map(|guardian| guardian.children()).unwrap_or_default();
        let mut children = parents.iter().flat_map(|parent| parent.children());
        children.any(|child| child.path().address().is_some())
    }
}

/// Returns the number of seeds of a simulation: that of `POINTSMAN_SIMULATIONS`, or the one that a gate has time for.
pub fn seed_count(of_a_gate: u64) -> u64 {
    match std::env::var("POINTSMAN_SIMULATIONS") {
        Ok(count) => count.parse().expect("POINTSMAN_SIMULATIONS is a whole number"),
        Err(_) => of_a_gate,
    }
}

/// All nodes, of which some do not run.
pub struct Cluster {
    pub net: SimNet,
    pub random: Random,
    pub members: Vec<Option<Member>>,
    frozen: BTreeSet<usize>,
    /// The logs of all processes so far.
    recorders: Vec<Recorder>,
    describe: fn(Node) -> Node,
    /// Called with each new member.
    furnish: fn(&Member),
}

pub fn name_of(node: usize) -> String {
    format!("n{}", node + 1)
}

impl Cluster {
    /// Starts so many nodes.
    pub fn new(seed: u64, count: usize, describe: fn(Node) -> Node, furnish: fn(&Member)) -> Self {
        let mut cluster = Self {
            net: SimNet::new(seed),
            random: Random::new(seed),
            members: (0..count).map(|_| None).collect(),
            frozen: BTreeSet::new(),
            recorders: Vec::new(),
            describe,
            furnish,
        };
        (0..count).for_each(|node| cluster.start(node));
        cluster
    }

    /// Starts a node anew.
    pub fn start(&mut self, node: usize) {
        let name = name_of(node);
        let (engine, describe) = (self.net.engine(), self.describe);
        let described = RefCell::new(Some(describe(Node::new(&name).engine(engine))));
        let system = TestSystem::builder()
            .seed(self.random.next())
            .configure(move |builder| builder.node(described.take().expect("it is built once")))
            .build();
        system.allow_running();
        let uid = system.remote().expect("a node was described").uid();
        let recorder = Recorder::new(self.recorders.len(), Start { node: node as u32, uid });
        let notes = recorder.clone();
        // As long as the system.
        std::mem::forget(system.events().on(move |event: &NodeEvent| match event {
            NodeEvent::Down { node, uid, .. } => {
                let number: u32 = node[1..].parse().expect("a name of ours");
                notes.note(Event::Down { of: Start { node: number - 1, uid: *uid } });
            }
            NodeEvent::Rejoined { new, .. } => notes.rejoined(*new),
            _ => {}
        }));
        self.recorders.push(recorder.clone());
        let member = Member { name, system, recorder };
        (self.furnish)(&member);
        self.members[node] = Some(member);
    }

    /// Kills a node. Its own books balance all the same.
    pub fn crash(&mut self, node: usize) {
        let Some(member) = self.members[node].take() else { return };
        self.frozen.remove(&node);
        self.net.crash(&member.name);
        for log in member.recorder.0.lock().expect("as above").iter_mut() {
            log.is_cut_off = true;
        }
        // Its children on other nodes end when it declares those down. There may be more of them, by messages that wait.
        member.system.run_until_idle();
        if member.has_children_elsewhere() {
            member.system.advance(Duration::from_secs(120));
        }
        member.system.finish();
    }

    pub fn freeze(&mut self, node: usize) {
        if self.members[node].is_some() {
            self.frozen.insert(node);
            self.net.freeze(&name_of(node));
        }
    }

    pub fn thaw(&mut self, node: usize) {
        if self.frozen.remove(&node) {
            self.net.thaw(&name_of(node));
        }
    }

    /// A member that runs.
    pub fn any(&mut self) -> Option<usize> {
        let running: Vec<usize> = (0..self.members.len()).filter(|node| self.is_running(*node)).collect();
        (!running.is_empty()).then(|| running[self.random.below(running.len() as u64) as usize])
    }

    pub fn is_running(&self, node: usize) -> bool {
        self.members[node].is_some() && !self.frozen.contains(&node)
    }

    pub fn advance(&self, by: Duration) {
        self.advance_net(by);
        // A notice waits three seconds for the messages before it, and then comes without them. So what a full socket has kept
        // back goes out before the next fault.
        (0..self.members.len()).for_each(|node| self.net.unstall(&name_of(node)));
        self.advance_net(Duration::ZERO);
    }

    fn advance_net(&self, by: Duration) {
        let members = self.members.iter().flatten();
        self.net.advance(by, members.map(|member| (member.name.as_str(), &member.system)));
    }

    /// One fault, or its end, by chance.
    pub fn disturb(&mut self) {
        let count = self.members.len() as u64;
        let (one, other) = (self.random.below(count) as usize, self.random.below(count) as usize);
        let (from, to) = (name_of(one), name_of(other));
        match self.random.below(16) {
            0 => self.net.cut(&from, &to),
            1 => {
                self.net.cut(&from, &to);
                self.net.cut(&to, &from);
            }
            2..=4 => {
                self.net.heal(&from, &to);
                self.net.heal(&to, &from);
            }
            5 => self.net.hold(&from, &to),
            6 | 7 => self.net.release(&from, &to),
            8 | 9 => self.net.stall(&from),
            10 => self.net.disconnect(&from),
            11 => self.net.reconnect(&from),
            12 => self.freeze(one),
            13 => self.thaw(one),
            14 => self.crash(one),
            _ if self.members[one].is_none() => self.start(one),
            _ => {
                let faults = self.any_faults();
                self.net.link_faults(&from, &to, faults);
            }
        }
    }

    /// Faults of a link, by chance.
    fn any_faults(&mut self) -> LinkFaults {
        let least = Duration::from_micros(self.random.below(2_000));
        let most = Duration::from_millis(2 + self.random.below(40));
        let faults = LinkFaults::new()
            .delay(least..=most)
            .loss(self.random.below(50) as u32)
            .repetition(self.random.below(300) as u32)
            .overtaking(self.random.below(200) as u32);
        if self.random.below(2) == 0 { faults.reorder_lanes() } else { faults }
    }

    /// Gives half of the links faults.
    pub fn spoil_links(&mut self) {
        for one in 0..self.members.len() {
            for other in 0..self.members.len() {
                let faults = self.any_faults();
                if self.random.below(2) == 0 {
                    self.net.link_faults(&name_of(one), &name_of(other), faults);
                }
            }
        }
    }

    /// Delays what goes over the links, so that lanes overtake each other, and loses nothing.
    pub fn delay_links(&mut self) {
        for one in 0..self.members.len() {
            for other in 0..self.members.len() {
                let least = Duration::from_micros(self.random.below(2_000));
                let most = Duration::from_millis(2 + self.random.below(40));
                let faults = LinkFaults::new().delay(least..=most).reorder_lanes();
                self.net.link_faults(&name_of(one), &name_of(other), faults);
            }
        }
    }

    /// Ends all faults, and starts all nodes that do not run.
    pub fn heal(&mut self) {
        let count = self.members.len();
        for one in 0..count {
            self.thaw(one);
            if self.members[one].is_none() {
                self.start(one);
            }
            let name = name_of(one);
            self.net.reconnect(&name);
            for other in 0..count {
                self.net.heal(&name, &name_of(other));
                self.net.release(&name, &name_of(other));
                self.net.link_faults(&name, &name_of(other), LinkFaults::new());
            }
        }
    }

    /// Whether each node has a link to each other that is up, and to the UID that the other has.
    pub fn is_linked(&self) -> Result<(), String> {
        for one in self.members.iter().flatten() {
            for other in self.members.iter().flatten().filter(|other| other.name != one.name) {
                let links = one.remote().links();
                let uid = other.remote().uid();
                let is_up = links
                    .iter()
                    .any(|link| link.node == other.name && link.uid == uid && link.state == LinkState::Up);
                if !is_up {
                    let of_other: Vec<_> = links.iter().filter(|link| link.node == other.name).collect();
                    return Err(format!("{} has no link to {}:{uid:x}: {of_other:#?}", one.name, other.name));
                }
            }
        }
        Ok(())
    }

    /// Ends all systems, and returns all logs.
    pub fn end(mut self) -> Vec<Log> {
        for member in self.members.iter_mut().filter_map(Option::take) {
            let ledger = member.system.finish();
            assert_eq!(ledger.balance(), 0, "{ledger}");
        }
        let logs = self
            .recorders
            .drain(..)
            .map(|recorder| std::mem::take(&mut *recorder.0.lock().expect("as above")));
        logs.flatten().collect()
    }
}
