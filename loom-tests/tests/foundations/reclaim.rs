//! Models of the grace period: nothing is freed while it is read, and everything is freed in the end.
//!
//! The payload is a loom cell that readers read and its drop writes, so that loom itself reports a value
//! freed under a reader, or freed without the reads happening before.
//!
//! Mutations seen to fail here:
//! either side of the fence left out; the scan's fence before the lock on the retired list; `epoch` advanced Relaxed, or
//! loaded Relaxed in `quiescent`; any store of `announced` Relaxed; its load in the scan Relaxed; `read`
//! Relaxed; the swap without Release; stamps too small by one; an inner section that ends the outer one or
//! announces anew; `quiescent`, `rest` or `resume` that ignores the depth; a resting thread that still counts
//! as go_online; a rest that looks for no new epoch, or before the fence; `replace_if` Relaxed. Not caught: the swap
//! without Acquire, for loom's fence in the scan also acquires what another thread has read.

use crate::support::{model, must_fail};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use loom::thread;
use pointsman::loom_hooks::sync::asymmetric_fence;
use pointsman::loom_hooks::{Domain, Member, Published, RetiredValue, go_offline_here, go_online, section};

/// A published value that notices being freed under a reader.
///
/// The cell lies outside of the freed memory, so that a mutation is reported and doesn't crash the model.
struct Table {
    version: usize,
    slot: Arc<Slot>,
}

struct Slot {
    alive: UnsafeCell<bool>,
    drops: AtomicUsize,
}

// SAFETY: loom checks every access to the cell and fails the model when two of them race.
unsafe impl Sync for Slot {}

impl Table {
    fn new(version: usize) -> (Self, Arc<Slot>) {
        let slot = Arc::new(Slot { alive: UnsafeCell::new(true), drops: AtomicUsize::new(0) });
        (Self { version, slot: slot.clone() }, slot)
    }

    fn look(&self) -> usize {
        self.slot.look();
        self.version
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.slot.end();
    }
}

impl Slot {
    fn look(&self) {
        // SAFETY: loom checks the access; that is what this cell is for.
        assert!(self.alive.with(|alive| unsafe { *alive }), "read after it was freed");
    }

    fn end(&self) {
        // SAFETY: loom checks the access; that is what this cell is for.
        self.alive.with_mut(|alive| unsafe { *alive = false });
        self.drops.fetch_add(1, Ordering::Relaxed);
    }

    fn drops(&self) -> usize {
        self.drops.load(Ordering::Relaxed)
    }
}

struct World {
    domain: Arc<Domain>,
    published: Published<Table>,
    first: Arc<Slot>,
}

impl World {
    fn new() -> Arc<Self> {
        let domain = Domain::new();
        let (table, first) = Table::new(1);
        let published = Published::new_in(&domain, table);
        Arc::new(Self { domain, published, first })
    }

    fn replace(&self, version: usize) {
        self.published.replace(Table::new(version).0);
    }

    /// All readers have left: one scan frees what the scans before had to leave.
    fn settle(&self) {
        assert_eq!(self.domain.collect(), 0, "nobody reads any more");
        assert_eq!(self.first.drops(), 1, "freed exactly once");
    }
}

// Two threads: bound 3.
#[test]
fn replace_races_section() {
    model("replace_races_section", &[7, 13], 3, 20, || {
        let world = World::new();
        let reader = thread::spawn({
            let world = world.clone();
            move || {
                let member = Member::join(&world.domain);
                for _ in 0..2 {
                    let inside = member.section();
                    world.published.read(&inside).look();
                }
            }
        });
        world.replace(2);
        reader.join().unwrap();
        world.settle();
    });
}

/// The reader is registered and offline when the race begins: only the two fences decide. `skip_fence`
/// leaves out the scan's.
fn retire_races_online(skip_fence: bool) {
    // Raw parts instead of `Published`: the planted fault must be reported, not read freed memory.
    /// # Safety
    ///
    /// `slot` is that of a living `Slot`.
    unsafe fn end(slot: *mut ()) {
        // SAFETY: both slots outlive the model's threads.
        unsafe { &*slot.cast::<Slot>() }.end();
    }
    let slots = [Table::new(1).1, Table::new(2).1];
    for slot in &slots {
        // The tables above have ended; their slots begin again.
        // SAFETY: no other thread has begun.
        slot.alive.with_mut(|alive| unsafe { *alive = true });
    }
    let address = |slot: &Arc<Slot>| std::ptr::from_ref::<Slot>(slot).cast_mut();
    let domain = Domain::new();
    let current = Arc::new(AtomicPtr::new(address(&slots[0])));
    let online = Arc::new(AtomicUsize::new(0));
    let reader = thread::spawn({
        let (domain, current, slots, online) =
            (domain.clone(), current.clone(), slots.clone(), online.clone());
        move || {
            let _keeps = slots;
            let member = Member::join(&domain);
            online.store(1, Ordering::Release);
            let inside = member.section();
            // SAFETY: `_keeps` holds both slots.
            unsafe { &*current.load(Ordering::Acquire) }.look();
            drop(inside);
        }
    });
    while online.load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    let old = current.swap(address(&slots[1]), Ordering::AcqRel);
    // SAFETY: the old slot can be ended once, by anyone.
    domain.defer(unsafe { RetiredValue::new(old.cast(), end) });
    // SAFETY: the fence is there, or its absence is what the model shows.
    unsafe { domain.collect_after(|| skip_fence || asymmetric_fence::heavy()) };
    reader.join().unwrap();
    domain.collect();
}

// Two threads: bound 3.
#[test]
fn retire_races_online_reader() {
    model("retire_races_online", &[13], 3, 10, || retire_races_online(false));
}

#[test]
fn retire_without_its_fence_frees_under_a_reader() {
    must_fail("retire_without_its_fence", 3, || retire_races_online(true));
}

// Two threads: bound 3.
#[test]
fn nested_section_keeps_outer() {
    model("nested_section_keeps_outer", &[13], 3, 20, || {
        let world = World::new();
        let reader = thread::spawn({
            let world = world.clone();
            move || {
                let member = Member::join(&world.domain);
                let outer = member.section();
                let table = world.published.read(&outer);
                let inner = member.section();
                world.published.read(&inner).look();
                drop(inner);
                table.look();
            }
        });
        world.replace(2);
        reader.join().unwrap();
        world.settle();
    });
}

// Two threads, but the failures of weaker orderings need four preemptions. The inner turn of a thread that
// runs turns within turns reports, rests and resumes.
#[test]
fn nested_turn_keeps_outer() {
    model("nested_turn_keeps_outer", &[13], 4, 500, || {
        let world = World::new();
        let worker = thread::spawn({
            let world = world.clone();
            move || {
                let member = Member::join(&world.domain);
                let go_online = member.go_online();
                let outer = member.section();
                let table = world.published.read(&outer);
                go_online.quiescent();
                table.look();
                assert!(go_online.rest(), "it stays online for the section");
                go_online.resume();
                table.look();
                drop(outer);
                go_online.quiescent();
            }
        });
        world.replace(2);
        world.replace(3);
        worker.join().unwrap();
        world.settle();
    });
}

// Two threads, but the failures of weaker orderings need four preemptions. Between two turns the worker
// reports, and one turn reads what the next must not.
#[test]
fn standing_reader_races_replace() {
    model("standing_reader_races_replace", &[7, 13], 4, 500, || {
        let world = World::new();
        let worker = thread::spawn({
            let world = world.clone();
            move || {
                let member = Member::join(&world.domain);
                let go_online = member.go_online();
                let mut newest = 0;
                for _turn in 0..2 {
                    let found = world.published.read(&member.section()).look();
                    assert!(found >= newest, "a thread's reads never go back");
                    newest = found;
                    go_online.quiescent();
                }
            }
        });
        world.replace(2);
        world.domain.collect();
        worker.join().unwrap();
        world.settle();
    });
}

// Two threads: bound 3. Both hold up the freeing, and announce at once: one of them frees, and nobody else comes by.
#[test]
fn two_workers_announce_at_once() {
    model("two_workers_announce_at_once", &[13], 3, 600, || {
        let world = World::new();
        let member = Member::join(&world.domain);
        let go_online = member.go_online();
        let stands = Arc::new(AtomicUsize::new(0));
        let other = thread::spawn({
            let (world, stands) = (world.clone(), stands.clone());
            move || {
                let member = Member::join(&world.domain);
                let go_online = member.go_online();
                stands.store(1, Ordering::Release);
                while !go_online.quiescent() {
                    thread::yield_now();
                }
                go_online.collect();
            }
        });
        while stands.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        world.replace(2);
        assert!(go_online.quiescent());
        go_online.collect();
        other.join().unwrap();
        assert_eq!(world.first.drops(), 1, "freed by one of them");
    });
}

/// A worker that has read goes to rest while another thread replaces: one of the two frees, and nobody else comes by.
/// `looks` is whether the worker heeds what `rest` says.
fn rest_races_replace(looks: bool) {
    let world = World::new();
    let worker = thread::spawn({
        let world = world.clone();
        move || {
            let member = Member::join(&world.domain);
            let go_online = member.go_online();
            world.published.read(&member.section()).look();
            if !go_online.rest() && looks {
                go_online.collect();
                go_online.resume();
                assert!(go_online.rest(), "nothing was replaced since then");
            }
        }
    });
    world.replace(2);
    worker.join().unwrap();
    assert_eq!(world.first.drops(), 1, "freed by one of them");
}

// Two threads: bound 3.
#[test]
fn replaced_while_the_last_worker_goes_to_rest() {
    model("replaced_while_the_last_worker_goes_to_rest", &[13], 3, 190, || rest_races_replace(true));
}

#[test]
fn planted_rest_that_is_not_heeded() {
    must_fail("replaced_while_the_last_worker_goes_to_rest", 3, || rest_races_replace(false));
}

// Two threads: bound 3. Both hold up the freeing, and rest at once, or one before: one of them frees.
#[test]
fn two_workers_rest_at_once() {
    model("two_workers_rest_at_once", &[13], 3, 130, || {
        let world = World::new();
        let member = Member::join(&world.domain);
        let go_online = member.go_online();
        let stands = Arc::new(AtomicUsize::new(0));
        let other = thread::spawn({
            let (world, stands) = (world.clone(), stands.clone());
            move || {
                let member = Member::join(&world.domain);
                let go_online = member.go_online();
                stands.store(1, Ordering::Release);
                if !go_online.rest() {
                    go_online.collect();
                }
            }
        });
        while stands.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        world.replace(2);
        assert!(!go_online.rest());
        go_online.collect();
        other.join().unwrap();
        assert_eq!(world.first.drops(), 1, "freed by one of them");
    });
}

// Two threads: bound 3. A resting worker is woken, reads, and rests again.
#[test]
fn rest_and_resume_race_retire() {
    model("rest_and_resume_race_retire", &[13], 3, 20, || {
        let world = World::new();
        let worker = thread::spawn({
            let world = world.clone();
            move || {
                let member = Member::join(&world.domain);
                let go_online = member.go_online();
                world.published.read(&member.section()).look();
                let _ = go_online.rest();
                // A routed send of a thread that has just decided to park.
                world.published.read(&member.section()).look();
                go_online.resume();
                world.published.read(&member.section()).look();
            }
        });
        world.replace(2);
        worker.join().unwrap();
        world.settle();
    });
}

// Three threads, few steps each: bound 3. The second reader may get the record of the first.
#[test]
fn thread_exit_races_retire() {
    model("thread_exit_races_retire", &[13], 3, 2_900, || {
        let world = World::new();
        let readers = [(); 2].map(|()| {
            let world = world.clone();
            thread::spawn(move || {
                let member = Member::join(&world.domain);
                world.published.read(&member.section()).look();
            })
        });
        world.replace(2);
        for reader in readers {
            reader.join().unwrap();
        }
        world.settle();
    });
}

// Three threads, few steps each: bound 3. Each writer may free what the other one has swapped out.
#[test]
fn two_writers_and_a_reader() {
    model("two_writers_and_a_reader", &[7, 13], 3, 2000, || {
        let world = World::new();
        let reader = thread::spawn({
            let world = world.clone();
            move || {
                let member = Member::join(&world.domain);
                let inside = member.section();
                world.published.read(&inside).look();
            }
        });
        let writer = thread::spawn({
            let world = world.clone();
            move || world.replace(2)
        });
        world.replace(3);
        reader.join().unwrap();
        writer.join().unwrap();
        world.settle();
    });
}

// Three threads, few steps each: bound 3. Of two that have seen the same value one replaces it, and a reader finds whole ones only.
#[test]
fn replace_if_races_replace_if() {
    model("replace_if_races_replace_if", &[13, 15], 3, 23_100, || {
        let world = World::new();
        let replace_if = |world: &World, version: usize| {
            let member = Member::join(&world.domain);
            let inside = member.section();
            let seen = world.published.read(&inside);
            seen.look();
            let first = seen.version == 1;
            (first, world.published.replace_if(seen, Table::new(version).0).is_ok())
        };
        let other = thread::spawn({
            let world = world.clone();
            move || replace_if(&world, 2)
        });
        let reader = thread::spawn({
            let world = world.clone();
            move || {
                let member = Member::join(&world.domain);
                world.published.read(&member.section()).look();
            }
        });
        let outcomes = [replace_if(&world, 3), other.join().unwrap()];
        reader.join().unwrap();
        let firsts = outcomes.iter().filter(|outcome| **outcome == (true, true)).count();
        assert_eq!(firsts, 1, "one has replaced the first: {outcomes:?}");
        world.settle();
    });
}

// Two threads: bound 3. The thread's own membership, made at first use and given back at its end.
#[test]
fn process_wide_domain_by_thread_local() {
    model("process_wide_domain", &[13], 3, 20, || {
        let (table, first) = Table::new(1);
        let published = Arc::new(Published::new(table));
        let worker = thread::spawn({
            let published = published.clone();
            move || {
                let go_online = go_online();
                published.read(&section()).look();
                go_online.quiescent();
                drop(go_online);
                published.read(&section()).look();
            }
        });
        published.replace(Table::new(2).0);
        worker.join().unwrap();
        pointsman::loom_hooks::process_domain().collect();
        assert_eq!(first.drops(), 1);
    });
}

// Two threads: bound 3. A worker reads, blocks, and reads again: once with nothing in hand, once in a section.
#[test]
fn blocking_worker_races_replace() {
    model("blocking_worker_races_replace", &[13], 3, 900, || {
        let (table, first) = Table::new(1);
        let published = Arc::new(Published::new(table));
        let worker = thread::spawn({
            let published = published.clone();
            move || {
                let go_online = go_online();
                let outer = section();
                let table = published.read(&outer);
                drop(go_offline_here());
                table.look();
                drop(outer);
                let rests = go_offline_here();
                drop(go_offline_here());
                published.read(&section()).look();
                drop(rests);
                published.read(&section()).look();
                go_online.quiescent();
            }
        });
        published.replace(Table::new(2).0);
        worker.join().unwrap();
        pointsman::loom_hooks::process_domain().collect();
        assert_eq!(first.drops(), 1);
    });
}

// One thread, one value: the plainest use, in which nothing may be left over.
#[test]
fn one_reader_one_value() {
    model("one_reader_one_value", &[13], 3, 1, || {
        let world = World::new();
        let member = Member::join(&world.domain);
        assert_eq!(world.published.read(&member.section()).look(), 1);
        world.replace(2);
        assert_eq!((world.first.drops(), world.domain.retired_count()), (1, 0));
        assert_eq!(world.published.read(&member.section()).look(), 2);
    });
}
