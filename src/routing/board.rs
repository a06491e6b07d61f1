//! What the head of a router knows, and keeps over its own restarts: who the routees are, and how more are made.

use super::reference::Shared;
use super::{Manage, Routee, Routees, RoutingLogic};
use crate::actor::Context;
use crate::actor_ref::{ActorRef, AnyRef};
use crate::error::SpawnError;
use crate::supervision::Strategy;
use crate::sync::Mutex;
use std::sync::Arc as StdArc;

/// Creates one routee of a pool as a child of the head.
pub type MakeRoutee<M> = dyn Fn(&AnyRef, u32) -> Result<ActorRef<M>, SpawnError> + Send + Sync;

/// What the head knows, and keeps over its own restarts.
pub struct Board<M: Send + 'static, L> {
    pub shared: StdArc<Shared<M>>,
    pub logic: StdArc<L>,
    /// How routees are made; `None` for a group.
    pub make: Option<StdArc<MakeRoutee<M>>>,
    pub members: Mutex<Members<M>>,
    pub stays_when_empty: bool,
    pub strategy: Strategy,
    /// The reference that routes, for what a leaving routee hands back.
    pub reference: ActorRef<M>,
}

/// The routees as the head sees them.
pub struct Members<M: Send + 'static> {
    pub list: Vec<Member<M>>,
    /// The number of the next routee that the pool makes.
    pub next_index: u32,
    pub version: u64,
}

pub struct Member<M: Send + 'static> {
    pub routee: Routee<M>,
    /// Made by the pool, so it ends when it is removed.
    pub own: bool,
}

/// Routees that the pool has made and that are not listed yet. Those that never will be end with this.
pub struct Made<M: Send + 'static>(Vec<Member<M>>);

impl<M: Send + 'static> Drop for Made<M> {
    fn drop(&mut self) {
        self.0.iter().for_each(|member| member.routee.actor().stop());
    }
}

impl<M: Send + 'static> Clone for Member<M> {
    fn clone(&self) -> Self {
        Self { routee: self.routee.clone(), own: self.own }
    }
}

impl<M: Send + 'static> Members<M> {
    /// The list with what the pool has made at its end. They end with `made` if it does not come to that.
    pub fn and(&self, made: &Made<M>) -> Vec<Member<M>> {
        self.list.iter().chain(&made.0).cloned().collect()
    }

    fn lists(&self, actor: &ActorRef<M>) -> bool {
        self.list.iter().any(|member| member.routee.actor() == actor)
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> Board<M, L> {
    /// Makes `count` more routees, or none.
    pub fn make(&self, members: &mut Members<M>, count: usize) -> Result<Made<M>, SpawnError> {
        let mut made = Made(Vec::new());
        let Some(make) = &self.make else { return Ok(made) };
        made.0.reserve(count);
        for _ in 0..count {
            let actor = make(&self.shared.about.head, members.next_index)?;
            members.next_index += 1;
            made.0.push(Member { routee: Routee::new(actor), own: true });
        }
        Ok(made)
    }

    /// Publishes `list` as the table that senders read from now on. When the logic's code panics, nothing has
    /// changed: all of the user's code runs before the first step that can be seen.
    pub fn publish(&self, members: &mut Members<M>, list: Vec<Member<M>>) {
        let routees: Vec<Routee<M>> = list.iter().map(|member| member.routee.clone()).collect();
        let index = self.logic.index(&routees);
        members.version += 1;
        members.list = list;
        self.shared.table.replace(Routees::new(routees, index, members.version));
    }

    /// As [`publish`](Self::publish), with routees that stay from now on.
    pub fn publish_with(&self, members: &mut Members<M>, mut made: Made<M>) {
        let list = members.and(&made);
        self.publish(members, list);
        made.0.clear();
    }

    /// Lets routees go that are no longer in the published table.
    pub fn let_go(&self, members: &Members<M>, leaving: &[Member<M>], ctx: &mut Context<Manage<M>>) {
        for member in leaving {
            let actor = member.routee.actor();
            if member.own {
                actor.send_drain(self.reference.clone());
            } else if !members.lists(actor) {
                // Listed twice it would still be one watch.
                unwatch(ctx, &member.routee);
            }
        }
    }
}

pub fn watch<M: Send + 'static>(ctx: &mut Context<Manage<M>>, routee: &Routee<M>) {
    if let Some(any) = routee.actor().any() {
        // Watched already is what was wanted.
        let _ = ctx.watch(&any);
    }
}

pub fn unwatch<M: Send + 'static>(ctx: &mut Context<Manage<M>>, routee: &Routee<M>) {
    if let Some(any) = routee.actor().any() {
        ctx.unwatch(&any);
    }
}
