//! The head actor: creates, watches and supervises routees, and publishes the table. `removal.rs` is the way in which
//! routees leave the head.
//!
//! **A change is all or nothing.** The logic's [`prepare`](RoutingLogic::prepare) runs on the new list before list and
//! table change, and routees made for the list end unless they get there. A panic in `prepare` is logged and changes
//! nothing, least of all the routees: it is no failure of the head, since a restart of the head would restart the
//! routees.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Terminated;
use crate::core::strategy::Strategy;
use crate::dispatch::may_block::without_waiting;
use crate::failure::{Failure, guarded};
use crate::routing::head::messages::{AdjustPoolSize, Manage, ManageError};
use crate::routing::head::old_tables::WaitingChanges;
use crate::routing::head::removal::watch;
use crate::routing::head::state::{HeadState, Member};
use crate::routing::logic::RoutingLogic;
use crate::routing::plan::NewRoutee;
use crate::routing::routees::Routee;
use crate::sync::atomic::Ordering;
use crate::sync::lock;
use crate::util::panic::{drop_guarded, quietly};
use crate::util::reclaim;
use crate::util::stderr_log::report;
use std::fmt;
use std::sync::Arc as StdArc;

/// The head actor. Its state is in the head state, except for the changes that wait: they are there only over a
/// restart.
pub(crate) struct Head<M: Send + 'static, L> {
    pub head_state: StdArc<HeadState<M, L>>,
    pub waiting: WaitingChanges<M>,
}

impl<M: Send + 'static, L: RoutingLogic<M>> Actor for Head<M, L> {
    type Message = Manage<M>;

    fn receive(&mut self, message: Manage<M>, ctx: &mut Context<Manage<M>>) -> HandlerResult {
        if let Some(message) = self.unless_waiting(message, ctx) {
            self.handle(message, ctx);
        }
        Ok(())
    }

    fn started(&mut self, ctx: &mut Context<Manage<M>>) -> HandlerResult {
        self.take_waiting(ctx);
        self.begin_ticks(ctx);
        Ok(())
    }

    fn stopped(&mut self, ctx: &mut Context<Manage<M>>) {
        self.head_state.shared.close();
        let former = {
            let mut members = lock(&self.head_state.members);
            members.is_ending = true;
            std::mem::take(&mut members.list)
        };
        drop(former);
        self.refuse_waiting(ctx);
        // Frees the tables that no thread reads any more now, rather than with the next change somewhere.
        reclaim::process_domain().collect();
    }

    /// The routees outlive a restart of the head, which restarts them in their places: the head state holds them.
    fn restarting(&mut self, _: &Failure, _: &mut Context<Manage<M>>) -> HandlerResult {
        self.leave_waiting();
        Ok(())
    }

    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<Manage<M>>) -> HandlerResult {
        // If publishing panics, the ended routee stays listed until the next notice; `forget` takes every closed one.
        self.change(ctx, |head, _| head.forget(&terminated.actor));
        self.end_if_empty(&EndedRoutee(&terminated.actor), ctx);
        self.stop_if_drained(ctx);
        Ok(())
    }

    fn supervision(&self) -> Strategy {
        self.head_state.strategy.clone()
    }
}

/// The reason for the end of a router whose last routee has ended. The path is made only when it is shown.
struct EndedRoutee<'a>(&'a AnyActorRef);

impl fmt::Display for EndedRoutee<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its last routee, {}, has ended", self.0.path())
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> Head<M, L> {
    /// Does what a message asks for.
    pub(crate) fn handle(&mut self, message: Manage<M>, ctx: &mut Context<Manage<M>>) {
        match message {
            Manage::Adjust(call) => {
                let size = call.request;
                let outcome = self.change(ctx, |head, ctx| match size {
                    AdjustPoolSize::By(delta) => head.adjust(delta, ctx),
                    AdjustPoolSize::To(size) => head.resize_to(size, ctx),
                });
                if let Some(outcome) = outcome {
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
                    self.end_if_empty(&"its last routee was removed", ctx);
                }
            }
            Manage::Routees(call) => {
                let list = self.head_state.list().into_iter().map(Member::into_info).collect();
                call.answer(|_| list);
            }
            Manage::Drain(call) => {
                if self.change(ctx, |head, ctx| head.drain(ctx)).is_some() {
                    call.answer(|_| ());
                }
            }
            Manage::AskResizer => self.ask_resizer(ctx),
        }
    }

    /// Runs a change that has code of the user's in it. Returns `None` if that code panics: nothing has changed then,
    /// and the asker learns from its reply port, which is dropped.
    pub(crate) fn change<R>(
        &mut self,
        ctx: &mut Context<Manage<M>>,
        change: impl FnOnce(&mut Self, &mut Context<Manage<M>>) -> R,
    ) -> Option<R> {
        // User code that manages this router from in here would wait for this very turn.
        match guarded(|| Ok(without_waiting(|| change(self, ctx)))) {
            Ok(changed) => Some(changed),
            Err(failure) => {
                // The cause and its text are the user's, and so is the logger.
                let text = guarded(|| Ok(failure.to_string()));
                let logged = guarded(|| {
                    let text = text.as_deref().unwrap_or_default();
                    let stderr = ctx.system().core().stderr;
                    report!(
                        stderr,
                        Warning,
                        log::Level::Error,
                        "{} could not be changed: {text}",
                        ctx.path()
                    );
                    Ok(())
                });
                drop_guarded((logged, text, failure));
                None
            }
        }
    }

    /// Whether the routees may be changed.
    ///
    /// A request that could wait for old tables has waited by now.
    fn check_open(&self, ctx: &Context<Manage<M>>) -> Result<(), ManageError> {
        if self.head_state.is_ending() {
            return Err(ManageError::Stopped { path: ctx.path().to_string() });
        }
        match self.old_tables() {
            Some(waiting) => Err(ManageError::OldTables { path: ctx.path().to_string(), waiting }),
            None => Ok(()),
        }
    }

    fn check_pool(&self, ctx: &Context<Manage<M>>) -> Result<(), ManageError> {
        if self.head_state.make.is_none() {
            return Err(ManageError::NotAPool { path: ctx.path().to_string() });
        }
        self.check_open(ctx)
    }

    pub(crate) fn resize_to(
        &mut self,
        size: usize,
        ctx: &mut Context<Manage<M>>,
    ) -> Result<usize, ManageError> {
        self.check_pool(ctx)?;
        let size = self.head_state.clamp(size);
        if size == 0 && !self.head_state.stays_when_empty {
            return Err(ManageError::EmptyPool { path: ctx.path().to_string() });
        }
        self.forget_closed();
        self.set_size(size, ctx)?;
        Ok(size)
    }

    fn adjust(&mut self, delta: isize, ctx: &mut Context<Manage<M>>) -> Result<usize, ManageError> {
        self.check_pool(ctx)?;
        self.forget_closed();
        let before = self.head_state.count();
        if before == 0 && delta <= 0 {
            return Ok(0);
        }
        let size = match self.head_state.clamp(before.saturating_add_signed(delta)) {
            // Otherwise the head would live on, and refuse everything.
            0 if !self.head_state.stays_when_empty => 1,
            size => size,
        };
        self.set_size(size, ctx)?;
        Ok(size)
    }

    /// Makes the pool have so many routees, by new routees at the end or by removing the last routees.
    fn set_size(&mut self, size: usize, ctx: &mut Context<Manage<M>>) -> Result<(), ManageError> {
        let before = self.head_state.count();
        if size > before {
            let made = self.head_state.make(size - before).map_err(ManageError::Spawn)?;
            self.head_state.publish_with(&made);
            self.head_state.list()[before..].iter().for_each(|member| watch(ctx, &member.routee));
            made.into_iter().for_each(NewRoutee::start);
        } else if size < before {
            let mut staying = self.head_state.list();
            let leaving = staying.split_off(size);
            let batch = self.head_state.prepare_to_leave(&leaving);
            self.head_state.publish(staying);
            self.head_state.release_removed(batch, ctx);
            if size == 0 {
                // Also forgets routees that were ending before, or whose termination notices are on the way: a pool
                // that becomes empty by this lives on. (`drain` watches its children again.)
                ctx.unwatch_all();
            }
        }
        Ok(())
    }

    fn add(&mut self, routee: Routee<M>, ctx: &mut Context<Manage<M>>) -> Result<usize, ManageError> {
        self.check_open(ctx)?;
        if self.head_state.shares_queue {
            return Err(ManageError::SharedQueue { path: ctx.path().to_string() });
        }
        let routee = routee.for_router(&self.head_state.shared.info);
        let mut list = self.head_state.list();
        list.push(Member { routee: routee.clone(), own: false });
        let count = list.len();
        self.head_state.publish(list);
        watch(ctx, &routee);
        Ok(count)
    }

    fn remove(&mut self, routee: &Routee<M>, ctx: &mut Context<Manage<M>>) -> Result<bool, ManageError> {
        self.check_open(ctx)?;
        let (leaving, staying): (Vec<_>, Vec<_>) =
            self.head_state.list().into_iter().partition(|member| member.routee.is_meant_by(routee));
        if leaving.is_empty() {
            return Ok(false);
        }
        let batch = self.head_state.prepare_to_leave(&leaving);
        self.head_state.publish(staying);
        self.head_state.release_removed(batch, ctx);
        Ok(true)
    }

    /// Takes a routee that has ended out of the table, and any that [takes nothing](Self::forget_closed) any more, such
    /// as a routee whose notice came while the logic panicked.
    fn forget(&mut self, ended: &AnyActorRef) {
        self.forget_all(|any| any == ended || any.is_closed());
    }

    /// Takes routees out of the table that have ended, or that are ending and take nothing any more: their termination
    /// notices are still to come, and a change of a pool's size must count the living routees.
    ///
    /// Does nothing where routees share a queue: the last of them handles the messages in the queue before it ends.
    fn forget_closed(&mut self) {
        if self.head_state.shares_queue {
            return;
        }
        // A routee that stops keeps its mailbox open until its children have ended; messages of that time are not
        // handled.
        self.forget_all(|any| any.is_closed() || any.core().children.is_closed());
    }

    fn forget_all(&mut self, is_gone: impl Fn(&AnyActorRef) -> bool) {
        let list = self.head_state.list();
        let count = list.len();
        let stays = |member: &Member<M>| member.routee.watched().is_none_or(|any| !is_gone(&any));
        let staying: Vec<_> = list.into_iter().filter(stays).collect();
        if staying.len() < count {
            self.head_state.publish(staying);
        }
    }

    /// Called where a routee was to be removed (also a routee that was not listed: Akka's rule) or has ended, and
    /// nowhere else.
    fn end_if_empty(&mut self, why: &dyn fmt::Display, ctx: &mut Context<Manage<M>>) {
        if !self.head_state.stays_when_empty && self.head_state.count() == 0 {
            self.report_end(why, ctx);
            self.drain(ctx);
        }
    }

    /// Says that the router ends by itself, unless it or its system was told to end before.
    pub(crate) fn report_end(&self, why: &dyn fmt::Display, ctx: &Context<Manage<M>>) {
        let system = ctx.system();
        let (core, path) = (system.core(), ctx.path());
        // Ordering: Relaxed; a router that ends at the same moment as its system may be reported or not.
        if self.head_state.is_ending() || core.closed.load(Ordering::Relaxed) {
            return;
        }
        let kind = if self.head_state.make.is_some() { "pool" } else { "router" };
        // The logger is user code.
        quietly(|| {
            report!(
                core.stderr,
                End,
                log::Level::Warn,
                "{kind} {path} ends by itself: {why}; messages sent to it from now on are dead letters"
            );
        });
    }
}
