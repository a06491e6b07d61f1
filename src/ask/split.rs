//! Reply ports that are split: a clone of a request gets a port that is answered by itself.
//!
//! Most copies of a request get ports of their own by [`Answerable`](crate::ask::fork::Answerable). Where the type of a message is
//! not known to have it, as for a request that another node has sent, the ports are split while the message is cloned.

use crate::sync::per_thread;
use std::cell::Cell;

per_thread! {
    /// Whether ports that are cloned on this thread are split.
    static SPLITS: Cell<bool> = Cell::new(false);
}

/// Clones a message by `clone`, and splits the ports in it that [can be](crate::ask::reply::ReplyDestination::part).
pub(crate) fn splitting<R>(clone: impl FnOnce() -> R) -> R {
    /// Ends the splitting also when a clone unwinds.
    struct Over(bool);
    impl Drop for Over {
        fn drop(&mut self) {
            let _ = SPLITS.try_with(|splits| splits.set(self.0));
        }
    }
    let _over = Over(SPLITS.try_with(|splits| splits.replace(true)).unwrap_or(false));
    clone()
}

/// Whether a clone of a port is to be a part of it.
pub(crate) fn is_splitting() -> bool {
    SPLITS.try_with(Cell::get).unwrap_or(false)
}
