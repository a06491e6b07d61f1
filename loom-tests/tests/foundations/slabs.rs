//! Models of the memory of cells: a place has one holder at a time, who sees all that holders before have done.
//!
//! A piece has three places here, a thread keeps one, and a shelf keeps no empty piece.
//!
//! Mutations seen to fail here:
//! `take` leaves the mark of the place; a full piece stays in the list of those with room; a piece that has become empty
//! stays in that list; `put` gives the piece up while another place is taken;
//! a shelf that has more empty pieces than it is to keep keeps all that come.

use crate::support::model;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use pointsman::loom_hooks::{Slabs, ThreadPlaces};
use std::ptr::NonNull;

/// The class of which a piece has three places.
const CLASS: usize = 1;

/// What loom watches in place of the memory at each address.
type Watched = std::sync::Mutex<Vec<(usize, Arc<UnsafeCell<u32>>)>>;

/// Slabs, and the watched memory.
#[derive(Clone)]
struct Memory(Arc<(Slabs, Watched)>);

/// A place that may move between threads.
struct Held(NonNull<u8>);

// SAFETY: the holder has the place alone, which is what these models are about.
unsafe impl Send for Held {}

impl Memory {
    fn new() -> Self {
        Self(Arc::new((Slabs::new(), Watched::default())))
    }

    /// Writes to the place as its only holder does.
    fn write(&self, place: &Held) {
        let address = place.0.as_ptr() as usize;
        let cell = {
            let mut watched = self.0.1.lock().unwrap();
            match watched.iter().find(|(other, _)| *other == address) {
                Some((_, cell)) => cell.clone(),
                None => {
                    let cell = Arc::new(UnsafeCell::new(0));
                    watched.push((address, cell.clone()));
                    cell
                }
            }
        };
        // SAFETY: loom fails the model if two threads are here at once, or unordered.
        cell.with_mut(|count| unsafe { *count += 1 });
    }

    fn take(&self, places: &ThreadPlaces) -> Held {
        let held = Held(places.take(CLASS, &self.0.0));
        self.write(&held);
        held
    }

    fn put(&self, places: &ThreadPlaces, held: Held) {
        self.write(&held);
        // SAFETY: taken from these slabs, and not used any more.
        unsafe { places.put(CLASS, held.0, &self.0.0) };
    }

    /// Ends a thread that has had these places.
    fn leave(&self, places: ThreadPlaces) {
        places.give_all(&self.0.0);
    }

    fn assert_all_free(&self) {
        // Two threads that find no room at once allocate a piece each, of which one may stay unused.
        let (pieces, empty) = self.0.0.pieces(CLASS);
        assert!(pieces == empty && empty <= 1, "{pieces} pieces are left, {empty} of them empty");
    }
}

// Two threads, few locks: bound 3. Both use the same pieces, which come and go.
#[test]
fn places_of_one_piece_have_one_holder_each() {
    model("places_of_one_piece_have_one_holder_each", &[], 3, 100, || {
        let memory = Memory::new();
        let use_two = |memory: &Memory| {
            let places = ThreadPlaces::new();
            let held = [memory.take(&places), memory.take(&places)];
            assert_ne!(held[0].0, held[1].0);
            held.into_iter().for_each(|one| memory.put(&places, one));
            memory.leave(places);
        };
        let other = thread::spawn({
            let memory = memory.clone();
            move || use_two(&memory)
        });
        use_two(&memory);
        other.join().unwrap();
        memory.assert_all_free();
    });
}

// Two threads, few locks: bound 3. One gives back what the other has taken, while that one takes more.
#[test]
fn places_pass_from_thread_to_thread() {
    model("places_pass_from_thread_to_thread", &[], 3, 20, || {
        let memory = Memory::new();
        let places = ThreadPlaces::new();
        let held = [memory.take(&places), memory.take(&places), memory.take(&places)];
        let other = thread::spawn({
            let memory = memory.clone();
            move || {
                let places = ThreadPlaces::new();
                held.into_iter().for_each(|one| memory.put(&places, one));
                memory.leave(places);
            }
        });
        let held = [memory.take(&places), memory.take(&places)];
        other.join().unwrap();
        held.into_iter().for_each(|one| memory.put(&places, one));
        memory.leave(places);
        memory.assert_all_free();
    });
}
