//! The loads of a pool, as its resizer sees them.

use crate::core::actor_ref::RecipientLoad;
use std::time::Duration;

/// The routees of a pool and their loads, at the moment when its resizer is asked.
///
/// The loads are read without stopping any routee, routee after routee: each value was true a moment ago.
#[derive(Debug, Clone, Default)]
pub struct RouteeLoads {
    loads: Vec<RecipientLoad>,
    queued: usize,
    messages: u64,
    new_messages: u64,
    now: Duration,
    seed: u64,
}

impl RouteeLoads {
    /// Routees with these loads, for tests of resizers.
    ///
    /// ```
    /// use pointsman::actor::RecipientLoad;
    /// use pointsman::routing::{DefaultResizer, Resizer, RouteeLoads};
    ///
    /// let full = RouteeLoads::new([RecipientLoad::Busy { queued: 3 }; 5]);
    /// assert_eq!(DefaultResizer::new().resize(&full), 1);
    /// ```
    pub fn new(loads: impl IntoIterator<Item = RecipientLoad>) -> Self {
        let mut all = Self::default();
        for load in loads {
            let queued = if let RecipientLoad::Busy { queued } = load { queued } else { 0 };
            all.push(load, queued);
        }
        all
    }

    /// Adds a routee with so many messages in its mailbox.
    pub(crate) fn push(&mut self, load: RecipientLoad, queued: usize) {
        self.loads.push(load);
        self.queued = self.queued.saturating_add(queued);
    }

    /// Sets how many messages were sent to the router so far, `new` of them since the resizer was last asked.
    pub fn with_messages(mut self, messages: u64, new: u64) -> Self {
        (self.messages, self.new_messages) = (messages, new);
        self
    }

    /// Sets the time of the system's clock.
    pub fn at(mut self, now: Duration) -> Self {
        self.now = now;
        self
    }

    /// Sets the seed of random numbers.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Returns the number of routees.
    pub fn len(&self) -> usize {
        self.loads.len()
    }

    /// Whether there are no routees.
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    /// Iterates over the loads of the routees, in the order of the table. A routee that a failure has suspended counts
    /// as busy in the resizers of this crate: it has stopped working, and has not run out of work.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RecipientLoad> + '_ {
        self.loads.iter().copied()
    }

    /// Returns the number of messages in all mailboxes, without those being handled.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Returns the number of messages sent to the router so far. While threads send, a little less than the truth.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns how many of them were sent since the resizer was last asked.
    pub fn new_messages(&self) -> u64 {
        self.new_messages
    }

    /// Whether there is no routee to handle messages, and yet they come: the moment to leave size 0.
    pub fn is_starved(&self) -> bool {
        self.loads.is_empty() && self.new_messages > 0
    }

    /// Returns the time by the system's clock.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Returns a number of this router's own that derives from the system's seed, for random decisions.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn loads_that_are_made_for_a_test_say_what_was_put_in() {
        let none = RouteeLoads::new([]).with_messages(5, 2);
        assert!(none.is_empty() && none.is_starved());
        let some = RouteeLoads::new([
            RecipientLoad::Idle,
            RecipientLoad::Busy { queued: 3 },
            RecipientLoad::Busy { queued: 4 },
        ])
        .with_messages(9, 1)
        .at(Duration::from_secs(6))
        .with_seed(8);
        assert!(!some.is_empty() && !some.is_starved());
        assert_eq!((some.len(), some.queued(), some.messages(), some.new_messages()), (3, 7, 9, 1));
        assert_eq!((some.now(), some.seed()), (Duration::from_secs(6), 8));
        assert!(some.iter().eq([
            RecipientLoad::Idle,
            RecipientLoad::Busy { queued: 3 },
            RecipientLoad::Busy { queued: 4 }
        ]));
    }
}
