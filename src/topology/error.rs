//! A topology error says what is wrong with a topology.

use crate::path::actor_path::ActorPath;
use crate::path::error::{NameError, PathError};
use crate::util::debug_by_display::debug_by_display;
use std::fmt;

/// A topology error says why a topology cannot be as it was described.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopologyError {
    /// A group cannot have this name.
    Name(NameError),
    /// Two groups have the same name.
    DuplicateGroup {
        /// The name.
        name: String,
    },
    /// Two routes lead a message that cannot be cloned to different groups.
    SecondRoute {
        /// The group that the routes belong to.
        group: String,
        /// The two groups that the routes lead to.
        to: [String; 2],
        /// The type of message.
        message_type: &'static str,
    },
    /// A group of other nodes is declared, and the system is no node.
    NoNode {
        /// The name of the group.
        group: String,
    },
    /// A group of other nodes takes a type of message that this node does not know.
    UnregisteredMessage {
        /// The name of the group.
        group: String,
        /// The type of message.
        message_type: &'static str,
    },
    /// A group cannot be on this node.
    Node {
        /// The name of the group.
        group: String,
        /// The name of the node.
        node: String,
    },
    /// A group of other nodes cannot have this path there.
    Path(PathError),
    /// Groups were declared and never mounted.
    Unmounted {
        /// The names of the groups, in the order of their declaration.
        groups: Vec<String>,
    },
    /// The topology has started already.
    Started,
    /// The topology has not started yet.
    NotStarted,
    /// Another configuration is on its way to the groups, or another thread starts them.
    Busy,
    /// All configurers have ended, and none has brought a configuration: the other groups have none.
    Unconfigured {
        /// The names of the configurers.
        entrypoints: Vec<String>,
    },
    /// The configuration is not TOML, or is nested too deeply.
    Syntax {
        /// The fault, and its place.
        fault: String,
    },
    /// The configuration has a section for a group that does not exist.
    UnknownSection {
        /// The name after `topology.`.
        name: String,
        /// The groups that exist.
        known: Vec<String>,
    },
    /// Groups reject their sections of the configuration: no group has got its section.
    #[doc(alias = "ConfigRejected")]
    Rejected {
        /// The names of the groups that reject, each with the reason that the group gives, in the order of declaration.
        rejections: Vec<(String, String)>,
    },
    /// Actors refuse the sections of their groups: no group has got its section.
    Refused {
        /// The refusals, by the order of declaration of the groups.
        refusals: Vec<ConfigRefusal>,
    },
    /// Actors validate the configuration, and this thread must not wait for them: it runs an actor, a timer, or
    /// another part of the engine.
    MustNotWait,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => write!(f, "group of a topology: {error}"),
            Self::DuplicateGroup { name } => {
                write!(f, "two groups are named {name:?}: give each a name of its own")
            }
            Self::SecondRoute { group, to: [first, second], message_type } => write!(
                f,
                "group {group:?} routes {message_type} to {first:?} and to {second:?} without being able to clone it: \
                 use `route_to`, or keep one of the routes"
            ),
            Self::NoNode { group } => write!(
                f,
                "group {group:?} is one of other nodes, and this system is no node: describe one by `SystemBuilder::node`"
            ),
            Self::UnregisteredMessage { group, message_type } => write!(
                f,
                "group {group:?} of other nodes takes {message_type}, which this node does not know: register it by \
                 `Node::message`"
            ),
            Self::Node { group, node } => write!(
                f,
                "group {group:?} cannot be on node {node:?}: give the name of another node, 1 to 64 ASCII letters, digits, \
                 '_' and '-'"
            ),
            Self::Path(error) => write!(f, "group of other nodes: {error}"),
            Self::Unmounted { groups } => {
                write!(
                    f,
                    "groups {groups:?} are declared and not mounted: mount them, or take their routes out"
                )
            }
            Self::Started => f.write_str("the topology has started already: start it once"),
            Self::NotStarted => f.write_str("the topology has not started yet: call `start` first"),
            Self::Busy => f.write_str("another configuration is on its way: try again when it has arrived"),
            Self::Unconfigured { entrypoints } => write!(
                f,
                "configurers {entrypoints:?} have ended and brought no configuration: let one call `reconfigure`, or \
                 give the system's builder the sections"
            ),
            Self::Syntax { fault } => write!(f, "configuration of the topology: {fault}"),
            Self::UnknownSection { name, known } => {
                write!(f, "section `topology.{name}`: no group has this name, choose one of {known:?}")
            }
            Self::Refused { refusals } => {
                f.write_str("configuration refused")?;
                for (number, refusal) in refusals.iter().enumerate() {
                    write!(f, "{} {refusal}", if number == 0 { ':' } else { ';' })?;
                }
                Ok(())
            }
            Self::MustNotWait => f.write_str(
                "actors validate the configuration, and this thread must not wait for them: reconfigure from another \
                 thread, in an actor by `pipe_blocking_to_self`",
            ),
            Self::Rejected { rejections } => {
                f.write_str("configuration rejected")?;
                for (number, (group, reason)) in rejections.iter().enumerate() {
                    write!(f, "{} `topology.{group}`: {reason}", if number == 0 { ':' } else { ';' })?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for TopologyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Name(error) => Some(error),
            Self::Path(error) => Some(error),
            _ => None,
        }
    }
}

debug_by_display! { TopologyError }

impl From<NameError> for TopologyError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

/// The refusal of an actor to follow a new configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigRefusal {
    /// The group whose section the actor refuses.
    pub group: String,
    /// The path of the actor.
    pub actor: ActorPath,
    /// The text of the actor, or the reason why it has not answered.
    pub reason: String,
}

impl fmt::Display for ConfigRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`topology.{}`: actor {}: {}", self.group, self.actor, self.reason)
    }
}
