//! The description of a node, before its system starts.

use crate::path::address::is_node_name;
use crate::remote::association::{AssociationSettings, LANES_MAX};
use crate::remote::control_message::ROLES_MAX;
use crate::remote::deploy::Deploy;
use crate::remote::detector::{DetectorError, DetectorSettings, check_down_after};
use crate::remote::engine::{Engine, EngineError};
use crate::remote::factories::{Factories, Factory, FactoryError};
use crate::remote::hub_settings::{HubSettings, NodeName};
use crate::remote::limits::{LimitError, Limits};
use crate::remote::on_quarantine::OnQuarantine;
use crate::remote::outbox::OutboxLimits;
use crate::remote::policy::{Policy, PolicyError, is_role};
use crate::remote::registry::{RegisterError, Registry};
#[cfg(feature = "config")]
use crate::remote::settings::{DetectorKeys, RemoteSettings};
use crate::remote::wire::Wire;
use crate::sync::{HashSet, Mutex, thread};
use crate::util::debug_by_display::debug_by_display;
use std::any::TypeId;
use std::error::Error;
use std::fmt;
use std::num::NonZeroU8;
use std::time::Duration;

/// The most lanes that a node has without being told.
const LANES_DEFAULT_MAX: usize = 4;

/// Describes the node of a system: its name among other nodes, the engine that carries its messages, and what may come in.
/// [`SystemBuilder::node`](crate::SystemBuilder::node) takes it.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::remote::{InProcess, Limits, Node, Policy};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::new("n1")
///     .engine(InProcess::new())
///     .cluster("shop")
///     .roles(["backend"])
///     .message::<String>()
///     .policy(Policy::closed().allow_path("/user/orders"))
///     .limits(Limits::new().link_queue(16 << 20));
/// let system = System::builder("demo").node(node).build()?;
/// assert_eq!(system.address().to_string(), "pointsman://demo@n1");
/// # Ok(())
/// # }
/// ```
#[must_use = "a node starts with its system"]
pub struct Node {
    name: String,
    /// Behind a lock, so that a description may be shared.
    engine: Mutex<Option<Box<dyn Engine>>>,
    cluster: String,
    roles: Vec<String>,
    registry: Registry,
    /// The first type that could not be registered.
    register_error: Option<RegisterError>,
    factories: Factories,
    /// The types of messages that factories alone have registered so far.
    of_factories: HashSet<TypeId>,
    /// The first factory that could not be registered.
    factory_error: Option<FactoryError>,
    policy: Policy,
    limits: Limits,
    association: AssociationSettings,
    on_quarantine: OnQuarantine,
    lanes: u8,
    /// The settings of the engine that a file has given, as TOML.
    #[cfg(feature = "config")]
    nats: toml::Table,
}

/// A node that was checked.
pub(crate) struct CheckedNode {
    pub(crate) settings: HubSettings,
    pub(crate) registry: Registry,
    pub(crate) factories: Factories,
    pub(crate) engine: Box<dyn Engine>,
}

impl Node {
    /// Begins the description of a node. The name has 1 to 64 ASCII letters, digits, `_` and `-`, the first of them a letter or
    /// digit. No two nodes of a cluster have the same name.
    pub fn new(name: &str) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self {
            name: name.to_owned(),
            engine: Mutex::new(None),
            cluster: "pointsman".to_owned(),
            roles: Vec::new(),
            registry: Registry::default(),
            register_error: None,
            factories: Factories::default(),
            of_factories: HashSet::new(),
            factory_error: None,
            policy: Policy::default(),
            limits: Limits::default(),
            association: AssociationSettings::default(),
            on_quarantine: OnQuarantine::default(),
            lanes: cores.min(LANES_DEFAULT_MAX) as u8,
            #[cfg(feature = "config")]
            nats: toml::Table::new(),
        }
    }

    /// Sets the engine that carries messages between nodes. Each node needs one.
    pub fn engine(mut self, engine: impl Engine) -> Self {
        self.engine = Mutex::new(Some(Box::new(engine)));
        self
    }

    /// Sets the name of the cluster, `pointsman` by default: nodes of different clusters refuse each other. The rules for the
    /// name are those of a node's name.
    pub fn cluster(mut self, name: &str) -> Self {
        self.cluster = name.to_owned();
        self
    }

    /// Adds roles of this node, by which the [rules](Policy::rule) of other nodes know it. A role is said by the node itself,
    /// and nothing vouches for it.
    ///
    /// A role has 1 to 64 ASCII letters, digits, `.`, `_`, `:` and `-`, the first of them a letter or digit. A node has at
    /// most 128 roles. Other roles, and more of them, are an error when the system is
    /// [built](crate::SystemBuilder::build).
    pub fn roles(mut self, roles: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.roles.extend(roles.into_iter().map(Into::into));
        self
    }

    /// Registers a type of message: it may come in, and go to actors that are found by a path.
    ///
    /// Two versions of a name are two types, and a node may register both. A type that was registered before, a second type
    /// with the same [name and version](Wire), and a name that no type can have are errors when the system is
    /// [built](crate::SystemBuilder::build).
    pub fn message<M: Wire>(mut self) -> Self {
        match self.registry.register::<M>() {
            Ok(()) => {}
            // A factory has registered it, whichever is called first.
            Err(RegisterError::Again { .. }) if self.of_factories.remove(&TypeId::of::<M>()) => {}
            Err(error) => drop(self.register_error.get_or_insert(error)),
        }
        self
    }

    /// Registers a factory: nodes that the policy [names](Policy::allow_factory) may make actors of this type here. The type of
    /// its messages is registered too, if it is not yet.
    pub fn factory<A: Deploy>(mut self) -> Self {
        if let Err(error) = self.factories.register::<A>() {
            self.factory_error.get_or_insert(error);
        }
        self.register_for_factory::<A::Message>();
        self
    }

    /// Registers a factory of routers.
    pub(crate) fn add_factory<M: Wire>(mut self, name: &str, factory: Factory) -> Self {
        if let Err(error) = self.factories.add(name, factory) {
            self.factory_error.get_or_insert(error);
        }
        self.register_for_factory::<M>();
        self
    }

    fn register_for_factory<M: Wire>(&mut self) {
        match self.registry.register::<M>() {
            Ok(()) => drop(self.of_factories.insert(TypeId::of::<M>())),
            // Several factories may make actors of one type of message.
            Err(RegisterError::Again { .. }) => {}
            Err(error) => drop(self.register_error.get_or_insert(error)),
        }
    }

    /// Sets what may come in; [`Policy::closed`] by default.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets how much comes in, waits, and goes out at most.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets when a silent node is suspected. Settings that [cannot be](DetectorSettings::check) are an error when the system is
    /// [built](crate::SystemBuilder::build).
    pub fn detector(mut self, detector: DetectorSettings) -> Self {
        self.association.detector = detector;
        self
    }

    /// Sets how long a node is suspected before it is declared down; 10 s by default. A time shorter than the
    /// [heartbeat](DetectorSettings::heartbeat), or longer than a day, is an error when the system is
    /// [built](crate::SystemBuilder::build).
    pub fn down_after(mut self, time: Duration) -> Self {
        self.association.down_after = time;
        self
    }

    /// Sets what the system does when another node has declared it down.
    pub fn on_quarantine(mut self, action: OnQuarantine) -> Self {
        self.on_quarantine = action;
        self
    }

    /// Sets the number of lanes to each peer, 1 to 16; by default as many as cores, and at most 4. Messages to one actor share a
    /// lane, and lanes are decoded side by side. More than 16 lanes are an error when the system is
    /// [built](crate::SystemBuilder::build).
    pub fn lanes(mut self, lanes: NonZeroU8) -> Self {
        self.lanes = lanes.get();
        self
    }

    /// Returns the settings that a file may change.
    #[cfg(feature = "config")]
    pub(crate) fn settings(&self) -> RemoteSettings {
        let defaults = Self::new(&self.name);
        RemoteSettings {
            node: Some(self.name.clone()),
            cluster: (self.cluster != defaults.cluster).then(|| self.cluster.clone()),
            roles: (!self.roles.is_empty()).then(|| self.roles.clone()),
            lanes: Some(self.lanes),
            on_quarantine: (self.on_quarantine != defaults.on_quarantine).then_some(self.on_quarantine),
            detector: DetectorKeys::of(&self.association),
            limits: self.limits,
            policy: self.policy.clone(),
            nats: self.nats.clone(),
        }
    }

    /// Takes the settings as a file has changed them.
    #[cfg(feature = "config")]
    pub(crate) fn with_settings(mut self, settings: RemoteSettings) -> Self {
        let RemoteSettings { node, cluster, roles, lanes, on_quarantine, detector, limits, policy, nats } =
            settings;
        self.name = node.unwrap_or(self.name);
        self.cluster = cluster.unwrap_or(self.cluster);
        self.roles = roles.unwrap_or(self.roles);
        self.lanes = lanes.unwrap_or(self.lanes);
        self.on_quarantine = on_quarantine.unwrap_or(self.on_quarantine);
        self.association = detector.settings(self.association);
        Self { limits, policy, nats, ..self }
    }

    /// The name, for errors.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn check(self, system: &str) -> Result<CheckedNode, NodeError> {
        let Self { name, cluster, roles, limits, association, .. } = self;
        let is_bad = |name: &String| !is_node_name(name);
        if is_bad(&name) {
            return Err(NodeError::Name { name });
        }
        if is_bad(&cluster) {
            return Err(NodeError::Name { name: cluster });
        }
        if let Some(role) = roles.iter().find(|role| !is_role(role)) {
            return Err(NodeError::Role { role: role.clone() });
        }
        if roles.len() > ROLES_MAX {
            return Err(NodeError::Roles { count: roles.len() });
        }
        if self.lanes > LANES_MAX {
            return Err(NodeError::Lanes { lanes: self.lanes });
        }
        association.detector.check().map_err(NodeError::Detector)?;
        check_down_after(association.down_after, association.detector.heartbeat)
            .map_err(NodeError::Detector)?;
        if let Some(error) = self.register_error {
            return Err(NodeError::Message(Box::new(error)));
        }
        if let Some(error) = self.factory_error {
            return Err(NodeError::Factory(Box::new(error)));
        }
        limits.check().map_err(NodeError::Limits)?;
        self.policy.check().map_err(NodeError::Policy)?;
        let engine = self.engine.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        #[cfg_attr(
            not(feature = "config"),
            expect(unused_mut, reason = "without files there are no settings")
        )]
        let mut engine = engine.ok_or(NodeError::NoEngine)?;
        #[cfg(feature = "config")]
        if !self.nats.is_empty() {
            engine.configure("nats", &self.nats.to_string()).map_err(NodeError::Engine)?;
        }
        let settings = HubSettings {
            name: NodeName { system: system.to_owned(), node: name, cluster, roles },
            association,
            lanes: self.lanes,
            outbox: OutboxLimits {
                lane_bytes: limits.link_queue / usize::from(self.lanes),
                large_bytes: (limits.link_queue / usize::from(self.lanes)).max(limits.large_message),
                batch_bytes: limits.batch,
            },
            limits,
            policy: self.policy,
            on_quarantine: self.on_quarantine,
        };
        Ok(CheckedNode { settings, registry: self.registry, factories: self.factories, engine })
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.name)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

/// The reason why the node of a system cannot start: the [source](Error::source) of
/// [`BuildError::Node`](crate::system::BuildError::Node).
#[non_exhaustive]
pub enum NodeError {
    /// A name of a node or a cluster is none.
    Name {
        /// The name.
        name: String,
    },
    /// A role has a name that no role can have.
    Role {
        /// The role.
        role: String,
    },
    /// The node has more roles than there can be.
    Roles {
        /// The number of roles.
        count: usize,
    },
    /// The node has more lanes than there can be.
    Lanes {
        /// The number of lanes.
        lanes: u8,
    },
    /// A setting of the failure detector has a value that it cannot have.
    Detector(DetectorError),
    /// A type of message cannot be registered.
    Message(Box<dyn Error + Send + Sync>),
    /// A factory cannot be registered.
    Factory(Box<dyn Error + Send + Sync>),
    /// A limit has a value that it cannot have.
    Limits(LimitError),
    /// The policy is none.
    Policy(PolicyError),
    /// The node has no engine.
    NoEngine,
    /// The engine cannot start.
    Engine(EngineError),
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::Name { name } => write!(
                f,
                "{name:?} is no name of a node or a cluster: use 1 to 64 ASCII letters, digits, '_' and '-', the first of \
                 them a letter or digit"
            ),
            NodeError::Role { role } => write!(
                f,
                "{role:?} is no role: use 1 to 64 ASCII letters, digits, '.', '_', ':' and '-', the first of them a letter \
                 or digit"
            ),
            NodeError::Roles { count } => write!(f, "{count} roles: must be at most {ROLES_MAX}"),
            NodeError::Lanes { lanes } => write!(f, "{lanes} lanes: must be at most {LANES_MAX}"),
            NodeError::Detector(error) => error.fmt(f),
            NodeError::Message(error) | NodeError::Factory(error) => error.fmt(f),
            NodeError::Limits(error) => error.fmt(f),
            NodeError::Policy(error) => error.fmt(f),
            NodeError::NoEngine => {
                f.write_str("it has no engine: give it one by `Node::engine`, for example `InProcess::new()`")
            }
            NodeError::Engine(error) => error.fmt(f),
        }
    }
}

impl Error for NodeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            NodeError::Detector(error) => Some(error),
            NodeError::Message(error) | NodeError::Factory(error) => Some(&**error),
            NodeError::Limits(error) => Some(error),
            NodeError::Policy(error) => Some(error),
            NodeError::Engine(error) => Some(error),
            _ => None,
        }
    }
}

debug_by_display! { NodeError }
