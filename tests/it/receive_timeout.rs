//! A message to an actor that has had none for some time.

use crate::support::*;
use pointsman::Terminated;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use pointsman::timers::ScheduleError;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

type Run = Box<dyn FnOnce(&mut Context<Msg>) -> HandlerResult + Send>;

enum Msg {
    Work,
    /// Does not influence the timeout.
    Quiet(Run),
    Loud(Run),
    Idle(Duration),
}

struct Subject {
    idle: Sender<(Duration, Duration)>,
    ended: Sender<()>,
}

impl Actor for Subject {
    type Message = Msg;
    fn receive(&mut self, message: Msg, ctx: &mut Context<Msg>) -> HandlerResult {
        match message {
            Msg::Work => Ok(()),
            Msg::Quiet(run) | Msg::Loud(run) => run(ctx),
            Msg::Idle(after) => {
                self.idle.send((ctx.now(), after))?;
                Ok(())
            }
        }
    }
    fn influences_receive_timeout(&self, message: &Msg) -> bool {
        !matches!(message, Msg::Quiet(_))
    }
    fn terminated(&mut self, _: Terminated, _: &mut Context<Msg>) -> HandlerResult {
        self.ended.send(())?;
        Ok(())
    }
}

struct Scene {
    stage: Stage,
    clock: ManualClock,
    actor: ActorRef<Msg>,
    idle: Receiver<(Duration, Duration)>,
    /// Notices of watched actors.
    ended: Receiver<()>,
}

fn scene() -> Scene {
    let stage = Stage::turns();
    let (idle_sender, idle) = channel();
    let (ended_sender, ended) = channel();
    let recipe = move || Subject { idle: idle_sender.clone(), ended: ended_sender.clone() };
    let actor = stage.system.actor("subject").spawn(recipe).unwrap();
    Scene { clock: stage.clock.clone(), stage, actor, idle, ended }
}

impl Scene {
    fn run<R: Send + 'static>(
        &self,
        wrap: fn(Run) -> Msg,
        run: impl FnOnce(&mut Context<Msg>) -> R + Send + 'static,
    ) -> R {
        let (sender, outcome) = channel();
        self.actor.tell(wrap(Box::new(move |ctx| {
            sender.send(run(ctx))?;
            Ok(())
        })));
        outcome.soon().expect("it is handled")
    }

    /// Lets the actor do what it has to do, without influence.
    fn settle(&self) {
        self.run(Msg::Quiet, |_| ());
    }

    fn set(&self, after: Duration) {
        self.run(Msg::Quiet, move |ctx| ctx.set_receive_timeout(after, Msg::Idle)).unwrap();
    }

    /// Moves the clock and returns the moments of timeouts, in milliseconds.
    fn advance(&self, by: u32) -> Vec<u128> {
        for _ in 0..by {
            self.clock.advance(MS);
            self.settle();
        }
        self.idle.try_iter().map(|(at, _)| at.as_millis()).collect()
    }

    fn end(self) {
        assert_eq!(self.stage.system.shutdown(LONG).unwrap().balance(), 0);
    }
}

#[test]
fn it_fires_after_each_idle_period() {
    let scene = scene();
    scene.set(10 * MS);
    assert_eq!(scene.advance(9), [0; 0]);
    assert_eq!(scene.advance(1), [10]);
    assert_eq!(scene.advance(25), [20, 30]);
    let ledger = scene.stage.system.ledger();
    assert_eq!((ledger.ticked, ledger.balance()), (3, 0), "{ledger}");
    scene.end();
}

#[test]
fn the_message_knows_the_setting() {
    let scene = scene();
    scene.set(10 * MS);
    assert_eq!(scene.run(Msg::Quiet, |ctx| ctx.receive_timeout()), Some(10 * MS));
    scene.clock.advance(10 * MS);
    assert_eq!(scene.idle.soon(), Ok((10 * MS, 10 * MS)));
    scene.end();
}

#[test]
fn a_message_starts_the_idle_time_anew_unless_it_is_marked() {
    let scene = scene();
    scene.set(10 * MS);
    assert_eq!(scene.advance(8), [0; 0]);
    scene.actor.tell(Msg::Work);
    scene.settle();
    // Each step above and below sends a marked message.
    assert_eq!(scene.advance(9), [0; 0]);
    assert_eq!(scene.advance(1), [18]);
    scene.end();
}

#[test]
fn the_question_who_it_is_leaves_the_idle_time_running() {
    let scene = scene();
    scene.set(10 * MS);
    assert_eq!(scene.advance(8), [0; 0]);
    let subject = scene.stage.system.select("/user/subject").unwrap();
    assert!(subject.resolve_one(LONG).wait().is_ok());
    assert_eq!(scene.advance(2), [10]);
    scene.end();
}

#[test]
fn a_message_that_takes_long_is_no_idle_time() {
    let scene = scene();
    scene.set(10 * MS);
    let clock = scene.clock.clone();
    scene.run(Msg::Loud, move |_| clock.advance(50 * MS));
    scene.settle();
    assert_eq!(scene.advance(9), [0; 0]);
    assert_eq!(scene.advance(1), [60]);
    scene.end();
}

#[test]
fn ticks_and_notices_count_as_messages() {
    let scene = scene();
    let watched = scene.stage.spawn(&scene.stage.role("w"));
    let any = watched.untyped().unwrap();
    scene.set(10 * MS);
    scene.run(Msg::Quiet, move |ctx| {
        ctx.after(5 * MS, Msg::Work);
        ctx.after(8 * MS, Msg::Quiet(Box::new(|_| Ok(()))));
        let _ = ctx.watch(&any);
    });
    assert_eq!(scene.advance(14), [0; 0]);
    assert_eq!(scene.advance(1), [15]);
    assert_eq!(scene.advance(4), [0; 0]);
    watched.stop();
    scene.ended.soon().expect("a notice");
    scene.settle();
    assert_eq!(scene.advance(9), [0; 0]);
    assert_eq!(scene.advance(1), [29]);
    scene.end();
}

#[test]
fn what_is_unstashed_counts_as_a_message() {
    let scene = scene();
    scene.set(10 * MS);
    scene.run(Msg::Quiet, |ctx| ctx.stash(Msg::Work).map_err(drop)).unwrap();
    assert_eq!(scene.advance(5), [0; 0]);
    scene.run(Msg::Quiet, |ctx| ctx.unstash_all());
    scene.settle();
    assert_eq!(scene.advance(9), [0; 0]);
    assert_eq!(scene.advance(1), [15]);
    scene.end();
}

#[test]
fn setting_it_in_a_handler_takes_effect_at_once() {
    let scene = scene();
    scene.set(10 * MS);
    assert_eq!(scene.advance(5), [0; 0]);
    // By a marked message, shorter and longer.
    scene.set(3 * MS);
    assert_eq!(scene.advance(3), [8]);
    scene.set(20 * MS);
    assert_eq!(scene.advance(19), [0; 0]);
    assert_eq!(scene.advance(1), [28]);
    // Messages that are queued behind the handler that sets it count already.
    let (clock, actor) = (scene.clock.clone(), scene.actor.clone());
    scene
        .run(Msg::Quiet, move |ctx| {
            ctx.cancel_receive_timeout();
            ctx.set_receive_timeout(10 * MS, Msg::Idle)?;
            let later = clock.clone();
            actor.tell(Msg::Loud(Box::new(move |_| {
                later.advance(5 * MS);
                Ok(())
            })));
            HandlerResult::Ok(())
        })
        .unwrap();
    scene.settle();
    assert_eq!(scene.advance(9), [0; 0]);
    assert_eq!(scene.advance(1), [43]);
    scene.end();
}

#[test]
fn cancelled_or_replaced_it_does_not_fire_even_if_it_is_queued() {
    let scene = scene();
    scene.set(10 * MS);
    let clock = scene.clock.clone();
    let was_set = scene.run(Msg::Quiet, move |ctx| {
        clock.advance(10 * MS);
        (ctx.cancel_receive_timeout(), ctx.cancel_receive_timeout(), ctx.receive_timeout())
    });
    assert_eq!(was_set, (true, false, None));
    assert_eq!(scene.advance(30), [0; 0]);
    scene.set(10 * MS);
    let clock = scene.clock.clone();
    scene
        .run(Msg::Quiet, move |ctx| {
            clock.advance(10 * MS);
            ctx.set_receive_timeout(5 * MS, Msg::Idle)
        })
        .unwrap();
    assert_eq!(scene.advance(4), [0; 0]);
    assert_eq!(scene.advance(1), [55]);
    scene.end();
}

#[test]
fn a_message_that_is_queued_before_it_goes_before_it() {
    let scene = scene();
    scene.set(10 * MS);
    let (clock, actor) = (scene.clock.clone(), scene.actor.clone());
    scene.run(Msg::Quiet, move |_| {
        actor.tell(Msg::Work);
        clock.advance(10 * MS);
    });
    scene.settle();
    assert_eq!(scene.advance(9), [0; 0]);
    assert_eq!(scene.advance(1), [20]);
    scene.end();
}

#[test]
fn it_survives_a_restart_and_begins_anew() {
    let scene = scene();
    scene.set(10 * MS);
    assert_eq!(scene.advance(6), [0; 0]);
    scene.actor.tell(Msg::Loud(Box::new(|_| Err(Failure::msg("as told")))));
    scene.settle();
    assert_eq!(scene.run(Msg::Quiet, |ctx| ctx.receive_timeout()), Some(10 * MS));
    assert_eq!(scene.advance(9), [0; 0]);
    assert_eq!(scene.advance(11), [16, 26]);
    scene.end();
}

#[test]
fn it_ends_with_the_actor() {
    let scene = scene();
    let held = std::sync::Arc::new(());
    let kept = std::sync::Arc::downgrade(&held);
    scene
        .run(Msg::Quiet, move |ctx| {
            ctx.set_receive_timeout(10 * MS, move |after| {
                let _ = &held;
                Msg::Idle(after)
            })
        })
        .unwrap();
    scene.actor.stop();
    wait_until(|| scene.actor.is_closed() && kept.upgrade().is_none());
    scene.clock.advance(100 * MS);
    assert_eq!(scene.idle.try_recv().ok(), None);
    scene.end();
}

#[test]
fn below_a_millisecond_is_an_error_that_changes_nothing() {
    let scene = scene();
    scene.set(10 * MS);
    let short = MS - Duration::from_nanos(1);
    let refused = scene.run(Msg::Quiet, move |ctx| ctx.set_receive_timeout(short, Msg::Idle));
    assert_eq!(refused, Err(ScheduleError::ReceiveTimeout { after: short }));
    let text = refused.unwrap_err().to_string();
    assert!(text.starts_with("receive timeout 999.999µs: must be at least 1 ms"), "{text}");
    assert_eq!(scene.advance(10), [10]);
    scene.end();
}

#[test]
fn a_maker_that_panics_fails_the_actor_and_ends_the_timeout() {
    let scene = scene();
    scene.run(Msg::Quiet, |ctx| ctx.set_receive_timeout(MS, |_| panic!("no message"))).unwrap();
    scene.clock.advance(MS);
    wait_until(|| scene.run(Msg::Quiet, |ctx| ctx.receive_timeout()).is_none());
    scene.end();
}
