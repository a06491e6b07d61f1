//! A connection that is made again when it is lost: the servers in turn, sockets that never block, and what waits to be
//! written.

use crate::client::{CONNECT_WITHIN, Client, ClientOptions, Event};
use crate::codec::{Message, ServerInfo, Subject};
use crate::connect_error::{ConnectError, Stage};
use crate::server_fault::ServerFault;
use crate::settings::ServerAddress;
use crate::transport::{Transport, Written};
use crate::write_queue::{ANSWERS_MAX, WriteQueue};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token, Waker};
use pointsman::remote::PeerOutbox;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The first pause between two attempts, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A connection that was up for so long has worked: the next pause is the first one again.
const WORKED_AFTER: Duration = Duration::from_secs(5);
/// The servers of a cluster that are remembered.
const SERVERS_MAX: usize = 64;
/// The bytes that one step reads or writes before the others have their turn.
const STEP_BYTES: usize = 512 * 1024;
/// The pieces that one write has.
const SLICES_MAX: usize = 64;

/// The owner of a connection, on the thread that drives it.
pub(crate) trait Owner {
    /// The connection is up.
    fn up(&mut self, max_payload: usize);
    fn message(&mut self, message: Message<'_>);
    /// The server refuses something, and the connection stays.
    fn refused(&mut self, fault: ServerFault);
    /// The server has taken all that was written before [`Connection::flush`].
    fn flushed(&mut self);
    /// There is room in the queue.
    fn fill(&mut self, queue: &mut WriteQueue<PeerOutbox>);
}

/// The parts that all connections of a thread share.
pub(crate) struct Surroundings<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) waker: &'a Arc<Waker>,
    pub(crate) now: Instant,
    /// Whether plain text may leave this machine.
    pub(crate) insecure: bool,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<&'a mut crate::tls::TlsConfig>,
}

/// The outcome of a step.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// There is more to do at once.
    pub(crate) has_more: bool,
    /// The connection, or the attempt at one, was lost.
    pub(crate) lost: Option<Lost>,
}

/// The loss of a connection.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) server: String,
    pub(crate) why: ConnectError,
}

enum State {
    Waiting { until: Instant },
    Resolving { answer: Receiver<io::Result<Vec<SocketAddr>>>, until: Instant },
    Open(Box<Socket>),
}

struct Socket {
    stream: TcpStream,
    transport: Transport,
    /// The one that is used when the server has said INFO.
    secure: Option<Transport>,
    client: Client,
    readable: bool,
    writable: bool,
    is_opened: bool,
    up_since: Option<Instant>,
}

pub(crate) struct Connection {
    token: Token,
    options: ClientOptions,
    servers: Vec<ServerAddress>,
    turn: usize,
    /// The other addresses of the server whose turn it is.
    addresses: VecDeque<SocketAddr>,
    pauses: Pauses,
    state: State,
    queue: WriteQueue<PeerOutbox>,
}

impl Connection {
    /// Makes a connection that is tried with the first step. `servers` is not empty.
    pub(crate) fn new(
        token: Token,
        options: ClientOptions,
        servers: Vec<ServerAddress>,
        now: Instant,
    ) -> Self {
        Self {
            token,
            options,
            servers,
            turn: 0,
            addresses: VecDeque::new(),
            pauses: Pauses::new(RandomState::new().hash_one(token.0)),
            state: State::Waiting { until: now },
            queue: WriteQueue::new(),
        }
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(&self.state, State::Open(socket) if socket.client.is_up())
    }

    /// The bytes that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The operating system says that the socket can be read or written.
    pub(crate) fn ready(&mut self, readable: bool, writable: bool) {
        if let State::Open(socket) = &mut self.state {
            socket.readable |= readable;
            socket.writable |= writable;
        }
    }

    /// The time of the next step if nothing happens before.
    pub(crate) fn next_step(&self) -> Instant {
        match &self.state {
            State::Waiting { until } | State::Resolving { until, .. } => *until,
            State::Open(socket) => socket.client.next_tick(),
        }
    }

    /// Asks the server for a sign that it has taken all that was written before.
    pub(crate) fn flush(&mut self) {
        if let State::Open(socket) = &mut self.state {
            let mut answers = Vec::new();
            socket.client.ping(&mut answers);
            self.queue.answer(&answers);
        }
    }

    /// Replaces a subscription, now and at later connections.
    pub(crate) fn resubscribe(&mut self, old: u64, pattern: &Subject, sid: u64) {
        self.options.subscriptions.retain(|(_, number)| *number != old);
        self.options.subscriptions.push((pattern.clone(), sid));
        if let State::Open(socket) = &mut self.state {
            let mut answers = Vec::new();
            socket.client.resubscribe(old, pattern, sid, &mut answers);
            self.queue.answer(&answers);
        }
    }

    /// Closes the connection for good. Batches that were not begun go back.
    pub(crate) fn close(&mut self, registry: &Registry) {
        if let State::Open(socket) = &mut self.state {
            socket.transport.close(&mut socket.stream);
            let _ = registry.deregister(&mut socket.stream);
        }
        self.state = State::Waiting { until: Instant::now() + PAUSE_MAX };
        self.give_back();
    }

    /// Gives the batches that were not begun back to their outboxes.
    fn give_back(&mut self) {
        for unsent in self.queue.lose_connection() {
            unsent.origin.put_back(unsent.frame);
        }
    }

    /// Does what can be done now, without waiting.
    pub(crate) fn step(&mut self, around: &mut Surroundings<'_>, owner: &mut impl Owner) -> Step {
        let done = match &mut self.state {
            State::Waiting { until } if around.now < *until => return Step::default(),
            State::Waiting { .. } => self.begin(around),
            State::Resolving { answer, until } => match answer.try_recv() {
                Ok(Ok(addresses)) => {
                    self.addresses = addresses.into();
                    self.open_next(around)
                }
                Ok(Err(error)) => {
                    Err(ConnectError::Resolve { host: self.server().host.clone(), why: error.to_string() })
                }
                Err(TryRecvError::Empty) if around.now < *until => return Step::default(),
                Err(_) => Err(ConnectError::TimedOut { stage: Stage::Resolve, after: CONNECT_WITHIN }),
            },
            State::Open(socket) => {
                let done = socket.step(around, owner, &mut self.queue, self.servers[self.turn].tls);
                match done {
                    Ok(outcome) => {
                        for endpoint in outcome.endpoints {
                            self.learn(&endpoint);
                        }
                        return Step { has_more: outcome.has_more, lost: None };
                    }
                    Err(why) => Err(why),
                }
            }
        };
        match done {
            Ok(()) => Step { has_more: true, lost: None },
            Err(why) => Step { has_more: true, lost: Some(self.lose(why, around)) },
        }
    }

    fn server(&self) -> &ServerAddress {
        &self.servers[self.turn]
    }

    /// Remembers another server of the cluster.
    fn learn(&mut self, endpoint: &str) {
        let neighbour = self.server().neighbour(endpoint);
        let is_known = |server: &ServerAddress| {
            self.servers.iter().any(|known| known.host == server.host && known.port == server.port)
        };
        if let Some(server) = neighbour.filter(|server| !is_known(server) && self.servers.len() < SERVERS_MAX)
        {
            log::debug!("NATS: the cluster has another server, {server}");
            self.servers.push(server);
        }
    }

    /// Begins an attempt at the server whose turn it is.
    fn begin(&mut self, around: &mut Surroundings<'_>) -> Result<(), ConnectError> {
        if !self.addresses.is_empty() {
            return self.open_next(around);
        }
        let (host, port) = (self.server().host.clone(), self.server().port);
        let of_this_machine = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        match host.parse::<IpAddr>() {
            Ok(address) => self.addresses = VecDeque::from([SocketAddr::new(address, port)]),
            Err(_) if host.eq_ignore_ascii_case("localhost") => {
                self.addresses = of_this_machine.map(|address| SocketAddr::new(address, port)).into();
            }
            Err(_) => {
                let (sender, answer) = channel();
                let waker = around.waker.clone();
                let resolve = move || {
                    let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
                    // The attempt may be over.
                    let _ = sender.send(found);
                    let _ = waker.wake();
                };
                // It waits for servers of names, which may take long, and nothing waits for it.
                let spawned = thread::Builder::new().name("nats-resolver".to_owned()).spawn(resolve);
                spawned.map_err(|error| ConnectError::of_io(&error))?;
                self.state = State::Resolving { answer, until: around.now + CONNECT_WITHIN };
                return Ok(());
            }
        }
        self.open_next(around)
    }

    /// Begins to connect to the next address.
    fn open_next(&mut self, around: &mut Surroundings<'_>) -> Result<(), ConnectError> {
        let Some(address) = self.addresses.pop_front() else {
            let (host, why) = (self.server().host.clone(), "none was found".to_owned());
            return Err(ConnectError::Resolve { host, why });
        };
        let server = self.server();
        if !server.tls && !around.insecure && !address.ip().is_loopback() {
            return Err(ConnectError::PlainText { address: address.to_string() });
        }
        let options = ClientOptions {
            tls: server.tls,
            has_certificate: around.has_certificate(),
            user: server.user.clone(),
            password: server.password.clone(),
            ..self.options.clone()
        };
        let secure = if server.tls { Some(around.secure_transport(&server.tls_name)?) } else { None };
        let connected = TcpStream::connect(address).and_then(|mut stream| {
            around.registry.register(&mut stream, self.token, Interest::READABLE | Interest::WRITABLE)?;
            Ok(stream)
        });
        let stream = connected.map_err(|error| ConnectError::of_io(&error))?;
        self.state = State::Open(Box::new(Socket {
            stream,
            transport: Transport::Plain,
            secure,
            client: Client::new(options, around.now),
            readable: false,
            writable: false,
            is_opened: false,
            up_since: None,
        }));
        Ok(())
    }

    /// The attempt or the connection is over: the next one is another address, or another server behind a pause.
    fn lose(&mut self, why: ConnectError, around: &mut Surroundings<'_>) -> Lost {
        let server = self.server().to_string();
        let mut was_up = None;
        if let State::Open(socket) = &mut self.state {
            was_up = socket.up_since;
            let _ = around.registry.deregister(&mut socket.stream);
        }
        if let Some(since) = was_up {
            // Other addresses are those of before.
            self.addresses.clear();
            if around.now.saturating_duration_since(since) >= WORKED_AFTER {
                self.pauses.begin_anew();
            }
        }
        let mut until = around.now;
        if self.addresses.is_empty() {
            self.turn = (self.turn + 1) % self.servers.len();
            until += self.pauses.next();
        }
        self.state = State::Waiting { until };
        self.give_back();
        Lost { server, why }
    }
}

impl Surroundings<'_> {
    #[cfg(feature = "tls")]
    fn has_certificate(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_certificate())
    }

    #[cfg(feature = "tls")]
    fn secure_transport(&mut self, host: &str) -> Result<Transport, ConnectError> {
        let Some(tls) = &mut self.tls else { return Err(ConnectError::TlsRequired) };
        tls.refresh();
        Ok(Transport::Tls(Box::new(tls.session(host)?)))
    }

    #[cfg(not(feature = "tls"))]
    fn has_certificate(&self) -> bool {
        false
    }

    #[cfg(not(feature = "tls"))]
    fn secure_transport(&mut self, _: &str) -> Result<Transport, ConnectError> {
        // Settings with `tls://` were refused.
        Err(ConnectError::TlsRequired)
    }
}

/// The outcome of the step of a socket.
struct Outcome {
    has_more: bool,
    /// Other servers of the cluster.
    endpoints: Vec<String>,
}

impl Socket {
    fn step(
        &mut self,
        around: &Surroundings<'_>,
        owner: &mut impl Owner,
        queue: &mut WriteQueue<PeerOutbox>,
        is_secure: bool,
    ) -> Result<Outcome, ConnectError> {
        let mut outcome = Outcome { has_more: false, endpoints: Vec::new() };
        let mut answers = Vec::new();
        self.client.tick(around.now, &mut answers)?;
        queue.answer(&answers);
        if !self.is_opened {
            if !self.writable {
                return Ok(outcome);
            }
            if let Some(error) = self.stream.take_error().map_err(|error| ConnectError::of_io(&error))? {
                return Err(ConnectError::of_io(&error));
            }
            match self.stream.peer_addr() {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    self.writable = false;
                    return Ok(outcome);
                }
                Err(error) => return Err(ConnectError::of_io(&error)),
            }
            // Small frames shall not wait for each other.
            self.stream.set_nodelay(true).map_err(|error| ConnectError::of_io(&error))?;
            self.is_opened = true;
            self.client.opened();
        }
        let learned = if is_secure { Some(&mut outcome.endpoints) } else { None };
        let mut has_more = self.read(around.now, owner, queue, learned)?;
        has_more |= self.write(owner, queue)?;
        outcome.has_more = has_more;
        Ok(outcome)
    }

    /// Reads what is there, up to the bound of a step. Returns whether there may be more.
    fn read(
        &mut self,
        now: Instant,
        owner: &mut impl Owner,
        queue: &mut WriteQueue<PeerOutbox>,
        mut endpoints: Option<&mut Vec<String>>,
    ) -> Result<bool, ConnectError> {
        let (mut left, mut rounds) = (STEP_BYTES, 1000);
        let mut answers = Vec::new();
        while self.readable {
            if left == 0 || rounds == 0 {
                return Ok(true);
            }
            rounds -= 1;
            match self.transport.read(&mut self.stream, self.client.space())? {
                None => self.readable = false,
                Some(0) => {}
                Some(count) => {
                    left = left.saturating_sub(count);
                    self.client.filled(count, now);
                }
            }
            loop {
                let was_told = match self.client.next(&mut answers)? {
                    None => break,
                    Some(Event::StartTls) => {
                        // It is there, since the server's address says so.
                        self.transport = self.secure.take().ok_or(ConnectError::TlsRequired)?;
                        false
                    }
                    Some(Event::Up { max_payload }) => {
                        self.up_since = Some(now);
                        for dropped in queue.drop_longer(max_payload) {
                            log::error!(
                                "NATS: a batch of {} bytes for node {} is lost: this server takes {max_payload}",
                                dropped.frame.len(),
                                dropped.origin.peer()
                            );
                        }
                        owner.up(max_payload);
                        true
                    }
                    Some(Event::Message(message)) => {
                        owner.message(message);
                        false
                    }
                    Some(Event::Pong) => {
                        owner.flushed();
                        false
                    }
                    Some(Event::Refused(fault)) => {
                        owner.refused(fault);
                        false
                    }
                    Some(Event::Info(_)) => true,
                };
                if let (true, Some(endpoints), Some(info)) = (was_told, &mut endpoints, self.client.info()) {
                    let ServerInfo { connect_urls, .. } = info;
                    endpoints.extend(connect_urls.iter().take(SERVERS_MAX).cloned());
                }
            }
            queue.answer(&answers);
            answers.clear();
            if queue.answers() > ANSWERS_MAX {
                return Err(ConnectError::Flood);
            }
        }
        Ok(false)
    }

    /// Writes what waits, up to the bound of a step. Returns whether there is more.
    fn write(
        &mut self,
        owner: &mut impl Owner,
        queue: &mut WriteQueue<PeerOutbox>,
    ) -> Result<bool, ConnectError> {
        self.finish_handshake(queue);
        let mut left = STEP_BYTES;
        loop {
            let is_up = self.client.is_up();
            if is_up {
                owner.fill(queue);
            }
            if !self.writable {
                return Ok(false);
            }
            let slices = if self.is_handshaking() {
                Vec::new()
            } else if is_up {
                queue.slices(self.transport.write_max(), SLICES_MAX)
            } else {
                queue.slices_of_answers()
            };
            if slices.is_empty() && !self.transport.wants_write() {
                return Ok(false);
            }
            if left == 0 {
                return Ok(true);
            }
            match self.transport.write(&mut self.stream, &slices)? {
                Written::Bytes(count) => {
                    drop(slices);
                    queue.advance(count, |frame, outbox| outbox.reuse(frame));
                    left = left.saturating_sub(count.max(1));
                }
                Written::Blocked { begun } => {
                    drop(slices);
                    queue.begin(begun);
                    self.writable = false;
                }
            }
        }
    }

    #[cfg(feature = "tls")]
    fn is_handshaking(&self) -> bool {
        matches!(&self.transport, Transport::Tls(session) if session.is_handshaking())
    }

    #[cfg(not(feature = "tls"))]
    fn is_handshaking(&self) -> bool {
        false
    }

    fn finish_handshake(&mut self, queue: &mut WriteQueue<PeerOutbox>) {
        if self.client.is_securing() && !self.is_handshaking() {
            let mut answers = Vec::new();
            self.client.secured(&mut answers);
            queue.answer(&answers);
        }
    }
}

/// The pauses between attempts: each twice as long as the one before up to a bound, and less by chance, so that the nodes of a
/// server that was lost do not come all at once.
struct Pauses {
    count: u32,
    random: u64,
}

impl Pauses {
    fn new(seed: u64) -> Self {
        Self { count: 0, random: seed | 1 }
    }

    fn begin_anew(&mut self) {
        self.count = 0;
    }

    fn next(&mut self) -> Duration {
        let longest = PAUSE_MIN.saturating_mul(1 << self.count.min(6)).min(PAUSE_MAX);
        self.count = self.count.saturating_add(1);
        // Xorshift: no secret hangs on it.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        longest / 2 + longest.mul_f64((self.random >> 11) as f64 / (1u64 << 53) as f64) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_differ_by_chance() {
        let mut pauses = Pauses::new(7);
        for (at, longest) in [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000].into_iter().enumerate() {
            let pause = pauses.next();
            let longest = Duration::from_millis(longest);
            assert!(pause >= longest / 2 && pause <= longest, "{at}: {pause:?}");
        }
        pauses.begin_anew();
        assert!(pauses.next() <= PAUSE_MIN);
        let mut others: Vec<Duration> =
            (1..100).map(|seed| Pauses::new(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(seed)).next()).collect();
        others.sort();
        others.dedup();
        assert!(others.len() > 90);
    }
}
