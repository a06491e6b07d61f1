//! The client against a real system that serves its statistics, and against servers that send anything else.

use pointsman::console::StatsServer;
use pointsman::net::SocketAddress;
use pointsman::prelude::*;
use pointsman_top::client::{Client, Limits};
use pointsman_top::fault::Fault;
use pointsman_top::model::model::{Model, Tick};
use pointsman_top::query::{Order, Query};
use pointsman_top::reader::{Reader, Report, SharedQuery};
use pointsman_top::server_address::ServerAddress;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

struct Worker;

impl Actor for Worker {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
}

fn all() -> Query {
    Query { order: Order::Tree, pattern: None, limit: 500 }
}

fn client(address: &str, limits: Limits) -> Client {
    Client::new(address.parse().expect("an address"), limits)
}

/// Starts a system with a pool of workers, which serves its statistics at an address.
fn serve(address: SocketAddress) -> (System, Router<u64>, StatsServer) {
    let system = System::builder("shop").stderr_without_logger(false).build().expect("a system");
    let workers = system.router("workers").pool(4, |_| Worker).spawn().expect("a router");
    let server = system.serve_stats(address).expect("a server");
    (system, workers, server)
}

/// Waits until a pool has handled so many messages.
fn handle(system: &System, workers: &Router<u64>, count: u64) {
    (0..count).for_each(|number| workers.tell(number));
    while system.ledger().queued > 0 {
        thread::yield_now();
    }
}

fn address_of(server: &StatsServer) -> SocketAddr {
    server.local_addr().expect("a TCP port")
}

/// The next reading for which `is_it` holds, with all readings up to it in the model.
fn await_reading(reports: &Receiver<Report>, model: &mut Model, is_it: impl Fn(&Model) -> bool) {
    for _ in 0..2000 {
        match reports.recv_timeout(Duration::from_secs(60)) {
            Ok(Report::Reading(reading)) => model.take(*reading),
            other => panic!("no reading: {other:?}"),
        }
        if is_it(model) {
            return;
        }
    }
    panic!("the reading does not come: {:?}", model.fault());
}

#[test]
fn a_system_is_read_over_tcp() {
    let (system, workers, server) = serve(SocketAddress::tcp("127.0.0.1:0"));
    handle(&system, &workers, 100);
    let client = client(&address_of(&server).to_string(), Limits::default());
    let snapshot = client.snapshot(&all()).expect("a snapshot");
    assert_eq!((snapshot.system.as_str(), snapshot.balance()), ("shop", 0));
    let router = snapshot.routers.iter().find(|router| router.path == "/user/workers").expect("the router");
    assert_eq!(router.routees.iter().map(|routee| routee.handled).sum::<u64>(), 100);
    assert!(snapshot.actors.iter().any(|actor| actor.path == "/user/workers/$a"), "{:?}", snapshot.actors);
    assert!(!snapshot.dispatchers.is_empty() && !snapshot.classes.is_empty());

    let one = Query { order: Order::Handled, pattern: Some("/user/workers/*".to_owned()), limit: 1 };
    let snapshot = client.snapshot(&one).expect("a snapshot");
    assert_eq!(snapshot.actors.len(), 1);
    assert!(snapshot.actors[0].path.starts_with("/user/workers/"), "{:?}", snapshot.actors);

    let by_rate = Query { order: Order::Rate, ..all() };
    assert_eq!(client.snapshot(&by_rate).expect("a snapshot").actors_since, None);
    assert!(client.snapshot(&by_rate).expect("a snapshot").actors_since.is_some());
}

#[cfg(unix)]
#[test]
fn a_system_is_read_over_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("pointsman-top-{}.socket", std::process::id()));
    let (_system, _workers, _server) = serve(SocketAddress::unix(&path));
    let client = Client::new(ServerAddress::Unix(path), Limits::default());
    assert_eq!(client.snapshot(&all()).expect("a snapshot").system, "shop");
    let nowhere = Client::new(ServerAddress::Unix("/nowhere/at/all".into()), Limits::default());
    assert!(matches!(nowhere.snapshot(&all()), Err(Fault::Connect(_))));
}

#[test]
fn a_server_that_stops_and_starts_again_is_read_again() {
    let (system, workers, server) = serve(SocketAddress::tcp("127.0.0.1:0"));
    let address = address_of(&server);
    handle(&system, &workers, 1000);
    let client = client(&address.to_string(), Limits::default());
    let reports = Reader::new(client, SharedQuery::new(all()), None).run(Duration::from_millis(20));
    let mut model = Model::default();
    await_reading(&reports, &mut model, |model| model.rate(|snapshot| snapshot.ledger.handled).is_some());
    assert_eq!(model.new_starts(), 0);

    // The system ends, and with it the server.
    drop((workers, server));
    system.shutdown(Duration::from_secs(30)).expect("an orderly end");
    await_reading(&reports, &mut model, |model| model.fault().is_some());
    let before = model.snapshot().expect("the last picture stays").ledger.handled;
    assert!(before >= 1000, "{before}");

    // Another one begins at the same address.
    let (system, workers, _server) = serve(SocketAddress::tcp(address.to_string()));
    handle(&system, &workers, 10);
    await_reading(&reports, &mut model, |model| model.fault().is_none());
    assert_eq!((model.new_starts(), model.tick(0)), (1, Some(Tick::NewStart)));
    assert!(model.snapshot().expect("a picture").ledger.handled < 1000);
    await_reading(&reports, &mut model, |model| model.rate(|snapshot| snapshot.ledger.handled).is_some());
    let rate = model.rate(|snapshot| snapshot.ledger.handled);
    assert!(rate.is_some_and(|rate| rate >= 0.0), "{rate:?}");
}

/// A server that answers each connection by a function, until the test ends.
fn odd_server(answer: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("a port").to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let mut stream = stream;
            // The request is in one piece, for it is short.
            let _ = stream.read(&mut head);
            answer(stream);
        }
    });
    address
}

/// What the client says of an answer of these bytes.
fn said_of(answer: impl Into<Vec<u8>>) -> Result<String, Fault> {
    let answer = answer.into();
    let address = odd_server(move |mut stream| _ = stream.write_all(&answer));
    let limits = Limits { within: Duration::from_secs(30), page_max: 1 << 20 };
    client(&address, limits).snapshot(&all()).map(|snapshot| snapshot.system)
}

fn page(status: &str, page: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{page}", page.len())
}

#[test]
fn answers_that_are_no_snapshot_are_told_apart() {
    type IsIt = fn(&Fault) -> bool;
    let is_http: IsIt = |fault| matches!(fault, Fault::Http(_));
    let is_page: IsIt = |fault| matches!(fault, Fault::Page(_));
    let cases: [(&str, String, IsIt); 14] = [
        ("nothing", String::new(), is_http),
        ("no HTTP", "SSH-2.0-OpenSSH\r\n\r\n".to_owned(), is_http),
        ("half a head", "HTTP/1.1 200 OK\r\nContent-Le".to_owned(), is_http),
        ("a head without end", format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(100_000)), is_http),
        ("a head of many lines", format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(100)), is_http),
        ("half a page", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"version\":1".to_owned(), is_http),
        ("no length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".to_owned(), is_http),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}".to_owned(),
            is_http,
        ),
        (
            "chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n".to_owned(),
            is_http,
        ),
        ("truncated JSON", page("200 OK", "{\"version\":1,\"system\":\"sh"), is_page),
        ("other JSON", page("200 OK", "{\"version\":1}"), is_page),
        ("a page of a browser", page("200 OK", "<html></html>"), is_page),
        ("an error", page("500 Internal Server Error", "out of\u{1b}[2J order\nline 2"), |fault| {
            fault.to_string() == "the server refuses with status 500: out of[2J order"
        }),
        ("another version", page("200 OK", "{\"version\":2}"), |fault| matches!(fault, Fault::Version(2))),
    ];
    for (name, answer, is_it) in cases {
        let fault = said_of(answer).expect_err(name);
        assert!(is_it(&fault), "{name}: {fault:?}");
    }
}

#[test]
fn a_page_without_a_length_ends_with_its_connection() {
    let snapshot =
        pointsman_top::snapshot::Snapshot { version: 1, system: "odd".to_owned(), ..Default::default() };
    let page = serde_json::to_string(&snapshot).expect("plain data");
    assert_eq!(said_of(format!("HTTP/1.0 200 OK\r\n\r\n{page}")).expect("a snapshot"), "odd");
}

#[test]
fn an_endless_page_is_refused_before_it_fills_the_memory() {
    // By its length alone: nothing of it is sent.
    let huge = "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n";
    assert!(matches!(said_of(huge), Err(Fault::TooLarge(_))));

    // Without a length: 100 MB, of which the client takes no more than its limit, and a piece.
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let (done, is_done) = channel();
    let address = odd_server(move |mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        for _ in 0..1600 {
            if stream.write_all(&[b' '; 64 * 1024]).is_err() {
                break;
            }
            counted.fetch_add(64 * 1024, Ordering::Relaxed);
        }
        let _ = done.send(());
    });
    let limits = Limits { within: Duration::from_secs(60), page_max: 1 << 20 };
    let fault = client(&address, limits).snapshot(&all()).expect_err("too large");
    assert_eq!(fault.to_string(), "the answer has more than 1 MiB: ask for fewer actors by --limit");
    is_done.recv_timeout(Duration::from_secs(60)).expect("the connection is closed");
    // The sockets hold some megabytes.
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 50 << 20, "{sent}");
}

#[test]
fn a_server_that_says_nothing_or_drips_is_left_in_time() {
    let limits = Limits { within: Duration::from_millis(300), page_max: 1 << 20 };
    let silent = odd_server(|stream| _ = thread::spawn(move || hold(stream)));
    assert!(matches!(client(&silent, limits).snapshot(&all()), Err(Fault::TimedOut)));

    let dripping = odd_server(|mut stream| {
        _ = thread::spawn(move || {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
            let mut bytes = head.iter().chain(std::iter::repeat(&b' '));
            while stream.write_all(&[*bytes.next().expect("an endless page")]).is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
    });
    assert!(matches!(client(&dripping, limits).snapshot(&all()), Err(Fault::TimedOut)));
}

/// Keeps a connection open until the client closes it.
fn hold(mut stream: TcpStream) {
    while matches!(stream.read(&mut [0; 64]), Ok(count) if count > 0) {}
}

#[test]
fn nothing_at_an_address_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("a port").to_string();
    drop(listener);
    let fault = client(&address, Limits::default()).snapshot(&all()).expect_err("nothing listens");
    assert!(matches!(fault, Fault::Connect(_)), "{fault:?}");
    let unknown = client("no.such.host.invalid:80", Limits::default()).snapshot(&all());
    assert!(matches!(unknown, Err(Fault::Connect(_))));
}

#[test]
fn a_reader_goes_on_through_odd_answers() {
    let answers = [
        page("500 Internal Server Error", "no"),
        page("200 OK", "{\"version\":9}"),
        "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{".to_owned(),
    ];
    let number = AtomicUsize::new(0);
    let snapshot =
        pointsman_top::snapshot::Snapshot { version: 1, system: "odd".to_owned(), ..Default::default() };
    let good = page("200 OK", &serde_json::to_string(&snapshot).expect("plain data"));
    let address = odd_server(move |mut stream| {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let _ = stream.write_all(answers.get(number).unwrap_or(&good).as_bytes());
    });
    let reports = Reader::new(client(&address, Limits::default()), SharedQuery::new(all()), None)
        .run(Duration::from_millis(10));
    let mut model = Model::default();
    await_reading(&reports, &mut model, |model| model.snapshot().is_some());
    let ticks: Vec<Option<Tick>> = (0..5).map(|back| model.tick(back)).collect();
    let missed = Some(Tick::NoAnswer);
    assert_eq!(ticks, [Some(Tick::Snapshot), missed, missed, missed, None]);
}
