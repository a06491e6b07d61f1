//! The failure detector: how unlikely it is that a peer which has been silent for so long is alive.
//!
//! This is the phi accrual detector of Hayashibara and others, with Akka's approximation of the normal distribution. `phi` is
//! minus the decimal logarithm of the probability that a heartbeat comes later than now: with phi 10, one in 10^10.

use crate::util::debug_by_display::debug_by_display;
use std::collections::VecDeque;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The intervals between heartbeats that can be set.
const HEARTBEATS: RangeInclusive<Duration> = Duration::from_millis(10)..=TIME_MAX;

/// The longest time that can be set.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The greatest threshold. The probabilities beyond are as good as 0.
const THRESHOLD_MAX: f64 = 300.0;

/// The greatest window: each look at a peer adds up all intervals in it.
const WINDOW_MAX: usize = 10_000;

/// A setting of the failure detector was given a value that it cannot have.
#[derive(Clone, PartialEq, Eq)]
pub struct DetectorError {
    key: &'static str,
    value: String,
    bounds: String,
}

impl DetectorError {
    fn new(key: &'static str, value: impl fmt::Debug, bounds: String) -> Self {
        Self { key, value: format!("{value:?}"), bounds }
    }

    /// Returns the key of the setting below `[remote.detector]`, which is its name with hyphens.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// Returns the value that was given, as text.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns the values that the setting can have, as text.
    pub fn bounds(&self) -> &str {
        &self.bounds
    }
}

impl fmt::Display for DetectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, bounds } = self;
        write!(f, "the setting {key} of the detector is {value}: must be {bounds}")
    }
}

impl std::error::Error for DetectorError {}

debug_by_display! { DetectorError }

/// Checks that a time is within these bounds.
fn check_time(
    key: &'static str,
    time: Duration,
    bounds: RangeInclusive<Duration>,
) -> Result<(), DetectorError> {
    let (least, most) = (bounds.start(), bounds.end());
    match bounds.contains(&time) {
        true => Ok(()),
        false => Err(DetectorError::new(key, time, format!("at least {least:?}, and at most {most:?}"))),
    }
}

/// Checks the time between a suspicion and the end of a node.
pub(crate) fn check_down_after(down_after: Duration, heartbeat: Duration) -> Result<(), DetectorError> {
    match (heartbeat..=TIME_MAX).contains(&down_after) {
        true => Ok(()),
        false => {
            let bounds = format!("at least heartbeat, {heartbeat:?}, and at most {TIME_MAX:?}");
            Err(DetectorError::new("down-after", down_after, bounds))
        }
    }
}

/// The settings by which a silent node is suspected: see [`Node::detector`](crate::remote::Node::detector).
///
/// The detector learns how regularly a node is heard. It suspects the node when the silence has become so long that a
/// heartbeat is as unlikely to come still as one in 10^[threshold](Self::threshold).
///
/// ```
/// use pointsman::remote::DetectorSettings;
/// use std::time::Duration;
///
/// let far_away = DetectorSettings::new().acceptable_pause(Duration::from_secs(10)).threshold(12.0);
/// assert!(far_away.check().is_ok());
/// let error = far_away.threshold(f64::NAN).check().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the setting threshold of the detector is NaN: must be a number above 0, and at most 300"
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use = "settings have no effect before a node has them"]
pub struct DetectorSettings {
    pub(crate) heartbeat: Duration,
    pub(crate) acceptable_pause: Duration,
    pub(crate) threshold: f64,
    pub(crate) least_deviation: Duration,
    pub(crate) window: usize,
}

impl DetectorSettings {
    /// Returns the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the interval at which heartbeats are sent, 10 ms to a day; 1 s by default. All nodes of a cluster have the same.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.heartbeat = interval;
        self
    }

    /// Sets the silence that is always accepted, beyond the mean interval, 1 ms to a day; 3 s by default.
    pub fn acceptable_pause(mut self, pause: Duration) -> Self {
        self.acceptable_pause = pause;
        self
    }

    /// Sets how unlikely a further heartbeat must be, as the exponent of 1/10, above 0 and at most 300; 10 by default.
    pub fn threshold(mut self, threshold: f64) -> Self {
        self.threshold = threshold;
        self
    }

    /// Sets the least deviation that is reckoned with, for heartbeats that come very regularly, 1 ms to a day; 100 ms by
    /// default.
    pub fn least_deviation(mut self, deviation: Duration) -> Self {
        self.least_deviation = deviation;
        self
    }

    /// Sets the number of intervals that are remembered, 1 to 10,000; 200 by default.
    pub fn window(mut self, intervals: usize) -> Self {
        self.window = intervals;
        self
    }

    /// Checks that each setting is within its bounds. A node with other settings does not start.
    ///
    /// # Errors
    ///
    /// [`DetectorError`] names the first setting that is not, its value and the bounds.
    pub fn check(&self) -> Result<(), DetectorError> {
        let Self { heartbeat, acceptable_pause, threshold, least_deviation, window } = *self;
        let times = || Duration::from_millis(1)..=TIME_MAX;
        check_time("heartbeat", heartbeat, HEARTBEATS)?;
        check_time("acceptable-pause", acceptable_pause, times())?;
        check_time("least-deviation", least_deviation, times())?;
        // NaN is neither.
        if !(threshold > 0.0 && threshold <= THRESHOLD_MAX) {
            let bounds = format!("a number above 0, and at most {THRESHOLD_MAX}");
            return Err(DetectorError::new("threshold", threshold, bounds));
        }
        if !(1..=WINDOW_MAX).contains(&window) {
            let bounds = format!("a whole number from 1 to {WINDOW_MAX}");
            return Err(DetectorError::new("window", window, bounds));
        }
        Ok(())
    }
}

impl Default for DetectorSettings {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(1),
            acceptable_pause: Duration::from_secs(3),
            threshold: 10.0,
            least_deviation: Duration::from_millis(100),
            window: 200,
        }
    }
}

/// The detector of a peer. Times are those of the system's clock.
#[derive(Debug)]
pub(crate) struct Detector {
    settings: DetectorSettings,
    /// Seconds between heartbeats.
    intervals: VecDeque<f64>,
    /// The last heartbeat.
    beat: Duration,
    /// The last frame of any kind.
    last: Duration,
}

impl Detector {
    /// A detector of a peer that was heard now, and is expected to send at the set interval.
    pub(crate) fn new(settings: DetectorSettings, now: Duration) -> Self {
        // As if two heartbeats had come, a quarter early and a quarter late.
        let expected = settings.heartbeat.as_secs_f64();
        let intervals = VecDeque::from([expected * 0.75, expected * 1.25]);
        Self { settings, intervals, beat: now, last: now }
    }

    /// A frame of the peer came that is no heartbeat, and tells nothing of the intervals between them.
    pub(crate) fn heard_other(&mut self, now: Duration) {
        self.last = self.last.max(now);
    }

    /// A heartbeat of the peer came.
    pub(crate) fn heard(&mut self, now: Duration) {
        // An interval of a peer that was suspected would make the next silence seem usual.
        if !self.is_suspect(now) {
            if self.intervals.len() >= self.settings.window.max(1) {
                self.intervals.pop_front();
            }
            self.intervals.push_back(now.saturating_sub(self.beat).as_secs_f64());
        }
        self.last = self.last.max(now);
        self.beat = self.last;
    }

    /// The node itself did not run for so long: the silence is not the peer's.
    pub(crate) fn forgive(&mut self, pause: Duration, now: Duration) {
        self.beat = self.beat.saturating_add(pause).min(now);
        self.last = self.last.saturating_add(pause).min(now);
    }

    pub(crate) fn last_heard(&self) -> Duration {
        self.last
    }

    /// How suspicious the silence is.
    pub(crate) fn phi(&self, now: Duration) -> f64 {
        let count = self.intervals.len() as f64;
        let mean = self.intervals.iter().sum::<f64>() / count;
        let variance = self.intervals.iter().map(|interval| (interval - mean).powi(2)).sum::<f64>() / count;
        let deviation = variance.sqrt().max(self.settings.least_deviation.as_secs_f64()).max(1e-9);
        let silence = now.saturating_sub(self.last).as_secs_f64();
        let y = (silence - mean - self.settings.acceptable_pause.as_secs_f64()) / deviation;
        // Of the logistic function that comes near the normal distribution: the probability of a later heartbeat is
        // `e / (1 + e)`. For large exponents only the exponent is left.
        let exponent = -y * (1.5976 + 0.070_566 * y * y);
        if exponent < -700.0 {
            -exponent / std::f64::consts::LN_10
        } else {
            -(1.0 / (1.0 + (-exponent).exp())).log10()
        }
    }

    pub(crate) fn is_suspect(&self, now: Duration) -> bool {
        self.phi(now) >= self.settings.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn settings_have_bounds_and_the_error_names_them() {
        let ok = DetectorSettings::new;
        let day = Duration::from_secs(86_400);
        for settings in [
            ok(),
            ok().heartbeat(millis(10)).acceptable_pause(millis(1)).least_deviation(millis(1)),
            ok().heartbeat(day).acceptable_pause(day).least_deviation(day),
            ok().threshold(f64::MIN_POSITIVE).window(1),
            ok().threshold(300.0).window(10_000),
        ] {
            assert_eq!(settings.check(), Ok(()), "{settings:?}");
        }
        let beyond = day + Duration::from_nanos(1);
        for (settings, key, value) in [
            (ok().heartbeat(Duration::ZERO), "heartbeat", "0ns"),
            (ok().heartbeat(millis(9)), "heartbeat", "9ms"),
            (ok().heartbeat(beyond), "heartbeat", "86400.000000001s"),
            (ok().acceptable_pause(Duration::ZERO), "acceptable-pause", "0ns"),
            (ok().acceptable_pause(Duration::MAX), "acceptable-pause", "18446744073709551615.999999999s"),
            (ok().least_deviation(Duration::ZERO), "least-deviation", "0ns"),
            (ok().least_deviation(beyond), "least-deviation", "86400.000000001s"),
            (ok().threshold(f64::NAN), "threshold", "NaN"),
            (ok().threshold(0.0), "threshold", "0.0"),
            (ok().threshold(-1.0), "threshold", "-1.0"),
            (ok().threshold(f64::INFINITY), "threshold", "inf"),
            (ok().threshold(300.5), "threshold", "300.5"),
            (ok().window(0), "window", "0"),
            (ok().window(10_001), "window", "10001"),
        ] {
            let error = settings.check().unwrap_err();
            assert_eq!((error.key(), error.value()), (key, value));
            let text = error.to_string();
            assert!(text.contains(key) && text.contains(value) && text.contains(error.bounds()), "{text}");
        }
        assert_eq!(check_down_after(millis(10), millis(10)), Ok(()));
        assert_eq!(check_down_after(day, millis(10)), Ok(()));
        for down_after in [Duration::ZERO, millis(9), beyond, Duration::MAX] {
            let error = check_down_after(down_after, millis(10)).unwrap_err();
            assert_eq!(
                (error.key(), error.bounds()),
                ("down-after", "at least heartbeat, 10ms, and at most 86400s")
            );
        }
    }

    #[test]
    fn regular_heartbeats_are_never_suspicious_and_silence_is() {
        let mut detector = Detector::new(DetectorSettings::default(), Duration::ZERO);
        for beat in 1..=500 {
            assert!(!detector.is_suspect(millis(beat * 1000)));
            detector.heard(millis(beat * 1000));
        }
        let silent_for = |silence: u64| detector.is_suspect(millis(500_000 + silence));
        // The mean and the accepted pause, and then some six deviations of 100 ms.
        assert!(!silent_for(4000) && !silent_for(4500));
        assert!(silent_for(4800) && silent_for(1_000_000_000));
        assert!(detector.phi(millis(504_000)) > 0.29 && detector.phi(millis(504_000)) < 0.31);
    }

    #[test]
    fn the_window_forgets_and_a_long_silence_is_not_learned() {
        let mut detector = Detector::new(DetectorSettings::default(), Duration::ZERO);
        let mut now = Duration::ZERO;
        for _ in 0..300 {
            now += millis(1000);
            detector.heard(now);
        }
        assert_eq!(detector.intervals.len(), 200);
        let before = detector.phi(now + millis(4500));
        now += Duration::from_secs(100);
        assert!(detector.is_suspect(now));
        detector.heard(now);
        assert!(!detector.is_suspect(now));
        assert_eq!(detector.phi(now + millis(4500)), before);
    }

    #[test]
    fn a_pause_of_the_node_itself_is_not_held_against_the_peer() {
        let mut detector = Detector::new(DetectorSettings::default(), Duration::ZERO);
        let now = Duration::from_secs(60);
        assert!(detector.is_suspect(now));
        detector.forgive(Duration::from_secs(58), now);
        assert!(!detector.is_suspect(now));
        // Never into the future.
        detector.forgive(Duration::from_secs(58), now);
        assert_eq!(detector.last_heard(), now);
    }

    #[test]
    fn frames_between_heartbeats_end_a_silence_and_do_not_change_the_intervals() {
        let mut detector = Detector::new(DetectorSettings::default(), Duration::ZERO);
        for beat in 1..=20 {
            detector.heard_other(millis(beat * 1000 - 500));
            detector.heard(millis(beat * 1000));
        }
        assert!(detector.is_suspect(millis(25_000)));
        detector.heard_other(millis(24_000));
        assert!(!detector.is_suspect(millis(25_000)) && detector.is_suspect(millis(29_000)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        /// Any intervals may come before: phi is a number that never falls while the peer is silent, a peer that is just heard is not
        /// suspected, and one that is silent for good is.
        #[test]
        fn phi_rises_with_silence(intervals in vec(0u64..20_000, 0..60), looks in vec(0u64..5000, 1..30)) {
            let mut detector = Detector::new(DetectorSettings::default(), Duration::ZERO);
            let mut now = Duration::ZERO;
            for interval in intervals {
                now += millis(interval);
                detector.heard(now);
                prop_assert!(!detector.is_suspect(now));
            }
            let mut before = detector.phi(now);
            for look in looks {
                now += millis(look);
                let phi = detector.phi(now);
                prop_assert!(phi.is_finite() && phi >= 0.0 && phi >= before - 1e-9, "{before} {phi}");
                before = phi;
            }
            prop_assert!(detector.is_suspect(now + Duration::from_secs(1000)));
        }
    }
}
