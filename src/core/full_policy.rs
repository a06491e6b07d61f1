//! What happens to a message that finds a bounded mailbox full.

use std::time::Duration;

/// What happens to a message that finds its bounded mailbox full. Dropping the oldest is none of these: a mailbox that
/// does so is a ring, which is never full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FullPolicy {
    Refuse,
    DropNewest,
    Wait(Duration),
}
