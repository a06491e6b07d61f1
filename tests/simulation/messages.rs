//! Messages and asks between nodes, under faults of each kind, by seed.

use crate::checker::{Event, Incarnation, Log, Outcome, Start, check};
use crate::cluster::{Cluster, Member, Recorder, name_of, seed_count};
use pointsman::ask::AskError;
use pointsman::prelude::*;
use pointsman::remote::{Limits, LinkState, Node, Policy, Wire};
use pointsman::testkit::TestSystem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as Poller, Poll, Waker};
use std::time::Duration;

/// The actors of each node.
const ACTORS: u32 = 2;

/// The place of the sender of a node, which is the test itself.
const SENDER: u32 = 100;

/// An incarnation, as it goes over the wire.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Address {
    node: u32,
    uid: u64,
    place: u32,
    actor: u32,
}

impl From<Incarnation> for Address {
    fn from(of: Incarnation) -> Self {
        Self { node: of.start.node, uid: of.start.uid, place: of.place, actor: of.uid }
    }
}

impl From<Address> for Incarnation {
    fn from(of: Address) -> Self {
        let Address { node, uid, place, actor } = of;
        Self { start: Start { node, uid }, place, uid: actor }
    }
}

/// An ask, which is answered by its number.
#[derive(Debug, Serialize, Deserialize)]
struct Number {
    to: Address,
    ask: u64,
    ballast: Vec<u8>,
}

impl Request for Number {
    type Reply = u64;
}

/// The question which incarnation an actor is.
#[derive(Debug, Serialize, Deserialize)]
struct Who;

impl Request for Who {
    type Reply = Address;
}

#[derive(Debug, Serialize, Deserialize)]
enum Note {
    /// A numbered message.
    Take {
        from: Address,
        to: Address,
        number: u64,
        /// Makes some messages so large that they go in fragments.
        ballast: Vec<u8>,
    },
    Answer(Call<Number>),
    Tell(Call<Who>),
    /// Here alone: the actor watches another one, or no longer.
    Watch {
        target: ActorRef<Note>,
        of: Address,
        by: u64,
    },
    Unwatch {
        target: ActorRef<Note>,
    },
    /// The actor sends its last messages, and ends. Its place may get another one.
    End {
        me: Address,
        to: ActorRef<Note>,
        of: Address,
    },
}

impl From<Call<Number>> for Note {
    fn from(call: Call<Number>) -> Self {
        Note::Answer(call)
    }
}

impl From<Call<Who>> for Note {
    fn from(call: Call<Who>) -> Self {
        Note::Tell(call)
    }
}

impl Wire for Note {
    const NAME: &'static str = "test.Note";
}

struct Taker {
    place: u32,
    recorder: Recorder,
    /// The watches, with the identities that watcher and target had at the beginning.
    watches: Vec<(ActorRef<Note>, Incarnation, Incarnation)>,
}

/// The number of the next last message.
static NEXT: AtomicU64 = AtomicU64::new(1 << 32);

impl Taker {
    /// This incarnation. A message that came while the node had an earlier UID is still handled.
    fn me(&self, to: Incarnation, ctx: &Context<Note>) -> Incarnation {
        let start = if self.recorder.was(to.start) { to.start } else { self.recorder.start() };
        Incarnation { start, place: self.place, uid: ctx.me().uid() }
    }

    fn now(&self, ctx: &Context<Note>) -> Incarnation {
        Incarnation { start: self.recorder.start(), place: self.place, uid: ctx.me().uid() }
    }
}

impl Actor for Taker {
    type Message = Note;
    fn receive(&mut self, note: Note, ctx: &mut Context<Note>) -> HandlerResult {
        match note {
            Note::Take { from, to, number, ballast } => {
                assert_eq!(ballast, self::ballast(number));
                let to = to.into();
                let at = self.me(to, ctx);
                self.recorder.note(Event::Delivered { at, from: from.into(), to, number });
            }
            Note::Answer(call) => call.answer(|Number { to, ask, .. }| {
                self.recorder.note(Event::AskHandled { at: self.me(to.into(), ctx), ask });
                ask
            }),
            Note::Tell(call) => {
                let me = self.now(ctx);
                call.answer(|Who| me.into());
            }
            Note::Watch { target, of, by } => {
                // A reference of an earlier UID of this node leads to an actor that this UID has lost.
                let is_stale = by != self.recorder.start().uid;
                if !is_stale && self.watches.iter().all(|(known, ..)| *known != target) {
                    let (watcher, of) = (self.now(ctx), of.into());
                    self.recorder.note(Event::Watched { watcher, target: of });
                    ctx.watch(&target)?;
                    self.watches.push((target, watcher, of));
                }
            }
            Note::Unwatch { target } => {
                if let Some(at) = self.watches.iter().position(|(known, ..)| *known == target) {
                    let (target, watcher, of) = self.watches.swap_remove(at);
                    ctx.unwatch(&target);
                    self.recorder.note(Event::Unwatched { watcher, target: of });
                }
            }
            Note::End { me, to, of } => {
                let from = self.me(me.into(), ctx);
                for _ in 0..3 {
                    // Of one sender the numbers rise, for they have one source.
                    let number = NEXT.fetch_add(1, Ordering::Relaxed);
                    let note = Note::Take { from: from.into(), to: of, number, ballast: ballast(number) };
                    let accepted = to.try_tell(note).is_ok();
                    self.recorder.note(Event::Sent { from, to: of.into(), number, accepted });
                }
                self.recorder.note(Event::Ended { actor: from });
                ctx.stop();
            }
        }
        Ok(())
    }

    fn terminated(&mut self, end: Terminated, _: &mut Context<Note>) -> HandlerResult {
        let at = self.watches.iter().position(|(known, ..)| known.untyped().as_ref() == Some(&end.actor));
        let (_, watcher, target) = self.watches.swap_remove(at.expect("it is watched"));
        self.recorder.note(Event::Terminated { watcher, target, node_down: end.node_down });
        Ok(())
    }
}

fn describe(node: Node) -> Node {
    let limits = Limits::new().envelope(ENVELOPE);
    node.message::<Note>().policy(Policy::closed().allow_path("/user/*")).limits(limits)
}

/// The most bytes of a message in one piece.
const ENVELOPE: usize = 4096;

/// The bytes that a message of this number has besides its numbers: one of eight is large.
fn ballast(number: u64) -> Vec<u8> {
    let bytes = if number % 8 == 0 { 10 * ENVELOPE + number as usize % ENVELOPE } else { 0 };
    vec![number as u8; bytes]
}

fn furnish(member: &Member) {
    (0..ACTORS).for_each(|place| spawn(member, place));
}

fn spawn(member: &Member, place: u32) {
    let recorder = member.recorder.clone();
    let taker = move || Taker { place, recorder: recorder.clone(), watches: Vec::new() };
    // The one before may not have ended yet.
    let _ = member.system.actor(&place_name(place)).spawn(taker);
}

fn place_name(place: u32) -> String {
    format!("taker-{place}")
}

type Finding = Pin<Box<dyn Future<Output = Option<(ActorRef<Note>, Incarnation)>>>>;
type Answering = Pin<Box<dyn Future<Output = Result<u64, AskError>>>>;

/// What a node's sender knows and waits for.
#[derive(Default)]
struct Sender {
    known: BTreeMap<(usize, u32), (ActorRef<Note>, Incarnation)>,
    finding: Vec<(usize, u32, Finding)>,
    asks: Vec<(u64, Answering)>,
}

struct Run {
    cluster: Cluster,
    /// By node; anew with each start.
    senders: Vec<Sender>,
    starts: Vec<Option<Start>>,
    /// By node, the UID by which its sender knows others.
    uids: Vec<Option<Start>>,
    next: u64,
}

impl Run {
    fn new(seed: u64, nodes: usize) -> Self {
        let cluster = Cluster::new(seed, nodes, describe, furnish);
        let senders = (0..nodes).map(|_| Sender::default()).collect();
        Self { cluster, senders, starts: vec![None; nodes], uids: vec![None; nodes], next: 0 }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Forgets the senders of processes that have ended, and polls what the others wait for.
    fn look(&mut self) {
        let mut poller = Poller::from_waker(Waker::noop());
        for node in 0..self.senders.len() {
            let Some(member) = &self.cluster.members[node] else {
                self.senders[node] = Sender::default();
                self.starts[node] = None;
                continue;
            };
            let first = member.recorder.first();
            if self.starts[node].replace(first) != Some(first) {
                self.senders[node] = Sender::default();
            }
            let now = member.recorder.start();
            if self.uids[node].replace(now) != Some(now) {
                // It finds all of them anew. What it has asked ends as it may.
                self.senders[node].known.clear();
                self.senders[node].finding.clear();
            }
            let Sender { known, finding, asks } = &mut self.senders[node];
            finding.retain_mut(|(of, place, finding)| match finding.as_mut().poll(&mut poller) {
                Poll::Pending => true,
                Poll::Ready(found) => {
                    if let Some((far, incarnation)) = found {
                        assert_eq!((far.uid(), *of as u32), (incarnation.uid, incarnation.start.node));
                        known.insert((*of, *place), (far, incarnation));
                    }
                    false
                }
            });
            asks.retain_mut(|(ask, answering)| match answering.as_mut().poll(&mut poller) {
                Poll::Pending => true,
                Poll::Ready(answer) => {
                    let outcome = answer.map_or(Outcome::Failed, |of| Outcome::Reply { of });
                    member.recorder.note(Event::AskEnded { ask: *ask, outcome });
                    false
                }
            });
        }
    }

    /// One step of a sender, by chance.
    fn act(&mut self) {
        let Some(node) = self.cluster.any() else { return };
        let nodes = self.senders.len() as u64;
        let target =
            (self.cluster.random.below(nodes) as usize, self.cluster.random.below(ACTORS.into()) as u32);
        let what = self.cluster.random.below(12);
        let (number, ask) = (self.number(), self.number());
        let Some(member) = &self.cluster.members[node] else { return };
        if target.0 == node {
            if what == 0 {
                spawn(member, target.1);
            }
            return;
        }
        let sender = &mut self.senders[node];
        let me = Incarnation { start: member.recorder.start(), place: SENDER, uid: 1 };
        let known = sender.known.get(&target).cloned();
        match (what, known) {
            (0 | 4 | 5, Some((far, of))) => {
                let place = (number % u64::from(ACTORS)) as u32;
                let Ok(own) = member.system.typed_at::<Note>(&format!("/user/{}", place_name(place))) else {
                    return;
                };
                let of = of.into();
                match what {
                    0 => {
                        let me = Incarnation { start: member.recorder.start(), place, uid: own.uid() };
                        far.tell(Note::End { me: of, to: own, of: me.into() });
                    }
                    4 if ask % 4 == 0 => own.tell(Note::Unwatch { target: far }),
                    _ => own.tell(Note::Watch { target: far, of, by: me.start.uid }),
                }
            }
            (1..=2, Some((far, to))) => {
                let within = Duration::from_millis(100 + 50 * number % 3_000);
                member.recorder.note(Event::Asked { asker: me, to, ask });
                let asked = far.ask(Number { to: to.into(), ask, ballast: ballast(ask) }).within(within);
                sender.asks.push((ask, Box::pin(asked)));
            }
            (3, _) | (_, None) => {
                let path = format!("pointsman://test@{}/user/{}", name_of(target.0), place_name(target.1));
                let resolving = member.system.resolve::<Note>(&path, Duration::from_secs(5));
                let finding = async move {
                    let far = resolving.await.ok()?;
                    let who = far.ask(Who).within(Duration::from_secs(5)).await.ok()?;
                    Some((far, who.into()))
                };
                sender.finding.push((target.0, target.1, Box::pin(finding)));
            }
            (_, Some((far, to))) => {
                let note = Note::Take { from: me.into(), to: to.into(), number, ballast: ballast(number) };
                let accepted = far.try_tell(note).is_ok();
                member.recorder.note(Event::Sent { from: me, to, number, accepted });
            }
        }
    }

    fn accounts(&self) {
        for member in self.cluster.members.iter().flatten() {
            let balance = member.system.ledger().balance();
            member.recorder.note(Event::Books { balance });
            for link in member.remote().links() {
                assert_eq!(link.shipped, link.confirmed + link.lost + link.in_doubt, "{link:?}");
            }
        }
    }

    /// Whether both ends of each link agree on what has gone through it. All is quiet, so nothing is in doubt.
    fn links_agree(&self) {
        for one in self.cluster.members.iter().flatten() {
            for other in self.cluster.members.iter().flatten() {
                let up = |from: &Member, to: &Member| {
                    let links = from.remote().links();
                    links.into_iter().find(|link| {
                        (link.node.as_str(), link.uid, link.state)
                            == (to.remote().node(), to.remote().uid(), LinkState::Up)
                    })
                };
                if let (Some(sent), Some(came)) = (up(one, other), up(other, one)) {
                    assert_eq!((sent.queued, sent.in_doubt), (0, 0), "{sent:#?}");
                    assert_eq!(sent.confirmed, came.received, "{sent:#?} {came:#?}");
                }
            }
        }
    }
}

fn run(seed: u64) -> Vec<Log> {
    let mut run = Run::new(seed, 3);
    run.cluster.spoil_links();
    for _ in 0..40 {
        for _ in 0..1 + run.cluster.random.below(40) {
            run.act();
        }
        if run.cluster.random.below(3) == 0 {
            run.cluster.disturb();
        }
        let by = Duration::from_micros(1 + run.cluster.random.below(1_500_000));
        run.cluster.advance(by);
        run.look();
        run.accounts();
    }
    run.cluster.heal();
    for _ in 0..4 {
        run.cluster.advance(Duration::from_secs(45));
        run.look();
    }
    run.accounts();
    run.links_agree();
    run.cluster.end()
}

#[test]
fn promises_are_kept_under_faults_of_each_kind() {
    let (mut seen, mut count) = ([0; 4], 0);
    for seed in TestSystem::seeds(seed_count(150)) {
        eprintln!("seed {seed}");
        let logs = run(seed);
        let violations = check(&logs);
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
        for event in logs.iter().flat_map(|log| &log.events) {
            match event {
                Event::Delivered { .. } => seen[0] += 1,
                Event::AskEnded { outcome: Outcome::Reply { .. }, .. } => seen[1] += 1,
                Event::Terminated { node_down, .. } => seen[if *node_down { 2 } else { 3 }] += 1,
                _ => {}
            }
        }
        count += 1;
    }
    // The promises were not kept by silence.
    eprintln!("{count} runs: {seen:?} messages, replies, nodes down and actors ended");
    assert!(
        count < 30 || seen.iter().zip([30, 5, 1, 1]).all(|(seen, least)| *seen >= least * count),
        "{seen:?}"
    );
}
