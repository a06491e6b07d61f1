//! What is known of one line: which bytes of it are what. Nothing is copied, and no input makes it panic.

use crate::calendar::Yearless;
use crate::{rfc3164, rfc5424};
use std::fmt;

/// A line taken apart. Fields that the line does not have, or has as RFC 5424's nil, are `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub format: Format,
    pub priority: Priority,
    pub time: Time,
    pub host: Option<Span>,
    pub app: Option<Span>,
    pub process: Option<Span>,
    pub message_id: Option<Span>,
    pub structured: Vec<Element>,
    pub message: Span,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    #[default]
    Rfc3164,
    Rfc5424,
}

/// Facility and severity.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Priority(u8);

/// When the line says that it was written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    #[default]
    Unknown,
    /// As RFC 5424 has it, with an offset.
    Full(Span),
    /// The same without the offset; taken as UTC.
    NoOffset(Span),
    /// Taken as UTC, too.
    Yearless(Yearless),
}

/// A structured element: its name, and its parameters with their values, in which escapes are still escaped.
#[derive(Debug, PartialEq, Eq)]
pub struct Element {
    pub id: Span,
    pub params: Vec<(Span, Span)>,
}

/// A range of bytes of the line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    begin: u32,
    end: u32,
}

/// Why a line could not be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub expected: &'static str,
    /// At this byte of the line.
    pub at: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {}", self.expected, self.at)
    }
}

impl Span {
    /// The bytes, in the line that the span was made for.
    pub fn of<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        line.get(self.begin as usize..self.end as usize).unwrap_or_default()
    }
}

impl Priority {
    pub const SEVERITIES: [&'static str; 8] =
        ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];
    const FACILITIES: [&'static str; 24] = [
        "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
        "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5",
        "local6", "local7",
    ];

    /// 0, the worst, to 7.
    pub fn severity(self) -> usize {
        usize::from(self.0 % 8)
    }

    pub fn severity_name(self) -> &'static str {
        Self::SEVERITIES[self.severity()]
    }

    pub fn facility_name(self) -> &'static str {
        Self::FACILITIES.get(usize::from(self.0 / 8)).copied().unwrap_or("unknown")
    }
}

/// Takes a line apart.
///
/// A line that begins `<n>1 ` says that it is of RFC 5424, and must be. Every other one with a priority is of
/// RFC 3164, which accepts anything behind it. RFC 3164 would also have lines without a priority taken for user
/// notices; here they are faults, since what sends them is rarely a syslog.
pub fn parse(line: &[u8]) -> Result<Record, Fault> {
    let mut cursor = Cursor { line, at: 0 };
    let priority = priority(&mut cursor)?;
    if cursor.rest().starts_with(b"1 ") {
        rfc5424::parse(cursor, priority)
    } else {
        Ok(rfc3164::parse(cursor, priority))
    }
}

/// `<0>` to `<191>`, without leading zeros.
fn priority(cursor: &mut Cursor<'_>) -> Result<Priority, Fault> {
    let fault = Fault { expected: "a priority, <0> to <191>,", at: 0 };
    cursor.expect(b'<', fault.expected)?;
    let digits = cursor.take_while(|byte| byte.is_ascii_digit()).of(cursor.line);
    let has_leading_zero = digits.len() > 1 && digits.starts_with(b"0");
    if !(1..=3).contains(&digits.len()) || has_leading_zero {
        return Err(fault);
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    cursor.expect(b'>', fault.expected).map_err(|_| fault)?;
    match u8::try_from(number) {
        Ok(number) if number <= 191 => Ok(Priority(number)),
        _ => Err(fault),
    }
}

/// A place in a line.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    pub line: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn rest(&self) -> &'a [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    pub fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    /// From `begin` to here.
    pub fn since(&self, begin: usize) -> Span {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { begin: place(begin), end: place(self.at) }
    }

    pub fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> Span {
        let begin = self.at;
        self.at += self.rest().iter().take_while(|&&byte| wanted(byte)).count();
        self.since(begin)
    }

    pub fn take_rest(&mut self) -> Span {
        self.take_while(|_| true)
    }

    /// Goes over this byte if it is next.
    pub fn accept(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    pub fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Fault> {
        if self.accept(byte) { Ok(()) } else { Err(self.fault(what)) }
    }

    pub fn fault(&self, expected: &'static str) -> Fault {
        Fault { expected, at: self.at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_those_of_the_rfcs() {
        let parsed = |text: &str| parse(text.as_bytes()).map(|record| record.priority);
        for number in 0..=191u8 {
            let priority = parsed(&format!("<{number}>x")).unwrap();
            assert_eq!((priority.severity(), priority), (usize::from(number % 8), Priority(number)));
            assert_ne!(priority.facility_name(), "unknown");
        }
        assert_eq!(
            parsed("<165>x").map(|it| (it.facility_name(), it.severity_name())),
            Ok(("local4", "notice"))
        );
        for bad in [
            "<192>x", "<999>x", "<1000>x", "<00>x", "<01>x", "<>x", "<1x", "<1", "<", "", "1>x", "<-1>x",
            " <1>x",
        ] {
            assert!(parsed(bad).is_err(), "{bad:?}");
        }
    }

    /// Numbers that look random, always the same.
    fn random(state: &mut u64) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize
    }

    #[test]
    fn no_input_makes_a_parser_panic_or_name_bytes_that_are_not_there() {
        const SEEDS: [&[u8]; 5] = [
            b"<34>1 2003-10-11T22:14:15.003Z host app 17 ID47 [a@1 b=\"c\\\"d\"][e f=\"]\"] \xef\xbb\xbfmessage",
            b"<165>1 - - - - - - ",
            b"<34>Oct 11 22:14:15 mymachine su[17]: 'su root' failed",
            b"<13>2007-12-24T17:28:51.5+02:00 localhost prg[1234]: seq: 0",
            b"<0>",
        ];
        const PIECES: &[u8] = b"<>[]\"\\=:- 01T.Z+\n\r\0\xef\xbb\xbf\xff\x80a";
        let mut state = 7;
        for round in 0..60_000 {
            let mut line = SEEDS[round % SEEDS.len()].to_vec();
            for _ in 0..random(&mut state) % 6 {
                let at = random(&mut state) % (line.len() + 1);
                let byte = PIECES[random(&mut state) % PIECES.len()];
                match random(&mut state) % 4 {
                    0 => line.truncate(at),
                    1 => line.insert(at, byte),
                    2 if at < line.len() => line[at] = byte,
                    _ if at < line.len() => drop(line.remove(at)),
                    _ => {}
                }
            }
            match parse(&line) {
                Ok(record) => {
                    let params = record.structured.iter().flat_map(|element| &element.params);
                    let named = params.flat_map(|&(name, value)| [name, value]);
                    let spans =
                        [record.host, record.app, record.process, record.message_id, Some(record.message)];
                    for span in spans.into_iter().flatten().chain(named) {
                        assert!(span.begin <= span.end && span.end as usize <= line.len(), "{line:?}");
                    }
                }
                Err(fault) => assert!(fault.at <= line.len(), "{fault}: {line:?}"),
            }
        }
    }

    #[test]
    fn garbage_is_a_fault_that_says_where() {
        for garbage in
            [&b"Use the BFG!"[..], b"GET / HTTP/1.1", b"\x16\x03\x01\x02\x00\x01\x00", b"\xff\xfe", b"{}"]
        {
            assert_eq!(
                parse(garbage).unwrap_err().to_string(),
                "expected a priority, <0> to <191>, at byte 0"
            );
        }
    }
}
