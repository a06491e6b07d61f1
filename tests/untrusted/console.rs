//! Clients of the console that mean harm: slow heads, endless heads, ten thousand connections, requests that are cut, and
//! bodies where none may be.

use super::{CONNECTED, IN_USE, LONG, alone, connect, descriptors_max, wait_until};
use pointsman::console::StatsServer;
use pointsman::net::SocketAddress;
use pointsman::prelude::*;
use std::io::ErrorKind::WouldBlock;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest head, as the documentation of the console states it.
const HEAD_MAX: usize = 8 * 1024;
/// What a connection may cost: its actor, its place at the driver, and a head in a buffer that has doubled.
const CLIENT_MAX: usize = 12 * 1024 + 2 * HEAD_MAX;
/// What the pages may cost that are made meanwhile for other clients.
const PAGES_MAX: usize = 1 << 20;

/// Where the hostile clients are to go. They do what their test says, and are a process of their own, since each process has
/// so many descriptors only, and their memory is none of the server's.
const CLIENTS_OF: &str = "POINTSMAN_TEST_CONSOLE_CLIENTS_OF";

#[derive(Debug, Clone, Copy)]
enum Harm {
    /// So many connections that say nothing, and come again when they are ended.
    Silent(usize),
    /// Heads of which a byte comes now and then.
    Trickle,
    /// Heads of a megabyte.
    LongHeads,
    /// Requests that end within their heads.
    Cut,
    /// Requests with a body of a megabyte, and some whose body never ends.
    Bodies,
}

const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nUser-Agent: hostile\r\n\r\n";

/// Reads to the end, however the connection ends.
fn read_all(client: &mut TcpStream) -> Vec<u8> {
    let mut text = Vec::new();
    let _ = client.read_to_end(&mut text);
    text
}

fn status(text: &[u8]) -> Option<u16> {
    std::str::from_utf8(text.get(9..12)?).ok()?.parse().ok()
}

/// Connects, and reads without waiting.
fn silent(addr: SocketAddr) -> TcpStream {
    let client = connect(addr);
    client.set_nonblocking(true).unwrap();
    client
}

/// The hostile process: it does harm until its input ends, and says when it has begun.
fn do_harm(harm: Harm, addr: SocketAddr) {
    let is_over = AtomicBool::new(false);
    let goes_on = &|| !is_over.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        match harm {
            Harm::Silent(count) => {
                scope.spawn(move || {
                    let mut clients: Vec<TcpStream> = (0..count).map(|_| silent(addr)).collect();
                    println!("{CONNECTED}");
                    while goes_on() {
                        for client in clients.iter_mut().take_while(|_| goes_on()) {
                            let is_open =
                                client.read(&mut [0; 1]).is_err_and(|error| error.kind() == WouldBlock);
                            if !is_open {
                                *client = silent(addr);
                            }
                        }
                        std::thread::yield_now();
                    }
                });
            }
            Harm::Trickle => {
                scope.spawn(|| {
                    let mut clients: Vec<TcpStream> = (0..300).map(|_| connect(addr)).collect();
                    for client in &mut clients {
                        let _ = client.write_all(b"GET /metrics HTTP/1.1\r\nX: ");
                    }
                    println!("{CONNECTED}");
                    while goes_on() {
                        for client in &mut clients {
                            if client.write_all(b"x").is_err() {
                                *client = connect(addr);
                            }
                        }
                        std::thread::sleep(Duration::from_millis(5));
                    }
                });
            }
            Harm::LongHeads => {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let line = format!("X: {}\r\n", "x".repeat(1019));
                        while goes_on() {
                            let mut client = connect(addr);
                            let _ = client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n");
                            (0..1024).all(|_| client.write_all(line.as_bytes()).is_ok());
                            // A server that closes with unread bytes resets the connection, and the answer may be lost.
                            assert!(matches!(status(&read_all(&mut client)), Some(431 | 408) | None));
                        }
                    });
                }
                println!("{CONNECTED}");
            }
            Harm::Cut => {
                for thread in 0..4 {
                    scope.spawn(move || {
                        for length in (0..REQUEST.len()).cycle().take_while(|_| goes_on()) {
                            let mut client = connect(addr);
                            let _ = client.write_all(&REQUEST[..length]);
                            if thread % 2 == 0 {
                                let _ = client.shutdown(Shutdown::Write);
                                let status = status(&read_all(&mut client));
                                assert_eq!(status, (length > 0).then_some(400), "{length} bytes");
                            }
                        }
                    });
                }
                println!("{CONNECTED}");
            }
            Harm::Bodies => {
                let body = vec![b'x'; 1 << 20];
                for thread in 0..4 {
                    let body = body.clone();
                    scope.spawn(move || {
                        while goes_on() {
                            let mut client = connect(addr);
                            let length = if thread == 0 { u64::MAX } else { body.len() as u64 };
                            let head = format!(
                                "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
                            );
                            let _ = client.write_all(head.as_bytes());
                            let _ = client.write_all(&body);
                            // The first one never ends its body, and is cut off.
                            while thread == 0 && goes_on() && client.write_all(&body).is_ok() {}
                            drop(client);
                        }
                    });
                }
                println!("{CONNECTED}");
            }
        }
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Hostile clients that are at it.
struct Hostile {
    process: Child,
    input: Option<ChildStdin>,
}

impl Hostile {
    /// Starts a process that runs the test `test` as the clients, and returns when they are at it.
    fn start(test: &str, addr: SocketAddr) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(CLIENTS_OF, addr.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        let mut said = said.lines().map_while(Result::ok);
        assert!(said.any(|line| line.contains(CONNECTED)), "the clients have failed");
        // What else they say is thrown away, and never fills the pipe.
        std::thread::spawn(move || said.for_each(drop));
        let input = process.stdin.take();
        Self { process, input }
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(
            self.process.wait().unwrap().success(),
            "the hostile clients saw an answer that they must not see"
        );
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        // Only where the test fails.
        let _ = self.process.kill();
    }
}

/// The process's open descriptors; 0 where the operating system does not list them.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

struct Stage {
    system: System,
    server: StatsServer,
    places: usize,
    in_use_before: usize,
    descriptors_before: usize,
}

impl Stage {
    fn new(places: usize) -> Self {
        let system = System::builder("console")
            .dispatcher("default", Dispatcher::work_stealing().threads(2))
            .build()
            .unwrap();
        let server = system
            .stats_server(SocketAddress::tcp("127.0.0.1:0"))
            .max_connections(places)
            // No client is ended by the clock.
            .request_within(LONG)
            .response_within(LONG)
            .spawn()
            .unwrap();
        let mut stage = Self { system, server, places, in_use_before: 0, descriptors_before: 0 };
        // What the first page costs is none of the others' costs.
        assert!(stage.page().is_some());
        wait_until(|| stage.server.connections() == 0);
        stage.in_use_before = IN_USE.load(Ordering::Relaxed);
        stage.descriptors_before = descriptors();
        stage
    }

    fn addr(&self) -> SocketAddr {
        self.server.local_addr().expect("a TCP port")
    }

    /// Asks for the statistics as a well-behaved client does; `None` if the connection was ended for another client.
    fn page(&self) -> Option<String> {
        let mut client = connect(self.addr());
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
        let text = String::from_utf8(read_all(&mut client)).expect("the page is text");
        if text.is_empty() {
            return None;
        }
        let (head, page) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", page.len())), "{head}: {} bytes", page.len());
        assert!(page.ends_with("# EOF\n"), "the whole page");
        Some(page.to_owned())
    }

    /// Lets a well-behaved client ask again and again; prints its times, and returns how often it had to ask again.
    fn serves_others(&self, during: &str) -> usize {
        let (mut times, mut again) = (Vec::new(), 0);
        let (mut in_use, mut open) = (0, 0);
        while times.len() < 200 {
            let began = Instant::now();
            while self.page().is_none() {
                assert!(began.elapsed() < LONG, "it is never served");
                again += 1;
            }
            times.push(began.elapsed());
            in_use = in_use.max(IN_USE.load(Ordering::Relaxed).saturating_sub(self.in_use_before));
            open = open.max(descriptors().saturating_sub(self.descriptors_before));
        }
        times.sort();
        println!(
            "during {during}: p50 {:?}, p99 {:?}, asked again {again} times; at most {in_use} bytes and {open} descriptors \
             more",
            times[times.len() / 2],
            times[times.len() * 99 / 100]
        );
        let bound = self.places * CLIENT_MAX + PAGES_MAX;
        assert!(in_use <= bound, "{in_use} bytes, and at most {bound} are allowed");
        // The client here has one, and the list of descriptors another.
        assert!(open <= self.places + 2, "{open} descriptors for {} places", self.places);
        again
    }

    fn end(self) {
        wait_until(|| self.server.connections() == 0);
        wait_until(|| descriptors() <= self.descriptors_before);
        let ledger = self.system.shutdown(LONG).unwrap();
        assert_eq!(ledger.balance(), 0, "{ledger}");
    }
}

/// Runs one kind of harm against a server; `test` is the test that runs it, which the hostile process runs too. Returns how
/// often the others had to ask again.
fn run(test: &str, harm: Harm, places: usize) -> usize {
    if let Ok(addr) = std::env::var(CLIENTS_OF) {
        do_harm(harm, addr.parse().expect("an address"));
        return 0;
    }
    let _alone = alone();
    let stage = Stage::new(places);
    stage.serves_others("nothing");
    let hostile = Hostile::start(test, stage.addr());
    let again = stage.serves_others(&format!("{harm:?}"));
    hostile.end();
    stage.serves_others("the time after it");
    stage.end();
    again
}

/// Ten thousand, or as many as the process may have descriptors.
fn silent_max() -> usize {
    descriptors_max().saturating_sub(200).min(10_000)
}

/// More places than hostile clients and others need.
const ROOM: usize = 512;

#[test]
fn ten_thousand_connections_hold_no_other_client_up() {
    let silent = silent_max();
    let places = silent + 64;
    let test = "console::ten_thousand_connections_hold_no_other_client_up";
    assert_eq!(run(test, Harm::Silent(silent), places), 0, "there is room for all");
}

#[test]
fn many_connections_at_64_places_keep_no_other_client_out() {
    // A client that says nothing for long gives way: others ask again if that happens to them, and are served. Some 170
    // connections give way in a second, so ten thousand take a minute, and only an optimised build has so many.
    let count = if cfg!(debug_assertions) { 1_000 } else { silent_max() };
    let test = "console::many_connections_at_64_places_keep_no_other_client_out";
    run(test, Harm::Silent(count), 64);
}

#[test]
fn slow_heads_hold_no_other_client_up() {
    let again = run("console::slow_heads_hold_no_other_client_up", Harm::Trickle, ROOM);
    assert_eq!(again, 0, "there is room for all");
}

#[test]
fn heads_of_a_megabyte_hold_no_other_client_up() {
    let again = run("console::heads_of_a_megabyte_hold_no_other_client_up", Harm::LongHeads, ROOM);
    assert_eq!(again, 0, "there is room for all");
}

#[test]
fn requests_that_are_cut_hold_no_other_client_up() {
    let again = run("console::requests_that_are_cut_hold_no_other_client_up", Harm::Cut, ROOM);
    assert_eq!(again, 0, "there is room for all");
}

#[test]
fn bodies_where_none_may_be_hold_no_other_client_up() {
    let again = run("console::bodies_where_none_may_be_hold_no_other_client_up", Harm::Bodies, ROOM);
    assert_eq!(again, 0, "there is room for all");
}
