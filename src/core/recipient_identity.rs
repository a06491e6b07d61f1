//! Recipients that are equal because they mean the same.

use std::any::Any;
use std::cmp::Ordering;
use std::hash::Hasher;

/// What tells recipients of one type apart, where it is not their address.
pub trait SameRecipient: 'static {
    /// Whether both mean the same.
    fn is_like(&self, other: &Self) -> bool;

    /// Feeds what alike ones have in common.
    fn feed(&self, state: &mut dyn Hasher);

    /// A total order in which alike ones are equal.
    fn order(&self, other: &Self) -> Ordering;
}

/// An [`SameRecipient`] of whatever type.
pub trait RecipientIdentity {
    fn as_any(&self) -> &dyn Any;
    fn is_same(&self, other: &dyn RecipientIdentity) -> bool;
    fn hash(&self, state: &mut dyn Hasher);
    fn order(&self, other: &dyn RecipientIdentity) -> Ordering;
}
