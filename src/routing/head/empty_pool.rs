//! Pools that end with the message that finds them empty, as in GoAkt.
//!
//! Such a pool stays when its last routee goes, and may grow again. A sender whose message finds no routee tells the
//! head. Only the head changes the routees, so only the head decides whether the pool is still empty. So no message
//! ends a pool that was told to grow before.

use crate::actor::actor::HandlerResult;
use crate::actor::context::Context;
use crate::actor::turn::apply;
use crate::routing::head::head::Head;
use crate::routing::head::messages::Manage;
use crate::routing::logic::RoutingLogic;
use crate::routing::router_info::EmptyPoolTrigger;

/// Makes the trigger by which senders tell the head of a router that a message has found no routee.
pub(crate) fn end_if_found_empty<M: Send + 'static, L: RoutingLogic<M>>() -> EmptyPoolTrigger {
    EmptyPoolTrigger::new(|| apply(Head::<M, L>::end_if_found_empty))
}

impl<M: Send + 'static, L: RoutingLogic<M>> Head<M, L> {
    fn end_if_found_empty(&mut self, ctx: &mut Context<Manage<M>>) -> HandlerResult {
        if let Some(found_empty) = self.head_state.shared.info.found_empty() {
            found_empty.rearm();
        }
        // A routee that has ended may still be listed: its termination notice is on the way.
        if self.head_state.list().iter().all(|member| member.routee.actor().is_closed()) {
            self.report_end(&"a message found it without routees", ctx);
            self.change(ctx, |head, ctx| head.drain(ctx));
        }
        Ok(())
    }
}
