//! Sleeping workers wait for outside events, such as those of sockets.
//!
//! A pool has at most one source of events. One thread at a time *holds* the source and waits in it: a worker that has
//! nothing else to do, or the source's own thread. A worker that waits there handles the events itself and runs what
//! they wake. Without that, the source's thread would be switched to for each event, and the worker once more.
//!
//! # Who holds the source
//!
//! | holder | takes it | leaves it |
//! | --- | --- | --- |
//! | the source's thread | at the start; when no worker has held it for a while; when it must, see [`EventWait::take_over`] | by [`EventWait::offer`] |
//! | a worker | in place of a park, if it is free | when it is woken, or has handled events |
//! | none | | |
//!
//! The source is free while the worker that left it runs. That is short if turns are short, and then no thread is woken
//! for the others' sake. A worker whose last turns were long wakes a sleeping worker when it leaves ([`Absence`]). The
//! source's thread looks every millisecond while workers come and go, and takes a source that stays free.
//!
//! # Why no wake is lost
//!
//! A waker ends the wait of a worker by [`EventSource::wake`] if the worker holds the source, and by an unpark
//! otherwise. Waker: take the sleeper's bit, fence, look at the holder. Worker: write the holder (take or leave the
//! source), fence, look at the bit. If the waker's fence is first, the worker sees that its bit is gone and does not
//! wait. If the worker's fence is first, the waker sees the holder as it is. The same holds for the request of the
//! source's thread, with the request in place of the bit.

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::thread::{self, Thread};
use crate::sync::{CachePadded, OnceLock};
use std::fmt;
// Only keep the source alive, and must hold a trait object, which loom's cannot.
use std::sync::{Arc as StdArc, Weak as StdWeak};
use std::time::{Duration, Instant};

/// A source of outside events.
pub(crate) trait EventSource: Send + Sync {
    /// Waits until there are events, or until [`wake`](Self::wake) was called since the last wait. Returns whether
    /// there are events; they are kept for [`handle`](Self::handle). Only the holder calls this.
    fn wait(&self) -> bool;

    /// As [`wait`](Self::wait), but only looks.
    fn look(&self) -> bool;

    /// Handles the events of the last wait. Only the holder calls this.
    fn handle(&self);

    /// Ends the present wait, or else the next.
    fn wake(&self);
}

/// The place where the workers of a pool wait for the events of a source.
pub(crate) struct EventWait {
    shared: CachePadded<Shared>,
    source: OnceLock<Source>,
}

struct Shared {
    /// [`FREE`], [`OWN_THREAD`], or the index of a worker after [`FIRST_WORKER`].
    holder: AtomicUsize,
    /// The request of the source's thread to workers: [`NOTHING`], [`TELL`] or [`GIVE`].
    request: AtomicUsize,
    /// The number of times that a worker has left the source; written by the holder only.
    departures: AtomicUsize,
}

struct Source {
    /// Weak: the source ends before the pool.
    events: StdWeak<dyn EventSource>,
    /// The source's own thread.
    thread: Thread,
}

/// No thread holds the source.
const FREE: usize = 0;
/// The source's own thread holds it, or there is no source.
const OWN_THREAD: usize = 1;
const FIRST_WORKER: usize = 2;

/// The source's thread asks for nothing.
const NOTHING: usize = 0;
/// The source's thread wants to be unparked when a worker leaves the source.
const TELL: usize = 1;
/// The same; and no worker shall take the source any more.
const GIVE: usize = 2;

/// The end of a worker's attempt to wait.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Another thread holds the source: the worker parks instead.
    NotHeld,
    /// The worker has waited, or nearly, and has left the source.
    Woken,
    /// There are events, and the worker still holds the source: [`EventWait::handle`] follows.
    Events,
}

impl EventWait {
    pub(crate) fn new() -> Self {
        let shared = Shared {
            holder: AtomicUsize::new(OWN_THREAD),
            request: AtomicUsize::new(NOTHING),
            departures: AtomicUsize::new(0),
        };
        Self { shared: CachePadded::new(shared), source: OnceLock::new() }
    }

    /// Sets the source. The calling thread becomes the source's thread, and holds the source.
    pub(crate) fn install(&self, events: StdWeak<dyn EventSource>) {
        let installed = self.source.set(Source { events, thread: thread::current() });
        assert!(installed.is_ok(), "a pool has one source of events");
    }

    /// Returns whether there is a source. A worker asks this before it announces its sleep, and waits for events only if
    /// there is one: so the thread that takes the bit sees the source, too, and needs no fence where there is none.
    #[inline]
    pub(crate) fn has_source(&self) -> bool {
        self.source.get().is_some()
    }

    /// Waits for events if no thread holds the source, unless the worker is not `asleep` any more.
    pub(crate) fn wait(&self, worker: usize, asleep: impl FnOnce() -> bool) -> Waited {
        if !self.is_free() || self.wants_it_back() || !self.take(FIRST_WORKER + worker) {
            return Waited::NotHeld;
        }
        // Ordering: SeqCst fence between the taking and the looks; pairs with the fences in `wake` and `take_over`.
        fence(Ordering::SeqCst);
        if !self.wants_it_back() && asleep() && self.events().is_some_and(|events| events.wait()) {
            return Waited::Events;
        }
        self.leave();
        Waited::Woken
    }

    /// Handles the events of the last [`wait`](Self::wait) and leaves the source.
    pub(crate) fn handle(&self) {
        if let Some(events) = self.events() {
            events.handle();
        }
        self.leave();
    }

    /// Handles the events that are there, if no thread holds the source: for a worker that has tasks to run.
    pub(crate) fn look(&self, worker: usize) {
        if self.is_free() && !self.wants_it_back() && self.take(FIRST_WORKER + worker) {
            if let Some(events) = self.events().filter(|events| events.look()) {
                events.handle();
            }
            self.leave();
        }
    }

    fn leave(&self) {
        let shared = &*self.shared;
        // Ordering: Relaxed; only the holder writes it, and it is a sign of life for the source's thread.
        let departures = shared.departures.load(Ordering::Relaxed);
        shared.departures.store(departures.wrapping_add(1), Ordering::Relaxed);
        // Ordering: Release; pairs with the Acquire of `take`: the next holder sees what this one did.
        shared.holder.store(FREE, Ordering::Release);
        // Ordering: SeqCst fence between the leaving and the looks at the request, here, and at the bit, in
        // `Sleep::fall_asleep`; pairs with the fences in `take_over`, `tell_departures` and `wake`.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed; the fence is there.
        if shared.request.load(Ordering::Relaxed) != NOTHING {
            self.source.get().expect("a source asks").thread.unpark();
        }
    }

    /// Ends the wait of a worker whose bit the caller has taken. Returns false if the worker does not hold the source;
    /// then it parks, or is awake.
    pub(crate) fn wake(&self, worker: usize) -> bool {
        // Ordering: SeqCst fence between the taking of the bit and the look at the holder; pairs with the fences in
        // `wait` and `leave`.
        fence(Ordering::SeqCst);
        self.wake_if(|holder| holder == FIRST_WORKER + worker)
    }

    /// Ends the wait of the worker that holds the source, if there is one, after the stop flag was set and a fence.
    pub(crate) fn wake_any(&self) {
        self.wake_if(|holder| holder >= FIRST_WORKER);
    }

    fn wake_if(&self, is_meant: impl FnOnce(usize) -> bool) -> bool {
        // Ordering: Acquire; pairs with the exchange of `take`: the source is there.
        let is_held = is_meant(self.shared.holder.load(Ordering::Acquire));
        if is_held {
            self.events().into_iter().for_each(|events| events.wake());
        }
        is_held
    }

    /// Returns whether no thread holds the source.
    pub(crate) fn is_free(&self) -> bool {
        // Ordering: Relaxed; a hint.
        self.shared.holder.load(Ordering::Relaxed) == FREE
    }

    fn wants_it_back(&self) -> bool {
        // Ordering: Relaxed; a hint, or behind the fence of `wait`.
        self.shared.request.load(Ordering::Relaxed) == GIVE
    }

    fn take(&self, holder: usize) -> bool {
        // Ordering: AcqRel; Acquire pairs with the Release of `leave` and `offer`, Release with the Acquire of
        // `wake_if`.
        self.shared.holder.compare_exchange(FREE, holder, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Returns the source, unless it has ended.
    fn events(&self) -> Option<StdArc<dyn EventSource>> {
        self.source.get().expect("a source is held").events.upgrade()
    }
}

/// The side of the source's thread.
impl EventWait {
    /// Lets workers hold the source.
    pub(crate) fn offer(&self) {
        // Ordering: Release; pairs with the Acquire of `take`.
        self.shared.holder.store(FREE, Ordering::Release);
    }

    /// Takes the source if no thread holds it.
    pub(crate) fn try_take(&self) -> bool {
        self.take(OWN_THREAD)
    }

    /// Takes the source. If a worker waits in it, that wait ends.
    pub(crate) fn take_over(&self) {
        // Ordering: Relaxed; the fence follows.
        self.shared.request.store(GIVE, Ordering::Relaxed);
        // Ordering: SeqCst fence between the request and the attempt; pairs with the fences in `wait` and `leave`: the
        // worker that is in the way sees the request, or has left.
        fence(Ordering::SeqCst);
        while !self.take(OWN_THREAD) {
            self.wake_any();
            thread::park();
        }
        // Ordering: Relaxed; workers that see it late park instead.
        self.shared.request.store(NOTHING, Ordering::Relaxed);
    }

    /// Asks whether the next worker that leaves the source shall unpark the source's thread.
    pub(crate) fn tell_departures(&self, tell: bool) {
        // Ordering: Relaxed; the fence follows.
        self.shared.request.store(if tell { TELL } else { NOTHING }, Ordering::Relaxed);
        // Ordering: SeqCst fence between the request and the caller's look at the departures; pairs with the fence in
        // `leave`: the worker sees the request, or the caller sees that it has left.
        fence(Ordering::SeqCst);
    }

    /// Returns how often workers have left the source.
    pub(crate) fn departures(&self) -> usize {
        // Ordering: Relaxed; behind the fence of `tell_departures`, or a hint.
        self.shared.departures.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for EventWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventWait").field("has_source", &self.source.get().is_some()).finish_non_exhaustive()
    }
}

/// The time of a worker between two stays in the source.
#[derive(Debug, Default)]
pub(crate) struct Absence {
    /// When the worker has left the source.
    since: Option<Instant>,
    /// The number of departures at which the worker still wakes another.
    wary: u16,
}

/// A longer absence makes a worker wary: the wake of another worker costs a tenth of it.
const LONG: Duration = if crate::sync::EXPLORED { Duration::MAX } else { Duration::from_micros(50) };

/// The number of departures for which a worker stays wary.
const WARY_FOR: u16 = 256;

impl Absence {
    /// The worker is back, or about to sleep in another way.
    pub(crate) fn ends(&mut self) {
        match self.since.take() {
            Some(since) if since.elapsed() > LONG => self.wary = WARY_FOR,
            Some(_) => self.wary = self.wary.saturating_sub(1),
            None => {}
        }
    }

    /// The worker has left the source. Returns whether another worker should take it soon.
    pub(crate) fn begins(&mut self) -> bool {
        self.since = Some(Instant::now());
        self.wary > 0
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::sync::{Condvar, Mutex, lock};

    /// A source whose events and wakes a test makes.
    #[derive(Default)]
    struct Bell {
        rung: Mutex<(usize, bool)>,
        changed: Condvar,
        handled: AtomicUsize,
    }

    impl Bell {
        fn ring(&self) {
            lock(&self.rung).0 += 1;
            self.changed.notify_all();
        }
    }

    impl EventSource for Bell {
        fn wait(&self) -> bool {
            let mut rung = lock(&self.rung);
            while rung.0 == 0 && !rung.1 {
                rung = self.changed.wait(rung).expect("no panic while locked");
            }
            rung.1 = false;
            rung.0 > 0
        }

        fn look(&self) -> bool {
            lock(&self.rung).0 > 0
        }

        fn handle(&self) {
            let rung = std::mem::take(&mut lock(&self.rung).0);
            self.handled.fetch_add(rung, Ordering::Relaxed);
        }

        fn wake(&self) {
            lock(&self.rung).1 = true;
            self.changed.notify_all();
        }
    }

    fn with_bell() -> (EventWait, StdArc<Bell>) {
        let (wait, bell) = (EventWait::new(), StdArc::new(Bell::default()));
        let weak: StdWeak<Bell> = StdArc::downgrade(&bell);
        wait.install(weak);
        (wait, bell)
    }

    #[test]
    fn without_a_source_a_worker_parks() {
        let wait = EventWait::new();
        assert_eq!(wait.wait(0, || true), Waited::NotHeld);
        assert!(!wait.wake(0));
    }

    #[test]
    fn a_worker_takes_a_free_source_alone() {
        let (wait, bell) = with_bell();
        assert_eq!(wait.wait(0, || true), Waited::NotHeld, "its thread holds it");
        wait.offer();
        bell.ring();
        assert_eq!(wait.wait(0, || true), Waited::Events);
        assert_eq!(wait.wait(1, || true), Waited::NotHeld, "the first worker holds it");
        assert!(!wait.try_take() && wait.departures() == 0);
        wait.handle();
        assert_eq!((bell.handled.load(Ordering::Relaxed), wait.departures()), (1, 1));
        assert_eq!(wait.wait(1, || false), Waited::Woken, "it is not asleep");
        assert!(wait.try_take() && wait.departures() == 2);
    }

    #[test]
    fn a_busy_worker_handles_the_events_that_are_there() {
        let (wait, bell) = with_bell();
        bell.ring();
        wait.look(0);
        assert_eq!(bell.handled.load(Ordering::Relaxed), 0, "its thread holds it");
        wait.offer();
        wait.look(0);
        wait.look(1);
        assert_eq!((bell.handled.load(Ordering::Relaxed), wait.departures()), (1, 2));
        assert!(wait.is_free());
    }

    #[test]
    fn a_source_that_has_ended_is_waited_for_no_more() {
        let (wait, bell) = with_bell();
        wait.offer();
        drop(bell);
        assert_eq!(wait.wait(0, || true), Waited::Woken);
        wait.look(0);
        assert!(wait.is_free());
    }

    #[test]
    fn a_wake_ends_the_wait_of_the_worker_that_is_meant() {
        let (wait, bell) = with_bell();
        wait.offer();
        thread::scope(|scope| {
            let waits = scope.spawn(|| wait.wait(3, || true));
            while wait.is_free() {
                thread::yield_now();
            }
            assert!(!wait.wake(2));
            assert!(wait.wake(3));
            assert_eq!(waits.join().expect("no panic"), Waited::Woken);
        });
        assert!(!lock(&bell.rung).1, "the wake is used up");
    }

    #[test]
    fn the_thread_of_the_source_takes_it_over_from_a_worker_that_waits() {
        let (wait, bell) = with_bell();
        for _ in 0..if cfg!(miri) { 3 } else { 200 } {
            wait.offer();
            let over = AtomicUsize::new(0);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while over.load(Ordering::Relaxed) == 0 {
                        if wait.wait(0, || true) == Waited::NotHeld {
                            thread::yield_now();
                        }
                    }
                });
                wait.take_over();
                assert!(!wait.is_free());
                over.store(1, Ordering::Relaxed);
            });
        }
        assert_eq!(bell.handled.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_long_absence_makes_a_worker_wary_for_a_while() {
        let mut absence = Absence::default();
        assert!(!absence.begins());
        absence.since = Instant::now().checked_sub(2 * LONG);
        absence.ends();
        for _ in 0..WARY_FOR {
            assert!(absence.begins());
            absence.since = Some(Instant::now() + LONG);
            absence.ends();
        }
        assert!(!absence.begins());
    }
}
