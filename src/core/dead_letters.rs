//! The publication of dead letters: they are shown to subscribers, the log and sinks.
//!
//! The ledger counts; this module only publishes: to the subscribers of the [event stream](crate::events::EventStream), to the
//! log (`dead_letter_log.rs`), and to the sink of the message's type (`dead_letter_sinks.rs`). All of them run on the thread
//! that met the dead letter. A message that they send may itself become a dead letter. It is counted, but not published
//! while the first is being published, so there is no endless circle.

use crate::core::dead_letter::{DeadLetter, DeadLetterReason, nowhere};
use crate::core::dead_letter_log::LetterLog;
use crate::core::dead_letter_sinks::Rules;
use crate::core::event_stream::{EventStream, Subscription};
use crate::dispatch::calling_thread;
use crate::path::actor_path::ActorPath;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{CachePadded, EXPLORED, per_thread, thread_index};
use crate::util::panic::{drop_guarded, quietly};
use std::any::TypeId;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc as StdArc;

/// A suppressed dead letter: its message is [marked](DeadLetters::suppress). An event; never logged.
#[derive(Debug, Clone)]
pub struct SuppressedDeadLetter(pub DeadLetter);

/// Returns whether messages of type `M` are such events themselves. Such a message that cannot be delivered is counted,
/// and not published.
fn is_letter<M: 'static>() -> bool {
    [TypeId::of::<DeadLetter>(), TypeId::of::<SuppressedDeadLetter>()].contains(&TypeId::of::<M>())
}

/// The dead letters of a single system.
pub struct DeadLetters {
    events: EventStream,
    log: LetterLog,
    pub(crate) rules: StdArc<Rules>,
    /// Whether the system has begun to end.
    is_ending: AtomicBool,
    by_reason: Box<[CachePadded<LettersByReason>; SHARDS]>,
}

/// The numbers of letters of some threads, by their reasons.
type LettersByReason = [AtomicU64; DeadLetterReason::ALL.len()];

/// The tables among which threads spread, so that a flood of letters from several threads meets on no line.
const SHARDS: usize = if EXPLORED { 1 } else { 8 };

per_thread! {
    static TELLING: Cell<bool> = Cell::new(false);
}

/// The mark that this thread is publishing a letter, until this value is dropped.
struct Telling(());

impl Telling {
    /// `None` if the thread is publishing already, or if the thread's local values are being destroyed.
    fn begin() -> Option<Self> {
        let telling = TELLING.try_with(|telling| telling.replace(true)).unwrap_or(true);
        // Made only for the first letter, since the drop of this value ends the publication.
        (!telling).then(|| Self(()))
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let _ = TELLING.try_with(|telling| telling.set(false));
    }
}

impl DeadLetters {
    pub(crate) fn new(events: EventStream, log: LetterLog) -> Self {
        let by_reason =
            Box::new(std::array::from_fn(|_| CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)))));
        Self { events, log, rules: StdArc::default(), is_ending: AtomicBool::new(false), by_reason }
    }

    /// Calls `subscriber` for each letter from now on, on the thread that met it; the letter's
    /// [reason](DeadLetter::reason) tells undelivered, dropped and unhandled messages apart. Suppressed letters are left
    /// out. Actors subscribe to the [event stream](crate::SystemRef::events).
    ///
    /// Two kinds of letters are counted and not shown: a letter met on a thread that is showing another letter (of a
    /// message that a subscriber sends), and a letter met while the thread-local values of its thread are being
    /// destroyed. A subscriber that panics is passed over. A subscriber may run while its thread unwinds:
    /// [`DeadLetterReason::Panicked`].
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let _subscription = system.dead_letters().subscribe(|letter| eprintln!("dead letter: {letter}"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn subscribe(&self, subscriber: impl Fn(&DeadLetter) + Send + Sync + 'static) -> Subscription {
        self.events.on(subscriber)
    }

    /// Ends the logging from now on, unless the settings say otherwise.
    pub(crate) fn system_ends(&self) {
        // Ordering: Relaxed; a letter met at the same moment may be logged or not.
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Counts a letter, whether it is shown or not.
    fn count(&self, reason: DeadLetterReason) {
        // Models have no use for the number, and each access makes them larger.
        if !EXPLORED {
            let shard = thread_index::current().unwrap_or(0) & (SHARDS - 1);
            // Ordering: Relaxed; a statistic.
            self.by_reason[shard][reason as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of letters of each reason, without reasons that none has.
    pub(crate) fn by_reason(&self) -> Vec<(DeadLetterReason, u64)> {
        let count = |reason: DeadLetterReason| {
            // Ordering: Relaxed; a statistic.
            self.by_reason.iter().map(|shard| shard[reason as usize].load(Ordering::Relaxed)).sum::<u64>()
        };
        DeadLetterReason::ALL
            .map(|reason| (reason, count(reason)))
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Returns whether any subscriber, log or rule exists.
    fn is_watched(&self) -> bool {
        self.events.has_subscribers() || self.log.is_read() || !self.rules.is_empty()
    }

    /// Publishes the letter of a message that is gone already. Does not unwind, so it may run while a thread unwinds.
    pub(crate) fn publish(
        &self,
        reason: DeadLetterReason,
        message_type: &'static str,
        recipient: impl FnOnce() -> ActorPath,
    ) {
        self.count(reason);
        if !self.is_watched() {
            return;
        }
        let Some(_telling) = Telling::begin() else { return };
        self.show(DeadLetter { recipient: asked(recipient), message_type, reason }, false);
    }

    /// Publishes the letter of a message that no recipient takes, and hands the message to the sink of its type, or
    /// drops it. The message is counted already, and its asker has been told. Does not unwind.
    #[cold]
    pub(crate) fn publish_dead_letter<M: Send + 'static>(
        &self,
        message: M,
        reason: DeadLetterReason,
        recipient: impl FnOnce() -> ActorPath,
    ) {
        self.count(reason);
        let telling = if self.is_watched() { Telling::begin() } else { None };
        let mut left = Some(message);
        if telling.is_some() && !is_letter::<M>() {
            let recipient = asked(recipient);
            let letter = DeadLetter { recipient, message_type: std::any::type_name::<M>(), reason };
            let is_suppressed = left.as_ref().is_some_and(|message| self.rules.is_suppressed(message));
            self.show(letter.clone(), is_suppressed);
            if let Some(sink) = self.rules.sink::<M>() {
                if let Some(message) = left.take() {
                    unread(|| sink.take(message, letter));
                }
                drop_guarded(sink);
            }
        }
        // Messages that a message's destructor sends are published as letters of their own.
        drop(telling);
        unread(|| drop_guarded(left));
    }

    fn show(&self, letter: DeadLetter, is_suppressed: bool) {
        if is_suppressed {
            return self.events.publish(&SuppressedDeadLetter(letter));
        }
        // Ordering: Relaxed; see `system_ends`.
        let is_ending = self.is_ending.load(Ordering::Relaxed);
        quietly(|| self.log.note(&letter, is_ending));
        self.events.publish(&letter);
    }
}

/// Returns the path of the recipient. A user's recipient is asked itself, and may panic.
pub(crate) fn asked(recipient: impl FnOnce() -> ActorPath) -> ActorPath {
    let mut path = None;
    quietly(|| path = Some(recipient()));
    path.unwrap_or_else(nowhere)
}

impl fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetters").field("events", &self.events).finish_non_exhaustive()
    }
}

per_thread! {
    /// The values dropped now are messages that no handler has read: in a turn on a calling-thread dispatcher, or in
    /// none. A turn that begins meanwhile, as that of an actor which is told of the drop, is about other messages.
    static UNREAD: Cell<Option<InTurn>> = Cell::new(None);
}

/// Whether the thread is in a turn on a calling-thread dispatcher. Such turns do not nest.
type InTurn = bool;

/// Drops messages that no handler has read; their reply ports can [tell](is_unread).
pub(crate) fn unread<R>(drop: impl FnOnce() -> R) -> R {
    marked(Some(calling_thread::is_in_turn()), drop)
}

/// Gives an actor of a test system a turn, in the midst of the thread's other work: the turn is about other messages.
#[cfg(feature = "testkit")]
pub(crate) fn turn_within<R>(turn: impl FnOnce() -> R) -> R {
    marked(None, turn)
}

fn marked<R>(mark: Option<InTurn>, act: impl FnOnce() -> R) -> R {
    struct Back(Option<InTurn>);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = UNREAD.try_with(|unread| unread.set(self.0));
        }
    }
    let _back = Back(UNREAD.try_with(|unread| unread.replace(mark)).unwrap_or(None));
    act()
}

/// Returns whether the reply port that is being dropped is that of a message which no handler has read.
pub(crate) fn is_unread() -> bool {
    let unread_in = UNREAD.try_with(Cell::get).unwrap_or(None);
    unread_in.is_some_and(|in_turn| in_turn == calling_thread::is_in_turn())
}
