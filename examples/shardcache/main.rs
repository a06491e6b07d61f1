//! A RESP2 cache server on Pointsman: keys are spread over cache actors by consistent hashing, and stock
//! Redis clients talk to it.
//!
//! ```text
//! cargo run --release --example shardcache -- --port 6379 --shards 4
//! redis-cli set greeting hello
//! redis-benchmark -t ping,set,get,incr,mset -c 50 -n 1000000 -P 16 -q
//! redis-cli shards 7      # while the benchmark runs
//! ```
//!
//! `--output-limit` bounds what waits for one client: a reply that would be longer by itself is refused with an error
//! before it is made, and a client that does not read is cut off. `--maxclients` bounds the clients; connections that
//! linger after their end (see [`pointsman::net`]) and those that are told that there are too many have 64 places more.
//! `tests/shardcache_hostile.rs` holds the server to both, and the script `hostile` beside this file lets such clients at a
//! release build and prints what they made it hold.
//!
//! `--stats 127.0.0.1:9464` serves the statistics of the system (see [`pointsman::console`]): `/metrics` for Prometheus,
//! for which `examples/prometheus` has rules; or for `pointsman-top`.
//!
//! It ends in order on ctrl-c, SIGTERM or `redis-cli shutdown`, and prints where every message went.
//!
//! # Beside redis-server
//!
//! Measured on 2026-11-22 by `benches/shardcache.py`: Redis 7.0.15 without persistence and this server with 4 shards, in
//! turns, driven by `redis-benchmark` with 100,000 keys, on a machine of 2 virtual cores with nothing else of ours
//! running. Medians of 3 rounds, this server before redis-server. Single runs spread by a tenth, and by a third
//! where the client is the bottleneck, which it is with values of 1 KB.
//!
//! Server on one core, client on the other:
//!
//! | value | clients | `-P` | | 1,000 requests/s | CPU s for a million | p99, ms |
//! |--:|--:|--:|---|--:|--:|--:|
//! | 16 | 50 | 1 | SET | 86 : 77, 1.11× | 10.80 : 10.13 | 0.69 : 0.63 |
//! | 16 | 50 | 1 | GET | 83 : 80, 1.04× | 11.00 : 9.40 | 0.65 : 0.72 |
//! | 16 | 50 | 16 | SET | 1055 : 626, 1.68× | 0.93 : 1.53 | 1.16 : 2.46 |
//! | 16 | 50 | 16 | GET | 970 : 766, 1.27× | 1.02 : 1.27 | 1.30 : 1.93 |
//! | 16 | 50 | 64 | SET | 1508 : 939, 1.61× | 0.64 : 1.01 | 3.64 : 6.30 |
//! | 16 | 50 | 64 | GET | 1600 : 1124, 1.42× | 0.62 : 0.89 | 3.62 : 3.62 |
//! | 16 | 500 | 1 | SET | 60 : 53, 1.12× | 13.73 : 12.87 | 13.63 : 9.14 |
//! | 16 | 500 | 1 | GET | 57 : 49, 1.16× | 14.20 : 13.67 | 6.52 : 10.62 |
//! | 16 | 500 | 16 | SET | 772 : 586, 1.32× | 1.29 : 1.69 | 17.42 : 21.50 |
//! | 16 | 500 | 16 | GET | 808 : 646, 1.25× | 1.25 : 1.55 | 13.92 : 21.86 |
//! | 16 | 500 | 64 | SET | 1242 : 881, 1.41× | 0.81 : 1.14 | 36.61 : 55.39 |
//! | 16 | 500 | 64 | GET | 1417 : 1010, 1.40× | 0.71 : 1.00 | 33.73 : 47.49 |
//! | 1024 | 50 | 1 | SET | 82 : 61, 1.35× | 11.67 : 11.87 | 0.77 : 0.78 |
//! | 1024 | 50 | 1 | GET | 77 : 84, 0.92× | 11.87 : 10.00 | 0.68 : 0.64 |
//! | 1024 | 50 | 16 | SET | 421 : 394, 1.07× | 2.35 : 2.52 | 3.36 : 2.66 |
//! | 1024 | 50 | 16 | GET | 342 : 419, 0.82× | 2.91 : 2.21 | 4.39 : 4.54 |
//! | 1024 | 50 | 64 | SET | 385 : 393, 0.98× | 2.56 : 2.50 | 14.29 : 4.69 |
//! | 1024 | 50 | 64 | GET | 502 : 449, 1.12× | 1.96 : 2.22 | 10.18 : 9.90 |
//! | 1024 | 500 | 1 | SET | 60 : 61, 0.98× | 14.93 : 13.40 | 12.68 : 12.47 |
//! | 1024 | 500 | 1 | GET | 58 : 57, 1.01× | 13.87 : 13.67 | 13.73 : 12.02 |
//! | 1024 | 500 | 16 | SET | 329 : 330, 1.00× | 3.06 : 2.97 | 34.40 : 33.89 |
//! | 1024 | 500 | 16 | GET | 293 : 308, 0.95× | 3.41 : 3.18 | 44.32 : 41.57 |
//! | 1024 | 500 | 64 | SET | 408 : 355, 1.15× | 2.44 : 2.82 | 128.57 : 46.53 |
//! | 1024 | 500 | 64 | GET | 473 : 492, 0.96× | 2.12 : 1.99 | 106.24 : 103.23 |
//!
//! Both on both cores, this server with 2 workers:
//!
//! | value | clients | `-P` | | 1,000 requests/s | CPU s for a million | p99, ms |
//! |--:|--:|--:|---|--:|--:|--:|
//! | 16 | 50 | 1 | SET | 80 : 72, 1.12× | 11.07 : 10.93 | 1.18 : 1.18 |
//! | 16 | 50 | 1 | GET | 89 : 78, 1.14× | 10.00 : 9.87 | 0.88 : 1.00 |
//! | 16 | 50 | 16 | SET | 867 : 658, 1.32× | 1.16 : 1.44 | 2.03 : 2.68 |
//! | 16 | 50 | 16 | GET | 900 : 728, 1.24× | 1.16 : 1.27 | 2.06 : 2.90 |
//! | 16 | 50 | 64 | SET | 1754 : 857, 2.05× | 0.74 : 1.14 | 3.60 : 6.38 |
//! | 16 | 50 | 64 | GET | 1890 : 1008, 1.88× | 0.70 : 0.97 | 3.37 : 5.33 |
//! | 16 | 500 | 1 | SET | 60 : 58, 1.04× | 13.00 : 11.47 | 10.45 : 14.35 |
//! | 16 | 500 | 1 | GET | 63 : 62, 1.02× | 12.80 : 11.33 | 9.70 : 14.78 |
//! | 16 | 500 | 16 | SET | 805 : 585, 1.37× | 1.22 : 1.62 | 14.47 : 24.24 |
//! | 16 | 500 | 16 | GET | 745 : 545, 1.37× | 1.29 : 1.64 | 15.09 : 24.34 |
//! | 16 | 500 | 64 | SET | 1497 : 834, 1.80× | 0.86 : 1.20 | 32.09 : 55.26 |
//! | 16 | 500 | 64 | GET | 1452 : 961, 1.51× | 0.85 : 1.04 | 33.92 : 50.69 |
//! | 1024 | 50 | 1 | SET | 84 : 70, 1.20× | 10.67 : 11.33 | 1.05 : 1.17 |
//! | 1024 | 50 | 1 | GET | 79 : 82, 0.97× | 11.27 : 9.67 | 0.98 : 0.96 |
//! | 1024 | 50 | 16 | SET | 386 : 404, 0.96× | 3.12 : 2.32 | 4.70 : 3.94 |
//! | 1024 | 50 | 16 | GET | 578 : 416, 1.39× | 1.87 : 2.26 | 3.04 : 5.03 |
//! | 1024 | 50 | 64 | SET | 495 : 407, 1.22× | 2.79 : 2.40 | 12.98 : 6.08 |
//! | 1024 | 50 | 64 | GET | 746 : 514, 1.45× | 1.62 : 1.87 | 7.31 : 11.46 |
//! | 1024 | 500 | 1 | SET | 70 : 55, 1.27× | 12.60 : 13.40 | 10.08 : 14.82 |
//! | 1024 | 500 | 1 | GET | 65 : 60, 1.08× | 12.93 : 12.47 | 9.94 : 15.49 |
//! | 1024 | 500 | 16 | SET | 344 : 335, 1.03× | 3.42 : 2.81 | 35.77 : 36.13 |
//! | 1024 | 500 | 16 | GET | 450 : 320, 1.40× | 2.36 : 3.07 | 24.41 : 42.24 |
//! | 1024 | 500 | 64 | SET | 411 : 331, 1.24× | 3.42 : 3.00 | 118.97 : 47.55 |
//! | 1024 | 500 | 64 | GET | 663 : 492, 1.35× | 1.85 : 2.01 | 58.85 : 81.92 |
//!
//! So a request that crosses two mailboxes and a router costs less than one in a single loop as soon as several come
//! together: 0.6 times the CPU time for SET at `-P 16`, with 50 clients and 16 bytes. One at a time it cost up to a
//! sixth more then, since a thread of its own handed each ready socket to a worker. Workers wait for sockets themselves
//! since; `BENCHMARKS.md` has the figures. And where 64 values of 1 KB come at a time the slowest hundredth of SETs waits up to
//! three times as long, whatever is read at once, for a reason that is not found. What redis-server does besides (persistence, replication, scripts, more types)
//! is not done here.
//!
//! While `redis-benchmark -t set,get,incr,mset -r 100000 -P 16` sent 4 million requests, 232 resizes
//! between 4 and 7 shards with up to 200,000 keys caused no error.
//!
//! # Reading order
//!
//! `server.rs` (the actors and who creates whom), `client.rs` (a connection), `shard.rs` (a
//! shard, and the protocol of a resize with the reasons why it is right), `coordinator.rs` (who changes the
//! number of shards), then the parts that know nothing of actors: [`resp`] (bytes to requests, replies to
//! bytes), [`command`] (requests to what has to be done, and by whom), [`keyspace`] (one shard's data),
//! [`glob`] (the patterns of KEYS and CONFIG GET), [`bytes`] (short byte strings).

mod bytes;
mod client;
#[allow(dead_code)] // whole interfaces, of which the server needs the most
mod command;
mod coordinator;
mod glob;
#[allow(dead_code)] // as above
mod keyspace;
#[allow(dead_code)] // as above
mod resp;
mod server;
mod shard;

#[cfg(test)]
mod tests;

use server::{Server, Settings};
use std::error::Error;
use std::process::ExitCode;

const USAGE: &str = "\
usage: shardcache [--port N] [--bind HOST] [--unix PATH] [--shards N] [--threads N] [--pin C,C,...]
                  [--maxclients N] [--output-limit BYTES] [--stats HOST:PORT]";

fn main() -> ExitCode {
    let settings = match parse(std::env::args().skip(1)) {
        Ok(Some(settings)) => settings,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("shardcache: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(settings) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("shardcache: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(settings: Settings) -> Result<bool, Box<dyn Error>> {
    let signals = signals::Blocked::before_any_thread_starts();
    let server = Server::start(settings)?;
    println!("shardcache: serving on port {}", server.port());
    if let Some(address) = server.stats_addr() {
        println!("shardcache: statistics at http://{address}/");
    }
    let shared = server.shared();
    std::thread::spawn(move || {
        signals.wait();
        shared.ask_for_end(true);
    });
    let in_order = server.wait();
    let ledger = server.end()?;
    println!("shardcache: {ledger}");
    Ok(in_order && ledger.balance() == 0)
}

/// The settings, or `None` if help is wanted.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Settings>, Box<dyn Error>> {
    let mut settings = Settings::default();
    let (mut host, mut port) = ("127.0.0.1".to_owned(), 6379u16);
    while let Some(argument) = arguments.next() {
        if argument == "--help" || argument == "-h" {
            return Ok(None);
        }
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} wants a value"));
        match argument.as_str() {
            "--port" => port = value()?.parse().map_err(|error| format!("--port: {error}"))?,
            "--bind" => host = value()?,
            "--stats" => settings.stats = Some(value()?),
            "--unix" => settings.unix = Some(value()?.into()),
            "--shards" => settings.shards = value()?.parse().map_err(|error| format!("--shards: {error}"))?,
            "--threads" => {
                settings.threads = Some(value()?.parse().map_err(|error| format!("--threads: {error}"))?);
            }
            "--pin" => {
                let cores: Result<Vec<usize>, _> = value()?.split(',').map(str::parse).collect();
                settings.pin = Some(cores.map_err(|error| format!("--pin: {error}"))?);
            }
            "--maxclients" => {
                settings.clients_max = value()?.parse().map_err(|error| format!("--maxclients: {error}"))?;
            }
            "--output-limit" => {
                settings.output_max = value()?.parse().map_err(|error| format!("--output-limit: {error}"))?;
            }
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    if !(1..=coordinator::SHARDS_MAX).contains(&settings.shards) {
        return Err(format!("--shards {}: must be 1 to {}", settings.shards, coordinator::SHARDS_MAX).into());
    }
    settings.tcp = format!("{host}:{port}");
    Ok(Some(settings))
}

/// Waiting for SIGINT and SIGTERM.
mod signals {
    /// The signals are blocked in this thread and in those that it starts.
    pub struct Blocked(libc::sigset_t);

    impl Blocked {
        pub fn before_any_thread_starts() -> Self {
            // SAFETY: a signal set is plain memory, and `sigemptyset` makes any of it valid.
            let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
            // SAFETY: calls on a set that we own, and constants; blocking two signals in this thread has
            // no effect on memory.
            unsafe {
                libc::sigemptyset(&raw mut set);
                libc::sigaddset(&raw mut set, libc::SIGINT);
                libc::sigaddset(&raw mut set, libc::SIGTERM);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            }
            Self(set)
        }

        /// Returns when one of the signals comes.
        pub fn wait(&self) {
            let mut signal = 0;
            // SAFETY: both point to living values, and the set is initialised.
            unsafe { libc::sigwait(&raw const self.0, &raw mut signal) };
        }
    }
}
