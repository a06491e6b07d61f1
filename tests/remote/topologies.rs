//! Groups of a topology on other nodes.

use crate::network::{LONG, Network, TestNode, wait_until};
use pointsman::group::{Group, KeyRoute};
use pointsman::prelude::*;
use pointsman::remote::{InProcess, Node, OnQuarantine, Policy, Wire};
use pointsman::topology::{NodeRoute, Outlet, RemoteGroup, Topology, TopologyError};
use pointsman::{AskError, SendError};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU8;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

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
    /// Calls are noted, and kept without an answer by all accounts but the first.
    is_silent: bool,
    kept: Vec<Call<Where>>,
    gate: Gate,
}

/// No note is handled while a test holds it.
type Gate = Arc<Mutex<()>>;

impl Actor for Ledger {
    type Message = LedgerMsg;
    fn receive(&mut self, message: LedgerMsg, _: &mut Context<LedgerMsg>) -> HandlerResult {
        match message {
            LedgerMsg::Note(Note(number)) => {
                drop(self.gate.lock());
                self.notes.send((self.node.clone(), self.account, number))?;
            }
            LedgerMsg::Where(call) => {
                let number = call.request.0;
                match self.is_silent && self.account > 1 {
                    true => self.kept.push(call),
                    false => call.answer(|_| format!("{}/{}", self.node, self.account)),
                }
                if self.is_silent {
                    self.notes.send((self.node.clone(), self.account, number))?;
                }
            }
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
    gated_ledgers(node, notes, is_silent, &Gate::default())
}

fn gated_ledgers(
    node: &TestNode,
    notes: &Sender<Noted>,
    is_silent: bool,
    gate: &Gate,
) -> Group<LedgerMsg, u32> {
    let gate = gate.clone();
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
                gate: gate.clone(),
            },
        )
        .mailbox(Mailbox::bounded(20).on_full(OverflowPolicy::Reject))
        .spawn()
        .expect("the name is free");
    ACCOUNTS.into_iter().for_each(|account| group.mount(account).expect("there is room"));
    group
}

fn describe(node: Node) -> Node {
    // The messages of a node come in one order.
    let node = node.lanes(NonZeroU8::MIN);
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
    groups: [Group<LedgerMsg, u32>; 2],
    gate: Gate,
    notes: Receiver<Noted>,
}

fn three(is_silent: bool) -> Three {
    let network = Network::new();
    let (noting, notes) = channel();
    let [n2, n3] = ["n2", "n3"].map(|name| network.node_with(name, describe));
    let gate = Gate::default();
    let groups = [&n2, &n3].map(|node| gated_ledgers(node, &noting, is_silent, &gate));
    let describe = |node: Node| match is_silent {
        // A node that is cut off declares this one down, and the links with others live on.
        true => node.message::<LedgerMsg>().on_quarantine(OnQuarantine::Event),
        false => node.message::<LedgerMsg>(),
    };
    let n1 = network.node_with("n1", describe);
    let n1 = sending(n1, |group| group.on_nodes(["n2", "n3"]).expect("names of nodes"), by_number);
    n1.finds(&["n2", "n3"]);
    Three { network, noting, n1, n2, n3, groups, gate, notes }
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

    /// Waits until the answers that the first accounts have given are there.
    fn hears_answers(&self) {
        for node in ["n2", "n3"] {
            let group = self.n1.ledgers.at(node).expect("it is there");
            let answer = group.ask(Where(1)).within(LONG).wait();
            assert_eq!(answer.expect("it answers"), format!("{node}/1"));
        }
        self.noted(2);
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
            gate: Gate::default(),
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

#[test]
fn each_actor_of_each_node_answers_a_request_to_all() {
    let all = three(false);
    let each = |account: u32| ["n2", "n3"].map(|node| Ok(format!("{node}/{account}")));
    assert_eq!(all.n1.ask_all(2), each(2));
    let mut expected = ACCOUNTS.map(each).concat();
    expected.sort_by_key(|answer: &Result<String, AskError>| answer.clone().ok());
    assert_eq!(all.n1.ask_all(0), expected);
    // Each node answers for its group, in which the account is absent, or whose router discards the request.
    for account in [7, 70] {
        let answers = all.n1.ask_all(account);
        assert!(answers.len() == 2 && answers.iter().all(Result::is_err), "{answers:?}");
    }
    // A full actor refuses its copy, which another one gets then.
    let gate = all.gate.lock().expect("no panic while it is held");
    let mut taken = 0;
    // One note is handled, and waits for the gate.
    wait_until(|| {
        taken += usize::from(all.groups[0].try_send(Note(2)).is_ok());
        taken == 21
    });
    let answers = all.n1.ask_all(0);
    let answered = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!((answered, answers.len()), (5, 6), "{answers:?}");
    drop(gate);
    assert_eq!(all.noted(21), vec![noted("n2", 2, 2); 21]);
    // The first answer is enough for these.
    let first = all.n1.calls.request(Where(0)).within(LONG).first().wait().expect("one answers");
    let asked = all.n1.ledgers.at("n3").expect("it is there").ask(Where(0)).within(LONG).wait();
    assert!(first.contains('/') && asked.expect("one answers").starts_with("n3/"));
    all.end();
}

#[test]
fn an_answer_for_each_actor_comes_when_a_node_is_lost_meanwhile() {
    let all = three(true);
    let calls = all.n1.calls.clone();
    let asking = std::thread::spawn(move || calls.request(Where(0)).all().wait().expect("it is sent"));
    assert_eq!(all.noted(6).len(), 6);
    all.hears_answers();
    all.n3.cut(true);
    wait_until(|| {
        all.network.seconds(1);
        all.n1.ledgers.nodes() == ["n2"]
    });
    all.groups[0].stop();
    let mut answers = asking.join().expect("no panic");
    // Of n3 the answer that had come, and its end for all others; of n2 the answer, and two calls that were kept.
    answers.sort_by_key(|answer| answer.as_ref().ok().cloned());
    let (failed, answered) = answers.split_at(answers.len() - 2);
    assert_eq!(answered, [Ok("n2/1".to_owned()), Ok("n3/1".to_owned())]);
    let gone = |answer: &&Result<String, AskError>| matches!(answer, Err(AskError::PeerGone { .. }));
    let kept = |answer: &&Result<String, AskError>| matches!(answer, Err(AskError::NoReply { .. }));
    assert_eq!(failed.iter().filter(gone).count(), 1, "{failed:?}");
    assert_eq!((failed.iter().filter(kept).count(), failed.len()), (2, 3), "{failed:?}");
    let ledgers = [all.n1.node, all.n2, all.n3].map(TestNode::end);
    assert!(ledgers.iter().all(|ledger| ledger.balance() == 0), "{ledgers:#?}");
}

#[test]
fn a_limit_ends_a_request_for_each_node_that_is_not_done() {
    let all = three(true);
    let calls = all.n1.calls.clone();
    let asking = std::thread::spawn(move || {
        let limit = std::time::Duration::from_secs(5);
        calls.request(Where(0)).within(limit).all().wait().expect("it is sent")
    });
    assert_eq!(all.noted(6).len(), 6);
    all.hears_answers();
    all.network.seconds(5);
    let answers = asking.join().expect("no panic");
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 2, "{answers:?}");
    let is_late = |answer: &&Result<String, AskError>| matches!(answer, Err(AskError::Timeout { .. }));
    assert_eq!((answers.iter().filter(is_late).count(), answers.len()), (2, 4), "{answers:?}");
    let ledgers = [all.n1.node, all.n2, all.n3].map(TestNode::end);
    assert!(ledgers.iter().all(|ledger| ledger.balance() == 0), "{ledgers:#?}");
}
