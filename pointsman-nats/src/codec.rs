//! The client protocol of NATS, without sockets: bytes of a server to operations, and operations of a client to bytes.
//!
//! The decoder is incremental, and bounded: a line has at most [`LINE_MAX`] bytes (the line of `INFO`, [`INFO_MAX`]), and a
//! message at most as many as `INFO` allows. A line ends with CRLF, and so does a payload; anything else is an error, and the
//! decoder of a failed connection stays failed.
//!
//! Verbs are taken in capitals, as all servers write them. Fields may be separated by several spaces or tabs.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// The bytes of a line with its CRLF, but for `INFO`. With the CRLF behind a payload, a message takes no more than its
/// payload and 4 KiB.
pub(crate) const LINE_MAX: usize = 4 * 1024 - 2;
/// The bytes of the line of `INFO`, which names the servers of a cluster.
pub(crate) const INFO_MAX: usize = 64 * 1024;
/// The largest `max_payload` of a server: 64 MiB, as NATS itself has it. A server that says more is believed so much.
pub(crate) const PAYLOAD_MAX: usize = 64 * 1024 * 1024;
/// The least room for one read.
const READ_MIN: usize = 4 * 1024;
/// The room for one read that a buffer gets when it grows.
const READ_LEN: usize = 64 * 1024;
/// An empty buffer that has grown beyond this is given back.
const KEPT_LEN: usize = 512 * 1024;

/// The `INFO` of a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ServerInfo {
    #[serde(default)]
    pub(crate) server_name: String,
    #[serde(default)]
    pub(crate) version: String,
    /// The largest payload, headers included.
    pub(crate) max_payload: u64,
    /// Whether messages may have headers.
    #[serde(default)]
    pub(crate) headers: bool,
    #[serde(default)]
    pub(crate) tls_required: bool,
    #[serde(default)]
    pub(crate) tls_available: bool,
    /// Whether the server demands a certificate of the client.
    #[serde(default)]
    pub(crate) tls_verify: bool,
    /// The other servers of the cluster.
    #[serde(default)]
    pub(crate) connect_urls: Vec<String>,
}

/// An operation of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerOp<'a> {
    Info(Box<ServerInfo>),
    Message(Message<'a>),
    Ping,
    Pong,
    Ok,
    /// The text of `-ERR`, without its quotes.
    Error(&'a str),
}

/// A message that came for a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) subject: &'a str,
    pub(crate) sid: u64,
    pub(crate) reply: Option<&'a str>,
    /// The headers, with the line `NATS/1.0` before them; empty for `MSG`.
    pub(crate) headers: &'a [u8],
    pub(crate) payload: &'a [u8],
}

impl Message<'_> {
    /// The status in the first line of the headers: 503 if there is no subscriber.
    pub(crate) fn status(&self) -> Option<u16> {
        let rest = self.headers.strip_prefix(b"NATS/1.0 ")?;
        let digits = rest.get(..3)?;
        let ends = rest.get(3).is_none_or(|next| matches!(next, b' ' | b'\r'));
        let number = std::str::from_utf8(digits).ok()?;
        if ends && digits.iter().all(u8::is_ascii_digit) { number.parse().ok() } else { None }
    }
}

/// The bytes are not those of a NATS server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// A line without an end.
    LineTooLong { max: usize },
    /// CR and LF stand only together.
    LineEnd,
    /// A line begins with none of the verbs.
    Verb { line: String },
    /// A verb has other fields than it should have.
    Fields { line: String },
    /// The text is not UTF-8.
    Text { line: String },
    /// `INFO` is no JSON, or lacks `max_payload`.
    Info { why: String },
    /// The message is larger than `INFO` allows.
    TooLarge { size: usize, max: usize },
    /// The headers of a message are longer than all of it.
    Headers { headers: usize, total: usize },
    /// There is no CRLF behind a payload.
    PayloadEnd,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::LineTooLong { max } => write!(f, "a line of the server has more than {max} bytes"),
            DecodeError::LineEnd => f.write_str("a line of the server does not end with CRLF"),
            DecodeError::Verb { line } => {
                write!(
                    f,
                    "the server has sent `{line}`, which begins with no verb of NATS: is it a NATS server?"
                )
            }
            DecodeError::Fields { line } => {
                write!(f, "the server has sent `{line}`, which lacks a field, or has a wrong one")
            }
            DecodeError::Text { line } => write!(f, "the server has sent `{line}`, which is not UTF-8"),
            DecodeError::Info { why } => write!(f, "the INFO of the server cannot be read: {why}"),
            DecodeError::TooLarge { size, max } => {
                write!(f, "the server announces a message of {size} bytes, and its INFO allows {max}")
            }
            DecodeError::Headers { headers, total } => {
                write!(f, "the server announces {headers} bytes of headers in a message of {total}")
            }
            DecodeError::PayloadEnd => f.write_str("a payload of the server does not end with CRLF"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Debug for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where the parts of a message lie, counted from the beginning of its line.
#[derive(Debug, Clone)]
struct MessageHead {
    subject: Range<usize>,
    sid: u64,
    reply: Option<Range<usize>>,
    line_len: usize,
    header_len: usize,
    total_len: usize,
}

impl MessageHead {
    /// The bytes of the message, from its line to its CRLF.
    fn len(&self) -> usize {
        self.line_len + self.total_len + 2
    }
}

/// An operation, with its texts as places in the buffer.
#[derive(Debug)]
pub(crate) enum Decoded {
    Info(Box<ServerInfo>),
    /// See [`Decoder::message`].
    Message(MessageAt),
    Ping,
    Pong,
    Ok,
    /// See [`Decoder::text`].
    Error(Range<usize>),
}

/// The place of a message in the buffer of its decoder, until more is read.
#[derive(Debug)]
pub(crate) struct MessageAt {
    at: usize,
    head: MessageHead,
}

/// Reads the operations of a server from its bytes, however they are cut.
pub(crate) struct Decoder {
    /// All of it is initialised.
    buffer: Vec<u8>,
    /// The bytes from `start` to `end` are not decoded yet.
    start: usize,
    end: usize,
    /// So many of them hold no end of a line.
    scanned: usize,
    /// The message whose payload is not all there.
    pending: Option<MessageHead>,
    payload_max: usize,
    failure: Option<DecodeError>,
}

impl Decoder {
    /// Makes a decoder that takes no payload before an `INFO`.
    pub(crate) fn new() -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            scanned: 0,
            pending: None,
            payload_max: 0,
            failure: None,
        }
    }

    /// Room for bytes of the server. [`filled`](Self::filled) says how many were put there.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > KEPT_LEN {
                self.buffer = Vec::new();
            }
        }
        if self.buffer.len() - self.end < READ_MIN {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.buffer.len() - self.end < READ_MIN {
                // No less than a quarter more, so that a long payload is not copied for each read.
                self.buffer.resize(self.end + self.end / 4 + READ_LEN, 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// So many bytes were put into the [`space`](Self::space).
    pub(crate) fn filled(&mut self, count: usize) {
        self.end += count;
        assert!(self.end <= self.buffer.len(), "more bytes than there is room");
    }

    /// The bytes that are not decoded yet.
    pub(crate) fn buffered(&self) -> usize {
        self.end - self.start
    }

    /// Decodes the next operation. `None` if its bytes are not all there.
    pub(crate) fn advance(&mut self) -> Result<Option<Decoded>, DecodeError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let decoded = self.decode();
        if let Err(error) = &decoded {
            self.failure = Some(error.clone());
            (self.buffer, self.start, self.end) = (Vec::new(), 0, 0);
        }
        decoded
    }

    /// As [`advance`](Self::advance), with the texts.
    #[cfg_attr(not(test), allow(dead_code))] // for tests, and for the fuzz target
    pub(crate) fn next_op(&mut self) -> Result<Option<ServerOp<'_>>, DecodeError> {
        Ok(self.advance()?.map(|decoded| match decoded {
            Decoded::Info(info) => ServerOp::Info(info),
            Decoded::Message(at) => ServerOp::Message(self.message(&at)),
            Decoded::Ping => ServerOp::Ping,
            Decoded::Pong => ServerOp::Pong,
            Decoded::Ok => ServerOp::Ok,
            Decoded::Error(text) => ServerOp::Error(self.text(&text)),
        }))
    }

    /// The message that was decoded last.
    pub(crate) fn message(&self, message: &MessageAt) -> Message<'_> {
        let MessageAt { at, head } = message;
        let body = &self.buffer[at + head.line_len..at + head.line_len + head.total_len];
        let (headers, payload) = body.split_at(head.header_len);
        let text = |range: &Range<usize>| self.text(&(at + range.start..at + range.end));
        Message {
            subject: text(&head.subject),
            sid: head.sid,
            reply: head.reply.as_ref().map(text),
            headers,
            payload,
        }
    }

    /// A text that was decoded last.
    pub(crate) fn text(&self, range: &Range<usize>) -> &str {
        // It was looked at when the line was decoded.
        std::str::from_utf8(&self.buffer[range.clone()]).unwrap_or_default()
    }

    fn decode(&mut self) -> Result<Option<Decoded>, DecodeError> {
        if self.pending.is_none() {
            let Some(line_len) = self.line_len()? else { return Ok(None) };
            let at = self.start;
            self.scanned = 0;
            let line = &self.buffer[at..at + line_len - 2];
            match Line::read(line)? {
                Line::Message { subject, sid, reply, header_len, total_len } => {
                    if total_len > self.payload_max {
                        return Err(DecodeError::TooLarge { size: total_len, max: self.payload_max });
                    }
                    if header_len > total_len {
                        return Err(DecodeError::Headers { headers: header_len, total: total_len });
                    }
                    self.pending = Some(MessageHead { subject, sid, reply, line_len, header_len, total_len });
                }
                other => {
                    let decoded = match other {
                        Line::Info(info) => {
                            let said = usize::try_from(info.max_payload).unwrap_or(PAYLOAD_MAX);
                            self.payload_max = said.min(PAYLOAD_MAX);
                            Decoded::Info(info)
                        }
                        Line::Ping => Decoded::Ping,
                        Line::Pong => Decoded::Pong,
                        Line::Ok => Decoded::Ok,
                        Line::Error(text) => Decoded::Error(at + text.start..at + text.end),
                        Line::Message { .. } => unreachable!("handled above"),
                    };
                    self.start += line_len;
                    return Ok(Some(decoded));
                }
            }
        }
        let at = self.start;
        let Some(head) = self.pending.take_if(|head| self.end - at >= head.len()) else { return Ok(None) };
        let end = at + head.len();
        if &self.buffer[end - 2..end] != b"\r\n" {
            return Err(DecodeError::PayloadEnd);
        }
        self.start = end;
        Ok(Some(Decoded::Message(MessageAt { at, head })))
    }

    /// The length of the line that the bytes begin with, CRLF included. `None` if its end is not there.
    fn line_len(&mut self) -> Result<Option<usize>, DecodeError> {
        let bytes = &self.buffer[self.start..self.end];
        // The shortest line that is too long shows its verb.
        let max = if bytes.starts_with(b"INFO") { INFO_MAX } else { LINE_MAX };
        let found = bytes[self.scanned..].iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let (ends, seen) = match found {
            None => (false, bytes.len()),
            Some(offset) => {
                let at = self.scanned + offset;
                match (bytes[at], bytes.get(at + 1)) {
                    // However the bytes are cut, the error is the same.
                    _ if at >= max => return Err(DecodeError::LineTooLong { max }),
                    (b'\r', None) => (false, at + 1),
                    (b'\r', Some(b'\n')) => (true, at + 2),
                    _ => return Err(DecodeError::LineEnd),
                }
            }
        };
        if seen > max {
            return Err(DecodeError::LineTooLong { max });
        }
        if ends {
            return Ok(Some(seen));
        }
        // A CR may be the first half of an end.
        self.scanned = seen - usize::from(found.is_some());
        Ok(None)
    }
}

/// A line, with texts as places in it.
enum Line {
    Info(Box<ServerInfo>),
    Message {
        subject: Range<usize>,
        sid: u64,
        reply: Option<Range<usize>>,
        header_len: usize,
        total_len: usize,
    },
    Ping,
    Pong,
    Ok,
    Error(Range<usize>),
}

impl Line {
    fn read(line: &[u8]) -> Result<Self, DecodeError> {
        let verb_len = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
        let (verb, rest) = line.split_at(verb_len);
        let wrong = || DecodeError::Fields { line: shown(line) };
        let alone = |read: Self| if rest.is_empty() { Ok(read) } else { Err(wrong()) };
        match verb {
            b"MSG" => Self::message(line, verb_len, false),
            b"HMSG" => Self::message(line, verb_len, true),
            b"PING" => alone(Self::Ping),
            b"PONG" => alone(Self::Pong),
            b"+OK" => alone(Self::Ok),
            b"INFO" => match serde_json::from_slice(rest) {
                Ok(info) => Ok(Self::Info(info)),
                Err(error) => Err(DecodeError::Info { why: error.to_string() }),
            },
            b"-ERR" => {
                let text = std::str::from_utf8(rest).map_err(|_| DecodeError::Text { line: shown(line) })?;
                let trimmed = text.trim_matches([' ', '\t']);
                let bare =
                    trimmed.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(trimmed);
                let before = bare.as_ptr() as usize - line.as_ptr() as usize;
                Ok(Self::Error(before..before + bare.len()))
            }
            _ => Err(DecodeError::Verb { line: shown(line) }),
        }
    }

    /// `MSG subject sid [reply] size`, or `HMSG subject sid [reply] headers size`.
    fn message(line: &[u8], verb_len: usize, has_headers: bool) -> Result<Self, DecodeError> {
        let wrong = || DecodeError::Fields { line: shown(line) };
        let mut fields: [Range<usize>; 5] = Default::default();
        let (mut count, mut at) = (0, verb_len);
        while at < line.len() {
            if matches!(line[at], b' ' | b'\t') {
                at += 1;
                continue;
            }
            let len =
                line[at..].iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len() - at);
            *fields.get_mut(count).ok_or_else(wrong)? = at..at + len;
            count += 1;
            at += len;
        }
        let sizes = if has_headers { 2 } else { 1 };
        let reply = match count - sizes.min(count) {
            2 => None,
            3 => Some(fields[2].clone()),
            _ => return Err(wrong()),
        };
        let number = |field: &Range<usize>| number(&line[field.clone()]).ok_or_else(wrong);
        let size = |field: &Range<usize>| Ok(usize::try_from(number(field)?).unwrap_or(usize::MAX));
        let total_len = size(&fields[count - 1])?;
        let header_len = if has_headers { size(&fields[count - 2])? } else { 0 };
        for text in [Some(&fields[0]), reply.as_ref()].into_iter().flatten() {
            if std::str::from_utf8(&line[text.clone()]).is_err() {
                return Err(DecodeError::Text { line: shown(line) });
            }
        }
        Ok(Self::Message {
            subject: fields[0].clone(),
            sid: number(&fields[1])?,
            reply,
            header_len,
            total_len,
        })
    }
}

/// A number of digits alone.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// The beginning of a line, as an error shows it.
fn shown(line: &[u8]) -> String {
    let part = &line[..line.len().min(60)];
    let dots = if part.len() < line.len() { "…" } else { "" };
    format!("{}{dots}", part.escape_ascii())
}

/// A subject, or a pattern of subjects: tokens with dots between them, without spaces and control characters.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Subject(Box<str>);

impl Subject {
    /// Returns `None` for a text that is no subject.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let is_token =
            |token: &str| !token.is_empty() && !token.chars().any(|c| c.is_whitespace() || c.is_control());
        (text.len() <= 1024 && text.split('.').all(is_token)).then(|| Self(text.into()))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// The `CONNECT` of a client.
#[derive(Clone, Serialize)] // no `Debug`, which would show the password
pub(crate) struct Connect<'a> {
    /// Whether the server confirms each operation.
    pub(crate) verbose: bool,
    pub(crate) pedantic: bool,
    /// Whether own messages come back.
    pub(crate) echo: bool,
    pub(crate) headers: bool,
    /// Whether a question without a subscriber is answered by the server.
    pub(crate) no_responders: bool,
    pub(crate) tls_required: bool,
    /// 1: the server may send `INFO` again.
    pub(crate) protocol: u8,
    pub(crate) name: &'a str,
    pub(crate) lang: &'a str,
    pub(crate) version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pass: Option<&'a str>,
}

pub(crate) const PING: &[u8] = b"PING\r\n";
pub(crate) const PONG: &[u8] = b"PONG\r\n";

/// Writes `CONNECT`.
pub(crate) fn put_connect(out: &mut Vec<u8>, connect: &Connect<'_>) {
    out.extend_from_slice(b"CONNECT ");
    // Texts, numbers and flags always make JSON, and a vector takes all of it.
    let written = serde_json::to_writer(&mut *out, connect);
    debug_assert!(written.is_ok());
    out.extend_from_slice(b"\r\n");
}

/// Writes `SUB`: messages for the pattern come with this number.
pub(crate) fn put_sub(out: &mut Vec<u8>, pattern: &Subject, sid: u64) {
    put(out, format_args!("SUB {pattern} {sid}\r\n"));
}

/// Writes `UNSUB`.
pub(crate) fn put_unsub(out: &mut Vec<u8>, sid: u64) {
    put(out, format_args!("UNSUB {sid}\r\n"));
}

/// Writes the line of `PUB`. The payload and CRLF follow it.
pub(crate) fn put_pub(out: &mut Vec<u8>, subject: &Subject, reply: Option<&Subject>, len: usize) {
    match reply {
        Some(reply) => put(out, format_args!("PUB {subject} {reply} {len}\r\n")),
        None => put(out, format_args!("PUB {subject} {len}\r\n")),
    }
}

/// Writes the line of `HPUB`. The headers, the payload and CRLF follow it.
pub(crate) fn put_hpub(
    out: &mut Vec<u8>,
    subject: &Subject,
    reply: Option<&Subject>,
    headers: usize,
    total: usize,
) {
    match reply {
        Some(reply) => put(out, format_args!("HPUB {subject} {reply} {headers} {total}\r\n")),
        None => put(out, format_args!("HPUB {subject} {headers} {total}\r\n")),
    }
}

fn put(out: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    use std::io::Write;
    // A vector takes all of it.
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const INFO: &str = "INFO {\"server_id\":\"X\",\"server_name\":\"s\",\"version\":\"2.9.10\",\"proto\":1,\
        \"host\":\"localhost\",\"port\":4222,\"headers\":true,\"max_payload\":1000,\"client_id\":4} \r\n";

    /// The content of a stream: each operation as text, and the error at its end.
    fn read(pieces: &[&[u8]]) -> (Vec<String>, Option<DecodeError>) {
        let mut decoder = Decoder::new();
        let mut ops = Vec::new();
        for piece in pieces {
            for chunk in piece.chunks(READ_MIN) {
                decoder.space()[..chunk.len()].copy_from_slice(chunk);
                decoder.filled(chunk.len());
                loop {
                    match decoder.next_op() {
                        Ok(Some(op)) => ops.push(format!("{op:?}")),
                        Ok(None) => break,
                        Err(error) => {
                            assert_eq!(decoder.next_op().unwrap_err(), error, "it stays failed");
                            assert_eq!((decoder.buffered(), decoder.buffer.len()), (0, 0));
                            return (ops, Some(error));
                        }
                    }
                }
                assert!(decoder.buffered() <= INFO_MAX.max(decoder.payload_max + 4096), "more is kept");
            }
        }
        (ops, None)
    }

    /// The error of a stream behind an `INFO` that allows 1000 bytes, whole and byte by byte.
    fn error_behind_info(stream: &[u8]) -> Option<DecodeError> {
        let whole = [INFO.as_bytes(), stream].concat();
        let read_whole = read(&[&whole]);
        assert_eq!(read(&whole.chunks(1).collect::<Vec<_>>()), read_whole, "byte by byte");
        read_whole.1
    }

    fn ops_behind_info(stream: &[u8]) -> Vec<String> {
        let (mut ops, error) = read(&[&[INFO.as_bytes(), stream].concat()]);
        assert_eq!(error, None);
        ops.remove(0);
        ops
    }

    #[test]
    fn an_info_is_read_with_a_host_that_is_a_name_and_fields_that_are_unknown() {
        let mut decoder = Decoder::new();
        decoder.space()[..INFO.len()].copy_from_slice(INFO.as_bytes());
        decoder.filled(INFO.len());
        let Ok(Some(ServerOp::Info(info))) = decoder.next_op() else { panic!("an INFO") };
        assert_eq!((info.server_name.as_str(), info.version.as_str()), ("s", "2.9.10"));
        assert_eq!((info.max_payload, info.headers, info.tls_required), (1000, true, false));
        assert!(info.connect_urls.is_empty());
    }

    #[test]
    fn each_operation_is_read() {
        let stream = b"PING\r\nPONG\r\n+OK\r\n-ERR 'Stale Connection'\r\nMSG a.b 7 3\r\nx\r\n\r\n\
            MSG\ta  8   r.s\t0\r\n\r\nHMSG a 9 16 18\r\nNATS/1.0 503\r\n\r\nhi\r\n";
        let ops = ops_behind_info(stream);
        assert_eq!(ops[..3], ["Ping", "Pong", "Ok"]);
        assert_eq!(ops[3], "Error(\"Stale Connection\")");
        let message = |subject, sid, reply, headers: &[u8], payload: &[u8]| {
            format!("{:?}", ServerOp::Message(Message { subject, sid, reply, headers, payload }))
        };
        assert_eq!(ops[4], message("a.b", 7, None, b"", b"x\r\n"));
        assert_eq!(ops[5], message("a", 8, Some("r.s"), b"", b""));
        assert_eq!(ops[6], message("a", 9, None, b"NATS/1.0 503\r\n\r\n", b"hi"));
    }

    #[test]
    fn a_status_is_three_digits_behind_the_version() {
        let status = |headers: &str| {
            let headers = headers.as_bytes();
            Message { subject: "a", sid: 1, reply: None, headers, payload: b"" }.status()
        };
        assert_eq!(status("NATS/1.0 503\r\n\r\n"), Some(503));
        assert_eq!(status("NATS/1.0 503 No Responders\r\n\r\n"), Some(503));
        for other in ["", "NATS/1.0\r\nA: b\r\n\r\n", "NATS/1.0 5033\r\n", "NATS/1.0 +03\r\n", "NATS/1.0 50"]
        {
            assert_eq!(status(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_line_ends_with_both_characters_and_nothing_else_does() {
        for stream in ["PING\n", "PING\rPONG\r\n", "PING\r\r\n", "\n", "PI\nNG\r\n"] {
            assert_eq!(error_behind_info(stream.as_bytes()), Some(DecodeError::LineEnd), "{stream:?}");
        }
        assert_eq!(error_behind_info(b"PING\r"), None);
    }

    #[test]
    fn an_unknown_verb_is_an_error_that_shows_the_line() {
        for stream in ["PINGPONG\r\n", "ping\r\n", "\r\n", " PING\r\n", "HTTP/1.1 400 Bad Request\r\n"] {
            let error = error_behind_info(stream.as_bytes()).expect("it is no verb");
            let line = stream.trim_end_matches("\r\n").to_owned();
            assert_eq!(error, DecodeError::Verb { line });
        }
    }

    #[test]
    fn wrong_fields_are_an_error() {
        for stream in [
            "MSG\r\n",
            "MSG a\r\n",
            "MSG a 1\r\n",
            "MSG a 1 r 3 4\r\n",
            "MSG a x 3\r\n",
            "MSG a 1 -3\r\n",
            "MSG a 1 +3\r\n",
            "MSG a 1 3x\r\n",
            "MSG a 99999999999999999999 3\r\n",
            "HMSG a 1 3\r\n",
            "HMSG a 1 r 3 4 5\r\n",
            "PING 1\r\n",
            "PONG \r\n",
            "+OK yes\r\n",
        ] {
            let error = error_behind_info(stream.as_bytes());
            assert!(matches!(error, Some(DecodeError::Fields { .. })), "{stream:?}: {error:?}");
        }
    }

    #[test]
    fn texts_are_utf_8() {
        for stream in [b"MSG \xff 1 0\r\n\r\n".as_slice(), b"MSG a 1 \xff 0\r\n\r\n", b"-ERR '\xff'\r\n"] {
            let error = error_behind_info(stream);
            assert!(matches!(error, Some(DecodeError::Text { .. })), "{error:?}");
        }
    }

    #[test]
    fn a_message_may_have_as_many_bytes_as_the_info_says_and_no_more() {
        let message =
            |len: usize| [format!("MSG a 1 {len}\r\n").as_bytes(), &vec![b'x'; len], b"\r\n"].concat();
        assert_eq!(ops_behind_info(&message(1000)).len(), 1);
        assert_eq!(error_behind_info(&message(1001)), Some(DecodeError::TooLarge { size: 1001, max: 1000 }));
        // It is refused before its payload comes.
        let error = error_behind_info(b"MSG a 1 18446744073709551615\r\n");
        assert_eq!(error, Some(DecodeError::TooLarge { size: usize::MAX, max: 1000 }));
        // Before an INFO there is no room at all.
        assert_eq!(read(&[b"MSG a 1 1\r\n"]).1, Some(DecodeError::TooLarge { size: 1, max: 0 }));
    }

    #[test]
    fn a_server_that_allows_anything_is_believed_64_mib() {
        let info = b"INFO {\"max_payload\":18446744073709551615}\r\n";
        let stream = [info.as_slice(), format!("MSG a 1 {}\r\n", PAYLOAD_MAX + 1).as_bytes()].concat();
        assert_eq!(
            read(&[&stream]).1,
            Some(DecodeError::TooLarge { size: PAYLOAD_MAX + 1, max: PAYLOAD_MAX })
        );
    }

    #[test]
    fn headers_are_part_of_the_whole() {
        assert_eq!(ops_behind_info(b"HMSG a 1 2 2\r\nab\r\n").len(), 1);
        let error = error_behind_info(b"HMSG a 1 3 2\r\nabc\r\n");
        assert_eq!(error, Some(DecodeError::Headers { headers: 3, total: 2 }));
    }

    #[test]
    fn a_payload_ends_with_both_characters() {
        for end in ["XX", "\n\r", "\rX"] {
            let stream = format!("MSG a 1 3\r\nabc{end}PING\r\n");
            assert_eq!(error_behind_info(stream.as_bytes()), Some(DecodeError::PayloadEnd));
        }
    }

    #[test]
    fn a_line_may_be_so_long_and_no_longer() {
        let error_line = |len: usize| format!("-ERR '{}'\r\n", "x".repeat(len - 9)).into_bytes();
        assert_eq!(ops_behind_info(&error_line(LINE_MAX)).len(), 1);
        let too_long = Some(DecodeError::LineTooLong { max: LINE_MAX });
        assert_eq!(error_behind_info(&error_line(LINE_MAX + 1)), too_long);
        for end in ["", "\n", "\r\n", "\rx"] {
            for more in 0..3 {
                let stream = format!("{}{end}", "x".repeat(LINE_MAX + more));
                let error = error_behind_info(stream.as_bytes());
                assert!(more == 0 || error == too_long, "{more} {end:?}: {error:?}");
            }
        }
    }

    #[test]
    fn an_info_has_a_bound_of_its_own() {
        let info = |len: usize| {
            let frame = "INFO {\"max_payload\":1,\"nonce\":\"\"}\r\n".len();
            format!("INFO {{\"max_payload\":1,\"nonce\":\"{}\"}}\r\n", "n".repeat(len - frame)).into_bytes()
        };
        assert_eq!(read(&[&info(INFO_MAX)]).0.len(), 1);
        for len in [INFO_MAX + 1, 1 << 20] {
            assert_eq!(read(&[&info(len)]).1, Some(DecodeError::LineTooLong { max: INFO_MAX }));
        }
    }

    #[test]
    fn an_info_that_is_no_json_or_lacks_the_size_is_an_error() {
        for info in [
            "INFO\r\n",
            "INFO x\r\n",
            "INFO {}\r\n",
            "INFO {\"max_payload\":-1}\r\n",
            "INFO {\"max_payload\":1} x\r\n",
        ] {
            let error = read(&[info.as_bytes()]).1;
            assert!(matches!(error, Some(DecodeError::Info { .. })), "{info:?}: {error:?}");
        }
        let deep = format!("INFO {}\r\n", "[".repeat(60_000));
        assert!(matches!(read(&[deep.as_bytes()]).1, Some(DecodeError::Info { .. })));
    }

    #[test]
    fn an_info_may_come_again_and_change_the_size() {
        let stream = b"INFO {\"max_payload\":2}\r\nMSG a 1 3\r\nabc\r\n";
        assert_eq!(error_behind_info(stream), Some(DecodeError::TooLarge { size: 3, max: 2 }));
    }

    #[test]
    fn an_error_shows_no_more_than_the_beginning_of_a_line() {
        let error = error_behind_info(format!("{}\x01\r\n", "x".repeat(1000)).as_bytes()).expect("no verb");
        let text = error.to_string();
        assert!(text.len() < 200 && text.contains('…'), "{text}");
        let error = error_behind_info(b"a\x1b[31m\r\n").expect("no verb").to_string();
        assert!(error.contains("`a\\x1b[31m`"), "{error}");
    }

    #[test]
    fn a_subject_has_tokens_and_no_spaces() {
        for good in ["a", "a.b.*", "a.>", "shop.d.n1.n2"] {
            assert_eq!(Subject::new(good).expect(good).to_string(), good);
        }
        for bad in ["", ".", "a.", ".a", "a..b", "a b", "a\r\nPUB b 0", "a\tb", "a\0", &"x".repeat(1025)] {
            assert_eq!(Subject::new(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn operations_of_a_client_are_written_as_the_protocol_has_them() {
        let subject = |text| Subject::new(text).expect("a subject");
        let mut out = Vec::new();
        put_sub(&mut out, &subject("a.*"), 3);
        put_unsub(&mut out, 3);
        put_pub(&mut out, &subject("a.b"), None, 12);
        put_pub(&mut out, &subject("a.b"), Some(&subject("r")), 0);
        put_hpub(&mut out, &subject("a"), None, 12, 30);
        put_hpub(&mut out, &subject("a"), Some(&subject("r")), 12, 30);
        let expected =
            "SUB a.* 3\r\nUNSUB 3\r\nPUB a.b 12\r\nPUB a.b r 0\r\nHPUB a 12 30\r\nHPUB a r 12 30\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        let connect = Connect {
            verbose: false,
            pedantic: false,
            echo: false,
            headers: true,
            no_responders: true,
            tls_required: false,
            protocol: 1,
            name: "a \"b\"\r\n",
            lang: "rust",
            version: "0",
            user: Some("u"),
            pass: None,
        };
        put_connect(&mut out, &connect);
        let text = String::from_utf8(out).unwrap();
        let json = text.strip_prefix("CONNECT ").unwrap().strip_suffix("\r\n").unwrap();
        assert!(!json.contains(['\r', '\n']));
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!((value["name"].as_str(), value["user"].as_str()), (Some("a \"b\"\r\n"), Some("u")));
        assert_eq!((value["no_responders"].as_bool(), value.get("pass")), (Some(true), None));
    }

    #[derive(Debug, Clone)]
    enum Sent {
        Info(u32),
        Message {
            subject: String,
            sid: u64,
            reply: Option<String>,
            headers: Option<Vec<u8>>,
            payload: Vec<u8>,
        },
        Ping,
        Pong,
        Ok,
        Error(String),
    }

    fn sent() -> impl Strategy<Value = Sent> {
        let body = || vec(prop_oneof![4 => any::<u8>(), 1 => Just(b'\r'), 1 => Just(b'\n')], 0..300);
        let message = ("[a-z]{1,4}(\\.[a-zé]{1,4}){0,3}", any::<u64>(), prop::option::of("[a-z]{1,5}"));
        let message = (message, prop::option::of(body()), body());
        prop_oneof![
            1 => (600..2000u32).prop_map(Sent::Info),
            6 => message.prop_map(|((subject, sid, reply), headers, payload)| Sent::Message { subject, sid, reply, headers, payload }),
            1 => Just(Sent::Ping),
            1 => Just(Sent::Pong),
            1 => Just(Sent::Ok),
            1 => "[a-zA-Z \"]{0,20}".prop_map(|text| Sent::Error(text.trim().to_owned())),
        ]
    }

    fn print(sent: &Sent, out: &mut Vec<u8>) -> String {
        let expected = match sent {
            Sent::Info(max) => {
                put(out, format_args!("INFO {{\"max_payload\":{max}}}\r\n"));
                let info: ServerInfo = serde_json::from_str(&format!("{{\"max_payload\":{max}}}")).unwrap();
                ServerOp::Info(Box::new(info))
            }
            Sent::Message { subject, sid, reply, headers, payload } => {
                let reply_field = reply.as_ref().map_or(String::new(), |reply| format!(" {reply}"));
                match headers {
                    Some(headers) => {
                        let total = headers.len() + payload.len();
                        put(
                            out,
                            format_args!("HMSG {subject} {sid}{reply_field} {} {total}\r\n", headers.len()),
                        );
                        out.extend_from_slice(headers);
                    }
                    None => put(out, format_args!("MSG {subject} {sid}{reply_field} {}\r\n", payload.len())),
                }
                out.extend_from_slice(payload);
                out.extend_from_slice(b"\r\n");
                let headers = headers.as_deref().unwrap_or_default();
                ServerOp::Message(Message { subject, sid: *sid, reply: reply.as_deref(), headers, payload })
            }
            Sent::Ping => {
                out.extend_from_slice(PING);
                ServerOp::Ping
            }
            Sent::Pong => {
                out.extend_from_slice(PONG);
                ServerOp::Pong
            }
            Sent::Ok => {
                out.extend_from_slice(b"+OK\r\n");
                ServerOp::Ok
            }
            Sent::Error(text) => {
                put(out, format_args!("-ERR '{text}'\r\n"));
                ServerOp::Error(text)
            }
        };
        format!("{expected:?}")
    }

    /// The stream in pieces of these lengths, and the rest.
    fn cut<'a>(mut stream: &'a [u8], lens: &[usize]) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        for len in lens {
            let (piece, rest) = stream.split_at((*len).min(stream.len()));
            pieces.push(piece);
            stream = rest;
        }
        pieces.push(stream);
        pieces
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

        #[test]
        fn operations_are_read_as_they_were_written_however_they_are_cut(
            sent in vec(sent(), 0..30),
            lens in vec(0..40usize, 0..400),
        ) {
            let mut stream = b"INFO {\"max_payload\":600}\r\n".to_vec();
            let expected: Vec<String> = sent.iter().map(|op| print(op, &mut stream)).collect();
            let (ops, error) = read(&cut(&stream, &lens));
            prop_assert_eq!(error, None);
            prop_assert_eq!(&ops[1..], &expected[..]);
        }

        /// A byte that was changed, taken out or put in makes another stream, whose operations and error do not depend on cuts.
        #[test]
        fn a_damaged_stream_gives_the_same_however_it_is_cut(
            sent in vec(sent(), 1..8),
            lens in vec(0..40usize, 0..100),
            (place, byte, kind) in (any::<prop::sample::Index>(), any::<u8>(), 0..3),
        ) {
            let mut stream = b"INFO {\"max_payload\":600}\r\n".to_vec();
            sent.iter().for_each(|op| drop(print(op, &mut stream)));
            let at = place.index(stream.len());
            match kind {
                0 => stream[at] = byte,
                1 => stream.insert(at, byte),
                _ => drop(stream.remove(at)),
            }
            let whole = read(&[&stream]);
            prop_assert_eq!(&read(&cut(&stream, &lens)), &whole);
            prop_assert_eq!(&read(&stream.chunks(1).collect::<Vec<_>>()), &whole);
        }
    }
}
