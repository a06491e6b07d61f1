//! Why a router could not be spawned.

use crate::core::error::SpawnError;
use std::fmt;

/// Why [`SpawnRouter::spawn`](super::SpawnRouter::spawn) failed. What is wrong is looked for in the order of
/// the variants, and the first fault is told.
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
        /// Which of them.
        fault: String,
    },
    /// Scatter-gather-first with a deadline of 0.
    ScatterGather {
        /// The router's name.
        router: String,
        /// What is wrong.
        fault: String,
    },
    /// Two options say what happens to a failing routee. In GoAkt the last one counts.
    TwoDirectives {
        /// The router's name.
        router: String,
        /// The options, in the order in which they were given.
        options: [&'static str; 2],
    },
    /// What can be wrong with any router: a taken name, a factory that fails, a system that is shut down.
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
