//! A key table finds the actor of a key: a look-up takes no lock and allocates nothing.
//!
//! **Layout.** Entries lie in shards, in arrays with open addressing and linear probing. A shard's array is published
//! through a single pointer, and each of its places is a pointer to an entry that never changes. Readers go through
//! both pointers within a [section](crate::util::reclaim::section).
//!
//! **Writers** hold the shard's lock. A writer puts an entry into an empty place, puts another entry in its place, or
//! leaves a tombstone there. When three quarters of an array are used, the writer publishes a new array that fits the
//! living entries. An insertion therefore costs O(1) on average, and no thread copies the whole table.
//!
//! **No user code under the lock.** Only [`GroupKeyTable::find`] compares keys, outside of the lock. A thread that means to
//! insert reads the shard's [version](GroupKeyTable::version), looks, takes the lock, and compares the version. If the version
//! is unchanged, no thread has changed the shard since the look; otherwise the thread looks again. A writer finds an
//! entry again by its address.
//!
//! **Old entries and arrays** go to the [`RetireList`], which has at most one bag of them in the process-wide list of
//! replaced values at any time, and fills the next bag meanwhile. A reader that never returns therefore delays the
//! freeing of this table's memory and nothing else: the list stays short for all threads that look through it.

use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::{CachePadded, Mutex, MutexGuard, lock};
use crate::util::panic::drop_guarded;
use crate::util::reclaim;
use crate::util::reclaim::{RetiredValue, Section};
use std::ptr::{self, NonNull};
use std::sync::Arc as StdArc;

/// The number of places in a new array; a power of two.
const PLACES_MIN: usize = if crate::sync::EXPLORED { 2 } else { 8 };

/// The number of old values that go into a bag before a thread looks whether the bag before can be freed.
const LOOK_EVERY: usize = 64;

/// A key table leads from the keys of a group to their items.
pub(crate) struct GroupKeyTable<E> {
    /// The number of shards is a power of two.
    shards: Box<[CachePadded<Shard<E>>]>,
    retire_list: StdArc<RetireList<E>>,
}

struct Shard<E> {
    /// Null until the first insertion.
    places: AtomicPtr<EntryArray<E>>,
    /// Counts the changes; written under the lock.
    version: AtomicU64,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    living: usize,
    tombstones: usize,
}

/// An array has a power of two of places, some of which are always empty.
struct EntryArray<E>(Box<[AtomicPtr<Entry<E>>]>);

struct Entry<E> {
    hash: u64,
    item: E,
}

/// Returns the mark in the place of an entry that has been removed: probing goes on behind it. No entry has this
/// address.
fn tombstone<E>() -> *mut Entry<E> {
    ptr::without_provenance_mut(1)
}

/// Returns whether a place holds an entry.
fn is_entry<E>(entry: *mut Entry<E>) -> bool {
    !entry.is_null() && entry != tombstone()
}

impl<E: Send + Sync + 'static> GroupKeyTable<E> {
    /// Returns an empty table with this number of shards, a power of two.
    pub(crate) fn new(shard_count: usize) -> Self {
        debug_assert!(shard_count.is_power_of_two());
        let shard = |_| {
            CachePadded::new(Shard {
                places: AtomicPtr::new(ptr::null_mut()),
                version: AtomicU64::new(0),
                counts: Mutex::new(Counts::default()),
            })
        };
        Self { shards: (0..shard_count).map(shard).collect(), retire_list: StdArc::new(RetireList::new()) }
    }

    /// Returns the shard by the highest bits of the hash; places are found by the lowest bits.
    fn shard(&self, hash: u64) -> &Shard<E> {
        let bits = self.shards.len().trailing_zeros();
        &self.shards[hash.rotate_left(bits) as usize & (self.shards.len() - 1)]
    }

    /// Returns the item of this hash for which `is` holds. `is` may be user code.
    #[inline]
    pub(crate) fn find<'s>(
        &'s self,
        hash: u64,
        _: &'s Section<'_>,
        is: impl Fn(&E) -> bool,
    ) -> Option<&'s E> {
        // Ordering: Acquire; pairs with the Release store in `Writer::rebuild`: the array is whole.
        let places = NonNull::new(self.shard(hash).places.load(Ordering::Acquire))?;
        // SAFETY: the array was published when the section was open, or later; it is freed after the section.
        let places = unsafe { places.as_ref() };
        for at in places.probe(hash) {
            // Ordering: Acquire; pairs with the Release stores in `Writer::insert` and `Writer::replace`: the entry
            // is whole.
            let entry = places.0[at].load(Ordering::Acquire);
            if entry.is_null() {
                return None;
            }
            if entry != tombstone() {
                // SAFETY: as for the array: it was in its place while the section was open.
                let entry = unsafe { &*entry };
                if entry.hash == hash && is(&entry.item) {
                    return Some(&entry.item);
                }
            }
        }
        None
    }

    /// Looks at each item, in no order. An item that is in the table all the time comes once.
    pub(crate) fn for_each<'s>(&'s self, _: &'s Section<'_>, mut look: impl FnMut(&'s E)) {
        for shard in &self.shards {
            // Ordering: Acquire; as in `find`.
            let places = shard.places.load(Ordering::Acquire);
            // SAFETY: as in `find`.
            let Some(places) = (unsafe { places.as_ref() }) else { continue };
            for place in &places.0 {
                // Ordering: Acquire; as in `find`.
                let entry = place.load(Ordering::Acquire);
                if is_entry(entry) {
                    // SAFETY: as in `find`.
                    look(unsafe { &(*entry).item });
                }
            }
        }
    }

    /// Returns the count of changes of the shard that this hash belongs to. The version is to be read before a look:
    /// see [`Writer::is_unchanged`].
    pub(crate) fn version(&self, hash: u64) -> u64 {
        // Ordering: Acquire; pairs with the Release store in `Writer::changed`: a thread that reads a version sees the
        // changes that it counts.
        self.shard(hash).version.load(Ordering::Acquire)
    }

    /// Takes the lock of the shard that this hash belongs to.
    pub(crate) fn lock(&self, hash: u64) -> Writer<'_, E> {
        self.lock_shard(self.shard(hash))
    }

    fn lock_shard<'t>(&'t self, shard: &'t Shard<E>) -> Writer<'t, E> {
        Writer { shard, counts: Some(lock(&shard.counts)), old: Vec::new(), retire_list: &self.retire_list }
    }

    /// Takes each shard's lock once, one after the other. Each thread that held such a lock before has finished under
    /// it.
    pub(crate) fn pass_through(&self) {
        self.shards.iter().for_each(|shard| drop(lock(&shard.counts)));
    }

    /// Returns the number of items.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(&shard.counts).living).sum()
    }
}

impl<E> EntryArray<E> {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicPtr::new(ptr::null_mut())).collect())
    }

    /// Returns the places where an entry of this hash may lie, in order.
    #[inline]
    fn probe(&self, hash: u64) -> impl Iterator<Item = usize> + use<E> {
        let mask = self.0.len() - 1;
        let first = hash as usize;
        (0..=mask).map(move |step| first.wrapping_add(step) & mask)
    }

    /// Returns the first place for a new entry, and whether a tombstone stands there.
    fn free_place(&self, hash: u64) -> Option<(usize, bool)> {
        // Relaxed: the shard's lock orders what writers read.
        let entries = self.probe(hash).map(|at| (at, self.0[at].load(Ordering::Relaxed)));
        let mut free = entries.filter(|(_, entry)| !is_entry(*entry));
        free.next().map(|(at, entry)| (at, !entry.is_null()))
    }
}

/// A writer holds a shard's lock, and may change the shard.
pub(crate) struct Writer<'t, E: Send + Sync + 'static> {
    shard: &'t Shard<E>,
    /// `None` once the lock is released.
    counts: Option<MutexGuard<'t, Counts>>,
    /// The values that go to the retire list when the lock has been released.
    old: Vec<RetiredItem<E>>,
    retire_list: &'t StdArc<RetireList<E>>,
}

impl<E: Send + Sync + 'static> Writer<'_, E> {
    /// Returns whether the shard is unchanged since this [version](GroupKeyTable::version) was read.
    pub(crate) fn is_unchanged(&self, version: u64) -> bool {
        // Relaxed: written under the lock, which the writer holds.
        self.shard.version.load(Ordering::Relaxed) == version
    }

    fn changed(&mut self) {
        let version = self.shard.version.load(Ordering::Relaxed);
        // Ordering: Release; pairs with the Acquire load in `GroupKeyTable::version`.
        self.shard.version.store(version + 1, Ordering::Release);
    }

    fn counts(&mut self) -> &mut Counts {
        self.counts.as_mut().expect("held until the writer is dropped")
    }

    fn places(&self) -> Option<&EntryArray<E>> {
        // SAFETY: it is replaced under the lock alone, which the writer holds. Relaxed for the same reason.
        unsafe { self.shard.places.load(Ordering::Relaxed).as_ref() }
    }

    /// Inserts an item whose key no other item has.
    pub(crate) fn insert(&mut self, hash: u64, item: E) {
        let used = self.counts().living + self.counts().tombstones;
        if self.places().is_none_or(|places| (used + 1) * 4 > places.0.len() * 3) {
            let fits = (self.counts().living + 1) * 2;
            self.rebuild(fits);
        }
        let entry = Box::into_raw(Box::new(Entry { hash, item }));
        let places = self.places().expect("made above");
        let (at, was_tombstone) = places.free_place(hash).expect("a quarter of the places is empty");
        // Ordering: Release; pairs with the Acquire loads in `GroupKeyTable::find` and `GroupKeyTable::for_each`.
        places.0[at].store(entry, Ordering::Release);
        let counts = self.counts();
        counts.living += 1;
        counts.tombstones -= usize::from(was_tombstone);
        self.changed();
    }

    /// Returns whether there is an item of this hash for which `is` holds. `is` is no user code.
    pub(crate) fn has(&self, hash: u64, is: impl Fn(&E) -> bool) -> bool {
        self.place_of(hash, is).is_some()
    }

    fn place_of(&self, hash: u64, is: impl Fn(&E) -> bool) -> Option<(usize, *mut Entry<E>)> {
        let places = self.places()?;
        // Relaxed: the shard's lock orders what writers read.
        let entries = places.probe(hash).map(|at| (at, places.0[at].load(Ordering::Relaxed)));
        let mut entries = entries.take_while(|(_, entry)| !entry.is_null());
        // SAFETY: an entry that has a place is alive, and places are changed under the writer's lock alone.
        entries
            .find(|(_, entry)| is_entry(*entry) && unsafe { (**entry).hash == hash && is(&(**entry).item) })
    }

    /// Puts `with` in the place of the item of this hash for which `is` holds, or removes the item. Returns false if
    /// there is no such item. `is` is no user code.
    pub(crate) fn replace(&mut self, hash: u64, is: impl Fn(&E) -> bool, with: Option<E>) -> bool {
        let (Some(places), Some((at, entry))) = (self.places(), self.place_of(hash, is)) else {
            return false;
        };
        let is_removed = with.is_none();
        let new = with.map_or(tombstone(), |item| Box::into_raw(Box::new(Entry { hash, item })));
        // Ordering: Release; pairs with the Acquire loads in `GroupKeyTable::find` and `GroupKeyTable::for_each`.
        places.0[at].store(new, Ordering::Release);
        self.old.push(RetiredItem::Entry(entry));
        if is_removed {
            self.counts().living -= 1;
            self.counts().tombstones += 1;
            self.shrink();
        }
        self.changed();
        true
    }

    /// Publishes a smaller array if almost all of it is unused.
    fn shrink(&mut self) {
        let living = self.counts().living;
        let is_sparse = |places: &EntryArray<E>| places.0.len() > PLACES_MIN && places.0.len() > living * 8;
        if self.places().is_some_and(is_sparse) {
            self.rebuild(living * 2);
        }
    }

    /// Publishes an array of at least this number of places, with the entries of the array before.
    fn rebuild(&mut self, place_count: usize) {
        let count = place_count.max(PLACES_MIN).next_power_of_two();
        let new = EntryArray::new(count);
        if let Some(places) = self.places() {
            for place in &places.0 {
                let entry = place.load(Ordering::Relaxed);
                if is_entry(entry) {
                    // SAFETY: as in `replace`.
                    let hash = unsafe { (*entry).hash };
                    let (at, _) = new.free_place(hash).expect("there are fewer entries than places");
                    new.0[at].store(entry, Ordering::Relaxed);
                }
            }
        }
        let former = self.shard.places.load(Ordering::Relaxed);
        // Ordering: Release; pairs with the Acquire loads of `places` in `GroupKeyTable::find` and `GroupKeyTable::for_each`.
        self.shard.places.store(Box::into_raw(Box::new(new)), Ordering::Release);
        if !former.is_null() {
            self.old.push(RetiredItem::EntryArray(former));
        }
        self.counts().tombstones = 0;
    }
}

impl<E: Send + Sync + 'static> Drop for Writer<'_, E> {
    fn drop(&mut self) {
        // Freeing a value may run user code that uses this table again, so it is done without the lock.
        self.counts = None;
        for old in self.old.drain(..) {
            self.retire_list.retire(old);
        }
    }
}

impl<E> Drop for GroupKeyTable<E> {
    fn drop(&mut self) {
        for shard in &self.shards {
            // Ordering: Relaxed, here and below; the exclusive access comes after all changes.
            let places = shard.places.load(Ordering::Relaxed);
            if places.is_null() {
                continue;
            }
            // SAFETY: it came from a box, and every reader or writer borrows the table, which is ending.
            let places = unsafe { Box::from_raw(places) };
            for place in &places.0 {
                let entry = place.load(Ordering::Relaxed);
                if is_entry(entry) {
                    // SAFETY: as above; an entry that has a place is in no bag.
                    drop_guarded(unsafe { Box::from_raw(entry) });
                }
            }
        }
    }
}

/// The retire list keeps old entries and arrays until no thread reads them.
struct RetireList<E>(Mutex<RetireBags<E>>);

struct RetireBags<E> {
    filling: Vec<RetiredItem<E>>,
    /// A bag is on the process-wide list of replaced values.
    is_one_out: bool,
}

/// An old value is found by no reader any more. Plain pointers: readers may still hold references.
enum RetiredItem<E> {
    Entry(*mut Entry<E>),
    EntryArray(*mut EntryArray<E>),
}

// SAFETY: it is the right to free a value, which any thread may do if the items may go to other threads.
unsafe impl<E: Send> Send for RetiredItem<E> {}

/// A bag holds values that are freed together.
struct RetireBag<E: Send + Sync + 'static> {
    content: Vec<RetiredItem<E>>,
    retire_list: StdArc<RetireList<E>>,
}

impl<E> RetireList<E> {
    fn new() -> Self {
        Self(Mutex::new(RetireBags { filling: Vec::new(), is_one_out: false }))
    }
}

impl<E: Send + Sync + 'static> RetireList<E> {
    fn retire(self: &StdArc<Self>, old: RetiredItem<E>) {
        let (bag, look) = {
            let mut bags = lock(&self.0);
            bags.filling.push(old);
            let look = bags.filling.len() % LOOK_EVERY == 0;
            (self.next_bag(&mut bags), look)
        };
        match bag {
            Some(bag) => reclaim::process_domain().retire(bag),
            None if look => _ = reclaim::process_domain().collect(),
            None => {}
        }
    }

    /// Returns the values that have been put in the bag so far, if no bag is on the list.
    fn next_bag(self: &StdArc<Self>, bags: &mut RetireBags<E>) -> Option<RetiredValue> {
        if bags.is_one_out || bags.filling.is_empty() {
            return None;
        }
        bags.is_one_out = true;
        let bag =
            Box::new(RetireBag { content: std::mem::take(&mut bags.filling), retire_list: self.clone() });
        // SAFETY: no reader finds the content any more, no other code frees it, and it may be dropped anywhere.
        Some(unsafe { RetiredValue::new(Box::into_raw(bag).cast(), free_bag::<E>) })
    }
}

/// # Safety
///
/// `bag` comes from `Box::<RetireBag<E>>::into_raw`, is used no more, and no thread reads its content any more.
unsafe fn free_bag<E: Send + Sync + 'static>(bag: *mut ()) {
    // SAFETY: by contract.
    let bag = unsafe { Box::from_raw(bag.cast::<RetireBag<E>>()) };
    for old in bag.content {
        // SAFETY: by contract, and it was put into this bag alone.
        unsafe { old.free() };
    }
    let next = {
        let mut bags = lock(&bag.retire_list.0);
        bags.is_one_out = false;
        // A model ends its process-wide domain at its own end, and that domain takes nothing then. In a model the next
        // bag therefore waits for one more change.
        if crate::sync::EXPLORED { None } else { bag.retire_list.next_bag(&mut bags) }
    };
    if let Some(next) = next {
        reclaim::process_domain().defer(next);
    }
}

impl<E> RetiredItem<E> {
    /// # Safety
    ///
    /// No thread finds or reads the value any more, and this is called once.
    unsafe fn free(self) {
        match self {
            // SAFETY: it came from a box; by contract this call owns it.
            RetiredItem::Entry(entry) => drop_guarded(unsafe { Box::from_raw(entry) }),
            // SAFETY: as above.
            RetiredItem::EntryArray(places) => drop(unsafe { Box::from_raw(places) }),
        }
    }
}

impl<E> Drop for RetireList<E> {
    fn drop(&mut self) {
        // The table has gone, and its readers with it.
        let left = std::mem::take(&mut lock(&self.0).filling);
        for old in left {
            // SAFETY: a reader borrows the table; a value in a bag is in no place, and it leaves the bag here.
            unsafe { old.free() };
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::GroupKeyTable;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::thread;
    use crate::util::reclaim::{process_domain, section};
    use std::collections::HashMap;
    use std::sync::Arc as StdArc;

    /// Few hashes, so that probing runs are long.
    fn hash(key: u64) -> u64 {
        key % 7
    }

    fn get(table: &GroupKeyTable<(u64, u64)>, key: u64) -> Option<u64> {
        table.find(hash(key), &section(), |(other, _)| *other == key).map(|(_, value)| *value)
    }

    #[test]
    fn a_table_does_what_a_map_does() {
        let table = GroupKeyTable::new(2);
        let mut map: HashMap<u64, u64> = HashMap::new();
        let mut random = 1_u64;
        for step in 0..if cfg!(miri) { 300 } else { 5_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (random >> 33) % 60;
            let mut shard = table.lock(hash(key));
            let is = |(other, _): &(u64, u64)| *other == key;
            match (map.contains_key(&key), (random >> 20) % 3) {
                (false, _) => {
                    shard.insert(hash(key), (key, step));
                    map.insert(key, step);
                }
                (true, 0) => {
                    assert!(shard.replace(hash(key), is, Some((key, step))));
                    map.insert(key, step);
                }
                (true, _) => {
                    assert!(shard.replace(hash(key), is, None));
                    map.remove(&key);
                }
            }
            drop(shard);
            assert_eq!(get(&table, key), map.get(&key).copied());
        }
        assert_eq!(table.len(), map.len());
        let mut all = HashMap::new();
        table.for_each(&section(), |(key, value)| assert_eq!(all.insert(*key, *value), None));
        assert_eq!(all, map);
        assert!((0..60).all(|key| get(&table, key) == map.get(&key).copied()));
    }

    #[test]
    fn who_looks_at_all_items_while_some_are_added_finds_each_whole() {
        const COUNT: u64 = if cfg!(miri) { 6 } else { 5_000 };
        let table = GroupKeyTable::new(1);
        thread::scope(|scope| {
            scope.spawn(|| (0..COUNT).for_each(|key| table.lock(key).insert(key, (key, key + 1))));
            let mut seen = 0;
            while seen < COUNT {
                seen = 0;
                table.for_each(&section(), |(key, value)| {
                    assert_eq!(*value, key + 1);
                    seen += 1;
                });
                thread::yield_now();
            }
        });
    }

    #[test]
    fn a_shard_tells_whether_it_was_changed() {
        let table = GroupKeyTable::new(1);
        let before = table.version(1);
        assert!(table.lock(1).is_unchanged(before));
        table.lock(1).insert(1, (1, 1));
        assert!(!table.lock(1).is_unchanged(before));
        assert!(!table.lock(1).replace(1, |_| false, None));
        assert_eq!(table.len(), 1);
    }

    struct Counted(StdArc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_is_left_is_freed_with_the_table() {
        let (table, freed) = (GroupKeyTable::new(2), StdArc::new(AtomicUsize::new(0)));
        // In both shards, and more than an array holds at first.
        for hash in (0..20).map(|number| u64::MAX / 20 * number) {
            table.lock(hash).insert(hash, Counted(freed.clone()));
        }
        assert_eq!(freed.load(Ordering::Relaxed), 0);
        drop(table);
        assert_eq!(freed.load(Ordering::Relaxed), 20);
    }

    #[test]
    fn what_is_removed_is_freed_while_the_table_lives() {
        let (table, freed) = (GroupKeyTable::new(1), StdArc::new(AtomicUsize::new(0)));
        // More than one bag: values that are put in while a bag is out go with the next bag. The threads that put them
        // in have ended when the values are freed.
        let reads = section();
        thread::scope(|scope| {
            let remove = || {
                table.lock(0).insert(0, Counted(freed.clone()));
                assert!(table.lock(0).replace(0, |_| true, None));
            };
            (0..3).for_each(|_| scope.spawn(remove).join().expect("no panic"));
        });
        assert_eq!(freed.load(Ordering::Relaxed), 0);
        drop(reads);
        while freed.load(Ordering::Relaxed) < 3 {
            process_domain().collect();
            thread::yield_now();
        }
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_table_that_fills_is_rebuilt_only_to_be_larger() {
        let table = GroupKeyTable::new(1);
        let mut sizes = vec![];
        let mut before = std::ptr::null();
        for key in 0..1000 {
            let mut shard = table.lock(key);
            shard.insert(key, key);
            let places = shard.places().expect("there is an item");
            if !std::ptr::eq(places, before) {
                assert!(sizes.last().is_none_or(|size| (key as usize + 1) * 4 > size * 3), "one fits in");
                sizes.push(places.0.len());
                before = places;
            }
        }
        assert!(sizes.is_sorted_by(|former, latter| former < latter), "{sizes:?}");
    }

    #[test]
    fn a_table_whose_keys_go_is_rebuilt_only_to_be_smaller() {
        let table = GroupKeyTable::new(1);
        let keys = 0..if cfg!(miri) { 100 } else { 1000 };
        for key in keys.clone() {
            table.lock(key).insert(key, key);
        }
        let mut sizes = vec![];
        let mut before = std::ptr::null();
        for key in keys {
            let mut shard = table.lock(key);
            assert!(shard.replace(key, |other| *other == key, None));
            let places = shard.places().expect("there was an item");
            if !std::ptr::eq(places, before) {
                sizes.push(places.0.len());
                before = places;
            }
        }
        assert_eq!(table.len(), 0);
        assert!(sizes.is_sorted_by(|former, latter| former > latter), "{sizes:?}");
        assert_eq!(sizes.last(), Some(&super::PLACES_MIN));
    }
}
