//! Node choices are the predicates of a route to a remote group: together they choose the nodes that get a message.

use crate::topology::node_route::NodeRoute;
use crate::topology::node_table::NodeTable;
use crate::util::panic::Guarded;

/// A predicate gets the message and the names of the nodes that mount the group.
pub(crate) type NodeChoice<M> =
    Guarded<Box<dyn for<'a> Fn(&'a M, &'a [String]) -> NodeRoute<'a> + Send + Sync>>;

/// The predicates of a route. All are evaluated, and a node gets the message once if any of them names it.
pub(crate) struct NodeChoices<M> {
    pub list: Vec<NodeChoice<M>>,
    /// All nodes get each message.
    pub all: bool,
}

/// The nodes that a message goes to.
pub(crate) struct ChosenNodes {
    /// The places in the table, in order.
    pub present: Vec<usize>,
    /// The named nodes that do not mount the group.
    pub absent: Vec<String>,
    /// No predicate has named any node, not even in an empty list.
    pub is_discarded: bool,
}

impl<M> NodeChoices<M> {
    pub(crate) fn choose<D>(&self, message: &M, table: &NodeTable<D>) -> ChosenNodes {
        let mut chosen = ChosenNodes { present: Vec::new(), absent: Vec::new(), is_discarded: !self.all };
        let mut all = self.all;
        for choice in &self.list {
            let route = choice(message, &table.names);
            chosen.is_discarded &= matches!(route, NodeRoute::Discard | NodeRoute::Default);
            match route {
                NodeRoute::Unicast(node) => chosen.add(node, table),
                NodeRoute::Multicast(nodes) => nodes.into_iter().for_each(|node| chosen.add(node, table)),
                NodeRoute::Broadcast => all = true,
                NodeRoute::Discard | NodeRoute::Default => {}
            }
        }
        if all {
            chosen.present = (0..table.names.len()).collect();
        }
        chosen.present.sort_unstable();
        chosen
    }
}

impl ChosenNodes {
    fn add<D>(&mut self, node: &str, table: &NodeTable<D>) {
        match table.index_of(node) {
            Some(index) if !self.present.contains(&index) => self.present.push(index),
            None if !self.absent.iter().any(|absent| absent == node) => self.absent.push(node.to_owned()),
            _ => {}
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::core::actor_ref::ActorRef;

    fn chosen(choices: Vec<NodeChoice<u8>>, all: bool) -> (Vec<usize>, Vec<String>, bool) {
        let names: Vec<String> = ["n1", "n2", "n3"].map(str::to_owned).into();
        let groups = names.iter().map(|_| ActorRef::from_fn(|_: u8| {})).collect();
        let chosen = NodeChoices { list: choices, all }.choose(&7, &NodeTable { names, groups });
        (chosen.present, chosen.absent, chosen.is_discarded)
    }

    fn choice(
        choose: impl for<'a> Fn(&'a u8, &'a [String]) -> NodeRoute<'a> + Send + Sync + 'static,
    ) -> NodeChoice<u8> {
        Guarded::new(Box::new(choose))
    }

    #[test]
    fn several_predicates_name_each_node_once() {
        let choices = vec![
            choice(|_, nodes| NodeRoute::Multicast(vec![&nodes[2], "n9", &nodes[0], "n9"])),
            choice(|_, _| NodeRoute::Unicast("n1")),
            choice(|_, _| NodeRoute::Default),
        ];
        assert_eq!(chosen(choices, false), (vec![0, 2], vec!["n9".to_owned()], false));
        let choices = vec![choice(|_, _| NodeRoute::Unicast("n2")), choice(|_, _| NodeRoute::Broadcast)];
        assert_eq!(chosen(choices, false), (vec![0, 1, 2], Vec::new(), false));
    }

    #[test]
    fn only_a_message_that_no_predicate_takes_is_discarded() {
        let discards = || vec![choice(|_, _| NodeRoute::Discard), choice(|_, _| NodeRoute::Default)];
        assert_eq!(chosen(discards(), false), (Vec::new(), Vec::new(), true));
        assert_eq!(chosen(discards(), true), (vec![0, 1, 2], Vec::new(), false));
        let choices = vec![choice(|_, _| NodeRoute::Multicast(Vec::new()))];
        assert_eq!(chosen(choices, false), (Vec::new(), Vec::new(), false));
    }
}
