//! Sends of an actor that wait for room, and tell the actor their outcome.

use crate::actor::context::Context;
use crate::actor::task_table::{OwnTask, TaskStep};
use crate::core::actor_ref::ActorRef;
use crate::core::error::SendError;
use crate::core::send_future::SendFuture;
use crate::util::panic::Guarded;
use std::pin::Pin;
use std::task::{self, Poll, Wake, Waker};

/// A message that waits for room.
struct WaitingSend<N: Send + 'static, W> {
    state: SendState<N>,
    /// `None` once the event is on its way.
    wrap: Option<Guarded<W>>,
}

enum SendState<N: Send + 'static> {
    Waiting(SendFuture<N>),
    /// It was refused at once.
    Refused(Option<SendError<N>>),
}

impl<N, W, M> OwnTask<M> for WaitingSend<N, W>
where
    N: Send + 'static,
    W: FnOnce(Result<(), SendError<N>>) -> M + Send,
{
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<TaskStep<M>> {
        let outcome = match &mut self.state {
            SendState::Waiting(future) => std::task::ready!(Pin::new(future).poll(cx)),
            SendState::Refused(refused) => refused.take().map_or(Ok(()), Err),
        };
        let wrap = self.wrap.take().expect("a send ends once").into_inner();
        Poll::Ready(TaskStep::Last(wrap(outcome)))
    }

    fn survives_restart(&self) -> bool {
        true
    }

    fn abandon(self: Box<Self>) {
        if let SendState::Waiting(future) = self.state {
            future.abandon();
        }
    }
}

impl<M: Send + 'static> Context<M> {
    /// Sends a message to `target` as soon as there is room, as [`ActorRef::send`] does, and lets this actor know.
    ///
    /// Returns true if the message was accepted at once: then no event follows. Otherwise this actor gets the message
    /// that `wrap` makes of the outcome: `Ok` when the message has been accepted, which is the moment to go on sending, and
    /// an error with the message when there is no one to take it any more. The actor handles other messages meanwhile.
    /// So a producer keeps up with its consumer without a timer that tries again:
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::SendError;
    ///
    /// enum ReaderMsg {
    ///     Read,
    ///     Sent(Result<(), SendError<u32>>),
    /// }
    ///
    /// struct Reader {
    ///     lines: std::ops::Range<u32>,
    ///     parser: ActorRef<u32>,
    /// }
    /// impl Actor for Reader {
    ///     type Message = ReaderMsg;
    ///     fn receive(&mut self, message: ReaderMsg, ctx: &mut Context<ReaderMsg>) -> HandlerResult {
    ///         if let ReaderMsg::Sent(outcome) = message {
    ///             outcome?;
    ///         }
    ///         for line in &mut self.lines {
    ///             if !ctx.send_when_room(&self.parser, line, ReaderMsg::Sent) {
    ///                 break; // reads on when the line is accepted
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// # struct Parser(std::sync::mpsc::Sender<u32>);
    /// # impl Actor for Parser {
    /// #     type Message = u32;
    /// #     fn receive(&mut self, line: u32, _: &mut Context<u32>) -> HandlerResult { Ok(self.0.send(line)?) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (sender, parsed) = std::sync::mpsc::channel();
    /// let system = System::builder("demo").build()?;
    /// let parser = system.actor("parser").mailbox(Mailbox::bounded(2)).spawn(move || Parser(sender.clone()))?;
    /// let reader = system.spawn(move || Reader { lines: 0..100, parser: parser.clone() })?;
    /// reader.tell(ReaderMsg::Read);
    /// assert!((0..100).all(|line| parsed.recv() == Ok(line)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A message that this actor sends to the same target before the event may go before this message. The wait goes on
    /// over a restart, and the new state gets the event. When this actor ends, the message is a dead letter (reason
    /// [`Full`](crate::DeadLetterReason::Full)). The ledger counts the event as sent and handled at once; it takes no room
    /// in this actor's mailbox.
    ///
    /// While this actor [holds](Self::hold) or is suspended it does not take the room, and may keep futures that wait
    /// behind it from that room until the target takes a further message. So do not hold for a send to the same target.
    #[must_use = "`false`: the message waits, and its event follows"]
    pub fn send_when_room<N: Send + 'static>(
        &mut self,
        target: &ActorRef<N>,
        message: impl Into<N>,
        wrap: impl FnOnce(Result<(), SendError<N>>) -> M + Send + 'static,
    ) -> bool {
        let wrap = Guarded::new(wrap);
        let mut future = target.send(message);
        let poll_waker = self.task_waker();
        let waker = Waker::from(poll_waker.clone());
        let state = match Pin::new(&mut future).poll(&mut task::Context::from_waker(&waker)) {
            Poll::Ready(Ok(())) => return true,
            Poll::Ready(Err(refused)) => SendState::Refused(Some(refused)),
            Poll::Pending => SendState::Waiting(future),
        };
        let is_over = matches!(state, SendState::Refused(_));
        self.add_task(&poll_waker, Box::new(WaitingSend { state, wrap: Some(wrap) }));
        if is_over {
            poll_waker.wake();
        }
        false
    }
}
