//! A dispatcher is a recipe for the threads that actors run on; a system starts the recipe's running form.

use crate::dispatch::running::Running;
use crate::dispatch::{blocking, calling_thread};

use crate::dispatch::blocking::BlockingPool;
use crate::dispatch::pinned::PinnedThreads;
use crate::mailbox::kind::{MailboxChoice, MailboxRequirement};
use crate::scheduler::error::StartError;
use crate::scheduler::pool;
use crate::scheduler::pool::{Pool, TurnHooks};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Messages that an actor handles in one turn before it makes room for others.
const THROUGHPUT_DEFAULT: u32 = 64;

/// How long a blocking thread waits for work before it ends.
const KEEP_ALIVE_DEFAULT: Duration = Duration::from_secs(10);

/// Recipe for the threads that actors run on.
///
/// A system has one named `default` and as many others as it is given. Bounds are checked when the system
/// is built.
///
/// A system has one named `default` and as many others as it is given. Bounds are checked when the system
/// is built.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize), serde(tag = "type", rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Dispatcher {
    /// Workers that steal from each other.
    WorkStealing(WorkStealing),
    /// A growing pool of threads for handlers that block.
    Blocking(Blocking),
    /// One thread for each actor.
    Pinned(Pinned),
    /// No thread: the thread that wakes an actor runs it.
    CallingThread(CallingThread),
}

/// Recipe for a work-stealing dispatcher; made by [`Dispatcher::work_stealing`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "config",
    serde(rename_all = "kebab-case", deny_unknown_fields, default = "Dispatcher::work_stealing")
)]
#[must_use]
pub struct WorkStealing {
    #[cfg_attr(
        feature = "config",
        serde(rename = "threads", with = "crate::util::values::Whole::<usize, 1, 1024>")
    )]
    pub(crate) thread_count: Option<usize>,
    #[cfg_attr(feature = "config", serde(deserialize_with = "crate::util::values::cores"))]
    pub(crate) pin_to: Option<Vec<usize>>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::CountU32"))]
    pub(crate) throughput: u32,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) deadline: Option<Duration>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) spin: Duration,
    pub(crate) lifo: bool,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) idle_shutdown: Option<Duration>,
    #[cfg_attr(feature = "config", serde(with = "crate::mailbox::kind::choice"))]
    pub(crate) mailbox: Option<MailboxChoice>,
    pub(crate) requires_mailbox: Option<MailboxRequirement>,
}

/// Recipe for a blocking dispatcher; made by [`Dispatcher::blocking`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "config",
    serde(rename_all = "kebab-case", deny_unknown_fields, default = "Dispatcher::blocking")
)]
#[must_use]
pub struct Blocking {
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Whole::<usize, 1, 4096>"))]
    pub(crate) threads_min: usize,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Whole::<usize, 1, 4096>"))]
    pub(crate) threads_max: usize,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::CountU32"))]
    pub(crate) throughput: u32,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) deadline: Option<Duration>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) keep_alive: Duration,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) idle_shutdown: Option<Duration>,
    #[cfg_attr(feature = "config", serde(with = "crate::mailbox::kind::choice"))]
    pub(crate) mailbox: Option<MailboxChoice>,
    pub(crate) requires_mailbox: Option<MailboxRequirement>,
}

/// Recipe for a pinned dispatcher; made by [`Dispatcher::pinned`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "config",
    serde(rename_all = "kebab-case", deny_unknown_fields, default = "Dispatcher::pinned")
)]
#[must_use]
pub struct Pinned {
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::CountU32"))]
    pub(crate) throughput: u32,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) deadline: Option<Duration>,
    #[cfg_attr(feature = "config", serde(with = "crate::mailbox::kind::choice"))]
    pub(crate) mailbox: Option<MailboxChoice>,
    pub(crate) requires_mailbox: Option<MailboxRequirement>,
}

/// Recipe for a dispatcher without threads; made by [`Dispatcher::calling_thread`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "config",
    serde(rename_all = "kebab-case", deny_unknown_fields, default = "Dispatcher::calling_thread")
)]
#[must_use]
pub struct CallingThread {
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::CountU32"))]
    pub(crate) throughput: u32,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) deadline: Option<Duration>,
    #[cfg_attr(feature = "config", serde(with = "crate::mailbox::kind::choice"))]
    pub(crate) mailbox: Option<MailboxChoice>,
    pub(crate) requires_mailbox: Option<MailboxRequirement>,
}

/// The kind of a dispatcher.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// See [`Dispatcher::work_stealing`].
    WorkStealing,
    /// See [`Dispatcher::blocking`].
    Blocking,
    /// See [`Dispatcher::pinned`].
    Pinned,
    /// See [`Dispatcher::calling_thread`].
    CallingThread,
}

impl Dispatcher {
    /// Worker threads that steal from each other: one per core unless told otherwise.
    ///
    /// This dispatcher is the right place for handlers that compute and send. A handler that waits for something
    /// outside belongs on a blocking dispatcher.
    pub fn work_stealing() -> WorkStealing {
        WorkStealing {
            thread_count: None,
            pin_to: None,
            throughput: THROUGHPUT_DEFAULT,
            deadline: None,
            idle_shutdown: None,
            spin: Duration::from_micros(5),
            lifo: true,
            mailbox: None,
            requires_mailbox: None,
        }
    }

    /// A pool of threads that grows with the number of actors that have something to do: 1 to 64 threads
    /// unless told otherwise.
    pub fn blocking() -> Blocking {
        Blocking {
            threads_min: 1,
            threads_max: 64,
            keep_alive: KEEP_ALIVE_DEFAULT,
            throughput: THROUGHPUT_DEFAULT,
            deadline: None,
            idle_shutdown: None,
            mailbox: None,
            requires_mailbox: None,
        }
    }

    /// One thread for each actor, from its start to its end.
    pub fn pinned() -> Pinned {
        Pinned { throughput: THROUGHPUT_DEFAULT, deadline: None, mailbox: None, requires_mailbox: None }
    }

    /// No threads: a thread that sends a message runs the actor, and the actor has handled the message when the send
    /// returns. For tests that want one thread and a fixed order.
    ///
    /// A message that an actor sends within its turn to an actor on such a dispatcher waits in a queue of the thread
    /// until that turn is over, and is handled before the first send returns. A message to a suspended actor is handled
    /// by the thread that resumes the actor. The idea is Akka's `CallingThreadDispatcher`.
    ///
    /// # Concurrency
    ///
    /// * One thread at a time runs an actor: a message that arrives while another thread runs the actor is handled by
    ///   that other thread, and may be waiting still when its own send returns.
    /// * Two actors that keep each other busy never let the first send return.
    /// * A thread that sends with a lock held deadlocks if the handler takes that lock.
    /// * The message of a timer is handled by the thread that moves the [`ManualClock`](crate::time::ManualClock), or on the
    ///   timer thread.
    /// * Within a turn, no handler may wait for an answer, for a router or for the system's end, as on a work-stealing
    ///   worker: [`AskError::WouldBlockWorker`](crate::AskError::WouldBlockWorker).
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// struct Thread;
    /// impl Request for Thread {
    ///     type Reply = std::thread::ThreadId;
    /// }
    ///
    /// struct Here;
    /// impl Actor for Here {
    ///     type Message = Call<Thread>;
    ///     fn receive(&mut self, call: Call<Thread>, _: &mut Context<Call<Thread>>) -> HandlerResult {
    ///         call.answer(|Thread| std::thread::current().id());
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("test").dispatcher("here", Dispatcher::calling_thread()).build()?;
    /// let here = system.actor("here").dispatcher("here").spawn(|| Here)?;
    /// assert_eq!(here.ask(Thread).wait()?, std::thread::current().id());
    /// # Ok(())
    /// # }
    /// ```
    pub fn calling_thread() -> CallingThread {
        CallingThread {
            throughput: THROUGHPUT_DEFAULT,
            deadline: None,
            mailbox: None,
            requires_mailbox: None,
        }
    }

    /// Returns the kind of this dispatcher.
    pub fn kind(&self) -> Kind {
        match self {
            Self::WorkStealing(_) => Kind::WorkStealing,
            Self::Blocking(_) => Kind::Blocking,
            Self::Pinned(_) => Kind::Pinned,
            Self::CallingThread(_) => Kind::CallingThread,
        }
    }

    /// Returns how long the threads stay when there is no actor; `None`: for ever.
    pub(crate) fn idle_shutdown(&self) -> Option<Duration> {
        match self {
            Self::WorkStealing(recipe) => recipe.idle_shutdown,
            Self::Blocking(recipe) => recipe.idle_shutdown,
            // Each pinned thread ends with its actor, and a calling-thread dispatcher has no threads.
            Self::Pinned(_) | Self::CallingThread(_) => None,
        }
    }

    /// Starts the threads, named after `name`. `hooks` is called once on each worker; threads that may block have no
    /// hooks.
    pub(crate) fn start<H: TurnHooks>(
        &self,
        name: &str,
        hooks: impl Fn() -> H + Send + Sync + 'static,
    ) -> Result<Running, StartError> {
        match self {
            Self::WorkStealing(recipe) => {
                Pool::start(recipe.settings(name), hooks).map(Running::WorkStealing)
            }
            Self::Blocking(recipe) => BlockingPool::start(recipe.settings(name)).map(Running::Blocking),
            Self::Pinned(recipe) => {
                PinnedThreads::start(name, recipe.throughput, recipe.deadline).map(Running::Pinned)
            }
            Self::CallingThread(recipe) => {
                calling_thread::Limits::new(recipe.throughput, recipe.deadline).map(Running::CallingThread)
            }
        }
    }
}

impl WorkStealing {
    /// Number of worker threads, 1 to 1,024. Default: one for each core named with
    /// [`pin_to`](Self::pin_to), or else as many as the operating system recommends.
    pub fn threads(mut self, count: usize) -> Self {
        self.thread_count = Some(count);
        self
    }

    /// Pins each worker to one of these cores, in order: as many cores as threads. A core may be named
    /// more than once. Cores that the operating system keeps out of normal use may be named, too.
    ///
    /// A thread that the engine starts on such a worker, as a thread of another dispatcher, is not pinned with it. On
    /// Linux, a thread that a handler starts itself is.
    pub fn pin_to(mut self, cores: impl IntoIterator<Item = usize>) -> Self {
        self.pin_to = Some(cores.into_iter().collect());
        self
    }

    /// Lets the threads end when there has been no actor for this long, by the system's clock. The next actor starts
    /// the threads again, or cannot be created: [`SpawnError::Thread`](crate::SpawnError::Thread). Default: the threads
    /// stay until the system ends. (Akka's dispatchers end theirs after 1 s.)
    ///
    /// An idle shutdown is not worth it where actors come and go all the time: a start of threads takes some 100 µs.
    /// The dispatcher `default` is never without actors, since the guardians run there.
    pub fn idle_shutdown(mut self, after: Duration) -> Self {
        self.idle_shutdown = Some(after);
        self
    }

    /// How long a worker without work searches before it sleeps. Default: 5 µs. A longer search answers sooner and
    /// costs CPU time; zero is one look at everything. The first two microseconds pass in short pauses, the rest in
    /// yields to other threads on the core.
    ///
    /// Unless the length is zero, a search lasts for at least 20 µs while the tasks that the worker found last came
    /// within that time: to sleep and be woken would cost as much. So a stream of 50,000 messages a second or more
    /// keeps workers awake, and a slower stream does not.
    ///
    /// Unless the length is zero, a worker also waits for a microsecond or two before it looks for tasks from other
    /// threads, if it found several of them the last time. The worker then finds more tasks, each with more messages.
    pub fn spin(mut self, length: Duration) -> Self {
        self.spin = length;
        self
    }

    /// Whether the actor woken last on a worker runs there next, before the actors that wait. Default: yes. This order
    /// keeps a conversation of two actors on one core; without it, actors take strict turns.
    ///
    /// The actor woken last cannot move to another worker while the running turn lasts. So a turn that goes on for more
    /// than 8 messages and about 100 µs after it woke an actor ends early. A single message is never interrupted: a
    /// handler that takes long belongs in [`Context::blocking`](crate::Context::blocking) or on a
    /// [blocking](Dispatcher::blocking) dispatcher.
    pub fn lifo(mut self, is_on: bool) -> Self {
        self.lifo = is_on;
        self
    }

    pub(crate) fn effective_thread_count(&self) -> usize {
        let cores = self.pin_to.as_ref().map(Vec::len);
        self.thread_count.or(cores).unwrap_or_else(default_thread_count)
    }

    fn settings(&self, name: &str) -> pool::Settings {
        pool::Settings {
            pin_to: self.pin_to.clone(),
            throughput: self.throughput,
            deadline: self.deadline,
            spin: self.spin,
            lifo: self.lifo,
            ..pool::Settings::new(name, self.effective_thread_count())
        }
    }
}

impl Blocking {
    /// The number of threads that always stay, and the largest number: within `1..=4096`. Default: `1..=64`.
    pub fn threads(mut self, range: RangeInclusive<usize>) -> Self {
        (self.threads_min, self.threads_max) = range.into_inner();
        self
    }

    /// How long a thread above the minimum waits for work before it ends. Default: 10 s.
    pub fn keep_alive(mut self, length: Duration) -> Self {
        self.keep_alive = length;
        self
    }

    /// Lets all threads end, the lower bound included, when there has been no actor for so long: see
    /// [`WorkStealing::idle_shutdown`]. Default: the lower bound stays until the system ends.
    pub fn idle_shutdown(mut self, after: Duration) -> Self {
        self.idle_shutdown = Some(after);
        self
    }

    fn settings(&self, name: &str) -> blocking::Settings {
        blocking::Settings {
            name: name.to_owned(),
            thread_count: self.threads_min..=self.threads_max,
            keep_alive: Some(self.keep_alive),
            throughput: self.throughput,
            deadline: self.deadline,
        }
    }
}

/// Returns the number of threads that the operating system recommends.
fn default_thread_count() -> usize {
    crate::scheduler::affinity::recommended_thread_count().min(pool::WORKER_COUNT_MAX)
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests;
