//! The system queue carries control messages for the actor, beside its messages.
//!
//! The queue is a stack that senders push to and the owner takes as a whole. An immediate control message goes before
//! each message not yet begun. A positioned control message carries the tail index that its sender saw. It is due when
//! the owner has reached that index: after everything that its sender sent before, and before everything that its
//! sender sends later.
//!
//! The queue closes when the owner swaps a mark in for the list. So each push is either in the result of that last swap
//! or refused. A close flag beside the list would leave a gap between the two.

use crate::sync::atomic::{AtomicPtr, Ordering, fence};
use crate::sync::fence_for_tsan;
use crate::util::slabs;
use std::alloc::Layout;
use std::ptr::{self, NonNull};

/// The moment at which a control message takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// Before each message not yet begun.
    Immediate,
    /// When each claim below this index has been taken.
    At(u64),
}

struct Node<S> {
    next: *mut Node<S>,
    position: Position,
    message: S,
}

/// The list, newest first; null when empty, [`closed`] after the close.
#[repr(transparent)]
pub(crate) struct SystemQueue<S>(AtomicPtr<Node<S>>);

/// Returns the mark of a closed queue: no node lies at address 1.
fn closed<S>() -> *mut Node<S> {
    ptr::without_provenance_mut(1)
}

impl<S> Node<S> {
    /// Puts a node into memory that the threads use again: senders make nodes, and owners free them.
    #[inline]
    fn allocate(position: Position, message: S) -> *mut Self {
        let node = slabs::allocate(Layout::new::<Self>()).cast::<Self>();
        // SAFETY: the memory is ours alone, and fits a node.
        unsafe { node.write(Node { next: ptr::null_mut(), position, message }) };
        node.as_ptr()
    }

    /// Takes the node out of its memory.
    ///
    /// # Safety
    ///
    /// The node comes from [`allocate`](Self::allocate), and the caller, who has it alone, uses the pointer no more.
    #[inline]
    unsafe fn release(node: *mut Self) -> Self {
        // SAFETY: the caller's promise; the memory is given back once.
        unsafe {
            let content = node.read();
            slabs::release(NonNull::new_unchecked(node).cast(), Layout::new::<Self>());
            content
        }
    }
}

impl<S> SystemQueue<S> {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Adds a message; hands it back when the queue is closed.
    pub(crate) fn push(&self, message: S, position: Position) -> Result<(), S> {
        let node = Node::allocate(position, message);
        let mut newest = self.0.load(Ordering::Relaxed);
        loop {
            if newest == closed() {
                // Ordering: Acquire; pairs with the Release in `close`: a refused sender sees what the owner did
                // before. For example, a watcher of an ended actor sees what the last hook of that actor wrote.
                fence(Ordering::Acquire);
                fence_for_tsan!(self.0);
                // SAFETY: the node was never published.
                return Err(unsafe { Node::release(node) }.message);
            }
            // SAFETY: as above.
            unsafe { (*node).next = newest };
            // Ordering: Release; pairs with the Acquire swaps in `take` and `close`: they see the node.
            match self.0.compare_exchange_weak(newest, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(current) => newest = current,
            }
        }
    }

    /// Returns true if there is something to take.
    ///
    /// Relaxed: a push that this load must see was made visible by a stamp (a push before a tell) or by clearing SYSTEM
    /// (a push before its announcement).
    #[inline(always)]
    pub(crate) fn has_any(&self) -> bool {
        let newest = self.0.load(Ordering::Relaxed);
        !newest.is_null() && newest != closed()
    }

    /// Owner only: takes all control messages, oldest first.
    pub(crate) fn take(&self) -> Batch<S> {
        if !self.has_any() {
            return Batch { next: ptr::null_mut() };
        }
        // Ordering: Acquire; pairs with the Release in `push`. The queue is not closed: only the owner closes it.
        Batch::reverse(self.0.swap(ptr::null_mut(), Ordering::Acquire))
    }

    /// Owner only: refuses all further pushes and returns the control messages accepted before.
    pub(crate) fn close(&self) -> Batch<S> {
        // Ordering: AcqRel; Acquire as in `take`, and Release for the Acquire fence in `push`.
        let newest = self.0.swap(closed(), Ordering::AcqRel);
        Batch::reverse(if newest == closed() { ptr::null_mut() } else { newest })
    }
}

impl<S> Drop for SystemQueue<S> {
    fn drop(&mut self) {
        drop(self.close());
    }
}

/// Control messages taken from a system queue, oldest first. Messages that are not taken out are dropped with the
/// batch.
pub(crate) struct Batch<S> {
    next: *mut Node<S>,
}

impl<S> Batch<S> {
    /// Returns whether all messages are taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_null()
    }

    fn reverse(mut newest: *mut Node<S>) -> Self {
        let mut oldest_first = ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: the swap made the list ours.
            let next = unsafe { std::mem::replace(&mut (*newest).next, oldest_first) };
            oldest_first = newest;
            newest = next;
        }
        Self { next: oldest_first }
    }
}

impl<S> Iterator for Batch<S> {
    type Item = (Position, S);

    #[inline]
    fn next(&mut self) -> Option<(Position, S)> {
        if self.next.is_null() {
            return None;
        }
        // SAFETY: the list is ours, and each node leaves it here.
        let node = unsafe { Node::release(self.next) };
        self.next = node.next;
        Some((node.position, node.message))
    }
}

impl<S> Drop for Batch<S> {
    fn drop(&mut self) {
        if self.is_empty() {
            return;
        }
        crate::mailbox::mailbox::propagate(crate::mailbox::mailbox::drop_each(|| self.next()));
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{Position, SystemQueue};
    use crate::sync::thread;

    #[test]
    fn what_others_push_is_taken_whole_and_in_their_order() {
        const EACH: usize = if cfg!(miri) { 20 } else { 5_000 };
        let queue = &SystemQueue::new();
        thread::scope(|scope| {
            for sender in 0..2 {
                let push = move |number| queue.push((sender, number), Position::Immediate);
                scope.spawn(move || assert!((0..EACH).all(|number| push(number).is_ok())));
            }
            let mut next = [0; 2];
            while next != [EACH; 2] {
                for (_, (sender, number)) in queue.take() {
                    assert_eq!(number, next[sender]);
                    next[sender] += 1;
                }
                thread::yield_now();
            }
        });
    }
}
