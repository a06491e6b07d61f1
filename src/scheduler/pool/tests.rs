use super::*;
use crate::scheduler::current::{blocking, on_worker};
use crate::scheduler::task::{Ran, Task, Turn};
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use std::ptr::NonNull;

/// Asks for a task that is no actor, of which nothing is measured.
fn asks(turn: &Turn) -> bool {
    // SAFETY: of a mailbox without an actor nothing is read.
    unsafe { turn.should_yield(NonNull::<()>::dangling()) }
}
use std::sync::{Barrier, Weak};
use std::thread;

/// A task that is woken by counting, and may be woken from anywhere.
#[repr(C)]
struct Counter {
    task: Task,
    pool: Weak<Pool>,
    /// Wakes not yet handled; the thread that raises this from 0 wins the token.
    pending: AtomicUsize,
    handled: AtomicUsize,
    running: AtomicBool,
    /// Wakes that this task still passes on to `next`, one per message.
    hops: AtomicUsize,
    next: AtomicUsize,
    all: Weak<Vec<Counter>>,
}

impl Counter {
    fn wake(&self) {
        if self.pending.fetch_add(1, Ordering::AcqRel) == 0 {
            // SAFETY: raising `pending` from 0 wins the token; the counters outlive the pool's workers.
            let task = unsafe { TaskRef::new(NonNull::from(self).cast()) };
            self.pool.upgrade().expect("the pool is alive").schedule(task, |_, _| ());
        }
    }

    /// # Safety
    ///
    /// `RunFn`'s, for the task of a counter.
    unsafe fn run(task: NonNull<Task>, turn: &Turn) -> Ran {
        // SAFETY: `wake` made the pointer from a whole counter, which is alive.
        let this = unsafe { task.cast::<Counter>().as_ref() };
        assert!(!this.running.swap(true, Ordering::AcqRel), "two runners in one task");
        for _ in 0..turn.throughput() {
            this.handled.fetch_add(1, Ordering::Relaxed);
            let passes_on =
                this.hops.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            if passes_on.is_ok() {
                let all = this.all.upgrade().expect("the counters are alive");
                let next = this.next.fetch_add(7, Ordering::Relaxed) % all.len();
                all[next].wake();
            }
            this.running.store(false, Ordering::Release);
            if this.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
                return Ran::Idle;
            }
            assert!(!this.running.swap(true, Ordering::AcqRel), "two runners in one task");
        }
        this.running.store(false, Ordering::Release);
        Ran::Requeue
    }
}

fn counters(pool: &Arc<Pool>, count: usize, hops: usize) -> Arc<Vec<Counter>> {
    Arc::new_cyclic(|all| {
        (0..count)
            .map(|index| Counter {
                task: Task::new(Counter::run),
                pool: Arc::downgrade(pool),
                pending: AtomicUsize::new(0),
                handled: AtomicUsize::new(0),
                running: AtomicBool::new(false),
                hops: AtomicUsize::new(hops),
                next: AtomicUsize::new(index),
                all: all.clone(),
            })
            .collect()
    })
}

fn stress(settings: Settings) {
    const SENDERS: usize = 3;
    const WAKES: usize = if cfg!(miri) { 20 } else { 20_000 };
    const TASKS: usize = 37;
    const HOPS: usize = if cfg!(miri) { 20 } else { 5_000 };
    let pool = Pool::start(settings, || ()).expect("the settings are good");
    let all = counters(&pool, TASKS, HOPS);
    let together = Barrier::new(SENDERS);
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (all, together) = (&all, &together);
            scope.spawn(move || {
                together.wait();
                for wake in 0..WAKES {
                    all[(wake * (sender + 1)) % TASKS].wake();
                }
            });
        }
    });
    // A stopped pool runs every task that was scheduled, and the tasks that those schedule.
    pool.stop();
    pool.join().expect("no worker");
    let handled: usize = all.iter().map(|counter| counter.handled.load(Ordering::Relaxed)).sum();
    assert_eq!(handled, SENDERS * WAKES + TASKS * HOPS);
    assert!(all.iter().all(|counter| counter.pending.load(Ordering::Relaxed) == 0));
}

#[test]
fn a_thread_whose_worker_has_ended_is_no_worker_any_more() {
    let (pool, workers) = Pool::assemble(Settings::new("ended", 1)).expect("the settings are good");
    let [worker]: [Worker; 1] = workers.try_into().expect("one");
    pool.stop();
    let is_worker = thread::spawn(move || {
        worker.run(());
        on_worker()
    });
    assert!(!is_worker.join().expect("it ends"));
}

#[test]
fn a_searcher_without_a_core_holds_up_one_task_and_not_two() {
    let (pool, workers) = Pool::assemble(Settings::new("stalled", 2)).expect("the settings are good");
    let all = counters(&pool, 2, 0);
    let [sleeper, stalled]: [Worker; 2] = workers.try_into().expect("two");
    // A searcher that is counted and never runs.
    pool.sleep.begin_search(0);
    let sleeper = thread::spawn(move || sleeper.run(()));
    while !pool.sleep.is_asleep(0) {
        thread::yield_now();
    }
    all[0].wake();
    assert!(pool.sleep.is_asleep(0), "somebody searches already");
    all[1].wake();
    while all.iter().any(|counter| counter.handled.load(Ordering::Relaxed) == 0) {
        thread::yield_now();
    }
    pool.stop();
    sleeper.join().expect("it ends");
    drop(stalled);
}

#[test]
fn the_rest_of_an_emptied_injector_is_told_of_again_before_a_turn() {
    // The worker notifies for the second task once it has queued that task; a third task is queued after that notify.
    for (count, tells) in [(1, false), (2, false), (3, true), (9, true)] {
        let (pool, workers) = Pool::assemble(Settings::new("takes", 1)).expect("the settings are good");
        let all = counters(&pool, count, 0);
        all.iter().for_each(Counter::wake);
        let [worker]: [Worker; 1] = workers.try_into().expect("one");
        assert_eq!(worker.takes_injected_and_will_tell(), tells, "of {count}");
        pool.stop();
        thread::spawn(move || worker.run(())).join().expect("it ends");
        assert!(all.iter().all(|counter| counter.handled.load(Ordering::Relaxed) == 1));
    }
}

/// Frees memory between two sweeps of a search, with a destructor that wakes `wakes` tasks.
struct FreesWhileSearching {
    all: Arc<Vec<Counter>>,
    wakes: usize,
}

impl TurnHooks for FreesWhileSearching {
    fn quiescent(&mut self) {
        self.all.iter().take(std::mem::take(&mut self.wakes)).for_each(Counter::wake);
    }
    fn rest(&mut self) -> bool {
        true
    }
    fn resume(&mut self) {}
}

#[test]
fn what_is_woken_between_two_sweeps_of_a_search_is_run_although_nobody_else_can_take_it() {
    // One task goes to the worker's slot; of two, one goes to its deque, and there is no other worker to steal it.
    for wakes in [1, 2] {
        let (pool, workers) = Pool::assemble(Settings::new("frees", 1)).expect("the settings are good");
        let all = counters(&pool, wakes, 0);
        let [worker]: [Worker; 1] = workers.try_into().expect("one");
        let hooks = FreesWhileSearching { all: all.clone(), wakes };
        let worker = thread::spawn(move || worker.run(hooks));
        while all.iter().any(|counter| counter.handled.load(Ordering::Relaxed) == 0) {
            let were_woken = all.iter().all(|counter| counter.pending.load(Ordering::Relaxed) > 0);
            let asleep = pool.sleep.is_asleep(0);
            let is_left = all.iter().all(|counter| counter.handled.load(Ordering::Relaxed) == 0);
            assert!(!(were_woken && asleep && is_left), "the worker sleeps beside its own task");
            thread::yield_now();
        }
        pool.stop();
        worker.join().expect("it ends");
    }
}

/// Records at its end whether that is on a worker.
struct TellsWhereItEnds(Arc<AtomicBool>);
impl TurnHooks for TellsWhereItEnds {
    fn quiescent(&mut self) {}
    fn rest(&mut self) -> bool {
        true
    }
    fn resume(&mut self) {}
}
impl Drop for TellsWhereItEnds {
    fn drop(&mut self) {
        self.0.store(on_worker(), Ordering::Relaxed);
    }
}

#[test]
fn what_the_last_hook_frees_is_freed_on_a_worker_still_so_that_it_must_not_wait() {
    let (pool, workers) = Pool::assemble(Settings::new("ends", 1)).expect("the settings are good");
    let [worker]: [Worker; 1] = workers.try_into().expect("one");
    pool.stop();
    let was_worker = Arc::new(AtomicBool::new(false));
    let hooks = TellsWhereItEnds(was_worker.clone());
    thread::spawn(move || worker.run(hooks)).join().expect("it ends");
    assert!(was_worker.load(Ordering::Relaxed));
}

#[test]
fn every_wake_is_run_once_by_one_worker_at_a_time() {
    stress(Settings::new("stress", 4));
}

#[test]
fn the_same_with_short_turns_no_slot_and_no_search() {
    let settings = Settings::new("short", 4);
    stress(Settings { throughput: 1, lifo: false, spin: Duration::ZERO, ..settings });
}

#[test]
fn the_same_in_two_groups() {
    stress(Settings { group_size: 2, throughput: 3, ..Settings::new("groups", 4) });
}

#[test]
fn settings_out_of_bounds_are_refused() {
    let refused = |settings| Pool::start(settings, || ()).expect_err("out of bounds").to_string();
    assert_eq!(refused(Settings::new("t", 0)), "0 threads: must be between 1 and 1024");
    assert_eq!(refused(Settings::new("t", 1025)), "1025 threads: must be between 1 and 1024");
    let settings = Settings { throughput: 0, ..Settings::new("t", 1) };
    assert_eq!(refused(settings), "throughput 0: must be at least 1 message per turn");
    let settings = Settings { pin_to: Some(vec![0]), ..Settings::new("t", 2) };
    assert_eq!(refused(settings), "2 threads pinned to 1 cores: name one core for each thread");
}

/// Counts the hooks alive.
struct Alive(Arc<AtomicUsize>);
impl TurnHooks for Alive {
    fn quiescent(&mut self) {}
    fn rest(&mut self) -> bool {
        true
    }
    fn resume(&mut self) {}
}
impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_core_that_does_not_exist_is_an_error_and_leaves_no_thread() {
    // A core that exists on any machine that runs this test, and two that no machine has.
    let here = affinity::available_cores()[0];
    for missing in [1023, 4095] {
        let started = Arc::new(AtomicUsize::new(0));
        let counted = started.clone();
        let settings = Settings { pin_to: Some(vec![here, missing, here]), ..Settings::new("missing", 3) };
        let error = Pool::start(settings, move || {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .expect_err("no such core");
        assert!(matches!(&error, StartError::Core { core, .. } if *core == missing), "{error}");
        assert!(error.to_string().starts_with(&format!("core {missing} cannot be had")), "{error}");
        // The factory was dropped with the last thread: all threads have ended, and none has begun to work.
        assert_eq!(Arc::strong_count(&started), 1);
        assert_eq!(started.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn pinned_workers_start_and_their_hooks_end_with_them() {
    let here = affinity::available_cores()[0];
    let alive = Arc::new(AtomicUsize::new(2));
    let counted = alive.clone();
    let settings = Settings { pin_to: Some(vec![here, here]), ..Settings::new("pinned", 2) };
    let pool = Pool::start(settings, move || Alive(counted.clone())).expect("this core is ours");
    pool.stop();
    pool.join().expect("no worker");
    assert_eq!(alive.load(Ordering::Relaxed), 0);
    assert!(!on_worker() && !is_worker_of(&pool));
}

/// A task that calls a function and ends.
#[repr(C)]
struct Call {
    task: Task,
    act: Box<dyn Fn(&Turn) + Send + Sync>,
}

impl Call {
    fn new(act: impl Fn(&Turn) + Send + Sync + 'static) -> Box<Self> {
        Box::new(Self { task: Task::new(Call::run), act: Box::new(act) })
    }

    fn token(&self) -> TaskRef {
        // SAFETY: each test hands a call out once at a time and joins the workers before it drops it.
        unsafe { TaskRef::new(NonNull::from(self).cast()) }
    }

    /// # Safety
    ///
    /// `RunFn`'s, for the task of a call.
    unsafe fn run(task: NonNull<Task>, turn: &Turn) -> Ran {
        // SAFETY: `token` made the pointer from a whole call.
        let this = unsafe { task.cast::<Call>().as_ref() };
        (this.act)(turn);
        Ran::Idle
    }
}

#[test]
fn a_worker_knows_its_pool_and_cannot_join_it() {
    let pool = Pool::start(Settings::new("knows", 1), || ()).expect("the settings are good");
    let other = Pool::start(Settings::new("other", 1), || ()).expect("the settings are good");
    let (told, tells) = std::sync::mpsc::channel();
    let call = {
        let (pool, other) = (pool.clone(), other.clone());
        Call::new(move |_| {
            let known = (on_worker(), is_worker_of(&pool), is_worker_of(&other));
            told.send((known, pool.join())).expect("the test listens");
        })
    };
    pool.schedule(call.token(), |_, _| ());
    assert_eq!(tells.recv(), Ok(((true, true, false), Err(JoinError::OwnThread))));
    assert!(JoinError::OwnThread.to_string().ends_with("join from another thread"));
    for pool in [pool, other] {
        pool.stop();
        pool.join().expect("no worker");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    Quiescent,
    Rest,
    Resume,
}

struct Reports(std::sync::mpsc::Sender<Report>);
impl TurnHooks for Reports {
    fn quiescent(&mut self) {
        let _ = self.0.send(Report::Quiescent);
    }
    fn rest(&mut self) -> bool {
        let _ = self.0.send(Report::Rest);
        true
    }
    fn resume(&mut self) {
        let _ = self.0.send(Report::Resume);
    }
}

#[test]
fn a_worker_rests_while_it_sleeps_and_is_quiescent_after_a_turn_and_after_a_sweep() {
    let (report, reports) = std::sync::mpsc::channel();
    let settings = Settings { spin: Duration::ZERO, ..Settings::new("hooks", 1) };
    let pool = Pool::start(settings, move || Reports(report.clone())).expect("the settings are good");
    let next = |count: usize| (0..count).map(|_| reports.recv().expect("a report")).collect::<Vec<_>>();
    assert_eq!(next(2), [Report::Quiescent, Report::Rest], "it has found nothing");
    let call = Call::new(|_| {});
    pool.schedule(call.token(), |_, _| ());
    assert_eq!(next(4), [Report::Resume, Report::Quiescent, Report::Quiescent, Report::Rest]);
    pool.stop();
    pool.join().expect("no worker");
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), [Report::Resume, Report::Quiescent]);
}

#[test]
fn a_handler_that_steps_aside_lets_others_run_what_it_woke() {
    let pool = Pool::start(Settings::new("aside", 2), || ()).expect("the settings are good");
    let (ran, runs) = std::sync::mpsc::channel();
    let (ended, ends) = std::sync::mpsc::channel();
    let runs = std::sync::Mutex::new(runs);
    let woken = Arc::new(Call::new(move |_| ran.send(()).expect("the handler listens")));
    let handler = {
        let (pool, woken) = (pool.clone(), woken.clone());
        Call::new(move |_| {
            pool.schedule(woken.token(), |_, _| ());
            blocking(|| runs.lock().expect("one handler").recv().expect("it runs elsewhere"));
            ended.send(()).expect("the test listens");
        })
    };
    pool.schedule(handler.token(), |_, _| ());
    assert_eq!(ends.recv(), Ok(()));
    pool.stop();
    pool.join().expect("no worker");
}

#[test]
fn a_long_turn_is_asked_to_end_for_the_task_that_it_woke() {
    let pool = Pool::start(Settings::new("yields", 1), || ()).expect("the settings are good");
    let (told, tells) = std::sync::mpsc::channel();
    let woken = Arc::new(Call::new(|turn| assert!(!asks(turn), "no task waits for this turn")));
    let handler = {
        let (pool, woken) = (pool.clone(), woken.clone());
        Call::new(move |turn| {
            let before = (0..100).any(|_| asks(turn));
            pool.schedule(woken.token(), |_, _| ());
            // The loop ends because the clock goes on; no bound on its time is tested.
            while !asks(turn) {
                thread::yield_now();
            }
            let aside = blocking(|| asks(turn));
            told.send((before, aside)).expect("the test listens");
        })
    };
    pool.schedule(handler.token(), |_, _| ());
    assert_eq!(tells.recv(), Ok((false, false)));
    pool.stop();
    pool.join().expect("no worker");
}
