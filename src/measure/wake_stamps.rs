//! The moments at which idle actors were woken, for some wakes.
//!
//! An actor's cell has no room for a time. So the time lies in a table for all actors, under the address of the actor.
//! Another wake that has the same place there replaces it; the first is then not measured. An actor has at most one wake
//! under way, and its thread gets it together with the ownership token.

#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
use crate::sync::atomic::{AtomicU64, Ordering};

/// The places of the table. A place that is never used costs addresses only.
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
const PLACES: usize = 1 << 14;

/// The bits of a place that hold the time, in nanoseconds; the bits above tell the wakes of the place apart.
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
const TIME_BITS: u32 = 48;

#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
static STAMPS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// The place of an actor's wake, and its tag there, which is not 0.
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
fn place_of(address: usize) -> (usize, u64) {
    let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 40) as usize % PLACES, (mixed & 0xffff) | 1)
}

/// Keeps the time of a wake.
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
pub(crate) fn keep(address: usize, nanoseconds: u64) {
    let (place, tag) = place_of(address);
    // Ordering: Relaxed; the token, which goes to the actor's thread behind this store, orders it.
    STAMPS[place].store(tag << TIME_BITS | (nanoseconds & ((1 << TIME_BITS) - 1)), Ordering::Relaxed);
}

/// Returns how long before `nanoseconds` the wake was, if its time was kept and not replaced since.
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
pub(crate) fn take(address: usize, nanoseconds: u64) -> Option<u64> {
    let (place, tag) = place_of(address);
    // Ordering: Relaxed; the caller has the token, which was handed over behind the store.
    let kept = STAMPS[place].load(Ordering::Relaxed);
    if kept >> TIME_BITS != tag {
        return None;
    }
    // A wake that has replaced it meanwhile is not measured, either.
    STAMPS[place].store(0, Ordering::Relaxed);
    // Modulo 2^48, as it was kept.
    Some(nanoseconds.wrapping_sub(kept) & ((1 << TIME_BITS) - 1))
}

/// Models measure nothing.
#[cfg(any(pointsman_loom, pointsman_shuttle))]
pub(crate) fn keep(_: usize, _: u64) {}

/// Models measure nothing.
#[cfg(any(pointsman_loom, pointsman_shuttle))]
pub(crate) fn take(_: usize, _: u64) -> Option<u64> {
    None
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_kept_time_is_taken_once_and_by_its_own_wake() {
        let (address, other) = (0x7f00_1234_5678, 0x7f00_1234_6678);
        keep(address, 1000);
        assert_eq!(take(other, 5000), None);
        assert_eq!(take(address, 5000), Some(4000));
        assert_eq!(take(address, 5000), None);
        keep(address, u64::MAX - 10);
        assert_eq!(take(address, 9), Some(20));
    }
}
