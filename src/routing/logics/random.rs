//! Random: chooses any routee, with equal chance.

use crate::routing::logic::RoutingLogic;
use crate::routing::logics::thread_rng::Generators;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};
use rand::RngExt;
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
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
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

impl Random {
    /// Draws a routee.
    #[inline(always)]
    pub(crate) fn select_directly<M: Send + 'static>(
        &self,
        routees: &[Routee<M>],
        seed: u64,
    ) -> Option<usize> {
        let count = routees.len();
        (count > 0).then(|| self.0.draw(seed, |generator| generator.random_range(0..count)))
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Send + 'static> RoutingLogic<M> for Random {
    #[inline(always)]
    fn select(&self, _: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
        if cx.refusals() > 0 {
            return cx.next_in_turn(routees);
        }
        self.select_directly(routees.as_slice(), cx.seed())
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
