//! For models only: whoever wakes an actor runs it, on the thread that it has.
//!
//! So a model of actors needs no workers, whose sleeping and stealing have models of their own, and its
//! executions are about the cells alone.

use crate::scheduler::task::Outcome;
use crate::scheduler::{TaskRef, Turn};
use crate::sync::{per_thread, thread};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Messages per turn; so few that a turn ends by it in a model.
pub const THROUGHPUT: u32 = 2;

per_thread! {
    /// What waits for the running turn to end; `None` when none runs.
    static WAITING: RefCell<Option<VecDeque<TaskRef>>> = RefCell::new(None);
}

/// Runs a task, or lets it wait for the turn that woke it: stacks in models are short.
pub fn schedule(task: TaskRef) {
    let task = WAITING.with(|waiting| {
        let mut waiting = waiting.borrow_mut();
        match &mut *waiting {
            Some(queue) => {
                queue.push_back(task);
                None
            }
            none => {
                *none = Some(VecDeque::new());
                Some(task)
            }
        }
    });
    let Some(mut task) = task else { return };
    let turn = Turn::new(THROUGHPUT);
    loop {
        match task.run(&turn) {
            Outcome::Idle => {}
            Outcome::Requeue(again) => push(again),
            Outcome::Busy(again) => {
                push(again);
                thread::yield_now();
            }
        }
        let next = WAITING.with(|waiting| {
            let mut waiting = waiting.borrow_mut();
            let next = waiting.as_mut().and_then(VecDeque::pop_front);
            if next.is_none() {
                *waiting = None;
            }
            next
        });
        match next {
            Some(next) => task = next,
            None => return,
        }
    }
}

fn push(task: TaskRef) {
    WAITING.with(|waiting| waiting.borrow_mut().get_or_insert_default().push_back(task));
}
