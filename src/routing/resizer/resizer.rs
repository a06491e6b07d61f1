//! The [`Resizer`] trait: it decides how many routees a pool has.

use crate::routing::resizer::loads::RouteeLoads;
use crate::settings::setting_error::SettingError;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// Decides how many routees a pool has: given to it by [`RouterPlan::resizer`](crate::routing::RouterPlan::resizer).
///
/// The pool calls its resizer's [`resize`](Self::resize) when [`is_time_for_resize`](Self::is_time_for_resize) says so,
/// when a message finds no routee, and at every [tick](Self::tick). The pool then grows at its end, or removes its
/// youngest routees. Removed routees handle their mailboxes, and later arrivals are routed again. So a pool that is
/// resized while it is loaded loses nothing.
///
/// A resizer of your own needs two methods:
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::{Resizer, RouteeLoads};
///
/// /// One routee for every hundred messages that wait, looked at every 50 messages.
/// struct ByBacklog;
///
/// impl Resizer for ByBacklog {
///     fn is_time_for_resize(&self, messages: u64) -> bool {
///         messages % 50 == 0
///     }
///     fn resize(&self, loads: &RouteeLoads) -> isize {
///         (1 + loads.queued() / 100) as isize - loads.len() as isize
///     }
/// }
///
/// # struct Worker;
/// # impl Actor for Worker {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let workers = system.router("workers").pool(3, |_| Worker).resizer(ByBacklog).spawn()?;
/// assert_eq!(workers.routees()?.len(), 1, "nothing waits in a new pool");
/// # Ok(())
/// # }
/// ```
///
/// # Cost
///
/// Each message to the router pays for a count of the sending thread's own, and for the call of
/// [`is_time_for_resize`](Self::is_time_for_resize). Each time that it returns true costs a read-modify-write of a flag
/// that all senders share, and unless a trigger is pending already, two allocations and a system message to the head.
/// Routers without a resizer pay nothing.
///
/// As in Akka, with an optional tick, and with a count for each thread instead of a single count.
pub trait Resizer: Send + Sync + 'static {
    /// Whether the pool's size is to be looked at now. Called on the sender's thread after each of its messages was
    /// routed, with the number of messages that this thread has sent to the router so far, that message included; on
    /// many threads at a time. Called with 0 once, before the router routes: true resizes the pool, as asked for,
    /// before it is created.
    ///
    /// A broadcast is a single message, and management is none. A thread that ends leaves its count to a thread that
    /// begins. So with "every n-th", a thread triggers exactly at every n-th message; k threads together trigger as
    /// often as a single thread that had sent all of the messages, less at most once for each thread.
    ///
    /// A panic unwinds to the sender; the message is accounted for.
    fn is_time_for_resize(&self, messages: u64) -> bool;

    /// Returns by how many routees the pool is to grow, or to shrink if negative. Called on the head only, one call at
    /// a time. The result is [clamped](Self::clamp).
    ///
    /// A panic is logged, and the size stays.
    fn resize(&self, loads: &RouteeLoads) -> isize;

    /// Returns the allowed size that is nearest to `size`: also for sizes that are asked for by hand. By default at
    /// least 1.
    fn clamp(&self, size: usize) -> usize {
        size.max(1)
    }

    /// Returns how often the resizer is asked whatever the traffic, by the system's clock, so that an idle pool
    /// shrinks. By default `None`: only traffic asks it, as in Akka. The resizers of this crate have a tick. Called
    /// when the head starts.
    fn tick(&self) -> Option<Duration> {
        None
    }

    /// Checks the resizer's settings: with an error the router is not created.
    ///
    /// # Errors
    ///
    /// The fault of the settings.
    fn check(&self) -> Result<(), SettingError> {
        Ok(())
    }
}

/// Lets a user keep a handle to a resizer that a pool uses, or choose the resizer at run time.
impl<R: Resizer + ?Sized> Resizer for StdArc<R> {
    fn is_time_for_resize(&self, messages: u64) -> bool {
        (**self).is_time_for_resize(messages)
    }

    fn resize(&self, loads: &RouteeLoads) -> isize {
        (**self).resize(loads)
    }

    fn clamp(&self, size: usize) -> usize {
        (**self).clamp(size)
    }

    fn tick(&self) -> Option<Duration> {
        (**self).tick()
    }

    fn check(&self) -> Result<(), SettingError> {
        (**self).check()
    }
}

/// Returns by how much `to` is more than `from`.
pub(crate) fn difference(to: usize, from: usize) -> isize {
    let signed = |size: usize| isize::try_from(size).unwrap_or(isize::MAX);
    signed(to) - signed(from)
}
