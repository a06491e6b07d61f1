//! A connection: the socket of an actor, the input that has come in, and the output that waits.

use crate::net::connection_permits::{ConnectionPermit, LingeringPermit};
use crate::net::driver::{Driver, Owner, Registration};
use crate::net::framer::{Frame, FrameError, Framer};
use crate::net::linger::Lingering;
use crate::net::readiness::Readiness;
use crate::net::ready::Ready;
use crate::net::socket::Socket;
use crate::util::debug_by_display::debug_by_display;
use mio::Interest;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc as StdArc;
use std::time::{Duration, Instant};

/// The first size of the input buffer; it doubles as long as reads fill it.
const READ_START: usize = 4 * 1024;
/// Empty buffers larger than this are given back.
const KEEP_MAX: usize = 64 * 1024;
pub(super) const LINGER_DEFAULT: Duration = Duration::from_secs(2);

/// A connection; its actor owns it.
///
/// # Reading
///
/// On a [`Ready`], call [`ready`](Self::ready) and then [`fill`](Self::fill). `fill` reads at most as much as it is
/// told, so a peer that never stops sending does not keep other actors waiting; if there is more, another `Ready` comes
/// by itself. Look at the input with [`received`](Self::received), and take it off the front with
/// [`consume`](Self::consume).
///
/// # Writing
///
/// [`write`](Self::write) (or [`output`](Self::output)) puts bytes behind the bytes that wait; [`flush`](Self::flush)
/// hands the socket as much as it takes. The rest goes out when the peer has read: a `Ready` comes, and `ready`
/// flushes. When more than the high-water mark waits, `fill` reads nothing until no more than the low-water mark does,
/// and then a `Ready` comes.
///
/// # The end
///
/// A peer that has ended its half of the connection is [`ReadOutcome::Eof`]; writing goes on working. Dropping a
/// connection, as its actor does when it stops, sends the bytes that were written and not yet sent, for at most the
/// [linger time](crate::net::ListenerBuilder::linger); [`abort`](Self::abort) throws them away.
pub struct Connection {
    /// Empty only within the destructor.
    socket: Option<Socket>,
    registration: Registration,
    input: Input,
    output: Output,
    fixed: Box<Fixed>,
    /// Whether reading may find input: set by readiness, ended by "would block".
    readable: bool,
    /// Whether writing may send bytes.
    writable: bool,
    /// Whether the end of input may follow the bytes that are read, or something divides them (urgent bytes, or a
    /// descriptor that was sent with them), so that a short read does not mean "no more".
    read_ends: bool,
    /// The peer sends no more.
    eof: bool,
    /// More than the high-water mark waited, and since then always more than the low-water mark.
    congested: bool,
    /// Whether to end our half after all is sent, and whether that is done.
    write_end: WriteEnd,
    closed: Option<Closed>,
}

/// The parts of a connection that never change. They are apart, so that a message with a connection is small.
struct Fixed {
    marks: Marks,
    linger: Duration,
    place: StdArc<ConnectionPermit>,
    peer: Option<SocketAddr>,
}

/// The bounds for bytes that wait to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    pub low: usize,
    pub high: usize,
}

impl Default for Marks {
    fn default() -> Self {
        Self { low: 64 * 1024, high: 256 * 1024 }
    }
}

/// The result of [`Connection::fill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ReadOutcome {
    /// This many bytes came in, at least one.
    Read(usize),
    /// Nothing to read now, or too much waits to be sent; a [`Ready`] comes.
    Blocked,
    /// The peer has ended its half: no more will come. Writing still works.
    Eof,
    /// The connection is broken.
    Closed(Closed),
}

/// The reason why a connection is broken.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Closed {
    /// The peer reset it, or closed it while bytes were on their way to it.
    Reset,
    /// This side [aborted](Connection::abort) it.
    Aborted,
    /// Another error of the operating system.
    Other(io::ErrorKind),
}

impl Closed {
    fn by(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Closed::Reset,
            other => Closed::Other(other),
        }
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Closed::Reset => f.write_str("connection reset by the peer"),
            Closed::Aborted => f.write_str("connection aborted on this side"),
            Closed::Other(kind) => write!(f, "connection broken: {kind}"),
        }
    }
}

impl std::error::Error for Closed {}

debug_by_display! { Closed }

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteEnd {
    Open,
    WhenFlushed,
    Done,
}

/// The input that has come in and is not consumed: `bytes[head..tail]`.
#[derive(Default)]
struct Input {
    /// As long as its capacity, so that reading needs no uninitialised memory.
    bytes: Vec<u8>,
    head: usize,
    tail: usize,
}

/// The output that waits. It has two buffers, so that a slow peer never makes us move the waiting bytes: one is sent
/// from its front, the other grows at its back, and they change places when the first is empty.
#[derive(Default)]
struct Output {
    sending: Vec<u8>,
    sent: usize,
    waiting: Vec<u8>,
}

impl Connection {
    /// Registers a fresh socket with the driver for its owner.
    pub(crate) fn open(
        (mut socket, peer): (Socket, Option<SocketAddr>),
        driver: &StdArc<Driver>,
        owner: Owner,
        marks: Marks,
        linger: Duration,
        place: StdArc<ConnectionPermit>,
    ) -> io::Result<Self> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        #[cfg(any(target_os = "android", target_os = "linux"))]
        let interest = interest | Interest::PRIORITY;
        let registration = driver.register(&mut socket, interest, owner)?;
        if place.is_draining() {
            // The driver tells the others: see `Driver::tell_drain`.
            registration.raise(Readiness::READABLE);
        }
        Ok(Self::over((socket, peer), registration, marks, linger, place))
    }

    /// Makes a connection of a registered socket.
    pub(crate) fn over(
        (socket, peer): (Socket, Option<SocketAddr>),
        registration: Registration,
        marks: Marks,
        linger: Duration,
        place: StdArc<ConnectionPermit>,
    ) -> Self {
        let read_ends = socket.reads_stop_early();
        Self {
            socket: Some(socket),
            registration,
            input: Input::default(),
            output: Output::default(),
            fixed: Box::new(Fixed { marks, linger, place, peer }),
            // The first edge sets it.
            readable: false,
            writable: true,
            read_ends,
            eof: false,
            congested: false,
            write_end: WriteEnd::Open,
            closed: None,
        }
    }

    /// Returns the owner of the socket.
    pub(crate) fn owner(&self) -> StdArc<Owner> {
        self.registration.owner().clone()
    }

    /// Returns the peer's address; `None` for a Unix socket.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.fixed.peer
    }

    /// Notes the readiness that the driver has reported. Call it first for every [`Ready`], and then read. It flushes
    /// the bytes that wait to be sent.
    pub fn ready(&mut self, ready: Ready) {
        let Ready(()) = ready;
        let bits = self.registration.take();
        self.readable |= bits.has(Readiness::READABLE);
        self.read_ends |= bits.has(Readiness::READ_ENDS);
        if bits.has(Readiness::WRITABLE) {
            self.writable = true;
            self.flush();
        }
    }

    /// Whether the listener of this connection [drains](crate::net::Listener::drain), so that the connection should
    /// finish its work and end. A [`Ready`] comes when that begins. Connections without a listener never drain.
    pub fn is_draining(&self) -> bool {
        self.fixed.place.is_draining()
    }

    // ---- reading

    /// Reads at most `max` bytes behind the bytes that are there.
    ///
    /// Reads nothing while the connection [is congested](Self::is_congested). If there may be more than was read,
    /// another [`Ready`] comes by itself. With a `max` of 0 it reads nothing, and no `Ready` comes for that: call it
    /// again when there is room.
    pub fn fill(&mut self, max: usize) -> ReadOutcome {
        self.input.release_if_empty();
        let mut total = 0;
        while total < max && self.may_read() {
            let Some(socket) = &mut self.socket else { break };
            let room = self.input.room(max - total);
            match socket.read(room) {
                Ok(0) => self.eof = true,
                Ok(count) => {
                    // The stream is empty when a read gets less than it asked for, unless its end or something that
                    // divides it follows. A later end is an edge of its own.
                    self.readable = count == room.len() || self.read_ends;
                    self.input.tail += count;
                    total += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.closed = Some(Closed::by(&error)),
            }
        }
        if total > 0 {
            if self.readable || self.eof || self.closed.is_some() {
                self.registration.raise(Readiness::READABLE);
            }
            return ReadOutcome::Read(total);
        }
        match self.closed {
            Some(closed) => ReadOutcome::Closed(closed),
            None if self.eof => ReadOutcome::Eof,
            None => ReadOutcome::Blocked,
        }
    }

    fn may_read(&self) -> bool {
        self.readable && !self.eof && self.closed.is_none() && !self.is_congested()
    }

    /// Returns the input that has come in and is not consumed.
    pub fn received(&self) -> &[u8] {
        &self.input.bytes[self.input.head..self.input.tail]
    }

    /// Takes `count` bytes off the front of the input.
    ///
    /// # Panics
    ///
    /// When there are fewer bytes.
    pub fn consume(&mut self, count: usize) {
        let held = self.input.tail - self.input.head;
        assert!(count <= held, "cannot consume {count} bytes: only {held} have come in");
        self.input.consume(count);
    }

    /// Takes the next frame off the front of the input, and returns its content; `None` if no whole frame has come.
    /// When the peer has sent its last byte ([`ReadOutcome::Eof`]), the framer is told that the stream ends.
    ///
    /// The content is not copied: it lies in the input until this connection is used again. A framer belongs to one
    /// connection, whose input no other call consumes.
    ///
    /// ```
    /// # use pointsman::net::{Connection, LineFramer, ReadOutcome, Ready};
    /// # use pointsman::prelude::*;
    /// struct Counter {
    ///     connection: Connection,
    ///     lines: LineFramer,
    ///     bytes: usize,
    /// }
    ///
    /// impl Actor for Counter {
    ///     type Message = Ready;
    ///     fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
    ///         self.connection.ready(ready);
    ///         let outcome = self.connection.fill(4096);
    ///         while let Some(line) = self.connection.next_frame(&mut self.lines)? {
    ///             self.bytes += line.len();
    ///         }
    ///         if matches!(outcome, ReadOutcome::Eof | ReadOutcome::Closed(_)) {
    ///             ctx.stop();
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The [`FrameError`] of the framer. The input keeps the bytes at fault.
    ///
    /// # Panics
    ///
    /// When a framer of your own returns a frame that uses no byte, or that does not lie within its input.
    pub fn next_frame(&mut self, framer: &mut impl Framer) -> Result<Option<&[u8]>, FrameError> {
        self.input.release_if_empty();
        let Input { bytes, head, tail } = &self.input;
        let (head, received) = (*head, &bytes[*head..*tail]);
        let mut frame = framer.next(received)?;
        if frame.is_none() && self.eof {
            frame = framer.end(received)?;
        }
        let Some(frame) = frame else { return Ok(None) };
        let Frame { start, end, used } = frame;
        assert!(
            used > 0 && start <= end && end <= used && used <= received.len(),
            "{frame:?} is no frame of {} bytes",
            received.len()
        );
        // The buffer stays as it is until the next call: the content lies in it.
        self.input.head += frame.used;
        Ok(Some(frame.content(&self.input.bytes[head..self.input.tail])))
    }

    // ---- writing

    /// Puts bytes behind the bytes that wait to be sent. Nothing is sent before [`flush`](Self::flush). The bytes are
    /// thrown away when the connection is broken or its writing half ended.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.closed.is_none() && self.write_end == WriteEnd::Open {
            self.output.waiting.extend_from_slice(bytes);
        }
    }

    /// Returns the buffer that [`write`](Self::write) writes to, to be appended to directly.
    pub fn output(&mut self) -> &mut Vec<u8> {
        if self.closed.is_some() || self.write_end != WriteEnd::Open {
            // These bytes will never be sent.
            self.output.waiting.clear();
        }
        &mut self.output.waiting
    }

    /// Returns how many bytes wait to be sent.
    pub fn pending(&self) -> usize {
        self.output.pending()
    }

    /// Hands the socket the waiting bytes, as many as it takes. Returns whether everything written is with the
    /// operating system. If not, the peer reads too slowly, and a [`Ready`] comes; or the connection is broken, and
    /// [`closed`](Self::closed) tells why.
    #[doc(alias = "Flushed")]
    pub fn flush(&mut self) -> bool {
        self.congested |= self.pending() > self.fixed.marks.high;
        let flushed = self.send();
        if self.congested && self.pending() <= self.fixed.marks.low {
            self.congested = false;
            // Raised also where the socket has no more: the actor then goes on with input that it received and left
            // alone meanwhile.
            self.registration.raise(Readiness::READABLE);
        }
        flushed
    }

    /// Returns whether everything is sent.
    fn send(&mut self) -> bool {
        loop {
            if self.closed.is_some() {
                self.output = Output::default();
                return false;
            }
            let (Some(front), Some(socket)) = (self.output.front(), &mut self.socket) else {
                self.end_write_if_due();
                return true;
            };
            if !self.writable {
                return false;
            }
            match socket.write(front) {
                Ok(count) => self.output.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.closed = Some(Closed::by(&error)),
            }
        }
    }

    /// Whether more than the high-water mark waits to be sent, or did and has not fallen to the low-water
    /// mark since. [`fill`](Self::fill) reads nothing meanwhile.
    pub fn is_congested(&self) -> bool {
        self.congested || self.pending() > self.fixed.marks.high
    }

    /// Ends this side's half of the connection after the written bytes are sent: the peer sees the end of its input and
    /// may go on sending.
    pub fn shutdown_write(&mut self) {
        if self.write_end == WriteEnd::Open {
            self.write_end = WriteEnd::WhenFlushed;
            self.flush();
        }
    }

    fn end_write_if_due(&mut self) {
        if self.write_end != WriteEnd::WhenFlushed {
            return;
        }
        self.write_end = WriteEnd::Done;
        if let Some(Err(error)) = self.socket.as_ref().map(Socket::shutdown_write) {
            self.closed.get_or_insert(Closed::by(&error));
        }
    }

    /// Breaks the connection: the waiting bytes are thrown away, and nothing more is sent or read. The socket closes
    /// when the connection is dropped.
    pub fn abort(&mut self) {
        self.closed.get_or_insert(Closed::Aborted);
        self.output = Output::default();
    }

    /// Returns the reason why the connection is broken, if it is.
    pub fn closed(&self) -> Option<Closed> {
        self.closed
    }

    /// Reports an edge, as the driver does.
    #[cfg(test)]
    pub(crate) fn edge(&self, bits: Readiness) {
        self.registration.raise(bits);
    }

    /// Whether closing the socket now could destroy bytes on their way to the peer: see `linger.rs`.
    fn has_unread_input(&mut self) -> bool {
        let bits = self.registration.take();
        (self.readable || bits.has(Readiness::READABLE)) && !self.eof
    }
}

impl Input {
    /// Returns room for at most `max` bytes behind the input.
    fn room(&mut self, max: usize) -> &mut [u8] {
        if self.tail == self.bytes.len() {
            if self.head > 0 {
                self.bytes.copy_within(self.head..self.tail, 0);
                self.tail -= self.head;
                self.head = 0;
            }
            // A buffer that is half empty has room enough.
            if self.tail * 2 >= self.bytes.len() {
                let len = (self.bytes.len() * 2).max(READ_START).min(self.tail.saturating_add(max.max(1)));
                self.bytes.resize(len.max(self.bytes.len()), 0);
            }
        }
        let end = self.bytes.len().min(self.tail.saturating_add(max));
        &mut self.bytes[self.tail..end]
    }

    fn consume(&mut self, count: usize) {
        self.head += count;
        self.release_if_empty();
    }

    /// Gives a large buffer back when all input is consumed.
    fn release_if_empty(&mut self) {
        if self.head == self.tail {
            (self.head, self.tail) = (0, 0);
            if self.bytes.len() > KEEP_MAX {
                self.bytes = Vec::new();
            }
        }
    }
}

impl Output {
    fn pending(&self) -> usize {
        self.sending.len() - self.sent + self.waiting.len()
    }

    /// Returns the bytes to be sent next; `None` if nothing waits.
    fn front(&mut self) -> Option<&[u8]> {
        if self.sent == self.sending.len() {
            self.sending.clear();
            self.sent = 0;
            if self.sending.capacity() > KEEP_MAX {
                self.sending = Vec::new();
            }
            if self.waiting.is_empty() {
                return None;
            }
            std::mem::swap(&mut self.sending, &mut self.waiting);
        }
        Some(&self.sending[self.sent..])
    }

    /// Takes all waiting bytes, in one piece, and how many of them are sent already.
    fn take(&mut self) -> (Vec<u8>, usize) {
        let Output { mut sending, sent, waiting } = std::mem::take(self);
        sending.extend_from_slice(&waiting);
        (sending, sent)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let flushed = self.flush();
        let unread = self.has_unread_input();
        let Some(mut socket) = self.socket.take() else { return };
        #[cfg(any(test, feature = "testkit"))]
        if let Socket::Memory(end) = &mut socket {
            let (rest, written) = self.output.take();
            end.close(&rest[written..]);
            return;
        }
        let done = if flushed { !unread } else { self.closed.is_some() };
        if done {
            self.registration.deregister(&mut socket);
            return;
        }
        // The socket stays registered: see `Lingerers::add`. An edge before that has no owner to tell, or tells the
        // next owner of this token in vain.
        let (rest, written) = self.output.take();
        let until = Instant::now().checked_add(self.fixed.linger);
        // A linger time beyond the clock's range is a day.
        let until = until.unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400));
        let ended = self.write_end == WriteEnd::Done;
        let place = LingeringPermit::new(self.fixed.place.clone());
        self.registration.linger(Lingering { socket, rest, written, until, ended, place });
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("peer", &self.fixed.peer)
            .field("received", &self.received().len())
            .field("pending", &self.pending())
            .field("congested", &self.is_congested())
            .field("eof", &self.eof)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn input_keeps_its_bytes_when_it_moves_and_grows() {
        let mut input = Input::default();
        let mut expected: Vec<u8> = Vec::new();
        let mut next = 0u8;
        for step in 1..200usize {
            let room = input.room(step * 97);
            assert!(!room.is_empty() && room.len() <= step * 97);
            let count = room.len();
            for place in room {
                *place = next;
                expected.push(next);
                next = next.wrapping_add(1);
            }
            input.tail += count;
            let consumed = (step * 61).min(expected.len());
            input.consume(consumed);
            expected.drain(..consumed);
            assert_eq!(&input.bytes[input.head..input.tail], &expected[..]);
        }
    }

    #[test]
    fn input_has_room_behind_what_is_left_however_much_may_be_read() {
        let mut input = Input::default();
        for _ in 0..3 {
            let count = input.room(usize::MAX).len();
            assert!(count > 0, "a read into no room would look like the end of the stream");
            input.tail += count;
        }
    }

    /// A larger variant of a message would make every message of its actor as large.
    #[test]
    fn a_connection_is_small_enough_for_a_message() {
        assert!(size_of::<Connection>() <= 192, "{}", size_of::<Connection>());
    }

    #[test]
    fn output_sends_in_order_across_both_buffers() {
        let mut output = Output::default();
        output.waiting.extend_from_slice(b"abcdef");
        assert_eq!(output.front(), Some(&b"abcdef"[..]));
        output.sent = 4;
        output.waiting.extend_from_slice(b"ghi");
        assert_eq!((output.pending(), output.front()), (5, Some(&b"ef"[..])));
        assert_eq!(output.take(), (b"abcdefghi".to_vec(), 4));
        assert_eq!((output.pending(), output.front()), (0, None));
    }
}
