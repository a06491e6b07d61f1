//! Consistent hashing: routes by a key in the message, so that equal keys meet the same routee.

use crate::actor::private::IsWanted;
use crate::actor::skip_unwanted::is_wanted;
use crate::ask::fork::{Answerable, Attempt};
use crate::routing::logic::RoutingLogic;
use crate::routing::logics::hash_key::{HashKey, KeySink};
use crate::routing::logics::hash_ring::{Ring, VIRTUAL_NODES, VIRTUAL_NODES_MAX};
use crate::routing::logics::thread_rng::Generators;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, Routees};
use crate::settings::router::RouterSettings;
use crate::settings::setting_error::SettingError;
use crate::sync::HashMap;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::util::panic::Guarded;
use rand::RngExt;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc as StdArc;

/// Chooses by a key: equal keys go to the same routee, and a change of the routees moves only the keys that
/// it must.
///
/// The key is hashed by xxh3-64 over a fixed encoding ([`HashKey`]); routees own the arcs of a ring, each with
/// [`virtual_nodes`](ConsistentHashing::virtual_nodes) points made from its [identity](Routee::identity). So every machine and
/// every build finds the same owner, and so do all nodes whose routers have the same routees. When the owner has stopped, the next living routee on the ring gets the message. A routee that
/// is listed twice counts once.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::ConsistentHashing;
/// # struct Shard;
/// # impl Actor for Shard {
/// #     type Message = (String, u32);
/// #     fn receive(&mut self, _: (String, u32), _: &mut Context<(String, u32)>) -> HandlerResult { Ok(()) }
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
/// # Source of the key
///
/// - [`by`](Self::by): a function that sees the whole message feeds the key. Most routers need no more.
/// - [`new`](Self::new): the message is its own key: it implements [`HashKey`].
/// - [`by_option`](Self::by_option): a function that may find no key. A message without a key is a dead letter, with a
///   warning in the log for the first, and then each time that their number has doubled; or it goes to [any
///   routee](Self::random_without_key).
///
/// Akka's envelope (`ConsistentHashableEnvelope`) gives a key to a message that the router's mapping does not know. A
/// typed router knows all its messages; wrap messages that hold no key in [`Keyed`].
///
/// # When the routees change
///
/// The old and the new owner may handle messages of the same key at the same time: the old owner has some in its
/// mailbox.
///
/// # Concurrency
///
/// The key function runs on the senders' threads. When it panics, the panic unwinds to the sender, and the
/// message is a dead letter.
pub struct ConsistentHashing<M, F> {
    /// Feeds the key; returns false if there is none.
    key: F,
    virtual_nodes: u32,
    keyless: AtomicUsize,
    /// Draws the routee of a message without a key.
    anyone: Option<Generators>,
    /// Replaces the hash of this crate.
    hasher: Option<StdArc<Hasher>>,
    message: PhantomData<fn(&M)>,
}

pub(crate) type Hasher = dyn Fn(&[u8]) -> u64 + Send + Sync;

impl<M: Send + 'static> ConsistentHashing<M, ()> {
    /// Hashes the key that `key` feeds of a message.
    pub fn by(
        key: impl Fn(&M, &mut KeySink) + Send + Sync + 'static,
    ) -> ConsistentHashing<M, impl Fn(&M, &mut KeySink) -> bool + Send + Sync + 'static> {
        ConsistentHashing::with(move |message: &M, sink: &mut KeySink| {
            key(message, sink);
            true
        })
    }

    /// Hashes the key that `key` feeds of a message, if it returns `Some`.
    ///
    /// ```
    /// use pointsman::routing::ConsistentHashing;
    ///
    /// enum CacheMsg {
    ///     Get(String),
    ///     Flush,
    /// }
    /// let logic = ConsistentHashing::by_option(|message: &CacheMsg, key| match message {
    ///     CacheMsg::Get(name) => Some(key.feed(name)),
    ///     CacheMsg::Flush => None, // `broadcast_if` would send it to all
    /// });
    /// ```
    pub fn by_option(
        key: impl Fn(&M, &mut KeySink) -> Option<()> + Send + Sync + 'static,
    ) -> ConsistentHashing<M, impl Fn(&M, &mut KeySink) -> bool + Send + Sync + 'static> {
        ConsistentHashing::with(move |message: &M, sink: &mut KeySink| key(message, sink).is_some())
    }

    /// Hashes the message itself; its [`HashKey`] says which parts of it are the key.
    #[allow(clippy::new_ret_no_self)] // the type of the function is the only difference
    pub fn new() -> ConsistentHashing<M, impl Fn(&M, &mut KeySink) -> bool + Send + Sync + 'static>
    where
        M: HashKey,
    {
        Self::by(M::feed)
    }
}

impl<M, F: Fn(&M, &mut KeySink) -> bool + Send + Sync + 'static> ConsistentHashing<M, F> {
    fn with(key: F) -> Self {
        let virtual_nodes = VIRTUAL_NODES.get();
        Self {
            key,
            virtual_nodes,
            keyless: AtomicUsize::new(0),
            anyone: None,
            hasher: None,
            message: PhantomData,
        }
    }

    /// Sends a message for which [`by_option`](Self::by_option) finds no key to any routee, with equal chance, as GoAkt
    /// does. By default it is refused, as in Akka: it is a dead letter, or comes back to `try_tell`.
    #[doc(alias = "WithoutKey")]
    pub fn random_without_key(mut self) -> Self {
        self.anyone = Some(Generators::new(None));
        self
    }

    /// Undoes [`random_without_key`](Self::random_without_key).
    #[cfg(feature = "goakt")]
    pub(crate) fn refuse_without_key(mut self) -> Self {
        self.anyone = None;
        self
    }

    /// Hashes keys, and the points of the ring, by `hash` instead of xxh3-64: for rings that must agree with those of
    /// other programs. `hash` gets the bytes of the [encoding](HashKey), and should spread them evenly over all 64
    /// bits.
    ///
    /// `hash` runs on the senders' threads, and whenever the routees change on the head's. A key of more than 240 bytes
    /// costs an allocation.
    ///
    /// ```
    /// use pointsman::routing::ConsistentHashing;
    ///
    /// /// FNV-1a, and a step that spreads its upper bits.
    /// fn fnv(bytes: &[u8]) -> u64 {
    ///     let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
    ///         (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    ///     });
    ///     (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    /// }
    /// let logic = ConsistentHashing::by(|name: &String, key| key.feed(name)).hasher(fnv);
    /// ```
    pub fn hasher(mut self, hash: impl Fn(&[u8]) -> u64 + Send + Sync + 'static) -> Self {
        let hash = Guarded::new(hash);
        self.hasher = Some(StdArc::new(move |bytes: &[u8]| hash(bytes)));
        self
    }

    /// Sets the number of points of each routee on the ring: 160 by default. More make the shares more even (160 keep
    /// them within about a fifth of each other) and the table larger. 0, and more than 65,536, are errors when the
    /// router is created.
    pub fn virtual_nodes(mut self, count: u32) -> Self {
        self.virtual_nodes = count;
        self
    }

    /// Returns the hash of a message's key, by another hash than that of this crate.
    #[inline(never)]
    fn hash_by(&self, hash: &Hasher, message: &M) -> Option<u64> {
        let mut sink = KeySink::keeping();
        (self.key)(message, &mut sink).then(|| hash(sink.kept()))
    }

    #[cold]
    #[inline(never)]
    fn select_without_key(&self, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize>
    where
        M: Send + 'static,
    {
        let Some(anyone) = &self.anyone else {
            self.warn(cx);
            return None;
        };
        if routees.is_empty() {
            // A table without routees has an empty ring, too.
            return None;
        }
        if cx.refusals() > 0 {
            return cx.next_in_turn(routees);
        }
        Some(anyone.draw(cx.seed(), |generator| generator.random_range(0..routees.len())))
    }

    #[cold]
    #[inline(never)]
    fn warn(&self, cx: &RouteContext<'_>) {
        // Ordering: Relaxed; only the count matters.
        let count = self.keyless.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if count.is_power_of_two() {
            let message = std::any::type_name::<M>();
            log::warn!(
                target: "pointsman",
                "{message} has no key for consistent hashing by {}: a dead letter, the {count}. of this router; give \
                 each message a key, or say `random_without_key`",
                cx.name()
            );
        }
    }
}

/// Returns the first place of each routee, in order: a routee that is listed again has no part of its own in the ring.
fn listed_once<M: Send + 'static>(routees: &[Routee<M>]) -> Vec<u32> {
    let mut places: HashMap<&str, Vec<u32>> = HashMap::default();
    // Unequal routees may have the same identity, such as functions.
    let mut once = Vec::with_capacity(routees.len());
    for (index, routee) in (0..).zip(routees) {
        let same = places.entry(routee.identity()).or_default();
        if same.iter().all(|place| routees[*place as usize] != *routee) {
            same.push(index);
            once.push(index);
        }
    }
    once
}

impl<M, F> RoutingLogic<M> for ConsistentHashing<M, F>
where
    M: Send + 'static,
    F: Fn(&M, &mut KeySink) -> bool + Send + Sync + 'static,
{
    fn select(&self, message: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
        let ring = routees.prepared::<Ring>()?;
        let hash = match &self.hasher {
            None => {
                let mut sink = KeySink::new();
                (self.key)(message, &mut sink).then(|| sink.finish())
            }
            Some(hash) => self.hash_by(&**hash, message),
        };
        let Some(hash) = hash else { return self.select_without_key(routees, cx) };
        match cx.refusals() {
            0 => ring.owner(hash),
            refused => ring.successors(hash).nth(refused),
        }
    }

    fn prepare(&self, routees: &[Routee<M>]) -> Option<Box<dyn Any + Send + Sync>> {
        let once = listed_once(routees);
        let members = once.iter().map(|index| (routees[*index as usize].identity(), self.virtual_nodes));
        let ring = match &self.hasher {
            None => Ring::new(members),
            Some(hash) => Ring::hashed_by(members, &**hash),
        };
        let ring = ring.map(|ring| ring.of_list(&once, routees.len()));
        match ring {
            Ok(ring) => Some(Box::new(ring)),
            // Without members there is no owner; `check` has refused 0 points before.
            Err(_) if routees.is_empty() => None,
            Err(error) => {
                log::error!(target: "pointsman", "consistent hashing finds no routee: {error}");
                None
            }
        }
    }

    fn prepared_bytes(&self, prepared: &(dyn Any + Send + Sync)) -> usize {
        prepared.downcast_ref().map_or(0, Ring::bytes)
    }

    fn check(&self) -> Result<(), SettingError> {
        match self.virtual_nodes {
            0 => Err(SettingError::new("virtual_nodes", 0, "at least 1")),
            count if count > VIRTUAL_NODES_MAX => {
                Err(SettingError::new("virtual_nodes", count, format!("at most {VIRTUAL_NODES_MAX}")))
            }
            _ => Ok(()),
        }
    }

    fn name(&self) -> Option<&str> {
        Some("consistent-hashing")
    }

    fn configure(&mut self, settings: &RouterSettings) {
        self.virtual_nodes = settings.virtual_nodes.unwrap_or(self.virtual_nodes);
    }
}

impl<M, F> fmt::Debug for ConsistentHashing<M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsistentHashing")
            .field("virtual_nodes", &self.virtual_nodes)
            .finish_non_exhaustive()
    }
}

/// A message with the key that it is hashed by, for messages that hold no key themselves.
///
/// As a router's message it reaches the routee whole. Where actors take the bare message, a [keyed
/// pool](crate::routing::RouterBuilder::keyed_pool) strips the key off; in a group adapters do:
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::{ConsistentHashing, Keyed};
/// # struct Draws;
/// # impl Actor for Draws {
/// #     type Message = String;
/// #     fn receive(&mut self, _: String, _: &mut Context<String>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let one: ActorRef<String> = system.spawn(|| Draws)?;
/// let other = system.spawn(|| Draws)?;
/// let router = system
///     .router("by-customer")
///     .group([one, other].map(|actor| actor.contramap(Keyed::<u64, String>::into_message)))
///     .logic(ConsistentHashing::new())
///     .spawn()?;
/// router.tell(Keyed { key: 17, message: "a house".to_owned() });
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keyed<K, M> {
    /// The key that is hashed.
    pub key: K,
    /// The message.
    pub message: M,
}

impl<K, M> Keyed<K, M> {
    /// The message without its key.
    pub fn into_message(self) -> M {
        self.message
    }
}

impl<K: HashKey, M> HashKey for Keyed<K, M> {
    #[inline]
    fn feed(&self, to: &mut KeySink) {
        self.key.feed(to);
    }
}

impl<K, M: Answerable> Answerable for Keyed<K, M> {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        self.message.fork(attempt)
    }

    fn is_bare_wanted() -> Option<Box<dyn std::any::Any>>
    where
        Self: 'static,
    {
        Some(Box::new(is_wanted::<M> as IsWanted<M>))
    }
}
