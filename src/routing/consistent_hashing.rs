//! By a key in the message, so that equal keys meet the same routee.

use super::hash_ring::{Ring, VIRTUAL_NODES};
use super::{KeySink, Pick, RouteContext, Routee, Routees, RoutingLogic};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

/// Chooses by a key: equal keys go to the same routee, and a change of the routees moves only the keys that
/// it must.
///
/// The key is hashed by xxh3-64 over a fixed encoding ([`HashKey`](super::HashKey)); routees own the arcs of a
/// ring, each with [`virtual_nodes`](Self::virtual_nodes) points made from its path. So every machine and every
/// build finds the same owner. When the owner has stopped, the next living routee on the ring gets the message.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::{ConsistentHashing, KeySink};
/// # struct Shard;
/// # impl Actor for Shard {
/// #     type Message = (String, u32);
/// #     fn receive(&mut self, _: (String, u32), _: &mut Context<(String, u32)>) -> Done { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo").build()?;
/// let shards = system
///     .router("shards")
///     .pool(8, |_| Shard)
///     .logic(ConsistentHashing::by(|message: &(String, u32), key| key.feed(&message.0)))
///     .spawn()?;
/// shards.to_ref().tell(("apple".to_owned(), 1));
/// # Ok(())
/// # }
/// ```
///
/// # Concurrency
///
/// The key function runs on the senders' threads. When it panics, the panic unwinds to the sender.
pub struct ConsistentHashing<M, F> {
    key: F,
    virtual_nodes: u32,
    message: PhantomData<fn(&M)>,
}

impl<M, F: Fn(&M, &mut KeySink) + Send + Sync + 'static> ConsistentHashing<M, F> {
    /// Hashes what `key` feeds of a message.
    pub fn by(key: F) -> Self {
        Self { key, virtual_nodes: VIRTUAL_NODES.get(), message: PhantomData }
    }

    /// How many points each routee has on the ring: 160 unless said otherwise. More make the shares more
    /// even (160 keep them within about a fifth of each other) and the table larger. 0 is an error when the
    /// router is created.
    pub fn virtual_nodes(mut self, count: u32) -> Self {
        self.virtual_nodes = count;
        self
    }
}

impl<M, F> RoutingLogic<M> for ConsistentHashing<M, F>
where
    M: Send + 'static,
    F: Fn(&M, &mut KeySink) + Send + Sync + 'static,
{
    fn select(&self, message: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Pick {
        let Some(ring) = routees.index::<Ring>() else { return Pick::None };
        let mut sink = KeySink::new();
        (self.key)(message, &mut sink);
        let hash = sink.finish();
        let owner = match cx.attempt() {
            0 => ring.owner(hash),
            refused => ring.successors(hash).nth(refused),
        };
        owner.map_or(Pick::None, Pick::One)
    }

    fn index(&self, routees: &[Routee<M>]) -> Option<Box<dyn Any + Send + Sync>> {
        let members = routees.iter().map(|routee| (routee.identity(), self.virtual_nodes));
        // Without members or points there is no owner; `check` has refused 0 points before.
        Ring::new(members).ok().map(|ring| Box::new(ring) as _)
    }

    fn check(&self) -> Result<(), String> {
        match self.virtual_nodes {
            0 => Err("0 virtual nodes a routee: must be at least 1".to_owned()),
            _ => Ok(()),
        }
    }
}

impl<M, F> fmt::Debug for ConsistentHashing<M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsistentHashing")
            .field("virtual_nodes", &self.virtual_nodes)
            .finish_non_exhaustive()
    }
}
