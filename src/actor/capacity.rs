//! The capacity of a mailbox, changed at run time.

use crate::actor::context::Context;
use crate::core::actor_ref::{ActorRef, Target};
use std::num::NonZeroUsize;

impl<M: Send + 'static> ActorRef<M> {
    /// Changes the capacity of an actor's mailbox; false if it has none.
    pub(crate) fn set_capacity(&self, message_count: NonZeroUsize) -> bool {
        match self.target() {
            Target::Local(local) => local.mailbox.set_capacity(message_count),
            Target::Foreign(_) => false,
        }
    }
}

impl<M: Send + 'static> Context<M> {
    /// Changes how many messages this actor's mailbox takes, from now on; 0 counts as 1. Returns whether it is a
    /// mailbox that refuses at a capacity, or lets senders wait: what is unbounded or displaces its oldest message
    /// stays as it is.
    ///
    /// A larger capacity wakes senders that wait. A smaller one drops nothing: the mailbox takes no more until it has
    /// fewer.
    pub fn set_mailbox_capacity(&self, message_count: usize) -> bool {
        self.me().set_capacity(NonZeroUsize::new(message_count).unwrap_or(NonZeroUsize::MIN))
    }
}
