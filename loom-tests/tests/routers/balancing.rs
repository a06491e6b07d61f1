//! A queue shared by several takers: on its own, with takers that stand for actors; and as the queue of a whole
//! balancing pool, on a dispatcher whose threads are the model's own.
//!
//! At the end of each model everybody sleeps, and then nothing may be left to take (invariant 10), and each message
//! has been handled, emptied out or handed back once (invariant 1).

use crate::support::model;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use pointsman::Ledger;
use pointsman::loom_hooks::calling_dispatcher;
use pointsman::loom_hooks::shared_queue::{AtBound, Bound, Pushed, Refused, SharedQueue, Taker, Wake};
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use std::num::NonZeroUsize;
// Counters that the models look at when all is over; they order nothing.
use std::sync::atomic::{AtomicUsize as Count, Ordering::SeqCst};
use std::time::Duration;

type Queue = Arc<SharedQueue<usize, Waker>>;

/// Stands for an actor: whoever wakes it runs it.
struct Worker {
    /// Wakes not yet served; whoever raises it from 0 runs the worker.
    pending: AtomicUsize,
    /// Not atomic: two runners at a time are an error of the model.
    taker: UnsafeCell<Option<Taker<usize, Waker>>>,
    /// What it is to become at its next turn.
    order: AtomicUsize,
    handled: Count,
    /// What it found in the queue when it was the last to leave.
    emptied: Count,
}

// SAFETY: `taker` is touched by whoever raised `pending` from 0; loom reports it if not.
unsafe impl Send for Worker {}
// SAFETY: as above.
unsafe impl Sync for Worker {}

const WORK: usize = 0;
const SUSPEND: usize = 1;
const LEAVE: usize = 2;
const LEAVE_WHEN_EMPTY: usize = 3;
/// Takes one message, and is at work on it until it is told otherwise.
const TAKE_ONE: usize = 4;

struct Waker(Arc<Worker>);

impl Wake for Waker {
    fn wake(&self) {
        self.0.wake();
    }
}

impl Worker {
    /// Joins, and has had no turn.
    fn join(queue: &Queue) -> Arc<Worker> {
        let worker = Arc::new(Worker {
            pending: AtomicUsize::new(0),
            taker: UnsafeCell::new(None),
            order: AtomicUsize::new(WORK),
            handled: Count::new(0),
            emptied: Count::new(0),
        });
        let taker = Taker::join(queue.clone(), Waker(worker.clone()));
        // SAFETY: nobody can wake it before it has registered.
        worker.taker.with_mut(|place| unsafe { *place = Some(taker) });
        worker
    }

    /// As `join`, and sleeps.
    fn asleep(queue: &Queue) -> Arc<Worker> {
        let worker = Self::join(queue);
        worker.wake();
        worker
    }

    fn wake(&self) {
        if self.pending.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        loop {
            let seen = self.pending.load(Ordering::Acquire);
            self.turn();
            if self.pending.fetch_sub(seen, Ordering::AcqRel) == seen {
                return;
            }
        }
    }

    fn turn(&self) {
        let mut answers = None;
        self.taker.with_mut(|place| {
            // SAFETY: only the one who runs the worker is here.
            let place = unsafe { &mut *place };
            let Some(taker) = place else { return };
            let mut claimed = taker.withdraw();
            match self.order.load(Ordering::Acquire) {
                SUSPEND => answers = claimed.then(|| taker.queue().clone()),
                LEAVE => {
                    answers = claimed.then(|| taker.queue().clone());
                    self.leave(place);
                }
                LEAVE_WHEN_EMPTY => self.leave_when_empty(place, claimed),
                TAKE_ONE => {
                    if taker.take().is_some() {
                        self.handled.fetch_add(1, SeqCst);
                    }
                    answers = claimed.then(|| taker.queue().clone());
                }
                _ => {
                    self.take_all(taker, claimed);
                    while !taker.register() {
                        claimed = taker.withdraw();
                        self.take_all(taker, claimed);
                    }
                }
            }
        });
        if let Some(queue) = answers {
            queue.answer();
        }
    }

    fn take_all(&self, taker: &Taker<usize, Waker>, mut claimed: bool) {
        loop {
            let taken = taker.take();
            if std::mem::take(&mut claimed) {
                taker.queue().answer();
            }
            if taken.is_none() {
                return;
            }
            self.handled.fetch_add(1, SeqCst);
        }
    }

    fn leave_when_empty(&self, place: &mut Option<Taker<usize, Waker>>, claimed: bool) {
        let Some(mut taker) = place.take() else { return };
        self.take_all(&taker, claimed);
        while let Err(stays) = taker.leave_when_empty() {
            taker = stays;
            self.take_all(&taker, false);
        }
    }

    fn leave(&self, place: &mut Option<Taker<usize, Waker>>) {
        if let Some(taker) = place.take() {
            self.emptied.fetch_add(taker.leave().len(), SeqCst);
        }
    }

    /// At its position: it has taken nothing before.
    fn leave_unless_last(&self) {
        self.taker.with_mut(|place| {
            // SAFETY: it has not registered, so nobody else runs it.
            let place = unsafe { &mut *place };
            let mut taker = place.take().expect("it has not left");
            while let Err(stays) = taker.leave_when_empty() {
                taker = stays;
                self.take_all(&taker, false);
            }
        });
    }

    fn tell(&self, order: usize) {
        self.order.store(order, Ordering::Release);
        self.wake();
    }

    fn handled(&self) -> usize {
        self.handled.load(SeqCst)
    }
}

fn queue() -> Queue {
    queue_of(None)
}

fn queue_of(bound: Option<Bound>) -> Queue {
    let queue = SharedQueue::new();
    queue.open(bound);
    Arc::new(queue)
}

/// What came of some pushes: how many were refused, and how many messages they emptied out.
#[derive(Default)]
struct Outcome {
    refused: usize,
    stranded: usize,
    /// In the order in which they made room.
    displaced: Vec<usize>,
}

fn push(queue: &Queue, count: usize) -> Outcome {
    let mut outcome = Outcome::default();
    for number in 0..count {
        match queue.push(number) {
            Ok(Pushed::Queued) => {}
            Ok(Pushed::Displaced(oldest)) => outcome.displaced.push(oldest),
            Ok(Pushed::Stranded(messages)) => outcome.stranded += messages.len(),
            Err(Refused::Full(_) | Refused::ToDrop(_) | Refused::NoTaker(_)) => outcome.refused += 1,
        }
    }
    outcome
}

fn pusher(queue: &Queue, count: usize) -> thread::JoinHandle<Outcome> {
    let queue = queue.clone();
    thread::spawn(move || push(&queue, count))
}

/// Everybody sleeps: nothing is left. Ends the workers.
fn end(queue: &Queue, workers: &[&Arc<Worker>]) -> usize {
    assert_eq!(queue.len(), 0, "all sleep, and a message is left");
    for worker in workers {
        worker.tell(LEAVE);
        assert_eq!(worker.emptied.load(SeqCst), 0);
    }
    workers.iter().map(|worker| worker.handled()).sum()
}

// Bound 3: two threads.
// Caught: no fence in `push`; no fence in `register`; `register` that does not look again.
#[test]
fn a_push_races_the_park() {
    model("balancing_push_races_park", &[1, 10], 3, 100, || {
        let queue = queue();
        let worker = Worker::join(&queue);
        let pusher = pusher(&queue, 1);
        worker.wake();
        pusher.join().unwrap();
        assert_eq!(end(&queue, &[&worker]), 1);
    });
}

// Bound 3: three threads, few steps each.
#[test]
fn two_pushers_wake_two_takers() {
    model("balancing_two_pushers_two_takers", &[1, 10], 3, 60_000, || {
        let queue = queue();
        let workers = [Worker::asleep(&queue), Worker::asleep(&queue)];
        let pushers = [pusher(&queue, 1), pusher(&queue, 1)];
        pushers.into_iter().for_each(|pusher| _ = pusher.join().unwrap());
        assert_eq!(end(&queue, &[&workers[0], &workers[1]]), 2);
    });
}

// Bound 3: two threads beside main, which waits.
// Caught: `hand_on` that wakes nobody; a `withdraw` that does not acquire what a claim is for; a sender that takes
// one entry and gives up if it is stale.
#[test]
fn a_claimed_taker_that_is_suspended_hands_on() {
    model("balancing_suspend_hands_on", &[1, 10], 3, 58, || {
        let queue = queue();
        let workers = [Worker::asleep(&queue), Worker::asleep(&queue)];
        let pusher = pusher(&queue, 1);
        workers[0].tell(SUSPEND);
        pusher.join().unwrap();
        assert_eq!(end(&queue, &[&workers[0], &workers[1]]), 1);
    });
}

// Bound 3: as above.
// Caught: `leave` that wakes nobody.
#[test]
fn a_claimed_taker_that_leaves_hands_on() {
    model("balancing_leave_hands_on", &[1, 10], 3, 4_500, || {
        let queue = queue();
        let workers = [Worker::asleep(&queue), Worker::asleep(&queue)];
        let pusher = pusher(&queue, 1);
        workers[0].tell(LEAVE);
        pusher.join().unwrap();
        assert_eq!(workers[0].emptied.load(SeqCst), 0, "another one is there");
        assert_eq!(workers[0].handled() + end(&queue, &[&workers[1]]), 1);
    });
}

// Bound 3: two threads.
// Caught: a sender that does not look for takers after its push. Not seen: a missing fence in `leave`, for which the
// locks of the stand-in make up.
#[test]
fn a_push_races_the_end_of_the_last_taker() {
    model("balancing_push_races_last_leave", &[1], 3, 1_600, || {
        let queue = queue();
        let worker = Worker::asleep(&queue);
        let pusher = pusher(&queue, 2);
        worker.tell(LEAVE);
        let Outcome { refused, stranded, .. } = pusher.join().unwrap();
        let emptied = worker.emptied.load(SeqCst);
        assert_eq!(worker.handled() + emptied + refused + stranded, 2);
        assert_eq!(queue.len(), 0, "nobody is left to take it");
    });
}

// Bound 3: two threads.
#[test]
fn the_last_taker_that_leaves_when_empty_leaves_nothing() {
    model("balancing_push_races_leave_when_empty", &[1], 3, 5_500, || {
        let queue = queue();
        let worker = Worker::asleep(&queue);
        let pusher = pusher(&queue, 2);
        worker.tell(LEAVE_WHEN_EMPTY);
        let Outcome { refused, stranded, .. } = pusher.join().unwrap();
        // Only the sender itself can find its message stranded: what was pushed before it handled.
        assert!(stranded <= 1);
        assert_eq!(worker.handled() + refused + stranded, 2);
        assert_eq!(queue.len(), 0, "nobody is left to take it");
    });
}

// Bound 3: three threads, few steps each. What was pushed before anybody leaves is handled.
#[test]
fn of_two_that_leave_when_empty_the_last_takes_all() {
    model("balancing_two_leave_when_empty", &[1], 3, 600, || {
        let queue = queue();
        let workers = [Worker::join(&queue), Worker::join(&queue)];
        assert_eq!(push(&queue, 2).refused, 0);
        let leaves = {
            let worker = workers[0].clone();
            thread::spawn(move || worker.tell(LEAVE_WHEN_EMPTY))
        };
        workers[1].tell(LEAVE_WHEN_EMPTY);
        leaves.join().unwrap();
        assert_eq!(workers[0].handled() + workers[1].handled(), 2);
        assert_eq!(queue.len(), 0);
    });
}

// Bound 3: three threads. One is to leave, unless it is the last, while the other one ends at once: of what was pushed
// before nothing is lost, unless the other one was the last.
// Caught: `leave_when_empty` that never stays, that looks at the queue before it is no taker any more, or that stays and
// is not counted again; a last taker that leaves the queue as it is; a sender that does not look for takers after its push.
#[test]
fn one_that_leaves_unless_it_is_the_last_races_the_end_of_the_other() {
    model("balancing_leave_when_empty_races_leave", &[1], 3, 11_000, || {
        let queue = queue();
        let (leaving, ending) = (Worker::join(&queue), Worker::join(&queue));
        assert_eq!(push(&queue, 1).refused, 0);
        let ends = {
            let ending = ending.clone();
            thread::spawn(move || ending.tell(LEAVE))
        };
        let pusher = pusher(&queue, 1);
        leaving.leave_unless_last();
        ends.join().unwrap();
        let Outcome { refused, stranded, .. } = pusher.join().unwrap();
        let emptied = ending.emptied.load(SeqCst);
        assert_eq!(leaving.handled() + emptied + stranded + refused, 2);
        assert_eq!(queue.len(), 0, "nobody is left to take it");
    });
}

// Bound 3: two threads beside main, which waits; two messages, of which the second is pushed while one is called.
#[test]
fn whoever_is_called_wakes_the_next_if_there_is_more() {
    model("balancing_call_chain", &[1, 10], 3, 21_000, || {
        let queue = queue();
        let workers = [Worker::asleep(&queue), Worker::asleep(&queue)];
        let pusher = pusher(&queue, 1);
        push(&queue, 1);
        pusher.join().unwrap();
        assert_eq!(end(&queue, &[&workers[0], &workers[1]]), 2);
    });
}

// Bound 3: two threads. Whoever is called takes one message and looks for no other, while the next is pushed: the other
// one must not sleep meanwhile.
// Caught: `answer` without its fence, or that does not look.
#[test]
fn whoever_is_called_leaves_the_rest_to_another_while_it_is_at_work() {
    model("balancing_answer_races_push", &[1, 10], 3, 8_800, || {
        let queue = queue();
        let workers = [Worker::asleep(&queue), Worker::asleep(&queue)];
        workers[0].order.store(TAKE_ONE, Ordering::Release);
        let pusher = pusher(&queue, 1);
        push(&queue, 1);
        pusher.join().unwrap();
        assert_eq!(queue.len(), 0, "one sleeps, and a message is left");
        assert_eq!(workers[0].handled(), 1);
        workers[0].tell(WORK);
        assert_eq!(end(&queue, &[&workers[0], &workers[1]]), 2);
    });
}

// Bound 3: two threads. The sender that finds nobody has taken the call while the other one pushed.
#[test]
fn a_call_for_nobody_hides_no_taker_that_registers() {
    model("balancing_call_for_nobody", &[1, 10], 3, 16_000, || {
        let queue = queue();
        let gone = Worker::asleep(&queue);
        let worker = Worker::join(&queue);
        // A stale entry: whoever takes it finds nobody.
        gone.tell(SUSPEND);
        let pusher = pusher(&queue, 1);
        worker.wake();
        push(&queue, 1);
        pusher.join().unwrap();
        let handled = end(&queue, &[&worker]);
        gone.tell(LEAVE);
        assert_eq!(handled, 2);
    });
}

// Bound 3: two threads.
// Caught: `take_stranded` without its second look at the takers; `leave` that empties the queue after the lock.
#[test]
fn what_is_pushed_for_a_new_taker_is_not_emptied_by_a_sender() {
    model("balancing_open_again_sender", &[1], 3, 1_400, || {
        let queue = queue();
        let old = Worker::asleep(&queue);
        let early = pusher(&queue, 1);
        old.tell(LEAVE);
        let new = Worker::join(&queue);
        // From here on there is a taker, which is at work.
        let late = push(&queue, 1);
        let early = early.join().unwrap();
        new.wake();
        assert_eq!((late.refused, late.stranded), (0, 0));
        let emptied = old.emptied.load(SeqCst);
        assert!(emptied + early.stranded <= 1, "the late one was emptied out, too");
        let handled = old.handled() + end(&queue, &[&new]);
        assert_eq!(handled + emptied + early.refused + early.stranded, 2);
    });
}

// Bound 3: two threads.
// Caught: `leave` that empties the queue after the lock.
#[test]
fn what_is_pushed_for_a_new_taker_is_not_emptied_by_the_old_one() {
    model("balancing_open_again_taker", &[1], 3, 740, || {
        let queue = queue();
        let old = Worker::asleep(&queue);
        let leaves = {
            let old = old.clone();
            thread::spawn(move || old.tell(LEAVE))
        };
        let new = Worker::join(&queue);
        let late = push(&queue, 1);
        leaves.join().unwrap();
        new.wake();
        assert_eq!((late.refused, late.stranded, old.emptied.load(SeqCst)), (0, 0, 0));
        assert_eq!(old.handled() + end(&queue, &[&new]), 1);
    });
}

// Bound 3: two threads.
#[test]
fn a_bounded_queue_refuses_only_when_it_is_full() {
    model("balancing_bounded", &[1, 10, 18], 3, 200, || {
        let queue = queue_of(Some(Bound { capacity: NonZeroUsize::MIN, at_bound: AtBound::Refuse }));
        let worker = Worker::join(&queue);
        let pusher = pusher(&queue, 2);
        worker.wake();
        let refused = pusher.join().unwrap().refused;
        assert!(refused <= 1, "the first one finds room");
        assert_eq!(end(&queue, &[&worker]), 2 - refused);
    });
}

/// A full queue lets the oldest go.
const ONE_DROPS_OLDEST: Option<Bound> =
    Some(Bound { capacity: NonZeroUsize::MIN, at_bound: AtBound::DropOldest });

// Bound 3: two threads.
// Caught: a displacing push that loses what it displaces. Not seen: one that wakes nobody, which the pusher of the displaced
// message makes up for.
#[test]
fn a_full_queue_displaces_the_oldest_and_keeps_the_newest() {
    model("balancing_displaces_oldest", &[1, 10], 3, 350, || {
        let queue = queue_of(ONE_DROPS_OLDEST);
        let worker = Worker::join(&queue);
        // Full, and nobody has looked yet.
        assert_eq!(push(&queue, 1).displaced.len(), 0);
        let pusher = pusher(&queue, 2);
        worker.wake();
        let Outcome { refused, displaced, .. } = pusher.join().unwrap();
        assert_eq!(refused, 0);
        assert!(displaced.len() <= 2 && displaced.iter().all(|number| *number == 0), "the newest is kept");
        assert_eq!(end(&queue, &[&worker]) + displaced.len(), 3);
    });
}

// Bound 3: three threads. One sender displaces what the other has pushed for a taker that has left.
// Caught: a displacing push that loses what it displaces, also where it finds no taker.
#[test]
fn a_displacing_push_races_the_end_of_the_last_taker() {
    model("balancing_displacing_races_last_leave", &[1], 3, 1_600, || {
        let queue = queue_of(ONE_DROPS_OLDEST);
        let worker = Worker::join(&queue);
        let pushers = [pusher(&queue, 1), pusher(&queue, 1)];
        worker.tell(LEAVE);
        let mut ended = worker.emptied.load(SeqCst);
        for pusher in pushers {
            let Outcome { refused, stranded, displaced } = pusher.join().unwrap();
            ended += refused + stranded + displaced.len();
        }
        // Before it left it had no turn.
        assert_eq!((worker.handled(), ended), (0, 2));
        assert_eq!(queue.len(), 0, "nobody is left to take it");
    });
}

// Bound 3: three threads, few steps each. The worker is woken for other things, withdraws, and registers again.
// Caught: `register` that reuses an entry without looking whether it is still there; no fence in `push`, none in
// `register`.
#[test]
fn a_stale_entry_is_used_again() {
    model("balancing_stale_entry", &[1, 10], 3, 100_000, || {
        let queue = queue();
        let worker = Worker::asleep(&queue);
        let pushers = [pusher(&queue, 1), pusher(&queue, 1)];
        worker.wake();
        pushers.into_iter().for_each(|pusher| _ = pusher.join().unwrap());
        assert_eq!(end(&queue, &[&worker]), 2);
    });
}

// Bound 2: three threads.
// Caught: a sender that takes one entry and gives up if it is stale.
#[test]
fn takers_come_and_go_while_messages_come() {
    model("balancing_resize", &[1, 10], 2, 33_000, || {
        let queue = queue();
        let leaving = Worker::asleep(&queue);
        let pusher = pusher(&queue, 2);
        let leaves = {
            let leaving = leaving.clone();
            thread::spawn(move || leaving.tell(LEAVE))
        };
        let coming = Worker::asleep(&queue);
        let Outcome { refused, stranded, .. } = pusher.join().unwrap();
        leaves.join().unwrap();
        let emptied = leaving.emptied.load(SeqCst);
        let handled = leaving.handled() + end(&queue, &[&coming]);
        assert_eq!(handled + emptied + refused + stranded, 2);
    });
}

/// A routee that counts. It fails at 13, and at 14 waits until one of them has handled a 1. From 20 to 26 it sends itself
/// the next number, and at 20 sends the pool a 1 if it knows it.
struct Routee {
    handled: std::sync::Arc<Count>,
    ones: std::sync::Arc<Count>,
    flood: std::sync::Arc<Flood>,
}

/// What a model of a routee that floods itself looks at.
struct Flood {
    pool: std::sync::OnceLock<ActorRef<u32>>,
    /// 1 if a 1 lies in the shared queue, or was handled. Loom's: to look at it between two messages is what makes loom
    /// push there.
    is_pushed: AtomicUsize,
    /// The routee's own messages that were handled between that and the 1.
    before: Count,
}

/// With a budget of two messages a turn: the rest of the turn in which the 1 was pushed, and the next one.
const FLOOD_MAX: usize = 4;

impl Flood {
    fn new() -> std::sync::Arc<Self> {
        let (pool, is_pushed) = (std::sync::OnceLock::new(), AtomicUsize::new(0));
        std::sync::Arc::new(Self { pool, is_pushed, before: Count::new(0) })
    }

    fn handles(&self, number: u32, ones: usize, ctx: &Context<u32>) {
        if self.is_pushed.load(Ordering::Acquire) == 1 && ones == 0 {
            self.before.fetch_add(1, SeqCst);
        }
        if let Some(pool) = self.pool.get().filter(|_| number == 20) {
            pool.tell(1u32);
            self.is_pushed.store(1, Ordering::Release);
        }
        if number < 26 {
            ctx.me().tell(number + 1);
        }
    }

    fn assert_short(&self) {
        let before = self.before.load(SeqCst);
        assert!(before <= FLOOD_MAX, "the shared queue waited for {before} messages of the routee's own");
    }
}

impl Actor for Routee {
    type Message = u32;
    fn receive(&mut self, number: u32, ctx: &mut Context<u32>) -> HandlerResult {
        self.handled.fetch_add(1, SeqCst);
        match number {
            20.. => self.flood.handles(number, self.ones.load(SeqCst), ctx),
            1 => _ = self.ones.fetch_add(1, SeqCst),
            13 => return Err(Failure::msg("as told")),
            14 => {
                while self.ones.load(SeqCst) == 0 {
                    thread::yield_now();
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A system with a balancing pool.
struct World {
    system: System,
    router: Router<u32>,
    handled: std::sync::Arc<Count>,
    flood: std::sync::Arc<Flood>,
}

impl World {
    fn new(size: usize) -> Self {
        let system = System::builder("model")
            .clock(ManualClock::new())
            .dispatcher("default", calling_dispatcher())
            .build()
            .expect("the settings are sound");
        let handled = std::sync::Arc::new(Count::new(0));
        let flood = Flood::new();
        let (given, ones, floods) = (handled.clone(), std::sync::Arc::new(Count::new(0)), flood.clone());
        let recipe = move |_: &mut Context<u32>| Routee {
            handled: given.clone(),
            ones: ones.clone(),
            flood: floods.clone(),
        };
        let plan = system.router("pool").balancing_pool(size, recipe);
        let router = plan.spawn().expect("the name is free");
        Self { system, router, handled, flood }
    }

    fn tell(&self, number: u32) -> thread::JoinHandle<()> {
        let router = self.router.to_ref();
        thread::spawn(move || router.tell(number))
    }

    fn end(self, sent: u64, asked: u64) -> Ledger {
        let ledger = self.system.shutdown(Duration::MAX).expect("whoever stops it runs it");
        assert_eq!((ledger.sent, ledger.balance(), ledger.queued), (sent + asked, 0, 0), "{ledger}");
        assert_eq!(ledger.handled, self.handled.load(SeqCst) as u64 + asked, "{ledger}");
        ledger
    }
}

// Bound 3: two threads.
// Caught: an owner that lays its token down over a nudge (`try_idle` for `try_idle_unless_nudged`); a routee that
// sleeps without a registration.
#[test]
fn two_senders_and_a_whole_pool() {
    model("balancing_whole_pool", &[1, 10], 3, 6_800, || {
        let world = World::new(1);
        let sender = world.tell(1);
        world.router.tell(2u32);
        sender.join().unwrap();
        assert_eq!(world.handled.load(SeqCst), 2, "handled without any further send");
        world.end(2, 0);
    });
}

// Bound 3: two threads. That a claim is handed on *before* control acts, a test in `tests/it/balancing.rs` shows.
// Caught: as above.
#[test]
fn the_end_of_a_routee_races_a_send() {
    model("balancing_routee_stop_races_send", &[1, 10], 3, 13_000, || {
        let world = World::new(2);
        let routees = world.router.routees().expect("it runs");
        let sender = world.tell(1);
        routees[0].stop();
        sender.join().unwrap();
        drop(routees);
        assert_eq!(world.handled.load(SeqCst), 1, "one of the two takes it");
        world.end(1, 0);
    });
}

// Bound 3: two threads.
// Caught: as above.
#[test]
fn the_failure_of_a_routee_races_a_send() {
    model("balancing_failure_races_send", &[1, 10], 3, 6_400, || {
        let world = World::new(1);
        let sender = world.tell(1);
        world.router.tell(13u32);
        sender.join().unwrap();
        assert_eq!(world.handled.load(SeqCst), 2, "it restarts, and goes on");
        world.end(2, 0);
    });
}

// Bound 1: four threads. A wait without end exhausts the model's branches.
// Caught: a claimed routee that does not look at the queue first; one that does not withdraw when it finds a message
// of its own instead of sleep; one that sleeps without a registration.
#[test]
fn nobody_counts_on_a_routee_that_is_busy_with_its_own() {
    model("balancing_own_message_races_send", &[1, 10], 1, 5_800, || {
        let world = World::new(2);
        let routees = world.router.routees().expect("it runs");
        let own = [2, 14].map(|number: u32| {
            let routee = routees[0].clone();
            thread::spawn(move || routee.tell(number))
        });
        let shared = world.tell(1);
        own.into_iter().for_each(|sender| sender.join().unwrap());
        shared.join().unwrap();
        drop(routees);
        world.end(3, 0);
    });
}

// Bound 3: two threads.
// Caught: a sender that does not look for takers after its push.
#[test]
fn the_end_of_the_router_races_a_send() {
    model("balancing_router_stop_races_send", &[1], 3, 14_000, || {
        let world = World::new(1);
        let sender = {
            let router = world.router.to_ref();
            thread::spawn(move || router.try_tell(1u32).is_ok())
        };
        world.router.stop();
        let taken = sender.join().unwrap();
        let ledger = world.end(1, 0);
        assert_eq!(ledger.handed_back, u64::from(!taken), "{ledger}");
        assert_eq!(ledger.handled + ledger.dead_lettered, u64::from(taken), "{ledger}");
    });
}

// Bound 2: two threads, many steps.
// Caught: a routee that takes nothing from the shared queue at the end of a turn full of its own messages.
#[test]
fn a_routee_flooded_by_itself_takes_what_others_push() {
    model("balancing_flood_races_send", &[10], 2, 1_300, || {
        let world = World::new(1);
        let routees = world.router.routees().expect("it runs");
        let sender = {
            let (router, flood) = (world.router.to_ref(), world.flood.clone());
            thread::spawn(move || {
                router.tell(1u32);
                flood.is_pushed.store(1, Ordering::Release);
            })
        };
        routees[0].tell(20u32);
        sender.join().unwrap();
        drop(routees);
        world.flood.assert_short();
        world.end(8, 0);
    });
}

// Bound 1: two threads, many steps; the other one sends the routee a message of its own.
// Caught: as above.
#[test]
fn a_routee_flooded_by_itself_takes_what_it_has_pushed() {
    model("balancing_flood_races_own_push", &[10], 1, 1_850, || {
        let world = World::new(1);
        let routees = world.router.routees().expect("it runs");
        world.flood.pool.set(world.router.to_ref()).expect("once");
        let sender = {
            let routee = routees[0].clone();
            thread::spawn(move || routee.tell(26u32))
        };
        routees[0].tell(20u32);
        sender.join().unwrap();
        drop(routees);
        world.flood.assert_short();
        world.end(9, 0);
    });
}
