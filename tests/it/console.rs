//! Statistics over HTTP: the pages, what is refused, and clients that mean harm.

use crate::support::{LONG, wait_until};
use pointsman::console::{ServeError, StatsServer};
use pointsman::net::SocketAddress;
use pointsman::prelude::*;
use pointsman::telemetry::Telemetry;
use pointsman::time::ManualClock;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Waits at each gate that it is sent.
struct Waits;

impl Actor for Waits {
    type Message = Option<Receiver<()>>;
    fn receive(&mut self, gate: Self::Message, _: &mut Context<Self::Message>) -> HandlerResult {
        if let Some(gate) = gate {
            let _ = gate.recv();
        }
        Ok(())
    }
}

fn local() -> SocketAddress {
    SocketAddress::tcp("127.0.0.1:0")
}

fn address(server: &StatsServer) -> SocketAddr {
    server.local_addr().expect("a TCP port")
}

fn ends_balanced(system: System) {
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
}

fn connect(server: &StatsServer) -> TcpStream {
    let client = TcpStream::connect(address(server)).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    page: String,
}

impl Answer {
    fn of(text: &str) -> Self {
        let (head, page) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let answer = Self { status, head: head.to_owned(), page: page.to_owned() };
        assert_eq!(answer.header("Connection"), Some("close"));
        answer
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Reads until the server closes.
fn answer(client: &mut impl Read) -> Answer {
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    Answer::of(&text)
}

/// Sends a request as it is written here.
fn send(server: &StatsServer, request: &str) -> Answer {
    let mut client = connect(server);
    client.write_all(request.as_bytes()).unwrap();
    answer(&mut client)
}

fn get(server: &StatsServer, target: &str) -> Answer {
    let answer = send(server, &format!("GET {target} HTTP/1.1\r\nHost: localhost:9464\r\n\r\n"));
    assert_eq!(answer.header("Content-Length"), Some(answer.page.len().to_string().as_str()));
    answer
}

fn snapshot(server: &StatsServer, query: &str) -> Value {
    let answer = get(server, &format!("/snapshot{query}"));
    assert_eq!((answer.status, answer.header("Content-Type")), (200, Some("application/json")));
    serde_json::from_str(&answer.page).unwrap()
}

fn paths(snapshot: &Value) -> Vec<&str> {
    let actors = snapshot["actors"].as_array().unwrap();
    actors.iter().map(|actor| actor["path"].as_str().unwrap()).collect()
}

#[test]
fn the_pages_tell_what_the_system_does() {
    let system = System::builder("pages").build().unwrap();
    let server = system.serve_stats(local()).unwrap();
    let pool = system.router("pool").pool(2, |_| Waits).spawn().unwrap();
    let odd = system.actor("odd").class("\"C:\\\n").spawn(|| Waits).unwrap();
    (0..10).for_each(|_| pool.tell(None));
    odd.tell(None);
    wait_until(|| system.stats().class("/user/pool").is_some_and(|class| class.handled == 10));

    let metrics = get(&server, "/metrics");
    assert_eq!(metrics.status, 200);
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(metrics.header("Content-Type"), Some(content_type));
    assert!(
        metrics.page.contains("\npointsman_handled_total{class=\"/user/pool\"} 10\n"),
        "{}",
        metrics.page
    );
    assert!(metrics.page.contains("\npointsman_actors{class=\"\\\"C:\\\\\\n\"} 1\n"), "{}", metrics.page);
    assert!(metrics.page.ends_with("\n# EOF\n"));

    let all = snapshot(&server, "");
    assert_eq!((all["version"].as_u64(), all["system"].as_str()), (Some(1), Some("pages")));
    let handled: u64 = all["routers"][0]["routees"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["handled"].as_u64().unwrap())
        .sum();
    assert_eq!(handled, 10);
    assert_eq!(all["routers"][0]["path"], "/user/pool");
    let workers = all["dispatchers"][0]["workers"].as_array().unwrap();
    assert!(workers.iter().map(|worker| worker["turns"].as_u64().unwrap()).sum::<u64>() > 0);
    assert!(paths(&all).contains(&"/user/odd"));
    assert!(paths(&all).contains(&"/system/console"), "{:?}", paths(&all));

    let tree = get(&server, "/tree.dot?path=/user/**");
    assert_eq!(tree.status, 200);
    assert!(tree.page.starts_with("digraph \"pages\" {\n") && tree.page.ends_with("}\n"), "{}", tree.page);
    assert!(
        tree.page.contains("[label=\"odd\\n\\\"C:\\\\\\n\\n0 queued, 1 handled\", tooltip=\"/user/odd\""),
        "{}",
        tree.page
    );
    let pool_uid = system.actor_at("/user/pool").unwrap().uid();
    let lines = tree.page.lines().filter(|line| line.starts_with(&format!("  a{pool_uid} -> a"))).count();
    assert_eq!(lines, 2);

    assert_eq!((get(&server, "/health").status, get(&server, "/health").page.as_str()), (200, "ok\n"));
    assert!(get(&server, "/").page.contains("/metrics"));
    ends_balanced(system);
}

#[test]
fn a_snapshot_has_the_actors_that_the_client_asks_for() {
    let system = System::builder("snapshots").build().unwrap();
    let server = system.serve_stats(local()).unwrap();
    let actors: Vec<_> = (0..4).map(|at| system.actor(&format!("a{at}")).spawn(|| Waits).unwrap()).collect();
    let tell = |at: usize, count: usize| (0..count).for_each(|_| actors[at].tell(None));
    let settle = |at: usize, handled: u64| {
        wait_until(|| actors[at].untyped().unwrap().handled() == handled);
    };
    tell(0, 30);
    tell(1, 20);
    settle(0, 30);
    settle(1, 20);
    let query = |query: &str| snapshot(&server, &format!("?path=/user/a*{query}"));
    assert_eq!(paths(&query("")), ["/user/a0", "/user/a1", "/user/a2", "/user/a3"]);
    assert_eq!(paths(&query("&order=handled&limit=2")), ["/user/a0", "/user/a1"]);
    assert_eq!(paths(&query("&limit=0")), [""; 0]);
    // The first request for rates counts from the start of each actor.
    let first = query("&order=rate&limit=1");
    assert_eq!((paths(&first), &first["actors_since"]), (vec!["/user/a0"], &Value::Null));
    tell(1, 5);
    settle(1, 25);
    let second = query("&order=rate&limit=1");
    assert_eq!((paths(&second), second["actors"][0]["handled"].as_u64()), (vec!["/user/a1"], Some(5)));
    assert!(second["actors_since"].as_f64().unwrap() > 0.0);
    // A busy actor with a queue.
    let (gate, waits) = channel();
    actors[3].tell(Some(waits));
    tell(3, 7);
    wait_until(|| paths(&query("&order=queued&limit=1")) == ["/user/a3"]);
    drop(gate);
    for (target, text) in [("?order=size", "order \"size\""), ("?limit=many", "limit \"many\"")] {
        let refusal = get(&server, &format!("/snapshot{target}"));
        assert!(refusal.status == 400 && refusal.page.contains(text), "{refusal:?}");
    }
    ends_balanced(system);
}

#[test]
fn requests_that_are_not_served_are_told_why() {
    let system = System::builder("refusals").build().unwrap();
    let server = system.serve_stats(local()).unwrap();
    let status = |request: &str| send(&server, request).status;
    let post = send(&server, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    assert_eq!((post.status, post.header("Allow")), (405, Some("GET, HEAD")));
    assert_eq!(status("OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405);
    assert_eq!(status("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"), 404);
    assert_eq!(status("GET /metrics HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(status("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n"), 400);
    assert_eq!(status("GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
    assert_eq!(status("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
    // A page of a browser, under a name that leads to the loopback.
    assert_eq!(status("GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
    assert_eq!(status("GET /health HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), 200);
    assert_eq!(status("GET /health HTTP/1.0\r\n\r\n"), 200);
    assert_eq!(status("GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
    let head = send(&server, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!((head.status, head.page.as_str()), (200, ""));
    assert!(head.header("Content-Length").unwrap().parse::<usize>().unwrap() > 1000);
    // The end of the stream within the head, and before it.
    let mut client = connect(&server);
    client.write_all(b"GET / HT").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(answer(&mut client).status, 400);
    let mut client = connect(&server);
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
    // A request that comes byte by byte, with another behind it: a connection has one answer.
    let mut client = connect(&server);
    client.set_nodelay(true).unwrap();
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2);
    request.bytes().for_each(|byte| drop(client.write_all(&[byte])));
    assert_eq!(answer(&mut client).page, "ok\n");
    ends_balanced(system);
}

#[test]
fn health_fails_while_a_handler_is_stuck() {
    let telemetry = Telemetry::off().stuck_after(Duration::from_millis(20));
    let system = System::builder("health").telemetry(telemetry).build().unwrap();
    let server = system.serve_stats(local()).unwrap();
    let slow = system.actor("slow").spawn(|| Waits).unwrap();
    let (gate, waits) = channel();
    slow.tell(Some(waits));
    wait_until(|| get(&server, "/health").status == 503);
    assert!(get(&server, "/health").page.contains("a handler of /user/slow (class "));
    assert_eq!(snapshot(&server, "")["stuck"][0]["actor"]["path"], "/user/slow");
    drop(gate);
    wait_until(|| get(&server, "/health").status == 200);
    ends_balanced(system);
}

#[test]
fn a_server_listens_at_the_loopback_unless_told_otherwise() {
    let system = System::builder("places").build().unwrap();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = system.serve_stats(SocketAddress::tcp(address)).unwrap_err();
        assert!(matches!(refused, ServeError::NotLocal { .. }), "{refused}");
        assert!(refused.to_string().contains("StatsServerBuilder::anywhere"), "{refused}");
    }
    let malformed = system.serve_stats(SocketAddress::tcp("localhost")).unwrap_err();
    assert!(matches!(malformed, ServeError::Address { .. }), "{malformed}");
    assert_eq!(system.living_actors(), crate::support::GUARDIANS);
    let anywhere = system.stats_server(SocketAddress::tcp("0.0.0.0:0")).anywhere().spawn().unwrap();
    let port = address(&anywhere).port();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.write_all(b"GET /health HTTP/1.1\r\nHost: node-7.example\r\n\r\n").unwrap();
    assert_eq!(answer(&mut client).status, 200);
    // A second server, whose port is taken first.
    let taken = system.serve_stats(SocketAddress::tcp(format!("127.0.0.1:{port}"))).unwrap_err();
    assert!(matches!(taken, ServeError::Listen(_)) && taken.to_string().contains("in use"), "{taken}");
    let second = system.serve_stats(SocketAddress::tcp("localhost:0")).unwrap();
    assert!(paths(&snapshot(&second, "?path=/system/console*")).contains(&"/system/console-2"));
    let at = address(&second);
    second.stop();
    wait_until(|| TcpStream::connect(at).is_err());
    assert_eq!(get(&anywhere, "/health").status, 200);
    ends_balanced(system);
}

#[cfg(unix)]
#[test]
fn a_server_listens_at_a_unix_socket() {
    let system = System::builder("unix").build().unwrap();
    let path = std::env::temp_dir().join(format!("pointsman-console-{}", std::process::id()));
    let server = system.serve_stats(SocketAddress::unix(&path)).unwrap();
    assert_eq!(server.local_addr(), None);
    let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
    client.write_all(b"GET /health HTTP/1.1\r\nHost: any\r\n\r\n").unwrap();
    assert_eq!(answer(&mut client).page, "ok\n");
    ends_balanced(system);
    assert!(!path.exists());
}

#[test]
fn slow_heads_and_endless_heads_are_given_up() {
    let clock = ManualClock::new();
    let system = System::builder("slow").clock(clock.clone()).build().unwrap();
    let server = system.stats_server(local()).request_within(Duration::from_secs(5)).spawn().unwrap();
    let mut slow = connect(&server);
    slow.write_all(b"GET / HTTP/1.1\r\nX: ").unwrap();
    wait_until(|| server.accepted() == 1);
    // A byte comes each second, and the time goes on. Others are served meanwhile.
    let mut reader = slow.try_clone().unwrap();
    let late = std::thread::spawn(move || answer(&mut reader).status);
    while !late.is_finished() {
        let _ = slow.write_all(b"x");
        assert_eq!(get(&server, "/health").status, 200);
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(late.join().unwrap(), 408);
    assert!(system.now() >= Duration::from_secs(5));
    drop(slow);
    wait_until(|| server.connections() == 0);

    let mut endless = connect(&server);
    endless.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n").unwrap();
    // The server stops reading it as a head after 8 KiB; what it writes may be refused when the server has closed.
    let line = format!("X: {}\r\n", "x".repeat(1000));
    for _ in 0..1024 {
        if endless.write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    let mut text = Vec::new();
    let _ = endless.read_to_end(&mut text);
    assert_eq!(Answer::of(&String::from_utf8(text).unwrap()).status, 431);
    drop(endless);
    wait_until(|| server.connections() == 0);
    ends_balanced(system);
}

#[test]
fn clients_that_never_read_hold_no_place_for_long() {
    // To make a page of this size may take so long here that the watchdog would report it.
    let system = System::builder("unread").telemetry(Telemetry::off()).build().unwrap();
    let within = Duration::from_millis(300);
    let server = system.stats_server(local()).response_within(within).spawn().unwrap();
    // A page of some megabytes, more than the socket takes.
    let class = "c".repeat(4000);
    let actors: Vec<_> = (0..2000).map(|_| system.actor_with(&class)).collect();
    let mut clients: Vec<_> = (0..4).map(|_| connect(&server)).collect();
    for client in &mut clients {
        client.write_all(b"GET /snapshot?limit=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    }
    wait_until(|| server.accepted() == 4);
    // Others are served meanwhile, and see all of them gone.
    assert_eq!(get(&server, "/health").status, 200);
    wait_until(|| server.connections() == 0);
    // They have not got the whole page.
    for client in &mut clients {
        let mut page = Vec::new();
        let _ = client.read_to_end(&mut page);
        assert!(page.len() < 8_000_000, "{}", page.len());
    }
    assert!(get(&server, "/snapshot?limit=10000").page.len() > 8_000_000);
    drop(actors);
    ends_balanced(system);
}

/// Makes an actor of a class.
trait ActorOfClass {
    fn actor_with(&self, class: &str) -> ActorRef<Option<Receiver<()>>>;
}

impl ActorOfClass for System {
    fn actor_with(&self, class: &str) -> ActorRef<Option<Receiver<()>>> {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.actor(&format!("of-class-{number}")).class(class).spawn(|| Waits).unwrap()
    }
}

#[test]
fn many_connections_are_bounded_and_the_oldest_ones_give_way() {
    // The clock stands: no limit of time helps.
    let system = System::builder("many").clock(ManualClock::new()).build().unwrap();
    let server = system.stats_server(local()).max_connections(4).spawn().unwrap();
    // They say nothing, and a client that takes the last place ends the oldest.
    let silent: Vec<_> = (0..20).map(|_| connect(&server)).collect();
    wait_until(|| server.accepted() == 20 && server.connections() == 3);
    assert_eq!(get(&server, "/health").status, 200);
    wait_until(|| server.connections() == 2);
    // Those that have kept their places can still ask; the others were closed or reset, and not answered.
    let answers = silent.into_iter().filter_map(|mut client| {
        let _ = client.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut text = String::new();
        let _ = client.read_to_string(&mut text);
        (!text.is_empty()).then(|| Answer::of(&text).status)
    });
    assert_eq!(answers.collect::<Vec<_>>(), [200, 200]);
    wait_until(|| server.connections() == 0);
    ends_balanced(system);
}

#[test]
fn clients_wait_for_a_single_place_until_its_time_is_over() {
    let clock = ManualClock::new();
    let system = System::builder("single").clock(clock.clone()).build().unwrap();
    let server = system
        .stats_server(local())
        .max_connections(1)
        .request_within(Duration::from_secs(5))
        // Longer than the clock goes on here.
        .response_within(Duration::from_secs(1_000_000_000))
        .spawn()
        .unwrap();
    let mut silent = connect(&server);
    wait_until(|| server.accepted() == 1);
    let mut next = connect(&server);
    next.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let next = std::thread::spawn(move || answer(&mut next).status);
    let late = std::thread::spawn(move || {
        assert_eq!(answer(&mut silent).status, 408);
        silent
    });
    while !late.is_finished() {
        assert_eq!((server.connections(), server.accepted()), (1, 1));
        clock.advance(Duration::from_secs(1));
        std::thread::yield_now();
    }
    // It keeps its place until it closes: so the next client meets a clock that stands.
    drop(late.join().unwrap());
    assert_eq!(next.join().unwrap(), 200);
    wait_until(|| server.connections() == 0);
    ends_balanced(system);
}

#[test]
fn the_end_of_the_system_ends_open_connections() {
    let system = System::builder("ends").build().unwrap();
    let server = system.serve_stats(local()).unwrap();
    let mut open = connect(&server);
    open.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    wait_until(|| server.accepted() == 1);
    ends_balanced(system);
    // Closed or reset, but not answered.
    assert_eq!(open.read_to_end(&mut Vec::new()).unwrap_or(0), 0);
    assert!(TcpStream::connect(address(&server)).is_err());
    assert_eq!(server.connections(), 0);
}

/// Sends itself a message for each one that it handles, until it is told to end.
struct Restless;

impl Actor for Restless {
    type Message = bool;
    fn receive(&mut self, goes_on: bool, ctx: &mut Context<bool>) -> HandlerResult {
        match goes_on {
            true => ctx.me().tell(true),
            false => ctx.stop(),
        }
        Ok(())
    }
}

#[test]
fn a_trace_has_the_turns_of_busy_and_idle_workers() {
    let clock = ManualClock::new();
    let system = System::builder("traced")
        .clock(clock.clone())
        .dispatcher("default", Dispatcher::work_stealing().threads(2))
        .build()
        .unwrap();
    let server = system.serve_stats(local()).unwrap();
    // One worker is never idle; the other has a few messages now and then.
    let restless = system.actor("restless").class("without rest").spawn(|| Restless).unwrap();
    restless.tell(true);
    let now_and_then = system.actor("now-and-then").spawn(|| Waits).unwrap();
    let client = std::thread::spawn({
        let server = server.clone();
        move || get(&server, "/trace?seconds=1")
    });
    let mut sent = 0;
    while !client.is_finished() {
        (0..3).for_each(|_| now_and_then.tell(None));
        sent += 3;
        wait_until(|| now_and_then.untyped().unwrap().handled() == sent);
        clock.advance(Duration::from_millis(5));
    }
    restless.tell(false);
    let answer = client.join().unwrap();
    assert_eq!((answer.status, answer.header("Content-Type")), (200, Some("application/json")));
    let page: Value = serde_json::from_str(&answer.page).unwrap();
    let events = page["traceEvents"].as_array().unwrap();
    let kind = |event: &Value, kind: &str| event["cat"].as_str() == Some(kind);
    let of_actor = |path: &str| {
        let turns = events.iter().filter(|event| kind(event, "turn") && event["name"].as_str() == Some(path));
        turns.map(|turn| turn["args"]["messages"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let (busy, idle) = (of_actor("/user/restless"), of_actor("/user/now-and-then"));
    let full = busy.iter().filter(|messages| **messages == 64).count();
    assert!(busy.iter().all(|messages| *messages <= 64), "no turn is beyond its throughput: {busy:?}");
    assert!(full > 10 && idle.iter().sum::<u64>() > 10, "{full} turns of {}, {idle:?}", busy.len());
    assert!(idle.iter().sum::<u64>() <= sent);
    let of_class = events.iter().find(|event| event["name"].as_str() == Some("/user/restless")).unwrap();
    assert_eq!(of_class["args"]["class"], "without rest");
    let length = page["otherData"]["seconds"].as_f64().unwrap() * 1e6;
    for tid in 1..=2 {
        let name = events.iter().find(|event| event["ph"] == "M" && event["tid"].as_u64() == Some(tid));
        assert!(name.unwrap()["args"]["name"].as_str().unwrap().contains("default"), "{name:?}");
        // A worker does one thing at a time.
        let mut spans: Vec<(f64, f64)> = events
            .iter()
            .filter(|event| event["ph"] == "X" && event["tid"].as_u64() == Some(tid))
            .map(|event| (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap()))
            .collect();
        spans.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(spans.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0 + 0.001), "{spans:?}");
        assert!(spans.iter().map(|(_, length)| length).sum::<f64>() <= length);
    }
    // Nothing goes on when the recording is over: a new one begins from nothing.
    wait_until(|| restless.is_closed());
    ends_balanced(system);
}

#[test]
fn a_trace_has_the_turns_of_blocking_and_pinned_threads() {
    let clock = ManualClock::new();
    let system = System::builder("traced-threads")
        .clock(clock.clone())
        .dispatcher("files", Dispatcher::blocking().thread_range(1..=1))
        .dispatcher("own", Dispatcher::pinned())
        .build()
        .unwrap();
    let server = system.serve_stats(local()).unwrap();
    let actors = ["files", "own"].map(|dispatcher| {
        let actor = system.actor(dispatcher).dispatcher(dispatcher).spawn(|| Waits).unwrap();
        // Its thread runs before the recording begins.
        actor.tell(None);
        wait_until(|| actor.untyped().unwrap().handled() == 1);
        actor
    });
    let client = std::thread::spawn({
        let server = server.clone();
        move || get(&server, "/trace?seconds=1")
    });
    let mut sent = 1;
    while !client.is_finished() {
        for actor in &actors {
            (0..3).for_each(|_| actor.tell(None));
        }
        sent += 3;
        wait_until(|| actors.iter().all(|actor| actor.untyped().unwrap().handled() == sent));
        clock.advance(Duration::from_millis(5));
    }
    let page: Value = serde_json::from_str(&client.join().unwrap().page).unwrap();
    let events = page["traceEvents"].as_array().unwrap();
    for dispatcher in ["files", "own"] {
        let thread = events
            .iter()
            .find(|event| event["ph"] == "M" && event["args"]["name"].as_str().unwrap().contains(dispatcher));
        let tid = thread.unwrap_or_else(|| panic!("no thread of {dispatcher}: {}", page))["tid"].as_u64();
        let of_thread = |cat: &str| {
            let events = events.iter().filter(|event| event["tid"].as_u64() == tid && event["cat"] == cat);
            events.collect::<Vec<_>>()
        };
        let turns = of_thread("turn");
        let path = format!("/user/{dispatcher}");
        assert!(turns.iter().all(|turn| turn["name"] == path.as_str()), "{turns:?}");
        let messages: u64 = turns.iter().map(|turn| turn["args"]["messages"].as_u64().unwrap()).sum();
        assert!((10..sent).contains(&messages), "{dispatcher}: {messages} of {sent}");
        assert!(!of_thread("sleep").is_empty(), "{dispatcher}");
        // A thread does one thing at a time.
        let mut spans: Vec<(f64, f64)> = turns
            .into_iter()
            .chain(of_thread("sleep"))
            .map(|event| (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap()))
            .collect();
        spans.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(spans.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0 + 0.001), "{spans:?}");
    }
    ends_balanced(system);
}

#[test]
fn one_trace_is_recorded_at_a_time() {
    let clock = ManualClock::new();
    let system = System::builder("traces").clock(clock.clone()).build().unwrap();
    let server = system.serve_stats(local()).unwrap();
    let mut clients: Vec<_> = (0..2)
        .map(|_| {
            let server = server.clone();
            std::thread::spawn(move || get(&server, "/trace").status)
        })
        .collect();
    // While the clock stands, no recording ends.
    wait_until(|| clients.iter().any(|client| client.is_finished()));
    let refused = clients.iter().position(|client| client.is_finished()).unwrap();
    assert_eq!(clients.remove(refused).join().unwrap(), 409);
    while !clients[0].is_finished() {
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(clients.remove(0).join().unwrap(), 200);
    assert_eq!(send(&server, "HEAD /trace HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
    for seconds in ["0", "31", "-1", "x", "1.5"] {
        assert_eq!(get(&server, &format!("/trace?seconds={seconds}")).status, 400, "{seconds}");
    }
    // The end of the system ends a recording.
    let mut client = connect(&server);
    let accepted = server.accepted();
    client.write_all(b"GET /trace HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    wait_until(|| server.accepted() >= accepted);
    ends_balanced(system);
    assert_eq!(client.read_to_end(&mut Vec::new()).unwrap_or(0), 0);
}
