//! The house rules that no lint knows, executed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every Rust file below a folder of the workspace, by its path from the top.
fn sources(folder: &str) -> BTreeMap<PathBuf, String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeMap::new();
    let mut folders = vec![top.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("UTF-8");
                found.insert(path.strip_prefix(top).expect("below the top").to_owned(), text);
            }
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// Whether a line is only a comment.
fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// The lines of a file before its unit tests.
fn without_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line))
        .take_while(|(_, line)| !(line.starts_with("#[cfg(all(test") || line.starts_with("#[cfg(test)]")))
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn concurrency_comes_through_the_seam() {
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
    const FORBIDDEN: [&str; 7] = [
        "std::sync",
        "core::sync",
        "std::thread",
        "std::cell::UnsafeCell",
        "core::cell::UnsafeCell",
        "loom::",
        "crossbeam",
    ];
    let mut faults = Vec::new();
    for (path, text) in sources("src") {
        if path.starts_with("src/sync") || path.ends_with("tests.rs") {
            continue;
        }
        for (number, line) in without_tests(&text) {
            let code = ALLOWED.iter().fold(line.to_owned(), |line, allowed| line.replace(allowed, ""));
            if !is_comment(line) && FORBIDDEN.iter().any(|name| code.contains(name)) {
                faults.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    report(&faults);
}

#[test]
fn each_ordering_says_what_it_is_for() {
    /// How far above the ordering its comment may begin.
    const REACH: usize = 8;
    let mut faults = Vec::new();
    for (path, text) in sources("src") {
        if path.ends_with("tests.rs") || path.ends_with("sync/model.rs") {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in without_tests(&text) {
            let orders = ["Acquire", "Release", "AcqRel", "SeqCst"]
                .iter()
                .any(|order| line.contains(&format!("Ordering::{order}")));
            let explained = lines[number.saturating_sub(1 + REACH)..number]
                .iter()
                .any(|line| line.contains("Ordering:") && line.contains("//"));
            if orders && !is_comment(line) && !explained {
                faults.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    report(&faults);
}

#[test]
fn what_an_ordering_pairs_with_exists() {
    let sources = sources("src");
    let all: String = sources.values().map(String::as_str).collect();
    let mut faults = Vec::new();
    for (path, text) in &sources {
        // Comments run on over lines.
        let mut comment = String::new();
        for (number, line) in text.lines().enumerate() {
            match line.trim_start().strip_prefix("//") {
                Some(more) => comment.push_str(more),
                None => {
                    for (_, said) in comment.match_indices("pairs with").map(|(at, _)| comment.split_at(at)) {
                        // To the end of the sentence; dots inside names are followed by no space.
                        let sentence = said.split(". ").next().unwrap_or(said);
                        for name in sentence.split('`').skip(1).step_by(2) {
                            let name = name.trim_end_matches("()");
                            let last = name.rsplit(['.', ':']).next().unwrap_or(name);
                            let known = ["fn ", "static ", "const ", "struct ", "macro_rules! ", "enum "]
                                .iter()
                                .any(|kind| all.contains(&format!("{kind}{last}")))
                                || all.contains(&format!("{last}: "))
                                || all.contains(&format!(".{last}("));
                            if !known {
                                faults.push(format!("{}:{}: `{name}`", path.display(), number + 1));
                            }
                        }
                    }
                    comment.clear();
                }
            }
        }
    }
    report(&faults);
}

#[test]
fn models_refuse_to_be_built_without_loom_and_name_their_mutations() {
    let mut faults = Vec::new();
    for (path, text) in sources("loom-tests/tests") {
        if path.parent().is_some_and(|folder| folder.ends_with("support")) {
            continue;
        }
        let opens = text.lines().filter(|line| !line.is_empty() && !is_comment(line)).take(2);
        if opens.ne([
            "#[cfg(not(pointsman_loom))]",
            r#"compile_error!("models need the loom mirror: run cargo loom");"#,
        ]) {
            faults.push(format!("{}: does not open with its guard", path.display()));
        }
        let text = text.to_lowercase();
        if !["mutation", "caught", "fault", "seen to fail"].iter().any(|word| text.contains(word)) {
            faults.push(format!("{}: names no mutation that it was seen to catch", path.display()));
        }
    }
    report(&faults);
}
