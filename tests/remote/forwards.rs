//! References and reply ports outside of a send, and calls that are handed on over several nodes.

use crate::network::{LONG, Network, TestNode, link, wait_until};
use pointsman::ask::{Ask, AskError};
use pointsman::prelude::*;
use pointsman::remote::{Node, Policy, Wire, wire_id};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, Sender, channel};

#[derive(Debug, Serialize, Deserialize)]
struct Name;
impl Request for Name {
    type Reply = String;
}

/// A call that goes to the next clerk, as long as there is one.
#[derive(Debug, Serialize, Deserialize)]
struct Job {
    call: Call<Name>,
    way: Vec<ActorRef<Job>>,
}

impl Wire for Job {
    const NAME: &'static str = "test.Job";
}

/// Hands calls on, and gives those at their last place to the test.
struct Clerk(Sender<Call<Name>>);

impl Actor for Clerk {
    type Message = Job;
    fn receive(&mut self, Job { call, mut way }: Job, _: &mut Context<Job>) -> HandlerResult {
        match way.pop() {
            Some(next) => next.tell(Job { call, way }),
            None => self.0.send(call)?,
        }
        Ok(())
    }
}

/// Three nodes that are linked, with a clerk at each of the others.
struct Chain {
    network: Network,
    n1: TestNode,
    n2: TestNode,
    n3: TestNode,
    /// The clerks as n1 knows them.
    second: ActorRef<Job>,
    third: ActorRef<Job>,
    /// The calls that have come to n3.
    calls: Receiver<Call<Name>>,
}

impl Chain {
    fn new() -> Self {
        let network = Network::new();
        let with_jobs = |node: Node| node.message::<Job>().policy(Policy::closed().allow_path("/user/*"));
        let node = |name: &str| network.node_with(name, with_jobs);
        let (n1, n2, n3) = (node("n1"), node("n2"), node("n3"));
        for (one, other) in [(&n1, &n2), (&n1, &n3), (&n2, &n3)] {
            link(one, other);
        }
        let (sender, calls) = channel();
        let passed_on = sender.clone();
        n2.actor("clerk").spawn(move || Clerk(passed_on.clone())).expect("the name is free");
        n3.actor("clerk").spawn(move || Clerk(sender.clone())).expect("the name is free");
        let find = |node: &str| {
            let path = format!("pointsman://demo@{node}/user/clerk");
            n1.resolve::<Job>(&path, LONG).wait().expect("it is there")
        };
        let (second, third) = (find("n2"), find("n3"));
        Self { network, n1, n2, n3, second, third, calls }
    }

    /// Asks n2, which hands the call on to n3.
    fn ask(&self) -> (Ask<String>, Call<Name>) {
        let way = vec![self.third.clone()];
        let ask = self.second.ask_with(|reply_to| Job { call: Call::new(Name, reply_to), way });
        (ask, self.calls.recv_timeout(LONG).expect("it comes to n3"))
    }
}

#[test]
fn a_call_that_is_handed_on_is_answered_over_the_same_nodes() {
    let chain = Chain::new();
    let (ask, call) = chain.ask();
    assert!(call.reply_to.wanted());
    call.answer(|Name| "n3".to_owned());
    assert_eq!(ask.within(LONG).wait(), Ok("n3".to_owned()));
    // A call that is dropped there.
    let (ask, call) = chain.ask();
    drop(call);
    assert!(matches!(ask.within(LONG).wait(), Err(AskError::NoReply { .. })));
    let Chain { n1, n2, n3, .. } = chain;
    let (first, second, third) = (n1.end(), n2.end(), n3.end());
    assert_eq!((first.shipped, second.received, second.shipped, third.received), (2, 2, 2, 2));
    assert_eq!((first.balance(), second.balance(), third.balance()), (0, 0, 0));
}

#[test]
fn the_end_of_the_last_node_ends_the_ask_of_the_first_one() {
    let chain = Chain::new();
    let (ask, call) = chain.ask();
    let Chain { n1, n2, n3, .. } = chain;
    n3.end();
    assert_eq!(ask.within(LONG).wait(), Err(AskError::PeerGone { target: None }));
    assert!(!call.reply_to.wanted());
    drop(call);
    assert_eq!((n1.end().balance(), n2.end().balance()), (0, 0));
}

#[test]
fn the_end_of_a_node_in_between_ends_the_ask_and_nothing_is_wanted_behind_it() {
    let chain = Chain::new();
    let (ask, call) = chain.ask();
    let Chain { n1, n2, n3, .. } = chain;
    n2.end();
    assert_eq!(ask.within(LONG).wait(), Err(AskError::PeerGone { target: None }));
    wait_until(|| !call.reply_to.wanted());
    call.answer(|Name| "too late".to_owned());
    assert_eq!((n1.end().balance(), n3.end().balance()), (0, 0));
}

#[test]
fn a_node_in_between_that_is_not_heard_any_more_has_gone_too() {
    let chain = Chain::new();
    let (ask, call) = chain.ask();
    chain.n1.cut(true);
    chain.network.seconds(20);
    assert_eq!(ask.within(LONG).wait(), Err(AskError::PeerGone { target: None }));
    // n2 hears that it is down for n1, and tells n3 that the answer is not wanted.
    wait_until(|| {
        chain.network.seconds(1);
        !call.reply_to.wanted()
    });
}

#[test]
fn an_answer_is_not_wanted_any_more_at_the_last_node_when_the_asker_has_given_up() {
    let chain = Chain::new();
    let (ask, call) = chain.ask();
    let (other, kept) = chain.ask();
    chain.network.seconds(5);
    assert!(call.reply_to.wanted() && kept.reply_to.wanted());
    drop(ask);
    wait_until(|| {
        chain.network.seconds(1);
        !call.reply_to.wanted()
    });
    assert!(kept.reply_to.wanted());
    kept.answer(|Name| "n3".to_owned());
    assert_eq!(other.within(LONG).wait(), Ok("n3".to_owned()));
    drop(call);
    let Chain { n1, n2, n3, .. } = chain;
    assert_eq!((n1.end().balance(), n2.end().balance(), n3.end().balance()), (0, 0, 0));
}

#[test]
fn references_and_ports_are_serialized_only_in_messages_to_other_nodes() {
    let chain = Chain::new();
    let of_actor = "an ActorRef is serialized only while it is sent to another node";
    let of_port = "a reply port is serialized only while it is sent to another node";
    let fault = |value: serde_json::Result<String>| value.expect_err("it is refused").to_string();
    let local = chain.n1.actor("clerk").spawn(|| Clerk(channel().0)).expect("the name is free");
    let function: ActorRef<Job> = ActorRef::from_fn(|_| {});
    for reference in [&local, &chain.third, &function] {
        assert_eq!(fault(serde_json::to_string(reference)), of_actor);
    }
    let (ask, call) = chain.ask();
    assert_eq!(fault(serde_json::to_string(&call.reply_to)), of_port);
    assert_eq!(fault(serde_json::to_string(&call)), of_port);
    // A port that stays here, too.
    let own = local.ask_with(|reply_to: ReplyTo<String>| {
        assert_eq!(fault(serde_json::to_string(&reply_to)), of_port);
        Job { call: Call::new(Name, reply_to), way: Vec::new() }
    });
    drop(own);

    let fault = |text: &str, is_port: bool| match is_port {
        true => {
            serde_json::from_str::<ReplyTo<String>>(text).map(drop).expect_err("it is refused").to_string()
        }
        false => {
            serde_json::from_str::<ActorRef<Job>>(text).map(drop).expect_err("it is refused").to_string()
        }
    };
    let type_id = wire_id(Job::NAME, Job::VERSION);
    let written = format!(r#"{{"node":null,"path":"/user/clerk","uid":1,"system":0,"type_id":{type_id}}}"#);
    let text = fault(&written, false);
    assert!(text.contains("an ActorRef is deserialized only in a message of another node"), "{text}");
    let text = fault("0", true);
    assert!(text.contains("a reply port is deserialized only in a message of another node"), "{text}");

    // The failed attempts have taken nothing away.
    call.answer(|Name| "n3".to_owned());
    assert_eq!(ask.within(LONG).wait(), Ok("n3".to_owned()));
}
