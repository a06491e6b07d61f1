//! Recipients that stand for actors of other systems.

use crate::path::actor_path::ActorPath;
use crate::sync::OnceLock;
use std::any::Any;

/// An actor of another system, behind a reference here.
pub(crate) trait Elsewhere: Any {
    /// The path of the actor, with the address of its system and its uid.
    fn path(&self) -> ActorPath;

    fn uid(&self) -> u32;

    /// The value itself, for the feature whose recipient it is.
    #[cfg(feature = "remote")]
    fn as_any(&self) -> &dyn Any;
}

/// The actor elsewhere that a cell stands for, and the end of that actor.
pub(crate) struct Standing {
    /// The name of the cell among its siblings; `None` for a generated name.
    pub(crate) name: Option<Box<str>>,
    /// Whether the actor elsewhere is a child of the cell's parent, and not only watched.
    #[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "nodes alone make stand-ins"))]
    pub(crate) is_child: bool,
    /// With the address of the other system, and the uid of the actor.
    pub(crate) path: ActorPath,
    /// The `ActorRef` of the actor elsewhere, which is there as long as the cell.
    pub(crate) reference: Box<dyn Any + Send + Sync>,
    /// Set before the cell ends, unless its own system ends.
    pub(crate) end: OnceLock<EndElsewhere>,
}

/// A name and uid that another system has chosen for an actor here.
pub(crate) struct NamedElsewhere {
    pub(crate) name: Box<str>,
    pub(crate) uid: u32,
}

/// The end of an actor elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndElsewhere {
    /// Whether the actor was alive when it was first watched.
    pub(crate) existed: bool,
    /// Whether its node is gone, and the actor itself may live on.
    pub(crate) node_down: bool,
}
