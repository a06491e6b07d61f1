//! The routee that a logic has picked.

/// The answer of a logic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pick {
    /// The routee of this index.
    One(usize),
    /// No routee: the message becomes a dead letter, or comes back to `try_tell`.
    None,
}
