//! A group handle manages a group.

use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SpawnError;
use crate::group::key::GroupKey;
use crate::group::state::{GroupPhase, GroupState};
use crate::group::to_keys::ToKey;
use crate::util::reclaim;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::Arc as StdArc;

/// A group handle manages a group: actors of a single kind that are told apart by a key. The handle dereferences to the
/// [`ActorRef`] that routes, of which other code [holds](Self::to_ref) clones.
///
/// ```
/// use pointsman::prelude::*;
/// # struct Session(u64);
/// # impl Actor for Session {
/// #     type Message = &'static str;
/// #     fn receive(&mut self, _: &'static str, _: &mut Context<&'static str>) -> HandlerResult { assert!(self.0 > 0); Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let sessions = system
///     .group("sessions")
///     .by_key(|text: &&str| text.len() as u64, |_, key| Session(*key))
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
    pub(crate) group_state: StdArc<GroupState<M, K>>,
}

impl<M: Send + 'static, K: GroupKey> Group<M, K> {
    /// Returns the reference that routes messages to the group's actors, for other code to keep.
    pub fn to_ref(&self) -> ActorRef<M> {
        self.reference.clone()
    }

    /// Returns a reference to the actor that has this key when a message is sent. If the key is free then, the actor is
    /// created, as by [`KeyRoute::Unicast`](crate::group::KeyRoute::Unicast). The reference therefore survives the
    /// actor's end.
    ///
    /// The reference's [`path`](ActorRef::path) is the group's, and an actor that watches the reference watches the
    /// group.
    pub fn key(&self, key: K) -> ActorRef<M> {
        ActorRef::to_own_recipient(ToKey::new(self.group_state.clone(), key))
    }

    /// Returns the head: the parent of the group's actors.
    pub fn head(&self) -> &AnyActorRef {
        &self.group_state.head
    }

    /// Returns how many keys are taken, by actors and by actors that wait to be re-created.
    pub fn len(&self) -> usize {
        self.group_state.table.len()
    }

    /// Returns whether no key is taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys that are taken, in no order.
    pub fn keys(&self) -> Vec<K> {
        let section = reclaim::section();
        let mut keys = Vec::new();
        self.group_state.table.for_each(&section, |slot| keys.push(slot.key_entry.key.clone()));
        keys
    }

    /// Creates the actor of this key without a message, if the key is free. An actor that waits for its restart has its
    /// key. elfo does the same when a group is mounted.
    ///
    /// # Errors
    ///
    /// [`SpawnError::ParentStopped`] if the group creates no more actors, since [`stop_spawning`](Self::stop_spawning)
    /// was called or the group is ending. Any other error says why this actor cannot be created, and is logged, too.
    pub fn mount(&self, key: K) -> Result<(), SpawnError> {
        self.group_state.mount(key)
    }

    /// Changes how many messages the mailbox of each actor takes, for present and for future actors; 0 counts as 1.
    /// Unbounded mailboxes, and mailboxes that displace their oldest message, stay as they are.
    ///
    /// An actor changes its own mailbox by [`Context::set_mailbox_capacity`](crate::Context::set_mailbox_capacity),
    /// until this method is called again.
    pub fn set_mailbox_capacity(&self, message_count: usize) {
        self.group_state.set_capacity(NonZeroUsize::new(message_count).unwrap_or(NonZeroUsize::MIN));
    }

    /// Creates no more actors from now on. A message for a free key, or for a key whose actor is
    /// [passivated](crate::Context::passivate), is refused as closed. Living actors continue, and are not restarted when
    /// they end. Actors that wait for a restart are given up.
    pub fn stop_spawning(&self) {
        self.group_state.advance(GroupPhase::NoSpawn);
        self.group_state.end_pending_restarts();
    }

    /// Ends the group: no actor is created or restarted any more, and each actor is told to end. Messages in the
    /// mailboxes of running actors are handled. Messages queued for an actor that waits for its restart become dead
    /// letters, because the actor is not restarted any more.
    ///
    /// By default each mailbox closes, each actor handles the messages that it has and ends, and the group refuses
    /// messages from now on. In a group that [terminates by a message](crate::group::GroupPlan::terminate_by) each
    /// actor gets that message and decides when it ends; meanwhile the group routes. If the message for an actor panics
    /// while it is made, that actor's mailbox closes as by default. A second call closes the mailboxes in any case.
    ///
    /// The head ends when the last actor has ended. An actor [watches](crate::Context::watch) the group to learn of
    /// that end; other code waits by [`when_ended`](ActorRef::when_ended).
    ///
    /// A closed mailbox also refuses answers that come as messages. A group whose actors ask other actors should
    /// therefore end by a message.
    pub fn terminate(&self, reason: &str) {
        self.group_state.terminate(reason);
    }

    /// Stops the group, each actor after its current message. The messages in the actors' mailboxes become dead
    /// letters.
    pub fn stop(&self) {
        self.group_state.advance(GroupPhase::Closed);
        self.group_state.head.stop();
    }
}

/// Returns the head, whose end is the group's end.
impl<M: Send + 'static, K: GroupKey> From<&Group<M, K>> for Option<AnyActorRef> {
    fn from(group: &Group<M, K>) -> Self {
        Some(group.group_state.head.clone())
    }
}

impl<M: Send + 'static, K: GroupKey> Clone for Group<M, K> {
    fn clone(&self) -> Self {
        Self { reference: self.reference.clone(), group_state: self.group_state.clone() }
    }
}

/// The handle dereferences to the group's reference.
impl<M: Send + 'static, K: GroupKey> Deref for Group<M, K> {
    type Target = ActorRef<M>;

    fn deref(&self) -> &ActorRef<M> {
        &self.reference
    }
}

impl<M: Send + 'static, K: GroupKey> fmt::Debug for Group<M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("path", &self.group_state.head.path()).finish_non_exhaustive()
    }
}
