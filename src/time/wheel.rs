//! A hierarchical timing wheel takes entries in and gives due entries out. The wheel has no clock, no thread and no
//! lock.
//!
//! The wheel follows Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), scheme 7. Time is a count
//! of ticks of one millisecond. A tick is read as a number of eleven digits: ten of six bits each, and the highest of
//! four bits. Level `l` has a slot for each value of digit `l`, and a slot is a list of entries in the order of their
//! insertion. Eleven levels hold every `u64`, so no entry lies beyond the wheel and no list of far entries is needed.
//!
//! The list that holds an entry depends on the entry's deadline and on `now` alone:
//!
//! 1. If its deadline is at most `now`, it is in the list `due`.
//! 2. Otherwise its level is that of the highest digit in which deadline and `now` differ, its slot that
//!    digit of the deadline.
//!
//! The rest follows from these two:
//!
//! * A deadline after `now` is greater in that digit. So the occupied slots of a level all lie after `now`'s own slot,
//!   and nothing wraps around. Each level lies wholly before the next one, so the first occupied slot of the first
//!   occupied level is next.
//! * Entries with the same deadline are always in the same list. Lists grow at the tail only, and a slot is
//!   redistributed from its head, so entries with the same deadline fire in the order of their insertion without being
//!   sorted.
//! * `now` may jump to any tick before the start of the next occupied slot without an entry being moved: the digits
//!   above that slot's level stay, and the digit of that level stays below the slot's. So [`Wheel::advance`] costs by
//!   the slots that it opens, not by the ticks that pass.
//! * Cancelling computes the list that an entry is in; entries don't store it.
//!
//! An entry comes to a lower level each time it is redistributed. After the first time, the rest of its wait is shorter
//! than the wait was. So an entry that waits less than 64 ms is redistributed at most once, less than 4 s at most
//! twice, less than 4 min at most three times, and any entry at most ten times.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use slab::Slab;

/// The length of a tick.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// The tick that no clock reaches: an entry that is inserted at it waits until the wheel is emptied.
pub(crate) const NEVER: u64 = u64::MAX;

/// The tick that stands for all later times.
const LAST: u64 = NEVER - 1;

/// Returns the last tick that has begun at `time`, to advance to. The result is below [`NEVER`], however late `time`
/// is.
pub(crate) fn tick_begun_at(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).map_or(LAST, |tick| tick.min(LAST))
}

/// Returns the first tick that begins at `time` or after it: the deadline to insert, so that no entry fires early.
pub(crate) fn tick_not_before(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(TICK.as_nanos())).map_or(LAST, |tick| tick.min(LAST))
}

/// Values that wait for their ticks.
///
/// Inserting and cancelling take constant time. Room for entries grows by doubling, as in a `Vec`, and is kept
/// for later entries.
pub(crate) struct Wheel<T> {
    /// Everything up to this tick has been fired or is in `due`.
    now: u64,
    /// The number that the next entry gets.
    next_sequence: NonZeroU64,
    /// Bit `l` is set if level `l` has an entry.
    occupied_levels: u16,
    /// For each level a bit for each of its slots that has an entry.
    occupied_slots: [u64; LEVEL_COUNT],
    slots: Box<[[List; SLOT_COUNT]; LEVEL_COUNT]>,
    due: List,
    entries: Slab<Entry<T>>,
}

/// Names one entry of one wheel, for ever: the key of an entry that has fired or was cancelled names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    sequence: NonZeroU64,
    index: u32,
}

impl Key {
    /// Returns the key as plain numbers, for callers that pass it through types of their own.
    pub(crate) fn parts(self) -> (u64, u32) {
        (self.sequence.get(), self.index)
    }

    /// Returns the key that gave these [`parts`](Self::parts).
    pub(crate) fn from_parts((sequence, index): (u64, u32)) -> Option<Self> {
        NonZeroU64::new(sequence).map(|sequence| Self { sequence, index })
    }
}

const DIGIT_BITS: u32 = 6;
const SLOT_COUNT: usize = 1 << DIGIT_BITS;
const LEVEL_COUNT: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;

/// The end of a list.
const NONE: u32 = u32::MAX;

struct Entry<T> {
    deadline: u64,
    /// Counts the wheel's insertions, so no two entries share it even if they share a place in the slab. The number is
    /// not zero, so that the slab can mark free places in it instead of in a word of its own.
    sequence: NonZeroU64,
    previous: u32,
    next: u32,
    value: T,
}

const _: () = assert!(size_of::<Entry<u64>>() == 32 && size_of::<Option<Entry<u64>>>() == 32);

/// A doubly linked list of entries, linked by their places in the slab.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
    /// A tick not after the deadline of any entry in the list. Exact until the earliest entry is cancelled.
    earliest: u64,
}

impl List {
    const EMPTY: List = List { first: NONE, last: NONE, earliest: u64::MAX };

    fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

/// The list that an entry is in.
#[derive(Clone, Copy)]
enum WheelPosition {
    Due,
    Slot { level: usize, slot: usize },
}

impl WheelPosition {
    #[inline]
    fn of(deadline: u64, now: u64) -> WheelPosition {
        if deadline <= now {
            return WheelPosition::Due;
        }
        let level = (deadline ^ now).ilog2() / DIGIT_BITS;
        WheelPosition::Slot { level: level as usize, slot: digit(deadline, level) }
    }
}

/// Returns the digit of `tick` that belongs to `level`.
#[inline]
fn digit(tick: u64, level: u32) -> usize {
    (tick >> (level * DIGIT_BITS)) as usize % SLOT_COUNT
}

/// Returns the first tick of a slot of `level`: `now` with that digit replaced and zeros below.
fn slot_start(now: u64, level: usize, slot: usize) -> u64 {
    let shift = level as u32 * DIGIT_BITS;
    let above = now >> shift & !(SLOT_COUNT as u64 - 1);
    (above | slot as u64) << shift
}

impl<T> Wheel<T> {
    /// Makes an empty wheel whose current tick is `now`.
    pub(crate) fn new(now: u64) -> Self {
        Self {
            now,
            next_sequence: NonZeroU64::MIN,
            occupied_levels: 0,
            occupied_slots: [0; LEVEL_COUNT],
            slots: Box::new([[List::EMPTY; SLOT_COUNT]; LEVEL_COUNT]),
            due: List::EMPTY,
            entries: Slab::new(),
        }
    }

    /// Returns the tick up to which everything has been fired.
    #[cfg(test)]
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Returns how many entries wait.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Lets `value` fire at `deadline`. If that tick is now or past, the value fires at the next advance, whatever its
    /// target.
    ///
    /// Entries that are already due at their insertion fire in the order of insertion, whichever deadlines they have.
    ///
    /// # Panics
    /// When 2³² − 1 entries wait already.
    pub(crate) fn insert(&mut self, deadline: u64, value: T) -> Key {
        let sequence = self.next_sequence;
        // Five centuries of an insertion every nanosecond.
        self.next_sequence = sequence.checked_add(1).expect("fewer than 2^64 insertions");
        let index = self.entries.vacant_key();
        assert!(index < NONE as usize, "timing wheel with {index} entries is full");
        self.entries.insert(Entry { deadline, sequence, previous: NONE, next: NONE, value });
        self.append(index as u32);
        Key { sequence, index: index as u32 }
    }

    /// Takes an entry out before it fires; returns `None` if the entry has fired or was cancelled.
    pub(crate) fn cancel(&mut self, key: Key) -> Option<T> {
        let entry = self.entries.get(key.index as usize)?;
        if entry.sequence != key.sequence {
            return None;
        }
        Some(self.remove(key.index).value)
    }

    /// Returns whether the entry still waits.
    pub(crate) fn holds(&self, key: Key) -> bool {
        self.entries.get(key.index as usize).is_some_and(|entry| entry.sequence == key.sequence)
    }

    /// Takes all entries out, as a wheel of its own. The keys of that wheel name nothing here, not even entries that
    /// are inserted later.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Self { next_sequence: self.next_sequence, ..Self::new(self.now) };
        std::mem::replace(self, empty)
    }

    /// Moves on to the tick `to` and gives every entry due by then to `fire`: in the order of deadlines, and in the
    /// order of insertion where the deadlines are equal.
    ///
    /// Time does not go back: with a `to` before [`now`](Self::now), only entries that are already due fire. If `fire`
    /// panics, the entry that it was given is gone, and the next advance continues behind that entry.
    pub(crate) fn advance(&mut self, to: u64, fire: &mut impl FnMut(Key, T)) {
        self.fire_due(fire);
        while let Some((level, slot)) = self.next_slot() {
            let start = slot_start(self.now, level, slot);
            if start > to {
                break;
            }
            self.open(level, slot, start);
            self.fire_due(fire);
        }
        self.now = self.now.max(to);
    }

    /// Returns the tick to advance to next: no entry fires before it. `None` if no entry waits.
    ///
    /// The tick is the earliest deadline, unless the entry that had this deadline was cancelled while other entries
    /// shared its slot. In that case the tick may lie before the earliest deadline that is left. Advancing to the tick
    /// redistributes that slot, so a cancelled entry costs a waiting thread at most one needless wake-up. The tick
    /// always lies after [`now`](Self::now), except when an entry is already due.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        if !self.due.is_empty() {
            return Some(self.now);
        }
        self.next_slot().map(|(level, slot)| self.slots[level][slot].earliest)
    }

    /// Returns the first occupied slot of the first occupied level.
    #[inline]
    fn next_slot(&self) -> Option<(usize, usize)> {
        if self.occupied_levels == 0 {
            return None;
        }
        let level = self.occupied_levels.trailing_zeros() as usize;
        Some((level, self.occupied_slots[level].trailing_zeros() as usize))
    }

    /// Sets `now` to the first tick of the next occupied slot, and moves the slot's entries to where they belong from
    /// then on: to lower levels, or to `due`.
    fn open(&mut self, level: usize, slot: usize, start: u64) {
        debug_assert!(self.due.is_empty() && start > self.now);
        let list = std::mem::replace(&mut self.slots[level][slot], List::EMPTY);
        self.mark_empty(level, slot);
        self.now = start;
        if level == 0 {
            // All of these entries have this very deadline.
            self.due = list;
            return;
        }
        let mut index = list.first;
        while index != NONE {
            let next = self.entries[index as usize].next;
            self.append(index);
            index = next;
        }
    }

    fn fire_due(&mut self, fire: &mut impl FnMut(Key, T)) {
        while !self.due.is_empty() {
            let index = self.due.first;
            // The entry is taken out before it fires: a panic in `fire` finds the wheel whole.
            let Entry { sequence, value, .. } = self.remove(index);
            fire(Key { sequence, index }, value);
        }
    }

    /// Appends an entry that is in no list to the list where it belongs.
    #[inline]
    fn append(&mut self, index: u32) {
        let deadline = self.entries[index as usize].deadline;
        let place = WheelPosition::of(deadline, self.now);
        if let WheelPosition::Slot { level, slot } = place {
            self.occupied_levels |= 1 << level;
            self.occupied_slots[level] |= 1 << slot;
        }
        let list = self.list_mut(place);
        list.earliest = list.earliest.min(deadline);
        let last = std::mem::replace(&mut list.last, index);
        if last == NONE {
            list.first = index;
        } else {
            self.entries[last as usize].next = index;
        }
        let entry = &mut self.entries[index as usize];
        entry.previous = last;
        entry.next = NONE;
    }

    /// Takes an entry out of its list and out of the slab.
    #[inline]
    fn remove(&mut self, index: u32) -> Entry<T> {
        let entry = self.entries.remove(index as usize);
        if entry.previous != NONE {
            self.entries[entry.previous as usize].next = entry.next;
        }
        if entry.next != NONE {
            self.entries[entry.next as usize].previous = entry.previous;
        }
        if entry.previous == NONE || entry.next == NONE {
            self.move_ends(&entry);
        }
        entry
    }

    /// Corrects the ends of the list from which `entry` was taken.
    fn move_ends(&mut self, entry: &Entry<T>) {
        let place = WheelPosition::of(entry.deadline, self.now);
        let list = self.list_mut(place);
        if entry.previous == NONE {
            list.first = entry.next;
        }
        if entry.next == NONE {
            list.last = entry.previous;
        }
        if list.is_empty() {
            *list = List::EMPTY;
            if let WheelPosition::Slot { level, slot } = place {
                self.mark_empty(level, slot);
            }
        }
    }

    #[inline]
    fn mark_empty(&mut self, level: usize, slot: usize) {
        self.occupied_slots[level] &= !(1 << slot);
        if self.occupied_slots[level] == 0 {
            self.occupied_levels &= !(1 << level);
        }
    }

    #[inline]
    fn list_mut(&mut self, place: WheelPosition) -> &mut List {
        match place {
            WheelPosition::Due => &mut self.due,
            WheelPosition::Slot { level, slot } => &mut self.slots[level][slot],
        }
    }
}

impl<T> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("now", &self.now)
            .field("len", &self.len())
            .field("next_deadline", &self.next_deadline())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use std::collections::BTreeMap;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn fired_by(wheel: &mut Wheel<u64>, to: u64) -> Vec<u64> {
        let mut fired = Vec::new();
        wheel.advance(to, &mut |_, value| fired.push(value));
        fired
    }

    /// Checks the promises of the module docs for every entry, list and bit.
    fn check_places<T>(wheel: &Wheel<T>) {
        let mut listed = 0;
        let mut check_list = |list: &List, place: Option<(usize, usize)>| {
            let (mut previous, mut index) = (NONE, list.first);
            while index != NONE {
                let entry = &wheel.entries[index as usize];
                assert_eq!(entry.previous, previous);
                assert!(entry.deadline >= list.earliest);
                match WheelPosition::of(entry.deadline, wheel.now) {
                    WheelPosition::Due => assert_eq!(place, None),
                    WheelPosition::Slot { level, slot } => assert_eq!(place, Some((level, slot))),
                }
                listed += 1;
                (previous, index) = (index, entry.next);
            }
            assert_eq!(list.last, previous);
        };
        check_list(&wheel.due, None);
        for (level, slots) in wheel.slots.iter().enumerate() {
            for (slot, list) in slots.iter().enumerate() {
                check_list(list, Some((level, slot)));
                assert_eq!(wheel.occupied_slots[level] >> slot & 1 == 1, !list.is_empty());
            }
            assert_eq!(wheel.occupied_levels >> level & 1 == 1, wheel.occupied_slots[level] != 0);
        }
        assert_eq!(listed, wheel.len());
    }

    /// A distance with a random number of bits, so that each level gets its share.
    fn any_distance(rng: &mut SmallRng, bits_max: u32) -> u64 {
        let bits = rng.random_range(0..=bits_max);
        rng.random::<u64>().checked_shr(u64::BITS - bits).unwrap_or(0)
    }

    /// Plays random operations on a wheel and on a sorted map, which must agree in everything.
    fn agrees_with_sorted_map(seed: u64, start: u64, bits_max: u32) {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut wheel = Wheel::new(start);
        let mut model: BTreeMap<(u64, u64), Key> = BTreeMap::new();
        let mut keys: Vec<(Key, (u64, u64))> = Vec::new();
        let (mut now, mut count) = (start, 0);
        for step in 0..4000 {
            if step % 100 == 0 {
                check_places(&wheel);
            }
            match rng.random_range(0..10) {
                0..5 => {
                    let distance = any_distance(&mut rng, bits_max);
                    let deadline = match rng.random_range(0..8) {
                        0 => now.saturating_sub(distance),
                        _ => now.saturating_add(distance),
                    };
                    let key = wheel.insert(deadline, count);
                    let place = (deadline.max(now), count);
                    assert_eq!(model.insert(place, key), None);
                    keys.push((key, place));
                    count += 1;
                }
                5..8 if !keys.is_empty() => {
                    // Any key ever made, so stale ones as well.
                    let (key, place) = keys[rng.random_range(0..keys.len())];
                    let cancelled = wheel.cancel(key);
                    assert_eq!(cancelled, model.remove(&place).map(|_| place.1));
                }
                8 => {
                    let to = match rng.random_range(0..4) {
                        0 => wheel.next_deadline().unwrap_or(now),
                        _ => now.saturating_add(any_distance(&mut rng, bits_max)),
                    };
                    now = to;
                    let later = model.split_off(&(to.saturating_add(1), 0));
                    let (due, left) = if to == u64::MAX {
                        let mut all = model;
                        all.extend(later);
                        (all, BTreeMap::new())
                    } else {
                        (model, later)
                    };
                    model = left;
                    let mut due = due.into_iter();
                    wheel.advance(to, &mut |key, value| {
                        let ((_, expected_value), expected_key) = due.next().expect("nothing else is due");
                        assert_eq!((key, value), (expected_key, expected_value));
                    });
                    assert_eq!(due.next(), None);
                }
                _ => {}
            }
            assert_eq!((wheel.now(), wheel.len()), (now, model.len()));
            match (wheel.next_deadline(), model.first_key_value()) {
                (Some(bound), Some((&(earliest, _), _))) => {
                    assert!(bound <= earliest);
                    assert!(bound > now || earliest == now);
                }
                (None, None) => {}
                (bound, earliest) => panic!("bound {bound:?} but earliest {earliest:?}"),
            }
        }
        check_places(&wheel);
    }

    #[test]
    fn agrees_with_a_sorted_map_near_and_far() {
        for seed in 0..8 {
            for bits_max in [3, 7, 13, 20, 40, 64] {
                agrees_with_sorted_map(seed, 0, bits_max);
            }
        }
    }

    #[test]
    fn agrees_with_a_sorted_map_from_odd_ticks() {
        for level in 1..LEVEL_COUNT as u32 {
            let boundary = 1u64 << (level * DIGIT_BITS);
            agrees_with_sorted_map(u64::from(level), boundary - 1, 8);
            agrees_with_sorted_map(u64::from(level), boundary * 3 + 17, level * DIGIT_BITS + 2);
        }
        agrees_with_sorted_map(99, u64::MAX - 10_000, 12);
    }

    #[test]
    fn fires_at_each_boundary_between_slots_and_never_early() {
        for shift in 0..u64::BITS {
            let boundary = 1u64 << shift;
            for start in [0, boundary / 2, boundary - 1] {
                for deadline in [boundary - 1, boundary, boundary + 1, boundary.saturating_mul(64)] {
                    if deadline <= start {
                        continue;
                    }
                    let mut wheel = Wheel::new(start);
                    wheel.insert(deadline, 1);
                    check_places(&wheel);
                    assert!(fired_by(&mut wheel, deadline - 1).is_empty());
                    check_places(&wheel);
                    assert_eq!(wheel.next_deadline(), Some(deadline));
                    assert_eq!(fired_by(&mut wheel, deadline), [1]);
                    assert_eq!(wheel.next_deadline(), None);
                }
            }
        }
    }

    #[test]
    fn equal_deadlines_fire_in_the_order_of_insertion_whichever_level_they_came_through() {
        let mut wheel = Wheel::new(0);
        let deadline = 64 * 64 * 64 + 5;
        wheel.insert(deadline, 0);
        wheel.advance(64 * 64 * 63, &mut |_, _| panic!("early"));
        wheel.insert(deadline, 1);
        wheel.advance(64 * 64 * 64, &mut |_, _| panic!("early"));
        wheel.insert(deadline, 2);
        wheel.insert(deadline - 1, 3);
        assert_eq!(fired_by(&mut wheel, deadline), [3, 0, 1, 2]);
    }

    #[test]
    fn one_jump_fires_all_levels_in_order() {
        let mut wheel = Wheel::new(0);
        let deadlines: Vec<u64> = (0..u64::BITS).map(|bit| 1 << bit).collect();
        for &deadline in deadlines.iter().rev() {
            wheel.insert(deadline, deadline);
        }
        assert_eq!(fired_by(&mut wheel, u64::MAX), deadlines);
        assert_eq!(wheel.now(), u64::MAX);
        wheel.insert(u64::MAX, 7);
        assert_eq!(wheel.next_deadline(), Some(u64::MAX));
        assert_eq!(fired_by(&mut wheel, u64::MAX), [7]);
    }

    #[test]
    fn a_past_deadline_fires_at_the_next_advance_even_if_time_stands_still() {
        let mut wheel = Wheel::new(100);
        wheel.insert(101, 3);
        wheel.insert(40, 1);
        wheel.insert(7, 2);
        assert_eq!(wheel.next_deadline(), Some(100));
        assert_eq!(fired_by(&mut wheel, 50), [1, 2]);
        assert_eq!(wheel.now(), 100);
        assert_eq!(fired_by(&mut wheel, 101), [3]);
    }

    #[test]
    fn neighbours_in_a_slot_survive_a_cancel() {
        for victim in 0..3 {
            let mut wheel = Wheel::new(0);
            let keys: Vec<Key> = (0..3).map(|value| wheel.insert(500, value)).collect();
            assert_eq!(wheel.cancel(keys[victim]), Some(victim as u64));
            assert_eq!(wheel.cancel(keys[victim]), None);
            check_places(&wheel);
            let expected: Vec<u64> = (0..3).filter(|&value| value != victim as u64).collect();
            assert_eq!(fired_by(&mut wheel, 500), expected);
        }
    }

    #[test]
    fn a_stale_key_does_not_touch_the_entry_in_its_old_place() {
        let mut wheel = Wheel::new(0);
        let cancelled = wheel.insert(10, 1);
        wheel.cancel(cancelled);
        let fired = wheel.insert(1, 2);
        wheel.advance(1, &mut |_, _| {});
        let current = wheel.insert(10, 3);
        assert_eq!(
            (cancelled.index, fired.index),
            (current.index, current.index),
            "the place was used again"
        );
        assert_eq!((wheel.cancel(cancelled), wheel.cancel(fired)), (None, None));
        assert_eq!(wheel.cancel(current), Some(3));
    }

    #[test]
    fn what_was_taken_out_has_keys_that_name_nothing_in_what_is_left() {
        let mut wheel = Wheel::new(0);
        let taken = wheel.insert(10, 1);
        let mut others = wheel.take();
        let kept = wheel.insert(10, 2);
        assert_eq!(taken.index, kept.index, "the place was used again");
        assert!(!wheel.holds(taken) && wheel.holds(kept) && others.holds(taken));
        assert_eq!(wheel.cancel(taken), None);
        assert_eq!((fired_by(&mut others, 10), fired_by(&mut wheel, 10)), (vec![1], vec![2]));
        assert!(!wheel.holds(kept), "it has fired");
    }

    #[test]
    fn a_bound_left_by_a_cancelled_entry_is_passed_with_one_advance() {
        let mut wheel = Wheel::new(0);
        let early = wheel.insert(64 * 64, 1);
        wheel.insert(64 * 64 + 4000, 2);
        wheel.cancel(early);
        assert_eq!(wheel.next_deadline(), Some(64 * 64));
        assert!(fired_by(&mut wheel, 64 * 64).is_empty());
        assert_eq!(wheel.next_deadline(), Some(64 * 64 + 4000));
    }

    #[test]
    fn a_panic_while_firing_loses_only_its_own_entry() {
        let mut wheel = Wheel::new(0);
        for value in 0..3 {
            wheel.insert(70, value);
        }
        wheel.insert(5000, 3);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            wheel.advance(10_000, &mut |_, value| assert_ne!(value, 1));
        }));
        assert!(outcome.is_err());
        check_places(&wheel);
        assert_eq!((wheel.now(), wheel.len()), (70, 2));
        assert_eq!(fired_by(&mut wheel, 10_000), [2, 3]);
    }

    #[test]
    fn durations_become_ticks_that_are_never_early() {
        let (nano, milli) = (Duration::from_nanos(1), Duration::from_millis(1));
        assert_eq!((tick_begun_at(Duration::ZERO), tick_not_before(Duration::ZERO)), (0, 0));
        assert_eq!((tick_begun_at(milli), tick_not_before(milli)), (1, 1));
        assert_eq!((tick_begun_at(milli + nano), tick_not_before(milli + nano)), (1, 2));
        assert_eq!((tick_begun_at(Duration::MAX), tick_not_before(Duration::MAX)), (LAST, LAST));
    }
}
