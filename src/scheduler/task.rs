//! A task is the type-erased form of an actor that the scheduler runs, together with the one token that allows its
//! holder to run it.
//!
//! 1. A task has exactly one ownership token. The token lies either in the task itself (an idle actor) or in one
//!    [`TaskRef`], and a `TaskRef` is never copied. So a task sits in at most one queue, at most one thread writes its
//!    link, and at most one thread runs it.
//! 2. The maker of the task keeps its memory alive while a `TaskRef` exists.
//! 3. [`Ran::Idle`] says that the token went back into the task. From that instant another thread may schedule, run and
//!    free the task, so the runner touches the task no more.

use crate::measure::flight::{FlightEventKind, is_recording};
use crate::measure::meter::{Measured, is_on};
use crate::measure::pulse::Pulse;
use crate::scheduler::gather::Gather;
use crate::sync::atomic::{AtomicPtr, Ordering};
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};

/// The number of messages that a turn may handle beside a filled LIFO slot before the length of the turn matters.
const LOOKS: u32 = 8;

/// A turn that takes longer than this beside a filled LIFO slot ends early: much longer than a switch of actors, and
/// than a full turn of handlers that only compute and send.
const STALL_LIMIT: Duration = Duration::from_micros(100);

/// The turns between two looks at the switch of the measurements, while nothing is measured.
const TURNS_UNMEASURED: u64 = 64;

/// Runs one turn of a task.
///
/// # Safety
///
/// * The pointer is the one that the [`TaskRef`] was made of, with its provenance.
/// * The caller holds the task's token and gives it up to the call; the answer says who holds the token then.
pub(crate) type RunFn = unsafe fn(NonNull<Task>, &Turn) -> Ran;

/// The head of each value that can be scheduled; an actor's cell begins with it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Task {
    /// The link of the injector's list. Only the holder of the token writes and reads it, through the queue that handed
    /// the token over. The link is atomic because the list is built by compare-exchange.
    next: AtomicPtr<Task>,
    /// Only the holder of the token writes and reads it.
    run: Cell<RunFn>,
}

// SAFETY: `next` is an atomic, and only the holder of the token touches `run`; whatever hands the token over orders it.
unsafe impl Sync for Task {}

/// The end of a turn, and the holder of the token then.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[must_use = "the token must go where the turn says"]
pub(crate) enum Ran {
    /// The token went back into the task, which must not be touched again.
    Idle,
    /// The budget is used up, or the turn was asked to [yield](Turn::should_yield). The runner still has the token and
    /// queues the task behind its peers.
    Requeue,
    /// The task cannot go on until a sender finishes its half-finished send. The runner still has the token.
    Busy,
}

/// The limits of a turn, as far as its task may know them.
///
/// A `Turn` belongs to the thread that runs turns, which uses it for one turn after the other.
#[derive(Debug)]
pub(crate) struct Turn {
    throughput: u32,
    /// How long a turn may go on handling messages.
    deadline: Option<Duration>,
    /// The time of the first message of the running turn; read only for a deadline.
    first_look: Cell<Option<Instant>>,
    patience: Duration,
    /// Whether anything happens at a look before a message: a deadline or a task in the slot may end the turn, and a
    /// message may be measured. All share this flag, so a turn without any pays for one look.
    watched: Cell<bool>,
    /// Whether a task waits in the worker's LIFO slot for this turn to end; no other worker can steal that task.
    slot_waits: Cell<bool>,
    /// Whether `watched` holds while the slot is empty.
    watched_anyway: Cell<bool>,
    /// Looks since the slot was filled last.
    looks: Cell<u32>,
    /// The time at which half of [`LOOKS`] were done.
    began: Cell<Option<Instant>>,
    /// Whether a turn that has caught up with a stream waits for more.
    pub(crate) gather: Gather,
    /// The number of turns after which the thread looks up from them: as below, or sooner.
    look_at: Cell<u64>,
    /// The number of turns after which one is measured, or after which the thread looks at the switch next.
    measured_at: Cell<u64>,
    /// Whether the next messages are measured.
    measures: Cell<bool>,
    /// The reasons for which a task that the turn schedules does not just go into the slot. A turn that is measured is
    /// one; the worker counts the others.
    detours: Cell<u32>,
    /// When the handler that is being measured began, in nanoseconds; 0: none is.
    handler_began: Cell<u64>,
}

/// A scheduled task: the task's address together with its token.
#[derive(Debug)]
#[repr(transparent)]
#[must_use = "a dropped token leaves its task unscheduled for ever"]
pub(crate) struct TaskRef(NonNull<Task>);

/// The end of a turn with the token, unless the task kept the token.
#[derive(Debug)]
#[must_use = "the token must go where the turn says"]
pub(crate) enum Outcome {
    Idle,
    Requeue(TaskRef),
    Busy(TaskRef),
}

/// Ends the process when it is dropped, that is when a turn has unwound.
struct AbortOnUnwind;

// SAFETY: a `TaskRef` is a right to run the task, and `TaskRef::new` demands that the task may be run on
// any thread.
unsafe impl Send for TaskRef {}

impl Task {
    /// A head for a task that `run` knows how to run.
    pub(crate) fn new(run: RunFn) -> Self {
        Self { next: AtomicPtr::new(ptr::null_mut()), run: Cell::new(run) }
    }

    /// Lets the turns of a task be run by this function from now on.
    ///
    /// # Safety
    ///
    /// The task is alive, and the caller has its token.
    pub(crate) unsafe fn run_by(this: NonNull<Self>, run: RunFn) {
        // SAFETY: the caller's promise.
        unsafe { this.as_ref() }.run.set(run);
    }
}

impl Turn {
    /// A turn of at most `throughput` messages.
    pub(crate) fn new(throughput: u32) -> Self {
        Self {
            throughput,
            deadline: None,
            first_look: Cell::new(None),
            patience: STALL_LIMIT,
            watched: Cell::new(false),
            watched_anyway: Cell::new(false),
            slot_waits: Cell::new(false),
            looks: Cell::new(0),
            began: Cell::new(None),
            gather: Gather::never(),
            look_at: Cell::new(0),
            measured_at: Cell::new(0),
            measures: Cell::new(false),
            detours: Cell::new(0),
            handler_began: Cell::new(0),
        }
    }

    /// Gives each turn a time limit for its messages, counted from the first one; `None`: no time limit.
    pub(crate) fn with_deadline(self, deadline: Option<Duration>) -> Self {
        let is_watched = deadline.is_some();
        Self { deadline, watched: Cell::new(is_watched), watched_anyway: Cell::new(is_watched), ..self }
    }

    /// Lets a turn that has caught up with a stream of messages wait for more of them.
    pub(crate) fn with_gather(self) -> Self {
        Self { gather: Gather::in_streams(), ..self }
    }

    /// Returns how many messages the task may handle before it returns [`Ran::Requeue`].
    pub(crate) fn throughput(&self) -> u32 {
        self.throughput
    }

    /// Returns whether the task should return [`Ran::Requeue`] before its budget is used up: its deadline has passed,
    /// or another task waits in the worker's LIFO slot and this turn takes long. The task asks before each message, and
    /// at no other time: the first question of a turn starts the time of its deadline, so each turn handles at least
    /// one message.
    ///
    /// In a turn that is measured, the time between two questions is that of one handler.
    ///
    /// # Safety
    ///
    /// `actor` is that of the task, valid for all of it, and the task is being run by the caller.
    #[inline]
    pub(crate) unsafe fn should_yield<H: Measured>(&self, actor: NonNull<H>) -> bool {
        if !self.watched.get() {
            return false;
        }
        if self.measures.get() {
            // SAFETY: passed on to the caller.
            unsafe { self.measure(actor) };
        }
        self.is_overdue() || (self.slot_waits.get() && self.takes_long())
    }

    /// Ends the measurement of messages, when the task has no further message for now or does something else.
    ///
    /// # Safety
    ///
    /// As for [`should_yield`](Self::should_yield).
    #[inline]
    pub(crate) unsafe fn end_of_messages<H: Measured>(&self, actor: NonNull<H>) {
        if self.measures.get() {
            // SAFETY: passed on to the caller.
            unsafe { self.end_measurement(actor) };
        }
    }

    /// Begins a new turn.
    #[inline]
    fn begin(&self) {
        if self.deadline.is_some() {
            self.first_look.set(None);
        }
    }

    /// The number of turns after which the thread calls [`look_up`](Self::look_up).
    #[inline]
    pub(crate) fn look_at(&self) -> u64 {
        self.look_at.get()
    }

    /// Lets the thread look up after so many turns at the latest.
    pub(crate) fn look_by(&self, turns: u64) {
        self.look_at.set(self.look_at.get().min(turns));
    }

    /// Lets the next turn be measured, if that is due. The thread has begun so many turns before it.
    #[inline]
    pub(crate) fn look_up(&self, turns: u64) {
        if turns >= self.measured_at.get() {
            self.measured_at.set(turns + TURNS_UNMEASURED);
            // Models measure nothing.
            if !crate::sync::EXPLORED && is_on() {
                self.begin_measurement();
            }
        }
        self.look_at.set(self.measured_at.get());
    }

    /// Lets the next turn be measured, if anything is; it is the only turn of this value.
    #[cold]
    #[inline(never)]
    pub(crate) fn measure_alone(&self) {
        self.look_up(0);
    }

    #[cold]
    #[inline(never)]
    fn begin_measurement(&self) {
        if !self.measures.replace(true) {
            self.handler_began.set(0);
            self.watched.set(true);
            self.watched_anyway.set(true);
            self.gather.interrupt();
            self.begin_detour();
        }
    }

    /// Counts a turn of the task at this address, and shows it in the thread's pulse. For a thread that looks up for
    /// nothing else.
    pub(crate) fn begin_in(&self, pulse: &Pulse, task: *const Task, turns: &mut u64) {
        if *turns >= self.look_at() {
            self.look_up(*turns);
        }
        *turns += 1;
        pulse.works();
        pulse.show_turns(*turns);
        pulse.begin_turn(task.cast());
        if is_recording() {
            pulse.note(FlightEventKind::TurnBegins);
        }
    }

    /// Whether a measured turn is under way, or one that waits for its first message.
    pub(crate) fn is_measured(&self) -> bool {
        self.measures.get()
    }

    /// Whether a task that this turn schedules just goes into the slot.
    #[inline]
    pub(crate) fn fills_slot(&self) -> bool {
        self.detours.get() == 0
    }

    /// The number of reasons for which it does not, apart from the measurement.
    pub(crate) fn detours(&self) -> u32 {
        self.detours.get() - u32::from(self.measures.get())
    }

    /// There is one more reason for which a task that this turn schedules does not just go into the slot.
    pub(crate) fn begin_detour(&self) {
        self.detours.set(self.detours.get() + 1);
    }

    /// There is one reason fewer.
    pub(crate) fn end_detour(&self) {
        self.detours.set(self.detours.get() - 1);
    }

    /// A handler ends here, if one has begun, and the next begins.
    ///
    /// # Safety
    ///
    /// As for [`should_yield`](Self::should_yield).
    #[cold]
    #[inline(never)]
    unsafe fn measure<H: Measured>(&self, actor: NonNull<H>) {
        // SAFETY: alive by the caller's promise.
        let meter = unsafe { actor.as_ref() }.meter().filter(|meter| meter.turns() != 0);
        let Some(meter) = meter else { return self.measure_no_more() };
        let now = meter.now();
        match self.handler_began.replace(now) {
            0 => {
                // `look_up` did not know the system's number of turns.
                self.measured_at.set(self.measured_at.get() - TURNS_UNMEASURED + u64::from(meter.turns()));
                self.look_by(self.measured_at.get());
                // SAFETY: passed on to the caller.
                unsafe { H::record_depth(actor) }
            }
            // SAFETY: passed on to the caller.
            began => unsafe { H::record_handling(actor, now.saturating_sub(began)) },
        }
    }

    /// # Safety
    ///
    /// As for [`should_yield`](Self::should_yield).
    #[cold]
    #[inline(never)]
    unsafe fn end_measurement<H: Measured>(&self, actor: NonNull<H>) {
        let began = self.handler_began.get();
        if began == 0 {
            // No message yet: the next turn that has one is measured.
            return;
        }
        self.measure_no_more();
        // SAFETY: alive by the caller's promise.
        if let Some(meter) = unsafe { actor.as_ref() }.meter() {
            // SAFETY: passed on to the caller.
            unsafe { H::record_handling(actor, meter.now().saturating_sub(began)) };
        }
    }

    fn measure_no_more(&self) {
        self.measures.set(false);
        self.gather.resume();
        self.end_detour();
        self.handler_began.set(0);
        self.watched_anyway.set(self.deadline.is_some());
        self.watched.set(self.deadline.is_some() || self.slot_waits.get());
    }

    fn is_overdue(&self) -> bool {
        let Some(deadline) = self.deadline else { return false };
        match self.first_look.get() {
            Some(first) => first.elapsed() >= deadline,
            None => {
                self.first_look.set(Some(Instant::now()));
                false
            }
        }
    }

    /// Notes that the slot has a new task, which begins to wait.
    #[inline]
    pub(crate) fn slot_was_filled(&self) {
        self.slot_waits.set(true);
        self.watched.set(true);
        self.looks.set(0);
    }

    /// Notes that no task waits in the slot any more.
    #[inline]
    pub(crate) fn slot_was_emptied(&self) {
        self.slot_waits.set(false);
        self.watched.set(self.watched_anyway.get());
    }

    /// Returns whether this turn takes long beside a filled slot. The function counts looks and reads the clock rarely,
    /// since a clock read costs as much as a short handler; a turn that fills the slot again with each message never
    /// reads it.
    fn takes_long(&self) -> bool {
        let looks = self.looks.get() + 1;
        if looks == LOOKS / 2 {
            self.began.set(Some(Instant::now()));
        } else if looks % LOOKS == 0 && self.began.get().is_some_and(|began| began.elapsed() >= self.patience)
        {
            // This look is not counted, so that the answer stays the same.
            return true;
        }
        self.looks.set(looks);
        false
    }
}

impl TaskRef {
    /// Wraps a task whose token the caller has just won.
    ///
    /// # Safety
    ///
    /// * The caller holds the task's token and hands it to this value; no other `TaskRef` of this task
    ///   exists.
    /// * `task` may be used for all that `run` does with it, on any thread, and stays so until the token
    ///   is back in the task.
    pub(crate) unsafe fn new(task: NonNull<Task>) -> Self {
        Self(task)
    }

    /// Returns the raw form; the token travels with it.
    pub(crate) fn into_raw(self) -> NonNull<Task> {
        self.0
    }

    /// Returns the address of the task, which tells the task from other tasks.
    pub(crate) fn address(&self) -> *const Task {
        self.0.as_ptr()
    }

    /// Runs one turn.
    ///
    /// By contract a turn never unwinds: the cell catches panics of user code. If a turn unwound all the same, the
    /// token would be lost in silence, and every message in that mailbox with it. So the process is aborted instead,
    /// with a message.
    pub(crate) fn run(self, turn: &Turn) -> Outcome {
        let guard = AbortOnUnwind;
        turn.begin();
        // SAFETY: holding a `TaskRef` means that the task is alive (`TaskRef::new`), and that we hold the token.
        let run = unsafe { self.0.as_ref() }.run.get();
        // SAFETY: this is the pointer that `new` was given, and we hold the token.
        let ran = unsafe { run(self.0, turn) };
        std::mem::forget(guard);
        match ran {
            Ran::Idle => Outcome::Idle,
            Ran::Requeue => Outcome::Requeue(self),
            Ran::Busy => Outcome::Busy(self),
        }
    }

    /// Returns the pointer to the task, without the token.
    pub(crate) fn pointer(&self) -> NonNull<Task> {
        self.0
    }

    /// Returns the injector's link in this task.
    ///
    /// # Safety
    ///
    /// The caller holds the token of `task` (a raw pointer gained by [`TaskRef::into_raw`]).
    pub(crate) unsafe fn link<'a>(task: NonNull<Task>) -> &'a AtomicPtr<Task> {
        // SAFETY: the task is alive while its token is held, and the caller holds the token.
        let task = unsafe { task.as_ref() };
        &task.next
    }

    /// Reads the link to the next task of a list.
    ///
    /// # Safety
    ///
    /// As for [`TaskRef::link`].
    pub(crate) unsafe fn next(task: NonNull<Task>) -> Option<NonNull<Task>> {
        // Ordering: Relaxed; only the holder of the token uses the link, and the queue that handed the
        // token over ordered what its last holder wrote.
        // SAFETY: passed on to the caller.
        let next = unsafe { Self::link(task) }.load(Ordering::Relaxed);
        NonNull::new(next)
    }
}

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        // A model's own failure unwinds through turns and must be reported, not aborted.
        if crate::sync::EXPLORED {
            return;
        }
        eprintln!("pointsman: a turn unwound into the scheduler, its actor would be lost: aborting");
        std::process::abort();
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{Duration, LOOKS, Turn};
    use std::ptr::NonNull;

    /// Asks for a task that is no actor, of which nothing is measured.
    fn asks(turn: &Turn) -> bool {
        // SAFETY: of a mailbox without an actor nothing is read.
        unsafe { turn.should_yield(NonNull::<()>::dangling()) }
    }

    fn turn(patience: Duration) -> Turn {
        Turn { patience, ..Turn::new(64) }
    }

    #[test]
    fn a_long_turn_yields_some_messages_after_the_slot_was_filled() {
        let turn = turn(Duration::ZERO);
        assert!((0..3 * LOOKS).all(|_| !asks(&turn)), "nobody waits");
        turn.slot_was_filled();
        assert!((1..LOOKS).all(|_| !asks(&turn)));
        assert!(asks(&turn) && asks(&turn));
        turn.slot_was_filled();
        assert!((1..LOOKS).all(|_| !asks(&turn)), "another one waits, and not yet for long");
        assert!(asks(&turn));
        turn.slot_was_emptied();
        assert!(!asks(&turn));
    }

    #[test]
    fn a_turn_past_its_deadline_yields_after_one_message_at_least() {
        let turn = Turn::new(64).with_deadline(Some(Duration::ZERO));
        for _ in 0..2 {
            turn.begin();
            assert!(!asks(&turn), "the first message of a turn");
            assert!(asks(&turn) && asks(&turn));
            // A filled slot and an emptied one change nothing about it.
            turn.slot_was_filled();
            turn.slot_was_emptied();
            assert!(asks(&turn));
        }
        let turn = Turn::new(64).with_deadline(Some(Duration::MAX));
        assert!((0..100).all(|_| !asks(&turn)));
    }

    #[test]
    fn a_short_turn_is_not_cut() {
        let turn = turn(Duration::MAX);
        turn.slot_was_filled();
        assert!((0..100 * LOOKS).all(|_| !asks(&turn)));
    }
}
