//! Models of per-thread values: one thread, one value, whoever installs the chunk.
//!
//! Mutations seen to fail here:
//! `ready` stored or loaded Relaxed; the loser of the race for a chunk keeps its own; all numbers of a
//! chunk share one place.

use crate::support::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use pointsman::loom_hooks::PerThread;
use std::cell::Cell;

// Four threads, few steps each: bound 3. The main thread has number 0, and the numbers 2 and 3 share a chunk.
#[test]
fn threads_race_to_install_a_chunk() {
    model("threads_race_to_install_a_chunk", &[13, 15], 3, 29_300, || {
        let object = Arc::new(PerThread::<Cell<usize>>::new());
        object.with(Cell::new, |_| ());
        let threads = [(); 3].map(|()| {
            let object = object.clone();
            thread::spawn(move || {
                let order = object.with(Cell::new, |cell| cell.replace(cell.get() + 10));
                let again = object.with(Cell::new, Cell::get);
                assert!((1..=3).contains(&(order % 10)));
                assert_eq!(again, order + 10, "the value of a thread is its own");
                order
            })
        });
        let mut orders = threads.map(|thread| thread.join().unwrap());
        orders.sort_unstable();
        // A number whose thread has ended may have been used again, and the value with it.
        assert!(object.entered() <= 4 && orders[0] == 1);
    });
}

// Two threads: bound 3. The main thread reads all values while the other one makes its own.
#[test]
fn reading_races_a_first_use() {
    model("reading_races_a_first_use", &[13], 3, 25, || {
        let object = Arc::new(PerThread::<AtomicUsize>::new());
        let reader = thread::spawn({
            let object = object.clone();
            move || {
                let mut seen = 0;
                object.for_each(|count| seen += count.load(Ordering::Relaxed));
                assert!(seen <= 2);
            }
        });
        object.with(|_| AtomicUsize::new(1), |count| count.store(2, Ordering::Relaxed));
        reader.join().unwrap();
        let mut last = 0;
        object.for_each(|count| last += count.load(Ordering::Relaxed));
        assert_eq!(last, 2);
    });
}

// Three threads, few steps each: bound 3. A value passes to the thread that gets its number next.
#[test]
fn a_number_used_again_brings_its_value() {
    model("a_number_used_again_brings_its_value", &[13], 3, 340, || {
        let object = Arc::new(PerThread::<Cell<usize>>::new());
        let threads = [(); 2].map(|()| {
            let object = object.clone();
            thread::spawn(move || object.with(|_| Cell::new(0), |cell| cell.set(cell.get() + 1)))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert!((1..=2).contains(&object.entered()));
    });
}

#[test]
fn one_thread_one_value() {
    model("one_thread_one_value", &[], 3, 1, || {
        let object = PerThread::<Cell<usize>>::new();
        assert_eq!(object.with(Cell::new, Cell::get), 0);
    });
}
