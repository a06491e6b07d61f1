//! An ask of all recipients gathers the outcomes of all copies of a request.

use crate::ask::ask::Ask;
use crate::ask::error::AskError;
use crate::topology::reply_set::{Replies, ReplySet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll};
use std::time::Duration;

/// An ask of all recipients gives the outcomes of all copies of a request. It differs from an [`Ask`] in that the
/// outcomes that have come are not lost when the time is up.
///
/// Made by [`RequestBuilder::all`](super::RequestBuilder::all) and [`Topology::ping`](super::Topology::ping). Dropping it gives
/// the request up.
#[must_use = "a request that is dropped is given up"]
pub struct AskAll<R> {
    /// Answered when the replies may be taken.
    ask: Ask<()>,
    reply_set: StdArc<ReplySet<R>>,
}

impl<R: Send + 'static> AskAll<R> {
    pub(crate) fn new(ask: Ask<()>, reply_set: StdArc<ReplySet<R>>) -> Self {
        Self { ask, reply_set }
    }

    /// Limits the wait: `limit` from now at the latest, the ask gives the outcomes that there are, as [`Ask::within`].
    /// The last call counts, also after [`RequestBuilder::within`](super::RequestBuilder::within).
    pub fn within(self, limit: Duration) -> Self {
        Self { ask: self.ask.within(limit), reply_set: self.reply_set }
    }

    /// Blocks this thread until every copy has an outcome, or the time is up.
    ///
    /// # Errors
    ///
    /// As [`Ask::wait`], but never [`AskError::Timeout`].
    pub fn wait(self) -> Result<Replies<R>, AskError> {
        let Self { ask, reply_set } = self;
        gathered(ask.wait(), &reply_set)
    }
}

/// Returns the result of an asker that is told `told`: the replies, also when the time is up.
pub(crate) fn gathered<R: Send + 'static>(
    told: Result<(), AskError>,
    reply_set: &ReplySet<R>,
) -> Result<Replies<R>, AskError> {
    match told {
        Ok(()) | Err(AskError::Timeout { .. }) => Ok(reply_set.take_all()),
        Err(error) => Err(error),
    }
}

impl<R: Send + 'static> Future for AskAll<R> {
    type Output = Result<Replies<R>, AskError>;

    /// # Panics
    /// When polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.ask).poll(cx).map(|told| gathered(told, &self.reply_set))
    }
}

impl<R> fmt::Debug for AskAll<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskAll").field("ask", &self.ask).finish()
    }
}
