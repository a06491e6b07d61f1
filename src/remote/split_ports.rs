//! The ports of a request that a peer asks of each actor of a group here, split among the copies.

use crate::ask::split::splitting;
use crate::core::actor_ref::ActorRef;
use crate::core::error::SendError;
use crate::core::multi_send::Copier;
use crate::core::recipient::DeliveryStatus;
use crate::remote::reply_ports::SplitNotes;
use std::cell::Cell;

/// This copier splits the ports of a message that came from another node.
struct SplitPorts {
    copies: Cell<usize>,
}

impl<M> Copier<M> for SplitPorts {
    fn with_own_ports(&self, clone: M) -> M {
        clone
    }

    fn copy(&self, message: &M) -> M
    where
        M: Clone,
    {
        self.copies.set(self.copies.get() + 1);
        splitting(|| message.clone())
    }
}

/// Passes on a message of a peer, which is counted already: each recipient is to answer by itself. A recipient that has
/// refused its copy, which another one has got then, ends without an answer.
///
/// # Errors
///
/// As [`ActorRef::forward_counted`].
pub(crate) fn forward_to_each<M: Send + 'static>(
    to: &ActorRef<M>,
    message: M,
) -> Result<DeliveryStatus, SendError<M>> {
    let copier = SplitPorts { copies: Cell::new(0) };
    let notes = SplitNotes::begin();
    let (recipients, done) = to.forward_copied(message, &copier);
    notes.refuse(recipients.saturating_sub(1 + copier.copies.get()));
    done
}
