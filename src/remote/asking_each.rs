//! Requests of which each actor behind the recipient is to answer.
//!
//! A request to all sends such an envelope to a group of another node. If the group there gives the message to several
//! actors, the port of each copy is a *part* of the port that came. Each part is answered by an envelope of its own, and when
//! all are answered the peer is told so. For other messages the first answer of a group is the only one.

use crate::sync::per_thread;
use std::cell::Cell;

per_thread! {
    /// Whether messages that this thread sends to other nodes ask each actor there.
    static ASKS_EACH: Cell<bool> = Cell::new(false);
}

/// Sends a message to another node by `send`: each actor that gets it there is to answer by itself.
pub(crate) fn asking_each<R>(send: impl FnOnce() -> R) -> R {
    /// Ends the asking also when the message's code unwinds.
    struct Over(bool);
    impl Drop for Over {
        fn drop(&mut self) {
            let _ = ASKS_EACH.try_with(|asks| asks.set(self.0));
        }
    }
    let _over = Over(ASKS_EACH.try_with(|asks| asks.replace(true)).unwrap_or(false));
    send()
}

/// Whether the message that is sent now asks each actor.
pub(crate) fn asks_each() -> bool {
    ASKS_EACH.try_with(Cell::get).unwrap_or(false)
}
