//! Any routee, with equal chance.

use super::{Pick, RouteContext, Routees, RoutingLogic};
use crate::striped::PerThread;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::cell::RefCell;
use std::fmt;

/// Chooses any routee, with equal chance.
///
/// Each sending thread has a generator of its own. They derive from the system's seed and the router, or
/// from a [given one](Self::seeded), and from the order in which threads first send.
pub struct Random {
    seed: Option<u64>,
    generators: PerThread<RefCell<SmallRng>>,
}

/// Spreads the numbers of threads over the seeds: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Seeded by the system.
    pub fn new() -> Self {
        Self { seed: None, generators: PerThread::new() }
    }

    /// Seeded by `seed`. The sequence is the same in each run of one build; another version of this crate may
    /// have another.
    pub fn seeded(seed: u64) -> Self {
        Self { seed: Some(seed), generators: PerThread::new() }
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Send + 'static> RoutingLogic<M> for Random {
    #[inline]
    fn select(&self, _: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Pick {
        if routees.is_empty() {
            return Pick::None;
        }
        let make = |number: usize| {
            let seed = self.seed.unwrap_or_else(|| cx.seed());
            RefCell::new(SmallRng::seed_from_u64(seed ^ SPREAD.wrapping_mul(number as u64 + 1)))
        };
        Pick::One(
            self.generators.with(make, |generator| generator.borrow_mut().random_range(0..routees.len())),
        )
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Random").field("seed", &self.seed).finish()
    }
}
