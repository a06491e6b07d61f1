//! A remote entry is the part of a remote group that its topology keeps: its name, its search, and what is shown of it.

/// A remote group as its topology sees it, whatever its type of message is.
pub(crate) trait RemoteEntry: Send + Sync {
    fn name(&self) -> &str;

    /// Begins to look for nodes that mount the group, unless that has begun.
    fn begin_search(&self);

    fn info(&self) -> RemoteGroupInfo;
}

/// Remote group info describes a remote group of a [`Topology`](crate::topology::Topology), as
/// [`Topology::remotes`](crate::topology::Topology::remotes) shows it.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::remote::{InProcess, Node};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::new("n1").engine(InProcess::new()).message::<String>();
/// let system = System::builder("shop").node(node).build()?;
/// let topology = system.topology();
/// let _orders = topology.remote::<String>("orders")?;
/// let shown = &topology.remotes()[0];
/// assert_eq!((shown.name.as_str(), shown.path.as_str()), ("orders", "/user/orders"));
/// assert!(shown.nodes.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteGroupInfo {
    /// The group's name in this topology.
    pub name: String,
    /// The name of the type of message that the group takes.
    pub message_type: &'static str,
    /// The path that the group has at other nodes.
    pub path: String,
    /// The nodes that mount the group now, in the order of their names.
    pub nodes: Vec<String>,
}
