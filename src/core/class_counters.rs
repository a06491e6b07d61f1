//! The counts by class: one table for each thread that counts, so that no counter has two writers.
//!
//! An actor's handled messages are counted by its mailbox. When the actor ends, their number goes into the table of the
//! thread that ends it. So the messages of a class are those in the tables and those of the living actors.

use crate::core::classes::{ClassId, SEGMENT};
use crate::measure::buckets::Buckets;
use crate::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{EXPLORED, OnceLock};

/// The counts of one thread, by class. The parts of the table are made when they are first needed.
#[derive(Default)]
pub(crate) struct ClassCounters {
    segments: OnceLock<Box<Segments>>,
    /// The type of the last actor that has ended on this thread.
    last: Recent,
    recent: [Recent; RECENT],
}

type Segment = [OnceLock<Box<ClassCounts>>; SEGMENT];
type Segments = [OnceLock<Box<Segment>>; SEGMENT];

/// Types of actors whose counts a thread remembers.
const RECENT: usize = if EXPLORED { 1 } else { 8 };

const _: () = assert!(RECENT.is_power_of_two(), "places are found by a mask");

/// A type of actors, by the address of what is known of it, and the counts of its class. Written by the thread of the
/// table alone.
#[derive(Default)]
struct Recent {
    of: AtomicUsize,
    counts: AtomicPtr<ClassCounts>,
}

/// The counts of one class on one thread.
#[derive(Default)]
pub(crate) struct ClassCounts {
    /// Actors that have ended, and the messages that these had handled.
    pub ended: AtomicU64,
    pub handled: AtomicU64,
    pub failures: AtomicU64,
    pub restarts: AtomicU64,
    histograms: OnceLock<Box<Histograms>>,
}

/// The measured times and depths of one class on one thread.
#[derive(Default)]
pub(crate) struct Histograms {
    pub wait: Buckets,
    pub handle: Buckets,
    pub depth: Buckets,
}

impl ClassCounters {
    /// The counts of a class.
    pub(crate) fn of(&self, class: ClassId) -> &ClassCounts {
        let segments = self.segments.get_or_init(|| Box::new(std::array::from_fn(|_| OnceLock::new())));
        let segment = segments[class.index() / SEGMENT]
            .get_or_init(|| Box::new(std::array::from_fn(|_| OnceLock::new())));
        segment[class.index() % SEGMENT].get_or_init(Box::default)
    }

    /// The counts of a class, if there are any.
    pub(crate) fn get(&self, class: ClassId) -> Option<&ClassCounts> {
        let segment = self.segments.get()?[class.index() / SEGMENT].get()?;
        Some(segment[class.index() % SEGMENT].get()?)
    }

    /// Returns the counts of the class of a type of actors, if the thread of this table remembers them. `key` is not 0 and
    /// tells types apart.
    pub(crate) fn remembered(&self, key: usize) -> Option<&ClassCounts> {
        let counts = self.recent[place_of(key)].get(key)?;
        self.last.set(key, counts);
        // SAFETY: `remember` has stored the pointer; see there.
        Some(unsafe { &*counts })
    }

    /// Does the same for the type of the last actor that was asked for.
    #[inline]
    pub(crate) fn remembered_last(&self, key: usize) -> Option<&ClassCounts> {
        match self.last.get(key) {
            // SAFETY: as above.
            Some(counts) => Some(unsafe { &*counts }),
            None => None,
        }
    }

    /// Returns the counts of a class, and remembers them as those of a type of actors. Only the thread of the table calls
    /// this.
    pub(crate) fn remember(&self, key: usize, class: ClassId) -> &ClassCounts {
        let counts = self.of(class);
        // The counts stay where they are, as long as the table.
        self.recent[place_of(key)].set(key, counts);
        counts
    }
}

impl Recent {
    #[inline]
    fn get(&self, key: usize) -> Option<*const ClassCounts> {
        // Ordering: Relaxed, both; the thread of the table alone writes and reads these.
        match self.of.load(Ordering::Relaxed) == key {
            true => Some(self.counts.load(Ordering::Relaxed)),
            false => None,
        }
    }

    fn set(&self, key: usize, counts: *const ClassCounts) {
        // Ordering: Relaxed, both; see `get`.
        self.counts.store(counts.cast_mut(), Ordering::Relaxed);
        self.of.store(key, Ordering::Relaxed);
    }
}

/// The place of a type among those that are remembered.
#[inline]
fn place_of(key: usize) -> usize {
    // The vtable of a type has some words, so its address has no use for the lowest bits.
    (key >> 6) & (RECENT - 1)
}

impl ClassCounts {
    /// The histograms, which are made when they are first needed.
    pub(crate) fn histograms(&self) -> &Histograms {
        self.histograms.get_or_init(Box::default)
    }

    /// The histograms, if there are any.
    pub(crate) fn histograms_so_far(&self) -> Option<&Histograms> {
        self.histograms.get().map(|histograms| &**histograms)
    }
}
