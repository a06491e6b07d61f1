//! The outgoing connections of a system: their counts, and the permits that they share.

use crate::core::system::SystemRef;
use crate::net::connection_permits::ConnectionPermits;
use crate::net::driver::DriverSlot;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc as StdArc;

/// The state that the outgoing connections of a system share.
pub(crate) struct Outgoing {
    pub permits: StdArc<ConnectionPermits>,
    connecting: AtomicUsize,
    connected: AtomicU64,
    failed: AtomicU64,
}

/// The counts of outgoing connections, from [`SystemRef::outgoing_connections`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutgoingConnections {
    /// The number of attempts that are under way.
    pub connecting: usize,
    /// The number of attempts that led to a connection so far.
    pub connected: u64,
    /// The number of attempts that failed so far. An attempt whose actor stopped is not among them.
    pub failed: u64,
    /// The number of connections whose sockets are not closed.
    pub connections: usize,
    /// The number of connections among them whose actors have ended and whose last bytes go out.
    pub lingering: usize,
    /// The number of connections that were closed before their last bytes were sent, since those that lingered held too
    /// much.
    pub linger_cuts: u64,
}

impl Outgoing {
    pub(crate) fn new(system: &str) -> Self {
        let permits = ConnectionPermits::new(format!("system {system:?}: outgoing connections"));
        Self {
            permits: StdArc::new(permits),
            connecting: AtomicUsize::new(0),
            connected: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    pub(crate) fn begins(&self) {
        // Ordering: Relaxed; a statistic, here and below.
        self.connecting.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ends(&self) {
        self.connecting.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, is_connected: bool) {
        let count = if is_connected { &self.connected } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl SystemRef {
    /// Returns the counts of the connections that actors [asked for](crate::Context::connect).
    pub fn outgoing_connections(&self) -> OutgoingConnections {
        let outgoing = &self.core().extensions.get::<DriverSlot>().outgoing;
        OutgoingConnections {
            connecting: outgoing.connecting.load(Ordering::Relaxed),
            connected: outgoing.connected.load(Ordering::Relaxed),
            failed: outgoing.failed.load(Ordering::Relaxed),
            connections: outgoing.permits.held(),
            lingering: outgoing.permits.lingering(),
            linger_cuts: outgoing.permits.cut(),
        }
    }
}
