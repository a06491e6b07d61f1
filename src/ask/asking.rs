//! Asks of an actor, a router, or another recipient behind a reference.

use crate::ask::ask;
use crate::ask::ask::Ask;
use crate::ask::ask_clock::{AskClock, Asked};
use crate::ask::error::AskError;
use crate::ask::reply::{ReplyTo, Request, RequestTo};
use crate::core::actor_ref::{ActorRef, Target};
use crate::core::deferred_send;
use crate::core::error::SendError;

impl<M: Send + 'static> ActorRef<M> {
    /// Sends a request and returns its answer on the way. The answer is a [`Future`] under any executor; a thread can
    /// also [`wait`](Ask::wait) for it. The request is sent at once; [`within`](Ask::within) sets a deadline. The
    /// actor's messages must take the [call](crate::Call): `M: From<Call<Q>>`, which `#[derive(Message)]` implements.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Double;
    /// # #[derive(Debug)] struct Of(u32);
    /// # impl Request for Of { type Reply = u32; }
    /// # impl Actor for Double {
    /// #     type Message = Call<Of>;
    /// #     fn receive(&mut self, call: Call<Of>, _: &mut Context<Call<Of>>) -> HandlerResult {
    /// #         call.answer(|Of(x)| 2 * x);
    /// #         Ok(())
    /// #     }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("demo").build()?;
    /// let double = system.actor("double").spawn(|| Double)?;
    /// let four = double.ask(Of(2)).within(std::time::Duration::from_secs(5)).wait()?;
    /// assert_eq!(four, 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ask<Q>(&self, request: Q) -> Ask<Q::Reply>
    where
        Q: Request + RequestTo<M>,
    {
        self.ask_with(|reply_to| request.into_call(reply_to))
    }

    /// Asks as [`ask`](Self::ask) does, with a timeout, which is checked first: nothing is sent when it is zero.
    pub fn ask_within<Q>(&self, request: Q, deadline: std::time::Duration) -> Ask<Q::Reply>
    where
        Q: Request + RequestTo<M>,
    {
        if deadline.is_zero() {
            return ask::failed(AskError::NoTime, self.ask_clock());
        }
        self.ask(request).within(deadline)
    }

    /// Sends a message that is made around a reply port: the primitive under [`ask`](Self::ask).
    pub fn ask_with<R: Send + 'static, N: Into<M>>(&self, make: impl FnOnce(ReplyTo<R>) -> N) -> Ask<R> {
        let (reply_to, mut ask) = ask::begin(self.ask_clock());
        let message = make(reply_to).into();
        let (sent, put_off) = deferred_send::put_off(|| self.send_putting_off(message));
        if let Err(refused) = sent {
            // Before the message is dropped: its port would report `NoReply`.
            ask::refuse(&mut ask, self.ask_error(&refused));
            self.dead_letter(refused);
        }
        if let Some(put_off) = put_off {
            let put_off = put_off.returning_by(|| self.way_back());
            ask::put_off(&mut ask, put_off.counted_by(self.system()));
        }
        ask
    }

    /// The error of an ask whose request was refused.
    #[cold]
    pub(crate) fn ask_error(&self, refused: &SendError<M>) -> AskError {
        match self.elsewhere() {
            Some(_) => AskError::refused_for(self.dead_letter_reason(refused)),
            None => AskError::refused(refused),
        }
    }

    pub(crate) fn ask_clock(&self) -> AskClock {
        if let Target::Foreign(foreign) = self.target() {
            if let Some(routed) = foreign.routed_ask() {
                return AskClock::Routed(routed);
            }
        }
        match self.untyped() {
            Some(any) => AskClock::Target(any),
            None => AskClock::Static(&crate::time::no_system::NO_SYSTEM),
        }
    }

    /// Returns the reference by which the error of an ask finds the path of this target. Unlike
    /// [`ask_clock`](Self::ask_clock) it calls no user code, and so does not know the actor behind a user's recipient.
    #[inline]
    pub(crate) fn asked(&self) -> Asked {
        match self.target() {
            Target::Local(_) => Asked::Actor(self.any_local()),
            Target::Foreign(foreign) => match foreign.routed_ask() {
                Some(routed) => Asked::Router(routed),
                None => foreign.recipient.place().map_or(Asked::Unknown, Asked::Actor),
            },
        }
    }
}
