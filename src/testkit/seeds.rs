//! The seeds of tests.

use crate::testkit::system::TestSystem;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// Names the seed of a failed test.
const VARIABLE: &str = "POINTSMAN_SEED";

/// The advice for seeing a failure again.
pub(crate) struct Again(pub u64);

impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {0}: run the test again with {VARIABLE}={0}", self.0)
    }
}

/// Runs a test on `count` fresh systems, each with a seed of its own, and [finishes](TestSystem::finish) each.
///
/// The seeds are those of [`seeds`]: other seeds in each run, or the seed of `POINTSMAN_SEED` alone if that is set.
///
/// # Panics
///
/// When `test` does, or a system does not finish cleanly; the failing seed is printed.
///
/// ```
/// use pointsman::testkit::{Probe, for_seeds};
///
/// for_seeds(20, |system| {
///     let probe: Probe<u32> = system.probe();
///     probe.actor_ref().tell(1u32);
///     probe.actor_ref().tell(2u32);
///     probe.expect(1);
///     probe.expect(2);
/// });
/// ```
pub fn for_seeds(count: u64, mut test: impl FnMut(&TestSystem)) {
    for seed in seeds(count) {
        let system = TestSystem::with_seed(seed);
        test(&system);
        system.finish();
    }
}

/// Returns `count` seeds, for tests that describe their systems themselves: the seed of the environment variable
/// `POINTSMAN_SEED` alone, if that is set, and otherwise other seeds in each run.
///
/// # Panics
///
/// If the value of the variable is no whole number below 2^64.
///
/// ```
/// use pointsman::testkit::{TestSystem, seeds};
/// use pointsman::Dispatcher;
///
/// for seed in seeds(3) {
///     let system = TestSystem::builder()
///         .seed(seed)
///         .configure(|builder| builder.dispatcher("blocking", Dispatcher::blocking()))
///         .build();
///     system.finish();
/// }
/// ```
pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let (first, count) = match given() {
        Some(seed) => (seed, count.min(1)),
        None => (random(), count),
    };
    (0..count).map(move |number| first.wrapping_add(number))
}

/// Returns a seed: given, or random.
pub(crate) fn any_seed() -> u64 {
    given().unwrap_or_else(random)
}

fn given() -> Option<u64> {
    let text = std::env::var_os(VARIABLE)?;
    let seed = text.to_str().and_then(|text| text.trim().parse().ok());
    Some(seed.unwrap_or_else(|| panic!("{VARIABLE}={text:?}: must be a whole number below 2^64")))
}

/// Derived from the random keys of the standard library's hash maps; small, since a user may type it again.
fn random() -> u64 {
    RandomState::new().hash_one(0) >> 32
}
