//! A router state is replaced while a key router routes by it.

use crate::group::key_route::KeyRoute;
use crate::util::reclaim;
use crate::util::reclaim::Published;
use std::fmt;
use std::sync::Arc as StdArc;

/// A router state is the state of a [key router](crate::group::GroupBuilder::keyed), and is replaced as a whole while
/// messages are routed. A clone is another handle to the same state.
///
/// Each message is routed by a single state: the state at the time of the send, or a newer state. Routing never waits
/// until a new state has been made. The type is elfo's `MapRouter::with_state`; in elfo the state changes only with the
/// group's configuration.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::group::{KeyRoute, RouterState};
/// # struct Shard;
/// # impl Actor for Shard {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let shard_count = RouterState::new(2_u64);
/// let router = shard_count.router(|count, number: &u64| KeyRoute::Unicast(number % count));
/// let shards = system.group("shards").keyed(router, |_, _| Shard).spawn()?;
/// shards.tell(7_u64); // to shard 1
/// shard_count.update(|_| 4);
/// shards.tell(7_u64); // to shard 3
/// # Ok(())
/// # }
/// ```
#[doc(alias = "MapRouter")]
#[doc(alias = "with_state")]
pub struct RouterState<S: Send + Sync + 'static>(StdArc<Published<S>>);

impl<S: Send + Sync + 'static> RouterState<S> {
    /// Returns a handle to this state.
    pub fn new(state: S) -> Self {
        Self(StdArc::new(Published::new(state)))
    }

    /// Returns a key router, which calls `route` with the present state for each message.
    pub fn router<M, K>(
        &self,
        route: impl Fn(&S, &M) -> KeyRoute<K> + Send + Sync + 'static,
    ) -> impl Fn(&M) -> KeyRoute<K> + Send + Sync + 'static {
        let state = self.clone();
        move |message| {
            let section = reclaim::section();
            route(state.0.read(&section), message)
        }
    }

    /// Looks at the current state. A section is open while `look` runs, so `look` should not wait for anything.
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(self.0.read(&reclaim::section()))
    }

    /// Replaces the state by the state that `change` makes of it. Messages sent after this call has returned are routed
    /// by the new state. While `change` runs, messages are routed by the old state.
    ///
    /// `change` runs without any lock, and runs again if another thread has replaced the state meanwhile. `change`
    /// should do nothing but make the new state. While `change` runs, no replaced state and no replaced table of the
    /// process is freed. If `change` panics, the old state stays.
    pub fn update(&self, change: impl Fn(&S) -> S) {
        let mut done = false;
        while !done {
            let section = reclaim::section();
            let seen = self.0.read(&section);
            // The state that lost the race is dropped outside of the section.
            let lost = self.0.replace_if(seen, change(seen));
            drop(section);
            done = lost.is_ok();
        }
        reclaim::process_domain().collect();
    }
}

impl<S: Send + Sync + 'static> Clone for RouterState<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Send + Sync + 'static> fmt::Debug for RouterState<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouterState").finish_non_exhaustive()
    }
}
