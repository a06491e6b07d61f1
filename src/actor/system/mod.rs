//! The whole: dispatchers, the tree of actors, clock, books, and an orderly end.
//!
//! `guardians.rs` is the top of its tree, `dispatchers.rs` where actors run, `end.rs` its end; `stepping.rs` is for
//! systems whose actors run on the thread of a test, `quiet.rs` for tests that wait until nothing is left to do.

mod dispatchers;
mod end;
mod guardians;
#[cfg(any(feature = "testkit", pointsman_loom))]
mod quiet;
mod stepping;

pub(crate) use dispatchers::INTERNAL;
pub use dispatchers::{OwnHome, Place};
pub use end::WorksFor;
pub use guardians::Never;
#[cfg(feature = "testkit")]
pub use quiet::Unrest;
pub use stepping::left_to_wait;
#[cfg(feature = "testkit")]
pub(in crate::actor) use stepping::schedule_stepping;

use crate::actor::builder::ActorBuilder;
use crate::actor::mailbox_kind::{Mailbox, Mailboxes};
use crate::actor::system::dispatchers::{Declared, Dispatchers};
use crate::actor::system::end::End;
use crate::actor::system::guardians::Tree;
use crate::actor::{Actor, Address, IntoActor};
use crate::actor_ref::dead_letter_log::LetterLog;
use crate::actor_ref::{ActorRef, AnyRef, DeadLetterLog, DeadLetterReason, DeadLetters};
use crate::deployment::{Deployment, Deployments, PatternError};
use crate::dispatch::Dispatcher;
use crate::error::{BuildError, ShutdownError, SpawnError};
use crate::event_stream::EventStream;
use crate::ledger::{Books, Ledger, Row};
use crate::routing::{self, Logics, RouterBuilder};
use crate::shutdown::{Callbacks, Coordinator, Phases};
use crate::supervision::Strategy;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, lock};
use crate::time::{Clock, SystemClock, Timers};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// Messages that an inbox keeps; Akka's.
const INBOX_CAPACITY: usize = 1000;
/// How long [`System`]'s destructor waits for actors to end.
const DROP_DEADLINE: Duration = Duration::from_secs(10);

/// A running actor system. Dropping it stops every actor and joins every thread.
///
/// It dereferences to [`SystemRef`], the handle that can be cloned and kept anywhere. Several systems may
/// live in one process; they know nothing of each other.
///
/// ```
/// use pointsman::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop")
///     .dispatcher("default", Dispatcher::work_stealing().threads(2).throughput(64))
///     .dispatcher("blocking", Dispatcher::blocking().threads(1..=8))
///     .seed(42)
///     .build()?;
/// let ledger = system.shutdown(std::time::Duration::from_secs(5))?;
/// assert_eq!(ledger.balance(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct System {
    handle: SystemRef,
}

/// A handle to a system: creates top-level actors, reads the books.
#[derive(Clone)]
pub struct SystemRef(StdArc<SystemCore>);

/// What all actors of a system share.
pub struct SystemCore {
    pub(crate) name: String,
    seed: u64,
    books: Books,
    pub(in crate::actor) events: EventStream,
    pub(in crate::actor) dead_letters: DeadLetters,
    pub(in crate::actor) timers: Timers,
    /// Waits for sockets, once there is a listener.
    #[cfg(all(feature = "net", not(pointsman_loom)))]
    pub(in crate::actor) net: crate::net::DriverSlot,
    pub(in crate::actor) dispatchers: Dispatchers,
    pub(in crate::actor) mailboxes: Mailboxes,
    pub(in crate::actor) deployments: Deployments,
    pub(crate) routing_logics: Logics,
    pub(crate) inbox_capacity: usize,
    /// What the configuration says of groups.
    pub(crate) topology: crate::topology::Sections,
    #[cfg(feature = "config")]
    pub(crate) settings: crate::config::Settings,
    /// Gone once the system has ended, or the tree and this would keep each other alive.
    pub(in crate::actor) tree: Mutex<Option<Tree>>,
    next_uid: AtomicU32,
    /// Actors that have not ended.
    living: AtomicUsize,
    /// No more actors.
    pub(in crate::actor) closed: AtomicBool,
    pub(in crate::actor) end: Mutex<End>,
    pub(in crate::actor) ended: Condvar,
    pub(crate) coordinator: Coordinator,
    pub(crate) callbacks: Callbacks,
}

/// Describes a system that is about to start; see [`System::builder`].
#[must_use = "nothing starts before `build`"]
pub struct SystemBuilder {
    pub(crate) name: String,
    pub(crate) seed: u64,
    clock: Option<StdArc<dyn Clock>>,
    pub(crate) dispatchers: Declared,
    pub(crate) mailboxes: Vec<(String, Mailbox)>,
    pub(crate) deployments: Deployments,
    pub(crate) routing_logics: Logics,
    /// The first pattern that was none.
    bad_pattern: Option<PatternError>,
    pub(crate) supervision: Strategy,
    pub(crate) log_dead_letters: DeadLetterLog,
    pub(crate) inbox_capacity: usize,
    pub(crate) shutdown_phases: Phases,
    pub(crate) topology: crate::topology::Sections,
}

impl System {
    /// Starts to describe a system. The name begins with a letter or digit and goes on with letters,
    /// digits, `-` and `_`.
    pub fn builder(name: &str) -> SystemBuilder {
        SystemBuilder {
            name: name.to_owned(),
            seed: 0,
            clock: None,
            dispatchers: Declared::default(),
            mailboxes: Vec::new(),
            deployments: Deployments::default(),
            routing_logics: Logics::default(),
            bad_pattern: None,
            supervision: Strategy::default(),
            log_dead_letters: DeadLetterLog::default(),
            inbox_capacity: INBOX_CAPACITY,
            shutdown_phases: Phases::default(),
            topology: Default::default(),
        }
    }

    /// The handle, to be cloned and kept.
    pub fn handle(&self) -> &SystemRef {
        &self.handle
    }

    /// Stops every actor, bottom up, waits for them, joins every thread, and returns the final books: their
    /// balance is 0, but for messages that have gone from one [system to another](Ledger) on their way: those of both
    /// systems sum to 0. Runs no tasks of the [coordinated shutdown](crate::shutdown); after a run of that it joins the
    /// threads. At last it frees, on this thread, what was replaced while the system ran and nobody can be reading any
    /// more, such as the recipe of a router that has ended: this may run destructors of yours.
    ///
    /// # Errors
    ///
    /// [`ShutdownError::Stuck`] when actors still run after `deadline`, with their paths; the system goes on
    /// ending in the background, and its threads end after its last actor. [`ShutdownError::OwnThread`] on a
    /// thread of the system itself, or on a work-stealing worker of another one, neither of which may wait;
    /// the system ends in the background then, too.
    pub fn shutdown(self, deadline: Duration) -> Result<Ledger, ShutdownError> {
        let outcome = self.handle.0.shut_down(deadline);
        if outcome.is_err() {
            // Before the destructor, which would wait once more.
            self.handle.0.orphan();
        }
        outcome.map(|()| self.handle.ledger())
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.handle.0.end_with_handle(DROP_DEADLINE);
    }
}

impl Deref for System {
    type Target = SystemRef;
    fn deref(&self) -> &SystemRef {
        &self.handle
    }
}

impl SystemRef {
    pub(crate) fn new(core: StdArc<SystemCore>) -> Self {
        Self(core)
    }

    pub(crate) fn core(&self) -> &StdArc<SystemCore> {
        &self.0
    }

    /// The system's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The system's address: its name, since it listens nowhere.
    pub fn address(&self) -> Address {
        Address::local(&self.0.name).expect("a system's name was checked when it was built")
    }

    /// Starts to describe a top-level actor under `/user`.
    pub fn actor(&self, name: &str) -> ActorBuilder {
        ActorBuilder::new(self.0.user(), Some(name))
    }

    /// Creates a top-level actor under a generated name, with the defaults.
    ///
    /// # Errors
    ///
    /// As [`ActorBuilder::spawn`].
    pub fn spawn<A, I>(
        &self,
        recipe: impl FnMut() -> I + Send + 'static,
    ) -> Result<ActorRef<A::Message>, SpawnError>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        ActorBuilder::new(self.0.user(), None).spawn(recipe)
    }

    /// Starts to describe a top-level router under `/user`.
    pub fn router(&self, name: &str) -> RouterBuilder {
        RouterBuilder::new(self.0.user(), Some(name))
    }

    /// Starts to describe a top-level router that is given a name: as [`Context::router_anonymous`](crate::Context::router_anonymous).
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let one = system.router_anonymous().pool(2, |_| Worker).spawn()?;
    /// let other = system.router_anonymous().pool(2, |_| Worker).spawn()?;
    /// assert_ne!(one.path(), other.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn router_anonymous(&self) -> RouterBuilder {
        RouterBuilder::new(self.0.user(), None)
    }

    /// The guardian of top-level actors, `/user`. It is there until the system's threads have gone, and `None` afterwards:
    /// once [`System::shutdown`] or the [`System`]'s destructor has returned, or, if the destructor has given up waiting,
    /// once the last actor has ended.
    ///
    /// After [`stop`](Self::stop) it is still there, but [closed](AnyRef::is_closed): it takes no more children.
    pub fn user(&self) -> Option<AnyRef> {
        self.0.user().ok()
    }

    /// The books, now: every message accounted for. Walks all mailboxes, so it is not for every millisecond.
    pub fn ledger(&self) -> Ledger {
        self.0.ledger_now()
    }

    /// Where messages that nobody took are shown.
    pub fn dead_letters(&self) -> &DeadLetters {
        &self.0.dead_letters
    }

    /// What happens in the system, for whoever subscribes to it.
    pub fn events(&self) -> &EventStream {
        &self.0.events
    }

    /// Time since the system's clock started.
    pub fn now(&self) -> Duration {
        self.0.now()
    }

    /// Actors that have not ended, the guardians `/`, `/user`, `/system` and `/temp` included.
    pub fn living_actors(&self) -> usize {
        // Ordering: Relaxed; a statistic.
        self.0.living.load(Ordering::Relaxed)
    }

    /// Begins to stop every actor and returns at once; may be called from an actor. Threads are joined by
    /// [`System::shutdown`] or the [`System`]'s destructor.
    pub fn stop(&self) {
        self.0.begin_end();
    }

    /// Waits until every actor has ended, whoever caused it.
    ///
    /// # Errors
    ///
    /// [`ShutdownError::Stuck`] after `deadline`; [`ShutdownError::OwnThread`] as for [`System::shutdown`].
    pub fn wait_until_ended(&self, deadline: Duration) -> Result<(), ShutdownError> {
        self.0.wait_for_end(deadline)
    }
}

impl fmt::Debug for SystemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemRef").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl SystemBuilder {
    /// Declares a dispatcher. `"default"` is where actors run that name none; without one it is
    /// work-stealing with a thread for each core. `"internal"` is where the engine's own actors run (guardians,
    /// inboxes, promises), so that handlers which block cannot keep them from working; without one they run on the
    /// default one, where nothing should block. The name is not empty and has no control characters: it is
    /// part of the names of the dispatcher's threads, after the system's.
    pub fn dispatcher(mut self, name: &str, dispatcher: impl Into<Dispatcher>) -> Self {
        self.dispatchers.dispatchers.push((name.to_owned(), dispatcher.into()));
        self
    }

    /// Lets `alias` stand for the dispatcher `target`, or for what that is an alias of, over 20 steps at most.
    /// Declared in any order; `"default"` may be an alias, too. The idea is Akka's.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop")
    ///     .dispatcher("blocking", Dispatcher::blocking().threads(1..=8))
    ///     .dispatcher_alias("files", "blocking")
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn dispatcher_alias(mut self, alias: &str, target: &str) -> Self {
        self.dispatchers.aliases.push((alias.to_owned(), target.to_owned()));
        self
    }

    /// Declares a mailbox, so that builders, dispatchers and configuration can name it.
    pub fn mailbox(mut self, name: &str, mailbox: Mailbox) -> Self {
        self.mailboxes.push((name.to_owned(), mailbox));
        self
    }

    /// Says something of the actors at a path below `/user` (or `/system`), or at all paths that match a pattern:
    /// `*` is any one name, `prefix*` one with that prefix, and `**` at the end any number of them. At each level a
    /// name beats `*`, which beats `prefix*`; `**` counts only where nothing else matches. It wins over what the
    /// code that creates the actor says. The rules are Akka's.
    ///
    /// ```
    /// use pointsman::Deployment;
    /// use pointsman::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop")
    ///     .dispatcher("blocking", Dispatcher::blocking())
    ///     .deploy("/files/*", Deployment::new().dispatcher("blocking"))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn deploy(mut self, pattern: &str, deployment: Deployment) -> Self {
        if let Err(error) = self.deployments.add(pattern, deployment) {
            self.bad_pattern.get_or_insert(error);
        }
        self
    }

    /// How many messages an [inbox](crate::Inbox) keeps that is given no other number: at least 1, and 1000 unless said
    /// otherwise.
    pub fn inbox_capacity(mut self, message_count: usize) -> Self {
        self.inbox_capacity = message_count;
        self
    }

    /// What everything random in the system derives from. 0 unless said otherwise.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What goes by time in the system: the machine's clock unless said otherwise. That is timers, the limits of asks, and
    /// senders that [wait for room](crate::Full::Wait). These go by the machine's clock always, since they are about
    /// threads and sockets:
    ///
    /// - how long [`System::shutdown`], [`SystemRef::wait_until_ended`] and the [`System`]'s destructor wait;
    /// - how long a turn may go on ([`WorkStealing::deadline`](crate::WorkStealing::deadline)), a worker looks for work
    ///   ([`spin`](crate::WorkStealing::spin)), and an idle thread of a blocking dispatcher is kept
    ///   ([`keep_alive`](crate::Blocking::keep_alive));
    /// - how long the last bytes of a connection may take: after the end of its actor (`linger` of a listener, feature
    ///   `net`), and 2 s after the end of a system whose [`System`] is gone.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(StdArc::new(clock));
        self
    }

    /// How failures of top-level actors are judged. A failure that this escalates ends the system.
    pub fn supervision(mut self, strategy: impl Into<Strategy>) -> Self {
        self.supervision = strategy.into();
        self
    }

    /// How dead letters are logged: the first 10, then a pause of 5 minutes, unless said otherwise.
    pub fn log_dead_letters(mut self, log: DeadLetterLog) -> Self {
        self.log_dead_letters = log;
        self
    }

    /// The phases of the [coordinated shutdown](crate::shutdown), instead of the default ones.
    pub fn shutdown_phases(mut self, phases: Phases) -> Self {
        self.shutdown_phases = phases;
        self
    }

    /// Starts the system.
    ///
    /// # Errors
    ///
    /// [`BuildError`]: a bad name, two dispatchers, aliases or mailboxes of one name, an alias of nothing, a
    /// mailbox that no actor could have, inboxes that keep nothing, settings that no router could have, a
    /// [deployment](Self::deploy) that names an unknown dispatcher or mailbox, a dispatcher that cannot be started as
    /// described, for example because a core that it is to be pinned to does not exist; a machine that refuses the
    /// thread of the [timers](crate::Context::timers), which every system has unless its clock is moved by hand. Every
    /// worker has reported by then, and no thread is left.
    pub fn build(self) -> Result<System, BuildError> {
        #[cfg(feature = "config")]
        let settings = crate::config::Settings::of(&self);
        routing::check_sections(&self)?;
        let Self {
            name,
            seed,
            clock,
            dispatchers,
            mailboxes,
            deployments,
            routing_logics,
            bad_pattern,
            supervision,
            log_dead_letters,
            inbox_capacity,
            shutdown_phases,
            topology,
        } = self;
        let mut characters = name.chars();
        let begins_well = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
        if !begins_well || !characters.all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            return Err(BuildError::Name { name });
        }
        if let Some(error) = bad_pattern {
            return Err(BuildError::Deployment(error));
        }
        if inbox_capacity == 0 {
            return Err(BuildError::ZeroInboxCapacity);
        }
        let coordinator = Coordinator::new(shutdown_phases).map_err(BuildError::PhaseCycle)?;
        let mailboxes = Mailboxes::new(mailboxes, &dispatchers.dispatchers)?;
        let dispatchers = dispatchers.start(&name)?;
        let clock = clock.unwrap_or_else(|| StdArc::new(SystemClock::new()));
        let events = EventStream::default();
        let letter_log = LetterLog::new(name.clone(), log_dead_letters, clock.clone());
        let core = StdArc::new(SystemCore {
            seed,
            books: Books::new(),
            dead_letters: DeadLetters::new(events.clone(), letter_log),
            events,
            timers: Timers::new(&name, clock),
            #[cfg(all(feature = "net", not(pointsman_loom)))]
            net: crate::net::DriverSlot::new(&name),
            name,
            dispatchers,
            mailboxes,
            deployments,
            routing_logics,
            inbox_capacity,
            topology,
            #[cfg(feature = "config")]
            settings,
            tree: Mutex::new(None),
            next_uid: AtomicU32::new(1),
            living: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            end: Mutex::new(End::NotYet),
            ended: Condvar::new(),
            coordinator,
            callbacks: Callbacks::new(),
        });
        core.start_timers()?;
        core.grow_tree(supervision)?;
        core.dispatchers.builder_leaves(&core);
        Ok(System { handle: SystemRef(core) })
    }
}

impl fmt::Debug for SystemBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl SystemCore {
    pub fn tree(&self) -> Option<Tree> {
        lock(&self.tree).clone()
    }

    /// The parent of top-level actors, or the name of this system if it has shut down.
    pub fn user(&self) -> Result<AnyRef, String> {
        self.tree().map(|tree| tree.user).ok_or_else(|| self.name.clone())
    }

    #[inline]
    pub fn ledger(&self) -> &Books {
        &self.books
    }

    pub fn dead_letters(&self) -> &DeadLetters {
        &self.dead_letters
    }

    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    #[cfg(all(feature = "net", not(pointsman_loom)))]
    pub fn net(&self) -> &crate::net::DriverSlot {
        &self.net
    }

    pub fn now(&self) -> Duration {
        self.timers.now()
    }

    /// Whether there is a dispatcher of this name, or an alias.
    pub fn check_dispatcher(&self, dispatcher: Option<&str>) -> Result<(), SpawnError> {
        self.dispatchers.find(dispatcher).map(|_| ())
    }

    /// Where a new actor runs that names this dispatcher.
    pub fn place(&self, dispatcher: Option<&str>) -> Result<Place, SpawnError> {
        self.dispatchers.place(dispatcher, self)
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A number for an incarnation, never 0.
    pub fn next_uid(&self) -> u32 {
        loop {
            // Ordering: Relaxed; only uniqueness matters.
            let uid = self.next_uid.fetch_add(1, Ordering::Relaxed);
            if uid != 0 {
                return uid;
            }
        }
    }

    /// Counts one more living actor.
    pub fn actor_begins(&self) -> Result<(), SpawnError> {
        // Ordering: Relaxed; that no actor begins once the tree has ended is assured by its parent, which
        // is counted itself.
        self.living.fetch_add(1, Ordering::Relaxed);
        // Ordering: Relaxed; an actor that slips in is stopped by its parent.
        if self.closed.load(Ordering::Relaxed) && self.user().map_or(true, |user| user.is_closed()) {
            self.living.fetch_sub(1, Ordering::Relaxed);
            return Err(SpawnError::ShutDown { system: self.name.clone() });
        }
        Ok(())
    }

    /// Counts one fewer.
    pub fn actor_ended(&self) {
        // Ordering: Relaxed; a statistic. Whoever waits for the end sees what the actors did through the
        // lock in `tree_ended`.
        self.living.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts and tells a dead letter, and parts with the message.
    pub fn dead_letter<M: Send + 'static>(&self, row: &Row, recipient: &AnyRef, message: M) {
        row.dead_lettered(1);
        self.dead_letters.bury(message, DeadLetterReason::Stopped, || recipient.path());
    }

    pub(crate) fn ledger_now(&self) -> Ledger {
        let mut ledger = self.books.sum();
        let mut open: Vec<AnyRef> = self.tree().into_iter().map(|tree| tree.root).collect();
        while let Some(actor) = open.pop() {
            ledger.queued += actor.queued_messages() as u64;
            open.extend(actor.core().children.all());
        }
        ledger
    }
}
