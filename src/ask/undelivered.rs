//! What may be told to the dead letters about one type of message: that its letters are of no interest, and
//! who wants the messages themselves.

use crate::ask::fork::{Answerable, Attempt};
use crate::core::dead_letters::{DeadLetter, DeadLetters};
use crate::core::event_stream::{Subscription, quietly};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{HashMap, Mutex, lock};
use crate::util::panic::Guarded;
use std::any::{Any, TypeId};
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc as StdArc;

/// A message that nobody took, handed to the sink of its type; see [`DeadLetters::take`].
#[non_exhaustive]
pub struct Undelivered<M> {
    /// The message. Its reply port, if it has one, is closed: who asked has been told already.
    pub message: M,
    /// For whom it was, and why it was not taken.
    pub letter: DeadLetter,
}

impl<M> fmt::Debug for Undelivered<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undelivered").field("letter", &self.letter).finish_non_exhaustive()
    }
}

/// A type of message has a sink already.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkTaken {
    /// The name of the type.
    pub message_type: &'static str,
}

impl fmt::Display for SinkTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "undelivered messages of type {} have a sink already: drop its subscription first, or pass them on from there",
            self.message_type
        )
    }
}

impl std::error::Error for SinkTaken {}

/// What is known of types of messages.
#[derive(Default)]
pub struct Rules {
    /// How many there are, so that without any a dead letter costs one load.
    count: AtomicUsize,
    by_type: Mutex<ByType>,
}

#[derive(Default)]
struct ByType {
    marks: HashMap<TypeId, Guarded<StdArc<dyn Any + Send + Sync>>>,
    sinks: HashMap<TypeId, Guarded<StdArc<dyn Any + Send + Sync>>>,
}

/// Which messages of one type are of no interest.
struct Mark<M>(Box<dyn Fn(&M) -> bool + Send + Sync>);

/// Takes messages of one type.
pub struct Sink<M> {
    close: Box<dyn Fn(&mut M) + Send + Sync>,
    take: Box<dyn Fn(Undelivered<M>) + Send + Sync>,
}

impl<M> Sink<M> {
    /// Closes the message's reply port, and hands the message over. What panics takes the message with it,
    /// which is counted already.
    pub fn take(&self, mut message: M, letter: DeadLetter) {
        quietly(move || {
            (self.close)(&mut message);
            (self.take)(Undelivered { message, letter });
        });
    }
}

impl Rules {
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Ordering: Relaxed; a letter met while a rule comes or goes may be treated by it or not.
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Whether this message's letter is of no interest. Calls user code.
    pub fn is_suppressed<M: 'static>(&self, message: &M) -> bool {
        if self.is_empty() {
            return false;
        }
        let mark = lock(&self.by_type).marks.get(&TypeId::of::<M>()).map(|mark| StdArc::clone(mark));
        let Some(mark) = mark.and_then(|mark| mark.downcast::<Mark<M>>().ok()) else { return false };
        let mut is_suppressed = false;
        quietly(|| is_suppressed = (mark.0)(message));
        crate::util::panic::drop_guarded(mark);
        is_suppressed
    }

    /// Who wants messages of this type.
    pub fn sink<M: 'static>(&self) -> Option<StdArc<Sink<M>>> {
        if self.is_empty() {
            return None;
        }
        let sink = lock(&self.by_type).sinks.get(&TypeId::of::<M>()).map(|sink| StdArc::clone(sink));
        sink.and_then(|sink| sink.downcast().ok())
    }

    fn mark<M: 'static>(&self, mark: Mark<M>) {
        let mark = Guarded::new(StdArc::new(mark) as StdArc<dyn Any + Send + Sync>);
        let replaced = lock(&self.by_type).marks.insert(TypeId::of::<M>(), mark);
        if replaced.is_none() {
            // Ordering: Relaxed; see `is_empty`.
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        crate::util::panic::drop_guarded(replaced);
    }

    fn add_sink<M: 'static>(&self, sink: StdArc<Sink<M>>) -> Result<(), SinkTaken> {
        let refused = match lock(&self.by_type).sinks.entry(TypeId::of::<M>()) {
            Entry::Occupied(_) => Some(sink),
            Entry::Vacant(place) => {
                place.insert(Guarded::new(sink));
                // Ordering: Relaxed; see `is_empty`.
                self.count.fetch_add(1, Ordering::Relaxed);
                None
            }
        };
        match refused {
            None => Ok(()),
            Some(refused) => {
                crate::util::panic::drop_guarded(refused);
                Err(SinkTaken { message_type: std::any::type_name::<M>() })
            }
        }
    }

    fn remove_sink(&self, message_type: TypeId) {
        let removed = lock(&self.by_type).sinks.remove(&message_type);
        if removed.is_some() {
            // Ordering: Relaxed; see `is_empty`.
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        crate::util::panic::drop_guarded(removed);
    }
}

impl DeadLetters {
    /// Marks the messages of type `M` for which `is_suppressed` is true: what becomes of them when nobody takes
    /// them is of no interest. They are counted, and published as
    /// [`SuppressedDeadLetter`](crate::SuppressedDeadLetter) instead of as [`DeadLetter`], and are never logged.
    /// One mark for each type: the last one counts. To mark the type as a whole: `suppress(|_: &M| true)`.
    ///
    /// Control (stop, poison pill, kill, notices of termination) is no message here, and never a dead letter.
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
    /// Runs on the thread that met the dead letter. A letter without its message, as of one that was lost in a
    /// panic, is not suppressed.
    pub fn suppress<M: 'static>(&self, is_suppressed: impl Fn(&M) -> bool + Send + Sync + 'static) {
        self.rules.mark(Mark(Box::new(is_suppressed)));
    }

    /// Hands every undelivered message of type `M` to `sink`, instead of dropping it: refused ones, ones left
    /// in a mailbox, ones that a full mailbox lets go. Each is handed over once, after the ledger has counted it
    /// (it stays a dead letter) and the subscribers have been told. Ends when the subscription is dropped.
    ///
    /// A letter whose message is gone brings none: of one that was lost in a panic, of one that a routing logic let fall,
    /// and of a copy that one recipient of a keyed group or a topology has refused and that went on to the next.
    ///
    /// **Reply ports.** Whoever has asked is told before, and never waits for what the sink does with the
    /// message: a refused request fails with [`AskError::Undeliverable`](crate::ask::ask::AskError::Undeliverable); one
    /// that is found in a mailbox loses its reply port before the sink sees it, and fails with
    /// [`AskError::NoReply`](crate::ask::ask::AskError::NoReply), even if the sink keeps the message. So replies to such a
    /// message are late. The port is found by [`Answerable`], which `#[derive(Message)]` writes; for other types
    /// see [`take_by`](Self::take_by).
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
    ///     fn receive(&mut self, DeskMsg::Buy(call): DeskMsg, _: &mut Context<DeskMsg>) -> Done {
    ///         call.answer(|Buy(article)| article.len() as u32);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let (sender, left_over) = mpsc::channel();
    /// let _subscription = system.dead_letters().take::<DeskMsg>(move |undelivered| {
    ///     let _ = sender.send(undelivered.message);
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
    /// [`SinkTaken`] if the type has a sink: a message can be had once.
    ///
    /// # Concurrency
    ///
    /// Runs on the thread that met the dead letter, and should be short. Messages that die while a sink or a
    /// subscriber runs on the same thread are counted and dropped, so that nothing goes round.
    pub fn take<M: Answerable + Send + 'static>(
        &self,
        sink: impl Fn(Undelivered<M>) + Send + Sync + 'static,
    ) -> Result<Subscription, SinkTaken> {
        let close = |message: &mut M| {
            message.fork(&Attempt::refused());
        };
        self.take_by(close, sink)
    }

    /// As [`take`](Self::take) for messages that are not [`Answerable`]: `close` takes the reply ports out of a
    /// message, and drops them; `|_| {}` is right for messages without ports.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    pub fn take_by<M: Send + 'static>(
        &self,
        close: impl Fn(&mut M) + Send + Sync + 'static,
        sink: impl Fn(Undelivered<M>) + Send + Sync + 'static,
    ) -> Result<Subscription, SinkTaken> {
        self.rules.add_sink(StdArc::new(Sink { close: Box::new(close), take: Box::new(sink) }))?;
        let rules = StdArc::downgrade(&self.rules);
        Ok(Subscription::new(move || {
            if let Some(rules) = rules.upgrade() {
                rules.remove_sink(TypeId::of::<M>());
            }
        }))
    }
}
