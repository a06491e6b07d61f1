//! Groups of a topology on other nodes.

use crate::network::{LONG, Network, TestNode, wait_until};
use pointsman::group::{Group, KeyRoute};
use pointsman::prelude::*;
use pointsman::remote::{InProcess, Node, Policy, Wire};
use pointsman::topology::{NodeRoute, Outlet, RemoteGroup, Topology, TopologyError};
use pointsman::{AskError, SendError};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A note for the account of this number; 0 is for all accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note(u32);

/// The question who answers for an account; 0 is for all accounts.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Where(u32);
impl Request for Where {
    type Reply = String;
}

#[derive(Clone, Message, Wire, Serialize, Deserialize)]
#[wire(name = "test.LedgerMsg", version = 1)]
enum LedgerMsg {
    Note(Note),
    Where(Call<Where>),
}

/// Notes what it gets, with its node and its account.
type Noted = (String, u32, u32);

struct Ledger {
    node: String,
    account: u32,
    notes: Sender<Noted>,
    /// Calls are kept and not answered.
    is_silent: bool,
    kept: Vec<Call<Where>>,
}

impl Actor for Ledger {
    type Message = LedgerMsg;
    fn receive(&mut self, message: LedgerMsg, _: &mut Context<LedgerMsg>) -> HandlerResult {
        match message {
            LedgerMsg::Note(Note(number)) => self.notes.send((self.node.clone(), self.account, number))?,
            LedgerMsg::Where(call) if self.is_silent => {
                self.notes.send((self.node.clone(), self.account, call.request.0))?;
                self.kept.push(call);
            }
            LedgerMsg::Where(call) => call.answer(|_| format!("{}/{}", self.node, self.account)),
        }
        Ok(())
    }
}

/// The accounts of each node's group.
const ACCOUNTS: [u32; 3] = [1, 2, 3];

fn key_of(number: u32) -> KeyRoute<u32> {
    match number {
        0 => KeyRoute::Broadcast,
        1..=9 => KeyRoute::GentleUnicast(number),
        _ => KeyRoute::Discard,
    }
}

/// The group of a node, with its accounts.
fn ledgers(node: &TestNode, notes: &Sender<Noted>, is_silent: bool) -> Group<LedgerMsg, u32> {
    let (name, notes) = (node.remote().node().to_owned(), notes.clone());
    let group = node
        .group("ledgers")
        .keyed(
            |message: &LedgerMsg| match message {
                LedgerMsg::Note(Note(number)) | LedgerMsg::Where(Call { request: Where(number), .. }) => {
                    key_of(*number)
                }
            },
            move |_, account: &u32| Ledger {
                node: name.clone(),
                account: *account,
                notes: notes.clone(),
                is_silent,
                kept: Vec::new(),
            },
        )
        .spawn()
        .expect("the name is free");
    ACCOUNTS.into_iter().for_each(|account| group.mount(account).expect("there is room"));
    group
}

fn describe(node: Node) -> Node {
    node.message::<LedgerMsg>().policy(Policy::closed().allow_path("/user/ledgers"))
}

/// The node whose members send, with its outlets.
struct Sending {
    node: TestNode,
    topology: Topology,
    ledgers: RemoteGroup<LedgerMsg>,
    notes: Outlet<Note>,
    calls: Outlet<Call<Where>>,
}

/// Begins the topology of a node that sends notes as the predicate says, and calls to all nodes.
fn sending(
    node: TestNode,
    change: impl FnOnce(RemoteGroup<LedgerMsg>) -> RemoteGroup<LedgerMsg>,
    choose: impl for<'a> Fn(&'a Note, &'a [String]) -> NodeRoute<'a> + Send + Sync + 'static,
) -> Sending {
    let topology = node.topology();
    let gateway = topology.local::<u8>("gateway").expect("the name is free");
    let ledgers = change(topology.remote::<LedgerMsg>("ledgers").expect("it is registered"));
    gateway.route_to_nodes(&ledgers, choose);
    gateway.route_all_to_nodes::<Call<Where>, _>(&ledgers);
    let (notes, calls) = (gateway.outlet(), gateway.outlet());
    gateway.mount(&ActorRef::from_fn(|_: u8| {}));
    topology.start().expect("all groups are mounted");
    Sending { node, topology, ledgers, notes, calls }
}

/// A note of a number below 10 goes to all nodes, and a greater one to the node of its last digit.
fn by_number<'a>(note: &'a Note, nodes: &'a [String]) -> NodeRoute<'a> {
    match note.0 {
        0..=9 => NodeRoute::Broadcast,
        10..=99 => {
            let digit = (note.0 % 10).to_string();
            NodeRoute::Unicast(nodes.iter().find(|node| node.ends_with(&digit)).map_or("n9", |node| node))
        }
        100..=199 => NodeRoute::Multicast(vec!["n3", "n9"]),
        _ => NodeRoute::Discard,
    }
}

/// A node that sends, and two that have the group.
struct Three {
    network: Network,
    noting: Sender<Noted>,
    n1: Sending,
    n2: TestNode,
    n3: TestNode,
    notes: Receiver<Noted>,
}

fn three(is_silent: bool) -> Three {
    let network = Network::new();
    let (noting, notes) = channel();
    let nodes = ["n2", "n3"].map(|name| {
        let node = network.node_with(name, describe);
        ledgers(&node, &noting, is_silent);
        node
    });
    let [n2, n3] = nodes;
    let n1 = network.node_with("n1", |node| node.message::<LedgerMsg>());
    let n1 = sending(n1, |group| group.on_nodes(["n2", "n3"]).expect("names of nodes"), by_number);
    n1.finds(&["n2", "n3"]);
    Three { network, noting, n1, n2, n3, notes }
}

impl Sending {
    /// Waits until these nodes, and no others, have the group.
    #[track_caller]
    fn finds(&self, nodes: &[&str]) {
        wait_until(|| self.ledgers.nodes() == nodes);
    }

    /// The answers of all to a call, in order.
    fn ask_all(&self, account: u32) -> Vec<Result<String, AskError>> {
        let mut answers = self.calls.request(Where(account)).within(LONG).all().wait().expect("it is sent");
        answers.sort_by_key(|answer| answer.as_ref().ok().cloned());
        answers
    }
}

impl Three {
    /// The next notes, in order.
    fn noted(&self, count: usize) -> Vec<Noted> {
        let next = || self.notes.recv_timeout(LONG).expect("it comes");
        let mut noted: Vec<Noted> = (0..count).map(|_| next()).collect();
        noted.sort();
        noted
    }

    /// Ends all nodes. Their books balance, and so do those of all together.
    fn end(self) {
        let ledgers: Vec<_> = [self.n1.node, self.n2, self.n3].into_iter().map(TestNode::end).collect();
        assert!(ledgers.iter().all(|ledger| ledger.balance() == 0), "{ledgers:#?}");
        let sum = |of: fn(&pointsman::Ledger) -> u64| ledgers.iter().map(of).sum::<u64>();
        assert_eq!(sum(|ledger| ledger.shipped), sum(|ledger| ledger.received));
        assert!(self.notes.try_recv().is_err(), "nothing else has come");
    }
}

fn noted(node: &str, account: u32, number: u32) -> Noted {
    (node.to_owned(), account, number)
}

#[test]
fn the_predicate_chooses_nodes_and_the_group_there_chooses_actors() {
    let all = three(false);
    all.n1.notes.send(Note(2)).expect("both nodes take it");
    assert_eq!(all.noted(2), [noted("n2", 2, 2), noted("n3", 2, 2)]);
    all.n1.notes.send(Note(0)).expect("both nodes take it");
    let each = |node| ACCOUNTS.map(|account| noted(node, account, 0));
    assert_eq!(all.noted(6), [each("n2"), each("n3")].concat());
    // To one node: its router discards it, since the number is too large.
    all.n1.notes.send(Note(12)).expect("the node takes it");
    // A direct reference passes no routes.
    all.n1.ledgers.at("n3").expect("it is there").tell(Note(1));
    assert_eq!(all.noted(1), [noted("n3", 1, 1)]);
    assert_eq!(all.n1.topology.remotes()[0].nodes, ["n2", "n3"]);
    let dot = all.n1.topology.to_dot();
    assert!(dot.contains("\"ledgers\" [shape=box3d];"), "{dot}");
    assert!(dot.contains("\"gateway\" -> \"ledgers\" [label=\"Note\", style=dashed];"), "{dot}");
    assert!(dot.contains("\"gateway\" -> \"ledgers\" [label=\"Call<Where>\"];"), "{dot}");
    all.end();
}

#[test]
fn a_message_without_a_node_comes_back() {
    let network = Network::new();
    let n1 = network.node_with("n1", describe);
    let n1 = sending(n1, |group| group, by_number);
    assert_eq!(n1.notes.send(Note(2)), Err(SendError::Closed(Note(2))));
    assert!(matches!(n1.ask_all(0)[..], [Err(AskError::Undeliverable { .. })]));
    let ledger = n1.node.end();
    assert_eq!((ledger.handed_back, ledger.dead_lettered, ledger.balance()), (1, 1, 0));
}

#[test]
fn nodes_that_are_named_and_absent_take_nothing() {
    let all = three(false);
    assert_eq!(all.n1.notes.send(Note(19)), Err(SendError::Closed(Note(19))));
    assert_eq!(all.n1.notes.send(Note(200)), Err(SendError::Discarded(Note(200))));
    // One of two named nodes has the group: the copy for the other one is a dead letter.
    let (report, sent) = all.n1.notes.send_by(Note(100), pointsman::topology::SendMode::Try);
    assert_eq!((report.accepted, report.closed, sent), (1, 1, Ok(())));
    all.end();
}

#[test]
fn a_node_that_is_lost_leaves_and_comes_back() {
    let mut all = three(false);
    // The node ends in good order.
    let n2 = std::mem::replace(&mut all.n2, all.network.node("n4"));
    assert_eq!(n2.end().balance(), 0);
    all.n1.finds(&["n3"]);
    all.n1.notes.send(Note(1)).expect("the other node takes it");
    assert_eq!(all.noted(1), [noted("n3", 1, 1)]);
    assert_eq!(all.n1.notes.send(Note(12)), Err(SendError::Closed(Note(12))));
    // Another start of it mounts the group, after its link is up.
    let n2 = all.network.node_with("n2", describe);
    let group = ledgers(&n2, &all.noting, false);
    wait_until(|| {
        all.network.seconds(1);
        all.n1.ledgers.nodes() == ["n2", "n3"]
    });
    all.n1.notes.send(Note(1)).expect("both nodes take it");
    assert_eq!(all.noted(2), [noted("n2", 1, 1), noted("n3", 1, 1)]);
    // The group ends, and the node lives on.
    group.stop();
    all.n1.finds(&["n3"]);
    let again = ledgers_named_again(&n2, &all.noting);
    wait_until(|| {
        all.network.seconds(1);
        all.n1.ledgers.nodes() == ["n2", "n3"]
    });
    all.n1.notes.send(Note(3)).expect("both nodes take it");
    assert_eq!(all.noted(2), [noted("n2", 3, 3), noted("n3", 3, 3)]);
    drop(again);
    std::mem::replace(&mut all.n2, n2).end();
    let ledgers: Vec<_> = [all.n1.node, all.n2, all.n3].into_iter().map(TestNode::end).collect();
    assert!(ledgers.iter().all(|ledger| ledger.balance() == 0), "{ledgers:#?}");
}

/// The group of a node once more, when the name of the first one is free.
fn ledgers_named_again(node: &TestNode, notes: &Sender<Noted>) -> Group<LedgerMsg, u32> {
    wait_until(|| node.typed_at::<LedgerMsg>("/user/ledgers").is_err());
    ledgers(node, notes, false)
}

#[test]
fn a_node_that_is_cut_off_leaves_when_it_is_down() {
    let all = three(false);
    all.n3.cut(true);
    // It declares the first node down, which takes a new UID: all links of that begin anew.
    wait_until(|| {
        all.network.seconds(1);
        all.n1.ledgers.at("n3").is_none()
    });
    let gone = all.n1.notes.send(Note(13));
    assert_eq!(gone, Err(SendError::Closed(Note(13))));
    all.n3.cut(false);
    wait_until(|| {
        all.network.seconds(1);
        all.n1.ledgers.nodes() == ["n2", "n3"]
    });
    all.n1.notes.send(Note(2)).expect("both nodes take it");
    assert_eq!(all.noted(2), [noted("n2", 2, 2), noted("n3", 2, 2)]);
    let ledgers = [all.n1.node, all.n2, all.n3].map(TestNode::end);
    assert!(ledgers.iter().all(|ledger| ledger.balance() == 0), "{ledgers:#?}");
}

#[test]
fn all_linked_nodes_are_asked_unless_some_are_named() {
    let network = Network::new();
    let (noting, notes) = channel();
    let n1 = network.node_with("n1", |node| node.message::<LedgerMsg>());
    let n1 = sending(n1, |group| group, by_number);
    let n2 = network.node_with("n2", describe);
    ledgers(&n2, &noting, false);
    // This one begins the link.
    n2.remote().connect("n1");
    n1.finds(&["n2"]);
    n1.notes.send(Note(2)).expect("the node takes it");
    assert_eq!(notes.recv_timeout(LONG), Ok(noted("n2", 2, 2)));
    // A further topology of the node finds links that are there.
    let only = n1.node.topology();
    let group = only.remote::<LedgerMsg>("ledgers").expect("its names are its own");
    only.start().expect("there is nothing to mount");
    wait_until(|| group.nodes() == ["n2"]);
    let named = n1.node.topology();
    let group = named.remote::<LedgerMsg>("ledgers").expect("its names are its own");
    let group = group.on_nodes(["n3"]).expect("a name of a node");
    named.start().expect("there is nothing to mount");
    let n3 = network.node_with("n3", describe);
    let other = n3.actor("other").spawn({
        let notes = noting.clone();
        move || Ledger {
            node: "n3".into(),
            account: 9,
            notes: notes.clone(),
            is_silent: false,
            kept: Vec::new(),
        }
    });
    other.expect("the name is free");
    ledgers(&n3, &noting, false);
    wait_until(|| {
        network.seconds(1);
        group.nodes() == ["n3"]
    });
    [n1.node, n2, n3].map(TestNode::end).iter().for_each(|ledger| assert_eq!(ledger.balance(), 0));
}

#[test]
fn a_node_whose_policy_does_not_list_the_path_is_not_found() {
    let network = Network::new();
    let (noting, _notes) = channel();
    let n2 = network.node_with("n2", |node| node.message::<LedgerMsg>());
    ledgers(&n2, &noting, false);
    let n3 = network.node_with("n3", |node| node.policy(Policy::closed().allow_path("/user/ledgers")));
    ledgers(&n3, &noting, false);
    let n1 = network.node_with("n1", |node| node.message::<LedgerMsg>());
    let n1 = sending(n1, |group| group.on_nodes(["n2", "n3"]).expect("names of nodes"), by_number);
    for name in ["n2", "n3"] {
        let of =
            |remote: pointsman::remote::Remote| remote.links().into_iter().find(|link| link.node == "n1");
        let node = if name == "n2" { &n2 } else { &n3 };
        // The refusal of the path, and of the type.
        wait_until(|| {
            network.seconds(1);
            of(node.remote()).is_some_and(|link| link.refused.iter().map(|(_, count)| count).sum::<u64>() > 1)
        });
    }
    assert!(n1.ledgers.nodes().is_empty());
    assert_eq!(n1.notes.send(Note(1)), Err(SendError::Closed(Note(1))));
    [n1.node, n2, n3].map(TestNode::end).iter().for_each(|ledger| assert_eq!(ledger.balance(), 0));
}

#[test]
fn a_group_of_other_nodes_that_cannot_be_is_an_error() {
    let network = InProcess::new();
    let alone = System::builder("demo").build().expect("sound settings");
    let fault = alone.topology().remote::<LedgerMsg>("ledgers").expect_err("it is no node");
    assert_eq!(fault, TopologyError::NoNode { group: "ledgers".into() });
    let node = Node::new("n1").engine(network.clone());
    let system = System::builder("demo").node(node).build().expect("a sound node");
    let fault = system.topology().remote::<LedgerMsg>("ledgers").expect_err("it is not registered");
    assert!(matches!(&fault, TopologyError::UnregisteredMessage { .. }), "{fault}");
    assert!(fault.to_string().contains("register it by `Node::message`"), "{fault}");
    let node = Node::new("n2").engine(network).message::<LedgerMsg>();
    let system = System::builder("demo").node(node).build().expect("a sound node");
    let topology = system.topology();
    let ledgers = || topology.remote::<LedgerMsg>("ledgers");
    let group = ledgers().expect("the name is free");
    let taken = TopologyError::DuplicateGroup { name: "ledgers".into() };
    assert_eq!(ledgers().expect_err("its name is taken"), taken);
    assert_eq!(topology.local::<u8>("ledgers").expect_err("its name is taken"), taken);
    for node in ["n2", "a b", ""] {
        let fault = group.clone().on_nodes([node]).expect_err("it is no other node");
        assert_eq!(fault, TopologyError::Node { group: "ledgers".into(), node: node.into() });
    }
    for path in ["ledgers", "/user/..", "pointsman://demo@n1/user/ledgers"] {
        assert!(matches!(group.clone().at_path(path), Err(TopologyError::Path(_))), "{path}");
    }
    assert_eq!(topology.remotes()[0].path, "/user/ledgers");
    group.at_path("/user/shop/ledgers").expect("a sound path");
    assert_eq!(topology.remotes()[0].path, "/user/shop/ledgers");
}
