//! Some wakes from outside of a pool's turns are measured.
//!
//! A worker that is in a measured turn measures each wake of that turn; see `worker.rs`. Any other thread counts its wakes
//! while anything is measured, and the meter of the actor's system takes some of them.

use crate::measure::meter::is_on;
use crate::scheduler::task::Task;
use crate::sync::per_thread;
use std::cell::Cell;
use std::ptr::NonNull;

per_thread! {
    /// The wakes of this thread so far.
    static WAKES: Cell<u64> = Cell::new(0);
}

/// Gives a task that is about to be scheduled to `sample`, with the number of the wake on this thread, while anything is
/// measured.
#[inline]
pub(crate) fn sample_outside(task: NonNull<Task>, sample: impl FnOnce(NonNull<Task>, u64)) {
    if is_on() {
        sample_counted(task, sample);
    }
}

#[cold]
#[inline(never)]
fn sample_counted(task: NonNull<Task>, sample: impl FnOnce(NonNull<Task>, u64)) {
    // A thread whose thread-locals are gone measures nothing.
    if let Ok(number) = WAKES.try_with(|wakes| wakes.replace(wakes.get() + 1)) {
        sample(task, number);
    }
}
