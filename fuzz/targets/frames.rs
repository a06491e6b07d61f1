//! Frames with a length prefix, and lines, as the framers of `src/net` cut them out of a stream.
//!
//! The first byte chooses the framer, the second the largest frame, the third how the stream is cut; the rest is the
//! stream. The following must hold:
//! - However the stream is cut, the same frames come out, and the same error at the same position.
//! - No frame is longer than the maximum. A frame lies within its input, and uses up at least one byte.
//! - Frames and their error account for each byte of the stream: the error's position is the sum of the used bytes.
//! - While a frame is incomplete, no more is kept than the maximum and its prefix or line end.
//! - An error is final.
//! - Frames that are printed are read as they were.

use pointsman::net::{Frame, FrameError, Framer, LengthFramer, LengthPrefix, LineFramer};

const PREFIXES: [LengthPrefix; 8] = [
    LengthPrefix::U8,
    LengthPrefix::U16Be,
    LengthPrefix::U16Le,
    LengthPrefix::U32Be,
    LengthPrefix::U32Le,
    LengthPrefix::U64Be,
    LengthPrefix::U64Le,
    LengthPrefix::Varint,
];

/// The longest prefix.
const PREFIX_MAX: usize = 10;

#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    frames: Vec<Vec<u8>>,
    used: u64,
    error: Option<FrameError>,
}

pub fn check(data: &[u8]) {
    let [choice, max, cut, stream @ ..] = data else { return };
    let max = usize::from(*max).max(1);
    match PREFIXES.get(usize::from(*choice) % (PREFIXES.len() + 1)) {
        Some(prefix) => {
            let make = || LengthFramer::new(*prefix, max).expect("above 0");
            let frames = check_cuts(make, max, usize::from(*cut), stream);
            let mut printed = Vec::new();
            for frame in &frames {
                make().write(frame, &mut printed).expect("it was read");
            }
            assert_eq!(read(make(), [&printed[..]], max).frames, frames, "printed and read");
        }
        None => {
            let make = || LineFramer::new(max).expect("above 0");
            let frames = check_cuts(make, max, usize::from(*cut), stream);
            let (mut printed, mut expected) = (Vec::new(), Vec::new());
            for frame in frames {
                // A carriage return at the end of a line would be taken for a part of its end.
                let is_line = !frame.ends_with(b"\r");
                assert_eq!(make().write(&frame, &mut printed).is_ok(), is_line);
                if is_line {
                    expected.push(frame);
                }
            }
            assert_eq!(read(make(), [&printed[..]], max).frames, expected, "printed and read");
        }
    }
}

/// Reads the stream in several cuts, and returns its frames.
fn check_cuts<F: Framer>(make: impl Fn() -> F, max: usize, cut: usize, stream: &[u8]) -> Vec<Vec<u8>> {
    let whole = read(make(), [stream], max);
    assert_eq!(read(make(), stream.chunks(1), max), whole, "byte by byte");
    assert_eq!(read(make(), stream.chunks(2 + cut), max), whole, "in pieces");
    let (front, back) = stream.split_at(cut.min(stream.len()));
    assert_eq!(read(make(), [front, back], max), whole, "in two");
    match &whole.error {
        Some(error) => assert_eq!(error.position(), whole.used),
        None => assert_eq!(whole.used, stream.len() as u64),
    }
    assert!(whole.frames.iter().all(|frame| frame.len() <= max));
    whole.frames
}

/// The frames of a stream that arrives like this, and ends.
fn read<'a>(mut framer: impl Framer, pieces: impl IntoIterator<Item = &'a [u8]>, max: usize) -> Read {
    let (mut buffer, mut read) = (Vec::new(), Read::default());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        while read.take(framer.next(&buffer), &mut buffer) {}
        if let Some(error) = &read.error {
            assert_eq!(framer.next(&buffer).as_ref(), Err(error), "an error is final");
            return read;
        }
        assert!(buffer.len() <= max + PREFIX_MAX, "{} bytes are kept", buffer.len());
    }
    while read.take(framer.end(&buffer), &mut buffer) {}
    read
}

impl Read {
    /// Returns whether there was a frame.
    fn take(&mut self, next: Result<Option<Frame>, FrameError>, buffer: &mut Vec<u8>) -> bool {
        match next {
            Ok(Some(frame)) => {
                assert!(frame.used > 0 && frame.start <= frame.end && frame.end <= frame.used);
                self.frames.push(frame.content(buffer).to_vec());
                buffer.drain(..frame.used);
                self.used += frame.used as u64;
                true
            }
            Ok(None) => false,
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }
}
