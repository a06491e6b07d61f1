//! The routee with the least to do.

use super::{Pick, RouteContext, Routees, RoutingLogic};
use crate::actor_ref::Load;
use crate::striped::PerThread;
use std::cell::Cell;
use std::fmt;

/// Chooses the routee with the least to do, by looking at all of them.
///
/// In this order: idle with an empty mailbox; busy with an empty mailbox; the fewest queued; those whose load
/// nobody knows, such as functions. A routee that has stopped is never chosen. A suspended one is chosen only if all
/// that live are: the message waits there until the failure is decided. Of equals, each gets its turn: the
/// scan starts behind the one that was chosen last, for each sending thread.
///
/// The loads are read without stopping anybody, so several senders may see the same one as the smallest.
/// Costs two loads for each routee; for large pools prefer [`TwoChoices`](super::TwoChoices).
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::SmallestMailbox;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
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

impl<M: Send + 'static> RoutingLogic<M> for SmallestMailbox {
    #[inline]
    fn select(&self, _: &M, routees: &Routees<M>, _: &RouteContext<'_>) -> Pick {
        let count = routees.len();
        if count == 0 {
            return Pick::None;
        }
        let start = self.starts.with(|number| Cell::new(number % count), Cell::get);
        // The table may have shrunk.
        let start = if start < count { start } else { 0 };
        let (mut best, mut least) = (None, Load::Closed.rank());
        for index in (start..count).chain(0..start) {
            let rank = routees.load(index).rank();
            if rank < least {
                (best, least) = (Some(index), rank);
                if rank == 0 {
                    break;
                }
            }
        }
        // Not around the scan: a routee's load may be told by user code.
        best.map_or(Pick::None, |index| {
            self.starts.with(Cell::new, |start| start.set(index + 1));
            Pick::One(index)
        })
    }

    fn name(&self) -> Option<&str> {
        Some("smallest-mailbox")
    }
}

impl fmt::Debug for SmallestMailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmallestMailbox")
    }
}
