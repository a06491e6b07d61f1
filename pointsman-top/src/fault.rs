//! Why a server has no answer that can be shown.

use crate::snapshot::VERSION;
use std::fmt;
use std::io;

/// The reason why there is no snapshot.
#[derive(Debug)]
pub enum Fault {
    /// Nothing listens, or the address is unknown.
    Connect(io::Error),
    /// The connection ended or failed within the answer.
    Io(io::Error),
    /// The answer did not come in time.
    TimedOut,
    /// The answer has more bytes than this.
    TooLarge(usize),
    /// The answer is no HTTP that this program reads.
    Http(&'static str),
    /// The server refuses, with a status and the first line of its page.
    Status(u16, String),
    /// The server speaks another version of the format.
    Version(u32),
    /// The page is no snapshot.
    Page(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Connect(error) => write!(f, "cannot connect: {error}"),
            Fault::Io(error) => write!(f, "the connection failed: {error}"),
            Fault::TimedOut => f.write_str("the server does not answer in time"),
            Fault::TooLarge(most) => {
                write!(f, "the answer has more than {} MiB: ask for fewer actors by --limit", most >> 20)
            }
            Fault::Http(fault) => write!(f, "the answer is no HTTP that a console sends: {fault}"),
            Fault::Status(status, text) if text.is_empty() => {
                write!(f, "the server refuses with status {status}")
            }
            Fault::Status(status, text) => write!(f, "the server refuses with status {status}: {text}"),
            Fault::Version(version) => {
                write!(
                    f,
                    "the server speaks version {version} of the format, and this program version {VERSION}"
                )
            }
            Fault::Page(fault) => write!(f, "the page is no snapshot: {fault}"),
        }
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Fault::Connect(error) | Fault::Io(error) => Some(error),
            _ => None,
        }
    }
}
