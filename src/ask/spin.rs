//! The spin policy: the time for which a thread that waits for an answer stays awake before it parks.
//!
//! Parking costs two system calls and two switches of threads, and where the core falls idle meanwhile some 10 to 50 µs
//! until it is up again. An answer from an actor that runs takes less than 1 µs, so a thread waits awake at first:
//!
//! 1. [`LOOKS`] looks, with a pause of the processor in between: about 1 µs. An answer takes so long if its actor runs
//!    on another core.
//! 2. Then it yields and looks, for [`AWAKE_MAX`] at most. An answer takes so long if its worker has to be woken. Where
//!    worker and asker share a core, the first yield lets the worker work.
//!
//! The second step is left out after [`VAIN_MAX`] waits in a row that parked all the same. Each [`TRIED_EVERY`]th wait
//! still takes it, to notice when answers come sooner. So a thread whose answers take long burns 1 µs and a sixteenth
//! of 20 µs for each of them, and a thread that waits for nothing burns nothing.
//!
//! A thread does not yield on a machine where the yield loses the core; see [`YieldGuard`].

use crate::ask::yield_guard::YieldGuard;
use crate::sync::{hint, per_thread};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Looks before the first yield.
const LOOKS: u32 = 32;

/// The longest time for which a thread yields.
const AWAKE_MAX: Duration = Duration::from_micros(20);

/// Waits in vain after which a thread stops yielding.
const VAIN_MAX: u32 = 4;

/// After that, every so many waits a thread still yields.
const TRIED_EVERY: u32 = 16;

per_thread! {
    static SPIN_POLICY: Cell<SpinPolicy> = Cell::new(SpinPolicy::new());
}

per_thread! {
    static YIELD_GUARD: YieldGuard = YieldGuard::new();
}

/// The experience of a thread from its earlier waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpinPolicy {
    /// Waits in a row in which no answer came before the park.
    in_vain: u32,
}

impl SpinPolicy {
    const fn new() -> Self {
        Self { in_vain: 0 }
    }

    fn is_worth_yielding(self) -> bool {
        self.in_vain < VAIN_MAX || self.in_vain % TRIED_EVERY == 0
    }

    fn after_a_wait(self, was_answered: bool) -> Self {
        Self { in_vain: if was_answered { 0 } else { self.in_vain.wrapping_add(1) } }
    }
}

/// Waits awake for `is_answered`, for as long as that pays; the caller looks at the result itself.
#[inline]
pub(crate) fn wait_awake(is_answered: impl Fn() -> bool) {
    // In a model each look is a branch to explore, and none of them decides anything.
    if crate::sync::EXPLORED {
        return;
    }
    for _ in 0..LOOKS {
        if is_answered() {
            // In most cases the count is 0 already, and nothing is written.
            return SPIN_POLICY.with(|kept| {
                if kept.get().in_vain != 0 {
                    kept.set(kept.get().after_a_wait(true));
                }
            });
        }
        hint::spin_loop();
    }
    wait_on(&is_answered);
}

#[cold]
fn wait_on(is_answered: &dyn Fn() -> bool) {
    let spin_policy = SPIN_POLICY.with(Cell::get);
    let was_answered = spin_policy.is_worth_yielding()
        && YIELD_GUARD.with(|yield_guard| yield_until(yield_guard, is_answered));
    SPIN_POLICY.with(|kept| kept.set(spin_policy.after_a_wait(was_answered)));
}

/// Yields for [`AWAKE_MAX`], or until there is an answer; returns whether there is.
fn yield_until(yield_guard: &YieldGuard, is_answered: &dyn Fn() -> bool) -> bool {
    let began = Instant::now();
    let mut now = began;
    while now - began < AWAKE_MAX && yield_guard.may_yield(now) {
        yield_guard.yield_now();
        if is_answered() {
            return true;
        }
        now = Instant::now();
    }
    false
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_yields_in_vain_stops_trying_but_now_and_then() {
        let mut spin_policy = SpinPolicy::new();
        let mut tried = Vec::new();
        for wait in 0..40 {
            if spin_policy.is_worth_yielding() {
                tried.push(wait);
            }
            spin_policy = spin_policy.after_a_wait(false);
        }
        assert_eq!(tried, [0, 1, 2, 3, 16, 32]);
        assert_eq!(spin_policy.after_a_wait(true), SpinPolicy::new());
    }

    #[test]
    fn an_answer_that_is_there_forgets_the_waits_in_vain() {
        let kept = || SPIN_POLICY.with(Cell::get);
        for waits in 1..=VAIN_MAX {
            wait_awake(|| false);
            assert_eq!(kept().in_vain, waits);
        }
        assert!(!kept().is_worth_yielding());
        wait_awake(|| true);
        assert_eq!(kept().in_vain, 0);
    }

    #[test]
    fn an_answer_is_seen_between_two_yields() {
        let looks = Cell::new(0);
        wait_awake(|| {
            looks.set(looks.get() + 1);
            looks.get() > LOOKS
        });
        assert_eq!((looks.get(), SPIN_POLICY.with(Cell::get).in_vain), (LOOKS + 1, 0));
    }
}
