//! The reference of a pool with a resizer: it counts what is sent.

use crate::core::actor_ref::{ActorRef, RecipientLoad};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::error::SendError;
use crate::core::recipient::{DeliveryStatus, OwnRecipient};
use crate::core::system::SystemRef;
use crate::routing::logic::RoutingLogic;
use crate::routing::resizer::trigger::Resizing;
use crate::routing::routing_ref::{LeftoverRouting, Routing, SharedRouter};
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::panic::resume_unwind;
use std::sync::Arc as StdArc;

/// Makes the reference that users hold, and the reference by which a leaving routee hands back messages that are
/// counted already.
pub(crate) fn references<M: Send + 'static, L: RoutingLogic<M>>(
    shared: &StdArc<SharedRouter<M>>,
    logic: &StdArc<L>,
) -> (ActorRef<M>, ActorRef<M>) {
    let routing = || Routing { shared: shared.clone(), logic: logic.clone() };
    let reference = match &shared.info.resizing {
        Some(resizing) => {
            ActorRef::to_own_recipient(CountedRouting { routing: routing(), resizing: resizing.clone() })
        }
        None => ActorRef::to_own_recipient(routing()),
    };
    (reference, ActorRef::to_own_recipient(LeftoverRouting(routing())))
}

/// The recipient behind an `ActorRef<M>` to a pool with a resizer: it routes, and counts what is sent.
pub(crate) struct CountedRouting<M: Send + 'static, L> {
    routing: Routing<M, L>,
    resizing: StdArc<Resizing>,
}

impl<M: Send + 'static, L: RoutingLogic<M>> CountedRouting<M, L> {
    fn sent(&self) {
        self.resizing.sent(&self.routing.shared.info.head);
    }

    /// A message that no routee took counts too. It comes back, unless the resizer panics.
    #[cold]
    fn refused(&self, refused: SendError<M>) -> SendError<M> {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.sent())) {
            let info = &self.routing.shared.info;
            let reason = DeadLetterReason::of(&refused);
            info.system.ledger().for_this_thread().dead_lettered(1);
            info.system.dead_letters().publish_dead_letter(refused.into_inner(), reason, || info.head.path());
            resume_unwind(panic);
        }
        refused
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> OwnRecipient<M> for CountedRouting<M, L> {
    /// The message is routed by the present table, and counts afterwards.
    #[inline]
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        match self.routing.deliver(message) {
            Ok(accepted) => {
                self.sent();
                Ok(accepted)
            }
            Err(refused) => Err(self.refused(refused)),
        }
    }

    fn is_closed(&self) -> bool {
        self.routing.is_closed()
    }

    fn load(&self) -> RecipientLoad {
        self.routing.load()
    }

    fn untyped(&self) -> Option<AnyActorRef> {
        self.routing.untyped()
    }

    fn is_router(&self) -> bool {
        true
    }

    fn system(&self) -> Option<SystemRef> {
        self.routing.system()
    }

    fn place(&self) -> Option<AnyActorRef> {
        self.routing.place()
    }
}
