//! Lines as RFC 5424 has them:
//!
//! ```text
//! <165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3"] An event
//!  │   │ timestamp                host                  app      │ id   structured data            message
//!  │   version                                              process
//!  priority
//! ```

use crate::calendar;
use crate::record::{Cursor, Element, Fault, Format, Priority, Record, Span, Time};

const BOM: &[u8] = b"\xef\xbb\xbf";
/// How many bytes the fields may have.
const HOST_MAX: usize = 255;
const APP_MAX: usize = 48;
const PROCESS_MAX: usize = 128;
const MESSAGE_ID_MAX: usize = 32;
const NAME_MAX: usize = 32;

/// Goes on behind the priority.
pub fn parse(mut cursor: Cursor<'_>, priority: Priority) -> Result<Record, Fault> {
    cursor.expect(b'1', "version 1")?;
    cursor.expect(b' ', "a space")?;
    let time = time(&mut cursor)?;
    let host = field(&mut cursor, HOST_MAX, "a host of 1 to 255 visible characters")?;
    let app = field(&mut cursor, APP_MAX, "an application of 1 to 48 visible characters")?;
    let process = field(&mut cursor, PROCESS_MAX, "a process of 1 to 128 visible characters")?;
    let message_id = field(&mut cursor, MESSAGE_ID_MAX, "a message id of 1 to 32 visible characters")?;
    let structured = structured(&mut cursor)?;
    if cursor.peek().is_some() {
        cursor.expect(b' ', "a space or the end")?;
    }
    if cursor.rest().starts_with(BOM) {
        cursor.at += BOM.len();
    }
    let message = cursor.take_rest();
    let format = Format::Rfc5424;
    Ok(Record { format, priority, time, host, app, process, message_id, structured, message })
}

fn time(cursor: &mut Cursor<'_>) -> Result<Time, Fault> {
    let begin = cursor.at;
    let span = cursor.take_while(|byte| byte != b' ');
    let text = span.of(cursor.line);
    let time = if text == b"-" {
        Time::Unknown
    } else if calendar::split_date_time(text).is_some_and(calendar::is_offset) {
        Time::Full(span)
    } else {
        return Err(Fault { expected: "a timestamp or '-'", at: begin });
    };
    cursor.expect(b' ', "a space")?;
    Ok(time)
}

/// A header field and the space behind it; `None` for the nil value.
fn field(cursor: &mut Cursor<'_>, len_max: usize, what: &'static str) -> Result<Option<Span>, Fault> {
    let begin = cursor.at;
    let span = cursor.take_while(|byte| byte.is_ascii_graphic());
    let text = span.of(cursor.line);
    if !(1..=len_max).contains(&text.len()) || !cursor.accept(b' ') {
        return Err(Fault { expected: what, at: begin });
    }
    Ok((text != b"-").then_some(span))
}

fn structured(cursor: &mut Cursor<'_>) -> Result<Vec<Element>, Fault> {
    let (begin, mut elements) = (cursor.at, Vec::new());
    if cursor.accept(b'-') {
        return Ok(elements);
    }
    cursor.expect(b'[', "structured data or '-'")?;
    loop {
        let id = name(cursor)?;
        let mut params = Vec::new();
        while cursor.accept(b' ') {
            let name = name(cursor)?;
            cursor.expect(b'=', "'='")?;
            params.push((name, value(cursor)?));
        }
        cursor.expect(b']', "' ' or ']'")?;
        elements.push(Element { id, params });
        if !cursor.accept(b'[') {
            break;
        }
    }
    let mut ids: Vec<_> = elements.iter().map(|element| element.id.of(cursor.line)).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Fault { expected: "elements of different names", at: begin });
    }
    Ok(elements)
}

/// Of an element or a parameter.
fn name(cursor: &mut Cursor<'_>) -> Result<Span, Fault> {
    let begin = cursor.at;
    let span = cursor.take_while(|byte| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"'));
    if (1..=NAME_MAX).contains(&(cursor.at - begin)) {
        Ok(span)
    } else {
        Err(Fault { expected: "a name of 1 to 32 visible characters", at: begin })
    }
}

/// A value with its quotes; the span is what stands between them.
fn value(cursor: &mut Cursor<'_>) -> Result<Span, Fault> {
    cursor.expect(b'"', "'\"'")?;
    let begin = cursor.at;
    loop {
        match cursor.peek() {
            Some(b'"') => break,
            // Before any other character a backslash stands for itself.
            Some(b'\\') => {
                cursor.at += 1;
                let _ = cursor.accept(b'"') || cursor.accept(b'\\') || cursor.accept(b']');
            }
            Some(b']') | None => return Err(cursor.fault("the end of a value")),
            Some(_) => cursor.at += 1,
        }
    }
    let span = cursor.since(begin);
    if std::str::from_utf8(span.of(cursor.line)).is_err() {
        return Err(Fault { expected: "a value in UTF-8", at: begin });
    }
    cursor.expect(b'"', "'\"'")?;
    Ok(span)
}

/// A value as its sender meant it: `\"`, `\\` and `\]` are the characters themselves.
pub fn unescape(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped =
            characters.peek().copied().filter(|next| character == '\\' && matches!(next, '"' | '\\' | ']'));
        if let Some(escaped) = escaped {
            characters.next();
            plain.push(escaped);
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::parse;

    fn text(line: &[u8], span: Option<Span>) -> Option<&str> {
        span.map(|span| std::str::from_utf8(span.of(line)).unwrap())
    }

    /// Element, parameter, value.
    fn params(line: &[u8], record: &Record) -> Vec<(String, String, String)> {
        let string = |span: &Span| String::from_utf8(span.of(line).to_vec()).unwrap();
        let of = |element: &Element| {
            let id = string(&element.id);
            let param = |(name, value): &(Span, Span)| (id.clone(), string(name), unescape(&string(value)));
            element.params.iter().map(param).collect::<Vec<_>>()
        };
        record.structured.iter().flat_map(of).collect()
    }

    #[test]
    fn the_examples_of_the_rfc_are_read_as_it_says() {
        let line =
            "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \u{feff}'su root' failed for \
                    lonvick on /dev/pts/8"
                .as_bytes();
        let record = parse(line).unwrap();
        assert_eq!((record.format, record.priority.facility_name()), (Format::Rfc5424, "auth"));
        let Time::Full(time) = record.time else { panic!("{:?}", record.time) };
        assert_eq!(text(line, Some(time)), Some("2003-10-11T22:14:15.003Z"));
        assert_eq!(text(line, record.host), Some("mymachine.example.com"));
        assert_eq!(text(line, record.app), Some("su"));
        assert_eq!((record.process, text(line, record.message_id)), (None, Some("ID47")));
        assert_eq!(record.structured, []);
        assert_eq!(text(line, Some(record.message)), Some("'su root' failed for lonvick on /dev/pts/8"));

        let line = b"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.";
        let record = parse(line).unwrap();
        assert_eq!((text(line, record.host), text(line, record.process)), (Some("192.0.2.1"), Some("8710")));
        assert_eq!(text(line, Some(record.message)), Some("%% It's time to make the do-nuts."));

        let line = "<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 \
                    iut=\"3\" eventSource=\"Application\" eventID=\"1011\"] \u{feff}An application event log entry..."
            .as_bytes();
        let record = parse(line).unwrap();
        let expected = [("iut", "3"), ("eventSource", "Application"), ("eventID", "1011")]
            .map(|(name, value)| ("exampleSDID@32473".to_owned(), name.to_owned(), value.to_owned()));
        assert_eq!(params(line, &record), expected);
        assert_eq!(text(line, Some(record.message)), Some("An application event log entry..."));

        let line = b"<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut=\"3\" \
                     eventSource=\"Application\" eventID=\"1011\"][examplePriority@32473 class=\"high\"]";
        let record = parse(line).unwrap();
        assert_eq!((record.structured.len(), params(line, &record).len()), (2, 4));
        assert_eq!(text(line, Some(record.message)), Some(""));
    }

    #[test]
    fn nil_values_are_nothing() {
        let line = b"<0>1 - - - - - -";
        let record = parse(line).unwrap();
        assert_eq!(record, Record { format: Format::Rfc5424, message: record.message, ..Record::default() });
        assert_eq!(record.message.of(line), b"");
        assert_eq!(parse(b"<0>1 - - - - - - ").unwrap().message.of(b"<0>1 - - - - - - "), b"");
    }

    #[test]
    fn escapes_in_values_are_undone_and_other_backslashes_kept() {
        let line = br#"<1>1 - - - - - [x a="\"" b="\\" c="\]" d="\n\x" e="" f="[\\\]\"" a="again"] m"#;
        let record = parse(line).unwrap();
        let expected = [
            ("a", "\""),
            ("b", "\\"),
            ("c", "]"),
            ("d", "\\n\\x"),
            ("e", ""),
            ("f", "[\\]\""),
            ("a", "again"),
        ]
        .map(|(name, value)| ("x".to_owned(), name.to_owned(), value.to_owned()));
        assert_eq!(params(line, &record), expected);
        assert_eq!(record.message.of(line), b"m");
    }

    #[test]
    fn what_the_rfc_forbids_is_a_fault_where_it_stands() {
        let long = |len: usize| "x".repeat(len);
        for (line, at) in [
            // Nanoseconds: the RFC's own bad example.
            ("<165>1 2003-08-24T05:14:15.000000003-07:00 h a p m - x".to_owned(), 7),
            ("<165>1 2003-08-24T05:14:15 h a p m - x".to_owned(), 7),
            ("<165>1  h a p m - x".to_owned(), 7),
            ("<165>1 -".to_owned(), 8),
            ("<165>1 - h".to_owned(), 9),
            ("<165>1 - h a p m".to_owned(), 15),
            ("<165>1 - h a p m ".to_owned(), 17),
            ("<165>1 - h a p m x".to_owned(), 17),
            ("<165>1 - h a p m -x".to_owned(), 18),
            ("<165>1 - h\tost a p m - x".to_owned(), 9),
            ("<165>1 - hö a p m - x".to_owned(), 9),
            (format!("<165>1 - {} a p m - x", long(256)), 9),
            (format!("<165>1 - h {} p m - x", long(49)), 11),
            (format!("<165>1 - h a {} m - x", long(129)), 13),
            (format!("<165>1 - h a p {} - x", long(33)), 15),
            ("<165>1 - h a p m [] x".to_owned(), 18),
            (format!("<165>1 - h a p m [{}]", long(33)), 18),
            ("<165>1 - h a p m [x".to_owned(), 19),
            ("<165>1 - h a p m [x ]".to_owned(), 20),
            ("<165>1 - h a p m [x y]".to_owned(), 21),
            ("<165>1 - h a p m [x y=]".to_owned(), 22),
            ("<165>1 - h a p m [x y=\"".to_owned(), 23),
            ("<165>1 - h a p m [x y=\"]\"]".to_owned(), 23),
            ("<165>1 - h a p m [x y=\"\\\"]".to_owned(), 25),
            ("<165>1 - h a p m [x y=\"1\"z=\"2\"]".to_owned(), 25),
            ("<165>1 - h a p m [x] [y]".to_owned(), usize::MAX),
            ("<165>1 - h a p m [x][x]".to_owned(), 17),
        ] {
            match parse(line.as_bytes()) {
                Ok(record) => {
                    // A space ends the structured data: the rest is the message.
                    assert_eq!((at, record.message.of(line.as_bytes())), (usize::MAX, &b"[y]"[..]), "{line}");
                }
                Err(fault) => assert_eq!(fault.at, at, "{line}: {fault}"),
            }
        }
        let not_utf8 = b"<165>1 - h a p m [x y=\"\xff\"]";
        assert_eq!(parse(not_utf8).unwrap_err(), Fault { expected: "a value in UTF-8", at: 23 });
    }

    #[test]
    fn fields_may_be_as_long_as_the_rfc_says() {
        let line = format!(
            "<1>1 - {} {} {} {} [{n} {n}=\"v\"] {}",
            "h".repeat(255),
            "a".repeat(48),
            "p".repeat(128),
            "m".repeat(32),
            "x".repeat(60_000),
            n = "n".repeat(32)
        );
        let record = parse(line.as_bytes()).unwrap();
        assert_eq!(record.message.of(line.as_bytes()).len(), 60_000);
    }

    #[test]
    fn a_message_may_hold_any_bytes() {
        let line = b"<1>1 - - - - - - \xff\x00\n\xfe";
        assert_eq!(parse(line).unwrap().message.of(line), b"\xff\x00\n\xfe");
    }
}
