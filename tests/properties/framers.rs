//! The framers of `net` against the printed frames: however a stream is cut, its frames come out, and its error at the
//! same position. The checks of one stream are those of the fuzz target `frames`, with streams that proptest makes:
//! random bytes, and frames with a fault among them.
//!
//! Planted faults that the target was seen to find: a carriage return at the border of two pieces that counts towards a line's
//! length; a line that is searched on from the wrong place behind a frame; a position that does not count the prefix.

use crate::support::cases;
use pointsman::net::{
    FrameError, FrameWriteError, Framer, FramerError, LengthFramer, LengthPrefix, LineFramer,
};
use proptest::collection::vec;
use proptest::prelude::*;

#[path = "../../fuzz/targets/frames.rs"]
mod target;

/// The byte that chooses lines in the target; the lower ones choose a prefix.
const LINES: u8 = 8;

/// Bytes of which many are the ends of lines, small lengths, or parts of long varints.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![3 => Just(b'\n'), 3 => Just(b'\r'), 4 => 0u8..8, 2 => Just(0xff), 2 => any::<u8>()]
}

proptest! {
    #![proptest_config(cases("tests/properties/framers.seeds"))]

    #[test]
    fn any_cut_of_any_stream_gives_the_same_frames(
        choice in 0..=LINES, max in 1u8..40, cut in any::<u8>(), stream in vec(byte(), 0..200),
    ) {
        let mut data = vec![choice, max, cut];
        data.extend(stream);
        target::check(&data);
    }

    #[test]
    fn frames_that_are_written_are_read_as_they_were_until_one_is_too_long(
        choice in 0..LINES, contents in vec(vec(any::<u8>(), 0..60), 0..20), max in 1u8..50, cut in any::<u8>(),
    ) {
        // Written by a framer that allows more.
        let prefix = [
            LengthPrefix::U8, LengthPrefix::U16Be, LengthPrefix::U16Le, LengthPrefix::U32Be, LengthPrefix::U32Le,
            LengthPrefix::U64Be, LengthPrefix::U64Le, LengthPrefix::Varint,
        ][usize::from(choice)];
        let writer = LengthFramer::new(prefix, 1000).unwrap();
        let mut data = vec![choice, max, cut];
        let mut stream = Vec::new();
        contents.iter().for_each(|content| writer.write(content, &mut stream).unwrap());
        data.extend_from_slice(&stream);
        target::check(&data);
        let max = usize::from(max);
        let mut reader = LengthFramer::new(prefix, max).unwrap();
        let mut rest = &stream[..];
        for content in &contents {
            let position = (stream.len() - rest.len()) as u64;
            if content.len() > max {
                let length = Some(content.len() as u64);
                prop_assert_eq!(reader.next(rest), Err(FrameError::TooLong { position, length, max }));
                return Ok(());
            }
            let frame = reader.next(rest).unwrap().unwrap();
            prop_assert_eq!(frame.content(rest), &content[..]);
            rest = &rest[frame.used..];
        }
        prop_assert_eq!((rest.len(), reader.end(rest)), (0, Ok(None)));
    }

    #[test]
    fn lines_come_out_with_either_end(
        lines in vec((vec(prop_oneof![Just(b'\r'), b'a'..b'e'], 0..20), any::<bool>()), 0..20), cut in any::<u8>(),
    ) {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for (line, has_return) in lines {
            stream.extend_from_slice(&line);
            stream.extend_from_slice(if has_return { b"\r\n" } else { b"\n" });
            let content = if has_return { &line[..] } else { line.strip_suffix(b"\r").unwrap_or(&line) };
            expected.push(content.to_vec());
        }
        let mut framer = LineFramer::new(20).unwrap();
        let mut rest = &stream[..];
        for line in expected {
            let frame = framer.next(rest).unwrap().unwrap();
            prop_assert_eq!(frame.content(rest), &line[..]);
            rest = &rest[frame.used..];
        }
        prop_assert_eq!((rest.len(), framer.next(rest)), (0, Ok(None)));
        let mut data = vec![LINES, 20, cut];
        data.extend(stream);
        target::check(&data);
    }
}

#[test]
fn a_maximum_of_nothing_is_refused() {
    assert_eq!(LineFramer::new(0).unwrap_err(), FramerError::ZeroMax);
    assert_eq!(LengthFramer::new(LengthPrefix::U8, 0).unwrap_err(), FramerError::ZeroMax);
}

#[test]
fn a_length_beyond_the_machines_words_is_too_long_and_loses_nothing() {
    for prefix in [LengthPrefix::U64Be, LengthPrefix::U64Le] {
        let mut framer = LengthFramer::new(prefix, usize::MAX).unwrap();
        let error = FrameError::TooLong { position: 0, length: Some(u64::MAX), max: usize::MAX };
        assert_eq!(framer.next(&[0xff; 8]), Err(error), "prefix and content together overflow");
    }
    let mut framer = LengthFramer::new(LengthPrefix::Varint, 100).unwrap();
    assert_eq!(framer.next(&[0xff; 9]), Ok(None));
    assert_eq!(framer.next(&[0xff; 10]), Err(FrameError::LengthOverflow { position: 0 }));
    // The largest length of 64 bits is no overflow.
    let mut framer = LengthFramer::new(LengthPrefix::Varint, 100).unwrap();
    let mut largest = [0xff; 10];
    largest[9] = 1;
    let error = FrameError::TooLong { position: 0, length: Some(u64::MAX), max: 100 };
    assert_eq!(framer.next(&largest), Err(error));
}

#[test]
fn a_stream_that_ends_within_a_frame_says_where() {
    let mut framer = LengthFramer::new(LengthPrefix::U8, 100).unwrap();
    let stream = b"\x02ab\x05abc";
    let frame = framer.end(stream).unwrap().unwrap();
    assert_eq!((frame.content(stream), frame.used), (&b"ab"[..], 3));
    let error = FrameError::Incomplete { position: 3, received: 4 };
    assert_eq!(framer.end(&stream[3..]), Err(error.clone()));
    assert_eq!(framer.next(b"\x01a"), Err(error), "an error is final");
}

#[test]
fn content_that_would_be_read_otherwise_is_not_written() {
    let (mut output, lines) = (Vec::new(), LineFramer::new(5).unwrap());
    assert_eq!(lines.write(b"abcdef", &mut output), Err(FrameWriteError::TooLong { length: 6, max: 5 }));
    assert_eq!(lines.write(b"ab\nc", &mut output), Err(FrameWriteError::LineFeed { at: 2 }));
    assert_eq!(lines.write(b"abc\r", &mut output), Err(FrameWriteError::CarriageReturn));
    let bytes = LengthFramer::new(LengthPrefix::U8, 1000).unwrap();
    assert_eq!(bytes.write(&[0; 256], &mut output), Err(FrameWriteError::TooLong { length: 256, max: 255 }));
    assert_eq!(output, b"");
    bytes.write(&[0; 255], &mut output).unwrap();
    assert_eq!(output.len(), 256);
}
