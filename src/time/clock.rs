//! A clock tells a system the time.
//!
//! A system measures every time by one [`Clock`]: by a [`SystemClock`] in production, by a [`ManualClock`] in tests,
//! where time passes only when the test moves the clock.

use std::fmt;
// The counts of type-erased subscribers are no part of a protocol, and loom's `Arc` holds no `dyn`.
use std::sync::Arc as StdArc;
use std::time::{Duration, Instant};

use crate::sync::{Arc, Mutex, lock};

/// The function that a clock calls when it has been moved, with the time that the clock was moved to.
pub(crate) type AdvanceHook = Box<dyn Fn(Duration) + Send + Sync>;

/// A source of time for an actor system, for [`SystemBuilder::clock`](crate::SystemBuilder::clock). A system without one
/// has the operating system's monotonic clock, counted from when the system was built.
///
/// A time is the distance from a start that the clock chooses; times of two clocks can't be compared.
///
/// # Concurrency
/// All methods are called from any thread. Timers ask for the time often, so [`now`](Self::now) should not
/// block for long.
///
/// # Examples
/// A clock that goes on from where an earlier run of the program stopped:
/// ```
/// use std::time::{Duration, Instant};
/// use pointsman::time::Clock;
///
/// struct Continued {
///     earlier: Duration,
///     start: Instant,
/// }
///
/// impl Clock for Continued {
///     fn now(&self) -> Duration {
///         self.earlier.saturating_add(self.start.elapsed())
///     }
/// }
///
/// let clock = Continued { earlier: Duration::from_secs(3600), start: Instant::now() };
/// assert!(clock.now() >= Duration::from_secs(3600));
/// ```
#[doc(alias = "SystemClock")]
pub trait Clock: Send + Sync + 'static {
    /// Returns the time since the clock's start.
    ///
    /// The time is never less than an earlier call returned, on any two threads.
    fn now(&self) -> Duration;

    /// Returns whether the clock moves by itself and as fast as the time that threads sleep by; `true` by default.
    ///
    /// For a real clock, timers sleep until the next deadline. For any other clock, timers sleep until the clock calls
    /// the function that was handed to [`on_advance`](Self::on_advance).
    fn is_real(&self) -> bool {
        true
    }

    /// Takes a function to call whenever the clock has been moved. By default the function is dropped, which is right
    /// for a real clock only.
    ///
    /// The clock keeps the function as long as it lives, so the function should hold what it wakes weakly.
    fn on_advance(&self, moved: Box<dyn Fn(Duration) + Send + Sync>) {
        drop(moved);
    }
}

/// The operating system's monotonic clock, counted from when the value was made.
#[derive(Debug)]
pub(crate) struct SystemClock {
    start: Instant,
}

/// A clock that stands still until it is moved by hand.
///
/// Clones are handles to the same clock: give one to the system and keep one.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use pointsman::time::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let handle = clock.clone();
/// assert_eq!(clock.now(), Duration::ZERO);
///
/// handle.advance(Duration::from_secs(30));
/// assert_eq!(clock.now(), Duration::from_secs(30));
/// ```
#[derive(Clone, Default)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// One lock around both, so that each subscriber hears of every move after its subscription.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: Duration,
    /// Replaced, never changed, so that a move can call the subscribers without the lock.
    subscribers: StdArc<[StdArc<AdvanceHook>]>,
}

impl SystemClock {
    /// Makes a clock that starts now.
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

impl ManualClock {
    /// Makes a clock that stands at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward, then calls each subscriber with the new time, in the order of subscription.
    ///
    /// The time stops at [`Duration::MAX`] instead of overflowing. A move by zero calls the subscribers once more.
    ///
    /// # Panics
    /// When a subscriber does. The clock has moved by then; subscribers behind that one hear of the new time with the
    /// next move.
    ///
    /// # Concurrency
    /// Subscribers run on the calling thread with no lock held, so they may use the clock, and even move it.
    /// If two threads move it at once, a subscriber may be given the later time first.
    pub fn advance(&self, by: Duration) {
        let (now, subscribers) = {
            let mut state = lock(&self.shared.state);
            state.now = state.now.saturating_add(by);
            (state.now, StdArc::clone(&state.subscribers))
        };
        for moved in subscribers.iter() {
            moved(now);
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        lock(&self.shared.state).now
    }

    fn is_real(&self) -> bool {
        false
    }

    fn on_advance(&self, moved: AdvanceHook) {
        let moved = StdArc::new(moved);
        let mut state = lock(&self.shared.state);
        state.subscribers = state.subscribers.iter().cloned().chain([moved]).collect();
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock").field("now", &self.now()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A subscriber, and the times that it was given.
    fn recorder() -> (AdvanceHook, Arc<Mutex<Vec<Duration>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        (Box::new(move |now| lock(&record).push(now)), seen)
    }

    #[test]
    fn manual_time_saturates() {
        let clock = ManualClock::new();
        clock.advance(SECOND);
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Duration::MAX);
        clock.advance(SECOND);
        assert_eq!(clock.now(), Duration::MAX);
    }

    #[test]
    fn subscribers_of_any_handle_hear_of_each_move_after_it_happened() {
        let clock = ManualClock::new();
        clock.advance(SECOND);
        let (record, seen) = recorder();
        let watched = Arc::new(Mutex::new(Some(clock.clone())));
        let within = watched.clone();
        clock.clone().on_advance(Box::new(move |now| {
            assert_eq!(lock(&within).as_ref().map(Clock::now), Some(now));
            record(now);
        }));
        clock.advance(SECOND);
        clock.advance(Duration::ZERO);
        assert_eq!(*lock(&seen), [2 * SECOND, 2 * SECOND]);
        // A clock that its own subscriber holds would never be freed.
        lock(&watched).take();
    }

    #[test]
    fn a_subscriber_may_subscribe_and_move_the_clock() {
        let clock = ManualClock::new();
        let (record, seen) = recorder();
        let once = Mutex::new(Some((clock.clone(), record)));
        clock.on_advance(Box::new(move |_| {
            // A statement of its own: the lock must not be held when the move below comes back to here.
            let once = lock(&once).take();
            if let Some((handle, record)) = once {
                handle.on_advance(record);
                handle.advance(SECOND);
            }
        }));
        clock.advance(SECOND);
        assert_eq!(*lock(&seen), [2 * SECOND]);
    }

    #[test]
    fn a_panicking_subscriber_leaves_the_clock_usable() {
        let clock = ManualClock::new();
        clock.on_advance(Box::new(|now| assert_ne!(now, SECOND)));
        let (record, seen) = recorder();
        clock.on_advance(record);
        assert!(catch_unwind(AssertUnwindSafe(|| clock.advance(SECOND))).is_err());
        clock.advance(SECOND);
        assert_eq!((clock.now(), lock(&seen).as_slice()), (2 * SECOND, [2 * SECOND].as_slice()));
    }
}
