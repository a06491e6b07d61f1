//! Outgoing connections: an actor asks for a connection, and gets it, or an error, as a message.
//!
//! Each attempt has a hidden actor of its own below `/system`, the *connector*. It has the name looked up by the
//! resolver, connects without waiting, and opens the connection for the actor that asked when the socket is writable
//! without an error. The driver and the resolver wake it by control messages, which the ledger does not see; its timers
//! go by the system's clock. It watches the actor that asked, and ends with it.
//!
//! The first [`Ready`] of the new connection is held back until the message with the connection is on its way, so the
//! actor has the connection when the `Ready` comes.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::recipe::Recipe;
use crate::actor::spawn::{Plan, spawn_cell};
use crate::actor::system_end::HelperRole;
use crate::actor::turn::apply;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::Terminated;
use crate::core::strategy::Strategy;
use crate::core::system::SystemRef;
use crate::failure::{Failure, guarded};
use crate::net::connect_error::ConnectError;
use crate::net::connection::{Connection, LINGER_DEFAULT, Marks};
use crate::net::connection_permits::ConnectionPermit;
use crate::net::driver::{Driver, DriverSlot, Owner, Registration};
use crate::net::linger::LINGER_BYTES_DEFAULT;
use crate::net::ready::Ready;
use crate::net::resolver::{LookUp, look_up};
use crate::net::socket::{Peer, Socket, SocketAddress};
use crate::util::panic::{Guarded, quietly};
use mio::Interest;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The most addresses of a name that are tried.
const PEERS_MAX: usize = 64;

const LIMIT_DEFAULT: Duration = Duration::from_secs(10);
/// The pause before another attempt at a Unix socket whose listener has no room for a peer that waits: no edge tells
/// when there is room.
const RETRY: Duration = Duration::from_millis(10);

/// Describes an outgoing connection; made by [`Context::connect`].
#[must_use = "nothing connects before `start`"]
pub struct ConnectBuilder<'a, M: Send + 'static> {
    ctx: &'a Context<M>,
    address: SocketAddress,
    settings: Settings,
    look_up: LookUp,
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    limit: Duration,
    marks: Marks,
    linger: Duration,
    nodelay: bool,
}

impl<M: Send + 'static> Context<M> {
    /// Starts to describe a connection from this actor to `address`.
    ///
    /// The actor does not wait: the [`Connection`] comes as a message, or a [`ConnectError`] does. A host name is looked
    /// up on a thread of the system's own, and its addresses are tried in their order. The connection then behaves as a
    /// connection that a listener accepted.
    ///
    /// ```
    /// use pointsman::net::{ConnectError, Connection, ReadOutcome, Ready, SocketAddress};
    /// use pointsman::prelude::*;
    /// use std::io::{Read, Write};
    /// use std::time::Duration;
    ///
    /// enum CallerMsg {
    ///     Connected(Result<Connection, ConnectError>),
    ///     Ready(Ready),
    /// }
    /// impl From<Ready> for CallerMsg {
    ///     fn from(ready: Ready) -> Self {
    ///         CallerMsg::Ready(ready)
    ///     }
    /// }
    ///
    /// struct Caller {
    ///     address: SocketAddress,
    ///     connection: Option<Connection>,
    /// }
    /// impl Actor for Caller {
    ///     type Message = CallerMsg;
    ///     fn started(&mut self, ctx: &mut Context<CallerMsg>) -> HandlerResult {
    ///         ctx.connect(self.address.clone()).within(Duration::from_secs(3)).start(CallerMsg::Connected)?;
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, message: CallerMsg, ctx: &mut Context<CallerMsg>) -> HandlerResult {
    ///         match message {
    ///             CallerMsg::Connected(connected) => {
    ///                 let mut connection = connected?; // or try again later
    ///                 connection.write(b"hello");
    ///                 connection.flush();
    ///                 self.connection = Some(connection);
    ///             }
    ///             CallerMsg::Ready(ready) => {
    ///                 let Some(connection) = &mut self.connection else { return Ok(()) };
    ///                 connection.ready(ready);
    ///                 if matches!(connection.fill(4096), ReadOutcome::Eof | ReadOutcome::Closed(_)) {
    ///                     ctx.stop();
    ///                 }
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let address = SocketAddress::from(server.local_addr()?);
    /// let system = System::builder("calls").build()?;
    /// system.spawn(move || Caller { address: address.clone(), connection: None })?;
    /// let (mut peer, _) = server.accept()?;
    /// let mut greeting = [0; 5];
    /// peer.read_exact(&mut greeting)?;
    /// assert_eq!(&greeting, b"hello");
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect(&self, address: impl Into<SocketAddress>) -> ConnectBuilder<'_, M> {
        let settings =
            Settings { limit: LIMIT_DEFAULT, marks: Marks::default(), linger: LINGER_DEFAULT, nodelay: true };
        ConnectBuilder { ctx: self, address: address.into(), settings, look_up }
    }
}

impl<M: Send + 'static> ConnectBuilder<'_, M> {
    /// Sets the limit of time for the look-up of the name and all attempts together, by the system's clock; 10 s by
    /// default. Of a host with several addresses each gets an equal share of the time that is left.
    pub fn within(mut self, limit: Duration) -> Self {
        self.settings.limit = limit;
        self
    }

    /// As [`ListenerSettings::marks`](crate::net::ListenerSettings::marks).
    pub fn marks(mut self, low: usize, high: usize) -> Self {
        self.settings.marks = Marks { low: low.min(high), high };
        self
    }

    /// As [`ListenerSettings::linger`](crate::net::ListenerSettings::linger). All outgoing connections of a system that
    /// linger hold no more than 64 MiB together.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.settings.linger = linger;
        self
    }

    /// As [`ListenerSettings::nodelay`](crate::net::ListenerSettings::nodelay).
    pub fn nodelay(mut self, nodelay: bool) -> Self {
        self.settings.nodelay = nodelay;
        self
    }

    /// Looks names up by this function.
    #[cfg(test)]
    pub(crate) fn look_up_by(mut self, look_up: LookUp) -> Self {
        self.look_up = look_up;
        self
    }

    /// Begins to connect. One message comes, which `connected` makes of the connection or of the error. It is taken
    /// also by a full mailbox. No message comes when the actor has stopped before: the attempt ends with it. An actor
    /// that is restarted meanwhile gets the message in its new state.
    ///
    /// The connection's [`Ready`] comes as a message, too, by the actor's `From<Ready>`. An actor with several
    /// connections tells them apart by [`start_as`](Self::start_as).
    ///
    /// # Errors
    ///
    /// [`ConnectError::Spawn`] or [`ConnectError::Driver`] when the system is ending or the operating system refuses
    /// the thread that waits for sockets. No message comes then.
    pub fn start(
        self,
        connected: impl FnOnce(Result<Connection, ConnectError>) -> M + Send + 'static,
    ) -> Result<(), ConnectError>
    where
        M: From<Ready>,
    {
        self.start_as(M::from, connected)
    }

    /// As [`start`](Self::start), where `ready` makes the message of each [`Ready`] of this connection.
    ///
    /// ```
    /// # use pointsman::net::{ConnectError, Connection, Ready, SocketAddress};
    /// # use pointsman::prelude::*;
    /// enum ProxyMsg {
    ///     Connected(Result<Connection, ConnectError>),
    ///     ClientReady(Ready),
    ///     UpstreamReady(Ready),
    /// }
    ///
    /// fn connect_upstream(ctx: &Context<ProxyMsg>) -> Result<(), ConnectError> {
    ///     ctx.connect(SocketAddress::tcp("upstream:80")).start_as(ProxyMsg::UpstreamReady, ProxyMsg::Connected)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_as(
        self,
        ready: impl Fn(Ready) -> M + Send + Sync + 'static,
        connected: impl FnOnce(Result<Connection, ConnectError>) -> M + Send + 'static,
    ) -> Result<(), ConnectError> {
        // Refused closures are dropped while the error is on its way.
        let (ready, wrap) = (Guarded::new(ready), Guarded::new(connected));
        let Self { ctx, address, settings, look_up } = self;
        let system = ctx.system();
        let core = system.core();
        let slot = core.extensions.get::<DriverSlot>();
        let driver = slot.driver(core.dispatchers.default_pool()).map_err(ConnectError::Driver)?;
        let plan = Plan {
            mailbox: MailboxKind::Unbounded,
            on_failure: Some(Strategy::stop()),
            ..Plan::new(core.system_guardian(), None)
        };
        let connector = Connector {
            request: Some(Request { ready, wrap }),
            target: ctx.me().clone(),
            system: system.clone(),
            driver,
            address,
            settings,
            look_up,
            peers: VecDeque::new(),
            is_resolving: false,
            until: Duration::ZERO,
            attempt: None,
            number: 0,
            last: None,
            counted: None,
        };
        spawn_cell(plan, Once(Some(connector)))?;
        Ok(())
    }
}

impl<M: Send + 'static> fmt::Debug for ConnectBuilder<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectBuilder").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The actor that connects.
struct Connector<M: Send + 'static, R, W> {
    /// `None` when the message is on its way, or the actor that asked has stopped.
    request: Option<Request<R, W>>,
    /// The actor that asked.
    target: ActorRef<M>,
    system: SystemRef,
    driver: StdArc<Driver>,
    address: SocketAddress,
    settings: Settings,
    look_up: LookUp,
    /// The peers that are not tried yet.
    peers: VecDeque<Peer>,
    is_resolving: bool,
    /// The time when the limit passes.
    until: Duration,
    attempt: Option<Attempt>,
    /// The number of the attempt.
    number: u32,
    /// The error of the last attempt.
    last: Option<(Peer, io::Error)>,
    counted: Option<Counted>,
}

struct Request<R, W> {
    ready: Guarded<R>,
    wrap: Guarded<W>,
}

/// A socket that connects.
struct Attempt {
    peer: Peer,
    socket: Socket,
    registration: Registration,
}

/// Counts an attempt as under way for as long as it lives.
struct Counted(SystemRef);

impl Counted {
    fn new(system: &SystemRef) -> Self {
        system.core().extensions.get::<DriverSlot>().outgoing.begins();
        Self(system.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.core().extensions.get::<DriverSlot>().outgoing.ends();
    }
}

/// A timer of a connector.
enum Due {
    /// The limit has passed.
    Limit,
    /// The share of the attempt with this number has passed.
    Share(u32),
    /// The peer may have room now.
    Retry(Peer),
}

impl<M, R, W> Connector<M, R, W>
where
    M: Send + 'static,
    R: Fn(Ready) -> M + Send + Sync + 'static,
    W: FnOnce(Result<Connection, ConnectError>) -> M + Send + 'static,
{
    fn begin(&mut self, ctx: &mut Context<Due>) {
        let host_and_port = match &self.address {
            SocketAddress::Tcp(host_and_port) => host_and_port.clone(),
            #[cfg(unix)]
            SocketAddress::Unix(path) => {
                self.peers.push_back(Peer::Unix(path.clone()));
                return self.try_next(ctx);
            }
        };
        let literal = host_and_port.parse().ok().filter(|peer: &std::net::SocketAddr| peer.port() > 0);
        if let Some(peer) = literal {
            self.peers.push_back(Peer::Tcp(peer));
            return self.try_next(ctx);
        }
        if !is_host_and_port(&host_and_port) {
            let address = self.address.clone();
            return self.finish(Err(ConnectError::Malformed { address }), ctx);
        }
        self.is_resolving = true;
        let (me, look_up) = (ctx.me().any_local(), self.look_up);
        let job = move |refused: Option<io::Error>| {
            // The limit has passed meanwhile, or the actor that asked has stopped.
            if me.is_closed() {
                return;
            }
            let found = refused.map_or_else(|| look_up(&host_and_port), Err);
            let _ = me.send_positioned(apply(move |connector: &mut Self, ctx| {
                connector.resolved(found, ctx);
                Ok(())
            }));
        };
        let system = self.system.clone();
        let resolver = &system.core().extensions.get::<DriverSlot>().resolver;
        if let Err(error) = resolver.run(Box::new(job)) {
            let address = self.address.clone();
            self.finish(Err(ConnectError::Resolve { address, error }), ctx);
        }
    }

    fn resolved(&mut self, found: io::Result<Vec<std::net::SocketAddr>>, ctx: &mut Context<Due>) {
        self.is_resolving = false;
        let error = match found {
            Ok(peers) if peers.is_empty() => {
                io::Error::new(io::ErrorKind::NotFound, "the name has no address")
            }
            Ok(peers) => {
                self.peers.extend(peers.into_iter().take(PEERS_MAX).map(Peer::Tcp));
                return self.try_next(ctx);
            }
            Err(error) => error,
        };
        let address = self.address.clone();
        self.finish(Err(ConnectError::Resolve { address, error }), ctx);
    }

    /// Tries the peers until an attempt is under way, or none is left.
    fn try_next(&mut self, ctx: &mut Context<Due>) {
        while self.attempt.is_none() && self.request.is_some() {
            let Some(peer) = self.peers.pop_front() else {
                let Some((peer, error)) = self.last.take() else { return };
                let address = self.address.clone();
                return self.finish(Err(ConnectError::Failed { address, tried: peer.addr(), error }), ctx);
            };
            self.number += 1;
            match Socket::connect(&peer) {
                Ok(socket) => self.watch_attempt(peer, socket, ctx),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ctx.after(RETRY, Due::Retry(peer));
                    return;
                }
                Err(error) => self.last = Some((peer, error)),
            }
        }
    }

    fn watch_attempt(&mut self, peer: Peer, mut socket: Socket, ctx: &mut Context<Due>) {
        let me = ctx.me().any_local();
        let owner = Owner::new(Box::new(move || {
            // A connector that has ended needs no readiness.
            let _ = me.send_positioned(apply(|connector: &mut Self, ctx| {
                if connector.look(ctx) {
                    connector.try_next(ctx);
                }
                Ok(())
            }));
        }));
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registration = match self.driver.register(&mut socket, interest, owner) {
            Ok(registration) => registration,
            Err(error) => return self.finish(Err(ConnectError::Driver(error)), ctx),
        };
        self.attempt = Some(Attempt { peer, socket, registration });
        if !self.peers.is_empty() {
            let left = self.until.saturating_sub(self.system.now());
            let share = left / (u32::try_from(self.peers.len()).unwrap_or(u32::MAX).saturating_add(1));
            ctx.after(share, Due::Share(self.number));
        }
        // A Unix socket is connected at once. An attempt that has failed already is gone, and `try_next` goes on.
        self.look(ctx);
    }

    /// Looks whether the attempt has succeeded or failed. Returns whether it has failed.
    fn look(&mut self, ctx: &mut Context<Due>) -> bool {
        let Some(attempt) = &self.attempt else { return false };
        let _ = attempt.registration.take();
        match attempt.socket.is_connected() {
            Ok(true) => self.connected(ctx),
            Ok(false) => {}
            Err(error) => return self.give_up(error),
        }
        false
    }

    /// Ends the attempt. Returns whether there was an attempt.
    fn give_up(&mut self, error: io::Error) -> bool {
        let Some(Attempt { peer, mut socket, registration }) = self.attempt.take() else { return false };
        registration.deregister(&mut socket);
        self.last = Some((peer, error));
        true
    }

    fn connected(&mut self, ctx: &mut Context<Due>) {
        let Some(Attempt { peer, mut socket, registration }) = self.attempt.take() else { return };
        registration.deregister(&mut socket);
        drop(registration);
        let Some(Request { ready, wrap }) = self.request.take() else { return };
        // A socket that the peer has closed already may refuse; the actor will see the end.
        let _ = socket.set_nodelay(self.settings.nodelay);
        let owner = Owner::actor(self.target.clone(), ready.into_inner()).held_back();
        let permits = &self.system.core().extensions.get::<DriverSlot>().outgoing.permits;
        let permit = ConnectionPermit::take(permits, LINGER_BYTES_DEFAULT, Box::new(|| {}));
        let Settings { marks, linger, .. } = self.settings;
        let accepted = (socket, peer.addr());
        match Connection::open(accepted, &self.driver, owner, marks, linger, StdArc::new(permit)) {
            Ok(connection) => {
                let owner = connection.owner();
                // Without the message there is no connection that could be ready.
                if self.send(wrap, Ok(connection), ctx) {
                    owner.tell_first();
                }
            }
            Err(error) => _ = self.send(wrap, Err(ConnectError::Driver(error)), ctx),
        }
    }

    fn finish(&mut self, outcome: Result<Connection, ConnectError>, ctx: &mut Context<Due>) {
        if let Some(Request { ready, wrap }) = self.request.take() {
            drop(ready);
            let _ = self.send(wrap, outcome, ctx);
        }
    }

    /// Sends the actor that asked its message, and ends. Returns whether there was a message.
    fn send(
        &mut self,
        wrap: Guarded<W>,
        outcome: Result<Connection, ConnectError>,
        ctx: &mut Context<Due>,
    ) -> bool {
        self.system.core().extensions.get::<DriverSlot>().outgoing.count(outcome.is_ok());
        self.counted = None;
        if let Some(Attempt { mut socket, registration, .. }) = self.attempt.take() {
            registration.deregister(&mut socket);
        }
        ctx.stop();
        match guarded(|| Ok((wrap.into_inner())(outcome))) {
            Ok(message) => {
                // Sent beyond the capacity: the actor has asked for it.
                self.target.send_beyond_capacity(message);
                true
            }
            Err(failure) => {
                let failure = guarded(|| Ok(failure.to_string())).unwrap_or_default();
                // The logger is user code.
                quietly(|| {
                    log::warn!(
                        "system {:?}: the outcome of a connection to {} is lost: the function that makes the message \
                         for {} {failure}",
                        self.system.name(),
                        self.address,
                        self.target.path(),
                    );
                });
                false
            }
        }
    }
}

/// Whether this may be the name of a host and a port.
fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let is_port =
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
        is_port
            && !host.is_empty()
            && !host.contains(|c: char| c.is_whitespace() || c.is_control() || c == ':' || c == '/')
    })
}

impl<M, R, W> Actor for Connector<M, R, W>
where
    M: Send + 'static,
    R: Fn(Ready) -> M + Send + Sync + 'static,
    W: FnOnce(Result<Connection, ConnectError>) -> M + Send + 'static,
{
    type Message = Due;

    fn started(&mut self, ctx: &mut Context<Due>) -> HandlerResult {
        let target: AnyActorRef = self.target.any_local();
        ctx.core().children.set_front(HelperRole("connector", target.clone()));
        // The notice comes at once if the actor has ended already.
        let _ = ctx.watch(target);
        self.until = self.system.now().saturating_add(self.settings.limit);
        ctx.after(self.settings.limit, Due::Limit);
        self.counted = Some(Counted::new(&self.system));
        self.begin(ctx);
        Ok(())
    }

    fn receive(&mut self, due: Due, ctx: &mut Context<Due>) -> HandlerResult {
        match due {
            Due::Limit => {
                let (address, limit) = (self.address.clone(), self.settings.limit);
                let resolving = self.is_resolving;
                self.finish(Err(ConnectError::TimedOut { address, limit, resolving }), ctx);
            }
            Due::Share(number) if number == self.number => {
                if self.give_up(io::ErrorKind::TimedOut.into()) {
                    self.try_next(ctx);
                }
            }
            Due::Share(_) => {}
            Due::Retry(peer) => {
                self.peers.push_front(peer);
                self.try_next(ctx);
            }
        }
        Ok(())
    }

    /// The actor that asked has stopped: there is no other that the connection could go to.
    fn terminated(&mut self, _: Terminated, ctx: &mut Context<Due>) -> HandlerResult {
        self.request = None;
        if let Some(Attempt { mut socket, registration, .. }) = self.attempt.take() {
            registration.deregister(&mut socket);
        }
        ctx.stop();
        Ok(())
    }

    fn stopped(&mut self, ctx: &mut Context<Due>) {
        if !self.target.is_closed() {
            let address = self.address.clone();
            self.finish(Err(ConnectError::SystemEnded { address }), ctx);
        }
    }
}

/// A recipe for a single state.
struct Once<A>(Option<A>);

impl<M, R, W> Recipe<Connector<M, R, W>> for Once<Connector<M, R, W>>
where
    M: Send + 'static,
    R: Fn(Ready) -> M + Send + Sync + 'static,
    W: FnOnce(Result<Connection, ConnectError>) -> M + Send + 'static,
{
    fn make(&mut self, _: &mut Context<Due>) -> Result<Connector<M, R, W>, Failure> {
        self.0.take().ok_or_else(|| Failure::msg("a connector connects once"))
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::system::System;
    use crate::time::clock::ManualClock;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::mpsc::{Receiver, Sender, channel};

    const LONG: Duration = Duration::from_secs(30);
    const SECOND: Duration = Duration::from_secs(1);

    struct Caller {
        look_up: LookUp,
        limit: Duration,
        told: Sender<Result<Option<SocketAddr>, ConnectError>>,
    }

    enum CallerMsg {
        Connected(Result<Connection, ConnectError>),
        Ready(Ready),
    }

    impl From<Ready> for CallerMsg {
        fn from(ready: Ready) -> Self {
            CallerMsg::Ready(ready)
        }
    }

    impl Actor for Caller {
        type Message = CallerMsg;
        fn started(&mut self, ctx: &mut Context<CallerMsg>) -> HandlerResult {
            let connect = ctx.connect(SocketAddress::tcp("many:80")).look_up_by(self.look_up);
            connect.within(self.limit).start(CallerMsg::Connected)?;
            Ok(())
        }
        fn receive(&mut self, message: CallerMsg, _: &mut Context<CallerMsg>) -> HandlerResult {
            match message {
                CallerMsg::Connected(connected) => {
                    self.told.send(connected.map(|connection| connection.peer_addr()))?;
                }
                // The connection was dropped.
                CallerMsg::Ready(_) => {}
            }
            Ok(())
        }
    }

    fn call(
        system: &System,
        limit: Duration,
        look_up: LookUp,
    ) -> (ActorRef<CallerMsg>, Receiver<Result<Option<SocketAddr>, ConnectError>>) {
        let (told, hears) = channel();
        let caller = system.spawn(move || Caller { look_up, limit, told: told.clone() });
        (caller.expect("the system runs"), hears)
    }

    fn hear(
        hears: &Receiver<Result<Option<SocketAddr>, ConnectError>>,
    ) -> Result<Option<SocketAddr>, ConnectError> {
        hears.recv_timeout(LONG).expect("an outcome")
    }

    fn wait_for(seen: impl Fn() -> bool) {
        let began = std::time::Instant::now();
        while !seen() {
            assert!(began.elapsed() < LONG, "it never comes");
            std::thread::yield_now();
        }
    }

    /// A port that no listener has.
    fn refusing() -> SocketAddr {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        server.local_addr().expect("it is bound")
    }

    /// The addresses that the look-ups of each test find.
    static FOUND: crate::sync::Mutex<Vec<(&str, Vec<SocketAddr>)>> = crate::sync::Mutex::new(Vec::new());

    fn found(test: &str) -> Vec<SocketAddr> {
        let found = crate::sync::lock(&FOUND);
        found.iter().find(|(of, _)| *of == test).map(|(_, addrs)| addrs.clone()).unwrap_or_default()
    }

    fn find(test: &'static str, addrs: Vec<SocketAddr>) {
        crate::sync::lock(&FOUND).push((test, addrs));
    }

    #[test]
    fn a_name_with_thousands_of_addresses_is_tried_at_the_first_of_them() {
        let system = System::builder("names").build().expect("threads");
        let mut addrs = vec![refusing(); 10_000];
        addrs[PEERS_MAX - 1] = refusing();
        let last = addrs[PEERS_MAX - 1];
        find("thousands", addrs);
        let (_, hears) = call(&system, LONG, |_| Ok(found("thousands")));
        let error = hear(&hears).expect_err("no server is there");
        assert!(
            matches!(&error, ConnectError::Failed { tried: Some(tried), .. } if *tried == last),
            "{error:?}"
        );
        assert_eq!(system.shutdown(LONG).expect("nothing is stuck").balance(), 0);
    }

    #[test]
    fn the_addresses_of_a_name_are_tried_in_their_order() {
        let system = System::builder("names").build().expect("threads");
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = server.local_addr().expect("it is bound");
        find("order", vec![refusing(), refusing(), addr]);
        let (_, hears) = call(&system, LONG, |_| Ok(found("order")));
        assert_eq!(hear(&hears).expect("the third answers"), Some(addr));
        let last = refusing();
        find("refused", vec![refusing(), last]);
        let (_, hears) = call(&system, LONG, |_| Ok(found("refused")));
        let error = hear(&hears).expect_err("no server is there");
        assert!(
            matches!(&error, ConnectError::Failed { tried: Some(tried), .. } if *tried == last),
            "{error:?}"
        );
        assert!(error.to_string().starts_with(&format!("cannot connect to many:80 at {last}: ")), "{error}");
        let (_, hears) = call(&system, LONG, |_| Ok(Vec::new()));
        let error = hear(&hears).expect_err("there is no address");
        assert!(matches!(error, ConnectError::Resolve { .. }), "{error:?}");
        let ledger = system.shutdown(LONG).expect("nothing is stuck");
        assert_eq!(ledger.balance(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_address_that_does_not_answer_leaves_the_others_their_share_of_the_time() {
        use std::os::fd::AsRawFd;
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::listen(silent.as_raw_fd(), 0) }, 0);
        let silent_addr = silent.local_addr().expect("it is bound");
        let _first = TcpStream::connect(silent_addr).expect("there is room for a single peer");
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = server.local_addr().expect("it is bound");
        find("shares", vec![silent_addr, addr]);
        let clock = ManualClock::new();
        let system = System::builder("names").clock(clock.clone()).build().expect("threads");
        let (_, hears) = call(&system, 10 * SECOND, |_| Ok(found("shares")));
        let core = system.core();
        // The share is set behind the limit, with a deadline before it.
        wait_for(|| core.timers().next_deadline().is_some_and(|at| at <= 5 * SECOND));
        assert!(hears.try_recv().is_err(), "the first address has not answered");
        clock.advance(5 * SECOND);
        assert_eq!(hear(&hears).expect("the second answers"), Some(addr));
        assert_eq!(system.shutdown(LONG).expect("nothing is stuck").balance(), 0);
    }

    #[test]
    fn a_limit_that_passes_within_a_look_up_says_so_and_no_worker_waits() {
        static GATE: crate::sync::Mutex<()> = crate::sync::Mutex::new(());
        let held = crate::sync::lock(&GATE);
        let clock = ManualClock::new();
        let system = System::builder("names").clock(clock.clone()).build().expect("threads");
        let hangs: LookUp = |_| {
            drop(crate::sync::lock(&GATE));
            Ok(Vec::new())
        };
        let calls: Vec<_> = (0..20).map(|_| call(&system, SECOND, hangs)).collect();
        wait_for(|| system.outgoing_connections().connecting == 20);
        // An actor that stops meanwhile takes its attempt with it.
        calls[0].0.stop();
        wait_for(|| system.outgoing_connections().connecting == 19);
        clock.advance(SECOND);
        for (_, hears) in &calls[1..] {
            let error = hear(hears).expect_err("no address was found");
            assert!(matches!(error, ConnectError::TimedOut { resolving: true, .. }), "{error:?}");
            assert!(error.to_string().contains("the host name was not found within 1s"), "{error}");
        }
        assert!(hears_nothing(&calls[0].1));
        drop(held);
        let ledger = system.shutdown(LONG).expect("nothing is stuck");
        assert_eq!((ledger.balance(), ledger.dead_lettered), (0, 0), "{ledger}");
    }

    #[test]
    fn an_attempt_that_is_stopped_before_its_actor_tells_the_actor() {
        static GATE: crate::sync::Mutex<()> = crate::sync::Mutex::new(());
        let held = crate::sync::lock(&GATE);
        let system = System::builder("names").build().expect("threads");
        let hangs: LookUp = |_| {
            drop(crate::sync::lock(&GATE));
            Ok(Vec::new())
        };
        let (_caller, hears) = call(&system, LONG, hangs);
        wait_for(|| system.outgoing_connections().connecting == 1);
        // The guardian does so when the system ends.
        let guardian = system.core().system_guardian().expect("the system runs");
        guardian.core().children.all().iter().for_each(|child| {
            if child.core().children.front::<HelperRole>().is_some() {
                child.stop();
            }
        });
        let error = hear(&hears).expect_err("there is no connection");
        assert!(matches!(error, ConnectError::SystemEnded { .. }), "{error:?}");
        drop(held);
        assert_eq!(system.shutdown(LONG).expect("nothing is stuck").balance(), 0);
    }

    fn hears_nothing(hears: &Receiver<Result<Option<SocketAddr>, ConnectError>>) -> bool {
        hears.try_recv().is_err()
    }

    #[test]
    fn a_panic_of_the_function_that_makes_the_message_loses_this_message_alone() {
        struct Clumsy(SocketAddr, Sender<&'static str>, bool);
        impl Actor for Clumsy {
            type Message = CallerMsg;
            fn started(&mut self, ctx: &mut Context<CallerMsg>) -> HandlerResult {
                ctx.connect(self.0).start(|_| panic!("planted"))?;
                ctx.connect(self.0).start(CallerMsg::Connected)?;
                Ok(())
            }
            fn receive(&mut self, message: CallerMsg, _: &mut Context<CallerMsg>) -> HandlerResult {
                match message {
                    CallerMsg::Connected(connected) => {
                        connected?;
                        self.2 = true;
                        self.1.send("connected")?;
                    }
                    CallerMsg::Ready(_) if self.2 => {}
                    CallerMsg::Ready(_) => self.1.send("no connection is ready")?,
                }
                Ok(())
            }
        }
        let system = System::builder("names").build().expect("threads");
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = server.local_addr().expect("it is bound");
        let (told, hears) = channel();
        system.spawn(move || Clumsy(addr, told.clone(), false)).expect("the system runs");
        assert_eq!(hears.recv_timeout(LONG), Ok("connected"));
        wait_for(|| system.outgoing_connections().connecting == 0);
        assert_eq!(system.shutdown(LONG).expect("nothing is stuck").balance(), 0);
    }
}
