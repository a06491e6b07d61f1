//! The statistics of routers. The routers implement the trait; the walk finds it at their heads.

use crate::core::actor_ref::RecipientLoad;
use crate::path::actor_path::ActorPath;
use std::sync::Arc as StdArc;

/// A router and its routees.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouterStats {
    /// The place of the router in the tree.
    pub path: ActorPath,
    /// The name of the logic, as settings have it; of a logic without a name, the name of its type.
    pub logic: String,
    /// The number of tables of routees that the router has published.
    pub version: u64,
    /// The routees, in the order of the table.
    pub routees: Vec<RouteeStats>,
    /// How often a routee has refused a message or a copy, since its mailbox was full or it had stopped. Another routee may
    /// have taken the message.
    pub refused: u64,
    /// Messages that no routee has taken, since there was none or each had stopped.
    pub no_routee: u64,
    /// Attempts of the requests to a scatter-gather or tail-chopping router.
    pub attempts: u64,
    /// Replies to such requests that came after the outcome.
    pub late: u64,
}

/// A routee of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouteeStats {
    /// The identity of the routee: the path of an actor, or the text by which the router knows another recipient.
    pub identity: String,
    /// The number of the actor's incarnation; 0 where no actor stands behind.
    pub uid: u32,
    /// The load of the routee.
    pub load: RecipientLoad,
    /// Messages that the routee has handled, from the router and from elsewhere; 0 where no actor stands behind.
    pub handled: u64,
}

/// Shows the present state of a router.
pub(crate) trait RouterView: Send + Sync {
    /// Returns the state; may run user code.
    fn stats(&self) -> RouterStats;
}

/// The view that a head keeps for the walk.
#[derive(Clone)]
pub(crate) struct ShownRouter(pub StdArc<dyn RouterView>);
