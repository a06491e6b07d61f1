//! References to actors of nodes that this node is not linked with, as they come in messages of others.

use crate::network::{LONG, Network, TestNode, link, wait_until};
use pointsman::prelude::*;
use pointsman::remote::{Limits, Node, Policy, Wire};
use pointsman::{DeadLetterReason, Terminated};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A message with a reference.
#[derive(Serialize, Deserialize)]
struct Introduce(ActorRef<String>);

impl Wire for Introduce {
    const NAME: &'static str = "test.Introduce";
}

/// Hands references to the test.
struct Introduced(Sender<ActorRef<String>>);

impl Actor for Introduced {
    type Message = Introduce;
    fn receive(&mut self, Introduce(actor): Introduce, _: &mut Context<Introduce>) -> HandlerResult {
        self.0.send(actor)?;
        Ok(())
    }
}

struct Noted(Sender<String>);

impl Actor for Noted {
    type Message = String;
    fn receive(&mut self, text: String, _: &mut Context<String>) -> HandlerResult {
        self.0.send(text)?;
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<String>) {
        let _ = self.0.send("stopped".into());
    }
}

/// Watches an actor, and hands notices to the test.
struct Watcher(ActorRef<String>, Sender<Terminated>);

impl Actor for Watcher {
    type Message = ();
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        Ok(ctx.watch(&self.0)?)
    }
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn terminated(&mut self, end: Terminated, _: &mut Context<()>) -> HandlerResult {
        self.1.send(end)?;
        Ok(())
    }
}

fn open(node: Node) -> Node {
    let limits = Limits::new().envelope(4 << 10).batch(4 << 10).link_queue(64 << 10);
    node.message::<String>().message::<Introduce>().policy(Policy::open()).limits(limits)
}

/// Three nodes, of which the second is linked with the others, and an actor of the third that the first knows.
struct Three {
    network: Network,
    n1: TestNode,
    n2: TestNode,
    n3: TestNode,
    far: ActorRef<String>,
    notes: Receiver<String>,
}

fn three() -> Three {
    let network = Network::new();
    let [n1, n2, n3] = ["n1", "n2", "n3"].map(|name| network.node_with(name, open));
    link(&n1, &n2);
    link(&n2, &n3);
    let (note, notes) = channel();
    n3.actor("noted").spawn(move || Noted(note.clone())).expect("the name is free");
    let (hand, introduced) = channel();
    n1.actor("introduced").spawn(move || Introduced(hand.clone())).expect("the name is free");
    let of_third = n2.resolve::<String>("pointsman://demo@n3/user/noted", LONG).wait().expect("it is there");
    let of_first =
        n2.resolve::<Introduce>("pointsman://demo@n1/user/introduced", LONG).wait().expect("it is there");
    of_first.tell(Introduce(of_third));
    let far = introduced.recv_timeout(LONG).expect("it is introduced");
    assert!(n1.remote().links().iter().all(|link| link.node != "n3" || link.shipped == 0));
    Three { network, n1, n2, n3, far, notes }
}

fn watch(node: &TestNode, actor: &ActorRef<String>) -> Receiver<Terminated> {
    let (notice, notices) = channel();
    let actor = actor.clone();
    node.spawn(move || Watcher(actor.clone(), notice.clone())).expect("there is room");
    notices
}

#[test]
fn a_watch_alone_greets_the_node() {
    let Three { n1, n3, far, notes, .. } = three();
    let notices = watch(&n1, &far);
    wait_until(|| n1.remote().links().iter().any(|link| link.node == "n3" && link.uid == n3.remote().uid()));
    n3.actor_at("/user/noted").expect("it lives").stop();
    let end = notices.recv_timeout(LONG).expect("the end is told");
    assert!(!end.node_down);
    assert_eq!(notes.recv_timeout(LONG).as_deref(), Ok("stopped"));
}

#[test]
fn a_watch_of_an_actor_whose_node_does_not_answer_ends() {
    let Three { network, n1, n3, far, .. } = three();
    n3.cut(true);
    let notices = watch(&n1, &far);
    // The time of the greeting begins when the watcher has had its turn.
    let mut told = None;
    wait_until(|| {
        network.seconds(1);
        told = notices.try_recv().ok();
        told.is_some()
    });
    assert!(told.is_some_and(|end| end.node_down));
    // That start of the node is not talked to any more.
    wait_until(|| far.is_closed());
    n3.cut(false);
    network.seconds(25);
    assert!(far.is_closed());
    assert!(notices.try_recv().is_err(), "a watch is told once");
}

#[test]
fn a_stop_waits_for_the_link() {
    let Three { n1, far, notes, .. } = three();
    far.stop();
    assert_eq!(notes.recv_timeout(LONG).as_deref(), Ok("stopped"));
    drop(n1);
}

#[test]
fn a_pill_comes_through_though_the_link_is_full() {
    let Three { network, n1, n2, n3, far, notes } = three();
    n3.cut(true);
    let text = "x".repeat(1000);
    let mut count = 0;
    while far.try_tell(text.clone()).is_ok() {
        count += 1;
    }
    assert!(count > 20, "the queue holds some: {count}");
    far.poison();
    n3.cut(false);
    // Hellos come again each second.
    network.seconds(3);
    for _ in 0..count {
        assert_eq!(notes.recv_timeout(LONG).as_deref(), Ok(&*text));
    }
    // A lane without messages shows the mark by a probe.
    network.seconds(2);
    assert_eq!(notes.recv_timeout(LONG).as_deref(), Ok("stopped"));
    network.settle();
    for node in [n1, n2, n3] {
        assert_eq!(node.end().balance(), 0);
    }
}

#[test]
fn messages_to_a_path_come_in_order_while_the_link_comes_up() {
    let network = Network::new();
    let (n1, n2) = (network.node_with("n1", open), network.node_with("n2", open));
    let (note, notes) = channel();
    n2.actor("noted").spawn(move || Noted(note.clone())).expect("the name is free");
    let path = "pointsman://demo@n2/user/noted";
    let group = n1.router("group").group_at::<String>([path]).spawn().expect("a sound path");
    // A lane has room for them, however late the engine is.
    for number in 0..1_000 {
        group.tell(number.to_string());
    }
    for number in 0..1_000 {
        assert_eq!(notes.recv_timeout(LONG), Ok(number.to_string()));
    }
    network.settle();
    let (sent, came) = (n1.end(), n2.end());
    assert_eq!((sent.balance(), came.balance(), sent.shipped, came.received), (0, 0, 1_000, 1_000));
}

#[test]
fn what_waits_for_a_node_is_bounded_in_bytes_and_lost_when_it_does_not_come() {
    let network = Network::new();
    let n1 = network.node_with("n1", open);
    let (letter, letters) = channel();
    let letter = std::sync::Mutex::new(letter);
    let _subscription = n1.dead_letters().subscribe(move |it| {
        let _ = letter.lock().unwrap().send(it.reason);
    });
    let selected = n1.select("pointsman://demo@n9/user/noted").expect("a selection");
    let text = "x".repeat(1000);
    for _ in 0..100 {
        let _ = selected.tell(text.clone());
    }
    let full = letters.try_iter().filter(|reason| *reason == DeadLetterReason::LinkFull).count();
    assert!((1..100).contains(&full), "{full} of 100 have found no room");
    assert_eq!(n1.ledger().queued, 100 - full as u64);
    network.seconds(25);
    let gone = letters.try_iter().filter(|reason| *reason == DeadLetterReason::NodeGone).count();
    assert_eq!((gone, n1.ledger().queued), (100 - full, 0));
    assert_eq!(n1.end().balance(), 0);
}
