//! A handle to work that runs later, to cancel it.

use std::fmt;
use std::sync::Arc as StdArc;

/// A task that runs later, to cancel it: a task of the [`TaskTimer`](crate::timers::TaskTimer), or of a phase of the
/// [coordinated shutdown](crate::shutdown::CoordinatedShutdown::add_task). Dropping this leaves the task alone. Akka's
/// `Cancellable`.
#[derive(Clone)]
#[doc(alias = "TaskHandle")]
pub struct Cancellable(StdArc<dyn Cancel>);

/// Work that can be cancelled.
pub(crate) trait Cancel: Send + Sync {
    /// As [`Cancellable::cancel`].
    fn cancel(&self) -> bool;
    /// As [`Cancellable::is_over`].
    fn is_over(&self) -> bool;
}

impl Cancellable {
    pub(crate) fn new(task: StdArc<dyn Cancel>) -> Self {
        Self(task)
    }

    /// Cancels the task. Returns true if that has prevented a run: the only run, or the next run of a task that
    /// repeats. Returns false if the only run has begun or is over, if the task was cancelled before, or if the system
    /// has ended. The run of a task of a shutdown begins with its phase.
    ///
    /// The call does not wait for a run that has begun. A repeating task in its last run (it will panic, or finds its
    /// target ended) can't be told from others: the result is true.
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// Whether no run will begin any more: cancelled, over, or dropped with the system.
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

impl fmt::Debug for Cancellable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellable").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}
