//! Death watch, stops and pills across nodes.

use crate::network::{LONG, Network, TestNode, link, wait_until};
use pointsman::Terminated;
use pointsman::prelude::*;
use pointsman::remote::{Node, NodeEvent, Policy};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Notes what it is told.
struct Noted(Sender<String>);

impl Actor for Noted {
    type Message = String;
    fn receive(&mut self, text: String, ctx: &mut Context<String>) -> HandlerResult {
        match text.as_str() {
            "stop" => ctx.stop(),
            _ => self.0.send(text)?,
        }
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<String>) {
        let _ = self.0.send("stopped".into());
    }
}

/// Watches what it is told to, and notes each notice.
struct Watcher(Sender<(Terminated, String)>);

enum Order {
    Watch(ActorRef<String>),
    Unwatch(ActorRef<String>),
    Done(Sender<()>),
}

impl Actor for Watcher {
    type Message = Order;
    fn receive(&mut self, order: Order, ctx: &mut Context<Order>) -> HandlerResult {
        match order {
            Order::Watch(actor) => ctx.watch(&actor)?,
            Order::Unwatch(actor) => ctx.unwatch(&actor),
            Order::Done(done) => done.send(())?,
        }
        Ok(())
    }
    fn terminated(&mut self, end: Terminated, _: &mut Context<Order>) -> HandlerResult {
        let path = end.actor.path().serialized();
        self.0.send((end, path))?;
        Ok(())
    }
}

fn noted(node: &TestNode, name: &str) -> (ActorRef<String>, Receiver<String>) {
    let (sender, notes) = channel();
    (node.actor(name).spawn(move || Noted(sender.clone())).expect("the name is free"), notes)
}

fn watcher(node: &TestNode) -> (ActorRef<Order>, Receiver<(Terminated, String)>) {
    let (sender, notices) = channel();
    (node.spawn(move || Watcher(sender.clone())).expect("there is room"), notices)
}

/// Two nodes, and an actor at the second one that a watcher at the first one watches.
struct Watched {
    n1: TestNode,
    n2: TestNode,
    local: ActorRef<String>,
    notes: Receiver<String>,
    far: ActorRef<String>,
    watcher: ActorRef<Order>,
    notices: Receiver<(Terminated, String)>,
}

fn watched(network: &Network) -> Watched {
    let (n1, n2) = (network.node_with("n1", open), network.node_with("n2", open));
    let (local, notes) = noted(&n2, "watched");
    link(&n1, &n2);
    let far = find(&n1, "watched");
    let (watcher, notices) = watcher(&n1);
    watcher.tell(Order::Watch(far.clone()));
    done(&watcher);
    Watched { n1, n2, local, notes, far, watcher, notices }
}

fn open(node: Node) -> Node {
    node.message::<String>().policy(Policy::open())
}

fn find(node: &TestNode, name: &str) -> ActorRef<String> {
    node.resolve::<String>(&format!("pointsman://demo@n2/user/{name}"), LONG).wait().expect("it is there")
}

/// Waits until a watcher has done what it was told.
fn done(watcher: &ActorRef<Order>) {
    let (sender, done) = channel();
    watcher.tell(Order::Done(sender));
    done.recv_timeout(LONG).expect("it lives");
}

/// Waits until the second node has carried out the watches of the first. It does so in order, and tells at once of an actor that
/// has ended.
fn watches_are_known(n1: &TestNode, n2: &TestNode) {
    let (gone, _) = noted(n2, "gone");
    let far = find(n1, "gone");
    gone.stop();
    gone.when_ended().wait().expect("it was told to stop");
    let (watcher, notices) = watcher(n1);
    watcher.tell(Order::Watch(far));
    assert!(!notices.recv_timeout(LONG).expect("it has ended").0.existence_confirmed);
}

#[test]
fn a_watcher_is_told_once_of_the_end_of_an_actor_elsewhere() {
    let network = Network::new();
    let (n1, n2) = (network.node_with("n1", open), network.node_with("n2", open));
    let (local, notes) = noted(&n2, "watched");
    link(&n1, &n2);
    let far = find(&n1, "watched");
    let (first, of_first) = watcher(&n1);
    let (second, of_second) = watcher(&n1);
    for watcher in [&first, &second] {
        watcher.tell(Order::Watch(far.clone()));
        done(watcher);
    }
    second.tell(Order::Unwatch(far.clone()));
    done(&second);
    let any = far.untyped().expect("its stand-in");
    assert_eq!(any.path().serialized(), format!("pointsman://demo@n2/user/watched#{}", local.uid()));
    assert_eq!((any.uid(), any.typed::<String>()), (local.uid(), Ok(far.clone())));
    assert!(any.typed::<u32>().is_err());
    watches_are_known(&n1, &n2);
    far.tell("last words".to_owned());
    far.tell("stop".to_owned());
    assert_eq!(notes.recv_timeout(LONG).unwrap(), "last words");
    assert_eq!(notes.recv_timeout(LONG).unwrap(), "stopped");
    let (end, path) = of_first.recv_timeout(LONG).unwrap();
    assert_eq!(path, format!("pointsman://demo@n2/user/watched#{}", local.uid()));
    assert!(end.existence_confirmed && !end.node_down);
    assert!(far.is_closed());
    // The notice has the actor that is watched, and leads back to its reference.
    assert_eq!((Some(&end.actor), end.actor.typed::<String>()), (far.untyped().as_ref(), Ok(far.clone())));
    assert!(end.actor.typed::<u32>().is_err());
    // Who watches later hears at once.
    second.tell(Order::Watch(far.clone()));
    let (end, _) = of_second.recv_timeout(LONG).unwrap();
    assert!(!end.existence_confirmed && !end.node_down);
    assert_eq!(end.actor.typed::<String>(), Ok(far));
    network.seconds(5);
    assert!(of_first.try_recv().is_err() && of_second.try_recv().is_err());
}

#[test]
fn one_that_has_ended_before_is_told_of_without_its_existence() {
    let network = Network::new();
    let (n1, n2) = (network.node_with("n1", open), network.node_with("n2", open));
    let (local, notes) = noted(&n2, "gone");
    link(&n1, &n2);
    let far = find(&n1, "gone");
    local.stop();
    assert_eq!(notes.recv_timeout(LONG).unwrap(), "stopped");
    wait_until(|| n2.actor_at("/user/gone").is_err());
    let (watcher, notices) = watcher(&n1);
    watcher.tell(Order::Watch(far));
    let (end, _) = notices.recv_timeout(LONG).unwrap();
    assert!(!end.existence_confirmed && !end.node_down);
}

#[test]
fn a_notice_whose_mark_is_lost_gets_it_by_a_probe() {
    let network = Network::new();
    let Watched { n1, n2, local, notes, far: _far, watcher: _watcher, notices } = watched(&network);
    network.settle();
    n1.cut(true);
    local.stop();
    assert_eq!(notes.recv_timeout(LONG).unwrap(), "stopped");
    wait_until(|| n2.actor_at("/user/watched").is_err());
    network.settle();
    n1.cut(false);
    // The notice comes again, and then the mark, before the notice has waited for three seconds.
    network.seconds(3);
    let (end, _) = notices.recv_timeout(LONG).unwrap();
    assert!(!end.node_down);
    assert_eq!(n1.remote().links()[0].overdue, 0);
}

#[test]
fn a_node_that_goes_ends_what_was_watched_there_and_the_actors_live_on() {
    let network = Network::new();
    let Watched { n1, n2: _n2, local, notes, far, watcher: _watcher, notices } = watched(&network);
    n1.cut(true);
    network.seconds(20);
    let (end, _) = notices.recv_timeout(LONG).unwrap();
    assert!(end.node_down && end.existence_confirmed);
    assert!(far.is_closed() && !local.is_closed());
    // Also who watches when the node is gone.
    let (late, of_late) = self::watcher(&n1);
    late.tell(Order::Watch(far.clone()));
    let (end, _) = of_late.recv_timeout(LONG).unwrap();
    assert!(end.node_down);
    assert_eq!(end.actor.typed::<String>(), Ok(far));
    local.tell("alive".to_owned());
    assert_eq!(notes.recv_timeout(LONG).unwrap(), "alive");
}

#[test]
fn stops_and_pills_cross_where_the_policy_allows() {
    let network = Network::new();
    let n1 = network.node_with("n1", open);
    let closed = |node: Node| node.message::<String>().policy(Policy::closed().allow_path("/user/*"));
    let (n2, n3) = (network.node_with("n2", open), network.node_with("n3", closed));
    link(&n1, &n2);
    let ended = |name: &str, end: fn(&ActorRef<String>)| {
        let (_, notes) = noted(&n2, name);
        let far = find(&n1, name);
        far.tell("before".to_owned());
        end(&far);
        assert_eq!(notes.recv_timeout(LONG).unwrap(), "before");
        assert_eq!(notes.recv_timeout(LONG).unwrap(), "stopped");
        assert_eq!(far.when_ended().within(LONG).wait(), Ok(()));
    };
    ended("poisoned", ActorRef::poison);
    ended("killed", ActorRef::kill);
    let (_, notes) = noted(&n2, "stopped");
    find(&n1, "stopped").stop();
    assert_eq!(notes.recv_timeout(LONG).unwrap(), "stopped");

    let (local, notes) = noted(&n3, "kept");
    n1.remote().connect("n3");
    let far = n1.resolve::<String>("pointsman://demo@n3/user/kept", LONG).wait().expect("it is there");
    assert!(matches!(n1.event(), NodeEvent::Up { .. }));
    far.stop();
    far.poison();
    far.kill();
    far.tell("still there".to_owned());
    assert_eq!(notes.recv_timeout(LONG).unwrap(), "still there");
    network.seconds(2);
    assert!(!local.is_closed() && !far.is_closed());
}

/// The stand-ins at a node.
fn stand_ins(node: &TestNode) -> usize {
    let own = node.actor_at("/system").expect("a guardian").children();
    own.iter().filter(|actor| actor.path().address().is_some()).count()
}

#[test]
fn a_stand_in_that_is_watched_no_more_ends_and_another_watch_makes_one() {
    let network = Network::new();
    let (n1, n2) = (network.node_with("n1", open), network.node_with("n2", open));
    let (_local, _notes) = noted(&n2, "watched");
    link(&n1, &n2);
    let far = find(&n1, "watched");
    let (first, of_first) = watcher(&n1);
    first.tell(Order::Watch(far.clone()));
    done(&first);
    network.seconds(3);
    assert_eq!(stand_ins(&n1), 1);
    first.tell(Order::Unwatch(far.clone()));
    done(&first);
    let ends = || {
        wait_until(|| {
            network.seconds(1);
            stand_ins(&n1) == 0
        });
    };
    ends();
    // So it is when the watcher ends.
    let (second, _of_second) = watcher(&n1);
    second.tell(Order::Watch(far.clone()));
    done(&second);
    assert_eq!(stand_ins(&n1), 1);
    second.stop();
    ends();
    // One that code of the user has stays.
    let any = far.untyped().expect("its stand-in");
    network.seconds(3);
    assert_eq!((stand_ins(&n1), far.untyped().as_ref()), (1, Some(&any)));
    drop(any);
    ends();
    assert!(!far.is_closed() && of_first.try_recv().is_err());
    first.tell(Order::Watch(far.clone()));
    done(&first);
    far.tell("stop".to_owned());
    let (end, _) = of_first.recv_timeout(LONG).unwrap();
    // The watch may come behind the message, since the new stand-in sends it in a turn of its own.
    assert!(!end.node_down);
    assert_eq!(stand_ins(&n1), 0);
}

#[test]
fn the_end_of_a_system_ends_its_stand_ins() {
    let network = Network::new();
    let Watched { n1, n2, local, notes: _notes, far: _far, watcher: _watcher, notices: _notices } =
        watched(&network);
    n1.end();
    assert!(!local.is_closed());
    n2.end();
}
