//! A parent of the engine's own that looks after its children itself: it is told what becomes of them in place of
//! judging them by a strategy and watching each. Its children's recipes are told how far their lives have come, and it
//! is the parent who tells those who watch them of their ends, when it has done with them.

use crate::core::any_actor_ref::AnyActorRef;
use crate::failure::Failure;

/// Called in the parent's turns. Runs no user code unguarded.
pub(crate) trait ChildHooks: Send + Sync + 'static {
    /// A child has failed. It is suspended until it is sent a verdict.
    fn failed(&self, child: AnyActorRef, failure: Failure);

    /// A child has ended, and its name is free.
    fn ended(&self, child: AnyActorRef);
}
