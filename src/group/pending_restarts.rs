//! A pending restart records an actor of a group that waits for its restart.

use crate::core::any_actor_ref::AnyActorRef;
use crate::failure::Failure;
use crate::group::key_entry::KeyEntry;
use crate::sync::HashMap;
use crate::time::timers::TimerHandle;
use std::sync::Arc as StdArc;

/// This map holds the pending restarts by the addresses of their key entries.
pub(crate) struct PendingRestarts<K> {
    pub(crate) all: HashMap<usize, PendingRestart<K>>,
    /// The number of waits that have begun.
    pub(crate) begun: u64,
}

pub(crate) struct PendingRestart<K> {
    /// The number of this wait among all waits: the timer of an earlier wait may be firing already when it is
    /// cancelled.
    pub(crate) number: u64,
    /// Keeps the key entry alive, so that no other key entry gets its address.
    pub(crate) key_entry: StdArc<KeyEntry<K>>,
    pub(crate) how: RestartMode,
    pub(crate) timer: TimerHandle,
}

/// This type says how the actor is restarted.
pub(crate) enum RestartMode {
    /// The actor has ended, and is re-created.
    Anew,
    /// The actor has failed, and is restarted in its place.
    InPlace(AnyActorRef, Failure),
}

impl<K> Default for PendingRestarts<K> {
    fn default() -> Self {
        Self { all: HashMap::default(), begun: 0 }
    }
}

impl<K> PendingRestarts<K> {
    pub(crate) fn take(&mut self, key_entry: &StdArc<KeyEntry<K>>) -> Option<PendingRestart<K>> {
        self.all.remove(&(StdArc::as_ptr(key_entry) as usize))
    }

    /// Takes the pending restart of this number, if it is still there.
    pub(crate) fn take_numbered(
        &mut self,
        key_entry: &StdArc<KeyEntry<K>>,
        number: u64,
    ) -> Option<PendingRestart<K>> {
        let is_it =
            self.all.get(&(StdArc::as_ptr(key_entry) as usize)).is_some_and(|one| one.number == number);
        if is_it { self.take(key_entry) } else { None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
