//! Sockets for actors: a listener hands each connection to an actor of its own, and an actor [connects] to others.
//!
//! The *driver* of a system waits until the operating system reports that a socket can be read or written, and turns
//! the report into a [`Ready`] message. An idle worker of the default dispatcher does that, or else a thread of the
//! driver's own. All other work happens in the connection actor's own
//! turn, with calls that never wait: [`Connection::fill`] reads the input that is there, [`Connection::flush`] writes
//! the waiting output. So actors never block on a socket, and the workers share the reading and writing. An actor that
//! reads less makes its peer send less: TCP's own back-pressure.
//!
//! In reading order:
//!
//! - `readiness.rs`: the word by which the driver and a connection agree on who acts.
//! - `driver.rs`: waits for sockets.
//! - `socket.rs`: TCP and Unix sockets under a common type.
//! - `connection.rs`: the socket of an actor, with its buffers.
//! - `listener.rs`: accepts connections.
//! - `connect.rs`: outgoing connections. `resolver.rs` looks names up, `outgoing.rs` counts.
//! - `datagram.rs`: UDP and Unix datagrams.
//! - `framer.rs`, `length_framer.rs`, `line_framer.rs`: cut frames out of the input.
//! - `connection_permits.rs`: counts connections.
//! - `linger.rs`: sends the last bytes of an ended actor.
//! - `memory.rs`: connections without sockets, for tests.
//!
//! The [guide](crate::guide::net) shows how a service uses them.
//!
//! [connects]: crate::Context::connect
//!
//! # Memory
//!
//! The memory that a peer can make a connection hold is bounded, whatever it sends and however slowly it reads:
//!
//! | held | at most |
//! |---|---|
//! | mailbox | one [`Ready`], though it be full, besides the messages of other actors |
//! | input | twice the sum of the bytes that the actor has left unconsumed and the `max` of one [`fill`](Connection::fill); 64 KiB are kept when all is consumed |
//! | output | twice the sum of the [high-water mark](ListenerBuilder::marks) and the bytes that the actor writes in one turn, in each of two buffers; 64 KiB each are kept when all is sent |
//! | the rest | the actor, and its place at the driver: less than 4 KiB |
//!
//! The factor 2 is that of buffers that grow by doubling. Two of the terms are the actor's own. The actor has to give
//! up a peer whose request never ends (otherwise it leaves ever more unconsumed), and to write a bounded amount for
//! each piece that it reads. A connection that has ended holds its output for at most the [linger
//! time](ListenerBuilder::linger), and all that have ended hold no more than
//! [`linger_bytes`](ListenerBuilder::linger_bytes) together; a warning in the log tells where some were closed for
//! that. [`max_connections`](ListenerBuilder::max_connections) bounds the number of
//! [connections](Listener::connections), with those that linger. By default it is no limit: then the descriptors that
//! the operating system gives are the limit. A [receive timeout](crate::Context::set_receive_timeout) ends connections
//! whose peers say nothing. `tests/untrusted.rs` holds connections to this.
//!
//! ```
//! use pointsman::net::{SocketAddress, Connection, ReadOutcome, Ready};
//! use pointsman::prelude::*;
//! use std::io::{Read, Write};
//!
//! struct Echo(Connection);
//!
//! impl Actor for Echo {
//!     type Message = Ready;
//!     fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
//!         let Echo(connection) = self;
//!         connection.ready(ready);
//!         match connection.fill(64 * 1024) {
//!             ReadOutcome::Read(_) => {
//!                 let received = connection.received().to_vec();
//!                 connection.consume(received.len());
//!                 connection.write(&received);
//!             }
//!             ReadOutcome::Blocked => {}
//!             ReadOutcome::Eof | ReadOutcome::Closed(_) => ctx.stop(),
//!         }
//!         connection.flush();
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = System::builder("echo").build()?;
//! let listener =
//!     system.listener("echo", SocketAddress::tcp("127.0.0.1:0")).spawn(|connection, _| Echo(connection))?;
//!
//! let mut client = std::net::TcpStream::connect(listener.local_addr().expect("a TCP listener"))?;
//! client.write_all(b"hello")?;
//! let mut back = [0; 5];
//! client.read_exact(&mut back)?;
//! assert_eq!(&back, b"hello");
//! # Ok(())
//! # }
//! ```

#[cfg(not(pointsman_loom))]
pub(crate) mod connect;
#[cfg(not(pointsman_loom))]
pub(crate) mod connect_error;
#[cfg(not(pointsman_loom))]
pub(crate) mod connection;
#[cfg(not(pointsman_loom))]
pub(crate) mod datagram;
#[cfg(not(pointsman_loom))]
pub(crate) mod datagram_error;
#[cfg(not(pointsman_loom))]
pub(crate) mod driver;
#[cfg(not(pointsman_loom))]
pub(crate) mod framer;
#[cfg(not(pointsman_loom))]
pub(crate) mod length_framer;
#[cfg(not(pointsman_loom))]
pub(crate) mod line_framer;
#[cfg(not(pointsman_loom))]
pub(crate) mod linger;
#[cfg(not(pointsman_loom))]
pub(crate) mod listener;
#[cfg(not(pointsman_loom))]
pub(crate) mod connection_permits;
#[cfg(all(any(test, feature = "testkit"), not(pointsman_loom)))]
pub(crate) mod memory;
#[cfg(not(pointsman_loom))]
pub(crate) mod outgoing;
pub(crate) mod readiness;
pub(crate) mod ready;
#[cfg(not(pointsman_loom))]
pub(crate) mod resolver;
#[cfg(all(test, not(pointsman_loom)))]
pub(crate) mod scripted;
#[cfg(all(test, not(pointsman_loom)))]
pub(crate) mod scripted_port;
#[cfg(not(pointsman_loom))]
pub(crate) mod socket;

#[cfg(not(pointsman_loom))]
pub use crate::net::connect::ConnectBuilder;
#[cfg(not(pointsman_loom))]
pub use crate::net::connect_error::ConnectError;
#[cfg(not(pointsman_loom))]
pub use crate::net::connection::{Closed, Connection, ReadOutcome};
#[cfg(not(pointsman_loom))]
pub use crate::net::datagram::{Datagram, DatagramAddress, DatagramCounts, DatagramOutcome, DatagramSocket};
#[cfg(not(pointsman_loom))]
pub use crate::net::datagram_error::{DatagramError, DatagramSendError};
#[cfg(not(pointsman_loom))]
pub use crate::net::framer::{Frame, FrameError, FrameWriteError, Framer, FramerError};
#[cfg(not(pointsman_loom))]
pub use crate::net::length_framer::{LengthFramer, LengthPrefix};
#[cfg(not(pointsman_loom))]
pub use crate::net::line_framer::LineFramer;
#[cfg(not(pointsman_loom))]
pub use crate::net::listener::{DrainReport, ListenError, Listener, ListenerBuilder};
#[cfg(not(pointsman_loom))]
pub use crate::net::outgoing::OutgoingConnections;
#[cfg(not(pointsman_loom))]
pub use crate::net::ready::Ready;
#[cfg(not(pointsman_loom))]
pub use crate::net::socket::SocketAddress;
#[cfg(feature = "net")]
pub use crate::settings::deployment::ListenerSettings;
