//! Termination ends a group.

use crate::core::actor_ref::ActorRef;
use crate::core::any_ref::AnyRef;
use crate::core::error::SendError;
use crate::core::multi_send::{LeftOver, Mode, Way};
use crate::core::system::SystemCore;
use crate::failure::guarded;
use crate::group::key::GroupKey;
use crate::group::state::{Board, Openness, Termination};
use crate::util::panic::drop_guarded;

impl<M: Send + 'static, K: GroupKey> Board<M, K> {
    /// Ends the group: see [`Group::terminate`](crate::topology::Group::terminate).
    pub fn terminate(&self, reason: &str) {
        match &self.termination {
            // Of several first calls at once a single call advances the openness.
            Termination::Manual(make) if self.advance(Openness::Terminating) < Openness::Terminating => {
                self.give_up_waiting();
                for actor in self.actors() {
                    self.tell_to_end(actor, make, reason);
                }
            }
            _ => {
                self.advance(Openness::Closed);
                self.give_up_waiting();
                self.actors().iter().for_each(AnyRef::close_and_end);
            }
        }
        self.stop_if_over();
    }

    /// Tells an actor to end by the user's message. If that fails, the actor's mailbox closes, and the actor ends when
    /// it has handled the messages that it has.
    fn tell_to_end(&self, actor: AnyRef, make: &(dyn Fn(&str) -> M + Send + Sync), reason: &str) {
        let told = guarded(|| {
            if let Ok(actor) = actor.typed::<M>() {
                tell_beyond(&actor, &self.system, make(reason));
            }
            Ok(())
        });
        if let Err(failure) = told {
            actor.close_and_end();
            // The logger and the text of the cause are user code.
            let logged = guarded(|| {
                log::error!(target: "pointsman", "{} could not be told to end: {failure}", actor.path());
                Ok(())
            });
            drop_guarded((logged, failure));
        }
    }
}

/// Sends a message to an actor, beyond the capacity of its mailbox if need be.
fn tell_beyond<M: Send + 'static>(actor: &ActorRef<M>, system: &SystemCore, message: M) {
    let way = Way::new(system, Mode::Unbounded);
    let left = way.delivery(None).offer(actor, message).err();
    if let Err(LeftOver::Message(message)) = way.finish(left) {
        actor.dead_letter(SendError::Closed(message));
    }
}
