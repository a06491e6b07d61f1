//! The seeds of tests.

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

/// Returns the seeds of [`TestSystem::seeds`](crate::testkit::TestSystem::seeds).
pub(crate) fn seeds(count: u64) -> impl Iterator<Item = u64> {
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
