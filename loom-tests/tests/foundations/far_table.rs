//! Models of the table that makes references to one actor elsewhere one reference.
//!
//! Mutations that these were seen to catch: a sweep that takes out references which one further thread has (two references to
//! one actor).

use crate::support::counted::Tally;
use crate::support::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use pointsman::loom_hooks::far_table::{FarKey, FarTable, Interned};
use pointsman::{ActorRef, SendError, actor::Recipient};

/// A recipient elsewhere, which counts its drop. loom reports a use that is not before it.
struct Elsewhere {
    uses: AtomicUsize,
    _drops: crate::support::counted::Counted,
}

impl Recipient<u8> for Elsewhere {
    fn deliver(&self, _: u8) -> Result<(), SendError<u8>> {
        self.uses.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.uses.with_mut(|uses| *uses = 0);
    }
}

struct Entry {
    uid: u32,
    reference: ActorRef<u8>,
}

impl Interned for Entry {
    fn key(&self) -> FarKey<'_> {
        key(self.uid)
    }

    fn is_alone(&self) -> bool {
        self.reference.is_only_reference()
    }
}

fn key(uid: u32) -> FarKey<'static> {
    FarKey { path: "/user/a", uid, type_id: 1 }
}

struct World {
    table: FarTable<Entry>,
    tally: Tally,
    made: AtomicUsize,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self { table: FarTable::new(), tally: Tally::new(), made: AtomicUsize::new(0) })
    }

    fn intern(&self, uid: u32) -> ActorRef<u8> {
        let make = || {
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            let elsewhere = Elsewhere { uses: AtomicUsize::new(0), _drops: self.tally.message(number) };
            Entry { uid, reference: ActorRef::to_recipient(elsewhere) }
        };
        self.table.get_or_make(key(uid), |entry| entry.reference.clone(), make)
    }

    /// Drops the table's references. Each that was made is freed once.
    fn end(&self) {
        drop(self.table.take_all());
        self.tally.assert_each_once(self.made.load(Ordering::Relaxed));
    }
}

/// Two threads decode a reference to one actor while a third one does so too. All three have the same one. Three threads: bound 3.
#[test]
fn look_ups_of_one_key() {
    model("far_table_look_ups_of_one_key", &[13, 14], 3, 150, || {
        let world = World::new();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let world = world.clone();
                thread::spawn(move || world.intern(1))
            })
            .collect();
        let own = world.intern(1);
        for thread in threads {
            assert!(thread.join().unwrap() == own, "two references to one actor");
        }
        assert_eq!((world.table.len(), world.made.load(Ordering::Relaxed)), (1, 1));
        drop(own);
        world.end();
    });
}

/// A thread uses the last reference to an actor and drops it, and another one decodes references to others, which sweeps the table;
/// a third one decodes a reference to the same actor. The one in use is never freed, and while it is there, it is the only one.
/// Three threads: bound 3.
#[test]
fn last_drop_races_sweep() {
    model("far_table_last_drop_races_sweep", &[13, 14], 3, 1200, || {
        let world = World::new();
        let (last, kept) = (world.intern(1), world.intern(2));
        let user = thread::spawn(move || {
            last.tell(7);
            drop(last);
        });
        let sweeper = thread::spawn({
            let world = world.clone();
            move || drop(world.intern(3))
        });
        let again = world.intern(1);
        again.tell(8);
        assert!(again == world.intern(1) && kept == world.intern(2));
        user.join().unwrap();
        sweeper.join().unwrap();
        assert!(again == world.intern(1), "a reference in use was swept");
        drop((again, kept));
        world.end();
    });
}

/// A thread that has a reference clones it and drops the first one, while another one sweeps. Two threads: bound 3.
#[test]
fn clone_races_sweep() {
    model("far_table_clone_races_sweep", &[13, 14], 3, 8, || {
        let world = World::new();
        let (first, other) = (world.intern(1), world.intern(2));
        let sweeper = thread::spawn({
            let world = world.clone();
            move || drop((world.intern(3), world.intern(4)))
        });
        let second = first.clone();
        drop(first);
        second.tell(7);
        sweeper.join().unwrap();
        assert!(second == world.intern(1) && other == world.intern(2), "a reference in use was swept");
        drop((second, other));
        world.end();
    });
}
