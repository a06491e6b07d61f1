//! The reasons why a datagram socket cannot be had, and why a datagram is not sent.

use crate::net::datagram::{DatagramAddress, LENGTH_LIMIT};
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::io;

/// The reason why there is no datagram socket.
#[non_exhaustive]
pub enum DatagramError {
    /// The largest length of a datagram is 0, or above 16 MiB.
    LengthMax {
        /// The length, in bytes.
        length_max: usize,
    },
    /// The operating system does not let us have the address: it is in use, is not one of this machine, or needs rights
    /// that we don't have.
    Bind {
        /// The address.
        address: DatagramAddress,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The thread that waits for sockets could not be started, or cannot watch another socket.
    Driver(io::Error),
}

impl DatagramError {
    /// Returns the error of the operating system, if it was asked; a port in use is [`io::ErrorKind::AddrInUse`].
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            DatagramError::Bind { error, .. } | DatagramError::Driver(error) => Some(error.kind()),
            DatagramError::LengthMax { .. } => None,
        }
    }
}

impl fmt::Display for DatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatagramError::LengthMax { length_max } => write!(
                f,
                "datagrams of at most {length_max} bytes cannot be received: the largest length must be 1 to \
                 {LENGTH_LIMIT}"
            ),
            DatagramError::Bind { address, error } => {
                write!(f, "cannot receive datagrams at {address}: {error}, choose another address")
            }
            DatagramError::Driver(error) => write!(f, "cannot wait for another socket: {error}"),
        }
    }
}

impl std::error::Error for DatagramError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DatagramError::Bind { error, .. } | DatagramError::Driver(error) => Some(error),
            DatagramError::LengthMax { .. } => None,
        }
    }
}

debug_by_display! { DatagramError }

/// The reason why a datagram was not sent. The sender has its bytes still.
#[non_exhaustive]
pub enum DatagramSendError {
    /// There is no room for it now. A [`Ready`](crate::net::Ready) comes when the socket has room. Where the receiver of
    /// a Unix datagram has none, no `Ready` tells when it has: try again later.
    Full,
    /// It is longer than a datagram can be.
    TooLong {
        /// The length, in bytes.
        length: usize,
    },
    /// The receiver's address is of another family (IPv4, IPv6, Unix) than the socket's.
    WrongFamily {
        /// The socket's address.
        from: DatagramAddress,
        /// The receiver's address.
        to: DatagramAddress,
    },
    /// Another error of the operating system: the receiver cannot be reached, or has refused an earlier datagram.
    Failed {
        /// The receiver's address.
        to: DatagramAddress,
        /// The error.
        error: io::Error,
    },
}

impl fmt::Display for DatagramSendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatagramSendError::Full => {
                f.write_str("the datagram was not sent: there is no room, try again later")
            }
            DatagramSendError::TooLong { length } => {
                write!(f, "a datagram of {length} bytes cannot be sent: send it in parts")
            }
            DatagramSendError::WrongFamily { from, to } => write!(
                f,
                "a socket at {from} cannot send to {to}, an address of another family: send from a socket of that \
                 family"
            ),
            DatagramSendError::Failed { to, error } => {
                write!(f, "the datagram to {to} was not sent: {error}")
            }
        }
    }
}

impl std::error::Error for DatagramSendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DatagramSendError::Failed { error, .. } => Some(error),
            _ => None,
        }
    }
}

debug_by_display! { DatagramSendError }
