//! The timers of a single actor: their messages, and the cases in which they are void.
//!
//! Each start gets a number of its own, also after a restart, and the tick brings the number. A tick whose number is
//! not in `armed` has no effect: its timer was cancelled, replaced, or set by an earlier state.

use crate::actor::context::Context;
use crate::actor::timer_table::{Timer, TimerKey, TimerName};
use crate::failure::{Failure, guarded};
use crate::time::timers::TimerHandle;
use crate::util::panic::drop_guarded;
use std::fmt;
use std::time::Duration;

pub(crate) enum What<M> {
    Once(M),
    Every { period: Duration, due: Duration, make: Box<dyn FnMut() -> M + Send> },
    Delayed { delay: Duration, make: Box<dyn FnMut() -> M + Send> },
}

/// The shortest time between two ticks of one timer.
const SHORTEST: Duration = Duration::from_millis(1);

/// The named timers of an actor, from [`Context::timers`].
pub struct NamedTimers<'a, M: Send + 'static> {
    ctx: &'a mut Context<M>,
}

impl<M: Send + 'static> Context<M> {
    /// Sends `message` to this actor once, `delay` from now, never early. The message takes its place in the mailbox
    /// when the time has come. The timer is cancelled when the actor restarts or stops. The timer thread runs since the
    /// system was built, so no timer is refused for want of the thread.
    pub fn after(&mut self, delay: Duration, message: M) -> TimerKey {
        let due = self.now().saturating_add(delay);
        self.arm(due, What::Once(message), None)
    }

    /// Sends a message made by `make` every `period` from now on, at a fixed rate. A tick that is handled late does not
    /// delay the next tick. Ticks that are missed altogether are skipped: the next tick is set when the present tick is
    /// handled. So after a [`ManualClock`](crate::time::ManualClock) was moved, let the actor handle its tick (an ask will
    /// show) before moving it again.
    ///
    /// A period below 1 millisecond is taken as 1 millisecond.
    ///
    /// ```
    /// use pointsman::time::ManualClock;
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    ///
    /// struct Sweeper {
    ///     sweeps: u32,
    /// }
    /// enum SweeperMsg {
    ///     Sweep,
    ///     Count(ReplyTo<u32>),
    /// }
    /// impl Actor for Sweeper {
    ///     type Message = SweeperMsg;
    ///     fn started(&mut self, ctx: &mut Context<SweeperMsg>) -> HandlerResult {
    ///         ctx.every(Duration::from_secs(60), || SweeperMsg::Sweep);
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, message: SweeperMsg, _: &mut Context<SweeperMsg>) -> HandlerResult {
    ///         match message {
    ///             SweeperMsg::Sweep => self.sweeps += 1,
    ///             SweeperMsg::Count(reply_to) => drop(reply_to.send(self.sweeps)),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let system = System::builder("house").clock(clock.clone()).build()?;
    /// let sweeper = system.spawn(|| Sweeper { sweeps: 0 })?;
    /// for sweeps in 0..3 {
    ///     assert_eq!(sweeper.ask_with(SweeperMsg::Count).wait()?, sweeps);
    ///     clock.advance(Duration::from_secs(60));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn every(&mut self, period: Duration, make: impl FnMut() -> M + Send + 'static) -> TimerKey {
        let period = period.max(SHORTEST);
        let due = self.now().saturating_add(period);
        self.arm(due, What::Every { period, due, make: Box::new(make) }, None)
    }

    /// The timers that have names. A new timer replaces the timer of the same name. The message of a timer that was
    /// cancelled or replaced, or whose actor has restarted, is not received any more, even if it was queued already.
    ///
    /// All are cancelled before [`restarting`](crate::Actor::restarting) and before [`stopped`](crate::Actor::stopped).
    /// As in Akka, except that a fixed rate skips the ticks that it missed.
    ///
    /// ```
    /// use pointsman::time::ManualClock;
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    ///
    /// enum BatchMsg {
    ///     Add(u64),
    ///     Flush,
    ///     Flushed(ReplyTo<Vec<u64>>),
    /// }
    ///
    /// /// Flushes when nothing was added for a second.
    /// #[derive(Default)]
    /// struct Batch {
    ///     open: Vec<u64>,
    ///     flushed: Vec<u64>,
    /// }
    /// impl Actor for Batch {
    ///     type Message = BatchMsg;
    ///     fn receive(&mut self, message: BatchMsg, ctx: &mut Context<BatchMsg>) -> HandlerResult {
    ///         match message {
    ///             BatchMsg::Add(item) => {
    ///                 self.open.push(item);
    ///                 ctx.timers().start_single("flush", Duration::from_secs(1), BatchMsg::Flush);
    ///             }
    ///             BatchMsg::Flush => self.flushed.append(&mut self.open),
    ///             BatchMsg::Flushed(reply_to) => drop(reply_to.send(self.flushed.clone())),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let system = System::builder("shop").clock(clock.clone()).build()?;
    /// let batch = system.spawn(Batch::default)?;
    /// for item in 1..=3 {
    ///     batch.tell(BatchMsg::Add(item));
    ///     assert_eq!(batch.ask_with(BatchMsg::Flushed).wait()?, []);
    ///     clock.advance(Duration::from_millis(900));
    /// }
    /// clock.advance(Duration::from_millis(100));
    /// assert_eq!(batch.ask_with(BatchMsg::Flushed).wait()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn timers(&mut self) -> NamedTimers<'_, M> {
        NamedTimers { ctx: self }
    }

    fn arm(&mut self, due: Duration, what: What<M>, name: Option<TimerName>) -> TimerKey {
        let (number, handle) = self.set_timer(due);
        self.enlist(number, Timer { what, handle, name });
        TimerKey(number)
    }

    /// Puts a timer into the lists.
    fn enlist(&mut self, number: u64, timer: Timer<M>) {
        self.extras(|extras| {
            if let Some(name) = &timer.name {
                extras.timers.named.insert(name.clone(), number);
            }
            extras.timers.armed.insert(number, timer);
        });
    }

    /// Sends this actor a tick with a new number.
    pub(crate) fn set_timer(&mut self, due: Duration) -> (u64, TimerHandle) {
        let number = self.extras(|extras| {
            extras.timers.next += 1;
            extras.timers.next
        });
        (number, self.core().system.timers().tick_at(due, self.me().any_local(), number))
    }

    /// Takes a timer out of the lists.
    fn disarm(&mut self, number: u64) -> Option<Timer<M>> {
        self.private(|private| {
            let timers = &mut private.extras.as_mut()?.timers;
            let timer = timers.armed.remove(&number)?;
            if let Some(name) = &timer.name {
                timers.named.remove(name);
            }
            Some(timer)
        })
    }

    /// Cancels a timer. Returns true if its message will not arrive, although the message may have been on its way.
    /// Returns false if the message has arrived already (or, for a repeated timer, if it was cancelled before).
    pub fn cancel(&mut self, timer: TimerKey) -> bool {
        let Some(armed) = self.disarm(timer.0) else { return false };
        self.core().system.timers().cancel(armed.handle);
        drop_guarded(armed.what);
        true
    }

    /// Cancels all timers, the timer of the receive timeout too; the setting of the receive timeout stays.
    pub(crate) fn cancel_all_timers(&mut self) {
        self.disarm_receive_timeout();
        let armed = self.private(|private| {
            let timers = &mut private.extras.as_mut()?.timers;
            timers.named.clear();
            Some(std::mem::take(&mut timers.armed))
        });
        let Some(armed) = armed else { return };
        for (_, timer) in armed {
            self.core().system.timers().cancel(timer.handle);
            drop_guarded(timer.what);
        }
    }

    /// Returns the message of a timer that has fired; `None` if the timer was cancelled meanwhile.
    ///
    /// # Errors
    ///
    /// The function that makes the messages of a repeated timer has panicked; the timer is gone.
    pub(crate) fn fired(&mut self, number: u64) -> Result<Option<M>, Failure> {
        if self.is_receive_timeout(number) {
            return self.receive_timed_out();
        }
        let Some(timer) = self.disarm(number) else { return Ok(None) };
        let (due, mut what) = match timer.what {
            What::Once(message) => return Ok(Some(message)),
            What::Every { period, due, make } => {
                let due = next_in_rate(due, period, self.now());
                (due, What::Every { period, due, make })
            }
            What::Delayed { delay, make } => {
                (self.now().saturating_add(delay), What::Delayed { delay, make })
            }
        };
        let (What::Every { make, .. } | What::Delayed { make, .. }) = &mut what else { return Ok(None) };
        match guarded(|| Ok(make())) {
            Ok(made) => {
                // The same number: the timer goes on, and no tick of it is under way.
                let handle = self.core().system.timers().tick_at(due, self.me().any_local(), number);
                self.enlist(number, Timer { what, handle, name: timer.name });
                Ok(Some(made))
            }
            Err(failure) => {
                drop_guarded(what);
                Err(failure)
            }
        }
    }
}

impl<M: Send + 'static> NamedTimers<'_, M> {
    /// Sends `message` to this actor once, `delay` from now, never early. The timer is gone when its message
    /// is received.
    pub fn start_single(&mut self, name: impl Into<TimerName>, delay: Duration, message: M) {
        self.start(name.into(), delay, |_| What::Once(message));
    }

    /// Sends a message made by `make`, first `initial` from now, and then again `delay` after each was received. A
    /// message that is received late delays all later messages. A delay below 1 millisecond is taken as 1 millisecond.
    ///
    /// A panic of `make` fails the actor, and ends the timer.
    pub fn start_fixed_delay(
        &mut self,
        name: impl Into<TimerName>,
        initial: Duration,
        delay: Duration,
        make: impl FnMut() -> M + Send + 'static,
    ) {
        let delay = delay.max(SHORTEST);
        self.start(name.into(), initial, |_| What::Delayed { delay, make: Box::new(make) });
    }

    /// Sends a message made by `make`, first `initial` from now, and then at whole multiples of `period` after that. A
    /// message that is received late does not delay the next message. Messages that were missed altogether are skipped,
    /// not sent in a burst, as with [`Context::every`]. A period below 1 millisecond is taken as 1 millisecond.
    ///
    /// A panic of `make` fails the actor, and ends the timer.
    pub fn start_fixed_rate(
        &mut self,
        name: impl Into<TimerName>,
        initial: Duration,
        period: Duration,
        make: impl FnMut() -> M + Send + 'static,
    ) {
        let period = period.max(SHORTEST);
        self.start(name.into(), initial, |due| What::Every { period, due, make: Box::new(make) });
    }

    fn start(&mut self, name: TimerName, delay: Duration, what: impl FnOnce(Duration) -> What<M>) {
        self.cancel(name.clone());
        let due = self.ctx.now().saturating_add(delay);
        self.ctx.arm(due, what(due), Some(name));
    }

    /// Returns whether a timer of this name is set and has not been received, or repeats.
    pub fn is_active(&self, name: impl Into<TimerName>) -> bool {
        self.number(&name.into()).is_some()
    }

    /// Cancels the timer of this name. Returns true if there was a timer: then its message will not be received,
    /// although it may have been on its way.
    pub fn cancel(&mut self, name: impl Into<TimerName>) -> bool {
        match self.number(&name.into()) {
            Some(number) => self.ctx.cancel(TimerKey(number)),
            None => false,
        }
    }

    /// Cancels all timers that have names.
    pub fn cancel_all(&mut self) {
        let numbers: Vec<u64> = self.ctx.private(|private| {
            private.extras.iter().flat_map(|extras| extras.timers.named.values().copied()).collect()
        });
        for number in numbers {
            self.ctx.cancel(TimerKey(number));
        }
    }

    fn number(&self, name: &TimerName) -> Option<u64> {
        self.ctx.private(|private| private.extras.as_ref()?.timers.named.get(name).copied())
    }
}

impl<M: Send + 'static> fmt::Debug for NamedTimers<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedTimers").field("of", &self.ctx.path()).finish_non_exhaustive()
    }
}

/// Returns the next due time of a timer of a fixed rate that was due at `due`: the first multiple of the period in the
/// future.
pub(crate) fn next_in_rate(due: Duration, period: Duration, now: Duration) -> Duration {
    let into_period = now.saturating_sub(due).as_nanos() % period.as_nanos();
    now.saturating_add(period - from_nanos(into_period))
}

/// Converts nanoseconds that are known to fit into a duration.
fn from_nanos(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    Duration::new((nanos / SECOND) as u64, (nanos % SECOND) as u32)
}
