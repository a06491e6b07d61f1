//! An asymmetric fence: a `SeqCst` fence between two sides, of which the rare side pays for both.
//!
//! Each section of [`crate::util::reclaim`] stores something and then loads something else, and no processor keeps
//! these two in order by itself. A fence does, and waits for all stores before it: for that of the last message, too,
//! whose line another core had. Nothing in a routed send took longer (5 of 33 ns from one thread to eight routees).
//! Since 4.14 Linux offers membarrier(2), which avoids that fence: at [`heavy`] every other thread of the process that
//! runs executes a full fence, wherever it is at that moment. A thread that does not run went through a fence when it
//! left its core. So [`light`] need only keep the compiler from changing the order.
//!
//! Proof: the fence that a thread executes for `heavy` lies either before the code behind its `light`, or behind the
//! code before its `light`. In the first case the code behind `light` sees all that came before `heavy`. In the second
//! case the code behind `heavy` sees all that came before `light`. Two fences, one of which comes first, guarantee the
//! same.
//!
//! On other systems, and where the kernel refuses, both are `fence(SeqCst)`; so they are in models and under Miri.

use super::atomic::{Ordering, fence};
use std::sync::atomic::compiler_fence;

/// Asks the kernel whether it offers the call. Until the first call of this function, [`light`] is a fence.
pub(crate) fn prepare() {
    membarrier::register();
}

/// The frequent side.
#[inline(always)]
pub(crate) fn light() {
    if membarrier::is_registered() {
        // Ordering: SeqCst, for the compiler alone; pairs with the fence that `fence_all` makes this thread execute.
        compiler_fence(Ordering::SeqCst);
    } else {
        // Ordering: SeqCst fence; pairs with the fence in `heavy`.
        fence(Ordering::SeqCst);
    }
}

/// The rare side, which pays: a system call of one or two microseconds, and an interrupt for each core that runs a
/// thread of this process.
///
/// Returns false if the kernel no longer offers the call, as after a filter of system calls that came later. Then
/// nothing is ordered.
#[must_use = "without the fence of the other threads nothing is ordered"]
pub(crate) fn heavy() -> bool {
    // Ordering: SeqCst fence; pairs with the fence in `light`, of a thread that did not know of the registration. It
    // orders the caller's own accesses, too.
    fence(Ordering::SeqCst);
    !membarrier::register() || membarrier::fence_all()
}

#[cfg(all(target_os = "linux", not(any(miri, pointsman_loom, pointsman_shuttle))))]
mod membarrier {
    use super::super::{CachePadded, OnceLock};

    /// Whether the kernel has agreed; empty until it was asked. On a line of its own, which no thread writes: each
    /// section reads it.
    static REGISTERED: CachePadded<OnceLock<bool>> = CachePadded::new(OnceLock::new());

    pub(super) fn register() -> bool {
        *REGISTERED.get_or_init(|| command(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
    }

    #[inline(always)]
    pub(super) fn is_registered() -> bool {
        REGISTERED.get() == Some(&true)
    }

    pub(super) fn fence_all() -> bool {
        command(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }

    fn command(command: libc::c_int) -> bool {
        let (no_flags, no_cpu): (libc::c_uint, libc::c_int) = (0, 0);
        // SAFETY: the call takes three numbers, and reads and writes no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, no_flags, no_cpu) == 0 }
    }
}

#[cfg(not(all(target_os = "linux", not(any(miri, pointsman_loom, pointsman_shuttle)))))]
mod membarrier {
    pub(crate) fn register() -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn is_registered() -> bool {
        false
    }

    pub(crate) fn fence_all() -> bool {
        false
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{heavy, light, prepare};
    use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use crate::sync::{Arc, CachePadded, hint, thread};

    /// Rounds in which each side stores and then looks for the other's store.
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 10_000 };

    #[derive(Default)]
    struct Round {
        begun: CachePadded<AtomicUsize>,
        done: CachePadded<AtomicUsize>,
        stored: [CachePadded<AtomicUsize>; 2],
        light_saw: AtomicBool,
    }

    /// With a compiler's fence in place of `heavy`'s system call this failed in 6 of 6 runs on two cores, after 451 to
    /// 3,763 rounds.
    #[test]
    fn one_of_two_sides_sees_the_other() {
        prepare();
        let shared = Arc::new(Round::default());
        let of_the_other = shared.clone();
        let other = thread::spawn(move || {
            let shared = of_the_other;
            for round in 1..=ROUNDS {
                let mut looks = 0;
                // Ordering: Acquire; pairs with the Release store of `begun` below: the round before is over.
                while shared.begun.load(Ordering::Acquire) != round {
                    hint::spin_loop();
                    looks += 1;
                    // The two may have one core between them.
                    if cfg!(miri) || looks > 10_000 {
                        thread::yield_now();
                    }
                }
                shared.stored[0].store(round, Ordering::Relaxed);
                light();
                let saw = shared.stored[1].load(Ordering::Relaxed) == round;
                shared.light_saw.store(saw, Ordering::Relaxed);
                // Ordering: Release; pairs with the Acquire load of `done` below, which makes the results visible.
                shared.done.store(round, Ordering::Release);
            }
        });
        for round in 1..=ROUNDS {
            // Ordering: Release; pairs with the Acquire load of `begun` above.
            shared.begun.store(round, Ordering::Release);
            // Now and then later, so that the two meet at each step.
            (0..round % 16).for_each(|_| hint::spin_loop());
            shared.stored[1].store(round, Ordering::Relaxed);
            assert!(heavy(), "the kernel keeps its word");
            let heavy_saw = shared.stored[0].load(Ordering::Relaxed) == round;
            // Ordering: Acquire; pairs with the Release store of `done` above.
            while shared.done.load(Ordering::Acquire) != round {
                thread::yield_now();
            }
            assert!(heavy_saw || shared.light_saw.load(Ordering::Relaxed), "round {round}");
        }
        other.join().unwrap();
    }

    /// Acts as a program that gives up rights while it runs; here a thread of it does.
    #[cfg(all(target_os = "linux", not(any(miri, pointsman_shuttle))))]
    #[test]
    fn when_a_filter_forbids_the_call_heavy_says_that_nothing_is_ordered() {
        prepare();
        // Without filters nothing can be forbidden.
        let Some(is_ordered) = thread::spawn(|| forbid_membarrier().then(heavy)).join().unwrap() else {
            return;
        };
        // A kernel that never had the call is not asked for it.
        assert_eq!(is_ordered, !super::membarrier::is_registered());
    }

    /// Has the kernel refuse membarrier(2) to the calling thread from now on; false if it has no such filters.
    #[cfg(all(target_os = "linux", not(any(miri, pointsman_shuttle))))]
    fn forbid_membarrier() -> bool {
        use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JUMP, BPF_K, BPF_LD, BPF_RET, BPF_STMT, BPF_W};
        let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        let number_at = std::mem::offset_of!(libc::seccomp_data, nr) as u32;
        // SAFETY: these make an instruction of the numbers that they are given.
        let mut program = unsafe {
            [
                BPF_STMT((BPF_LD | BPF_W | BPF_ABS) as u16, number_at),
                BPF_JUMP((BPF_JMP | BPF_JEQ | BPF_K) as u16, libc::SYS_membarrier as u32, 0, 1),
                BPF_STMT((BPF_RET | BPF_K) as u16, refuse),
                BPF_STMT((BPF_RET | BPF_K) as u16, libc::SECCOMP_RET_ALLOW),
            ]
        };
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        let on: libc::c_ulong = 1;
        let unused: libc::c_ulong = 0;
        // SAFETY: the program is alive, and as long as it says; the kernel copies it. Both hold for this thread alone.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, on, unused, unused, unused) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER as libc::c_ulong, &filter) == 0
        }
    }
}
