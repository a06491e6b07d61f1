//! The readiness word, by which the driver and a connection's owner agree on who acts.
//!
//! The operating system reports edges: that a socket *became* readable, once. The driver turns each into
//! bits of this word and tells the owner, unless a message is on its way already. The owner takes all bits
//! when it handles that message, and then uses the socket.
//!
//! 1. The driver raises bits. If there were none before, it sends one message.
//! 2. The owner, when it handles a message, takes the bits (leaving none), *then* reads and writes until the socket
//!    would block or it has done enough. It remembers unfinished work itself, or raises it again by rule 1.
//!
//! **No edge is lost.** Raising and taking are read-modify-writes of one word, so they have an order. An edge raised
//! after a taking found the word empty (or is behind an edge that did), so a message follows it. An edge raised before
//! a taking is among the bits taken, and its event lies in the socket by then: the owner's reading, which comes after
//! the taking, finds it.
//!
//! **At most one message is under way.** The word is not empty from the moment when a message is decided on until it is
//! handled, and while it is not empty no thread decides on another message.

use crate::sync::atomic::{AtomicU8, Ordering};

/// The kinds of readiness of a socket; a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Readiness(u8);

impl Readiness {
    /// There may be something to read (or to accept).
    pub(crate) const READABLE: Self = Self(1);
    /// There may be room to write.
    pub(crate) const WRITABLE: Self = Self(2);
    /// The peer will send no more, or the connection is broken: reads come to an end soon. Or reads stop at an urgent
    /// byte, before the bytes behind it.
    pub(crate) const READ_ENDS: Self = Self(4);

    /// Both sets together.
    #[must_use]
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in this set.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The duty of the thread that has raised bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "tell the owner, or the edge is lost"]
pub(crate) enum Raised {
    /// Send the owner a message.
    Tell,
    /// Nothing: a message is on its way, and its handling will see these bits.
    AlreadyTold,
}

/// The bits that the owner has not taken yet.
#[derive(Debug)]
pub(crate) struct ReadinessWord(AtomicU8);

impl ReadinessWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Makes a word with bits whose message the caller sends later: until then no other message is sent.
    #[cfg(not(pointsman_loom))]
    pub(crate) fn held_back(bits: Readiness) -> Self {
        debug_assert!(!bits.is_empty());
        Self(AtomicU8::new(bits.0))
    }

    /// Adds `bits`, which are not empty.
    pub(crate) fn raise(&self, bits: Readiness) -> Raised {
        debug_assert!(!bits.is_empty());
        // Ordering: Release; pairs with the Acquire of `take`. The owner that takes these bits sees the work before the
        // raise, although another raise sent the message.
        let before = self.0.fetch_or(bits.0, Ordering::Release);
        if before == 0 { Raised::Tell } else { Raised::AlreadyTold }
    }

    /// Takes all bits; from here on the next raise sends a message.
    pub(crate) fn take(&self) -> Readiness {
        // Ordering: Acquire; pairs with the Release of `raise`: the reading that follows finds the events that the bits
        // report.
        Readiness(self.0.swap(0, Ordering::Acquire))
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::Readiness;

    #[test]
    fn a_set_has_what_was_put_into_it_and_nothing_else() {
        let both = Readiness::READABLE.and(Readiness::READ_ENDS);
        assert!([Readiness::READABLE, Readiness::READ_ENDS, both].iter().all(|part| both.has(*part)));
        assert!(!both.has(Readiness::WRITABLE) && !Readiness::READABLE.has(both));
    }
}
