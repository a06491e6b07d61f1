//! Waiting for actors that end, and tasks that end them.

use super::{AddTaskError, CoordinatedShutdown, TaskHandle};
use crate::actor::{Actor, ActorBuilder, Context, Done, SystemCore, Terminated};
use crate::actor_ref::{ActorRef, AnyRef};
use crate::error::SpawnError;
use crate::sync::{Mutex, lock};
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::task::{self, Poll, Waker};

/// Opened when an actor has ended.
#[derive(Default)]
struct Latch(Mutex<LatchState>);

#[derive(Default)]
struct LatchState {
    is_open: bool,
    waiter: Option<Waker>,
}

impl Latch {
    fn open(&self) {
        let waiter = {
            let mut state = lock(&self.0);
            state.is_open = true;
            state.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

/// Watches one actor, from below `/system`.
struct Lookout {
    actor: AnyRef,
    latch: StdArc<Latch>,
}

impl Actor for Lookout {
    type Message = ();

    fn receive(&mut self, (): (), _: &mut Context<()>) -> Done {
        Ok(())
    }

    fn started(&mut self, ctx: &mut Context<()>) -> Done {
        ctx.watch(&self.actor);
        Ok(())
    }

    fn terminated(&mut self, _: Terminated, ctx: &mut Context<()>) -> Done {
        self.latch.open();
        ctx.stop();
        Ok(())
    }

    /// `/system` ends when all of `/user` has ended.
    fn stopped(&mut self, _: &mut Context<()>) {
        self.latch.open();
    }
}

/// Ready once the actor has ended.
struct Ended {
    latch: StdArc<Latch>,
    lookout: Option<ActorRef<()>>,
}

impl Ended {
    fn of(system: &SystemCore, actor: AnyRef) -> Result<Self, SpawnError> {
        let latch = StdArc::new(Latch::default());
        let watching = latch.clone();
        let recipe = move || Lookout { actor: actor.clone(), latch: watching.clone() };
        let lookout = match ActorBuilder::new(system.system_guardian(), None).spawn(recipe) {
            Ok(lookout) => Some(lookout),
            // Refused so only when every actor of the program has ended.
            Err(SpawnError::ShutDown { .. } | SpawnError::ParentStopped { .. }) => {
                latch.open();
                None
            }
            Err(error) => return Err(error),
        };
        Ok(Self { latch, lookout })
    }
}

impl Future for Ended {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<()> {
        let mut state = lock(&self.latch.0);
        if state.is_open {
            return Poll::Ready(());
        }
        state.waiter = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(lookout) = self.lookout.take() {
            lookout.stop();
        }
    }
}

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
        let Some(watched) = actor.any() else {
            return Err(AddTaskError::NotAnActor { task: name.to_owned() });
        };
        let (actor, system) = (actor.clone(), self.system.clone());
        self.add_future(phase, name, move || async move {
            let ended = Ended::of(system.core(), watched)?;
            if let Some(message) = message {
                actor.tell(message);
            }
            ended.await;
            Ok(())
        })
    }

    /// Adds a task that drains `actors` along the flow of data: the first is poisoned, so that it handles what it
    /// has and ends; when it has ended nothing more comes from it, and the next one's turn comes. Whatever was
    /// sent into the first before is so handled to the end.
    ///
    /// The phase's timeout is the deadline. When it is over no further actor is poisoned; those that are left end
    /// with the system, and what is in their mailboxes becomes dead letters, counted. A pool is drained by its
    /// routees: poisoned itself, it stops them.
    ///
    /// # Errors
    ///
    /// As [`add_task`](Self::add_task).
    pub fn add_drain(
        &self,
        phase: &str,
        name: &str,
        actors: impl IntoIterator<Item = AnyRef>,
    ) -> Result<TaskHandle, AddTaskError> {
        let actors: Vec<AnyRef> = actors.into_iter().collect();
        let system = self.system.clone();
        self.add_future(phase, name, move || async move {
            for actor in actors {
                let ended = Ended::of(system.core(), actor.clone())?;
                actor.poison();
                ended.await;
            }
            Ok(())
        })
    }
}
