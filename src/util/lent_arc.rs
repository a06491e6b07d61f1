//! An `Arc` that is either counted, or a copy of another one that lives longer.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc as StdArc;

/// An `Arc` that is not counted where the holder knows that another one lives longer: the count would be a line that all
/// threads write.
pub(crate) struct LentArc<T>(ManuallyDrop<StdArc<T>>);

impl<T> LentArc<T> {
    /// A counted one, until it is [given back](Self::give_back).
    pub(crate) fn counted(value: StdArc<T>) -> Self {
        Self(ManuallyDrop::new(value))
    }

    /// A copy that is not counted.
    ///
    /// # Safety
    ///
    /// The copy is not used after the last counted one is gone.
    pub(crate) unsafe fn lent(value: &StdArc<T>) -> Self {
        // SAFETY: the pointer is that of a living `Arc`. The copy is not dropped, since `give_back` is called for
        // counted ones only, and is not used when the value is gone, by the caller's promise.
        Self(ManuallyDrop::new(unsafe { StdArc::from_raw(StdArc::as_ptr(value)) }))
    }

    /// Gives the count back to the caller.
    ///
    /// # Safety
    ///
    /// This one is [counted](Self::counted), and is not used any more.
    pub(crate) unsafe fn give_back(&mut self) -> StdArc<T> {
        // SAFETY: the caller's promise.
        unsafe { ManuallyDrop::take(&mut self.0) }
    }
}

impl<T> Deref for LentArc<T> {
    type Target = StdArc<T>;

    #[inline]
    fn deref(&self) -> &StdArc<T> {
        &self.0
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{LentArc, StdArc};

    #[test]
    fn a_lent_one_is_not_counted_and_one_that_is_given_back_is() {
        let value = StdArc::new(7);
        let mut counted = LentArc::counted(value.clone());
        // SAFETY: not used when `counted` is gone.
        let lent = unsafe { LentArc::lent(&counted) };
        assert_eq!((**lent, StdArc::strong_count(&value)), (7, 2));
        let copy = lent.clone();
        assert_eq!(StdArc::strong_count(&value), 3);
        drop((lent, copy));
        assert_eq!(StdArc::strong_count(&value), 2);
        // SAFETY: a counted one, and not used any more.
        drop(unsafe { counted.give_back() });
        assert_eq!(StdArc::strong_count(&value), 1);
    }
}
