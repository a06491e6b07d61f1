//! The example `shardcache`, driven by the `redis` crate and by bare sockets: every reply is checked, also
//! while the number of shards changes.
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

use redis::{Commands, Connection, cmd, pipe};
use server::{Server, Settings};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Only failing tests wait for so long.
const LONG: Duration = Duration::from_secs(30);

fn start(change: impl FnOnce(&mut Settings)) -> Server {
    let mut settings = Settings { tcp: "127.0.0.1:0".to_owned(), threads: Some(2), ..Settings::default() };
    change(&mut settings);
    Server::start(settings).unwrap()
}

fn connect(port: u16) -> Connection {
    let client = redis::Client::open(("127.0.0.1", port)).unwrap().get_connection().unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client
}

fn ends_balanced(server: Server) {
    let ledger = server.end().unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
}

fn resize(client: &mut Connection, count: usize) {
    cmd("SHARDS").arg(count).exec(client).unwrap();
    assert_eq!(cmd("SHARDS").query::<usize>(client).unwrap(), count);
}

#[test]
fn the_redis_crate_finds_a_redis() {
    let server = start(|_| {});
    let mut client = connect(server.port());
    assert_eq!(client.set::<_, _, String>("a", "1").unwrap(), "OK");
    assert_eq!(client.incr::<_, _, i64>("a", 41).unwrap(), 42);
    assert_eq!(client.append::<_, _, usize>("a", "!").unwrap(), 3);
    assert_eq!(client.get::<_, String>("a").unwrap(), "42!");
    let binary = [0u8, 13, 10, 255];
    client.set::<_, _, ()>(&binary[..], &binary[..]).unwrap();
    assert_eq!(client.get::<_, Vec<u8>>(&binary[..]).unwrap(), binary);

    let pairs: Vec<(String, u32)> = (0..100).map(|at| (format!("many{at}"), at)).collect();
    client.mset::<_, _, ()>(&pairs).unwrap();
    let keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).chain(["missing"]).collect();
    let values: Vec<Option<u32>> = client.mget(&keys).unwrap();
    assert_eq!(values, (0..100).map(Some).chain([None]).collect::<Vec<_>>());
    assert_eq!(client.exists::<_, usize>(&keys).unwrap(), 100);
    assert_eq!(cmd("DBSIZE").query::<usize>(&mut client).unwrap(), 102);
    assert_eq!(client.keys::<_, Vec<String>>("many?").unwrap().len(), 10);
    assert_eq!(client.del::<_, usize>(&keys).unwrap(), 100);

    client.pset_ex::<_, _, ()>("mortal", "x", 100_000).unwrap();
    assert!((99_000..=100_000).contains(&client.pttl::<_, i64>("mortal").unwrap()));
    let info: String = cmd("INFO").query(&mut client).unwrap();
    assert!(info.contains("connected_clients:1\r\n") && info.contains("db0:keys=3\r\n"), "{info}");
    cmd("FLUSHALL").exec(&mut client).unwrap();
    assert_eq!(cmd("DBSIZE").query::<usize>(&mut client).unwrap(), 0);
    ends_balanced(server);
}

#[test]
fn what_has_expired_is_gone_though_nobody_asks_for_it() {
    let server = start(|_| {});
    let mut client = connect(server.port());
    for key in 0..50 {
        client.pset_ex::<_, _, ()>(key, "x", 30).unwrap();
    }
    while cmd("DBSIZE").query::<usize>(&mut client).unwrap() > 0 {}
    assert_eq!(client.get::<_, Option<String>>(7).unwrap(), None);
    ends_balanced(server);
}

/// Sends all of `requests` at once, and reads exactly what is expected.
fn exchange(port: u16, requests: &[u8], replies: &[u8]) {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    // A reply that is missing must fail the test, and end the sender.
    socket.set_read_timeout(Some(LONG)).unwrap();
    let mut sender = socket.try_clone().unwrap();
    sender.set_write_timeout(Some(2 * LONG)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || sender.write_all(requests).unwrap());
        let mut received = vec![0; replies.len()];
        socket.read_exact(&mut received).unwrap();
        if let Some(at) = received.iter().zip(replies).position(|(got, wanted)| got != wanted) {
            let from = at.saturating_sub(40);
            let show = |bytes: &[u8]| bytes[from..bytes.len().min(at + 40)].escape_ascii().to_string();
            panic!("byte {at}: got {}, wanted {}", show(&received), show(replies));
        }
    });
}

#[test]
fn replies_keep_the_order_of_the_requests_whoever_answers() {
    let server = start(|settings| settings.shards = 5);
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    for round in 0..3000 {
        write!(requests, "SET k{round} {round}\r\nPING\r\nGET k{round}\r\n").unwrap();
        write!(replies, "+OK\r\n+PONG\r\n${}\r\n{round}\r\n", round.to_string().len()).unwrap();
        if round % 10 == 0 {
            write!(requests, "MSET a {round} b {round} c {round}\r\nnonsense\r\nMGET c none a\r\n").unwrap();
            let value = format!("${}\r\n{round}\r\n", round.to_string().len());
            let error = "-ERR unknown command 'nonsense', with args beginning with: \r\n";
            write!(replies, "+OK\r\n{error}*3\r\n{value}$-1\r\n{value}").unwrap();
        }
        if round % 100 == 0 {
            write!(
                requests,
                "DBSIZE\r\nDEL a b c k{round}\r\nECHO {round}\r\nDBSIZE\r\nSET k{round} back\r\n"
            )
            .unwrap();
            let size = round + 4;
            write!(replies, ":{size}\r\n:4\r\n${}\r\n{round}\r\n", round.to_string().len()).unwrap();
            write!(replies, ":{}\r\n+OK\r\n", size - 4).unwrap();
        }
        if round % 1000 == 0 {
            // Changes of the shards stand in the same line.
            let count = 3 + round / 1000 * 2;
            write!(requests, "SHARDS {count}\r\nSHARDS\r\n").unwrap();
            write!(replies, "+OK\r\n:{count}\r\n").unwrap();
        }
    }
    exchange(server.port(), &requests, &replies);
    ends_balanced(server);
}

#[test]
fn requests_behind_a_reply_that_is_much_for_one_moment_are_answered() {
    let server = start(|_| {});
    // The reply is above the high-water mark, and gone as soon as it is there.
    let text = "x".repeat(300_000);
    let requests = format!("*2\r\n$4\r\nECHO\r\n${}\r\n{text}\r\nPING\r\nPING\r\n", text.len());
    let replies = format!("${}\r\n{text}\r\n+PONG\r\n+PONG\r\n", text.len());
    exchange(server.port(), requests.as_bytes(), replies.as_bytes());
    ends_balanced(server);
}

/// A client with keys of its own: what it reads is what it wrote last, in one pipeline and from one to the
/// next.
fn check_own_keys(port: u16, name: usize, ends: &AtomicBool, shared_count: &AtomicU64) -> u64 {
    const KEYS: usize = 50;
    let mut client = connect(port);
    let mut round = 0u64;
    while !ends.load(Ordering::Relaxed) || round == 0 {
        let mut pipeline = pipe();
        for key in 0..KEYS {
            pipeline.get(format!("own:{name}:{key}"));
            pipeline.set(format!("own:{name}:{key}"), round);
            pipeline.get(format!("own:{name}:{key}"));
            pipeline.incr(format!("count:{name}:{key}"), 1);
            pipeline.incr(format!("count:{name}:{key}"), 1);
            pipeline.incr("shared", 1);
        }
        let replies: Vec<(Option<u64>, (), u64, u64, u64, u64)> = {
            let flat: Vec<redis::Value> = pipeline.query(&mut client).unwrap();
            flat.chunks(6)
                .map(|six| redis::from_redis_value(redis::Value::Array(six.to_vec())).unwrap())
                .collect()
        };
        assert_eq!(replies.len(), KEYS);
        let mut shared_before = 0;
        for (before, (), after, first, second, shared) in replies {
            assert_eq!(before, round.checked_sub(1), "what was written in the last round");
            assert_eq!(after, round);
            assert_eq!((first, second), (2 * round + 1, 2 * round + 2));
            assert!(shared > shared_before, "{shared} after {shared_before}");
            shared_before = shared;
        }
        shared_count.fetch_add(KEYS as u64, Ordering::Relaxed);
        round += 1;
    }
    round
}

#[test]
fn shards_come_and_go_and_no_client_notices() {
    const STANDING: usize = 3000;
    let server = start(|_| {});
    let port = server.port();
    let mut client = connect(port);
    let mut pipeline = pipe();
    for key in 0..STANDING {
        pipeline.set(format!("standing:{key}"), key).ignore();
        if key % 3 == 0 {
            pipeline.expire(format!("standing:{key}"), 10_000 + key as i64).ignore();
        }
    }
    pipeline.exec(&mut client).unwrap();

    let ends = Arc::new(AtomicBool::new(false));
    let shared_count = Arc::new(AtomicU64::new(0));
    // The value acknowledged last, and one client that must never see an older one.
    let acknowledged = Arc::new(AtomicU64::new(0));
    let checkers: Vec<_> = (0..3)
        .map(|name| {
            let (ends, shared_count) = (ends.clone(), shared_count.clone());
            std::thread::spawn(move || check_own_keys(port, name, &ends, &shared_count))
        })
        .collect();
    let writer = std::thread::spawn({
        let (ends, acknowledged) = (ends.clone(), acknowledged.clone());
        move || {
            let mut client = connect(port);
            let mut value = 0;
            while !ends.load(Ordering::Relaxed) {
                value += 1;
                let pairs: Vec<(String, u64)> = (0..10).map(|key| (format!("fresh:{key}"), value)).collect();
                client.mset::<_, _, ()>(&pairs).unwrap();
                acknowledged.store(value, Ordering::SeqCst);
            }
        }
    });
    let reader = std::thread::spawn({
        let (ends, acknowledged) = (ends.clone(), acknowledged.clone());
        move || {
            let mut client = connect(port);
            let keys: Vec<String> = (0..10).map(|key| format!("fresh:{key}")).collect();
            while !ends.load(Ordering::Relaxed) {
                let at_least = acknowledged.load(Ordering::SeqCst);
                let values: Vec<Option<u64>> = client.mget(&keys).unwrap();
                for value in values {
                    assert!(value.unwrap_or(0) >= at_least, "{value:?} after {at_least} was acknowledged");
                }
            }
        }
    });

    for count in [7, 4, 7, 4, 1, 9, 2, 4, 7, 4] {
        resize(&mut client, count);
        // Somebody must have worked under each number of shards.
        let before = shared_count.load(Ordering::Relaxed);
        while shared_count.load(Ordering::Relaxed) < before + 300 {
            assert!(!checkers.iter().any(|checker| checker.is_finished()), "a checker has failed");
            std::thread::yield_now();
        }
    }
    ends.store(true, Ordering::Relaxed);
    let rounds: Vec<u64> = checkers.into_iter().map(|checker| checker.join().unwrap()).collect();
    writer.join().unwrap();
    reader.join().unwrap();

    assert!(rounds.iter().all(|&rounds| rounds > 0), "{rounds:?}");
    let shared: u64 = client.get("shared").unwrap();
    assert_eq!(shared, rounds.iter().sum::<u64>() * 50);
    let size: usize = cmd("DBSIZE").query(&mut client).unwrap();
    assert_eq!(size, STANDING + 3 * 100 + 10 + 1);
    assert_eq!(client.keys::<_, Vec<String>>("*").unwrap().len(), size);
    for key in 0..STANDING {
        let name = format!("standing:{key}");
        assert_eq!(client.get::<_, Option<usize>>(&name).unwrap(), Some(key));
        let left: i64 = client.ttl(&name).unwrap();
        match key % 3 {
            0 => assert!((9_000 + key as i64..=10_000 + key as i64).contains(&left), "{name}: {left}"),
            _ => assert_eq!(left, -1, "{name}"),
        }
    }
    ends_balanced(server);
}

#[test]
fn one_long_pipeline_keeps_its_order_while_shards_come_and_go() {
    const KEYS: usize = 20;
    const REQUESTS: usize = 400_000;
    let server = start(|_| {});
    let port = server.port();
    let ends = Arc::new(AtomicBool::new(false));
    let resizing = std::thread::spawn({
        let ends = ends.clone();
        move || {
            let mut client = connect(port);
            let mut changes = 0;
            while !ends.load(Ordering::Relaxed) {
                resize(&mut client, 7);
                resize(&mut client, 4);
                changes += 2;
            }
            changes
        }
    });
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    for at in 0..REQUESTS {
        write!(requests, "INCR k{}\r\n", at % KEYS).unwrap();
        write!(replies, ":{}\r\n", at / KEYS + 1).unwrap();
    }
    exchange(port, &requests, &replies);
    ends.store(true, Ordering::Relaxed);
    assert!(resizing.join().unwrap() > 2, "the shards must have changed meanwhile");
    ends_balanced(server);
}

#[test]
fn what_concerns_all_shards_sees_every_key_while_they_move() {
    const KEYS: usize = 2000;
    let server = start(|_| {});
    let port = server.port();
    let mut client = connect(port);
    let fill = |client: &mut Connection| {
        let pairs: Vec<(usize, usize)> = (0..KEYS).map(|key| (key, key)).collect();
        client.mset::<_, _, ()>(&pairs).unwrap();
    };
    fill(&mut client);
    let ends = Arc::new(AtomicBool::new(false));
    let resizing = std::thread::spawn({
        let ends = ends.clone();
        move || {
            let mut client = connect(port);
            while !ends.load(Ordering::Relaxed) {
                resize(&mut client, 7);
                resize(&mut client, 4);
            }
        }
    });
    for _ in 0..20 {
        for _ in 0..10 {
            assert_eq!(cmd("DBSIZE").query::<usize>(&mut client).unwrap(), KEYS);
        }
        assert_eq!(client.keys::<_, Vec<String>>("*").unwrap().len(), KEYS);
        cmd("FLUSHALL").exec(&mut client).unwrap();
        let values: Vec<Option<usize>> = client.mget((0..KEYS).collect::<Vec<_>>()).unwrap();
        assert!(values.iter().all(Option::is_none));
        fill(&mut client);
    }
    ends.store(true, Ordering::Relaxed);
    resizing.join().unwrap();
    ends_balanced(server);
}

/// The last words of the server to a client that sends `bytes`, up to the end of the connection.
fn last_words(port: u16, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.write_all(bytes).unwrap();
    let mut words = String::new();
    socket.read_to_string(&mut words).unwrap();
    words
}

#[test]
fn what_is_no_resp_is_answered_and_then_closed() {
    let server = start(|settings| settings.clients_max = 3);
    let port = server.port();
    assert_eq!(
        last_words(port, b"PING\r\n*2\r\n$3\r\nGET\r\n$536870913\r\n"),
        "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n"
    );
    assert_eq!(
        last_words(port, b"SET a 1\r\nGET a\r\n*1048577\r\n"),
        "+OK\r\n$1\r\n1\r\n-ERR Protocol error: invalid multibulk length\r\n"
    );
    assert_eq!(last_words(port, b"*1\r\n:1\r\n"), "-ERR Protocol error: expected '$', got ':'\r\n");
    assert_eq!(last_words(port, b"QUIT\r\nPING\r\n"), "+OK\r\n");
    // Nobody is left of those above once the last word was read.
    let mut there: Vec<Connection> = (0..3).map(|_| connect(port)).collect();
    let mut refused = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut words = String::new();
    refused.read_to_string(&mut words).unwrap();
    assert_eq!(words, "-ERR max number of clients reached\r\n");
    for client in &mut there {
        assert_eq!(cmd("PING").query::<String>(client).unwrap(), "PONG");
    }
    ends_balanced(server);
}

#[test]
fn a_client_that_sends_and_never_reads_is_cut_off_or_slowed_down() {
    let server = start(|settings| settings.output_max = 4 << 20);
    let mut client = connect(server.port());
    client.set::<_, _, ()>("large", vec![b'x'; 1 << 20]).unwrap();
    let mut greedy = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let request = b"GET large\r\n".repeat(1000);
    let error = loop {
        if let Err(error) = greedy.write_all(&request) {
            break error;
        }
    };
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
    assert!(matches!(error.kind(), BrokenPipe | ConnectionReset), "{error}");
    // The others never noticed.
    assert_eq!(client.strlen::<_, usize>("large").unwrap(), 1 << 20);
    ends_balanced(server);
}

#[test]
fn clients_that_flood_trickle_and_promise_leave_others_their_turn() {
    let server = start(|_| {});
    let port = server.port();
    // Tiny requests without end, from clients that never read: they are slowed down.
    let floods: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    let pouring: Vec<_> = floods
        .iter()
        .map(|flood| {
            let (mut flood, requests) = (flood.try_clone().unwrap(), b"PING\r\n".repeat(1000));
            std::thread::spawn(move || while flood.write_all(&requests).is_ok() {})
        })
        .collect();
    // Requests of which one byte comes at a time, and promises of the largest there may be.
    let mut slow: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    for client in &mut slow[50..] {
        client.write_all(b"*1048576\r\n$536870912\r\n").unwrap();
    }
    let mut client = connect(port);
    for byte in b"*1\r\n$4\r\nPING\r\n" {
        slow.iter_mut().for_each(|client| client.write_all(&[*byte]).unwrap());
        for key in 0..10 {
            client.set::<_, _, ()>(key, "value").unwrap();
            assert_eq!(client.get::<_, String>(key).unwrap(), "value");
        }
    }
    for client in &mut slow[..50] {
        let mut reply = [0; 7];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"+PONG\r\n");
    }
    floods.iter().for_each(|flood| flood.shutdown(std::net::Shutdown::Both).unwrap());
    pouring.into_iter().for_each(|pouring| pouring.join().unwrap());
    drop(floods);
    ends_balanced(server);
}

#[test]
fn a_port_in_use_is_said_so() {
    let server = start(|_| {});
    let tcp = format!("127.0.0.1:{}", server.port());
    let second = Server::start(Settings { tcp, ..Settings::default() });
    let error = second.err().expect("the port is taken").to_string();
    assert!(error.contains("it is in use"), "{error}");
    ends_balanced(server);
}
