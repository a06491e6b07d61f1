//! The rules for dead letters of a single type of message: a mark that suppresses its letters, and a sink that gets the
//! messages themselves.

use crate::ask::fork::{Answerable, Attempt};
use crate::core::dead_letter::DeadLetter;
use crate::core::dead_letter_sinks::{DeadLetterSinkExists, Mark, Sink};
use crate::core::dead_letters::DeadLetters;
use crate::core::event_stream::Subscription;
use std::any::TypeId;
use std::sync::Arc as StdArc;

impl DeadLetters {
    /// Marks the messages of type `M` for which `is_suppressed` is true: their dead letters are suppressed. They are
    /// counted, and published as [`SuppressedDeadLetter`](crate::dead_letters::SuppressedDeadLetter) instead of as
    /// [`DeadLetter`], and are never logged. There is one mark for each type: the last one counts.
    /// To mark the type as a whole: `suppress(|_: &M| true)`.
    ///
    /// Control (stop, poison pill, kill, termination notices) is no message here, and never a dead letter.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// enum Job {
    ///     Work(u32),
    ///     Heartbeat,
    /// }
    /// system.dead_letters().suppress(|job: &Job| matches!(job, Job::Heartbeat));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Concurrency
    ///
    /// `is_suppressed` runs on the thread that met the dead letter. A letter without its message, as of a message that
    /// was lost in a panic, is not suppressed.
    pub fn suppress<M: 'static>(&self, is_suppressed: impl Fn(&M) -> bool + Send + Sync + 'static) {
        self.rules.mark(Mark(Box::new(is_suppressed)));
    }

    /// Hands every undelivered message of type `M` to `sink`, with its letter, instead of dropping it: refused messages, messages left
    /// in a mailbox, and messages that a full mailbox drops. Each is handed over once, after the ledger has counted it
    /// (it stays a dead letter) and the subscribers have been told. The sink ends when the subscription is dropped.
    ///
    /// A letter whose message is gone brings no message: that of a message that was lost in a panic, of a message that
    /// a routing logic dropped, and of a copy that one recipient of a keyed group or a topology has refused and that
    /// went on to the next.
    ///
    /// **Reply ports.** The asker is told before, and never waits for the sink. A refused request fails with
    /// [`AskError::Undeliverable`](crate::AskError::Undeliverable). A request that is found in a mailbox loses its
    /// reply port before the sink sees it, and fails with [`AskError::NoReply`](crate::AskError::NoReply), even if the
    /// sink keeps the message. So replies to such a message are late. [`Answerable`] finds the port, and
    /// `#[derive(Message)]` implements it; for other types see [`take_by`](Self::take_by).
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use std::sync::mpsc;
    ///
    /// struct Buy(String);
    /// impl Request for Buy {
    ///     type Reply = u32;
    /// }
    ///
    /// #[derive(Message)]
    /// enum DeskMsg {
    ///     Buy(Call<Buy>),
    /// }
    ///
    /// struct Desk;
    /// impl Actor for Desk {
    ///     type Message = DeskMsg;
    ///     fn receive(&mut self, DeskMsg::Buy(call): DeskMsg, _: &mut Context<DeskMsg>) -> HandlerResult {
    ///         call.answer(|Buy(article)| article.len() as u32);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let (sender, left_over) = mpsc::channel();
    /// let _subscription = system.dead_letters().take::<DeskMsg>(move |message, _letter| {
    ///     let _ = sender.send(message);
    /// })?;
    /// let desk = system.actor("desk").spawn(|| Desk)?;
    /// desk.stop();
    /// let ask = desk.ask(Buy("apples".into()));
    /// let DeskMsg::Buy(kept) = left_over.recv()?;
    /// assert_eq!(kept.request.0, "apples");
    /// assert!(ask.wait().is_err(), "although the message is kept");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`DeadLetterSinkExists`] if the type has a sink: a message can be handed over only once.
    ///
    /// # Concurrency
    ///
    /// `sink` runs on the thread that met the dead letter, and should be short. Messages that become dead letters while
    /// a sink or a subscriber runs on the same thread are counted and dropped, so there is no endless circle.
    #[doc(alias = "DeadLetterMessage")]
    pub fn take<M: Answerable + Send + 'static>(
        &self,
        sink: impl Fn(M, DeadLetter) + Send + Sync + 'static,
    ) -> Result<Subscription, DeadLetterSinkExists> {
        let close = |message: &mut M| {
            message.fork(&Attempt::refused());
        };
        self.take_by(close, sink)
    }

    /// Takes messages as [`take`](Self::take) does, for messages that are not [`Answerable`]: `close` takes the reply
    /// ports out of a message, and drops them; `|_| {}` is right for messages without ports.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    pub fn take_by<M: Send + 'static>(
        &self,
        close: impl Fn(&mut M) + Send + Sync + 'static,
        sink: impl Fn(M, DeadLetter) + Send + Sync + 'static,
    ) -> Result<Subscription, DeadLetterSinkExists> {
        self.rules.add_sink(StdArc::new(Sink { close: Box::new(close), take: Box::new(sink) }))?;
        let rules = StdArc::downgrade(&self.rules);
        Ok(Subscription::new(move || {
            if let Some(rules) = rules.upgrade() {
                rules.remove_sink(TypeId::of::<M>());
            }
        }))
    }
}
