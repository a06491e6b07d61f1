//! A dispatcher is a recipe for the threads that actors run on; a system starts the recipe's running form.

use crate::dispatch::running::Running;
use crate::dispatch::{blocking, calling_thread};

use crate::dispatch::blocking::BlockingPool;
use crate::dispatch::pinned::PinnedThreads;
use crate::mailbox::kind::{MailboxChoice, MailboxRequirement};
use crate::scheduler::error::StartError;
use crate::scheduler::pool;
use crate::scheduler::pool::{Pool, TurnHooks};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Messages that an actor handles in one turn before it makes room for others.
const THROUGHPUT_DEFAULT: u32 = 64;

/// How long a worker without work searches before it sleeps.
const SPIN_DEFAULT: Duration = Duration::from_micros(5);

/// The number of threads of a blocking dispatcher that always stay, and the largest number.
const THREAD_RANGE_DEFAULT: RangeInclusive<usize> = 1..=64;

/// How long a blocking thread waits for work before it ends.
const KEEP_ALIVE_DEFAULT: Duration = Duration::from_secs(10);

/// Recipe for the threads that actors run on.
///
/// A system has one named `default` and as many others as it is given. The constructor gives the
/// [kind](DispatcherKind). Each setter names the kinds that have the setting, unless all have it. A setting that the
/// kind does not have is an error when the system is built
/// ([`DispatcherSetting`](crate::BuildError::DispatcherSetting)), as is a value out of bounds
/// ([`Dispatcher`](crate::BuildError::Dispatcher)).
///
/// ```
/// use pointsman::prelude::*;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop")
///     .dispatcher("default", Dispatcher::work_stealing().threads(2).spin(Duration::ZERO))
///     .dispatcher("files", Dispatcher::blocking().thread_range(1..=8).throughput(1))
///     .build()?;
/// let searching = Dispatcher::blocking().spin(Duration::ZERO);
/// let error = System::builder("shop").dispatcher("files", searching).build().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "dispatcher \"files\": a blocking dispatcher has no setting `spin`, leave it out or make another kind"
/// );
/// # Ok(())
/// # }
/// ```
// A setting that not all kinds have is `None` unless the kind has it. The fields are the keys of a configuration file.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "config",
    serde(rename_all = "kebab-case", deny_unknown_fields, default = "Dispatcher::pinned")
)]
#[must_use]
#[doc(alias = "WorkStealing")]
#[doc(alias = "Blocking")]
#[doc(alias = "Pinned")]
#[doc(alias = "CallingThread")]
pub struct Dispatcher {
    #[cfg_attr(feature = "config", serde(rename = "type"))]
    kind: DispatcherKind,
    #[cfg_attr(
        feature = "config",
        serde(rename = "threads", with = "crate::util::values::Whole::<usize, 1, 1024>")
    )]
    pub(crate) thread_count: Option<usize>,
    #[cfg_attr(feature = "config", serde(deserialize_with = "crate::util::values::cores"))]
    pin_to: Option<Vec<usize>>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Whole::<usize, 1, 4096>"))]
    pub(crate) threads_min: Option<usize>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Whole::<usize, 1, 4096>"))]
    pub(crate) threads_max: Option<usize>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::CountU32"))]
    throughput: u32,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    deadline: Option<Duration>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    spin: Option<Duration>,
    lifo: Option<bool>,
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    keep_alive: Option<Duration>,
    /// How long the threads stay when there is no actor; `None`: for ever.
    #[cfg_attr(feature = "config", serde(with = "crate::util::values::Span"))]
    pub(crate) idle_shutdown: Option<Duration>,
    /// The mailbox of actors whose builder chooses none.
    #[cfg_attr(feature = "config", serde(with = "crate::mailbox::kind::choice"))]
    pub(crate) mailbox: Option<MailboxChoice>,
    /// The demand on the mailboxes of all its actors.
    pub(crate) requires_mailbox: Option<MailboxRequirement>,
}

/// The kind of a dispatcher.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum DispatcherKind {
    /// See [`Dispatcher::work_stealing`].
    WorkStealing,
    /// See [`Dispatcher::blocking`].
    Blocking,
    /// See [`Dispatcher::pinned`].
    Pinned,
    /// See [`Dispatcher::calling_thread`].
    CallingThread,
}

/// The word of configuration files: `work-stealing`, `blocking`, `pinned`, `calling-thread`.
impl fmt::Display for DispatcherKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WorkStealing => "work-stealing",
            Self::Blocking => "blocking",
            Self::Pinned => "pinned",
            Self::CallingThread => "calling-thread",
        })
    }
}

#[cfg(feature = "config")]
impl DispatcherKind {
    /// The keys of a dispatcher of this kind in a configuration file.
    pub(crate) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::WorkStealing => &[
                "threads",
                "pin-to",
                "throughput",
                "deadline",
                "spin",
                "lifo",
                "idle-shutdown",
                "mailbox",
                "requires-mailbox",
            ],
            Self::Blocking => &[
                "threads-min",
                "threads-max",
                "throughput",
                "deadline",
                "keep-alive",
                "idle-shutdown",
                "mailbox",
                "requires-mailbox",
            ],
            Self::Pinned | Self::CallingThread => &["throughput", "deadline", "mailbox", "requires-mailbox"],
        }
    }
}

impl Dispatcher {
    fn new(kind: DispatcherKind) -> Self {
        Self {
            kind,
            thread_count: None,
            pin_to: None,
            threads_min: None,
            threads_max: None,
            throughput: THROUGHPUT_DEFAULT,
            deadline: None,
            spin: None,
            lifo: None,
            keep_alive: None,
            idle_shutdown: None,
            mailbox: None,
            requires_mailbox: None,
        }
    }

    /// Worker threads that steal from each other: one per core unless told otherwise.
    ///
    /// This dispatcher is the right place for handlers that compute and send. A handler that waits for something
    /// outside belongs on a blocking dispatcher.
    pub fn work_stealing() -> Self {
        Self::new(DispatcherKind::WorkStealing).spin(SPIN_DEFAULT).lifo(true)
    }

    /// A pool of threads that grows with the number of actors that have something to do: 1 to 64 threads
    /// unless told otherwise.
    pub fn blocking() -> Self {
        Self::new(DispatcherKind::Blocking).thread_range(THREAD_RANGE_DEFAULT).keep_alive(KEEP_ALIVE_DEFAULT)
    }

    /// One thread for each actor, from its start to its end.
    pub fn pinned() -> Self {
        Self::new(DispatcherKind::Pinned)
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
    pub fn calling_thread() -> Self {
        Self::new(DispatcherKind::CallingThread)
    }

    /// Returns the kind of this dispatcher.
    pub fn kind(&self) -> DispatcherKind {
        self.kind
    }

    /// Messages that an actor handles in one turn at most, at least 1, before other actors have their turns.
    /// Default: 64. On a work-stealing dispatcher, a turn that takes long may end earlier, see [`lifo`](Self::lifo).
    pub fn throughput(mut self, message_count: u32) -> Self {
        self.throughput = message_count;
        self
    }

    /// How long a turn may go on handling messages, counted from its first message. The turn ends with the
    /// message that is being handled then, as if [`throughput`](Self::throughput) were used up. Default: no
    /// limit. Zero: each turn handles one message.
    pub fn deadline(mut self, length: Duration) -> Self {
        self.deadline = Some(length);
        self
    }

    /// Gives actors on this dispatcher this mailbox, or the mailbox that the system knows by this name, unless
    /// their builders choose another. The engine's own actors are exempt.
    pub fn mailbox(mut self, mailbox: impl Into<MailboxChoice>) -> Self {
        self.mailbox = Some(mailbox.into());
        self
    }

    /// Demands this of the mailbox of each actor on this dispatcher. A mailbox that does not meet the demand is
    /// an error when the actor is created. If no mailbox was chosen for the actor, its mailbox [may be
    /// made](MailboxRequirement) to meet the demand. The engine's own actors are exempt.
    pub fn requires_mailbox(mut self, requirement: MailboxRequirement) -> Self {
        self.requires_mailbox = Some(requirement);
        self
    }

    /// Work-stealing: the number of worker threads, 1 to 1,024. Default: one for each core named with
    /// [`pin_to`](Self::pin_to), or else as many as the operating system recommends. A blocking dispatcher has a
    /// [range](Self::thread_range).
    pub fn threads(mut self, count: usize) -> Self {
        self.thread_count = Some(count);
        self
    }

    /// Work-stealing: pins each worker to one of these cores, in order: as many cores as threads. A core may be named
    /// more than once. Cores that the operating system keeps out of normal use may be named, too.
    ///
    /// A thread that the engine starts on such a worker, as a thread of another dispatcher, is not pinned with it. On
    /// Linux, a thread that a handler starts itself is.
    pub fn pin_to(mut self, cores: impl IntoIterator<Item = usize>) -> Self {
        self.pin_to = Some(cores.into_iter().collect());
        self
    }

    /// Blocking: the number of threads that always stay, and the largest number, within `1..=4096`. Default: `1..=64`.
    pub fn thread_range(mut self, range: RangeInclusive<usize>) -> Self {
        let (min, max) = range.into_inner();
        (self.threads_min, self.threads_max) = (Some(min), Some(max));
        self
    }

    /// Blocking: how long a thread above the minimum waits for work before it ends. Default: 10 s.
    pub fn keep_alive(mut self, length: Duration) -> Self {
        self.keep_alive = Some(length);
        self
    }

    /// Work-stealing and blocking: lets all threads end, those that always stay included, when there has been no actor
    /// for this long, by the system's clock. The next actor starts the threads again, or cannot be created:
    /// [`SpawnError::Thread`](crate::SpawnError::Thread). Default: the threads stay until the system ends. (Akka's
    /// dispatchers end theirs after 1 s.)
    ///
    /// An idle shutdown is not worth it where actors come and go all the time: a start of threads takes some 100 µs.
    /// The dispatcher `default` is never without actors, since the guardians run there.
    pub fn idle_shutdown(mut self, after: Duration) -> Self {
        self.idle_shutdown = Some(after);
        self
    }

    /// Work-stealing: how long a worker without work searches before it sleeps. Default: 5 µs. A longer search answers sooner and
    /// costs CPU time; zero is one look at everything. The first two microseconds pass in short pauses, the rest in
    /// yields to other threads on the core.
    ///
    /// Unless the length is zero, a search lasts for at least 20 µs while the tasks that the worker found last came
    /// within that time: to sleep and be woken would cost as much. So a stream of 50,000 messages a second or more
    /// keeps workers awake, and a slower stream does not.
    ///
    /// Unless the length is zero, a worker also waits for a microsecond or two before it looks for tasks from other
    /// threads, if it found several of them the last time. The worker then finds more tasks, each with more messages.
    ///
    /// Unless the length is zero, an actor that has handled all messages of a stream, less than 250 ns apart, waits for some
    /// microseconds before its turn ends, if its worker has no other task. The sender of the stream then meets
    /// the actor's looks less often, and takes less time for each message.
    pub fn spin(mut self, length: Duration) -> Self {
        self.spin = Some(length);
        self
    }

    /// Work-stealing: whether the actor woken last on a worker runs there next, before the actors that wait. Default: yes. This order
    /// keeps a conversation of two actors on one core; without it, actors take strict turns.
    ///
    /// The actor woken last cannot move to another worker while the running turn lasts. So a turn that goes on for more
    /// than 8 messages and about 100 µs after it woke an actor ends early. A single message is never interrupted: a
    /// handler that takes long belongs in [`Context::blocking`](crate::Context::blocking) or on a
    /// [blocking](Dispatcher::blocking) dispatcher.
    pub fn lifo(mut self, is_on: bool) -> Self {
        self.lifo = Some(is_on);
        self
    }

    /// Returns a setting that was made and that this kind of dispatcher does not have.
    pub(crate) fn foreign_setting(&self) -> Option<&'static str> {
        let (steals, blocks) =
            (self.kind == DispatcherKind::WorkStealing, self.kind == DispatcherKind::Blocking);
        let settings = [
            ("threads", self.thread_count.is_some() && !steals),
            ("pin_to", self.pin_to.is_some() && !steals),
            ("spin", self.spin.is_some() && !steals),
            ("lifo", self.lifo.is_some() && !steals),
            ("thread_range", self.threads_max.is_some() && !blocks),
            ("keep_alive", self.keep_alive.is_some() && !blocks),
            ("idle_shutdown", self.idle_shutdown.is_some() && !steals && !blocks),
        ];
        settings.into_iter().find_map(|(setting, is_foreign)| is_foreign.then_some(setting))
    }

    /// Starts the threads, named after `name`. `hooks` is called once on each worker; threads that may block have no
    /// hooks.
    pub(crate) fn start<H: TurnHooks>(
        &self,
        name: &str,
        hooks: impl Fn() -> H + Send + Sync + 'static,
    ) -> Result<Running, StartError> {
        let (throughput, deadline) = (self.throughput, self.deadline);
        match self.kind {
            DispatcherKind::WorkStealing => {
                Pool::start(self.pool_settings(name), hooks).map(Running::WorkStealing)
            }
            DispatcherKind::Blocking => {
                let default = THREAD_RANGE_DEFAULT;
                let min = self.threads_min.unwrap_or(*default.start());
                let settings = blocking::Settings {
                    name: name.to_owned(),
                    thread_count: min..=self.threads_max.unwrap_or(*default.end()),
                    keep_alive: Some(self.keep_alive.unwrap_or(KEEP_ALIVE_DEFAULT)),
                    throughput,
                    deadline,
                };
                BlockingPool::start(settings).map(Running::Blocking)
            }
            DispatcherKind::Pinned => PinnedThreads::start(name, throughput, deadline).map(Running::Pinned),
            DispatcherKind::CallingThread => {
                calling_thread::Limits::new(throughput, deadline).map(Running::CallingThread)
            }
        }
    }

    pub(crate) fn effective_thread_count(&self) -> usize {
        let cores = self.pin_to.as_ref().map(Vec::len);
        self.thread_count.or(cores).unwrap_or_else(default_thread_count)
    }

    fn pool_settings(&self, name: &str) -> pool::Settings {
        pool::Settings {
            pin_to: self.pin_to.clone(),
            throughput: self.throughput,
            deadline: self.deadline,
            spin: self.spin.unwrap_or(SPIN_DEFAULT),
            lifo: self.lifo.unwrap_or(true),
            ..pool::Settings::new(name, self.effective_thread_count())
        }
    }
}

/// Returns the number of threads that the operating system recommends.
fn default_thread_count() -> usize {
    crate::scheduler::affinity::recommended_thread_count().min(pool::WORKER_COUNT_MAX)
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests;
