//! A [`PerThread`] keeps a value for each thread that uses an object: cursors, random generators, counters.
//!
//! Two threads that write to one cache line cost each other tens of nanoseconds a write. So each thread's value has
//! cache lines of its own. The value is found by the thread's small number ([`thread_index`]): one thread-local read,
//! one Acquire load, one index.
//!
//! # Protocol
//!
//! 1. Slots live in chunks of 1, 1, 2, 4, 8, … slots, so that the leading bit of a number picks its chunk and its
//!    place. A chunk is installed at first use, never moves, and is freed only with the whole object.
//! 2. Two threads may need the same chunk at once. Both allocate, one compare-and-swap wins, and the loser frees its
//!    own chunk and uses the winner's.
//! 3. Only the thread that holds the number writes its slot, once: the value, then `ready` with Release. A thread that
//!    reads the values of other threads loads `ready` with Acquire.
//!
//! # A value outlives its thread
//!
//! Numbers are reused, and with a number the next thread inherits the value. That is safe for a `T` that isn't `Sync`
//! (but is `Send`), because a number is handed on through the lock that guards the free numbers: each action of the old
//! thread on the value happens before each action of the new thread.
//!
//! Threads whose thread-locals are already gone have no number; they share one value behind a lock.

use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{CachePadded, Mutex, lock, thread_index};
use std::cell::Cell;
use std::fmt;
use std::ptr;

/// Chunk `c` has 2^c values: enough for every thread that an address space can hold.
#[cfg(not(pointsman_loom))]
const CHUNKS: usize = 32;
/// Models have at most five threads.
#[cfg(pointsman_loom)]
const CHUNKS: usize = 4;

/// A value of type `T` for each thread that asks for one.
///
/// Aligned to a cache line, since all those threads read `chunks`, and the heap may put any other value beside it.
#[repr(align(64))]
pub(crate) struct PerThread<T> {
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    /// The number of values ever made.
    entered: AtomicUsize,
    /// The value of threads without a number.
    shared: Mutex<Option<T>>,
}

/// One thread's value, on cache lines of its own.
struct Slot<T>(CachePadded<Contents<T>>);

struct Contents<T> {
    /// Whether `value` is there; once true, it stays true. Written by the owner only.
    ready: AtomicBool,
    /// Whether the owner is inside `fill`. Touched by the owner only.
    busy: Cell<bool>,
    value: UnsafeCell<Option<T>>,
}

impl<T: Send> PerThread<T> {
    /// Makes an object that no thread has used.
    pub(crate) fn new() -> Self {
        Self {
            chunks: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            entered: AtomicUsize::new(0),
            shared: Mutex::new(None),
        }
    }

    /// Calls `act` with the calling thread's value, made by `make` if this is its first call.
    ///
    /// `make` gets the number of values made before: the first thread to use this object gets 0, the second 1, whatever
    /// their thread numbers are. In a thread without thread-locals, `act` must not call `with` on the same object: the
    /// value is behind a lock there.
    #[inline(always)]
    pub(crate) fn with<R>(&self, make: impl FnOnce(usize) -> T, act: impl FnOnce(&T) -> R) -> R {
        let Some(number) = thread_index::current() else { return self.with_shared(make, act) };
        let slot = self.slot(number);
        // SAFETY: only the thread that holds `number` gets here or writes it.
        if slot.value.with(|value| unsafe { (*value).is_none() }) {
            self.fill(slot, make);
        }
        slot.value.with(|value| {
            // SAFETY: only the thread that holds `number` gets here, `fill` ended before, and the value is
            // never written again while `self` is borrowed.
            let value = unsafe { &*value };
            act(value.as_ref().expect("filled above"))
        })
    }

    /// Returns the number of values.
    #[cfg(any(test, pointsman_loom))]
    pub(crate) fn entered(&self) -> usize {
        self.entered.load(Ordering::Relaxed)
    }

    #[cold]
    fn with_shared<R>(&self, make: impl FnOnce(usize) -> T, act: impl FnOnce(&T) -> R) -> R {
        let mut shared = lock(&self.shared);
        act(shared.get_or_insert_with(|| make(self.entered.fetch_add(1, Ordering::Relaxed))))
    }

    #[cold]
    fn fill(&self, slot: &Contents<T>, make: impl FnOnce(usize) -> T) {
        assert!(!slot.busy.replace(true), "a per-thread value asked for itself while it was made");
        let _done = Finally(&slot.busy);
        let made = make(self.entered.fetch_add(1, Ordering::Relaxed));
        slot.value.with_mut(|value| {
            // SAFETY: the slot is this thread's, `busy` keeps its inner calls out, and readers of other
            // threads wait for `ready`.
            unsafe { *value = Some(made) };
        });
        // Ordering: Release; pairs with the Acquire load in `for_each`. A thread that sees the flag sees the value.
        slot.ready.store(true, Ordering::Release);
    }

    #[inline]
    fn slot(&self, number: usize) -> &Contents<T> {
        let (chunk, place) = position(number);
        // Ordering: Acquire; pairs with the Release exchange in `install`. A thread that finds a chunk finds its slots
        // initialised.
        let mut first = self.chunks[chunk].load(Ordering::Acquire);
        if first.is_null() {
            first = self.install(chunk);
        }
        // SAFETY: the chunk has `slots_of(chunk)` slots, `position` stays below, and chunks stay in place as
        // long as `self`.
        &unsafe { &*first.add(place) }.0
    }

    #[cold]
    fn install(&self, chunk: usize) -> *mut Slot<T> {
        let slots: Box<[Slot<T>]> = (0..slots_of(chunk)).map(|_| Slot::empty()).collect();
        let ours = Box::into_raw(slots).cast::<Slot<T>>();
        // Ordering: Release, Acquire on failure; the Release pairs with the Acquire load in `slot`, the Acquire of a
        // failure with the winner's Release here. A thread that finds a chunk finds it initialised. The winner has
        // found null, behind which there is nothing to see.
        match self.chunks[chunk].compare_exchange(ptr::null_mut(), ours, Ordering::Release, Ordering::Acquire)
        {
            Ok(_) => ours,
            Err(theirs) => {
                // SAFETY: `ours` was made above for this chunk, and no other thread has seen it.
                unsafe { free_chunk(ours, chunk) };
                theirs
            }
        }
    }
}

impl<T: Send + Sync> PerThread<T> {
    /// Calls `look` with every value that exists by now, in no particular order; must not be called inside `with`.
    pub(crate) fn for_each(&self, mut look: impl FnMut(&T)) {
        for (chunk, first) in self.chunks.iter().enumerate() {
            // Ordering: Acquire; pairs with the Release exchange in `install`, as in `slot`.
            let first = first.load(Ordering::Acquire);
            if first.is_null() {
                continue;
            }
            for place in 0..slots_of(chunk) {
                // SAFETY: as in `slot`.
                let slot = &unsafe { &*first.add(place) }.0;
                // Ordering: Acquire; pairs with the Release store in `fill`. The value is whole.
                if slot.ready.load(Ordering::Acquire) {
                    slot.value.with(|value| {
                        // SAFETY: `ready` says that the value is there, and it is never written again.
                        let value = unsafe { &*value };
                        look(value.as_ref().expect("filled when `ready` is set"));
                    });
                }
            }
        }
        if let Some(value) = &*lock(&self.shared) {
            look(value);
        }
    }
}

impl<T> Drop for PerThread<T> {
    fn drop(&mut self) {
        for (chunk, first) in self.chunks.iter().enumerate() {
            // Ordering: Relaxed; exclusive access comes after each shared access.
            let first = first.load(Ordering::Relaxed);
            if !first.is_null() {
                // SAFETY: `install` made this chunk, and `self` is ending, so no thread uses the chunk.
                unsafe { free_chunk(first, chunk) };
            }
        }
    }
}

impl<T: Send> Default for PerThread<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for PerThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entered = self.entered.load(Ordering::Relaxed);
        f.debug_struct("PerThread").field("entered", &entered).finish_non_exhaustive()
    }
}

// SAFETY: a value is used by one thread at a time, the holder of its number, and passes to the next holder
// through the lock on the free numbers; `T: Send` allows that. `for_each` shares values and asks for
// `T: Sync` itself.
unsafe impl<T: Send> Sync for PerThread<T> {}

// SAFETY: a `PerThread` owns its values, which may be dropped in any thread.
unsafe impl<T: Send> Send for PerThread<T> {}

impl<T> Slot<T> {
    fn empty() -> Self {
        Self(CachePadded::new(Contents {
            ready: AtomicBool::new(false),
            busy: Cell::new(false),
            value: UnsafeCell::new(None),
        }))
    }
}

/// Clears a flag when it is dropped, also if user code unwinds.
struct Finally<'a>(&'a Cell<bool>);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Returns the chunk of a thread number and the place in that chunk: 0 | 1 2 | 3 4 5 6 | …
#[inline]
fn position(number: usize) -> (usize, usize) {
    // Counted from 1, so that a chunk begins at each power of two. There are fewer threads than `usize::MAX`.
    let number = number + 1;
    let chunk = (number.leading_zeros() ^ (usize::BITS - 1)) as usize;
    (chunk, number ^ 1 << chunk)
}

fn slots_of(chunk: usize) -> usize {
    1 << chunk
}

/// Frees a chunk and the values in it.
///
/// # Safety
///
/// `first` must be the chunk that `install` made for `chunk`, and no thread may use that chunk any more.
unsafe fn free_chunk<T>(first: *mut Slot<T>, chunk: usize) {
    let slots = ptr::slice_from_raw_parts_mut(first, slots_of(chunk));
    // SAFETY: `install` made the chunk from a box of exactly this many slots.
    drop(unsafe { Box::from_raw(slots) });
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{PerThread, position, slots_of};
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::{Arc, thread, thread_index};
    use std::cell::{Cell, RefCell};

    #[test]
    fn numbers_fill_chunks_without_gap_or_overlap() {
        let mut expected = (0, 0);
        for number in 0..1000 {
            assert_eq!(position(number), expected, "number {number}");
            expected.1 += 1;
            if expected.1 == slots_of(expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn a_thread_keeps_its_value_and_learns_how_many_came_before() {
        let object = Arc::new(PerThread::new());
        for expected in 0..3 {
            assert_eq!(object.with(Cell::new, |cell| cell.replace(cell.get() + 1)), expected);
        }
        let other = object.clone();
        let second = thread::spawn(move || other.with(Cell::new, Cell::get)).join().expect("no panic");
        assert_eq!((second, object.entered()), (1, 2));
    }

    #[test]
    fn a_panic_while_a_value_is_made_leaves_the_slot_usable() {
        let object = PerThread::<usize>::new();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            object.with(|_| panic!("planted"), |_| ());
        }));
        assert!(outcome.is_err());
        assert_eq!(object.with(|_| 5, |value| *value), 5);
    }

    #[test]
    fn values_of_many_threads_are_dropped_by_another_one() {
        let token = Arc::new(());
        let object = PerThread::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| object.with(|_| Box::new(token.clone()), |_| ()));
            }
        });
        assert!(Arc::strong_count(&token) > 1);
        thread::spawn(move || drop(object)).join().expect("no panic");
        assert_eq!(Arc::strong_count(&token), 1);
    }

    #[test]
    fn a_reader_sums_what_threads_without_thread_locals_have_counted() {
        struct Late(Arc<PerThread<AtomicUsize>>);
        impl Drop for Late {
            fn drop(&mut self) {
                // Made before the thread's number, so destroyed after it.
                assert!(thread_index::current().is_none());
                let count = |count: &AtomicUsize| count.fetch_add(1, Ordering::Relaxed);
                self.0.with(|_| AtomicUsize::new(0), count);
            }
        }
        std::thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let object = Arc::new(PerThread::new());
        object.with(|_| AtomicUsize::new(10), |_| ());
        let late = object.clone();
        let act = move || {
            LATE.with(|slot| *slot.borrow_mut() = Some(Late(late)));
            assert!(thread_index::current().is_some());
        };
        thread::spawn(act).join().expect("no panic");
        let mut values = Vec::new();
        object.for_each(|count| values.push(count.load(Ordering::Relaxed)));
        assert_eq!(values, [10, 1], "the value of threads without thread-locals comes last");
    }

    #[test]
    fn many_threads_count_on_their_own_and_a_reader_sums() {
        const THREADS: usize = 9;
        const STEPS: usize = if cfg!(miri) { 10 } else { 1_000 };
        let object = Arc::new(PerThread::new());
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let object = object.clone();
                thread::spawn(move || {
                    for _ in 0..STEPS {
                        object.with(
                            |_| AtomicUsize::new(0),
                            |count| count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed),
                        );
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        let mut sum = 0;
        object.for_each(|count| sum += count.load(Ordering::Relaxed));
        assert_eq!(sum, THREADS * STEPS);
    }
}
