//! The handle that manages a router.

use crate::ask::error::AskError;
use crate::ask::reply::Request;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::routing::head::messages::{
    AddRoutee, AdjustPoolSize, Drain, GetRoutees, Manage, ManageError, RemoveRoutee, RouteeInfo,
};
use crate::routing::route_context::RouteContext;
use crate::routing::routees::Routee;
use crate::routing::routing_ref::SharedRouter;
use crate::util::reclaim;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc as StdArc;

/// The handle of a router: manages it. A router is its reference, too: it dereferences to the [`ActorRef`] that users
/// [hold](Self::to_ref).
///
/// ```
/// use pointsman::prelude::*;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo").build()?;
/// let workers: Router<u64> = system.router("workers").pool(4, |_| Worker).spawn()?;
/// let anyone: ActorRef<u64> = workers.to_ref();
/// anyone.tell(7u64);
/// workers.tell(8u64); // the same
/// assert_eq!(workers.resize_to(6)?, 6);
/// assert_eq!(workers.routees()?.len(), 6);
/// # Ok(())
/// # }
/// ```
///
/// # Waiting
///
/// The methods that change the routees, and [`routees_info`](Self::routees_info), wait until the head is done, so a message that is sent after they return
/// sees the change. They return [`ManageError::WouldBlockWorker`] on a work-stealing worker, which must not wait, and
/// on the only thread of the blocking dispatcher that the head runs on, as a
/// [controller](super::RouterPlan::controller) may be. There ask the [head](Self::head) instead, and the answer arrives
/// as a message. On a blocking dispatcher of more threads don't let all of them wait for heads that run there.
#[doc(alias = "RouterHandle")]
pub struct Router<M: Send + 'static> {
    pub(crate) reference: ActorRef<M>,
    pub(crate) head: ActorRef<Manage<M>>,
    pub(crate) shared: StdArc<SharedRouter<M>>,
}

impl<M: Send + 'static> Router<M> {
    /// Returns the reference that routes, for other users.
    pub fn to_ref(&self) -> ActorRef<M> {
        self.reference.clone()
    }

    /// The head actor, which takes [management](Manage) messages.
    pub fn head(&self) -> &ActorRef<Manage<M>> {
        &self.head
    }

    /// Makes a pool's size `size`: by new routees at the end of the table, or by removing the last routees. Removed
    /// routees handle all messages that they have been sent, and end. A routee that is ending already does not count.
    /// The bounds of a [resizer](crate::routing::Resizer::clamp) hold, here and for [`adjust`](Self::adjust).
    ///
    /// Returns the size after: `size`, or the nearest bound.
    ///
    /// # Errors
    ///
    /// [`ManageError`], also for a router that is no pool, and for size 0 unless the pool
    /// [stays when empty](super::RouterPlan::stay_when_empty).
    pub fn resize_to(&self, size: usize) -> Result<usize, ManageError> {
        self.manage(AdjustPoolSize::To(size))?
    }

    /// Makes a pool larger by `delta` routees, or smaller if that is negative, as [`resize_to`](Self::resize_to) does,
    /// but never smaller than 1. A pool that [stays when empty](super::RouterPlan::stay_when_empty) becomes 0 instead,
    /// and grows again when it is told to. With a [resizer](crate::routing::Resizer::clamp) the bounds of the resizer
    /// hold. An empty pool and a `delta` of 0 or less is no change.
    ///
    /// From Akka's `AdjustPoolSize`, which has no such bound: in Akka such a pool becomes empty. Pekko has the bound.
    ///
    /// Returns the size after.
    ///
    /// # Errors
    ///
    /// [`ManageError`], also for a router that is no pool.
    #[doc(alias = "resize_by")]
    pub fn adjust(&self, delta: isize) -> Result<usize, ManageError> {
        self.manage(AdjustPoolSize::By(delta))?
    }

    /// Adds a routee at the end of the table. The router watches the routee and never stops it. Adding it twice gives
    /// it twice the share, except where its identity decides: [consistent hashing](crate::routing::ConsistentHashing)
    /// counts it once. Returns the number of routees after the addition.
    ///
    /// # Errors
    ///
    /// [`ManageError`].
    pub fn add(&self, routee: impl Into<Routee<M>>) -> Result<usize, ManageError> {
        self.manage(AddRoutee { routee: routee.into() })?
    }

    /// Removes every entry of a routee. A routee that the pool created handles all messages that it has been sent, and
    /// ends; a sender that it refuses meanwhile chooses again. Any other routee is only unlisted. Returns whether the
    /// router had such a routee.
    ///
    /// A plain reference removes every entry of that reference, also an entry [with an
    /// identity](Routee::with_identity); a routee with an identity removes the entries with the same identity.
    ///
    /// # Errors
    ///
    /// [`ManageError`].
    pub fn remove(&self, routee: impl Into<Routee<M>>) -> Result<bool, ManageError> {
        self.manage(RemoveRoutee { routee: routee.into() })?
    }

    /// Returns the routees among which a message that is sent now is routed, in the order of the table. Any thread may
    /// call this: it does not wait for the head, however busy that is. So each change that has been answered is seen, as
    /// one by [`add`](Self::add), and a change that is asked for and not answered may not be seen yet. A routee that has
    /// just ended may still be listed.
    ///
    /// [`routees_info`](Self::routees_info) asks the head, and has the routees' identities, too.
    ///
    /// # Errors
    ///
    /// [`ManageError::Stopped`].
    pub fn routees(&self) -> Result<Vec<ActorRef<M>>, ManageError> {
        let head = &self.shared.info.head;
        if head.is_closed() || head.core().is_told_to_stop() {
            return Err(ManageError::Stopped { path: head.path().to_string() });
        }
        let section = reclaim::section();
        let table = self.shared.table.read(&section);
        Ok(table.iter().map(|routee| routee.actor().clone()).collect())
    }

    /// Returns the routees with their identities, whether the pool has made them, and how often they were restarted. In
    /// the order of the table, after every change that was asked for before.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let workers = system.router("workers").pool(4, |_| Worker).spawn()?;
    /// let restarts: u32 = workers.routees_info()?.iter().map(|info| info.restarts).sum();
    /// assert_eq!(restarts, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ManageError`].
    pub fn routees_info(&self) -> Result<Vec<RouteeInfo<M>>, ManageError> {
        self.manage(GetRoutees::new())
    }

    /// Returns the number of routees that a message which is sent now is routed among; 0 when the router has stopped.
    /// Does not wait for the head, and so may not see a change yet that was asked for and has not been answered.
    pub fn size(&self) -> usize {
        self.shared.table.read(&reclaim::section()).len()
    }

    fn manage<Q: Request>(&self, request: Q) -> Result<Q::Reply, ManageError>
    where
        Manage<M>: From<crate::ask::reply::Call<Q>>,
    {
        if crate::dispatch::may_block::must_not_wait() || self.shared.info.head.runs_only_here() {
            return Err(ManageError::WouldBlockWorker { path: self.head.path().to_string() });
        }
        self.head.ask(request).wait().map_err(|error| match error {
            AskError::WouldBlockWorker => {
                ManageError::WouldBlockWorker { path: self.head.path().to_string() }
            }
            AskError::NoReply { .. } if !self.head.is_closed() => {
                ManageError::HeadFailed { path: self.head.path().to_string() }
            }
            _ => ManageError::Stopped { path: self.head.path().to_string() },
        })
    }

    /// Sends a copy to every routee, whatever the logic; returns how many there were. Where there are none,
    /// or the router has stopped, the message is a dead letter. (Akka lets it vanish where there are none.)
    ///
    /// A copy that its routee does not take is a dead letter. So is a copy that a routee leaves behind when it ends
    /// before it is done: another routee would get the message twice if it were routed again. The only copy of a
    /// broadcast to a single routee is routed again.
    pub fn broadcast(&self, message: impl Into<M>) -> usize
    where
        M: Clone,
    {
        let message = message.into();
        if self.is_closed() {
            self.reference.tell(message);
            return 0;
        }
        let routees = {
            let section = reclaim::section();
            let table = self.shared.table.read(&section);
            let cx = RouteContext::of_new_message(&self.shared.info);
            crate::routing::logics::broadcast::to_all(message, table, &cx);
            table.len()
        };
        if let Some(resizing) = &self.shared.info.resizing {
            resizing.sent(&self.shared.info.head);
        }
        routees
    }

    /// Sends each routee, also those that others created, a poison pill: the routee ends after it has handled all
    /// messages that this thread has sent it so far. Returns the number of routees. A pool then ends by itself, unless
    /// it stays when empty.
    ///
    /// The routees of a [balancing pool](super::Balancing) end and leave the shared queue as it is; the messages that
    /// the last of them leaves there become dead letters. [`drain`](Self::drain) such a pool.
    ///
    /// For the router's own end see [`drain`](Self::drain) and [`stop`](Self::stop).
    /// [`poison`](ActorRef::poison) and [`kill`](ActorRef::kill) on the router are meant for its head:
    /// they end the router and its own routees with it, and fail the router as a whole.
    pub fn poison_routees(&self) -> usize {
        self.each_routee(AnyActorRef::poison)
    }

    /// Makes each routee fail, also those that others created, after it has handled all messages that this thread has
    /// sent it so far. Returns the number of routees. [`on_failure`](super::RouterPlan::on_failure) decides about the
    /// routees of a pool: by default they stop.
    pub fn kill_routees(&self) -> usize {
        self.each_routee(AnyActorRef::kill)
    }

    fn each_routee(&self, act: impl Fn(&AnyActorRef)) -> usize {
        let section = reclaim::section();
        let table = self.shared.table.read(&section);
        // A path with a wildcard may lead to the router itself, which is not one of its routees.
        let is_other = |actor: &&AnyActorRef| **actor != self.shared.info.head;
        table.iter().for_each(|routee| routee.actors().iter().filter(is_other).for_each(&act));
        table.len()
    }

    /// Ends the router without loss: from now on it refuses messages, its own routees handle their mailboxes, and when
    /// they have ended the router ends too. Other routees are unlisted and live on. Returns as soon as the router
    /// refuses; with [`leave_within`](super::RouterPlan::leave_within) a routee ends at its deadline, and its leftovers
    /// become dead letters. [Watch](crate::Context::watch) the router to learn of its end, or wait outside actors by
    /// [`when_ended`](ActorRef::when_ended).
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let workers = system.router("workers").pool(4, |_| Worker).spawn()?;
    /// (0..1000).for_each(|n| workers.tell(n as u64));
    /// workers.drain()?;
    /// assert!(workers.try_tell(1000u64).is_err());
    /// # system.shutdown(std::time::Duration::from_secs(10))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ManageError`].
    pub fn drain(&self) -> Result<(), ManageError> {
        self.manage(Drain)
    }

    /// Stops the router. The routees that a pool created stop with it, after their current messages; the routees of a
    /// group do not. The messages in the mailboxes of a pool's routees become dead letters; [`drain`](Self::drain) lets
    /// the routees handle them first.
    pub fn stop(&self) {
        self.head.stop();
    }
}

/// Returns the head: its end is the end of the router.
impl<M: Send + 'static> From<&Router<M>> for Option<AnyActorRef> {
    fn from(router: &Router<M>) -> Self {
        router.reference.untyped()
    }
}

impl<M: Send + 'static> Clone for Router<M> {
    fn clone(&self) -> Self {
        Self { reference: self.reference.clone(), head: self.head.clone(), shared: self.shared.clone() }
    }
}

/// A router is its reference.
impl<M: Send + 'static> Deref for Router<M> {
    type Target = ActorRef<M>;

    fn deref(&self) -> &ActorRef<M> {
        &self.reference
    }
}

impl<M: Send + 'static> fmt::Debug for Router<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("path", &self.head.path()).finish_non_exhaustive()
    }
}
