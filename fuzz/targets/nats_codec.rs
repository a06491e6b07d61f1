//! The operations of a NATS server as the engine's decoder reads them.
//!
//! The first byte chooses the `INFO` before the stream, or none, and where the stream is cut; the rest is the stream. What
//! must hold:
//! - However the stream is cut, the same operations and the same error come out.
//! - What the decoder holds is bounded by `max_payload` and 4 KiB, or by the longest `INFO`.
//! - Messages that are printed are read as they were.
//! - A failed decoder stays failed and holds nothing. The errors are one short line each.

use crate::codec::{DecodeError, Decoder, INFO_MAX, ServerOp};

/// The payload that the largest `INFO` here allows; others may stand in the stream.
const INFOS: [&str; 3] =
    ["", "INFO {\"max_payload\":64}\r\n", "INFO {\"max_payload\":1048576,\"headers\":true}\r\n"];

/// A message, or another operation as text.
#[derive(Debug, PartialEq)]
enum Op {
    Message { subject: String, sid: u64, reply: Option<String>, headers: Vec<u8>, payload: Vec<u8> },
    Other(String),
}

pub fn check(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let stream = [INFOS[usize::from(choice) % INFOS.len()].as_bytes(), rest].concat();
    let whole = read([stream.as_slice()]);
    assert_eq!(read(stream.chunks(1)), whole, "byte by byte");
    assert_eq!(read(pieces(&stream, choice)), whole, "in pieces");
    let (ops, error) = whole;
    print_and_read(&ops);
    if let Some(error) = error {
        let text = error.to_string();
        assert!(text.len() < 500 && !text.contains(['\r', '\n']), "{text}");
    }
}

/// The operations of a stream that arrives like this, and the error that ended it.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Op>, Option<DecodeError>) {
    let mut decoder = Decoder::new();
    let (mut ops, mut payload_max) = (Vec::new(), 0usize);
    for piece in pieces {
        for chunk in piece.chunks(4096) {
            decoder.space()[..chunk.len()].copy_from_slice(chunk);
            decoder.filled(chunk.len());
            loop {
                match decoder.next_op() {
                    Ok(Some(ServerOp::Message(message))) => {
                        let _ = message.status();
                        assert!(message.headers.len() + message.payload.len() <= payload_max);
                        ops.push(Op::Message {
                            subject: message.subject.to_owned(),
                            sid: message.sid,
                            reply: message.reply.map(str::to_owned),
                            headers: message.headers.to_vec(),
                            payload: message.payload.to_vec(),
                        });
                    }
                    Ok(Some(op)) => {
                        if let ServerOp::Info(info) = &op {
                            payload_max = usize::try_from(info.max_payload).unwrap_or(usize::MAX);
                        }
                        ops.push(Op::Other(format!("{op:?}")));
                    }
                    Ok(None) => break,
                    Err(error) => {
                        assert_eq!(decoder.next_op().map(drop), Err(error.clone()));
                        assert_eq!(decoder.buffered(), 0);
                        return (ops, Some(error));
                    }
                }
            }
            assert!(decoder.buffered() <= INFO_MAX.max(payload_max.saturating_add(4096)));
        }
    }
    (ops, None)
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

fn print_and_read(ops: &[Op]) {
    let mut stream = b"INFO {\"max_payload\":67108864}\r\n".to_vec();
    let mut messages = Vec::new();
    for op in ops {
        let Op::Message { subject, sid, reply, headers, payload } = op else { continue };
        let reply = reply.as_ref().map_or(String::new(), |reply| format!(" {reply}"));
        let (head, total) = (headers.len(), headers.len() + payload.len());
        let line = match headers.is_empty() {
            true => format!("MSG {subject} {sid}{reply} {total}\r\n"),
            false => format!("HMSG {subject} {sid}{reply} {head} {total}\r\n"),
        };
        for part in [line.as_bytes(), headers, payload, b"\r\n"] {
            stream.extend_from_slice(part);
        }
        messages.push(op);
    }
    let (again, error) = read([stream.as_slice()]);
    assert_eq!(error, None);
    assert!(again[1..].iter().eq(messages), "{again:?}");
}
