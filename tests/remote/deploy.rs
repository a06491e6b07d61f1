//! Actors that one node makes on another: supervision, names, and what happens when a node is lost or refuses.

use crate::network::{LONG, Network, TestNode, link, wait_until};
use pointsman::prelude::*;
use pointsman::remote::{Deploy, Limits, Node, Policy};
use pointsman::settings::Deployment;
use pointsman::{Directive, SpawnError, Strategy, Terminated};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Counts what it is told, and answers to a reference that it was made with.
struct Worker {
    name: String,
    to: ActorRef<String>,
    count: usize,
}

impl Worker {
    fn say(&self, what: &str) {
        self.to.tell(format!("{} {what}", self.name));
    }
}

impl Actor for Worker {
    type Message = String;
    fn started(&mut self, ctx: &mut Context<String>) -> HandlerResult {
        let parent = ctx.parent().map(|parent| parent.path().to_string()).unwrap_or_default();
        self.say(&format!("started below {parent}"));
        Ok(())
    }
    fn receive(&mut self, text: String, ctx: &mut Context<String>) -> HandlerResult {
        self.count += 1;
        match text.as_str() {
            "fail" => Err(Failure::msg("told to fail")),
            "panic" => panic!("a bug"),
            "stop" => {
                ctx.stop();
                Ok(())
            }
            "child" => {
                let to = self.to.clone();
                ctx.actor("x").spawn(move || Below(to.clone()))?;
                Ok(())
            }
            "count" => {
                self.say(&self.count.to_string());
                Ok(())
            }
            _ => {
                self.say(&text);
                Ok(())
            }
        }
    }
    fn restarting(&mut self, _: &Failure, _: &mut Context<String>) -> HandlerResult {
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<String>) {
        self.say("stopped");
    }
}

/// A child of a worker.
struct Below(ActorRef<String>);

impl Actor for Below {
    type Message = String;
    fn receive(&mut self, text: String, _: &mut Context<String>) -> HandlerResult {
        self.0.tell(format!("x {text}"));
        Ok(())
    }
}

impl Deploy for Worker {
    const FACTORY: &'static str = "test.Worker";
    type Args = (String, ActorRef<String>);
    fn deploy((name, to): &Self::Args, _: &mut Context<String>) -> Result<Self, Failure> {
        // By its number, each attempt of the actor `panics-second`.
        static ATTEMPTS: AtomicUsize = AtomicUsize::new(0);
        match name.as_str() {
            "broken" => return Err(Failure::msg("it cannot be made")),
            "panics" => panic!("the factory panics"),
            "panics-second" if ATTEMPTS.fetch_add(1, Ordering::Relaxed) == 1 => panic!("no second time"),
            _ => {}
        }
        Ok(Self { name: name.clone(), to: to.clone(), count: 0 })
    }
}

/// An actor of the deployer that hears from its workers.
struct Hearing(Sender<String>);

impl Actor for Hearing {
    type Message = String;
    fn receive(&mut self, text: String, _: &mut Context<String>) -> HandlerResult {
        self.0.send(text)?;
        Ok(())
    }
}

/// A parent of workers elsewhere, which notes failures and ends.
struct Parent {
    notes: Sender<String>,
    verdict: Arc<Mutex<Directive>>,
}

type Made = Result<ActorRef<String>, SpawnError>;

enum Order {
    Deploy(&'static str, &'static str, ActorRef<String>, Sender<Made>),
    Fail,
    Child(&'static str, Sender<Option<pointsman::AnyActorRef>>),
    Stop,
}

impl Actor for Parent {
    type Message = Order;
    fn receive(&mut self, order: Order, ctx: &mut Context<Order>) -> HandlerResult {
        match order {
            Order::Deploy(node, name, to, made) => {
                let worker = ctx.actor(name).deploy_on::<Worker>(node, (name.to_owned(), to));
                if let Ok(worker) = &worker {
                    ctx.watch(worker)?;
                }
                made.send(worker)?;
            }
            Order::Fail => return Err(Failure::msg("the parent fails")),
            Order::Child(name, found) => found.send(ctx.child(name))?,
            Order::Stop => ctx.stop(),
        }
        Ok(())
    }
    fn restarting(&mut self, _: &Failure, _: &mut Context<Order>) -> HandlerResult {
        // The children are kept.
        Ok(())
    }
    fn terminated(&mut self, end: Terminated, _: &mut Context<Order>) -> HandlerResult {
        self.notes.send(format!("ended: {}, node down: {}", end.actor.path().as_str(), end.node_down))?;
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<Order>) {
        let _ = self.notes.send("the parent has stopped".to_owned());
    }
    fn supervision(&self) -> Strategy {
        let (notes, verdict) = (Mutex::new(self.notes.clone()), self.verdict.clone());
        Strategy::decide(move |failure: &Failure| {
            let _ = notes.lock().unwrap().send(format!("{:?}: {failure}", failure.kind()));
            *verdict.lock().unwrap()
        })
    }
}

/// Two nodes, of which the second lets the first make workers; and what is heard at the first.
struct Stage {
    network: Network,
    n1: TestNode,
    n2: TestNode,
    parent: ActorRef<Order>,
    verdict: Arc<Mutex<Directive>>,
    notes: Receiver<String>,
    hearing: ActorRef<String>,
    heard: Receiver<String>,
}

fn target(node: Node) -> Node {
    node.factory::<Worker>().policy(Policy::closed().allow_factory("test.Worker", ["n1"]))
}

impl Stage {
    fn new() -> Self {
        Self::with(target)
    }

    fn with(change: impl FnOnce(Node) -> Node) -> Self {
        let network = Network::new();
        let (n1, n2) =
            (network.node_with("n1", |node| node.message::<String>()), network.node_with("n2", change));
        link(&n1, &n2);
        Self::of(network, n1, n2)
    }

    fn of(network: Network, n1: TestNode, n2: TestNode) -> Self {
        let ((notes_to, notes), (hear, heard)) = (channel(), channel());
        let verdict = Arc::new(Mutex::new(Directive::Restart));
        let given = verdict.clone();
        let recipe = move || Parent { notes: notes_to.clone(), verdict: given.clone() };
        let parent = n1.actor("parent").spawn(recipe).expect("the name is free");
        let hearing = n1.actor("hearing").spawn(move || Hearing(hear.clone())).expect("the name is free");
        Self { network, n1, n2, parent, verdict, notes, hearing, heard }
    }

    fn deploy(&self, name: &'static str) -> ActorRef<String> {
        self.try_deploy("n2", name).expect("it can be sent")
    }

    fn try_deploy(&self, node: &'static str, name: &'static str) -> Made {
        let (made_to, made) = channel();
        self.parent.tell(Order::Deploy(node, name, self.hearing.clone(), made_to));
        made.recv_timeout(LONG).expect("the parent lives")
    }

    fn child(&self, name: &'static str) -> Option<pointsman::AnyActorRef> {
        let (found_to, found) = channel();
        self.parent.tell(Order::Child(name, found_to));
        found.recv_timeout(LONG).expect("the parent lives")
    }

    fn hears(&self, what: &str) {
        assert_eq!(self.heard.recv_timeout(LONG).expect("a word comes"), what);
    }

    fn notes(&self, what: &str) {
        assert_eq!(self.notes.recv_timeout(LONG).expect("a note comes"), what);
    }

    /// Ends both systems, whose books agree.
    fn end(self) {
        let Self { network, n1, n2, parent, hearing, .. } = self;
        drop((parent, hearing));
        network.settle();
        let (first, second) = (n1.end(), n2.end());
        assert_eq!((first.balance(), second.balance()), (0, 0), "{first} {second}");
    }
}

const STARTED: &str = "started below pointsman://demo@n1/user/parent";

#[test]
fn a_child_elsewhere_is_a_child_here() {
    let stage = Stage::new();
    let worker = stage.deploy("w");
    // Before the other node has answered.
    worker.tell("hello".to_owned());
    stage.hears(&format!("w {STARTED}"));
    stage.hears("w hello");
    let path = format!("pointsman://demo@n2/remote/demo@n1/%2Fuser%2Fparent/w#{}", worker.uid());
    assert_eq!(worker.path().serialized(), path);
    let child = stage.child("w").expect("it is a child");
    assert_eq!((child.typed::<String>(), child.path().serialized()), (Ok(worker.clone()), path));
    assert_eq!(Some(&child), worker.untyped().as_ref());
    assert_eq!(stage.n1.typed_at::<String>("/user/parent/w"), Ok(worker.clone()));
    assert!(
        matches!(stage.try_deploy("n2", "w"), Err(SpawnError::NameTaken { path }) if path == "/user/parent/w")
    );
    worker.tell("stop".to_owned());
    stage.hears("w stopped");
    stage.notes("ended: /remote/demo@n1/%2Fuser%2Fparent/w, node down: false");
    assert!(stage.child("w").is_none() && worker.is_closed());
    // The name is free, and the next one is another.
    let next = stage.deploy("w");
    stage.hears(&format!("w {STARTED}"));
    assert_ne!(next, worker);
    stage.end();
}

#[test]
fn failures_elsewhere_are_judged_here() {
    let stage = Stage::new();
    let worker = stage.deploy("w");
    stage.hears(&format!("w {STARTED}"));
    worker.tell("one".to_owned());
    stage.hears("w one");
    for (told, noted) in [("fail", "Error: told to fail"), ("panic", "Panic: panicked: a bug")] {
        worker.tell(told.to_owned());
        worker.tell("count".to_owned());
        stage.notes(noted);
        // The state is new, and the messages behind the failure were kept.
        stage.hears(&format!("w {STARTED}"));
        stage.hears("w 1");
    }
    wait_until(|| worker.untyped().expect("its stand-in").restarts() == 2);
    *stage.verdict.lock().unwrap() = Directive::Resume;
    worker.tell("fail".to_owned());
    worker.tell("count".to_owned());
    stage.notes("Error: told to fail");
    stage.hears("w 3");
    *stage.verdict.lock().unwrap() = Directive::Stop;
    worker.kill();
    stage.notes("Killed: killed");
    stage.hears("w stopped");
    stage.notes("ended: /remote/demo@n1/%2Fuser%2Fparent/w, node down: false");
    stage.end();
}

#[test]
fn an_escalated_failure_suspends_and_restarts_both() {
    let stage = Stage::new();
    *stage.verdict.lock().unwrap() = Directive::Escalate;
    let worker = stage.deploy("w");
    let second = stage.deploy("v");
    for _ in 0..2 {
        stage.heard.recv_timeout(LONG).expect("both start");
    }
    // The guardian restarts the parent, which keeps its children.
    worker.tell("fail".to_owned());
    stage.notes("Error: told to fail");
    for _ in 0..2 {
        let word = stage.heard.recv_timeout(LONG).expect("both start again");
        assert!(word.ends_with(STARTED), "{word}");
    }
    worker.tell("one".to_owned());
    stage.hears("w one");
    second.tell("two".to_owned());
    stage.hears("v two");
    stage.parent.tell(Order::Fail);
    for _ in 0..2 {
        let word = stage.heard.recv_timeout(LONG).expect("both start again");
        assert!(word.ends_with(STARTED), "{word}");
    }
    stage.end();
}

#[test]
fn a_parent_ends_after_its_children_elsewhere() {
    let stage = Stage::new();
    let worker = stage.deploy("w");
    stage.hears(&format!("w {STARTED}"));
    stage.parent.tell(Order::Stop);
    stage.notes("the parent has stopped");
    // The worker has ended before: its last word is with its recipient.
    assert!(worker.is_closed());
    stage.hears("w stopped");
    stage.end();
}

#[test]
fn children_on_a_lost_node_end_and_those_of_a_lost_parent_too() {
    let stage = Stage::new();
    let worker = stage.deploy("w");
    stage.hears(&format!("w {STARTED}"));
    let there = stage.n2.actor_at("/remote/demo@n1/%2Fuser%2Fparent/w").expect("it is there");
    // The answer to the request is behind the start of the actor.
    stage.network.settle();
    stage.n1.cut(true);
    stage.n2.cut(true);
    stage.network.seconds(40);
    stage.notes("ended: /remote/demo@n1/%2Fuser%2Fparent/w, node down: true");
    assert!(worker.is_closed());
    wait_until(|| there.is_closed());
    // A healed route makes a new beginning, and the name is free.
    stage.n1.cut(false);
    stage.n2.cut(false);
    stage.network.seconds(45);
    let next = stage.deploy("w");
    next.tell("back".to_owned());
    wait_until(|| stage.heard.try_iter().any(|word| word == "w back"));
    stage.end();
}

#[test]
fn the_uses_of_pills_and_stops_reach_children_elsewhere() {
    let stage = Stage::new();
    for way in 0..3 {
        let worker = stage.deploy("w");
        stage.hears(&format!("w {STARTED}"));
        worker.tell("last".to_owned());
        match way {
            0 => worker.poison(),
            1 => worker.untyped().expect("its stand-in").poison(),
            _ => {
                stage.hears("w last");
                worker.stop();
            }
        }
        if way < 2 {
            stage.hears("w last");
        }
        stage.hears("w stopped");
        stage.notes("ended: /remote/demo@n1/%2Fuser%2Fparent/w, node down: false");
    }
    stage.end();
}

#[test]
fn an_actor_is_deployed_on_a_node_that_is_not_linked_yet() {
    let network = Network::new();
    let n1 = network.node_with("n1", |node| node.message::<String>());
    let stage = Stage::of(network.clone(), n1, network.node_with("n2", target));
    let worker = stage.deploy("w");
    for number in 0..2_000 {
        worker.tell(number.to_string());
    }
    stage.hears(&format!("w {STARTED}"));
    for number in 0..2_000 {
        stage.hears(&format!("w {number}"));
    }
    stage.end();
}

#[test]
fn a_node_that_does_not_answer_is_a_failure_of_initialization() {
    let network = Network::new();
    let n1 = network.node_with("n1", |node| node.message::<String>());
    let n2 = network.node("other");
    let stage = Stage::of(network.clone(), n1, n2);
    stage.deploy("w").tell("late".to_owned());
    stage.network.seconds(12);
    // The verdict to restart asks again.
    stage.notes("Initialization: node n2 has not answered the request to make it");
    let n2 = network.node_with("n2", target);
    stage.network.seconds(3);
    stage.hears(&format!("w {STARTED}"));
    stage.hears("w late");
    *stage.verdict.lock().unwrap() = Directive::Stop;
    assert!(stage.child("w").is_some());
    stage.end();
    n2.end();
}

#[test]
fn refusals_fail_in_their_initialization() {
    let expect = |change: fn(Node) -> Node, noted: &str| {
        let stage = Stage::with(change);
        *stage.verdict.lock().unwrap() = Directive::Stop;
        let worker = stage.deploy("w");
        let note = stage.notes.recv_timeout(LONG).expect("it is judged");
        assert!(note.starts_with("Initialization: ") && note.contains(noted), "{note}");
        stage.notes("ended: /remote/demo@n1/%2Fuser%2Fparent/w, node down: false");
        wait_until(|| worker.is_closed());
        assert!(stage.child("w").is_none());
        stage.end();
    };
    expect(|node| node.factory::<Worker>(), "node n2 does not allow it");
    expect(|node| target(node).policy(Policy::open()), "node n2 does not allow it");
    expect(
        |node| node.policy(Policy::closed().allow_factory("test.Worker", ["n1"])),
        "the node has no factory \"test.Worker\"",
    );
    expect(
        |node| target(node).limits(Limits::new().deployed_per_peer(0)),
        "has 0 actors of this node already: raise its `[remote.limits] deployed-per-peer`",
    );
}

#[test]
fn the_limit_of_deployed_actors_counts_those_that_live() {
    let stage = Stage::with(|node| target(node).limits(Limits::new().deployed_per_peer(2)));
    *stage.verdict.lock().unwrap() = Directive::Stop;
    let first = stage.deploy("a");
    stage.deploy("b");
    for _ in 0..2 {
        stage.heard.recv_timeout(LONG).expect("both start");
    }
    stage.deploy("c");
    let note = stage.notes.recv_timeout(LONG).expect("it is judged");
    assert!(note.contains("raise its `[remote.limits] deployed-per-peer`"), "{note}");
    stage.notes("ended: /remote/demo@n1/%2Fuser%2Fparent/c, node down: false");
    first.stop();
    stage.hears("a stopped");
    stage.notes("ended: /remote/demo@n1/%2Fuser%2Fparent/a, node down: false");
    stage.deploy("c");
    stage.hears(&format!("c {STARTED}"));
    stage.end();
}

#[test]
fn a_section_of_the_target_speaks_for_what_others_deploy_there() {
    let network = Network::new();
    let n1 = network.node_with("n1", |node| node.message::<String>());
    let section = Deployment::new().class("deployed");
    let n2 = network.node_by(System::builder("demo").deploy("/remote/**", section), "n2", target);
    link(&n1, &n2);
    let stage = Stage::of(network, n1, n2);
    stage.deploy("w");
    stage.hears(&format!("w {STARTED}"));
    let there = stage.n2.actor_at("/remote/demo@n1/%2Fuser%2Fparent/w").expect("it is there");
    assert_eq!(there.class(), "deployed");
    stage.end();
}

#[test]
fn a_failure_of_the_factory_is_one_of_initialization() {
    let stage = Stage::new();
    *stage.verdict.lock().unwrap() = Directive::Stop;
    stage.deploy("broken");
    stage.notes("Initialization: it cannot be made");
    stage.notes("ended: /remote/demo@n1/%2Fuser%2Fparent/broken, node down: false");
    stage.end();
}

#[test]
fn a_panic_of_the_factory_is_a_failure_too_when_it_makes_and_when_it_restarts() {
    let stage = Stage::new();
    *stage.verdict.lock().unwrap() = Directive::Stop;
    stage.deploy("panics");
    stage.notes("Initialization: panicked: the factory panics");
    stage.notes("ended: /remote/demo@n1/%2Fuser%2Fparent/panics, node down: false");
    *stage.verdict.lock().unwrap() = Directive::Restart;
    let worker = stage.deploy("panics-second");
    stage.hears(&format!("panics-second {STARTED}"));
    worker.tell("fail".to_owned());
    worker.tell("count".to_owned());
    stage.notes("Error: told to fail");
    stage.notes("Initialization: panicked: no second time");
    stage.hears(&format!("panics-second {STARTED}"));
    stage.hears("panics-second 1");
    stage.end();
}

/// The same factory with other arguments, as of another version of the program.
struct OldWorker;

impl Actor for OldWorker {
    type Message = String;
    fn receive(&mut self, _: String, _: &mut Context<String>) -> HandlerResult {
        Ok(())
    }
}

impl Deploy for OldWorker {
    const FACTORY: &'static str = Worker::FACTORY;
    type Args = u8;
    fn deploy(_: &u8, _: &mut Context<String>) -> Result<Self, Failure> {
        Ok(Self)
    }
}

#[test]
fn arguments_that_cannot_be_read_are_refused_and_nothing_is_left() {
    let stage = Stage::new();
    let old = stage.n1.actor("old").deploy_on::<OldWorker>("n2", 200).expect("it can be sent");
    wait_until(|| old.is_closed());
    wait_until(|| stage.n2.actor_at("/remote/demo@n1").is_ok_and(|all| all.children().is_empty()));
    let link = stage.n2.remote().links().into_iter().next().expect("there is one");
    assert_eq!(link.refused_control, 1, "{link:?}");
    stage.end();
}

/// One child ends while the next one comes, again and again: the actor in the place of their parent ends and comes, too.
#[test]
fn the_last_child_of_a_parent_ends_while_the_next_one_comes() {
    let stage = Stage::new();
    for _ in 0..200 {
        let worker = stage.deploy("w");
        stage.hears(&format!("w {STARTED}"));
        worker.tell("stop".to_owned());
        let next = stage.deploy("v");
        next.tell("stop".to_owned());
        let mut words: Vec<String> =
            (0..3).map(|_| stage.heard.recv_timeout(LONG).expect("a word")).collect();
        words.sort();
        assert_eq!(words, [&format!("v {STARTED}"), "v stopped", "w stopped"]);
        let mut ends: Vec<String> = (0..2).map(|_| stage.notes.recv_timeout(LONG).expect("an end")).collect();
        ends.sort();
        assert!(ends.iter().all(|end| end.starts_with("ended: ")), "{ends:?}");
    }
    stage.end();
}

/// A worker elsewhere that has a child there, beside an actor here that has none.
fn with_child(policy: fn(Policy) -> Policy) -> Stage {
    let stage = Stage::with(|node| {
        target(node).policy(policy(Policy::closed().allow_factory("test.Worker", ["n1"])))
    });
    stage.deploy("w").tell("child".to_owned());
    assert!(stage.try_deploy("n1", "here").is_ok());
    for _ in 0..2 {
        stage.heard.recv_timeout(LONG).expect("both start");
    }
    let path = "/remote/demo@n1/%2Fuser%2Fparent/w/x";
    wait_until(|| stage.n2.actor_at(path).is_ok());
    stage
}

#[test]
fn a_path_below_a_child_elsewhere_goes_on_there() {
    // An open node alone lets wildcards in.
    let stage = with_child(|_| Policy::open().allow_factory("test.Worker", ["n1"]));
    let n1 = &stage.n1;
    let tell = |text: &str, word: &str| {
        let told = n1.select(text).expect("a selection").tell(word.to_owned());
        (told.reached, told.missing)
    };
    assert_eq!(tell("/user/parent/w/x", "one"), (1, None));
    stage.hears("x one");
    // With a wildcard at the child, below it, and at both; `here` has no child.
    for (text, word) in [("/user/parent/*/x", "two"), ("/user/parent/w/?", "three"), ("/user/*/w/*", "four")]
    {
        assert_eq!(tell(text, word), (1, None));
        stage.hears(&format!("x {word}"));
    }
    let one = n1.select("/user/parent/w/x").expect("a selection").tell_one("five".to_owned());
    assert!(one.is_ok_and(|told| told.reached == 1));
    stage.hears("x five");
    let x = n1.resolve::<String>("/user/parent/w/x", LONG).wait().expect("it is there");
    let path = "pointsman://demo@n2/remote/demo@n1/%2Fuser%2Fparent/w/x";
    assert_eq!(x.path().to_string(), path);
    x.tell("six".to_owned());
    stage.hears("x six");
    let by_uid = format!("/user/parent/w/x#{}", x.uid());
    assert_eq!(n1.resolve::<String>(&by_uid, LONG).wait(), Ok(x.clone()));
    let identified = n1.select("/user/*/w/x").expect("a selection").resolve_one(LONG).wait();
    assert_eq!(identified.map(|found| found.typed()), Ok(Ok(x.clone())));
    let group = n1.router("group").group_at::<String>(["/user/parent/w/x"]).spawn().expect("a sound path");
    group.tell("seven".to_owned());
    stage.hears("x seven");
    // Nothing is there, here or at the other node.
    assert!(tell("/user/parent/v/x", "lost").1.is_some());
    let none = n1.select("/user/parent/w/none").expect("a selection").resolve_one(LONG).wait();
    assert!(none.is_err());
    let none = n1.resolve::<String>("/user/parent/w/none", LONG).wait();
    assert!(matches!(none, Err(pointsman::remote::ResolveError::NotFound { .. })), "{none:?}");
    // The path of the child itself ends here, and `..` does not leave it at the other node.
    assert!(n1.resolve::<String>("/user/parent/w", LONG).wait().is_ok());
    assert!(tell("/user/parent/w/x/../x", "lost").1.is_some());
    assert_eq!(tell("/user/parent/w/../w/x", "eight"), (1, None));
    stage.hears("x eight");
    drop((x, group));
    stage.n1.actor_at("/user/group").expect("it routes").stop();
    stage.end();
}

#[test]
fn a_path_below_a_child_elsewhere_is_listed_there_or_refused() {
    let stage = with_child(|policy| policy);
    let refused = stage.n1.resolve::<String>("/user/parent/w/x", LONG).wait();
    let not_allowed = pointsman::ask::RefusedBy::NotAllowed;
    assert_eq!(refused, Err(pointsman::remote::ResolveError::Refused { by: not_allowed }));
    let selection = stage.n1.select("/user/parent/w/x").expect("a selection");
    assert!(selection.resolve_one(LONG).wait().is_err());
    stage.end();
    let stage = with_child(|policy| policy.allow_path("/remote/demo@n1/**"));
    let selection = stage.n1.select("/user/parent/w/x").expect("a selection");
    assert_eq!(selection.tell("listed".to_owned()).reached, 1);
    stage.hears("x listed");
    stage.end();
}

#[test]
fn the_own_node_makes_an_ordinary_child() {
    let stage = Stage::new();
    let worker = stage.try_deploy("n1", "w").expect("there is room");
    stage.hears("w started below /user/parent");
    assert_eq!(worker.path().to_string(), "/user/parent/w");
    worker.tell("fail".to_owned());
    stage.notes("Error: told to fail");
    stage.hears("w started below /user/parent");
    stage.end();
}

#[test]
fn what_cannot_be_sent_is_refused_at_the_call() {
    let network = Network::new();
    let n1 = network.node("n1");
    let to = n1.actor("to").spawn(|| Hearing(channel().0)).expect("the name is free");
    let deploy = |node: &str, name: String| {
        let refused = n1.actor("w").deploy_on::<Worker>(node, (name, to.clone()));
        refused.expect_err("it cannot be sent").to_string()
    };
    assert!(deploy("n 2", String::new()).contains("\"n 2\" is no name of a node"));
    assert!(deploy("n2", "x".repeat(1 << 16)).contains("send what is large in a message"));
    let named = n1
        .actor("w")
        .mailbox(pointsman::Mailbox::bounded(3))
        .deploy_on::<Worker>("n2", (String::new(), to.clone()));
    assert!(named.expect_err("code cannot be sent").to_string().contains("its mailbox is described by code"));
    let function = ActorRef::from_fn(|_: String| {});
    let refused = n1.actor("w").deploy_on::<Worker>("n2", (String::new(), function));
    assert!(refused.expect_err("a function stays").to_string().contains("an adapter or a function"));
    let alone = System::builder("demo").build().expect("the defaults");
    let refused = alone.actor("w").deploy_on::<Worker>("n2", (String::new(), to.clone()));
    assert!(refused.expect_err("it has no node").to_string().contains("SystemBuilder::node"));
}

#[test]
fn a_backoff_supervisor_makes_an_actor_elsewhere_anew() {
    let stage = Stage::new();
    let second = std::time::Duration::from_secs(1);
    let backoff = pointsman::pattern::Backoff::on_stop(second, second).manual_reset();
    let args = ("w".to_owned(), stage.hearing.clone());
    let supervisor = stage.n1.actor("boss").deploy_backoff::<Worker>("n2", args, backoff).expect("it spawns");
    let hears_start = || stage.hears("w started below pointsman://demo@n1/user/boss");
    hears_start();
    let first = supervisor.child().expect("the first one is there at once");
    assert!(!first.is_here());
    supervisor.to_ref().tell("hello".to_owned());
    stage.hears("w hello");
    first.tell("stop".to_owned());
    stage.hears("w stopped");
    wait_until(|| supervisor.child().is_none());
    // The pause may begin a moment later.
    wait_until(|| {
        stage.network.seconds(1);
        supervisor.child().is_some_and(|next| next != first && !next.is_here())
    });
    hears_start();
    supervisor.to_ref().tell("again".to_owned());
    stage.hears("w again");
    assert_eq!(supervisor.restarts(), 1);
    drop(supervisor);
    stage.end();
}
