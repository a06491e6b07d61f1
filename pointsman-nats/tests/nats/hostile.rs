//! Engines over servers that are made up: each step of theirs is written here, so that what is lost, cut and delayed is known.

use crate::support::{LIMIT, TestNode, outbox};
use pointsman::remote::{Channel, ChannelKind};
use pointsman_nats::Nats;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const INFO: &str = "INFO {\"max_payload\":1048576,\"headers\":true}\r\n";

/// A server that does what a test says.
struct FakeServer(TcpListener);

/// The server's side of a connection.
struct Peer {
    stream: TcpStream,
    /// Bytes that were read and not looked at.
    bytes: Vec<u8>,
}

impl FakeServer {
    fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").expect("a port"))
    }

    fn nats(&self) -> Nats {
        Nats::servers([format!("nats://{}", self.0.local_addr().expect("it is bound"))])
    }

    fn accept(&self) -> Peer {
        let (stream, _) = self.0.accept().expect("a client");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        Peer { stream, bytes: Vec::new() }
    }

    /// Takes both connections of a node to the `PONG`: that for batches, and the other one.
    fn accept_both(&self) -> (Peer, Peer) {
        let mut peers = [self.accept(), self.accept()];
        let are_data = [peers[0].greet().contains("/data"), peers[1].greet().contains("/data")];
        let [first, second] = peers;
        assert!(are_data[0] != are_data[1]);
        if are_data[0] { (first, second) } else { (second, first) }
    }
}

impl Peer {
    fn say(&mut self, text: &str) {
        // A client that has closed the connection is seen when it is read.
        let _ = self.stream.write_all(text.as_bytes());
    }

    /// The next line, without its end; `None` at the end of the connection.
    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|pair| pair == b"\r\n") {
                let line = String::from_utf8(self.bytes[..end].to_vec()).expect("a line is UTF-8");
                self.bytes.drain(..end + 2);
                return Some(line);
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> Option<()> {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => None,
            Ok(count) => {
                self.bytes.extend_from_slice(&chunk[..count]);
                Some(())
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("nothing comes: {error}"),
        }
    }

    /// Answers the client's beginning, and returns its `CONNECT`.
    fn greet(&mut self) -> String {
        self.say(INFO);
        let connect = self.line().expect("CONNECT");
        assert!(connect.starts_with("CONNECT {"), "{connect}");
        while self.line().expect("a line") != "PING" {}
        self.say("PONG\r\n");
        connect
    }

    /// The payload of the next `PUB`, with its subject. `None` if the connection ends before its last byte.
    fn publication(&mut self) -> Option<(String, Vec<u8>)> {
        let line = self.line()?;
        if line == "PING" {
            self.say("PONG\r\n");
            return self.publication();
        }
        let fields: Vec<&str> = line.split(' ').collect();
        assert_eq!(fields[0], "PUB", "{line}");
        let len: usize = fields[fields.len() - 1].parse().expect("a length");
        while self.bytes.len() < len + 2 {
            self.more()?;
        }
        assert_eq!(&self.bytes[len..len + 2], b"\r\n");
        let payload = self.bytes.drain(..len + 2).take(len).collect();
        Some((fields[1].to_owned(), payload))
    }

    /// The round and the number of the next batch.
    fn batch(&mut self) -> (u64, u64) {
        let (subject, frame) = self.publication().expect("a batch");
        assert_eq!(subject, "pointsman.d.n2.n1");
        let number = u64::from_le_bytes(frame[frame.len() - 8..].try_into().expect("eight bytes"));
        (number >> 32, number & 0xffff_ffff)
    }

    /// Answers each `PING` in a thread, to the end of the connection. The test must write each message at once, or an answer
    /// comes in its midst.
    fn answer_pings(&self) {
        let stream = self.stream.try_clone().expect("a handle");
        stream.set_read_timeout(None).expect("no limit");
        let mut peer = Self { stream, bytes: Vec::new() };
        std::thread::spawn(move || while peer.publication().is_some() {});
    }

    /// Reads to the end, which must come. Returns what came.
    fn rest(mut self) -> Vec<u8> {
        while self.more().is_some() {}
        self.bytes
    }
}

/// What a node says of a server that has sent these bytes and then waits.
fn reason_for(bytes: &str) -> (String, Vec<u8>) {
    let server = FakeServer::start();
    let node = TestNode::start(server.nats(), "n1", 1);
    let mut peer = server.accept();
    peer.say(bytes);
    let rest = peer.rest();
    (node.record.wait_down(1), rest)
}

#[test]
fn what_is_no_server_of_nats_is_told_so_and_gets_nothing() {
    for (bytes, expected) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "is it a NATS server?"),
        ("PING\r\n", "has not begun with INFO"),
        ("INFO {}\r\n", "max_payload"),
        ("INFO {\"max_payload\":1}\n", "does not end with CRLF"),
    ] {
        let (why, rest) = reason_for(bytes);
        assert!(why.contains(expected), "{bytes:?}: {why}");
        assert_eq!(rest, b"", "{bytes:?}");
    }
}

#[test]
fn an_info_without_an_end_is_given_up() {
    let info = format!("INFO {{\"max_payload\":1,\"x\":\"{}\"}}\r\n", "x".repeat(1 << 20));
    let (why, _) = reason_for(&info);
    assert!(why.contains("more than 65536 bytes"), "{why}");
}

#[test]
fn a_server_that_demands_tls_gets_no_plain_text() {
    let (why, rest) = reason_for("INFO {\"max_payload\":1000,\"tls_required\":true}\r\n");
    assert!(why.contains("demands TLS"), "{why}");
    assert_eq!(rest, b"");
}

#[test]
fn errors_of_a_server_are_told_with_what_to_do() {
    for (said, expected) in [
        ("Authorization Violation", "does not let this node in"),
        ("Maximum Connections Exceeded", "takes no more"),
        ("Permissions Violation for Subscription to \"pointsman.d.n1.*\"", "subscribe to `pointsman.d.n1.*`"),
        ("Unknown Protocol Operation", "'Unknown Protocol Operation'"),
    ] {
        let (why, _) = reason_for(&format!("{INFO}-ERR '{said}'\r\n"));
        assert!(why.contains(expected), "{said}: {why}");
    }
}

/// The server gets the password, and no one that reads what the engine tells does.
#[test]
fn an_error_about_a_login_shows_no_password() {
    let server = FakeServer::start();
    let address = server.0.local_addr().expect("it is bound");
    let node = TestNode::start(Nats::servers([format!("nats://me:secret@{address}")]), "n1", 1);
    let mut peer = server.accept();
    peer.say(INFO);
    let connect = peer.line().expect("CONNECT");
    assert!(connect.contains("\"user\":\"me\",\"pass\":\"secret\""), "{connect}");
    peer.say("-ERR 'Authorization Violation'\r\n");
    let why = node.record.wait_down(1);
    assert!(why.contains(&address.to_string()) && !why.contains("secret"), "{why}");
}

#[test]
fn a_message_that_is_too_long_or_ill_formed_ends_the_connection_and_not_the_node() {
    for message in [
        "MSG pointsman.d.n1.n2 1 1048577\r\n",
        "MSG pointsman.d.n1.n2 1 3\r\nabcXX",
        "HMSG pointsman.d.n1.n2 1 4 3\r\nabcd\r\n",
        "MSG pointsman.d.n1.n2 1\r\n",
    ] {
        let server = FakeServer::start();
        let node = TestNode::start(server.nats(), "n1", 1);
        let (mut data, _other) = server.accept_both();
        node.record.wait_up(1);
        data.say(message);
        data.rest();
        node.record.wait_down(1);
        // It comes again, and takes what is right.
        let mut data = server.accept();
        data.greet();
        node.record.wait_up(2);
        data.say("MSG pointsman.d.n1.n2 1 2\r\nok\r\n");
        assert_eq!(node.record.wait_frames(ChannelKind::Batch, 1), [("n2".to_owned(), b"ok".to_vec())]);
    }
}

/// A frame whose sender cannot be a node, and an empty one, do not reach the node.
#[test]
fn messages_without_a_sender_or_without_a_byte_are_passed_over() {
    let server = FakeServer::start();
    let node = TestNode::start(server.nats(), "n1", 1);
    let (mut data, mut other) = server.accept_both();
    node.record.wait_up(1);
    data.say("MSG pointsman.d.n1.a/b 1 1\r\nx\r\nMSG pointsman.d.n1.n2 1 0\r\n\r\nMSG pointsman.d.n1.n2 1 1\r\ny\r\n");
    other.say(
        "MSG pointsman.i.n1.n2-00 4 0\r\n\r\nHMSG pointsman.i.n1.bad 4 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
    );
    other.say("MSG pointsman.h.n2 99 1\r\nx\r\nMSG pointsman.h.n2 2 1\r\nz\r\n");
    assert_eq!(node.record.wait_frames(ChannelKind::Batch, 1), [("n2".to_owned(), b"y".to_vec())]);
    assert_eq!(node.record.wait_frames(ChannelKind::Heartbeat, 1), [("n2".to_owned(), b"z".to_vec())]);
    assert_eq!(node.record.told().len(), 3);
}

/// A payload of the most bytes that the server has announced, also where it announces them again.
#[test]
fn the_largest_message_is_taken_and_an_info_may_come_again() {
    let server = FakeServer::start();
    let node = TestNode::start(server.nats(), "n1", 1);
    let (mut data, _other) = server.accept_both();
    node.record.wait_up(1);
    let largest = "x".repeat(1 << 20);
    data.say(&format!("MSG pointsman.d.n1.n2 1 {}\r\n{largest}\r\n", largest.len()));
    data.say(INFO);
    data.say("INFO {\"max_payload\":3,\"headers\":true}\r\nMSG pointsman.d.n1.n2 1 3\r\nabc\r\n");
    let frames = node.record.wait_frames(ChannelKind::Batch, 2);
    assert_eq!([frames[0].1.len(), frames[1].1.len()], [1 << 20, 3]);
    data.say("MSG pointsman.d.n1.n2 1 4\r\n");
    data.rest();
    node.record.wait_down(1);
}

/// Input that a server may send without an end, or again and again, takes no memory, and delays no other connection. Its PINGs are
/// in another test: their answers are bounded, and end the connection.
#[cfg(target_os = "linux")]
#[test]
fn memory_stays_bounded_whatever_a_server_sends() {
    use crate::support::{in_own_process, numbers, peak_memory};
    in_own_process("hostile::memory_stays_bounded_whatever_a_server_sends", || {
        let (hostile, good) = (FakeServer::start(), FakeServer::start());
        let node = TestNode::start(hostile.nats(), "n1", 1);
        let other_node = TestNode::start(good.nats(), "n3", 3);
        let (mut data, mut other) = hostile.accept_both();
        let (mut good_data, good_other) = good.accept_both();
        // A round may take so long that the node gives up a server that is silent.
        [&good_data, &good_other].into_iter().for_each(Peer::answer_pings);
        node.record.wait_up(1);
        other_node.record.wait_up(1);
        let large = "x".repeat(1 << 20);
        let info = format!("INFO {{\"max_payload\":1048576,\"nonce\":\"{}\"}}\r\n", "n".repeat(60_000));
        let addresses: Vec<String> =
            (0..2000).map(|at| format!("\"10.0.{}.{}:4222\"", at / 256, at % 256)).collect();
        let urls = format!("INFO {{\"max_payload\":1048576,\"connect_urls\":[{}]}}\r\n", addresses.join(","));
        let before = peak_memory();
        let mut number = 0u64;
        for (text, times) in [
            // From no node, for no subscription, and for a question that nobody has asked.
            (format!("MSG pointsman.d.n1.a/b 1 {}\r\n{large}\r\n", large.len()), 200),
            (format!("MSG pointsman.i.n1.a/b 4 {}\r\n{large}\r\n", large.len()), 200),
            ("HMSG pointsman.i.n1.bad 4 16 16\r\nNATS/1.0 503\r\n\r\n\r\n".repeat(1000), 20),
            ("MSG pointsman.d.n1.n2 1 0\r\n\r\n".repeat(1000), 50),
            (info, 700),
            (urls, 800),
            ("+OK\r\n".repeat(10_000), 50),
            ("PONG\r\n".repeat(10_000), 50),
            ("-ERR 'Permissions Violation for Publish to \"pointsman.h.n1\"'\r\n".repeat(1000), 20),
        ] {
            for _ in 0..times {
                for peer in [&mut data, &mut other] {
                    peer.stream.write_all(text.as_bytes()).expect("it is taken");
                }
            }
            for _ in 0..10 {
                let frame = number.to_le_bytes();
                number += 1;
                let message = [b"MSG pointsman.d.n3.n2 1 8\r\n", &frame[..], b"\r\n"].concat();
                good_data.stream.write_all(&message).expect("it is taken");
            }
            // All of it is read once the batch behind it has come.
            let came = node.record.frames(ChannelKind::Batch).len();
            data.say("MSG pointsman.d.n1.n2 1 2\r\nok\r\n");
            node.record.wait_frames(ChannelKind::Batch, came + 1);
            let above = (peak_memory() - before) >> 20;
            let start: String = text.chars().take(40).collect();
            assert!(above < 64, "{start}: {above} MiB above the beginning");
        }
        let frames = other_node.record.wait_frames(ChannelKind::Batch, number as usize);
        assert!(numbers(&frames).into_iter().eq(0..number));
        assert_eq!(node.record.frames(ChannelKind::Batch).len(), 9, "the other messages are for no node");
    });
}

/// The server sends PINGs and reads no PONG.
#[test]
fn a_flood_of_pings_is_given_up() {
    let server = FakeServer::start();
    let node = TestNode::start(server.nats(), "n1", 1);
    let (mut data, _other) = server.accept_both();
    node.record.wait_up(1);
    data.stream.set_write_timeout(Some(Duration::from_millis(100))).expect("a limit");
    let flood = "PING\r\n".repeat(10_000);
    let began = Instant::now();
    while data.stream.write_all(flood.as_bytes()).is_ok() {
        assert!(began.elapsed() < LIMIT, "it takes PINGs without end");
    }
    let why = node.record.wait_down(1);
    assert!(why.contains("PING") || why.contains("reset") || why.contains("closed"), "{why}");
}

/// The connection for batches is not read at all, so it is full; control goes on.
#[test]
fn control_passes_beside_a_connection_for_batches_that_is_stuck() {
    let server = FakeServer::start();
    let node = TestNode::start(server.nats(), "n1", 1);
    let (_data, mut other) = server.accept_both();
    node.record.wait_up(1);
    let waiting = outbox("n2", &vec![vec![b'.'; 16 * 1024]; 2000]);
    node.fabric.wants_out(&waiting);
    for round in 0..50u8 {
        node.fabric.publish(Channel::Control("n2"), vec![round]).expect("it is connected");
        let (subject, payload) = other.publication().expect("a frame");
        assert_eq!((subject.as_str(), payload), ("pointsman.c.n2.n1", vec![round]));
        other.say(&format!("MSG pointsman.c.n1.n2 1 1\r\n{}\r\n", char::from(round)));
        node.record.wait_frames(ChannelKind::Control, usize::from(round) + 1);
    }
    // What does not go out stays in the outbox.
    assert!(waiting.next(1 << 20).is_some());
}

/// The connection is reset again and again in the middle of batches. Each batch comes whole at most once, in order; one that
/// was cut comes again, from its first byte; and only what was written to the end may be missing.
#[test]
fn connections_reset_in_the_middle_of_batches_repeat_and_reorder_nothing() {
    let server = FakeServer::start();
    let node = TestNode::start(server.nats(), "n1", 1);
    let (mut data, _other) = server.accept_both();
    node.record.wait_up(1);
    let mut found: Vec<(u64, u64)> = Vec::new();
    for round in 0..8u64 {
        // Whatever was lost in the buffers of the round before, there is more than is read here.
        let bodies =
            (0..400u64).map(|at| [vec![b'.'; 16 * 1024], (round << 32 | at).to_le_bytes().to_vec()].concat());
        node.fabric.wants_out(&outbox("n2", &bodies.collect::<Vec<_>>()));
        for _ in 0..50 {
            found.push(data.batch());
        }
        // Some of the next one is read, and more of it lies in buffers.
        while data.bytes.len() < 5000 {
            data.more().expect("there is more");
        }
        data.stream.shutdown(Shutdown::Both).expect("it is open");
        drop(data);
        data = server.accept();
        data.greet();
    }
    node.fabric.wants_out(&outbox("n2", &[u64::MAX.to_le_bytes().to_vec()]));
    while found.last() != Some(&(0xffff_ffff, 0xffff_ffff)) {
        found.push(data.batch());
    }
    for of in 0..8 {
        let numbers: Vec<u64> =
            found.iter().filter(|(round, _)| *round == of).map(|(_, number)| *number).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "round {of}: {numbers:?}");
    }
}

#[test]
fn a_server_that_never_answers_connect_is_left_for_the_next_one() {
    let (silent, good) = (FakeServer::start(), FakeServer::start());
    let url = |server: &FakeServer| format!("nats://{}", server.0.local_addr().expect("it is bound"));
    let node = TestNode::start(Nats::servers([url(&silent), url(&good)]), "n1", 1);
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut peer = silent.accept();
        peer.say(INFO);
        held.push(peer);
    }
    let _both = good.accept_both();
    node.record.wait_up(1);
    let why = node.record.wait_down(1);
    assert!(why.contains("has not answered CONNECT"), "{why}");
}

#[test]
fn settings_that_cannot_work_are_refused_at_the_start() {
    for (nats, expected) in [
        (Nats::servers([""; 0]), "no server"),
        (Nats::servers(["nats://10.0.0.1"]), "plain text"),
        (Nats::servers(["10.0.0.1:4222"]), "no `nats://`"),
    ] {
        let error = TestNode::try_start(nats, "n1", 1).map(drop).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error =
        TestNode::try_start(Nats::servers(["nats://localhost"]), "n 1", 1).map(drop).expect_err("the name");
    assert!(error.to_string().contains("`n 1`"), "{error}");
}
