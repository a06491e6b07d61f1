//! The tasks of an actor: polled by its own turns, and ended with it. They bring messages that take no room in the
//! mailbox.
//!
//! A task has a number and a waker (`poll_waker.rs`). A wake sends the actor positioned control (`Control::Poll`). So the
//! poll comes behind the messages that are queued at the wake, spends a message's share of the throughput, and waits while
//! the actor is suspended or holds.
//!
//! A message that a poll brings is handled in that very step. It is counted as sent and handled then, as the last message
//! of a router is. The task is polled again after that, behind the messages that are queued by then.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::poll_waker::PollWaker;
use crate::actor::recipe::Recipe;
use crate::actor::task_table::{Entry, OwnTask, TaskStep};
use crate::actor::turn::ActorTurn;
use crate::core::control::Control;
use crate::core::polls_within::PollsWithin;
use crate::failure::guarded;
use crate::util::panic::quietly;
use std::sync::Arc as StdArc;
use std::task::{self, Poll, Wake, Waker};

impl<M: Send + 'static> Context<M> {
    /// Makes the waker of a new task.
    pub(crate) fn task_waker(&mut self) -> StdArc<PollWaker> {
        let number = self.extras(|extras| {
            extras.tasks.next += 1;
            extras.tasks.next
        });
        PollWaker::new(self.me().any_local(), number, |waker| {
            let _ = waker.actor.send_positioned(Control::Poll(waker.number));
        })
    }

    /// Adds a task, which is polled when its waker is woken.
    pub(crate) fn add_task(&mut self, waker: &StdArc<PollWaker>, task: Box<dyn OwnTask<M>>) {
        let entry = Entry { task: Some(task), waker: waker.clone() };
        self.extras(|extras| extras.tasks.open.insert(waker.number, entry));
    }

    /// Drops a task; returns whether there was one of this number.
    pub(crate) fn drop_task(&mut self, number: u64) -> bool {
        let entry = self.private(|private| private.extras.as_mut()?.tasks.open.remove(&number));
        let is_found = entry.is_some();
        self.drop_entry(entry, false);
        is_found
    }

    /// Ends the tasks; at a restart some go on.
    pub(crate) fn drop_tasks(&mut self, is_restart: bool) {
        let mut dropped = self.private(|private| {
            let Some(extras) = &mut private.extras else { return Vec::new() };
            let open = &mut extras.tasks.open;
            let goes_on = |entry: &Entry<M>| entry.task.as_ref().is_some_and(|task| task.survives_restart());
            let numbers: Vec<u64> = open
                .iter()
                .filter(|(_, entry)| !(is_restart && goes_on(entry)))
                .map(|(number, _)| *number)
                .collect();
            numbers.into_iter().filter_map(|number| Some((number, open.remove(&number)?))).collect()
        });
        // In the order in which they were added: the same in each run.
        dropped.sort_by_key(|(number, _)| *number);
        for (_, entry) in dropped {
            self.drop_entry(Some(entry), true);
        }
    }

    fn drop_entry(&self, entry: Option<Entry<M>>, abandons: bool) {
        let Some(task) = entry.and_then(|entry| entry.task) else { return };
        quietly(|| {
            PollsWithin::of(&self.core().system).run(|| match abandons {
                true => task.abandon(),
                false => drop(task),
            });
        });
    }
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Polls the task of this number, if it is not over, and handles the message that it brings.
    pub(crate) fn poll_task(&mut self, number: u64) {
        // Taken out while user code runs, which may end the task.
        let taken = self.private(|private| {
            let entry = private.extras.as_mut()?.tasks.open.get_mut(&number)?;
            Some((entry.task.take()?, entry.waker.clone()))
        });
        let Some((mut task, poll_waker)) = taken else { return };
        poll_waker.begin_poll();
        let waker = Waker::from(poll_waker.clone());
        let system = &self.core().system;
        let polled =
            guarded(|| Ok(PollsWithin::of(system).run(|| task.poll(&mut task::Context::from_waker(&waker)))));
        let message = match polled {
            Ok(Poll::Pending) => return self.put_back(number, task),
            Ok(Poll::Ready(TaskStep::Message(message))) => {
                self.put_back(number, task);
                message
            }
            Ok(Poll::Ready(TaskStep::Last(message))) => {
                self.remove_task(number, task);
                self.count_own();
                return self.deliver(message);
            }
            Err(failure) => {
                self.remove_task(number, task);
                return self.fail(failure, None);
            }
        };
        self.count_own();
        self.deliver(message);
        // Behind the messages that are queued by now.
        poll_waker.wake();
    }

    /// Counts a message that this very step handles.
    fn count_own(&self) {
        self.row.sent(1);
        self.row.handled(1);
    }

    fn put_back(&self, number: u64, task: Box<dyn OwnTask<A::Message>>) {
        self.private(|private| {
            if let Some(entry) = private.extras().tasks.open.get_mut(&number) {
                entry.task = Some(task);
            }
        });
    }

    fn remove_task(&mut self, number: u64, task: Box<dyn OwnTask<A::Message>>) {
        self.put_back(number, task);
        self.ctx.drop_task(number);
    }
}
