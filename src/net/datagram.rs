//! Datagram sockets: UDP, and Unix datagrams.

use crate::actor::context::Context;
use crate::net::datagram_error::{DatagramError, DatagramSendError};
use crate::net::driver::{DriverSlot, Owner, Registration};
use crate::net::readiness::Readiness;
use crate::net::ready::Ready;
#[cfg(unix)]
use crate::net::socket::SocketFile;
use mio::event::Source;
use mio::{Interest, Registry, Token};
use std::fmt;
use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::PathBuf;

/// The largest length of a datagram that a socket can be made for.
pub(crate) const LENGTH_LIMIT: usize = 16 << 20;
/// At most so many datagrams are received before other actors get their turn.
pub(crate) const RECEIVES_MAX: u32 = 64;
/// The longest content of a UDP datagram over IPv4, and over IPv6.
const UDP_LENGTH_MAX: (usize, usize) = (65_507, 65_527);
/// Windows' error for a datagram that is longer than the room for it.
const WSAEMSGSIZE: i32 = 10_040;
/// The operating system's error for a datagram that is too long to be sent, where it is known.
#[cfg(target_os = "linux")]
const TOO_LONG: Option<i32> = Some(libc::EMSGSIZE);
#[cfg(not(target_os = "linux"))]
const TOO_LONG: Option<i32> = if cfg!(windows) { Some(WSAEMSGSIZE) } else { None };

/// The place of a datagram socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DatagramAddress {
    /// The address and port of a UDP socket; port 0 lets the system choose one when a socket is bound.
    Udp(SocketAddr),
    /// The path of a Unix datagram socket, which the socket that is bound there creates and removes.
    #[cfg(unix)]
    Unix(PathBuf),
}

impl DatagramAddress {
    /// Returns the address of a UDP socket.
    pub fn udp(&self) -> Option<SocketAddr> {
        match self {
            DatagramAddress::Udp(addr) => Some(*addr),
            #[cfg(unix)]
            DatagramAddress::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for DatagramAddress {
    fn from(addr: SocketAddr) -> Self {
        DatagramAddress::Udp(addr)
    }
}

#[cfg(unix)]
impl From<PathBuf> for DatagramAddress {
    fn from(path: PathBuf) -> Self {
        DatagramAddress::Unix(path)
    }
}

impl fmt::Display for DatagramAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatagramAddress::Udp(addr) => addr.fmt(f),
            #[cfg(unix)]
            DatagramAddress::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A datagram that has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its content, which may be empty.
    pub bytes: &'a [u8],
    /// The sender's address; `None` for a Unix socket without a path.
    pub from: Option<DatagramAddress>,
}

/// The result of [`DatagramSocket::receive`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum DatagramOutcome<'a> {
    /// A datagram has come.
    Received(Datagram<'a>),
    /// A datagram has come that is longer than the socket's largest length. Its first bytes are here, as many as that
    /// length; the rest is lost.
    Truncated(Datagram<'a>),
    /// There is none now, or other actors get their turn; a [`Ready`] comes.
    Blocked,
    /// The operating system reports an error, such as that an earlier datagram was refused. The socket goes on working:
    /// receive again.
    Failed(io::ErrorKind),
}

/// The counts of a datagram socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DatagramCounts {
    /// The number of datagrams that were received whole.
    pub received: u64,
    /// The number of datagrams that were longer than the largest length.
    pub truncated: u64,
    /// The number of errors that the operating system reported while receiving.
    pub failed: u64,
    /// The number of datagrams that were sent.
    pub sent: u64,
    /// The number of datagrams that were refused, and given back to their sender with an error.
    pub refused: u64,
}

/// A socket for datagrams: UDP, or a Unix datagram socket. Its actor owns it.
///
/// # Receiving
///
/// On a [`Ready`], call [`ready`](Self::ready) and then [`receive`](Self::receive) until it is
/// [blocked](DatagramOutcome::Blocked). After 64 datagrams it is blocked so that other actors get their turn; another
/// `Ready` comes by itself. The actor holds one datagram at a time. The operating system drops datagrams that come faster
/// than they are received, and counts them nowhere here.
///
/// **Truncation.** A socket is bound with the largest length of a datagram. A longer datagram comes as
/// [`DatagramOutcome::Truncated`], with as many of its bytes as that length. It never passes for a whole datagram, and
/// the next datagram is not touched.
///
/// # Sending
///
/// [`send_to`](Self::send_to) hands the operating system a datagram, or returns an error. It never waits and keeps no
/// datagram for later.
///
/// ```
/// use pointsman::net::{DatagramOutcome, DatagramSocket, Ready};
/// use pointsman::prelude::*;
/// use std::net::{SocketAddr, UdpSocket};
///
/// struct Echo(DatagramSocket);
///
/// impl Actor for Echo {
///     type Message = Ready;
///     fn receive(&mut self, ready: Ready, _: &mut Context<Ready>) -> HandlerResult {
///         self.0.ready(ready);
///         loop {
///             let (bytes, from) = match self.0.receive() {
///                 DatagramOutcome::Received(datagram) => (datagram.bytes.to_vec(), datagram.from),
///                 DatagramOutcome::Truncated(_) | DatagramOutcome::Failed(_) => continue,
///                 DatagramOutcome::Blocked => return Ok(()),
///             };
///             if let Some(from) = from {
///                 // An answer for which there is no room is lost, as a datagram may be.
///                 let _ = self.0.send_to(&bytes, &from);
///             }
///         }
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("echo").build()?;
/// let (tell, told) = std::sync::mpsc::channel();
/// system.actor("echo").spawn_with(move |ctx| {
///     let socket = DatagramSocket::bind(ctx, SocketAddr::from(([127, 0, 0, 1], 0)), 1500)?;
///     tell.send(socket.local_addr().clone())?;
///     Ok::<_, Failure>(Echo(socket))
/// })?;
/// let echo = told.recv()?.udp().expect("a UDP socket");
///
/// let client = UdpSocket::bind("127.0.0.1:0")?;
/// client.send_to(b"hello", echo)?;
/// let mut back = [0; 10];
/// let (count, _) = client.recv_from(&mut back)?;
/// assert_eq!(&back[..count], b"hello");
/// # Ok(())
/// # }
/// ```
pub struct DatagramSocket {
    socket: Socket,
    registration: Registration,
    local: DatagramAddress,
    /// One byte more than the largest length: a datagram that fills it is too long.
    buffer: Box<[u8]>,
    readable: bool,
    /// The number of datagrams that may be received before other actors get their turn.
    budget: u32,
    counts: DatagramCounts,
}

enum Socket {
    Udp(mio::net::UdpSocket),
    #[cfg(unix)]
    Unix {
        /// Removed before the socket closes.
        _file: SocketFile,
        socket: mio::net::UnixDatagram,
    },
}

impl Socket {
    fn bind(address: &DatagramAddress) -> io::Result<(Self, DatagramAddress)> {
        match address {
            DatagramAddress::Udp(addr) => {
                let socket = mio::net::UdpSocket::bind(*addr)?;
                let local = socket.local_addr()?;
                Ok((Socket::Udp(socket), DatagramAddress::Udp(local)))
            }
            #[cfg(unix)]
            DatagramAddress::Unix(path) => {
                let socket = mio::net::UnixDatagram::bind(path)?;
                Ok((Socket::Unix { socket, _file: SocketFile::created(path) }, address.clone()))
            }
        }
    }

    fn receive(&self, into: &mut [u8]) -> io::Result<(usize, Option<DatagramAddress>)> {
        match self {
            Socket::Udp(socket) => {
                socket.recv_from(into).map(|(count, from)| (count, Some(DatagramAddress::Udp(from))))
            }
            #[cfg(unix)]
            Socket::Unix { socket, .. } => socket.recv_from(into).map(|(count, from)| {
                (count, from.as_pathname().map(|path| DatagramAddress::Unix(path.to_owned())))
            }),
        }
    }

    /// Returns `None` if the receiver's address is of another family.
    fn send(&self, bytes: &[u8], local: &DatagramAddress, to: &DatagramAddress) -> Option<io::Result<usize>> {
        match (self, local, to) {
            (Socket::Udp(socket), DatagramAddress::Udp(local), DatagramAddress::Udp(to)) => {
                (local.is_ipv4() == to.is_ipv4()).then(|| socket.send_to(bytes, *to))
            }
            #[cfg(unix)]
            (Socket::Unix { socket, .. }, _, DatagramAddress::Unix(path)) => {
                Some(socket.send_to(bytes, path))
            }
            #[cfg(unix)]
            _ => None,
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Socket::Udp(socket) => socket,
            #[cfg(unix)]
            Socket::Unix { socket, .. } => socket,
        }
    }
}

impl Source for Socket {
    fn register(&mut self, registry: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        self.source().register(registry, token, interest)
    }
    fn reregister(&mut self, registry: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        self.source().reregister(registry, token, interest)
    }
    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.source().deregister(registry)
    }
}

impl DatagramSocket {
    /// Binds a socket to `address` for this actor, which gets a [`Ready`] by its `From<Ready>`. Datagrams of at most
    /// `length_max` bytes are received whole. The socket holds `length_max` bytes of memory and one more.
    ///
    /// # Errors
    ///
    /// [`DatagramError`]: the address is in use or otherwise refused, a largest length of 0 or above 16 MiB, a system
    /// that is shut down.
    pub fn bind<M: From<Ready> + Send + 'static>(
        ctx: &Context<M>,
        address: impl Into<DatagramAddress>,
        length_max: usize,
    ) -> Result<Self, DatagramError> {
        Self::bind_as(ctx, address, length_max, M::from)
    }

    /// As [`bind`](Self::bind), where `ready` makes the message of each [`Ready`] of this socket: for an actor with
    /// several sockets.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    pub fn bind_as<M: Send + 'static>(
        ctx: &Context<M>,
        address: impl Into<DatagramAddress>,
        length_max: usize,
        ready: impl Fn(Ready) -> M + Send + Sync + 'static,
    ) -> Result<Self, DatagramError> {
        let address = address.into();
        if length_max == 0 || length_max > LENGTH_LIMIT {
            return Err(DatagramError::LengthMax { length_max });
        }
        let system = ctx.system();
        let core = system.core();
        let slot = core.extensions.get::<DriverSlot>();
        let driver = slot.driver(core.dispatchers.default_pool()).map_err(DatagramError::Driver)?;
        let (mut socket, local) =
            Socket::bind(&address).map_err(|error| DatagramError::Bind { address, error })?;
        let owner = Owner::actor(ctx.me().clone(), ready);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registration = driver.register(&mut socket, interest, owner).map_err(DatagramError::Driver)?;
        Ok(Self {
            socket,
            registration,
            local,
            buffer: vec![0; length_max + 1].into(),
            readable: false,
            budget: RECEIVES_MAX,
            counts: DatagramCounts::default(),
        })
    }

    /// Returns the address that it is bound to, with the port that the system chose.
    pub fn local_addr(&self) -> &DatagramAddress {
        &self.local
    }

    /// Returns the largest length of a datagram that it receives whole.
    pub fn length_max(&self) -> usize {
        self.buffer.len() - 1
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> DatagramCounts {
        self.counts
    }

    /// Notes the readiness that the driver has reported. Call it first for every [`Ready`], and then receive.
    pub fn ready(&mut self, ready: Ready) {
        let Ready(()) = ready;
        self.readable |= self.registration.take().has(Readiness::READABLE);
        self.budget = RECEIVES_MAX;
    }

    /// Receives a datagram, if one has come.
    pub fn receive(&mut self) -> DatagramOutcome<'_> {
        let length_max = self.length_max();
        loop {
            if !self.readable {
                return DatagramOutcome::Blocked;
            }
            if self.budget == 0 {
                // The taking of the bit makes it readable again.
                self.readable = false;
                self.registration.raise(Readiness::READABLE);
                return DatagramOutcome::Blocked;
            }
            let (length, from) = match self.socket.receive(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if cfg!(windows) && error.raw_os_error() == Some(WSAEMSGSIZE) => {
                    (length_max + 1, None)
                }
                Err(error) => {
                    self.budget -= 1;
                    self.counts.failed += 1;
                    return DatagramOutcome::Failed(error.kind());
                }
            };
            self.budget -= 1;
            if length > length_max {
                self.counts.truncated += 1;
                return DatagramOutcome::Truncated(Datagram { bytes: &self.buffer[..length_max], from });
            }
            self.counts.received += 1;
            return DatagramOutcome::Received(Datagram { bytes: &self.buffer[..length], from });
        }
    }

    /// Sends a datagram, which may be empty.
    ///
    /// # Errors
    ///
    /// [`DatagramSendError`]: nothing was sent.
    pub fn send_to(&mut self, bytes: &[u8], to: &DatagramAddress) -> Result<(), DatagramSendError> {
        let sent = self.try_send(bytes, to);
        match sent {
            Ok(()) => self.counts.sent += 1,
            Err(_) => self.counts.refused += 1,
        }
        sent
    }

    fn try_send(&self, bytes: &[u8], to: &DatagramAddress) -> Result<(), DatagramSendError> {
        let length = bytes.len();
        let length_max = to.udp().map(|to| if to.is_ipv4() { UDP_LENGTH_MAX.0 } else { UDP_LENGTH_MAX.1 });
        if length_max.is_some_and(|max| length > max) {
            return Err(DatagramSendError::TooLong { length });
        }
        loop {
            let error = match self.socket.send(bytes, &self.local, to) {
                None => {
                    return Err(DatagramSendError::WrongFamily { from: self.local.clone(), to: to.clone() });
                }
                Some(Ok(_)) => return Ok(()),
                Some(Err(error)) => error,
            };
            return Err(match error.kind() {
                io::ErrorKind::Interrupted => continue,
                io::ErrorKind::WouldBlock => DatagramSendError::Full,
                _ if is_too_long(&error) => DatagramSendError::TooLong { length },
                _ => DatagramSendError::Failed { to: to.clone(), error },
            });
        }
    }
}

fn is_too_long(error: &io::Error) -> bool {
    TOO_LONG.is_some() && error.raw_os_error() == TOO_LONG
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        self.registration.deregister(&mut self.socket);
    }
}

impl fmt::Debug for DatagramSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatagramSocket")
            .field("local", &self.local)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
