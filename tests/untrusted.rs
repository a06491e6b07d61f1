//! Peers that nobody should trust, against the bound on memory that `src/net` states; and how others fare meanwhile.
//!
//! The clients of the console are in `untrusted/console.rs`. Elsewhere: a peer that sends and never reads (`it/net.rs`,
//! `shardcache.rs`), one that pours (`it/net.rs`), no more file descriptors (`it/net.rs`), streams that are no frames
//! (`corpus.rs`, `shardcache.rs`, the example `logmill`).
//!
//! How others fare, each test prints with `--nocapture`; what it printed on a quiet machine, in an optimised build, is in
//! `BENCHMARKS.md`.
#![cfg(feature = "net")]

use pointsman::net::{Connection, Listener, ReadOutcome, Ready, SocketAddress};
use pointsman::prelude::*;
use pointsman::time::ManualClock;
use std::alloc::{GlobalAlloc, Layout};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[path = "untrusted/console.rs"]
mod console;

/// Only failing tests wait for so long.
const LONG: Duration = Duration::from_secs(60);
/// A line that is longer ends its connection.
const LINE_MAX: usize = 8 * 1024;
const READ_MAX: usize = 4 * 1024;
const MARKS: (usize, usize) = (4 * 1024, 16 * 1024);
/// What a connection may cost that has little to say: its actor, its place at the driver, and its first buffers.
const QUIET_MAX: usize = 12 * 1024;
/// And one that does its worst: a line and what one turn reads behind it; what may wait to be sent and what one turn
/// adds, in two buffers; each of them up to twice as large as what is in it.
const WORST_MAX: usize = QUIET_MAX + 2 * (LINE_MAX + READ_MAX) + 2 * 2 * (MARKS.1 + LINE_MAX + READ_MAX);

/// Counts the bytes that are in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller has promised.
        unsafe { std::alloc::System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller has promised.
        unsafe { std::alloc::System.dealloc(block, layout) }
    }
}

/// The count is the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends each line back.
struct Echo {
    connection: Connection,
    /// Told once when too much waits to be sent.
    congested: Option<Sender<()>>,
}

enum Message {
    Ready(Ready),
    Mute,
}

impl From<Ready> for Message {
    fn from(ready: Ready) -> Self {
        Message::Ready(ready)
    }
}

impl Actor for Echo {
    type Message = Message;
    fn receive(&mut self, message: Message, ctx: &mut Context<Message>) -> HandlerResult {
        let connection = &mut self.connection;
        match message {
            Message::Ready(ready) => connection.ready(ready),
            Message::Mute => {
                ctx.stop();
                return Ok(());
            }
        }
        match connection.fill(READ_MAX) {
            ReadOutcome::Read(_) => {}
            ReadOutcome::Blocked => return Ok(()),
            ReadOutcome::Eof | ReadOutcome::Closed(_) => {
                ctx.stop();
                return Ok(());
            }
        }
        let received = connection.received();
        let whole = received.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if received.len() - whole > LINE_MAX {
            connection.abort();
            ctx.stop();
            return Ok(());
        }
        let lines = received[..whole].to_vec();
        connection.consume(whole);
        connection.write(&lines);
        connection.flush();
        if connection.is_congested() {
            if let Some(congested) = self.congested.take() {
                congested.send(())?;
            }
        }
        Ok(())
    }
}

struct Stage {
    system: System,
    listener: Listener,
    /// One for each connection that has become congested.
    congested: Receiver<()>,
    in_use_before: usize,
}

impl Stage {
    fn new() -> Self {
        let system = System::builder("untrusted")
            .dispatcher("default", Dispatcher::work_stealing().threads(2))
            .build()
            .unwrap();
        let (congested, told) = channel();
        let listener = system
            .listener("echo", SocketAddress::tcp("127.0.0.1:0"))
            .marks(MARKS.0, MARKS.1)
            .spawn(move |connection, _| Echo { connection, congested: Some(congested.clone()) })
            .unwrap();
        let stage = Self { system, listener, congested: told, in_use_before: 0 };
        // What the first connection costs, such as the threads' own, is none of the others' costs.
        echoes(&mut stage.connect(), b"first\n");
        Self { in_use_before: IN_USE.load(Ordering::Relaxed), ..stage }
    }

    fn addr(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    fn connect(&self) -> TcpStream {
        connect(self.addr())
    }

    /// What has come to be in use since the beginning.
    fn in_use(&self) -> usize {
        IN_USE.load(Ordering::Relaxed).saturating_sub(self.in_use_before)
    }

    /// Somebody who does no harm, and is served; tells how fast.
    fn serves_others(&self, during: &str) {
        let mut client = self.connect();
        let mut times: Vec<Duration> = (0..200)
            .map(|_| {
                let began = Instant::now();
                echoes(&mut client, b"still there?\n");
                began.elapsed()
            })
            .collect();
        times.sort();
        println!(
            "during {during}: p50 {:?}, p99 {:?}",
            times[times.len() / 2],
            times[times.len() * 99 / 100]
        );
    }

    fn end(self) {
        let ledger = self.system.shutdown(LONG).unwrap();
        assert_eq!(ledger.balance(), 0, "{ledger}");
    }
}

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

fn echoes(client: &mut TcpStream, line: &[u8]) {
    client.write_all(line).unwrap();
    let mut back = vec![0; line.len()];
    client.read_exact(&mut back).unwrap();
    assert_eq!(back, line);
}

/// The end of a connection, however it comes.
fn is_over(client: &mut TcpStream) -> bool {
    match client.read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

fn wait_until(seen: impl Fn() -> bool) {
    let began = Instant::now();
    while !seen() {
        assert!(began.elapsed() < LONG, "it never comes");
        std::thread::yield_now();
    }
}

/// As many descriptors as may be had.
fn descriptors_max() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain calls with a pointer to a living structure.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        limit.rlim_cur = limit.rlim_max;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
    }
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

/// Where the clients are to go; they are a process of their own, since each process has so many descriptors only.
const CLIENTS_OF: &str = "POINTSMAN_TEST_CLIENTS_OF";
const CONNECTED: &str = "the clients are connected";

#[test]
fn ten_thousand_connections_are_served_within_the_bound() {
    let count = descriptors_max().saturating_sub(200).min(10_000);
    if let Ok(addr) = std::env::var(CLIENTS_OF) {
        return ten_thousand_clients(addr.parse().unwrap(), count);
    }
    let _alone = alone();
    let stage = Stage::new();
    let mut clients = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ten_thousand_connections_are_served_within_the_bound", "--nocapture"])
        .env(CLIENTS_OF, stage.addr().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(clients.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut said = said.inspect(|line| println!("clients: {line}"));
    assert!(said.any(|line| line.contains(CONNECTED)), "the clients have failed");
    assert!(stage.listener.open_connections() >= count);
    let each = stage.in_use() / count;
    println!("{count} connections: {each} bytes each");
    assert!(each <= QUIET_MAX, "{each} bytes for each of {count} connections");
    stage.serves_others("many connections");
    // They go on when their input ends.
    drop(clients.stdin.take());
    said.for_each(drop);
    assert!(clients.wait().unwrap().success());
    wait_until(|| stage.listener.open_connections() == 0);
    stage.end();
}

fn ten_thousand_clients(addr: SocketAddr, count: usize) {
    let mut clients: Vec<TcpStream> = Vec::with_capacity(count);
    for number in 0..count {
        clients.push(connect(addr));
        // No more of them wait to be accepted than the queue there has room for.
        if number % 64 == 0 {
            echoes(&mut clients[number], b"in\n");
        }
    }
    clients.iter_mut().for_each(|client| echoes(client, b"hello\n"));
    println!("{CONNECTED}");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    clients.iter_mut().for_each(|client| echoes(client, b"still here\n"));
}

#[test]
fn lines_that_trickle_in_hold_nobody_up_and_are_cut_off_at_their_limit() {
    let _alone = alone();
    let stage = Stage::new();
    stage.serves_others("nothing");
    let mut slow: Vec<TcpStream> = (0..300).map(|_| stage.connect()).collect();
    let served = AtomicBool::new(false);
    let length = std::thread::scope(|scope| {
        let trickling = scope.spawn(|| {
            let mut length = 0;
            while length < LINE_MAX / 4 && !served.load(Ordering::Relaxed) {
                slow.iter_mut().for_each(|client| client.write_all(b"x").unwrap());
                length += 1;
            }
            length
        });
        stage.serves_others("a trickle");
        served.store(true, Ordering::Relaxed);
        trickling.join().unwrap()
    });
    // What is not consumed, in a buffer that has doubled.
    let each = QUIET_MAX + 2 * length;
    assert!(stage.in_use() <= (slow.len() + 2) * each, "{} bytes", stage.in_use());
    // Those that end their lines are answered, those that never do are cut off.
    let (ending, endless) = slow.split_at_mut(150);
    for client in ending {
        client.write_all(b"\n").unwrap();
        let mut back = vec![0; length + 1];
        client.read_exact(&mut back).unwrap();
        assert!(back.starts_with(&vec![b'x'; length]) && back.ends_with(b"\n"));
    }
    for client in endless {
        while client.write_all(&[b'x'; 256]).is_ok() {}
        assert!(is_over(client));
    }
    wait_until(|| stage.listener.open_connections() <= 150);
    stage.end();
}

#[test]
fn floods_of_tiny_lines_whose_senders_never_read_hold_nobody_up_and_stay_within_the_bound() {
    const FLOODS: usize = 8;
    let _alone = alone();
    let stage = Stage::new();
    let flood: Vec<TcpStream> = (0..FLOODS).map(|_| stage.connect()).collect();
    let senders: Vec<_> = flood
        .iter()
        .map(|stream| {
            let mut stream = stream.try_clone().unwrap();
            // Each byte is a line.
            std::thread::spawn(move || while stream.write_all(&[b'\n'; 1024]).is_ok() {})
        })
        .collect();
    for _ in 0..FLOODS {
        stage.congested.recv_timeout(LONG).unwrap();
    }
    stage.serves_others("floods");
    let in_use = stage.in_use();
    println!("{FLOODS} floods: {in_use} bytes");
    // And as many threads here, which have a little of their own.
    assert!(in_use <= (FLOODS + 1) * (WORST_MAX + 4096), "{in_use} bytes");
    for (stream, sender) in flood.iter().zip(senders) {
        // Their reading half stays open: bytes that come to a closed one would reset the connection.
        stream.shutdown(Shutdown::Write).unwrap();
        sender.join().unwrap();
    }
    // They are closed by the next line: the bytes that wait for them are kept until then.
    wait_until(|| stage.listener.open_connections() == FLOODS);
    drop(flood);
    wait_until(|| stage.listener.open_connections() == 0);
    stage.end();
}

#[test]
fn peers_that_end_their_half_and_keep_the_other_are_forgotten() {
    let _alone = alone();
    let stage = Stage::new();
    let half_open: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut client = stage.connect();
            echoes(&mut client, b"hello\n");
            client.shutdown(Shutdown::Write).unwrap();
            client
        })
        .collect();
    wait_until(|| stage.listener.open_connections() == 0);
    stage.serves_others("half-open connections");
    for mut client in half_open {
        assert!(is_over(&mut client));
    }
    stage.end();
}

/// Answers each line with a lot, and ends at the line `quit`.
struct Generous(Connection);

/// More than the operating system keeps for both ends.
const ANSWER: usize = 16 << 20;

impl Actor for Generous {
    type Message = Ready;
    fn receive(&mut self, ready: Ready, ctx: &mut Context<Ready>) -> HandlerResult {
        let Generous(connection) = self;
        connection.ready(ready);
        if let ReadOutcome::Eof | ReadOutcome::Closed(_) = connection.fill(READ_MAX) {
            ctx.stop();
        }
        while let Some(at) = connection.received().iter().position(|&byte| byte == b'\n') {
            match &connection.received()[..at] {
                b"quit" => ctx.stop(),
                _ => connection.write(&vec![b'x'; ANSWER]),
            }
            connection.consume(at + 1);
        }
        connection.flush();
        Ok(())
    }
}

#[test]
fn peers_that_ask_quit_and_never_read_hold_no_more_than_the_bound() {
    const PEERS: usize = 60;
    const PLACES: usize = 20;
    const LINGER_BYTES: usize = 3 * ANSWER;
    let _alone = alone();
    let stage = Stage::new();
    let listener = stage
        .system
        .listener("generous", SocketAddress::tcp("127.0.0.1:0"))
        .linger(LONG)
        .linger_bytes(LINGER_BYTES)
        .max_connections(PLACES)
        .spawn(|connection, _| Generous(connection))
        .unwrap();
    let addr = listener.local_addr().unwrap();
    let before = stage.in_use();
    let mut peers: Vec<TcpStream> = (0..PEERS).map(|_| connect(addr)).collect();
    for peer in &mut peers {
        peer.write_all(b"give\nquit\n").unwrap();
    }
    // Each one that is cut leaves its place to the next.
    let kept = LINGER_BYTES / ANSWER;
    wait_until(|| listener.linger_cuts() == (PEERS - kept) as u64 && listener.open_connections() == 0);
    // A cut is counted before its socket is closed.
    wait_until(|| listener.lingering_connections() == kept);
    assert_eq!(listener.accepted(), PEERS as u64);
    let in_use = stage.in_use() - before;
    println!("{PEERS} peers that never read: {in_use} bytes");
    assert!(in_use <= LINGER_BYTES + PEERS * QUIET_MAX, "{in_use} bytes");
    stage.serves_others("those that never read");
    drop(peers);
    wait_until(|| listener.lingering_connections() == 0);
    stage.end();
}

#[test]
fn mute_peers_are_shown_out_by_the_receive_timeout_and_make_room() {
    const MUTE: usize = 50;
    let _alone = alone();
    let clock = ManualClock::new();
    let system = System::builder("mute").clock(clock.clone()).build().unwrap();
    let (began, begins) = channel();
    let listener = system
        .listener("echo", SocketAddress::tcp("127.0.0.1:0"))
        .max_connections(MUTE)
        .spawn(move |connection, ctx: &mut Context<Message>| {
            ctx.set_receive_timeout(Duration::from_secs(10), |_| Message::Mute).expect("it is long enough");
            let _ = began.send(());
            Echo { connection, congested: None }
        })
        .unwrap();
    let addr = listener.local_addr().unwrap();
    let mut mute: Vec<TcpStream> = (0..MUTE).map(|_| connect(addr)).collect();
    for _ in 0..MUTE {
        begins.recv_timeout(LONG).unwrap();
    }
    let mut waits = connect(addr);
    waits.write_all(b"is there room?\n").unwrap();
    assert_eq!(listener.open_connections(), MUTE);
    // The idle time begins when a turn has ended, which may be after a step: then the next one is meant for it.
    wait_until(|| {
        clock.advance(Duration::from_secs(10));
        listener.accepted() == MUTE as u64 + 1 && listener.open_connections() == 0
    });
    mute.iter_mut().for_each(|client| assert!(is_over(client)));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}
