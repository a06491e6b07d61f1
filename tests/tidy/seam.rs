//! Concurrency comes through `src/sync`, so that models see all of it.

use crate::report;
use crate::source::{Source, sources};

/// What is taken from elsewhere than `sync`, and why that is no hole in the models.
const ALLOWED: [&str; 6] = [
    // Counts that keep memory alive and order nothing that a protocol rests on; and trait objects, which
    // loom's cannot hold.
    "std::sync::Arc",
    "std::sync::{Arc as StdArc, Weak as StdWeak}",
    "std::sync::Weak",
    // Written once before what reads it is published.
    "std::sync::{Arc as StdArc, OnceLock}",
    "std::sync::OnceLock",
    // A moment of the machine's clock, which models don't have.
    "std::sync::LazyLock",
];

const FORBIDDEN: [&str; 12] = [
    "std::sync",
    "core::sync",
    "std::thread",
    "std::{sync",
    "std::{thread",
    "std::cell::UnsafeCell",
    "core::cell::UnsafeCell",
    "std::cell::{UnsafeCell",
    "loom::",
    "shuttle::",
    "crossbeam",
    "parking_lot",
];

fn goes_round_the_seam(source: &Source) -> Vec<String> {
    let faults =
        source.without_tests().iter().filter_map(|line| {
            let code = ALLOWED.iter().fold(line.code.clone(), |code, allowed| code.replace(allowed, ""));
            let found = FORBIDDEN.iter().find(|name| code.contains(**name))?;
            Some(source.fault(
                line.number,
                format_args!("`{found}`: take it from `crate::sync`, which models replace"),
            ))
        });
    faults.collect()
}

#[test]
fn concurrency_comes_through_the_seam() {
    let all = sources("src");
    let others = all.iter().filter(|source| !source.path.starts_with("src/sync/") && !source.is_tests());
    report(&others.flat_map(goes_round_the_seam).collect::<Vec<_>>());
}

#[test]
fn what_goes_round_the_seam_is_found() {
    let good = "use crate::sync::atomic::AtomicU64;\nuse std::sync::Arc as StdArc;\n// std::thread\n\"loom::\";\n\
                #[cfg(test)]\nmod tests {\nuse std::thread;\n}";
    assert!(goes_round_the_seam(&crate::source::snippet(good)).is_empty());
    for bad in [
        "use std::sync::Mutex;",
        "std::thread::spawn(f);",
        "use std::{sync::Mutex, fmt};",
        "x: std::sync::atomic::AtomicU8",
    ] {
        let faults = goes_round_the_seam(&crate::source::snippet(&format!("\n{bad}")));
        assert!(crate::said(&faults)[0].starts_with("2: "), "{bad}: {faults:?}");
    }
}
