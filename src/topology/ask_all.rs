//! An ask of all recipients gathers the outcomes of all copies of a request.

use crate::ask::ask::Ask;
use crate::ask::error::AskError;
use crate::topology::reply_set::ReplySet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll};
use std::time::Duration;

/// An ask of all recipients gives the outcomes of all copies of a request, in the order in which they came. It differs
/// from an [`Ask`] in that the outcomes that have come are not lost when the time is up.
///
/// A copy without a reply has one of these errors:
///
/// * [`AskError::NoReply`]: the copy was received, and its reply port was dropped without an answer. A copy that is
///   dropped because user code panics while the request is being sent (a route's condition, a `Clone`) has this error,
///   too: the drop does not show which code dropped the port.
/// * [`AskError::Undeliverable`]: the copy will not be answered: it was not delivered, or was left unread in a mailbox
///   whose actor has ended. This is also the error if the group that asks by an outlet, or the group that is asked, is
///   not mounted yet.
/// * [`AskError::Timeout`]: the time that the request was given was up, and the copy was neither answered nor dropped:
///   the copy waits for room, lies in a mailbox, or is held by a recipient.
/// * The error by which a router among the recipients has ended the copy, such as [`AskError::NoRoutees`] or
///   [`AskError::AllFailed`].
///
/// Made by [`RequestBuilder::all`](super::RequestBuilder::all) and [`Topology::ping`](super::Topology::ping). Dropping it gives
/// the request up.
#[must_use = "a request that is dropped is given up"]
#[doc(alias = "Replies")]
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
    pub fn wait(self) -> Result<Vec<Result<R, AskError>>, AskError> {
        let Self { ask, reply_set } = self;
        gathered(ask.wait(), &reply_set)
    }
}

/// Returns the result of an asker that is told `told`: the replies, also when the time is up.
pub(crate) fn gathered<R: Send + 'static>(
    told: Result<(), AskError>,
    reply_set: &ReplySet<R>,
) -> Result<Vec<Result<R, AskError>>, AskError> {
    match told {
        // Every copy has an outcome.
        Ok(()) => Ok(reply_set.take_all(&AskError::no_reply())),
        Err(error @ AskError::Timeout { .. }) => Ok(reply_set.take_all(&error)),
        Err(error) => Err(error),
    }
}

impl<R: Send + 'static> Future for AskAll<R> {
    type Output = Result<Vec<Result<R, AskError>>, AskError>;

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
