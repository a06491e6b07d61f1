//! A task is the type-erased form of an actor that the scheduler runs, together with the one token that allows its
//! holder to run it.
//!
//! 1. A task has exactly one ownership token. The token lies either in the task itself (an idle actor) or in one
//!    [`TaskRef`], and a `TaskRef` is never copied. So a task sits in at most one queue, at most one thread writes its
//!    link, and at most one thread runs it.
//! 2. The maker of the task keeps its memory alive while a `TaskRef` exists.
//! 3. [`Ran::Idle`] says that the token went back into the task. From that instant another thread may schedule, run and
//!    free the task, so the runner touches the task no more.

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
    run: RunFn,
}

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
    /// Whether anything but the throughput may end the turn: a deadline, or a task in the slot. Both share this flag,
    /// so a turn without either pays for one look.
    watched: Cell<bool>,
    /// Whether a task waits in the worker's LIFO slot for this turn to end; no other worker can steal that task.
    slot_waits: Cell<bool>,
    /// Looks since the slot was filled last.
    looks: Cell<u32>,
    /// The time at which half of [`LOOKS`] were done.
    began: Cell<Instant>,
    /// Whether a turn that has caught up with a stream waits for more.
    pub(crate) gather: Gather,
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
        Self { next: AtomicPtr::new(ptr::null_mut()), run }
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
            slot_waits: Cell::new(false),
            looks: Cell::new(0),
            began: Cell::new(Instant::now()),
            gather: Gather::never(),
        }
    }

    /// Gives each turn a time limit for its messages, counted from the first one; `None`: no time limit.
    pub(crate) fn with_deadline(self, deadline: Option<Duration>) -> Self {
        Self { deadline, watched: Cell::new(deadline.is_some()), ..self }
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
    #[inline]
    pub(crate) fn should_yield(&self) -> bool {
        self.watched.get() && (self.is_overdue() || (self.slot_waits.get() && self.takes_long()))
    }

    /// Begins a new turn.
    #[inline]
    fn begin(&self) {
        if self.deadline.is_some() {
            self.first_look.set(None);
        }
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
        self.watched.set(self.deadline.is_some());
    }

    /// Returns whether this turn takes long beside a filled slot. The function counts looks and reads the clock rarely,
    /// since a clock read costs as much as a short handler; a turn that fills the slot again with each message never
    /// reads it.
    fn takes_long(&self) -> bool {
        let looks = self.looks.get() + 1;
        if looks == LOOKS / 2 {
            self.began.set(Instant::now());
        } else if looks % LOOKS == 0 && self.began.get().elapsed() >= self.patience {
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
        // SAFETY: holding a `TaskRef` means that the task is alive (`TaskRef::new`).
        let run = unsafe { self.0.as_ref() }.run;
        // SAFETY: this is the pointer that `new` was given, and we hold the token.
        let ran = unsafe { run(self.0, turn) };
        std::mem::forget(guard);
        match ran {
            Ran::Idle => Outcome::Idle,
            Ran::Requeue => Outcome::Requeue(self),
            Ran::Busy => Outcome::Busy(self),
        }
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

    fn turn(patience: Duration) -> Turn {
        Turn { patience, ..Turn::new(64) }
    }

    #[test]
    fn a_long_turn_yields_some_messages_after_the_slot_was_filled() {
        let turn = turn(Duration::ZERO);
        assert!((0..3 * LOOKS).all(|_| !turn.should_yield()), "nobody waits");
        turn.slot_was_filled();
        assert!((1..LOOKS).all(|_| !turn.should_yield()));
        assert!(turn.should_yield() && turn.should_yield());
        turn.slot_was_filled();
        assert!((1..LOOKS).all(|_| !turn.should_yield()), "another one waits, and not yet for long");
        assert!(turn.should_yield());
        turn.slot_was_emptied();
        assert!(!turn.should_yield());
    }

    #[test]
    fn a_turn_past_its_deadline_yields_after_one_message_at_least() {
        let turn = Turn::new(64).with_deadline(Some(Duration::ZERO));
        for _ in 0..2 {
            turn.begin();
            assert!(!turn.should_yield(), "the first message of a turn");
            assert!(turn.should_yield() && turn.should_yield());
            // A filled slot and an emptied one change nothing about it.
            turn.slot_was_filled();
            turn.slot_was_emptied();
            assert!(turn.should_yield());
        }
        let turn = Turn::new(64).with_deadline(Some(Duration::MAX));
        assert!((0..100).all(|_| !turn.should_yield()));
    }

    #[test]
    fn a_short_turn_is_not_cut() {
        let turn = turn(Duration::MAX);
        turn.slot_was_filled();
        assert!((0..100 * LOOKS).all(|_| !turn.should_yield()));
    }
}
