//! Models that must fail, and the checks of the model helper itself: if one of these passes for the wrong
//! reason, no other model proves anything.

use crate::support::{model, must_fail};
use pointsman::loom_hooks::sync::atomic::{AtomicBool, Ordering};
use pointsman::loom_hooks::sync::cell::UnsafeCell;
use pointsman::loom_hooks::sync::{Arc, thread};
use std::process::{Command, Stdio};

/// A value that is handed over by a flag.
struct Handover {
    value: UnsafeCell<u32>,
    ready: AtomicBool,
}

// SAFETY: the value is read only after the flag was seen, which is what the models are about.
unsafe impl Sync for Handover {}
// SAFETY: as above.
unsafe impl Send for Handover {}

/// Writes, then raises the flag by `publish`; the other thread reads once it sees it.
fn hand_over(publish: Ordering) {
    let handover = Arc::new(Handover { value: UnsafeCell::new(0), ready: AtomicBool::new(false) });
    let writer = {
        let handover = handover.clone();
        thread::spawn(move || {
            // SAFETY: nobody reads before the flag is raised.
            handover.value.with_mut(|value| unsafe { *value = 7 });
            handover.ready.store(true, publish);
        })
    };
    if handover.ready.load(Ordering::Acquire) {
        // SAFETY: the flag was raised after the write.
        assert_eq!(handover.value.with(|value| unsafe { *value }), 7);
    }
    writer.join().unwrap();
}

// Bound 3: two threads, as in the other files.
#[test]
fn released_value_is_seen() {
    model("canary_released", &[], 3, 2, || hand_over(Ordering::Release));
}

// The mutation of this file: the seam's atomics and cells are loom's, so a Release weakened to Relaxed shows.
#[test]
fn weakened_release_is_found() {
    must_fail("canary_weakened", 3, || hand_over(Ordering::Relaxed));
}

#[test]
fn a_model_without_a_race_fails_by_its_floor() {
    let outcome = std::panic::catch_unwind(|| model("canary_no_race", &[], 3, 2, || ()));
    let panic = outcome.expect_err("one execution is fewer than two");
    let text = panic.downcast_ref::<String>().expect("the floor's message");
    assert!(text.contains("1 executions, at least 2 expected"), "{text}");
}

#[test]
fn a_panic_that_is_caught_fails_the_model_of_a_user() {
    let outcome = std::panic::catch_unwind(|| {
        pointsman::model::check("canary_caught", 1, 1, || {
            let caught = std::panic::catch_unwind(|| panic!("as a race in a destructor is reported"));
            assert!(caught.is_err());
        });
    });
    let panic = outcome.expect_err("the panic is counted");
    let text = panic.downcast_ref::<String>().expect("the message of the check");
    assert!(text.contains("a panic in this execution was caught"), "{text}");
}

#[test]
#[should_panic(expected = "as an assertion")]
fn a_failure_reaches_the_user_behind_the_engines_locals() {
    pointsman::model::check("canary_reported", 1, 1, || {
        let system = pointsman::model::system("canary").build().expect("the settings are sound");
        // Counted in the ledger, whose row for this thread is a thread-local with a destructor.
        let actor = system.spawn(|| Canary).expect("the name is free");
        actor.tell(());
        panic!("as an assertion");
    });
}

struct Canary;

impl pointsman::Actor for Canary {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut pointsman::Context<()>) -> pointsman::HandlerResult {
        Ok(())
    }
}

/// Runs [`released_value_is_seen`] in a process of its own.
fn passes_with(setting: Option<&str>) -> bool {
    let mut test = Command::new(std::env::current_exe().expect("this test has a file"));
    test.args(["--exact", "canary::released_value_is_seen"]).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(setting) = setting {
        test.env(setting, "100000");
    }
    test.status().expect("it starts").success()
}

#[test]
fn settings_that_end_a_model_early_are_refused() {
    assert!(passes_with(None));
    for setting in ["LOOM_MAX_DURATION", "LOOM_MAX_PERMUTATIONS"] {
        assert!(!passes_with(Some(setting)), "{setting}");
    }
}

#[test]
fn a_setting_of_fewer_preemptions_is_passed_over() {
    let mut test = Command::new(std::env::current_exe().expect("this test has a file"));
    test.args(["--exact", "canary::released_value_is_seen", "--nocapture"]).env("LOOM_MAX_PREEMPTIONS", "0");
    let output = test.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("model canary_released bound 3 "), "{said}");
}

/// Asks [`a_model_that_ends_the_process`] to do so.
const ENDS: &str = "POINTSMAN_CANARY_ENDS";

/// Panics where another panic unwinds, which ends the process.
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("as what follows from it");
    }
}

#[test]
fn a_model_that_ends_the_process() {
    if std::env::var_os(ENDS).is_some() {
        pointsman::loom_hooks::explore("canary_ends", 3, 1, || {
            let _follows = PanicsInDrop;
            let done = AtomicBool::new(false);
            assert!(done.load(Ordering::Relaxed), "as the cause");
        });
    }
}

// Caught: a hook that notes nothing; one that reports the last panic.
#[test]
fn a_model_that_ends_the_process_tells_its_name_and_its_cause_last() {
    for captures in [true, false] {
        let mut test = Command::new(std::env::current_exe().expect("this test has a file"));
        test.args(["--exact", "canary::a_model_that_ends_the_process"]).env(ENDS, "1");
        test.args((!captures).then_some("--nocapture"));
        let output = test.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && output.status.code() != Some(101),
            "no abort: {:?}",
            output.status
        );
        let (_, told) =
            said.rsplit_once("model canary_ends FAILED in execution 1, and ends the process").expect(&said);
        let (_, cause) = told.split_once("canary.rs:").expect(told);
        assert!(cause.split_once(": ").expect(told).1.starts_with("as the cause\n"), "{told}");
        assert!(!told.contains("panicked at"), "something is told behind it: {told}");
    }
}

#[test]
fn a_model_that_fails_tells_its_name_and_its_cause_last() {
    let mut test = Command::new(std::env::current_exe().expect("this test has a file"));
    test.args(["--exact", "canary::a_failure_reaches_the_user_behind_the_engines_locals", "--nocapture"]);
    let output = test.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let (_, told) = said.rsplit_once("model canary_reported FAILED in execution 1. ").expect(&said);
    assert!(told.contains(": as an assertion\n") && !told.contains("panicked at"), "{told}");
}
