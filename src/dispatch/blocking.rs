//! A blocking dispatcher has as many threads as there are tasks for, up to a bound.
//!
//! One lock guards the queue and the counts, since a thread is started or woken at most once per turn, and turns here
//! are long. Three rules leave no task without a thread:
//! 1. `idle_count` counts the threads that wait, including threads that are notified but not yet awake.
//! 2. After each push, under the same lock, one of three holds: `queue.len() <= idle_count`, and each waiting thread
//!    takes one task before it does anything else; or one more thread is started; or the bound is reached, and the next
//!    thread to end its turn takes the task.
//! 3. A thread whose wait times out looks at the queue once more under the lock before it ends, so a notify that met no
//!    waiting thread is no loss.
//!
//! The threads never stand as readers of a reclamation domain, as workers do: a turn may block for hours here and would
//! keep every old routee table of the process alive. Routed sends open sections as on any thread.

use crate::dispatch::threads::Threads;
use crate::measure::flight::{FlightEventKind, is_recording};
use crate::measure::pulse::Pulse;
use crate::scheduler::error::{JoinError, StartError};
use crate::scheduler::task::{Outcome, Task, TaskRef, Turn};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, per_thread};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::Arc as StdArc;
use std::time::{Duration, Instant};

/// The largest number of threads in one pool.
pub(crate) const THREAD_COUNT_MAX: usize = 4096;

/// The settings of a blocking pool.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Name of the threads, followed by a number.
    pub name: String,
    /// The number of threads that always stay, and the largest number; within `1..=`[`THREAD_COUNT_MAX`].
    pub thread_count: RangeInclusive<usize>,
    /// How long a thread above the minimum waits for work before it ends; `None`: for ever.
    pub keep_alive: Option<Duration>,
    /// Messages per turn, at least 1.
    pub throughput: u32,
    /// How long a turn may go on handling messages; `None`: until its messages or its throughput are used up.
    pub deadline: Option<Duration>,
}

/// A running pool whose threads may block.
#[derive(Clone)]
pub(crate) struct BlockingPool(Arc<Shared>);

struct Shared {
    settings: Settings,
    state: Mutex<State>,
    /// Notified for a task pushed while a thread waits, and at the stop.
    changed: Condvar,
    threads: Threads,
}

per_thread! {
    /// The task whose turn runs on this thread of a pool; the pointer is only compared.
    static TURN_OF: Cell<*const Task> = Cell::new(ptr::null());
}

/// Returns whether the calling thread belongs to a pool and runs a turn of this task.
pub(crate) fn is_in_turn_of(task: *const Task) -> bool {
    TURN_OF.try_with(Cell::get).is_ok_and(|turn_of| ptr::eq(turn_of, task))
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<TaskRef>,
    /// The number of threads that wait, or are on their way from a wait to the queue.
    idle_count: usize,
    /// The number of threads alive or just being started.
    thread_count: usize,
    /// The number of counted threads that have not begun to work yet; a thread that the operating system refuses never
    /// will.
    starting_count: usize,
    stopping: bool,
}

impl State {
    /// Counts a thread that is about to be started.
    fn begin_start(&mut self) {
        self.thread_count += 1;
        self.starting_count += 1;
    }

    /// Takes back the count of a thread that the operating system has refused.
    fn start_refused(&mut self) {
        self.thread_count -= 1;
        self.starting_count -= 1;
    }

    /// Returns how many threads live for certain.
    fn started_count(&self) -> usize {
        self.thread_count - self.starting_count
    }
}

impl Settings {
    fn check(&self) -> Result<(), StartError> {
        let (min, max) = (*self.thread_count.start(), *self.thread_count.end());
        let bad = |requested| Err(StartError::ThreadCount { requested, max: THREAD_COUNT_MAX });
        match () {
            () if min == 0 => bad(min),
            () if max > THREAD_COUNT_MAX => bad(max),
            () if min > max => Err(StartError::EmptyThreadRange { min, max }),
            () if self.throughput == 0 => Err(StartError::ZeroThroughput),
            () => Ok(()),
        }
    }
}

impl BlockingPool {
    /// Starts the minimum of threads.
    ///
    /// # Errors
    ///
    /// If the settings are out of bounds or a thread cannot be had. Threads that were already started have ended then.
    pub(crate) fn start(settings: Settings) -> Result<Self, StartError> {
        settings.check()?;
        let min = *settings.thread_count.start();
        let pool = Self(Arc::new(Shared {
            threads: Threads::new(&settings.name),
            settings,
            state: Mutex::new(State { thread_count: min, starting_count: min, ..State::default() }),
            changed: Condvar::new(),
        }));
        for _ in 0..min {
            if let Err(error) = pool.spawn() {
                pool.stop();
                // The calling thread is not in the pool.
                let _ = pool.join();
                return Err(StartError::Thread(error));
            }
        }
        Ok(pool)
    }

    /// Queues a task and makes sure that a thread takes it.
    pub(crate) fn schedule(&self, task: TaskRef) {
        let mut state = lock(&self.0.state);
        state.queue.push_back(task);
        self.provide(state);
    }

    /// The pulses of the threads alive.
    pub(crate) fn pulses(&self) -> Vec<StdArc<Pulse>> {
        self.0.threads.pulses()
    }

    /// Returns the number of threads alive.
    #[cfg(test)]
    pub(crate) fn thread_count(&self) -> usize {
        lock(&self.0.state).thread_count
    }

    /// Tells the threads to end once the queue is empty. Never blocks.
    pub(crate) fn stop(&self) {
        lock(&self.0.state).stopping = true;
        self.0.changed.notify_all();
    }

    /// Waits until every thread has ended, after [`BlockingPool::stop`].
    ///
    /// # Errors
    ///
    /// If the caller is a thread of this very pool; nothing has been done then.
    pub(crate) fn join(&self) -> Result<(), JoinError> {
        self.0.threads.join_all()?;
        debug_assert!(lock(&self.0.state).queue.is_empty(), "tasks were scheduled after the threads ended");
        Ok(())
    }

    /// Returns whether every thread has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.threads.have_ended()
    }

    /// Returns whether the calling thread is one of the pool's.
    pub(crate) fn runs_current_thread(&self) -> bool {
        self.0.threads.have_current()
    }

    /// Returns whether the pool has one thread at most, and the calling thread is that thread.
    pub(crate) fn is_current_thread_alone(&self) -> bool {
        *self.0.settings.thread_count.end() == 1 && self.runs_current_thread()
    }

    /// Makes sure that there are threads for the tasks in the queue (rule 2).
    fn provide(&self, mut state: MutexGuard<'_, State>) {
        if state.queue.len() <= state.idle_count {
            drop(state);
            self.0.changed.notify_one();
        } else if state.thread_count < *self.0.settings.thread_count.end() {
            state.begin_start();
            drop(state);
            if self.spawn().is_err() {
                // The operating system has no thread for the pool now. The minimum of threads lives, so the task waits
                // for one of them, as it would at the bound.
                lock(&self.0.state).start_refused();
            }
        }
    }

    /// Starts a thread that is already counted.
    fn spawn(&self) -> std::io::Result<()> {
        let pool = self.clone();
        self.0.threads.spawn(move |pulse| pool.work(pulse)).map(drop)
    }

    /// Runs the main loop of a thread.
    fn work(&self, pulse: &StdArc<Pulse>) {
        let turn = Turn::new(self.0.settings.throughput).with_deadline(self.0.settings.deadline);
        let mut turns = 0;
        let mut unfinished = None;
        let mut busy_run = 0u32;
        lock(&self.0.state).starting_count -= 1;
        while let Some(task) = self.next_task(unfinished.take(), pulse) {
            // Without the lock: a watchdog may set a timer.
            if !pulse.is_awake() {
                pulse.wakes();
                if is_recording() {
                    pulse.note(FlightEventKind::Wakes);
                }
            }
            TURN_OF.with(|turn_of| turn_of.set(task.address()));
            turn.begin_in(pulse, task.address(), &mut turns);
            let outcome = task.run(&turn);
            if is_recording() {
                pulse.note(FlightEventKind::TurnEnds);
            }
            TURN_OF.with(|turn_of| turn_of.set(ptr::null()));
            pulse.rest();
            match outcome {
                Outcome::Idle => busy_run = 0,
                Outcome::Requeue(task) => {
                    busy_run = 0;
                    unfinished = Some(task);
                }
                Outcome::Busy(task) => {
                    crate::scheduler::backoff::wait_for_sender(busy_run);
                    busy_run = busy_run.saturating_add(1);
                    unfinished = Some(task);
                }
            }
        }
    }

    /// Queues `unfinished` behind all other tasks and returns the oldest task; returns `None` when the thread shall
    /// end.
    fn next_task(&self, unfinished: Option<TaskRef>, pulse: &Pulse) -> Option<TaskRef> {
        let mut state = lock(&self.0.state);
        if let Some(task) = unfinished {
            state.queue.push_back(task);
            // One task goes in and one comes out, so rule 2 still holds.
            return state.queue.pop_front();
        }
        let mut deadline = None;
        loop {
            if let Some(task) = state.queue.pop_front() {
                return Some(task);
            }
            // Threads that are still starting do not count here, since the system may refuse them: if the last living
            // thread ended, no thread would take the next task.
            let above_min = state.started_count() > *self.0.settings.thread_count.start();
            let patience = match self.0.settings.keep_alive {
                // At the minimum no thread ever ends, so no clock wakes an idle thread.
                Some(keep_alive) if above_min => {
                    let now = Instant::now();
                    let deadline = *deadline.get_or_insert_with(|| now.checked_add(keep_alive));
                    deadline.map(|deadline| deadline.saturating_duration_since(now))
                }
                _ => None,
            };
            if state.stopping || patience == Some(Duration::ZERO) {
                state.thread_count -= 1;
                return None;
            }
            state.idle_count += 1;
            pulse.falls_asleep();
            if is_recording() {
                pulse.note(FlightEventKind::FallsAsleep);
            }
            state = self.wait(state, patience);
            state.idle_count -= 1;
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, patience: Option<Duration>) -> MutexGuard<'a, State> {
        let changed = &self.0.changed;
        match patience {
            None => changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
            Some(patience) => {
                changed.wait_timeout(state, patience).unwrap_or_else(|poisoned| poisoned.into_inner()).0
            }
        }
    }
}

impl fmt::Debug for BlockingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingPool").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::scheduler::task::Ran;
    use std::ptr::NonNull;

    /// The last thread would have ended because there were two, and the system then refuses the other.
    #[test]
    fn the_last_thread_does_not_leave_for_one_that_is_refused() {
        /// # Safety
        ///
        /// None: it touches nothing.
        unsafe fn idle(_: NonNull<Task>, _: &Turn) -> Ran {
            Ran::Idle
        }
        let pool = BlockingPool::start(Settings {
            name: "refused".to_owned(),
            thread_count: 1..=2,
            keep_alive: Some(Duration::ZERO),
            throughput: 1,
            deadline: None,
        });
        let pool = pool.expect("a thread");
        // A scheduling thread finds too few threads and starts one; the living thread takes the task before the system
        // refuses the other.
        lock(&pool.0.state).begin_start();
        let task = Task::new(idle);
        // SAFETY: scheduled once, and alive until the threads are joined.
        pool.schedule(unsafe { TaskRef::new(NonNull::from(&task)) });
        let has_left_or_waits =
            |state: &State| state.queue.is_empty() && state.idle_count == state.started_count();
        while !has_left_or_waits(&lock(&pool.0.state)) {
            crate::sync::thread::yield_now();
        }
        lock(&pool.0.state).start_refused();
        assert_eq!(pool.thread_count(), 1);
        pool.stop();
        pool.join().expect("none of its threads");
    }
}
