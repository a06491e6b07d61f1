//! Runs a model and refuses to let it pass unfinished.
#![allow(dead_code)] // each group of models compiles this module for itself and uses a part of it

pub mod counted;
pub mod jobs;

mod addresses;

use pointsman::loom_hooks::explore;

/// How many invariants the README of these tests counts.
const INVARIANT_COUNT: u8 = 18;

/// As `explore`; and no address is used again within an execution. `shows` are the invariants that the model would
/// fail without, for the table in the README; those of the tools have none.
pub fn model(name: &str, shows: &[u8], bound: usize, floor: usize, run: impl Fn() + Send + Sync + 'static) {
    assert!(
        shows.is_sorted_by(|a, b| a < b) && shows.iter().all(|number| (1..=INVARIANT_COUNT).contains(number))
    );
    let numbers = shows.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    // In one piece, as the line of what was explored.
    let line = format!("model {name} shows {numbers}\n");
    eprint!("{line}");
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            addresses::end();
        }
    }
    let _end = End;
    explore(name, bound, floor, move || {
        addresses::begin_execution();
        run();
    });
}

/// Runs a model that must fail, such as one with a planted fault.
pub fn must_fail(name: &str, bound: usize, run: impl Fn() + Send + Sync + 'static) {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model(name, &[], bound, 0, run)));
    assert!(outcome.is_err(), "{name}: the planted fault was not found");
}
