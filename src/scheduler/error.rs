//! The reasons for which a pool of threads cannot be started or joined.

use crate::util::debug_by_display::debug_by_display;
use std::{error, fmt, io};

/// The reason for which threads could not be started.
#[non_exhaustive]
pub enum StartError {
    /// The number of threads is 0 or above the bound.
    ThreadCount {
        /// The number that was asked for.
        requested: usize,
        /// The largest possible number.
        max: usize,
    },
    /// The range of thread numbers is empty.
    EmptyThreadRange {
        /// The lower end.
        min: usize,
        /// The upper end, which is less.
        max: usize,
    },
    /// The throughput is 0: a turn of 0 messages would never handle any.
    ZeroThroughput,
    /// The number of cores named is not the number of threads.
    PinCount {
        /// Threads that were asked for.
        thread_count: usize,
        /// Cores that were named.
        core_count: usize,
    },
    /// The operating system refused to pin a worker to this core.
    Core {
        /// The core that cannot be had.
        core: usize,
        /// The cores on which the starting thread may run, as far as the system tells.
        available: Vec<usize>,
    },
    /// The operating system refused a thread.
    Thread(io::Error),
}

/// Compares refusals of the operating system by their kind and code.
impl PartialEq for StartError {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ThreadCount { requested, max }, Self::ThreadCount { requested: number, max: most }) => {
                (requested, max) == (number, most)
            }
            (Self::EmptyThreadRange { min, max }, Self::EmptyThreadRange { min: lower, max: upper }) => {
                (min, max) == (lower, upper)
            }
            (Self::ZeroThroughput, Self::ZeroThroughput) => true,
            (
                Self::PinCount { thread_count, core_count },
                Self::PinCount { thread_count: threads, core_count: cores },
            ) => (thread_count, core_count) == (threads, cores),
            (Self::Core { core, available }, Self::Core { core: number, available: all }) => {
                (core, available) == (number, all)
            }
            (Self::Thread(refusal), Self::Thread(another)) => {
                refusal.kind() == another.kind() && refusal.raw_os_error() == another.raw_os_error()
            }
            _ => false,
        }
    }
}

/// The reason for which threads could not be joined.
#[derive(Copy, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum JoinError {
    /// The caller is one of the threads, which cannot wait for itself.
    OwnThread,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThreadCount { requested, max } => {
                write!(f, "{requested} threads: must be between 1 and {max}")
            }
            Self::EmptyThreadRange { min, max } => {
                write!(f, "{min} to {max} threads: the upper end must not be below the lower")
            }
            Self::ZeroThroughput => write!(f, "throughput 0: must be at least 1 message per turn"),
            Self::PinCount { thread_count, core_count } => write!(
                f,
                "{thread_count} threads pinned to {core_count} cores: name one core for each thread"
            ),
            Self::Core { core, available } => {
                write!(f, "core {core} cannot be had: the process may use {available:?}, name one of these")
            }
            Self::Thread(_) => write!(f, "the operating system refused a thread"),
        }
    }
}

impl error::Error for StartError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Thread(source) => Some(source),
            _ => None,
        }
    }
}

debug_by_display! { StartError }

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnThread => {
                write!(f, "a dispatcher's own thread cannot wait for it to end: join from another thread")
            }
        }
    }
}

impl error::Error for JoinError {}

debug_by_display! { JoinError }
