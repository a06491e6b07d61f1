//! Declaring groups, routes between them, and what stands behind them.

use crate::ask::timekeeper::Timekeeper;
use crate::core::actor_ref::ActorRef;
use crate::core::any_ref::AnyRef;
use crate::core::system::SystemRef;
use crate::group::config::GroupConfig;
use crate::path::actor_path::check_name;
use crate::sync::{HashMap, Mutex, OnceLock, lock};
use crate::time::no_system::NO_SYSTEM;
use crate::topology::config::{Change, Sections, give};
use crate::topology::dot::Connection;
use crate::topology::error::TopologyError;
use crate::topology::member::{Member, Mount};
use crate::topology::outlet::{Berth, Condition, Entrance, Outlet, Route, Routes, Table};
use crate::topology::start::Course;
use crate::topology::wraps::Carries;
use crate::util::panic::drop_guarded;
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc as StdArc;

/// The groups of a service, and the routes between them.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::topology::{Outlet, Sending};
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
/// #     fn receive(&mut self, order: Order, _: &mut Context<Order>) -> Done { Ok(self.0.try_send(order)?) }
/// # }
/// # struct Ledger;
/// # impl Actor for Ledger {
/// #     type Message = LedgerMsg;
/// #     fn receive(&mut self, _: LedgerMsg, _: &mut Context<LedgerMsg>) -> Done { Ok(()) }
/// # }
/// # struct Audit;
/// # impl Actor for Audit {
/// #     type Message = AuditMsg;
/// #     fn receive(&mut self, _: AuditMsg, _: &mut Context<AuditMsg>) -> Done { Ok(()) }
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
/// gateway.to_ref().tell(Order { account: 7, amount: 20_000 });
/// # Ok(())
/// # }
/// ```
///
/// Routes belong to the sender's group: a message of the same type that another group sends follows that group's
/// routes. Circles, and routes of a group to itself, are fine: a route is a rule about the next hop. There may be any
/// number of groups.
///
/// A clone is another handle to the same topology.
#[derive(Clone)]
pub struct Topology {
    shared: StdArc<Shared>,
}

pub(crate) struct Shared {
    system: SystemRef,
    groups: Mutex<Vec<Entry>>,
    pub course: Course,
}

/// What is known of a group.
pub(crate) struct Entry {
    pub name: StdArc<str>,
    message_type: &'static str,
    pub is_entrypoint: bool,
    /// An entrypoint that is to bring the first configuration of the others.
    #[cfg(feature = "config")]
    pub is_configurer: bool,
    /// An entrypoint that gets its empty configuration just now.
    pub is_starting: bool,
    stop_order: i32,
    /// Once it is mounted.
    pub member: Option<StdArc<dyn Member>>,
    /// What it goes by; `None` if it never got one, or has panicked about the last.
    pub config: Option<GroupConfig>,
    /// What a configuration said of it while it was being started, and it is to get next.
    pub deferred: Option<GroupConfig>,
    connections: Vec<Connection>,
}

impl Entry {
    pub fn is_mounted(&self) -> bool {
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
    /// A topology without groups.
    pub fn new(system: &SystemRef) -> Self {
        let shared = Shared { system: system.clone(), groups: Mutex::new(Vec::new()), course: Course::new() };
        Self { shared: StdArc::new(shared) }
    }

    /// Declares a group of this process, whose mount will take messages of type `D`.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Name`] and [`TopologyError::DuplicateGroup`]. The rules for names are those of actors.
    pub fn local<D: Send + 'static>(&self, name: &str) -> Result<Local<D>, TopologyError> {
        check_name(name)?;
        let name: StdArc<str> = name.into();
        let mut groups = lock(&self.shared.groups);
        if groups.iter().any(|group| group.name == name) {
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
            connections: Vec::new(),
        });
        drop(groups);
        let berth = StdArc::new(Berth { name, group: OnceLock::new() });
        Ok(Local { topology: self.clone(), index, berth, drafts: Mutex::default() })
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

    /// Gives those groups a configuration for which `part` has one; to all of them, or to none.
    pub(crate) fn give_to(
        &self,
        part: impl Fn(&Entry) -> Option<GroupConfig>,
    ) -> Result<Vec<String>, TopologyError> {
        self.give_to_indexed(|_, entry| part(entry))
    }

    /// The same; `part` gets the place of the group, too.
    pub(crate) fn give_to_indexed(
        &self,
        part: impl Fn(usize, &Entry) -> Option<GroupConfig>,
    ) -> Result<Vec<String>, TopologyError> {
        let (indices, changes): (Vec<usize>, Vec<Change>) = {
            let groups = lock(&self.shared.groups);
            let change = |(index, entry): (usize, &Entry)| {
                let (name, member) = (entry.name.to_string(), entry.member.clone()?);
                Some((index, Change { name, member, config: part(index, entry)? }))
            };
            groups.iter().enumerate().filter_map(change).unzip()
        };
        // Without the lock: this is user code.
        let done = give(&changes)?;
        let mut groups = lock(&self.shared.groups);
        let mut names = Vec::new();
        for ((index, change), is_done) in indices.into_iter().zip(changes).zip(done) {
            // What one goes by that has panicked, nobody knows.
            groups[index].config = is_done.then_some(change.config);
            if is_done {
                names.push(change.name);
            }
        }
        Ok(names)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Looks at all that is known of the groups, or changes it. Not for the user's code, since it holds the lock.
    pub(crate) fn entries<R>(&self, look: impl FnOnce(&mut [Entry]) -> R) -> R {
        look(&mut lock(&self.shared.groups))
    }

    pub(crate) fn system(&self) -> &SystemRef {
        &self.shared.system
    }

    pub(crate) fn timekeeper(&self) -> Timekeeper {
        self.shared.system.user().map_or(Timekeeper::Static(&NO_SYSTEM), Timekeeper::System)
    }

    pub(crate) fn members_by_stop_order(&self) -> Vec<Vec<StdArc<dyn Member>>> {
        let mut by_order = BTreeMap::<i32, Vec<_>>::new();
        for entry in lock(&self.shared.groups).iter() {
            by_order.entry(entry.stop_order).or_default().extend(entry.member.clone());
        }
        by_order.into_values().collect()
    }

    /// What is mounted, by its name.
    pub(crate) fn members(&self) -> Vec<(StdArc<str>, StdArc<dyn Member>)> {
        let groups = lock(&self.shared.groups);
        groups.iter().filter_map(|entry| Some((entry.name.clone(), entry.member.clone()?))).collect()
    }

    /// The actors of all groups.
    pub(crate) fn actors(&self) -> Vec<AnyRef> {
        let members: Vec<_> =
            lock(&self.shared.groups).iter().filter_map(|entry| entry.member.clone()).collect();
        members.iter().flat_map(|member| member.actors()).collect()
    }

    /// The groups that are mounted, in the order of their declaration.
    pub fn locals(&self) -> Vec<GroupInfo> {
        let groups = lock(&self.shared.groups);
        let mounted = groups.iter().filter(|group| group.is_mounted());
        let info = |group: &Entry| GroupInfo {
            name: group.name.to_string(),
            message_type: group.message_type,
            is_entrypoint: group.is_entrypoint,
        };
        mounted.map(info).collect()
    }

    /// The connections between groups that are mounted: in the order of the groups, and of the definition of routes.
    pub fn connections(&self) -> Vec<Connection> {
        let groups = lock(&self.shared.groups);
        let is_mounted = |name: &str| groups.iter().any(|group| group.is_mounted() && *group.name == *name);
        let all = groups.iter().flat_map(|group| &group.connections);
        all.filter(|connection| is_mounted(&connection.from) && is_mounted(&connection.to)).cloned().collect()
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

/// A group of a [`Topology`], as [`Topology::locals`] shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupInfo {
    /// Its name.
    pub name: String,
    /// The name of the type of message that it takes.
    pub message_type: &'static str,
    /// Whether it was declared to be [one](Local::entrypoint).
    pub is_entrypoint: bool,
}

/// A group that is declared and not mounted yet.
///
/// Until it is [mounted](Self::mount), routes that begin here can be defined. `D` is the type of message that it takes.
#[must_use = "a group that is never mounted is an error at the start"]
pub struct Local<D> {
    topology: Topology,
    index: usize,
    berth: StdArc<Berth<D>>,
    /// A `Draft<M>` for each type of message that it routes, by the type.
    drafts: Mutex<HashMap<TypeId, Box<dyn AnyDraft>>>,
}

/// A table that is not fixed yet.
struct Draft<M: Send + 'static> {
    table: StdArc<Table<M>>,
    routes: Routes<M>,
}

/// A [`Draft`] of some type.
trait AnyDraft: Send {
    fn as_any(&mut self) -> &mut dyn Any;

    /// Publishes it, and returns the `StdArc<Table<M>>`.
    fn fix(self: Box<Self>) -> Box<dyn Any + Send + Sync>;
}

impl<M: Send + 'static> AnyDraft for Draft<M> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn fix(self: Box<Self>) -> Box<dyn Any + Send + Sync> {
        let Self { table, routes } = *self;
        let unfixed = table.routes.set(routes).is_ok();
        debug_assert!(unfixed, "a handle is consumed by its mount");
        Box::new(table)
    }
}

impl<D: Send + 'static> Local<D> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.berth.name
    }

    /// Says that this group is to be started first, with an empty configuration: normally the one that distributes
    /// configurations to the others, as in elfo. It may call
    #[cfg_attr(feature = "config", doc = "[`reconfigure`](Topology::reconfigure)")]
    #[cfg_attr(not(feature = "config"), doc = "`reconfigure`")]
    /// as soon as it has got that; see [`Topology::start`] for whether the others get their first configuration from it.
    /// One that needs longer than the [`started`](crate::Actor::started) of its actors for that, since it waits for a
    /// message or asks another service, is a
    #[cfg_attr(feature = "config", doc = "[`configurer`](Self::configurer).")]
    #[cfg_attr(not(feature = "config"), doc = "`configurer` (feature `config`).")]
    pub fn entrypoint(self) -> Self {
        self.topology.change(self.index, |entry| entry.is_entrypoint = true);
        self
    }

    /// Says that this group is an [entrypoint](Self::entrypoint) which brings the first configuration of all other
    /// groups, whenever it has it: [`Topology::start`] waits for its first [`reconfigure`](Topology::reconfigure) that
    /// is not rejected. If the system's own configuration has sections `[topology.<name>]`, those are the first
    /// configuration and nothing is waited for.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::topology::Topology;
    /// # struct Shard;
    /// # impl Actor for Shard {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
    /// # }
    ///
    /// /// Distributes what another service says, here its own first message.
    /// struct Configurer(Topology);
    /// impl Actor for Configurer {
    ///     type Message = String;
    ///     fn started(&mut self, ctx: &mut Context<String>) -> Done {
    ///         ctx.me().tell("[topology.shards]\ncount = 3".to_owned());
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, text: String, _: &mut Context<String>) -> Done {
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
    /// let configurer = system.group("configurer").singleton(move |_, _| Configurer(handle.clone())).spawn()?;
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

    /// When the group ends among the others: those of lower numbers end before. 0 unless told otherwise.
    pub fn stop_order(self, order: i32) -> Self {
        self.topology.change(self.index, |entry| entry.stop_order = order);
        self
    }

    /// Routes messages of type `M` that members of this group send without an address to `to` if the condition holds.
    ///
    /// Several routes between two groups are one: the message goes there once if any of their conditions holds. (In
    /// elfo it goes there once for each.) Conditions run on the senders' threads, many at a time, for each
    /// message; all of them are asked, and they should be pure and short.
    pub fn route_to<M, E>(&self, to: &Local<E>, when: impl Fn(&M) -> bool + Send + Sync + 'static) -> &Self
    where
        M: Clone + Send + 'static,
        E: Carries<M> + Send + 'static,
    {
        self.add_route(to, Some(Box::new(when)), Some(M::clone)).expect("it can be cloned");
        self
    }

    /// Routes all messages of type `M` that members of this group send without an address to `to`; as
    /// [`route_to`](Self::route_to) with a condition that always holds.
    pub fn route_all_to<M, E>(&self, to: &Local<E>) -> &Self
    where
        M: Clone + Send + 'static,
        E: Carries<M> + Send + 'static,
    {
        self.add_route(to, None, Some(M::clone)).expect("it can be cloned");
        self
    }

    /// As [`route_to`](Self::route_to), for messages that cannot be cloned: they can have one destination only.
    ///
    /// # Errors
    ///
    /// [`TopologyError::SecondRoute`] if messages of this type are routed to another group.
    pub fn route_only_to<M, E>(
        &self,
        to: &Local<E>,
        when: impl Fn(&M) -> bool + Send + Sync + 'static,
    ) -> Result<&Self, TopologyError>
    where
        M: Send + 'static,
        E: Carries<M> + Send + 'static,
    {
        self.add_route(to, Some(Box::new(when)), None)?;
        Ok(self)
    }

    fn add_route<M, E>(
        &self,
        to: &Local<E>,
        when: Option<Condition<M>>,
        clone: Option<fn(&M) -> M>,
    ) -> Result<(), TopologyError>
    where
        M: Send + 'static,
        E: Carries<M> + Send + 'static,
    {
        let connection = Connection {
            from: self.name().to_owned(),
            to: to.name().to_owned(),
            message_type: std::any::type_name::<M>(),
            is_conditional: when.is_some(),
        };
        // Left here if it is refused: what it holds is the user's, and is dropped without the lock.
        let mut when = when;
        let added = self.with_draft(|draft: &mut Draft<M>| {
            let routes = &mut draft.routes;
            routes.clone = routes.clone.or(clone);
            let index = match routes.list.iter().position(|route| route.to == to.berth.name) {
                Some(index) => index,
                None => {
                    if let (Some(first), None) = (routes.list.first(), routes.clone) {
                        return Err(TopologyError::SecondRoute {
                            group: self.name().to_owned(),
                            to: [first.to.to_string(), to.name().to_owned()],
                            message_type: std::any::type_name::<M>(),
                        });
                    }
                    routes.list.push(Route {
                        to: to.berth.name.clone(),
                        conditions: Vec::new(),
                        always: false,
                        port: Box::new(Entrance::new(to.berth.clone())),
                    });
                    routes.list.len() - 1
                }
            };
            match when.take() {
                Some(when) => routes.list[index].conditions.push(when),
                None => routes.list[index].always = true,
            }
            Ok(())
        });
        drop_guarded(when);
        added?;
        self.topology.change(self.index, |entry| {
            let same = |other: &&mut Connection| {
                (&other.to, other.message_type) == (&connection.to, connection.message_type)
            };
            match entry.connections.iter_mut().find(same) {
                Some(known) => known.is_conditional &= connection.is_conditional,
                None => entry.connections.push(connection),
            }
        });
        Ok(())
    }

    /// What members of this group send messages of type `M` by: one for all of them, or one for each. It leads nowhere
    /// until the group is mounted.
    pub fn outlet<M: Send + 'static>(&self) -> Outlet<M> {
        Outlet { table: self.with_draft(|draft: &mut Draft<M>| draft.table.clone()) }
    }

    fn with_draft<M: Send + 'static, R>(&self, change: impl FnOnce(&mut Draft<M>) -> R) -> R {
        let mut drafts = lock(&self.drafts);
        let draft = drafts.entry(TypeId::of::<M>()).or_insert_with(|| {
            let table = Table {
                group: self.berth.name.clone(),
                system: self.topology.shared.system.clone(),
                routes: OnceLock::new(),
            };
            let routes = Routes { list: Vec::new(), clone: None };
            Box::new(Draft::<M> { table: StdArc::new(table), routes })
        });
        change(draft.as_any().downcast_mut().expect("kept by its type"))
    }

    /// Gives the group what stands behind it, an actor, a router, or a keyed group, and fixes its routes.
    pub fn mount(self, group: &impl Mount<D>) -> Mounted<D> {
        let Self { topology, index, berth, drafts } = self;
        let drafts = drafts.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let tables = drafts.into_iter().map(|(message, draft)| (message, draft.fix())).collect();
        let (reference, member) = (group.reference(), group.member());
        let unmounted = berth.group.set(reference.clone()).is_ok();
        debug_assert!(unmounted, "a handle is consumed by its mount");
        topology.change(index, |entry| entry.member = Some(member));
        let group = MountedGroup { system: topology.shared.system.clone(), berth, reference, tables };
        Mounted { group: StdArc::new(group) }
    }
}

/// A group of a [`Topology`] that is mounted. A clone is another handle to the same group.
pub struct Mounted<D> {
    group: StdArc<MountedGroup<D>>,
}

/// What the handles to a mounted group share.
struct MountedGroup<D> {
    system: SystemRef,
    berth: StdArc<Berth<D>>,
    reference: ActorRef<D>,
    /// An `StdArc<Table<M>>` for each type of message that it routes or has an outlet for, by the type.
    tables: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl<D: Send + 'static> Mounted<D> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.group.berth.name
    }

    /// The address of the group: what is sent there passes no routes.
    pub fn to_ref(&self) -> ActorRef<D> {
        self.group.reference.clone()
    }

    /// What members of this group send messages of type `M` by; one without routes leads nowhere.
    pub fn outlet<M: Send + 'static>(&self) -> Outlet<M> {
        let known = self.group.tables.get(&TypeId::of::<M>());
        let known = known.and_then(|table| table.downcast_ref::<StdArc<Table<M>>>());
        let table = known.cloned().unwrap_or_else(|| {
            let (group, system) = (self.group.berth.name.clone(), self.group.system.clone());
            StdArc::new(Table { group, system, routes: OnceLock::new() })
        });
        Outlet { table }
    }
}

impl<D> Clone for Mounted<D> {
    fn clone(&self) -> Self {
        Self { group: self.group.clone() }
    }
}

impl<D> fmt::Debug for Mounted<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounted").field("name", &self.group.berth.name).finish_non_exhaustive()
    }
}

impl<D> fmt::Debug for Local<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("name", &self.berth.name).finish_non_exhaustive()
    }
}
