//! Instructions of the hot paths, counted by callgrind; `.ci/instructions` compares them with `table.txt`.
//!
//! Each case is a process of its own and does [`OPERATIONS`] of one kind. `tell` and all that routes are counted at
//! the sender alone, to actors that are on their way already; `receive` at the actor alone; everything else there
//! and back.

use gungraun::prelude::*;
use gungraun::{Callgrind, EntryPoint};
use instructions::{
    Answerer, Next, OPERATIONS, Sink, Stage, TOGGLE, Words, ask_around, come_and_go, counted, idler, play,
};
use pointsman::prelude::*;
use pointsman::routing::{
    Broadcast, ConsistentHashing, Random, RoundRobin, RouterValue, RoutingLogic, SmallestMailbox, TwoChoices,
};
use pointsman::telemetry::Telemetry;
use pointsman::topology::{GroupOutlets, Wraps};

const ROUTEES: usize = 8;

/// Counts sends from an actor on the worker to `actors`, all of which have been woken.
fn count_sends(stage: &Stage, actors: Vec<ActorRef<Words>>, send: impl Fn(u64) + Send + Clone + 'static) {
    for count in [false, true] {
        let (actors, send) = (actors.clone(), send.clone());
        stage.run(move |_| {
            actors.iter().for_each(|actor| actor.tell([0, 0]));
            let sends = || (0..OPERATIONS).for_each(send);
            if count { counted(sends) } else { sends() }
        });
    }
}

fn spawn_sinks(stage: &Stage, count: usize) -> Vec<ActorRef<Words>> {
    (0..count).map(|_| stage.system.spawn(|| Sink).expect("the system lives")).collect()
}

/// Counts what sinks behind `sink` do with the messages of one turn.
fn count_receives(stage: &Stage, sink: ActorRef<Words>) {
    for mark in [0, TOGGLE] {
        let sink = sink.clone();
        stage.run(move |_| {
            sink.tell([0, mark]);
            (1..OPERATIONS).for_each(|number| sink.tell([number, 0]));
            sink.tell([0, mark]);
        });
    }
}

/// Spawns a balancing pool of sinks.
fn balancing_pool(stage: &Stage, size: usize) -> ActorRef<Words> {
    let plan = stage.system.router("balancing").balancing_pool(size, |_| Sink);
    plan.spawn().expect("a free name").to_ref()
}

/// Counts tells to a pool by a logic.
fn count_routed(logic: impl RoutingLogic<Words>) {
    let stage = Stage::new();
    let router =
        stage.system.router("pool").pool(ROUTEES, |_| Sink).logic(logic).spawn().expect("a free name");
    let routees = router.routees().expect("the router lives");
    let reference = router.to_ref();
    count_sends(&stage, routees, move |number| reference.tell([number, number]));
    stage.end();
}

#[library_benchmark]
fn tell() {
    let stage = Stage::new();
    let sinks = spawn_sinks(&stage, 1);
    let sink = sinks[0].clone();
    count_sends(&stage, sinks, move |number| sink.tell([number, number]));
    stage.end();
}

#[library_benchmark]
fn tell_in_turn() {
    let stage = Stage::new();
    let sinks = spawn_sinks(&stage, ROUTEES);
    let to = sinks.clone();
    count_sends(&stage, sinks, move |number| to[number as usize % ROUTEES].tell([number, number]));
    stage.end();
}

/// Messages of a call; the last batch of a call is not full.
const AT_ONCE: u64 = 40;

#[library_benchmark]
fn tell_many() {
    let stage = Stage::new();
    let sinks = spawn_sinks(&stage, 1);
    let sink = sinks[0].clone();
    count_sends(&stage, sinks, move |number| {
        if number % AT_ONCE == 0 {
            sink.tell_many((number..number + AT_ONCE).map(|number| [number, number]));
        }
    });
    stage.end();
}

#[library_benchmark]
fn tell_measured() {
    let stage = Stage::with(Telemetry::sampled());
    let sinks = spawn_sinks(&stage, 1);
    let sink = sinks[0].clone();
    count_sends(&stage, sinks, move |number| sink.tell([number, number]));
    stage.end();
}

#[library_benchmark]
fn receive() {
    let stage = Stage::new();
    let sink = spawn_sinks(&stage, 1).remove(0);
    count_receives(&stage, sink);
    stage.end();
}

#[library_benchmark]
fn receive_measured() {
    let stage = Stage::with(Telemetry::sampled());
    let sink = spawn_sinks(&stage, 1).remove(0);
    count_receives(&stage, sink);
    stage.end();
}

// The routee of a balancing pool takes from the queue of the pool.
#[library_benchmark]
fn receive_balancing() {
    let stage = Stage::new();
    count_receives(&stage, balancing_pool(&stage, 1));
    stage.end();
}

#[library_benchmark]
fn ping_pong() {
    let stage = Stage::new();
    play(&stage);
    stage.end();
}

#[library_benchmark]
fn ping_pong_measured() {
    let stage = Stage::with(Telemetry::sampled());
    play(&stage);
    stage.end();
}

#[library_benchmark]
fn routed_round_robin() {
    count_routed(RoundRobin::new());
}

#[library_benchmark]
fn routed_round_robin_exact() {
    count_routed(RoundRobin::exact());
}

#[library_benchmark]
fn routed_round_robin_keeping_position() {
    count_routed(RoundRobin::keeping_position());
}

#[library_benchmark]
fn routed_random() {
    count_routed(Random::seeded(7));
}

#[library_benchmark]
fn routed_smallest_mailbox() {
    count_routed(SmallestMailbox::new());
}

#[library_benchmark]
fn routed_two_choices() {
    count_routed(TwoChoices::seeded(7));
}

#[library_benchmark]
fn routed_consistent_hashing() {
    count_routed(ConsistentHashing::by(|words: &Words, key| key.feed(&words[0])));
}

// One message, eight deliveries.
#[library_benchmark]
fn routed_broadcast() {
    count_routed(Broadcast);
}

// A balancing pool, of which one routee was woken.
#[library_benchmark]
fn routed_balancing() {
    let stage = Stage::new();
    let reference = balancing_pool(&stage, ROUTEES);
    let routees = vec![reference.clone()];
    count_sends(&stage, routees, move |number| reference.tell([number, number]));
    stage.end();
}

#[library_benchmark]
fn routed_by_value() {
    let stage = Stage::new();
    let sinks = spawn_sinks(&stage, ROUTEES);
    let router =
        RouterValue::new(&stage.system, RoundRobin::new()).expect("a fair logic").with_routees(&sinks);
    let router = std::sync::Arc::new(router);
    count_sends(&stage, sinks, move |number| router.route([number, number]));
    stage.end();
}

/// Types of messages of the kind of [`Words`].
#[derive(Clone)]
struct Typed<const NUMBER: usize>(Words);

/// A group's message that carries every such type.
struct Carrier(Words);

/// A sink of them.
struct TypedSink;

impl Actor for TypedSink {
    type Message = Carrier;
    fn receive(&mut self, Carrier([number, _]): Carrier, _: &mut Context<Carrier>) -> HandlerResult {
        std::hint::black_box(number);
        Ok(())
    }
}

impl<const NUMBER: usize> From<Typed<NUMBER>> for Carrier {
    fn from(Typed(words): Typed<NUMBER>) -> Self {
        Self(words)
    }
}

impl<const NUMBER: usize> Wraps<Typed<NUMBER>> for Carrier {
    fn give_back(self) -> Result<Typed<NUMBER>, Self> {
        Ok(Typed(self.0))
    }
}

/// Counts sends from an actor by the outlets of a group that routes one type, or eight.
fn count_sends_of_group(types: usize, send: impl Fn(&GroupOutlets, u64) + Send + Clone + 'static) {
    let stage = Stage::new();
    let topology = stage.system.topology();
    let (from, to) =
        (topology.local::<Words>("from").expect("a free name"), topology.local("to").expect("a free name"));
    from.route_all_to::<Typed<0>, Carrier>(&to);
    if types == 8 {
        from.route_all_to::<Typed<1>, _>(&to)
            .route_all_to::<Typed<2>, _>(&to)
            .route_all_to::<Typed<3>, _>(&to);
        from.route_all_to::<Typed<4>, _>(&to)
            .route_all_to::<Typed<5>, _>(&to)
            .route_all_to::<Typed<6>, _>(&to);
        from.route_all_to::<Typed<7>, _>(&to);
    }
    let outlets = from.outlets();
    let sink = to.mount(&stage.system.spawn(|| TypedSink).expect("the system lives"));
    from.mount(&ActorRef::from_fn(|_: Words| {}));
    for count in [false, true] {
        let (outlets, send, sink) = (outlets.clone(), send.clone(), sink.clone());
        stage.run(move |_| {
            sink.tell(Carrier([0, 0]));
            let sends = || (0..OPERATIONS).for_each(|number| send(&outlets, number));
            if count { counted(sends) } else { sends() }
        });
    }
    stage.end();
}

// The outlet is kept: the base of the next two.
#[library_benchmark]
fn sent_by_outlet() {
    let kept = std::sync::OnceLock::new();
    let kept = std::sync::Arc::new(kept);
    count_sends_of_group(8, move |outlets, number| {
        let outlet = kept.get_or_init(|| outlets.outlet::<Typed<0>>().expect("it is routed").clone());
        outlet.try_send(Typed([number, number])).expect("the sink lives");
    });
}

#[library_benchmark]
fn sent_by_group_of_one_type() {
    count_sends_of_group(1, |outlets, number| {
        outlets.try_send(Typed::<0>([number, number])).expect("the sink lives");
    });
}

#[library_benchmark]
fn sent_by_group_of_eight_types() {
    count_sends_of_group(8, |outlets, number| {
        outlets.try_send(Typed::<0>([number, number])).expect("the sink lives");
    });
}

#[library_benchmark]
fn ask_from_actor() {
    let stage = Stage::new();
    ask_around(&stage);
    stage.end();
}

/// On the thread that asks, which runs the answerer meanwhile.
fn count_asks(mut ask: impl FnMut(&ActorRef<Call<Next>>, u64) -> Result<u64, AskError>) {
    let system = System::builder("count").dispatcher("default", Dispatcher::calling_thread()).build();
    let system = system.expect("it needs no thread");
    let answerer = system.spawn(|| Answerer).expect("the system lives");
    let mut asks = || (0..OPERATIONS).for_each(|number| assert_eq!(ask(&answerer, number), Ok(number + 1)));
    asks();
    counted(asks);
    system.shutdown(std::time::Duration::from_secs(100)).expect("everything ends");
}

#[library_benchmark]
fn ask_on_calling_thread() {
    count_asks(|answerer, number| answerer.ask(Next(number)).wait());
}

#[library_benchmark]
fn asker_on_calling_thread() {
    let mut asker = Asker::new();
    count_asks(move |answerer, number| asker.ask(answerer, Next(number)).wait());
}

// Without the first turn.
#[library_benchmark]
fn spawn() {
    let stage = Stage::new();
    for count in [false, true] {
        stage.run(move |ctx| {
            let mut idlers = Vec::with_capacity(OPERATIONS as usize);
            let mut spawns = || {
                for _ in 0..OPERATIONS {
                    idlers.push(ctx.spawn(idler).expect("the system lives"));
                }
            };
            if count { counted(spawns) } else { spawns() }
        });
    }
    stage.end();
}

#[library_benchmark]
fn spawn_and_stop() {
    let stage = Stage::new();
    come_and_go(&stage);
    stage.end();
}

#[library_benchmark]
fn spawn_and_stop_measured() {
    let stage = Stage::with(Telemetry::sampled());
    come_and_go(&stage);
    stage.end();
}

library_benchmark_group!(
    name = hot,
    config = LibraryBenchmarkConfig::default()
        .tool(Callgrind::with_args(["--collect-atstart=no"]).entry_point(EntryPoint::None)),
    benchmarks = [
        tell,
        tell_in_turn,
        tell_many,
        receive,
        receive_balancing,
        ping_pong,
        routed_round_robin,
        routed_round_robin_exact,
        routed_round_robin_keeping_position,
        routed_random,
        routed_smallest_mailbox,
        routed_two_choices,
        routed_consistent_hashing,
        routed_broadcast,
        routed_balancing,
        routed_by_value,
        sent_by_outlet,
        sent_by_group_of_one_type,
        sent_by_group_of_eight_types,
        ask_from_actor,
        ask_on_calling_thread,
        asker_on_calling_thread,
        spawn,
        spawn_and_stop,
        tell_measured,
        receive_measured,
        ping_pong_measured,
        spawn_and_stop_measured,
    ]
);

main!(library_benchmark_groups = hot);
