//! Memory for the cells of actors and the blocks of mailboxes: places of a few sizes, cut from larger pieces.
//!
//! An allocator that is asked for memory aligned to a cache line loses up to two lines each time, and takes hundreds of
//! instructions. Here a piece of 256 KiB has places of a single size, a multiple of a line, and begins at an address
//! that is a multiple of its size. So the address of a place tells the address of its piece.
//!
//! - Each thread has a few free places of each size. It takes more from the shelf of the size, and gives some back, in
//!   batches under the shelf's lock.
//! - The head of a piece marks its free places. When all are free, the piece is empty. A shelf keeps a few empty pieces,
//!   and gives others back to the allocator: after a flood of actors or messages their memory is free again. An
//!   allocator may keep what it gets, so on Linux the kernel takes the pages back before.
//! - A shelf takes from a piece that has got a place back most recently. So other pieces become empty.
//! - A free place is not touched: its lines may lie in the cache of another core, and the thread that takes it writes them anyway.
//!
//! No lock is held while the allocator runs: a global allocator that sends messages may come back here.

use crate::sync::{CachePadded, EXPLORED, Mutex, alloc, lock, per_thread, process_wide};
use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::ptr::{self, NonNull};

const LINE: usize = 64;

/// The number of sizes: 64, 128, … bytes. Larger cells come from the allocator.
const CLASSES: usize = if EXPLORED { 2 } else { 16 };

/// The distance of pieces, to which they are aligned. glibc maps the first ones each by itself, with two pages around it,
/// and the kernel does not take back the page that a piece shares with the next one: so a piece has many pages.
const PIECE: usize = if EXPLORED { 8 * LINE } else { 1 << 18 };

/// A piece leaves room for the allocator's own words, so that pieces can follow each other without a gap.
const PIECE_LAYOUT: Layout = match Layout::from_size_align(PIECE - LINE, PIECE) {
    Ok(layout) => layout,
    Err(_) => panic!("a piece has a size and an alignment"),
};

/// The number of places that move between a thread and a shelf at a time.
const BATCH: usize = if EXPLORED { 1 } else { 16 };

/// The most free places that a thread keeps of each size.
const THREAD_MAX: usize = if EXPLORED { 1 } else { 32 };

/// The most empty pieces that a shelf keeps.
const EMPTY_MAX: usize = if EXPLORED { 0 } else { 2 };

/// The places of a piece are marked in so many words.
const WORDS: usize = PIECE / LINE / 64 + if EXPLORED { 1 } else { 0 };

/// The head of a piece. The lock of the shelf guards all fields.
#[repr(C, align(64))]
struct Piece {
    /// A bit for each free place.
    free: [u64; WORDS],
    /// No word before this one has a bit.
    first: usize,
    /// The number of places that are taken.
    taken: usize,
    /// The neighbours in the shelf's list of pieces with room.
    previous: *mut Piece,
    next: *mut Piece,
}

/// Free places of one thread and one size.
struct Places {
    /// The first `count` of these are free places.
    all: [Cell<*mut u8>; THREAD_MAX + 1],
    count: Cell<usize>,
}

/// The pieces of one size that have room. A piece without room is known to its places only.
struct Shelf {
    /// The size of each place.
    size: usize,
    /// The number of places of each piece.
    capacity: usize,
    /// Pieces of which some places are taken.
    with_room: *mut Piece,
    /// Pieces of which no place is taken, linked by `next`.
    empty: *mut Piece,
    empty_count: usize,
}

// SAFETY: a shelf has its pieces alone, as far as they have room, and free memory has no thread.
unsafe impl Send for Shelf {}

/// The shelves of all sizes.
pub(crate) struct Slabs([CachePadded<Mutex<Shelf>>; CLASSES]);

/// The free places of one thread, by size.
pub(crate) struct ThreadPlaces([Places; CLASSES]);

process_wide! {
    static SLABS: Slabs = Slabs::new();
}

per_thread! {
    static PLACES: OfThisThread = OfThisThread(ThreadPlaces::new());
}

/// Goes back to the shelves when the thread ends.
struct OfThisThread(ThreadPlaces);

impl Drop for OfThisThread {
    fn drop(&mut self) {
        self.0.give_all(&SLABS);
    }
}

/// Returns the class of the layout; `None` where the allocator serves it.
#[inline(always)]
const fn class_of(layout: Layout) -> Option<usize> {
    // Models, interpreters and sanitizers watch the allocator, to find what is used after it was freed.
    let is_watched = EXPLORED || cfg!(any(miri, pointsman_asan, pointsman_tsan));
    if is_watched || layout.size() == 0 || layout.align() > LINE {
        return None;
    }
    let class = (layout.size() - 1) / LINE;
    if class < CLASSES { Some(class) } else { None }
}

/// Returns memory of this layout, uninitialised. Ends the process if there is none, as `Box` does.
#[inline]
pub(crate) fn allocate(layout: Layout) -> NonNull<u8> {
    match class_of(layout) {
        // Thread-locals are gone while their destructors run: then the shelf serves.
        Some(class) => PLACES
            .try_with(|places| places.0.take(class, &SLABS))
            .unwrap_or_else(|_| ThreadPlaces::new().take_one(class, &SLABS)),
        None => {
            // SAFETY: cells and nodes have a size.
            let memory = unsafe { alloc::alloc(layout) };
            NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
        }
    }
}

/// Gives memory back.
///
/// # Safety
///
/// `memory` comes from [`allocate`] for this layout, with its provenance, and is not used any more.
#[inline]
pub(crate) unsafe fn release(memory: NonNull<u8>, layout: Layout) {
    let Some(class) = class_of(layout) else {
        // SAFETY: the caller's promise: the allocator served this layout.
        return unsafe { alloc::dealloc(memory.as_ptr(), layout) };
    };
    // SAFETY: the caller's promise: a place of this class, and the caller's alone.
    let put = PLACES.try_with(|places| unsafe { places.0.put(class, memory, &SLABS) });
    if put.is_err() {
        let places = ThreadPlaces::new();
        // SAFETY: as above; the thread's own places are gone.
        unsafe { places.put(class, memory, &SLABS) };
        places.give_all(&SLABS);
    }
}

impl Places {
    const fn new() -> Self {
        Self { all: [const { Cell::new(ptr::null_mut()) }; THREAD_MAX + 1], count: Cell::new(0) }
    }

    #[inline]
    fn pop(&self) -> Option<NonNull<u8>> {
        let last = self.count.get().checked_sub(1)?;
        self.count.set(last);
        NonNull::new(self.all[last].get())
    }

    /// Keeps a place; there must be room.
    #[inline]
    fn push(&self, place: *mut u8) {
        let count = self.count.get();
        self.all[count].set(place);
        self.count.set(count + 1);
    }

    /// Takes the first `count` places out, which have lain here for the longest time, and hands over each.
    fn take_oldest(&self, count: usize, mut act: impl FnMut(*mut u8)) {
        self.all[..count].iter().for_each(|place| act(place.get()));
        let left = self.count.get() - count;
        for at in 0..left {
            self.all[at].set(self.all[at + count].get());
        }
        self.count.set(left);
    }
}

impl ThreadPlaces {
    pub(crate) const fn new() -> Self {
        Self([const { Places::new() }; CLASSES])
    }

    /// Returns a place of this class, of [`LINE`] bytes for class 0, twice as many for class 1, and so on.
    #[inline]
    pub(crate) fn take(&self, class: usize, slabs: &Slabs) -> NonNull<u8> {
        let places = &self.0[class];
        places.pop().unwrap_or_else(|| slabs.refill(class, places, BATCH))
    }

    #[cold]
    fn take_one(&self, class: usize, slabs: &Slabs) -> NonNull<u8> {
        slabs.refill(class, &self.0[class], 1)
    }

    /// Keeps a free place.
    ///
    /// # Safety
    ///
    /// `place` comes from [`take`](Self::take) for this class and these slabs, with its provenance, and is not used any
    /// more.
    #[inline]
    pub(crate) unsafe fn put(&self, class: usize, place: NonNull<u8>, slabs: &Slabs) {
        let places = &self.0[class];
        places.push(place.as_ptr());
        if places.count.get() > THREAD_MAX {
            // SAFETY: the caller's promise, for all that were put here.
            unsafe { slabs.give(class, places, BATCH) };
        }
    }

    /// Gives all places back.
    pub(crate) fn give_all(&self, slabs: &Slabs) {
        for (class, places) in self.0.iter().enumerate() {
            if places.count.get() > 0 {
                // SAFETY: only free places of these slabs and this class are put here.
                unsafe { slabs.give(class, places, places.count.get()) };
            }
        }
    }
}

impl Slabs {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|class| {
            let size = (class + 1) * LINE;
            CachePadded::new(Mutex::new(Shelf {
                size,
                capacity: (PIECE_LAYOUT.size() - size_of::<Piece>()) / size,
                with_room: ptr::null_mut(),
                empty: ptr::null_mut(),
                empty_count: 0,
            }))
        }))
    }

    /// Returns a place, and puts up to `batch - 1` more into an empty list.
    #[cold]
    fn refill(&self, class: usize, places: &Places, batch: usize) -> NonNull<u8> {
        loop {
            // The allocator that made a piece below may have come back here, and left places.
            if let Some(place) = places.pop() {
                return place;
            }
            let mut taken = [ptr::null_mut(); BATCH];
            let mut count = 0;
            {
                let mut shelf = lock(&self.0[class]);
                while count < batch {
                    let Some(place) = shelf.take() else { break };
                    taken[count] = place.as_ptr();
                    count += 1;
                }
            }
            // The first is popped first.
            taken[..count].iter().rev().for_each(|place| places.push(*place));
            if count > 0 {
                continue;
            }
            let piece = Piece::allocate();
            // SAFETY: a new piece, which no thread knows.
            unsafe { lock(&self.0[class]).keep_empty(piece) };
        }
    }

    /// Gives the oldest `count` places of the list back.
    ///
    /// # Safety
    ///
    /// The places in the list are free, and come from the shelf of this class.
    #[cold]
    unsafe fn give(&self, class: usize, places: &Places, count: usize) {
        let mut surplus: *mut Piece = ptr::null_mut();
        {
            let mut shelf = lock(&self.0[class]);
            places.take_oldest(count, |place| {
                // SAFETY: the caller's promise.
                if let Some(piece) = unsafe { shelf.put(place) } {
                    // SAFETY: the shelf has given the piece up.
                    unsafe { (*piece.as_ptr()).next = surplus };
                    surplus = piece.as_ptr();
                }
            });
        }
        // SAFETY: as above.
        unsafe { Piece::free_list(surplus) };
    }

    /// The number of pieces that have room, and of those the empty ones.
    #[cfg(any(test, pointsman_loom))]
    pub(crate) fn pieces(&self, class: usize) -> (usize, usize) {
        let shelf = lock(&self.0[class]);
        let mut count = shelf.empty_count;
        let mut at = shelf.with_room;
        while let Some(piece) = NonNull::new(at) {
            // SAFETY: pieces with room belong to the shelf.
            at = unsafe { piece.as_ref() }.next;
            count += 1;
        }
        (count, shelf.empty_count)
    }
}

/// Frees the empty pieces. Only models and tests drop slabs.
impl Drop for Slabs {
    fn drop(&mut self) {
        for shelf in &self.0 {
            let empty = std::mem::replace(&mut lock(shelf).empty, ptr::null_mut());
            // SAFETY: empty pieces belong to the shelf, which is being dropped.
            unsafe { Piece::free_list(empty) };
        }
    }
}

impl Piece {
    fn allocate() -> NonNull<Piece> {
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc::alloc(PIECE_LAYOUT) };
        let Some(piece) = NonNull::new(memory.cast::<Piece>()) else { handle_alloc_error(PIECE_LAYOUT) };
        let (previous, next) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: ours alone, aligned, and large enough for the head.
        unsafe { piece.write(Piece { free: [u64::MAX; WORDS], first: 0, taken: 0, previous, next }) };
        piece
    }

    /// Frees pieces that are linked by `next`.
    ///
    /// # Safety
    ///
    /// The caller has the pieces alone, and no place of them is taken.
    unsafe fn free_list(mut first: *mut Piece) {
        while let Some(piece) = NonNull::new(first) {
            // SAFETY: the caller's promise.
            let head = unsafe { piece.as_ref() };
            debug_assert_eq!(head.taken, 0, "the piece is in use");
            first = head.next;
            // SAFETY: as above; nothing in the piece is read any more.
            unsafe { Self::return_pages(piece) };
            // SAFETY: as above; allocated with this layout by `allocate`.
            unsafe { alloc::dealloc(piece.as_ptr().cast(), PIECE_LAYOUT) };
        }
    }

    /// Gives the pages of a piece back to the kernel: they are empty when they are touched again.
    ///
    /// # Safety
    ///
    /// The caller has the piece alone, and does not read what it contains.
    unsafe fn return_pages(piece: NonNull<Piece>) {
        #[cfg(all(target_os = "linux", not(any(miri, pointsman_loom, pointsman_shuttle))))]
        {
            // SAFETY: the call reads no memory.
            let Ok(page) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else { return };
            // The last page has words of the allocator.
            let size = PIECE_LAYOUT.size() / page * page;
            // SAFETY: the caller's promise; the pages lie within the piece, which begins with a page. If the kernel
            // refuses, the pages stay.
            let _ = unsafe { libc::madvise(piece.as_ptr().cast(), size, libc::MADV_DONTNEED) };
        }
        #[cfg(not(all(target_os = "linux", not(any(miri, pointsman_loom, pointsman_shuttle)))))]
        let _ = piece;
    }

    /// Returns the piece of a place.
    fn of(place: *mut u8) -> *mut Piece {
        place.map_addr(|address| address & !(PIECE - 1)).cast()
    }
}

impl Shelf {
    /// Takes a place, if there is one.
    fn take(&mut self) -> Option<NonNull<u8>> {
        if self.with_room.is_null() {
            let piece = NonNull::new(self.empty)?;
            // SAFETY: empty pieces belong to the shelf, which is locked.
            self.empty = unsafe { piece.as_ref() }.next;
            self.empty_count -= 1;
            // SAFETY: as above; the piece is in no list now.
            unsafe { self.link(piece.as_ptr()) };
        }
        let pointer = self.with_room;
        // SAFETY: pieces with room belong to the shelf, which is locked, so this is the only reference to the head.
        let piece = unsafe { &mut *pointer };
        // The bits behind the last place are never reached: the places before them are all taken then.
        while *piece.free.get(piece.first)? == 0 {
            piece.first += 1;
        }
        let word = &mut piece.free[piece.first];
        let number = piece.first * 64 + word.trailing_zeros() as usize;
        *word &= *word - 1;
        piece.taken += 1;
        if piece.taken == self.capacity {
            // SAFETY: the piece is in the list.
            unsafe { self.unlink(pointer) };
        }
        // SAFETY: fewer than `capacity` places were taken, so the place of this number lies within the piece.
        NonNull::new(unsafe { pointer.byte_add(size_of::<Piece>() + number * self.size) }.cast())
    }

    /// Marks a place as free. Returns the piece if it is empty and the shelf has enough empty ones.
    ///
    /// # Safety
    ///
    /// `place` is the caller's alone, free, and comes from this shelf.
    unsafe fn put(&mut self, place: *mut u8) -> Option<NonNull<Piece>> {
        let pointer = Piece::of(place);
        let number = (place.addr() - pointer.addr() - size_of::<Piece>()) / self.size;
        // SAFETY: the piece exists as long as a place of it is taken, as this place is, and the shelf is locked.
        let piece = unsafe { &mut *pointer };
        let was_full = piece.taken == self.capacity;
        debug_assert!(piece.free[number / 64] & (1 << (number % 64)) == 0, "the place is free already");
        piece.free[number / 64] |= 1 << (number % 64);
        piece.first = piece.first.min(number / 64);
        piece.taken -= 1;
        if piece.taken > 0 {
            if was_full {
                // SAFETY: a full piece is in no list.
                unsafe { self.link(pointer) };
            }
            return None;
        }
        if !was_full {
            // SAFETY: a piece of which some places are taken, and some not, is in the list.
            unsafe { self.unlink(pointer) };
        }
        let piece = NonNull::new(pointer)?;
        if self.empty_count >= EMPTY_MAX {
            return Some(piece);
        }
        // SAFETY: the piece is in no list now, and none of its places is taken.
        unsafe { self.keep_empty(piece) };
        None
    }

    /// # Safety
    ///
    /// The piece is in no list, and none of its places is taken.
    unsafe fn keep_empty(&mut self, piece: NonNull<Piece>) {
        // SAFETY: the caller's promise: the shelf alone knows the piece.
        unsafe { (*piece.as_ptr()).next = self.empty };
        self.empty = piece.as_ptr();
        self.empty_count += 1;
    }

    /// Puts a piece at the beginning of the list.
    ///
    /// # Safety
    ///
    /// The piece belongs to the shelf, has room, and is in no list.
    unsafe fn link(&mut self, piece: *mut Piece) {
        // SAFETY: the caller's promise, and pieces in the list belong to the shelf.
        unsafe {
            (*piece).previous = ptr::null_mut();
            (*piece).next = self.with_room;
            if let Some(next) = self.with_room.as_mut() {
                next.previous = piece;
            }
        }
        self.with_room = piece;
    }

    /// Takes a piece out of the list.
    ///
    /// # Safety
    ///
    /// The piece is in the list.
    unsafe fn unlink(&mut self, piece: *mut Piece) {
        // SAFETY: pieces in the list belong to the shelf.
        unsafe {
            let (previous, next) = ((*piece).previous, (*piece).next);
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => self.with_room = next,
            }
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{
        BATCH, CLASSES, EMPTY_MAX, LINE, PIECE, PLACES, Piece, SLABS, Slabs, THREAD_MAX, ThreadPlaces,
        allocate, class_of, release,
    };
    use crate::sync::lock;
    use std::alloc::Layout;
    use std::cell::Cell;
    use std::collections::HashSet;
    use std::ptr::NonNull;
    use std::sync::mpsc;
    use std::thread;

    const CLASS: usize = 5;
    const SIZE: usize = (CLASS + 1) * 64;

    /// A place that moves between threads.
    struct Held(NonNull<u8>);

    // SAFETY: the holder has the place alone.
    unsafe impl Send for Held {}

    impl Held {
        /// Takes a place, and marks its bytes.
        fn take(places: &ThreadPlaces, slabs: &Slabs, mark: u8) -> Self {
            let place = places.take(CLASS, slabs);
            assert_eq!(place.addr().get() % 64, 0);
            // SAFETY: the place is ours, and has so many bytes.
            unsafe { place.write_bytes(mark, SIZE) };
            Self(place)
        }

        /// Checks the mark, and gives the place back.
        fn put(self, places: &ThreadPlaces, slabs: &Slabs, mark: u8) {
            // SAFETY: the place is ours, has so many bytes, and all are written.
            let bytes = unsafe { NonNull::slice_from_raw_parts(self.0, SIZE).as_ref() };
            assert!(bytes.iter().all(|byte| *byte == mark), "two holders had one place");
            // SAFETY: from `take`, and not used any more.
            unsafe { places.put(CLASS, self.0, slabs) };
        }
    }

    #[test]
    fn pieces_go_back_when_a_flood_is_over() {
        let (slabs, places) = (Slabs::new(), ThreadPlaces::new());
        // More than places of 20 pieces: each has a head.
        let count = 20 * PIECE / SIZE;
        let held: Vec<Held> =
            (0..count).map(|number| Held::take(&places, &slabs, number.to_le_bytes()[0])).collect();
        let distinct: HashSet<_> = held.iter().map(|place| place.0).collect();
        assert_eq!(distinct.len(), count);
        let pieces: HashSet<_> = held.iter().map(|place| place.0.addr().get() / PIECE).collect();
        assert!((20..=22).contains(&pieces.len()), "{} pieces", pieces.len());
        for (number, place) in held.into_iter().enumerate() {
            place.put(&places, &slabs, number.to_le_bytes()[0]);
        }
        let (pieces, empty) = slabs.pieces(CLASS);
        assert!(
            empty <= EMPTY_MAX && pieces <= EMPTY_MAX + 2 + THREAD_MAX / BATCH,
            "{pieces} of 20 pieces are kept"
        );
        places.give_all(&slabs);
        let (pieces, empty) = slabs.pieces(CLASS);
        assert!(pieces == empty && empty <= EMPTY_MAX, "no place is taken");
    }

    #[test]
    fn a_place_that_comes_back_is_the_next_to_be_taken() {
        let (slabs, places) = (Slabs::new(), ThreadPlaces::new());
        // Of several words of the head.
        let mut held: Vec<Held> = (0..200).map(|_| Held::take(&places, &slabs, 1)).collect();
        for number in [150, 3] {
            let place = held.swap_remove(number);
            let address = place.0.addr();
            place.put(&places, &slabs, 1);
            places.give_all(&slabs);
            let again = Held::take(&places, &slabs, 1);
            assert_eq!(again.0.addr(), address);
            held.push(again);
        }
        held.into_iter().for_each(|place| place.put(&places, &slabs, 1));
        places.give_all(&slabs);
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn the_kernel_takes_the_pages_of_a_piece_back() {
        let piece = Piece::allocate();
        // SAFETY: a page behind the head, and before the last one.
        let place = unsafe { piece.cast::<u8>().add(PIECE / 2) };
        // SAFETY: as above; the piece is ours alone.
        unsafe { place.write(7) };
        // SAFETY: ours alone, and the content is read below only, where the kernel has put zeros.
        unsafe { Piece::return_pages(piece) };
        // SAFETY: as above.
        assert_eq!(unsafe { (place.read(), piece.as_ref().taken) }, (0, 0));
        // SAFETY: no place of it was taken, and `next` is null.
        unsafe { Piece::free_list(piece.as_ptr()) };
    }

    #[test]
    fn places_that_other_threads_give_back_are_used_again() {
        const EACH: usize = if cfg!(miri) { 200 } else { 50_000 };
        let slabs = &Slabs::new();
        thread::scope(|scope| {
            for mark in [7, 9] {
                let (sender, receiver) = mpsc::sync_channel::<Held>(64);
                scope.spawn(move || {
                    let places = ThreadPlaces::new();
                    for _ in 0..EACH {
                        sender.send(Held::take(&places, slabs, mark)).expect("the other thread takes all");
                    }
                    places.give_all(slabs);
                });
                scope.spawn(move || {
                    let places = ThreadPlaces::new();
                    receiver.iter().for_each(|place| place.put(&places, slabs, mark));
                    places.give_all(slabs);
                });
            }
        });
        let (pieces, empty) = slabs.pieces(CLASS);
        assert!(pieces == empty && empty <= EMPTY_MAX, "no place is taken");
    }

    /// A size that no actor of these tests has, and no block of a mailbox.
    const UNUSED: Layout = match Layout::from_size_align((CLASSES - 1) * LINE, LINE) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    };

    /// Gives one place back, and takes another one for a moment, when its thread ends.
    struct LastUser(Cell<Option<Held>>, Cell<Option<mpsc::Sender<bool>>>);

    impl Drop for LastUser {
        fn drop(&mut self) {
            let has_places = PLACES.try_with(|_| ()).is_ok();
            let other = allocate(UNUSED);
            for memory in [self.0.take().map(|held| held.0), Some(other)].into_iter().flatten() {
                // SAFETY: allocated for this layout, and not used any more.
                unsafe { release(memory, UNUSED) };
            }
            if let Some(sender) = self.1.take() {
                let _ = sender.send(has_places);
            }
        }
    }

    thread_local! {
        static FIRST: LastUser = const { LastUser(Cell::new(None), Cell::new(None)) };
        static SECOND: LastUser = const { LastUser(Cell::new(None), Cell::new(None)) };
    }

    #[test]
    fn a_thread_that_ends_gives_its_places_back_also_those_that_it_frees_last() {
        let Some(class) = class_of(UNUSED) else { return };
        // Keeps the piece.
        let first = allocate(UNUSED);
        // Those that came along.
        PLACES.with(|places| places.0.give_all(&SLABS));
        let piece = Piece::of(first.as_ptr());
        let address = piece.addr();
        let taken = || {
            let _shelf = lock(&SLABS.0[class]);
            // SAFETY: a place of it is taken, and the shelf is locked.
            unsafe { (*piece).taken }
        };
        assert_eq!(taken(), 1);
        let (sender, ends) = mpsc::channel();
        let thread = thread::spawn(move || {
            // Thread-locals are dropped in an order that depends on the platform: one goes before `PLACES`, one after.
            FIRST.with(|user| user.1.set(Some(sender.clone())));
            let held = [(); 3].map(|()| allocate(UNUSED));
            assert!(held.iter().all(|place| Piece::of(place.as_ptr()).addr() == address));
            // SAFETY: allocated for this layout, and not used any more.
            unsafe { release(held[0], UNUSED) };
            FIRST.with(|user| user.0.set(Some(Held(held[1]))));
            SECOND.with(|user| {
                user.0.set(Some(Held(held[2])));
                user.1.set(Some(sender));
            });
        });
        thread.join().expect("no panic");
        let mut ends: Vec<bool> = ends.iter().collect();
        ends.sort_unstable();
        assert_eq!(ends, [false, true]);
        assert_eq!(taken(), 1, "the thread has given all others back");
        // SAFETY: allocated for this layout, and not used any more.
        unsafe { release(first, UNUSED) };
    }
}
