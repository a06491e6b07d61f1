//! The turn: a worker runs an actor once.
//!
//! A turn runs with the actor's ownership token, so at most one worker is in an actor at any time
//! (invariant 3). It goes round these steps:
//!
//! 1. take the system queue: immediate control acts now, positioned control is put in its place;
//! 2. messages that were unstashed are handled, then positioned control that the mailbox's head has reached acts;
//! 3. messages are handled, up to the dispatcher's throughput, as long as neither 1 nor 2 has work;
//! 4. an actor that shares a queue with others handles messages from there (`shared_queue_turn.rs`), and goes round again;
//! 5. nothing left: give the token back in the mailbox's word. That fails if anything came meanwhile.
//!
//! Before each message the turn looks at the system queue *between* seeing that the message is there and taking it. So
//! control that the sender sent before the message also acts before it (invariant 5).
//!
//! The effects of control on the actor's life are in `lifecycle.rs`.
//!
//! User code (the recipe, handlers, hooks) is called at the actor's creation, which comes before step 1, for each
//! message in steps 2 to 4, and from the control actions. Each call runs under `catch_unwind`: a panic is a failure of
//! this actor alone.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::cell::Cell;
use crate::actor::context::Context;
use crate::actor::private::{Phase, Private};
use crate::actor::recipe::Recipe;
use crate::actor::skip_unwanted::TakenFrom;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::{ActorCore, Header};
use crate::core::control::Control;
use crate::core::ledger::ThreadCounters;
use crate::failure::{Failure, caught, guarded};
use crate::mailbox::mailbox::{DrainStep, Owner, Ready};
use crate::mailbox::system_queue::Position;
use crate::scheduler::current;
use crate::scheduler::task::{Ran, Task, Turn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// The [`RunFn`](crate::scheduler::task::RunFn) of a `Cell<A, F>`.
///
/// # Safety
///
/// `task` is that of a living `Cell<A, F>`, and the caller hands over its ownership token.
pub(crate) unsafe fn run<A: Actor, F: Recipe<A>>(task: NonNull<Task>, turn: &Turn) -> Ran {
    let cell = task.cast::<Cell<A, F>>();
    // SAFETY: the task is the cell's first field and the cell is alive: its life's reference is given back only at the
    // very end of its last turn.
    let shared = unsafe { cell.as_ref() };
    let owned = NonNull::from(&shared.owned);
    let mut turn = ActorTurn {
        header: task.cast(),
        cell: shared,
        row: shared.owned.local.core.system.ledger().for_this_thread(),
        ctx: Context::new(task.cast(), owned),
        turn,
        left: turn.throughput(),
        shares: false,
        owes: false,
        skips: false,
    };
    turn.begin_sharing();
    // SAFETY: the caller has handed over the token. The turn gives it up, or its life's reference (in `finish`, which
    // calls `leave` itself), as its last step.
    unsafe { crate::thread_context::sender::enter(&shared.owned.cursors) };
    let ran = turn.run();
    crate::thread_context::sender::leave();
    ran
}

/// The reason why the handling of messages paused.
enum TurnPause {
    /// The system queue or positioned control has work.
    Control,
    /// The throughput is used up.
    Budget,
    Empty,
    /// The next message is claimed by its sender but not written yet.
    Busy,
    Failed(Failure),
}

/// The outcome of a step that goes before the mailbox's messages.
pub(crate) enum StepOutcome {
    /// No step is due.
    NothingDue,
    Once,
    /// A step is due, but the throughput is used up.
    Budget,
}

pub(crate) struct ActorTurn<'a, A: Actor, F> {
    pub header: NonNull<Header>,
    pub cell: &'a Cell<A, F>,
    pub row: &'a ThreadCounters,
    pub ctx: Context<A::Message>,
    pub(super) turn: &'a Turn,
    /// The number of messages that this turn may still handle.
    pub(super) left: u32,
    /// Whether the actor shares a queue with others; `shared_queue_turn.rs` has the steps of such an actor.
    pub shares: bool,
    /// Whether a sender has woken this actor for a message in that queue, and the actor has not answered yet.
    pub owes: bool,
    /// Whether an actor that shares a queue skips unwanted messages from there.
    pub skips: bool,
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    fn run(&mut self) -> Ran {
        // Before any control: an actor that is stopped right after its creation has started by then.
        if self.phase() == Phase::Unborn {
            self.row.worked(1);
            self.create();
        }
        loop {
            self.take_system_queue();
            match self.phase() {
                Phase::Draining => match self.drain() {
                    DrainStep::Busy => return Ran::Busy,
                    _ => {
                        self.finish();
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
            if self.private(|private| private.pause.is_any()) {
                match self.poll_hold() {
                    StepOutcome::NothingDue => {}
                    StepOutcome::Once => continue,
                    StepOutcome::Budget => return self.requeue(),
                }
                if self.owner().try_suspend().is_ok() {
                    return Ran::Idle;
                }
                continue;
            }
            if self.owes {
                match self.answer_by_taking() {
                    StepOutcome::NothingDue => {}
                    StepOutcome::Once => continue,
                    StepOutcome::Budget => return self.requeue(),
                }
            }
            match self.handle_unstashed() {
                StepOutcome::NothingDue => {}
                StepOutcome::Once => continue,
                StepOutcome::Budget => return self.requeue(),
            }
            match self.act_on_position() {
                StepOutcome::NothingDue => {}
                StepOutcome::Once => continue,
                StepOutcome::Budget => return self.requeue(),
            }
            match self.handle_messages() {
                TurnPause::Control => self.end_of_messages(),
                TurnPause::Failed(failure) => {
                    self.end_of_messages();
                    self.fail(failure, None);
                }
                TurnPause::Budget => return self.requeue(),
                TurnPause::Busy if self.gather() => {}
                TurnPause::Busy => return Ran::Busy,
                // A wakeup or a stop goes before control that waited for the messages just handled.
                TurnPause::Empty if self.owner().has_system() => self.end_of_messages(),
                TurnPause::Empty => match self.act_on_position() {
                    StepOutcome::NothingDue if self.shares => match self.share() {
                        StepOutcome::NothingDue if self.try_idle_sharing() => return Ran::Idle,
                        StepOutcome::NothingDue | StepOutcome::Once => {}
                        StepOutcome::Budget => return self.requeue(),
                    },
                    StepOutcome::NothingDue if self.gather() => {}
                    StepOutcome::NothingDue if self.owner().try_idle().is_ok() => return Ran::Idle,
                    StepOutcome::NothingDue | StepOutcome::Once => {}
                    StepOutcome::Budget => return self.requeue(),
                },
            }
        }
    }

    /// Waits a moment if this actor has caught up with a stream of messages and its worker has nothing else to do.
    /// Returns whether it has waited: there may be more messages now.
    #[inline(always)]
    fn gather(&self) -> bool {
        let handled = self.row.handled_so_far();
        if !self.turn.gather.is_due(handled) {
            return false;
        }
        self.end_of_messages();
        current::has_no_other_task() && self.turn.gather.wait(handled)
    }

    /// Ends the measurement of a message, if this turn is measured: the turn does something else now.
    #[inline]
    pub(super) fn end_of_messages(&self) {
        // SAFETY: this turn runs the actor.
        unsafe { self.turn.end_of_messages(self.header) };
    }

    /// Ends a turn whose throughput is used up: other tasks go first.
    fn requeue(&mut self) -> Ran {
        self.end_of_messages();
        if self.shares {
            self.end_shared_turn();
        }
        Ran::Requeue
    }

    pub(crate) fn core(&self) -> &ActorCore {
        &self.cell.owned.local.core
    }

    /// Returns the owner's view of the mailbox.
    pub(crate) fn owner(&self) -> Owner<'_, Header, Control, A::Message> {
        // SAFETY: this turn holds the ownership token; each view is used up before the next is made; the
        // mailbox is the cell's first field, and the pointer is valid for the whole cell.
        unsafe { Owner::from_raw(self.header.cast()) }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.private(|private| private.phase)
    }

    /// Reads or changes the data that only the owner touches. `act` runs no user code.
    pub(crate) fn private<R>(&self, act: impl FnOnce(&mut Private<A::Message>) -> R) -> R {
        // SAFETY: this turn holds the ownership token, and no reference from an earlier call is alive:
        // `act` runs nothing that calls back.
        self.cell.owned.private.with_mut(|private| act(unsafe { &mut *private }))
    }

    /// Runs user code on the state. `None` if there is no state.
    pub(crate) fn with_actor<R>(
        &mut self,
        run: impl FnOnce(&mut A, &mut Context<A::Message>) -> Result<R, Failure>,
    ) -> Option<Result<R, Failure>> {
        let ctx = &mut self.ctx;
        self.cell.actor.with_mut(|actor| {
            // SAFETY: this turn holds the ownership token, and user code reaches the cell's state only through the
            // reference that it is given here.
            let actor = unsafe { &mut *actor };
            actor.as_mut().map(|actor| guarded(|| run(actor, ctx)))
        })
    }

    /// A reference to this actor.
    pub(crate) fn me(&self) -> AnyActorRef {
        // SAFETY: the header is alive: its life's reference is given back at the end of the last turn.
        unsafe { AnyActorRef::retain(self.header) }
    }

    // ---- messages

    /// Handles messages until other work has to be done first.
    fn handle_messages(&mut self) -> TurnPause {
        let (due, one_by_one) = self.private(|private| (private.next_position(), private.looks_at_each()));
        if one_by_one {
            return self.handle_one(due);
        }
        let Self { header, cell, row, ctx, turn, left, .. } = self;
        let header = *header;
        // SAFETY: as in `owner`, which would borrow all of `self`.
        let mut owner = unsafe { Owner::<Header, Control, A::Message>::from_raw(header.cast()) };
        let handling = AssertUnwindSafe(|| {
            cell.actor.with_mut(|actor| {
                // SAFETY: as in `with_actor`.
                let Some(actor) = (unsafe { &mut *actor }) else { return TurnPause::Empty };
                loop {
                    let front = match owner.ready() {
                        Ready::Message(front) => front,
                        Ready::Empty => return TurnPause::Empty,
                        Ready::Busy => return TurnPause::Busy,
                        Ready::Panicked(payload) => return TurnPause::Failed(caught(payload)),
                    };
                    if front.has_system() || front.index() >= due {
                        return TurnPause::Control;
                    }
                    // SAFETY: this turn runs the actor.
                    if *left == 0 || unsafe { turn.should_yield(header) } {
                        return TurnPause::Budget;
                    }
                    *left -= 1;
                    let message = front.take();
                    // Before the handler, so an actor that sees the handler's effects finds the message counted.
                    row.handled(1);
                    if let Err(failure) = actor.receive(message, ctx) {
                        return TurnPause::Failed(failure);
                    }
                }
            })
        });
        catch_unwind(handling).unwrap_or_else(|payload| TurnPause::Failed(caught(payload)))
    }

    /// Handles one message at a time, as [`handle_messages`](Self::handle_messages) does, for an actor with a receive
    /// timeout or an actor that skips unwanted messages.
    fn handle_one(&mut self, due: u64) -> TurnPause {
        let message = {
            let mut owner = self.owner();
            let front = match owner.ready() {
                Ready::Message(front) => front,
                Ready::Empty => return TurnPause::Empty,
                Ready::Busy => return TurnPause::Busy,
                Ready::Panicked(payload) => return TurnPause::Failed(caught(payload)),
            };
            if front.has_system() || front.index() >= due {
                return TurnPause::Control;
            }
            // SAFETY: this turn runs the actor.
            if self.left == 0 || unsafe { self.turn.should_yield(self.header) } {
                return TurnPause::Budget;
            }
            front.take()
        };
        self.left -= 1;
        let outcome =
            self.unless_unwanted(message, TakenFrom::Mailbox).map_or(Ok(()), |message| self.receive(message));
        match outcome {
            Ok(()) => TurnPause::Control,
            Err(failure) => TurnPause::Failed(failure),
        }
    }

    /// Takes the share of one message from this turn's throughput; returns false if it is used up.
    pub(crate) fn use_budget(&mut self) -> bool {
        // SAFETY: this turn runs the actor.
        if self.left == 0 || unsafe { self.turn.should_yield(self.header) } {
            return false;
        }
        self.left -= 1;
        true
    }

    /// Gives back the share of a message that was not there.
    pub(crate) fn return_budget(&mut self) {
        self.left += 1;
    }

    /// Acts on the first positioned control if the head has reached it. This counts as a message: handlers of ticks
    /// take their time too, and other tasks wait for this turn's end.
    #[inline]
    fn act_on_position(&mut self) -> StepOutcome {
        match self.private(|private| private.next_position()) {
            u64::MAX => StepOutcome::NothingDue,
            next => self.act_if_reached(next),
        }
    }

    /// Acts at the position `next` of `next_position`, if the head has reached it.
    #[inline(never)]
    fn act_if_reached(&mut self, next: u64) -> StepOutcome {
        let mut owner = self.owner();
        // A displacing mailbox has advanced its head to the message that `ready` has found.
        if let Ready::Panicked(payload) = owner.ready() {
            self.fail(caught(payload), None);
            return StepOutcome::Once;
        }
        if !owner.has_reached(next) {
            return StepOutcome::NothingDue;
        }
        if !self.use_budget() {
            return StepOutcome::Budget;
        }
        let due = self.private(|private| private.extras().positioned.pop_front());
        let Some((_, control)) = due else { return StepOutcome::NothingDue };
        self.row.worked(1);
        if control.is_notice() {
            self.core().uncount_notice();
        }
        self.positioned(control);
        StepOutcome::Once
    }

    // ---- the system queue

    #[inline]
    pub(crate) fn take_system_queue(&mut self) {
        if self.owner().has_system() {
            self.take_queued_control();
        }
    }

    #[inline(never)]
    fn take_queued_control(&mut self) {
        while self.owner().has_system() {
            if self.owes {
                self.answer();
            }
            let batch = self.owner().take_system();
            for (position, message) in batch {
                // Before the control acts, so an actor that sees its effects finds it counted.
                self.row.worked(1);
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

    pub(crate) fn immediate(&mut self, message: Control) {
        let message = match F::IS_STAND_IN {
            true => match self.pass_on(message) {
                Some(message) => message,
                None => return,
            },
            false => message,
        };
        let phase = self.phase();
        let ending = matches!(phase, Phase::Stopping | Phase::Draining);
        match message {
            // While a restart waits for children, control that could change its course waits too.
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
            Control::Retire => self.passivate(),
            Control::ChildStopped { child, watchers } => self.child_stopped(&child, &watchers),
            Control::Watch(watcher) => {
                self.private(|private| private.extras().watchers.insert(watcher));
                if F::IS_STAND_IN {
                    self.watchers_changed();
                }
            }
            // An actor that is watched already needs no further step.
            Control::Adopt(actor) => drop(self.ctx.watch(&actor)),
            Control::Unwatch(watcher) => {
                self.private(|private| {
                    if let Some(extras) = &mut private.extras {
                        extras.watchers.remove(&watcher);
                    }
                });
                if F::IS_STAND_IN {
                    self.watchers_changed();
                }
            }
            // The next round of this turn finds the work.
            Control::Wakeup => {}
            // Always sent with a position; without a position it acts at once.
            positioned => self.positioned(positioned),
        }
    }

    fn positioned(&mut self, control: Control) {
        match control {
            Control::PoisonPill | Control::Kill if F::IS_STAND_IN => {
                if let Some(control) = self.pass_on(control) {
                    self.immediate(control);
                }
            }
            Control::PoisonPill => self.begin_stop(),
            Control::Kill => self.fail(Failure::killed(), None),
            // A child that ended just before it was watched; `child_stopped` gives the notice, when the child's name is
            // free.
            Control::Terminated(notice) if self.core().children.contains(&notice.actor) => {}
            Control::Terminated(notice) => {
                let expected =
                    self.private(|private| private.extras.as_mut()?.watching.remove(&notice.actor));
                match expected {
                    // Unwatched meanwhile, or not watched by this actor.
                    None => {}
                    Some(None) => self.notify(notice),
                    Some(Some(message)) => self.deliver(message),
                }
            }
            Control::Tick(number) => match self.ctx.fired(number) {
                Ok(Some(message)) => {
                    self.row.ticked(1);
                    self.deliver(message);
                }
                Ok(None) => {}
                Err(failure) => self.fail(failure, None),
            },
            Control::Poll(number) => self.poll_task(number),
            Control::Leave { leave, leaving } => self.leave(leave, leaving),
            Control::HasLeft => self.end_leaving(),
            Control::Identify(inquiry) => inquiry.answer(self.me()),
            Control::Apply(act) => {
                if let Ok(act) = act.downcast::<Box<Act<A>>>() {
                    self.call(*act);
                }
            }
            other => self.immediate(other),
        }
    }

    /// Runs a hook or handler; its failure is the actor's.
    pub(crate) fn call(&mut self, run: impl FnOnce(&mut A, &mut Context<A::Message>) -> HandlerResult) {
        if let Some(Err(failure)) = self.with_actor(run) {
            self.fail(failure, None);
        }
    }
}

/// Makes positioned control that runs `act` on the state of an actor of type `A`; on an actor of another type it does
/// nothing.
pub(crate) fn apply<A: Actor>(
    act: impl FnOnce(&mut A, &mut Context<A::Message>) -> HandlerResult + Send + 'static,
) -> Control {
    let act: Box<Act<A>> = Box::new(act);
    Control::Apply(Box::new(act))
}

/// The function that [`Control::Apply`] runs.
pub(crate) type Act<A> =
    dyn FnOnce(&mut A, &mut Context<<A as crate::actor::actor::Actor>::Message>) -> HandlerResult + Send;
