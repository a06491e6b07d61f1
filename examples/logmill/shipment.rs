//! A message from the node that reads lines to the node that writes them, and the reply: both cross between processes.

use crate::books::Ticket;
use crate::connection::{Line, Origin};
use crate::framing::Whole;
use pointsman::prelude::*;
use pointsman::remote::Wire;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::SystemTime;

/// A message is sent when its lines have so many bytes together, or when no more lines are there.
pub const BYTES_MAX: usize = 64 * 1024;
/// The longest line that fits into a message, behind others.
pub const LINE_MAX: usize = 128 * 1024;
/// About the bytes of a line in a message beside its own.
const LINE_REST: usize = 64;

/// The messages that the mill takes from another node.
#[derive(Message, Wire, Serialize, Deserialize)]
#[wire(name = "logmill.ToMill")]
pub enum ToMill {
    Lines(Call<Lines>),
}

/// Lines that are to be written. The reply comes when that is done.
#[derive(Serialize, Deserialize)]
pub struct Lines(Vec<SentLine>);

/// A line without its ticket, which stays where the line was read.
#[derive(Serialize, Deserialize)]
struct SentLine {
    bytes: Vec<u8>,
    whole: SentWhole,
    peer: String,
    connection: u64,
    number: u64,
    received: SystemTime,
}

#[derive(Serialize, Deserialize)]
enum SentWhole {
    Yes,
    TooLong,
    CutOff,
}

/// The outcomes of the lines of a message: so many of them came to each end.
#[derive(Debug, Serialize, Deserialize)]
pub struct Receipt {
    pub written: u64,
    pub panicked: u64,
    pub lost: u64,
}

impl Request for Lines {
    type Reply = Receipt;
}

impl Lines {
    /// Copies lines, whose tickets stay here.
    pub fn of(lines: &[Line]) -> Self {
        Self(lines.iter().map(SentLine::of).collect())
    }

    /// Gives each line a ticket of the node that has received it.
    pub fn with_tickets(self, ticket: impl Fn() -> Ticket) -> impl Iterator<Item = Line> {
        let mut last = Arc::new(Origin { host: "".into(), connection: 0 });
        self.0.into_iter().map(move |line| {
            if (&*last.host, last.connection) != (&line.peer, line.connection) {
                last = Arc::new(Origin { host: line.peer.into(), connection: line.connection });
            }
            Line {
                bytes: line.bytes,
                whole: match line.whole {
                    SentWhole::Yes => Whole::Yes,
                    SentWhole::TooLong => Whole::TooLong,
                    SentWhole::CutOff => Whole::CutOff,
                },
                origin: last.clone(),
                number: line.number,
                received: line.received,
                ticket: ticket(),
            }
        })
    }
}

impl SentLine {
    fn of(line: &Line) -> Self {
        Self {
            bytes: line.bytes.clone(),
            whole: match line.whole {
                Whole::Yes => SentWhole::Yes,
                Whole::TooLong => SentWhole::TooLong,
                Whole::CutOff => SentWhole::CutOff,
            },
            peer: line.origin.host.to_string(),
            connection: line.origin.connection,
            number: line.number,
            received: line.received,
        }
    }
}

/// About the bytes that a line takes in a message.
pub fn size(line: &Line) -> usize {
    line.bytes.len() + line.origin.host.len() + LINE_REST
}
