//! The random numbers of the logics that draw.

use crate::util::per_thread::PerThread;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::cell::RefCell;

/// A generator of random numbers for each sending thread.
pub(crate) struct Generators {
    /// `None`: the seed of the router.
    pub seed: Option<u64>,
    by_thread: PerThread<RefCell<SmallRng>>,
}

/// Spreads the numbers of threads over the seeds: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Generators {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        Self { seed, by_thread: PerThread::new() }
    }

    /// Draws from the generator of the calling thread, in a router of this seed.
    #[inline]
    pub(crate) fn draw<R>(&self, seed: u64, draw: impl FnOnce(&mut SmallRng) -> R) -> R {
        let make = |number: usize| {
            let seed = self.seed.unwrap_or(seed);
            RefCell::new(SmallRng::seed_from_u64(seed ^ SPREAD.wrapping_mul(number as u64 + 1)))
        };
        self.by_thread.with(make, |generator| draw(&mut generator.borrow_mut()))
    }
}
