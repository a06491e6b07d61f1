//! The head of a group is the parent of the group's actors. The head takes no messages; `supervision.rs` has its
//! decisions.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::failure::Failure;
use crate::group::key::GroupKey;
use crate::group::state::{GroupPhase, GroupState};
use std::sync::Arc as StdArc;

pub(crate) struct Head<M: Send + 'static, K: GroupKey>(pub StdArc<GroupState<M, K>>);

impl<M: Send + 'static, K: GroupKey> Actor for Head<M, K> {
    type Message = Never;

    fn receive(&mut self, message: Never, _: &mut Context<Never>) -> HandlerResult {
        match message {}
    }

    /// Keeps the group's actors: they outlive a restart of the head, which restarts them in their places.
    fn restarting(&mut self, _: &Failure, _: &mut Context<Never>) -> HandlerResult {
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Never>) {
        self.0.advance(GroupPhase::Closed);
        self.0.end_pending_restarts();
    }
}
