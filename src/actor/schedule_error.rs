//! The errors of timers.

use crate::core::error::SpawnError;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::time::Duration;

/// The longest delay or period of a task: some 292 million years.
pub(crate) const DELAY_MAX: Duration = Duration::from_millis(u64::MAX >> 1);

/// The reason why a task was not scheduled, or a receive timeout not set.
#[doc(alias = "ReceiveTimeoutError")]
#[derive(PartialEq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A repeating task has a period or delay of zero.
    ZeroPeriod,
    /// A delay or period is longer than [`TaskTimer::DELAY_MAX`](crate::timers::TaskTimer::DELAY_MAX).
    TooLong {
        /// The delay or period of the call.
        delay: Duration,
    },
    /// A [receive timeout](crate::Context::set_receive_timeout) is shorter than 1 millisecond.
    ReceiveTimeout {
        /// The length that was asked for.
        after: Duration,
    },
    /// The system has shut down, or is about to.
    ShutDown {
        /// The system's name.
        system: String,
    },
    /// The dispatcher can't run the task.
    Dispatcher(SpawnError),
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::ZeroPeriod => f.write_str("period 0 of a repeating task: must be more than zero"),
            ScheduleError::TooLong { delay } => {
                write!(f, "delay {delay:?}: must be at most {DELAY_MAX:?}")
            }
            ScheduleError::ReceiveTimeout { after } => write!(
                f,
                "receive timeout {after:?}: must be at least 1 ms, call cancel_receive_timeout to have none"
            ),
            ScheduleError::ShutDown { system } => {
                write!(f, "system {system:?} is shut down: it schedules nothing more")
            }
            ScheduleError::Dispatcher(error) => {
                write!(f, "scheduled tasks have no actor to run them: {error}")
            }
        }
    }
}

impl std::error::Error for ScheduleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ScheduleError::Dispatcher(error) => Some(error),
            _ => None,
        }
    }
}

debug_by_display! { ScheduleError }
