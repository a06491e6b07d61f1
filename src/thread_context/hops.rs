//! A hop count bounds how far one message may go from router to router, and a visit count bounds how many routers its
//! copies may visit.
//!
//! Both bounds catch cycles of routers. The hops bound the stack. The visits bound the number of copies that a cycle of
//! multi-recipient routers makes of one message within one call.

use crate::sync::per_thread;
use std::cell::Cell;

/// The largest number of routers behind each other; more routers are a cycle.
const HOPS_MAX: u32 = 16;

/// The largest number of routers that one outermost send may visit behind the first router, by all its copies and by
/// the questions for loads. More visits are a cycle in which each message to several routees multiplies: four groups,
/// each with the other three as routees, would make 43 million copies within sixteen hops.
const VISITS_MAX: u32 = 65_536;

/// One visit in [`HOPS`]. The bits below hold the hops.
const VISIT: u32 = 1 << 8;

const _: () = assert!(HOPS_MAX < VISIT && VISITS_MAX < u32::MAX / VISIT);

per_thread! {
    /// The number of routers that the message being sent on this thread has gone through; and, in units of [`VISIT`],
    /// the number of routers that the outermost send has visited behind its first router. 0 when no router sends.
    static HOPS: Cell<u32> = Cell::new(0);
}

/// One hop, taken back when dropped.
pub(crate) struct HopGuard(());

impl HopGuard {
    /// Takes a hop; returns `None` if there have been too many.
    #[inline]
    pub(crate) fn take() -> Option<Self> {
        let taken = HOPS.try_with(|hops| match hops.get() {
            0 => {
                hops.set(1);
                true
            }
            before => Self::take_next(hops, before),
        });
        // In a thread whose thread-locals are gone, only the stack would end a cycle.
        // A `HopGuard` is made only where it was taken, since its drop takes it back.
        taken.unwrap_or(true).then(|| Self(()))
    }

    /// Returns whether the message being sent on this thread has gone through no router yet.
    #[inline]
    pub(crate) fn is_outermost() -> bool {
        HOPS.try_with(|hops| hops.get() == 0).unwrap_or(true)
    }

    /// Takes the hop of a router behind another router. Visits are counted here only, so that most messages do not pay
    /// for the count.
    #[cold]
    fn take_next(hops: &Cell<u32>, before: u32) -> bool {
        let is_free = before % VISIT < HOPS_MAX && before / VISIT < VISITS_MAX;
        if is_free {
            hops.set(before + VISIT + 1);
        }
        is_free
    }

    #[cold]
    fn return_hop(hops: &Cell<u32>, now: u32) {
        // The visits of a send end with its outermost hop.
        let left = now.saturating_sub(1);
        hops.set(if left % VISIT == 0 { 0 } else { left });
    }
}

impl Drop for HopGuard {
    #[inline]
    fn drop(&mut self) {
        let _ = HOPS.try_with(|hops| match hops.get() {
            1 => hops.set(0),
            now => Self::return_hop(hops, now),
        });
    }
}

/// Returns how many routers the message being sent on this thread has gone through.
pub(crate) fn hops() -> u32 {
    HOPS.try_with(Cell::get).unwrap_or(0) % VISIT
}

/// Sends a message that has already gone through `count` routers and was kept for a while. The message's visits count
/// for the outer send that runs on this thread, if there is one.
pub(crate) fn with_hops<R>(count: u32, send: impl FnOnce() -> R) -> R {
    struct Back(u32);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = HOPS.try_with(|hops| {
                let visits = hops.get() / VISIT * VISIT;
                hops.set(if self.0 == 0 { 0 } else { visits + self.0 });
            });
        }
    }
    let before = HOPS.try_with(|hops| {
        let before = hops.get();
        hops.set(before / VISIT * VISIT + count);
        before % VISIT
    });
    let _back = Back(before.unwrap_or(0));
    send()
}

/// Runs code that is no part of the send in progress on this thread: a turn on the thread of a sender. Each send of
/// that code is an outermost send.
#[inline(always)]
pub(crate) fn apart<R>(run: impl FnOnce() -> R) -> R {
    struct Back(u32);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = HOPS.try_with(|hops| hops.set(self.0));
        }
    }
    let _back = Back(HOPS.try_with(|hops| hops.replace(0)).unwrap_or(0));
    run()
}
