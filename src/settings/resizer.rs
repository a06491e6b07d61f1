//! The parameters of the resizers.

use crate::settings::resizer_error::ResizerError;
#[cfg(feature = "config")]
use crate::util::values::{CountU64, Span, Usize};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Defines the parameters of a resizer with their defaults: as a struct of settings, and as a macro with the methods of
/// the resizer that has these `settings`.
macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident, $methods:ident {
        $($(#[$key_doc:meta])* $key:ident: $kind:ty $(as $with:literal)? = $default:expr,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        #[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
        pub struct $name {
            pub(crate) enabled: bool,
            $($(#[cfg_attr(feature = "config", serde(with = $with))])? pub(crate) $key: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { enabled: true, $($key: $default,)* }
            }
        }

        impl $name {
            /// Makes settings in which each parameter has its default.
            pub fn new() -> Self {
                Self::default()
            }

            /// Sets whether the pool has this resizer; true by default. If false, the pool has no resizer, whatever the
            /// code says, unless the other kind is on.
            pub fn enabled(mut self, is_on: bool) -> Self {
                self.enabled = is_on;
                self
            }

            $($(#[$key_doc])*
            pub fn $key(mut self, value: $kind) -> Self {
                self.$key = value;
                self
            })*
        }

        macro_rules! $methods {
            () => {
                $($(#[$key_doc])*
                pub fn $key(mut self, value: $kind) -> Self {
                    self.settings.$key = value;
                    self
                })*
            };
        }
        pub(crate) use $methods;
    )*};
}

parameters! {
    /// The parameters of a [`DefaultResizer`](crate::routing::DefaultResizer), in a system's settings of a router. A
    /// parameter that is not set has its default, whatever resizer the code has.
    ///
    /// | parameter | default | allowed |
    /// |---|---|---|
    /// | [`lower_bound`](Self::lower_bound) | 1 | |
    /// | [`upper_bound`](Self::upper_bound) | 10 | at least `lower_bound` |
    /// | [`pressure_threshold`](Self::pressure_threshold) | 1 | |
    /// | [`rampup_rate`](Self::rampup_rate) | 0.2 | at least 0 |
    /// | [`backoff_threshold`](Self::backoff_threshold) | 0.3 | at most 1 |
    /// | [`backoff_rate`](Self::backoff_rate) | 0.1 | at least 0 |
    /// | [`messages_per_resize`](Self::messages_per_resize) | 10 | at least 1 |
    /// | [`tick_interval`](Self::tick_interval) | 10 s | more than 0 |
    /// | [`without_ticks`](Self::without_ticks) | false | |
    ResizerSettings, default_resizer_methods {
        /// The fewest routees.
        lower_bound: usize as "Usize" = 1,
        /// The most routees.
        upper_bound: usize as "Usize" = 10,
        /// The pressure at which a routee counts as busy. 0: it handles a message or is about to; n ≥ 1: n messages wait
        /// in its mailbox besides.
        pressure_threshold: usize as "Usize" = 1,
        /// The fraction of its size by which a pool grows when all its routees are busy; 0: never.
        rampup_rate: f64 = 0.2,
        /// The fraction of the routees that must be busy, or the pool shrinks; 0 or less: it never does.
        backoff_threshold: f64 = 0.3,
        /// The fraction of its size by which a pool shrinks; 0: never.
        backoff_rate: f64 = 0.1,
        /// The number of messages of one sending thread after which the size is checked.
        messages_per_resize: u64 as "CountU64" = 10,
        /// The interval in which the size is checked, whatever the traffic: see
        /// [`Resizer::tick`](crate::routing::Resizer::tick).
        tick_interval: Duration as "Span" = Duration::from_secs(10),
        /// Whether the size is checked after messages only. Without traffic the pool keeps its size then, as in Akka.
        without_ticks: bool = false,
    }

    /// The parameters of an [`OptimalSizeExploringResizer`](crate::routing::OptimalSizeExploringResizer), in a system's
    /// settings of a router. A parameter that is not set has its default, whatever resizer the code has.
    ///
    /// | parameter | default | allowed |
    /// |---|---|---|
    /// | [`lower_bound`](Self::lower_bound) | 1 | |
    /// | [`upper_bound`](Self::upper_bound) | 10 | at least `lower_bound` |
    /// | [`chance_of_ramping_down_when_full`](Self::chance_of_ramping_down_when_full) | 0.2 | 0 to 1 |
    /// | [`action_interval`](Self::action_interval) | 5 s | more than 0 |
    /// | [`downsize_after_underutilized_for`](Self::downsize_after_underutilized_for) | 72 h | |
    /// | [`explore_step_size`](Self::explore_step_size) | 0.1 | at least 0 |
    /// | [`chance_of_exploration`](Self::chance_of_exploration) | 0.4 | 0 to 1 |
    /// | [`downsize_ratio`](Self::downsize_ratio) | 0.8 | 0 to 1 |
    /// | [`optimization_range`](Self::optimization_range) | 16 | at least 2 |
    /// | [`weight_of_latest_metric`](Self::weight_of_latest_metric) | 0.5 | 0 to 1 |
    ExploringResizerSettings, exploring_resizer_methods {
        /// The fewest routees.
        lower_bound: usize as "Usize" = 1,
        /// The most routees.
        upper_bound: usize as "Usize" = 10,
        /// The probability that an exploring step is one down.
        chance_of_ramping_down_when_full: f64 = 0.2,
        /// The interval in which the pool is checked.
        action_interval: Duration as "Span" = Duration::from_secs(5),
        /// The time with an idle routee after which the pool shrinks to the routees that were in use.
        downsize_after_underutilized_for: Duration as "Span" = HOUR * 72,
        /// The largest exploring step, as a fraction of the size; it is at least one routee.
        explore_step_size: f64 = 0.1,
        /// The probability that the next step explores; otherwise it optimizes.
        chance_of_exploration: f64 = 0.4,
        /// The fraction of the most routees in use that an underutilized pool keeps when it shrinks.
        downsize_ratio: f64 = 0.8,
        /// The number of recorded sizes among which the best is sought, half of them on each side of the present one.
        optimization_range: usize as "Usize" = 16,
        /// The weight of the latest measurement of a size against the earlier ones: 1 forgets them.
        weight_of_latest_metric: f64 = 0.5,
    }
}

impl ResizerSettings {
    /// Says which parameter has a value that is not allowed.
    pub(crate) fn check(&self) -> Result<(), ResizerError> {
        check_bounds(self.lower_bound, self.upper_bound)?;
        ResizerError::unless_rate("rampup_rate", self.rampup_rate)?;
        if self.backoff_threshold > 1.0 || self.backoff_threshold.is_nan() {
            return Err(ResizerError::parameter("backoff_threshold", self.backoff_threshold, "at most 1"));
        }
        ResizerError::unless_rate("backoff_rate", self.backoff_rate)?;
        if self.messages_per_resize == 0 {
            return Err(ResizerError::parameter("messages_per_resize", 0, "at least 1"));
        }
        if self.without_ticks {
            return Ok(());
        }
        ResizerError::unless_positive("tick_interval", self.tick_interval)
    }
}

impl ExploringResizerSettings {
    /// Says which parameter has a value that is not allowed.
    pub(crate) fn check(&self) -> Result<(), ResizerError> {
        check_bounds(self.lower_bound, self.upper_bound)?;
        ResizerError::unless_share(
            "chance_of_ramping_down_when_full",
            self.chance_of_ramping_down_when_full,
        )?;
        ResizerError::unless_positive("action_interval", self.action_interval)?;
        ResizerError::unless_rate("explore_step_size", self.explore_step_size)?;
        ResizerError::unless_share("chance_of_exploration", self.chance_of_exploration)?;
        ResizerError::unless_share("downsize_ratio", self.downsize_ratio)?;
        if self.optimization_range < 2 {
            return Err(ResizerError::parameter("optimization_range", self.optimization_range, "at least 2"));
        }
        ResizerError::unless_share("weight_of_latest_metric", self.weight_of_latest_metric)
    }
}

/// Checks the bounds, which both resizers have.
fn check_bounds(lower: usize, upper: usize) -> Result<(), ResizerError> {
    if upper < lower {
        return Err(ResizerError::parameter("upper_bound", upper, format!("at least lower_bound, {lower}")));
    }
    Ok(())
}
