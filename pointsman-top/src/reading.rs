//! An attempt to read a snapshot, and what came of it.

use crate::snapshot::Snapshot;

/// An attempt to read a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Seconds since the reader began.
    pub at: f64,
    /// The snapshot, or the reason why there is none.
    pub outcome: Result<Snapshot, String>,
}
