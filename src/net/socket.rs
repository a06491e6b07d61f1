//! TCP and Unix sockets under a common type.

use mio::event::Source;
use mio::{Interest, Registry, Token};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
#[cfg(unix)]
use std::path::{Path, PathBuf};

/// The place of a socket: to listen on, or to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketAddress {
    /// A host and port such as `127.0.0.1:6379` or `[::1]:0`; a listener at port 0 lets the system choose one.
    Tcp(String),
    /// The path of a Unix socket, which a listener creates and removes.
    #[cfg(unix)]
    Unix(PathBuf),
}

/// A peer to connect to, whose name is looked up.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    Tcp(SocketAddr),
    #[cfg(unix)]
    Unix(PathBuf),
}

impl Peer {
    pub(crate) fn addr(&self) -> Option<SocketAddr> {
        match self {
            Peer::Tcp(addr) => Some(*addr),
            #[cfg(unix)]
            Peer::Unix(_) => None,
        }
    }
}

impl SocketAddress {
    /// A TCP address, `host:port`.
    pub fn tcp(host_and_port: impl Into<String>) -> Self {
        SocketAddress::Tcp(host_and_port.into())
    }

    /// The path of a Unix socket.
    #[cfg(unix)]
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        SocketAddress::Unix(path.into())
    }
}

impl From<SocketAddr> for SocketAddress {
    fn from(address: SocketAddr) -> Self {
        SocketAddress::Tcp(address.to_string())
    }
}

impl fmt::Display for SocketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketAddress::Tcp(address) => f.write_str(address),
            #[cfg(unix)]
            SocketAddress::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A connected socket that never waits.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(mio::net::TcpStream),
    #[cfg(unix)]
    Unix(mio::net::UnixStream),
    /// One end of a pair in memory.
    #[cfg(any(test, feature = "testkit"))]
    Memory(crate::net::memory::End),
    /// Scripted.
    #[cfg(test)]
    Scripted(crate::net::scripted::End),
}

impl Socket {
    /// Begins to connect.
    pub(crate) fn connect(peer: &Peer) -> io::Result<Self> {
        match peer {
            Peer::Tcp(addr) => mio::net::TcpStream::connect(*addr).map(Socket::Tcp),
            #[cfg(unix)]
            Peer::Unix(path) => mio::net::UnixStream::connect(path).map(Socket::Unix),
        }
    }

    /// Returns whether a socket that connects has done so.
    ///
    /// # Errors
    ///
    /// It has failed.
    pub(crate) fn is_connected(&self) -> io::Result<bool> {
        let (fault, peer) = match self {
            Socket::Tcp(stream) => {
                let fault = stream.take_error()?;
                let peer = stream.peer_addr().and_then(|peer| match stream.local_addr()? {
                    // A socket can meet itself at a port without a listener.
                    own if own == peer => Err(io::ErrorKind::ConnectionRefused.into()),
                    _ => Ok(()),
                });
                (fault, peer)
            }
            #[cfg(unix)]
            Socket::Unix(stream) => (stream.take_error()?, stream.peer_addr().map(drop)),
            #[cfg(any(test, feature = "testkit"))]
            Socket::Memory(_) => (None, Ok(())),
            #[cfg(test)]
            Socket::Scripted(_) => (None, Ok(())),
        };
        if let Some(fault) = fault {
            return Err(fault);
        }
        match peer {
            Ok(()) => Ok(true),
            Err(error) if is_under_way(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(into),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.read(into),
            #[cfg(any(test, feature = "testkit"))]
            Socket::Memory(end) => end.read(into),
            #[cfg(test)]
            Socket::Scripted(end) => end.read(into),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.write(bytes),
            #[cfg(any(test, feature = "testkit"))]
            Socket::Memory(end) => end.write(bytes),
            #[cfg(test)]
            Socket::Scripted(end) => end.write(bytes),
        }
    }

    /// Tells the peer that no more will come.
    pub(crate) fn shutdown_write(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
            #[cfg(any(test, feature = "testkit"))]
            Socket::Memory(end) => {
                end.shutdown_write();
                Ok(())
            }
            #[cfg(test)]
            Socket::Scripted(end) => end.shutdown_write(),
        }
    }

    pub(crate) fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_nodelay(nodelay),
            #[cfg(unix)]
            Socket::Unix(_) => Ok(()),
            #[cfg(any(test, feature = "testkit"))]
            Socket::Memory(_) => Ok(()),
            #[cfg(test)]
            Socket::Scripted(_) => Ok(()),
        }
    }

    /// Whether a read may get less than it asked for although more has come, without a report of that. A read of a Unix
    /// socket stops behind bytes that a descriptor was sent with.
    pub(crate) fn reads_stop_early(&self) -> bool {
        match self {
            Socket::Tcp(_) => false,
            #[cfg(unix)]
            Socket::Unix(_) => true,
            #[cfg(any(test, feature = "testkit"))]
            Socket::Memory(_) => false,
            #[cfg(test)]
            Socket::Scripted(end) => end.stops_early(),
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Socket::Tcp(stream) => stream,
            #[cfg(unix)]
            Socket::Unix(stream) => stream,
            #[cfg(any(test, feature = "testkit"))]
            Socket::Memory(end) => end,
            #[cfg(test)]
            Socket::Scripted(end) => end,
        }
    }
}

/// Whether this error of looking at the peer says that the socket connects still.
fn is_under_way(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    if error.raw_os_error() == Some(libc::EINPROGRESS) {
        return true;
    }
    error.kind() == io::ErrorKind::NotConnected
}

/// A socket that accepts connections. The path of a Unix socket goes with it.
#[derive(Debug)]
pub(crate) enum ListenSocket {
    Tcp(mio::net::TcpListener),
    #[cfg(unix)]
    Unix {
        /// Removed before the listener closes.
        _file: SocketFile,
        listener: mio::net::UnixListener,
    },
    /// Scripted.
    #[cfg(test)]
    Scripted(crate::net::scripted_port::Port),
}

impl ListenSocket {
    pub(crate) fn bind(address: &SocketAddress) -> io::Result<Self> {
        match address {
            SocketAddress::Tcp(address) => {
                let mut outcome = Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the name has no address: check the host",
                ));
                for address in address.to_socket_addrs()? {
                    outcome = mio::net::TcpListener::bind(address).map(ListenSocket::Tcp);
                    if outcome.is_ok() {
                        break;
                    }
                }
                outcome
            }
            #[cfg(unix)]
            SocketAddress::Unix(path) => {
                let listener = mio::net::UnixListener::bind(path)?;
                Ok(ListenSocket::Unix { listener, _file: SocketFile::created(path) })
            }
        }
    }

    /// Accepts a connection that waits, with the peer's address: a socket whose peer has gone already does not know the
    /// address any more.
    pub(crate) fn accept(&self) -> io::Result<(Socket, Option<SocketAddr>)> {
        match self {
            ListenSocket::Tcp(listener) => {
                listener.accept().map(|(stream, peer)| (Socket::Tcp(stream), Some(peer)))
            }
            #[cfg(unix)]
            ListenSocket::Unix { listener, .. } => {
                listener.accept().map(|(stream, _)| (Socket::Unix(stream), None))
            }
            #[cfg(test)]
            ListenSocket::Scripted(port) => port.accept().map(|end| (Socket::Scripted(end), None)),
        }
    }

    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            ListenSocket::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            ListenSocket::Unix { .. } => None,
            #[cfg(test)]
            ListenSocket::Scripted(_) => None,
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            ListenSocket::Tcp(listener) => listener,
            #[cfg(unix)]
            ListenSocket::Unix { listener, .. } => listener,
            #[cfg(test)]
            ListenSocket::Scripted(port) => port,
        }
    }
}

/// Returns device and number of the file at `path`.
#[cfg(unix)]
fn file_at(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// The file of a Unix socket, which goes with the socket.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// The identity of our file: another program may have put another file in its place.
    file: Option<(u64, u64)>,
}

#[cfg(unix)]
impl SocketFile {
    /// The file that a socket has just created.
    pub(crate) fn created(path: &Path) -> Self {
        Self { path: path.to_owned(), file: file_at(path) }
    }
}

#[cfg(unix)]
impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.file.is_some() && file_at(&self.path) == self.file {
            // An error says that the file may have gone meanwhile, which is the aim.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

macro_rules! source {
    ($type:ty) => {
        impl Source for $type {
            fn register(&mut self, registry: &Registry, token: Token, interest: Interest) -> io::Result<()> {
                self.source().register(registry, token, interest)
            }
            fn reregister(
                &mut self,
                registry: &Registry,
                token: Token,
                interest: Interest,
            ) -> io::Result<()> {
                self.source().reregister(registry, token, interest)
            }
            fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
                self.source().deregister(registry)
            }
        }
    };
}
source!(Socket);
source!(ListenSocket);
