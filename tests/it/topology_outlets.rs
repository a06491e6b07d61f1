//! All outlets of a group in a single object: which types it sends, and what it says of a type without a route.

use crate::support::{LONG, Stage};
use pointsman::prelude::*;
use pointsman::topology::{GroupOutlets, GroupSendError, SendMode, Topology};
use pointsman::{Mailbox, OverflowPolicy, SendError};

#[derive(Debug, Clone, PartialEq)]
struct Order(u64);

#[derive(Debug, Clone, PartialEq)]
struct Refund(u64);

#[derive(Debug, PartialEq)]
struct Unique(u64);

#[derive(Clone, PartialEq, Debug)]
struct Count;
impl Request for Count {
    type Reply = u64;
}

#[derive(Message)]
enum DeskMsg {
    Order(Order),
    Refund(Refund),
    Unique(Unique),
}

#[derive(Message)]
enum TellerMsg {
    Count(Call<Count>),
    Order(Order),
}

/// Sends everything by a single field.
struct Clerk {
    out: GroupOutlets,
}

impl Actor for Clerk {
    type Message = u64;
    fn receive(&mut self, number: u64, _: &mut Context<u64>) -> HandlerResult {
        self.out.try_send(Order(number))?;
        self.out.try_send(Refund(number))?;
        self.out.try_send(Unique(number))?;
        Ok(())
    }
}

struct Desk(std::sync::mpsc::Sender<String>);

impl Actor for Desk {
    type Message = DeskMsg;
    fn receive(&mut self, message: DeskMsg, _: &mut Context<DeskMsg>) -> HandlerResult {
        self.0.send(match message {
            DeskMsg::Order(Order(number)) => format!("order {number}"),
            DeskMsg::Refund(Refund(number)) => format!("refund {number}"),
            DeskMsg::Unique(Unique(number)) => format!("unique {number}"),
        })?;
        Ok(())
    }
}

#[derive(Default)]
struct Teller(u64);

impl Actor for Teller {
    type Message = TellerMsg;
    fn receive(&mut self, message: TellerMsg, _: &mut Context<TellerMsg>) -> HandlerResult {
        match message {
            TellerMsg::Count(call) => call.answer(|_| self.0),
            TellerMsg::Order(_) => self.0 += 1,
        }
        Ok(())
    }
}

/// A clerk's group that routes orders, refunds and unique messages to the desk, and orders and counts to the teller.
fn office(stage: &Stage) -> (Topology, GroupOutlets, ActorRef<u64>) {
    let topology = stage.system.topology();
    let clerks = topology.local("clerks").expect("a free name");
    let desk = topology.local("desk").expect("a free name");
    let teller = topology.local("teller").expect("a free name");
    clerks.route_all_to::<Order, _>(&desk).route_all_to::<Order, _>(&teller);
    clerks.route_to(&desk, |Refund(number): &Refund| *number < 100);
    clerks.route_only_to(&desk, |_: &Unique| true).expect("the only route");
    clerks.route_all_to::<Call<Count>, _>(&teller);
    let unused = clerks.outlet::<String>();
    let (out, log) = (clerks.outlets(), stage.log.clone());
    let recipe = {
        let out = out.clone();
        move || Clerk { out: out.clone() }
    };
    desk.mount(&stage.system.spawn(move || Desk(log.clone())).expect("it lives"));
    teller.mount(&stage.system.spawn(Teller::default).expect("it lives"));
    let clerk = clerks.mount(&stage.system.spawn(recipe).expect("it lives"));
    drop(unused);
    topology.start().expect("all are mounted");
    (topology, out, clerk)
}

#[test]
fn an_actor_sends_every_type_that_its_group_routes_by_a_single_field() {
    let stage = Stage::turns();
    let (_topology, out, clerk) = office(&stage);
    clerk.tell(7_u64);
    stage.expect(&["order 7", "refund 7", "unique 7"]);
    let count = out.request(Count).expect("it is routed").first().wait();
    assert_eq!(count, Ok(1), "the teller got a copy of the order");
    let names = out.message_types();
    assert_eq!(names.len(), 4, "an outlet without a route does not count: {names:?}");
    assert_eq!(out.group(), "clerks");
    assert!(format!("{out:?}").starts_with("GroupOutlets(clerks -> ["), "{out:?}");
    stage.end(&[]);
}

#[test]
fn a_type_without_a_route_comes_back_with_the_names_of_group_and_type() {
    let stage = Stage::turns();
    let (_topology, out, _clerk) = office(&stage);
    let before = stage.system.ledger();
    let refused = out.try_send("text".to_owned()).expect_err("there is an outlet, but no route");
    let text = refused.to_string();
    let GroupSendError::Unrouted { message, fault } = refused else { panic!("{text}") };
    assert_eq!(message, "text");
    assert_eq!((fault.group.as_str(), fault.message_type), ("clerks", "alloc::string::String"));
    assert!(fault.is_mounted && fault.routed.iter().any(|name| name.ends_with("Refund")), "{fault:?}");
    assert!(text.contains("\"clerks\" routes no messages of type alloc::string::String"), "{text}");
    let after = stage.system.ledger();
    assert_eq!(after.handed_back, before.handed_back + 1, "it is counted as by an outlet that leads nowhere");
    assert_eq!(out.send(7_u8).expect_err("unknown").into_inner(), 7);
    assert!(out.outlet::<u8>().is_err());
    #[derive(Debug, PartialEq)]
    struct Other;
    impl Request for Other {
        type Reply = ();
    }
    let Err(GroupSendError::Unrouted { message: Other, fault }) = out.request(Other) else {
        panic!("no route for it")
    };
    assert!(fault.message_type.contains("Call<"), "{fault:?}");
    stage.end(&[]);
}

#[test]
fn a_refused_message_of_a_known_type_comes_back_with_the_refusal() {
    let stage = Stage::turns();
    let (_topology, out, _clerk) = office(&stage);
    let refused = out.try_send(Refund(100)).expect_err("no condition holds");
    assert!(matches!(&refused, GroupSendError::Refused(SendError::NoRoute(Refund(100)))), "{refused}");
    let (report, sent) = out.send_by(Order(1), SendMode::Try);
    assert_eq!((report.accepted, sent), (2, Ok(())));
    assert_eq!(out.send_within(Refund(5), LONG), Ok(()));
    assert_eq!(out.unbounded_send(Refund(6)), Ok(()));
    assert_eq!(out.outlet::<Refund>().expect("routed").send(Refund(8)), Ok(()));
    stage.end(&["order 1", "refund 5", "refund 6", "refund 8"]);
}

#[test]
fn a_full_mailbox_hands_the_message_back_with_its_own_error() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let (from, to) =
        (topology.local::<u8>("from").expect("free"), topology.local::<Order>("to").expect("free"));
    from.route_all_to::<Order, _>(&to);
    struct Sink;
    impl Actor for Sink {
        type Message = Order;
        fn receive(&mut self, _: Order, _: &mut Context<Order>) -> HandlerResult {
            Ok(())
        }
    }
    let small = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
    to.mount(&stage.system.actor("sink").mailbox(small).spawn(|| Sink).expect("it lives"));
    let out = from.outlets();
    from.mount(&ActorRef::from_fn(|_: u8| {}));
    assert_eq!(out.try_send(Order(1)), Ok(()));
    let refused = out.try_send(Order(2)).expect_err("full");
    assert_eq!(refused, GroupSendError::Refused(SendError::Full(Order(2))));
    stage.end(&[]);
}

#[test]
fn before_the_mount_the_object_says_that_the_group_is_not_mounted() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let (from, to) =
        (topology.local::<u8>("from").expect("free"), topology.local::<Order>("to").expect("free"));
    from.route_all_to::<Order, _>(&to);
    let out = from.outlets();
    let refused = out.try_send(Order(1)).expect_err("not mounted");
    assert!(refused.to_string().contains("\"from\" is not mounted"), "{refused}");
    assert!(out.message_types().is_empty());
    let log = stage.log.clone();
    to.mount(&ActorRef::from_fn(move |Order(number)| log.send(format!("got {number}")).expect("kept")));
    from.mount(&ActorRef::from_fn(|_: u8| {}));
    assert_eq!(out.try_send(refused.into_inner()), Ok(()));
    stage.end(&["got 1"]);
}
