//! A new version of a message while the cluster runs, by the steps of the guide, and requests for another type.

use crate::network::{LONG, Network, TestNode, wait_until};
use pointsman::DeadLetterReason;
use pointsman::ask::{AskError, RefusedBy};
use pointsman::prelude::*;
use pointsman::remote::{LinkState, Node, Policy, ResolveError, Wire};
use serde::{Deserialize, Serialize};

/// The order of one piece.
#[derive(Debug, Serialize, Deserialize)]
struct OldOrder {
    article: u64,
    reply_to: ReplyTo<String>,
}

impl Wire for OldOrder {
    const NAME: &'static str = "test.Order";
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    article: u64,
    amount: u32,
    reply_to: ReplyTo<String>,
}

impl Wire for Order {
    const NAME: &'static str = "test.Order";
    const VERSION: u16 = 2;
}

impl From<OldOrder> for Order {
    fn from(OldOrder { article, reply_to }: OldOrder) -> Self {
        Order { article, amount: 1, reply_to }
    }
}

/// The actor of the crate before the upgrade.
struct OldShop;

impl Actor for OldShop {
    type Message = OldOrder;
    fn receive(&mut self, order: OldOrder, _: &mut Context<OldOrder>) -> HandlerResult {
        let _ = order.reply_to.send(format!("old: {}", order.article));
        Ok(())
    }
}

struct Shop;

impl Actor for Shop {
    type Message = Order;
    fn receive(&mut self, order: Order, _: &mut Context<Order>) -> HandlerResult {
        let _ = order.reply_to.send(format!("new: {} of {}", order.amount, order.article));
        Ok(())
    }
}

/// Stands at the old path of a new node.
struct OldOrders(ActorRef<Order>);

impl Actor for OldOrders {
    type Message = OldOrder;
    fn receive(&mut self, order: OldOrder, _: &mut Context<OldOrder>) -> HandlerResult {
        self.0.tell(Order::from(order));
        Ok(())
    }
}

/// A node that receives, with the crate before the upgrade. Its policy lists what it has.
fn old_receiver(network: &Network, name: &str, paths: &str) -> TestNode {
    let policy = Policy::closed().allow_path(paths);
    let node = network.node_with(name, |node| node.message::<OldOrder>().policy(policy));
    node.actor("orders").spawn(|| OldShop).expect("the name is free");
    node
}

/// The same with both versions.
fn receiver_of_both(network: &Network, name: &str) -> TestNode {
    let policy = Policy::closed().allow_path("/user/orders").allow_path("/user/orders-2");
    let both = |node: Node| node.message::<OldOrder>().message::<Order>().policy(policy);
    let node = network.node_with(name, both);
    let shop = node.actor("orders-2").spawn(|| Shop).expect("the name is free");
    node.actor("orders").spawn(move || OldOrders(shop.clone())).expect("the name is free");
    node
}

/// The same when the old version is gone.
fn new_receiver(network: &Network, name: &str) -> TestNode {
    let policy = Policy::closed().allow_path("/user/orders-2");
    let node = network.node_with(name, |node| node.message::<Order>().policy(policy));
    node.actor("orders-2").spawn(|| Shop).expect("the name is free");
    node
}

fn find<M: Wire>(at: &TestNode, node: &str, name: &str) -> Result<ActorRef<M>, ResolveError> {
    at.resolve::<M>(&format!("pointsman://demo@{node}/user/{name}"), LONG).wait()
}

/// Waits until a node has heard of the new start of another one.
fn hears_of(network: &Network, node: &TestNode, other: &TestNode) {
    let (name, uid) = (other.remote().node().to_owned(), other.remote().uid());
    wait_until(|| {
        network.seconds(1);
        let links = node.remote().links();
        links.iter().any(|link| (&link.node, link.uid, link.state) == (&name, uid, LinkState::Up))
    });
}

fn ask_old(orders: &ActorRef<OldOrder>, article: u64) -> Result<String, AskError> {
    orders.ask_with(|reply_to| OldOrder { article, reply_to }).within(LONG).wait()
}

/// The sender before the upgrade.
fn old_order(from: &TestNode, to: &str, article: u64) -> Result<String, ResolveError> {
    find(from, to, "orders").map(|orders| ask_old(&orders, article).expect("it answers"))
}

/// The sender that takes the new version where it can.
fn order(from: &TestNode, to: &str, article: u64) -> Result<String, ResolveError> {
    match find::<Order>(from, to, "orders-2") {
        Ok(orders) => {
            let ask = orders.ask_with(|reply_to| Order { article, amount: 3, reply_to });
            Ok(ask.within(LONG).wait().expect("it answers"))
        }
        Err(ResolveError::Refused { by: RefusedBy::NotAllowed | RefusedBy::UnknownType }) => {
            old_order(from, to, article)
        }
        Err(error) => Err(error),
    }
}

#[test]
fn a_cluster_is_upgraded_node_by_node() {
    let network = Network::new();
    let sender = network.node("n1");
    let (n2, n3) = (old_receiver(&network, "n2", "/user/orders"), old_receiver(&network, "n3", "/user/*"));
    let before: ActorRef<OldOrder> = find(&sender, "n2", "orders").expect("it is there");
    assert_eq!(ask_old(&before, 7), Ok("old: 7".to_owned()));

    // The receivers, one after the other: the old sender goes on.
    assert_eq!(n2.end().balance(), 0);
    let n2 = receiver_of_both(&network, "n2");
    assert!(ask_old(&before, 7).is_err(), "a restarted node is another one");
    let error = old_order(&sender, "n2", 7).unwrap_err();
    assert_eq!(error, ResolveError::NodeGone { node: "n2".to_owned() });
    hears_of(&network, &sender, &n2);
    assert_eq!(old_order(&sender, "n2", 7), Ok("new: 1 of 7".to_owned()));
    assert_eq!(old_order(&sender, "n3", 7), Ok("old: 7".to_owned()));

    // A sender that comes early takes the old version where the new one is refused: for its type, and for its path.
    let early = network.node("n4");
    assert_eq!(order(&early, "n2", 7), Ok("new: 3 of 7".to_owned()));
    assert_eq!(
        find::<Order>(&early, "n3", "orders-2"),
        Err(ResolveError::Refused { by: RefusedBy::UnknownType })
    );
    assert_eq!(order(&early, "n3", 7), Ok("old: 7".to_owned()));
    let n5 = old_receiver(&network, "n5", "/user/orders");
    assert_eq!(
        find::<Order>(&early, "n5", "orders-2"),
        Err(ResolveError::Refused { by: RefusedBy::NotAllowed })
    );
    assert_eq!(order(&early, "n5", 7), Ok("old: 7".to_owned()));
    n3.end();
    n5.end();
    let n3 = receiver_of_both(&network, "n3");
    [&sender, &early].iter().for_each(|node| hears_of(&network, node, &n3));
    assert_eq!(old_order(&sender, "n3", 8), Ok("new: 1 of 8".to_owned()));
    assert_eq!(order(&early, "n3", 8), Ok("new: 3 of 8".to_owned()));

    // The senders.
    sender.end();
    let sender = network.node("n1");
    hears_of(&network, &n2, &sender);
    assert_eq!(order(&sender, "n2", 9), Ok("new: 3 of 9".to_owned()));

    // The old version goes, and a forgotten sender is told and counted.
    n2.end();
    let n2 = new_receiver(&network, "n2");
    [&sender, &early].iter().for_each(|node| hears_of(&network, node, &n2));
    assert_eq!(order(&sender, "n2", 9), Ok("new: 3 of 9".to_owned()));
    assert_eq!(old_order(&early, "n2", 9), Err(ResolveError::Refused { by: RefusedBy::NotAllowed }));
    let refused: u64 =
        n2.remote().links().iter().map(|link| link.refused.of(DeadLetterReason::NotAllowed)).sum();
    assert_eq!(refused, 1);
    for node in [n2, n3, sender, early] {
        assert_eq!(node.end().balance(), 0);
    }
}

#[test]
fn a_request_for_another_type_names_both_types() {
    let network = Network::new();
    let (n1, n2) = (receiver_of_both(&network, "n1"), receiver_of_both(&network, "n2"));
    for node in ["n1", "n2"] {
        // Of its own node, and of another one.
        let error = find::<Order>(&n1, node, "orders").unwrap_err();
        let ResolveError::WrongType { path, takes, wanted } = &error else { panic!("{error}") };
        assert_eq!((path.as_str(), takes.as_str()), ("/user/orders", std::any::type_name::<OldOrder>()));
        assert_eq!(*wanted, std::any::type_name::<Order>());
        let text = error.to_string();
        assert!(text.contains("ask for the type that it takes") && text.contains(takes.as_str()), "{text}");
        assert!(find::<OldOrder>(&n1, node, "orders").is_ok());
    }
    let refused = n2.remote().links()[0].refused.of(DeadLetterReason::OtherType);
    assert_eq!(refused, 1);
}
