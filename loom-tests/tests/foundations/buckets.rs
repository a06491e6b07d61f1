//! The buckets of histograms: one thread counts by loads and stores, and others add up meanwhile.
//!
//! Mutation seen to be caught: none yet.

use crate::support::model;
use loom::sync::Arc;
use loom::thread;
use pointsman::loom_hooks::buckets::{BUCKET_COUNT, Buckets};

fn sum(buckets: &Buckets) -> u64 {
    let mut sums = [0; BUCKET_COUNT];
    buckets.add_to(&mut sums);
    sums.iter().sum()
}

// Bound 3: two threads. A second writer would lose a sample here.
#[test]
fn no_sample_of_a_single_writer_is_lost_and_no_bucket_falls() {
    model("buckets_single_writer", &[15], 3, 20, || {
        let buckets = Arc::new(Buckets::default());
        let reader = {
            let buckets = buckets.clone();
            thread::spawn(move || {
                let before = sum(&buckets);
                let after = sum(&buckets);
                assert!(before <= after && after <= 2, "{before} {after}");
            })
        };
        (0..2).for_each(|_| buckets.count(0, false));
        reader.join().unwrap();
        assert_eq!(sum(&buckets), 2);
    });
}

// Bound 3: two threads, both of which write: the buckets of threads that have no counters of their own.
#[test]
fn no_sample_of_two_writers_is_lost_where_buckets_are_shared() {
    model("buckets_shared", &[15], 3, 2, || {
        let buckets = Arc::new(Buckets::default());
        let writer = {
            let buckets = buckets.clone();
            thread::spawn(move || buckets.count(0, true))
        };
        buckets.count(0, true);
        writer.join().unwrap();
        assert_eq!(sum(&buckets), 2);
    });
}
