//! What a system says of a router.

use std::collections::BTreeMap;
use std::time::Duration;

/// Structs of keys of which any may be left out, each with a method that says it.
macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$key_doc:meta])* $key:ident: $kind:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$key_doc])* pub $key: Option<$kind>,)*
        }

        impl $name {
            /// Says nothing.
            pub fn new() -> Self {
                Self::default()
            }

            $($(#[$key_doc])*
            pub fn $key(mut self, value: $kind) -> Self {
                self.$key = Some(value);
                self
            })*
        }
    )*};
}

/// What a system says of the router at a path: [`Deployment::router`](crate::Deployment::router), or a `router` table
/// in a configuration file. It wins over the code, key by key.
///
/// Whether an actor is a router is said in code alone. A key that does not concern the router, such as `within` for one
/// that chooses at random, is passed over, so that one pattern may speak for several routers.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::Deployment;
/// use pointsman::routing::RouterSettings;
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
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
#[non_exhaustive]
pub struct RouterSettings {
    /// The kind of router.
    pub router: Option<String>,
    /// How many routees a pool begins with.
    pub nr_of_instances: Option<usize>,
    /// How long scatter-gather and tail-chopping wait for an answer.
    pub within: Option<Duration>,
    /// How many points each routee has on the ring of consistent hashing.
    pub virtual_nodes: Option<u32>,
    /// How long tail-chopping waits before it asks the next routee.
    pub interval: Option<Duration>,
    /// Whether scatter-gather and tail-chopping take the first reply, be it a success or not.
    pub first_completion: Option<bool>,
    /// Whether tail-chopping keeps to the interval also when an attempt fails.
    pub wait_for_tick: Option<bool>,
    /// The paths of a group's routees.
    pub routees_paths: Option<Vec<String>>,
    /// The name of the dispatcher of the router's head.
    pub head_dispatcher: Option<String>,
    /// The name of the dispatcher of a pool's routees for which the code says none.
    pub pool_dispatcher: Option<String>,
    /// The name of the mailbox that is the queue of a balancing pool.
    pub queue: Option<String>,
    /// How long a routee may take when it is removed.
    pub leave_within: Option<Duration>,
    /// Whether the router stays when its last routee has gone.
    pub stay_when_empty: Option<bool>,
    /// A [`DefaultResizer`](crate::routing::DefaultResizer) for a pool.
    pub resizer: Option<ResizerSettings>,
    /// An [`OptimalSizeExploringResizer`](crate::routing::OptimalSizeExploringResizer) for a pool.
    pub optimal_size_exploring_resizer: Option<ExploringResizerSettings>,
    /// What a logic of your own may want to know.
    pub options: BTreeMap<String, String>,
}

impl RouterSettings {
    /// Says nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The kind of router, by one of these names:
    ///
    /// | name | possible if |
    /// |---|---|
    /// | `from-code`: as the code says, also about a pool's size and resizer, of which the section's are passed over, with a warning | |
    /// | `round-robin-pool`, `round-robin-group`, `random-pool`, `random-group` | |
    /// | `smallest-mailbox-pool`, `smallest-mailbox-group`, `two-choices-pool`, `two-choices-group`, `balancing-pool` | |
    /// | `broadcast-pool`, `broadcast-group` | the plan is [`cloneable`](crate::routing::RouterPlan::cloneable) |
    /// | `scatter-gather-pool`, `scatter-gather-group`, `tail-chopping-pool`, `tail-chopping-group` | the plan is [`answerable`](crate::routing::RouterPlan::answerable) |
    /// | `consistent-hashing-pool`, `consistent-hashing-group` | the plan is [`keyed`](crate::routing::RouterPlan::keyed) |
    /// | one given to [`SystemBuilder::routing_logic`](crate::SystemBuilder::routing_logic): that logic over the routees of the code | it was given for the router's messages |
    ///
    /// Without a kind the logic is the code's, and what else is said counts. Where the code has the same logic, that one stays, with what makes it its own: the seed, the key, the one
    /// shared cursor. A pool may be made a group, by [`routees_paths`](Self::routees_paths); a group has no
    /// recipe, so it cannot be made a pool.
    pub fn router(mut self, name: &str) -> Self {
        self.router = Some(name.to_owned());
        self
    }

    /// How many routees a pool begins with; 1 for a pool
    /// [from the configuration](crate::routing::RouterBuilder::pool_from_config) unless said otherwise. Passed over where the
    /// [kind](Self::router) is `from-code`.
    pub fn nr_of_instances(mut self, count: usize) -> Self {
        self.nr_of_instances = Some(count);
        self
    }

    /// How long scatter-gather and tail-chopping wait for an answer: more than zero.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = Some(within);
        self
    }

    /// How many points each routee has on the ring of consistent hashing: at least 1.
    pub fn virtual_nodes(mut self, count: u32) -> Self {
        self.virtual_nodes = Some(count);
        self
    }

    /// How long tail-chopping waits before it asks the next routee: more than zero.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = Some(interval);
        self
    }

    /// Whether scatter-gather and tail-chopping take the first reply, be it a success or not.
    pub fn first_completion(mut self, is_on: bool) -> Self {
        self.first_completion = Some(is_on);
        self
    }

    /// Whether tail-chopping keeps to the interval also when an attempt fails.
    pub fn wait_for_tick(mut self, is_on: bool) -> Self {
        self.wait_for_tick = Some(is_on);
        self
    }

    /// The paths of a group's routees, as for [`group_at`](crate::routing::RouterBuilder::group_at), in place of those
    /// that the code names. One with a wildcard needs a plan that is
    /// [`cloneable`](crate::routing::RouterPlan::cloneable).
    pub fn routees_paths(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.routees_paths = Some(paths.into_iter().map(Into::into).collect());
        self
    }

    /// The name of the dispatcher of the router's head.
    pub fn head_dispatcher(mut self, name: &str) -> Self {
        self.head_dispatcher = Some(name.to_owned());
        self
    }

    /// The name of the dispatcher of a pool's routees for which the code says none. What always wins is
    /// [`Deployment::dispatcher`](crate::Deployment::dispatcher).
    pub fn pool_dispatcher(mut self, name: &str) -> Self {
        self.pool_dispatcher = Some(name.to_owned());
        self
    }

    /// What the queue of a balancing pool is, in place of what the code says: the mailbox that the system
    /// [knows](crate::SystemBuilder::mailbox) by this name, of a kind that
    /// [`RouterPlan::queue`](crate::routing::RouterPlan::queue) takes.
    pub fn queue(mut self, mailbox: &str) -> Self {
        self.queue = Some(mailbox.to_owned());
        self
    }

    /// How long a routee may take when it is removed:
    /// [`RouterPlan::leave_within`](crate::routing::RouterPlan::leave_within).
    pub fn leave_within(mut self, deadline: Duration) -> Self {
        self.leave_within = Some(deadline);
        self
    }

    /// Whether the router stays when its last routee has gone.
    pub fn stay_when_empty(mut self, is_on: bool) -> Self {
        self.stay_when_empty = Some(is_on);
        self
    }

    /// Gives a pool a [`DefaultResizer`](crate::routing::DefaultResizer), or none if it is not `enabled`. It takes the
    /// place of the one that the code has.
    pub fn resizer(mut self, settings: ResizerSettings) -> Self {
        self.resizer = Some(settings);
        self
    }

    /// Gives a pool an [`OptimalSizeExploringResizer`](crate::routing::OptimalSizeExploringResizer), or none
    /// if it is not `enabled`. It takes the place of the one that the code has. Not together with
    /// [`resizer`](Self::resizer).
    pub fn optimal_size_exploring_resizer(mut self, settings: ExploringResizerSettings) -> Self {
        self.optimal_size_exploring_resizer = Some(settings);
        self
    }

    /// What a [logic of your own](crate::SystemBuilder::routing_logic) may want to know, by a name of its own.
    pub fn option(mut self, name: &str, value: impl ToString) -> Self {
        self.options.insert(name.to_owned(), value.to_string());
        self
    }
}

keys! {
    /// The parameters of a [`DefaultResizer`](crate::routing::DefaultResizer), where the default or the
    /// allowed values of each are told. Those that are not said are at their defaults, whatever resizer the code has.
    ResizerSettings {
        /// Whether the pool has this resizer: true unless said otherwise. If it is false, the pool has no
        /// resizer, whatever the code says, unless the other kind is on.
        enabled: bool,
        /// The fewest routees.
        lower_bound: usize,
        /// The most routees.
        upper_bound: usize,
        /// How many messages must wait in a routee's mailbox to make it busy.
        pressure_threshold: usize,
        /// By which part of its size a pool grows in which all routees are busy.
        rampup_rate: f64,
        /// The part of the routees that must be busy, or the pool shrinks.
        backoff_threshold: f64,
        /// By which part of its size a pool shrinks.
        backoff_rate: f64,
        /// After how many messages of one sending thread the size is looked at.
        messages_per_resize: u64,
        /// How often the size is looked at whatever the traffic.
        tick_interval: Duration,
        /// Whether the size is looked at after messages only.
        without_ticks: bool,
    }

    /// The parameters of an [`OptimalSizeExploringResizer`](crate::routing::OptimalSizeExploringResizer),
    /// where the default or the allowed values of each are told. Those that are not said are at their
    /// defaults, whatever resizer the code has.
    ExploringResizerSettings {
        /// Whether the pool has this resizer: true unless said otherwise. If it is false, the pool has no
        /// resizer, whatever the code says, unless the other kind is on.
        enabled: bool,
        /// The fewest routees.
        lower_bound: usize,
        /// The most routees.
        upper_bound: usize,
        /// The chance that an exploring step is one down.
        chance_of_ramping_down_when_full: f64,
        /// How often the pool is looked at.
        action_interval: Duration,
        /// After how long with an idle routee the pool shrinks to what was in use.
        downsize_after_underutilized_for: Duration,
        /// How long an exploring step may be, as a part of the size.
        explore_step_size: f64,
        /// The chance that the next step explores.
        chance_of_exploration: f64,
        /// What is kept of the most routees in use when a pool shrinks that was underutilized.
        downsize_ratio: f64,
        /// How many of the sizes noted are looked at for the best.
        optimization_range: usize,
        /// How much the latest measurement of a size counts against the earlier ones.
        weight_of_latest_metric: f64,
    }
}
