//! Sleep against wake: a job that was scheduled is run without any further event.
//!
//! The jobs stop the pool themselves, the last one of each model: a lost wake-up leaves every thread
//! blocked, which loom reports. (A stop from outside would wake the sleeper and hide the loss.)
//!
//! The deque is a lock-based stand-in, so its own orderings are not modelled.
//!
//! Seen to fail here: the fence of `notify`, of `fall_asleep` or of `unpark_all` removed; the last look
//! made before the announcement; no notify after a push into the injector; the last searcher silent, or
//! looking without its fence; no notify for the rest of an emptied injector; neighbour groups not notified.

use crate::support::jobs::{Event, Job, StopAfter, join, pool, run};
use crate::support::model;
use loom::thread;

/// Two threads: bound 3.
#[test]
fn last_worker_sleeps_while_job_arrives() {
    model("last_worker_sleeps_while_job_arrives", &[11], 3, 100, || {
        let (pool, workers) = pool(1, |_| {});
        let threads = run(workers);
        let stop = StopAfter::new(1, &pool);
        let job = Job::new(move |_| stop.count_down());
        job.wake(|task| pool.schedule(task, |_, _| ()));
        join(threads);
        assert_eq!(job.handled(), 1);
    });
}

/// Three threads, few steps each: bound 3.
#[test]
fn two_submitters_one_sleeper() {
    model("two_submitters_one_sleeper", &[11], 3, 14_900, || {
        let (pool, workers) = pool(1, |_| {});
        let mut threads = run(workers);
        let stop = StopAfter::new(2, &pool);
        let jobs = [0, 1].map(|_| {
            let stop = stop.clone();
            Job::new(move |_| stop.count_down())
        });
        let (theirs, to) = (jobs[1].clone(), pool.clone());
        threads.push(thread::spawn(move || theirs.wake(|task| to.schedule(task, |_, _| ()))));
        jobs[0].wake(|task| pool.schedule(task, |_, _| ()));
        join(threads);
        assert!(jobs.iter().all(|job| job.handled() == 1));
    });
}

/// One job after the other, so that the second meets the worker on its way back to sleep, or finds the
/// bit taken by the first. Two threads: bound 3.
#[test]
fn waker_takes_the_bit_while_the_sleeper_retracts() {
    model("waker_takes_the_bit_while_the_sleeper_retracts", &[11], 3, 120, || {
        let (pool, workers) = pool(1, |_| {});
        let threads = run(workers);
        let stop = StopAfter::new(2, &pool);
        let job = Job::new(move |_| stop.count_down());
        job.wake(|task| pool.schedule(task, |_, _| ()));
        job.wake(|task| pool.schedule(task, |_, _| ()));
        join(threads);
        assert_eq!(job.handled(), 2);
    });
}

/// The first job ends only when the second has run, so one wake must lead to another. Three threads:
/// bound 2.
#[test]
fn second_job_is_not_stranded_behind_the_first() {
    model("second_job_is_not_stranded_behind_the_first", &[4, 11], 2, 20_000, || {
        let (pool, workers) = pool(2, |_| {});
        let threads = run(workers);
        let stop = StopAfter::new(2, &pool);
        let second_ran = Event::new();
        let first = {
            let (stop, second_ran) = (stop.clone(), second_ran.clone());
            Job::new(move |_| {
                second_ran.wait();
                stop.count_down();
            })
        };
        let second = Job::new(move |_| {
            second_ran.happens();
            stop.count_down();
        });
        first.wake(|task| pool.schedule(task, |_, _| ()));
        second.wake(|task| pool.schedule(task, |_, _| ()));
        join(threads);
        assert_eq!((first.handled(), second.handled()), (1, 1));
    });
}

/// Two groups of one worker. The first job wakes two more on its own worker and waits for the older one,
/// which only the neighbour can run. The main thread is the first worker: two threads, bound 3.
#[test]
fn the_neighbour_group_is_woken_when_ours_is_busy() {
    model("the_neighbour_group_is_woken_when_ours_is_busy", &[4, 11], 3, 1500, || {
        let (pool, mut workers) = pool(2, |settings| settings.group_size = 1);
        let stop = StopAfter::new(3, &pool);
        let older_ran = Event::new();
        let older = {
            let (stop, older_ran) = (stop.clone(), older_ran.clone());
            Job::new(move |_| {
                older_ran.happens();
                stop.count_down();
            })
        };
        let newer = {
            let stop = stop.clone();
            Job::new(move |_| stop.count_down())
        };
        let first = {
            let (pool, older, newer) = (pool.clone(), older.clone(), newer.clone());
            Job::new(move |_| {
                older.wake(|task| pool.schedule(task, |_, _| ()));
                newer.wake(|task| pool.schedule(task, |_, _| ()));
                older_ran.wait();
                stop.count_down();
            })
        };
        // Into the first group before anybody runs: the choice of a group asks for a thread number, whose
        // lease loom would find outliving the model on the main thread.
        let threads = vec![thread::spawn({
            let (pool, first) = (pool.clone(), first.clone());
            move || first.wake(|task| pool.schedule(task, |_, _| ()))
        })];
        join(threads);
        let own = workers.remove(0);
        let threads = run(workers);
        own.run(());
        join(threads);
        assert_eq!([&first, &older, &newer].map(|job| job.handled()), [1, 1, 1]);
    });
}

/// Two threads: bound 3.
#[test]
fn stop_races_park() {
    model("stop_races_park", &[12], 3, 4, || {
        let (pool, workers) = pool(1, |_| {});
        let threads = run(workers);
        pool.stop();
        join(threads);
    });
}

/// Three threads: bound 2.
#[test]
fn stop_races_two_parking_workers() {
    model("stop_races_two_parking_workers", &[12], 2, 700, || {
        let (pool, workers) = pool(2, |_| {});
        let threads = run(workers);
        pool.stop();
        join(threads);
    });
}
