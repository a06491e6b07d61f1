//! A pinned dispatcher gives each actor a thread of its own.
//!
//! The run queue of such a thread is one slot. One slot is enough, since the actor has one token
//! ([`crate::scheduler::task`], rule 1). A scheduling thread fills the slot and then unparks the actor's thread; the
//! actor's thread looks into the slot and then parks. An unpark between the two makes the park return at once, so no
//! wake is lost. A handler that parks for reasons of its own may consume that unpark. The unpark comes after the store
//! into the slot, so the look after the handler sees the task.
//!
//! As in the blocking pool, the threads never stand as readers of a reclamation domain.

use crate::dispatch::threads::Threads;
use crate::measure::flight::{FlightEventKind, is_recording};
use crate::measure::pulse::Pulse;
use crate::scheduler::error::{JoinError, StartError};
use crate::scheduler::task::{Outcome, Task, TaskRef, Turn};
use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::sync::thread::{self, Thread};
use crate::sync::{Arc, OnceLock};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc as StdArc;
use std::time::Duration;

/// A pinned dispatcher, which makes a thread for each actor.
#[derive(Clone)]
pub(crate) struct PinnedThreads(Arc<Shared>);

struct Shared {
    throughput: u32,
    deadline: Option<Duration>,
    threads: Threads,
    /// Whether every thread ends once its slot is empty.
    stopping: AtomicBool,
}

/// The thread of one actor.
#[derive(Clone)]
pub(crate) struct PinnedPlacement {
    dispatcher: PinnedThreads,
    seat: Arc<PinnedTask>,
}

struct PinnedTask {
    /// The task, while it is scheduled and not yet taken.
    slot: AtomicPtr<Task>,
    /// Whether the actor is gone; the thread then ends once the slot is empty.
    released: AtomicBool,
    /// The thread; set before a caller gets the placement.
    thread: OnceLock<Thread>,
}

impl PinnedThreads {
    /// Starts a dispatcher without threads: the first thread starts with the first actor. A turn handles at most
    /// `throughput` messages, and goes on for no longer than `deadline` if there is one.
    ///
    /// # Errors
    ///
    /// If `throughput` is 0.
    pub(crate) fn start(name: &str, throughput: u32, deadline: Option<Duration>) -> Result<Self, StartError> {
        if throughput == 0 {
            return Err(StartError::ZeroThroughput);
        }
        Ok(Self(Arc::new(Shared {
            throughput,
            deadline,
            threads: Threads::new(name),
            stopping: AtomicBool::new(false),
        })))
    }

    /// Starts the thread of one actor.
    ///
    /// # Errors
    ///
    /// If the operating system refuses the thread.
    pub(crate) fn new_placement(&self) -> Result<PinnedPlacement, StartError> {
        let seat = Arc::new(PinnedTask {
            slot: AtomicPtr::new(ptr::null_mut()),
            released: AtomicBool::new(false),
            thread: OnceLock::new(),
        });
        let (shared, served) = (self.0.clone(), seat.clone());
        let thread = self.0.threads.spawn(move |pulse| served.work(&shared, pulse));
        let set = seat.thread.set(thread.map_err(StartError::Thread)?);
        assert!(set.is_ok(), "a new seat has no thread");
        Ok(PinnedPlacement { dispatcher: self.clone(), seat })
    }

    /// Tells every thread to end once its slot is empty. Never blocks.
    pub(crate) fn stop(&self) {
        // Ordering: Release; pairs with the Acquire load of `stopping` in `PinnedTask::next_task`. So does the unpark behind
        // it.
        self.0.stopping.store(true, Ordering::Release);
        self.0.threads.unpark_all();
    }

    /// The pulses of the threads that have not ended.
    pub(crate) fn pulses(&self) -> Vec<StdArc<Pulse>> {
        self.0.threads.pulses()
    }

    /// Returns whether every thread has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.threads.have_ended()
    }

    /// Returns whether the calling thread is one of these threads.
    pub(crate) fn runs_current_thread(&self) -> bool {
        self.0.threads.have_current()
    }

    /// Waits until every thread has ended, after [`PinnedThreads::stop`].
    ///
    /// # Errors
    ///
    /// If the caller is one of the threads; nothing has been done then.
    pub(crate) fn join(&self) -> Result<(), JoinError> {
        self.0.threads.join_all()
    }
}

impl PinnedPlacement {
    /// Hands the actor to its thread.
    pub(crate) fn schedule(&self, task: TaskRef) {
        // Ordering: Release; pairs with the Acquire swap in `take`. The actor's thread sees everything that led to this
        // wake. The slot is empty before: nothing is read through the old value.
        let before = self.seat.slot.swap(task.into_raw().as_ptr(), Ordering::Release);
        debug_assert!(before.is_null(), "a placement was given two tasks");
        self.unpark();
    }

    /// Lets the thread end, since its actor is gone. A task that was scheduled before still runs.
    pub(crate) fn release(&self) {
        // Ordering: Release; pairs with the Acquire load of `released` in `next_task`. A thread that sees the flag also
        // sees the last task put into the slot.
        self.seat.released.store(true, Ordering::Release);
        self.unpark();
    }

    /// Returns whether the actor's thread is the calling thread.
    pub(crate) fn is_this_thread(&self) -> bool {
        self.seat.thread.get().is_some_and(|own| own.id() == thread::current().id())
    }

    fn unpark(&self) {
        self.seat.thread.get().expect("set before any caller has the placement").unpark();
    }
}

impl PinnedTask {
    fn work(&self, shared: &Shared, pulse: &StdArc<Pulse>) {
        let turn = Turn::new(shared.throughput).with_deadline(shared.deadline);
        let mut turns = 0;
        while let Some(mut task) = self.next_task(shared, pulse) {
            let mut busy_run = 0u32;
            loop {
                turn.begin_in(pulse, task.address(), &mut turns);
                let outcome = task.run(&turn);
                if is_recording() {
                    pulse.note(FlightEventKind::TurnEnds);
                }
                match outcome {
                    Outcome::Idle => break,
                    Outcome::Requeue(same) => {
                        busy_run = 0;
                        task = same;
                    }
                    Outcome::Busy(same) => {
                        crate::scheduler::backoff::wait_for_sender(busy_run);
                        busy_run = busy_run.saturating_add(1);
                        task = same;
                    }
                }
            }
        }
    }

    fn next_task(&self, shared: &Shared, pulse: &Pulse) -> Option<TaskRef> {
        pulse.rest();
        loop {
            // Ordering: Acquire; pairs with the Release stores in `release` and `stop`. The loads come before the look
            // into the slot, so that a task scheduled before the release is seen.
            let ends = self.released.load(Ordering::Acquire) || shared.stopping.load(Ordering::Acquire);
            if let Some(task) = self.take() {
                return Some(task);
            }
            if ends {
                return None;
            }
            pulse.falls_asleep();
            if is_recording() {
                pulse.note(FlightEventKind::FallsAsleep);
            }
            thread::park();
            pulse.wakes();
            if is_recording() {
                pulse.note(FlightEventKind::Wakes);
            }
        }
    }

    fn take(&self) -> Option<TaskRef> {
        // Ordering: Acquire; pairs with the Release swap in `schedule`, which reads nothing that this thread wrote.
        let task = NonNull::new(self.slot.swap(ptr::null_mut(), Ordering::Acquire))?;
        // SAFETY: `schedule` put the token into the slot, and the swap took it out.
        Some(unsafe { TaskRef::new(task) })
    }
}

impl fmt::Debug for PinnedThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedThreads").field("throughput", &self.0.throughput).finish_non_exhaustive()
    }
}

impl fmt::Debug for PinnedPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedPlacement").field("dispatcher", &self.dispatcher).finish_non_exhaustive()
    }
}
