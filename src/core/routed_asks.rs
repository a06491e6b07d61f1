//! The reference that an ask through a router counts, so that it can read its clock.
//!
//! An ask may outlive every reference to its recipient. So it holds a reference to the system whose clock it uses. An
//! ask of an actor counts one at the actor, in a cache line that its request changes anyway. Through a router that line
//! would be the head's, which no other code changes: all askers through the router would contend there, and nowhere
//! else. So each thread that asks has a count of its own, in a line of its own. Beside it is the head, which the error
//! of a failed ask names.

use crate::sync::OnceLock;
use crate::util::per_thread::PerThread;
use std::sync::Arc as StdArc;

/// The reference that asks of one thread through one router hold. Aligned to a cache line, as is the count of
/// references before it.
#[repr(align(64))]
pub(crate) struct Routed<S, H> {
    pub system: S,
    /// The head of the router.
    pub head: Option<H>,
}

/// The counts of the asks through one router, one for each thread. Empty until the first ask.
pub(crate) struct RoutedAsks<S, H>(OnceLock<Box<Counts<S, H>>>);

type Counts<S, H> = PerThread<StdArc<Routed<S, H>>>;

impl<S, H> RoutedAsks<S, H>
where
    S: Clone + Send + Sync + 'static,
    H: Send + Sync + 'static,
{
    pub(crate) fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns a reference to the system for an ask that the calling thread begins; `head` is called for its first ask.
    pub(crate) fn begin(&self, system: &S, head: impl FnOnce() -> Option<H>) -> StdArc<Routed<S, H>> {
        self.0
            .get_or_init(|| Box::new(PerThread::new()))
            .with(|_| StdArc::new(Routed { system: system.clone(), head: head() }), StdArc::clone)
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn asks_of_one_thread_count_on_one_line_and_those_of_another_elsewhere() {
        let system = StdArc::new("asked");
        let asks = RoutedAsks::<_, ()>::new();
        let [first, second] = [(), ()].map(|()| asks.begin(&system, || None));
        assert!(StdArc::ptr_eq(&first, &second));
        assert_eq!(&raw const *first as usize % 64, 0);
        let other = std::thread::scope(|scope| {
            scope.spawn(|| asks.begin(&system, || None)).join().expect("no panic")
        });
        assert!(!StdArc::ptr_eq(&first, &other));
    }

    #[test]
    fn nothing_is_kept_of_a_router_through_which_nobody_asks_any_more() {
        let system = StdArc::new("asked");
        let asks = RoutedAsks::<_, ()>::new();
        let ask = asks.begin(&system, || None);
        drop(asks);
        assert_eq!(StdArc::strong_count(&ask), 1);
    }
}
