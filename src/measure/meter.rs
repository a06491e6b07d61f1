//! A meter says what one system measures, and by which clock.
//!
//! The senders and turns of all systems look at one switch, [`is_on`], which says whether any system measures. Only behind
//! it do they look at the meter of their own system.

use crate::sync::EXPLORED;
use crate::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
use crate::sync::{CachePadded, atomic::AtomicUsize};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The number of systems that measure. On a line of its own, which is hardly ever written.
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
static MEASURING: CachePadded<AtomicUsize> = CachePadded::new(AtomicUsize::new(0));

/// Returns whether any system of this process measures waits and turns.
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
#[inline(always)]
pub(crate) fn is_on() -> bool {
    // Ordering: Relaxed; a measurement that begins a moment late is none.
    MEASURING.load(Ordering::Relaxed) != 0
}

/// Models measure nothing.
#[cfg(any(pointsman_loom, pointsman_shuttle))]
pub(crate) fn is_on() -> bool {
    false
}

/// Returns the time since a clock's start.
pub(crate) type Now = dyn Fn() -> Duration + Send + Sync;

/// The settings of one system's measurements, which change while it runs.
pub(crate) struct Meter {
    now: Box<Now>,
    /// One block in so many is measured; 0: none.
    waits: AtomicU32,
    /// One turn in so many is measured; 0: none.
    turns: AtomicU32,
}

impl Meter {
    /// Makes a meter that measures nothing.
    pub(crate) fn new(now: Box<Now>) -> StdArc<Self> {
        StdArc::new(Self { now, waits: AtomicU32::new(0), turns: AtomicU32::new(0) })
    }

    /// Measures one block and one turn in so many from now on; 0: none.
    pub(crate) fn set(&self, waits: u32, turns: u32) {
        // Ordering: Relaxed in all; see `is_on`.
        let were = self.waits.swap(waits, Ordering::Relaxed) | self.turns.swap(turns, Ordering::Relaxed);
        count_measuring(were != 0, waits | turns != 0);
    }

    /// The time since the clock's start in nanoseconds, never 0.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from((self.now)().as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    /// One block in so many is measured; 0: none.
    pub(crate) fn waits(&self) -> u32 {
        // Ordering: Relaxed; see `is_on`.
        self.waits.load(Ordering::Relaxed)
    }

    /// One turn in so many is measured; 0: none.
    pub(crate) fn turns(&self) -> u32 {
        // Ordering: Relaxed; see `is_on`.
        self.turns.load(Ordering::Relaxed)
    }

    /// Returns the time, if the block of this number in its chain is one of those that are measured.
    pub(crate) fn stamp_of_block(&self, number: u64) -> Option<u64> {
        let waits = u64::from(self.waits());
        (waits != 0 && number % waits == 0).then(|| self.now())
    }

    /// Returns whether the wake of this number, counted from 0 by its thread, is one of those that are measured: a block has
    /// more messages than a wake, so these are fewer wakes than blocks.
    pub(crate) fn measures_wake(&self, number: u64) -> bool {
        let waits = u64::from(self.waits());
        waits != 0 && number % (waits * waits) == 0
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        // Models measure nothing.
        if !EXPLORED {
            self.set(0, 0);
        }
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter")
            .field("waits", &self.waits())
            .field("turns", &self.turns())
            .finish_non_exhaustive()
    }
}

#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
fn count_measuring(did: bool, does: bool) {
    // Ordering: Relaxed, both; see `is_on`.
    match (did, does) {
        (false, true) => _ = MEASURING.fetch_add(1, Ordering::Relaxed),
        (true, false) => _ = MEASURING.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
}

#[cfg(any(pointsman_loom, pointsman_shuttle))]
fn count_measuring(_: bool, _: bool) {}

/// The head of a mailbox, which knows the meter of its system.
///
/// The methods that record get a pointer to it that is valid for the whole actor. Only the owner of the mailbox calls them.
pub(crate) trait Measured {
    /// The meter of the system; `None` where nothing is measured.
    fn meter(&self) -> Option<&Meter> {
        None
    }

    /// Records how long a message has waited.
    ///
    /// # Safety
    ///
    /// `this` is that of a living actor, and valid for the whole actor; the caller is the owner of its mailbox.
    unsafe fn record_wait(this: NonNull<Self>, nanoseconds: u64) {
        let _ = (this, nanoseconds);
    }

    /// Records how long the handler of a message took.
    ///
    /// # Safety
    ///
    /// As for [`record_wait`](Self::record_wait).
    unsafe fn record_handling(this: NonNull<Self>, nanoseconds: u64) {
        let _ = (this, nanoseconds);
    }

    /// Records how many messages a turn has met.
    ///
    /// # Safety
    ///
    /// As for [`record_wait`](Self::record_wait).
    unsafe fn record_depth(this: NonNull<Self>) {
        let _ = this;
    }
}

/// The mailboxes of tests, which no actor has.
impl Measured for () {}
