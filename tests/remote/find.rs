//! Actors of other nodes that are found by selections and paths.

use crate::network::{LONG, Network, TestNode, link};
use pointsman::path::PathFault;
use pointsman::prelude::*;
use pointsman::remote::{Node, Policy};
use pointsman::{DeadLetterReason, SpawnError};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Says what it gets.
struct Says(Sender<String>);

impl Actor for Says {
    type Message = String;
    fn receive(&mut self, text: String, _: &mut Context<String>) -> HandlerResult {
        Ok(self.0.send(text)?)
    }
}

/// Takes a type that no node has registered.
struct Odd;

impl Actor for Odd {
    type Message = u16;
    fn receive(&mut self, _: u16, _: &mut Context<u16>) -> HandlerResult {
        Ok(())
    }
}

fn says(node: &TestNode, name: &str) -> Receiver<String> {
    let (sender, said) = channel();
    node.actor(name).spawn(move || Says(sender.clone())).expect("the name is free");
    said
}

fn open(node: Node) -> Node {
    node.message::<String>().policy(Policy::open())
}

fn two(network: &Network) -> (TestNode, TestNode) {
    let (n1, n2) = (network.node_with("n1", open), network.node_with("n2", open));
    link(&n1, &n2);
    (n1, n2)
}

fn said(said: &Receiver<String>) -> String {
    said.recv_timeout(LONG).expect("it says something")
}

/// The paths of the actors that a selection has found, in order; an empty text for none.
fn identified(node: &TestNode, text: &str, count: usize) -> Vec<String> {
    let (sender, found) = channel();
    let sender = Mutex::new(sender);
    let to: ActorRef<Option<AnyActorRef>> = ActorRef::from_fn(move |actor: Option<AnyActorRef>| {
        let path = actor.map_or_else(String::new, |actor| {
            assert!(actor.typed::<String>().is_ok() && actor.typed::<u32>().is_err());
            actor.path().to_string()
        });
        sender.lock().unwrap().send(path).expect("the test waits");
    });
    node.select(text).expect("a selection").identify(&to, |actor| actor);
    let mut paths: Vec<String> = (0..count).map(|_| said(&found)).collect();
    paths.sort();
    assert!(found.try_recv().is_err());
    paths
}

#[test]
fn actors_of_other_nodes_answer_requests_for_their_references() {
    let network = Network::new();
    let (n1, n2) = two(&network);
    let (first, _second) = (says(&n2, "w1"), says(&n2, "w2"));
    n2.actor("odd").spawn(|| Odd).unwrap();
    let all = ["pointsman://demo@n2/user/w1", "pointsman://demo@n2/user/w2"];
    assert_eq!(identified(&n1, "pointsman://demo@n2/user/w*", 2), all);
    assert_eq!(identified(&n1, "pointsman://demo@n2/user/w1", 1), all[..1]);
    assert_eq!(identified(&n1, "pointsman://demo@n2/user/none", 1), [""]);
    // Its type is not known.
    assert_eq!(identified(&n1, "pointsman://demo@n2/user/odd", 1), [""]);
    assert_eq!(identified(&n1, "pointsman://demo@n2/user/*", 3), ["", all[0], all[1]]);

    let one = |text: &str| n1.select(text).expect("a selection").resolve_one(LONG);
    let found = one(all[0]).wait().expect("it is there");
    let far = n1.resolve::<String>(all[0], LONG).wait().expect("it is there");
    assert_eq!((found.typed::<String>(), Some(found)), (Ok(far.clone()), far.untyped()));
    far.tell("hello");
    assert_eq!(said(&first), "hello");
    assert!(all.contains(&one("pointsman://demo@n2/user/w*").wait().unwrap().path().to_string().as_str()));
    assert!(one("pointsman://demo@n2/user/none").wait().is_err());
    assert!(one("pointsman://demo@n2/user/odd").wait().is_err());
    // A node that never comes.
    let absent = one("pointsman://demo@n9/user/w1");
    network.seconds(25);
    assert!(absent.wait().is_err());
    assert_eq!((n1.end().balance(), n2.end().balance()), (0, 0));
}

#[test]
fn a_closed_node_tells_listed_paths_alone() {
    let network = Network::new();
    let n1 = network.node_with("n1", open);
    let listed = |node: Node| node.message::<String>().policy(Policy::closed().allow_path("/user/w*"));
    let n2 = network.node_with("n2", listed);
    let (_first, _other) = (says(&n2, "w1"), says(&n2, "other"));
    link(&n1, &n2);
    assert_eq!(identified(&n1, "pointsman://demo@n2/user/w1", 1), ["pointsman://demo@n2/user/w1"]);
    for refused in ["pointsman://demo@n2/user/w*", "pointsman://demo@n2/user/other"] {
        assert_eq!(identified(&n1, refused, 1), [""]);
    }
    assert_eq!(n2.remote().links()[0].refused.of(DeadLetterReason::NotAllowed), 2);
}

#[test]
fn groups_by_path_reach_other_nodes_with_and_without_wildcards() {
    let network = Network::new();
    let (n1, n2) = two(&network);
    let (first, second, here) = (says(&n2, "w1"), says(&n2, "w2"), says(&n1, "here"));
    let group = n1.router("group").group_at::<String>(["pointsman://demo@n2/user/w*", "/user/here"]);
    let group = group.spawn().expect("the paths are sound");
    group.tell("to all");
    group.tell("to one");
    group.tell("again");
    for (heard, expected) in [(&first, "to all"), (&second, "to all"), (&here, "to one")] {
        assert_eq!(said(heard), expected);
    }
    assert_eq!((said(&first), said(&second)), ("again".to_owned(), "again".to_owned()));
    let error = n1.router("odd").group_at::<u16>(["pointsman://demo@n2/user/odd"]).spawn().unwrap_err();
    let SpawnError::RouteePath { error, .. } = error else { panic!("{error}") };
    assert_eq!(error.fault, PathFault::Unregistered);
    assert!(error.to_string().contains("u16 is not registered"), "{error}");
    let exact = n1.router("exact").group_at_exact::<String>(["pointsman://demo@n2/user/w*"]).spawn();
    assert!(matches!(exact, Err(SpawnError::RouteeWildcard { .. })));
    network.seconds(2);
    // One message goes over, and each actor there gets a copy.
    let (sent, came) = (n1.end(), n2.end());
    assert_eq!((sent.shipped, sent.balance()), (2, 0));
    assert_eq!((came.received, came.balance()), (4, 0));
}

#[test]
#[cfg(feature = "config")]
fn paths_of_a_group_in_a_file_may_be_those_of_other_nodes() {
    let network = Network::new();
    let file = |path: &str| {
        let text = "[deployment.\"/group\".router]\nrouter = \"round-robin-group\"\nroutees.paths = [";
        System::builder("demo").config(&format!("{text}\"{path}\"]\n"))
    };
    let builder = file("pointsman://demo@n2/user/w1").expect("a sound file");
    let n1 = network.node_by(builder, "n1", open);
    let n2 = network.node_with("n2", open);
    let first = says(&n2, "w1");
    link(&n1, &n2);
    let group = n1.router("group").group_from_config::<String>().spawn().expect("the file has the paths");
    group.tell("by the file");
    assert_eq!(said(&first), "by the file");
    assert!(file("pointsman://other@n2/user/w1").is_err());
    assert!(file("pointsman://demo@n2/user/../w1").is_err());
    // A system that is no node has no other nodes.
    let alone = file("pointsman://demo@n2/user/w1").expect("a sound file").build();
    let error = alone.map(drop).expect_err("no node is described").to_string();
    assert!(error.contains("another system"), "{error}");
}
