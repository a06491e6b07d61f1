//! Where actors run.

use crate::support::*;
use pointsman::dispatch::{DispatcherKind, StartError};
use pointsman::prelude::*;
use pointsman::{BuildError, SpawnError};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

fn thread_of(actor: &ActorRef<Tell>) -> (thread::ThreadId, String) {
    query(actor, |_, _| (thread::current().id(), thread::current().name().unwrap_or("").to_owned())).unwrap()
}

fn spawn_on(stage: &Stage, dispatcher: &str, name: &'static str) -> ActorRef<Tell> {
    stage.system.actor(name).dispatcher(dispatcher).spawn(stage.role(name).recipe()).unwrap()
}

#[test]
fn a_pinned_actor_has_a_thread_of_its_own_all_its_life() {
    let stage =
        Stage::threads_with("pins", |builder| builder.dispatcher("pin", Dispatcher::pinned().throughput(1)));
    let (a, b) = (spawn_on(&stage, "pin", "a"), spawn_on(&stage, "pin", "b"));
    let (of_a, of_b) = (thread_of(&a), thread_of(&b));
    assert_ne!(of_a.0, of_b.0);
    assert!(of_a.1.starts_with("pins-pin"), "{of_a:?}");
    // Neither other work nor a restart moves it, and one that blocks stops nobody.
    let release = hold(&a);
    assert_eq!(thread_of(&b), of_b);
    fail(&a);
    drop(release);
    assert_eq!(thread_of(&a), of_a);
    a.stop();
    wait_for_end(&stage, &a);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn actors_that_block_on_the_blocking_dispatcher_stop_nobody() {
    let stage = Stage::threads_with("blocks", |builder| {
        builder.dispatcher("slow", Dispatcher::blocking().thread_range(1..=8))
    });
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let blocked: Vec<_> = names.map(|name| spawn_on(&stage, "slow", name)).into();
    let holds: Vec<_> = blocked.iter().map(hold).collect();
    let other = stage.spawn(&stage.role("other"));
    assert_eq!(query(&other, |_, _| ()), Ok(()));
    drop(holds);
    for actor in &blocked {
        assert!(thread_of(actor).1.starts_with("blocks-slow"));
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn waiting_for_an_answer_is_an_error_on_a_worker_and_allowed_elsewhere() {
    let stage = Stage::turns_with(|builder| {
        builder.dispatcher("slow", Dispatcher::blocking()).dispatcher("pin", Dispatcher::pinned())
    });
    let target = stage.spawn(&stage.role("target"));
    for (dispatcher, name, answer) in
        [("default", "a", Err(AskError::WouldBlockWorker)), ("slow", "b", Ok(11)), ("pin", "c", Ok(11))]
    {
        let asker = spawn_on(&stage, dispatcher, name);
        let asked = target.clone();
        assert_eq!(query(&asker, move |_, _| query(&asked, |_, _| 11)), Ok(answer), "{dispatcher}");
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn in_blocking_sections_what_waits_for_the_worker_goes_elsewhere() {
    let stage = Stage::turns();
    let (a, b) = (stage.spawn(&stage.role("a")), stage.spawn(&stage.role("b")));
    // `a` wakes `b` on its own worker and then waits for it.
    let (sender, answered) = channel();
    let answer = query(&a, move |_, ctx| {
        act(&b, move |_, _| {
            sender.send(5)?;
            Ok(())
        });
        ctx.blocking(|| answered.soon())
    });
    assert_eq!(answer, Ok(Ok(5)));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_dispatcher_that_cannot_be_had_is_a_build_error() {
    let cannot = |name: &str, dispatcher: Dispatcher| {
        let built = System::builder("cannot")
            .dispatcher("fine", Dispatcher::blocking())
            .dispatcher(name, dispatcher)
            .build();
        built.expect_err("it cannot be had")
    };
    let error = cannot("far", Dispatcher::work_stealing().threads(1).pin_to([4095]));
    let BuildError::Dispatcher { name, error: StartError::Core { core: 4095, .. } } = error else {
        panic!("{error:?}")
    };
    assert_eq!(name, "far");
    assert!(matches!(
        cannot("none", Dispatcher::work_stealing().threads(0)),
        BuildError::Dispatcher { error: StartError::ThreadCount { requested: 0, .. }, .. }
    ));
    for dispatcher in [
        Dispatcher::work_stealing().threads(1).throughput(0),
        Dispatcher::blocking().throughput(0),
        Dispatcher::pinned().throughput(0),
        Dispatcher::calling_thread().throughput(0),
    ] {
        assert!(matches!(
            cannot("idle", dispatcher),
            BuildError::Dispatcher { error: StartError::ZeroThroughput, .. }
        ));
    }
    // A setting that the kind does not have is never ignored.
    let (core, second) = ([0], Duration::from_secs(1));
    for (dispatcher, of, setter) in [
        (Dispatcher::blocking().threads(1), DispatcherKind::Blocking, "threads"),
        (Dispatcher::blocking().pin_to(core), DispatcherKind::Blocking, "pin_to"),
        (Dispatcher::pinned().spin(second), DispatcherKind::Pinned, "spin"),
        (Dispatcher::calling_thread().lifo(false), DispatcherKind::CallingThread, "lifo"),
        (Dispatcher::work_stealing().thread_range(1..=2), DispatcherKind::WorkStealing, "thread_range"),
        (Dispatcher::work_stealing().keep_alive(second), DispatcherKind::WorkStealing, "keep_alive"),
        (Dispatcher::pinned().idle_shutdown(second), DispatcherKind::Pinned, "idle_shutdown"),
        (Dispatcher::calling_thread().idle_shutdown(second), DispatcherKind::CallingThread, "idle_shutdown"),
    ] {
        let error = cannot("odd", dispatcher);
        let BuildError::DispatcherSetting { name, kind, setting } = &error else { panic!("{error:?}") };
        assert_eq!((name.as_str(), *kind, *setting), ("odd", of, setter));
    }
    assert!(matches!(
        cannot("fine", Dispatcher::blocking()),
        BuildError::DuplicateDispatcher { ref name } if name == "fine"
    ));
    for name in ["", "-a", "a b", "ä"] {
        assert!(matches!(System::builder(name).build(), Err(BuildError::Name { .. })), "{name:?}");
    }
}

#[test]
fn the_guardians_may_run_anywhere() {
    for dispatcher in [
        Dispatcher::pinned(),
        Dispatcher::blocking(),
        Dispatcher::calling_thread(),
        Dispatcher::blocking().idle_shutdown(Duration::ZERO),
    ] {
        let system = System::builder("guards").dispatcher("default", dispatcher).build().unwrap();
        let (log, _notes) = channel();
        let actor = system.actor("a").spawn(Role::new("a", &log).recipe()).unwrap();
        fail(&actor);
        assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(0));
        assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    }
}

#[test]
fn an_actor_woken_in_a_long_turn_does_not_wait_for_all_of_it() {
    let stage = Stage::threads_with("long", |builder| {
        builder.dispatcher("one", Dispatcher::work_stealing().threads(1).throughput(64))
    });
    let (busy, woken) = (spawn_on(&stage, "one", "busy"), spawn_on(&stage, "one", "woken"));
    let handled = Arc::new(AtomicUsize::new(0));
    let (sender, seen) = channel();
    // Has nothing left to do when the one worker is in `busy`.
    assert_eq!(query(&woken, |_, _| ()), Ok(()));
    let release = hold(&busy);
    for message in 0..64 {
        let (handled, woken, sender) = (handled.clone(), woken.clone(), sender.clone());
        act(&busy, move |_, _| {
            if message == 0 {
                let handled = handled.clone();
                act(&woken, move |_, _| {
                    sender.send(handled.load(Ordering::Relaxed))?;
                    Ok(())
                });
            }
            handled.fetch_add(1, Ordering::Relaxed);
            // Stands for work: it may take longer, and the test says the same then.
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        });
    }
    drop(release);
    // A few of the 64, by the messages counted and not by the clock.
    let handled = seen.soon().unwrap();
    assert!(handled <= 16, "{handled}");
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

/// Three messages each for two actors on one thread, sent in a turn of the first; who handled them.
fn order_of_turns(stage: &Stage, dispatcher: &str, names: [&'static str; 2]) -> String {
    let [a, b] = names.map(|name| spawn_on(stage, dispatcher, name));
    // It has started, and has nothing left to do.
    assert_eq!(query(&b, |_, _| ()), Ok(()));
    let (sender, order) = channel();
    act(&a, move |_, ctx| {
        for (actor, name) in [(ctx.me(), 'a'), (&b, 'b')].repeat(3) {
            let sender = sender.clone();
            act(actor, move |_, _| Ok(sender.send(name)?));
        }
        Ok(())
    });
    let order: String = order.iter().collect();
    assert_eq!(order.len(), 6);
    order
}

#[test]
fn throughput_and_deadline_of_a_turn_are_each_dispatchers_own() {
    const SOON: Duration = Duration::ZERO;
    const NEVER: Duration = Duration::MAX;
    let stage = Stage::threads_with("turns", |builder| {
        builder
            .dispatcher("whole", Dispatcher::work_stealing().threads(1).deadline(NEVER))
            .dispatcher("one", Dispatcher::work_stealing().threads(1).throughput(1))
            .dispatcher("soon", Dispatcher::work_stealing().threads(1).deadline(SOON))
            .dispatcher("slow-whole", Dispatcher::blocking().thread_range(1..=1).deadline(NEVER))
            .dispatcher("slow-one", Dispatcher::blocking().thread_range(1..=1).throughput(1))
            .dispatcher("slow-soon", Dispatcher::blocking().thread_range(1..=1).deadline(SOON))
            .dispatcher("own-whole", Dispatcher::calling_thread().deadline(NEVER))
            .dispatcher("own-one", Dispatcher::calling_thread().throughput(1))
            .dispatcher("own-soon", Dispatcher::calling_thread().deadline(SOON))
    });
    assert_eq!(order_of_turns(&stage, "whole", ["a1", "b1"]), "aaabbb");
    assert_eq!(order_of_turns(&stage, "slow-whole", ["a2", "b2"]), "aaabbb");
    assert_eq!(order_of_turns(&stage, "own-whole", ["a7", "b7"]), "aaabbb");
    for (dispatcher, names) in [
        ("one", ["a3", "b3"]),
        ("soon", ["a4", "b4"]),
        ("slow-one", ["a5", "b5"]),
        ("slow-soon", ["a6", "b6"]),
        ("own-one", ["a8", "b8"]),
        ("own-soon", ["a9", "b9"]),
    ] {
        let order = order_of_turns(&stage, dispatcher, names);
        assert!(["ababab", "bababa"].contains(&order.as_str()), "{dispatcher}: {order}");
    }
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn an_unknown_dispatcher_is_an_error_that_names_those_there_are() {
    let stage = Stage::turns_with(|builder| {
        builder.dispatcher("slow", Dispatcher::blocking()).dispatcher_alias("files", "slow")
    });
    let spawned = stage.system.actor("a").dispatcher("fast").spawn(stage.role("a").recipe());
    let Err(SpawnError::UnknownDispatcher { name, known }) = spawned else { panic!("{spawned:?}") };
    assert_eq!((name.as_str(), known), ("fast", vec!["default".into(), "slow".into(), "files".into()]));
    // Nothing is left of it.
    assert_eq!(stage.system.living_actors(), GUARDIANS);
    let a = spawn_on(&stage, "slow", "a");
    assert_eq!(query(&a, |_, _| ()), Ok(()));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_dispatcher_may_go_by_other_names() {
    let (log, _notes) = channel();
    let system = System::builder("alias")
        .dispatcher_alias("default", "all")
        .dispatcher_alias("all", "few")
        .dispatcher("few", Dispatcher::work_stealing().threads(1))
        .build()
        .unwrap();
    for (name, dispatcher) in [("a", "default"), ("b", "all"), ("c", "few")] {
        let actor = system.actor(name).dispatcher(dispatcher).spawn(Role::new(name, &log).recipe()).unwrap();
        assert_eq!(thread_of(&actor).1, "alias-few-0");
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn an_alias_of_nothing_is_a_build_error_that_names_the_chain() {
    let refused = |aliases: &[(&str, &str)]| {
        let builder = System::builder("alias").dispatcher("slow", Dispatcher::blocking());
        let build = aliases.iter().fold(builder, |builder, (alias, of)| builder.dispatcher_alias(alias, of));
        build.build().expect_err("no dispatcher is at the end")
    };
    for (aliases, expected) in
        [(&[("a", "a")][..], "a a"), (&[("a", "b"), ("b", "c"), ("c", "b")], "a b c b")]
    {
        let error = refused(aliases);
        assert!(
            matches!(&error, BuildError::AliasCircle { chain } if chain.join(" ") == expected),
            "{error}"
        );
    }
    let error = refused(&[("fine", "slow"), ("a", "b"), ("b", "nobody")]);
    let BuildError::AliasOfNothing { chain, known } = error else { panic!("{error}") };
    assert_eq!(chain.join(" "), "a b nobody");
    assert_eq!(known, ["slow", "default", "fine", "a", "b"]);
    // One step more than the bound.
    let names: Vec<String> = (0..21).map(|number| format!("a{number}")).chain(["slow".into()]).collect();
    let steps: Vec<_> = names.windows(2).map(|two| (two[0].as_str(), two[1].as_str())).collect();
    let error = refused(&steps);
    assert!(matches!(&error, BuildError::AliasTooLong { chain, max: 20 } if chain.len() == 22), "{error}");
    let taken = System::builder("alias").dispatcher_alias("a", "default").dispatcher_alias("a", "default");
    assert!(matches!(taken.build(), Err(BuildError::DuplicateDispatcher { name }) if name == "a"));
    let taken =
        System::builder("alias").dispatcher("a", Dispatcher::pinned()).dispatcher_alias("a", "default");
    assert!(matches!(taken.build(), Err(BuildError::DuplicateDispatcher { name }) if name == "a"));
}

#[test]
fn a_dispatcher_has_a_name_that_threads_can_have() {
    use pointsman::path::NameError::{Character, Empty};
    let control = |name: &str, character, position| Character { name: name.into(), character, position };
    for (name, expected) in
        [("", Empty), ("a\0b", control("a\0b", '\0', 1)), ("line\n", control("line\n", '\n', 4))]
    {
        let as_dispatcher = System::builder("names").dispatcher(name, Dispatcher::pinned());
        let as_alias = System::builder("names").dispatcher_alias(name, "default");
        for builder in [as_dispatcher, as_alias] {
            let Err(BuildError::DispatcherName(error)) = builder.build() else { panic!("{name:?}") };
            assert_eq!(error, expected);
        }
    }
}

/// The names of this process's threads that begin so, cut by the operating system after 15 bytes.
#[cfg(target_os = "linux")]
fn threads_named(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end between the two looks.
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}

#[cfg(target_os = "linux")]
#[test]
fn a_systems_threads_have_its_name() {
    let (log, _notes) = channel();
    let system = System::builder("whose").dispatcher("d", Dispatcher::work_stealing().threads(2));
    let system = system.dispatcher("p", Dispatcher::pinned()).build().unwrap();
    system.actor("a").dispatcher("p").spawn(Role::new("a", &log).recipe()).unwrap();
    // The timers have theirs from the beginning.
    // A thread names itself when it begins to run.
    for (name, count) in [("whose-d-", 2), ("whose-p-", 1), ("whose-timer", 1)] {
        wait_until(|| threads_named(name) == count);
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    wait_until(|| threads_named("whose-") == 0);
}

#[cfg(target_os = "linux")]
#[test]
fn threads_without_actors_end_and_start_again() {
    const SECOND: Duration = Duration::from_secs(1);
    let stealing = Dispatcher::work_stealing().threads(2).idle_shutdown(SECOND);
    let blocking = Dispatcher::blocking().thread_range(2..=2).idle_shutdown(SECOND);
    for (name, threads, recipe) in [("idle1", "idle1-w-", stealing), ("idle2", "idle2-w-", blocking)] {
        let stage = Stage::threads_with(name, |builder| builder.dispatcher("w", recipe));
        let run = || wait_until(|| threads_named(threads) == 2);
        let have_ended = || wait_until(|| threads_named(threads) == 0);
        run();
        // The time goes on while there is an actor, and begins when the last one has ended.
        let first = spawn_on(&stage, "w", "first");
        let second = spawn_on(&stage, "w", "second");
        stage.clock.advance(2 * SECOND);
        first.stop();
        wait_for_end(&stage, &first);
        stage.clock.advance(2 * SECOND);
        assert_eq!(query(&second, |_, _| ()), Ok(()));
        second.stop();
        wait_for_end(&stage, &second);
        stage.clock.advance(SECOND / 2);
        // One that comes in time keeps them.
        let third = spawn_on(&stage, "w", "third");
        stage.clock.advance(SECOND);
        let before = thread_of(&third).0;
        assert_eq!(threads_named(threads), 2);
        third.stop();
        wait_for_end(&stage, &third);
        stage.clock.advance(SECOND);
        have_ended();
        // What is sent to the dead is accounted for.
        note(&third, "late");
        // The next one has new threads.
        let fourth = spawn_on(&stage, "w", "fourth");
        let after = thread_of(&fourth);
        assert_ne!(after.0, before);
        assert!(after.1.starts_with(threads), "{after:?}");
        run();
        // And so on.
        fourth.stop();
        wait_for_end(&stage, &fourth);
        stage.clock.advance(SECOND);
        have_ended();
        let fifth = spawn_on(&stage, "w", "fifth");
        assert_eq!(query(&fifth, |_, _| ()), Ok(()));
        fifth.stop();
        wait_for_end(&stage, &fifth);
        let ledger = stage.system.shutdown(LONG).unwrap();
        assert_eq!((ledger.balance(), ledger.dead_lettered), (0, 1));
        // Joined; what the operating system shows of them may last a moment longer.
        have_ended();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn threads_that_no_actor_ever_used_end_too() {
    let stage = Stage::threads_with("unused", |builder| {
        builder.dispatcher("w", Dispatcher::work_stealing().threads(1).idle_shutdown(Duration::from_secs(1)))
    });
    wait_until(|| threads_named("unused-w-") == 1);
    stage.clock.advance(Duration::from_secs(1));
    wait_until(|| threads_named("unused-w-") == 0);
    // Built without a manual clock, the timer thread sees to it.
    let recipe = Dispatcher::blocking().thread_range(1..=1).idle_shutdown(Duration::from_millis(1));
    let system = System::builder("unused2").dispatcher("b", recipe).build().unwrap();
    wait_until(|| threads_named("unused2-b-") == 0);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

/// Else a worker's pin would become that of whatever it is the first to need: threads of its system start when they are
/// needed, and a new thread begins with the cores of the one that starts it.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_a_pinned_worker_starts_have_the_cores_that_others_have() {
    const SECOND: Duration = Duration::from_secs(1);
    fn cores() -> Vec<usize> {
        core_affinity::get_core_ids().expect("the system tells").into_iter().map(|core| core.id).collect()
    }
    let cores_of = |actor: &ActorRef<Tell>| query(actor, |_, _| cores()).unwrap();
    let all = cores();
    let first = all[0];
    let stage = Stage::threads_with("unpin", |builder| {
        builder
            .dispatcher("one", Dispatcher::work_stealing().pin_to([first]))
            .dispatcher("p", Dispatcher::pinned())
            .dispatcher("b", Dispatcher::blocking().thread_range(1..=8))
            .dispatcher("w", Dispatcher::work_stealing().idle_shutdown(SECOND))
    });
    let starter = spawn_on(&stage, "one", "starter");
    assert_eq!(cores_of(&starter), [first]);
    let spawn = |dispatcher: &'static str| {
        let role = stage.role(dispatcher);
        let made = query(&starter, move |_, ctx| {
            ctx.system().actor(dispatcher).dispatcher(dispatcher).spawn(role.recipe()).unwrap()
        });
        made.unwrap()
    };
    // A thread for an actor.
    assert_eq!(cores_of(&spawn("p")), all);
    // One more for those that block.
    let blocked = spawn_on(&stage, "b", "blocked");
    let release = hold(&blocked);
    assert_eq!(cores_of(&spawn("b")), all);
    drop(release);
    // All that have ended, and as many as before.
    let workers = threads_named("unpin-w-");
    stage.clock.advance(SECOND);
    wait_until(|| threads_named("unpin-w-") == 0);
    assert_eq!(cores_of(&spawn("w")), all);
    wait_until(|| threads_named("unpin-w-") >= workers);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_thread_that_ends_may_make_the_actor_for_which_threads_start_again() {
    /// Acts when its thread destroys its thread-locals.
    struct Late(Option<Box<dyn FnOnce()>>);
    impl Drop for Late {
        fn drop(&mut self) {
            self.0.take().expect("acts once")();
        }
    }
    thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    }
    let stealing = Dispatcher::work_stealing().threads(1).idle_shutdown(Duration::ZERO);
    let blocking = Dispatcher::blocking().thread_range(1..=1).idle_shutdown(Duration::ZERO);
    for recipe in [stealing, blocking] {
        let stage = Stage::threads_with("late", |builder| builder.dispatcher("w", recipe));
        let first = spawn_on(&stage, "w", "first");
        let (made, makes) = channel();
        let system = stage.system.handle().clone();
        act(&first, move |_, ctx| {
            let make = move || {
                let second = system.actor("second").dispatcher("w").spawn(|| Idle);
                made.send(second.is_ok()).expect("the test listens");
            };
            LATE.with(|late| *late.borrow_mut() = Some(Late(Some(Box::new(make)))));
            ctx.stop();
            Ok(())
        });
        wait_for_end(&stage, &first);
        stage.clock.advance(Duration::from_secs(1));
        assert_eq!(makes.recv_timeout(LONG), Ok(true));
        assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
    }
}

/// Does nothing.
struct Idle;
impl Actor for Idle {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
}

fn with_calling_thread(name: &str) -> Stage {
    Stage::threads_with(name, |builder| builder.dispatcher("here", Dispatcher::calling_thread()))
}

#[test]
fn on_the_calling_thread_a_message_is_handled_when_the_send_returns() {
    let stage = with_calling_thread("here");
    let (a, b) = (spawn_on(&stage, "here", "a"), spawn_on(&stage, "here", "b"));
    let c = spawn_on(&stage, "here", "c");
    stage.notes.try_iter().for_each(drop);
    let me = thread::current().id();
    // What a turn wakes waits for its end, in order, and is done too.
    let to_b = b.clone();
    act(&a, move |puppet, ctx| {
        let here = thread::current().id() == me;
        note(&to_b, "first");
        note(&c, "last");
        note(ctx.me(), "again");
        note(&to_b, "second");
        puppet.note((here, "sent"));
        Ok(())
    });
    let notes: Vec<String> = stage.notes.try_iter().collect();
    assert_eq!(notes, ["a (true, \"sent\")", "a again", "b first", "b second", "c last"]);
    // An answer is there at once; another thread has the same actor on its own.
    assert_eq!(thread_of(&a).0, me);
    let other = {
        let a = a.clone();
        thread::spawn(move || (thread_of(&a).0, thread::current().id()))
    };
    let (of_actor, of_sender) = other.join().unwrap();
    assert_eq!(of_actor, of_sender);
    // Timers are run by whoever moves the clock.
    act(&b, |_, ctx| {
        ctx.after(
            Duration::from_secs(1),
            Tell::new(|puppet, _| {
                puppet.note("tick");
                Ok(())
            }),
        );
        Ok(())
    });
    stage.clock.advance(Duration::from_secs(1));
    assert_eq!(stage.notes.try_iter().collect::<Vec<_>>(), ["b \"tick\""]);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

/// So however long a chain of actors is, the stack is not deep.
#[test]
fn what_thread_locals_send_at_the_end_of_the_calling_thread_takes_turns_too() {
    const LENGTH: usize = if cfg!(miri) { 20 } else { 3_000 };
    /// Passes a number on, and notes the last one's thread.
    struct Link(Option<ActorRef<u64>>, std::sync::mpsc::Sender<(u64, thread::ThreadId)>);
    impl Actor for Link {
        type Message = u64;
        fn receive(&mut self, number: u64, _: &mut Context<u64>) -> HandlerResult {
            match &self.0 {
                Some(next) => next.tell(number),
                None => self.1.send((number, thread::current().id()))?,
            }
            Ok(())
        }
    }
    struct LastWords(Option<ActorRef<u64>>);
    impl Drop for LastWords {
        fn drop(&mut self) {
            if let Some(first) = self.0.take() {
                first.tell(2u64);
            }
        }
    }
    thread_local! {
        static LAST_WORDS: RefCell<LastWords> = const { RefCell::new(LastWords(None)) };
    }
    let stage = with_calling_thread("end");
    let (sender, arrivals) = channel();
    let mut next = None;
    for number in 0..LENGTH {
        let (after, sender) = (next.take(), sender.clone());
        let link = move || Link(after.clone(), sender.clone());
        let link: ActorRef<u64> =
            stage.system.actor(&number.to_string()).dispatcher("here").spawn(link).unwrap();
        next = Some(link);
    }
    let first = next.expect("there are some");
    let ends = thread::spawn(move || {
        // Before the turns' own, which would go before it.
        LAST_WORDS.with(|words| words.borrow_mut().0 = Some(first.clone()));
        first.tell(1u64);
        thread::current().id()
    });
    let it = ends.join().unwrap();
    assert_eq!(arrivals.try_iter().collect::<Vec<_>>(), [(1, it), (2, it)]);
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn what_is_suspended_on_the_calling_thread_is_run_by_whoever_resumes() {
    let stage = with_calling_thread("resume");
    let parent = stage.spawn(&stage.role("parent").strategy(|| Strategy::decide(|_| Directive::Resume)));
    let recipe = stage.role("child").recipe();
    let child =
        query(&parent, |_, ctx| ctx.actor("child").dispatcher("here").spawn(recipe).unwrap()).unwrap();
    let release = hold(&parent);
    fail(&child);
    let (sender, ran) = channel();
    act(&child, move |_, _| Ok(sender.send(thread::current().name().unwrap_or("").to_owned())?));
    assert!(ran.try_recv().is_err(), "suspended until the parent has judged");
    drop(release);
    let thread = ran.soon().unwrap();
    assert!(thread.starts_with("resume-default-"), "{thread}");
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn in_a_turn_on_the_calling_thread_nobody_may_wait() {
    let stage = with_calling_thread("waits");
    let (a, b) = (spawn_on(&stage, "here", "a"), spawn_on(&stage, "here", "b"));
    let asked = b.clone();
    assert_eq!(query(&a, move |_, _| query(&asked, |_, _| 1)), Ok(Err(AskError::WouldBlockWorker)));
    let stage_of = stage.system.handle().clone();
    let ended = query(&a, move |_, _| stage_of.wait_until_ended(LONG).is_err());
    assert_eq!(ended, Ok(true));
    let role = stage.role("routee");
    let router = stage.system.router("router").pool(1, move |_| role.recipe()()).dispatcher("here");
    let router = router.logic(pointsman::routing::RoundRobin::new()).spawn().unwrap();
    assert_eq!(router.routees().unwrap().len(), 1);
    let refused = query(&router.to_ref(), move |_, _| router.routees_info().is_err());
    assert_eq!(refused, Ok(true));
    // It is over then.
    assert_eq!(query(&b, |_, _| 2), Ok(2));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn on_a_dispatcher_of_its_own_the_engine_goes_on_while_handlers_block() {
    let system = System::builder("internal")
        .dispatcher("default", Dispatcher::work_stealing().threads(1))
        .dispatcher("internal", Dispatcher::work_stealing().threads(1))
        .dispatcher("other", Dispatcher::pinned())
        .build()
        .unwrap();
    let (log, _notes) = std::sync::mpsc::channel();
    let blocking = system.actor("blocking").spawn(Role::new("blocking", &log).recipe()).unwrap();
    let release = hold(&blocking);
    let other = system.actor("other").dispatcher("other").spawn(Role::new("other", &log).recipe()).unwrap();
    fail(&other);
    // `/user` has judged, although the only default worker waits.
    assert_eq!(query(&other, |puppet, _| puppet.value), Ok(0));
    let inbox = system.inbox::<u32>().unwrap();
    inbox.to_ref().tell(7u32);
    assert_eq!(inbox.receive(LONG), Ok(7));
    drop(release);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Counts, and goes on for ever until it is over.
fn counting(handled: Arc<AtomicUsize>, over: Arc<AtomicBool>) -> Tell {
    Tell::new(move |_, ctx| {
        handled.fetch_add(1, Ordering::SeqCst);
        if !over.load(Ordering::SeqCst) {
            ctx.me().tell(counting(handled, over));
        }
        Ok(())
    })
}

#[test]
fn what_comes_from_outside_waits_for_no_more_than_one_turn_used_to_the_full() {
    const THROUGHPUT: u32 = 2;
    let one = Dispatcher::work_stealing().threads(1).throughput(THROUGHPUT);
    let stage = Stage::threads_with("outside", |builder| builder.dispatcher("one", one));
    let (busy, other) = (spawn_on(&stage, "one", "busy"), spawn_on(&stage, "one", "other"));
    query(&other, |_, _| ()).unwrap();
    let (handled, over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let release = hold(&busy);
    for _ in 0..2 * THROUGHPUT {
        busy.tell(counting(handled.clone(), over.clone()));
    }
    let (sender, seen) = channel();
    let count = handled.clone();
    act(&other, move |_, _| {
        sender.send(count.load(Ordering::SeqCst))?;
        Ok(())
    });
    drop(release);
    let seen = seen.soon().unwrap();
    over.store(true, Ordering::SeqCst);
    assert!(seen < THROUGHPUT as usize, "{seen} messages later");
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}
