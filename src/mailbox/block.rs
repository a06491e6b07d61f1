//! Blocks hold message slots; caches keep free blocks between uses.
//!
//! A slot is ready when its stamp equals the generation of its block. Each use of a block begins with a new generation.
//! Old stamps then read as "not ready", so the consumer never writes to a slot. For this reason memory may pass between
//! blocks only if stamps lie at the same places in both. The caches below are keyed by the distance between slots, and
//! hold only blocks whose first slot follows the header at once. Messages of a stricter alignment than 8 shift the
//! slots, so their blocks go straight to the allocator.
//!
//! Fresh blocks of the cached shapes come from [`slabs`] and go back there: after a flood of messages their pages are the
//! kernel's again. An allocator keeps them, because a few blocks that are still in use lie between those that are free.

use crate::mailbox::slot::Slot;
use crate::sync::atomic::{AtomicPtr, AtomicU64};
use crate::sync::cell::UnsafeCell;
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
use crate::sync::prefetch::prefetch_for_write;
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
use crate::util::slabs;
use std::alloc::{Layout, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// The header that precedes the slots of a block; it is the same for all message types.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Block {
    /// The next block of the chain; links free blocks while cached.
    pub next: AtomicPtr<Block>,
    /// Index of the message that the first slot takes.
    start: UnsafeCell<u64>,
    /// Grows with each use. The value survives in the cache, so nothing may overlay it.
    generation: UnsafeCell<u64>,
    /// 1 + an index: no claim at or behind that index leads into this block. 0 until `settled_block` has moved past the
    /// block.
    pub observed: AtomicU64,
    /// When the first sender came to this block, by the clock of its system; 0 if that is not measured.
    pub entered: AtomicU64,
}

impl Block {
    /// The number of messages that were taken out, in a queue with several takers. Such a queue has no other use for
    /// this place: it observes nothing.
    #[inline(always)]
    pub(crate) fn taken(&self) -> &AtomicU64 {
        &self.observed
    }

    /// # Safety
    /// `this` is a block that the caller reached through its chain between claim and publish, or owns.
    #[inline(always)]
    pub(crate) unsafe fn start(this: *const Block) -> u64 {
        // SAFETY: alive by the caller's promise; written only before the block is published.
        unsafe { (*this).start.with(|start| *start) }
    }

    /// # Safety
    /// As [`start`](Self::start).
    #[inline(always)]
    pub(crate) unsafe fn generation(this: *const Block) -> u64 {
        // SAFETY: alive by the caller's promise; written only before the block is published.
        unsafe { (*this).generation.with(|generation| *generation) }
    }

    /// Says which message the first slot takes.
    ///
    /// # Safety
    /// The caller alone can reach `this`.
    pub(crate) unsafe fn set_start(this: *mut Block, index: u64) {
        // SAFETY: exclusive by the caller's promise.
        unsafe { (*this).start.with_mut(|start| *start = index) }
    }

    /// Begins a new use: all slots are empty, and there is no successor.
    ///
    /// # Safety
    /// The caller alone can reach `this`.
    pub(crate) unsafe fn renew(this: *mut Block, start: u64) {
        // SAFETY: exclusive by the caller's promise, as for the three below.
        unsafe { ptr::addr_of_mut!((*this).next).write(AtomicPtr::new(ptr::null_mut())) };
        // SAFETY: see above.
        unsafe { ptr::addr_of_mut!((*this).observed).write(AtomicU64::new(0)) };
        // Models measure nothing, and their atomics are not small.
        #[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
        // SAFETY: see above.
        unsafe {
            ptr::addr_of_mut!((*this).entered).write(AtomicU64::new(0));
        }
        // SAFETY: see above.
        unsafe { (*this).generation.with_mut(|generation| *generation += 1) };
        // SAFETY: see above.
        unsafe { Self::set_start(this, start) };
    }
}

/// Geometry of the blocks for messages of type `M`.
pub(crate) struct Shape<M>(PhantomData<M>);

impl<M> Shape<M> {
    const STRIDE: usize = size_of::<Slot<M>>();

    /// Slots per block: 31 make a block of eight-byte messages 536 bytes; large messages get fewer, so that
    /// a block stays near 2 KiB, but never fewer than 2.
    #[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
    pub(crate) const SLOTS: usize = {
        let fitting = (2048 - size_of::<Block>()) / Self::STRIDE;
        if fitting > 31 {
            31
        } else if fitting < 2 {
            2
        } else {
            fitting
        }
    };
    /// Two slots per block: a model then crosses from block to block with three messages.
    #[cfg(any(pointsman_loom, pointsman_shuttle))]
    pub const SLOTS: usize = 2;

    const ALIGN: usize = {
        let (header, slot) = (align_of::<Block>(), align_of::<Slot<M>>());
        if header > slot { header } else { slot }
    };
    /// Distance of the first slot from the beginning of the block.
    const FIRST_SLOT: usize = size_of::<Block>().next_multiple_of(align_of::<Slot<M>>());
    const LAYOUT: Layout =
        match Layout::from_size_align(Self::FIRST_SLOT + Self::SLOTS * Self::STRIDE, Self::ALIGN) {
            Ok(layout) => layout,
            Err(_) => panic!("a block of two messages exceeds the address space"),
        };

    /// The cache class of blocks of this shape; `None` where they bypass the caches.
    #[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
    const CLASS: Option<usize> = {
        let class = Self::STRIDE / cache::STRIDE_UNIT;
        if Self::ALIGN == align_of::<Block>() && class < cache::CLASSES {
            assert!(Self::STRIDE % cache::STRIDE_UNIT == 0 && Self::FIRST_SLOT == size_of::<Block>());
            Some(class)
        } else {
            None
        }
    };

    /// The slot numbered `number` of `block`.
    ///
    /// # Safety
    /// `block` is alive and of this shape, and `number < SLOTS`.
    #[inline(always)]
    pub(crate) unsafe fn slot(block: *mut Block, number: usize) -> *const Slot<M> {
        debug_assert!(number < Self::SLOTS);
        // SAFETY: within the block's allocation by the caller's promise.
        unsafe { block.byte_add(Self::FIRST_SLOT).cast::<Slot<M>>().add(number) }
    }

    /// Returns a block with empty slots that no other thread knows. The call runs no user code but the global
    /// allocator, and holds nothing borrowed while the allocator runs.
    pub(crate) fn allocate(start: u64) -> *mut Block {
        #[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
        let cached = Self::CLASS.and_then(|class| cache::take(class, Self::LAYOUT)).inspect(|block| {
            // An owner on another core has read the block: its lines lie in the cache of that core.
            prefetch_for_write(block.as_ptr().cast(), Self::LAYOUT.size());
        });
        #[cfg(any(pointsman_loom, pointsman_shuttle))]
        let cached = None::<NonNull<Block>>;
        let block = cached.unwrap_or_else(Self::allocate_fresh).as_ptr();
        // SAFETY: fresh or from the cache: ours alone.
        unsafe { Block::renew(block, start) };
        block
    }

    /// Zeroed memory is a block: generation 0, before the first [`Block::renew`], and all stamps 0.
    #[cold]
    fn allocate_fresh() -> NonNull<Block> {
        #[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
        if Self::CLASS.is_some() {
            let memory = slabs::allocate(Self::LAYOUT);
            // SAFETY: of this layout, and ours alone.
            unsafe { memory.write_bytes(0, Self::LAYOUT.size()) };
            return memory.cast();
        }
        // SAFETY: the layout has a size, that of the header at least.
        let memory = unsafe { std::alloc::alloc_zeroed(Self::LAYOUT) };
        let Some(block) = NonNull::new(memory.cast::<Block>()) else { handle_alloc_error(Self::LAYOUT) };
        // The atomics and cells of loom and shuttle must be constructed; zeroed memory is not enough.
        #[cfg(any(pointsman_loom, pointsman_shuttle))]
        // SAFETY: ours alone, of this layout.
        unsafe {
            block.as_ptr().write(Block {
                next: AtomicPtr::new(ptr::null_mut()),
                start: UnsafeCell::new(0),
                generation: UnsafeCell::new(0),
                observed: AtomicU64::new(0),
                entered: AtomicU64::new(0),
            });
            for number in 0..Self::SLOTS {
                Self::slot(block.as_ptr(), number).cast_mut().write(Slot::new());
            }
        }
        block
    }

    /// Takes a block out of use.
    ///
    /// # Safety
    /// The caller alone can reach `block`, which is of this shape; no slot holds a message any more.
    pub(crate) unsafe fn release(block: *mut Block) {
        // A writing access to each cell lets loom check that no other thread is left in the block.
        #[cfg(pointsman_loom)]
        // SAFETY: exclusive by the caller's promise.
        unsafe {
            Block::set_start(block, u64::MAX / 2);
            for number in 0..Self::SLOTS {
                (*Self::slot(block, number)).claim_for_release();
            }
        }
        #[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
        if let Some(class) = Self::CLASS {
            // SAFETY: ours alone; the class is that of this shape.
            return unsafe { cache::put(class, block, Self::LAYOUT) };
        }
        // SAFETY: allocated with this layout by `allocate_fresh`.
        unsafe { std::alloc::dealloc(block.cast(), Self::LAYOUT) }
    }

    /// Takes a whole chain out of use.
    ///
    /// # Safety
    /// As [`release`](Self::release), for each block.
    pub(crate) unsafe fn release_chain(mut block: *mut Block) {
        while !block.is_null() {
            // SAFETY: exclusive by the caller's promise; `next` is read before the block goes.
            let next = unsafe { (*block).next.load(crate::sync::atomic::Ordering::Relaxed) };
            // SAFETY: the caller's promise.
            unsafe { Self::release(block) };
            block = next;
        }
    }
}

/// Free blocks: a few lie in a cache per thread, and a process-wide depot moves them between threads.
///
/// Senders allocate and owners free, often on different threads. Without the depot a one-way stream would call the
/// slabs once per block for ever. Blocks enter and leave the depot in magazines of 32 under a lock: a lock-free
/// stack that pops single magazines would suffer from ABA. Nothing in here allocates, so a global allocator that sends
/// messages may re-enter at any allocation of ours.
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
mod cache {
    use super::{Block, Layout, NonNull, ptr, slabs};
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::{CachePadded, Mutex, lock, per_thread, process_wide};
    use std::cell::Cell;

    /// Slots of all cached shapes are multiples of this.
    pub(super) const STRIDE_UNIT: usize = 8;
    /// Slots of 256 bytes and more bypass the caches.
    pub(super) const CLASSES: usize = 32;
    const THREAD_MAX: usize = 64;
    const MAGAZINE: usize = 32;
    /// The number of magazines per class: 16 of 32 blocks are 512 blocks. Blocks beyond that go back to the slabs.
    const DEPOT_MAX: usize = 16;

    /// A list linked by `next`.
    #[derive(Debug)]
    struct Free {
        first: Cell<*mut Block>,
        count: Cell<usize>,
        /// The layout of the class, known since the first block came, from wherever. The list frees its blocks with
        /// this layout.
        layout: Cell<Layout>,
    }

    impl Free {
        fn pop(&self) -> Option<NonNull<Block>> {
            let block = NonNull::new(self.first.get())?;
            // SAFETY: blocks in the list belong to the list.
            let next = unsafe { (*block.as_ptr()).next.load(Ordering::Relaxed) };
            self.first.set(next);
            self.count.set(self.count.get() - 1);
            Some(block)
        }

        /// # Safety
        /// `block` is the caller's alone and of this list's class.
        unsafe fn push(&self, block: *mut Block) {
            // SAFETY: the caller's promise.
            unsafe { (*block).next.store(self.first.get(), Ordering::Relaxed) };
            self.first.set(block);
            self.count.set(self.count.get() + 1);
        }

        /// Cuts off the first [`MAGAZINE`] blocks; the list must have at least as many.
        fn cut(&self) -> *mut Block {
            let first = self.first.get();
            let mut last = first;
            for _ in 1..MAGAZINE {
                // SAFETY: the list has at least `MAGAZINE` blocks, and they belong to it.
                last = unsafe { (*last).next.load(Ordering::Relaxed) };
            }
            // SAFETY: as above.
            self.first.set(unsafe { (*last).next.load(Ordering::Relaxed) });
            // SAFETY: as above.
            unsafe { (*last).next.store(ptr::null_mut(), Ordering::Relaxed) };
            self.count.set(self.count.get() - MAGAZINE);
            first
        }
    }

    #[derive(Debug)]
    struct ThreadCache([Free; CLASSES]);

    impl Drop for ThreadCache {
        fn drop(&mut self) {
            for (class, free) in self.0.iter().enumerate() {
                while free.count.get() >= MAGAZINE {
                    give(class, free.cut(), free.layout.get());
                }
                while let Some(block) = free.pop() {
                    // SAFETY: blocks of a class have one layout, which `put` and `refill` recorded when they came.
                    unsafe { free_block(block.as_ptr(), free.layout.get()) };
                }
            }
        }
    }

    per_thread! {
        static CACHE: ThreadCache = ThreadCache(
            [const {
                Free {
                    first: Cell::new(ptr::null_mut()),
                    count: Cell::new(0),
                    layout: Cell::new(Layout::new::<Block>()),
                }
            }; CLASSES],
        );
    }

    /// Magazines of one class.
    #[derive(Debug)]
    struct BlockDepot {
        magazines: [*mut Block; DEPOT_MAX],
        count: usize,
    }

    // SAFETY: the blocks in a depot belong to it alone, and free memory has no thread.
    unsafe impl Send for BlockDepot {}

    #[derive(Debug)]
    struct BlockMagazines {
        /// `count` of the depot, readable without the lock; only a hint.
        filled: AtomicUsize,
        depot: Mutex<BlockDepot>,
    }

    process_wide! {
        /// Each shelf has cache lines of its own: threads that use different classes do not disturb each other.
        static SHELVES: [CachePadded<BlockMagazines>; CLASSES] = std::array::from_fn(|_| {
            let depot = BlockDepot { magazines: [ptr::null_mut(); DEPOT_MAX], count: 0 };
            CachePadded::new(BlockMagazines { filled: AtomicUsize::new(0), depot: Mutex::new(depot) })
        });
    }

    /// Returns a free block of the class, whose blocks all have this layout, if there is one.
    #[inline]
    pub(super) fn take(class: usize, layout: Layout) -> Option<NonNull<Block>> {
        // Thread-locals are gone while their destructors run: then the allocator serves.
        CACHE
            .try_with(|cache| {
                let free = &cache.0[class];
                free.pop().or_else(|| refill(class, free, layout))
            })
            .ok()
            .flatten()
    }

    #[cold]
    fn refill(class: usize, free: &Free, layout: Layout) -> Option<NonNull<Block>> {
        let shelf = &SHELVES[class];
        if shelf.filled.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let magazine = {
            let mut depot = lock(&shelf.depot);
            depot.count = depot.count.checked_sub(1)?;
            shelf.filled.fetch_sub(1, Ordering::Relaxed);
            depot.magazines[depot.count]
        };
        // A thread that only takes blocks also ends with blocks in its list, so it must know their layout.
        free.layout.set(layout);
        free.first.set(magazine);
        free.count.set(MAGAZINE);
        free.pop()
    }

    /// Keeps the block for later.
    ///
    /// # Safety
    /// `block` is the caller's alone, and of the class, whose blocks all have this layout.
    #[inline]
    pub(super) unsafe fn put(class: usize, block: *mut Block, layout: Layout) {
        let overflow = CACHE.try_with(|cache| {
            let free = &cache.0[class];
            free.layout.set(layout);
            // SAFETY: the caller's promise.
            unsafe { free.push(block) };
            (free.count.get() > THREAD_MAX).then(|| free.cut())
        });
        match overflow {
            Ok(None) => {}
            Ok(Some(magazine)) => give(class, magazine, layout),
            // SAFETY: the caller's promise; the thread's cache is gone.
            Err(_) => unsafe { free_block(block, layout) },
        }
    }

    /// Puts a magazine on its shelf, or frees it when the shelf is full.
    #[cold]
    fn give(class: usize, magazine: *mut Block, layout: Layout) {
        let shelf = &SHELVES[class];
        {
            let mut depot = lock(&shelf.depot);
            let count = depot.count;
            if count < DEPOT_MAX {
                depot.magazines[count] = magazine;
                depot.count += 1;
                shelf.filled.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        let mut block = magazine;
        while !block.is_null() {
            // SAFETY: the magazine is ours.
            let next = unsafe { (*block).next.load(Ordering::Relaxed) };
            // SAFETY: as above; its class has this layout.
            unsafe { free_block(block, layout) };
            block = next;
        }
    }

    /// Gives the memory of a block back to its slab.
    ///
    /// # Safety
    /// `block` is the caller's alone, of a cached shape, and of this layout.
    unsafe fn free_block(block: *mut Block, layout: Layout) {
        let memory = NonNull::new(block).expect("a block has an address").cast();
        // SAFETY: `allocate_fresh` took the memory of all cached shapes from the slabs, by this layout.
        unsafe { slabs::release(memory, layout) };
    }
}
