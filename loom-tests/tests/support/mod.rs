//! Runs a model and refuses to let it pass unfinished.
#![allow(dead_code)] // each model file compiles this module for itself and uses a part of it

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Settings under which loom ends a model early and calls it passed.
const UNFINISHED: [&str; 2] = ["LOOM_MAX_DURATION", "LOOM_MAX_PERMUTATIONS"];

/// Explores `run` under at most `bound` preemptions (`LOOM_MAX_PREEMPTIONS` wins when set) and demands at
/// least `floor` executions, so that a model whose threads stopped racing fails instead of passing.
///
/// Prints `model NAME bound B executions N seconds S`.
pub fn model(name: &str, bound: usize, floor: usize, run: impl Fn() + Send + Sync + 'static) {
    for setting in UNFINISHED {
        assert!(
            std::env::var_os(setting).is_none(),
            "{setting} makes loom pass a model that it has not finished: unset it"
        );
    }
    let mut builder = loom::model::Builder::new();
    let overridden = builder.preemption_bound.is_some();
    builder.preemption_bound.get_or_insert(bound);
    builder.max_branches = 20_000;
    let used = builder.preemption_bound.unwrap_or(bound);

    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = executions.clone();
    let began = Instant::now();
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        run();
    });
    let explored = executions.load(Ordering::Relaxed);
    eprintln!("model {name} bound {used} executions {explored} seconds {:.1}", began.elapsed().as_secs_f64());
    assert!(
        overridden || explored >= floor,
        "{name}: {explored} executions, at least {floor} expected: does the model still race?"
    );
}

/// Runs a model that must fail, such as one with a planted fault.
pub fn must_fail(name: &str, bound: usize, run: impl Fn() + Send + Sync + 'static) {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model(name, bound, 0, run)));
    assert!(outcome.is_err(), "{name}: the planted fault was not found");
}
