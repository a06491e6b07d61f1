//! A placement says where a single actor runs.

use crate::dispatch::blocking::BlockingPool;
#[cfg(feature = "testkit")]
use crate::dispatch::dispatcher::DispatcherKind;
use crate::dispatch::pinned::PinnedPlacement;
#[cfg(feature = "testkit")]
use crate::dispatch::stepping;
use crate::dispatch::{blocking, calling_thread};
use crate::scheduler::pool::Pool;
use crate::scheduler::task::{Task, TaskRef};
use crate::scheduler::wake_sample::sample_outside;
use crate::sync::Arc;
use std::ptr::NonNull;
#[cfg(feature = "testkit")]
use std::sync::Arc as StdArc;

/// The place where a single actor runs.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    WorkStealing(Arc<Pool>),
    Blocking(BlockingPool),
    Pinned(PinnedPlacement),
    CallingThread(calling_thread::Limits),
    #[cfg(feature = "testkit")]
    Stepping(StdArc<dyn stepping::Stepper>, DispatcherKind),
}

impl Placement {
    /// Hands the actor over to its threads. Some of the wakes are given to `sample` before, as in [`Pool::schedule`]; on a
    /// calling-thread dispatcher, where a task waits for no thread, none.
    #[inline]
    pub(crate) fn schedule(&self, task: TaskRef, sample: impl FnOnce(NonNull<Task>, u64)) {
        match self {
            Self::WorkStealing(pool) => pool.schedule(task, sample),
            Self::Blocking(pool) => {
                sample_outside(task.pointer(), sample);
                pool.schedule(task);
            }
            Self::Pinned(placement) => {
                sample_outside(task.pointer(), sample);
                placement.schedule(task);
            }
            Self::CallingThread(limits) => calling_thread::schedule(task, *limits),
            #[cfg(feature = "testkit")]
            Self::Stepping(stepper, kind) => stepper.schedule(task, *kind, None),
        }
    }

    /// Returns whether the actor of this task, which has this placement, cannot run while the calling thread waits, although
    /// the calling thread is allowed to wait. So it is on a thread of the actor's own, on the only thread of a blocking
    /// dispatcher, and in the actor's own turn.
    pub(crate) fn needs_this_thread(&self, task: *const Task) -> bool {
        match self {
            Self::Blocking(pool) => pool.is_current_thread_alone() || blocking::is_in_turn_of(task),
            Self::Pinned(placement) => placement.is_this_thread(),
            _ => false,
        }
    }

    /// Notes that the actor is gone and will not be scheduled again: a thread of its own ends.
    pub(crate) fn release(&self) {
        if let Self::Pinned(placement) = self {
            placement.release();
        }
    }
}
