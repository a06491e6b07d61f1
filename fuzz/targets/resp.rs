//! RESP requests as the shard cache reads them.
//!
//! The first byte chooses limits and where the stream is cut; the rest is the stream. What must hold:
//! - However the stream is cut, the same requests and the same error come out.
//! - Every request keeps its limits, and so does what the reader holds while one is incomplete.
//! - Requests that are printed, as arrays and as quoted lines, are read as they were.
//! - A failed reader stays failed and holds nothing. The error replies are one line each.
//!
//! The errors are those of Redis and name no position: the connection ends with them.

use crate::resp::{
    Limits, ProtocolError, RequestReader, format_integer, parse_integer, put_array_header, put_bulk,
    put_error,
};

type Request = Vec<Vec<u8>>;

const SMALL: Limits = Limits { bulk_len_max: 30, argument_count_max: 8, request_bytes_max: 200 };
/// The longest line, and what ends it.
const LINE_MAX: usize = 64 * 1024 + 2;
/// The longest header that announces anything: its sign, 20 digits, its end.
const HEADER_MAX: usize = 24;

pub fn check(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else { return };
    let limits = if choice & 1 == 0 { SMALL } else { Limits::default() };
    let whole = read(limits, [stream]);
    assert_eq!(read(limits, stream.chunks(1)), whole, "byte by byte");
    assert_eq!(read(limits, pieces(stream, choice)), whole, "in pieces");
    let (requests, error) = whole;
    for request in &requests {
        assert!(!request.is_empty() && request.len() <= limits.argument_count_max);
    }
    print_and_read(&requests);
    if let Some(error) = error {
        let mut reply = Vec::new();
        error.put(&mut reply);
        assert!(reply.starts_with(b"-ERR Protocol error: "));
        assert!(is_one_line(&reply), "{}", reply.escape_ascii());
    }
    let mut reply = Vec::new();
    put_error(&mut reply, stream);
    assert!(is_one_line(&reply));
    if let Some(number) = parse_integer(stream) {
        assert_eq!(format_integer(number, &mut [0; 20]), stream);
    }
}

/// The requests of a stream that arrives like this, and the error that ended it.
fn read<'a>(
    limits: Limits,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Request>, Option<ProtocolError>) {
    let mut reader = RequestReader::new(limits);
    let mut requests = Vec::new();
    for piece in pieces {
        reader.push(piece);
        loop {
            match reader.next_request() {
                Ok(Some(arguments)) => {
                    assert_eq!(arguments.from(0).len(), arguments.len());
                    requests.push(arguments.from(0).map(<[u8]>::to_vec).collect());
                }
                Ok(None) => break,
                Err(error) => {
                    reader.push(b"PING\r\n");
                    assert_eq!(reader.next_request().unwrap_err(), error);
                    assert_eq!(reader.buffered(), 0);
                    return (requests, Some(error));
                }
            }
        }
        let promised = limits.request_bytes_max + limits.argument_count_max * HEADER_MAX;
        assert!(reader.buffered() <= promised.max(HEADER_MAX) + LINE_MAX);
    }
    (requests, None)
}

/// Cut at places that the choice decides.
fn pieces(mut stream: &[u8], choice: u8) -> Vec<&[u8]> {
    let (mut pieces, mut state) = (Vec::new(), u32::from(choice) + 1);
    while !stream.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, rest) = stream.split_at(1 + (state >> 24) as usize % stream.len().min(11));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

fn print_and_read(requests: &[Request]) {
    let (mut arrays, mut lines) = (Vec::new(), Vec::new());
    for request in requests {
        put_array_header(&mut arrays, request.len());
        for argument in request {
            put_bulk(&mut arrays, argument);
            lines.push(b'"');
            argument.iter().for_each(|byte| lines.extend(format!("\\x{byte:02x}").bytes()));
            lines.extend_from_slice(b"\" ");
        }
        lines.push(b'\n');
    }
    let (again, error) = read(Limits::default(), [&arrays[..]]);
    assert_eq!((again.as_slice(), error), (requests, None));
    // As a line a request may be too long.
    if lines.split(|&byte| byte == b'\n').all(|line| line.len() < LINE_MAX - 2) {
        let (again, error) = read(Limits::default(), [&lines[..]]);
        assert_eq!((again.as_slice(), error), (requests, None));
    }
}

fn is_one_line(reply: &[u8]) -> bool {
    reply.strip_suffix(b"\r\n").is_some_and(|line| !line.contains(&b'\r') && !line.contains(&b'\n'))
}
