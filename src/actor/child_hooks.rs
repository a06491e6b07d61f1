//! The hooks of a parent that belongs to the engine. Such a parent gets calls about its children, instead of judging
//! them by a strategy and watching each of them. The recipes of its children learn the stage of each life. The parent,
//! not the child, tells the watchers of a child about its end, after the parent has finished with the child.

use crate::core::any_actor_ref::AnyActorRef;
use crate::failure::Failure;

/// Hooks that are called in the parent's turns. They run no unguarded user code.
pub(crate) trait ChildHooks: Send + Sync + 'static {
    /// A child has failed. It is suspended until it is sent a verdict.
    fn failed(&self, child: AnyActorRef, failure: Failure);

    /// A child has ended, and its name is free.
    fn ended(&self, child: AnyActorRef);
}
