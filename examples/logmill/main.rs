//! A syslog pipeline over TCP that loses nothing: lines of RFC 5424 and RFC 3164 in, NDJSON out.
//!
//! ```text
//!                     bounded       one queue            in turn        an actor for each   by host, may block
//!   socket ─▶ receiver ──┐              ┌─▶ parser ──┐  ┌─▶ enricher ──┐  ┌─▶ host ───┐     ┌─▶ sink ─▶ lines-0.ndjson
//!   socket ─▶ receiver ──┼▶▒▒ entrance ─┼─▶ parser ──┼──┼─▶ enricher ──┼──┼─▶ host ───┼─────┤            windows-0.ndjson
//!   socket ─▶ receiver ──┘     ▲        └─▶ parser ─┬┘  └─▶ enricher ──┘  └─▶ … ──────┘     └─▶ sink ─▶ …
//!                              │                    └── what is no syslog, as it came ──────────▲  │
//!                              └─────────────── half of the places are free ◀── places of written lines
//! ```
//!
//! ```text
//! cargo run --release --example logmill                  # sends itself 100,000 lines, and ends
//! cargo run --release --example logmill -- --listen 127.0.0.1:5140 --out /var/log/mill
//! loggen -i -S -P -n 1000000 -r 1000000 --active-connections=4 127.0.0.1 5140
//! logger --tcp --server 127.0.0.1 --port 5140 --octet-count hello
//! ```
//!
//! Over two nodes, n1 reads the lines and n2 has all stages behind the entrance:
//!
//! ```text
//!   n1: socket ─▶ receiver ─▶▒▒ entrance ─▶ forwarder ──── lines ────▶ n2: unpacker ─▶ parsers ─▶ … ─▶ sinks ─▶ files
//!                                 ▲            │ ▲                          │
//!                                 └── places ──┘ └──────── receipts ────────┘
//!
//! nats-server -a 127.0.0.1 &
//! cargo run --release --example logmill -- --node n2 --out /var/log/mill &
//! cargo run --release --example logmill -- --node n1 --listen 127.0.0.1:5140
//! ```
//!
//! # What it shows
//!
//! - **Each line is accounted for**, by a ticket that goes with it through all stages (`books.rs`): it is
//!   written, parsed or as it came, or it is the one that a panic took down. The table at the end adds up,
//!   and so does the ledger.
//! - **Overload stops at the socket.** The stages have so many places for lines. When all are taken, the entrance holds
//!   until half of them are free (`ctx.hold`), and its mailbox, which is bounded, fills up. A connection whose line finds
//!   no room there reads nothing more until the line is accepted (`ctx.send_when_room`), and TCP makes its sender wait.
//! - **A panic costs one line.** Parsers are resumed; `--panic-every` makes them panic on purpose.
//! - **SIGTERM drains** along the flow of data (`mill.rs`): the port closes; what has arrived is read; then each stage
//!   handles what it has before the next one ends. Who still sends is cut off after `--drain`. What TCP holds beyond
//!   that is its sender's: syslog over TCP has no acknowledgement.
//! - **A full disk** makes everything wait, and goes on where it stopped.
//!
//! - **A node that is killed** costs the lines that were under way to it, and no others (`forwarder.rs`). Tickets do not leave
//!   n1: it keeps each line until n2 tells by a receipt what became of it. When n2 goes before, the line is *in doubt*: it may
//!   be in a file, so n1 counts it and does not send it again. Lines in doubt have places, so there are no more of them than
//!   `--in-flight` for each end of n2. All others wait at n1, and their senders with them, until n2 is there again
//!   (`forwarding_books.rs` has the table).
//!
//! A line is written when the operating system has it; nothing here survives a crash of the machine. Lines have at most
//! `--line-max` bytes, 64 KiB unless said otherwise: what is longer is cut there and kept as unparsable.
//!
//! # How much
//!
//! 2026-11-22, a virtual machine with 2 shared cores, on which loggen and other work ran, too (load 7 to 9):
//! `loggen -i -S -P -n 250000 -s 250 --active-connections=4`, twice, gave 116,000 and 151,000 lines a second, and
//! `--panic-every 1000000` cost 2 of the 2 million. The mill used 4.0 µs of CPU for a line, from the socket
//! to the file.
//!
//! # Reading order
//!
//! `mill.rs` (the whole), `reception.rs` and `pipeline.rs` (its two halves and how they end), `books.rs` (tickets), `connection.rs` and `entrance.rs` (how lines wait),
//! `stages.rs` (parsers and enrichers), `host.rs` (windows, by a keyed group), `sink.rs`; for two nodes `shipment.rs` (what
//! crosses), `forwarder.rs`, `reading_node.rs`, and at the other end `unpacker.rs`, `receipts.rs`, `writing_node.rs`; then what knows nothing of actors: `framing.rs`
//! (RFC 6587), `record.rs`, `rfc5424.rs`, `rfc3164.rs`, `calendar.rs`.

mod books;
mod calendar;
mod connection;
mod entrance;
mod feed;
mod forwarder;
mod forwarding_books;
mod framing;
mod host;
mod mill;
mod node_report;
mod pipeline;
mod reading_node;
mod receipts;
mod reception;
mod record;
mod rfc3164;
mod rfc5424;
mod serve_node;
mod shipment;
mod sink;
mod stages;
mod unpacker;
mod writing_node;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod two_node_tests;

use books::Books;
use feed::{Sent, Style};
use mill::{Mill, Settings};
use pointsman::shutdown::ShutdownReport;
use serve_node::Part;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "\
usage: logmill                                    sends itself lines, and ends
       logmill --listen HOST:PORT [--out FOLDER]  serves until SIGTERM or ctrl-c
       logmill --node n1 [--server URL] [--listen HOST:PORT]
                                                  the same, but node n2 writes the lines
       logmill --node n2 [--server URL] [--out FOLDER]
                                                  writes the lines of node n1
options: [--in-flight LINES] [--line-max BYTES] [--window MILLISECONDS] [--idle MILLISECONDS]
         [--drain MILLISECONDS] [--width ROUTEES] [--sinks N] [--panic-every LINES]";

/// What it sends itself.
const OWN_LINES: [(Style, u64); 4] =
    [(Style::Old, 30_000), (Style::New, 30_000), (Style::Counted, 30_000), (Style::Counted, 10_000)];
/// So that there are some panics to account for.
const OWN_PANIC_EVERY: u64 = 25_000;

/// The way in which the program runs.
enum Mode {
    Demonstrate,
    Serve(Settings),
    ServeNode { part: Part, server: Option<String>, settings: Settings },
}

fn main() -> ExitCode {
    let mode = match parse(std::env::args().skip(1)) {
        Ok(mode) => mode,
        Err(error) => {
            eprintln!("logmill: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let outcome = match mode {
        Mode::Demonstrate => demonstrate(),
        Mode::Serve(settings) => serve(&settings),
        Mode::ServeNode { part, server, settings } => serve_node::serve(part, server.as_deref(), &settings),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("logmill: the books do not balance");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("logmill: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs until somebody ends it.
fn serve(settings: &Settings) -> Result<bool, Box<dyn Error>> {
    let mill = Mill::start(settings)?;
    mill.stop_on_signals()?;
    println!("logmill: listening on {}", mill.addr());
    let (books, report) = mill.wait()?;
    Ok(print(&books, &report))
}

/// Sends itself lines, and looks whether all have arrived.
fn demonstrate() -> Result<bool, Box<dyn Error>> {
    let out = std::env::temp_dir().join(format!("logmill-{}", std::process::id()));
    let settings = Settings { panic_every: OWN_PANIC_EVERY, out, ..Settings::default() };
    let outcome = feed_and_drain(&settings);
    std::fs::remove_dir_all(&settings.out)?;
    outcome
}

fn feed_and_drain(settings: &Settings) -> Result<bool, Box<dyn Error>> {
    let mill = Mill::start(settings)?;
    let (addr, began) = (mill.addr(), Instant::now());
    let senders = OWN_LINES.map(|(style, lines)| std::thread::spawn(move || feed::feed(addr, style, lines)));
    let mut sent = Sent::default();
    for sender in senders {
        let one = sender.join().map_err(|_| "a sender panicked")??;
        sent.lines += one.lines;
        sent.garbage += one.garbage;
    }
    mill.stop("everything is sent");
    let (books, report) = mill.wait()?;
    println!("{} lines in {:.2?}, a panic at every {OWN_PANIC_EVERY}th\n", sent.lines, began.elapsed());
    let balanced = print(&books, &report);
    assert_eq!(books.read.get(), sent.lines, "every line that was sent was read");
    assert_eq!(books.panicked.get(), sent.lines / OWN_PANIC_EVERY, "a panic costs its line");
    // A line at which a parser panicked may have been garbage.
    assert!(sent.garbage - books.unparsable.get() <= books.panicked.get(), "all garbage was kept");
    Ok(balanced)
}

/// Prints what became of all lines; whether all are accounted for, and none lost but to panics.
fn print(books: &Books, report: &ShutdownReport) -> bool {
    println!("{books}\n{report}");
    books.balance() && books.lost.get() == 0 && report.ledger.balance() == 0
}

/// Reads the arguments.
fn parse(arguments: impl Iterator<Item = String>) -> Result<Mode, Box<dyn Error>> {
    let mut arguments = arguments.peekable();
    if arguments.peek().is_none() {
        return Ok(Mode::Demonstrate);
    }
    let (mut settings, mut part, mut server) = (Settings::default(), None, None);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{name} wants a value"));
        let mut number =
            || -> Result<u64, String> { value()?.parse().map_err(|error| format!("{name}: {error}")) };
        match name.as_str() {
            "--node" => part = Some(value()?.parse()?),
            "--server" => server = Some(value()?),
            "--listen" => settings.listen = value()?,
            "--out" => settings.out = value()?.into(),
            "--in-flight" => settings.in_flight = number()? as usize,
            "--line-max" => settings.line_max = number()? as usize,
            "--window" => settings.window = Duration::from_millis(number()?),
            "--idle" => settings.idle_after = Duration::from_millis(number()?),
            "--drain" => settings.drain_for = Duration::from_millis(number()?),
            "--width" => settings.width = number()? as usize,
            "--sinks" => settings.sinks = number()? as usize,
            "--panic-every" => settings.panic_every = number()?,
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    match (part, server) {
        (Some(part), server) => Ok(Mode::ServeNode { part, server, settings }),
        (None, None) => Ok(Mode::Serve(settings)),
        (None, Some(_)) => Err("--server is for a node: say which one by --node".into()),
    }
}
