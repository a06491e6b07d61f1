//! The statistics of a node: what it has shipped and received is in the balance, and its links have accounts of their own.

use crate::network::{LONG, Network, TestNode, link, wait_until};
use pointsman::prelude::*;
use pointsman::remote::{LinkReport, LinkState, Node, Policy, Wire};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Note(u32);

impl Wire for Note {
    const NAME: &'static str = "test.Note";
}

/// Passes on what it notes.
struct Notes(Sender<u32>);

impl Actor for Notes {
    type Message = Note;
    fn receive(&mut self, Note(number): Note, _: &mut Context<Note>) -> HandlerResult {
        Ok(self.0.send(number)?)
    }
}

/// A node whose actor `notes` tells of its messages.
fn node(network: &Network, name: &str) -> (TestNode, Receiver<u32>) {
    let describe = |node: Node| node.message::<Note>().policy(Policy::closed().allow_path("/user/*"));
    let node = network.node_with(name, describe);
    let (sender, noted) = channel();
    node.actor("notes").spawn(move || Notes(sender.clone())).expect("the name is free");
    (node, noted)
}

fn tell(from: &TestNode, to: &str, numbers: u32) {
    let notes = from.select(&format!("pointsman://demo@{to}/user/notes")).expect("a sound path");
    (0..numbers).for_each(|number| assert_eq!(notes.tell(Note(number)).reached, 1));
}

fn hear(noted: &Receiver<u32>, numbers: u32) {
    (0..numbers).for_each(|number| assert_eq!(noted.recv_timeout(LONG), Ok(number)));
}

/// The page of a node for Prometheus, of which no two samples have the same name and labels.
fn page(node: &TestNode) -> String {
    let mut page = String::new();
    node.stats().write_openmetrics(&mut page).expect("a string takes all");
    let mut seen = HashSet::new();
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples.for_each(|line| assert!(seen.insert(line.rsplit_once(' ').expect("a value").0), "{line}"));
    page
}

/// The labels and values of the samples of this name.
fn samples<'p>(page: &'p str, name: &str) -> Vec<(&'p str, u64)> {
    let of_name = page.lines().filter_map(|line| line.strip_prefix(name));
    let of_name = of_name.filter(|rest| rest.starts_with(['{', ' ']));
    let parts = of_name.map(|rest| rest.rsplit_once(' ').expect("a value"));
    parts.map(|(labels, value)| (labels, value.parse().expect("a count"))).collect()
}

fn sample(page: &str, name: &str) -> u64 {
    let [(_, value)] = samples(page, name)[..] else { panic!("a single sample of {name}: {page}") };
    value
}

/// The value of `pointsman:balance`, by the rule of examples/prometheus: sums over these names.
fn balance(page: &str) -> i128 {
    let rule = include_str!("../../examples/prometheus/pointsman.rules.yml");
    let sum = |names: &[&str]| -> i128 {
        assert!(rule.contains(&format!("{{__name__=~\"{}\"}}", names.join("|"))), "the rule has {names:?}");
        let values = names.iter().flat_map(|name| samples(page, name));
        values.map(|(_, value)| i128::from(value)).sum()
    };
    let entered = sum(&["pointsman_sent_total", "pointsman_received_total"]);
    let accounted =
        ["pointsman_messages_total", "pointsman_queued", "pointsman_outgoing", "pointsman_shipped_total"];
    entered - sum(&accounted)
}

/// Two nodes that have told each other 100 and 30 notes.
fn two(network: &Network) -> [TestNode; 2] {
    let ((n1, noted_by_1), (n2, noted_by_2)) = (node(network, "n1"), node(network, "n2"));
    link(&n1, &n2);
    tell(&n1, "n2", 100);
    tell(&n2, "n1", 30);
    hear(&noted_by_2, 100);
    hear(&noted_by_1, 30);
    network.settle();
    [n1, n2]
}

/// The families of a link that do not depend on reasons, with the values that its report has.
fn families(report: &LinkReport) -> [(&'static str, u64); 12] {
    [
        ("queued", report.queued),
        ("shipped_total", report.shipped),
        ("confirmed_total", report.confirmed),
        ("lost_total", report.lost),
        ("in_doubt", report.in_doubt),
        ("repeated_total", report.repeated),
        ("received_total", report.received),
        ("refused_control_total", report.refused_control),
        ("lost_replies_total", report.lost_replies),
        ("overdue_total", report.overdue),
        ("malformed_total", report.malformed),
        ("stale_total", report.stale),
    ]
}

#[test]
fn a_node_that_has_shipped_and_received_is_in_balance() {
    let network = Network::new();
    let [n1, n2] = two(&network);
    let before = n1.stats();
    assert_eq!((before.ledger.shipped, before.ledger.received, before.ledger.balance()), (100, 30, 0));
    for (node, shipped, received) in [(&n1, 100, 30), (&n2, 30, 100)] {
        let page = page(node);
        assert_eq!(sample(&page, "pointsman_shipped_total"), shipped);
        assert_eq!(sample(&page, "pointsman_received_total"), received);
        assert_eq!((sample(&page, "pointsman_outgoing"), balance(&page)), (0, 0), "{page}");
    }
    // No node of this name is there, so the messages wait.
    tell(&n1, "n3", 5);
    let stats = n1.stats();
    assert_eq!((stats.ledger.queued, stats.ledger.balance()), (5, 0));
    let since = stats.since(&before).ledger;
    assert_eq!((since.sent, since.shipped, since.received), (5, 0, 0));
    let page = page(&n1);
    assert_eq!((sample(&page, "pointsman_outgoing"), balance(&page)), (5, 0), "{page}");
    // The end of the system makes dead letters of them.
    let ledger = n1.end();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (5, 0), "{ledger}");
    assert_eq!(n2.end().balance(), 0);
}

#[test]
fn a_link_has_its_account_by_node_and_uid_until_five_minutes_behind_its_end() {
    let network = Network::new();
    let [n1, n2] = two(&network);
    // A refusal, whose reason is a label.
    let nowhere = n1.select("pointsman://demo@n2/user/nowhere").expect("a sound path");
    assert_eq!(nowhere.tell(Note(0)).reached, 1);
    wait_until(|| n2.remote().links()[0].refused.total() == 1);
    let shown = page(&n2);
    let labels = format!("{{node=\"n1\",uid=\"{}\"", n1.remote().uid());
    assert_eq!(
        samples(&shown, "pointsman_link_refused_total"),
        [(format!("{labels},reason=\"no_actor\"}}").as_str(), 1)]
    );
    assert_eq!(balance(&shown), 0);
    network.seconds(2);
    for (node, other) in [(&n1, &n2), (&n2, &n1)] {
        let (shown, report) = (page(node), node.remote().links().remove(0));
        let labels = format!("{{node=\"{}\",uid=\"{}\"}}", other.remote().node(), other.remote().uid());
        for (name, value) in families(&report) {
            assert_eq!(samples(&shown, &format!("pointsman_link_{name}")), [(labels.as_str(), value)]);
        }
    }
    n2.end();
    wait_until(|| n1.remote().links()[0].state == LinkState::Ended);
    network.seconds(299);
    assert_eq!(sample(&page(&n1), "pointsman_link_shipped_total"), 101);
    network.seconds(2);
    let shown = page(&n1);
    assert!(!shown.contains("pointsman_link_"), "{shown}");
    assert_eq!(n1.remote().links().len(), 1, "the report has it still");
    assert_eq!((sample(&shown, "pointsman_shipped_total"), balance(&shown)), (101, 0));
}

#[test]
fn of_several_links_to_a_start_the_last_is_shown() {
    let network = Network::new();
    let [n1, n2] = two(&network);
    let [before, uid_of_1] = [n2.remote().uid(), n1.remote().uid()];
    n2.remote().rejoin();
    let is_up = |node: &TestNode| node.remote().links().iter().any(|link| link.state == LinkState::Up);
    while !(is_up(&n1) && is_up(&n2)) || n1.remote().links().len() < 2 {
        network.seconds(1);
    }
    assert_eq!(n2.remote().links().len(), 2);
    let [first, second] = [page(&n1), page(&n2)];
    let of_two: HashSet<String> =
        [before, n2.remote().uid()].map(|uid| format!("{{node=\"n2\",uid=\"{uid}\"}}")).into();
    let shown = samples(&first, "pointsman_link_shipped_total");
    assert_eq!(shown.iter().map(|(labels, _)| (*labels).to_owned()).collect::<HashSet<_>>(), of_two);
    let labels = format!("{{node=\"n1\",uid=\"{uid_of_1}\"}}");
    assert_eq!(samples(&second, "pointsman_link_shipped_total"), [(labels.as_str(), 0)]);
    assert_eq!((balance(&first), balance(&second)), (0, 0));
}

#[cfg(feature = "console")]
#[test]
fn the_snapshot_has_the_terms_of_nodes_and_the_links() {
    use pointsman::net::SocketAddress;
    use std::io::{Read, Write};

    let snapshot = |node: &System| -> serde_json::Value {
        let server = node.serve_stats(SocketAddress::tcp("127.0.0.1:0")).expect("a free port");
        let address = server.local_addr().expect("a TCP port");
        let mut client = std::net::TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(LONG)).unwrap();
        client.write_all(b"GET /snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").expect("a head").1).expect("a page of JSON")
    };
    let network = Network::new();
    let [n1, n2] = two(&network);
    let shown = snapshot(&n1);
    let ledger = |name: &str| shown["ledger"][name].as_u64().expect(name);
    assert_eq!((ledger("shipped"), ledger("received")), (100, 30));
    let accounted = ["handled", "dead_lettered", "handed_back", "dropped", "skipped", "queued", "shipped"];
    let accounted: u64 = accounted.into_iter().map(ledger).sum();
    assert_eq!(ledger("sent") + ledger("received"), accounted);
    let [of_link] = &shown["links"].as_array().expect("a list")[..] else { panic!("a link: {shown}") };
    let report = n1.remote().links().remove(0);
    assert_eq!((&of_link["node"], &of_link["state"]), (&"n2".into(), &"up".into()));
    assert_eq!(of_link["uid"], n2.remote().uid().to_string());
    for (name, value) in families(&report) {
        assert_eq!(of_link[name.trim_end_matches("_total")], value, "{name}");
    }
    assert_eq!(of_link["refused"], serde_json::json!({}));
    let without = System::builder("without").build().expect("a system");
    assert_eq!(snapshot(&without)["links"], serde_json::Value::Null);
}
