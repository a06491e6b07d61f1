//! The messages that one actor has stashed, as data.

use crate::core::control::Terminated;
use std::collections::VecDeque;

/// What one actor has put aside.
pub(crate) struct Stash<M> {
    /// Stashed, oldest first.
    pub(crate) held: VecDeque<Stashed<M>>,
    /// Unstashed and not yet handled, in the order in which they will be.
    pub(crate) front: VecDeque<Stashed<M>>,
    /// How many may be in `held`.
    pub(crate) capacity: u32,
}

impl<M> Stash<M> {
    /// The capacity that stands for none: more would not fit into the count in `Core`.
    pub(crate) const UNBOUNDED: u32 = u32::MAX;

    pub(crate) fn new(capacity: u32) -> Self {
        Self { held: VecDeque::new(), front: VecDeque::new(), capacity }
    }

    pub(crate) fn has_unstashed(&self) -> bool {
        !self.front.is_empty()
    }

    /// Whether nothing is put aside, nor unstashed and not yet handled.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.front.is_empty()
    }
}

impl<M> Default for Stash<M> {
    fn default() -> Self {
        Self::new(Self::UNBOUNDED)
    }
}

/// Something that was put aside.
pub(crate) enum Stashed<M> {
    Message(M),
    /// A notice for `Actor::terminated`; no message, so in none of the books' terms.
    Notice(Terminated),
}
