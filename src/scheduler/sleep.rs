//! Both sides of the sleep protocol. Steps, race and proof are in [the notes of the scheduler](super).

use crate::scheduler::counters::{Idle, IdleWord, Retracted, SEAT_COUNT_MAX, SearchEnded, Wake};
use crate::scheduler::event_wait::{EventWait, Waited};
use crate::sync::atomic::{Ordering, fence};
use crate::sync::thread::{self, Thread};
use crate::sync::{CachePadded, OnceLock};
use std::time::Duration;

/// The sleepers and searchers of a pool, by groups of neighbours.
#[derive(Debug)]
pub(crate) struct Sleep {
    groups: Box<[CachePadded<IdleWord>]>,
    /// The handle of each worker, set by the worker itself before it first announces sleep.
    threads: Box<[OnceLock<Thread>]>,
    seats_per_group: usize,
    /// Where a worker may wait instead of a park.
    pub(crate) events: EventWait,
}

/// How a worker has slept.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[must_use = "events have to be handled"]
pub(crate) enum Slept {
    /// Parked, or not at all.
    Parked,
    /// It held the source of events, and has left it.
    HeldEvents,
    /// It still holds the source of events, and there are some: [`EventWait::handle`] follows.
    HasEvents,
}

/// The place of a worker: its group, and its seat in the group.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SleeperSlot {
    pub group: usize,
    pub seat: usize,
}

impl Sleep {
    pub(crate) fn new(worker_count: usize, seats_per_group: usize) -> Self {
        assert!((1..=SEAT_COUNT_MAX).contains(&seats_per_group), "{seats_per_group} seats in a group");
        let group_count = worker_count.div_ceil(seats_per_group);
        Self {
            groups: (0..group_count).map(|_| CachePadded::new(IdleWord::new())).collect(),
            threads: (0..worker_count).map(|_| OnceLock::new()).collect(),
            seats_per_group,
            events: EventWait::new(),
        }
    }

    pub(crate) fn group_count(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn place(&self, worker: usize) -> SleeperSlot {
        SleeperSlot { group: worker / self.seats_per_group, seat: worker % self.seats_per_group }
    }

    /// The workers of a group.
    pub(crate) fn members(&self, group: usize) -> std::ops::Range<usize> {
        let first = group * self.seats_per_group;
        first..(first + self.seats_per_group).min(self.threads.len())
    }

    /// Sets the calling thread as the thread to unpark for this worker. A worker calls this once, before anything else.
    pub(crate) fn take_seat(&self, worker: usize) {
        let taken = self.threads[worker].set(thread::current());
        assert!(taken.is_ok(), "worker {worker} took its seat twice");
    }

    /// Makes sure that a worker looks for a task that the caller has just pushed, beginning with the workers of
    /// `group`.
    #[inline]
    pub(crate) fn notify(&self, group: usize) {
        // Ordering: SeqCst fence between the caller's push and its look at the idle words; pairs with the fence in
        // `fall_asleep`, between announcement and last look. If this fence is first, the sleeper sees the task. If the
        // other fence is first, the caller sees the sleeper.
        fence(Ordering::SeqCst);
        self.wake_one(group, 1);
    }

    /// As [`notify`](Self::notify), for a push behind a task that still waits to be found. A single searcher is not
    /// relied upon here: the operating system may have taken its core, or may not have given it one yet.
    #[cold]
    pub(crate) fn notify_of_waiting(&self, group: usize) {
        // Ordering: SeqCst fence; as in `notify`.
        fence(Ordering::SeqCst);
        self.wake_one(group, 2);
    }

    /// Wakes a sleeper unless `enough` workers search. The caller has executed its fence.
    #[inline]
    fn wake_one(&self, group: usize, enough: usize) {
        match self.groups[group].wake_one(enough) {
            Wake::EnoughSearch => {}
            Wake::Unpark(seat) => self.unpark(group, seat),
            Wake::NoSleeper => self.wake_neighbour(group),
        }
    }

    /// The rest of `wake_one`, for a group whose workers are all busy: tries the other groups.
    #[inline]
    fn wake_neighbour(&self, own: usize) {
        for group in (own + 1..self.groups.len()).chain(0..own) {
            match self.groups[group].wake_one(1) {
                Wake::EnoughSearch => return,
                Wake::Unpark(seat) => return self.unpark(group, seat),
                Wake::NoSleeper => {}
            }
        }
    }

    fn unpark(&self, group: usize, seat: usize) {
        let worker = group * self.seats_per_group + seat;
        if self.events.has_source() && self.events.wake(worker) {
            return;
        }
        self.threads[worker].get().expect("a worker takes its seat before it sleeps").unpark();
    }

    /// Unparks every worker that has taken its seat, after the stop flag was set.
    pub(crate) fn unpark_all(&self) {
        // Ordering: SeqCst fence between the store of the stop flag and the look at the handles; pairs with the fence
        // in `fall_asleep`. If this fence is first, the worker sees the flag. If the other fence is first, the worker's
        // handle is there.
        fence(Ordering::SeqCst);
        self.threads.iter().filter_map(OnceLock::get).for_each(Thread::unpark);
        self.events.wake_any();
    }

    /// Wakes one more worker, unless several search, so that it takes the source of events when it finds no task.
    #[cold]
    pub(crate) fn wake_for_events(&self, group: usize) {
        self.notify_of_waiting(group);
    }

    /// Returns whether a worker has announced sleep.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "only sockets are a source of events"))]
    pub(crate) fn has_sleeper(&self) -> bool {
        self.groups.iter().any(|group| group.load().has_sleeper())
    }

    /// Returns whether one more worker of the group may search. At most half of the group (rounded up) searches,
    /// because searchers disturb each other and the working workers. Two workers always may, since one of them may be
    /// without a core.
    pub(crate) fn may_search(&self, group: usize) -> bool {
        let searcher_count = self.groups[group].load().searcher_count();
        searcher_count < 2 || 2 * searcher_count < self.members(group).len()
    }

    /// Returns whether no worker is counted as searching or asleep.
    pub(crate) fn is_deserted(&self) -> bool {
        self.groups.iter().all(|group| group.load() == Idle::NOBODY)
    }

    /// Returns whether a worker has announced sleep and no waker has taken its bit.
    #[cfg(all(test, not(pointsman_loom)))]
    pub(crate) fn is_asleep(&self, worker: usize) -> bool {
        let at = self.place(worker);
        self.groups[at.group].load().is_asleep(at.seat)
    }

    pub(crate) fn begin_search(&self, group: usize) {
        self.groups[group].begin_search();
    }

    /// Ends a search. The last searcher of a group looks once more and wakes another worker if there is a task: a
    /// pusher that saw a searcher woke no worker, and now that searcher is gone.
    ///
    /// Without the look, each task that comes alone would wake two workers in turns: the second worker finds nothing
    /// and still searches, so the first worker goes to sleep and has to be woken for the next task.
    pub(crate) fn end_search(&self, group: usize, look: impl FnOnce() -> bool) {
        match self.groups[group].end_search() {
            SearchEnded::OthersSearch => {}
            SearchEnded::Last => {
                // Ordering: SeqCst fence between the end of the search and the look; pairs with the fence in `notify`.
                // If this fence is first, the pusher sees that no worker searches. If the other fence is first, the
                // look sees the task.
                fence(Ordering::SeqCst);
                if look() {
                    self.wake_one(group, 1);
                }
            }
        }
    }

    /// Sleeps until woken, or until there are outside events, or returns without sleeping. The caller is counted as
    /// searching afterwards, in each case.
    ///
    /// `look` is the last look, called once: it returns whether there is anything to do, a stop included. `stopping` is
    /// asked after each return from the park.
    pub(crate) fn fall_asleep(
        &self,
        at: SleeperSlot,
        searching: bool,
        look: impl FnOnce() -> bool,
        stopping: impl Fn() -> bool,
    ) -> Slept {
        let word = &self.groups[at.group];
        let worker = at.group * self.seats_per_group + at.seat;
        let mut slept = Slept::Parked;
        // Before the announcement; see `EventWait::has_source`.
        let has_source = self.events.has_source();
        word.announce(at.seat, searching);
        // Ordering: SeqCst fence between announcement and last look; pairs with the fences in `notify` and
        // `unpark_all`. If this fence is first, the pusher sees the bit. If the other fence is first, the look sees the
        // task.
        fence(Ordering::SeqCst);
        if look() {
            // Both answers leave this worker counted as searching; nothing else matters here.
            let (Retracted::Own | Retracted::TakenByWaker) = word.retract_and_search(at.seat);
            return slept;
        }
        loop {
            let asleep = || word.load().is_asleep(at.seat) && !stopping();
            let waited = if has_source { self.events.wait(worker, asleep) } else { Waited::NotHeld };
            match waited {
                Waited::NotHeld => thread::park(),
                Waited::Woken => slept = Slept::HeldEvents,
                Waited::Events => {
                    let (Retracted::Own | Retracted::TakenByWaker) = word.retract_and_search(at.seat);
                    return Slept::HasEvents;
                }
            }
            // A return from the park with the bit still set is spurious, or has used the token of an earlier unpark.
            if !word.load().is_asleep(at.seat) {
                return slept;
            }
            if stopping() {
                let (Retracted::Own | Retracted::TakenByWaker) = word.retract_and_search(at.seat);
                return slept;
            }
        }
    }

    /// Sleeps for `length`, or until woken. Returns whether a waker took the bit: if so, the caller is counted as
    /// searching.
    pub(crate) fn nap(&self, at: SleeperSlot, length: Duration, look: impl Fn() -> bool) -> bool {
        let word = &self.groups[at.group];
        word.announce(at.seat, false);
        // Ordering: SeqCst fence; as in `fall_asleep`.
        fence(Ordering::SeqCst);
        if !look() {
            thread::park_timeout(length);
        }
        word.retract_and_go_on(at.seat) == Retracted::TakenByWaker
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{Sleep, Slept};
    use crate::scheduler::counters::SEAT_COUNT_MAX;
    use crate::sync::atomic::{AtomicBool, Ordering};
    use crate::sync::thread;
    use std::cell::Cell;
    use std::time::Duration;

    #[test]
    fn half_of_a_group_may_search_and_two_always() {
        for (worker_count, most) in [(2, 2), (3, 2), (4, 2), (5, 3), (8, 4)] {
            let sleep = Sleep::new(worker_count, worker_count);
            let begin = |_: &usize| {
                let may = sleep.may_search(0);
                if may {
                    sleep.begin_search(0);
                }
                may
            };
            assert_eq!((0..SEAT_COUNT_MAX).take_while(begin).count(), most, "of {worker_count}");
        }
    }

    #[test]
    fn who_was_woken_from_a_nap_is_counted_as_searching() {
        let sleep = Sleep::new(1, 1);
        sleep.take_seat(0);
        let at = sleep.place(0);
        // The last look finds something both times, so the worker does not park.
        assert!(!sleep.nap(at, Duration::MAX, || true));
        assert!(sleep.is_deserted());
        let woken = sleep.nap(at, Duration::MAX, || {
            sleep.notify(0);
            true
        });
        assert!(woken && !sleep.is_deserted());
        sleep.end_search(0, || false);
        assert!(sleep.is_deserted());
    }

    /// For each way in which a pusher notifies, and each way in which a worker goes to sleep.
    #[test]
    fn the_sleeper_sees_the_task_or_the_pusher_sees_the_sleeper() {
        for _ in 0..if cfg!(miri) { 3 } else { 200 } {
            for notify in [Sleep::notify, Sleep::notify_of_waiting] {
                for naps in [false, true] {
                    race_to_sleep(notify, naps);
                }
            }
        }
    }

    fn race_to_sleep(notify: impl Fn(&Sleep, usize) + Send, naps: bool) {
        let (sleep, is_pushed) = (&Sleep::new(1, 1), &AtomicBool::new(false));
        sleep.take_seat(0);
        thread::scope(|scope| {
            let pusher = scope.spawn(move || {
                is_pushed.store(true, Ordering::Relaxed);
                notify(sleep, 0);
            });
            let pusher = Cell::new(Some(pusher));
            let look = || {
                let found = is_pushed.load(Ordering::Relaxed);
                // Not by a channel, since a channel has fences of its own.
                pusher.take().expect("one look").join().expect("no panic");
                assert!(found || !sleep.is_asleep(0), "the worker would sleep beside a task");
                // Prevents the park.
                true
            };
            let at = sleep.place(0);
            if naps {
                sleep.nap(at, Duration::MAX, look);
            } else {
                let slept = sleep.fall_asleep(at, false, look, || unreachable!("it found something"));
                assert_eq!(slept, Slept::Parked);
            }
        });
    }
}
