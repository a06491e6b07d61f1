//! An allocator that knows how much is allocated: what the resident memory hides, it shows to the byte.

use crate::books::row_number;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

const ROWS: usize = 64;

#[repr(align(128))]
struct Row(AtomicI64);

static BYTES: [Row; ROWS] = [const { Row(AtomicI64::new(0)) }; ROWS];

/// The standard allocator, counted.
pub struct Counted;

fn note(bytes: usize, sign: i64) {
    BYTES[row_number()].0.fetch_add(sign * bytes as i64, Ordering::Relaxed);
}

// SAFETY: everything is the standard allocator's; counting allocates nothing.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 1);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(layout.size(), -1);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(layout.size(), -1);
        note(size, 1);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// Bytes allocated now; 0 in a program without this allocator.
pub fn live() -> i64 {
    BYTES.iter().map(|row| row.0.load(Ordering::Relaxed)).sum()
}
