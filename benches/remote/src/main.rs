//! Messages and asks between two nodes over a NATS server on this machine, beside raw NATS by the same codec, and the floor of
//! the machine: round trips and bytes over loopback without any server.
//!
//! `cargo run --release --manifest-path benches/remote/Cargo.toml [-- --rounds N | --tells N]` needs `nats-server` (a Debian package). The
//! rounds are interleaved: each measures every row once. `--tells` sends tells alone, for a profile. A figure is the median of the rounds, and the range of all stands behind
//! it. A ratio is that of the medians of one run.

mod certificates;
mod floor;
mod nodes;
mod raw;

use crate::certificates::Certificates;
use crate::nodes::Nodes;
use pointsman_nats::{DevServer, Nats};
use std::error::Error;
use std::time::Duration;

/// The messages of a row of tells. Their bytes in a raw message fit into what a server keeps for a slow receiver.
pub const TELLS: u64 = 300_000;
/// The tells of which the processor time is taken. They fit into what may wait for a peer.
pub const TIMED: u64 = 20_000;
/// The bytes of a message.
pub const MESSAGE: usize = 64;
/// The batches of raw NATS, as large as those of a node.
pub const BATCHES: u64 = 6_000;
pub const BATCH: usize = 16 * 1024;
/// The requests with one outstanding, and with several.
pub const REQUESTS: usize = 2_000;
pub const REQUESTS_BESIDE: usize = 40_000;
pub const OUTSTANDING: usize = 100;

/// The figures of all rounds of one row.
struct Series {
    name: &'static str,
    unit: &'static str,
    values: Vec<f64>,
}

impl Series {
    fn median(&self) -> f64 {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    fn text(&self) -> String {
        let least = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.values.iter().copied().fold(0.0, f64::max);
        format!("{:.2} {} ({least:.2} to {most:.2})", self.median(), self.unit)
    }
}

/// Returns the median.
pub fn p50(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// The rounds, and whether they have the tells alone, for a profile.
fn arguments() -> Result<(usize, bool), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (count, is_tells) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => return Ok((5, false)),
        ["--rounds", count] => (count, false),
        ["--tells", count] => (count, true),
        _ => return Err("usage: remote [--rounds N | --tells N]".into()),
    };
    Ok((count.parse::<std::num::NonZeroUsize>()?.get(), is_tells))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (rounds, is_tells) = arguments()?;
    let server = DevServer::start()?;
    let plain = |_: &str| Nats::servers([server.url()]);
    let nodes = Nodes::start("bench", plain, false)?;
    if is_tells {
        for _ in 0..rounds {
            println!("{:.2} M/s", nodes.tells()? / 1e6);
        }
        return nodes.end();
    }
    let certificates = Certificates::new()?;
    let tls_server = certificates.server()?;
    let tls_nodes = Nodes::start("secure", |node| certificates.nats(&tls_server, node), false)?;
    // A server of its own, so that its names are free.
    let lanes_server = DevServer::start()?;
    let lanes_nodes = Nodes::start("lanes", |_| Nats::servers([lanes_server.url()]), true)?;
    let mut rows = [
        ("tells", "M/s"),
        ("raw messages", "M/s"),
        ("raw batches", "MB/s"),
        ("ask", "µs"),
        ("raw request", "µs"),
        ("asks, 100 outstanding", "k/s"),
        ("tells of two threads", "M/s"),
        ("tells over TLS", "M/s"),
        ("processor time of a tell on its sender's thread", "ns"),
        ("processor time of a received envelope, to its mailbox", "ns"),
        ("loopback round trip", "µs"),
        ("loopback bytes", "MB/s"),
    ]
    .map(|(name, unit)| Series { name, unit, values: Vec::new() });
    for round in 0..=rounds {
        let figures = [
            nodes.tells()? / 1e6,
            raw::messages(&server, TELLS, MESSAGE)? / 1e6,
            raw::messages(&server, BATCHES, BATCH)? * BATCH as f64 / 1e6,
            nodes.ask()?,
            raw::request(&server)?,
            nodes.asks_beside()? / 1e3,
            nodes.tells_of_two()? / 1e6,
            tls_nodes.tells()? / 1e6,
            nodes.time_of_a_tell()?,
            lanes_nodes.time_of_an_envelope()?,
            floor::round_trip()?,
            floor::bytes()? / 1e6,
        ];
        // The first one warms up.
        if round > 0 {
            rows.iter_mut().zip(figures).for_each(|(row, figure)| row.values.push(figure));
        }
    }
    let [tells, messages, batches, ask, request, beside, of_two, of_tls, of_tell, of_envelope, floors @ ..] =
        &rows;
    let bytes = tells.median() * MESSAGE as f64;
    let one = 1e3 / ask.median();
    println!("| figure | nodes | beside | ratio | target |\n|---|---|---|---|---|");
    for (name, ours, theirs, ratio, target) in [
        (
            "64-byte tells handled",
            tells.text(),
            messages.text(),
            tells.median() / messages.median(),
            "at least 0.7",
        ),
        (
            "the same by two threads to two actors",
            of_two.text(),
            messages.text(),
            of_two.median() / messages.median(),
            "at least 0.7",
        ),
        (
            "tells of one thread in bytes, beside 16 KiB batches",
            format!("{bytes:.0} MB/s"),
            batches.text(),
            bytes / batches.median(),
            "at least 0.25",
        ),
        (
            "ask and request, one outstanding, p50",
            ask.text(),
            request.text(),
            ask.median() / request.median(),
            "at most 2.5",
        ),
        (
            "asks, 100 outstanding, beside one",
            beside.text(),
            format!("{one:.2} k/s, one ask after the other"),
            beside.median() / one,
            "at least 8",
        ),
        (
            "tells of one thread in bytes over TLS, beside plain text",
            format!("{:.0} MB/s", of_tls.median() * MESSAGE as f64),
            format!("{bytes:.0} MB/s"),
            of_tls.median() / tells.median(),
            "at least 0.6",
        ),
    ] {
        println!("| {name} | {ours} | {theirs} | {ratio:.2} | {target} |");
    }
    println!();
    println!("{}: {} (target: at most 150)", of_tell.name, of_tell.text());
    println!("{}: {} (target: at most 300)", of_envelope.name, of_envelope.text());
    for row in floors {
        println!("floor: {}: {}", row.name, row.text());
    }
    for nodes in [nodes, tls_nodes, lanes_nodes] {
        nodes.end()?;
    }
    Ok(())
}
