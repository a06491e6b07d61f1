//! Tells whether the calling thread is a worker, and of which pool.

use crate::scheduler::pool::Pool;
use crate::scheduler::worker::Core;
use crate::sync::per_thread;
use crate::util::reclaim;
use std::cell::Cell;
use std::ptr;

per_thread! {
    /// The worker that runs on this thread, or null. Set for the length of its main loop only.
    static WORKER: Cell<*const Core> = Cell::new(ptr::null());
}

/// Marks the calling thread as a worker until the value is dropped.
#[derive(Debug)]
pub(crate) struct Attached(());

impl Attached {
    /// # Safety
    ///
    /// `core` must live, in its place, until the value is dropped, which happens on the same thread.
    pub(crate) unsafe fn new(core: &Core) -> Self {
        WORKER.with(|worker| worker.set(core));
        Self(())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // A thread whose thread-locals are gone is never asked again.
        let _ = WORKER.try_with(|worker| worker.set(ptr::null()));
    }
}

/// Hands the calling thread's worker to `ask`, if the thread is one.
#[inline]
pub(crate) fn with_worker<R>(ask: impl FnOnce(Option<&Core>) -> R) -> R {
    let worker = WORKER.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: not null only between `Attached::new` and its drop, on this very thread, and `Attached::new`
    // demands that the worker live that long.
    ask(unsafe { worker.as_ref() })
}

/// Returns whether the calling thread is a work-stealing worker of any pool; such a thread must not wait.
#[inline]
pub(crate) fn on_worker() -> bool {
    #[cfg(feature = "testkit")]
    if STANDS_FOR_WORKER.try_with(Cell::get).unwrap_or(false) {
        return true;
    }
    with_worker(|worker| worker.is_some())
}

#[cfg(feature = "testkit")]
per_thread! {
    /// Whether a thread of a test runs a turn that a worker would run in production.
    static STANDS_FOR_WORKER: Cell<bool> = Cell::new(false);
}

/// Runs a turn, which never unwinds. With `worker` set, the thread stands for a worker meanwhile; with `worker` unset,
/// within such a turn, it stands for a thread that may wait.
#[cfg(feature = "testkit")]
pub(crate) fn standing_for<R>(worker: bool, turn: impl FnOnce() -> R) -> R {
    let before = STANDS_FOR_WORKER.with(|stands| stands.replace(worker));
    let result = turn();
    STANDS_FOR_WORKER.with(|stands| stands.set(before));
    result
}

/// Returns whether the calling thread is a worker of this pool.
#[inline]
pub(crate) fn is_worker_of(pool: &Pool) -> bool {
    with_worker(|worker| worker.is_some_and(|worker| worker.belongs_to(pool)))
}

/// Returns whether the calling thread is a worker that has no task but the running one.
pub(crate) fn has_no_other_task() -> bool {
    with_worker(|worker| worker.is_some_and(Core::has_no_other_task))
}

/// Runs `act`; each task that `act` schedules goes where every worker of the pool can take it, and does not wait for
/// the running turn.
pub(crate) fn outside_lifo<R>(act: impl FnOnce() -> R) -> R {
    with_worker(|worker| {
        let _stepped_aside = worker.map(Core::disable_lifo);
        act()
    })
}

/// Runs `act`, which may block, after handing the calling worker's other tasks to its peers.
///
/// A task in the LIFO slot cannot be stolen. Without this function such a task would wait for as long as `act` does,
/// and for ever if `act` waits for that very task. Tasks woken inside `act` also go where other workers can steal them.
/// The worker rests meanwhile, so that the worker doesn't keep the old routee tables of the whole process alive. On a
/// thread that is no worker, this function only runs `act`.
pub(crate) fn blocking<R>(act: impl FnOnce() -> R) -> R {
    with_worker(|worker| {
        let _stepped_aside = worker.map(Core::disable_lifo);
        let _rests = reclaim::go_offline_here();
        act()
    })
}
