//! The coordinator: creates the shards, changes their number, and gathers what concerns all of them.
//!
//! The protocol of a change is in `shard.rs`.

use crate::client::ClientMsg;
use crate::command::{AllRequest, Gather};
use crate::keyspace::PartReply;
use crate::server::Shared;
use crate::shard::{Change, Map, Member, Shard, ShardMsg, feed_key};
use pointsman::SpawnError;
use pointsman::prelude::*;
use pointsman::routing::ConsistentHashing;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// More shards than this are refused: each has a share of a ring that is rebuilt at each change.
pub const SHARDS_MAX: usize = 1024;

/// A map with the router over its shards. Held by everybody who routes by it.
pub struct Generation {
    pub map: Arc<Map>,
    router: Router<ShardMsg>,
    coordinator: ActorRef<CoordinatorMsg>,
}

impl Generation {
    /// The reference that all requests go through.
    pub fn routes(&self) -> &ActorRef<ShardMsg> {
        &self.router
    }
}

impl Drop for Generation {
    /// Nobody routes by it any more: step 4 of a change.
    fn drop(&mut self) {
        self.router.stop();
        // Refused when the whole server ends.
        let _ = self.coordinator.try_tell(CoordinatorMsg::Abandoned { generation: self.map.generation });
    }
}

/// What the coordinator takes.
pub enum CoordinatorMsg {
    /// Answer this for all shards.
    All { request: AllRequest, client: ActorRef<ClientMsg>, slot: u64 },
    /// A shard's share of such an answer.
    Part { number: u64, part: PartReply },
    /// Have so many shards.
    Resize { count: usize, client: ActorRef<ClientMsg>, slot: u64 },
    /// A shard has all that the map of this generation gives it.
    Settled { generation: u64 },
    /// Nobody routes by this generation any more.
    Abandoned { generation: u64 },
}

/// The actor.
pub struct Coordinator {
    shared: Arc<Shared>,
    map: Arc<Map>,
    change: Option<Changing>,
    /// Changes that wait for their turn.
    resizes: VecDeque<Resize>,
    /// Requests for all shards that wait until no key lies between two of them.
    held: Vec<(AllRequest, ActorRef<ClientMsg>, u64)>,
    gathers: HashMap<u64, (Gather, ActorRef<ClientMsg>, u64)>,
    next_gather: u64,
    next_shard: u32,
}

struct Resize {
    count: usize,
    /// Whom to tell, if anybody asked.
    asker: Option<(ActorRef<ClientMsg>, u64)>,
}

/// A change that has begun.
struct Changing {
    change: Arc<Change>,
    /// Shards that are not settled.
    unsettled: usize,
    asker: Option<(ActorRef<ClientMsg>, u64)>,
}

impl Coordinator {
    /// With no shards yet; `started` makes the first.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            map: Arc::new(Map::new(0, Vec::new())),
            change: None,
            resizes: VecDeque::new(),
            held: Vec::new(),
            gathers: HashMap::new(),
            next_gather: 0,
            next_shard: 0,
        }
    }

    /// Step 1, if nothing else is under way.
    fn begin_change(&mut self, ctx: &mut Context<CoordinatorMsg>) -> HandlerResult {
        if self.change.is_some() {
            return Ok(());
        }
        let Some(Resize { count, asker }) = self.resizes.pop_front() else { return Ok(()) };
        let mut members = self.map.members.clone();
        members.truncate(count);
        while members.len() < count {
            members.push(self.new_shard(ctx)?);
        }
        let new = Arc::new(Map::new(self.map.generation + 1, members));
        let change = Arc::new(Change { old: self.map.clone(), new: new.clone() });
        let leaving = change.old.members.iter().skip(count);
        let concerned: Vec<&Member> = new.members.iter().chain(leaving).collect();
        self.change = Some(Changing { change: change.clone(), unsettled: concerned.len(), asker });
        for member in concerned {
            member.shard.tell(ShardMsg::Adopt(change.clone()));
        }
        Ok(())
    }

    fn new_shard(&mut self, ctx: &mut Context<CoordinatorMsg>) -> Result<Member, SpawnError> {
        let id = self.next_shard;
        self.next_shard += 1;
        let (map, coordinator) = (self.map.clone(), ctx.me().clone());
        let shard = ctx
            .actor(&format!("shard-{id}"))
            .class("shard")
            .spawn(move || Shard::new(id, map.clone(), coordinator.clone()))?;
        // A child just made is an actor, and not watched yet.
        let _ = ctx.watch(&shard);
        Ok(Member { id, shard })
    }

    /// Step 3: all shards are settled, so the connections may use the new map.
    fn publish(&mut self, ctx: &mut Context<CoordinatorMsg>) -> HandlerResult {
        let Some(changing) = &self.change else { return Ok(()) };
        self.map = changing.change.new.clone();
        let shards = self.map.members.iter().map(|member| member.shard.clone());
        let router = ctx
            .system()
            .router(&format!("shards-{}", self.map.generation))
            .group(shards)
            .logic(ConsistentHashing::by(feed_key))
            .spawn()?;
        let generation = Generation { map: self.map.clone(), router, coordinator: ctx.me().clone() };
        self.shared.publish(Arc::new(generation));
        for (request, client, slot) in std::mem::take(&mut self.held) {
            self.gather(request, client, slot);
        }
        if changing_from_nothing(&self.change) {
            // There was no earlier generation that anybody could hold.
            self.end_change(ctx)?;
        }
        Ok(())
    }

    /// Step 4: nobody routes by the old map.
    fn end_change(&mut self, ctx: &mut Context<CoordinatorMsg>) -> HandlerResult {
        let Some(Changing { change, asker, .. }) = self.change.take() else { return Ok(()) };
        for member in change.old.members.iter().skip(change.new.members.len()) {
            if let Some(any) = member.shard.untyped() {
                ctx.unwatch(&any);
            }
            member.shard.poison();
        }
        if let Some((client, slot)) = asker {
            client.tell(ClientMsg::Resized { slot });
        }
        self.begin_change(ctx)
    }

    fn gather(&mut self, request: AllRequest, client: ActorRef<ClientMsg>, slot: u64) {
        let number = self.next_gather;
        self.next_gather += 1;
        let reply_max = self.shared.settings.output_max;
        let gather = Gather::all(&request, self.map.members.len(), reply_max);
        self.gathers.insert(number, (gather, client, slot));
        let request = Arc::new(request);
        for member in &self.map.members {
            member.shard.tell(ShardMsg::All { request: request.clone(), number, reply_max });
        }
    }

    /// Whether keys may lie between shards.
    fn is_moving(&self) -> bool {
        self.change.as_ref().is_some_and(|changing| changing.unsettled > 0)
    }
}

fn changing_from_nothing(change: &Option<Changing>) -> bool {
    change.as_ref().is_some_and(|changing| changing.change.old.members.is_empty())
}

impl Actor for Coordinator {
    type Message = CoordinatorMsg;

    fn started(&mut self, ctx: &mut Context<CoordinatorMsg>) -> HandlerResult {
        self.resizes.push_back(Resize { count: self.shared.settings.shards, asker: None });
        self.begin_change(ctx)
    }

    fn receive(&mut self, message: CoordinatorMsg, ctx: &mut Context<CoordinatorMsg>) -> HandlerResult {
        match message {
            CoordinatorMsg::All { request, client, slot } if self.is_moving() => {
                self.held.push((request, client, slot));
            }
            CoordinatorMsg::All { request, client, slot } => self.gather(request, client, slot),
            CoordinatorMsg::Part { number, part } => {
                if let Some((gather, ..)) = self.gathers.get_mut(&number) {
                    gather.accept(part);
                    if gather.is_complete() {
                        if let Some((gather, client, slot)) = self.gathers.remove(&number) {
                            client.tell(ClientMsg::Gathered { slot, gather });
                        }
                    }
                }
            }
            CoordinatorMsg::Resize { count, client, slot } => {
                self.resizes.push_back(Resize { count, asker: Some((client, slot)) });
                self.begin_change(ctx)?;
            }
            CoordinatorMsg::Settled { generation } => {
                if let Some(changing) = &mut self.change {
                    debug_assert_eq!(changing.change.new.generation, generation);
                    changing.unsettled -= 1;
                    if changing.unsettled == 0 {
                        self.publish(ctx)?;
                    }
                }
            }
            CoordinatorMsg::Abandoned { generation } => {
                if self.change.as_ref().is_some_and(|changing| changing.change.old.generation == generation) {
                    self.end_change(ctx)?;
                }
            }
        }
        Ok(())
    }

    /// A shard has ended that should not have: a cache that has silently lost a part is worse than none.
    fn terminated(
        &mut self,
        terminated: pointsman::Terminated,
        _: &mut Context<CoordinatorMsg>,
    ) -> HandlerResult {
        eprintln!("shardcache: {} has failed, the server ends", terminated.actor.path());
        self.shared.ask_for_end(false);
        Ok(())
    }

    /// What a shard held is gone with its state, so there is nothing to restart.
    fn supervision(&self) -> Strategy {
        Strategy::stop()
    }

    fn stopped(&mut self, _: &mut Context<CoordinatorMsg>) {
        self.shared.forget_generation();
    }
}
