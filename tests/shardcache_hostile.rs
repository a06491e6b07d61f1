//! The example `shardcache` and clients that mean harm: what they can make the server hold is bounded, and others are
//! served meanwhile. All over the loopback, in bounded numbers.
//!
//! Others that are slow, greedy or talk nonsense are in `shardcache.rs`; the library without the example is held to its
//! bounds by `untrusted.rs`.
#![cfg(feature = "net")]

#[allow(dead_code)] // here and below: the test needs a part of each module
#[path = "../examples/shardcache/bytes.rs"]
mod bytes;
#[path = "../examples/shardcache/client.rs"]
mod client;
#[allow(dead_code)] // as above
#[path = "../examples/shardcache/command.rs"]
mod command;
#[path = "../examples/shardcache/coordinator.rs"]
mod coordinator;
#[allow(dead_code)] // as above
#[path = "../examples/shardcache/glob.rs"]
mod glob;
#[allow(dead_code)] // as above
#[path = "../examples/shardcache/keyspace.rs"]
mod keyspace;
#[allow(dead_code)] // as above
#[path = "../examples/shardcache/resp.rs"]
mod resp;
#[allow(dead_code)] // as above
#[path = "../examples/shardcache/server.rs"]
mod server;
#[path = "../examples/shardcache/shard.rs"]
mod shard;

use redis::{Commands, Connection, ConnectionLike, RedisResult, cmd};
use server::{NO_CLIENTS_MAX, Server, Settings};
use std::alloc::{GlobalAlloc, Layout};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Only failing tests wait for so long.
const LONG: Duration = Duration::from_secs(30);
/// The value that is asked for again and again.
const VALUE: usize = 4 << 20;
/// What else a server and its clients take, such as buffers for what is read.
const BESIDES: usize = 8 << 20;

/// Counts the bytes that are in use, and the most that ever were.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(in_use, Ordering::Relaxed);
        // SAFETY: as the caller has promised.
        unsafe { std::alloc::System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller has promised.
        unsafe { std::alloc::System.dealloc(block, layout) }
    }
}

/// Set in children.
const CHILD: &str = "POINTSMAN_HOSTILE_CHILD";

/// Runs the test of this name in a child, since the count is the process's, and unit tests of the example run in this
/// one. True in that child.
fn in_child(test: &str) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let (said, fault) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && said.contains("1 passed"), "{said}{fault}");
    false
}

/// What is in use now; the most is counted anew.
fn count_anew() -> usize {
    let in_use = IN_USE.load(Ordering::Relaxed);
    MOST.store(in_use, Ordering::Relaxed);
    in_use
}

/// How much more than `before` was in use at some moment since then.
fn most_since(before: usize) -> usize {
    MOST.load(Ordering::Relaxed).saturating_sub(before)
}

fn start(change: impl FnOnce(&mut Settings)) -> Server {
    let mut settings = Settings { tcp: "127.0.0.1:0".to_owned(), threads: Some(2), ..Settings::default() };
    change(&mut settings);
    Server::start(settings).unwrap()
}

fn try_to_connect(port: u16) -> RedisResult<Connection> {
    let client = redis::Client::open(("127.0.0.1", port))?.get_connection()?;
    client.set_read_timeout(Some(LONG))?;
    Ok(client)
}

fn connect(port: u16) -> Connection {
    try_to_connect(port).unwrap()
}

fn ends_balanced(server: Server) {
    let ledger = server.end().unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
}

fn is_refused<T>(outcome: RedisResult<T>) {
    let error = outcome.err().expect("it is too long").to_string();
    assert!(error.contains("above the output limit") && error.contains("ask for less"), "{error}");
}

/// The requests `requests` as a client sends them.
fn packed(requests: &[redis::Cmd]) -> Vec<u8> {
    requests.iter().flat_map(|request| request.get_packed_command()).collect()
}

#[test]
fn a_small_request_for_a_large_reply_is_refused_before_the_reply_is_made() {
    const OUTPUT_MAX: usize = 1_000_000;
    if !in_child("a_small_request_for_a_large_reply_is_refused_before_the_reply_is_made") {
        return;
    }
    let server = start(|settings| settings.output_max = OUTPUT_MAX);
    let mut client = connect(server.port());
    client.set::<_, _, ()>("large", vec![b'x'; VALUE]).unwrap();
    let keys = vec!["large"; 100];
    let before = count_anew();
    is_refused(client.mget::<_, Vec<Option<Vec<u8>>>>(&keys));
    is_refused(client.get::<_, Vec<u8>>("large"));
    is_refused(cmd("COMMAND").arg("INFO").arg(&["get"; 20_000]).query::<redis::Value>(&mut client));
    // From more than one shard, and behind others in a pipeline, which are answered.
    let mut pipeline = redis::pipe();
    pipeline.set("small", "s").ignore().mget(&["small", "none"]).get("small");
    let answered: (Vec<Option<String>>, String) = pipeline.query(&mut client).unwrap();
    assert_eq!(answered, (vec![Some("s".to_owned()), None], "s".to_owned()));
    is_refused(client.mget::<_, Vec<Option<Vec<u8>>>>(&["small", "large", "none", "another"]));
    assert!(most_since(before) < BESIDES, "{} bytes", most_since(before));
    ends_balanced(server);
}

#[test]
fn a_list_of_keys_that_is_too_long_is_refused_and_a_shorter_one_is_not() {
    if !in_child("a_list_of_keys_that_is_too_long_is_refused_and_a_shorter_one_is_not") {
        return;
    }
    let server = start(|settings| settings.output_max = 10_000);
    let mut client = connect(server.port());
    let pairs: Vec<(String, u32)> = (0..2000).map(|key| (format!("key:{key:04}"), key)).collect();
    client.mset::<_, _, ()>(&pairs).unwrap();
    is_refused(client.keys::<_, Vec<String>>("*"));
    assert_eq!(client.keys::<_, Vec<String>>("key:00*").unwrap().len(), 100);
    assert_eq!(cmd("DBSIZE").query::<usize>(&mut client).unwrap(), 2000);
    assert_eq!(
        client.del::<_, usize>((0..2000).map(|key| format!("key:{key:04}")).collect::<Vec<_>>()),
        Ok(2000)
    );
    ends_balanced(server);
}

#[test]
fn a_pipeline_of_large_replies_that_nobody_reads_holds_no_more_than_the_limit() {
    const OUTPUT_MAX: usize = 2 * VALUE;
    const REQUESTS: usize = 100;
    if !in_child("a_pipeline_of_large_replies_that_nobody_reads_holds_no_more_than_the_limit") {
        return;
    }
    let server = start(|settings| settings.output_max = OUTPUT_MAX);
    let mut client = connect(server.port());
    client.set::<_, _, ()>("large", vec![b'x'; VALUE]).unwrap();
    let before = count_anew();
    let mut greedy = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let requests = packed(&vec![cmd("MGET").arg("large").clone(); REQUESTS]);
    greedy.write_all(&requests).unwrap();
    // It is cut off when the second or third reply does not fit any more.
    let connected = || server.shared().info().connected_clients;
    let began = std::time::Instant::now();
    while connected() > 1 {
        assert!(began.elapsed() < LONG, "it is never cut off");
        assert_eq!(client.strlen::<_, usize>("large").unwrap(), VALUE);
    }
    // Twice, since buffers grow by doubling.
    assert!(most_since(before) < 2 * OUTPUT_MAX + BESIDES, "{} bytes", most_since(before));
    drop(greedy);
    ends_balanced(server);
}

#[test]
fn clients_that_ask_quit_and_never_read_leave_room_for_others() {
    const CLIENTS_MAX: usize = 20;
    const CONNECTIONS_MAX: usize = CLIENTS_MAX + NO_CLIENTS_MAX;
    const QUITTERS: usize = 100;
    /// Each asks for so many.
    const VALUES: usize = 2;
    /// The library's default.
    const LINGER_BYTES: usize = 64 << 20;
    if !in_child("clients_that_ask_quit_and_never_read_leave_room_for_others") {
        return;
    }
    let server = start(|settings| settings.clients_max = CLIENTS_MAX);
    let mut client = connect(server.port());
    client.set::<_, _, ()>("large", vec![b'x'; VALUE]).unwrap();
    let requests = packed(&[cmd("MGET").arg(&["large"; VALUES]).clone(), cmd("QUIT")]);
    // These linger without a byte to be sent: more has come than is read before the end.
    let talk = [b"QUIT\r\n".to_vec(), vec![b'x'; 70_000]].concat();
    let before = count_anew();
    let mut quitters = Vec::new();
    for (said, count) in [(&requests, QUITTERS), (&talk, CONNECTIONS_MAX + QUITTERS)] {
        for _ in 0..count {
            let mut quitter = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
            // Those that are not accepted yet take a part of it.
            quitter.set_nonblocking(true).unwrap();
            let _ = quitter.write(said);
            quitters.push(quitter);
            // Others are served all the while.
            assert_eq!(client.strlen::<_, usize>("large").unwrap(), VALUE);
            assert!(server.connections() <= CONNECTIONS_MAX);
        }
    }
    // Each client may have its reply, while those that linger hold what they may.
    let bound = LINGER_BYTES + CLIENTS_MAX * VALUES * VALUE + BESIDES;
    assert!(most_since(before) < bound, "{} bytes", most_since(before));
    drop(quitters);
    // It is turned away while those that were not accepted yet are clients for a moment.
    let began = std::time::Instant::now();
    let mut other = loop {
        match try_to_connect(server.port()) {
            Ok(other) => break other,
            Err(error) => assert!(began.elapsed() < LONG, "{error}"),
        }
    };
    // They came before it, and are gone soon.
    while server.connections() > 2 {
        assert!(began.elapsed() < LONG, "they linger though their peers have closed");
        std::thread::yield_now();
    }
    let mut pong = String::new();
    assert_eq!(cmd("PING").query::<String>(&mut other), Ok("PONG".to_owned()));
    TcpStream::connect(("127.0.0.1", server.port()))
        .and_then(|mut last| last.write_all(b"QUIT\r\n").and_then(|()| last.read_to_string(&mut pong)))
        .unwrap();
    assert_eq!(pong, "+OK\r\n");
    ends_balanced(server);
}

/// A short request may have a long reply that no shard makes: the name that the client has given itself.
fn ask_for_names(name_len: usize) -> Vec<u8> {
    let name = cmd("CLIENT").arg("SETNAME").arg(vec![b'n'; name_len]).clone();
    let mut requests = packed(&[name]);
    // The shard's reply comes later than the names, which wait for it.
    requests.extend(packed(&[cmd("GET").arg("small").clone()]));
    requests.extend(packed(&vec![cmd("CLIENT").arg("GETNAME").clone(); 1000]));
    requests
}

#[test]
fn a_pipeline_of_names_above_the_limit_is_refused_name_by_name() {
    if !in_child("a_pipeline_of_names_above_the_limit_is_refused_name_by_name") {
        return;
    }
    let server = start(|settings| settings.output_max = VALUE / 4);
    let mut client = connect(server.port());
    client.set::<_, _, ()>("small", "s").unwrap();
    let requests = ask_for_names(VALUE);
    let before = count_anew();
    let answers = client.req_packed_commands(&requests, 0, 1002).unwrap();
    assert!(most_since(before) < 2 * VALUE + BESIDES, "{} bytes", most_since(before));
    let is_refused = |answer: &redis::Value| matches!(answer, redis::Value::ServerError(_));
    assert!(!answers[..2].iter().any(is_refused) && answers[2..].iter().all(is_refused));
    is_refused_listing(&mut client);
    assert_eq!(client.get::<_, String>("small"), Ok("s".to_owned()));
    ends_balanced(server);
}

/// The name is in the list of the clients, too.
fn is_refused_listing(client: &mut Connection) {
    is_refused(cmd("CLIENT").arg("LIST").query::<String>(client));
}

#[test]
fn a_pipeline_of_names_below_the_limit_holds_no_more_than_two_of_them() {
    /// So many names are read in the end.
    const READ: usize = 20;
    if !in_child("a_pipeline_of_names_below_the_limit_holds_no_more_than_two_of_them") {
        return;
    }
    let server = start(|settings| settings.output_max = 2 * VALUE);
    let mut client = connect(server.port());
    client.set::<_, _, ()>("small", "s").unwrap();
    let requests = ask_for_names(VALUE);
    let before = count_anew();
    let mut greedy = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    greedy.set_read_timeout(Some(LONG)).unwrap();
    greedy.write_all(&requests).unwrap();
    let mut part = vec![0; 64 << 10];
    let mut left = READ * VALUE;
    while left > 0 {
        let read = greedy.read(&mut part).unwrap();
        assert_ne!(read, 0, "it is served, as it reads");
        left = left.saturating_sub(read);
    }
    // The name itself, what it was read into, and the replies; buffers grow by doubling.
    assert!(most_since(before) < 8 * VALUE + BESIDES, "{} bytes", most_since(before));
    drop(greedy);
    ends_balanced(server);
}
