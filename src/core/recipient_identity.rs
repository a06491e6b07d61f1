//! Recipients that are equal because they mean the same recipient.

use std::any::Any;
use std::cmp::Ordering;
use std::hash::Hasher;

/// The identity of recipients of a single type, where it is not their address.
pub(crate) trait SameRecipient: 'static {
    /// Returns whether both mean the same recipient.
    fn is_like(&self, other: &Self) -> bool;

    /// Feeds the hash with the data that equal recipients have in common.
    fn feed(&self, state: &mut dyn Hasher);

    /// A total order in which recipients that mean the same are equal.
    fn order(&self, other: &Self) -> Ordering;
}

/// A [`SameRecipient`] of any type.
pub(crate) trait RecipientIdentity {
    fn as_any(&self) -> &dyn Any;
    fn is_same(&self, other: &dyn RecipientIdentity) -> bool;
    fn hash(&self, state: &mut dyn Hasher);
    fn order(&self, other: &dyn RecipientIdentity) -> Ordering;
}
