//! Asks of an actor that get the request back with the error.

use crate::actor::context::Context;
use crate::ask::ask_or_back::AskFailedWith;
use crate::ask::reply::{Call, Request};
use crate::core::actor_ref::ActorRef;
use crate::util::panic::drop_guarded;

impl<M: Send + 'static> Context<M> {
    /// Asks as [`ask`](Self::ask) does, and hands the request back in the message if there is no answer. An actor
    /// learns in this way the outcome of a GoAkt router that waits for replies. Costs a clone of the request, which is
    /// kept until the outcome is known.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::ask::AskFailedWith;
    /// use std::time::Duration;
    ///
    /// #[derive(Clone)]
    /// struct Lookup(String);
    /// impl Request for Lookup {
    ///     type Reply = u32;
    /// }
    ///
    /// enum ClientMsg {
    ///     Find(String),
    ///     Outcome(Result<u32, AskFailedWith<Lookup>>),
    /// }
    ///
    /// struct Client {
    ///     lookups: ActorRef<Call<Lookup>>,
    /// }
    /// impl Actor for Client {
    ///     type Message = ClientMsg;
    ///     fn receive(&mut self, message: ClientMsg, ctx: &mut Context<ClientMsg>) -> HandlerResult {
    ///         match message {
    ///             ClientMsg::Find(name) => ctx.ask_or_back(&self.lookups, Lookup(name), ClientMsg::Outcome),
    ///             ClientMsg::Outcome(Ok(number)) => println!("{number}"),
    ///             ClientMsg::Outcome(Err(failure)) => {
    ///                 println!("{}: {}, once more", failure.message.0, failure.error);
    ///                 ctx.after(Duration::from_secs(1), ClientMsg::Find(failure.message.0));
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// ```
    pub fn ask_or_back<N, Q>(
        &mut self,
        target: &ActorRef<N>,
        request: Q,
        wrap: impl FnOnce(Result<Q::Reply, AskFailedWith<Q>>) -> M + Send + 'static,
    ) where
        N: From<Call<Q>> + Send + 'static,
        Q: Request + Clone,
    {
        let message = request.clone();
        self.ask(target, request, move |outcome| {
            let outcome = match outcome {
                Ok(reply) => {
                    // The request is dropped before the reply goes on, as in `with_request`. This is the thread of the
                    // actor that answers, which must not fail because the asker's request panics in its destructor.
                    drop_guarded(message);
                    Ok(reply)
                }
                Err(error) => Err(AskFailedWith { error, message }),
            };
            wrap(outcome)
        });
    }
}
