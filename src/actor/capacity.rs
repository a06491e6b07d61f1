//! The capacity of a mailbox, changed at run time.

use crate::actor::context::Context;
use crate::core::actor_ref::{ActorRef, Target};
use std::num::NonZeroUsize;

impl<M: Send + 'static> ActorRef<M> {
    /// Changes the capacity of an actor's mailbox; returns false if the mailbox has none.
    pub(crate) fn set_capacity(&self, message_count: NonZeroUsize) -> bool {
        match self.target() {
            Target::Local(local) => local.mailbox.set_capacity(message_count),
            Target::Foreign(_) => false,
        }
    }

    /// The messages that wait in an actor here, and the capacity of its mailbox if it has one. `None` for routers and other
    /// recipients, and for a mailbox that makes room by itself.
    #[cfg(feature = "remote")]
    pub(crate) fn queued_and_capacity(&self) -> Option<(usize, Option<usize>)> {
        match self.target() {
            Target::Local(local) if !local.mailbox.displaces() => {
                let capacity = local.mailbox.capacity();
                let capacity = capacity.map(|capacity| usize::try_from(capacity).unwrap_or(usize::MAX));
                Some((self.any_local().queued(), capacity))
            }
            _ => None,
        }
    }
}

impl<M: Send + 'static> Context<M> {
    /// Changes the capacity of this actor's mailbox from now on; 0 counts as 1. Returns false, and changes nothing, if
    /// the mailbox is unbounded or displaces its oldest message. Returns true if the mailbox refuses messages at its
    /// capacity or lets senders wait.
    ///
    /// A larger capacity wakes senders that wait. A smaller capacity drops nothing: the mailbox takes no more messages
    /// until it holds fewer.
    pub fn set_mailbox_capacity(&self, message_count: usize) -> bool {
        self.me().set_capacity(NonZeroUsize::new(message_count).unwrap_or(NonZeroUsize::MIN))
    }
}
