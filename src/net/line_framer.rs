//! Lines that end with a line feed.

use crate::net::framer::{Frame, FrameError, FrameWriteError, Framer, FramerError};

/// Cuts lines out of a stream. A line ends with a line feed, and a carriage return directly before the line feed belongs
/// to the line end. The content is the line without its end; an empty line is a frame without content.
///
/// When the stream ends, the bytes behind the last line feed are a line, too, and a carriage return at their end is
/// content.
///
/// ```
/// use pointsman::net::{FrameError, Framer, LineFramer};
///
/// let mut framer = LineFramer::new(1024).expect("a maximum above 0");
/// let stream = b"GET a\r\nGET b\nQUI";
/// let first = framer.next(stream).expect("it is short enough").expect("it is whole");
/// assert_eq!(first.content(stream), b"GET a");
/// let rest = &stream[first.used..];
/// let second = framer.next(rest).expect("it is short enough").expect("it is whole");
/// assert_eq!(second.content(rest), b"GET b");
/// let rest = &rest[second.used..];
/// assert_eq!(framer.next(rest), Ok(None)); // more may come
/// let last = framer.end(rest).expect("it is short enough").expect("the stream has ended behind it");
/// assert_eq!(last.content(rest), b"QUI");
/// ```
#[derive(Debug, Clone)]
pub struct LineFramer {
    max: usize,
    /// The number of bytes of the stream before the input.
    position: u64,
    /// The number of bytes of the input in which no line feed was found.
    searched: usize,
    /// The error that ended the stream.
    failed: Option<FrameError>,
}

impl LineFramer {
    /// Makes a framer for lines whose content has at most `max` bytes.
    ///
    /// # Errors
    ///
    /// [`FramerError::ZeroMax`].
    pub fn new(max: usize) -> Result<Self, FramerError> {
        if max == 0 {
            return Err(FramerError::ZeroMax);
        }
        Ok(Self { max, position: 0, searched: 0, failed: None })
    }

    /// Appends `line` to `output`, with a line feed behind it.
    ///
    /// # Errors
    ///
    /// [`FrameWriteError`]: it is longer than the maximum, holds a line feed, or ends with a carriage return.
    pub fn write(&self, line: &[u8], output: &mut Vec<u8>) -> Result<(), FrameWriteError> {
        if line.len() > self.max {
            return Err(FrameWriteError::TooLong { length: line.len(), max: self.max });
        }
        if let Some(at) = line_feed(line) {
            return Err(FrameWriteError::LineFeed { at });
        }
        if line.ends_with(b"\r") {
            return Err(FrameWriteError::CarriageReturn);
        }
        output.extend_from_slice(line);
        output.push(b'\n');
        Ok(())
    }

    fn is_too_long_without_end(&self, input: &[u8]) -> bool {
        // A carriage return behind the longest line may be a part of its end.
        let content = input.strip_suffix(b"\r").unwrap_or(input);
        content.len() > self.max
    }

    fn found(&mut self, end: usize, used: usize) -> Result<Option<Frame>, FrameError> {
        if end > self.max {
            return self.fail();
        }
        self.position += used as u64;
        self.searched = 0;
        Ok(Some(Frame { start: 0, end, used }))
    }

    fn fail(&mut self) -> Result<Option<Frame>, FrameError> {
        let error = FrameError::TooLong { position: self.position, length: None, max: self.max };
        self.failed = Some(error.clone());
        Err(error)
    }
}

impl Framer for LineFramer {
    fn next(&mut self, input: &[u8]) -> Result<Option<Frame>, FrameError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let searched = self.searched.min(input.len());
        if let Some(at) = line_feed(&input[searched..]) {
            let line = &input[..searched + at];
            let content = line.strip_suffix(b"\r").unwrap_or(line);
            return self.found(content.len(), line.len() + 1);
        }
        if self.is_too_long_without_end(input) {
            return self.fail();
        }
        self.searched = input.len();
        Ok(None)
    }

    fn end(&mut self, input: &[u8]) -> Result<Option<Frame>, FrameError> {
        match self.next(input)? {
            None if !input.is_empty() => self.found(input.len(), input.len()),
            next => Ok(next),
        }
    }
}

fn line_feed(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}
