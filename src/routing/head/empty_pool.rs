//! Pools that end with the message that finds them empty: GoAkt's moment.
//!
//! Such a pool stays when its last routee goes, and may grow again. The sender whose message finds nobody to
//! take it tells the head, and only the head, who alone changes the routees, says whether the pool is still
//! empty: so no message ends a pool that was told to grow before.

use crate::actor::actor::HandlerResult;
use crate::actor::context::Context;
use crate::actor::turn::apply;
use crate::routing::head::head::Head;
use crate::routing::head::messages::Manage;
use crate::routing::logic::RoutingLogic;
use crate::routing::router_info::EmptyPoolTrigger;

/// How the senders of a router with this head tell it that a message has found no routee.
pub(crate) fn end_if_found_empty<M: Send + 'static, L: RoutingLogic<M>>() -> EmptyPoolTrigger {
    EmptyPoolTrigger::new(|| apply(Head::<M, L>::end_if_found_empty))
}

impl<M: Send + 'static, L: RoutingLogic<M>> Head<M, L> {
    fn end_if_found_empty(&mut self, ctx: &mut Context<Manage<M>>) -> HandlerResult {
        if let Some(found_empty) = self.head_state.shared.info.found_empty() {
            found_empty.rearm();
        }
        // One that has ended may still be listed: the notice of its end is on the way.
        if self.head_state.list().iter().all(|member| member.routee.actor().is_closed()) {
            self.change(ctx, |head, ctx| head.drain(ctx));
        }
        Ok(())
    }
}
