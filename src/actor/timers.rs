//! The timers of a single actor: their messages, and the cases in which they are void.
//!
//! Each start gets a number of its own, also after a restart, and the tick brings the number. A tick whose number is
//! not in `armed` has no effect: its timer was cancelled, replaced, or set by an earlier state.

use crate::actor::context::Context;
use crate::actor::timer_table::{Timer, TimerKey};
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

/// The timers of an actor, from [`Context::timers`].
///
/// Each start returns the key by which its timer is cancelled. A timer that is [`named`](Self::named) is found by its
/// name, too, and replaces the timer that had the name before.
pub struct ActorTimers<'a, M: Send + 'static> {
    ctx: &'a mut Context<M>,
    /// The name of the timer that is started next.
    name: Option<TimerKey>,
}

impl<M: Send + 'static> Context<M> {
    /// Sends `message` to this actor once, `delay` from now: short for [`timers().once(..)`](ActorTimers::once).
    #[doc(alias = "send_after")]
    pub fn after(&mut self, delay: Duration, message: M) -> TimerKey {
        self.timers().once(delay, message)
    }

    /// Sends this actor a message made by `make` every `period` from now on: short for
    /// [`timers().fixed_rate(period, period, make)`](ActorTimers::fixed_rate), which skips the ticks that were missed.
    /// So after a [`ManualClock`](crate::time::ManualClock) was moved, let the actor handle its tick (an ask will show)
    /// before moving it again.
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
    #[doc(alias = "send_interval")]
    pub fn every(&mut self, period: Duration, make: impl FnMut() -> M + Send + 'static) -> TimerKey {
        let period = period.max(SHORTEST);
        self.timers().fixed_rate(period, period, make)
    }

    /// The timers of this actor: messages to itself, later or again and again. When a timer has been cancelled or
    /// replaced, or its actor restarted, its message is not received any more, even if it was queued already. Else the
    /// message takes its place in the mailbox when the time has come. The thread that keeps the time runs since the
    /// system was built, so a timer is not refused for want of one.
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
    ///                 ctx.timers().named("flush").once(Duration::from_secs(1), BatchMsg::Flush);
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
    ///     assert!(batch.ask_with(BatchMsg::Flushed).wait()?.is_empty());
    ///     clock.advance(Duration::from_millis(900));
    /// }
    /// clock.advance(Duration::from_millis(100));
    /// assert_eq!(batch.ask_with(BatchMsg::Flushed).wait()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn timers(&mut self) -> ActorTimers<'_, M> {
        ActorTimers { ctx: self, name: None }
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

    /// Cancels the timer of this number; false if there is none.
    fn cancel_timer(&mut self, number: u64) -> bool {
        let Some(armed) = self.disarm(number) else { return false };
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

impl<M: Send + 'static> ActorTimers<'_, M> {
    /// Names the timer that is started next; a timer of this name that is still there is cancelled then.
    #[must_use = "the timer is not started yet"]
    pub fn named(mut self, name: impl Into<TimerKey>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sends `message` to this actor once, `delay` from now, never early. The timer is gone when its message
    /// is received.
    #[doc(alias = "start_single_timer")]
    pub fn once(&mut self, delay: Duration, message: M) -> TimerKey {
        self.start(delay, |_| What::Once(message))
    }

    /// Sends a message made by `make`, first `initial` from now, and then again `delay` after each was received. A
    /// message that is received late delays all later messages. A delay below 1 millisecond is taken as 1 millisecond.
    ///
    /// A panic of `make` fails the actor, and ends the timer.
    pub fn fixed_delay(
        &mut self,
        initial: Duration,
        delay: Duration,
        make: impl FnMut() -> M + Send + 'static,
    ) -> TimerKey {
        let delay = delay.max(SHORTEST);
        self.start(initial, |_| What::Delayed { delay, make: Box::new(make) })
    }

    /// Sends a message made by `make`, first `initial` from now, and then at whole multiples of `period` after
    /// that: one that is received late does not make the next one late. Those that were missed altogether are
    /// skipped, not sent in a burst: the next one is set when this one is handled. A period below 1 millisecond is
    /// taken as 1 millisecond.
    ///
    /// A panic of `make` fails the actor, and ends the timer.
    pub fn fixed_rate(
        &mut self,
        initial: Duration,
        period: Duration,
        make: impl FnMut() -> M + Send + 'static,
    ) -> TimerKey {
        let period = period.max(SHORTEST);
        self.start(initial, |due| What::Every { period, due, make: Box::new(make) })
    }

    fn start(&mut self, delay: Duration, what: impl FnOnce(Duration) -> What<M>) -> TimerKey {
        let name = self.name.take();
        if let Some(number) = name.as_ref().and_then(|name| self.number(name)) {
            self.ctx.cancel_timer(number);
        }
        let due = self.ctx.now().saturating_add(delay);
        let (number, handle) = self.ctx.set_timer(due);
        self.ctx.enlist(number, Timer { what: what(due), handle, name });
        TimerKey::of_number(number)
    }

    /// Whether a timer of this key or name is set and has not been received, or goes on.
    pub fn is_active(&self, key: impl Into<TimerKey>) -> bool {
        self.number(&key.into()).is_some()
    }

    /// Cancels the timer of this key or name. True if its message will not be received, although it may have been on
    /// its way; false if it has been received already (or, for a repeated one, was cancelled before).
    pub fn cancel(&mut self, key: impl Into<TimerKey>) -> bool {
        self.number(&key.into()).is_some_and(|number| self.ctx.cancel_timer(number))
    }

    /// Cancels all timers that have names.
    #[doc(alias = "cancel_all")]
    pub fn cancel_named(&mut self) {
        let numbers: Vec<u64> = self.ctx.private(|private| {
            private.extras.iter().flat_map(|extras| extras.timers.named.values().copied()).collect()
        });
        for number in numbers {
            self.ctx.cancel_timer(number);
        }
    }

    fn number(&self, key: &TimerKey) -> Option<u64> {
        self.ctx.private(|private| private.extras.as_ref()?.timers.number(key))
    }
}

impl<M: Send + 'static> fmt::Debug for ActorTimers<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorTimers").field("of", &self.ctx.path()).finish_non_exhaustive()
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
