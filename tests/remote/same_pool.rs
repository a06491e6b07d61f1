//! A pool behaves alike wherever its routees are: D18.
//!
//! A case is a pool with a strategy, and a history of commands: messages that are counted, fail, panic or stop their routee,
//! resizes, removals, watches, pills, failures of the parent, states that cannot be made. It is run with all routees here, where
//! the system tells when nothing is under way any more. The same history with the routees elsewhere has to show the same after each
//! command: the routees and their restarts, the names that are taken, what each routee has handled and
//! lived through, which watches have ended, and how many messages were dead letters.

use pointsman::prelude::*;
use pointsman::remote::{Deploy, Wire};
use pointsman::routing::RouteeInfo;
use pointsman::{Directive, Strategy, Terminated};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Serialize, Deserialize, Wire)]
#[wire(name = "test.SameJob", version = 1)]
pub enum Job {
    Do(u32),
    Fail,
    Panic,
    Stop,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Stop,
    Poison,
    Kill,
}

/// Positions are those among the present routees, modulo their number.
#[derive(Debug, Clone)]
enum Command {
    Tell(usize, Vec<Job>),
    /// So many messages through the pool.
    Route(u32),
    ResizeTo(usize),
    Remove(usize),
    Watch(usize),
    Unwatch(usize),
    End(usize, End),
    /// The next state of a routee cannot be made.
    Break(usize),
    ParentFails,
}

#[derive(Debug, Clone)]
struct Case {
    size: usize,
    verdict: Directive,
    is_for_all: bool,
    restarts: Option<u32>,
    parents: Directive,
    stays: bool,
    commands: Vec<Command>,
}

/// A generator of numbers, by seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn case(&mut self) -> Case {
        use Directive::*;
        Case {
            size: 1 + self.below(4),
            verdict: self.one_of(&[Restart, Restart, Resume, Stop, Escalate]),
            is_for_all: self.below(3) == 0,
            restarts: self.one_of(&[None, Some(1), Some(3)]),
            parents: self.one_of(&[Restart, Resume, Stop]),
            stays: self.below(2) == 0,
            commands: (0..4 + self.below(10)).map(|_| self.command()).collect(),
        }
    }

    fn command(&mut self) -> Command {
        let position = self.below(8);
        match self.below(16) {
            0..5 => {
                let jobs = [Job::Do(1), Job::Do(2), Job::Fail, Job::Fail, Job::Panic, Job::Stop];
                Command::Tell(position, (0..1 + self.below(4)).map(|_| self.one_of(&jobs)).collect())
            }
            5..7 => Command::Route(self.below(9) as u32),
            7..9 => Command::ResizeTo(self.below(6)),
            9 => Command::Remove(position),
            10..12 => Command::Watch(position),
            12 => Command::Unwatch(position),
            13 => Command::End(position, self.one_of(&[End::Stop, End::Poison, End::Kill])),
            14 => Command::Break(position),
            _ => Command::ParentFails,
        }
    }
}

/// The record of the routees of one run, by their numbers: all nodes are in this process.
#[derive(Debug, Default)]
struct Done {
    handled: BTreeMap<u32, Vec<u32>>,
    life: BTreeMap<u32, Vec<&'static str>>,
    broken: BTreeSet<u32>,
    /// The ends of watched routees, and whether their nodes were lost.
    ended: BTreeSet<(String, bool)>,
    dead: u32,
}

static RUNS: LazyLock<Mutex<HashMap<u64, Arc<Mutex<Done>>>>> = LazyLock::new(Mutex::default);

fn done(run: u64) -> Arc<Mutex<Done>> {
    RUNS.lock().unwrap().entry(run).or_default().clone()
}

pub struct Worker {
    number: u32,
    done: Arc<Mutex<Done>>,
}

impl Worker {
    fn lives(&self, what: &'static str) {
        self.done.lock().unwrap().life.entry(self.number).or_default().push(what);
    }
}

impl Actor for Worker {
    type Message = Job;
    fn started(&mut self, _: &mut Context<Job>) -> HandlerResult {
        self.lives("started");
        Ok(())
    }
    fn receive(&mut self, job: Job, ctx: &mut Context<Job>) -> HandlerResult {
        match job {
            Job::Do(number) => self.done.lock().unwrap().handled.entry(self.number).or_default().push(number),
            Job::Fail => {
                self.lives("fails");
                return Err(Failure::msg("told to fail"));
            }
            Job::Panic => {
                self.lives("panics");
                panic!("told to panic");
            }
            Job::Stop => {
                self.lives("stops");
                ctx.stop();
            }
        }
        Ok(())
    }
    fn restarting(&mut self, _: &Failure, _: &mut Context<Job>) -> HandlerResult {
        self.lives("restarting");
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<Job>) {
        self.lives("stopped");
    }
}

impl Deploy for Worker {
    const FACTORY: &'static str = "test.SameWorker";
    type Args = u64;
    fn deploy(run: &u64, ctx: &mut Context<Job>) -> Result<Self, Failure> {
        let (number, done) = (ctx.routee_index() as u32, done(*run));
        if done.lock().unwrap().broken.remove(&number) {
            return Err(Failure::msg("it cannot be made"));
        }
        let worker = Self { number, done };
        worker.lives("made");
        Ok(worker)
    }
}

/// Makes the pool, watches its routees, and fails when it is told to.
struct Parent {
    case: Case,
    run: u64,
    nodes: Vec<String>,
}

enum Order {
    Spawn(std::sync::mpsc::Sender<Router<Job>>),
    Watch(ActorRef<Job>),
    Unwatch(ActorRef<Job>),
    Fail,
}

impl Actor for Parent {
    type Message = Order;
    fn receive(&mut self, order: Order, ctx: &mut Context<Order>) -> HandlerResult {
        match order {
            Order::Spawn(made) => {
                let Case { size, verdict, is_for_all, restarts, stays, .. } = self.case;
                let mut strategy = Strategy::decide(move |_| verdict);
                if is_for_all {
                    strategy = strategy.all_for_one();
                }
                if let Some(restarts) = restarts {
                    strategy = strategy.max_restarts(restarts);
                }
                let mut plan = ctx
                    .router("pool")
                    .deployable_pool::<Worker>(size, self.run)
                    .on_nodes(self.nodes.clone())
                    .on_failure(strategy);
                if stays {
                    plan = plan.stay_when_empty();
                }
                made.send(plan.spawn()?)?;
            }
            Order::Watch(routee) => ctx.watch(&routee)?,
            Order::Unwatch(routee) => ctx.unwatch(&routee),
            Order::Fail => return Err(Failure::msg("the parent fails")),
        }
        Ok(())
    }
    fn restarting(&mut self, _: &Failure, _: &mut Context<Order>) -> HandlerResult {
        // The pool is kept.
        Ok(())
    }
    fn terminated(&mut self, end: Terminated, _: &mut Context<Order>) -> HandlerResult {
        let name = end.actor.path().elements().last().unwrap_or_default().to_owned();
        done(self.run).lock().unwrap().ended.insert((name, end.node_down));
        Ok(())
    }
    fn supervision(&self) -> Strategy {
        let directive = self.case.parents;
        Strategy::decide(move |_| directive)
    }
}

/// A pool as it is seen between two commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The name of each routee, and how often it was restarted; `None` once the pool has ended.
    routees: Option<Vec<(String, u32)>>,
    /// The names that are taken below the pool.
    taken: Vec<String>,
    handled: BTreeMap<u32, Vec<u32>>,
    life: BTreeMap<u32, Vec<&'static str>>,
    ended: BTreeSet<(String, bool)>,
    dead: u32,
}

/// The largest number of a routee that a history can have.
const ROUTEES_MAX: u32 = 100;

fn see(system: &System, pool: &Router<Job>, run: u64) -> Seen {
    let name =
        |info: &RouteeInfo<Job>| info.routee.actor().path().elements().last().unwrap_or_default().to_owned();
    let routees =
        pool.routees_info().ok().map(|list| list.iter().map(|info| (name(info), info.restarts)).collect());
    let is_taken = |name: &String| system.typed_at::<Job>(&format!("/user/parent/pool/{name}")).is_ok();
    let taken = (1..ROUTEES_MAX).map(|number| format!("c{number}")).filter(is_taken).collect();
    let done = done(run);
    let done = done.lock().unwrap();
    let (handled, life, ended) = (done.handled.clone(), done.life.clone(), done.ended.clone());
    Seen { routees, taken, handled, life, ended, dead: done.dead }
}

/// Runs a history with the routees on these nodes, from a node of `systems`, the first. `settle` gets a look at what is seen, waits,
/// and returns what was seen at last. Returns all that was seen.
pub fn run(
    seed: u64,
    number: u64,
    systems: &[&System],
    nodes: &[&str],
    mut settle: impl FnMut(usize, &dyn Fn() -> Seen) -> Seen,
) -> Vec<Seen> {
    let case = Numbers(seed).case();
    let (system, shared) = (systems[0], done(number));
    let letters: Vec<_> = systems
        .iter()
        .map(|system| {
            let shared = shared.clone();
            system.dead_letters().subscribe(move |letter| {
                if letter.message_type.ends_with("Job") {
                    shared.lock().unwrap().dead += 1;
                }
            })
        })
        .collect();
    let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
    let recipe = {
        let case = case.clone();
        move || Parent { case: case.clone(), run: number, nodes: nodes.clone() }
    };
    let parent = system.actor("parent").spawn(recipe).expect("the name is free");
    let (made_to, made) = std::sync::mpsc::channel();
    parent.tell(Order::Spawn(made_to));
    let pool = made.recv_timeout(LONG).expect("it spawns");
    let look = || see(system, &pool, number);
    let mut seen = vec![settle(0, &look)];
    for command in &case.commands {
        let routees = pool.routees().unwrap_or_default();
        let at = |position: usize| routees.get(position % routees.len().max(1)).cloned();
        match command {
            Command::Tell(position, jobs) => {
                // A routee that fails beside one that cannot be made may be judged with it, or after it.
                let is_alone = shared.lock().unwrap().broken.is_empty();
                let fails = |job: &&Job| !is_alone && matches!(job, Job::Fail | Job::Panic);
                let count = jobs.iter().position(|job| fails(&job)).map_or(jobs.len(), |first| first + 1);
                at(*position)
                    .iter()
                    .for_each(|routee| jobs[..count].iter().for_each(|job| routee.tell(job.clone())));
            }
            Command::Route(count) => (0..*count).for_each(|number| pool.tell(Job::Do(number))),
            Command::ResizeTo(size) => drop(pool.resize_to(*size)),
            Command::Remove(position) => drop(at(*position).map(|routee| pool.remove(routee))),
            Command::Watch(position) => {
                at(*position).into_iter().for_each(|routee| parent.tell(Order::Watch(routee)))
            }
            Command::Unwatch(position) => {
                at(*position).into_iter().for_each(|routee| parent.tell(Order::Unwatch(routee)));
            }
            Command::End(position, how) => at(*position).iter().for_each(|routee| match how {
                End::Stop => routee.stop(),
                End::Poison => routee.poison(),
                End::Kill => routee.kill(),
            }),
            Command::Break(position) => {
                let name = at(*position)
                    .map(|routee| routee.path().elements().last().unwrap_or_default().to_owned());
                let number = name.and_then(|name| name[1..].parse::<u32>().ok());
                let broken = &mut shared.lock().unwrap().broken;
                // Two that fail at one time may be judged together, or one after the other.
                if broken.is_empty() {
                    broken.extend(number.map(|number| number - 1));
                }
            }
            Command::ParentFails => parent.tell(Order::Fail),
        }
        seen.push(settle(seen.len(), &look));
    }
    // The pool may have ended.
    let _ = pool.drain();
    seen.push(settle(seen.len(), &look));
    parent.stop();
    parent.when_ended().wait().expect("it ends");
    drop(letters);
    seen
}

/// As [`run`] on one system, all routees here. It tells when nothing is under way.
pub fn run_here(seed: u64, number: u64, system: &System, node: &str) -> Vec<Seen> {
    run(seed, number, &[system], &[node], |_, look| {
        system.wait_until_quiet(LONG).expect("it comes to rest");
        look()
    })
}

/// As [`run`], with routees elsewhere: after each command all is seen that was seen with the routees here. `nudge` lets the time of
/// the systems go on, if it stands.
#[track_caller]
pub fn run_there(
    seed: u64,
    number: u64,
    systems: &[&System],
    nodes: &[&str],
    here: &[Seen],
    mut nudge: impl FnMut(),
) {
    let case = Numbers(seed).case();
    run(seed, number, systems, nodes, |step, look| {
        let began = Instant::now();
        loop {
            let seen = look();
            if seen == here[step] {
                return seen;
            }
            assert!(
                began.elapsed() < LONG,
                "seed {seed}, step {step} on {nodes:?}:\n{seen:?}\ninstead of\n{:?}\n{case:?}",
                here[step]
            );
            nudge();
        }
    });
}
