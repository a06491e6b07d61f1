//! Routers whose routees are on several nodes.

use crate::network::{LONG, Network, TestNode, link, wait_until};
use pointsman::prelude::*;
use pointsman::remote::{Node, Policy, Wire};
use pointsman::routing::{
    Broadcast, ConsistentHashing, KeySink, RoundRobin, Routee, RouterPlan, RoutingLogic,
    ScatterGatherFirstCompleted, SmallestMailbox, TailChopping,
};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The question on which node a worker is.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Where;
impl Request for Where {
    type Reply = String;
}

#[derive(Clone, Message, Wire, Serialize, Deserialize)]
#[wire(name = "test.Job", version = 1)]
enum Job {
    Note(u32),
    Where(Call<Where>),
}

/// Notes its numbers, and answers or keeps its calls.
struct Worker {
    node: &'static str,
    is_silent: bool,
    notes: Sender<u32>,
    kept: Vec<Call<Where>>,
}

impl Actor for Worker {
    type Message = Job;
    fn receive(&mut self, job: Job, _: &mut Context<Job>) -> HandlerResult {
        match job {
            Job::Note(number) => self.notes.send(number)?,
            Job::Where(call) if self.is_silent => self.kept.push(call),
            Job::Where(call) => call.answer(|Where| self.node.to_owned()),
        }
        Ok(())
    }
}

fn worker(node: &TestNode, name: &'static str, is_silent: bool) -> (ActorRef<Job>, Receiver<u32>) {
    let (sender, notes) = channel();
    let recipe = move || Worker { node: name, is_silent, notes: sender.clone(), kept: Vec::new() };
    (node.actor("worker").spawn(recipe).expect("the name is free"), notes)
}

/// Three nodes, each with a worker, and the references that the first one has: its own, and those of the others.
struct Three {
    network: Network,
    nodes: Vec<TestNode>,
    routees: Vec<ActorRef<Job>>,
    notes: Vec<Receiver<u32>>,
}

/// `is_silent`: the worker of the first node keeps what it is asked.
fn three(is_silent: bool) -> Three {
    let network = Network::new();
    let describe = |node: Node| node.message::<Job>().policy(Policy::open());
    let names = ["n1", "n2", "n3"];
    let nodes: Vec<TestNode> = names.map(|name| network.node_with(name, describe)).into();
    let workers = nodes.iter().zip(names).map(|(node, name)| worker(node, name, is_silent && name == "n1"));
    let (mut routees, notes): (Vec<_>, Vec<_>) = workers.unzip();
    for (node, routee) in nodes.iter().zip(&mut routees).skip(1) {
        link(&nodes[0], node);
        let path = format!("pointsman://demo@{}/user/worker", node.remote().node());
        *routee = nodes[0].resolve::<Job>(&path, LONG).wait().expect("it is there");
    }
    Three { network, nodes, routees, notes }
}

impl Three {
    fn router<L: RoutingLogic<Job>>(
        &self,
        plan: impl FnOnce(RouterPlan<Job, RoundRobin>) -> RouterPlan<Job, L>,
    ) -> Router<Job> {
        plan(self.nodes[0].router("all").group(self.routees.iter().cloned())).spawn().expect("a sound plan")
    }

    /// The numbers that each worker has got, of which there are so many in all.
    fn notes(&self, count: usize) -> Vec<Vec<u32>> {
        let mut all: Vec<Vec<u32>> = self.notes.iter().map(|_| Vec::new()).collect();
        wait_until(|| {
            all.iter_mut().zip(&self.notes).for_each(|(all, notes)| all.extend(notes.try_iter()));
            all.iter().map(Vec::len).sum::<usize>() >= count
        });
        all
    }

    /// Ends all nodes. Their books balance, and so do those of all together.
    fn end(self) {
        let ledgers: Vec<_> = self.nodes.into_iter().map(TestNode::end).collect();
        assert!(ledgers.iter().all(|ledger| ledger.balance() == 0), "{ledgers:#?}");
        let sum = |of: fn(&pointsman::Ledger) -> u64| ledgers.iter().map(of).sum::<u64>();
        assert_eq!(sum(|ledger| ledger.shipped), sum(|ledger| ledger.received));
    }
}

#[test]
fn round_robin_gives_each_node_its_share() {
    let all = three(false);
    let router = all.router(|plan| plan.logic(RoundRobin::exact()));
    (0..30).for_each(|number| router.tell(Job::Note(number)));
    let notes = all.notes(30);
    assert!(notes.iter().all(|notes| notes.len() == 10 && notes.is_sorted()), "{notes:?}");
    all.end();
}

#[test]
fn a_broadcast_reaches_all_nodes_in_order() {
    let all = three(false);
    let router = all.router(|plan| plan.logic(Broadcast));
    (0..20).for_each(|number| router.tell(Job::Note(number)));
    let expected: Vec<u32> = (0..20).collect();
    assert!(all.notes(60).iter().all(|notes| *notes == expected));
    all.end();
}

#[test]
fn smallest_mailbox_takes_routees_of_other_nodes_last() {
    let all = three(false);
    let router = all.router(|plan| plan.logic(SmallestMailbox::new()));
    // However much waits in the local mailbox: the sender knows nothing of the others.
    (0..200).for_each(|number| router.tell(Job::Note(number)));
    assert_eq!(all.notes(200).iter().map(Vec::len).collect::<Vec<_>>(), [200, 0, 0]);
    all.routees[0].stop();
    wait_until(|| router.routees_info().is_ok_and(|routees| routees.len() == 2));
    (0..10).for_each(|number| router.tell(Job::Note(number)));
    assert!(all.notes(10)[0].is_empty());
    all.end();
}

#[test]
fn a_key_has_one_node() {
    let all = three(false);
    let by_number = |job: &Job, key: &mut KeySink| {
        if let Job::Note(number) = job {
            key.feed(&(number % 100));
        }
    };
    let router = all.router(|plan| plan.logic(ConsistentHashing::by(by_number)));
    (0..300).for_each(|number| router.tell(Job::Note(number)));
    let mut notes = all.notes(300);
    assert!(notes.iter().all(|notes| !notes.is_empty()), "each node has keys");
    let keys = notes.iter_mut().flat_map(|notes| {
        notes.iter_mut().for_each(|number| *number %= 100);
        notes.sort_unstable();
        assert!(notes.chunk_by(|one, other| one == other).all(|of_key| of_key.len() == 3));
        notes.dedup();
        std::mem::take(notes)
    });
    assert_eq!(keys.count(), 100);
    all.end();
}

#[test]
fn the_first_of_several_nodes_answers() {
    let all = three(true);
    let router = all.router(|plan| plan.logic(ScatterGatherFirstCompleted::within(LONG)));
    let answer = router.ask(Where).within(LONG).wait().expect("the others answer");
    assert!(["n2", "n3"].contains(&answer.as_str()), "{answer}");
    let (answer, replier) = router.ask_traced(Where).within(LONG).wait().expect("the others answer");
    assert!(replier.to_string().starts_with(&format!("pointsman://demo@{answer}/user/")), "{replier}");
    all.end();
}

#[test]
fn tail_chopping_asks_other_nodes_when_a_worker_is_late() {
    // The clock goes on as fast as this thread looks.
    const HOUR: Duration = Duration::from_secs(3600);
    let all = three(true);
    let logic = || TailChopping::within(HOUR).interval(Duration::from_secs(1));
    let router = all.router(|plan| plan.logic(logic()));
    for _ in 0..10 {
        let asked = router.ask(Where).within(HOUR);
        let waiting = std::thread::spawn(move || asked.wait());
        while !waiting.is_finished() {
            all.network.seconds(1);
        }
        let answer = waiting.join().unwrap().expect("one of the others is asked in time");
        assert!(["n2", "n3"].contains(&answer.as_str()), "{answer}");
    }
    all.end();
}

#[test]
fn all_nodes_are_asked_at_once() {
    let all = three(false);
    let router = all.router(|plan| plan);
    let mut answers: Vec<String> = router
        .ask_all(Where)
        .within(LONG)
        .wait()
        .expect("it has routees")
        .into_iter()
        .map(|(_, answer)| answer.expect("each answers"))
        .collect();
    answers.sort();
    assert_eq!(answers, ["n1", "n2", "n3"]);
    all.end();
}

#[test]
fn the_routees_of_a_node_that_is_gone_leave() {
    let mut all = three(false);
    let router = all.router(|plan| plan);
    all.nodes.remove(1).end();
    wait_until(|| router.routees_info().is_ok_and(|routees| routees.len() == 2));
    (0..20).for_each(|number| router.tell(Job::Note(number)));
    let notes = all.notes(20);
    assert_eq!(notes.iter().map(Vec::len).collect::<Vec<_>>(), [10, 0, 10]);
}

/// Sends a note of each key to a router, and returns the owners: for each worker its keys, in order.
fn owners(all: &Three, router: &Router<Job>, keys: u32) -> Vec<Vec<u32>> {
    (0..keys).for_each(|key| router.tell(Job::Note(key)));
    let mut notes = all.notes(keys as usize);
    notes.iter_mut().for_each(|notes| notes.sort_unstable());
    notes
}

#[test]
fn all_nodes_draw_one_ring_and_a_lost_routee_moves_its_own_keys_alone() {
    const KEYS: u32 = 500;
    let all = three(false);
    let [n1, n2, n3] = [&all.nodes[0], &all.nodes[1], &all.nodes[2]];
    link(n2, n3);
    let path = |node: &str| format!("pointsman://demo@{node}/user/worker");
    let by_reference = |at: &TestNode, of: &str| -> Routee<Job> {
        at.resolve::<Job>(&path(of), LONG).wait().expect("it is there").into()
    };
    let by_path =
        |at: &TestNode, path: &str| -> Routee<Job> { at.select(path).expect("a sound path").into() };
    // Each list begins with another node. The routee of the second node is the one at the index that goes.
    let lists = [
        (n1, [by_reference(n1, "n1"), by_reference(n1, "n2"), by_path(n1, &path("n3"))], 1),
        (n2, [by_path(n2, "/user/worker"), by_reference(n2, "n3"), by_reference(n2, "n1")], 0),
        (n3, [by_path(n3, &path("n3")), by_path(n3, &path("n1")), by_reference(n3, "n2")], 2),
    ];
    let by_number = |job: &Job, key: &mut KeySink| {
        if let Job::Note(number) = job {
            key.feed(number);
        }
    };
    let routers: Vec<(Router<Job>, Routee<Job>)> = lists
        .into_iter()
        .map(|(node, list, lost)| {
            let lost = list[lost].clone();
            assert_eq!(lost.identity(), path("n2"));
            let plan = node.router("ring").group_of(list).logic(ConsistentHashing::by(by_number));
            (plan.spawn().expect("a sound plan"), lost)
        })
        .collect();
    // A group by paths, which are relative, from the root, and whole.
    let written = ["../worker", &path("n1"), &path("n2")];
    let plan = n3.router("paths").group_at(written).logic(ConsistentHashing::by(by_number));
    let of_paths: Router<Job> = plan.spawn().expect("a sound plan");
    let before = owners(&all, &routers[0].0, KEYS);
    assert!(before.iter().all(|keys| !keys.is_empty()), "each node has keys: {before:?}");
    assert_eq!(owners(&all, &of_paths, KEYS), before);
    for (router, _) in &routers {
        assert_eq!(owners(&all, router, KEYS), before);
    }
    let mut after: Option<Vec<Vec<u32>>> = None;
    for (router, lost) in &routers {
        assert!(router.remove(lost.clone()).expect("the router lives"), "it was in the list");
        let owners = owners(&all, router, KEYS);
        assert!(owners[1].is_empty());
        for kept in [0, 2] {
            assert!(before[kept].iter().all(|key| owners[kept].contains(key)), "a key of another has moved");
        }
        assert_eq!(*after.get_or_insert_with(|| owners.clone()), owners);
    }
    all.end();
}
