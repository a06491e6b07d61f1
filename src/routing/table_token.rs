//! The token of a router's table: it tells when no sender can read the table any more.

use crate::sync::{Mutex, lock};
use std::fmt;

/// Held by a table until it is freed, and by those who are about to ask for a call.
#[derive(Default)]
pub(crate) struct TableToken {
    calls: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl TableToken {
    /// Calls this when the table, and those before it, are freed. The caller holds the token meanwhile. The call runs on any
    /// thread, with no lock held.
    pub(crate) fn when_freed(&self, call: Box<dyn FnOnce() + Send>) {
        lock(&self.calls).push(call);
    }
}

impl Drop for TableToken {
    fn drop(&mut self) {
        let calls = std::mem::take(&mut *lock(&self.calls));
        calls.into_iter().for_each(|call| call());
    }
}

impl fmt::Debug for TableToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableToken").finish_non_exhaustive()
    }
}
