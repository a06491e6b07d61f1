//! The stage that keeps something: an actor for each host, which counts what it has sent in the present window.
//!
//! A host's actor is created by its first line. Its window opens with a line and is closed by a timer; when nothing has
//! come for a while the actor retires, and the next line creates another. A line that comes just then is the first of the
//! next actor, which begins when the former has ended and closed its window.

use crate::books::{Books, Ticket};
use crate::calendar;
use crate::record::Priority;
use crate::sink::SinkMsg;
use crate::stages::with_line_feed;
use pointsman::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What a host's actor takes.
pub enum HostMsg {
    Line(HostLine),
    /// The window is over.
    Close,
    /// Nothing has come for a while.
    Idle,
}

/// A line that was parsed, as it is to be written.
pub struct HostLine {
    pub host: Arc<str>,
    pub severity: usize,
    pub bytes: u64,
    pub json: Vec<u8>,
    pub ticket: Ticket,
}

impl HostMsg {
    /// Whose it is.
    pub fn key(&self) -> Arc<str> {
        match self {
            HostMsg::Line(line) => line.host.clone(),
            // Told to one actor by its timers, never routed.
            HostMsg::Close | HostMsg::Idle => "".into(),
        }
    }
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

/// What is done with lines and windows, whoever does it.
#[derive(Clone)]
pub struct Desk {
    pub sinks: ActorRef<SinkMsg>,
    pub books: Arc<Books>,
}

impl Desk {
    /// Counts a line, and passes it on.
    fn add(&self, line: HostLine, window: &mut Window) {
        let HostLine { host, severity, bytes, json, ticket } = line;
        window.lines += 1;
        window.bytes += bytes;
        window.by_severity[severity] += 1;
        self.books.aggregated.add(1);
        self.sinks.tell(SinkMsg::Line { json, key: host, ticket });
    }

    fn close(&self, host: &Arc<str>, window: &Window) -> HandlerResult {
        let json = window.json(host)?;
        self.books.windows.add(1);
        self.books.in_windows.add(window.lines);
        self.sinks.tell(SinkMsg::Window { json, key: host.clone() });
        Ok(())
    }
}

/// One host's actor.
pub struct Host {
    name: Arc<str>,
    desk: Desk,
    window_len: Duration,
    idle_after: Duration,
    window: Option<Window>,
}

impl Host {
    pub fn new(name: Arc<str>, desk: Desk, window_len: Duration, idle_after: Duration) -> Self {
        desk.books.hosts.add(1);
        Self { name, desk, window_len, idle_after, window: None }
    }

    fn close(&mut self) -> HandlerResult {
        self.window.take().map_or(Ok(()), |window| self.desk.close(&self.name, &window))
    }
}

impl Actor for Host {
    type Message = HostMsg;

    fn started(&mut self, ctx: &mut Context<HostMsg>) -> HandlerResult {
        ctx.set_receive_timeout(self.idle_after, |_| HostMsg::Idle)?;
        Ok(())
    }

    fn receive(&mut self, message: HostMsg, ctx: &mut Context<HostMsg>) -> HandlerResult {
        match message {
            HostMsg::Line(line) => {
                let window = self.window.get_or_insert_with(|| {
                    ctx.after(self.window_len, HostMsg::Close);
                    Window::open()
                });
                self.desk.add(line, window);
            }
            HostMsg::Close => self.close()?,
            HostMsg::Idle if self.window.is_none() => ctx.passivate(),
            HostMsg::Idle => {}
        }
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<HostMsg>) {
        if let Err(failure) = self.close() {
            eprintln!("logmill: a window is not written: {failure}");
        }
    }
}
