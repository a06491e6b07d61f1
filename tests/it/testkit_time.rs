//! Timers and deadlines, in many courses.

use crate::support::{Role, Tell, act, fail, query};
use pointsman::prelude::*;
use pointsman::testkit::{TestSystem, WaitError};
use std::collections::HashSet;
use std::sync::mpsc::channel;
use std::time::Duration;

const SEEDS: u64 = 20;
const MS: Duration = Duration::from_millis(1);

fn puppet(system: &TestSystem, name: &'static str) -> ActorRef<Tell> {
    let (log, _) = channel();
    system.actor(name).spawn(Role::new(name, &log).recipe()).expect("the name is free")
}

#[test]
fn a_repeated_timer_keeps_its_rate_and_no_tick_is_skipped() {
    TestSystem::for_seeds(SEEDS, |system| {
        let probe = system.probe::<Duration>();
        let to = probe.actor_ref().clone();
        let actor = puppet(system, "a");
        act(&actor, move |_, ctx| {
            ctx.every(10 * MS, move || {
                let to = to.clone();
                Tell::new(move |_, ctx| {
                    to.tell(ctx.now());
                    Ok(())
                })
            });
            Ok(())
        });
        // One move over many periods: each tick is handled in its turn.
        system.advance(1005 * MS);
        (1..=100).for_each(|count| probe.expect(count * 10 * MS));
        probe.expect_none();
        actor.stop();
        system.advance(100 * MS);
        probe.expect_none();
        assert_eq!(system.ledger().ticked, 100);
    });
}

#[test]
fn cancel_tells_the_truth_whoever_is_first() {
    let mut firsts = HashSet::new();
    // The same ones in each run, so that both courses are seen.
    for seed in 0..60 {
        let system = TestSystem::with_seed(seed);
        let probe = system.probe::<&str>();
        let (on_tick, on_cancel) = (probe.actor_ref().clone(), probe.actor_ref().clone());
        let (actor, other) = (puppet(&system, "a"), puppet(&system, "b"));
        let timer = query(&actor, move |_, ctx| {
            let tick = Tell::new(move |_, _| {
                on_tick.tell("tick");
                Ok(())
            });
            ctx.after(10 * MS, tick)
        });
        let timer = timer.expect("the actor answers");
        // The cancellation comes by way of another actor, and the time somewhere on that way.
        let target = actor.clone();
        act(&other, move |_, _| {
            act(&target, move |_, ctx| {
                on_cancel.tell(if ctx.timers().cancel(timer) { "cancelled" } else { "too late" });
                Ok(())
            });
            Ok(())
        });
        (0..seed % 4).for_each(|_| _ = system.step());
        system.clock().advance(10 * MS);
        let first = probe.take();
        firsts.insert(first);
        match first {
            "tick" => probe.expect("too late"),
            other => assert_eq!(other, "cancelled"),
        }
        system.advance(100 * MS);
        probe.expect_none();
        [actor, other].iter().for_each(ActorRef::stop);
        system.finish();
    }
    assert_eq!(firsts.len(), 2);
}

#[test]
fn a_restart_voids_the_timers_of_the_old_state() {
    TestSystem::for_seeds(SEEDS, |system| {
        let probe = system.probe::<()>();
        let to = probe.actor_ref().clone();
        let actor = puppet(system, "a");
        act(&actor, move |_, ctx| {
            let tick = move || {
                let to = to.clone();
                Tell::new(move |_, _| {
                    to.tell(());
                    Ok(())
                })
            };
            ctx.after(10 * MS, tick());
            ctx.every(10 * MS, tick);
            Ok(())
        });
        fail(&actor);
        system.advance(100 * MS);
        probe.expect_none();
        assert_eq!(system.ledger().ticked, 0);
        actor.stop();
    });
}

struct Ping;
impl Request for Ping {
    type Reply = &'static str;
}

/// Answers the pings after this long.
struct Server(Duration);

enum ServerMsg {
    Ping(Call<Ping>),
    Answer(Call<Ping>),
}

impl From<Call<Ping>> for ServerMsg {
    fn from(call: Call<Ping>) -> Self {
        ServerMsg::Ping(call)
    }
}

impl Actor for Server {
    type Message = ServerMsg;
    fn receive(&mut self, message: ServerMsg, ctx: &mut Context<ServerMsg>) -> HandlerResult {
        match message {
            ServerMsg::Ping(call) => _ = ctx.after(self.0, ServerMsg::Answer(call)),
            ServerMsg::Answer(call) => call.answer(|Ping| "pong"),
        }
        Ok(())
    }
}

#[test]
fn an_actor_that_asks_gets_one_answer_at_its_time_the_deadline_included() {
    TestSystem::for_seeds(3 * SEEDS, |system| {
        for (delay, deadline) in [(5u32, 10u32), (10, 5), (7, 7)] {
            let server = system.spawn(move || Server(delay * MS)).unwrap();
            let probe = system.probe::<(bool, Duration)>();
            let (to, target) = (probe.actor_ref().clone(), server.clone());
            let asker: ActorRef<Tell> = {
                let (log, _) = channel();
                system.spawn(Role::new("asker", &log).recipe()).unwrap()
            };
            let began = system.now();
            act(&asker, move |_, ctx| {
                ctx.ask_within(&target, Ping, deadline * MS, move |answer| {
                    Tell::new(move |_, ctx| {
                        to.tell((answer.is_ok(), ctx.now() - began));
                        Ok(())
                    })
                });
                Ok(())
            });
            system.advance(100 * MS);
            let (answered, after) = probe.take();
            assert_eq!(after, delay.min(deadline) * MS);
            if delay != deadline {
                assert_eq!(answered, delay < deadline);
            }
            probe.expect_none();
            server.stop();
            asker.stop();
        }
        system.run_until_idle();
        let asks = system.ledger().asks;
        assert_eq!(asks.begun, asks.answered + asks.timed_out, "{asks:?}");
    });
}

/// A puppet that answers after so long.
fn answer_after(actor: &ActorRef<Tell>, delay: Duration) -> Ask<u32> {
    actor.ask_with(move |reply_to| {
        Tell::new(move |_, ctx| {
            let later = Tell::new(move |_, _| {
                let _ = reply_to.send(42);
                Ok(())
            });
            ctx.after(delay, later);
            Ok(())
        })
    })
}

#[test]
fn an_ask_is_awaited_while_time_passes() {
    TestSystem::for_seeds(SEEDS, |system| {
        let actor = puppet(system, "a");
        let ask = answer_after(&actor, 700 * MS);
        assert_eq!(system.advance_until(ask, 1000 * MS).map(|answer| answer.ok()), Ok(Some(42)));
        // No longer than needed.
        assert_eq!(system.now(), 700 * MS);
        // The limit of the ask is one of its deadlines.
        let ask = answer_after(&actor, 700 * MS).within(200 * MS);
        let outcome = system.advance_until(ask, 1000 * MS).expect("the limit is an outcome");
        assert!(matches!(outcome, Err(AskError::Timeout { .. })), "{outcome:?}");
        assert_eq!(system.now(), 900 * MS);
        actor.stop();
    });
}

#[test]
fn a_future_that_is_not_ready_in_time_may_be_awaited_further() {
    let system = TestSystem::with_seed(12);
    let probe = system.probe::<Duration>();
    let (actor, to) = (puppet(&system, "a"), probe.actor_ref().clone());
    act(&actor, move |_, ctx| {
        ctx.every(100 * MS, move || {
            let to = to.clone();
            Tell::new(move |_, ctx| {
                to.tell(ctx.now());
                Ok(())
            })
        });
        Ok(())
    });
    let mut ask = answer_after(&actor, 300 * MS);
    let error = system.advance_until(&mut ask, 250 * MS).expect_err("it takes 300 ms");
    let text = error.to_string();
    assert!(text.starts_with("not ready after 250ms of the system's time"), "{text}");
    assert!(text.ends_with("(seed 12: run the test again with POINTSMAN_SEED=12)"), "{text}");
    // What else was due has happened, at its time, and the clock stands where the limit was.
    assert_eq!(system.now(), 250 * MS);
    probe.expect(100 * MS);
    probe.expect(200 * MS);
    assert_eq!(system.advance_until(&mut ask, 250 * MS).map(|answer| answer.ok()), Ok(Some(42)));
    assert_eq!(system.now(), 300 * MS);
    actor.stop();
}

#[test]
fn a_future_that_nobody_completes_is_not_waited_for() {
    let system = TestSystem::new();
    let error = system.advance_until(std::future::pending::<()>(), 100 * MS).unwrap_err();
    assert!(matches!(error, WaitError::NotReady { waited, .. } if waited == 100 * MS), "{error:?}");
    assert_eq!(system.now(), 100 * MS);
    // Ready at once takes no time and no turn.
    assert_eq!(system.advance_until(std::future::ready(7), Duration::ZERO), Ok(7));
    assert_eq!(system.now(), 100 * MS);
}

#[test]
#[should_panic(expected = "not idle after")]
fn a_livelock_fails_what_is_awaited() {
    let system = TestSystem::builder().turn_limit(100).build();
    let actor = puppet(&system, "a");
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
    let _ = system.advance_until(std::future::pending::<()>(), 100 * MS);
}
