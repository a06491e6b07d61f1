//! Pools whose routees are on several nodes: names, shares, supervision, resizes, and routees that leave.

use crate::network::{LONG, Network, TestNode, link, wait_until};
use pointsman::actor::DeployFault;
use pointsman::prelude::*;
use pointsman::remote::{Deploy, Node, Policy, Wire};
use pointsman::routing::RecipientLoad;
use pointsman::routing::{
    ConsistentHashing, RouterSettings, ScatterGatherFirstCompleted, SectionFault, SmallestMailbox,
    TailChopping,
};
use pointsman::settings::Deployment;
use pointsman::{SpawnError, Strategy};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU8;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

/// The record of the workers of one test: all nodes are in this process.
#[derive(Default)]
struct Done {
    /// The name of each worker, and what it has been told.
    handled: Mutex<Vec<(String, u64)>>,
    life: Mutex<Vec<String>>,
    /// Messages at which workers wait for this many permits.
    permits: AtomicU64,
}

static TESTS: LazyLock<Mutex<HashMap<u64, Arc<Done>>>> = LazyLock::new(Mutex::default);

fn done(test: u64) -> Arc<Done> {
    TESTS.lock().unwrap().entry(test).or_default().clone()
}

impl Done {
    fn count(&self) -> usize {
        self.handled.lock().unwrap().len()
    }

    fn shares(&self) -> BTreeMap<String, usize> {
        let mut shares = BTreeMap::new();
        for (name, _) in &*self.handled.lock().unwrap() {
            *shares.entry(name.clone()).or_default() += 1;
        }
        shares
    }

    #[track_caller]
    fn has_handled(&self, count: usize) {
        wait_until(|| self.count() >= count);
        assert_eq!(self.count(), count);
    }

    fn has_lived(&self, what: &str) -> bool {
        self.life.lock().unwrap().iter().any(|said| said == what)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Job {
    Do(u64),
    /// Waits until the test gives a permit.
    Wait,
    Fail,
    Stop,
}

impl Wire for Job {
    const NAME: &'static str = "test.Job";
}

struct Worker {
    name: String,
    done: Arc<Done>,
}

impl Actor for Worker {
    type Message = Job;
    fn started(&mut self, ctx: &mut Context<Job>) -> HandlerResult {
        let parent = ctx.parent().map(|parent| parent.path().to_string()).unwrap_or_default();
        self.done.life.lock().unwrap().push(format!("{} started below {parent}", self.name));
        Ok(())
    }
    fn receive(&mut self, job: Job, ctx: &mut Context<Job>) -> HandlerResult {
        match job {
            Job::Do(number) => self.done.handled.lock().unwrap().push((self.name.clone(), number)),
            Job::Wait => wait_until(|| {
                self.done
                    .permits
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok()
            }),
            Job::Fail => return Err(Failure::msg("told to fail")),
            Job::Stop => ctx.stop(),
        }
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<Job>) {
        self.done.life.lock().unwrap().push(format!("{} stopped", self.name));
    }
}

impl Deploy for Worker {
    const FACTORY: &'static str = "test.PoolWorker";
    type Args = u64;
    fn deploy(test: &u64, ctx: &mut Context<Job>) -> Result<Self, Failure> {
        let name = ctx.path().elements().last().unwrap_or_default().to_owned();
        let done = done(*test);
        done.life.lock().unwrap().push(format!("{name} made"));
        Ok(Self { name, done })
    }
}

fn worker_node(node: Node) -> Node {
    let policy =
        Policy::closed().allow_factory(Worker::FACTORY, ["n1"]).allow_factory(Answering::FACTORY, ["n1"]);
    node.factory::<Worker>().factory::<Answering>().message::<Asked>().policy(policy)
}

/// Three nodes, of which the first deploys on the others.
fn three(network: &Network) -> [TestNode; 3] {
    three_with(network, System::builder("demo"))
}

fn three_with(network: &Network, first: pointsman::SystemBuilder) -> [TestNode; 3] {
    let n1 = network.node_by(first, "n1", |node| node.message::<Job>().message::<Asked>());
    let others = ["n2", "n3"].map(|name| network.node_with(name, worker_node));
    for other in &others {
        link(&n1, other);
    }
    let [n2, n3] = others;
    [n1, n2, n3]
}

/// Ends the systems, whose books agree. Returns the dead letters of all.
#[track_caller]
fn end(network: &Network, nodes: [TestNode; 3]) -> u64 {
    network.settle();
    let ledgers = nodes.map(TestNode::end);
    assert!(ledgers.iter().all(|ledger| ledger.balance() == 0), "{ledgers:?}");
    ledgers.iter().map(|ledger| ledger.dead_lettered).sum()
}

const EVERYWHERE: [&str; 3] = ["n1", "n2", "n3"];

#[test]
fn routees_go_round_the_nodes_and_resizes_go_on_with_the_count() {
    let network = Network::new();
    let nodes = three(&network);
    let done = done(1);
    let pool = nodes[0]
        .router("workers")
        .deployable_pool::<Worker>(4, 1)
        .on_nodes(EVERYWHERE)
        .spawn()
        .expect("it spawns");
    let paths = |pool: &Router<Job>| -> Vec<String> {
        pool.routees().expect("it lives").iter().map(|routee| routee.path().to_string()).collect()
    };
    assert_eq!(
        paths(&pool),
        [
            "/user/workers/c1",
            "pointsman://demo@n2/remote/demo@n1/%2Fuser%2Fworkers/c2",
            "pointsman://demo@n3/remote/demo@n1/%2Fuser%2Fworkers/c3",
            "/user/workers/c4",
        ]
    );
    (0..40).for_each(|number| pool.tell(Job::Do(number)));
    done.has_handled(40);
    assert_eq!(done.shares(), ["c1", "c2", "c3", "c4"].map(|name| (name.to_owned(), 10)).into());
    assert!(done.has_lived("c1 started below /user/workers"));
    assert!(done.has_lived("c2 started below pointsman://demo@n1/user/workers"));
    // A child here is found by its name, and is the very same reference.
    let third = nodes[0].typed_at::<Job>("/user/workers/c3").expect("it is a child");
    assert_eq!(third, pool.routees().expect("it lives")[2]);
    // The last routees leave, and those that come have new names.
    assert_eq!(pool.resize_to(2), Ok(2));
    wait_until(|| done.has_lived("c3 stopped") && done.has_lived("c4 stopped"));
    assert_eq!(pool.resize_to(4), Ok(4));
    assert_eq!(
        paths(&pool)[2..],
        [
            "pointsman://demo@n2/remote/demo@n1/%2Fuser%2Fworkers/c5",
            "pointsman://demo@n3/remote/demo@n1/%2Fuser%2Fworkers/c6",
        ]
    );
    pool.drain().expect("it lives");
    pool.when_ended().wait().expect("it ends");
    assert!(["c1", "c2", "c5", "c6"].iter().all(|name| done.has_lived(&format!("{name} stopped"))));
    assert_eq!(end(&network, nodes), 0);
}

#[test]
fn a_pool_without_nodes_is_one_of_this_node() {
    let network = Network::new();
    let n1 = network.node("n1");
    let pool = n1.router("workers").deployable_pool::<Worker>(2, 2).spawn().expect("it spawns");
    assert!(pool.routees().expect("it lives").iter().all(|routee| routee.is_here()));
    pool.tell(Job::Do(1));
    done(2).has_handled(1);
    assert_eq!(n1.end().balance(), 0);
}

#[test]
fn no_message_is_lost_while_routees_leave_under_load() {
    const SENDERS: u64 = 3;
    const EACH: u64 = 1_300;
    /// The messages of a round. So few do not choke a worker, even if it has got them all.
    const ROUND: u64 = SENDERS * EACH;
    const ROUNDS: u64 = 3;
    let network = Network::new();
    let nodes = three(&network);
    let done = done(3);
    let pool = nodes[0]
        .router("workers")
        .deployable_pool::<Worker>(6, 3)
        .on_nodes(EVERYWHERE)
        .spawn()
        .expect("it spawns");
    for round in 0..ROUNDS {
        std::thread::scope(|scope| {
            let senders: Vec<_> = (0..SENDERS)
                .map(|sender| {
                    let (pool, first) = (pool.to_ref(), round * ROUND + sender * EACH);
                    scope.spawn(move || (first..first + EACH).for_each(|number| pool.tell(Job::Do(number))))
                })
                .collect();
            let mut size = 2;
            while !senders.iter().all(|sender| sender.is_finished()) {
                pool.resize_to(size).expect("it lives");
                size = 10 - size;
            }
        });
        // Requests to leave that still wait for a table go out by the clock.
        network.seconds(2);
        done.has_handled(((round + 1) * ROUND) as usize);
    }
    let mut numbers: Vec<u64> = done.handled.lock().unwrap().iter().map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..ROUNDS * ROUND), "each once");
    assert_eq!(end(&network, nodes), 0);
}

#[test]
fn what_a_routee_leaves_behind_is_routed_again() {
    let network = Network::new();
    // All messages to a node come in order.
    let in_order = |node: Node| node.lanes(NonZeroU8::MIN);
    let n1 = network.node_with("n1", |node| in_order(node).message::<Job>());
    let n2 = network.node_with("n2", |node| worker_node(in_order(node)));
    link(&n1, &n2);
    let done = done(4);
    let pool = n1
        .router("workers")
        .deployable_pool::<Worker>(2, 4)
        .on_nodes(["n1", "n2"])
        .leave_within(Duration::ZERO)
        .spawn()
        .expect("it spawns");
    let second = pool.routees().expect("it lives")[1].clone();
    second.tell(Job::Wait);
    (0..10).for_each(|number| second.tell(Job::Do(number)));
    let last = n1.actor("last").deploy_on::<Worker>("n2", 4).expect("it spawns");
    assert_eq!(pool.resize_to(1), Ok(1));
    network.seconds(2);
    // The request to leave has come, and is handled before what comes next.
    wait_until(|| n2.remote().links()[0].received == 12);
    last.tell(Job::Do(10));
    done.has_handled(1);
    done.permits.store(1, Ordering::SeqCst);
    done.has_handled(11);
    assert_eq!(done.shares(), [("c1".to_owned(), 10), ("last".to_owned(), 1)].into());
    wait_until(|| done.has_lived("c2 stopped"));
    network.settle();
    let ledgers = [n1, n2].map(TestNode::end);
    assert!(ledgers.iter().all(|ledger| (ledger.balance(), ledger.dead_lettered) == (0, 0)), "{ledgers:?}");
}

#[test]
fn a_routee_elsewhere_that_takes_too_long_to_leave_is_stopped() {
    let network = Network::new();
    let nodes = three(&network);
    let done = done(12);
    let pool = nodes[0]
        .router("workers")
        .deployable_pool::<Worker>(2, 12)
        .on_nodes(["n2"])
        .farewell(|| Job::Do(7))
        .leave_within(Duration::from_secs(5))
        .spawn()
        .expect("it spawns");
    assert_eq!(pool.resize_to(1), Ok(1));
    // It gets its farewell, and does not stop itself.
    wait_until(|| {
        network.seconds(1);
        done.count() == 1
    });
    wait_until(|| {
        network.seconds(1);
        done.has_lived("c2 stopped")
    });
    assert_eq!(end(&network, nodes), 0);
}

#[test]
fn a_farewell_reaches_a_routee_elsewhere_behind_all_that_was_routed() {
    let network = Network::new();
    let nodes = three(&network);
    let done = done(5);
    let pool = nodes[0]
        .router("workers")
        .deployable_pool::<Worker>(3, 5)
        .on_nodes(["n2"])
        .farewell(|| Job::Stop)
        .spawn()
        .expect("it spawns");
    (0..30).for_each(|number| pool.tell(Job::Do(number)));
    assert_eq!(pool.resize_to(1), Ok(1));
    network.seconds(2);
    done.has_handled(30);
    wait_until(|| done.has_lived("c2 stopped") && done.has_lived("c3 stopped"));
    let left = pool.routees().expect("it lives")[0].clone();
    left.tell(Job::Do(30));
    done.has_handled(31);
    assert_eq!(end(&network, nodes), 0);
}

#[test]
fn routees_elsewhere_are_restarted_and_stopped_by_the_strategy_of_the_pool() {
    let network = Network::new();
    let nodes = three(&network);
    let done = done(6);
    let pool = nodes[0]
        .router("workers")
        .deployable_pool::<Worker>(2, 6)
        .on_nodes(["n2", "n3"])
        .on_failure(Strategy::default().max_restarts(1).within(Duration::from_secs(60)))
        .spawn()
        .expect("it spawns");
    let first = pool.routees().expect("it lives")[0].clone();
    first.tell(Job::Fail);
    first.tell(Job::Do(1));
    done.has_handled(1);
    let made = || done.life.lock().unwrap().iter().filter(|said| *said == "c1 made").count();
    assert_eq!(made(), 2);
    wait_until(|| pool.routees_info().expect("it lives")[0].restarts == 1);
    first.tell(Job::Fail);
    wait_until(|| pool.routees().expect("it lives").len() == 1);
    assert!(done.has_lived("c1 stopped"));
    (2..5).for_each(|number| pool.tell(Job::Do(number)));
    done.has_handled(4);
    assert_eq!(done.shares(), [("c1".to_owned(), 1), ("c2".to_owned(), 3)].into());
    assert_eq!(end(&network, nodes), 0);
}

#[test]
fn a_pool_shrinks_by_the_loss_of_a_node_and_ends_with_its_last_routee() {
    let network = Network::new();
    let [n1, n2, n3] = three(&network);
    let pool = n1
        .router("workers")
        .deployable_pool::<Worker>(4, 7)
        .on_nodes(["n2", "n3"])
        .spawn()
        .expect("it spawns");
    let done = done(7);
    wait_until(|| {
        (1..=4).all(|number| {
            done.life.lock().unwrap().iter().any(|said| said.starts_with(&format!("c{number} started")))
        })
    });
    network.settle();
    n2.cut(true);
    n1.cut(true);
    n1.cut(false);
    let ledger = n2.end();
    assert_eq!(ledger.balance(), 0);
    network.seconds(30);
    wait_until(|| pool.routees().expect("it lives").len() == 2);
    (0..6).for_each(|number| pool.tell(Job::Do(number)));
    done.has_handled(6);
    assert_eq!(done.shares(), [("c2".to_owned(), 3), ("c4".to_owned(), 3)].into());
    n3.end();
    pool.when_ended().wait().expect("it ends");
    assert_eq!(n1.end().balance(), 0);
}

#[derive(Clone, Message, Wire, Serialize, Deserialize)]
#[wire(name = "test.Asked", version = 1)]
enum Asked {
    Name(Call<Name>),
    Wait,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Name(u64);

impl Request for Name {
    type Reply = String;
}

/// Answers with its name, and waits for permits first if it is told so.
struct Answering(Arc<Done>);

impl Actor for Answering {
    type Message = Asked;
    fn receive(&mut self, asked: Asked, ctx: &mut Context<Asked>) -> HandlerResult {
        match asked {
            Asked::Name(call) => {
                let name = ctx.path().elements().last().unwrap_or_default().to_owned();
                call.answer(|_| name);
            }
            Asked::Wait => wait_until(|| {
                self.0
                    .permits
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok()
            }),
        }
        Ok(())
    }
}

impl Deploy for Answering {
    const FACTORY: &'static str = "test.Answering";
    type Args = u64;
    fn deploy(test: &u64, _: &mut Context<Asked>) -> Result<Self, Failure> {
        Ok(Self(done(*test)))
    }
}

#[test]
fn logics_route_to_routees_here_and_elsewhere() {
    let network = Network::new();
    let nodes = three(&network);
    let done = done(8);
    let n1 = &nodes[0];
    // Those here are known to be idle, so those elsewhere come last.
    let smallest = n1
        .router("smallest")
        .deployable_pool::<Worker>(3, 8)
        .on_nodes(EVERYWHERE)
        .logic(SmallestMailbox::new())
        .spawn()
        .expect("it spawns");
    assert_eq!(smallest.routees().expect("it lives")[1].load(), RecipientLoad::Unknown);
    for number in 0..5 {
        smallest.tell(Job::Do(number));
        done.has_handled(number as usize + 1);
    }
    assert_eq!(done.shares(), [("c1".to_owned(), 5)].into());
    // Equal keys meet the same routee.
    let keyed = n1
        .router("keyed")
        .deployable_pool::<Worker>(6, 8)
        .on_nodes(EVERYWHERE)
        .logic(ConsistentHashing::by(|job: &Job, key| match job {
            Job::Do(number) => key.feed(&(number % 7)),
            _ => key.feed(&0),
        }))
        .spawn()
        .expect("it spawns");
    (100..170).for_each(|number| keyed.tell(Job::Do(number)));
    done.has_handled(75);
    let mut owners: HashMap<u64, String> = HashMap::new();
    for (name, number) in done.handled.lock().unwrap().iter().filter(|(_, number)| *number >= 100) {
        assert_eq!(owners.entry(number % 7).or_insert_with(|| name.clone()), name);
    }
    // The first of all answers, and the next that is asked.
    let ask = |router: &Router<Asked>| router.ask(Name(1)).within(LONG).wait().expect("it is answered");
    let gathering = n1
        .router("gathering")
        .deployable_pool::<Answering>(3, 9)
        .on_nodes(["n2", "n3"])
        .logic(ScatterGatherFirstCompleted::within(LONG))
        .spawn()
        .expect("it spawns");
    gathering.routees().expect("it lives")[..2].iter().for_each(|routee| routee.tell(Asked::Wait));
    assert_eq!(ask(&gathering), "c3");
    let chopping = n1
        .router("chopping")
        .deployable_pool::<Answering>(2, 9)
        .on_nodes(["n2", "n3"])
        .logic(TailChopping::within(LONG).interval(Duration::from_millis(100)))
        .spawn()
        .expect("it spawns");
    chopping.routees().expect("it lives")[0].tell(Asked::Wait);
    let asked = chopping.ask(Name(2)).within(LONG);
    network.clock.advance(Duration::from_millis(100));
    network.clock.advance(Duration::from_millis(100));
    assert_eq!(asked.wait().expect("it is answered"), "c2");
    crate::pools::done(9).permits.store(3, Ordering::SeqCst);
    end(&network, nodes);
}

#[track_caller]
fn fault(plan: Result<Router<Job>, SpawnError>) -> DeployFault {
    match plan {
        Err(SpawnError::Deploy { path, fault }) => {
            assert_eq!(path, "/user/workers");
            fault
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn plans_that_no_pool_of_nodes_can_have_are_refused() {
    let network = Network::new();
    let n1 = network.node("n1");
    let pool = || n1.router("workers").deployable_pool::<Worker>(2, 10);
    let here = |_: &mut Context<Job>| Worker { name: String::new(), done: done(10) };
    assert_eq!(
        fault(n1.router("workers").pool(2, here).on_nodes(["n2"]).spawn()),
        DeployFault::NotDeployable
    );
    let group = n1.router("workers").group([ActorRef::<Job>::from_fn(|_| {})]);
    assert_eq!(fault(group.on_nodes(["n2"]).spawn()), DeployFault::NotDeployable);
    assert_eq!(fault(pool().on_nodes([] as [&str; 0]).spawn()), DeployFault::NoNodes);
    let nested = pool().on_nodes(["n2"]).on_nodes(["n3"]);
    assert_eq!(fault(nested.spawn()), DeployFault::RemotePoolOfRemotePool);
    let bad = fault(pool().on_nodes(["n2", "n 3"]).spawn());
    assert_eq!(bad, DeployFault::NodeName { node: "n 3".to_owned() });
    assert_eq!(fault(pool().on_nodes(["n2"]).mailbox(Mailbox::bounded(3)).spawn()), DeployFault::Mailbox);
    let lonely = System::builder("demo").build().expect("sound settings");
    let refused = lonely.router("workers").deployable_pool::<Worker>(2, 10).on_nodes(["n2"]).spawn();
    assert_eq!(fault(refused), DeployFault::NoNode);
    let skipping =
        n1.router("workers").deployable_pool::<Answering>(2, 10).skip_unwanted().on_nodes(["n2"]).spawn();
    assert!(matches!(skipping, Err(SpawnError::Deploy { fault: DeployFault::SkipUnwanted, .. })));
    assert!(fault(nested_text()).to_string().contains("call `on_nodes` once"));
    // The name is free, and no actor was begun.
    let local = pool().on_nodes(["n1"]).mailbox(Mailbox::bounded(3)).spawn().expect("it is free");
    assert_eq!(local.routees().expect("it lives").len(), 2);
    n1.end();
}

fn nested_text() -> Result<Router<Job>, SpawnError> {
    Err(SpawnError::Deploy { path: "/user/workers".to_owned(), fault: DeployFault::RemotePoolOfRemotePool })
}

#[test]
fn settings_name_the_nodes() {
    let network = Network::new();
    let says = Deployment::new().router(RouterSettings::new().target_nodes(["n2", "n3"]));
    let first = System::builder("demo")
        .deploy("/workers", says.clone())
        .deploy("/plain", says.clone())
        .deploy("/group", says.clone())
        .deploy("/many-*", says)
        .deploy("/far", Deployment::new().remote("n2"))
        .deploy("/near", Deployment::new().remote("n1"));
    let nodes = three_with(&network, first);
    let n1 = &nodes[0];
    let pool =
        n1.router("workers").deployable_pool::<Worker>(2, 11).on_nodes(["n1"]).spawn().expect("it spawns");
    let names: Vec<String> =
        pool.routees().expect("it lives").iter().map(|routee| routee.path().to_string()).collect();
    assert!(
        names[0].starts_with("pointsman://demo@n2/") && names[1].starts_with("pointsman://demo@n3/"),
        "{names:?}"
    );
    let refused = |spawned: Result<(), SpawnError>, at: &str, with: &[&str]| match spawned {
        Err(SpawnError::Section { key, fault: SectionFault::NotDeployable { nodes }, .. }) => {
            assert_eq!((key.as_str(), nodes), (at, with.iter().map(|node| (*node).to_owned()).collect()));
        }
        other => panic!("{other:?}"),
    };
    let here = || Worker { name: "here".to_owned(), done: done(11) };
    let target = ["n2", "n3"];
    refused(
        n1.router("plain").pool(1, move |_| here()).spawn().map(drop),
        "deployment.\"/plain\".router.target.nodes",
        &target,
    );
    let at_plain = "deployment.\"/plain\".router.target.nodes";
    refused(n1.actor("plain").spawn(here).map(drop), at_plain, &target);
    refused(n1.actor("plain").deploy_on::<Worker>("n2", 11).map(drop), at_plain, &target);
    // A pattern with a wildcard may be meant for others.
    n1.actor("many-1").spawn(here).expect("it spawns");
    let group = n1.router("group").group([ActorRef::<Job>::from_fn(|_| {})]);
    refused(group.spawn().map(drop), "deployment.\"/group\".router.target.nodes", &target);
    refused(n1.actor("far").spawn(here).map(drop), "deployment.\"/far\".remote", &["n2"]);
    refused(
        n1.router("far").pool(1, move |_| here()).spawn().map(drop),
        "deployment.\"/far\".remote",
        &["n2"],
    );
    // The settings speak for the code that can follow them.
    let far = n1.actor("far").deploy_on::<Worker>("n1", 11).expect("it spawns");
    assert_eq!(far.path().to_string(), "pointsman://demo@n2/remote/demo@n1/%2Fuser/far");
    let near = n1.actor("near").deploy_on::<Worker>("n2", 11).expect("it spawns");
    assert!(near.is_here());
    assert!(n1.actor("other").deploy::<Worker>(11).expect("it spawns").is_here());
    // The section names this very node.
    end(&network, nodes);
}

#[test]
fn settings_of_no_node_are_refused_at_the_start() {
    for (says, key) in [
        (Deployment::new().remote("n 2"), "deployment.\"/a\".remote"),
        (
            Deployment::new().router(RouterSettings::new().target_nodes(["n2", ""])),
            "deployment.\"/a\".router.target.nodes",
        ),
        (
            Deployment::new().router(RouterSettings::new().target_nodes([] as [&str; 0])),
            "deployment.\"/a\".router.target.nodes",
        ),
    ] {
        let refused =
            System::builder("demo").deploy("/a", says).build().expect_err("it is refused").to_string();
        assert!(refused.contains(key), "{refused}");
    }
}
