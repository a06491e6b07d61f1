//! The report of a coordinated shutdown.

use crate::core::ledger::Ledger;
use crate::util::debug_by_display::debug_by_display;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The reason of a shutdown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShutdownReason {
    /// The process got this signal.
    Signal(i32),
    /// A reason of the program's own.
    Other(Cow<'static, str>),
}

impl From<&'static str> for ShutdownReason {
    fn from(text: &'static str) -> Self {
        Self::Other(text.into())
    }
}

impl From<String> for ShutdownReason {
    fn from(text: String) -> Self {
        Self::Other(text.into())
    }
}

impl fmt::Display for ShutdownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// The phases and tasks of a coordinated shutdown, and the final ledger. Times are by the system's clock.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// The system's name.
    pub system: String,
    /// The reason of the first call.
    pub reason: ShutdownReason,
    /// The phases that the run came to, in order.
    pub phases: Vec<PhaseReport>,
    /// The time of the whole run.
    pub took: Duration,
    /// The ledger at the end. When the last phase has ended every actor the ledger balances: nothing is queued, and
    /// every message that was sent is accounted for, unless threads outside the system still send.
    pub ledger: Ledger,
}

/// The report of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PhaseReport {
    /// Its name.
    pub name: String,
    /// Its outcome.
    pub outcome: PhaseOutcome,
    /// Its time.
    pub took: Duration,
    /// Its tasks, in the order in which they were added; cancelled tasks are left out.
    pub tasks: Vec<TaskReport>,
}

/// The outcome of a phase, or of a task of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "TaskOutcome")]
pub enum PhaseOutcome {
    /// The task returned `Ok`; of the phase, every task did, or there was none.
    Done,
    /// The phase is disabled: its tasks did not run.
    Skipped,
    /// The task returned an error or panicked, with the text in [`TaskReport::failure`]; of the phase, a task did.
    Failed,
    /// The task was still running when the time of the phase was over. A future is dropped, a closure goes on in the
    /// background. Of the phase: a task was still running, and none has failed.
    TimedOut,
}

/// The report of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskReport {
    /// Its name.
    pub name: String,
    /// Its outcome.
    pub outcome: PhaseOutcome,
    /// The text of the error or panic of a task that failed.
    pub failure: Option<String>,
    /// Its time.
    pub took: Duration,
    /// The actors that had not ended when the task that ends the system timed out, as
    /// [`ShutdownError::Stuck`](crate::ShutdownError::Stuck) names them. Empty otherwise.
    pub stuck: Vec<String>,
}

impl TaskReport {
    pub(crate) fn new(name: String, outcome: PhaseOutcome, took: Duration) -> Self {
        Self { name, outcome, failure: None, took, stuck: Vec::new() }
    }
}

/// The outcome of a task, with the text of its failure.
pub(crate) struct Ended<'a>(pub &'a TaskReport);

impl fmt::Display for Ended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.outcome.fmt(f)?;
        self.0.failure.as_ref().map_or(Ok(()), |text| write!(f, " ({text})"))
    }
}

/// Names the actors that a task still waits for; writes nothing if there are none.
pub(crate) struct StillRunning<'a>(pub &'a [String]);

impl fmt::Display for StillRunning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            stuck => write!(f, " (still running: {})", stuck.join(", ")),
        }
    }
}

/// A line for each phase that had tasks, and the ledger.
impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "system {:?} shut down ({}) in {:?}", self.system, self.reason, self.took)?;
        for phase in self.phases.iter().filter(|phase| !phase.tasks.is_empty()) {
            write!(f, "  {}: {} in {:?}:", phase.name, phase.outcome, phase.took)?;
            for (number, task) in phase.tasks.iter().enumerate() {
                let comma = if number > 0 { "," } else { "" };
                let running = StillRunning(&task.stuck);
                let ended = Ended(task);
                write!(f, "{comma} {} {ended} in {:?}{running}", task.name, task.took)?;
            }
            writeln!(f)?;
        }
        write!(f, "  {}", self.ledger)
    }
}

impl fmt::Display for PhaseOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
        })
    }
}

/// The reason why a coordinated shutdown did not complete.
#[derive(Clone)]
#[non_exhaustive]
pub enum ShutdownRunError {
    /// A task failed in a phase that is not recovered from; later phases were not run.
    TaskFailed {
        /// The phase.
        phase: String,
        /// The task.
        task: String,
        /// The text of the failure.
        text: String,
        /// The report so far.
        report: Box<ShutdownReport>,
    },
    /// The time of a phase that is not recovered from was over; later phases were not run.
    TimedOut {
        /// The phase.
        phase: String,
        /// Its timeout.
        timeout: Duration,
        /// The tasks that were still running.
        tasks: Vec<String>,
        /// If one of them is the task that ends the system: the actors that had not ended, as
        /// [`ShutdownError::Stuck`](crate::ShutdownError::Stuck) names them.
        stuck: Vec<String>,
        /// The report so far.
        report: Box<ShutdownReport>,
    },
    /// The system ended otherwise before a run was begun: its tasks were dropped.
    SystemEnded {
        /// The system.
        system: String,
    },
    /// The operating system gave no thread for the run.
    Thread {
        /// The text of the error.
        text: String,
    },
    /// The caller waits on a thread of the system, which the end of the system may need.
    OwnThread,
}

impl fmt::Display for ShutdownRunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TaskFailed { phase, task, text, .. } => {
                write!(f, "shutdown stopped in phase {phase:?}: task {task:?} failed: {text}")
            }
            Self::TimedOut { phase, timeout, tasks, stuck, .. } => {
                write!(
                    f,
                    "shutdown stopped in phase {phase:?}: {tasks:?} still running after {timeout:?}, "
                )?;
                if !stuck.is_empty() {
                    write!(f, "these actors have not ended: {stuck:?}, ")?;
                }
                f.write_str("give the phase more time or let it recover")
            }
            Self::SystemEnded { system } => {
                write!(f, "system {system:?} ended without a coordinated shutdown: call `run` before `stop`")
            }
            Self::Thread { text } => write!(f, "no thread for the coordinated shutdown: {text}"),
            Self::OwnThread => f.write_str(
                "a thread of the system cannot wait for the system's shutdown: wait on another thread",
            ),
        }
    }
}

impl std::error::Error for ShutdownRunError {}

debug_by_display! { ShutdownRunError }
