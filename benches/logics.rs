//! What choosing costs: each logic at 2, 8, 64 and 1,000 routees, against direct tells to the same routees in turn; and
//! consistent hashing's ring: a look-up, a rebuild, and the share of keys that a new member takes.
//!
//! `choosing` sends to functions, on one thread: nothing but the router's work is in the figures. Nobody knows a
//! function's load, so the smallest mailbox is looked for among all of them, its worst case. `to actors`
//! sends to actors from a thread outside of their pool, with two workers.
//!
//! 2026-11-22, AMD EPYC, 2 cores and nobody else on them, medians of 15 rounds; `cargo bench --bench logics`. ns for
//! each delivery:
//!
//! | | choosing, 2 | 8 | 64 | 1,000 | to actors, 2 | 8 | 64 | 1,000 |
//! |---|---|---|---|---|---|---|---|---|
//! | direct tells in turn | 7.9 | 8.1 | 7.9 | 7.9 | 31 | 19.8 | 47 | 41 |
//! | round robin | 17.1 | 17.7 | 17.1 | 17.3 | 44 | 33 | 56 | 45 |
//! | round robin, keeping position | 17.9 | 18.4 | 17.9 | 18.0 | 44 | 33 | 55 | 49 |
//! | round robin, exact | 26 | 27 | 26 | 27 | 48 | 36 | 56 | 56 |
//! | random | 21 | 22 | 22 | 24 | 44 | 35 | 64 | 65 |
//! | two choices | 23 | 24 | 23 | 26 | 54 | 42 | 76 | 72 |
//! | smallest mailbox | 22 | 28 | 136 | 1,604 | 50 | 45 | 64 | 51 |
//! | consistent hashing | 31 | 31 | 37 | 269 | 63 | 63 | 104 | 276 |
//! | round robin, broadcast_if never | 26 | 27 | 26 | 26 | 48 | 38 | 56 | 48 |
//! | broadcast, per delivery | 10.0 | 6.8 | 6.0 | 5.8 | 37 | 20 | 38 | 34 |
//! | balancing pool | – | – | – | – | 99 | 112 | 115 | – |
//!
//! The smallest mailbox of 1,000 actors is cheap as one is idle nearly always; of 1,000 functions it is never found
//! early. A ring of 1,000 routees has 160,000 points in 4 MB, of which the caches keep a part. Look-ups alone, below,
//! overlap with each other.
//!
//! A question that all routees are asked is one copy, one attempt and one reply slot for each, and nobody is asked by
//! tail-chopping who need not be. ns for a question and its answer, to functions that answer at once:
//!
//! | questions to | 2 | 8 | 64 | 1,000 |
//! |---|---|---|---|---|
//! | direct ask | 42 | 42 | 41 | 42 |
//! | round robin | 86 | 86 | 86 | 87 |
//! | scatter-gather | 598 | 1,281 | 7,579 | 116,130 |
//! | tail-chopping | 514 | 519 | 526 | 678 |
//!
//! | ring of | look-up | rebuild | keys that a new member moves | that must move |
//! |---|---|---|---|---|
//! | 8 | 4.2 ns | 0.04 ms | 11.2 % | 11.1 % |
//! | 128 | 7.7 ns | 1.2 ms | 0.71 % | 0.78 % |
//! | 1,000 | 18 ns | 10 ms | 0.080 % | 0.100 % |
//!
//! `counting path`, to 8 actors: without a resizer 40 ns; with one that is never asked 45, asked every 1,000
//! messages 45, every 10 messages 51.
//!
//! The balancing pool is as it was before its routees let a short queue grow: see `balancing.rs`. The machine is not always
//! as fast: minutes before, round robin to 8 actors took 151 ns, and direct tells 99.

mod common;

use common::{Count, SOON, Sink, Subject, Words, compare, with_system};
use criterion::{Criterion, criterion_group, criterion_main};
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, ConsistentHashing, DefaultResizer, HashKey, Random, Ring, RoundRobin, RouterPlan,
    RoutingLogic, ScatterGatherFirstCompleted, SmallestMailbox, TailChopping, TwoChoices,
};
use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const SIZES: [usize; 4] = [2, 8, 64, 1000];

/// Deliveries between two waits for the actors.
const WINDOW: u64 = 512;

fn handled(counts: &[Arc<Count>]) -> u64 {
    counts.iter().map(|count| count.get()).sum()
}

/// Sends by `tell`, and waits until everything is handled.
fn run(counts: &[Arc<Count>], each: u64, deliveries: u64, tell: impl Fn(u64)) -> Duration {
    let messages = (deliveries / each).max(1);
    let window = (WINDOW / each).max(1);
    let (before, start) = (handled(counts), Instant::now());
    let wait_for = |deliveries: u64| {
        while !counts.is_empty() && handled(counts) - before < deliveries {
            thread::yield_now();
            assert!(start.elapsed() < SOON, "messages are lost");
        }
    };
    for number in 0..messages {
        if number % window == 0 {
            wait_for(number * each);
        }
        tell(number);
    }
    wait_for(messages * each);
    start.elapsed()
}

/// Each logic over the same routees, side by side.
struct Comparison<'a> {
    system: &'a System,
    group: String,
    routees: &'a [ActorRef<Words>],
    /// Empty if nobody has to be waited for.
    counts: &'a [Arc<Count>],
    subjects: Vec<Subject<'a>>,
}

impl<'a> Comparison<'a> {
    fn new(
        system: &'a System,
        group: String,
        routees: &'a [ActorRef<Words>],
        counts: &'a [Arc<Count>],
    ) -> Self {
        let in_turn = move |deliveries| {
            run(counts, 1, deliveries, |number| routees[number as usize % routees.len()].tell([number; 2]))
        };
        let subjects = vec![Subject::new("direct tells in turn", in_turn)];
        Self { system, group, routees, counts, subjects }
    }

    /// Adds a group over the routees, routed by this logic; `each` deliveries come of one message.
    fn add(&mut self, name: &str, each: u64, logic: impl RoutingLogic<Words>) {
        self.add_plan(name, each, |plan| plan.logic(logic));
    }

    fn add_plan<L: RoutingLogic<Words>>(
        &mut self,
        name: &str,
        each: u64,
        plan: impl FnOnce(RouterPlan<Words, RoundRobin>) -> RouterPlan<Words, L>,
    ) {
        let path = format!("{} {name}", self.group).replace([' ', ','], "-");
        let plan = plan(self.system.router(&path).group(self.routees.to_vec()));
        let (router, counts) = (plan.spawn().expect("a free name"), self.counts);
        let tell = move |deliveries| run(counts, each, deliveries, |number| router.tell([number; 2]));
        self.subjects.push(Subject::new(name, tell));
    }

    /// Adds a pool of routees of its own, which share a queue.
    fn add_balancing_pool(&mut self, size: usize) {
        let counts: Vec<Arc<Count>> = (0..size).map(|_| Arc::default()).collect();
        let given = counts.clone();
        let recipe = move |ctx: &mut Context<Words>| Sink { handled: given[ctx.routee_index()].clone() };
        let plan = self.system.router(&format!("balancing-{size}")).balancing_pool(size, recipe);
        let router = plan.spawn().expect("a free name");
        let tell = move |deliveries| run(&counts, 1, deliveries, |number| router.tell([number; 2]));
        self.subjects.push(Subject::new("balancing pool", tell));
    }

    fn run(mut self, criterion: &mut Criterion, deliveries: u64) {
        self.add("round robin", 1, RoundRobin::new());
        self.add("round robin, keeping position", 1, RoundRobin::keeping_position());
        self.add("round robin, exact", 1, RoundRobin::exact());
        self.add("random", 1, Random::new());
        self.add("two choices", 1, TwoChoices::new());
        self.add("smallest mailbox", 1, SmallestMailbox::new());
        self.add("consistent hashing", 1, ConsistentHashing::by(|words: &Words, key| key.feed(&words[0])));
        self.add_plan("round robin, broadcast_if never", 1, |plan| {
            plan.broadcast_if(|words| words[0] == u64::MAX)
        });
        self.add("broadcast, per delivery", self.routees.len() as u64, Broadcast);
        compare(criterion, &self.group, deliveries, self.subjects);
    }
}

#[derive(Clone)]
struct Double(u64);

impl Request for Double {
    type Reply = u64;
}

/// Questions one after the other, to functions that answer at once: what racing costs, and nobody's work.
fn questions(criterion: &mut Criterion) {
    with_system(1, |system| {
        for size in SIZES {
            let port = |_| ActorRef::from_fn(|call: Call<Double>| call.answer(|Double(number)| 2 * number));
            let routees: Vec<ActorRef<Call<Double>>> = (0..size).map(port).collect();
            let subject = |name: &str, to: ActorRef<Call<Double>>| {
                let ask = move |questions| {
                    let start = Instant::now();
                    for number in 0..questions {
                        assert_eq!(black_box(to.ask(Double(number)).wait()), Ok(2 * number));
                    }
                    start.elapsed()
                };
                Subject::new(name, ask)
            };
            let group = |name: &str| system.router(&format!("{name}-{size}")).group(routees.clone());
            let in_turn = group("in-turn").spawn().expect("a free name").to_ref();
            let scatter = group("scatter").logic(ScatterGatherFirstCompleted::new());
            let tail = group("tail").logic(TailChopping::new());
            let subjects = vec![
                subject("direct ask", routees[0].clone()),
                subject("round robin", in_turn),
                subject("scatter-gather", scatter.spawn().expect("a free name").to_ref()),
                subject("tail-chopping", tail.spawn().expect("a free name").to_ref()),
            ];
            compare(criterion, &format!("questions to {size}"), 2_000, subjects);
        }
    });
}

fn choosing(criterion: &mut Criterion) {
    with_system(1, |system| {
        for size in SIZES {
            let port = |_| ActorRef::from_fn(|words: Words| _ = black_box(words));
            let routees: Vec<ActorRef<Words>> = (0..size).map(port).collect();
            Comparison::new(system, format!("choosing of {size}"), &routees, &[]).run(criterion, 20_000);
        }
    });
}

fn to_actors(criterion: &mut Criterion) {
    with_system(2, |system| {
        for size in SIZES {
            let counts: Vec<Arc<Count>> = (0..size).map(|_| Arc::default()).collect();
            let spawn = |handled: &Arc<Count>| {
                let handled = handled.clone();
                system.spawn(move || Sink { handled: handled.clone() }).expect("the system lives")
            };
            let routees: Vec<ActorRef<Words>> = counts.iter().map(spawn).collect();
            let mut comparison = Comparison::new(system, format!("to actors {size}"), &routees, &counts);
            // The figures of a pool of a thousand that share a queue would be those of their beginning.
            if size <= 64 {
                comparison.add_balancing_pool(size);
            }
            comparison.run(criterion, 50_000);
        }
    });
}

/// What a resizer costs those who send: its count alone, and with the looks at the pool that it asks for.
fn counting_path(criterion: &mut Criterion) {
    const ROUTEES: usize = 8;
    with_system(2, |system| {
        let pool = |name: &str, resizer: Option<DefaultResizer>| {
            let counts: Vec<Arc<Count>> = (0..ROUTEES).map(|_| Arc::default()).collect();
            let recipe = {
                let counts = counts.clone();
                move |ctx: &mut Context<Words>| Sink { handled: counts[ctx.routee_index()].clone() }
            };
            let plan = system.router(&name.replace([' ', ','], "-")).pool(ROUTEES, recipe);
            let plan = match resizer {
                Some(resizer) => plan.resizer(resizer.lower_bound(ROUTEES).upper_bound(ROUTEES)),
                None => plan,
            };
            let router = plan.spawn().expect("a free name");
            let tell = move |deliveries| run(&counts, 1, deliveries, |number| router.tell([number; 2]));
            Subject::new(name, tell)
        };
        let subjects = vec![
            pool("without a resizer", None),
            pool("counting only", Some(DefaultResizer::new().messages_per_resize(u64::MAX))),
            pool("asked every 1,000 messages", Some(DefaultResizer::new().messages_per_resize(1000))),
            pool("asked every 10 messages", Some(DefaultResizer::new())),
        ];
        compare(criterion, "counting path, 8 routees", 50_000, subjects);
    });
}

fn ring_of(members: usize) -> Ring {
    let names: Vec<String> = (0..members).map(|member| format!("/user/cache/routee-{member}")).collect();
    Ring::new(names.iter().map(|name| (name.as_str(), 160))).expect("points are given")
}

fn ring(criterion: &mut Criterion) {
    for members in [8, 128, 1000] {
        let (ring, larger) = (ring_of(members), ring_of(members + 1));
        const KEYS: u64 = 100_000;
        let moved =
            (0..KEYS).filter(|key| ring.owner(key.key_hash()) != larger.owner(key.key_hash())).count();
        println!(
            "\n{members} members and one more: {:.3} % of the keys move, {:.3} % must",
            100.0 * moved as f64 / KEYS as f64,
            100.0 / (members + 1) as f64
        );
        let look_up = |keys: u64| {
            let start = Instant::now();
            (0..keys).for_each(|key| _ = black_box(ring.owner(black_box(key).key_hash())));
            start.elapsed()
        };
        compare(
            criterion,
            &format!("ring of {members}, look-up"),
            100_000,
            vec![Subject::new("look-up", look_up)],
        );
        let rebuild = |times: u64| {
            let start = Instant::now();
            (0..times).for_each(|_| _ = black_box(ring_of(members)));
            start.elapsed()
        };
        compare(criterion, &format!("ring of {members}, rebuild"), 5, vec![Subject::new("rebuild", rebuild)]);
    }
}

criterion_group!(benches, choosing, to_actors, questions, counting_path, ring);
criterion_main!(benches);
