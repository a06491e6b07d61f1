//! RESP2 without I/O: bytes in, requests out; replies in, bytes out.
//!
//! # Reading
//! [`RequestReader`] takes bytes as they arrive, in pieces of any size, and hands out one request after
//! the other. A request is a list of arguments, in one of two forms:
//! - an array of bulk strings (`*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`), what client libraries send;
//! - an inline line (`GET "a key"\n`), what a person types into a terminal; [quoting](split_line) as in
//!   Redis.
//!
//! 1. *No byte is looked at twice.* The reader remembers the argument it stands in and how far it has
//!    searched for a line's end, so a bulk string that trickles in costs its length, not its square.
//! 2. *The pieces do not matter.* However a byte stream is cut, the same requests and the same error
//!    come out.
//! 3. *Arguments are borrowed.* [`Arguments`] points into the read buffer (or, for an inline request,
//!    into a small side buffer that holds the unquoted text). What outlives the request is copied by
//!    whoever wants it.
//! 4. *A promise takes no memory.* A header that announces a million arguments or half a gigabyte
//!    reserves nothing; memory follows the bytes that came. Announcements beyond [`Limits`] fail at the
//!    header.
//!
//! After a [`ProtocolError`] there is no telling where the next request starts: the reader stays
//! failed, and its owner sends the error and closes the connection, as Redis does.
//!
//! # As Redis 7.0 does it
//! Any byte may follow the `\r` of a header, and any two bytes end a bulk string. Requests without
//! arguments (`*0`, `*-1`, a blank line) are skipped. Numbers are strict: no sign `+`, no leading zero,
//! no blanks. A wrong first byte of a bulk header is reported once its line is complete.
//!
//! # Not as Redis 7.0 does it
//! - An inline line, and the digits of a header, may have 64 KiB, however they arrive. Redis forgives a
//!   longer line if its end is already there when it first looks.
//! - The array length is limited to 1,048,576, as in Redis up to 6.2 and as its documentation says; 7.0
//!   accepts any `int`.
//! - A zero byte is a byte like any other in inline lines and headers; Redis stops reading there and
//!   never answers.
//! - A request beyond [`Limits::request_bytes_max`] gets an error; Redis closes without a word.
//!
//! # Writing
//! The `put_*` functions append one reply, or its header, to a byte vector.

use std::fmt;
use std::ops::Range;

/// The longest inline line and the longest header, in bytes.
const LINE_LEN_MAX: usize = 64 * 1024;

/// What each argument of a request in progress is charged on top of its bytes.
const ARGUMENT_OVERHEAD: usize = size_of::<Range<usize>>();

/// A read buffer that is larger than this is given back once it is empty.
const KEPT_CAPACITY: usize = 64 * 1024;

/// Bounds on what a client may send.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest bulk string, in bytes (Redis: `proto-max-bulk-len`).
    pub bulk_len_max: usize,
    /// The most arguments in one request.
    pub argument_count_max: usize,
    /// The most memory for one request, in bytes: its arguments, and 16 for each of them (Redis:
    /// `client-query-buffer-limit`).
    pub request_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bulk_len_max: 512 << 20, argument_count_max: 1024 * 1024, request_bytes_max: 1 << 30 }
    }
}

/// Why a byte stream is not RESP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The number behind `*` is none, or above [`Limits::argument_count_max`].
    InvalidMultibulkLength,
    /// The number behind `$` is none, or above [`Limits::bulk_len_max`].
    InvalidBulkLength,
    /// A bulk string was due, and its header began with this byte.
    ExpectedBulk(u8),
    /// More than 64 KiB behind a `*`, and no line end.
    TooBigMultibulkCount,
    /// More than 64 KiB behind a `$`, and no line end.
    TooBigBulkCount,
    /// An inline line of more than 64 KiB.
    TooBigInline,
    /// A quote that does not close, or closes in the middle of an argument.
    UnbalancedQuotes,
    /// The request announced more than [`Limits::request_bytes_max`].
    TooBigRequest,
}

/// Cuts a byte stream into requests. See the [module docs](self).
#[derive(Debug)]
pub struct RequestReader {
    limits: Limits,
    /// What has arrived. Everything before `start` is done with.
    buffer: Vec<u8>,
    /// Where the current request begins. All positions below count from here, so that moving the
    /// buffer's content to its front leaves them alone.
    start: usize,
    /// What is expected at `at`.
    stage: Stage,
    at: usize,
    /// No line end lies between `at` and here.
    searched: usize,
    /// Arguments that the current array still owes.
    owed: usize,
    /// What the current request is charged against [`Limits::request_bytes_max`].
    charged: usize,
    /// The arguments so far: places in the buffer, or in `line` for an inline request.
    arguments: Vec<Range<usize>>,
    /// The unquoted arguments of an inline request, one behind the other.
    line: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The first byte of a request.
    Start,
    /// An inline line.
    Inline,
    /// `*` and the number of arguments.
    ArrayHeader,
    /// `$` and the length of a bulk string.
    BulkHeader,
    /// A bulk string of this length and two bytes more.
    Bulk(usize),
    /// A request was handed out; its bytes go with the next call.
    Done,
    Failed(ProtocolError),
}

/// The arguments of one request, the command's name first. Never empty.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    places: &'a [Range<usize>],
}

impl RequestReader {
    /// A reader at the start of a connection.
    pub fn new(limits: Limits) -> RequestReader {
        RequestReader {
            limits,
            buffer: Vec::new(),
            start: 0,
            stage: Stage::Start,
            at: 0,
            searched: 0,
            owed: 0,
            charged: 0,
            arguments: Vec::new(),
            line: Vec::new(),
        }
    }

    /// Adds bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if matches!(self.stage, Stage::Failed(_)) {
            return;
        }
        if self.stage == Stage::Done {
            self.release();
        }
        // The move copies no more than it frees, so every byte is moved at most once on average.
        let unread = self.buffer.len() - self.start;
        if self.start > 0 && unread <= self.start {
            self.buffer.copy_within(self.start.., 0);
            self.buffer.truncate(unread);
            self.start = 0;
            if unread == 0 && self.buffer.capacity() > KEPT_CAPACITY {
                self.buffer = Vec::new();
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that have arrived and were not handed out yet. A connection that sees this grow stops
    /// reading from its socket until it has caught up.
    pub fn buffered(&self) -> usize {
        self.buffer.len() - self.start - if self.stage == Stage::Done { self.at } else { 0 }
    }

    /// The next request, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`ProtocolError`] when the stream is broken, and from then on always.
    pub fn next_request(&mut self) -> Result<Option<Arguments<'_>>, ProtocolError> {
        let complete = self.advance().inspect_err(|&error| self.fail(error))?;
        if !complete {
            return Ok(None);
        }
        let inline = self.stage == Stage::Inline;
        self.stage = Stage::Done;
        let bytes = if inline { &self.line[..] } else { &self.buffer[self.start..] };
        Ok(Some(Arguments { bytes, places: &self.arguments }))
    }

    /// Reads on until a request is complete (true) or the bytes end (false).
    fn advance(&mut self) -> Result<bool, ProtocolError> {
        loop {
            match self.stage {
                Stage::Failed(error) => return Err(error),
                Stage::Done => self.release(),
                Stage::Start => match self.unread().first() {
                    None => return Ok(false),
                    Some(b'*') => self.stage = Stage::ArrayHeader,
                    Some(_) => self.stage = Stage::Inline,
                },
                Stage::Inline => {
                    let Some(line) = self.find_line(b'\n', ProtocolError::TooBigInline)? else {
                        return Ok(false);
                    };
                    self.step_over(line.end + 1);
                    let line = &self.buffer[self.start..][line];
                    split_line(
                        line.strip_suffix(b"\r").unwrap_or(line),
                        &mut self.line,
                        &mut self.arguments,
                    )?;
                    if self.arguments.len() > self.limits.argument_count_max {
                        return Err(ProtocolError::TooBigInline);
                    }
                    if !self.arguments.is_empty() {
                        return Ok(true);
                    }
                    self.stage = Stage::Done;
                }
                Stage::ArrayHeader => {
                    let Some(header) = self.find_header(ProtocolError::TooBigMultibulkCount)? else {
                        return Ok(false);
                    };
                    self.step_over(header.end + 2);
                    let digits = &self.buffer[self.start..][header][1..];
                    let count = parse_integer(digits).ok_or(ProtocolError::InvalidMultibulkLength)?;
                    self.owed = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
                    if self.owed > self.limits.argument_count_max {
                        return Err(ProtocolError::InvalidMultibulkLength);
                    }
                    self.stage = if self.owed == 0 { Stage::Done } else { Stage::BulkHeader };
                }
                Stage::BulkHeader => {
                    let Some(header) = self.find_header(ProtocolError::TooBigBulkCount)? else {
                        return Ok(false);
                    };
                    self.step_over(header.end + 2);
                    let header = &self.buffer[self.start..][header];
                    match header.first() {
                        Some(b'$') => {}
                        // An empty line: what stands there is its end.
                        other => return Err(ProtocolError::ExpectedBulk(*other.unwrap_or(&b'\r'))),
                    }
                    let len = parse_integer(&header[1..])
                        .and_then(|len| usize::try_from(len).ok())
                        .filter(|&len| len <= self.limits.bulk_len_max)
                        .ok_or(ProtocolError::InvalidBulkLength)?;
                    self.charged = self.charged.saturating_add(len + ARGUMENT_OVERHEAD);
                    if self.charged > self.limits.request_bytes_max {
                        return Err(ProtocolError::TooBigRequest);
                    }
                    self.stage = Stage::Bulk(len);
                }
                Stage::Bulk(len) => {
                    if self.unread().len() < len + 2 {
                        return Ok(false);
                    }
                    self.arguments.push(self.at..self.at + len);
                    self.step_over(self.at + len + 2);
                    self.owed -= 1;
                    if self.owed == 0 {
                        return Ok(true);
                    }
                    self.stage = Stage::BulkHeader;
                }
            }
        }
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.start + self.at..]
    }

    fn step_over(&mut self, upto: usize) {
        self.at = upto;
        self.searched = upto;
    }

    /// The place of the line at `at`, without `end`, if `end` has come. `too_long` if it cannot come
    /// within [`LINE_LEN_MAX`] any more.
    fn find_line(&mut self, end: u8, too_long: ProtocolError) -> Result<Option<Range<usize>>, ProtocolError> {
        let found = self.buffer[self.start + self.searched..].iter().position(|&byte| byte == end);
        let upto = match found {
            Some(ahead) => self.searched + ahead,
            None => self.buffer.len() - self.start,
        };
        self.searched = upto;
        if upto - self.at > LINE_LEN_MAX {
            return Err(too_long);
        }
        Ok(found.map(|_| self.at..upto))
    }

    /// Like [`RequestReader::find_line`], for a header: ended by `\r` and one byte more.
    fn find_header(&mut self, too_long: ProtocolError) -> Result<Option<Range<usize>>, ProtocolError> {
        let header = self.find_line(b'\r', too_long)?;
        Ok(header.filter(|header| self.start + header.end + 1 < self.buffer.len()))
    }

    /// Forgets the request that was handed out (or skipped).
    fn release(&mut self) {
        self.start += self.at;
        self.step_over(0);
        self.charged = 0;
        self.arguments.clear();
        self.line.clear();
        // A request with a million arguments must not cost the connection their places for ever.
        self.arguments.shrink_to(KEPT_CAPACITY / ARGUMENT_OVERHEAD);
        self.stage = Stage::Start;
    }

    /// Stays failed, and holds no memory meanwhile.
    fn fail(&mut self, error: ProtocolError) {
        *self = RequestReader { stage: Stage::Failed(error), ..RequestReader::new(self.limits) };
    }
}

impl<'a> Arguments<'a> {
    /// How many there are, the name included.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The argument at `index`; 0 is the command's name.
    ///
    /// # Panics
    /// If `index` is not below [`Arguments::len`].
    pub fn at(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.places[index].clone()]
    }

    /// The arguments from index `first` on.
    pub fn from(&self, first: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.places[first.min(self.places.len())..].iter().map(move |place| &bytes[place.clone()])
    }
}

impl fmt::Debug for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.from(0).map(<[u8]>::escape_ascii)).finish()
    }
}

impl ProtocolError {
    /// Appends the error reply that Redis sends before it closes.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            // The offending byte goes out as it came, which need not be UTF-8.
            ProtocolError::ExpectedBulk(got) => {
                put_error(out, &[b"ERR Protocol error: expected '$', got '", &[*got][..], b"'"].concat());
            }
            other => put_error(out, format!("ERR Protocol error: {other}").as_bytes()),
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProtocolError::InvalidMultibulkLength => "invalid multibulk length",
            ProtocolError::InvalidBulkLength => "invalid bulk length",
            ProtocolError::ExpectedBulk(got) => {
                return write!(f, "expected '$', got '{}'", got.escape_ascii());
            }
            ProtocolError::TooBigMultibulkCount => "too big mbulk count string",
            ProtocolError::TooBigBulkCount => "too big bulk count string",
            ProtocolError::TooBigInline => "too big inline request",
            ProtocolError::UnbalancedQuotes => "unbalanced quotes in request",
            ProtocolError::TooBigRequest => "too big request",
        })
    }
}

impl std::error::Error for ProtocolError {}

/// Splits an inline line into arguments, as Redis' `sdssplitargs` does: blanks separate; `"…"` knows
/// `\n \r \t \a \b`, `\xHH` and `\` before any other byte; `'…'` knows `\'` only. Quotes may open in the
/// middle of an argument, but behind a closing one there must be a blank or the end. Vertical tab and
/// form feed are skipped before an argument, but do not end one.
fn split_line(line: &[u8], text: &mut Vec<u8>, places: &mut Vec<Range<usize>>) -> Result<(), ProtocolError> {
    let blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    let hex = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let mut rest = line;
    loop {
        let Some(first) = rest.iter().position(|&byte| !blank(byte)) else { return Ok(()) };
        rest = &rest[first..];
        let begin = text.len();
        let mut quote = None;
        loop {
            let Some((&byte, after)) = rest.split_first() else {
                if quote.is_some() {
                    return Err(ProtocolError::UnbalancedQuotes);
                }
                break;
            };
            rest = after;
            match (quote, byte, rest) {
                (Some(open), close, _) if open == close => {
                    if rest.first().is_some_and(|&next| !blank(next)) {
                        return Err(ProtocolError::UnbalancedQuotes);
                    }
                    break;
                }
                (Some(b'"'), b'\\', [b'x', high, low, after @ ..])
                    if hex(*high).is_some() && hex(*low).is_some() =>
                {
                    text.extend(hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low));
                    rest = after;
                }
                (Some(b'"'), b'\\', [escaped, after @ ..]) => {
                    text.push(match escaped {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'b' => 0x08,
                        b'a' => 0x07,
                        other => *other,
                    });
                    rest = after;
                }
                (Some(b'\''), b'\\', [b'\'', after @ ..]) => {
                    text.push(b'\'');
                    rest = after;
                }
                (None, b'"' | b'\'', _) => quote = Some(byte),
                (None, b' ' | b'\t' | b'\n' | b'\r', _) => break,
                _ => text.push(byte),
            }
        }
        places.push(begin..text.len());
    }
}

/// A number as Redis reads it (`string2ll`): an `i64` in its one canonical spelling.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    // 19 digits fit into a u64.
    let magnitude = digits.iter().try_fold(0_u64, |number, &digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
    })?;
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// The decimal digits of `number`, written into `digits`.
pub fn format_integer(number: i64, digits: &mut [u8; 20]) -> &[u8] {
    let mut rest = number.unsigned_abs();
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    &digits[at..]
}

/// `+text`. The text must not contain a line end.
pub fn put_simple(out: &mut Vec<u8>, text: &str) {
    debug_assert!(!text.contains(['\r', '\n']), "a simple string is one line: {text:?}");
    out.push(b'+');
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// `-text`, the error's kind (`ERR`) included. Line ends in it become blanks, as in Redis.
pub fn put_error(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'-');
    out.extend(text.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
    out.extend_from_slice(b"\r\n");
}

/// `:number`.
pub fn put_integer(out: &mut Vec<u8>, number: i64) {
    put_number(out, b':', number);
}

/// `$len` and the bytes.
pub fn put_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, b'$', bytes.len() as i64);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// How long [`put_bulk`] makes the reply with a string of this length, headers and all.
pub fn bulk_len(len: usize) -> usize {
    let digits = len.checked_ilog10().map_or(1, |log| log as usize + 1);
    len.saturating_add(1 + digits + 4)
}

/// The error for a reply that is longer than it may be.
pub fn put_too_long(out: &mut Vec<u8>, len_max: usize) {
    let text = format!(
        "ERR the reply is above the output limit of {len_max} bytes and was not made, \
         though the request was carried out: ask for less at a time"
    );
    put_error(out, text.as_bytes());
}

/// The null bulk string: there is no such value.
pub fn put_null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"$-1\r\n");
}

/// The null array.
pub fn put_null_array(out: &mut Vec<u8>) {
    out.extend_from_slice(b"*-1\r\n");
}

/// The header of an array; `len` replies follow.
pub fn put_array_header(out: &mut Vec<u8>, len: usize) {
    put_number(out, b'*', len as i64);
}

fn put_number(out: &mut Vec<u8>, kind: u8, number: i64) {
    out.push(kind);
    if (0..10).contains(&number) {
        out.push(b'0' + number as u8);
    } else {
        out.extend_from_slice(format_integer(number, &mut [0; 20]));
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream's requests, and the error that ended it.
    type Outcome = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

    fn read_pieces<'a>(limits: Limits, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        let mut reader = RequestReader::new(limits);
        let mut requests = Vec::new();
        for piece in pieces {
            reader.push(piece);
            loop {
                match reader.next_request() {
                    Ok(Some(arguments)) => requests.push(arguments.from(0).map(<[u8]>::to_vec).collect()),
                    Ok(None) => break,
                    Err(error) => {
                        assert_eq!(reader.next_request().unwrap_err(), error, "a failed reader stays failed");
                        assert_eq!(reader.buffered(), 0);
                        return (requests, Some(error));
                    }
                }
            }
        }
        (requests, None)
    }

    /// Reads whole, byte by byte, and cut in two at every place; all must agree.
    #[track_caller]
    fn read(limits: Limits, stream: &[u8]) -> Outcome {
        let whole = read_pieces(limits, [stream]);
        assert_eq!(read_pieces(limits, stream.chunks(1)), whole, "byte by byte: {}", stream.escape_ascii());
        for cut in 0..stream.len().min(200) {
            let (head, tail) = stream.split_at(cut);
            assert_eq!(read_pieces(limits, [head, tail]), whole, "cut at {cut}: {}", stream.escape_ascii());
        }
        whole
    }

    #[track_caller]
    fn requests(stream: &[u8], wanted: &[&[&[u8]]]) {
        let wanted: Vec<Vec<Vec<u8>>> =
            wanted.iter().map(|r| r.iter().map(|a| a.to_vec()).collect()).collect();
        assert_eq!(read(Limits::default(), stream), (wanted, None), "{}", stream.escape_ascii());
    }

    #[track_caller]
    fn fails(stream: &[u8], error: ProtocolError) {
        assert_eq!(read(Limits::default(), stream).1, Some(error), "{}", stream.escape_ascii());
    }

    #[test]
    fn arrays() {
        requests(b"*1\r\n$4\r\nPING\r\n", &[&[b"PING"]]);
        requests(b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n", &[&[b"GET", b""]]);
        requests(b"*2\r\n$4\r\nECHO\r\n$6\r\n\x00\r\n*$\xff\r\n", &[&[b"ECHO", b"\x00\r\n*$\xff"]]);
        requests(b"*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\nc\r\n", &[&[b"a"], &[b"b"], &[b"c"]]);
        requests(b"*0\r\n*-1\r\n*-7\r\n*1\r\n$1\r\na\r\n", &[&[b"a"]]);
        // What ends a bulk string, or follows a header's \r, is not looked at.
        requests(b"*1\r_$4\rXPINGxy*1\r\n$1\r\nb\r\n", &[&[b"PING"], &[b"b"]]);
        requests(b"*2\r\n$3\r\nGET\r\n$5\r\nabc", &[]);
    }

    #[test]
    fn inline_lines() {
        requests(b"PING\r\n", &[&[b"PING"]]);
        requests(b"\r\n\n  \r\n set  a\tb \n", &[&[b"set", b"a", b"b"]]);
        requests(b"PING \"a b\\x41\\n\"\r\n", &[&[b"PING", b"a bA\n"]]);
        requests(b"PING 'a\\'b\\n'\r\n", &[&[b"PING", b"a'b\\n"]]);
        requests(b"PING a\"b\" c\r\n", &[&[b"PING", b"ab", b"c"]]);
        requests(b"PING \"\" ''\r\n", &[&[b"PING", b"", b""]]);
        requests(b"PING \"\\xzz\\q\\x4\\\"\"\r\n", &[&[b"PING", b"xzzqx4\""]]);
        requests(b"PING \"\\a\\b\\t\\r\\0\\xfF\"\n", &[&[b"PING", b"\x07\x08\t\r0\xff"]]);
        requests(b"PING\rfoo\r\n", &[&[b"PING", b"foo"]]);
        requests(b"PING \x0bx\x0b\x0cy\r\n", &[&[b"PING", b"x\x0b\x0cy"]]);
        requests(b"PING \x00a\r\n", &[&[b"PING", b"\x00a"]]);
        requests(b"PI", &[]);
    }

    #[test]
    fn protocol_errors() {
        for digits in ["", "abc", "+1", "01", "-0", "1 ", " 1", "1x", "1048577", "9223372036854775808"] {
            fails(format!("*{digits}\r\n").as_bytes(), ProtocolError::InvalidMultibulkLength);
        }
        for digits in ["", "-1", "04", "x", "536870913", "18446744073709551616"] {
            fails(format!("*1\r\n${digits}\r\n").as_bytes(), ProtocolError::InvalidBulkLength);
        }
        fails(b"*1\r\nxPING\r\n", ProtocolError::ExpectedBulk(b'x'));
        fails(b"*1\r\n\r\n", ProtocolError::ExpectedBulk(b'\r'));
        fails(b"*1\r\n\xffPING\r\n", ProtocolError::ExpectedBulk(0xff));
        for line in [&b"PING \"a\"b\n"[..], b"\"a\n", b"'a\n", b"'a'b\n", b"\"a\\\n", b"\"a\\\"\n", b"'\\'\n"]
        {
            fails(line, ProtocolError::UnbalancedQuotes);
        }
        // What came before is answered.
        let (before, error) = read(Limits::default(), b"PING\r\n*1\r\n$4\r\nPING\r\n*x\r\nPING\r\n");
        assert_eq!((before.len(), error), (2, Some(ProtocolError::InvalidMultibulkLength)));
        // The bounds themselves are fine.
        requests(b"*1048576\r\n", &[]);
        requests(b"*1\r\n$536870912\r\n", &[]);
    }

    #[test]
    fn error_replies_are_redis_texts() {
        let text = |error: ProtocolError| {
            let mut out = Vec::new();
            error.put(&mut out);
            out
        };
        assert_eq!(text(ProtocolError::InvalidBulkLength), b"-ERR Protocol error: invalid bulk length\r\n");
        assert_eq!(
            text(ProtocolError::ExpectedBulk(b'x')),
            b"-ERR Protocol error: expected '$', got 'x'\r\n"
        );
        assert_eq!(
            text(ProtocolError::ExpectedBulk(b'\r')),
            b"-ERR Protocol error: expected '$', got ' '\r\n"
        );
        assert_eq!(
            text(ProtocolError::ExpectedBulk(255)),
            b"-ERR Protocol error: expected '$', got '\xff'\r\n"
        );
    }

    #[test]
    fn lines_end_within_64_kib() {
        let long = |first: &[u8], len: usize, end: &[u8]| [first, &vec![b'1'; len], end].concat();
        let outcome = |stream: &[u8]| {
            let whole = read_pieces(Limits::default(), [stream]);
            assert_eq!(read_pieces(Limits::default(), stream.chunks(1)), whole);
            assert_eq!(read_pieces(Limits::default(), stream.chunks(1000)), whole);
            whole
        };
        for end in [&b""[..], b"\r\n"] {
            assert_eq!(outcome(&long(b"", LINE_LEN_MAX + 2, end)).1, Some(ProtocolError::TooBigInline));
            assert_eq!(outcome(&long(b"*", LINE_LEN_MAX, end)).1, Some(ProtocolError::TooBigMultibulkCount));
            assert_eq!(outcome(&long(b"*1\r\n$", LINE_LEN_MAX, end)).1, Some(ProtocolError::TooBigBulkCount));
        }
        assert_eq!(outcome(&long(b"", LINE_LEN_MAX - 1, b"\r\n")).0[0][0].len(), LINE_LEN_MAX - 1);
        let error = outcome(&long(b"*", LINE_LEN_MAX - 1, b"\r\n")).1;
        assert_eq!(error, Some(ProtocolError::InvalidMultibulkLength));
    }

    #[test]
    fn a_request_beyond_its_cap_fails_at_the_header() {
        let limits = Limits { request_bytes_max: 100, ..Limits::default() };
        let request = |len: usize| format!("*2\r\n$3\r\nGET\r\n${len}\r\n");
        let fits = 100 - 3 - 2 * ARGUMENT_OVERHEAD;
        assert_eq!(read(limits, request(fits).as_bytes()).1, None);
        assert_eq!(read(limits, request(fits + 1).as_bytes()).1, Some(ProtocolError::TooBigRequest));
        // The cap is per request: a pipeline of small ones passes.
        let pipeline = b"*1\r\n$40\r\n0123456789012345678901234567890123456789\r\n".repeat(20);
        assert_eq!(read_pieces(limits, [&pipeline[..]]).0.len(), 20);
    }

    /// Half a gigabyte promised, nothing sent: nothing reserved.
    #[test]
    fn promises_take_no_memory() {
        let mut reader = RequestReader::new(Limits::default());
        reader.push(b"*1048576\r\n$536870912\r\nab");
        assert!(reader.next_request().unwrap().is_none());
        assert!(reader.buffer.capacity() < 1024 && reader.arguments.capacity() < 1024);
    }

    #[test]
    fn memory_of_a_large_request_is_given_back() {
        let mut reader = RequestReader::new(Limits::default());
        reader.push(&[&b"*1\r\n$1000000\r\n"[..], &vec![b'x'; 1_000_000], b"\r\n"].concat());
        assert_eq!(reader.next_request().unwrap().unwrap().at(0).len(), 1_000_000);
        assert_eq!(reader.buffered(), 0);
        reader.push(b"PING\r\n");
        assert!(reader.buffer.capacity() <= KEPT_CAPACITY);
        assert_eq!(reader.next_request().unwrap().unwrap().at(0), b"PING");
    }

    /// Each byte is searched for a line end once: after a piece without one, the search stands at the
    /// buffer's end, and a bulk string is not searched at all.
    #[test]
    fn a_trickle_is_not_read_again_and_again() {
        let mut reader = RequestReader::new(Limits::default());
        reader.push(b"*1\r\n$50000\r\n");
        assert!(reader.next_request().unwrap().is_none());
        let (at, searched) = (reader.at, reader.searched);
        for _ in 0..50_001 {
            reader.push(b"\r");
            assert!(reader.next_request().unwrap().is_none());
            assert_eq!((reader.at, reader.searched), (at, searched));
        }
        reader.push(b"\n");
        assert_eq!(reader.next_request().unwrap().unwrap().at(0).len(), 50_000);
        for count in 1..50_000 {
            reader.push(b"x");
            assert!(reader.next_request().unwrap().is_none());
            assert_eq!(reader.searched, count);
        }
    }

    #[test]
    fn a_long_pipeline_in_small_pieces_keeps_the_buffer_small() {
        let mut reader = RequestReader::new(Limits::default());
        let request = b"*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000042\r\n";
        let mut read = 0;
        for piece in request.repeat(1000).chunks(57) {
            reader.push(piece);
            while let Some(arguments) = reader.next_request().unwrap() {
                assert_eq!(arguments.at(1), b"key:000000000042");
                read += 1;
            }
        }
        assert_eq!((read, reader.buffered()), (1000, 0));
        assert!(reader.buffer.capacity() < 1024, "{}", reader.buffer.capacity());
    }

    /// Random streams of near-RESP, cut at random: no panic, limits kept, cuts do not matter.
    #[test]
    fn fuzz() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let tokens: [&[u8]; 24] = [
            b"*1\r\n",
            b"*2\r\n",
            b"*3\r\n",
            b"*0\r\n",
            b"*-1\r\n",
            b"*",
            b"$",
            b"$0\r\n\r\n",
            b"$1\r\na\r\n",
            b"$3\r\nGET\r\n",
            b"$4\r\n\x00\r\n\xff\r\n",
            b"\r\n",
            b"\r",
            b"\n",
            b"PING\r\n",
            b"\"",
            b"'",
            b"\\",
            b"\\x4f",
            b" ",
            b"$31\r\n",
            b"*9\r\n",
            b"abc",
            b"7",
        ];
        let limits = Limits { bulk_len_max: 30, argument_count_max: 8, request_bytes_max: 200 };
        let (mut requests, mut errors) = (0, 0);
        for _ in 0..20_000 {
            let mut stream = Vec::new();
            for _ in 0..random(24) {
                // Whole requests now and then, else hardly any stream gets far.
                if random(3) == 0 {
                    stream.extend_from_slice(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
                } else {
                    stream.extend_from_slice(tokens[random(tokens.len())]);
                }
            }
            let whole = read_pieces(limits, [&stream[..]]);
            let mut pieces = Vec::new();
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(1 + random(rest.len().min(9)));
                pieces.push(piece);
                rest = after;
            }
            assert_eq!(read_pieces(limits, pieces), whole, "{}", stream.escape_ascii());
            for request in &whole.0 {
                assert!(!request.is_empty());
            }
            requests += whole.0.len();
            errors += usize::from(whole.1.is_some());
        }
        assert!(requests > 20_000 && errors > 2_000, "the streams must reach both: {requests}, {errors}");
    }

    #[test]
    fn integers_have_one_spelling() {
        for number in [0, 1, -1, 9, 10, 99, 100, 1234567890, i64::MAX, i64::MIN, i64::MIN + 1] {
            assert_eq!(format_integer(number, &mut [0; 20]), number.to_string().as_bytes());
            assert_eq!(parse_integer(number.to_string().as_bytes()), Some(number));
        }
        for text in ["", "-", "+1", "01", "-0", "-01", "1 ", " 1", "1.0", "0x1", "9223372036854775808"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_integer(b"-9223372036854775809"), None);
        assert_eq!(parse_integer(b"99999999999999999999"), None);
    }

    #[test]
    fn replies() {
        let mut out = Vec::new();
        put_simple(&mut out, "OK");
        put_error(&mut out, b"ERR a\r\nb");
        put_integer(&mut out, -12);
        put_integer(&mut out, 7);
        put_bulk(&mut out, b"\x00\r\n\xff");
        put_bulk(&mut out, b"");
        put_null(&mut out);
        put_null_array(&mut out);
        put_array_header(&mut out, 0);
        put_array_header(&mut out, 1234);
        let wanted = b"+OK\r\n-ERR a  b\r\n:-12\r\n:7\r\n$4\r\n\x00\r\n\xff\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*1234\r\n";
        assert_eq!(out.escape_ascii().to_string(), wanted.escape_ascii().to_string());
    }
}
