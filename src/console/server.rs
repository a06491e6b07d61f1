//! The server: where it listens, its limits, and its end.

use crate::console::clients::Clients;
use crate::console::connection::Client;
use crate::console::pages::Pages;
use crate::core::error::SpawnError;
use crate::core::system::SystemRef;
use crate::net::listener::{ListenError, Listener, ListenerBuilder};
use crate::net::socket::SocketAddress;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc as StdArc;
use std::time::Duration;

const CONNECTIONS_DEFAULT: usize = 64;
const REQUEST_WITHIN_DEFAULT: Duration = Duration::from_secs(5);
const RESPONSE_WITHIN_DEFAULT: Duration = Duration::from_secs(10);

/// The time in which written answers go out when a server ends.
const LINGER: Duration = Duration::from_secs(1);

/// The times that a client has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub request_within: Duration,
    pub response_within: Duration,
}

/// Describes a server of statistics that is about to start; made by [`SystemRef::stats_server`].
#[derive(Debug)]
#[must_use = "nothing listens before `spawn`"]
pub struct StatsServerBuilder {
    system: SystemRef,
    address: SocketAddress,
    is_anywhere: bool,
    max_connections: usize,
    limits: Limits,
    dispatcher: Option<String>,
}

/// A handle to a server of statistics. Dropping it changes nothing: the server ends with its system, or by
/// [`stop`](Self::stop).
#[derive(Debug, Clone)]
pub struct StatsServer {
    listener: Listener,
}

/// The reason why there is no server of statistics.
#[non_exhaustive]
pub enum ServeError {
    /// The address can be reached from other machines, and the program has not allowed that.
    NotLocal {
        /// The address.
        address: SocketAddress,
    },
    /// The address is malformed, or its name is not known.
    Address {
        /// The address.
        address: SocketAddress,
        /// The error of the look-up.
        error: io::Error,
    },
    /// The server cannot listen.
    Listen(ListenError),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::NotLocal { address } => write!(
                f,
                "statistics are not served at {address}, which other machines may reach: use an address of the loopback \
                 such as 127.0.0.1 or a Unix socket, or allow it by StatsServerBuilder::anywhere"
            ),
            ServeError::Address { address, error } => {
                write!(f, "statistics cannot be served at {address}: {error}, write it as host:port")
            }
            ServeError::Listen(error) => write!(f, "statistics cannot be served: {error}"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ServeError::NotLocal { .. } => None,
            ServeError::Address { error, .. } => Some(error),
            ServeError::Listen(error) => Some(error),
        }
    }
}

debug_by_display! { ServeError }

impl From<ListenError> for ServeError {
    fn from(error: ListenError) -> Self {
        ServeError::Listen(error)
    }
}

impl SystemRef {
    /// Serves the statistics of the system over HTTP at `address`, an address of the loopback or a Unix socket. Port 0
    /// is any free port. [`stats_server`](Self::stats_server) sets limits. See [`console`](crate::console).
    ///
    /// # Errors
    ///
    /// As [`StatsServerBuilder::spawn`].
    pub fn serve_stats(&self, address: impl Into<SocketAddress>) -> Result<StatsServer, ServeError> {
        self.stats_server(address).spawn()
    }

    /// Starts to describe a server of the system's statistics at `address`.
    ///
    /// ```
    /// use pointsman::net::SocketAddress;
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let server = system
    ///     .stats_server(SocketAddress::tcp("127.0.0.1:0"))
    ///     .max_connections(8)
    ///     .request_within(Duration::from_secs(1))
    ///     .spawn()?;
    /// println!("http://{}/metrics", server.local_addr().expect("a TCP port"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn stats_server(&self, address: impl Into<SocketAddress>) -> StatsServerBuilder {
        StatsServerBuilder {
            system: self.clone(),
            address: address.into(),
            is_anywhere: false,
            max_connections: CONNECTIONS_DEFAULT,
            limits: Limits {
                request_within: REQUEST_WITHIN_DEFAULT,
                response_within: RESPONSE_WITHIN_DEFAULT,
            },
            dispatcher: None,
        }
    }
}

impl StatsServerBuilder {
    /// Allows an address that other machines can reach, and requests that name any host. Each program that reaches the
    /// address can read the names of actors and classes, and all numbers.
    pub fn anywhere(mut self) -> Self {
        self.is_anywhere = true;
        self
    }

    /// Has so many connections at most at a time, with those that wait for their clients to read. A client that takes the
    /// last place ends the oldest connection; where there is a single place, further clients wait to be accepted.
    /// Default: 64.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.max_connections = count.max(1);
        self
    }

    /// Gives a client so much time for the head of its request, by the system's clock; then it gets the status 408.
    /// Default: 5 s.
    pub fn request_within(mut self, limit: Duration) -> Self {
        self.limits.request_within = limit;
        self
    }

    /// Gives a client so much time to read its answer and to close the connection, by the system's clock; then the
    /// connection is reset. Default: 10 s.
    pub fn response_within(mut self, limit: Duration) -> Self {
        self.limits.response_within = limit;
        self
    }

    /// Makes the pages on the dispatcher of this name. Default: that of the engine's own actors.
    pub fn dispatcher(mut self, name: &str) -> Self {
        self.dispatcher = Some(name.to_owned());
        self
    }

    /// Serves from now on, by actors below `/system/console`.
    ///
    /// # Errors
    ///
    /// [`ServeError::NotLocal`]: the address is not one of the loopback, and [`anywhere`](Self::anywhere) was not said.
    /// [`ServeError::Address`], [`ServeError::Listen`]: the address is malformed, in use, or otherwise refused; the
    /// system is shut down.
    pub fn spawn(self) -> Result<StatsServer, ServeError> {
        let addresses = match &self.address {
            SocketAddress::Tcp(text) => self.looked_up(text)?,
            #[cfg(unix)]
            SocketAddress::Unix(_) => vec![self.address.clone()],
        };
        let mut outcome = Err(ServeError::Address {
            address: self.address.clone(),
            error: io::Error::new(io::ErrorKind::NotFound, "the name has no address"),
        });
        for address in addresses {
            outcome = self.listen(&address).map_err(ServeError::Listen);
            if !matches!(outcome, Err(ServeError::Listen(ListenError::Bind { .. }))) {
                break;
            }
        }
        outcome.map(|listener| StatsServer { listener })
    }

    /// Returns the addresses of a name, each of which must be allowed.
    fn looked_up(&self, text: &str) -> Result<Vec<SocketAddress>, ServeError> {
        let addresses: Vec<SocketAddr> = text
            .to_socket_addrs()
            .map_err(|error| ServeError::Address { address: self.address.clone(), error })?
            .collect();
        if !self.is_anywhere && !addresses.iter().all(|address| address.ip().is_loopback()) {
            return Err(ServeError::NotLocal { address: self.address.clone() });
        }
        Ok(addresses.into_iter().map(SocketAddress::from).collect())
    }

    /// Listens at an address, under the first name that is free.
    fn listen(&self, address: &SocketAddress) -> Result<Listener, ListenError> {
        let is_tcp = matches!(address, SocketAddress::Tcp(_));
        let pages = StdArc::new(Pages::new(is_tcp && !self.is_anywhere));
        let clients = StdArc::new(Clients::new(self.max_connections));
        let mut number = 1_u32;
        loop {
            let name = if number == 1 { "console".to_owned() } else { format!("console-{number}") };
            let (pages, clients, limits) = (pages.clone(), clients.clone(), self.limits);
            let listener = self
                .builder(&name, address)
                .spawn(move |connection, ctx| Client::new(connection, pages.clone(), &clients, limits, ctx));
            match listener {
                Err(ListenError::Spawn(SpawnError::NameTaken { .. })) => number += 1,
                other => return other,
            }
        }
    }

    fn builder(&self, name: &str, address: &SocketAddress) -> ListenerBuilder {
        let builder = self
            .system
            .listener(name, address.clone())
            .internal()
            .max_connections(self.max_connections)
            .linger(LINGER);
        match &self.dispatcher {
            Some(dispatcher) => builder.dispatcher(dispatcher),
            None => builder,
        }
    }
}

impl StatsServer {
    /// Returns the address that the server listens at, with the port that the operating system chose; `None` for a Unix
    /// socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the number of connections whose sockets are not closed.
    pub fn connections(&self) -> usize {
        self.listener.connections()
    }

    /// Returns the number of connections accepted so far.
    pub fn accepted(&self) -> u64 {
        self.listener.accepted()
    }

    /// Closes the port, and ends the connections. Answers that are written go out within a second.
    pub fn stop(&self) {
        self.listener.stop();
    }
}
