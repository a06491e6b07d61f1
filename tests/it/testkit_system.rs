//! The test system itself: its order, its clock, its waits, and what makes it fail.

use crate::support::{Role, Tell, act, panic_of};
use pointsman::actor::Recipient;
use pointsman::prelude::*;
use pointsman::testkit::{TestSystem, WaitError};
use pointsman::{BuildError, SendError, ShutdownError, SystemRef};
use std::collections::HashSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Does what it is told.
struct Doer;

/// Something to do.
struct Do(Box<Act>);

type Act = dyn FnOnce(&mut Context<Do>) + Send;

impl Do {
    fn new(act: impl FnOnce(&mut Context<Do>) + Send + 'static) -> Self {
        Do(Box::new(act))
    }
}

impl Actor for Doer {
    type Message = Do;
    fn receive(&mut self, act: Do, ctx: &mut Context<Do>) -> HandlerResult {
        (act.0)(ctx);
        Ok(())
    }
}

fn doer(system: &SystemRef, name: &str) -> ActorRef<Do> {
    system.actor(name).spawn(|| Doer).expect("the name is free")
}

/// Passes a count on to any other until it is 0; the first sends to all.
struct Player(Vec<ActorRef<u32>>);

enum Deal {
    Peers(Vec<ActorRef<u32>>),
    Ball(u32),
}

impl Actor for Player {
    type Message = Deal;
    fn receive(&mut self, deal: Deal, _: &mut Context<Deal>) -> HandlerResult {
        match deal {
            Deal::Peers(peers) => self.0 = peers,
            Deal::Ball(0) => {}
            Deal::Ball(count) => self.0.iter().for_each(|peer| peer.tell(count - 1)),
        }
        Ok(())
    }
}

fn game(seed: u64) -> Vec<String> {
    let system = TestSystem::with_seed(seed);
    let players: Vec<ActorRef<Deal>> = (0..5)
        .map(|number| system.actor(&format!("player-{number}")).spawn(|| Player(Vec::new())).unwrap())
        .collect();
    let balls: Vec<ActorRef<u32>> = players.iter().map(|player| player.contramap(Deal::Ball)).collect();
    for (number, player) in players.iter().enumerate() {
        let peers = (1..4).map(|step| balls[(number + step) % 5].clone()).collect();
        player.tell(Deal::Peers(peers));
    }
    players.iter().for_each(|player| player.tell(Deal::Ball(4)));
    system.run_until_idle();
    let trace = system.trace();
    players.iter().for_each(ActorRef::stop);
    let ledger = system.finish();
    // 5 balls, each of which becomes 3, four times; and the peers.
    assert_eq!(ledger.handled, 5 + 5 * (1 + 3 + 9 + 27 + 81), "{ledger}");
    trace
}

#[test]
fn one_seed_is_one_course_and_other_seeds_are_others() {
    let trace = game(7);
    assert!(trace.iter().all(|path| path.starts_with("/user/player-")), "{trace:?}");
    for _ in 0..5 {
        assert_eq!(game(7), trace);
    }
    let courses: HashSet<Vec<String>> = (0..20).map(game).collect();
    assert_eq!(courses.len(), 20);
}

#[test]
fn what_cannot_be_built_is_an_error_or_a_panic_with_it() {
    let plan = || TestSystem::builder().configure(|builder| builder.dispatcher_alias("a", "nothing"));
    let error = plan().try_build().unwrap_err();
    assert!(matches!(error, BuildError::AliasOfNothing { .. }), "{error}");
    let panic = panic_of(|| drop(plan().build()));
    assert_eq!(panic, format!("cannot build the test system: {error}"));
    // The thread is free for the next one.
    TestSystem::new().finish();
}

#[test]
fn what_is_configured_at_several_calls_counts_all() {
    let system = TestSystem::builder()
        .configure(|builder| builder.dispatcher("files", Dispatcher::blocking()))
        .configure(|builder| builder.dispatcher_alias("disk", "files"))
        .build();
    for dispatcher in ["files", "disk"] {
        system.actor(dispatcher).dispatcher(dispatcher).spawn(|| Slow).unwrap().stop();
    }
    system.finish();
}

#[test]
fn a_step_is_one_turn_of_one_actor() {
    TestSystem::for_seeds(20, |system| {
        let (sender, seen) = channel();
        let actors = ["a", "b"].map(|name| doer(system, name));
        // The first turn of a new actor is one of those.
        assert!(system.step() && system.step() && !system.step());
        for actor in &actors {
            let sender = sender.clone();
            actor.tell(Do::new(move |ctx| sender.send(ctx.path().to_string()).unwrap()));
        }
        assert_eq!(seen.try_iter().count(), 0, "nothing runs by itself");
        assert!(system.step());
        assert_eq!(seen.try_iter().count(), 1);
        assert!(system.step() && !system.step());
        assert_eq!(seen.try_iter().count(), 1);
        actors.iter().for_each(ActorRef::stop);
    });
}

#[test]
fn two_actors_are_seen_in_either_order_and_turns_end_between_messages() {
    let mut orders = HashSet::new();
    for seed in 0..200 {
        let system = TestSystem::with_seed(seed);
        let probe = system.probe::<&str>();
        let actors = ["a", "b"].map(|name| (name, doer(&system, name)));
        for (name, actor) in &actors {
            for _ in 0..2 {
                let (name, probe) = (*name, probe.actor_ref().clone());
                actor.tell(Do::new(move |_| probe.tell(name)));
            }
        }
        orders.insert([(); 4].map(|()| probe.take()));
        actors.iter().for_each(|(_, actor)| actor.stop());
        system.finish();
    }
    // Of six orders; those where a turn ended between the messages of one actor included.
    assert_eq!(orders.len(), 6, "{orders:?}");
}

#[test]
fn a_livelock_is_an_error_that_names_the_busiest() {
    fn forever(ctx: &mut Context<Do>) {
        ctx.me().clone().tell(Do::new(forever));
    }
    let system = TestSystem::builder().seed(3).turn_limit(500).build();
    let busy = doer(&system, "busy");
    let calm = doer(&system, "calm");
    busy.tell(Do::new(forever));
    let livelock = system.try_run_until_idle().unwrap_err();
    let WaitError::Livelock { turns, busiest, seed } = &livelock else { panic!("{livelock:?}") };
    assert_eq!((*turns, *seed), (500, 3));
    assert_eq!(busiest[0].0, "/user/busy");
    assert!(busiest[0].1 > 400 && busiest[1].0 == "/user/calm", "{livelock}");
    assert!(panic_of(|| _ = system.run_until_idle()).contains("/user/busy had 500"));
    // Immediate control comes before messages.
    busy.stop();
    calm.stop();
    assert!(system.try_run_until_idle().is_ok());
    system.finish();
}

#[test]
fn a_livelock_of_timers_is_found_too() {
    struct Restless;
    impl Actor for Restless {
        type Message = ();
        fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
            ctx.after(Duration::ZERO, ());
            Ok(())
        }
        fn receive(&mut self, (): (), ctx: &mut Context<()>) -> HandlerResult {
            ctx.after(Duration::ZERO, ());
            Ok(())
        }
    }
    let system = TestSystem::builder().turn_limit(300).build();
    let restless = system.actor("restless").spawn(|| Restless).unwrap();
    let fault = panic_of(|| system.advance(MS));
    assert!(fault.contains("not idle after") && fault.contains("/user/restless had"), "{fault}");
    restless.stop();
    system.finish();
}

#[test]
fn time_stops_at_each_deadline_and_what_that_sets_off_happens_there() {
    TestSystem::for_seeds(20, |system| {
        let probe = system.probe::<(&str, Duration)>();
        let notes = probe.actor_ref();
        let note = |text| {
            let notes = notes.clone();
            Do::new(move |ctx: &mut Context<Do>| notes.tell((text, ctx.now())))
        };
        let (first, second) = (doer(system, "first"), doer(system, "second"));
        let (at_10, at_15, at_20) = (note("10"), note("15"), note("20"));
        first.tell(Do::new(move |ctx| {
            ctx.after(20 * MS, at_20);
            ctx.after(10 * MS, at_10);
            // Sets another actor's timer, between the other two.
            let second = second.clone();
            ctx.after(
                10 * MS,
                Do::new(move |_| {
                    second.tell(Do::new(move |ctx| _ = ctx.after(5 * MS, at_15)));
                }),
            );
        }));
        probe.expect_none();
        system.advance(Duration::from_secs(1) + Duration::from_micros(300));
        for (text, at) in [("10", 10), ("15", 15), ("20", 20)] {
            probe.expect((text, at * MS));
        }
        probe.expect_none();
        assert_eq!(system.now(), Duration::from_micros(1_000_300));
        system.allow_running();
    });
}

struct Get;
impl Request for Get {
    type Reply = u32;
}

/// Answers after a while.
struct Slow;
impl Actor for Slow {
    type Message = SlowMsg;
    fn receive(&mut self, message: SlowMsg, ctx: &mut Context<SlowMsg>) -> HandlerResult {
        match message {
            SlowMsg::Get(call) => _ = ctx.after(10 * MS, SlowMsg::Answer(call)),
            SlowMsg::Answer(call) => call.answer(|Get| 5),
            SlowMsg::Now(port) => assert_eq!(port.send(6), Ok(())),
        }
        Ok(())
    }
}

enum SlowMsg {
    Get(Call<Get>),
    Answer(Call<Get>),
    Now(ReplyTo<u32>),
}

impl From<Call<Get>> for SlowMsg {
    fn from(call: Call<Get>) -> Self {
        SlowMsg::Get(call)
    }
}

#[test]
fn an_ask_runs_turns_and_is_stalled_when_only_time_would_help() {
    TestSystem::for_seeds(20, |system| {
        let slow = system.actor("slow").spawn(|| Slow).unwrap();
        assert_eq!(system.ask(&slow, Get), Err(AskError::Stalled));
        assert_eq!(slow.ask(Get).within(MS).wait(), Err(AskError::Stalled));
        assert_eq!(system.now(), Duration::ZERO);
        system.advance(10 * MS);
        // With time passing between question and wait, all is as in service.
        let (late, timely) = (slow.ask(Get).within(5 * MS), slow.ask(Get).within(20 * MS));
        system.advance(5 * MS);
        assert_eq!(late.wait(), Err(AskError::timeout(5 * MS)));
        system.advance(5 * MS);
        assert_eq!(timely.wait(), Ok(5));
        slow.stop();
        system.run_until_idle();
        assert_eq!(system.ask(&slow, Get), Err(AskError::undeliverable()));
    });
}

/// Stands before an actor and shows nothing of it.
struct Front(ActorRef<SlowMsg>);

impl Recipient<SlowMsg> for Front {
    fn deliver(&self, message: SlowMsg) -> Result<(), SendError<SlowMsg>> {
        self.0.try_tell(message)
    }
}

#[test]
fn an_ask_runs_turns_even_if_it_is_not_known_whom_it_asks() {
    let systems = [TestSystem::new(), TestSystem::new()];
    let immediate = systems.each_ref().map(|system| system.spawn(|| Slow).unwrap());
    // The one system's actor stands behind the other's.
    let through = immediate[1].clone();
    let relay = systems[0].spawn(move || Relay(through.clone())).unwrap();
    let front = ActorRef::to_recipient(Front(relay.clone()));
    let question = front.ask_with(SlowMsg::Now);
    assert_eq!(question.wait(), Ok(6));
    immediate.iter().chain([&relay]).for_each(ActorRef::stop);
    systems.into_iter().for_each(|system| _ = system.finish());
}

#[test]
fn actors_of_two_systems_that_keep_each_other_busy_keep_no_ask_for_ever() {
    let systems = [(); 2].map(|()| TestSystem::builder().turn_limit(100).build());
    let players = systems.each_ref().map(|system| system.spawn(|| Endless(None)).unwrap());
    players[0].tell(Serve(Some(players[1].clone())));
    players[1].tell(Serve(Some(players[0].clone())));
    let (sender, ports) = channel();
    let nobody = ActorRef::from_fn(move |port: ReplyTo<()>| sender.send(port).unwrap());
    // Each of the two comes to rest after each of its turns.
    let question = nobody.ask_with(|port| port).within(Duration::from_nanos(1));
    assert_eq!(question.wait(), Err(AskError::timeout(Duration::from_nanos(1))));
    assert!(!ports.recv().unwrap().wanted());
    players.iter().for_each(ActorRef::stop);
    systems.into_iter().for_each(|system| _ = system.finish());
}

/// Plays with the first that it hears of, for ever.
struct Endless(Option<ActorRef<Serve>>);

struct Serve(Option<ActorRef<Serve>>);

impl Actor for Endless {
    type Message = Serve;
    fn receive(&mut self, Serve(peer): Serve, _: &mut Context<Serve>) -> HandlerResult {
        let peer = self.0.get_or_insert_with(|| peer.expect("the first says who"));
        peer.tell(Serve(None));
        Ok(())
    }
}

/// Passes everything on.
struct Relay(ActorRef<SlowMsg>);

impl Actor for Relay {
    type Message = SlowMsg;
    fn receive(&mut self, message: SlowMsg, _: &mut Context<SlowMsg>) -> HandlerResult {
        self.0.tell(message);
        Ok(())
    }
}

#[test]
fn a_handler_may_wait_where_it_may_in_service() {
    for seed in TestSystem::seeds(20) {
        let system = TestSystem::builder()
            .seed(seed)
            .configure(|builder| {
                builder
                    .dispatcher("files", Dispatcher::blocking())
                    .dispatcher("own", Dispatcher::pinned().throughput(1))
                    .dispatcher("here", Dispatcher::calling_thread())
            })
            .build();
        let probe = system.probe();
        let mut actors = Vec::new();
        let refused = Err(AskError::WouldBlockWorker);
        let answers = [("default", refused.clone()), ("files", Ok(9)), ("own", Ok(9)), ("here", refused)];
        for (dispatcher, expected) in answers {
            let asker = system.actor(dispatcher).dispatcher(dispatcher).spawn(|| Doer).unwrap();
            let answerer = doer(&system, &format!("asked-by-{dispatcher}"));
            let (asked, answers) = (answerer.clone(), probe.actor_ref().clone());
            let test_thread = std::thread::current().id();
            asker.tell(Do::new(move |_| {
                assert_eq!(std::thread::current().id(), test_thread);
                let question =
                    asked.ask_with(|port: ReplyTo<u32>| Do::new(move |_| port.send(9).expect("in time")));
                answers.tell(question.wait());
            }));
            probe.expect(expected);
            actors.extend([asker, answerer]);
        }
        actors.iter().for_each(ActorRef::stop);
        let unknown = system.actor("x").dispatcher("nowhere").spawn(|| Doer);
        assert!(unknown.unwrap_err().to_string().contains("nowhere"));
        system.finish();
    }
}

#[test]
fn a_sender_that_waits_for_room_runs_the_turns_that_make_it() {
    TestSystem::for_seeds(20, |system| {
        let probe = system.probe::<u32>();
        let mailbox = Mailbox::bounded(2).on_full(OverflowPolicy::Wait(Duration::from_secs(3600)));
        let narrow = system.actor("narrow").mailbox(mailbox).spawn(|| Doer).unwrap();
        for number in 0..20u32 {
            let probe = probe.actor_ref().clone();
            let noted = Do::new(move |_| probe.tell(number));
            assert!(narrow.try_tell(noted).is_ok());
        }
        (0..20).for_each(|number| probe.expect(number));
        narrow.stop();
    });
}

#[test]
fn a_waiting_sender_is_refused_when_nobody_will_make_room() {
    TestSystem::for_seeds(5, |system| {
        let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::from_secs(3600)));
        let narrow = system.actor("narrow").mailbox(mailbox).spawn(|| Doer).unwrap();
        let inner = narrow.clone();
        // On a worker a wait is refused at once; and what the test thread sends waits for the handler.
        narrow.tell(Do::new(move |_| {
            assert!(inner.try_tell(Do::new(|_| ())).is_ok());
            assert!(matches!(inner.try_tell(Do::new(|_| ())), Err(SendError::Full(_))));
        }));
        system.run_until_idle();
        narrow.stop();
    });
}

#[test]
fn actors_left_running_fail_the_test_unless_they_are_allowed() {
    let spawned = |seed| {
        let system = TestSystem::with_seed(seed);
        let parent = doer(&system, "parent");
        parent.tell(Do::new(|ctx| drop(ctx.actor("child").spawn(|| Doer).unwrap())));
        doer(&system, "other");
        system
    };
    let fault = panic_of(|| _ = spawned(41).finish());
    assert!(fault.contains("/user/other, /user/parent, /user/parent/child"), "{fault}");
    assert!(fault.ends_with("(seed 41: run the test again with POINTSMAN_SEED=41)"), "{fault}");
    // The destructor looks, too.
    assert!(panic_of(|| drop(spawned(42))).contains("POINTSMAN_SEED=42"));

    let system = spawned(0);
    system.allow_running_at("/user/parent");
    let fault = panic_of(|| drop(system));
    assert!(fault.contains("allow_running(): /user/other (seed"), "{fault}");

    let system = spawned(0);
    system.allow_running_at("/user/parent");
    system.allow_running_at("/user/other");
    assert_eq!(system.finish().balance(), 0);

    let system = spawned(0);
    system.allow_running();
}

#[test]
fn messages_unaccounted_for_fail_the_test() {
    let system = TestSystem::with_seed(5);
    // A message that ends in the ledger of another system is lost to this one.
    let other = System::builder("other").build().unwrap();
    let inbox = other.inbox::<u32>().unwrap();
    system.router("hole").group([inbox.to_ref()]).spawn().unwrap().tell(1u32);
    let fault = panic_of(|| _ = system.finish());
    assert!(fault.contains("unaccounted for") && fault.contains("balance 1") && fault.contains("seed 5"));
}

#[test]
fn a_test_that_fails_gives_its_actors_an_end() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    impl Actor for Counted {
        type Message = ();
        fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
            Ok(())
        }
        fn stopped(&mut self, _: &mut Context<()>) {
            panic!("a second panic, while the test's unwinds");
        }
    }
    let ended: Arc<AtomicUsize> = Arc::default();
    let fault = panic_of(|| {
        let system = TestSystem::new();
        let count = ended.clone();
        let actor = system.actor("a").spawn(move || Counted(count.clone())).unwrap();
        system.run_until_idle();
        actor.tell(());
        panic!("the test's own");
    });
    assert_eq!(fault, "the test's own");
    assert_eq!(ended.load(Ordering::Relaxed), 1);
}

#[test]
fn whoever_waits_for_the_end_on_the_test_thread_runs_to_it() {
    TestSystem::for_seeds(20, |system| {
        let actor = doer(system, "a");
        let probe = system.probe();
        let (handle, outcome) = (SystemRef::clone(system), probe.actor_ref().clone());
        actor.tell(Do::new(move |_| {
            let own = handle.wait_until_ended(Duration::from_secs(3600));
            outcome.tell(matches!(own, Err(ShutdownError::OwnThread)));
        }));
        probe.expect(true);
        // Nobody has stopped it, so that no turn leads to the end: an error at once.
        let stuck = system.wait_until_ended(Duration::from_secs(3600)).unwrap_err();
        assert!(stuck.to_string().contains("/user/a"), "{stuck}");
        system.stop();
        system.wait_until_ended(Duration::from_secs(3600)).unwrap();
        assert_eq!(system.living_actors(), 0);
    });
}

#[test]
fn a_coordinated_shutdown_is_run_on_the_test_thread() {
    TestSystem::for_seeds(5, |system| {
        let actor = doer(system, "a");
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..10 {
            let done = done.clone();
            actor.tell(Do::new(move |_| {
                done.fetch_add(1, Ordering::SeqCst);
            }));
        }
        let shutdown = system.coordinated_shutdown();
        let drained = [actor.untyped().expect("an actor")];
        shutdown.add_drain(pointsman::shutdown::Phase::SERVICE_STOP, "drain", drained).unwrap();
        let report = shutdown.run("the test is over").wait().unwrap();
        assert_eq!((done.load(Ordering::SeqCst), report.ledger.balance()), (10, 0), "{report}");
        assert_eq!(system.living_actors(), 0);
    });
}

#[test]
fn other_threads_may_send() {
    let system = TestSystem::new();
    let count: Arc<AtomicUsize> = Arc::default();
    let actor = doer(&system, "a");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (actor, count) = (actor.clone(), count.clone());
            scope.spawn(move || {
                for _ in 0..1000 {
                    let count = count.clone();
                    actor.tell(Do::new(move |_| _ = count.fetch_add(1, Ordering::Relaxed)));
                }
            });
        }
        while count.load(Ordering::Relaxed) < 2000 {
            if !system.step() {
                std::thread::yield_now();
            }
        }
    });
    actor.stop();
    assert_eq!(system.finish().handled, 2000);
}

#[test]
fn a_puppet_of_the_other_tests_works_here_too() {
    TestSystem::for_seeds(5, |system| {
        let (log, notes) = channel();
        let role = crate::support::Role::new("p", &log);
        let puppet: ActorRef<Tell> = system.actor("p").spawn(role.recipe()).unwrap();
        act(&puppet, |_, ctx| {
            ctx.stop();
            Ok(())
        });
        system.run_until_idle();
        assert_eq!(notes.try_iter().collect::<Vec<_>>(), ["p Started 1", "p Stopped 1"]);
    });
}

/// Set for the run of a test within a test.
const INNER: &str = "POINTSMAN_TESTKIT_INNER_RUN";

#[test]
fn a_failing_seed_is_printed_and_can_be_given_again() {
    if std::env::var_os(INNER).is_some() {
        TestSystem::for_seeds(3, |system| assert!(system.seed() == 77, "as told"));
        // Reached with the seed 77 given, and then it is the only one.
        TestSystem::for_seeds(3, |system| panic!("all were {}", system.seed()));
    }
    let run = |seed: Option<&str>| {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "testkit_system::a_failing_seed_is_printed_and_can_be_given_again"]);
        again.env(INNER, "1").env_remove("POINTSMAN_SEED");
        seed.map(|seed| again.env("POINTSMAN_SEED", seed));
        let output = again.output().unwrap();
        assert!(!output.status.success());
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    };
    let output = run(None);
    let (_, printed) = output.split_once("again with POINTSMAN_SEED=").expect(&output);
    assert!(printed.split_whitespace().next().unwrap().parse::<u64>().is_ok(), "{output}");
    assert!(output.contains("as told"), "{output}");
    let output = run(Some("77"));
    assert!(output.contains("all were 77") && output.contains("POINTSMAN_SEED=77"), "{output}");
    let output = run(Some("x"));
    assert!(output.contains("must be a whole number below 2^64"), "{output}");
}

#[test]
fn ticks_and_notices_wait_in_the_queue_and_are_no_messages_of_the_books() {
    TestSystem::for_seeds(20, |system| {
        let (log, _notes) = channel();
        let [actor, other] =
            ["a", "b"].map(|name| system.actor(name).spawn(Role::new(name, &log).recipe()).unwrap());
        let watched = other.clone();
        act(&actor, move |_, ctx| {
            ctx.watch(&watched)?;
            ctx.after(Duration::from_secs(1), Tell::new(|_, _| Ok(())));
            ctx.after(Duration::from_secs(1), Tell::new(|_, _| Ok(())));
            Ok(())
        });
        system.run_until_idle();
        assert_eq!(actor.queued(), Some(0));
        // Due, and not handled: this moves the clock without turns.
        system.clock().advance(Duration::from_secs(1));
        assert_eq!((actor.queued(), system.ledger().queued), (Some(2), 0));
        system.run_until_idle();
        assert_eq!(actor.queued(), Some(0));
        // The notice of an end waits from the other's last turn to the next turn of this one.
        other.stop();
        while actor.queued() == Some(0) {
            assert!(system.step(), "it would have been told");
        }
        assert_eq!((actor.queued(), system.ledger().queued), (Some(1), 0));
        system.run_until_idle();
        assert_eq!(actor.queued(), Some(0));
        // What an actor does not get to before its end waits no more.
        act(&actor, |_, ctx| {
            ctx.after(Duration::from_secs(1), Tell::new(|_, _| Ok(())));
            Ok(())
        });
        system.run_until_idle();
        system.clock().advance(Duration::from_secs(1));
        assert_eq!(actor.queued(), Some(1));
        actor.stop();
        system.run_until_idle();
        assert_eq!(actor.queued(), Some(0));
    });
}
