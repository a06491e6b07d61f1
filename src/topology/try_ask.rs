//! Asks that are refused at once, with the request back.

use crate::ask::ask;
use crate::ask::ask::Ask;
use crate::ask::ask_or_back::AskFailedWith;
use crate::ask::error::AskError;
use crate::ask::reply::{Call, Request};
use crate::core::actor_ref::ActorRef;
use crate::core::multi_send::SendMode;
use crate::topology::wraps::{Wraps, taken_back};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

impl<M: Send + 'static> ActorRef<M> {
    /// Asks as [`ask`](Self::ask) does, without waiting for room, and gives the request back if the target does not take
    /// it. The request is not cloned: the refused message gives it back, so the actor's messages must
    /// [wrap](Wraps) the call, which `#[derive(Message)]` implements.
    ///
    /// [`ask_or_back`](Self::ask_or_back) gives the request back after any failure, and costs a clone.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// struct Order(Vec<u8>);
    /// impl Request for Order {
    ///     type Reply = bool;
    /// }
    ///
    /// struct Clerk;
    /// impl Actor for Clerk {
    ///     type Message = Call<Order>;
    ///     fn receive(&mut self, call: Call<Order>, _: &mut Context<Call<Order>>) -> HandlerResult {
    ///         call.answer(|order| order.0.len() > 1);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("demo").build()?;
    /// let clerk = system.spawn(|| Clerk)?;
    /// assert_eq!(clerk.try_ask(Order(vec![1, 2])).map(Ask::wait).map_err(|refused| refused.error), Ok(Ok(true)));
    /// clerk.stop();
    /// while !clerk.is_closed() {
    ///     std::thread::yield_now();
    /// }
    /// let refused = clerk.try_ask(Order(vec![3])).unwrap_err();
    /// assert!(refused.error.is_stopped());
    /// assert_eq!(refused.message.0, [3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`AskFailedWith`]: the request, and [`AskError::Undeliverable`] with the reason, or [`AskError::NoRoutees`]. The
    /// message is counted as handed back.
    ///
    /// # Panics
    ///
    /// When `M` does not give back the call that it was made of.
    pub fn try_ask<Q>(&self, request: Q) -> Result<Ask<Q::Reply>, AskFailedWith<Q>>
    where
        Q: Request,
        M: Wraps<Call<Q>>,
    {
        let (reply_to, mut ask) = ask::begin(self.ask_clock());
        let message = M::from(Call::new(request, reply_to));
        let (_, sent) = self.send_by(message, SendMode::Try);
        let Err(refused) = sent else { return Ok(ask) };
        let mut error = AskError::refused(&refused);
        // Before the port goes: it would report `NoReply`.
        ask::refuse(&mut ask, error.clone());
        // The end of the ask is counted here.
        if let Poll::Ready(Err(told)) = Pin::new(&mut ask).poll(&mut Context::from_waker(Waker::noop())) {
            error = told;
        }
        let (message, reply_to) = taken_back::<Call<Q>, M>(refused.into_inner()).into_parts();
        drop(reply_to);
        Err(AskFailedWith { error, message })
    }
}
