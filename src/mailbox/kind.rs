//! The kinds of mailbox that users choose from.

use crate::mailbox::mailbox;
use crate::mailbox::priority::{Key, PriorityOrder, Shape};
use crate::measure::meter::Measured;
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::Guarded;
use std::any::{Any, type_name};
use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc as StdArc;
use std::time::Duration;

/// The largest number of lanes: each lane costs the owner a look for each message.
const LANES_MAX: usize = 64;
/// The largest capacity of a mailbox that allocates its room at once. A larger capacity is a mistake, and would end the
/// process for want of memory.
const AT_ONCE_MAX: usize = 1 << 24;
/// The capacity of a bounded mailbox that a requirement demands and no setting sizes. The number is Akka's.
const REQUIRED_CAPACITY: usize = 1000;

/// A recipe for the mailbox of an actor. The default is [unbounded](Self::unbounded).
///
/// | kind | here | in Akka |
/// |---|---|---|
/// | any number, in the order sent | [`unbounded`](Self::unbounded) | `UnboundedMailbox`, and `SingleConsumerOnlyUnboundedMailbox`: an actor's mailbox has one consumer in any case |
/// | at most so many; more are refused | [`bounded`](Self::bounded) | `NonBlockingBoundedMailbox` |
/// | at most so many; senders wait | `bounded(n).on_full(OverflowPolicy::Wait(limit))` | `BoundedMailbox` with a push timeout; `Duration::MAX` is a negative one |
/// | at most so many; the oldest or newest is dropped | `bounded(n).on_full(OverflowPolicy::DropOldest)` | – |
/// | by rank, equal ones in the order sent | [`priority`](Self::priority) | `UnboundedStablePriorityMailbox`; `UnboundedPriorityMailbox` leaves the order of equal ones open, so this is one, too |
/// | control first | [`control_aware`](Self::control_aware) | `UnboundedControlAwareMailbox` |
/// | so many lanes, with a guard against starvation | [`lanes`](Self::lanes) | – |
/// | the last three, at most so many | `.capacity(n)`, `.on_full(policy)` | `BoundedStablePriorityMailbox`, `BoundedPriorityMailbox`, `BoundedControlAwareMailbox` |
/// | the same, and some classes always taken | [`.never_discard(class)`](Self::never_discard) | – |
/// | with a front to put messages back to | none: a stash has a place of its own, whatever the mailbox | `UnboundedDequeBasedMailbox`, `BoundedDequeBasedMailbox` |
///
/// # Order
///
/// Messages of one sender and one class are handled in the order sent. A class is a rank or a lane; the other kinds
/// have only one class. In the kinds that sort, a message overtakes messages that have arrived and are not yet begun.
///
/// A poison pill, a timer's tick and a termination notice have a place among the messages. Each acts when all messages
/// that were there before it are handled. In a mailbox that sorts, messages that came later may overtake it, and a
/// message that starves without a guard holds it up.
///
/// # Concurrency
///
/// The function that ranks a message runs once for each message, in the actor's turn, before the next message is known.
/// So the function should be quick. Where some classes are [never discarded](Self::never_discard), the function also
/// runs on the threads of senders that find the mailbox full. When the function panics, its message goes behind all
/// other messages, and the actor fails as if it had failed at the message. Messages left when the actor ends are not
/// ranked any more.
///
/// ```
/// use pointsman::prelude::*;
///
/// enum Job {
///     Cancel(u64),
///     Run(u64),
/// }
///
/// let small = Mailbox::bounded(4096).on_full(OverflowPolicy::Reject);
/// let cancel_first = Mailbox::control_aware(|job: &Job| matches!(job, Job::Cancel(_)));
/// let shortest_first = Mailbox::priority(|job: &Job| match job {
///     Job::Cancel(_) => i64::MIN,
///     Job::Run(length) => *length as i64,
/// })
/// .capacity(10_000);
/// let two_lanes = Mailbox::lanes(2, |job: &Job| if let Job::Cancel(_) = job { 0 } else { 1 }).guard(8);
/// ```
#[derive(Clone)]
pub struct Mailbox {
    pub(crate) capacity: Option<usize>,
    pub(crate) on_full: OverflowPolicy,
    pub(crate) guard: Option<u32>,
    never_discards: Option<i64>,
    /// The number of messages that the actor may stash; `None` for any number.
    pub(crate) stash_capacity: Option<u32>,
    sorting: Option<Sorting>,
}

/// The untyped part of a sorting mailbox.
#[derive(Clone)]
struct Sorting {
    classes: Classes,
    /// A `StdArc<Key<M>>`.
    key: StdArc<dyn Any + Send + Sync>,
    /// The name of `M`.
    messages: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Classes {
    Ranks,
    Control,
    Lanes(usize),
}

/// The overflow policy: says what happens to a message that finds its bounded mailbox full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverflowPolicy {
    /// The message is refused: `try_tell` hands it back, `tell` makes it a dead letter.
    Reject,
    /// The message takes the place of the oldest message, which is dropped and counted. Not available in a mailbox that
    /// sorts: there the sender cannot know the oldest message. Room for all messages is allocated at once. A capacity
    /// of more than 2^24 is an error when the actor is created.
    DropOldest,
    /// The message is dropped and counted.
    DropNewest,
    /// The sender waits for room, for this long at most by the [system's clock](crate::SystemBuilder::clock); then the
    /// message is refused. An ask waits no longer than its own [limit](crate::Ask::within). The owner pays a fence for
    /// each message.
    ///
    /// Some senders must not wait, and their messages are refused at once:
    ///
    /// * a work-stealing worker,
    /// * an actor in a turn on a calling-thread dispatcher,
    /// * a task that a timer runs, such as the later attempts of a tail-chopping router,
    /// * an actor that sends to itself, or to another actor that only its own thread runs: the room would never be
    ///   made.
    ///
    /// For a message sent through a router by `tell` or `try_tell`, the sender waits while it reads the router's table.
    /// Until the wait ends, no replaced table of any router in the process is freed. The changes of a router whose
    /// tables take [as much as they may](crate::routing::RouterPlan::old_tables_max) wait for that. Give routees a
    /// short limit.
    Wait(Duration),
}

impl Mailbox {
    /// Takes any number of messages.
    pub fn unbounded() -> Self {
        Self {
            capacity: None,
            on_full: OverflowPolicy::Reject,
            guard: None,
            never_discards: None,
            stash_capacity: None,
            sorting: None,
        }
    }

    /// Holds at most `capacity` messages, the message being handled not counted. The mailbox refuses more messages
    /// unless [`on_full`](Self::on_full) says otherwise. A capacity of 0 is an error when the actor is created.
    pub fn bounded(capacity: usize) -> Self {
        Self::unbounded().capacity(capacity)
    }

    /// Hands out messages by rank, lower ranks first, and messages of equal rank in the order sent. Takes any number of
    /// messages unless given a [`capacity`](Self::capacity).
    ///
    /// The idea is Akka's `PriorityGenerator`.
    pub fn priority<M: Send + 'static>(rank: impl Fn(&M) -> i64 + Send + Sync + 'static) -> Self {
        let rank = Guarded::new(rank);
        Self::sorted::<M>(Classes::Ranks, StdArc::new(move |message: &M| rank(message)))
    }

    /// Hands out control messages before all other messages, each kind in the order sent. Takes any number of messages
    /// unless given a [`capacity`](Self::capacity).
    pub fn control_aware<M: Send + 'static>(is_control: impl Fn(&M) -> bool + Send + Sync + 'static) -> Self {
        let is_control = Guarded::new(is_control);
        Self::sorted::<M>(Classes::Control, StdArc::new(move |message: &M| i64::from(!is_control(message))))
    }

    /// Hands out the messages of `count` lanes, the lowest number first, and within a lane in the order sent. `lane`
    /// gives the lane of a message, from 0; a number beyond the last lane counts as the last. A count of 0 or of more
    /// than 64 is an error when the actor is created. Takes any number of messages unless given a
    /// [`capacity`](Self::capacity), which holds for all lanes together.
    ///
    /// A lane waits for as long as a higher lane has a message, unless there is a [`guard`](Self::guard).
    pub fn lanes<M: Send + 'static>(
        count: usize,
        lane: impl Fn(&M) -> usize + Send + Sync + 'static,
    ) -> Self {
        let lane = Guarded::new(lane);
        let key = move |message: &M| i64::try_from(lane(message)).unwrap_or(i64::MAX);
        Self::sorted::<M>(Classes::Lanes(count), StdArc::new(key))
    }

    fn sorted<M: Send + 'static>(classes: Classes, key: StdArc<Key<M>>) -> Self {
        let sorting = Sorting { classes, key: StdArc::new(key), messages: type_name::<M>() };
        Self { sorting: Some(sorting), ..Self::unbounded() }
    }

    /// Holds at most `message_count` messages, the message being handled not counted. A capacity of 0 is an error when
    /// the actor is created.
    pub fn capacity(mut self, message_count: usize) -> Self {
        self.capacity = Some(message_count);
        self
    }

    /// Sets what happens when a bounded mailbox is full; an unbounded mailbox is never full. [`OverflowPolicy::DropOldest`] in a
    /// mailbox that sorts is an error when the actor is created.
    pub fn on_full(mut self, policy: OverflowPolicy) -> Self {
        self.on_full = policy;
        self
    }

    /// Guards lanes against starvation. Once `message_count` messages of higher lanes have been handled while a lane
    /// waits, the next message comes from the waiting lane. If several lanes have waited so long, each gets its turn,
    /// the highest first. For example, with 3 full lanes and a guard of 10, of 12 messages 10 are of the first lane and
    /// one is of each other lane.
    ///
    /// The guard applies to [`lanes`](Self::lanes) and [`control_aware`](Self::control_aware), whose second lane has
    /// the messages that are not control. A guard of 0, or on a mailbox without lanes, is an error when the actor is
    /// created.
    pub fn guard(mut self, message_count: u32) -> Self {
        self.guard = Some(message_count);
        self
    }

    /// Takes messages of this class, and of more urgent classes, beyond the [capacity](Self::capacity). No such message
    /// is dropped, refused, or waits for room, whatever [`on_full`](Self::on_full) says. The class is a
    /// [rank](Self::priority), the number of a [lane](Self::lanes), or 0 for the control messages of a
    /// [control-aware](Self::control_aware) mailbox.
    ///
    /// These messages count as queued like other messages, so the mailbox takes no other message before it holds fewer
    /// than its capacity. Nothing bounds their number, so choose a class that is rare.
    ///
    /// Where the mailbox is full, the function that ranks messages runs on the thread of the sender. A panic in the
    /// function does not unwind to the sender: the message is treated as any other.
    ///
    /// Each of these is an error when the actor is created ([`MailboxFault::NeverDiscard`]):
    ///
    /// * a mailbox without a capacity,
    /// * a mailbox that does not sort,
    /// * in lanes or a control-aware mailbox, a class that covers all messages or none.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// enum Job {
    ///     Cancel(u64),
    ///     Run(u64),
    /// }
    ///
    /// /// At most 1,000 jobs wait, more are dropped; but a cancellation always arrives.
    /// let jobs = Mailbox::control_aware(|job: &Job| matches!(job, Job::Cancel(_)))
    ///     .capacity(1000)
    ///     .on_full(OverflowPolicy::DropNewest)
    ///     .never_discard(0);
    /// ```
    pub fn never_discard(mut self, class: i64) -> Self {
        self.never_discards = Some(class);
        self
    }

    /// Sets how many messages an actor with this mailbox may [stash](crate::Context::stash) at a time; the default is
    /// any number. With 0 the actor can stash none. The setting of the actor's
    /// [builder](crate::actor::ActorBuilder::stash_capacity) or [deployment](crate::settings::Deployment::stash_capacity) takes
    /// precedence.
    ///
    /// In a configuration this is `stash-capacity` of the mailbox's section (the key is Akka's).
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let small = Mailbox::bounded(1000).stash_capacity(100);
    /// let system = System::builder("shop").mailbox("small", small).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn stash_capacity(mut self, message_count: usize) -> Self {
        self.stash_capacity = Some(u32::try_from(message_count).unwrap_or(u32::MAX));
        self
    }

    /// Returns whether the mailbox sorts: urgent messages overtake.
    #[cfg(feature = "config")]
    pub(crate) fn sorts(&self) -> bool {
        self.sorting.is_some()
    }

    /// Returns whether several actors can take from the mailbox: it is unsorted, and no sender waits.
    pub(crate) fn is_shareable(&self) -> bool {
        self.sorting.is_none()
            && matches!(
                self.on_full,
                OverflowPolicy::Reject | OverflowPolicy::DropNewest | OverflowPolicy::DropOldest
            )
    }

    /// Returns whether the mailbox fulfils the requirement.
    pub(crate) fn fulfils(&self, requirement: MailboxRequirement) -> bool {
        match requirement {
            MailboxRequirement::Bounded => self.capacity.is_some(),
            MailboxRequirement::Unbounded => self.capacity.is_none(),
            MailboxRequirement::Sorted => self.sorting.is_some(),
            MailboxRequirement::ControlAware => {
                self.sorting.as_ref().is_some_and(|sorting| sorting.classes == Classes::Control)
            }
        }
    }

    /// Checks the mailbox independently of the actor.
    ///
    /// # Errors
    ///
    /// Any [`MailboxFault`] except [`MailboxFault::MessageType`] and the faults about names and requirements.
    pub(crate) fn check(&self) -> Result<(), MailboxFault> {
        if self.capacity == Some(0) {
            return Err(MailboxFault::ZeroCapacity);
        }
        let lanes = match self.sorting.as_ref().map(|sorting| sorting.classes) {
            None | Some(Classes::Ranks) => 0,
            Some(Classes::Control) => 2,
            Some(Classes::Lanes(count)) if (1..=LANES_MAX).contains(&count) => count,
            Some(Classes::Lanes(count)) => return Err(MailboxFault::LaneCount { count }),
        };
        if let Some(class) = self.never_discards {
            let some_are = match self.sorting.as_ref().map(|sorting| sorting.classes) {
                None => false,
                Some(Classes::Ranks) => class < i64::MAX,
                // At least the last lane may be discarded.
                Some(Classes::Control | Classes::Lanes(_)) => {
                    usize::try_from(class).is_ok_and(|class| class + 1 < lanes)
                }
            };
            if !some_are || self.capacity.is_none() {
                return Err(MailboxFault::NeverDiscard { class, mailbox: self.to_string() });
            }
        }
        match self.guard {
            Some(guard) if guard == 0 || lanes == 0 => Err(MailboxFault::Guard { guard, lanes }),
            _ if self.sorting.is_some() && self.on_full == OverflowPolicy::DropOldest => {
                Err(MailboxFault::DropOldest)
            }
            _ if self.on_full == OverflowPolicy::DropOldest => self.check_room_at_once(),
            _ => Ok(()),
        }
    }

    /// As [`check`](Self::check), for a mailbox whose room is allocated at once.
    pub(crate) fn check_room_at_once(&self) -> Result<(), MailboxFault> {
        match self.capacity {
            Some(capacity) if capacity > AT_ONCE_MAX => Err(MailboxFault::LargeCapacity { capacity }),
            _ => Ok(()),
        }
    }

    /// Prepares the mailbox of an actor that handles `M`.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check), and [`MailboxFault::MessageType`].
    pub(crate) fn prepare<M: Send + 'static>(&self) -> Result<Prepared<M>, MailboxFault> {
        self.check()?;
        let order = match &self.sorting {
            None => None,
            Some(Sorting { classes, key, messages }) => {
                let Some(key) = key.downcast_ref::<StdArc<Key<M>>>() else {
                    return Err(MailboxFault::MessageType { mailbox: messages, actor: type_name::<M>() });
                };
                let lanes = match classes {
                    Classes::Ranks => None,
                    Classes::Control => NonZeroUsize::new(2),
                    Classes::Lanes(count) => NonZeroUsize::new(*count),
                };
                let guard = self.guard.and_then(NonZeroU32::new);
                let shape = lanes.map_or(Shape::Ranks, |count| Shape::ClassQueues { count, guard });
                Some(PriorityOrder::new(shape, key.clone()).never_discarding(self.never_discards))
            }
        };
        let capacity = self.capacity.and_then(NonZeroUsize::new);
        Ok(Prepared { capacity, on_full: self.on_full, stash_capacity: self.stash_capacity, order })
    }
}

impl Default for Mailbox {
    fn default() -> Self {
        Self::unbounded()
    }
}

/// Writes the kind, as in `bounded priority mailbox (capacity 10, on full Reject)`.
impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.capacity.is_some() { "bounded" } else { "unbounded" })?;
        match self.sorting.as_ref().map(|sorting| sorting.classes) {
            None => {}
            Some(Classes::Ranks) => f.write_str(" priority")?,
            Some(Classes::Control) => f.write_str(" control-aware")?,
            Some(Classes::Lanes(count)) => write!(f, " {count}-lane")?,
        }
        f.write_str(" mailbox")?;
        let room = self.capacity.map(|capacity| format!("capacity {capacity}, on full {:?}", self.on_full));
        let spares = self.never_discards.map(|class| format!("never discards up to class {class}"));
        let said: Vec<String> = room.into_iter().chain(spares).collect();
        if said.is_empty() { Ok(()) } else { write!(f, " ({})", said.join(", ")) }
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("capacity", &self.capacity)
            .field("on_full", &self.on_full)
            .field("guard", &self.guard)
            .field("never_discards", &self.never_discards)
            .field("stash_capacity", &self.stash_capacity)
            .field("classes", &self.sorting.as_ref().map(|sorting| sorting.classes))
            .field("messages", &self.sorting.as_ref().map(|sorting| sorting.messages))
            .finish()
    }
}

/// A checked recipe for messages of type `M`.
pub(crate) struct Prepared<M> {
    capacity: Option<NonZeroUsize>,
    pub on_full: OverflowPolicy,
    /// The number of messages that the actor may stash, unless another setting takes precedence; `None` for any number.
    pub stash_capacity: Option<u32>,
    order: Option<PriorityOrder<M>>,
}

impl<M> Prepared<M> {
    pub(crate) fn make<H: Measured, S>(self, header: H) -> mailbox::Mailbox<H, S, M> {
        let waiting = matches!(self.on_full, OverflowPolicy::Wait(_));
        match (self.order, self.capacity) {
            (None, None) => mailbox::Mailbox::unbounded(header),
            (None, Some(capacity)) if self.on_full == OverflowPolicy::DropOldest => {
                mailbox::Mailbox::ring(header, capacity)
            }
            (None, Some(capacity)) => mailbox::Mailbox::bounded(header, capacity, waiting),
            (Some(order), capacity) => {
                mailbox::Mailbox::ordered(header, order, capacity.map(|capacity| (capacity, waiting)))
            }
        }
    }
}

/// A demand of an actor or a dispatcher on mailboxes. It is checked when an actor is created.
///
/// An actor without a chosen mailbox gets a mailbox that fulfils the demand: unbounded, or bounded with 1,000 messages,
/// which refuses more. A sorting mailbox needs a function that ranks messages, so it must be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum MailboxRequirement {
    /// There is a capacity.
    Bounded,
    /// There is none.
    Unbounded,
    /// Urgent messages overtake: by priority, control-aware, or in lanes.
    Sorted,
    /// Control overtakes: [`Mailbox::control_aware`].
    ControlAware,
}

impl MailboxRequirement {
    /// Returns the mailbox of an actor without a chosen mailbox, if there is one that fulfils the demand. A bounded
    /// mailbox holds 1,000 messages. A sorting mailbox needs a function that ranks messages, so there is none.
    pub(crate) fn mailbox(self) -> Option<Mailbox> {
        match self {
            Self::Bounded => Some(Mailbox::bounded(REQUIRED_CAPACITY)),
            Self::Unbounded => Some(Mailbox::unbounded()),
            Self::Sorted | Self::ControlAware => None,
        }
    }
}

impl fmt::Display for MailboxRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bounded => "a bounded mailbox",
            Self::Unbounded => "an unbounded mailbox",
            Self::Sorted => "a mailbox that sorts",
            Self::ControlAware => "a control-aware mailbox",
        })
    }
}

/// A choice of mailbox: the mailbox itself, or the name of a mailbox that the system knows:
/// [`SystemBuilder::mailbox`](crate::SystemBuilder::mailbox).
#[derive(Debug, Clone)]
pub struct MailboxChoice(pub(crate) Choice);

#[derive(Debug, Clone)]
pub(crate) enum Choice {
    Recipe(Mailbox),
    Name(String),
}

impl From<Mailbox> for MailboxChoice {
    fn from(mailbox: Mailbox) -> Self {
        Self(Choice::Recipe(mailbox))
    }
}

impl From<&str> for MailboxChoice {
    fn from(name: &str) -> Self {
        Self(Choice::Name(name.to_owned()))
    }
}

/// A choice as it stands in a file, for serde's `with`. Only a name does.
#[cfg(feature = "config")]
pub(crate) mod choice {
    use super::{Choice, MailboxChoice};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        choice: &Option<MailboxChoice>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match choice {
            Some(MailboxChoice(Choice::Name(name))) => serializer.serialize_str(name),
            None | Some(MailboxChoice(Choice::Recipe(_))) => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<MailboxChoice>, D::Error> {
        String::deserialize(d).map(|name| Some(MailboxChoice(Choice::Name(name))))
    }
}

/// A fault of the mailbox that an actor was to have.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MailboxFault {
    /// The mailbox is bounded with capacity 0.
    ZeroCapacity,
    /// The mailbox allocates room for all its messages at once, and its capacity is more than 2^24.
    LargeCapacity {
        /// The capacity.
        capacity: usize,
    },
    /// The mailbox has no lane, or more than 64 lanes.
    LaneCount {
        /// The number of lanes.
        count: usize,
    },
    /// The starvation guard is 0, or the mailbox has no lanes.
    Guard {
        /// The guard.
        guard: u32,
        /// The number of lanes.
        lanes: usize,
    },
    /// The mailbox sorts, and its policy when full is to drop the oldest message.
    DropOldest,
    /// A class is [never to be discarded](Mailbox::never_discard), and the mailbox has no capacity, does not sort, has
    /// no other class, or has no such class.
    NeverDiscard {
        /// The class.
        class: i64,
        /// The mailbox.
        mailbox: String,
    },
    /// The mailbox sorts messages of another type than the actor handles.
    MessageType {
        /// The type of messages that it sorts.
        mailbox: &'static str,
        /// The type of messages that the actor handles.
        actor: &'static str,
    },
    /// The mailbox is no queue that several actors can share: see [`Balancing`](crate::routing::Balancing).
    NotShareable {
        /// The mailbox.
        mailbox: String,
    },
    /// The system knows no mailbox of this name.
    UnknownName {
        /// The name.
        name: String,
        /// The names that the system knows.
        known: Vec<String>,
    },
    /// The mailbox does not fulfil the requirement.
    Unmet {
        /// The requirement.
        requirement: MailboxRequirement,
        /// The name of the dispatcher that requires it; `None` if the actor does.
        dispatcher: Option<String>,
        /// The mailbox.
        mailbox: String,
    },
}

impl fmt::Display for MailboxFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroCapacity => f.write_str("capacity 0: must be at least 1"),
            Self::LargeCapacity { capacity } => write!(
                f,
                "capacity {capacity}, for which room is allocated at once: must be at most {AT_ONCE_MAX}"
            ),
            Self::LaneCount { count } => write!(f, "{count} lanes: must be within 1 and {LANES_MAX}"),
            Self::Guard { guard, lanes: 0 } => {
                write!(f, "a guard of {guard} on a mailbox without lanes: use lanes or no guard")
            }
            Self::Guard { guard, .. } => write!(f, "a guard of {guard}: must be at least 1"),
            Self::DropOldest => f.write_str(
                "DropOldest in a mailbox that sorts, whose senders cannot know the oldest: use DropNewest, Reject or \
                 Wait",
            ),
            Self::NeverDiscard { class, mailbox } => write!(
                f,
                "messages up to class {class} are never to be discarded by this: {mailbox}; it must sort, have a capacity, \
                 and have this class and one below it that may be discarded"
            ),
            Self::MessageType { mailbox, actor } => {
                write!(f, "it sorts messages of type {mailbox}, and the actor handles {actor}: make one for these")
            }
            Self::NotShareable { mailbox } => write!(
                f,
                "routees cannot share this: {mailbox}; use Mailbox::unbounded(), or Mailbox::bounded(n) with Reject, \
                 DropNewest or DropOldest"
            ),
            Self::UnknownName { name, known } => write!(
                f,
                "unknown mailbox {name:?}: declare it with System::builder(..).mailbox({name:?}, ..), there are \
                 {known:?}"
            ),
            Self::Unmet { requirement, dispatcher, mailbox } => {
                match dispatcher {
                    Some(name) => write!(f, "dispatcher {name:?} requires {requirement}")?,
                    None => write!(f, "the actor requires {requirement}")?,
                }
                write!(f, ", and it was to have this: {mailbox}; choose another mailbox")
            }
        }
    }
}

impl std::error::Error for MailboxFault {}

debug_by_display! { MailboxFault }
