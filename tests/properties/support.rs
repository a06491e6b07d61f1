//! What the properties of all subjects share.

use pointsman::Failure;
use proptest::test_runner::{Config, FileFailurePersistence};
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

/// 256 cases, or as many as the environment variable `PROPTEST_CASES` says. What has failed once is tried first, from
/// then on: `seeds` is the file beside the source that keeps it.
pub fn cases(seeds: &'static str) -> Config {
    Config { failure_persistence: Some(Box::new(FileFailurePersistence::Direct(seeds))), ..Config::default() }
}

/// A failure that was asked for, by an error or by a panic.
pub fn fail(text: &str, by_panic: bool) -> Failure {
    if by_panic {
        // Without the hook's report: there are thousands.
        std::panic::resume_unwind(Box::new(text.to_owned()));
    }
    Failure::msg(text.to_owned())
}

/// What was noted so far, each one's in order.
pub fn by_noter<T>(notes: &Receiver<(String, T)>) -> BTreeMap<String, Vec<T>> {
    let mut by_noter: BTreeMap<String, Vec<T>> = BTreeMap::new();
    for (noter, note) in notes.try_iter() {
        by_noter.entry(noter).or_default().push(note);
    }
    by_noter
}
