//! For tests: actors take their turns on one thread, in an order that the test chooses.
//!
//! The choosing, and the books about it, are the testkit's. Here is only what the engine needs of it: where a
//! woken actor goes, and how a thread that would wait for the actors that it has to run itself runs them.

#[cfg(feature = "testkit")]
use crate::dispatch::dispatcher::Kind;
#[cfg(feature = "testkit")]
use crate::scheduler::task::TaskRef;
#[cfg(feature = "testkit")]
use crate::sync::per_thread;
#[cfg(feature = "testkit")]
use std::cell::RefCell;
#[cfg(feature = "testkit")]
use std::sync::{Arc as StdArc, Weak as StdWeak};
use std::time::Duration;

/// Who an actor is: its uid, and what makes its path.
#[cfg(feature = "testkit")]
pub type Identity<'a> = (u32, &'a dyn Fn() -> String);

/// Gives actors their turns, on one thread.
#[cfg(feature = "testkit")]
pub trait Stepper: Send + Sync + std::fmt::Debug {
    /// Takes a woken actor (or another task, which is nobody) that belongs on a dispatcher of this kind.
    fn schedule(&self, task: TaskRef, kind: Kind, who: Option<Identity<'_>>);

    /// Runs turns until `done`, if the calling thread is the one that runs them.
    fn run_turns(&self, done: &mut dyn FnMut() -> bool) -> Reached;

    /// Whether nobody has anything to do.
    fn is_idle(&self) -> bool;

    /// Whether the calling thread is within a turn.
    fn in_turn(&self) -> bool;

    /// More turns than this without a rest are too many.
    fn turn_max(&self) -> u64;

    /// What its choices derive from.
    fn seed(&self) -> u64;
}

/// What a thread that ran turns instead of waiting has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "whether there is anything left to wait for"]
pub enum Reached {
    /// What it ran them for.
    #[cfg(feature = "testkit")]
    Done,
    /// No actor has anything to do: nothing more comes unless time moves, or another thread sends.
    #[cfg(feature = "testkit")]
    Idle,
    /// More turns than a test takes: actors keep each other busy for ever.
    #[cfg(feature = "testkit")]
    Livelock,
    /// The actors run on other threads: the caller may wait for them.
    Elsewhere,
}

#[cfg(feature = "testkit")]
per_thread! {
    /// Those that run their turns on this thread.
    static OF_THIS_THREAD: RefCell<Vec<StdWeak<dyn Stepper>>> = RefCell::new(Vec::new());
}

/// Makes a stepper of the calling thread known to it.
#[cfg(feature = "testkit")]
pub fn attach(stepper: &StdArc<dyn Stepper>) {
    OF_THIS_THREAD.with(|steppers| {
        let mut steppers = steppers.borrow_mut();
        steppers.retain(|stepper| stepper.strong_count() > 0);
        steppers.push(StdArc::downgrade(stepper));
    });
}

/// Runs turns until `done`, of whatever systems have theirs on this thread: for those who don't know on which system
/// they wait. May come back before, when nobody has anything left to do or the turns don't end.
#[cfg(feature = "testkit")]
pub fn run_any_turns(done: &mut dyn FnMut() -> bool) {
    let steppers = OF_THIS_THREAD.try_with(|steppers| steppers.borrow().clone()).unwrap_or_default();
    let steppers: Vec<_> = steppers.iter().filter_map(StdWeak::upgrade).collect();
    // Each round gives somebody a turn. Actors of two systems that keep each other busy let each of them come to rest, again
    // and again.
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

/// Runs turns of this thread's systems: it has none without the testkit.
#[cfg(not(feature = "testkit"))]
#[inline(always)]
pub fn run_any_turns(done: &mut dyn FnMut() -> bool) {
    let _ = done;
}

/// How long a thread may wait that was to wait for `limit`: not at all, where it has run all turns itself.
pub fn left_to_wait(reached: Reached, limit: Duration) -> Duration {
    if reached == Reached::Elsewhere { limit } else { Duration::ZERO }
}
