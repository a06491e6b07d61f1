//! How many connections a listener has: those whose actors run, and those that linger.
//!
//! A connection has a [`ConnectionPermit`] from the moment when it is accepted until its socket is closed. Its actor's recipe holds
//! the place, and so does the connection itself, which hands it on where its socket lingers. The last of them gives it
//! back, and tells the listener that there is room.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc as StdArc;

/// The places of one listener.
#[derive(Default)]
pub(crate) struct ConnectionPermits {
    /// How a warning names the listener.
    label: String,
    /// Connections whose sockets are not closed.
    held: AtomicUsize,
    /// Those among them whose actors have ended.
    lingering: AtomicUsize,
    /// Sockets that were closed so that those that linger hold no more than they may.
    cut: AtomicU64,
}

impl ConnectionPermits {
    /// Places of which none is taken, and by which name a warning calls the listener.
    pub(crate) fn new(label: String) -> Self {
        Self { label, ..Self::default() }
    }

    /// How a warning names the listener.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Connections whose sockets are not closed.
    pub(crate) fn held(&self) -> usize {
        // Ordering: Relaxed; the listener alone counts up, and hears of each count down by a message that follows it.
        self.held.load(Ordering::Relaxed)
    }

    /// Connections whose sockets linger.
    pub(crate) fn lingering(&self) -> usize {
        // Ordering: Relaxed; a statistic.
        self.lingering.load(Ordering::Relaxed)
    }

    /// How many sockets were closed because those that lingered held too much.
    pub(crate) fn cut(&self) -> u64 {
        // Ordering: Relaxed; a statistic.
        self.cut.load(Ordering::Relaxed)
    }
}

/// One connection's place.
pub(crate) struct ConnectionPermit {
    places: StdArc<ConnectionPermits>,
    /// How many bytes the sockets of this listener that linger may hold together.
    linger_bytes: usize,
    /// Tells the listener that there is room.
    tell: Box<dyn Fn() + Send + Sync>,
}

impl ConnectionPermit {
    /// Takes a place, and calls `tell` when it has been given back.
    pub(crate) fn take(
        places: &StdArc<ConnectionPermits>,
        linger_bytes: usize,
        tell: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        // Ordering: Relaxed; see `ConnectionPermits::held`.
        places.held.fetch_add(1, Ordering::Relaxed);
        Self { places: places.clone(), linger_bytes, tell }
    }

    /// How many bytes the sockets of this listener that linger may hold together.
    pub(crate) fn linger_bytes(&self) -> usize {
        self.linger_bytes
    }

    /// Names the listener: equal for places of the same one, as long as one of them is held.
    pub(crate) fn listener(&self) -> usize {
        StdArc::as_ptr(&self.places).addr()
    }

    /// Notes that the socket is closed because those that linger hold too much, and returns of how many that is so.
    pub(crate) fn count_cut(&self) -> u64 {
        // Ordering: Relaxed; a statistic.
        self.places.cut.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Those of its listener.
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

/// The place of a connection whose actor has ended and whose socket lingers.
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
