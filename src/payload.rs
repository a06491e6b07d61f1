//! What a panic leaves behind.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Drops it. Its destructor is user code, which may panic in its turn: what that leaves is leaked, or there were no end.
pub fn discard(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
        std::mem::forget(again);
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use std::panic::panic_any;
    use std::sync::Arc;

    struct Bomb(#[allow(dead_code)] Arc<()>); // for its count

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic_any(Fuse(self.0.clone()));
        }
    }

    struct Fuse(#[allow(dead_code)] Arc<()>); // as above

    fn left_by(act: impl FnOnce()) -> Box<dyn Any + Send> {
        catch_unwind(AssertUnwindSafe(act)).expect_err("it panics")
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
        let alive = Arc::new(());
        discard(left_by(|| panic_any(Bomb(alive.clone()))));
        assert_eq!(Arc::strong_count(&alive), 2, "what the second panic left");
    }
}
