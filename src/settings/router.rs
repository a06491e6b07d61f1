//! A system's settings of its routers.

use crate::settings::resizer::{DefaultResizer, OptimalSizeExploringResizer};
#[cfg(feature = "config")]
use crate::util::values::{Span, U32};
use std::collections::BTreeMap;
use std::time::Duration;

/// A system's settings of the router at a path: [`Deployment::router`](crate::settings::Deployment::router), or a `router` table
/// in a configuration file. They take precedence over the code, key by key.
///
/// Only the code decides whether an actor is a router. A key that does not concern the router, such as `within` for a
/// router that chooses at random, is ignored. So one pattern may hold settings for several routers.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::settings::Deployment;
/// use pointsman::routing::RouterSettings;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let says = RouterSettings::new().router("smallest-mailbox-pool").nr_of_instances(5);
/// let system = System::builder("demo").deploy("/workers", Deployment::new().router(says)).build()?;
/// let workers = system.router("workers").pool(2, |_| Worker).spawn()?;
/// assert_eq!(workers.routees()?.len(), 5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
#[non_exhaustive]
pub struct RouterSettings {
    /// The kind of router.
    pub router: Option<String>,
    /// The number of routees that a pool begins with.
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Whole::<usize, 0, { 1 << 24 }>"))]
    pub nr_of_instances: Option<usize>,
    /// The time for which scatter-gather and tail-chopping wait for an answer.
    #[cfg_attr(feature = "config", serde(with = "Span"))]
    pub within: Option<Duration>,
    /// The number of points that each routee has on the hash ring.
    #[cfg_attr(feature = "config", serde(alias = "virtual-nodes-factor", with = "U32"))]
    pub virtual_nodes: Option<u32>,
    /// The time after which tail-chopping asks the next routee.
    #[cfg_attr(feature = "config", serde(with = "Span"))]
    pub interval: Option<Duration>,
    /// Whether scatter-gather and tail-chopping take the first reply, also when it is no success.
    pub first_completion: Option<bool>,
    /// Whether tail-chopping keeps to the interval also when an attempt fails.
    pub wait_for_tick: Option<bool>,
    /// The paths of a group's routees.
    #[cfg_attr(
        feature = "config",
        serde(rename = "routees", with = "routees", skip_serializing_if = "Option::is_none")
    )]
    pub routees_paths: Option<Vec<String>>,
    /// The nodes of the routees of a deployable pool.
    #[cfg(feature = "remote")]
    #[cfg_attr(
        feature = "config",
        serde(rename = "target", with = "target", skip_serializing_if = "Option::is_none")
    )]
    pub target_nodes: Option<Vec<String>>,
    /// The name of the dispatcher of the router's head.
    pub head_dispatcher: Option<String>,
    /// The name of the dispatcher of a pool's routees, where the code names none.
    pub pool_dispatcher: Option<String>,
    /// The name of the mailbox that is the queue of a balancing pool.
    pub queue: Option<String>,
    /// The time that a routee may take when it is removed.
    #[cfg_attr(feature = "config", serde(with = "Span"))]
    pub leave_within: Option<Duration>,
    /// Whether the router stays when its last routee has ended.
    pub stay_when_empty: Option<bool>,
    /// A [`DefaultResizer`] for a pool.
    #[cfg_attr(feature = "config", serde(deserialize_with = "crate::util::values::some_section"))]
    pub resizer: Option<DefaultResizer>,
    /// An [`OptimalSizeExploringResizer`] for a pool.
    #[cfg_attr(feature = "config", serde(deserialize_with = "crate::util::values::some_section"))]
    pub optimal_size_exploring_resizer: Option<OptimalSizeExploringResizer>,
    /// Options for a routing logic of your own.
    #[cfg_attr(
        feature = "config",
        serde(deserialize_with = "crate::util::values::texts", skip_serializing_if = "BTreeMap::is_empty")
    )]
    pub options: BTreeMap<String, String>,
}

/// The routees of a group, as a file has them.
#[cfg(feature = "config")]
#[derive(Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RouteesSection {
    paths: Option<Vec<String>>,
}

#[cfg(feature = "config")]
mod routees {
    use super::RouteesSection;
    use crate::util::values::section;
    use serde::{Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        paths: &Option<Vec<String>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        RouteesSection { paths: paths.clone() }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<String>>, D::Error> {
        section(deserializer).map(|section: RouteesSection| section.paths)
    }
}

/// The nodes of a pool's routees, as a file has them.
#[cfg(all(feature = "config", feature = "remote"))]
#[derive(Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TargetSection {
    nodes: Option<Vec<String>>,
}

#[cfg(all(feature = "config", feature = "remote"))]
mod target {
    use super::TargetSection;
    use crate::util::values::section;
    use serde::{Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        nodes: &Option<Vec<String>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        TargetSection { nodes: nodes.clone() }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<String>>, D::Error> {
        section(deserializer).map(|section: TargetSection| section.nodes)
    }
}

impl RouterSettings {
    /// Makes settings in which no key is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the kind of router, by one of these names:
    ///
    /// | name | possible if |
    /// |---|---|
    /// | `from-code`: the code decides, also about a pool's size and resizer; the section's are ignored, with a warning | |
    /// | `round-robin-pool`, `round-robin-group`, `random-pool`, `random-group` | |
    /// | `smallest-mailbox-pool`, `smallest-mailbox-group`, `two-choices-pool`, `two-choices-group`, `balancing-pool` | |
    /// | `broadcast-pool`, `broadcast-group` | the plan is [`cloneable`](crate::routing::RouterPlan::cloneable) |
    /// | `scatter-gather-pool`, `scatter-gather-group`, `tail-chopping-pool`, `tail-chopping-group` | the plan is [`answerable`](crate::routing::RouterPlan::answerable) |
    /// | `consistent-hashing-pool`, `consistent-hashing-group` | the plan is [`keyed`](crate::routing::RouterPlan::keyed) |
    /// | one given to [`SystemBuilder::routing_logic`](crate::SystemBuilder::routing_logic): that logic over the routees of the code | it was given for the router's messages |
    ///
    /// Without a kind the logic is the code's, and the other keys apply. Where the code has the same logic, the code's
    /// logic stays, with its own seed, key and shared cursor. [`routees_paths`](Self::routees_paths) may make a pool a
    /// group. A group has no recipe, so no setting can make it a pool.
    pub fn router(mut self, name: &str) -> Self {
        self.router = Some(name.to_owned());
        self
    }

    /// Sets the number of routees that a pool begins with. The default is 1 for a pool [from the
    /// configuration](crate::routing::RouterBuilder::pool_from_config). Ignored where the [kind](Self::router) is
    /// `from-code`.
    pub fn nr_of_instances(mut self, count: usize) -> Self {
        self.nr_of_instances = Some(count);
        self
    }

    /// Sets the time for which scatter-gather and tail-chopping wait for an answer: more than zero.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = Some(within);
        self
    }

    /// Sets the number of points that each routee has on the hash ring: at least 1.
    pub fn virtual_nodes(mut self, count: u32) -> Self {
        self.virtual_nodes = Some(count);
        self
    }

    /// Sets the time after which tail-chopping asks the next routee: more than zero.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = Some(interval);
        self
    }

    /// Sets whether scatter-gather and tail-chopping take the first reply, also when it is no success.
    pub fn first_completion(mut self, is_on: bool) -> Self {
        self.first_completion = Some(is_on);
        self
    }

    /// Sets whether tail-chopping keeps to the interval also when an attempt fails.
    pub fn wait_for_tick(mut self, is_on: bool) -> Self {
        self.wait_for_tick = Some(is_on);
        self
    }

    /// Sets the paths of a group's routees, as for [`group_at`](crate::routing::RouterBuilder::group_at), in place of
    /// the paths that the code names. A path with a wildcard needs a plan that is
    /// [`cloneable`](crate::routing::RouterPlan::cloneable).
    pub fn routees_paths(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.routees_paths = Some(paths.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the nodes of the routees of a [deployable pool](crate::routing::RouterBuilder::deployable_pool), as
    /// [`on_nodes`](crate::routing::RouterPlan::on_nodes) does, in place of those that the code names. For any other router,
    /// and for an actor that is no router and has this very path, this is [an error](crate::routing::SectionFault::NotDeployable).
    #[cfg(feature = "remote")]
    pub fn target_nodes(mut self, nodes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.target_nodes = Some(nodes.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the name of the dispatcher of the router's head.
    pub fn head_dispatcher(mut self, name: &str) -> Self {
        self.head_dispatcher = Some(name.to_owned());
        self
    }

    /// Sets the name of the dispatcher of a pool's routees, where the code names none.
    /// [`Deployment::dispatcher`](crate::settings::Deployment::dispatcher) always takes precedence.
    pub fn pool_dispatcher(mut self, name: &str) -> Self {
        self.pool_dispatcher = Some(name.to_owned());
        self
    }

    /// Sets the queue of a balancing pool, in place of the code's: the mailbox that the system
    /// [knows](crate::SystemBuilder::mailbox) by this name, of a kind that
    /// [`RouterPlan::queue`](crate::routing::RouterPlan::queue) takes.
    pub fn queue(mut self, mailbox: &str) -> Self {
        self.queue = Some(mailbox.to_owned());
        self
    }

    /// Sets the time that a routee may take when it is removed:
    /// [`RouterPlan::leave_within`](crate::routing::RouterPlan::leave_within).
    pub fn leave_within(mut self, deadline: Duration) -> Self {
        self.leave_within = Some(deadline);
        self
    }

    /// Sets whether the router stays when its last routee has ended.
    pub fn stay_when_empty(mut self, is_on: bool) -> Self {
        self.stay_when_empty = Some(is_on);
        self
    }

    /// Gives a pool a [`DefaultResizer`], or none if `enabled` is false. It replaces the resizer of the code.
    pub fn resizer(mut self, resizer: DefaultResizer) -> Self {
        self.resizer = Some(resizer);
        self
    }

    /// Gives a pool an [`OptimalSizeExploringResizer`], or none if `enabled` is false. It replaces the resizer of the
    /// code. Do not set [`resizer`](Self::resizer) together with it.
    pub fn optimal_size_exploring_resizer(mut self, resizer: OptimalSizeExploringResizer) -> Self {
        self.optimal_size_exploring_resizer = Some(resizer);
        self
    }

    /// Sets an option, by its name, for a [logic of your own](crate::SystemBuilder::routing_logic).
    pub fn option(mut self, name: &str, value: impl ToString) -> Self {
        self.options.insert(name.to_owned(), value.to_string());
        self
    }
}
