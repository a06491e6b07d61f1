//! A handler that blocks keeps no old table of routees alive. In a process of its own: tables are counted for
//! all systems.

use pointsman::prelude::*;
use pointsman::routing::{RouteContext, Routee, Routees, RoutingLogic};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(30);

struct Sink;

impl Actor for Sink {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
}

/// Counts the tables alive: each has an index of its own.
struct Counting(Arc<AtomicUsize>);

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RoutingLogic<u64> for Counting {
    fn select(&self, _: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        Some(0)
    }
    fn prepare(&self, _: &[Routee<u64>]) -> Option<Box<dyn Any + Send + Sync>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(Box::new(Counted(self.0.clone())))
    }
}

/// Waits in its handler, after a routed send.
struct Waits {
    router: ActorRef<u64>,
    inside: Sender<()>,
    go_on: Receiver<()>,
}

impl Actor for Waits {
    type Message = bool;
    fn receive(&mut self, steps_aside: bool, ctx: &mut Context<bool>) -> HandlerResult {
        self.router.tell(1u64);
        let wait = || {
            self.inside.send(())?;
            self.go_on.recv()?;
            Ok(())
        };
        if steps_aside { ctx.blocking(wait) } else { wait() }
    }
}

#[test]
fn a_handler_that_blocks_keeps_no_old_table_alive() {
    // More than a router's head lets wait before it refuses changes.
    const CHANGES: usize = 1100;
    for (dispatcher, steps_aside) in [("slow", false), ("slow", true), ("pin", false), ("default", true)] {
        let system = System::builder("tables")
            .dispatcher("default", Dispatcher::work_stealing().threads(2))
            .dispatcher("slow", Dispatcher::blocking())
            .dispatcher("pin", Dispatcher::pinned())
            .build()
            .unwrap();
        let tables = Arc::new(AtomicUsize::new(0));
        let logic = Counting(tables.clone());
        let router = system.router("pool").pool(2, |_| Sink).logic(logic).spawn().unwrap();
        let (inside, is_inside) = channel();
        let (go, go_on) = channel();
        let mut waits = Some(Waits { router: router.to_ref(), inside, go_on });
        let recipe = system.actor("waits").dispatcher(dispatcher);
        let actor = recipe.spawn(move || waits.take().expect("never restarted")).unwrap();
        actor.tell(steps_aside);
        is_inside.recv().unwrap();
        let resize = |change: usize| {
            router.resize_to(1 + change % 2).unwrap_or_else(|error| panic!("{dispatcher}: {error}"));
        };
        (0..CHANGES).for_each(resize);
        // The one in use, once each worker has had its core: on its way to sleep, the last one frees what the others kept.
        let began = Instant::now();
        loop {
            let alive = tables.load(Ordering::Relaxed);
            if alive == 1 {
                break;
            }
            assert!(began.elapsed() < SOON, "{dispatcher}: {alive} tables alive");
            thread::yield_now();
        }
        go.send(()).unwrap();
        assert_eq!(system.shutdown(SOON).unwrap().balance(), 0);
    }
}
