//! Whether the calling thread may wait for other threads.

use crate::dispatch::calling_thread;
use crate::sync::per_thread;
use std::cell::Cell;

per_thread! {
    /// Whether others wait for what this thread runs now, although it is no turn of a worker's.
    static KEEPS_OTHERS: Cell<bool> = Cell::new(false);
}

/// Runs what others wait for, and what therefore must not wait itself: what timers fire, what sockets tell, and changes of
/// a router.
pub fn without_waiting<R>(act: impl FnOnce() -> R) -> R {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = KEEPS_OTHERS.try_with(|keeps| keeps.set(self.0));
        }
    }
    let _back = Back(KEEPS_OTHERS.try_with(|keeps| keeps.replace(true)).unwrap_or(false));
    act()
}

/// Whether the calling thread runs what others may need the end of, so that it must not wait for them: on a
/// work-stealing worker, in a turn on a calling-thread dispatcher, and [elsewhere](without_waiting).
pub fn must_not_wait() -> bool {
    crate::scheduler::current::on_worker()
        || calling_thread::is_in_turn()
        || KEEPS_OTHERS.try_with(Cell::get).unwrap_or(false)
}
