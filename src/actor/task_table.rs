//! The tasks of an actor, as data. `own_tasks.rs` tells how they are polled.

use crate::actor::poll_waker::PollWaker;
use crate::sync::HashMap;
use std::sync::Arc as StdArc;
use std::task::{self, Poll};

/// A task of an actor that takes messages `M`.
pub(crate) trait OwnTask<M>: Send {
    /// Polls the task. A panic is a failure of the actor.
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<TaskStep<M>>;

    /// Returns whether the task goes on for the next state after a restart.
    fn survives_restart(&self) -> bool;

    /// Ends the task with its actor.
    fn abandon(self: Box<Self>) {}
}

/// The outcome of a poll.
pub(crate) enum TaskStep<M> {
    /// A message; more may follow.
    Message(M),
    /// The last message.
    Last(M),
}

/// The tasks of an actor, by their numbers.
pub(crate) struct OwnTasks<M> {
    pub(crate) open: HashMap<u64, Entry<M>>,
    /// The number of the last task.
    pub(crate) next: u64,
}

pub(crate) struct Entry<M> {
    /// `None` while it is polled.
    pub(crate) task: Option<Box<dyn OwnTask<M>>>,
    pub(crate) waker: StdArc<PollWaker>,
}

impl<M> Default for OwnTasks<M> {
    fn default() -> Self {
        Self { open: HashMap::default(), next: 0 }
    }
}
