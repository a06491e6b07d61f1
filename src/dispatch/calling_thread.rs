//! A calling-thread dispatcher has no threads: the thread that wakes an actor runs it.
//!
//! Such a dispatcher is for tests that want one thread and a fixed order, and for models, which need no workers then.
//! The sleep and the stealing of workers have models of their own.
//!
//! A turn runs inside the code that wakes the actor, also inside a send that goes through routers. A send of the turn
//! begins anew: its hops from router to router are not those of the outer send.
//!
//! A thread that is already in a turn puts each task that it wakes into a queue of its own, and runs the queue before
//! the outermost [`schedule`] returns. So stacks stay short, and no actor is entered twice.

use crate::measure::meter::is_on;
use crate::scheduler::error::StartError;
use crate::scheduler::task::{Outcome, TaskRef, Turn};
use crate::sync::{per_thread, thread};
use crate::thread_context::hops::apart;
use crate::thread_context::sender::SenderGuard;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::time::Duration;

/// The limits of a turn.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Limits {
    throughput: u32,
    deadline: Option<Duration>,
}

/// A task, and the limits of its dispatcher.
type Waiting = (TaskRef, Limits);

per_thread! {
    /// The tasks that wait for the running turn to end; `None` when no turn runs. The queue is never dropped (`None`
    /// needs no drop). So the queue is there while destructors of other thread-locals send, and the tasks that these
    /// sends wake do not run within each other's turns.
    static QUEUE: ManuallyDrop<RefCell<Option<VecDeque<Waiting>>>> = ManuallyDrop::new(RefCell::new(None));
}

impl Limits {
    /// # Errors
    ///
    /// If `throughput` is 0.
    pub(crate) fn new(throughput: u32, deadline: Option<Duration>) -> Result<Self, StartError> {
        match throughput {
            0 => Err(StartError::ZeroThroughput),
            _ => Ok(Self { throughput, deadline }),
        }
    }
}

/// Runs a task, or lets it wait for the turn that woke it.
#[cold]
pub(crate) fn schedule(task: TaskRef, limits: Limits) {
    let mut task = Some((task, limits));
    let _ = QUEUE.try_with(|queue| match &mut *queue.borrow_mut() {
        Some(waiting) => waiting.extend(task.take()),
        none => *none = Some(VecDeque::new()),
    });
    let _aside = SenderGuard::step();
    apart(|| {
        while let Some(waiting) = task.take() {
            task = next(run(waiting));
        }
    });
}

/// Returns whether the calling thread is in a turn.
pub(crate) fn is_in_turn() -> bool {
    QUEUE.try_with(|queue| queue.borrow().is_some()).unwrap_or(false)
}

/// Runs one turn; returns the task if there is more to do.
#[inline(always)]
fn run((task, limits): Waiting) -> Option<Waiting> {
    let turn = Turn::new(limits.throughput).with_deadline(limits.deadline);
    if is_on() {
        turn.measure_alone();
    }
    match task.run(&turn) {
        Outcome::Idle => None,
        Outcome::Requeue(task) => Some((task, limits)),
        Outcome::Busy(task) => {
            // A yield and no park: the thread is the user's, and so are its unparks.
            thread::yield_now();
            Some((task, limits))
        }
    }
}

/// Queues `again` behind all other tasks, and returns the task that has waited longest.
#[inline(always)]
fn next(mut again: Option<Waiting>) -> Option<Waiting> {
    let next = QUEUE.try_with(|queue| {
        let mut queue = queue.borrow_mut();
        let waiting = queue.get_or_insert_default();
        waiting.extend(again.take());
        let next = waiting.pop_front();
        if next.is_none() {
            *queue = None;
        }
        next
    });
    next.ok().flatten().or(again)
}
