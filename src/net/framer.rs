//! Framers: they cut frames out of a stream of bytes.
//!
//! A framer holds no bytes. The caller keeps the input that has come in, and the framer says where the next frame lies
//! in it. So no byte is copied, and the memory of the input is bounded by the caller, who knows the longest frame.

use crate::util::debug_by_display::debug_by_display;
use std::fmt;

/// The place of a frame in the input that a [`Framer`] was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The frame's content begins here.
    pub start: usize,
    /// The content ends before this.
    pub end: usize,
    /// The number of bytes at the front of the input that belong to the frame, with its prefix or its line end. The
    /// input of the next call begins behind them.
    pub used: usize,
}

impl Frame {
    /// Returns the frame's content in the input that the framer was given.
    ///
    /// # Panics
    ///
    /// When `input` is shorter than the input that the framer was given.
    pub fn content<'a>(&self, input: &'a [u8]) -> &'a [u8] {
        &input[self.start..self.end]
    }
}

/// Cuts frames out of a stream of bytes: [`LengthFramer`](crate::net::LengthFramer) and
/// [`LineFramer`](crate::net::LineFramer), or a framer of your own. [`Connection::next_frame`](crate::net::Connection::next_frame)
/// runs it over a connection's input.
///
/// The frames do not depend on how the stream comes in pieces. An error is final: the framer returns it again, because
/// the next frame's begin is unknown.
pub trait Framer {
    /// Looks for a frame at the front of `input`. `None` means that the input holds no whole frame: call it again with
    /// the same bytes and more behind them. After a frame, the next input begins behind its [`used`](Frame::used)
    /// bytes. A frame uses at least one byte, and its content lies within the bytes that it uses.
    ///
    /// # Errors
    ///
    /// [`FrameError`]: the stream breaks the rules of its frames. No byte is used up.
    fn next(&mut self, input: &[u8]) -> Result<Option<Frame>, FrameError>;

    /// As [`next`](Self::next), when the stream ends behind `input`.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next); and [`FrameError::Incomplete`] if the stream ends within a frame.
    fn end(&mut self, input: &[u8]) -> Result<Option<Frame>, FrameError>;
}

/// The reason why a stream has no further frame. `position` counts the bytes of the stream before the frame at fault.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame is longer than the maximum.
    TooLong {
        /// The place of the frame in the stream, in bytes.
        position: u64,
        /// The length that its prefix says, in bytes; `None` for a line.
        length: Option<u64>,
        /// The maximum, in bytes.
        max: usize,
    },
    /// A length prefix says more than 64 bits can.
    LengthOverflow {
        /// The place of the frame in the stream, in bytes.
        position: u64,
    },
    /// The stream ended within a frame.
    Incomplete {
        /// The place of the frame in the stream, in bytes.
        position: u64,
        /// The number of bytes of the frame that have come, with those of its prefix.
        received: usize,
    },
}

impl FrameError {
    /// Returns the number of bytes of the stream before the frame at fault.
    pub fn position(&self) -> u64 {
        match self {
            FrameError::TooLong { position, .. }
            | FrameError::LengthOverflow { position }
            | FrameError::Incomplete { position, .. } => *position,
        }
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::TooLong { position, length: Some(length), max } => write!(
                f,
                "the frame at byte {position} has {length} bytes, and at most {max} are allowed: close the \
                 connection, or raise the maximum"
            ),
            FrameError::TooLong { position, length: None, max } => write!(
                f,
                "the line at byte {position} has more than the {max} bytes that are allowed: close the \
                 connection, or raise the maximum"
            ),
            FrameError::LengthOverflow { position } => write!(
                f,
                "the length prefix at byte {position} does not end within 64 bits: close the connection, the \
                 peer does not send such frames"
            ),
            FrameError::Incomplete { position, received } => write!(
                f,
                "the stream ended within the frame at byte {position}, of which {received} bytes came: take \
                 the frame for lost"
            ),
        }
    }
}

impl std::error::Error for FrameError {}

debug_by_display! { FrameError }

/// The reason why a framer cannot be made.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FramerError {
    /// The maximum is 0, so no frame could pass.
    ZeroMax,
}

impl fmt::Display for FramerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a framer with a maximum of 0 bytes lets no frame pass: give it at least 1")
    }
}

impl std::error::Error for FramerError {}

debug_by_display! { FramerError }

/// The reason why content cannot be written as a frame. Nothing was written.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameWriteError {
    /// The content is longer than the maximum, or than the prefix can say.
    TooLong {
        /// The length of the content, in bytes.
        length: usize,
        /// The largest length that can be written, in bytes.
        max: usize,
    },
    /// A line holds a line feed, and would be read as two.
    LineFeed {
        /// The place of the line feed in the content.
        at: usize,
    },
    /// A line ends with a carriage return, which its reader would take for a part of the line end.
    CarriageReturn,
}

impl fmt::Display for FrameWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameWriteError::TooLong { length, max } => {
                write!(f, "a frame of {length} bytes cannot be written: at most {max} are allowed")
            }
            FrameWriteError::LineFeed { at } => {
                write!(f, "a line cannot hold a line feed, as at its byte {at}: send it as two lines")
            }
            FrameWriteError::CarriageReturn => {
                f.write_str("a line cannot end with a carriage return: its reader would drop it")
            }
        }
    }
}

impl std::error::Error for FrameWriteError {}

debug_by_display! { FrameWriteError }
