//! The whole: dispatchers, the tree of actors, clock, books, and an orderly end.

use crate::actor::builder::ActorBuilder;
use crate::actor::end::End;
use crate::actor::guardians::Tree;
use crate::actor::mailbox_kind::{Mailbox, Mailboxes};
use crate::actor::{Actor, IntoActor};
use crate::actor_ref::{ActorRef, AnyRef, DeadLetterReason, DeadLetters};
use crate::dispatch::{Dispatcher, Home, Kind, Running};
use crate::error::{BuildError, ShutdownError, SpawnError};
use crate::ledger::{Books, Ledger, Row};
use crate::routing::RouterBuilder;
use crate::scheduler::StartError;
use crate::supervision::Strategy;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, lock};
use crate::time::{Clock, SystemClock, Timers};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// How long [`System`]'s destructor waits for actors to end.
const DROP_DEADLINE: Duration = Duration::from_secs(10);
/// The dispatcher of actors that name none.
pub(super) const DEFAULT: &str = "default";

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
    pub(super) name: String,
    seed: u64,
    books: Books,
    dead_letters: DeadLetters,
    pub(super) timers: Timers,
    /// Waits for sockets, once there is a listener.
    #[cfg(all(feature = "net", not(pointsman_loom)))]
    pub(super) net: crate::net::DriverSlot,
    pub(super) dispatchers: BTreeMap<String, Dispatch>,
    pub(super) mailboxes: Mailboxes,
    /// Gone once the system has ended, or the tree and this would keep each other alive.
    pub(super) tree: Mutex<Option<Tree>>,
    next_uid: AtomicU32,
    /// Actors that have not ended.
    living: AtomicUsize,
    /// No more actors.
    pub(super) closed: AtomicBool,
    pub(super) end: Mutex<End>,
    pub(super) ended: Condvar,
}

/// A running dispatcher.
pub struct Dispatch {
    pub running: Running,
    /// Where its actors run, unless each has a thread of its own. It stays where it is: cells point to it.
    home: Option<Box<Home>>,
}

/// Where a new actor is to run.
pub enum Place<'a> {
    Shared(&'a Home),
    OwnThread(&'a Running),
}

/// Describes a system that is about to start; see [`System::builder`].
#[must_use = "nothing starts before `build`"]
pub struct SystemBuilder {
    name: String,
    seed: u64,
    clock: Option<StdArc<dyn Clock>>,
    dispatchers: Vec<(String, Dispatcher)>,
    mailboxes: Vec<(String, Mailbox)>,
    supervision: Strategy,
}

impl System {
    /// Starts to describe a system. The name begins with a letter or digit and goes on with letters,
    /// digits, `-` and `_`.
    pub fn builder(name: &str) -> SystemBuilder {
        SystemBuilder {
            name: name.to_owned(),
            seed: 0,
            clock: None,
            dispatchers: Vec::new(),
            mailboxes: Vec::new(),
            supervision: Strategy::default(),
        }
    }

    /// The handle, to be cloned and kept.
    pub fn handle(&self) -> &SystemRef {
        &self.handle
    }

    /// Stops every actor, bottom up, waits for them, joins every thread, and returns the final books: their
    /// balance is 0.
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
        let core = &self.handle.0;
        if *lock(&core.end) == End::Orphaned {
            return;
        }
        match core.shut_down(DROP_DEADLINE) {
            Ok(()) => return,
            Err(ShutdownError::Stuck { actors, .. }) => {
                eprintln!("pointsman: system {:?} dropped with actors still running: {actors:?}", core.name);
            }
            // It ends in the background.
            Err(ShutdownError::OwnThread) => {}
        }
        core.orphan();
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
        RouterBuilder::new(self.0.user(), name)
    }

    /// The guardian of top-level actors, `/user`; `None` once the system has shut down.
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

    /// Time since the system's clock started.
    pub fn now(&self) -> Duration {
        self.0.now()
    }

    /// Actors that have not ended, the guardians `/`, `/user` and `/system` included.
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
    /// work-stealing with a thread for each core.
    pub fn dispatcher(mut self, name: &str, dispatcher: impl Into<Dispatcher>) -> Self {
        self.dispatchers.push((name.to_owned(), dispatcher.into()));
        self
    }

    /// Declares a mailbox, so that builders, dispatchers and configuration can name it.
    pub fn mailbox(mut self, name: &str, mailbox: Mailbox) -> Self {
        self.mailboxes.push((name.to_owned(), mailbox));
        self
    }

    /// What everything random in the system derives from. 0 unless said otherwise.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What everything timed in the system goes by: the machine's clock unless said otherwise.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(StdArc::new(clock));
        self
    }

    /// How failures of top-level actors are judged. A failure that this escalates ends the system.
    pub fn supervision(mut self, strategy: impl Into<Strategy>) -> Self {
        self.supervision = strategy.into();
        self
    }

    /// Starts the system.
    ///
    /// # Errors
    ///
    /// [`BuildError`]: a bad name, two dispatchers or mailboxes of one name, a mailbox that no actor
    /// could have, a dispatcher that cannot be started as described, for example because a core that it is to be pinned to does not exist. Every worker has
    /// reported by then, and no thread is left.
    pub fn build(self) -> Result<System, BuildError> {
        let Self { name, seed, clock, mut dispatchers, mailboxes, supervision } = self;
        let mut characters = name.chars();
        let begins_well = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
        if !begins_well || !characters.all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            return Err(BuildError::Name { name });
        }
        if !dispatchers.iter().any(|(name, _)| name == DEFAULT) {
            dispatchers.push((DEFAULT.to_owned(), Dispatcher::work_stealing().into()));
        }
        let mailboxes = Mailboxes::new(mailboxes, &dispatchers)?;
        let mut running: BTreeMap<String, Dispatch> = BTreeMap::new();
        for (dispatcher_name, dispatcher) in dispatchers {
            let started = if running.contains_key(&dispatcher_name) {
                Err(BuildError::DuplicateDispatcher { name: dispatcher_name.clone() })
            } else {
                Dispatch::start(&format!("{name}-{dispatcher_name}"), &dispatcher)
                    .map_err(|error| BuildError::Dispatcher { name: dispatcher_name.clone(), error })
            };
            match started {
                Ok(started) => {
                    running.insert(dispatcher_name, started);
                }
                Err(error) => {
                    running.values().for_each(Dispatch::end);
                    return Err(error);
                }
            }
        }
        let clock = clock.unwrap_or_else(|| StdArc::new(SystemClock::new()));
        let core = StdArc::new(SystemCore {
            name,
            seed,
            books: Books::new(),
            dead_letters: DeadLetters::default(),
            timers: Timers::new(clock),
            #[cfg(all(feature = "net", not(pointsman_loom)))]
            net: crate::net::DriverSlot::default(),
            dispatchers: running,
            mailboxes,
            tree: Mutex::new(None),
            next_uid: AtomicU32::new(1),
            living: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            end: Mutex::new(End::NotYet),
            ended: Condvar::new(),
        });
        core.grow_tree(supervision)?;
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

    pub fn dispatcher(&self, name: Option<&str>) -> Result<Place<'_>, SpawnError> {
        let name = name.unwrap_or(DEFAULT);
        let Some(dispatch) = self.dispatchers.get(name) else {
            let known = self.dispatchers.keys().cloned().collect();
            return Err(SpawnError::UnknownDispatcher { name: name.to_owned(), known });
        };
        Ok(match &dispatch.home {
            Some(home) => Place::Shared(home),
            None => Place::OwnThread(&dispatch.running),
        })
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

    /// Counts and tells a dead letter.
    pub fn dead_letter<M>(&self, row: &Row, recipient: &AnyRef) {
        row.dead_lettered(1);
        let name = std::any::type_name::<M>();
        self.dead_letters.publish(DeadLetterReason::Stopped, name, || recipient.path());
    }

    fn ledger_now(&self) -> Ledger {
        let mut ledger = self.books.sum();
        let mut open: Vec<AnyRef> = self.tree().into_iter().map(|tree| tree.root).collect();
        while let Some(actor) = open.pop() {
            ledger.queued += actor.queued() as u64;
            open.extend(actor.core().children.all());
        }
        ledger
    }
}

impl Dispatch {
    fn start(name: &str, dispatcher: &Dispatcher) -> Result<Self, StartError> {
        let running = dispatcher.start(name, crate::grace::standing)?;
        let home = match running.kind() {
            Kind::Pinned => None,
            _ => Some(Box::new(running.new_task_home()?)),
        };
        Ok(Self { running, home })
    }

    /// Ends the threads and joins them, but for the calling one, if it is one of them.
    pub fn end(&self) {
        let _ = self.running.stop_and_join();
    }
}
