//! Where the measurements of actors go: into the counts of their classes, on the thread that takes them.

use crate::core::cell::{ActorCore, Header, VTable, gate};
use crate::core::class_counters::ClassCounts;
use crate::core::ledger::{ThreadCounters, add_own};
use crate::measure::meter::{Measured, Meter};
use crate::sync::atomic::AtomicU64;
use std::ptr::NonNull;

impl ActorCore {
    /// Returns the counts of this actor's class on the calling thread, whose counters are `row`.
    pub(crate) fn class_counts<'a>(
        &self,
        row: &'a ThreadCounters,
        vtable: &'static VTable,
    ) -> &'a ClassCounts {
        let classes = row.classes();
        if let Some(class) = self.own_class() {
            return classes.of(class);
        }
        let key = std::ptr::from_ref(vtable).addr();
        let find = || self.system.classes.id_of((vtable.actor_name)());
        match row.is_shared() {
            // Several threads would write what is remembered.
            true => classes.of(find()),
            false => classes.remembered(key).unwrap_or_else(|| classes.remember(key, find())),
        }
    }

    /// Counts the end of an actor that has handled so many messages, if the actor is an ordinary one and the thread
    /// remembers the class of its type. Returns false otherwise: nothing is counted then.
    #[inline]
    pub(crate) fn count_ordinary_end(
        &self,
        row: &ThreadCounters,
        vtable: &'static VTable,
        handled: u64,
    ) -> bool {
        // Where several threads have the counters, nothing is remembered.
        let last = row.classes().remembered_last(std::ptr::from_ref(vtable).addr());
        let Some(counts) = last.filter(|_| self.is_ordinary()) else { return false };
        // Before the counts: a thread that finds the messages in them does not count them at the actor, too.
        self.note_settled();
        add_own(&counts.handled, handled);
        add_own(&counts.ended, 1);
        true
    }

    /// Counts the end of an actor that has handled so many messages.
    pub(crate) fn count_end(&self, row: &ThreadCounters, vtable: &'static VTable, handled: u64) {
        let counts = self.class_counts(row, vtable);
        // As above.
        self.note_settled();
        row.add_to(&counts.handled, handled);
        row.add_to(&counts.ended, 1);
    }

    /// Counts one more in one of the counts of this actor's class.
    #[cold]
    pub(crate) fn count_in_class(
        &self,
        row: &ThreadCounters,
        vtable: &'static VTable,
        counter: fn(&ClassCounts) -> &AtomicU64,
    ) {
        row.add_to(counter(self.class_counts(row, vtable)), 1);
    }
}

/// Calls `record` with the counts of an actor's class on the calling thread, and whether other threads write them, too.
///
/// # Safety
///
/// `header` is that of a living actor's cell, and valid for the whole cell.
#[cold]
#[inline(never)]
unsafe fn with_class(header: NonNull<Header>, record: &mut dyn FnMut(&ClassCounts, bool)) {
    // SAFETY: the caller's promise.
    let vtable = unsafe { header.as_ref() }.vtable;
    // SAFETY: the vtable of a local cell tells where its core lies.
    let core = unsafe { header.byte_add(vtable.core_offset).cast::<ActorCore>().as_ref() };
    let row = core.system.ledger().for_this_thread();
    record(core.class_counts(row, vtable), row.is_shared());
}

impl Measured for Header {
    fn meter(&self) -> Option<&Meter> {
        self.meter_of_home()
    }

    /// # Safety
    ///
    /// As [`Measured::record_wait`].
    unsafe fn record_wait(this: NonNull<Self>, nanoseconds: u64) {
        // SAFETY: passed on to the caller.
        unsafe {
            with_class(this, &mut |counts, is_shared| counts.histograms().wait.count(nanoseconds, is_shared))
        }
    }

    /// # Safety
    ///
    /// As [`Measured::record_wait`].
    unsafe fn record_handling(this: NonNull<Self>, nanoseconds: u64) {
        // SAFETY: passed on to the caller.
        unsafe {
            with_class(this, &mut |counts, is_shared| {
                counts.histograms().handle.count(nanoseconds, is_shared)
            })
        }
    }

    /// # Safety
    ///
    /// As [`Measured::record_wait`].
    unsafe fn record_depth(this: NonNull<Self>) {
        // SAFETY: the header is that of a living actor's cell.
        let depth = unsafe { gate(this) }.len();
        // SAFETY: passed on to the caller.
        unsafe {
            with_class(this, &mut |counts, is_shared| {
                counts.histograms().depth.count_messages(depth, is_shared)
            });
        }
    }
}
