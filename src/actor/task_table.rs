//! The tasks of an actor, as data. `own_tasks.rs` tells how they are polled.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Control;
use crate::sync::HashMap;
use crate::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc as StdArc;
use std::task::{self, Poll, Wake};

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
    pub(crate) alarm: StdArc<Alarm>,
}

impl<M> Default for OwnTasks<M> {
    fn default() -> Self {
        Self { open: HashMap::default(), next: 0 }
    }
}

/// The waker of a task.
pub(crate) struct Alarm {
    pub(crate) actor: AnyActorRef,
    pub(crate) number: u64,
    /// Set by each wake, and taken by the poll that follows.
    pub(crate) is_due: AtomicBool,
}

impl Wake for Alarm {
    fn wake(self: StdArc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &StdArc<Self>) {
        // Ordering: Release; pairs with the Acquire swap in `ActorTurn::poll_task`: the poll sees the writes before the
        // wake.
        if !self.is_due.swap(true, Ordering::Release) {
            // An actor that has ended needs no poll.
            let _ = self.actor.send_positioned(Control::Poll(self.number));
        }
    }
}
