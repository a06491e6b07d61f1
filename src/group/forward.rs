//! A forward to the successor takes a message that waits for room at a passivated actor of a group to the next actor of
//! the key.

use crate::core::actor_ref::ActorRef;
use crate::core::multi_send::{Counted, LeftOver, Mode, Way};
use crate::core::pending_send::{Next, Succession};
use crate::group::entry::Seed;
use crate::group::key::GroupKey;
use crate::group::state::{Board, Seat};
use crate::util::reclaim;
use std::sync::Arc as StdArc;

/// This type offers a waiting message to the actor that has the key at that time.
pub struct ToHeir<M: Send + 'static, K: GroupKey> {
    pub board: StdArc<Board<M, K>>,
    pub seed: StdArc<Seed<K>>,
}

impl<M: Send + 'static, K: GroupKey> ToHeir<M, K> {
    /// Returns the actor that has the key now.
    fn present(&self) -> Option<ActorRef<M>> {
        let section = reclaim::section();
        let Seat { actor, .. } = self.board.find(&self.seed.key, self.seed.hash, &section)?;
        actor.clone()
    }
}

impl<M: Send + 'static, K: GroupKey> Succession<M> for ToHeir<M, K> {
    fn offer(&self, message: M, is_copy: bool) -> Next<M> {
        if self.board.is_closed() {
            return Next::Closed(message);
        }
        // The message counts as sent. The caller that gets it back accounts for it, as for a message that still waits.
        let way = Way::of_counted(&self.board.system, Mode::Try);
        if is_copy {
            way.offers_copies();
        }
        let key = &self.seed.key;
        let left = self.board.to_key(key, self.seed.hash, message, &way.delivery(None), || key.clone()).err();
        match way.finish(left) {
            Ok(_) => Next::Accepted,
            Err(LeftOver::Message(message)) if way.report().full > 0 => {
                // Keys are compared under the in-flight guard.
                let counted = Counted::begin(&self.board.system);
                let present = self.present();
                counted.end();
                match present {
                    Some(actor) => Next::Full(actor, message),
                    // The actor has gone meanwhile.
                    None => Next::Again(message),
                }
            }
            Err(LeftOver::Message(message)) => Next::Closed(message),
            Err(LeftOver::Waited(..)) => unreachable!("nothing waits that is only tried"),
        }
    }
}
