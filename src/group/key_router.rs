//! A key router names the keys that a message is for.

use crate::group::key_routing::KeyRoute;
use crate::util::reclaim;
use crate::util::reclaim::Published;
use std::fmt;
use std::sync::Arc as StdArc;

/// A key router names the keys of a group whose actors get a message.
///
/// Every closure `Fn(&M) -> KeyRoute<K>` is a key router. [`MapRouter`] is a key router with a state.
///
/// # Concurrency
///
/// A key router runs on the senders' threads, many at a time, once for each message. It should be short. A panic
/// unwinds to the sender, and the message becomes a dead letter.
pub trait KeyRouter<M, K>: Send + Sync + 'static {
    /// Returns the keys that this message is for.
    fn route(&self, message: &M) -> KeyRoute<K>;
}

impl<M, K, F: Fn(&M) -> KeyRoute<K> + Send + Sync + 'static> KeyRouter<M, K> for F {
    #[inline]
    fn route(&self, message: &M) -> KeyRoute<K> {
        self(message)
    }
}

/// A map router is a key router whose state is replaced as a whole while messages are routed.
///
/// Each message is routed by a single state: the state at the time of the send, or a newer state. Routing never waits
/// until a new state has been made. The type is elfo's `MapRouter::with_state`; in elfo the state changes only with the
/// group's configuration.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::group::{KeyRoute, MapRouter};
/// # struct Shard;
/// # impl Actor for Shard {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let (router, shard_count) =
///     MapRouter::with_state(2_u64, |count: &u64, number: &u64| KeyRoute::Unicast(number % count));
/// let shards = system.group("shards").keyed(router, |_, _| Shard).spawn()?;
/// shards.tell(7_u64); // to shard 1
/// shard_count.update(|_| 4);
/// shards.tell(7_u64); // to shard 3
/// # Ok(())
/// # }
/// ```
pub struct MapRouter<S: Send + Sync + 'static, F> {
    state: RouterState<S>,
    route: F,
}

/// A router state reads and replaces the state of a [`MapRouter`].
pub struct RouterState<S: Send + Sync + 'static>(StdArc<Published<S>>);

impl<S: Send + Sync + 'static, F> MapRouter<S, F> {
    /// Returns a key router that begins with `state`, and the handle that replaces the state.
    pub fn with_state<M, K>(state: S, route: F) -> (Self, RouterState<S>)
    where
        F: Fn(&S, &M) -> KeyRoute<K> + Send + Sync + 'static,
    {
        let state = RouterState(StdArc::new(Published::new(state)));
        (Self { state: state.clone(), route }, state)
    }
}

impl<M, K, S, F> KeyRouter<M, K> for MapRouter<S, F>
where
    S: Send + Sync + 'static,
    F: Fn(&S, &M) -> KeyRoute<K> + Send + Sync + 'static,
{
    #[inline]
    fn route(&self, message: &M) -> KeyRoute<K> {
        let section = reclaim::section();
        let state = self.state.0.read(&section);
        (self.route)(state, message)
    }
}

impl<S: Send + Sync + 'static> RouterState<S> {
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

impl<S: Send + Sync + 'static, F> fmt::Debug for MapRouter<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapRouter").finish_non_exhaustive()
    }
}
