//! The accounts of links: what is refused, late and lost is counted once, and a clean end leaves nothing in doubt.

use crate::network::{LONG, Network, TestNode, link, wait_until};
use pointsman::DeadLetterReason;
use pointsman::ask::{Ask, AskError, RefusedBy};
use pointsman::prelude::*;
use pointsman::remote::{Limits, LinkReport, LinkState, Node, Policy, Wire};
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Debug, Serialize, Deserialize)]
struct Text(usize);
impl Request for Text {
    /// So many letters.
    type Reply = String;
}

#[derive(Debug, Serialize, Deserialize)]
enum Item {
    Take(String),
    /// Keeps the call until the release.
    Keep(Call<Text>),
    Release,
    Sour(Sour),
}

impl Wire for Item {
    const NAME: &'static str = "test.Item";
}

/// A message whose bytes no node can decode.
#[derive(Debug, Serialize)]
struct Sour(u8);

impl<'de> Deserialize<'de> for Sour {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("planted"))
    }
}

struct Keeper {
    log: Sender<String>,
    kept: Vec<Call<Text>>,
}

impl Actor for Keeper {
    type Message = Item;
    fn receive(&mut self, item: Item, _: &mut Context<Item>) -> HandlerResult {
        match item {
            Item::Take(text) => self.log.send(text)?,
            Item::Keep(call) => {
                self.kept.push(call);
                self.log.send("kept".into())?;
            }
            Item::Release => {
                self.kept.drain(..).for_each(|call| call.answer(|Text(letters)| "x".repeat(letters)));
                self.log.send("released".into())?;
            }
            Item::Sour(_) => {}
        }
        Ok(())
    }
}

fn keeper(node: &TestNode, name: &str) -> (ActorRef<Item>, Receiver<String>) {
    let (log, said) = channel();
    let made = node.actor(name).spawn(move || Keeper { log: log.clone(), kept: Vec::new() });
    (made.expect("the name is free"), said)
}

fn with_items(node: Node) -> Node {
    node.message::<Item>().policy(Policy::closed().allow_path("/user/*"))
}

fn find(node: &TestNode, name: &str) -> ActorRef<Item> {
    node.resolve::<Item>(&format!("pointsman://demo@n2/user/{name}"), LONG).wait().expect("it is there")
}

fn said(said: &Receiver<String>) -> String {
    said.recv_timeout(LONG).expect("it says something")
}

fn keep(to: &ActorRef<Item>, letters: usize) -> Ask<String> {
    to.ask_with(move |reply_to| Item::Keep(Call::new(Text(letters), reply_to)))
}

/// The account of the only link.
fn account(node: &TestNode) -> LinkReport {
    let mut links = node.remote().links();
    assert_eq!(links.len(), 1);
    links.remove(0)
}

fn letters(node: &TestNode) -> Receiver<DeadLetterReason> {
    let (sender, letters) = channel();
    let sender = Mutex::new(sender);
    std::mem::forget(node.dead_letters().subscribe(move |letter| {
        let _ = sender.lock().unwrap().send(letter.reason);
    }));
    letters
}

#[test]
fn a_clean_end_leaves_nothing_in_doubt_at_either_node() {
    let network = Network::new();
    let (n1, n2) = (network.node_with("n1", with_items), network.node_with("n2", with_items));
    let (_, heard) = keeper(&n2, "keeper");
    let (home, at_home) = keeper(&n1, "home");
    link(&n1, &n2);
    let far = find(&n1, "keeper");
    let back = n2.resolve::<Item>("pointsman://demo@n1/user/home", LONG).wait().expect("it is there");
    for number in 0..500 {
        far.tell(Item::Take(number.to_string()));
        back.tell(Item::Take(number.to_string()));
    }
    for number in 0..500 {
        assert_eq!((said(&at_home), said(&heard)), (number.to_string(), number.to_string()));
    }
    // Messages that come to a node whose actors have ended.
    home.stop();
    wait_until(|| n1.actor_at("/user/home").is_err());
    back.tell(Item::Release);
    network.settle();
    let (first, second) = (n1.remote(), n2.remote());
    // No clock moves: the end alone brings the last receipts.
    let ledger = n1.end();
    let of_first = &first.links()[0];
    // The messages, and a request and the answer to one.
    assert_eq!((of_first.shipped, of_first.confirmed, of_first.in_doubt), (502, 502, 0), "{of_first:#?}");
    assert_eq!((ledger.shipped, ledger.balance()), (500, 0));
    wait_until(|| second.links()[0].state == LinkState::Ended);
    let of_second = &second.links()[0];
    assert_eq!((of_second.shipped, of_second.in_doubt), (503, 0), "{of_second:#?}");
    assert_eq!(of_second.received, 502);
    assert_eq!(n2.end().balance(), 0);
}

#[test]
fn each_refusal_has_its_reason_and_is_counted_once() {
    let network = Network::new();
    let n1 = network.node_with("n1", |node| with_items(node).message::<u32>().message::<u64>());
    let n2 = network.node_with("n2", |node| {
        let policy = Policy::closed().allow_path("/user/open*");
        node.message::<Item>()
            .message::<u32>()
            .policy(policy)
            .limits(Limits::new().envelope(2000).large_message(2000))
    });
    let (_, heard) = keeper(&n2, "open");
    let (_closed, _) = keeper(&n2, "closed");
    link(&n1, &n2);
    let far = find(&n1, "open");
    let letters = letters(&n2);
    let letter = || letters.recv_timeout(LONG).expect("a dead letter");
    let refused = |reason| account(&n2).refused.of(reason);
    use DeadLetterReason as Why;

    let path = |name: &str| format!("pointsman://demo@n2/user/{name}");
    n1.resolve::<Item>(&path("closed"), LONG).wait().unwrap_err();
    let _ = n1.select(&path("closed")).unwrap().tell_one(Item::Release).unwrap();
    assert_eq!((letter(), refused(Why::NotAllowed)), (Why::NotAllowed, 2));
    n1.resolve::<u64>(&path("open"), LONG).wait().unwrap_err();
    let _ = n1.select(&path("open")).unwrap().tell_one(7_u64).unwrap();
    assert_eq!((letter(), refused(Why::UnknownType)), (Why::UnknownType, 2));
    n1.resolve::<u32>(&path("open"), LONG).wait().unwrap_err();
    let _ = n1.select(&path("open")).unwrap().tell_one(7_u32).unwrap();
    assert_eq!((letter(), refused(Why::OtherType)), (Why::OtherType, 2));
    n1.resolve::<Item>(&path("open-not"), LONG).wait().unwrap_err();
    let _ = n1.select(&path("open-not")).unwrap().tell_one(Item::Release).unwrap();
    assert_eq!((letter(), refused(Why::NoActor)), (Why::NoActor, 2));
    far.tell(Item::Sour(Sour(1)));
    assert_eq!((letter(), refused(Why::Undecodable)), (Why::Undecodable, 1));
    // An envelope that is too large is refused, and those beside it are not; an ask in it ends.
    far.tell(Item::Take("x".repeat(3000)));
    assert_eq!((letter(), refused(Why::TooLarge)), (Why::TooLarge, 1));
    assert_eq!(account(&n2).malformed, 0);
    n2.actor_at("/user/open").unwrap().stop();
    wait_until(|| n2.actor_at("/user/open").is_err());
    far.tell(Item::Release);
    assert_eq!((letter(), refused(Why::Stopped)), (Why::Stopped, 1));
    assert!(heard.try_recv().is_err());
    // A peer may not stop what it has not deployed.
    let closed = find_open(&n1, &n2);
    closed.stop();
    closed.poison();
    wait_until(|| account(&n2).refused_control == 1 && refused(Why::NotAllowed) == 3);
    network.seconds(2);
    let (sent, came) = (account(&n1), account(&n2));
    // Each envelope that came was refused, but for the two requests that were answered.
    assert_eq!(sent.shipped, sent.confirmed);
    assert_eq!(came.received, sent.shipped);
    assert_eq!(came.refused.total(), came.received - 2, "{came:#?}");
    assert_eq!((n1.end().balance(), n2.end().balance()), (0, 0));
}

/// An actor that no policy lets a peer end.
fn find_open(n1: &TestNode, n2: &TestNode) -> ActorRef<Item> {
    let (_, _heard) = keeper(n2, "open-2");
    find(n1, "open-2")
}

#[test]
fn a_full_mailbox_refuses_what_comes_and_the_link_tells_of_it() {
    let network = Network::new();
    let (n1, n2) = (network.node_with("n1", with_items), network.node_with("n2", with_items));
    let (entered, has_entered) = channel();
    let (open, until_open) = channel::<()>();
    let until_open = Arc::new(Mutex::new(until_open));
    let (entered, waits) = (Mutex::new(entered), until_open);
    n2.actor("small")
        .mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Reject))
        .spawn(move || Waits { entered: entered.lock().unwrap().clone(), until: waits.clone() })
        .expect("the name is free");
    link(&n1, &n2);
    let far = find(&n1, "small");
    let letters = letters(&n2);
    far.tell(Item::Release);
    has_entered.recv_timeout(LONG).expect("its turn");
    far.tell(Item::Release);
    let asked = keep(&far, 1).within(LONG);
    assert_eq!(letters.recv_timeout(LONG).unwrap(), DeadLetterReason::Full);
    assert!(asked.wait().unwrap_err().is_full());
    // It is counted when its asker has been told.
    wait_until(|| account(&n2).refused.of(DeadLetterReason::Full) == 1);
    drop(open);
    assert_eq!((n1.end().balance(), n2.end().balance()), (0, 0));
}

/// Waits in its handler.
struct Waits {
    entered: Sender<()>,
    until: Arc<Mutex<Receiver<()>>>,
}

impl Actor for Waits {
    type Message = Item;
    fn receive(&mut self, _: Item, _: &mut Context<Item>) -> HandlerResult {
        self.entered.send(())?;
        let _ = self.until.lock().unwrap().recv();
        Ok(())
    }
}

#[test]
fn an_answer_behind_the_end_of_its_ask_is_late_and_shown() {
    let network = Network::new();
    let (n1, n2) = (network.node_with("n1", with_items), network.node_with("n2", with_items));
    let (_, heard) = keeper(&n2, "keeper");
    link(&n1, &n2);
    let far = find(&n1, "keeper");
    let late = keep(&far, 3).within(Duration::from_secs(5));
    assert_eq!(said(&heard), "kept");
    let waiting = std::thread::spawn(move || late.wait());
    while !waiting.is_finished() {
        network.seconds(1);
    }
    assert!(matches!(waiting.join().unwrap(), Err(AskError::Timeout { .. })));
    network.seconds(2);
    let letters = letters(&n1);
    far.tell(Item::Release);
    assert_eq!(said(&heard), "released");
    assert_eq!(letters.recv_timeout(LONG).unwrap(), DeadLetterReason::LateReply);
    let account = account(&n1);
    assert_eq!(account.refused.of(DeadLetterReason::LateReply), 1);
    assert_eq!(account.refused.total(), 1);
    let ledger = n1.end();
    assert_eq!((ledger.asks.late, ledger.dead_lettered, ledger.balance()), (1, 0, 0));
}

#[test]
fn a_reply_without_room_ends_its_ask_and_one_to_a_node_that_is_gone_is_shown() {
    let network = Network::new();
    let small = |node: Node| {
        let limits = Limits::new().envelope(2000).batch(4096).receive_window(16 << 10).link_queue(16 << 10);
        with_items(node).limits(limits)
    };
    let (n1, n2) = (network.node_with("n1", small), network.node_with("n2", small));
    let (local, heard) = keeper(&n2, "keeper");
    link(&n1, &n2);
    let far = find(&n1, "keeper");
    let asks: Vec<Ask<String>> = (0..200).map(|_| keep(&far, 1900)).collect();
    asks.iter().for_each(|_| assert_eq!(said(&heard), "kept"));
    let letters_of_n2 = letters(&n2);
    // No credit comes back, so the queue fills.
    n2.cut(true);
    local.tell(Item::Release);
    assert_eq!(said(&heard), "released");
    assert_eq!(letters_of_n2.recv_timeout(LONG).unwrap(), DeadLetterReason::LinkFull);
    let lost = account(&n2).lost_replies;
    assert!((1..200).contains(&lost), "{lost}");
    n2.cut(false);
    network.seconds(3);
    let mut refused = 0;
    for ask in asks {
        match ask.wait() {
            Ok(reply) => assert_eq!(reply.len(), 1900),
            Err(error) => {
                assert!(matches!(error, AskError::Refused { by: RefusedBy::LinkFull, .. }), "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, lost);
    assert_eq!(letters_of_n2.try_iter().count() as u64, lost - 1);

    let open = keep(&far, 1).within(LONG);
    assert_eq!(said(&heard), "kept");
    n1.end();
    assert!(open.wait().is_err());
    wait_until(|| account(&n2).state == LinkState::Ended);
    local.tell(Item::Release);
    assert_eq!(letters_of_n2.recv_timeout(LONG).unwrap(), DeadLetterReason::NodeGone);
    assert_eq!(account(&n2).lost_replies, lost + 1);
    let ledger = n2.end();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0));
}
