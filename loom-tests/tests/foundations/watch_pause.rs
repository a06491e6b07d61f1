//! Watchdogs that pause while all threads sleep, against a thread that wakes up.
//!
//! Mutations seen to be caught: the fence weakened in `pause`, and in `wakes`.

use crate::support::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use loom::thread;
use pointsman::loom_hooks::WatchPauses;

/// A thread that may sleep, and the watchdogs of its system.
#[derive(Default)]
struct System {
    pauses: WatchPauses,
    is_awake: AtomicBool,
    resumed: AtomicUsize,
}

impl System {
    /// A watchdog that has found no thread awake pauses.
    fn pause(system: &Arc<Self>) {
        let resumed = system.clone();
        let resume = move || {
            resumed.resumed.fetch_add(1, Relaxed);
        };
        system.pauses.pause(Box::new(resume), || system.is_awake.load(Relaxed));
    }

    fn wakes(&self) {
        self.pauses.wakes(&self.is_awake);
    }

    fn falls_asleep(&self) {
        self.is_awake.store(false, Relaxed);
    }
}

// Bound 3: two threads.
#[test]
fn a_watchdog_that_pauses_while_a_thread_wakes_up_is_resumed_once() {
    model("watch_pause_races_wake", &[16], 3, 24, || {
        let system = Arc::new(System::default());
        let watchdog = {
            let system = system.clone();
            thread::spawn(move || System::pause(&system))
        };
        system.wakes();
        watchdog.join().expect("no panic");
        assert_eq!(system.resumed.load(Relaxed), 1);
    });
}

// Bound 3: two threads. The first wake may come before the pause, and the thread sleeps when the watchdog looks.
#[test]
fn a_watchdog_that_pauses_while_a_thread_falls_asleep_is_resumed_by_the_next_wake() {
    model("watch_pause_races_sleep", &[16], 3, 220, || {
        let system = Arc::new(System::default());
        let watchdog = {
            let system = system.clone();
            thread::spawn(move || System::pause(&system))
        };
        system.wakes();
        system.falls_asleep();
        system.wakes();
        watchdog.join().expect("no panic");
        system.falls_asleep();
        system.wakes();
        assert_eq!(system.resumed.load(Relaxed), 1);
    });
}

// Bound 2: three threads. A list that one thread has emptied gets a second watchdog meanwhile.
#[test]
fn two_watchdogs_that_pause_are_both_resumed() {
    model("watch_pause_two_watchdogs", &[16], 2, 220, || {
        let system = Arc::new(System::default());
        let watchdogs = [(); 2].map(|()| {
            let system = system.clone();
            thread::spawn(move || System::pause(&system))
        });
        system.wakes();
        for watchdog in watchdogs {
            watchdog.join().expect("no panic");
        }
        assert_eq!(system.resumed.load(Relaxed), 2);
    });
}
