//! References, messages and asks that cross between nodes.

use crate::network::{LONG, Network, TestNode, link, panic_of, wait_until};
use pointsman::ask::{AskError, NoReplyCause, RefusedBy};
use pointsman::prelude::*;
use pointsman::remote::{Limits, Node, NodeEvent, Policy, ResolveError, Wire};
use pointsman::{DeadLetterReason, SendError};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

#[derive(Debug, Serialize, Deserialize)]
struct Double(u32);
impl Request for Double {
    type Reply = u32;
}

/// What an echo takes.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    Say(String),
    Double(Call<Double>),
    Keep(Call<Double>),
    Release,
    Fail(Call<Double>),
    /// Sends itself by name to the reference.
    Introduce(ActorRef<Word>),
    /// Hands the call on.
    Forward(Call<Double>, ActorRef<Word>),
    Panic(Panics),
}

impl From<Call<Double>> for Word {
    fn from(call: Call<Double>) -> Self {
        Word::Double(call)
    }
}

impl Wire for Word {
    const NAME: &'static str = "test.Word";
}

#[derive(Debug, Serialize, Deserialize)]
struct Panics(#[serde(serialize_with = "panics")] u8);

fn panics<S: serde::Serializer>(_: &u8, _: S) -> Result<S::Ok, S::Error> {
    panic!("planted in serialize")
}

struct Echo {
    log: Sender<String>,
    kept: Vec<Call<Double>>,
    introduced: Option<ActorRef<Word>>,
}

impl Actor for Echo {
    type Message = Word;
    fn receive(&mut self, word: Word, ctx: &mut Context<Word>) -> HandlerResult {
        match word {
            Word::Say(text) => self.log.send(text)?,
            Word::Double(call) => call.answer(|Double(number)| 2 * number),
            Word::Keep(call) => {
                self.kept.push(call);
                self.log.send("kept".into())?;
            }
            Word::Release => self.kept.clear(),
            Word::Fail(call) => return call.try_answer(|_| Err(Failure::msg("it fails"))),
            Word::Introduce(to) => {
                self.log.send(format!("{} again: {}", to.path(), self.introduced.as_ref() == Some(&to)))?;
                to.tell(Word::Say(format!("from {}", ctx.path())));
                self.introduced = Some(to);
            }
            Word::Forward(call, to) => to.tell(Word::Double(call)),
            Word::Panic(_) => {}
        }
        Ok(())
    }
}

fn echo(node: &TestNode, name: &str) -> (ActorRef<Word>, Receiver<String>) {
    let (log, said) = channel();
    let spawned =
        node.actor(name).spawn(move || Echo { log: log.clone(), kept: Vec::new(), introduced: None });
    (spawned.expect("the name is free"), said)
}

fn with_words(node: Node) -> Node {
    node.message::<Word>().policy(Policy::closed().allow_path("/user/*"))
}

/// Two nodes, an echo on the second, and the reference to it on the first.
fn two(network: &Network) -> (TestNode, TestNode, ActorRef<Word>, Receiver<String>) {
    let (n1, n2) = (network.node_with("n1", with_words), network.node_with("n2", with_words));
    let (_, said) = echo(&n2, "echo");
    link(&n1, &n2);
    let far = find(&n1, "pointsman://demo@n2/user/echo");
    (n1, n2, far, said)
}

fn find(node: &TestNode, path: &str) -> ActorRef<Word> {
    node.resolve::<Word>(path, LONG).wait().expect("it is there")
}

fn said(said: &Receiver<String>) -> String {
    said.recv_timeout(LONG).expect("it says something")
}

fn letters(node: &TestNode) -> Receiver<(DeadLetterReason, String)> {
    let (sender, letters) = channel();
    let sender = Mutex::new(sender);
    let subscription = node.dead_letters().subscribe(move |letter| {
        let _ = sender.lock().unwrap().send((letter.reason, letter.recipient.to_string()));
    });
    std::mem::forget(subscription);
    letters
}

#[test]
fn messages_cross_in_order_and_both_books_balance() {
    let network = Network::new();
    let (n1, n2, far, heard) = two(&network);
    assert_eq!(far.path().to_string(), "pointsman://demo@n2/user/echo");
    assert_eq!(Some(far.uid()), n2.actor_at("/user/echo").ok().map(|actor| actor.uid()));
    assert!(!far.is_here() && !far.is_closed());
    for number in 0..1000 {
        far.tell(Word::Say(number.to_string()));
    }
    for number in 0..1000 {
        assert_eq!(said(&heard), number.to_string());
    }
    network.seconds(2);
    let links = n1.remote().links();
    assert_eq!((links[0].shipped, links[0].confirmed, links[0].lost, links[0].in_doubt), (1001, 1001, 0, 0));
    let (first, second) = (n1.end(), n2.end());
    // The request for the reference is an envelope, and no message.
    assert_eq!((first.sent, first.shipped, first.balance()), (1000, 1000, 0));
    assert_eq!((second.received, second.handled, second.balance()), (1000, 1000, 0));
}

#[test]
fn equal_references_are_one_and_others_differ() {
    let network = Network::new();
    let (n1, n2, far, _heard) = two(&network);
    assert_eq!(find(&n1, "pointsman://demo@n2/user/echo"), far);
    let (_, _other) = echo(&n2, "other");
    assert_ne!(find(&n1, "pointsman://demo@n2/user/other"), far);
    let local = find(&n2, "/user/echo");
    assert!(local.is_here());
    assert_eq!(find(&n2, "pointsman://demo@n2/user/echo"), local);
}

#[test]
fn references_cross_in_messages_and_come_home() {
    let network = Network::new();
    let (n1, n2, far, heard) = two(&network);
    let (home, at_home) = echo(&n1, "home");
    far.tell(Word::Introduce(home.clone()));
    assert_eq!(said(&heard), "pointsman://demo@n1/user/home again: false");
    assert_eq!(said(&at_home), "from /user/echo");
    // The same reference is the same at the other node.
    far.tell(Word::Introduce(home.clone()));
    assert_eq!(said(&heard), "pointsman://demo@n1/user/home again: true");
    assert_eq!(said(&at_home), "from /user/echo");
    // Its own, which comes home.
    far.tell(Word::Introduce(far.clone()));
    assert_eq!(said(&heard), "/user/echo again: false");
    assert_eq!(said(&heard), "from /user/echo");
    // To a third node: the reference goes to the actor, and nothing in between.
    let n3 = network.node_with("n3", with_words);
    let (_, at_third) = echo(&n3, "third");
    let third = find(&n3, "/user/third");
    link(&n3, &n2);
    find(&n3, "pointsman://demo@n2/user/echo").tell(Word::Introduce(third));
    assert_eq!(said(&heard), "pointsman://demo@n3/user/third again: false");
    assert_eq!(said(&at_third), "from /user/echo");
    drop((n1, n2, n3));
}

#[test]
fn asks_cross_and_end_in_each_way() {
    let network = Network::new();
    let (n1, n2, far, heard) = two(&network);
    assert_eq!(far.ask(Double(21)).within(LONG).wait(), Ok(42));
    let ask = |make: fn(Call<Double>) -> Word| {
        far.ask_with(move |reply_to| make(Call::new(Double(4), reply_to))).within(LONG)
    };
    // Its handler fails, or drops the call.
    let failed = ask(Word::Fail).wait().unwrap_err();
    assert!(matches!(failed, AskError::NoReply { cause: NoReplyCause::Failed, .. }), "{failed}");
    n2.actor_at("/user/echo").unwrap().stop();
    wait_until(|| n2.actor_at("/user/echo").is_err());
    let stopped = far.ask(Double(1)).within(LONG).wait().unwrap_err();
    assert!(stopped.is_stopped(), "{stopped}");
    drop(heard);

    let (_, heard) = echo(&n2, "keeper");
    let keeper = find(&n1, "pointsman://demo@n2/user/keeper");
    let keep = |make: fn(Call<Double>) -> Word| {
        keeper.ask_with(move |reply_to| make(Call::new(Double(4), reply_to))).within(LONG)
    };
    let dropped = keep(Word::Keep);
    assert_eq!(said(&heard), "kept");
    keeper.tell(Word::Release);
    let dropped = dropped.wait().unwrap_err();
    assert!(matches!(dropped, AskError::NoReply { cause: NoReplyCause::Ignored, .. }), "{dropped}");
    // Handed on to an actor of the asker's node.
    let (home, _at_home) = echo(&n1, "home");
    let forwarded = keeper.ask_with(move |reply_to| Word::Forward(Call::new(Double(8), reply_to), home));
    assert_eq!(forwarded.within(LONG).wait(), Ok(16));
    // The time is over by the asker's clock.
    let late = keeper
        .ask_with(|reply_to| Word::Keep(Call::new(Double(4), reply_to)))
        .within(std::time::Duration::from_secs(5));
    assert_eq!(said(&heard), "kept");
    let waiting = std::thread::spawn(move || late.wait());
    while !waiting.is_finished() {
        network.seconds(1);
    }
    assert!(matches!(waiting.join().unwrap(), Err(AskError::Timeout { .. })));
    // The node goes while it is asked.
    let gone = keep(Word::Keep);
    assert_eq!(said(&heard), "kept");
    n1.cut(true);
    network.seconds(20);
    let error = gone.wait().unwrap_err();
    assert_eq!(error, AskError::PeerGone { target: None });
    assert!(error.to_string().contains("its node is gone"), "{error}");
    // And is asked when it is gone: that was not sent.
    let error = keeper.ask(Double(1)).wait().unwrap_err();
    let is_unsent = matches!(error, AskError::Undeliverable { reason: DeadLetterReason::NodeGone, .. });
    assert!(is_unsent, "{error}");
    assert!(error.to_string().contains("its node is gone"), "{error}");
    assert_eq!(n1.ledger().asks.begun, {
        let asks = n1.ledger().asks;
        asks.answered + asks.no_reply + asks.timed_out + asks.undeliverable + asks.cancelled
    });
}

#[test]
fn what_cannot_go_out_comes_back_or_is_a_dead_letter() {
    let network = Network::new();
    let (n1, n2) = (
        network.node_with("n1", |node| {
            with_words(node).limits(Limits::new().envelope(2000).large_message(2000).link_queue(64 << 10))
        }),
        // A window that is used up soon.
        network.node_with("n2", |node| {
            with_words(node).limits(Limits::new().envelope(2000).batch(4096).receive_window(16 << 10))
        }),
    );
    let (_, _heard) = echo(&n2, "echo");
    link(&n1, &n2);
    let far = find(&n1, "pointsman://demo@n2/user/echo");
    let letters = letters(&n1);
    let large = || Word::Say("x".repeat(1998));
    let Err(SendError::TooLarge { message: Word::Say(text), size, max }) = far.try_tell(large()) else {
        panic!("it is too large");
    };
    assert_eq!((text.len(), size, max), (1998, 2001, 2000));
    far.tell(large());
    assert_eq!(letters.recv_timeout(LONG).unwrap().0, DeadLetterReason::TooLarge);
    // A function has no name.
    let function: ActorRef<Word> = ActorRef::from_fn(|_| {});
    let error = far.try_tell(Word::Introduce(function.clone())).unwrap_err();
    assert!(error.to_string().contains("adapter or a function"), "{error}");
    far.tell(Word::Introduce(function));
    assert_eq!(letters.recv_timeout(LONG).unwrap().0, DeadLetterReason::Unsendable);
    // User code panics on the sender's thread, which unwinds.
    let text = panic_of(|| far.tell(Word::Panic(Panics(1))));
    assert_eq!(text, "planted in serialize");
    assert_eq!(letters.recv_timeout(LONG).unwrap().0, DeadLetterReason::Panicked);
    // No credit comes back while nothing is heard: the queue fills.
    n1.cut(true);
    n2.cut(true);
    let mut sent = 0;
    let refused = loop {
        match far.try_tell(Word::Say("y".repeat(1000))) {
            Ok(()) => sent += 1,
            // The engine takes what the window has room for.
            Err(_) => network.settle(),
        }
        if let Err(refused) = far.try_tell(Word::Say("y".repeat(1000))) {
            network.settle();
            if let Err(refused) = far.try_tell(Word::Say("y".repeat(1000))) {
                break refused;
            }
            drop(refused);
        }
        assert!(sent < 100_000, "the queue is bounded");
    };
    assert!(matches!(refused, SendError::Full(_)));
    far.tell(Word::Say("z".repeat(1000)));
    assert_eq!(letters.recv_timeout(LONG).unwrap().0, DeadLetterReason::LinkFull);
    // The peer is given up: what waits are dead letters, and later sends too.
    let queued = n1.ledger().queued;
    assert!(queued > 0);
    network.seconds(20);
    for _ in 0..queued {
        assert_eq!(letters.recv_timeout(LONG).unwrap().0, DeadLetterReason::NodeGone);
    }
    assert!(far.is_closed() && matches!(far.try_tell(Word::Release), Err(SendError::Closed(_))));
    far.tell(Word::Release);
    let (reason, recipient) = letters.recv_timeout(LONG).unwrap();
    assert_eq!((reason, recipient.as_str()), (DeadLetterReason::NodeGone, "pointsman://demo@n2/user/echo"));
    assert_eq!(n1.ledger().balance(), 0);
}

/// Hands on the references that it is told.
struct Taker(Sender<ActorRef<Word>>);

impl Actor for Taker {
    type Message = Word;
    fn receive(&mut self, word: Word, _: &mut Context<Word>) -> HandlerResult {
        if let Word::Introduce(to) = word {
            self.0.send(to)?;
        }
        Ok(())
    }
}

#[test]
fn a_message_beyond_a_window_that_is_not_known_yet_is_refused_and_stops_no_other() {
    let network = Network::new();
    let n1 = network.node_with("n1", with_words);
    let n2 = network.node_with("n2", |node| {
        with_words(node).limits(Limits::new().envelope(1024).batch(1024).receive_window(16 << 10))
    });
    let n3 = network.node_with("n3", with_words);
    let (_, heard) = echo(&n2, "echo");
    let (sender, references) = channel();
    n1.actor("taker").spawn(move || Taker(sender.clone())).expect("the name is free");
    for other in [&n1, &n2] {
        link(&n3, other);
    }
    // n1 gets the reference, and has no link to n2: what it sends waits until n2 has told its window.
    let of_n3 = find(&n3, "pointsman://demo@n2/user/echo");
    n2.cut(true);
    find(&n3, "pointsman://demo@n1/user/taker").tell(Word::Introduce(of_n3));
    let far = references.recv_timeout(LONG).expect("it crosses");
    let letters = letters(&n1);
    let large = || Word::Say("x".repeat(20_000));
    assert!(far.try_tell(large()).is_ok());
    let asked = far.ask_with(|reply_to| Word::Forward(Call::new(Double(1), reply_to), far.clone()));
    far.tell(Word::Say("small".to_owned()));
    network.seconds(1);
    n2.cut(false);
    wait_until(|| {
        network.seconds(1);
        letters.try_recv().is_ok_and(|(reason, _)| reason == DeadLetterReason::TooLarge)
    });
    // Credit for lanes that wait comes by the clock.
    let said = || {
        let mut word = None;
        wait_until(|| {
            network.seconds(1);
            word = heard.try_recv().ok();
            word.is_some()
        });
        word.expect("it says something")
    };
    assert_eq!(said(), "small");
    assert_eq!(asked.within(LONG).wait(), Ok(2));
    // The window is known now, so it goes in fragments.
    far.tell(large());
    assert_eq!(said(), "x".repeat(20_000));
    far.tell(Word::Say("last".to_owned()));
    assert_eq!(said(), "last");
    for node in [n1, n2, n3] {
        assert_eq!(node.end().balance(), 0);
    }
}

#[test]
fn a_node_lets_in_what_it_knows_and_allows() {
    let network = Network::new();
    let n1 = network.node_with("n1", with_words);
    let n2 = network
        .node_with("n2", |node| node.message::<Word>().policy(Policy::closed().allow_path("/user/open")));
    let (local, heard) = echo(&n2, "open");
    let (_, _closed) = echo(&n2, "closed");
    link(&n1, &n2);
    let error = |path: &str| n1.resolve::<Word>(path, LONG).wait().map(drop).unwrap_err();
    assert_eq!(error("pointsman://demo@n2/user/closed"), ResolveError::Refused { by: RefusedBy::NotAllowed });
    assert!(matches!(error("pointsman://other@n2/user/open"), ResolveError::Path(_)));
    assert!(matches!(error("pointsman://demo@n2/user/../open"), ResolveError::Path(_)));
    assert!(matches!(error("/user/absent"), ResolveError::NotFound { .. }));
    let of_type = n1.resolve::<String>("pointsman://demo@n2/user/open", LONG).wait().map(drop).unwrap_err();
    assert_eq!(of_type, ResolveError::Refused { by: RefusedBy::UnknownType });
    let open = find(&n1, "pointsman://demo@n2/user/open");
    let uid = open.uid();
    let letters = letters(&n2);
    local.stop();
    // The name is free then.
    local.when_ended().wait().expect("it was told to stop");
    let (_, again) = echo(&n2, "open");
    assert!(matches!(error("pointsman://demo@n2/user/none"), ResolveError::Refused { .. }));
    // Another incarnation is not reached by the old reference.
    open.tell(Word::Say("too late".into()));
    assert_eq!(letters.recv_timeout(LONG).unwrap(), (DeadLetterReason::Stopped, "/user/open".into()));
    assert_ne!(find(&n1, "pointsman://demo@n2/user/open").uid(), uid);
    assert!(heard.try_recv().is_err() && again.try_recv().is_err());
    let error = n1.resolve::<Word>(&format!("pointsman://demo@n2/user/open#{uid}"), LONG).wait().map(drop);
    assert!(matches!(error, Err(ResolveError::Refused { .. } | ResolveError::NotFound { .. })));
}

#[test]
fn a_request_waits_for_the_node_to_come_and_ends_in_time() {
    let network = Network::new();
    let n1 = network.node_with("n1", with_words);
    let path = "pointsman://demo@n2/user/echo";
    let early = n1.resolve::<Word>(path, LONG);
    let n2 = network.node_with("n2", with_words);
    let (_, _heard) = echo(&n2, "echo");
    network.seconds(2);
    assert!(early.wait().is_ok());
    assert!(matches!(n1.event(), NodeEvent::Up { .. }));
    let absent = n1.resolve::<Word>("pointsman://demo@n9/user/echo", LONG * 10);
    network.seconds(21);
    assert_eq!(absent.wait().map(drop), Err(ResolveError::NodeGone { node: "n9".into() }));
    let late = n1.resolve::<Word>("pointsman://demo@n9/user/echo", std::time::Duration::from_secs(3));
    // On this thread: another one might begin to wait only when the node is given up.
    network.seconds(4);
    let after = std::time::Duration::from_secs(3);
    assert_eq!(late.wait().map(drop), Err(ResolveError::Timeout { after }));
}

#[test]
fn selections_and_groups_by_path_reach_actors_of_other_nodes() {
    let network = Network::new();
    let n1 = network.node_with("n1", with_words);
    let n2 = network.node_with("n2", |node| node.message::<Word>().policy(Policy::open()));
    let (_, first) = echo(&n2, "w1");
    let (_, second) = echo(&n2, "w2");
    // It waits for the link.
    let one = n1.select("pointsman://demo@n2/user/w1").unwrap();
    assert_eq!(one.to_string(), "pointsman://demo@n2/user/w1");
    assert_eq!(one.path().to_string(), "pointsman://demo@n2/user/w1");
    assert_eq!(one.tell_one(Word::Say("to one".into())).unwrap().reached, 1);
    assert_eq!(said(&first), "to one");
    let all = n1.select("pointsman://demo@n2/user/w*").unwrap();
    assert!(all.has_wildcard());
    let letters = letters(&n1);
    let router = n1.router("group").group_at_exact::<Word>(["pointsman://demo@n2/user/w2"]).spawn().unwrap();
    router.tell(Word::Say("by path".into()));
    assert_eq!(said(&second), "by path");
    assert_eq!(router.ask(Double(5)).within(LONG).wait(), Ok(10));
    // An unregistered type is a dead letter here.
    let _ = one.tell_one(7_u64).unwrap();
    assert_eq!(letters.recv_timeout(LONG).unwrap().0, DeadLetterReason::Unsendable);
    assert!(n1.select("pointsman://other@n2/user/w1").is_err());
    assert!(n1.select("pointsman://demo@n2/user/../w1").is_err());
    assert!(n1.select("pointsman://demo@n1/user").is_ok());
    network.seconds(2);
    assert_eq!((n1.ledger().balance(), n2.ledger().balance()), (0, 0));
}
