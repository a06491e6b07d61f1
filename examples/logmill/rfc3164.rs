//! Lines as RFC 3164 found them in the wild, and as they still are:
//!
//! ```text
//! <34>Oct 11 22:14:15 mymachine su[17]: 'su root' failed for lonvick on /dev/pts/8
//!  │  timestamp       host      │  │    message
//!  priority                  app  process
//! ```
//!
//! Anything is a line of this format: what is not there is left out. Where there is no timestamp there is no host
//! either, and everything is the message (§4.3.2). In place of the timestamp many senders write one as RFC 5424 has
//! it, some without its offset. A host that looks like the beginning of the message, `su:` or `su[17]:`, is one.

use crate::calendar::{self, MONTHS, Yearless};
use crate::record::{Cursor, Format, Priority, Record, Span, Time};

/// RFC 3164 allows 32; names of services are longer today.
const APP_MAX: usize = 64;

/// Goes on behind the priority.
pub fn parse(mut cursor: Cursor<'_>, priority: Priority) -> Record {
    let mut record = Record { format: Format::Rfc3164, priority, ..Record::default() };
    if let Some(time) = time(&mut cursor) {
        record.time = time;
        record.host = host(&mut cursor);
        if let Some((app, process)) = tag(&mut cursor) {
            (record.app, record.process) = (Some(app), process);
        }
    }
    record.message = cursor.take_rest();
    record
}

/// A timestamp and the space behind it; the cursor stays where it is if there is none.
fn time(cursor: &mut Cursor<'_>) -> Option<Time> {
    let mut ahead = *cursor;
    let time = match ahead.peek()? {
        b'0'..=b'9' => {
            let span = ahead.take_while(|byte| byte != b' ');
            match calendar::split_date_time(span.of(ahead.line))? {
                [] => Time::NoOffset(span),
                offset => calendar::is_offset(offset).then_some(Time::Full(span))?,
            }
        }
        _ => Time::Yearless(yearless(&mut ahead)?),
    };
    if ahead.peek().is_some() && !ahead.accept(b' ') {
        return None;
    }
    *cursor = ahead;
    Some(time)
}

/// `Oct 11 22:14:15`; a day below 10 has a space before it, and here may also do without.
fn yearless(cursor: &mut Cursor<'_>) -> Option<Yearless> {
    let month = MONTHS.iter().position(|name| cursor.rest().starts_with(name))?;
    cursor.at += MONTHS[month].len();
    if !cursor.accept(b' ') {
        return None;
    }
    cursor.accept(b' ');
    let day = number(cursor, 1..=2)?;
    let mut part = |mark: u8| if cursor.accept(mark) { number(cursor, 2..=2) } else { None };
    let (hour, minute, second) = (part(b' ')?, part(b':')?, part(b':')?);
    let time = Yearless { month: month as u8 + 1, day, hour, minute, second };
    time.is_valid().then_some(time)
}

/// A number of so many digits.
fn number(cursor: &mut Cursor<'_>, digits: std::ops::RangeInclusive<usize>) -> Option<u8> {
    let text = cursor.take_while(|byte| byte.is_ascii_digit()).of(cursor.line);
    let value = |text: &[u8]| text.iter().fold(0, |number, digit| number * 10 + (digit - b'0'));
    digits.contains(&text.len()).then(|| value(text))
}

/// The host and the space behind it, unless what stands there is no host.
fn host(cursor: &mut Cursor<'_>) -> Option<Span> {
    let mut ahead = *cursor;
    let span = ahead.take_while(|byte| byte.is_ascii_graphic());
    let text = span.of(ahead.line);
    let begins_message = text.ends_with(b":") || text.contains(&b'[');
    if text.is_empty() || begins_message || !(ahead.accept(b' ') || ahead.peek().is_none()) {
        return None;
    }
    *cursor = ahead;
    Some(span)
}

/// `app:` or `app[process]:`, and the space behind it.
fn tag(cursor: &mut Cursor<'_>) -> Option<(Span, Option<Span>)> {
    let mut ahead = *cursor;
    let begin = ahead.at;
    let app = ahead.take_while(|byte| byte.is_ascii_graphic() && !matches!(byte, b':' | b'['));
    if !(1..=APP_MAX).contains(&(ahead.at - begin)) {
        return None;
    }
    let mut process = None;
    if ahead.accept(b'[') {
        process = Some(ahead.take_while(|byte| byte.is_ascii_graphic() && byte != b']'));
        if !ahead.accept(b']') {
            return None;
        }
        ahead.accept(b':');
    } else if !ahead.accept(b':') {
        return None;
    }
    ahead.accept(b' ');
    *cursor = ahead;
    Some((app, process))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;

    /// Time, host, application, process, message.
    type Parts<'a> = (Time, Option<&'a str>, Option<&'a str>, Option<&'a str>, &'a str);

    fn parts(line: &str) -> Parts<'_> {
        let record = record::parse(line.as_bytes()).unwrap();
        assert_eq!(record.format, Format::Rfc3164, "{line}");
        let text = |span: Span| std::str::from_utf8(span.of(line.as_bytes())).unwrap();
        (
            record.time,
            record.host.map(text),
            record.app.map(text),
            record.process.map(text),
            text(record.message),
        )
    }

    fn yearless(month: u8, day: u8, hour: u8, minute: u8, second: u8) -> Time {
        Time::Yearless(Yearless { month, day, hour, minute, second })
    }

    #[test]
    fn the_examples_of_the_rfc_are_read_as_it_says() {
        assert_eq!(
            parts("<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8"),
            (
                yearless(10, 11, 22, 14, 15),
                Some("mymachine"),
                Some("su"),
                None,
                "'su root' failed for lonvick on /dev/pts/8"
            )
        );
        assert_eq!(
            parts("<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!"),
            (yearless(2, 5, 17, 32, 18), Some("10.0.0.99"), None, None, "Use the BFG!")
        );
        // The zone and the year are in the wrong place, so that the one is taken for the host, as the RFC says.
        let (time, host, app, _, message) =
            parts("<165>Aug 24 05:34:00 CST 1987 mymachine myproc[10]: %% It's time");
        assert_eq!((time, host, app), (yearless(8, 24, 5, 34, 0), Some("CST"), None));
        assert_eq!(message, "1987 mymachine myproc[10]: %% It's time");
        // No timestamp at all: everything is the message.
        let all = "1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!";
        assert_eq!(parts(&format!("<0>{all}")), (Time::Unknown, None, None, None, all));
    }

    #[test]
    fn lines_of_common_senders_are_read() {
        // loggen
        let line = "<38>2007-12-24T17:28:51 localhost prg00000[1234]: seq: 0000000000, thread: 0000";
        let (time, host, app, process, message) = parts(line);
        let Time::NoOffset(span) = time else { panic!("{time:?}") };
        assert_eq!(span.of(line.as_bytes()), b"2007-12-24T17:28:51");
        assert_eq!((host, app, process), (Some("localhost"), Some("prg00000"), Some("1234")));
        assert_eq!(message, "seq: 0000000000, thread: 0000");
        // rsyslog's forward format
        let (time, host, ..) = parts("<13>2026-11-22T00:30:00.123456+01:00 web-01 nginx: GET /");
        assert!(matches!(time, Time::Full(_)) && host == Some("web-01"), "{time:?} {host:?}");
        // syslog(3), which leaves the host to the daemon
        let (_, host, app, process, message) = parts("<86>Nov 22 00:30:00 sshd[812]: Accepted publickey");
        assert_eq!((host, app, process, message), (None, Some("sshd"), Some("812"), "Accepted publickey"));
        let (_, host, app, _, message) = parts("<86>Nov 22 00:30:00 CRON: done");
        assert_eq!((host, app, message), (None, Some("CRON"), "done"));
    }

    #[test]
    fn what_is_missing_is_left_out() {
        assert_eq!(parts("<13>"), (Time::Unknown, None, None, None, ""));
        assert_eq!(parts("<13>Oct 11 22:14:15"), (yearless(10, 11, 22, 14, 15), None, None, None, ""));
        assert_eq!(
            parts("<13>Oct 11 22:14:15 host"),
            (yearless(10, 11, 22, 14, 15), Some("host"), None, None, "")
        );
        assert_eq!(parts("<13>Oct 1 22:14:15 h x").0, yearless(10, 1, 22, 14, 15));
        for odd in [
            "Oct 32 22:14:15 h x",
            "Feb 30 22:14:15 h x",
            "Okt 11 22:14:15 h x",
            "Oct 11 24:14:15 h x",
            "Oct 11 22:60:15 h x",
            "Oct 11 22:14:60 h x",
            "Oct 11 2:14:15 h x",
            "Oct 11 22:14:15x h x",
            "Oct 111 22:14:15 h x",
            "Oct  ",
            "2 not a version",
            "1",
        ] {
            assert_eq!(parts(&format!("<13>{odd}")), (Time::Unknown, None, None, None, odd));
        }
        let (_, host, app, process, message) = parts("<13>Oct 11 22:14:15 h app[17 x");
        assert_eq!((host, app, process, message), (Some("h"), None, None, "app[17 x"));
        let (_, _, app, process, message) = parts("<13>Oct 11 22:14:15 h app[]: x");
        assert_eq!((app, process, message), (Some("app"), Some(""), "x"));
    }
}
