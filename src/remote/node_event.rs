//! The events of a node, for the event stream of its system.

use crate::remote::association::{EndReason, Refusal};
use std::fmt;

/// An event of this system's node, on the [event stream](crate::SystemRef::events).
///
/// Functions that [subscribe](crate::events::EventStream::on) run on the thread that has brought the event: a thread of the
/// engine, the timer thread, or the thread that has called the node. They must not block. While such a function runs, the
/// node takes no frame from that thread, and its heartbeats may be late. A function that has more to do sends the event to
/// an actor, or subscribes the actor itself.
///
/// Each event is a line of the log as well, a warning if it is bad news.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::remote::{InProcess, Node, NodeEvent};
/// use std::sync::{Mutex, mpsc};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let network = InProcess::new();
/// let n1 = System::builder("shop").node(Node::new("n1").engine(network.clone())).build()?;
/// let n2 = System::builder("shop").node(Node::new("n2").engine(network)).build()?;
/// let (sender, events) = mpsc::channel();
/// let sender = Mutex::new(sender);
/// let _subscription = n1.events().on(move |event: &NodeEvent| {
///     let _ = sender.lock().expect("no panic").send(event.clone());
/// });
/// n1.remote().expect("a node was described").connect("n2");
/// let up = events.iter().find(|event| matches!(event, NodeEvent::Up { .. }));
/// let n2_uid = n2.remote().expect("a node was described").uid();
/// assert_eq!(up, Some(NodeEvent::Up { node: "n2".into(), uid: n2_uid }));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeEvent {
    /// Messages go both ways between this node and another from now on.
    Up {
        /// The name of the node.
        node: String,
        /// The UID of its start.
        uid: u64,
    },
    /// The node has been silent for so long that it may be down.
    Suspect {
        /// The name of the node.
        node: String,
        /// The UID of its start.
        uid: u64,
    },
    /// A node that was suspected was heard again.
    Reachable {
        /// The name of the node.
        node: String,
        /// The UID of its start.
        uid: u64,
    },
    /// This start of the node is down for good: all that hung on it has ended.
    Down {
        /// The name of the node.
        node: String,
        /// The UID of its start.
        uid: u64,
        /// The cause.
        reason: DownReason,
    },
    /// A node has declared this system down.
    Quarantined {
        /// The UID of the other node's start.
        by: u64,
    },
    /// This system has taken a new UID, since a node had declared it down by the old one.
    Rejoined {
        /// The UID before.
        old: u64,
        /// The UID from now on.
        new: u64,
    },
    /// The node refuses this one, which tries again each minute.
    LinkRefused {
        /// The name of the node.
        node: String,
        /// The cause.
        reason: RefusalReason,
    },
    /// The engine is connected.
    EngineUp,
    /// The engine is not connected any more, and tries again.
    EngineDown {
        /// The cause, as the engine tells it.
        why: String,
    },
}

impl fmt::Display for NodeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up { node, uid } => write!(f, "node {node} is up, with the UID {uid}"),
            Self::Suspect { node, .. } => write!(f, "node {node} is silent and may be down"),
            Self::Reachable { node, .. } => write!(f, "node {node} is heard again"),
            Self::Down { node, uid, reason } => {
                write!(f, "node {node} with the UID {uid} is down for good: {reason}")
            }
            Self::Quarantined { by } => {
                write!(
                    f,
                    "the node with the UID {by} has declared this one down: `Node::on_quarantine` says what follows"
                )
            }
            Self::Rejoined { new, .. } => {
                write!(f, "this node has the new UID {new}, since another node had declared it down")
            }
            Self::LinkRefused { node, reason } => {
                write!(f, "node {node} refuses this node, which tries again in a minute: {reason}")
            }
            Self::EngineUp => f.write_str("the engine of this node is connected"),
            Self::EngineDown { why } => {
                write!(f, "the engine of this node is not connected, and tries again: {why}")
            }
        }
    }
}

impl NodeEvent {
    /// The level of its line in the log.
    pub(crate) fn level(&self) -> log::Level {
        match self {
            Self::Up { .. } | Self::Reachable { .. } | Self::EngineUp => log::Level::Info,
            Self::Down { reason: DownReason::Goodbye, .. } => log::Level::Info,
            _ => log::Level::Warn,
        }
    }
}

/// The cause of the end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DownReason {
    /// The node was silent for too long.
    Silent,
    /// The node has ended, and has said so.
    Goodbye,
    /// The node was started again, with another UID.
    NewUid,
    /// The node does not keep to the protocol, or acknowledges nothing.
    Fault,
    /// One of both systems has declared the other one down.
    Quarantined,
}

impl fmt::Display for DownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silent => "it was silent for too long",
            Self::Goodbye => "it has ended",
            Self::NewUid => "it was started again",
            Self::Fault => "it does not keep to the protocol, or acknowledges nothing",
            Self::Quarantined => "one of both nodes has declared the other one down",
        })
    }
}

impl From<EndReason> for DownReason {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Silent => Self::Silent,
            EndReason::Goodbye => Self::Goodbye,
            EndReason::NewUid => Self::NewUid,
            EndReason::Fault => Self::Fault,
            EndReason::Quarantined => Self::Quarantined,
        }
    }
}

/// The cause of a refusal. As text it says what to do.
///
/// ```
/// use pointsman::remote::RefusalReason;
///
/// let text = RefusalReason::Cluster.to_string();
/// assert_eq!(text, "it is of another cluster: give both nodes the same name by `Node::cluster`");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The node is of another [cluster](crate::remote::Node::cluster).
    Cluster,
    /// Its system has another name.
    System,
    /// It speaks no version of the protocol that this node speaks.
    Protocol,
    /// It has the name of this node.
    OwnName,
    /// Another living system has the name of this node.
    DuplicateName,
    /// The greeting has a value that it cannot use.
    Invalid,
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cluster => "it is of another cluster: give both nodes the same name by `Node::cluster`",
            Self::System => "its system has another name: give both systems the same name by `System::builder`",
            Self::Protocol => {
                "it speaks no version of the protocol that this node speaks: upgrade the node with the older crate"
            }
            Self::OwnName => "it has the name of this node: give each node a name of its own by `Node::new`",
            Self::DuplicateName => {
                "another living system has the name of this node: end that system, or give this node another name by \
                 `Node::new`"
            }
            Self::Invalid => {
                "it cannot use a value in the greeting of this node: upgrade the node with the older crate"
            }
        })
    }
}

impl From<Refusal> for RefusalReason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Cluster => Self::Cluster,
            Refusal::System => Self::System,
            Refusal::Protocol => Self::Protocol,
            Refusal::OwnName => Self::OwnName,
            Refusal::DuplicateName => Self::DuplicateName,
            Refusal::Invalid => Self::Invalid,
        }
    }
}
