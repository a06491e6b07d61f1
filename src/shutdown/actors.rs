//! Tasks that end actors, and wait until they have ended.

use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::shutdown::coordinated::{AddTaskError, CoordinatedShutdown, TaskHandle};

impl CoordinatedShutdown {
    /// Adds a task that sends `message` to `actor`, if there is one, and is done when the actor has ended. It is
    /// bounded by the phase's timeout, and does not stop the actor by itself.
    ///
    /// # Errors
    ///
    /// As [`add_task`](Self::add_task); [`AddTaskError::NotAnActor`] for a reference behind which there is none.
    pub fn add_actor_termination<M: Send + 'static>(
        &self,
        phase: &str,
        name: &str,
        actor: &ActorRef<M>,
        message: Option<M>,
    ) -> Result<TaskHandle, AddTaskError> {
        let Some(watched) = actor.untyped() else {
            return Err(AddTaskError::NotAnActor { task: name.to_owned() });
        };
        let actor = actor.clone();
        self.add_future(phase, name, move || async move {
            let ended = watched.when_ended();
            if let Some(message) = message {
                actor.tell(message);
            }
            Ok(ended.await?)
        })
    }

    /// Adds a task that drains `actors` along the flow of data: the first is poisoned, so that it handles what it
    /// has and ends; when it has ended nothing more comes from it, and the next one's turn comes. Whatever was
    /// sent into the first before is so handled to the end, unless an actor is stopped for a failure on the
    /// way: what it leaves are dead letters in the report's ledger, and the task goes on.
    ///
    /// The phase's timeout is the deadline. When it is over no further actor is poisoned; those that are left end
    /// with the system, and what is in their mailboxes becomes dead letters, counted.
    ///
    /// Not for a router: poisoned, it stops its routees with what they have. Its task [drains](crate::Router::drain) it
    /// and waits until it has [ended](ActorRef::when_ended). Nor for a [backoff supervisor](crate::pattern::Backoff), which does
    /// so with its child: give it a [last message](crate::pattern::Backoff::last_message) by
    /// [`add_actor_termination`](Self::add_actor_termination).
    ///
    /// # Errors
    ///
    /// As [`add_task`](Self::add_task).
    pub fn add_drain(
        &self,
        phase: &str,
        name: &str,
        actors: impl IntoIterator<Item = AnyActorRef>,
    ) -> Result<TaskHandle, AddTaskError> {
        let actors: Vec<AnyActorRef> = actors.into_iter().collect();
        self.add_future(phase, name, move || async move {
            for actor in actors {
                let ended = actor.when_ended();
                actor.poison();
                ended.await?;
            }
            Ok(())
        })
    }
}
