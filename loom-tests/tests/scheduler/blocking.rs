//! The dispatchers with threads that may block: the growing pool and the thread of one actor.
//!
//! Time does not pass in models, so idle threads never end before the stop.
//!
//! Seen to fail here: a pool that is content when any thread is idle; a pinned thread that looks into its
//! slot before the release flag, or is not unparked. Not seen: Relaxed in filling its slot, since loom lets
//! an unpark order memory at once, also for a thread that has not parked.

use crate::support::jobs::{Event, Job};
use crate::support::model;
use loom::thread;
use pointsman::loom_hooks::{BlockingPool, BlockingSettings, PinnedThreads};

fn pool(max: usize) -> BlockingPool {
    let settings = BlockingSettings {
        name: "model".to_owned(),
        thread_count: 1..=max,
        keep_alive: None,
        throughput: 1,
        deadline: None,
    };
    BlockingPool::start(settings).expect("good settings")
}

/// The first job ends only when the second has run: a second thread must take it, also when one thread
/// is idle and both jobs count on it. Three threads, or four if both jobs start one, few steps each: bound 3.
#[test]
fn two_jobs_never_count_on_one_idle_thread() {
    model("two_jobs_never_count_on_one_idle_thread", &[4, 11], 3, 4_200, || {
        let pool = pool(2);
        let second_ran = Event::new();
        let first = {
            let second_ran = second_ran.clone();
            Job::new(move |_| second_ran.wait())
        };
        let second = Job::new(move |_| second_ran.happens());
        first.wake(|task| pool.schedule(task));
        second.wake(|task| pool.schedule(task));
        pool.stop();
        pool.join().expect("not on a thread of the pool");
        assert_eq!((first.handled(), second.handled()), (1, 1));
    });
}

/// At the bound, jobs queue and are run by the one thread, from two submitters. Three threads: bound 3.
#[test]
fn no_job_is_stranded_at_the_bound() {
    model("no_job_is_stranded_at_the_bound", &[4, 11], 3, 5000, || {
        let pool = pool(1);
        let ran = [Event::new(), Event::new()];
        let jobs = ran.clone().map(|ran| Job::new(move |_| ran.happens()));
        let other = {
            let (pool, job) = (pool.clone(), jobs[1].clone());
            thread::spawn(move || job.wake(|task| pool.schedule(task)))
        };
        jobs[0].wake(|task| pool.schedule(task));
        // Before the stop, which would wake the thread.
        ran.iter().for_each(Event::wait);
        other.join().expect("no panic");
        pool.stop();
        pool.join().expect("not on a thread of the pool");
        assert!(jobs.iter().all(|job| job.handled() == 1));
    });
}

/// Two threads: bound 3.
#[test]
fn pinned_thread_parks_while_its_actor_is_woken() {
    model("pinned_thread_parks_while_its_actor_is_woken", &[4, 11], 3, 140, || {
        let threads = PinnedThreads::start("model", 1, None).expect("good settings");
        let home = threads.new_placement().expect("a thread");
        let ran = Event::new();
        let job = {
            let ran = ran.clone();
            Job::new(move |turn| {
                if turn == 1 {
                    ran.happens();
                }
            })
        };
        job.wake(|task| home.schedule(task));
        job.wake(|task| home.schedule(task));
        // Before the release, which would wake the thread.
        ran.wait();
        home.release();
        threads.join().expect("not on the thread");
        assert_eq!(job.handled(), 2);
    });
}

/// A job scheduled before the release is run. Two threads: bound 3.
#[test]
fn pinned_release_races_park() {
    model("pinned_release_races_park", &[4, 12], 3, 35, || {
        let threads = PinnedThreads::start("model", 1, None).expect("good settings");
        let home = threads.new_placement().expect("a thread");
        let job = Job::new(|_| {});
        job.wake(|task| home.schedule(task));
        home.release();
        threads.join().expect("not on the thread");
        assert_eq!(job.handled(), 1);
    });
}
