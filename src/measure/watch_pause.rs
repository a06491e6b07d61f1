//! Watchdogs pause while all threads of their systems sleep, so an idle system needs no timer.
//!
//! 1. A watchdog that finds no thread of its system awake leaves a resumption in the list and raises the flag. After a
//!    fence it looks once more whether a thread is awake. If so, it resumes all that wait.
//! 2. A thread that wakes up marks itself awake. After a fence it looks at the flag. If that is up, it resumes all that
//!    wait.
//!
//! So either the watchdog sees the mark, or the thread sees the flag. The list is one for all systems of the process: a
//! watchdog that a thread of another system resumes finds its own system asleep, and pauses again.

use crate::sync::atomic::{AtomicBool, Ordering, fence};
use crate::sync::{Mutex, lock};

/// Resumes a watchdog.
pub(crate) type Resumption = Box<dyn FnOnce() + Send>;

/// The watchdogs that pause.
#[derive(Default)]
pub(crate) struct WatchPauses {
    /// Whether the list may have resumptions.
    is_any: AtomicBool,
    list: Mutex<Vec<Resumption>>,
}

impl WatchPauses {
    #[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
    pub(crate) const fn new() -> Self {
        Self { is_any: AtomicBool::new(false), list: Mutex::new(Vec::new()) }
    }

    /// Leaves `resumption` for the next thread that wakes up. Runs it at once if a thread is awake.
    pub(crate) fn pause(&self, resumption: Resumption, is_any_awake: impl FnOnce() -> bool) {
        lock(&self.list).push(resumption);
        // Ordering: Relaxed; the fence orders it.
        self.is_any.store(true, Ordering::Relaxed);
        // Ordering: SeqCst; pairs with the fence in `wakes`: either this thread sees the mark of the
        // other, or the other sees the flag.
        fence(Ordering::SeqCst);
        if is_any_awake() {
            self.resume_all();
        }
    }

    /// The calling thread, whose mark this is, wakes up.
    pub(crate) fn wakes(&self, mark: &AtomicBool) {
        // Ordering: Relaxed; the fence orders it.
        mark.store(true, Ordering::Relaxed);
        // Ordering: SeqCst; pairs with the fence in `pause`.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed; the fence orders it, and the lock of the list the rest.
        if self.is_any.load(Ordering::Relaxed) {
            self.resume_all();
        }
    }

    #[cold]
    fn resume_all(&self) {
        // Before the list is emptied: a watchdog that pauses afterwards raises the flag afterwards.
        // Ordering: Relaxed; the lock orders it before the stores of those that come to the list later.
        self.is_any.store(false, Ordering::Relaxed);
        let list = std::mem::take(&mut *lock(&self.list));
        list.into_iter().for_each(|resume| resume());
    }
}
