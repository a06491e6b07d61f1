//! Messages with a deadline after which they are of no use.

use crate::ask::ask_clock::AskClock;
use crate::ask::fork::{Answerable, Attempt};
use crate::ask::to_actor::Bound;
use crate::core::actor_ref::ActorRef;
use std::fmt;
use std::time::Duration;

/// A message that is of no use after its deadline: made by [`ActorRef::tell_within`].
///
/// The deadline travels in the message. So it costs nothing where there is none, and holds for the whole way of the
/// message: through routers, queues and stashes. An actor that [skips](crate::Context::skip_unwanted) unwanted
/// messages never gets a message whose deadline has passed. Any other actor gets it, and may ask
/// [`is_over`](Self::is_over) itself.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::ask::Expiring;
/// use std::time::Duration;
///
/// struct Quote {
///     cents: u64,
/// }
///
/// #[derive(Message)]
/// enum BoardMsg {
///     Quote(Expiring<Quote>),
///     Close,
/// }
///
/// struct Board(u64);
/// impl Actor for Board {
///     type Message = BoardMsg;
///     fn started(&mut self, ctx: &mut Context<BoardMsg>) -> HandlerResult {
///         ctx.skip_unwanted();
///         Ok(())
///     }
///     fn receive(&mut self, message: BoardMsg, _: &mut Context<BoardMsg>) -> HandlerResult {
///         match message {
///             BoardMsg::Quote(quote) => self.0 = quote.into_inner().cents,
///             BoardMsg::Close => self.0 = 0,
///         }
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("market").build()?;
/// let board = system.actor("board").spawn(|| Board(0))?;
/// board.tell_within(Quote { cents: 1999 }, Duration::from_millis(500));
/// # board.tell(BoardMsg::Close);
/// # Ok(())
/// # }
/// ```
///
/// An [`Answerable`] that is written by hand passes the call on to it as to a reply port.
#[derive(Clone)]
pub struct Expiring<T> {
    /// The message.
    pub message: T,
    /// The end of its time; `None`: never, since the end is beyond the range of the clock.
    deadline: Option<Duration>,
    clock: AskClock,
}

impl<T> Expiring<T> {
    /// Returns whether its deadline has passed, by the clock of the system that it was sent to.
    pub fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.clock.now() >= deadline)
    }

    /// The time that is left until its deadline; zero when the deadline has passed.
    pub fn left(&self) -> Duration {
        self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_sub(self.clock.now()))
    }

    /// The message.
    pub fn into_inner(self) -> T {
        self.message
    }
}

impl<T> Answerable for Expiring<T> {
    /// There is no port; but the deadline may have passed.
    fn fork(&mut self, attempt: &Attempt) -> bool {
        attempt.looked(|| !self.is_over())
    }
}

impl<T> fmt::Debug for Expiring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expiring").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}

impl<M: Send + 'static> ActorRef<M> {
    /// Sends a message as [`tell`](Self::tell) does, with a deadline: it is of no use after `limit`, by the clock of
    /// the system that it is sent to. The actor's messages must be made from the [`Expiring`], which
    /// `#[derive(Message)]` implements for a variant that holds one.
    ///
    /// An actor that [skips](crate::Context::skip_unwanted) unwanted messages never gets the message later: it is
    /// counted as [`skipped`](crate::Ledger::skipped), with the reason [`Expired`](crate::DeadLetterReason::Expired).
    /// Any other actor gets it. In a full mailbox that [lets senders wait](crate::OverflowPolicy::Wait), the wait for
    /// room ends with the deadline, too, and the message is a dead letter.
    ///
    /// Not to be confused with [`send_within`](crate::topology::Outlet::send_within), whose limit applies to the wait
    /// for room alone.
    pub fn tell_within<T>(&self, message: T, limit: Duration)
    where
        M: From<Expiring<T>>,
    {
        let clock = self.ask_clock();
        let bound = Bound::by(Some(limit), || clock.clone());
        let deadline = clock.now().checked_add(limit);
        let message = M::from(Expiring { message, deadline, clock });
        let (sent, in_vain) =
            bound.send(|| self.system(), || self.way_back(), &mut (), || self.send_putting_off(message));
        drop(in_vain);
        if let Err(refused) = sent {
            self.dead_letter(refused);
        }
    }
}
