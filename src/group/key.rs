//! A key tells the actors of a group apart.

use std::fmt::Display;
use std::hash::Hash;

/// A group key tells the actors of a group apart. The trait is implemented for every type that can be cloned, compared,
/// hashed, printed, and shared between threads.
///
/// Equality and hash run on the senders' threads, once for each look-up. The printed form, escaped where paths need it,
/// is the name of the actor; names of keys that print alike are told apart by `~2`, `~3`, …
pub trait GroupKey: Clone + Eq + Hash + Display + Send + Sync + 'static {}

impl<K: Clone + Eq + Hash + Display + Send + Sync + 'static> GroupKey for K {}
