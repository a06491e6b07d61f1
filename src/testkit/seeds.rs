//! Where a test's seed comes from.

use crate::testkit::system::TestSystem;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// Names the seed of a failed test.
const VARIABLE: &str = "POINTSMAN_SEED";

/// What to do to see a failure again.
pub(crate) struct Again(pub u64);

impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {0}: run the test again with {VARIABLE}={0}", self.0)
    }
}

/// Runs a test on `count` fresh systems, each with a seed of its own, and [finishes](TestSystem::finish) each.
///
/// The seeds are those of [`seeds`]: others in each run, and just the one of `POINTSMAN_SEED` if that is set.
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

/// `count` seeds, for tests that describe their systems themselves: the seed of the environment variable
/// `POINTSMAN_SEED` alone, if that is set, and otherwise others in each run.
///
/// # Panics
///
/// If the variable is set to what is no whole number below 2^64.
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

/// One seed: given, or random.
pub(crate) fn any_seed() -> u64 {
    given().unwrap_or_else(random)
}

fn given() -> Option<u64> {
    let text = std::env::var_os(VARIABLE)?;
    let seed = text.to_str().and_then(|text| text.trim().parse().ok());
    Some(seed.unwrap_or_else(|| panic!("{VARIABLE}={text:?}: must be a whole number below 2^64")))
}

/// From what the standard library keeps its hash maps safe with; small, for it is to be typed again.
fn random() -> u64 {
    RandomState::new().hash_one(0) >> 32
}
