//! Messages that nobody wants any more when their turn comes: questions whose asker has gone, and messages whose time
//! is over.
//!
//! Who wants a message is known to the message alone: its reply port knows whether its asker waits, and an [`Expiring`]
//! knows its deadline. Both are found by [`Answerable`], as a router finds the port that it forks. So an actor that is
//! to skip such messages keeps one function for that, beside what else most actors never need; it takes its messages
//! one by one by another loop than other actors, who pay nothing.
//!
//! [`Expiring`]: crate::ask::Expiring

use crate::actor::actor::Actor;
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::actor::private::IsWanted;
use crate::actor::recipe::{ByContext, IntoActor, Recipe};
use crate::actor::spawn::{Held, spawn_held};
use crate::actor::turn::ActorTurn;
use crate::ask::fork::{Answerable, Attempt};
use crate::core::actor_ref::ActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::error::SpawnError;
use crate::failure::guarded;

/// Whether the message is still wanted, by its port or its deadline.
pub(crate) fn is_wanted<M: Answerable>(message: &mut M) -> bool {
    let look = Attempt::look();
    // One without a port has nobody who could go away.
    !message.fork(&look) || look.is_wanted()
}

impl<M: Answerable + Send + 'static> Held<M> {
    /// Has the actor skip what nobody wants any more.
    pub(crate) fn skip_unwanted(mut self) -> Self {
        self.skip_unless(is_wanted);
        self
    }
}

impl<M: Send + 'static> Held<M> {
    /// Has the actor skip each message of which the function says that it is not wanted.
    pub(crate) fn skip_unless(&mut self, is_wanted: IsWanted<M>) {
        self.private(|private| private.extras().is_wanted = Some(is_wanted));
    }
}

impl ActorBuilder {
    /// Has the actor skip messages that nobody wants any more when their turn comes: questions whose asker has
    /// given up, has gone, or has been answered by another one, and [`Expiring`](crate::ask::Expiring) messages whose time is
    /// over. A skipped message never reaches [`receive`](Actor::receive): it is counted as
    /// [`skipped`](crate::Ledger::skipped), and shown as a dead letter with the reason
    /// [`Expired`](DeadLetterReason::Expired).
    ///
    /// Call it last: what it returns can be created, and nothing else. The actor's messages must be
    /// [`Answerable`], which `#[derive(Message)]` writes. A message without a port, and one whose asker cannot tell
    /// whether it still waits, is never skipped. A future that is not polled does not notice that its limit is over, so
    /// its question is still wanted.
    ///
    /// Each question costs one load more, each other message one look at its variant; and the actor goes back to its
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
    ///     fn receive(&mut self, call: Call<Report>, _: &mut Context<Call<Report>>) -> HandlerResult {
    ///         call.answer(|Report(year)| format!("{year}: all is well"));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let printer = system.actor("printer").skip_unwanted().spawn(|| Printer)?;
    /// assert_eq!(printer.ask(Report(1999)).wait()?, "1999: all is well");
    /// # Ok(())
    /// # }
    /// ```
    pub fn skip_unwanted(self) -> SkippingBuilder {
        SkippingBuilder { builder: self }
    }
}

/// An [`ActorBuilder`] of an actor that [skips](ActorBuilder::skip_unwanted) what nobody wants any more.
#[must_use = "nothing is created before `spawn`"]
#[derive(Debug)]
pub struct SkippingBuilder {
    builder: ActorBuilder,
}

impl SkippingBuilder {
    /// Creates the actor, as [`ActorBuilder::spawn`].
    ///
    /// # Errors
    ///
    /// As [`ActorBuilder::spawn`].
    pub fn spawn<A, I>(
        self,
        mut recipe: impl FnMut() -> I + Send + 'static,
    ) -> Result<ActorRef<A::Message>, SpawnError>
    where
        A: Actor<Message: Answerable>,
        I: IntoActor<Actor = A>,
    {
        self.spawn_with(move |_: &mut Context<A::Message>| recipe())
    }

    /// Creates the actor, as [`ActorBuilder::spawn_with`].
    ///
    /// # Errors
    ///
    /// As [`ActorBuilder::spawn`].
    pub fn spawn_with<A, I>(
        self,
        recipe: impl FnMut(&mut Context<A::Message>) -> I + Send + 'static,
    ) -> Result<ActorRef<A::Message>, SpawnError>
    where
        A: Actor<Message: Answerable>,
        I: IntoActor<Actor = A>,
    {
        let held = spawn_held::<A, _>(self.builder.plan, ByContext(recipe))?;
        Ok(held.skip_unwanted().start())
    }
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Whether this actor skips what nobody wants.
    pub(crate) fn does_skip(&self) -> bool {
        self.private(|private| private.extras.as_ref().is_some_and(|extras| extras.is_wanted.is_some()))
    }

    /// Gives a message back that is to be handled, and counts it so; one that nobody wants is skipped.
    pub(crate) fn unless_unwanted(&mut self, mut message: A::Message) -> Option<A::Message> {
        let is_wanted = self.private(|private| private.extras.as_ref()?.is_wanted);
        // A message that panics instead of saying it is as good as wanted.
        if is_wanted.is_none_or(|is_wanted| guarded(|| Ok(is_wanted(&mut message))).unwrap_or(true)) {
            // Before the handler, so that whoever sees its effects sees it counted.
            self.row.handled(1);
            return Some(message);
        }
        self.row.skipped(1);
        let me = self.me();
        self.core()
            .system
            .dead_letters()
            .publish_dead_letter(message, DeadLetterReason::Expired, || me.path());
        None
    }
}
