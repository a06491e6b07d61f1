//! Every message to all routees.

use super::{Pick, RouteContext, Routees, RoutingLogic};
use crate::error::SendError;

/// Sends every message to all routees, in the order of the table.
///
/// A message to n routees is cloned n − 1 times and counts as n deliveries; a copy that a routee does not take
/// is a dead letter of its own. With no routees the message itself is one, or comes back to `try_tell`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Broadcast;

impl<M: Clone + Send + 'static> RoutingLogic<M> for Broadcast {
    /// Never called: [`route`](Self::route) takes every message.
    fn select(&self, _: &M, _: &Routees<M>, _: &RouteContext<'_>) -> Pick {
        Pick::None
    }

    fn route(&self, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        if routees.is_empty() {
            return Err(SendError::NoRoutee(message));
        }
        to_all(message, routees, cx);
        Ok(())
    }
}

/// Delivers a message to all routees, of which there is at least one.
pub(super) fn to_all<M: Clone + Send + 'static>(message: M, routees: &Routees<M>, cx: &RouteContext<'_>) {
    cx.copies(routees.len());
    let mut rest = routees.iter();
    let last = rest.next_back();
    for routee in rest {
        cx.deliver_copy(routee.actor(), message.clone());
    }
    if let Some(last) = last {
        cx.deliver_copy(last.actor(), message);
    }
}
