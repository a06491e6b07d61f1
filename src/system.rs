//! The composition root has the system, and the builder that puts the core and all features together.

use crate::core::dead_letter_log::DeadLetterLog;
use crate::core::event_stream::EventStream;
use crate::core::extensions::Extensions;
use crate::core::lifecycle::Lifecycle;
use crate::core::named_mailboxes::Mailboxes;
use crate::core::polls_within::{Around, PollsWithin};
use crate::core::strategy::Strategy;
use crate::core::system::{Parts, SystemCore};
use crate::dispatch::dispatcher::Dispatcher;
use crate::mailbox::kind::Mailbox;
use crate::measure::meter::Meter;
use crate::pattern::inbox::InboxCapacity;
#[cfg(feature = "remote")]
use crate::remote::remote::NodeSlot;
use crate::routing::logic::RoutingLogic;
use crate::routing::settings::check::check_sections;
use crate::settings::deployment::Deployment;
use crate::settings::phases::Phases;
use crate::settings::router::RouterSettings;
use crate::shutdown::callbacks::Callbacks;
use crate::shutdown::coordinated::Coordinator;
use crate::system_settings::SystemSettings;
use crate::telemetry::state::TelemetryState;
use crate::telemetry::telemetry::Telemetry;
use crate::time::clock::{Clock, SystemClock};
use crate::topology::config::ConfiguredGroups;
use crate::util::stderr_log::StderrLog;
use std::fmt;
use std::ops::Deref;
#[cfg(feature = "config")]
use std::path::Path;
use std::sync::Arc as StdArc;
use std::time::Duration;

pub use crate::core::error::ShutdownError;
pub use crate::core::ledger::Ledger;
pub use crate::core::system::SystemRef;
pub use crate::settings::build_error::BuildError;

/// The time for which the destructor of [`System`] waits for actors to end.
pub(crate) const DROP_DEADLINE: Duration = Duration::from_secs(10);

/// A running actor system. Dropping it stops all actors and joins all threads.
///
/// A `System` dereferences to [`SystemRef`], the handle that can be cloned and kept anywhere. Several systems may live
/// in one process; they know nothing of each other.
///
/// ```
/// use pointsman::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop")
///     .dispatcher("default", Dispatcher::work_stealing().threads(2).throughput(64))
///     .dispatcher("blocking", Dispatcher::blocking().thread_range(1..=8))
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

/// Describes a system that is about to start; see [`System::builder`].
#[must_use = "nothing starts before `build`"]
pub struct SystemBuilder {
    settings: SystemSettings,
    clock: Option<StdArc<dyn Clock>>,
    polls_within: Option<Box<Around>>,
    /// The error of the first deployment whose pattern is no pattern of paths.
    bad_pattern: Option<BuildError>,
}

impl System {
    /// Makes a builder for a system. The name begins with a letter or digit and continues with letters, digits, `-` and
    /// `_`.
    pub fn builder(name: &str) -> SystemBuilder {
        SystemBuilder {
            settings: SystemSettings::new(name),
            clock: None,
            polls_within: None,
            bad_pattern: None,
        }
    }

    /// Returns the handle, which can be cloned and kept.
    pub fn handle(&self) -> &SystemRef {
        &self.handle
    }

    /// Stops all actors, bottom up, waits for them, joins all threads, and returns the final ledger.
    ///
    /// The balance of the ledger is 0, except for messages on their way from one [system to another](Ledger): the
    /// balances of both systems sum to 0. The call runs no tasks of the [coordinated shutdown](crate::shutdown); after
    /// a run of a coordinated shutdown it joins the threads. At last it frees, on this thread, the memory that was
    /// replaced while the system ran and that no thread can be reading any more, such as the recipe of a router that
    /// has ended. This may run destructors of yours.
    ///
    /// # Errors
    ///
    /// * [`ShutdownError::Stuck`] when actors still run after `deadline`, with their paths. The system goes on ending
    ///   in the background, and its threads end after its last actor.
    /// * [`ShutdownError::OwnThread`] on a thread of the system itself, or on a work-stealing worker of another system,
    ///   neither of which may wait. The system then ends in the background, too.
    pub fn shutdown(self, deadline: Duration) -> Result<Ledger, ShutdownError> {
        let outcome = self.handle.core().shut_down(deadline);
        if outcome.is_err() {
            // Done before the destructor, which would wait once more.
            self.handle.core().end_in_background();
        }
        outcome.map(|()| self.handle.ledger())
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.handle.core().end_with_handle(DROP_DEADLINE);
    }
}

impl Deref for System {
    type Target = SystemRef;
    fn deref(&self) -> &SystemRef {
        &self.handle
    }
}

impl SystemBuilder {
    /// Declares a dispatcher. Two names have a meaning:
    ///
    /// * `"default"` runs the actors that name no dispatcher. If it is not declared, it is work-stealing with a thread
    ///   for each core.
    /// * `"internal"` runs the engine's own actors (guardians, inboxes, promises), so handlers that block cannot keep
    ///   them from working. If it is not declared, these actors run on the default dispatcher, where nothing should
    ///   block.
    ///
    /// The name is not empty and has no control characters: it is part of the names of the dispatcher's threads, after
    /// the name of the system.
    pub fn dispatcher(mut self, name: &str, dispatcher: Dispatcher) -> Self {
        self.settings.dispatchers.dispatchers.push((name.to_owned(), dispatcher));
        self
    }

    /// Makes `alias` a name of the dispatcher `target`, or of the dispatcher for which `target` is an alias, over 20
    /// steps at most. Aliases may be declared in any order, and `"default"` may be an alias, too. The idea is Akka's.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop")
    ///     .dispatcher("blocking", Dispatcher::blocking().thread_range(1..=8))
    ///     .dispatcher_alias("files", "blocking")
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn dispatcher_alias(mut self, alias: &str, target: &str) -> Self {
        self.settings.dispatchers.aliases.push((alias.to_owned(), target.to_owned()));
        self
    }

    /// Declares a mailbox, so that builders, dispatchers and configuration can name it.
    pub fn mailbox(mut self, name: &str, mailbox: Mailbox) -> Self {
        self.settings.mailboxes.push((name.to_owned(), mailbox));
        self
    }

    /// Sets the deployment of the actors at a path below `/user` (or `/system`), or at all paths that match a pattern:
    /// `*` is any single name, `prefix*` a single name with that prefix, and `**` at the end one or more names. At each
    /// level a name beats `*`, which beats `prefix*`; `**` counts only where nothing else matches. The deployment takes
    /// precedence over the code that creates the actor. The rules are Akka's. The paths of actors that other nodes have made
    /// here begin with `/remote`.
    ///
    /// ```
    /// use pointsman::settings::Deployment;
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
        if let Err(error) = self.settings.deployments.add(pattern, deployment) {
            self.bad_pattern.get_or_insert(error);
        }
        self
    }

    /// Sets how many messages an [inbox](crate::pattern::Inbox) without a capacity of its own keeps: at least 1; 1000 by
    /// default.
    pub fn inbox_capacity(mut self, message_count: usize) -> Self {
        self.settings.inbox_capacity = message_count;
        self
    }

    /// Sets the seed from which all random choices in the system derive; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Sets the clock of the system, which is the machine's clock by default. Timers, the timeouts of asks, and senders
    /// that [wait for room](crate::OverflowPolicy::Wait) go by this clock. The following always go by the machine's clock, since
    /// they are about threads and sockets:
    ///
    /// - how long [`System::shutdown`], [`SystemRef::wait_until_ended`] and the [`System`]'s destructor wait;
    /// - how long a turn may go on ([`Dispatcher::deadline`]), a worker looks for work
    ///   ([`spin`](Dispatcher::spin)), and an idle thread of a blocking dispatcher is kept
    ///   ([`keep_alive`](Dispatcher::keep_alive));
    /// - how long the last bytes of a connection may take: after the end of its actor (`linger` of a listener, feature
    ///   `net`), and 2 s after the end of a system whose [`System`] is gone.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(StdArc::new(clock));
        self
    }

    /// Sets what surrounds each poll of a future that the system polls: the futures of
    /// [pipes](crate::Context::pipe_to_self), of [`Context::hold`](crate::Context::hold), of attached
    /// [streams](crate::Context::attach), and of the tasks of a [coordinated shutdown](crate::shutdown). By default
    /// nothing surrounds them.
    ///
    /// A future of an async runtime needs that runtime around its polls, for its timers and sockets. The system has none
    /// of its own. For tokio the following is enough, and then all futures of tokio work, those of reqwest and sqlx
    /// included:
    ///
    /// ```
    /// use pointsman::pattern::PipeError;
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = tokio::runtime::Runtime::new()?;
    /// let tokio = runtime.handle().clone();
    /// let system = System::builder("shop")
    ///     .polls_within(move |poll| {
    ///         let _entered = tokio.enter();
    ///         poll();
    ///     })
    ///     .build()?;
    /// let (sender, naps) = std::sync::mpsc::channel();
    /// let bed: ActorRef<Result<(), PipeError>> = ActorRef::from_fn(move |nap| drop(sender.send(nap)));
    /// system.pipe(async { tokio::time::sleep(Duration::from_millis(1)).await }, &bed, |nap| nap)?;
    /// assert_eq!(naps.recv()?, Ok(()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The system polls on its own threads, and the runtime only drives its timers and sockets. So the runtime must run:
    /// a multi-threaded runtime does so by itself, and a current-thread runtime only while a thread is in its `block_on`.
    ///
    /// `around` runs on any thread, many at a time, and must call its argument exactly once, before it returns. The
    /// argument polls a future, makes the future of a task of a shutdown, runs a blocking closure of a pipe, or drops a
    /// future. A panic of `around`, and a missing call, count as a panic of the future.
    pub fn polls_within(mut self, around: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        self.polls_within = Some(Box::new(around));
        self
    }

    /// Sets the strategy for failures of top-level actors. A failure that the strategy escalates ends the system.
    pub fn supervision(mut self, strategy: Strategy) -> Self {
        self.settings.supervision = strategy;
        self
    }

    /// Sets how dead letters are logged. The default is the first 10, then a pause of 5 minutes.
    pub fn log_dead_letters(mut self, log: DeadLetterLog) -> Self {
        self.settings.log_dead_letters = log;
        self
    }

    /// Sets what the system measures of itself. Default: [`Telemetry::default`], with a watchdog alone. With a
    /// [clock](Self::clock) of your own the default is [off](Telemetry::off). A running system changes it by
    /// [`SystemRef::set_telemetry`].
    pub fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.settings.telemetry = Some(telemetry);
        self
    }

    /// Sets whether the first lines of the log go to standard error while the program has no logger of the crate `log`
    /// installed: 5 lines each of failures of actors, of dead letters, of routers and systems that end by themselves,
    /// and of most other warnings, in one process. Default: yes.
    ///
    /// The thread that reports writes the line, for a dead letter the sender's: that thread waits while standard error
    /// takes nothing. A logger whose type has no fields, and which is silenced by its level, counts as none.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("silent").stderr_without_logger(false).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn stderr_without_logger(mut self, is_on: bool) -> Self {
        self.settings.stderr_without_logger = is_on;
        self
    }

    /// Sets the phases of the [coordinated shutdown](crate::shutdown), instead of the default phases.
    pub fn shutdown_phases(mut self, phases: Phases) -> Self {
        self.settings.shutdown_phases = phases;
        self
    }

    /// Gives a routing logic of your own a name, so [settings](crate::routing::RouterSettings::router) can ask for it
    /// on routers of messages `M`. The same name may be given once for each type of message.
    ///
    /// `make` gets all settings of the router, with [options](crate::routing::RouterSettings::option) that only the
    /// logic understands. It is called when such a router is created, on the thread that creates the router. Its error
    /// states the fault of the settings.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::settings::Deployment;
    /// use pointsman::routing::{RouteContext, RouterSettings, Routees, RoutingLogic};
    ///
    /// /// All to one routee.
    /// struct Favourite(usize);
    /// impl RoutingLogic<u64> for Favourite {
    ///     fn select(&self, _: &u64, routees: &Routees<u64>, _: &RouteContext) -> Option<usize> {
    ///         if self.0 < routees.len() { Some(self.0) } else { None }
    ///     }
    /// }
    ///
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let says = RouterSettings::new().router("favourite").option("index", 2);
    /// let system = System::builder("demo")
    ///     .routing_logic::<u64, _>("favourite", |says| {
    ///         let index = says.options.get("index").ok_or("it has no option `index`")?;
    ///         Ok(Favourite(index.parse().map_err(|error| format!("index {index:?}: {error}"))?))
    ///     })
    ///     .deploy("/workers", Deployment::new().router(says))
    ///     .build()?;
    /// let workers = system.router("workers").pool(4, |_| Worker).spawn()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`build`](Self::build) refuses two logics of one name for the same messages, and a name of a built-in kind of
    /// router. [`spawn`](crate::routing::RouterPlan::spawn) returns [`SpawnError::Section`](crate::SpawnError::Section)
    /// for a router of other messages.
    pub fn routing_logic<M, L>(
        mut self,
        name: &str,
        make: impl Fn(&RouterSettings) -> Result<L, String> + Send + Sync + 'static,
    ) -> Self
    where
        M: Send + 'static,
        L: RoutingLogic<M>,
    {
        self.settings.routing_logics.add::<M, L>(name, make);
        self
    }

    /// Makes the system a node that exchanges messages with others.
    ///
    /// # Errors
    ///
    /// [`build`](Self::build) returns [`BuildError::Node`] for a node that cannot be as described, or whose engine cannot
    /// start.
    #[cfg(feature = "remote")]
    pub fn node(mut self, node: crate::remote::Node) -> Self {
        self.settings.node = Some(node);
        self
    }

    /// Starts the system.
    ///
    /// # Errors
    ///
    /// [`BuildError`]:
    ///
    /// * a bad name of the system,
    /// * two dispatchers, aliases or mailboxes of one name, or an alias of nothing,
    /// * a mailbox that no actor could have, or inboxes that keep nothing,
    /// * settings that no router could have,
    /// * a [deployment](Self::deploy) that names an unknown dispatcher or mailbox,
    /// * a dispatcher that cannot be started as described, for example because it is to be pinned to a core that does
    ///   not exist,
    /// * a machine that refuses the thread of the [timers](crate::Context::timers), which each system has unless its
    ///   clock is moved by hand.
    ///
    /// When the error returns, each worker has reported, and no thread is left.
    pub fn build(self) -> Result<System, BuildError> {
        let Self { settings, clock, polls_within, bad_pattern } = self;
        #[cfg(all(feature = "config", feature = "remote"))]
        let settings = crate::config::apply::apply_to_node(settings)?;
        #[cfg(feature = "config")]
        let printed = crate::config::print::Settings::of(&settings);
        check_sections(&settings.deployments, &settings.known_names())?;
        let SystemSettings {
            name,
            seed,
            dispatchers,
            mailboxes,
            deployments,
            routing_logics,
            supervision,
            log_dead_letters,
            stderr_without_logger,
            inbox_capacity,
            shutdown_phases,
            topology,
            telemetry,
            #[cfg(feature = "remote")]
            node,
            #[cfg(all(feature = "config", feature = "remote"))]
                remote: _,
        } = settings;
        let mut characters = name.chars();
        let begins_well = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
        if !begins_well || !characters.all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            return Err(BuildError::Name { name });
        }
        if let Some(error) = bad_pattern {
            return Err(error);
        }
        if inbox_capacity == 0 {
            return Err(BuildError::ZeroInboxCapacity);
        }
        shutdown_phases.check()?;
        #[cfg(feature = "remote")]
        let (node_slot, starting_node) = match node {
            None => (NodeSlot::default(), None),
            Some(node) => {
                let node_name = node.name().to_owned();
                let made = NodeSlot::make(node, &name);
                let (slot, node) = made.map_err(|error| node_error(&node_name, error))?;
                (slot, Some((node_name, node)))
            }
        };
        let stderr = StderrLog { is_on: stderr_without_logger };
        let coordinator =
            Coordinator::new(shutdown_phases, stderr).map_err(|cycle| BuildError::PhaseCycle { cycle })?;
        let mailboxes = Mailboxes::new(mailboxes, &dispatchers.dispatchers)?;
        // A clock that a test moves jumps, and a handler would seem to have run for as long.
        let telemetry = telemetry.unwrap_or_else(|| match clock {
            None => Telemetry::default(),
            Some(_) => Telemetry::off(),
        });
        let clock = clock.unwrap_or_else(|| StdArc::new(SystemClock::new()));
        let time = clock.clone();
        let meter = Meter::new(Box::new(move || time.now()));
        // Before the threads start: each looks at the switch before its first turn.
        meter.set(telemetry.one_block_in(), telemetry.one_turn_in());
        let dispatchers = dispatchers.start(&name, &meter)?;
        let mut extensions = Extensions::default();
        // The extensions are added in the order in which they learn of the end.
        extensions.add(coordinator);
        extensions.add(Callbacks::new());
        extensions.add(routing_logics);
        extensions.add(InboxCapacity(inbox_capacity));
        extensions.add(TelemetryState::off());
        extensions.add(ConfiguredGroups(topology));
        extensions.add(PollsWithin(polls_within));
        // Before the sockets: the last messages to other nodes go out first.
        #[cfg(feature = "remote")]
        extensions.add(node_slot);
        #[cfg(all(feature = "net", not(pointsman_loom)))]
        extensions.add(crate::net::driver::DriverSlot::new(&name));
        #[cfg(feature = "config")]
        extensions.add(printed);
        let core = SystemCore::new(Parts {
            name,
            seed,
            clock,
            meter,
            events: EventStream::counting::<Lifecycle>(),
            log_dead_letters,
            stderr,
            dispatchers,
            mailboxes,
            deployments,
            extensions,
        });
        core.start_timers()?;
        core.create_guardians(supervision)?;
        core.count_builder_ended();
        let handle = SystemRef::new(core);
        if telemetry != Telemetry::off() {
            handle.set_telemetry(telemetry);
        }
        let system = System { handle };
        #[cfg(feature = "remote")]
        if let Some((name, node)) = starting_node {
            // An error ends the system.
            node.start(&system).map_err(|error| node_error(&name, error))?;
        }
        Ok(system)
    }
}

#[cfg(feature = "remote")]
fn node_error(node: &str, error: crate::remote::NodeError) -> BuildError {
    BuildError::Node { node: node.to_owned(), error: Box::new(error) }
}

#[cfg(feature = "config")]
impl SystemBuilder {
    /// Changes the settings made so far as a [configuration](crate::config) in TOML says.
    ///
    /// # Errors
    ///
    /// [`BuildError::ConfigSyntax`] and [`BuildError::ConfigKey`]: the text is not TOML, or a key or value in it is wrong. Faults that show only when all is set,
    /// such as a circle of aliases or of phases, are errors of [`build`](Self::build).
    pub fn config(mut self, toml: &str) -> Result<Self, BuildError> {
        self.settings = crate::config::apply::apply(crate::config::apply::read(toml)?, self.settings)?;
        Ok(self)
    }

    /// As [`config`](Self::config), from a section of a file of the program's own, which has read it. `section` is the
    /// name of the section there; errors name the key with it: `engine.dispatcher.default.threads`.
    ///
    /// # Errors
    ///
    /// [`BuildError::ConfigKey`]: a key or value in the section is wrong.
    pub fn config_section(
        mut self,
        section: &str,
        config: &crate::config::EngineConfig,
    ) -> Result<Self, BuildError> {
        let changed = crate::config::apply::read_table(config.as_table())
            .and_then(|file| crate::config::apply::apply(file, self.settings));
        self.settings = changed.map_err(|error| crate::config::apply::below(section, error))?;
        Ok(self)
    }

    /// As [`config`](Self::config), from a file.
    ///
    /// # Errors
    ///
    /// As [`config`](Self::config); and [`BuildError::ConfigFile`].
    pub fn config_file(self, file: impl AsRef<Path>) -> Result<Self, BuildError> {
        let file = file.as_ref();
        let text = std::fs::read_to_string(file)
            .map_err(|error| BuildError::ConfigFile { file: file.to_owned(), error })?;
        self.config(&text)
    }
}

#[cfg(feature = "testkit")]
impl SystemBuilder {
    /// Runs all actors by `stepper`, whatever dispatcher they name.
    pub(crate) fn stepper(mut self, stepper: StdArc<dyn crate::dispatch::stepping::Stepper>) -> Self {
        self.settings.dispatchers.stepper = Some(stepper);
        self
    }
}

impl fmt::Debug for SystemBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemBuilder").field("name", &self.settings.name).finish_non_exhaustive()
    }
}
