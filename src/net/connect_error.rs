//! The reasons why an outgoing connection fails.

use crate::core::error::SpawnError;
use crate::net::socket::SocketAddress;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// The reason why there is no connection.
#[non_exhaustive]
pub enum ConnectError {
    /// The address is not `host:port` with a port of 1 to 65535.
    Malformed {
        /// The address.
        address: SocketAddress,
    },
    /// The host name has no address, or cannot be looked up.
    Resolve {
        /// The address.
        address: SocketAddress,
        /// The error of the look-up.
        error: io::Error,
    },
    /// The peer refused, cannot be reached, or is no socket of this kind.
    Failed {
        /// The address.
        address: SocketAddress,
        /// The last of the host's addresses that was tried; `None` for a Unix socket.
        tried: Option<SocketAddr>,
        /// The error of the last attempt.
        error: io::Error,
    },
    /// The limit of time passed.
    TimedOut {
        /// The address.
        address: SocketAddress,
        /// The limit.
        limit: Duration,
        /// Whether the host name was still being looked up.
        resolving: bool,
    },
    /// The thread that waits for sockets could not be started, or cannot watch another socket.
    Driver(io::Error),
    /// The actor that connects could not be created: the system ends.
    Spawn(SpawnError),
    /// The system ended before there was a connection.
    SystemEnded {
        /// The address.
        address: SocketAddress,
    },
}

impl ConnectError {
    /// Returns the kind of the error: that of the operating system where it was asked. A peer that refuses is
    /// [`io::ErrorKind::ConnectionRefused`], a limit that passed [`io::ErrorKind::TimedOut`], and a malformed address
    /// [`io::ErrorKind::InvalidInput`]. `None` when the system is ending.
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            ConnectError::Resolve { error, .. }
            | ConnectError::Failed { error, .. }
            | ConnectError::Driver(error) => Some(error.kind()),
            ConnectError::TimedOut { .. } => Some(io::ErrorKind::TimedOut),
            ConnectError::Malformed { .. } => Some(io::ErrorKind::InvalidInput),
            ConnectError::Spawn(_) | ConnectError::SystemEnded { .. } => None,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Malformed { address } => write!(
                f,
                "cannot connect to {:?}: it is not `host:port` with a port of 1 to 65535, such as \
                 `localhost:6379` or `[::1]:6379`",
                address.to_string()
            ),
            ConnectError::Resolve { address, error } => {
                write!(
                    f,
                    "cannot connect to {address}: the host name was not found, check it or try again ({error})"
                )
            }
            ConnectError::Failed { address, tried: Some(tried), error }
                if tried.to_string() != address.to_string() =>
            {
                write!(f, "cannot connect to {address} at {tried}: {error}")
            }
            ConnectError::Failed { address, error, .. } => write!(f, "cannot connect to {address}: {error}"),
            ConnectError::TimedOut { address, limit, resolving: true } => write!(
                f,
                "cannot connect to {address}: the host name was not found within {limit:?}, try again or allow more time"
            ),
            ConnectError::TimedOut { address, limit, resolving: false } => write!(
                f,
                "cannot connect to {address}: no answer within {limit:?}, try again or allow more time"
            ),
            ConnectError::Driver(error) => write!(f, "cannot wait for another socket: {error}"),
            ConnectError::Spawn(error) => write!(f, "cannot create the actor that connects: {error}"),
            ConnectError::SystemEnded { address } => {
                write!(f, "cannot connect to {address}: the system ended meanwhile")
            }
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConnectError::Resolve { error, .. }
            | ConnectError::Failed { error, .. }
            | ConnectError::Driver(error) => Some(error),
            ConnectError::Spawn(error) => Some(error),
            _ => None,
        }
    }
}

debug_by_display! { ConnectError }

impl From<SpawnError> for ConnectError {
    fn from(error: SpawnError) -> Self {
        ConnectError::Spawn(error)
    }
}
