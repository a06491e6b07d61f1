//! The handle to the node of a system, and the part that the system keeps.

use crate::core::extensions::Extension;
use crate::core::ledger::Ledger;
use crate::core::system::{SystemCore, SystemRef};
use crate::path::address::is_node_name;
use crate::remote::engine::Identity;
use crate::remote::far_identify::identify_at;
use crate::remote::hub::{Hub, HubInbound};
use crate::remote::link_report::LinkReport;
use crate::remote::node::{CheckedNode, Node, NodeError};
use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// The node of a system, by [`SystemRef::remote`](crate::SystemRef::remote). A clone is a handle to the same node.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::remote::{InProcess, Node, NodeEvent};
/// use std::sync::{Mutex, mpsc};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let network = InProcess::new();
/// let n1 = System::builder("shop").node(Node::new("n1").engine(network.clone())).build()?;
/// let _n2 = System::builder("shop").node(Node::new("n2").engine(network)).build()?;
/// let (sender, ups) = mpsc::channel();
/// let sender = Mutex::new(sender);
/// let _subscription = n1.events().on(move |event: &NodeEvent| {
///     if let NodeEvent::Up { node, .. } = event {
///         let _ = sender.lock().expect("no panic").send(node.clone());
///     }
/// });
/// let remote = n1.remote().expect("a node was described");
/// remote.connect("n2");
/// assert_eq!(ups.recv()?, "n2");
/// assert_eq!(remote.links()[0].node, "n2");
///
/// let before = remote.uid();
/// remote.rejoin();
/// assert_ne!(remote.uid(), before);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Remote {
    hub: Arc<Hub>,
}

impl SystemRef {
    /// Returns the node of this system; `None` if [none was described](crate::SystemBuilder::node).
    pub fn remote(&self) -> Option<Remote> {
        self.core().hub().map(|hub| Remote { hub: hub.clone() })
    }
}

impl SystemCore {
    /// The hub of the node, if the system has one.
    pub(crate) fn hub(&self) -> Option<&Arc<Hub>> {
        self.extensions.get::<NodeSlot>().hub.as_ref()
    }
}

impl Remote {
    /// The name of the node.
    pub fn node(&self) -> &str {
        &self.hub.settings.name.node
    }

    /// The UID of this start of the system, which changes when the node [rejoins](Self::rejoin).
    pub fn uid(&self) -> u64 {
        self.hub.uid()
    }

    /// Begins a link to a node before the first message to it. When it is up,
    /// [`NodeEvent::Up`](crate::remote::NodeEvent::Up) is published. A node that is not there yet is greeted until it comes;
    /// after some time without an answer this node waits for the greeting of the other one, or for the next message to it.
    ///
    /// The call does nothing but log a warning for the name of this node, and for a text that is no
    /// [name of a node](Node::new). It does nothing, too, when the node has as many peers as its
    /// [limit](crate::remote::Limits::associations) allows.
    pub fn connect(&self, node: &str) {
        if node == self.node() || !is_node_name(node) {
            return log::warn!(
                "node {} cannot be connected with {node:?}: give the name of another node, 1 to 64 ASCII letters, digits, \
                 '_' and '-'",
                self.node()
            );
        }
        self.hub.connect(node);
    }

    /// The accounts of all links: of those that have ended, the last 64, and then those that live.
    pub fn links(&self) -> Vec<LinkReport> {
        self.hub.links()
    }

    /// Takes a new UID: all that hangs on this node's links ends, at both sides, and links begin anew. Local actors live on.
    pub fn rejoin(&self) {
        self.hub.rejoin();
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("node", &self.node()).field("uid", &self.uid()).finish()
    }
}

/// The place of the node in a system.
#[derive(Default)]
pub(crate) struct NodeSlot {
    hub: Option<Arc<Hub>>,
}

/// A node whose engine is still to be started, when its system is complete.
pub(crate) struct StartingNode {
    engine: Box<dyn crate::remote::engine::Engine>,
    hub: Arc<Hub>,
}

impl NodeSlot {
    /// Checks the description of the node, and makes its hub.
    pub(crate) fn make(node: Node, system: &str) -> Result<(Self, StartingNode), NodeError> {
        let CheckedNode { settings, registry, factories, engine } = node.check(system)?;
        let hub = Hub::new(settings, registry, Box::new(factories));
        Ok((Self { hub: Some(hub.clone()) }, StartingNode { engine, hub }))
    }
}

impl StartingNode {
    /// Starts the engine.
    pub(crate) fn start(self, system: &SystemRef) -> Result<(), NodeError> {
        let Self { engine, hub } = self;
        let name = &hub.settings.name;
        let identity = Identity { node: name.node.clone(), cluster: name.cluster.clone(), uid: hub.uid() };
        hub.serve(system.core());
        let fabric = engine.start(&identity, HubInbound::of(&hub)).map_err(NodeError::Engine)?;
        hub.started(fabric);
        Ok(())
    }
}

impl Extension for NodeSlot {
    fn stop(&self, until: Option<Instant>) {
        if let Some(hub) = &self.hub {
            hub.stop(until);
        }
    }

    fn release(&self) {
        if let Some(hub) = &self.hub {
            hub.stop(Some(Instant::now()));
        }
    }

    fn add_to_ledger(&self, ledger: &mut Ledger) {
        if let Some(hub) = &self.hub {
            hub.add_to_ledger(ledger);
        }
    }

    fn stats(&self) -> Option<Box<dyn Any>> {
        let hub = self.hub.as_ref()?;
        Some(Box::new(hub.stats()))
    }

    fn selection_at(&self, node: &str, text: &str, message: TypeId) -> Option<Box<dyn Any + Send>> {
        let hub = self.hub.as_ref()?;
        hub.registry.selection(hub, node, text, message)
    }

    fn identify_at(&self, node: &str, text: &str, is_one: bool, to: &dyn Any) -> bool {
        let Some((hub, to)) = self.hub.as_ref().zip(to.downcast_ref()) else { return false };
        identify_at(hub, node, text, is_one, to);
        true
    }

    fn node_name(&self) -> Option<&str> {
        self.hub.as_ref().map(|hub| hub.settings.name.node.as_str())
    }
}

#[cfg(test)]
mod tests {
    use crate::remote::in_process::InProcess;
    use crate::remote::node::Node;
    use crate::system::System;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn a_system_that_ends_frees_its_hub() {
        let node = Node::new("n1").engine(InProcess::new());
        let system = System::builder("demo").node(node).build().expect("a sound node");
        let hub = Arc::downgrade(system.core().hub().expect("it is a node"));
        system.shutdown(Duration::from_secs(30)).expect("it ends");
        assert_eq!(hub.strong_count(), 0);
    }
}
