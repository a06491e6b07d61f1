//! Which mailbox an actor is given.

use std::time::Duration;

/// Which mailbox an actor has. The default is [unbounded](Self::unbounded).
///
/// ```
/// use pointsman::prelude::*;
///
/// let small = Mailbox::bounded(4096).on_full(Full::Reject);
/// ```
#[derive(Debug, Clone)]
pub struct Mailbox {
    pub(crate) kind: MailboxKind,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum MailboxKind {
    Unbounded,
    Bounded { capacity: usize, on_full: Full },
}

/// What happens to a message that finds its bounded mailbox full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Full {
    /// It is refused: `try_tell` hands it back, `tell` makes it a dead letter.
    Reject,
    /// It takes the place of the oldest message, which is dropped and counted.
    DropOldest,
    /// It is dropped and counted.
    DropNewest,
    /// The sender waits for room, for this long at most, and is then refused. On a work-stealing worker,
    /// which must not wait, it is refused at once. The owner pays a fence for each message.
    ///
    /// Sent through a router, the wait happens while the sender reads the router's table: until it ends, no
    /// replaced table of any router in the process is freed, and at 1,024 of them changes are refused
    /// ([`ManageError::OldTables`](crate::routing::ManageError)). Give routees a short limit.
    Wait(Duration),
}

impl Mailbox {
    /// Takes any number of messages.
    pub fn unbounded() -> Self {
        Self { kind: MailboxKind::Unbounded }
    }

    /// Holds at most `capacity` messages, the one being handled not counted; refuses more unless told
    /// otherwise. A capacity of 0 is an error when the actor is created.
    pub fn bounded(capacity: usize) -> Self {
        Self { kind: MailboxKind::Bounded { capacity, on_full: Full::Reject } }
    }

    /// Says what happens when a bounded mailbox is full; an unbounded one never is.
    pub fn on_full(mut self, policy: Full) -> Self {
        if let MailboxKind::Bounded { on_full, .. } = &mut self.kind {
            *on_full = policy;
        }
        self
    }
}

impl Default for Mailbox {
    fn default() -> Self {
        Self::unbounded()
    }
}
