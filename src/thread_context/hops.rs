//! How far one message may go from router to router, and how many routers its copies may visit.
//!
//! Both bounds catch circles. The hops bound the stack, and the visits what a circle of routers that send to several
//! makes of one message within one call.

use crate::sync::per_thread;
use std::cell::Cell;

/// So many routers behind each other are a circle.
const HOPS_MAX: u32 = 16;

/// So many routers one outermost send may visit behind the first one, by all its copies and by the questions for loads.
/// More are a circle in which each message to several multiplies it: four groups, each with the others as routees, would
/// make 43 million copies within sixteen hops.
const VISITS_MAX: u32 = 65_536;

/// In [`HOPS`], one visit. Below it stand the hops.
const VISIT: u32 = 1 << 8;

const _: () = assert!(HOPS_MAX < VISIT && VISITS_MAX < u32::MAX / VISIT);

per_thread! {
    /// Routers that the message being sent on this thread has gone through; and, in units of [`VISIT`], those that the
    /// outermost send has visited behind its first one. 0 when nothing is sent by a router.
    static HOPS: Cell<u32> = Cell::new(0);
}

/// One hop, taken back when dropped.
pub struct Hop(());

impl Hop {
    /// `None` if there have been too many.
    #[inline]
    pub fn take() -> Option<Self> {
        let taken = HOPS.try_with(|hops| match hops.get() {
            0 => {
                hops.set(1);
                true
            }
            before => Self::take_next(hops, before),
        });
        // In a thread whose thread-locals are gone a circle would end by its stack.
        // Made only where it was taken, since its drop takes it back.
        taken.unwrap_or(true).then(|| Self(()))
    }

    /// The hop of a router behind another. Visits are counted here only, so that most messages do not pay for it.
    #[cold]
    fn take_next(hops: &Cell<u32>, before: u32) -> bool {
        let is_free = before % VISIT < HOPS_MAX && before / VISIT < VISITS_MAX;
        if is_free {
            hops.set(before + VISIT + 1);
        }
        is_free
    }

    #[cold]
    fn give_back(hops: &Cell<u32>, now: u32) {
        // With the outermost hop its visits go, too.
        let left = now.saturating_sub(1);
        hops.set(if left % VISIT == 0 { 0 } else { left });
    }
}

impl Drop for Hop {
    #[inline]
    fn drop(&mut self) {
        let _ = HOPS.try_with(|hops| match hops.get() {
            1 => hops.set(0),
            now => Self::give_back(hops, now),
        });
    }
}

/// How many routers the message being sent on this thread has gone through.
pub fn hops() -> u32 {
    HOPS.try_with(Cell::get).unwrap_or(0) % VISIT
}

/// Sends what has gone through so many routers already, before it was kept for a while. What it visits counts for the
/// send that this thread is within, if there is one.
pub fn with_hops<R>(count: u32, send: impl FnOnce() -> R) -> R {
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

/// Runs what begins on this thread by itself, whatever this thread sends at the moment: a turn on the thread of a sender.
/// Each send of it is an outermost one.
pub fn apart<R>(run: impl FnOnce() -> R) -> R {
    struct Back(u32);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = HOPS.try_with(|hops| hops.set(self.0));
        }
    }
    let _back = Back(HOPS.try_with(|hops| hops.replace(0)).unwrap_or(0));
    run()
}
