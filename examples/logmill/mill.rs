//! The whole mill: its stages, how they are joined, and how they end one behind the other.

use crate::books::Books;
use crate::connection::{Intake, Line, Receiver};
use crate::entrance::Entrance;
use crate::host::{Desk, Host, HostMsg};
use crate::sink::{self, Output, Sink, SinkMsg};
use crate::stages::{Enricher, Parsed, Parser, Sabotage};
use pointsman::group::Group;
use pointsman::net::{Listener, SocketAddress};
use pointsman::prelude::*;
use pointsman::routing::ConsistentHashing;
use pointsman::shutdown::{Phase, Phases, ShutdownReport};
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The shortest receive timeout that there is. With a shorter one no host's actor would begin, and each line that is parsed
/// would be lost.
const IDLE_MIN: Duration = Duration::from_millis(1);

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

/// A running mill.
pub struct Mill {
    system: System,
    listener: Listener,
    pub books: Arc<Books>,
}

impl Mill {
    /// Starts one that writes to files; it listens when this returns.
    pub fn start(settings: &Settings) -> Result<Mill, Box<dyn Error>> {
        std::fs::create_dir_all(&settings.out)?;
        let open = |kind: &str| -> std::io::Result<Vec<Output>> {
            (0..settings.sinks).map(|n| sink::file(&settings.out, &format!("{kind}-{n}.ndjson"))).collect()
        };
        let outputs = open("lines")?.into_iter().zip(open("windows")?).collect();
        Mill::start_with(settings, outputs)
    }

    /// Starts one that writes where it is told: lines and windows, for each sink.
    pub fn start_with(settings: &Settings, outputs: Vec<(Output, Output)>) -> Result<Mill, Box<dyn Error>> {
        let Settings { width, window, idle_after, drain_for, line_max, .. } = *settings;
        if idle_after < IDLE_MIN {
            return Err(format!("idle after {idle_after:?}: must be at least {IDLE_MIN:?}").into());
        }
        // The drain gives up before its phase does.
        let ample = |it: Phase| it.timeout(settings.drain_for + settings.write_for + Duration::from_secs(1));
        let phases =
            Phases::default().change(Phase::SERVICE_REQUESTS_DONE, ample).change(Phase::SERVICE_STOP, ample);
        let system = System::builder("logmill")
            .dispatcher("disk", Dispatcher::blocking().thread_range(1..=outputs.len().max(1)))
            .shutdown_phases(phases)
            .build()?;
        let books = Arc::<Books>::default();

        // From the end to the beginning, so that each stage knows the next.
        let sink_count = outputs.len();
        // Each output is for one sink, which is never made anew: see `on_failure`.
        let outputs = Mutex::new(outputs);
        let sinks = system
            .router("sinks")
            .pool(sink_count, move |_| {
                let output = outputs.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let (lines, windows) = output.ok_or_else(|| Failure::msg("there is no file for it"))?;
                Ok::<_, Failure>(Sink::new(lines, windows))
            })
            .logic(ConsistentHashing::by(|message: &SinkMsg, key| key.feed(message.key())))
            .on_failure(Strategy::resume())
            .dispatcher("disk")
            .spawn()?;

        let desk = Desk { sinks: sinks.to_ref(), books: books.clone() };
        let hosts = system
            .group("hosts")
            .by_key(HostMsg::key, move |_, key| Host::new(key.clone(), desk.clone(), window, idle_after))
            .spawn()?;
        let to = hosts.to_ref();
        let enrichers = system
            .router("enrichers")
            .pool(width, move |_| Enricher { hosts: to.clone() })
            .on_failure(Strategy::resume())
            .spawn()?;

        let (to, raw, parser_books) = (enrichers.to_ref(), sinks.to_ref(), books.clone());
        let sabotage = Sabotage::new(settings.panic_every);
        let parsers = system
            .router("parsers")
            .balancing_pool(width, move |_| Parser {
                enrichers: to.clone(),
                sinks: raw.clone(),
                books: parser_books.clone(),
                sabotage: sabotage.clone(),
            })
            // A parser keeps nothing from line to line, so there is nothing to make anew.
            .on_failure(Strategy::resume())
            .spawn()?;

        let (to, in_flight) = (parsers.to_ref(), settings.in_flight);
        let entrance = system
            .actor("entrance")
            .mailbox(Mailbox::bounded(Entrance::room(in_flight)).on_full(OverflowPolicy::Reject))
            .spawn(move || Entrance::new(to.clone(), in_flight))?;

        let (connections, intake_books, to) = (AtomicU64::new(0), books.clone(), entrance.clone());
        let intake = Arc::new(Intake { books: intake_books, connections, entrance: to, line_max, drain_for });
        let listener = system
            .listener("intake", SocketAddress::tcp(settings.listen.as_str()))
            .linger(drain_for)
            .spawn(move |connection, _| Receiver::new(connection, intake.clone()))?;

        let mill = Mill { system, listener, books };
        mill.plan_end(drain_for + settings.write_for, entrance, parsers, enrichers, hosts, sinks)?;
        Ok(mill)
    }

    /// Plans the steps at SIGTERM, in this order. Each step waits for its own end.
    fn plan_end(
        &self,
        drain_within: Duration,
        entrance: ActorRef<Line>,
        parsers: Router<Line>,
        enrichers: Router<Parsed>,
        hosts: Group<HostMsg, Arc<str>>,
        sinks: Router<SinkMsg>,
    ) -> Result<(), Box<dyn Error>> {
        let shutdown = self.system.coordinated_shutdown();
        let (listener, port) = (self.listener.clone(), self.listener.clone());
        shutdown.add_task(Phase::SERVICE_UNBIND, "close the port", move || Ok(port.unbind().wait()?))?;
        shutdown.add_task(Phase::SERVICE_REQUESTS_DONE, "read what has arrived", move || {
            let report = listener.drain(drain_within).wait()?;
            if report.is_complete() { Ok(()) } else { Err(Failure::msg(report.to_string())) }
        })?;
        shutdown.add_task(Phase::SERVICE_STOP, "drain the stages", move || {
            entrance.graceful_stop(drain_within).wait()?;
            drain(&parsers)?;
            drain(&enrichers)?;
            hosts.terminate("the mill ends");
            hosts.when_ended().wait()?;
            drain(&sinks)
        })?;
        Ok(())
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.listener.local_addr().expect("a TCP listener has an address")
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

/// Has a stage handle what it has, and waits until it has ended.
fn drain<M: Send + 'static>(stage: &Router<M>) -> HandlerResult {
    stage.drain()?;
    stage.when_ended().wait()?;
    Ok(())
}
