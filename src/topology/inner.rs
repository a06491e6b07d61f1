//! Inner routers: which keys a message is for.

use super::Outcome;
use crate::grace::{self, Published};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
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
pub struct MapRouter<S, F> {
    state: RouterState<S>,
    route: F,
}

/// The handle on the state of a [`MapRouter`].
pub struct RouterState<S>(StdArc<Cell<S>>);

struct Cell<S> {
    current: Published<StdArc<S>>,
    /// Counts the states; written under the lock.
    version: AtomicU64,
    writers: Mutex<()>,
}

impl<S: Send + Sync + 'static, F> MapRouter<S, F> {
    /// A router that begins with `state`, and the handle that replaces it.
    pub fn with_state<M, K>(state: S, route: F) -> (Self, RouterState<S>)
    where
        F: Fn(&S, &M) -> Outcome<K> + Send + Sync + 'static,
    {
        let state = RouterState(StdArc::new(Cell {
            current: Published::new(StdArc::new(state)),
            version: AtomicU64::new(0),
            writers: Mutex::new(()),
        }));
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
        let section = grace::section();
        let state = self.state.0.current.read(&section);
        (self.route)(state, message)
    }
}

impl<S: Send + Sync + 'static> RouterState<S> {
    /// The state that counts now.
    pub fn get(&self) -> StdArc<S> {
        self.0.current.read(&grace::section()).clone()
    }

    /// Replaces the state by what `change` makes of it. Messages sent after this returns are routed by the new one;
    /// meanwhile the old one counts.
    ///
    /// `change` runs without any lock, and once more if somebody else was faster: it should do nothing but make the
    /// new state. If it panics, the old state stays.
    pub fn update(&self, change: impl Fn(&S) -> S) {
        loop {
            // Ordering: Acquire; pairs with the Release store below: the state of this version or a newer one is read.
            let version = self.0.version.load(Ordering::Acquire);
            let new = StdArc::new(change(&self.get()));
            let written = lock(&self.0.writers);
            // Relaxed: written under the lock, which we hold.
            if self.0.version.load(Ordering::Relaxed) == version {
                self.0.current.replace(new);
                // Ordering: Release; pairs with the Acquire load above.
                self.0.version.store(version + 1, Ordering::Release);
                return;
            }
            drop(written);
        }
    }
}

impl<S> Clone for RouterState<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> fmt::Debug for RouterState<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouterState").finish_non_exhaustive()
    }
}

impl<S, F> fmt::Debug for MapRouter<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapRouter").finish_non_exhaustive()
    }
}
