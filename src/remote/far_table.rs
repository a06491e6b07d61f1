//! The table of the references to actors of a peer: equal keys are one reference.
//!
//! References are compared by their address, so a reference that is decoded again has to be the one that was decoded before.
//! An entry whose only reference is the table's can be cloned only through the table, whose lock decides: it is swept
//! when the table has grown to twice the size that the last sweep has left.

use crate::sync::{EXPLORED, HashMap, Mutex, lock};
use std::hash::BuildHasher;

/// The number of entries at which a table is swept first.
const SWEPT_FROM: usize = if EXPLORED { 2 } else { 64 };

/// A reference to an actor elsewhere, as a table keeps it.
pub(crate) trait Interned {
    fn key(&self) -> FarKey<'_>;

    /// Whether no other reference exists than this one.
    fn is_alone(&self) -> bool;
}

/// The name of an incarnation, and the type of message that the reference takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FarKey<'a> {
    pub(crate) path: &'a str,
    pub(crate) uid: u32,
    pub(crate) type_id: u64,
}

/// The references to the actors of one UID of a peer.
pub(crate) struct FarTable<R> {
    entries: Mutex<Entries<R>>,
}

struct Entries<R> {
    /// By the hash of path and uid, with the secret of this map's hasher, since the peer chooses paths. The references of one
    /// actor have one hash; two actors of one hash are rare, and still two.
    by_hash: HashMap<u64, Vec<R>>,
    count: usize,
    swept_from: usize,
}

impl<R: Interned> FarTable<R> {
    pub(crate) fn new() -> Self {
        let entries = Entries { by_hash: HashMap::default(), count: 0, swept_from: SWEPT_FROM };
        Self { entries: Mutex::new(entries) }
    }

    /// Returns what `clone` makes of the reference of this key. `make` makes the reference, if there is none. Both run under the
    /// table's lock, and do not use the table.
    pub(crate) fn get_or_make<T>(
        &self,
        key: FarKey<'_>,
        clone: impl FnOnce(&R) -> T,
        make: impl FnOnce() -> R,
    ) -> T {
        let mut held = lock(&self.entries);
        let hash = held.hash(key);
        if let Some(known) = held.find(hash, key) {
            return clone(known);
        }
        // Swept before the new one is there, which has no other reference yet. The swept ones are dropped without the lock.
        let swept = if held.count >= held.swept_from { held.sweep() } else { Vec::new() };
        let made = make();
        debug_assert_eq!(made.key(), key, "the reference has another key than was asked for");
        let cloned = clone(&made);
        held.by_hash.entry(hash).or_default().push(made);
        held.count += 1;
        drop(held);
        drop(swept);
        cloned
    }

    /// Returns what `clone` makes of the reference of this key, if there is one.
    pub(crate) fn get<T>(&self, key: FarKey<'_>, clone: impl FnOnce(&R) -> T) -> Option<T> {
        let held = lock(&self.entries);
        held.find(held.hash(key), key).map(clone)
    }

    /// Shows the references to an incarnation, of each type. `see` runs under the table's lock, and does not use the table.
    pub(crate) fn see_all_of(&self, path: &str, uid: u32, see: impl FnMut(&R)) {
        let held = lock(&self.entries);
        let hash = held.hash(FarKey { path, uid, type_id: 0 });
        let is_meant = |known: &&R| (known.key().path, known.key().uid) == (path, uid);
        held.by_hash.get(&hash).into_iter().flatten().filter(is_meant).for_each(see);
    }

    /// Takes all references out: the UID of the peer is gone.
    pub(crate) fn take_all(&self) -> Vec<R> {
        let mut held = lock(&self.entries);
        (held.count, held.swept_from) = (0, SWEPT_FROM);
        std::mem::take(&mut held.by_hash).into_values().flatten().collect()
    }

    /// Takes the references out that are the table's alone: they would keep their link.
    pub(crate) fn take_alone(&self) -> Vec<R> {
        lock(&self.entries).sweep()
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        lock(&self.entries).count
    }
}

impl<R: Interned> Entries<R> {
    fn hash(&self, key: FarKey<'_>) -> u64 {
        self.by_hash.hasher().hash_one((key.path, key.uid))
    }

    fn find(&self, hash: u64, key: FarKey<'_>) -> Option<&R> {
        self.by_hash.get(&hash)?.iter().find(|known| known.key() == key)
    }

    /// Takes the references out that are the table's alone.
    fn sweep(&mut self) -> Vec<R> {
        let mut swept = Vec::new();
        self.by_hash.retain(|_, known| {
            let (alone, used) = std::mem::take(known).into_iter().partition(R::is_alone);
            *known = used;
            swept.extend::<Vec<R>>(alone);
            !known.is_empty()
        });
        self.count -= swept.len();
        self.swept_from = (2 * self.count).max(SWEPT_FROM);
        swept
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    struct Far {
        path: String,
        uid: u32,
        type_id: u64,
    }

    impl Interned for Arc<Far> {
        fn key(&self) -> FarKey<'_> {
            FarKey { path: &self.path, uid: self.uid, type_id: self.type_id }
        }

        fn is_alone(&self) -> bool {
            Arc::strong_count(self) == 1
        }
    }

    fn intern(table: &FarTable<Arc<Far>>, path: &str, uid: u32, type_id: u64) -> Arc<Far> {
        let make = || Arc::new(Far { path: path.to_owned(), uid, type_id });
        table.get_or_make(FarKey { path, uid, type_id }, Arc::clone, make)
    }

    #[test]
    fn equal_keys_are_one_reference_and_each_part_of_a_key_counts() {
        let table = FarTable::new();
        let first = intern(&table, "/user/a", 1, 2);
        assert!(Arc::ptr_eq(&first, &intern(&table, "/user/a", 1, 2)));
        for (path, uid, type_id) in [("/user/b", 1, 2), ("/user/a", 2, 2), ("/user/a", 1, 3)] {
            assert!(!Arc::ptr_eq(&first, &intern(&table, path, uid, type_id)), "{path} {uid} {type_id}");
        }
        assert_eq!(table.len(), 4);
        let key = FarKey { path: "/user/a", uid: 1, type_id: 2 };
        assert!(table.get(key, |known| Arc::ptr_eq(&first, known)).unwrap());
        assert!(table.get(FarKey { uid: 9, ..key }, |_| ()).is_none());
        let mut types = Vec::new();
        table.see_all_of("/user/a", 1, |known| types.push(known.type_id));
        types.sort();
        assert_eq!(types, [2, 3]);
        table.see_all_of("/user/a", 9, |_| panic!("there is none"));
    }

    #[test]
    fn references_that_only_the_table_has_are_swept_when_it_has_doubled() {
        let table = FarTable::new();
        let kept: Vec<_> = (0..40).map(|uid| intern(&table, "/user/kept", uid + 1, 0)).collect();
        for uid in 40..64 {
            intern(&table, "/user/gone", uid, 0);
        }
        assert_eq!(table.len(), 64);
        // The next one sweeps, and 80 are twice as many as are left.
        intern(&table, "/user/next", 1, 0);
        assert_eq!(table.len(), 41);
        for uid in 0..39 {
            intern(&table, "/user/more", uid + 1, 0);
        }
        assert_eq!(table.len(), 80);
        intern(&table, "/user/last", 1, 0);
        assert_eq!(table.len(), 41);
        for (uid, kept) in kept.iter().enumerate() {
            assert!(Arc::ptr_eq(kept, &intern(&table, "/user/kept", uid as u32 + 1, 0)));
        }
        // Without bound no table of references in use would be swept.
        let all = table.take_all();
        assert_eq!((all.len(), table.len()), (41, 0));
    }

    #[test]
    fn two_keys_of_one_hash_are_two() {
        let table = FarTable::new();
        let (one, other) = (intern(&table, "/a", 1, 0), intern(&table, "/b", 1, 0));
        let mut held = lock(&table.entries);
        let all: Vec<_> = std::mem::take(&mut held.by_hash).into_values().flatten().collect();
        held.by_hash.insert(7, all);
        assert!(Arc::ptr_eq(held.find(7, one.key()).unwrap(), &one));
        assert!(Arc::ptr_eq(held.find(7, other.key()).unwrap(), &other));
        drop(one);
        assert_eq!(held.sweep().len(), 1);
        assert!(held.find(7, other.key()).is_some());
    }
}
