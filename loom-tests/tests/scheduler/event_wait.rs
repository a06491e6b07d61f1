//! A worker that waits for outside events in place of a park: it is woken for tasks and for a stop, handles
//! what comes, and gives the source back to the source's thread.
//!
//! The last job of each model stops the pool, so a lost wake-up leaves every thread blocked, which loom
//! reports.
//!
//! Seen to fail here: the fence of `wait`, of `leave`, of `wake` or of `take_over` removed; no second look
//! at the bit after the source was taken; the source left without a word to its thread; a stop that does
//! not end the wait.

use crate::support::jobs::{Event, Job, StopAfter, join, pool, run};
use crate::support::model;
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use pointsman::loom_hooks::{EventSource, Pool, Worker};
// Holds a trait object, which loom's `Arc` cannot; no protocol rests on it.
use std::sync::{Arc as StdArc, Weak};

/// A source whose events wake a job.
struct Bell {
    /// Touched by the holder alone.
    looks: UnsafeCell<usize>,
    state: Mutex<State>,
    changed: Condvar,
    pool: Arc<Pool>,
    job: Arc<Job>,
}

#[derive(Default)]
struct State {
    rung: bool,
    woken: bool,
}

impl Bell {
    /// The calling thread becomes the source's thread.
    fn install(pool: &Arc<Pool>, job: &Arc<Job>) -> StdArc<Bell> {
        let bell = StdArc::new(Bell {
            looks: UnsafeCell::new(0),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            pool: pool.clone(),
            job: job.clone(),
        });
        let weak: Weak<Bell> = StdArc::downgrade(&bell);
        pool.event_wait().install(weak);
        bell
    }

    fn ring(&self) {
        self.state.lock().unwrap().rung = true;
        self.changed.notify_all();
    }

    /// For the source's thread, when it holds the source.
    fn look_and_handle(&self) {
        if self.look() {
            self.handle();
        }
    }

    fn touch(&self) {
        // SAFETY: loom fails the model where two threads touch it at a time.
        self.looks.with_mut(|looks| unsafe { *looks += 1 });
    }
}

// SAFETY: as `touch` says.
unsafe impl Sync for Bell {}

impl EventSource for Bell {
    fn wait(&self) -> bool {
        self.touch();
        let mut state = self.state.lock().unwrap();
        while !state.rung && !state.woken {
            state = self.changed.wait(state).unwrap();
        }
        state.woken = false;
        state.rung
    }

    fn look(&self) -> bool {
        self.touch();
        self.state.lock().unwrap().rung
    }

    fn handle(&self) {
        if std::mem::take(&mut self.state.lock().unwrap().rung) {
            self.job.wake(|task| self.pool.schedule(task, |_, _| ()));
        }
    }

    fn wake(&self) {
        self.state.lock().unwrap().woken = true;
        self.changed.notify_all();
    }
}

/// Workers whose ends the source's thread waits for. An unpark may still be on its way to that thread, and loom's join
/// takes it for its own.
struct Threads(Vec<(thread::JoinHandle<()>, Event)>);

impl Threads {
    fn run(workers: Vec<Worker>) -> Self {
        let run = |worker: Worker| {
            let over = Event::new();
            let tells = over.clone();
            let body = move || {
                worker.run(());
                tells.happens();
            };
            (thread::spawn(body), over)
        };
        Self(workers.into_iter().map(run).collect())
    }

    fn join(self) {
        for (thread, over) in self.0 {
            over.wait();
            thread.join().unwrap();
        }
    }
}

fn stopping_job(count: usize, pool: &Arc<Pool>) -> Arc<Job> {
    let stop = StopAfter::new(count, pool);
    Job::new(move |_| stop.count_down())
}

/// Two threads: bound 3.
#[test]
fn a_task_wakes_the_worker_that_waits_for_events() {
    model("a_task_wakes_the_worker_that_waits_for_events", &[11], 3, 100, || {
        let (pool, workers) = pool(1, |_| {});
        let job = stopping_job(1, &pool);
        let _bell = Bell::install(&pool, &job);
        pool.event_wait().offer();
        let threads = run(workers);
        job.wake(|task| pool.schedule(task, |_, _| ()));
        join(threads);
        assert_eq!(job.handled(), 1);
    });
}

/// Two threads: bound 3.
#[test]
fn the_worker_handles_an_event_and_runs_its_task() {
    model("the_worker_handles_an_event_and_runs_its_task", &[11], 3, 3, || {
        let (pool, workers) = pool(1, |_| {});
        let job = stopping_job(1, &pool);
        let bell = Bell::install(&pool, &job);
        pool.event_wait().offer();
        let threads = run(workers);
        bell.ring();
        join(threads);
        assert_eq!((job.handled(), pool.event_wait().is_free()), (1, true));
    });
}

/// Rings and schedules at once, for this many workers.
fn an_event_and_a_task(worker_count: usize) {
    let (pool, workers) = pool(worker_count, |_| {});
    let job = stopping_job(2, &pool);
    let bell = Bell::install(&pool, &job);
    pool.event_wait().offer();
    let threads = run(workers);
    bell.ring();
    job.wake(|task| pool.schedule(task, |_, _| ()));
    join(threads);
    assert_eq!(job.handled(), 2);
}

/// Two threads: bound 3.
#[test]
fn an_event_meets_a_task() {
    model("an_event_meets_a_task", &[11], 3, 400, || an_event_and_a_task(1));
}

/// Two workers, of which one parks. Three threads: bound 2.
#[test]
fn one_of_two_workers_waits_for_events() {
    model("one_of_two_workers_waits_for_events", &[4, 11], 2, 40_000, || an_event_and_a_task(2));
}

/// Two threads: bound 3.
#[test]
fn the_source_is_taken_over_while_a_worker_goes_to_sleep() {
    model("the_source_is_taken_over_while_a_worker_goes_to_sleep", &[11], 3, 900, || {
        let (pool, workers) = pool(1, |_| {});
        let job = stopping_job(1, &pool);
        let _bell = Bell::install(&pool, &job);
        pool.event_wait().offer();
        let threads = Threads::run(workers);
        pool.event_wait().take_over();
        assert!(!pool.event_wait().is_free());
        job.wake(|task| pool.schedule(task, |_, _| ()));
        threads.join();
        assert_eq!(job.handled(), 1);
    });
}

/// A worker leaves by itself, after an event. Two threads: bound 3.
#[test]
fn the_source_is_taken_over_while_a_worker_leaves() {
    model("the_source_is_taken_over_while_a_worker_leaves", &[11], 3, 1000, || {
        let (pool, workers) = pool(1, |_| {});
        let job = stopping_job(2, &pool);
        let bell = Bell::install(&pool, &job);
        pool.event_wait().offer();
        bell.ring();
        let threads = Threads::run(workers);
        pool.event_wait().take_over();
        bell.look_and_handle();
        job.wake(|task| pool.schedule(task, |_, _| ()));
        threads.join();
        assert_eq!(job.handled(), 2);
    });
}

/// Two workers and the source's thread hold it one after the other. Two threads: bound 3.
#[test]
fn the_next_holder_sees_what_the_last_one_did() {
    model("the_next_holder_sees_what_the_last_one_did", &[11], 3, 10, || {
        let (pool, _workers) = pool(1, |_| {});
        let job = Job::new(|_| {});
        let bell = Bell::install(&pool, &job);
        let events = pool.event_wait();
        let (to, kept) = (pool.clone(), bell.clone());
        let worker = thread::spawn(move || {
            to.event_wait().look(0);
            drop(kept);
        });
        bell.look();
        events.offer();
        events.look(1);
        if events.try_take() {
            bell.look();
        }
        worker.join().unwrap();
    });
}

/// The source's thread sleeps until a worker leaves. Two threads: bound 3.
#[test]
fn the_thread_of_the_source_learns_that_a_worker_has_left() {
    model("the_thread_of_the_source_learns_that_a_worker_has_left", &[11], 3, 100, || {
        let (pool, workers) = pool(1, |_| {});
        let job = stopping_job(1, &pool);
        let bell = Bell::install(&pool, &job);
        let events = pool.event_wait();
        let seen = events.departures();
        events.offer();
        let threads = Threads::run(workers);
        bell.ring();
        events.tell_departures(true);
        while events.departures() == seen {
            thread::park();
        }
        events.tell_departures(false);
        threads.join();
        assert_eq!(job.handled(), 1);
    });
}

/// Two threads: bound 3.
#[test]
fn a_stop_ends_the_wait_for_events() {
    model("a_stop_ends_the_wait_for_events", &[12], 3, 10, || {
        let (pool, workers) = pool(1, |_| {});
        let job = Job::new(|_| {});
        let _bell = Bell::install(&pool, &job);
        pool.event_wait().offer();
        let threads = run(workers);
        pool.stop();
        join(threads);
    });
}
