//! The coordinated shutdown of a system: its tasks, and the run over them.

use crate::actor::actor::HandlerResult;
use crate::core::cancellable::{Cancel, Cancellable};
use crate::core::extensions::Extension;
use crate::core::system::{SystemCore, SystemRef};
use crate::dispatch::stepping::Reached;
use crate::settings::phases::{Phase, Phases};
use crate::shutdown::report::{ShutdownReason, ShutdownReport, ShutdownRunError};
use crate::shutdown::run;
use crate::shutdown::run::Work;
use crate::sync::{Condvar, Mutex, lock};
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::{Guarded, quietly};
use crate::util::stderr_log::{StderrLog, report};
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc as StdArc, Weak as StdWeak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The lower bound of [`CoordinatedShutdown::total_timeout`].
const TOTAL_TIMEOUT_MIN: Duration = Duration::from_secs(3);

/// The coordinated shutdown of a single system, and its only run, begun or not; see the module `shutdown`.
///
/// It is a future, too, under any executor: it is ready when the run is over, with the outcome that
/// [`wait`](Self::wait) returns. It begins no run. It can be polled again after that, with the same outcome.
///
/// ```
/// use pointsman::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop").build()?;
/// let shutdown = system.coordinated_shutdown();
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let report = runtime.block_on(async { shutdown.run("end of the day").await })?;
/// assert_eq!(report.ledger.balance(), 0);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "ShutdownRun")]
pub struct CoordinatedShutdown {
    pub(crate) system: SystemRef,
    /// The place of this handle's waker, once it has been polled.
    place: Option<u64>,
}

/// The state that a system keeps of its coordinated shutdown.
pub(crate) struct Coordinator {
    /// The phases in their order.
    pub(crate) phases: Vec<(String, Phase)>,
    pub(crate) terminates_system: bool,
    stderr: StderrLog,
    pub(crate) state: Mutex<State>,
    /// Signalled when the run is over.
    pub(crate) over: Condvar,
}

pub(crate) struct State {
    pub(crate) stage: Stage,
    /// The tasks by phase.
    pub(crate) tasks: Vec<Vec<Task>>,
    next_task: u64,
    /// The number of the last task of which the log has warned that it has not run.
    warned_of: u64,
    /// The wakers of handles that are polled, by their places.
    wakers: BTreeMap<u64, Waker>,
    next_place: u64,
}

pub(crate) enum Stage {
    NotBegun,
    Running {
        reason: ShutdownReason,
        /// The phase whose tasks run; tasks may be added to later ones.
        phase: usize,
    },
    Over {
        reason: Option<ShutdownReason>,
        outcome: Box<Result<ShutdownReport, ShutdownRunError>>,
    },
}

/// A task that waits for its phase.
pub(crate) struct Task {
    pub(crate) number: u64,
    pub(crate) name: String,
    /// It holds what is the user's guarded.
    pub(crate) work: Work,
}

impl Coordinator {
    /// # Errors
    ///
    /// The cycle if the phases cannot be put in order, as [`BuildError::PhaseCycle`](crate::BuildError::PhaseCycle) has
    /// it.
    pub(crate) fn new(phases: Phases, stderr: StderrLog) -> Result<Self, Vec<String>> {
        let terminates_system = phases.terminates_system;
        let phases = phases.in_order()?;
        let tasks = phases.iter().map(|_| Vec::new()).collect();
        let state = State {
            stage: Stage::NotBegun,
            tasks,
            next_task: 0,
            warned_of: 0,
            wakers: BTreeMap::new(),
            next_place: 0,
        };
        Ok(Self { phases, terminates_system, stderr, state: Mutex::new(state), over: Condvar::new() })
    }

    /// Returns the place of the phase of this name.
    fn phase(&self, phase: &str) -> Result<usize, ShutdownSetupError> {
        let place = self.phases.iter().position(|(name, _)| name == phase);
        place.ok_or_else(|| ShutdownSetupError::UnknownPhase {
            phase: phase.to_owned(),
            known: self.phases.iter().map(|(name, _)| name.clone()).collect(),
        })
    }

    /// Returns the coordinator of a system.
    pub(crate) fn of(system: &SystemCore) -> &Self {
        system.extensions.get()
    }

    /// Returns the tasks that the log has not warned of before, by name and phase.
    fn unrun(&self, state: &mut State) -> Vec<String> {
        let warned_of = std::mem::replace(&mut state.warned_of, state.next_task);
        let named = |((phase, _), tasks): (&(String, Phase), &Vec<Task>)| {
            let new = tasks.iter().filter(|task| task.number > warned_of);
            new.map(|task| format!("{:?} of phase {phase:?}", task.name)).collect::<Vec<_>>()
        };
        self.phases.iter().zip(&state.tasks).flat_map(named).collect()
    }
}

impl Coordinator {
    /// Wakes all that wait for the end of the run.
    pub(crate) fn tell_of_end(&self, wakers: BTreeMap<u64, Waker>) {
        self.over.notify_all();
        // A waker is foreign code.
        wakers.into_values().for_each(|waker| quietly(|| waker.wake()));
    }
}

impl State {
    /// Takes the wakers of a run that is over.
    pub(crate) fn take_wakers(&mut self) -> BTreeMap<u64, Waker> {
        std::mem::take(&mut self.wakers)
    }
}

impl Extension for Coordinator {
    /// If no run is under way, none will be.
    fn tree_ended(&self, system: &str) {
        let (dropped, unrun, wakers) = {
            let mut state = lock(&self.state);
            if !matches!(state.stage, Stage::NotBegun) {
                return;
            }
            let error = ShutdownRunError::SystemEnded { system: system.to_owned() };
            state.stage = Stage::Over { reason: None, outcome: Box::new(Err(error)) };
            let unrun = self.unrun(&mut state);
            (std::mem::take(&mut state.tasks), unrun, state.take_wakers())
        };
        self.tell_of_end(wakers);
        warn_of_unrun(self.stderr, system, "ended", &unrun);
        // A task that holds the system would keep itself in memory.
        drop(dropped);
    }

    /// The system is dropped while actors run that may never end. The tasks are kept, since a handle may still begin a
    /// run.
    fn abandoned(&self, system: &str) {
        let unrun = {
            let mut state = lock(&self.state);
            if !matches!(state.stage, Stage::NotBegun) {
                return;
            }
            self.unrun(&mut state)
        };
        warn_of_unrun(self.stderr, system, "dropped while actors still run,", &unrun);
    }
}

/// Warns in the log that these tasks have not run.
fn warn_of_unrun(stderr: StderrLog, system: &str, what: &str, tasks: &[String]) {
    if tasks.is_empty() {
        return;
    }
    // The logger is user code.
    quietly(|| {
        report!(
            stderr,
            Warning,
            log::Level::Warn,
            "system {system:?}: {what} without a coordinated shutdown, tasks not run: {}; call `run` on the \
             coordinated shutdown before the system is stopped or dropped",
            tasks.join(", ")
        );
    });
}

impl CoordinatedShutdown {
    pub(crate) fn coordinator(&self) -> &Coordinator {
        Coordinator::of(self.system.core())
    }

    /// Returns the names of the phases, in the order in which they run.
    pub fn phases(&self) -> Vec<&str> {
        self.coordinator().phases.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Adds a task to a phase: a closure that may block, run on a thread of its own. Several tasks may have the same
    /// name; each of them runs. While a phase runs, tasks may be added to later phases.
    ///
    /// A closure that is still running when the phase's time is over cannot be interrupted: it goes on in the
    /// background, and the run does not wait for it.
    ///
    /// # Errors
    ///
    /// [`ShutdownSetupError`]: an unknown phase, an empty name, a phase that has begun. The task is dropped.
    pub fn add_task(
        &self,
        phase: &str,
        name: &str,
        task: impl FnOnce() -> HandlerResult + Send + 'static,
    ) -> Result<Cancellable, ShutdownSetupError> {
        self.add_future(phase, name, move || async move { task() })
    }

    /// As [`add_task`](Self::add_task) for a future, which `make` makes when the phase begins. It is polled on a
    /// thread of its own, without an async runtime, and dropped when the phase's time is over.
    ///
    /// # Errors
    ///
    /// As [`add_task`](Self::add_task).
    pub fn add_future<F>(
        &self,
        phase: &str,
        name: &str,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Cancellable, ShutdownSetupError>
    where
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        // A refused task is dropped while the error is on its way.
        let make = Guarded::new(make);
        let coordinator = self.coordinator();
        let index = coordinator.phase(phase)?;
        if name.is_empty() {
            return Err(ShutdownSetupError::EmptyName { phase: phase.to_owned() });
        }
        let work: Work = Box::new(move || Box::pin(make.into_inner()()));
        let number = {
            let mut state = lock(&coordinator.state);
            let is_open = match &state.stage {
                Stage::NotBegun => true,
                Stage::Running { phase, .. } => index > *phase,
                Stage::Over { .. } => false,
            };
            if is_open {
                state.next_task += 1;
                let number = state.next_task;
                state.tasks[index].push(Task { number, name: name.to_owned(), work });
                number
            } else {
                return Err(ShutdownSetupError::TooLate { phase: phase.to_owned(), task: name.to_owned() });
            }
        };
        let system = StdArc::downgrade(self.system.core());
        Ok(Cancellable::new(StdArc::new(AddedTask { system, phase: index, number })))
    }

    /// Begins the shutdown and returns at once, this handle again; may be called from an actor, a task, or a signal's
    /// thread. It runs once: later calls change nothing, not even the reason, and get the same outcome.
    #[must_use = "the run goes on by itself, but only `wait` or `.await` tells whether it succeeded"]
    pub fn run(&self, reason: impl Into<ShutdownReason>) -> Self {
        self.begin(reason.into(), 0)
    }

    /// As [`run`](Self::run), but the phases before `phase` are left out.
    ///
    /// # Errors
    ///
    /// [`ShutdownSetupError::UnknownPhase`]; nothing has begun then.
    pub fn run_from(
        &self,
        phase: &str,
        reason: impl Into<ShutdownReason>,
    ) -> Result<Self, ShutdownSetupError> {
        let first = self.coordinator().phase(phase)?;
        Ok(self.begin(reason.into(), first))
    }

    /// Waits until the run is over, also if other code begins it, and returns its outcome: the same for every caller.
    /// The threads are joined afterwards, by [`System::shutdown`](crate::System::shutdown) or the system's destructor.
    ///
    /// # Errors
    ///
    /// [`ShutdownRunError`]: a phase that is not recovered from has failed, so that the system may go on running; the
    /// system ended without a run; or the caller is on one of the system's own threads, a work-stealing worker, a turn
    /// on a calling-thread dispatcher, or a task of the run.
    ///
    /// On the thread of a `TestSystem` (feature `testkit`) turns are run meanwhile. Its clock stands: a task that never
    /// ends keeps the call waiting for ever, unless another thread moves the clock.
    pub fn wait(&self) -> Result<ShutdownReport, ShutdownRunError> {
        /// How long the thread of a test sleeps before it looks for turns to run again.
        const NAP: Duration = Duration::from_millis(1);
        let core = self.system.core();
        if crate::dispatch::may_block::must_not_wait() || core.runs_current_thread() || run::is_task_of(core)
        {
            return Err(ShutdownRunError::OwnThread);
        }
        loop {
            let reached = core.run_turns(&mut || self.is_over());
            let state = lock(&Coordinator::of(core).state);
            if let Stage::Over { outcome, .. } = &state.stage {
                return (**outcome).clone();
            }
            let over = &Coordinator::of(core).over;
            // The run has threads of its own, so there may be turns again later.
            if reached == Reached::Elsewhere {
                drop(over.wait(state));
            } else {
                drop(over.wait_timeout(state, NAP));
            }
        }
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        matches!(lock(&Coordinator::of(self.system.core()).state).stage, Stage::Over { .. })
    }

    /// Returns the reason of the shutdown, after a run has begun.
    pub fn reason(&self) -> Option<ShutdownReason> {
        match &lock(&self.coordinator().state).stage {
            Stage::NotBegun => None,
            Stage::Running { reason, .. } => Some(reason.clone()),
            Stage::Over { reason, .. } => reason.clone(),
        }
    }

    /// Returns the longest time of a run: the timeouts of the enabled phases that have tasks now, and at least 3 s. A
    /// supervisor of the process should grant this time.
    pub fn total_timeout(&self) -> Duration {
        let coordinator = self.coordinator();
        let state = lock(&coordinator.state);
        let busy = coordinator.phases.iter().zip(&state.tasks).filter(|((name, phase), tasks)| {
            let ends_system = coordinator.terminates_system && name == Phase::ACTOR_SYSTEM_TERMINATE;
            phase.enabled && (ends_system || !tasks.is_empty())
        });
        let sum = busy.fold(Duration::ZERO, |sum, ((_, phase), _)| sum.saturating_add(phase.timeout));
        sum.max(TOTAL_TIMEOUT_MIN)
    }
}

impl Future for CoordinatedShutdown {
    type Output = Result<ShutdownReport, ShutdownRunError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Cloned and dropped without the lock: both are foreign code.
        let waker = cx.waker().clone();
        let this = &mut *self;
        let former = {
            let mut state = lock(&Coordinator::of(this.system.core()).state);
            if let Stage::Over { outcome, .. } = &state.stage {
                return Poll::Ready((**outcome).clone());
            }
            let place = *this.place.get_or_insert_with(|| {
                state.next_place += 1;
                state.next_place
            });
            state.wakers.insert(place, waker)
        };
        quietly(|| drop(former));
        Poll::Pending
    }
}

/// A clone is a handle of its own, and is polled for itself.
impl Clone for CoordinatedShutdown {
    fn clone(&self) -> Self {
        Self { system: self.system.clone(), place: None }
    }
}

impl Drop for CoordinatedShutdown {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let former = lock(&Coordinator::of(self.system.core()).state).wakers.remove(&place);
            quietly(|| drop(former));
        }
    }
}

impl fmt::Debug for CoordinatedShutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoordinatedShutdown").field("reason", &self.reason()).finish_non_exhaustive()
    }
}

impl SystemRef {
    /// Returns the coordinated shutdown, which ends the system in phases.
    pub fn coordinated_shutdown(&self) -> CoordinatedShutdown {
        CoordinatedShutdown { system: self.clone(), place: None }
    }
}

/// A task of a coordinated shutdown, as its [`Cancellable`] sees it.
struct AddedTask {
    system: StdWeak<SystemCore>,
    phase: usize,
    number: u64,
}

impl AddedTask {
    /// Calls `act` with the waiting tasks of the phase and the place of this task among them, if it waits.
    fn find<R>(&self, act: impl FnOnce(&mut Vec<Task>, usize) -> R) -> Option<R> {
        let system = self.system.upgrade()?;
        let mut state = lock(&Coordinator::of(&system).state);
        let tasks = state.tasks.get_mut(self.phase)?;
        let place = tasks.iter().position(|task| task.number == self.number)?;
        Some(act(tasks, place))
    }
}

impl Cancel for AddedTask {
    fn cancel(&self) -> bool {
        // Dropped without the lock.
        let removed = self.find(|tasks, place| tasks.remove(place));
        removed.is_some()
    }

    fn is_over(&self) -> bool {
        self.find(|_, _| ()).is_none()
    }
}

/// The reason why a task or callback was not added to the shutdown of a system, or why a run did not begin.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "AddTaskError")]
#[doc(alias = "UnknownPhase")]
#[doc(alias = "SystemEnded")]
pub enum ShutdownSetupError {
    /// There is no such phase.
    UnknownPhase {
        /// The name.
        phase: String,
        /// The names of the existing phases, in order.
        known: Vec<String>,
    },
    /// The task has no name.
    EmptyName {
        /// The phase.
        phase: String,
    },
    /// The phase has begun, or the run is over: the task would not run.
    TooLate {
        /// The phase.
        phase: String,
        /// The task.
        task: String,
    },
    /// The reference leads to no actor, so there is no end to wait for.
    NotAnActor {
        /// The task.
        task: String,
    },
    /// The system has ended already: the [termination callback](SystemRef::on_termination) would not run.
    SystemEnded {
        /// The name of the system.
        system: String,
    },
}

impl fmt::Display for ShutdownSetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPhase { phase, known } => write!(
                f,
                "unknown shutdown phase {phase:?}: add it with System::builder(..).shutdown_phases(..), there are \
                 {known:?}"
            ),
            Self::EmptyName { phase } => {
                write!(f, "a task of shutdown phase {phase:?} has an empty name: give it one for the report")
            }
            Self::TooLate { phase, task } => {
                write!(f, "task {task:?} comes too late: phase {phase:?} has begun, add it to a later one")
            }
            Self::NotAnActor { task } => {
                write!(f, "task {task:?} is to wait for an actor, but the reference leads to none")
            }
            Self::SystemEnded { system } => {
                write!(f, "system {system:?} has ended: register termination callbacks before")
            }
        }
    }
}

impl std::error::Error for ShutdownSetupError {}

debug_by_display! { ShutdownSetupError }
