//! How a group ends.

use super::GroupKey;
use super::board::{Board, Openness};
use crate::actor::{Control, Leaving, SystemCore};
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
        let before = self.openness();
        match &self.termination {
            Termination::Manual(make) if before < Openness::Terminating => {
                self.advance(Openness::Terminating);
                self.give_up_waiting();
                let actors: Vec<AnyRef> = lock(&self.living).keys().cloned().collect();
                for actor in actors {
                    if let Ok(actor) = actor.typed::<M>() {
                        tell_beyond(&actor, &self.system, make(reason));
                    }
                }
            }
            _ => {
                self.advance(Openness::Closed);
                self.give_up_waiting();
                let actors: Vec<AnyRef> = lock(&self.living).keys().cloned().collect();
                for actor in actors {
                    let leaving = Leaving::WhenEmpty;
                    // What it does not handle goes nowhere but to dead letters. One that has ended needs no telling.
                    let _ = actor.send_system(Control::Leave { leave: Box::new(()), leaving });
                }
            }
        }
        self.stop_if_over();
    }
}

/// Tells an actor although its mailbox may be full.
fn tell_beyond<M: Send + 'static>(actor: &ActorRef<M>, system: &SystemCore, message: M) {
    let way = Way::new(system, Mode::Unbounded);
    let left = way.delivery(None).offer(actor, message).err();
    if let Err(LeftOver::Message(message)) = way.finish(left) {
        actor.dead_letter(SendError::Closed(message));
    }
}
