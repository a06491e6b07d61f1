//! Telemetry: what a running system does, as numbers.
//!
//! | you want | look at |
//! |---|---|
//! | all numbers of a system | [`SystemRef::stats`](crate::SystemRef::stats), [`Stats`] |
//! | the actors with the longest queues | [`SystemRef::actors`](crate::SystemRef::actors), [`ActorFilter`] |
//! | a page for Prometheus | [`Stats::write_openmetrics`] |
//! | to hear of starts, failures, restarts and ends | [`Lifecycle`] |
//! | waits, times of handlers, stuck handlers | [`Telemetry`] |

pub(crate) mod actor_filter; // the walk over the actors
pub(crate) mod families; // what exporters show
#[cfg(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle))))]
pub(crate) mod flight_recorder; // what the workers do for a while
pub(crate) mod histogram;
#[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "nodes alone have links"))]
pub(crate) mod link_stats;
pub(crate) mod openmetrics;
pub(crate) mod router_stats;
pub(crate) mod state; // the telemetry of one system
pub(crate) mod stats;
#[allow(clippy::module_inception, reason = "the settings, under the name that they have")]
pub(crate) mod telemetry; // settings
pub(crate) mod watchdog;

pub use crate::core::lifecycle::{ActorEvent, Lifecycle, Stuck};
pub use crate::telemetry::actor_filter::{ActorFilter, ActorOrder, ActorState, ActorStats};
pub use crate::telemetry::histogram::{DepthHistogram, Histogram};
pub use crate::telemetry::router_stats::{RouteeStats, RouterStats};
pub use crate::telemetry::stats::{ClassStats, DispatcherStats, Stats, WorkerStats};
pub use crate::telemetry::telemetry::Telemetry;
