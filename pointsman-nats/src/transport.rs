//! The bytes of a connection, as they are or as records of TLS.

use crate::connect_error::ConnectError;
#[cfg(feature = "tls")]
use crate::tls::TlsSession;
use std::io::{self, ErrorKind, IoSlice, Read, Write};

pub(crate) fn would_block(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

impl ConnectError {
    pub(crate) fn of_io(error: &io::Error) -> Self {
        Self::Io { why: error.to_string() }
    }
}

/// The outcome of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// So many bytes are with the operating system.
    Bytes(usize),
    /// There is no room now. So many bytes are in a record of TLS that is not written to its end.
    Blocked { begun: usize },
}

/// How bytes are carried.
pub(crate) enum Transport {
    Plain,
    #[cfg(feature = "tls")]
    Tls(Box<TlsSession>),
}

impl Transport {
    /// Reads bytes: `None` if there are none now; 0 of them if something has come that is no part of the text.
    pub(crate) fn read(
        &mut self,
        mut stream: impl Read + Write,
        space: &mut [u8],
    ) -> Result<Option<usize>, ConnectError> {
        match self {
            Transport::Plain => match stream.read(space) {
                Ok(0) => Err(ConnectError::Closed),
                Ok(count) => Ok(Some(count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Some(0)),
                Err(error) if would_block(&error) => Ok(None),
                Err(error) => Err(ConnectError::of_io(&error)),
            },
            #[cfg(feature = "tls")]
            Transport::Tls(session) => session.read(stream, space),
        }
    }

    /// Writes bytes. After [`Written::Blocked`] the next call begins with the same ones.
    pub(crate) fn write(
        &mut self,
        mut stream: impl Write,
        slices: &[IoSlice<'_>],
    ) -> Result<Written, ConnectError> {
        match self {
            Transport::Plain => loop {
                match stream.write_vectored(slices) {
                    Ok(0) if !slices.is_empty() => return Err(ConnectError::Closed),
                    Ok(count) => return Ok(Written::Bytes(count)),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if would_block(&error) => return Ok(Written::Blocked { begun: 0 }),
                    Err(error) => return Err(ConnectError::of_io(&error)),
                }
            },
            #[cfg(feature = "tls")]
            Transport::Tls(session) => session.write(stream, slices),
        }
    }

    /// The bytes that one write may take.
    pub(crate) fn write_max(&self) -> usize {
        match self {
            Transport::Plain => 256 * 1024,
            #[cfg(feature = "tls")]
            Transport::Tls(_) => crate::tls::RECORD_MAX,
        }
    }

    /// Whether bytes wait that are no part of the text.
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Transport::Plain => false,
            #[cfg(feature = "tls")]
            Transport::Tls(session) => session.wants_write(),
        }
    }

    /// Ends the text, as far as there is room.
    pub(crate) fn close(&mut self, stream: impl Write) {
        match self {
            Transport::Plain => drop(stream),
            #[cfg(feature = "tls")]
            Transport::Tls(session) => session.close(stream),
        }
    }
}
