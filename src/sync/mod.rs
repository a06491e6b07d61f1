//! The only door to atomics, cells, locks, threads and foreign queues.
//!
//! All concurrent code in this crate names these items and never `std`'s (or `loom`'s), so that the whole engine
//! compiles a second time on loom under `--cfg pointsman_loom`, and a third time on shuttle under `--cfg
//! pointsman_shuttle`. `real`, `model` and `interleaved` hold the same items in the same order. `asymmetric_fence.rs`
//! and `thread_index.rs` are made of these items, for several modules; `prefetch.rs` speaks to the processor.
//!
//! Two rules come from how loom works and hold in both builds:
//! * a store-then-look handshake uses [`atomic::fence`] with `SeqCst` between the two (or
//!   read-modify-writes on both sides), never `SeqCst` accesses, which loom treats as acquire and release;
//! * an atomic that any thread updates by a read-modify-write is written by read-modify-writes everywhere, unless the
//!   writer is the only thread that can touch it at that moment.

#[cfg(pointsman_shuttle)]
mod interleaved;
#[cfg(pointsman_loom)]
mod model;
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
mod real;

#[cfg(pointsman_shuttle)]
pub use interleaved::*;
#[cfg(pointsman_loom)]
pub use model::*;
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
pub(crate) use real::*;

pub(crate) mod asymmetric_fence;
#[cfg(pointsman_loom)]
pub mod explore;
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
pub(crate) mod prefetch;
pub(crate) mod thread_index;

/// Whether loom or shuttle schedules the threads: repeated looks decide nothing there, small sizes meet their borders
/// sooner, and a panic is the end of the model rather than a failure of an actor.
pub(crate) const EXPLORED: bool = cfg!(any(pointsman_loom, pointsman_shuttle));

/// Locks without minding poison: every critical section in this crate leaves its data whole before any
/// user code can unwind through it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Repeats an Acquire fence as a load of the atomic that it stands behind: for ThreadSanitizer, which knows no fences
/// and would report the accesses that they order. Does nothing in other builds.
macro_rules! fence_for_tsan {
    ($atomic:expr) => {
        #[cfg(pointsman_tsan)]
        // Ordering: Acquire; pairs as the fence does: see `src/actor/cell.rs`, `src/mailbox/system_queue.rs`.
        let _ = $atomic.load($crate::sync::atomic::Ordering::Acquire);
    };
}
pub(crate) use fence_for_tsan;

#[cfg(not(target_has_atomic = "64"))]
compile_error!(
    "pointsman keeps mailbox indices in 64-bit atomics: this target has none, and 32-bit indices would \
     wrap after 2^27 messages"
);
