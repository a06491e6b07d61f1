//! What goes back to the allocator goes back with the layout that it was asked for with: an allocator that takes the
//! size at its word corrupts its heap otherwise, and the standard one never tells.

use pointsman::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System as StdAllocator};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// The standard allocator, with the layout noted before each piece of memory.
struct Noting;

static WRONG: AtomicUsize = AtomicUsize::new(0);

/// The layout that a piece is really allocated with, and how far from its beginning the user's part lies.
fn whole(layout: Layout) -> (Layout, usize) {
    let note = Layout::new::<Layout>();
    let (whole, distance) = note.extend(layout).expect("far from the largest layout");
    (whole, distance)
}

// SAFETY: each piece is as large and as aligned as asked for, behind the note, and goes back as it was allocated.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (whole, distance) = whole(layout);
        // SAFETY: it has the size of the note at least.
        let begin = unsafe { StdAllocator.alloc(whole) };
        if begin.is_null() {
            return begin;
        }
        // SAFETY: within the piece; the note lies right before the user's part, which is aligned for itself only.
        unsafe {
            let user = begin.add(distance);
            user.sub(size_of::<Layout>()).cast::<Layout>().write_unaligned(layout);
            user
        }
    }

    unsafe fn dealloc(&self, user: *mut u8, layout: Layout) {
        // SAFETY: `alloc` has put the note there.
        let noted = unsafe { user.sub(size_of::<Layout>()).cast::<Layout>().read_unaligned() };
        if noted != layout {
            WRONG.fetch_add(1, Ordering::Relaxed);
        }
        let (whole, distance) = whole(noted);
        // SAFETY: that is where the piece begins, and how it was allocated.
        unsafe { StdAllocator.dealloc(user.sub(distance), whole) };
    }
}

#[global_allocator]
static ALLOCATOR: Noting = Noting;

const SOON: Duration = Duration::from_secs(60);

/// Says that it is at work, and waits until it may go on, at each message that is 0.
struct Held {
    at_work: Sender<()>,
    go_on: Receiver<()>,
}

impl Actor for Held {
    type Message = u64;
    fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
        if message == 0 {
            self.at_work.send(()).expect("the test is there");
            self.go_on.recv_timeout(SOON).expect("the test lets it go on");
        }
        Ok(())
    }
}

#[test]
fn a_thread_that_only_sends_gives_its_blocks_back_as_they_were_allocated() {
    let system = System::builder("layouts").build().expect("a system");
    let (at_work, is_at_work) = channel();
    let (goes_on, go_on) = channel();
    let mut state = Some(Held { at_work, go_on });
    let held = system.actor("held").spawn(move || state.take().expect("made once")).expect("a free name");
    let hold = || {
        held.tell(0_u64);
        is_at_work.recv_timeout(SOON).expect("the actor gets it");
    };
    // A flood in one piece: more blocks come free at its end than a worker keeps, and the rest goes to all.
    hold();
    (1..=10_000_u64).for_each(|message| held.tell(message));
    // The actor is idle, and has given its blocks away, before the next hold.
    goes_on.send(()).expect("the actor waits");
    let handled = || system.ledger().handled;
    while handled() < 10_001 {
        thread::yield_now();
    }
    hold();
    let sender = held.clone();
    thread::spawn(move || (1..=100_u64).for_each(|message| sender.tell(message))).join().expect("no panic");
    goes_on.send(()).expect("the actor waits");
    let ledger = system.shutdown(SOON).expect("it ends in time");
    assert_eq!(ledger.balance(), 0);
    assert_eq!(WRONG.load(Ordering::Relaxed), 0, "pieces of memory went back with another layout");
}
