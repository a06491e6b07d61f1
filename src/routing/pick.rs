//! The routee that a logic has picked.

/// What a logic answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pick {
    /// The routee of this index.
    One(usize),
    /// Nobody: the message becomes a dead letter, or comes back to `try_tell`.
    None,
}
