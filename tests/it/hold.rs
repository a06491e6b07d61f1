//! Holds: the messages of an actor wait for a future, and control does not.

use crate::support::*;
use pointsman::actor::RecipientLoad;
use pointsman::prelude::*;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll, Waker};
use std::time::Duration;

/// A future that the test completes.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<(Option<u32>, Option<Waker>)>>, Arc<AtomicUsize>);

impl Gate {
    fn open(&self, value: u32) {
        self.0.lock().unwrap().0 = Some(value);
        let waker = self.0.lock().unwrap().1.clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
    fn polls(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }
}

impl Future for Gate {
    type Output = u32;
    fn poll(self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<u32> {
        let mut state = self.0.lock().unwrap();
        state.1 = Some(cx.waker().clone());
        self.1.fetch_add(1, Ordering::SeqCst);
        state.0.map_or(Poll::Pending, Poll::Ready)
    }
}

/// Tells when it is dropped.
struct Told(Sender<&'static str>, &'static str);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

/// Makes a puppet hold for `gate`, and note the value then.
fn hold_for(puppet: &ActorRef<Tell>, gate: &Gate) {
    let gate = gate.clone();
    act(puppet, move |_, ctx| {
        ctx.hold(gate, |puppet: &mut Puppet, value, _| {
            puppet.note(value);
            Ok(())
        });
        Ok(())
    });
}

#[test]
fn messages_wait_in_their_order_and_control_does_not() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let watcher = stage.spawn(&stage.role("w"));
    let gate = Gate::default();
    hold_for(&actor, &gate);
    note(&actor, "one");
    note(&actor, "two");
    wait_until(|| gate.polls() == 1);
    // A watch is control.
    watch(&watcher, &actor);
    assert_eq!(actor.load(), RecipientLoad::Busy { queued: 2 });
    let ledger = stage.system.ledger();
    assert_eq!((ledger.queued, ledger.balance()), (2, 0), "{ledger}");
    let mut notes = [stage.note(), stage.note()];
    notes.sort();
    assert_eq!(notes, ["a Started 1", "w Started 1"]);
    gate.open(7);
    stage.expect(&["a 7", "a one", "a two"]);
    assert_eq!(gate.polls(), 2);
    assert_eq!(query(&actor, |_, ctx| ctx.is_holding()), Ok(false));
    stage.end(&["a Stopped 1", "w Stopped 1"]);
}

#[test]
fn children_go_on_and_a_tick_waits() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let of = child(&actor, &stage.role("c"));
    let gate = Gate::default();
    act(&actor, |_, ctx| {
        ctx.after(Duration::from_secs(1), noting("tick"));
        Ok(())
    });
    hold_for(&actor, &gate);
    note(&of, "goes on");
    stage.expect(&["a Started 1", "c Started 1", "c goes on"]);
    wait_until(|| gate.polls() == 1);
    stage.clock.advance(Duration::from_secs(2));
    run_turns();
    assert!(stage.notes.try_recv().is_err());
    gate.open(1);
    stage.expect(&["a 1", "a tick"]);
    stage.end(&["a Stopped 1", "c Stopped 1"]);
}

#[test]
fn holds_run_one_after_the_other_those_that_begin_in_between_last() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let [first, second, third] = [(); 3].map(|()| Gate::default());
    let (one, two, three) = (first.clone(), second.clone(), third.clone());
    act(&actor, move |_, ctx| {
        ctx.hold(one, move |puppet: &mut Puppet, value, ctx| {
            puppet.note(value);
            ctx.hold(three, |puppet: &mut Puppet, value, _| {
                puppet.note(value);
                Ok(())
            });
            Ok(())
        });
        ctx.hold(two, |puppet: &mut Puppet, value, _| {
            puppet.note(value);
            Ok(())
        });
        assert!(ctx.is_holding());
        Ok(())
    });
    note(&actor, "message");
    stage.expect(&["a Started 1"]);
    wait_until(|| first.polls() == 1);
    assert_eq!((second.polls(), third.polls()), (0, 0));
    third.open(3);
    second.open(2);
    first.open(1);
    stage.expect(&["a 1", "a 2", "a 3", "a message"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_hold_that_begins_in_started_comes_before_the_first_message() {
    let stage = Stage::turns();
    let gate = Gate::default();
    let held = gate.clone();
    let role = stage.role("a").started(move |ctx| {
        ctx.hold(held.clone(), |puppet: &mut Puppet, value, _| {
            puppet.note(value);
            Ok(())
        });
    });
    let actor = stage.spawn(&role);
    note(&actor, "message");
    stage.expect(&["a Started 1"]);
    wait_until(|| gate.polls() == 1);
    gate.open(1);
    stage.expect(&["a 1", "a message"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_stop_drops_the_future_and_then_and_the_messages_are_dead_letters() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let gate = Gate::default();
    let (sender, dropped) = channel();
    let (polled, future, then) = (gate.clone(), Told(sender.clone(), "future"), Told(sender, "then"));
    act(&actor, move |_, ctx| {
        let held = async move {
            let _future = future;
            polled.await
        };
        ctx.hold(held, move |_: &mut Puppet, _, _| {
            drop(then);
            panic!("it must not run");
        });
        Ok(())
    });
    note(&actor, "never");
    stage.expect(&["a Started 1"]);
    wait_until(|| gate.polls() == 1);
    actor.stop();
    stage.expect(&["a Stopped 1"]);
    assert_eq!([dropped.soon(), dropped.soon()], [Ok("future"), Ok("then")]);
    wait_until(|| stage.system.ledger().dead_lettered == 1);
    // The waker outlives the actor.
    gate.open(1);
    stage.end(&[]);
}

#[test]
fn a_panic_of_the_future_and_an_error_of_then_fail_the_actor() {
    let stage = Stage::turns();
    let role = stage.role("p").strategy(|| Strategy::default().max_restarts(5));
    let parent = stage.spawn(&role);
    let actor = child(&parent, &stage.role("a"));
    act(&actor, |_, ctx| {
        ctx.hold(async { panic!("as told") }, |_: &mut Puppet, (), _| Ok(()));
        Ok(())
    });
    note(&actor, "after the panic");
    stage.expect(&["p Started 1", "a Started 1", "a Restarting 1", "a Restarted 2", "a after the panic"]);
    act(&actor, |_, ctx| {
        ctx.hold(async { 1 }, |puppet: &mut Puppet, value, _| {
            puppet.note(value);
            Err(Failure::msg("as told"))
        });
        Ok(())
    });
    note(&actor, "after the error");
    stage.expect(&["a 1", "a Restarting 2", "a Restarted 3", "a after the error"]);
    stage.end(&["a Stopped 3", "p Stopped 1"]);
}

#[test]
fn a_restart_drops_the_holds_and_the_new_state_handles_the_messages() {
    let stage = Stage::turns();
    let role = stage.role("p").strategy(|| Strategy::default().max_restarts(5));
    let parent = stage.spawn(&role);
    let actor = child(&parent, &stage.role("a"));
    let gate = Gate::default();
    let (sender, dropped) = channel();
    let (polled, then) = (gate.clone(), Told(sender, "then"));
    act(&actor, move |_, ctx| {
        ctx.hold(polled, move |_: &mut Puppet, _, _| {
            drop(then);
            panic!("it must not run");
        });
        // The hold has begun, and the handler fails.
        Err(Failure::msg("as told"))
    });
    note(&actor, "message");
    stage.expect(&["p Started 1", "a Started 1", "a Restarting 1", "a Restarted 2", "a message"]);
    assert_eq!((dropped.soon(), gate.polls()), (Ok("then"), 0));
    gate.open(1);
    stage.end(&["a Stopped 2", "p Stopped 1"]);
}

#[test]
fn a_suspended_actor_does_not_poll_and_its_hold_goes_on_when_it_is_resumed() {
    let stage = Stage::turns();
    let gate = Gate::default();
    // The decision falls while the actor is suspended: the wake comes then.
    let opened = gate.clone();
    let polls = Arc::new(AtomicUsize::new(0));
    let seen = polls.clone();
    let strategy = move || {
        let (opened, seen) = (opened.clone(), seen.clone());
        Strategy::decide(move |_| {
            opened.open(9);
            seen.store(opened.polls(), Ordering::SeqCst);
            Directive::Resume
        })
    };
    let parent = stage.spawn(&stage.role("p").strategy(strategy));
    let actor = child(&parent, &stage.role("a"));
    stage.expect(&["p Started 1", "a Started 1"]);
    let held = gate.clone();
    act(&actor, move |_, ctx| {
        ctx.hold(held, |puppet: &mut Puppet, value, _| {
            puppet.note(value);
            Ok(())
        });
        Err(Failure::msg("as told"))
    });
    note(&actor, "message");
    stage.expect(&["a 9", "a message"]);
    assert_eq!((polls.load(Ordering::SeqCst), gate.polls()), (0, 1));
    stage.end(&["a Stopped 1", "p Stopped 1"]);
}

#[test]
fn a_hold_of_another_type_of_actor_fails_with_a_text_that_says_so() {
    struct Other;
    impl Actor for Other {
        type Message = Tell;
        fn receive(&mut self, _: Tell, _: &mut Context<Tell>) -> HandlerResult {
            Ok(())
        }
    }
    let stage = Stage::turns();
    let (sender, texts) = channel();
    let strategy = move || {
        let sender = sender.clone();
        Strategy::decide(move |failure| {
            let _ = sender.send(failure.to_string());
            Directive::Resume
        })
    };
    let parent = stage.spawn(&stage.role("p").strategy(strategy));
    let actor = child(&parent, &stage.role("a"));
    act(&actor, |_, ctx| {
        ctx.hold(async {}, |_: &mut Other, (), _| Ok(()));
        Ok(())
    });
    let text = texts.soon().expect("it fails");
    assert!(text.contains("Other") && text.contains("/user/p/a"), "{text}");
    assert_eq!(query(&actor, |_, ctx| ctx.is_holding()), Ok(false));
    stage.expect(&["p Started 1", "a Started 1"]);
    stage.end(&["a Stopped 1", "p Stopped 1"]);
}

#[test]
fn a_hold_keeps_an_actor_from_passivation_and_counts_as_its_work() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let gate = Gate::default();
    let held = gate.clone();
    act(&actor, move |_, ctx| {
        ctx.set_receive_timeout(Duration::from_secs(10), |_| {
            Tell::new(|puppet, ctx| {
                puppet.note("idle");
                ctx.passivate();
                Ok(())
            })
        })?;
        ctx.hold(held, |puppet: &mut Puppet, value, _| {
            puppet.note(value);
            Ok(())
        });
        ctx.passivate();
        Ok(())
    });
    wait_until(|| gate.polls() == 1);
    stage.clock.advance(Duration::from_secs(60));
    run_turns();
    gate.open(1);
    stage.expect(&["a Started 1", "a 1"]);
    run_turns();
    assert!(stage.notes.try_recv().is_err(), "the idle time begins at the end of the hold");
    stage.clock.advance(Duration::from_secs(10));
    stage.expect(&["a \"idle\"", "a Stopped 1"]);
    stage.end(&[]);
}

#[test]
fn a_future_that_wakes_itself_again_and_again_makes_room_for_others() {
    let (log, notes) = channel();
    let clock = pointsman::time::ManualClock::new();
    let one = Dispatcher::work_stealing().threads(1);
    let system = System::builder("restless").clock(clock.clone()).dispatcher("default", one).build().unwrap();
    let stage = Stage { system: Ground::Threads(system), clock, log, notes };
    let (actor, other) = (stage.spawn(&stage.role("a")), stage.spawn(&stage.role("b")));
    let (polls, enough) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (counted, until) = (polls.clone(), enough.clone());
    act(&actor, move |_, ctx| {
        let restless = std::future::poll_fn(move |cx: &mut Poller<'_>| {
            counted.fetch_add(1, Ordering::SeqCst);
            cx.waker().wake_by_ref();
            if until.load(Ordering::SeqCst) { Poll::Ready(1) } else { Poll::Pending }
        });
        ctx.hold(restless, |puppet: &mut Puppet, value, _| {
            puppet.note(value);
            Ok(())
        });
        Ok(())
    });
    wait_until(|| polls.load(Ordering::SeqCst) > 1000);
    assert_eq!(query(&other, |_, _| 9), Ok(9), "the only worker has time for it");
    enough.store(true, Ordering::SeqCst);
    wait_until(|| stage.notes.try_iter().any(|note| note == "a 1"));
    stage.end(&["a Stopped 1", "b Stopped 1"]);
}

#[test]
fn no_wake_is_lost_however_the_threads_meet() {
    let stage = Stage::threads("wakes");
    let actor = stage.spawn(&stage.role("a"));
    for round in 0..500_u32 {
        let gate = Gate::default();
        hold_for(&actor, &gate);
        note(&actor, "behind");
        if round % 3 == 0 {
            wait_until(|| gate.polls() > 0);
        }
        gate.open(round);
        let expected = [format!("a {round}"), "a behind".to_owned()];
        let first = if round == 0 { vec!["a Started 1".to_owned()] } else { Vec::new() };
        for expected in first.iter().chain(&expected) {
            assert_eq!(stage.note(), *expected);
        }
    }
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_routee_that_holds_leaves_the_shared_queue_to_the_others() {
    let stage = Stage::threads("pool");
    let role = stage.role("r");
    let count = Arc::new(AtomicUsize::new(0));
    let plan = stage.system.router("pool").balancing_pool(2, move |_| role.recipe()());
    let router = plan.spawn().expect("the name is free");
    let pool = router.to_ref();
    let mut notes = [stage.note(), stage.note()];
    notes.sort();
    assert_eq!(notes, ["r Started 1", "r Started 2"]);
    let gate = Gate::default();
    hold_for(&pool, &gate);
    wait_until(|| gate.polls() == 1);
    for _ in 0..50 {
        let count = count.clone();
        act(&pool, move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
    }
    wait_until(|| count.load(Ordering::SeqCst) == 50);
    gate.open(4);
    stage.expect(&["r 4"]);
    stage.end(&["r Stopped 1", "r Stopped 2"]);
}

#[test]
fn a_future_of_tokio_can_be_held_for() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread");
    let tokio = runtime.handle().clone();
    let stage = Stage::threads_with("tokio", |builder| {
        builder.polls_within(move |poll| {
            let _entered = tokio.enter();
            poll();
        })
    });
    let actor = stage.spawn(&stage.role("a"));
    act(&actor, |_, ctx| {
        let nap = async {
            tokio::time::sleep(Duration::from_millis(2)).await;
            tokio::spawn(async { 5 }).await.expect("it does not panic")
        };
        ctx.hold(nap, |puppet: &mut Puppet, value, _| {
            puppet.note(value);
            Ok(())
        });
        Ok(())
    });
    note(&actor, "behind");
    stage.expect(&["a Started 1", "a 5", "a behind"]);
    stage.end(&["a Stopped 1"]);
}
