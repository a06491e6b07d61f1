//! Sockets: connections, back-pressure, the several ways to end, and what the operating system refuses.

use pointsman::SpawnError;
use pointsman::net::{Closed, Connection, ListenError, ListenerSettings, ReadOutcome, Ready, SocketAddress};
use pointsman::prelude::*;
use pointsman::settings::Deployment;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);
const READ_MAX: usize = 64 * 1024;

fn local() -> SocketAddress {
    SocketAddress::tcp("127.0.0.1:0")
}

fn ends_balanced(system: System) {
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
}

type Hears = Box<dyn FnMut(&[u8]) + Send>;

/// Sends back what it gets.
struct Echo {
    connection: Connection,
    /// The most that ever waited to be sent.
    most: Arc<AtomicUsize>,
    /// Told once when the connection becomes congested.
    congested: Option<Sender<()>>,
    /// Hears what comes before it goes back.
    hears: Option<Hears>,
}

impl Echo {
    fn new(connection: Connection) -> Self {
        Self { connection, most: Arc::default(), congested: None, hears: None }
    }
}

impl Actor for Echo {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        let connection = &mut self.connection;
        connection.ready(ready);
        match connection.fill(READ_MAX) {
            ReadOutcome::Read(count) => {
                let received = connection.received().to_vec();
                assert_eq!(received.len(), count);
                connection.consume(count);
                self.hears.iter_mut().for_each(|hears| hears(&received));
                connection.write(&received);
            }
            ReadOutcome::Blocked => {}
            ReadOutcome::Eof if !connection.flush() && connection.closed().is_none() => {}
            ReadOutcome::Eof | ReadOutcome::Closed(_) => ctx.stop(),
        }
        self.most.fetch_max(connection.pending(), Ordering::Relaxed);
        connection.flush();
        if connection.is_congested() {
            if let Some(congested) = self.congested.take() {
                congested.send(()).unwrap();
            }
        }
        Ok(())
    }
}

fn echoes(client: &mut (impl Read + Write), bytes: &[u8]) {
    client.write_all(bytes).unwrap();
    let mut back = vec![0; bytes.len()];
    client.read_exact(&mut back).unwrap();
    assert_eq!(back, bytes);
}

fn socket_path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("pointsman-{name}-{}", std::process::id()))
}

#[test]
fn echo_over_tcp_and_unix() {
    let system = System::builder("net").build().unwrap();
    let path = socket_path("echo");
    let tcp = system.listener("tcp", local()).spawn(|connection, _| Echo::new(connection)).unwrap();
    let unix = system
        .listener("unix", SocketAddress::unix(&path))
        .spawn(|connection, _| Echo::new(connection))
        .unwrap();
    let mut over_tcp = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
    let mut over_unix = std::os::unix::net::UnixStream::connect(&path).unwrap();
    for round in 0..100u32 {
        echoes(&mut over_tcp, format!("tcp {round}").as_bytes());
        echoes(&mut over_unix, format!("unix {round}").as_bytes());
    }
    assert_eq!((tcp.accepted(), unix.accepted(), unix.local_addr()), (1, 1, None));
    ends_balanced(system);
    assert!(!path.exists(), "the socket's file goes with the listener");
    assert_eq!(over_tcp.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(over_unix.read(&mut [0; 1]).unwrap(), 0);
}

/// Writes a kilobyte for each byte that it gets, and leaves bytes alone while it is congested.
struct Wordy(Connection);

impl Actor for Wordy {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        let Wordy(connection) = self;
        connection.ready(ready);
        let outcome = connection.fill(READ_MAX);
        while !connection.received().is_empty() && !connection.is_congested() {
            connection.consume(1);
            connection.write(&[7; 1024]);
        }
        connection.flush();
        if matches!(outcome, ReadOutcome::Eof | ReadOutcome::Closed(_)) {
            ctx.stop();
        }
        Ok(())
    }
}

#[test]
fn a_ready_comes_when_congestion_ends_though_nothing_is_left_to_read() {
    let system = System::builder("net").build().unwrap();
    let listener =
        system.listener("wordy", local()).marks(1024, 4096).spawn(|connection, _| Wordy(connection)).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client.write_all(&[1; 50]).unwrap();
    let mut back = vec![0; 50 * 1024];
    client.read_exact(&mut back).unwrap();
    drop(client);
    ends_balanced(system);
}

#[cfg(target_os = "linux")]
#[test]
fn what_lies_behind_an_urgent_byte_is_read() {
    use std::os::fd::AsRawFd;
    let system = System::builder("net").build().unwrap();
    let (go, gone) = mpsc::channel();
    let gone = std::sync::Mutex::new(gone);
    let listener = system.listener("echo", local()).spawn(move |connection, _| {
        // All is there before the first read, which stops at the urgent byte.
        gone.lock().unwrap().recv().unwrap();
        Echo::new(connection)
    });
    let mut client = TcpStream::connect(listener.unwrap().local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client.write_all(b"abc").unwrap();
    // SAFETY: the socket is open, and the byte lives until the kernel has copied it.
    assert_eq!(unsafe { libc::send(client.as_raw_fd(), b"!".as_ptr().cast(), 1, libc::MSG_OOB) }, 1);
    client.write_all(b"def").unwrap();
    go.send(()).unwrap();
    let mut back = [0; 6];
    client.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"abcdef");
    drop(client);
    ends_balanced(system);
}

/// Sends `bytes` and a descriptor with them.
#[cfg(target_os = "linux")]
fn send_with_descriptor(client: &std::os::unix::net::UnixStream, bytes: &[u8]) {
    use std::os::fd::AsRawFd;
    // SAFETY: plain data, for which zeros are a value.
    let (mut message, mut control) = unsafe { std::mem::zeroed::<(libc::msghdr, [u64; 8])>() };
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: the header and the descriptor lie in `control`, which is large enough and aligned for them; all that is
    // pointed to lives until the kernel has copied it.
    unsafe {
        message.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header).cast::<i32>().write(client.as_raw_fd());
        assert_eq!(libc::sendmsg(client.as_raw_fd(), &raw const message, 0), bytes.len() as isize);
    }
}

/// Answers once, when it has six bytes. (An answer that the peer reads would be an edge of its own.)
#[cfg(target_os = "linux")]
struct Six(Connection);

#[cfg(target_os = "linux")]
impl Actor for Six {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        let Six(connection) = self;
        connection.ready(ready);
        let outcome = connection.fill(READ_MAX);
        if connection.received().len() >= 6 {
            let received = connection.received().to_vec();
            connection.consume(received.len());
            connection.write(&received);
        }
        connection.flush();
        if matches!(outcome, ReadOutcome::Eof | ReadOutcome::Closed(_)) {
            ctx.stop();
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_lies_behind_a_passed_descriptor_is_read() {
    let system = System::builder("net").build().unwrap();
    let path = socket_path("descriptor");
    let (go, gone) = mpsc::channel();
    let gone = std::sync::Mutex::new(gone);
    let listener = system.listener("six", SocketAddress::unix(&path)).spawn(move |connection, _| {
        // All is there before the first read, which stops behind what the descriptor came with.
        gone.lock().unwrap().recv().unwrap();
        Six(connection)
    });
    listener.unwrap();
    let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    send_with_descriptor(&client, b"abc");
    client.write_all(b"def").unwrap();
    go.send(()).unwrap();
    let mut back = [0; 6];
    client.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"abcdef");
    drop(client);
    ends_balanced(system);
}

#[test]
fn code_of_users_on_the_drivers_thread_may_end_the_system() {
    static ENDS: std::sync::Mutex<Option<(System, Sender<()>)>> = std::sync::Mutex::new(None);

    struct Told;
    impl From<Ready> for Told {
        fn from(_: Ready) -> Self {
            let ends = ENDS.lock().unwrap().take();
            if let Some((system, ended)) = ends {
                drop(system);
                ended.send(()).unwrap();
            }
            Told
        }
    }
    struct Holds(#[allow(dead_code)] Connection); // until it ends
    impl Actor for Holds {
        type Message = Told;
        fn receive(&mut self, _: Told, _: &mut Context<Told>) -> HandlerResult {
            Ok(())
        }
    }

    let system = System::builder("net").build().unwrap();
    let listener = system.listener("told", local()).spawn(|connection, _| Holds(connection)).unwrap();
    let (ended, ends) = mpsc::channel();
    *ENDS.lock().unwrap() = Some((system, ended));
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    ends.recv_timeout(LONG).expect("the thread does not wait for itself");
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "the connection has ended with its system");
}

/// Echoes, in a mailbox that has room for one message, which it fills while the peer sends.
struct Narrow<const DROPS: bool> {
    connection: Connection,
    is_full: Sender<()>,
    go: Arc<std::sync::Mutex<mpsc::Receiver<()>>>,
    has_waited: bool,
}

enum NarrowMsg {
    Ready(Ready),
    Filling,
}

impl From<Ready> for NarrowMsg {
    fn from(ready: Ready) -> Self {
        NarrowMsg::Ready(ready)
    }
}

impl<const DROPS: bool> Actor for Narrow<DROPS> {
    type Message = NarrowMsg;

    fn mailbox() -> Option<Mailbox> {
        let on_full = if DROPS { OverflowPolicy::DropNewest } else { OverflowPolicy::Reject };
        Some(Mailbox::bounded(1).on_full(on_full))
    }

    fn receive(&mut self, message: NarrowMsg, ctx: &mut Context<NarrowMsg>) -> HandlerResult {
        let NarrowMsg::Ready(ready) = message else { return Ok(()) };
        self.connection.ready(ready);
        match self.connection.fill(READ_MAX) {
            ReadOutcome::Read(count) => {
                let received = self.connection.received().to_vec();
                self.connection.consume(count);
                self.connection.write(&received);
                self.connection.flush();
            }
            ReadOutcome::Blocked => {}
            ReadOutcome::Eof | ReadOutcome::Closed(_) => ctx.stop(),
        }
        if !std::mem::replace(&mut self.has_waited, true) {
            ctx.me().tell(NarrowMsg::Filling);
            self.is_full.send(()).unwrap();
            self.go.lock().unwrap().recv().unwrap();
        }
        Ok(())
    }
}

fn a_full_mailbox_takes_a_ready<const DROPS: bool>() {
    let system =
        System::builder("net").dispatcher("default", Dispatcher::work_stealing().threads(2)).build().unwrap();
    let other = system.listener("other", local()).spawn(|connection, _| Echo::new(connection)).unwrap();
    let mut other = TcpStream::connect(other.local_addr().unwrap()).unwrap();
    echoes(&mut other, b"before");
    let ((is_full, fills), (go, gone)) = (mpsc::channel(), mpsc::channel());
    let gone = Arc::new(std::sync::Mutex::new(gone));
    let listener = system.listener("narrow", local()).spawn(move |connection, _| Narrow::<DROPS> {
        connection,
        is_full: is_full.clone(),
        go: gone.clone(),
        has_waited: false,
    });
    let mut client = TcpStream::connect(listener.unwrap().local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    fills.recv_timeout(LONG).unwrap();
    client.write_all(b"hello").unwrap();
    // Behind this the driver has told of that.
    echoes(&mut other, b"after");
    go.send(()).unwrap();
    let mut back = [0; 5];
    client.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
    drop((client, other));
    ends_balanced(system);
}

#[test]
fn a_connection_is_told_of_readiness_though_its_mailbox_is_full() {
    a_full_mailbox_takes_a_ready::<false>();
    a_full_mailbox_takes_a_ready::<true>();
}

#[test]
fn two_hundred_connections_at_once() {
    let system = System::builder("net").build().unwrap();
    let listener = system.listener("echo", local()).spawn(|connection, _| Echo::new(connection)).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut clients: Vec<_> = (0..200).map(|_| TcpStream::connect(addr).unwrap()).collect();
    for round in 0..5 {
        for (number, client) in clients.iter_mut().enumerate() {
            client.write_all(format!("{number:08}{round:08}").as_bytes()).unwrap();
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let mut back = [0; 16];
            client.read_exact(&mut back).unwrap();
            assert_eq!(back, format!("{number:08}{round:08}").as_bytes());
        }
    }
    assert_eq!((listener.accepted(), listener.accept_failures()), (200, 0));
    ends_balanced(system);
}

#[test]
fn a_slow_reader_slows_the_sender_and_gets_everything() {
    const TOTAL: usize = 24 << 20;
    const HIGH: usize = 256 * 1024;
    let system = System::builder("net").build().unwrap();
    let most = Arc::new(AtomicUsize::new(0));
    let (congested, is_congested) = mpsc::channel();
    let kept = most.clone();
    let listener = system
        .listener("echo", local())
        .marks(HIGH / 4, HIGH)
        .spawn(move |connection, _| Echo {
            connection,
            most: kept.clone(),
            congested: Some(congested.clone()),
            hears: None,
        })
        .unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut writer = client.try_clone().unwrap();
    let byte_at = |at: usize| (at ^ (at >> 8) ^ (at >> 16)) as u8;
    let sending = std::thread::spawn(move || {
        let all: Vec<u8> = (0..TOTAL).map(byte_at).collect();
        writer.write_all(&all).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    // Not a byte is read before the server has more to send than it wants.
    is_congested.recv_timeout(LONG).unwrap();
    let mut back = Vec::new();
    client.read_to_end(&mut back).unwrap();
    sending.join().unwrap();
    assert_eq!(back.len(), TOTAL);
    assert!(back.iter().enumerate().all(|(at, byte)| *byte == byte_at(at)));
    let most = most.load(Ordering::Relaxed);
    assert!((HIGH + 1..=HIGH + READ_MAX).contains(&most), "{most} bytes waited at most");
    ends_balanced(system);
}

/// Counts what comes in; says how much it was once the client has ended its half.
struct Count {
    connection: Connection,
    total: usize,
}

impl Actor for Count {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        let connection = &mut self.connection;
        connection.ready(ready);
        match connection.fill(READ_MAX) {
            ReadOutcome::Read(count) => {
                self.total += count;
                connection.consume(count);
            }
            ReadOutcome::Blocked => {}
            ReadOutcome::Eof => {
                connection.write(format!("{} bytes", self.total).as_bytes());
                ctx.stop();
            }
            ReadOutcome::Closed(_) => ctx.stop(),
        }
        Ok(())
    }
}

#[test]
fn after_a_half_close_the_other_half_still_works() {
    let system = System::builder("net").build().unwrap();
    let listener =
        system.listener("count", local()).spawn(|connection, _| Count { connection, total: 0 }).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(&[7; 300_000]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut reply = String::new();
    client.read_to_string(&mut reply).unwrap();
    assert_eq!(reply, "300000 bytes");
    ends_balanced(system);
}

/// Greets, ends its own half, and reports how the connection ends.
struct Greeter {
    connection: Connection,
    report: Sender<ReadOutcome>,
    half_close: bool,
}

impl Actor for Greeter {
    type Message = Ready;
    fn started(&mut self, _: &mut Context<Ready>) -> HandlerResult {
        self.connection.write(b"hello");
        if self.half_close {
            self.connection.shutdown_write();
            self.connection.write(b"never sent");
        }
        self.connection.flush();
        Ok(())
    }
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        self.connection.ready(ready);
        let outcome = self.connection.fill(READ_MAX);
        match outcome {
            ReadOutcome::Read(_) | ReadOutcome::Blocked => {}
            ReadOutcome::Eof | ReadOutcome::Closed(_) => {
                assert_eq!(self.connection.received(), b"bye");
                self.report.send(outcome).unwrap();
                ctx.stop();
            }
        }
        Ok(())
    }
}

#[test]
fn our_own_half_close_leaves_the_peers_half_open() {
    let system = System::builder("net").build().unwrap();
    let (report, reported) = mpsc::channel();
    let listener = system
        .listener("greeter", local())
        .spawn(move |connection, _| Greeter { connection, report: report.clone(), half_close: true })
        .unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut greeting = String::new();
    client.read_to_string(&mut greeting).unwrap();
    assert_eq!(greeting, "hello");
    client.write_all(b"bye").unwrap();
    drop(client);
    assert_eq!(reported.recv_timeout(LONG).unwrap(), ReadOutcome::Eof);
    ends_balanced(system);
}

#[test]
fn a_reset_by_the_peer_has_a_reason() {
    let system = System::builder("net").build().unwrap();
    let (report, reported) = mpsc::channel();
    let listener = system
        .listener("greeter", local())
        .spawn(move |connection, _| Greeter { connection, report: report.clone(), half_close: false })
        .unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(b"bye").unwrap();
    // Closing a socket that holds unread input resets the connection.
    assert_eq!(client.peek(&mut [0; 5]).unwrap(), 5);
    drop(client);
    assert_eq!(reported.recv_timeout(LONG).unwrap(), ReadOutcome::Closed(Closed::Reset));
    ends_balanced(system);
}

#[cfg(target_os = "linux")]
#[test]
fn a_peer_that_has_gone_before_it_is_accepted_had_an_address() {
    use std::os::fd::AsRawFd;
    let system = System::builder("net").build().unwrap();
    let (seen, peers) = mpsc::channel();
    let listener = system
        .listener("one", local())
        .max_connections(1)
        .spawn(move |connection, _| {
            seen.send(connection.peer_addr()).unwrap();
            Echo::new(connection)
        })
        .unwrap();
    let mut first = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    echoes(&mut first, b"served");
    let second = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let expected = [&first, &second].map(|client| Some(client.local_addr().unwrap()));
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    let (at_once, size) = ((&raw const at_once).cast(), size_of::<libc::linger>() as libc::socklen_t);
    // SAFETY: a plain call with a pointer to a living structure of this size.
    let set =
        unsafe { libc::setsockopt(second.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, at_once, size) };
    assert_eq!(set, 0);
    // Closed by a reset while it waits for its turn.
    drop(second);
    drop(first);
    assert_eq!([(); 2].map(|()| peers.recv_timeout(LONG).unwrap()), expected);
    ends_balanced(system);
}

#[test]
fn an_address_that_cannot_be_had_is_a_typed_error() {
    let system = System::builder("net").build().unwrap();
    let listen = |name: &str, address: SocketAddress| {
        system.listener(name, address).spawn(|connection, _| Echo::new(connection))
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = listen("taken", taken.local_addr().unwrap().into()).unwrap_err();
    assert_eq!(error.kind(), Some(io::ErrorKind::AddrInUse));
    assert!(error.to_string().contains("in use"), "{error}");

    let path = socket_path("taken");
    let _first = listen("first", SocketAddress::unix(&path)).unwrap();
    let error = listen("second", SocketAddress::unix(&path)).unwrap_err();
    assert_eq!(error.kind(), Some(io::ErrorKind::AddrInUse));

    assert_eq!(
        listen("bad", SocketAddress::tcp("nonsense")).unwrap_err().kind(),
        Some(io::ErrorKind::InvalidInput)
    );
    let foreign = listen("foreign", SocketAddress::tcp("192.0.2.1:0")).unwrap_err();
    assert_eq!(foreign.kind(), Some(io::ErrorKind::AddrNotAvailable));

    // Whatever fails after the binding leaves the address free.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = listen("first", free.into()).unwrap_err();
    assert!(matches!(error, ListenError::Spawn(SpawnError::NameTaken { .. })), "{error}");
    let error = system
        .listener("nowhere", free)
        .dispatcher("nowhere")
        .spawn(|connection, _| Echo::new(connection))
        .unwrap_err();
    assert!(matches!(error, ListenError::Spawn(SpawnError::UnknownDispatcher { .. })), "{error}");
    listen("free", free.into()).unwrap();

    let handle = system.handle().clone();
    ends_balanced(system);
    let late = handle.listener("late", local()).spawn(|connection, _| Echo::new(connection));
    assert!(late.is_err());
}

/// Writes a lot and stops at once.
struct Parting(Connection);

const PARTING: usize = 8 << 20;

impl Actor for Parting {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        self.0.ready(ready);
        if let ReadOutcome::Read(_) = self.0.fill(16) {
            self.0.write(&vec![42; PARTING]);
            ctx.stop();
        }
        Ok(())
    }
}

#[test]
fn a_shutdown_sends_what_was_written() {
    let system = System::builder("net").build().unwrap();
    let listener =
        system.listener("parting", local()).linger(LONG).spawn(|connection, _| Parting(connection)).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    // More than the actor reads: closing with unread input must not destroy the reply.
    client.write_all(&[0; 1000]).unwrap();
    let mut first = [0; 1];
    client.read_exact(&mut first).unwrap();
    let ending = std::thread::spawn(move || ends_balanced(system));
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    drop(client);
    assert_eq!(1 + rest.len(), PARTING);
    assert!(rest.iter().all(|byte| *byte == 42));
    ending.join().unwrap();
}

/// Answers the first bytes and stops, whatever else comes.
struct Curt(Connection);

impl Actor for Curt {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        self.0.ready(ready);
        if let ReadOutcome::Read(_) = self.0.fill(16) {
            self.0.write(b"enough");
            ctx.stop();
        }
        Ok(())
    }
}

#[test]
fn an_end_with_unread_input_is_no_reset() {
    let system = System::builder("net").build().unwrap();
    let listener =
        system.listener("curt", local()).linger(LONG).spawn(|connection, _| Curt(connection)).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(&vec![7; 4 << 20]).unwrap();
    let mut reply = String::new();
    client.read_to_string(&mut reply).unwrap();
    assert_eq!(reply, "enough");
    drop(client);
    ends_balanced(system);
}

#[test]
fn a_peer_that_never_reads_does_not_hold_up_a_shutdown() {
    let system = System::builder("net").build().unwrap();
    let listener = system
        .listener("parting", local())
        .linger(Duration::from_millis(20))
        .spawn(|connection, _| Parting(connection))
        .unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(b"go").unwrap();
    assert_eq!(client.peek(&mut [0; 1]).unwrap(), 1);
    ends_balanced(system);
    let mut rest = Vec::new();
    // Cut off somewhere, by an end or by a reset.
    let _ = client.read_to_end(&mut rest);
    assert!(rest.len() < PARTING);
}

fn wait_for(seen: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !seen() {
        assert!(began.elapsed() < LONG, "it never comes");
        std::thread::yield_now();
    }
}

/// A client whose connection's actor has written a lot and ended, in a system where so many linger then.
fn left_behind(listener: &pointsman::net::Listener, lingering: usize) -> TcpStream {
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client.write_all(b"go").unwrap();
    wait_for(|| listener.lingering_connections() == lingering && listener.open_connections() == 0);
    client
}

#[test]
fn a_connection_that_lingers_keeps_its_place_until_it_is_closed() {
    let system = System::builder("net").build().unwrap();
    let listener = system
        .listener("parting", local())
        .linger(LONG)
        .max_connections(1)
        .spawn(|connection, _| Parting(connection))
        .unwrap();
    let mut first = left_behind(&listener, 1);
    let mut second = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    second.write_all(b"go").unwrap();
    // Nothing else keeps the listener from it.
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).unwrap();
    assert_eq!((rest.len(), listener.accepted()), (PARTING, 1), "it has the only place");
    assert_eq!((listener.connections(), listener.open_connections()), (1, 0));
    drop(first);
    // Now it is served.
    second.read_to_end(&mut rest).unwrap();
    assert_eq!((rest.len(), listener.accepted()), (2 * PARTING, 2));
    drop(second);
    wait_for(|| listener.connections() == 0);
    assert_eq!(listener.lingering_connections(), 0);
    ends_balanced(system);
}

#[test]
fn a_listener_that_is_full_of_those_that_linger_takes_nobody_at_its_end() {
    let system = System::builder("net").build().unwrap();
    let listener = system
        .listener("parting", local())
        .linger(LONG)
        .max_connections(1)
        .spawn(|connection, _| Parting(connection))
        .unwrap();
    let first = left_behind(&listener, 1);
    let second = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    // Takes those who wait as far as there is room for them.
    listener.unbind().wait().unwrap();
    assert_eq!(listener.accepted(), 1);
    drop((first, second));
    ends_balanced(system);
}

#[test]
fn those_that_linger_hold_no_more_than_they_may_and_the_oldest_are_cut_first() {
    let system = System::builder("net").build().unwrap();
    let listener = system
        .listener("parting", local())
        .linger(LONG)
        .linger_bytes(2 * PARTING + PARTING / 2)
        .spawn(|connection, _| Parting(connection))
        .unwrap();
    let mut clients = vec![left_behind(&listener, 1), left_behind(&listener, 2)];
    assert_eq!(listener.linger_cuts(), 0, "there is room for two");
    clients.push(left_behind(&listener, 2));
    wait_for(|| listener.linger_cuts() == 1);
    for (number, mut client) in clients.into_iter().enumerate() {
        let mut got = Vec::new();
        // Cut off by an end or by a reset.
        let ended = client.read_to_end(&mut got);
        assert_eq!((got.len() == PARTING, number > 0), (number > 0, ended.is_ok() && number > 0), "{number}");
    }
    assert_eq!(listener.linger_cuts(), 1);
    ends_balanced(system);
}

/// Has so many connections cut, one after the other; their clients.
fn have_cut(listener: &pointsman::net::Listener, count: u64) -> Vec<TcpStream> {
    (1..=count)
        .map(|cuts| {
            let client = left_behind(listener, 0);
            wait_for(|| listener.linger_cuts() == cuts);
            client
        })
        .collect()
}

#[test]
fn a_warning_tells_of_connections_that_are_cut_whenever_their_count_has_doubled() {
    crate::logged::listen();
    let system = System::builder("cutting").build().unwrap();
    let listener = system.listener("parting", local()).linger(LONG).linger_bytes(1000);
    let listener = listener.spawn(|connection, _| Parting(connection)).unwrap();
    let clients = have_cut(&listener, 5);
    // The driver has warned of the fourth before it counts the fifth.
    let warning = |count| {
        format!(
            "! listener \"parting\": connections closed before their last bytes were sent, {count} so far: those \
             that lingered held more than 1000 bytes together; shorten `linger`, or raise a listener's `linger_bytes`"
        )
    };
    assert_eq!(crate::logged::lines("cutting"), [1, 2, 4].map(warning));
    drop(clients);
    ends_balanced(system);
}

/// The driver's own thread makes this of what it tells; from then on its logger panics where a connection is cut.
struct Panicking(Ready);

impl From<Ready> for Panicking {
    fn from(ready: Ready) -> Self {
        crate::logged::meanwhile(|text| assert!(!text.contains("\"cut\": connections closed"), "planted"));
        Self(ready)
    }
}

/// As [`Parting`].
struct PartingLoudly(Connection);

impl Actor for PartingLoudly {
    type Message = Panicking;
    fn receive(&mut self, Panicking(ready): Panicking, ctx: &mut Context<Panicking>) -> HandlerResult {
        self.0.ready(ready);
        if let ReadOutcome::Read(_) = self.0.fill(16) {
            self.0.write(&vec![42; PARTING]);
            ctx.stop();
        }
        Ok(())
    }
}

#[test]
fn a_logger_that_panics_where_a_connection_is_cut_leaves_the_others_served() {
    let system = System::builder("net").build().unwrap();
    let listener = system.listener("cut", local()).linger(LONG).linger_bytes(1000);
    let listener = listener.spawn(|connection, _| PartingLoudly(connection)).unwrap();
    let echo = system.listener("echo", local()).spawn(|connection, _| Echo::new(connection)).unwrap();
    let clients = have_cut(&listener, 1);
    let mut other = TcpStream::connect(echo.local_addr().unwrap()).unwrap();
    other.set_read_timeout(Some(LONG)).unwrap();
    echoes(&mut other, b"served");
    drop(clients);
    ends_balanced(system);
}

/// Answers each byte with many, and has enough at some point.
struct Amplifier {
    connection: Connection,
    most: Arc<AtomicUsize>,
}

const OUTPUT_MAX: usize = 1 << 20;

impl Actor for Amplifier {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        let connection = &mut self.connection;
        connection.ready(ready);
        if let ReadOutcome::Read(_) = connection.fill(READ_MAX) {
            while let Some(&byte) = connection.received().first() {
                connection.consume(1);
                connection.write(&[byte; 1024]);
                if connection.pending() > OUTPUT_MAX && !connection.flush() && connection.closed().is_none() {
                    self.most.fetch_max(connection.pending(), Ordering::Relaxed);
                    connection.abort();
                    ctx.stop();
                    break;
                }
            }
        }
        connection.flush();
        Ok(())
    }
}

#[test]
fn a_client_that_sends_and_never_reads_is_cut_off() {
    let system = System::builder("net").build().unwrap();
    let most = Arc::new(AtomicUsize::new(0));
    let kept = most.clone();
    let listener = system
        .listener("amplifier", local())
        .spawn(move |connection, _| Amplifier { connection, most: kept.clone() })
        .unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let error = loop {
        if let Err(error) = client.write_all(&[1; READ_MAX]) {
            break error;
        }
    };
    assert!(matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe), "{error}");
    let most = most.load(Ordering::Relaxed);
    assert!(most > 0 && most <= OUTPUT_MAX + 1024, "{most} bytes waited at most");
    ends_balanced(system);
}

#[test]
fn more_connections_than_allowed_wait_for_their_turn() {
    at_most_two_connections(System::builder("net").build().unwrap(), 2);
}

#[test]
fn a_deployment_wins_over_what_the_code_says_of_a_listener() {
    let deployment = Deployment::new().listener(ListenerSettings::new().max_connections(2));
    at_most_two_connections(System::builder("net").deploy("/echo", deployment).build().unwrap(), 10);
    #[cfg(feature = "config")]
    {
        let file = "[deployment.\"/echo\".listener]\nmax-connections = 2";
        at_most_two_connections(System::builder("net").config(file).unwrap().build().unwrap(), 10);
    }
}

fn at_most_two_connections(system: System, said_in_code: usize) {
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    struct Counted(Echo, Arc<AtomicUsize>);
    impl Actor for Counted {
        type Message = Ready;
        fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
            self.0.receive(ready, ctx)
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let most_open = most.clone();
    let listener = system
        .listener("echo", local())
        .max_connections(said_in_code)
        .spawn(move |connection, _| {
            most_open.fetch_max(1 + open.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
            Counted(Echo::new(connection), open.clone())
        })
        .unwrap();
    let addr = listener.local_addr().unwrap();
    let mut clients: Vec<_> = (0..10).map(|_| TcpStream::connect(addr).unwrap()).collect();
    for client in &mut clients {
        client.write_all(b"served?").unwrap();
    }
    for mut client in clients {
        let mut back = [0; 7];
        client.read_exact(&mut back).unwrap();
    }
    assert_eq!((listener.accepted(), most.load(Ordering::Relaxed)), (10, 2));
    ends_balanced(system);
}

#[test]
fn a_stopped_listener_takes_nobody_and_leaves_nothing() {
    let system = System::builder("net").build().unwrap();
    let path = socket_path("stopped");
    let listener = system.listener("echo", local()).spawn(|connection, _| Echo::new(connection)).unwrap();
    let unix = system
        .listener("unix", SocketAddress::unix(&path))
        .spawn(|connection, _| Echo::new(connection))
        .unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    echoes(&mut client, b"before");
    assert_eq!(listener.open_connections(), 1);
    listener.stop();
    unix.stop();
    assert!(!path.exists());
    let refused = TcpStream::connect(listener.local_addr().unwrap()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "the connections end with it");
    listener.actor().when_ended().wait().unwrap();
    assert_eq!((listener.accepted(), listener.open_connections()), (1, 0));
    ends_balanced(system);
}

/// Fails at its first message.
struct Sibling;

impl Actor for Sibling {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Err(pointsman::Failure::msg("as told"))
    }
}

#[test]
fn a_listener_goes_on_when_it_shares_the_restart_of_a_sibling() {
    let system = System::builder("net").build().unwrap();
    let path = socket_path("sibling");
    let together = pointsman::Strategy::default().all_for_one();
    let sibling = system.actor("sibling").on_failure(together).spawn(|| Sibling).unwrap();
    let listener = system.listener("echo", local()).spawn(|connection, _| Echo::new(connection)).unwrap();
    let unix = system
        .listener("unix", SocketAddress::unix(&path))
        .spawn(|connection, _| Echo::new(connection))
        .unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    echoes(&mut client, b"before");
    sibling.tell(());
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "the connections end");
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    echoes(&mut client, b"after");
    echoes(&mut std::os::unix::net::UnixStream::connect(&path).unwrap(), b"after");
    assert!(!listener.actor().is_closed() && !unix.actor().is_closed());
    ends_balanced(system);
    assert!(!path.exists(), "the socket's file goes with the listener");
}

#[test]
fn a_listener_that_is_restarted_while_a_connection_ends_counts_anew() {
    let system = System::builder("net")
        .dispatcher("default", Dispatcher::work_stealing().threads(1))
        .dispatcher("internal", Dispatcher::blocking().thread_range(1..=1))
        .dispatcher("others", Dispatcher::blocking())
        .build()
        .unwrap();
    let together = pointsman::Strategy::default().all_for_one();
    let sibling =
        system.actor("sibling").dispatcher("others").on_failure(together).spawn(|| Sibling).unwrap();
    let (accepted, accepts) = mpsc::channel();
    let listener = system.listener("echo", local()).dispatcher("others").max_connections(1);
    let listener = listener
        .spawn(move |connection, ctx| {
            accepted.send(ctx.me().clone()).unwrap();
            Echo::new(connection)
        })
        .unwrap();
    let (begun, begins) = mpsc::channel();
    let last = move || {
        begun.send(()).unwrap();
        Sibling
    };
    system.actor("last").dispatcher("others").spawn(last).unwrap();
    begins.recv_timeout(LONG).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    echoes(&mut client, b"before");
    // The listener's thread is held, so that it finds the end of its connection and its restart side by side.
    let (inside, is_inside) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let held = Holder(Some((inside, released)));
    let mut held = Some(held);
    let holder =
        system.actor("holder").dispatcher("default").spawn(move || held.take().unwrap_or(Holder(None)));
    holder.unwrap().tell(());
    is_inside.recv_timeout(LONG).unwrap();
    drop(client);
    accepts.recv_timeout(LONG).unwrap().when_ended().wait().unwrap();
    sibling.tell(());
    begins.recv_timeout(LONG).unwrap();
    release.send(()).unwrap();
    for text in [b"after", b"again"] {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(LONG)).unwrap();
        echoes(&mut client, text);
    }
    ends_balanced(system);
}

/// Holds its thread at the first message until it is released.
struct Holder(Option<(Sender<()>, mpsc::Receiver<()>)>);

impl Actor for Holder {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        if let Some((inside, released)) = self.0.take() {
            inside.send(())?;
            released.recv()?;
        }
        Ok(())
    }
}

#[test]
fn an_unbound_listener_takes_nobody_and_lets_its_connections_go_on() {
    let system = System::builder("net").build().unwrap();
    let path = socket_path("unbound");
    let listener = system.listener("echo", local()).spawn(|connection, _| Echo::new(connection)).unwrap();
    let unix = system
        .listener("unix", SocketAddress::unix(&path))
        .spawn(|connection, _| Echo::new(connection))
        .unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    echoes(&mut client, b"before");
    // They wait at the port, or are in already: either way they are served.
    let mut waiting: Vec<_> =
        (0..100).map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).collect();
    listener.unbind().wait().unwrap();
    unix.unbind().wait().unwrap();
    assert_eq!(listener.accepted(), 101);
    assert!(!path.exists(), "the socket's file goes with the port");
    let refused = TcpStream::connect(listener.local_addr().unwrap()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    echoes(&mut client, b"after");
    waiting.iter_mut().for_each(|client| echoes(client, b"served"));
    listener.unbind().wait().unwrap();
    assert!(!listener.actor().is_closed());
    listener.stop();
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "the connections end with it");
    let ended = listener.actor().when_ended();
    ended.wait().unwrap();
    assert!(listener.unbind().wait().is_err(), "nobody is there to do it");
    ends_balanced(system);
}

/// Fails as told.
struct Fragile(Connection);

impl Actor for Fragile {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, _: &mut Context<Ready>) -> HandlerResult {
        self.0.ready(ready);
        if let ReadOutcome::Read(_) = self.0.fill(READ_MAX) {
            if self.0.received().starts_with(b"fail") {
                self.0.write(b"last words");
                panic!("as told");
            }
        }
        Ok(())
    }
}

#[test]
fn a_failure_ends_one_connection_and_its_listener_goes_on() {
    let system = System::builder("net").build().unwrap();
    let listener = system.listener("fragile", local()).spawn(|connection, _| Fragile(connection)).unwrap();
    for _ in 0..3 {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"fail").unwrap();
        let mut words = String::new();
        client.read_to_string(&mut words).unwrap();
        assert_eq!(words, "last words");
    }
    ends_balanced(system);
}

/// Throws away what it gets.
struct Sink(Connection);

impl Actor for Sink {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        self.0.ready(ready);
        match self.0.fill(READ_MAX) {
            ReadOutcome::Read(count) => self.0.consume(count),
            ReadOutcome::Blocked => {}
            ReadOutcome::Eof | ReadOutcome::Closed(_) => ctx.stop(),
        }
        Ok(())
    }
}

#[test]
fn a_firehose_leaves_others_their_turn() {
    let system =
        System::builder("net").dispatcher("default", Dispatcher::work_stealing().threads(1)).build().unwrap();
    let sink = system.listener("sink", local()).spawn(|connection, _| Sink(connection)).unwrap();
    let echo = system.listener("echo", local()).spawn(|connection, _| Echo::new(connection)).unwrap();
    let enough = Arc::new(AtomicBool::new(false));
    let (sent, begins) = mpsc::channel();
    let mut hose = TcpStream::connect(sink.local_addr().unwrap()).unwrap();
    let until = enough.clone();
    let pouring = std::thread::spawn(move || {
        let water = vec![0; 1 << 20];
        while !until.load(Ordering::Relaxed) {
            hose.write_all(&water).unwrap();
            let _ = sent.send(());
        }
    });
    begins.recv_timeout(LONG).unwrap();
    let mut client = TcpStream::connect(echo.local_addr().unwrap()).unwrap();
    for _ in 0..200 {
        echoes(&mut client, b"still there?");
    }
    enough.store(true, Ordering::Relaxed);
    pouring.join().unwrap();
    ends_balanced(system);
}

/// Runs in a process of its own, since the limit is the process's.
const ALONE: &str = "POINTSMAN_TEST_TOO_MANY_FILES";

#[test]
fn too_many_open_files_only_delay_who_comes() {
    if std::env::var_os(ALONE).is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "net::too_many_open_files_only_delay_who_comes", "--test-threads=1"])
            .env(ALONE, "1")
            .status()
            .unwrap();
        assert!(status.success(), "{status}");
        return;
    }
    let system = System::builder("net").build().unwrap();
    let listener = system.listener("echo", local()).spawn(|connection, _| Echo::new(connection)).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut first = TcpStream::connect(addr).unwrap();
    echoes(&mut first, b"before");
    let mut waiting = TcpStream::connect(addr).unwrap();
    echoes(&mut waiting, b"served");
    // The limit is set so that one more descriptor is left: the client's own.
    let next = std::os::fd::AsRawFd::as_raw_fd(&std::fs::File::open("/dev/null").unwrap());
    let limit = libc::rlimit { rlim_cur: next as libc::rlim_t + 1, rlim_max: 4096 };
    // SAFETY: a plain call with a pointer to a living structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let mut late = TcpStream::connect(addr).unwrap();
    late.write_all(b"anybody there?").unwrap();
    while listener.accept_failures() < 3 {
        // Who is there is served all the while.
        echoes(&mut first, b"during");
    }
    assert_eq!(listener.accepted(), 2);
    drop(waiting);
    let mut back = [0; 14];
    late.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"anybody there?");
    assert_eq!(listener.accepted(), 3);
    ends_balanced(system);
}

/// Echoes; a byte `b` makes the handler block until it is released.
fn blocks(connection: Connection, blocked: &Sender<Sender<()>>) -> Echo {
    let blocked = blocked.clone();
    let hears = move |received: &[u8]| {
        if received.contains(&b'b') {
            let (release, released) = mpsc::channel();
            blocked.send(release).unwrap();
            // The test releases it.
            released.recv_timeout(LONG).unwrap();
        }
    };
    Echo { hears: Some(Box::new(hears)), ..Echo::new(connection) }
}

fn client_of(listener: &pointsman::net::Listener) -> TcpStream {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client
}

/// The worker that waits for sockets also runs the handlers.
#[test]
fn a_handler_that_blocks_holds_up_no_connection_of_another_worker() {
    let dispatcher = Dispatcher::work_stealing().threads(2).lifo(false);
    let system = System::builder("net").dispatcher("default", dispatcher).build().unwrap();
    let (blocked, is_blocked) = mpsc::channel();
    let make = move |connection, _: &mut Context<Ready>| blocks(connection, &blocked);
    let listener = system.listener("blocks", local()).spawn(make).unwrap();
    let (mut one, mut other) = (client_of(&listener), client_of(&listener));
    for round in 0..20_u8 {
        echoes(&mut one, b"ready");
        one.write_all(b"b").unwrap();
        let release = is_blocked.recv_timeout(LONG).unwrap();
        // A worker may have learned from the rounds before; this one comes after short turns.
        (0..round).for_each(|_| echoes(&mut other, b"echo"));
        release.send(()).unwrap();
        one.read_exact(&mut [0; 1]).unwrap();
        (0..300).for_each(|_| echoes(&mut other, b"echo"));
    }
    drop((one, other));
    ends_balanced(system);
}

#[test]
fn connections_are_served_while_all_workers_of_the_default_dispatcher_are_blocked() {
    let system = System::builder("net")
        .dispatcher("default", Dispatcher::work_stealing().threads(1))
        .dispatcher("own", Dispatcher::work_stealing().threads(1))
        .build()
        .unwrap();
    let (blocked, is_blocked) = mpsc::channel();
    let make = move |connection, _: &mut Context<Ready>| blocks(connection, &blocked);
    let blocks = system.listener("blocks", local()).spawn(make).unwrap();
    let echo =
        system.listener("echo", local()).dispatcher("own").spawn(|connection, _| Echo::new(connection));
    let (mut one, mut other) = (client_of(&blocks), client_of(&echo.unwrap()));
    // The listeners are on the dispatcher that is blocked: both have accepted by then.
    echoes(&mut other, b"ready");
    echoes(&mut one, b"ready");
    one.write_all(b"b").unwrap();
    let release = is_blocked.recv_timeout(LONG).unwrap();
    (0..100).for_each(|_| echoes(&mut other, b"echo"));
    release.send(()).unwrap();
    one.read_exact(&mut [0; 1]).unwrap();
    drop((one, other));
    ends_balanced(system);
}
