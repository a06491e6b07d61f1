//! The message that tells a connection's actor the readiness of its socket.

/// Tells an actor that its connection can go on; hand it to [`Connection::ready`](crate::net::Connection::ready).
///
/// At most one is under way for each connection, whatever happens on the socket meanwhile. A full mailbox takes it all
/// the same. But a mailbox that [drops its oldest message](crate::OverflowPolicy::DropOldest) may drop it, and no other
/// `Ready` comes then: don't give such a mailbox to a connection's actor.
#[derive(Debug)]
#[must_use = "hand it to `Connection::ready`, or no other `Ready` will come"]
pub struct Ready(pub(crate) ());
