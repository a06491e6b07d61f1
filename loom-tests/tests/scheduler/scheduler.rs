//! Where tasks go: the injector, the LIFO slot, the requeue, the blocking section.
//!
//! As in `sleep.rs`, the jobs stop their pool themselves. A job that waits for another one stands for a
//! long handler: what it waits for must run on the other worker.
//!
//! Seen to fail here: a displaced slot task pushed without notify; a requeued task of which nobody is told;
//! a blocking section that keeps the slot, or fills it; Relaxed in the injector's push or take; the
//! injector's list left in stack order; a LIFO slot that goes before the deque for ever (`faults/14`).

use crate::support::jobs::{Event, Job, StopAfter, join, pool, run};
use crate::support::model;
use loom::sync::{Arc, Mutex};
use loom::thread;
use pointsman::loom_hooks::{Injector, Pool, blocking};
// Counts that the models look at when all is over; they order nothing.
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Three threads (the main thread pushes and takes): bound 3.
#[test]
fn two_pushers_two_takers() {
    model("two_pushers_two_takers", &[3, 4], 3, 140, || {
        let injector = Arc::new(Injector::new());
        let jobs = [0, 1].map(|_| Job::new(|_| {}));
        let taken = Arc::new(Mutex::new(Vec::new()));
        let work = |job: Arc<Job>| {
            let (injector, taken) = (injector.clone(), taken.clone());
            move || {
                injector.push(job.token());
                let batch: Vec<usize> =
                    injector.take().map(|task| task.into_raw().as_ptr() as usize).collect();
                taken.lock().unwrap().extend(batch);
            }
        };
        let other = thread::spawn(work(jobs[1].clone()));
        work(jobs[0].clone())();
        join(vec![other]);
        assert!(injector.is_empty());
        let mut taken = taken.lock().unwrap().clone();
        taken.sort_unstable();
        let mut pushed = jobs.each_ref().map(|job| &raw const **job as usize);
        pushed.sort_unstable();
        assert_eq!(taken, pushed);
    });
}

/// One thread pushes two, the other takes: in order. Two threads: bound 3.
#[test]
fn injector_keeps_the_order_of_one_pusher() {
    model("injector_keeps_the_order_of_one_pusher", &[3, 4], 3, 14, || {
        let injector = Arc::new(Injector::new());
        let jobs = [0, 1].map(|_| Job::new(|_| {}));
        // The taker is the spawned thread: loom does not see that a load of ours races with an exchange that
        // its thread has led with a load of its own.
        let taker = {
            let injector = injector.clone();
            thread::spawn(move || {
                injector.take().map(|task| task.into_raw().as_ptr() as usize).collect::<Vec<_>>()
            })
        };
        let waiting: Vec<bool> = jobs.iter().map(|job| injector.push(job.token())).collect();
        assert!(!waiting[0], "nobody waited before the first");
        let mut taken = taker.join().expect("no panic");
        taken.extend(injector.take().map(|task| task.into_raw().as_ptr() as usize));
        let pushed = jobs.each_ref().map(|job| &raw const **job as usize);
        assert_eq!(taken, pushed);
    });
}

/// A job woken from outside while it uses up its budget on one worker and is stolen by the other: never
/// two runners, no wake lost. Three threads: bound 2.
#[test]
fn requeued_job_has_one_runner() {
    model("requeued_job_has_one_runner", &[3, 4], 2, 10_000, || {
        let (pool, workers) = pool(2, |settings| settings.throughput = 1);
        let threads = run(workers);
        let stop = StopAfter::new(2, &pool);
        let job = Job::new(move |_| stop.count_down());
        job.wake(|task| pool.schedule(task, |_, _| ()));
        job.wake(|task| pool.schedule(task, |_, _| ()));
        join(threads);
        assert_eq!(job.handled(), 2);
    });
}

/// `first` runs on a worker and wakes `others` there. Three threads: bound 2.
fn from_a_worker(
    name: &str,
    job_count: usize,
    act: impl Fn(&[Arc<Job>], &Arc<Pool>, &Event, usize) + Clone + Send + Sync + 'static,
) {
    model(name, &[4, 11], 2, 9000, move || {
        let (pool, workers) = pool(2, |settings| settings.throughput = 1);
        let threads = run(workers);
        let event = Event::new();
        let mut jobs: Vec<Arc<Job>> = Vec::new();
        for number in (0..job_count).rev() {
            let (act, known, pool, event) = (act.clone(), jobs.clone(), pool.clone(), event.clone());
            jobs.insert(0, Job::new(move |_| act(&known, &pool, &event, number)));
        }
        jobs[0].wake(|task| pool.schedule(task, |_, _| ()));
        join(threads);
    });
}

/// The first job uses up its budget and goes to the back; the second, from the slot, waits for the first
/// one's second turn. Three threads, few steps each: bound 3.
#[test]
fn requeue_notifies() {
    model("requeue_notifies", &[4, 11], 3, 16_800, || {
        let (pool, workers) = pool(2, |settings| settings.throughput = 1);
        let event = Event::new();
        let second = {
            let (pool, event) = (pool.clone(), event.clone());
            Job::new(move |_| {
                event.wait();
                pool.stop();
            })
        };
        let first = {
            let (pool, second) = (pool.clone(), second.clone());
            Job::new(move |turn| match turn {
                0 => second.wake(|task| pool.schedule(task, |_, _| ())),
                _ => event.happens(),
            })
        };
        // Two wakes before anybody runs, and a budget of one.
        first.wake(|task| pool.schedule(task, |_, _| ()));
        first.wake(|_| unreachable!("it is scheduled"));
        let threads = run(workers);
        join(threads);
        assert_eq!((first.handled(), second.handled()), (2, 1));
    });
}

/// The third job displaces the second from the slot and then waits for it.
#[test]
fn slot_overflow_notifies() {
    from_a_worker("slot_overflow_notifies", 3, |others, pool, event, number| match number {
        0 => others.iter().for_each(|job| job.wake(|task| pool.schedule(task, |_, _| ()))),
        1 => event.happens(),
        _ => {
            event.wait();
            pool.stop();
        }
    });
}

/// The first job waits for the second, which it has woken into its own worker's slot.
#[test]
fn blocking_section_releases_the_slot() {
    from_a_worker("blocking_section_releases_the_slot", 2, |others, pool, event, number| match number {
        0 => {
            others[0].wake(|task| pool.schedule(task, |_, _| ()));
            blocking(|| event.wait());
            pool.stop();
        }
        _ => event.happens(),
    });
}

/// The same, woken inside the section.
#[test]
fn blocking_section_keeps_the_slot_empty() {
    from_a_worker("blocking_section_keeps_the_slot_empty", 2, |others, pool, event, number| match number {
        0 => {
            blocking(|| {
                others[0].wake(|task| pool.schedule(task, |_, _| ()));
                event.wait();
            });
            pool.stop();
        }
        _ => event.happens(),
    });
}

/// A job that cannot go on until another one has run, which arrives while the worker spins, yields or naps
/// over the first. Two threads: bound 3.
#[test]
fn busy_job_does_not_hide_others() {
    model("busy_job_does_not_hide_others", &[4], 3, 150, || {
        let (pool, workers) = pool(1, |_| {});
        let threads = run(workers);
        let filled = Event::new();
        let stop = StopAfter::new(2, &pool);
        let busy = {
            let stop = stop.clone();
            Job::busy_until(Some(filled.clone()), move |_| stop.count_down())
        };
        let other = Job::new(move |_| {
            filled.happens();
            stop.count_down();
        });
        busy.wake(|task| pool.schedule(task, |_, _| ()));
        other.wake(|task| pool.schedule(task, |_, _| ()));
        join(threads);
        assert_eq!((busy.handled(), other.handled()), (1, 1));
    });
}

/// More turns in a row of two jobs that wake each other than a job in the deque may wait for.
const WAKES_MAX: usize = 8;

/// Two jobs that wake each other, so that each lies in the slot when the other's turn ends. They go on until a third one
/// has run, or stop by themselves after [`WAKES_MAX`] turns.
struct Pair {
    jobs: std::sync::Mutex<Vec<Arc<Job>>>,
    turns: AtomicUsize,
    /// How many turns of theirs the third job waited for, once it has run.
    waited: std::sync::OnceLock<usize>,
}

impl Pair {
    fn new(pool: &Arc<Pool>) -> std::sync::Arc<Self> {
        let pair = std::sync::Arc::new(Self {
            jobs: std::sync::Mutex::default(),
            turns: AtomicUsize::new(0),
            waited: std::sync::OnceLock::new(),
        });
        let jobs = [1, 0].map(|other| {
            let (pair, pool) = (pair.clone(), pool.clone());
            Job::new(move |_| {
                let turns = pair.turns.fetch_add(1, Relaxed) + 1;
                if turns < WAKES_MAX && pair.waited.get().is_none() {
                    pair.wake(other, &pool);
                }
            })
        });
        pair.jobs.lock().unwrap().extend(jobs);
        pair
    }

    fn wake(&self, number: usize, pool: &Pool) {
        let job = self.jobs.lock().unwrap()[number].clone();
        job.wake(|task| pool.schedule(task, |_, _| ()));
    }

    /// The third job runs.
    fn is_over(&self, pool: &Pool) {
        self.waited.set(self.turns.load(Relaxed)).expect("once");
        pool.stop();
    }

    /// All threads have ended. The jobs hold the pair, and the pair them.
    fn end(&self) {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap());
        drop(jobs);
        let waited = self.waited.get().expect("the third job has run");
        assert!(*waited < WAKES_MAX, "it ran behind {waited} turns of two that wake each other");
    }
}

/// The third job was displaced from the slot by the first of the pair. Two threads, few steps each: bound 3.
// Caught: a slot that goes before the deque however long.
#[test]
fn two_that_wake_each_other_do_not_hold_up_what_the_slot_has_displaced() {
    model("slot_run_ends_for_a_displaced_job", &[4], 3, 1, || {
        let (pool, workers) = pool(1, |_| {});
        let pair = Pair::new(&pool);
        let third = {
            let (pair, pool) = (pair.clone(), pool.clone());
            Job::new(move |_| pair.is_over(&pool))
        };
        let first = {
            let (pair, pool) = (pair.clone(), pool.clone());
            Job::new(move |_| {
                third.wake(|task| pool.schedule(task, |_, _| ()));
                pair.wake(0, &pool);
            })
        };
        first.wake(|task| pool.schedule(task, |_, _| ()));
        join(run(workers));
        pair.end();
    });
}

/// The third job has used up its budget. Two threads, few steps each: bound 3.
// Caught: a slot that goes before the deque however long.
#[test]
fn two_that_wake_each_other_do_not_hold_up_a_job_that_is_requeued() {
    model("slot_run_ends_for_a_requeued_job", &[4], 3, 1, || {
        let (pool, workers) = pool(1, |settings| settings.throughput = 1);
        let pair = Pair::new(&pool);
        let third = {
            let (pair, pool) = (pair.clone(), pool.clone());
            Job::new(move |turn| match turn {
                0 => pair.wake(0, &pool),
                _ => pair.is_over(&pool),
            })
        };
        // Two wakes before the worker runs, and a budget of one.
        third.wake(|task| pool.schedule(task, |_, _| ()));
        third.wake(|_| unreachable!("it is scheduled"));
        join(run(workers));
        pair.end();
    });
}
