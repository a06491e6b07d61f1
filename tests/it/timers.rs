//! Timers of actors, by the manual clock and once by the real one.

use crate::support::*;
use pointsman::prelude::*;
use pointsman::timers::TimerKey;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);

fn noted(text: &'static str) -> Tell {
    Tell::new(move |puppet, _| {
        puppet.note(format_args!("{text}"));
        Ok(())
    })
}

fn after(actor: &ActorRef<Tell>, delay: Duration, text: &'static str) -> TimerKey {
    query(actor, move |_, ctx| ctx.after(delay, noted(text))).unwrap()
}

/// Everything noted once the actor has done what it has to do now.
fn settled(stage: &Stage, actor: &ActorRef<Tell>) -> Vec<String> {
    query(actor, |_, _| ()).unwrap();
    stage.notes.try_iter().collect()
}

#[test]
fn a_timer_fires_once_at_its_time_and_not_before() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    after(&actor, 20 * MS, "late");
    after(&actor, 10 * MS, "early");
    assert_eq!(settled(&stage, &actor), ["a Started 1"]);
    stage.clock.advance(10 * MS - Duration::from_nanos(1));
    assert!(settled(&stage, &actor).is_empty());
    stage.clock.advance(Duration::from_nanos(1));
    assert_eq!(settled(&stage, &actor), ["a early"]);
    stage.clock.advance(3600 * 1000 * MS);
    assert_eq!(settled(&stage, &actor), ["a late"]);
    stage.clock.advance(3600 * 1000 * MS);
    let ledger = stage.system.ledger();
    assert_eq!(ledger.ticked, 2, "{ledger}");
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_tick_keeps_its_place_in_the_queue() {
    let stage = Stage::threads("place");
    let actor = stage.spawn(&stage.role("a"));
    after(&actor, MS, "tick");
    let release = hold(&actor);
    note(&actor, "before");
    stage.clock.advance(MS);
    note(&actor, "behind");
    drop(release);
    stage.expect(&["a Started 1", "a before", "a tick", "a behind"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn cancel_tells_the_truth_even_of_a_tick_that_is_queued() {
    let stage = Stage::threads("cancel");
    let actor = stage.spawn(&stage.role("a"));
    let waiting = after(&actor, 10 * MS, "never");
    assert_eq!(
        query(&actor, move |_, ctx| (ctx.timers().cancel(&waiting), ctx.timers().cancel(&waiting))),
        Ok((true, false))
    );
    let queued = after(&actor, 10 * MS, "never");
    let (release, held) = channel::<()>();
    let (inside, is_inside) = channel();
    act(&actor, move |puppet, ctx| {
        inside.send(())?;
        let _ = held.recv();
        puppet.note(ctx.timers().cancel(queued));
        Ok(())
    });
    is_inside.soon().unwrap();
    stage.clock.advance(10 * MS);
    drop(release);
    assert_eq!(settled(&stage, &actor), ["a Started 1", "a true"]);
    let fired = after(&actor, 10 * MS, "fired");
    stage.clock.advance(10 * MS);
    assert_eq!(settled(&stage, &actor), ["a fired"]);
    assert_eq!(query(&actor, move |_, ctx| ctx.timers().cancel(fired)), Ok(false));
    stage.end(&["a Stopped 1"]);
}

fn every(actor: &ActorRef<Tell>, period: Duration) -> (TimerKey, Arc<AtomicUsize>) {
    let ticks: Arc<AtomicUsize> = Arc::default();
    let counted = ticks.clone();
    let key = query(actor, move |_, ctx| {
        ctx.every(period, move || {
            let counted = counted.clone();
            Tell::new(move |_, _| {
                counted.fetch_add(1, Ordering::SeqCst);
                Ok(())
            })
        })
    });
    (key.unwrap(), ticks)
}

#[test]
fn a_repeated_timer_keeps_its_rate_and_skips_what_it_missed() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let (key, ticks) = every(&actor, 10 * MS);
    let count = |advance: Duration| {
        stage.clock.advance(advance);
        query(&actor, |_, _| ()).unwrap();
        ticks.load(Ordering::SeqCst)
    };
    assert_eq!(count(9 * MS), 0);
    assert_eq!(count(MS), 1);
    assert_eq!(count(10 * MS), 2);
    // At 55: four periods at once are one tick, and the next one is at 60.
    assert_eq!(count(35 * MS), 3);
    assert_eq!(count(4 * MS), 3);
    assert_eq!(count(MS), 4);
    // So it is after two months.
    assert_eq!(count(Duration::from_secs(60 * 24 * 3600) + 5 * MS), 5);
    assert_eq!(count(4 * MS), 5);
    assert_eq!(count(MS), 6);
    assert_eq!(
        query(&actor, move |_, ctx| (ctx.timers().cancel(&key), ctx.timers().cancel(&key))),
        Ok((true, false))
    );
    assert_eq!(count(100 * MS), 6);
    stage.end(&["a Started 1", "a Stopped 1"]);
}

#[test]
fn a_maker_of_ticks_that_panics_fails_the_actor_and_ends_the_timer() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p").strategy(Strategy::resume));
    let actor = child(&parent, &stage.role("a"));
    query(&actor, |puppet, ctx| {
        puppet.value = 4;
        ctx.every(MS, || panic!("no message"))
    })
    .unwrap();
    stage.clock.advance(MS);
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(4));
    stage.clock.advance(MS);
    assert_eq!(query(&actor, |puppet, _| puppet.value), Ok(4));
    stage.end(&["a Started 1", "a Stopped 1", "p Started 1", "p Stopped 1"]);
}

#[test]
fn restart_and_stop_cancel_timers_even_queued_ones() {
    let stage = Stage::threads("restarts");
    let actor = stage.spawn(&stage.role("a"));
    after(&actor, MS, "never");
    let (_, ticks) = every(&actor, MS);
    let release = hold(&actor);
    fail(&actor);
    stage.clock.advance(MS);
    drop(release);
    assert_eq!(settled(&stage, &actor), ["a Started 1", "a Restarting 1", "a Restarted 2"]);
    stage.clock.advance(100 * MS);
    assert!(settled(&stage, &actor).is_empty());
    assert_eq!(ticks.load(Ordering::SeqCst), 0);
    // A timer set by the new state has nothing to do with the old ones.
    after(&actor, MS, "new");
    stage.clock.advance(MS);
    assert_eq!(settled(&stage, &actor), ["a new"]);
    after(&actor, MS, "never");
    let release = hold(&actor);
    actor.stop();
    stage.clock.advance(MS);
    drop(release);
    wait_for_end(&stage, &actor);
    stage.end(&["a Stopped 2"]);
}

#[test]
fn a_suspended_actor_gets_its_tick_after_the_verdict() {
    let stage = Stage::threads("paused");
    let (release, held) = channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let parent = stage.spawn(&stage.role("p").strategy(move || {
        let held = held.clone();
        Strategy::decide(move |_| {
            let _ = held.lock().unwrap().recv();
            Directive::Resume
        })
    }));
    let actor = child(&parent, &stage.role("a"));
    after(&actor, MS, "tick");
    fail(&actor);
    wait_until(|| actor.load() == pointsman::actor::RecipientLoad::Suspended);
    stage.clock.advance(MS);
    drop(release);
    let notes: Vec<String> = (0..3).map(|_| stage.note()).collect();
    assert_eq!(notes[2], "a tick");
    stage.end(&["a Stopped 1", "p Stopped 1"]);
}

#[test]
fn by_the_real_clock_a_timer_is_never_early() {
    let system = System::builder("real").build().unwrap();
    let (log, notes) = channel();
    let actor = system.actor("a").spawn(Role::new("a", &log).recipe()).unwrap();
    let began = Instant::now();
    act(&actor, |_, ctx| {
        ctx.after(15 * MS, noted("second"));
        ctx.after(5 * MS, noted("first"));
        Ok(())
    });
    let next = || notes.soon().unwrap();
    assert_eq!((next(), next()), ("a Started 1".into(), "a first".into()));
    assert!(began.elapsed() >= 5 * MS);
    assert_eq!(next(), "a second");
    assert!(began.elapsed() >= 15 * MS);
    let (_, ticks) = every(&actor, MS);
    wait_until(|| ticks.load(Ordering::SeqCst) >= 3);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// Takes longer for each tick than the time between two.
struct Overrun;

impl Actor for Overrun {
    type Message = ();
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        for _ in 0..4 {
            ctx.every(Duration::from_millis(1), || ());
        }
        Ok(())
    }
    fn receive(&mut self, (): (), ctx: &mut Context<()>) -> HandlerResult {
        // Busy by the clock that the timers go by, until the next tick is due.
        let began = ctx.now();
        while ctx.now() < began + Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

struct Echo;
struct Ping;
impl Request for Ping {
    type Reply = ();
}
impl Actor for Echo {
    type Message = Call<Ping>;
    fn receive(&mut self, call: Call<Ping>, _: &mut Context<Call<Ping>>) -> HandlerResult {
        call.answer(|Ping| ());
        Ok(())
    }
}

#[test]
fn ticks_that_never_end_leave_others_their_turn() {
    let one = Dispatcher::work_stealing().threads(1);
    let system = System::builder("overrun").dispatcher("default", one).build().unwrap();
    system.spawn(|| Overrun).unwrap();
    let echo = system.spawn(|| Echo).unwrap();
    for _ in 0..3 {
        assert_eq!(echo.ask(Ping).within(LONG).wait(), Ok(()));
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

// ---- timers that have names

fn flag(name: &'static str) -> Tell {
    noted(name)
}

/// Whether the timers of these names are active.
fn active(actor: &ActorRef<Tell>, names: &'static [&'static str]) -> Vec<bool> {
    query(actor, move |_, ctx| names.iter().map(|name| ctx.timers().is_active(*name)).collect()).unwrap()
}

#[test]
fn a_named_timer_is_active_until_its_message_is_received() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    query(&actor, |_, ctx| {
        ctx.timers().named("one").once(10 * MS, flag("one"));
        ctx.timers().named(1).once(20 * MS, flag("number"));
        ctx.timers().named(("one", 1)).once(30 * MS, flag("both"));
        ctx.timers().named(String::from("two")).once(
            40 * MS,
            Tell::new(|puppet, ctx| {
                puppet.note(ctx.timers().is_active("two"));
                Ok(())
            }),
        );
        let _ = ctx.after(50 * MS, flag("nameless"));
    })
    .unwrap();
    assert_eq!(active(&actor, &["one", "two", "three"]), [true, true, false]);
    assert_eq!(settled(&stage, &actor), ["a Started 1"]);
    stage.clock.advance(10 * MS);
    assert_eq!(settled(&stage, &actor), ["a one"]);
    assert_eq!(active(&actor, &["one", "two"]), [false, true]);
    stage.clock.advance(30 * MS);
    assert_eq!(settled(&stage, &actor), ["a number", "a both", "a false"]);
    query(&actor, |_, ctx| ctx.timers().cancel_named()).unwrap();
    stage.clock.advance(10 * MS);
    assert_eq!(settled(&stage, &actor), ["a nameless"]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn nothing_is_received_of_a_timer_that_was_replaced_or_cancelled_even_if_it_was_queued() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let clock = stage.clock.clone();
    query(&actor, move |puppet, ctx| {
        for name in ["replaced", "cancelled"] {
            ctx.timers().named(name).once(MS, flag("never"));
        }
        ctx.timers().named("kept").once(MS, flag("kept"));
        // All of them are queued now.
        clock.advance(MS);
        let replaced = ctx.timers().named("replaced").once(MS, flag("third"));
        let second = ctx.timers().named("replaced").once(MS, flag("second"));
        puppet.note((ctx.timers().cancel(&replaced), ctx.timers().is_active(&second)));
        puppet.note((ctx.timers().cancel("cancelled"), ctx.timers().cancel("cancelled")));
    })
    .unwrap();
    assert_eq!(active(&actor, &["replaced", "cancelled", "kept"]), [true, false, false]);
    assert_eq!(settled(&stage, &actor), ["a Started 1", "a (false, true)", "a (true, false)", "a kept"]);
    stage.clock.advance(MS);
    assert_eq!(settled(&stage, &actor), ["a second"]);
    let clock = stage.clock.clone();
    act(&actor, move |_, ctx| {
        ctx.timers().named("all").once(MS, flag("never"));
        ctx.timers().named("rate").fixed_rate(MS, MS, || flag("never"));
        clock.advance(MS);
        ctx.timers().cancel_named();
        Ok(())
    });
    assert!(settled(&stage, &actor).is_empty());
    stage.clock.advance(10 * MS);
    assert!(settled(&stage, &actor).is_empty());
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_fixed_delay_goes_on_from_when_its_message_was_received_and_a_fixed_rate_keeps_its_beat() {
    let stage = Stage::threads("beats");
    let actor = stage.spawn(&stage.role("a"));
    query(&actor, |_, ctx| {
        ctx.timers().named("delay").fixed_delay(5 * MS, 10 * MS, || flag("delay"));
        ctx.timers().named("rate").fixed_rate(5 * MS, 10 * MS, || flag("rate"));
    })
    .unwrap();
    assert_eq!(settled(&stage, &actor), ["a Started 1"]);
    let advance = |by: u32| {
        stage.clock.advance(by * MS);
        settled(&stage, &actor)
    };
    assert_eq!(advance(4), [""; 0]);
    assert_eq!(advance(1), ["a delay", "a rate"]);
    // At 19, received late.
    let release = hold(&actor);
    stage.clock.advance(14 * MS);
    drop(release);
    assert_eq!(settled(&stage, &actor), ["a delay", "a rate"]);
    assert_eq!(advance(5), [""; 0]);
    assert_eq!(advance(1), ["a rate"]);
    assert_eq!(advance(3), [""; 0]);
    assert_eq!(advance(1), ["a delay"]);
    // At 62: what was missed is skipped.
    assert_eq!(advance(33), ["a rate", "a delay"]);
    assert_eq!(advance(3), ["a rate"]);
    assert_eq!(active(&actor, &["delay", "rate"]), [true, true]);
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_message_may_set_its_timer_anew_and_cancel_a_repeated_one() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    query(&actor, |_, ctx| {
        let anew = || {
            Tell::new(|puppet, ctx: &mut Context<Tell>| {
                puppet.note("first");
                ctx.timers().named("again").once(MS, flag("second"));
                Ok(())
            })
        };
        ctx.timers().named("again").once(MS, anew());
        ctx.timers().named("once").fixed_delay(MS, MS, || {
            Tell::new(|puppet, ctx: &mut Context<Tell>| {
                puppet.note(ctx.timers().cancel("once"));
                Ok(())
            })
        });
    })
    .unwrap();
    for _ in 0..3 {
        stage.clock.advance(MS);
        query(&actor, |_, _| ()).unwrap();
    }
    stage.expect(&["a Started 1", "a \"first\"", "a true", "a second"]);
    stage.end(&["a Stopped 1"]);
}

/// Notes which of its timers its hooks see.
struct Hooks(std::sync::mpsc::Sender<(&'static str, bool)>);

impl Hooks {
    fn see(&self, hook: &'static str, ctx: &mut Context<Tell>) {
        let _ = self.0.send((hook, ctx.timers().is_active("timer")));
    }
}

impl Actor for Hooks {
    type Message = Tell;
    fn receive(&mut self, _: Tell, ctx: &mut Context<Tell>) -> HandlerResult {
        ctx.timers().named("timer").once(MS, flag("never"));
        self.see("receive", ctx);
        Err(Failure::msg("as told"))
    }
    fn started(&mut self, ctx: &mut Context<Tell>) -> HandlerResult {
        self.see("started", ctx);
        ctx.timers().named("timer").once(MS, flag("never"));
        Ok(())
    }
    fn stopped(&mut self, ctx: &mut Context<Tell>) {
        self.see("stopped", ctx);
    }
    fn restarting(&mut self, _: &Failure, ctx: &mut Context<Tell>) -> HandlerResult {
        self.see("restarting", ctx);
        ctx.timers().named("timer").once(MS, flag("never"));
        Ok(())
    }
}

#[test]
fn hooks_at_the_end_of_a_state_see_no_timer_active() {
    let stage = Stage::turns();
    let (sender, seen) = channel();
    let actor = stage.system.spawn(move || Hooks(sender.clone())).unwrap();
    actor.tell(flag("never"));
    let next = || seen.soon().unwrap();
    assert_eq!([next(), next()], [("started", false), ("receive", true)]);
    // What `restarting` sets is gone too.
    assert_eq!([next(), next()], [("restarting", false), ("started", false)]);
    actor.stop();
    assert_eq!(next(), ("stopped", false));
    stage.end(&[]);
}

#[test]
fn the_name_of_a_timer_is_shown() {
    let names: [TimerKey; 4] = ["flush".into(), 7.into(), ("session", 7).into(), String::from("own").into()];
    assert_eq!(names.map(|name| name.to_string()), ["flush", "7", "session 7", "own"]);
}
