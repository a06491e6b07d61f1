//! Old tables of routees are not kept without end: each router has its own bound, at which its changes wait. In a process
//! of its own, and one after the other: a reader keeps the tables of all systems.

use pointsman::Ask;
use pointsman::prelude::*;
use pointsman::routing::{
    AddRoutee, AdjustPoolSize, ConsistentHashing, GetRoutees, ManageError, RouteContext, Routees,
    RoutingLogic,
};
use pointsman::time::ManualClock;
use std::pin::Pin;
use std::sync::mpsc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll, Waker};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SOON: Duration = Duration::from_secs(30);
/// For changes that must succeed: `Pool::answer` may move the clock faster than the head gets a core.
const NO_LIMIT: Duration = Duration::MAX;

/// Held by the test that runs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Sink;

impl Actor for Sink {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
}

/// Stays in the table that it reads for message 1 until it is told to go on.
struct Lingers {
    reading: mpsc::Sender<()>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

impl RoutingLogic<u64> for Lingers {
    fn select(&self, message: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Option<usize> {
        if *message == 1 {
            let _ = self.reading.send(());
            let _ = self.go_on.lock().unwrap().recv();
        }
        Some(0)
    }
}

/// A thread that reads a table of a router of its own system, and with it keeps those of all, until it is let go.
struct Reader {
    system: System,
    thread: std::thread::JoinHandle<()>,
    go_on: mpsc::Sender<()>,
}

impl Reader {
    fn begin() -> Self {
        let system = System::builder("reader").build().unwrap();
        let (reading, is_reading) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel();
        let logic = Lingers { reading, go_on: Mutex::new(goes_on) };
        let router = system.router("pool").pool(1, |_| Sink).logic(logic).spawn().unwrap().to_ref();
        let thread = std::thread::spawn(move || router.tell(1u64));
        is_reading.recv().unwrap();
        Self { system, thread, go_on }
    }

    fn end(self) {
        self.go_on.send(()).unwrap();
        self.thread.join().unwrap();
        assert_eq!(self.system.shutdown(SOON).unwrap().balance(), 0);
    }
}

/// A system whose time a test moves, and a pool of 2 whose old tables take as much as they may once there is one.
struct Pool {
    system: System,
    clock: ManualClock,
    router: Router<u64>,
    /// Messages that the head has handled.
    requests: u64,
}

impl Pool {
    /// A pool whose changes wait for at most `limit`, by the clock that the test moves.
    fn new(limit: Duration) -> Self {
        let clock = ManualClock::new();
        let system = System::builder("waits")
            .clock(clock.clone())
            .supervision(Strategy::decide(|_| Directive::Restart).quiet())
            .build()
            .unwrap();
        let plan = system.router("pool").pool(2, |_| Sink);
        let router = plan.old_tables_max(1).change_within(limit).spawn().unwrap();
        Self { system, clock, router, requests: 0 }
    }

    /// Asks the head, and waits until it has seen the question.
    fn ask<Q: Request>(&mut self, question: Q) -> Ask<Q::Reply>
    where
        pointsman::routing::Manage<u64>: From<Call<Q>>,
    {
        let ask = self.router.head().ask(question);
        self.requests += 1;
        while self.system.ledger().handled < self.requests {
            std::thread::yield_now();
        }
        ask
    }

    /// Moves the clock until there is an answer.
    fn answer<R: Send + 'static>(&self, mut ask: Ask<R>) -> R {
        loop {
            match look(&mut ask) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => self.clock.advance(MS),
            }
            std::thread::yield_now();
        }
    }

    fn end(self) {
        assert_eq!(self.system.shutdown(SOON).unwrap().balance(), 0);
    }
}

fn look<R: Send + 'static>(ask: &mut Ask<R>) -> Poll<R> {
    Pin::new(ask).poll(&mut Poller::from_waker(Waker::noop())).map(|answer| answer.expect("the head lives"))
}

#[test]
fn changes_wait_in_their_order_until_old_tables_are_freed() {
    let _alone = alone();
    let mut pool = Pool::new(NO_LIMIT);
    let reader = Reader::begin();
    assert_eq!(pool.answer(pool.router.head().ask(AdjustPoolSize::To(3))).unwrap(), 3);
    pool.requests += 1;
    let mut grown = pool.ask(AdjustPoolSize::To(5));
    let mut added = pool.ask(AddRoutee { routee: pool.router.to_ref().into() });
    let mut listed = pool.ask(GetRoutees::new());
    // The head has looked again meanwhile, and has found nothing freed.
    (0..50).for_each(|_| pool.clock.advance(MS));
    assert!(look(&mut grown).is_pending() && look(&mut added).is_pending() && look(&mut listed).is_pending());
    // Messages do not wait.
    pool.router.tell(2u64);
    reader.end();
    assert_eq!(pool.answer(grown).unwrap(), 5);
    assert_eq!(pool.answer(added).unwrap(), 6);
    assert_eq!(pool.answer(listed).len(), 6);
    pool.end();
}

#[test]
fn changes_wait_over_a_restart_of_the_head() {
    let _alone = alone();
    let mut pool = Pool::new(NO_LIMIT);
    let reader = Reader::begin();
    assert_eq!(pool.answer(pool.router.head().ask(AdjustPoolSize::To(3))).unwrap(), 3);
    pool.requests += 1;
    let mut grown = pool.ask(AdjustPoolSize::To(5));
    pool.router.kill();
    // Comes behind the failure, and so behind the restart.
    let listed = pool.ask(GetRoutees::new());
    assert!(look(&mut grown).is_pending());
    reader.end();
    assert_eq!(pool.answer(grown).unwrap(), 5);
    assert_eq!(pool.answer(listed).len(), 5);
    pool.end();
}

#[test]
fn a_change_that_has_waited_as_long_as_it_may_is_refused_and_changes_nothing() {
    let _alone = alone();
    let mut pool = Pool::new(100 * MS);
    let reader = Reader::begin();
    assert_eq!(pool.answer(pool.router.head().ask(AdjustPoolSize::To(3))).unwrap(), 3);
    pool.requests += 1;
    let grown = pool.ask(AdjustPoolSize::To(5));
    let refused = pool.answer(grown);
    assert!(matches!(refused, Err(ManageError::OldTables { waiting: 1, .. })), "{refused:?}");
    assert_eq!(pool.router.routees().unwrap().len(), 3);
    reader.end();
    pool.end();
}

#[test]
fn a_router_that_drains_or_stops_refuses_the_changes_that_wait() {
    let _alone = alone();
    for drains in [true, false] {
        let mut pool = Pool::new(NO_LIMIT);
        let reader = Reader::begin();
        assert_eq!(pool.answer(pool.router.head().ask(AdjustPoolSize::To(3))).unwrap(), 3);
        pool.requests += 1;
        let grown = pool.ask(AdjustPoolSize::To(5));
        if drains {
            pool.router.drain().unwrap();
        } else {
            pool.router.stop();
        }
        // No time passes.
        let refused = grown.wait().expect("an answer");
        assert!(matches!(refused, Err(ManageError::Stopped { .. })), "{drains} {refused:?}");
        reader.end();
        pool.end();
    }
}

/// Does not step aside while it waits.
struct Holds(mpsc::Sender<()>, mpsc::Receiver<()>);

impl Actor for Holds {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        self.0.send(())?;
        self.1.recv()?;
        Ok(())
    }
}

/// More than a thousand changes were refused where a handler of another system took a second.
#[test]
fn a_handler_of_another_system_refuses_no_change_by_default() {
    let _alone = alone();
    let other = System::builder("other").build().unwrap();
    let (inside, is_inside) = mpsc::channel();
    let (tell, go_on) = mpsc::channel();
    let mut holds = Some(Holds(inside, go_on));
    other.spawn(move || holds.take().expect("never restarted")).unwrap().tell(());
    is_inside.recv().unwrap();
    let system = System::builder("changes").build().unwrap();
    let router = system.router("pool").pool(2, |_| Sink).spawn().unwrap();
    for n in 0..3000 {
        assert!(router.resize_to(3 - n % 2).is_ok(), "change {n}");
    }
    // Large indexes come to the bound: the change waits, by the machine's clock, until the handler is done.
    let hashing = ConsistentHashing::new().virtual_nodes(10_000);
    let plan = system.router("hashes").pool(2, |_| Sink).logic(hashing);
    let router = plan.old_tables_max(1 << 20).change_within(Duration::MAX).spawn().unwrap();
    let changes = std::thread::spawn(move || (0..8).all(|n| router.resize_to(3 - n % 2).is_ok()));
    tell.send(()).unwrap();
    assert!(changes.join().unwrap(), "they wait and are done");
    assert_eq!(system.shutdown(SOON).unwrap().balance(), 0);
    assert_eq!(other.shutdown(SOON).unwrap().balance(), 0);
}

#[test]
fn memory_bounds_the_old_tables_of_each_router_by_itself() {
    let _alone = alone();
    let reader = Reader::begin();
    let system = System::builder("tables").build().unwrap();
    let plan = system.router("pool").pool(2, |_| Sink).old_tables_max(64 << 10);
    let router = plan.change_within(Duration::ZERO).spawn().unwrap();
    let refused_after = |router: &Router<u64>| {
        let mut changes = (0..5000).map(|n| router.resize_to(3 - n % 2)).enumerate();
        let (changed, refused) = changes.find(|(_, change)| change.is_err()).expect("a bound");
        assert!(
            matches!(refused, Err(ManageError::OldTables { waiting, .. }) if waiting == changed),
            "{refused:?}"
        );
        changed
    };
    // A table of 2 or 3 takes a hundred bytes or two.
    let changed = refused_after(&router);
    assert!((200..1000).contains(&changed), "{changed}");
    // What an index takes counts: 2 or 3 times 160 points of 16 bytes.
    let hashing = ConsistentHashing::new().virtual_nodes(160);
    let plan = system.router("hashes").pool(2, |_| Sink).logic(hashing).old_tables_max(64 << 10);
    let changed = refused_after(&plan.change_within(Duration::ZERO).spawn().unwrap());
    assert!((4..16).contains(&changed), "{changed}");
    // Another router is none the worse for it, in whatever system.
    let other = System::builder("other").build().unwrap();
    for system in [&system, &other] {
        let neighbour = system.router("neighbour").pool(2, |_| Sink).spawn().unwrap();
        (0..100).for_each(|n| assert!(neighbour.resize_to(2 + n % 2).is_ok()));
    }
    assert!(router.resize_to(3).is_err());
    // Routing goes on meanwhile.
    router.to_ref().tell(2u64);
    reader.end();
    assert_eq!(router.resize_to(5).unwrap(), 5);
    assert_eq!(router.routees().unwrap().len(), 5);
    assert_eq!(system.shutdown(SOON).unwrap().balance(), 0);
    assert_eq!(other.shutdown(SOON).unwrap().balance(), 0);
}
