//! How a group ends.

use super::GroupKey;
use super::board::{Board, Openness};
use crate::actor::{Control, Leaving, SystemCore, drop_guarded, guarded};
use crate::actor_ref::delivery::{LeftOver, Way};
use crate::actor_ref::{ActorRef, AnyRef, Mode};
use crate::error::SendError;
use crate::sync::lock;

/// How the actors of a group are told to end.
pub enum Termination<M> {
    /// Their mailboxes close behind what is in them.
    Closing,
    /// They get this message, and end when they think fit.
    Manual(Box<dyn Fn(&str) -> M + Send + Sync>),
}

impl<M: Send + 'static, K: GroupKey> Board<M, K> {
    /// Ends the group: see [`Group::terminate`](super::Group::terminate).
    pub fn terminate(&self, reason: &str) {
        match &self.termination {
            // Of several first calls at once only one advances it.
            Termination::Manual(make) if self.advance(Openness::Terminating) < Openness::Terminating => {
                self.give_up_waiting();
                for actor in self.actors() {
                    self.tell_to_end(actor, make, reason);
                }
            }
            _ => {
                self.advance(Openness::Closed);
                self.give_up_waiting();
                self.actors().iter().for_each(leave);
            }
        }
        self.stop_if_over();
    }

    fn actors(&self) -> Vec<AnyRef> {
        lock(&self.living).keys().cloned().collect()
    }

    /// Tells an actor to end by the user's message; one that cannot be told so leaves once its mailbox is empty.
    fn tell_to_end(&self, actor: AnyRef, make: &(dyn Fn(&str) -> M + Send + Sync), reason: &str) {
        let told = guarded(|| {
            if let Ok(actor) = actor.typed::<M>() {
                tell_beyond(&actor, &self.system, make(reason));
            }
            Ok(())
        });
        if let Err(failure) = told {
            leave(&actor);
            // The logger and the text of the cause are user code.
            let logged = guarded(|| {
                log::error!(target: "pointsman", "{} could not be told to end: {failure}", actor.path());
                Ok(())
            });
            drop_guarded((logged, failure));
        }
    }
}

/// Closes the actor's mailbox behind what is in it.
fn leave(actor: &AnyRef) {
    let leaving = Leaving::WhenEmpty;
    // What it does not handle goes nowhere but to dead letters. One that has ended needs no telling.
    let _ = actor.send_system(Control::Leave { leave: Box::new(()), leaving });
}

/// Tells an actor although its mailbox may be full.
fn tell_beyond<M: Send + 'static>(actor: &ActorRef<M>, system: &SystemCore, message: M) {
    let way = Way::new(system, Mode::Unbounded);
    let left = way.delivery(None).offer(actor, message).err();
    if let Err(LeftOver::Message(message)) = way.finish(left) {
        actor.dead_letter(SendError::Closed(message));
    }
}
