//! Waiting until a system with threads is quiet: exact, limited, and with an error that names who is busy.

use crate::support::{LONG, Role, Tell, act};
use pointsman::Terminated;
use pointsman::prelude::*;
use pointsman::testkit::{TestSystem, WaitError};
use pointsman::time::ManualClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Counts without ordering anything: a look that does not show what the handlers did shows here.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU64>);

impl Count {
    fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn threads() -> System {
    System::builder("quiet")
        .dispatcher("default", Dispatcher::work_stealing().threads(3).throughput(2))
        .dispatcher("blocking", Dispatcher::blocking().thread_range(1..=4))
        .build()
        .expect("the machine has threads")
}

/// Sends a potato to a neighbour, until it has been handed on often enough.
struct Player {
    ring: Arc<std::sync::OnceLock<Vec<ActorRef<Potato>>>>,
    place: usize,
    caught: Count,
}

/// How often it is handed on yet, and how far each time.
struct Potato {
    left: u64,
    step: usize,
}

impl Actor for Player {
    type Message = Potato;
    fn receive(&mut self, potato: Potato, _: &mut Context<Potato>) -> HandlerResult {
        self.caught.one_more();
        let ring = self.ring.get().expect("set before the first one");
        if potato.left > 0 {
            let next = (self.place + potato.step) % ring.len();
            ring[next].tell(Potato { left: potato.left - 1, step: potato.step });
        }
        Ok(())
    }
}

/// Actors that only lengthen a walk over all of them, under names between those of two players.
fn crowd(system: &System, log: &std::sync::mpsc::Sender<String>) {
    for number in 0..CROWD {
        system.actor(&format!("crowd-{number:03}")).spawn(Role::new("idle", log).recipe()).unwrap();
    }
}

const CROWD: usize = 300;

/// At any moment one of the players is busy, and another one the moment after: while a walk over all actors passes the
/// crowd in their midst, the potato goes round hundreds of times. A look that takes the books or one walk for the
/// truth is wrong within the first rounds.
#[test]
fn a_message_that_is_handed_on_and_on_is_not_overlooked() {
    const ROUNDS: u64 = 40;
    const CATCHES: u64 = 10_001;
    let system = threads();
    let (log, _notes) = channel();
    let (caught, ring) = (Count::default(), Arc::new(std::sync::OnceLock::new()));
    let players = ["a", "b", "y", "z"].iter().enumerate().map(|(place, name)| {
        let (ring, caught) = (ring.clone(), caught.clone());
        let player = move || Player { ring: ring.clone(), place, caught: caught.clone() };
        system.actor(name).spawn(player).unwrap()
    });
    let players: Vec<_> = players.collect();
    crowd(&system, &log);
    assert!(ring.set(players.clone()).is_ok());
    system.wait_until_quiet(LONG).unwrap();
    for round in 1..=ROUNDS {
        // In the order of a walk, across, and against it.
        let step = [1, 2, 3][round as usize % 3];
        players[round as usize % 4].tell(Potato { left: CATCHES - 1, step });
        system.wait_until_quiet(LONG).unwrap();
        assert_eq!(caught.get(), round * CATCHES, "round {round}");
    }
    assert_eq!(system.shutdown(LONG).unwrap().handled, ROUNDS * CATCHES);
}

/// Watches the next one in a chain, and ends with it. No message is sent at all.
struct Link {
    next: Option<AnyActorRef>,
    ended: Count,
}

impl Actor for Link {
    type Message = ();
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        if let Some(next) = &self.next {
            ctx.watch(next)?;
        }
        Ok(())
    }
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn terminated(&mut self, _: Terminated, ctx: &mut Context<()>) -> HandlerResult {
        ctx.stop();
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<()>) {
        self.ended.one_more();
    }
}

#[test]
fn a_chain_of_ends_that_sends_no_message_is_not_overlooked() {
    const LINKS: u64 = 200;
    const ROUNDS: u64 = 20;
    let system = threads();
    let (log, _notes) = channel();
    crowd(&system, &log);
    for round in 0..ROUNDS {
        let ended = Count::default();
        let mut links: Vec<ActorRef<()>> = Vec::new();
        for _ in 0..LINKS {
            let (next, count) = (links.last().and_then(ActorRef::untyped), ended.clone());
            let link = move || Link { next: next.clone(), ended: count.clone() };
            links.push(system.spawn(link).unwrap());
        }
        // All have begun to watch.
        system.wait_until_quiet(LONG).unwrap();
        assert_eq!(ended.get(), 0, "round {round}");
        links[0].stop();
        system.wait_until_quiet(LONG).unwrap();
        assert_eq!(ended.get(), LINKS, "round {round}");
    }
    system.shutdown(LONG).unwrap();
}

/// Makes as much work for its pool as it is told.
struct Splitter {
    pool: Arc<std::sync::OnceLock<ActorRef<u32>>>,
    handled: Count,
}

impl Actor for Splitter {
    type Message = u32;
    fn receive(&mut self, depth: u32, _: &mut Context<u32>) -> HandlerResult {
        self.handled.one_more();
        if depth > 0 {
            let pool = self.pool.get().expect("set before the first message");
            pool.tell(depth - 1);
            pool.tell(depth - 1);
        }
        Ok(())
    }
}

#[test]
fn what_waits_in_the_queue_of_a_pool_is_not_overlooked() {
    let system = threads();
    let (known, handled) = (Arc::new(std::sync::OnceLock::new()), Count::default());
    let (pool, count) = (known.clone(), handled.clone());
    let recipe = move |_: &mut Context<u32>| Splitter { pool: pool.clone(), handled: count.clone() };
    let splitters = system.router("splitters").balancing_pool(4, recipe).spawn().unwrap();
    assert!(known.set(splitters.to_ref()).is_ok());
    for round in 1..=100 {
        splitters.tell(6u32);
        system.wait_until_quiet(LONG).unwrap();
        assert_eq!(handled.get(), round * 127);
    }
    system.shutdown(LONG).unwrap();
}

#[test]
fn what_a_clock_moved_by_hand_sets_off_has_happened() {
    let clock = ManualClock::new();
    let system = System::builder("quiet").clock(clock.clone()).build().unwrap();
    let (log, _notes) = channel();
    let ticks = Count::default();
    let actor = system.actor("a").spawn(Role::new("a", &log).recipe()).unwrap();
    let count = ticks.clone();
    act(&actor, move |_, ctx| {
        ctx.every(Duration::from_secs(1), move || {
            let count = count.clone();
            Tell::new(move |_, _| {
                count.one_more();
                Ok(())
            })
        });
        Ok(())
    });
    // The timer has been set; that it waits does not count.
    system.wait_until_quiet(LONG).unwrap();
    for second in 1..=50 {
        clock.advance(Duration::from_secs(1));
        system.wait_until_quiet(LONG).unwrap();
        assert_eq!(ticks.get(), second);
    }
    system.shutdown(LONG).unwrap();
}

/// A handler that is held until the other end is dropped.
fn hold(actor: &ActorRef<Tell>) -> (Receiver<()>, std::sync::mpsc::Sender<()>) {
    let ((entered, is_in), (go, gone)) = (channel(), channel::<()>());
    act(actor, move |_, _| {
        entered.send(())?;
        let _ = gone.recv();
        Ok(())
    });
    (is_in, go)
}

#[test]
fn the_error_names_who_is_busy_and_what_waits_for_them() {
    let system = threads();
    let (log, _notes) = channel();
    let [slow, idle] = ["slow", "idle"]
        .map(|name| system.actor(name).dispatcher("blocking").spawn(Role::new(name, &log).recipe()).unwrap());
    let (is_in, go) = hold(&slow);
    is_in.recv_timeout(LONG).unwrap();
    act(&slow, |_, _| Ok(()));
    act(&slow, |_, _| Ok(()));
    act(&idle, |_, _| Ok(()));
    let WaitError::Busy { running, more, .. } = system.wait_until_quiet(Duration::ZERO).unwrap_err() else {
        panic!("the test has a thread of its own")
    };
    assert!(running.contains(&("/user/slow".to_owned(), 2)), "{running:?}");
    assert_eq!(more, 0);
    let error = system.wait_until_quiet(Duration::from_millis(1)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("/user/slow runs with 2 queued"), "{text}");
    assert!(
        text.ends_with("look for actors that keep each other busy, or for a handler that waits"),
        "{text}"
    );
    drop(go);
    system.wait_until_quiet(LONG).unwrap();
    assert_eq!(slow.queued(), Some(0));
    system.shutdown(LONG).unwrap();
}

#[test]
fn an_actor_that_is_suspended_with_messages_is_not_quiet() {
    let system = threads();
    let (log, _notes) = channel();
    let role = Role::new("parent", &log);
    let ((tell, told), (judge, verdict)) = (channel(), channel::<()>());
    let verdict = std::sync::Mutex::new(verdict);
    let strategy = Strategy::decide_for(move |_, _| {
        let _ = verdict.lock().unwrap().recv();
        Directive::Resume
    });
    let parent =
        system.actor("parent").dispatcher("blocking").spawn(role.strategy(move || strategy.clone()).recipe());
    let (child_role, parent) = (Role::new("child", &log), parent.unwrap());
    act(&parent, move |_, ctx| {
        tell.send(ctx.actor("child").dispatcher("blocking").spawn(child_role.recipe())?)?;
        Ok(())
    });
    let child = told.recv_timeout(LONG).unwrap();
    let (is_in, go) = hold(&child);
    is_in.recv_timeout(LONG).unwrap();
    act(&child, |_, _| Err(Failure::msg("planted")));
    act(&child, |_, _| Ok(()));
    drop(go);
    // The child has failed when it takes no messages for now.
    while child.load() != pointsman::actor::RecipientLoad::Suspended {
        std::thread::yield_now();
    }
    let text = system.wait_until_quiet(Duration::ZERO).unwrap_err().to_string();
    assert!(text.contains("/user/parent/child"), "{text}");
    drop(judge);
    system.wait_until_quiet(LONG).unwrap();
    assert_eq!(child.queued(), Some(0));
    system.shutdown(LONG).unwrap();
}

#[test]
fn a_handler_cannot_wait_for_itself() {
    let system = threads();
    let (log, _notes) = channel();
    let (told, error) = channel();
    for dispatcher in ["default", "blocking"] {
        let (actor, handle, told) = (Role::new("a", &log), SystemRef::clone(&system), told.clone());
        let actor = system.actor(dispatcher).dispatcher(dispatcher).spawn(actor.recipe()).unwrap();
        act(&actor, move |_, _| {
            told.send(handle.wait_until_quiet(LONG))?;
            Ok(())
        });
        assert_eq!(error.recv_timeout(LONG).unwrap(), Err(WaitError::OwnThread), "on {dispatcher}");
    }
    assert!(WaitError::OwnThread.to_string().contains("call it from the test"));
    system.shutdown(LONG).unwrap();
}

#[test]
fn on_a_test_system_turns_are_run_and_nothing_is_waited_for() {
    TestSystem::for_seeds(10, |system| {
        let (log, _notes) = channel();
        let [first, second] =
            ["first", "second"].map(|name| system.actor(name).spawn(Role::new(name, &log).recipe()).unwrap());
        let (done, to) = (Count::default(), second.clone());
        let count = done.clone();
        act(&first, move |_, _| {
            act(&to, move |_, _| {
                count.one_more();
                Ok(())
            });
            Ok(())
        });
        system.wait_until_quiet(Duration::ZERO).unwrap();
        assert_eq!(done.get(), 1);
        system.allow_running();
    });
    // Never quiet, and said so at once.
    let system = TestSystem::builder().turn_limit(100).build();
    let (log, _notes) = channel();
    let actor = system.actor("restless").spawn(Role::new("restless", &log).recipe()).unwrap();
    fn again(ctx: &mut Context<Tell>) {
        ctx.me().tell(Tell::new(|_, ctx| {
            again(ctx);
            Ok(())
        }));
    }
    act(&actor, |_, ctx| {
        again(ctx);
        Ok(())
    });
    let text = system.wait_until_quiet(LONG).unwrap_err().to_string();
    assert!(text.contains("/user/restless runs with 1 queued"), "{text}");
    actor.stop();
    system.wait_until_quiet(LONG).unwrap();
    system.finish();
}

#[test]
fn a_system_that_has_ended_is_quiet() {
    let system = threads();
    let handle = SystemRef::clone(&system);
    system.shutdown(LONG).unwrap();
    assert_eq!(handle.wait_until_quiet(Duration::ZERO), Ok(()));
}
