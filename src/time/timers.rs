//! The timers of a system are a wheel behind a lock, and one thread that sleeps until the next deadline.
//!
//! The thread starts with the system, so setting a timer asks the machine for nothing and cannot be refused. The thread
//! sleeps while no timer waits. With a clock that is moved by hand there is no thread at all: the thread that moves the
//! clock fires each timer that has come due, before [`ManualClock::advance`](crate::time::ManualClock::advance) returns.
//!
//! The lock is held for the wheel's own work only. Timers that fire or are cancelled are run and dropped without the
//! lock, since wakers and messages are user code.

use crate::scheduler::affinity::unpinned;
use crate::sync::{Condvar, Mutex, lock};
use crate::time::alarm::{AlarmKey, Alarms};
use crate::time::clock::Clock;
use crate::time::no_system::NO_SYSTEM;
use crate::time::wheel::{Key, NEVER, Wheel, tick_begun_at, tick_not_before};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::sync::{Arc as StdArc, Weak as StdWeak};
use std::task::Waker;
use std::time::Duration;

/// Names one timer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimerHandle(Key);

/// The target of ticks: an actor.
pub(crate) trait TickTarget: Send + 'static {
    /// Takes the tick `number`. A target that has ended needs no tick.
    fn tick(self, number: u64);
}

/// The target of timers that send no ticks.
impl TickTarget for Infallible {
    fn tick(self, _: u64) {
        match self {}
    }
}

/// A task that runs once or repeatedly at a later time; see the scheduler service.
pub(crate) trait DelayedTask: Send + Sync + 'static {
    /// Runs the task: its time has come.
    fn fired(self: StdArc<Self>);

    /// Closes the task: the timers have stopped before its time has come.
    fn close(self: StdArc<Self>);
}

/// The timers of one system, whose ticks go to targets of type `T`.
pub(crate) struct Timers<T: TickTarget> {
    /// The name of the timer thread.
    thread_name: String,
    clock: StdArc<dyn Clock>,
    shared: StdArc<Shared<T>>,
}

struct Shared<T> {
    table: Mutex<Table<T>>,
    /// Signalled when the timer thread has to look again.
    changed: Condvar,
}

struct Table<T> {
    wheel: Wheel<Fire<T>>,
    /// The tick until which the timer thread sleeps; `None` while it doesn't sleep.
    sleeps_until: Option<u64>,
    /// The number of threads that have taken due timers out, and have not run all of them.
    firing: u32,
    thread: Thread,
}

enum Thread {
    /// The thread has not started, or is never needed.
    None,
    Running(Option<crate::sync::thread::JoinHandle<()>>),
    Stopped,
}

/// The action of a timer.
enum Fire<T> {
    Tick { target: T, number: u64 },
    Wake(Waker),
    Call(Box<dyn FnOnce() + Send>),
    Task(StdArc<dyn DelayedTask>),
}

impl<T: TickTarget> Fire<T> {
    fn run(self) {
        match self {
            Fire::Tick { target, number } => target.tick(number),
            Fire::Wake(waker) => waker.wake(),
            Fire::Call(call) => call(),
            Fire::Task(task) => task.fired(),
        }
    }
}

impl<T: TickTarget> Timers<T> {
    /// Makes the timers of the system of this name. With a real clock no timer fires before [`start`](Self::start).
    pub(crate) fn new(system: &str, clock: StdArc<dyn Clock>) -> Self {
        let shared = StdArc::new(Shared {
            table: Mutex::new(Table {
                wheel: Wheel::new(tick_begun_at(clock.now())),
                sleeps_until: None,
                firing: 0,
                thread: Thread::None,
            }),
            changed: Condvar::new(),
        });
        if !clock.is_real() {
            // Weak: the clock may outlive the system.
            let weak: StdWeak<Shared<T>> = StdArc::downgrade(&shared);
            clock.on_advance(Box::new(move |now| {
                if let Some(shared) = weak.upgrade() {
                    shared.fire_due(now);
                }
            }));
        }
        Self { thread_name: format!("{system}-timer"), clock, shared }
    }

    /// Returns the time since the clock's start.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Sends the tick `number` to `target` at `due`, never early.
    pub(crate) fn tick_at(&self, due: Duration, target: T, number: u64) -> TimerHandle {
        self.insert(due, Fire::Tick { target, number })
    }

    /// Runs `call` at `due`, never early, on the timer thread; `call` must be short.
    pub(crate) fn call_at(&self, due: Duration, call: Box<dyn FnOnce() + Send>) -> TimerHandle {
        self.insert(due, Fire::Call(call))
    }

    /// As [`call_at`](Self::call_at), but returns the call once the timers have stopped, instead of keeping a call that
    /// never fires.
    pub(crate) fn try_call_at(
        &self,
        due: Duration,
        call: Box<dyn FnOnce() + Send>,
    ) -> Result<TimerHandle, Box<dyn FnOnce() + Send>> {
        let mut table = lock(&self.shared.table);
        match table.thread {
            Thread::Stopped => Err(call),
            _ => Ok(self.insert_into(&mut table, due, Fire::Call(call))),
        }
    }

    /// Runs a task of the scheduler service at `due`, never early; returns `None` once the timers have stopped.
    pub(crate) fn schedule_at(&self, due: Duration, task: StdArc<dyn DelayedTask>) -> Option<TimerHandle> {
        let mut table = lock(&self.shared.table);
        if matches!(table.thread, Thread::Stopped) {
            return None;
        }
        Some(self.insert_into(&mut table, due, Fire::Task(task)))
    }

    /// Keeps a task of the scheduler service until the timers stop, which closes the task; returns `None` once the
    /// timers have stopped. Needs no thread.
    pub(crate) fn keep_until_the_end(&self, task: StdArc<dyn DelayedTask>) -> Option<TimerHandle> {
        let mut table = lock(&self.shared.table);
        if matches!(table.thread, Thread::Stopped) {
            return None;
        }
        Some(TimerHandle(table.wheel.insert(NEVER, Fire::Task(task))))
    }

    fn insert(&self, due: Duration, fire: Fire<T>) -> TimerHandle {
        self.insert_into(&mut lock(&self.shared.table), due, fire)
    }

    fn insert_into(&self, table: &mut Table<T>, due: Duration, fire: Fire<T>) -> TimerHandle {
        let deadline = tick_not_before(due);
        let key = table.wheel.insert(deadline, fire);
        if table.sleeps_until.is_some_and(|until| deadline < until) {
            self.shared.changed.notify_one();
        }
        TimerHandle(key)
    }

    /// Cancels a timer; a timer that has fired is forgotten already.
    pub(crate) fn cancel(&self, timer: TimerHandle) {
        let fire = lock(&self.shared.table).wheel.cancel(timer.0);
        crate::util::panic::drop_guarded(fire);
    }

    /// Returns how many timers wait.
    pub(crate) fn len(&self) -> usize {
        lock(&self.shared.table).wheel.len()
    }

    /// Returns whether due timers are being run. If not, the caller sees the effects of all timers that were run
    /// before.
    #[cfg(any(feature = "testkit", pointsman_loom))]
    pub(crate) fn is_firing(&self) -> bool {
        lock(&self.shared.table).firing > 0
    }

    /// Returns when to look next: no timer fires before that time. `None` if no timer waits, except those that wait for
    /// the end.
    #[cfg(feature = "testkit")]
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        let next = lock(&self.shared.table).wheel.next_deadline();
        next.filter(|tick| *tick != NEVER).map(Duration::from_millis)
    }

    /// Starts the timer thread, if the clock needs one and it does not run. No later call is refused for want of a
    /// thread.
    ///
    /// # Errors
    ///
    /// The machine refuses a thread.
    pub(crate) fn start(&self) -> io::Result<()> {
        let mut table = lock(&self.shared.table);
        if !matches!(table.thread, Thread::None) || !self.clock.is_real() {
            return Ok(());
        }
        let shared = self.shared.clone();
        let clock = self.clock.clone();
        let builder = crate::sync::thread::Builder::new().name(self.thread_name.clone());
        let handle = builder.spawn(unpinned(move || shared.serve(&*clock)))?;
        table.thread = Thread::Running(Some(handle));
        Ok(())
    }

    /// Ends the timer thread; timers that wait never fire. Called when all actors have ended.
    pub(crate) fn stop(&self) {
        let (thread, waiting) = {
            let mut table = lock(&self.shared.table);
            let thread = std::mem::replace(&mut table.thread, Thread::Stopped);
            (thread, table.wheel.take())
        };
        self.shared.changed.notify_all();
        let mut waiting = waiting;
        waiting.advance(NEVER, &mut |_, fire| match fire {
            // A thread that waits by this clock looks at the clock again, and sets an alarm elsewhere.
            Fire::Wake(_) => run_guarded(fire),
            Fire::Task(task) => run_guarded(Fire::<T>::Call(Box::new(move || task.close()))),
            other => crate::util::panic::drop_guarded(other),
        });
        if let Thread::Running(Some(handle)) = thread {
            // A timer thread that ends the system by a timer that it fires cannot wait for itself.
            if handle.thread().id() != crate::sync::thread::current().id() {
                let _ = handle.join();
            }
        }
    }
}

impl<T: TickTarget> Shared<T> {
    /// Fires everything due at `now`, in order of deadline.
    fn fire_due(&self, now: Duration) {
        let mut fired = Vec::new();
        {
            let mut table = lock(&self.table);
            table.wheel.advance(tick_begun_at(now), &mut |_, fire| fired.push(fire));
            table.firing += 1;
        }
        for fire in fired {
            run_guarded(fire);
        }
        lock(&self.table).firing -= 1;
    }

    /// Runs the timer thread.
    fn serve(&self, clock: &dyn Clock) {
        let mut fired = Vec::new();
        let mut table = lock(&self.table);
        loop {
            if matches!(table.thread, Thread::Stopped) {
                return;
            }
            let now = clock.now();
            table.wheel.advance(tick_begun_at(now), &mut |_, fire| fired.push(fire));
            if !fired.is_empty() {
                table.firing += 1;
                drop(table);
                for fire in fired.drain(..) {
                    run_guarded(fire);
                }
                table = lock(&self.table);
                table.firing -= 1;
                continue;
            }
            let next = table.wheel.next_deadline();
            table.sleeps_until = Some(next.unwrap_or(NEVER));
            table = match next {
                Some(tick) => {
                    let rest = Duration::from_millis(tick).saturating_sub(now);
                    match self.changed.wait_timeout(table, rest) {
                        Ok((table, _)) => table,
                        Err(poisoned) => poisoned.into_inner().0,
                    }
                }
                None => self.changed.wait(table).unwrap_or_else(|poisoned| poisoned.into_inner()),
            };
            table.sleeps_until = None;
        }
    }
}

/// Runs a timer and catches its panic. A waker or call that panics must not end the timer thread, and none may wait
/// there, since the other timers would be late. A thread that moves a clock by hand stands for the timer thread.
fn run_guarded<T: TickTarget>(fire: Fire<T>) {
    crate::dispatch::may_block::without_waiting(|| {
        if let Err(payload) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fire.run())) {
            crate::util::panic::drop_guarded(payload);
        }
    });
}

impl<T: TickTarget> Alarms for Timers<T> {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn is_real(&self) -> bool {
        self.clock.is_real()
    }

    fn wake_at(&self, at: Duration, waker: Waker) -> AlarmKey {
        let mut table = lock(&self.shared.table);
        if !matches!(table.thread, Thread::Stopped) || !self.clock.is_real() {
            let TimerHandle(key) = self.insert_into(&mut table, at, Fire::Wake(waker));
            drop(table);
            if !self.clock.is_real() && self.clock.now() >= at {
                // If the clock was moved between the caller's look and the insertion, the alarm would fire only with
                // the next move.
                let due = lock(&self.shared.table).wheel.cancel(key);
                due.into_iter().for_each(run_guarded);
            }
            return AlarmKey(key.parts());
        }
        drop(table);
        // The system has ended, and its timer thread has ended with it; an ask may still be waiting.
        let rest = at.saturating_sub(self.now());
        let AlarmKey((sequence, index)) = NO_SYSTEM.wake_at(NO_SYSTEM.now().saturating_add(rest), waker);
        AlarmKey((sequence | ELSEWHERE, index))
    }

    fn is_set(&self, key: AlarmKey) -> bool {
        match elsewhere(key) {
            Some(key) => NO_SYSTEM.is_set(key),
            None => Key::from_parts(key.0).is_some_and(|key| lock(&self.shared.table).wheel.holds(key)),
        }
    }

    fn cancel(&self, key: AlarmKey) {
        if let Some(key) = elsewhere(key) {
            NO_SYSTEM.cancel(key);
        } else if let Some(key) = Key::from_parts(key.0) {
            Timers::cancel(self, TimerHandle(key));
        }
    }
}

/// Marks the key of an alarm that is set at [`NO_SYSTEM`]. No sequence number reaches this bit: that takes two and a
/// half centuries of an insertion every nanosecond.
const ELSEWHERE: u64 = 1 << 63;

/// Returns the key at [`NO_SYSTEM`], if the alarm is set there.
fn elsewhere(AlarmKey((sequence, index)): AlarmKey) -> Option<AlarmKey> {
    (sequence & ELSEWHERE != 0).then_some(AlarmKey((sequence & !ELSEWHERE, index)))
}

impl<T: TickTarget> fmt::Debug for Timers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("now", &self.now())
            .field("waiting", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::sync::thread;
    use crate::time::clock::{ManualClock, SystemClock};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: StdArc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn timers_that_stop_wake_all_that_wait_by_them() {
        let clocks: [StdArc<dyn Clock>; 2] =
            [StdArc::new(SystemClock::new()), StdArc::new(ManualClock::new())];
        for clock in clocks {
            let timers = Timers::<Infallible>::new("ending", clock);
            let woken = StdArc::<Woken>::default();
            for hours in [1, 2] {
                timers.wake_at(Duration::from_secs(hours * 3600), woken.clone().into());
            }
            timers.stop();
            let count = woken.0.load(Ordering::Relaxed);
            assert_eq!(count, 2, "a sleeper would never look for another alarm");
        }
    }

    #[test]
    fn an_alarm_whose_time_has_passed_rings_at_once_on_a_clock_that_is_moved_by_hand() {
        struct Rung(std::sync::atomic::AtomicUsize);
        impl std::task::Wake for Rung {
            fn wake(self: StdArc<Self>) {
                self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        }
        let clock = crate::time::clock::ManualClock::new();
        let timers = Timers::<Infallible>::new("moved", StdArc::new(clock.clone()));
        let rung = StdArc::new(Rung(Default::default()));
        let count = || rung.0.load(std::sync::atomic::Ordering::SeqCst);
        clock.advance(Duration::from_secs(2));
        let key = timers.wake_at(Duration::from_secs(1), rung.clone().into());
        assert_eq!((count(), timers.is_set(key), timers.len()), (1, false, 0));
        timers.wake_at(Duration::from_secs(3), rung.clone().into());
        assert_eq!(count(), 1);
        clock.advance(Duration::from_secs(1));
        assert_eq!((count(), timers.len()), (2, 0));
    }

    /// Tests a race: one round in some thousands meets the moment between a look and the insertion.
    #[test]
    fn no_alarm_is_set_where_the_end_has_come_between() {
        const ROUNDS: usize = if cfg!(miri) { 3 } else { 2_000 };
        for _ in 0..ROUNDS {
            let timers = Timers::<Infallible>::new("ending", StdArc::new(SystemClock::new()));
            timers.start().expect("a thread");
            let barrier = std::sync::Barrier::new(2);
            thread::scope(|scope| {
                scope.spawn(|| {
                    barrier.wait();
                    timers.wake_at(Duration::ZERO, Waker::noop().clone())
                });
                barrier.wait();
                timers.stop();
            });
            assert_eq!(timers.len(), 0, "it would never ring");
        }
    }
}
