//! The handle that manages a router.

use super::RouteContext;
use super::manage::{AddRoutee, GetRoutees, Manage, ManageError, RemoveRoutee, ResizeTo};
use super::reference::Shared;
use crate::actor_ref::{ActorRef, AnyRef, AskError, Request, Watchable};
use crate::grace;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc as StdArc;

/// The handle of a router: manages it. A router is its reference, too: it dereferences to the [`ActorRef`]
/// that everybody else [holds](Self::to_ref).
///
/// ```
/// use pointsman::prelude::*;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo").build()?;
/// let workers: Router<u64> = system.router("workers").pool(4, |_| Worker).spawn()?;
/// let anyone: ActorRef<u64> = workers.to_ref();
/// anyone.tell(7u64);
/// workers.tell(8u64); // the same
/// workers.resize_to(6)?;
/// assert_eq!(workers.routees()?.len(), 6);
/// # Ok(())
/// # }
/// ```
///
/// # Waiting
///
/// The methods that change or list the routees wait until the head has done it, so that what is sent after
/// they return sees the change. On a work-stealing worker, which must not wait, they are
/// [`ManageError::WouldBlockWorker`]: there ask the [head](Self::head) instead, and the answer arrives as a
/// message.
pub struct Router<M: Send + 'static> {
    pub(super) reference: ActorRef<M>,
    pub(super) head: ActorRef<Manage<M>>,
    pub(super) shared: StdArc<Shared<M>>,
}

impl<M: Send + 'static> Router<M> {
    /// The reference that routes, to be kept by others.
    pub fn to_ref(&self) -> ActorRef<M> {
        self.reference.clone()
    }

    /// The head actor, which takes [management](Manage) messages.
    pub fn head(&self) -> &ActorRef<Manage<M>> {
        &self.head
    }

    /// Makes a pool's size `size`: by new routees at the end of the table, or by letting the youngest go.
    /// Those handle what they have; what arrives behind that is routed again.
    ///
    /// Returns the size before.
    ///
    /// # Errors
    ///
    /// [`ManageError`], also for size 0 and for a router that is no pool.
    pub fn resize_to(&self, size: usize) -> Result<usize, ManageError> {
        self.manage(ResizeTo { size })?
    }

    /// Adds a routee at the end of the table. It is watched, never stopped by the router. Adding it twice
    /// gives it twice the share. Returns how many routees there are then.
    ///
    /// # Errors
    ///
    /// [`ManageError`].
    pub fn add(&self, routee: ActorRef<M>) -> Result<usize, ManageError> {
        self.manage(AddRoutee { routee })?
    }

    /// Removes every entry of a routee. One that the pool created handles what it has and ends; what arrives
    /// behind that is routed again. Any other is only unlisted. Returns whether it was one.
    ///
    /// # Errors
    ///
    /// [`ManageError`].
    pub fn remove(&self, routee: &ActorRef<M>) -> Result<bool, ManageError> {
        self.manage(RemoveRoutee { routee: routee.clone() })?
    }

    /// The routees, in the order of the table, after every change asked for before.
    ///
    /// # Errors
    ///
    /// [`ManageError`].
    pub fn routees(&self) -> Result<Vec<ActorRef<M>>, ManageError> {
        self.manage(GetRoutees::new())
    }

    fn manage<Q: Request>(&self, request: Q) -> Result<Q::Reply, ManageError>
    where
        Manage<M>: From<crate::actor_ref::Call<Q>>,
    {
        if crate::dispatch::must_not_wait() {
            return Err(ManageError::WouldBlockWorker);
        }
        self.head.ask(request).wait().map_err(|error| match error {
            AskError::WouldBlockWorker => ManageError::WouldBlockWorker,
            AskError::NoReply if !self.head.is_closed() => {
                ManageError::HeadFailed { path: self.head.path().to_string() }
            }
            _ => ManageError::Stopped { path: self.head.path().to_string() },
        })
    }

    /// Sends a copy to every routee, whatever the logic; returns how many there were.
    pub fn broadcast(&self, message: M) -> usize
    where
        M: Clone,
    {
        let section = grace::section();
        let table = self.shared.table.read(&section);
        if !table.is_empty() {
            let row = self.shared.about.system.ledger().mine();
            row.sent(1);
            let cx = RouteContext::new(row, &self.shared.about);
            super::broadcast::to_all(message, table, &cx);
            cx.settle();
        }
        table.len()
    }

    /// Stops the router: a pool's routees with it, a group's not.
    pub fn stop(&self) {
        self.head.stop();
    }
}

impl<M: Send + 'static> Watchable for Router<M> {
    /// The head: its end is the router's.
    fn watched(&self) -> Option<AnyRef> {
        self.reference.any()
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
