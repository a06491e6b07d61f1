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
///
/// When the routee drawn has stopped, the next one in the table that has not gets the message.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::Random;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let workers = system.router("workers").pool(4, |_| Worker).logic(Random::seeded(42)).spawn()?;
/// workers.tell(7u64);
/// # Ok(())
/// # }
/// ```
pub struct Random(Generators);

impl Random {
    /// Seeded by the system.
    pub fn new() -> Self {
        Self(Generators::new(None))
    }

    /// Seeded by `seed`. The sequence is the same in each run of one build; another version of this crate may
    /// have another.
    pub fn seeded(seed: u64) -> Self {
        Self(Generators::new(Some(seed)))
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
        let index = self.0.draw(cx, |generator| generator.random_range(0..routees.len()));
        if cx.attempt() > 0 { routees.first_open(index) } else { Pick::One(index) }
    }

    fn name(&self) -> Option<&str> {
        Some("random")
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Random").field("seed", &self.0.seed).finish()
    }
}

/// A generator of random numbers for each sending thread.
pub(super) struct Generators {
    /// `None`: the router's.
    pub seed: Option<u64>,
    by_thread: PerThread<RefCell<SmallRng>>,
}

/// Spreads the numbers of threads over the seeds: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Generators {
    pub fn new(seed: Option<u64>) -> Self {
        Self { seed, by_thread: PerThread::new() }
    }

    /// Draws by the calling thread's generator.
    #[inline]
    pub fn draw<R>(&self, cx: &RouteContext<'_>, draw: impl FnOnce(&mut SmallRng) -> R) -> R {
        let make = |number: usize| {
            let seed = self.seed.unwrap_or_else(|| cx.seed());
            RefCell::new(SmallRng::seed_from_u64(seed ^ SPREAD.wrapping_mul(number as u64 + 1)))
        };
        self.by_thread.with(make, |generator| draw(&mut generator.borrow_mut()))
    }
}
