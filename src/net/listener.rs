//! The listener: it accepts connections.
//!
//! The listener's actor accepts in its own turn and creates an actor for each connection as its child.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::actor::timer_table::TimerKey;
use crate::ask::ask::Ask;
use crate::ask::reply::ReplyTo;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SpawnError;
use crate::core::strategy::Strategy;
use crate::core::system::SystemRef;
use crate::failure::Failure;
use crate::net::connection::{Connection, LINGER_DEFAULT, Marks};
use crate::net::connection_permits::{ConnectionPermit, ConnectionPermits};
use crate::net::driver::{Driver, DriverSlot, Owner, Registration};
use crate::net::linger::LINGER_BYTES_DEFAULT;
use crate::net::readiness::Readiness;
use crate::net::ready::Ready;
use crate::net::socket::{ListenSocket, Socket, SocketAddress};
use crate::settings::deployment::ListenerSettings;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::Guarded;
use mio::Interest;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// At most this many connections are accepted before other actors get their turn.
pub(super) const ACCEPTS_MAX: u32 = 64;
/// The pause of accepting when the operating system has no more descriptors or memory to give.
pub(super) const REST: Duration = Duration::from_millis(50);

/// Describes a listener that is about to start; made by [`SystemRef::listener`].
#[must_use = "nothing listens before `spawn`"]
pub struct ListenerBuilder {
    system: SystemRef,
    name: String,
    address: SocketAddress,
    dispatcher: Option<String>,
    settings: ListenerSettings,
    /// Whether the listener is one of the engine's own.
    is_internal: bool,
}

/// The settings of the builder and of the system's deployment, with defaults for the rest.
#[derive(Debug, Clone)]
struct Settings {
    dispatcher: Option<String>,
    is_internal: bool,
    max_connections: usize,
    marks: Marks,
    linger: Duration,
    linger_bytes: usize,
    nodelay: bool,
}

impl Settings {
    fn new(dispatcher: Option<String>, is_internal: bool, said: &ListenerSettings) -> Self {
        let high = said.high_mark.unwrap_or(Marks::default().high);
        let low = said.low_mark.unwrap_or(Marks::default().low).min(high);
        Self {
            dispatcher,
            is_internal,
            max_connections: said.max_connections.unwrap_or(usize::MAX),
            marks: Marks { low, high },
            linger: said.linger.unwrap_or(LINGER_DEFAULT),
            linger_bytes: said.linger_bytes.unwrap_or(LINGER_BYTES_DEFAULT),
            nodelay: said.nodelay.unwrap_or(true),
        }
    }
}

/// A handle to a listener. Dropping it changes nothing: the listener ends with its system, or by
/// [`stop`](Self::stop).
#[derive(Clone)]
pub struct Listener {
    actor: AnyActorRef,
    messages: ActorRef<Message>,
    shared: StdArc<Shared>,
}

/// The end of a [drain](Listener::drain).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// The number of connections whose sockets were not closed when the limit passed; 0 if all have closed before.
    pub connections_left: usize,
}

impl DrainReport {
    /// Whether all connections have closed.
    pub fn is_complete(&self) -> bool {
        self.connections_left == 0
    }
}

impl fmt::Display for DrainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.connections_left {
            0 => f.write_str("all connections have closed"),
            1 => f.write_str("1 connection did not close in time: stop the listener to end it"),
            left => write!(f, "{left} connections did not close in time: stop the listener to end them"),
        }
    }
}

/// The state that a listener's actor and its handles share.
struct Shared {
    /// Taken out when the listener stops.
    socket: Mutex<Option<ListenSocket>>,
    local_addr: Option<SocketAddr>,
    accepted: AtomicU64,
    accept_failures: AtomicU64,
    open: AtomicUsize,
    places: StdArc<ConnectionPermits>,
}

/// The reason why there is no listener.
#[non_exhaustive]
pub enum ListenError {
    /// The operating system does not let us listen there: the port or path is in use, the address is not
    /// one of this machine, is malformed, or needs rights that we don't have.
    Bind {
        /// The address.
        address: SocketAddress,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The thread that waits for sockets could not be started.
    Driver(io::Error),
    /// The listener's actor could not be created.
    Spawn(SpawnError),
}

impl ListenError {
    /// Returns the error of the operating system, if it was asked; a port in use is [`io::ErrorKind::AddrInUse`].
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            ListenError::Bind { error, .. } | ListenError::Driver(error) => Some(error.kind()),
            ListenError::Spawn(_) => None,
        }
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::Bind { address, error } if error.kind() == io::ErrorKind::AddrInUse => write!(
                f,
                "cannot listen on {address}: it is in use ({error}), end the other listener, remove the \
                 socket file it left, or choose another address"
            ),
            ListenError::Bind { address, error } => write!(f, "cannot listen on {address}: {error}"),
            ListenError::Driver(error) => {
                write!(f, "cannot start the thread that waits for sockets: {error}")
            }
            ListenError::Spawn(error) => write!(f, "cannot create the listener's actor: {error}"),
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ListenError::Bind { error, .. } | ListenError::Driver(error) => Some(error),
            ListenError::Spawn(error) => Some(error),
        }
    }
}

debug_by_display! { ListenError }

impl From<SpawnError> for ListenError {
    fn from(error: SpawnError) -> Self {
        ListenError::Spawn(error)
    }
}

impl SystemRef {
    /// Starts to describe a listener for connections at `address`, whose actor is top-level under `name`.
    pub fn listener(&self, name: &str, address: impl Into<SocketAddress>) -> ListenerBuilder {
        ListenerBuilder {
            system: self.clone(),
            name: name.to_owned(),
            address: address.into(),
            dispatcher: None,
            settings: ListenerSettings::new(),
            is_internal: false,
        }
    }
}

impl ListenerBuilder {
    /// Makes the listener one of the engine's own: its actor is below `/system`, and it ignores the user's settings for
    /// actors and paths.
    #[cfg(feature = "console")]
    pub(crate) fn internal(mut self) -> Self {
        self.is_internal = true;
        self
    }

    /// Runs the connections' actors on the dispatcher of this name instead of `"default"`.
    pub fn dispatcher(mut self, name: &str) -> Self {
        self.dispatcher = Some(name.to_owned());
        self
    }

    /// As [`ListenerSettings::max_connections`].
    pub fn max_connections(mut self, count: usize) -> Self {
        self.settings = self.settings.max_connections(count);
        self
    }

    /// As [`ListenerSettings::marks`].
    pub fn marks(mut self, low: usize, high: usize) -> Self {
        self.settings = self.settings.marks(low, high);
        self
    }

    /// As [`ListenerSettings::linger`].
    pub fn linger(mut self, linger: Duration) -> Self {
        self.settings = self.settings.linger(linger);
        self
    }

    /// As [`ListenerSettings::linger_bytes`].
    pub fn linger_bytes(mut self, bytes: usize) -> Self {
        self.settings = self.settings.linger_bytes(bytes);
        self
    }

    /// As [`ListenerSettings::nodelay`].
    pub fn nodelay(mut self, nodelay: bool) -> Self {
        self.settings = self.settings.nodelay(nodelay);
        self
    }

    /// Listens from now on. `make` makes the actor of each connection, in that actor's first turn; its message type
    /// gets readiness by a `From<Ready>`.
    ///
    /// A connection's actor that fails is stopped, whatever its listener's own supervision: its state cannot be made
    /// anew, since its connection is gone with it.
    ///
    /// # Errors
    ///
    /// [`ListenError`]: the port or path is in use or otherwise refused, a bad or taken name, an unknown dispatcher, a
    /// system that is shut down. Nothing is left behind.
    pub fn spawn<A, F>(self, make: F) -> Result<Listener, ListenError>
    where
        A: Actor,
        A::Message: From<Ready>,
        F: Fn(Connection, &mut Context<A::Message>) -> A + Send + Sync + 'static,
    {
        self.spawn_on(ListenSocket::bind, make)
    }

    /// As [`spawn`](Self::spawn), on the socket that `bind` makes.
    pub(super) fn spawn_on<A, F>(
        self,
        bind: impl FnOnce(&SocketAddress) -> io::Result<ListenSocket>,
        make: F,
    ) -> Result<Listener, ListenError>
    where
        A: Actor,
        A::Message: From<Ready>,
        F: Fn(Connection, &mut Context<A::Message>) -> A + Send + Sync + 'static,
    {
        // A refused recipe is dropped while the error is on its way.
        let make = Guarded::new(make);
        let make = move |connection: Connection, ctx: &mut Context<A::Message>| make(connection, ctx);
        let Self { system, name, address, dispatcher, settings, is_internal } = self;
        let deployed = system.core().deployed_at_top(&name).filter(|_| !is_internal);
        let deployed = deployed.map(|deployed| deployed.listener.or(&settings));
        let settings = Settings::new(dispatcher, is_internal, &deployed.unwrap_or(settings));
        // A dispatcher that does not exist would otherwise show with the first connection.
        system.core().check_dispatcher(settings.dispatcher.as_deref())?;
        let pool = system.core().dispatchers.default_pool();
        let driver =
            system.core().extensions.get::<DriverSlot>().driver(pool).map_err(ListenError::Driver)?;
        let socket = bind(&address).map_err(|error| ListenError::Bind { address: address.clone(), error })?;
        let places = ConnectionPermits::new(format!("system {:?}: listener {name:?}", system.core().name));
        let shared = StdArc::new(Shared {
            local_addr: socket.local_addr(),
            socket: Mutex::new(Some(socket)),
            accepted: AtomicU64::new(0),
            accept_failures: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            places: StdArc::new(places),
        });
        let (kept, port, make) = (shared.clone(), Port(shared), StdArc::new(make));
        let builder = match is_internal {
            true => ActorBuilder::new(system.core().system_guardian(), Some(&name)).internal(),
            false => system.actor(&name),
        };
        let actor = builder
            .on_failure(Strategy::stop())
            .spawn_with(move |ctx| Accepting::begin(&port.0, &driver, &settings, &make, ctx))?;
        Ok(Listener { actor: actor.any_local(), messages: actor, shared: kept })
    }
}

impl Listener {
    /// Returns the address that it listens on, with the port that the system chose; `None` for a Unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.shared.local_addr
    }

    /// Returns the listener's actor; the connections' actors are its children.
    pub fn actor(&self) -> &AnyActorRef {
        &self.actor
    }

    /// Returns the number of connections accepted so far.
    pub fn accepted(&self) -> u64 {
        // Ordering: Relaxed; a statistic.
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// Returns the number of connections whose sockets are not closed, which
    /// [`max_connections`](ListenerBuilder::max_connections) bounds: open connections, and connections that linger.
    pub fn connections(&self) -> usize {
        self.shared.places.held()
    }

    /// Returns the number of connections whose actors have not ended.
    pub fn open_connections(&self) -> usize {
        // Ordering: Relaxed; a statistic.
        self.shared.open.load(Ordering::Relaxed)
    }

    /// Returns the number of connections whose actors have ended and whose sockets are not closed: their last bytes go
    /// out, or their peers have not closed yet. They count towards
    /// [`max_connections`](ListenerBuilder::max_connections).
    pub fn lingering_connections(&self) -> usize {
        self.shared.places.lingering()
    }

    /// Returns how many connections were closed before their last bytes were sent because the lingering connections
    /// held more than [`linger_bytes`](ListenerBuilder::linger_bytes). A warning in the log reports the first, and each
    /// that doubles their number.
    pub fn linger_cuts(&self) -> u64 {
        self.shared.places.cut()
    }

    /// Returns how often accepting failed, as when there were too many open files, or no thread for a connection's
    /// actor. The listener tries again after a short rest, and peers that wait to be accepted are not turned away
    /// meanwhile.
    pub fn accept_failures(&self) -> u64 {
        // Ordering: Relaxed; a statistic.
        self.shared.accept_failures.load(Ordering::Relaxed)
    }

    /// Closes the port and lets the connections go on. Peers that wait are accepted first, as far as the
    /// [limit](ListenerBuilder::max_connections) allows; then new peers are refused. For the phase
    /// [`SERVICE_UNBIND`](crate::shutdown::Phase::SERVICE_UNBIND), before connections are asked to end.
    ///
    /// The ask is over when the port is closed and [`accepted`](Self::accepted) counts no further; the actors of the
    /// last connections may begin a little later. A peer that connects at the very moment between is reset. The
    /// listener's actor stays, and ends with the system or by [`stop`](Self::stop).
    ///
    /// ```
    /// # use pointsman::net::{SocketAddress, Connection, Ready};
    /// # use pointsman::prelude::*;
    /// # struct Idle(Connection);
    /// # impl Actor for Idle {
    /// #     type Message = Ready;
    /// #     fn receive(&mut self, _: Ready, _: &mut Context<Ready>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pointsman::shutdown::Phase;
    ///
    /// let system = System::builder("shop").build()?;
    /// let listener = system.listener("port", SocketAddress::tcp("127.0.0.1:0")).spawn(|connection, _| Idle(connection))?;
    /// system.coordinated_shutdown().add_task(Phase::SERVICE_UNBIND, "close the port", move || {
    ///     Ok(listener.unbind().wait()?)
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The ask fails if the listener has stopped: its port is closed then, too. If the listener is restarted meanwhile,
    /// as a sibling's strategy may have it, its port closes at once, before the waiting peers are accepted.
    pub fn unbind(&self) -> Ask<()> {
        self.messages.ask_with(Message::Unbind)
    }

    /// Closes the port as [`unbind`](Self::unbind) does, tells the connections that they should end, and waits until all
    /// of them have closed, for `within` at most, by the system's clock. The answer says how many are left.
    ///
    /// Each connection gets a [`Ready`] and finds [`Connection::is_draining`] true: its actor finishes the request that
    /// it works at, and stops. A connection that does not look goes on until its peer closes. A connection has closed
    /// when its socket has, with its last bytes sent or its linger time over. When `within` has passed, the connections
    /// that are left go on; [`stop`](Self::stop) ends them.
    ///
    /// An actor gets the answer as a message by [`Context::pipe_to_self`]. In a coordinated shutdown a drain is a task
    /// of the phase [`SERVICE_UNBIND`](crate::shutdown::Phase::SERVICE_UNBIND), with a limit below the phase's timeout:
    ///
    /// ```
    /// # use pointsman::net::{SocketAddress, Connection, ReadOutcome, Ready};
    /// # use pointsman::prelude::*;
    /// struct Session(Connection);
    /// impl Actor for Session {
    ///     type Message = Ready;
    ///     fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
    ///         self.0.ready(ready);
    ///         let outcome = self.0.fill(4096);
    ///         // ... answers the requests that have come ...
    ///         let is_over = matches!(outcome, ReadOutcome::Eof | ReadOutcome::Closed(_));
    ///         if is_over || self.0.is_draining() {
    ///             ctx.stop();
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pointsman::shutdown::Phase;
    /// use std::time::Duration;
    ///
    /// let system = System::builder("shop").build()?;
    /// let port = SocketAddress::tcp("127.0.0.1:0");
    /// let listener = system.listener("port", port).spawn(|connection, _| Session(connection))?;
    /// # let client = std::net::TcpStream::connect(listener.local_addr().expect("a TCP listener"))?;
    /// let shutdown = system.coordinated_shutdown();
    /// shutdown.add_task(Phase::SERVICE_UNBIND, "drain the port", move || {
    ///     let report = listener.drain(Duration::from_secs(4)).wait()?;
    ///     if !report.is_complete() {
    ///         eprintln!("{report}");
    ///     }
    ///     Ok(())
    /// })?;
    /// # drop(client);
    /// let report = shutdown.run("end of the day").wait()?;
    /// # assert_eq!(report.ledger.balance(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The ask fails if the listener has stopped, or stops or is restarted meanwhile: its connections end then, too.
    pub fn drain(&self, within: Duration) -> Ask<DrainReport> {
        self.messages.ask_with(|done| Message::Drain { within, done })
    }

    /// Closes the listening socket, then stops the connections' actors, which send their written bytes within the
    /// linger time.
    pub fn stop(&self) {
        let socket = lock(&self.shared.socket).take();
        drop(socket);
        self.actor.stop();
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("local_addr", &self.shared.local_addr)
            .field("open", &self.open_connections())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ListenerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerBuilder")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Closes the port at the end of the listener's actor, whose recipe holds this value: not before a restart, and also if
/// there was never a state.
struct Port(StdArc<Shared>);

impl Drop for Port {
    fn drop(&mut self) {
        let socket = lock(&self.0.socket).take();
        drop(socket);
    }
}

/// Counts an open connection for as long as it lives. The recipe of the connection's actor holds it, and so until that
/// actor ends, whether its listener is told of it or ends as well.
struct Counted(StdArc<Shared>);

impl Counted {
    fn new(shared: &StdArc<Shared>) -> Self {
        // Ordering: Relaxed; a statistic.
        shared.open.fetch_add(1, Ordering::Relaxed);
        Self(shared.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Ordering: Relaxed; a statistic.
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The listener's actor.
struct Accepting<F> {
    shared: StdArc<Shared>,
    driver: StdArc<Driver>,
    settings: Settings,
    make: StdArc<F>,
    /// `None` if the port was closed before this state began.
    registration: Option<Registration>,
    /// Whether a peer may wait to be accepted.
    acceptable: bool,
    /// Whether a [`Message::Rested`] is on its way.
    resting: bool,
    /// The asks that wait until the port is closed.
    unbinding: Vec<ReplyTo<()>>,
    /// The drains that wait until all connections have closed.
    draining: Vec<Draining>,
    /// The number of the next drain.
    next_drain: u64,
}

/// A drain that has begun.
struct Draining {
    number: u64,
    /// The timer of its limit; `None` if its limit is over at once.
    timer: Option<TimerKey>,
    done: ReplyTo<DrainReport>,
}

enum Message {
    Ready(Ready),
    Rested,
    Ended,
    Unbind(ReplyTo<()>),
    Drain {
        within: Duration,
        done: ReplyTo<DrainReport>,
    },
    /// The limit of the drain with this number has passed.
    DrainLimit(u64),
}

impl<A, F> Actor for AcceptingFor<A, F>
where
    A: Actor,
    A::Message: From<Ready>,
    F: Fn(Connection, &mut Context<A::Message>) -> A + Send + Sync + 'static,
{
    type Message = Message;

    fn receive(&mut self, message: Message, ctx: &mut Context<Message>) -> HandlerResult {
        let this = &mut self.0;
        match message {
            Message::Ready(Ready(())) => {
                if let Some(registration) = &this.registration {
                    registration.take();
                }
                this.acceptable = true;
            }
            Message::Rested => this.resting = false,
            // [`ConnectionPermit`] has counted it already, also for a state before this one. There may be room again.
            Message::Ended => {}
            Message::Unbind(done) => {
                this.acceptable = true;
                this.unbinding.push(done);
            }
            Message::Drain { within, done } => {
                this.acceptable = true;
                let number = this.next_drain;
                this.next_drain += 1;
                // A timer without a delay would wait for the clock to move.
                let timer = if within.is_zero() {
                    ctx.me().tell(Message::DrainLimit(number));
                    None
                } else {
                    Some(ctx.after(within, Message::DrainLimit(number)))
                };
                this.draining.push(Draining { number, timer, done });
                this.shared.places.drain();
                this.driver.tell_drain(this.shared.places.listener());
            }
            Message::DrainLimit(number) => this.give_drain_up(number),
        }
        if !this.accept(ctx) {
            this.end_unbinding();
            this.end_drains(ctx);
        } else if let Some(registration) = &this.registration {
            registration.raise(Readiness::READABLE);
        }
        Ok(())
    }

    /// A listener that shares the restart of a sibling keeps its port, unless it is told to close it; the next state
    /// accepts the peers that wait there.
    fn restarting(&mut self, _: &Failure, ctx: &mut Context<Message>) -> HandlerResult {
        self.0.end_unbinding();
        ctx.stop_children();
        Ok(())
    }
}

/// [`Accepting`] with the type of actor that it creates.
struct AcceptingFor<A, F>(Accepting<F>, std::marker::PhantomData<fn() -> A>);

impl<F: Send + Sync + 'static> Accepting<F> {
    fn begin<A: Actor>(
        shared: &StdArc<Shared>,
        driver: &StdArc<Driver>,
        settings: &Settings,
        make: &StdArc<F>,
        ctx: &mut Context<Message>,
    ) -> Result<AcceptingFor<A, F>, Failure>
    where
        A::Message: From<Ready>,
        F: Fn(Connection, &mut Context<A::Message>) -> A,
    {
        let registration = match &mut *lock(&shared.socket) {
            Some(socket) => {
                let owner = Owner::actor(ctx.me().clone(), Message::Ready);
                Some(driver.register(socket, Interest::READABLE, owner)?)
            }
            None => None,
        };
        let accepting = Self {
            shared: shared.clone(),
            driver: driver.clone(),
            settings: settings.clone(),
            make: make.clone(),
            registration,
            acceptable: false,
            resting: false,
            unbinding: Vec::new(),
            draining: Vec::new(),
            next_drain: 0,
        };
        Ok(AcceptingFor(accepting, std::marker::PhantomData))
    }

    /// Accepts waiting peers, within the limits. Returns whether it stopped only to give other actors their turn.
    fn accept<A: Actor>(&mut self, ctx: &mut Context<Message>) -> bool
    where
        A::Message: From<Ready>,
        F: Fn(Connection, &mut Context<A::Message>) -> A,
    {
        for _ in 0..ACCEPTS_MAX {
            let held = self.shared.places.held();
            if !self.acceptable || self.resting || held >= self.settings.max_connections {
                return false;
            }
            let accepted = match &*lock(&self.shared.socket) {
                Some(socket) => socket.accept(),
                None => return false,
            };
            match accepted {
                Ok(accepted) => self.welcome(accepted, ctx),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => self.acceptable = false,
                    // This peer has gone again; the next may not have.
                    io::ErrorKind::Interrupted
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::ConnectionReset => {}
                    // Too many open files, no memory: no edge tells when there is room again.
                    _ => self.rest(ctx),
                },
            }
        }
        true
    }

    /// Closes the port if that was asked for: no peer waits there that can be accepted.
    fn end_unbinding(&mut self) {
        if self.unbinding.is_empty() && self.draining.is_empty() {
            return;
        }
        let socket = lock(&self.shared.socket).take();
        drop(socket);
        for done in self.unbinding.drain(..) {
            let _ = done.send(());
        }
    }

    /// Answers the drains if all connections have closed. The port is closed.
    fn end_drains(&mut self, ctx: &mut Context<Message>) {
        if self.shared.places.held() > 0 {
            return;
        }
        for Draining { timer, done, .. } in self.draining.drain(..) {
            if let Some(timer) = timer {
                ctx.timers().cancel(timer);
            }
            let _ = done.send(DrainReport { connections_left: 0 });
        }
    }

    /// Answers a drain whose limit has passed, with the connections that are left. A port that accepts still, since many
    /// peers wait, is closed.
    fn give_drain_up(&mut self, number: u64) {
        let Some(index) = self.draining.iter().position(|draining| draining.number == number) else { return };
        let socket = lock(&self.shared.socket).take();
        drop(socket);
        let Draining { done, .. } = self.draining.remove(index);
        let _ = done.send(DrainReport { connections_left: self.shared.places.held() });
    }

    fn rest(&mut self, ctx: &mut Context<Message>) {
        // Ordering: Relaxed; a statistic.
        self.shared.accept_failures.fetch_add(1, Ordering::Relaxed);
        self.resting = true;
        ctx.after(REST, Message::Rested);
    }

    /// Creates the actor of a new connection.
    fn welcome<A: Actor>(&mut self, accepted: (Socket, Option<SocketAddr>), ctx: &mut Context<Message>)
    where
        A::Message: From<Ready>,
        F: Fn(Connection, &mut Context<A::Message>) -> A,
    {
        // A socket that the peer has closed already may refuse; its actor will see the end.
        let _ = accepted.0.set_nodelay(self.settings.nodelay);
        let (mut accepted, make, driver) = (Some(accepted), self.make.clone(), self.driver.clone());
        let counted = Counted::new(&self.shared);
        let listener = ctx.me().clone();
        // A listener that has ended refuses the message, and has no use for room.
        let tell = Box::new(move || drop(listener.try_tell(Message::Ended)));
        let place =
            StdArc::new(ConnectionPermit::take(&self.shared.places, self.settings.linger_bytes, tell));
        let (marks, linger) = (self.settings.marks, self.settings.linger);
        let mut builder = ActorBuilder::new(Ok(ctx.me().any_local()), None).on_failure(Strategy::stop());
        if self.settings.is_internal {
            builder = builder.internal();
        }
        if let Some(dispatcher) = &self.settings.dispatcher {
            builder = builder.dispatcher(dispatcher);
        }
        let spawned = builder.spawn_with(move |ctx: &mut Context<A::Message>| {
            let _ = &counted;
            let accepted = accepted.take().ok_or_else(|| Failure::msg("a connection cannot be made anew"))?;
            let owner = Owner::actor(ctx.me().clone(), A::Message::from).of_listener(place.listener());
            let connection = Connection::open(accepted, &driver, owner, marks, linger, place.clone())?;
            Ok::<A, Failure>(make(connection, ctx))
        });
        match spawned {
            Ok(_) => {
                // Ordering: Relaxed; a statistic.
                self.shared.accepted.fetch_add(1, Ordering::Relaxed);
            }
            // The system is stopping, or there is no thread for the actor: the socket went down with the recipe.
            Err(_) => self.rest(ctx),
        }
    }
}

impl<F> Drop for Accepting<F> {
    fn drop(&mut self) {
        // The next state, if there is one, registers the port for itself.
        if let (Some(registration), Some(socket)) = (&self.registration, &mut *lock(&self.shared.socket)) {
            registration.deregister(socket);
        }
    }
}
