//! The resizers of this crate as data, for code and for settings: their parameters, and the memory of the exploring one.
//! Their decisions are in `routing/resizer`.

use crate::settings::setting_error::SettingError;
use crate::sync::Mutex;
#[cfg(feature = "config")]
use crate::util::values::{CountU64, Span, Usize};
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Defines a resizer by its parameters with their defaults. They are the keys of its section in a file, too.
macro_rules! parameters {
    ($(#[$doc:meta])* $name:ident $(remembers $memory:ident)? {
        $($(#[$key_doc:meta])* $key:ident: $kind:ty $(as $with:literal)? = $default:expr,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        #[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
        pub struct $name {
            pub(crate) enabled: bool,
            $($(#[cfg_attr(feature = "config", serde(with = $with))])? pub(crate) $key: $kind,)*
            $(#[cfg_attr(feature = "config", serde(skip))] pub(crate) memory: $memory,)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self { enabled: true, $($key: $default,)* $(memory: $memory::default(),)? }
            }
        }

        impl $name {
            /// Makes a resizer in which each parameter has its default.
            pub fn new() -> Self {
                Self::default()
            }

            /// Sets whether the resizer is on; true by default. A resizer that is off leaves the size of its pool as
            /// it is. In a system's settings of a router, it also takes the place of the resizer of the code, unless
            /// the other kind is on.
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
    };
}

parameters! {
    /// Grows a pool in which all routees are busy, and shrinks a pool in which few are.
    ///
    /// Of n routees, p are busy (the *pressure*). If all are, the pool grows by `rampup_rate` of n, rounded up.
    /// If fewer than `backoff_threshold` of n are, it shrinks by `backoff_rate` of n, rounded up. Then the bounds
    /// hold. So with the defaults a pool under full load grows 1, 2, 3, 4, 5, 6, 8, 10, each step after ten
    /// messages, and an idle one shrinks by one routee for each ten messages or ten seconds.
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
    ///
    /// A parameter that is not set has its default. This holds for a system's settings of a router, too, whatever
    /// resizer the code has.
    ///
    /// The size is also looked at when the pool is created: a new pool is idle, so one of 5 routees within 2 and
    /// 15 begins with 4.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::routing::DefaultResizer;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let resizer = DefaultResizer::new().lower_bound(2).upper_bound(15).messages_per_resize(100);
    /// let workers = system.router("workers").pool(5, |_| Worker).resizer(resizer).spawn()?;
    /// assert_eq!(workers.routees()?.len(), 4);
    /// workers.resize_to(100)?;
    /// assert_eq!(workers.routees()?.len(), 15, "the bounds hold for sizes set by hand too");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// As in Akka, but for three things. A suspended routee is busy. A pool of size 0, which `lower_bound(0)`
    /// allows, grows by one when messages come. And the tick.
    #[doc(alias = "ResizerSettings")]
    DefaultResizer {
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
}

parameters! {
    /// Searches the size at which a pool handles most messages, by trying sizes out.
    ///
    /// Every `action_interval` it looks at the pool. If all routees had something to do now and the time before,
    /// it notes how long a message took at this size: the time that has passed, by the messages that were handled
    /// in it. Then it *explores* (a random step up, or down) or *optimizes* (half the way to the best size noted
    /// near by). While some routee is idle it keeps the size; when that lasts for
    /// `downsize_after_underutilized_for`, it shrinks the pool to `downsize_ratio` of the most routees that were
    /// in use at once.
    ///
    /// For work whose best size is unknown beforehand, as when routees share something outside: more of them may be slower.
    /// The size walks at random, so it changes even when the load does not.
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
    ///
    /// A parameter that is not set has its default. This holds for a system's settings of a router, too, whatever
    /// resizer the code has.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::routing::OptimalSizeExploringResizer;
    /// use std::time::Duration;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let resizer = OptimalSizeExploringResizer::new()
    ///     .lower_bound(2)
    ///     .upper_bound(30)
    ///     .action_interval(Duration::from_secs(1));
    /// let workers = system.router("workers").pool(8, |_| Worker).resizer(resizer).spawn()?;
    /// assert_eq!(workers.routees()?.len(), 8);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A resizer is for a single pool: it remembers its measurements, a number for each size tried.
    ///
    /// As in Akka, but for five things. Each time that a pool was found underutilized for long, the most routees
    /// in use are counted anew: Akka's pool shrinks once, and then keeps its size until it is full, however far
    /// the load declines. The interval is the pool's [tick](crate::routing::Resizer::tick), by the system's clock, so it goes on
    /// without traffic, and a look that comes late delays no other. A step explored may be as large as
    /// `explore_step_size` says, where Akka's is always smaller. A pool of size 0, which `lower_bound(0)` allows,
    /// grows by one when messages come. Random choices derive from the system's seed.
    #[doc(alias = "ExploringResizerSettings")]
    OptimalSizeExploringResizer remembers Memory {
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

/// The memory of an exploring resizer. A copy of the resizer remembers nothing, and resizers are compared by their
/// parameters.
#[derive(Default)]
pub(crate) struct Memory(pub(crate) Mutex<State>);

impl Clone for Memory {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Memory {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

/// The memory from one look to the next. The head of the pool alone touches it.
#[derive(Default)]
pub(crate) struct State {
    /// Seconds for each message, by the size of the pool.
    pub(crate) log: BTreeMap<usize, f64>,
    pub(crate) last: Option<Look>,
    /// The time when the next look is due: by the ticks, and not from the last look, which may have come late. The tick
    /// behind a late look would be too early otherwise, and be missed.
    pub(crate) due: Option<Duration>,
    pub(crate) underutilized: Option<Streak>,
    /// Made at the first use, from the router's seed.
    pub(crate) random: Option<SmallRng>,
}

/// The measurements of a look.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) at: Duration,
    /// The messages sent to the router by then.
    pub(crate) messages: u64,
    /// The messages that wait or are being handled.
    pub(crate) pending: usize,
}

/// A time in which not all routees of the pool are in use.
#[derive(Clone, Copy)]
pub(crate) struct Streak {
    pub(crate) since: Duration,
    /// The most routees that were in use at once meanwhile.
    pub(crate) highest: usize,
}

impl DefaultResizer {
    /// Says which parameter has a value that is not allowed.
    pub(crate) fn check_parameters(&self) -> Result<(), SettingError> {
        check_bounds(self.lower_bound, self.upper_bound)?;
        SettingError::unless_rate("rampup_rate", self.rampup_rate)?;
        if self.backoff_threshold > 1.0 || self.backoff_threshold.is_nan() {
            return Err(SettingError::new("backoff_threshold", self.backoff_threshold, "at most 1"));
        }
        SettingError::unless_rate("backoff_rate", self.backoff_rate)?;
        if self.messages_per_resize == 0 {
            return Err(SettingError::new("messages_per_resize", 0, "at least 1"));
        }
        if self.without_ticks {
            return Ok(());
        }
        SettingError::unless_positive("tick_interval", self.tick_interval)
    }
}

impl OptimalSizeExploringResizer {
    /// Says which parameter has a value that is not allowed.
    pub(crate) fn check_parameters(&self) -> Result<(), SettingError> {
        check_bounds(self.lower_bound, self.upper_bound)?;
        SettingError::unless_share(
            "chance_of_ramping_down_when_full",
            self.chance_of_ramping_down_when_full,
        )?;
        SettingError::unless_positive("action_interval", self.action_interval)?;
        SettingError::unless_rate("explore_step_size", self.explore_step_size)?;
        SettingError::unless_share("chance_of_exploration", self.chance_of_exploration)?;
        SettingError::unless_share("downsize_ratio", self.downsize_ratio)?;
        if self.optimization_range < 2 {
            return Err(SettingError::new("optimization_range", self.optimization_range, "at least 2"));
        }
        SettingError::unless_share("weight_of_latest_metric", self.weight_of_latest_metric)
    }
}

/// Checks the bounds, which both resizers have.
fn check_bounds(lower: usize, upper: usize) -> Result<(), SettingError> {
    if upper < lower {
        return Err(SettingError::new("upper_bound", upper, format!("at least lower_bound, {lower}")));
    }
    Ok(())
}
