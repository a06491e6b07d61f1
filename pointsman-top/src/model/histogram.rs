//! Histograms as a server sends them: the ends of the buckets that have samples, and the samples of each.

use std::collections::BTreeMap;

/// Samples by bucket. The end of a bucket is the largest value that it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: BTreeMap<u64, u64>,
}

impl Histogram {
    /// Reads pairs of the end of a bucket and its samples.
    pub fn of(pairs: &[(u64, u64)]) -> Self {
        let mut buckets = BTreeMap::new();
        for &(end, count) in pairs.iter().filter(|(_, count)| *count > 0) {
            let samples: &mut u64 = buckets.entry(end).or_default();
            *samples = samples.saturating_add(count);
        }
        Self { buckets }
    }

    /// The samples that have come since `before`.
    pub fn since(&self, before: &Self) -> Self {
        let mut buckets = self.buckets.clone();
        buckets.retain(|end, count| {
            *count = count.saturating_sub(before.buckets.get(end).copied().unwrap_or(0));
            *count > 0
        });
        Self { buckets }
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.buckets.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The end of the bucket in which the quantile lies; `None` without samples.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((count as f64 * quantile).ceil() as u64).clamp(1, count.max(1));
        let mut passed = 0_u64;
        self.buckets.iter().find_map(|(end, samples)| {
            passed = passed.saturating_add(*samples);
            (passed >= rank).then_some(*end)
        })
    }

    /// The end of the last bucket that has samples.
    pub fn largest(&self) -> Option<u64> {
        self.buckets.keys().next_back().copied()
    }

    /// The samples by powers of two: the exponents `e` of the ranges up to `2^e`, and the samples of each.
    pub fn octaves(&self) -> BTreeMap<u32, u64> {
        let mut octaves = BTreeMap::new();
        for (end, count) in &self.buckets {
            let exponent = end.max(&1).checked_next_power_of_two().map_or(64, u64::ilog2);
            let samples: &mut u64 = octaves.entry(exponent).or_default();
            *samples = samples.saturating_add(*count);
        }
        octaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_ends_of_buckets() {
        let histogram = Histogram::of(&[(100, 50), (200, 49), (400, 1)]);
        assert_eq!(histogram.count(), 100);
        for (quantile, end) in [(0.0, 100), (0.5, 100), (0.51, 200), (0.99, 200), (0.999, 400), (1.0, 400)] {
            assert_eq!(histogram.quantile(quantile), Some(end), "{quantile}");
        }
        assert_eq!(histogram.largest(), Some(400));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn a_difference_has_the_new_samples() {
        let (before, after) = (Histogram::of(&[(1, 5), (2, 5)]), Histogram::of(&[(1, 5), (2, 8), (4, 1)]));
        assert_eq!(after.since(&before), Histogram::of(&[(2, 3), (4, 1)]));
        assert_eq!(before.since(&after), Histogram::default());
    }

    #[test]
    fn octaves_end_at_powers_of_two() {
        let histogram = Histogram::of(&[(0, 1), (1, 1), (64, 1), (80, 2), (128, 4), (u64::MAX, 1)]);
        let octaves: Vec<_> = histogram.octaves().into_iter().collect();
        assert_eq!(octaves, [(0, 2), (6, 1), (7, 6), (64, 1)]);
    }

    #[test]
    fn counts_beyond_all_bounds_do_not_wrap() {
        let histogram = Histogram::of(&[(1, u64::MAX), (1, 7), (2, u64::MAX)]);
        assert_eq!(histogram.count(), u64::MAX);
        assert_eq!(histogram.quantile(0.5), Some(1));
    }
}
