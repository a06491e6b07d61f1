//! Buckets count samples by their sizes: four buckets for each power of two.
//!
//! One thread writes, by a load and a store, as with the counters of the ledger; any thread reads. A reader meets each
//! bucket at some moment of its own, and no bucket ever falls.

use crate::sync::atomic::{AtomicU32, Ordering};

/// Buckets of one histogram: from 64 ns, or 1 message, to 275 s, or 2^32 messages.
pub(crate) const BUCKET_COUNT: usize = if crate::sync::EXPLORED { 2 } else { 128 };

/// The bits of the lower bound of the first bucket, less the two that tell the four buckets of a power apart.
const FIRST_SHIFT: u32 = 4;

/// A message, in the unit of nanoseconds in which times are counted: the first bucket then holds 1.
const MESSAGE: u64 = 64;

/// The counts of one histogram.
#[derive(Debug)]
pub(crate) struct Buckets([AtomicU32; BUCKET_COUNT]);

impl Default for Buckets {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU32::new(0)))
    }
}

/// Returns the bucket of a time in nanoseconds.
#[inline]
pub(crate) fn bucket_of(nanoseconds: u64) -> usize {
    let least = 4 << FIRST_SHIFT;
    let size = nanoseconds.max(least);
    let power = 63 - size.leading_zeros();
    let quarter = (size >> (power - 2)) & 3;
    let bucket = ((power - 2 - FIRST_SHIFT) as usize) * 4 + quarter as usize;
    bucket.min(BUCKET_COUNT - 1)
}

/// Returns the least time in nanoseconds of a bucket. The first bucket takes all shorter times, too, and the last all
/// longer ones.
pub(crate) fn least_of(bucket: usize) -> u64 {
    let (power, quarter) = (bucket / 4, bucket as u64 % 4);
    (4 + quarter) << (power as u32 + FIRST_SHIFT)
}

/// Returns the least number of messages of a bucket.
pub(crate) fn least_messages_of(bucket: usize) -> u64 {
    least_of(bucket).div_ceil(MESSAGE)
}

impl Buckets {
    /// Counts a time. Only the writer of these buckets calls this, unless `is_shared`.
    pub(crate) fn count(&self, nanoseconds: u64, is_shared: bool) {
        let bucket = &self.0[bucket_of(nanoseconds)];
        // Ordering: Relaxed in all; a statistic.
        if is_shared {
            bucket.fetch_add(1, Ordering::Relaxed);
        } else {
            bucket.store(bucket.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// Counts a number of messages.
    pub(crate) fn count_messages(&self, messages: u64, is_shared: bool) {
        self.count(messages.saturating_mul(MESSAGE), is_shared);
    }

    /// Adds the counts to `sums`.
    pub(crate) fn add_to(&self, sums: &mut [u64; BUCKET_COUNT]) {
        for (sum, bucket) in sums.iter_mut().zip(&self.0) {
            // Ordering: Relaxed; a statistic.
            *sum += u64::from(bucket.load(Ordering::Relaxed));
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_time_lies_in_the_bucket_that_begins_at_or_before_it() {
        for bucket in 0..BUCKET_COUNT {
            let least = least_of(bucket);
            assert_eq!(bucket_of(least), bucket);
            assert_eq!(bucket_of(least - 1), bucket.saturating_sub(1));
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKET_COUNT - 1));
        assert_eq!((least_of(0), least_of(BUCKET_COUNT - 1)), (64, 7 << 35));
    }

    #[test]
    fn small_numbers_of_messages_have_buckets_of_their_own() {
        let buckets = Buckets::default();
        for messages in 1..=8 {
            buckets.count_messages(messages, messages % 2 == 0);
        }
        let mut sums = [0; BUCKET_COUNT];
        buckets.add_to(&mut sums);
        let counted: Vec<u64> =
            (0..BUCKET_COUNT).filter(|bucket| sums[*bucket] == 1).map(least_messages_of).collect();
        assert_eq!(counted, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(sums.iter().sum::<u64>(), 8);
    }
}
