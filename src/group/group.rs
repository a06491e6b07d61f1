//! The handle of a group.

use crate::core::actor_ref::ActorRef;
use crate::core::any_ref::{AnyRef, Watchable};
use crate::core::error::SpawnError;
use crate::group::key::GroupKey;
use crate::group::route::ToKey;
use crate::group::state::{Board, Openness};
use crate::util::reclaim;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::Arc as StdArc;

/// The handle of a group of actors told apart by a key. A group is its reference, too: it dereferences to the
/// [`ActorRef`] that everybody else [holds](Self::to_ref).
///
/// ```
/// use pointsman::prelude::*;
/// # struct Session(u64);
/// # impl Actor for Session {
/// #     type Message = &'static str;
/// #     fn receive(&mut self, _: &'static str, _: &mut Context<&'static str>) -> Done { assert!(self.0 > 0); Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let sessions = system
///     .group("sessions")
///     .by_key(|text: &&str| text.len() as u64, |_, start| Session(*start.key()))
///     .spawn()?;
/// sessions.tell("hello"); // to the actor of key 5
/// let seven: ActorRef<&str> = sessions.key(7);
/// seven.tell("hello"); // to the actor of key 7
/// assert_eq!(sessions.len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Group<M: Send + 'static, K: GroupKey> {
    pub(crate) reference: ActorRef<M>,
    pub(crate) board: StdArc<Board<M, K>>,
}

impl<M: Send + 'static, K: GroupKey> Group<M, K> {
    /// The reference that routes, to be kept by others.
    pub fn to_ref(&self) -> ActorRef<M> {
        self.reference.clone()
    }

    /// A reference to whoever has this key when a message is sent; if nobody has, the actor is created, as by
    /// [`Outcome::Unicast`](crate::topology::Outcome::Unicast). So it survives the actor's end.
    ///
    /// Its [`path`](ActorRef::path) is the group's, and who watches it watches the group.
    pub fn key(&self, key: K) -> ActorRef<M> {
        ActorRef::to_own_recipient(ToKey::new(self.board.clone(), key))
    }

    /// The parent of the group's actors.
    pub fn head(&self) -> &AnyRef {
        &self.board.head
    }

    /// How many keys are taken: by actors, and by those that wait to be created again.
    pub fn len(&self) -> usize {
        self.board.table.len()
    }

    /// Whether no key is taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys that are taken, in no order.
    pub fn keys(&self) -> Vec<K> {
        let section = reclaim::section();
        let mut keys = Vec::new();
        self.board.table.for_each(&section, |seat| keys.push(seat.seed.key.clone()));
        keys
    }

    /// Creates the actor of this key if nobody has it, without a message. An actor that waits to be restarted has its
    /// key. elfo does so when a group is mounted.
    ///
    /// # Errors
    ///
    /// [`SpawnError::ParentStopped`] if the group creates no more actors: it has been told to
    /// [stop that](Self::stop_spawning), or ends. Otherwise why this actor cannot be created, which is logged, too.
    pub fn mount(&self, key: K) -> Result<(), SpawnError> {
        self.board.mount(key)
    }

    /// Changes how many messages the mailbox of each actor takes, now and of those yet to be created; 0 counts as 1.
    /// Mailboxes that are unbounded or displace their oldest message stay as they are.
    ///
    /// As [`Context::set_mailbox_capacity`](crate::Context::set_mailbox_capacity), by which an actor does it for itself
    /// until this is called again.
    pub fn set_mailbox_capacity(&self, message_count: usize) {
        self.board.set_capacity(NonZeroUsize::new(message_count).unwrap_or(NonZeroUsize::MIN));
    }

    /// Creates no more actors from now on: a message for a key that nobody has, or whose actor is
    /// [retiring](crate::Context::retire), is closed. Those that there are go on, and are not restarted once they end.
    pub fn stop_spawning(&self) {
        self.board.advance(Openness::NoSpawn);
        self.board.give_up_waiting();
    }

    /// Ends the group: no actor is created or restarted any more, and each is told to end. Whatever is in the mailboxes of
    /// actors that run is handled. What has queued for one that waits to be restarted becomes dead letters, for it is
    /// not restarted any more.
    ///
    /// By default each handles what it has in its mailbox, which takes no more, and the group refuses messages from
    /// now on. In a group that [terminates by a message](crate::topology::GroupPlan::terminate_by) each actor gets that message
    /// and ends when it thinks fit; meanwhile the group routes. A second call closes the mailboxes in any case. When
    /// the last actor has ended, so does the head: [watch](crate::Context::watch) the group to know, or wait outside
    /// actors by [`when_ended`](ActorRef::when_ended). Should the message for an actor panic while it is made, that
    /// actor's mailbox closes as by default.
    ///
    /// Mailboxes that take no more refuse answers, too, that were to come as messages: a group whose actors ask others
    /// should end by a message.
    pub fn terminate(&self, reason: &str) {
        self.board.terminate(reason);
    }

    /// Stops the group, each actor after its current message. What they have in their mailboxes become dead letters.
    pub fn stop(&self) {
        self.board.advance(Openness::Closed);
        self.board.head.stop();
    }
}

impl<M: Send + 'static, K: GroupKey> Watchable for Group<M, K> {
    /// The head: its end is the group's.
    fn watched(&self) -> Option<AnyRef> {
        Some(self.board.head.clone())
    }
}

impl<M: Send + 'static, K: GroupKey> Clone for Group<M, K> {
    fn clone(&self) -> Self {
        Self { reference: self.reference.clone(), board: self.board.clone() }
    }
}

/// A group is its reference.
impl<M: Send + 'static, K: GroupKey> Deref for Group<M, K> {
    type Target = ActorRef<M>;

    fn deref(&self) -> &ActorRef<M> {
        &self.reference
    }
}

impl<M: Send + 'static, K: GroupKey> fmt::Debug for Group<M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("path", &self.board.head.path()).finish_non_exhaustive()
    }
}
