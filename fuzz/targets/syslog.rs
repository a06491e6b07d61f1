//! Lines of RFC 5424 and RFC 3164 as the log mill takes them apart.
//!
//! The first byte chooses: an even one has the rest read as a line, an odd one makes a line out of the rest, which
//! must be read as it was made. What must hold:
//! - A fault names a place within the line.
//! - The parts of a line of RFC 5424, printed one behind the other, are the line; but for a byte order mark, and a
//!   space behind which nothing follows.
//! - The parts of a line of RFC 3164 stand in it in order, and the message is its end.
//! - A date without a year stands for one that exists, not more than a day ahead.

use crate::calendar::{Yearless, is_offset, split_date_time};
use crate::record::{Format, Record, Span, Time, parse};
use crate::rfc5424::unescape;
use std::time::{Duration, UNIX_EPOCH};

const BOM: &[u8] = b"\xef\xbb\xbf";

pub fn check(data: &[u8]) {
    match data.split_first() {
        Some((choice, line)) if choice % 2 == 0 => read(line),
        Some((choice, parts)) => make_and_read(*choice, parts),
        None => {}
    }
}

fn read(line: &[u8]) {
    let record = match parse(line) {
        Ok(record) => record,
        Err(fault) => {
            assert!(fault.at <= line.len(), "{fault}");
            return assert!(fault.to_string().ends_with(&format!("at byte {}", fault.at)));
        }
    };
    let number = line[1..].iter().take_while(|byte| byte.is_ascii_digit());
    let number = number.fold(0, |number, digit| 10 * number + usize::from(digit - b'0'));
    assert!(number <= 191 && record.priority.severity() == number % 8);
    assert_ne!(record.priority.facility_name(), "unknown");
    match record.format {
        Format::Rfc5424 => {
            let printed = print(number, &record, line);
            let message = record.message.of(line);
            let head = printed.strip_suffix(message).expect("the message is the end");
            let (head, space) = (head.strip_suffix(b" ").expect("a space is before it"), &b" "[..]);
            assert!(
                line == printed
                    || line == [head, space, BOM, message].concat()
                    || (line == head && message.is_empty()),
                "{}",
                printed.escape_ascii()
            );
            let again = parse(&printed).expect("it is one");
            // A second byte order mark would be taken for the first.
            assert!(message.starts_with(BOM) || print(number, &again, &printed) == printed);
        }
        Format::Rfc3164 => in_order(&record, line),
    }
    check_time(record.time, line);
}

fn check_time(time: Time, line: &[u8]) {
    match time {
        Time::Unknown => {}
        Time::Full(span) => assert!(split_date_time(span.of(line)).is_some_and(is_offset)),
        Time::NoOffset(span) => assert_eq!(split_date_time(span.of(line)), Some(&b""[..])),
        Time::Yearless(date) => check_yearless(date),
    }
}

fn check_yearless(date: Yearless) {
    // The 28th of February, the leap day, New Year's Eve and the day after.
    for received in [1_709_078_400, 1_709_164_800, 1_798_675_200, 1_798_761_600] {
        let written = date.to_rfc3339(UNIX_EPOCH + Duration::from_secs(received)).expect("some year has it");
        assert!(split_date_time(written.as_bytes()).is_some_and(is_offset), "{written}");
        let tail = format!(
            "-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            date.month, date.day, date.hour, date.minute, date.second
        );
        assert!(written.ends_with(&tail), "{written} for {date:?}");
    }
}

/// A record of RFC 5424 as a line.
fn print(priority: usize, record: &Record, line: &[u8]) -> Vec<u8> {
    let mut printed = format!("<{priority}>1 ").into_bytes();
    let time = match record.time {
        Time::Full(span) => span.of(line),
        Time::Unknown => b"-",
        other => panic!("{other:?} is none of RFC 5424"),
    };
    let text = |span: Option<Span>| span.map_or(&b"-"[..], |span| span.of(line));
    for field in [time, text(record.host), text(record.app), text(record.process), text(record.message_id)] {
        printed.extend_from_slice(field);
        printed.push(b' ');
    }
    for element in &record.structured {
        printed.push(b'[');
        printed.extend_from_slice(element.id.of(line));
        for (name, value) in &element.params {
            printed.push(b' ');
            printed.extend_from_slice(name.of(line));
            printed.extend_from_slice(b"=\"");
            printed.extend_from_slice(value.of(line));
            printed.push(b'"');
        }
        printed.push(b']');
    }
    if record.structured.is_empty() {
        printed.push(b'-');
    }
    printed.push(b' ');
    printed.extend_from_slice(record.message.of(line));
    printed
}

fn in_order(record: &Record, line: &[u8]) {
    assert!(record.structured.is_empty() && record.message_id.is_none());
    let time = match record.time {
        Time::Full(span) | Time::NoOffset(span) => Some(span),
        _ => None,
    };
    let mut upto = 0;
    for span in [time, record.host, record.app, record.process, Some(record.message)].into_iter().flatten() {
        // Where it stands is how far its bytes are from the line's.
        let bytes = span.of(line);
        if bytes.is_empty() {
            continue;
        }
        let begin = bytes.as_ptr() as usize - line.as_ptr() as usize;
        assert!(begin >= upto);
        upto = begin + bytes.len();
    }
    assert!(line.ends_with(record.message.of(line)));
}

/// A line of the parts between the `|` of this text, as far as they may stand there.
fn make_and_read(choice: u8, parts: &[u8]) {
    let mut parts = parts.split(|&byte| byte == b'|');
    let mut next = |max: usize, allowed: fn(&u8) -> bool| -> Vec<u8> {
        let part = parts.next().unwrap_or_default();
        part.iter().copied().filter(allowed).take(max).collect()
    };
    let visible: fn(&u8) -> bool = u8::is_ascii_graphic;
    let name: fn(&u8) -> bool = |byte| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"');
    let fields = [255, 48, 128, 32].map(|max| next(max, visible));
    let id = next(32, name);
    let mut params = Vec::new();
    for _ in 0..choice / 32 {
        let (name, value) = (next(32, name), next(1000, |_| true));
        if !name.is_empty() {
            params.push((name, String::from_utf8_lossy(&value).into_owned()));
        }
    }
    let message = next(10_000, |_| true);
    let priority = usize::from(choice) % 192;
    let mut line = format!("<{priority}>1 2003-10-11T22:14:15.003Z ").into_bytes();
    for field in &fields {
        line.extend_from_slice(if field.is_empty() { b"-" } else { field });
        line.push(b' ');
    }
    if id.is_empty() {
        line.push(b'-');
    } else {
        line.push(b'[');
        line.extend_from_slice(&id);
        for (name, value) in &params {
            line.extend_from_slice(&[b" ", &name[..], b"=\"", escape(value).as_bytes(), b"\""].concat());
        }
        line.push(b']');
    }
    // The byte order mark keeps the first bytes of the message from being taken for one.
    line.extend_from_slice(&[b" ", BOM, &message[..]].concat());

    let record = parse(&line).unwrap_or_else(|fault| panic!("{fault}: {}", line.escape_ascii()));
    assert_eq!((record.format, record.priority.severity()), (Format::Rfc5424, priority % 8));
    let read = [record.host, record.app, record.process, record.message_id];
    for (span, made) in read.into_iter().zip(&fields) {
        let nil = made.is_empty() || made == b"-";
        assert_eq!(span.map(|span| span.of(&line)), (!nil).then_some(&made[..]));
    }
    assert_eq!(record.structured.len(), usize::from(!id.is_empty()));
    for element in &record.structured {
        assert_eq!(element.id.of(&line), id);
        assert_eq!(element.params.len(), params.len());
        for ((name, value), (made_name, made)) in element.params.iter().zip(&params) {
            let value = std::str::from_utf8(value.of(&line)).expect("it is said to be");
            assert_eq!((name.of(&line), &unescape(value)), (&made_name[..], made));
        }
    }
    assert_eq!(record.message.of(&line), message);
}

fn escape(value: &str) -> String {
    value.chars().fold(String::new(), |mut escaped, character| {
        if matches!(character, '"' | '\\' | ']') {
            escaped.push('\\');
        }
        escaped.push(character);
        escaped
    })
}
