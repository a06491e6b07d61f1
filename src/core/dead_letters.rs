//! Where messages that nobody took are shown to whoever wants to know.
//!
//! Counting is the ledger's business; this only tells: the subscribers of the [event stream](crate::events::EventStream),
//! the log (`dead_letter_log.rs`), and the sink of the message's type (`undelivered.rs`). All of them run on the
//! thread that met the dead letter; what they send may itself become a dead letter, which is counted but not told
//! again while the first is being told, so that nothing goes round.

use crate::core::dead_letter::{DeadLetter, DeadLetterReason, nowhere};
use crate::core::dead_letter_log::LetterLog;
use crate::core::dead_letter_sinks::Rules;
use crate::core::event_stream::{ByFunction, EventGroup, EventStream, EventTypes, Subscriber, Subscription};
use crate::dispatch::calling_thread;
use crate::path::actor_path::ActorPath;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::per_thread;
use crate::util::panic::{drop_guarded, quietly};
use std::any::TypeId;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc as StdArc;

/// A dead letter that is of no interest: its message is [marked](DeadLetters::suppress) so. An event; never logged.
#[derive(Debug, Clone)]
pub struct SuppressedDeadLetter(pub DeadLetter);

/// A message that was let go on purpose: by a full mailbox whose policy says so. An event.
#[derive(Debug, Clone)]
pub struct Dropped(pub DeadLetter);

/// A message that its actor got and did not know what to do with; see
/// [`Context::unhandled`](crate::Context::unhandled). An event.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unhandled {
    /// Who did not handle it.
    pub recipient: ActorPath,
    /// The name of the message's type.
    pub message_type: &'static str,
}

/// `u64 to /user/cache: unhandled`.
impl fmt::Display for Unhandled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}: unhandled", self.message_type, self.recipient)
    }
}

/// Every message that came to nothing: the group of the four kinds of events about them.
///
/// ```
/// use pointsman::dead_letters::AnyDeadLetter;
/// # use pointsman::prelude::*;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let _subscription = system.events().on_group(|letter: &AnyDeadLetter| eprintln!("{letter}"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnyDeadLetter {
    /// Nobody took it.
    DeadLetter(DeadLetter),
    /// Nobody took it, and nobody minds.
    Suppressed(SuppressedDeadLetter),
    /// It was let go on purpose.
    Dropped(Dropped),
    /// Its actor did not know what to do with it.
    Unhandled(Unhandled),
}

impl fmt::Display for AnyDeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadLetter(letter)
            | Self::Suppressed(SuppressedDeadLetter(letter))
            | Self::Dropped(Dropped(letter)) => letter.fmt(f),
            Self::Unhandled(unhandled) => unhandled.fmt(f),
        }
    }
}

impl From<DeadLetter> for AnyDeadLetter {
    fn from(letter: DeadLetter) -> Self {
        Self::DeadLetter(letter)
    }
}

impl From<SuppressedDeadLetter> for AnyDeadLetter {
    fn from(letter: SuppressedDeadLetter) -> Self {
        Self::Suppressed(letter)
    }
}

impl From<Dropped> for AnyDeadLetter {
    fn from(letter: Dropped) -> Self {
        Self::Dropped(letter)
    }
}

impl From<Unhandled> for AnyDeadLetter {
    fn from(unhandled: Unhandled) -> Self {
        Self::Unhandled(unhandled)
    }
}

impl EventGroup for AnyDeadLetter {
    fn members(members: &mut EventTypes<Self>) {
        members.add::<DeadLetter>().add::<SuppressedDeadLetter>().add::<Dropped>().add::<Unhandled>();
    }
}

/// Whether messages of type `M` are such events themselves. One that cannot be delivered is counted, and that
/// is all.
fn is_letter<M: 'static>() -> bool {
    [
        TypeId::of::<DeadLetter>(),
        TypeId::of::<SuppressedDeadLetter>(),
        TypeId::of::<Dropped>(),
        TypeId::of::<Unhandled>(),
        TypeId::of::<AnyDeadLetter>(),
    ]
    .contains(&TypeId::of::<M>())
}

/// The dead letters of one system.
pub struct DeadLetters {
    events: EventStream,
    log: LetterLog,
    pub(crate) rules: StdArc<Rules>,
    /// The system has begun to end.
    is_ending: AtomicBool,
}

per_thread! {
    static TELLING: Cell<bool> = Cell::new(false);
}

/// This thread is telling of a letter, until this is dropped.
struct Telling(());

impl Telling {
    /// `None` if it is so already, or if the thread's local values are being destroyed.
    fn begin() -> Option<Self> {
        let telling = TELLING.try_with(|telling| telling.replace(true)).unwrap_or(true);
        // Made only where it is the first, since its drop ends the telling.
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
        Self { events, log, rules: StdArc::default(), is_ending: AtomicBool::new(false) }
    }

    /// Calls `subscriber` for each dead and each dropped letter from now on, on the thread that met it.
    /// Suppressed ones are left out. Actors subscribe to the [event stream](crate::SystemRef::events).
    ///
    /// Counted and not shown is a letter met on a thread that is showing one (what a subscriber sends), or
    /// whose thread-local values are being destroyed. A subscriber that panics is passed over. It may run
    /// while its thread unwinds: [`DeadLetterReason::Panicked`].
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
        let subscriber = StdArc::new(subscriber);
        let shown = subscriber.clone();
        let dead = ByFunction::new(move |letter: &DeadLetter| shown(letter));
        let dropped = ByFunction::new(move |Dropped(letter): &Dropped| subscriber(letter));
        let entries: Vec<(TypeId, StdArc<dyn Subscriber>)> = vec![
            (TypeId::of::<DeadLetter>(), StdArc::new(dead)),
            (TypeId::of::<Dropped>(), StdArc::new(dropped)),
        ];
        self.events.add_function(TypeId::of::<DeadLetter>(), entries)
    }

    /// Nothing is logged from now on, unless the settings say otherwise.
    pub(crate) fn system_ends(&self) {
        // Ordering: Relaxed; a letter met at the same moment may be logged or not.
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Whether anybody wants to know anything.
    fn is_watched(&self) -> bool {
        self.events.has_subscribers() || self.log.is_read() || !self.rules.is_empty()
    }

    /// Tells of a message that is gone already. Nothing unwinds out of here, so that it may run while a thread
    /// unwinds.
    pub(crate) fn publish(
        &self,
        reason: DeadLetterReason,
        message_type: &'static str,
        recipient: impl FnOnce() -> ActorPath,
    ) {
        if !self.is_watched() {
            return;
        }
        let Some(_telling) = Telling::begin() else { return };
        self.show(DeadLetter { recipient: asked(recipient), message_type, reason }, false);
    }

    /// Tells of a message that nobody takes, and hands it to the sink of its type, or drops it. It is counted
    /// already, and who asked by it knows. Nothing unwinds out of here.
    #[cold]
    pub(crate) fn publish_dead_letter<M: Send + 'static>(
        &self,
        message: M,
        reason: DeadLetterReason,
        recipient: impl FnOnce() -> ActorPath,
    ) {
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
        // What a message's destructor sends is nobody's echo.
        drop(telling);
        unread(|| drop_guarded(left));
    }

    /// Tells of a message that its actor did not know.
    pub(crate) fn publish_unhandled(
        &self,
        recipient: impl FnOnce() -> ActorPath,
        message_type: &'static str,
    ) {
        if !self.is_watched() {
            return;
        }
        let Some(_telling) = Telling::begin() else { return };
        let unhandled = Unhandled { recipient: recipient(), message_type };
        self.note(&unhandled);
        self.events.publish(&unhandled);
    }

    fn show(&self, letter: DeadLetter, is_suppressed: bool) {
        if is_suppressed {
            return self.events.publish(&SuppressedDeadLetter(letter));
        }
        self.note(&letter);
        match letter.reason {
            DeadLetterReason::Dropped => self.events.publish(&Dropped(letter)),
            _ => self.events.publish(&letter),
        }
    }

    fn note(&self, letter: &dyn fmt::Display) {
        // Ordering: Relaxed; see `system_ends`.
        let is_ending = self.is_ending.load(Ordering::Relaxed);
        quietly(|| self.log.note(letter, is_ending));
    }
}

/// Where the recipient stands. A user's recipient is asked itself, and may panic.
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
    /// What is dropped now has been read by nobody: in a turn on a calling-thread dispatcher, or in none. A turn that begins
    /// meanwhile, as that of an actor which is told of the drop, is about other messages.
    static UNREAD: Cell<Option<InTurn>> = Cell::new(None);
}

/// Whether the thread is in a turn on a calling-thread dispatcher. Such turns do not nest.
type InTurn = bool;

/// Drops messages that nobody has read; their reply ports can [tell](is_unread).
pub(crate) fn unread<R>(drop: impl FnOnce() -> R) -> R {
    marked(Some(calling_thread::is_in_turn()), drop)
}

/// Gives an actor of a test system a turn, in the midst of whatever the thread does: it is about other messages.
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

/// Whether the reply port that is being dropped is that of a message which nobody has read.
pub(crate) fn is_unread() -> bool {
    let unread_in = UNREAD.try_with(Cell::get).unwrap_or(None);
    unread_in.is_some_and(|in_turn| in_turn == calling_thread::is_in_turn())
}
