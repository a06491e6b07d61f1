//! The running form of a dispatcher owns its threads.

use crate::dispatch::blocking::BlockingPool;
use crate::dispatch::calling_thread;
use crate::dispatch::dispatcher::DispatcherKind;
use crate::dispatch::pinned::PinnedThreads;
use crate::dispatch::placement::Placement;
#[cfg(feature = "testkit")]
use crate::dispatch::stepping;
use crate::measure::pulse::Pulse;
use crate::scheduler::error::{JoinError, StartError};
use crate::scheduler::pool::Pool;
use crate::sync::Arc;
use std::sync::Arc as StdArc;

/// A dispatcher whose threads run.
#[derive(Clone, Debug)]
pub(crate) enum Running {
    WorkStealing(Arc<Pool>),
    Blocking(BlockingPool),
    Pinned(PinnedThreads),
    CallingThread(calling_thread::Limits),
    /// Stands in the place of a dispatcher of this kind; see [`stepping`].
    #[cfg(feature = "testkit")]
    Stepping(StdArc<dyn stepping::Stepper>, DispatcherKind),
}

impl Running {
    /// Returns the kind of the dispatcher.
    pub(crate) fn kind(&self) -> DispatcherKind {
        match self {
            Self::WorkStealing(_) => DispatcherKind::WorkStealing,
            Self::Blocking(_) => DispatcherKind::Blocking,
            Self::Pinned(_) => DispatcherKind::Pinned,
            Self::CallingThread(_) => DispatcherKind::CallingThread,
            #[cfg(feature = "testkit")]
            Self::Stepping(_, kind) => *kind,
        }
    }

    /// The pulses of the dispatcher's own threads that have not ended.
    pub(crate) fn pulses(&self) -> Vec<StdArc<Pulse>> {
        match self {
            Self::WorkStealing(pool) => pool.pulses.to_vec(),
            Self::Blocking(pool) => pool.pulses(),
            Self::Pinned(threads) => threads.pulses(),
            Self::CallingThread(_) => Vec::new(),
            #[cfg(feature = "testkit")]
            Self::Stepping(..) => Vec::new(),
        }
    }

    /// Returns the place of a new actor; on a pinned dispatcher this starts the actor's thread.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread.
    pub(crate) fn place_task(&self) -> Result<Placement, StartError> {
        match self {
            Self::WorkStealing(pool) => Ok(Placement::WorkStealing(pool.clone())),
            Self::Blocking(pool) => Ok(Placement::Blocking(pool.clone())),
            Self::Pinned(threads) => threads.new_placement().map(Placement::Pinned),
            Self::CallingThread(limits) => Ok(Placement::CallingThread(*limits)),
            #[cfg(feature = "testkit")]
            Self::Stepping(stepper, kind) => Ok(Placement::Stepping(stepper.clone(), *kind)),
        }
    }

    /// Tells the threads to end once there is nothing left to run. Never blocks. The caller makes sure that all actors
    /// are gone by then.
    pub(crate) fn stop(&self) {
        match self {
            Self::WorkStealing(pool) => pool.stop(),
            Self::Blocking(pool) => pool.stop(),
            Self::Pinned(threads) => threads.stop(),
            Self::CallingThread(_) => {}
            #[cfg(feature = "testkit")]
            Self::Stepping(..) => {}
        }
    }

    /// Returns whether all threads have ended, so that a join takes no time.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::WorkStealing(pool) => pool.has_ended(),
            Self::Blocking(pool) => pool.has_ended(),
            Self::Pinned(threads) => threads.has_ended(),
            Self::CallingThread(_) => true,
            #[cfg(feature = "testkit")]
            Self::Stepping(..) => true,
        }
    }

    /// Returns whether the calling thread is one of the dispatcher's.
    pub(crate) fn runs_current_thread(&self) -> bool {
        match self {
            Self::WorkStealing(pool) => crate::scheduler::current::is_worker_of(pool),
            Self::Blocking(pool) => pool.runs_current_thread(),
            Self::Pinned(threads) => threads.runs_current_thread(),
            // This dispatcher has no threads of its own; see `must_not_wait`.
            Self::CallingThread(_) => false,
            #[cfg(feature = "testkit")]
            Self::Stepping(stepper, _) => stepper.in_turn(),
        }
    }

    /// Stops and waits until every thread has ended.
    ///
    /// # Errors
    ///
    /// If the caller is one of the threads. The threads are told to stop, and another thread must join them.
    pub(crate) fn stop_and_join(&self) -> Result<(), JoinError> {
        self.stop();
        match self {
            Self::WorkStealing(pool) => pool.join(),
            Self::Blocking(pool) => pool.join(),
            Self::Pinned(threads) => threads.join(),
            Self::CallingThread(_) => Ok(()),
            #[cfg(feature = "testkit")]
            Self::Stepping(..) => Ok(()),
        }
    }
}
