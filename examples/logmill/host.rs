//! The stage that keeps something: what each host has sent in the present window.
//!
//! A window opens with a host's first line and is closed by a timer; a host that says nothing has none, and costs
//! nothing.

use crate::calendar;
use crate::gate::{Gate, Ticket};
use crate::record::Priority;
use crate::sink::SinkMsg;
use crate::stages::with_line_feed;
use pointsman::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What the stage takes.
pub enum HostMsg {
    /// A line that was parsed, as it is to be written.
    Line { host: Arc<str>, severity: usize, bytes: u64, json: Vec<u8>, ticket: Ticket },
    /// The host's window is over.
    Close(Arc<str>),
}

/// What one host has sent since its window opened.
struct Window {
    opened: SystemTime,
    lines: u64,
    bytes: u64,
    by_severity: [u64; Priority::SEVERITIES.len()],
}

/// A window in the file.
#[derive(serde::Serialize)]
struct ClosedWindow<'a> {
    host: &'a str,
    from: String,
    to: String,
    lines: u64,
    bytes: u64,
    by_severity: BTreeMap<&'static str, u64>,
}

impl Window {
    fn open() -> Self {
        Self { opened: SystemTime::now(), lines: 0, bytes: 0, by_severity: [0; 8] }
    }

    fn json(&self, host: &str) -> serde_json::Result<Vec<u8>> {
        let counts = Priority::SEVERITIES.into_iter().zip(self.by_severity);
        with_line_feed(&ClosedWindow {
            host,
            from: calendar::rfc3339(self.opened),
            to: calendar::rfc3339(SystemTime::now()),
            lines: self.lines,
            bytes: self.bytes,
            by_severity: counts.filter(|&(_, count)| count > 0).collect(),
        })
    }
}

/// The hosts of one share of the keys.
pub struct Hosts {
    pub window: Duration,
    pub sinks: ActorRef<SinkMsg>,
    pub gate: Arc<Gate>,
    windows: HashMap<Arc<str>, Window>,
}

impl Hosts {
    pub fn new(window: Duration, sinks: ActorRef<SinkMsg>, gate: Arc<Gate>) -> Self {
        Self { window, sinks, gate, windows: HashMap::new() }
    }

    fn close(&self, host: Arc<str>, window: &Window) -> Done {
        let json = window.json(&host)?;
        self.gate.books.windows.add(1);
        self.gate.books.in_windows.add(window.lines);
        self.sinks.tell(SinkMsg::Window { json, key: host });
        Ok(())
    }
}

impl Actor for Hosts {
    type Message = HostMsg;

    fn receive(&mut self, message: HostMsg, ctx: &mut Context<HostMsg>) -> Done {
        match message {
            HostMsg::Line { host, severity, bytes, json, ticket } => {
                let window = self.windows.entry(host.clone()).or_insert_with(|| {
                    ctx.after(self.window, HostMsg::Close(host.clone()));
                    Window::open()
                });
                window.lines += 1;
                window.bytes += bytes;
                window.by_severity[severity] += 1;
                self.gate.books.aggregated.add(1);
                self.sinks.tell(SinkMsg::Line { json, key: host, ticket });
                Ok(())
            }
            HostMsg::Close(host) => match self.windows.remove(&host) {
                Some(window) => self.close(host, &window),
                None => Ok(()),
            },
        }
    }

    fn stopped(&mut self, _: &mut Context<HostMsg>) {
        for (host, window) in std::mem::take(&mut self.windows) {
            if let Err(failure) = self.close(host, &window) {
                eprintln!("logmill: a window is not written: {failure}");
            }
        }
    }
}
