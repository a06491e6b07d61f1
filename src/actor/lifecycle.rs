//! The life of an actor: creation, failure and verdict, restart, and the end.
//!
//! # From a failure to its verdict
//!
//! A handler or hook fails: [`fail`](ActorTurn::fail) suspends the actor and its children and sends the parent
//! `ChildFailed`. The parent [judges](ActorTurn::judge) (`supervise.rs`) and answers with `Resume`, `Restart` or
//! `Stop`, or escalates: then it fails itself, with the same cause.
//!
//! Suspensions are counted, since several reasons may hold at once:
//!
//! | event | the actor's own count | its children |
//! |---|---|---|
//! | it fails | one more | one more, each |
//! | it escalates a child's failure | one more | one more, each but that child, which is suspended by its own failure |
//! | it is resumed, or restarted | one less | one less for each that is kept |
//! | its parent is suspended or resumed | one more, or one less | the same |
//! | it shares the fate of a sibling that is restarted | one more, and by the restart one less | the same |
//!
//! The flag `failed` says that the actor waits for a verdict. Only a verdict on this very failure (`judged`) clears the
//! flag; a suspension or resume that the parent does for its own reasons does not. An actor that waits for a verdict
//! escalates no second failure: the child that failed is added to `culprits`, and the culprits get this actor's verdict
//! too.
//!
//! A restart cancels the actor's timers, unstashes all messages, and runs `restarting` on the old state. It waits until
//! all children that have been told to stop by then have ended (other control is deferred meanwhile), and makes the new
//! state. The hook or an earlier call may have told them to stop. Children that were kept restart too.
//!
//! # The end
//!
//! An actor ends after its children. It accepts no more children, stops all of them and waits. Then it runs `stopped`,
//! closes the mailbox and drains it into dead letters (or into the router that a routee leaves). Last it leaves the
//! parent's list, tells the watchers, and releases the memory. A parent that counts on the notice (`core/children.rs`)
//! is told, and removes the child itself. If the parent has [child hooks](Recipe::IS_FOSTERED), the parent
//! tells the watchers of the child, when it has finished with the child.

use crate::actor::actor::Actor;
use crate::actor::child_hooks::ChildHooks;
use crate::actor::private::{Extras, Phase};
use crate::actor::recipe::{LifeStage, Recipe, StandInStage};
use crate::actor::supervise::log_ignored;
use crate::actor::turn::ActorTurn;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::{Header, VTable};
use crate::core::control::Control;
use crate::core::lifecycle::{ActorEvent, Lifecycle};
use crate::core::system::SystemCore;
use crate::failure::{Failure, guarded};
use crate::mailbox::mailbox::DrainStep;
use crate::mailbox::system_queue::Batch;
use crate::sync::atomic::Ordering;
use crate::sync::{EXPLORED, HashSet};
use crate::util::panic::drop_guarded;
use std::mem::ManuallyDrop;
use std::sync::Arc as StdArc;

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    pub(crate) fn create(&mut self) {
        let suspended = self.private(|private| {
            private.phase = Phase::Alive;
            private.pause.suspensions()
        });
        if suspended > 0 {
            self.owner().set_suspended(true);
        }
        let made = self.make_state().and_then(|()| match self.with_actor(|actor, ctx| actor.started(ctx)) {
            Some(outcome) => outcome,
            None => Ok(()),
        });
        match made {
            Ok(()) => {
                self.private(|private| private.created = true);
                self.reached(LifeStage::Started);
                self.core().system.publish_life(|| Lifecycle::Started(ActorEvent::of(&self.me())));
            }
            Err(failure) => {
                self.drop_state();
                self.with_recipe(|recipe, _| recipe.failed_to_start(&failure));
                self.fail(failure.during_initialization(), None);
            }
        }
    }

    pub(crate) fn make_state(&mut self) -> Result<(), Failure> {
        let ctx = &mut self.ctx;
        let made = self.cell.recipe.with_mut(|recipe| {
            // SAFETY: this turn holds the ownership token, and nothing else reaches the recipe.
            let recipe = unsafe { &mut *recipe };
            let recipe = recipe.as_mut().expect("an actor that has not ended has its recipe");
            guarded(|| recipe.make(ctx))
        })?;
        self.cell.actor.with_mut(|actor| {
            // SAFETY: as in `with_actor`; the place is empty, so no value of the user is dropped here.
            unsafe { *actor = Some(made) };
        });
        Ok(())
    }

    pub(crate) fn drop_state(&mut self) {
        let state = self.cell.actor.with_mut(|actor| {
            // SAFETY: as in `with_actor`.
            unsafe { (*actor).take() }
        });
        drop_guarded(state);
    }

    pub(crate) fn drop_recipe(&mut self) {
        let recipe = self.cell.recipe.with_mut(|recipe| {
            // SAFETY: as in `make_state`.
            unsafe { (*recipe).take() }
        });
        drop_guarded(recipe);
    }

    /// Fails this actor: it and its children are suspended until the parent has judged. `culprit` is the child whose
    /// failure is passed on.
    pub(crate) fn fail(&mut self, failure: Failure, culprit: Option<AnyActorRef>) {
        let again = self.private(|private| std::mem::replace(&mut private.failed, true));
        // Two failures of an actor elsewhere may come before the first of them is judged: a verdict of the parent, such as that on
        // its own failure, crossed with the first. Each has suspended the actor, so each is judged.
        let is_told_of = again && !F::IS_STAND_IN;
        if is_told_of || matches!(self.phase(), Phase::Stopping | Phase::Draining) {
            return;
        }
        self.reached(LifeStage::Failed);
        if culprit.is_none() && !EXPLORED {
            self.core().count_in_class(self.row, self.vtable(), |counts| &counts.failures);
        }
        self.suspend(culprit.as_ref());
        if let Some(culprit) = culprit {
            self.private(|private| private.extras().culprits.push(culprit));
        }
        let child = self.me();
        let refused = match &self.core().parent {
            Some(parent) => parent.send_system(Control::ChildFailed { child, failure }).is_err(),
            // Only the root has no parent, and it ends with the system.
            None => true,
        };
        if refused {
            self.begin_stop();
        }
    }

    /// Counts one suspension of this actor and of its children, except the child that caused it.
    pub(crate) fn suspend(&mut self, except: Option<&AnyActorRef>) {
        let suspended = self.private(|private| {
            private.pause.set_suspensions(private.pause.suspensions() + 1);
            private.pause.suspensions()
        });
        self.owner().set_suspended(true);
        for child in self.core().children.set_suspended(suspended) {
            if Some(&child) != except {
                let _ = child.send_system(Control::Suspend);
            }
        }
    }

    pub(crate) fn resume(&mut self, judged: bool) {
        // A state that was never made cannot be resumed: the verdict makes it anew.
        let stateless = self.with_actor(|_, _| Ok(())).is_none();
        if judged && stateless {
            self.begin_restart(Failure::msg("resumed without a state"));
            return;
        }
        let culprits = self.end_suspension(judged);
        let suspended = self.private(|private| private.pause.suspensions());
        for child in self.core().children.set_suspended(suspended) {
            let judged = culprits.contains(&child);
            let _ = child.send_system(Control::Resume { judged });
        }
    }

    /// Undoes one suspension; returns the children whose failures had been passed on.
    pub(crate) fn end_suspension(&mut self, judged: bool) -> Vec<AnyActorRef> {
        let (suspended, culprits) = self.private(|private| {
            let before = private.pause.suspensions();
            debug_assert!(before > 0, "more suspensions are undone than there were");
            private.pause.set_suspensions(before.saturating_sub(1));
            let culprits = if judged {
                private.failed = false;
                private.extras.as_mut().map(|extras| std::mem::take(&mut extras.culprits))
            } else {
                None
            };
            (private.pause.suspensions(), culprits.unwrap_or_default())
        });
        self.owner().set_suspended(suspended > 0);
        culprits
    }

    pub(crate) fn begin_restart(&mut self, failure: Failure) {
        self.ctx.cancel_all_timers();
        self.drop_holds();
        self.ctx.drop_tasks(true);
        let stateless = self.with_actor(|_, _| Ok(())).is_none();
        if stateless {
            self.ctx.stop_children();
        } else if let Some(Err(own)) = self.with_actor(|actor, ctx| actor.restarting(&failure, ctx)) {
            // By contract an error or panic of this hook changes nothing.
            log_ignored(&self.me(), "restarting", &own);
        }
        self.ctx.unstash_all();
        self.private(|private| {
            private.phase = Phase::Restarting;
            private.extras().restart = Some(failure);
        });
        if !self.waits_for_children() {
            self.finish_restart();
        }
    }

    /// Returns whether the restart in progress has to wait for children. It waits for all that have been told to stop
    /// by now, by any actor: the new state may want their names.
    fn waits_for_children(&mut self) -> bool {
        let mut told = self.core().children.all_with_notices();
        told.retain(|child| child.core().is_told_to_stop());
        let waits = !told.is_empty();
        self.private(|private| private.extras().stopping.extend(told));
        waits
    }

    pub(crate) fn finish_restart(&mut self) {
        let failure = self.private(|private| {
            private.phase = Phase::Alive;
            private.extras().restart.take()
        });
        let failure = failure.unwrap_or_else(|| Failure::msg("restarted"));
        // A restart of an actor that was never completely created is its creation, tried again.
        let created = self.private(|private| private.created);
        // The timers, holds and streams that `restarting` has begun were meant for the old state.
        self.ctx.cancel_all_timers();
        self.drop_holds();
        self.ctx.drop_tasks(true);
        self.drop_state();
        self.end_suspension(true);
        let suspended = self.private(|private| private.pause.suspensions());
        let kept = self.core().children.set_suspended(suspended);
        let made =
            self.make_state().and_then(|()| {
                let hook = self.with_actor(|actor, ctx| {
                    if created { actor.restarted(&failure, ctx) } else { actor.started(ctx) }
                });
                hook.unwrap_or(Ok(()))
            });
        match made {
            Ok(()) => {
                self.private(|private| private.created = true);
                // The other node tells how often the actor of a stand-in was restarted.
                if created && !F::IS_STAND_IN {
                    // Ordering: Relaxed; a count, and this turn alone writes it.
                    let restarts = self.core().restarts.load(Ordering::Relaxed);
                    self.core().restarts.store(restarts.saturating_add(1), Ordering::Relaxed);
                    if !EXPLORED {
                        self.core().count_in_class(self.row, self.vtable(), |counts| &counts.restarts);
                    }
                }
                self.reached(LifeStage::Started);
                let event = if created { Lifecycle::Restarted } else { Lifecycle::Started };
                self.core().system.publish_life(|| event(ActorEvent::of(&self.me())));
                self.ctx.rearm_receive_timeout();
                self.leave_after_farewell();
            }
            Err(failure) => {
                self.drop_state();
                self.fail(failure.during_initialization(), None);
            }
        }
        if !kept.is_empty() {
            // User code makes the text of the cause.
            let text = guarded(|| Ok(failure.to_string())).unwrap_or_default();
            for child in kept {
                let cause = Failure::msg(format!("parent restarted: {text}"));
                let _ = child.send_system(Control::Restart(cause));
            }
        }
        let deferred = self.private(|private| std::mem::take(&mut private.extras().deferred));
        for message in deferred {
            self.immediate(message);
        }
    }

    /// Removes an ended child. `watchers` are told that the child has ended when its name is free and the child hooks
    /// have finished with it.
    pub(crate) fn child_stopped(&mut self, child: &AnyActorRef, watchers: &[AnyActorRef]) {
        let Some(child) = self.core().children.remove(child) else {
            return watchers.iter().for_each(|watcher| watcher.notify_terminated(child.clone(), true));
        };
        let position = self.owner().gate().position();
        let restarting = self.private(|private| {
            let Some(extras) = &mut private.extras else { return false };
            extras.histories.remove(&child);
            let waited_for = extras.stopping.remove(&child);
            if extras.watching.contains_key(&child) {
                // The name is free before a watcher sees the notice.
                let notice = child.termination(true);
                self.core().count_notice();
                extras.positioned.push_back((position, Control::Terminated(notice)));
            }
            private.phase == Phase::Restarting && waited_for && extras.stopping.is_empty()
        });
        // More children may have been told to stop meanwhile.
        let restarting = restarting && !self.waits_for_children();
        if let Some(child_hooks) = self.parent_hooks() {
            let ended = child.clone();
            let _ = guarded(|| {
                child_hooks.ended(ended);
                Ok(())
            });
        }
        watchers.iter().for_each(|watcher| watcher.notify_terminated(child.clone(), true));
        if restarting {
            self.finish_restart();
        }
        if self.phase() == Phase::Stopping && self.core().children.is_empty() {
            self.finish_stop();
        }
    }

    pub(crate) fn begin_stop(&mut self) {
        if matches!(self.phase(), Phase::Stopping | Phase::Draining) {
            return;
        }
        self.private(|private| private.phase = Phase::Stopping);
        self.core().note_stop();
        self.reached(LifeStage::Ending);
        self.forget_timers_and_watches();
        let all = self.core().children.close();
        for child in &all {
            let _ = child.send_system(Control::Stop);
        }
        // Not `children.is_empty()` again: a child may have ended between, and its notice will come.
        if all.is_empty() {
            self.finish_stop();
        }
    }

    /// Cancels all timers, ends all watches, and drops all holds and tasks; an ordinary actor has none.
    #[inline]
    fn forget_timers_and_watches(&mut self) {
        if self.private(|private| private.extras.is_some()) {
            self.ctx.cancel_all_timers();
            self.ctx.unwatch_all();
            self.drop_holds();
            self.ctx.drop_tasks(false);
        }
    }

    /// Drops all holds; most actors have none.
    #[inline]
    fn drop_holds(&mut self) {
        if self.private(|private| private.pause.is_held()) {
            self.ctx.drop_holds();
        }
    }

    pub(crate) fn finish_stop(&mut self) {
        // A state on which `restarting` has run gets no further hook.
        let restarting =
            self.private(|private| private.extras.as_ref().is_some_and(|extras| extras.restart.is_some()));
        if !restarting {
            let stopped = self.with_actor(|actor, ctx| {
                actor.stopped(ctx);
                Ok(())
            });
            if let Some(Err(own)) = stopped {
                log_ignored(&self.me(), "stopped", &own);
            }
        }
        // Those that `stopped` has begun.
        self.forget_timers_and_watches();
        self.drop_state();
        self.drop_recipe();
        self.apply_pending_leave();
        self.owner().close();
        self.settle_counts();
        self.private(|private| private.phase = Phase::Draining);
        if self.shares {
            self.stop_sharing();
        }
    }

    /// Counts the messages that this actor has handled in its class: it handles no more.
    fn settle_counts(&mut self) {
        // Models have no use for the counts, and each access makes them larger.
        if EXPLORED {
            return;
        }
        let has_extras = self.private(|private| private.extras.is_some());
        let taken = self.owner().head();
        let may_drop = self.cell.owned.local.mailbox.has_policy();
        if has_extras || may_drop || !self.core().count_ordinary_end(self.row, self.vtable(), taken) {
            self.settle_counts_of_class();
        }
    }

    /// As above, for an actor of whose class nothing is remembered, or which may have handled other messages than its mailbox
    /// had.
    #[cold]
    #[inline(never)]
    fn settle_counts_of_class(&mut self) {
        let beside =
            self.private(|private| private.extras.as_ref().map_or(0, |extras| extras.handled_beside()));
        let taken = self.owner().head().wrapping_sub(self.cell.owned.local.mailbox.displaced());
        self.core().count_end(self.row, self.vtable(), taken.wrapping_add(beside));
    }

    fn vtable(&self) -> &'static VTable {
        // SAFETY: the header is alive, as in `me`.
        unsafe { self.header.as_ref() }.vtable
    }

    /// Empties the closed mailbox into the router that the actor is leaving, or into dead letters.
    pub(crate) fn drain(&mut self) -> DrainStep<A::Message> {
        loop {
            let left = self.ctx.left_in_stash().map(DrainStep::Message);
            let message = match left.unwrap_or_else(|| self.owner().drain_next()) {
                DrainStep::Message(message) => message,
                done_or_busy => return done_or_busy,
            };
            let left = match self.router_for_leftovers() {
                Some(router) => match guarded(|| Ok(router.forward_counted(message))) {
                    Ok(Ok(_)) => continue,
                    Ok(Err(refused)) => refused.into_inner(),
                    // User code in the router's logic panicked and took the message with it. The router has counted the
                    // message.
                    Err(_) => continue,
                },
                None => message,
            };
            self.core().system.dead_letter(self.row, &self.me(), left);
        }
    }

    /// Takes the last steps: refuses control from now on, tells the parent and the watchers, and releases the memory.
    pub(crate) fn finish(&mut self) {
        // The end is counted as begun before any actor learns of it, and as done when all have been told.
        self.row.ends_begun(1);
        // SAFETY: not a counted reference, but it is not dropped, and the life's own reference is given back last.
        let me = &*ManuallyDrop::new(unsafe { AnyActorRef::from_counted(self.header) });
        let extras = self.private(|private| private.extras.take());
        let watchers = extras.map(|extras| self.drop_extras(extras));
        let refused = self.owner().close_system_queue();
        // An ordinary actor has no watchers.
        let told = if watchers.is_none() && refused.is_empty() {
            None
        } else {
            Some(self.find_watchers(watchers.unwrap_or_default(), refused))
        };
        let core = self.core();
        // The end is counted before the parent and the watchers are told below.
        self.row.ended(1);
        // Before the parent learns of it: when the root has ended, all placements must have ended too.
        if let Some(placement) = core.own_home() {
            core.system.release_placement(placement);
        }
        let mut told = told.unwrap_or_default();
        if let Some(parent) = &core.parent {
            self.leave_parent(parent, me, &mut told.watchers);
        }
        core.system.publish_life(|| Lifecycle::Stopped(ActorEvent::of(me)));
        told.tell(me);
        self.row.ends_done(1);
        if core.parent.is_none() {
            core.system.tree_ended();
        }
        // The values that the cell's end drops may send messages, and these have no actor as their sender.
        crate::thread_context::sender::leave();
        // SAFETY: this is the life's own reference, given back once: the phase lets no turn follow, since a closed
        // mailbox and a closed system queue wake no actor. `self` is not used for the cell after this.
        unsafe { Header::release(self.header) };
    }

    /// Sorts out the watchers from the control that is left, and drops the rest.
    #[cold]
    fn find_watchers(&self, mut watchers: HashSet<AnyActorRef>, left: Batch<Control>) -> Watchers {
        let mut late = Vec::new();
        for (_, message) in left {
            match message {
                Control::Watch(watcher) => late.push(watcher),
                Control::Unwatch(watcher) => {
                    watchers.remove(&watcher);
                    late.retain(|late| *late != watcher);
                }
                other => self.core().drop_control(other),
            }
        }
        // By age, not by hash: the same order in each run.
        let mut watchers: Vec<AnyActorRef> = watchers.into_iter().collect();
        watchers.sort_by_key(AnyActorRef::uid);
        Watchers { watchers, late }
    }

    /// Drops the extras of an actor that ends; returns the watchers.
    #[cold]
    fn drop_extras(&self, mut extras: Box<Extras<A::Message>>) -> HashSet<AnyActorRef> {
        for (_, control) in std::mem::take(&mut extras.positioned) {
            self.core().drop_control(control);
        }
        let watchers = std::mem::take(&mut extras.watchers);
        drop_guarded(extras);
        watchers
    }

    /// Leaves the parent's list, or tells the parent, if the parent wants to remove its children itself.
    fn leave_parent(&self, parent: &AnyActorRef, me: &AnyActorRef, watchers: &mut Vec<AnyActorRef>) {
        // The parent may have control of this actor's failure, which it judges while this is its child.
        let is_told = F::IS_FOSTERED || self.private(|private| private.failed);
        if !is_told && parent.core().children.leave(me).is_some() {
            return;
        }
        let told = if F::IS_FOSTERED { std::mem::take(watchers) } else { Vec::new() };
        let stopped = Control::ChildStopped { child: me.clone(), watchers: told.into() };
        // A parent outlives its children. If the parent takes no more control, this actor tells the watchers itself.
        match parent.send_system(stopped) {
            Err(Control::ChildStopped { watchers: own, .. }) if F::IS_FOSTERED => *watchers = own.into(),
            _ => {}
        }
    }
}

/// The actors that are told of an end.
#[derive(Default)]
struct Watchers {
    watchers: Vec<AnyActorRef>,
    /// These watchers asked when the actor had ended, as do those whose requests its system queue refuses from then on.
    late: Vec<AnyActorRef>,
}

impl Watchers {
    /// Tells all of them that `actor` has ended.
    fn tell(self, actor: &AnyActorRef) {
        if self.watchers.is_empty() && self.late.is_empty() {
            return;
        }
        for watcher in self.watchers {
            watcher.notify_terminated(actor.clone(), true);
        }
        for watcher in self.late {
            watcher.notify_terminated(actor.clone(), false);
        }
    }
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Tells the recipe the stage, if the actor still has a recipe. Most recipes do nothing here.
    pub(crate) fn reached(&mut self, stage: LifeStage) {
        self.with_recipe(|recipe, system| recipe.reached_stage(stage, system));
    }

    fn with_recipe(&mut self, act: impl FnOnce(&mut F, &SystemCore)) {
        let system = &self.cell.owned.local.core.system;
        self.cell.recipe.with_mut(|recipe| {
            // SAFETY: as in `make_state`; the recipe cannot come back to this actor from here, since the actor's token
            // is taken.
            if let Some(recipe) = unsafe { &mut *recipe } {
                act(recipe, system);
            }
        });
    }

    /// Lets a stand-in pass control on to the actor that it stands for. Returns control that is for the stand-in itself.
    pub(crate) fn pass_on(&mut self, control: Control) -> Option<Control> {
        let core = self.core();
        let stage = if core.standing().is_some_and(|standing| standing.end.get().is_some()) {
            StandInStage::Ended
        } else if core.parent.as_ref().is_some_and(|parent| parent.core().is_told_to_stop()) {
            StandInStage::ParentEnds
        } else {
            StandInStage::Living
        };
        let mut left = Some(control);
        self.with_recipe(|recipe, _| left = left.take().and_then(|control| recipe.pass_on(control, stage)));
        left
    }

    /// Tells a stand-in how many actors watch it.
    pub(crate) fn watchers_changed(&mut self) {
        let count = self.private(|private| private.extras.as_ref().map_or(0, |extras| extras.watchers.len()));
        self.with_recipe(|recipe, _| recipe.watched_by(count));
    }

    pub(crate) fn parent_hooks(&self) -> Option<StdArc<dyn ChildHooks>> {
        self.private(|private| private.extras.as_ref().and_then(|extras| extras.child_hooks.clone()))
    }
}
