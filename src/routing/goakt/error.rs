//! Why a router could not be spawned.

use crate::core::error::SpawnError;
use std::fmt;

/// The reason why [`SpawnRouter::spawn`](super::SpawnRouter::spawn) failed. Faults are looked for in the order of the
/// variants, and the first fault is reported.
///
/// GoAkt's fourth fault, consistent hashing without an extractor of keys, cannot be written down here.
#[derive(Debug)]
#[non_exhaustive]
pub enum RouterError {
    /// The pool was to have 0 routees. GoAkt's `ErrInvalidPoolSize`.
    PoolSize {
        /// The router's name.
        router: String,
    },
    /// Tail-chopping with an interval or a deadline of 0.
    TailChopping {
        /// The router's name.
        router: String,
        /// A text that says which of them.
        fault: String,
    },
    /// Scatter-gather-first with a deadline of 0.
    ScatterGather {
        /// The router's name.
        router: String,
        /// A text that says the fault.
        fault: String,
    },
    /// Two options decide about a failing routee. In GoAkt the last option counts.
    TwoDirectives {
        /// The router's name.
        router: String,
        /// The options, in the order in which they were given.
        options: [&'static str; 2],
    },
    /// A fault that any router can have: a taken name, a factory that fails, a system that is shut down.
    Spawn(SpawnError),
}

impl fmt::Display for RouterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PoolSize { router } => write!(f, "pool size 0 for router {router:?}: must be at least 1"),
            Self::TailChopping { router, fault } => {
                write!(f, "tail-chopping of router {router:?}: {fault}")
            }
            Self::ScatterGather { router, fault } => {
                write!(f, "scatter-gather-first of router {router:?}: {fault}")
            }
            Self::TwoDirectives { router, options: [one, other] } => {
                write!(f, "router {router:?} has both `{one}` and `{other}`: give one of them, once")
            }
            Self::Spawn(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RouterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Spawn(error) => Some(error),
            _ => None,
        }
    }
}

impl From<SpawnError> for RouterError {
    fn from(error: SpawnError) -> Self {
        Self::Spawn(error)
    }
}
