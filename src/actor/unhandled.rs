//! Messages that an actor gets and does not handle.

use crate::actor::context::Context;
use crate::core::dead_letter::DeadLetterReason;
use crate::util::panic::drop_guarded;

impl<M: Send + 'static> Context<M> {
    /// Declares that this actor does not handle `message`, and drops it. A [`DeadLetter`](crate::DeadLetter) with the
    /// reason [`Unhandled`](DeadLetterReason::Unhandled) is published and logged. The ledger counts the message as handled, because the actor got it. An ask fails
    /// with [`AskError::NoReply`](crate::AskError::NoReply).
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// enum LampMsg {
    ///     On,
    ///     Dim(u8),
    /// }
    /// struct Lamp;
    /// impl Actor for Lamp {
    ///     type Message = LampMsg;
    ///     fn receive(&mut self, message: LampMsg, ctx: &mut Context<LampMsg>) -> HandlerResult {
    ///         match message {
    ///             LampMsg::On => println!("light"),
    ///             other => ctx.unhandled(other),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// # let _ = LampMsg::Dim(3);
    /// ```
    pub fn unhandled<T>(&self, message: T) {
        let letters = self.core().system.dead_letters();
        letters.publish(DeadLetterReason::Unhandled, std::any::type_name::<T>(), || self.path());
        drop_guarded(message);
    }
}
