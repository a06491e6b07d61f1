//! Smallest mailbox: chooses the routee with the least to do.

use crate::core::actor_ref::{ActorRef, RecipientLoad};
use crate::routing::logic::RoutingLogic;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};
use crate::util::per_thread::PerThread;
use std::cell::Cell;
use std::fmt;

/// Chooses the routee with the least to do, by looking at all of them.
///
/// In this order: idle with an empty mailbox; busy with an empty mailbox; the fewest queued; routees of unknown load,
/// such as functions. A routee that has stopped is never chosen. A suspended routee is chosen only if all living
/// routees are suspended: the message waits there until the failure is decided. Equal routees get their turns: the scan
/// starts behind the routee that was chosen last, for each sending thread.
///
/// The chosen routee may be a router that turns out to be empty or full, or a recipient that refuses and does not
/// report itself closed. Then the others are tried in the same order. Routers known to be empty come last of all: by
/// the message they learn that they are wanted, and may grow.
///
/// The loads are read without stopping any routee, so several senders may see the same routee as the smallest. Costs
/// two loads for each routee; for large pools prefer [`TwoChoices`](crate::routing::TwoChoices).
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::SmallestMailbox;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let workers = system.router("workers").pool(8, |_| Worker).logic(SmallestMailbox::new()).spawn()?;
/// workers.tell(7u64);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct SmallestMailbox {
    starts: PerThread<Cell<usize>>,
}

impl SmallestMailbox {
    /// The logic.
    pub fn new() -> Self {
        Self::default()
    }
}

impl SmallestMailbox {
    /// Returns the index at which the calling thread's scan of `count` routees begins.
    #[inline]
    fn start(&self, count: usize) -> usize {
        let start = self.starts.with(|number| Cell::new(number % count), Cell::get);
        // The table may have shrunk.
        if start < count { start } else { 0 }
    }

    /// Makes the calling thread's next scan begin behind this routee.
    #[inline]
    fn selected(&self, index: usize) -> Option<usize> {
        self.starts.with(Cell::new, |start| start.set(index + 1));
        Some(index)
    }

    /// Selects the routee with the least to do; `None` if all have stopped, or if one is no actor.
    #[inline(always)]
    pub(crate) fn select_directly<M: Send + 'static>(&self, routees: &[Routee<M>]) -> Option<usize> {
        if routees.is_empty() {
            return None;
        }
        let start = self.start(routees.len());
        self.selected(least(routees, start, ActorRef::rank_of_actor)??)
    }
}

impl<M: Send + 'static> RoutingLogic<M> for SmallestMailbox {
    #[inline(always)]
    fn select(&self, _: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
        let count = routees.len();
        if count == 0 {
            return None;
        }
        if cx.has_passed_over() {
            // Its load may be the smallest again.
            return least_of_the_others(routees, cx);
        }
        let start = self.start(count);
        let best = least(routees.as_slice(), start, |actor| Some(actor.rank())).flatten();
        // No borrow is held around the scan: user code may tell a routee's load.
        match best {
            Some(index) => self.selected(index),
            None => first_of_the_empty(routees, cx),
        }
    }

    fn name(&self) -> Option<&str> {
        Some("smallest-mailbox")
    }
}

/// Returns the first routee with the smallest rank, from the index `start` on, going round; `Some(None)` if all have
/// stopped. Ends at an idle routee, which has the lowest rank. `None` if `rank` has none for a routee on the way.
#[inline(always)]
fn least<M: Send + 'static>(
    routees: &[Routee<M>],
    start: usize,
    rank: impl Fn(&ActorRef<M>) -> Option<u64>,
) -> Option<Option<usize>> {
    let (before, from) = routees.split_at(start);
    match least_of(from, start, (None, RecipientLoad::Closed.rank()), &rank)? {
        (best, 0) => Some(best),
        best => Some(least_of(before, 0, best, &rank)?.0),
    }
}

/// Returns the first routee with the smallest rank, with its rank, in a part of the table that begins at the index
/// `first`, if that rank is below the rank of the routee found before.
#[inline]
fn least_of<M: Send + 'static>(
    part: &[Routee<M>],
    first: usize,
    before: (Option<usize>, u64),
    rank: &impl Fn(&ActorRef<M>) -> Option<u64>,
) -> Option<(Option<usize>, u64)> {
    let (mut best, mut least) = before;
    for (index, routee) in (first..).zip(part) {
        let rank = rank(routee.actor())?;
        if rank < least {
            (best, least) = (Some(index), rank);
            if rank == 0 {
                break;
            }
        }
    }
    Some((best, least))
}

/// Returns the routee with the least to do of those that were not passed over; of equals the first.
#[cold]
fn least_of_the_others<M: Send + 'static>(routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
    let others = (0..routees.len()).filter(|index| !cx.was_passed_over(*index));
    let ranked = others.map(|index| (routees.load(index).rank(), index));
    match ranked.filter(|(rank, _)| *rank < RecipientLoad::Closed.rank()).min() {
        Some((_, index)) => Some(index),
        None => first_of_the_empty(routees, cx),
    }
}

/// Returns a router without routees that has not stopped, and was not passed over. No other routee is there, and by
/// this message the router learns that it is wanted, and may grow.
#[cold]
fn first_of_the_empty<M: Send + 'static>(routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
    let is_empty = |index: &usize| {
        let routee = routees.get(*index).map(Routee::actor);
        routee.is_some_and(|routee| routee.is_router() && !routee.is_closed()) && !cx.was_passed_over(*index)
    };
    (0..routees.len()).find(is_empty)
}

impl fmt::Debug for SmallestMailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmallestMailbox")
    }
}
