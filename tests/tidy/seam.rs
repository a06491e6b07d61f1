//! Concurrency comes through `src/sync`, so that models see all of it.

use crate::report;
use crate::source::{Line, Source, sources};

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

const FORBIDDEN: [&str; 9] = [
    "std::sync",
    "core::sync",
    "std::thread",
    "std::cell::UnsafeCell",
    "core::cell::UnsafeCell",
    "loom::",
    "shuttle::",
    "crossbeam",
    "parking_lot",
];

/// What stands for these paths within the braces of an import, wherever it stands there.
const FORBIDDEN_IN_BRACES: [&str; 3] = ["sync", "thread", "UnsafeCell"];

fn goes_round_the_seam(source: &Source) -> Vec<String> {
    let lines = source.without_tests();
    let without_allowed =
        |code: &str| ALLOWED.iter().fold(code.to_owned(), |code, allowed| code.replace(allowed, ""));
    let paths = lines.iter().filter_map(|line| {
        let code = without_allowed(&line.code);
        FORBIDDEN.iter().find(|name| code.contains(**name)).map(|name| (line.number, *name))
    });
    let imports = imports_in_braces(lines).into_iter().filter_map(|(number, import)| {
        let import = without_allowed(&import);
        let mut words = import.split(|c: char| !c.is_alphanumeric() && c != '_');
        let found = words.find_map(|word| FORBIDDEN_IN_BRACES.into_iter().find(|name| *name == word))?;
        Some((number, found))
    });
    let fault = |(number, found): (usize, &str)| {
        source.fault(number, format_args!("`{found}`: take it from `crate::sync`, which models replace"))
    };
    // A path may be in both.
    let mut found: Vec<(usize, &str)> = paths.chain(imports).collect();
    found.sort_unstable();
    found.dedup_by_key(|(number, _)| *number);
    found.into_iter().map(fault).collect()
}

/// Imports from the standard library with braces, which may go over several lines; each with its first line's number.
fn imports_in_braces(lines: &[Line]) -> Vec<(usize, String)> {
    let begins = |line: &Line| {
        let roots = ["use std::", "use core::", "use ::std::", "use ::core::"];
        roots.iter().any(|root| line.code.contains(root))
    };
    let whole = |(at, line): (usize, &Line)| {
        let end = lines[at..].iter().position(|line| line.code.contains(';')).unwrap_or(0);
        (line.number, lines[at..=at + end].iter().map(|line| line.code.as_str()).collect::<String>())
    };
    let imports = lines.iter().enumerate().filter(|(_, line)| begins(line)).map(whole);
    imports.filter(|(_, import)| import.contains('{')).collect()
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
                use std::sync::{Arc as StdArc, OnceLock};\nuse std::cell::{Cell, RefCell};\n#[cfg(test)]\nmod tests {\nuse std::thread;\n}";
    assert!(goes_round_the_seam(&crate::source::snippet(good)).is_empty());
    for bad in [
        "use std::sync::Mutex;",
        "std::thread::spawn(f);",
        "use std::{sync::Mutex, fmt};",
        "use std::{fmt, sync::Mutex};",
        "pub(crate) use std::{\n    fmt,\n    io, thread,\n};",
        "use std::cell::{Cell, UnsafeCell};",
        "use core::{cell::{Cell, UnsafeCell}, fmt};",
        "use std::sync::{\n    Arc,\n    Mutex,\n};",
        "x: std::sync::atomic::AtomicU8",
    ] {
        let faults = goes_round_the_seam(&crate::source::snippet(&format!("\n{bad}")));
        assert!(crate::said(&faults)[0].starts_with("2: "), "{bad}: {faults:?}");
    }
}
