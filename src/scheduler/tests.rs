use super::*;
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use std::ptr::NonNull;
use std::sync::{Barrier, Weak};
use std::thread;

/// A task that is woken by counting, and may be woken from anywhere.
#[repr(C)]
struct Counter {
    task: Task,
    pool: Weak<Pool>,
    /// Wakes not yet handled; whoever raises it from 0 wins the token.
    pending: AtomicUsize,
    handled: AtomicUsize,
    running: AtomicBool,
    /// Wakes that this task passes on to `next`, one per message, while there are any left.
    hops: AtomicUsize,
    next: AtomicUsize,
    all: Weak<Vec<Counter>>,
}

impl Counter {
    fn wake(&self) {
        if self.pending.fetch_add(1, Ordering::AcqRel) == 0 {
            // SAFETY: raising `pending` from 0 wins the token; the counters outlive the pool's workers.
            let task = unsafe { TaskRef::new(NonNull::from(self).cast()) };
            self.pool.upgrade().expect("the pool is alive").schedule(task);
        }
    }

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
    // A stopped pool runs all that was scheduled, and what that schedules.
    pool.stop();
    pool.join().expect("no worker");
    let handled: usize = all.iter().map(|counter| counter.handled.load(Ordering::Relaxed)).sum();
    assert_eq!(handled, SENDERS * WAKES + TASKS * HOPS);
    assert!(all.iter().all(|counter| counter.pending.load(Ordering::Relaxed) == 0));
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
    fn rest(&mut self) {}
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
        // The factory went with the last thread: all have ended, and none began to work.
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
