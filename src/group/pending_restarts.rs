//! The actors of a group that wait for their restart, as data.

use crate::core::any_ref::AnyRef;
use crate::failure::Failure;
use crate::group::entry::Seed;
use crate::sync::HashMap;
use crate::time::timers::TimerHandle;
use std::sync::Arc as StdArc;

/// Those who wait, by the address of their seeds.
pub struct Waiting<K> {
    pub(crate) all: HashMap<usize, One<K>>,
    /// How many waits have begun.
    pub(crate) begun: u64,
}

pub(crate) struct One<K> {
    /// Which of all waits it is: the timer of an earlier one may be firing already when it is cancelled.
    pub(crate) number: u64,
    /// Keeps the address.
    pub(crate) seed: StdArc<Seed<K>>,
    pub(crate) how: How,
    pub(crate) timer: TimerHandle,
}

/// How it is restarted.
pub enum How {
    /// It is created anew: it has ended.
    Anew,
    /// It has failed, and gets its verdict.
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

    /// Takes the wait of this number, if it has not ended otherwise.
    pub(crate) fn take_numbered(&mut self, seed: &StdArc<Seed<K>>, number: u64) -> Option<One<K>> {
        let is_it = self.all.get(&(StdArc::as_ptr(seed) as usize)).is_some_and(|one| one.number == number);
        if is_it { self.take(seed) } else { None }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
