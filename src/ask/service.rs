//! References to actors as `tower_service::Service`.

use crate::ask::ask::Ask;
use crate::ask::error::AskError;
use crate::ask::reply::{Call, Request};
use crate::core::actor_ref::{ActorRef, Target};
use crate::core::dead_letter::DeadLetterReason;
use crate::core::full_policy::FullPolicy;
use crate::mailbox::backpressure::WakerPlace;
use std::fmt;
use std::task::{Context, Poll};

/// A reference is a service for each request that its actor takes: `call` [asks](ActorRef::ask).
///
/// It is always ready until the actor has stopped, and then it fails with [`AskError::Undeliverable`]. A full mailbox
/// shows in the answer: the same error with the reason `Full`. [`ActorRef::service`] makes a service that is ready only
/// while there is room.
impl<Q, M> tower_service::Service<Q> for ActorRef<M>
where
    Q: Request,
    M: From<Call<Q>> + Send + 'static,
{
    type Response = Q::Reply;
    type Error = AskError;
    type Future = Ask<Q::Reply>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), AskError>> {
        Poll::Ready(if self.is_closed() { Err(stopped(self)) } else { Ok(()) })
    }

    fn call(&mut self, request: Q) -> Ask<Q::Reply> {
        self.ask(request)
    }
}

fn stopped<M: Send + 'static>(actor: &ActorRef<M>) -> AskError {
    let mut error = AskError::refused_for(DeadLetterReason::Stopped);
    error.note_target(|| actor.untyped().map(|any| any.path()));
    error
}

impl<M: Send + 'static> ActorRef<M> {
    /// Makes a tower service that is ready only while the actor's mailbox has room, so that layers above it see
    /// back-pressure: `load_shed` sheds, and a caller that awaits readiness waits. A mailbox without a bound, a mailbox
    /// that drops messages, and a recipient that is no actor always have room.
    ///
    /// Readiness is no reservation: between `poll_ready` and `call` another sender may take the room. Then the answer is
    /// [`AskError::Undeliverable`] with the reason [`Full`](DeadLetterReason::Full), or the request waits, as the mailbox
    /// says.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    /// use tower::{Service, ServiceBuilder, ServiceExt};
    ///
    /// struct Of(u32);
    /// impl Request for Of {
    ///     type Reply = u32;
    /// }
    ///
    /// struct Double;
    /// impl Actor for Double {
    ///     type Message = Call<Of>;
    ///     fn receive(&mut self, call: Call<Of>, _: &mut Context<Call<Of>>) -> HandlerResult {
    ///         call.answer(|Of(number)| 2 * number);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let system = System::builder("demo").build()?;
    /// let double = system.actor("double").mailbox(Mailbox::bounded(16)).spawn(|| Double)?;
    /// let mut stack = ServiceBuilder::new()
    ///     .load_shed()
    ///     .concurrency_limit(8)
    ///     .timeout(Duration::from_secs(1))
    ///     .service(double.service());
    /// let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// assert_eq!(runtime.block_on(async { ServiceExt::<Of>::ready(&mut stack).await?.call(Of(21)).await })?, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub fn service(&self) -> ActorService<M> {
        ActorService { actor: self.clone(), place: WakerPlace::of_onlooker() }
    }
}

/// A tower service that is ready while its actor's mailbox has room: see [`ActorRef::service`].
pub struct ActorService<M: Send + 'static> {
    actor: ActorRef<M>,
    /// The place where its waker waits for room.
    place: WakerPlace,
}

impl<M: Send + 'static> ActorService<M> {
    /// The actor behind the service.
    pub fn actor(&self) -> &ActorRef<M> {
        &self.actor
    }

    /// Looks for room, and leaves the waker where there is none.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Target::Local(local) = self.actor.target() else { return Poll::Ready(()) };
        // A mailbox that drops the newest message takes each.
        if local.mailbox.has_room() || local.core.full() == FullPolicy::DropNewest {
            self.leave();
            return Poll::Ready(());
        }
        let is_certain = local.mailbox.enter_waker(&mut self.place, cx.waker());
        if local.mailbox.has_room() {
            self.leave();
            return Poll::Ready(());
        }
        if !is_certain {
            // A kernel that refuses the fence leaves this: the service looks again and again.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn leave(&mut self) {
        if let Target::Local(local) = self.actor.target() {
            local.mailbox.leave_wakers(&mut self.place);
        }
    }
}

impl<Q, M> tower_service::Service<Q> for ActorService<M>
where
    Q: Request,
    M: From<Call<Q>> + Send + 'static,
{
    type Response = Q::Reply;
    type Error = AskError;
    type Future = Ask<Q::Reply>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AskError>> {
        if self.actor.is_closed() {
            self.leave();
            return Poll::Ready(Err(stopped(&self.actor)));
        }
        self.poll_room(cx).map(Ok)
    }

    fn call(&mut self, request: Q) -> Ask<Q::Reply> {
        self.actor.ask(request)
    }
}

/// A clone waits for itself.
impl<M: Send + 'static> Clone for ActorService<M> {
    fn clone(&self) -> Self {
        self.actor.service()
    }
}

impl<M: Send + 'static> Drop for ActorService<M> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<M: Send + 'static> fmt::Debug for ActorService<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorService").field("actor", &self.actor).finish_non_exhaustive()
    }
}
