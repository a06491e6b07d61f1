//! The nodes of the routees of a pool.

use crate::core::any_actor_ref::AnyActorRef;

/// The nodes of the routees of a pool.
#[derive(Debug, Clone, Default)]
pub(crate) struct PoolNodes {
    /// Whether other nodes can make the routees.
    pub(crate) is_deployable: bool,
    /// `None`: the own node.
    names: Option<Vec<String>>,
    /// The code has named nodes twice.
    pub(crate) are_nested: bool,
    /// The code has asked for [`skip_unwanted`](crate::routing::RouterPlan::skip_unwanted).
    pub(crate) skips_unwanted: bool,
}

impl PoolNodes {
    /// The node and the name of the routee of this number, if nodes are named.
    pub(crate) fn of(&self, routee_index: u32) -> Option<(&str, String)> {
        let names = self.names.as_deref().filter(|names| !names.is_empty())?;
        let node = &names[routee_index as usize % names.len()];
        Some((node, format!("c{}", u64::from(routee_index) + 1)))
    }

    pub(crate) fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// Names the nodes.
    pub(crate) fn name(&mut self, names: Vec<String>) {
        self.are_nested |= self.names.is_some();
        self.names = Some(names);
    }

    /// The nodes that the settings of the system name instead of the code.
    pub(crate) fn replace(&mut self, names: &[String]) {
        self.names = Some(names.to_vec());
    }

    /// Whether routees are made elsewhere alone, so that dispatchers and mailboxes are those of other nodes.
    pub(crate) fn are_all_elsewhere(&self, parent: &AnyActorRef) -> bool {
        let own = parent.core().system.hub().map(|hub| &hub.settings.name.node);
        self.names.as_ref().is_some_and(|names| !names.iter().any(|node| Some(node) == own))
    }
}
