//! What the properties of all subjects share.

use pointsman::Failure;
use proptest::test_runner::{Config, FileFailurePersistence};

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
