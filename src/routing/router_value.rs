//! A router without a head: a value that routes, inside an actor or outside all of them.

use crate::core::dead_letter::DeadLetterReason;
use crate::core::error::SendError;
use crate::core::system::SystemRef;
use crate::routing::logic::RoutingLogic;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};
use crate::routing::router_info::RouterInfo;
use crate::settings::setting_error::SettingError;
use crate::util::panic::drop_guarded;
use std::fmt;
use std::sync::Arc as StdArc;

/// A logic and a list of routees: Akka's "simple router", an immutable value. For actors that route among others
/// themselves, and for code outside actors; no actor watches or supervises the routees.
///
/// Each change is a new value that shares the logic with the old value. So a round-robin position goes on, with the
/// value, from thread to thread and from actor to actor: the messages of its only owner go exactly round. The exception
/// is [`keeping_position`](super::RoundRobin::keeping_position), whose position is the sender's. Clones share
/// everything; a clone costs three counts. Where several actors send through clones of a value, the messages of each go
/// exactly round; where the other clones go, the position of the clone that is left may jump, once. Actors that share a
/// value behind a pointer, without clones, share its position.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::{RoundRobin, RouterValue};
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u32;
/// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult { Ok(()) }
/// # }
///
/// /// Routes what it gets to two workers, which it creates, watches, and replaces.
/// struct Master {
///     workers: RouterValue<u32, RoundRobin>,
/// }
///
/// impl Master {
///     fn new(system: &SystemRef) -> Result<Self, Failure> {
///         Ok(Self { workers: RouterValue::new(system, RoundRobin::new())? })
///     }
///     fn hire(&mut self, ctx: &mut Context<u32>) -> HandlerResult {
///         let worker = ctx.spawn(|| Worker)?;
///         ctx.watch(&worker)?;
///         self.workers = self.workers.add(&worker);
///         Ok(())
///     }
/// }
///
/// impl Actor for Master {
///     type Message = u32;
///     fn started(&mut self, ctx: &mut Context<u32>) -> HandlerResult {
///         self.hire(ctx)?;
///         self.hire(ctx)
///     }
///     fn receive(&mut self, job: u32, _: &mut Context<u32>) -> HandlerResult {
///         self.workers.route(job);
///         Ok(())
///     }
///     fn terminated(&mut self, ended: Terminated, ctx: &mut Context<u32>) -> HandlerResult {
///         let gone = ended.actor.typed::<u32>()?;
///         self.workers = self.workers.remove(gone);
///         self.hire(ctx)
///     }
/// }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo").build()?;
/// let handle = system.handle().clone();
/// let master = system.spawn(move || Master::new(&handle))?;
/// master.tell(1u32);
/// # Ok(())
/// # }
/// ```
///
/// # Concurrency
///
/// Any number of threads may route through a value and its clones: the logic runs on their threads, as in a router.
/// Outside actors they share the position of [`RoundRobin`](crate::routing::RoundRobin), and so a line of memory; give
/// each thread that sends much a value of its own, or use a router.
pub struct RouterValue<M: Send + 'static, L> {
    logic: StdArc<L>,
    routees: StdArc<Routees<M>>,
    info: StdArc<RouterInfo>,
}

impl<M: Send + 'static, L: RoutingLogic<M>> RouterValue<M, L> {
    /// A router without routees. The system counts what it routes, and takes its dead letters.
    ///
    /// # Errors
    ///
    /// [`SettingError`] if the logic's settings are [invalid](RoutingLogic::check).
    pub fn new(system: &SystemRef, logic: L) -> Result<Self, SettingError> {
        if let Err(fault) = logic.check() {
            // Dropped before the error lies where it is returned: there the error would be leaked if this drop
            // panicked.
            drop_guarded(logic);
            return Err(fault);
        }
        let nobody = system.dead_letters_ref::<M>().any_local();
        let info = RouterInfo::of_value::<M>(nobody, system.core().next_uid());
        let prepared = logic.prepare(&[]);
        let routees = Routees::new(Vec::new(), prepared, 0);
        Ok(Self { logic: StdArc::new(logic), routees: StdArc::new(routees), info })
    }

    /// Returns this router with other routees.
    pub fn with_routees<R: Into<Routee<M>>>(&self, routees: impl IntoIterator<Item = R>) -> Self {
        self.with_list(routees.into_iter().map(Into::into).collect())
    }

    /// Returns this router with one more routee, at the end. A routee that is added twice gets twice the share, except
    /// where its identity decides: [consistent hashing](crate::routing::ConsistentHashing) counts it once. As
    /// [`Router::add`](super::Router::add) of a router with a head.
    #[must_use = "this value stays as it is"]
    pub fn add(&self, routee: impl Into<Routee<M>>) -> Self {
        let added = std::iter::once(routee.into());
        self.with_list(self.routees.iter().cloned().chain(added).collect())
    }

    /// Returns this router without every routee that `routee` means; the routees are the same if it means none. A plain
    /// reference means every entry of that reference, also an entry [with an identity](Routee::with_identity); a routee
    /// with an identity means the entries with the same. As [`Router::remove`](super::Router::remove) of a router with
    /// a head.
    #[must_use = "this value stays as it is"]
    pub fn remove(&self, routee: impl Into<Routee<M>>) -> Self {
        let gone = routee.into();
        self.with_list(self.routees.iter().filter(|routee| !routee.is_meant_by(&gone)).cloned().collect())
    }

    /// [`add`](Self::add) by its name in Akka.
    #[must_use = "this value stays as it is"]
    pub fn add_routee(&self, routee: impl Into<Routee<M>>) -> Self {
        self.add(routee)
    }

    /// [`remove`](Self::remove) by its name in Akka.
    #[must_use = "this value stays as it is"]
    pub fn remove_routee(&self, routee: impl Into<Routee<M>>) -> Self {
        self.remove(routee)
    }

    fn with_list(&self, list: Vec<Routee<M>>) -> Self {
        let prepared = self.logic.prepare(&list);
        let routees = StdArc::new(Routees::new(list, prepared, self.routees.version() + 1));
        Self { logic: self.logic.clone(), routees, info: self.info.clone() }
    }

    /// The routees, in order, with their [identities](Routee::identity).
    pub fn routees(&self) -> &Routees<M> {
        &self.routees
    }

    /// Returns the number of routees that a message is routed among, as [`Router::size`](super::Router::size).
    pub fn size(&self) -> usize {
        self.routees.len()
    }

    pub(crate) fn router_info(&self) -> &RouterInfo {
        &self.info
    }

    /// The logic, which all values made from the same value share.
    pub fn logic(&self) -> &L {
        &self.logic
    }

    /// Sends a message to the routee that the logic chooses. Never fails: a message that no routee takes is a dead
    /// letter, also where the logic chooses [no routee](Routee::none). (Akka lets such a message vanish when it has no
    /// sender.)
    #[inline]
    pub fn route(&self, message: impl Into<M>) {
        if let Err(refused) = self.send(message.into()) {
            let system = &self.info.system;
            system.ledger().for_this_thread().dead_lettered(1);
            let reason = DeadLetterReason::of(&refused);
            system.dead_letters().publish_dead_letter(refused.into_inner(), reason, || self.info.head.path());
        }
    }

    /// Sends a message to the routee that the logic chooses, and gets the message back if no routee takes it.
    ///
    /// # Errors
    ///
    /// [`SendError`] as of [`try_tell`](crate::ActorRef::try_tell) on a router.
    pub fn try_route(&self, message: impl Into<M>) -> Result<(), SendError<M>> {
        self.send(message.into()).inspect_err(|_| self.info.system.ledger().for_this_thread().handed_back(1))
    }

    #[inline]
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        let cx = RouteContext::of_new_message(&self.info);
        let done = self.logic.route(message, &self.routees, &cx);
        cx.finish(&done);
        done
    }

    /// Sends a copy to every routee, in order, whatever the logic; returns how many there are. With none the
    /// message is a dead letter. (Akka lets it vanish.)
    pub fn broadcast(&self, message: impl Into<M>) -> usize
    where
        M: Clone,
    {
        let message = message.into();
        let cx = RouteContext::of_new_message(&self.info);
        crate::routing::logics::broadcast::to_all(message, &self.routees, &cx);
        self.routees.len()
    }
}

impl<M: Send + 'static, L> Clone for RouterValue<M, L> {
    fn clone(&self) -> Self {
        Self { logic: self.logic.clone(), routees: self.routees.clone(), info: self.info.clone() }
    }
}

impl<M: Send + 'static, L> fmt::Debug for RouterValue<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouterValue").field("routees", &self.routees).finish_non_exhaustive()
    }
}
