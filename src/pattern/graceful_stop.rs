//! Graceful stop: stops an actor from outside actors, and waits for its end.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::guardians::Never;
use crate::ask::ask;
use crate::ask::ask::Ask;
use crate::ask::ask_clock::AskClock;
use crate::ask::error::AskError;
use crate::ask::reply::ReplyTo;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Terminated;
use std::time::Duration;

impl<M: Send + 'static> ActorRef<M> {
    /// Ends the actor after it has handled all messages that this thread has sent so far, as [`poison`](Self::poison).
    /// The ask is over when the actor has ended: its children have ended, its `stopped` has completed, and the writes
    /// of `stopped` are visible. The ask is over at once if the actor has ended already.
    ///
    /// The name need not be free yet. To create an actor under the same name, watch the old one.
    ///
    /// Not for a router, whose routees end with their mailboxes as they are, as by [`poison`](Self::poison):
    /// [drain](crate::Router::drain) the router, and wait by [`when_ended`](Self::when_ended).
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Idle;
    /// # impl Actor for Idle {
    /// #     type Message = u32;
    /// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("shop").build()?;
    /// let cache = system.actor("cache").spawn(|| Idle)?;
    /// cache.graceful_stop(std::time::Duration::from_secs(5)).wait()?;
    /// assert!(cache.is_closed());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The ask fails with [`AskError::Timeout`] if the actor has not ended in time by the system's clock; the actor
    /// ends later then. It fails with [`AskError::NoTime`] if the time is zero, and with [`AskError::Undeliverable`] if
    /// no actor stands behind the reference: nothing is done then.
    pub fn graceful_stop(&self, timeout: Duration) -> Ask<()> {
        match self.untyped() {
            Some(actor) => actor.graceful_stop(timeout),
            None => no_actor_ask(),
        }
    }

    /// As [`graceful_stop`](Self::graceful_stop), but sends the actor `message`, upon which the actor is to stop
    /// itself.
    ///
    /// # Errors
    ///
    /// As [`graceful_stop`](Self::graceful_stop). An actor that does not stop is a timeout; at an actor that has ended
    /// the message becomes a dead letter.
    pub fn graceful_stop_with(&self, message: impl Into<M>, timeout: Duration) -> Ask<()> {
        match self.untyped() {
            Some(actor) => actor.stop_and_tell(timeout, || self.tell(message)),
            None => no_actor_ask(),
        }
    }

    /// Waits until the actor has ended, and does not end it: death watch for code outside actors. A router ends with
    /// its head.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u32;
    /// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("shop").build()?;
    /// let workers = system.router("workers").pool(4, |_| Worker).spawn()?;
    /// (0..1000u32).for_each(|number| workers.tell(number));
    /// workers.drain()?;
    /// workers.when_ended().wait()?; // everything is handled now
    /// # assert_eq!(system.ledger().queued, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`AskError::NoReply`] if the system has ended so far that no watch is possible any more, and the actor has not
    /// ended; [`AskError::Undeliverable`] if no actor stands behind the reference.
    pub fn when_ended(&self) -> Ask<()> {
        self.untyped().map_or_else(no_actor_ask, |actor| actor.when_ended())
    }
}

impl AnyActorRef {
    /// As [`ActorRef::graceful_stop`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn graceful_stop(&self, timeout: Duration) -> Ask<()> {
        self.stop_and_tell(timeout, || self.poison())
    }

    fn stop_and_tell(&self, timeout: Duration, stop: impl FnOnce()) -> Ask<()> {
        if timeout.is_zero() {
            return ask::failed(AskError::NoTime, AskClock::Target(self.clone()));
        }
        let ended = self.when_ended();
        stop();
        ended.within(timeout)
    }

    /// Waits until the actor has ended, as [`graceful_stop`](Self::graceful_stop), but does not end it: death watch for
    /// code outside actors.
    ///
    /// # Errors
    ///
    /// [`AskError::NoReply`] if the system has ended so far that no watch is possible any more, and the actor has not
    /// ended.
    pub fn when_ended(&self) -> Ask<()> {
        let mut port = None;
        let (witness, ask) = self.core().system.serve(|reply_to: ReplyTo<()>| {
            port = Some(reply_to.clone());
            EndWatcher { actor: self.clone(), port: Some(reply_to) }
        });
        if let (None, Some(port), true) = (witness, port, self.is_closed()) {
            let _ = port.send(());
        }
        ask
    }
}

fn no_actor_ask() -> Ask<()> {
    ask::failed(AskError::undeliverable(), AskClock::Static(&crate::time::no_system::NO_SYSTEM))
}

/// Waits for the end of an actor.
struct EndWatcher {
    actor: AnyActorRef,
    port: Option<ReplyTo<()>>,
}

impl EndWatcher {
    fn tell(&mut self) {
        if let Some(port) = self.port.take() {
            let _ = port.send(());
        }
    }
}

impl Actor for EndWatcher {
    type Message = Never;

    fn receive(&mut self, message: Never, _: &mut Context<Never>) -> HandlerResult {
        match message {}
    }

    fn started(&mut self, ctx: &mut Context<Never>) -> HandlerResult {
        Ok(ctx.watch(&self.actor)?)
    }

    fn terminated(&mut self, _: Terminated, ctx: &mut Context<Never>) -> HandlerResult {
        self.tell();
        ctx.stop();
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Never>) {
        // At the end of a system this actor may be stopped before the notice comes.
        if self.actor.is_closed() {
            self.tell();
        }
    }
}
