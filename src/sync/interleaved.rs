//! The seam on shuttle, which chooses the next thread at each step of any thread. All memory is sequentially consistent
//! there: the models on loom check orderings.
//!
//! Foreign queues are the originals, with a step before each operation: shuttle runs all threads on one of the
//! operating system's, so an operation is whole when the next thread goes on.

pub use crossbeam_utils::CachePadded;
pub use shuttle::hint;
pub use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
/// Not a step: it may hold only values that order themselves, and its initialiser must take no step.
pub use std::sync::OnceLock;

/// Hashed alike in every execution: a schedule is replayed by the same steps in the same order.
pub type HashMap<K, V> = std::collections::HashMap<K, V, Alike>;
pub type HashSet<T> = std::collections::HashSet<T, Alike>;
type Alike = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

pub mod thread {
    pub use shuttle::thread::*;
    pub use std::thread::available_parallelism;

    /// There is no clock: the time is over at once, as it may be for any spurious return.
    pub fn park_timeout(_: std::time::Duration) {
        yield_now();
    }
}

/// Always true, since shuttle cannot tell: the thread that joins then waits for the end, which scenarios may.
pub fn thread_has_ended<T>(_: &thread::JoinHandle<T>) -> bool {
    true
}

/// Lets another thread go on, or this one. Unlike `yield_now` it prefers neither.
fn step() {
    // shuttle has no time either; this is its plain step.
    thread::sleep(std::time::Duration::ZERO);
}

pub mod deque {
    use super::step;
    pub use crossbeam_deque::Steal;

    #[derive(Debug)]
    pub struct Worker<T>(crossbeam_deque::Worker<T>);

    #[derive(Debug)]
    pub struct Stealer<T>(crossbeam_deque::Stealer<T>);

    impl<T> Worker<T> {
        pub fn new_fifo() -> Self {
            Self(crossbeam_deque::Worker::new_fifo())
        }

        pub fn stealer(&self) -> Stealer<T> {
            Stealer(self.0.stealer())
        }

        pub fn push(&self, task: T) {
            step();
            self.0.push(task);
        }

        pub fn pop(&self) -> Option<T> {
            step();
            self.0.pop()
        }

        pub fn is_empty(&self) -> bool {
            step();
            self.0.is_empty()
        }
    }

    impl<T> Stealer<T> {
        pub fn is_empty(&self) -> bool {
            step();
            self.0.is_empty()
        }

        pub fn steal_batch_and_pop(&self, to: &Worker<T>) -> Steal<T> {
            step();
            self.0.steal_batch_and_pop(&to.0)
        }
    }
}

/// Bounded multi-producer, multi-consumer ring.
#[derive(Debug)]
pub struct ArrayQueue<T>(crossbeam_queue::ArrayQueue<T>);

impl<T> ArrayQueue<T> {
    pub fn new(capacity: usize) -> Self {
        Self(crossbeam_queue::ArrayQueue::new(capacity))
    }

    pub fn force_push(&self, value: T) -> Option<T> {
        step();
        self.0.force_push(value)
    }

    pub fn push(&self, value: T) -> Result<(), T> {
        step();
        self.0.push(value)
    }

    pub fn pop(&self) -> Option<T> {
        step();
        self.0.pop()
    }

    pub fn is_empty(&self) -> bool {
        step();
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        step();
        self.0.len()
    }
}

/// The same without a bound.
#[derive(Debug)]
pub struct SegQueue<T>(crossbeam_queue::SegQueue<T>);

impl<T> SegQueue<T> {
    pub fn new() -> Self {
        Self(crossbeam_queue::SegQueue::new())
    }

    pub fn push(&self, value: T) {
        step();
        self.0.push(value);
    }

    pub fn pop(&self) -> Option<T> {
        step();
        self.0.pop()
    }

    pub fn is_empty(&self) -> bool {
        step();
        self.0.is_empty()
    }
}

pub mod alloc {
    pub use std::alloc::{alloc, dealloc};
}

pub mod cell {
    use std::cell::Cell;

    /// A cell that fails the scenario when two accesses overlap, of which one writes.
    ///
    /// It sees accesses between which a thread takes a step; loom's cell sees all.
    #[derive(Debug)]
    pub struct UnsafeCell<T> {
        value: std::cell::UnsafeCell<T>,
        /// Readers within, or -1 for a writer.
        within: Cell<isize>,
    }

    struct Leave<'a>(&'a Cell<isize>, isize);

    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - self.1);
        }
    }

    impl<T> UnsafeCell<T> {
        pub const fn new(value: T) -> Self {
            Self { value: std::cell::UnsafeCell::new(value), within: Cell::new(0) }
        }

        pub fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
            assert!(self.within.get() >= 0, "a cell is read while another access writes it");
            let _leave = self.enter(1);
            look(self.value.get())
        }

        pub fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
            assert!(self.within.get() == 0, "a cell is written while another access is within");
            let _leave = self.enter(-1);
            change(self.value.get())
        }

        fn enter(&self, by: isize) -> Leave<'_> {
            self.within.set(self.within.get() + by);
            Leave(&self.within, by)
        }
    }
}

macro_rules! per_thread {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $init:expr;) => {
        shuttle::thread_local! { $(#[$meta])* static $name: $type = const { $init }; }
    };
}
pub(crate) use per_thread;

macro_rules! process_wide {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $init:expr;) => {
        shuttle::lazy_static! { $(#[$meta])* static ref $name: $type = $init; }
    };
}
pub(crate) use process_wide;
