//! The settings of a system's telemetry.

use crate::core::classes::{CLASSES_MAX, CLASSES_MAX_DEFAULT};
use std::num::NonZeroU32;
use std::time::Duration;

/// The settings of a system's telemetry; see
/// [`SystemBuilder::telemetry`](crate::SystemBuilder::telemetry).
///
/// The counts of messages, actors and routers are always kept. These settings are about times, which need a look at the
/// clock, and about the watchdog, which needs a timer while a thread of the system is awake.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::telemetry::Telemetry;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop")
///     .telemetry(Telemetry::sampled().stuck_after(Duration::from_secs(5)))
///     .build()?;
/// system.set_telemetry(Telemetry::off()); // while it runs
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
#[must_use = "settings have no effect before a system has them"]
pub struct Telemetry {
    /// One block in so many; 0: none.
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::U32"))]
    waits: u32,
    /// One turn in so many; 0: none.
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::U32"))]
    turns: u32,
    /// `None`: there is no watchdog.
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::span_or_never"))]
    stuck_after: Option<Duration>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Whole::<usize, 0, 4095>"))]
    classes_max: usize,
}

const _: () = assert!(CLASSES_MAX == 4095, "the bound of the file's key");

/// One block in so many.
const WAITS_DEFAULT: u32 = 4;

/// One turn in so many.
const TURNS_DEFAULT: u32 = 64;

const STUCK_AFTER_DEFAULT: Duration = Duration::from_secs(1);

impl Telemetry {
    /// Measures no times, and has no watchdog.
    pub fn off() -> Self {
        Self { waits: 0, turns: 0, stuck_after: None, classes_max: CLASSES_MAX_DEFAULT }
    }

    /// Measures the wait of the first message of one block in 4, and the waits of messages that wake idle actors in the same
    /// measure; the handlers of one turn in 64; and reports handlers that run longer than a second.
    pub fn sampled() -> Self {
        Self {
            waits: WAITS_DEFAULT,
            turns: TURNS_DEFAULT,
            stuck_after: Some(STUCK_AFTER_DEFAULT),
            classes_max: CLASSES_MAX_DEFAULT,
        }
    }

    /// Measures how long messages wait in their mailboxes: the first message of one block of 31 in so many. Of the
    /// messages that wake idle actors it measures those that an actor sends in a [measured turn](Self::turns) on a
    /// work-stealing dispatcher, and of those that come from elsewhere one in the square of that number; such a wait ends
    /// when the turn begins. Messages in mailboxes that sort or displace, in the queues of balancing pools, and on
    /// calling-thread dispatchers are not measured.
    pub fn waits(mut self, one_block_in: NonZeroU32) -> Self {
        self.waits = one_block_in.get();
        self
    }

    /// Measures how long handlers take, and how many messages a turn meets: in one turn in so many of each thread. Where
    /// threads that are not the engine's run turns, as on a calling-thread dispatcher, it measures each turn.
    pub fn turns(mut self, one_in: NonZeroU32) -> Self {
        self.turns = one_in.get();
        self
    }

    /// Reports a handler that runs longer than `length`, by the system's clock, on a thread of the engine: as an
    /// [event](crate::telemetry::Lifecycle::Stuck), as a warning in the log, and in [`Stats::stuck`]. The report comes
    /// at most half of `length` late, and only once for each such handler. [`Duration::MAX`]: no handler is reported.
    ///
    /// [`Stats::stuck`]: crate::telemetry::Stats::stuck
    pub fn stuck_after(mut self, length: Duration) -> Self {
        // A length of zero would be looked at without a pause.
        self.stuck_after = (length != Duration::MAX).then_some(length.max(Duration::from_millis(2)));
        self
    }

    /// Tells so many classes of actors apart, 4095 at most; actors of further classes count as `other`. Default: 256.
    pub fn classes_max(mut self, count: usize) -> Self {
        self.classes_max = count.min(CLASSES_MAX);
        self
    }

    pub(crate) fn one_block_in(&self) -> u32 {
        self.waits
    }

    pub(crate) fn one_turn_in(&self) -> u32 {
        self.turns
    }

    pub(crate) fn patience(&self) -> Option<Duration> {
        self.stuck_after
    }

    pub(crate) fn class_count_max(&self) -> usize {
        self.classes_max
    }
}

/// Measures no times, and reports handlers that run longer than a second.
impl Default for Telemetry {
    fn default() -> Self {
        Self { stuck_after: Some(STUCK_AFTER_DEFAULT), ..Self::off() }
    }
}
