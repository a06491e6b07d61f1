//! Messages that are too large for an envelope, and go in fragments.

use crate::network::{LONG, Network, TestNode, link, wait_until};
use pointsman::ask::{AskError, RefusedBy};
use pointsman::prelude::*;
use pointsman::remote::{Limits, LinkReport, Node, Policy, Wire};
use pointsman::{DeadLetterReason, SendError, Terminated};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

const LARGE_MESSAGE: usize = 1 << 20;

/// Asks for so many bytes, with some of its own.
#[derive(Debug, Serialize, Deserialize)]
struct Mirror {
    wanted: usize,
    ballast: Vec<u8>,
}

impl Request for Mirror {
    type Reply = Vec<u8>;
}

#[derive(Debug, Serialize, Deserialize)]
struct Numbered {
    number: u64,
    ballast: Vec<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Parcel {
    Take(Numbered),
    Mirror(Call<Mirror>),
    Watch(ActorRef<Parcel>),
    /// Sends large messages to the reference, and ends.
    Leave(ActorRef<Parcel>),
}

impl From<Call<Mirror>> for Parcel {
    fn from(call: Call<Mirror>) -> Self {
        Parcel::Mirror(call)
    }
}

impl Wire for Parcel {
    const NAME: &'static str = "test.Parcel";
}

struct Depot(Sender<(u64, usize)>);

impl Actor for Depot {
    type Message = Parcel;
    fn receive(&mut self, parcel_in: Parcel, ctx: &mut Context<Parcel>) -> HandlerResult {
        match parcel_in {
            Parcel::Take(Numbered { number, ballast }) => {
                let is_sound = (0..).zip(&ballast).all(|(at, byte)| *byte == byte_of(number, at));
                assert!(is_sound, "the bytes of {number} are others");
                self.0.send((number, ballast.len()))?;
            }
            Parcel::Mirror(call) => call.answer(|Mirror { wanted, ballast }| {
                let mut reply = ballast;
                reply.resize(wanted, 7);
                reply
            }),
            Parcel::Watch(actor) => ctx.watch(&actor)?,
            Parcel::Leave(to) => {
                (0..3).for_each(|number| to.tell(parcel(number, 250_000)));
                ctx.stop();
            }
        }
        Ok(())
    }

    fn terminated(&mut self, _: Terminated, _: &mut Context<Parcel>) -> HandlerResult {
        Ok(self.0.send((u64::MAX, 0))?)
    }
}

fn byte_of(number: u64, at: usize) -> u8 {
    (number as usize * 31 + at * 7 + at / 251) as u8
}

fn parcel(number: u64, bytes: usize) -> Parcel {
    Parcel::Take(Numbered { number, ballast: (0..bytes).map(|at| byte_of(number, at)).collect() })
}

fn depot(node: &TestNode, name: &str) -> Receiver<(u64, usize)> {
    let (sender, taken) = channel();
    node.actor(name).spawn(move || Depot(sender.clone())).expect("the name is free");
    taken
}

fn with_parcels(node: Node) -> Node {
    let limits = Limits::new().envelope(4096).large_message(LARGE_MESSAGE).link_queue(LARGE_MESSAGE);
    node.message::<Parcel>().policy(Policy::open()).limits(limits)
}

fn find(node: &TestNode, name: &str) -> ActorRef<Parcel> {
    let path = format!("pointsman://demo@n2/user/{name}");
    node.resolve::<Parcel>(&path, LONG).wait().expect("it is there")
}

fn letters(node: &TestNode) -> Receiver<DeadLetterReason> {
    let (sender, letters) = channel();
    let sender = Mutex::new(sender);
    std::mem::forget(node.dead_letters().subscribe(move |letter| {
        let _ = sender.lock().unwrap().send(letter.reason);
    }));
    letters
}

fn account(node: &TestNode) -> LinkReport {
    let mut links = node.remote().links();
    assert_eq!(links.len(), 1);
    links.remove(0)
}

#[track_caller]
fn taken(taken: &Receiver<(u64, usize)>) -> (u64, usize) {
    taken.recv_timeout(LONG).expect("it comes")
}

#[test]
fn messages_of_all_sizes_come_whole_and_in_order() {
    let network = Network::new();
    let (n1, n2) = (network.node_with("n1", with_parcels), network.node_with("n2", with_parcels));
    let came = depot(&n2, "depot");
    link(&n1, &n2);
    let far = find(&n1, "depot");
    let sizes =
        [0, 4000, 4090, 4091, 4092, 4096, 5000, 9000, 100, 100_000, 1, 300_000, 2, 16_384, 3, 700_000];
    for (number, bytes) in (0..).zip(sizes) {
        far.tell(parcel(number, bytes));
        assert_eq!(taken(&came), (number, bytes));
    }
    // Without waiting, as far as the lane has room.
    for (number, bytes) in (0..).zip(sizes.into_iter().take(14)) {
        assert!(far.try_tell(parcel(number, bytes)).is_ok(), "{number}");
    }
    for (number, bytes) in (0..).zip(sizes.into_iter().take(14)) {
        assert_eq!(taken(&came), (number, bytes));
    }
    network.settle();
    let (remote, ledger) = (n1.remote(), n1.end());
    let of_first = &remote.links()[0];
    // Each message is one, in however many fragments it went; one more asked for the reference.
    assert_eq!((of_first.shipped, of_first.confirmed, of_first.in_doubt), (31, 31, 0), "{of_first:#?}");
    assert_eq!((ledger.shipped, ledger.balance()), (30, 0));
    let ledger = n2.end();
    assert_eq!((ledger.received, ledger.balance()), (30, 0));
}

/// The bytes of a parcel besides its ballast: the variant, the number, and the length.
const PARCEL_REST: usize = 1 + 1 + 3;

#[test]
fn a_message_of_the_greatest_size_goes_and_one_byte_more_is_refused() {
    let network = Network::new();
    let (n1, n2) = (network.node_with("n1", with_parcels), network.node_with("n2", with_parcels));
    let came = depot(&n2, "depot");
    link(&n1, &n2);
    let far = find(&n1, "depot");
    let largest = LARGE_MESSAGE - PARCEL_REST;
    let Err(SendError::TooLarge { message: Parcel::Take(back), size, max }) =
        far.try_tell(parcel(1, largest + 1))
    else {
        panic!("it is too large");
    };
    assert_eq!((back.ballast.len(), size, max), (largest + 1, LARGE_MESSAGE + 1, LARGE_MESSAGE));
    far.tell(parcel(2, largest));
    assert_eq!(taken(&came), (2, largest));
    // An ask ends with the reason, whichever of its ways is too narrow.
    let mirror = |wanted, ballast| far.ask(Mirror { wanted, ballast: vec![7; ballast] }).within(LONG).wait();
    assert_eq!(mirror(900_000, 800_000), Ok(vec![7; 900_000]));
    let refused = mirror(0, LARGE_MESSAGE).unwrap_err();
    let reason = DeadLetterReason::TooLarge;
    assert!(matches!(&refused, AskError::Undeliverable { reason: why, .. } if *why == reason), "{refused}");
    let refused = mirror(LARGE_MESSAGE, 0).unwrap_err();
    assert!(matches!(refused, AskError::Refused { by: RefusedBy::ReplyTooLarge, .. }), "{refused}");
    // Selections go in fragments, too.
    let path = "pointsman://demo@n2/user/depot";
    let _ = n1.select(path).expect("a path").tell_one(parcel(3, 200_000)).expect("there is a link");
    assert_eq!(taken(&came), (3, 200_000));
    assert_eq!((n1.end().balance(), n2.end().balance()), (0, 0));
}

#[test]
fn a_node_with_a_smaller_limit_refuses_what_is_too_large_for_it() {
    let network = Network::new();
    let small = |node: Node| {
        let limits = Limits::new().envelope(2000).large_message(10_000);
        node.message::<Parcel>().policy(Policy::open()).limits(limits)
    };
    let (n1, n2) = (network.node_with("n1", with_parcels), network.node_with("n2", small));
    let (came, home) = (depot(&n2, "depot"), depot(&n1, "home"));
    link(&n1, &n2);
    let far = find(&n1, "depot");
    let letters = letters(&n2);
    far.tell(parcel(1, 50_000));
    far.tell(parcel(2, 3000));
    far.tell(parcel(3, 10_000 - PARCEL_REST + 1));
    far.tell(parcel(4, 10_000 - PARCEL_REST + 2));
    // One of fewer bytes than ours, as one envelope of more.
    assert_eq!([taken(&came), taken(&came)], [(2, 3000), (3, 10_000 - PARCEL_REST + 1)]);
    for _ in 0..2 {
        assert_eq!(letters.recv_timeout(LONG).unwrap(), DeadLetterReason::TooLarge);
    }
    let refused = far.ask(Mirror { wanted: 0, ballast: vec![7; 50_000] }).within(LONG).wait().unwrap_err();
    let reason = DeadLetterReason::TooLarge;
    assert!(matches!(&refused, AskError::Undeliverable { reason: why, .. } if *why == reason), "{refused}");
    wait_until(|| account(&n2).refused.of(DeadLetterReason::TooLarge) == 3);
    // The reply is too large for the asker's node, which says so.
    let back = n2.resolve::<Parcel>("pointsman://demo@n1/user/home", LONG).wait().expect("it is there");
    let refused = back.ask(Mirror { wanted: 50_000, ballast: vec![] }).within(LONG).wait().unwrap_err();
    assert!(matches!(refused, AskError::Refused { by: RefusedBy::ReplyTooLarge, .. }), "{refused}");
    assert!(home.try_recv().is_err());
    let came = account(&n2);
    assert_eq!((came.malformed, came.incomplete), (0, 0), "{came:#?}");
    assert_eq!((n1.end().balance(), n2.end().balance()), (0, 0));
}

#[test]
fn large_messages_wait_for_a_node_and_are_dead_letters_when_it_does_not_come() {
    let network = Network::new();
    let n1 = network.node_with("n1", with_parcels);
    let far = n1.select("pointsman://demo@n2/user/depot").expect("a path");
    let tell = |number, bytes| far.tell_one(parcel(number, bytes)).is_ok();
    let letters = letters(&n1);
    for (number, bytes) in (0..).zip([10, 200_000, 20, 300_000, 30]) {
        assert!(tell(number, bytes), "{number}");
    }
    assert_eq!(n1.ledger().queued, 5);
    network.seconds(20);
    for _ in 0..5 {
        assert_eq!(letters.recv_timeout(LONG).unwrap(), DeadLetterReason::NodeGone);
    }
    // Large messages fill a bound of their own, and small ones go on.
    for (number, bytes) in (10..).zip([700_000, 300_000, 10]) {
        assert!(tell(number, bytes), "{number}");
    }
    let _ = tell(13, 700_000);
    assert_eq!(letters.recv_timeout(LONG).unwrap(), DeadLetterReason::LinkFull);
    assert!(tell(14, 20));
    let n2 = network.node_with("n2", with_parcels);
    let came = depot(&n2, "depot");
    wait_until(|| {
        network.seconds(1);
        n1.ledger().queued == 0
    });
    let numbers: Vec<_> = (0..4).map(|_| taken(&came).0).collect();
    assert_eq!(numbers, [10, 11, 12, 14]);
    assert_eq!((n1.end().balance(), n2.end().balance()), (0, 0));
}

#[test]
fn an_end_and_a_pill_stay_behind_the_large_messages_before_them() {
    let network = Network::new();
    let (n1, n2) = (network.node_with("n1", with_parcels), network.node_with("n2", with_parcels));
    let (came, home_came) = (depot(&n2, "depot"), depot(&n1, "home"));
    let leaver_came = depot(&n2, "leaver");
    link(&n1, &n2);
    // An actor that is watched tells large messages, and ends.
    let (leaver, home) = (find(&n1, "leaver"), n1.typed_at::<Parcel>("/user/home").expect("it is there"));
    home.tell(Parcel::Watch(leaver.clone()));
    leaver.tell(Parcel::Leave(home));
    assert_eq!([0, 1, 2].map(|_| taken(&home_came)), [0, 1, 2].map(|number| (number, 250_000)));
    assert_eq!(taken(&home_came), (u64::MAX, 0));
    assert!(leaver_came.recv_timeout(LONG).is_err(), "it has ended");
    let far = find(&n1, "depot");
    for number in 0..3 {
        far.tell(parcel(number, 250_000));
    }
    far.poison();
    far.tell(parcel(3, 200_000));
    assert_eq!([0, 1, 2].map(|_| taken(&came)), [0, 1, 2].map(|number| (number, 250_000)));
    assert!(came.recv_timeout(LONG).is_err(), "it has ended");
    network.settle();
    assert_eq!((n1.end().balance(), n2.end().balance()), (0, 0));
}
