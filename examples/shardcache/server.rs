//! The whole server: its settings, what its actors share, and how it begins and ends.
//!
//! ```text
//!   sockets ── listener ──creates──▶ client ── router of its generation ──▶ shard 0 … n-1
//!                                      ▲  │                                  │  ▲
//!                                      │  └── requests for all ──▶ coordinator  │ creates, changes
//!                                      └───────── replies ───────────────────┘
//! ```

use crate::client::{Client, ClientMsg};
use crate::command::{ServerInfo, Session};
use crate::coordinator::{Coordinator, CoordinatorMsg, Generation};
use pointsman::console::StatsServer;
use pointsman::net::{Connection, ListenError, Listener, SocketAddress};
use pointsman::prelude::*;
use pointsman::telemetry::Telemetry;
use pointsman::{Ledger, ShutdownError};
use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(10);
/// So many connections there may be besides those of clients: they linger, or are told that there are too many.
pub const NO_CLIENTS_MAX: usize = 64;
/// No more requests are taken from a client for which more than the second number of bytes wait, until no
/// more than the first do.
const MARKS: (usize, usize) = (64 * 1024, 256 * 1024);

/// How a server is to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `host:port`.
    pub tcp: String,
    pub unix: Option<PathBuf>,
    pub shards: usize,
    /// Worker threads; `None`: one for each core.
    pub threads: Option<usize>,
    /// Cores that the workers are pinned to.
    pub pin: Option<Vec<usize>>,
    pub clients_max: usize,
    /// A client for which more bytes wait than this is cut off. A single reply that is longer is refused.
    pub output_max: usize,
    /// Where the statistics of the system are served: `host:port`, of the loopback.
    pub stats: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tcp: "127.0.0.1:6379".to_owned(),
            unix: None,
            shards: 4,
            threads: None,
            pin: None,
            clients_max: 10_000,
            output_max: 1 << 30,
            stats: None,
        }
    }
}

/// A running server.
pub struct Server {
    system: System,
    /// For TCP, and for the Unix socket if there is one.
    listeners: Vec<Listener>,
    stats: Option<StatsServer>,
    ends: Receiver<bool>,
    shared: Arc<Shared>,
}

/// What the actors share besides messages: what is read often and changes rarely.
pub struct Shared {
    pub settings: Settings,
    began: Instant,
    coordinator: OnceLock<ActorRef<CoordinatorMsg>>,
    directory: Mutex<Directory>,
    requests: AtomicU64,
    port: OnceLock<u16>,
    end: Mutex<Sender<bool>>,
    first_generation: Mutex<Option<Sender<()>>>,
}

/// Who is there. One lock for both, so that a client that joins either gets the new generation or is told
/// of it.
struct Directory {
    generation: Option<Arc<Generation>>,
    clients: HashMap<u64, ActorRef<ClientMsg>>,
    next_id: u64,
}

impl Shared {
    fn directory(&self) -> MutexGuard<'_, Directory> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The coordinator, which exists before the first client.
    pub fn coordinator(&self) -> &ActorRef<CoordinatorMsg> {
        self.coordinator.get().expect("clients come after the coordinator")
    }

    /// The present generation, while the server runs.
    pub fn generation(&self) -> Option<Arc<Generation>> {
        self.directory().generation.clone()
    }

    /// Makes a generation the present one, and tells the clients.
    pub fn publish(&self, generation: Arc<Generation>) {
        let (old, clients) = {
            let mut directory = self.directory();
            let clients: Vec<_> = directory.clients.values().cloned().collect();
            (directory.generation.replace(generation), clients)
        };
        for client in clients {
            client.tell(ClientMsg::Moved);
        }
        // Outside the lock: it may be the last one.
        drop(old);
        let waiting = self.first_generation.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(waiting);
    }

    pub fn forget_generation(&self) {
        let old = self.directory().generation.take();
        drop(old);
    }

    /// Takes a client in: its number, and the generation to route by. `None` if there are too many.
    fn join(&self, client: ActorRef<ClientMsg>) -> Option<(u64, Arc<Generation>)> {
        let mut directory = self.directory();
        if directory.clients.len() >= self.settings.clients_max {
            return None;
        }
        let generation = directory.generation.clone()?;
        directory.next_id += 1;
        let id = directory.next_id;
        directory.clients.insert(id, client);
        Some((id, generation))
    }

    pub fn leave(&self, id: u64) {
        let client = self.directory().clients.remove(&id);
        drop(client);
    }

    pub fn count_requests(&self, count: u64) {
        if count > 0 {
            self.requests.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// What INFO tells; who asks adds what it knows of the shards.
    pub fn info(&self) -> ServerInfo {
        ServerInfo {
            process_id: std::process::id(),
            tcp_port: self.port.get().copied().unwrap_or(0),
            uptime_seconds: self.began.elapsed().as_secs(),
            connected_clients: self.directory().clients.len(),
            commands_processed: self.requests.load(Ordering::Relaxed),
            ..ServerInfo::default()
        }
    }

    /// Makes [`ServingActor::wait`] return.
    pub fn ask_for_end(&self, in_order: bool) {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody waits any more when it ends already.
        let _ = end.send(in_order);
    }
}

/// A connection's actor, or what turns one away.
pub enum Visitor {
    Client(Box<Client>),
    TooMany(Box<Connection>),
}

impl Visitor {
    fn new(connection: Connection, shared: &Arc<Shared>, ctx: &mut Context<ClientMsg>) -> Self {
        match shared.join(ctx.me().clone()) {
            Some((id, generation)) => {
                let peer = connection.peer_addr().map_or("unix:0".to_owned(), |addr| addr.to_string());
                let session = Session::new(id, peer);
                Visitor::Client(Box::new(Client::new(connection, session, shared.clone(), generation)))
            }
            None => Visitor::TooMany(Box::new(connection)),
        }
    }
}

impl Actor for Visitor {
    type Message = ClientMsg;

    fn started(&mut self, ctx: &mut Context<ClientMsg>) -> HandlerResult {
        if let Visitor::TooMany(connection) = self {
            connection.write(b"-ERR max number of clients reached\r\n");
            ctx.stop();
        }
        Ok(())
    }

    fn receive(&mut self, message: ClientMsg, ctx: &mut Context<ClientMsg>) -> HandlerResult {
        match self {
            Visitor::Client(client) => client.receive(message, ctx),
            Visitor::TooMany(_) => Ok(()),
        }
    }

    fn stopped(&mut self, ctx: &mut Context<ClientMsg>) {
        if let Visitor::Client(client) = self {
            client.stopped(ctx);
        }
    }
}

impl Server {
    /// Starts a server; it serves when this returns.
    pub fn start(settings: Settings) -> Result<Self, Box<dyn Error>> {
        let mut workers = Dispatcher::work_stealing();
        if let Some(threads) = settings.threads {
            workers = workers.threads(threads);
        }
        if let Some(cores) = &settings.pin {
            workers = workers.pin_to(cores.iter().copied());
        }
        // Times are sampled where there is a page to read them from.
        let telemetry = if settings.stats.is_some() { Telemetry::sampled() } else { Telemetry::off() };
        let system =
            System::builder("shardcache").dispatcher("default", workers).telemetry(telemetry).build()?;
        let (end, ends) = mpsc::channel();
        let (first_generation, waits) = mpsc::channel::<()>();
        let shared = Arc::new(Shared {
            began: Instant::now(),
            coordinator: OnceLock::new(),
            directory: Mutex::new(Directory { generation: None, clients: HashMap::new(), next_id: 0 }),
            requests: AtomicU64::new(0),
            port: OnceLock::new(),
            end: Mutex::new(end),
            first_generation: Mutex::new(Some(first_generation)),
            settings,
        });
        let given = shared.clone();
        let coordinator = system
            .actor("coordinator")
            .on_failure(Strategy::stop())
            .spawn(move || Coordinator::new(given.clone()))?;
        let _ = shared.coordinator.set(coordinator);
        // Ends when the first generation drops the sender.
        let _ = waits.recv();
        let tcp = listen(&system, "tcp", SocketAddress::tcp(shared.settings.tcp.as_str()), &shared)?;
        let _ = shared.port.set(port_of(&tcp));
        let mut listeners = vec![tcp];
        if let Some(path) = &shared.settings.unix {
            remove_if_abandoned(path);
            listeners.push(listen(&system, "unix", SocketAddress::unix(path), &shared)?);
        }
        let address = shared.settings.stats.as_deref().map(SocketAddress::tcp);
        let stats = address.map(|address| system.serve_stats(address)).transpose()?;
        Ok(Self { system, listeners, stats, ends, shared })
    }

    pub fn port(&self) -> u16 {
        self.listeners.first().map_or(0, port_of)
    }

    /// Where the statistics are served, if they are.
    pub fn stats_addr(&self) -> Option<SocketAddr> {
        self.stats.as_ref().and_then(StatsServer::local_addr)
    }

    /// Connections whose sockets are not closed: those of clients, those that linger, and those that are told that there
    /// are too many.
    #[allow(dead_code)] // only tests ask
    pub fn connections(&self) -> usize {
        self.listeners.iter().map(Listener::connections).sum()
    }

    /// What makes [`wait`](Self::wait) return from elsewhere.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Waits until somebody asks for the end; false if it is because of a failure.
    pub fn wait(&self) -> bool {
        self.ends.recv().unwrap_or(false)
    }

    /// Ends the server: replies that are written go out, and every message is accounted for.
    pub fn end(self) -> Result<Ledger, ShutdownError> {
        let Self { system, .. } = self;
        system.shutdown(SHUTDOWN_DEADLINE)
    }
}

fn port_of(listener: &Listener) -> u16 {
    listener.local_addr().map_or(0, |addr| addr.port())
}

fn listen(
    system: &System,
    name: &str,
    address: SocketAddress,
    shared: &Arc<Shared>,
) -> Result<Listener, ListenError> {
    let shared = shared.clone();
    let clients_max = shared.settings.clients_max.saturating_add(NO_CLIENTS_MAX);
    let (low, high) = MARKS;
    system
        .listener(name, address)
        .marks(low, high)
        .max_connections(clients_max)
        .spawn(move |connection, ctx| Visitor::new(connection, &shared, ctx))
}

/// A socket file that nobody listens at was left by a server that did not end in order.
fn remove_if_abandoned(path: &std::path::Path) {
    use std::os::unix::net::UnixStream;
    if UnixStream::connect(path).is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused) {
        // If it cannot be removed, listening fails and says why.
        let _ = std::fs::remove_file(path);
    }
}
