//! A connection's actor: cuts lines out of the byte stream and sends them to the entrance.
//!
//! It reads nothing while the entrance has no room for its line: `send_when_room` sends the line as soon as there is room,
//! and lets the actor know. Bytes behind the line stay in the socket meanwhile, and the sender waits.

use crate::books::{Books, Ticket};
use crate::framing::{Framer, Step, Tail, Whole};
use crate::record::Fault;
use pointsman::SendError;
use pointsman::net::{Connection, ReadOutcome, Ready};
use pointsman::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Read from the socket in one turn at most.
const READ_MAX: usize = 64 * 1024;
/// When the mill drains, a connection from which nothing has come for so long has nothing more on its way.
const QUIET: Duration = Duration::from_millis(100);

/// What a connection's actor takes.
pub enum IntakeMsg {
    Ready(Ready),
    /// A line that waited for room is with the entrance, or there is none any more.
    Sent(Result<(), SendError<Line>>),
    /// Look whether anything has come since the last time.
    Quiet,
    /// Read nothing more, and end.
    Cut,
}

impl From<Ready> for IntakeMsg {
    fn from(ready: Ready) -> Self {
        IntakeMsg::Ready(ready)
    }
}

/// A line on its way through the mill.
pub struct Line {
    pub bytes: Vec<u8>,
    pub whole: Whole,
    pub origin: Arc<Origin>,
    /// Its number in its connection, from 1.
    pub number: u64,
    pub received: SystemTime,
    pub ticket: Ticket,
}

impl Line {
    /// Why it is not worth parsing, if that is known.
    pub fn fault(&self) -> Option<Fault> {
        let expected = match self.whole {
            Whole::Yes => return None,
            Whole::TooLong => "the end of the line",
            Whole::CutOff => "the rest of the line",
        };
        Some(Fault { expected, at: self.bytes.len() })
    }
}

/// Where lines come from.
pub struct Origin {
    /// The peer's address, without its port.
    pub host: Arc<str>,
    /// The connection's number, from 1.
    pub connection: u64,
}

/// What all connections share.
pub struct Intake {
    pub books: Arc<Books>,
    /// So many connections have come.
    pub connections: AtomicU64,
    pub entrance: ActorRef<Line>,
    /// Longer lines are cut there.
    pub line_max: usize,
    /// Who goes on sending is cut off so long after a drain has begun.
    pub drain_for: Duration,
}

/// The actor.
pub struct Receiver {
    connection: Connection,
    intake: Arc<Intake>,
    origin: Arc<Origin>,
    framer: Framer,
    /// How the stream stands behind what is read.
    tail: Tail,
    /// Whether a line waits for room.
    is_waiting: bool,
    /// Whether the mill drains: what has arrived is read, and then the connection ends.
    drains: bool,
    /// Whether something has come since the last `Quiet`.
    is_lively: bool,
    lines: u64,
}

impl Receiver {
    pub fn new(connection: Connection, intake: Arc<Intake>) -> Self {
        let host = connection.peer_addr().map_or("local".to_owned(), |addr| addr.ip().to_string()).into();
        let number = 1 + intake.connections.fetch_add(1, Ordering::Relaxed);
        intake.books.connections.add(1);
        Self {
            connection,
            origin: Arc::new(Origin { host, connection: number }),
            framer: Framer::new(intake.line_max),
            intake,
            tail: Tail::Open,
            is_waiting: false,
            drains: false,
            is_lively: false,
            lines: 0,
        }
    }

    /// Forwards what is there, reads once, and forwards that.
    fn pump(&mut self, ctx: &mut Context<IntakeMsg>) {
        self.forward(ctx);
        if !self.is_waiting && self.tail == Tail::Open {
            match self.connection.fill(READ_MAX) {
                ReadOutcome::Read(count) => {
                    self.is_lively = true;
                    self.intake.books.bytes.add(count as u64);
                }
                ReadOutcome::Blocked => return,
                ReadOutcome::Eof => self.tail = Tail::Ended,
                ReadOutcome::Closed(_) => self.tail = Tail::Broken,
            }
            self.forward(ctx);
        }
        if !self.is_waiting && self.tail != Tail::Open {
            ctx.stop();
        }
    }

    /// Sends on each line that is whole, until there is none or no room for it.
    fn forward(&mut self, ctx: &mut Context<IntakeMsg>) {
        let received = SystemTime::now();
        while !self.is_waiting {
            let Some(line) = self.next_line(received) else { return };
            self.is_waiting = !ctx.send_when_room(&self.intake.entrance, line, IntakeMsg::Sent);
            self.intake.books.waits.add(u64::from(self.is_waiting));
        }
    }

    /// Cuts the next line out of what has been read.
    fn next_line(&mut self, received: SystemTime) -> Option<Line> {
        let books = &self.intake.books;
        loop {
            match self.framer.next(self.connection.received(), self.tail) {
                Step::Frame { frame, used } => {
                    let whole = frame.whole;
                    let bytes = frame.bytes.to_vec();
                    self.connection.consume(used);
                    self.lines += 1;
                    let (origin, number, ticket) = (self.origin.clone(), self.lines, Ticket::new(books));
                    return Some(Line { bytes, whole, origin, number, received, ticket });
                }
                Step::Skip { used, empty_lines } => {
                    books.empty.add(empty_lines);
                    self.connection.consume(used);
                }
                Step::NeedMore => return None,
            }
        }
    }
}

impl Actor for Receiver {
    type Message = IntakeMsg;

    fn receive(&mut self, message: IntakeMsg, ctx: &mut Context<IntakeMsg>) -> HandlerResult {
        match message {
            IntakeMsg::Ready(ready) => {
                self.connection.ready(ready);
                if self.connection.is_draining() && !std::mem::replace(&mut self.drains, true) {
                    ctx.every(QUIET, || IntakeMsg::Quiet);
                    ctx.after(self.intake.drain_for, IntakeMsg::Cut);
                }
            }
            IntakeMsg::Sent(outcome) => {
                self.is_waiting = false;
                outcome.map_err(|error| Failure::msg(format!("a line is lost: {error}")))?;
            }
            IntakeMsg::Quiet if self.is_lively || self.is_waiting => self.is_lively = false,
            IntakeMsg::Quiet | IntakeMsg::Cut => {
                if self.tail == Tail::Open {
                    self.tail = Tail::Broken;
                }
            }
        }
        self.pump(ctx);
        Ok(())
    }
}
