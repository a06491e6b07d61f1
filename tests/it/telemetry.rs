//! Telemetry: a system tells of its actors, classes, statistics, lifecycle events, histograms, stuck handlers.

use crate::support::{LONG, wait_until};
use pointsman::dispatch::DispatcherKind;
use pointsman::prelude::*;
use pointsman::settings::Deployment;
use pointsman::telemetry::{ActorFilter, ActorOrder, ActorState, Lifecycle, Stats, Telemetry};
use pointsman::time::{Clock, ManualClock};
use pointsman::{Mailbox, OverflowPolicy};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Counts its messages; a message may be a gate at which the actor waits, or a child to make.
struct Counter;

enum Do {
    Nothing,
    WaitFor(Receiver<()>),
    Tell(Sender<()>),
    Child(&'static str),
    Stash(bool),
    UnstashAll,
    Fail,
    Stop,
}

impl Actor for Counter {
    type Message = Do;
    fn receive(&mut self, message: Do, ctx: &mut Context<Do>) -> HandlerResult {
        match message {
            Do::Nothing => {}
            Do::WaitFor(gate) => drop(gate.recv()),
            Do::Tell(to) => to.send(())?,
            Do::Child(name) => drop(ctx.actor(name).spawn(|| Counter)?),
            Do::Stash(true) => drop(ctx.stash(Do::Stash(false))),
            Do::Stash(false) => {}
            Do::UnstashAll => ctx.unstash_all(),
            Do::Fail => return Err(Failure::msg("as told")),
            Do::Stop => ctx.stop(),
        }
        Ok(())
    }
}

fn system(name: &str) -> System {
    System::builder(name)
        .dispatcher("default", Dispatcher::work_stealing().threads(4))
        .build()
        .expect("threads")
}

/// Returns when the actor has handled everything that this thread has sent it.
fn settle(actor: &ActorRef<Do>) {
    let (sender, receiver) = channel();
    actor.tell(Do::Tell(sender));
    receiver.recv_timeout(LONG).expect("it handles its messages");
}

fn any(actor: &ActorRef<Do>) -> AnyActorRef {
    actor.untyped().expect("an actor")
}

/// Blocks an actor in its handler until the sender is dropped.
fn hold(actor: &ActorRef<Do>) -> Sender<()> {
    let ((gate, waits), (inside, is_inside)) = (channel(), channel());
    actor.tell(Do::Tell(inside));
    actor.tell(Do::WaitFor(waits));
    is_inside.recv_timeout(LONG).expect("it handles its messages");
    gate
}

#[test]
fn an_untyped_reference_tells_children_class_and_counts() {
    let system = system("untyped");
    let parent = system.actor("parent").spawn(|| Counter).unwrap();
    parent.tell(Do::Child("one"));
    parent.tell(Do::Child("two"));
    settle(&parent);
    let children = any(&parent).children();
    assert_eq!(
        children.iter().map(|child| child.path().name().to_owned()).collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert_eq!(any(&parent).handled(), 3);
    assert!(any(&parent).class().ends_with("::Counter"), "{}", any(&parent).class());
    let gate = hold(&parent);
    (0..5).for_each(|_| parent.tell(Do::Nothing));
    assert!(any(&parent).queued() >= 5);
    drop(gate);
    settle(&parent);
    assert_eq!(any(&parent).handled(), 3 + 2 + 5 + 1);
    assert_eq!(system.user().unwrap().children(), [any(&parent)]);
}

#[test]
fn a_class_is_that_of_the_deployment_the_builder_the_router_or_group_or_the_type() {
    let system = System::builder("classes")
        .deploy("/deployed", Deployment::new().class("by path"))
        .deploy("/workers", Deployment::new().class("labour"))
        .build()
        .unwrap();
    let class = |actor: &ActorRef<Do>| any(actor).class().to_owned();
    let plain = system.spawn(|| Counter).unwrap();
    assert!(class(&plain).ends_with("::Counter"));
    assert_eq!(class(&system.actor("named").class("mine").spawn(|| Counter).unwrap()), "mine");
    assert_eq!(class(&system.actor("deployed").class("mine").spawn(|| Counter).unwrap()), "by path");
    let pool = system.router("pool").pool(2, |_| Counter).spawn().unwrap();
    assert_eq!(system.actor_at("/user/pool").unwrap().class(), "/user/pool");
    assert!(pool.routees().unwrap().iter().all(|routee| class(routee) == "/user/pool"));
    let workers = system.router("workers").pool(2, |_| Counter).spawn().unwrap();
    assert!(workers.routees().unwrap().iter().all(|routee| class(routee) == "labour"));
    let group = system.group("keyed").by_key(|_: &Do| 7u64, |_, _| Counter).spawn().unwrap();
    group.tell(Do::Nothing);
    let key = system.actor_at("/user/keyed").unwrap().children().remove(0);
    assert_eq!(key.class(), "/user/keyed");
}

#[test]
fn the_walk_filters_orders_and_limits() {
    let system = system("walk");
    let actors: Vec<_> = (0..5)
        .map(|number| system.actor(&format!("a{number}")).class("a").spawn(|| Counter).unwrap())
        .collect();
    actors.iter().for_each(settle);
    let handled = |actor: &ActorRef<Do>| any(actor).handled();
    let gates: Vec<_> = actors[..2].iter().map(hold).collect();
    // `hold` returns from the handler before.
    wait_until(|| actors[..2].iter().all(|actor| handled(actor) == 3));
    (0..7).for_each(|_| actors[0].tell(Do::Nothing));
    (0..9).for_each(|_| actors[1].tell(Do::Nothing));
    (0..3).for_each(|_| actors[4].tell(Do::Nothing));
    settle(&actors[4]);
    let names = |filter: &ActorFilter| {
        system.actors(filter).iter().map(|one| one.path.name().to_owned()).collect::<Vec<_>>()
    };
    let of_a = ActorFilter::new().class("a");
    assert_eq!(names(&of_a), ["a0", "a1", "a2", "a3", "a4"]);
    assert_eq!(names(&of_a.clone().order(ActorOrder::Queued).limit(2)), ["a1", "a0"]);
    assert_eq!(names(&of_a.clone().order(ActorOrder::Handled).limit(1)), ["a4"]);
    assert_eq!(names(&ActorFilter::new().path("/user/a[0-4]")), [""; 0]);
    assert_eq!(names(&ActorFilter::new().path("/user/*3")), ["a3"]);
    assert_eq!(names(&ActorFilter::new().path("/").limit(1)).len(), 1);
    let busy = &system.actors(&ActorFilter::new().path("/user/a1"))[0];
    assert_eq!((busy.state, busy.queued, busy.class.as_str()), (ActorState::Busy, 9, "a"));
    assert_eq!((busy.uid, busy.restarts), (any(&actors[1]).uid(), 0));
    let of_idle = ActorFilter::new().path("/user/a2");
    wait_until(|| system.actors(&of_idle)[0].state == ActorState::Idle);
    let idle = &system.actors(&of_idle)[0];
    assert_eq!((idle.state, idle.queued, idle.handled), (ActorState::Idle, 0, 1));
    drop(gates);
}

#[test]
fn routees_are_listed_without_a_turn_of_the_head() {
    let system = system("routees");
    let router = system.router("pool").pool(3, |_| Counter).spawn().unwrap();
    // The head is kept busy by the making of a routee, which waits.
    let (gate, waits) = channel::<()>();
    let waits = std::sync::Mutex::new(waits);
    let made = std::sync::atomic::AtomicUsize::new(0);
    let slow =
        system.router("slow").pool(1, |_| Counter).logic(SlowToPrepare { waits, made }).spawn().unwrap();
    let handle = slow.clone();
    let adding = std::thread::spawn(move || handle.add(&handle.routees().unwrap()[0]));
    // Whether the head has begun or not, the answer is there.
    for _ in 0..100 {
        assert_eq!(slow.routees().unwrap().len(), 1);
    }
    drop(gate);
    assert_eq!(adding.join().unwrap(), Ok(2));
    assert_eq!(slow.routees().unwrap().len(), 2, "after the answer to `add`");
    let extra = system.spawn(|| Counter).unwrap();
    assert_eq!(router.add(&extra), Ok(4));
    assert_eq!(router.routees().unwrap()[3], extra);
    assert_eq!(router.remove(&extra), Ok(true));
    assert_eq!(router.routees().unwrap().len(), 3);
    // A worker may ask, too, which must not wait.
    let (sender, receiver) = channel();
    let asker = system.spawn(move || Lists(router.clone(), sender.clone())).unwrap();
    asker.tell(());
    assert_eq!(receiver.recv_timeout(LONG), Ok(3));
}

/// Waits when it prepares the second table.
struct SlowToPrepare {
    waits: std::sync::Mutex<Receiver<()>>,
    made: std::sync::atomic::AtomicUsize,
}

impl pointsman::routing::RoutingLogic<Do> for SlowToPrepare {
    fn select(
        &self,
        _: &Do,
        _: &pointsman::routing::Routees<Do>,
        _: &pointsman::routing::RouteContext<'_>,
    ) -> Option<usize> {
        Some(0)
    }
    fn prepare(&self, _: &[pointsman::routing::Routee<Do>]) -> Option<Box<dyn std::any::Any + Send + Sync>> {
        if self.made.fetch_add(1, Ordering::SeqCst) == 1 {
            let _ = self.waits.lock().unwrap().recv();
        }
        None
    }
}

/// Tells how many routees there are.
struct Lists(Router<Do>, Sender<usize>);

impl Actor for Lists {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        self.1.send(self.0.routees()?.len())?;
        Ok(())
    }
}

fn sum_of_classes(stats: &Stats) -> u64 {
    stats.classes.iter().map(|class| class.handled).sum()
}

/// Waits until every message is handled, and no turn is left.
fn quiet(system: &System) {
    let start = std::time::Instant::now();
    loop {
        let ledger = system.ledger();
        if ledger.balance() == 0 && ledger.queued == 0 {
            return;
        }
        assert!(start.elapsed() < LONG, "{ledger}");
        std::thread::yield_now();
    }
}

#[test]
fn the_sum_of_the_classes_is_that_of_the_ledger_at_rest() {
    let system = system("sums");
    // Ended actors, failures and restarts, a stash, unwanted messages, dropped ones, shared queues, functions, inboxes.
    let plain = system.actor("plain").spawn(|| Counter).unwrap();
    (0..10).for_each(|_| plain.tell(Do::Stash(true)));
    plain.tell(Do::UnstashAll);
    plain.tell(Do::Fail);
    settle(&plain);
    for number in 0..50 {
        let brief = system.spawn(|| Counter).unwrap();
        (0..number % 7).for_each(|_| brief.tell(Do::Nothing));
        brief.tell(Do::Stop);
        // Left in the mailbox, or refused.
        brief.tell(Do::Nothing);
        brief.when_ended().wait().unwrap();
    }
    let oldest = Mailbox::bounded(4).on_full(OverflowPolicy::DropOldest);
    let ring = system.actor("ring").mailbox(oldest).spawn(|| Counter).unwrap();
    let gate = hold(&ring);
    (0..20).for_each(|_| ring.tell(Do::Nothing));
    drop(gate);
    settle(&ring);
    let pool = system.router("balanced").balancing_pool(3, |_| Counter).spawn().unwrap();
    (0..300).for_each(|_| pool.tell(Do::Nothing));
    let function = ActorRef::from_fn(|_: u8| ());
    let to_function = system.router("functions").group([function]).spawn().unwrap();
    (0..5u8).for_each(|number| to_function.tell(number));
    let inbox = system.inbox::<u8>().unwrap();
    inbox.as_ref().tell(1);
    inbox.as_ref().tell(2);
    assert_eq!((inbox.receive(LONG), inbox.receive(LONG)), (Ok(1), Ok(2)));
    quiet(&system);
    let stats = system.stats();
    assert_eq!(sum_of_classes(&stats), stats.ledger.handled, "{stats:#?}");
    assert_eq!(stats.class("(no actor)").unwrap().handled, 5);
    assert_eq!(stats.class("/user/balanced").unwrap().handled, 300);
    assert_eq!((stats.failures, stats.restarts), (1, 1));
    assert_eq!(stats.living, stats.created - stats.ended);
    assert_eq!(stats.living as usize, system.living_actors());
    let counters = stats.classes.iter().find(|class| class.name.ends_with("::Counter")).unwrap();
    assert_eq!((counters.ended, counters.actors), (50, 2));
    drop(inbox);
    let handle = system.handle().clone();
    let ledger = system.shutdown(LONG).unwrap();
    let stats = handle.stats();
    assert_eq!((sum_of_classes(&stats), stats.living), (ledger.handled, 0));
}

#[test]
fn statistics_of_a_storm_never_go_back() {
    let system = system("storm");
    std::thread::scope(|scope| {
        let storm = || {
            for _ in 0..500 {
                let brief = system.spawn(|| Counter).unwrap();
                (0..3).for_each(|_| brief.tell(Do::Nothing));
                brief.tell(Do::Stop);
            }
        };
        let storms = [scope.spawn(storm), scope.spawn(storm)];
        let mut before = system.stats();
        while storms.iter().any(|storm| !storm.is_finished()) {
            let now = system.stats();
            assert_eq!(now.sequence, before.sequence + 1);
            assert!(now.ledger.handled >= before.ledger.handled && now.created >= before.created);
            for class in &now.classes {
                let known = before.class(&class.name).map_or(0, |class| class.handled);
                assert!(class.handled >= known, "{} {known} {}", class.name, class.handled);
            }
            before = now;
        }
    });
    quiet(&system);
    let stats = system.stats();
    assert_eq!(sum_of_classes(&stats), stats.ledger.handled);
}

#[test]
fn statistics_have_routers_dispatchers_and_dead_letters_and_a_difference_has_what_is_new() {
    let system = System::builder("all")
        .dispatcher("default", Dispatcher::work_stealing().threads(2))
        .dispatcher("files", Dispatcher::blocking().thread_range(1..=2))
        .build()
        .unwrap();
    let router = system.router("pool").pool(4, |_| Counter).spawn().unwrap();
    (0..40).for_each(|_| router.tell(Do::Nothing));
    quiet(&system);
    // A worker has no name before it runs.
    let has_names = |stats: &Stats| {
        stats.dispatchers.iter().flat_map(|one| &one.workers).all(|worker| !worker.thread.is_empty())
    };
    wait_until(|| has_names(&system.stats()));
    let before = system.stats();
    let shown = before.router("/user/pool").unwrap();
    assert_eq!((shown.logic.as_str(), shown.version, shown.routees.len()), ("round-robin", 1, 4));
    assert_eq!(shown.routees.iter().map(|routee| routee.handled).sum::<u64>(), 40);
    assert_eq!(shown.routees[0].uid, any(&router.routees().unwrap()[0]).uid());
    let names: Vec<_> = before.dispatchers.iter().map(|one| (one.name.as_str(), one.workers.len())).collect();
    assert_eq!(names, [("default", 2), ("files", 1)]);
    let of_workers = |stats: &Stats, count: fn(&pointsman::telemetry::WorkerStats) -> u64| -> u64 {
        stats.dispatchers.iter().flat_map(|one| &one.workers).map(count).sum()
    };
    assert_eq!(of_workers(&before, |worker| worker.messages), before.ledger.handled);
    // A worker shows its turns before it sleeps.
    wait_until(|| of_workers(&system.stats(), |worker| worker.turns) >= 4);
    assert!(before.dispatchers[0].workers.iter().all(|worker| worker.thread.starts_with("all-default-")));
    assert_eq!(router.resize_to(2), Ok(2));
    (0..6).for_each(|_| router.tell(Do::Nothing));
    let gone = system.spawn(|| Counter).unwrap();
    gone.stop();
    gone.when_ended().wait().unwrap();
    gone.tell(Do::Nothing);
    quiet(&system);
    let after = system.stats();
    let since = after.since(&before);
    assert_eq!(since.router("/user/pool").unwrap().routees.iter().map(|one| one.handled).sum::<u64>(), 6);
    assert_eq!(after.router("/user/pool").unwrap().version, 2);
    assert_eq!(since.class("/user/pool").unwrap().handled, since.ledger.handled);
    assert_eq!(since.ledger.dead_lettered, 1);
    assert!(since.created >= 1 && since.created < after.created);
    assert_eq!(since.dead_letters, [(pointsman::DeadLetterReason::Stopped, 1)]);
}

/// A question that its routee answers when it is told to.
#[derive(Clone)]
struct Get;

impl Request for Get {
    type Reply = u64;
}

/// Answers when it is let.
struct Answers(Receiver<()>);

impl Actor for Answers {
    type Message = Call<Get>;
    fn receive(&mut self, call: Call<Get>, _: &mut Context<Call<Get>>) -> HandlerResult {
        let _ = self.0.recv_timeout(LONG);
        let _ = call.reply_to.send(1);
        Ok(())
    }
}

#[test]
fn a_router_counts_refusals_messages_without_a_routee_attempts_and_late_replies() {
    let system = system("counts");
    let bounded = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
    let full = system.router("full").pool(1, |_| Counter).mailbox(bounded).spawn().unwrap();
    let (gate, waits) = channel();
    full.tell(Do::WaitFor(waits));
    wait_until(|| system.ledger().handled == 1);
    full.tell(Do::Nothing);
    (0..3).for_each(|_| assert!(full.try_tell(Do::Nothing).is_err()));
    let empty: Router<Do> = system.router("empty").group([]).stay_when_empty().spawn().unwrap();
    (0..2).for_each(|_| assert!(empty.try_tell(Do::Nothing).is_err()));
    let (releases, answers): (Vec<Sender<()>>, Vec<Receiver<()>>) =
        [(); 3].map(|()| channel()).into_iter().unzip();
    let answers = std::sync::Mutex::new(answers);
    let logic = pointsman::routing::ScatterGatherFirstCompleted::new();
    let gather = system
        .router("gather")
        .pool(3, move |_| Answers(answers.lock().unwrap().pop().expect("three routees")))
        .logic(logic)
        .spawn()
        .unwrap();
    let asked = gather.ask(Get);
    releases[0].send(()).unwrap();
    assert_eq!(asked.wait(), Ok(1));
    drop(releases);
    wait_until(|| system.stats().router("/user/gather").unwrap().late == 2);
    let stats = system.stats();
    let counts = |path: &str| {
        let router = stats.router(path).unwrap();
        (router.refused, router.no_routee, router.attempts, router.late)
    };
    assert_eq!(counts("/user/full"), (3, 0, 0, 0));
    assert_eq!(counts("/user/empty"), (0, 2, 0, 0));
    assert_eq!(counts("/user/gather"), (0, 0, 3, 2));
    assert_eq!(stats.since(&stats).router("/user/full").unwrap().refused, 0);
    drop(gate);
}

#[test]
fn actors_are_ordered_by_what_they_have_handled_since_an_earlier_look() {
    let system = system("rates");
    let [fast, slow] = ["fast", "slow"].map(|name| system.actor(name).class("x").spawn(|| Counter).unwrap());
    (0..50).for_each(|_| slow.tell(Do::Nothing));
    settle(&slow);
    settle(&fast);
    let filter = ActorFilter::new().class("x").order(ActorOrder::Handled);
    let before = system.actors(&filter);
    assert_eq!(before[0].path.name(), "slow");
    (0..7).for_each(|_| fast.tell(Do::Nothing));
    settle(&fast);
    let late = system.actor("late").class("x").spawn(|| Counter).unwrap();
    (0..2).for_each(|_| late.tell(Do::Nothing));
    settle(&late);
    let since: Vec<_> = system
        .actors(&filter.since(&before))
        .iter()
        .map(|actor| (actor.path.name().to_owned(), actor.handled))
        .collect();
    let expected = [("fast", 8), ("late", 3), ("slow", 0)].map(|(name, handled)| (name.to_owned(), handled));
    assert_eq!(since, expected);
}

#[test]
fn workers_show_how_long_they_look_for_tasks_while_times_are_measured() {
    let searching = |system: &System| -> Duration {
        let stats = system.stats();
        stats.dispatchers.iter().flat_map(|one| &one.workers).map(|worker| worker.searching).sum()
    };
    let system = system("searching");
    let actor = system.spawn(|| Counter).unwrap();
    settle(&actor);
    // Another system may measure here already, and then the workers of all systems do.
    system.set_telemetry(Telemetry::sampled());
    let before = searching(&system);
    wait_until(|| {
        settle(&actor);
        searching(&system) > before
    });
}

#[test]
fn threads_show_how_long_they_are_busy_while_times_are_measured() {
    for dispatcher in [
        Dispatcher::work_stealing().threads(1),
        Dispatcher::blocking().thread_range(1..=1),
        Dispatcher::pinned(),
    ] {
        let kind = dispatcher.kind();
        let began = Instant::now();
        let system = System::builder("busy")
            .dispatcher("own", dispatcher)
            .telemetry(Telemetry::sampled())
            .build()
            .unwrap();
        let busy = || {
            let stats = system.stats();
            let own = stats.dispatchers.iter().find(|one| one.name == "own").expect("the dispatcher");
            own.workers.iter().map(|worker| worker.busy).sum::<Duration>()
        };
        let actor = system.actor("one").dispatcher("own").spawn(|| Counter).unwrap();
        settle(&actor);
        // A handler that runs counts already, for as long as it runs.
        let before = busy();
        let gate = hold(&actor);
        wait_until(|| busy() >= before + 5 * MS);
        let (at, since) = (busy(), Instant::now());
        wait_until(|| since.elapsed() >= 5 * MS);
        assert!(busy() >= at + 5 * MS, "{kind}: it is busy all the time");
        drop(gate);
        settle(&actor);
        // A thread without tasks is not busy.
        wait_until(|| {
            let at = busy();
            std::thread::sleep(MS);
            busy() == at
        });
        let (busy, elapsed) = (busy(), began.elapsed());
        assert!(busy <= elapsed, "{kind}: {busy:?} of {elapsed:?}");
    }
}

/// The lifecycle events of a system, as short texts.
fn lifecycle(system: &System) -> (pointsman::events::Subscription, Receiver<String>) {
    let (sender, events) = channel();
    let sender = std::sync::Mutex::new(sender);
    let subscription = system.events().on(move |event: &Lifecycle| {
        // The guardians may be starting still.
        if matches!(event, Lifecycle::Started(actor) if actor.path.elements().count() < 2) {
            return;
        }
        let text = match event {
            Lifecycle::Started(actor) => format!("started {}", actor.path.name()),
            Lifecycle::Failed { actor, verdict, text, .. } => {
                format!("failed {} {verdict:?} {text}", actor.path.name())
            }
            Lifecycle::Restarted(actor) => format!("restarted {}", actor.path.name()),
            Lifecycle::Stopped(actor) => format!("stopped {} of {}", actor.path.name(), actor.class),
            Lifecycle::Resized { router, from, to, .. } => format!("resized {} {from} {to}", router.name()),
            Lifecycle::Stuck(stuck) => format!("stuck {} {:?}", stuck.actor.path.name(), stuck.lasted),
            Lifecycle::StuckEnded(stuck) => format!("ended {}", stuck.actor.path.name()),
            other => format!("{other:?}"),
        };
        let _ = sender.lock().unwrap().send(text);
    });
    (subscription, events)
}

#[test]
fn lifecycle_events_tell_of_start_failure_restart_end_and_resize() {
    let system = system("events");
    let (subscription, events) = lifecycle(&system);
    let next = || events.recv_timeout(LONG).unwrap();
    let actor = system.actor("one").class("ones").spawn(|| Counter).unwrap();
    assert_eq!(next(), "started one");
    actor.tell(Do::Fail);
    assert_eq!(next(), "failed one Some(Restart) as told");
    assert_eq!(next(), "restarted one");
    actor.stop();
    assert_eq!(next(), "stopped one of ones");
    let router = system.router("pool").pool(1, |_| Counter).spawn().unwrap();
    let mut started = [next(), next()];
    started.sort_unstable();
    assert_eq!(started, ["started $a", "started pool"]);
    assert_eq!(router.resize_to(2), Ok(2));
    let mut resized = [next(), next()];
    resized.sort_unstable();
    assert_eq!(resized, ["resized pool 1 2", "started $b"]);
    drop(subscription);
    system.spawn(|| Counter).unwrap().stop();
    quiet(&system);
    assert!(events.try_recv().is_err(), "the subscription has ended");
}

/// A system on a clock that is moved by hand, with every message measured.
fn measured(name: &str, dispatcher: Dispatcher) -> (System, ManualClock) {
    let clock = ManualClock::new();
    let one = NonZeroU32::MIN;
    let system = System::builder(name)
        .clock(clock.clone())
        .dispatcher("default", Dispatcher::work_stealing().threads(2))
        .dispatcher("own", dispatcher)
        .telemetry(Telemetry::off().waits(one).turns(one))
        .build()
        .unwrap();
    (system, clock)
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_message_that_waits_so_many_milliseconds_is_measured_so() {
    let (system, clock) = measured("waits", Dispatcher::pinned());
    let actor = system.actor("one").dispatcher("own").class("one").spawn(|| Counter).unwrap();
    settle(&actor);
    let base = system.stats().class("one").unwrap().wait.clone();
    assert!(
        base.buckets().skip(1).all(|(_, count)| count == 0),
        "nothing waits while the clock stands: {base:?}"
    );
    for length in [1, 8, 100, 3000] {
        let before = system.stats();
        let gate = hold(&actor);
        // The first message that waits goes into a new block, or into the next one.
        (0..31).for_each(|_| actor.tell(Do::Nothing));
        clock.advance(length * MS);
        drop(gate);
        settle(&actor);
        let wait = system.stats().since(&before).class("one").unwrap().wait.clone();
        let long: u64 =
            wait.buckets().filter(|(upper, _)| *upper > length * MS).map(|(_, count)| count).sum();
        assert!(long >= 1, "{length} ms: {wait:?}");
        let upper = wait.quantile(1.0).unwrap();
        assert!(upper > length * MS && upper <= length * MS * 5 / 4, "{length} ms: {upper:?}");
    }
}

/// Wakes an actor, and moves the clock behind that.
struct Wakes(ManualClock, ActorRef<Do>);

impl Actor for Wakes {
    type Message = Duration;
    fn receive(&mut self, time: Duration, _: &mut Context<Duration>) -> HandlerResult {
        self.1.tell(Do::Nothing);
        self.0.advance(time);
        Ok(())
    }
}

#[test]
fn a_message_that_wakes_an_actor_waits_until_its_turn_begins() {
    for dispatcher in [Dispatcher::work_stealing().threads(1), Dispatcher::blocking().thread_range(1..=1)] {
        let kind = dispatcher.kind();
        let (system, clock) = measured("wakes", dispatcher);
        let woken = system.actor("woken").dispatcher("own").class("woken").spawn(|| Counter).unwrap();
        settle(&woken);
        let target = woken.clone();
        let wakes =
            system.actor("wakes").dispatcher("own").spawn(move || Wakes(clock.clone(), target.clone()));
        let wakes = wakes.unwrap();
        for length in [5, 70, 900] {
            quiet(&system);
            let before = system.stats();
            wakes.tell(length * MS);
            wait_until(|| system.stats().since(&before).class("woken").unwrap().wait.count() == 1);
            let upper = system.stats().since(&before).class("woken").unwrap().wait.quantile(1.0).unwrap();
            assert!(upper > length * MS && upper <= length * MS * 5 / 4, "{kind}: {length} ms: {upper:?}");
        }
    }
}

/// Moves the clock in its handler.
struct Takes(ManualClock);

impl Actor for Takes {
    type Message = Duration;
    fn receive(&mut self, time: Duration, _: &mut Context<Duration>) -> HandlerResult {
        self.0.advance(time);
        Ok(())
    }
}

#[test]
fn handlers_of_three_lengths_have_three_modes_on_each_kind_of_dispatcher() {
    for dispatcher in [
        Dispatcher::work_stealing().threads(1),
        Dispatcher::blocking().thread_range(1..=1),
        Dispatcher::pinned(),
        Dispatcher::calling_thread(),
    ] {
        let kind: DispatcherKind = dispatcher.kind();
        let (system, clock) = measured("handles", dispatcher);
        let builder = system.actor("takes").dispatcher("own").class("takes");
        let actor = builder.spawn(move || Takes(clock.clone())).unwrap();
        for _ in 0..200 {
            for time in [MS, 10 * MS, 100 * MS] {
                actor.tell(time);
            }
        }
        quiet(&system);
        // The last handler's time is counted when its turn ends.
        actor.stop();
        actor.when_ended().wait().unwrap();
        let stats = system.stats();
        let handle = &stats.class("takes").unwrap().handle;
        for time in [MS, 10 * MS, 100 * MS] {
            let count: u64 = handle
                .buckets()
                .filter(|(upper, _)| *upper > time && *upper <= time * 5 / 4)
                .map(|(_, count)| count)
                .sum();
            // Workers look at the switch within 64 turns; then each turn is measured.
            assert!((130..=200).contains(&count), "{kind}: {time:?} {count} {handle:?}");
        }
        assert!(stats.class("takes").unwrap().depth.count() > 0, "{kind}");
    }
}

/// A queue that is simulated on a clock that is moved by hand: messages come in bursts, and each takes a while. It writes
/// down what each message has waited and taken.
struct Simulated {
    clock: ManualClock,
    seed: u64,
    left: u64,
    /// The next message comes at this time.
    next: Duration,
    recorded: Arc<std::sync::Mutex<[Vec<u64>; 2]>>,
    done: Sender<()>,
}

impl Simulated {
    /// A length of which most are short and some are long, with this mean.
    fn length(&mut self, mean: Duration) -> Duration {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let share = ((self.seed >> 33) as f64 + 1.0) / f64::from(1_u32 << 31);
        mean.mul_f64(-share.min(1.0).ln())
    }
}

impl Actor for Simulated {
    /// When the message was sent.
    type Message = Duration;
    fn receive(&mut self, sent: Duration, ctx: &mut Context<Duration>) -> HandlerResult {
        let began = self.clock.now();
        let takes = self.length(50 * MS);
        self.clock.advance(takes);
        // The queue never runs empty: where nothing has come meanwhile, the next message comes now.
        let mut comes = 0;
        while self.left > 0 && (self.next <= began + takes || (comes == 0 && ctx.me().queued() == Some(0))) {
            ctx.me().tell(self.clock.now());
            self.left -= 1;
            comes += 1;
            let mean = if self.left / 500 % 2 == 0 { 40 * MS } else { 60 * MS };
            self.next = self.next.clamp(began, began + takes) + self.length(mean);
        }
        let mut recorded = self.recorded.lock().unwrap();
        recorded[0].push((began - sent).as_nanos() as u64);
        recorded[1].push((self.clock.now() - began).as_nanos() as u64);
        if self.left == 0 && ctx.me().queued() == Some(0) {
            self.done.send(())?;
        }
        Ok(())
    }
}

#[test]
fn the_samples_of_telemetry_agree_with_a_full_recording() {
    const MESSAGES: u64 = 200_000;
    let clock = ManualClock::new();
    let system = System::builder("sampled")
        .clock(clock.clone())
        .dispatcher("own", Dispatcher::pinned())
        .telemetry(Telemetry::sampled())
        .build()
        .unwrap();
    let recorded: Arc<std::sync::Mutex<[Vec<u64>; 2]>> = Arc::default();
    let (done, ends) = channel();
    let own = recorded.clone();
    let actor = system
        .actor("queue")
        .dispatcher("own")
        .class("queue")
        .spawn(move || Simulated {
            clock: clock.clone(),
            seed: 7,
            left: MESSAGES,
            next: Duration::ZERO,
            recorded: own.clone(),
            done: done.clone(),
        })
        .unwrap();
    actor.tell(Duration::ZERO);
    ends.recv_timeout(LONG).expect("the simulation ends");
    actor.stop();
    actor.when_ended().wait().unwrap();
    let stats = system.stats();
    let class = stats.class("queue").unwrap();
    let mut recorded = recorded.lock().unwrap();
    for (name, times, histogram) in [("wait", 0, &class.wait), ("handle", 1, &class.handle)] {
        let times = &mut recorded[times];
        assert_eq!(times.len() as u64, MESSAGES + 1);
        times.sort_unstable();
        assert!(histogram.count() > 1000, "{name}: {histogram:?}");
        for share in [0.5, 0.75, 0.9, 0.99] {
            let exact = times[((times.len() - 1) as f64 * share) as usize] as f64;
            let found = histogram.quantile(share).unwrap().as_nanos() as f64;
            // The upper end of a bucket, which is within a quarter, of samples that differ by some percent.
            println!("{name}, {share}: {:.1} ms sampled, {:.1} ms of all", found / 1e6, exact / 1e6);
            assert!(
                found > exact * 0.85 && found < exact * 1.25 * 1.15,
                "{name}, {share}: {found} beside {exact} of all"
            );
        }
    }
}

#[test]
fn telemetry_is_switched_while_the_system_runs() {
    let system = system("switched");
    assert_eq!(system.telemetry(), Telemetry::default());
    let actor = system.actor("one").class("one").spawn(|| Counter).unwrap();
    let samples = || {
        (0..2000).for_each(|_| actor.tell(Do::Nothing));
        settle(&actor);
        let stats = system.stats();
        let class = stats.class("one").unwrap();
        class.wait.count() + class.handle.count() + class.depth.count()
    };
    assert_eq!(samples(), 0);
    system.set_telemetry(Telemetry::sampled().waits(NonZeroU32::MIN).turns(NonZeroU32::MIN));
    assert!(samples() > 0);
    system.set_telemetry(Telemetry::off());
    settle(&actor);
    samples();
    assert_eq!(samples(), samples());
}

/// A system whose watchdog goes by a clock that is moved by hand.
fn watched() -> (System, ManualClock) {
    let clock = ManualClock::new();
    let system = System::builder("watched")
        .clock(clock.clone())
        .dispatcher("default", Dispatcher::work_stealing().threads(3))
        .dispatcher("blocking", Dispatcher::blocking().thread_range(1..=2))
        .dispatcher("pinned", Dispatcher::pinned())
        .telemetry(Telemetry::off().stuck_after(100 * MS))
        .build()
        .unwrap();
    guardians_rest(&system);
    (system, clock)
}

/// Waits until the guardians have had their first turn. A guardian that waits for a processor in that turn would be reported
/// as stuck when the test moves the clock.
fn guardians_rest(system: &System) {
    wait_until(|| {
        let stats = system.stats();
        let workers = || stats.dispatchers.iter().flat_map(|one| &one.workers);
        let turns: u64 = workers().map(|worker| worker.turns).sum();
        turns >= stats.living && workers().all(|worker| worker.running.is_none())
    });
}

/// The classes of the actors whose turns run.
fn running(system: &System) -> Vec<String> {
    let stats = system.stats();
    let workers = stats.dispatchers.iter().flat_map(|one| &one.workers);
    workers.filter_map(|worker| worker.running.as_ref()).map(|actor| actor.class.clone()).collect()
}

#[test]
fn the_watchdog_is_on_unless_the_clock_is_moved_by_hand() {
    assert_eq!(System::builder("ordinary").build().unwrap().telemetry(), Telemetry::default());
    assert_ne!(Telemetry::default(), Telemetry::off());
    let clock = ManualClock::new();
    let by_hand = System::builder("by-hand").clock(clock.clone()).build().unwrap();
    assert_eq!(by_hand.telemetry(), Telemetry::off());
    let chosen = System::builder("chosen").clock(clock).telemetry(Telemetry::default()).build().unwrap();
    assert_eq!(chosen.telemetry(), Telemetry::default());
}

#[test]
fn the_watchdog_pauses_while_all_threads_sleep_and_goes_on_when_one_wakes_up() {
    let (system, clock) = watched();
    let (_subscription, events) = lifecycle(&system);
    let actor = system.actor("late").spawn(|| Counter).unwrap();
    settle(&actor);
    assert_eq!(events.recv_timeout(LONG).unwrap(), "started late");
    // A look that finds all threads asleep is the last.
    let parks = || -> u64 {
        let stats = system.stats();
        stats.dispatchers.iter().flat_map(|one| &one.workers).map(|worker| worker.parks).sum()
    };
    for _ in 0..3 {
        wait_until(|| parks() >= 3);
        clock.advance(50 * MS);
    }
    let gate = hold(&actor);
    wait_until(|| {
        clock.advance(50 * MS);
        system.stats().stuck_reports == 1
    });
    drop(gate);
    settle(&actor);
}

#[test]
fn a_handler_that_takes_too_long_is_reported_once_and_so_is_its_end_on_each_kind_of_dispatcher() {
    for dispatcher in ["default", "blocking", "pinned"] {
        let (system, clock) = watched();
        let (_subscription, events) = lifecycle(&system);
        let actor =
            system.actor("sleeper").dispatcher(dispatcher).class("sleepers").spawn(|| Counter).unwrap();
        assert_eq!(events.recv_timeout(LONG).unwrap(), "started sleeper");
        let gate = hold(&actor);
        // `hold` returns from the handler before. No other thread is about to end a turn.
        wait_until(|| system.ledger().handled == 2 && running(&system) == ["sleepers"]);
        (0..2).for_each(|_| clock.advance(50 * MS));
        assert!(events.try_recv().is_err(), "{dispatcher}: it was seen first at the first look");
        clock.advance(50 * MS);
        assert_eq!(events.try_recv().unwrap(), "stuck sleeper 100ms", "{dispatcher}");
        (0..20).for_each(|_| clock.advance(50 * MS));
        assert!(events.try_recv().is_err(), "{dispatcher}: once");
        let stats = system.stats();
        assert_eq!(stats.stuck_reports, 1);
        let [stuck] = &stats.stuck[..] else { panic!("{:?}", stats.stuck) };
        assert_eq!((stuck.actor.class.as_str(), stuck.since, stuck.lasted), ("sleepers", 50 * MS, 1100 * MS));
        assert!(stuck.message_type.ends_with("::Do") && stuck.thread.starts_with("watched-"), "{stuck:?}");
        let workers = || stats.dispatchers.iter().flat_map(|one| &one.workers);
        let runs = workers().filter_map(|worker| worker.running.as_ref()).any(|who| who.class == "sleepers");
        assert!(runs, "{dispatcher}");
        drop(gate);
        settle(&actor);
        wait_until(|| running(&system).is_empty());
        clock.advance(50 * MS);
        assert_eq!(events.try_recv().unwrap(), "ended sleeper", "{dispatcher}");
        (0..20).for_each(|_| clock.advance(50 * MS));
        assert!(events.try_recv().is_err());
        assert!(system.stats().stuck.is_empty());
    }
}

/// Sends itself a message, and another, for ever, in long turns.
struct Busy(Arc<AtomicU64>);

impl Actor for Busy {
    type Message = ();
    fn receive(&mut self, (): (), ctx: &mut Context<()>) -> HandlerResult {
        self.0.fetch_add(1, Ordering::Relaxed);
        ctx.me().tell(());
        Ok(())
    }
}

#[test]
fn short_handlers_are_never_reported_in_many_turns_or_a_long_one() {
    let clock = ManualClock::new();
    let system = System::builder("short")
        .clock(clock.clone())
        .dispatcher("default", Dispatcher::work_stealing().threads(1))
        .dispatcher("endless", Dispatcher::blocking().throughput(u32::MAX))
        .telemetry(Telemetry::off().stuck_after(2 * MS))
        .build()
        .unwrap();
    guardians_rest(&system);
    let (_subscription, events) = lifecycle(&system);
    let handled = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
    for (dispatcher, handled) in ["default", "endless"].into_iter().zip(&handled) {
        let handled = handled.clone();
        let busy =
            system.actor(dispatcher).dispatcher(dispatcher).spawn(move || Busy(handled.clone())).unwrap();
        busy.tell(());
    }
    for _ in 0..300 {
        let before = handled.each_ref().map(|handled| handled.load(Ordering::Relaxed));
        // Time passes only when each has handled some more.
        while handled.iter().zip(before).any(|(handled, before)| handled.load(Ordering::Relaxed) < before + 2)
        {
            std::thread::yield_now();
        }
        clock.advance(MS);
    }
    let seen: Vec<String> = events.try_iter().filter(|event| !event.starts_with("started")).collect();
    assert!(seen.is_empty(), "{seen:?}");
    assert_eq!(system.stats().stuck_reports, 0);
}

#[test]
fn a_handler_that_computes_is_reported_like_one_that_sleeps() {
    let (system, clock) = watched();
    let (_subscription, events) = lifecycle(&system);
    let goes_on = Arc::new(AtomicBool::new(true));
    let flag = goes_on.clone();
    let actor = system.actor("spinner").spawn(move || Spins(flag.clone())).unwrap();
    assert_eq!(events.recv_timeout(LONG).unwrap(), "started spinner");
    actor.tell(());
    wait_until(|| system.ledger().handled == 1);
    (0..3).for_each(|_| clock.advance(50 * MS));
    assert_eq!(events.try_recv().unwrap(), "stuck spinner 100ms");
    goes_on.store(false, Ordering::Relaxed);
    actor.stop();
    actor.when_ended().wait().unwrap();
    clock.advance(50 * MS);
    let rest: Vec<String> = events.try_iter().collect();
    assert!(rest.iter().any(|event| event == "ended spinner"), "{rest:?}");
}

/// Computes until it is told to end.
struct Spins(Arc<AtomicBool>);

impl Actor for Spins {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        while self.0.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

#[cfg(feature = "config")]
#[test]
fn the_file_sets_and_prints_telemetry_and_refuses_what_is_wrong() {
    let system = System::builder("file")
        .config("[telemetry]\nwaits = 2\nturns = 8\nstuck-after = \"5s\"\nclasses-max = 3\n")
        .unwrap()
        .config("[telemetry]\nturns = 16")
        .unwrap()
        .build()
        .unwrap();
    let two = NonZeroU32::new(2).unwrap();
    let expected = Telemetry::off().waits(two).turns(NonZeroU32::new(16).unwrap());
    let expected = expected.stuck_after(Duration::from_secs(5)).classes_max(3);
    assert_eq!(system.telemetry(), expected);
    let printed = system.settings();
    let section = "[telemetry]\nwaits = 2\nturns = 16\nstuck-after = \"5s\"\nclasses-max = 3\n";
    assert!(printed.contains(section), "{printed}");
    let again = System::builder("file").config(&printed).unwrap().build().unwrap();
    assert_eq!(again.telemetry(), expected);
    let off = System::builder("off").config("[telemetry]\nstuck-after = \"never\"").unwrap().build().unwrap();
    assert_eq!(off.telemetry(), Telemetry::off());
    for (text, fault) in [
        ("waits = -1", "telemetry.waits"),
        ("stuck-after = \"1ms\"", "telemetry.stuck-after"),
        ("classes-max = 5000", "telemetry.classes-max"),
        ("sometimes = 3", "telemetry"),
    ] {
        let error = System::builder("bad").config(&format!("[telemetry]\n{text}")).unwrap_err().to_string();
        assert!(error.contains(fault), "{error}");
    }
    // Three classes beside `other`, and the guardians have taken two.
    let classes: std::collections::BTreeSet<String> = (0..5)
        .map(|number| {
            let name = format!("c{number}");
            any(&system.actor(&name).class(&name).spawn(|| Counter).unwrap()).class().to_owned()
        })
        .collect();
    assert!(classes.contains("other") && classes.len() <= 4, "{classes:?}");
}
