//! A machine that refuses threads: what could not be built leaves nothing behind, and can be built later. What is built
//! already goes on: its timers fire, and its listeners rest and serve again.
//!
//! The tests run in child processes, whose address space holds so many stacks and no more.
#![cfg(target_os = "linux")]

use pointsman::dispatch::StartError;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use pointsman::{BuildError, SpawnError};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

/// Of each thread in a child; more than the allocator may want besides.
const STACK_BYTES: i64 = 64 << 20;

/// `/`, `/user`, `/system` and `/temp`.
const GUARDIANS: usize = 4;

/// The thread of the timers, which each system has whose clock moves by itself.
const TIMERS: usize = 1;

/// Set in children.
const CHILD: &str = "POINTSMAN_NO_THREADS_CHILD";

/// Runs the test of this name in a child. True in that child.
fn in_child(test: &str) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env("RUST_MIN_STACK", STACK_BYTES.to_string())
        // Or the allocator reserves some for each thread, unless it cannot.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .expect("a child process");
    let (said, fault) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && said.contains("1 passed"), "{said}{fault}");
    false
}

/// Runs `act` while the address space has room for so many more threads and a half. Less than zero: some that
/// have ended still hold their stacks, and `act` is known to join them first.
fn with_room_for<R>(threads: i64, act: impl FnOnce() -> R) -> R {
    fn set(limit: libc::rlimit) {
        // SAFETY: the call only reads what it is given.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    }
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call only writes to what it is given.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut before) }, 0);
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("always there");
    let size: i64 = size.trim().trim_end_matches(" kB").parse().expect("a number of kB");
    let room = (size << 10) + threads * STACK_BYTES + STACK_BYTES / 2;
    set(libc::rlimit { rlim_cur: room.try_into().expect("more than all threads"), ..before });
    let result = act();
    set(before);
    result
}

fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux").count()
}

/// A thread that was joined may be seen a moment longer.
fn wait_for_threads(count: usize) {
    wait_for_threads_doing(count, || {});
}

/// Waits for threads that end when nobody has needed them for `patience`. An actor that is gone may still be
/// leaving its dispatcher, whose patience begins after that: so the clock goes on until they have ended.
fn wait_for_threads_and_advance(count: usize, clock: &ManualClock, patience: Duration) {
    wait_for_threads_doing(count, || clock.advance(patience));
}

fn wait_for_threads_doing(count: usize, act: impl Fn()) {
    let began = std::time::Instant::now();
    while thread_count() != count {
        assert!(began.elapsed() < LONG, "{} threads, not {count}", thread_count());
        act();
        std::thread::yield_now();
    }
}

struct Answers;

struct Get;

impl Request for Get {
    type Reply = u32;
}

impl Actor for Answers {
    type Message = Call<Get>;
    fn receive(&mut self, call: Call<Get>, _: &mut Context<Call<Get>>) -> HandlerResult {
        call.answer(|Get| 5);
        Ok(())
    }
}

#[test]
fn a_system_whose_guardian_gets_no_thread_is_not_built_and_leaves_none() {
    if !in_child("a_system_whose_guardian_gets_no_thread_is_not_built_and_leaves_none") {
        return;
    }
    let before = thread_count();
    let build = || System::builder("refused").dispatcher("default", Dispatcher::pinned()).build();
    match with_room_for(0, build) {
        Err(BuildError::Timers(StartError::Thread(_))) => {}
        other => panic!("with room for none: {other:?}"),
    }
    wait_for_threads(before);
    // The guardians get theirs one after the other.
    for guardians in 0..GUARDIANS {
        match with_room_for((TIMERS + guardians) as i64, build) {
            Err(BuildError::Dispatcher { name, error: StartError::Thread(_) }) => assert_eq!(name, "default"),
            other => panic!("with room for {guardians}: {other:?}"),
        }
        wait_for_threads(before);
    }
    // Two threads, and one for the timers.
    let build_idle = || {
        let idle = Dispatcher::blocking().thread_range(1..=1).idle_shutdown(LONG);
        let default = Dispatcher::work_stealing().threads(1);
        System::builder("refused").dispatcher("default", default).dispatcher("idle", idle).build()
    };
    match with_room_for(2, build_idle) {
        Err(BuildError::Timers(StartError::Thread(_))) => {}
        other => panic!("{other:?}"),
    }
    wait_for_threads(before);
    let system = with_room_for(3, build_idle).expect("room for all");
    assert_eq!(system.shutdown(LONG).expect("all end").balance(), 0);
    wait_for_threads(before);
    let system = with_room_for((TIMERS + GUARDIANS) as i64, build).expect("room for all");
    assert_eq!((system.living_actors(), thread_count()), (GUARDIANS, before + TIMERS + GUARDIANS));
    let actor = system.actor("a").spawn(|| Answers).expect("no limit any more");
    assert_eq!(actor.ask(Get).wait(), Ok(5));
    assert_eq!(system.shutdown(LONG).expect("all end").balance(), 0);
    wait_for_threads(before);
}

#[test]
fn an_actor_that_gets_no_thread_leaves_its_name_free() {
    if !in_child("an_actor_that_gets_no_thread_leaves_its_name_free") {
        return;
    }
    let others = thread_count();
    let clock = ManualClock::new();
    let patience = Duration::from_secs(1);
    let system = System::builder("refused")
        .clock(clock.clone())
        .dispatcher("default", Dispatcher::work_stealing().threads(1))
        .dispatcher("pinned", Dispatcher::pinned())
        .dispatcher("idle", Dispatcher::work_stealing().threads(2).idle_shutdown(patience))
        .build()
        .expect("no limit yet");
    // The two that nobody needs have ended.
    wait_for_threads_and_advance(others + 1, &clock, patience);
    // A worker that starts first ends again when the second one cannot. Two that have ended are joined before
    // new ones start. Each has a name of its own: the guardian may not have heard yet of the end of the one before.
    for (name, dispatcher, room, threads) in
        [("a", "pinned", 0, 1), ("b", "idle", -2, 2), ("c", "idle", -1, 2)]
    {
        let spawn = || system.actor(name).dispatcher(dispatcher).spawn(|| Answers);
        match with_room_for(room, spawn) {
            Err(SpawnError::Thread(StartError::Thread(_))) => {}
            other => panic!("{dispatcher}: {other:?}"),
        }
        assert_eq!(system.living_actors(), GUARDIANS);
        wait_for_threads(others + 1);
        let actor = spawn().expect("no limit any more");
        assert_eq!(actor.ask(Get).wait(), Ok(5));
        assert_eq!(thread_count(), others + 1 + threads);
        actor.stop();
        let began = std::time::Instant::now();
        while system.living_actors() > GUARDIANS {
            assert!(began.elapsed() < LONG, "it never ends");
            std::thread::yield_now();
        }
        wait_for_threads_and_advance(others + 1, &clock, patience);
    }
    assert_eq!(system.shutdown(LONG).expect("all end").balance(), 0);
    wait_for_threads(others);
}

/// Holds its thread in the handler until it is released.
struct Holds;

impl Actor for Holds {
    type Message = (Sender<()>, Receiver<()>);
    fn receive(&mut self, (held, release): Self::Message, _: &mut Context<Self::Message>) -> HandlerResult {
        held.send(())?;
        // Released by being dropped.
        let _ = release.recv();
        Ok(())
    }
}

#[test]
fn a_pool_that_gets_not_all_of_its_threads_is_not_built_and_leaves_none() {
    if !in_child("a_pool_that_gets_not_all_of_its_threads_is_not_built_and_leaves_none") {
        return;
    }
    let before = thread_count();
    let pools: [fn() -> Dispatcher; 2] =
        [|| Dispatcher::blocking().thread_range(3..=4), || Dispatcher::work_stealing().threads(3)];
    for pool in pools {
        for room in 0..3 {
            let build = || System::builder("refused").dispatcher("default", pool()).build();
            match with_room_for(room, build) {
                Err(BuildError::Dispatcher { name, error: StartError::Thread(_) }) => {
                    assert_eq!(name, "default")
                }
                other => panic!("with room for {room}: {other:?}"),
            }
            wait_for_threads(before);
        }
    }
}

#[test]
fn a_blocking_pool_that_gets_no_more_threads_handles_all_with_those_it_has() {
    if !in_child("a_blocking_pool_that_gets_no_more_threads_handles_all_with_those_it_has") {
        return;
    }
    let others = thread_count();
    let hold = |holds: &ActorRef<_>| {
        let ((held, is_held), (release, released)) = (channel(), channel());
        holds.tell((held, released));
        is_held.recv_timeout(LONG).expect("it has a thread");
        release
    };
    // Room for the timers, for one worker, and for the least of the pool.
    let (system, holds, release, answers, ask) = with_room_for(3, || {
        let system = System::builder("refused")
            .dispatcher("default", Dispatcher::work_stealing().threads(1))
            .dispatcher("pool", Dispatcher::blocking().thread_range(1..=2))
            .build()
            .expect("room for these");
        let holds = system.actor("holds").dispatcher("pool").spawn(|| Holds).expect("a free name");
        let release = hold(&holds);
        let answers = system.actor("answers").dispatcher("pool").spawn(|| Answers).expect("a free name");
        let ask = answers.ask(Get);
        (system, holds, release, answers, ask)
    });
    assert_eq!(thread_count(), others + 3, "there was no room for one more");
    drop(release);
    assert_eq!(ask.within(LONG).wait(), Ok(5), "it waits for the thread there is");
    // One that was refused does not count: there is room for it now.
    let release = hold(&holds);
    assert_eq!(answers.ask(Get).within(LONG).wait(), Ok(5), "by another thread");
    drop(release);
    assert_eq!(system.shutdown(LONG).expect("all end").balance(), 0);
    wait_for_threads(others);
}

/// Sends itself a message after a moment, and says that it has come.
struct Waits(Sender<()>);

impl Actor for Waits {
    type Message = bool;
    fn receive(&mut self, is_begin: bool, ctx: &mut Context<bool>) -> HandlerResult {
        if is_begin {
            ctx.after(Duration::from_millis(1), false);
        } else {
            self.0.send(())?;
        }
        Ok(())
    }
}

#[test]
fn the_first_timer_of_a_system_fires_though_there_is_no_thread_to_be_had() {
    if !in_child("the_first_timer_of_a_system_fires_though_there_is_no_thread_to_be_had") {
        return;
    }
    let system = System::builder("refused")
        .dispatcher("default", Dispatcher::work_stealing().threads(1))
        .build()
        .expect("no limit yet");
    let (fired, has_fired) = channel();
    // A failure drops the sender.
    let waits = system.actor("waits").on_failure(Strategy::stop());
    let waits = waits.spawn(move || Waits(fired.clone())).expect("a free name");
    let outcome = with_room_for(0, || {
        waits.tell(true);
        has_fired.recv_timeout(LONG)
    });
    assert_eq!(outcome, Ok(()), "the actor has failed");
    assert_eq!(system.shutdown(LONG).expect("all end").balance(), 0);
}

#[cfg(feature = "net")]
mod listeners {
    use super::*;
    use pointsman::net::{Connection, Listener, ReadOutcome, Ready, SocketAddress};
    use std::io::{Read, Write};
    use std::net::TcpStream;

    struct Echo(Connection);

    impl Actor for Echo {
        type Message = Ready;
        fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
            let Echo(connection) = self;
            connection.ready(ready);
            match connection.fill(1024) {
                ReadOutcome::Read(count) => {
                    let received = connection.received().to_vec();
                    connection.consume(count);
                    connection.write(&received);
                }
                ReadOutcome::Blocked => {}
                ReadOutcome::Eof | ReadOutcome::Closed(_) => ctx.stop(),
            }
            connection.flush();
            Ok(())
        }
    }

    fn connect(listener: &Listener) -> TcpStream {
        let client = TcpStream::connect(listener.local_addr().expect("TCP")).expect("it listens");
        client.set_read_timeout(Some(LONG)).expect("not zero");
        client
    }

    fn echoes(client: &mut TcpStream) -> bool {
        let mut back = [0; 2];
        client.write_all(b"hi").is_ok() && client.read_exact(&mut back).is_ok() && &back == b"hi"
    }

    /// A listener whose connections need a thread each, and an actor beside it on the only other thread.
    fn stage(builder: pointsman::SystemBuilder) -> (System, Listener, ActorRef<Call<Get>>) {
        let system = builder
            .dispatcher("default", Dispatcher::work_stealing().threads(1))
            .dispatcher("pinned", Dispatcher::pinned())
            .build()
            .expect("no limit yet");
        let listener = system
            .listener("port", SocketAddress::tcp("127.0.0.1:0"))
            .dispatcher("pinned")
            .spawn(|connection, _| Echo(connection))
            .expect("a free port");
        let answers = system.actor("answers").spawn(|| Answers).expect("a free name");
        (system, listener, answers)
    }

    #[test]
    fn a_listener_outlives_a_time_in_which_there_are_no_threads() {
        if !in_child("listeners::a_listener_outlives_a_time_in_which_there_are_no_threads") {
            return;
        }
        let (system, listener, _) = stage(System::builder("refused"));
        with_room_for(0, || {
            let mut refused = connect(&listener);
            assert_eq!(refused.read(&mut [0]).expect("an orderly end"), 0);
        });
        // It may rest still, and then accepts this one.
        assert!(echoes(&mut connect(&listener)), "the port is closed");
        assert!(listener.accept_failures() >= 1);
        assert_eq!(system.shutdown(LONG).expect("all end").balance(), 0);
    }

    #[test]
    fn a_listener_that_cannot_serve_one_connection_rests_before_it_takes_the_next() {
        if !in_child("listeners::a_listener_that_cannot_serve_one_connection_rests_before_it_takes_the_next")
        {
            return;
        }
        let clock = ManualClock::new();
        let (system, listener, answers) = stage(System::builder("refused").clock(clock.clone()));
        let holds = system.actor("holds").spawn(|| Holds).expect("a free name");
        // All of them are there before the listener gets its turn.
        let ((held, is_held), (release, released)) = (channel(), channel());
        holds.tell((held, released));
        is_held.recv_timeout(LONG).expect("it has a thread");
        let mut clients: Vec<TcpStream> = (0..3).map(|_| connect(&listener)).collect();
        with_room_for(0, || {
            drop(release);
            assert_eq!(clients[0].read(&mut [0]).expect("an orderly end"), 0);
            // By the same thread: the listener's turn is over.
            assert_eq!(answers.ask(Get).wait(), Ok(5));
        });
        assert_eq!((listener.accepted(), listener.accept_failures()), (0, 1), "the others wait");
        clock.advance(Duration::from_millis(50));
        assert!(clients[1..].iter_mut().all(echoes), "they have waited in vain");
        assert_eq!((listener.accepted(), listener.accept_failures()), (2, 1));
        assert_eq!(system.shutdown(LONG).expect("all end").balance(), 0);
    }
}
