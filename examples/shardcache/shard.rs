//! A shard: an actor that owns some of the keys, and what it does when their owners change.
//!
//! # Resizing while clients run
//!
//! Which shard owns which key is said by a [`Map`], which never changes; a resize makes a new one, of the
//! next *generation*. Requests are routed by the router of their connection's generation, and carry its
//! number. The coordinator (`coordinator.rs`) takes everybody from map `g` to map `g + 1` in four steps:
//!
//! 1. It creates the shards that are new, and tells every shard of either map of the [`Change`].
//! 2. A shard that learns of the change (from the coordinator, or by a handover) *adopts* the new map: it
//!    takes all keys that are no longer its own out of its keyspace and sends each new owner one
//!    [`Handover`](ShardMsg::Handover), an empty one where nothing moves. From then on it passes a request
//!    for a key that is not its own to the owner by the new map. A shard is *settled* when it has adopted and
//!    has the handovers of all shards of the old map.
//! 3. When all are settled, the coordinator publishes the new generation to the connections. Each goes on by
//!    the new router as soon as none of its requests to shards is unanswered, and lets go of the old
//!    generation.
//! 4. When nobody holds the old generation any more, shards that are not in the new map end. Only now may
//!    the next change begin.
//!
//! Why it is right:
//!
//! * **A key is in one place.** Its old owner answers for it until it adopts; then it lies in the one
//!   handover; then its new owner answers for it. A request is carried out only where the key is: a
//!   connection uses the new map only after every handover has arrived (step 3), and the old owner, by then
//!   without the key, passes requests on *behind* its handover, since messages from one actor to another
//!   keep their order. So a write that was acknowledged anywhere is seen by whoever asks later anywhere, and
//!   values move with their deadlines.
//! * **Nothing goes in a circle.** A handover carries the change, so whoever gets a passed request has
//!   adopted the new map before, and owns the key by it. One hop is enough, since a second change cannot
//!   begin while anybody still routes by a map older than the present one (step 4).
//! * **Requests of one connection for one key keep their order.** Within a generation they all take the same
//!   way: to the key's owner by that generation, where they are carried out or, from some point on, all
//!   passed on to the same new owner, behind its handover. Between generations the connection waits until
//!   the earlier ones are answered.
//! * **Nobody stops for long.** A shard pauses for its own handover (it looks at all its keys), a connection
//!   for the length of its own pipeline; nobody waits for all connections at once but the coordinator.
//!
//! A request for several keys that arrives at a shard which no longer owns all of them is cut again. MSET is
//! therefore atomic for each shard's share of its keys, and during a resize for smaller shares.
//!
//! Requests for all shards (DBSIZE, KEYS, FLUSHALL) go through the coordinator, which holds them back during
//! steps 1 and 2, when keys may lie between shards.
//!
//! # Why not a pool that is resized
//!
//! A router's own `resize_to` changes the table for all senders at one moment, which no sender sees. A
//! connection could then have sent one request for a key by the old table and the next by the new one, and
//! the second could overtake the first, which is still to be passed on. So each generation has a router of
//! its own over the shards as a group, and each connection chooses when it changes over. The rings agree,
//! since both go by the shards' paths.

use crate::bytes::Bytes;
use crate::client::ClientMsg;
use crate::command::{AllRequest, KeyRequest, ManyRequest};
use crate::coordinator::CoordinatorMsg;
use crate::keyspace::{Entry, Keyspace};
use pointsman::prelude::*;
use pointsman::routing::{KeySink, Ring};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often expired keys that nobody asks for are removed, and how many at a time.
const SWEEP_PERIOD: Duration = Duration::from_millis(100);
const SWEEP_BUDGET: usize = 1000;

/// Points on the ring for each shard; the router's default.
const VIRTUAL_NODES: u32 = 160;

/// Which shard owns which key.
pub struct Map {
    pub generation: u64,
    pub members: Vec<Member>,
    /// `None` without members.
    ring: Option<Ring>,
}

/// A shard in a map.
#[derive(Clone)]
pub struct Member {
    pub id: u32,
    pub shard: ActorRef<ShardMsg>,
}

/// The step from one map to the next.
pub struct Change {
    pub old: Arc<Map>,
    pub new: Arc<Map>,
}

/// What a shard takes.
pub enum ShardMsg {
    /// A request for one key.
    Key { request: KeyRequest, client: ActorRef<ClientMsg>, slot: u64, generation: u64 },
    /// A request for some keys that one shard owned when it was sent.
    Many { request: ManyRequest, client: ActorRef<ClientMsg>, slot: u64, generation: u64 },
    /// A request for all shards; the coordinator gathers the answers.
    All { request: Arc<AllRequest>, number: u64, reply_max: usize },
    /// The owners change.
    Adopt(Arc<Change>),
    /// The keys that another shard owned and this one now owns.
    Handover { change: Arc<Change>, entries: Vec<(Bytes, Entry)> },
    /// Time to remove what has expired.
    Sweep,
}

/// What the ring and the router hash of a message: they must agree.
pub fn feed_key(message: &ShardMsg, to: &mut KeySink) {
    match message {
        ShardMsg::Key { request, .. } => to.bytes(&request.key),
        ShardMsg::Many { request, .. } => to.bytes(request.first_key().map_or(b"", |key| key)),
        // Sent to one shard by name, never routed.
        ShardMsg::All { .. } | ShardMsg::Adopt(_) | ShardMsg::Handover { .. } | ShardMsg::Sweep => {}
    }
}

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Map {
    pub fn new(generation: u64, members: Vec<Member>) -> Self {
        let paths: Vec<_> = members.iter().map(|member| member.shard.path()).collect();
        let ring = Ring::new(paths.iter().map(|path| (path.as_str(), VIRTUAL_NODES))).ok();
        let ring = ring.filter(|_| !members.is_empty());
        Self { generation, members, ring }
    }

    /// The shard that owns `key`. As the router finds it, since both have the same ring.
    pub fn owner(&self, key: &[u8]) -> Option<&Member> {
        let mut sink = KeySink::new();
        sink.bytes(key);
        self.members.get(self.ring.as_ref()?.owner(sink.finish())?)
    }

    fn has(&self, id: u32) -> bool {
        self.members.iter().any(|member| member.id == id)
    }
}

/// The actor.
pub struct Shard {
    id: u32,
    keys: Keyspace,
    map: Arc<Map>,
    coordinator: ActorRef<CoordinatorMsg>,
    /// Handovers that the present map still owes.
    owed: usize,
}

impl Shard {
    /// An empty shard which is no member of `map`: the change that makes it one is still to come.
    pub fn new(id: u32, map: Arc<Map>, coordinator: ActorRef<CoordinatorMsg>) -> Self {
        Self { id, keys: Keyspace::new(), map, coordinator, owed: 0 }
    }

    /// Whether a request that was routed by `generation` and has these keys may be carried out without
    /// looking who owns them.
    fn is_current(&self, generation: u64) -> bool {
        generation == self.map.generation
    }

    fn key_request(&mut self, message: ShardMsg) {
        let ShardMsg::Key { request, client, slot, generation } = message else { return };
        if !self.is_current(generation) {
            if let Some(owner) = self.map.owner(&request.key).filter(|owner| owner.id != self.id) {
                owner.shard.tell(ShardMsg::Key { request, client, slot, generation });
                return;
            }
        }
        let reply = self.keys.apply(now_ms(), request);
        client.tell(ClientMsg::Reply { slot, reply });
    }

    fn many_request(
        &mut self,
        request: ManyRequest,
        client: ActorRef<ClientMsg>,
        slot: u64,
        generation: u64,
    ) {
        if self.is_current(generation) {
            let part = self.keys.apply_many(now_ms(), request);
            client.tell(ClientMsg::Part { slot, part });
            return;
        }
        let map = self.map.clone();
        let place = |key: &[u8]| map.owner(key).map_or(self.id, |owner| owner.id);
        for (owner, request) in request.partition(place) {
            match map.members.iter().find(|member| member.id == owner && owner != self.id) {
                Some(owner) => {
                    let client = client.clone();
                    owner.shard.tell(ShardMsg::Many { request, client, slot, generation });
                }
                None => {
                    let part = self.keys.apply_many(now_ms(), request);
                    client.tell(ClientMsg::Part { slot, part });
                }
            }
        }
    }

    /// Step 2: takes over the new map, unless that is done, and hands over what is no longer ours.
    fn adopt(&mut self, change: &Arc<Change>) {
        let Change { old, new } = &**change;
        if new.generation <= self.map.generation {
            return;
        }
        self.map = new.clone();
        self.owed = 0;
        if new.has(self.id) {
            self.owed = old.members.iter().filter(|member| member.id != self.id).count();
        }
        if old.has(self.id) {
            self.hand_over(change);
        }
        self.report_if_settled();
    }

    fn hand_over(&mut self, change: &Arc<Change>) {
        let (me, new) = (self.id, &change.new);
        let owner_of = |key: &[u8]| new.owner(key).map_or(me, |owner| owner.id);
        let mut batches: Vec<(u32, Vec<(Bytes, Entry)>)> =
            new.members.iter().map(|member| (member.id, Vec::new())).collect();
        for (key, entry) in self.keys.drain_where(|key| owner_of(key) != me) {
            let owner = owner_of(&key);
            if let Some((_, batch)) = batches.iter_mut().find(|(id, _)| *id == owner) {
                batch.push((key, entry));
            }
        }
        for (member, (_, entries)) in new.members.iter().zip(batches) {
            if member.id != me {
                member.shard.tell(ShardMsg::Handover { change: change.clone(), entries });
            }
        }
    }

    fn take_over(&mut self, change: &Arc<Change>, entries: Vec<(Bytes, Entry)>) {
        self.adopt(change);
        for (key, entry) in entries {
            self.keys.adopt(key, entry);
        }
        self.owed -= 1;
        self.report_if_settled();
    }

    fn report_if_settled(&self) {
        if self.owed == 0 {
            self.coordinator.tell(CoordinatorMsg::Settled { generation: self.map.generation });
        }
    }
}

impl Actor for Shard {
    type Message = ShardMsg;

    fn started(&mut self, ctx: &mut Context<ShardMsg>) -> HandlerResult {
        ctx.every(SWEEP_PERIOD, || ShardMsg::Sweep);
        Ok(())
    }

    fn receive(&mut self, message: ShardMsg, ctx: &mut Context<ShardMsg>) -> HandlerResult {
        match message {
            ShardMsg::Key { .. } => self.key_request(message),
            ShardMsg::Many { request, client, slot, generation } => {
                self.many_request(request, client, slot, generation);
            }
            ShardMsg::All { request, number, reply_max } => {
                let part = self.keys.apply_all(now_ms(), &request, reply_max);
                self.coordinator.tell(CoordinatorMsg::Part { number, part });
            }
            ShardMsg::Adopt(change) => self.adopt(&change),
            ShardMsg::Handover { change, entries } => self.take_over(&change, entries),
            ShardMsg::Sweep => {
                if self.keys.sweep(now_ms(), SWEEP_BUDGET) == SWEEP_BUDGET {
                    ctx.me().tell(ShardMsg::Sweep);
                }
            }
        }
        Ok(())
    }
}
