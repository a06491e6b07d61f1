//! An ask of several recipients, with an answer of each.

use crate::ask::ask::Ask;
use crate::ask::error::AskError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The answers of several recipients, on their way: like an [`Ask`], but the answers that there are when the time is up
/// are not lost. `T` is the answer of a recipient.
///
/// Made by [`Router::ask_all`](crate::Router::ask_all), [`RouterValue::ask_all`](crate::routing::RouterValue::ask_all),
/// [`RequestBuilder::all`](crate::topology::RequestBuilder::all) and [`Topology::ping`](crate::topology::Topology::ping).
/// The requests were sent when it was made. Dropping it gives the answers up.
#[doc(alias = "AskEach")]
#[must_use = "an ask that is dropped is given up; use `broadcast` or `tell` if no answers are wanted"]
pub struct AskAll<T> {
    /// Answered when the answers may be taken.
    ask: Ask<()>,
    answers: StdArc<dyn Answers<T>>,
}

/// The answers of several recipients, so far.
pub(crate) trait Answers<T>: Send + Sync {
    /// Returns the result of an asker whose signal was `told`.
    fn gathered(&self, told: Result<(), AskError>) -> Result<Vec<T>, AskError>;
}

impl<T> AskAll<T> {
    pub(crate) fn new(ask: Ask<()>, answers: StdArc<dyn Answers<T>>) -> Self {
        Self { ask, answers }
    }

    /// Gives the recipients `limit` from now to answer in, by the system's clock, as [`Ask::within`]. Without it each
    /// has as long as it may still answer. The last call counts, also after
    /// [`RequestBuilder::within`](crate::topology::RequestBuilder::within). A later answer is late.
    ///
    /// Requests for which there was no room in [mailboxes that let senders wait](crate::OverflowPolicy::Wait) wait for
    /// it in this call, all together and no longer than `limit`; a request for which there is none until then is a dead
    /// letter.
    pub fn within(self, limit: Duration) -> Self {
        Self { ask: self.ask.within(limit), answers: self.answers }
    }

    /// Blocks this thread until every recipient has answered or cannot any more, or the time is up. Returns one entry
    /// for each recipient.
    ///
    /// # Errors
    ///
    /// As [`Ask::wait`], but never [`AskError::Timeout`]: [`AskError::NoRoutees`] for a router that has none,
    /// [`AskError::Undeliverable`] for a router that has stopped, and [`AskError::WouldBlockWorker`]. The failure of a
    /// single recipient is in its entry.
    pub fn wait(self) -> Result<Vec<T>, AskError> {
        let Self { ask, answers } = self;
        answers.gathered(ask.wait())
    }
}

impl<T> Future for AskAll<T> {
    type Output = Result<Vec<T>, AskError>;

    /// # Panics
    /// When polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.ask).poll(cx).map(|told| self.answers.gathered(told))
    }
}

impl<T> fmt::Debug for AskAll<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskAll").field("ask", &self.ask).finish()
    }
}
