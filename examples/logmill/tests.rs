//! The whole mill over loopback, with files in memory.

use crate::books::{Books, Count};
use crate::entrance::Entrance;
use crate::feed::{self, Sent, Style};
use crate::mill::{Mill, Settings};
use crate::sink::Output;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A file in memory, on a disk that may be stuck or full.
#[derive(Clone, Default)]
pub struct Disk(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
pub struct State {
    bytes: Vec<u8>,
    pub is_stuck: bool,
    /// So many writes fail, each after half of its bytes.
    failures: u32,
    has_failed: bool,
}

impl Disk {
    pub fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    pub fn rows(&self) -> Vec<Value> {
        let state = self.0.0.lock().unwrap();
        let text = std::str::from_utf8(&state.bytes).expect("JSON is UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (state, changed) = &*self.0;
        let mut state = changed.wait_while(state.lock().unwrap(), |state| state.is_stuck).unwrap();
        if state.has_failed {
            state.has_failed = false;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut count = bytes.len();
        if state.failures > 0 {
            state.failures -= 1;
            state.has_failed = true;
            count = count.div_ceil(2);
        }
        state.bytes.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A mill with one sink, which writes to these.
fn mill(settings: &Settings) -> (Mill, Disk, Disk) {
    let (lines, windows) = (Disk::default(), Disk::default());
    let outputs: Vec<(Output, Output)> = vec![(Box::new(lines.clone()), Box::new(windows.clone()))];
    (Mill::start_with(settings, outputs).unwrap(), lines, windows)
}

pub fn feeder(addr: SocketAddr, style: Style, lines: u64) -> JoinHandle<Sent> {
    thread::spawn(move || feed::feed(addr, style, lines).expect("the mill takes it"))
}

pub fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// Ends a mill: its books, which balance, and those of its system, which do too.
fn end(mill: Mill) -> Arc<Books> {
    mill.stop("the test is over");
    let (books, report) = mill.wait().unwrap();
    assert_eq!(report.ledger.balance(), 0, "{report}");
    assert!(books.balance(), "{books}");
    assert_eq!(books.lost.get(), 0, "{books}");
    books
}

pub fn counts<const N: usize>(counts: [&Count; N]) -> [u64; N] {
    counts.map(Count::get)
}

#[test]
fn each_line_of_each_style_is_in_the_file_once_and_in_a_window_once() {
    let (mill, lines, windows) = mill(&Settings { window: Duration::from_millis(20), ..Settings::default() });
    let feeders = [Style::Old, Style::New, Style::Counted].map(|style| feeder(mill.addr(), style, 3000));
    for feeder in feeders {
        assert_eq!(feeder.join().unwrap(), Sent { lines: 3000, garbage: 3 });
    }
    let books = end(mill);
    let Books { read, written, parsed, unparsable, panicked, .. } = &*books;
    assert_eq!(counts([read, written, parsed, unparsable, panicked]), [9000, 9000, 8991, 9, 0]);
    let rows = lines.rows();
    let numbers: BTreeSet<_> =
        rows.iter().map(|row| (row["connection"].as_u64(), row["number"].as_u64())).collect();
    assert_eq!((rows.len(), numbers.len()), (9000, 9000));
    assert_eq!(rows.iter().filter(|row| row["raw"] == "GET / HTTP/1.1").count(), 9);
    assert_eq!(rows.iter().filter(|row| row["structured"]["meta"][1][1] == "/a]b").count(), 5994);
    let closed = windows.rows();
    assert_eq!(closed.iter().map(|window| window["lines"].as_u64().unwrap()).sum::<u64>(), 8991);
    let hosts: BTreeSet<_> =
        closed.iter().map(|window| window["host"].as_str().unwrap().to_owned()).collect();
    assert_eq!(hosts.len(), 48);
}

#[test]
fn a_stuck_disk_stops_the_reading_of_sockets_and_loses_nothing() {
    let (mill, lines, _) = mill(&Settings { in_flight: 64, ..Settings::default() });
    lines.set(|disk| disk.is_stuck = true);
    let feeders = [Style::Old, Style::Counted].map(|style| feeder(mill.addr(), style, 2000));
    // Each place is taken, the entrance holds with a line, its mailbox is full, and each connection waits with a line.
    let full = 64 + 1 + Entrance::room(64) as u64 + 2;
    until(|| mill.books.read.get() >= full);
    assert_eq!((mill.books.read.get(), mill.books.connections.get()), (full, 2), "what the mill may hold");
    assert!(mill.books.waits.get() >= 2);
    assert_eq!(mill.books.written.get(), 0);
    lines.set(|disk| disk.is_stuck = false);
    feeders.into_iter().for_each(|feeder| assert_eq!(feeder.join().unwrap().lines, 2000));
    assert_eq!(end(mill).written.get(), 4000);
    assert_eq!(lines.rows().len(), 4000);
}

#[test]
fn a_full_disk_is_tried_again_and_goes_on_in_the_middle_of_a_line() {
    let (mill, lines, windows) = mill(&Settings::default());
    lines.set(|disk| disk.failures = 1);
    windows.set(|disk| disk.failures = 1);
    feeder(mill.addr(), Style::New, 500).join().unwrap();
    until(|| mill.books.written.get() == 500);
    end(mill);
    assert_eq!(lines.rows().len(), 500);
}

#[test]
fn a_panic_costs_the_line_at_which_it_happens_and_no_other() {
    let (mill, lines, _) = mill(&Settings { panic_every: 400, ..Settings::default() });
    let feeders = [Style::Old, Style::New].map(|style| feeder(mill.addr(), style, 2000));
    feeders.into_iter().for_each(|feeder| assert_eq!(feeder.join().unwrap().lines, 2000));
    let books = end(mill);
    assert_eq!(counts([&books.read, &books.panicked, &books.written]), [4000, 10, 3990]);
    assert_eq!(lines.rows().len(), 3990);
}

#[test]
fn an_end_in_the_middle_of_load_accounts_for_each_line_that_was_read() {
    let drain_for = Duration::from_millis(100);
    let (mill, lines, _) = mill(&Settings { drain_for, in_flight: 256, ..Settings::default() });
    let addr = mill.addr();
    let senders: Vec<_> = (0..3)
        .map(|_| {
            thread::spawn(move || {
                let mut stream = TcpStream::connect(addr).unwrap();
                // Until the mill cuts it off.
                while stream.write_all(b"<13>Oct 11 22:14:15 host app: one of very many\n").is_ok() {}
            })
        })
        .collect();
    until(|| mill.books.read.get() > 5000);
    let books = end(mill);
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    assert_eq!(lines.rows().len() as u64, books.written.get());
    assert!(TcpStream::connect(addr).is_err(), "the port is closed");
}

#[test]
fn who_has_connected_before_the_end_is_heard() {
    let (mill, lines, _) = mill(&Settings::default());
    for number in 0..60 {
        let mut stream = TcpStream::connect(mill.addr()).unwrap();
        writeln!(stream, "<13>{number}").unwrap();
    }
    assert_eq!(end(mill).read.get(), 60);
    let heard: BTreeSet<_> =
        lines.rows().iter().map(|row| row["message"].as_str().unwrap().to_owned()).collect();
    assert_eq!(heard, (0..60).map(|number| number.to_string()).collect());
}

#[test]
fn hosts_that_come_and_go_all_the_time_lose_nothing() {
    let shortest = Duration::from_millis(1);
    let (mill, lines, windows) =
        mill(&Settings { window: shortest, idle_after: shortest, ..Settings::default() });
    let mut stream = TcpStream::connect(mill.addr()).unwrap();
    let mut sent = 0;
    // Until many hosts have ended and come again. The more hosts take turns, the longer each is idle.
    while mill.books.hosts.get() < 2000 {
        sent += 1;
        let hosts = 1 + sent / 100 % 80;
        writeln!(stream, "<13>Oct 11 22:14:15 host-{} app: x", sent % hosts).unwrap();
        until(|| mill.books.written.get() + 8 > sent);
    }
    let books = end(mill);
    assert_eq!(books.written.get(), sent);
    assert_eq!(lines.rows().len() as u64, sent);
    assert_eq!(windows.rows().iter().map(|window| window["lines"].as_u64().unwrap()).sum::<u64>(), sent);
}

#[test]
fn an_idle_time_that_no_host_can_have_is_refused() {
    let outputs: Vec<(Output, Output)> = vec![(Box::new(Disk::default()), Box::new(Disk::default()))];
    let started = Mill::start_with(&Settings { idle_after: Duration::ZERO, ..Settings::default() }, outputs);
    let error = started.err().expect("it is refused").to_string();
    assert_eq!(error, "idle after 0ns: must be at least 1ms");
}

#[test]
fn hostile_streams_harm_nobody_and_are_kept() {
    let (mill, lines, _) = mill(&Settings { line_max: 1000, ..Settings::default() });
    let send = |bytes: &[u8]| {
        use std::io::Read;
        let mut stream = TcpStream::connect(mill.addr()).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    };
    send(&[&b"<13>"[..], &b"x".repeat(1_000_000), b"\n<13>after\n"].concat());
    send(&[&b"1000000 <13>"[..], &b"x".repeat(999_996), b"<13>after"].concat());
    send(&[0xff; 100]);
    send(b"999999999 <13>never");
    send(b"\n\r\n\n");
    send(b"");
    let books = end(mill);
    assert_eq!(counts([&books.read, &books.unparsable, &books.empty]), [6, 4, 3]);
    let rows = lines.rows();
    assert_eq!(rows.iter().filter(|row| row["message"] == "after").count(), 2);
    let cut = rows.iter().filter(|row| row["unparsable"] == "expected the end of the line at byte 1000");
    assert_eq!(cut.map(|row| row["raw"].as_str().unwrap().len()).collect::<Vec<_>>(), [1000, 1000]);
    assert_eq!(rows.iter().filter(|row| row["raw_hex"] == "ff".repeat(100)).count(), 1);
}

#[test]
fn lines_that_trickle_in_leave_others_their_turn_and_are_read_once_they_end() {
    let (mill, lines, _) = mill(&Settings::default());
    let mut slow: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(mill.addr()).unwrap()).collect();
    let mut sent = 0;
    for byte in b"<13>slow" {
        slow.iter_mut().for_each(|stream| stream.write_all(&[*byte]).unwrap());
        sent += feeder(mill.addr(), Style::New, 50).join().unwrap().lines;
    }
    // They are read while the slow ones are at it.
    until(|| mill.books.written.get() == sent);
    slow.iter_mut().for_each(|stream| stream.write_all(b"\n").unwrap());
    drop(slow);
    end(mill);
    assert_eq!(lines.rows().iter().filter(|row| row["message"] == "slow").count(), 200);
}
