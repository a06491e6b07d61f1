//! The skipping of unwanted messages: requests whose asker has gone, and messages whose deadline is over, when their
//! turn comes.
//!
//! Only the message itself knows whether it is wanted: its reply port knows whether its asker waits, and an
//! [`Expiring`] knows its deadline. [`Answerable`] finds both, as a router finds the port that it forks. So an actor
//! that is to skip such messages keeps one function for that, among the data that most actors never need. It takes its
//! messages one by one in another loop than other actors, and the other actors pay nothing.
//!
//! [`Expiring`]: crate::ask::Expiring

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::private::IsWanted;
use crate::actor::recipe::Recipe;
use crate::actor::spawn::Held;
use crate::actor::turn::ActorTurn;
use crate::ask::fork::{Answerable, Attempt};
use crate::core::dead_letter::DeadLetterReason;
use crate::failure::guarded;

/// Returns whether the message is still wanted, by its port or its deadline.
pub(crate) fn is_wanted<M: Answerable>(message: &mut M) -> bool {
    let look = Attempt::look();
    // A message without a port has no asker who could go away.
    !message.fork(&look) || look.is_wanted()
}

impl<M: Answerable + Send + 'static> Held<M> {
    /// Makes the actor skip unwanted messages.
    pub(crate) fn skip_unwanted(mut self) -> Self {
        self.skip_unless(is_wanted);
        self
    }
}

impl<M: Send + 'static> Held<M> {
    /// Makes the actor skip each message for which the function returns false.
    pub(crate) fn skip_unless(&mut self, is_wanted: IsWanted<M>) {
        self.private(|private| private.extras().is_wanted = Some(is_wanted));
    }
}

impl<M: Answerable + Send + 'static> Context<M> {
    /// Makes this actor skip unwanted messages when their turn comes: requests whose asker has given up, has gone, or
    /// has been answered by another replier, and [`Expiring`](crate::ask::Expiring) messages whose deadline is over. A
    /// skipped message never reaches [`receive`](Actor::receive): it is counted as [`skipped`](crate::Ledger::skipped),
    /// and shown as a dead letter with the reason [`Expired`](DeadLetterReason::Expired).
    ///
    /// Call it in the recipe, or in [`started`](Actor::started): it holds from the next message on, and for good. The
    /// routees of a pool and the actors of a keyed group can be told together, by
    /// [`RouterPlan::skip_unwanted`](crate::routing::RouterPlan::skip_unwanted) and
    /// [`GroupPlan::skip_unwanted`](crate::group::GroupPlan::skip_unwanted); a routee of a balancing pool that calls
    /// this itself skips from its next turn on.
    ///
    /// The actor's messages must be [`Answerable`], which `#[derive(Message)]` implements. A message without a port is
    /// never skipped, nor is a message whose asker cannot tell whether it still waits. A future that is not polled does
    /// not notice that its deadline is over, so its request is still wanted.
    ///
    /// Each request costs one more load, each other message one look at its variant. The actor also goes back to the
    /// scheduler's checks once for each message. Actors that do not skip pay nothing.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// #[derive(Debug)]
    /// struct Report(u32);
    /// impl Request for Report {
    ///     type Reply = String;
    /// }
    ///
    /// struct Printer;
    /// impl Actor for Printer {
    ///     type Message = Call<Report>;
    ///     fn started(&mut self, ctx: &mut Context<Call<Report>>) -> HandlerResult {
    ///         ctx.skip_unwanted();
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, call: Call<Report>, _: &mut Context<Call<Report>>) -> HandlerResult {
    ///         call.answer(|Report(year)| format!("{year}: all is well"));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let printer = system.actor("printer").spawn(|| Printer)?;
    /// assert_eq!(printer.ask(Report(1999)).wait()?, "1999: all is well");
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "SkippingBuilder")]
    pub fn skip_unwanted(&mut self) {
        self.extras(|extras| extras.is_wanted = Some(is_wanted));
        self.request_look();
    }
}

/// The place from which an actor has taken a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenFrom {
    Mailbox,
    /// The stash, or a shared queue.
    Elsewhere,
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Returns whether this actor skips unwanted messages.
    pub(crate) fn does_skip(&self) -> bool {
        self.private(|private| private.extras.as_ref().is_some_and(|extras| extras.is_wanted.is_some()))
    }

    /// Returns a wanted message to be handled, and counts it as handled; skips an unwanted message.
    pub(crate) fn unless_unwanted(&mut self, mut message: A::Message, from: TakenFrom) -> Option<A::Message> {
        let is_wanted = self.private(|private| private.extras.as_ref()?.is_wanted);
        // A message that panics at this question counts as wanted.
        if is_wanted.is_none_or(|is_wanted| guarded(|| Ok(is_wanted(&mut message))).unwrap_or(true)) {
            // Before the handler, so an actor that sees the handler's effects finds the message counted.
            self.row.handled(1);
            if from == TakenFrom::Elsewhere {
                self.ctx.count_beside(1);
            }
            return Some(message);
        }
        self.row.skipped(1);
        if from == TakenFrom::Mailbox {
            self.ctx.count_beside(-1);
        }
        let me = self.me();
        self.core()
            .system
            .dead_letters()
            .publish_dead_letter(message, DeadLetterReason::Expired, || me.path());
        None
    }
}
