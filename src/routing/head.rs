//! The head actor: creates, watches and supervises routees, and publishes the table.
//!
//! **How a routee leaves without loss.** The head publishes the smaller table, then sends the routee a
//! positioned drain. What lies before that position the routee handles; then it closes, hands what senders
//! with the old table put behind it to the router again, and ends. A push that comes later is refused, and
//! its sender chooses again. No step waits for anybody: the old table is freed once nobody can read it.
//!
//! **How a change is all or nothing.** The logic's [`index`](RoutingLogic::index) runs on the new list before
//! list and table change, and routees made for it end unless they get there. A panic in it is logged and changes
//! nothing, least of all the routees: it is no failure of the head, whose restart would restart them.

use super::router::{ManageError, Shared};
use super::{Routee, Routees, RoutingLogic};
use crate::actor::{Actor, Context, Done, Terminated, guarded};
use crate::actor_ref::{ActorRef, AnyRef, Call, Request};
use crate::error::SpawnError;
use crate::grace;
use crate::supervision::{Failure, Strategy};
use crate::sync::{Mutex, lock};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc as StdArc;

/// Old tables that may wait to be freed, in the whole process. More mean that a handler does not return.
const OLD_TABLES_MAX: usize = 1024;

/// What a router's head can be asked: through [`Router`](super::Router), or by `ctx.ask` from an actor.
#[non_exhaustive]
pub enum Manage<M: Send + 'static> {
    /// Change a pool's size.
    ResizeTo(Call<ResizeTo>),
    /// Add a routee.
    Add(Call<AddRoutee<M>>),
    /// Remove a routee.
    Remove(Call<RemoveRoutee<M>>),
    /// List the routees.
    Routees(Call<GetRoutees<M>>),
}

/// Make a pool's size `size`; the reply is the size before.
#[derive(Debug, Clone, Copy)]
pub struct ResizeTo {
    /// The size wanted, at least 1.
    pub size: usize,
}

/// Add a routee at the end; the reply is how many there are then.
#[derive(Debug, Clone)]
pub struct AddRoutee<M: Send + 'static> {
    /// The routee.
    pub routee: ActorRef<M>,
}

/// Remove every entry of a routee; the reply is whether it was one.
#[derive(Debug, Clone)]
pub struct RemoveRoutee<M: Send + 'static> {
    /// The routee.
    pub routee: ActorRef<M>,
}

/// List the routees.
#[derive(Debug, Clone, Copy)]
pub struct GetRoutees<M>(PhantomData<fn(M)>);

impl<M> GetRoutees<M> {
    /// The request.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<M> Default for GetRoutees<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl Request for ResizeTo {
    type Reply = Result<usize, ManageError>;
}

impl<M: Send + 'static> Request for AddRoutee<M> {
    type Reply = Result<usize, ManageError>;
}

impl<M: Send + 'static> Request for RemoveRoutee<M> {
    type Reply = Result<bool, ManageError>;
}

impl<M: Send + 'static> Request for GetRoutees<M> {
    type Reply = Vec<ActorRef<M>>;
}

impl<M: Send + 'static> From<Call<ResizeTo>> for Manage<M> {
    fn from(call: Call<ResizeTo>) -> Self {
        Manage::ResizeTo(call)
    }
}

impl<M: Send + 'static> From<Call<AddRoutee<M>>> for Manage<M> {
    fn from(call: Call<AddRoutee<M>>) -> Self {
        Manage::Add(call)
    }
}

impl<M: Send + 'static> From<Call<RemoveRoutee<M>>> for Manage<M> {
    fn from(call: Call<RemoveRoutee<M>>) -> Self {
        Manage::Remove(call)
    }
}

impl<M: Send + 'static> From<Call<GetRoutees<M>>> for Manage<M> {
    fn from(call: Call<GetRoutees<M>>) -> Self {
        Manage::Routees(call)
    }
}

impl<M: Send + 'static> fmt::Debug for Manage<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Manage::ResizeTo(_) => "ResizeTo",
            Manage::Add(_) => "Add",
            Manage::Remove(_) => "Remove",
            Manage::Routees(_) => "Routees",
        })
    }
}

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
    fn let_go(&self, members: &Members<M>, leaving: &[Member<M>], ctx: &mut Context<Manage<M>>) {
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

/// The actor. Its state is all on the board.
pub struct Head<M: Send + 'static, L> {
    pub board: StdArc<Board<M, L>>,
}

impl<M: Send + 'static, L: RoutingLogic<M>> Actor for Head<M, L> {
    type Message = Manage<M>;

    fn receive(&mut self, message: Manage<M>, ctx: &mut Context<Manage<M>>) -> Done {
        match message {
            Manage::ResizeTo(call) => {
                let size = call.request.size;
                if let Some(outcome) = self.change(ctx, |head, ctx| head.resize(size, ctx)) {
                    call.answer(|_| outcome);
                }
            }
            Manage::Add(call) => {
                let (request, reply_to) = call.into_parts();
                if let Some(count) = self.change(ctx, |head, ctx| head.add(request.routee, ctx)) {
                    let _ = reply_to.send(count);
                }
            }
            Manage::Remove(call) => {
                let (request, reply_to) = call.into_parts();
                if let Some(removed) = self.change(ctx, |head, ctx| head.remove(&request.routee, ctx)) {
                    let _ = reply_to.send(removed);
                    self.stop_if_empty(ctx);
                }
            }
            Manage::Routees(call) => {
                let list = {
                    let members = lock(&self.board.members);
                    members.list.iter().map(|member| member.routee.actor().clone()).collect()
                };
                call.answer(|_| list);
            }
        }
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Manage<M>>) {
        self.board.shared.close();
        lock(&self.board.members).list.clear();
        // Tables that nobody reads any more go now rather than with the next change somewhere.
        grace::process_domain().collect();
    }

    /// The routees outlive a restart of the head: the board has them.
    fn restarting(&mut self, _: &Failure, _: &mut Context<Manage<M>>) -> Done {
        Ok(())
    }

    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<Manage<M>>) -> Done {
        // One whose notice panics goes with the next that ends.
        self.change(ctx, |head, _| head.forget(&terminated.actor));
        self.stop_if_empty(ctx);
        Ok(())
    }

    fn supervision(&self) -> Strategy {
        self.board.strategy.clone()
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> Head<M, L> {
    /// Runs a change that has code of the user's in it. `None` if that panics: nothing has changed then, and whoever
    /// asked for it learns from the reply port, which is dropped.
    fn change<R>(
        &mut self,
        ctx: &mut Context<Manage<M>>,
        change: impl FnOnce(&mut Self, &mut Context<Manage<M>>) -> R,
    ) -> Option<R> {
        match guarded(|| Ok(change(self, ctx))) {
            Ok(changed) => Some(changed),
            Err(failure) => {
                // The cause's text is made by user code.
                let text = guarded(|| Ok(failure.to_string())).unwrap_or_default();
                log::error!(target: "pointsman", "{} could not be changed: {text}", ctx.path());
                None
            }
        }
    }

    fn resize(&mut self, size: usize, ctx: &mut Context<Manage<M>>) -> Result<usize, ManageError> {
        let path = || ctx.path().to_string();
        if self.board.make.is_none() {
            return Err(ManageError::NotAPool { path: path() });
        }
        if size == 0 {
            return Err(ManageError::EmptyPool { path: path() });
        }
        self.check_old_tables()?;
        let mut members = lock(&self.board.members);
        let before = members.list.len();
        if size > before {
            let made = self.board.make(&mut members, size - before).map_err(ManageError::Spawn)?;
            self.board.publish_with(&mut members, made);
            members.list[before..].iter().for_each(|member| watch(ctx, &member.routee));
        } else if size < before {
            let mut staying = members.list.clone();
            let leaving = staying.split_off(size);
            self.board.publish(&mut members, staying);
            self.board.let_go(&members, &leaving, ctx);
        }
        Ok(before)
    }

    /// Each change leaves a table behind, which is freed when nobody can be reading it. A handler that never
    /// returns keeps them all.
    fn check_old_tables(&self) -> Result<(), ManageError> {
        match grace::process_domain().collect() {
            waiting if waiting >= OLD_TABLES_MAX => Err(ManageError::OldTables { waiting }),
            _ => Ok(()),
        }
    }

    fn add(&mut self, actor: ActorRef<M>, ctx: &mut Context<Manage<M>>) -> Result<usize, ManageError> {
        self.check_old_tables()?;
        let mut members = lock(&self.board.members);
        let routee = Routee::new(actor);
        let mut list = members.list.clone();
        list.push(Member { routee: routee.clone(), own: false });
        self.board.publish(&mut members, list);
        watch(ctx, &routee);
        Ok(members.list.len())
    }

    fn remove(&mut self, actor: &ActorRef<M>, ctx: &mut Context<Manage<M>>) -> Result<bool, ManageError> {
        self.check_old_tables()?;
        let mut members = lock(&self.board.members);
        let (leaving, staying): (Vec<_>, Vec<_>) =
            members.list.iter().cloned().partition(|member| member.routee.actor() == actor);
        if leaving.is_empty() {
            return Ok(false);
        }
        self.board.publish(&mut members, staying);
        self.board.let_go(&members, &leaving, ctx);
        Ok(true)
    }

    /// Takes a routee that has ended out of the table, and any whose notice came while the logic panicked.
    fn forget(&mut self, ended: &AnyRef) {
        let mut members = lock(&self.board.members);
        let stays = |member: &&Member<M>| match member.routee.actor().any() {
            Some(any) => any != *ended && !any.is_closed(),
            None => true,
        };
        let staying: Vec<_> = members.list.iter().filter(stays).cloned().collect();
        if staying.len() < members.list.len() {
            self.board.publish(&mut members, staying);
        }
    }

    fn stop_if_empty(&self, ctx: &Context<Manage<M>>) {
        if !self.board.stays_when_empty && lock(&self.board.members).list.is_empty() {
            ctx.stop();
        }
    }
}

fn watch<M: Send + 'static>(ctx: &mut Context<Manage<M>>, routee: &Routee<M>) {
    if let Some(any) = routee.actor().any() {
        // Watched already is what was wanted.
        let _ = ctx.watch(&any);
    }
}

fn unwatch<M: Send + 'static>(ctx: &mut Context<Manage<M>>, routee: &Routee<M>) {
    if let Some(any) = routee.actor().any() {
        ctx.unwatch(&any);
    }
}
