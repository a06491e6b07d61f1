//! The receive timeout: a message to an actor that has had no message for some time.
//!
//! A message sets no timer. The actor notes the time of the message. The timer under way fires when the first possible
//! timeout is due: then either the actor has been idle for so long, or the timer is set again for the rest. The mailbox
//! of an actor with a receive timeout is handled by a loop of its own, since the usual loop notes no time. A receive
//! timeout that is set in a handler sends a [`Wakeup`](crate::core::control::Control::Wakeup), so the turn changes
//! loops before the next message.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::private::ReceiveTimeout;
use crate::actor::recipe::Recipe;
use crate::actor::schedule_error::ScheduleError;
use crate::actor::turn::ActorTurn;
use crate::core::control::Terminated;
use crate::failure::{Failure, guarded};
use crate::util::panic::drop_guarded;
use std::time::Duration;

/// The shortest receive timeout: one tick of the timers.
const SHORTEST: Duration = Duration::from_millis(1);

impl<M: Send + 'static> Context<M> {
    /// Sends this actor a message when it has handled none for `after`, from now on. Each idle period of that length
    /// brings one message. `make` gets `after` and makes the message. The new timeout replaces an earlier receive
    /// timeout, whose message does not arrive any more.
    ///
    /// A message ends the idle time when it has been handled, and so does a timer's tick or a termination notice. A
    /// message for which [`influences_receive_timeout`](crate::Actor::influences_receive_timeout) returns false does
    /// not. The timeout's own message takes its place in the mailbox: messages queued before it are handled first, and
    /// start the idle time anew.
    ///
    /// The setting survives a restart: the idle time then begins after [`restarted`](crate::Actor::restarted). The end
    /// of the actor ends it. With a receive timeout each message costs a read of the clock, and no timer is touched.
    /// Without a receive timeout it costs nothing.
    ///
    /// The behaviour is Akka's, except that a message queued at the moment of the timeout counts.
    ///
    /// ```
    /// use pointsman::time::ManualClock;
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    ///
    /// enum SessionMsg {
    ///     Request(ReplyTo<u32>),
    ///     Idle(Duration),
    /// }
    ///
    /// /// Ends when it has got no request for a minute.
    /// struct Session;
    /// impl Actor for Session {
    ///     type Message = SessionMsg;
    ///     fn started(&mut self, ctx: &mut Context<SessionMsg>) -> HandlerResult {
    ///         ctx.set_receive_timeout(Duration::from_secs(60), SessionMsg::Idle)?;
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, message: SessionMsg, ctx: &mut Context<SessionMsg>) -> HandlerResult {
    ///         match message {
    ///             SessionMsg::Request(reply_to) => drop(reply_to.send(42)),
    ///             // `stop` would make dead letters of messages that have just come.
    ///             SessionMsg::Idle(_) => ctx.passivate(),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let system = System::builder("shop").clock(clock.clone()).build()?;
    /// let session = system.spawn(|| Session)?;
    /// for _ in 0..3 {
    ///     clock.advance(Duration::from_secs(50));
    ///     assert_eq!(session.ask_with(SessionMsg::Request).wait()?, 42);
    /// }
    /// // The idle time begins when the last turn has ended, which may be after its answer was here.
    /// while !session.is_closed() {
    ///     clock.advance(Duration::from_secs(60));
    ///     std::thread::yield_now();
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ScheduleError::ReceiveTimeout`] below 1 millisecond; an earlier setting stays. A panic of `make` fails the actor
    /// and ends the timeout.
    pub fn set_receive_timeout(
        &mut self,
        after: Duration,
        make: impl FnMut(Duration) -> M + Send + 'static,
    ) -> Result<(), ScheduleError> {
        if after < SHORTEST {
            return Err(ScheduleError::ReceiveTimeout { after });
        }
        let timeout = ReceiveTimeout { after, make: Box::new(make), idle_since: self.now(), armed: None };
        self.cancel_receive_timeout();
        self.extras(|extras| extras.receive_timeout = Some(timeout));
        self.arm_receive_timeout();
        self.request_look();
        Ok(())
    }

    /// Ends the receive timeout. Its message does not arrive any more, not even a message on its way. Returns true if
    /// there was a receive timeout.
    pub fn cancel_receive_timeout(&mut self) -> bool {
        self.disarm_receive_timeout();
        let timeout = self.private(|private| private.extras.as_mut()?.receive_timeout.take());
        let was_set = timeout.is_some();
        drop_guarded(timeout);
        was_set
    }

    /// The length of the receive timeout, if one is set.
    pub fn receive_timeout(&self) -> Option<Duration> {
        self.private(|private| Some(private.extras.as_ref()?.receive_timeout.as_ref()?.after))
    }

    /// Cancels the timer, and keeps the setting.
    pub(crate) fn disarm_receive_timeout(&mut self) {
        let armed = self.private(|private| private.extras.as_mut()?.receive_timeout.as_mut()?.armed.take());
        if let Some((_, handle)) = armed {
            self.core().system.timers().cancel(handle);
        }
    }

    /// Begins the idle time of an actor that has restarted.
    pub(crate) fn rearm_receive_timeout(&mut self) {
        let waits = self.private(|private| {
            let timeout = private.extras.as_ref()?.receive_timeout.as_ref()?;
            timeout.armed.is_none().then_some(())
        });
        if waits.is_some() {
            self.begin_idle_time();
            self.arm_receive_timeout();
        }
    }

    /// Sets the timer for the first moment at which the actor can have been idle for so long.
    fn arm_receive_timeout(&mut self) {
        let due = self.private(|private| {
            let timeout = private.extras.as_ref()?.receive_timeout.as_ref()?;
            Some(timeout.idle_since.saturating_add(timeout.after))
        });
        let Some(due) = due else { return };
        let armed = self.set_timer(due);
        self.private(|private| {
            if let Some(timeout) = private.extras().receive_timeout.as_mut() {
                timeout.armed = Some(armed);
            }
        });
    }

    /// Begins the idle time after a message that counts has been handled.
    pub(crate) fn begin_idle_time(&mut self) {
        let now = self.now();
        self.private(|private| {
            if let Some(timeout) = private.extras().receive_timeout.as_mut() {
                timeout.idle_since = now;
            }
        });
    }

    /// Whether the timer of this number is the receive timeout's.
    pub(crate) fn is_receive_timeout(&self, number: u64) -> bool {
        let armed = self.private(|private| private.extras.as_ref()?.receive_timeout.as_ref()?.armed);
        armed.is_some_and(|(armed, _)| armed == number)
    }

    /// Returns the message of the receive timeout, whose timer has fired, if the actor has really been idle for so
    /// long.
    ///
    /// # Errors
    ///
    /// The function that makes the messages has panicked; the receive timeout has ended.
    pub(crate) fn receive_timed_out(&mut self) -> Result<Option<M>, Failure> {
        let now = self.now();
        // The setting is taken out while user code runs.
        let timeout = self.private(|private| private.extras.as_mut()?.receive_timeout.take());
        let Some(mut timeout) = timeout else { return Ok(None) };
        let made = if now < timeout.idle_since.saturating_add(timeout.after) {
            None
        } else {
            timeout.idle_since = now;
            match guarded(|| Ok((timeout.make)(timeout.after))) {
                Ok(made) => Some(made),
                Err(failure) => {
                    drop_guarded(timeout);
                    return Err(failure);
                }
            }
        };
        self.extras(|extras| extras.receive_timeout = Some(timeout));
        self.arm_receive_timeout();
        Ok(made)
    }
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    /// Lets the actor handle a message, and notes the time if a receive timeout is set.
    pub(crate) fn receive(&mut self, message: A::Message) -> HandlerResult {
        let timed = self.ctx.receive_timeout().is_some();
        let mut influences = false;
        let outcome = self.with_actor(|actor, ctx| {
            influences = timed && actor.influences_receive_timeout(&message);
            actor.receive(message, ctx)
        });
        if influences {
            self.ctx.begin_idle_time();
        }
        outcome.unwrap_or(Ok(()))
    }

    /// Handles a message as [`receive`](Self::receive) does; a failure is the actor's.
    pub(crate) fn deliver(&mut self, message: A::Message) {
        if let Err(failure) = self.receive(message) {
            self.fail(failure, None);
        }
    }

    /// Tells the actor that a watched actor has ended.
    pub(crate) fn notify(&mut self, notice: Terminated) {
        let timed = self.ctx.receive_timeout().is_some();
        self.call(|actor, ctx| actor.terminated(notice, ctx));
        if timed {
            self.ctx.begin_idle_time();
        }
    }
}
