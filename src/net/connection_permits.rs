//! Connection permits: they count the connections of a listener, or all outgoing connections of a system: those whose
//! actors run, and those that linger. Below, "listener" stands for either.
//!
//! A connection has a [`ConnectionPermit`] from the moment when it is accepted until its socket is closed. Its actor's
//! recipe holds the permit, and so does the connection itself, which hands it on where its socket lingers. The last
//! holder gives the permit back, and tells the listener that there is room.

use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc as StdArc;

/// The permits of a listener.
#[derive(Default)]
pub(crate) struct ConnectionPermits {
    /// The name of the listener in warnings.
    label: String,
    /// The number of connections whose sockets are not closed.
    held: AtomicUsize,
    /// The number of connections among them whose actors have ended.
    lingering: AtomicUsize,
    /// The number of sockets that were closed so that the lingering sockets hold no more than they may.
    cut: AtomicU64,
    /// Whether the listener has begun to drain.
    is_draining: AtomicBool,
}

impl ConnectionPermits {
    /// Makes permits of which none is taken, with the name of the listener in warnings.
    pub(crate) fn new(label: String) -> Self {
        Self { label, ..Self::default() }
    }

    /// Returns the name of the listener in warnings.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Returns the number of connections whose sockets are not closed.
    pub(crate) fn held(&self) -> usize {
        // Ordering: Relaxed; a listener alone counts its own up, and hears of each count down by a message that follows
        // it. For outgoing connections it is a statistic.
        self.held.load(Ordering::Relaxed)
    }

    /// Returns the number of connections whose sockets linger.
    pub(crate) fn lingering(&self) -> usize {
        // Ordering: Relaxed; a statistic.
        self.lingering.load(Ordering::Relaxed)
    }

    /// Notes that the listener drains. The caller [tells the connections](crate::net::driver::Driver::tell_drain) then.
    pub(crate) fn drain(&self) {
        // Ordering: Relaxed; the lock of the owners orders it: an owner that `Driver::tell_drain` has not found was
        // registered after that, and looks afterwards.
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Identifies the listener, as long as one of its permits is held or the value lives.
    pub(crate) fn listener(self: &StdArc<Self>) -> usize {
        StdArc::as_ptr(self).addr()
    }

    /// Returns how many sockets were closed because the lingering sockets held too much.
    pub(crate) fn cut(&self) -> u64 {
        // Ordering: Relaxed; a statistic.
        self.cut.load(Ordering::Relaxed)
    }
}

/// The permit of a connection.
pub(crate) struct ConnectionPermit {
    places: StdArc<ConnectionPermits>,
    /// The bound for the bytes that the lingering sockets of this listener hold together.
    linger_bytes: usize,
    /// Tells the listener that there is room.
    tell: Box<dyn Fn() + Send + Sync>,
}

impl ConnectionPermit {
    /// Takes a permit, and calls `tell` when it has been given back.
    pub(crate) fn take(
        places: &StdArc<ConnectionPermits>,
        linger_bytes: usize,
        tell: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        // Ordering: Relaxed; see `ConnectionPermits::held`.
        places.held.fetch_add(1, Ordering::Relaxed);
        Self { places: places.clone(), linger_bytes, tell }
    }

    /// Returns the bound for the bytes that the lingering sockets of this listener hold together.
    pub(crate) fn linger_bytes(&self) -> usize {
        self.linger_bytes
    }

    /// Identifies the listener: equal for permits of the same listener, as long as one of them is held.
    pub(crate) fn listener(&self) -> usize {
        self.places.listener()
    }

    /// Whether the listener drains.
    pub(crate) fn is_draining(&self) -> bool {
        // Ordering: Relaxed; see `ConnectionPermits::drain`.
        self.places.is_draining.load(Ordering::Relaxed)
    }

    /// Counts a socket that is closed because the lingering sockets hold too much, and returns the count.
    pub(crate) fn count_cut(&self) -> u64 {
        // Ordering: Relaxed; a statistic.
        self.places.cut.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the permits of its listener.
    pub(crate) fn places(&self) -> &StdArc<ConnectionPermits> {
        &self.places
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        // Ordering: Relaxed; see `ConnectionPermits::held`.
        self.places.held.fetch_sub(1, Ordering::Relaxed);
        (self.tell)();
    }
}

/// The permit of a connection whose actor has ended and whose socket lingers.
pub(crate) struct LingeringPermit(StdArc<ConnectionPermit>);

impl LingeringPermit {
    pub(crate) fn new(place: StdArc<ConnectionPermit>) -> Self {
        // Ordering: Relaxed; a statistic.
        place.places.lingering.fetch_add(1, Ordering::Relaxed);
        Self(place)
    }
}

impl std::ops::Deref for LingeringPermit {
    type Target = ConnectionPermit;
    fn deref(&self) -> &ConnectionPermit {
        &self.0
    }
}

impl Drop for LingeringPermit {
    fn drop(&mut self) {
        // Ordering: Relaxed; a statistic.
        self.0.places.lingering.fetch_sub(1, Ordering::Relaxed);
    }
}
