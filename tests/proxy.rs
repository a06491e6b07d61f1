//! The example `proxy`, between clients and an upstream server of the test.
#![cfg(feature = "net")]

#[path = "../examples/proxy.rs"]
mod proxy;

use pointsman::net::Listener;
use pointsman::prelude::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// Only failing tests wait for so long.
const LONG: Duration = Duration::from_secs(30);

fn connect(proxy: &Listener) -> TcpStream {
    let client = TcpStream::connect(proxy.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client
}

fn accept(server: &TcpListener) -> TcpStream {
    let (upstream, _) = server.accept().unwrap();
    upstream.set_read_timeout(Some(LONG)).unwrap();
    upstream
}

fn start() -> (System, TcpListener, Listener) {
    let system = System::builder("proxy").build().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = proxy::start(&system, "127.0.0.1:0", &server.local_addr().unwrap().to_string()).unwrap();
    (system, server, proxy)
}

/// Ends in phases; each client has its answers by then.
fn ends_clean(system: System) {
    let report = system.coordinated_shutdown().run("the test is over").wait().unwrap();
    assert_eq!(report.ledger.balance(), 0, "{report}");
    system.shutdown(LONG).unwrap();
}

fn rest(mut from: impl Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn lines_go_both_ways_byte_by_byte_or_at_once_until_both_have_ended() {
    let (system, server, proxy) = start();
    let mut client = connect(&proxy);
    let mut upstream = accept(&server);
    for byte in b"one\r\ntwo\n" {
        client.write_all(&[*byte]).unwrap();
    }
    client.write_all(b"three\nthe rest").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&upstream), "one\ntwo\nthree\nthe rest\n");
    upstream.write_all(b"answer\n").unwrap();
    drop(upstream);
    assert_eq!(rest(client), "answer\n");
    ends_clean(system);
}

#[test]
fn a_large_answer_comes_whole_to_a_client_that_reads_late() {
    let (system, server, proxy) = start();
    let client = connect(&proxy);
    let mut upstream = accept(&server);
    let line = "x".repeat(999) + "\n";
    let text = line.repeat(4000);
    let expected = text.clone();
    let writer = std::thread::spawn(move || upstream.write_all(text.as_bytes()).unwrap());
    assert!(rest(client) == expected);
    writer.join().unwrap();
    ends_clean(system);
}

#[test]
fn a_client_hears_why_there_is_no_upstream_server() {
    let (system, server, proxy) = start();
    let addr = server.local_addr().unwrap();
    drop(server);
    let answer = rest(connect(&proxy));
    assert!(answer.starts_with(&format!("ERROR cannot connect to {addr}: ")), "{answer}");
    ends_clean(system);
}

#[test]
fn a_line_that_is_too_long_ends_its_client_alone() {
    let (system, server, proxy) = start();
    let (mut client, mut other) = (connect(&proxy), connect(&proxy));
    let upstreams = [accept(&server), accept(&server)];
    client.write_all(b"fine\n").unwrap();
    client.write_all(&[b'x'; 64 * 1024 + 2]).unwrap();
    let answer = rest(client);
    assert!(answer.starts_with("ERROR the line at byte 5 has more than the 65536 bytes"), "{answer}");
    other.write_all(b"still here\n").unwrap();
    let mut lines = Vec::new();
    for upstream in &upstreams {
        upstream.set_read_timeout(Some(LONG)).unwrap();
        let mut line = String::new();
        BufReader::new(upstream).read_line(&mut line).unwrap();
        lines.push(line);
    }
    lines.sort_unstable();
    assert_eq!(lines, ["fine\n", "still here\n"]);
    drop(upstreams);
    ends_clean(system);
}

#[test]
fn a_shutdown_lets_the_upstream_server_answer() {
    let (system, server, proxy) = start();
    let mut client = connect(&proxy);
    let mut upstream = accept(&server);
    client.write_all(b"question\n").unwrap();
    let mut lines = BufReader::new(upstream.try_clone().unwrap());
    let mut question = String::new();
    lines.read_line(&mut question).unwrap();
    let run = system.coordinated_shutdown().run("the end");
    assert_eq!(rest(lines), "", "the proxy has ended its half");
    upstream.write_all(b"answer\n").unwrap();
    drop(upstream);
    assert_eq!(rest(client), "answer\n");
    assert_eq!(run.wait().unwrap().ledger.balance(), 0);
    system.shutdown(LONG).unwrap();
}
