//! The seam on the standard library.

pub(crate) use crossbeam_utils::CachePadded;
/// Iterated in an order that models can repeat.
pub(crate) use std::collections::{HashMap, HashSet};
pub(crate) use std::sync::atomic;
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
pub(crate) use std::{hint, thread};

/// Whether a thread has ended, so that to join it takes no time.
pub(crate) fn thread_has_ended<T>(handle: &thread::JoinHandle<T>) -> bool {
    handle.is_finished()
}

/// Work-stealing deques.
pub(crate) mod deque {
    pub(crate) use crossbeam_deque::{Steal, Stealer, Worker};
}

/// Bounded multi-producer, multi-consumer ring.
pub(crate) use crossbeam_queue::ArrayQueue;

/// The same without a bound, in blocks of 31 elements.
pub(crate) use crossbeam_queue::SegQueue;

/// The allocator, watched for leaks and double frees in models.
pub(crate) mod alloc {
    pub(crate) use std::alloc::{alloc, dealloc};
}

pub(crate) mod cell {
    /// `std`'s cell with loom's closure interface.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        #[inline(always)]
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        /// Gives a pointer for reading; the caller guarantees that no thread writes meanwhile.
        #[inline(always)]
        pub(crate) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
            look(self.0.get())
        }

        /// Gives a pointer for writing; the caller guarantees exclusive access meanwhile.
        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
            change(self.0.get())
        }
    }
}

/// Declares a thread-local; the initial value must be a constant expression.
macro_rules! per_thread {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $init:expr;) => {
        std::thread_local! { $(#[$meta])* static $name: $type = const { $init }; }
    };
}
pub(crate) use per_thread;

/// Declares a process-wide value, made at first use; on lines of its own, since each routed send reads one of them and
/// the linker puts any other static beside it.
macro_rules! process_wide {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $init:expr;) => {
        $(#[$meta])* static $name: $crate::sync::CachePadded<std::sync::LazyLock<$type>> =
            $crate::sync::CachePadded::new(std::sync::LazyLock::new(|| $init));
    };
}
pub(crate) use process_wide;
