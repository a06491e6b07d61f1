//! How an actor ends without leaving a message behind.
//!
//! It closes its mailbox by one exchange that succeeds only if every accepted message has been taken. Whoever sends
//! at the same time is either accepted, and the actor lives on, or refused by a mailbox that has lost nothing. A
//! group of actors told apart by a key has refused messages wait for the next actor of the key
//! (`group/successors.rs`).

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::private::Phase;
use crate::actor::recipe::Recipe;
use crate::actor::turn::ActorTurn;
use crate::core::control::Control;
use crate::sync::atomic::Ordering;

impl<M: Send + 'static> Context<M> {
    /// Ends this actor after the message being handled, if nothing else is in its mailbox or stash; otherwise it lives
    /// on as if nothing had been said. So it leaves no message behind.
    ///
    /// Who sends to it later is refused, as by any actor that has ended. In a [group](crate::topology) that is different:
    /// a message for the key goes to the next actor of the key, which begins when this one has ended, so nothing
    /// is lost or refused, and each sender's messages keep their order. A retired actor of a group is not restarted,
    /// whatever the policy.
    ///
    /// A routee that shares a [queue](crate::routing::Balancing) with others ends at once, if it is not the last of
    /// them, and else when it has found the queue empty.
    ///
    /// Nothing happens while the actor is suspended, restarts or ends. Timers do not keep it alive.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use std::time::Duration;
    ///
    /// enum SessionMsg {
    ///     Text(String),
    ///     Idle,
    /// }
    ///
    /// struct Session;
    /// impl Actor for Session {
    ///     type Message = SessionMsg;
    ///
    ///     fn started(&mut self, ctx: &mut Context<SessionMsg>) -> HandlerResult {
    ///         ctx.set_receive_timeout(Duration::from_secs(60), |_| SessionMsg::Idle)?;
    ///         Ok(())
    ///     }
    ///
    ///     fn receive(&mut self, message: SessionMsg, ctx: &mut Context<SessionMsg>) -> HandlerResult {
    ///         match message {
    ///             SessionMsg::Text(text) => drop(text),
    ///             SessionMsg::Idle => ctx.passivate(),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let sessions = system
    ///     .group("sessions")
    ///     .by_key(|message: &SessionMsg| matches!(message, SessionMsg::Text(_)), |_, _| Session)
    ///     .spawn()?;
    /// sessions.tell(SessionMsg::Text("hello".to_owned()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn passivate(&self) {
        let _ = self.me().any_local().send_system(Control::Retire);
    }
}

impl<A: Actor, F: Recipe<A>> ActorTurn<'_, A, F> {
    pub(crate) fn passivate(&mut self) {
        // Notices, too, which are in no count of messages.
        let stashed = |extras: &crate::actor::private::Extras<A::Message>| !extras.stash.is_empty();
        let is_busy =
            self.private(|private| private.suspended > 0 || private.extras.as_deref().is_some_and(stashed));
        if is_busy || self.phase() != Phase::Alive || self.core().held() > 0 {
            return;
        }
        let retired = &self.cell.owned.local.core.retired;
        // Relaxed: the close publishes it, and nobody looks at it before that.
        retired.store(true, Ordering::Relaxed);
        match self.owner().close_if_empty() {
            true => self.end_leaving(),
            false => retired.store(false, Ordering::Relaxed),
        }
    }
}
