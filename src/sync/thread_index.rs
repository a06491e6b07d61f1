//! A small dense number for each living thread.
//!
//! Striped structures use it to give each thread a line of its own. Numbers are handed out from 0 and
//! used again after their thread has ended.

use super::{Arc, Mutex, lock, per_thread, process_wide};
use std::cell::{Cell, OnceCell};

#[derive(Debug, Default)]
struct Numbers {
    /// Numbers of ended threads, to be used again.
    free: Vec<usize>,
    /// The number of numbers that were ever handed out.
    next: usize,
}

process_wide! {
    static NUMBERS: Arc<Mutex<Numbers>> = Arc::new(Mutex::new(Numbers::default()));
}

/// Gives its number back when the thread ends.
#[derive(Debug)]
struct Lease {
    number: usize,
    /// Counted, since loom drops process-wide values before the last thread-locals.
    numbers: Arc<Mutex<Numbers>>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Destructors of other thread-locals may still ask for a number: not for a number that has a new thread.
        let _ = CACHED.try_with(|cached| cached.set(NONE));
        lock(&self.numbers).free.push(self.number);
    }
}

/// No number yet.
const NONE: usize = usize::MAX;

per_thread! {
    static CACHED: Cell<usize> = Cell::new(NONE);
}
per_thread! {
    static LEASE: OnceCell<Lease> = OnceCell::new();
}

/// The calling thread's number, or `None` in a thread that has already destroyed its thread-locals.
#[inline]
pub(crate) fn current() -> Option<usize> {
    match CACHED.try_with(Cell::get) {
        Ok(NONE) | Err(_) => lease(),
        Ok(number) => Some(number),
    }
}

#[cold]
fn lease() -> Option<usize> {
    LEASE
        .try_with(|lease| {
            let number = match lease.get() {
                Some(lease) => lease.number,
                None => {
                    let number = {
                        let mut numbers = lock(&NUMBERS);
                        numbers.free.pop().unwrap_or_else(|| {
                            numbers.next += 1;
                            numbers.next - 1
                        })
                    };
                    lease.get_or_init(|| Lease { number, numbers: NUMBERS.clone() }).number
                }
            };
            // A failure only costs the cache: the lease itself still knows the number.
            let _ = CACHED.try_with(|cached| cached.set(number));
            number
        })
        .ok()
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::current;
    use std::cell::RefCell;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn a_thread_keeps_its_number_and_living_threads_differ() {
        let mine = current().expect("thread-locals are alive");
        assert_eq!(current(), Some(mine));
        let other = thread::spawn(|| current().expect("thread-locals are alive")).join().expect("no panic");
        assert_ne!(mine, other);
    }

    #[test]
    fn a_thread_that_has_given_its_number_back_uses_it_no_more() {
        struct Late(mpsc::Sender<Option<usize>>);
        impl Drop for Late {
            fn drop(&mut self) {
                self.0.send(current()).expect("the test listens");
            }
        }
        thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let (late, numbers) = mpsc::channel();
        let ends = thread::spawn(move || {
            // Made before the lease, so destroyed after it.
            LATE.with(|slot| *slot.borrow_mut() = Some(Late(late)));
            current().expect("thread-locals are alive");
        });
        ends.join().expect("no panic");
        assert_eq!(numbers.recv(), Ok(None), "another thread may have that number by now");
    }
}
