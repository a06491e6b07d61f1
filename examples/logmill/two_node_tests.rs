//! The mill over two nodes of one process, with files in memory, by a clock that the tests move.

use crate::books::Books;
use crate::entrance::Entrance;
use crate::feed::{Sent, Style};
use crate::forwarding_books::ForwardingBooks;
use crate::mill::Settings;
use crate::node_report::NodeReport;
use crate::reading_node::ReadingNode;
use crate::shipment;
use crate::tests::{Disk, counts, feeder, until};
use crate::writing_node::WritingNode;
use pointsman::SystemBuilder;
use pointsman::prelude::*;
use pointsman::remote::{
    ChannelKind, Engine, EngineError, Fabric, Identity, InProcess, Inbound, LinkState, Node,
};
use pointsman::time::ManualClock;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A network of this process, whose nodes can be made deaf.
struct Network {
    in_process: InProcess,
    clock: ManualClock,
}

/// Whether a node hears nothing.
#[derive(Clone, Default)]
struct Deafness(Arc<AtomicBool>);

/// An engine whose node hears nothing while it is deaf.
struct Deafened {
    engine: InProcess,
    deafness: Deafness,
}

struct Ears {
    inbound: Arc<dyn Inbound>,
    deafness: Deafness,
}

impl Deafness {
    fn set(&self, is_deaf: bool) {
        // Ordering: Relaxed; a test waits for what follows.
        self.0.store(is_deaf, Ordering::Relaxed);
    }
}

impl Engine for Deafened {
    fn start(
        self: Box<Self>,
        node: &Identity,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Arc<dyn Fabric>, EngineError> {
        Box::new(self.engine).start(node, Arc::new(Ears { inbound, deafness: self.deafness }))
    }
}

impl Inbound for Ears {
    fn up(&self, max_frame: usize) {
        self.inbound.up(max_frame);
    }

    fn down(&self, why: &str) {
        self.inbound.down(why);
    }

    fn frame(&self, from: &str, kind: ChannelKind, frame: Vec<u8>) {
        // Ordering: Relaxed; see `Deafness::set`.
        if !self.deafness.0.load(Ordering::Relaxed) {
            self.inbound.frame(from, kind, frame);
        }
    }

    fn no_listener(&self, node: &str, uid: u64) {
        self.inbound.no_listener(node, uid);
    }
}

/// A node that writes, with its files.
struct Writer {
    node: WritingNode,
    deafness: Deafness,
    lines: Disk,
    windows: Disk,
}

impl Network {
    fn new() -> Self {
        Self { in_process: InProcess::new(), clock: ManualClock::new() }
    }

    fn node(&self, name: &str, deafness: &Deafness) -> (SystemBuilder, Node) {
        let engine = Deafened { engine: self.in_process.clone(), deafness: deafness.clone() };
        (System::builder("logmill").clock(self.clock.clone()), Node::new(name).engine(engine))
    }

    fn reader(&self, settings: &Settings, deafness: &Deafness) -> ReadingNode {
        let (builder, node) = self.node("n1", deafness);
        ReadingNode::start(builder, node, "n2", settings).expect("n1 starts")
    }

    /// Starts n2, whose disk may be stuck.
    fn writer(&self, settings: &Settings, is_stuck: bool) -> Writer {
        let (deafness, lines, windows) = (Deafness::default(), Disk::default(), Disk::default());
        lines.set(|disk| disk.is_stuck = is_stuck);
        let (builder, node) = self.node("n2", &deafness);
        let outputs = vec![(Box::new(lines.clone()) as _, Box::new(windows.clone()) as _)];
        let node = WritingNode::start(builder, node, settings, outputs).expect("n2 starts");
        Writer { node, deafness, lines, windows }
    }

    /// Lets time pass until the condition holds. After each step all nodes have heard what was sent.
    fn until(&self, condition: impl Fn() -> bool) {
        while !condition() {
            self.clock.advance(Duration::from_millis(100));
            self.in_process.settle();
            std::thread::yield_now();
        }
    }
}

fn stop(system: &System) {
    drop(system.coordinated_shutdown().run("the test is over"));
}

fn end_reader(node: ReadingNode) -> (Arc<ForwardingBooks>, NodeReport) {
    stop(node.system());
    let (books, report) = node.wait().expect("n1 ends");
    assert!(books.balance(), "{books}");
    assert_eq!(books.lines.lost.get(), 0, "{books}");
    assert!(report.is_exact(), "{report}");
    (books, report)
}

impl Writer {
    /// Ends n2: its books, which balance, and the rows of its files.
    fn end(self) -> (Arc<Books>, NodeReport, Vec<Value>) {
        stop(self.node.system());
        let (books, report) = self.node.wait().expect("n2 ends");
        assert!(books.balance(), "{books}");
        assert!(report.is_exact(), "{report}");
        let in_windows =
            self.windows.rows().iter().map(|window| window["lines"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(in_windows, books.parsed.get());
        (books, report, self.lines.rows())
    }
}

/// The lines of a file, each by its connection and its number there.
fn identities(rows: &[Value]) -> BTreeSet<(u64, u64)> {
    let identity = |row: &Value| (row["connection"].as_u64().unwrap(), row["number"].as_u64().unwrap());
    let all: BTreeSet<_> = rows.iter().map(identity).collect();
    assert_eq!(all.len(), rows.len(), "each line is there once");
    all
}

#[test]
fn each_line_that_n1_reads_is_in_the_file_of_n2_once_and_acknowledged() {
    let (network, settings) = (Network::new(), Settings::default());
    let n2 = network.writer(&settings, false);
    let n1 = network.reader(&settings, &Deafness::default());
    let feeders = [Style::Old, Style::New, Style::Counted].map(|style| feeder(n1.addr(), style, 3000));
    for feeder in feeders {
        assert_eq!(feeder.join().unwrap(), Sent { lines: 3000, garbage: 3 });
    }
    let (books, first) = end_reader(n1);
    let Books { read, written, in_doubt, handed_back, .. } = &*books.lines;
    assert_eq!(counts([read, written, in_doubt, handed_back]), [9000, 9000, 0, 0], "{books}");
    let (books, second, rows) = n2.end();
    assert_eq!(counts([&books.read, &books.written, &books.unparsable]), [9000, 9000, 9]);
    assert_eq!(identities(&rows).len(), 9000);
    assert_eq!(rows.iter().filter(|row| row["peer"] == "127.0.0.1").count(), 9000);
    let link = &first.links[0];
    assert_eq!((link.in_doubt, link.lost, link.shipped), (0, 0, second.links[0].received));
}

#[test]
fn n1_reads_no_more_than_its_window_while_the_disk_of_n2_is_stuck() {
    let settings = Settings { in_flight: 64, ..Settings::default() };
    let network = Network::new();
    let n2 = network.writer(&settings, true);
    let n1 = network.reader(&settings, &Deafness::default());
    let feeders = [Style::Old, Style::Counted].map(|style| feeder(n1.addr(), style, 2000));
    let full = 64 + 1 + Entrance::room(64) as u64 + 2;
    until(|| n1.books.lines.read.get() >= full);
    assert_eq!(counts([&n1.books.lines.read, &n1.books.lines.written]), [full, 0]);
    n2.lines.set(|disk| disk.is_stuck = false);
    feeders.into_iter().for_each(|feeder| assert_eq!(feeder.join().unwrap().lines, 2000));
    assert_eq!(end_reader(n1).0.lines.written.get(), 4000);
    assert_eq!(n2.end().2.len(), 4000);
}

#[test]
fn a_panic_at_n2_is_in_the_books_of_n1() {
    let settings = Settings { panic_every: 400, ..Settings::default() };
    let network = Network::new();
    let n2 = network.writer(&settings, false);
    let n1 = network.reader(&settings, &Deafness::default());
    feeder(n1.addr(), Style::New, 2000).join().unwrap();
    let (books, _) = end_reader(n1);
    let Books { read, written, panicked, .. } = &*books.lines;
    assert_eq!(counts([read, written, panicked]), [2000, 1995, 5]);
    assert_eq!(n2.end().2.len(), 1995);
}

#[test]
fn lines_under_way_when_n2_goes_are_in_doubt_and_the_next_n2_takes_all_others() {
    let settings = Settings { in_flight: 64, ..Settings::default() };
    let network = Network::new();
    let old = network.writer(&settings, true);
    let deafness = Deafness::default();
    let n1 = network.reader(&settings, &deafness);
    let feeders = [Style::Old, Style::New].map(|style| feeder(n1.addr(), style, 2000));
    let full = 64 + 1 + Entrance::room(64) as u64 + 2;
    until(|| n1.books.lines.read.get() >= full && old.node.books.read.get() > 0);

    // As after a kill: neither hears the other any more. The lines that n2 has come into its file, and n1 is not told.
    [&deafness, &old.deafness].into_iter().for_each(|deafness| deafness.set(true));
    network.until(|| n1.books.ends.get() == 1);
    let links = || old.node.system().remote().expect("it is a node").links();
    network.until(|| links().iter().all(|link| link.state == LinkState::Ended));
    old.lines.set(|disk| disk.is_stuck = false);
    let (_, _, old_rows) = old.end();

    let next = network.writer(&settings, false);
    deafness.set(false);
    network.until(|| feeders.iter().all(|feeder| feeder.is_finished()));
    feeders.into_iter().for_each(|feeder| assert_eq!(feeder.join().unwrap().lines, 2000));
    let (books, report) = end_reader(n1);
    let (next_books, _, rows) = next.end();

    let Books { read, written, in_doubt, handed_back, panicked, .. } = &*books.lines;
    assert_eq!(counts([read, handed_back, panicked]), [4000, 0, 0], "{books}");
    assert_eq!(written.get() + in_doubt.get(), 4000, "{books}");
    assert!((1..=64).contains(&in_doubt.get()), "{books}");
    assert_eq!((books.in_doubt_max(), report.links.len()), (64, 2), "{books}\n{report}");
    assert_eq!(counts([written, &next_books.written]), [rows.len() as u64; 2]);
    // The disk of the first n2 was stuck, so it has acknowledged none of what it has written.
    assert!(old_rows.len() as u64 <= in_doubt.get(), "{books}");
    assert!(identities(&old_rows).is_disjoint(&identities(&rows)), "no line is sent again");
}

#[test]
fn lines_that_an_n2_in_its_end_hands_back_go_to_the_next_one() {
    let settings = Settings { in_flight: 256, ..Settings::default() };
    let network = Network::new();
    let old = network.writer(&settings, false);
    let n1 = network.reader(&settings, &Deafness::default());
    let feeders = [Style::Old, Style::New].map(|style| feeder(n1.addr(), style, 5000));
    until(|| n1.books.lines.written.get() > 0);
    let (old_books, _, old_rows) = old.end();
    let next = network.writer(&settings, false);
    network.until(|| feeders.iter().all(|feeder| feeder.is_finished()));
    feeders.into_iter().for_each(|feeder| assert_eq!(feeder.join().unwrap().lines, 5000));
    let (books, _) = end_reader(n1);
    let (_, _, rows) = next.end();
    let Books { read, written, in_doubt, .. } = &*books.lines;
    assert_eq!(read.get(), 10_000);
    assert_eq!(written.get() + in_doubt.get(), 10_000, "{books}");
    assert_eq!(old_rows.len() as u64, old_books.written.get());
    let in_files = identities(&old_rows).union(&identities(&rows)).count() as u64;
    assert!((written.get()..=10_000).contains(&in_files), "{in_files} lines in files: {books}");
    assert_eq!(in_files, (old_rows.len() + rows.len()) as u64, "no line is written twice");
}

#[test]
fn lines_that_wait_for_an_n2_that_never_comes_are_handed_back_at_the_end() {
    // A wait of no time needs no clock that is moved.
    let settings = Settings { in_flight: 64, write_for: Duration::ZERO, ..Settings::default() };
    let node = Node::new("n1").engine(InProcess::new());
    let n1 = ReadingNode::start(System::builder("logmill"), node, "n2", &settings).expect("n1 starts");
    let feeder = feeder(n1.addr(), Style::New, 500);
    until(|| n1.books.lines.waits.get() > 0);
    let (books, _) = end_reader(n1);
    assert_eq!(feeder.join().unwrap().lines, 500);
    let Books { read, handed_back, in_doubt, .. } = &*books.lines;
    assert_eq!(counts([read, handed_back, in_doubt]), [500, 500, 0], "{books}");
    assert_eq!((books.messages.get(), books.in_doubt_max()), (0, 0));
}

#[test]
fn lines_that_fit_into_no_message_are_refused_before_the_start() {
    let settings = Settings { line_max: shipment::LINE_MAX + 1, ..Settings::default() };
    let node = Node::new("n1").engine(InProcess::new());
    let started = ReadingNode::start(System::builder("logmill"), node, "n2", &settings);
    let error = started.err().expect("it is refused").to_string();
    assert_eq!(error, "lines of 131073 bytes: must be at most 131072 to go to another node");
}

#[test]
fn the_longest_lines_cross_and_come_out_as_they_were() {
    let settings = Settings { line_max: shipment::LINE_MAX, ..Settings::default() };
    let network = Network::new();
    let n2 = network.writer(&settings, false);
    let n1 = network.reader(&settings, &Deafness::default());
    let line = |length: usize| [&b"<13>"[..], &b"x".repeat(length - 4), b"\n"].concat();
    let lengths = [shipment::LINE_MAX, 10, shipment::LINE_MAX + 1, shipment::BYTES_MAX, 20];
    let mut stream = std::net::TcpStream::connect(n1.addr()).unwrap();
    lengths.iter().for_each(|length| std::io::Write::write_all(&mut stream, &line(*length)).unwrap());
    drop(stream);
    until(|| n1.books.lines.written.get() == 5);
    end_reader(n1);
    let mut rows = n2.end().2;
    rows.sort_by_key(|row| row["number"].as_u64());
    let texts: Vec<usize> = rows.iter().map(|row| row["message"].as_str().map_or(0, str::len)).collect();
    assert_eq!(texts, [shipment::LINE_MAX - 4, 6, 0, shipment::BYTES_MAX - 4, 16]);
    assert_eq!(rows[2]["unparsable"], "expected the end of the line at byte 131072");
}
