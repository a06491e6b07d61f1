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
//! It ends in order on ctrl-c, SIGTERM or `redis-cli shutdown`, and prints where every message went.
//!
//! # Beside redis-server
//!
//! Redis 7.0.15 without persistence, and this server with 4 shards on 2 worker threads, both driven by
//! `redis-benchmark -c 50 -n 1000000` on the same machine: 2 virtual cores, which client and server share, and
//! nothing else of ours running. Medians of two runs (`-P 1`) and three (`-P 16`, `-P 64`), in turn and in both
//! orders; thousand requests a second, ours before redis-server's. Single runs spread by up to a third at `-P 64`,
//! a tenth at `-P 1`.
//!
//! | | `-P 1` | `-P 16` | `-P 64` |
//! |---|---|---|---|
//! | PING | 79 : 88 | 1041 : 909 | 3610 : 2950 |
//! | SET | 77 : 88 | 936 : 872 | 1672 : 1462 |
//! | GET | 75 : 84 | 867 : 991 | 1866 : 2611 |
//! | INCR | 74 : 80 | 870 : 957 | 1629 : 2212 |
//! | MSET, 10 keys | 77 : 73 | 378 : 341 | 560 : 486 |
//!
//! CPU time of the server for one GET: 11.0 : 9.0 µs at `-P 1`, 0.87 : 1.07 µs at `-P 16`, 0.55 : 0.61 µs at
//! `-P 64` (one run of a million each). So a request that crosses two mailboxes and a router costs about what one
//! in a single loop does, and a second thread is there to share the cost. What redis-server does besides
//! (persistence, replication, scripts, more types) is not done here. Without `-r`, as here, redis-benchmark uses
//! one key for each test, hence one shard.
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
                  [--maxclients N] [--output-limit BYTES]";

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
