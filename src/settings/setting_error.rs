//! The error of a setting whose value is not allowed.

use crate::util::debug_by_display::debug_by_display;
use std::fmt;

/// A setting has a value that is not allowed: of a routing logic, a resizer, a hash ring, a backoff supervisor or a
/// restart policy.
#[doc(alias = "BackoffError")]
#[doc(alias = "LogicError")]
#[doc(alias = "PolicyError")]
#[doc(alias = "ResizerError")]
#[doc(alias = "RingError")]
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingError {
    /// The name of the setting.
    pub setting: String,
    /// Its value.
    pub value: String,
    /// The allowed values, as they follow "must be".
    pub allowed: String,
}

impl SettingError {
    /// Makes an error for a value that is not allowed, for use in
    /// [`RoutingLogic::check`](crate::routing::RoutingLogic::check) and
    /// [`Resizer::check`](crate::routing::Resizer::check).
    ///
    /// ```
    /// use pointsman::settings::SettingError;
    ///
    /// let error = SettingError::new("target", -1, "at least 0");
    /// assert_eq!(error.to_string(), "target -1: must be at least 0");
    /// ```
    pub fn new(setting: impl Into<String>, value: impl fmt::Display, allowed: impl Into<String>) -> Self {
        Self { setting: setting.into(), value: value.to_string(), allowed: allowed.into() }
    }

    /// Checks a number that must be at least 0 and finite.
    pub(crate) fn unless_rate(setting: &str, value: f64) -> Result<(), Self> {
        if value >= 0.0 && value.is_finite() {
            return Ok(());
        }
        Err(Self::new(setting, value, "finite and at least 0"))
    }

    /// Checks a number that must be in [0, 1].
    pub(crate) fn unless_share(setting: &str, value: f64) -> Result<(), Self> {
        if (0.0..=1.0).contains(&value) {
            return Ok(());
        }
        Err(Self::new(setting, value, "at least 0 and at most 1"))
    }

    /// Checks a time that must be more than 0.
    pub(crate) fn unless_positive(setting: &str, value: std::time::Duration) -> Result<(), Self> {
        if !value.is_zero() {
            return Ok(());
        }
        Err(Self::new(setting, 0, "more than zero"))
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, value, allowed } = self;
        write!(f, "{setting} {value}: must be {allowed}")
    }
}

impl std::error::Error for SettingError {}

debug_by_display! { SettingError }
