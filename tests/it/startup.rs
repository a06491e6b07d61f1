//! Creation that waits for the start of the actor.

use crate::support::{LONG, while_time_passes};
use pointsman::actor::StartupError;
use pointsman::prelude::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Does this when it starts.
struct Starts<F>(F);
impl<F: FnMut(&mut Context<u32>) -> HandlerResult + Send + 'static> Actor for Starts<F> {
    type Message = u32;
    fn started(&mut self, ctx: &mut Context<u32>) -> HandlerResult {
        (self.0)(ctx)
    }
    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        Ok(())
    }
}

fn starts<F: FnMut(&mut Context<u32>) -> HandlerResult + Send + 'static>(act: F) -> Starts<F> {
    Starts(act)
}

fn quiet(name: &str) -> System {
    System::builder(name).stderr_without_logger(false).build().unwrap()
}

#[test]
fn the_reference_is_that_of_an_actor_whose_start_has_run() {
    let system = quiet("starts");
    let (sender, started) = channel();
    let actor = system.actor("a").spawn_started(LONG, move || {
        let sender = sender.clone();
        starts(move |_| Ok(sender.send(())?))
    });
    // No wait: it has been sent before.
    started.try_recv().unwrap();
    assert_eq!(actor.unwrap().path().to_string(), "/user/a");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_failure_of_the_recipe_and_of_the_start_is_returned_and_the_actor_ends() {
    let system = quiet("fails");
    let of_start =
        system.actor("start").spawn_started(LONG, || starts(|_| Err(Failure::msg("no port")))).unwrap_err();
    assert_eq!(of_start, StartupError::Failed { path: "/user/start".to_owned(), text: "no port".to_owned() });
    assert_eq!(of_start.to_string(), "actor /user/start failed to start: no port");
    assert_eq!(format!("{of_start:?}"), of_start.to_string());
    let of_recipe = system
        .actor("recipe")
        .spawn_started(LONG, || {
            Err::<Starts<fn(&mut Context<u32>) -> HandlerResult>, _>(Failure::msg("no file"))
        })
        .unwrap_err();
    assert!(matches!(&of_recipe, StartupError::Failed { text, .. } if text == "no file"), "{of_recipe}");
    let panics =
        system.actor("panics").spawn_started(LONG, || starts(|_| panic!("in the start"))).unwrap_err();
    assert!(panics.to_string().contains("in the start"), "{panics}");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn an_actor_that_its_supervisor_would_start_again_ends_too() {
    let system = System::builder("restarts")
        .stderr_without_logger(false)
        .supervision(Strategy::decide(|_| Directive::Restart))
        .build()
        .unwrap();
    let (sender, dropped): (Sender<()>, Receiver<()>) = channel();
    let failed = system.actor("a").spawn_started(LONG, move || {
        let _kept = sender.clone();
        starts(|_| Err(Failure::msg("never")))
    });
    assert!(matches!(failed, Err(StartupError::Failed { .. })));
    // The recipe goes with the actor.
    assert!(
        dropped
            .recv_timeout(LONG)
            .is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Disconnected)
    );
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_start_that_takes_too_long_is_given_up() {
    let clock = pointsman::time::ManualClock::new();
    let system = System::builder("slow").clock(clock.clone()).build().unwrap();
    let (go, gate) = channel::<()>();
    let mut gate = Some(gate);
    let limit = Duration::from_secs(5);
    let outcome = while_time_passes(&clock, || {
        system.actor("a").spawn_started(limit, move || {
            let gate = gate.take();
            starts(move |_| {
                // Until the test is over.
                gate.as_ref().map(Receiver::recv);
                Ok(())
            })
        })
    });
    drop(go);
    assert_eq!(outcome.unwrap_err(), StartupError::TimedOut { path: "/user/a".to_owned(), limit });
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn what_cannot_be_spawned_or_waited_for_is_refused_with_its_reason() {
    let system = quiet("refuses");
    let idle = || starts(|_| Ok(()));
    let _taken = system.actor("a").spawn_started(LONG, idle).unwrap();
    let again = system.actor("a").spawn_started(LONG, idle).unwrap_err();
    assert!(matches!(again, StartupError::Spawn(SpawnError::NameTaken { .. })), "{again}");
    let (sender, refused) = channel();
    let parent = system.actor("parent").spawn(move || {
        let sender = sender.clone();
        starts(move |ctx| {
            let child = ctx.actor("child").spawn_started(LONG, || starts(|_| Ok(())));
            sender.send((child.map(drop), ctx.children().len()))?;
            Ok(())
        })
    });
    assert_eq!(refused.recv().unwrap(), (Err(StartupError::WouldBlockWorker), 0));
    parent.unwrap().stop();
    let handle = system.handle().clone();
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
    let late = handle.actor("late").spawn_started(LONG, idle).unwrap_err();
    assert!(matches!(late, StartupError::Spawn(SpawnError::ShutDown { .. })), "{late}");
}
