//! A sender for when there is no other: lines of both formats, in both framings, and some that are no syslog.

use crate::calendar::MONTHS;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

/// What was sent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub lines: u64,
    /// How many of them are no syslog.
    pub garbage: u64,
}

/// How a connection sends.
#[derive(Debug, Clone, Copy)]
pub enum Style {
    /// RFC 3164, up to a line feed.
    Old,
    /// RFC 5424, up to a line feed.
    New,
    /// RFC 5424, with counted octets.
    Counted,
}

const GARBAGE_EVERY: u64 = 1000;
const HOSTS: u64 = 24;

/// Sends so many lines over a connection of its own, and waits until the mill has taken them all.
pub fn feed(addr: SocketAddr, style: Style, lines: u64) -> io::Result<Sent> {
    let mut stream = io::BufWriter::with_capacity(64 * 1024, TcpStream::connect(addr)?);
    let mut sent = Sent::default();
    for number in 0..lines {
        let is_garbage = number % GARBAGE_EVERY == GARBAGE_EVERY - 1;
        let line = if is_garbage { "GET / HTTP/1.1".to_owned() } else { line(style, number) };
        match style {
            Style::Old | Style::New => writeln!(stream, "{line}")?,
            Style::Counted => write!(stream, "{} {line}", line.len())?,
        }
        sent.lines += 1;
        sent.garbage += u64::from(is_garbage);
    }
    let mut stream = stream.into_inner()?;
    stream.shutdown(Shutdown::Write)?;
    // The mill closes its end when it has read ours.
    stream.read_to_end(&mut Vec::new())?;
    Ok(sent)
}

fn line(style: Style, number: u64) -> String {
    let (priority, host) = (8 * (number % 24) + number % 8, number % HOSTS);
    let text = format!("request {number} took {} ms, and whoever reads this has time for it", number % 997);
    match style {
        Style::Old => {
            let month = std::str::from_utf8(MONTHS[(number % 12) as usize]).unwrap_or("Jan");
            format!(
                "<{priority}>{month} {:>2} 22:14:15 old-{host:02} httpd[{}]: {text}",
                1 + number % 28,
                number % 65_536
            )
        }
        Style::New | Style::Counted => format!(
            "<{priority}>1 2026-11-22T00:{:02}:{:02}.{:06}Z new-{host:02} httpd {} REQ [meta sequenceId=\"{number}\" \
             path=\"/a\\]b\"] \u{feff}{text}",
            number / 60 % 60,
            number % 60,
            number % 1_000_000,
            number % 65_536
        ),
    }
}
