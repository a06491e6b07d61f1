//! Termination ends a group.

use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SendError;
use crate::core::multi_send::{SendMode, SendOp, UnsentMessage};
use crate::core::system::SystemCore;
use crate::failure::guarded;
use crate::group::key::GroupKey;
use crate::group::state::{GroupPhase, GroupState, Termination};
use crate::util::panic::drop_guarded;
use crate::util::stderr_log::report;

impl<M: Send + 'static, K: GroupKey> GroupState<M, K> {
    /// Ends the group: see [`Group::terminate`](crate::group::Group::terminate).
    pub(crate) fn terminate(&self, reason: &str) {
        match &self.termination {
            // Of several first calls at once a single call advances the phase.
            Termination::Manual(make) if self.advance(GroupPhase::Terminating) < GroupPhase::Terminating => {
                self.end_pending_restarts();
                for actor in self.actors() {
                    self.send_termination(actor, make, reason);
                }
            }
            _ => {
                self.advance(GroupPhase::Closed);
                self.end_pending_restarts();
                self.actors().iter().for_each(AnyActorRef::close_and_end);
            }
        }
        self.stop_if_over();
    }

    /// Tells an actor to end by the user's message. If that fails, the actor's mailbox closes, and the actor ends when
    /// it has handled the messages that it has.
    fn send_termination(&self, actor: AnyActorRef, make: &(dyn Fn(&str) -> M + Send + Sync), reason: &str) {
        let told = guarded(|| {
            if let Ok(actor) = actor.typed::<M>() {
                tell_unbounded(&actor, &self.system, make(reason));
            }
            Ok(())
        });
        if let Err(failure) = told {
            actor.close_and_end();
            // The logger and the text of the cause are user code.
            let logged = guarded(|| {
                let stderr = actor.core().system.stderr;
                report!(
                    stderr,
                    Warning,
                    log::Level::Error,
                    "{} could not be told to end: {failure}",
                    actor.path()
                );
                Ok(())
            });
            drop_guarded((logged, failure));
        }
    }
}

/// Sends a message to an actor, beyond the capacity of its mailbox if need be.
fn tell_unbounded<M: Send + 'static>(actor: &ActorRef<M>, system: &SystemCore, message: M) {
    let way = SendOp::new(system, SendMode::Unbounded);
    let left = way.delivery(None).offer(actor, message).err();
    if let Err(UnsentMessage::Message(message)) = way.finish(left) {
        actor.dead_letter(SendError::Closed(message));
    }
}
