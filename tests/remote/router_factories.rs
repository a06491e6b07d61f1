//! Routers that one node makes on another.

use crate::network::{LONG, Network, TestNode, link, wait_until};
use pointsman::actor::DeployFault;
use pointsman::prelude::*;
use pointsman::remote::{Node, Policy, Wire};
use pointsman::routing::{Broadcast, RouterSettings};
use pointsman::settings::Deployment;
use pointsman::{SpawnError, Strategy};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Name;

impl Request for Name {
    type Reply = String;
}

#[derive(Clone, Message, Wire, Serialize, Deserialize)]
#[wire(name = "test.RoutedJob", version = 1)]
enum Job {
    Do(u32),
    Fail,
    Name(Call<Name>),
}

/// Tells what it does, in this process.
struct Worker {
    index: usize,
    says: Sender<String>,
}

impl Actor for Worker {
    type Message = Job;
    fn receive(&mut self, job: Job, ctx: &mut Context<Job>) -> HandlerResult {
        match job {
            Job::Do(number) => self.says.send(format!("{} did {number}", self.index))?,
            Job::Fail => return Err(Failure::msg("told to fail")),
            Job::Name(call) => {
                let path = ctx.path().to_string();
                call.answer(|Name| path);
            }
        }
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<Job>) {
        let _ = self.says.send(format!("{} stopped", self.index));
    }
}

struct Two {
    network: Network,
    n1: TestNode,
    n2: TestNode,
    said: Receiver<String>,
}

/// How a router is described.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Shape {
    Pool(usize),
    Escalating(usize),
    Panics,
}

fn two() -> Two {
    let network = Network::new();
    let (says, said) = channel();
    let says = Mutex::new(says);
    let describe = move |shape: Shape, router: pointsman::routing::RouterBuilder| {
        let says = says.lock().unwrap().clone();
        let says = Mutex::new(says);
        let (size, strategy) = match shape {
            Shape::Pool(size) => (size, Strategy::default()),
            Shape::Escalating(size) => (size, Strategy::escalate()),
            Shape::Panics => panic!("no such shape"),
        };
        let worker = move |ctx: &mut Context<Job>| Worker {
            index: ctx.routee_index(),
            says: says.lock().unwrap().clone(),
        };
        router.pool(size, worker).on_failure(strategy)
    };
    let describe = Arc::new(describe);
    let own = describe.clone();
    let policy = Policy::closed().allow_factory("test.workers", ["n1"]);
    let n1 = network
        .node_with("n1", |node| node.router_factory("test.workers", move |shape, router| own(shape, router)));
    let second = System::builder("demo")
        .deploy("/remote/demo@n1/*/said", Deployment::new().router(RouterSettings::new().nr_of_instances(5)));
    let n2 = network.node_by(second, "n2", |node: Node| {
        node.router_factory("test.workers", move |shape, router| describe(shape, router)).policy(policy)
    });
    link(&n1, &n2);
    Two { network, n1, n2, said }
}

impl Two {
    fn deploy(&self, name: &str, shape: Shape) -> ActorRef<Job> {
        self.n1.router(name).deploy_on("n2", "test.workers", shape).expect("it can be sent")
    }

    #[track_caller]
    fn says(&self, mut expected: Vec<String>) {
        let mut said: Vec<String> =
            expected.iter().map(|_| self.said.recv_timeout(LONG).expect("a word comes")).collect();
        said.sort_unstable();
        expected.sort_unstable();
        assert_eq!(said, expected);
    }

    #[track_caller]
    fn end(self) {
        self.network.settle();
        let (first, second) = (self.n1.end(), self.n2.end());
        assert_eq!((first.balance(), second.balance()), (0, 0), "{first} {second}");
    }
}

#[test]
fn a_router_elsewhere_routes_there_and_is_a_child_here() {
    let two = two();
    let workers = two.deploy("workers", Shape::Pool(3));
    // Before the other node has answered.
    (0..6).for_each(|number| workers.tell(Job::Do(number)));
    two.says((0..6).map(|number| format!("{} did {number}", number % 3)).collect());
    assert_eq!(workers.path().to_string(), "pointsman://demo@n2/remote/demo@n1/%2Fuser/workers");
    let name = workers.ask(Name).within(LONG).wait().expect("it is answered");
    assert!(name.starts_with("/remote/demo@n1/%2Fuser/workers/"), "{name}");
    assert_eq!(two.n1.typed_at::<Job>("/user/workers"), Ok(workers.clone()));
    let taken = two.n1.router("workers").deploy_on::<Job>("n2", "test.workers", Shape::Pool(1));
    assert!(matches!(taken, Err(SpawnError::NameTaken { .. })));
    // At its own node it is a router by its path.
    let there = two.n2.typed_at::<Job>("/remote/demo@n1/%2Fuser/workers").expect("it is there");
    there.tell(Job::Do(7));
    assert!(two.said.recv_timeout(LONG).expect("a word comes").ends_with("did 7"));
    workers.stop();
    workers.when_ended().wait().expect("it ends");
    two.says((0..3).map(|index| format!("{index} stopped")).collect());
    wait_until(|| two.n1.typed_at::<Job>("/user/workers").is_err());
    two.end();
}

#[test]
fn sections_of_the_target_apply_to_a_router_that_is_made_there() {
    let two = two();
    let said = two.deploy("said", Shape::Pool(1));
    (0..5).for_each(|number| said.tell(Job::Do(number)));
    two.says((0..5).map(|number| format!("{number} did {number}")).collect());
    two.end();
}

#[test]
fn a_router_elsewhere_that_escalates_is_judged_here() {
    let two = two();
    let workers = two.deploy("workers", Shape::Escalating(2));
    workers.tell(Job::Fail);
    // The guardian restarts the router: each of its routees begins anew in its place.
    workers.tell(Job::Do(1));
    workers.tell(Job::Do(2));
    two.says(vec![
        "0 did 2".to_owned(),
        "0 stopped".to_owned(),
        "1 did 1".to_owned(),
        "1 stopped".to_owned(),
    ]);
    wait_until(|| workers.untyped().is_some_and(|stand_in| stand_in.restarts() == 1));
    two.end();
}

#[test]
fn the_own_node_makes_the_router_by_its_own_factory() {
    let two = two();
    let workers =
        two.n1.router("workers").deploy_on::<Job>("n1", "test.workers", Shape::Pool(2)).expect("it spawns");
    assert!(workers.is_here());
    (0..2).for_each(|number| workers.tell(Job::Do(number)));
    two.says(vec!["0 did 0".to_owned(), "1 did 1".to_owned()]);
    let refused = |made: Result<ActorRef<Job>, SpawnError>| match made {
        Err(SpawnError::Deploy { path, fault: DeployFault::RouterFactory { why, .. } }) => {
            assert_eq!(path, "/user/other");
            why
        }
        other => panic!("{other:?}"),
    };
    let other = || two.n1.router("other");
    assert!(refused(other().deploy_on("n1", "test.workers", 7u32)).contains("other arguments"));
    assert!(refused(other().deploy_on("n1", "test.none", 7u32)).contains("none of this name"));
    let text = two.n1.router("other").deploy_on::<String>("n1", "test.workers", Shape::Pool(2));
    assert!(text.is_err());
    two.end();
}

#[test]
fn a_router_that_cannot_be_made_fails_in_its_initialization() {
    let two = two();
    let (failure_to, failures) = channel();
    let failure_to = Mutex::new(failure_to);
    struct Parent(Strategy);
    enum Deploy {
        Router(&'static str, Shape, &'static str),
    }
    impl Actor for Parent {
        type Message = Deploy;
        fn receive(
            &mut self,
            Deploy::Router(name, shape, factory): Deploy,
            ctx: &mut Context<Deploy>,
        ) -> HandlerResult {
            ctx.router(name).deploy_on::<Job>("n2", factory, shape)?;
            Ok(())
        }
        fn supervision(&self) -> Strategy {
            self.0.clone()
        }
    }
    let strategy = Strategy::decide(move |failure: &Failure| {
        let _ = failure_to.lock().unwrap().send(failure.to_string());
        pointsman::Directive::Stop
    });
    let parent = two.n1.actor("parent").spawn(move || Parent(strategy.clone())).expect("the name is free");
    for (name, shape, factory, why) in [
        ("empty", Shape::Pool(0), "test.workers", "size 0"),
        ("panics", Shape::Panics, "test.workers", "no such shape"),
        ("unknown", Shape::Pool(1), "test.none", "does not allow it"),
    ] {
        parent.tell(Deploy::Router(name, shape, factory));
        let failure = failures.recv_timeout(LONG).expect("it fails");
        assert!(failure.contains(why), "{failure}");
    }
    // Nothing is left there.
    wait_until(|| two.n2.typed_at::<Job>("/remote/demo@n1/%2Fuser%2Fparent/empty").is_err());
    two.end();
}

#[test]
fn factories_have_distinct_names() {
    let node = Node::new("n1").engine(pointsman::remote::InProcess::new());
    let describe = |size: usize, router: pointsman::routing::RouterBuilder| {
        router.group(vec![ActorRef::<Job>::from_fn(|_| {}); size]).logic(Broadcast)
    };
    let twice = node.router_factory("test.same", describe).router_factory("test.same", describe);
    let error = System::builder("demo").node(twice).build().expect_err("the name is taken").to_string();
    assert!(error.contains("\"test.same\""), "{error}");
}
