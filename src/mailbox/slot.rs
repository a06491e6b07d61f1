//! A slot has room for a single message and the stamp that says when the message is there.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::cell::UnsafeCell;
use std::mem::MaybeUninit;

/// Written once by the sender whose claim leads to the slot, then read once by the owner.
#[repr(C)]
pub(crate) struct Slot<M> {
    /// In a block: the generation of the block when the message is there. Inline: 1 + the index of the message.
    stamp: AtomicU64,
    value: UnsafeCell<MaybeUninit<M>>,
}

impl<M> Slot<M> {
    pub(crate) fn new() -> Self {
        Self { stamp: AtomicU64::new(0), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Writes the message and then the stamp.
    ///
    /// # Safety
    /// The caller holds the only claim that leads to this slot, and has not used it yet.
    #[inline(always)]
    pub(crate) unsafe fn publish(&self, message: M, stamp: u64) {
        // SAFETY: the claim makes us the only writer; the owner waits for the stamp stored below.
        self.value.with_mut(|place| unsafe { (*place).write(message) });
        // Ordering: Release; pairs with the Acquire load in `stamp`. A thread that sees this stamp sees the message
        // written above, and each push to the system queue that the sender made before.
        self.stamp.store(stamp, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn stamp(&self) -> u64 {
        // Ordering: Acquire; pairs with the Release store in `publish`.
        self.stamp.load(Ordering::Acquire)
    }

    /// Moves the message out.
    ///
    /// # Safety
    /// The caller owns the mailbox, saw the slot's stamp of this use, and takes each message once.
    #[inline(always)]
    pub(crate) unsafe fn take(&self) -> M {
        // SAFETY: the stamp showed the message, which only the owner moves.
        self.value.with_mut(|place| unsafe { (*place).assume_init_read() })
    }

    /// Fails the model if any thread still uses this slot.
    #[cfg(pointsman_loom)]
    pub fn claim_for_release(&self) {
        self.value.with_mut(|_| ());
    }
}
