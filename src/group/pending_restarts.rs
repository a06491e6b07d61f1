//! A pending restart records an actor of a group that waits for its restart.

use crate::core::any_ref::AnyRef;
use crate::failure::Failure;
use crate::group::entry::Seed;
use crate::sync::HashMap;
use crate::time::timers::TimerHandle;
use std::sync::Arc as StdArc;

/// This map holds the pending restarts by the addresses of their key entries.
pub struct Waiting<K> {
    pub(crate) all: HashMap<usize, One<K>>,
    /// The number of waits that have begun.
    pub(crate) begun: u64,
}

pub(crate) struct One<K> {
    /// The number of this wait among all waits: the timer of an earlier wait may be firing already when it is
    /// cancelled.
    pub(crate) number: u64,
    /// Keeps the key entry alive, so that no other key entry gets its address.
    pub(crate) seed: StdArc<Seed<K>>,
    pub(crate) how: How,
    pub(crate) timer: TimerHandle,
}

/// This type says how the actor is restarted.
pub enum How {
    /// The actor has ended, and is re-created.
    Anew,
    /// The actor has failed, and is restarted in its place.
    InPlace(AnyRef, Failure),
}

impl<K> Default for Waiting<K> {
    fn default() -> Self {
        Self { all: HashMap::default(), begun: 0 }
    }
}

impl<K> Waiting<K> {
    pub(crate) fn take(&mut self, seed: &StdArc<Seed<K>>) -> Option<One<K>> {
        self.all.remove(&(StdArc::as_ptr(seed) as usize))
    }

    /// Takes the pending restart of this number, if it is still there.
    pub(crate) fn take_numbered(&mut self, seed: &StdArc<Seed<K>>, number: u64) -> Option<One<K>> {
        let is_it = self.all.get(&(StdArc::as_ptr(seed) as usize)).is_some_and(|one| one.number == number);
        if is_it { self.take(seed) } else { None }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
