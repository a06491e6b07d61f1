//! Tasks that end actors, and wait until they have ended.

use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cancellable::Cancellable;
use crate::shutdown::coordinated::{CoordinatedShutdown, ShutdownSetupError};

impl CoordinatedShutdown {
    /// Adds a task that sends `message` to `actor`, if there is one, and is done when the actor has ended. The phase's
    /// timeout bounds the task. The task does not stop the actor by itself.
    ///
    /// # Errors
    ///
    /// As [`add_task`](Self::add_task); [`ShutdownSetupError::NotAnActor`] for a reference that leads to no actor.
    pub fn add_actor_termination<M: Send + 'static>(
        &self,
        phase: &str,
        name: &str,
        actor: &ActorRef<M>,
        message: Option<M>,
    ) -> Result<Cancellable, ShutdownSetupError> {
        let Some(watched) = actor.untyped() else {
            return Err(ShutdownSetupError::NotAnActor { task: name.to_owned() });
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

    /// Adds a task that drains `actors` along the flow of data. The first actor is poisoned, so that it handles its
    /// mailbox and ends. When it has ended, no more messages come from it, and the next actor is poisoned. So every
    /// message that was sent into the first actor before is handled to the end, unless an actor is stopped for a
    /// failure on the way: its leftovers are dead letters in the report's ledger, and the task goes on.
    ///
    /// The phase's timeout is the deadline. After the deadline no further actor is poisoned; the actors that are left
    /// end with the system, and the messages in their mailboxes become dead letters, counted.
    ///
    /// Not for a router: poisoned, it stops its routees with their mailboxes as they are. A task for a router
    /// [drains](crate::Router::drain) it and waits until it has [ended](ActorRef::when_ended). Not for a [backoff
    /// supervisor](crate::pattern::Backoff) either, which stops its child in the same way: give it a [last
    /// message](crate::pattern::Backoff::last_message) by [`add_actor_termination`](Self::add_actor_termination).
    ///
    /// # Errors
    ///
    /// As [`add_task`](Self::add_task).
    pub fn add_drain(
        &self,
        phase: &str,
        name: &str,
        actors: impl IntoIterator<Item = AnyActorRef>,
    ) -> Result<Cancellable, ShutdownSetupError> {
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
