//! The task timer: code that runs later, or again and again, outside any actor of the user's.
//!
//! The timer thread only sends. Tasks run in a *runner*, a small actor under `/system` that each dispatcher of a system
//! gets when it is first asked for. So tasks go by the rules of the dispatcher, end with the system, and are in its
//! ledger: each run is a message to the runner. The price is that the tasks of a dispatcher run in sequence.
//!
//! Each task is in a single phase, changed under the lock of its state:
//!
//! ```text
//! Waiting ──run──▶ Running ──▶ Over           once, a panic, a target that has ended, cancelled meanwhile
//!    ▲ │              │
//!    │ └──cancel, shutdown──▶ Over
//!    └──── set again ─┘                       repeating
//! ```
//!
//! A task is `Waiting` from when it is scheduled until its run begins, whether its timer is under way or the runner has
//! it in its mailbox. The thread that takes the task out of that phase decides its fate: so a cancel tells the truth.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::recipe::ByContext;
use crate::actor::schedule_error::{DELAY_MAX, ScheduleError};
use crate::actor::spawn::{ClassChoice, Plan, spawn_cell};
use crate::actor::timers::next_in_rate;
use crate::core::actor_ref::ActorRef;
use crate::core::cancellable::{Cancel, Cancellable};
use crate::core::error::SpawnError;
use crate::core::system::SystemRef;
use crate::failure::guarded;
use crate::sync::{Mutex, lock};
use crate::time::timers::{DelayedTask, TimerHandle};
use crate::util::panic::{Guarded, drop_guarded};
use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// Runs code later, or again and again, on a dispatcher; from [`SystemRef::task_timer`].
///
/// For what belongs to an actor use the actor's own timers ([`Context::timers`]), which end
/// with it. This is for what belongs to none.
///
/// Tasks of one dispatcher run one after the other: one that takes long delays the others, and belongs on a
/// dispatcher of its own ([`SystemRef::task_timer_on`]) or into an actor. In the [`Ledger`](crate::Ledger) each
/// run is a message to the runner, `/system/scheduler-…`.
///
/// Nothing runs early: delays are rounded up to the next millisecond of the system's clock. A delay of zero runs at
/// once. When the system ends, tasks that wait are dropped, except for [tasks that run at the
/// end](Self::once_or_on_close). As Akka's, except that a fixed rate skips the runs that it missed.
///
/// ```
/// use pointsman::time::ManualClock;
/// use pointsman::prelude::*;
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let system = System::builder("shop").clock(clock.clone()).build()?;
/// let task_timer = system.task_timer()?;
/// let (report, reports) = mpsc::channel();
/// let hour = Duration::from_secs(3600);
/// let hourly = task_timer.fixed_rate(hour, hour, move || drop(report.send("on the hour")))?;
///
/// clock.advance(hour);
/// assert_eq!(reports.recv()?, "on the hour");
/// assert!(hourly.cancel(), "there will be no other run");
/// clock.advance(hour);
/// assert!(reports.recv().is_err(), "the task is gone, and what it held");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TaskTimer {
    system: SystemRef,
    runner: ActorRef<Job>,
}

/// The state of a single task.
pub(crate) struct Scheduled {
    system: SystemRef,
    runner: ActorRef<Job>,
    repeat: Repeat,
    on_close: bool,
    state: Mutex<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Never,
    /// The delay after the end of each run.
    After(Duration),
    /// The period.
    Every(Duration),
}

struct State {
    phase: Phase,
    due: Duration,
    /// The timer set last.
    timer: Option<TimerHandle>,
    /// `None` while the task runs, and when all is over.
    work: Option<Work>,
}

/// Runs once; returns false if it is not to run again.
type Work = Box<dyn FnMut() -> bool + Send>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    Over,
}

/// The message by which a runner runs a task. `None` after the task has been taken out.
pub(crate) struct Job(Option<StdArc<Scheduled>>);

/// Runs the tasks of a single dispatcher.
struct Runner;

impl Actor for Runner {
    type Message = Job;
    fn receive(&mut self, mut job: Job, _: &mut Context<Job>) -> HandlerResult {
        if let Some(task) = job.0.take() {
            task.run();
        }
        Ok(())
    }
}

impl Drop for Job {
    /// A runner that ends leaves its jobs behind.
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.left_behind();
        }
    }
}

impl SystemRef {
    /// Returns the task timer on the dispatcher `"default"`.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::ShutDown`] when the system has ended.
    pub fn task_timer(&self) -> Result<TaskTimer, ScheduleError> {
        self.task_timer_on("default")
    }

    /// Returns the task timer on the dispatcher of this name. Keep the task timer for the next time: finding it takes
    /// three locks.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Dispatcher`] when the system has no dispatcher of this name, or the dispatcher has no thread to
    /// give; [`ScheduleError::ShutDown`] when the system has ended.
    pub fn task_timer_on(&self, dispatcher: &str) -> Result<TaskTimer, ScheduleError> {
        let shut_down = || ScheduleError::ShutDown { system: self.name().to_owned() };
        let parent = self.core().system_guardian().map_err(|_| shut_down())?;
        let name = runner_name(dispatcher);
        let find = || parent.core().children.get(&name).and_then(|runner| runner.typed::<Job>().ok());
        let runner = match find() {
            Some(runner) => runner,
            None => {
                let plan = Plan {
                    parent: Ok(parent.clone()),
                    name: Some(name.clone()),
                    dispatcher: Some(dispatcher.to_owned()),
                    mailbox: MailboxKind::Unbounded,
                    on_failure: None,
                    routee_index: 0,
                    stash_capacity: None,
                    class: ClassChoice::OfType,
                };
                match spawn_cell::<Runner, _>(plan, ByContext(|_: &mut Context<Job>| Runner)) {
                    Ok(runner) => runner,
                    // Another thread was faster.
                    Err(SpawnError::NameTaken { .. }) => find().ok_or_else(shut_down)?,
                    Err(SpawnError::ParentStopped { .. } | SpawnError::ShutDown { .. }) => {
                        return Err(shut_down());
                    }
                    Err(error) => return Err(ScheduleError::Dispatcher(error)),
                }
            }
        };
        Ok(TaskTimer { system: self.clone(), runner })
    }
}

/// Returns the name of the runner of a dispatcher, whose name may have characters that an actor's can't.
fn runner_name(dispatcher: &str) -> String {
    let mut name = String::from("scheduler-");
    for byte in dispatcher.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => name.push(char::from(byte)),
            other => name.push_str(&format!("%{other:02X}")),
        }
    }
    name
}

impl TaskTimer {
    /// The longest delay or period: some 292 million years.
    pub const DELAY_MAX: Duration = DELAY_MAX;

    /// Runs `task` once, `delay` from now; at once if that is zero. A task that tells: `move || actor.tell(message)`.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::TooLong`], [`ScheduleError::ShutDown`]; the task is dropped.
    pub fn once(
        &self,
        delay: Duration,
        task: impl FnOnce() + Send + 'static,
    ) -> Result<Cancellable, ScheduleError> {
        self.schedule(delay, Repeat::Never, false, one_time(task))
    }

    /// As [`once`](Self::once), but a task that still waits when the system ends runs then, instead of being dropped:
    /// after the last actor has ended, on the thread that ends the system.
    ///
    /// # Errors
    ///
    /// As [`once`](Self::once).
    pub fn once_or_on_close(
        &self,
        delay: Duration,
        task: impl FnOnce() + Send + 'static,
    ) -> Result<Cancellable, ScheduleError> {
        self.schedule(delay, Repeat::Never, true, one_time(task))
    }

    /// Runs `task` `initial` from now, and again `delay` after the end of each run. A panic of it ends it.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::ZeroPeriod`] for a `delay` of zero; else as [`once`](Self::once).
    pub fn fixed_delay(
        &self,
        initial: Duration,
        delay: Duration,
        task: impl FnMut() + Send + 'static,
    ) -> Result<Cancellable, ScheduleError> {
        self.schedule(initial, Repeat::After(delay), false, repeated(task))
    }

    /// Runs `task` `initial` from now, and again at whole multiples of `period` after that: a late run does not
    /// make the next one late. Runs that were missed altogether are skipped, and no two overlap. A panic of it
    /// ends it.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::ZeroPeriod`] for a `period` of zero; else as [`once`](Self::once).
    pub fn fixed_rate(
        &self,
        initial: Duration,
        period: Duration,
        task: impl FnMut() + Send + 'static,
    ) -> Result<Cancellable, ScheduleError> {
        self.schedule(initial, Repeat::Every(period), false, repeated(task))
    }

    /// As [`fixed_delay`](Self::fixed_delay): sends what `make` makes to `target`, until that has ended.
    ///
    /// # Errors
    ///
    /// As [`fixed_delay`](Self::fixed_delay).
    pub fn tell_fixed_delay<M: Send + 'static>(
        &self,
        initial: Duration,
        delay: Duration,
        target: &ActorRef<M>,
        make: impl FnMut() -> M + Send + 'static,
    ) -> Result<Cancellable, ScheduleError> {
        self.schedule(initial, Repeat::After(delay), false, telling(target, make))
    }

    /// As [`fixed_rate`](Self::fixed_rate): sends each message that `make` makes to `target`, until the target has
    /// ended.
    ///
    /// # Errors
    ///
    /// As [`fixed_rate`](Self::fixed_rate).
    pub fn tell_fixed_rate<M: Send + 'static>(
        &self,
        initial: Duration,
        period: Duration,
        target: &ActorRef<M>,
        make: impl FnMut() -> M + Send + 'static,
    ) -> Result<Cancellable, ScheduleError> {
        self.schedule(initial, Repeat::Every(period), false, telling(target, make))
    }

    fn schedule(
        &self,
        delay: Duration,
        repeat: Repeat,
        on_close: bool,
        work: Work,
    ) -> Result<Cancellable, ScheduleError> {
        // A refused task is dropped while the error is on its way.
        let work = Guarded::new(work);
        match repeat {
            Repeat::After(Duration::ZERO) | Repeat::Every(Duration::ZERO) => {
                return Err(ScheduleError::ZeroPeriod);
            }
            Repeat::After(period) | Repeat::Every(period) if period > Self::DELAY_MAX => {
                return Err(ScheduleError::TooLong { delay: period });
            }
            _ if delay > Self::DELAY_MAX => return Err(ScheduleError::TooLong { delay }),
            _ => {}
        }
        let shut_down = || ScheduleError::ShutDown { system: self.system.name().to_owned() };
        if self.runner.is_closed() {
            return Err(shut_down());
        }
        let due = self.system.now().saturating_add(delay);
        let state = State { phase: Phase::Waiting, due, timer: None, work: Some(work.into_inner()) };
        let task = StdArc::new(Scheduled {
            system: self.system.clone(),
            runner: self.runner.clone(),
            repeat,
            on_close,
            state: Mutex::new(state),
        });
        if delay.is_zero() {
            if let Err(refused) = self.runner.try_tell(Job(Some(task.clone()))) {
                // Not to be run at the end: it was never scheduled.
                refused.into_inner().0.take();
                drop_guarded(task);
                return Err(shut_down());
            }
        } else {
            let mut state = lock(&task.state);
            if !task.set_timer(&mut state) {
                drop(state);
                drop_guarded(task);
                return Err(shut_down());
            }
        }
        Ok(Cancellable::new(task))
    }
}

fn one_time(task: impl FnOnce() + Send + 'static) -> Work {
    let mut task = Some(task);
    Box::new(move || {
        if let Some(task) = task.take() {
            task();
        }
        false
    })
}

fn repeated(mut task: impl FnMut() + Send + 'static) -> Work {
    Box::new(move || {
        task();
        true
    })
}

fn telling<M: Send + 'static>(target: &ActorRef<M>, mut make: impl FnMut() -> M + Send + 'static) -> Work {
    let target = target.clone();
    Box::new(move || {
        if target.is_closed() {
            return false;
        }
        target.tell(make());
        true
    })
}

impl DelayedTask for Scheduled {
    fn fired(self: StdArc<Self>) {
        let runner = self.runner.clone();
        // A refused job is closed like all tasks that wait.
        runner.tell(Job(Some(self)));
    }

    fn close(self: StdArc<Self>) {
        if self.on_close {
            self.run();
        } else {
            self.end();
        }
    }
}

impl Scheduled {
    /// Sets the timer for the time when the task is due; returns false if there are no timers any more.
    fn set_timer(self: &StdArc<Self>, state: &mut State) -> bool {
        state.timer = self.system.core().timers().schedule_at(state.due, self.clone());
        state.timer.is_some()
    }

    /// Runs the task, unless another thread has decided otherwise.
    fn run(self: StdArc<Self>) {
        let work = {
            let mut state = lock(&self.state);
            if state.phase != Phase::Waiting {
                return;
            }
            state.phase = Phase::Running;
            state.work.take()
        };
        let Some(mut work) = work else { return };
        let more = guarded(|| Ok(work())).unwrap_or_else(|failure| {
            drop_guarded(failure);
            false
        });
        let now = self.system.now();
        {
            let mut state = lock(&self.state);
            let due = match self.repeat {
                Repeat::Never => None,
                Repeat::After(delay) => Some(now.saturating_add(delay)),
                Repeat::Every(period) => Some(next_in_rate(state.due, period, now)),
            };
            if let (Phase::Running, true, Some(due)) = (state.phase, more, due) {
                state.due = due;
                if self.set_timer(&mut state) {
                    state.phase = Phase::Waiting;
                    state.work = Some(work);
                    return;
                }
            }
            state.phase = Phase::Over;
        }
        drop_guarded(work);
    }

    /// The task's runner has ended and will not run it. A task that is to run at the end waits for that: other actors
    /// may still be there.
    fn left_behind(self: StdArc<Self>) {
        if self.on_close {
            let mut state = lock(&self.state);
            if state.phase == Phase::Waiting {
                state.timer = self.system.core().timers().keep_until_the_end(self.clone());
                if state.timer.is_some() {
                    return;
                }
            }
        }
        self.close();
    }

    /// Makes sure that no run begins any more. Returns true if a run would have begun.
    fn end(&self) -> bool {
        let (prevents, timer, work) = {
            let mut state = lock(&self.state);
            let prevents = match state.phase {
                Phase::Waiting => true,
                Phase::Running => self.repeat != Repeat::Never,
                Phase::Over => false,
            };
            if prevents {
                state.phase = Phase::Over;
            }
            (prevents, state.timer.take(), if prevents { state.work.take() } else { None })
        };
        if let Some(timer) = timer {
            self.system.core().timers().cancel(timer);
        }
        drop_guarded(work);
        prevents
    }
}

impl Cancel for Scheduled {
    fn cancel(&self) -> bool {
        self.end()
    }

    fn is_over(&self) -> bool {
        let phase = lock(&self.state).phase;
        phase == Phase::Over || phase == Phase::Running && self.repeat == Repeat::Never
    }
}

impl fmt::Debug for TaskTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler").field("runner", &self.runner.path()).finish_non_exhaustive()
    }
}
