//! What the scenarios rest on: a fault that only some schedules show is found, its schedule is written down, and
//! fails again in the same way; and nothing passes with fewer schedules than it should.

#[cfg(not(pointsman_shuttle))]
compile_error!("scenarios need the shuttle mirror: run cargo test -p shuttle-tests");

#[path = "support/explore.rs"]
#[allow(dead_code)] // no scenario here
mod explore;

use explore::{FLOOR, Plan, QUICK, explore, folder, plan};
use pointsman::dead_letters::DeadLetterLog;
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use shuttle::scheduler::{RandomScheduler, ReplayScheduler};
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Counts what it gets by a load and a store, between which another one may count.
struct Forgetful(Arc<AtomicUsize>);

impl Actor for Forgetful {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        let before = self.0.load(SeqCst);
        self.0.store(before + 1, SeqCst);
        Ok(())
    }
}

/// Two of them, with the planted fault.
fn both_count() {
    let system = System::builder("faulty")
        .clock(ManualClock::new())
        .log_dead_letters(DeadLetterLog::off())
        .dispatcher("default", Dispatcher::work_stealing().threads(4).spin(Duration::ZERO))
        .build()
        .expect("the settings are sound");
    let total = Arc::new(AtomicUsize::new(0));
    let both = [(); 2].map(|()| {
        let total = total.clone();
        system.spawn(move || Forgetful(total.clone())).expect("there is room")
    });
    for one in &both {
        one.tell(());
        one.poison();
    }
    for one in &both {
        one.when_ended().wait().expect("it ends by the pill");
    }
    let ledger = system.shutdown(Duration::MAX).expect("nothing is stuck");
    assert_eq!(ledger.handled as usize, total.load(SeqCst), "a count was lost");
}

fn text(payload: Box<dyn Any + Send>) -> String {
    payload.downcast_ref::<String>().expect("an assertion's text").clone()
}

/// The schedules that were written down, the last one last.
fn written() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    files.sort();
    files
}

#[test]
fn a_schedule_that_fails_is_found_and_written_down_and_fails_again() {
    written().iter().for_each(|file| fs::remove_file(file).expect("it can be removed"));
    let random = RandomScheduler::new_from_seed(0, FLOOR);
    let found = catch_unwind(AssertUnwindSafe(|| explore(random, both_count)));
    let found = text(found.err().expect("the fault is found"));
    assert!(found.contains("a count was lost"), "{found}");

    let last = written().pop().expect("the schedule was written down");
    let replay = ReplayScheduler::new_from_file(last).expect("it can be read");
    let again = catch_unwind(AssertUnwindSafe(|| explore(replay, both_count)));
    assert_eq!(text(again.err().expect("it fails again")), found);
    written().iter().for_each(|file| fs::remove_file(file).expect("it can be removed"));
}

#[test]
fn fewer_schedules_than_there_must_be_are_refused() {
    let full = |schedules| Ok(Plan { schedules, is_quick: false });
    assert_eq!(plan(None, None), full(FLOOR));
    assert_eq!(plan(Some("1000000"), None), full(1_000_000));
    for few in ["9999", "0", "-1", "", "many"] {
        assert!(plan(Some(few), None).is_err(), "{few}");
    }
}

#[test]
fn a_quick_look_is_asked_for_by_name_and_told_to_be_one() {
    assert_eq!(plan(None, Some("1")), Ok(Plan { schedules: QUICK, is_quick: true }));
    for (schedules, quick) in [(None, "0"), (None, ""), (None, "50"), (Some("20000"), "1")] {
        assert!(plan(schedules, Some(quick)).is_err(), "{schedules:?} {quick}");
    }
}
