//! The effect of a full bounded mailbox on a message.

use std::time::Duration;

/// The effect of a full bounded mailbox on a message. A mailbox that drops its oldest message is not among these: it is
/// a ring, which is never full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FullPolicy {
    Refuse,
    DropNewest,
    Wait(Duration),
}
