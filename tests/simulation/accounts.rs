//! The accounts of links under faults of each kind, by seed: nodes that know each other send numbered messages alone, so each envelope
//! of a link is a message whose fate the logs tell.

use crate::checker::{Account, Event, Incarnation, Log, Start, check};
use crate::cluster::{Cluster, Member, Recorder, name_of, seed_count};
use pointsman::DeadLetterReason;
use pointsman::prelude::*;
use pointsman::remote::{LinkReport, Node, Policy, Wire};
use pointsman::testkit::TestSystem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll, Waker};
use std::time::Duration;

const NODES: usize = 3;

/// A numbered message from one start of a node to another.
#[derive(Serialize, Deserialize)]
struct Numbered {
    from: (u32, u64),
    to: (u32, u64),
    number: u64,
}

impl Wire for Numbered {
    const NAME: &'static str = "test.Numbered";
}

/// The only actor of a start, or its sender: the test has no more of them.
fn party((node, uid): (u32, u64)) -> Incarnation {
    Incarnation { start: Start { node, uid }, place: 0, uid: 1 }
}

struct Taker(Recorder);

impl Actor for Taker {
    type Message = Numbered;
    fn receive(
        &mut self,
        Numbered { from, to, number }: Numbered,
        _: &mut Context<Numbered>,
    ) -> HandlerResult {
        let (from, to) = (party(from), party(to));
        let at = if self.0.was(to.start) { to } else { Incarnation { start: self.0.start(), ..to } };
        self.0.note(Event::Delivered { at, from, to, number });
        Ok(())
    }
}

fn describe(node: Node) -> Node {
    node.message::<Numbered>().policy(Policy::closed().allow_path("/user/taker"))
}

fn furnish(member: &Member) {
    let recorder = member.recorder.clone();
    member.system.actor("taker").spawn(move || Taker(recorder.clone())).expect("the name is free");
}

/// The beginning of a process, and the messages that it has lost since.
struct Origin {
    start: Start,
    recorder: Recorder,
    /// The references to the other nodes, and the envelopes of each link so far.
    peers: BTreeMap<usize, (ActorRef<Numbered>, Start, LinkReport)>,
    /// The messages to each node that waited for a link that has ended.
    dead: Arc<Mutex<BTreeMap<String, u64>>>,
}

fn find(cluster: &Cluster, from: usize, to: usize) -> ActorRef<Numbered> {
    let member = cluster.members[from].as_ref().expect("it runs");
    let path = format!("pointsman://test@{}/user/taker", name_of(to));
    let mut resolving = pin!(member.system.resolve::<Numbered>(&path, Duration::from_secs(60)));
    let mut poller = Poller::from_waker(Waker::noop());
    for _ in 0..100 {
        if let Poll::Ready(found) = resolving.as_mut().poll(&mut poller) {
            return found.expect("no fault has come yet");
        }
        cluster.advance(Duration::from_millis(100));
    }
    panic!("{path} is not found");
}

fn report(member: &Member, of: Start) -> LinkReport {
    let mut links = member.remote().links().into_iter();
    links.find(|link| link.uid == of.uid).expect("there was a link")
}

/// All processes know each other, and nothing is under way.
fn origins(cluster: &Cluster) -> Vec<Origin> {
    let starts: Vec<Start> =
        cluster.members.iter().map(|member| member.as_ref().expect("it runs").recorder.start()).collect();
    let others = |node: usize| (0..NODES).filter(move |other| *other != node);
    let far: Vec<Vec<_>> = (0..NODES)
        .map(|node| others(node).map(|other| (other, find(cluster, node, other))).collect())
        .collect();
    cluster.advance(Duration::from_secs(10));
    let members = cluster.members.iter().flatten().zip(far);
    members
        .map(|(member, far)| {
            let dead = Arc::<Mutex<BTreeMap<String, u64>>>::default();
            let counts = dead.clone();
            let subscription = member.system.dead_letters().subscribe(move |letter| {
                assert_eq!(letter.reason, DeadLetterReason::NodeGone, "{letter:?}");
                let text = letter.recipient.to_string();
                let node = text.split_once('@').and_then(|(_, rest)| rest.split_once('/'));
                let (node, _) = node.expect("the address of a node");
                *counts.lock().unwrap().entry(node.to_owned()).or_default() += 1;
            });
            // As long as the system.
            std::mem::forget(subscription);
            let peers = far.into_iter().map(|(other, far)| {
                let start = starts[other];
                let before = report(member, start);
                assert_eq!((before.queued, before.in_doubt), (0, 0), "{before:?}");
                (other, (far, start, before))
            });
            let recorder = member.recorder.clone();
            Origin { start: recorder.start(), recorder, peers: peers.collect(), dead }
        })
        .collect()
}

/// Notes the accounts of all links that the process had at the beginning.
fn note_accounts(member: &Member, origin: &Origin) {
    for (other, (_, to, before)) in &origin.peers {
        let now = report(member, *to);
        let dead_here = origin.dead.lock().unwrap().get(&name_of(*other)).copied().unwrap_or(0);
        let account = Account {
            queued: now.queued,
            shipped: now.shipped - before.shipped,
            confirmed: now.confirmed - before.confirmed,
            lost: now.lost - before.lost,
            in_doubt: now.in_doubt,
            dead_here,
        };
        origin.recorder.note_of(origin.start, Event::Link { to: *to, account });
        let (envelopes, refused) = (now.received - before.received, now.refused.total());
        origin.recorder.note_of(origin.start, Event::Received { from: *to, envelopes, refused });
    }
}

fn run(seed: u64) -> Vec<Log> {
    let mut cluster = Cluster::new(seed, NODES, describe, furnish);
    let origins = origins(&cluster);
    cluster.spoil_links();
    let mut number = 0;
    for _ in 0..40 {
        for _ in 0..cluster.random.below(60) {
            let (node, other) = (cluster.random.below(3) as usize, cluster.random.below(3) as usize);
            let Some((far, to, _)) = origins[node].peers.get(&other) else { continue };
            let is_first = |member: &Member| member.recorder.first() == origins[node].start;
            // A process of a later start knows no other node.
            if cluster.is_running(node) && cluster.members[node].as_ref().is_some_and(is_first) {
                number += 1;
                let from = origins[node].start;
                let message = Numbered { from: (from.node, from.uid), to: (to.node, to.uid), number };
                let accepted = far.try_tell(message).is_ok();
                let (from, to) = (party((from.node, from.uid)), party((to.node, to.uid)));
                origins[node].recorder.note_of(from.start, Event::Sent { from, to, number, accepted });
            }
        }
        if cluster.random.below(3) == 0 {
            cluster.disturb();
        }
        let by = Duration::from_micros(1 + cluster.random.below(1_500_000));
        cluster.advance(by);
    }
    cluster.heal();
    for _ in 0..4 {
        cluster.advance(Duration::from_secs(45));
    }
    for (member, origin) in cluster.members.iter().flatten().zip(&origins) {
        if member.recorder.first() == origin.start {
            note_accounts(member, origin);
        }
    }
    cluster.end()
}

#[test]
fn each_envelope_of_a_link_has_one_fate() {
    let (mut sums, mut count) = (Account::default(), 0);
    for seed in TestSystem::seeds(seed_count(50)) {
        eprintln!("seed {seed}");
        let logs = run(seed);
        let violations = check(&logs);
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
        for event in logs.iter().flat_map(|log| &log.events) {
            if let Event::Link { account, .. } = event {
                sums.confirmed += account.confirmed;
                sums.lost += account.lost;
                sums.in_doubt += account.in_doubt;
                sums.dead_here += account.dead_here;
            }
        }
        count += 1;
    }
    eprintln!("{count} runs: {sums:?}");
    // Each fate was met.
    let fates = [sums.confirmed, sums.lost, sums.in_doubt, sums.dead_here];
    assert!(count < 30 || fates.iter().all(|fate| *fate >= count), "{sums:?}");
}
