//! Two choices: draws two routees at random, and chooses the one with less to do.

use crate::routing::logic::RoutingLogic;
use crate::routing::logics::thread_rng::Generators;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};
use rand::RngExt;
use std::fmt;

/// Draws two different routees at random and chooses the one with less to do, in the order of
/// [`SmallestMailbox`](crate::routing::SmallestMailbox); of equals, the one drawn first.
///
/// Its cost does not grow with the number of routees, and the longest of n queues stays within about log log
/// n of the mean where one random draw lets it grow to log n / log log n (Mitzenmacher, "The Power of Two
/// Choices in Randomized Load Balancing", 1996). It also keeps senders that look at the same time from all
/// choosing the same routee.
///
/// The chosen routee may have stopped, or be a router that is empty or full. Then the routees behind it in the table
/// are tried in turn. A routee that has stopped gets nothing, a suspended routee only if both that were drawn are
/// suspended. Each sending thread has a generator of its own, as in [`Random`](crate::routing::Random).
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::TwoChoices;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let workers = system.router("workers").pool(200, |_| Worker).logic(TwoChoices::new()).spawn()?;
/// workers.tell(7u64);
/// # Ok(())
/// # }
/// ```
pub struct TwoChoices(Generators);

impl TwoChoices {
    /// Seeded by the system.
    pub fn new() -> Self {
        Self(Generators::new(None))
    }

    /// Seeded by `seed`: see [`Random::seeded`](crate::routing::Random::seeded).
    pub fn seeded(seed: u64) -> Self {
        Self(Generators::new(Some(seed)))
    }
}

impl TwoChoices {
    /// Draws two different routees of `count`, at least 2.
    #[inline(always)]
    fn draw(&self, count: usize, seed: u64) -> (usize, usize) {
        self.0.draw(seed, |generator| {
            let first = generator.random_range(0..count);
            // Draws among the others: routees from `first` on are one further.
            let other = generator.random_range(0..count - 1);
            (first, other + usize::from(other >= first))
        })
    }

    /// Draws two routees and takes that with less to do; `None` if there are fewer, or if one is no actor.
    #[inline(always)]
    pub(crate) fn select_directly<M: Send + 'static>(
        &self,
        routees: &[Routee<M>],
        seed: u64,
    ) -> Option<usize> {
        let count = routees.len();
        if count < 2 {
            return None;
        }
        let (first, second) = self.draw(count, seed);
        let ranks = (routees[second].actor().rank_of_actor()?, routees[first].actor().rank_of_actor()?);
        Some(if ranks.0 < ranks.1 { second } else { first })
    }
}

impl Default for TwoChoices {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Send + 'static> RoutingLogic<M> for TwoChoices {
    #[inline(always)]
    fn select(&self, _: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
        let count = routees.len();
        if count < 2 {
            return if count == 0 { None } else { Some(0) };
        }
        if cx.refusals() > 0 {
            return cx.next_in_turn(routees);
        }
        let (first, second) = self.draw(count, cx.seed());
        let list = routees.as_slice();
        Some(if list[second].actor().rank() < list[first].actor().rank() { second } else { first })
    }

    fn name(&self) -> Option<&str> {
        Some("two-choices")
    }
}

impl fmt::Debug for TwoChoices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwoChoices").field("seed", &self.0.seed).finish()
    }
}
