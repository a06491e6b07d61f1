//! Frames behind a prefix that says their length.

use crate::net::framer::{Frame, FrameError, FrameWriteError, Framer, FramerError};

/// The longest varint of 64 bits.
const VARINT_MAX: usize = 10;

/// How a frame's length stands before its content. The length counts the content alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LengthPrefix {
    /// One byte.
    U8,
    /// Two bytes, the most significant first.
    U16Be,
    /// Two bytes, the least significant first.
    U16Le,
    /// Four bytes, the most significant first.
    U32Be,
    /// Four bytes, the least significant first.
    U32Le,
    /// Eight bytes, the most significant first.
    U64Be,
    /// Eight bytes, the least significant first.
    U64Le,
    /// One to ten bytes with seven bits each, the least significant first, where the highest bit says that another byte
    /// follows (LEB128, as in Protocol Buffers). A varint that is longer than it needs to be is read, too.
    Varint,
}

/// A length, and the size of its prefix.
enum Parsed {
    Length { value: u64, size: usize },
    NeedsMore,
    Overflow,
}

impl LengthPrefix {
    /// Returns the largest length that the prefix can say.
    fn largest(self) -> u64 {
        match self {
            LengthPrefix::U8 => u64::from(u8::MAX),
            LengthPrefix::U16Be | LengthPrefix::U16Le => u64::from(u16::MAX),
            LengthPrefix::U32Be | LengthPrefix::U32Le => u64::from(u32::MAX),
            LengthPrefix::U64Be | LengthPrefix::U64Le | LengthPrefix::Varint => u64::MAX,
        }
    }

    fn parse(self, input: &[u8]) -> Parsed {
        let (size, is_big) = match self {
            LengthPrefix::Varint => return parse_varint(input),
            LengthPrefix::U8 => (1, true),
            LengthPrefix::U16Be => (2, true),
            LengthPrefix::U16Le => (2, false),
            LengthPrefix::U32Be => (4, true),
            LengthPrefix::U32Le => (4, false),
            LengthPrefix::U64Be => (8, true),
            LengthPrefix::U64Le => (8, false),
        };
        let Some(bytes) = input.get(..size) else { return Parsed::NeedsMore };
        let push = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let value = if is_big { bytes.iter().fold(0, push) } else { bytes.iter().rev().fold(0, push) };
        Parsed::Length { value, size }
    }

    fn write(self, length: u64, output: &mut Vec<u8>) {
        let bytes = length.to_be_bytes();
        match self {
            LengthPrefix::U8 => output.extend_from_slice(&bytes[7..]),
            LengthPrefix::U16Be => output.extend_from_slice(&bytes[6..]),
            LengthPrefix::U16Le => output.extend_from_slice(&length.to_le_bytes()[..2]),
            LengthPrefix::U32Be => output.extend_from_slice(&bytes[4..]),
            LengthPrefix::U32Le => output.extend_from_slice(&length.to_le_bytes()[..4]),
            LengthPrefix::U64Be => output.extend_from_slice(&bytes),
            LengthPrefix::U64Le => output.extend_from_slice(&length.to_le_bytes()),
            LengthPrefix::Varint => {
                let mut rest = length;
                while rest >= 0x80 {
                    output.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                output.push(rest as u8);
            }
        }
    }
}

fn parse_varint(input: &[u8]) -> Parsed {
    let mut value = 0u64;
    for (index, &byte) in input.iter().take(VARINT_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for a single bit.
        if index == VARINT_MAX - 1 && bits > 1 {
            return Parsed::Overflow;
        }
        value |= bits << (7 * index);
        if byte < 0x80 {
            return Parsed::Length { value, size: index + 1 };
        }
    }
    if input.len() < VARINT_MAX { Parsed::NeedsMore } else { Parsed::Overflow }
}

/// Cuts frames out of a stream whose frames say their length first.
///
/// A frame of length 0 is a frame. A frame that says a length above the maximum is refused as soon as its prefix has
/// come, so a peer cannot make the input grow by a lie.
///
/// ```
/// use pointsman::net::{FrameError, Framer, LengthFramer, LengthPrefix};
///
/// let mut framer = LengthFramer::new(LengthPrefix::U16Be, 1024).expect("a maximum above 0");
/// let mut stream = Vec::new();
/// framer.write(b"hello", &mut stream).expect("it is short enough");
/// assert_eq!(stream, b"\0\x05hello");
///
/// assert_eq!(framer.next(&stream[..4]), Ok(None)); // more has to come
/// let frame = framer.next(&stream).expect("it is short enough").expect("it is whole");
/// assert_eq!(frame.content(&stream), b"hello");
///
/// let error = framer.next(b"\x80\0").expect_err("32768 bytes are too many");
/// assert_eq!(error, FrameError::TooLong { position: 7, length: Some(32768), max: 1024 });
/// ```
#[derive(Debug, Clone)]
pub struct LengthFramer {
    prefix: LengthPrefix,
    max: usize,
    /// The number of bytes of the stream before the input.
    position: u64,
    /// The error that ended the stream.
    failed: Option<FrameError>,
}

impl LengthFramer {
    /// Makes a framer for frames whose content has at most `max` bytes.
    ///
    /// # Errors
    ///
    /// [`FramerError::ZeroMax`].
    pub fn new(prefix: LengthPrefix, max: usize) -> Result<Self, FramerError> {
        if max == 0 {
            return Err(FramerError::ZeroMax);
        }
        Ok(Self { prefix, max, position: 0, failed: None })
    }

    /// Appends `content` to `output` as a frame.
    ///
    /// # Errors
    ///
    /// [`FrameWriteError::TooLong`]: it is longer than the maximum, or than the prefix can say.
    pub fn write(&self, content: &[u8], output: &mut Vec<u8>) -> Result<(), FrameWriteError> {
        let max = usize::try_from(self.prefix.largest()).map_or(self.max, |largest| self.max.min(largest));
        if content.len() > max {
            return Err(FrameWriteError::TooLong { length: content.len(), max });
        }
        self.prefix.write(content.len() as u64, output);
        output.extend_from_slice(content);
        Ok(())
    }

    fn parse(&self, input: &[u8]) -> Result<Option<Frame>, FrameError> {
        let position = self.position;
        let (value, size) = match self.prefix.parse(input) {
            Parsed::Length { value, size } => (value, size),
            Parsed::NeedsMore => return Ok(None),
            Parsed::Overflow => return Err(FrameError::LengthOverflow { position }),
        };
        let too_long = FrameError::TooLong { position, length: Some(value), max: self.max };
        // A length beyond the machine's words is above every maximum.
        let Some(length) = usize::try_from(value).ok().filter(|length| *length <= self.max) else {
            return Err(too_long);
        };
        // No input can be as long as the largest word.
        let end = size.checked_add(length).ok_or(too_long)?;
        Ok((input.len() >= end).then_some(Frame { start: size, end, used: end }))
    }
}

impl Framer for LengthFramer {
    fn next(&mut self, input: &[u8]) -> Result<Option<Frame>, FrameError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let parsed = self.parse(input);
        match &parsed {
            Ok(Some(frame)) => self.position += frame.used as u64,
            Ok(None) => {}
            Err(error) => self.failed = Some(error.clone()),
        }
        parsed
    }

    fn end(&mut self, input: &[u8]) -> Result<Option<Frame>, FrameError> {
        let next = self.next(input)?;
        if next.is_none() && !input.is_empty() {
            let error = FrameError::Incomplete { position: self.position, received: input.len() };
            self.failed = Some(error.clone());
            return Err(error);
        }
        Ok(next)
    }
}
