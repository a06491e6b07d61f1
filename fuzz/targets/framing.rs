//! Syslog frames as the log mill cuts them out of a stream (RFC 6587).
//!
//! The first byte chooses the longest frame, the second how the stream ends and where it is cut; the rest is the
//! stream. What must hold:
//! - However the stream is cut, the same frames come out, and every byte is used up once.
//! - No frame is empty but a counted one that held a line feed alone, none is longer than the limit, but for what
//!   the end cuts off; and what is kept while a frame is incomplete is bounded too.
//! - Frames that are printed, counted and as lines, are read as they were.

use crate::framing::{Framer, Step, Tail, Whole};

/// A count, and the space behind it.
const COUNT_MAX: usize = 10;

#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    frames: Vec<(Vec<u8>, Whole)>,
    empty_lines: u64,
    used: usize,
}

pub fn check(data: &[u8]) {
    let [max, choice, stream @ ..] = data else { return };
    let max = usize::from(*max);
    let tail = [Tail::Ended, Tail::Broken, Tail::Open][usize::from(choice % 3)];
    let whole = read([stream], max, tail);
    assert_eq!(read(stream.chunks(1), max, tail), whole, "byte by byte");
    assert_eq!(read(stream.chunks(2 + usize::from(choice / 3)), max, tail), whole, "in pieces");
    assert!(whole.used <= stream.len());
    assert!(tail == Tail::Open || whole.used == stream.len());
    for (frame, whole) in &whole.frames {
        let cut_off = usize::from(*whole == Whole::CutOff) * COUNT_MAX;
        assert!(frame.len() <= max.max(1) + cut_off, "{} of {max}", frame.len());
    }
    print_and_read(whole.frames.iter().map(|(frame, _)| &frame[..]));
}

/// The frames of a stream that arrives like this.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, max: usize, tail: Tail) -> Read {
    let mut framer = Framer::new(max);
    let (mut buffer, mut read) = (Vec::new(), Read::default());
    let pieces = pieces.into_iter().map(|piece| (piece, Tail::Open));
    for (piece, now) in pieces.chain([(&b""[..], tail)]) {
        buffer.extend_from_slice(piece);
        loop {
            let used = match framer.next(&buffer, now) {
                Step::Frame { frame, used } => {
                    read.frames.push((frame.bytes.to_vec(), frame.whole));
                    used
                }
                Step::Skip { used, empty_lines } => {
                    read.empty_lines += empty_lines;
                    used
                }
                Step::NeedMore => break,
            };
            assert!((1..=buffer.len()).contains(&used), "each step uses up what is there");
            buffer.drain(..used);
            read.used += used;
        }
        assert!(buffer.len() <= max.max(1) + COUNT_MAX, "{} bytes are kept", buffer.len());
    }
    read
}

fn print_and_read<'a>(frames: impl Iterator<Item = &'a [u8]>) {
    let (mut printed, mut expected) = (Vec::new(), Vec::new());
    for frame in frames {
        // A line end at the end of a counted frame is taken for its end.
        if frame.is_empty() || frame.ends_with(b"\n") || frame.ends_with(b"\r") {
            continue;
        }
        printed.extend_from_slice(format!("{} ", frame.len()).as_bytes());
        printed.extend_from_slice(frame);
        expected.push((frame.to_vec(), Whole::Yes));
        let is_line = !frame.contains(&b'\n') && !frame[0].is_ascii_digit();
        if is_line {
            printed.extend_from_slice(frame);
            printed.extend_from_slice(b"\r\n");
            expected.push((frame.to_vec(), Whole::Yes));
        }
    }
    // A frame may be as long as the line with its end.
    let max = expected.iter().map(|(frame, _)| frame.len() + 1).max().unwrap_or(1);
    let again = read([&printed[..]], max, Tail::Ended);
    assert_eq!((again.frames, again.used), (expected, printed.len()));
}
