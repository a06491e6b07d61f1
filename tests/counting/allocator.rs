//! The standard allocator, which tells the test of each allocation by its function `note`.

use crate::note;
use std::alloc::{GlobalAlloc, Layout, System as StdAllocator};

pub struct Counting;

// SAFETY: every call is passed on to the standard allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { StdAllocator.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as above.
        unsafe { StdAllocator.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: as above.
        unsafe { StdAllocator.realloc(pointer, layout, size) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { StdAllocator.dealloc(pointer, layout) }
    }
}
