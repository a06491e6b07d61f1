//! Lingering sockets: they send the last bytes of an ended actor.
//!
//! An actor that has stopped takes no more messages, so its connection gives the unsent bytes to the driver. The driver
//! goes on in three steps until a deadline: it writes the rest; it tells the peer that no more will come; it reads and
//! throws away the peer's bytes, until the peer closes. The third step is there because closing a TCP socket with
//! unread input makes the kernel send a reset, which can destroy bytes that are still on their way to the peer.
//!
//! The unwritten bytes of all lingering sockets of a listener have a bound. Beyond the bound the oldest sockets are
//! closed, and a warning says so whenever their count has doubled.

use crate::net::connection_permits::LingeringPermit;
use crate::net::socket::Socket;
use crate::util::panic::quietly;
use mio::{Interest, Registry, Token};
use slab::Slab;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Instant;

/// The number of reads that are thrown away before other sockets get their turn.
const READS_MAX: usize = 16;
const SCRATCH_LEN: usize = 16 * 1024;
/// The bound for the bytes that the lingering sockets of a listener hold together.
pub(super) const LINGER_BYTES_DEFAULT: usize = 64 << 20;

/// A socket whose actor has ended.
pub(crate) struct Lingering {
    pub socket: Socket,
    pub rest: Vec<u8>,
    /// The number of bytes of `rest` that are written.
    pub written: usize,
    /// The socket is closed then in any case.
    pub until: Instant,
    /// Whether the peer has been told that no more comes.
    pub ended: bool,
    /// Given back when the socket is closed: so the field stands behind the socket.
    pub place: LingeringPermit,
}

/// The progress of a lingering socket.
#[derive(PartialEq, Eq)]
enum Progress {
    Finished,
    Waits,
    /// The socket could go on at once.
    Yields,
}

impl Lingering {
    fn progress(&mut self, scratch: &mut [u8]) -> Progress {
        while self.written < self.rest.len() {
            match self.socket.write(&self.rest[self.written..]) {
                Ok(0) => return Progress::Finished,
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Progress::Waits,
                Err(_) => return Progress::Finished,
            }
        }
        // The rest is a wait for the peer, which needs no memory.
        (self.rest, self.written) = (Vec::new(), 0);
        if !self.ended {
            self.ended = true;
            if self.socket.shutdown_write().is_err() {
                return Progress::Finished;
            }
        }
        for _ in 0..READS_MAX {
            match self.socket.read(scratch) {
                Ok(0) => return Progress::Finished,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Progress::Waits,
                Err(_) => return Progress::Finished,
            }
        }
        Progress::Yields
    }
}

/// All lingering sockets; touched by the driver's thread only.
pub(crate) struct Lingerers {
    sockets: Slab<Entry>,
    /// The bytes that the sockets of each listener hold, by
    /// [`ConnectionPermit::listener`](super::connection_permits::ConnectionPermit::listener); listeners whose sockets
    /// hold nothing are absent.
    holdings: HashMap<usize, Holdings>,
    /// The token of the first socket; the others follow.
    first_token: usize,
    /// The number of the next socket.
    next_number: u64,
    /// No deadline comes before this.
    next_deadline: Option<Instant>,
    /// The sockets that could go on at once.
    eager: Vec<usize>,
    scratch: Box<[u8]>,
}

struct Entry {
    lingering: Lingering,
    /// The number of the socket; numbers grow.
    number: u64,
    /// The bytes of its buffer that its listener's holdings count.
    held: usize,
}

/// The bytes that the sockets of a listener hold.
#[derive(Default)]
struct Holdings {
    bytes: usize,
    /// The keys of the sockets that hold bytes, the oldest first.
    by_age: BTreeMap<u64, usize>,
}

impl Lingerers {
    pub(crate) fn new(first_token: usize) -> Self {
        Self {
            sockets: Slab::new(),
            holdings: HashMap::new(),
            first_token,
            next_number: 0,
            next_deadline: None,
            eager: Vec::new(),
            // Most systems never need it.
            scratch: Box::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Returns the time when work is due even if no socket becomes ready.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        if self.eager.is_empty() { self.next_deadline } else { Some(Instant::now()) }
    }

    /// Takes in a socket that the driver watches for an actor that has ended, and does at once as much as possible. If
    /// the sockets of its listener hold too much then, the oldest are closed.
    pub(crate) fn add(&mut self, mut lingering: Lingering, registry: &Registry) {
        let slot = self.sockets.vacant_entry();
        let (key, token) = (slot.key(), Token(self.first_token + slot.key()));
        // Changes the token of the existing registration: a new registration could be refused, where there are too
        // many, and the last bytes would be lost. The change reports the present state as an edge, so nothing is missed
        // between.
        let interest = Interest::READABLE | Interest::WRITABLE;
        if registry.reregister(&mut lingering.socket, token, interest).is_err() {
            return;
        }
        let sooner = self.next_deadline.map_or(lingering.until, |other| other.min(lingering.until));
        self.next_deadline = Some(sooner);
        let (listener, bytes_max) = (lingering.place.listener(), lingering.place.linger_bytes());
        let (number, held) = (self.next_number, lingering.rest.capacity());
        self.next_number += 1;
        slot.insert(Entry { lingering, number, held });
        if held > 0 {
            let holdings = self.holdings.entry(listener).or_default();
            holdings.bytes += held;
            holdings.by_age.insert(number, key);
        }
        self.send_more(key);
        self.cut(listener, bytes_max);
    }

    /// Closes the oldest sockets of a listener until the others hold no more than they may.
    fn cut(&mut self, listener: usize, bytes_max: usize) {
        while let Some(holdings) = self.holdings.get(&listener).filter(|holdings| holdings.bytes > bytes_max)
        {
            let Some((_, &key)) = holdings.by_age.first_key_value() else { return };
            let place = &self.sockets[key].lingering.place;
            let (places, count) = (place.places().clone(), place.count_cut());
            self.remove(key);
            if count.is_power_of_two() {
                // The logger is code of the application.
                quietly(|| {
                    log::warn!(
                        "{}: connections closed before their last bytes were sent, {count} so far: those that \
                         lingered held more than {bytes_max} bytes together; shorten `linger`, or raise a \
                         listener's `linger_bytes`",
                        places.label()
                    );
                });
            }
        }
    }

    /// The socket of this token is ready.
    pub(crate) fn progress(&mut self, token: usize) {
        self.send_more(token - self.first_token);
    }

    fn send_more(&mut self, key: usize) {
        if self.scratch.is_empty() {
            self.scratch = vec![0; SCRATCH_LEN].into();
        }
        let Some(entry) = self.sockets.get_mut(key) else { return };
        match entry.lingering.progress(&mut self.scratch) {
            Progress::Finished => return self.remove(key),
            Progress::Waits => {}
            Progress::Yields => self.eager.push(key),
        }
        if entry.lingering.rest.capacity() == 0 {
            self.holds_nothing(key);
        }
    }

    /// The socket of this key has given its buffer back.
    fn holds_nothing(&mut self, key: usize) {
        let Entry { lingering, number, held } = &mut self.sockets[key];
        let listener = lingering.place.listener();
        if let (1.., Some(holdings)) = (*held, self.holdings.get_mut(&listener)) {
            holdings.bytes -= std::mem::take(held);
            holdings.by_age.remove(number);
            if holdings.by_age.is_empty() {
                self.holdings.remove(&listener);
            }
        }
    }

    /// Closes a socket, which ends its registration.
    fn remove(&mut self, key: usize) {
        self.holds_nothing(key);
        drop(self.sockets.remove(key));
    }

    /// Goes on with the sockets that yielded, and closes those whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        for key in std::mem::take(&mut self.eager) {
            self.send_more(key);
        }
        if self.next_deadline.is_some_and(|at| now >= at) {
            let over = self.sockets.iter().filter(|(_, entry)| entry.lingering.until <= now);
            let over: Vec<usize> = over.map(|(key, _)| key).collect();
            over.into_iter().for_each(|key| self.remove(key));
            self.next_deadline = self.sockets.iter().map(|(_, entry)| entry.lingering.until).min();
        }
    }
}

#[cfg(all(test, unix, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::net::connection_permits::ConnectionPermit;
    use std::io::Read;
    use std::sync::Arc as StdArc;
    use std::time::Duration;

    #[test]
    fn a_socket_goes_on_under_the_watch_that_it_had() {
        let poll = mio::Poll::new().unwrap();
        let (ours, mut peer) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut socket = Socket::Unix(mio::net::UnixStream::from_std(ours));
        // Registered as a connection leaves it.
        poll.registry().register(&mut socket, Token(0), Interest::READABLE).unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        let place = LingeringPermit::new(StdArc::new(ConnectionPermit::take(
            &StdArc::default(),
            100,
            Box::new(|| {}),
        )));
        let rest = b"last words".to_vec();
        let lingering = Lingering { socket, rest, written: 5, until, ended: false, place };
        let mut lingerers = Lingerers::new(1);
        lingerers.add(lingering, poll.registry());
        let patience = Duration::from_secs(5);
        peer.set_read_timeout(Some(patience)).unwrap();
        let mut words = String::new();
        peer.read_to_string(&mut words).unwrap();
        assert_eq!(words, "words");
        assert!(!lingerers.is_empty(), "the peer has not closed");
        drop(peer);
        let (mut poll, mut events) = (poll, mio::Events::with_capacity(8));
        while !lingerers.is_empty() {
            poll.poll(&mut events, Some(patience)).unwrap();
            assert!(!events.is_empty(), "its end is not told");
            for event in &events {
                assert_eq!(event.token(), Token(1));
                lingerers.progress(1);
            }
        }
    }
}
