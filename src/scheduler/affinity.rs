//! Pins threads to cores, and keeps threads that pinned threads start from being pinned as well.
//!
//! On Linux a new thread starts with the set of cores of the thread that starts it. The engine starts many threads on
//! demand, on the thread that needs them. Started on a pinned worker, such a thread would have the worker's core alone.
//! So a pinned thread remembers the set that it had before, and each thread that the engine starts begins with
//! [`unpinned`].

use crate::sync::{EXPLORED, per_thread, thread};
use core_affinity::CoreId;
use std::cell::Cell;
use std::ffi::c_ulong;

/// The core numbers from this one on don't fit into the set that the operating system takes; asking for such a core
/// would panic.
const CORE_COUNT_MAX: usize = if cfg!(windows) { 64 } else { 1024 };

/// Cores in a word of a set.
const WORD: usize = c_ulong::BITS as usize;

per_thread! {
    /// The set of cores and the thread count from before the thread was pinned; `None` in a thread that is not pinned.
    static BEFORE: Cell<Option<Free>> = Cell::new(None);
}

/// The cores of a thread that is not pinned.
#[derive(Clone, Copy, Debug)]
struct Free {
    cores: Cores,
    /// The number of threads that the operating system recommends for these cores.
    thread_count: usize,
}

/// A set of cores, as Linux takes it.
#[derive(Clone, Copy, Debug)]
struct Cores([c_ulong; CORE_COUNT_MAX.div_ceil(WORD)]);

/// Returns the cores on which the calling thread may run, or could run before it was pinned.
///
/// The list is for error messages and decides nothing: cores kept out of the usual mask (`isolcpus`) are not in the
/// list, and a thread can be pinned to them all the same.
pub(crate) fn available_cores() -> Vec<usize> {
    match before() {
        Some(free) => (0..CORE_COUNT_MAX).filter(|core| free.cores.has(*core)).collect(),
        None => present_cores(),
    }
}

/// Returns as many threads as the operating system recommends to a thread that is not pinned.
pub(crate) fn recommended_thread_count() -> usize {
    match before() {
        Some(free) => free.thread_count,
        None => thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Pins the calling thread; returns `false` if the core cannot be had.
pub(crate) fn pin_current(core: usize) -> bool {
    let free = before().unwrap_or_else(|| Free {
        cores: Cores::of(present_cores()),
        thread_count: recommended_thread_count(),
    });
    let is_pinned = core < CORE_COUNT_MAX && core_affinity::set_for_current(CoreId { id: core });
    if is_pinned {
        let _ = BEFORE.try_with(|before| before.set(Some(free)));
    }
    is_pinned
}

/// Wraps the body of a thread that the calling thread is about to start: the new thread is not pinned, even if the
/// calling thread is.
pub(crate) fn unpinned<R>(body: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let before = before();
    move || {
        if let Some(free) = before {
            free.cores.set_for_current();
        }
        body()
    }
}

fn before() -> Option<Free> {
    // Models pin nothing, and need not look.
    if EXPLORED {
        return None;
    }
    BEFORE.try_with(Cell::get).ok().flatten()
}

/// Returns the cores on which the calling thread may run, pinned or not.
fn present_cores() -> Vec<usize> {
    core_affinity::get_core_ids().unwrap_or_default().into_iter().map(|core| core.id).collect()
}

impl Cores {
    fn of(cores: Vec<usize>) -> Self {
        let mut words = [0; CORE_COUNT_MAX.div_ceil(WORD)];
        for core in cores.into_iter().filter(|core| *core < CORE_COUNT_MAX) {
            words[core / WORD] |= 1 << (core % WORD);
        }
        Self(words)
    }

    fn has(&self, core: usize) -> bool {
        self.0[core / WORD] >> (core % WORD) & 1 == 1
    }

    /// Lets the calling thread run on these cores. If that fails, as after the process was moved to other cores, the
    /// thread keeps the cores that it started with.
    #[cfg(all(target_os = "linux", not(any(miri, pointsman_loom, pointsman_shuttle))))]
    fn set_for_current(&self) {
        let this_thread = 0;
        // SAFETY: the kernel reads as many bytes as the length says, and all of these bytes belong to the array.
        let _ = unsafe { libc::sched_setaffinity(this_thread, size_of_val(&self.0), self.0.as_ptr().cast()) };
    }

    /// Does nothing: on other systems a thread does not start with the cores of the thread that starts it.
    #[cfg(not(all(target_os = "linux", not(any(miri, pointsman_loom, pointsman_shuttle)))))]
    fn set_for_current(&self) {}
}
