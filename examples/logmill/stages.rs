//! The two stages that compute: parsing and enriching. Neither keeps anything from one line to the next.

use crate::books::{Books, Count};
use crate::calendar;
use crate::connection::{Line, Origin};
use crate::host::{HostLine, HostMsg};
use crate::record::{self, Element, Fault, Format, Priority, Record, Span, Time};
use crate::rfc5424;
use crate::sink::SinkMsg;
use pointsman::prelude::*;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::sync::Arc;

/// A line that was parsed.
pub struct Parsed {
    line: Line,
    record: Record,
}

/// Panics at each so-many-th line of all parsers together, on purpose: to show what a panic costs.
pub struct Sabotage {
    every: u64,
    lines: Count,
}

impl Sabotage {
    /// Never, if `every` is 0.
    pub fn new(every: u64) -> Arc<Self> {
        Arc::new(Self { every, lines: Count::default() })
    }

    fn strike(&self) {
        if self.every > 0 {
            let number = self.lines.next();
            assert!(number % self.every != 0, "sabotage at line {number}");
        }
    }
}

/// Takes lines apart; what cannot be is written as it came.
pub struct Parser {
    pub enrichers: ActorRef<Parsed>,
    pub sinks: ActorRef<SinkMsg>,
    pub books: Arc<Books>,
    pub sabotage: Arc<Sabotage>,
}

impl Actor for Parser {
    type Message = Line;

    fn receive(&mut self, line: Line, _: &mut Context<Line>) -> HandlerResult {
        // A panic here, wanted or not, takes down this line, whose ticket counts it, and nothing else.
        self.sabotage.strike();
        match line.fault().map_or_else(|| record::parse(&line.bytes), Err) {
            Ok(record) => {
                self.books.parsed.add(1);
                self.enrichers.tell(Parsed { line, record });
            }
            Err(fault) => {
                let json = raw_json(&line, fault)?;
                self.books.unparsable.add(1);
                self.sinks.tell(SinkMsg::Line { json, key: line.origin.host.clone(), ticket: line.ticket });
            }
        }
        Ok(())
    }
}

/// Adds what the line does not say itself, and makes the JSON of it.
pub struct Enricher {
    pub hosts: ActorRef<HostMsg>,
}

impl Actor for Enricher {
    type Message = Parsed;

    fn receive(&mut self, parsed: Parsed, _: &mut Context<Parsed>) -> HandlerResult {
        let Parsed { line, record } = parsed;
        let host = match text(&line.bytes, record.host) {
            Some(host) => Arc::from(host),
            None => line.origin.host.clone(),
        };
        let json = json(&line, &record, &host)?;
        let (severity, bytes) = (record.priority.severity(), line.bytes.len() as u64);
        self.hosts.tell(HostMsg::Line(HostLine { host, severity, bytes, json, ticket: line.ticket }));
        Ok(())
    }
}

fn text<'a>(line: &'a [u8], span: Option<Span>) -> Option<Cow<'a, str>> {
    span.map(|span| String::from_utf8_lossy(span.of(line)))
}

/// Where a line came from, and when.
#[derive(serde::Serialize)]
struct Arrival<'a> {
    received: String,
    peer: &'a str,
    connection: u64,
    number: u64,
}

impl<'a> Arrival<'a> {
    fn of(line: &'a Line) -> Self {
        let Origin { host, connection } = &*line.origin;
        let received = calendar::rfc3339(line.received);
        Self { received, peer: host, connection: *connection, number: line.number }
    }
}

/// A parsed line in the file.
#[derive(serde::Serialize)]
struct ParsedLine<'a> {
    #[serde(flatten)]
    arrival: Arrival<'a>,
    format: &'static str,
    facility: &'static str,
    severity: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Cow<'a, str>>,
    host: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    app: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Structured::is_empty")]
    structured: Structured<'a>,
    message: Cow<'a, str>,
    /// The message's bytes, where they are no UTF-8 and the text above is not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_hex: Option<String>,
}

/// One that could not be parsed.
#[derive(serde::Serialize)]
struct RawLine<'a> {
    #[serde(flatten)]
    arrival: Arrival<'a>,
    unparsable: String,
    raw: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_hex: Option<String>,
}

/// `{"id": [["name", "value"], …], …}`: names of parameters may come several times.
struct Structured<'a> {
    line: &'a [u8],
    elements: &'a [Element],
}

impl Structured<'_> {
    fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
}

impl Serialize for Structured<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |span: &Span| String::from_utf8_lossy(span.of(self.line));
        let mut map = serializer.serialize_map(Some(self.elements.len()))?;
        for element in self.elements {
            let param = |(name, value): &(Span, Span)| (text(name), rfc5424::unescape(&text(value)));
            map.serialize_entry(&text(&element.id), &element.params.iter().map(param).collect::<Vec<_>>())?;
        }
        map.end()
    }
}

fn json(line: &Line, record: &Record, host: &str) -> serde_json::Result<Vec<u8>> {
    let Record { format, priority, .. } = *record;
    let bytes = line.bytes.as_slice();
    let timestamp = match record.time {
        Time::Unknown => None,
        Time::Full(span) => text(bytes, Some(span)),
        Time::NoOffset(span) => text(bytes, Some(span)).map(|text| (text.into_owned() + "Z").into()),
        Time::Yearless(time) => time.to_rfc3339(line.received).map(Cow::from),
    };
    let message = record.message.of(bytes);
    with_line_feed(&ParsedLine {
        arrival: Arrival::of(line),
        format: match format {
            Format::Rfc3164 => "rfc3164",
            Format::Rfc5424 => "rfc5424",
        },
        facility: Priority::facility_name(priority),
        severity: priority.severity_name(),
        timestamp,
        host,
        app: text(bytes, record.app),
        process: text(bytes, record.process),
        message_id: text(bytes, record.message_id),
        structured: Structured { line: bytes, elements: &record.structured },
        message: String::from_utf8_lossy(message),
        message_hex: hex_unless_text(message),
    })
}

fn raw_json(line: &Line, fault: Fault) -> serde_json::Result<Vec<u8>> {
    with_line_feed(&RawLine {
        arrival: Arrival::of(line),
        unparsable: fault.to_string(),
        raw: String::from_utf8_lossy(&line.bytes),
        raw_hex: hex_unless_text(&line.bytes),
    })
}

/// Bytes that are no UTF-8, two digits each.
fn hex_unless_text(bytes: &[u8]) -> Option<String> {
    let is_text = std::str::from_utf8(bytes).is_ok();
    (!is_text).then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// One line of NDJSON.
pub fn with_line_feed(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = serde_json::to_vec(value)?;
    json.push(b'\n');
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::Ticket;
    use crate::framing::Whole;
    use serde_json::{Value, json};
    use std::time::{Duration, UNIX_EPOCH};

    fn line(bytes: &[u8]) -> Line {
        Line {
            bytes: bytes.to_vec(),
            whole: Whole::Yes,
            origin: Arc::new(Origin { host: "192.0.2.7".into(), connection: 3 }),
            number: 12,
            received: UNIX_EPOCH + Duration::from_secs(1_795_307_400),
            ticket: Ticket::new(&Arc::default()),
        }
    }

    fn parsed_json(bytes: &[u8]) -> Value {
        let line = line(bytes);
        let record = record::parse(bytes).expect("a good line");
        let json = json(&line, &record, "web-01").expect("JSON");
        assert_eq!(json.iter().filter(|&&byte| byte == b'\n').count(), 1, "one line, whatever is in it");
        serde_json::from_slice(&json).expect("JSON")
    }

    #[test]
    fn a_line_is_written_with_all_that_is_known_of_it() {
        let bytes = b"<165>1 2003-10-11T22:14:15.003Z h app 17 ID47 [a@1 ip=\"1\" ip=\"\\\"2\\\"\"][b] line 1\nline 2";
        let expected = json!({
            "received": "2026-11-22T00:30:00.000000Z", "peer": "192.0.2.7", "connection": 3, "number": 12,
            "format": "rfc5424", "facility": "local4", "severity": "notice",
            "timestamp": "2003-10-11T22:14:15.003Z", "host": "web-01", "app": "app", "process": "17",
            "message_id": "ID47", "structured": {"a@1": [["ip", "1"], ["ip", "\"2\""]], "b": []},
            "message": "line 1\nline 2",
        });
        assert_eq!(parsed_json(bytes), expected);
    }

    #[test]
    fn what_a_line_does_not_say_is_left_out_or_completed() {
        let written = parsed_json(b"<13>Nov 21 23:59:58 h app: x");
        assert_eq!(written["timestamp"], "2026-11-21T23:59:58Z");
        assert_eq!(written.get("process"), None);
        assert_eq!(parsed_json(b"<13>2007-12-24T17:28:51 h x")["timestamp"], "2007-12-24T17:28:51Z");
        assert_eq!(parsed_json(b"<13>x").get("timestamp"), None);
    }

    #[test]
    fn bytes_that_are_no_text_are_kept() {
        let written = parsed_json(b"<13>Oct 11 22:14:15 h caf\xe9");
        assert_eq!(
            (&written["message"], &written["message_hex"]),
            (&json!("caf\u{fffd}"), &json!("636166e9"))
        );
        let raw = raw_json(&line(b"\x16\x03\xff"), Fault { expected: "sense", at: 0 }).expect("JSON");
        let raw: Value = serde_json::from_slice(&raw).expect("JSON");
        assert_eq!(
            (&raw["raw_hex"], &raw["unparsable"]),
            (&json!("1603ff"), &json!("expected sense at byte 0"))
        );
        let raw = raw_json(&line(b"GET /"), Fault { expected: "sense", at: 0 }).expect("JSON");
        let raw: Value = serde_json::from_slice(&raw).expect("JSON");
        assert_eq!((&raw["raw"], raw.get("raw_hex")), (&json!("GET /"), None));
    }
}
