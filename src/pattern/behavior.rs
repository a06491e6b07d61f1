//! Become and unbecome: a stack of behaviours that an actor owns.
//!
//! The stack is part of the actor's state, so the engine knows nothing of it, an actor without a stack pays nothing,
//! and a restart resets the stack with the rest of the state.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::failure::Failure;
use crate::util::panic::Guarded;
use std::fmt;
use std::sync::Arc as StdArc;

/// The result of giving a message to a [`Behavior`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an unhandled message is still to be handled"]
pub enum Handled<M> {
    /// A handler took the message.
    Handled,
    /// No handler takes the message, which is handed back.
    Unhandled(M),
}

type Handler<A> = dyn Fn(
        &mut A,
        <A as Actor>::Message,
        &mut Context<<A as Actor>::Message>,
    ) -> Result<Handled<<A as Actor>::Message>, Failure>
    + Send
    + Sync;

/// A way to handle messages: one or more handlers. The first handler that takes a message handles it.
///
/// A clone is the same behaviour; it costs one count.
pub struct Behavior<A: Actor> {
    handlers: StdArc<[StdArc<Handler<A>>]>,
}

/// The behaviours of a single actor, the current behaviour on top. See [`Behavior`].
///
/// Akka's `become` is [`replace`](Self::replace) here (`become` is a word of the language), and its
/// `become(…, discardOld = false)` is [`push`](Self::push).
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::pattern::{Behavior, Behaviors, Handled};
///
/// enum LampMsg {
///     Press,
///     Hold,
///     IsLit(ReplyTo<bool>),
/// }
///
/// struct Lamp {
///     behaviors: Behaviors<Lamp>,
///     lit: bool,
/// }
///
/// impl Lamp {
///     fn new() -> Self {
///         Self { behaviors: Behaviors::new(Behavior::partial(Lamp::dark).or_else(Lamp::answer)), lit: false }
///     }
///     fn dark(&mut self, message: LampMsg, _: &mut Context<LampMsg>) -> Result<Handled<LampMsg>, Failure> {
///         let LampMsg::Press = message else { return Ok(Handled::Unhandled(message)) };
///         self.lit = true;
///         self.behaviors.push(Behavior::partial(Lamp::lit).or_else(Lamp::answer));
///         Ok(Handled::Handled)
///     }
///     fn lit(&mut self, message: LampMsg, _: &mut Context<LampMsg>) -> Result<Handled<LampMsg>, Failure> {
///         let LampMsg::Press = message else { return Ok(Handled::Unhandled(message)) };
///         self.lit = false;
///         self.behaviors.unbecome();
///         Ok(Handled::Handled)
///     }
///     fn answer(&mut self, message: LampMsg, _: &mut Context<LampMsg>) -> Result<Handled<LampMsg>, Failure> {
///         let LampMsg::IsLit(reply_to) = message else { return Ok(Handled::Unhandled(message)) };
///         drop(reply_to.send(self.lit));
///         Ok(Handled::Handled)
///     }
/// }
///
/// impl Actor for Lamp {
///     type Message = LampMsg;
///     fn receive(&mut self, message: LampMsg, ctx: &mut Context<LampMsg>) -> HandlerResult {
///         // The stack is not borrowed while the behaviour runs, which may so change it.
///         match self.behaviors.current().handle(self, message, ctx)? {
///             Handled::Handled => Ok(()),
///             Handled::Unhandled(_) => Err(Failure::msg("a lamp can't do that")),
///         }
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("house").build()?;
/// let lamp = system.spawn(Lamp::new)?;
/// lamp.tell(LampMsg::Press);
/// assert!(lamp.ask_with(LampMsg::IsLit).wait()?);
/// lamp.tell(LampMsg::Hold); // no handler takes it: the failure restarts the lamp, which is dark again
/// assert!(!lamp.ask_with(LampMsg::IsLit).wait()?);
/// # Ok(())
/// # }
/// ```
pub struct Behaviors<A: Actor> {
    initial: Behavior<A>,
    /// The behaviours above the initial one, the current behaviour last.
    above: Vec<Behavior<A>>,
}

impl<A: Actor> Behavior<A> {
    /// Makes a behaviour that takes every message.
    pub fn total(
        handler: impl Fn(&mut A, A::Message, &mut Context<A::Message>) -> HandlerResult + Send + Sync + 'static,
    ) -> Self {
        Self::partial(move |actor: &mut A, message, ctx: &mut Context<A::Message>| {
            handler(actor, message, ctx).map(|()| Handled::Handled)
        })
    }

    /// Makes a behaviour that takes some messages and gives the others back as [`Handled::Unhandled`].
    pub fn partial(
        handler: impl Fn(&mut A, A::Message, &mut Context<A::Message>) -> Result<Handled<A::Message>, Failure>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let handler = Guarded::new(handler);
        let handler =
            move |actor: &mut A, message, ctx: &mut Context<A::Message>| handler(actor, message, ctx);
        Self { handlers: StdArc::new([StdArc::new(handler) as StdArc<Handler<A>>]) }
    }

    /// Adds a handler for messages that no handler of this behaviour takes.
    pub fn or_else(
        self,
        handler: impl Fn(&mut A, A::Message, &mut Context<A::Message>) -> Result<Handled<A::Message>, Failure>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.or_behave(&Self::partial(handler))
    }

    /// Adds another behaviour for messages that this behaviour does not take.
    pub fn or_behave(self, other: &Self) -> Self {
        Self { handlers: self.handlers.iter().chain(other.handlers.iter()).cloned().collect() }
    }

    /// Gives the message to the handlers in their order, until one takes it.
    ///
    /// # Errors
    ///
    /// The error of the handler that took the message.
    pub fn handle(
        &self,
        actor: &mut A,
        message: A::Message,
        ctx: &mut Context<A::Message>,
    ) -> Result<Handled<A::Message>, Failure> {
        let mut message = message;
        for handler in self.handlers.iter() {
            match handler(actor, message, ctx)? {
                Handled::Handled => return Ok(Handled::Handled),
                Handled::Unhandled(back) => message = back,
            }
        }
        Ok(Handled::Unhandled(message))
    }
}

impl<A: Actor> Behaviors<A> {
    /// Makes a stack of this behaviour alone.
    pub fn new(initial: Behavior<A>) -> Self {
        Self { initial, above: Vec::new() }
    }

    /// Returns the behaviour on top, to [handle](Behavior::handle) a message with.
    pub fn current(&self) -> Behavior<A> {
        self.above.last().unwrap_or(&self.initial).clone()
    }

    /// Replaces the behaviour on top, from the next message on.
    #[doc(alias = "become")]
    pub fn replace(&mut self, behavior: Behavior<A>) {
        self.above.pop();
        self.above.push(behavior);
    }

    /// Puts a behaviour on top, for the next message on; [`unbecome`](Self::unbecome) leads back.
    pub fn push(&mut self, behavior: Behavior<A>) {
        self.above.push(behavior);
    }

    /// Takes the behaviour on top away. The initial behaviour stays.
    pub fn unbecome(&mut self) {
        self.above.pop();
    }
}

impl<A: Actor> Clone for Behavior<A> {
    fn clone(&self) -> Self {
        Self { handlers: self.handlers.clone() }
    }
}

impl<A: Actor> fmt::Debug for Behavior<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Behavior").field("handlers", &self.handlers.len()).finish()
    }
}

impl<A: Actor> fmt::Debug for Behaviors<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Behaviors").field("above_initial", &self.above.len()).finish_non_exhaustive()
    }
}
