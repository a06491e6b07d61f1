//! What a worker does with an actor: one turn.
//!
//! A turn runs with the actor's ownership token, so at most one worker is in an actor at any time
//! (invariant 3). It goes round these steps:
//!
//! 1. take the system lane: immediate control acts now, positioned control is put in its place;
//! 2. positioned control that the mailbox's head has reached acts;
//! 3. messages are handled, up to the dispatcher's throughput, as long as neither 1 nor 2 has work;
//! 4. nothing left: give the token back in the tail word. That fails if anything came meanwhile.
//!
//! Before each message the lane is looked at *between* seeing that the message is there and taking it, so
//! that control which its sender sent before the message also acts before it (invariant 5).
//!
//! User code is called in step 3 and from the control actions, each time under `catch_unwind`: a panic is a
//! failure of this actor, and nothing else.

use crate::actor::cell::{Cell, Control, Core, Header};
use crate::actor::context::{Context, Timers};
use crate::actor::{Actor, Done, IntoActor};
use crate::actor_ref::{ActorRef, AnyRef};
use crate::ledger::Row;
use crate::mailbox::{Drained, Owner, Position, Ready};
use crate::scheduler::{Ran, Task, Turn};
use crate::supervision::{Failure, RestartHistory};
use crate::sync::{HashMap, HashSet};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

/// How far an actor's life has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The state is not made yet.
    Unborn,
    /// Handles messages unless suspended.
    Alive,
    /// The old state waits for its children to end.
    Restarting,
    /// Waits for its children to end, then ends.
    Stopping,
    /// Has ended; what is left in the mailbox is being drained.
    Draining,
}

/// What only the holder of the ownership token touches.
pub struct Private<M> {
    pub phase: Phase,
    /// How many suspensions and failures are not undone.
    pub suspended: u32,
    /// Whether this actor has failed and waits for its parent's verdict.
    pub failed: bool,
    /// What most actors never need.
    pub extras: Option<Box<Extras<M>>>,
}

/// Owner-only state that is made when first needed.
pub struct Extras<M> {
    /// Positioned control that the head has not reached, by position; equal positions in order of arrival.
    pub positioned: VecDeque<(u64, Control)>,
    /// Who wants to know when this actor ends.
    pub watchers: HashSet<AnyRef>,
    /// Whom this actor watches, and the message to get instead of the hook.
    pub watching: HashMap<AnyRef, Option<M>>,
    pub timers: Timers<M>,
    /// Restarts of children that have failed.
    pub histories: HashMap<AnyRef, RestartHistory>,
    /// The failure that a restart in progress is about.
    pub restart: Option<Failure>,
    /// Control that waits until the restart in progress is over.
    pub deferred: Vec<Control>,
    /// Children that were told to stop by `stop_children`.
    pub stopping: HashSet<AnyRef>,
    /// The children whose failures this actor has escalated.
    pub culprits: Vec<AnyRef>,
    /// Where what is left in the mailbox goes instead of to dead letters.
    pub reroute: Option<ActorRef<M>>,
}

impl<M> Default for Extras<M> {
    fn default() -> Self {
        Self {
            positioned: VecDeque::new(),
            watchers: HashSet::default(),
            watching: HashMap::default(),
            timers: Timers::default(),
            histories: HashMap::default(),
            restart: None,
            deferred: Vec::new(),
            stopping: HashSet::default(),
            culprits: Vec::new(),
            reroute: None,
        }
    }
}

impl<M> Private<M> {
    pub fn new(suspended: u32) -> Self {
        Self { phase: Phase::Unborn, suspended, failed: false, extras: None }
    }

    pub fn extras(&mut self) -> &mut Extras<M> {
        self.extras.get_or_insert_default()
    }

    /// The head index at which the next positioned control acts.
    fn next_position(&self) -> u64 {
        self.extras
            .as_ref()
            .and_then(|extras| extras.positioned.front())
            .map_or(u64::MAX, |(position, _)| *position)
    }
}

/// A recipe: makes an actor's state, at its creation and at each restart.
pub trait Recipe<A: Actor>: Send + 'static {
    fn make(&mut self, ctx: &mut Context<A::Message>) -> Result<A, Failure>;
}

/// A recipe from a closure.
pub struct ByContext<F>(pub F);

impl<A: Actor, I: IntoActor<Actor = A>, F> Recipe<A> for ByContext<F>
where
    F: FnMut(&mut Context<A::Message>) -> I + Send + 'static,
{
    fn make(&mut self, ctx: &mut Context<A::Message>) -> Result<A, Failure> {
        (self.0)(ctx).into_actor()
    }
}

/// Runs user code; a panic becomes a failure.
pub fn guarded<R>(run: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| Err(caught(payload)))
}

/// The failure that a panic is.
fn caught(payload: Box<dyn Any + Send>) -> Failure {
    // In a model it is the model that has failed, and must not go on as if an actor had.
    if cfg!(pointsman_loom) {
        resume_unwind(payload);
    }
    Failure::panic(payload)
}

/// Drops a value of a user's type; a panic in its destructor goes no further.
pub fn drop_guarded<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(move || drop(value))) {
        // The payload's own destructor may panic too; what that throws is leaked, or there were no end.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
            std::mem::forget(payload);
        }
    }
}

/// The [`RunFn`](crate::scheduler::RunFn) of a `Cell<A, F>`.
///
/// # Safety
///
/// `task` is that of a living `Cell<A, F>`, and the caller hands over its ownership token.
pub unsafe fn run<A: Actor, F: Recipe<A>>(task: NonNull<Task>, turn: &Turn) -> Ran {
    let cell = task.cast::<Cell<A, F>>();
    // SAFETY: the task is the cell's first field and the cell is alive: its life's reference is given back
    // only at the very end of its last turn.
    let shared = unsafe { cell.as_ref() };
    let local = NonNull::from(&shared.local);
    let mut turn = ActorTurn {
        header: task.cast(),
        cell: shared,
        row: shared.local.core.system.ledger().mine(),
        ctx: Context::new(task.cast(), local),
        left: turn.throughput(),
    };
    turn.run()
}

/// Why the handling of messages paused.
enum Pause {
    /// The lane or positioned control has work.
    Control,
    /// The throughput is used up.
    Budget,
    Empty,
    /// The next message is claimed by its sender but not written yet.
    Busy,
    Failed(Failure),
}

/// What became of positioned control.
enum Acted {
    /// None is due.
    NothingDue,
    Once,
    /// Some is due, but the throughput is used up.
    Budget,
}

struct ActorTurn<'a, A: Actor, F> {
    header: NonNull<Header>,
    cell: &'a Cell<A, F>,
    row: &'a Row,
    ctx: Context<A::Message>,
    /// How many more messages this turn may handle.
    left: u32,
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    fn run(&mut self) -> Ran {
        // Before any control: who stops an actor right after its creation stops one that has started.
        if self.phase() == Phase::Unborn {
            self.create();
        }
        loop {
            self.take_lane();
            match self.phase() {
                Phase::Draining => match self.drain() {
                    Drained::Busy => return Ran::Busy,
                    _ => {
                        self.farewell();
                        return Ran::Idle;
                    }
                },
                Phase::Stopping | Phase::Restarting => {
                    if self.owner().try_suspend().is_ok() {
                        return Ran::Idle;
                    }
                    continue;
                }
                Phase::Unborn | Phase::Alive => {}
            }
            if self.private(|private| private.suspended > 0) {
                if self.owner().try_suspend().is_ok() {
                    return Ran::Idle;
                }
                continue;
            }
            match self.act_on_position() {
                Acted::NothingDue => {}
                Acted::Once => continue,
                Acted::Budget => return Ran::Requeue,
            }
            match self.handle_messages() {
                Pause::Control => {}
                Pause::Failed(failure) => self.fail(failure, None),
                Pause::Budget => return Ran::Requeue,
                Pause::Busy => return Ran::Busy,
                // The messages just handled may have been what positioned control waited for.
                Pause::Empty => match self.act_on_position() {
                    Acted::NothingDue if self.owner().try_idle().is_ok() => return Ran::Idle,
                    Acted::NothingDue | Acted::Once => {}
                    Acted::Budget => return Ran::Requeue,
                },
            }
        }
    }

    fn core(&self) -> &Core {
        &self.cell.local.core
    }

    /// The owner's view of the mailbox.
    fn owner(&self) -> Owner<'_, Header, Control, A::Message> {
        // SAFETY: this turn holds the ownership token; each view is used up before the next is made; the
        // mailbox is the cell's first field, and the pointer is valid for the whole cell.
        unsafe { Owner::from_raw(self.header.cast()) }
    }

    fn phase(&self) -> Phase {
        self.private(|private| private.phase)
    }

    /// Looks at or changes what only the owner touches. `act` runs no user code.
    fn private<R>(&self, act: impl FnOnce(&mut Private<A::Message>) -> R) -> R {
        // SAFETY: this turn holds the ownership token, and no reference from an earlier call is alive:
        // `act` runs nothing that calls back.
        self.cell.local.private.with_mut(|private| act(unsafe { &mut *private }))
    }

    /// Runs user code on the state. `None` if there is no state.
    fn with_actor<R>(
        &mut self,
        run: impl FnOnce(&mut A, &mut Context<A::Message>) -> Result<R, Failure>,
    ) -> Option<Result<R, Failure>> {
        let ctx = &mut self.ctx;
        self.cell.actor.with_mut(|actor| {
            // SAFETY: this turn holds the ownership token, and user code cannot reach the cell's state
            // but through the reference that it is given here.
            let actor = unsafe { &mut *actor };
            actor.as_mut().map(|actor| guarded(|| run(actor, ctx)))
        })
    }

    /// A reference to this actor.
    fn me(&self) -> AnyRef {
        // SAFETY: the header is alive: its life's reference is given back at the end of the last turn.
        unsafe { AnyRef::retain(self.header) }
    }

    // ---- messages

    /// Handles messages until something else has to be done first.
    fn handle_messages(&mut self) -> Pause {
        let due = self.private(|private| private.next_position());
        let Self { header, cell, row, ctx, left } = self;
        // SAFETY: as in `owner`, which would borrow all of `self`.
        let mut owner = unsafe { Owner::<Header, Control, A::Message>::from_raw(header.cast()) };
        let handling = AssertUnwindSafe(|| {
            cell.actor.with_mut(|actor| {
                // SAFETY: as in `with_actor`.
                let Some(actor) = (unsafe { &mut *actor }) else { return Pause::Empty };
                loop {
                    let front = match owner.ready() {
                        Ready::Message(front) => front,
                        Ready::Empty => return Pause::Empty,
                        Ready::Busy => return Pause::Busy,
                    };
                    if front.has_system() || front.index() >= due {
                        return Pause::Control;
                    }
                    if *left == 0 {
                        return Pause::Budget;
                    }
                    *left -= 1;
                    let message = front.take();
                    // Before the handler, so that whoever sees its effects sees it counted.
                    row.handled(1);
                    if let Err(failure) = actor.receive(message, ctx) {
                        return Pause::Failed(failure);
                    }
                }
            })
        });
        catch_unwind(handling).unwrap_or_else(|payload| Pause::Failed(caught(payload)))
    }

    /// Acts on the first positioned control if the head has reached it. It counts as a message: handlers of
    /// ticks take their time too, and others wait for this turn's end.
    fn act_on_position(&mut self) -> Acted {
        let next = self.private(|private| private.next_position());
        if next == u64::MAX {
            return Acted::NothingDue;
        }
        let mut owner = self.owner();
        // A ring tells how far it has come by the message that `ready` has shown.
        let _ = owner.ready();
        if !owner.has_reached(next) {
            return Acted::NothingDue;
        }
        if self.left == 0 {
            return Acted::Budget;
        }
        self.left -= 1;
        let due = self.private(|private| private.extras().positioned.pop_front());
        let Some((_, control)) = due else { return Acted::NothingDue };
        self.positioned(control);
        Acted::Once
    }

    // ---- the system lane

    fn take_lane(&mut self) {
        while self.owner().has_system() {
            let batch = self.owner().take_system();
            for (position, message) in batch {
                match position {
                    Position::At(position) => self.private(|private| {
                        let positioned = &mut private.extras().positioned;
                        let place = positioned.partition_point(|(other, _)| *other <= position);
                        positioned.insert(place, (position, message));
                    }),
                    Position::Immediate => self.immediate(message),
                }
            }
        }
    }

    fn immediate(&mut self, message: Control) {
        let phase = self.phase();
        let ending = matches!(phase, Phase::Stopping | Phase::Draining);
        match message {
            // While a restart waits for children, what could change its course waits too.
            Control::Suspend | Control::Resume { .. } | Control::Restart(_) | Control::ChildFailed { .. }
                if phase == Phase::Restarting =>
            {
                self.private(|private| private.extras().deferred.push(message));
            }
            Control::Suspend | Control::Resume { .. } | Control::Restart(_) | Control::ChildFailed { .. }
                if ending => {}
            Control::Suspend => self.suspend(None),
            Control::Resume { judged } => self.resume(judged),
            Control::Restart(failure) => self.begin_restart(failure),
            Control::ChildFailed { child, failure } => self.judge(child, failure),
            Control::Stop => self.begin_stop(),
            Control::ChildStopped(child) => self.child_stopped(&child),
            Control::Watch(watcher) => {
                self.private(|private| private.extras().watchers.insert(watcher));
            }
            Control::Adopt(actor) => {
                self.ctx.watch(&actor);
            }
            Control::Unwatch(watcher) => self.private(|private| {
                if let Some(extras) = &mut private.extras {
                    extras.watchers.remove(&watcher);
                }
            }),
            // Always sent with a position; without one they act where they stand.
            positioned => self.positioned(positioned),
        }
    }

    fn positioned(&mut self, control: Control) {
        match control {
            Control::PoisonPill => self.begin_stop(),
            Control::Kill => self.fail(Failure::killed(), None),
            // A child that ended just before it was watched; `child_stopped` tells of it, when its name is
            // free.
            Control::Terminated(notice) if self.core().children.contains(&notice.actor) => {}
            Control::Terminated(notice) => {
                let expected =
                    self.private(|private| private.extras.as_mut()?.watching.remove(&notice.actor));
                match expected {
                    // Unwatched meanwhile, or not ours.
                    None => {}
                    Some(None) => self.call(|actor, ctx| actor.terminated(notice, ctx)),
                    Some(Some(message)) => self.call(|actor, ctx| actor.receive(message, ctx)),
                }
            }
            Control::Tick(number) => match self.ctx.fired(number) {
                Ok(Some(message)) => {
                    self.row.ticked(1);
                    self.call(|actor, ctx| actor.receive(message, ctx));
                }
                Ok(None) => {}
                Err(failure) => self.fail(failure, None),
            },
            Control::Drain(router) => {
                if let Ok(router) = router.downcast::<ActorRef<A::Message>>() {
                    self.private(|private| private.extras().reroute = Some(*router));
                }
                self.begin_stop();
            }
            other => self.immediate(other),
        }
    }

    /// Runs a hook or handler; its failure is the actor's.
    fn call(&mut self, run: impl FnOnce(&mut A, &mut Context<A::Message>) -> Done) {
        if let Some(Err(failure)) = self.with_actor(run) {
            self.fail(failure, None);
        }
    }

    // ---- life

    fn create(&mut self) {
        let suspended = self.private(|private| {
            private.phase = Phase::Alive;
            private.suspended
        });
        if suspended > 0 {
            self.owner().set_suspended(true);
        }
        let made = self.make_state().and_then(|()| match self.with_actor(|actor, ctx| actor.started(ctx)) {
            Some(outcome) => outcome,
            None => Ok(()),
        });
        if let Err(failure) = made {
            self.drop_state();
            self.fail(failure.during_initialization(), None);
        }
    }

    fn make_state(&mut self) -> Result<(), Failure> {
        let ctx = &mut self.ctx;
        let made = self.cell.recipe.with_mut(|recipe| {
            // SAFETY: this turn holds the ownership token, and nothing else reaches the recipe.
            let recipe = unsafe { &mut *recipe };
            let recipe = recipe.as_mut().expect("an actor that has not ended has its recipe");
            guarded(|| recipe.make(ctx))
        })?;
        self.cell.actor.with_mut(|actor| {
            // SAFETY: as in `with_actor`; the place is empty, so nothing of the user's is dropped here.
            unsafe { *actor = Some(made) };
        });
        Ok(())
    }

    fn drop_state(&mut self) {
        let state = self.cell.actor.with_mut(|actor| {
            // SAFETY: as in `with_actor`.
            unsafe { (*actor).take() }
        });
        drop_guarded(state);
    }

    fn drop_recipe(&mut self) {
        let recipe = self.cell.recipe.with_mut(|recipe| {
            // SAFETY: as in `make_state`.
            unsafe { (*recipe).take() }
        });
        drop_guarded(recipe);
    }

    /// This actor has failed: it and its children pause until the parent has judged. `culprit` is the child
    /// whose failure is passed on.
    fn fail(&mut self, failure: Failure, culprit: Option<AnyRef>) {
        let again = self.private(|private| std::mem::replace(&mut private.failed, true));
        if again || matches!(self.phase(), Phase::Stopping | Phase::Draining) {
            return;
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

    /// Counts one suspension, for the children too, except the one that caused it.
    fn suspend(&mut self, except: Option<&AnyRef>) {
        let suspended = self.private(|private| {
            private.suspended += 1;
            private.suspended
        });
        self.owner().set_suspended(true);
        for child in self.core().children.set_suspended(suspended) {
            if Some(&child) != except {
                let _ = child.send_system(Control::Suspend);
            }
        }
    }

    fn resume(&mut self, judged: bool) {
        // A state that was never made cannot go on: the verdict makes it anew.
        let stateless = self.with_actor(|_, _| Ok(())).is_none();
        if judged && stateless {
            self.begin_restart(Failure::msg("resumed without a state"));
            return;
        }
        let culprits = self.end_suspension(judged);
        let suspended = self.private(|private| private.suspended);
        for child in self.core().children.set_suspended(suspended) {
            let judged = culprits.contains(&child);
            let _ = child.send_system(Control::Resume { judged });
        }
    }

    /// Undoes one suspension; returns the children whose failures had been passed on.
    fn end_suspension(&mut self, judged: bool) -> Vec<AnyRef> {
        let (suspended, culprits) = self.private(|private| {
            private.suspended = private.suspended.saturating_sub(1);
            let culprits = if judged {
                private.failed = false;
                private.extras.as_mut().map(|extras| std::mem::take(&mut extras.culprits))
            } else {
                None
            };
            (private.suspended, culprits.unwrap_or_default())
        });
        self.owner().set_suspended(suspended > 0);
        culprits
    }

    fn begin_restart(&mut self, failure: Failure) {
        self.ctx.cancel_all_timers();
        let stateless = self.with_actor(|_, _| Ok(())).is_none();
        if stateless {
            self.ctx.stop_children();
        } else {
            // By contract an error or panic of this hook changes nothing.
            let _ = self.with_actor(|actor, ctx| actor.restarting(&failure, ctx));
        }
        let waits = self.private(|private| {
            private.phase = Phase::Restarting;
            let extras = private.extras();
            extras.restart = Some(failure);
            !extras.stopping.is_empty()
        });
        if !waits {
            self.finish_restart();
        }
    }

    fn finish_restart(&mut self) {
        let failure = self.private(|private| {
            private.phase = Phase::Alive;
            private.extras().restart.take()
        });
        let failure = failure.unwrap_or_else(|| Failure::msg("restarted"));
        let stateless = self.with_actor(|_, _| Ok(())).is_none();
        // Those that `restarting` has set: what they say was meant for the old state.
        self.ctx.cancel_all_timers();
        self.drop_state();
        self.end_suspension(true);
        let suspended = self.private(|private| private.suspended);
        let kept = self.core().children.set_suspended(suspended);
        let made =
            self.make_state().and_then(|()| {
                let hook = self.with_actor(|actor, ctx| {
                    if stateless { actor.started(ctx) } else { actor.restarted(&failure, ctx) }
                });
                hook.unwrap_or(Ok(()))
            });
        if let Err(failure) = made {
            self.drop_state();
            self.fail(failure.during_initialization(), None);
        }
        if !kept.is_empty() {
            // The cause's text is made by user code.
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

    /// A child has failed: decide.
    fn judge(&mut self, child: AnyRef, failure: Failure) {
        if !self.core().children.contains(&child) {
            return;
        }
        let now = self.core().system.now();
        let mut history =
            self.private(|private| private.extras().histories.get(&child).copied().unwrap_or_default());
        let own = child.core().on_failure.as_deref();
        let verdict = match own {
            Some(strategy) => guarded(|| Ok(strategy.judge(&failure, &mut history, now))),
            None => self
                .with_actor(|actor, _| Ok(actor.supervision().judge(&failure, &mut history, now)))
                .unwrap_or(Ok(crate::supervision::Directive::Stop)),
        };
        self.private(|private| private.extras().histories.insert(child.clone(), history));
        use crate::supervision::Directive;
        let sent = match verdict {
            Ok(Directive::Resume) => child.send_system(Control::Resume { judged: true }),
            Ok(Directive::Restart) => child.send_system(Control::Restart(failure)),
            Ok(Directive::Stop) => child.send_system(Control::Stop),
            Ok(Directive::Escalate) if self.private(|private| private.failed) => {
                // This actor waits for a verdict already, which will be this child's too. Its failure has
                // suspended the child once more than an escalation does: undo that.
                let sent = child.send_system(Control::Resume { judged: false });
                self.private(|private| private.extras().culprits.push(child));
                sent
            }
            Ok(Directive::Escalate) => {
                self.fail(failure, Some(child));
                Ok(())
            }
            Err(own) => {
                // The decider itself has failed; the child still needs a verdict, and it has none.
                let sent = child.send_system(Control::Stop);
                self.fail(own, None);
                sent
            }
        };
        // A child that has ended meanwhile needs no verdict.
        drop(sent);
    }

    fn child_stopped(&mut self, child: &AnyRef) {
        let Some(child) = self.core().children.remove(child) else { return };
        let position = self.owner().gate().position();
        let restarting = self.private(|private| {
            let Some(extras) = &mut private.extras else { return false };
            extras.histories.remove(&child);
            let waited_for = extras.stopping.remove(&child);
            if extras.watching.contains_key(&child) {
                // The name is free by the time the notice is seen.
                let notice = crate::actor::Terminated { actor: child.clone() };
                extras.positioned.push_back((position, Control::Terminated(notice)));
            }
            private.phase == Phase::Restarting && waited_for && extras.stopping.is_empty()
        });
        if restarting {
            self.finish_restart();
        }
        if self.phase() == Phase::Stopping && self.core().children.is_empty() {
            self.finish_stop();
        }
    }

    fn begin_stop(&mut self) {
        if matches!(self.phase(), Phase::Stopping | Phase::Draining) {
            return;
        }
        self.private(|private| private.phase = Phase::Stopping);
        self.ctx.cancel_all_timers();
        self.ctx.unwatch_all();
        let children = &self.core().children;
        children.close();
        let all = children.all();
        for child in &all {
            let _ = child.send_system(Control::Stop);
        }
        // Not `children.is_empty()` again: one may have ended between, and its notice will come.
        if all.is_empty() {
            self.finish_stop();
        }
    }

    fn finish_stop(&mut self) {
        // A state that has been through `restarting` is retired already: `stopped` runs once.
        let retired =
            self.private(|private| private.extras.as_ref().is_some_and(|extras| extras.restart.is_some()));
        if !retired {
            let _ = self.with_actor(|actor, ctx| {
                actor.stopped(ctx);
                Ok(())
            });
        }
        // What `stopped` has begun.
        self.ctx.cancel_all_timers();
        self.ctx.unwatch_all();
        self.drop_state();
        self.drop_recipe();
        self.obey_waiting_drain();
        self.owner().close();
        self.private(|private| private.phase = Phase::Draining);
    }

    /// A drain that this actor did not get to, because it was suspended or stopped, still says where its
    /// messages go.
    fn obey_waiting_drain(&mut self) {
        let waiting = self.private(|private| {
            private.extras.as_mut().map(|extras| std::mem::take(&mut extras.positioned)).unwrap_or_default()
        });
        for (_, control) in waiting {
            if let Control::Drain(router) = control {
                if let Ok(router) = router.downcast::<ActorRef<A::Message>>() {
                    self.private(|private| private.extras().reroute = Some(*router));
                }
            }
        }
    }

    /// Empties the closed mailbox: into the router that it is leaving, or into dead letters.
    fn drain(&mut self) -> Drained<A::Message> {
        loop {
            let message = match self.owner().drain_next() {
                Drained::Message(message) => message,
                done_or_busy => return done_or_busy,
            };
            let reroute =
                self.private(|private| private.extras.as_ref().and_then(|extras| extras.reroute.clone()));
            let left = match reroute {
                Some(router) => match guarded(|| Ok(router.pass_on(message))) {
                    Ok(Ok(_)) => continue,
                    Ok(Err(refused)) => refused.into_inner(),
                    // User code in the router's logic panicked and took the message with it: it was
                    // counted there.
                    Err(_) => continue,
                },
                None => message,
            };
            self.core().system.dead_letter::<A::Message>(self.row, &self.me());
            drop_guarded(left);
        }
    }

    /// The last things: refuse control from now on, tell parent and watchers, and let go of the memory.
    fn farewell(&mut self) {
        let me = self.me();
        let mut extras = self.private(|private| private.extras.take());
        let mut watchers =
            extras.as_mut().map(|extras| std::mem::take(&mut extras.watchers)).unwrap_or_default();
        drop_guarded(extras);
        let rest = self.owner().close_lane();
        for (_, message) in rest {
            if let Control::Watch(watcher) = message {
                watchers.insert(watcher);
            }
        }
        let core = self.core();
        let system = core.system.clone();
        // Whoever is told below finds it counted.
        system.actor_ended();
        if let Some(parent) = &core.parent {
            let _ = parent.send_system(Control::ChildStopped(me.clone()));
        }
        // By age, not by hash: the same order in each run.
        let mut watchers: Vec<AnyRef> = watchers.into_iter().collect();
        watchers.sort_by_key(AnyRef::uid);
        for watcher in watchers {
            watcher.notify_terminated(me.clone());
        }
        if let Some(home) = &core.own_home {
            home.release();
        }
        drop(me);
        if core.parent.is_none() {
            system.tree_ended();
        }
        // SAFETY: this is the life's own reference, given back once: the phase lets no turn follow, since a
        // closed mailbox and a closed lane wake nobody. `self` is not used for the cell after this.
        unsafe { Header::release(self.header) };
    }
}
