//! Loggers are code of the application: they run where no lock is held, and a panic in one harms nobody.

use crate::keyed_support::{books, lodgers, noted, to};
use crate::logged;
use crate::support::{LONG, Stage};
use pointsman::prelude::*;
use pointsman::routing::{Manage, Resizer, RouteContext, RouteeLoads, Routees, RoutingLogic};
use pointsman::routing::{Routee, RouterSettings};
use pointsman::settings::Deployment;
use pointsman::testkit::TestSystem;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// A stage on which actors of the group `lodgers` are told to be routers, which they are not.
fn misplaced() -> Stage {
    let says = Deployment::new().router(RouterSettings::new().router("random-pool"));
    Stage::turns_with(move |builder| builder.deploy("/lodgers/*", says))
}

const WARNING: &str = "/user/lodgers/1 is no router";

#[test]
fn no_lock_of_a_group_is_held_while_it_is_logged_that_its_actor_is_no_router() {
    let stage = misplaced();
    let group = lodgers(&stage);
    let (sender, lengths) = channel();
    let any = group.clone();
    logged::meanwhile(move |text| {
        if text.starts_with(WARNING) {
            let (any, (length, found)) = (any.clone(), channel());
            // In another thread: whoever waits for a lock of its own would wait for ever.
            thread::spawn(move || length.send(any.len()));
            let _ = sender.send(found.recv_timeout(LONG));
        }
    });
    group.tell(to(1, "a"));
    assert_eq!(lengths.try_iter().collect::<Vec<_>>(), [Ok(1)]);
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a"]);
    books(stage);
}

#[test]
fn a_logger_that_panics_keeps_no_actor_from_being_created() {
    let stage = misplaced();
    let group = lodgers(&stage);
    logged::meanwhile(|text| assert!(!text.starts_with(WARNING), "planted"));
    group.tell(to(1, "a"));
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a"]);
    books(stage);
}

/// Panics while it prepares a table of three.
struct NotThree;

impl RoutingLogic<()> for NotThree {
    fn select(&self, (): &(), routees: &Routees<()>, cx: &RouteContext<'_>) -> Option<usize> {
        if cx.refusals() == 0 && !routees.is_empty() { Some(0) } else { None }
    }

    fn prepare(&self, routees: &[Routee<()>]) -> Option<Box<dyn Any + Send + Sync>> {
        assert_ne!(routees.len(), 3, "planted");
        None
    }
}

/// Wants more routees than there can be, once there is a router.
struct Greedy;

impl Resizer for Greedy {
    fn is_time_for_resize(&self, _: u64) -> bool {
        false
    }

    fn resize(&self, _: &RouteeLoads) -> isize {
        isize::MAX
    }
}

/// Counts how often it begins.
struct Idle;

impl Actor for Idle {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
}

/// The recipe of routees, and how often it has run.
fn idle() -> (impl Fn(&mut Context<()>) -> Idle + Clone + Send + Sync + 'static, Arc<AtomicUsize>) {
    let made = Arc::<AtomicUsize>::default();
    let count = made.clone();
    let recipe = move |_: &mut Context<()>| {
        count.fetch_add(1, Ordering::SeqCst);
        Idle
    };
    (recipe, made)
}

#[test]
fn a_logger_that_panics_does_not_restart_the_routees_of_a_pool_that_cannot_be_changed() {
    let (system, (recipe, made)) = (TestSystem::new(), idle());
    let pool = system.router("unchanged").pool(2, recipe).logic(NotThree).spawn().unwrap();
    system.run_until_idle();
    let (sender, texts) = channel();
    logged::meanwhile(move |text| {
        sender.send(text.to_owned()).unwrap();
        panic!("planted");
    });
    // Whoever asks learns that nothing was answered; the logger panics once.
    assert!(pool.resize_to(3).is_err());
    system.run_until_idle();
    let texts: Vec<String> = texts.try_iter().collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].starts_with("/user/unchanged could not be changed: "), "{texts:?}");
    // The two at the start: the one for the change has ended without a turn.
    assert_eq!((pool.routees().unwrap().len(), made.load(Ordering::SeqCst)), (2, 2));
    pool.stop();
    system.finish();
}

#[test]
fn a_logger_that_panics_does_not_restart_the_routees_of_a_pool_that_cannot_be_resized() {
    let (system, (recipe, made)) = (TestSystem::new(), idle());
    let pool = system.router("greedy").pool(2, recipe).resizer(Greedy).spawn().unwrap();
    system.run_until_idle();
    let (sender, texts) = channel();
    logged::meanwhile(move |text| {
        sender.send(text.to_owned()).unwrap();
        panic!("planted");
    });
    pool.head().tell(Manage::AskResizer);
    system.run_until_idle();
    let texts: Vec<String> = texts.try_iter().collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].starts_with("/user/greedy could not be resized: "), "{texts:?}");
    assert_eq!((pool.routees().unwrap().len(), made.load(Ordering::SeqCst)), (2, 2));
    pool.stop();
    system.finish();
}
