//! A send as a future: it waits for room, and blocks no thread.
//!
//! The first poll sends the message as [`ActorRef::try_tell`] does, and defers every wait for room on the way
//! (`deferred_send.rs`), also at mailboxes that refuse when they are full. A delivery that waits leaves the future's waker
//! at its mailbox (`mailbox/backpressure.rs`). While it waits, no ledger counts it.

use crate::core::actor_ref::ActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::deferred_send::{DeferredSend, put_off_awaited};
use crate::core::error::SendError;
use crate::util::panic::drop_guarded;
use std::any::TypeId;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

impl<M: Send + 'static> ActorRef<M> {
    /// Sends a message as soon as there is room: a future, under any executor, that ends when the mailbox has taken the
    /// message. No thread is blocked; code without an executor calls [`wait`](SendFuture::wait). The first poll sends;
    /// a future that is never polled sends nothing.
    ///
    /// The future waits wherever a bounded mailbox is full, whether the mailbox
    /// [refuses](crate::OverflowPolicy::Reject) or [lets senders wait](crate::OverflowPolicy::Wait), and has no time
    /// limit of its own. A mailbox that drops a message for room does so at once. Behind a router it waits at the routee
    /// that was chosen; if that routee ends meanwhile, the router chooses again. If a message goes to several, the
    /// future waits for all of them.
    ///
    /// Futures that wait at one mailbox are woken in the order in which they came. The room is not kept for them:
    /// another sender may take it first, and then the future waits on at its old place. A future that has been woken and
    /// is not polled keeps the next from that room until the actor takes a further message.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// struct Slow;
    /// impl Actor for Slow {
    ///     type Message = u32;
    ///     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("demo").build()?;
    /// let slow = system.actor("slow").mailbox(Mailbox::bounded(1)).spawn(|| Slow)?;
    /// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async {
    ///     for number in 0..100u32 {
    ///         slow.send(number).await?;
    ///     }
    ///     Ok::<(), pointsman::SendError<u32>>(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancellation
    ///
    /// A future that is dropped while it waits gives its message up: the message is dropped with it, and counted as
    /// [handed back](crate::Ledger::handed_back). It is never delivered after that. A message of which the mailbox has
    /// been told already is delivered. So `tokio::time::timeout(limit, actor.send(message))` is sound, and loses the
    /// message when the time is over; to keep it, select on `&mut` the future, and take it back by
    /// [`into_message`](SendFuture::into_message).
    ///
    /// # Errors
    ///
    /// As [`try_tell`](Self::try_tell), and the message comes back. [`SendError::Full`] comes only from the full queue of
    /// a [balancing pool](crate::routing::Balancing) and from an actor of another node, for which no sender can wait, and for
    /// the message of an asker that is over. A message that an [adapter](Self::contramap) has changed cannot come back: it is a dead letter, and the
    /// result is `Ok`.
    pub fn send(&self, message: impl Into<M>) -> SendFuture<M> {
        SendFuture { to: self.clone(), state: State::Unsent(message.into()) }
    }
}

/// A message that is sent as soon as there is room: see [`ActorRef::send`].
#[must_use = "a message is sent when the future is polled; use `tell` where it must not wait"]
pub struct SendFuture<M: Send + 'static> {
    to: ActorRef<M>,
    state: State<M>,
}

enum State<M> {
    /// Not polled yet.
    Unsent(M),
    /// Waits for room.
    Waiting(DeferredSend),
    Over,
}

impl<M: Send + 'static> SendFuture<M> {
    /// Gives the send up, and returns the message if no mailbox has taken it: `None` after the end of the future, of a
    /// message that goes to several, and of a message that an adapter has changed. A message that does not come back
    /// is dropped. Either is counted as handed back, if the future has been polled.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// let port: ActorRef<u32> = ActorRef::from_fn(|_| ());
    /// assert_eq!(port.send(7u32).into_message(), Some(7));
    /// ```
    pub fn into_message(mut self) -> Option<M> {
        self.take()
    }

    /// Takes the future apart, before its first poll.
    ///
    /// # Panics
    ///
    /// When it has been polled.
    pub(crate) fn into_unsent(mut self) -> (ActorRef<M>, M) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Unsent(message) => (self.to.clone(), message),
            polled => {
                self.state = polled;
                panic!(
                    "a `SendFuture` that has been polled cannot be waited for: poll it to its end, or drop it"
                );
            }
        }
    }

    /// Takes what waits out of the future, and counts it as handed back.
    fn take(&mut self) -> Option<M> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Unsent(message) => Some(message),
            State::Waiting(waiting) => {
                let is_whole = waiting.is_whole();
                let (mut deliveries, counters) = waiting.give_up();
                for later in &deliveries {
                    let system = counters.as_ref().unwrap_or_else(|| later.system());
                    system.ledger().for_this_thread().handed_back(1);
                }
                let returns = |index: usize| deliveries[index].is_message_of(TypeId::of::<M>());
                let message = if is_whole && deliveries.len() == 1 && returns(0) {
                    let (message, _) = deliveries.pop()?.into_message();
                    message.downcast().ok().map(|message| *message)
                } else {
                    None
                };
                deliveries.into_iter().for_each(|later| drop_guarded(later.into_message()));
                message
            }
            State::Over => None,
        }
    }

    /// Gives the send up, as a dead letter.
    pub(crate) fn abandon(mut self) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Unsent(message) => drop_guarded(message),
            State::Waiting(waiting) => {
                let (deliveries, counters) = waiting.give_up();
                for later in deliveries {
                    later.abandon(counters.as_deref(), DeadLetterReason::Full);
                }
            }
            State::Over => {}
        }
    }

    /// Sends the message. Returns what waits for room.
    fn begin(&self, message: M) -> Result<Option<DeferredSend>, SendError<M>> {
        let system = self.to.system();
        let (sent, put_off) = put_off_awaited(|| self.to.send_putting_off(message));
        let waiting =
            put_off.map(|put_off| put_off.returning_by(|| self.to.way_back()).counted_by(system.clone()));
        match sent {
            Ok(()) => Ok(waiting),
            Err(refused) => {
                // The deliveries that wait are no more than a part of the message that comes back.
                drop(waiting);
                if let Some(system) = system {
                    system.ledger().for_this_thread().handed_back(1);
                }
                Err(refused)
            }
        }
    }

    /// Looks for room for what waits. Returns the outcome when nothing waits any more.
    fn look(waiting: &mut DeferredSend, waker: &Waker) -> Poll<Result<(), SendError<M>>> {
        let mut refused = Vec::new();
        let is_over = waiting.poll_room(waker, &mut refused);
        let is_whole = waiting.is_whole();
        let mut outcome = Ok(());
        for (later, reason) in refused {
            let counters = waiting.counters();
            if !is_whole || !later.is_message_of(TypeId::of::<M>()) {
                later.abandon(counters, reason);
                continue;
            }
            counters.unwrap_or_else(|| later.system()).ledger().for_this_thread().handed_back(1);
            if let Ok(message) = later.into_message().0.downcast::<M>() {
                outcome = Err(refusal(*message, reason));
            }
        }
        if is_over { Poll::Ready(outcome) } else { Poll::Pending }
    }
}

/// The error of a message that was refused after a wait.
fn refusal<M>(message: M, reason: DeadLetterReason) -> SendError<M> {
    match reason {
        DeadLetterReason::Full => SendError::Full(message),
        DeadLetterReason::NoRoutee => SendError::NoRoutee(message),
        DeadLetterReason::Cycle => SendError::Cycle(message),
        _ => SendError::Closed(message),
    }
}

/// The message is only moved.
impl<M: Send + 'static> Unpin for SendFuture<M> {}

impl<M: Send + 'static> Future for SendFuture<M> {
    type Output = Result<(), SendError<M>>;

    /// # Panics
    ///
    /// When the future is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let State::Unsent(_) = this.state {
            let State::Unsent(message) = std::mem::replace(&mut this.state, State::Over) else {
                unreachable!("it was unsent just now");
            };
            match this.begin(message)? {
                None => return Poll::Ready(Ok(())),
                Some(waiting) => this.state = State::Waiting(waiting),
            }
        }
        let State::Waiting(waiting) = &mut this.state else {
            panic!("a `SendFuture` was polled after its end");
        };
        let outcome = std::task::ready!(Self::look(waiting, cx.waker()));
        this.state = State::Over;
        Poll::Ready(outcome)
    }
}

impl<M: Send + 'static> Drop for SendFuture<M> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<M: Send + 'static> fmt::Debug for SendFuture<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Unsent(_) => "Unsent",
            State::Waiting(_) => "Waiting",
            State::Over => "Over",
        };
        f.debug_struct("SendFuture").field("to", &self.to).field("state", &state).finish()
    }
}
