//! The reference that routes, and the handle that manages.

use super::head::{AddRoutee, GetRoutees, Manage, RemoveRoutee, ResizeTo};
use super::{RouteContext, Routees, RoutingLogic};
use crate::actor::{SystemCore, SystemRef};
use crate::actor_ref::{Accepted, ActorRef, AnyRef, AskError, Load, Recipient, Request, Watchable};
use crate::error::{SendError, SpawnError};
use crate::grace::{self, Published};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::per_thread;
use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc as StdArc;

/// So many routers behind each other are a circle.
const HOPS_MAX: u32 = 16;

/// What the references to a router, its handle and its head share.
pub struct Shared<M: Send + 'static> {
    pub table: Published<Routees<M>>,
    /// The router has stopped: everything sent to it is a dead letter.
    closed: AtomicBool,
    pub about: About,
}

/// What a message's way through a router needs to know of it, without the type of message.
pub struct About {
    pub head: AnyRef,
    pub system: StdArc<SystemCore>,
    pub message_type: &'static str,
}

impl<M: Send + 'static> Shared<M> {
    pub fn new(head: AnyRef) -> Self {
        let system = head.core().system.clone();
        let table = Published::new(Routees::new(Vec::new(), None, 0));
        let about = About { head, system, message_type: std::any::type_name::<M>() };
        Self { table, closed: AtomicBool::new(false), about }
    }

    /// Refuses everything from now on, and lets go of the routees.
    pub fn close(&self) {
        // Ordering: Relaxed; who reads too early finds routees that refuse, or the empty table below.
        self.closed.store(true, Ordering::Relaxed);
        let version = self.table.read(&grace::section()).version();
        self.table.replace(Routees::new(Vec::new(), None, version + 1));
    }
}

impl About {
    /// What everything random in this router derives from.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.system.seed() ^ u64::from(self.head.uid())
    }
}

/// What stands behind an `ActorRef<M>` to a router.
pub struct Routing<M: Send + 'static, L> {
    pub shared: StdArc<Shared<M>>,
    pub logic: StdArc<L>,
}

per_thread! {
    /// Routers that the message being sent on this thread has gone through.
    static HOPS: Cell<u32> = Cell::new(0);
}

/// One hop, taken back when dropped.
struct Hop(());

impl Hop {
    #[inline]
    fn take() -> Option<Self> {
        let taken = HOPS.try_with(|hops| {
            let before = hops.get();
            (before < HOPS_MAX).then(|| hops.set(before + 1)).is_some()
        });
        // In a thread whose thread-locals are gone a circle would end by its stack.
        taken.unwrap_or(true).then_some(Self(()))
    }
}

impl Drop for Hop {
    #[inline]
    fn drop(&mut self) {
        let _ = HOPS.try_with(|hops| hops.set(hops.get().saturating_sub(1)));
    }
}

/// How many routers the message being sent on this thread has gone through.
pub fn hops() -> u32 {
    HOPS.try_with(Cell::get).unwrap_or(0)
}

/// Sends what has gone through so many routers already, before it was kept for a while.
pub fn with_hops<R>(count: u32, send: impl FnOnce() -> R) -> R {
    struct Back(u32);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = HOPS.try_with(|hops| hops.set(self.0));
        }
    }
    let _back = Back(HOPS.try_with(|hops| hops.replace(count)).unwrap_or(0));
    send()
}

impl<M: Send + 'static, L: RoutingLogic<M>> Recipient<M> for Routing<M, L> {
    #[inline]
    fn deliver(&self, message: M) -> Result<Accepted, SendError<M>> {
        let Some(_hop) = Hop::take() else { return Err(SendError::Cycle(message)) };
        let row = self.shared.about.system.ledger().mine();
        let mut message = message;
        let mut tried = None;
        loop {
            // Ordering: Relaxed; see `Shared::close`.
            if self.shared.closed.load(Ordering::Relaxed) {
                return Err(SendError::Closed(message));
            }
            let cx = RouteContext::new(row, &self.shared.about);
            let (done, version) = {
                let section = grace::section();
                let table = self.shared.table.read(&section);
                // Nobody took it, and nothing has changed since: nobody will.
                if tried == Some(table.version()) {
                    cx.take_open();
                    return Err(SendError::NoRoutee(message));
                }
                (self.logic.route(message, table, &cx), table.version())
            };
            match &done {
                Ok(()) => cx.settle(),
                // Accounted for by whoever gets it back.
                Err(_) => _ = cx.take_open(),
            }
            match done {
                Ok(()) => return Ok(Accepted::Passed),
                // Chosen from a table that may be older than the one that counts now.
                Err(SendError::NoRoutee(refused)) => {
                    message = refused;
                    tried = Some(version);
                }
                Err(refused) => return Err(refused),
            }
        }
    }

    fn is_closed(&self) -> bool {
        // Ordering: Relaxed; see `Shared::close`.
        self.shared.closed.load(Ordering::Relaxed)
    }

    fn load(&self) -> Load {
        if Recipient::is_closed(self) {
            return Load::Closed;
        }
        let Some(_hop) = Hop::take() else { return Load::Unknown };
        let section = grace::section();
        let table = self.shared.table.read(&section);
        let mut least = Load::Closed;
        for routee in table.iter() {
            let load = routee.actor().load();
            if load.rank() < least.rank() {
                least = load;
            }
        }
        least
    }

    fn any(&self) -> Option<AnyRef> {
        Some(self.shared.about.head.clone())
    }

    fn system(&self) -> Option<SystemRef> {
        Some(SystemRef::new(self.shared.about.system.clone()))
    }
}

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

/// Why a router could not be managed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ManageError {
    /// The router has stopped.
    Stopped {
        /// Its path.
        path: String,
    },
    /// The router's head failed at the request, as when [`RoutingLogic::index`] panics. The routees are
    /// what they were.
    HeadFailed {
        /// The router's path.
        path: String,
    },
    /// Called on a work-stealing worker, or in a turn on a calling-thread dispatcher; neither must wait.
    WouldBlockWorker,
    /// A size of 0 was asked for.
    EmptyPool {
        /// The router's path.
        path: String,
    },
    /// A size was asked of a router whose routees were made by others.
    NotAPool {
        /// The router's path.
        path: String,
    },
    /// Too many old tables of routees wait to be freed: some handler has not returned for a long time.
    OldTables {
        /// How many.
        waiting: usize,
    },
    /// A routee could not be created; the router keeps the size that it had.
    Spawn(SpawnError),
}

impl fmt::Display for ManageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManageError::Stopped { path } => write!(f, "router {path} has stopped"),
            ManageError::HeadFailed { path } => write!(
                f,
                "head of router {path} failed at the request, and the routees are what they were: look for a \
                 panic in the logic's `index`"
            ),
            ManageError::WouldBlockWorker => f.write_str(
                "managing a router waits for its head, which a work-stealing worker must not: ask \
                 `router.head()` with `ctx.ask`, or run the actor on a blocking or pinned dispatcher",
            ),
            ManageError::EmptyPool { path } => {
                write!(f, "pool size 0 for {path}: must be at least 1, or stop the router")
            }
            ManageError::NotAPool { path } => {
                write!(f, "router {path} is a group: add and remove routees instead of resizing it")
            }
            ManageError::OldTables { waiting } => write!(
                f,
                "{waiting} old tables of routees cannot be freed: look for a handler that does not return"
            ),
            ManageError::Spawn(error) => write!(f, "cannot create a routee: {error}"),
        }
    }
}

impl std::error::Error for ManageError {}
