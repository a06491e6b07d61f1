//! A logged actor logs for its group while it handles messages.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::forward_hooks::forward_hooks;
use crate::logs::loggers::LogGroup;
use std::fmt;

/// An actor whose handlers and hooks log for a group. Made by [`LogGroup::actor`].
///
/// The actor behaves as the actor inside does, whose hooks and mailbox are its own. As any actor inside another, it
/// cannot use [`Context::hold`] and [`Context::attach`](crate::Context::attach).
pub struct Logged<A> {
    actor: A,
    group: LogGroup,
}

impl LogGroup {
    /// Wraps an actor: the records that it logs in its handlers and hooks belong to this group. A recipe returns it, of an
    /// actor, of the routees of a pool, or of a keyed group.
    pub fn actor<A: Actor>(&self, actor: A) -> Logged<A> {
        Logged { actor, group: self.clone() }
    }
}

impl<A: Actor> Actor for Logged<A> {
    type Message = A::Message;

    fn receive(&mut self, message: A::Message, ctx: &mut Context<A::Message>) -> HandlerResult {
        let _within = self.group.enter();
        self.actor.receive(message, ctx)
    }

    forward_hooks! { actor: A, within |logged| logged.group.enter() }
}

impl<A> fmt::Debug for Logged<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logged").field("group", &self.group.name()).finish_non_exhaustive()
    }
}
