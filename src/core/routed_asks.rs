//! The reference that an ask through a router counts, so that it can read its clock.
//!
//! An ask may outlive every reference to whom it asked; so it holds a reference to the system whose clock it goes by.
//! An ask of an actor counts one at the actor, on a line that its request changes anyway. Through a router that line
//! would be the head's, which nobody else changes: all who ask through the router would meet there, and nowhere else.
//! So each thread that asks has a count of its own, on a line of its own.

use crate::sync::OnceLock;
use crate::util::per_thread::PerThread;
use std::sync::Arc as StdArc;

/// What asks of one thread through one router hold. Aligned to a line, and so is the count of references before it.
#[repr(align(64))]
pub struct Routed<S> {
    pub system: S,
}

/// What each thread counts its asks through one router by. Empty until somebody asks.
pub struct RoutedAsks<S>(OnceLock<Box<PerThread<StdArc<Routed<S>>>>>);

impl<S: Clone + Send + Sync + 'static> RoutedAsks<S> {
    pub fn new() -> Self {
        Self(OnceLock::new())
    }

    /// A reference to the system for an ask that the calling thread begins.
    pub fn begin(&self, system: &S) -> StdArc<Routed<S>> {
        self.0
            .get_or_init(|| Box::new(PerThread::new()))
            .with(|_| StdArc::new(Routed { system: system.clone() }), StdArc::clone)
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn asks_of_one_thread_count_on_one_line_and_those_of_another_elsewhere() {
        let system = StdArc::new("asked");
        let asks = RoutedAsks::new();
        let [first, second] = [(), ()].map(|()| asks.begin(&system));
        assert!(StdArc::ptr_eq(&first, &second));
        assert_eq!(&raw const *first as usize % 64, 0);
        let other = std::thread::scope(|scope| scope.spawn(|| asks.begin(&system)).join().expect("no panic"));
        assert!(!StdArc::ptr_eq(&first, &other));
    }

    #[test]
    fn nothing_is_kept_of_a_router_through_which_nobody_asks_any_more() {
        let system = StdArc::new("asked");
        let asks = RoutedAsks::new();
        let ask = asks.begin(&system);
        drop(asks);
        assert_eq!(StdArc::strong_count(&ask), 1);
    }
}
