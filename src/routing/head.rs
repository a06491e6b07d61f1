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

use super::board::{Board, Member, watch};
use super::{Manage, ManageError, Routee, RoutingLogic};
use crate::actor::{Actor, Context, Done, Terminated, guarded};
use crate::actor_ref::{ActorRef, AnyRef};
use crate::grace;
use crate::supervision::{Failure, Strategy};
use crate::sync::lock;
use std::sync::Arc as StdArc;

/// Old tables that may wait to be freed, in the whole process. More mean that a handler does not return.
const OLD_TABLES_MAX: usize = 1024;
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
