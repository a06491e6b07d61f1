//! Actors that have too many messages: their senders at other nodes are refused, and no other ones.

use crate::network::{LONG, Network, TestNode, link, wait_until};
use pointsman::prelude::*;
use pointsman::remote::{LinkReport, Node, Policy};
use pointsman::{DeadLetterReason, SendError};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Waits in its first message until it is let go.
struct Slow {
    taken: Sender<u64>,
    until: Arc<Mutex<Receiver<()>>>,
}

impl Actor for Slow {
    type Message = u64;
    fn receive(&mut self, number: u64, _: &mut Context<u64>) -> HandlerResult {
        self.taken.send(number)?;
        let _ = self.until.lock().unwrap().recv();
        Ok(())
    }
}

struct Quick(Sender<u64>);

impl Actor for Quick {
    type Message = u64;
    fn receive(&mut self, number: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(self.0.send(number)?)
    }
}

const CAPACITY: usize = 100;

/// The most messages of an actor with this capacity that is not choked.
const MOST: u64 = 75;

fn with_numbers(node: Node) -> Node {
    let one_lane = 1.try_into().expect("not 0");
    node.message::<u64>().policy(Policy::open()).lanes(one_lane)
}

/// Two nodes, and a slow and a quick actor of the second one, in one lane of the first.
struct Choking {
    network: Network,
    n1: TestNode,
    n2: TestNode,
    slow: ActorRef<u64>,
    /// The messages that the slow actor has begun with.
    begun: Receiver<u64>,
    let_go: Option<Sender<()>>,
    quick: ActorRef<u64>,
    taken: Receiver<u64>,
}

impl Choking {
    fn new(mailbox: Mailbox) -> Self {
        let network = Network::new();
        let (n1, n2) = (network.node_with("n1", with_numbers), network.node_with("n2", with_numbers));
        let (sender, begun) = channel();
        let (let_go, until) = channel::<()>();
        let until = Arc::new(Mutex::new(until));
        let slow = move || Slow { taken: sender.clone(), until: until.clone() };
        n2.actor("slow").mailbox(mailbox).spawn(slow).expect("the name is free");
        let (sender, taken) = channel();
        n2.actor("quick").spawn(move || Quick(sender.clone())).expect("the name is free");
        link(&n1, &n2);
        let find = |name: &str| {
            let path = format!("pointsman://demo@n2/user/{name}");
            n1.resolve::<u64>(&path, LONG).wait().expect("it is there")
        };
        let (slow, quick) = (find("slow"), find("quick"));
        Self { network, n1, n2, slow, begun, let_go: Some(let_go), quick, taken }
    }

    /// Sends the slow actor as many messages as it has without being choked, and one more that chokes it. Returns the number.
    fn fill(&self, most: u64) -> u64 {
        self.slow.tell(0u64);
        assert_eq!(self.begun.recv_timeout(LONG), Ok(0));
        // One by one, so that each batch begins with the count before it.
        for number in 1..=most + 1 {
            self.slow.tell(number);
            wait_until(|| self.queued() == number as usize);
        }
        assert_eq!(report(&self.n2).choked, 0);
        self.slow.tell(most + 2);
        self.wait_choked(1);
        most + 3
    }

    /// Lets the slow actor finish one message.
    fn step(&self) {
        self.let_go.as_ref().expect("it still waits").send(()).expect("it lives");
    }

    fn queued(&self) -> usize {
        self.n2.actor_at("/user/slow").expect("it lives").queued()
    }

    /// Waits until the second node chokes so many actors, and the first one has heard of it.
    fn wait_choked(&self, count: u64) {
        wait_until(|| report(&self.n2).choked == count);
        self.network.settle();
    }
}

fn report(node: &TestNode) -> LinkReport {
    let mut links = node.remote().links();
    assert_eq!(links.len(), 1);
    links.remove(0)
}

fn is_refused(actor: &ActorRef<u64>) -> bool {
    match actor.try_tell(1000u64) {
        Ok(()) => false,
        Err(SendError::Full(1000)) => true,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_slow_actor_costs_its_own_senders_and_no_others() {
    let mut choking = Choking::new(Mailbox::bounded(CAPACITY));
    let sent = choking.fill(MOST);
    let (sender, letters) = channel();
    let sender = Mutex::new(sender);
    let _subscription = choking.n1.dead_letters().subscribe(move |letter| {
        let _ = sender.lock().unwrap().send(letter.reason);
    });
    // A refused send comes back, a refused tell is a dead letter, and an ask ends.
    assert!(is_refused(&choking.slow));
    choking.slow.tell(1000u64);
    assert_eq!(letters.recv_timeout(LONG), Ok(DeadLetterReason::Full));
    assert_eq!(report(&choking.n1).choked_sends, 2);
    // The actor beside it in its lane takes messages.
    for number in 0..200u64 {
        choking.quick.tell(number);
        assert_eq!(choking.taken.recv_timeout(LONG), Ok(number));
    }
    assert!(is_refused(&choking.slow));
    // It has half of its limit and one more, then half.
    for number in 1..sent {
        choking.step();
        assert_eq!(choking.begun.recv_timeout(LONG), Ok(number));
        if choking.queued() as u64 == MOST / 2 + 1 {
            choking.network.seconds(1);
            assert!(is_refused(&choking.slow));
            choking.step();
            assert_eq!(choking.begun.recv_timeout(LONG), Ok(number + 1));
            break;
        }
    }
    choking.network.seconds(1);
    choking.wait_choked(0);
    let before = choking.queued();
    assert!(!is_refused(&choking.slow));
    wait_until(|| choking.queued() == before + 1);
    assert_eq!(report(&choking.n1).choked_sends, 4);
    choking.let_go = None;
    wait_until(|| choking.queued() == 0);
    let (sent, came) = (choking.n1.end(), choking.n2.end());
    assert_eq!((sent.balance(), came.balance(), came.dead_lettered), (0, 0, 0));
}

#[test]
fn a_choke_lapses_in_three_seconds_unless_it_is_renewed() {
    let mut choking = Choking::new(Mailbox::bounded(CAPACITY));
    choking.fill(MOST);
    for _ in 0..5 {
        choking.network.seconds(1);
        assert!(is_refused(&choking.slow));
    }
    // The first node hears nothing, so no renewal comes.
    choking.n1.cut(true);
    choking.network.seconds(2);
    assert!(is_refused(&choking.slow));
    choking.network.seconds(1);
    assert!(!is_refused(&choking.slow));
    choking.n1.cut(false);
    wait_until(|| {
        choking.network.seconds(1);
        is_refused(&choking.slow)
    });
    choking.let_go = None;
    wait_until(|| choking.queued() == 0);
    choking.network.seconds(1);
    choking.wait_choked(0);
    assert!(!is_refused(&choking.slow));
}

#[test]
fn an_actor_without_a_bound_is_choked_above_4096_messages_and_forgotten_at_its_end() {
    let mut choking = Choking::new(Mailbox::unbounded());
    choking.slow.tell(0u64);
    assert_eq!(choking.begun.recv_timeout(LONG), Ok(0));
    let local = choking.n2.typed_at::<u64>("/user/slow").expect("it lives");
    (0..4096u64).for_each(|number| local.tell(number));
    // At the limit, and one beyond.
    choking.slow.tell(1u64);
    wait_until(|| choking.queued() == 4097);
    assert_eq!(report(&choking.n2).choked, 0);
    choking.slow.tell(2u64);
    choking.wait_choked(1);
    assert!(is_refused(&choking.slow));
    choking.n2.actor_at("/user/slow").expect("it lives").stop();
    choking.let_go = None;
    wait_until(|| choking.n2.actor_at("/user/slow").is_err());
    choking.network.seconds(1);
    choking.wait_choked(0);
    assert!(!is_refused(&choking.slow));
    let (sent, came) = (choking.n1.end(), choking.n2.end());
    assert_eq!((sent.balance(), came.balance()), (0, 0));
}

#[test]
fn a_mailbox_that_makes_room_by_itself_is_not_choked() {
    let mut choking = Choking::new(Mailbox::bounded(CAPACITY).on_full(OverflowPolicy::DropOldest));
    choking.slow.tell(0u64);
    assert_eq!(choking.begun.recv_timeout(LONG), Ok(0));
    (1..300u64).for_each(|number| choking.slow.tell(number));
    choking.quick.tell(1u64);
    assert_eq!(choking.taken.recv_timeout(LONG), Ok(1));
    assert_eq!((report(&choking.n2).choked, choking.queued()), (0, CAPACITY));
    assert!(!is_refused(&choking.slow));
    choking.let_go = None;
}
