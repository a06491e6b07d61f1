//! The removal of routees from a router, and the end of a router without loss.
//!
//! **A routee leaves.** The head publishes the smaller table, then sends the routee a positioned request. At that
//! request the routee closes. It also handles the messages that senders with the old table have put behind that
//! position, and ends. A later push is refused, and its sender chooses again. No step waits for a thread: the old table
//! is freed when no thread can read it.
//!
//! **A routee elsewhere leaves.** See `leaving_elsewhere.rs`.
//!
//! **The last routee leaves.** It closes at once. A sender that it refuses finds the empty table, or the closed router.
//!
//! **The router ends.** It refuses first; then all of its own routees leave like the last one, and when none of its
//! children is left but the controller, it stops.
//!
//! **A routee ends before it is done**, since its deadline has come, it has failed, or it stops itself after its
//! farewell: its leftovers are routed again, each to a single other routee. They are not routed again where copies may
//! be among them: `core/copies.rs`.
//!
//! The farewell travels with the request, so no full mailbox can refuse it.

use crate::actor::context::Context;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Leaving;
use crate::core::recipient::Leave;
use crate::routing::head::head::Head;
use crate::routing::head::messages::Manage;
use crate::routing::head::state::{HeadState, Member};
use crate::routing::logic::RoutingLogic;
use crate::routing::routees::Routee;
use crate::routing::table_token::TableToken;
use crate::sync::{HashSet, lock};
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The routees that are to leave after they are in no table any more, each with its last message. Made before anything
/// is changed, since it runs user code.
pub(crate) struct RemovalBatch<M: Send + 'static> {
    own: Vec<(ActorRef<M>, Option<M>)>,
    others: Vec<Routee<M>>,
    /// The token of the table that has the routees.
    table: Option<StdArc<TableToken>>,
}

impl<M: Send + 'static, L: RoutingLogic<M>> HeadState<M, L> {
    pub(crate) fn prepare_to_leave(&self, leaving: &[Member<M>]) -> RemovalBatch<M> {
        let table = lock(&self.members).old_tables.current();
        let mut batch = RemovalBatch { own: Vec::new(), others: Vec::new(), table };
        for member in leaving {
            if member.own {
                let farewell = self.leave.farewell.as_ref().map(|make| make());
                batch.own.push((member.routee.actor().clone(), farewell));
            } else {
                batch.others.push(member.routee.clone());
            }
        }
        batch
    }

    /// Removes routees that are no longer in the published table.
    pub(crate) fn release_removed(&self, batch: RemovalBatch<M>, ctx: &mut Context<Manage<M>>) {
        let list = self.list();
        // A routee that is listed in another place, too, or by another reference, is still watched. A routee of the
        // pool's own is in the list once, so no look is needed where only such routees leave.
        let others = list.iter().filter(|member| !member.own || !batch.others.is_empty());
        let listed: HashSet<AnyActorRef> = others.filter_map(|member| member.routee.watched()).collect();
        let own = batch.own.iter().map(|(actor, _)| actor.untyped());
        let gone = own.chain(batch.others.iter().map(Routee::watched)).flatten();
        gone.filter(|actor| !listed.contains(actor)).for_each(|actor| ctx.unwatch(&actor));
        let mut elsewhere = Vec::new();
        for (actor, farewell) in batch.own {
            if !actor.is_here() {
                elsewhere.push((actor, farewell));
                continue;
            }
            let leaving = match farewell {
                Some(_) => Leaving::ByItself,
                None if list.is_empty() => Leaving::AtOnce,
                None => Leaving::AtPosition,
            };
            let leave = Leave { router: self.reference.clone(), farewell, within: None };
            actor.send_leave(leave, leaving);
            match self.leave.within {
                None => {}
                Some(Duration::ZERO) => actor.stop(),
                Some(within) => {
                    let due = ctx.now().saturating_add(within);
                    let timers = self.shared.info.system.timers();
                    timers.call_at(due, Box::new(move || actor.stop()));
                }
            }
        }
        if !elsewhere.is_empty() {
            self.release_elsewhere(elsewhere, batch.table);
        }
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> Head<M, L> {
    /// Refuses messages from now on, and stops once the router's own routees have handled what they have.
    pub(crate) fn drain(&mut self, ctx: &mut Context<Manage<M>>) {
        if self.head_state.is_ending() {
            return;
        }
        let batch = self.head_state.prepare_to_leave(&self.head_state.list());
        self.head_state.shared.close();
        let former = {
            let mut members = lock(&self.head_state.members);
            members.is_ending = true;
            std::mem::take(&mut members.list)
        };
        drop(former);
        self.head_state.release_removed(batch, ctx);
        // Watches these, and the routees that were leaving before.
        for child in ctx.children() {
            if Some(&child) != self.head_state.controller.as_ref() {
                let _ = ctx.watch(&child);
            }
        }
        self.refuse_waiting(ctx);
        self.stop_if_drained(ctx);
    }

    pub(crate) fn stop_if_drained(&self, ctx: &Context<Manage<M>>) {
        if self.head_state.is_ending()
            && ctx.children().iter().all(|child| Some(child) == self.head_state.controller.as_ref())
        {
            ctx.stop();
        }
    }
}

pub(crate) fn watch<M: Send + 'static>(ctx: &mut Context<Manage<M>>, routee: &Routee<M>) {
    if let Some(any) = routee.watched() {
        // An error says that the routee is watched already, which is the aim.
        let _ = ctx.watch(&any);
    }
}
