//! The reasons why an actor cannot be deployed on another node.

use crate::util::debug_by_display::debug_by_display;
use std::fmt;

/// The reason why an actor cannot be deployed on another node, as it is found before anything is sent.
///
/// A fault that the other node finds later is a [failure of initialization](crate::FailureKind::Initialization) of the new actor, which
/// its parent judges.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeployFault {
    /// The system is no node.
    NoNode,
    /// The text is no name of a node.
    NodeName {
        /// The text.
        node: String,
    },
    /// This node is associated with as many others as it may.
    TooManyNodes,
    /// The path that the actor would have on the other node is too long or too deep.
    Path {
        /// The path.
        path: String,
        /// The fault of the path.
        why: String,
    },
    /// The arguments cannot be written.
    Arguments {
        /// The fault of the arguments.
        why: String,
    },
    /// The arguments and names are too large for one message of control.
    TooLarge {
        /// The bytes that they take.
        size: usize,
        /// The most bytes that they may take.
        max: usize,
    },
    /// The mailbox is described by code, which cannot go to another node.
    Mailbox,
    /// The router is no [deployable pool](crate::routing::RouterBuilder::deployable_pool).
    NotDeployable,
    /// This node has no factory of routers for this name, arguments and type of messages.
    RouterFactory {
        /// The name.
        factory: String,
        /// The difference from the factory of this name, if there is one.
        why: &'static str,
    },
    /// A pool names no node for its routees.
    NoNodes,
    /// A pool names the nodes of its routees twice.
    RemotePoolOfRemotePool,
    /// The routees of a pool share a queue.
    SharedQueue,
    /// A pool has its routees skip unwanted messages.
    SkipUnwanted,
    /// Two types of messages have one name on the wire.
    MessageName {
        /// The name of the type that the actor takes.
        message_type: &'static str,
    },
}

impl fmt::Display for DeployFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeployFault::NoNode => {
                f.write_str("the system is no node: describe one by `SystemBuilder::node`")
            }
            DeployFault::NodeName { node } => write!(
                f,
                "{node:?} is no name of a node: use 1 to 64 ASCII letters, digits, '_' and '-', the first of them a letter \
                 or digit"
            ),
            DeployFault::TooManyNodes => {
                f.write_str("this node knows too many others: raise `[remote.limits] associations`")
            }
            DeployFault::Path { path, why } => {
                write!(f, "its path there would be {path}: {why}; use shorter names, or fewer levels of parents")
            }
            DeployFault::Arguments { why } => write!(f, "its arguments cannot be written: {why}"),
            DeployFault::TooLarge { size, max } => write!(
                f,
                "its arguments and names take {size} bytes, and at most {max} are allowed: send what is large in a message"
            ),
            DeployFault::Mailbox => f.write_str(
                "its mailbox is described by code, which cannot go to another node: give a name that the other node has \
                 for the mailbox, or let the actor's type choose it",
            ),
            DeployFault::NotDeployable => f.write_str(
                "its routees cannot be made on other nodes: describe it by `deployable_pool`, or leave the nodes out",
            ),
            DeployFault::RouterFactory { factory, why } => write!(
                f,
                "this node has no such factory of routers as {factory:?}: {why}; register it by `Node::router_factory`"
            ),
            DeployFault::NoNodes => f.write_str("it names no node for its routees: name at least one"),
            DeployFault::RemotePoolOfRemotePool => f.write_str(
                "it names the nodes of its routees twice, and a remote pool is no routee of a remote pool: call \
                 `on_nodes` once",
            ),
            DeployFault::SharedQueue => f.write_str(
                "its routees share a queue, which is on one node: choose another logic, or leave the nodes out",
            ),
            DeployFault::SkipUnwanted => f.write_str(
                "routees on other nodes cannot be told to skip unwanted messages: leave `skip_unwanted` out, and call \
                 `Context::skip_unwanted` in `Deploy::deploy`",
            ),
            DeployFault::MessageName { message_type } => write!(
                f,
                "another type has the name of {message_type} on the wire: give one of them another name or version"
            ),
        }
    }
}

impl std::error::Error for DeployFault {}

debug_by_display! { DeployFault }
