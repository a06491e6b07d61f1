//! The timers of one actor: what they send, and when they are void.

use crate::actor::Context;
use crate::actor::turn::{drop_guarded, guarded};
use crate::supervision::Failure;
use crate::sync::HashMap;
use crate::time::TimerHandle;
use std::time::Duration;

/// Names one timer of one actor, to cancel it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey(u64);

/// The timers of one actor.
pub struct OwnTimers<M> {
    next: u64,
    armed: HashMap<u64, Timer<M>>,
}

struct Timer<M> {
    what: What<M>,
    handle: TimerHandle,
}

enum What<M> {
    Once(M),
    Every { period: Duration, due: Duration, make: Box<dyn FnMut() -> M + Send> },
}

impl<M> Default for OwnTimers<M> {
    fn default() -> Self {
        Self { next: 0, armed: HashMap::default() }
    }
}

impl<M: Send + 'static> Context<M> {
    /// Sends `message` to this actor once, `delay` from now, never early. It takes its place in the
    /// mailbox when the time has come. Cancelled when the actor restarts or stops.
    pub fn after(&mut self, delay: Duration, message: M) -> TimerKey {
        let due = self.now().saturating_add(delay);
        self.arm(due, What::Once(message))
    }

    /// Sends a message made by `make` every `period` from now on, at a fixed rate: a tick that is handled
    /// late does not delay the next one, and ticks that are missed altogether are skipped: the next one is set
    /// when this one is handled. So after a [`ManualClock`](crate::ManualClock) was moved, let the actor handle
    /// its tick (an ask will show) before moving it again.
    ///
    /// A period below 1 millisecond is taken as 1 millisecond.
    ///
    /// ```
    /// use pointsman::ManualClock;
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
    ///     fn started(&mut self, ctx: &mut Context<SweeperMsg>) -> Done {
    ///         ctx.every(Duration::from_secs(60), || SweeperMsg::Sweep);
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, message: SweeperMsg, _: &mut Context<SweeperMsg>) -> Done {
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
        let period = period.max(Duration::from_millis(1));
        let due = self.now().saturating_add(period);
        self.arm(due, What::Every { period, due, make: Box::new(make) })
    }

    fn arm(&mut self, due: Duration, what: What<M>) -> TimerKey {
        let number = self.extras(|extras| {
            extras.timers.next += 1;
            extras.timers.next
        });
        let handle = self.core().system.timers().tick_at(due, self.me().any_local(), number);
        self.extras(|extras| extras.timers.armed.insert(number, Timer { what, handle }));
        TimerKey(number)
    }

    /// Cancels a timer. True if its message will not arrive, although it may have been on its way; false if
    /// it has arrived already (or, for a repeated one, was cancelled before).
    pub fn cancel(&mut self, timer: TimerKey) -> bool {
        let armed = self.private(|private| {
            private.extras.as_mut().and_then(|extras| extras.timers.armed.remove(&timer.0))
        });
        let Some(armed) = armed else { return false };
        self.core().system.timers().cancel(armed.handle);
        drop_guarded(armed.what);
        true
    }

    pub(crate) fn cancel_all_timers(&mut self) {
        let armed = self.private(|private| {
            private.extras.as_mut().map(|extras| std::mem::take(&mut extras.timers.armed))
        });
        for (_, timer) in armed.into_iter().flatten() {
            self.core().system.timers().cancel(timer.handle);
            drop_guarded(timer.what);
        }
    }

    /// The message of a timer that has fired; `None` if it was cancelled meanwhile.
    ///
    /// # Errors
    ///
    /// What makes the messages of a repeated timer has panicked; the timer is gone.
    pub(crate) fn fired(&mut self, number: u64) -> Result<Option<M>, Failure> {
        let armed = self.private(|private| private.extras.as_mut()?.timers.armed.remove(&number));
        let Some(timer) = armed else { return Ok(None) };
        match timer.what {
            What::Once(message) => Ok(Some(message)),
            What::Every { period, due, mut make } => {
                let made = match guarded(|| Ok(make())) {
                    Ok(made) => made,
                    Err(failure) => {
                        drop_guarded(make);
                        return Err(failure);
                    }
                };
                // The next multiple of the period that lies ahead.
                let now = self.now();
                let into_period = now.saturating_sub(due).as_nanos() % period.as_nanos();
                let due = now.saturating_add(period - from_nanos(into_period));
                let handle = self.core().system.timers().tick_at(due, self.me().any_local(), number);
                let what = What::Every { period, due, make };
                self.extras(|extras| extras.timers.armed.insert(number, Timer { what, handle }));
                Ok(Some(made))
            }
        }
    }
}

/// A duration that is known to fit.
fn from_nanos(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    Duration::new((nanos / SECOND) as u64, (nanos % SECOND) as u32)
}
