//! Pinning threads to cores.

use core_affinity::CoreId;

/// Core numbers from here on don't fit into the set that the operating system takes; asking would panic.
const CORE_COUNT_MAX: usize = if cfg!(windows) { 64 } else { 1024 };

/// The cores on which the calling thread may run.
///
/// Ask before anything is pinned: a pinned thread, and all threads that it starts, see one core only.
/// The list is for error messages. It does not decide: cores kept out of the usual mask (`isolcpus`) are
/// not in it and can be had all the same.
pub fn available_cores() -> Vec<usize> {
    core_affinity::get_core_ids().unwrap_or_default().into_iter().map(|core| core.id).collect()
}

/// Pins the calling thread; `false` if the core cannot be had.
pub fn pin_current(core: usize) -> bool {
    core < CORE_COUNT_MAX && core_affinity::set_for_current(CoreId { id: core })
}
