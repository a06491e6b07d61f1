//! The refusals of a link, by their reasons.

use crate::core::dead_letter::DeadLetterReason;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::fmt;

const REASONS: usize = DeadLetterReason::ALL.len();

/// So many envelopes of a peer were refused here, for each reason.
///
/// The reasons are those of dead letters. [`NotAllowed`](DeadLetterReason::NotAllowed) is the policy's, or that of an answer to
/// an ask that the peer was not asked. [`NodeGone`](DeadLetterReason::NodeGone) is that of an envelope which has come, and was not
/// handled before the link ended. [`TooLarge`](DeadLetterReason::TooLarge) and [`Undecodable`](DeadLetterReason::Undecodable) count
/// all envelopes of a batch that was refused as a whole.
///
/// ```
/// use pointsman::DeadLetterReason;
/// use pointsman::remote::Refusals;
///
/// let refusals = Refusals::default();
/// assert_eq!((refusals.of(DeadLetterReason::Full), refusals.total()), (0, 0));
/// assert_eq!(refusals.iter().count(), 0);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Refusals([u64; REASONS]);

impl Default for Refusals {
    fn default() -> Self {
        Self([0; REASONS])
    }
}

impl Refusals {
    /// The envelopes that were refused for this reason.
    pub fn of(&self, reason: DeadLetterReason) -> u64 {
        self.0[reason as usize]
    }

    /// The envelopes that were refused for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons for which envelopes were refused, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (DeadLetterReason, u64)> + '_ {
        DeadLetterReason::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The counters of a link.
#[derive(Default)]
pub(crate) struct RefusalCounters([AtomicU64; REASONS]);

impl RefusalCounters {
    pub(crate) fn count(&self, reason: DeadLetterReason, envelopes: u64) {
        // Ordering: Relaxed; a statistic.
        self.0[reason as usize].fetch_add(envelopes, Ordering::Relaxed);
    }

    pub(crate) fn sum(&self) -> Refusals {
        // Ordering: Relaxed; as above.
        Refusals(std::array::from_fn(|reason| self.0[reason].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let counters = RefusalCounters::default();
        for (count, reason) in (1..).zip(DeadLetterReason::ALL) {
            counters.count(reason, count);
        }
        counters.count(DeadLetterReason::Full, 100);
        let sum = counters.sum();
        assert_eq!(sum.of(DeadLetterReason::Stopped), 1);
        assert_eq!(sum.of(DeadLetterReason::Full), 102);
        assert_eq!(sum.of(DeadLetterReason::LateReply), 20);
        assert_eq!(sum.of(DeadLetterReason::Incomplete), 21);
        assert_eq!(sum.total(), 100 + (1..=21).sum::<u64>());
        assert_eq!(sum.iter().count(), 21);
        let one = RefusalCounters::default();
        one.count(DeadLetterReason::NoActor, 3);
        assert_eq!(format!("{:?}", one.sum()), "{NoActor: 3}");
    }
}
