//! No address is used again within an execution.
//!
//! A thread that holds a stale pointer compares it with the newest one. If memory was freed and given out again in
//! between, the two may be equal, or not, as the allocator likes; and loom cannot replay what depends on that. So what an
//! execution frees goes back when the next one begins.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

struct Late;

/// What lies in freed memory until it goes back.
struct Freed {
    next: *mut Freed,
    layout: Layout,
}

std::thread_local! {
    /// A model runs on one thread, all of its own threads included.
    static FREED: Cell<*mut Freed> = const { Cell::new(ptr::null_mut()) };
    static IS_EXPLORING: Cell<bool> = const { Cell::new(false) };
}

#[global_allocator]
static ALLOCATOR: Late = Late;

/// Large and aligned enough for what lies in it later.
fn roomy(layout: Layout) -> Layout {
    let least = Layout::new::<Freed>();
    let (size, align) = (layout.size().max(least.size()), layout.align().max(least.align()));
    Layout::from_size_align(size, align).unwrap_or(layout)
}

// SAFETY: `System`'s memory, of at least the layout asked for, and given back by the layout by which it was taken.
unsafe impl GlobalAlloc for Late {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise; it is no smaller.
        unsafe { System.alloc(roomy(layout)) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let layout = roomy(layout);
        if IS_EXPLORING.get() {
            let freed = memory.cast::<Freed>();
            // SAFETY: given up by the caller; it has room, see `roomy`.
            unsafe { freed.write(Freed { next: FREED.get(), layout }) };
            FREED.set(freed);
        } else {
            // SAFETY: the caller's promise; `alloc` has taken it by this layout.
            unsafe { System.dealloc(memory, layout) };
        }
    }
}

/// Holds on to what is freed on this thread, until it is called again.
pub fn begin_execution() {
    give_back();
    IS_EXPLORING.set(true);
}

/// All executions are over.
pub fn end() {
    IS_EXPLORING.set(false);
    give_back();
}

fn give_back() {
    let mut freed = FREED.replace(ptr::null_mut());
    while !freed.is_null() {
        // SAFETY: `dealloc` has written it, and it is in this list alone.
        let Freed { next, layout } = unsafe { freed.read() };
        // SAFETY: as there.
        unsafe { System.dealloc(freed.cast(), layout) };
        freed = next;
    }
}
