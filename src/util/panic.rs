//! Drops the payload of a panic, and keeps a panic in a destructor from becoming two.

use crate::util::panic;
use std::any::Any;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Drops a panic's payload. The payload's destructor is user code and may panic in its turn. The payload of that second
/// panic is leaked, since dropping it could go on without end.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
        std::mem::forget(again);
    }
}

/// A value of a user's type that is dropped together with other values. A panic in its drop is caught here. Uncaught,
/// the second of two such panics would abort the process.
#[derive(Clone)]
pub(crate) struct Guarded<T>(ManuallyDrop<T>);

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    pub(crate) fn into_inner(self) -> T {
        let mut guard = ManuallyDrop::new(self);
        // SAFETY: the guard is not dropped, so nothing uses the value there again.
        unsafe { ManuallyDrop::take(&mut guard.0) }
    }
}

impl<T> Deref for Guarded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Guarded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        // SAFETY: the guard is being dropped, so nothing uses the value there again.
        drop_guarded(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

/// Drops a value of a user's type; a panic in its destructor is caught.
pub(crate) fn drop_guarded<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(move || drop(value))) {
        panic::discard(payload);
    }
}

/// Runs a subscriber's code and catches its panic: the publisher is not at fault, and may already be unwinding.
pub(crate) fn quietly(run: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
        drop_guarded(payload);
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use std::panic::panic_any;
    use std::sync::Arc;

    struct Fuse(#[allow(dead_code)] Arc<()>); // for its count

    static BOMBS_DROPPED: AtomicUsize = AtomicUsize::new(0);
    static SPLINTERS_DROPPED: AtomicUsize = AtomicUsize::new(0);

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            BOMBS_DROPPED.fetch_add(1, Ordering::Relaxed);
            panic_any(Splinter);
        }
    }

    /// A type without a size: a leaked value leaks no memory, which a sanitizer would report.
    struct Splinter;

    impl Drop for Splinter {
        fn drop(&mut self) {
            SPLINTERS_DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn left_by(act: impl FnOnce()) -> Box<dyn Any + Send> {
        catch_unwind(AssertUnwindSafe(act)).expect_err("it panics")
    }

    #[test]
    fn each_of_several_that_panic_in_one_list_is_dropped() {
        struct Sore<'a>(&'a AtomicUsize);

        impl Drop for Sore<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
                panic!("planted");
            }
        }

        let dropped = AtomicUsize::new(0);
        let mut list: Vec<_> = (0..4).map(|_| Guarded::new(Sore(&dropped))).collect();
        let taken = list.pop().map(Guarded::into_inner);
        drop(list);
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
        drop_guarded(taken);
        assert_eq!(dropped.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn what_a_panic_leaves_is_dropped() {
        let alive = Arc::new(());
        let payload = left_by(|| panic_any(Fuse(alive.clone())));
        assert_eq!(Arc::strong_count(&alive), 2);
        discard(payload);
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn a_payload_that_panics_is_dropped_and_only_the_next_one_leaked() {
        discard(left_by(|| panic_any(Bomb)));
        let dropped = [&BOMBS_DROPPED, &SPLINTERS_DROPPED].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(dropped, [1, 0], "what the second panic left is leaked");
    }
}
