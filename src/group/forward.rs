//! A forward to the successor takes a message that waits for room at a passivated actor of a group to the next actor of
//! the key.

use crate::core::accounting::InFlightGuard;
use crate::core::actor_ref::ActorRef;
use crate::core::multi_send::{SendMode, SendOp, UnsentMessage};
use crate::core::pending_send::{SuccessorAnswer, SuccessorLookup};
use crate::group::key::GroupKey;
use crate::group::key_entry::KeyEntry;
use crate::group::state::{GroupState, KeySlot};
use crate::util::reclaim;
use std::sync::Arc as StdArc;

/// This type offers a waiting message to the actor that has the key at that time.
pub(crate) struct ForwardToSuccessor<M: Send + 'static, K: GroupKey> {
    pub group_state: StdArc<GroupState<M, K>>,
    pub key_entry: StdArc<KeyEntry<K>>,
}

impl<M: Send + 'static, K: GroupKey> ForwardToSuccessor<M, K> {
    /// Returns the actor that has the key now.
    fn present(&self) -> Option<ActorRef<M>> {
        let section = reclaim::section();
        let KeySlot { actor, .. } =
            self.group_state.find(&self.key_entry.key, self.key_entry.hash, &section)?;
        actor.clone()
    }
}

impl<M: Send + 'static, K: GroupKey> SuccessorLookup<M> for ForwardToSuccessor<M, K> {
    fn offer(&self, message: M, is_copy: bool) -> SuccessorAnswer<M> {
        if self.group_state.is_closed() {
            return SuccessorAnswer::Closed(message);
        }
        // The message counts as sent. The caller that gets it back accounts for it, as for a message that still waits.
        let way = SendOp::of_counted(&self.group_state.system, SendMode::Try);
        if is_copy {
            way.offers_copies();
        }
        let key = &self.key_entry.key;
        let left = self
            .group_state
            .to_key(key, self.key_entry.hash, message, &way.delivery(None), || key.clone())
            .err();
        match way.finish(left) {
            Ok(_) => SuccessorAnswer::Accepted,
            Err(UnsentMessage::Message(message)) if way.report().full > 0 => {
                // Keys are compared under the in-flight guard.
                let counted = InFlightGuard::begin(&*self.group_state.system);
                let present = self.present();
                counted.end();
                match present {
                    Some(actor) => SuccessorAnswer::Full(actor, message),
                    // The actor has gone meanwhile.
                    None => SuccessorAnswer::Again(message),
                }
            }
            Err(UnsentMessage::Message(message)) => SuccessorAnswer::Closed(message),
            Err(UnsentMessage::Waited(..)) => unreachable!("nothing waits that is only tried"),
        }
    }
}
