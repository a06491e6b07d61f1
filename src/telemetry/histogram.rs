//! Histograms, as values.

use crate::measure::buckets::{BUCKET_COUNT, Buckets, least_messages_of, least_of};
use std::fmt;
use std::time::Duration;

/// How many samples there are of which time: four buckets for each power of two, from 64 ns to 275 s.
///
/// ```
/// use pointsman::telemetry::Histogram;
///
/// let empty = Histogram::default();
/// assert_eq!((empty.count(), empty.quantile(0.99)), (0, None));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram(Counts);

/// How many samples there are of which number of messages: four buckets for each power of two. Numbers up to 7 have
/// buckets of their own.
#[derive(Clone, PartialEq, Eq)]
pub struct DepthHistogram(Counts);

type Counts = Box<[u64; BUCKET_COUNT]>;

fn none() -> Counts {
    Box::new([0; BUCKET_COUNT])
}

/// Returns the bucket in which the sample of this rank lies.
fn bucket_at(counts: &[u64; BUCKET_COUNT], quantile: f64) -> Option<usize> {
    let total: u64 = counts.iter().sum();
    // The rank counts from 1: the quantile 0 is the least sample.
    let rank = ((quantile.clamp(0.0, 1.0) * total as f64).ceil() as u64).max(1);
    let mut below = 0;
    counts.iter().position(|count| {
        below += count;
        below >= rank
    })
}

fn merge(counts: &mut [u64; BUCKET_COUNT], others: &[u64; BUCKET_COUNT]) {
    counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
}

fn since(counts: &[u64; BUCKET_COUNT], before: &[u64; BUCKET_COUNT]) -> Counts {
    Box::new(std::array::from_fn(|bucket| counts[bucket].saturating_sub(before[bucket])))
}

impl Histogram {
    pub(crate) fn add(&mut self, buckets: &Buckets) {
        buckets.add_to(&mut self.0);
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the time below which this share of the samples lies, from 0 to 1: the upper end of the bucket that has the
    /// quantile, so a quarter more at most. `None` without samples.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        bucket_at(&self.0, quantile).map(|bucket| Duration::from_nanos(least_of(bucket + 1)))
    }

    /// Adds the samples of another histogram.
    pub fn merge(&mut self, other: &Self) {
        merge(&mut self.0, &other.0);
    }

    /// Returns the samples that have come since `before` was taken.
    pub fn since(&self, before: &Self) -> Self {
        Self(since(&self.0, &before.0))
    }

    /// The buckets, each with its upper end and its number of samples. The last bucket has all longer times, too.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.0.iter().enumerate().map(|(bucket, count)| (Duration::from_nanos(least_of(bucket + 1)), *count))
    }
}

impl DepthHistogram {
    pub(crate) fn add(&mut self, buckets: &Buckets) {
        buckets.add_to(&mut self.0);
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the number of messages that this share of the samples does not exceed, from 0 to 1: the largest number of
    /// the bucket that has the quantile. `None` without samples.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        bucket_at(&self.0, quantile).map(most_messages_of)
    }

    /// Adds the samples of another histogram.
    pub fn merge(&mut self, other: &Self) {
        merge(&mut self.0, &other.0);
    }

    /// Returns the samples that have come since `before` was taken.
    pub fn since(&self, before: &Self) -> Self {
        Self(since(&self.0, &before.0))
    }

    /// The buckets that numbers can lie in, each with its largest number of messages and its number of samples.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.0.iter().enumerate();
        // Between small numbers there is no other.
        let has_numbers =
            |(bucket, _): &(usize, &u64)| least_messages_of(bucket + 1) > least_messages_of(*bucket);
        counts.filter(has_numbers).map(|(bucket, count)| (most_messages_of(bucket), *count))
    }
}

/// Returns the largest number of messages of a bucket.
fn most_messages_of(bucket: usize) -> u64 {
    least_messages_of(bucket + 1) - 1
}

impl Default for Histogram {
    fn default() -> Self {
        Self(none())
    }
}

impl Default for DepthHistogram {
    fn default() -> Self {
        Self(none())
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = [self.quantile(0.5), self.quantile(0.99)];
        f.debug_struct("Histogram").field("count", &self.count()).field("p50, p99", &shares).finish()
    }
}

impl fmt::Debug for DepthHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = [self.quantile(0.5), self.quantile(0.99)];
        f.debug_struct("DepthHistogram").field("count", &self.count()).field("p50, p99", &shares).finish()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    fn of(times: impl IntoIterator<Item = u64>) -> Histogram {
        let buckets = Buckets::default();
        times.into_iter().for_each(|time| buckets.count(time, false));
        let mut histogram = Histogram::default();
        histogram.add(&buckets);
        histogram
    }

    #[test]
    fn a_quantile_is_within_a_bucket_of_the_sorted_samples() {
        // A linear congruential sequence, over many powers of two.
        let mut seed = 7_u64;
        let mut times: Vec<u64> = (0..10_000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33) >> (seed >> 59)
            })
            .collect();
        let histogram = of(times.iter().copied());
        times.sort_unstable();
        for share in [0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = times[((share * 10_000.0_f64).ceil() as usize).max(1) - 1];
            let found = histogram.quantile(share).expect("samples").as_nanos() as u64;
            assert!(found > exact && found <= (exact + exact / 4 + 1).max(80), "{share}: {exact} {found}");
        }
    }

    #[test]
    fn merged_is_recorded_and_a_difference_is_what_has_come() {
        let (mut one, two) = (of(0..1000), of(500..3000));
        let before = one.clone();
        one.merge(&two);
        assert_eq!(one, of((0..1000).chain(500..3000)));
        assert_eq!(one.since(&before), two);
        assert_eq!(one.count(), 3500);
        assert_eq!(one.buckets().map(|(_, count)| count).sum::<u64>(), 3500);
    }

    #[test]
    fn depths_tell_small_numbers_apart() {
        let buckets = Buckets::default();
        [1, 1, 1, 2, 3, 5, 8, 100].into_iter().for_each(|depth| buckets.count_messages(depth, false));
        let mut depths = DepthHistogram::default();
        depths.add(&buckets);
        let shares = [0.1, 0.5, 0.625, 0.75, 0.875].map(|share| depths.quantile(share).expect("samples"));
        assert_eq!(shares, [1, 2, 3, 5, 9]);
        assert_eq!(depths.quantile(1.0), Some(111));
        let first: Vec<(u64, u64)> = depths.buckets().take(5).collect();
        assert_eq!(first, [(1, 3), (2, 1), (3, 1), (4, 0), (5, 1)]);
        assert_eq!(depths.buckets().map(|(_, count)| count).sum::<u64>(), 8);
    }
}
