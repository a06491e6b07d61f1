//! Inner routers: which keys a message is for.

use crate::group::outcome::Outcome;
use crate::util::reclaim;
use crate::util::reclaim::Published;
use std::fmt;
use std::sync::Arc as StdArc;

/// Says which actors of a group get a message.
///
/// Every closure `Fn(&M) -> Outcome<K>` is one; [`MapRouter`] has a state besides.
///
/// # Concurrency
///
/// Runs on the senders' threads, many at a time, once for each message: it should be short. A panic unwinds to the
/// sender; the message is a dead letter.
pub trait InnerRouter<M, K>: Send + Sync + 'static {
    /// Which actors get this message.
    fn route(&self, message: &M) -> Outcome<K>;
}

impl<M, K, F: Fn(&M) -> Outcome<K> + Send + Sync + 'static> InnerRouter<M, K> for F {
    #[inline]
    fn route(&self, message: &M) -> Outcome<K> {
        self(message)
    }
}

/// An inner router with a state that is replaced as a whole while routing goes on.
///
/// Each message is routed by one state, the one that counted when it was sent or a newer one. Routing never waits for
/// a new state to be made. elfo's `MapRouter::with_state`; there the state changes with the group's configuration
/// alone.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::topology::{MapRouter, Outcome};
/// # struct Shard;
/// # impl Actor for Shard {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let (router, shard_count) =
///     MapRouter::with_state(2_u64, |count: &u64, number: &u64| Outcome::Unicast(number % count));
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

/// The handle on the state of a [`MapRouter`].
pub struct RouterState<S: Send + Sync + 'static>(StdArc<Published<S>>);

impl<S: Send + Sync + 'static, F> MapRouter<S, F> {
    /// A router that begins with `state`, and the handle that replaces it.
    pub fn with_state<M, K>(state: S, route: F) -> (Self, RouterState<S>)
    where
        F: Fn(&S, &M) -> Outcome<K> + Send + Sync + 'static,
    {
        let state = RouterState(StdArc::new(Published::new(state)));
        (Self { state: state.clone(), route }, state)
    }
}

impl<M, K, S, F> InnerRouter<M, K> for MapRouter<S, F>
where
    S: Send + Sync + 'static,
    F: Fn(&S, &M) -> Outcome<K> + Send + Sync + 'static,
{
    #[inline]
    fn route(&self, message: &M) -> Outcome<K> {
        let section = reclaim::section();
        let state = self.state.0.read(&section);
        (self.route)(state, message)
    }
}

impl<S: Send + Sync + 'static> RouterState<S> {
    /// Looks at the state that counts now. A section is open meanwhile: `look` should not wait for anything.
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(self.0.read(&reclaim::section()))
    }

    /// Replaces the state by what `change` makes of it. Messages sent after this returns are routed by the new one;
    /// meanwhile the old one counts.
    ///
    /// `change` runs without any lock, and once more if somebody else was faster: it should do nothing but make the
    /// new state. While it runs, no replaced state or table of the process is freed. If it panics, the old state stays.
    pub fn update(&self, change: impl Fn(&S) -> S) {
        let mut done = false;
        while !done {
            let section = reclaim::section();
            let seen = self.0.read(&section);
            // What lost the race is dropped outside of the section.
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
