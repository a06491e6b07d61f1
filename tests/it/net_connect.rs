//! Outgoing connections: how they begin, and each way in which they fail.

use pointsman::Ledger;
use pointsman::net::{Closed, ConnectError, Connection, ReadOutcome, Ready, SocketAddress};
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

/// The events of a caller.
#[derive(Debug)]
enum Event {
    Connected,
    Failed(ConnectError),
    Refused(ConnectError),
    Received(Vec<u8>),
    Ended,
    Closed(Closed),
    Stopped,
}

enum CallerMsg {
    Connected(Result<Connection, ConnectError>),
    Ready(Ready),
    Write(Vec<u8>),
    /// Ends its own half.
    End,
}

impl From<Ready> for CallerMsg {
    fn from(ready: Ready) -> Self {
        CallerMsg::Ready(ready)
    }
}

/// Connects when it starts, and tells all that happens.
struct Caller {
    address: SocketAddress,
    within: Duration,
    events: Sender<Event>,
    connection: Option<Connection>,
    /// Connects when it stops, too.
    calls_at_the_end: bool,
}

impl Caller {
    fn spawn(
        system: &System,
        address: &SocketAddress,
        within: Duration,
    ) -> (ActorRef<CallerMsg>, Receiver<Event>) {
        let (events, told) = mpsc::channel();
        let address = address.clone();
        let make = move || Caller {
            address: address.clone(),
            within,
            events: events.clone(),
            connection: None,
            calls_at_the_end: false,
        };
        (system.spawn(make).unwrap(), told)
    }

    fn call(&self, ctx: &Context<CallerMsg>) {
        let begun = ctx.connect(self.address.clone()).within(self.within).start(CallerMsg::Connected);
        if let Err(error) = begun {
            self.tell(Event::Refused(error));
        }
    }

    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

impl Actor for Caller {
    type Message = CallerMsg;

    fn started(&mut self, ctx: &mut Context<CallerMsg>) -> HandlerResult {
        self.call(ctx);
        Ok(())
    }

    fn receive(&mut self, message: CallerMsg, _: &mut Context<CallerMsg>) -> HandlerResult {
        match message {
            CallerMsg::Connected(Ok(connection)) => {
                self.connection = Some(connection);
                self.tell(Event::Connected);
            }
            CallerMsg::Connected(Err(error)) => self.tell(Event::Failed(error)),
            CallerMsg::Ready(ready) => {
                let connection = self.connection.as_mut().expect("the connection comes before it is ready");
                connection.ready(ready);
                let outcome = connection.fill(64 * 1024);
                let received = connection.received().to_vec();
                connection.consume(received.len());
                match outcome {
                    ReadOutcome::Read(_) => self.tell(Event::Received(received)),
                    ReadOutcome::Blocked => {}
                    ReadOutcome::Eof => self.tell(Event::Ended),
                    ReadOutcome::Closed(closed) => self.tell(Event::Closed(closed)),
                }
            }
            CallerMsg::Write(bytes) => {
                let connection = self.connection.as_mut().expect("it is connected");
                connection.write(&bytes);
                connection.flush();
            }
            CallerMsg::End => self.connection.as_mut().expect("it is connected").shutdown_write(),
        }
        Ok(())
    }

    fn stopped(&mut self, ctx: &mut Context<CallerMsg>) {
        if self.calls_at_the_end {
            self.call(ctx);
        }
        self.tell(Event::Stopped);
    }
}

fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(LONG).expect("something happens")
}

#[track_caller]
fn connects(events: &Receiver<Event>) {
    let event = next(events);
    assert!(matches!(event, Event::Connected), "{event:?}");
}

#[track_caller]
fn fails(events: &Receiver<Event>) -> ConnectError {
    match next(events) {
        Event::Failed(error) => error,
        event => panic!("{event:?}"),
    }
}

/// Waits for the caller's end. The kernel may report the end of both halves apart, so the caller may find the end of
/// what it reads twice.
#[track_caller]
fn stops(events: &Receiver<Event>) {
    loop {
        match next(events) {
            Event::Ended => {}
            Event::Stopped => return,
            event => panic!("{event:?}"),
        }
    }
}

/// Receives so many bytes.
fn receives(events: &Receiver<Event>, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < count {
        match next(events) {
            Event::Received(bytes) => all.extend(bytes),
            event => panic!("{event:?} behind {} bytes", all.len()),
        }
    }
    all
}

fn ends_balanced(system: System) -> Ledger {
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
    ledger
}

fn wait_for(seen: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !seen() {
        assert!(began.elapsed() < LONG, "it never comes");
        std::thread::yield_now();
    }
}

fn socket_path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("pointsman-connect-{name}-{}", std::process::id()))
}

/// Sends back what it gets.
struct Echo(Connection);

impl Actor for Echo {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        let Echo(connection) = self;
        connection.ready(ready);
        let outcome = connection.fill(64 * 1024);
        let received = connection.received().to_vec();
        connection.consume(received.len());
        connection.write(&received);
        connection.flush();
        if matches!(outcome, ReadOutcome::Eof | ReadOutcome::Closed(_)) {
            ctx.stop();
        }
        Ok(())
    }
}

#[test]
fn a_connection_that_was_asked_for_behaves_as_an_accepted_one() {
    let system = System::builder("connect").build().unwrap();
    let path = socket_path("echo");
    let tcp = system.listener("tcp", SocketAddress::tcp("127.0.0.1:0")).spawn(|it, _| Echo(it)).unwrap();
    let _unix = system.listener("unix", SocketAddress::unix(&path)).spawn(|it, _| Echo(it)).unwrap();
    let port = tcp.local_addr().unwrap().port();
    let addresses = [
        SocketAddress::tcp(format!("127.0.0.1:{port}")),
        // Looked up; the listener may be at one of several addresses.
        SocketAddress::tcp(format!("localhost:{port}")),
        SocketAddress::unix(&path),
    ];
    let large: Vec<u8> = (0..200_000).map(|place: u32| (place % 251) as u8).collect();
    for address in &addresses {
        let (caller, events) = Caller::spawn(&system, address, LONG);
        connects(&events);
        caller.tell(CallerMsg::Write(b"hello".to_vec()));
        assert_eq!(receives(&events, 5), b"hello");
        caller.tell(CallerMsg::Write(large.clone()));
        assert!(receives(&events, large.len()) == large);
        caller.tell(CallerMsg::End);
        assert!(matches!(next(&events), Event::Ended));
        caller.stop();
        stops(&events);
    }
    let counts = system.outgoing_connections();
    assert_eq!((counts.connecting, counts.connected, counts.failed), (0, 3, 0));
    wait_for(|| system.outgoing_connections().connections == 0);
    ends_balanced(system);
}

#[test]
fn the_connection_comes_before_its_first_ready_though_the_peer_speaks_first() {
    let system = System::builder("connect").build().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = SocketAddress::from(server.local_addr().unwrap());
    let greeter = std::thread::spawn(move || {
        for _ in 0..200 {
            let (mut peer, _) = server.accept().unwrap();
            peer.write_all(b"welcome").unwrap();
        }
    });
    for _ in 0..200 {
        let (caller, events) = Caller::spawn(&system, &address, LONG);
        connects(&events);
        assert_eq!(receives(&events, 7), b"welcome");
        assert!(matches!(next(&events), Event::Ended));
        caller.stop();
    }
    greeter.join().unwrap();
    ends_balanced(system);
}

#[test]
fn a_peer_that_refuses_is_a_typed_error() {
    let system = System::builder("connect").build().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = server.local_addr().unwrap();
    drop(server);
    let (_, events) = Caller::spawn(&system, &addr.into(), LONG);
    let error = fails(&events);
    assert_eq!(error.kind(), Some(io::ErrorKind::ConnectionRefused));
    assert!(matches!(&error, ConnectError::Failed { tried: Some(tried), .. } if *tried == addr), "{error:?}");
    assert!(error.to_string().starts_with(&format!("cannot connect to {addr}: ")), "{error}");
    assert_eq!(system.outgoing_connections().failed, 1);
    ends_balanced(system);
}

#[test]
fn a_path_without_a_listener_is_a_typed_error() {
    let system = System::builder("connect").build().unwrap();
    let (missing, file, datagrams) = (socket_path("missing"), socket_path("file"), socket_path("datagrams"));
    std::fs::write(&file, "no socket").unwrap();
    let _other_kind = std::os::unix::net::UnixDatagram::bind(&datagrams).unwrap();
    let kinds = [
        (&missing, Some(io::ErrorKind::NotFound)),
        (&file, Some(io::ErrorKind::ConnectionRefused)),
        // The kinds of sockets differ; `std` has no name for that error.
        (&datagrams, None),
    ];
    for (path, kind) in kinds {
        let (_, events) = Caller::spawn(&system, &SocketAddress::unix(path), LONG);
        let error = fails(&events);
        assert!(matches!(&error, ConnectError::Failed { tried: None, .. }), "{error:?}");
        assert!(kind.is_none() || error.kind() == kind, "{error:?}");
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::remove_file(&datagrams).unwrap();
    ends_balanced(system);
}

#[test]
fn a_name_that_does_not_resolve_is_a_typed_error() {
    let system = System::builder("connect").build().unwrap();
    // Reserved: no such name exists.
    let address = SocketAddress::tcp("no-such-host.invalid:80");
    let (_, events) = Caller::spawn(&system, &address, LONG * 10);
    let error = events.recv_timeout(LONG * 10).expect("an outcome");
    assert!(
        matches!(&error, Event::Failed(ConnectError::Resolve { address: of, .. }) if *of == address),
        "{error:?}"
    );
    ends_balanced(system);
}

#[test]
fn what_is_no_host_and_port_is_refused_before_a_look_up() {
    let system = System::builder("connect").build().unwrap();
    let texts = [
        "",
        "host",
        "host:",
        "host:0",
        ":80",
        "a b:80",
        "host:65536",
        "host:+80",
        "::1:80",
        "/run/s:80",
        "http://a:80",
        "127.0.0.1:0",
        "[::1]:0",
    ];
    for text in texts {
        let (_, events) = Caller::spawn(&system, &SocketAddress::tcp(text), LONG);
        let error = fails(&events);
        assert!(matches!(error, ConnectError::Malformed { .. }), "{text:?}: {error:?}");
        assert!(error.to_string().contains("host:port"), "{error}");
    }
    ends_balanced(system);
}

/// A port whose queue is full: peers that connect get no answer.
#[cfg(target_os = "linux")]
struct Silent {
    server: TcpListener,
    _first: TcpStream,
}

#[cfg(target_os = "linux")]
impl Silent {
    fn new() -> Self {
        use std::os::fd::AsRawFd;
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::listen(server.as_raw_fd(), 0) }, 0);
        let first = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        Silent { server, _first: first }
    }

    fn addr(&self) -> SocketAddr {
        self.server.local_addr().unwrap()
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_that_passes_is_a_typed_error_and_the_actor_works_meanwhile() {
    let clock = ManualClock::new();
    let system = System::builder("connect").clock(clock.clone()).build().unwrap();
    let silent = Silent::new();
    let (_, events) = Caller::spawn(&system, &silent.addr().into(), 3 * SECOND);
    wait_for(|| system.outgoing_connections().connecting == 1);
    clock.advance(2 * SECOND);
    // A second caller needs no answer of the first.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_, others) = Caller::spawn(&system, &server.local_addr().unwrap().into(), LONG);
    connects(&others);
    assert!(events.try_recv().is_err(), "a second is left");
    clock.advance(SECOND);
    let error = fails(&events);
    assert!(
        matches!(error, ConnectError::TimedOut { limit, resolving: false, .. } if limit == 3 * SECOND),
        "{error:?}"
    );
    assert_eq!(error.kind(), Some(io::ErrorKind::TimedOut));
    let counts = system.outgoing_connections();
    assert_eq!((counts.connecting, counts.connected, counts.failed, counts.connections), (0, 1, 1, 1));
    ends_balanced(system);
}

#[cfg(target_os = "linux")]
#[test]
fn a_unix_socket_without_room_is_tried_again_until_it_has_room() {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};
    let clock = ManualClock::new();
    let system = System::builder("connect").clock(clock.clone()).build().unwrap();
    let path = socket_path("narrow");
    let server = UnixListener::bind(&path).unwrap();
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::listen(server.as_raw_fd(), 0) }, 0);
    let _first = UnixStream::connect(&path).unwrap();
    let (_, late) = Caller::spawn(&system, &SocketAddress::unix(&path), SECOND / 2);
    let (caller, events) = Caller::spawn(&system, &SocketAddress::unix(&path), 10 * SECOND);
    wait_for(|| system.outgoing_connections().connecting == 2);
    clock.advance(SECOND);
    let error = fails(&late);
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error:?}");
    assert!(events.try_recv().is_err(), "there is no room yet");
    let _ = server.accept().unwrap();
    let event = loop {
        clock.advance(Duration::from_millis(10));
        match events.try_recv() {
            Ok(event) => break event,
            Err(_) => std::thread::yield_now(),
        }
    };
    assert!(matches!(event, Event::Connected), "{event:?}");
    let (mut peer, _) = server.accept().unwrap();
    caller.tell(CallerMsg::Write(b"hello".to_vec()));
    let mut greeting = [0; 5];
    peer.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"hello");
    std::fs::remove_file(&path).unwrap();
    ends_balanced(system);
}

#[cfg(target_os = "linux")]
#[test]
fn an_attempt_ends_with_the_actor_that_asked_and_no_message_is_lost() {
    let system = System::builder("connect").build().unwrap();
    let silent = Silent::new();
    let (caller, events) = Caller::spawn(&system, &silent.addr().into(), Duration::MAX);
    wait_for(|| system.outgoing_connections().connecting == 1);
    caller.stop();
    assert!(matches!(next(&events), Event::Stopped));
    wait_for(|| system.outgoing_connections().connecting == 0);
    let counts = system.outgoing_connections();
    assert_eq!((counts.connected, counts.failed, counts.connections), (0, 0, 0));
    assert_eq!(ends_balanced(system).dead_lettered, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_system_that_ends_while_connecting_does_not_wait_for_the_peer() {
    let system = System::builder("connect").build().unwrap();
    let silent = Silent::new();
    let (_, events) = Caller::spawn(&system, &silent.addr().into(), Duration::MAX);
    wait_for(|| system.outgoing_connections().connecting == 1);
    assert_eq!(ends_balanced(system).dead_lettered, 0);
    assert!(matches!(next(&events), Event::Stopped));
    assert!(events.try_recv().is_err(), "no message comes behind its end");
}

#[test]
fn an_attempt_that_an_actor_begins_in_its_last_hook_ends_with_it() {
    let system = System::builder("connect").build().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = SocketAddress::from(server.local_addr().unwrap());
    let (events, told) = mpsc::channel();
    system
        .spawn(move || Caller {
            address: address.clone(),
            within: LONG,
            events: events.clone(),
            connection: None,
            calls_at_the_end: true,
        })
        .unwrap();
    connects(&told);
    ends_balanced(system);
    assert!(matches!(next(&told), Event::Stopped | Event::Refused(ConnectError::Spawn(_))));
}

#[test]
fn a_reset_after_the_connection_has_a_reason() {
    let system = System::builder("connect").build().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (caller, events) = Caller::spawn(&system, &server.local_addr().unwrap().into(), LONG);
    connects(&events);
    let (peer, _) = server.accept().unwrap();
    caller.tell(CallerMsg::Write(b"unread".to_vec()));
    let mut first = [0];
    (&peer).read_exact(&mut first).unwrap();
    // Closed over unread input.
    drop(peer);
    assert!(matches!(next(&events), Event::Closed(Closed::Reset)));
    ends_balanced(system);
}

/// An actor whose mailbox is full, and two connections that it tells apart.
struct Narrow {
    address: SocketAddress,
    inside: Option<(Sender<()>, Receiver<()>)>,
    told: Sender<&'static str>,
    first: Option<Connection>,
    second: Option<Connection>,
}

enum NarrowMsg {
    Block,
    First(Result<Connection, ConnectError>),
    FirstReady(Ready),
    Second(Result<Connection, ConnectError>),
    SecondReady(Ready),
}

impl Actor for Narrow {
    type Message = NarrowMsg;

    fn mailbox() -> Option<Mailbox> {
        Some(Mailbox::bounded(1).on_full(OverflowPolicy::Reject))
    }

    fn receive(&mut self, message: NarrowMsg, ctx: &mut Context<NarrowMsg>) -> HandlerResult {
        match message {
            NarrowMsg::Block => {
                ctx.connect(self.address.clone()).start_as(NarrowMsg::FirstReady, NarrowMsg::First)?;
                ctx.connect(self.address.clone()).start_as(NarrowMsg::SecondReady, NarrowMsg::Second)?;
                if let Some((inside, release)) = self.inside.take() {
                    inside.send(())?;
                    release.recv()?;
                }
            }
            NarrowMsg::First(connected) => self.first = Some(connected?),
            NarrowMsg::Second(connected) => self.second = Some(connected?),
            NarrowMsg::FirstReady(ready) => {
                self.first.as_mut().expect("it is connected").ready(ready);
                self.told.send("first")?;
            }
            NarrowMsg::SecondReady(ready) => {
                self.second.as_mut().expect("it is connected").ready(ready);
                self.told.send("second")?;
            }
        }
        Ok(())
    }
}

#[test]
fn an_actor_gets_its_connections_though_its_mailbox_is_full_and_tells_them_apart() {
    let system = System::builder("connect")
        .dispatcher("blocking", Dispatcher::blocking().thread_range(1..=1))
        .build()
        .unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = SocketAddress::from(server.local_addr().unwrap());
    let ((inside, entered), (release, released)) = (mpsc::channel(), mpsc::channel());
    let (told, hears) = mpsc::channel();
    let inside = Mutex::new(Some((inside, released)));
    let narrow = system
        .actor("narrow")
        .dispatcher("blocking")
        .spawn(move || Narrow {
            address: address.clone(),
            inside: inside.lock().unwrap().take(),
            told: told.clone(),
            first: None,
            second: None,
        })
        .unwrap();
    narrow.tell(NarrowMsg::Block);
    entered.recv_timeout(LONG).unwrap();
    wait_for(|| system.outgoing_connections().connected == 2);
    release.send(()).unwrap();
    // A connection may become ready twice before the other does once.
    let mut heard = BTreeSet::new();
    while heard.len() < 2 {
        heard.insert(hears.recv_timeout(LONG).unwrap());
    }
    assert!(heard.iter().eq(["first", "second"].iter()), "{heard:?}");
    ends_balanced(system);
}

#[test]
fn two_hundred_connections_at_once() {
    let system = System::builder("connect").build().unwrap();
    let echo = system.listener("echo", SocketAddress::tcp("127.0.0.1:0")).spawn(|it, _| Echo(it)).unwrap();
    let address = SocketAddress::from(echo.local_addr().unwrap());
    let callers: Vec<_> = (0..200).map(|_| Caller::spawn(&system, &address, LONG)).collect();
    let bytes = Arc::new(AtomicUsize::new(0));
    for (caller, events) in &callers {
        connects(events);
        caller.tell(CallerMsg::Write(vec![7; 1000]));
    }
    for (_, events) in &callers {
        bytes.fetch_add(receives(events, 1000).len(), Ordering::Relaxed);
    }
    assert_eq!((bytes.load(Ordering::Relaxed), echo.accepted()), (200_000, 200));
    assert_eq!(system.outgoing_connections().connections, 200);
    ends_balanced(system);
}
