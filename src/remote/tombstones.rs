//! The systems that were declared down, by UID: nothing of them is taken any more, though a healed route release it.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

/// The time for which a UID is kept.
pub(crate) const KEPT_FOR: Duration = Duration::from_secs(3600);

/// The most UIDs that are kept: the oldest is forgotten for a further one.
pub(crate) const KEPT_MAX: usize = 4096;

/// UIDs of systems that were declared down.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    dead: HashSet<u64>,
    /// In the order in which they were declared down.
    order: VecDeque<(Duration, u64)>,
}

impl Tombstones {
    pub(crate) fn is_empty(&self) -> bool {
        self.dead.is_empty()
    }

    /// Declares a system down. One that is down already keeps its time.
    pub(crate) fn add(&mut self, uid: u64, now: Duration) {
        self.forget_old(now);
        if !self.dead.insert(uid) {
            return;
        }
        if self.order.len() == KEPT_MAX {
            if let Some((_, oldest)) = self.order.pop_front() {
                self.dead.remove(&oldest);
            }
        }
        self.order.push_back((now, uid));
    }

    /// Whether the system was declared down.
    pub(crate) fn has(&self, uid: u64) -> bool {
        self.dead.contains(&uid)
    }

    /// Forgets the systems that were declared down long ago.
    pub(crate) fn forget_old(&mut self, now: Duration) {
        while let Some((since, uid)) = self.order.front() {
            if now.saturating_sub(*since) < KEPT_FOR {
                break;
            }
            self.dead.remove(uid);
            self.order.pop_front();
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn a_system_is_down_for_an_hour() {
        let mut tombstones = Tombstones::default();
        tombstones.add(7, Duration::ZERO);
        tombstones.add(7, Duration::from_secs(1800));
        tombstones.forget_old(KEPT_FOR - Duration::from_nanos(1));
        assert!(tombstones.has(7) && !tombstones.has(8));
        tombstones.forget_old(KEPT_FOR);
        assert!(!tombstones.has(7));
        assert_eq!(tombstones.len(), 0);
    }

    #[test]
    fn the_oldest_goes_for_one_beyond_the_limit() {
        let mut tombstones = Tombstones::default();
        (0..KEPT_MAX as u64).for_each(|uid| tombstones.add(uid, Duration::ZERO));
        assert!(tombstones.has(0) && tombstones.len() == KEPT_MAX);
        tombstones.add(KEPT_MAX as u64, Duration::ZERO);
        assert!(!tombstones.has(0) && tombstones.has(1) && tombstones.has(KEPT_MAX as u64));
        assert_eq!(tombstones.len(), KEPT_MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        /// Against a list of all that were ever added.
        #[test]
        fn a_system_is_down_from_its_declaration_until_its_hour_is_over(steps in vec((0u64..6, 0u64..1500), 0..40)) {
            let (mut tombstones, mut now) = (Tombstones::default(), Duration::ZERO);
            let mut added: Vec<(u64, Duration)> = Vec::new();
            for (uid, pause) in steps {
                now += Duration::from_secs(pause);
                added.retain(|(_, since)| now - *since < KEPT_FOR);
                if !added.iter().any(|(other, _)| *other == uid) {
                    added.push((uid, now));
                }
                tombstones.add(uid, now);
                for uid in 0..6 {
                    prop_assert_eq!(tombstones.has(uid), added.iter().any(|(other, _)| *other == uid));
                }
                prop_assert_eq!(tombstones.len(), added.len());
            }
        }
    }
}
