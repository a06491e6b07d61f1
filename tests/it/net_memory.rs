//! Connections over memory: they behave as connections over sockets, in the order of the turns of a test system.

use pointsman::net::{Closed, Connection, LineFramer, ReadOutcome, Ready};
use pointsman::prelude::*;
use pointsman::testkit::{MemoryError, MemorySocket, Probe, TestSystem, memory_pair};
use std::io::{self, Read, Write};

fn pair(capacity: usize) -> (MemorySocket, MemorySocket) {
    memory_pair(capacity).expect("a capacity above 0")
}

/// The reports of an echo.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Eof,
    Closed(Closed),
    Congested,
}

/// Sends back what it gets, and tells a probe of the end.
struct Echo {
    connection: Connection,
    seen: ActorRef<Seen>,
    /// Reads so much at a time.
    read_max: usize,
    /// Ends its half with the last answer, and stays.
    stays: bool,
}

impl Echo {
    fn spawn(system: &TestSystem, socket: MemorySocket, read_max: usize, stays: bool) -> Probe<Seen> {
        let probe = system.probe();
        let seen = probe.actor_ref().clone();
        socket.spawn(system, move |connection, _| Echo { connection, seen, read_max, stays }).unwrap();
        probe
    }
}

impl Actor for Echo {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        let connection = &mut self.connection;
        connection.ready(ready);
        let outcome = connection.fill(self.read_max);
        let received = connection.received().to_vec();
        connection.consume(received.len());
        connection.write(&received);
        connection.flush();
        if connection.is_congested() {
            self.seen.tell(Seen::Congested);
        }
        match outcome {
            ReadOutcome::Read(_) | ReadOutcome::Blocked => return Ok(()),
            ReadOutcome::Eof => self.seen.tell(Seen::Eof),
            ReadOutcome::Closed(closed) => self.seen.tell(Seen::Closed(closed)),
        }
        if self.stays {
            connection.shutdown_write();
        } else {
            ctx.stop();
        }
        Ok(())
    }
}

#[test]
fn what_is_written_comes_back_and_each_half_ends_by_itself() {
    TestSystem::for_seeds(20, |system| {
        let (ours, mut peer) = pair(100);
        // Before the actor begins.
        peer.write_all(b"early ").unwrap();
        let seen = Echo::spawn(system, ours, 3, true);
        system.run_until_idle();
        peer.write_all(b"late").unwrap();
        assert_eq!(peer.read(&mut [0; 1]).map(|_| ()).map_err(|error| error.kind()), Ok(()));
        system.run_until_idle();
        assert_eq!(peer.take_received(), b"arly late");
        let nothing = peer.read(&mut [0; 1]).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        peer.write_all(b"last").unwrap();
        peer.shutdown_write();
        let refused = peer.write(b"more").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::BrokenPipe);
        seen.expect(Seen::Eof);
        assert_eq!(peer.take_received(), b"last");
        assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0, "the other half has ended, too");
        system.allow_running();
    });
}

#[test]
fn buffers_are_bounded_and_a_slow_peer_slows_the_actor() {
    TestSystem::for_seeds(20, |system| {
        let (ours, mut peer) = pair(10);
        let seen = Echo::spawn(system, ours.marks(5, 20), 8, false);
        let (mut sent, mut back, mut was_refused) = (0u8, Vec::new(), false);
        // Nothing is read from the peer's end, so all buffers fill.
        loop {
            match peer.write(&[sent]) {
                Ok(1) => sent += 1,
                Ok(_) => unreachable!("one byte was given"),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    system.run_until_idle();
                    if std::mem::replace(&mut was_refused, true) && peer.write(&[]).is_ok() {
                        match peer.write_all(&[sent]) {
                            Ok(()) => sent += 1,
                            Err(_) => break,
                        }
                    }
                }
            }
        }
        seen.expect(Seen::Congested);
        // Two buffers of the pair, and what the actor may hold: the high mark and one read.
        assert!((30..=2 * 10 + 20 + 8).contains(&sent), "{sent}");
        while back.len() < usize::from(sent) {
            let count = back.len();
            back.extend(peer.take_received());
            assert!(back.len() > count, "the actor goes on when there is room: {count} of {sent}");
            system.run_until_idle();
        }
        assert_eq!(back, (0..sent).collect::<Vec<_>>());
        drop(peer);
        system.run_until_idle();
    });
}

#[test]
fn the_last_bytes_of_an_actor_come_though_there_was_no_room_for_them() {
    struct Parting(Connection);
    impl Actor for Parting {
        type Message = Ready;
        fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
            self.0.ready(ready);
            self.0.write(&[7; 1000]);
            ctx.stop();
            Ok(())
        }
    }
    let system = TestSystem::new();
    let (ours, mut peer) = pair(10);
    ours.spawn(&system, |connection, _| Parting(connection)).unwrap();
    peer.write_all(b"go").unwrap();
    system.run_until_idle();
    // The peer does not know of the end yet, and loses nothing by a write.
    peer.write_all(b"are you there?").unwrap();
    assert_eq!(peer.take_received(), [7; 1000]);
    assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(peer.write(b"now it does").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    system.finish();
}

#[test]
fn a_reset_breaks_the_connection_and_an_abort_throws_away() {
    let system = TestSystem::new();
    let (ours, mut peer) = pair(10);
    let seen = Echo::spawn(&system, ours, 100, false);
    peer.write_all(b"lost").unwrap();
    peer.reset();
    seen.expect(Seen::Closed(Closed::Reset));
    system.run_until_idle();

    struct Aborting(Connection);
    impl Actor for Aborting {
        type Message = Ready;
        fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
            self.0.ready(ready);
            self.0.write(b"never sent");
            self.0.abort();
            ctx.stop();
            Ok(())
        }
    }
    let (ours, mut peer) = pair(10);
    ours.spawn(&system, |connection, _| Aborting(connection)).unwrap();
    peer.write_all(b"go").unwrap();
    system.run_until_idle();
    assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
    system.finish();
}

/// Counts lines, and sends each on over another connection.
struct Relay {
    from: Connection,
    to: Connection,
    lines: LineFramer,
    fault: ActorRef<String>,
}

enum RelayMsg {
    From(Ready),
    To(Ready),
}

impl Actor for Relay {
    type Message = RelayMsg;
    fn receive(&mut self, message: RelayMsg, ctx: &mut Context<RelayMsg>) -> HandlerResult {
        match message {
            RelayMsg::To(ready) => self.to.ready(ready),
            RelayMsg::From(ready) => {
                self.from.ready(ready);
                let outcome = self.from.fill(4);
                loop {
                    match self.from.next_frame(&mut self.lines) {
                        Ok(Some(line)) => {
                            self.to.write(line);
                            self.to.write(b"\n");
                        }
                        Ok(None) => break,
                        Err(error) => {
                            self.fault.tell(error.to_string());
                            ctx.stop();
                            break;
                        }
                    }
                }
                if matches!(outcome, ReadOutcome::Eof | ReadOutcome::Closed(_)) {
                    ctx.stop();
                }
            }
        }
        self.to.flush();
        Ok(())
    }
}

/// A relay between two pairs; returns the ends of the test, and hears of its fault.
fn relay(system: &TestSystem) -> (MemorySocket, MemorySocket, Probe<String>) {
    let ((from, source), (to, sink)) = (pair(16), pair(16));
    let probe = system.probe();
    let fault = probe.actor_ref().clone();
    let mut ends = Some((from, to));
    system
        .actor("relay")
        .on_failure(Strategy::stop())
        .spawn_with(move |ctx| {
            let (from, to) = ends.take().ok_or_else(|| Failure::msg("made once"))?;
            let (from, to) = (from.open_as(ctx, RelayMsg::From), to.open_as(ctx, RelayMsg::To));
            let lines = LineFramer::new(20)?;
            Ok::<_, Failure>(Relay { from, to, lines, fault: fault.clone() })
        })
        .unwrap();
    (source, sink, probe)
}

#[test]
fn an_actor_relays_lines_between_two_connections_one_byte_at_a_time() {
    TestSystem::for_seeds(20, |system| {
        let (mut source, mut sink, _) = relay(system);
        let mut out = Vec::new();
        for byte in b"first\r\nsecond\n\nfourth line is long\nthe rest" {
            source.write_all(&[*byte]).unwrap();
            system.run_until_idle();
            out.extend(sink.take_received());
        }
        drop(source);
        system.run_until_idle();
        out.extend(sink.take_received());
        assert_eq!(out, b"first\nsecond\n\nfourth line is long\nthe rest\n");
    });
}

#[test]
fn a_line_that_is_too_long_is_told_with_its_place() {
    let system = TestSystem::new();
    let (mut source, mut sink, fault) = relay(&system);
    source.write_all(b"short\n").unwrap();
    system.run_until_idle();
    for _ in 0..3 {
        let _ = source.write(&[b'x'; 10]);
        system.run_until_idle();
    }
    let text = fault.take();
    assert!(text.contains("the line at byte 6 has more than the 20 bytes"), "{text}");
    assert_eq!(sink.take_received(), b"short\n");
    system.finish();
}

#[test]
fn the_same_seed_takes_the_same_course() {
    let course = |seed| {
        let system = TestSystem::with_seed(seed);
        let (mut source, mut sink, _fault) = relay(&system);
        source.write_all(b"a line\nand").unwrap();
        system.run_until_idle();
        let _ = sink.take_received();
        drop(source);
        system.run_until_idle();
        let trace = system.trace();
        system.finish();
        trace
    };
    assert_eq!(course(7), course(7));
}

#[test]
fn an_actor_that_speaks_first_gets_a_ready_though_its_peer_is_silent() {
    struct Greeter(Connection);
    impl Actor for Greeter {
        type Message = Ready;
        fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
            self.0.ready(ready);
            self.0.write(b"welcome");
            ctx.stop();
            Ok(())
        }
    }
    let system = TestSystem::new();
    let (ours, mut peer) = pair(10);
    ours.spawn(&system, |connection, _| Greeter(connection)).unwrap();
    system.run_until_idle();
    assert_eq!(peer.take_received(), b"welcome");
    system.finish();
}

#[test]
fn a_pair_that_could_hold_nothing_is_refused() {
    let error = memory_pair(0).unwrap_err();
    assert_eq!(error, MemoryError::ZeroCapacity);
    assert!(error.to_string().contains("at least 1"), "{error}");
}
