//! Passivation: an actor ends without leaving a message behind.
//!
//! The actor closes its mailbox by one exchange that succeeds only if every accepted message has been taken. A
//! concurrent sender either is accepted, and the actor lives on, or is refused by a mailbox that has lost nothing. A
//! group of actors told apart by a key keeps refused messages for the next actor of the key (`group/successors.rs`).

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::private::Phase;
use crate::actor::recipe::Recipe;
use crate::actor::turn::ActorTurn;
use crate::core::control::Control;
use crate::sync::atomic::Ordering;

impl<M: Send + 'static> Context<M> {
    /// Ends this actor after the message being handled, if its mailbox and stash hold nothing else; otherwise the call
    /// has no effect. So the actor leaves no message behind.
    ///
    /// Later senders are refused, as by any actor that has ended. In a [group](crate::topology) a message for the key
    /// goes to the next actor of the key instead, which begins when this actor has ended. So no message is lost or
    /// refused, and each sender's messages keep their order. A retired actor of a group is not restarted, regardless of
    /// the policy.
    ///
    /// A routee that shares a [queue](crate::routing::Balancing) with others ends at once, if it is not the last of
    /// them. The last routee ends when it has found the queue empty.
    ///
    /// The call has no effect while the actor is suspended, [holds](Self::hold), restarts or ends. Timers do not keep the actor alive.
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
    /// // The key function is asked for each message, also for those that an actor sends to itself by the group.
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
        // Notices count here too, although no count of messages includes them.
        let stashed = |extras: &crate::actor::private::Extras<A::Message>| !extras.stash.is_empty();
        let is_busy =
            self.private(|private| private.pause.is_any() || private.extras.as_deref().is_some_and(stashed));
        if is_busy || self.phase() != Phase::Alive || self.core().held() > 0 {
            return;
        }
        let retired = &self.cell.owned.local.core.retired;
        // Ordering: Relaxed; the close publishes the mark, and senders look at it only after the close.
        retired.store(true, Ordering::Relaxed);
        match self.owner().close_if_empty() {
            true => self.end_leaving(),
            false => retired.store(false, Ordering::Relaxed),
        }
    }
}
