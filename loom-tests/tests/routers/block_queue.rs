//! The queue without a bound that several takers share, on its own. A block holds two messages, so three cross into the
//! next block.
//!
//! Caught: an end whose index moves to the next lap before its block does; a count of taken messages that neither
//! acquires nor releases.

use crate::support::model;
use loom::sync::Arc;
use loom::thread;
use pointsman::loom_hooks::block_queue::{BlockQueue, Cursor};

/// Messages of one pusher: the numbers behind its first.
fn pusher(queue: &Arc<BlockQueue<usize>>, first: usize, count: usize) -> thread::JoinHandle<()> {
    let queue = queue.clone();
    thread::spawn(move || (first..first + count).for_each(|number| queue.push(number)))
}

/// Takes so many messages or all that are there, and checks that they come in the order of their pushers.
fn take(queue: &BlockQueue<usize>, cursor: &Cursor<usize>, count: usize) -> Vec<usize> {
    let taken: Vec<usize> = std::iter::from_fn(|| queue.pop(cursor)).take(count).collect();
    for first in [0, 10] {
        let of_one: Vec<_> = taken.iter().filter(|number| (first..first + 10).contains(*number)).collect();
        assert!(of_one.is_sorted(), "{taken:?}");
    }
    taken
}

fn taker(queue: &Arc<BlockQueue<usize>>, count: usize) -> thread::JoinHandle<Vec<usize>> {
    let queue = queue.clone();
    thread::spawn(move || take(&queue, &Cursor::new(), count))
}

/// All that was taken, and what is left.
#[expect(clippy::len_zero, reason = "the two are compared")]
fn all(queue: &BlockQueue<usize>, taken: Vec<Vec<usize>>) -> Vec<usize> {
    let mut all = taken.concat();
    assert_eq!(queue.is_empty(), queue.len() == 0);
    all.extend(take(queue, &Cursor::new(), usize::MAX));
    assert!(queue.is_empty());
    all.sort_unstable();
    all
}

// Bound 3: two threads beside main. Both claim the last slot of a block, and the pusher that loses releases its block.
#[test]
fn two_pushers_cross_into_the_next_block() {
    model("block_queue_two_pushers", &[1, 2, 13], 3, 430, || {
        let queue = Arc::new(BlockQueue::new());
        let pushers = [pusher(&queue, 0, 2), pusher(&queue, 10, 1)];
        let taken = take(&queue, &Cursor::new(), usize::MAX);
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        assert_eq!(all(&queue, vec![taken]), [0, 1, 10]);
    });
}

// Bound 3: two threads beside main. Each may be the last in the first block, which is released once.
#[test]
fn two_takers_leave_a_block() {
    model("block_queue_two_takers", &[1, 2, 13], 3, 10_000, || {
        let queue = Arc::new(BlockQueue::new());
        (0..3).for_each(|number| queue.push(number));
        let takers = [taker(&queue, 2), taker(&queue, 1)];
        queue.push(3);
        let taken = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
        assert_eq!(all(&queue, taken), [0, 1, 2, 3]);
    });
}

// Bound 2: two threads beside main, two of which may wait for the third. The pusher moves the tail to the next block
// while a taker moves the head there.
#[test]
fn a_pusher_and_two_takers() {
    model("block_queue_pusher_and_takers", &[1, 2, 13], 2, 700, || {
        let queue = Arc::new(BlockQueue::new());
        queue.push(0);
        let pusher = pusher(&queue, 1, 1);
        let other = taker(&queue, 1);
        let taken = take(&queue, &Cursor::new(), 1);
        pusher.join().unwrap();
        let taken = vec![taken, other.join().unwrap()];
        assert_eq!(all(&queue, taken), [0, 1]);
    });
}

// Bound 3: one thread beside main. The cursor has a count that the block lacks.
#[test]
fn a_cursor_outlives_the_queue() {
    model("block_queue_cursor_outlives", &[1, 13], 3, 5, || {
        let queue = Arc::new(BlockQueue::new());
        queue.push(Arc::new(0));
        queue.push(Arc::new(1));
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                let cursor = Cursor::new();
                let taken = queue.pop(&cursor);
                drop(queue);
                drop(cursor);
                taken.is_some()
            })
        };
        drop(queue);
        assert!(other.join().unwrap());
    });
}
