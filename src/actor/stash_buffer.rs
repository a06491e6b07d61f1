//! The messages that a single actor has stashed, as data.

use crate::core::control::Terminated;
use std::collections::VecDeque;

/// The stash of a single actor.
pub(crate) struct Stash<M> {
    /// Stashed, oldest first.
    pub(crate) held: VecDeque<Stashed<M>>,
    /// Unstashed and not yet handled, in the order in which they will be handled.
    pub(crate) front: VecDeque<Stashed<M>>,
    /// The largest length of `held`.
    pub(crate) capacity: u32,
}

impl<M> Stash<M> {
    /// The capacity that stands for no limit: more would not fit into the count in `Core`.
    pub(crate) const UNBOUNDED: u32 = u32::MAX;

    pub(crate) fn new(capacity: u32) -> Self {
        Self { held: VecDeque::new(), front: VecDeque::new(), capacity }
    }

    pub(crate) fn has_unstashed(&self) -> bool {
        !self.front.is_empty()
    }

    /// Returns whether both queues are empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.front.is_empty()
    }
}

impl<M> Default for Stash<M> {
    fn default() -> Self {
        Self::new(Self::UNBOUNDED)
    }
}

/// An entry of the stash.
pub(crate) enum Stashed<M> {
    Message(M),
    /// A notice for `Actor::terminated`. It is no message, so no term of the ledger counts it.
    Notice(Terminated),
}
