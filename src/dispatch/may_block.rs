//! Tells whether the calling thread may wait for other threads.

use crate::dispatch::calling_thread;
use crate::sync::per_thread;
use std::cell::Cell;

per_thread! {
    /// Whether other threads wait for the code that this thread runs now, although that code is no turn of a worker.
    static KEEPS_OTHERS: Cell<bool> = Cell::new(false);
}

/// Runs code that other threads wait for, and that therefore must not wait itself: the firing of timers, the events of
/// sockets, and changes of a router.
pub(crate) fn without_waiting<R>(act: impl FnOnce() -> R) -> R {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = KEEPS_OTHERS.try_with(|keeps| keeps.set(self.0));
        }
    }
    let _back = Back(KEEPS_OTHERS.try_with(|keeps| keeps.replace(true)).unwrap_or(false));
    act()
}

/// Returns whether the calling thread runs code whose end other threads may need, so that it must not wait for them.
/// This holds on a work-stealing worker, in a turn on a calling-thread dispatcher, and [elsewhere](without_waiting).
pub(crate) fn must_not_wait() -> bool {
    crate::scheduler::current::on_worker()
        || calling_thread::is_in_turn()
        || KEEPS_OTHERS.try_with(Cell::get).unwrap_or(false)
}
