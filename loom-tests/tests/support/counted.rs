//! Messages that tell leaks and double drops.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How often each message was dropped: one hexadecimal digit per message.
#[derive(Clone)]
pub struct Tally(Arc<AtomicUsize>);

/// A message that counts its drop.
pub struct Counted {
    pub number: usize,
    tally: Tally,
}

impl Tally {
    pub fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(0)))
    }

    pub fn message(&self, number: usize) -> Counted {
        Counted { number, tally: self.clone() }
    }

    /// Messages `0..count`, and no others, were dropped once each.
    pub fn assert_each_once(&self, count: usize) {
        self.assert_each_once_of(&Vec::from_iter(0..count));
    }

    /// These messages, and no others, were dropped once each.
    pub fn assert_each_once_of(&self, numbers: &[usize]) {
        let every: usize = numbers.iter().map(|number| 1 << (4 * number)).sum();
        assert_eq!(self.0.load(Relaxed), every, "a leak shows as 0, a double drop as 2");
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.tally.0.fetch_add(1 << (4 * self.number), Relaxed);
    }
}
