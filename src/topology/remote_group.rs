//! A remote group is a group that other nodes mount: routes lead to it, and their predicates choose the nodes.
//!
//! A route's destination offers a copy to the far reference of each chosen node, on the sender's thread. The node table says
//! which nodes there are, and the node search keeps it.

use crate::core::actor_ref::ActorRef;
use crate::core::multi_send::{Copier, Copies, SendOp};
use crate::core::system::SystemRef;
use crate::path::address::is_node_name;
use crate::path::canonical_path::parse_canonical;
use crate::path::error::{PathError, PathFault};
use crate::remote::asking_each::asking_each;
use crate::remote::hub::Hub;
use crate::remote::wire::Wire;
use crate::sync::{Mutex, lock};
use crate::topology::error::TopologyError;
use crate::topology::node_choices::{NodeChoice, NodeChoices};
use crate::topology::node_route::NodeRoute;
use crate::topology::node_search::{self, Sought};
use crate::topology::node_table::{NodeTable, NodeTables};
use crate::topology::outlet::{Inside, MessageDestination};
use crate::topology::plan::{DeclaredGroup, Topology};
use crate::topology::remote_entry::{RemoteEntry, RemoteGroupInfo};
use crate::topology::wraps::{Wraps, taken_back};
use crate::util::panic::Guarded;
use std::any::Any;
use std::fmt;
use std::sync::Arc as StdArc;

/// A remote group is a group of a [`Topology`] that other nodes mount, from [`Topology::remote`]. Groups of this process
/// route messages to it: [to all nodes](DeclaredGroup::route_all_to_nodes) that mount the group, or to those that
/// [a predicate](DeclaredGroup::route_to_nodes) names. At each of these nodes the group's own router chooses the actors.
///
/// The group is the actor, the router or the keyed group at the path `/user/<name>` of another node, or at
/// [another path](Self::at_path). Every node with a link to this one is asked for it, or only [named ones](Self::on_nodes).
/// Its [policy](crate::remote::Policy::allow_path) must list the path, and must know `D` by
/// [`Node::message`](crate::remote::Node::message). The search begins when the topology
/// [starts](Topology::start). A node is asked when its link is up, and again after 1 s to 10 s until it has the group, by the
/// system's clock. A group that ends, and a node that is lost, leave at once; both are asked for again.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::remote::{InProcess, Node, Policy, Wire};
/// use pointsman::topology::{NodeRoute, Outlet};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Serialize, Deserialize)]
/// struct Book(u64);
/// impl Request for Book {
///     type Reply = String;
/// }
///
/// #[derive(Clone, Message, Wire, Serialize, Deserialize)]
/// #[wire(name = "shop.LedgerMsg")]
/// enum LedgerMsg {
///     Book(Call<Book>),
/// }
///
/// struct Ledger(String);
/// impl Actor for Ledger {
///     type Message = LedgerMsg;
///     fn receive(&mut self, LedgerMsg::Book(call): LedgerMsg, _: &mut Context<LedgerMsg>) -> HandlerResult {
///         call.answer(|Book(account)| format!("{account} at {}", self.0));
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let network = InProcess::new();
/// // Two nodes mount the group. The policy of each lists its path.
/// let ledgers_at = |name: &'static str| -> Result<System, Box<dyn std::error::Error>> {
///     let policy = Policy::closed().allow_path("/user/ledgers");
///     let node = Node::new(name).engine(network.clone()).message::<LedgerMsg>().policy(policy);
///     let system = System::builder("shop").node(node).build()?;
///     system.group("ledgers").singleton(move |_| Ledger(name.to_owned())).spawn()?;
///     Ok(system)
/// };
/// let (_n2, _n3) = (ledgers_at("n2")?, ledgers_at("n3")?);
///
/// // A third node routes to it.
/// let node = Node::new("n1").engine(network.clone()).message::<LedgerMsg>();
/// let n1 = System::builder("shop").node(node).build()?;
/// let topology = n1.topology();
/// let gateway = topology.local::<u64>("gateway")?;
/// let ledgers = topology.remote::<LedgerMsg>("ledgers")?.on_nodes(["n2", "n3"])?;
/// gateway.route_to_nodes(&ledgers, |call: &Call<Book>, nodes| match call.request {
///     Book(0) => NodeRoute::Broadcast,
///     Book(account) => NodeRoute::Unicast(&nodes[account as usize % nodes.len()]),
/// });
/// let books: Outlet<Call<Book>> = gateway.outlet();
/// gateway.mount(&ActorRef::from_fn(|_: u64| {}));
/// topology.start()?;
/// # while ledgers.nodes().len() < 2 { std::thread::yield_now(); }
/// assert_eq!(ledgers.nodes(), ["n2", "n3"]);
/// assert_eq!(books.request(Book(7)).all().wait()?, [Ok("7 at n3".to_owned())]);
/// let mut all: Vec<String> = books.request(Book(0)).all().wait()?.into_iter().flatten().collect();
/// all.sort();
/// assert_eq!(all, ["0 at n2", "0 at n3"]);
/// # Ok(())
/// # }
/// ```
///
/// A clone is another handle to the same group.
pub struct RemoteGroup<D> {
    shared: StdArc<Shared<D>>,
}

struct Shared<D> {
    name: StdArc<str>,
    system: SystemRef,
    hub: StdArc<Hub>,
    tables: StdArc<NodeTables<D>>,
    plan: Mutex<Plan>,
}

/// The plan of the search, which is fixed when the search begins.
#[derive(Clone)]
struct Plan {
    path: String,
    only: Option<Vec<String>>,
    is_begun: bool,
}

impl Topology {
    /// Declares a group that other nodes mount, and that takes messages of type `D`: see [`RemoteGroup`].
    ///
    /// # Errors
    ///
    /// [`TopologyError::Name`] and [`TopologyError::DuplicateGroup`], as [`local`](Self::local), with which remote groups
    /// share their names; [`TopologyError::NoNode`] if the system is no node; [`TopologyError::UnregisteredMessage`] if the
    /// node does not know the type.
    pub fn remote<D: Wire>(&self, name: &str) -> Result<RemoteGroup<D>, TopologyError> {
        let group = || name.to_owned();
        let hub = self.system().core().hub().ok_or_else(|| TopologyError::NoNode { group: group() })?;
        if hub.registry.of::<D>().is_err() {
            let message_type = std::any::type_name::<D>();
            return Err(TopologyError::UnregisteredMessage { group: group(), message_type });
        }
        let shared = self.declare_remote(name, |name| {
            let plan = Plan { path: format!("/user/{name}"), only: None, is_begun: false };
            StdArc::new(Shared {
                name,
                system: self.system().clone(),
                hub: hub.clone(),
                tables: StdArc::new(NodeTables::new()),
                plan: Mutex::new(plan),
            })
        })?;
        Ok(RemoteGroup { shared })
    }
}

impl<D: Wire> RemoteGroup<D> {
    /// Sets the path that the group has at other nodes, `/user/<name>` by default. After the start of the topology it has
    /// no effect.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Path`] if the text is no canonical path without an address.
    pub fn at_path(self, path: &str) -> Result<Self, TopologyError> {
        let parsed = parse_canonical(path).map_err(TopologyError::Path)?;
        if parsed.address().is_some() {
            return Err(TopologyError::Path(PathError::new(path, path, 0, PathFault::Elsewhere)));
        }
        self.change(|plan| plan.path = path.to_owned());
        Ok(self)
    }

    /// Names the nodes that mount the group. At the start of the topology this node connects with each of them, and asks no
    /// other node. After the start it has no effect.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Node`] for the name of this node, and for a text that is no [name](crate::remote::Node::new) of a
    /// node.
    pub fn on_nodes(self, nodes: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, TopologyError> {
        let nodes: Vec<String> = nodes.into_iter().map(Into::into).collect();
        let own = &self.shared.hub.settings.name.node;
        if let Some(node) = nodes.iter().find(|node| *node == own || !is_node_name(node)) {
            return Err(TopologyError::Node { group: self.name().to_owned(), node: node.clone() });
        }
        self.change(|plan| plan.only = Some(nodes));
        Ok(self)
    }

    fn change(&self, change: impl FnOnce(&mut Plan)) {
        let mut plan = lock(&self.shared.plan);
        if !plan.is_begun {
            change(&mut plan);
        }
    }
}

impl<D: Send + 'static> RemoteGroup<D> {
    /// Returns the group's name in this topology.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the names of the nodes that mount the group now, in order.
    pub fn nodes(&self) -> Vec<String> {
        self.shared.tables.names()
    }

    /// Returns the reference to the group at a node; `None` if the node does not mount it now. A message to this reference
    /// passes no routes. The reference means the present group there, and is closed when that ends.
    pub fn at(&self, node: &str) -> Option<ActorRef<D>> {
        self.shared.tables.read(|table| Some(table.groups[table.index_of(node)?].clone()))
    }
}

impl<D> Clone for RemoteGroup<D> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<D: Send + 'static> fmt::Debug for RemoteGroup<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.shared.tables.names();
        write!(f, "RemoteGroup({} at {nodes:?})", self.shared.name)
    }
}

impl<D: Wire> RemoteEntry for Shared<D> {
    fn name(&self) -> &str {
        &self.name
    }

    fn begin_search(&self) {
        let plan = {
            let mut plan = lock(&self.plan);
            if std::mem::replace(&mut plan.is_begun, true) {
                return;
            }
            plan.clone()
        };
        let (hub, tables) = (self.hub.clone(), self.tables.clone());
        node_search::begin(&self.system, move || Sought {
            hub: hub.clone(),
            path: plan.path.clone(),
            only: plan.only.clone(),
            tables: tables.clone(),
        });
    }

    fn info(&self) -> RemoteGroupInfo {
        RemoteGroupInfo {
            name: self.name.to_string(),
            message_type: std::any::type_name::<D>(),
            path: lock(&self.plan).path.clone(),
            nodes: self.tables.names(),
        }
    }
}

impl<S: Send + 'static> DeclaredGroup<S> {
    /// Routes messages of type `M`, which members of this group send without naming a recipient, to the nodes of a remote
    /// group that the predicate names. The predicate gets the message and the names of the nodes that mount the group now,
    /// in order. It is asked only while there is any.
    ///
    /// Several routes to the same remote group are a single route: a node gets the message once if any of the predicates
    /// names it. Predicates run on the senders' threads, many at a time, for each message. All are evaluated, and they
    /// should be pure and short.
    ///
    /// A message for which there is no node comes back, or is a dead letter, as in a group without actors. The sending
    /// verbs do not wait for room on a link: a link with too much to send refuses. There is an example at [`RemoteGroup`].
    pub fn route_to_nodes<M, D>(
        &self,
        to: &RemoteGroup<D>,
        choose: impl for<'a> Fn(&'a M, &'a [String]) -> NodeRoute<'a> + Send + Sync + 'static,
    ) -> &Self
    where
        M: Clone + Send + 'static,
        D: Wire + Wraps<M>,
    {
        self.add_remote_route(to, Some(Guarded::new(Box::new(choose))))
    }

    /// Routes all messages of type `M`, which members of this group send without naming a recipient, to all nodes of a remote
    /// group; as [`route_to_nodes`](Self::route_to_nodes) with a predicate that always answers
    /// [`NodeRoute::Broadcast`].
    pub fn route_all_to_nodes<M, D>(&self, to: &RemoteGroup<D>) -> &Self
    where
        M: Clone + Send + 'static,
        D: Wire + Wraps<M>,
    {
        self.add_remote_route(to, None)
    }

    fn add_remote_route<M, D>(&self, to: &RemoteGroup<D>, choice: Option<NodeChoice<M>>) -> &Self
    where
        M: Clone + Send + 'static,
        D: Wire + Wraps<M>,
    {
        let is_conditional = choice.is_some();
        let mut choice = choice;
        let destination = || -> Box<dyn MessageDestination<M>> {
            let choices = NodeChoices { list: Vec::new(), all: false };
            Box::new(NodeDestination { group: to.shared.clone(), choices, clone: M::clone })
        };
        let added =
            self.add_destination(&to.shared.name, is_conditional, Some(M::clone), destination, |route| {
                // The predicates say more than a condition could.
                route.always = true;
                if let Some(choices) = route.port.node_choices() {
                    choices.all |= choice.is_none();
                    choices.list.extend(choice.take());
                }
            });
        added.expect("it can be cloned");
        self
    }
}

/// The far end of a route to a remote group.
struct NodeDestination<M, D> {
    group: StdArc<Shared<D>>,
    choices: NodeChoices<M>,
    clone: fn(&M) -> M,
}

impl<M, D> NodeDestination<M, D> {
    fn copy(&self, message: &M, copier: Option<&dyn Copier<M>>) -> M {
        let clone = (self.clone)(message);
        match copier {
            None => clone,
            Some(copier) => copier.with_own_ports(clone),
        }
    }
}

impl<M, D> NodeDestination<M, D>
where
    M: Send + 'static,
    D: Wire + Wraps<M>,
{
    /// Offers a message to the nodes of a table that the predicates choose.
    fn offer_to(
        &self,
        table: &NodeTable<D>,
        message: M,
        way: &SendOp<'_>,
        copier: Option<&dyn Copier<M>>,
    ) -> Result<(), M> {
        if table.names.is_empty() {
            return Err(message);
        }
        let chosen = self.choices.choose(&message, table);
        let inside = copier.map(Inside::<M, D>::new);
        let delivery = way.delivery(inside.as_ref().map(|inside| inside as &dyn Copier<D>));
        if chosen.is_discarded {
            delivery.discard();
        }
        for node in &chosen.absent {
            delivery.refuse(|| self.group.hub.path_at(node, &lock(&self.group.plan).path));
        }
        let Some((last, others)) = chosen.present.split_last() else { return Err(message) };
        let offer = |node: usize, copy: M| {
            let offer = || delivery.offer(&table.groups[node], D::from(copy)).map_err(taken_back).err();
            // Of a request, each actor behind the group there is to answer.
            if copier.is_some() { asking_each(offer) } else { offer() }
        };
        let mut copies = Copies::of(message);
        for node in others {
            way.offers_copies();
            let copy = copies.next(|message| self.copy(message, copier));
            copies.reclaim_copy(offer(*node, copy));
        }
        let copy = copies.last();
        copies.reclaim_copy(offer(*last, copy));
        copies.into_unsent()
    }
}

impl<M, D> MessageDestination<M> for NodeDestination<M, D>
where
    M: Send + 'static,
    D: Wire + Wraps<M>,
{
    fn offer(&self, message: M, way: &SendOp<'_>, copier: Option<&dyn Copier<M>>) -> Result<(), M> {
        self.group.tables.read(|table| self.offer_to(table, message, way, copier))
    }

    fn restore(&self, message: Box<dyn Any + Send>) -> M {
        taken_back(*message.downcast::<D>().expect("the waiting message was offered here"))
    }

    fn node_choices(&mut self) -> Option<&mut NodeChoices<M>> {
        Some(&mut self.choices)
    }
}
