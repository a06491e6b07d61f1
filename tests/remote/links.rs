//! Links between nodes: how they come up, live, and end.

use crate::network::{LONG, Network, link, linked};
use pointsman::prelude::*;
use pointsman::remote::{
    DetectorSettings, DownReason, InProcess, Limits, LinkState, Node, NodeError, NodeEvent, OnQuarantine,
    RefusalReason,
};
use std::error::Error;
use std::num::NonZeroU8;
use std::time::Duration;

#[test]
fn a_link_comes_up_on_both_sides_and_stays_up_by_heartbeats() {
    let network = Network::new();
    let (n1, n2) = linked(&network);
    network.seconds(100);
    n1.no_event();
    n2.no_event();
    for (node, other) in [(&n1, &n2), (&n2, &n1)] {
        let links = node.remote().links();
        assert_eq!(links.len(), 1);
        let link = &links[0];
        assert_eq!((link.node.as_str(), link.uid), (other.remote().node(), other.remote().uid()));
        assert_eq!((link.state, link.queued, link.shipped, link.in_doubt), (LinkState::Up, 0, 0, 0));
        assert_eq!((link.malformed, link.stale), (0, 0));
    }
    assert_eq!(n1.address().to_string(), "pointsman://demo@n1");
    assert!(n1.actor_at("pointsman://demo@n1/user").is_ok());
    assert!(n1.actor_at("pointsman://demo@n2/user").is_err());
    assert_eq!((n1.end().balance(), n2.end().balance()), (0, 0));
}

#[test]
fn a_node_that_ends_says_goodbye_and_comes_back_with_another_uid() {
    let network = Network::new();
    let (n1, n2) = linked(&network);
    let uid = n2.remote().uid();
    n2.end();
    assert_eq!(n1.event(), NodeEvent::Down { node: "n2".into(), uid, reason: DownReason::Goodbye });
    assert_eq!(n1.remote().links()[0].state, LinkState::Ended);
    let n2 = network.node("n2");
    assert_ne!(n2.remote().uid(), uid);
    link(&n2, &n1);
    let states: Vec<LinkState> = n1.remote().links().iter().map(|link| link.state).collect();
    assert_eq!(states, [LinkState::Ended, LinkState::Up]);
}

#[test]
fn a_silent_node_is_suspected_and_one_that_is_heard_again_in_time_is_reachable() {
    let network = Network::new();
    let (n1, n2) = linked(&network);
    network.seconds(10);
    let uid = n2.remote().uid();
    n1.cut(true);
    // A mean of a second, 3 s that are accepted, and some deviations.
    network.seconds(5);
    assert_eq!(n1.event(), NodeEvent::Suspect { node: "n2".into(), uid });
    assert_eq!(n1.remote().links()[0].state, LinkState::Suspect);
    n1.cut(false);
    network.seconds(1);
    assert_eq!(n1.event(), NodeEvent::Reachable { node: "n2".into(), uid });
    n2.no_event();
}

#[test]
fn a_node_that_was_declared_down_takes_a_new_uid_when_it_hears_of_it() {
    let network = Network::new();
    let (n1, n2) = linked(&network);
    let (first, second) = (n1.remote().uid(), n2.remote().uid());
    n1.cut(true);
    network.seconds(20);
    assert_eq!(n1.event(), NodeEvent::Suspect { node: "n2".into(), uid: second });
    assert_eq!(n1.event(), NodeEvent::Down { node: "n2".into(), uid: second, reason: DownReason::Silent });
    // The other node has heard that it is down.
    assert_eq!(
        n2.event(),
        NodeEvent::Down { node: "n1".into(), uid: first, reason: DownReason::Quarantined }
    );
    assert_eq!(n2.event(), NodeEvent::Quarantined { by: first });
    let rejoined = n2.event();
    let new = n2.remote().uid();
    assert_eq!(rejoined, NodeEvent::Rejoined { old: second, new });
    n1.cut(false);
    network.seconds(30);
    assert_eq!(n1.event(), NodeEvent::Up { node: "n2".into(), uid: new });
    assert_eq!(n2.event(), NodeEvent::Up { node: "n1".into(), uid: first });
    network.seconds(30);
    n1.no_event();
    n2.no_event();
}

#[test]
fn the_action_of_a_node_that_was_declared_down_is_a_setting() {
    let network = Network::new();
    for action in [OnQuarantine::Event, OnQuarantine::Stop] {
        let n1 = network.node("n1");
        let n2 = network.node_with("n2", |node| node.on_quarantine(action));
        link(&n1, &n2);
        let (first, second) = (n1.remote().uid(), n2.remote().uid());
        n1.cut(true);
        network.seconds(20);
        n1.cut(false);
        assert_eq!(
            n2.event(),
            NodeEvent::Down { node: "n1".into(), uid: first, reason: DownReason::Quarantined }
        );
        assert_eq!(n2.event(), NodeEvent::Quarantined { by: first });
        assert_eq!(n2.remote().uid(), second);
        match action {
            OnQuarantine::Stop => n2.wait_until_ended(LONG).unwrap(),
            _ => {
                network.seconds(30);
                n2.no_event();
            }
        }
    }
}

#[test]
fn nodes_of_other_clusters_systems_and_names_refuse_each_other() {
    let network = Network::new();
    let n1 = network.node("n1");
    let other_system = network.node_of("other", "n2", |node| node);
    n1.remote().connect("n2");
    assert_eq!(n1.event(), NodeEvent::LinkRefused { node: "n2".into(), reason: RefusalReason::System });
    // Another fabric, another cluster: nothing is heard of it.
    let other_cluster = network.node_with("n3", |node| node.cluster("other"));
    n1.remote().connect("n3");
    network.seconds(25);
    n1.no_event();
    other_cluster.no_event();
    drop(other_system);
}

#[test]
fn a_name_that_no_other_node_has_begins_no_link() {
    let network = Network::new();
    let (n1, n2) = (network.node("n1"), network.node("n2"));
    for name in ["", "n1", "n.2", "n2 ", "n:2", "n2\r\n", "*", ">", &"n".repeat(65)] {
        n1.remote().connect(name);
    }
    network.seconds(25);
    n1.no_event();
    assert!(n1.remote().links().is_empty());
    link(&n1, &n2);
    assert_eq!(n1.remote().links().len(), 1);
}

#[test]
fn each_refusal_says_what_to_do() {
    for (reason, part) in [
        (RefusalReason::Cluster, "`Node::cluster`"),
        (RefusalReason::System, "`System::builder`"),
        (RefusalReason::Protocol, "upgrade the node with the older crate"),
        (RefusalReason::OwnName, "give each node a name of its own"),
        (RefusalReason::DuplicateName, "end that system"),
        (RefusalReason::Invalid, "upgrade the node with the older crate"),
    ] {
        let text = reason.to_string();
        assert!(text.split_once(": ").is_some_and(|(_, remedy)| remedy.contains(part)), "{text}");
    }
}

#[test]
fn a_second_node_of_one_name_is_refused_while_the_first_one_lives() {
    let network = Network::new();
    let (n1, n2) = linked(&network);
    let twin = network.node("n2");
    twin.remote().connect("n1");
    let mut refused = false;
    for _ in 0..10 {
        network.seconds(1);
        refused |= matches!(n1.remote().links()[..], [ref link] if link.uid == n2.remote().uid());
    }
    assert!(refused, "the living node keeps its link");
    assert_eq!(
        twin.event(),
        NodeEvent::LinkRefused { node: "n1".into(), reason: RefusalReason::DuplicateName }
    );
}

#[cfg(feature = "config")]
#[test]
fn settings_for_another_engine_are_refused_and_not_passed_over() {
    let file = "[remote.nats]\nservers = ['nats://127.0.0.1:4222']";
    let node = Node::new("n1").engine(InProcess::new());
    let builder = System::builder("demo").node(node).config(file).expect("a sound file");
    let text = builder.build().map(drop).expect_err("it is refused").to_string();
    assert!(text.contains("`[remote.nats]`") && text.contains("take the section out"), "{text}");
    let empty = System::builder("demo").node(Node::new("n1").engine(InProcess::new()));
    assert!(empty.config("[remote.nats]").expect("a sound file").build().is_ok());
}

fn fault(node: Node) -> (String, NodeError) {
    let error = System::builder("demo").node(node).build().map(drop).expect_err("it is refused");
    let text = error.to_string();
    let pointsman::system::BuildError::Node { error, .. } = error else { panic!("{text}") };
    (text, *error.downcast::<NodeError>().expect("the node's error"))
}

#[test]
fn a_node_that_cannot_be_is_refused_with_what_to_do() {
    let node = |name: &str| Node::new(name).engine(InProcess::new());
    let detector = DetectorSettings::new;
    for (node, parts) in [
        (node(""), ["node \"\"", "1 to 64 ASCII letters"]),
        (node("n:1"), ["\"n:1\" is no name", "1 to 64 ASCII letters"]),
        (node("n1").cluster("a.b"), ["\"a.b\" is no name", "1 to 64 ASCII letters"]),
        (node("n1").roles(["front end"]), ["\"front end\" is no role", "1 to 64"]),
        (node("n1").message::<u8>().message::<u8>(), ["u8 is registered already", "once"]),
        (node("n1").limits(Limits::new().envelope(1)), ["the limit envelope is 1", "must be a whole number"]),
        (node("n1").roles((0..129).map(|role| role.to_string())), ["129 roles", "at most 128"]),
        (node("n1").lanes(NonZeroU8::MAX), ["255 lanes", "at most 16"]),
        (
            node("n1").detector(detector().heartbeat(Duration::ZERO)),
            ["heartbeat of the detector is 0ns", "at least 10ms"],
        ),
        (
            node("n1").detector(detector().threshold(f64::NAN)),
            ["threshold of the detector is NaN", "above 0"],
        ),
        (node("n1").detector(detector().threshold(0.0)), ["threshold of the detector is 0", "above 0"]),
        (node("n1").detector(detector().window(0)), ["window of the detector is 0", "from 1 to 10000"]),
        (
            node("n1").detector(detector().window(usize::MAX)),
            ["window of the detector is", "from 1 to 10000"],
        ),
        (
            node("n1").detector(detector().acceptable_pause(Duration::ZERO)),
            ["acceptable-pause of", "at least 1ms"],
        ),
        (
            node("n1").detector(detector().acceptable_pause(Duration::MAX)),
            ["acceptable-pause of", "at most 86400s"],
        ),
        (
            node("n1").down_after(Duration::ZERO),
            ["down-after of the detector is 0ns", "at least heartbeat, 1s"],
        ),
        (node("n1").down_after(Duration::MAX), ["down-after of the detector is", "at most 86400s"]),
        (Node::new("n1"), ["it has no engine", "Node::engine"]),
    ] {
        let (text, error) = fault(node);
        for part in parts {
            assert!(text.contains(part), "{text}");
        }
        let _ = error.source();
    }
}
