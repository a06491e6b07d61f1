//! Actors that nodes make on each other, under faults of each kind, by seed: verdicts, restarts and ends cross with the loss of
//! nodes, and factories fail by chance.

use crate::checker::{Child, Event, Log, Start, check};
use crate::checker_children::check_last_messages;
use crate::cluster::{Cluster, Member, Recorder, name_of, seed_count};
use crate::random::Random;
use pointsman::prelude::*;
use pointsman::remote::{Deploy, Node, Policy, Wire};
use pointsman::testkit::TestSystem;
use pointsman::{Directive, FailureKind, SpawnError, Strategy, Terminated};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NODES: u64 = 3;
const NAMES: [&str; 3] = ["a", "b", "c"];

thread_local! {
    /// The recorders of the processes that run, by the names of their nodes. A simulation has one thread.
    static RECORDERS: RefCell<BTreeMap<String, Recorder>> = const { RefCell::new(BTreeMap::new()) };
    /// The choices of parents and factories.
    static CHOICES: RefCell<Random> = RefCell::new(Random::new(0));
}

/// The numbers of children and messages. None comes twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn choose(below: u64) -> u64 {
    CHOICES.with_borrow_mut(|choices| choices.below(below))
}

fn recorder_of<M: Send + 'static>(ctx: &Context<M>) -> Recorder {
    let node = ctx.system().remote().expect("it is a node").node().to_owned();
    RECORDERS.with_borrow(|recorders| recorders[&node].clone())
}

/// A message for an actor that a node has made on another one.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Work {
    Take(u64),
    Fail,
    Panic,
    Stop,
    /// From its own node, when all is quiet.
    Look,
}

impl Wire for Work {
    const NAME: &'static str = "test.Work";
}

/// A child, as it goes over the wire.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct WireChild {
    node: u32,
    uid: u64,
    number: u64,
}

impl From<Child> for WireChild {
    fn from(Child { by: Start { node, uid }, number }: Child) -> Self {
        Self { node, uid, number }
    }
}

impl From<WireChild> for Child {
    fn from(WireChild { node, uid, number }: WireChild) -> Self {
        Self { by: Start { node, uid }, number }
    }
}

/// A message for the watcher of a node.
#[derive(Debug, Serialize, Deserialize)]
enum Notice {
    /// Watch this child, which the node has made.
    Watch(ActorRef<Work>, WireChild),
    /// The child says this number.
    Said(WireChild, u64),
}

impl Wire for Notice {
    const NAME: &'static str = "test.Notice";
}

/// The actor that is made on other nodes.
struct Worker {
    child: Child,
    watcher: ActorRef<Notice>,
    recorder: Recorder,
    /// Whether a hook has told it of its beginning, and of its end.
    has_begun: bool,
    is_over: bool,
}

impl Worker {
    fn note(&self, event: Event) {
        self.recorder.note(event);
    }

    fn say(&self) {
        let number = next();
        if self.watcher.try_tell(Notice::Said(self.child.into(), number)).is_ok() {
            self.note(Event::WorkerSent { child: self.child, number });
        }
    }
}

impl Actor for Worker {
    type Message = Work;
    fn started(&mut self, _: &mut Context<Work>) -> HandlerResult {
        self.has_begun = true;
        self.note(Event::StateMade { child: self.child, is_restart: false });
        Ok(())
    }
    fn restarted(&mut self, _: &Failure, _: &mut Context<Work>) -> HandlerResult {
        self.has_begun = true;
        self.note(Event::StateMade { child: self.child, is_restart: true });
        Ok(())
    }
    fn receive(&mut self, work: Work, ctx: &mut Context<Work>) -> HandlerResult {
        match work {
            Work::Take(number) => {
                self.note(Event::WorkerGot { child: self.child, number });
                self.say();
            }
            Work::Fail => return Err(Failure::msg("told to fail")),
            Work::Panic => std::panic::resume_unwind(Box::new("told to panic")),
            Work::Stop => ctx.stop(),
            Work::Look => self.note(Event::WorkerLives { child: self.child }),
        }
        Ok(())
    }
    fn restarting(&mut self, _: &Failure, _: &mut Context<Work>) -> HandlerResult {
        self.is_over = true;
        self.say();
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<Work>) {
        self.is_over = true;
        self.say();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.note(Event::StateDropped { child: self.child, is_told: self.is_over || !self.has_begun });
    }
}

impl Deploy for Worker {
    const FACTORY: &'static str = "test.Worker";
    type Args = (WireChild, ActorRef<Notice>);
    fn deploy((name, watcher): &Self::Args, ctx: &mut Context<Work>) -> Result<Self, Failure> {
        let (child, watcher, recorder) = (Child::from(*name), watcher.clone(), recorder_of(ctx));
        let choice = choose(8);
        if choice < 2 {
            recorder.note(Event::CreationFailed { child });
        }
        match choice {
            0 => Err(Failure::msg("the factory fails")),
            1 => std::panic::resume_unwind(Box::new("the factory panics")),
            _ => Ok(Self { child, watcher, recorder, has_begun: false, is_over: false }),
        }
    }
}

/// A child, as its parent knows it.
#[derive(Clone)]
struct Kid {
    child: Child,
    name: &'static str,
    far: ActorRef<Work>,
}

/// The children that have not ended, and the last child of each name.
#[derive(Default)]
struct Family {
    kids: Vec<Kid>,
    last: BTreeMap<&'static str, Child>,
}

/// A parent of actors on other nodes.
struct Boss {
    family: Arc<Mutex<Family>>,
    watcher: ActorRef<Notice>,
}

enum Order {
    Deploy(String, &'static str),
    /// For one of the children, by chance.
    Send(Work),
    End(u64),
    Fail,
    Stop,
    /// All is quiet.
    Look,
}

impl Boss {
    fn deploy(&self, node: &str, name: &'static str, ctx: &mut Context<Order>) -> HandlerResult {
        let recorder = recorder_of(ctx);
        let (by, number) = (recorder.start(), next());
        let (child, mut family) = (Child { by, number }, self.family.lock().expect("no test panics with it"));
        match ctx.actor(name).deploy_on::<Worker>(node, (child.into(), self.watcher.clone())) {
            Ok(far) => {
                recorder.note(Event::Deployed { child });
                ctx.watch(&far)?;
                self.watcher.tell(Notice::Watch(far.clone(), child.into()));
                family.last.insert(name, child);
                family.kids.push(Kid { child, name, far });
            }
            Err(SpawnError::NameTaken { .. }) => {
                recorder.note(Event::NameTaken { child: family.last[name] });
            }
            Err(other) => panic!("{other}"),
        }
        Ok(())
    }

    fn any(&self) -> Option<Kid> {
        let family = self.family.lock().expect("as above");
        let count = family.kids.len() as u64;
        (count > 0).then(|| family.kids[choose(count) as usize].clone())
    }
}

impl Actor for Boss {
    type Message = Order;
    fn receive(&mut self, order: Order, ctx: &mut Context<Order>) -> HandlerResult {
        match order {
            Order::Deploy(node, name) => return self.deploy(&node, name, ctx),
            Order::Send(work) => {
                if let Some(kid) = self.any() {
                    let _ = kid.far.try_tell(work);
                }
            }
            Order::End(way) => match (self.any(), way) {
                (Some(kid), 0) => kid.far.stop(),
                (Some(kid), 1) => kid.far.poison(),
                (Some(kid), _) => kid.far.kill(),
                (None, _) => {}
            },
            Order::Fail => return Err(Failure::msg("the parent fails")),
            Order::Stop => ctx.stop(),
            Order::Look => {
                let recorder = recorder_of(ctx);
                for actor in ctx.children() {
                    let kids = self.family.lock().expect("as above").kids.clone();
                    let kid = kids.into_iter().find(|kid| kid.far.uid() == actor.uid());
                    let kid = kid.expect("each child that has ended has left");
                    assert_eq!(ctx.child(kid.name), Some(actor.clone()));
                    let (restarts, last) = (actor.restarts().into(), next());
                    kid.far.tell(Work::Take(last));
                    recorder.note(Event::ChildLives { child: kid.child, restarts, last });
                }
            }
        }
        Ok(())
    }
    fn restarting(&mut self, _: &Failure, _: &mut Context<Order>) -> HandlerResult {
        // The children are kept.
        Ok(())
    }
    fn terminated(&mut self, end: Terminated, ctx: &mut Context<Order>) -> HandlerResult {
        let mut family = self.family.lock().expect("as above");
        let at = family.kids.iter().position(|kid| kid.far.untyped().as_ref() == Some(&end.actor));
        let kid = family.kids.remove(at.expect("it is watched, and ends once"));
        recorder_of(ctx).note(Event::NameFreed { child: kid.child });
        Ok(())
    }
    fn supervision(&self) -> Strategy {
        let family = self.family.clone();
        let decide = move |child: &AnyActorRef, failure: &Failure| {
            let kids = &family.lock().expect("as above").kids;
            let kid = kids.iter().find(|kid| kid.far.uid() == child.uid());
            if let Some(kid) = kid.filter(|_| failure.kind() == FailureKind::Initialization) {
                let node = name_of(kid.child.by.node as usize);
                let recorder = RECORDERS.with_borrow(|recorders| recorders[&node].clone());
                recorder.note(Event::CreationJudged { child: kid.child });
            }
            match choose(10) {
                0..=4 => Directive::Restart,
                5 | 6 => Directive::Resume,
                7 => Directive::Escalate,
                _ => Directive::Stop,
            }
        };
        let strategy = Strategy::decide_for(decide).quiet();
        if choose(2) == 0 { strategy.all_for_one() } else { strategy }
    }
}

/// Watches the children beside their parent, which may end with them, and gets their messages.
#[derive(Default)]
struct Watcher {
    watched: Vec<(ActorRef<Work>, Child)>,
}

impl Actor for Watcher {
    type Message = Notice;
    fn receive(&mut self, notice: Notice, ctx: &mut Context<Notice>) -> HandlerResult {
        match notice {
            Notice::Watch(far, child) => {
                ctx.watch(&far)?;
                self.watched.push((far, child.into()));
            }
            Notice::Said(child, number) => {
                recorder_of(ctx).note(Event::WatcherGot { child: child.into(), number });
            }
        }
        Ok(())
    }
    fn terminated(&mut self, end: Terminated, ctx: &mut Context<Notice>) -> HandlerResult {
        let is_it = |(far, _): &&(ActorRef<Work>, Child)| far.untyped().as_ref() == Some(&end.actor);
        let (_, child) = self.watched.iter().find(is_it).expect("it is watched");
        recorder_of(ctx).note(Event::ChildEnded { child: *child });
        Ok(())
    }
}

fn describe(node: Node) -> Node {
    let policy = Policy::closed().allow_factory(Worker::FACTORY, []);
    node.message::<Work>().message::<Notice>().factory::<Worker>().policy(policy)
}

fn furnish(member: &Member) {
    let recorder = member.recorder.clone();
    RECORDERS.with_borrow_mut(|recorders| recorders.insert(member.name.clone(), recorder));
    member.system.actor("watcher").spawn(Watcher::default).expect("the name is free");
    spawn_boss(member);
}

fn spawn_boss(member: &Member) {
    let watcher = member.system.typed_at::<Notice>("/user/watcher").expect("it is there");
    let family = Arc::<Mutex<Family>>::default();
    let recipe = move || Boss { family: family.clone(), watcher: watcher.clone() };
    // The one before may not have ended yet.
    let _ = member.system.actor("boss").spawn(recipe);
}

/// One step of a parent, by chance.
fn act(cluster: &mut Cluster) {
    let Some(node) = cluster.any() else { return };
    let member = cluster.members[node].as_ref().expect("it runs");
    let Ok(boss) = member.system.typed_at::<Order>("/user/boss") else { return spawn_boss(member) };
    boss.tell(match cluster.random.below(40) {
        0..=9 => {
            let other = (node as u64 + 1 + cluster.random.below(NODES - 1)) % NODES;
            Order::Deploy(name_of(other as usize), NAMES[cluster.random.below(3) as usize])
        }
        10..=29 => Order::Send(Work::Take(next())),
        30..=32 => Order::Send(Work::Fail),
        33 => Order::Send(Work::Panic),
        34 => Order::Send(Work::Stop),
        35 | 36 => Order::End(cluster.random.below(3)),
        37 | 38 => Order::Fail,
        _ => Order::Stop,
    });
}

/// The actors that others have made at a node.
fn workers(member: &Member) -> Vec<ActorRef<Work>> {
    let Ok(all) = member.system.actor_at("/remote") else { return Vec::new() };
    let below = |actor: AnyActorRef| actor.children().into_iter();
    let workers = all.children().into_iter().flat_map(below).flat_map(below);
    workers.map(|worker| worker.typed().expect("a worker")).collect()
}

fn run(seed: u64, lossy: bool) -> Vec<Log> {
    CHOICES.set(Random::new(seed));
    let mut cluster = Cluster::new(seed, NODES as usize, describe, furnish);
    if lossy {
        cluster.spoil_links()
    } else {
        cluster.delay_links()
    }
    for _ in 0..40 {
        for _ in 0..1 + cluster.random.below(12) {
            act(&mut cluster);
        }
        if lossy && cluster.random.below(3) == 0 {
            cluster.disturb();
        }
        let by = Duration::from_micros(1 + cluster.random.below(3_000_000));
        cluster.advance(by);
        note_books(&cluster);
    }
    cluster.heal();
    cluster.advance(Duration::from_secs(45));
    for (node, member) in cluster.members.iter().flatten().enumerate() {
        if let Ok(boss) = member.system.typed_at::<Order>("/user/boss") {
            boss.tell(Order::Deploy(name_of((node + 1) % NODES as usize), NAMES[0]));
        }
    }
    for _ in 0..3 {
        cluster.advance(Duration::from_secs(45));
    }
    note_books(&cluster);
    for member in cluster.members.iter().flatten() {
        if let Ok(boss) = member.system.typed_at::<Order>("/user/boss") {
            boss.tell(Order::Look);
        }
    }
    cluster.advance(Duration::from_secs(5));
    for member in cluster.members.iter().flatten() {
        workers(member).iter().for_each(|worker| worker.tell(Work::Look));
    }
    cluster.advance(Duration::ZERO);
    for member in cluster.members.iter().flatten() {
        let suspended = workers(member).iter().filter(|worker| worker.queued() != Some(0)).count();
        assert_eq!(suspended, 0, "seed {seed}: workers of {} are suspended for ever", member.name);
        if let Ok(boss) = member.system.typed_at::<Order>("/user/boss") {
            boss.tell(Order::Stop);
        }
    }
    // A parent ends after its children, for which the other nodes have to live.
    cluster.advance(Duration::from_secs(5));
    for member in cluster.members.iter().flatten() {
        assert!(workers(member).is_empty(), "seed {seed}: workers of {} live on", member.name);
    }
    cluster.end()
}

fn note_books(cluster: &Cluster) {
    for member in cluster.members.iter().flatten() {
        member.recorder.note(Event::Books { balance: member.system.ledger().balance() });
    }
}

#[test]
fn children_on_other_nodes_keep_their_promises_under_faults_of_each_kind() {
    let (mut seen, mut count) = ([0; 6], 0);
    for seed in TestSystem::seeds(seed_count(50)) {
        eprintln!("seed {seed}");
        let logs = run(seed, true);
        let violations = check(&logs);
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
        for event in logs.iter().flat_map(|log| &log.events) {
            match event {
                Event::Deployed { .. } => seen[0] += 1,
                Event::ChildEnded { .. } => seen[1] += 1,
                Event::StateMade { is_restart: true, .. } => seen[2] += 1,
                Event::CreationJudged { .. } => seen[3] += 1,
                Event::WorkerLives { .. } => seen[4] += 1,
                Event::WatcherGot { .. } => seen[5] += 1,
                _ => {}
            }
        }
        count += 1;
    }
    eprintln!(
        "{count} runs: {seen:?} children made, ended, restarted, not created, alive at last, and messages of theirs"
    );
    let least = [10, 5, 5, 3, 1, 10];
    assert!(count < 30 || seen.iter().zip(least).all(|(seen, least)| *seen >= least * count), "{seen:?}");
}

#[test]
fn all_messages_of_a_child_come_before_its_end_where_nothing_is_lost() {
    let (mut ends, mut got, mut count) = (0, 0, 0);
    for seed in TestSystem::seeds(seed_count(20)) {
        eprintln!("seed {seed}");
        let logs = run(seed, false);
        let violations: Vec<_> = check(&logs).into_iter().chain(check_last_messages(&logs)).collect();
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
        for event in logs.iter().flat_map(|log| &log.events) {
            match event {
                Event::ChildEnded { .. } => ends += 1,
                Event::WatcherGot { .. } => got += 1,
                _ => {}
            }
        }
        count += 1;
    }
    eprintln!("{count} runs: {ends} children ended, and {got} messages of theirs");
    assert!(count < 10 || ends >= 10 * count && got >= 20 * count, "{ends} ends, {got} messages");
}
