//! The messages that a router's head takes, and the errors of its answers.

use crate::ask::reply::{Call, Request};
use crate::core::error::SpawnError;
use crate::routing::routees::Routee;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::marker::PhantomData;

/// A request to a router's head: through [`Router`](crate::routing::Router), or by `ctx.ask` from an actor.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::{AdjustPoolSize, ManageError};
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
///
/// /// Makes its pool larger, and does not wait for it.
/// struct Master {
///     workers: Router<u64>,
/// }
///
/// enum MasterMsg {
///     Busy,
///     Grown(Result<Result<usize, ManageError>, AskError>),
/// }
///
/// impl Actor for Master {
///     type Message = MasterMsg;
///     fn receive(&mut self, message: MasterMsg, ctx: &mut Context<MasterMsg>) -> HandlerResult {
///         match message {
///             MasterMsg::Busy => {
///                 ctx.ask(self.workers.head(), AdjustPoolSize::By(2), MasterMsg::Grown);
///             }
///             // A message that is sent from here on meets the new routees, too.
///             MasterMsg::Grown(size) => assert_eq!(size??, 6),
///         }
///         Ok(())
///     }
/// }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let workers = system.router("workers").pool(4, |_| Worker).spawn()?;
/// system.spawn(move || Master { workers: workers.clone() })?.tell(MasterMsg::Busy);
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
pub enum Manage<M: Send + 'static> {
    /// Change a pool's size.
    Adjust(Call<AdjustPoolSize>),
    /// Add a routee.
    Add(Call<AddRoutee<M>>),
    /// Remove a routee.
    Remove(Call<RemoveRoutee<M>>),
    /// List the routees.
    Routees(Call<GetRoutees<M>>),
    /// End the router without loss.
    Drain(Call<Drain>),
    /// Ask the pool's resizer now, as a tick does. A router without a resizer ignores it.
    ///
    /// For resizers that look at something outside the pool, and are to be asked when that has changed:
    /// `router.head().tell(Manage::AskResizer)`.
    AskResizer,
}

/// Change a pool's size; the reply is the size after.
#[doc(alias = "ResizeTo")]
#[derive(Debug, Clone, Copy)]
pub enum AdjustPoolSize {
    /// Make the pool larger by so many routees, or if negative, smaller: down to 1, or to 0 if the pool
    /// [stays when empty](crate::routing::RouterPlan::stay_when_empty) or its resizer allows that. See
    /// [`Router::adjust`](crate::routing::Router::adjust).
    By(isize),
    /// Make the pool's size this, at least 1 unless the pool
    /// [stays when empty](crate::routing::RouterPlan::stay_when_empty). See
    /// [`Router::resize_to`](crate::routing::Router::resize_to).
    To(usize),
}

/// End the router without loss; the reply comes when it refuses messages. See
/// [`Router::drain`](crate::routing::Router::drain).
#[derive(Debug, Clone, Copy)]
pub struct Drain;

/// Add a routee at the end; the reply is the number of routees after. See [`Router::add`](crate::routing::Router::add).
#[derive(Debug, Clone)]
pub struct AddRoutee<M: Send + 'static> {
    /// The routee: `reference.into()`, or more than a reference.
    pub routee: Routee<M>,
}

/// Remove every entry of a routee; the reply is whether the router had such a routee. See
/// [`Router::remove`](crate::routing::Router::remove).
#[derive(Debug, Clone)]
pub struct RemoveRoutee<M: Send + 'static> {
    /// The routee: `reference.into()`, or more than a reference.
    pub routee: Routee<M>,
}

/// List the routees with their identities and restarts; the reply is a list of [`RouteeInfo`] in the order of the table.
/// See [`Router::routees_info`](crate::routing::Router::routees_info).
#[doc(alias = "GetRouteesInfo")]
#[derive(Debug, Clone, Copy)]
pub struct GetRoutees<M>(PhantomData<fn(M)>);

impl<M> GetRoutees<M> {
    /// The request.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<M> Default for GetRoutees<M> {
    fn default() -> Self {
        Self::new()
    }
}

/// A routee as the head lists it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RouteeInfo<M: Send + 'static> {
    /// The routee, which has the reference and the identity.
    pub routee: Routee<M>,
    /// Whether the pool has made the routee, so that it ends when it is removed.
    pub is_own: bool,
    /// How often the actor behind it was restarted; 0 where there is none, or several. (GoAkt counts restarts, too:
    /// `RestartCount`.)
    pub restarts: u32,
}

impl Request for AdjustPoolSize {
    type Reply = Result<usize, ManageError>;
}

impl Request for Drain {
    type Reply = ();
}

impl<M: Send + 'static> Request for AddRoutee<M> {
    type Reply = Result<usize, ManageError>;
}

impl<M: Send + 'static> Request for RemoveRoutee<M> {
    type Reply = Result<bool, ManageError>;
}

impl<M: Send + 'static> Request for GetRoutees<M> {
    type Reply = Vec<RouteeInfo<M>>;
}

impl<M: Send + 'static> From<Call<AdjustPoolSize>> for Manage<M> {
    fn from(call: Call<AdjustPoolSize>) -> Self {
        Manage::Adjust(call)
    }
}

impl<M: Send + 'static> From<Call<Drain>> for Manage<M> {
    fn from(call: Call<Drain>) -> Self {
        Manage::Drain(call)
    }
}

impl<M: Send + 'static> From<Call<AddRoutee<M>>> for Manage<M> {
    fn from(call: Call<AddRoutee<M>>) -> Self {
        Manage::Add(call)
    }
}

impl<M: Send + 'static> From<Call<RemoveRoutee<M>>> for Manage<M> {
    fn from(call: Call<RemoveRoutee<M>>) -> Self {
        Manage::Remove(call)
    }
}

impl<M: Send + 'static> From<Call<GetRoutees<M>>> for Manage<M> {
    fn from(call: Call<GetRoutees<M>>) -> Self {
        Manage::Routees(call)
    }
}

impl<M: Send + 'static> fmt::Debug for Manage<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Manage::Adjust(_) => "Adjust",
            Manage::Add(_) => "Add",
            Manage::Remove(_) => "Remove",
            Manage::Routees(_) => "Routees",
            Manage::Drain(_) => "Drain",
            Manage::AskResizer => "AskResizer",
        })
    }
}

/// The reason why a router could not be managed.
#[derive(PartialEq)]
#[non_exhaustive]
pub enum ManageError {
    /// The router has stopped, or is [draining](crate::routing::Router::drain).
    Stopped {
        /// Its path.
        path: String,
    },
    /// The router's head failed at the request, as when the logic's [`prepare`](crate::routing::RoutingLogic::prepare)
    /// or a [farewell](crate::routing::RouterPlan::farewell) panics. The routees have not changed.
    HeadFailed {
        /// The router's path.
        path: String,
    },
    /// The call would block a thread that must not wait: a work-stealing worker, a turn on a calling-thread dispatcher,
    /// the only thread of the blocking dispatcher that the router's head runs on, code that a timer runs, or code that
    /// a router's head runs (a farewell, a logic's [`prepare`](crate::routing::RoutingLogic::prepare), a resizer).
    WouldBlockWorker {
        /// The router's path.
        path: String,
    },
    /// A size of 0 was asked for, of a pool that does not stay when empty.
    EmptyPool {
        /// The router's path.
        path: String,
    },
    /// A size was asked of a router whose routees others created.
    NotAPool {
        /// The router's path.
        path: String,
    },
    /// A routee was to be added to a pool whose routees share a queue, in which it would have no part.
    SharedQueue {
        /// The router's path.
        path: String,
    },
    /// The change has waited [as long as it may](crate::routing::RouterPlan::change_within) for memory: old tables of
    /// this router take [as much as they may](crate::routing::RouterPlan::old_tables_max) and cannot be freed. The
    /// routees have not changed.
    ///
    /// A replaced table is freed when no thread can be reading it any more. Each of these keeps all of them, of every
    /// router in the process, while it lasts:
    ///
    /// * a handler on a work-stealing worker of any system that does not return, unless it waits in
    ///   [`Context::blocking`](crate::Context::blocking) or runs on a blocking or pinned dispatcher;
    /// * a routed send, a broadcast, or control for all routees that does not return: the sender waits for room in a
    ///   routee's mailbox ([`OverflowPolicy::Wait`](crate::OverflowPolicy::Wait)); a logic, or a function or
    ///   [`Recipient`](crate::actor::Recipient) behind a routee, takes long, or changes a router itself; or the send runs the
    ///   routee's turn, on a [calling thread](crate::Dispatcher::calling_thread);
    /// * a thread that is in the middle of any of these and is stopped from outside, as by a debugger.
    OldTables {
        /// The router's path.
        path: String,
        /// How many old tables wait to be freed.
        waiting: usize,
    },
    /// A routee could not be created; the router keeps the size that it had.
    Spawn(SpawnError),
}

impl fmt::Display for ManageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManageError::Stopped { path } => {
                write!(f, "router {path} has stopped or is draining: create it anew when it has ended")
            }
            ManageError::HeadFailed { path } => write!(
                f,
                "head of router {path} failed at the request, and the routees have not changed: look for a \
                 panic in the logic's `prepare` or in the farewell"
            ),
            ManageError::WouldBlockWorker { path } => write!(
                f,
                "managing router {path} waits for its head, which a work-stealing worker, a timer, a head and the \
                 only thread of the head's dispatcher must not: ask `router.head()` with `ctx.ask`, or run the actor \
                 on a blocking or pinned dispatcher that the head is not on"
            ),
            ManageError::EmptyPool { path } => write!(
                f,
                "pool size 0 for {path}: must be at least 1; drain or stop the router, or create it with \
                 `stay_when_empty`"
            ),
            ManageError::NotAPool { path } => {
                write!(f, "router {path} is a group: add and remove routees instead of resizing it")
            }
            ManageError::SharedQueue { path } => write!(
                f,
                "the routees of router {path} share a queue, and only routees of its own take from it: resize it \
                 instead of adding a routee"
            ),
            ManageError::OldTables { path, waiting } => write!(
                f,
                "router {path} was not changed: {waiting} old tables of its routees cannot be freed, look for a \
                 handler that does not return, for a sender that waits long for room in a mailbox, and for a logic that \
                 takes long; `old_tables_max` and `change_within` of the router's plan are the limits"
            ),
            ManageError::Spawn(error) => write!(f, "cannot create a routee: {error}"),
        }
    }
}

impl std::error::Error for ManageError {}

debug_by_display! { ManageError }
