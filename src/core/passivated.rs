//! The mark of a [retired](crate::Context::passivate) actor: a sender that it refused may look for its successor.

use crate::core::actor_ref::{ActorRef, Target};
use crate::core::any_actor_ref::AnyActorRef;
use crate::sync::atomic::{AtomicBool, Ordering};

fn is_set(is_closed: bool, retired: &AtomicBool) -> bool {
    // Ordering: Relaxed; the Acquire of the look at the close, which comes first, shows the stores before the close.
    is_closed && retired.load(Ordering::Relaxed)
}

impl<M: Send + 'static> ActorRef<M> {
    /// Returns whether the actor has retired.
    pub(crate) fn is_retired(&self) -> bool {
        match self.target() {
            Target::Local(local) => is_set(local.mailbox.gate.is_closed(), &local.core.retired),
            Target::Foreign(_) => false,
        }
    }
}

impl AnyActorRef {
    /// Returns whether the actor has retired.
    pub(crate) fn is_retired(&self) -> bool {
        is_set(self.is_closed(), &self.core().retired)
    }
}
