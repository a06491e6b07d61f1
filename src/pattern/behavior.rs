//! Become and unbecome: a stack of behaviours that an actor owns.
//!
//! It is part of the actor's state, so the engine knows nothing of it, an actor without one pays nothing, and
//! a restart resets it with everything else.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::failure::Failure;
use crate::util::panic::Guarded;
use std::fmt;
use std::sync::Arc as StdArc;

/// What a [`Behavior`] made of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an unhandled message is still to be handled"]
pub enum Handled<M> {
    /// It was handled.
    Handled,
    /// No handler takes it; here it is.
    Unhandled(M),
}

type Handler<A> = dyn Fn(
        &mut A,
        <A as Actor>::Message,
        &mut Context<<A as Actor>::Message>,
    ) -> Result<Handled<<A as Actor>::Message>, Failure>
    + Send
    + Sync;

/// A way to handle messages: one or more handlers, of which the first that takes a message handles it.
///
/// A clone is the same behaviour; it costs one count.
pub struct Behavior<A: Actor> {
    handlers: StdArc<[StdArc<Handler<A>>]>,
}

/// The behaviours of one actor, the current one on top. See [`Behavior`].
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
/// lamp.tell(LampMsg::Hold); // nobody handles it: the failure restarts the lamp, which is dark again
/// assert!(!lamp.ask_with(LampMsg::IsLit).wait()?);
/// # Ok(())
/// # }
/// ```
pub struct Behaviors<A: Actor> {
    initial: Behavior<A>,
    /// What is above the initial one, the current one last.
    above: Vec<Behavior<A>>,
}

impl<A: Actor> Behavior<A> {
    /// A behaviour that takes every message.
    pub fn total(
        handler: impl Fn(&mut A, A::Message, &mut Context<A::Message>) -> HandlerResult + Send + Sync + 'static,
    ) -> Self {
        Self::partial(move |actor: &mut A, message, ctx: &mut Context<A::Message>| {
            handler(actor, message, ctx).map(|()| Handled::Handled)
        })
    }

    /// A behaviour that takes some messages and gives the others back as [`Handled::Unhandled`].
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

    /// This behaviour, with a handler for what none of its own takes.
    pub fn or_else(
        self,
        handler: impl Fn(&mut A, A::Message, &mut Context<A::Message>) -> Result<Handled<A::Message>, Failure>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.or_behave(&Self::partial(handler))
    }

    /// This behaviour, with another one for what it does not take.
    pub fn or_behave(self, other: &Self) -> Self {
        Self { handlers: self.handlers.iter().chain(other.handlers.iter()).cloned().collect() }
    }

    /// Gives the message to one handler after the other, until one takes it.
    ///
    /// # Errors
    ///
    /// What the handler returns that took it.
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
    /// A stack of this behaviour alone.
    pub fn new(initial: Behavior<A>) -> Self {
        Self { initial, above: Vec::new() }
    }

    /// The behaviour on top, to [handle](Behavior::handle) a message with.
    pub fn current(&self) -> Behavior<A> {
        self.above.last().unwrap_or(&self.initial).clone()
    }

    /// Puts a behaviour in the place of the one on top, for the next message on.
    #[doc(alias = "become")]
    pub fn replace(&mut self, behavior: Behavior<A>) {
        self.above.pop();
        self.above.push(behavior);
    }

    /// Puts a behaviour on top, for the next message on; [`unbecome`](Self::unbecome) leads back.
    pub fn push(&mut self, behavior: Behavior<A>) {
        self.above.push(behavior);
    }

    /// Takes the behaviour on top away. Under the last one lies the initial one, which stays.
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
