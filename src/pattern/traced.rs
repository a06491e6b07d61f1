//! Traced actors: each message brings the span of its sender, and is handled in a span of its own.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::actor::forward_hooks::forward_hooks;
use crate::actor::recipe::IntoActor;
use crate::actor::spawn::ClassChoice;
use crate::core::actor_ref::ActorRef;
use crate::core::error::SpawnError;
use std::fmt;
use std::marker::PhantomData;
use tracing::Span;

/// A message with the span in which it was sent, if a span was enabled there. Making it takes one word and no memory
/// while no span is enabled.
///
/// A traced actor takes messages of this type: see [`ActorBuilder::traced`].
pub struct Traced<M> {
    message: M,
    /// Kept until the message is handled, so that the span exists by then.
    sender: Option<Box<Span>>,
}

impl<M> Traced<M> {
    /// Makes a message that is sent in the current span.
    pub fn new(message: M) -> Self {
        let current = Span::current();
        let sender = (!current.is_disabled()).then(|| Box::new(current));
        Self { message, sender }
    }

    /// Returns the message.
    pub fn into_inner(self) -> M {
        self.message
    }

    /// The message.
    pub fn get(&self) -> &M {
        &self.message
    }

    /// The span in which the message was sent. The handler of a traced actor finds none: the span of the handler follows
    /// from it.
    pub fn sender(&self) -> Option<&Span> {
        self.sender.as_deref()
    }
}

impl<M> From<M> for Traced<M> {
    fn from(message: M) -> Self {
        Self::new(message)
    }
}

impl<M: fmt::Debug> fmt::Debug for Traced<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Traced").field(&self.message).finish()
    }
}

impl ActorBuilder {
    /// Makes the actor a traced one. Each of its messages brings the span of `tracing` in which it was sent, and is
    /// handled in a span of its own: a root, that follows from the sender's. So the traces of actors that send to each
    /// other, or to themselves, do not nest without end. Other actors have no spans, and no cost.
    ///
    /// The actor takes [`Traced<M>`] messages; senders have a reference for `M`. The span of a handler has the name
    /// `message`, the target `pointsman`, the level INFO, and the fields `actor` and `message_type`.
    ///
    /// ```
    /// use pointsman::pattern::Traced;
    /// use pointsman::prelude::*;
    ///
    /// struct Countdown;
    ///
    /// impl Actor for Countdown {
    ///     type Message = Traced<u32>;
    ///     fn receive(&mut self, count: Traced<u32>, ctx: &mut Context<Traced<u32>>) -> HandlerResult {
    ///         tracing::info!("{}", count.get()); // in the span of this message
    ///         match count.into_inner().checked_sub(1) {
    ///             Some(next) => ctx.me().tell(next), // brings this span along
    ///             None => ctx.stop(),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("trace").build()?;
    /// let countdown: ActorRef<u32> = system.actor("countdown").traced().spawn(|| Countdown)?;
    /// countdown.tell(3u32);
    /// # system.wait_until_ended(std::time::Duration::ZERO).unwrap_err();
    /// # Ok(())
    /// # }
    /// ```
    pub fn traced(self) -> TracedBuilder {
        TracedBuilder { builder: self }
    }
}

/// Describes a [traced](ActorBuilder::traced) actor that is about to be created.
#[derive(Debug)]
#[must_use = "nothing is created before `spawn`"]
pub struct TracedBuilder {
    builder: ActorBuilder,
}

impl TracedBuilder {
    /// Creates the actor; `recipe` makes its state, at the start and at each restart.
    ///
    /// The reference is an [adapter](ActorRef::contramap): a message that the actor refuses does not come back to
    /// `try_tell`, but is a dead letter. [`AnyActorRef::typed`](crate::AnyActorRef::typed) of the reference's
    /// [`untyped`](ActorRef::untyped) has the actor's own, for `Traced<M>`, where it comes back.
    ///
    /// # Errors
    ///
    /// As [`ActorBuilder::spawn`].
    pub fn spawn<M, A, I>(
        self,
        mut recipe: impl FnMut() -> I + Send + 'static,
    ) -> Result<ActorRef<M>, SpawnError>
    where
        M: Send + 'static,
        A: Actor<Message = Traced<M>>,
        I: IntoActor<Actor = A>,
    {
        self.spawn_with(move |_: &mut Context<Traced<M>>| recipe())
    }

    /// As [`spawn`](Self::spawn), with a recipe that gets the context of the new actor.
    ///
    /// # Errors
    ///
    /// As [`ActorBuilder::spawn`].
    pub fn spawn_with<M, A, I>(
        mut self,
        mut recipe: impl FnMut(&mut Context<Traced<M>>) -> I + Send + 'static,
    ) -> Result<ActorRef<M>, SpawnError>
    where
        M: Send + 'static,
        A: Actor<Message = Traced<M>>,
        I: IntoActor<Actor = A>,
    {
        if let ClassChoice::OfType = self.builder.plan.class {
            self.builder.plan.class = ClassChoice::Named(std::any::type_name::<A>().to_owned());
        }
        let actor = self.builder.spawn_with(move |ctx: &mut Context<Traced<M>>| {
            recipe(ctx).into_actor().map(|actor| InSpans { actor, message: PhantomData })
        })?;
        Ok(actor.contramap(Traced::new))
    }
}

/// Handles each message of an actor in a span of its own.
struct InSpans<A, M> {
    actor: A,
    message: PhantomData<fn(M)>,
}

impl<M, A> Actor for InSpans<A, M>
where
    M: Send + 'static,
    A: Actor<Message = Traced<M>>,
{
    type Message = Traced<M>;

    fn receive(&mut self, mut message: Traced<M>, ctx: &mut Context<Traced<M>>) -> HandlerResult {
        let span = tracing::info_span!(
            target: "pointsman",
            parent: None,
            "message",
            actor = %ctx.path(),
            message_type = std::any::type_name::<M>(),
        );
        if let Some(sender) = message.sender.take() {
            span.follows_from(&*sender);
        }
        let _inside = span.enter();
        self.actor.receive(message, ctx)
    }

    forward_hooks! { actor: A }
}
