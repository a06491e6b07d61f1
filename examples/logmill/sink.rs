//! The last stage: files of NDJSON, one of lines and one of windows for each sink.
//!
//! A line is written when the operating system has it. What has arrived meanwhile goes out together: the first line of
//! a batch has the sink tell itself to flush, which takes its place behind all that waits already. A disk that is full
//! keeps the batch here, with its tickets, so that soon the sockets are read no more; it is tried again, and goes on
//! where it stopped.

use crate::books::Ticket;
use pointsman::prelude::*;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A batch of more bytes than this goes out at once.
const BATCH_MAX: usize = 256 * 1024;
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// What a sink takes; `key` says which one.
pub enum SinkMsg {
    /// A line, with its line feed.
    Line {
        json: Vec<u8>,
        key: Arc<str>,
        ticket: Ticket,
    },
    Window {
        json: Vec<u8>,
        key: Arc<str>,
    },
    Flush,
}

impl SinkMsg {
    pub fn key(&self) -> &str {
        match self {
            SinkMsg::Line { key, .. } | SinkMsg::Window { key, .. } => key,
            // Sent to one sink by itself, never routed.
            SinkMsg::Flush => "",
        }
    }
}

/// Where a sink writes.
pub type Output = Box<dyn Write + Send>;

/// Opens a file that is added to.
pub fn file(folder: &Path, name: &str) -> io::Result<Output> {
    let file: File = OpenOptions::new().create(true).append(true).open(folder.join(name))?;
    Ok(Box::new(file))
}

/// The actor. It blocks.
pub struct Sink {
    lines: Batch,
    windows: Batch,
    /// Of the lines in the batch.
    tickets: Vec<Ticket>,
    /// Whether a `Flush` is on its way.
    flush_comes: bool,
    /// Whether the last try has failed.
    is_stuck: bool,
}

struct Batch {
    output: Output,
    bytes: Vec<u8>,
    /// How many of them are written.
    written: usize,
}

impl Batch {
    fn new(output: Output) -> Self {
        Self { output, bytes: Vec::new(), written: 0 }
    }

    fn write(&mut self) -> io::Result<()> {
        while let Some(rest) = self.bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.output.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.clear();
        self.written = 0;
        Ok(())
    }
}

impl Sink {
    pub fn new(lines: Output, windows: Output) -> Self {
        let (lines, windows) = (Batch::new(lines), Batch::new(windows));
        Self { lines, windows, tickets: Vec::new(), flush_comes: false, is_stuck: false }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lines.write()?;
        // Windows have no tickets: while they cannot be written, those of the lines bound how many there are.
        self.windows.write()?;
        self.settle();
        Ok(())
    }

    /// The last time.
    fn flush_at_end(&mut self) -> io::Result<()> {
        let flushed = self.flush();
        if self.lines.bytes.is_empty() {
            self.settle();
        }
        flushed
    }

    /// The lines are in their file.
    fn settle(&mut self) {
        self.tickets.drain(..).for_each(Ticket::written);
    }
}

impl Actor for Sink {
    type Message = SinkMsg;

    fn receive(&mut self, message: SinkMsg, ctx: &mut Context<SinkMsg>) -> HandlerResult {
        let mut is_due = false;
        match message {
            SinkMsg::Line { json, ticket, .. } => {
                self.lines.bytes.extend_from_slice(&json);
                self.tickets.push(ticket);
            }
            SinkMsg::Window { json, .. } => self.windows.bytes.extend_from_slice(&json),
            SinkMsg::Flush => {
                self.flush_comes = false;
                is_due = true;
            }
        }
        let is_full = self.lines.bytes.len() > BATCH_MAX && !self.is_stuck;
        if is_due || is_full {
            let flushed = self.flush();
            self.is_stuck = flushed.is_err();
            if let Err(error) = flushed {
                eprintln!("logmill: cannot write, trying again: {error}");
                if !self.flush_comes {
                    self.flush_comes = true;
                    ctx.after(RETRY_AFTER, SinkMsg::Flush);
                }
            }
        } else if !self.flush_comes {
            self.flush_comes = true;
            ctx.me().tell(SinkMsg::Flush);
        }
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<SinkMsg>) {
        if let Err(error) = self.flush_at_end() {
            // Their tickets will say so.
            let windows = if self.windows.bytes.is_empty() { "no" } else { "some" };
            eprintln!("logmill: {} lines and {windows} windows are lost: {error}", self.tickets.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::Books;
    use tokio::sync::Semaphore;

    /// A file on a disk that is full.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn while_windows_cannot_be_written_no_more_lines_come() {
        let (books, places) = (Arc::<Books>::default(), Arc::new(Semaphore::new(1)));
        let mut sink = Sink::new(Box::new(io::sink()), Box::new(Full));
        let mut ticket = Ticket::new(&books);
        ticket.has_place(places.clone().try_acquire_owned().expect("a place"));
        sink.tickets.push(ticket);
        sink.lines.bytes.extend_from_slice(b"line\n");
        sink.windows.bytes.extend_from_slice(b"window\n");
        assert!(sink.flush().is_err());
        assert_eq!(places.available_permits(), 0, "its place is not free");
        assert!(sink.flush_at_end().is_err());
        assert_eq!([&books.written, &books.lost].map(|count| count.get()), [1, 0], "it is in its file");
    }
}
