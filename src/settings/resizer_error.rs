//! Errors of the settings of a resizer.

use std::fmt;

/// A pool cannot have this resizer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResizerError {
    /// The value of a parameter is not allowed.
    Parameter {
        /// The parameter's name.
        name: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: String,
    },
    /// The router is a group: it makes no routees.
    NotAPool,
    /// The pool's routees [share one queue](crate::routing::Balancing), so their own mailboxes show no load.
    SharedQueue,
}

impl ResizerError {
    /// Makes an error for a value that is not allowed, for use in [`Resizer::check`](crate::routing::Resizer::check).
    ///
    /// ```
    /// use pointsman::routing::ResizerError;
    ///
    /// let error = ResizerError::parameter("target", -1, "at least 0");
    /// assert_eq!(error.to_string(), "target is -1: must be at least 0");
    /// ```
    pub fn parameter(name: &'static str, value: impl fmt::Display, allowed: impl Into<String>) -> Self {
        ResizerError::Parameter { name, value: value.to_string(), allowed: allowed.into() }
    }

    /// Checks a number that must be at least 0 and finite.
    pub(crate) fn unless_rate(name: &'static str, value: f64) -> Result<(), Self> {
        if value >= 0.0 && value.is_finite() {
            return Ok(());
        }
        Err(Self::parameter(name, value, "finite and at least 0"))
    }

    /// Checks a number that must be in [0, 1].
    pub(crate) fn unless_share(name: &'static str, value: f64) -> Result<(), Self> {
        if (0.0..=1.0).contains(&value) {
            return Ok(());
        }
        Err(Self::parameter(name, value, "at least 0 and at most 1"))
    }

    /// Checks a time that must be more than 0.
    pub(crate) fn unless_positive(name: &'static str, value: std::time::Duration) -> Result<(), Self> {
        if !value.is_zero() {
            return Ok(());
        }
        Err(Self::parameter(name, format_args!("{value:?}"), "more than 0"))
    }
}

impl fmt::Display for ResizerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResizerError::Parameter { name, value, allowed } => {
                write!(f, "{name} is {value}: must be {allowed}")
            }
            ResizerError::NotAPool => {
                f.write_str("a group makes no routees: leave the resizer out, or make the router a pool")
            }
            ResizerError::SharedQueue => f.write_str(
                "the routees of a balancing pool share one queue, so their loads say nothing: leave the resizer out, \
                 or make it another pool",
            ),
        }
    }
}

impl std::error::Error for ResizerError {}
