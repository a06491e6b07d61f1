//! Streams: the items of a stream become messages of an actor.

use crate::actor::context::Context;
use crate::actor::task_table::{OwnTask, TaskStep};
use crate::failure::guarded;
use crate::util::panic::Guarded;
use futures_core::Stream;
use std::pin::Pin;
use std::task::{self, Poll, Wake};

/// An event of an attached stream: see [`Context::attach`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent<T> {
    /// The next item.
    Item(T),
    /// The stream has ended; no event follows.
    End,
    /// The stream panicked, and is dropped; no event follows.
    Panicked {
        /// The text of the panic.
        text: String,
    },
}

/// The key of an attached stream: see [`Context::attach`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamKey(u64);

struct Attached<S, W> {
    stream: Guarded<Pin<Box<S>>>,
    wrap: Guarded<W>,
}

impl<S, W, M> OwnTask<M> for Attached<S, W>
where
    S: Stream + Send,
    W: FnMut(StreamEvent<S::Item>) -> M + Send,
{
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<TaskStep<M>> {
        let polled = match guarded(|| Ok(self.stream.as_mut().poll_next(cx))) {
            Ok(polled) => std::task::ready!(polled).map_or(StreamEvent::End, StreamEvent::Item),
            Err(failure) => StreamEvent::Panicked { text: failure.to_string() },
        };
        let is_last = !matches!(polled, StreamEvent::Item(_));
        // A panic of this function is a failure of the actor, whose code it is.
        let message = (*self.wrap)(polled);
        Poll::Ready(if is_last { TaskStep::Last(message) } else { TaskStep::Message(message) })
    }

    fn survives_restart(&self) -> bool {
        false
    }
}

impl<M: Send + 'static> Context<M> {
    /// Attaches a stream to this actor: each item is handled as the message that `wrap` makes of it, and so is the end
    /// of the stream, or a panic of it. (actix's `add_stream`.)
    ///
    /// The next item is polled when the last one has been handled, so a stream that is always ready brings one item at
    /// a time: in turn with the messages that are queued meanwhile, and none while the actor [holds](Self::hold) or is
    /// suspended. Items take no room in a bounded mailbox. The actor's own turns poll the stream, within
    /// [`polls_within`](crate::SystemBuilder::polls_within).
    ///
    /// The stream ends with the actor. A restart drops it as well, as it cancels timers: attach it in
    /// [`started`](crate::Actor::started), and again in [`restarted`](crate::Actor::restarted). [`detach`](Self::detach)
    /// drops it before. None of these brings an event. Each item taken from the stream is handled, unless `wrap` panics:
    /// that fails the actor, drops the stream, and loses the item.
    ///
    /// The ledger counts each event as sent and handled at once.
    ///
    /// ```
    /// use pointsman::actor::StreamEvent;
    /// use pointsman::prelude::*;
    ///
    /// enum SumMsg {
    ///     Event(StreamEvent<u32>),
    ///     Get(ReplyTo<Option<u32>>),
    /// }
    ///
    /// #[derive(Default)]
    /// struct Sum {
    ///     so_far: u32,
    ///     is_complete: bool,
    /// }
    /// impl Actor for Sum {
    ///     type Message = SumMsg;
    ///     fn started(&mut self, ctx: &mut Context<SumMsg>) -> HandlerResult {
    ///         ctx.attach(tokio_stream::iter(1..=4), SumMsg::Event);
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, message: SumMsg, _: &mut Context<SumMsg>) -> HandlerResult {
    ///         match message {
    ///             SumMsg::Event(StreamEvent::Item(number)) => self.so_far += number,
    ///             SumMsg::Event(_) => self.is_complete = true,
    ///             SumMsg::Get(reply_to) => drop(reply_to.send(self.is_complete.then_some(self.so_far))),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("demo").build()?;
    /// let sum = system.spawn(Sum::default)?;
    /// let total = loop {
    ///     if let Some(total) = sum.ask_with(SumMsg::Get).wait()? {
    ///         break total;
    ///     }
    /// };
    /// assert_eq!(total, 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn attach<S>(
        &mut self,
        stream: S,
        wrap: impl FnMut(StreamEvent<S::Item>) -> M + Send + 'static,
    ) -> StreamKey
    where
        S: Stream + Send + 'static,
    {
        let poll_waker = self.task_waker();
        // Guarded: either may be dropped while the other unwinds.
        let (stream, wrap) = (Guarded::new(Box::pin(stream)), Guarded::new(wrap));
        self.add_task(&poll_waker, Box::new(Attached { stream, wrap }));
        let key = StreamKey(poll_waker.number);
        poll_waker.wake();
        key
    }

    /// Drops an attached stream. No event of it comes any more. Returns false if the stream was over.
    pub fn detach(&mut self, stream: &StreamKey) -> bool {
        self.drop_task(stream.0)
    }
}
