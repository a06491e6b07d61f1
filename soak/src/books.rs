//! What became of each message, written down by the storms themselves and not by the engine.
//!
//! Each message has a slot, and each object that is a copy of it must come to exactly one end: handled, dead, dropped,
//! or handed back. A slot counts ends less copies, so at quiescence each slot in use shows one end, however often its
//! message was copied. A message object that is dropped without an end was lost.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicUsize, Ordering};

/// Slots that a sender takes at a time.
const BLOCK: usize = 64;
/// Set in a slot that is in use, whose other bits count ends.
const USED: u8 = 0x80;
/// Threads that count in rows of their own; others share.
const ROWS: usize = 64;
/// Faults that are told one by one.
const FAULTS_MAX: usize = 20;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Messages sent.
    Sent,
    /// Copies of messages.
    Copied,
    /// Ends of messages, one after the other.
    Handled,
    Dead,
    Dropped,
    Back,
    /// Objects whose destructor must run: messages and questions.
    Made,
    Gone,
    /// Questions, and how they ended.
    Asked,
    Answered,
    Failed,
    /// States of actors.
    Born,
    Buried,
    /// Timer ticks handled.
    Ticked,
}

const COUNTS: usize = Count::Ticked as usize + 1;

#[derive(Default)]
#[repr(align(128))]
struct Row([AtomicI64; COUNTS]);

/// The books of one run; kept from round to round.
pub struct Books {
    slots: Box<[AtomicU8]>,
    /// The first slot that nobody has.
    free: AtomicUsize,
    /// Tells blocks of slots of this bout from earlier ones.
    pub(crate) bout: AtomicU32,
    rows: Box<[Row]>,
    senders: AtomicU32,
    faults: Mutex<Vec<String>>,
}

thread_local! {
    static ROW: Cell<usize> = const { Cell::new(usize::MAX) };
}
static NEXT_ROW: AtomicUsize = AtomicUsize::new(0);

/// A small number of the calling thread.
pub(crate) fn row_number() -> usize {
    let number = ROW.try_with(|row| {
        if row.get() == usize::MAX {
            row.set(NEXT_ROW.fetch_add(1, Ordering::Relaxed) % ROWS);
        }
        row.get()
    });
    number.unwrap_or(0)
}

impl Books {
    /// Books with room for so many messages between two moments of quiescence. They stay for ever, so that a message
    /// needs no count of its own to reach them.
    pub fn open(slot_count: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            slots: (0..slot_count).map(|_| AtomicU8::new(0)).collect(),
            free: AtomicUsize::new(0),
            bout: AtomicU32::new(0),
            rows: (0..ROWS).map(|_| Row::default()).collect(),
            senders: AtomicU32::new(0),
            faults: Mutex::default(),
        }))
    }

    pub fn count(&self, what: Count, how_many: i64) {
        self.rows[row_number()].0[what as usize].fetch_add(how_many, Ordering::Relaxed);
    }

    pub fn total(&self, what: Count) -> i64 {
        self.rows.iter().map(|row| row.0[what as usize].load(Ordering::Acquire)).sum()
    }

    /// Messages that have come to no end yet.
    pub fn under_way(&self) -> i64 {
        // The ends first, so that what is sent meanwhile does not hide what is under way.
        let ended = self.ended();
        self.total(Count::Sent) + self.total(Count::Copied) - ended
    }

    pub fn ended(&self) -> i64 {
        [Count::Handled, Count::Dead, Count::Dropped, Count::Back].map(|end| self.total(end)).iter().sum()
    }

    /// A number for one more sender.
    pub fn new_sender(&self) -> u32 {
        self.senders.fetch_add(1, Ordering::Relaxed)
    }

    /// Forgets the senders, when none of them is left.
    pub fn forget_senders(&self) {
        self.senders.store(0, Ordering::Relaxed);
    }

    /// Gives out a block of slots; `None` when there are no more in this bout.
    pub(crate) fn slots(&self) -> Option<std::ops::Range<u32>> {
        if self.is_full() {
            return None;
        }
        let first = self.free.fetch_add(BLOCK, Ordering::Relaxed);
        let end = first + BLOCK;
        (end <= self.slots.len()).then_some(first as u32..end as u32)
    }

    /// Whether all slots are given out.
    pub fn is_full(&self) -> bool {
        self.free.load(Ordering::Relaxed) + BLOCK > self.slots.len()
    }

    pub(crate) fn begin(&self, slot: u32) {
        self.slots[slot as usize].store(USED, Ordering::Relaxed);
        self.count(Count::Sent, 1);
    }

    pub(crate) fn copy(&self, slot: u32) {
        self.slots[slot as usize].fetch_sub(1, Ordering::Relaxed);
        self.count(Count::Copied, 1);
    }

    pub(crate) fn end(&self, slot: u32, end: Count) {
        self.slots[slot as usize].fetch_add(1, Ordering::Relaxed);
        self.count(end, 1);
    }

    pub fn fault(&self, what: impl Into<String>) {
        let mut faults = self.faults.lock().expect("nobody panics with it");
        faults.push(what.into());
    }

    pub fn has_faults(&self) -> bool {
        !self.faults.lock().expect("nobody panics with it").is_empty()
    }

    /// What was wrong until now, shortened.
    pub fn faults(&self) -> Option<String> {
        let faults = self.faults.lock().expect("nobody panics with it");
        if faults.is_empty() {
            return None;
        }
        let mut text = format!("{} faults", faults.len());
        for fault in faults.iter().take(FAULTS_MAX) {
            let _ = write!(text, "\n  {fault}");
        }
        Some(text)
    }

    /// At quiescence: each message sent since the last time has come to one end. Begins the next bout.
    pub fn close_bout(&self) {
        let mut used = 0_i64;
        let given_out = self.free.load(Ordering::Acquire).min(self.slots.len());
        for (number, slot) in self.slots[..given_out].iter().enumerate() {
            let seen = slot.swap(0, Ordering::Relaxed);
            used += i64::from(seen != 0);
            if seen != 0 && seen != USED + 1 {
                let ends = seen.wrapping_sub(USED) as i8;
                self.fault(format!(
                    "the message in slot {number} has {ends} ends beyond its copies: must be 1"
                ));
            }
        }
        self.free.store(0, Ordering::Relaxed);
        self.bout.fetch_add(1, Ordering::Release);
        if used == 0 && given_out >= BLOCK {
            self.fault("slots were given out and none was used: the check checks nothing");
        }
    }
}
