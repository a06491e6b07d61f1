//! The seam on loom. Types that loom does not instrument are replaced by a lock-based stand-in that promises no more
//! than the contract we rely on; their own tests and stress tests cover the originals.

pub use loom::hint;
pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
/// Not instrumented: models see no race on it, so it may hold only values that order themselves, such as handles.
pub use std::sync::OnceLock;

/// Hashed alike in every execution: loom replays a model, and must meet the same order again.
pub type HashMap<K, V> = std::collections::HashMap<K, V, Alike>;
pub type HashSet<T> = std::collections::HashSet<T, Alike>;
type Alike = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

pub mod thread {
    pub use loom::thread::*;
    pub use std::thread::{available_parallelism, panicking};

    /// Models have no clock: the time is over at once, as it may be for any spurious return.
    pub fn park_timeout(_: std::time::Duration) {
        yield_now();
    }
}

/// Always true, since loom cannot tell: the thread that joins then waits for the end, which models may.
pub fn thread_has_ended<T>(_: &thread::JoinHandle<T>) -> bool {
    true
}

/// No padding: layouts don't matter in models.
#[derive(Debug, Default)]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    pub fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

pub mod deque {
    //! Stand-in for crossbeam-deque with the same names: a locked queue, and beside it a length that
    //! `is_empty` reads without the lock and Relaxed, so that a missing fence still fails a model.

    use super::atomic::{AtomicUsize, Ordering};
    use super::{Arc, Mutex};
    use std::collections::VecDeque;

    #[derive(Debug)]
    struct Shared<T> {
        queue: Mutex<VecDeque<T>>,
        length: AtomicUsize,
    }

    impl<T> Shared<T> {
        fn with<R>(&self, act: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
            let mut queue = self.queue.lock().unwrap();
            let before = queue.len();
            let result = act(&mut queue);
            let after = queue.len();
            // Both arms are read-modify-writes: loom lets a plain store slide between the halves of one.
            if after > before {
                self.length.fetch_add(after - before, Ordering::Relaxed);
            } else if before > after {
                self.length.fetch_sub(before - after, Ordering::Relaxed);
            }
            result
        }
    }

    #[derive(Debug)]
    pub struct Worker<T>(Arc<Shared<T>>);

    #[derive(Debug)]
    pub struct Stealer<T>(Arc<Shared<T>>);

    impl<T> Clone for Stealer<T> {
        fn clone(&self) -> Self {
            Self(self.0.clone())
        }
    }

    /// Outcome of an attempt to steal.
    #[derive(Debug)]
    pub enum Steal<T> {
        Empty,
        Success(T),
        /// The stand-in never returns it; callers must handle it for the original.
        #[allow(dead_code)] // as said
        Retry,
    }

    impl<T> Worker<T> {
        pub fn new_fifo() -> Self {
            Self(Arc::new(Shared { queue: Mutex::new(VecDeque::new()), length: AtomicUsize::new(0) }))
        }

        pub fn stealer(&self) -> Stealer<T> {
            Stealer(self.0.clone())
        }

        pub fn push(&self, task: T) {
            self.0.with(|queue| queue.push_back(task));
        }

        pub fn pop(&self) -> Option<T> {
            self.0.with(VecDeque::pop_front)
        }

        pub fn is_empty(&self) -> bool {
            self.0.length.load(Ordering::Relaxed) == 0
        }
    }

    impl<T> Stealer<T> {
        pub fn is_empty(&self) -> bool {
            self.0.length.load(Ordering::Relaxed) == 0
        }

        /// Takes the first task and moves half of the rest to `to`.
        pub fn steal_batch_and_pop(&self, to: &Worker<T>) -> Steal<T> {
            let mut batch = self.0.with(|queue| {
                let take = queue.len().div_ceil(2);
                queue.drain(..take).collect::<VecDeque<T>>()
            });
            let Some(first) = batch.pop_front() else { return Steal::Empty };
            for task in batch {
                to.push(task);
            }
            Steal::Success(first)
        }
    }
}

/// Stand-in for crossbeam-queue's bounded ring.
#[derive(Debug)]
pub struct ArrayQueue<T> {
    queue: Mutex<std::collections::VecDeque<T>>,
    capacity: usize,
}

impl<T> ArrayQueue<T> {
    pub fn new(capacity: usize) -> Self {
        Self { queue: Mutex::new(std::collections::VecDeque::new()), capacity }
    }

    /// Pushes; when full, the oldest element makes room and is returned.
    pub fn force_push(&self, value: T) -> Option<T> {
        let mut queue = self.queue.lock().unwrap();
        let oldest = if queue.len() == self.capacity { queue.pop_front() } else { None };
        queue.push_back(value);
        oldest
    }

    pub fn pop(&self) -> Option<T> {
        self.queue.lock().unwrap().pop_front()
    }

    /// Pushes, or hands the element back when full.
    pub fn push(&self, value: T) -> Result<(), T> {
        let mut queue = self.queue.lock().unwrap();
        if queue.len() == self.capacity {
            return Err(value);
        }
        queue.push_back(value);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        self.queue.lock().unwrap().len()
    }
}

/// Stand-in for crossbeam-queue's queue without a bound; as the one for crossbeam-deque, with a length beside it
/// that `is_empty` reads without the lock and Relaxed.
#[derive(Debug)]
pub struct SegQueue<T> {
    queue: Mutex<std::collections::VecDeque<T>>,
    length: atomic::AtomicUsize,
}

impl<T> SegQueue<T> {
    pub fn new() -> Self {
        Self { queue: Mutex::new(std::collections::VecDeque::new()), length: atomic::AtomicUsize::new(0) }
    }

    pub fn push(&self, value: T) {
        let mut queue = self.queue.lock().unwrap();
        queue.push_back(value);
        self.length.fetch_add(1, atomic::Ordering::Relaxed);
    }

    pub fn pop(&self) -> Option<T> {
        let mut queue = self.queue.lock().unwrap();
        let first = queue.pop_front();
        if first.is_some() {
            self.length.fetch_sub(1, atomic::Ordering::Relaxed);
        }
        first
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        self.length.load(atomic::Ordering::Relaxed)
    }
}

pub mod alloc {
    pub use loom::alloc::{alloc, dealloc};
}

pub mod cell {
    pub use loom::cell::UnsafeCell;
}

/// One thread-local of loom's holds all of ours: loom drops a thread's locals in the order of a randomly seeded
/// map, and an execution that does not repeat itself cannot be explored.
#[derive(Default)]
struct Locals(std::cell::RefCell<Vec<(usize, Box<dyn std::any::Any>)>>);

impl Drop for Locals {
    fn drop(&mut self) {
        drop_in_order(self.0.get_mut());
    }
}

/// Drops them in sequence, in the order in which they were made; not at all where a user's model has failed: loom drops
/// these then outside of any execution, where their destructors would panic, and abort the process.
fn drop_in_order<T>(values: &mut Vec<T>) {
    if super::explore::has_failed() {
        std::mem::forget(std::mem::take(values));
    }
    values.drain(..).for_each(drop);
}

loom::thread_local! {
    static LOCALS: Locals = Locals::default();
}

/// A thread-local value, made at first use.
pub struct Local<T> {
    make: fn() -> T,
}

impl<T: 'static> Local<T> {
    pub const fn new(make: fn() -> T) -> Self {
        Self { make }
    }

    pub fn with<R>(&'static self, act: impl FnOnce(&T) -> R) -> R {
        self.try_with(act).expect("the thread's locals are alive")
    }

    pub fn try_with<R>(&'static self, act: impl FnOnce(&T) -> R) -> Result<R, loom::thread::AccessError> {
        let key = std::ptr::from_ref(self) as usize;
        let find = |locals: &Locals| {
            let locals = locals.0.borrow();
            let value = locals.iter().find(|(other, _)| *other == key)?.1.downcast_ref::<T>()?;
            Some(std::ptr::from_ref(value))
        };
        LOCALS.try_with(|locals| {
            let value = find(locals).unwrap_or_else(|| {
                // Nothing is borrowed meanwhile: this may use other locals.
                let value = Box::new((self.make)());
                locals.0.borrow_mut().push((key, value));
                find(locals).expect("just put there")
            });
            // SAFETY: boxed, and dropped only with the thread's locals, which `try_with` keeps alive.
            act(unsafe { &*value })
        })
    }
}

macro_rules! per_thread {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $init:expr;) => {
        $(#[$meta])* static $name: $crate::sync::Local<$type> = $crate::sync::Local::new(|| $init);
    };
}
pub(crate) use per_thread;

/// Every process-wide value of an execution: loom drops its statics, too, in the order of a randomly seeded map, while
/// threads that were joined may still be dropping their locals.
#[derive(Default)]
struct Statics(std::cell::RefCell<Vec<Box<dyn std::any::Any>>>);

impl Drop for Statics {
    fn drop(&mut self) {
        drop_in_order(self.0.get_mut());
    }
}

loom::lazy_static! {
    static ref STATICS: Statics = Statics::default();
}

/// A process-wide value, which lives in `STATICS`; loom's static has its place only, and nothing to drop.
pub struct Static<T>(std::ptr::NonNull<T>);

impl<T: 'static> Static<T> {
    pub fn new(value: T) -> Self {
        let value = Box::new(value);
        let place = std::ptr::NonNull::from(&*value);
        STATICS.0.borrow_mut().push(value);
        Self(place)
    }
}

impl<T> std::ops::Deref for Static<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: boxed, and dropped only with loom's statics, which then gives no reference to any more.
        unsafe { self.0.as_ref() }
    }
}

macro_rules! process_wide {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $init:expr;) => {
        loom::lazy_static! {
            $(#[$meta])* static ref $name: $crate::sync::Static<$type> = $crate::sync::Static::new($init);
        }
    };
}
pub(crate) use process_wide;
