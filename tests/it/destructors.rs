//! What panics when it is dropped, where the engine drops several of them together: each is dropped for itself, since
//! of two panics at once the second would abort the process.

use crate::support::{LONG, Soon, Stage, panic_of, run_turns, wait_until};
use pointsman::Mailbox;
use pointsman::group::{GroupConfig, RestartPolicy, WhileRestarting};
use pointsman::pattern::{Backoff, Behavior};
use pointsman::prelude::*;
use pointsman::routing::{
    ConsistentHashing, KeySink, Resizer, RoundRobin, RouteContext, RouteeLoads, Routees, RouterPlan,
    RouterSettings, RouterValue, RoutingLogic, SettingError,
};
use pointsman::shutdown::Phase;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

/// Counts its drops, and panics in each.
struct Bomb(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("planted");
    }
}

/// What makes bombs, and says how many were dropped.
#[derive(Clone, Default)]
struct Bombs(Arc<AtomicUsize>);

impl Bombs {
    fn one(&self) -> Bomb {
        Bomb(self.0.clone())
    }

    fn dropped(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn system() -> System {
    System::builder("bombs").build().expect("threads can be had")
}

#[derive(Clone)]
struct Event;

#[test]
fn subscribers_that_leave_while_they_are_told_are_dropped_each_for_itself() {
    let (system, bombs) = (system(), Bombs::default());
    let subscriptions = Arc::new(Mutex::new(Vec::new()));
    let all = subscriptions.clone();
    let _first = system.events().on(move |_: &Event| {
        let left = std::mem::take(&mut *all.lock().expect("not poisoned"));
        drop(left);
    });
    for _ in 0..2 {
        let bomb = bombs.one();
        let subscription = system.events().on(move |_: &Event| _ = &bomb);
        subscriptions.lock().expect("not poisoned").push(subscription);
    }
    // The list by which it is told is the last to hold them.
    system.events().publish(&Event);
    assert_eq!(bombs.dropped(), 2);
    system.shutdown(LONG).expect("nothing is stuck");
}

#[test]
fn subscribers_that_end_with_their_system_are_dropped_each_for_itself() {
    let (system, bombs) = (system(), Bombs::default());
    let subscribe = |_| {
        let bomb = bombs.one();
        system.events().on(move |_: &Event| _ = &bomb)
    };
    let subscriptions = [(); 2].map(subscribe);
    system.shutdown(LONG).expect("nothing is stuck");
    wait_until(|| bombs.dropped() == 2);
    drop(subscriptions);
}

#[test]
fn marks_and_sinks_of_messages_are_dropped_each_for_itself() {
    let (system, bombs) = (system(), Bombs::default());
    let (one, two) = (bombs.one(), bombs.one());
    system.dead_letters().suppress(move |_: &u8| {
        let _ = &one;
        true
    });
    system.dead_letters().suppress(move |_: &u16| {
        let _ = &two;
        true
    });
    let sink = bombs.one();
    let taken = system.dead_letters().take_by::<u32>(|_| {}, move |_, _| _ = &sink);
    // It lasts as long as the system.
    std::mem::forget(taken);
    system.shutdown(LONG).expect("nothing is stuck");
    wait_until(|| bombs.dropped() == 3);
}

#[test]
fn tasks_of_a_shutdown_that_does_not_come_are_dropped_each_for_itself() {
    let (system, bombs) = (system(), Bombs::default());
    for name in ["one", "two"] {
        let bomb = bombs.one();
        let task = move || {
            let _ = &bomb;
            Ok(())
        };
        system.coordinated_shutdown().add_task(Phase::SERVICE_STOP, name, task).expect("a known phase");
    }
    // Not by its phases.
    system.shutdown(LONG).expect("nothing is stuck");
    wait_until(|| bombs.dropped() == 2);
}

#[test]
fn conditions_of_routes_are_dropped_each_for_itself() {
    let (system, bombs) = (system(), Bombs::default());
    let topology = system.topology();
    let from = topology.local::<u32>("from").expect("a free name");
    let to = topology.local::<u8>("to").expect("a free name");
    for _ in 0..2 {
        let bomb = bombs.one();
        from.route_to(&to, move |_: &u8| {
            let _ = &bomb;
            true
        });
    }
    let outlet = from.outlet::<u8>();
    drop((from.mount(&ActorRef::from_fn(|_: u32| {})), to, outlet));
    assert_eq!(bombs.dropped(), 2);
    system.shutdown(LONG).expect("nothing is stuck");
}

struct Idle;

impl Actor for Idle {
    type Message = u32;
    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn parts_of_a_group_are_dropped_each_for_itself() {
    let (system, bombs) = (system(), Bombs::default());
    let (in_key, in_recipe, in_end) = (bombs.one(), bombs.one(), bombs.one());
    let key = move |key: &u32| {
        let _ = &in_key;
        *key
    };
    let group = system.group("group").by_key(key, move |_, _| {
        let _ = &in_recipe;
        Idle
    });
    let (in_rank, in_decode, in_apply) = (bombs.one(), bombs.one(), bombs.one());
    let rank = move |number: &u32| {
        let _ = &in_rank;
        i64::from(*number)
    };
    let decode = move |_: &GroupConfig| {
        let _ = &in_decode;
        Ok(())
    };
    let group = group.config(decode, move |_, ()| _ = &in_apply).mailbox(Mailbox::priority(rank));
    let group = group.terminate_by(move |_| {
        let _ = &in_end;
        0
    });
    let group = group.spawn().expect("sound");
    group.tell(7_u32);
    group.stop();
    group.when_ended().wait().expect("the system lives");
    drop(group);
    wait_until(|| bombs.dropped() == 6);
    system.shutdown(LONG).expect("nothing is stuck");
}

/// Panics when it is dropped, once that is wanted.
#[derive(Clone)]
struct Mine(u32, Arc<AtomicBool>);

impl PartialEq for Mine {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Mine {}

impl Hash for Mine {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Mine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        // A test that fails is not to end all of them.
        assert!(std::thread::panicking() || !self.1.load(Ordering::SeqCst), "planted");
    }
}

#[test]
fn keys_that_panic_when_they_are_dropped_keep_no_group_from_its_end() {
    let (stage, armed) = (Stage::turns(), Arc::new(AtomicBool::new(false)));
    let by = armed.clone();
    let group = stage.system.group("group").by_key(move |key: &u32| Mine(*key, by.clone()), |_, _| Idle);
    let group = group.spawn().expect("sound");
    for key in 0..100 {
        group.mount(Mine(key, armed.clone())).expect("it can be created");
    }
    run_turns();
    armed.store(true, Ordering::SeqCst);
    group.terminate("the day is over");
    run_turns();
    assert!(group.is_empty());
    assert!(group.head().is_closed());
}

#[test]
fn keys_that_panic_when_they_are_dropped_keep_nobody_from_being_given_up() {
    let (stage, armed) = (Stage::turns(), Arc::new(AtomicBool::new(false)));
    let by = armed.clone();
    let hour = Duration::from_secs(3600);
    let group = stage
        .system
        .group("group")
        .by_key(
            move |key: &u32| Mine(*key, by.clone()),
            |_: &mut Context<u32>, _: &Mine| Err::<Idle, _>(Failure::msg("never")),
        )
        .restart(RestartPolicy::on_failure(hour, hour))
        .while_restarting(WhileRestarting::Refuse)
        .spawn()
        .expect("sound");
    for key in 0..100 {
        group.mount(Mine(key, armed.clone())).expect("it can be created");
    }
    run_turns();
    armed.store(true, Ordering::SeqCst);
    group.terminate("the day is over");
    run_turns();
    assert!(group.is_empty());
    assert!(group.head().is_closed());
}

#[test]
fn parts_of_a_backoff_are_dropped_each_for_itself() {
    let (system, bombs) = (system(), Bombs::default());
    let (in_child, in_handle, in_last) = (bombs.one(), bombs.one(), bombs.one());
    let second = Duration::from_secs(1);
    let backoff = Backoff::on_stop(second, second).without_child(move |_: u32| _ = &in_handle);
    let backoff = backoff.child(move |child| {
        let _ = &in_child;
        child
    });
    let backoff = backoff.last_message(move |_: &u32| {
        let _ = &in_last;
        false
    });
    let recipe = |_: &mut Context<u32>| Idle;
    let supervisor = system.actor("supervisor").spawn_backoff(backoff, recipe).expect("sound");
    supervisor.stop();
    supervisor.when_ended().wait().expect("the system lives");
    drop(supervisor);
    wait_until(|| bombs.dropped() == 3);
    system.shutdown(LONG).expect("nothing is stuck");
}

#[test]
fn mailboxes_with_names_are_dropped_each_for_itself() {
    let bombs = Bombs::default();
    let (in_rank, in_control, in_lane) = (bombs.one(), bombs.one(), bombs.one());
    let ranks = Mailbox::priority(move |number: &u32| {
        let _ = &in_rank;
        i64::from(*number)
    });
    let control = Mailbox::control_aware(move |number: &u32| {
        let _ = &in_control;
        *number == 0
    });
    let lanes = Mailbox::lanes(2, move |number: &u32| {
        let _ = &in_lane;
        *number as usize
    });
    let builder = System::builder("bombs").mailbox("ranks", ranks).mailbox("control", control);
    let system = builder.mailbox("lanes", lanes).build().expect("threads can be had");
    system.shutdown(LONG).expect("nothing is stuck");
    wait_until(|| bombs.dropped() == 3);
}

#[derive(Clone)]
struct Arm;

impl Request for Arm {
    type Reply = Bomb;
}

/// Answers, or keeps what it is asked; and tells when that is done.
struct Armourer {
    bombs: Option<Bombs>,
    kept: Option<Call<Arm>>,
    done: Sender<()>,
}

impl Actor for Armourer {
    type Message = Call<Arm>;
    fn receive(&mut self, call: Call<Arm>, _: &mut Context<Call<Arm>>) -> HandlerResult {
        match &self.bombs {
            Some(bombs) => call.answer(|_| bombs.one()),
            None => self.kept = Some(call),
        }
        self.done.send(())?;
        Ok(())
    }
}

#[test]
fn replies_that_nobody_takes_are_dropped_each_for_itself() {
    let (system, bombs) = (system(), Bombs::default());
    let topology = system.topology();
    let from = topology.local::<u32>("from").expect("a free name");
    let (sender, done) = channel();
    let armourer = |name: &str, bombs: Option<Bombs>| {
        let done = sender.clone();
        let recipe = move || Armourer { bombs: bombs.clone(), kept: None, done: done.clone() };
        let actor = system.spawn(recipe).expect("room");
        let group = topology.local::<Call<Arm>>(name).expect("a free name");
        from.route_all_to::<Call<Arm>, _>(&group);
        let _ = group.mount(&actor);
        actor
    };
    armourer("one", Some(bombs.clone()));
    armourer("two", Some(bombs.clone()));
    let keeps = armourer("three", None);
    let outlet = from.outlet::<Call<Arm>>();
    let _ = from.mount(&ActorRef::from_fn(|_: u32| {}));
    let answers = outlet.request(Arm).all();
    (0..3).for_each(|_| done.soon().expect("each is asked"));
    drop(answers);
    assert_eq!(bombs.dropped(), 0, "there is one more whose answer may come");
    keeps.stop();
    keeps.when_ended().wait().expect("the system lives");
    assert_eq!(bombs.dropped(), 2);
    system.shutdown(LONG).expect("nothing is stuck");
}

#[test]
fn routing_logics_with_names_are_dropped_each_for_itself() {
    let bombs = Bombs::default();
    let mut builder = System::builder("bombs");
    for name in ["one", "two"] {
        let bomb = bombs.one();
        builder = builder.routing_logic::<u32, _>(name, move |_: &RouterSettings| {
            let _ = &bomb;
            Ok(RoundRobin::new())
        });
    }
    let system = builder.build().expect("threads can be had");
    system.shutdown(LONG).expect("nothing is stuck");
    wait_until(|| bombs.dropped() == 2);
}

/// A decider of failures that holds a bomb.
fn judge(bombs: &Bombs) -> Strategy {
    let bomb = bombs.one();
    Strategy::decide(move |_| {
        let _ = &bomb;
        Directive::Stop
    })
}

#[test]
fn the_parts_of_a_system_that_is_not_built_are_dropped_each_for_itself() {
    let bombs = Bombs::default();
    let bomb = bombs.one();
    let logic = move |_: &RouterSettings| {
        let _ = &bomb;
        Ok(RoundRobin::new())
    };
    drop(System::builder("bombs").routing_logic::<u32, _>("logic", logic).supervision(judge(&bombs)));
    assert_eq!(bombs.dropped(), 2);
}

/// A logic, or a resizer, that holds a bomb.
struct Armed(#[allow(dead_code)] Bomb); // for its drop

impl RoutingLogic<u32> for Armed {
    fn select(&self, _: &u32, _: &Routees<u32>, _: &RouteContext) -> Option<usize> {
        Some(0)
    }
}

impl Resizer for Armed {
    fn is_time_for_resize(&self, _: u64) -> bool {
        false
    }
    fn resize(&self, _: &RouteeLoads) -> isize {
        0
    }
}

fn pool(system: &System) -> RouterPlan<u32, RoundRobin> {
    system.router("pool").pool(1, |_: &mut Context<u32>| Idle)
}

/// Has a router live and end of which two parts hold bombs.
fn run_router<L: RoutingLogic<u32>>(make: impl FnOnce(&System, &Bombs) -> RouterPlan<u32, L>) {
    let (system, bombs) = (system(), Bombs::default());
    let router = make(&system, &bombs).spawn().expect("sound");
    router.tell(7_u32);
    // Its head is the last to hold them.
    drop(router);
    system.shutdown(LONG).expect("nothing is stuck");
    wait_until(|| bombs.dropped() == 2);
}

#[test]
fn the_recipe_and_the_decider_of_a_router_are_dropped_each_for_itself() {
    run_router(|system, bombs| {
        let bomb = bombs.one();
        let recipe = move |_: &mut Context<u32>| {
            let _ = &bomb;
            Idle
        };
        system.router("pool").pool(1, recipe).on_failure(judge(bombs))
    });
}

#[test]
fn the_farewell_and_the_decider_of_a_router_are_dropped_each_for_itself() {
    run_router(|system, bombs| {
        let bomb = bombs.one();
        let farewell = move || {
            let _ = &bomb;
            0
        };
        pool(system).on_failure(judge(bombs)).farewell(farewell)
    });
}

#[test]
fn the_logic_and_the_resizer_of_a_router_are_dropped_each_for_itself() {
    run_router(|system, bombs| pool(system).logic(Armed(bombs.one())).resizer(Armed(bombs.one())));
}

#[test]
fn the_parts_of_a_router_that_is_not_created_are_dropped_each_for_itself() {
    let (system, bombs) = (system(), Bombs::default());
    let (in_controller, in_predicate) = (bombs.one(), bombs.one());
    let controller = move |_: &_, _: &mut Context<u32>| {
        let _ = &in_controller;
        Idle
    };
    let is_for_all = move |_: &u32| {
        let _ = &in_predicate;
        true
    };
    drop(pool(&system).broadcast_if(is_for_all).controller(controller));
    assert_eq!(bombs.dropped(), 2);
    system.shutdown(LONG).expect("nothing is stuck");
}

#[test]
fn the_two_functions_of_consistent_hashing_are_dropped_each_for_itself() {
    let bombs = Bombs::default();
    let (in_key, in_hash) = (bombs.one(), bombs.one());
    let key = move |number: &u32, sink: &mut KeySink| {
        let _ = &in_key;
        sink.feed(number);
    };
    let hash = move |bytes: &[u8]| {
        let _ = &in_hash;
        bytes.len() as u64
    };
    let system = system();
    let pool = system.router("pool").pool(1, |_: &mut Context<u32>| Idle);
    let router = pool.logic(ConsistentHashing::by(key).hasher(hash)).spawn().expect("sound");
    router.tell(7_u32);
    drop(router);
    system.shutdown(LONG).expect("nothing is stuck");
    wait_until(|| bombs.dropped() == 2);
}

#[test]
fn handlers_of_a_behavior_are_dropped_each_for_itself() {
    let bombs = Bombs::default();
    let handler = || {
        let bomb = bombs.one();
        Behavior::<Idle>::total(move |_, _, _| {
            let _ = &bomb;
            Ok(())
        })
    };
    drop(handler().or_behave(&handler()));
    assert_eq!(bombs.dropped(), 2);
}

/// What is asked of [`Safe`]. Its clones panic when they are dropped, where the first of it does not.
struct Unlock(Option<Bomb>, Bombs);

impl Clone for Unlock {
    fn clone(&self) -> Self {
        Unlock(Some(self.1.one()), self.1.clone())
    }
}

impl Request for Unlock {
    type Reply = Arc<()>;
}

/// Answers by its own, which is counted.
struct Safe(Arc<()>);

impl Actor for Safe {
    type Message = Call<Unlock>;
    fn receive(&mut self, call: Call<Unlock>, _: &mut Context<Call<Unlock>>) -> HandlerResult {
        // The clone goes to the asker, or is what it keeps.
        call.answer(|mut unlock| {
            std::mem::forget(unlock.0.take());
            self.0.clone()
        });
        Ok(())
    }
}

/// How many hold what is in a safe while it is asked by `ask` for it and nothing is left of the answer.
fn held_after(ask: impl Fn(&ActorRef<Call<Unlock>>, Unlock)) -> (usize, usize) {
    let (system, bombs, held) = (system(), Bombs::default(), Arc::new(()));
    let kept = held.clone();
    let safe = system.spawn(move || Safe(kept.clone())).expect("room");
    for _ in 0..10 {
        ask(&safe, Unlock(None, bombs.clone()));
    }
    safe.stop();
    safe.when_ended().wait().expect("the system lives");
    system.shutdown(LONG).expect("nothing is stuck");
    (bombs.dropped(), Arc::strong_count(&held))
}

/// Polls until it is ready.
fn poll_to_end(mut future: impl Future + Unpin) {
    let mut cx = std::task::Context::from_waker(Waker::noop());
    while Pin::new(&mut future).poll(&mut cx).is_pending() {
        std::thread::yield_now();
    }
}

#[test]
fn a_reply_is_dropped_though_the_request_that_was_kept_panics() {
    let waited = held_after(|safe, unlock| {
        let answer = safe.ask_or_back(unlock);
        assert_eq!(panic_of(move || drop(answer.wait())), "planted");
    });
    assert_eq!(waited, (10, 1), "by `wait`");
    let polled = held_after(|safe, unlock| {
        let answer = safe.ask_or_back(unlock);
        assert_eq!(panic_of(move || poll_to_end(answer)), "planted");
    });
    assert_eq!(polled, (10, 1), "by `poll`");
}

enum ThiefMsg {
    Ask(ActorRef<Call<Unlock>>, Unlock),
    Outcome(bool),
}

/// Asks a safe for what is in it, and says whether it has got that.
struct Thief(Sender<bool>);

impl Actor for Thief {
    type Message = ThiefMsg;
    fn receive(&mut self, message: ThiefMsg, ctx: &mut Context<ThiefMsg>) -> HandlerResult {
        match message {
            ThiefMsg::Ask(safe, unlock) => {
                ctx.ask_or_back(&safe, unlock, |outcome| ThiefMsg::Outcome(outcome.is_ok()));
            }
            ThiefMsg::Outcome(is_there) => self.0.send(is_there)?,
        }
        Ok(())
    }
}

#[test]
fn an_actor_gets_its_answer_though_the_request_that_was_kept_panics() {
    let (sender, outcomes) = channel();
    let asked = held_after(|safe, unlock| {
        let (system, sender) = (system(), sender.clone());
        let thief = system.spawn(move || Thief(sender.clone())).expect("room");
        thief.tell(ThiefMsg::Ask(safe.clone(), unlock));
        assert_eq!(outcomes.soon(), Ok(true), "the answer has come");
        system.shutdown(LONG).expect("nothing is stuck");
    });
    assert_eq!(asked, (10, 1));
}

/// A recipe for an idle actor that holds a bomb.
fn armed_recipe(bombs: &Bombs) -> impl Fn(&mut Context<u32>) -> Idle + Send + Sync + use<> {
    let bomb = bombs.one();
    move |_| {
        let _ = &bomb;
        Idle
    }
}

#[test]
fn who_is_refused_an_actor_is_told_why_though_the_recipe_panics() {
    let (system, bombs) = (system(), Bombs::default());
    let handle = SystemRef::clone(&system);
    system.actor("taken").spawn(|| Idle).expect("the name is free");
    let second = Duration::from_secs(1);
    let refused = |name: &str| -> [Option<SpawnError>; 7] {
        let armed = || armed_recipe(&bombs);
        let backoff = || Backoff::on_stop(second, second);
        let key = {
            let bomb = bombs.one();
            move |key: &u32| {
                let _ = &bomb;
                *key
            }
        };
        let group = {
            let recipe = armed();
            move |ctx: &mut Context<u32>, _: &u32| recipe(ctx)
        };
        [
            handle.actor(name).spawn_with(armed()).err(),
            handle.actor(name).on_failure(judge(&bombs)).mailbox("small").spawn_with(armed()).err(),
            handle.actor(name).spawn_backoff(backoff(), armed()).err(),
            handle.router(name).pool(1, armed()).spawn().err(),
            handle.router(name).balancing_pool(1, armed()).spawn().err(),
            handle.group(name).by_key(key, group).spawn().err(),
            handle.router(name).pool(1, |_| Idle).logic(Armed(bombs.one())).spawn().err(),
        ]
    };
    // A name that is no name, one that is taken, and a system that is no more.
    for (round, name) in ["gr/eeter", "taken", "late"].into_iter().enumerate() {
        if name == "late" {
            system.stop();
            handle.wait_until_ended(LONG).expect("nothing is stuck");
        }
        for (at, error) in refused(name).into_iter().enumerate() {
            assert!(error.is_some(), "{name}: {at}");
        }
        assert_eq!(bombs.dropped(), 9 * (round + 1), "{name}");
    }
    system.shutdown(LONG).expect("nothing is stuck");
}

#[test]
fn who_is_too_late_for_a_callback_is_told_so_though_it_panics() {
    let (system, bombs) = (system(), Bombs::default());
    let handle = SystemRef::clone(&system);
    system.shutdown(LONG).expect("nothing is stuck");
    let bomb = bombs.one();
    let refused = handle.on_termination(move || _ = &bomb);
    assert!(refused.is_err());
    assert_eq!(bombs.dropped(), 1);
}

/// A logic that no router can have.
struct Unsound(#[allow(dead_code)] Bomb); // for its drop

impl RoutingLogic<u32> for Unsound {
    fn select(&self, _: &u32, _: &Routees<u32>, _: &RouteContext) -> Option<usize> {
        None
    }
    fn check(&self) -> Result<(), SettingError> {
        Err(SettingError::new("soundness", "none", "some"))
    }
}

#[test]
fn who_is_refused_what_holds_code_is_told_why_though_that_panics() {
    let (system, bombs) = (system(), Bombs::default());
    let task = |bombs: &Bombs| {
        let bomb = bombs.one();
        move || _ = &bomb
    };
    let work = |bombs: &Bombs| {
        let bomb = bombs.one();
        move || {
            let _ = &bomb;
            Ok(())
        }
    };
    let shutdown = system.coordinated_shutdown();
    assert!(shutdown.add_task("no-such-phase", "task", work(&bombs)).is_err());
    assert!(shutdown.add_task(Phase::SERVICE_STOP, "", work(&bombs)).is_err());
    let scheduler = system.task_timer().expect("there is a default dispatcher");
    assert!(scheduler.once(Duration::MAX, task(&bombs)).is_err());
    assert!(scheduler.fixed_rate(LONG, Duration::ZERO, task(&bombs)).is_err());
    assert!(RouterValue::new(&system, Unsound(bombs.one())).is_err());
    let refused = system.router("router").pool(1, |_: &mut Context<u32>| Idle).logic(Unsound(bombs.one()));
    assert!(refused.spawn().is_err());
    assert_eq!(bombs.dropped(), 6);
    // A second way for messages that are not to be copied.
    let topology = system.topology();
    let local = |name: &str| topology.local::<u32>(name).expect("a free name");
    let (from, one, two) = (local("from"), local("one"), local("two"));
    assert!(from.route_only_to(&one, |_: &u32| true).is_ok());
    let bomb = bombs.one();
    let condition = move |_: &u32| {
        let _ = &bomb;
        true
    };
    assert!(from.route_only_to(&two, condition).is_err());
    assert_eq!(bombs.dropped(), 7);
    system.stop();
    system.wait_until_ended(LONG).expect("nothing is stuck");
    assert!(scheduler.once(Duration::ZERO, task(&bombs)).is_err());
    assert!(scheduler.once(LONG, task(&bombs)).is_err());
    assert_eq!(bombs.dropped(), 9);
    drop((from, one, two));
    system.shutdown(LONG).expect("nothing is stuck");
}

#[test]
fn who_is_refused_the_actor_of_a_key_is_told_why_though_the_key_panics() {
    let (stage, armed) = (Stage::turns(), Arc::new(AtomicBool::new(false)));
    let by = armed.clone();
    let group = stage.system.group("group").by_key(move |key: &u32| Mine(*key, by.clone()), |_, _| Idle);
    let group = group.spawn().expect("sound");
    group.stop_spawning();
    let key = Mine(1, armed.clone());
    armed.store(true, Ordering::SeqCst);
    assert!(group.mount(key).is_err());
    armed.store(false, Ordering::SeqCst);
    group.stop();
    run_turns();
    assert!(group.head().is_closed());
}

#[cfg(feature = "net")]
#[test]
fn who_is_refused_a_listener_is_told_why_though_the_recipe_panics() {
    use pointsman::net::SocketAddress;
    let (system, bombs) = (system(), Bombs::default());
    let make = || {
        let bomb = bombs.one();
        move |_: pointsman::net::Connection, _: &mut Context<pointsman::net::Ready>| {
            let _ = &bomb;
            Deaf
        }
    };
    let nowhere = system.listener("no/name", SocketAddress::tcp("127.0.0.1:0"));
    assert!(nowhere.spawn(make()).is_err());
    let unknown = system.listener("listener", SocketAddress::tcp("127.0.0.1:0")).dispatcher("unknown");
    assert!(unknown.spawn(make()).is_err());
    assert_eq!(bombs.dropped(), 2);
    system.shutdown(LONG).expect("nothing is stuck");
}

/// Hears nothing of its connection.
#[cfg(feature = "net")]
struct Deaf;

#[cfg(feature = "net")]
impl Actor for Deaf {
    type Message = pointsman::net::Ready;
    fn receive(&mut self, _: pointsman::net::Ready, _: &mut Context<pointsman::net::Ready>) -> HandlerResult {
        Ok(())
    }
}
