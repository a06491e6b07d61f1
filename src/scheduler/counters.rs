//! The idle word of a group of workers says which workers sleep and how many search, in one atomic.
//!
//! Both facts share a word so that each transition of the sleep protocol ([`super::sleep`]) is one read-modify-write.
//! So no thread sees a worker between searching and asleep, in neither state.
//!
//! The `SeqCst` fences around these accesses ensure that no task is left, so the accesses are Relaxed. One exception is
//! the bit of a sleeper: the thread that takes the bit must find the handle to unpark. So the bit is announced with
//! Release and taken with Acquire.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Most workers in one group: the width of the sleep mask.
pub(crate) const SEAT_COUNT_MAX: usize = 32;

const SEARCHER: u64 = 1 << 32;
const SLEEPERS: u64 = SEARCHER - 1;

// Every worker of a group may be a searcher at once: the count has 16 bits, above the mask of sleepers.
const _: () = assert!(SEAT_COUNT_MAX < 1 << 16);
const _: () = assert!(SLEEPERS.count_ones() as usize == SEAT_COUNT_MAX);

/// The shared word of one group, written by read-modify-writes only.
#[derive(Debug)]
pub(crate) struct IdleWord {
    /// ```text
    ///  63        48 47             32 31                     0
    /// |  always 0  | searching count |  sleep mask, bit = seat |
    /// ```
    word: AtomicU64,
}

/// The value of the word at one instant.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Idle(u64);

/// The duty of a worker at the end of its search.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[must_use = "the last searcher owes the others a look"]
pub(crate) enum SearchEnded {
    /// No worker of the group searches any more: look once more, because pushers may have relied on this search.
    Last,
    /// Other workers of the group still search.
    OthersSearch,
}

/// The result of taking back an announcement of sleep.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[must_use = "a worker whose bit was taken has been woken and owes a search"]
pub(crate) enum Retracted {
    /// The bit was still there and is cleared.
    Own,
    /// A waker had taken the bit and counted the worker as searching.
    TakenByWaker,
}

/// The result of a look for a sleeper.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[must_use = "a worker whose bit was taken must be unparked"]
pub(crate) enum Wake {
    /// The bit of this seat was taken and its worker is counted as searching: unpark it.
    Unpark(usize),
    /// As many workers search as the waker asked for; they find the task, or notify in the waker's place.
    EnoughSearch,
    /// All workers are busy; each of them looks for tasks before it sleeps.
    NoSleeper,
}

impl Idle {
    pub(crate) const NOBODY: Self = Self(0);

    /// Number of workers that search.
    #[inline]
    pub(crate) fn searcher_count(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// Returns whether the worker of this seat has announced sleep and no waker has taken the bit.
    #[inline]
    pub(crate) fn is_asleep(self, seat: usize) -> bool {
        self.0 & bit(seat) != 0
    }

    /// Returns whether a worker of the group has announced sleep.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "only sockets are a source of events"))]
    #[inline]
    pub(crate) fn has_sleeper(self) -> bool {
        self.0 & SLEEPERS != 0
    }

    /// Returns the lowest seat whose worker sleeps.
    #[inline]
    fn first_sleeper(self) -> Option<usize> {
        match self.0 & SLEEPERS {
            0 => None,
            sleepers => Some(sleepers.trailing_zeros() as usize),
        }
    }

    #[inline]
    fn verdict(self, enough: usize) -> Wake {
        match self.first_sleeper() {
            _ if self.searcher_count() >= enough => Wake::EnoughSearch,
            None => Wake::NoSleeper,
            Some(seat) => Wake::Unpark(seat),
        }
    }
}

impl IdleWord {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU64::new(Idle::NOBODY.0) }
    }

    #[inline]
    pub(crate) fn load(&self) -> Idle {
        // Ordering: Relaxed, since a waker's fence lies before this and a sleeper's fence after its announcement. A
        // worker that finds its bit taken may look too early for the pushed task; it looks again before it sleeps
        // again.
        Idle(self.word.load(Ordering::Relaxed))
    }

    /// Counts the caller as searching.
    pub(crate) fn begin_search(&self) {
        // Ordering: Relaxed; a pusher relies on the fence behind the end of the search.
        self.word.fetch_add(SEARCHER, Ordering::Relaxed);
    }

    /// Counts the caller as no longer searching, because it found a task or leaves.
    pub(crate) fn end_search(&self) -> SearchEnded {
        // Ordering: Relaxed; the fence of `Sleep::end_search` follows.
        let before = Idle(self.word.fetch_sub(SEARCHER, Ordering::Relaxed));
        debug_assert!(before.searcher_count() > 0, "a search ended that never began: {before:?}");
        match before.searcher_count() {
            1 => SearchEnded::Last,
            _ => SearchEnded::OthersSearch,
        }
    }

    /// Announces that the worker of `seat` is about to sleep; a searcher stops searching in the same step.
    pub(crate) fn announce(&self, seat: usize, searching: bool) {
        let change = if searching { bit(seat).wrapping_sub(SEARCHER) } else { bit(seat) };
        // Ordering: Release; pairs with the Acquire exchange in `wake_one_from`: the thread that takes the bit finds
        // the handle that this worker has stored before. The fence of `Sleep::fall_asleep` follows.
        let before = Idle(self.word.fetch_add(change, Ordering::Release));
        debug_assert!(!before.is_asleep(seat), "seat {seat} announced twice: {before:?}");
    }

    /// Takes the announcement back and searches: the caller is counted as searching afterwards, whether or not a waker
    /// was faster.
    pub(crate) fn retract_and_search(&self, seat: usize) -> Retracted {
        self.retract(seat, SEARCHER)
    }

    /// Takes the announcement back; the caller is counted as searching afterwards only if a waker was faster.
    pub(crate) fn retract_and_go_on(&self, seat: usize) -> Retracted {
        self.retract(seat, 0)
    }

    fn retract(&self, seat: usize, plus: u64) -> Retracted {
        let mut seen = self.load();
        while seen.is_asleep(seat) {
            // Ordering: Relaxed; as for `begin_search`.
            match self.word.compare_exchange_weak(
                seen.0,
                seen.0 - bit(seat) + plus,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Retracted::Own,
                Err(now) => seen = Idle(now),
            }
        }
        Retracted::TakenByWaker
    }

    /// Takes one sleeper's bit, unless `enough` workers already search; `enough` is at least 1.
    #[inline]
    pub(crate) fn wake_one(&self, enough: usize) -> Wake {
        let seen = self.load();
        match seen.verdict(enough) {
            Wake::Unpark(_) => self.wake_one_from(seen, enough),
            nobody => nobody,
        }
    }

    #[cold]
    fn wake_one_from(&self, mut seen: Idle, enough: usize) -> Wake {
        loop {
            let verdict = seen.verdict(enough);
            let Wake::Unpark(seat) = verdict else { return verdict };
            // Ordering: Acquire; pairs with the Release of `announce`, and the read-modify-writes of the word since
            // then continue that release sequence: the worker's handle is there. Relaxed on failure: as in `load`.
            match self.word.compare_exchange_weak(
                seen.0,
                seen.0 - bit(seat) + SEARCHER,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return verdict,
                Err(now) => seen = Idle(now),
            }
        }
    }
}

#[inline]
fn bit(seat: usize) -> u64 {
    debug_assert!(seat < SEAT_COUNT_MAX, "seat {seat} of {SEAT_COUNT_MAX}");
    1 << seat
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::sync::atomic::AtomicBool;
    use crate::sync::thread;

    #[test]
    fn a_sleeper_is_woken_as_a_searcher_and_only_one_at_a_time() {
        let word = IdleWord::new();
        assert_eq!(word.wake_one(1), Wake::NoSleeper);
        word.begin_search();
        word.announce(31, true);
        word.announce(3, false);
        assert_eq!(word.load().searcher_count(), 0);
        assert_eq!(word.wake_one(1), Wake::Unpark(3));
        assert!(!word.load().is_asleep(3) && word.load().is_asleep(31));
        assert_eq!(word.wake_one(1), Wake::EnoughSearch);
        assert_eq!(word.end_search(), SearchEnded::Last);
        assert_eq!(word.wake_one(1), Wake::Unpark(31));
        assert_eq!(word.retract_and_search(31), Retracted::TakenByWaker);
        word.begin_search();
        assert_eq!(word.end_search(), SearchEnded::OthersSearch);
        assert_eq!(word.end_search(), SearchEnded::Last);
        assert_eq!(word.load(), Idle::NOBODY);
    }

    #[test]
    fn a_second_one_is_woken_beside_a_searcher_if_one_is_not_enough() {
        let word = IdleWord::new();
        word.begin_search();
        assert_eq!(word.wake_one(2), Wake::NoSleeper);
        word.announce(0, false);
        word.announce(1, false);
        assert_eq!(word.wake_one(1), Wake::EnoughSearch);
        assert_eq!(word.wake_one(2), Wake::Unpark(0));
        assert_eq!(word.wake_one(2), Wake::EnoughSearch);
        assert_eq!(word.load().searcher_count(), 2);
    }

    #[test]
    fn retracting_gives_the_bit_back() {
        let word = IdleWord::new();
        word.announce(0, false);
        assert_eq!(word.retract_and_go_on(0), Retracted::Own);
        assert_eq!(word.load(), Idle::NOBODY);
        word.announce(0, false);
        assert_eq!(word.retract_and_search(0), Retracted::Own);
        assert_eq!(word.load().searcher_count(), 1);
    }
    #[test]
    fn who_takes_a_sleepers_bit_sees_what_the_sleeper_did_before() {
        for _ in 0..if cfg!(miri) { 10 } else { 500 } {
            let (word, has_sat_down) = (IdleWord::new(), AtomicBool::new(false));
            thread::scope(|scope| {
                scope.spawn(|| {
                    has_sat_down.store(true, Ordering::Relaxed);
                    word.announce(0, false);
                });
                while word.wake_one(1) != Wake::Unpark(0) {
                    thread::yield_now();
                }
                assert!(has_sat_down.load(Ordering::Relaxed));
            });
        }
    }
}
