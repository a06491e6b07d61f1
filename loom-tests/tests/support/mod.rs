//! Runs a model and refuses to let it pass unfinished.
#![allow(dead_code, unused_imports)] // each model file compiles this module for itself and uses a part of it

pub use pointsman::loom_hooks::explore as model;

/// Runs a model that must fail, such as one with a planted fault.
pub fn must_fail(name: &str, bound: usize, run: impl Fn() + Send + Sync + 'static) {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model(name, bound, 0, run)));
    assert!(outcome.is_err(), "{name}: the planted fault was not found");
}
