//! Broadcast: sends every message to all routees.

use crate::core::dead_letter::DeadLetterReason;
use crate::core::error::SendError;
use crate::routing::logic::RoutingLogic;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};

/// Sends every message to all routees, in the order of the table.
///
/// A message to n routees is cloned n − 1 times and counts as n deliveries; a copy that a routee does not take is a
/// dead letter of its own. With no routees the message itself is a dead letter, or comes back to `try_tell`.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::{Broadcast, RouterValue};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let (sender, got) = std::sync::mpsc::channel();
/// let routees = ["left", "right"].map(|name| {
///     let sender = sender.clone();
///     ActorRef::from_fn(move |_: u32| sender.send(name).expect("it is kept"))
/// });
/// let router = RouterValue::new(&system, Broadcast)?.with_routees(&routees);
/// router.route(1u32);
/// assert_eq!(got.try_iter().collect::<Vec<_>>(), ["left", "right"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Broadcast;

impl<M: Clone + Send + 'static> RoutingLogic<M> for Broadcast {
    /// Called only for a leftover of a routee, which was for that routee alone: any other routee gets it.
    fn select(&self, _: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
        cx.next_in_turn(routees)
    }

    fn route(&self, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        cx.deliver_to_all(message, routees).map(drop)
    }

    fn name(&self) -> Option<&str> {
        Some("broadcast")
    }
}

impl RouteContext<'_> {
    /// Delivers a copy to each of these routees, in their order, for a logic that picks several: called in
    /// [`route`](RoutingLogic::route). Each copy counts as a delivery; a copy that its routee does not take becomes a
    /// dead letter, and the others go on. A routee that is named twice gets two copies.
    ///
    /// # Errors
    ///
    /// The message comes back if there is no routee.
    pub fn deliver_to_each<'r, M, I>(&self, message: M, routees: I) -> Result<(), SendError<M>>
    where
        M: Clone + Send + 'static,
        I: IntoIterator<Item = &'r Routee<M>, IntoIter: ExactSizeIterator>,
    {
        let routees = routees.into_iter();
        if routees.len() == 0 {
            return Err(SendError::NoRoutee(message));
        }
        self.deliver_counting(message, routees);
        Ok(())
    }

    /// Delivers a copy to each routee of a table, and returns how many were taken.
    ///
    /// # Errors
    ///
    /// The message comes back if there is none.
    pub(crate) fn deliver_to_all<M: Clone + Send + 'static>(
        &self,
        message: M,
        routees: &Routees<M>,
    ) -> Result<usize, SendError<M>> {
        if routees.is_empty() {
            return Err(SendError::NoRoutee(message));
        }
        let taken = self.deliver_counting(message, routees.iter());
        if taken == 0 {
            self.nobody_took_a_copy(routees);
        }
        Ok(taken)
    }

    /// No copy was taken. Routees that have ended are listed until the head has heard of it. Where there is no other
    /// routee, the message has found none, as it would have in the table that is to come.
    #[cold]
    pub(crate) fn nobody_took_a_copy<M: Send + 'static>(&self, routees: &Routees<M>) {
        if routees.have_all_ended() {
            self.nobody_took();
        }
    }

    /// Delivers a copy to each of these routees, of which there is at least one, and returns how many were taken.
    fn deliver_counting<'r, M: Clone + Send + 'static>(
        &self,
        message: M,
        mut routees: impl ExactSizeIterator<Item = &'r Routee<M>>,
    ) -> usize {
        let copies = routees.len();
        self.copies(copies);
        let mut taken = 0;
        for routee in routees.by_ref().take(copies - 1) {
            taken += usize::from(self.deliver_copy(routee.actor(), message.clone()));
        }
        if let Some(last) = routees.next() {
            taken += usize::from(self.deliver_copy(last.actor(), message));
        }
        taken
    }
}

/// Delivers a message to all routees; where there is none it is a dead letter.
pub(crate) fn to_all<M: Clone + Send + 'static>(message: M, routees: &Routees<M>, cx: &RouteContext<'_>) {
    match cx.deliver_to_all(message, routees) {
        Ok(_) => cx.settle(),
        Err(nobody) => {
            cx.nobody_took();
            cx.count_dead_letter(nobody.into_inner(), DeadLetterReason::NoRoutee);
        }
    }
}
