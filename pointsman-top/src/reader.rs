//! Reads a server again and again, and records what it reads.

use crate::client::Client;
use crate::query::Query;
use crate::reading::Reading;
use crate::recording::Recorder;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The reports that may wait for the screen.
const WAITING_MAX: usize = 4;

/// A report of a reader.
#[derive(Debug)]
pub enum Report {
    /// A reading.
    Reading(Box<Reading>),
    /// The recording has ended, and why.
    RecordingEnded(String),
}

/// The actors to ask for, which the screen may change at any time.
#[derive(Debug, Clone)]
pub struct SharedQuery(Arc<Mutex<Query>>);

/// Reads a server.
#[derive(Debug)]
pub struct Reader {
    client: Client,
    query: SharedQuery,
    recorder: Option<Recorder>,
    began: Instant,
}

impl SharedQuery {
    /// Returns a query that can be changed.
    pub fn new(query: Query) -> Self {
        Self(Arc::new(Mutex::new(query)))
    }

    /// Sets the query of the next reading.
    pub fn set(&self, query: Query) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = query;
    }

    /// The query of the next reading.
    pub fn get(&self) -> Query {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Reader {
    /// Returns a reader, whose clock begins now.
    pub fn new(client: Client, query: SharedQuery, recorder: Option<Recorder>) -> Self {
        Self { client, query, recorder, began: Instant::now() }
    }

    /// The moment at which the clock of the reader began.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Reads the server once. A recording that fails ends, and the reading is there all the same.
    pub fn read(&mut self) -> (Reading, Option<String>) {
        let outcome = self.client.snapshot(&self.query.get()).map_err(|fault| fault.to_string());
        let reading = Reading { at: self.began.elapsed().as_secs_f64(), outcome };
        let written = self.recorder.as_mut().map_or(Ok(()), |recorder| recorder.write(&reading));
        let fault = written.err().map(|error| error.to_string());
        if fault.is_some() {
            self.recorder = None;
        }
        (reading, fault)
    }

    /// Reads the server in a thread of its own, with `interval` between the beginnings of two readings. The thread ends
    /// when the receiver is gone.
    pub fn run(mut self, interval: Duration) -> Receiver<Report> {
        let (sender, reports) = sync_channel(WAITING_MAX);
        thread::spawn(move || {
            loop {
                let begin = Instant::now();
                let (reading, fault) = self.read();
                let ended = fault.map(Report::RecordingEnded);
                for report in [Some(Report::Reading(Box::new(reading))), ended].into_iter().flatten() {
                    if sender.send(report).is_err() {
                        return;
                    }
                }
                thread::sleep(interval.saturating_sub(begin.elapsed()));
            }
        });
        reports
    }
}
