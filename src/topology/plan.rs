//! A topology declares groups and the routes between them, and mounts a recipient behind each group.

use crate::ask::ask_clock::AskClock;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::system::SystemRef;
use crate::group::config::GroupConfig;
use crate::path::actor_path::check_name;
use crate::sync::{HashMap, Mutex, OnceLock, lock};
use crate::time::no_system::NO_SYSTEM;
use crate::topology::config::{Change, Sections, give};
use crate::topology::error::TopologyError;
use crate::topology::group_outlets::{GroupOutlets, RoutedType};
use crate::topology::member::GroupMember;
use crate::topology::outlet::{
    Condition, GroupDestination, MessageDestination, MountPoint, Outlet, Route, Routes, Table,
};
use crate::topology::remote_entry::{RemoteEntry, RemoteGroupInfo};
use crate::topology::shown_route::Shows;
use crate::topology::start::StartState;
use crate::topology::validation::VALIDATION_LIMIT;
use crate::topology::wraps::Wraps;
use crate::util::panic::Guarded;
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// A topology names the groups of a service, and the routes between them.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::topology::Outlet;
///
/// #[derive(Clone)]
/// struct Order {
///     account: u64,
///     amount: i64,
/// }
///
/// #[derive(Message)]
/// enum LedgerMsg {
///     Order(Order),
/// }
///
/// #[derive(Message)]
/// enum AuditMsg {
///     Order(Order),
/// }
///
/// // Actors of the gateway send orders wherever the topology routes them.
/// struct Gateway(Outlet<Order>);
/// # impl Actor for Gateway {
/// #     type Message = Order;
/// #     fn receive(&mut self, order: Order, _: &mut Context<Order>) -> HandlerResult { Ok(self.0.try_send(order)?) }
/// # }
/// # struct Ledger;
/// # impl Actor for Ledger {
/// #     type Message = LedgerMsg;
/// #     fn receive(&mut self, _: LedgerMsg, _: &mut Context<LedgerMsg>) -> HandlerResult { Ok(()) }
/// # }
/// # struct Audit;
/// # impl Actor for Audit {
/// #     type Message = AuditMsg;
/// #     fn receive(&mut self, _: AuditMsg, _: &mut Context<AuditMsg>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let topology = system.topology();
/// let gateway = topology.local("gateway")?;
/// let ledgers = topology.local("ledgers")?;
/// let audit = topology.local("audit")?;
/// gateway.route_all_to::<Order, _>(&ledgers);
/// gateway.route_to(&audit, |order: &Order| order.amount > 10_000);
///
/// ledgers.mount(&system.actor("ledgers").spawn(|| Ledger)?);
/// audit.mount(&system.actor("audit").spawn(|| Audit)?);
/// let orders = gateway.outlet();
/// let gateway = gateway.mount(&system.actor("gateway").spawn(move || Gateway(orders.clone()))?);
/// topology.start()?;
///
/// gateway.tell(Order { account: 7, amount: 20_000 });
/// # Ok(())
/// # }
/// ```
///
/// Routes belong to the sender's group: a message of the same type from another group follows that group's routes.
/// Circles, and routes of a group to itself, are allowed: a route is a rule about the next hop. There may be any number
/// of groups.
///
/// A clone is another handle to the same topology.
#[derive(Clone)]
pub struct Topology {
    shared: StdArc<Shared>,
}

pub(crate) struct Shared {
    system: SystemRef,
    groups: Mutex<Vec<Entry>>,
    pub course: StartState,
    /// How long actors have to validate a configuration.
    validation_limit: Mutex<Duration>,
    /// The groups of other nodes, in the order of their declaration.
    remotes: Mutex<Vec<StdArc<dyn RemoteEntry>>>,
}

/// An entry keeps the data of a declared group.
pub(crate) struct Entry {
    pub name: StdArc<str>,
    message_type: &'static str,
    pub is_entrypoint: bool,
    /// An entrypoint that is to bring the first configuration of the other groups.
    #[cfg(feature = "config")]
    pub is_configurer: bool,
    /// An entrypoint that is getting its empty configuration now.
    pub is_starting: bool,
    stop_order: i32,
    /// `None` until the group is mounted.
    pub member: Option<StdArc<dyn GroupMember>>,
    /// The configuration in effect; `None` if the group never got one, or panicked when it applied the last one.
    pub config: Option<GroupConfig>,
    /// The section that a configuration had for the group while the group was being started, and that the group gets
    /// next.
    pub deferred: Option<GroupConfig>,
    routes: Vec<RouteEntry>,
}

/// A route entry stands for the routes of a single type of message to another group.
struct RouteEntry {
    to: StdArc<str>,
    message_type: &'static str,
    is_conditional: bool,
}

impl Entry {
    pub(crate) fn is_mounted(&self) -> bool {
        self.member.is_some()
    }
}

impl SystemRef {
    /// Begins to describe groups of actors and the routes between them.
    pub fn topology(&self) -> Topology {
        Topology::new(self)
    }
}

impl Topology {
    /// Returns a topology without groups.
    pub fn new(system: &SystemRef) -> Self {
        let shared = Shared {
            system: system.clone(),
            groups: Mutex::new(Vec::new()),
            course: StartState::new(),
            validation_limit: Mutex::new(VALIDATION_LIMIT),
            remotes: Mutex::default(),
        };
        Self { shared: StdArc::new(shared) }
    }

    /// Declares a group of this process, which takes messages of type `D` once it is mounted.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Name`] and [`TopologyError::DuplicateGroup`]. The rules for names are those of actors.
    pub fn local<D: Send + 'static>(&self, name: &str) -> Result<DeclaredGroup<D>, TopologyError> {
        check_name(name)?;
        let name: StdArc<str> = name.into();
        let mut groups = lock(&self.shared.groups);
        let is_remote = || lock(&self.shared.remotes).iter().any(|remote| *remote.name() == *name);
        if groups.iter().any(|group| group.name == name) || is_remote() {
            return Err(TopologyError::DuplicateGroup { name: name.to_string() });
        }
        let index = groups.len();
        groups.push(Entry {
            name: name.clone(),
            message_type: std::any::type_name::<D>(),
            is_entrypoint: false,
            #[cfg(feature = "config")]
            is_configurer: false,
            is_starting: false,
            stop_order: 0,
            member: None,
            config: None,
            deferred: None,
            routes: Vec::new(),
        });
        drop(groups);
        let outlets = GroupOutlets::new(name.clone(), self.shared.system.clone());
        let mount_point = StdArc::new(MountPoint { name, group: OnceLock::new() });
        Ok(DeclaredGroup { topology: self.clone(), index, mount_point, outlets, drafts: Mutex::default() })
    }

    /// Enters a group of other nodes, which `make` makes of its name.
    #[cfg(feature = "remote")]
    pub(crate) fn declare_remote<R: RemoteEntry + 'static>(
        &self,
        name: &str,
        make: impl FnOnce(StdArc<str>) -> StdArc<R>,
    ) -> Result<StdArc<R>, TopologyError> {
        check_name(name)?;
        // In the order of `local`.
        let groups = lock(&self.shared.groups);
        let mut remotes = lock(&self.shared.remotes);
        if groups.iter().any(|group| *group.name == *name)
            || remotes.iter().any(|remote| remote.name() == name)
        {
            return Err(TopologyError::DuplicateGroup { name: name.to_owned() });
        }
        let remote = make(name.into());
        remotes.push(remote.clone());
        Ok(remote)
    }

    pub(crate) fn remote_entries(&self) -> Vec<StdArc<dyn RemoteEntry>> {
        lock(&self.shared.remotes).clone()
    }

    pub(crate) fn check_names(&self, sections: &Sections) -> Result<(), TopologyError> {
        let groups = lock(&self.shared.groups);
        match sections.keys().find(|name| groups.iter().all(|group| *group.name != ***name)) {
            Some(name) => Err(TopologyError::UnknownSection {
                name: name.clone(),
                known: groups.iter().map(|group| group.name.to_string()).collect(),
            }),
            None => Ok(()),
        }
    }

    /// Gives a configuration to the groups for which `part` returns one: to all of these groups, or to none.
    pub(crate) fn give_to(
        &self,
        part: impl Fn(&Entry) -> Option<GroupConfig>,
    ) -> Result<Vec<String>, TopologyError> {
        self.give_to_indexed(|_, entry| part(entry), |_| Ok(()))
    }

    /// As [`give_to`](Self::give_to); `part` gets the group's index, too, and `validate` has the last word before any
    /// group changes.
    pub(crate) fn give_to_indexed(
        &self,
        part: impl Fn(usize, &Entry) -> Option<GroupConfig>,
        validate: impl FnOnce(&[Change]) -> Result<(), TopologyError>,
    ) -> Result<Vec<String>, TopologyError> {
        let (indices, changes): (Vec<usize>, Vec<Change>) = {
            let groups = lock(&self.shared.groups);
            let change = |(index, entry): (usize, &Entry)| {
                let (name, member) = (entry.name.to_string(), entry.member.clone()?);
                Some((index, Change { name, member, config: part(index, entry)? }))
            };
            groups.iter().enumerate().filter_map(change).unzip()
        };
        // The lock is not held: this is user code.
        let done = give(&changes, validate)?;
        let mut groups = lock(&self.shared.groups);
        let mut names = Vec::new();
        for ((index, change), is_done) in indices.into_iter().zip(changes).zip(done) {
            // A group that has panicked may follow any configuration, so none is noted.
            groups[index].config = is_done.then_some(change.config);
            if is_done {
                names.push(change.name);
            }
        }
        Ok(names)
    }

    /// Sets how long actors have to answer when they are asked to
    /// [validate](crate::group::GroupPlan::validated_by_actors) a configuration, by the system's clock; 5 s by default.
    /// An actor that does not answer in time refuses.
    pub fn validate_within(&self, limit: Duration) -> &Self {
        *lock(&self.shared.validation_limit) = limit;
        self
    }

    pub(crate) fn validation_limit(&self) -> Duration {
        *lock(&self.shared.validation_limit)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Passes the entries of all groups to `look`, which may change them. `look` runs no user code, since the lock is
    /// held.
    pub(crate) fn entries<R>(&self, look: impl FnOnce(&mut [Entry]) -> R) -> R {
        look(&mut lock(&self.shared.groups))
    }

    pub(crate) fn system(&self) -> &SystemRef {
        &self.shared.system
    }

    pub(crate) fn ask_clock(&self) -> AskClock {
        self.shared.system.user().map_or(AskClock::Static(&NO_SYSTEM), AskClock::System)
    }

    pub(crate) fn members_by_stop_order(&self) -> Vec<Vec<StdArc<dyn GroupMember>>> {
        let mut by_order = BTreeMap::<i32, Vec<_>>::new();
        for entry in lock(&self.shared.groups).iter() {
            by_order.entry(entry.stop_order).or_default().extend(entry.member.clone());
        }
        by_order.into_values().collect()
    }

    /// Returns the mounted members, with their names.
    pub(crate) fn members(&self) -> Vec<(StdArc<str>, StdArc<dyn GroupMember>)> {
        let groups = lock(&self.shared.groups);
        groups.iter().filter_map(|entry| Some((entry.name.clone(), entry.member.clone()?))).collect()
    }

    /// Returns the actors of all groups.
    pub(crate) fn actors(&self) -> Vec<AnyActorRef> {
        let members: Vec<_> =
            lock(&self.shared.groups).iter().filter_map(|entry| entry.member.clone()).collect();
        members.iter().flat_map(|member| member.actors()).collect()
    }

    /// Returns the mounted groups and the routes between them and to [remote groups](Self::remotes), in the order of the
    /// declaration of the groups, and of the definition of the routes.
    #[doc(alias = "connections")]
    pub fn locals(&self) -> Vec<GroupInfo> {
        let groups = lock(&self.shared.groups);
        let remotes = self.remote_entries();
        let is_mounted = |name: &str| {
            groups.iter().any(|group| group.is_mounted() && *group.name == *name)
                || remotes.iter().any(|remote| remote.name() == name)
        };
        let mounted = groups.iter().filter(|group| group.is_mounted());
        let info = |group: &Entry| {
            let routes = group.routes.iter().filter(|route| is_mounted(&route.to));
            let (conditional, always): (Vec<_>, Vec<_>) = routes.partition(|route| route.is_conditional);
            let pairs = |routes: Vec<&RouteEntry>| -> Vec<_> {
                routes.into_iter().map(|route| (route.to.to_string(), route.message_type)).collect()
            };
            GroupInfo {
                name: group.name.to_string(),
                message_type: group.message_type,
                is_entrypoint: group.is_entrypoint,
                routes: pairs(always),
                conditional_routes: pairs(conditional),
            }
        };
        mounted.map(info).collect()
    }

    /// Returns the groups of other nodes (feature `remote`), in the order of their declaration.
    pub fn remotes(&self) -> Vec<RemoteGroupInfo> {
        self.remote_entries().iter().map(|entry| entry.info()).collect()
    }

    fn change<R>(&self, index: usize, change: impl FnOnce(&mut Entry) -> R) -> R {
        change(&mut lock(&self.shared.groups)[index])
    }
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = lock(&self.shared.groups);
        f.debug_list().entries(groups.iter().map(|group| &group.name)).finish()
    }
}

/// Group info describes a group of a [`Topology`] and the routes that begin at it, as [`Topology::locals`] shows them.
#[doc(alias = "RouteEdge")]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupInfo {
    /// The group's name.
    pub name: String,
    /// The name of the type of message that the group takes.
    pub message_type: &'static str,
    /// Whether the group was declared to be an [entrypoint](DeclaredGroup::entrypoint).
    pub is_entrypoint: bool,
    /// The routes that a message always takes: the group to which the route leads, and the name of the type of message.
    pub routes: Vec<(String, &'static str)>,
    /// The routes that a message takes if a condition holds, in the same form.
    pub conditional_routes: Vec<(String, &'static str)>,
}

/// A declared group has a name in a topology, and is not mounted yet.
///
/// Until the group is [mounted](Self::mount), routes that begin at the group can be defined. `D` is the type of message
/// that the group takes.
#[must_use = "a group that is never mounted is an error at the start"]
pub struct DeclaredGroup<D> {
    topology: Topology,
    index: usize,
    mount_point: StdArc<MountPoint<D>>,
    outlets: GroupOutlets,
    /// A `Draft<M>` for each type of message that the group routes, by the type.
    drafts: Mutex<HashMap<TypeId, Box<dyn AnyDraft>>>,
}

/// A draft is a routing table that is not fixed yet.
struct Draft<M: Send + 'static> {
    table: StdArc<Table<M>>,
    routes: Routes<M>,
    /// Shows each message on its way.
    shows: Option<Shows<M>>,
}

/// This trait hides the type of message of a [`Draft`].
trait AnyDraft: Send {
    fn as_any(&mut self) -> &mut dyn Any;

    /// Publishes the table of the group with this path. Returns the type, if it has a route.
    fn fix(self: Box<Self>, path: &str) -> Option<RoutedType>;
}

impl<M: Send + 'static> AnyDraft for Draft<M> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn fix(self: Box<Self>, path: &str) -> Option<RoutedType> {
        let Self { table, routes, shows } = *self;
        let routes = shows.iter().fold(routes, |routes, shows| routes.shown(path, shows));
        let is_routed = !routes.list.is_empty();
        let unfixed = table.routes.set(routes).is_ok();
        debug_assert!(unfixed, "a handle is consumed by its mount");
        is_routed.then(|| RoutedType::of(table))
    }
}

impl<D: Send + 'static> DeclaredGroup<D> {
    /// Returns the group's name.
    pub fn name(&self) -> &str {
        &self.mount_point.name
    }

    /// Declares this group an entrypoint, which is started first, with an empty configuration. An entrypoint normally
    /// distributes configurations to the other groups, as in elfo. The entrypoint may call
    #[cfg_attr(feature = "config", doc = "[`reconfigure`](Topology::reconfigure)")]
    #[cfg_attr(not(feature = "config"), doc = "`reconfigure`")]
    /// as soon as it has its own configuration; [`Topology::start`] says whether the other groups get their first
    /// configuration from the entrypoint. An entrypoint that needs longer for that than the
    /// [`started`](crate::Actor::started) of its actors, since it waits for a message or asks another service, is a
    #[cfg_attr(feature = "config", doc = "[`configurer`](Self::configurer).")]
    #[cfg_attr(not(feature = "config"), doc = "`configurer` (feature `config`).")]
    pub fn entrypoint(self) -> Self {
        self.topology.change(self.index, |entry| entry.is_entrypoint = true);
        self
    }

    /// Declares this group an [entrypoint](Self::entrypoint) that brings the first configuration of all other groups,
    /// at any time: [`Topology::start`] waits for the configurer's first [`reconfigure`](Topology::reconfigure) that is
    /// not rejected. If the system's own configuration has sections `[topology.<name>]`, these are the first
    /// configuration, and `start` does not wait.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::topology::Topology;
    /// # struct Shard;
    /// # impl Actor for Shard {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    ///
    /// /// Distributes what another service says, here its own first message.
    /// struct Configurer(Topology);
    /// impl Actor for Configurer {
    ///     type Message = String;
    ///     fn started(&mut self, ctx: &mut Context<String>) -> HandlerResult {
    ///         ctx.me().tell("[topology.shards]\ncount = 3".to_owned());
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, text: String, _: &mut Context<String>) -> HandlerResult {
    ///         self.0.reconfigure(&text, false)?;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let topology = system.topology();
    /// let shards = system
    ///     .group("shards")
    ///     .by_key(|number: &u64| *number, |_, _| Shard)
    ///     .config(
    ///         |config| config.table().get("count").and_then(|count| count.as_integer()).ok_or("no count".to_owned()),
    ///         |shards, count| (0..count).for_each(|key| drop(shards.mount(key as u64))),
    ///     )
    ///     .spawn()?;
    /// topology.local("shards")?.mount(&shards);
    /// // A group of one, whose actor is created when the topology starts.
    /// let handle = topology.clone();
    /// let configurer = system.group("configurer").singleton(move |_| Configurer(handle.clone())).spawn()?;
    /// topology.local("configurer")?.configurer().mount(&configurer);
    /// topology.start()?;
    /// assert_eq!(shards.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "config")]
    pub fn configurer(self) -> Self {
        self.topology.change(self.index, |entry| {
            entry.is_entrypoint = true;
            entry.is_configurer = true;
        });
        self
    }

    /// Sets the group's number in the order of ends: groups of lower numbers end before it. The default is 0.
    pub fn stop_order(self, order: i32) -> Self {
        self.topology.change(self.index, |entry| entry.stop_order = order);
        self
    }

    /// Routes messages of type `M`, which members of this group send without naming a recipient, to `to` if the
    /// condition holds.
    ///
    /// Several routes between the same two groups are a single route: the message goes there once if any of the
    /// conditions holds. (In elfo the message goes there once for each.) Conditions run on the senders' threads, many
    /// at a time, for each message. All conditions are evaluated, and they should be pure and short.
    pub fn route_to<M, E>(
        &self,
        to: &DeclaredGroup<E>,
        when: impl Fn(&M) -> bool + Send + Sync + 'static,
    ) -> &Self
    where
        M: Clone + Send + 'static,
        E: Wraps<M> + Send + 'static,
    {
        self.add_route(to, Some(Guarded::new(Box::new(when))), Some(M::clone)).expect("it can be cloned");
        self
    }

    /// Routes all messages of type `M`, which members of this group send without naming a recipient, to `to`; as
    /// [`route_to`](Self::route_to) with a condition that always holds.
    pub fn route_all_to<M, E>(&self, to: &DeclaredGroup<E>) -> &Self
    where
        M: Clone + Send + 'static,
        E: Wraps<M> + Send + 'static,
    {
        self.add_route(to, None, Some(M::clone)).expect("it can be cloned");
        self
    }

    /// As [`route_to`](Self::route_to), for messages that cannot be cloned: such messages can have a single destination
    /// only.
    ///
    /// # Errors
    ///
    /// [`TopologyError::SecondRoute`] if messages of this type are routed to another group.
    pub fn route_only_to<M, E>(
        &self,
        to: &DeclaredGroup<E>,
        when: impl Fn(&M) -> bool + Send + Sync + 'static,
    ) -> Result<&Self, TopologyError>
    where
        M: Send + 'static,
        E: Wraps<M> + Send + 'static,
    {
        self.add_route(to, Some(Guarded::new(Box::new(when))), None)?;
        Ok(self)
    }

    fn add_route<M, E>(
        &self,
        to: &DeclaredGroup<E>,
        when: Option<Condition<M>>,
        clone: Option<fn(&M) -> M>,
    ) -> Result<(), TopologyError>
    where
        M: Send + 'static,
        E: Wraps<M> + Send + 'static,
    {
        let is_conditional = when.is_some();
        // A refused condition stays here: it is the user's, and is dropped without the lock.
        let mut when = when;
        let destination =
            || -> Box<dyn MessageDestination<M>> { Box::new(GroupDestination::new(to.mount_point.clone())) };
        self.add_destination(&to.mount_point.name, is_conditional, clone, destination, |route| {
            match when.take() {
                Some(when) => route.conditions.push(when),
                None => route.always = true,
            }
        })
    }

    /// Adds to the route to a group, which gets this destination if the route is new.
    pub(crate) fn add_destination<M: Send + 'static>(
        &self,
        to: &StdArc<str>,
        is_conditional: bool,
        clone: Option<fn(&M) -> M>,
        destination: impl FnOnce() -> Box<dyn MessageDestination<M>>,
        add: impl FnOnce(&mut Route<M>),
    ) -> Result<(), TopologyError> {
        let message_type = std::any::type_name::<M>();
        let entry = RouteEntry { to: to.clone(), message_type, is_conditional };
        let added = self.with_draft(|draft: &mut Draft<M>| {
            let routes = &mut draft.routes;
            routes.clone = routes.clone.or(clone);
            let index = match routes.list.iter().position(|route| route.to == *to) {
                Some(index) => index,
                None => {
                    if let (Some(first), None) = (routes.list.first(), routes.clone) {
                        return Err(TopologyError::SecondRoute {
                            group: self.name().to_owned(),
                            to: [first.to.to_string(), to.to_string()],
                            message_type,
                        });
                    }
                    routes.list.push(Route {
                        to: to.clone(),
                        conditions: Vec::new(),
                        always: false,
                        port: destination(),
                    });
                    routes.list.len() - 1
                }
            };
            add(&mut routes.list[index]);
            Ok(())
        });
        added?;
        self.topology.change(self.index, |group| {
            let same =
                |other: &&mut RouteEntry| (&other.to, other.message_type) == (&entry.to, entry.message_type);
            match group.routes.iter_mut().find(same) {
                Some(known) => known.is_conditional &= entry.is_conditional,
                None => group.routes.push(entry),
            }
        });
        Ok(())
    }

    /// Returns an outlet by which members of this group send messages of type `M`. All members may share an outlet, or
    /// each may have its own. The outlet leads nowhere until the group is mounted; without routes it leads nowhere at
    /// all.
    pub fn outlet<M: Send + 'static>(&self) -> Outlet<M> {
        Outlet { table: self.with_draft(|draft: &mut Draft<M>| draft.table.clone()) }
    }

    /// Returns the outlets of all types in a single object, which an actor of this group keeps in a single field. It
    /// leads nowhere until the group is mounted.
    pub fn outlets(&self) -> GroupOutlets {
        self.outlets.clone()
    }

    /// Shows each message of type `M` that leaves by this group's routes.
    #[cfg(not(pointsman_loom))]
    pub(crate) fn show<M: Send + 'static>(&self, shows: Shows<M>) {
        // The replaced function is the user's, and is dropped without the lock.
        let before = self.with_draft(|draft: &mut Draft<M>| draft.shows.replace(shows));
        drop(before);
    }

    fn with_draft<M: Send + 'static, R>(&self, change: impl FnOnce(&mut Draft<M>) -> R) -> R {
        let mut drafts = lock(&self.drafts);
        let draft = drafts.entry(TypeId::of::<M>()).or_insert_with(|| {
            let table = Table {
                group: self.mount_point.name.clone(),
                system: self.topology.shared.system.clone(),
                routes: OnceLock::new(),
            };
            let routes = Routes { list: Vec::new(), clone: None };
            Box::new(Draft::<M> { table: StdArc::new(table), routes, shows: None })
        });
        change(draft.as_any().downcast_mut().expect("kept by its type"))
    }

    /// Mounts a recipient behind the group, an actor, a router, or a keyed group, and fixes the group's routes. Outlets
    /// are to be taken [before](Self::outlet). Returns the reference of the group; a message to this reference passes
    /// no routes.
    #[doc(alias = "MountedGroup")]
    pub fn mount<G>(self, group: &G) -> ActorRef<D>
    where
        G: GroupMember + Clone + Into<ActorRef<D>>,
    {
        let Self { topology, index, mount_point, outlets, drafts } = self;
        let drafts = drafts.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (reference, member): (ActorRef<D>, _) = (group.clone().into(), StdArc::new(group.clone()));
        let path = reference.path().to_string();
        outlets.fix(drafts.into_values().filter_map(|draft| draft.fix(&path)).collect());
        let unmounted = mount_point.group.set(reference.clone()).is_ok();
        debug_assert!(unmounted, "a handle is consumed by its mount");
        topology.change(index, |entry| entry.member = Some(member));
        reference
    }
}

impl<D> fmt::Debug for DeclaredGroup<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("name", &self.mount_point.name).finish_non_exhaustive()
    }
}
