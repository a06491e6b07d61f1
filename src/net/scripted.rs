//! Connections and lingering sockets over a scripted socket: every read and write may be short, interrupted or "would
//! block", the peer may end its half or reset at any moment, and edges come late. Each seed is a course of events;
//! `POINTSMAN_NET_SEED=N` runs that course alone. In some of the courses the actor ends its half before the peer does,
//! or aborts. `scripted_port.rs` does the same for a listener.
//!
//! The driver's loop has no script, since mio alone can make the events that it looks at. The readiness word that it
//! shares with the owners of sockets has a loom model (`net_readiness`), and `tests/it/net.rs` runs the rest of the
//! loop on real sockets.
//!
//! The socket keeps the guarantees of the operating system: where a call got less than there is, an edge follows. So at
//! the end of each course, when the peer has read all and no edge is owed, everything must have arrived on both sides,
//! without another event that could hide a lost edge.
//!
//! Faults that were planted, and caught, each by itself:
//!
//! | in | fault |
//! |---|---|
//! | `connection.rs` | `fill` that leaves more behind does not tell the owner |
//! | | the end of congestion does not tell the owner |
//! | | a congested connection reads on |
//! | | "would block" leaves reading, or writing, possible |
//! | | `ready` forgets to flush, or that writing is possible again |
//! | | a short read means "no more" where the end follows, or where reads stop early |
//! | | the input moves to the front without its new end |
//! | | the buffer that is sent goes on where the one before it ended |
//! | | the two buffers go out in the wrong order, or from the beginning again, when the connection ends |
//! | | bytes that wait in the second buffer do not count |
//! | | the half ends before all is sent, or is taken for ended when the connection ends |
//! | | a connection that ends closes over unsent output, or over unread input |
//! | | a connection whose own half has ended reads no more, or writes on |
//! | | an aborted connection reads on, sends the waiting bytes, or lingers |
//! | `linger.rs` | a socket that yields is forgotten, or never gone on with |
//! | | "would block" is the end |
//! | | the peer is not told that no more comes |
//! | | the rest is written from its beginning again; a buffer that is written is kept |
//! | | the newest is cut first; the bytes of a closed socket still count; an ended socket stays |
//! | `readiness.rs` | a raise that finds bits tells again; a taking leaves them |
//! | `connection_permits.rs` | a place is not given back; the listener is not told |

use crate::core::actor_ref::ActorRef;
use crate::net::connection::{Connection, Marks, ReadOutcome};
use crate::net::connection_permits::{ConnectionPermit, ConnectionPermits, LingeringPermit};
use crate::net::driver::{Driver, Owner};
use crate::net::linger::{Lingerers, Lingering};
use crate::net::readiness::Readiness;
use crate::net::ready::Ready;
use crate::net::socket::Socket;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};
use mio::event::Source;
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc as StdArc;
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);
const FIRST_TOKEN: usize = 1000;
/// A loop that gets so many "would block" ignores them.
const BLOCKED_MAX: u32 = 1000;

/// SplitMix64.
pub(crate) struct Rng(pub u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// A socket and its peer.
pub(crate) struct Wire {
    rng: Rng,
    /// All calls do what they can.
    is_calm: bool,
    /// Reads may stop before the bytes that have come, without an edge behind that, as those of Unix sockets do.
    stops_early: bool,
    /// The bytes from the peer.
    coming: VecDeque<u8>,
    peer_ended: bool,
    /// Edges that the driver has not reported yet.
    edges: Readiness,
    /// The bytes that may be written before "would block".
    room: usize,
    /// Whether an edge follows when there is room.
    wants_room: bool,
    /// The bytes that the peer has got.
    gone: Vec<u8>,
    /// The peer was told that no more comes.
    we_ended: bool,
    is_reset: bool,
    is_closed: bool,
    /// The socket was closed with unread input that the driver had reported.
    closed_over_input: bool,
    /// The actor has aborted the connection.
    is_aborted: bool,
    /// The number of "would block" in a row.
    blocked: u32,
}

/// Our end of the socket.
pub(crate) struct End(pub StdArc<Mutex<Wire>>);

impl Wire {
    /// Makes a socket that has nothing to read, and room for so many bytes.
    pub(crate) fn new(rng: Rng, stops_early: bool, room: usize) -> Self {
        Self {
            rng,
            is_calm: false,
            stops_early,
            coming: VecDeque::new(),
            peer_ended: false,
            edges: Readiness::default(),
            room,
            wants_room: false,
            gone: Vec::new(),
            we_ended: false,
            is_reset: false,
            is_closed: false,
            closed_over_input: false,
            is_aborted: false,
            blocked: 0,
        }
    }

    fn edge(&mut self, mut bits: Readiness) {
        if bits.has(Readiness::READABLE) && (self.peer_ended || self.is_reset) {
            bits = bits.and(Readiness::READ_ENDS);
        }
        self.edges = self.edges.and(bits);
    }

    fn would_block(&mut self) -> io::Error {
        self.blocked += 1;
        assert!(self.blocked < BLOCKED_MAX, "it goes on although it would block");
        io::ErrorKind::WouldBlock.into()
    }

    /// Returns the bytes of a call that could have `most`; `None` is "would block".
    fn some_of(&mut self, most: usize) -> Option<usize> {
        if self.is_calm || most == 0 {
            return (most > 0).then_some(most);
        }
        match self.rng.below(6) {
            0 => None,
            1 | 2 => Some(1 + self.rng.below(most)),
            _ => Some(most),
        }
    }

    fn is_interrupted(&mut self) -> bool {
        !self.is_calm && self.rng.once_in(10)
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        assert!(!into.is_empty(), "a read into no room looks like the end");
        assert!(!self.is_aborted, "nothing is read behind an abort");
        if self.is_interrupted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.is_reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if self.coming.is_empty() && self.peer_ended {
            return Ok(0);
        }
        let Some(count) = self.some_of(into.len().min(self.coming.len())) else {
            if !self.coming.is_empty() {
                self.edge(Readiness::READABLE);
            }
            return Err(self.would_block());
        };
        self.blocked = 0;
        into.iter_mut().zip(self.coming.drain(..count)).for_each(|(place, byte)| *place = byte);
        let is_short = count < into.len() && !self.coming.is_empty();
        if is_short && !self.stops_early {
            // The edge came behind the read.
            self.edge(Readiness::READABLE);
        }
        Ok(count)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(!self.we_ended && !self.is_aborted, "nothing is written behind the end");
        if self.is_interrupted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.is_reset {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let Some(count) = self.some_of(bytes.len().min(self.room)) else {
            if self.room > 0 {
                self.edge(Readiness::WRITABLE);
            } else {
                self.wants_room = true;
            }
            return Err(self.would_block());
        };
        self.blocked = 0;
        self.room -= count;
        self.gone.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn both_have_ended(&mut self) {
        if self.peer_ended && self.we_ended {
            self.edge(Readiness::READABLE.and(Readiness::WRITABLE));
        }
    }

    // ---- the peer

    fn send(&mut self, bytes: impl IntoIterator<Item = u8>) {
        self.coming.extend(bytes);
        self.edge(Readiness::READABLE);
    }

    fn end(&mut self) {
        self.peer_ended = true;
        self.edge(Readiness::READABLE);
        self.both_have_ended();
    }

    fn make_room(&mut self, count: usize) {
        self.room = self.room.saturating_add(count);
        if std::mem::take(&mut self.wants_room) {
            self.edge(Readiness::WRITABLE);
        }
    }

    fn reset(&mut self) {
        self.is_reset = true;
        self.coming.clear();
        self.edge(Readiness::READABLE.and(Readiness::WRITABLE));
    }
}

impl End {
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        lock(&self.0).read(into)
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).write(bytes)
    }

    pub(crate) fn shutdown_write(&self) -> io::Result<()> {
        let mut wire = lock(&self.0);
        if wire.is_reset {
            return Err(io::ErrorKind::NotConnected.into());
        }
        wire.we_ended = true;
        wire.both_have_ended();
        Ok(())
    }

    pub(crate) fn stops_early(&self) -> bool {
        lock(&self.0).stops_early
    }
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("End")
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut wire = lock(&self.0);
        wire.is_closed = true;
        wire.closed_over_input = !wire.coming.is_empty() && !wire.edges.has(Readiness::READABLE);
    }
}

/// The test reports its readiness.
impl Source for End {
    fn register(&mut self, _: &Registry, _: Token, _: Interest) -> io::Result<()> {
        Ok(())
    }
    fn reregister(&mut self, _: &Registry, _: Token, _: Interest) -> io::Result<()> {
        // As with the operating system, the present readiness is reported once more.
        let mut wire = lock(&self.0);
        let bits = if wire.room > 0 { Readiness::WRITABLE } else { Readiness::default() };
        wire.edge(bits.and(Readiness::READABLE));
        Ok(())
    }
    fn deregister(&mut self, _: &Registry) -> io::Result<()> {
        Ok(())
    }
}

/// The surroundings of a course of events.
struct Stage {
    driver: StdArc<Driver>,
}

impl Stage {
    fn new() -> Self {
        let driver = Driver::new().expect("a poll");
        Self { driver }
    }
}

/// An actor and its connection, or the rest of it that lingers.
struct Course<'a> {
    stage: &'a Stage,
    wire: StdArc<Mutex<Wire>>,
    connection: Option<Connection>,
    lingerers: Lingerers,
    places: StdArc<ConnectionPermits>,
    /// How often the listener was told that there is room.
    told_of_room: StdArc<AtomicUsize>,
    /// Messages in the mailbox.
    told: StdArc<AtomicUsize>,
    rng: Rng,
    /// Decides about the next two fields alone.
    whims: Rng,
    /// The actor may end its half though the peer has not.
    may_end: bool,
    /// The actor may abort the connection.
    may_abort: bool,
    /// The bytes of a step are fewer than this.
    scale: usize,
    sent: usize,
    consumed: usize,
    written: Vec<u8>,
    seen_end: bool,
    /// The actor has ended its half: its writes are thrown away.
    we_ended: bool,
    has_aborted: bool,
    has_lingered: bool,
}

/// A connection that has failed would fail once more at its end, and abort the process.
impl Drop for Course<'_> {
    fn drop(&mut self) {
        if crate::sync::thread::panicking() {
            std::mem::forget(self.connection.take());
        }
    }
}

const MARKS: Marks = Marks { low: 20, high: 60 };

/// The byte that the peer sends at this place.
fn byte_at(place: usize) -> u8 {
    (place % 251) as u8
}

impl<'a> Course<'a> {
    fn new(stage: &'a Stage, seed: u64) -> Self {
        let mut rng = Rng(seed);
        let scale = if rng.once_in(4) { 6000 } else { 50 };
        let mut whims = Rng(!seed);
        let (may_end, may_abort) = (whims.once_in(3), whims.once_in(8));
        let wire = Wire::new(Rng(rng.next()), rng.once_in(3), rng.below(scale));
        let wire = StdArc::new(Mutex::new(wire));
        let (told, told_of_room) = (StdArc::new(AtomicUsize::new(0)), StdArc::new(AtomicUsize::new(0)));
        let counts = told.clone();
        let owner = ActorRef::from_fn(move |Ready(())| {
            counts.fetch_add(1, Ordering::Relaxed);
        });
        let places = StdArc::<ConnectionPermits>::default();
        let counts = told_of_room.clone();
        let tell = Box::new(move || {
            counts.fetch_add(1, Ordering::Relaxed);
        });
        let place = StdArc::new(ConnectionPermit::take(&places, usize::MAX, tell));
        let socket = (Socket::Scripted(End(wire.clone())), None);
        let owner = Owner::actor(owner, |ready| ready);
        let connection =
            Connection::open(socket, &stage.driver, owner, MARKS, HOUR, place).expect("nothing refuses it");
        Self {
            stage,
            wire,
            connection: Some(connection),
            lingerers: Lingerers::new(FIRST_TOKEN),
            places,
            told_of_room,
            told,
            rng,
            whims,
            may_end,
            may_abort,
            scale,
            sent: 0,
            consumed: 0,
            written: Vec::new(),
            seen_end: false,
            we_ended: false,
            has_aborted: false,
            has_lingered: false,
        }
    }

    /// The driver reports the edges that it owes.
    fn report(&mut self) {
        let edges = std::mem::take(&mut lock(&self.wire).edges);
        if !edges.is_empty() {
            match &self.connection {
                Some(connection) => connection.edge(edges),
                None => self.lingerers.progress(FIRST_TOKEN),
            }
        }
        if self.lingerers.next_deadline().is_some_and(|at| at <= Instant::now()) {
            self.lingerers.expire(Instant::now());
        }
    }

    /// The actor handles the message that it has. Returns false if there is none.
    fn turn(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        match self.told.swap(0, Ordering::Relaxed) {
            0 => return false,
            told => assert_eq!(told, 1, "one was under way already"),
        }
        connection.ready(Ready(()));
        let was_congested = connection.is_congested();
        let max = 1 + self.rng.below(self.scale);
        match connection.fill(max) {
            ReadOutcome::Read(count) => assert!(count <= max && !was_congested),
            ReadOutcome::Eof => self.seen_end = true,
            ReadOutcome::Blocked | ReadOutcome::Closed(_) => {}
        }
        while !connection.received().is_empty() && !connection.is_congested() {
            let count = 1 + self.rng.below(connection.received().len());
            let taken = connection.received()[..count].to_vec();
            let place = self.consumed;
            assert!(taken.iter().enumerate().all(|(at, byte)| *byte == byte_at(place + at)), "other bytes");
            connection.consume(count);
            self.consumed += count;
            let copies = if self.scale > 100 { 1 } else { 1 + self.rng.below(3) };
            for _ in 0..copies {
                connection.write(&taken);
                if connection.closed().is_none() && !self.we_ended {
                    self.written.extend_from_slice(&taken);
                }
            }
            assert!(connection.is_congested() || connection.pending() <= MARKS.high);
        }
        let flushed = connection.flush();
        assert_eq!(!flushed && connection.closed().is_none(), connection.pending() > 0);
        if self.seen_end && connection.received().is_empty() {
            connection.shutdown_write();
            self.we_ended = true;
        }
        true
    }

    /// The actor's work in a turn for a message of another kind.
    fn act(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        if self.may_end && self.whims.once_in(30) {
            connection.shutdown_write();
            self.we_ended = true;
        }
        if self.may_abort && self.whims.once_in(60) {
            connection.write(b"thrown away");
            lock(&self.wire).is_aborted = true;
            connection.abort();
            self.has_aborted = true;
        }
    }

    /// The actor ends.
    fn end(&mut self) {
        if self.connection.take().is_some() {
            for lingering in self.stage.driver.take_lingering() {
                self.has_lingered = true;
                self.lingerers.add(lingering, self.stage.driver.registry());
            }
        }
    }

    /// A step of the peer, the driver or the actor.
    fn step(&mut self) {
        let count = 1 + self.rng.below(self.scale);
        let choice = self.rng.below(10);
        let mut wire = lock(&self.wire);
        match choice {
            0 | 1 if !wire.peer_ended && !wire.is_reset => {
                wire.send((self.sent..self.sent + count).map(byte_at));
                self.sent += count;
            }
            2 if self.rng.once_in(10) && !wire.is_reset => wire.end(),
            3 if self.rng.once_in(60) => wire.reset(),
            4 if self.rng.once_in(20) => {
                drop(wire);
                self.end();
            }
            5 => wire.make_room(count),
            6 | 7 => {
                drop(wire);
                self.report();
            }
            _ => {
                drop(wire);
                self.act();
                self.turn();
            }
        }
    }

    /// The peer reads all, and all owed edges and messages come.
    fn settle(&mut self) {
        {
            let mut wire = lock(&self.wire);
            wire.is_calm = true;
            wire.make_room(usize::MAX);
        }
        for _ in 0..100_000 {
            self.report();
            let is_over = !self.turn() && lock(&self.wire).edges.is_empty();
            let is_late = self.lingerers.next_deadline().is_some_and(|at| at <= Instant::now());
            if is_over && !is_late {
                return;
            }
        }
        panic!("it comes to no end");
    }

    fn run(mut self) {
        for _ in 0..200 {
            self.step();
        }
        self.settle();
        let (is_reset, lingered) = (lock(&self.wire).is_reset, !self.lingerers.is_empty());
        if let Some(connection) = &mut self.connection {
            if self.has_aborted {
                assert!(connection.closed().is_some());
                assert_eq!(connection.pending(), 0);
            } else if is_reset {
                // An actor that has seen the end and has nothing to send, has no call that could fail.
                assert!(connection.closed().is_some() || self.seen_end, "it knows of the reset");
                assert_eq!(connection.pending(), 0);
            } else {
                assert_eq!(self.consumed, self.sent, "not all has come in");
                assert_eq!(connection.pending(), 0, "not all has gone out");
                assert!(!connection.is_congested());
            }
        }
        // Ended only now: the edge of the end would hide a lost edge.
        if !lock(&self.wire).peer_ended && !is_reset {
            assert!(!lock(&self.wire).is_closed || !lingered);
            lock(&self.wire).end();
            self.settle();
        }
        if self.connection.is_some() && !is_reset && !self.has_aborted {
            assert!(self.seen_end && lock(&self.wire).we_ended, "the ends of both halves");
        }
        self.end();
        self.settle();
        assert!(self.lingerers.is_empty(), "it lingers though the peer has closed");
        let wire = lock(&self.wire);
        assert!(wire.is_closed);
        assert!(self.written.starts_with(&wire.gone), "other bytes");
        if self.has_aborted {
            assert!(!self.has_lingered, "nothing is left to do");
        } else if !is_reset {
            assert!(wire.we_ended || !self.has_lingered, "the peer is told that no more comes");
            assert!(!wire.closed_over_input, "a reset would have destroyed what was sent");
            assert_eq!(wire.gone.len(), self.written.len(), "not all that was written");
        }
        assert_eq!((self.places.held(), self.places.lingering()), (0, 0));
        assert_eq!(self.told_of_room.load(Ordering::Relaxed), 1);
    }
}

/// Returns the seeds from 0 on, or the seed that the environment names.
pub(crate) fn seeds(count: u64) -> std::ops::Range<u64> {
    let only = std::env::var("POINTSMAN_NET_SEED").ok().map(|seed| seed.parse().expect("a number"));
    only.map_or(0..count, |seed| seed..seed + 1)
}

/// Names the seed of a course that fails.
pub(crate) struct Seed(pub u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if crate::sync::thread::panicking() {
            eprintln!("replay it with POINTSMAN_NET_SEED={}", self.0);
        }
    }
}

#[test]
fn everything_arrives_and_every_end_is_seen_whatever_the_socket_does() {
    const SEEDS: u64 = if cfg!(miri) { 3 } else { 1500 };
    let stage = Stage::new();
    for seed in seeds(SEEDS) {
        let seed = Seed(seed);
        Course::new(&stage, seed.0).run();
    }
}

/// Makes a course in which all calls do what they can, by steps that a test chooses.
fn calm(stage: &Stage) -> Course<'_> {
    let course = Course::new(stage, 0);
    {
        let mut wire = lock(&course.wire);
        (wire.is_calm, wire.stops_early, wire.room) = (true, false, 0);
    }
    course
}

#[test]
fn what_was_received_and_left_alone_is_gone_on_with_when_congestion_ends() {
    let stage = Stage::new();
    let mut course = calm(&stage);
    lock(&course.wire).send([1; 8]);
    course.report();
    let told = course.told.clone();
    let is_told = || told.swap(0, Ordering::Relaxed) == 1;
    assert!(is_told());
    let connection = course.connection.as_mut().expect("it has not ended");
    connection.ready(Ready(()));
    assert_eq!(connection.fill(100), ReadOutcome::Read(8));
    connection.consume(1);
    connection.write(&[2; MARKS.high + 1]);
    assert_eq!((connection.flush(), connection.is_congested(), connection.closed()), (false, true, None));
    assert!(!is_told(), "nothing can go on");
    lock(&course.wire).make_room(100);
    course.report();
    assert!(is_told());
    let connection = course.connection.as_mut().expect("it has not ended");
    connection.ready(Ready(()));
    assert_eq!((connection.pending(), connection.is_congested()), (0, false));
    assert!(is_told(), "7 bytes are left alone for ever");
    // No message comes for a congestion that goes on.
    connection.ready(Ready(()));
    connection.write(&[2; MARKS.high + 1]);
    connection.flush();
    lock(&course.wire).make_room(1);
    course.report();
    assert!(is_told());
    course.connection.as_mut().expect("it has not ended").ready(Ready(()));
    assert!(!is_told());
}

/// Makes a socket that lingers, with so many bytes to send, beside its peer.
fn lingering(
    places: &StdArc<ConnectionPermits>,
    bytes: usize,
    bytes_max: usize,
) -> (Lingering, StdArc<Mutex<Wire>>) {
    let stage = Stage::new();
    let mut course = calm(&stage);
    let wire = course.wire.clone();
    course.connection.as_mut().expect("it has not ended").write(&vec![3; bytes]);
    course.connection = None;
    let mut lingering = stage.driver.take_lingering().pop().expect("it cannot send");
    assert_eq!(lingering.rest.capacity(), bytes);
    let place = ConnectionPermit::take(places, bytes_max, Box::new(|| {}));
    lingering.place = LingeringPermit::new(StdArc::new(place));
    (lingering, wire)
}

#[test]
fn a_lingering_socket_that_yields_is_gone_on_with_at_once() {
    let (stage, places) = (Stage::new(), StdArc::default());
    let (lingering, wire) = lingering(&places, 10, 10);
    lock(&wire).send(vec![4; 1 << 20]);
    lock(&wire).make_room(10);
    let mut lingerers = Lingerers::new(FIRST_TOKEN);
    lingerers.add(lingering, stage.driver.registry());
    // The peer sends no more, so no edge comes.
    let mut left = lock(&wire).coming.len();
    assert!(left > 0, "others get their turn");
    while left > 0 {
        assert!(lingerers.next_deadline().is_some_and(|at| at <= Instant::now()), "it could go on");
        lingerers.expire(Instant::now());
        let now_left = std::mem::replace(&mut left, lock(&wire).coming.len());
        assert!(left < now_left, "it does not go on");
    }
    lingerers.expire(Instant::now());
    assert!(lingerers.next_deadline().is_some_and(|at| at > Instant::now()), "it has no more to do");
    assert!(lock(&wire).we_ended && !lingerers.is_empty());
    lock(&wire).end();
    lingerers.progress(FIRST_TOKEN);
    assert!(lingerers.is_empty() && lock(&wire).is_closed);
}

#[test]
fn the_oldest_of_those_that_linger_are_cut_until_the_others_hold_no_more_than_they_may() {
    let (stage, places, other_places) = (Stage::new(), StdArc::default(), StdArc::default());
    let mut lingerers = Lingerers::new(FIRST_TOKEN);
    let mut add = |places: &StdArc<ConnectionPermits>, bytes| {
        let (lingering, wire) = lingering(places, bytes, 100);
        lingerers.add(lingering, stage.driver.registry());
        wire
    };
    // The sockets of another listener do not count.
    let other = add(&other_places, 90);
    let wires = [40, 30, 30].map(|bytes| add(&places, bytes));
    assert_eq!((places.held(), places.cut()), (3, 0), "they hold as much as they may");
    let fourth = add(&places, 50);
    let are_closed = || wires.each_ref().map(|wire| lock(wire).is_closed);
    assert_eq!((are_closed(), places.cut()), ([true, true, false], 2));
    let alone = add(&places, 101);
    assert_eq!((are_closed(), places.cut()), ([true; 3], 5), "not even alone");
    assert!(lock(&fourth).is_closed && lock(&alone).is_closed && !lock(&other).is_closed);
    // A socket whose bytes are written holds nothing, and is not cut.
    let (lingering, wire) = lingering(&places, 100, 100);
    lock(&wire).make_room(100);
    lingerers.add(lingering, stage.driver.registry());
    let mut add = |bytes| {
        let (lingering, wire) = self::lingering(&places, bytes, 100);
        lingerers.add(lingering, stage.driver.registry());
        wire
    };
    let last = [add(50), add(50)];
    assert!(!lock(&wire).is_closed && last.iter().all(|wire| !lock(wire).is_closed));
    assert_eq!((places.held(), places.lingering(), places.cut()), (3, 3, 5));
    // Sockets whose time is over give all of it back.
    lingerers.expire(Instant::now() + 2 * HOUR);
    assert!(lingerers.is_empty());
    assert_eq!((places.held(), places.lingering(), other_places.held()), (0, 0, 0));
}
