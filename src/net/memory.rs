//! Connections over memory, for tests: two ends of a stream without a socket, a driver or a thread.
//!
//! Each direction is a buffer with a capacity. The call that changes a buffer raises the readiness of the other end
//! itself, as the driver does for a socket. So an actor behaves on such a connection as on a socket, and in a
//! [`TestSystem`](crate::testkit::TestSystem) all happens in the order of the turns.

use crate::actor::actor::Actor;
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::core::actor_ref::ActorRef;
use crate::core::error::SpawnError;
use crate::core::strategy::Strategy;
use crate::core::system::SystemRef;
use crate::failure::Failure;
use crate::net::connection::{Connection, LINGER_DEFAULT, Marks};
use crate::net::connection_permits::ConnectionPermit;
use crate::net::driver::{Owner, Registration};
use crate::net::readiness::Readiness;
use crate::net::ready::Ready;
use crate::net::socket::Socket;
use crate::sync::{Mutex, lock};
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::Guarded;
use mio::event::Source;
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc as StdArc;

/// The bits by which an end learns that its peer has ended, closed or broken the connection.
const ENDS: Readiness = Readiness::READABLE.and(Readiness::READ_ENDS).and(Readiness::WRITABLE);

/// Both directions of a pair; each side has the number 0 or 1.
struct Wire {
    /// The bytes that a side has written and its peer has not read.
    written: [Buffer; 2],
    sides: [Side; 2],
    capacity: usize,
    is_reset: bool,
}

#[derive(Default)]
struct Buffer {
    bytes: VecDeque<u8>,
    /// No more comes.
    is_ended: bool,
    /// The writer found no room, and is told when there is some.
    wants_room: bool,
}

#[derive(Default)]
struct Side {
    /// The connection's owner; `None` before it is opened, and after its end.
    owner: Option<StdArc<Owner>>,
    is_closed: bool,
    /// It has read the end of its input.
    has_seen_end: bool,
}

/// The side to be told, and the news.
type News = Option<(StdArc<Owner>, Readiness)>;

fn tell(news: News) {
    if let Some((owner, bits)) = news {
        owner.raise(bits);
    }
}

/// One end of a pair.
pub(crate) struct End {
    wire: StdArc<Mutex<Wire>>,
    side: usize,
}

impl Wire {
    fn news(&self, side: usize, bits: Readiness) -> News {
        self.sides[side].owner.clone().map(|owner| (owner, bits))
    }

    fn read(&mut self, side: usize, into: &mut [u8]) -> io::Result<(usize, News)> {
        let peer = 1 - side;
        if self.is_reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let buffer = &mut self.written[peer];
        let count = into.len().min(buffer.bytes.len());
        if count == 0 && !into.is_empty() {
            if !buffer.is_ended {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.sides[side].has_seen_end = true;
            return Ok((0, None));
        }
        into.iter_mut().zip(buffer.bytes.drain(..count)).for_each(|(place, byte)| *place = byte);
        let wants_room = buffer.bytes.len() < self.capacity && std::mem::take(&mut buffer.wants_room);
        Ok((count, if wants_room { self.news(peer, Readiness::WRITABLE) } else { None }))
    }

    fn write(&mut self, side: usize, bytes: &[u8]) -> io::Result<(usize, News)> {
        let peer = 1 - side;
        let buffer = &mut self.written[side];
        if self.is_reset || buffer.is_ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.sides[peer].is_closed {
            // As a socket that lingers does, the peer throws away what comes, until its end was read here: so its last
            // bytes are not lost by a write that fails.
            let has_seen_end = self.sides[side].has_seen_end;
            return if has_seen_end {
                Err(io::ErrorKind::BrokenPipe.into())
            } else {
                Ok((bytes.len(), None))
            };
        }
        let count = bytes.len().min(self.capacity.saturating_sub(buffer.bytes.len()));
        if count == 0 && !bytes.is_empty() {
            buffer.wants_room = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        buffer.bytes.extend(&bytes[..count]);
        Ok((count, self.news(peer, Readiness::READABLE)))
    }

    fn close(&mut self, side: usize, rest: &[u8]) -> News {
        let peer = 1 - side;
        self.sides[side].is_closed = true;
        self.written[peer].bytes.clear();
        if !self.is_reset && !self.written[side].is_ended {
            self.written[side].bytes.extend(rest);
        }
        self.written[side].is_ended = true;
        self.news(peer, ENDS)
    }
}

impl End {
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let (count, news) = lock(&self.wire).read(self.side, into)?;
        tell(news);
        Ok(count)
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let (count, news) = lock(&self.wire).write(self.side, bytes)?;
        tell(news);
        Ok(count)
    }

    pub(crate) fn shutdown_write(&self) {
        let news = {
            let mut wire = lock(&self.wire);
            wire.written[self.side].is_ended = true;
            wire.news(1 - self.side, Readiness::READABLE.and(Readiness::READ_ENDS))
        };
        tell(news);
    }

    /// Closes the end; the peer still reads what was written, and `rest` behind it, also beyond the capacity.
    pub(crate) fn close(&mut self, rest: &[u8]) {
        let (news, owner) = {
            let mut wire = lock(&self.wire);
            if wire.sides[self.side].is_closed {
                return;
            }
            (wire.close(self.side, rest), wire.sides[self.side].owner.take())
        };
        // It may hold the last reference to an actor.
        drop(owner);
        tell(news);
    }

    fn reset(&self) {
        let news = {
            let mut wire = lock(&self.wire);
            wire.is_reset = true;
            wire.written.iter_mut().for_each(|buffer| buffer.bytes.clear());
            wire.news(1 - self.side, ENDS)
        };
        tell(news);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.close(&[]);
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("End")
    }
}

/// The peer reports its readiness.
impl Source for End {
    fn register(&mut self, _: &Registry, _: Token, _: Interest) -> io::Result<()> {
        Ok(())
    }
    fn reregister(&mut self, _: &Registry, _: Token, _: Interest) -> io::Result<()> {
        Ok(())
    }
    fn deregister(&mut self, _: &Registry) -> io::Result<()> {
        Ok(())
    }
}

/// The reason why there is no pair in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryError {
    /// The buffers would hold nothing, so no byte could pass.
    ZeroCapacity,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a connection over memory with a capacity of 0 bytes lets none pass: give it at least 1")
    }
}

impl std::error::Error for MemoryError {}

debug_by_display! { MemoryError }

/// One end of a connection over memory, from [`memory_pair`]. An actor [opens](Self::open) it as its [`Connection`]; a
/// test reads and writes it.
///
/// [`Read`] and [`Write`] never wait: a read without bytes, and a write without room, are
/// [`io::ErrorKind::WouldBlock`]. Dropping an end closes it: its peer reads what was written, and then the end.
///
/// ```
/// use pointsman::net::{Connection, ReadOutcome, Ready};
/// use pointsman::prelude::*;
/// use pointsman::testkit::{TestSystem, memory_pair};
/// use std::io::Write;
///
/// struct Echo(Connection);
/// impl Actor for Echo {
///     type Message = Ready;
///     fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
///         self.0.ready(ready);
///         let outcome = self.0.fill(1024);
///         let received = self.0.received().to_vec();
///         self.0.consume(received.len());
///         self.0.write(&received);
///         self.0.flush();
///         if matches!(outcome, ReadOutcome::Eof | ReadOutcome::Closed(_)) {
///             ctx.stop();
///         }
///         Ok(())
///     }
/// }
///
/// let system = TestSystem::new();
/// let (ours, mut peer) = memory_pair(1024).expect("a capacity above 0");
/// ours.spawn(&system, |connection, _| Echo(connection)).expect("the system runs");
/// peer.write_all(b"hello").expect("there is room");
/// system.run_until_idle();
/// assert_eq!(peer.take_received(), b"hello");
/// peer.shutdown_write();
/// system.finish(); // the actor has stopped at the end of its input
/// ```
pub struct MemorySocket {
    end: End,
    marks: Marks,
}

/// Makes the two ends of a connection over memory. Each direction holds at most `capacity` bytes that are written and
/// not read. The last bytes of a [`Connection`] that is dropped come also beyond that.
///
/// # Errors
///
/// [`MemoryError::ZeroCapacity`].
pub fn memory_pair(capacity: usize) -> Result<(MemorySocket, MemorySocket), MemoryError> {
    if capacity == 0 {
        return Err(MemoryError::ZeroCapacity);
    }
    let wire = Wire { written: Default::default(), sides: Default::default(), capacity, is_reset: false };
    let wire = StdArc::new(Mutex::new(wire));
    let end = |side| MemorySocket { end: End { wire: wire.clone(), side }, marks: Marks::default() };
    Ok((end(0), end(1)))
}

impl MemorySocket {
    /// Sets the bounds for bytes that wait to be sent when it is a [`Connection`], as
    /// [`ListenerSettings::marks`](crate::net::ListenerSettings::marks).
    #[must_use]
    pub fn marks(mut self, low: usize, high: usize) -> Self {
        self.marks = Marks { low: low.min(high), high };
        self
    }

    /// Opens it as the connection of this actor, which gets its [`Ready`] by `From<Ready>`.
    pub fn open<M: From<Ready> + Send + 'static>(self, ctx: &Context<M>) -> Connection {
        self.open_as(ctx, M::from)
    }

    /// As [`open`](Self::open), where `ready` makes the message of each [`Ready`].
    pub fn open_as<M: Send + 'static>(
        self,
        ctx: &Context<M>,
        ready: impl Fn(Ready) -> M + Send + Sync + 'static,
    ) -> Connection {
        let Self { end, marks } = self;
        let registration = Registration::without_driver(Owner::actor(ctx.me().clone(), ready));
        let bits = {
            let mut wire = lock(&end.wire);
            wire.sides[end.side].owner = Some(registration.owner().clone());
            let incoming = &wire.written[1 - end.side];
            match (wire.is_reset || incoming.is_ended, incoming.bytes.is_empty()) {
                (true, _) => ENDS,
                (false, false) => Readiness::READABLE.and(Readiness::WRITABLE),
                (false, true) => Readiness::WRITABLE,
            }
        };
        // As for a fresh socket, a first message comes in any case.
        registration.raise(bits);
        let permit = ConnectionPermit::take(&StdArc::default(), usize::MAX, Box::new(|| {}));
        Connection::over(
            (Socket::Memory(end), None),
            registration,
            marks,
            LINGER_DEFAULT,
            StdArc::new(permit),
        )
    }

    /// Creates an actor for it, as a listener does for a connection that it accepts: a top-level actor with a generated
    /// name, made by `make` in its first turn, which stops if it fails.
    ///
    /// # Errors
    ///
    /// The system has shut down.
    pub fn spawn<A>(
        self,
        system: &SystemRef,
        make: impl FnOnce(Connection, &mut Context<A::Message>) -> A + Send + 'static,
    ) -> Result<ActorRef<A::Message>, SpawnError>
    where
        A: Actor,
        A::Message: From<Ready>,
    {
        let mut once = Some((self, Guarded::new(make)));
        let builder = ActorBuilder::new(system.core().user(), None).on_failure(Strategy::stop());
        builder.spawn_with(move |ctx: &mut Context<A::Message>| {
            let (socket, make) =
                once.take().ok_or_else(|| Failure::msg("a connection cannot be made anew"))?;
            let connection = socket.open(ctx);
            Ok::<A, Failure>((make.into_inner())(connection, ctx))
        })
    }

    /// Takes all bytes that the peer has sent.
    pub fn take_received(&mut self) -> Vec<u8> {
        let (mut all, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = self.end.read(&mut piece) {
            all.extend_from_slice(&piece[..count]);
        }
        all
    }

    /// Ends this side's half: the peer reads what was written, then the end, and may go on writing.
    pub fn shutdown_write(&self) {
        self.end.shutdown_write();
    }

    /// Breaks the connection: bytes that are on their way are lost, and the peer finds it
    /// [reset](crate::net::Closed::Reset).
    pub fn reset(self) {
        self.end.reset();
    }
}

impl Read for MemorySocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.end.read(into)
    }
}

impl Write for MemorySocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.end.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for MemorySocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wire = lock(&self.end.wire);
        f.debug_struct("MemorySocket")
            .field("received", &wire.written[1 - self.end.side].bytes.len())
            .field("pending", &wire.written[self.end.side].bytes.len())
            .finish_non_exhaustive()
    }
}
