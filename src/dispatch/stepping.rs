//! A stepper gives actors their turns on one thread, in an order that a test chooses.
//!
//! The testkit chooses the turns and keeps account of them. This file has only the engine's part: where a woken actor
//! goes, and how a thread runs the turns of actors for which it would otherwise wait.

#[cfg(feature = "testkit")]
use crate::dispatch::dispatcher::DispatcherKind;
#[cfg(feature = "testkit")]
use crate::scheduler::task::TaskRef;
#[cfg(feature = "testkit")]
use crate::sync::per_thread;
#[cfg(feature = "testkit")]
use std::cell::RefCell;
#[cfg(feature = "testkit")]
use std::sync::{Arc as StdArc, Weak as StdWeak};
use std::time::Duration;

/// The identity of an actor: its uid, and a function that makes its path.
#[cfg(feature = "testkit")]
pub(crate) type Identity<'a> = (u32, &'a dyn Fn() -> String);

/// Gives actors their turns, on one thread.
#[cfg(feature = "testkit")]
pub(crate) trait Stepper: Send + Sync + std::fmt::Debug {
    /// Takes a woken actor that belongs on a dispatcher of this kind, or another task, which has no identity.
    fn schedule(&self, task: TaskRef, kind: DispatcherKind, who: Option<Identity<'_>>);

    /// Runs turns until `done`, if the calling thread is the thread that runs them.
    fn run_turns(&self, done: &mut dyn FnMut() -> bool) -> Reached;

    /// Returns whether no task has anything to do.
    fn is_idle(&self) -> bool;

    /// Returns whether the calling thread is within a turn.
    fn in_turn(&self) -> bool;

    /// Returns the number of turns without a rest above which a test counts as a livelock.
    fn turn_max(&self) -> u64;

    /// Returns the seed from which the choices derive.
    fn seed(&self) -> u64;
}

/// The reason for which a thread that ran turns, instead of waiting, has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "whether there is anything left to wait for"]
pub(crate) enum Reached {
    /// The condition for which the thread ran turns.
    #[cfg(feature = "testkit")]
    Done,
    /// No actor has anything to do: nothing more happens unless time moves or another thread sends.
    #[cfg(feature = "testkit")]
    Idle,
    /// More turns were run than a test takes: actors keep each other busy for ever.
    #[cfg(feature = "testkit")]
    Livelock,
    /// The actors run on other threads: the caller may wait for them.
    Elsewhere,
}

#[cfg(feature = "testkit")]
per_thread! {
    /// The steppers that run their turns on this thread.
    static OF_THIS_THREAD: RefCell<Vec<StdWeak<dyn Stepper>>> = RefCell::new(Vec::new());
}

/// Registers a stepper with the calling thread, on which it runs its turns.
#[cfg(feature = "testkit")]
pub(crate) fn attach(stepper: &StdArc<dyn Stepper>) {
    OF_THIS_THREAD.with(|steppers| {
        let mut steppers = steppers.borrow_mut();
        steppers.retain(|stepper| stepper.strong_count() > 0);
        steppers.push(StdArc::downgrade(stepper));
    });
}

/// Runs turns until `done`, of all systems that have their turns on this thread: for callers that don't know on which
/// system they wait. May return before `done`, when no task has anything left to do or the turns don't end.
#[cfg(feature = "testkit")]
pub(crate) fn run_any_turns(done: &mut dyn FnMut() -> bool) {
    let steppers = OF_THIS_THREAD.try_with(|steppers| steppers.borrow().clone()).unwrap_or_default();
    let steppers: Vec<_> = steppers.iter().filter_map(StdWeak::upgrade).collect();
    // Each round runs at least one turn. The rounds are bounded because actors of two systems that keep each other busy
    // let each system come to rest again and again.
    let mut rounds = steppers.iter().map(|stepper| stepper.turn_max()).max().unwrap_or(0);
    while rounds > 0 && steppers.iter().any(|stepper| !stepper.is_idle()) {
        rounds -= 1;
        for stepper in &steppers {
            if matches!(stepper.run_turns(done), Reached::Done | Reached::Livelock) {
                return;
            }
        }
    }
}

/// Does nothing: without the testkit no system has its turns on this thread.
#[cfg(not(feature = "testkit"))]
#[inline(always)]
pub(crate) fn run_any_turns(done: &mut dyn FnMut() -> bool) {
    let _ = done;
}

/// Returns how long a thread may wait that was to wait for `limit`: not at all, if the thread has run all turns itself.
pub(crate) fn left_to_wait(reached: Reached, limit: Duration) -> Duration {
    if reached == Reached::Elsewhere { limit } else { Duration::ZERO }
}
