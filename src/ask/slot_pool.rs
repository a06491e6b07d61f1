//! Memory for reply slots: a small free list in each thread, so asking allocates nothing in the steady state.
//!
//! Blocks come in [`CLASS_COUNT`] sizes, and a list holds blocks of one size only. So a block fits each later slot of its
//! class. Larger and over-aligned slots go to the allocator each time. A list holds at most [`KEPT_BYTES`]: enough for
//! a thread with a thousand questions outstanding. Where one thread asks and another is last to leave, blocks drift to
//! the latter and are freed there.
//!
//! A block that fills a cache line begins at one: asker and replier move each line of a slot to and fro.
//!
//! The lists are plain cells and no borrow is held over a call of the allocator, which may be the user's
//! and may send messages itself.

use crate::sync::alloc::{alloc, dealloc};
use crate::sync::per_thread;
use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// Slots with a larger alignment go to the allocator.
const SLOT_ALIGN_MAX: usize = 16;
/// The alignment of blocks that have as many bytes.
const LINE: usize = 64;
/// Blocks of class `n` have `(n + 1) * SIZE_STEP` bytes.
const SIZE_STEP: usize = 32;
const CLASS_COUNT: usize = 8;
/// The bytes of free blocks of one class that a thread keeps, once it has had as many in use. None in models, where the
/// allocator must see each slot come and go; a thread's lists are its own.
const KEPT_BYTES: usize = if cfg!(pointsman_loom) { 0 } else { 128 * 1024 };

const _: () = assert!(SIZE_STEP >= size_of::<FreeBlock>() && SLOT_ALIGN_MAX >= align_of::<FreeBlock>());
const _: () = assert!(SIZE_STEP % SLOT_ALIGN_MAX == 0);

/// The content of a free block.
struct FreeBlock {
    next: *mut FreeBlock,
}

/// The free blocks of one class.
struct FreeList {
    first: Cell<*mut FreeBlock>,
    length: Cell<usize>,
}

impl FreeList {
    const fn new() -> Self {
        Self { first: Cell::new(ptr::null_mut()), length: Cell::new(0) }
    }

    fn pop(&self) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.first.get())?;
        // SAFETY: blocks on the list are free and were given a valid `FreeBlock` by `push`; this thread is
        // the only one that reaches the list.
        let next = unsafe { (*block.as_ptr()).next };
        self.first.set(next);
        self.length.set(self.length.get() - 1);
        Some(block.cast())
    }

    /// Keeps the block; returns `false` when the list has `most` blocks.
    ///
    /// # Safety
    /// * `block` has the layout of this list's class, and is no longer in use.
    unsafe fn push(&self, block: NonNull<u8>, most: usize) -> bool {
        if self.length.get() >= most {
            return false;
        }
        let block = block.cast::<FreeBlock>().as_ptr();
        // SAFETY: the caller gives us an unused block, and every class has room for a `FreeBlock`, suitably
        // aligned (asserted above).
        unsafe { block.write(FreeBlock { next: self.first.get() }) };
        self.first.set(block);
        self.length.set(self.length.get() + 1);
        true
    }
}

/// One list for each class; gives everything back when its thread ends.
struct FreeLists([FreeList; CLASS_COUNT]);

impl Drop for FreeLists {
    fn drop(&mut self) {
        for (class, list) in self.0.iter().enumerate() {
            while let Some(block) = list.pop() {
                // SAFETY: a block on the list of `class` was allocated with the layout of `class`.
                unsafe { dealloc(block.as_ptr(), class_layout(class)) };
            }
        }
    }
}

per_thread! {
    static FREE: FreeLists = FreeLists([const { FreeList::new() }; CLASS_COUNT]);
}

const fn class_layout(class: usize) -> Layout {
    let size = (class + 1) * SIZE_STEP;
    match Layout::from_size_align(size, if size < LINE { SLOT_ALIGN_MAX } else { LINE }) {
        Ok(layout) => layout,
        Err(_) => panic!("block sizes are far from the largest possible layout"),
    }
}

/// The class whose blocks fit a `T`.
const fn class_of<T>() -> Option<usize> {
    let class = size_of::<T>().saturating_sub(1) / SIZE_STEP;
    if align_of::<T>() <= SLOT_ALIGN_MAX && class < CLASS_COUNT { Some(class) } else { None }
}

/// The number of free blocks for a `T` that a thread keeps.
const fn kept_max<T>() -> usize {
    if class_of::<T>().is_some() { KEPT_BYTES / block_layout::<T>().size() } else { 0 }
}

/// The layout of the memory that [`take`] gives for a `T`.
const fn block_layout<T>() -> Layout {
    match class_of::<T>() {
        Some(class) => class_layout(class),
        None => Layout::new::<T>(),
    }
}

/// Gives uninitialised memory for a `T`, which must have a size.
#[inline]
pub(crate) fn take<T>() -> NonNull<T> {
    const { assert!(size_of::<T>() > 0) };
    // A thread that has destroyed its thread-locals already uses the allocator.
    let kept = class_of::<T>().and_then(|class| FREE.try_with(|free| free.0[class].pop()).ok().flatten());
    kept.map_or_else(allocate::<T>, NonNull::cast)
}

#[cold]
fn allocate<T>() -> NonNull<T> {
    let layout = block_layout::<T>();
    // SAFETY: a class has at least `SIZE_STEP` bytes, and a `T` has a size (asserted in `take`).
    let block = unsafe { alloc(layout) };
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout)).cast()
}

/// Takes back memory that [`take`] gave, in any thread.
///
/// # Safety
/// * `block` comes from `take::<T>()` for the same `T`.
/// * The `T` in it was dropped or moved out, and the memory is no longer in use.
#[inline]
pub(crate) unsafe fn put_back<T>(block: NonNull<T>) {
    let block = block.cast::<u8>();
    let kept = class_of::<T>().is_some_and(|class| {
        // SAFETY: the caller's promises; and `take::<T>` gave a block of this class.
        FREE.try_with(|free| unsafe { free.0[class].push(block, const { kept_max::<T>() }) }).unwrap_or(false)
    });
    if !kept {
        // SAFETY: `take::<T>` allocated with this layout, and the block went to no list.
        unsafe { dealloc(block.as_ptr(), block_layout::<T>()) };
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{CLASS_COUNT, LINE, SIZE_STEP, class_of, kept_max, put_back, take};

    #[repr(align(64))]
    struct OverAligned(#[allow(dead_code)] u8); // for its size

    #[test]
    fn a_block_is_used_again_by_the_same_class_only() {
        let small = take::<[u64; 4]>();
        // SAFETY: just taken, nothing in it.
        unsafe { put_back(small) };
        let large = take::<[u64; 5]>();
        assert_ne!(large.cast::<u8>(), small.cast::<u8>());
        let again = take::<[u8; 3]>();
        assert_eq!(again.cast::<u8>(), small.cast::<u8>());
        // SAFETY: both just taken, nothing in them.
        unsafe { put_back(again) };
        // SAFETY: as above.
        unsafe { put_back(large) };
    }

    #[test]
    fn odd_layouts_go_to_the_allocator() {
        assert_eq!(class_of::<OverAligned>(), None);
        assert_eq!(class_of::<[u8; CLASS_COUNT * SIZE_STEP]>(), Some(CLASS_COUNT - 1));
        assert_eq!(class_of::<[u8; CLASS_COUNT * SIZE_STEP + 1]>(), None);
        let block = take::<OverAligned>();
        assert_eq!(block.as_ptr() as usize % 64, 0);
        // SAFETY: just taken, nothing in it.
        unsafe { put_back(block) };
    }

    #[test]
    fn a_list_keeps_no_more_than_its_bound() {
        let class = class_of::<[u64; 12]>().expect("an ordinary layout");
        let blocks: Vec<_> = (0..kept_max::<[u64; 12]>() + 1).map(|_| take::<[u64; 12]>()).collect();
        assert!(blocks.len() > 1_000 && blocks.iter().all(|block| block.as_ptr() as usize % LINE == 0));
        for block in blocks {
            // SAFETY: taken above, nothing in it.
            unsafe { put_back(block) };
        }
        assert_eq!(super::FREE.with(|free| free.0[class].length.get()), kept_max::<[u64; 12]>());
    }
}
