//! Asks that hand the request back when there is no answer.

use crate::ask::ask::Ask;
use crate::ask::error::AskError;
use crate::ask::reply::{Call, Request};
use crate::core::actor_ref::ActorRef;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The error of [`ActorRef::ask_or_back`], with the request. Named after the message that a GoAkt router sends to an
/// actor whose request has failed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskFailedWith<Q> {
    /// The reason why there is no answer.
    pub error: AskError,
    /// The request.
    pub message: Q,
}

impl<Q> fmt::Display for AskFailedWith<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was not answered: {}", std::any::type_name::<Q>(), self.error)
    }
}

impl<Q> std::error::Error for AskFailedWith<Q> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

debug_by_display! { AskFailedWith<Q> }

/// An answer on its way, or the request back; like [`Ask`].
#[must_use = "an ask that is dropped is given up; use `tell` if no answer is wanted"]
pub struct AskOrBack<Q: Request> {
    ask: Ask<Q::Reply>,
    /// `None` once the future has ended.
    request: Option<Q>,
}

impl<Q: Request> AskOrBack<Q> {
    /// Sets the deadline of the answer to `limit` from now, as [`Ask::within`] does.
    pub fn within(mut self, limit: Duration) -> Self {
        self.ask = self.ask.within(limit);
        self
    }

    /// Blocks this thread until the ask is over.
    ///
    /// # Errors
    ///
    /// [`AskFailedWith`] gives the reason why there is no answer, as [`Ask::wait`] does, and holds the request.
    pub fn wait(self) -> Result<Q::Reply, AskFailedWith<Q>> {
        let Self { ask, request } = self;
        with_request(ask.wait(), request)
    }
}

/// Returns the outcome, with the request if there is no answer.
fn with_request<Q: Request>(
    outcome: Result<Q::Reply, AskError>,
    request: Option<Q>,
) -> Result<Q::Reply, AskFailedWith<Q>> {
    match (outcome, request) {
        (Ok(reply), request) => {
            // Dropped here: a reply that lies in the place of the return value is leaked if a later destructor panics.
            drop(request);
            Ok(reply)
        }
        (Err(error), Some(message)) => Err(AskFailedWith { error, message }),
        (Err(_), None) => unreachable!("an ask panics when it is polled again"),
    }
}

/// The request is only moved.
impl<Q: Request> Unpin for AskOrBack<Q> {}

impl<Q: Request> Future for AskOrBack<Q> {
    type Output = Result<Q::Reply, AskFailedWith<Q>>;

    /// # Panics
    /// When the future is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        Pin::new(&mut this.ask).poll(cx).map(|outcome| with_request(outcome, this.request.take()))
    }
}

impl<Q: Request> fmt::Debug for AskOrBack<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskOrBack").field("ask", &self.ask).finish_non_exhaustive()
    }
}

impl<M: Send + 'static> ActorRef<M> {
    /// Asks as [`ask`](Self::ask) does; if there is no answer, the request comes back with the error. Costs a clone of
    /// the request, which the asker keeps.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// #[derive(Debug, Clone, PartialEq)]
    /// struct Order(u32);
    /// impl Request for Order {
    ///     type Reply = bool;
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// // Forgets to answer.
    /// let clerk: ActorRef<Call<Order>> = ActorRef::from_fn(|_| ());
    /// let failure = clerk.ask_or_back(Order(7)).wait().unwrap_err();
    /// assert_eq!((failure.error, failure.message), (AskError::no_reply(), Order(7)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn ask_or_back<Q>(&self, request: Q) -> AskOrBack<Q>
    where
        Q: Request + Clone,
        M: From<Call<Q>>,
    {
        let kept = Some(request.clone());
        AskOrBack { ask: self.ask(request), request: kept }
    }
}
