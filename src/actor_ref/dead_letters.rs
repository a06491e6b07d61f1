//! Where messages that nobody took are shown to whoever wants to know.
//!
//! Counting is the ledger's business; this only tells. A subscriber is a function, called on the thread
//! that met the dead letter; what it sends may itself become a dead letter, which is counted but not told
//! again while the first is being told, so that nothing goes round.

use crate::actor::ActorPath;
use crate::error::SendError;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, lock, per_thread};
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc as StdArc, Weak as StdWeak};

/// A message that nobody took, or that a full mailbox let go. The message itself is gone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Who was to get it.
    pub recipient: ActorPath,
    /// The name of the message's type.
    pub message_type: &'static str,
    /// Why it was not taken.
    pub reason: DeadLetterReason,
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// The recipient had stopped, or stopped with the message in its mailbox.
    Stopped,
    /// The mailbox was full and refused.
    Full,
    /// The mailbox was full and let a message go by its policy (counted as dropped, not as dead-lettered).
    Dropped,
    /// The router had no routee that took it.
    NoRoutee,
    /// Routers route to each other in a circle.
    Cycle,
    /// A routing logic named a routee that does not exist.
    BadPick,
    /// A routing logic, an adapter's function or a custom recipient panicked and took the message with it.
    Panicked,
    /// There is no actor at the recipient's path, and there was none when the reference was made.
    NoActor,
}

impl DeadLetterReason {
    pub(crate) fn of<M>(error: &SendError<M>) -> Self {
        match error {
            SendError::Full(_) => DeadLetterReason::Full,
            SendError::Closed(_) => DeadLetterReason::Stopped,
            SendError::NoRoutee(_) => DeadLetterReason::NoRoutee,
            SendError::Cycle(_) => DeadLetterReason::Cycle,
            SendError::BadPick { .. } => DeadLetterReason::BadPick,
        }
    }
}

/// What was to go where, and why it did not: `u64 to /user/cache: stopped`.
impl fmt::Display for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}: {}", self.message_type, self.recipient, self.reason)
    }
}

impl fmt::Display for DeadLetterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeadLetterReason::Stopped => "stopped",
            DeadLetterReason::Full => "mailbox full",
            DeadLetterReason::Dropped => "dropped by a full mailbox",
            DeadLetterReason::NoRoutee => "no routee took it",
            DeadLetterReason::Cycle => "routers in a circle",
            DeadLetterReason::BadPick => "routing logic picked a routee that does not exist",
            DeadLetterReason::Panicked => "lost in a panic",
            DeadLetterReason::NoActor => "no actor there",
        })
    }
}

/// The path of what stands nowhere in the tree.
pub fn nowhere() -> ActorPath {
    ActorPath::from_names(["deadLetters".into()].into_iter())
}

type Subscriber = dyn Fn(&DeadLetter) + Send + Sync;

/// The dead letters of one system.
#[derive(Default)]
pub struct DeadLetters {
    subscribers: StdArc<Mutex<Vec<StdArc<Subscriber>>>>,
    /// How many there are, so that without any a dead letter costs one load.
    count: StdArc<AtomicUsize>,
}

/// Ends the subscription when dropped.
#[must_use = "a subscription ends when it is dropped"]
pub struct Subscription {
    subscriber: StdWeak<Subscriber>,
    subscribers: StdArc<Mutex<Vec<StdArc<Subscriber>>>>,
    count: StdArc<AtomicUsize>,
}

per_thread! {
    static TELLING: Cell<bool> = Cell::new(false);
}

impl DeadLetters {
    /// Calls `subscriber` for each dead letter from now on, on the thread that met it.
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
        let subscriber: StdArc<Subscriber> = StdArc::new(subscriber);
        let weak = StdArc::downgrade(&subscriber);
        lock(&self.subscribers).push(subscriber);
        // Ordering: Relaxed; a letter met at the same moment may be told or not.
        self.count.fetch_add(1, Ordering::Relaxed);
        Subscription { subscriber: weak, subscribers: self.subscribers.clone(), count: self.count.clone() }
    }

    /// Tells the subscribers, if there are any. Nothing unwinds out of here, so that it may run while a
    /// thread unwinds already.
    pub(crate) fn publish(
        &self,
        reason: DeadLetterReason,
        message_type: &'static str,
        recipient: impl FnOnce() -> ActorPath,
    ) {
        // Ordering: Relaxed; see `subscribe`.
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let telling = TELLING.try_with(|telling| telling.replace(true)).unwrap_or(true);
        if telling {
            return;
        }
        let subscribers = lock(&self.subscribers).clone();
        // A user's recipient is asked where it stands, and may panic too.
        let recipient = catch_unwind(AssertUnwindSafe(recipient)).unwrap_or_else(|payload| {
            crate::actor::drop_guarded(payload);
            nowhere()
        });
        let letter = DeadLetter { recipient, message_type, reason };
        for subscriber in subscribers {
            // What a subscriber does wrong is not the sender's fault. Moved in: this may be the last that
            // is left of it.
            let letter = &letter;
            if let Err(payload) = catch_unwind(AssertUnwindSafe(move || subscriber(letter))) {
                crate::actor::drop_guarded(payload);
            }
        }
        let _ = TELLING.try_with(|telling| telling.set(false));
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Some(subscriber) = self.subscriber.upgrade() else { return };
        let removed = {
            let mut subscribers = lock(&self.subscribers);
            let place = subscribers.iter().position(|other| StdArc::ptr_eq(other, &subscriber));
            place.map(|place| subscribers.remove(place))
        };
        if removed.is_some() {
            // Ordering: Relaxed; see `subscribe`.
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetters").field("subscribers", &lock(&self.subscribers).len()).finish()
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}
