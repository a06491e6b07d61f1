//! The table of the nodes that mount a remote group, which senders read and the search replaces.

use crate::core::actor_ref::ActorRef;
use crate::util::reclaim;
use crate::util::reclaim::Published;

/// The nodes that mount a group, and the group's reference at each, in the order of their names.
pub(crate) struct NodeTable<D> {
    pub names: Vec<String>,
    pub groups: Vec<ActorRef<D>>,
}

impl<D> NodeTable<D> {
    pub(crate) fn index_of(&self, node: &str) -> Option<usize> {
        self.names.binary_search_by(|name| name.as_str().cmp(node)).ok()
    }
}

/// The present table. Senders read it without a lock and without a count.
pub(crate) struct NodeTables<D> {
    present: Published<NodeTable<D>>,
}

impl<D: Send + 'static> NodeTables<D> {
    pub(crate) fn new() -> Self {
        Self { present: Published::new(NodeTable { names: Vec::new(), groups: Vec::new() }) }
    }

    /// Reads the present table.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&NodeTable<D>) -> R) -> R {
        read(self.present.read(&reclaim::section()))
    }

    /// Returns the names of the nodes that mount the group.
    pub(crate) fn names(&self) -> Vec<String> {
        self.read(|table| table.names.clone())
    }

    /// Enters the group of a node, in the place of the one before.
    pub(crate) fn enter(&self, node: &str, group: ActorRef<D>) {
        self.change(node, Some(group));
    }

    /// Takes all nodes out.
    pub(crate) fn clear(&self) {
        self.names().iter().for_each(|node| self.remove(node));
    }

    /// Takes a node out.
    pub(crate) fn remove(&self, node: &str) {
        self.change(node, None);
    }

    /// Sets or removes the group of a node. The search alone does so, and one change at a time.
    fn change(&self, node: &str, group: Option<ActorRef<D>>) {
        let mut all: Vec<(String, ActorRef<D>)> = self.read(|before| {
            let others = before.names.iter().zip(&before.groups).filter(|(name, _)| *name != node);
            others.map(|(name, group)| (name.clone(), group.clone())).collect()
        });
        all.extend(group.map(|group| (node.to_owned(), group)));
        all.sort_by(|one, other| one.0.cmp(&other.0));
        let (names, groups) = all.into_iter().unzip();
        self.present.replace(NodeTable { names, groups });
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_in_order_and_each_is_there_once() {
        let tables = NodeTables::<u8>::new();
        for node in ["n3", "n1", "n2", "n1"] {
            tables.enter(node, ActorRef::from_fn(|_: u8| {}));
        }
        tables.read(|before| {
            assert_eq!(before.names, ["n1", "n2", "n3"]);
            assert_eq!((before.index_of("n2"), before.index_of("n4")), (Some(1), None));
            tables.remove("n2");
            tables.remove("n4");
            assert_eq!(tables.names(), ["n1", "n3"]);
            assert_eq!(before.groups.len(), 3, "a sender keeps the table that it reads");
        });
        tables.clear();
        assert!(tables.names().is_empty());
    }
}
