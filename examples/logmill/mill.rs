//! The whole mill in one system: the reception of lines, the stages behind it, and their end.

use crate::books::Books;
use crate::pipeline::{self, Outputs, Pipeline};
use crate::reception::Reception;
use pointsman::prelude::*;
use pointsman::shutdown::{Phase, Phases, ShutdownReport};
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a mill is to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Host and port.
    pub listen: String,
    /// Where the files go; it is made if it is not there.
    pub out: PathBuf,
    /// So many lines are in the stages at most. A quarter of that waits at the entrance, and a line at each connection.
    pub in_flight: usize,
    /// Longer lines are cut there, in bytes.
    pub line_max: usize,
    /// How long a host's window is open.
    pub window: Duration,
    /// A host's actor ends when nothing has come for so long.
    pub idle_after: Duration,
    /// Routees of each stage that computes.
    pub width: usize,
    pub sinks: usize,
    /// Who goes on sending is cut off so long after the end has begun.
    pub drain_for: Duration,
    /// How long the lines in the mill may take to be written then.
    pub write_for: Duration,
    /// A parser panics each so-many-th line; 0: never.
    pub panic_every: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".to_owned(),
            out: PathBuf::from("logmill-out"),
            in_flight: 4096,
            line_max: 64 * 1024,
            window: Duration::from_secs(1),
            idle_after: Duration::from_secs(10),
            width: 4,
            sinks: 2,
            drain_for: Duration::from_secs(2),
            write_for: Duration::from_secs(30),
            panic_every: 0,
        }
    }
}

impl Settings {
    /// How long the end may take, from its beginning until all lines are written.
    pub fn end_within(&self) -> Duration {
        self.drain_for + self.write_for
    }

    /// Phases that give up later than what runs in them.
    pub fn phases(&self) -> Phases {
        let ample = |it: Phase| it.timeout(self.end_within() + Duration::from_secs(1));
        Phases::default().change(Phase::SERVICE_REQUESTS_DONE, ample).change(Phase::SERVICE_STOP, ample)
    }
}

/// A running mill.
pub struct Mill {
    system: System,
    reception: Reception,
    pub books: Arc<Books>,
}

impl Mill {
    /// Starts one that writes to files; it listens when this returns.
    pub fn start(settings: &Settings) -> Result<Mill, Box<dyn Error>> {
        Mill::start_with(settings, pipeline::files(settings)?)
    }

    /// Starts one that writes where it is told: lines and windows, for each sink.
    pub fn start_with(settings: &Settings, outputs: Outputs) -> Result<Mill, Box<dyn Error>> {
        let builder = System::builder("logmill").shutdown_phases(settings.phases());
        let system = pipeline::with_disk(builder, outputs.len()).build()?;
        let books = Arc::<Books>::default();
        let stages = Pipeline::spawn(&system, settings, &books, outputs)?;
        let reception = Reception::spawn(&system, settings, &books, stages.to_ref())?;
        reception.plan_end(&system, settings.end_within(), move || stages.drain())?;
        Ok(Mill { system, reception, books })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.reception.addr()
    }

    /// Has SIGTERM and SIGINT begin the end.
    pub fn stop_on_signals(&self) -> std::io::Result<()> {
        self.system.coordinated_shutdown().on_signals()
    }

    /// Begins the end.
    pub fn stop(&self, reason: &'static str) {
        drop(self.system.coordinated_shutdown().run(reason));
    }

    /// Waits for the end, whoever begins it: a signal, or [`stop`](Self::stop).
    pub fn wait(self) -> Result<(Arc<Books>, ShutdownReport), Box<dyn Error>> {
        let report = self.system.coordinated_shutdown().wait()?;
        self.system.shutdown(Duration::from_secs(10))?;
        Ok((self.books, report))
    }
}
