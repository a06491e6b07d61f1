//! Pools that end with the message that finds them empty: GoAkt's moment.
//!
//! Such a pool stays when its last routee goes, and may grow again. The sender whose message finds nobody to
//! take it tells the head, and only the head, who alone changes the routees, says whether the pool is still
//! empty: so no message ends a pool that was told to grow before.

use crate::actor::actor::Done;
use crate::actor::context::Context;
use crate::actor::turn::apply;
use crate::core::any_ref::AnyRef;
use crate::core::control::Control;
use crate::routing::head::head::Head;
use crate::routing::head::messages::Manage;
use crate::routing::logic::RoutingLogic;
use crate::routing::resizer::trigger::Trigger;

/// How senders tell the head.
pub struct FoundEmpty {
    /// Pulled by whoever finds nobody; only the first tells the head.
    trigger: Trigger,
    word: fn() -> Control,
}

impl FoundEmpty {
    /// For a router whose head is a `Head<M, L>`.
    pub fn new<M: Send + 'static, L: RoutingLogic<M>>() -> Self {
        Self { trigger: Trigger::new(), word: || apply(Head::<M, L>::found_empty) }
    }

    /// A message has found nobody. Positioned, so behind a change that the same sender has asked for.
    pub fn tell(&self, head: &AnyRef) {
        if self.trigger.pull() {
            // Where the head has ended, so has the pool.
            let _ = head.send_positioned((self.word)());
        }
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> Head<M, L> {
    fn found_empty(&mut self, ctx: &mut Context<Manage<M>>) -> Done {
        if let Some(found_empty) = self.board.shared.info.found_empty() {
            found_empty.trigger.loosen();
        }
        // One that has ended may still be listed: the notice of its end is on the way.
        if self.board.list().iter().all(|member| member.routee.actor().is_closed()) {
            self.change(ctx, |head, ctx| head.drain(ctx));
        }
        Ok(())
    }
}
