//! The messages that a router's head takes, and why one may fail.

use crate::actor_ref::{ActorRef, Call, Request};
use crate::error::SpawnError;
use std::fmt;
use std::marker::PhantomData;

/// What a router's head can be asked: through [`Router`](super::Router), or by `ctx.ask` from an actor.
#[non_exhaustive]
pub enum Manage<M: Send + 'static> {
    /// Change a pool's size.
    ResizeTo(Call<ResizeTo>),
    /// Add a routee.
    Add(Call<AddRoutee<M>>),
    /// Remove a routee.
    Remove(Call<RemoveRoutee<M>>),
    /// List the routees.
    Routees(Call<GetRoutees<M>>),
}

/// Make a pool's size `size`; the reply is the size before.
#[derive(Debug, Clone, Copy)]
pub struct ResizeTo {
    /// The size wanted, at least 1.
    pub size: usize,
}

/// Add a routee at the end; the reply is how many there are then.
#[derive(Debug, Clone)]
pub struct AddRoutee<M: Send + 'static> {
    /// The routee.
    pub routee: ActorRef<M>,
}

/// Remove every entry of a routee; the reply is whether it was one.
#[derive(Debug, Clone)]
pub struct RemoveRoutee<M: Send + 'static> {
    /// The routee.
    pub routee: ActorRef<M>,
}

/// List the routees.
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

impl Request for ResizeTo {
    type Reply = Result<usize, ManageError>;
}

impl<M: Send + 'static> Request for AddRoutee<M> {
    type Reply = Result<usize, ManageError>;
}

impl<M: Send + 'static> Request for RemoveRoutee<M> {
    type Reply = Result<bool, ManageError>;
}

impl<M: Send + 'static> Request for GetRoutees<M> {
    type Reply = Vec<ActorRef<M>>;
}

impl<M: Send + 'static> From<Call<ResizeTo>> for Manage<M> {
    fn from(call: Call<ResizeTo>) -> Self {
        Manage::ResizeTo(call)
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
            Manage::ResizeTo(_) => "ResizeTo",
            Manage::Add(_) => "Add",
            Manage::Remove(_) => "Remove",
            Manage::Routees(_) => "Routees",
        })
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
