//! The delays before restarts: those of a restart policy and of a backoff supervisor.

use crate::settings::setting_error::SettingError;
use std::time::Duration;

/// The delays before the restarts of an actor in a row: `min × factorⁿ` before the n-th, counted from 0, and no longer
/// than `max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RestartDelay {
    pub(crate) min: Duration,
    /// Not below `min`.
    pub(crate) max: Duration,
    /// 0 or above.
    pub(crate) factor: f64,
}

impl RestartDelay {
    /// Doubles from `min` up to `max`.
    pub(crate) fn doubling(min: Duration, max: Duration) -> Self {
        Self { min, max, factor: 2.0 }
    }

    /// Refuses a longest delay that is shorter than the shortest; `longest` names that setting.
    pub(crate) fn check(&self, longest: &str) -> Result<(), SettingError> {
        let Self { min, max, .. } = self;
        if min <= max {
            return Ok(());
        }
        Err(SettingError::new(longest, format_args!("{max:?}"), format!("at least the shortest, {min:?}")))
    }

    /// Returns the delay of the restart after `count` others.
    pub(crate) fn after(&self, count: u32) -> Duration {
        // Zero times an unbounded power is not a number.
        if self.min.is_zero() {
            return Duration::ZERO;
        }
        let power = self.factor.powi(i32::try_from(count).unwrap_or(i32::MAX));
        let delay = Duration::try_from_secs_f64(self.min.as_secs_f64() * power);
        delay.unwrap_or(self.max).clamp(self.min, self.max)
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_delay_is_the_one_before_times_the_factor_within_the_bounds() {
        const SECOND: Duration = Duration::from_secs(1);
        let first = |delay: RestartDelay| [0, 1, 2, 3, 4].map(|count| delay.after(count).as_secs_f64());
        let doubling = RestartDelay::doubling(SECOND, 10 * SECOND);
        assert_eq!(first(doubling), [1.0, 2.0, 4.0, 8.0, 10.0]);
        assert_eq!(first(RestartDelay { factor: 1.5, ..doubling }), [1.0, 1.5, 2.25, 3.375, 5.0625]);
        assert_eq!(first(RestartDelay { factor: 0.0, ..doubling }), [1.0; 5]);
        assert_eq!(first(RestartDelay { factor: f64::INFINITY, ..doubling }), [1.0, 10.0, 10.0, 10.0, 10.0]);
        // A power that overflows is the longest delay, and makes nothing of nothing.
        for count in [64, u32::MAX] {
            assert_eq!(doubling.after(count), 10 * SECOND);
            assert_eq!(RestartDelay::doubling(SECOND, Duration::MAX).after(count), Duration::MAX);
            assert_eq!(RestartDelay::doubling(Duration::ZERO, SECOND).after(count), Duration::ZERO);
        }
        let nanosecond = Duration::from_nanos(1);
        assert_eq!(
            RestartDelay::doubling(nanosecond, Duration::MAX).after(40),
            Duration::from_nanos(1 << 40)
        );
    }
}
