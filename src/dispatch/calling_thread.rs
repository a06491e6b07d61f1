//! No threads: whoever wakes an actor runs it, on the thread that it has.
//!
//! For tests that want one thread and a fixed order, and for models, which need no workers then: their sleeping
//! and stealing have models of their own.
//!
//! A turn runs within whatever its waker is doing, also within a send that goes through routers. What it sends begins
//! anew: its hops from router to router are not those of that send.
//!
//! A thread that is in a turn already puts what it wakes into a queue of its own, and runs the queue before the
//! outermost [`schedule`] returns: so stacks stay short, and no actor is entered twice.

use crate::scheduler::error::StartError;
use crate::scheduler::task::{Outcome, TaskRef, Turn};
use crate::sync::{per_thread, thread};
use crate::thread_context::hops::apart;
use crate::thread_context::sender::Aside;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::time::Duration;

/// How long a turn may be.
#[derive(Copy, Clone, Debug)]
pub struct Limits {
    throughput: u32,
    deadline: Option<Duration>,
}

/// A task, and the limits of its dispatcher.
type Waiting = (TaskRef, Limits);

per_thread! {
    /// What waits for the running turn to end; `None` when none runs. Never dropped, which `None` does not need: so it is
    /// there while destructors of other thread-locals send, and what they wake does not run within each other's turns.
    static QUEUE: ManuallyDrop<RefCell<Option<VecDeque<Waiting>>>> = ManuallyDrop::new(RefCell::new(None));
}

impl Limits {
    /// # Errors
    ///
    /// If `throughput` is 0.
    pub fn new(throughput: u32, deadline: Option<Duration>) -> Result<Self, StartError> {
        match throughput {
            0 => Err(StartError::ZeroThroughput),
            _ => Ok(Self { throughput, deadline }),
        }
    }
}

/// Runs a task, or lets it wait for the turn that woke it.
#[cold]
pub fn schedule(task: TaskRef, limits: Limits) {
    let mut task = Some((task, limits));
    let _ = QUEUE.try_with(|queue| match &mut *queue.borrow_mut() {
        Some(waiting) => waiting.extend(task.take()),
        none => *none = Some(VecDeque::new()),
    });
    let _aside = Aside::step();
    apart(|| {
        while let Some(waiting) = task.take() {
            task = next(run(waiting));
        }
    });
}

/// Whether the calling thread is in a turn.
pub fn is_in_turn() -> bool {
    QUEUE.try_with(|queue| queue.borrow().is_some()).unwrap_or(false)
}

/// One turn; returns the task if there is more to do.
fn run((task, limits): Waiting) -> Option<Waiting> {
    let turn = Turn::new(limits.throughput).with_deadline(limits.deadline);
    match task.run(&turn) {
        Outcome::Idle => None,
        Outcome::Requeue(task) => Some((task, limits)),
        Outcome::Busy(task) => {
            // Not a park: the thread is the user's, and so are its unparks.
            thread::yield_now();
            Some((task, limits))
        }
    }
}

/// The task that has waited longest, after `again` went behind all others.
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
