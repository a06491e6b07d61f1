//! Threads that run while somebody needs them: the last one to leave against the next one to enter.
//!
//! The jobs stand for actors, and leave in their last turn, as actors do.
//!
//! Faults seen to fail here: one that enters without taking back that nobody is in; one that is counted only
//! after it has its home; a look that makes of stopped threads such as may start again.

use crate::support::jobs::{Event, Job};
use crate::support::model;
use loom::sync::Arc;
use loom::thread;
use pointsman::Dispatcher;
use pointsman::loom_hooks::OnDemand;
use std::time::Duration;

const NOW: Duration = Duration::ZERO;

/// One thread, which nobody needs any more as soon as nobody is in. The caller is.
fn on_demand() -> Arc<OnDemand> {
    let recipe = Dispatcher::work_stealing().threads(1).spin(Duration::ZERO);
    Arc::new(OnDemand::start("model".to_owned(), recipe, Duration::ZERO).expect("good settings"))
}

/// Leaves, and looks if it is the one to do so.
fn leave(threads: &OnDemand) {
    if let Some(due) = threads.leave(NOW) {
        assert_eq!(threads.look(due), None);
    }
}

/// Enters, is woken once, and leaves in that turn; what has happened when it is done.
fn live(threads: &Arc<OnDemand>) -> (Arc<Job>, Event) {
    let done = Event::new();
    let job = {
        let (threads, done) = (threads.clone(), done.clone());
        Job::new(move |_| {
            leave(&threads);
            done.happens();
        })
    };
    let home = threads.enter().expect("a thread");
    job.wake(|task| home.schedule(task, |_, _| ()));
    (job, done)
}

/// The look that is due since the last one left comes while another one enters. Three or four threads, for the
/// first may end and another one start: bound 3.
#[test]
fn a_look_races_one_that_enters() {
    model("on_demand_look_races_enter", &[4], 3, 8_300, || {
        let threads = on_demand();
        let due = threads.leave(NOW).expect("the only one");
        let look = {
            let threads = threads.clone();
            thread::spawn(move || threads.look(due))
        };
        let (job, done) = live(&threads);
        // Before the stop, which would have it run.
        done.wait();
        look.join().expect("no panic");
        threads.stop_and_join();
        assert_eq!(job.handled(), 1);
    });
}

/// The last one leaves on the thread that is to end, while another one enters. Two or three threads: bound 3.
#[test]
fn the_last_one_leaves_while_another_enters() {
    model("on_demand_leave_races_enter", &[4], 3, 2_500, || {
        let threads = on_demand();
        let first = live(&threads);
        leave(&threads);
        let second = live(&threads);
        for (job, done) in [first, second] {
            done.wait();
            assert_eq!(job.handled(), 1);
        }
        threads.stop_and_join();
    });
}

/// Whoever enters while all is being stopped is refused, or leaves again. Two or three threads: bound 3.
#[test]
fn the_stop_races_one_that_enters() {
    model("on_demand_stop_races_enter", &[12], 3, 1_500, || {
        let threads = on_demand();
        let entering = {
            let threads = threads.clone();
            thread::spawn(move || threads.enter().is_ok())
        };
        let due = threads.leave(NOW);
        threads.stop();
        // A timer may come as late as this.
        let _ = due.map(|due| threads.look(due));
        if entering.join().expect("no panic") {
            leave(&threads);
        }
        assert!(threads.enter().is_err(), "stopped for good");
        threads.stop_and_join();
    });
}
