//! Pinning threads to cores, and no others than are to be pinned.
//!
//! On Linux a new thread begins with the cores of the one that starts it. Many of the engine's start when they are needed,
//! on whichever thread needs them, and on a pinned worker they would all begin with its core alone. So a pinned thread
//! remembers what it had before, and whatever the engine starts on it begins with [`unpinned`].

use crate::sync::{EXPLORED, per_thread, thread};
use core_affinity::CoreId;
use std::cell::Cell;
use std::ffi::c_ulong;

/// Core numbers from here on don't fit into the set that the operating system takes; asking would panic.
const CORE_COUNT_MAX: usize = if cfg!(windows) { 64 } else { 1024 };

/// Cores in a word of a set.
const WORD: usize = c_ulong::BITS as usize;

per_thread! {
    /// What the thread had before it was pinned; `None` in one that is not.
    static BEFORE: Cell<Option<Free>> = Cell::new(None);
}

/// What a thread has that is not pinned.
#[derive(Clone, Copy, Debug)]
struct Free {
    cores: Cores,
    /// As many threads as the operating system recommends there.
    thread_count: usize,
}

/// A set of cores, as Linux takes it.
#[derive(Clone, Copy, Debug)]
struct Cores([c_ulong; CORE_COUNT_MAX.div_ceil(WORD)]);

/// The cores on which the calling thread may run, or could before it was pinned.
///
/// The list is for error messages. It does not decide: cores kept out of the usual mask (`isolcpus`) are
/// not in it and can be had all the same.
pub fn available_cores() -> Vec<usize> {
    match before() {
        Some(free) => (0..CORE_COUNT_MAX).filter(|core| free.cores.has(*core)).collect(),
        None => present_cores(),
    }
}

/// As many threads as the operating system recommends, where nothing is pinned.
pub fn recommended_thread_count() -> usize {
    match before() {
        Some(free) => free.thread_count,
        None => thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Pins the calling thread; `false` if the core cannot be had.
pub fn pin_current(core: usize) -> bool {
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

/// The body of a thread that the calling one is about to start, which may be pinned: the new one is not.
pub fn unpinned<R>(body: impl FnOnce() -> R) -> impl FnOnce() -> R {
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

/// The cores on which the calling thread may run, pinned or not.
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

    /// Lets the calling thread run on these. Where that fails, as after the process was moved to other cores, it has those
    /// that it began with.
    #[cfg(all(target_os = "linux", not(any(miri, pointsman_loom, pointsman_shuttle))))]
    fn set_for_current(&self) {
        let this_thread = 0;
        // SAFETY: the kernel reads as many bytes as it is told that there are, and they are the array's.
        let _ = unsafe { libc::sched_setaffinity(this_thread, size_of_val(&self.0), self.0.as_ptr().cast()) };
    }

    /// Elsewhere threads don't begin with the cores of others.
    #[cfg(not(all(target_os = "linux", not(any(miri, pointsman_loom, pointsman_shuttle)))))]
    fn set_for_current(&self) {}
}
