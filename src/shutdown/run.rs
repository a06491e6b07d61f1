//! A run: the phases in sequence, the tasks of each phase at the same time.
//!
//! A thread leads the run, and each task has a thread of its own, on which its future is polled. So a task may block,
//! and no task depends on the dispatchers whose actors it ends. The leader waits for its tasks or for an alarm at the
//! phase's deadline, by the system's clock.

use crate::actor::actor::HandlerResult;
use crate::core::polls_within::PollsWithin;
use crate::core::system::SystemCore;
use crate::failure::guarded;
use crate::scheduler::affinity::unpinned;
use crate::settings::phases::Phase;
use crate::shutdown::coordinated::{CoordinatedShutdown, Coordinator, Stage, Task};
use crate::shutdown::report::{
    Ended, PhaseOutcome, PhaseReport, ShutdownReason, ShutdownReport, ShutdownRunError, StillRunning,
    TaskReport,
};
use crate::sync::thread::{self, Thread};
use crate::sync::{Condvar, Mutex, lock, per_thread};
use crate::time::alarm::Alarms;
use crate::util::panic::{Guarded, quietly};
use crate::util::stderr_log::report;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// The work of a task: made when its phase begins.
pub(crate) type Work = Box<dyn FnOnce() -> Running + Send>;

type Running = Pin<Box<dyn Future<Output = HandlerResult> + Send>>;

per_thread! {
    /// The system for whose run this thread performs a task. The pointer is only compared: the task keeps the system.
    static TASK_OF: Cell<*const SystemCore> = Cell::new(std::ptr::null());
}

/// Whether the calling thread performs a task of this system's run, which waits for it. A task of another system's run
/// may wait here, and so end this system with the other.
pub(crate) fn is_task_of(core: &SystemCore) -> bool {
    TASK_OF.try_with(|system| std::ptr::eq(system.get(), core)).unwrap_or(false)
}

/// The task that ends the system.
const TERMINATE: &str = "terminate-system";

/// The number of the task that ends the system; the numbers of the program's tasks begin behind it.
const ENDS_SYSTEM: u64 = 0;

impl CoordinatedShutdown {
    pub(crate) fn begin(&self, reason: ShutdownReason, first: usize) -> Self {
        let coordinator = self.coordinator();
        let is_first = {
            let mut state = lock(&coordinator.state);
            let is_first = matches!(state.stage, Stage::NotBegun);
            if is_first {
                state.stage = Stage::Running { reason: reason.clone(), phase: first };
            }
            is_first
        };
        if is_first {
            let core = self.system.core().clone();
            let leader = thread::Builder::new().name("pointsman-shutdown".to_owned());
            if let Err(error) = leader.spawn(unpinned(move || lead(&core, reason, first))) {
                end(self.system.core(), Err(ShutdownRunError::Thread { text: error.to_string() }));
            }
        }
        self.clone()
    }
}

/// Leads the run, on the leader's thread.
fn lead(core: &StdArc<SystemCore>, reason: ShutdownReason, first: usize) {
    let outcome = run_phases(core, reason, first);
    match &outcome {
        Ok(report) => quietly(|| log::info!("{report}")),
        Err(error) => {
            quietly(|| report!(core.stderr, Warning, log::Level::Error, "system {:?}: {error}", core.name))
        }
    }
    end(core, outcome);
}

/// The run is over.
fn end(core: &SystemCore, outcome: Result<ShutdownReport, ShutdownRunError>) {
    let coordinator = Coordinator::of(core);
    let (dropped, wakers) = {
        let mut state = lock(&coordinator.state);
        let reason = match &state.stage {
            Stage::Running { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        state.stage = Stage::Over { reason, outcome: Box::new(outcome) };
        (std::mem::take(&mut state.tasks), state.take_wakers())
    };
    coordinator.tell_of_end(wakers);
    drop(dropped);
}

fn run_phases(
    core: &StdArc<SystemCore>,
    reason: ShutdownReason,
    first: usize,
) -> Result<ShutdownReport, ShutdownRunError> {
    let began = core.now();
    let phases = &Coordinator::of(core).phases;
    let mut reports: Vec<PhaseReport> = Vec::new();
    let mut failed = None;
    for (index, (name, settings)) in phases.iter().enumerate().skip(first) {
        let tasks = tasks_of(core, index);
        let report = if settings.enabled {
            run_phase(core, name, settings.timeout, tasks)
        } else {
            skip(core, name, tasks)
        };
        let is_good = matches!(report.outcome, PhaseOutcome::Done | PhaseOutcome::Skipped);
        if !is_good && settings.recover {
            quietly(|| warn(core, &report));
        }
        reports.push(report);
        if !is_good && !settings.recover {
            failed = Some(settings.timeout);
            break;
        }
    }
    let took = core.now().saturating_sub(began);
    let ledger = core.ledger_now();
    let report = ShutdownReport { system: core.name.clone(), reason, phases: reports, took, ledger };
    match failed {
        Some(timeout) => Err(error(report, timeout)),
        None => Ok(report),
    }
}

/// Returns the tasks of a phase that begins; no more can be added to it.
fn tasks_of(core: &StdArc<SystemCore>, index: usize) -> Vec<Task> {
    let coordinator = Coordinator::of(core);
    let mut tasks = {
        let mut state = lock(&coordinator.state);
        if let Stage::Running { phase, .. } = &mut state.stage {
            *phase = index;
        }
        std::mem::take(&mut state.tasks[index])
    };
    if coordinator.terminates_system && coordinator.phases[index].0 == Phase::ACTOR_SYSTEM_TERMINATE {
        let core = core.clone();
        let terminate = async move {
            core.begin_end();
            core.wait_for_tree();
            Ok(())
        };
        tasks.push(Task {
            number: ENDS_SYSTEM,
            name: TERMINATE.to_owned(),
            work: Box::new(|| Box::pin(terminate)),
        });
    }
    tasks
}

/// The phase that failed is the last phase.
fn error(report: ShutdownReport, timeout: Duration) -> ShutdownRunError {
    let last = report.phases.last();
    let phase = last.map(|phase| phase.name.clone()).unwrap_or_default();
    let tasks = last.map(|phase| phase.tasks.clone()).unwrap_or_default();
    let failed = tasks.iter().find_map(|task| Some((task.name.clone(), task.failure.clone()?)));
    let report = Box::new(report);
    match failed {
        Some((task, text)) => ShutdownRunError::TaskFailed { phase, task, text, report },
        None => {
            let open = tasks.into_iter().filter(|task| task.outcome == PhaseOutcome::TimedOut);
            let (tasks, stuck): (_, Vec<_>) = open.map(|task| (task.name, task.stuck)).unzip();
            ShutdownRunError::TimedOut { phase, timeout, tasks, stuck: stuck.concat(), report }
        }
    }
}

fn warn(core: &SystemCore, report: &PhaseReport) {
    for task in &report.tasks {
        if task.outcome != PhaseOutcome::Done {
            let PhaseReport { name, .. } = report;
            report!(
                core.stderr,
                Warning,
                log::Level::Warn,
                "system {:?}: shutdown phase {name:?}: task {:?} {}{}, going on",
                core.name,
                task.name,
                Ended(task),
                StillRunning(&task.stuck)
            );
        }
    }
}

fn skip(core: &SystemCore, name: &str, tasks: Vec<Task>) -> PhaseReport {
    quietly(|| {
        log::info!(
            "system {:?}: shutdown phase {name:?} is disabled: {} tasks skipped",
            core.name,
            tasks.len()
        );
    });
    let skipped = |task: Task| TaskReport::new(task.name, PhaseOutcome::Skipped, Duration::ZERO);
    let tasks = tasks.into_iter().map(skipped).collect();
    PhaseReport { name: name.to_owned(), outcome: PhaseOutcome::Skipped, took: Duration::ZERO, tasks }
}

/// The state that the leader and the tasks of a phase share.
struct Progress {
    state: Mutex<ProgressState>,
    /// Signalled when the leader has to look.
    changed: Condvar,
}

/// The end of a task: the text of its failure, if it failed, and the time that it took.
type TaskEnd = (Result<(), String>, Duration);

struct ProgressState {
    /// The end of each task.
    ends: Vec<Option<TaskEnd>>,
    /// The threads of tasks that wait for a waker.
    threads: Vec<Thread>,
    /// The alarm at the deadline has rung.
    has_rung: bool,
    /// The phase is over: the leader does not wait for its tasks any more.
    is_over: bool,
}

impl Wake for Progress {
    fn wake(self: StdArc<Self>) {
        lock(&self.state).has_rung = true;
        self.changed.notify_all();
    }
}

fn run_phase(core: &StdArc<SystemCore>, name: &str, timeout: Duration, tasks: Vec<Task>) -> PhaseReport {
    let began = core.now();
    if tasks.is_empty() {
        let (outcome, took) = (PhaseOutcome::Done, Duration::ZERO);
        return PhaseReport { name: name.to_owned(), outcome, took, tasks: Vec::new() };
    }
    let progress = StdArc::new(Progress {
        state: Mutex::new(ProgressState {
            ends: tasks.iter().map(|_| None).collect(),
            threads: Vec::new(),
            has_rung: false,
            is_over: false,
        }),
        changed: Condvar::new(),
    });
    let ends_system = tasks.iter().position(|task| task.number == ENDS_SYSTEM);
    let mut names = Vec::new();
    for (place, task) in tasks.into_iter().enumerate() {
        // A zero byte in a thread's name would panic.
        let builder = thread::Builder::new().name(task.name.replace('\0', ""));
        names.push(task.name);
        let (core, shared) = (core.clone(), progress.clone());
        let body = move || {
            let _ = TASK_OF.try_with(|system| system.set(StdArc::as_ptr(&core)));
            shared.perform(&core, task.work, place, || core.now().saturating_sub(began));
        };
        if let Err(error) = builder.spawn(body) {
            let end = (Err(format!("no thread for it: {error}")), Duration::ZERO);
            lock(&progress.state).ends[place] = Some(end);
        }
    }
    let ends = progress.wait(core, began.saturating_add(timeout));
    let took = core.now().saturating_sub(began);
    let report = |(name, end): (String, Option<TaskEnd>)| match end {
        None => TaskReport::new(name, PhaseOutcome::TimedOut, took),
        Some((Ok(()), took)) => TaskReport::new(name, PhaseOutcome::Done, took),
        Some((Err(text), took)) => {
            TaskReport { failure: Some(text), ..TaskReport::new(name, PhaseOutcome::Failed, took) }
        }
    };
    let mut tasks: Vec<TaskReport> = names.into_iter().zip(ends).map(report).collect();
    if let Some(task) = ends_system.and_then(|place| tasks.get_mut(place)) {
        if task.outcome == PhaseOutcome::TimedOut {
            task.stuck = core.stuck();
        }
    }
    let any = |outcome| tasks.iter().any(|task| task.outcome == outcome).then_some(outcome);
    let outcome =
        any(PhaseOutcome::Failed).or_else(|| any(PhaseOutcome::TimedOut)).unwrap_or(PhaseOutcome::Done);
    PhaseReport { name: name.to_owned(), outcome, took, tasks }
}

impl Progress {
    /// Waits until every task has ended or the time is over, and returns their ends.
    fn wait(self: &StdArc<Self>, core: &SystemCore, due: Duration) -> Vec<Option<TaskEnd>> {
        let timers = core.timers();
        let mut alarm = None;
        loop {
            // Sets the alarm before it looks at the clock, or a move of the clock in between is missed. Does both
            // without the lock: the clock may be the user's, and the alarm takes it.
            let key = *alarm.get_or_insert_with(|| timers.wake_at(due, Waker::from(self.clone())));
            let is_due = timers.now() >= due;
            let mut state = lock(&self.state);
            if is_due || state.ends.iter().all(Option::is_some) {
                state.is_over = true;
                let ends = state.ends.clone();
                let threads = std::mem::take(&mut state.threads);
                drop(state);
                Alarms::cancel(timers, key);
                threads.iter().for_each(Thread::unpark);
                return ends;
            }
            if std::mem::take(&mut state.has_rung) {
                // The alarm is used up; if it rang early, the timers have ended, and another alarm goes by the
                // machine's clock.
                alarm = None;
                continue;
            }
            drop(self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()));
        }
    }

    /// Performs a task, on its thread. After the end of the phase the task's future is dropped.
    fn perform(&self, core: &SystemCore, work: Work, place: usize, took: impl FnOnce() -> Duration) {
        lock(&self.state).threads.push(thread::current());
        let waker = Waker::from(StdArc::new(Unpark(thread::current())));
        let within = PollsWithin::of(core);
        let running = match guarded(|| Ok(within.run(work))) {
            Ok(running) => running,
            Err(failure) => return self.end(place, Err(failure), took()),
        };
        // Guarded: it may be dropped while the program's function unwinds.
        let mut running = Guarded::new(running);
        let done = loop {
            let polled =
                guarded(|| Ok(within.run(|| running.as_mut().poll(&mut Context::from_waker(&waker)))));
            match polled {
                Ok(Poll::Ready(done)) => break done,
                Err(failure) => break Err(failure),
                Ok(Poll::Pending) if lock(&self.state).is_over => {
                    return quietly(|| within.run(|| drop(running)));
                }
                Ok(Poll::Pending) => thread::park(),
            }
        };
        quietly(|| within.run(|| drop(running)));
        self.end(place, done, took());
    }

    fn end(&self, place: usize, done: HandlerResult, took: Duration) {
        // User code makes the text.
        let done = done.map_err(|failure| guarded(|| Ok(failure.to_string())).unwrap_or_default());
        lock(&self.state).ends[place] = Some((done, took));
        self.changed.notify_all();
    }
}

/// Wakes a task's thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: StdArc<Self>) {
        self.0.unpark();
    }
}
