//! The pulse of a thread that runs turns: what it runs now, and how much it has run.
//!
//! The thread writes by plain stores; any thread reads. The task is told by its address, which is only compared: the task
//! may have ended by the time that another thread looks.

#[cfg(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle))))]
use crate::measure::flight::Flight;
use crate::measure::flight::FlightEventKind;
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
use crate::measure::watch_pause::{Resumption, WatchPauses};
use crate::measure::work_time::WorkTime;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{CachePadded, EXPLORED, OnceLock, thread, thread_index};
#[cfg(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle))))]
use crate::sync::{Mutex, lock};
use std::sync::Arc as StdArc;
use std::time::{Duration, Instant};

/// The watchdogs of this process that pause.
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
static PAUSES: WatchPauses = WatchPauses::new();

/// Leaves `resumption` for the next thread that wakes up; see [`WatchPauses::pause`].
#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
pub(crate) fn pause_watch(resumption: Resumption, is_any_awake: impl FnOnce() -> bool) {
    PAUSES.pause(resumption, is_any_awake);
}

/// Models watch no threads.
#[cfg(any(pointsman_loom, pointsman_shuttle))]
pub(crate) fn pause_watch(_: Box<dyn FnOnce() + Send>, _: impl FnOnce() -> bool) {}

/// The pulse of one thread.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    beats: CachePadded<Beats>,
    work: WorkTime,
    name: OnceLock<Box<str>>,
    /// The recording of the thread, while there is any.
    #[cfg(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle))))]
    flight: Mutex<Option<Flight>>,
}

#[derive(Debug, Default)]
struct Beats {
    /// The address of the task whose turn runs, or ran last; 0 while the thread has no task.
    running: AtomicUsize,
    turns: AtomicU64,
    parks: AtomicU64,
    steals: AtomicU64,
    /// The time that the thread has looked for tasks while times were measured, in nanoseconds.
    searching: AtomicU64,
    /// The mark of a thread that does not sleep.
    is_awake: AtomicBool,
    /// The number of the thread, and one; 0 before the thread runs and when it has ended.
    thread: AtomicUsize,
}

impl Pulse {
    /// Makes the pulse of a thread that does not run yet.
    pub(crate) fn new() -> StdArc<Self> {
        StdArc::default()
    }

    /// Makes this the pulse of the calling thread.
    pub(crate) fn attach(&self) {
        // Models have no use for it, and each access makes them larger.
        if EXPLORED {
            return;
        }
        let _ = self.name.set(thread::current().name().unwrap_or_default().into());
        let number = thread_index::current().map_or(0, |number| number + 1);
        // Ordering: Relaxed in all below; statistics.
        self.beats.thread.store(number, Ordering::Relaxed);
        self.wakes();
    }

    /// The thread ends.
    pub(crate) fn detach(&self) {
        if EXPLORED {
            return;
        }
        self.rest();
        self.work.stops();
        self.beats.is_awake.store(false, Ordering::Relaxed);
        self.beats.thread.store(0, Ordering::Relaxed);
    }

    /// A turn of the task at this address begins.
    #[inline(always)]
    pub(crate) fn begin_turn(&self, task: *const ()) {
        if EXPLORED {
            return;
        }
        self.beats.running.store(task.addr(), Ordering::Relaxed);
    }

    /// Shows how many turns the thread has begun so far.
    pub(crate) fn show_turns(&self, turns: u64) {
        if EXPLORED {
            return;
        }
        self.beats.turns.store(turns, Ordering::Relaxed);
    }

    /// The thread has no task.
    #[inline]
    pub(crate) fn rest(&self) {
        if EXPLORED {
            return;
        }
        self.beats.running.store(0, Ordering::Relaxed);
    }

    /// The thread has a task, after it had none or for a while already.
    #[inline]
    pub(crate) fn works(&self) {
        self.work.works();
    }

    /// The thread begins to look for tasks.
    #[inline]
    pub(crate) fn stops_working(&self) {
        self.work.stops();
    }

    /// The time in which the thread has run turns while times were measured.
    pub(crate) fn busy(&self) -> Duration {
        self.work.so_far()
    }

    /// The thread goes to sleep.
    pub(crate) fn falls_asleep(&self) {
        if EXPLORED {
            return;
        }
        self.work.stops();
        add_one(&self.beats.parks);
        self.beats.is_awake.store(false, Ordering::Relaxed);
    }

    /// The thread has woken up, or begins.
    #[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
    pub(crate) fn wakes(&self) {
        PAUSES.wakes(&self.beats.is_awake);
    }

    /// Models watch no threads.
    #[cfg(any(pointsman_loom, pointsman_shuttle))]
    pub(crate) fn wakes(&self) {}

    /// Begins to record. Returns false while the thread records already.
    #[cfg(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle))))]
    pub(crate) fn begin_flight(&self, flight: Flight) -> bool {
        let mut place = lock(&self.flight);
        let is_free = place.is_none();
        if is_free {
            *place = Some(flight);
        }
        is_free
    }

    /// Ends the recording of the thread, and returns it.
    #[cfg(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle))))]
    pub(crate) fn end_flight(&self) -> Option<Flight> {
        lock(&self.flight).take()
    }

    /// Notes an event in the recording of the thread, if there is any. Called where a recording runs, and by the thread
    /// alone.
    #[cfg(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle))))]
    #[cold]
    pub(crate) fn note(&self, kind: FlightEventKind) {
        // Ordering: Relaxed; the thread reads what it has written.
        let task = self.beats.running.load(Ordering::Relaxed);
        if let Some(flight) = &mut *lock(&self.flight) {
            flight.note(kind, task);
        }
    }

    /// Without a console there is no recording.
    #[cfg(not(all(feature = "console", not(any(pointsman_loom, pointsman_shuttle)))))]
    #[inline(always)]
    pub(crate) fn note(&self, _: FlightEventKind) {}

    /// Whether the thread does not sleep.
    pub(crate) fn is_awake(&self) -> bool {
        self.beats.is_awake.load(Ordering::Relaxed)
    }

    /// The thread has looked for tasks since then.
    pub(crate) fn searched_since(&self, began: Instant) {
        let searching = &self.beats.searching;
        let length = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        searching.store(searching.load(Ordering::Relaxed).saturating_add(length), Ordering::Relaxed);
    }

    /// The time that the thread has looked for tasks while times were measured.
    pub(crate) fn searching(&self) -> Duration {
        Duration::from_nanos(self.beats.searching.load(Ordering::Relaxed))
    }

    /// The thread has taken tasks from another.
    pub(crate) fn count_steal(&self) {
        add_one(&self.beats.steals);
    }

    /// Returns the address of the task that the thread runs; 0 if it runs none.
    pub(crate) fn running(&self) -> usize {
        self.beats.running.load(Ordering::Relaxed)
    }

    /// The turns that the thread had begun when it last showed them: a worker does so after some turns, and before it
    /// sleeps.
    pub(crate) fn turns(&self) -> u64 {
        self.beats.turns.load(Ordering::Relaxed)
    }

    /// How often the thread has gone to sleep.
    pub(crate) fn parks(&self) -> u64 {
        self.beats.parks.load(Ordering::Relaxed)
    }

    /// How often the thread has taken tasks from another.
    pub(crate) fn steals(&self) -> u64 {
        self.beats.steals.load(Ordering::Relaxed)
    }

    /// The number of the thread; `None` before it runs and when it has ended.
    pub(crate) fn thread(&self) -> Option<usize> {
        self.beats.thread.load(Ordering::Relaxed).checked_sub(1)
    }

    /// The name of the thread.
    pub(crate) fn name(&self) -> &str {
        self.name.get().map_or("", |name| name)
    }
}

/// Adds to a counter that the calling thread alone writes.
#[inline(always)]
fn add_one(counter: &AtomicU64) {
    if EXPLORED {
        return;
    }
    // Ordering: Relaxed, both; a statistic.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}
