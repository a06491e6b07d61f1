//! Errors of the settings of a backoff supervisor.

use std::fmt;
use std::time::Duration;

/// The settings of a [`Backoff`](crate::pattern::Backoff) contradict each other or have a value that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum BackoffError {
    /// The shortest delay is 0.
    ZeroMin,
    /// The longest delay is shorter than the shortest.
    MaxBelowMin {
        /// The shortest delay.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// The jitter is not between 0 and 1.
    Jitter {
        /// The given value.
        jitter: f64,
    },
    /// The time after which the count is reset is not between the shortest and the longest delay.
    Reset {
        /// The given value.
        after: Duration,
        /// The shortest delay.
        min: Duration,
        /// The longest.
        max: Duration,
    },
}

impl fmt::Display for BackoffError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackoffError::ZeroMin => f.write_str("shortest delay 0: must be above 0"),
            BackoffError::MaxBelowMin { min, max } => {
                write!(f, "longest delay {max:?}: must be at least the shortest, {min:?}")
            }
            BackoffError::Jitter { jitter } => write!(f, "jitter {jitter}: must be between 0 and 1"),
            BackoffError::Reset { after, min, max } => {
                write!(f, "reset after {after:?}: must be between {min:?} and {max:?}, or manual")
            }
        }
    }
}

impl std::error::Error for BackoffError {}
